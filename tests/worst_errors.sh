#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The worst errors that the test programs found, as one table: worst_errors.sh FOLDER
# Each line of FOLDER/*.tsv: what, types, observed, bound, case. Fails when there is nothing, or a bound is broken.
set -eu
cat "$1"/*.tsv | LC_ALL=C awk -F '\t' '
  {
    key = $1 "\t" $2
    if (!(key in worst) || $3 + 0 > worst[key]) { worst[key] = $3 + 0; bound[key] = $4; found_in[key] = $5 }
  }
  END {
    format = "%-30s %-36s %12s %8s  %s\n"
    printf format, "quantity", "types (x/gamma/y/dx)", "worst found", "bound", "in"
    sort = "LC_ALL=C sort"
    for (key in worst) {
      split(key, part, "\t")
      printf format, part[1], part[2], sprintf("%.4g", worst[key]), bound[key], found_in[key] | sort
      lines++
      if (worst[key] > bound[key] + 0) broken++
    }
    close(sort)
    if (!lines) { print "no errors were recorded" > "/dev/stderr"; exit 1 }
    if (broken) { print broken " bounds are broken" > "/dev/stderr"; exit 1 }
  }'

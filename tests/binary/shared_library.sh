#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shared_library.sh LIBRARY HEADER: exports exactly what the header declares; a soname; no executable stack, no text
# relocations.
set -eu
: "${NM:=nm}" "${READELF:=readelf}"
library=$1 header=$2
failed=0
fail() { echo "$1" >&2; failed=1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

sed -n 's/^TRUENORM_API .*\(truenorm_[a-z_]*\)(.*/\1/p' "$header" | LC_ALL=C sort >"$folder/declared"
"$NM" -D --defined-only "$library" | awk '{ print $NF }' | LC_ALL=C sort >"$folder/exported"
test -s "$folder/declared" || fail "no TRUENORM_API function found in $header"
diff "$folder/declared" "$folder/exported" >"$folder/difference" ||
  { cat "$folder/difference" >&2; fail "declared (<) and exported (>) functions differ"; }

dynamic=$("$READELF" -dW "$library")
echo "$dynamic" | grep -q 'SONAME.*libtruenorm[.]so[.][0-9]' || fail "no soname with a version"
! echo "$dynamic" | grep -q TEXTREL || fail "text relocations"
"$READELF" -lW "$library" | grep -q 'GNU_STACK.* RW ' || fail "the stack is not marked as not executable"
test $failed = 0 && echo "$(wc -l <"$folder/exported") functions exported, as declared"

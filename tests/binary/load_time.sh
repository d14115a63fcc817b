#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# load_time.sh OBJECT...: no object has anything to run when the library is loaded. In a kernel's object that would be
# code of an instruction set that the CPU may lack; elsewhere, work and an order of initialization that nobody asked for.
set -eu
: "${OBJDUMP:=objdump}"
test $# -gt 0 || { echo "no objects" >&2; exit 1; }
failed=0
for object in "$@"; do
  sections=$("$OBJDUMP" -h "$object")
  if echo "$sections" | grep -E '[.](init_array|preinit_array|ctors)'; then
    echo "$object has static initializers" >&2
    failed=1
  fi
done
test $failed = 0 && echo "$# objects, no static initializers"

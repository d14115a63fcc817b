#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# old_cpus.sh BUILD: the built library on x86 CPUs that lack what the machine at hand has, emulated: it must choose the
# right level, and give the recorded bits. (An instruction above the level would end the program.)
set -eu
build=$1
failed=0
for pair in qemu64:scalar,sse2 core2duo:ssse3 Nehalem:ssse3 Westmere:sse4 Haswell:avx2; do
  cpu=${pair%%:*} wanted=${pair#*:}
  run() { qemu-x86_64 -cpu "$cpu" "$@" 2>"$build/old_cpus.err"; }
  isa=$(run "$build/cli/truenorm" info --json | sed -n 's/.*"isa": *"\([a-z0-9_]*\)".*/\1/p')
  case ",$wanted," in
    *",$isa,"*) echo "$cpu: $isa" ;;
    *) cat "$build/old_cpus.err" >&2
       echo "$cpu: chose '$isa', expected $wanted" >&2
       failed=1
       continue ;;
  esac
  for test in isa_test bits_test; do
    if ! run "$build/tests/$test" --gtest_brief=1 >"$build/old_cpus.out"; then
      cat "$build/old_cpus.out" "$build/old_cpus.err" >&2
      echo "$cpu: $test failed" >&2
      failed=1
    fi
  done
done
exit $failed

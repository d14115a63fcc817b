#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fuzzes the readers of files with libFuzzer:  tests/fuzz/run.sh [SECONDS, shared by the readers; 60]
# FUZZ_BUILD is the folder for programs and what the fuzzer finds (build/fuzz), CXX the Clang.
set -eu
seconds=${1:-60}
cd "$(dirname "$0")/../.."
build=${FUZZ_BUILD:-build/fuzz}
mkdir -p "$build"
cxx=${CXX:-clang++-16}
if command -v ccache >/dev/null; then cxx="ccache $cxx"; fi
flags="-std=c++20 -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -Iinclude -Icli -Itests/fuzz"

objects=
for source in cli/array_header cli/array_reader cli/byte_source cli/bytes cli/container cli/file_bytes cli/npy cli/npy_header \
              cli/numbers cli/other_format cli/output_file cli/rows cli/safetensors cli/signals cli/zip_archive tests/fuzz/dtypes; do
  object=$build/$(basename $source).o
  $cxx $flags -c $source.cpp -o "$object"
  objects="$objects $object"
done

readers="npy npz safetensors"
for reader in $readers; do
  $cxx $flags -c tests/fuzz/${reader}_fuzz.cpp -o "$build/${reader}_fuzz.o"
  ${CXX:-clang++-16} -fsanitize=fuzzer,address,undefined "$build/${reader}_fuzz.o" $objects -lminizip -lz -o "$build/${reader}_fuzz"
done
for reader in $readers; do
  echo "fuzzing the reader of $reader for $((seconds / 3)) s"
  mkdir -p "$build/found_$reader"
  # Found inputs go to the first folder; a crash ends the run with its input beside it.
  if ! "$build/${reader}_fuzz" -max_total_time=$((seconds / 3)) -max_len=4096 -rss_limit_mb=512 -timeout=60 -verbosity=0 \
       -print_final_stats=1 -artifact_prefix="$build/crash_${reader}_" "$build/found_$reader" \
       "tests/fuzz/corpus/$reader" >"$build/$reader.log" 2>&1; then
    tail -n 40 "$build/$reader.log" >&2
    echo "the reader of $reader failed; the input is $build/crash_${reader}_*" >&2
    exit 1
  fi
  grep -E 'number_of_executed_units|average_exec' "$build/$reader.log"
done

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# highway_fetched.sh TREE: the two ways to a Highway that is not installed. TRUENORM_HIGHWAY_SOURCE names a tree; else
# FetchContent gets one, here from TREE. Both must compile against TREE and nothing else. The portable level alone, not
# optimized: what the code does is tested elsewhere.
set -eu
tree=$(cd "$1" && pwd)
without=HWY_AVX3_DL+HWY_AVX3+HWY_AVX2+HWY_SSE4+HWY_SSSE3+HWY_SSE2
try() {
  name=$1
  shift
  echo "-- $*"
  cmake -S . -B "build/$name" --log-level=WARNING -DCMAKE_BUILD_TYPE=Debug -DTRUENORM_BUILD_TESTS=OFF \
    -DTRUENORM_BUILD_CLI=OFF -DCMAKE_CXX_FLAGS=-DTRUENORM_WITHOUT="$without" "$@"
  used=$(grep -rhoE -- '-isystem [^ ]+' "build/$name/build.ninja" | sort -u)
  test "$used" = "-isystem $tree" || { echo "compiled against: $used; expected $tree" >&2; exit 1; }
  cmake --build "build/$name"
  "${OBJDUMP:-objdump}" -T "build/$name/src/libtruenorm.so" | grep -q truenorm_layer_norm_forward
}
try highway_source -DTRUENORM_HIGHWAY_SOURCE="$tree"
try highway_fetch -DTRUENORM_HIGHWAY_FETCH=ON -DFETCHCONTENT_SOURCE_DIR_HIGHWAY="$tree"
# A tree without Highway is refused by name.
if cmake -S . -B build/highway_none -DTRUENORM_HIGHWAY_SOURCE="$PWD/docs" >build/highway_none.txt 2>&1; then
  echo "a folder without Highway was accepted" >&2
  exit 1
fi
grep -q "docs has no hwy/highway.h" build/highway_none.txt

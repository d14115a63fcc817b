#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# highway_fetched.sh TREE: the two ways to a Highway that is not installed. TRUENORM_HIGHWAY_SOURCE names a tree; else
# FetchContent gets one, here from TREE. Both must compile against TREE and nothing else.
set -eu
tree=$(cd "$1" && pwd)
try() {
  name=$1
  shift
  echo "-- $*"
  cmake -S . -B "build/$name" --log-level=WARNING -DCMAKE_BUILD_TYPE=Release -DTRUENORM_BUILD_TESTS=OFF \
    -DTRUENORM_BUILD_CLI=OFF -DTRUENORM_WERROR=ON "$@"
  used=$(cmake --build "build/$name" --target help >/dev/null; grep -rhoE -- '-isystem [^ ]+' "build/$name/build.ninja" | sort -u)
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

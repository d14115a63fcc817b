#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# highway_tree.sh FOLDER: a Highway source tree as one that was downloaded, made from the installed headers. Builds that
# must not look into /usr/include (another architecture's) use it too.
set -eu
folder=$1
found=$(echo '#include <hwy/highway.h>' | c++ -std=c++20 -M -x c++ - | tr ' ' '\n' | sed -n 's|/hwy/highway[.]h$||p' | head -1)
test -n "$found" || { echo "no hwy/highway.h is installed" >&2; exit 1; }
rm -rf "$folder"
mkdir -p "$folder"
cp -RL "$found/hwy" "$folder/hwy"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs a build into a temporary folder and builds programs against it, as a user would:
#   run.sh CMAKE SOURCE_TREE BUILD_TREE WORK_FOLDER
# Exit 77 (skipped) when the build does not install.
set -eu
cmake=$1 source=$2 build=$3 work=$4
here=$(cd "$(dirname "$0")" && pwd)
prefix="$work/prefix with a space"

say() { printf '\n== %s\n' "$*"; }

rm -rf "$work"
mkdir -p "$work"

if ! [ -f "$build/cmake_install.cmake" ] || ! grep -q TRUENORM_INSTALL:BOOL=ON "$build/CMakeCache.txt"; then
  echo "this build does not install (TRUENORM_INSTALL is off)"
  exit 77
fi

say "install"
"$cmake" --install "$build" --prefix "$prefix" >"$work/install.log"
lib=$(dirname "$(find "$prefix" -name 'libtruenorm.*' | head -n 1)")
for file in include/truenorm/truenorm.h; do
  [ -f "$prefix/$file" ] || { echo "not installed: $file"; exit 1; }
done

say "find_package"
"$cmake" -S "$here/installed" -B "$work/find_package" -DCMAKE_PREFIX_PATH="$prefix" >"$work/find_package.log"
"$cmake" --build "$work/find_package" >>"$work/find_package.log"
"$work/find_package/consumer_cpp"
"$work/find_package/consumer_c"

say "pkg-config"
if command -v pkg-config >/dev/null; then
  PKG_CONFIG_PATH="$lib/pkgconfig:$prefix/share/pkgconfig"
  export PKG_CONFIG_PATH
  # A path with a space does not survive $(pkg-config ...), so the C program is built through a link without one.
  ln -s "$prefix" "$work/prefix"
  lib_link="$work/prefix/${lib#"$prefix"/}"
  version=$(pkg-config --modversion truenorm)
  flags=$(pkg-config --define-variable=prefix="$work/prefix" --cflags --libs truenorm)
  # shellcheck disable=SC2086  # flags are words
  ${CC:-cc} -std=c99 -Wall -Wextra -Werror "$here/main.c" $flags -o "$work/pkg_config_c"
  # shellcheck disable=SC2086
  ${CXX:-c++} -std=c++11 -Wall -Wextra "$here/main.cpp" $flags -o "$work/pkg_config_cpp"
  LD_LIBRARY_PATH="$lib_link" "$work/pkg_config_c" | grep -F "truenorm $version:"
  LD_LIBRARY_PATH="$lib_link" "$work/pkg_config_cpp" | grep -F "truenorm $version:"
else
  echo "pkg-config is not installed: left out"
fi

say "add_subdirectory"
"$cmake" -S "$here/subdirectory" -B "$work/subdirectory" -DTRUENORM_SOURCE="$source" >"$work/subdirectory.log"
"$cmake" --build "$work/subdirectory" -j 2 >>"$work/subdirectory.log"
"$work/subdirectory/consumer_cpp"
"$work/subdirectory/consumer_c"

say "exported symbols"
shared=$(find "$prefix" -name 'libtruenorm.so' | head -n 1)
if [ -n "$shared" ]; then
  # Nothing but the interface is visible: no C++ symbol, no symbol of Highway.
  others=$(nm -D --defined-only "$shared" | awk '{ print $NF }' | sed 's/@.*//' | grep -v '^truenorm_' || true)
  if [ -n "$others" ]; then
    echo "symbols that do not belong to the interface:"
    echo "$others"
    exit 1
  fi
  # Everything that the header declares is there.
  grep -o 'truenorm_[a-z_]*(' "$prefix/include/truenorm/truenorm.h" | tr -d '(' | sort -u >"$work/declared"
  nm -D --defined-only "$shared" | awk '{ print $NF }' | sed 's/@.*//' | sort -u >"$work/defined"
  grep -o 'TRUENORM_API [^(]*truenorm_[a-z_]*(' "$prefix/include/truenorm/truenorm.h" | grep -o 'truenorm_[a-z_]*($' | tr -d '(' |
    while read -r name; do
      grep -qx "$name" "$work/defined" || { echo "declared but not exported: $name"; exit 1; }
    done
fi
echo "all consumers work"

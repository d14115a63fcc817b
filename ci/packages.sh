#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every package of the system that a job needs, and its installation.
#   packages.sh list GROUP...       prints the names of Debian's packages
#   packages.sh require GROUP...    installs what is missing; where it cannot, says what is missing and fails
# Python packages: pyproject.toml (the package), tests/python/requirements.txt (its tests).
set -eu

# group, Debian 12's package, what shows that it is there: a command, a header, or a module of Python.
packages='
build  g++                    command c++
build  cmake                  command cmake
build  ninja-build            command ninja
build  libhwy-dev             header  hwy/highway.h
cli    libcli11-dev           header  CLI/CLI.hpp
cli    nlohmann-json3-dev     header  nlohmann/json.hpp
cli    zlib1g-dev             header  zlib.h
cli    libminizip-dev         header  minizip/unzip.h
test   libgtest-dev           header  gtest/gtest.h
test   libmpfr-dev            header  mpfr.h
test   ccache                 command ccache
test   pkg-config             command pkg-config
python python3                command python3
python python3-venv           module  ensurepip
python python3-dev            python_header Python.h
bench  libbenchmark-dev       header  benchmark/benchmark.h
bench  libdnnl-dev            header  oneapi/dnnl/dnnl.hpp
ci     fish                   command fish
ci     zsh                    command zsh
ci     clang-16               command clang++-16
ci     libclang-rt-16-dev     file    /usr/lib/llvm-16/lib/clang/16/include/fuzzer
ci     g++-aarch64-linux-gnu  command aarch64-linux-gnu-g++
ci     googletest             file    /usr/src/googletest/CMakeLists.txt
ci     qemu-user              command qemu-aarch64
ci     valgrind               header  valgrind/callgrind.h
'
python=${PYTHON:-python3}

is_there() {
  case $1 in
    command) command -v "$2" >/dev/null ;;
    header) printf '#if !__has_include(<%s>)\n#error\n#endif\n' "$2" | c++ -E -x c++ - >/dev/null 2>&1 ;;
    file) test -e "$2" ;;
    module) "$python" -c "import $2" 2>/dev/null ;;
    python_header)
      "$python" -c "import os, sysconfig; os.stat(os.path.join(sysconfig.get_path('include'), '$2'))" 2>/dev/null ;;
  esac
}

# names_of GROUP...: all packages of these groups. missing_of GROUP...: those that are not there.
names_of() { for_each echo_name "$@"; }
missing_of() { for_each echo_missing "$@"; }
for_each() {
  action=$1
  shift
  echo "$packages" | while read -r group name kind what; do
    case " $* " in *" $group "*) "$action" "$name" "$kind" "$what" ;; esac
  done
}
echo_name() { echo "$1"; }
echo_missing() { is_there "$2" "$3" || echo "$1"; }

# The shell's word splitting makes one line of them.
one_line() { echo $*; }

install() {
  log=$(mktemp)
  echo "Installing Debian packages: $*"
  # A source that cannot be reached matters only if a package is to come from it.
  if ! { apt-get update -qq || true
         DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
           -o DPkg::Lock::Timeout=300 "$@"; } >"$log" 2>&1 </dev/null; then
    tail -n 20 "$log" >&2
    echo "apt-get could not install: $*" >&2
    rm -f "$log"
    exit 1
  fi
  rm -f "$log"
}

cannot_install() {
  echo "These packages are missing (Debian's names): $*" >&2
  if command -v apt-get >/dev/null; then
    echo "As root:  apt-get install --no-install-recommends $*" >&2
  else
    echo "This system has no apt-get: install what corresponds to them, then run the command again." >&2
  fi
  exit 1
}

command=${1:-}
test $# -gt 0 && shift
case $command in
  list) names_of "$@" ;;
  require)
    missing=$(one_line $(missing_of "$@"))
    test -n "$missing" || exit 0
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then cannot_install $missing; fi
    install $missing
    missing=$(one_line $(missing_of "$@"))
    test -z "$missing" || { echo "Installed, but still not found: $missing" >&2; exit 1; } ;;
  *)
    echo "usage: packages.sh list|require GROUP...   (groups: build cli test python bench ci)" >&2
    exit 2 ;;
esac

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# instructions.sh OBJECT...: in x86-64 objects, every function keeps to the instruction set of its namespace, and
# functions of no instruction set to SSE2, which every x86-64 CPU has. This finds what Highway's pragmas cannot prevent:
# an inline function of the standard library, say, that was compiled for AVX and that the linker then uses everywhere.
set -eu
: "${OBJDUMP:=objdump}"
test $# -gt 0 || { echo "no objects" >&2; exit 1; }
"$OBJDUMP" -d --no-show-raw-insn -w "$@" | LC_ALL=C awk '
  # A function: "0000 <its name>:". Levels by the namespace in it, written N_LEVEL with its length before it.
  /^[0-9a-f]+ <.*>:$/ {
    name = $2
    level = name ~ /[0-9]N_(AVX2|AVX3[A-Z0-9_]*)/ ? 4 : name ~ /[0-9]N_SSE4/ ? 3 : name ~ /[0-9]N_SSSE3/ ? 2 : 0
    functions[level]++
    next
  }
  $1 !~ /^[0-9a-f]+:$/ { next }
  {
    i = $2
    needs = 0
    # VEX and EVEX code, masks, and the BMI and FMA families.
    if (i ~ /^(v[a-z]|k(mov|and|or|not|xor|test|shift|unpck|add)|(mulx|rorx|sarx|shlx|shrx|andn|bextr|blsi|blsr|blsmsk|bzhi|pdep|pext|lzcnt|tzcnt)[lq]?$)/) needs = 4
    else if (i ~ /^(pmulld|pmuldq|pminu[wd]|pmins[bd]|pmaxu[wd]|pmaxs[bd]|pblend|blendv?p|round[ps]|ptest|pmovzx|pmovsx|packusdw|pcmpeqq|pcmpgtq|pcmpistr|pcmpestr|pinsr[bdq]|pextr[bdq]|extractps|insertps|dpp[sd]|mpsadbw|phminpos|movntdqa|aes|pclmul|crc32)/) needs = 3
    else if (i ~ /^(pshufb|palignr|pabs|psign|phadd|phsub|pmulhrsw|pmaddubsw|haddp|hsubp|addsub|lddqu|movddup|movs[hl]dup)/) needs = 2
    if (needs > level) {
      if (bad++ < 20) print name " has " $0
    }
    instructions++
  }
  END {
    printf "%d instructions; functions: %d of AVX levels, %d of SSE4, %d of SSSE3, %d others\n",
           instructions, functions[4], functions[3], functions[2], functions[0]
    if (!functions[4] || !functions[3] || !functions[0]) { print "levels are missing: the names were not understood"; exit 1 }
    if (bad) { print bad " instructions above the level of their function"; exit 1 }
  }'

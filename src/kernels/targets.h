// Which instruction sets are built. Included before Highway by every file that is compiled once per target.
#pragma once

// Every level down to the portable one, so that the library runs, and can be forced to run, on any machine.
#define HWY_COMPILE_ALL_ATTAINABLE 1
#define HWY_WANT_AVX3_DL 1

// One portable level whatever the compiler: one lane at a time. Highway's other one (128 bits emulated by arrays, broken in
// GCC before 12.3) saturates where the conversion to float32 must overflow to infinity.
#define HWY_BROKEN_EMU128 1

// TRUENORM_WITHOUT leaves levels out, for quicker builds: -DTRUENORM_WITHOUT=HWY_SSSE3+HWY_SSE4.
#ifndef TRUENORM_WITHOUT
#define TRUENORM_WITHOUT 0
#endif

// No others than these. Vectors whose length is unknown at compile time cannot be held in arrays: SVE machines run the
// NEON kernels, RISC-V the portable ones. What newer Highways have above AVX3_DL adds no instruction of use here. Where
// they split NEON by its AES instructions, the level without them is the one.
#define HWY_DISABLED_TARGETS                                                                                  \
  (~(HWY_AVX3_DL | HWY_AVX3 | HWY_AVX2 | HWY_SSE4 | HWY_SSSE3 | HWY_SSE2 |                                    \
     (HWY_NEON_WITHOUT_AES ? HWY_NEON_WITHOUT_AES : HWY_NEON) | HWY_SCALAR) | (TRUENORM_WITHOUT))

#if defined(__aarch64__)
// No choice of ARM levels at run time: Highway then compiles NEON without pragmas, which implicit constructors escape.
#define TOOLCHAIN_MISS_SYS_AUXV_H
#endif

#include "hwy/detect_targets.h"
// Levels that Highway 1.0.3 does not have.
#ifndef HWY_SSE2
#define HWY_SSE2 0
#endif
#ifndef HWY_NEON_WITHOUT_AES
#define HWY_NEON_WITHOUT_AES 0
#endif

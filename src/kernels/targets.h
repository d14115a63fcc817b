// Which instruction sets are built. Included before Highway by every file that is compiled once per target.
#pragma once

// Levels that Highway leaves out unless asked for.
#define HWY_WANT_SSSE3 1
#define HWY_WANT_SSE4 1
#define HWY_WANT_AVX3_DL 1

// Vectors whose length is unknown at compile time cannot be held in arrays: SVE machines run the NEON kernels, RISC-V
// the portable ones.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif

// TRUENORM_LIST_TARGETS(kName): the tables of one type, best instruction set first.
#pragma once

#if HWY_TARGETS & HWY_AVX3_DL
#define TRUENORM_LIST_AVX3_DL &N_AVX3_DL::kTable,
#else
#define TRUENORM_LIST_AVX3_DL
#endif
#if HWY_TARGETS & HWY_AVX3
#define TRUENORM_LIST_AVX3 &N_AVX3::kTable,
#else
#define TRUENORM_LIST_AVX3
#endif
#if HWY_TARGETS & HWY_AVX2
#define TRUENORM_LIST_AVX2 &N_AVX2::kTable,
#else
#define TRUENORM_LIST_AVX2
#endif
#if HWY_TARGETS & HWY_SSE4
#define TRUENORM_LIST_SSE4 &N_SSE4::kTable,
#else
#define TRUENORM_LIST_SSE4
#endif
#if HWY_TARGETS & HWY_SSSE3
#define TRUENORM_LIST_SSSE3 &N_SSSE3::kTable,
#else
#define TRUENORM_LIST_SSSE3
#endif
#if HWY_TARGETS & HWY_SSE2
#define TRUENORM_LIST_SSE2 &N_SSE2::kTable,
#else
#define TRUENORM_LIST_SSE2
#endif
#if HWY_TARGETS & HWY_NEON
#define TRUENORM_LIST_NEON &N_NEON::kTable,
#elif HWY_TARGETS & HWY_NEON_WITHOUT_AES
#define TRUENORM_LIST_NEON &N_NEON_WITHOUT_AES::kTable,
#else
#define TRUENORM_LIST_NEON
#endif
#if HWY_TARGETS & HWY_SCALAR
#define TRUENORM_LIST_SCALAR &N_SCALAR::kTable,
#else
#define TRUENORM_LIST_SCALAR
#endif

#define TRUENORM_LIST_TARGETS(NAME)                                                                         \
  namespace truenorm {                                                                                      \
  constinit const TypeKernels* const NAME[] = {                                                             \
      TRUENORM_LIST_AVX3_DL TRUENORM_LIST_AVX3 TRUENORM_LIST_AVX2 TRUENORM_LIST_SSE4 TRUENORM_LIST_SSSE3     \
          TRUENORM_LIST_SSE2 TRUENORM_LIST_NEON TRUENORM_LIST_SCALAR nullptr};                              \
  }

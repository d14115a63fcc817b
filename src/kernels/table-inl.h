// The table of the kernels for rows of TRUENORM_TYPE. A file per type defines that name, includes this once per target,
// and lists the targets with TRUENORM_LIST_TARGETS.
#if defined(TRUENORM_TABLE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_TABLE_INL_H_
#undef TRUENORM_TABLE_INL_H_
#else
#define TRUENORM_TABLE_INL_H_
#endif

#include "backward-inl.h"
#include "forward-inl.h"
#include "kernels.h"
#include "long_row-inl.h"
#include "short_rows-inl.h"
#include "totals-inl.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {
namespace {  // one table per type: each file has its own

constexpr const char* kName =
#if HWY_TARGET == HWY_AVX3_DL
    "avx3_dl";
#elif HWY_TARGET == HWY_AVX3
    "avx3";
#elif HWY_TARGET == HWY_AVX2
    "avx2";
#elif HWY_TARGET == HWY_SSE4
    "sse4";
#elif HWY_TARGET == HWY_SSSE3
    "ssse3";
#elif HWY_TARGET == HWY_SSE2
    "sse2";
#elif HWY_TARGET == HWY_NEON || HWY_TARGET == HWY_NEON_WITHOUT_AES
    "neon";
#elif HWY_TARGET == HWY_SCALAR
    "scalar";
#else
#error "Name this target here and in list_targets.h, and give its CPU test in dispatch.cpp"
#endif

template <class T, class C = Compute<T>, class L = LongRowOf<T>>
constexpr TypeKernels make_table() {
  return {
      kName,
      {forward_rows<T, T>, forward_rows<T, C>},
      {{backward_rows<T, T, T>, backward_rows<T, T, C>}, {backward_rows<T, C, T>, backward_rows<T, C, C>}},
      {backward_sums<T, T>, backward_sums<T, C>},
      {{backward_columns<T, T, T>, backward_columns<T, T, C>}, {backward_columns<T, C, T>, backward_columns<T, C, C>}},
      merge_totals,
      round_totals,
      {{L::template begin_forward<T>, L::template begin_forward<C>}, L::begin_backward, {L::template sums<T>, L::template sums<C>}, L::advance, L::store_statistics,
       {L::template finish<T>, L::template finish<C>}},
  };
}

// Constant-initialized: nothing of an instruction set runs when the library is loaded.
constinit const TypeKernels kTable = make_table<TRUENORM_TYPE>();

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_TABLE_INL_H_

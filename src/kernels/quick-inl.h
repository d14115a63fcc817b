// y of bfloat16 rows in bfloat16, from the float32 sums of quick_sums-inl.h. Elements go in pairs here, too.
#if defined(TRUENORM_QUICK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_QUICK_INL_H_
#undef TRUENORM_QUICK_INL_H_
#else
#define TRUENORM_QUICK_INL_H_
#endif

#include <type_traits>

#include "forward-inl.h"
#include "lanes-inl.h"
#include "memory-inl.h"
#include "pairs-inl.h"
#include "quick_sums-inl.h"
#include "types.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {

// x and y for which rows are finished from these sums.
template <class T, class O>
inline constexpr bool kIsQuick = kHasQuickSums<T> && std::is_same_v<T, O>;

// ---------------------------------------------------------------- the formula, for 32 features of one row
struct QuickFinish {
  float r, b;
  HWY_INLINE explicit QuickFinish(const QuickRow& row) : r(row.r), b(row.b) {}
  HWY_INLINE QuickFinish(const NarrowBatch& batch, size_t k) : r(batch.r[k]), b(batch.b[k]) {}
  template <size_t kN>
  HWY_INLINE F32s<kN> operator()(const F32s<kN>& x, const F32s<kN>& gamma, const F32s<kN>& beta) const {
    return fma(fma(x, fill<kN>(r), fill<kN>(b)), gamma, beta);
  }
  HWY_INLINE F32x32 operator()(const F32x32& x, const F32x32& gamma, const F32x32& beta) const {
    return {(*this)(x.even, gamma.even, beta.even), (*this)(x.odd, gamma.odd, beta.odd)};
  }
};

// Parameters as pairs want them: of each 32, the 16 even ones and then the odd ones.
HWY_INLINE F32x32 load_split(const float* HWY_RESTRICT p) { return {load(p), load(p + kLanes)}; }
HWY_INLINE void split(const float* HWY_RESTRICT from, float* HWY_RESTRICT to, size_t n) {
  size_t i = 0;
  for (; i + kPairLanes <= n; i += kPairLanes)
    for (size_t k = 0; k < kLanes; ++k) {
      to[i + k] = from[i + 2 * k];
      to[i + kLanes + k] = from[i + 2 * k + 1];
    }
  if (i == n) return;
  for (size_t k = 0; k < kPairLanes; ++k) to[i + k] = 0.0f;
  for (size_t k = 0; i + k < n; ++k) to[i + k / 2 + (k % 2) * kLanes] = from[i + k];
}
struct SplitParameters {  // of a short row
  HWY_ALIGN float gamma[kShortColumns], beta[kShortColumns];
  HWY_INLINE void set(const float* gamma_from, const float* beta_from, size_t n) {
    split(gamma_from, gamma, n);
    split(beta_from, beta, n);
  }
};

// gamma and beta finite, and split.
template <bool kStream>
HWY_INLINE void quick_block(const QuickFinish& finish, const BFloat16* x, BFloat16* y, const float* HWY_RESTRICT gamma,
                            const float* HWY_RESTRICT beta, size_t n) {
  size_t i = 0;
  for (; i + kPairLanes <= n; i += kPairLanes)
    put<kStream>(finish(load_pairs(x + i), load_split(gamma + i), load_split(beta + i)), y + i);
  if (i < n)
    store_pairs_n(finish(load_pairs_n(x + i, n - i), load_split(gamma + i), load_split(beta + i)), y + i, n - i);
}

}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_QUICK_INL_H_

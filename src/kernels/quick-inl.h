// bfloat16 rows with y in bfloat16, whose 8 bits leave room for sums in float32: a third of the arithmetic of float64 sums.
// Elements go in pairs, even and odd ones apart, so that no lane is moved: 32 to a vector of AVX-512.
#if defined(TRUENORM_QUICK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_QUICK_INL_H_
#undef TRUENORM_QUICK_INL_H_
#else
#define TRUENORM_QUICK_INL_H_
#endif

#include "forward-inl.h"
#include "lanes-inl.h"
#include "memory-inl.h"
#include "pairs-inl.h"
#include "stats-inl.h"
#include "types.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {

HWY_INLINE F32x32 canonical(const F32x32& x) { return {canonical(x.even), canonical(x.odd)}; }

// x and y for which this holds. Decided by types, so that nothing else changes a bit.
template <class T, class O>
inline constexpr bool kIsQuick = false;
template <>
inline constexpr bool kIsQuick<BFloat16, BFloat16> = true;
// And rows: folding 32 lanes is most of the work of shorter ones.
constexpr int64_t kLeastQuick = 64;

// ---------------------------------------------------------------- sums of x and x*x in 32 lanes of float32
struct QuickSums {
  F32x16 s_even, s_odd, q_even, q_odd;
  HWY_INLINE QuickSums() : s_even(fill(0.0f)), s_odd(s_even), q_even(s_even), q_odd(s_even) {}
  HWY_INLINE void add(const F32x32& x) {
    s_even = s_even + x.even;
    s_odd = s_odd + x.odd;
    q_even = fma(x.even, x.even, q_even);
    q_odd = fma(x.odd, x.odd, q_odd);
  }
  HWY_INLINE Partial partial() const { return {eight(s_even + s_odd), eight(q_even + q_odd)}; }

 private:
  // Lanes j + 8 folded in float32, the rest in float64 as far as whole vectors go.
  static HWY_INLINE VF64 eight(const F32x16& x) {
#if HWY_CAP_GE512
    const hn::Half<F32> half;
    return hn::PromoteTo(F64(), hn::Add(hn::LowerHalf(half, x.v[0]), hn::UpperHalf(half, x.v[0])));
#else
    F32x16 sum = x;
    TRUENORM_UNROLL
    for (size_t i = 0; i < kF32Vectors / 2; ++i) sum.v[i] = hn::Add(x.v[i], x.v[i + kF32Vectors / 2]);
    F64x16 wide = widen(sum);
    TRUENORM_UNROLL
    for (size_t count = kF64Vectors / 4; count > 0; count /= 2)
      TRUENORM_UNROLL
      for (size_t i = 0; i < count; ++i) wide.v[i] = hn::Add(wide.v[i], wide.v[i + count]);
    return wide.v[0];
#endif
  }
};
template <bool kAhead>
HWY_INLINE Partial quick_segment_sums(const BFloat16* HWY_RESTRICT x, size_t n, int64_t ahead) {
  QuickSums sums;
  size_t i = 0;
  for (; i + kPairLanes <= n; i += kPairLanes) {
    if constexpr (kAhead) prefetch(x + ahead + i);
    sums.add(load_pairs(x + i));
  }
  if (i < n) sums.add(load_pairs_n(x + i, n - i));
  return sums.partial();
}
HWY_INLINE Partial quick_segment_sums(const BFloat16* x, size_t n, int64_t ahead) {
  return ahead ? quick_segment_sums<true>(x, n, ahead) : quick_segment_sums<false>(x, n, 0);
}
HWY_INLINE Sums quick_sums(const BFloat16* HWY_RESTRICT x, int64_t n, int64_t ahead = 0) {
  Tree<Sums> tree;
  for (int64_t i = 0; i < n; i += kNarrowSegment) {
    tree.push(folded(quick_segment_sums(x + i, static_cast<size_t>(HWY_MIN(kNarrowSegment, n - i)), ahead)));
  }
  return tree.total();
}
HWY_INLINE QuickRow quick_row_from_sums(const Sums& sums, int64_t d, double eps) {
  NarrowBatch batch;
  batch.sum[0] = sums.a;
  batch.square_sum[0] = sums.b;
  batch.x0[0] = 0.0;
  scalars_from_sums<true>(1.0 / static_cast<double>(d), eps, 1, batch);
  return {batch.r[0], batch.b[0], (batch.plain & 1) != 0};
}

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
template <int64_t kCount>
struct SplitParameters {
  HWY_ALIGN float gamma[kCount], beta[kCount];
  HWY_INLINE void set(const float* gamma_from, const float* beta_from, size_t n) {
    split(gamma_from, gamma, n);
    split(beta_from, beta, n);
  }
};

// gamma and beta split.
template <bool kFinite, bool kStream>
HWY_INLINE void quick_block(const QuickFinish& finish, const BFloat16* x, BFloat16* y, const float* HWY_RESTRICT gamma,
                            const float* HWY_RESTRICT beta, size_t n) {
  size_t i = 0;
  for (; i + kPairLanes <= n; i += kPairLanes)
    put<kStream>(finished<kFinite>(finish(load_pairs(x + i), load_split(gamma + i), load_split(beta + i))), y + i);
  if (i < n)
    store_pairs_n(finished<kFinite>(finish(load_pairs_n(x + i, n - i), load_split(gamma + i), load_split(beta + i))), y + i, n - i);
}

inline HWY_NOINLINE void quick_row(const QuickRow& row, const BFloat16* x, BFloat16* y, const float* gamma, const float* beta,
                                   size_t n, bool finite, bool streams) {
  const QuickFinish finish(row);
  if (!finite) return quick_block<false, false>(finish, x, y, gamma, beta, n);
  if (streams && before_stream(y) == 0) return quick_block<true, true>(finish, x, y, gamma, beta, n);
  quick_block<true, false>(finish, x, y, gamma, beta, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_QUICK_INL_H_

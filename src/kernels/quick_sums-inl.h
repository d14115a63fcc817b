// The float32 sums of bfloat16 rows, whose 8 bits leave room for them: a third of the arithmetic of float64 sums. And the
// record of a row for backward, which they make where they are enough.
// Elements go in pairs, even and odd ones apart, so that no lane is moved: 32 to a vector of AVX-512.
#if defined(TRUENORM_QUICK_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_QUICK_SUMS_INL_H_
#undef TRUENORM_QUICK_SUMS_INL_H_
#else
#define TRUENORM_QUICK_SUMS_INL_H_
#endif

#include <type_traits>

#include "lanes-inl.h"
#include "memory-inl.h"
#include "pairs-inl.h"
#include "stats-inl.h"
#include "types.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {

// Which rows have them: decided by x's type and d, so that nothing else changes a bit. Folding 32 lanes is most of the work
// of shorter ones.
constexpr int64_t kLeastQuick = 64;
template <class T>
inline constexpr bool kHasQuickSums = std::is_same_v<T, BFloat16>;
template <class T>
constexpr bool has_quick_sums(int64_t d) {
  return kHasQuickSums<T> && d >= kLeastQuick;
}

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
// Quick rows whose sums are enough for the record, too: |mean| is below 0.77 standard deviations. Not made with the other
// scalars, which costs rows without records 1 to 2 percent.
template <class D>
HWY_INLINE uint32_t recorded_lanes(D f64, size_t k, const NarrowBatch& batch) {
  const auto q = hn::Load(f64, batch.square_sum + k);
  const auto M2 = hn::Sub(q, hn::Mul(hn::Load(f64, batch.sum + k), hn::Load(f64, batch.mean + k)));
  return bits_of(f64, hn::Le(q, hn::Mul(hn::Set(f64, 1.6), M2))) << k;
}
HWY_INLINE uint32_t recorded_rows(size_t rows, const NarrowBatch& batch) {
  uint32_t recorded = 0;
  size_t k = 0;
  for (; k + kF64Lanes <= rows; k += kF64Lanes) recorded |= recorded_lanes(F64(), k, batch);
  for (; k < rows; ++k) recorded |= recorded_lanes(hn::CappedTag<double, 1>(), k, batch);
  return recorded & batch.plain;
}
HWY_INLINE QuickRow quick_row_from_sums(const Sums& sums, double x0, int64_t d, double eps) {
  NarrowBatch batch;
  batch.sum[0] = sums.a;
  batch.square_sum[0] = sums.b;
  batch.x0[0] = x0;
  scalars_from_sums<true>(1.0 / static_cast<double>(d), eps, 1, batch);
  return {batch.r[0], batch.b[0], (batch.plain & 1) != 0, recorded_rows(1, batch) != 0, {batch.m[0], batch.rstd[0]}};
}
// Neither enough nor recorded: of other rows, too.
template <class T>
HWY_INLINE QuickRow quick_row_of(const T* x, int64_t d, double eps, int64_t ahead = 0) {
  if constexpr (kHasQuickSums<T>)
    if (has_quick_sums<T>(d)) return quick_row_from_sums(quick_sums(x, d, ahead), first_element(x), d, eps);
  return {};
}

// ---------------------------------------------------------------- the record of a row
template <class T>
HWY_NOINLINE auto record_of(const T* x, int64_t d, double eps) {
  if constexpr (kHasQuickSums<T>) {
    const QuickRow quick = quick_row_of(x, d, eps);
    if (quick.recorded) return quick.saved;
  }
  return to_saved(row_statistics(x, d, eps));
}

}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_QUICK_SUMS_INL_H_

// The statistics of a row: from its sums the scalars that finish it, and the record that backward reads.
#if defined(TRUENORM_STATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_STATS_INL_H_
#undef TRUENORM_STATS_INL_H_
#else
#define TRUENORM_STATS_INL_H_
#endif

#include <math.h>

#include "lanes-inl.h"
#include "sums-inl.h"
#include "types.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {

// ---------------------------------------------------------------- from sums to the scalars of float32 or half rows
// x_hat = fma(x - hi, r, b). (mean - hi) is exact. Its product with r is below 2^-22 for plain rows, so that rounding it
// costs under 2^-46. Returns mean - hi.
template <class D>
HWY_INLINE hn::Vec<D> plain_scalars(D f64, hn::Vec<D> mean, hn::Vec<D> rstd, float* hi_out, float* r_out, float* b_out) {
  const hn::Rebind<float, D> f32;
  const auto hi = hn::DemoteTo(f32, mean);
  const auto r = hn::DemoteTo(f32, rstd);
  const auto lo = hn::Sub(mean, hn::PromoteTo(f64, hi));
  hn::StoreU(hi, f32, hi_out);
  hn::StoreU(r, f32, r_out);
  hn::StoreU(hn::DemoteTo(f32, hn::Neg(hn::Mul(lo, hn::PromoteTo(f64, r)))), f32, b_out);
  return lo;
}

// x_hat = fma(x, r, b) of quick rows. Returns r.
template <class D>
HWY_INLINE hn::Vec<D> quick_scalars(D f64, hn::Vec<D> mean, hn::Vec<D> rstd, float* r_out, float* b_out) {
  const hn::Rebind<float, D> f32;
  const auto r = hn::DemoteTo(f32, rstd);
  const auto wide_r = hn::PromoteTo(f64, r);
  hn::StoreU(r, f32, r_out);
  hn::StoreU(hn::DemoteTo(f32, hn::Neg(hn::Mul(mean, wide_r))), f32, b_out);
  return wide_r;
}

template <class D>
HWY_INLINE uint32_t bits_of(D f64, hn::Mask<D> mask) {
  uint8_t bits[8] = {};
  hn::StoreMaskBits(f64, mask, bits);
  return bits[0] & ((1u << hn::MaxLanes(D())) - 1);
}
// Rows k, ... of a batch, one a lane. They are plain, or quick, when these sums were enough: |mean| below 3.9 standard
// deviations, or 2.6, nothing near float32's limits.
template <bool kQuick, class D>
HWY_INLINE void scalars_of_lanes(D f64, double inv_d, double eps, size_t k, NarrowBatch& batch) {
  const auto n = hn::Set(f64, inv_d);
  const auto s = hn::Load(f64, batch.sum + k), q = hn::Load(f64, batch.square_sum + k);
  const auto mean = hn::Mul(s, n);
  const auto M2 = hn::Sub(q, hn::Mul(s, mean));
  const auto var = hn::Mul(M2, n);
  const auto spread = hn::Add(var, hn::Set(f64, eps));
  const auto rstd = hn::Div(hn::Set(f64, 1.0), hn::Sqrt(spread));
  hn::Store(mean, f64, batch.mean + k);
  hn::Store(var, f64, batch.var + k);
  hn::Store(hn::Sub(mean, hn::Load(f64, batch.x0 + k)), f64, batch.m + k);
  if constexpr (kQuick) {
    hn::Store(quick_scalars(f64, mean, rstd, batch.r + k, batch.b + k), f64, batch.rstd + k);
  } else {
    hn::Store(rstd, f64, batch.rstd + k);
    plain_scalars(f64, mean, rstd, batch.hi + k, batch.r + k, batch.b + k);
  }
  const auto plain = hn::And(hn::Le(q, hn::Mul(hn::Set(f64, kQuick ? 8.0 : 16.0), M2)),
                             hn::And(hn::Ge(var, hn::Set(f64, 0x1p-100)), hn::Le(spread, hn::Set(f64, 0x1p100))));
  batch.plain |= bits_of(f64, plain) << k;
}
template <bool kQuick>
HWY_INLINE void scalars_from_sums(double inv_d, double eps, size_t rows, NarrowBatch& batch) {
  batch.plain = 0;
  size_t k = 0;
  for (; k + kF64Lanes <= rows; k += kF64Lanes) scalars_of_lanes<kQuick>(F64(), inv_d, eps, k, batch);
  for (; k < rows; ++k) scalars_of_lanes<kQuick>(hn::CappedTag<double, 1>(), inv_d, eps, k, batch);
}

HWY_INLINE NarrowRow plain_row(const NarrowBatch& batch, size_t k) {
  NarrowRow row;
  row.x0 = batch.x0[k];
  row.m = batch.m[k];
  row.rstd = batch.rstd[k];
  row.mean = batch.mean[k];
  row.var = batch.var[k];
  row.hi = batch.hi[k];
  row.r = batch.r[k];
  row.b = batch.b[k];
  row.kind = RowKind::Plain;
  return row;
}

// False when the row must be summed again, as an exact one.
HWY_INLINE bool narrow_row_from_sums(const Sums& raw, double x0, int64_t d, double eps, NarrowRow& row) {
  NarrowBatch batch;
  batch.sum[0] = raw.a;
  batch.square_sum[0] = raw.b;
  batch.x0[0] = x0;
  scalars_from_sums<false>(1.0 / static_cast<double>(d), eps, 1, batch);
  row = plain_row(batch, 0);
  return batch.plain & 1;
}
HWY_INLINE bool is_finite(double v) { return v - v == 0; }
// Exact rows: sums of c = x - hi, where hi is the mean rounded to float32. So c of a constant row is exactly 0, and of any
// other the variance is at least half of the mean of c*c: nothing cancels (docs/numerics.md).
HWY_INLINE float exact_shift(const Sums& raw, int64_t d) { return static_cast<float>(raw.a / static_cast<double>(d)); }
HWY_INLINE void narrow_row_from_centred(const Sums& sums, float hi, bool finite, double x0, int64_t d, double eps, NarrowRow& row) {
  const double n = static_cast<double>(d), shift = static_cast<double>(hi), lo = sums.a / n;
  const double M2 = sums.b - sums.a * lo;
  row.kind = RowKind::Exact;
  row.x0 = x0;
  row.m = (shift - x0) + lo;
  row.mean = shift + lo;
  row.var = (M2 < 0 ? 0.0 : M2) / n;
  row.rstd = 1.0 / sqrt(row.var + eps);
  if (!finite) row.m = row.mean = row.var = row.rstd = static_cast<double>(NAN);
}
template <class T>
HWY_NOINLINE NarrowRow exact_row(const T* HWY_RESTRICT x, int64_t d, double eps, const Sums& raw) {
  NarrowRow row;
  const bool finite = is_finite(raw.b);
  const float hi = finite ? exact_shift(raw, d) : 0.0f;
  narrow_row_from_centred(finite ? centred_sums(x, d, hi) : raw, hi, finite, first_element(x), d, eps, row);
  return row;
}

template <class T>
HWY_NOINLINE NarrowRow row_statistics(const T* HWY_RESTRICT x, int64_t d, double eps, int64_t ahead = 0) {
  NarrowRow row;
  const double x0 = first_element(x);
  const Sums raw = raw_sums(x, d, ahead);
  if (narrow_row_from_sums(raw, x0, d, eps, row)) return row;
  return exact_row(x, d, eps, raw);
}

// ---------------------------------------------------------------- the same for float64 rows
HWY_INLINE void wide_row_from_sums(const Sums& sums, int64_t d, double eps, WideRow& row) {
  row.lo = sums.a / static_cast<double>(d);
  const double t = sums.b - sums.a * row.lo;
  const double M2 = t < 0 ? 0.0 : t;
  const double var = M2 / static_cast<double>(d);
  const double unscale = (1.0 / row.post) / row.pre;
  row.mean = row.hi / row.pre;
  row.mean_lo = row.lo * unscale;
  row.var = (var * unscale) * unscale;
  if (row.kind == RowKind::Plain) {
    row.r = row.rstd = 1.0 / sqrt(var + eps);
  } else if (M2 == 0 || (row.post != 1.0 && eps >= 0x1p-900)) {  // eps rules; scaled, it could overflow or vanish
    row.rstd = 1.0 / sqrt(row.var + eps);
    row.r = M2 == 0 ? row.rstd : row.rstd * unscale;
  } else {
    row.r = 1.0 / sqrt(var + (eps / unscale) / unscale);
    row.rstd = row.r / unscale;
  }
  if (!(sums.b == sums.b)) row.mean = row.mean_lo = row.lo = row.var = row.r = row.rstd = static_cast<double>(NAN);
}

// Squares that could underflow or overflow (or did: NaN) are summed again, scaled; at most once.
HWY_INLINE bool wide_row_needs_scale(const Sums& sums, WideRow& row) {
  if (row.kind == RowKind::Exact || (sums.b >= 0x1p-800 && sums.b <= 0x1p800)) return false;
  row.kind = RowKind::Exact;
  (sums.b < 0x1p-800 ? row.post : row.pre) = sums.b < 0x1p-800 ? 0x1p600 : 0x1p-600;
  return true;
}

// A mean that is off by standard deviations, as it is in rows that are nearly constant, is corrected once.
HWY_INLINE bool wide_row_needs_mean(const Sums& sums, int64_t d, WideRow& row) {
  const double lo = sums.a / static_cast<double>(d);
  if (row.recentred || !(sums.b > 16.0 * (sums.b - sums.a * lo))) return false;
  row.recentred = true;
  row.hi += lo / row.post;
  return true;
}

// The mean comes first, so that the sums of x - mean lose nothing to it.
inline HWY_NOINLINE WideRow row_statistics(const double* HWY_RESTRICT x, int64_t d, double eps, int64_t ahead = 0) {
  WideRow row;
  const double n = static_cast<double>(d);
  row.x0 = x[0];
  row.kind = RowKind::Plain;
  row.recentred = false;
  row.pre = row.post = 1.0;
  row.hi = wide_sum(x, d, 1.0, ahead) / n;
  Sums sums = centred_sums(x, d, row);
  if (wide_row_needs_scale(sums, row)) {
    if (row.pre != 1.0) row.hi = wide_sum(x, d, row.pre) / n;
    sums = centred_sums(x, d, row);
  }
  if (wide_row_needs_mean(sums, d, row)) sums = centred_sums(x, d, row);
  wide_row_from_sums(sums, d, eps, row);
  return row;
}

// ---------------------------------------------------------------- the record that backward reads
HWY_INLINE NarrowSaved to_saved(const NarrowRow& row) {
  return {row.m, row.kind == RowKind::Plain ? row.rstd : -row.rstd};
}
HWY_INLINE WideSaved to_saved(const WideRow& row) { return {row.mean, row.mean_lo, row.rstd}; }

// Whether float32 sums may have made it. Of other records this holds by chance, and then costs the sums over the row.
HWY_INLINE bool may_be_quick(const NarrowSaved& saved) {
  return saved.rstd > 0 && static_cast<double>(static_cast<float>(saved.rstd)) == saved.rstd;
}
HWY_INLINE NarrowRow from_saved(const NarrowSaved& saved, double x0) {
  NarrowRow row;
  row.x0 = x0;
  row.m = saved.m;
  row.mean = row.x0 + row.m;
  row.rstd = saved.rstd;
  if (saved.rstd > 0) {
    const hn::CappedTag<double, 1> f64;
    plain_scalars(f64, hn::Set(f64, row.mean), hn::Set(f64, row.rstd), &row.hi, &row.r, &row.b);
    row.kind = RowKind::Plain;
  } else {
    row.kind = RowKind::Exact;
    row.rstd = -saved.rstd;
  }
  return row;
}
// Backward scales only against overflow of x - hi; below 2^-1022 it gives NaN.
HWY_INLINE WideRow from_saved(const WideSaved& saved, double x0) {
  WideRow row;
  row.x0 = x0;
  row.rstd = saved.rstd > 0x1p1022 ? static_cast<double>(NAN) : saved.rstd;
  row.kind = row.rstd < 0x1p-400 ? RowKind::Exact : RowKind::Plain;
  row.pre = row.kind == RowKind::Exact ? 0x1p-600 : 1.0;
  row.post = 1.0;
  row.hi = saved.hi * row.pre;
  row.lo = saved.lo * row.pre;
  row.r = row.rstd / row.pre;
  return row;
}

}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_STATS_INL_H_

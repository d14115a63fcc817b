// The statistics of a row: sums in the order of docs/numerics.md, and from them the scalars that finish the row.
#if defined(TRUENORM_STATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_STATS_INL_H_
#undef TRUENORM_STATS_INL_H_
#else
#define TRUENORM_STATS_INL_H_
#endif

#include <math.h>

#include "lanes-inl.h"
#include "types.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {

HWY_INLINE Sums merge(const Sums& l, const Sums& r) { return {l.a + r.a, l.b + r.b}; }

// Chan, Golub, LeVeque: Updating formulae and a pairwise algorithm for computing sample variances (1979).
HWY_INLINE Moments merge(const Moments& l, const Moments& r) {
  const double delta = r.m - l.m;
  const double n = l.n + r.n;
  return {n, l.m + delta * (r.n / n), (l.M2 + r.M2) + delta * delta * (l.n * r.n / n)};
}

// The binary tree over parts of equal length whose left child is the largest power of two of parts: parts are pushed in
// order, and equal subtrees merge at once. The stack holds one subtree per bit of the number of parts.
template <class Node>
class Tree {
 public:
  HWY_INLINE void push(const Node& part) {
    Node node = part;
    for (uint64_t bit = count_; bit & 1; bit >>= 1) node = merge(stack_[--height_], node);
    stack_[height_++] = node;
    ++count_;
  }
  HWY_INLINE Node total() const {
    Node node = stack_[height_ - 1];
    for (int i = height_ - 2; i >= 0; --i) node = merge(stack_[i], node);
    return node;
  }

 private:
  Node stack_[48];  // 2^48 segments are more than memory holds
  uint64_t count_ = 0;
  int height_ = 0;
};

// Sums of x and x*x of one segment, in float64, where both x and x*x are exact.
template <class T>
HWY_INLINE Sums segment_raw_sums(const T* HWY_RESTRICT x, size_t n) {
  F64x16 s = fill(0.0), q = fill(0.0);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const F64x16 v = load_f64(x + i);
    s = s + v;
    q = add_exact_product(v, v, q);
  }
  if (i < n) {
    const Tail<T> rest(x + i, n - i, T{});  // zeros add nothing: a sum that began at +0 is never -0
    const F64x16 v = load_f64(rest.values);
    s = s + v;
    q = add_exact_product(v, v, q);
  }
  return {fold(s), fold(q)};
}

// Moments of one segment, shifted by its own first element: safe for any mean.
template <class T>
HWY_INLINE Moments segment_moments(const T* HWY_RESTRICT x, size_t n, double x0) {
  const Tail<T> first(x, 1, x[0]);
  const F64x16 shift = load_f64(first.values);
  F64x16 s = fill(0.0), q = fill(0.0);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const F64x16 a = load_f64(x + i) - shift;
    s = s + a;
    q = q + a * a;
  }
  if (i < n) {
    const Tail<T> rest(x + i, n - i, x[0]);
    const F64x16 a = load_f64(rest.values) - shift;
    s = s + a;
    q = q + a * a;
  }
  const double count = static_cast<double>(n), sum = fold(s);
  const double m = sum / count;
  const double M2 = fold(q) - sum * m;
  const double shift_0 = hn::GetLane(shift.v[0]);
  return {count, (shift_0 - x0) + m, M2 < 0 ? 0.0 : M2};
}

// c = (x*pre - hi)*post of one segment of a float64 row: sums of c and c*c.
template <bool kScaled>
HWY_INLINE F64x16 centred(const F64x16& x, const WideRow& row) {
  if constexpr (kScaled) return (x * fill(row.pre) - fill(row.hi)) * fill(row.post);
  return x - fill(row.hi);
}
template <bool kScaled>
HWY_INLINE Sums segment_centred_sums(const double* HWY_RESTRICT x, size_t n, const WideRow& row) {
  F64x16 s = fill(0.0), q = fill(0.0);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const F64x16 c = centred<kScaled>(load(x + i), row);
    s = s + c;
    q = q + c * c;
  }
  if (i < n) {  // here the filling must be 0 after centring
    Tail<double> rest(x + i, n - i, 0.0);
    store(centred<kScaled>(load(rest.values), row), rest.values);
    const F64x16 c = load(Tail<double>(rest.values, n - i, 0.0).values);
    s = s + c;
    q = q + c * c;
  }
  return {fold(s), fold(q)};
}
HWY_INLINE Sums segment_wide_sums(const double* HWY_RESTRICT x, size_t n, double pre) {
  const F64x16 scale = fill(pre);
  F64x16 s = fill(0.0);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) s = s + load(x + i) * scale;
  if (i < n) s = s + load(Tail<double>(x + i, n - i, 0.0).values) * scale;
  return {fold(s), 0.0};
}

// Sums over n elements that start at a segment's beginning. Inputs of up to 2^k segments, or the end of a row, are
// subtrees of the row's tree: so threads may share a long row.
template <class T>
HWY_INLINE Sums raw_sums(const T* HWY_RESTRICT x, int64_t n) {
  if (n <= kNarrowSegment) return segment_raw_sums(x, static_cast<size_t>(n));
  Tree<Sums> tree;
  for (int64_t i = 0; i < n; i += kNarrowSegment)
    tree.push(segment_raw_sums(x + i, static_cast<size_t>(HWY_MIN(kNarrowSegment, n - i))));
  return tree.total();
}
template <class T>
HWY_INLINE Moments moments(const T* HWY_RESTRICT x, int64_t n, double x0) {
  Tree<Moments> tree;
  for (int64_t i = 0; i < n; i += kNarrowSegment)
    tree.push(segment_moments(x + i, static_cast<size_t>(HWY_MIN(kNarrowSegment, n - i)), x0));
  return tree.total();
}
HWY_INLINE double wide_sum(const double* HWY_RESTRICT x, int64_t n, double pre) {
  Tree<Sums> tree;
  for (int64_t i = 0; i < n; i += kWideSegment)
    tree.push(segment_wide_sums(x + i, static_cast<size_t>(HWY_MIN(kWideSegment, n - i)), pre));
  return tree.total().a;
}
HWY_INLINE Sums centred_sums(const double* HWY_RESTRICT x, int64_t n, const WideRow& row) {
  Tree<Sums> tree;
  const bool scaled = row.pre != 1.0 || row.post != 1.0;
  for (int64_t i = 0; i < n; i += kWideSegment) {
    const size_t count = static_cast<size_t>(HWY_MIN(kWideSegment, n - i));
    tree.push(scaled ? segment_centred_sums<true>(x + i, count, row) : segment_centred_sums<false>(x + i, count, row));
  }
  return tree.total();
}

template <class T>
HWY_INLINE double first_element(const T* x) {
  return hn::GetLane(load_f64(Tail<T>(x, 1, T{}).values).v[0]);
}

// ---------------------------------------------------------------- from sums to the scalars of a float32 or half row
HWY_INLINE void plain_scalars(NarrowRow& row) {
  row.kind = RowKind::Plain;
  row.hi = static_cast<float>(row.mean);
  row.r = static_cast<float>(row.rstd);
  // (mean - hi) is exact. Its product with r is below 2^-22 for plain rows, so that rounding it costs under 2^-46.
  row.b = static_cast<float>(-((row.mean - static_cast<double>(row.hi)) * static_cast<double>(row.r)));
}

// True when the plain sums were enough: |mean| below 3.9 standard deviations, and nothing near float32's limits.
HWY_INLINE bool narrow_row_from_sums(const Sums& raw, double x0, int64_t d, double eps, NarrowRow& row) {
  const double n = static_cast<double>(d);
  row.x0 = x0;
  row.mean = raw.a / n;
  const double M2 = raw.b - raw.a * row.mean;
  row.var = M2 / n;
  row.rstd = 1.0 / sqrt(row.var + eps);
  row.m = row.mean - x0;
  if (!(raw.b <= 16.0 * M2 && row.var >= 0x1p-100 && row.var + eps <= 0x1p100)) return false;
  plain_scalars(row);
  return true;
}
HWY_INLINE bool is_finite(double v) { return v - v == 0; }
HWY_INLINE void narrow_row_from_moments(const Moments& total, bool finite, double x0, int64_t d, double eps, NarrowRow& row) {
  row.kind = RowKind::Exact;
  row.x0 = x0;
  row.m = total.m;
  row.mean = x0 + total.m;
  row.var = total.M2 / static_cast<double>(d);
  row.rstd = 1.0 / sqrt(row.var + eps);
  if (!finite) row.m = row.mean = row.var = row.rstd = static_cast<double>(NAN);
}

template <class T>
HWY_INLINE NarrowRow row_statistics(const T* HWY_RESTRICT x, int64_t d, double eps) {
  NarrowRow row;
  const double x0 = first_element(x);
  const Sums raw = raw_sums(x, d);
  if (!narrow_row_from_sums(raw, x0, d, eps, row)) {
    const bool finite = is_finite(raw.b);
    narrow_row_from_moments(finite ? moments(x, d, x0) : Moments{}, finite, x0, d, eps, row);
  }
  return row;
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
HWY_INLINE WideRow row_statistics(const double* HWY_RESTRICT x, int64_t d, double eps) {
  WideRow row;
  const double n = static_cast<double>(d);
  row.x0 = x[0];
  row.kind = RowKind::Plain;
  row.recentred = false;
  row.pre = row.post = 1.0;
  row.hi = wide_sum(x, d, 1.0) / n;
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

HWY_INLINE NarrowRow from_saved(const NarrowSaved& saved, double x0) {
  NarrowRow row;
  row.x0 = x0;
  row.m = saved.m;
  row.mean = row.x0 + row.m;
  row.rstd = saved.rstd;
  if (saved.rstd > 0) {
    plain_scalars(row);
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

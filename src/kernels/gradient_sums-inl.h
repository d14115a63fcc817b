// The sums over a row that its gradient needs, A = mean(g) and B = mean(g * x_hat), and the scalars made of them.
#if defined(TRUENORM_GRADIENT_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_GRADIENT_SUMS_INL_H_
#undef TRUENORM_GRADIENT_SUMS_INL_H_
#else
#define TRUENORM_GRADIENT_SUMS_INL_H_
#endif

#include "gradient-inl.h"
#include "gradient_lanes-inl.h"
#include "kernels.h"
#include "lanes-inl.h"
#include "parameters-inl.h"
#include "quick_sums-inl.h"
#include "stats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {

struct GradSums {
  Sums sums;
  uint32_t sizes;  // of g, in plain rows
};
HWY_INLINE GradSums merge(const GradSums& l, const GradSums& r) {
  return {merge(l.sums, r.sums), l.sizes | r.sizes};
}

template <class Gradient, class T, class G>
HWY_INLINE GradSums segment_gradient_sums(const Gradient& gradient, const T* HWY_RESTRICT x, const G* HWY_RESTRICT dy,
                                          const Compute<T>* HWY_RESTRICT gamma, size_t n, const Ahead& ahead) {
  F64x16 a = fill(0.0), b = fill(0.0);
  size_t i = 0;
  if (ahead.any())
    for (; i + kLanes <= n; i += kLanes) {
      if (ahead.x) prefetch(x + ahead.x + i);
      if (ahead.dy) prefetch(dy + ahead.dy + i);
      gradient.sum(load(x + i), load(dy + i), load(gamma + i), a, b);
    }
  for (; i + kLanes <= n; i += kLanes) gradient.sum(load(x + i), load(dy + i), load(gamma + i), a, b);
  if (i < n) {
    // The filling has dy = 0, and an x of this row so that its x_hat is a number whenever the row's are: it adds 0.
    const Tail<T> x_rest(x + i, n - i, x[i]);
    gradient.sum(load(x_rest.values), load_n(dy + i, n - i), load_n(gamma + i, n - i), a, b);
  }
  return {{fold(a), fold(b)}, 0};
}

// By the row's kind.
template <class T, class G>
HWY_NOINLINE GradSums segment_sums(const NarrowGrad& grad, const T* x, const G* dy, const float* gamma, size_t n,
                                   const Ahead& ahead) {
  if (grad.row.kind == RowKind::Plain) {
    const PlainGradientSums sums = plain_segment_sums(grad, x, dy, gamma, n, ahead);
    return {folded(sums.partial), sizes_of(sums.g_bits)};
  }
  return segment_gradient_sums(ExactGradient(grad), x, dy, gamma, n, ahead);
}
inline HWY_NOINLINE GradSums segment_sums(const WideGrad& grad, const double* x, const double* dy, const double* gamma, size_t n,
                                   const Ahead& ahead) {
  if (grad.row.kind == RowKind::Plain) return segment_gradient_sums(WideGradient<false>(grad), x, dy, gamma, n, ahead);
  return segment_gradient_sums(WideGradient<true>(grad), x, dy, gamma, n, ahead);
}

// NaN and infinities in g make the whole row's dx NaN.
template <class Grad>
HWY_INLINE void set_means(const Sums& sums, double n, Grad& grad) {
  const bool finite = is_finite(sums.a) && is_finite(sums.b);
  grad.A = finite ? sums.a / n : static_cast<double>(NAN);
  grad.B = sums.b / n;
}

// From sums to scalars. What float32 could not hold well, is false here, and summed again as an exact row. Whatever overflowed
// before is seen in them.
template <class D>
HWY_INLINE auto plain_gradient_scalars(D f64, hn::Vec<D> a, hn::Vec<D> b, hn::Vec<D> lo, hn::Vec<D> rstd, double inv_d,
                                       float* minus_Ar, float* minus_Kr) {
  const hn::Rebind<float, D> f32;
  const auto inv = hn::Set(f64, inv_d), limit = hn::Set(f64, 0x1p127);
  const auto K = hn::Mul(hn::Mul(hn::Sub(b, hn::Mul(lo, a)), inv), hn::Mul(rstd, rstd));
  const auto Ar_wide = hn::Mul(hn::Sub(hn::Mul(a, inv), hn::Mul(lo, K)), rstd), Kr_wide = hn::Mul(K, rstd);
  hn::StoreU(hn::Neg(hn::DemoteTo(f32, Ar_wide)), f32, minus_Ar);
  hn::StoreU(hn::Neg(hn::DemoteTo(f32, Kr_wide)), f32, minus_Kr);
  const auto rstd_fits = hn::And(hn::Ge(rstd, hn::Set(f64, 0x1p-14)), hn::Le(rstd, hn::Set(f64, 0x1p20)));
  return hn::And(rstd_fits, hn::And(hn::Lt(hn::Abs(Ar_wide), limit), hn::Lt(hn::Abs(Kr_wide), limit)));
}
HWY_INLINE bool set_gradient(const GradSums& total, int64_t d, NarrowGrad& grad) {
  const double n = static_cast<double>(d);
  if (grad.row.kind == RowKind::Exact) {
    set_means(total.sums, n, grad);
    return true;
  }
  const hn::CappedTag<double, 1> f64;
  const auto fits = plain_gradient_scalars(f64, hn::Set(f64, total.sums.a), hn::Set(f64, total.sums.b),
                                           hn::Set(f64, grad.row.mean - static_cast<double>(grad.row.hi)), hn::Set(f64, grad.row.rstd),
                                           1.0 / n, &grad.minus_Ar, &grad.minus_Kr);
  if (sizes_fit(total.sizes) && hn::AllTrue(f64, fits)) return true;
  grad.row.kind = RowKind::Exact;
  return false;
}
HWY_INLINE bool set_gradient(const GradSums& total, int64_t d, WideGrad& grad) {
  set_means(total.sums, static_cast<double>(d), grad);
  return true;
}

template <class T>
struct GradOf {
  static constexpr int64_t kSegment = kNarrowSegment;
  static HWY_INLINE NarrowGrad& get(GradRow& row) { return row.narrow; }
  static HWY_INLINE const NarrowGrad& get(const GradRow& row) { return row.narrow; }
};
template <>
struct GradOf<double> {
  static constexpr int64_t kSegment = kWideSegment;
  static HWY_INLINE WideGrad& get(GradRow& row) { return row.wide; }
  static HWY_INLINE const WideGrad& get(const GradRow& row) { return row.wide; }
};

// A row as its gradient sees it, from its record. In longer rows than these the bound of dx is not proved for plain ones.
constexpr int64_t kMostPlain = int64_t{1} << 20;
HWY_INLINE NarrowRow gradient_row_of(const NarrowSaved& saved, double x0, int64_t d) {
  NarrowRow row = from_saved(saved, x0);
  if (d > kMostPlain) row.kind = RowKind::Exact;
  return row;
}
HWY_INLINE WideRow gradient_row_of(const WideSaved& saved, double x0, int64_t /*d*/) { return from_saved(saved, x0); }

// The record that forward made, where there is one that fits: dx of more than a half type is made from float64 sums.
template <class T, class Saved>
HWY_INLINE bool read_record(const BackwardTask& task, int64_t r, Saved& saved) {
  if (!task.saved) return false;
  memcpy(&saved, static_cast<const char*>(task.saved) + r * static_cast<int64_t>(sizeof(saved)), sizeof(saved));
  if constexpr (kHasQuickSums<T>)
    if (!task.half_dx && may_be_quick(saved)) return false;
  return true;
}
// The same from that, or from x.
template <class T>
HWY_INLINE auto backward_row(const BackwardTask& task, const T* x, int64_t r) {
  decltype(record_of(x, task.d, task.eps)) saved;
  if (!read_record<T>(task, r, saved))
    saved = task.half_dx ? record_of(x, task.d, task.eps) : to_saved(row_statistics(x, task.d, task.eps));
  return gradient_row_of(saved, first_element(x), task.d);
}

// Whether arithmetic takes longer than memory: dgamma and dbeta of half rows, and of float32 rows below AVX-512.
template <class T>
HWY_INLINE bool is_bound_by_arithmetic(const BackwardTask& task) {
  return task.dgamma && (sizeof(T) == 2 || kF32Vectors > 1);
}

// Rows whose sums and columns take turns. In the caches many: what is loaded once serves them all, and their scalars are made
// side by side (float32, 512 x 768: 36 GB/s with 8 rows, 33 with 2); dx alone has less to share, and fewer stay in L1. From
// memory few, so that sums, which wait for it, and columns, which do not, alternate quickly (65536 x 768: 28 GB/s with 2 rows, 19
// with 8; dx alone 37 with 1, 33 with 2); where arithmetic takes longer that loses. All on AVX-512, Zen 4.
template <class T>
HWY_INLINE int64_t gradient_rows(const BackwardTask& task) {
  constexpr bool kHalf = sizeof(T) == 2;
  const int64_t d = task.d;
  const bool dx_alone = !task.dgamma, far = task.traffic.far;
  if (sizeof(T) == 8) return d <= 512 ? kBatch : d <= 2048 ? 4 : 2;
  if (kHalf && !dx_alone && d > kColumns) return HWY_MAX(HWY_MIN(kGroupBytes / (2 * d * static_cast<int64_t>(sizeof(T))), kBatch), int64_t{2});
  if (d > kColumns) return 2;
  if (d <= 128 || (kHalf && !dx_alone)) return kBatch;
  if (!far) return d <= 512 || kHalf || !dx_alone ? kBatch : 2;
  if (is_bound_by_arithmetic<T>(task)) return d <= 512 ? kBatch : 4;
  return d <= 384 || kHalf || !dx_alone ? 2 : 1;
}

// What is fetched while rows that end at `last` are at work. Nothing that the last cache holds: the processor's own prefetching
// is enough there, but for rows of which L1 holds hardly one. Of float32 rows dy while the sums are made and x, farther ahead, with
// the columns; where arithmetic takes longer, x first and evenly.
struct Fetched {
  Ahead with_sums, with_columns;
};
template <class T>
HWY_INLINE Fetched fetched(const BackwardTask& task, int64_t last) {
  constexpr bool kFloat32 = sizeof(T) == 4;
  if (task.d * static_cast<int64_t>(sizeof(T)) > kMostFetchedBytes) return {};
  if (!(sizeof(T) == 2 ? task.traffic.past_caches : task.traffic.far) && !(kFloat32 && task.d > 2 * kColumns && task.traffic.from_memory)) return {};
  // Rows of so many bytes; none beyond the last.
  const auto rows_of = [&](int64_t bytes) {
    const int64_t rows = HWY_MAX(bytes / (task.d * static_cast<int64_t>(sizeof(T))), int64_t{1});
    return last + rows > task.rows ? int64_t{0} : rows;
  };
  if (sizeof(T) == 8) return {{rows_of(16384) * task.x_stride, rows_of(16384) * task.dy_stride}, {0, 0}};
  if (sizeof(T) == 2 && task.dgamma) return {{0, 0}, {rows_of(32768) * task.x_stride, rows_of(32768) * task.dy_stride}};
  if (sizeof(T) == 2 || is_bound_by_arithmetic<T>(task)) return {{rows_of(16384) * task.x_stride, 0}, {0, rows_of(32768) * task.dy_stride}};
  const bool near = task.d <= 512;  // farther ahead, rows of 128 take 1.6 times as long, and nearer, rows of 1536 1.2 times
  return {{0, rows_of(near ? 6144 : 8192) * task.dy_stride}, {rows_of(near ? 6144 : 32768) * task.x_stride, 0}};
}
HWY_INLINE bool all_plain(const GradRow* grads, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r)
    if (grads[r].narrow.row.kind != RowKind::Plain) return false;
  return true;
}

// The segments of a block of n columns of one row, in order.
template <class Grad, class T, class G>
HWY_INLINE void push_block(Tree<GradSums>& tree, const Grad& grad, const T* x, const G* dy, const Compute<T>* gamma, int64_t n,
                           const Ahead& ahead = {}) {
  for (int64_t i = 0; i < n; i += GradOf<T>::kSegment)
    tree.push(segment_sums(grad, x + i, dy + i, gamma + i, static_cast<size_t>(HWY_MIN(GradOf<T>::kSegment, n - i)), ahead));
}

// Sums of up to kBatch rows, those in `which`, block by block of columns.
template <class T, class G>
HWY_NOINLINE uint32_t sum_group(const BackwardTask& task, Parameter<T>& gamma, int64_t first, int64_t rows, uint32_t which,
                              GradRow* grads) {
  Tree<GradSums> tree[kBatch];
  const Ahead ahead = fetched<T>(task, first + rows).with_sums;
  for (int64_t begin = 0; begin < task.d; begin += kColumns) {
    const int64_t end = HWY_MIN(begin + kColumns, task.d);
    const Compute<T>* gamma_block = gamma.block(begin, static_cast<size_t>(end - begin));
    for (int64_t r = 0; r < rows; ++r) {
      if (!(which >> r & 1)) continue;
      const T* x = static_cast<const T*>(task.x) + (first + r) * task.x_stride;
      const G* dy = static_cast<const G*>(task.dy) + (first + r) * task.dy_stride;
      push_block(tree[r], GradOf<T>::get(grads[r]), x + begin, dy + begin, gamma_block, end - begin, ahead);
    }
  }
  uint32_t again = 0;
  for (int64_t r = 0; r < rows; ++r)
    if (which >> r & 1 && !set_gradient(tree[r].total(), task.d, GradOf<T>::get(grads[r]))) again |= 1u << r;
  return again;
}

}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_GRADIENT_SUMS_INL_H_

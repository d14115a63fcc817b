// The sums and scalars of a few rows of backward at a time: short ones as many together as a vector has lanes.
#if defined(TRUENORM_GRADIENT_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_GRADIENT_ROWS_INL_H_
#undef TRUENORM_GRADIENT_ROWS_INL_H_
#else
#define TRUENORM_GRADIENT_ROWS_INL_H_
#endif

#include "gradient_lanes-inl.h"
#include "gradient_sums-inl.h"
#include "kernels.h"
#include "lanes-inl.h"
#include "parameters-inl.h"
#include "stats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {

// As many rows of one segment as a vector has lanes, and what their gradients need of them.
struct LaneRows {
  VF64 lo, rstd;
};
// Of gradient_row_of() of their records what plain rows need. False, and nothing made, when one is exact, or may not fit
// (read_record()).
template <class T>
HWY_INLINE bool lane_rows_of_records(const BackwardTask& task, int64_t first, LaneRows& lanes, GradRow* grads) {
  const F64 f64;
  VF64 m;
  hn::LoadInterleaved2(f64, static_cast<const double*>(task.saved) + 2 * first, m, lanes.rstd);
  if (!hn::AllTrue(f64, hn::Gt(lanes.rstd, hn::Zero(f64)))) return false;
  if constexpr (kHasQuickSums<T>)
    if (!task.half_dx)
      for (int64_t k = 0; k < static_cast<int64_t>(kF64Lanes); ++k)
        if (may_be_quick(static_cast<const NarrowSaved*>(task.saved)[first + k])) return false;
  HWY_ALIGN float hi[kF64Lanes], r[kF64Lanes], b[kF64Lanes];
  const VF64 mean = hn::Add(first_elements(f64, static_cast<const T*>(task.x) + first * task.x_stride, task.x_stride), m);
  plain_scalars(f64, mean, lanes.rstd, hi, r, b);
  // What it returns; with that, GCC 12 makes rows of 12 features take a tenth longer.
  lanes.lo = hn::Sub(mean, hn::PromoteTo(f64, hn::LoadU(hn::Rebind<float, F64>(), hi)));
  for (size_t k = 0; k < kF64Lanes; ++k) {
    NarrowRow& row = grads[k].narrow.row;
    row.hi = hi[k];
    row.r = r[k];
    row.b = b[k];
    row.kind = RowKind::Plain;
  }
  return true;
}
// The same of rows that are made already. False when one is exact.
HWY_INLINE bool lane_rows_of(const GradRow* grads, LaneRows& lanes) {
  if (!all_plain(grads, static_cast<int64_t>(kF64Lanes))) return false;
  HWY_ALIGN double lo[kF64Lanes], rstd[kF64Lanes];
  for (size_t k = 0; k < kF64Lanes; ++k) {
    const NarrowRow& row = grads[k].narrow.row;
    lo[k] = row.mean - static_cast<double>(row.hi);
    rstd[k] = row.rstd;
  }
  lanes = {hn::Load(F64(), lo), hn::Load(F64(), rstd)};
  return true;
}

// Folded together, their scalars made side by side. Bits of rows that must be summed again.
template <class T, class G>
HWY_INLINE uint32_t sum_lane_rows(const BackwardTask& task, const float* gamma, int64_t first, const Ahead& ahead, const LaneRows& lanes,
                                  double inv_d, GradRow* grads) {
  VF64 a[kF64Lanes], b[kF64Lanes];
  uint32_t g_fits = 0;
  HWY_ALIGN float minus_Ar[kF64Lanes], minus_Kr[kF64Lanes];
  const T* x = static_cast<const T*>(task.x) + first * task.x_stride;
  const G* dy = static_cast<const G*>(task.dy) + first * task.dy_stride;
  for (size_t r = 0; r < kF64Lanes; ++r, x += task.x_stride, dy += task.dy_stride) {
    const PlainGradientSums sums = plain_segment_sums(grads[r].narrow, x, dy, gamma, static_cast<size_t>(task.d), ahead);
    a[r] = sums.partial.s;
    b[r] = sums.partial.q;
    g_fits |= static_cast<uint32_t>(sizes_fit(sizes_of(sums.g_bits))) << r;
  }
  const F64 f64;
  const auto fits = plain_gradient_scalars(f64, fold_rows(a), fold_rows(b), lanes.lo, lanes.rstd, inv_d, minus_Ar, minus_Kr);
  const uint32_t enough = bits_of(f64, fits) & g_fits;
  for (size_t r = 0; r < kF64Lanes; ++r) {
    grads[r].narrow.minus_Ar = minus_Ar[r];
    grads[r].narrow.minus_Kr = minus_Kr[r];
    if (!(enough >> r & 1)) grads[r].narrow.row.kind = RowKind::Exact;
  }
  return ~enough & ((1u << kF64Lanes) - 1);
}

template <class T>
HWY_INLINE void make_rows(const BackwardTask& task, int64_t first, int64_t rows, GradRow* grads) {
  for (int64_t r = 0; r < rows; ++r)
    GradOf<T>::get(grads[r]).row = backward_row(task, static_cast<const T*>(task.x) + (first + r) * task.x_stride, first + r);
}

// A row for which plain sums were not enough.
template <class T>
HWY_NOINLINE void make_exact(const BackwardTask& task, int64_t r, NarrowRow& row) {
  row = backward_row(task, static_cast<const T*>(task.x) + r * task.x_stride, r);
  row.kind = RowKind::Exact;
}

template <class T, class G>
HWY_NOINLINE void group_sums(const BackwardTask& task, Parameter<T>& gamma, int64_t first, int64_t rows, GradRow* grads) {
  uint32_t which = (1u << rows) - 1, again = 0;
  int64_t r = 0;
  if constexpr (sizeof(T) == 2)
    for (int64_t k = 0; k < rows; ++k) grads[k].narrow.half_dx = task.half_dx;
  if constexpr (sizeof(T) < 8) {
    constexpr int64_t kLaneRows = static_cast<int64_t>(kF64Lanes);
    if (task.d <= kNarrowSegment && rows >= kLaneRows) {
      const float* const g = gamma.block(0, static_cast<size_t>(task.d));
      const Ahead ahead = fetched<T>(task, first + rows).with_sums;
      const double inv_d = 1.0 / static_cast<double>(task.d);
      for (; r + kLaneRows <= rows; r += kLaneRows) {
        LaneRows lanes;
        if (!task.saved || !lane_rows_of_records<T>(task, first + r, lanes, grads + r)) {
          make_rows<T>(task, first + r, kLaneRows, grads + r);
          if (!lane_rows_of(grads + r, lanes)) continue;
        }
        again |= sum_lane_rows<T, G>(task, g, first + r, ahead, lanes, inv_d, grads + r) << r;
        which &= ~(((1u << kLaneRows) - 1) << r);
      }
    }
  }
  make_rows<T>(task, first + r, rows - r, grads + r);
  if (which) again |= sum_group<T, G>(task, gamma, first, rows, which, grads);
  if (again) {
    if constexpr (sizeof(T) < 8)
      for (int64_t k = 0; k < rows; ++k)
        if (again >> k & 1) make_exact<T>(task, first + k, grads[k].narrow.row);
    sum_group<T, G>(task, gamma, first, rows, again, grads);
  }
}

template <class T, class G>
void backward_sums(const BackwardTask& task) {
  Parameter<T> gamma(task.gamma, task.d, Compute<T>{1});
  const int64_t group = gradient_rows<T>(task);
  for (int64_t first = 0; first < task.rows; first += group)
    group_sums<T, G>(task, gamma, first, HWY_MIN(group, task.rows - first), task.grad_rows + first);
}

}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_GRADIENT_ROWS_INL_H_

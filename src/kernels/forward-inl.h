// y = gamma * x_hat + beta, row by row.
#if defined(TRUENORM_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_FORWARD_INL_H_
#undef TRUENORM_FORWARD_INL_H_
#else
#define TRUENORM_FORWARD_INL_H_
#endif

#include "kernels.h"
#include "lanes-inl.h"
#include "memory-inl.h"
#include "parameters-inl.h"
#include "stats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {

// ---------------------------------------------------------------- the formula, for sixteen features of one row
// Each finish is made once per row and applied to its elements; x_hat and y are named as in docs/numerics.md.

struct PlainFinish {  // float32: two roundings in x_hat, one in y
  F32x16 hi, r, b;
  HWY_INLINE explicit PlainFinish(const NarrowRow& row) : hi(fill(row.hi)), r(fill(row.r)), b(fill(row.b)) {}
  HWY_INLINE PlainFinish(const NarrowBatch& batch, size_t k) : hi(fill(batch.hi[k])), r(fill(batch.r[k])), b(fill(batch.b[k])) {}
  HWY_INLINE F32x16 x_hat(const F32x16& x) const { return fma(x - hi, r, b); }
  HWY_INLINE F32x16 operator()(const F32x16& x, const F32x16& gamma, const F32x16& beta) const {
    return fma(x_hat(x), gamma, beta);
  }
};

struct ExactFinish {  // float32 and half rows in float64
  F64x16 x0, m, rstd;
  HWY_INLINE explicit ExactFinish(const NarrowRow& row) : x0(fill(row.x0)), m(fill(row.m)), rstd(fill(row.rstd)) {}
  HWY_INLINE F64x16 x_hat(const F64x16& x) const { return ((x - x0) - m) * rstd; }
  HWY_INLINE F32x16 operator()(const F32x16& x, const F32x16& gamma, const F32x16& beta) const {
    return round_to_f32(x_hat(widen(x)) * widen(gamma) + widen(beta));
  }
};

template <bool kScaled>
struct WideFinish {  // float64 rows
  const WideRow& row;
  HWY_INLINE explicit WideFinish(const WideRow& r) : row(r) {}
  HWY_INLINE F64x16 x_hat(const F64x16& x) const { return (centred<kScaled>(x, row) - fill(row.lo)) * fill(row.r); }
  HWY_INLINE F64x16 operator()(const F64x16& x, const F64x16& gamma, const F64x16& beta) const {
    return x_hat(x) * gamma + beta;
  }
};

// ---------------------------------------------------------------- a block of columns of one row
template <bool kStream = false, class Finish, class T, class O>
HWY_INLINE void finish_block(const Finish& finish, const T* x, O* y, const Compute<T>* HWY_RESTRICT gamma,
                             const Compute<T>* HWY_RESTRICT beta, size_t n) {
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) put<kStream>(canonical(finish(load(x + i), load(gamma + i), load(beta + i))), y + i);
  if (i < n)
    store_n(canonical(finish(load_n(x + i, n - i), load_n(gamma + i, n - i), load_n(beta + i, n - i))), y + i, n - i);
}

template <class T, class O>
HWY_NOINLINE void finish_row(const NarrowRow& row, const T* x, O* y, const float* gamma, const float* beta, size_t n) {
  if (row.kind == RowKind::Plain) return finish_block(PlainFinish(row), x, y, gamma, beta, n);
  finish_block(ExactFinish(row), x, y, gamma, beta, n);
}
inline HWY_NOINLINE void finish_row(const WideRow& row, const double* x, double* y, const double* gamma, const double* beta, size_t n) {
  if (row.kind == RowKind::Plain) return finish_block(WideFinish<false>(row), x, y, gamma, beta, n);
  finish_block(WideFinish<true>(row), x, y, gamma, beta, n);
}

// ---------------------------------------------------------------- statistics handed back
HWY_INLINE double public_mean(const NarrowRow& row) { return row.mean; }
HWY_INLINE double public_mean(const WideRow& row) { return row.mean + row.mean_lo; }

// A NaN as x86 and ARM make them, made canonical.
HWY_INLINE double canonical(double v) { return v == v ? v : static_cast<double>(NAN); }

template <class Row>
HWY_INLINE void store_statistics(const ForwardTask& task, int64_t r, const Row& row) {
  if (task.mean) task.mean[r] = canonical(public_mean(row));
  if (task.var) task.var[r] = canonical(row.var);
  if (task.rstd) task.rstd[r] = canonical(row.rstd);
  if (task.saved) {
    const auto saved = to_saved(row);
    memcpy(static_cast<char*>(task.saved) + r * static_cast<int64_t>(sizeof(saved)), &saved, sizeof(saved));
  }
}

// ---------------------------------------------------------------- rows
// A few rows at a time: their statistics, then block by block of columns their elements, so that a block of gamma and
// beta is converted and brought into the cache once for all of them. The rows stay in the cache meanwhile.
constexpr int64_t kGroupBytes = int64_t{1} << 16;
template <class T>
HWY_INLINE int64_t group_rows(int64_t d) {
  const int64_t fit = kGroupBytes / (d * static_cast<int64_t>(sizeof(T)));
  return HWY_MIN(kBatch, HWY_MAX(fit, int64_t{1}));
}

// Four plain rows share the loads of gamma and beta. These are finite: no NaN can arise.
constexpr size_t kTogether = 4;
template <bool kStream, class T, class O>
HWY_INLINE void finish_plain_rows(const NarrowBatch& batch, size_t k, const T* x, int64_t x_stride, O* y, int64_t y_stride,
                                  const float* HWY_RESTRICT gamma, const float* HWY_RESTRICT beta, size_t n) {
  const PlainFinish finish[kTogether] = {PlainFinish(batch, k), PlainFinish(batch, k + 1), PlainFinish(batch, k + 2),
                                         PlainFinish(batch, k + 3)};
  size_t c = 0;
  for (; c + kLanes <= n; c += kLanes) {
    const F32x16 g = load(gamma + c), b = load(beta + c);
    TRUENORM_UNROLL
    for (size_t i = 0; i < kTogether; ++i)
      put<kStream>(finish[i](load(x + static_cast<int64_t>(i) * x_stride + c), g, b), y + static_cast<int64_t>(i) * y_stride + c);
  }
  if (c < n) {
    const F32x16 g = load_n(gamma + c, n - c), b = load_n(beta + c, n - c);
    TRUENORM_UNROLL
    for (size_t i = 0; i < kTogether; ++i)
      store_n(finish[i](load_n(x + static_cast<int64_t>(i) * x_stride + c, n - c), g, b), y + static_cast<int64_t>(i) * y_stride + c,
              n - c);
  }
}

// A block of columns of the rows of a batch. `row` is set for those that are not in a plain four.
template <class T, class O>
HWY_INLINE void finish_batch(const NarrowBatch& batch, const NarrowRow* row, int64_t rows, bool fours, bool streams, const T* x,
                             int64_t x_stride, O* y, int64_t y_stride, const float* gamma, const float* beta, size_t n) {
  constexpr int64_t kFour = static_cast<int64_t>(kTogether);
  constexpr uint32_t kPlain = (1u << kTogether) - 1;
  const bool alike = y_stride * static_cast<int64_t>(sizeof(O)) % static_cast<int64_t>(kStreamAlign) == 0;
  for (int64_t k = 0; k < rows;) {
    const T* x_row = x + k * x_stride;
    O* y_row = y + k * y_stride;
    const size_t at = static_cast<size_t>(k);
    const size_t head = streams ? HWY_MIN(before_stream(y_row), n) : n;
    if (fours && k + kFour <= rows && (batch.plain >> k & kPlain) == kPlain && (alike || !streams)) {
      if (head) finish_plain_rows<false>(batch, at, x_row, x_stride, y_row, y_stride, gamma, beta, head);
      if (head < n)
        finish_plain_rows<true>(batch, at, x_row + head, x_stride, y_row + head, y_stride, gamma + head, beta + head, n - head);
      k += kFour;
    } else {
      if (batch.plain >> k & 1 && streams) {
        const PlainFinish finish(batch, at);
        if (head) finish_block(finish, x_row, y_row, gamma, beta, head);
        if (head < n) finish_block<true>(finish, x_row + head, y_row + head, gamma + head, beta + head, n - head);
      } else {
        finish_row(row[k], x_row, y_row, gamma, beta, n);
      }
      ++k;
    }
  }
}

// Short or odd rows are finished here and then copied around the caches, whole lines at a time.
constexpr size_t kStageBytes = 1 << 13;
HWY_INLINE void stream_bytes(const uint8_t* from, uint8_t* to, size_t bytes) {
  const hn::CappedTag<uint8_t, kStreamAlign> d8;
  constexpr size_t kBytes = hn::MaxLanes(hn::CappedTag<uint8_t, kStreamAlign>());
  size_t i = HWY_MIN(before_stream(to), bytes);
  memcpy(to, from, i);
  for (; i + kStreamAlign <= bytes; i += kStreamAlign)
    for (size_t k = 0; k < kStreamAlign; k += kBytes) hn::Stream(hn::LoadU(d8, from + i + k), d8, to + i + k);
  memcpy(to + i, from + i, bytes - i);
}

// float64
template <class T, class O>
HWY_INLINE void forward_wide_rows(const ForwardTask& task) {
  const int64_t d = task.d, group = group_rows<T>(d);
  Parameter<T> gamma(task.gamma, d, 1.0);
  Parameter<T> beta(task.beta, d, -0.0);
  WideRow row[kBatch];
  for (int64_t first = 0; first < task.rows; first += group) {
    const int64_t rows = HWY_MIN(group, task.rows - first);
    const T* x = static_cast<const T*>(task.x) + first * task.x_stride;
    for (int64_t r = 0; r < rows; ++r) {
      row[r] = row_statistics(x + r * task.x_stride, d, task.eps);
      store_statistics(task, first + r, row[r]);
    }
    if (task.y == nullptr) continue;
    O* y = static_cast<O*>(task.y) + first * task.y_stride;
    for (int64_t begin = 0; begin < d; begin += kColumns) {
      const size_t n = static_cast<size_t>(HWY_MIN(kColumns, d - begin));
      const T* gamma_block = gamma.block(begin, n);
      const T* beta_block = beta.block(begin, n);
      for (int64_t r = 0; r < rows; ++r)
        finish_row(row[r], x + r * task.x_stride + begin, y + r * task.y_stride + begin, gamma_block, beta_block, n);
    }
  }
}

// float32 and half types
template <class T, class O>
HWY_INLINE void forward_narrow_rows(const ForwardTask& task) {
  const int64_t d = task.d, group = group_rows<T>(d);
  Parameter<T> gamma(task.gamma, d, 1.0f);
  Parameter<T> beta(task.beta, d, -0.0f);
  const bool fours = task.rows >= static_cast<int64_t>(kTogether) && gamma.all_finite(d) && beta.all_finite(d);
  const bool wants_statistics = task.mean || task.var || task.rstd || task.saved;
  const int64_t row_bytes = d * static_cast<int64_t>(sizeof(O));
  const bool streams = task.traffic.past_caches && task.y;
  const bool stages = streams && task.y_stride == d && group * row_bytes <= static_cast<int64_t>(kStageBytes) &&
                      (row_bytes < 512 || row_bytes % static_cast<int64_t>(kStreamAlign) != 0);
  alignas(64) uint8_t stage[kStageBytes];
  NarrowBatch batch;
  NarrowRow row[kBatch];
  for (int64_t first = 0; first < task.rows; first += group) {
    const int64_t rows = HWY_MIN(group, task.rows - first);
    const T* x = static_cast<const T*>(task.x) + first * task.x_stride;
    const int64_t ahead = task.traffic.from_memory && first + 2 * group <= task.rows ? group * task.x_stride : 0;
    batch_statistics(x, task.x_stride, static_cast<size_t>(rows), d, task.eps, ahead, batch);
    const uint32_t all = (1u << rows) - 1;
    if (wants_statistics || !fours || rows % static_cast<int64_t>(kTogether) != 0 || (batch.plain & all) != all)
      for (int64_t k = 0; k < rows; ++k)
        row[k] = batch.plain >> k & 1 ? plain_row(batch, static_cast<size_t>(k))
                                      : exact_row(x + k * task.x_stride, d, task.eps, batch.x0[k], is_finite(batch.square_sum[k]));
    if (wants_statistics)
      for (int64_t k = 0; k < rows; ++k) store_statistics(task, first + k, row[k]);
    if (task.y == nullptr) continue;
    O* const out = static_cast<O*>(task.y) + first * task.y_stride;
    O* const y = stages ? reinterpret_cast<O*>(stage) : out;
    for (int64_t begin = 0; begin < d; begin += kColumns) {
      const size_t n = static_cast<size_t>(HWY_MIN(kColumns, d - begin));
      const float* gamma_block = gamma.block(begin, n);
      finish_batch(batch, row, rows, fours, streams && !stages, x + begin, task.x_stride, y + begin, task.y_stride, gamma_block,
                   beta.block(begin, n), n);
    }
    if (stages) stream_bytes(stage, reinterpret_cast<uint8_t*>(out), static_cast<size_t>(rows * row_bytes));
  }
  if (streams) hwy::FlushStream();
}

template <class T, class O>
void forward_rows(const ForwardTask& task) {
  if constexpr (sizeof(T) == 8)
    forward_wide_rows<T, O>(task);
  else
    forward_narrow_rows<T, O>(task);
}

}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_FORWARD_INL_H_

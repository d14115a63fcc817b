// Forward for float64 rows. Those of one segment go in batches: what a row's sums are folded to, the divisions and the square
// root after them make a chain longer than the row itself, and vectors make it for as many rows at once as they have lanes.
// GB/s in the caches, one by one and so (Zen 5, one core): of 5 features 2.6 and 19, of 8 4.3 and 35, of 24 12 and 57, of 64 27 and
// 61, of 128 32 and 68; AVX2 2.5 and 19, 4.1 and 34, 11 and 45, 19 and 48, 28 and 50.
#if defined(TRUENORM_WIDE_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_WIDE_ROWS_INL_H_
#undef TRUENORM_WIDE_ROWS_INL_H_
#else
#define TRUENORM_WIDE_ROWS_INL_H_
#endif

#include "forward-inl.h"
#include "wide_widths-inl.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {

// ---------------------------------------------------------------- one row
// A block of columns, around the caches where `streams`.
HWY_INLINE void finish_wide_block(const WideRow& row, const double* x, double* y, const double* gamma, const double* beta, size_t n,
                                  bool streams) {
  const size_t head = streams && row.kind == RowKind::Plain ? HWY_MIN(before_stream(y), n) : n;
  if (head) finish_row(row, x, y, gamma, beta, head);
  if (head < n) finish_block<false, true>(WideFinish<false>(row), x + head, y + head, gamma + head, beta + head, n - head);
}

#if HWY_TARGET != HWY_SCALAR
// ---------------------------------------------------------------- rows of one segment, a batch at a time
class WideRows {
  static constexpr int64_t kElement = static_cast<int64_t>(sizeof(double)), kLine = static_cast<int64_t>(kStreamAlign);
  static constexpr size_t kRows = static_cast<size_t>(kBatch);

 public:
  HWY_INLINE WideRows(const ForwardTask& task, const double* gamma, const double* beta)
      : task_(task), gamma_(gamma), beta_(beta), d_(task.d), n_(static_cast<size_t>(task.d)) {
    const bool starts_line = before_stream(static_cast<const double*>(task.y)) == 0;
    const bool lines = d_ * kElement % kLine == 0 && task.y_stride * kElement % kLine == 0 && starts_line;
    streams_ = task.traffic.past_caches && lines;
    stages_ = task.traffic.past_caches && !lines && task.y_stride == d_;
    rows_ahead_ = kAheadBytes / (d_ * kElement) + 1 + kBatch;
  }

  // Returns the rows done: whole batches.
  HWY_INLINE int64_t operator()() {
    constexpr size_t kEight = 8 / kF64Lanes;
    if (n_ == 8) return batches(WideWidth<kEight, true>{n_});
    if (n_ == 16) return batches(WideWidth<2 * kEight, true>{n_});
    if (n_ == 24) return batches(WideWidth<3 * kEight, true>{n_});
    if (n_ == 32) return batches(WideWidth<4 * kEight, true>{n_});
#if HWY_CAP_GE256  // masks
    if (n_ <= kF64Lanes) return batches(WideWidth<1, false>{n_});
    if (n_ <= 2 * kF64Lanes) return batches(WideWidth<2, false>{n_});
    if (n_ <= 3 * kF64Lanes) return batches(WideWidth<3, false>{n_});
    if (n_ <= 4 * kF64Lanes) return batches(WideWidth<4, false>{n_});
#endif
    return batches(AnyWideWidth{n_});
  }

 private:
  // What lies kAheadBytes beyond the next batch is fetched along with the finish, which waits for nothing: with the sums
  // 65536 x 64 goes at 36 GB/s in place of 53, 65536 x 128 at 29 in place of 40 (AVX-512, Zen 5).
  static constexpr uint32_t kAll = (1u << kRows) - 1;

  HWY_INLINE const double* x_of(const WideBatch& batch) const { return static_cast<const double*>(task_.x) + batch.first * task_.x_stride; }

  // One batch is finished while the chain of the next one's scalars is under way.
  template <class Width>
  HWY_NOINLINE int64_t batches(Width width) {
    WideBatch ring[2];
    const int64_t count = task_.rows / kBatch;
    for (int64_t i = 0; i <= count; ++i) {
      WideBatch &next = ring[i % 2], &done = ring[(i + 1) % 2];
      const bool fetches = task_.traffic.from_memory && i * kBatch + rows_ahead_ <= task_.rows;
      const int64_t ahead = fetches ? rows_ahead_ * task_.x_stride : 0;
      if (i < count) {
        next.first = i * kBatch;
        set_scalars(width, next, task_.y ? 0 : ahead);
        if (next.plain != kAll) set_others(next);
        if (wants_statistics(task_) || task_.saved) hand_back(next);
      }
      if (i > 0 && task_.y) finish(width, done, ahead);
    }
    return count * kBatch;
  }

  // wide_row_from_sums() for plain rows, one a lane.
  template <class Width>
  HWY_INLINE void set_scalars(const Width& width, WideBatch& batch, int64_t ahead) const {
    const F64 f64;
    const VF64 n = hn::Set(f64, static_cast<double>(d_));
    const int64_t stride = task_.x_stride;
    VF64 s[kRows], q[kRows];
    const double* x = x_of(batch);
    TRUENORM_UNROLL
    for (size_t k = 0; k < kRows; ++k, x += stride) s[k] = width.sum(x, ahead);
    TRUENORM_UNROLL
    for (size_t k = 0; k < kRows; k += kF64Lanes) hn::Store(hn::Div(fold_rows(s + k), n), f64, batch.hi + k);
    x = x_of(batch);
    TRUENORM_UNROLL
    for (size_t k = 0; k < kRows; ++k, x += stride) {
      const Partial partial = width.centred_sums(x, centred_row(batch.hi[k]));
      s[k] = partial.s;
      q[k] = partial.q;
    }
    batch.plain = 0;
    TRUENORM_UNROLL
    for (size_t k = 0; k < kRows; k += kF64Lanes) {
      const VF64 sum = fold_rows(s + k), square_sum = fold_rows(q + k);
      const VF64 lo = hn::Div(sum, n);
      const VF64 M2 = hn::Sub(square_sum, hn::Mul(sum, lo));  // above 0 where plain
      const VF64 var = hn::Div(M2, n);
      hn::Store(lo, f64, batch.lo + k);
      hn::Store(var, f64, batch.var + k);
      hn::Store(hn::Div(hn::Set(f64, 1.0), hn::Sqrt(hn::Add(var, hn::Set(f64, task_.eps)))), f64, batch.rstd + k);
      const auto plain = hn::And(hn::Le(square_sum, hn::Mul(hn::Set(f64, 16.0), M2)),
                                 hn::And(hn::Ge(square_sum, hn::Set(f64, 0x1p-800)), hn::Le(square_sum, hn::Set(f64, 0x1p800))));
      batch.plain |= bits_of(f64, plain) << k;
    }
  }
  HWY_NOINLINE void set_others(WideBatch& batch) const {
    const double* x = x_of(batch);
    for (size_t k = 0; k < kRows; ++k, x += task_.x_stride)
      if (!(batch.plain >> k & 1)) batch.other[k] = row_statistics(x, d_, task_.eps);
  }

  HWY_INLINE void hand_back(const WideBatch& batch) const {
    const F64 f64;
    const int64_t first = batch.first;
    for (size_t k = 0; k < kRows && wants_statistics(task_); k += kF64Lanes) {
      const int64_t r = first + static_cast<int64_t>(k);
      if (task_.mean) hn::StoreU(hn::Add(hn::Load(f64, batch.hi + k), hn::Load(f64, batch.lo + k)), f64, task_.mean + r);
      if (task_.var) hn::StoreU(hn::Load(f64, batch.var + k), f64, task_.var + r);
      if (task_.rstd) hn::StoreU(hn::Load(f64, batch.rstd + k), f64, task_.rstd + r);
    }
    if (task_.saved)
      for (size_t k = 0; k < kRows; ++k)
        store_record(task_, first + static_cast<int64_t>(k), WideSaved{batch.hi[k], batch.lo[k], batch.rstd[k]});
    for (size_t k = 0; k < kRows && batch.plain != kAll; ++k)
      if (!(batch.plain >> k & 1)) {
        store_statistics(task_, first + static_cast<int64_t>(k), batch.other[k]);
        if (task_.saved) store_record(task_, first + static_cast<int64_t>(k), to_saved(batch.other[k]));
      }
  }

  template <class Width>
  HWY_INLINE void finish(const Width& width, const WideBatch& batch, int64_t ahead) {
    double* const y = static_cast<double*>(task_.y) + batch.first * task_.y_stride;
    double* const to = stages_ ? stage_ : y;
    const int64_t stride = stages_ ? d_ : task_.y_stride;
    bool done = false;
    if constexpr (Width::kVectors > 0) {
      done = batch.plain == kAll && (Width::kWhole || stages_ || !task_.traffic.past_caches);
      if (done) {
        if (Width::kWhole && streams_) finish_plain<true>(width, batch, to, stride, ahead);
        else finish_plain<false>(width, batch, to, stride, ahead);
      }
    }
    if (!done) finish_rows(batch, to, stride, ahead);
    if (stages_) stream_bytes(reinterpret_cast<const uint8_t*>(stage_), reinterpret_cast<uint8_t*>(y), kRows * n_ * sizeof(double));
  }
  HWY_NOINLINE void finish_rows(const WideBatch& batch, double* y, int64_t stride, int64_t ahead) const {
    const double* x = x_of(batch);
    for (size_t k = 0; k < kRows; ++k, x += task_.x_stride, y += stride) {
      if (ahead) AnyWideWidth{n_}.fetch(x + ahead);
      if (!(batch.plain >> k & 1)) finish_row(batch.other[k], x, y, gamma_, beta_, n_);
      else if (streams_) finish_block<false, true>(WideFinish<false>(plain_row(batch, k)), x, y, gamma_, beta_, n_);
      else if (stages_ || !task_.traffic.past_caches) finish_block<false>(WideFinish<false>(plain_row(batch, k)), x, y, gamma_, beta_, n_);
      else finish_wide_block(plain_row(batch, k), x, y, gamma_, beta_, n_, true);
    }
  }
  // All rows of a batch are plain.
  template <bool kStream, class Width>
  HWY_INLINE void finish_plain(const Width& width, const WideBatch& batch, double* y, int64_t y_stride, int64_t ahead) const {
    constexpr size_t kVectors = Width::kVectors;
    VF64 gamma[kVectors], beta[kVectors];
    width.load(gamma_, gamma);
    width.load(beta_, beta);
    const double* x = x_of(batch);
    const int64_t x_stride = task_.x_stride;
    const bool beyond = stages_;  // the next row overwrites what is written beyond this one's end
    for (size_t k = 0; k < kRows; ++k, x += x_stride, y += y_stride) {
      if (ahead) width.fetch(x + ahead);
      const WideFinish<false> finish(plain_row(batch, k));
      VF64 v[kVectors];
      width.load(x, v);
      TRUENORM_UNROLL
      for (size_t i = 0; i < kVectors; ++i) {
        const VF64 z = canonical(finish(v[i], gamma[i], beta[i]));
        double* const at = y + i * kF64Lanes;
        if constexpr (kStream) hn::Stream(z, F64(), at);
        else if (Width::kWhole || beyond || i + 1 < kVectors) hn::StoreU(z, F64(), at);
        else hn::BlendedStore(z, width.last(), F64(), at);
      }
    }
  }

  const ForwardTask& task_;
  const double *const gamma_, *const beta_;
  const int64_t d_;
  const size_t n_;
  bool streams_;  // every row starts and ends a line of y
  bool stages_;   // other rows that follow one another, by way of a buffer: eight of them are whole lines
  int64_t rows_ahead_;
  alignas(64) double stage_[kRows * kWideSegment + kF64Lanes];
};
#endif  // HWY_SCALAR

// ---------------------------------------------------------------- rows
template <class T, class O>
HWY_NOINLINE void forward_wide_rows(const ForwardTask& task) {
  const int64_t d = task.d;
  Parameter<T> gamma(task.gamma, d, 1.0);
  Parameter<T> beta(task.beta, d, -0.0);
  int64_t r = 0;
#if HWY_TARGET != HWY_SCALAR  // whose vectors have one lane
  if (d <= kWideSegment && task.rows >= kBatch)
    r = WideRows(task, gamma.block(0, static_cast<size_t>(d)), beta.block(0, static_cast<size_t>(d)))();
#endif
  for (; r < task.rows; ++r) {
    const T* const x = static_cast<const T*>(task.x) + r * task.x_stride;
    const bool fetches = task.traffic.from_memory && r + 1 < task.rows;
    const WideRow row = row_statistics(x, d, task.eps, fetches ? task.x_stride : 0);
    store_statistics(task, r, row);
    if (task.saved) store_record(task, r, to_saved(row));
    if (task.y == nullptr) continue;
    O* const y = static_cast<O*>(task.y) + r * task.y_stride;
    for (int64_t begin = 0; begin < d; begin += kColumns) {
      const size_t n = static_cast<size_t>(HWY_MIN(kColumns, d - begin));
      finish_wide_block(row, x + begin, y + begin, gamma.block(begin, n), beta.block(begin, n), n, task.traffic.past_caches);
    }
  }
  if (task.traffic.past_caches) hwy::FlushStream();
}

}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_WIDE_ROWS_INL_H_

// Forward for float32 and half rows that fit the L1 cache several times: one row is finished while a later one is summed.
// Finishing waits for memory and the sums for arithmetic, so that both together take little longer than the slower of
// the two: float32, 512 x 768, 52 GB/s, one after the other 47; 65536 x 768, from memory, 44 and 29
// (AVX-512, one core of a server with Zen 4). Longer rows push each other and the parameters out of L1, and lose by it.
#if defined(TRUENORM_SHORT_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_SHORT_ROWS_INL_H_
#undef TRUENORM_SHORT_ROWS_INL_H_
#else
#define TRUENORM_SHORT_ROWS_INL_H_
#endif

#include "forward-inl.h"
#include "long_rows-inl.h"
#include "quick-inl.h"
#include "row_methods-inl.h"
#include "wide_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {

// ---------------------------------------------------------------- rows
// gamma and beta are finite: as they are, and as Method wants them.
template <class Method>
class ShortRows {
  using T = typename Method::T;
  using O = typename Method::O;
  using Finish = typename Method::Finish;
  static constexpr bool kHasParts = kInParts<T, O> && !Method::kQuick;

 public:
  HWY_INLINE ShortRows(const ForwardTask& task, const float* gamma, const float* beta, const float* method_gamma, const float* method_beta)
      : task_(task), plain_gamma_(gamma), plain_beta_(beta), gamma_(method_gamma), beta_(method_beta), d_(task.d),
        size_(HWY_MIN(kShortBatch, HWY_MAX(batch_columns(task) / task.d, int64_t{1}))) {
    constexpr int64_t kElement = static_cast<int64_t>(sizeof(O)), kLine = static_cast<int64_t>(kStreamAlign);
    const int64_t row_bytes = d_ * kElement;
    const bool past_caches = task.traffic.past_caches;
    parts_ = kHasParts ? whole_parts(d_) : 0;
    const bool starts_line = before_stream(static_cast<O*>(task.y)) == 0;
    // Rows of whole vectors, or lines, that follow one another fill the lines as they come (AVX-512, bfloat16 rows of 64 to 128 1.17
    // times as fast as by way of the buffer, float16 rows of 96 and 128 1.06 and 1.13 times).
    const bool follow = (parts_ > 0 || row_bytes % kLine == 0) && task.y_stride == d_ && starts_line;
    stages_ = !follow && past_caches && task.y_stride == d_ && size_ * row_bytes <= static_cast<int64_t>(kStageBytes) &&
              (row_bytes <= 256 || row_bytes % kLine != 0);
    streams_ = past_caches && !stages_;
    const bool lines = follow || (row_bytes % kLine == 0 && task.y_stride * kElement % kLine == 0 && starts_line);
    whole_rows_ = d_ <= kNarrowSegment && (!streams_ || lines);
    rows_ahead_ = kAheadBytes / (d_ * static_cast<int64_t>(sizeof(T))) + 1;
  }

  // Rows go in batches: one is summed while the one two before it is finished. The one between has its scalars made,
  // divisions and a square root in a chain that nothing waits for.
  HWY_INLINE void operator()() {
    const int64_t batches = (task_.rows + size_ - 1) / size_;
    for (int64_t i = 0; i < batches + 2; ++i) {
      Batch& next = ring_[i % 3];
      next.first = i * size_;
      next.rows = HWY_MAX(HWY_MIN(size_, task_.rows - next.first), int64_t{0});
      const bool fetches = task_.traffic.from_memory && next.first + size_ + rows_ahead_ <= task_.rows;
      ahead_ = fetches ? rows_ahead_ * task_.x_stride : 0;
      if (i < 2) {
        for (int64_t k = 0; k < next.rows; ++k) sum_row(next, k);
      } else {
        const Batch& done = ring_[(i + 1) % 3];
        if (done.rows == size_ && next.rows == size_ && whole_rows_ && done.scalars.plain == (1u << size_) - 1)
          whole_batch(done, next);
        else
          for (int64_t k = 0; k < done.rows; ++k) finish_row_of(done, k, next);
        if (stages_)
          stream_bytes(stage_, static_cast<uint8_t*>(task_.y) + done.first * task_.y_stride * static_cast<int64_t>(sizeof(O)),
                       static_cast<size_t>(done.rows * d_) * sizeof(O));
      }
      if (next.rows) set_scalars(next);
    }
    if (streams_ || stages_) hwy::FlushStream();
  }

 private:
  // Of a batch. What is made once for it is shared by more rows if it is larger: half types have room for that in L1 (512 x 768, Zen 4:
  // bfloat16 1.2 times as fast with 3 than with 1, from memory 1.3 times, float16 1.08 times, but 0.8 to 0.96 from memory).
  static HWY_INLINE int64_t batch_columns(const ForwardTask& task) {
    return (Method::kQuick || (sizeof(T) == 2 && !task.traffic.from_memory) ? 3 : 1) * kNarrowSegment;
  }
  // Short or odd rows are finished in a buffer and then copied around the caches, whole lines at a time.
  static constexpr size_t kStageBytes = 1 << 13;

  struct Batch {
    NarrowBatch scalars;
    VF64 s[kShortBatch], q[kShortBatch];  // rows of one segment: their sums, not yet folded to one lane
    NarrowRow other[kShortBatch];    // rows for which these sums were not enough
    int64_t first, rows;
  };

  HWY_INLINE const T* x_of(const Batch& batch, int64_t k) const {
    return static_cast<const T*>(task_.x) + (batch.first + k) * task_.x_stride;
  }
  HWY_INLINE void set_sums(Batch& batch, int64_t k, int64_t begin, const Partial& partial) const {
    if (d_ <= kNarrowSegment) {
      batch.s[k] = partial.s;
      batch.q[k] = partial.q;
    } else {  // two segments
      const Sums sums = folded(partial);
      batch.scalars.sum[k] = begin ? batch.scalars.sum[k] + sums.a : sums.a;
      batch.scalars.square_sum[k] = begin ? batch.scalars.square_sum[k] + sums.b : sums.b;
    }
  }
  HWY_INLINE void sum_row(Batch& batch, int64_t k) const {
    const T* const x = x_of(batch, k);
    for (int64_t begin = 0; begin < d_; begin += kNarrowSegment)
      set_sums(batch, k, begin, Method::segment_sums(x + begin, static_cast<size_t>(HWY_MIN(kNarrowSegment, d_ - begin)), ahead_));
  }

  // The same as finish_row_of() for all rows of a batch without its questions, which cost as much as a row of 64.
  HWY_INLINE void whole_batch(const Batch& done, Batch& next) {
    if (ahead_) return streams_ ? whole_batch<true, true>(done, next) : whole_batch<false, true>(done, next);
    return streams_ ? whole_batch<true, false>(done, next) : whole_batch<false, false>(done, next);
  }
  template <bool kStream, bool kAhead>
  HWY_INLINE void whole_batch(const Batch& done, Batch& next) {
    if constexpr (kHasParts) {
      if (parts_ == 1) return rows_of_parts<1, kStream, kAhead>(done, next);
      if (parts_ == 2) return rows_of_parts<2, kStream, kAhead>(done, next);
      if (parts_ == 3) return rows_of_parts<3, kStream, kAhead>(done, next);
      if (parts_ == 4) return rows_of_parts<4, kStream, kAhead>(done, next);
    }
    rows_of_parts<0, kStream, kAhead>(done, next);
  }
  template <size_t kCount, bool kStream, bool kAhead>  // kCount 0: of any number
  HWY_INLINE void rows_of_parts(const Batch& done, Batch& next) {
    const float *const gamma = gamma_, *const beta = beta_;
    const size_t n = static_cast<size_t>(d_);
    const int64_t rows = size_, ahead = ahead_, x_stride = task_.x_stride, y_stride = stages_ ? d_ : task_.y_stride;
    const T *x = x_of(done, 0), *later = x_of(next, 0);
    O* y = stages_ ? reinterpret_cast<O*>(stage_) : static_cast<O*>(task_.y) + done.first * y_stride;
    for (int64_t k = 0; k < rows; ++k, x += x_stride, later += x_stride, y += y_stride) {
      const Finish finish(done.scalars, static_cast<size_t>(k));
      Partial partial;
      if constexpr (kCount > 0)
        partial = Method::template finish_and_sum_parts<kCount, kStream, kAhead>(finish, x, y, gamma, beta, later, ahead);
      else
        partial = Method::template finish_and_sum<kStream, kAhead>(finish, x, y, gamma, beta, n, later, n, ahead);
      next.s[k] = partial.s;
      next.q[k] = partial.q;
    }
  }

  // Row k of `done` is finished, and row k of `next` summed, if there is one.
  HWY_INLINE void finish_row_of(const Batch& done, int64_t k, Batch& next) {
    const T* const x = x_of(done, k);
    O* const y = stages_ ? reinterpret_cast<O*>(stage_) + k * d_ : static_cast<O*>(task_.y) + (done.first + k) * task_.y_stride;
    const bool plain = done.scalars.plain >> k & 1;
    if (!plain || k >= next.rows) {
      if (k < next.rows) sum_row(next, k);
      const size_t n = static_cast<size_t>(d_);
      if (!plain) return finish_row(done.other[k], x, y, plain_gamma_, plain_beta_, n);
      return Method::template finish_columns<false>(Finish(done.scalars, static_cast<size_t>(k)), x, y, gamma_, beta_, n);
    }
    const T* const later = x_of(next, k);
    const Finish finish(done.scalars, static_cast<size_t>(k));
    for (int64_t begin = 0; begin < d_; begin += kNarrowSegment) {
      const size_t n = static_cast<size_t>(HWY_MIN(kNarrowSegment, d_ - begin));
      const size_t unaligned = before_stream(y + begin);
      const bool streams = streams_ && (Method::kAnyStart || unaligned == 0);
      const size_t head = streams ? HWY_MIN(unaligned, n) : 0;
      if (head)
        Method::template finish_columns<false>(finish, x + begin, y + begin, gamma_ + begin, beta_ + begin, head);
      const int64_t from = begin + static_cast<int64_t>(head);
      const Span span{finish, x + from, y + from, from, n - head, later + begin, n};
      set_sums(next, k, begin, ahead_ ? (streams ? both<true, true>(span) : both<false, true>(span))
                                      : (streams ? both<true, false>(span) : both<false, false>(span)));
    }
  }
  struct Span {
    const Finish& finish;
    const T* x;
    O* y;
    int64_t begin;
    size_t n;
    const T* later;
    size_t later_n;
  };
  template <bool kStream, bool kAhead>
  HWY_INLINE Partial both(const Span& s) const {
    return Method::template finish_and_sum<kStream, kAhead>(s.finish, s.x, s.y, gamma_ + s.begin, beta_ + s.begin, s.n, s.later, s.later_n, ahead_);
  }

  HWY_INLINE void set_scalars(Batch& batch) {
    NarrowBatch& scalars = batch.scalars;
    const size_t rows = static_cast<size_t>(batch.rows);
    if (d_ <= kNarrowSegment) {
      size_t k = 0;
      for (; k + kF64Lanes <= rows; k += kF64Lanes) {
        hn::Store(fold_rows(batch.s + k), F64(), scalars.sum + k);
        hn::Store(fold_rows(batch.q + k), F64(), scalars.square_sum + k);
      }
      for (; k < rows; ++k) {
        scalars.sum[k] = fold_vector(batch.s[k]);
        scalars.square_sum[k] = fold_vector(batch.q[k]);
      }
    }
    const bool statistics = wants_statistics(task_);
    if (statistics || task_.saved)  // else nobody looks at it
      set_first_elements(batch, scalars);
    scalars_from_sums<Method::kQuick>(inv_d_, task_.eps, rows, scalars);
    NarrowBatch quick;
    const NarrowBatch* records = &scalars;  // where their m and rstd are, of those in `recorded`
    if constexpr (kHasQuickSums<T> && !Method::kQuick) {
      if (task_.saved && has_quick_sums<T>(d_)) {
        set_quick_scalars(batch, quick);
        records = &quick;
      }
    }
    const uint32_t all = (1u << rows) - 1;
    const uint32_t recorded = !task_.saved ? all : has_quick_sums<T>(d_) ? recorded_rows(rows, *records) : records->plain;
    if (!statistics && scalars.plain == all && recorded == all) {  // at most records, as in training
      if (task_.saved) store_records(batch.first, rows, *records);
      return;
    }
    if constexpr (Method::kQuick) {
      // Statistics are to float64's accuracy, so that of a quick row they are made apart.
      if (task_.saved) store_records(batch.first, rows, scalars);
      return set_others(batch, statistics ? all : ~(scalars.plain & recorded) & all, recorded);
    } else {
      for (size_t k = 0; k < rows; ++k) {
        const bool enough = scalars.plain >> k & 1, is_recorded = recorded >> k & 1;
        const int64_t r = batch.first + static_cast<int64_t>(k);
        if (!enough) batch.other[k] = Method::other_row(x_of(batch, static_cast<int64_t>(k)), scalars, k, d_, task_.eps);
        const NarrowRow row = enough ? plain_row(scalars, k) : batch.other[k];
        store_statistics(task_, r, row);
        if (task_.saved) store_record(task_, r, is_recorded ? record(*records, k) : to_saved(row));
      }
    }
  }
  // Those rows of a quick batch by float64 sums, side by side too (64 features, 3 N(0,1) + 2, with records: 1.25 times as fast as
  // one by one).
  HWY_NOINLINE void set_others(Batch& batch, uint32_t which, uint32_t recorded) const {
    NarrowBatch wide;
    size_t row[kShortBatch], count = 0;
    for (size_t k = 0; which >> k != 0; ++k)
      if (which >> k & 1) row[count++] = k;
    for (size_t i = 0; i < count; ++i) {
      const T* const x = x_of(batch, static_cast<int64_t>(row[i]));
      const Sums sums = raw_sums(x, d_);
      wide.sum[i] = sums.a;
      wide.square_sum[i] = sums.b;
      wide.x0[i] = first_element(x);
    }
    size_t padded = count;  // to whole vectors, where they are made for several rows
    for (; size_ >= static_cast<int64_t>(kF64Lanes) && padded % kF64Lanes != 0; ++padded) {
      wide.sum[padded] = wide.sum[count - 1];
      wide.square_sum[padded] = wide.square_sum[count - 1];
      wide.x0[padded] = wide.x0[count - 1];
    }
    scalars_from_sums<false>(inv_d_, task_.eps, padded, wide);
    for (size_t i = 0; i < count; ++i) {
      const size_t k = row[i];
      const int64_t r = batch.first + static_cast<int64_t>(k);
      NarrowRow& other = batch.other[k];
      other = wide.plain >> i & 1 ? plain_row(wide, i)
                                  : exact_row(x_of(batch, static_cast<int64_t>(k)), d_, task_.eps, {wide.sum[i], wide.square_sum[i]});
      store_statistics(task_, r, other);
      if (task_.saved && !(recorded >> k & 1)) store_record(task_, r, to_saved(other));
    }
  }
  HWY_INLINE void set_first_elements(const Batch& batch, NarrowBatch& scalars) const {
    int64_t k = 0;
    for (; k + static_cast<int64_t>(kF64Lanes) <= batch.rows; k += static_cast<int64_t>(kF64Lanes))
      hn::Store(first_elements(F64(), x_of(batch, k), task_.x_stride), F64(), scalars.x0 + k);
    for (; k < batch.rows; ++k) scalars.x0[k] = first_element(x_of(batch, k));
  }
  HWY_INLINE void store_records(int64_t first, size_t rows, const NarrowBatch& batch) const {
    double* const saved = static_cast<double*>(task_.saved) + 2 * first;
    size_t k = 0;
    for (; k + kF64Lanes <= rows; k += kF64Lanes)
      hn::StoreInterleaved2(hn::Load(F64(), batch.m + k), hn::Load(F64(), batch.rstd + k), F64(), saved + 2 * k);
    for (; k < rows; ++k) store_record(task_, first + static_cast<int64_t>(k), record(batch, k));
  }
  static HWY_INLINE NarrowSaved record(const NarrowBatch& batch, size_t k) { return {batch.m[k], batch.rstd[k]}; }
  // For the records of rows whose y is of other sums.
  HWY_NOINLINE void set_quick_scalars(const Batch& batch, NarrowBatch& quick) const {
    for (int64_t k = 0; k < batch.rows; ++k) {
      const T* const x = x_of(batch, k);
      const Sums sums = quick_sums(x, d_);
      quick.sum[k] = sums.a;
      quick.square_sum[k] = sums.b;
      quick.x0[k] = first_element(x);
    }
    scalars_from_sums<true>(inv_d_, task_.eps, static_cast<size_t>(batch.rows), quick);
  }

  const ForwardTask& task_;
  const float *const plain_gamma_, *const plain_beta_, *const gamma_, *const beta_;
  const int64_t d_, size_;
  const double inv_d_ = 1.0 / static_cast<double>(d_);
  int64_t parts_;          // of rows of so many whole parts; 0: longer or odd ones
  bool stages_, streams_;  // by way of the buffer, or straight; neither: the caches hold y
  bool whole_rows_;        // rows of one segment, and each begins where it may be streamed to
  int64_t rows_ahead_, ahead_ = 0;
  Batch ring_[3];
  alignas(64) uint8_t stage_[kStageBytes];
};

// The longest rows of which L1 holds two with the parameters (float32, from memory, Zen 4: 1280 features 38 GB/s this way, 29 the
// other; 1536 features 31 and 38; 2048 in the caches 39 and 46).
constexpr int64_t kShortBytes = 5120;

// float32 and half types
template <class T, class O>
HWY_NOINLINE void forward_narrow_rows(const ForwardTask& task) {
  Parameter<T> gamma(task.gamma, task.d, 1.0f);
  Parameter<T> beta(task.beta, task.d, -0.0f);
  // Looking at the parameters costs a few rows what it brings them.
  const bool finite = task.rows >= 4 && gamma.all_finite(task.d) && beta.all_finite(task.d);
  if (task.d > HWY_MIN(kShortColumns, kShortBytes / static_cast<int64_t>(sizeof(T))) || !finite || !task.y) return forward_long_rows<T, O>(task, gamma, beta, finite);
  const size_t d = static_cast<size_t>(task.d);
  const float* const g = gamma.block(0, d);
  const float* const b = beta.block(0, d);
  if constexpr (kIsQuick<T, O>) {
    if (has_quick_sums<T>(task.d)) {
      SplitParameters parameters;
      parameters.set(g, b, d);
      return ShortRows<QuickRows>(task, g, b, parameters.gamma, parameters.beta)();
    }
  }
  if constexpr (kHasFloatSums<T>) {
    if (wants_float_sums<T>(task)) return ShortRows<NarrowRows<T, O, HalfF64>>(task, g, b, g, b)();
  }
  ShortRows<NarrowRows<T, O>>(task, g, b, g, b)();
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

#endif  // TRUENORM_SHORT_ROWS_INL_H_

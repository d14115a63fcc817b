// Forward for float32 and half rows that are too long for short_rows-inl.h, few, or with parameters that are not finite:
// a row's statistics, and then its elements, block by block of columns, while the next row is summed.
#if defined(TRUENORM_LONG_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_LONG_ROWS_INL_H_
#undef TRUENORM_LONG_ROWS_INL_H_
#else
#define TRUENORM_LONG_ROWS_INL_H_
#endif

#include <type_traits>

#include "float_sums-inl.h"
#include "forward-inl.h"
#include "quick-inl.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {

// Columns of one row by its kind. Whether y goes around the caches and gamma and beta are finite is known of all rows.
template <class Finish, class T, class O>
HWY_INLINE void finish_columns_of(const Finish& finish, const T* x, O* y, const float* gamma, const float* beta, size_t n, bool finite,
                                  bool streams) {
  if (streams && finite) stream_block(finish, x, y, gamma, beta, n);
  else if (finite) finish_block<true>(finish, x, y, gamma, beta, n);
  else finish_block<false>(finish, x, y, gamma, beta, n);
}
template <class T, class O>
HWY_INLINE void finish_columns_of(const NarrowRow& row, const T* x, O* y, const float* gamma, const float* beta, size_t n, bool finite,
                                  bool streams) {
  if (row.kind != RowKind::Plain) finish_row(row, x, y, gamma, beta, n);
  else finish_columns_of(PlainFinish(row), x, y, gamma, beta, n, finite, streams);
}

// The sums of a row of one kind of rows, segment by segment, and what its y is made of.
template <class T, class O, class D = void>  // D: as NarrowRows has it
struct NarrowTurn {
  NarrowRow row;
  static HWY_INLINE Sums segment_sums(const T* x, size_t n, int64_t ahead) {
    if constexpr (!std::is_void_v<D>) return folded(segment_float_sums<D>(x, n, ahead));
    else return folded(segment_partial_sums(x, n, ahead));
  }
  HWY_INLINE void set(const ForwardTask& task, int64_t r, const T* x, const Sums& sums) {
    if (!narrow_row_from_sums(sums, first_element(x), task.d, task.eps, row)) row = exact_row(x, task.d, task.eps, sums);
    store_statistics(task, r, row);
    if (task.saved) store_record(task, r, to_saved(row));
  }
  HWY_INLINE void finish(const T* x, O* y, const float* gamma, const float* beta, size_t n, bool finite, bool streams) const {
    finish_columns_of(row, x, y, gamma, beta, n, finite, streams);
  }
};
struct QuickTurn {
  QuickRow quick;
  NarrowRow row;
  static HWY_INLINE Sums segment_sums(const BFloat16* x, size_t n, int64_t ahead) { return folded(quick_segment_sums(x, n, ahead)); }
  HWY_INLINE void set(const ForwardTask& task, int64_t r, const BFloat16* x, const Sums& sums) {
    quick = quick_row_from_sums(sums, first_element(x), task.d, task.eps);
    const bool records = !task.saved || quick.recorded;
    if (!quick.enough || !records || wants_statistics(task)) {
      row = row_statistics(x, task.d, task.eps);
      store_statistics(task, r, row);
    }
    if (task.saved) store_record(task, r, quick.recorded ? quick.saved : to_saved(row));
  }
  HWY_INLINE void finish(const BFloat16* x, BFloat16* y, const float* gamma, const float* beta, size_t n, bool finite, bool streams) const {
    if (quick.enough) finish_columns_of(QuickFinish(quick), x, y, gamma, beta, n, finite, streams);
    else finish_columns_of(row, x, y, gamma, beta, n, finite, streams);
  }
};

// Rows go in steps of kRows: one step's rows are finished while the next one's are summed, block by block of columns, so that reading
// and writing go on together. (Intel with AVX-512, one row a step: 256 x 16384 10 % faster than row after row, float32 7 x 65537 11 %,
// 512 x 2048 8 %. bfloat16 does without gamma and beta split, 7 x 65537 40 %, 1 x 4096 32 %.)
template <int64_t kRows, class Turn, class T, class O>
HWY_NOINLINE void forward_rows_in_steps(const ForwardTask& task, Parameter<T>& gamma, Parameter<T>& beta, bool finite) {
  static_assert(kColumns == kNarrowSegment);
  const int64_t d = task.d, ahead = kAheadBytes / static_cast<int64_t>(sizeof(T)), steps_ahead = ahead / d + 2;
  const int64_t x_step = kRows * task.x_stride, y_step = kRows * task.y_stride;
  // Rows that long are finished from the last cache, which what is fetched from memory holds up (Zen 4, float32, without: 16 x 1048576
  // 1.14 times as fast, 128 x 131072 1.07; but 256 x 65536 0.62).
  const bool may_fetch = task.traffic.from_memory && d * static_cast<int64_t>(sizeof(T)) < kMostFetchedBytes;
  const bool streams = task.traffic.past_caches;
  const T* x = static_cast<const T*>(task.x);
  O* y = static_cast<O*>(task.y);
  Turn turn[kRows];
  for (int64_t r = -kRows; r < task.rows; r += kRows) {  // -kRows: there are none to finish yet
    const int64_t rows = r < 0 ? 0 : HWY_MIN(kRows, task.rows - r);
    const int64_t later_rows = HWY_MAX(HWY_MIN(kRows, task.rows - r - kRows), int64_t{0});
    const bool fetches = may_fetch && r + (1 + steps_ahead) * kRows <= task.rows;
    const T* const later = x + (r < 0 ? 0 : x_step);
    Tree<Sums> sums[kRows];
    for (int64_t begin = 0; begin < d; begin += kColumns) {
      const size_t n = static_cast<size_t>(HWY_MIN(kColumns, d - begin));
      const bool within = begin + ahead + static_cast<int64_t>(n) <= d;  // else it is the rows of the step after that
      const int64_t distance = !fetches ? 0 : within ? ahead : ahead + x_step - d;
      for (int64_t k = 0; k < later_rows; ++k) sums[k].push(Turn::segment_sums(later + k * task.x_stride + begin, n, distance));
      if (r < 0) continue;
      const float* const g = gamma.block(begin, n);
      const float* const b = beta.block(begin, n);
      for (int64_t k = 0; k < rows; ++k)
        turn[k].finish(x + k * task.x_stride + begin, y + k * task.y_stride + begin, g, b, n, finite, streams);
    }
    if (r >= 0) y += y_step;
    x = later;
    for (int64_t k = 0; k < later_rows; ++k) turn[k].set(task, r + kRows + k, x + k * task.x_stride, sums[k].total());
  }
  if (streams) hwy::FlushStream();
}

// Rows in the caches go a few together, so that a block of gamma and beta comes to L1 once for all of them: for one row these are as
// many bytes as x and y, for a half row twice as many. (Zen 4, float32: 3 x 5000 1.2 times as fast, 64 x 2048 1.16, 512 x 4096 and
// 7 x 65537 1.14; float16 and bfloat16, 7 x 65537 1.08. But from memory 16384 x 4096 0.8 times.) Of shorter rows L1 keeps the parameters
// beside two rows of x and one of y (float32, 100 x 1500: 0.92 times as fast in fours, bfloat16, 100 x 2500, 0.95). Without AVX-512
// bfloat16 rows wait for arithmetic (7 x 65537 0.94).
template <class T>
constexpr int64_t kStepRows = HWY_CAP_GE512 || !kHasQuickSums<T> ? 4 : 1;
constexpr int64_t kLeastStepBytes = int64_t{40} << 10;
template <class Turn, class T, class O>
HWY_INLINE void forward_rows_in_turn(const ForwardTask& task, Parameter<T>& gamma, Parameter<T>& beta, bool finite) {
  constexpr int64_t kColumnBytes = static_cast<int64_t>(2 * sizeof(T) + sizeof(O) + 2 * sizeof(float));
  if (task.rows > 1 && !task.traffic.far && task.d * kColumnBytes >= kLeastStepBytes)
    forward_rows_in_steps<kStepRows<T>, Turn, T, O>(task, gamma, beta, finite);
  else
    forward_rows_in_steps<1, Turn, T, O>(task, gamma, beta, finite);
}

// One row at a time, or as many as make the conversion of parameters worth its while.
template <class T, class O>
HWY_NOINLINE void forward_long_rows(const ForwardTask& task, Parameter<T>& gamma, Parameter<T>& beta, bool finite) {
  const int64_t d = task.d, most = gamma.converts() || beta.converts() ? group_rows<T>(d) : 1;
  const int64_t group = HWY_MIN(most, task.rows);
  const bool quick_y = kIsQuick<T, O> && task.y && has_quick_sums<T>(d), quick_record = task.saved && has_quick_sums<T>(d);
  if (group == 1 && task.y) {
    if constexpr (kIsQuick<T, O>) {
      if (quick_y) return forward_rows_in_turn<QuickTurn, T, O>(task, gamma, beta, finite);
    }
    if constexpr (kHasFloatSums<T> || kHasHalfSums<T>) {
      if (wants_float_sums<T>(task)) return forward_rows_in_turn<NarrowTurn<T, O, HalfF64>, T, O>(task, gamma, beta, finite);
    }
    if (!quick_record) return forward_rows_in_turn<NarrowTurn<T, O>, T, O>(task, gamma, beta, finite);
  }
  const bool streams = task.traffic.past_caches;
  NarrowRow row[kBatch];
  QuickRow quick[kBatch] = {};
  for (int64_t first = 0; first < task.rows; first += group) {
    const int64_t rows = HWY_MIN(group, task.rows - first);
    const T* x = static_cast<const T*>(task.x) + first * task.x_stride;
    const bool fetches = task.traffic.from_memory && d * static_cast<int64_t>(sizeof(T)) <= kMostFetchedBytes && first + 2 * group <= task.rows;
    const int64_t ahead = fetches ? group * task.x_stride : 0;
    for (int64_t k = 0; k < rows; ++k) {
      const T* const x_row = x + k * task.x_stride;
      if (quick_y || quick_record) quick[k] = quick_row_of(x_row, d, task.eps, ahead);
      const bool finishes = quick_y ? quick[k].enough : task.y == nullptr, records = !task.saved || quick[k].recorded;
      if (!finishes || !records || wants_statistics(task)) {
        row[k] = row_statistics(x_row, d, task.eps, quick_y || quick_record ? 0 : ahead);
        store_statistics(task, first + k, row[k]);
      }
      if (task.saved) store_record(task, first + k, quick[k].recorded ? quick[k].saved : to_saved(row[k]));
    }
    if (task.y == nullptr) continue;
    O* const y = static_cast<O*>(task.y) + first * task.y_stride;
    for (int64_t begin = 0; begin < d; begin += kColumns) {
      const size_t n = static_cast<size_t>(HWY_MIN(kColumns, d - begin));
      const float* const g = gamma.block(begin, n);
      const float* const b = beta.block(begin, n);
      for (int64_t k = 0; k < rows; ++k) {
        const T* const x_block = x + k * task.x_stride + begin;
        O* const y_block = y + k * task.y_stride + begin;
        if constexpr (kIsQuick<T, O>) {
          if (quick[k].enough) {
            finish_columns_of(QuickFinish(quick[k]), x_block, y_block, g, b, n, finite, streams);
            continue;
          }
        }
        finish_columns_of(row[k], x_block, y_block, g, b, n, finite, streams);
      }
    }
  }
  if (streams) hwy::FlushStream();
}

}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_LONG_ROWS_INL_H_

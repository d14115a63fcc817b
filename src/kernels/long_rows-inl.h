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

// Each row is finished while the next one is summed, a segment at a time, so that reading and writing go on together. (Intel with
// AVX-512: 256 x 16384 10 % faster than row after row, float32 7 x 65537 11 %, 512 x 2048 8 %. bfloat16 does without gamma and beta
// split, 7 x 65537 40 %, 1 x 4096 32 %.)
template <class Turn, class T, class O>
HWY_NOINLINE void forward_rows_in_turn(const ForwardTask& task, Parameter<T>& gamma, Parameter<T>& beta, bool finite) {
  static_assert(kColumns == kNarrowSegment);
  const int64_t d = task.d, ahead = kAheadBytes / static_cast<int64_t>(sizeof(T)), rows_ahead = ahead / d + 2;
  const bool streams = task.traffic.past_caches;
  const T* x = static_cast<const T*>(task.x);
  O* y = static_cast<O*>(task.y);
  Turn turn;
  for (int64_t r = -1; r < task.rows; ++r) {  // -1: there is none to finish yet
    const bool has_later = r + 1 < task.rows, fetches = task.traffic.from_memory && r + rows_ahead < task.rows;
    const T* const later = x + (r < 0 ? 0 : task.x_stride);
    Tree<Sums> sums;
    for (int64_t begin = 0; begin < d; begin += kColumns) {
      const size_t n = static_cast<size_t>(HWY_MIN(kColumns, d - begin));
      if (has_later) {
        const bool within = begin + ahead + static_cast<int64_t>(n) <= d;  // else it is the row after that
        sums.push(Turn::segment_sums(later + begin, n, !fetches ? 0 : within ? ahead : ahead + task.x_stride - d));
      }
      if (r >= 0) turn.finish(x + begin, y + begin, gamma.block(begin, n), beta.block(begin, n), n, finite, streams);
    }
    if (r >= 0) y += task.y_stride;
    x = later;
    if (has_later) turn.set(task, r + 1, x, sums.total());
  }
  if (streams) hwy::FlushStream();
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

// How work is cut into tasks. Nothing here changes a bit of any result.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/kernels.h"
#include "threads.h"

namespace truenorm {

// Below this many bytes moved, a thread that must be woken costs more than it brings: on two cores of a virtual machine it
// arrives after some 50 us (forward, float32, 2 threads to 1: 0.7 at 0.8 MB, 1.0 at 1.6 MB, 1.3 at 3 MB). A caller's own
// executor, or threads that stay awake, are quicker: there it is what the tasks themselves cost.
inline constexpr int64_t kSerialBytes = int64_t{2} << 20, kAwakeSerialBytes = 192 << 10;

inline Threads threads_for(const Threads& threads, int64_t bytes) {
  return bytes < (threads.executor || threads_stay_awake() ? kAwakeSerialBytes : kSerialBytes) ? Threads{1, nullptr} : threads;
}

// Inputs of more than a core's caches come from memory; outputs of more than what is read again soon go there.
inline constexpr int64_t kFromMemoryBytes = int64_t{1} << 20, kPastCachesBytes = int64_t{4} << 20, kFarBytes = int64_t{32} << 20;
inline Traffic traffic_of(int64_t input_bytes, int64_t output_bytes) {
  return {input_bytes >= kFromMemoryBytes, output_bytes >= kPastCachesBytes, input_bytes + output_bytes >= kFarBytes};
}

// Tasks of whole units: four a thread, so that a thread that comes late or is disturbed does less.
inline int64_t task_count(const Threads& threads, int64_t units) {
  return threads.count == 1 ? 1 : std::min<int64_t>(units, 4 * int64_t{threads.count});
}
// The first unit of task i out of `tasks`.
inline int64_t task_begin(int64_t i, int64_t tasks, int64_t units) { return units / tasks * i + units % tasks * i / tasks; }

// Calls range(begin, end) for all units, cut into tasks.
template <class Range>
void share(const Threads& threads, int64_t units, const Range& range) {
  const int64_t tasks = task_count(threads, units);
  if (tasks == 1) return range(0, units);
  parallel_for(threads, tasks, [&](int64_t i) { range(task_begin(i, tasks, units), task_begin(i + 1, tasks, units)); });
}

// Few long rows are shared by their pieces.
inline bool rows_are_long(const Threads& threads, int64_t rows, int64_t d) {
  return threads.count > 1 && rows < 4 * int64_t{threads.count} && d >= 2 * kPiece;
}

// At most 64 pieces, each a power of two of kPiece.
struct Pieces {
  static constexpr int64_t kMax = 64;
  int64_t size = kPiece;
  int64_t count;
  explicit Pieces(int64_t d) {
    while ((d + size - 1) / size > kMax) size *= 2;
    count = (d + size - 1) / size;
  }
};

// All sums of one row. `dy` is null in forward; `variant` as in LongRowKernels.
inline void sum_long_row(const Threads& threads, const LongRowKernels& kernels, const void* x, const void* dy, int variant,
                         const ParameterRef& gamma, int64_t d, double eps, LongRow& row) {
  const Pieces pieces(d);
  Part parts[Pieces::kMax];
  do {
    parallel_for(threads, pieces.count, [&](int64_t i) {
      kernels.sums[variant](x, dy, gamma, row, i * pieces.size, std::min(d, (i + 1) * pieces.size), parts[i]);
    });
  } while (kernels.advance(parts, pieces.count, d, eps, row));
}

// Calls columns(begin, end) over all features of long rows.
template <class Columns>
void share_columns(const Threads& threads, int64_t d, const Columns& columns) {
  share(threads, (d + kColumns - 1) / kColumns,
        [&](int64_t begin, int64_t end) { columns(begin * kColumns, std::min(d, end * kColumns)); });
}

}  // namespace truenorm

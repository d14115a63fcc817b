// Rows of several operands with strides over up to 8 leading dimensions, walked as runs of one stride each.
#pragma once

#include <cstdint>

#include "truenorm/truenorm.h"

namespace truenorm {

// Leading dimensions with a stride per operand, in elements of that operand. Those beyond `rank` are not set.
template <int kOperands>
struct Rows {
  int32_t rank = 0;
  int64_t count = 1;
  int64_t dims[TRUENORM_MAX_RANK];
  int64_t strides[kOperands][TRUENORM_MAX_RANK];

  // Appends a dimension inside the others. Sizes of 1 vanish, and a dimension that continues the one before it in every
  // operand is merged into that: so contiguous operands end up as one run.
  void append(int64_t size, const int64_t (&stride)[kOperands]) {
    count *= size;
    if (size == 1) return;
    bool continues = rank > 0;
    for (int i = 0; i < kOperands && continues; ++i) continues = strides[i][rank - 1] == stride[i] * size;
    if (!continues) {
      dims[rank] = 1;
      ++rank;
    }
    dims[rank - 1] *= size;
    for (int i = 0; i < kOperands; ++i) strides[i][rank - 1] = stride[i];
  }

  // Calls visit(row, offset, run) for the runs that make up rows [begin, end) in order: the number of the run's first row,
  // the operands' offsets there, and the run's number of rows; within a run operand i advances by step(i).
  template <class Visit>
  void for_runs(int64_t begin, int64_t end, const Visit& visit) const {
    const int64_t inner = rank ? dims[rank - 1] : 1;
    while (begin < end) {
      int64_t offset[kOperands] = {};
      int64_t rest = begin, left = inner;
      for (int32_t k = rank - 1; rest > 0; --k) {
        const int64_t index = rest % dims[k];
        rest /= dims[k];
        if (k == rank - 1) left -= index;
        for (int i = 0; i < kOperands; ++i) offset[i] += index * strides[i][k];
      }
      const int64_t run = left < end - begin ? left : end - begin;
      visit(begin, offset, run);
      begin += run;
    }
  }
  int64_t step(int operand) const { return rank ? strides[operand][rank - 1] : 0; }
};

}  // namespace truenorm

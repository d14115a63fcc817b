// Whether two strided sets of rows share a byte.
#pragma once

#include <cstdint>

#include "truenorm/truenorm.h"

namespace truenorm {

// Rows of `bytes` bytes at data + sum(index * strides), strides in bytes. Dimensions beyond `rank` are not set: setting
// them cost a call of a few rows a third of a microsecond.
struct ByteRows {
  ByteRows(const void* at, int64_t row_bytes) : data(reinterpret_cast<intptr_t>(at)), bytes(row_bytes), rank(0) {}
  void add(int64_t dim, int64_t stride) {
    dims[rank] = dim;
    strides[rank++] = stride;
  }
  intptr_t data;
  int64_t bytes;
  int32_t rank;
  int64_t dims[TRUENORM_MAX_RANK];
  int64_t strides[TRUENORM_MAX_RANK];
};

// Exact for all layouts that people use; where finding out would take too long, true.
bool overlap(const ByteRows& a, const ByteRows& b);
// Whether two different rows of one operand share a byte.
bool rows_overlap(const ByteRows& rows);

}  // namespace truenorm

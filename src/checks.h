// Arguments of the C interface: each check names the argument, its value and what was expected.
#pragma once

#include <cstdint>

#include "threads.h"
#include "truenorm/truenorm.h"

namespace truenorm {

truenorm_status check_shape(const truenorm_shape* shape);
truenorm_status check_eps(double eps);

struct Options {
  bool accumulate = false;
  Threads threads{1, nullptr};
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  int isa_level = 0;
  int64_t rows_before = 0, rows_in_all = 0;
};
truenorm_status check_options(const truenorm_options* given, Options* options);

// An operand with its name, as the checks and their messages need it.
struct Operand {
  const char* name;
  const void* data;
  truenorm_dtype dtype;
  int64_t strides[TRUENORM_MAX_RANK];  // those beyond the shape's rank are not set
  int64_t low, high;  // the addresses that its bytes lie between, once check_operand() has passed it
};

// `shared`: without strides one vector serves all rows (parameters); else rows follow one another.
Operand operand(const char* name, const truenorm_shape& shape, const truenorm_input& input, bool shared);
Operand operand(const char* name, const truenorm_shape& shape, const truenorm_output& output, bool shared);

truenorm_status check_dtype(const Operand& operand);
// Pointer aligned, all offsets within 2^62 bytes. The type has been checked.
truenorm_status check_operand(const truenorm_shape& shape, Operand& operand);
truenorm_status check_required(const Operand& operand);
// The operand's type is x's, or `also` when x is a half type (0: no other).
truenorm_status check_pair(const Operand& operand, const Operand& x, truenorm_dtype also);
// Rows of an output do not overlap one another. `summed`: dimensions of stride 0 are sums, not repeated writes.
truenorm_status check_output_rows(const truenorm_shape& shape, const Operand& output, bool summed);
// The output does not overlap the operand; may_be_same: except when both are the same in pointer, type and strides.
truenorm_status check_overlap(const truenorm_shape& shape, const Operand& output, const Operand& other, bool may_be_same);
// The same for a plain array of bytes.
truenorm_status check_overlap(const truenorm_shape& shape, const Operand& output, const char* name, const void* data, std::size_t bytes);

inline bool is_half(truenorm_dtype dtype) { return dtype == TRUENORM_FLOAT16 || dtype == TRUENORM_BFLOAT16; }

inline int64_t row_count(const truenorm_shape& shape) {
  int64_t rows = 1;
  for (int32_t k = 0; k < shape.rank; ++k) rows *= shape.dims[k];
  return rows;
}

// What truenorm_dtype_size() says, without a call of it.
inline int64_t size_of(truenorm_dtype dtype) {
  switch (dtype) {
    case TRUENORM_FLOAT32: return 4;
    case TRUENORM_FLOAT64: return 8;
    case TRUENORM_FLOAT16:
    case TRUENORM_BFLOAT16: return 2;
  }
  return 0;
}

}  // namespace truenorm

// What the kernels of one instruction set offer to the rest of the library. Rows here are runs with one stride and
// contiguous features; layouts, threads and checks are the caller's. Kernels never allocate, and assume the default
// rounding mode.
#pragma once

#include "truenorm/truenorm.h"
#include "types.h"

namespace truenorm {

// A parameter vector. data == nullptr: absent. own_type: a half row's parameter is of the row's type (else float32).
struct ParameterRef {
  const void* data;
  bool own_type;
};

// How the data is expected to move. Only speed depends on it.
struct Traffic {
  bool from_memory;  // inputs are not in the caches: fetch the next rows while these are summed
  bool past_caches;  // outputs are larger than the caches: write them around these, which saves reading them first
  bool far;          // more than the last cache holds: what limits is how well memory is kept at work
};

// What this CPU does that others of its level do not. Only speed depends on it.
struct Machine {
  bool half_vectors;     // executes vectors of 512 bits as two halves: those of 256 bits are converted from memory in half as many steps
  bool fences_reads;     // reads memory faster where loads wait for those before them (float32, dx alone, 16384 x 4096: 22.7 -> 29.5 GB/s)
  bool rounds_bfloat16;  // has the instruction for it, which flushes subnormal numbers
};

// `rows` rows of d features; strides in elements. Statistics pointers may be null.
struct ForwardTask {
  const void* x;
  void* y;  // null: statistics only
  int64_t rows, d, x_stride, y_stride;
  ParameterRef gamma, beta;
  double eps;
  double *mean, *var, *rstd;
  void* saved;
  Traffic traffic;
  Machine machine;
};

struct BackwardTask {
  const void *dy, *x;
  void* dx;      // null: not wanted
  bool half_dx;  // dx is of a half type, or not wanted and x is
  int64_t rows, d, dy_stride, x_stride, dx_stride;
  ParameterRef gamma;
  double eps;
  const void* saved;   // one record a row, or null: computed again
  GradRow* grad_rows;  // one a row: filled by the sums, read by the columns
  // Totals over the rows, added to; padded to whole sixteens. Float64 rows also have the totals' errors. Null: not wanted.
  double *dgamma, *dbeta, *dgamma_error, *dbeta_error;
  bool begins;  // they begin with these rows, at +0, and what they hold is not read
  float *dgamma_rounded, *dbeta_rounded;  // null, or they end with these rows and are rounded to here, with feature 0 first
  Traffic traffic;
  Machine machine;
};

// A long row in pieces, so that threads share it. A piece starts at a multiple of kPiece elements, so that its sums are
// a subtree of the row's. One step of sums after another is made over all pieces until none is left to do.
inline constexpr int64_t kPiece = int64_t{1} << 16;
struct Part {
  Sums sums;
  double error;  // float64 rows: of the sum of c*c
  uint32_t sizes;
};
struct LongRow {
  int32_t step;  // the kernels' business
  bool backward;
  bool statistics;  // those from float64 sums are needed, for what is wanted or for y
  bool records;     // the record is needed
  QuickRow quick;   // bfloat16 rows
  GradRow grad;
};
struct LongRowKernels {
  // Starts on row 0 of a task [y is float32 for half x], with its saved record if there is one.
  void (*begin_forward[2])(const ForwardTask& task, LongRow& row);
  void (*begin_backward)(const BackwardTask& task, LongRow& row);
  // The sums of features [begin, end) for the current step. [dy is float32 for half x]; forward passes 0 for dy.
  void (*sums[2])(const void* x, const void* dy, const ParameterRef& gamma, const LongRow& row, int64_t begin, int64_t end, Part& part);
  // Merges the parts and moves on: true while another step of sums is needed.
  bool (*advance)(const Part* parts, int64_t count, int64_t d, double eps, LongRow& row);
  void (*store_statistics)(const ForwardTask& task, const LongRow& row);
  // y of features [begin, end). [y is float32 for half x]
  void (*finish[2])(const ForwardTask& task, const LongRow& row, int64_t begin, int64_t end);
};

// The kernels of one type of x on one instruction set. Second entries are for half x with y, dy or dx in float32.
struct TypeKernels {
  const char* isa;
  // All of forward for the task's rows. [y]
  void (*forward[2])(const ForwardTask& task);
  // All of backward for the task's rows, without grad_rows. [dy][dx]
  void (*backward[2][2])(const BackwardTask& task);
  // The same in two steps, so that threads may share few rows by columns: fills grad_rows [dy], then
  // dx and the totals of features [begin, end), rows in order [dy][dx]; the totals' first element is feature `begin`.
  void (*backward_sums[2])(const BackwardTask& task);
  void (*backward_columns[2][2])(const BackwardTask& task, int64_t begin, int64_t end);
  // to = merge(to, from) of totals; errors null but for float64 rows. n is padded to whole sixteens.
  void (*merge_totals)(double* to, double* to_error, const double* from, const double* from_error, int64_t n);
  // Each total rounded once to `type`; added to what is there when accumulating.
  void (*round_totals)(const double* total, const double* error, void* out, truenorm_dtype type, bool accumulate, int64_t n);
  LongRowKernels long_row;
};

// One entry per instruction set in this build, best first; ends with nullptr.
extern const TypeKernels* const kFloat32Kernels[];
extern const TypeKernels* const kFloat64Kernels[];
extern const TypeKernels* const kFloat16Kernels[];
extern const TypeKernels* const kBFloat16Kernels[];

}  // namespace truenorm

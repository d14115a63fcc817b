// Types that the kernels and their callers share. Included once, before any target: plain data and constants only, so
// that nothing here is compiled for an instruction set that the machine may not have.
#pragma once

#include <cstddef>
#include <cstdint>

namespace truenorm {

struct Float16 {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

// Elements per segment of a row sum (docs/numerics.md). Segments are also what threads share of a long row.
inline constexpr int64_t kNarrowSegment = 1024;  // float32 and half rows
inline constexpr int64_t kWideSegment = 128;     // float64 rows
// Columns of a block: whole segments of either kind, and 4 KiB of float32 parameters.
inline constexpr int64_t kColumns = kNarrowSegment;
static_assert(kColumns % kWideSegment == 0);

// Two sums over a row or a part of it: of x and x*x, of c and c*c, of g and g*x_hat.
struct Sums {
  double a;
  double b;
};

// Sums of c and c*c of a float64 row, and what adding up the latter has lost so far.
struct CentredTotal {
  Sums sums;
  double error;
};

enum class RowKind : int32_t {
  Plain,  // float32 rows: finished in float32; float64 rows: no scaling
  Exact,  // float32 rows: finished in float64; float64 rows: scaled by powers of two
};

// What the finish of a float32 or half row needs. Plain: x_hat = fma(x - hi, r, b) in float32.
// Exact: x_hat = ((x - x0) - m) * rstd in float64. NaN rows are exact with m and rstd NaN.
struct NarrowRow {
  double x0, m, rstd;
  double mean, var;
  float hi, r, b;
  RowKind kind;
};

// The same of a few rows side by side, as vectors make it. Bit k of `plain`: row k is plain; others are summed again.
inline constexpr int64_t kBatch = 8, kShortBatch = 16;
struct NarrowBatch {
  alignas(64) double sum[kShortBatch], square_sum[kShortBatch], x0[kShortBatch];
  alignas(64) double mean[kShortBatch], var[kShortBatch], rstd[kShortBatch], m[kShortBatch];
  alignas(64) float hi[kShortBatch], r[kShortBatch], b[kShortBatch];
  uint32_t plain;
};

// What forward keeps of a row for backward. The sign bit of rstd marks exact rows. Made from
// float32 sums, rstd is a float32 number.
struct NarrowSaved {
  double m, rstd;
};
struct WideSaved {
  double hi, lo, rstd;
};

// What the finish of a bfloat16 row needs whose float32 sums were enough: x_hat = fma(x, r, b). Its record where they were
// enough for that, too; then they were for y.
struct QuickRow {
  float r, b;
  bool enough, recorded;
  NarrowSaved saved;
};

// What the finish of a float64 row needs: x_hat = ((x*pre - hi)*post - lo) * r, pre = post = 1 when plain.
struct WideRow {
  double x0, pre, hi, post, lo, r;
  double mean, mean_lo, var, rstd;
  RowKind kind;
  bool recentred;
};

// A row and the scalars of its gradient: dx = ((g - A) - x_hat*B) * rstd.
struct NarrowGrad {
  NarrowRow row;
  double A, B;
  float minus_Ar, minus_Kr;  // plain rows: dx = fma(c, minus_Kr, fma(g, r, minus_Ar))
  bool half_dx;  // half rows: whether dx is of a half type, too; decides how g is summed
};
// Of a batch of plain rows, side by side: made by vectors, read one by one (signs changed row by row cost float16 rows of 8 to 24
// 4 to 6 % of backward).
inline constexpr int64_t kGradBatch = 32;
struct GradScalars {
  alignas(64) float hi[kGradBatch], r[kGradBatch], b[kGradBatch], minus_Ar[kGradBatch], minus_Kr[kGradBatch];
};
struct WideGrad {
  WideRow row;
  double A, B;
};
union GradRow {
  NarrowGrad narrow;
  WideGrad wide;
};

}  // namespace truenorm

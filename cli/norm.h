// SPDX-License-Identifier: Apache-2.0
//
// The commands' way into the library.
#ifndef TRUENORM_CLI_NORM_H_
#define TRUENORM_CLI_NORM_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "parameter.h"
#include "truenorm/truenorm.h"

namespace truenorm::cli {

struct RowStatistics {
  std::vector<double> mean, var, rstd;
};

// What stays the same for all rows of a file.
struct Norm {
  int64_t d = 0;
  truenorm_dtype x_dtype = TRUENORM_FLOAT32;
  truenorm_dtype y_dtype = TRUENORM_FLOAT32;
  GammaBeta parameters;
  double eps = 1e-5;
  int num_threads = 0;
  Place place = Place::kMemory;  // of the rows: a call on mapped ones never has many of their pages in memory

  // Rows one after another. y may be x, or null; statistics may be null too. A call that fails is a BadInput with the
  // library's own message.
  void operator()(int64_t rows, const void* x, void* y, RowStatistics* statistics) const;

  // The same message, if any, before there are rows.
  void refuse_types() const;
};

// Likewise for the gradients of `rows` rows, which may come in pieces: the library's own bits, however many those are.
struct GradientTypes {
  truenorm_dtype dy = TRUENORM_FLOAT32, dx = TRUENORM_FLOAT32, parameters = TRUENORM_FLOAT32;
};
class Backward {
 public:
  Backward(const Norm& norm, const GradientTypes& types, int64_t rows, bool wants_dgamma, bool wants_dbeta);

  // The next rows, in order. dx may be null or dy itself.
  void operator()(int64_t rows, const void* dy, const void* x, void* dx);

  // Summed over all rows, once those are there. Empty when not wanted.
  Bytes dgamma, dbeta;

 private:
  void add(int64_t rows, const void* dy, const void* x, void* dx);
  truenorm_options options() const;

  const Norm& norm_;
  GradientTypes types_;
  int64_t rows_, done_ = 0;
  Bytes workspace_;
};

// One row of float64, gamma = 1 and beta = 0 where they are empty.
struct NormalizedRow {
  double mean = 0, var = 0, rstd = 0;
  std::vector<double> y;
};
NormalizedRow normalize_row(std::span<const double> x, std::span<const double> gamma, std::span<const double> beta,
                            double eps);

// The mean of one row of finite numbers of any size.
double mean_of_row(std::span<const double> x);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_NORM_H_

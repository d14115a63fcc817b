// SPDX-License-Identifier: Apache-2.0
// The exact answer, and how far a result is from it in the units of the contract (docs/numerics.md).
//
// Everything is MPFR arithmetic on the inputs taken as exact numbers. Sums and squares of a row are exact: 700 bits
// hold the whole range of float32 (277 bits of exponents, doubled by squaring, plus 20 for a million terms, twice),
// 4400 that of float64. What follows the subtraction of the mean carries 128 bits, relative to terms that do not cancel
// below what each bound is measured in. Nothing is shared with the library or with reference.h.
#ifndef TRUENORM_TESTS_ORACLE_H_
#define TRUENORM_TESTS_ORACLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "truenorm/truenorm.h"

namespace truenorm::oracle {

// The worst element of a comparison: (|got - exact| - h terms) / (N * ulp), so that 1 is the bound; infinite where a
// NaN or infinity stands that should not, or the other way round.
struct Finding {
  double ratio = 0;
  int64_t index = -1;
  std::string text;  // got, exact and error of that element

  void take(const Finding& other) {
    if (other.ratio > ratio) *this = other;
  }
};

// An array of elements, or none.
struct Elements {
  truenorm_dtype dtype = TRUENORM_FLOAT32;
  const void* data = nullptr;
  explicit operator bool() const { return data != nullptr; }
};

struct Statistics {
  double mean, var, rstd;
};

struct RowState;  // exact statistics of one row

class Row {
 public:
  Row(Elements x, int64_t d, double eps);
  ~Row();
  Row(Row&&) noexcept;

  // Errors of y, with the bounds of truenorm_layer_norm_forward.
  Finding y(Elements gamma, Elements beta, Elements got) const;
  // Errors of the statistics, as fractions of their bounds.
  struct StatisticsFindings {
    Finding mean, var, rstd;
  };
  StatisticsFindings statistics(const Statistics& got) const;

 private:
  friend class Gradients;
  std::unique_ptr<RowState> state_;
};

// The gradients over the rows that share gamma, given one after another.
class Gradients {
 public:
  // `parameters`: whether dgamma and dbeta will be asked for.
  Gradients(int64_t d, Elements gamma, double eps, bool parameters);
  ~Gradients();

  // Adds a row. With got_dx the errors of dx are measured; its type decides the bounds of dgamma, too.
  Finding row(Elements x, Elements dy, Elements got_dx);
  // Errors of dgamma and dbeta; `old` is what they were before when accumulating.
  Finding dgamma(Elements got, Elements old = {}) const;
  Finding dbeta(Elements got, Elements old = {}) const;

 private:
  struct Sums;
  int64_t d_;
  Elements gamma_;
  double eps_;
  truenorm_dtype x_type_ = TRUENORM_FLOAT32;
  bool undefined_ = false;  // a row without a derivative: dgamma is NaN
  std::unique_ptr<Sums> sums_;
};

}  // namespace truenorm::oracle

#endif  // TRUENORM_TESTS_ORACLE_H_

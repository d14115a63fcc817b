// SPDX-License-Identifier: Apache-2.0
// reference.h for element types known only at run time: the bits that every kernel must give, contiguous rows.
#ifndef TRUENORM_TESTS_EXPECTED_H_
#define TRUENORM_TESTS_EXPECTED_H_

#include <cstdint>

#include "cases.h"

namespace truenorm::test {

// Operands of contiguous rows; gamma, beta nullptr when absent.
struct Problem {
  Types types;
  int64_t rows, d;
  double eps;
  const void* x;
  const void* gamma;
  const void* beta;
};

// y, and mean, var, rstd (one a row). Each may be nullptr.
void expect_forward(const Problem& problem, void* y, double* mean, double* var, double* rstd);

// What backward writes. `old_*`: what is accumulated to, of the same type, or nullptr.
struct Slopes {
  truenorm_dtype dx_type, dgamma_type, dbeta_type;
  void* dx;
  void* dgamma;
  void* dbeta;
  const void* old_dgamma = nullptr;
  const void* old_dbeta = nullptr;
};
void expect_backward(const Problem& problem, const void* dy, const Slopes& slopes);

}  // namespace truenorm::test

#endif  // TRUENORM_TESTS_EXPECTED_H_

// SPDX-License-Identifier: Apache-2.0
#ifndef TRUENORM_CLI_DEMO_TRUTH_H_
#define TRUENORM_CLI_DEMO_TRUTH_H_

#include <cstdint>
#include <span>
#include <vector>

#include "truenorm/truenorm.h"

namespace truenorm::cli {

// The formula in long double, two passes. On x86 that is 11 bits more than float64, on AArch64 60: far more than is
// needed to measure ordinary rows in units of float32's last place, and enough for float64's. (The tests measure with
// exact arithmetic.)
struct Truth {
  std::vector<long double> y;
  std::vector<double> size;  // |gamma*x_hat| + |beta|, in whose units of the last place errors are counted
};
Truth truth(std::span<const double> x, std::span<const double> gamma, std::span<const double> beta, double eps);

// How far y is from the truth.
struct Distance {
  double largest = 0;  // |y - truth|
  double rms = 0;
  double largest_ulp = 0;  // in units of the last place of dtype
  double mean_ulp = 0;
};
Distance distance(std::span<const double> y, const Truth& truth, truenorm_dtype dtype);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_DEMO_TRUTH_H_

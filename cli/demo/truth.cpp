// SPDX-License-Identifier: Apache-2.0
#include "truth.h"

#include <algorithm>
#include <cmath>

#include "elements.h"

namespace truenorm::cli {

Truth truth(std::span<const double> x, std::span<const double> gamma, std::span<const double> beta, double eps) {
  const size_t d = gamma.size();
  Truth t;
  for (size_t row = 0; row + d <= x.size(); row += d) {
    const auto n = static_cast<long double>(d);
    long double mean = 0, var = 0;
    for (size_t i = 0; i < d; ++i) mean += x[row + i];
    mean /= n;
    for (size_t i = 0; i < d; ++i) var += (x[row + i] - mean) * (x[row + i] - mean);
    var /= n;
    const long double sd = std::sqrt(var + static_cast<long double>(eps));
    for (size_t i = 0; i < d; ++i) {
      const long double scaled = gamma[i] * ((x[row + i] - mean) / sd);
      t.y.push_back(scaled + beta[i]);
      t.size.push_back(static_cast<double>(std::fabs(scaled) + std::fabs(beta[i])));
    }
  }
  return t;
}

Distance distance(std::span<const double> y, const Truth& truth, truenorm_dtype dtype) {
  Distance result;
  const auto n = static_cast<double>(y.size());
  for (size_t i = 0; i < y.size(); ++i) {
    const auto error = static_cast<double>(std::fabs(y[i] - truth.y[i]));
    const double ulps = error / ulp(truth.size[i], dtype);
    result.largest = std::max(result.largest, error);
    result.rms += error * error / n;
    result.largest_ulp = std::max(result.largest_ulp, ulps);
    result.mean_ulp += ulps / n;
  }
  result.rms = std::sqrt(result.rms);
  return result;
}

}  // namespace truenorm::cli

// SPDX-License-Identifier: Apache-2.0
#include "spread.h"

#include <algorithm>
#include <cmath>

#include "norm.h"

namespace truenorm::cli {

// Scaled, the largest magnitude is at least 1/2 and below 1. Numbers that become subnormal are too small beside it to
// matter.
Spread::Spread(double mean, double largest)
    : exponent_(largest > 0 ? std::ilogb(largest) + 1 : 0), mean_(std::scalbn(mean, -exponent_)) {}

void Spread::add(double value) {
  const double c = std::scalbn(value, -exponent_) - mean_;
  const double square = c * c, sum = squares_ + square;
  lost_ += squares_ >= square ? (squares_ - sum) + square : (square - sum) + squares_;
  squares_ = sum;
  sum_ += c;
  ++n_;
}

double Spread::sd() const {
  if (n_ == 0) return std::nan("");
  const auto n = static_cast<double>(n_);
  // The mean is a rounded one: in a row of neighbouring numbers that is as large as the deviations.
  const double rounding = sum_ / n;
  return std::scalbn(std::sqrt(std::max(0.0, (squares_ + lost_) / n - rounding * rounding)), exponent_);
}

double Spread::unbiased_sd() const {
  const auto n = static_cast<double>(n_);
  return n_ > 1 ? sd() * std::sqrt(n / (n - 1)) : std::nan("");
}

MeanAndSd mean_and_sd(std::span<const double> values) {
  const double none = std::nan("");
  double largest = 0;
  for (const double v : values) {
    if (!std::isfinite(v)) return {none, none};
    largest = std::max(largest, std::fabs(v));
  }
  if (values.empty()) return {none, none};
  const double mean = mean_of_row(values);
  Spread spread(mean, largest);
  for (const double v : values) spread.add(v);
  return {mean, spread.sd()};
}

}  // namespace truenorm::cli

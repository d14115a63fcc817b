// SPDX-License-Identifier: Apache-2.0
//
// Mean and standard deviation of numbers of any size. The variance of float64 numbers can lie beyond the largest or below
// the smallest float64 although the standard deviation does not: deviations are multiplied by a power of two, which is
// exact, before they are squared, and the root of their mean square is multiplied back. Every standard deviation that the
// command shows comes from here, or from a plain_variance() of the library.
#ifndef TRUENORM_CLI_SPREAD_H_
#define TRUENORM_CLI_SPREAD_H_

#include <cstdint>
#include <span>

namespace truenorm::cli {

// Whether a variance has neither overflowed nor lost bits below the normal range: its square root is right then.
inline bool plain_variance(double var) { return var >= 0x1p-900 && var <= 0x1p1000; }

// The biased standard deviation, number by number.
class Spread {
 public:
  // `mean` of all the numbers, `largest` their largest magnitude; both finite.
  Spread(double mean, double largest);

  void add(double value);
  double sd() const;
  double unbiased_sd() const;  // NaN for a single number, Inf where it is beyond the largest float64

 private:
  int exponent_;
  double mean_;  // scaled
  // Of scaled deviations and of their squares, with what rounding took from the latter.
  double sum_ = 0, squares_ = 0, lost_ = 0;
  int64_t n_ = 0;
};

// NaN where a number is not finite, or where there is none.
struct MeanAndSd {
  double mean = 0, sd = 0;
};
MeanAndSd mean_and_sd(std::span<const double> values);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_SPREAD_H_

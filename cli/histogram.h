// SPDX-License-Identifier: Apache-2.0
#ifndef TRUENORM_CLI_HISTOGRAM_H_
#define TRUENORM_CLI_HISTOGRAM_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace truenorm::cli {

// The finite values within four standard deviations of their mean, in equal bins. One outlier would otherwise squeeze
// all others into a single bar; what lies outside is counted, and so is what is not finite.
struct Histogram {
  double mean = 0;
  double sd = 0;  // biased
  double low = 0;
  double high = 0;
  std::vector<int64_t> counts;
  int64_t below = 0;
  int64_t above = 0;
  int64_t not_finite = 0;  // these are in none of the numbers above

  bool empty() const;  // nothing is finite
};

Histogram make_histogram(std::span<const double> values, int bins);

// A block of lines, each at most `width` columns: title, bars with the mean as a dashed vertical line, axis.
std::vector<std::string> draw(const Histogram& histogram, std::string_view title, int width, bool utf8);

// The histograms of one token's features before and after, side by side; in one column where `width` is small.
std::string before_after(std::span<const double> before, std::span<const double> after, int width, bool utf8);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_HISTOGRAM_H_

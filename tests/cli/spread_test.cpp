// SPDX-License-Identifier: Apache-2.0
#include "spread.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "elements.h"
#include "row_summary.h"

namespace truenorm::cli {
namespace {

TEST(Spread, IsExactWhereItCanBe) {
  const std::vector<double> row = {3, 1, 5, 7};
  EXPECT_EQ(mean_and_sd(row).mean, 4);
  EXPECT_EQ(mean_and_sd(row).sd, std::sqrt(5.0));
  EXPECT_EQ(mean_and_sd(std::vector<double>{0.1, 0.1, 0.1}).sd, 0);
  // The mean of neighbouring numbers is not one of them.
  EXPECT_EQ(mean_and_sd(std::vector<double>{1, std::nextafter(1, 2)}).sd, 0x1p-53);
}

// Multiplied by a power of two, a row has the same bits times that, up to both ends of the range.
TEST(Spread, ScalesExactly) {
  const std::vector<double> row = {3.7, -1.1, 5.25, 6.9, 0, -6.99};
  const MeanAndSd plain = mean_and_sd(row);
  for (int k = -960; k <= 1020; ++k) {
    std::vector<double> scaled;
    for (const double v : row) scaled.push_back(std::ldexp(v, k));
    const MeanAndSd got = mean_and_sd(scaled);
    EXPECT_EQ(got.sd, std::ldexp(plain.sd, k)) << k;
    Bytes bytes = encode(scaled, TRUENORM_FLOAT64);
    const RowSummary summary = summarize(bytes, TRUENORM_FLOAT64, static_cast<int64_t>(row.size())).at(0);
    EXPECT_NEAR(std::ldexp(summary.sd, -k), plain.sd, plain.sd * 0x1p-36) << k;
  }
}

TEST(Spread, HasNoAnswerForWhatIsNotFinite) {
  for (const auto& values : {std::vector<double>{}, {1, std::nan("")}, {HUGE_VAL, 1}}) {
    EXPECT_TRUE(std::isnan(mean_and_sd(values).mean));
    EXPECT_TRUE(std::isnan(mean_and_sd(values).sd));
  }
}

TEST(Spread, OfTheLargestNumbers) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  EXPECT_EQ(mean_and_sd(std::vector<double>{kLargest, -kLargest}).sd, kLargest);
  Spread both(0, kLargest);
  both.add(kLargest);
  both.add(-kLargest);
  EXPECT_EQ(both.unbiased_sd(), HUGE_VAL);
  Spread one(5, 5);
  one.add(5);
  EXPECT_EQ(one.sd(), 0);
  EXPECT_TRUE(std::isnan(one.unbiased_sd()));
}

}  // namespace
}  // namespace truenorm::cli

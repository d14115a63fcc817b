// SPDX-License-Identifier: Apache-2.0
#include "histogram.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "terminal.h"

namespace truenorm::cli {
namespace {

int64_t total(const Histogram& h) { return std::accumulate(h.counts.begin(), h.counts.end(), h.below + h.above); }

TEST(Histogram, CountsEveryValueOnce) {
  const std::vector<double> values = {3, 1, 5, 7};
  const Histogram h = make_histogram(values, 3);
  EXPECT_EQ(h.mean, 4);
  EXPECT_DOUBLE_EQ(h.sd, std::sqrt(5));
  EXPECT_EQ(h.low, 1);
  EXPECT_EQ(h.high, 7);
  EXPECT_EQ(h.counts, (std::vector<int64_t>{1, 1, 2}));  // [1, 3) [3, 5) [5, 7]
}

TEST(Histogram, OutliersAreCountedBeside) {
  std::vector<double> values(400, 0.0);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 20);
  values[7] = 1e6;
  const Histogram h = make_histogram(values, 10);
  EXPECT_EQ(h.above, 1);
  EXPECT_EQ(h.below, 0);
  EXPECT_EQ(total(h), 400);
  EXPECT_LT(h.high, 1e6);
}

TEST(Histogram, ConstantTinyHugeAndNotFinite) {
  for (const auto& values :
       {std::vector<double>{2, 2, 2}, {0, 0}, {1e308, -1e308}, {5e-324, 1e-323}, {1, NAN, HUGE_VAL, 2}, {NAN}}) {
    const Histogram h = make_histogram(values, 8);
    const auto finite = std::count_if(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
    EXPECT_EQ(total(h), finite);
    for (const std::string& line : draw(h, "before", 40, true)) EXPECT_LE(display_width(line), 44);
  }
}

// Beside a table whose mean and standard deviation of such a row are NaN.
TEST(Histogram, SaysWhatIsNotFinite) {
  const std::vector<double> some = {1, NAN, 2, HUGE_VAL, 3}, none = {NAN, NAN};
  const auto lines = draw(make_histogram(some, 8), "before", 40, false);
  EXPECT_EQ(lines.front(), "before: mean 2.000, sd 0.816");
  EXPECT_EQ(lines.back(), "NaN or Inf, left out above: 2");
  const auto empty = draw(make_histogram(none, 8), "after", 40, false);
  EXPECT_EQ(empty.front(), "after: nothing is finite");
  EXPECT_EQ(empty.back(), "NaN or Inf, left out above: 2");
  for (size_t i = 1; i < empty.size(); ++i) EXPECT_EQ(empty[i].find_first_of(i + 1 < empty.size() ? ":+" : "+"), std::string::npos) << empty[i];
}

TEST(Histogram, TheDashedLineStandsAtTheMean) {
  const std::vector<double> values = {0, 0, 0, 0, 0, 0, 0, 0, 0, 10};  // mean 1: a tenth of the way
  const auto lines = draw(make_histogram(values, 10), "before", 43, false);
  const size_t above_the_bars = lines[1].find(':');
  ASSERT_NE(above_the_bars, std::string::npos);
  EXPECT_NEAR(static_cast<double>(above_the_bars), 2 + 4, 1);  // label and space, then 40 columns
  EXPECT_EQ(lines[lines.size() - 2].find('+'), above_the_bars);
}

TEST(Histogram, SideBySideOrOneAboveTheOther) {
  const std::vector<double> before = {3, 1, 5, 7}, after = {-0.4, -1.3, 0.4, 1.3};
  const std::string wide = before_after(before, after, 80, true), narrow = before_after(before, after, 60, true);
  EXPECT_LT(std::count(wide.begin(), wide.end(), '\n'), std::count(narrow.begin(), narrow.end(), '\n'));
}

TEST(Terminal, WrapsAtSpacesButNotAtGlue) {
  EXPECT_EQ(wrap("aa bb cc", 5, 1), (std::vector<std::string>{"aa bb", " cc"}));
  EXPECT_EQ(wrap(std::string("aa b") + kGlue + "c", 4, 0), (std::vector<std::string>{"aa", "b c"}));
  EXPECT_EQ(wrap("longer-than-a-line x", 4, 0), (std::vector<std::string>{"longer-than-a-line", "x"}));
  EXPECT_EQ(wrap("", 4, 0), (std::vector<std::string>{""}));
}

}  // namespace
}  // namespace truenorm::cli

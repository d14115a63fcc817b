// SPDX-License-Identifier: Apache-2.0
// Inputs on which layer normalizations of other libraries were reported to go wrong, and what is right: numbers.
#include <limits>

#include "plain.h"

namespace truenorm::test {
namespace {

// Errors of some ulp of numbers of size 1 to 4.
constexpr double kFloat32Error = 1e-6;

TEST(ReportedNumeric, MeanFarFromZero) {
  Random random(test_seed());
  const Arguments far{.d = 4, .x = numbers(20, [&](int64_t) { return 2000 + random.normal(); })};
  EXPECT_TRUE(near(normalized(far), textbook(far).y, kFloat32Error));
  for (const double mean : {0.0, 100.0, 1000.0, 10000.0}) {
    const Arguments ramp{.d = 16, .x = numbers(16, [&](int64_t i) { return mean + 1e-3 * static_cast<double>(i); })};
    EXPECT_TRUE(near(normalized(ramp), textbook(ramp).y, kFloat32Error)) << mean;
  }
  const Arguments million{.d = 64, .x = numbers(128, [&](int64_t) { return 1e6 + random.normal(); })};
  EXPECT_TRUE(near(normalized(million), textbook(million).y, kFloat32Error));
}

TEST(ReportedNumeric, LargeValuesSmallSpread) {
  for (const double start : {40000.0, 80000.0, 16777212.0}) {
    const Numbers y = normalized({.d = 4, .x = {start, start + 1, start + 2, start + 3}});
    EXPECT_TRUE(near(y, Numbers{-1.3416353, -0.4472118, 0.4472118, 1.3416353}, kFloat32Error)) << start;
  }
  // The last row of a long arange: its steps are a unit of float32 and less than twice that.
  const Arguments ramp{.d = 32, .x = numbers(32, [](int64_t i) { return 6399968.0 + static_cast<double>(i); })};
  const Numbers y = normalized(ramp);
  EXPECT_TRUE(near(y, textbook(ramp).y, kFloat32Error));
  EXPECT_NEAR(y[0], -1.6787, 1e-4);
}

TEST(ReportedNumeric, ConstantRowsAreExactlyZero) {
  for (const auto& [d, value] : {std::pair<int64_t, double>{256, 1234.0},
                                 {10, 1.5678},
                                 {9, 1.5678},
                                 {100, 1234.567},
                                 {33, 1e30},
                                 {8, 8.5071e37},
                                 {64, 0.1}}) {
    for (const double y : normalized({.d = d, .x = Numbers(static_cast<size_t>(2 * d), value)}))
      ASSERT_EQ(y, 0) << value;
  }
  // With a small eps and a bias, where x*rstd - mean*rstd leaves a remainder.
  const Numbers y = normalized({.d = 2, .x = {2, 2, 14, 14}, .gamma = {1, 1}, .beta = {1, 1}, .eps = 1e-6});
  EXPECT_EQ(y, (Numbers{1, 1, 1, 1}));
  // Beside rows that are not constant, so that a lost eps shows.
  const Numbers rows = normalized(
      {.d = 6, .x = {-2, 2, -2, 2, -2, 2, -2, 0, 2, -2, 0, 2, 2, 2, 2, 2, 2, 2, 0, 1, 2, 3, 4, 5}, .eps = 1e-12});
  for (size_t i = 12; i < 18; ++i) EXPECT_EQ(rows[i], 0);
  EXPECT_EQ(rows[1], 1);
  EXPECT_EQ(rows[7], 0);
}

TEST(ReportedNumeric, OneFeature) {
  for (const Types& types : {kFloat32, kBfloat16, kFloat64}) {
    for (const double weight : {0.0, 2.0, 123.0}) {
      const Arguments one{.types = types, .d = 1, .x = {1e6}, .gamma = {weight}, .beta = {3}, .dy = {1}};
      EXPECT_EQ(normalized(one), Numbers{3}) << weight;
      const Slopes3 got = slopes(one);
      EXPECT_EQ(got.dx, Numbers{0});
      EXPECT_EQ(got.dgamma, Numbers{0});
      EXPECT_EQ(got.dbeta, Numbers{1});
    }
  }
  for (const double weight : {1e10, 1e12, 1e17}) {
    EXPECT_EQ(normalized({.types = kFloat64, .d = 1, .x = {-3}, .gamma = {weight}, .beta = {-1}, .eps = 0.1}),
              Numbers{-1});
  }
}

TEST(ReportedNumeric, SmallVarianceIsNotZero) {
  const double s = 9.9e-4;
  EXPECT_TRUE(near(normalized({.d = 4, .x = {-s, -s, s, s}, .eps = 1e-12}), Numbers{-1, -1, 1, 1}, kFloat32Error));
  const Arguments honest{.d = 4, .x = {1, 1.001, 0.999, 1}, .eps = 1e-7};
  const Numbers y = normalized(honest);
  EXPECT_TRUE(near(y, textbook(honest).y, kFloat32Error));
  EXPECT_NEAR(y[1], 1.2911, 1e-3);
  // One deviation among a hundred equal values: not thousands, as when the squares cancel to nothing.
  Numbers pinned(100, -15.94);
  pinned[50] = -15.89;
  const Arguments one_off{.d = 100, .x = pinned, .eps = 1e-10};
  const Numbers off = normalized(one_off);
  EXPECT_NEAR(off[50], 9.95, 0.01);
  EXPECT_NEAR(off[0], -0.1005, 0.001);
  EXPECT_TRUE(near(off, textbook(one_off).y, 3 * kFloat32Error));
}

TEST(ReportedNumeric, LongRowsFarFromZero) {
  Random random(test_seed());
  for (const int64_t d : {4096, 32768}) {
    const Arguments row{.d = d, .x = numbers(d, [&](int64_t) { return 100 + 0.01 * random.normal(); })};
    EXPECT_TRUE(near(normalized(row), textbook(row).y, 3 * kFloat32Error)) << d;
  }
  const Arguments image{.d = 65536, .x = numbers(65536, [&](int64_t) { return 250 + 0.01 * random.normal(); })};
  EXPECT_TRUE(near(normalized(image), textbook(image).y, 3 * kFloat32Error));
}

TEST(ReportedNumeric, TenMillionFeatures) {
  Random random(test_seed());
  const int64_t d = full_grid() ? 10000000 : 2000000;
  Arguments row{.d = d, .x = numbers(d, [&](int64_t) { return 3 + random.normal(); })};
  row.threads = 2;
  EXPECT_TRUE(near(normalized(row), textbook(row).y, 2 * kFloat32Error));
}

TEST(ReportedNumeric, LargeAndSmallSizes) {
  Random random(test_seed());
  const Numbers unit = numbers(16, [&](int64_t) { return random.normal(); });
  for (const double size : {1e30, 1e19, 5e37}) {
    Arguments scaled{.d = 16, .x = unit};
    for (double& x : scaled.x) x *= size;
    EXPECT_TRUE(near(normalized(scaled), textbook(scaled).y, kFloat32Error)) << size;
  }
  // From the smallest part of the range to its very end.
  Arguments whole{.d = 8, .x = {3.4028e38, 8.8e31, 1e38, -3.4028e38, 0, 2e38, -1e37, 3e38}};
  EXPECT_TRUE(near(normalized(whole), textbook(whole).y, kFloat32Error));
  // A tiny spread close to the end.
  Arguments end{.d = 4, .x = {8.5071e37, 8.50715e37, 8.5071e37, 8.50705e37}};
  EXPECT_TRUE(near(normalized(end), textbook(end).y, kFloat32Error));
  // Small activations with small weights.
  Arguments small{.d = 768,
                  .x = numbers(768, [&](int64_t) { return 0.016 * (2 * random.uniform() - 1); }),
                  .gamma = numbers(768, [&](int64_t) { return 6e-5 + 0.3 * random.uniform(); })};
  EXPECT_TRUE(near(normalized(small), textbook(small).y, kFloat32Error));
  // Twenty is large enough to overflow the squares' sum of a half-precision accumulator.
  Arguments twenty{.d = 4096, .x = numbers(4096, [&](int64_t) { return 20 * random.normal(); })};
  EXPECT_TRUE(near(normalized(twenty), textbook(twenty).y, 2 * kFloat32Error));
}

TEST(ReportedNumeric, HalfTypesNeitherOverflowNorLoseEps) {
  for (const Types& types : {kFloat16, kBfloat16}) {
    for (const double value : {0.0, 3.0, 60000.0}) {
      for (const double y : normalized({.types = types,
                            .d = 10,
                            .x = Numbers(10, value),
                            .gamma = Numbers(10, 1.0),
                            .beta = Numbers(10, 0.0),
                            .eps = 1e-12})) {
        EXPECT_EQ(y, 0) << value;
      }
    }
  }
  Random random(test_seed());
  const double ulp = 0x1p-10;  // of float16, at 1 to 2
  const Arguments wide{
      .types = kFloat16, .d = 2048, .x = numbers(2048, [&](int64_t) { return 600 * random.uniform() - 300; })};
  EXPECT_TRUE(near(normalized(wide), textbook(wide).y, 0.51 * ulp));
  const Arguments alternating{
      .types = kFloat16, .d = 64, .x = numbers(64, [](int64_t i) { return i % 2 == 0 ? 7700 : -7700; })};
  EXPECT_EQ(normalized(alternating), numbers(64, [](int64_t i) { return i % 2 == 0 ? 1 : -1; }));
  const Arguments channels{
      .types = kFloat16, .d = 768, .x = numbers(768, [&](int64_t) { return 300 + 10 * random.normal(); })};
  EXPECT_TRUE(near(normalized(channels), textbook(channels).y, 0.51 * 4 * ulp));
  const Arguments neon{.types = kFloat16, .d = 128, .x = numbers(64 * 128, [&](int64_t) { return random.normal(); })};
  EXPECT_TRUE(near(normalized(neon), textbook(neon).y, 0.51 * 4 * ulp));
}

// One rounding from the float32 result; not a computation in the half type. bfloat16 has sums of its own: there the
// two meet in nearly every element, and all others are as near as any rounding.
TEST(ReportedNumeric, HalfResultsAreTheRoundedFloat32Results) {
  Random random(test_seed());
  for (const truenorm_dtype half : {TRUENORM_FLOAT16, TRUENORM_BFLOAT16}) {
    Arguments a{.d = 128, .x = numbers(5 * 128, [&](int64_t) { return 0.1 * random.uniform(); })};
    a.types = {half, half, TRUENORM_FLOAT32};
    const Numbers wide = normalized(a);
    a.types.y = half;
    if (half == TRUENORM_FLOAT16) {
      EXPECT_EQ(normalized(a), rounded(half, wide));
      continue;
    }
    const Numbers y = normalized(a);
    for (size_t i = 0; i < y.size(); ++i)
      EXPECT_LE(std::fabs(y[i] - wide[i]), 0.51 * std::ldexp(1.0, std::ilogb(wide[i]) - 7) + 0x1p-17) << i;
  }
}

TEST(ReportedNumeric, InfinityStaysInItsRow) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const Types& types : {kFloat16, kBfloat16, kFloat32, kFloat64}) {
    const Numbers y = normalized({.types = types, .d = 4, .x = {1, 2, infinity, 3, 1, 2, 3, 4}});
    for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(std::isnan(y[i]));
    EXPECT_EQ(Numbers(y.begin() + 4, y.end()), normalized({.types = types, .d = 4, .x = {1, 2, 3, 4}}));
  }
}

TEST(ReportedNumeric, ZeroVarianceWithoutEps) {
  for (const double y : normalized({.d = 4, .x = Numbers(12, 0.0), .eps = 0})) EXPECT_TRUE(std::isnan(y));
}

TEST(ReportedNumeric, EpsIsNotScaledWithTheRow) {
  Numbers x(4096, 0.0);
  Random random(test_seed());
  for (double& value : x) value = 0.002 * random.normal();
  x[0] = 30;
  const Arguments a{.d = 4096, .x = x, .eps = 1e-2};
  EXPECT_TRUE(near(normalized(a), textbook(a).y, 70 * kFloat32Error));  // y[0] is near 64
}

TEST(ReportedNumeric, BiasedVarianceAndEpsInsideTheRoot) {
  EXPECT_TRUE(near(normalized({.d = 4, .x = {1, 0, 0, 0}}), Numbers{1.73200, -0.57733, -0.57733, -0.57733}, 1e-5));
  EXPECT_TRUE(
      near(normalized({.d = 4, .x = {1e-3, 2e-3, 3e-3, 4e-3}}), Numbers{-0.44721, -0.14907, 0.14907, 0.44721}, 1e-5));
}

// eps is used as given, in every type: not rounded to it, not another constant.
TEST(ReportedNumeric, EpsIsCarriedExactly) {
  for (const Types& types : {kFloat32, kFloat64, Types{TRUENORM_BFLOAT16, TRUENORM_BFLOAT16, TRUENORM_FLOAT32},
                             Types{TRUENORM_FLOAT16, TRUENORM_FLOAT16, TRUENORM_FLOAT32}}) {
    for (const double eps : {1e-5, 1e-6, 1e-8, 1e-12, 0.1}) {
      const Arguments a{.types = types, .d = 4, .x = {1e-3, -1e-3, 2e-3, 0}, .eps = eps};
      EXPECT_TRUE(near(normalized(a), textbook(a).y, types.x == TRUENORM_FLOAT64 ? 1e-15 : 3e-7)) << eps;
    }
  }
}

// The error does not jump where one kernel gives way to another: 1 to 300 features, in one line.
TEST(ReportedNumeric, NoJumpBetweenWidths) {
  Random random(test_seed());
  for (int64_t d = 2; d <= 300; ++d) {
    const Arguments a{.d = d, .x = numbers(2 * d, [&](int64_t) { return 10 + random.normal(); })};
    ASSERT_TRUE(near(normalized(a), textbook(a).y, kFloat32Error)) << d;
  }
}

// All of float64: an approximate or single-precision reciprocal root would show at 1e-8.
TEST(ReportedNumeric, Float64IsFloat64) {
  Random random(test_seed());
  const Arguments a{.types = kFloat64, .d = 64, .x = numbers(256, [&](int64_t) { return random.normal(); })};
  EXPECT_TRUE(near(normalized(a), textbook(a).y, 1e-14));
  const Arguments far{.types = kFloat64, .d = 64, .x = numbers(256, [&](int64_t) { return 1000 + random.normal(); })};
  EXPECT_TRUE(near(normalized(far), textbook(far).y, 1e-12));
}

// To nearest even, without bias: truncation would shrink every value by a fraction of 0.0028, in float16 of 0.00035.
TEST(ReportedNumeric, RoundingHasNoBias) {
  for (const auto& [half, limit] : {std::pair<truenorm_dtype, double>{TRUENORM_BFLOAT16, 3e-5}, {TRUENORM_FLOAT16, 4e-6}}) {
    Random random(test_seed());
    Arguments a{.d = 512, .x = numbers(200 * 512, [&](int64_t) { return random.normal(); })};
    a.types = {half, half, TRUENORM_FLOAT32};
    const Numbers wide = normalized(a);
    a.types.y = half;
    const Numbers y = normalized(a);
    double bias = 0;
    int64_t count = 0;
    for (size_t i = 0; i < y.size(); ++i) {
      if (wide[i] == 0) continue;
      bias += (std::fabs(y[i]) - std::fabs(wide[i])) / std::fabs(wide[i]);
      ++count;
    }
    EXPECT_LT(std::fabs(bias / static_cast<double>(count)), limit) << truenorm_dtype_name(half);
  }
}

}  // namespace
}  // namespace truenorm::test

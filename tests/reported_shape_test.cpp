// SPDX-License-Identifier: Apache-2.0
// Inputs on which layer normalizations of other libraries were reported to go wrong, and what is right: shapes,
// strides, alignment, types.
#include "plain.h"

namespace truenorm::test {
namespace {

// Rows that are columns 100 to 227 of a buffer 300 wide, as a split projection gives them: no copy, the neighbours
// stay.
TEST(ReportedShapes, SlicesOfAWiderBuffer) {
  Random random(test_seed());
  for (const Types& types : primary_types()) {
    Buffer wide(types.x, 6 * 300, Placement::before_unmapped), out(types.y, 6 * 300, Placement::before_unmapped);
    for (int64_t i = 0; i < 6 * 300; ++i) wide.set(i, 1 + random.normal());
    for (const std::vector<int64_t>& dims : {std::vector<int64_t>{6}, {2, 3}}) {
      const truenorm_shape shape = shape_of(dims, 128);
      const int64_t strides[2] = {dims.size() == 1 ? 300 : 900, 300};
      Numbers rows;
      for (int64_t row = 0; row < 6; ++row) {
        for (int64_t i = 0; i < 128; ++i) rows.push_back(wide[row * 300 + 100 + i]);
      }
      const Numbers want = normalized({.types = types, .d = 128, .x = rows});
      for (const std::string& level : levels()) {
        for (int64_t i = 0; i < 6 * 300; ++i) out.set(i, 42);
        const truenorm_options options = on_level(level);
        const int64_t start = 100 * format_of(types.x).bytes;
        ASSERT_TRUE(is_ok(truenorm_layer_norm_forward(
            &shape, input(types.x, wide.bytes() + start, strides), input(types.x, nullptr), input(types.x, nullptr),
            output(types.y, out.bytes() + start, strides), nullptr, 1e-5, &options)));
        for (int64_t i = 0; i < 6 * 300; ++i) {
          const int64_t column = i % 300 - 100;
          const bool inside = column >= 0 && column < 128;
          ASSERT_EQ(out[i], inside ? want[static_cast<size_t>(i / 300 * 128 + column)] : 42)
              << "element " << i << " on " << level;
        }
      }
    }
  }
}

// Odd numbers of features, data that is not centred: a padded tail would enter the variance, or the next row.
TEST(ReportedShapes, TailsAreMasked) {
  Random random(test_seed());
  for (const int64_t d : {1, 2, 3, 5, 7, 8, 9, 10, 15, 17, 27, 31, 33, 54, 63, 65, 81, 257, 513, 769}) {
    for (const Types& types : primary_types()) {
      const Arguments a{.types = types, .d = d, .x = numbers(7 * d, [&](int64_t) { return 1 + random.normal(); })};
      const double ulp = std::ldexp(1, 2 - format_of(types.x).precision);  // of numbers of size 2 to 4
      const Numbers y = normalized(a);
      ASSERT_TRUE(near(y, textbook(a).y, 8 * ulp)) << types.name() << ", d " << d;
    }
  }
}

// Pointers that are multiples of the element only, all five of them, at widths of real models.
TEST(ReportedShapes, AlignedToTheElementOnly) {
  for (const int64_t d : {1200, 3584}) {
    for (const Types& types : primary_types()) {
      Random random(test_seed());
      const int64_t bytes = format_of(types.x).bytes;
      const Arguments a{.types = types,
                        .d = d,
                        .x = numbers(3 * d, [&](int64_t) { return random.normal(); }),
                        .gamma = numbers(d, [&](int64_t) { return random.normal(); }),
                        .beta = numbers(d, [&](int64_t) { return random.normal(); })};
      const Numbers want = normalized(a);
      for (int64_t shift = 1; shift < 5; ++shift) {  // another one for each operand
        const auto placed = [&](const Numbers& values, int64_t by) {
          Buffer buffer(types.x, static_cast<int64_t>(values.size()) + by, Placement::after_unmapped);
          for (size_t i = 0; i < values.size(); ++i) buffer.set(static_cast<int64_t>(i) + by, values[i]);
          return buffer;
        };
        const Buffer x = placed(a.x, shift), gamma = placed(a.gamma, shift + 1), beta = placed(a.beta, shift + 2);
        Buffer y(types.x, 3 * d + shift + 3, Placement::after_unmapped);
        const truenorm_shape shape = shape_of({3}, d);
        ASSERT_TRUE(is_ok(truenorm_layer_norm_forward(
            &shape, input(types.x, x.bytes() + shift * bytes), input(types.x, gamma.bytes() + (shift + 1) * bytes),
            input(types.x, beta.bytes() + (shift + 2) * bytes), output(types.x, y.bytes() + (shift + 3) * bytes),
            nullptr, 1e-5, nullptr)));
        const Numbers all = numbers_of(y);
        ASSERT_EQ(Numbers(all.begin() + shift + 3, all.end()), want) << types.name() << ", shift " << shift;
      }
    }
  }
}

TEST(ReportedShapes, NoLeadingDimensions) {
  const Arguments a{.d = 5, .x = {0.5, -1, 2, 8, 3}};
  const Buffer x = buffer_of(TRUENORM_FLOAT32, a.x);
  Buffer y(TRUENORM_FLOAT32, 5, Placement::before_unmapped);
  double mean = 0;
  const truenorm_stats stats{&mean, nullptr, nullptr, nullptr};
  const truenorm_shape shape = shape_of({}, 5);
  ASSERT_TRUE(is_ok(truenorm_layer_norm_forward(&shape, input(TRUENORM_FLOAT32, x.data()),
                                                input(TRUENORM_FLOAT32, nullptr), input(TRUENORM_FLOAT32, nullptr),
                                                output(TRUENORM_FLOAT32, y.data()), &stats, 1e-5, nullptr)));
  EXPECT_EQ(numbers_of(y), normalized(a));
  EXPECT_EQ(mean, 2.5);
}

// Empty in every position of the shape.
TEST(ReportedShapes, EmptyBatches) {
  for (const std::vector<int64_t>& dims :
       {std::vector<int64_t>{0}, {1, 0}, {0, 7}, {int64_t{1} << 28, 0, int64_t{1} << 28}}) {
    const truenorm_shape shape = shape_of(dims, 10);
    Buffer dgamma(TRUENORM_FLOAT32, 10, Placement::before_unmapped),
        dbeta(TRUENORM_FLOAT32, 10, Placement::before_unmapped);
    float nothing = 7;
    EXPECT_TRUE(is_ok(truenorm_layer_norm_forward(&shape, input(TRUENORM_FLOAT32, &nothing),
                                                  input(TRUENORM_FLOAT32, nullptr), input(TRUENORM_FLOAT32, nullptr),
                                                  output(TRUENORM_FLOAT32, &nothing), nullptr, 1e-5, nullptr)));
    EXPECT_TRUE(is_ok(truenorm_layer_norm_backward(
        &shape, input(TRUENORM_FLOAT32, &nothing), input(TRUENORM_FLOAT32, &nothing), input(TRUENORM_FLOAT32, nullptr),
        nullptr, 1e-5, output(TRUENORM_FLOAT32, nullptr), output(TRUENORM_FLOAT32, dgamma.data()),
        output(TRUENORM_FLOAT32, dbeta.data()), nullptr)));
    EXPECT_EQ(numbers_of(dgamma), Numbers(10, 0.0));
    EXPECT_EQ(numbers_of(dbeta), Numbers(10, 0.0));
    EXPECT_EQ(nothing, 7);
  }
}

// Small half rows work, on their own and with float32 parameters.
TEST(ReportedTypes, HalfRows) {
  EXPECT_TRUE(near(normalized({.types = kFloat16, .d = 3, .x = {1, 2, 3}}), Numbers{-1.2247, 0, 1.2247}, 1e-3));
  for (const truenorm_dtype half : {TRUENORM_FLOAT16, TRUENORM_BFLOAT16}) {
    Random random(test_seed());
    Arguments a{.types = {half, TRUENORM_FLOAT32, half},
                .d = 48,
                .x = numbers(96, [&](int64_t) { return random.normal(); }),
                .gamma = numbers(48, [&](int64_t) { return 1 + random.uniform() / 256; }),
                .beta = numbers(48, [&](int64_t) { return 0.1 * random.normal(); })};
    const double ulp = std::ldexp(1, 2 - format_of(half).precision);
    const Numbers y = normalized(a);
    EXPECT_TRUE(near(y, textbook(a).y, 0.51 * ulp));
    // float32 output keeps what float32 parameters add.
    a.types.y = TRUENORM_FLOAT32;
    EXPECT_TRUE(near(normalized(a), textbook(a).y, 1e-6));
    EXPECT_EQ(y, rounded(half, normalized(a)));
  }
}

// Statistics are float64 for every type, from the first element to the last.
TEST(ReportedTypes, StatisticsAreFloat64) {
  for (const Types& types : primary_types()) {
    const Numbers values = rounded(types.x, {0.1, 0.2, 0.4, 0.7, 1e-3, 5, 6, 7});
    const Buffer x = buffer_of(types.x, values);
    double mean = 0, var = 0, rstd = 0;
    const truenorm_stats stats{&mean, &var, &rstd, nullptr};
    const truenorm_shape shape = shape_of({1}, 8);
    for (const std::string& level : levels()) {
      const truenorm_options options = on_level(level);
      ASSERT_TRUE(is_ok(truenorm_layer_norm_forward(&shape, input(types.x, x.data()), input(types.x, nullptr),
                                                    input(types.x, nullptr), output(types.y, nullptr), &stats, 1e-5,
                                                    &options)));
      long double sum = 0, squares = 0;
      for (const double value : values) sum += value / 8.0L;
      for (const double value : values) squares += (value - sum) * (value - sum) / 8;
      EXPECT_NEAR(mean, static_cast<double>(sum), 1e-14) << types.name();
      EXPECT_NEAR(var, static_cast<double>(squares), 1e-12) << types.name();
      EXPECT_NEAR(rstd, static_cast<double>(1 / std::sqrt(squares + 1e-5L)), 1e-13) << types.name();
    }
  }
}

// Without eps, bfloat16 results are the correctly rounded ones of the exact answer, not one unit beside.
TEST(ReportedTypes, Bfloat16WithoutEps) {
  Random random(test_seed());
  for (const int64_t d : {12, 64}) {
    const Arguments a{
        .types = kBfloat16, .d = d, .x = numbers(20 * d, [&](int64_t) { return random.normal(); }), .eps = 0};
    const Textbook want = textbook(a);
    const Numbers y = normalized(a);
    for (size_t i = 0; i < y.size(); ++i) {
      const double exact = static_cast<double>(want.y[i]);
      const double ulp = std::ldexp(1, exact == 0 ? -133 : std::ilogb(exact) - 7);
      EXPECT_LE(std::fabs(y[i] - exact), 0.501 * ulp) << "element " << i;
    }
  }
}

}  // namespace
}  // namespace truenorm::test

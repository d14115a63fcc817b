// SPDX-License-Identifier: Apache-2.0
// Inputs on which layer normalizations of other libraries were reported to go wrong, and what is right: gradients, and
// results that change from run to run.
#include <atomic>
#include <cstring>
#include <thread>

#include "plain.h"

namespace truenorm::test {
namespace {

// Against the definition of a derivative: (loss(x + h) - loss(x - h)) / 2h in float64, loss = sum dy*y.
void expect_finite_differences(Arguments a) {
  a.eps = 0.01;  // so that two close features do not make third derivatives of 1e6
  const auto loss = [&](const Arguments& at) {
    const auto y = textbook(at).y;
    long double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += y[i] * a.dy[i];
    return sum;
  };
  const Slopes3 got = slopes(a);
  const double h = 0x1p-17;  // h^2 and the noise of long double, 2^-64/h, are both below the tolerance
  const auto slope = [&](Numbers Arguments::*of, size_t i) {
    Arguments up = a, down = a;
    (up.*of)[i] += h;
    (down.*of)[i] -= h;
    return static_cast<double>((loss(up) - loss(down)) / (2 * h));
  };
  for (size_t i = 0; i < a.x.size(); ++i) EXPECT_NEAR(got.dx[i], slope(&Arguments::x, i), 1e-6) << "dx " << i;
  for (size_t i = 0; i < a.gamma.size(); ++i)
    EXPECT_NEAR(got.dgamma[i], slope(&Arguments::gamma, i), 1e-7) << "dgamma " << i;
  for (size_t i = 0; i < a.beta.size(); ++i)
    EXPECT_NEAR(got.dbeta[i], slope(&Arguments::beta, i), 1e-7) << "dbeta " << i;
}

Arguments random_arguments(const Types& types, int64_t rows, int64_t d, double gamma_size = 1) {
  Random random(test_seed() + static_cast<uint64_t>(rows * 1000 + d));
  const auto normal = [&](int64_t count, double size) {
    return numbers(count, [&](int64_t) { return size * random.normal(); });
  };
  return {.types = types,
          .d = d,
          .x = normal(rows * d, 1),
          .gamma = normal(d, gamma_size),
          .beta = normal(d, 1),
          .dy = normal(rows * d, 1)};
}

TEST(ReportedGradients, FiniteDifferences) {
  expect_finite_differences(random_arguments(kFloat64, 6, 8));
  expect_finite_differences(random_arguments(kFloat64, 3, 5, 0.1));  // small gamma: another path must not show
  Arguments swapped = random_arguments(kFloat64, 6, 2);              // dgamma and dbeta are not alike
  expect_finite_differences(swapped);
  swapped.gamma.clear();
  expect_finite_differences(swapped);
}

// Every leading dimension counts as rows in backward as in forward.
TEST(ReportedGradients, AnyRankIsTheSameAsItsRows) {
  const Arguments a = random_arguments(kFloat32, 12, 8);
  const Slopes3 flat = slopes(a);
  const Buffer x = buffer_of(TRUENORM_FLOAT32, a.x), dy = buffer_of(TRUENORM_FLOAT32, a.dy),
               gamma = buffer_of(TRUENORM_FLOAT32, a.gamma);
  for (const std::vector<int64_t>& dims :
       {std::vector<int64_t>{2, 6}, {2, 3, 2}, {1, 12, 1}, {1, 1, 2, 1, 3, 1, 2, 1}}) {
    const truenorm_shape shape = shape_of(dims, 8);
    Buffer dx(TRUENORM_FLOAT32, 96, Placement::before_unmapped),
        dgamma(TRUENORM_FLOAT32, 8, Placement::before_unmapped);
    ASSERT_TRUE(is_ok(truenorm_layer_norm_backward(
        &shape, input(TRUENORM_FLOAT32, dy.data()), input(TRUENORM_FLOAT32, x.data()),
        input(TRUENORM_FLOAT32, gamma.data()), nullptr, a.eps, output(TRUENORM_FLOAT32, dx.data()),
        output(TRUENORM_FLOAT32, dgamma.data()), output(TRUENORM_FLOAT32, nullptr), nullptr)));
    EXPECT_EQ(numbers_of(dx), flat.dx);
    EXPECT_EQ(numbers_of(dgamma), flat.dgamma);
  }
}

// A running sum in bfloat16 of 4096 ones stops at 256, in float16 at 2048.
TEST(ReportedGradients, SumsOfManyHalfRows) {
  for (const Types& types : {kBfloat16, kFloat16}) {
    const Arguments a{.types = types,
                      .d = 4,
                      .x = numbers(4096 * 4, [](int64_t i) { return static_cast<double>(i % 7); }),
                      .gamma = Numbers(4, 1.0),
                      .dy = Numbers(4096 * 4, 1.0)};
    EXPECT_EQ(slopes(a).dbeta, Numbers(4, 4096.0));
  }
  for (const truenorm_dtype parameters : {TRUENORM_BFLOAT16, TRUENORM_FLOAT32, TRUENORM_FLOAT64}) {
    Arguments a = random_arguments(kBfloat16, full_grid() ? 32768 : 8192, 8);
    for (double& slope : a.dy) slope += 1;
    const Slopes3 got = slopes(a, parameters);
    const Textbook want = textbook(a);
    const double relative = parameters == TRUENORM_BFLOAT16 ? 0x1p-8 : 1e-6;
    for (size_t i = 0; i < 8; ++i) {
      const double sum = static_cast<double>(want.dbeta[i]);
      EXPECT_NEAR(got.dbeta[i], sum, relative * sum);
      EXPECT_NEAR(got.dgamma[i], static_cast<double>(want.dgamma[i]), relative * sum);
    }
  }
}

// Statistics kept in the half type would put dgamma off by two.
TEST(ReportedGradients, HalfRowsFarFromZero) {
  Arguments a = random_arguments(kBfloat16, 64, 32);
  for (double& x : a.x) x += 100;
  const Slopes3 got = slopes(a, TRUENORM_FLOAT32);
  EXPECT_TRUE(near(got.dgamma, textbook(a).dgamma, 1e-4));
}

TEST(ReportedGradients, EachColumnHasItsOwnParameters) {
  Arguments a = random_arguments(kFloat32, 40, 64);
  for (size_t i = 0; i < 64; ++i) a.gamma[i] = static_cast<double>(1 + i), a.beta[i] = static_cast<double>(i);
  const Slopes3 got = slopes(a);
  const Textbook want = textbook(a);
  EXPECT_TRUE(near(got.dx, want.dx, 1e-4));  // |g| up to 200
  EXPECT_TRUE(near(got.dgamma, want.dgamma, 2e-5));
  EXPECT_TRUE(near(got.dbeta, want.dbeta, 5e-6));
  EXPECT_FALSE(near(got.dgamma, want.dbeta, 1));
}

// x_hat does not come from y, so gamma may be 0.
TEST(ReportedGradients, GammaOfZero) {
  Arguments a = random_arguments(kFloat32, 9, 4);
  a.gamma = {0, 1e-8, 1, -1};
  const Slopes3 got = slopes(a);
  EXPECT_TRUE(near(got.dgamma, textbook(a).dgamma, 5e-6));
  EXPECT_TRUE(near(got.dx, textbook(a).dx, 5e-6));
}

TEST(ReportedGradients, ConstantRowsHaveFiniteSlopes) {
  for (const double value : {0.0, 1.0}) {
    Arguments a{.d = 4, .x = Numbers(8, value), .dy = {1, 2, 3, 4, -1, 0, 0, 5}};
    const Slopes3 got = slopes(a);
    const double rstd = 1 / std::sqrt(1e-5);
    EXPECT_TRUE(near(
        got.dx, Numbers{-1.5 * rstd, -0.5 * rstd, 0.5 * rstd, 1.5 * rstd, -2 * rstd, -rstd, -rstd, 4 * rstd}, 1e-3));
    EXPECT_EQ(got.dgamma, Numbers(4, 0.0));
  }
}

// Numbers of rows that are no multiple of any block: all counted.
TEST(ReportedGradients, EveryRowCounts) {
  for (const int64_t rows : {1, 2, 31, 1023, 1025, 1031, 4099}) {
    Arguments a = random_arguments(kFloat32, rows, 32);
    for (double& slope : a.dy) slope = 1 + 0.1 * slope;
    const Slopes3 got = slopes(a);
    const Textbook want = textbook(a);
    EXPECT_TRUE(near(got.dbeta, want.dbeta, 1e-7 * static_cast<double>(rows))) << rows;
    EXPECT_TRUE(
        near(got.dgamma, want.dgamma, 1e-6 * std::sqrt(static_cast<double>(rows)) + 1e-7 * static_cast<double>(rows)))
        << rows;
  }
}

// dy with a mean: a term of dx that is subtracted twice, or left out, shows.
TEST(ReportedGradients, DyWithAMean) {
  Arguments a = random_arguments(kFloat32, 2, 8192);
  for (double& slope : a.dy) slope = 1 + 0.1 * slope;
  EXPECT_TRUE(near(slopes(a).dx, textbook(a).dx, 1e-5));
}

TEST(ReportedGradients, LossThatIsTheSumOfY) {
  Arguments a = random_arguments(kFloat32, 10, 512);
  a.gamma = Numbers(512, 1.0);
  a.dy = Numbers(10 * 512, 1.0);
  EXPECT_TRUE(near(slopes(a).dx, Numbers(10 * 512, 0.0), 1e-6));
}

TEST(ReportedGradients, BetaWithoutGamma) {
  Arguments a = random_arguments(kFloat64, 3, 2);
  a.gamma.clear();
  EXPECT_TRUE(near(slopes(a).dbeta, textbook(a).dbeta, 1e-15));
}

// Fewer features than a vector has lanes, memory that was not cleared: zero each time.
TEST(ReportedRepeats, TinyRowsGiveZeroEveryTime) {
  for (int repeat = 0; repeat < 10; ++repeat) {
    std::vector<float> dirt(4096, 1e30f);  // freed memory to be found by a kernel that does not clear its own
    EXPECT_EQ(slopes({.d = 4, .x = Numbers(4, 0.0), .gamma = Numbers(4, 1.0), .dy = Numbers(4, -1.0)}).dgamma,
              Numbers(4, 0.0));
  }
}

TEST(ReportedRepeats, TheSameBitsWithThreadsEveryTime) {
  for (const Types& types : {kFloat64, kFloat32, kBfloat16}) {
    Arguments a = random_arguments(types, 16384, 32);
    const Slopes3 first = slopes(a);
    for (int repeat = 0; repeat < 3; ++repeat) {
      a.threads = 4 - repeat;
      const Slopes3 again = slopes(a);
      EXPECT_EQ(first.dx, again.dx);
      EXPECT_EQ(first.dgamma, again.dgamma);
      EXPECT_EQ(first.dbeta, again.dbeta);
    }
  }
}

// dx over dy while dbeta still reads dy, many times with several threads.
TEST(ReportedRepeats, DxOverDy) {
  const Arguments a = random_arguments(kFloat32, 512, 768);
  const Slopes3 want = slopes(a);
  const Buffer x = buffer_of(TRUENORM_FLOAT32, a.x), gamma = buffer_of(TRUENORM_FLOAT32, a.gamma),
               dy = buffer_of(TRUENORM_FLOAT32, a.dy);
  const Buffer dx_want = buffer_of(TRUENORM_FLOAT32, want.dx), dbeta_want = buffer_of(TRUENORM_FLOAT32, want.dbeta);
  const truenorm_shape shape = shape_of({512}, 768);
  Buffer both(TRUENORM_FLOAT32, 512 * 768, Placement::misaligned), dgamma(TRUENORM_FLOAT32, 768, Placement::misaligned);
  Buffer dbeta(TRUENORM_FLOAT32, 768, Placement::misaligned);
  for (int repeat = 0; repeat < 200; ++repeat) {
    std::memcpy(both.data(), dy.data(), dy.size_bytes());
    const truenorm_options options = on_level(levels().front(), 2 + repeat % 3);
    ASSERT_TRUE(is_ok(truenorm_layer_norm_backward(
        &shape, input(TRUENORM_FLOAT32, both.data()), input(TRUENORM_FLOAT32, x.data()),
        input(TRUENORM_FLOAT32, gamma.data()), nullptr, a.eps, output(TRUENORM_FLOAT32, both.data()),
        output(TRUENORM_FLOAT32, dgamma.data()), output(TRUENORM_FLOAT32, dbeta.data()), &options)));
    ASSERT_TRUE(same_bits(TRUENORM_FLOAT32, dx_want.data(), both.data(), 512, 768)) << "repeat " << repeat;
    ASSERT_TRUE(same_bits(TRUENORM_FLOAT32, dbeta_want.data(), dbeta.data(), 1, 768)) << "repeat " << repeat;
  }
}

// No hidden cache of converted parameters: callers with different gamma at the same address, beta absent.
TEST(ReportedRepeats, HalfParametersAreNotCached) {
  const Arguments a = random_arguments(kFloat16, 64, 128);
  const Buffer x = buffer_of(TRUENORM_FLOAT16, a.x);
  const truenorm_shape shape = shape_of({64}, 128);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int caller = 0; caller < 8; ++caller) {
    callers.emplace_back([&, caller] {
      for (int repeat = 0; repeat < 20; ++repeat) {
        Buffer gamma(TRUENORM_FLOAT16, 128, Placement::misaligned),
            y(TRUENORM_FLOAT16, 64 * 128, Placement::misaligned);
        for (int64_t i = 0; i < 128; ++i) gamma.set(i, repeat % 2 == 0 ? 0 : caller + 1);
        const truenorm_options options = on_level(levels().front(), 2);
        const auto status = truenorm_layer_norm_forward(
            &shape, input(TRUENORM_FLOAT16, x.data()), input(TRUENORM_FLOAT16, gamma.data()),
            input(TRUENORM_FLOAT16, nullptr), output(TRUENORM_FLOAT16, y.data()), nullptr, 1e-5, &options);
        if (status != TRUENORM_OK || (repeat % 2 == 0) != (y[0] == 0)) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace truenorm::test

// SPDX-License-Identifier: Apache-2.0
// The record that forward keeps of a bfloat16 row for backward: the same whatever forward made it, and no bit of backward
// depends on it. Rows lie around the limits between its two ways of being made: a mean of 0.775 standard deviations, 64
// features.
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "harness.h"
#include "operands.h"

namespace truenorm::test {
namespace {

constexpr double kMeans[] = {0, -0.3, 0.77, -0.78, 0.9, 3};  // in standard deviations
constexpr int64_t kFirstApart = 3;                           // of these: its record is made from float64 sums

struct Size {
  int64_t rows, d;
};
// One batch of short rows and several, with rows left over; long ones; and such as threads share.
constexpr Size kSizes[] = {{75, 63}, {75, 64}, {75, 65}, {40, 768}, {27, 1000}, {9, 3000}, {6, 140001}};

// Which mean a row has. `mixed`: all of them by turns; else one after another, so that whole batches have one.
int64_t mean_of(const Size& size, int64_t row, bool mixed) { return mixed ? row % 6 : row * 6 / size.rows; }
Operands around_the_limits(truenorm_dtype dy, const Size& size, bool mixed) {
  Operands o;
  o.types = {TRUENORM_BFLOAT16, TRUENORM_FLOAT32, dy};
  o.rows = size.rows;
  o.d = size.d;
  o.name = std::to_string(size.rows) + " rows of " + std::to_string(size.d) + (mixed ? ", mixed" : "");
  Random random(test_seed() + static_cast<uint64_t>(size.d));
  o.x = Buffer(o.types.x, o.rows * o.d, Placement::misaligned);
  o.dy = Buffer(o.types.y, o.rows * o.d, Placement::misaligned);
  o.gamma = Buffer(o.types.affine, o.d, Placement::misaligned);
  std::vector<double> row(static_cast<size_t>(o.d));
  for (int64_t r = 0; r < o.rows; ++r) {
    double sum = 0, squares = 0;
    for (double& v : row) sum += v = random.normal();
    for (double& v : row) v -= sum / static_cast<double>(o.d), squares += v * v;
    const double sd = std::sqrt(squares / static_cast<double>(o.d));
    for (int64_t i = 0; i < o.d; ++i)
      o.x.set(r * o.d + i, row[static_cast<size_t>(i)] / sd + kMeans[mean_of(size, r, mixed)]);
  }
  for (int64_t i = 0; i < o.dy.count(); ++i) o.dy.set(i, random.normal() + 0.1);
  for (int64_t i = 0; i < o.d; ++i) o.gamma.set(i, 1 + 0.1 * random.normal());
  return o;
}

struct Gradients {
  Buffer dx, dgamma, dbeta;
  Gradients(const Operands& o, truenorm_dtype dx_type)
      : dx(dx_type, o.rows * o.d, Placement::before_unmapped), dgamma(TRUENORM_FLOAT32, o.d, Placement::before_unmapped),
        dbeta(TRUENORM_FLOAT32, o.d, Placement::before_unmapped) {}
};

// With y of a type, or none (0), with and without the statistics that are handed back.
struct Forward {
  const char* name;
  truenorm_dtype y;
  bool statistics;
};
constexpr Forward kForwards[] = {
    {"bfloat16 y", TRUENORM_BFLOAT16, false}, {"bfloat16 y and statistics", TRUENORM_BFLOAT16, true},
    {"float32 y", TRUENORM_FLOAT32, false},   {"float32 y and statistics", TRUENORM_FLOAT32, true},
    {"no y", 0, false},                       {"statistics", 0, true}};

std::vector<double> record_of(const Operands& o, const Forward& forward, const truenorm_options& options) {
  const truenorm_shape shape = shape_of({o.rows}, o.d);
  std::vector<double> saved(static_cast<size_t>(2 * o.rows)), mean(static_cast<size_t>(o.rows));
  Buffer y(forward.y ? forward.y : TRUENORM_FLOAT32, o.rows * o.d, Placement::misaligned);
  const truenorm_stats stats{forward.statistics ? mean.data() : nullptr, nullptr, nullptr, saved.data()};
  EXPECT_TRUE(is_ok(truenorm_layer_norm_forward(
      &shape, input(o.types.x, o.x.data()), input(o.types.affine, o.gamma.data()), input(o.types.affine, nullptr),
      output(y.dtype(), forward.y ? y.data() : nullptr), &stats, o.eps, &options)));
  return saved;
}

void expect_same_gradients(const Operands& o, bool dx, const Gradients& want, const void* saved,
                           const truenorm_options& options, const std::string& how) {
  const truenorm_shape shape = shape_of({o.rows}, o.d);
  Gradients got(o, want.dx.dtype());
  ASSERT_TRUE(is_ok(truenorm_layer_norm_backward(
      &shape, input(o.types.y, o.dy.data()), input(o.types.x, o.x.data()), input(o.types.affine, o.gamma.data()), saved,
      o.eps, output(got.dx.dtype(), dx ? got.dx.data() : nullptr), output(TRUENORM_FLOAT32, got.dgamma.data()),
      output(TRUENORM_FLOAT32, got.dbeta.data()), &options)));
  if (dx) {
    EXPECT_TRUE(same_bits(want.dx.dtype(), want.dx.data(), got.dx.data(), o.rows, o.d)) << "dx " << how;
  }
  EXPECT_TRUE(same_bits(TRUENORM_FLOAT32, want.dgamma.data(), got.dgamma.data(), 1, o.d)) << "dgamma " << how;
  EXPECT_TRUE(same_bits(TRUENORM_FLOAT32, want.dbeta.data(), got.dbeta.data(), 1, o.d)) << "dbeta " << how;
}

// dx of a type, or not wanted.
void check(const Operands& o, truenorm_dtype dx_type, bool dx) {
  SCOPED_TRACE(o.name + ", dx " + (dx ? truenorm_dtype_name(dx_type) : "not wanted"));
  Gradients want(o, dx_type);
  expect_backward(o.problem(), o.dy.data(),
                  {dx_type, TRUENORM_FLOAT32, TRUENORM_FLOAT32, dx ? want.dx.data() : nullptr, want.dgamma.data(),
                   want.dbeta.data()});
  const std::vector<double> first = record_of(o, kForwards[0], on_level(levels().front()));
  for (const std::string& level : levels()) {
    ran_on(level);
    for (const int32_t threads : {1, 3}) {
      SCOPED_TRACE(std::to_string(threads) + " threads on " + level);
      const truenorm_options options = on_level(level, threads);
      expect_same_gradients(o, dx, want, nullptr, options, "without a record");
      for (const Forward& forward : kForwards) {
        const std::vector<double> saved = record_of(o, forward, options);
        EXPECT_EQ(std::memcmp(saved.data(), first.data(), saved.size() * sizeof(double)), 0) << "record of " << forward.name;
        expect_same_gradients(o, dx, want, saved.data(), options, forward.name);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(Records, NoBitDependsOnWhoMadeThem) {
  for (const truenorm_dtype dy : {TRUENORM_BFLOAT16, TRUENORM_FLOAT32}) {
    for (const Size& size : kSizes) {
      for (const bool mixed : {false, true}) {
        const Operands o = around_the_limits(dy, size, mixed);
        check(o, TRUENORM_BFLOAT16, true);
        check(o, TRUENORM_FLOAT32, true);
        check(o, TRUENORM_BFLOAT16, false);
      }
    }
  }
}

TEST(Records, KeepTheBounds) {
  for (const Size& size : kSizes) {
    if (size.d > 3000) continue;
    Operands o = around_the_limits(TRUENORM_BFLOAT16, size, true);
    check_backward(o);
    check_backward(o, {.dx_type = TRUENORM_FLOAT32});
    check_backward(o, {.dx = false});
  }
}

// That the rows above do lie on both sides: rstd of the one side is rounded to float32.
TEST(Records, OfBothWays) {
  for (const Size& size : kSizes) {
    const Operands o = around_the_limits(TRUENORM_BFLOAT16, size, true);
    SCOPED_TRACE(o.name);
    for (const std::string& level : levels()) {
      const std::vector<double> saved = record_of(o, kForwards[0], on_level(level));
      for (int64_t r = 0; r < o.rows; ++r) {
        const double rstd = std::fabs(saved[static_cast<size_t>(2 * r + 1)]);
        const bool quick = size.d >= 64 && mean_of(size, r, true) < kFirstApart;
        EXPECT_EQ(rstd == static_cast<double>(static_cast<float>(rstd)), quick) << "row " << r << " on " << level;
      }
    }
  }
}

}  // namespace
}  // namespace truenorm::test

// SPDX-License-Identifier: Apache-2.0
// Short rows go through the kernels several at a time, and those of few whole vectors have kernels of their own: batches whose
// rows are all of one kind, and batches of all kinds, with rows left over.
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "harness.h"
#include "operands.h"

namespace truenorm::test {
namespace {

void check_recipe(Recipe& recipe) {
  recipe.gamma = &kind(gamma_kinds(), "near 1");
  recipe.beta = &kind(gamma_kinds(), "normal");
  recipe.dy = &kind(row_kinds(), "normal");
  Operands o = make(recipe);
  check_forward(o, false);
  check_backward(o, {}, false);
}

class Batches : public testing::TestWithParam<std::tuple<Types, int64_t>> {};
INSTANTIATE_TEST_SUITE_P(Widths, Batches, testing::Combine(testing::ValuesIn(primary_types()),
                                                           testing::Values(1, 5, 8, 12, 24, 40, 64, 100, 128, 129)));

TEST_P(Batches, OfOneKindAndOfAll) {
  const auto& [types, d] = GetParam();
  Recipe recipe{types, d};
  const auto kinds = every(row_kinds());
  for (int64_t turn = 0; turn < 2; ++turn) recipe.rows.insert(recipe.rows.end(), kinds.begin(), kinds.end());
  for (const Kind* kind : kinds) recipe.rows.insert(recipe.rows.end(), 16, kind);
  recipe.rows.resize(recipe.rows.size() / 16 * 16 + 7, kinds.front());
  check_recipe(recipe);
}

// Written around the caches when there are many; most rows are plain, so that whole batches are, and a few are not.
class ShortRows : public testing::TestWithParam<std::tuple<Types, int64_t>> {};
INSTANTIATE_TEST_SUITE_P(Widths, ShortRows, testing::Combine(testing::ValuesIn(primary_types()), testing::Values(8, 13, 24, 32)));

TEST_P(ShortRows, BeyondTheCaches) {
  const auto& [types, d] = GetParam();
  Recipe recipe{types, d};
  const int64_t rows = (int64_t{4} << 20) / (d * format_of(types.x).bytes) + 21;
  for (int64_t row = 0; row < rows; ++row)
    recipe.rows.push_back(&kind(row_kinds(), row % 1013 == 5 ? "mean 1e3" : row % 3 ? "normal" : "mean 2, deviation 3"));
  check_recipe(recipe);
}

// Backward of rows that are few whole vectors: counts that leave rows over, and among plain rows, where batches and vectors begin
// and end, some that are exact by x or by dy, and dy that looks as if it were.
class ShortGradients : public testing::TestWithParam<std::tuple<Types, int64_t>> {};
INSTANTIATE_TEST_SUITE_P(Widths, ShortGradients, testing::Combine(testing::ValuesIn(primary_types()),
                                                                  testing::Values(8, 16, 24, 32, 48, 64)));

Operands unfriendly(const Types& types, int64_t d, int64_t rows, bool mostly_exact) {
  Recipe recipe{types, d};
  for (int64_t row = 0; row < rows; ++row) {
    const bool exact = mostly_exact ? row % 5 != 2 : row % 41 == 3 || row % 41 == 4 || row % 64 == 31;
    recipe.rows.push_back(&kind(row_kinds(), exact ? (row % 2 ? "mean 1e3" : "plus and minus largest") : row % 3 ? "normal" : "mean 2, deviation 3"));
  }
  recipe.gamma = &kind(gamma_kinds(), rows % 2 ? "near 1" : "zeros among numbers");
  recipe.dy = &kind(slope_kinds(), "normal");
  Operands o = make(recipe);
  o.dy.writable();
  const auto set_row = [&](int64_t row, double value) {
    for (int64_t i = 0; row < rows && i < d; ++i) o.dy.set(row * d + i, value);
  };
  const auto set_one = [&](int64_t row, double value) {
    if (row < rows) o.dy.set(row * d + row % d, value);
  };
  set_row(9, 0.0);
  set_row(10, -0.0);
  set_one(12, 0.0);
  set_one(13, 0x1p-70);  // beside larger ones: the row is plain all the same
  set_row(18, 0x1p-70);
  set_one(26, 0x1p126);
  set_one(37, std::numeric_limits<double>::quiet_NaN());
  set_one(38, -std::numeric_limits<double>::infinity());
  o.dy.read_only();
  return o;
}

TEST_P(ShortGradients, OfUnfriendlyRows) {
  const auto& [types, d] = GetParam();
  for (const bool mostly_exact : {false, true})
    for (const int64_t rows : {7, 8, 9, 15, 24, 31, 32, 33, 40, 47, 64, 71, 96, 103}) {
      Operands o = unfriendly(types, d, rows, mostly_exact);
      const int64_t number = o.number;
      for (int64_t turn = 0; turn < 4; ++turn) {  // with records and without, in place over dy and over x
        o.number = number + turn;
        check_backward(o, {}, false);
        check_backward(o, {true, false, false}, false);
      }
    }
}

// Rows so few that the totals of their gradients begin, end or both with them: all plain, with an exact one first, between or
// last, and with a column of zeros of either sign, whose totals are +0.
class FewRows : public testing::TestWithParam<std::tuple<Types, int64_t>> {};
INSTANTIATE_TEST_SUITE_P(Widths, FewRows, testing::Combine(testing::ValuesIn(primary_types()), testing::Values(16, 37, 100, 768, 1025, 2100)));

TEST_P(FewRows, BeginAndEndTheirTotals) {
  const auto& [types, d] = GetParam();
  for (const int64_t rows : {1, 2, 3, 4, 5, 8, 9, 17})
    for (int64_t exact = -1; exact < rows; exact += rows > 4 ? rows - 1 : 1) {
      Recipe recipe{types, d};
      for (int64_t row = 0; row < rows; ++row) recipe.rows.push_back(&kind(row_kinds(), row == exact ? "mean 1e3" : "normal"));
      recipe.gamma = &kind(gamma_kinds(), "near 1");
      recipe.dy = &kind(slope_kinds(), "normal");
      Operands o = make(recipe);
      o.dy.writable();
      for (int64_t row = 0; row < rows; ++row) {
        o.dy.set(row * d, -0.0);
        o.dy.set(row * d + d - 1, row % 2 ? 0.0 : -0.0);
      }
      o.dy.read_only();
      check_backward(o, {}, false);
    }
}

// Rows with others between them.
TEST_P(ShortGradients, OfRowsApart) {
  const auto& [t, d] = GetParam();
  for (const int64_t rows : {24, 47, 103}) {
    const Operands o = unfriendly(t, d, rows, false);
    const int64_t bytes = format_of(t.x).bytes, x_stride = d + 8, dy_stride = -(d + 3), dx_stride = 2 * d;
    Buffer x(t.x, rows * x_stride, Placement::misaligned), dy(t.y, rows * -dy_stride, Placement::misaligned);
    Buffer want(t.x, rows * d, Placement::misaligned), dgamma_want(t.affine, d, Placement::misaligned), dbeta_want(t.affine, d, Placement::misaligned);
    const int64_t last = (rows - 1) * -dy_stride;
    for (int64_t row = 0; row < rows; ++row) {
      const auto size = static_cast<size_t>(d * bytes);
      std::memcpy(x.bytes() + row * x_stride * bytes, o.x.bytes() + row * d * bytes, size);
      std::memcpy(dy.bytes() + (last + row * dy_stride) * bytes, o.dy.bytes() + row * d * bytes, size);
    }
    expect_backward(o.problem(), o.dy.data(), {t.x, t.affine, t.affine, want.data(), dgamma_want.data(), dbeta_want.data()});
    const truenorm_shape shape = shape_of({rows}, d);
    for (const std::string& level : levels()) {
      SCOPED_TRACE(level);
      ran_on(level);
      const truenorm_options options = on_level(level);
      const truenorm_input x_in = input(t.x, x.data(), &x_stride), none{nullptr, nullptr, t.affine};
      std::vector<double> saved(static_cast<size_t>(3 * rows));
      const truenorm_stats stats{nullptr, nullptr, nullptr, saved.data()};
      ASSERT_TRUE(is_ok(truenorm_layer_norm_forward(&shape, x_in, none, none, output(t.y, nullptr), &stats, o.eps, &options)));
      for (const bool has_record : {false, true}) {
        Buffer dx(t.x, rows * dx_stride, Placement::misaligned), dgamma(t.affine, d, Placement::misaligned), dbeta(t.affine, d, Placement::misaligned);
        dx.fill_pattern();
        ASSERT_TRUE(is_ok(truenorm_layer_norm_backward(
            &shape, input(t.y, dy.bytes() + last * bytes, &dy_stride), x_in, input(t.affine, o.gamma.data()),
            has_record ? saved.data() : nullptr, o.eps, output(t.x, dx.data(), &dx_stride), output(t.affine, dgamma.data()),
            output(t.affine, dbeta.data()), &options)));
        Buffer between(t.x, d, Placement::misaligned);
        between.fill_pattern();
        for (int64_t row = 0; row < rows; ++row) {
          const unsigned char* const at = dx.bytes() + row * dx_stride * bytes;
          ASSERT_TRUE(same_bits(t.x, want.bytes() + row * d * bytes, at, 1, d)) << "dx of row " << row;
          ASSERT_EQ(std::memcmp(at + d * bytes, between.data(), between.size_bytes()), 0) << "after row " << row;
        }
        ASSERT_TRUE(same_bits(t.affine, dgamma_want.data(), dgamma.data(), 1, d)) << "dgamma";
        ASSERT_TRUE(same_bits(t.affine, dbeta_want.data(), dbeta.data(), 1, d)) << "dbeta";
      }
    }
  }
}

// dx of every size down to none in one row: where it may be subnormal, the instruction that rounds to bfloat16 and flushes such
// numbers must not be used. Fours of features cancel in the sums of dy and of dy * x, so that dx is dy * rstd where nothing disturbs
// them; means are 0, tiny and ordinary.
class SmallGradients : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Widths, SmallGradients, testing::Values(64, 100, 768, 1100));

TEST_P(SmallGradients, AreNotFlushed) {
  const int64_t d = GetParam();
  Recipe recipe{{TRUENORM_BFLOAT16, TRUENORM_FLOAT32, TRUENORM_BFLOAT16}, d};
  recipe.rows.assign(77, &kind(row_kinds(), "normal"));
  recipe.dy = &kind(slope_kinds(), "normal");
  Operands o = make(recipe);
  o.x.writable();
  o.dy.writable();
  Random random(test_seed() + static_cast<uint64_t>(d));
  for (int64_t row = 0; row < o.rows; ++row) {
    const double mean = row % 3 == 0 ? 0 : row % 3 == 1 ? 0x1p-42 : 0.5;
    double x = 0, dy = 0;
    for (int64_t i = 0; i < d; ++i) {
      x = i % 2 ? -x : random.normal();
      if (i % 4 == 0) dy = std::ldexp(random.normal(), static_cast<int>(i / 4 * 5 % 145) * -1);
      o.x.set(row * d + i, x + mean);
      o.dy.set(row * d + i, i % 4 < 2 ? dy : -dy);
    }
    if (row % 7 == 6) o.dy.set(row * d + row % d, random.normal());  // disturbed
  }
  o.x.read_only();
  o.dy.read_only();
  for (int64_t turn = 0; turn < 4; ++turn) {
    ++o.number;
    check_backward(o, {}, false);
    check_backward(o, {true, false, false}, false);
  }
}

}  // namespace
}  // namespace truenorm::test

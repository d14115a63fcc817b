// SPDX-License-Identifier: Apache-2.0
// Backward on every instruction set: the bits of the reference, inside the bounds.
#include "harness.h"
#include "operands.h"

namespace truenorm::test {
namespace {

class Backward : public testing::TestWithParam<Types> {};

INSTANTIATE_TEST_SUITE_P(Types, Backward, testing::ValuesIn(all_types()), name_of_types);

bool is_primary(const Types& types) { return types.x == types.affine && types.x == types.y; }

TEST_P(Backward, AllWidths) {
  const auto kinds = every(row_kinds());
  int64_t turn = 0;
  for (const int64_t d : all_widths()) {
    ++turn;
    if (!full_grid() && turn % (is_primary(GetParam()) ? 2 : 6) != 0 && d > 70) continue;
    Recipe recipe{GetParam(), d};
    const size_t rows = full_grid() ? 7 : 2 + static_cast<size_t>(turn) % 4;
    for (size_t row = 0; row < rows; ++row) {
      recipe.rows.push_back(kinds[(static_cast<size_t>(turn) * 7 + row * 11) % (row == 0 ? 6 : kinds.size())]);
    }
    take_turns(recipe, turn);
    Operands operands = make(recipe);
    check_backward(operands);
    if (HasFatalFailure()) return;
  }
}

TEST_P(Backward, AllKindsOfRows) {
  int64_t turn = 0;
  for (const int64_t d : few_widths()) {
    for (const double eps : eps_values()) {
      for (size_t slope = 0; slope < slope_kinds().size(); ++slope) {
        ++turn;
        const int64_t share = d > 300 ? 60 : d > 30 ? 12 : 4;
        if (!full_grid() && (turn + d) % (is_primary(GetParam()) ? share : 5 * share) != 0) continue;
        Recipe recipe{GetParam(), d, eps, every(row_kinds())};
        recipe.dy = &slope_kinds()[slope];
        take_turns(recipe, turn * 3 + turn / 4);
        Operands operands = make(recipe);
        check_backward(operands);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Sums over numbers of rows around those at which blocks of rows begin.
TEST_P(Backward, NumbersOfRows) {
  for (const int64_t rows : {1, 2, 3, 31, 63, 64, 65, 127, 128, 129, 191, 193, 1023, 1025, 4095, 4097, 8192, 8209}) {
    for (const int64_t d : {int64_t{1}, int64_t{5}, int64_t{32}, int64_t{67}}) {
      if (!full_grid() && rows > 1000 && (d > 32 || !is_primary(GetParam()))) continue;
      Recipe recipe{GetParam(), d};
      const auto kinds = every(row_kinds());
      for (int64_t row = 0; row < rows; ++row) recipe.rows.push_back(kinds[static_cast<size_t>(row) % 12]);
      take_turns(recipe, rows + d);
      Operands operands = make(recipe);
      check_backward(operands, {}, rows < 300 || full_grid());
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(Backward, LongRows) {
  for (const int64_t d : {int64_t{65537}, int64_t{1000003}}) {
    if (d > 100000 && !is_primary(GetParam())) continue;
    for (const char* name : {"mean 1e3", "outlier 1e8, first"}) {
      if (d > 100000 && !full_grid() && std::string(name) != "mean 1e3") continue;
      Recipe recipe{GetParam(), d};
      recipe.rows = {&kind(row_kinds(), name)};
      recipe.gamma = &kind(gamma_kinds(), "near 1");
      recipe.dy = &kind(slope_kinds(), "mean 1");
      Operands operands = make(recipe);
      check_backward(operands, {}, d < 100000 || full_grid());
      if (HasFatalFailure()) return;
    }
  }
}

// Every subset of what can be asked for, in every type, written and added to.
TEST_P(Backward, AnySubsetInAnyType) {
  std::vector<truenorm_dtype> parameter_types{0};
  const bool narrow = GetParam().x != TRUENORM_FLOAT64;
  if (is_half(GetParam().x)) parameter_types.push_back(TRUENORM_FLOAT32);
  if (narrow) parameter_types.push_back(TRUENORM_FLOAT64);
  for (int subset = 1; subset < 8; ++subset) {
    for (const truenorm_dtype parameter_type : parameter_types) {
      for (const bool accumulate : {false, true}) {
        for (const bool wide_dx : {false, true}) {
          if (wide_dx && !is_half(GetParam().x)) continue;
          Recipe recipe{GetParam(), 37};
          const auto kinds = every(row_kinds());
          for (size_t row = 0; row < 70; ++row) recipe.rows.push_back(kinds[row % 12]);
          take_turns(recipe, subset * 5);
          Operands operands = make(recipe);
          BackwardChoice choice{(subset & 1) != 0, (subset & 2) != 0, (subset & 4) != 0};
          choice.parameter_type = parameter_type;
          choice.accumulate = accumulate;
          choice.dx_type = wide_dx ? TRUENORM_FLOAT32 : 0;
          SCOPED_TRACE("subset " + std::to_string(subset));
          check_backward(operands, choice);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(Backward, NoRowsAndNoFeatures) {
  for (const auto& [rows, d] : {std::pair<int64_t, int64_t>{0, 5}, {3, 0}, {0, 0}}) {
    for (const bool accumulate : {false, true}) {
      for (const std::string& level : levels()) {
        const truenorm_shape shape = shape_of({rows}, d);
        truenorm_options options = on_level(level);
        if (accumulate) options.flags = TRUENORM_ACCUMULATE;
        const Types& t = GetParam();
        Buffer x(t.x, 1, Placement::misaligned), dy(t.y, 1, Placement::misaligned);
        Buffer dx(t.x, 1, Placement::misaligned);
        Buffer dgamma(t.affine, d, Placement::before_unmapped), dbeta(t.affine, d, Placement::before_unmapped);
        for (int64_t i = 0; i < d; ++i) dgamma.set(i, 2), dbeta.set(i, 3);
        dx.fill_pattern();
        EXPECT_TRUE(is_ok(truenorm_layer_norm_backward(
            &shape, input(t.y, dy.data()), input(t.x, x.data()), {nullptr, nullptr, t.affine}, nullptr, 1e-5,
            output(t.x, dx.data()), output(t.affine, dgamma.data()), output(t.affine, dbeta.data()), &options)));
        EXPECT_TRUE(dx.has_pattern());
        for (int64_t i = 0; i < d; ++i) {
          EXPECT_EQ(dgamma[i], accumulate ? 2 : 0) << rows << " rows of " << d;
          EXPECT_EQ(dbeta[i], accumulate ? 3 : 0) << rows << " rows of " << d;
        }
      }
    }
  }
}

}  // namespace
}  // namespace truenorm::test

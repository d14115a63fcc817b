// SPDX-License-Identifier: Apache-2.0
// Forward on every instruction set: the bits of the reference, inside the bounds. Widths in full with few rows, rows in
// full with few widths; TRUENORM_TEST_FULL=1 for the product.
#include "harness.h"
#include "operands.h"

namespace truenorm::test {
namespace {

class Forward : public testing::TestWithParam<Types> {};

INSTANTIATE_TEST_SUITE_P(Types, Forward, testing::ValuesIn(all_types()), name_of_types);

bool is_primary(const Types& types) { return types.x == types.affine && types.x == types.y; }

TEST_P(Forward, AllWidths) {
  const auto kinds = every(row_kinds());
  int64_t turn = 0;
  for (const int64_t d : all_widths()) {
    ++turn;
    if (!is_primary(GetParam()) && !full_grid() && turn % 3 != 0) continue;
    Recipe recipe{GetParam(), d};
    const size_t rows = full_grid() ? 7 : 2;
    // The kinds at the front of the list take the larger share: ordinary rows, and large means.
    recipe.rows.push_back(kinds[static_cast<size_t>(turn) % 6]);
    while (recipe.rows.size() < rows) {
      recipe.rows.push_back(kinds[(static_cast<size_t>(turn) * 7 + recipe.rows.size() * 11) % kinds.size()]);
    }
    take_turns(recipe, turn);
    Operands operands = make(recipe);
    check_forward(operands);
    if (HasFatalFailure()) return;
  }
}

TEST_P(Forward, AllKindsOfRows) {
  int64_t turn = 0;
  for (const int64_t d : few_widths()) {
    for (const double eps : eps_values()) {
      ++turn;
      // Long rows with a quarter of the eps each, in turn.
      if (!full_grid() && d > 100 && (turn + d) % 4 != 0) continue;
      if (!full_grid() && !is_primary(GetParam()) && turn % 3 != 0) continue;
      Recipe recipe{GetParam(), d, eps, every(row_kinds())};
      const int64_t variants = full_grid() ? 12 : 1;
      for (int64_t variant = 0; variant < variants; ++variant) {
        take_turns(recipe, turn * 5 + variant);
        Operands operands = make(recipe);
        check_forward(operands);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(Forward, LongRows) {
  for (const int64_t d : {int64_t{65537}, int64_t{1000003}}) {
    if (d > 100000 && !is_primary(GetParam()) && !full_grid()) continue;
    Recipe recipe{GetParam(), d};
    for (const char* name : {"mean 1e3", "outlier 1e8, first", "mean 1e6", "plus and minus largest"}) {
      recipe.rows = {&kind(row_kinds(), name)};
      if (d > 100000 && !full_grid() && std::string(name) != "outlier 1e8, first") continue;
      take_turns(recipe, d % 4 + static_cast<int64_t>(recipe.rows.size()));
      Operands operands = make(recipe);
      check_forward(operands);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(Forward, NoRowsAndNoFeatures) {
  for (const auto& [rows, d] : {std::pair<int64_t, int64_t>{0, 5}, {3, 0}, {0, 0}}) {
    Recipe recipe{GetParam(), d};
    recipe.rows.assign(static_cast<size_t>(rows), &row_kinds().front());
    Operands operands = make(recipe);
    for (const std::string& level : levels()) {
      const truenorm_shape shape = shape_of({rows}, d);
      const truenorm_options options = on_level(level);
      Buffer y(GetParam().y, 8, Placement::misaligned);
      y.fill_pattern();
      EXPECT_TRUE(is_ok(truenorm_layer_norm_forward(
          &shape, input(GetParam().x, operands.x.data()), {nullptr, nullptr, GetParam().affine},
          {nullptr, nullptr, GetParam().affine}, output(GetParam().y, y.data()), nullptr, 1e-5, &options)));
      EXPECT_TRUE(y.has_pattern()) << rows << " rows of " << d;
    }
  }
}

}  // namespace
}  // namespace truenorm::test

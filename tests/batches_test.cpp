// SPDX-License-Identifier: Apache-2.0
// Short rows go through the kernels several at a time, and those of few whole vectors have kernels of their own: batches whose
// rows are all of one kind, and batches of all kinds, with rows left over.
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

}  // namespace
}  // namespace truenorm::test

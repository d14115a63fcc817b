// SPDX-License-Identifier: Apache-2.0
#include "operands.h"

#include <cstdio>

namespace truenorm::test {

Operands make(const Recipe& recipe) {
  static int64_t next_number = 0;
  Operands operands;
  operands.number = next_number++;
  operands.types = recipe.types;
  operands.rows = static_cast<int64_t>(recipe.rows.size());
  operands.d = recipe.d;
  operands.eps = recipe.eps;
  const auto placement = static_cast<Placement>(operands.number % kPlacements);
  const int64_t count = operands.rows * recipe.d;
  // The seed of a case depends on what the case is, not on which cases ran before it.
  uint64_t seed = test_seed();
  for (const int64_t part : {int64_t{recipe.types.x}, int64_t{recipe.types.affine}, int64_t{recipe.types.y}, recipe.d,
                             operands.rows, static_cast<int64_t>(std::bit_cast<uint64_t>(recipe.eps))}) {
    seed = Random(seed ^ static_cast<uint64_t>(part)).bits();
  }
  Random random(seed);

  char eps_text[32];
  std::snprintf(eps_text, sizeof eps_text, "%g", recipe.eps);
  operands.name = recipe.types.name() + ", " + std::to_string(operands.rows) + " x " + std::to_string(recipe.d) +
                  ", eps " + eps_text + ", x " +
                  (recipe.rows.empty()       ? "empty"
                   : recipe.rows.size() == 1 ? recipe.rows[0]->name
                                             : "of several kinds");
  operands.x = Buffer(recipe.types.x, count, placement);
  for (int64_t row = 0; row < operands.rows && recipe.d > 0; ++row) {
    recipe.rows[static_cast<size_t>(row)]->fill(operands.x, row * recipe.d, recipe.d, random);
  }
  const auto parameter = [&](const Kind* kind, Buffer& buffer, const char* what) {
    if (kind == nullptr) return;
    buffer = Buffer(recipe.types.affine, recipe.d, placement);
    if (recipe.d > 0) kind->fill(buffer, 0, recipe.d, random);
    buffer.read_only();
    operands.name += std::string(", ") + what + " " + kind->name;
  };
  parameter(recipe.gamma, operands.gamma, "gamma");
  parameter(recipe.beta, operands.beta, "beta");
  operands.dy = Buffer(recipe.types.y, count, placement);
  for (int64_t row = 0; row < operands.rows && recipe.d > 0; ++row) {
    const size_t turn = static_cast<size_t>(row + operands.number) % slope_kinds().size();
    const Kind& kind = recipe.dy != nullptr ? *recipe.dy : slope_kinds()[turn];
    kind.fill(operands.dy, row * recipe.d, recipe.d, random);
  }
  if (recipe.dy != nullptr) operands.name += std::string(", dy ") + recipe.dy->name;
  operands.x.read_only();
  operands.dy.read_only();
  return operands;
}

std::vector<const Kind*> every(const std::vector<Kind>& kinds) {
  std::vector<const Kind*> list;
  for (const Kind& kind : kinds) list.push_back(&kind);
  return list;
}

void take_turns(Recipe& recipe, int64_t turn) {
  const auto t = static_cast<size_t>(turn);
  recipe.gamma = t % 4 == 1 || t % 4 == 3 ? &gamma_kinds()[t / 4 % gamma_kinds().size()] : nullptr;
  // Another period, so that every kind of gamma meets every kind of beta.
  recipe.beta = t % 4 >= 2 ? &beta_kinds()[(t / 4 + t / 4 / gamma_kinds().size()) % beta_kinds().size()] : nullptr;
}

}  // namespace truenorm::test

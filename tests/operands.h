// SPDX-License-Identifier: Apache-2.0
// One case: the operands of forward and backward, contiguous, and the checks that every case goes through.
#ifndef TRUENORM_TESTS_OPERANDS_H_
#define TRUENORM_TESTS_OPERANDS_H_

#include <string>
#include <vector>

#include "buffers.h"
#include "cases.h"
#include "expected.h"

namespace truenorm::test {

struct Operands {
  Types types;
  int64_t rows = 0, d = 0;
  double eps = 1e-5;
  Buffer x, gamma, beta, dy;  // gamma, beta: empty when absent
  std::string name;
  int64_t number = 0;  // of the case; placements and variants take turns by it

  Problem problem() const {
    return {types, rows, d, eps, x.data(), gamma ? gamma.data() : nullptr, beta ? beta.data() : nullptr};
  }
};

// What to make a case of. `rows` names the kinds, one row each, in turn.
struct Recipe {
  Types types;
  int64_t d;
  double eps = 1e-5;
  std::vector<const Kind*> rows = {};
  const Kind* gamma = nullptr;  // nullptr: absent
  const Kind* beta = nullptr;
  const Kind* dy = nullptr;  // nullptr: a different kind for every row
};

Operands make(const Recipe& recipe);

// All kinds, as pointers.
std::vector<const Kind*> every(const std::vector<Kind>& kinds);

// Which of the optional operands a case has takes turns: none, gamma, beta, both; and their kinds with it.
void take_turns(Recipe& recipe, int64_t turn);

// y and the statistics on every level: bits equal to the reference, guards whole, the same without statistics, in
// place; and, with `oracle`, within the bounds.
void check_forward(Operands& operands, bool oracle = true);

struct BackwardChoice {
  bool dx = true, dgamma = true, dbeta = true;
  truenorm_dtype dx_type = 0;         // 0: x's
  truenorm_dtype parameter_type = 0;  // 0: gamma's, without gamma x's
  bool accumulate = false;
};
// dx, dgamma, dbeta likewise: with and without what forward saved, in place over dy and over x.
void check_backward(Operands& operands, const BackwardChoice& choice = {}, bool oracle = true);

}  // namespace truenorm::test

#endif  // TRUENORM_TESTS_OPERANDS_H_

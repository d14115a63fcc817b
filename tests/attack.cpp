// SPDX-License-Identifier: Apache-2.0
// Tries to break the bounds: hill-climbing on the inputs of one small case at a time, with the library's best
// instruction set as the thing attacked (all levels have its bits) and the oracle as the judge.
//
//   attack [seconds [seed]]
//
// With TRUENORM_TEST_FULL=1 it takes a hundred times as long. Prints the worst found for each quantity and type with the
// inputs that show it; exit 1 when a bound is broken.
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "cases.h"
#include "harness.h"
#include "oracle.h"
#include "random.h"

namespace truenorm::test {
namespace {

constexpr double kEps[] = {0, 1e-5, 1e-12, 10, 1e30, 0x1p-1074, 0x1p-100};

// One row (several for the gradients of the parameters) with everything that belongs to it.
struct Candidate {
  int64_t rows, d;
  double eps;
  std::vector<double> x, dy, gamma, beta;
};

struct Target {
  const char* name;
  Types types;
  bool affine;
  double bound;
  enum What { y, dx, dgamma, dbeta } what;
};

Buffer buffer_of(truenorm_dtype dtype, const std::vector<double>& values) {
  Buffer buffer(dtype, static_cast<int64_t>(values.size()), Placement::misaligned);
  for (size_t i = 0; i < values.size(); ++i) buffer.set(static_cast<int64_t>(i), values[i]);
  return buffer;
}

double score(const Target& target, const Candidate& c) {
  const Types& t = target.types;
  const Buffer x = buffer_of(t.x, c.x), dy = buffer_of(t.y, c.dy);
  const Buffer gamma = buffer_of(t.affine, c.gamma), beta = buffer_of(t.affine, c.beta);
  const truenorm_shape shape = shape_of({c.rows}, c.d);
  truenorm_options options = TRUENORM_OPTIONS_INIT;
  options.num_threads = 1;
  const void* scale = target.affine ? gamma.data() : nullptr;
  const int64_t x_bytes = format_of(t.x).bytes, y_bytes = format_of(t.y).bytes;
  double worst = 0;
  if (target.what == Target::y) {
    Buffer y(t.y, c.rows * c.d, Placement::misaligned);
    const void* shift = target.affine ? beta.data() : nullptr;
    truenorm_layer_norm_forward(&shape, input(t.x, x.data()), input(t.affine, scale), input(t.affine, shift),
                                output(t.y, y.data()), nullptr, c.eps, &options);
    for (int64_t row = 0; row < c.rows; ++row) {
      const oracle::Row exact({t.x, x.bytes() + row * c.d * x_bytes}, c.d, c.eps);
      worst =
          std::max(worst, exact.y({t.affine, scale}, {t.affine, shift}, {t.y, y.bytes() + row * c.d * y_bytes}).ratio);
    }
    return worst;
  }
  Buffer dx(t.x, c.rows * c.d, Placement::misaligned), dgamma(t.affine, c.d, Placement::misaligned);
  Buffer dbeta(t.affine, c.d, Placement::misaligned);
  truenorm_layer_norm_backward(&shape, input(t.y, dy.data()), input(t.x, x.data()), input(t.affine, scale), nullptr,
                               c.eps, output(t.x, dx.data()), output(t.affine, dgamma.data()),
                               output(t.affine, dbeta.data()), &options);
  oracle::Gradients exact(c.d, {t.affine, scale}, c.eps, true);
  for (int64_t row = 0; row < c.rows; ++row) {
    const oracle::Elements got{t.x, target.what == Target::dx ? dx.bytes() + row * c.d * x_bytes : nullptr};
    worst = std::max(
        worst, exact.row({t.x, x.bytes() + row * c.d * x_bytes}, {t.y, dy.bytes() + row * c.d * y_bytes}, got).ratio);
  }
  if (target.what == Target::dx) return worst;
  return target.what == Target::dgamma ? exact.dgamma({t.affine, dgamma.data()}).ratio
                                       : exact.dbeta({t.affine, dbeta.data()}).ratio;
}

// `ordinary`: only the first kinds of the list, which end up where most rows do. The others are computed with more
// digits than they need, and hill-climbing stays on their half an ulp.
std::vector<double> filled(const std::vector<Kind>& kinds, truenorm_dtype dtype, int64_t rows, int64_t d, bool ordinary,
                           Random& random) {
  Buffer buffer(dtype, rows * d, Placement::misaligned);
  std::vector<double> values;
  const auto choices = ordinary ? int64_t{3} : static_cast<int64_t>(kinds.size());
  for (int64_t row = 0; row < rows; ++row) {
    kinds[static_cast<size_t>(random.below(choices))].fill(buffer, row * d, d, random);
  }
  for (int64_t i = 0; i < rows * d; ++i) values.push_back(buffer[i]);
  return values;
}

Candidate fresh(const Target& target, Random& random) {
  Candidate c;
  c.rows = target.what == Target::dgamma || target.what == Target::dbeta ? 1 + random.below(12) : 1;
  c.d = random.below(3) == 0 ? 1 + random.below(70) : 1 + random.below(12);
  const bool ordinary = random.below(4) != 0;
  c.eps = kEps[static_cast<size_t>(random.below(ordinary ? 2 : 7))];
  c.x = filled(row_kinds(), target.types.x, c.rows, c.d, ordinary, random);
  c.dy = filled(slope_kinds(), target.types.y, c.rows, c.d, ordinary, random);
  c.gamma = filled(gamma_kinds(), target.types.affine, 1, c.d, ordinary, random);
  c.beta = filled(beta_kinds(), target.types.affine, 1, c.d, ordinary, random);
  return c;
}

// A small step of one operand: a few units in the last place, a power of two, a neighbour's value, a new number.
void mutate(std::vector<double>& values, truenorm_dtype dtype, Random& random) {
  const auto i = static_cast<size_t>(random.below(static_cast<int64_t>(values.size())));
  const double largest = format_of(dtype).largest;
  switch (random.below(6)) {
    case 0: values[i] = step(dtype, values[i], random.coin() ? 1 : -1); break;
    case 1: values[i] = step(dtype, values[i], random.below(41) - 20); break;
    case 2: values[i] *= 1 + 0.1 * random.normal(); break;
    case 3: values[i] *= std::ldexp(random.sign(), static_cast<int>(random.below(5)) - 2); break;
    case 4: values[i] = values[static_cast<size_t>(random.below(static_cast<int64_t>(values.size())))]; break;
    default: {  // all of them, so that the mean or the scale moves
      const double factor = random.coin() ? 1 + 0.01 * random.normal() : 1;
      const double shift = random.coin() ? values[i] * 0.01 * random.normal() : 0;
      for (double& value : values) value = value * factor + shift;
    }
  }
  for (double& value : values) value = round_to(dtype, std::min(std::max(value, -largest), largest));
}

void print(const char* name, const std::vector<double>& values) {
  std::printf("    %s =", name);
  for (size_t i = 0; i < values.size() && i < 24; ++i) std::printf(" %a", values[i]);
  std::printf(values.size() > 24 ? " ...\n" : "\n");
}

// Returns the worst ratio found in the time given.
double attack(const Target& target, double seconds, uint64_t seed) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  Random random(seed);
  Candidate best;
  double best_score = -1;
  int64_t tried = 0;
  while (Clock::now() < end) {
    Candidate current = fresh(target, random);
    double current_score = score(target, current);
    for (int without_gain = 0; without_gain < 150 && Clock::now() < end; ++without_gain, ++tried) {
      Candidate next = current;
      const int64_t operand = random.below(8);
      if (operand < 4) mutate(next.x, target.types.x, random);
      if (operand == 4 || operand == 5)
        mutate(target.what == Target::y ? next.beta : next.dy,
               target.what == Target::y ? target.types.affine : target.types.y, random);
      if (operand == 6) mutate(next.gamma, target.types.affine, random);
      if (operand == 7)
        next.eps = random.coin() ? kEps[static_cast<size_t>(random.below(7))] : next.eps * (1 + 0.1 * random.uniform());
      const double next_score = score(target, next);
      if (next_score >= current_score) {
        if (next_score > current_score) without_gain = 0;
        current = std::move(next);
        current_score = next_score;
      }
    }
    if (current_score > best_score) best_score = current_score, best = current;
  }
  std::printf("%-6s %-28s %-8s worst %.4g of %g (%" PRId64 " tried; %" PRId64 " x %" PRId64 ", eps %g)%s\n",
              target.name, target.types.name().c_str(), target.affine ? "affine" : "plain", best_score * target.bound,
              target.bound, tried, best.rows, best.d, best.eps, best_score > 1 ? "  BROKEN" : "");
  print("x", best.x);
  if (target.what != Target::y) print("dy", best.dy);
  if (target.affine) print("gamma", best.gamma);
  if (target.affine && target.what == Target::y) print("beta", best.beta);
  std::fflush(stdout);
  return best_score;
}

int attack_all(double seconds, uint64_t seed) {
  std::vector<Target> targets;
  std::vector<Types> types = primary_types();
  types.push_back({TRUENORM_BFLOAT16, TRUENORM_FLOAT32, TRUENORM_FLOAT32});
  types.push_back({TRUENORM_FLOAT16, TRUENORM_FLOAT32, TRUENORM_FLOAT32});
  for (const Types& t : types) {
    const bool wide = t.x == TRUENORM_FLOAT64;
    const auto bound = [&](truenorm_dtype result, double n) { return is_half(result) ? 0.51 : wide ? 16.0 : n; };
    targets.push_back({"y", t, false, bound(t.y, 3), Target::y});
    targets.push_back({"y", t, true, bound(t.y, 4), Target::y});
    targets.push_back({"dx", t, false, bound(t.x, 8), Target::dx});
    targets.push_back({"dx", t, true, bound(t.x, 8), Target::dx});
    targets.push_back({"dgamma", t, true, bound(t.affine, 5), Target::dgamma});
    targets.push_back({"dbeta", t, true, bound(t.affine, 1), Target::dbeta});
  }
  std::printf("seed %" PRIu64 "; %.0f s for %zu targets; on %s\n", seed, seconds, targets.size(), truenorm_isa());
  bool broken = false;
  for (size_t i = 0; i < targets.size(); ++i) {
    broken |= attack(targets[i], seconds / static_cast<double>(targets.size()), seed + i) > 1;
  }
  return broken ? 1 : 0;
}

}  // namespace
}  // namespace truenorm::test

int main(int argc, char** argv) {
  double seconds = argc > 1 ? std::atof(argv[1]) : 60;
  if (truenorm::test::full_grid()) seconds *= 100;  // a minute a target
  const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 0) : 1;
  return truenorm::test::attack_all(seconds, seed);
}

// SPDX-License-Identifier: Apache-2.0
// Random inputs that are the same on every machine: integer arithmetic and exact operations only, no libm.
#ifndef TRUENORM_TESTS_RANDOM_H_
#define TRUENORM_TESTS_RANDOM_H_

#include <cmath>
#include <cstdint>

namespace truenorm::test {

class Random {  // SplitMix64
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t bits() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int64_t below(int64_t n) { return static_cast<int64_t>(bits() % static_cast<uint64_t>(n)); }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  bool coin() { return (bits() >> 63) != 0; }
  double sign() { return coin() ? 1 : -1; }
  // Mean 0, variance 1, within +-6: twelve uniform numbers. Near enough to a normal distribution for a test.
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum;
  }
  // A magnitude whose exponent is even over [low, high].
  double exponent(int low, int high) {
    const int power = low + static_cast<int>(below(high - low + 1));  // first: compilers order arguments differently
    return std::ldexp(1 + uniform(), power);
  }

 private:
  uint64_t state_;
};

}  // namespace truenorm::test

#endif  // TRUENORM_TESTS_RANDOM_H_

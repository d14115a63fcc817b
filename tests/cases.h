// SPDX-License-Identifier: Apache-2.0
// Inputs chosen by what goes wrong in layer normalizations: kinds of rows, parameters, gradients, widths and eps.
#ifndef TRUENORM_TESTS_CASES_H_
#define TRUENORM_TESTS_CASES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "buffers.h"
#include "random.h"
#include "truenorm/truenorm.h"

namespace truenorm::test {

// `d` features to fill, and the chance to fill them with. Values are rounded to the type and kept finite in it.
struct Span {
  Buffer& buffer;
  int64_t begin, d;
  Random& random;
  const Format& format = format_of(buffer.dtype());

  truenorm_dtype dtype() const { return buffer.dtype(); }
  void set(int64_t i, double value);
  double operator[](int64_t i) const { return buffer[begin + i]; }
  bool float16() const { return format.emax == 15; }  // a narrow range: sizes are cut down to fit
  double normal() { return random.normal(); }
  double uniform() { return random.uniform(); }
  double sign() { return random.sign(); }
  double exponent(int low, int high) { return random.exponent(low, high); }
};

// A way to fill a row, by name.
struct Kind {
  const char* name;
  std::function<void(Span&)> fill_span;
  void fill(Buffer& out, int64_t begin, int64_t d, Random& random) const {
    Span span{out, begin, d, random};
    fill_span(span);
  }
};

const std::vector<Kind>& row_kinds();  // x
const std::vector<Kind>& gamma_kinds();
const std::vector<Kind>& beta_kinds();
const std::vector<Kind>& slope_kinds();  // dy
const Kind& kind(const std::vector<Kind>& kinds, const std::string& name);

// 1 to 300, and around the multiples of every vector length and of every segment up to 4099.
std::vector<int64_t> all_widths();
// A few widths that still meet every tail: below, at and above a vector, a segment.
std::vector<int64_t> few_widths();

// 0, subnormal, 1e-12, 1e-5, 10, 1e30.
const std::vector<double>& eps_values();

// Which types go together: x, gamma and beta, y (in backward dy).
struct Types {
  truenorm_dtype x, affine, y;
  std::string name() const;
};
const std::vector<Types>& all_types();      // every pair that is supported
const std::vector<Types>& primary_types();  // all of one type

bool full_grid();      // TRUENORM_TEST_FULL=1: everything; else a selection of a few minutes
uint64_t test_seed();  // TRUENORM_TEST_SEED, else a fixed number

}  // namespace truenorm::test

#endif  // TRUENORM_TESTS_CASES_H_

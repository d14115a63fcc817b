// SPDX-License-Identifier: Apache-2.0
#include "cases.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace truenorm::test {
namespace {

// Every feature by chance, each on its own.
template <class Value>
std::function<void(Span&)> each(Value value) {
  return [value](Span& s) {
    for (int64_t i = 0; i < s.d; ++i) s.set(i, value(s));
  };
}

void constant(Span& s, double value) {
  for (int64_t i = 0; i < s.d; ++i) s.set(i, value);
}

void normal(Span& s, double mean, double deviation) {
  for (int64_t i = 0; i < s.d; ++i) s.set(i, mean + deviation * s.normal());
}

// Rows whose mean lies at `ratio` standard deviations: kernels change their method there.
void at_ratio(Span& s, double ratio) {
  const double offset = ratio * (1 + (s.uniform() - 0.5) * 0.002);
  for (int64_t i = 0; i < s.d; ++i) {
    const double unit = i % 2 == 0 ? 1 : -1;  // standard deviation 1 for even d
    s.set(i, offset + unit * (1 + 0x1p-9 * s.normal()));
  }
}

// Rows whose variance lies at 2^(2 * exponent), a little below or above.
void at_variance(Span& s, int exponent) {
  const double scale = std::ldexp(1 + (s.uniform() - 0.5) * 0.01, exponent);
  for (int64_t i = 0; i < s.d; ++i) s.set(i, scale * ((i % 2 == 0 ? 1 : -1) * (1 + 0x1p-9 * s.normal())));
}

void outlier(Span& s, int64_t where) {
  normal(s, 0, 1);
  s.set(where, 1e8);
}

void one_ulp_off(Span& s, int64_t where) {
  s.set(0, s.exponent(-3, 12) * s.sign());
  const double value = s[0];
  constant(s, value);
  s.set(where, step(s.dtype(), value, s.random.coin() ? 1 : -1));
}

}  // namespace

void Span::set(int64_t i, double value) { buffer.set(begin + i, std::clamp(value, -format.largest, format.largest)); }

const std::vector<Kind>& row_kinds() {
  static const std::vector<Kind> kinds = {
      {"normal", each([](Span& s) { return s.normal(); })},
      {"mean 2, deviation 3", each([](Span& s) { return 2 + 3 * s.normal(); })},
      {"mean 10", each([](Span& s) { return 10 + s.normal(); })},
      {"mean 1e3", each([](Span& s) { return 1000 + s.normal(); })},
      {"mean 1e5, deviation 0.01", each([](Span& s) { return 1e5 + 0.01 * s.normal(); })},
      {"mean 1e6", each([](Span& s) { return 1e6 + s.normal(); })},
      {"mean -1e6, deviation 1e-2", each([](Span& s) { return -1e6 + 1e-2 * s.normal(); })},
      {"mean at 4 deviations", [](Span& s) { at_ratio(s, 4); }},
      {"mean at sqrt(15) deviations", [](Span& s) { at_ratio(s, 3.872983346); }},
      {"mean at -sqrt(15) deviations", [](Span& s) { at_ratio(s, -3.872983346); }},
      {"mean at sqrt(7) deviations", [](Span& s) { at_ratio(s, 2.645751311); }},
      {"few ulps around 1",
       [](Span& s) {
         for (int64_t i = 0; i < s.d; ++i) s.set(i, step(s.dtype(), 1, s.random.below(7) - 3));
       }},
      {"few ulps around 1e6 or 1e4",
       [](Span& s) {
         for (int64_t i = 0; i < s.d; ++i) s.set(i, step(s.dtype(), s.float16() ? 1e4 : 1e6, s.random.below(5) - 2));
       }},
      {"one ulp off, first", [](Span& s) { one_ulp_off(s, 0); }},
      {"one ulp off, middle", [](Span& s) { one_ulp_off(s, s.d / 2); }},
      {"one ulp off, last", [](Span& s) { one_ulp_off(s, s.d - 1); }},
      {"outlier 1e8, first", [](Span& s) { outlier(s, 0); }},
      {"outlier 1e8, middle", [](Span& s) { outlier(s, s.d / 2); }},
      {"outlier 1e8, last", [](Span& s) { outlier(s, s.d - 1); }},
      {"one nonzero",
       [](Span& s) {
         constant(s, 0);
         s.set(s.random.below(s.d), 3);
       }},
      {"one nonzero, huge",
       [](Span& s) {
         constant(s, 0);
         s.set(s.random.below(s.d), -s.format.largest);
       }},
      {"one nonzero, least",
       [](Span& s) {
         constant(s, 0);
         s.set(s.random.below(s.d), s.format.least);
       }},
      {"subnormal", each([](Span& s) { return s.format.least * static_cast<double>(s.random.below(2000) - 1000); })},
      {"least numbers", each([](Span& s) { return s.format.least * static_cast<double>(s.random.below(3)); })},
      {"around the least normal", each([](Span& s) { return s.format.least_normal * s.normal(); })},
      {"size 1e-30", each([](Span& s) { return 1e-30 * (s.float16() ? 1e25 : 1) * s.normal(); })},
      {"size 1e19", each([](Span& s) { return (s.float16() ? 1e3 : 1e19) * s.normal(); })},
      {"size 1e30", each([](Span& s) { return (s.float16() ? 1e4 : 1e30) * s.normal(); })},
      {"whole range", each([](Span& s) { return s.format.largest * (2 * s.uniform() - 1); })},
      {"plus and minus largest", each([](Span& s) { return s.sign() * s.format.largest; })},
      {"near largest, one side",
       [](Span& s) {
         for (int64_t i = 0; i < s.d; ++i) s.set(i, step(s.dtype(), s.format.largest, -s.random.below(9)));
       }},
      {"a quarter of largest", each([](Span& s) { return s.format.largest / 4 * (1 + 0.001 * s.normal()); })},
      {"all exponents",
       each([](Span& s) { return s.sign() * s.exponent(s.format.emin - s.format.precision + 1, s.format.emax); })},
      {"exponents -30 to 30",
       each([](Span& s) { return s.sign() * s.exponent(s.float16() ? -14 : -30, s.float16() ? 14 : 30); })},
      {"cancelling giants",
       [](Span& s) {
         normal(s, 0, 1e-3);
         const double giant = s.float16() ? 3e4 : 1e30;
         s.set(0, giant);
         if (s.d > 2) {
           s.set(1, 1);
           s.set(2, -giant);
         }
       }},
      {"constant 0.1", [](Span& s) { constant(s, 0.1); }},
      {"constant 1e6", [](Span& s) { constant(s, 1e6); }},
      {"constant largest", [](Span& s) { constant(s, s.format.largest); }},
      {"constant least", [](Span& s) { constant(s, s.format.least); }},
      {"zeros", [](Span& s) { constant(s, 0); }},
      {"zeros of both signs", each([](Span& s) { return s.sign() * 0.0; })},
      {"two values", each([](Span& s) { return s.random.coin() ? 7 : -3; })},
      {"symmetric",
       [](Span& s) {
         normal(s, 0, 1);
         for (int64_t i = 1; i < s.d; i += 2) s.set(i, -s[i - 1]);
       }},
      {"ramp",
       [](Span& s) {
         for (int64_t i = 0; i < s.d; ++i) s.set(i, static_cast<double>(i));
       }},
      {"ramp far from zero",
       [](Span& s) {
         for (int64_t i = 0; i < s.d; ++i) s.set(i, (s.float16() ? 2000.0 : 6399968.0) + static_cast<double>(i));
       }},
      {"steps of a segment",
       [](Span& s) {
         normal(s, 0, 1);
         for (int64_t i = 0; i < s.d; ++i) s.set(i, (s[i] + 1000.0 * static_cast<double>(i / 256 % 5)));
       }},
      {"deviation 2^-20", [](Span& s) { at_variance(s, -20); }},
      {"deviation 2^14", [](Span& s) { at_variance(s, 14); }},
      {"variance at 2^-100", [](Span& s) { at_variance(s, -50); }},
      {"variance at 2^100", [](Span& s) { at_variance(s, 50); }},
      {"size 2^-300", each([](Span& s) { return 0x1p-300 * s.normal(); })},
      {"size 2^-400", [](Span& s) { at_variance(s, -400); }},
      {"size 2^400", [](Span& s) { at_variance(s, 400); }},
      {"size 2^511", [](Span& s) { at_variance(s, 511); }},
      {"size 2^-511", [](Span& s) { at_variance(s, -511); }},
      {"size 2^-537", [](Span& s) { at_variance(s, -537); }},
      {"size 2^-700, mean 2^-690", each([](Span& s) { return 0x1p-690 + 0x1p-700 * s.normal(); })},
      {"size 2^700, mean 2^900", each([](Span& s) { return 0x1p900 + 0x1p700 * s.normal(); })},
      {"deviation 2^-450, mean 1",
       [](Span& s) {
         normal(s, 0, 0x1p-450);
         if (s.d > 1) s.set(1, s.format.least * 1e3);
       }},
  };
  return kinds;
}

const std::vector<Kind>& gamma_kinds() {
  static const std::vector<Kind> kinds = {
      {"ones", [](Span& s) { constant(s, 1); }},
      {"normal", each([](Span& s) { return s.normal(); })},
      {"near 1", each([](Span& s) { return 1 + 0.1 * s.normal(); })},
      {"subnormal", each([](Span& s) { return s.format.least * static_cast<double>(s.random.below(2000) - 1000); })},
      {"1e37", each([](Span& s) { return (s.float16() ? 6e4 : 1e37) * (1 + 0.1 * s.normal()); })},
      {"all exponents", each([](Span& s) { return s.sign() * s.exponent(s.format.emin, s.format.emax); })},
      {"zeros among numbers", each([](Span& s) { return s.random.coin() ? s.sign() * 0.0 : s.normal(); })},
      {"by column",
       [](Span& s) {
         for (int64_t i = 0; i < s.d; ++i) s.set(i, static_cast<double>(i % 97 + 1));
       }},
      {"largest", each([](Span& s) { return s.sign() * s.format.largest; })},
  };
  return kinds;
}

const std::vector<Kind>& beta_kinds() {
  static const std::vector<Kind> kinds = {
      {"zeros", [](Span& s) { constant(s, 0); }},
      {"normal", each([](Span& s) { return s.normal(); })},
      {"negative zeros", [](Span& s) { constant(s, -0.0); }},
      {"subnormal", each([](Span& s) { return s.format.least * static_cast<double>(s.random.below(2000) - 1000); })},
      {"1e37", each([](Span& s) { return (s.float16() ? 6e4 : 1e37) * s.normal(); })},
      {"all exponents", each([](Span& s) { return s.sign() * s.exponent(s.format.emin, s.format.emax); })},
      {"near -1", each([](Span& s) { return -1 + 1e-3 * s.normal(); })},
      {"by column",
       [](Span& s) {
         for (int64_t i = 0; i < s.d; ++i) s.set(i, static_cast<double>(i % 89) - 44);
       }},
      {"largest", each([](Span& s) { return s.sign() * s.format.largest; })},
  };
  return kinds;
}

const std::vector<Kind>& slope_kinds() {
  static const std::vector<Kind> kinds = {
      {"normal", each([](Span& s) { return s.normal(); })},
      {"mean 1", each([](Span& s) { return 1 + 0.1 * s.normal(); })},
      {"ones", [](Span& s) { constant(s, 1); }},
      {"mean 1e4", each([](Span& s) { return 1e4 + s.normal(); })},
      {"size 1e30", each([](Span& s) { return (s.float16() ? 1e4 : 1e30) * s.normal(); })},
      {"size 1e-30", each([](Span& s) { return (s.float16() ? 1e-6 : 1e-30) * s.normal(); })},
      {"subnormal", each([](Span& s) { return s.format.least * static_cast<double>(s.random.below(2000) - 1000); })},
      {"all exponents",
       each([](Span& s) { return s.sign() * s.exponent(s.format.emin - s.format.precision + 1, s.format.emax); })},
      {"exponents -12 to 12", each([](Span& s) { return s.sign() * s.exponent(-12, 12); })},
      {"zeros", each([](Span& s) { return s.sign() * 0.0; })},
      {"one nonzero",
       [](Span& s) {
         constant(s, 0);
         s.set(s.random.below(s.d), 1);
       }},
      {"alternating",
       [](Span& s) {
         for (int64_t i = 0; i < s.d; ++i) s.set(i, i % 2 == 0 ? 1 : -1);
       }},
      {"around 2^126", each([](Span& s) { return (s.float16() ? 0x1p15 : 0x1p126) * (1 + 0x1p-6 * s.normal()); })},
      {"around 2^-63", each([](Span& s) { return (s.float16() ? 0x1p-14 : 0x1p-63) * (1 + 0x1p-6 * s.normal()); })},
      {"largest", each([](Span& s) { return s.sign() * s.format.largest; })},
  };
  return kinds;
}

const Kind& kind(const std::vector<Kind>& kinds, const std::string& name) {
  for (const Kind& candidate : kinds) {
    if (candidate.name == name) return candidate;
  }
  std::fprintf(stderr, "no kind is named '%s'\n", name.c_str());
  std::abort();
}

}  // namespace truenorm::test

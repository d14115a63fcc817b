// SPDX-License-Identifier: Apache-2.0
// What the oracle's two directions share: the exact statistics of a row, and the comparison of one number.
#ifndef TRUENORM_TESTS_ORACLE_ROW_H_
#define TRUENORM_TESTS_ORACLE_ROW_H_

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

#include "elements.h"
#include "oracle.h"
#include "real.h"

namespace truenorm::oracle {

using test::Format;
using test::format_of;
using test::load;

inline constexpr mpfr_prec_t kWork = 128;  // what follows the subtraction of the mean; see oracle.h
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline mpfr_prec_t row_bits(truenorm_dtype x) { return x == TRUENORM_FLOAT64 ? 4400 : 700; }

inline double h_of(truenorm_dtype x) { return x == TRUENORM_FLOAT64 ? 0x1p-47 : 0x1p-44; }
// What y and the gradients are allowed, by the type of y or dx (x's own where no dx is wanted).
inline double h_of(truenorm_dtype x, truenorm_dtype result) {
  return x == TRUENORM_BFLOAT16 && result == TRUENORM_BFLOAT16 ? 0x1p-17 : h_of(x);
}

// The format whose ulps a bound counts: that of the result, except that float64 sums over rows of a narrower type are
// promised in ulps of float32 (with the exponents of float64).
inline Format counted_in(truenorm_dtype result, truenorm_dtype x) {
  Format format = format_of(result);
  if (result == TRUENORM_FLOAT64 && x != TRUENORM_FLOAT64) format.precision = format_of(TRUENORM_FLOAT32).precision;
  return format;
}

inline Finding wrong(int64_t index, const std::string& text) { return {kInfinity, index, text}; }

// Scratch numbers of one comparison, made once: MPFR allocates.
struct Comparison {
  Real error{kWork}, allowed{kWork}, limit{kWork};

  // (|got - exact| - extra) / (n * ulp(w)), in the contract's terms. `w` and `extra` are not negative.
  Finding measure(const Format& format, double n, double got, const Real& exact, const Real& w, const Real& extra,
                  int64_t index) {
    const int exponent = mpfr_zero_p(*w) ? format.emin : static_cast<int>(mpfr_get_exp(*w)) - 1;
    const int ulp = test::ulp_exponent(format, exponent);
    // Rounding reaches infinity half an ulp above the largest number.
    mpfr_set_ui_2exp(*limit, 1, format.emax - format.precision, MPFR_RNDN);
    mpfr_add_d(*limit, *limit, format.largest, MPFR_RNDN);
    mpfr_set_d(*allowed, n, MPFR_RNDN);
    mpfr_mul_2si(*allowed, *allowed, ulp, MPFR_RNDN);
    mpfr_add(*allowed, *allowed, *extra, MPFR_RNDN);
    if (std::isnan(got)) return wrong(index, "NaN where " + exact.text() + " is exact");
    if (std::isinf(got)) {
      if (mpfr_cmp_d(*w, format.largest) >= 0 && mpfr_cmpabs(*exact, *allowed) <= 0) return {};  // either sign
      mpfr_abs(*error, *exact, MPFR_RNDN);
      mpfr_add(*error, *error, *allowed, MPFR_RNDN);
      const bool sign_is_right = std::signbit(got) == (mpfr_sgn(*exact) < 0);
      const bool may_overflow = mpfr_cmp_d(*w, format.largest) >= 0 || mpfr_cmp(*error, *limit) >= 0;
      if (sign_is_right && may_overflow) return {};
      return wrong(index, "infinite where " + exact.text() + " is exact");
    }
    mpfr_abs(*error, *exact, MPFR_RNDN);
    mpfr_sub(*error, *error, *allowed, MPFR_RNDN);
    if (mpfr_cmp(*error, *limit) >= 0) {
      return wrong(index, std::to_string(got) + " where " + exact.text() + " rounds to infinity");
    }
    mpfr_sub_d(*error, *exact, got, MPFR_RNDN);
    mpfr_abs(*error, *error, MPFR_RNDN);
    mpfr_sub(*error, *error, *extra, MPFR_RNDN);
    mpfr_mul_2si(*error, *error, -ulp, MPFR_RNDN);
    const double ratio = mpfr_get_d(*error, MPFR_RNDN) / n;
    return {ratio, index, {}};
  }
};

inline std::string describe(double got, const Real& exact) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.17g (%a) where ", got, got);
  return buffer + exact.text() + " is exact";
}

// mean, var and what else is known of a row before any output is looked at.
struct RowState {
  Elements x;
  int64_t d;
  double eps;
  Real mean, var, rstd{kWork}, largest_c{kWork}, largest_x_hat{kWork}, least{kWork, 0x1p-1074};
  bool undefined = false;    // zero variance and eps = 0
  bool no_backward = false;  // also float64 rows whose sqrt(var + eps) lies below the normal numbers

  RowState(Elements row, int64_t features, double epsilon)
      : x(row), d(features), eps(epsilon), mean(row_bits(row.dtype)), var(row_bits(row.dtype)) {
    const mpfr_prec_t bits = row_bits(x.dtype);
    Real sum(bits), squares(bits), square(bits);
    double low = kInfinity, high = -kInfinity;
    for (int64_t i = 0; i < d; ++i) {
      const double value = load(x.dtype, x.data, i);
      low = std::min(low, value);
      high = std::max(high, value);
      mpfr_add_d(*sum, *sum, value, MPFR_RNDN);
      if (x.dtype == TRUENORM_FLOAT64) {
        mpfr_set_d(*square, value, MPFR_RNDN);
        mpfr_sqr(*square, *square, MPFR_RNDN);
        mpfr_add(*squares, *squares, *square, MPFR_RNDN);
      } else {
        mpfr_add_d(*squares, *squares, value * value, MPFR_RNDN);  // exact: at most 48 bits, far from overflow
      }
    }
    mpfr_div_si(*mean, *sum, static_cast<long>(d), MPFR_RNDN);
    // d^2 var = d sum x^2 - (sum x)^2, an exact integer multiple of the smallest square.
    mpfr_mul_si(*squares, *squares, static_cast<long>(d), MPFR_RNDN);
    mpfr_sqr(*square, *sum, MPFR_RNDN);
    mpfr_sub(*var, *squares, *square, MPFR_RNDN);
    mpfr_div_si(*var, *var, static_cast<long>(d), MPFR_RNDN);
    mpfr_div_si(*var, *var, static_cast<long>(d), MPFR_RNDN);
    Real total(bits);
    mpfr_add_d(*total, *var, eps, MPFR_RNDN);
    undefined = mpfr_zero_p(*total) != 0;
    no_backward = undefined || (x.dtype == TRUENORM_FLOAT64 && mpfr_cmp_si_2exp(*total, 1, -2044) < 0);
    if (undefined) return;
    mpfr_rec_sqrt(*rstd, *total, MPFR_RNDN);
    Real below(kWork);
    mpfr_d_sub(*largest_c, high, *mean, MPFR_RNDN);
    mpfr_sub_d(*below, *mean, low, MPFR_RNDN);
    mpfr_max(*largest_c, *largest_c, *below, MPFR_RNDN);
    mpfr_mul(*largest_x_hat, *largest_c, *rstd, MPFR_RNDN);
  }

  bool wide() const { return x.dtype == TRUENORM_FLOAT64; }
  // x_i - mean
  void c(int64_t i, Real& out) const { mpfr_d_sub(*out, load(x.dtype, x.data, i), *mean, MPFR_RNDN); }
};

}  // namespace truenorm::oracle

#endif  // TRUENORM_TESTS_ORACLE_ROW_H_

// SPDX-License-Identifier: Apache-2.0
#include "oracle_row.h"

namespace truenorm::oracle {

Row::Row(Elements x, int64_t d, double eps) : state_(std::make_unique<RowState>(x, d, eps)) {}
Row::~Row() = default;
Row::Row(Row&&) noexcept = default;

Finding Row::y(Elements gamma, Elements beta, Elements got) const {
  const RowState& row = *state_;
  Finding worst;
  if (row.undefined) {
    for (int64_t i = 0; i < row.d; ++i) {
      if (!test::is_canonical_nan(got.dtype, got.data, i)) worst.take(wrong(i, "no NaN for var + eps = 0"));
    }
    return worst;
  }
  const Format& format = format_of(got.dtype);
  Comparison comparison;
  Real exact(kWork), w(kWork), extra(kWork);
  for (int64_t i = 0; i < row.d; ++i) {
    const double scale = gamma ? load(gamma.dtype, gamma.data, i) : 1.0;
    const double shift = beta ? load(beta.dtype, beta.data, i) : 0.0;
    row.c(i, exact);
    mpfr_mul(*exact, *exact, *row.rstd, MPFR_RNDN);
    mpfr_mul_d(*exact, *exact, scale, MPFR_RNDN);
    mpfr_abs(*w, *exact, MPFR_RNDN);
    mpfr_add_d(*w, *w, std::fabs(shift), MPFR_RNDN);
    mpfr_add_d(*exact, *exact, shift, MPFR_RNDN);
    mpfr_mul_d(*extra, *row.largest_x_hat, h_of(row.x.dtype, got.dtype), MPFR_RNDN);
    if (row.wide()) mpfr_add(*extra, *extra, *row.least, MPFR_RNDN);  // x_hat itself may be subnormal
    mpfr_mul_d(*extra, *extra, std::fabs(scale), MPFR_RNDN);
    const double n = test::is_half(got.dtype)        ? 0.51
                     : got.dtype == TRUENORM_FLOAT64 ? 16
                     : scale == 1 && shift == 0      ? 3
                                                     : 4;
    const double value = load(got.dtype, got.data, i);
    Finding finding = comparison.measure(format, n, value, exact, w, extra, i);
    if (finding.ratio > worst.ratio) {
      if (finding.text.empty()) finding.text = describe(value, exact);
      worst = std::move(finding);
    }
  }
  return worst;
}

Row::StatisticsFindings Row::statistics(const Statistics& got) const {
  const RowState& row = *state_;
  StatisticsFindings found;
  Real exact(kWork), error(kWork), total(kWork);
  const auto compare = [&](double value, const Real& bound) {
    // The bounds are relative: below the normal numbers half the smallest number comes on top, and above the largest
    // an infinity is right.
    mpfr_set_ui_2exp(*total, 1, -1075, MPFR_RNDN);
    mpfr_add(*total, *total, *bound, MPFR_RNDN);
    mpfr_sub_d(*error, *exact, value, MPFR_RNDN);
    mpfr_abs(*error, *error, MPFR_RNDN);
    mpfr_div(*error, *error, *total, MPFR_RNDN);
    Finding finding{mpfr_get_d(*error, MPFR_RNDN), 0, describe(value, exact)};
    if (std::isnan(value)) finding.ratio = kInfinity;
    if (std::isinf(value) && mpfr_get_d(*exact, MPFR_RNDN) == value) finding.ratio = 0;
    return finding;
  };
  Real bound(kWork), part(kWork);
  mpfr_set(*exact, *row.mean, MPFR_RNDN);
  mpfr_abs(*bound, *row.mean, MPFR_RNDN);
  mpfr_mul_d(*bound, *bound, 0x1p-53, MPFR_RNDN);
  if (!row.undefined) {
    mpfr_mul_d(*part, *row.largest_c, h_of(row.x.dtype), MPFR_RNDN);
    mpfr_add(*bound, *bound, *part, MPFR_RNDN);
  }
  found.mean = compare(got.mean, bound);
  const double rstd_bound = row.wide() ? 0x1p-47 : 0x1p-38;
  mpfr_set(*exact, *row.var, MPFR_RNDN);
  mpfr_mul_d(*bound, *row.var, 2 * rstd_bound, MPFR_RNDN);
  found.var = compare(got.var, bound);
  if (row.undefined) {
    if (!(std::isinf(got.rstd) || std::isnan(got.rstd))) found.rstd = wrong(0, "finite rstd for var + eps = 0");
    return found;
  }
  mpfr_set(*exact, *row.rstd, MPFR_RNDN);
  mpfr_mul_d(*bound, *row.rstd, rstd_bound, MPFR_RNDN);
  found.rstd = compare(got.rstd, bound);
  return found;
}

}  // namespace truenorm::oracle

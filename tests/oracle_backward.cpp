// SPDX-License-Identifier: Apache-2.0
#include "oracle_row.h"

namespace truenorm::oracle {

// Column sums, exact and of magnitudes. MPFR numbers of 128 bits: a sum of n terms is off by n 2^-128 of the sum of
// magnitudes, which is what the bounds are measured in.
struct Gradients::Sums {
  std::vector<Real> dgamma, dbeta, dgamma_magnitude, dbeta_magnitude, h_term;
};

Gradients::Gradients(int64_t d, Elements gamma, double eps, bool parameters) : d_(d), gamma_(gamma), eps_(eps) {
  if (!parameters) return;
  sums_ = std::make_unique<Sums>();
  for (auto* column :
       {&sums_->dgamma, &sums_->dbeta, &sums_->dgamma_magnitude, &sums_->dbeta_magnitude, &sums_->h_term}) {
    column->reserve(static_cast<size_t>(d));
    for (int64_t i = 0; i < d; ++i) column->emplace_back(kWork);
  }
}
Gradients::~Gradients() = default;

Finding Gradients::row(Elements x, Elements dy, Elements got_dx) {
  x_type_ = x.dtype;
  const RowState row(x, d_, eps_);
  const double h = h_of(x.dtype, got_dx ? got_dx.dtype : x.dtype);
  Real c(kWork), g(kWork), term(kWork);
  Real sum_g(kWork), sum_gc(kWork), sum_abs_g(kWork), sum_abs_gc(kWork);
  undefined_ |= row.no_backward;
  // float64: x_hat and g may be subnormal. 2^-1074 (1 + rstd), for dgamma.
  Real near_zero(kWork);
  mpfr_add_ui(*near_zero, *row.rstd, 1, MPFR_RNDN);
  mpfr_mul(*near_zero, *near_zero, *row.least, MPFR_RNDN);
  for (int64_t i = 0; i < d_; ++i) {
    const double slope = load(dy.dtype, dy.data, i);
    if (sums_) {
      const auto column = static_cast<size_t>(i);
      mpfr_add_d(*sums_->dbeta[column], *sums_->dbeta[column], slope, MPFR_RNDN);
      mpfr_add_d(*sums_->dbeta_magnitude[column], *sums_->dbeta_magnitude[column], std::fabs(slope), MPFR_RNDN);
    }
    if (row.no_backward) continue;
    row.c(i, c);
    if (sums_) {
      const auto column = static_cast<size_t>(i);
      mpfr_mul(*term, *c, *row.rstd, MPFR_RNDN);
      mpfr_mul_d(*term, *term, slope, MPFR_RNDN);
      mpfr_add(*sums_->dgamma[column], *sums_->dgamma[column], *term, MPFR_RNDN);
      mpfr_abs(*term, *term, MPFR_RNDN);
      mpfr_add(*sums_->dgamma_magnitude[column], *sums_->dgamma_magnitude[column], *term, MPFR_RNDN);
      mpfr_mul_d(*term, *row.largest_x_hat, h, MPFR_RNDN);
      if (row.wide()) mpfr_add(*term, *term, *near_zero, MPFR_RNDN);
      mpfr_mul_d(*term, *term, std::fabs(slope), MPFR_RNDN);
      mpfr_add(*sums_->h_term[column], *sums_->h_term[column], *term, MPFR_RNDN);
    }
    mpfr_set_d(*g, slope, MPFR_RNDN);
    if (gamma_) mpfr_mul_d(*g, *g, load(gamma_.dtype, gamma_.data, i), MPFR_RNDN);
    mpfr_add(*sum_g, *sum_g, *g, MPFR_RNDN);
    mpfr_mul(*term, *g, *c, MPFR_RNDN);
    mpfr_add(*sum_gc, *sum_gc, *term, MPFR_RNDN);
    mpfr_abs(*term, *term, MPFR_RNDN);
    mpfr_add(*sum_abs_gc, *sum_abs_gc, *term, MPFR_RNDN);
    mpfr_abs(*g, *g, MPFR_RNDN);
    mpfr_add(*sum_abs_g, *sum_abs_g, *g, MPFR_RNDN);
  }
  Finding worst;
  if (!got_dx) return worst;
  if (row.no_backward) {
    for (int64_t i = 0; i < d_; ++i) {
      if (!test::is_canonical_nan(got_dx.dtype, got_dx.data, i))
        worst.take(wrong(i, "no NaN in dx of a row without one"));
    }
    return worst;
  }
  // Means over the row, those with x_hat in place of c.
  for (Real* sum : {&sum_g, &sum_gc, &sum_abs_g, &sum_abs_gc})
    mpfr_div_si(**sum, **sum, static_cast<long>(d_), MPFR_RNDN);
  for (Real* sum : {&sum_gc, &sum_abs_gc}) mpfr_mul(**sum, **sum, *row.rstd, MPFR_RNDN);

  if (row.wide()) {  // float64 promises nothing for dx when the sums of magnitudes overflow
    mpfr_max(*term, *sum_abs_g, *sum_abs_gc, MPFR_RNDN);
    mpfr_mul_si(*term, *term, static_cast<long>(d_), MPFR_RNDN);
    if (mpfr_cmp_d(*term, format_of(TRUENORM_FLOAT64).largest) >= 0) return worst;
  }
  const Format format = counted_in(got_dx.dtype, x.dtype);
  const double n = test::is_half(got_dx.dtype) ? 0.51 : got_dx.dtype == TRUENORM_FLOAT64 ? 16 : 8;
  Comparison comparison;
  Real exact(kWork), w(kWork), extra(kWork), x_hat(kWork);
  for (int64_t i = 0; i < d_; ++i) {
    row.c(i, x_hat);
    mpfr_mul(*x_hat, *x_hat, *row.rstd, MPFR_RNDN);
    mpfr_set_d(*g, load(dy.dtype, dy.data, i), MPFR_RNDN);
    if (gamma_) mpfr_mul_d(*g, *g, load(gamma_.dtype, gamma_.data, i), MPFR_RNDN);
    mpfr_sub(*exact, *g, *sum_g, MPFR_RNDN);
    mpfr_mul(*term, *x_hat, *sum_gc, MPFR_RNDN);
    mpfr_sub(*exact, *exact, *term, MPFR_RNDN);
    mpfr_mul(*exact, *exact, *row.rstd, MPFR_RNDN);
    mpfr_abs(*x_hat, *x_hat, MPFR_RNDN);
    mpfr_abs(*w, *g, MPFR_RNDN);
    mpfr_add(*w, *w, *sum_abs_g, MPFR_RNDN);
    mpfr_mul(*term, *x_hat, *sum_abs_gc, MPFR_RNDN);
    mpfr_add(*w, *w, *term, MPFR_RNDN);
    mpfr_mul(*w, *w, *row.rstd, MPFR_RNDN);
    // R = h rstd (mean|g| (1 + X |x_hat|) + mean|g x_hat| (X + |x_hat|))
    mpfr_mul(*extra, *row.largest_x_hat, *x_hat, MPFR_RNDN);
    mpfr_add_ui(*extra, *extra, 1, MPFR_RNDN);
    mpfr_mul(*extra, *extra, *sum_abs_g, MPFR_RNDN);
    mpfr_add(*term, *row.largest_x_hat, *x_hat, MPFR_RNDN);
    mpfr_mul(*term, *term, *sum_abs_gc, MPFR_RNDN);
    mpfr_add(*extra, *extra, *term, MPFR_RNDN);
    mpfr_mul(*extra, *extra, *row.rstd, MPFR_RNDN);
    mpfr_mul_d(*extra, *extra, h, MPFR_RNDN);
    if (row.wide()) {
      // 2^-1073 rstd (1 + |x_hat|) (1 + (1 + rstd) mean|g|)
      mpfr_mul(*term, *near_zero, *sum_abs_g, MPFR_RNDN);
      mpfr_add(*term, *term, *row.least, MPFR_RNDN);
      mpfr_mul_2ui(*term, *term, 1, MPFR_RNDN);
      mpfr_mul(*term, *term, *row.rstd, MPFR_RNDN);
      mpfr_add_ui(*x_hat, *x_hat, 1, MPFR_RNDN);
      mpfr_mul(*term, *term, *x_hat, MPFR_RNDN);
      mpfr_add(*extra, *extra, *term, MPFR_RNDN);
    }
    const double value = load(got_dx.dtype, got_dx.data, i);
    Finding finding = comparison.measure(format, n, value, exact, w, extra, i);
    if (finding.ratio > worst.ratio) {
      if (finding.text.empty()) finding.text = describe(value, exact);
      worst = std::move(finding);
    }
  }
  return worst;
}

namespace {

Finding columns(Elements got, Elements old, truenorm_dtype x, double n, const std::vector<Real>& sums,
                const std::vector<Real>& magnitudes, const std::vector<Real>* h_terms) {
  const Format format = counted_in(got.dtype, x);
  Comparison comparison;
  Finding worst;
  Real exact(kWork), w(kWork);
  const Real zero(kWork);
  for (size_t i = 0; i < sums.size(); ++i) {
    const auto column = static_cast<int64_t>(i);
    const double before = old ? load(old.dtype, old.data, column) : 0;
    mpfr_add_d(*exact, *sums[i], before, MPFR_RNDN);
    mpfr_add_d(*w, *magnitudes[i], std::fabs(before), MPFR_RNDN);
    // float64 rows promise nothing where the sum of magnitudes overflows.
    if (x == TRUENORM_FLOAT64 && mpfr_cmp_d(*w, format.largest) >= 0) continue;
    const double value = load(got.dtype, got.data, column);
    Finding finding = comparison.measure(format, n, value, exact, w, h_terms ? (*h_terms)[i] : zero, column);
    if (finding.ratio > worst.ratio) {
      if (finding.text.empty()) finding.text = describe(value, exact);
      worst = std::move(finding);
    }
  }
  return worst;
}

}  // namespace

Finding Gradients::dgamma(Elements got, Elements old) const {
  if (undefined_) {
    Finding worst;
    for (int64_t i = 0; i < d_; ++i) {
      if (!test::is_canonical_nan(got.dtype, got.data, i)) worst.take(wrong(i, "no NaN in dgamma"));
    }
    return worst;
  }
  const double n = test::is_half(got.dtype) ? 0.51 : x_type_ == TRUENORM_FLOAT64 ? 16 : 5;
  return columns(got, old, x_type_, n, sums_->dgamma, sums_->dgamma_magnitude, &sums_->h_term);
}

Finding Gradients::dbeta(Elements got, Elements old) const {
  const double n = test::is_half(got.dtype) ? 0.51 : x_type_ == TRUENORM_FLOAT64 ? 16 : 1;
  return columns(got, old, x_type_, n, sums_->dbeta, sums_->dbeta_magnitude, nullptr);
}

}  // namespace truenorm::oracle

// SPDX-License-Identifier: Apache-2.0
#include "walkthrough.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "spread.h"

namespace truenorm::cli {
namespace {

double to_three_places(double value) { return std::round(value * 1000) / 1000; }

double sum_of(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

double mean_of(const std::vector<double>& values) { return sum_of(values) / static_cast<double>(values.size()); }

ByHand by_hand(const Walkthrough& w) {
  const std::vector<double>& x = w.x;
  const auto d = static_cast<double>(x.size());
  ByHand h;
  h.sum = sum_of(x);
  h.mean = h.sum / d;
  h.constant = std::all_of(x.begin(), x.end(), [&](double v) { return v == x[0]; });
  if (h.constant) h.mean = x[0];  // the sum of many equal numbers may be rounded; nobody divides like that by hand
  for (const double v : x) h.squares.push_back((v - h.mean) * (v - h.mean));
  h.sum_squares = sum_of(h.squares);
  h.var = h.sum_squares / d;
  h.sd = std::sqrt(h.var);
  h.out_of_range = !h.constant && !(std::isnormal(h.var) && std::isfinite(h.mean));
  if (h.constant || h.out_of_range) return h;

  for (size_t i = 0; i < x.size(); ++i) {
    const double x_hat = (x[i] - h.mean) / h.sd;
    h.x_hat_squares.push_back(x_hat * x_hat);
    h.x_hat.push_back(to_three_places(x_hat));
    h.scaled.push_back(w.gamma[i] * h.x_hat[i]);
    h.y.push_back(h.scaled[i] + w.beta[i]);
  }
  h.check = mean_of(h.x_hat_squares);
  const MeanAndSd y = mean_and_sd(h.y);
  h.y_mean = y.mean;
  h.y_sd = y.sd;
  return h;
}

Computed compute(const Walkthrough& w) {
  const NormalizedRow plain = normalize_row(w.x, {}, {}, w.eps);
  Computed c;
  c.mean = plain.mean;
  c.var = plain.var;
  c.rstd = plain.rstd;
  c.sd = plain_variance(c.var) ? std::sqrt(c.var) : mean_and_sd(w.x).sd;
  c.sd_with_eps = plain_variance(c.var) ? std::sqrt(c.var + w.eps) : std::hypot(c.sd, std::sqrt(w.eps));
  c.x_hat = plain.y;
  const MeanAndSd x_hat = mean_and_sd(c.x_hat);
  c.x_hat_mean = x_hat.mean;
  c.x_hat_sd = x_hat.sd;
  c.y = w.gamma_given || w.beta_given ? normalize_row(w.x, w.gamma_given ? w.gamma : std::vector<double>(),
                                                      w.beta_given ? w.beta : std::vector<double>(), w.eps)
                                            .y
                                      : c.x_hat;
  const MeanAndSd y = mean_and_sd(c.y);
  c.y_mean = y.mean;
  c.y_sd = y.sd;
  return c;
}

}  // namespace

Walkthrough walk_through(const std::vector<double>& x, const std::optional<Parameter>& gamma,
                         const std::optional<Parameter>& beta, double eps) {
  const auto d = static_cast<int64_t>(x.size());
  Walkthrough w;
  w.x = x;
  w.eps = eps;
  w.gamma_given = gamma.has_value();
  w.beta_given = beta.has_value();
  w.gamma = gamma ? gamma->expanded(d) : std::vector<double>(x.size(), 1.0);
  w.beta = beta ? beta->expanded(d) : std::vector<double>(x.size(), 0.0);
  w.hand = by_hand(w);
  w.computed = compute(w);
  return w;
}

}  // namespace truenorm::cli

// SPDX-License-Identifier: Apache-2.0
//
// One token, step by step: once as one does it by hand, once as the library computes it.
#ifndef TRUENORM_CLI_WALKTHROUGH_H_
#define TRUENORM_CLI_WALKTHROUGH_H_

#include <string>
#include <vector>

#include "norm.h"

namespace truenorm::cli {

// eps is taken as 0, and the normalized values are rounded to three places before they are used.
struct ByHand {
  double sum = 0, mean = 0;
  std::vector<double> squares;  // of x - mean
  double sum_squares = 0, var = 0, sd = 0;
  bool constant = false;      // all of x is one number: (x - mean)/sd is 0/0
  bool out_of_range = false;  // a square or a sum leaves float64

  // Only where neither is the case:
  std::vector<double> x_hat;          // rounded
  std::vector<double> x_hat_squares;  // from the unrounded x_hat
  double check = 0;                   // their mean: 1
  std::vector<double> scaled;         // gamma*x_hat
  std::vector<double> y;
  double y_mean = 0, y_sd = 0;
};

struct Computed {
  double mean = 0, var = 0, rstd = 0;
  double sd = 0;           // sqrt(var)
  double sd_with_eps = 0;  // sqrt(var + eps)
  std::vector<double> x_hat;
  double x_hat_mean = 0, x_hat_sd = 0;  // biased
  std::vector<double> y;
  double y_mean = 0, y_sd = 0;
};

struct Walkthrough {
  std::vector<double> x;
  std::vector<double> gamma;  // d values each, 1 and 0 where not given
  std::vector<double> beta;
  bool gamma_given = false, beta_given = false;
  double eps = 0;
  ByHand hand;
  Computed computed;
};

Walkthrough walk_through(const std::vector<double>& x, const std::optional<Parameter>& gamma,
                         const std::optional<Parameter>& beta, double eps);

// Both columns and the verification, in lines of at most `width` columns where that is possible.
std::string to_text(const Walkthrough& walkthrough, int width);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_WALKTHROUGH_H_

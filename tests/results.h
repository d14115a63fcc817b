// SPDX-License-Identifier: Apache-2.0
// Everything that forward and backward write for one case, for comparing runs with one another.
#ifndef TRUENORM_TESTS_RESULTS_H_
#define TRUENORM_TESTS_RESULTS_H_

#include <vector>

#include "harness.h"
#include "operands.h"

namespace truenorm::test {

struct Results {
  Buffer y, saved, dx, dgamma, dbeta;
  std::vector<double> mean;

  explicit Results(const Operands& o)
      : y(o.types.y, o.rows * o.d, Placement::before_unmapped),
        saved(TRUENORM_FLOAT64, o.rows * 3, Placement::misaligned),
        dx(o.types.x, o.rows * o.d, Placement::before_unmapped),
        dgamma(o.types.affine, o.d, Placement::before_unmapped), dbeta(o.types.affine, o.d, Placement::before_unmapped),
        mean(static_cast<size_t>(o.rows)) {}

  truenorm_status run(const Operands& o, const truenorm_options& options) {
    const truenorm_shape shape = shape_of({o.rows}, o.d);
    const truenorm_input gamma = input(o.types.affine, o.gamma ? o.gamma.data() : nullptr);
    const truenorm_input beta = input(o.types.affine, o.beta ? o.beta.data() : nullptr);
    const truenorm_input x = input(o.types.x, o.x.data());
    const truenorm_stats stats{mean.data(), nullptr, nullptr, saved.data()};
    const truenorm_status status =
        truenorm_layer_norm_forward(&shape, x, gamma, beta, output(o.types.y, y.data()), &stats, o.eps, &options);
    if (status != TRUENORM_OK) return status;
    return truenorm_layer_norm_backward(&shape, input(o.types.y, o.dy.data()), x, gamma, saved.data(), o.eps,
                                        output(o.types.x, dx.data()), output(o.types.affine, dgamma.data()),
                                        output(o.types.affine, dbeta.data()), &options);
  }

  testing::AssertionResult same(const Results& other, const Operands& o) const {
    const auto compare = [&](const char* what, const Buffer& a, const Buffer& b, int64_t rows) {
      return same_bits(a.dtype(), a.data(), b.data(), rows, rows == 0 ? 0 : a.count() / rows) << " in " << what;
    };
    auto result = compare("y", y, other.y, o.rows);
    if (result) result = compare("dx", dx, other.dx, o.rows);
    if (result) result = compare("dgamma", dgamma, other.dgamma, 1);
    if (result) result = compare("dbeta", dbeta, other.dbeta, 1);
    if (result && mean != other.mean) return testing::AssertionFailure() << "mean differs";
    return result;
  }
};

// Rows of ordinary and of difficult kinds, with gamma and beta.
inline Operands sized(const Types& types, int64_t rows, int64_t d) {
  Recipe recipe{types, d};
  const auto kinds = every(row_kinds());
  for (int64_t row = 0; row < rows; ++row) recipe.rows.push_back(kinds[static_cast<size_t>(row) % 14]);
  recipe.gamma = &kind(gamma_kinds(), "near 1");
  recipe.beta = &kind(beta_kinds(), "normal");
  recipe.dy = &kind(slope_kinds(), "mean 1");
  return make(recipe);
}

}  // namespace truenorm::test

#endif  // TRUENORM_TESTS_RESULTS_H_

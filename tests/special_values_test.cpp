// SPDX-License-Identifier: Apache-2.0
// Constant rows, d = 1, NaN and infinities: what docs/numerics.md says about each. Every case also goes through
// check_forward and check_backward, so that what is shown here of the reference holds for every instruction set.
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "harness.h"
#include "operands.h"

namespace truenorm::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

class SpecialValues : public testing::TestWithParam<Types> {
 protected:
  // A case of ordinary rows, to be spoilt.
  Operands ordinary(int64_t rows, int64_t d, bool affine = true) const {
    Recipe recipe{GetParam(), d};
    recipe.rows.assign(static_cast<size_t>(rows), &kind(row_kinds(), "mean 2, deviation 3"));
    recipe.dy = &kind(slope_kinds(), "normal");
    if (affine) {
      recipe.gamma = &kind(gamma_kinds(), "near 1");
      recipe.beta = &kind(beta_kinds(), "normal");
    }
    return make(recipe);
  }
  static void put(Buffer& buffer, int64_t i, double value) {
    buffer.writable();
    buffer.set(i, value);
    buffer.read_only();
  }
  static Buffer y_of(Operands& o) {
    check_forward(o, false);
    Buffer y(o.types.y, o.rows * o.d, Placement::misaligned);
    expect_forward(o.problem(), y.data(), nullptr, nullptr, nullptr);
    return y;
  }
  struct Gradients {
    Buffer dx, dgamma, dbeta;
  };
  static Gradients gradients_of(Operands& o) {
    check_backward(o, {}, false);
    const truenorm_dtype parameters = o.gamma ? o.types.affine : o.types.x;
    Gradients out{Buffer(o.types.x, o.rows * o.d, Placement::misaligned),
                  Buffer(parameters, o.d, Placement::misaligned), Buffer(parameters, o.d, Placement::misaligned)};
    expect_backward(o.problem(), o.dy.data(),
                    {o.types.x, parameters, parameters, out.dx.data(), out.dgamma.data(), out.dbeta.data()});
    return out;
  }
  static testing::AssertionResult is_nan_row(const Buffer& buffer, int64_t row, int64_t d) {
    for (int64_t i = row * d; i < (row + 1) * d; ++i) {
      if (!is_canonical_nan(buffer.dtype(), buffer.data(), i)) {
        return testing::AssertionFailure() << "column " << i % d << " is " << buffer[i] << ", not the canonical NaN";
      }
    }
    return testing::AssertionSuccess();
  }
  static testing::AssertionResult same_row(const Buffer& a, const Buffer& b, int64_t row, int64_t d) {
    const int64_t offset = row * d * format_of(a.dtype()).bytes;
    return same_bits(a.dtype(), a.bytes() + offset, b.bytes() + offset, 1, d);
  }
};

INSTANTIATE_TEST_SUITE_P(Types, SpecialValues, testing::ValuesIn(all_types()), name_of_types);

const std::vector<int64_t> kWidths = {1, 2, 3, 7, 8, 15, 17, 32, 33, 63, 100, 257, 1030};

TEST_P(SpecialValues, ConstantRowsGiveBeta) {
  for (const int64_t d : kWidths) {
    for (const double value : {0.0, -0.0, 0.1, 14.0, -1234.0, 1e6, 1e30, format_of(GetParam().x).largest,
                               format_of(GetParam().x).least, -format_of(GetParam().x).least_normal}) {
      for (const double eps : {1e-12, 1e-5, 1e30, 0x1p-1074, 0x1p-1022}) {
        Operands o = ordinary(3, d);
        o.eps = eps;
        o.name += ", constant " + std::to_string(value);
        o.x.writable();
        const double finite = std::clamp(value, -format_of(GetParam().x).largest, format_of(GetParam().x).largest);
        for (int64_t i = 0; i < 3 * d; ++i) o.x.set(i, finite);
        o.x.read_only();
        const Buffer y = y_of(o);
        for (int64_t i = 0; i < 3 * d; ++i) {
          ASSERT_EQ(y[i], round_to(o.types.y, o.beta[i % d])) << o.name << ", element " << i;
        }
        // float64 rows whose sqrt(var + eps) lies below 2^-1022 have no backward; all of these are above.
        const Gradients got = gradients_of(o);
        for (int64_t i = 0; i < d; ++i) ASSERT_EQ(got.dgamma[i], 0) << o.name << ", column " << i;
        for (int64_t i = 0; i < 3 && d == 1; ++i) ASSERT_EQ(got.dx[i], 0) << o.name;
        if (HasFailure()) return;
      }
    }
  }
}

TEST_P(SpecialValues, OneFeatureGivesBetaAndNoSlope) {
  for (const char* name : {"normal", "mean 1e6", "size 1e19", "all exponents", "whole range", "subnormal"}) {
    Recipe recipe{GetParam(), 1};
    recipe.rows.assign(9, &kind(row_kinds(), name));
    recipe.gamma = &kind(gamma_kinds(), "1e37");
    recipe.beta = &kind(beta_kinds(), "normal");
    recipe.dy = &kind(slope_kinds(), "normal");
    Operands o = make(recipe);
    const Buffer y = y_of(o);
    const Gradients got = gradients_of(o);
    for (int64_t row = 0; row < o.rows; ++row) {
      EXPECT_EQ(y[row], round_to(o.types.y, o.beta[0])) << o.name;
      EXPECT_EQ(got.dx[row], 0) << o.name;
    }
    EXPECT_EQ(got.dgamma[0], 0) << o.name;
  }
}

TEST_P(SpecialValues, ZeroVarianceWithoutEpsIsNan) {
  for (const int64_t d : kWidths) {
    Operands o = ordinary(3, d);
    o.eps = 0;
    for (int64_t i = 0; i < d; ++i) put(o.x, d + i, 3);
    const Buffer y = y_of(o);
    EXPECT_TRUE(is_nan_row(y, 1, d)) << "y, d = " << d;
    const Gradients got = gradients_of(o);
    EXPECT_TRUE(is_nan_row(got.dx, 1, d)) << "dx, d = " << d;
    EXPECT_TRUE(is_nan_row(got.dgamma, 0, d)) << "dgamma, d = " << d;
    for (int64_t i = 0; i < d; ++i) EXPECT_TRUE(std::isfinite(got.dbeta[i])) << "dbeta, d = " << d;
    if (d > 1) {
      EXPECT_TRUE(std::isfinite(y[0]) && std::isfinite(got.dx[0])) << "a row beside it, d = " << d;
    }
    if (HasFailure()) return;
  }
}

TEST_P(SpecialValues, NanOrInfinityInXSpoilsItsRowOnly) {
  Random random(test_seed());
  for (const int64_t d : kWidths) {
    for (const double bad : {kNan, kInfinity, -kInfinity}) {
      for (const int64_t where : {int64_t{0}, d / 2, d - 1, random.below(d)}) {
        Operands clean = ordinary(4, d);
        Buffer y_clean(clean.types.y, 4 * d, Placement::misaligned);
        expect_forward(clean.problem(), y_clean.data(), nullptr, nullptr, nullptr);
        put(clean.x, 2 * d + where, bad);
        clean.name += ", " + std::to_string(bad) + " at " + std::to_string(where);
        const Buffer y = y_of(clean);
        EXPECT_TRUE(is_nan_row(y, 2, d)) << clean.name;
        for (const int64_t row : {0, 1, 3}) EXPECT_TRUE(same_row(y_clean, y, row, d)) << clean.name << ", row " << row;
        double mean[4], var[4], rstd[4];
        expect_forward(clean.problem(), nullptr, mean, var, rstd);
        for (const double* statistic : {mean, var, rstd}) {
          EXPECT_TRUE(is_canonical_nan(TRUENORM_FLOAT64, statistic, 2)) << clean.name << ": " << statistic[2];
          EXPECT_FALSE(std::isnan(statistic[1])) << clean.name;
        }
        const Gradients got = gradients_of(clean);
        EXPECT_TRUE(is_nan_row(got.dx, 2, d)) << clean.name << ", dx";
        EXPECT_TRUE(is_nan_row(got.dgamma, 0, d)) << clean.name << ", dgamma";
        for (int64_t i = 0; i < d; ++i) {
          EXPECT_TRUE(std::isfinite(got.dx[i]) && std::isfinite(got.dbeta[i])) << clean.name << ", column " << i;
        }
        if (HasFailure()) return;
      }
    }
  }
}

// A NaN with a sign and a payload, quiet or signalling, comes out as the one canonical NaN.
TEST_P(SpecialValues, EveryNanComesOutCanonical) {
  Operands o = ordinary(3, 40);
  o.x.writable();
  const uint64_t sign_and_payload = canonical_nan(o.types.x) | uint64_t{1} << (8 * format_of(o.types.x).bytes - 1) | 5;
  const uint64_t quiet_bit = uint64_t{1} << (format_of(o.types.x).precision - 2);
  for (const auto& [at, bits] :
       {std::pair<int64_t, uint64_t>{7, sign_and_payload}, {95, sign_and_payload & ~quiet_bit}}) {
    std::memcpy(o.x.bytes() + at * format_of(o.types.x).bytes, &bits, static_cast<size_t>(format_of(o.types.x).bytes));
    ASSERT_TRUE(std::isnan(o.x[at]));
  }
  o.x.read_only();
  const Buffer y = y_of(o);
  EXPECT_TRUE(is_nan_row(y, 0, 40));
  EXPECT_TRUE(is_nan_row(y, 2, 40));
  EXPECT_TRUE(is_nan_row(gradients_of(o).dx, 2, 40));
}

TEST_P(SpecialValues, NanOrInfinityInGammaOrBetaStaysInItsColumn) {
  for (const int64_t d : {2, 8, 33, 100}) {
    for (const double bad : {kNan, kInfinity, -kInfinity}) {
      for (const bool in_gamma : {true, false}) {
        Operands o = ordinary(3, d);
        Buffer before(o.types.y, 3 * d, Placement::misaligned), hat(o.types.y, 3 * d, Placement::misaligned);
        expect_forward(o.problem(), before.data(), nullptr, nullptr, nullptr);
        Problem without = o.problem();
        without.gamma = without.beta = nullptr;
        expect_forward(without, hat.data(), nullptr, nullptr, nullptr);
        const int64_t column = d - 2;
        put(in_gamma ? o.gamma : o.beta, column, bad);
        o.name += std::string(in_gamma ? ", gamma " : ", beta ") + std::to_string(bad);
        const Buffer y = y_of(o);
        for (int64_t i = 0; i < 3 * d; ++i) {
          if (i % d != column) {
            EXPECT_EQ(y.bits(i), before.bits(i)) << o.name << ", element " << i;
            continue;
          }
          const double want = in_gamma ? hat[i] * bad : bad;
          if (std::isnan(want)) {
            EXPECT_TRUE(is_canonical_nan(y.dtype(), y.data(), i)) << o.name << ": " << y[i];
          } else {
            EXPECT_EQ(y[i], want) << o.name;
          }
        }
        if (!in_gamma) continue;
        const Gradients got = gradients_of(o);
        for (int64_t row = 0; row < 3; ++row) EXPECT_TRUE(is_nan_row(got.dx, row, d)) << o.name << ", dx";
        for (int64_t i = 0; i < d; ++i) {
          EXPECT_TRUE(std::isfinite(got.dgamma[i]) && std::isfinite(got.dbeta[i])) << o.name << ", column " << i;
        }
        if (HasFailure()) return;
      }
    }
  }
}

TEST_P(SpecialValues, NanOrInfinityInDy) {
  for (const int64_t d : {1, 2, 8, 33, 100}) {
    for (const double bad : {kNan, kInfinity, -kInfinity}) {
      Operands o = ordinary(4, d);
      const Gradients before = gradients_of(o);
      const int64_t column = d / 2;
      put(o.dy, 2 * d + column, bad);
      o.name += ", dy " + std::to_string(bad);
      const Gradients got = gradients_of(o);
      EXPECT_TRUE(is_nan_row(got.dx, 2, d)) << o.name;
      for (const int64_t row : {0, 1, 3}) EXPECT_TRUE(same_row(before.dx, got.dx, row, d)) << o.name << ", row " << row;
      for (int64_t i = 0; i < d; ++i) {
        if (i == column) {
          EXPECT_FALSE(std::isfinite(got.dgamma[i])) << o.name;
          if (std::isnan(bad)) {
            EXPECT_TRUE(is_canonical_nan(got.dbeta.dtype(), got.dbeta.data(), i)) << o.name;
            EXPECT_TRUE(is_canonical_nan(got.dgamma.dtype(), got.dgamma.data(), i)) << o.name;
          } else {
            EXPECT_EQ(got.dbeta[i], bad) << o.name;
          }
        } else {
          // Finite and within the bound of dgamma; the row may have been computed in another precision.
          EXPECT_NEAR(before.dgamma[i], got.dgamma[i], std::ldexp(32, -format_of(o.types.affine).precision))
              << o.name << ", column " << i;
          EXPECT_EQ(before.dbeta.bits(i), got.dbeta.bits(i)) << o.name << ", column " << i;
        }
      }
      if (HasFailure()) return;
    }
  }
}

TEST(SpecialValuesFloat64, NoBackwardBelowTheNormalNumbers) {
  // sqrt(var + eps) = 2^-1023: forward has an answer, backward is NaN.
  Recipe recipe{{TRUENORM_FLOAT64, TRUENORM_FLOAT64, TRUENORM_FLOAT64}, 2};
  recipe.rows.assign(2, &kind(row_kinds(), "normal"));
  Operands o = make(recipe);
  o.eps = 0;
  o.x.writable();
  o.x.set(2, 0);
  o.x.set(3, 0x1p-1022);
  o.x.read_only();
  check_forward(o);
  check_backward(o);
  Buffer y(TRUENORM_FLOAT64, 4, Placement::misaligned), dx(TRUENORM_FLOAT64, 4, Placement::misaligned);
  expect_forward(o.problem(), y.data(), nullptr, nullptr, nullptr);
  expect_backward(o.problem(), o.dy.data(),
                  {TRUENORM_FLOAT64, TRUENORM_FLOAT64, TRUENORM_FLOAT64, dx.data(), nullptr, nullptr});
  EXPECT_EQ(y[2], -1);
  EXPECT_EQ(y[3], 1);
  EXPECT_TRUE(std::isnan(dx[2]) && std::isnan(dx[3]));
  EXPECT_TRUE(std::isfinite(dx[0]) && std::isfinite(dx[1]));
}

}  // namespace
}  // namespace truenorm::test

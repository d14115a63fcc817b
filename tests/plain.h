// SPDX-License-Identifier: Apache-2.0
// Layer normalization as a user calls it, on numbers in a list, for tests that state what comes out. Every call runs on
// every instruction set and fails when two of them differ.
#ifndef TRUENORM_TESTS_PLAIN_H_
#define TRUENORM_TESTS_PLAIN_H_

#include <cmath>
#include <vector>

#include "harness.h"

namespace truenorm::test {

using Numbers = std::vector<double>;

inline const Types kFloat32{TRUENORM_FLOAT32, TRUENORM_FLOAT32, TRUENORM_FLOAT32};
inline const Types kFloat64{TRUENORM_FLOAT64, TRUENORM_FLOAT64, TRUENORM_FLOAT64};
inline const Types kFloat16{TRUENORM_FLOAT16, TRUENORM_FLOAT16, TRUENORM_FLOAT16};
inline const Types kBfloat16{TRUENORM_BFLOAT16, TRUENORM_BFLOAT16, TRUENORM_BFLOAT16};

inline Buffer buffer_of(truenorm_dtype dtype, const Numbers& numbers) {
  Buffer buffer(dtype, static_cast<int64_t>(numbers.size()), Placement::misaligned);
  for (size_t i = 0; i < numbers.size(); ++i) buffer.set(static_cast<int64_t>(i), numbers[i]);
  return buffer;
}
inline Numbers numbers_of(const Buffer& buffer) {
  Numbers numbers;
  for (int64_t i = 0; i < buffer.count(); ++i) numbers.push_back(buffer[i]);
  return numbers;
}
// The numbers as the type holds them.
inline Numbers rounded(truenorm_dtype dtype, Numbers numbers) {
  for (double& number : numbers) number = round_to(dtype, number);
  return numbers;
}

template <class Make>
Numbers numbers(int64_t count, Make make) {
  Numbers list;
  for (int64_t i = 0; i < count; ++i) list.push_back(make(i));
  return list;
}

struct Arguments {
  Types types = kFloat32;
  int64_t d;
  Numbers x;
  Numbers gamma = {}, beta = {}, dy = {};  // empty: absent
  double eps = 1e-5;
  int32_t threads = 1;
};

inline Numbers normalized(const Arguments& a) {
  const Buffer x = buffer_of(a.types.x, a.x), gamma = buffer_of(a.types.affine, a.gamma),
               beta = buffer_of(a.types.affine, a.beta);
  const auto rows = x.count() / a.d;
  const truenorm_shape shape = shape_of({rows}, a.d);
  Buffer first;
  for (const std::string& level : levels()) {
    Buffer y(a.types.y, x.count(), Placement::before_unmapped);
    const truenorm_options options = on_level(level, a.threads);
    EXPECT_TRUE(is_ok(truenorm_layer_norm_forward(&shape, input(a.types.x, x.data()),
                                                  input(a.types.affine, a.gamma.empty() ? nullptr : gamma.data()),
                                                  input(a.types.affine, a.beta.empty() ? nullptr : beta.data()),
                                                  output(a.types.y, y.data()), nullptr, a.eps, &options)));
    ran_on(level);
    EXPECT_TRUE(y.guards_intact());
    if (first) {
      EXPECT_TRUE(same_bits(a.types.y, first.data(), y.data(), rows, a.d)) << level << " and " << levels().front();
    } else {
      first = std::move(y);
    }
  }
  return numbers_of(first);
}

struct Slopes3 {
  Numbers dx, dgamma, dbeta;
};

inline Slopes3 slopes(const Arguments& a, truenorm_dtype parameter_type = 0) {
  const Buffer x = buffer_of(a.types.x, a.x), dy = buffer_of(a.types.y, a.dy),
               gamma = buffer_of(a.types.affine, a.gamma);
  const truenorm_dtype parameters = parameter_type != 0 ? parameter_type : a.gamma.empty() ? a.types.x : a.types.affine;
  const auto rows = x.count() / a.d;
  const truenorm_shape shape = shape_of({rows}, a.d);
  Buffer first[3];
  for (const std::string& level : levels()) {
    Buffer dx(a.types.x, x.count(), Placement::before_unmapped);
    Buffer dgamma(parameters, a.d, Placement::before_unmapped), dbeta(parameters, a.d, Placement::before_unmapped);
    const truenorm_options options = on_level(level, a.threads);
    EXPECT_TRUE(is_ok(truenorm_layer_norm_backward(
        &shape, input(a.types.y, dy.data()), input(a.types.x, x.data()),
        input(a.types.affine, a.gamma.empty() ? nullptr : gamma.data()), nullptr, a.eps, output(a.types.x, dx.data()),
        output(parameters, dgamma.data()), output(parameters, dbeta.data()), &options)));
    ran_on(level);
    if (first[0]) {
      EXPECT_TRUE(same_bits(a.types.x, first[0].data(), dx.data(), rows, a.d)) << "dx, " << level;
      EXPECT_TRUE(same_bits(parameters, first[1].data(), dgamma.data(), 1, a.d)) << "dgamma, " << level;
      EXPECT_TRUE(same_bits(parameters, first[2].data(), dbeta.data(), 1, a.d)) << "dbeta, " << level;
    } else {
      first[0] = std::move(dx), first[1] = std::move(dgamma), first[2] = std::move(dbeta);
    }
  }
  return {numbers_of(first[0]), numbers_of(first[1]), numbers_of(first[2])};
}

// The same by the textbook, in long double, of the inputs as the types hold them: right to some 1e-16 when the mean is
// not far beyond 1e3 standard deviations, and to what float64 inputs allow otherwise.
struct Textbook {
  std::vector<long double> y, dx, dgamma, dbeta;
};
inline Textbook textbook(const Arguments& a) {
  const Numbers x = rounded(a.types.x, a.x), dy = rounded(a.types.y, a.dy);
  const Numbers gamma = rounded(a.types.affine, a.gamma), beta = rounded(a.types.affine, a.beta);
  const auto d = static_cast<size_t>(a.d);
  Textbook out;
  out.dgamma.resize(d), out.dbeta.resize(d);
  const auto n = static_cast<long double>(d);
  for (size_t row = 0; row < x.size(); row += d) {
    long double mean = 0, rest = 0, squares = 0;
    for (size_t i = 0; i < d; ++i) mean += x[row + i] / n;
    for (size_t i = 0; i < d; ++i) rest += (x[row + i] - mean) / n;
    mean += rest;
    for (size_t i = 0; i < d; ++i) squares += (x[row + i] - mean) * (x[row + i] - mean);
    const long double rstd = 1 / std::sqrt(squares / n + static_cast<long double>(a.eps));
    long double mean_g = 0, mean_gx = 0;
    for (size_t i = 0; i < d; ++i) {
      const long double x_hat = (x[row + i] - mean) * rstd, scale = gamma.empty() ? 1 : gamma[i];
      out.y.push_back(x_hat * scale + (beta.empty() ? 0 : beta[i]));
      if (dy.empty()) continue;
      mean_g += dy[row + i] * scale / n;
      mean_gx += dy[row + i] * scale * x_hat / n;
      out.dgamma[i] += dy[row + i] * x_hat;
      out.dbeta[i] += dy[row + i];
    }
    for (size_t i = 0; i < d && !dy.empty(); ++i) {
      const long double x_hat = (x[row + i] - mean) * rstd, scale = gamma.empty() ? 1 : gamma[i];
      out.dx.push_back(rstd * (dy[row + i] * scale - mean_g - x_hat * mean_gx));
    }
  }
  return out;
}

template <class Want>
testing::AssertionResult near(const Numbers& got, const std::vector<Want>& want, double tolerance) {
  if (got.size() != want.size()) return testing::AssertionFailure() << got.size() << " numbers, not " << want.size();
  for (size_t i = 0; i < got.size(); ++i) {
    if (!(std::fabs(got[i] - static_cast<double>(want[i])) <= tolerance)) {
      return testing::AssertionFailure() << "number " << i << " is " << got[i] << ", not "
                                         << static_cast<double>(want[i]);
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace truenorm::test

#endif  // TRUENORM_TESTS_PLAIN_H_

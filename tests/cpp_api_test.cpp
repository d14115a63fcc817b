// SPDX-License-Identifier: Apache-2.0
// truenorm.hpp adds lengths, types and exceptions to the C functions, and changes nothing else.
#include <array>
#include <cstring>
#include <functional>
#include <type_traits>
#include <vector>

#include "harness.h"
#include "truenorm/truenorm.hpp"

namespace my {
struct half {  // somebody's own binary16
  std::uint16_t pattern;
};
}  // namespace my
template <>
inline constexpr truenorm_dtype truenorm::dtype_of<my::half> = TRUENORM_FLOAT16;

namespace truenorm::test {
namespace {

constexpr std::int64_t kRows = 3, kD = 5;

// Elements that are different in every place.
template <class T>
std::vector<T> made(std::size_t n, int salt) {
  std::vector<T> values(n);
  for (std::size_t i = 0; i < n; ++i)
    store(dtype_of<T>, values.data(), static_cast<std::int64_t>(i),
          static_cast<double>((i * 37 + static_cast<std::size_t>(salt)) % 23) - 7);
  return values;
}
template <class T>
testing::AssertionResult equal_bits(const std::vector<T>& expected, const std::vector<T>& got) {
  if (expected.size() != got.size())
    return testing::AssertionFailure() << expected.size() << " and " << got.size() << " elements";
  return same_bits(dtype_of<T>, expected.data(), got.data(), 1, static_cast<std::int64_t>(got.size()));
}

class CppApi : public testing::Test {
 protected:
  CppApi() { needs_no_levels(); }
};

// The C functions and these, on rows of T with parameters of P.
template <class T, class P>
void compare_with_c() {
  SCOPED_TRACE(truenorm_dtype_name(dtype_of<T>));
  const auto x = made<T>(kRows * kD, 1), dy = made<T>(kRows * kD, 2);
  const auto gamma = made<P>(kD, 3), beta = made<P>(kD, 4);
  const truenorm_shape shape = shape_of({kRows}, kD);
  const std::size_t words = truenorm_layer_norm_saved_bytes(&shape, dtype_of<T>) / 8;

  std::vector<T> y_c(x.size()), dx_c(x.size()), y(x.size()), dx(x.size());
  std::vector<P> dgamma_c(kD), dbeta_c(kD), dgamma(kD), dbeta(kD);
  std::vector<double> mean_c(kRows), var_c(kRows), rstd_c(kRows), mean(kRows), var(kRows), rstd(kRows);
  std::vector<std::uint64_t> saved_c(words), saved(layer_norm_saved_words(kD, x));
  ASSERT_EQ(saved.size(), words);

  const truenorm_stats stats{mean_c.data(), var_c.data(), rstd_c.data(), saved_c.data()};
  ASSERT_TRUE(is_ok(truenorm_layer_norm_forward(&shape, input(dtype_of<T>, x.data()), input(dtype_of<P>, gamma.data()),
                                                input(dtype_of<P>, beta.data()), output(dtype_of<T>, y_c.data()),
                                                &stats, 1e-3, nullptr)));
  ASSERT_TRUE(is_ok(truenorm_layer_norm_backward(&shape, input(dtype_of<T>, dy.data()), input(dtype_of<T>, x.data()),
                                                 input(dtype_of<P>, gamma.data()), saved_c.data(), 1e-3,
                                                 output(dtype_of<T>, dx_c.data()), output(dtype_of<P>, dgamma_c.data()),
                                                 output(dtype_of<P>, dbeta_c.data()), nullptr)));

  layer_norm_forward(kD, x, gamma, beta, y, 1e-3, {mean, var, rstd, saved});
  layer_norm_backward(kD, dy, x, gamma, dx, dgamma, dbeta, 1e-3, saved);
  EXPECT_TRUE(equal_bits(y_c, y));
  EXPECT_TRUE(equal_bits(dx_c, dx));
  EXPECT_TRUE(equal_bits(dgamma_c, dgamma));
  EXPECT_TRUE(equal_bits(dbeta_c, dbeta));
  EXPECT_EQ(mean_c, mean);
  EXPECT_EQ(var_c, var);
  EXPECT_EQ(rstd_c, rstd);
  EXPECT_EQ(saved_c, saved);

  std::vector<T> again(x.size());
  layer_norm_backward(Shape({kRows}, kD), dy, x, gamma, again, {}, {}, 1e-3);  // without what forward saved
  EXPECT_TRUE(equal_bits(dx_c, again));
}

TEST_F(CppApi, SameBitsAsC) {
  compare_with_c<float, float>();
  compare_with_c<double, double>();
  compare_with_c<float16, float16>();
  compare_with_c<bfloat16, float>();
}

TEST_F(CppApi, WalkThrough) {
  const float x[] = {3, 1, 5, 7};
  const std::array<float, 4> gamma{2, 2, 2, 2}, beta{1, 1, 1, 1};
  std::vector<float> y(4);
  layer_norm_forward(4, x, gamma, beta, y);
  const double expected[] = {0.106, -1.683, 1.894, 3.683};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(y[i], expected[i], 0.0005);
}

TEST_F(CppApi, AbsentParametersAndTypesOfOnesOwn) {
  const my::half x[] = {{0x4200}, {0x3C00}, {0x4500}, {0x4700}};  // 3 1 5 7
  my::half y[4];
  float wide[4];
  layer_norm_forward(4, x, {}, {}, y);
  layer_norm_forward(4, x, {}, {}, wide);
  EXPECT_NEAR(wide[0], -0.4472, 0.00005);
  EXPECT_NEAR(load(TRUENORM_FLOAT16, y, 3), 1.3416, 0.0005);

  const std::vector<double> ones(4, 1.0), x64{3, 1, 5, 7};
  std::vector<double> with(4), without(4);
  layer_norm_forward(4, x64, ones, {}, with);
  layer_norm_forward(4, x64, {}, {}, without);
  EXPECT_EQ(with, without);
}

TEST_F(CppApi, OnlyStatistics) {
  const float x[] = {3, 1, 5, 7, 2, 2, 2, 2};
  std::vector<double> mean(2), var(2);
  layer_norm_forward(4, x, {}, {}, {}, 1e-5, {.mean = mean, .var = var});
  EXPECT_EQ(mean, (std::vector<double>{4, 2}));
  EXPECT_EQ(var, (std::vector<double>{5, 0}));
}

TEST_F(CppApi, InPlaceAndEmpty) {
  std::vector<float> x{3, 1, 5, 7}, y(4);
  layer_norm_forward(4, x, {}, {}, y);
  layer_norm_forward(4, x, {}, {}, x);
  EXPECT_EQ(x, y);
  std::vector<float> none, dgamma(4, 7.0f);
  layer_norm_forward(4, none, {}, {}, none);
  layer_norm_backward(4, none, none, {}, {}, dgamma, {});
  EXPECT_EQ(dgamma, std::vector<float>(4, 0.0f));
  layer_norm_forward(0, none, none, none, none);
}

// Rows of a wider buffer, the last row first, one vector of gamma for all and one beta for each.
TEST_F(CppApi, Strides) {
  constexpr std::int64_t kWidth = 8;
  const auto wide = made<float>(2 * 3 * kWidth, 5), gamma = made<float>(kD, 6), beta = made<float>(3 * kD, 7);
  std::vector<float> expected(2 * 3 * kD), got(2 * 3 * kD + 4, -1.0f);
  for (std::int64_t i = 0; i < 2; ++i)
    for (std::int64_t j = 0; j < 3; ++j)
      layer_norm_forward(kD, std::span(wide).subspan(static_cast<std::size_t>((i * 3 + 2 - j) * kWidth + 1), kD), gamma,
                         std::span(beta).subspan(static_cast<std::size_t>(j * kD), kD),
                         std::span(expected).subspan(static_cast<std::size_t>((i * 3 + j) * kD), kD));
  const Shape shape({2, 3}, kD);
  layer_norm_forward(shape, Input(wide).with_strides({3 * kWidth, -kWidth}, 2 * kWidth + 1), gamma,
                     Input(beta).with_strides({0, kD}), Output(got).with_strides({3 * kD, kD}, 2));
  EXPECT_TRUE(equal_bits(expected, std::vector<float>(got.begin() + 2, got.end() - 2)));
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}, got.size() - 2, got.size() - 1}) EXPECT_EQ(got[i], -1.0f);
}

TEST_F(CppApi, Options) {
  const auto x = made<float>(kRows * kD, 1), dy = made<float>(kRows * kD, 2);
  std::vector<float> dbeta(kD), twice(kD);
  layer_norm_backward(kD, dy, x, {}, {}, {}, dbeta);
  layer_norm_backward(kD, dy, x, {}, {}, {}, twice);
  layer_norm_backward(kD, dy, x, {}, {}, {}, twice, 1e-5, {}, truenorm::Options().accumulate().num_threads(1));
  for (std::size_t i = 0; i < kD; ++i) EXPECT_EQ(twice[i], 2 * dbeta[i]);

  // The caller's threads, in an object that is copied before it is used.
  const auto rows = made<float>(20000 * kD, 9);
  std::vector<float> y(rows.size()), expected(rows.size());
  layer_norm_forward(kD, rows, {}, {}, expected);
  int calls = 0;
  const auto run = [](void* context, void (*task)(void*, std::int64_t), void* data, std::int64_t count) {
    ++*static_cast<int*>(context);
    while (count-- > 0) task(data, count);
  };
  const truenorm::Options copied = truenorm::Options(truenorm::Options().executor({run, &calls, 4}));
  layer_norm_forward(kD, rows, {}, {}, y, 1e-5, {}, copied);
  EXPECT_GT(calls, 0);
  EXPECT_TRUE(equal_bits(expected, y));

  for (const std::string& name : instruction_sets()) {
    layer_norm_forward(kD, rows, {}, {}, y, 1e-5, {}, truenorm::Options().isa(name.c_str()));
    EXPECT_TRUE(equal_bits(expected, y)) << name;
  }

  const std::size_t bytes = layer_norm_backward_workspace(kD, x, dbeta, dbeta);
  std::vector<std::byte> memory(bytes + 64);
  std::byte* const aligned = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
  std::vector<float> other(kD);
  layer_norm_backward(kD, dy, x, {}, {}, {}, other, 1e-5, {}, truenorm::Options().workspace({aligned, bytes}));
  EXPECT_EQ(other, dbeta);
}

TEST_F(CppApi, Process) {
  EXPECT_EQ(version(), truenorm_version());
  EXPECT_EQ(spec_version(), TRUENORM_SPEC_VERSION);
  EXPECT_EQ(isa(), truenorm_isa());
  EXPECT_EQ(instruction_sets(), levels());
  const std::int32_t before = get_num_threads();
  set_num_threads(3);
  EXPECT_EQ(get_num_threads(), 3);
  set_num_threads(0);
  EXPECT_EQ(get_num_threads(), before);
  EXPECT_EQ(get_thread_wait(), 0);
  EXPECT_THROW(set_thread_wait(-5), Error);
}

// ---------------------------------------------------------------- errors

struct Wrong {
  truenorm_status status;
  std::string part;  // of the message
  std::function<void(std::vector<float>& out)> call;
};

TEST_F(CppApi, EveryErrorNamesWhatIsWrong) {
  const std::vector<float> x(15, 1.0f), short_x(14), five(5, 1.0f), four(4), empty;
  const std::vector<double> five64(5);
  std::vector<double> two(2);
  std::vector<std::uint64_t> words(5);
  const auto strided = [&](std::vector<float>& out, std::initializer_list<std::int64_t> strides, std::size_t first) {
    layer_norm_forward(Shape({3}, 5), Input(x).with_strides(strides, first), {}, {}, out);
  };
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  const Wrong wrong[] = {
      {TRUENORM_INVALID_SHAPE, "x has 14 elements; expected a multiple of d, 5",
       [&](auto& out) { layer_norm_forward(5, short_x, {}, {}, out); }},
      {TRUENORM_INVALID_SHAPE, "x has 15 elements; expected a multiple of d, 0",
       [&](auto& out) { layer_norm_forward(0, x, {}, {}, out); }},
      {TRUENORM_INVALID_SHAPE, "shape.d is -5", [&](auto& out) { layer_norm_forward(-5, x, {}, {}, out); }},
      {TRUENORM_INVALID_SHAPE, "shape.dims[0] is -3",
       [&](auto& out) { layer_norm_forward(Shape({-3}, 5), x, {}, {}, out); }},
      {TRUENORM_INVALID_SHAPE, "more than 2^62 elements",
       [&](auto& out) {
         layer_norm_forward(Shape({1LL << 40, 1LL << 40}, 5), x, {}, {}, out);
       }},
      {TRUENORM_INVALID_SHAPE, "shape has 9 leading dimensions",
       [&](auto&) {
         Shape({1, 1, 1, 1, 1, 1, 1, 1, 1}, 5);
       }},
      {TRUENORM_INVALID_SHAPE, "gamma has 4 elements; expected 5, one for each feature",
       [&](auto& out) { layer_norm_forward(5, x, four, {}, out); }},
      {TRUENORM_INVALID_SHAPE, "beta has 0 elements; expected 5",
       [&](auto& out) { layer_norm_forward(5, x, {}, empty, out); }},
      {TRUENORM_INVALID_SHAPE, "x has 15 elements; expected 10, 2 rows of 5",
       [&](auto& out) { layer_norm_forward(Shape({2}, 5), x, {}, {}, out); }},
      {TRUENORM_INVALID_SHAPE, "y has 14 elements; expected 15, 3 rows of 5",
       [&](auto& out) { layer_norm_forward(5, x, {}, {}, std::span(out).first(14)); }},
      {TRUENORM_INVALID_SHAPE, "stats.mean has 2 entries; expected 3",
       [&](auto& out) { layer_norm_forward(5, x, {}, {}, out, 1e-5, {.mean = two}); }},
      {TRUENORM_INVALID_SHAPE, "stats.saved has 5 entries; expected 6",
       [&](auto& out) { layer_norm_forward(5, x, {}, {}, out, 1e-5, {.saved = words}); }},
      {TRUENORM_INVALID_SHAPE, "saved has 5 entries; expected 6",
       [&](auto& out) { layer_norm_backward(5, x, x, {}, out, {}, {}, 1e-5, words); }},
      {TRUENORM_INVALID_SHAPE, "dy has 14 elements",
       [&](auto& out) { layer_norm_backward(5, short_x, x, {}, out, {}, {}); }},
      {TRUENORM_INVALID_SHAPE, "dbeta has 15 elements; expected 5",
       [&](auto& out) { layer_norm_backward(5, x, x, {}, {}, {}, out); }},
      {TRUENORM_INVALID_POINTER, "x is absent", [&](auto& out) { layer_norm_forward(5, {}, {}, {}, out); }},
      {TRUENORM_INVALID_POINTER, "y.data is NULL", [&](auto&) { layer_norm_forward(5, x, {}, {}, {}); }},
      {TRUENORM_INVALID_STRIDE, "x has strides; expected a Shape",
       [&](auto& out) { layer_norm_forward(5, Input(x).with_strides({5}), {}, {}, out); }},
      {TRUENORM_INVALID_STRIDE, "an operand has 9 strides",
       [&](auto&) {
         (void)Input(x).with_strides({1, 1, 1, 1, 1, 1, 1, 1, 1});
       }},
      {TRUENORM_INVALID_STRIDE, "x has 2 strides; expected 1",
       [&](auto& out) {
         strided(out, {5, 5}, 0);
       }},
      {TRUENORM_INVALID_STRIDE, "x has 15 elements, but its rows reach from 0 to 17 around element 0",
       [&](auto& out) { strided(out, {6}, 0); }},
      {TRUENORM_INVALID_STRIDE, "reach from -10 to 5 around element 9", [&](auto& out) { strided(out, {-5}, 9); }},
      {TRUENORM_INVALID_STRIDE, "reach from 0 to 15 around element 1", [&](auto& out) { strided(out, {5}, 1); }},
      {TRUENORM_INVALID_STRIDE, "reach from 0 to 5 around element 16", [&](auto& out) { strided(out, {0}, 16); }},
      {TRUENORM_INVALID_STRIDE, "reach beyond 2^63", [&](auto& out) { strided(out, {kLeast}, 0); }},
      {TRUENORM_UNSUPPORTED_DTYPES, "gamma is float64 and x is float32",
       [&](auto& out) { layer_norm_forward(5, x, five64, {}, out); }},
      {TRUENORM_OVERLAP, "y at",
       [&](auto& out) { layer_norm_forward(5, std::span(out).first(10), {}, {}, std::span(out).last(10)); }},
      {TRUENORM_INVALID_EPS, "eps is -1", [&](auto& out) { layer_norm_forward(5, x, {}, {}, out, -1); }},
      {TRUENORM_INVALID_THREADS, "options.num_threads is -2",
       [&](auto& out) { layer_norm_forward(5, x, {}, {}, out, 0, {}, truenorm::Options().num_threads(-2)); }},
      {TRUENORM_INVALID_THREADS, "num_threads is 2000", [&](auto&) { set_num_threads(2000); }},
      {TRUENORM_INVALID_ISA, "options.isa is \"mmx\"",
       [&](auto& out) { layer_norm_forward(5, x, {}, {}, out, 0, {}, truenorm::Options().isa("mmx")); }},
  };
  for (const Wrong& w : wrong) {
    std::vector<float> out(15, 7.0f);
    try {
      w.call(out);
      ADD_FAILURE() << "accepted; expected: " << w.part;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), w.status) << error.what();
      EXPECT_NE(std::string(error.what()).find(w.part), std::string::npos) << error.what() << "\nexpected: " << w.part;
    }
    EXPECT_EQ(out, std::vector<float>(15, 7.0f)) << w.part;
  }
}

// What must not compile: ints are no elements, constants are no output, an operand is no plain uint16.
static_assert(std::is_constructible_v<Input, const std::vector<float>&> &&
              std::is_constructible_v<Output, std::span<bfloat16>>);
static_assert(!std::is_constructible_v<Input, const std::vector<int>&> &&
              !std::is_constructible_v<Input, std::vector<std::uint16_t>&>);
static_assert(!std::is_constructible_v<Output, const std::vector<float>&> &&
              !std::is_constructible_v<Output, std::vector<float>>);

}  // namespace
}  // namespace truenorm::test

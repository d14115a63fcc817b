// SPDX-License-Identifier: Apache-2.0
// The calling thread's floating-point modes change no bit, and are as they were after every call.
#include <cfenv>
#include <vector>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "harness.h"
#include "operands.h"

namespace truenorm::test {
namespace {

// Flush-to-zero and denormals-are-zero, where the machine has them.
uint64_t control_word() {
#if defined(__SSE2__)
  return _mm_getcsr() & ~0x3fu;  // without the sticky flags
#elif defined(__aarch64__)
  uint64_t fpcr;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  return fpcr;
#else
  return 0;
#endif
}

void flush_subnormals(bool flush) {
#if defined(__SSE2__)
  _mm_setcsr(flush ? _mm_getcsr() | 0x8040u : _mm_getcsr() & ~0x8040u);
#elif defined(__aarch64__)
  uint64_t fpcr;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  fpcr = flush ? fpcr | (uint64_t{1} << 24) : fpcr & ~(uint64_t{1} << 24);
  __asm__ volatile("msr fpcr, %0" : : "r"(fpcr));
#else
  (void)flush;
#endif
}

// Sets the modes for one call and puts the default back before anything else is computed.
class Modes {
 public:
  Modes(int rounding, bool flush, bool traps) {
    std::fesetround(rounding);
    flush_subnormals(flush);
#ifdef __GLIBC__
    if (traps) feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
#else
    (void)traps;
#endif
    before_ = control_word();
  }
  // Whether the call left the modes alone; restores the default.
  bool finish() {
    const bool same = control_word() == before_;
    std::fesetenv(FE_DFL_ENV);
    flush_subnormals(false);
    return same;
  }

 private:
  uint64_t before_;
};

class ModesTest : public testing::TestWithParam<Types> {};
INSTANTIATE_TEST_SUITE_P(Types, ModesTest, testing::ValuesIn(primary_types()), name_of_x);

TEST_P(ModesTest, ChangeNoBit) {
  const Types& t = GetParam();
  for (const int64_t d : {7, 100, 1030}) {
    for (const double eps : {1e-5, 0.0}) {
      Recipe recipe{t, d, eps, every(row_kinds())};
      recipe.gamma = &kind(gamma_kinds(), d == 100 ? "subnormal" : "normal");
      recipe.beta = &kind(beta_kinds(), d == 100 ? "subnormal" : "normal");
      const Operands o = make(recipe);
      const int64_t count = o.rows * d;
      Buffer y_want(t.y, count, Placement::misaligned), dx_want(t.x, count, Placement::misaligned);
      Buffer dgamma_want(t.affine, d, Placement::misaligned), dbeta_want(t.affine, d, Placement::misaligned);
      std::vector<double> mean(static_cast<size_t>(o.rows));
      expect_forward(o.problem(), y_want.data(), mean.data(), nullptr, nullptr);
      expect_backward(o.problem(), o.dy.data(),
                      {t.x, t.affine, t.affine, dx_want.data(), dgamma_want.data(), dbeta_want.data()});
      for (const std::string& level : levels()) {
        for (const int rounding : {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
          for (const bool flush : {false, true}) {
            for (const int32_t threads : {1, 2}) {
              const bool traps = rounding == FE_TONEAREST && threads == 1;
              SCOPED_TRACE(o.name + ", on " + level + ", rounding " + std::to_string(rounding) +
                           (flush ? ", flushing subnormals" : "") + (traps ? ", exceptions trapped" : "") + ", " +
                           std::to_string(threads) + " threads");
              ran_on(level);
              const truenorm_shape shape = shape_of({o.rows}, d);
              const truenorm_options options = on_level(level, threads);
              Buffer y(t.y, count, Placement::misaligned), dx(t.x, count, Placement::misaligned);
              Buffer dgamma(t.affine, d, Placement::misaligned), dbeta(t.affine, d, Placement::misaligned);
              std::vector<double> got_mean(static_cast<size_t>(o.rows));
              const truenorm_stats stats{got_mean.data(), nullptr, nullptr, nullptr};
              const truenorm_input x = input(t.x, o.x.data()), gamma = input(t.affine, o.gamma.data());
              Modes modes(rounding, flush, traps);
              const auto forward = truenorm_layer_norm_forward(&shape, x, gamma, input(t.affine, o.beta.data()),
                                                               output(t.y, y.data()), &stats, eps, &options);
              const auto backward = truenorm_layer_norm_backward(
                  &shape, input(t.y, o.dy.data()), x, gamma, nullptr, eps, output(t.x, dx.data()),
                  output(t.affine, dgamma.data()), output(t.affine, dbeta.data()), &options);
              const auto refused = truenorm_layer_norm_forward(&shape, x, gamma, input(t.affine, o.beta.data()),
                                                               output(t.y, y.data()), &stats, -1, &options);
              const bool kept = modes.finish();
              EXPECT_TRUE(kept) << "the modes are not as they were";
              EXPECT_EQ(refused, TRUENORM_INVALID_EPS);
              ASSERT_EQ(forward, TRUENORM_OK);
              ASSERT_EQ(backward, TRUENORM_OK);
              ASSERT_TRUE(same_bits(t.y, y_want.data(), y.data(), o.rows, d)) << "y";
              ASSERT_TRUE(same_bits(TRUENORM_FLOAT64, mean.data(), got_mean.data(), o.rows, 1)) << "mean";
              ASSERT_TRUE(same_bits(t.x, dx_want.data(), dx.data(), o.rows, d)) << "dx";
              ASSERT_TRUE(same_bits(t.affine, dgamma_want.data(), dgamma.data(), 1, d)) << "dgamma";
              ASSERT_TRUE(same_bits(t.affine, dbeta_want.data(), dbeta.data(), 1, d)) << "dbeta";
            }
          }
        }
      }
    }
  }
}

// The test itself must be able to fail: these modes do change what a plain sum gives.
TEST(ModesHarness, ModesTakeEffect) {
  volatile double one = 1, tiny = 0x1p-60, subnormal = 0x1p-1060, half = 0.5;
  Modes upward(FE_UPWARD, false, false);
  const double up = one + tiny;
  upward.finish();
  EXPECT_GT(up, 1);
#if defined(__SSE2__) || defined(__aarch64__)
  Modes flushing(FE_TONEAREST, true, false);
  const double flushed = subnormal * half;
  flushing.finish();
  EXPECT_EQ(flushed, 0);
#else
  (void)subnormal, (void)half;
#endif
}

}  // namespace
}  // namespace truenorm::test

// SPDX-License-Identifier: Apache-2.0
// What may share memory and what may not.
#include <string>
#include <vector>

#include "harness.h"

namespace truenorm::test {
namespace {

constexpr int64_t kRows = 3, kD = 5;

class Overlap : public testing::Test {
 public:
  Overlap() {
    needs_no_levels();
    for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<float>(i % 11);
  }
  // One array that every operand is cut from, far apart unless a test says otherwise.
  std::vector<float> memory = std::vector<float>(2000);
  float* at(int64_t i) { return memory.data() + i; }
  truenorm_shape shape = shape_of({kRows}, kD);
  float *x = at(0), *gamma = at(200), *beta = at(300), *y = at(400), *dy = at(500), *dx = at(600);
  float *dgamma = at(700), *dbeta = at(800);
  double* mean = reinterpret_cast<double*>(at(900));
  const int64_t* y_strides = nullptr;
  const int64_t* x_strides = nullptr;

  truenorm_status forward() {
    const truenorm_stats stats{mean, nullptr, nullptr, nullptr};
    return truenorm_layer_norm_forward(&shape, input(TRUENORM_FLOAT32, x, x_strides), input(TRUENORM_FLOAT32, gamma),
                                       input(TRUENORM_FLOAT32, beta), output(TRUENORM_FLOAT32, y, y_strides), &stats,
                                       1e-5, nullptr);
  }
  truenorm_status backward() {
    return truenorm_layer_norm_backward(&shape, input(TRUENORM_FLOAT32, dy), input(TRUENORM_FLOAT32, x, x_strides),
                                        input(TRUENORM_FLOAT32, gamma), nullptr, 1e-5,
                                        output(TRUENORM_FLOAT32, dx, y_strides), output(TRUENORM_FLOAT32, dgamma),
                                        output(TRUENORM_FLOAT32, dbeta), nullptr);
  }
  testing::AssertionResult refused(truenorm_status (Overlap::*call)(), const std::string& one,
                                   const std::string& other) {
    const std::vector<float> before = memory;
    const auto result = is_refused(TRUENORM_OVERLAP, (this->*call)(), {one, other});
    if (result && before != memory) return testing::AssertionFailure() << "an output was touched";
    return result;
  }
};

TEST_F(Overlap, InPlaceIsAllowed) {
  y = x;
  EXPECT_TRUE(is_ok(forward()));
  dx = dy;
  EXPECT_TRUE(is_ok(backward()));
  dx = x;
  EXPECT_TRUE(is_ok(backward()));
}

TEST_F(Overlap, InPlaceWithTheSameStridesIsAllowed) {
  const int64_t strides = -7;
  x = y = at(100);
  x_strides = y_strides = &strides;
  EXPECT_TRUE(is_ok(forward()));
}

TEST_F(Overlap, InPlaceWithOtherStridesIsRefused) {
  const int64_t one = 5, other = 6;
  y = x;
  x_strides = &one;
  y_strides = &other;
  EXPECT_TRUE(refused(&Overlap::forward, "y", "x"));
}

TEST_F(Overlap, ShiftedIsRefused) {
  for (const int64_t shift : {1, 4, 5, 14, -1, -5, -14}) {
    x = at(100);
    y = dx = at(100 + shift);
    EXPECT_TRUE(refused(&Overlap::forward, "y", "x")) << shift;
    EXPECT_TRUE(refused(&Overlap::backward, "dx", "x")) << shift;
    x = at(0);
    dy = at(100);
    EXPECT_TRUE(refused(&Overlap::backward, "dx", "dy")) << shift;
    dy = at(500);
  }
  for (const int64_t shift : {15, -15}) {  // side by side
    x = at(100);
    y = dx = at(100 + shift);
    EXPECT_TRUE(is_ok(forward())) << shift;
    EXPECT_TRUE(is_ok(backward())) << shift;
  }
}

TEST_F(Overlap, WithParametersIsRefused) {
  y = at(200 - 14);
  EXPECT_TRUE(refused(&Overlap::forward, "y", "gamma"));
  y = at(304);
  EXPECT_TRUE(refused(&Overlap::forward, "y", "beta"));
  y = at(305);
  EXPECT_TRUE(is_ok(forward()));
  dx = at(204);
  EXPECT_TRUE(refused(&Overlap::backward, "dx", "gamma"));
  dx = at(600);
  dgamma = gamma;
  EXPECT_TRUE(refused(&Overlap::backward, "dgamma", "gamma"));
  dgamma = at(510);
  EXPECT_TRUE(refused(&Overlap::backward, "dgamma", "dy"));
  dgamma = at(614);
  EXPECT_TRUE(refused(&Overlap::backward, "dgamma", "dx"));
  dgamma = at(700);
  dbeta = at(704);
  EXPECT_TRUE(refused(&Overlap::backward, "dbeta", "dgamma"));
  dbeta = at(10);
  EXPECT_TRUE(refused(&Overlap::backward, "dbeta", "x"));
}

TEST_F(Overlap, OfStatisticsIsRefused) {
  mean = reinterpret_cast<double*>(at(414));
  EXPECT_TRUE(refused(&Overlap::forward, "mean", "y"));
  mean = reinterpret_cast<double*>(at(2));
  EXPECT_TRUE(refused(&Overlap::forward, "mean", "x"));
  mean = reinterpret_cast<double*>(at(204));
  EXPECT_TRUE(refused(&Overlap::forward, "mean", "gamma"));
  mean = reinterpret_cast<double*>(at(416));
  EXPECT_TRUE(is_ok(forward()));
}

// Columns of one wide buffer: no element is shared although the ranges are.
TEST_F(Overlap, SlicesOfOneBufferSideBySideAreAllowed) {
  const int64_t strides = 20;
  x = at(0);
  y = dx = at(10);
  gamma = at(1200), beta = at(1300);
  x_strides = y_strides = &strides;
  EXPECT_TRUE(is_ok(forward()));
  EXPECT_TRUE(is_ok(backward()));
  y = dx = at(4);
  EXPECT_TRUE(refused(&Overlap::forward, "y", "x"));
  EXPECT_TRUE(refused(&Overlap::backward, "dx", "x"));
}

// Rows of one operand between the rows of the other.
TEST_F(Overlap, RowsThatTakeTurnsAreAllowed) {
  const int64_t strides = 10;
  x = at(0);
  y = at(5);
  gamma = at(1200), beta = at(1300);
  x_strides = y_strides = &strides;
  EXPECT_TRUE(is_ok(forward()));
}

}  // namespace
}  // namespace truenorm::test

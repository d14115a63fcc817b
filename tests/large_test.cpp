// SPDX-License-Identifier: Apache-2.0
// Outputs larger than the caches, which kernels may write around them in whole, aligned lines: every alignment, rows
// that are no multiple of a line, strides, in place. The bits are those of the reference and the neighbours stay.
#include <cstring>

#include "harness.h"
#include "results.h"

namespace truenorm::test {
namespace {

constexpr int64_t kBytes = (int64_t{4} << 20) + (int64_t{1} << 18);  // a little above src/split.h's limit

// An output whose first row starts `offset` elements after a line of 64 bytes; rows `stride` elements apart.
class Placed {
 public:
  Placed(truenorm_dtype dtype, int64_t rows, int64_t d, int64_t stride, int64_t offset)
      : rows_(rows), d_(d), stride_(stride), offset_(offset),
        memory_(dtype, rows * stride + offset + 64, Placement::after_unmapped) {
    memory_.fill_pattern();
  }
  int64_t element() const { return format_of(memory_.dtype()).bytes; }
  unsigned char* row(int64_t r) { return memory_.bytes() + (offset_ + r * stride_) * element(); }

  void fill(const Buffer& from) {
    for (int64_t r = 0; r < rows_; ++r) {
      std::memcpy(row(r), from.bytes() + r * d_ * element(), static_cast<size_t>(d_ * element()));
    }
  }
  testing::AssertionResult holds(const Buffer& expected) {
    for (int64_t r = 0; r < rows_; ++r) {
      auto result = same_bits(memory_.dtype(), expected.bytes() + r * d_ * element(), row(r), 1, d_);
      if (!result) return result << " in row " << r;
    }
    // What lies between and around the rows.
    Buffer pattern(memory_.dtype(), stride_ + offset_ + 64, Placement::misaligned);
    pattern.fill_pattern();
    const auto clean = [&](const unsigned char* from, int64_t count) {
      return std::memcmp(from, pattern.data(), static_cast<size_t>(count * element())) == 0;
    };
    bool whole = clean(memory_.bytes(), offset_) && clean(row(rows_ - 1) + d_ * element(), stride_ - d_ + 64);
    for (int64_t r = 0; r + 1 < rows_; ++r) whole = whole && clean(row(r) + d_ * element(), stride_ - d_);
    if (!whole || !memory_.guards_intact())
      return testing::AssertionFailure() << "something beside the rows was written";
    return testing::AssertionSuccess();
  }

 private:
  int64_t rows_, d_, stride_, offset_;
  Buffer memory_;
};

class Large : public testing::TestWithParam<std::tuple<Types, int64_t>> {};
INSTANTIATE_TEST_SUITE_P(Widths, Large,
                         testing::Combine(testing::ValuesIn(primary_types()), testing::Values(33, 64, 768, 1030, 70000)));

TEST_P(Large, EveryAlignment) {
  const auto& [t, d] = GetParam();
  const int64_t element = format_of(t.x).bytes;
  const int64_t rows = kBytes / (d * element) + 1;
  const Operands o = sized(t, rows, d);
  SCOPED_TRACE(o.name);
  Buffer y_want(t.y, rows * d, Placement::misaligned), dx_want(t.x, rows * d, Placement::misaligned);
  Buffer dgamma_want(t.affine, d, Placement::misaligned), dbeta_want(t.affine, d, Placement::misaligned);
  expect_forward(o.problem(), y_want.data(), nullptr, nullptr, nullptr);
  expect_backward(o.problem(), o.dy.data(),
                  {t.x, t.affine, t.affine, dx_want.data(), dgamma_want.data(), dbeta_want.data()});
  const truenorm_shape shape = shape_of({rows}, d);
  const truenorm_input x = input(t.x, o.x.data()), dy = input(t.y, o.dy.data());
  const truenorm_input gamma = input(t.affine, o.gamma.data()), beta = input(t.affine, o.beta.data());
  int64_t turn = 0;
  for (const std::string& level : levels()) {
    ran_on(level);
    // Rows one after another, all at the same alignment, and at all of them; each level begins with another one.
    const int64_t pads[] = {0, (64 / element - d % (64 / element)) % (64 / element), 3};
    for (int repeat = 0; repeat < (full_grid() ? 12 : 2); ++repeat, ++turn) {
      // Every other time only the first row starts a line.
      const int64_t pad = repeat % 2 ? 3 : pads[(turn + d) % 3];
      const int64_t offset = repeat % 2 ? 0 : turn * 5 % (64 / element), stride = d + pad;
      const truenorm_options options = on_level(level, turn % 2 == 0 ? 1 : 3);
      SCOPED_TRACE(level + ", offset " + std::to_string(offset) + ", stride " + std::to_string(stride));
      Placed y(t.y, rows, d, stride, offset);
      ASSERT_TRUE(is_ok(truenorm_layer_norm_forward(&shape, x, gamma, beta, output(t.y, y.row(0), &stride), nullptr,
                                                    o.eps, &options)));
      ASSERT_TRUE(y.holds(y_want)) << "y";
      Placed dx(t.x, rows, d, stride, offset);
      Buffer dgamma(t.affine, d, Placement::misaligned), dbeta(t.affine, d, Placement::misaligned);
      const bool sums = turn % 3 != 0;
      ASSERT_TRUE(
          is_ok(truenorm_layer_norm_backward(&shape, dy, x, gamma, nullptr, o.eps, output(t.x, dx.row(0), &stride),
                                             output(t.affine, sums ? dgamma.data() : nullptr),
                                             output(t.affine, sums ? dbeta.data() : nullptr), &options)));
      ASSERT_TRUE(dx.holds(dx_want)) << "dx";
      if (sums) {
        ASSERT_TRUE(same_bits(t.affine, dgamma_want.data(), dgamma.data(), 1, d)) << "dgamma";
        ASSERT_TRUE(same_bits(t.affine, dbeta_want.data(), dbeta.data(), 1, d)) << "dbeta";
      }
      // In place.
      Placed both(t.x, rows, d, stride, offset);
      both.fill(o.x);
      ASSERT_TRUE(is_ok(truenorm_layer_norm_forward(&shape, input(t.x, both.row(0), &stride), gamma, beta,
                                                    output(t.y, both.row(0), &stride), nullptr, o.eps, &options)));
      ASSERT_TRUE(both.holds(y_want)) << "y over x";
      both.fill(turn % 2 == 0 ? o.x : o.dy);
      const truenorm_input over = input(t.x, both.row(0), &stride);
      ASSERT_TRUE(is_ok(truenorm_layer_norm_backward(&shape, turn % 2 == 0 ? dy : over, turn % 2 == 0 ? over : x, gamma,
                                                     nullptr, o.eps, output(t.x, both.row(0), &stride),
                                                     output(t.affine, dgamma.data()), output(t.affine, dbeta.data()),
                                                     &options)));
      ASSERT_TRUE(both.holds(dx_want)) << "dx over " << (turn % 2 == 0 ? "x" : "dy");
      ASSERT_TRUE(same_bits(t.affine, dgamma_want.data(), dgamma.data(), 1, d)) << "dgamma, dx in place";
    }
  }
}

}  // namespace
}  // namespace truenorm::test

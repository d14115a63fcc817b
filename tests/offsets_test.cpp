// SPDX-License-Identifier: Apache-2.0
// Offsets and counts beyond 2^31 and 2^32 elements, without the memory: zero strides, and address space of which only
// the pages of the rows are ever touched.
#include <sys/mman.h>

#include <cmath>
#include <vector>

#include "harness.h"
#include "operands.h"

namespace truenorm::test {
namespace {

// Address space for `bytes` bytes; pages appear when touched.
class Sparse {
 public:
  explicit Sparse(uint64_t bytes) : bytes_(bytes) {
    data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data_ == MAP_FAILED) data_ = nullptr;
  }
  Sparse(const Sparse&) = delete;
  Sparse& operator=(const Sparse&) = delete;
  ~Sparse() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  unsigned char* data() { return static_cast<unsigned char*>(data_); }

 private:
  uint64_t bytes_;
  void* data_;
};

constexpr int64_t kD = 100;

class Offsets : public testing::TestWithParam<std::tuple<Types, int64_t>> {};
INSTANTIATE_TEST_SUITE_P(Strides, Offsets,
                         testing::Combine(testing::ValuesIn(primary_types()),
                                          testing::Values((int64_t{1} << 31) + 7, (int64_t{1} << 32) + 5,
                                                          -((int64_t{1} << 31) + 9))));

TEST_P(Offsets, RowsFarApart) {
  if (sizeof(void*) < 8) GTEST_SKIP() << "no room in 32 bits of address space";
  const auto& [t, stride] = GetParam();
  constexpr int64_t kRows = 3;
  const int64_t bytes = format_of(t.x).bytes;
  const auto room = static_cast<uint64_t>((std::abs(stride) * (kRows - 1) + kD) * bytes);
  Sparse x_memory(room), y_memory(room), dx_memory(room);
  if (!x_memory.data() || !y_memory.data() || !dx_memory.data())
    GTEST_SKIP() << "no address space of " << room << " bytes";
  const int64_t base = stride < 0 ? -stride * (kRows - 1) : 0;
  Recipe recipe{t, kD};
  recipe.rows = {&kind(row_kinds(), "normal"), &kind(row_kinds(), "mean 1e3"), &kind(row_kinds(), "outlier 1e8, last")};
  recipe.gamma = &kind(gamma_kinds(), "near 1");
  const Operands o = make(recipe);
  for (int64_t row = 0; row < kRows; ++row) {
    std::memcpy(x_memory.data() + (base + row * stride) * bytes, o.x.bytes() + row * kD * bytes,
                static_cast<size_t>(kD * bytes));
  }
  Buffer y_want(t.y, kRows * kD, Placement::misaligned), dx_want(t.x, kRows * kD, Placement::misaligned);
  Buffer dgamma_want(t.affine, kD, Placement::misaligned), dgamma(t.affine, kD, Placement::misaligned);
  expect_forward(o.problem(), y_want.data(), nullptr, nullptr, nullptr);
  expect_backward(o.problem(), o.dy.data(), {t.x, t.affine, t.affine, dx_want.data(), dgamma_want.data(), nullptr});
  const truenorm_shape shape = shape_of({kRows}, kD);
  for (const std::string& level : levels()) {
    SCOPED_TRACE(level);
    ran_on(level);
    const truenorm_options options = on_level(level, 2);
    const truenorm_input x = input(t.x, x_memory.data() + base * bytes, &stride),
                         gamma = input(t.affine, o.gamma.data());
    ASSERT_TRUE(is_ok(truenorm_layer_norm_forward(&shape, x, gamma, {nullptr, nullptr, t.affine},
                                                  output(t.y, y_memory.data() + base * bytes, &stride), nullptr, o.eps,
                                                  &options)));
    ASSERT_TRUE(
        is_ok(truenorm_layer_norm_backward(&shape, input(t.y, o.dy.data()), x, gamma, nullptr, o.eps,
                                           output(t.x, dx_memory.data() + base * bytes, &stride),
                                           output(t.affine, dgamma.data()), {nullptr, nullptr, t.affine}, &options)));
    for (int64_t row = 0; row < kRows; ++row) {
      const int64_t at = (base + row * stride) * bytes, want = row * kD * bytes;
      EXPECT_TRUE(same_bits(t.y, y_want.bytes() + want, y_memory.data() + at, 1, kD)) << "y of row " << row;
      EXPECT_TRUE(same_bits(t.x, dx_want.bytes() + want, dx_memory.data() + at, 1, kD)) << "dx of row " << row;
    }
    EXPECT_TRUE(same_bits(t.affine, dgamma_want.data(), dgamma.data(), 1, kD)) << "dgamma";
  }
}

// More than 2^31 (with the whole grid 2^32) elements in one call: one row, seen many times by a stride of 0.
TEST(Counts, MoreElementsThanThirtyTwoBits) {
  const int64_t d = 512, rows = (full_grid() ? int64_t{1} << 23 : int64_t{1} << 22) + 3;
  Buffer x(TRUENORM_FLOAT32, d, Placement::before_unmapped), dy(TRUENORM_FLOAT32, d, Placement::before_unmapped);
  Random random(test_seed());
  kind(row_kinds(), "mean 2, deviation 3").fill(x, 0, d, random);
  for (int64_t i = 0; i < d; ++i) dy.set(i, 1);
  double mean_want = 0;
  Buffer hat(TRUENORM_FLOAT32, d, Placement::misaligned);
  const Types types{TRUENORM_FLOAT32, TRUENORM_FLOAT32, TRUENORM_FLOAT32};
  expect_forward({types, 1, d, 1e-5, x.data(), nullptr, nullptr}, hat.data(), &mean_want, nullptr, nullptr);

  const truenorm_shape shape = shape_of({rows}, d);
  const int64_t zero = 0;
  const truenorm_options options = on_level(levels().front(), 2);
  const truenorm_input none{nullptr, nullptr, TRUENORM_FLOAT32}, repeated = input(TRUENORM_FLOAT32, x.data(), &zero);
  std::vector<double> mean(static_cast<size_t>(rows));
  const truenorm_stats stats{mean.data(), nullptr, nullptr, nullptr};
  ASSERT_TRUE(is_ok(truenorm_layer_norm_forward(&shape, repeated, none, none, output(TRUENORM_FLOAT32, nullptr), &stats,
                                                1e-5, &options)));
  for (const double value : mean) ASSERT_EQ(value, mean_want);

  Buffer dgamma(TRUENORM_FLOAT32, d, Placement::before_unmapped),
      dbeta(TRUENORM_FLOAT32, d, Placement::before_unmapped);
  ASSERT_TRUE(is_ok(truenorm_layer_norm_backward(&shape, input(TRUENORM_FLOAT32, dy.data(), &zero), repeated, none,
                                                 nullptr, 1e-5, output(TRUENORM_FLOAT32, nullptr),
                                                 output(TRUENORM_FLOAT32, dgamma.data()),
                                                 output(TRUENORM_FLOAT32, dbeta.data()), &options)));
  for (int64_t i = 0; i < d; ++i) {
    EXPECT_EQ(dbeta[i], static_cast<double>(rows)) << "column " << i;  // exact in float32: 2^22 + 3
    const double want = static_cast<double>(rows) * hat[i];            // x_hat was rounded once: 3 ulp, and 5 more
    EXPECT_NEAR(dgamma[i], want, std::fabs(want) * 8 * 0x1p-23) << "column " << i;
  }
}

// Numbers of rows beyond 16 and 20 bits.
TEST(Counts, ManyShortRows) {
  for (const int64_t rows : {65535, 65536, 65537, 1000003}) {
    const int64_t d = rows > 100000 ? 3 : 32;
    Recipe recipe{primary_types().front(), d};
    const auto kinds = every(row_kinds());
    for (int64_t row = 0; row < rows; ++row) recipe.rows.push_back(kinds[static_cast<size_t>(row) % 3]);
    recipe.gamma = &kind(gamma_kinds(), "normal");
    Operands o = make(recipe);
    check_forward(o, false);
    if (rows < 100000 || full_grid()) check_backward(o, {}, false);
  }
}

}  // namespace
}  // namespace truenorm::test

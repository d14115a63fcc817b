// SPDX-License-Identifier: Apache-2.0
// Backward of rows that come in pieces: the bits of one call with all of them, wherever the pieces end.
#include <algorithm>
#include <vector>

#include "harness.h"
#include "operands.h"
#include "results.h"

namespace truenorm::test {
namespace {

class Pieces : public testing::TestWithParam<Types> {};
INSTANTIATE_TEST_SUITE_P(Types, Pieces, testing::ValuesIn(primary_types()), name_of_x);

// One block of rows and several, short rows, and rows so long that threads share them.
const std::vector<std::pair<int64_t, int64_t>> kShapes = {{1, 100},   {64, 33},     {65, 768},   {513, 1030},
                                                          {20011, 8}, {40000, 1},   {5, 140001}, {66, 9000}};

struct Wanted {
  bool dx = true, dgamma = true, dbeta = true;
};

// `sizes`, again and again, until all rows are there.
void in_pieces(const Operands& o, const std::vector<int64_t>& sizes, truenorm_options options, const Wanted& wanted,
               Results& out) {
  options.rows_in_all = o.rows;
  const size_t x_bytes = static_cast<size_t>(o.d) * truenorm_dtype_size(o.types.x);
  const size_t y_bytes = static_cast<size_t>(o.d) * truenorm_dtype_size(o.types.y);
  const truenorm_output dgamma = output(o.types.affine, wanted.dgamma ? out.dgamma.data() : nullptr);
  const truenorm_output dbeta = output(o.types.affine, wanted.dbeta ? out.dbeta.data() : nullptr);
  truenorm_shape shape = shape_of({0}, o.d);
  size_t bytes = 0;
  ASSERT_TRUE(is_ok(truenorm_layer_norm_backward_workspace(&shape, input(o.types.x, o.x.data()), dgamma, dbeta, &options, &bytes)));
  std::vector<unsigned char> memory(bytes + 64, 0xFF);  // NaN: what is not written first shows
  options.workspace = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
  options.workspace_bytes = bytes;
  for (size_t i = 0; options.rows_before < o.rows; ++i) {
    shape.dims[0] = std::min(sizes[i % sizes.size()], o.rows - options.rows_before);
    const auto at = static_cast<size_t>(options.rows_before);
    ASSERT_TRUE(is_ok(truenorm_layer_norm_backward(
        &shape, input(o.types.y, o.dy.bytes() + at * y_bytes), input(o.types.x, o.x.bytes() + at * x_bytes),
        input(o.types.affine, o.gamma.data()), nullptr, o.eps,
        output(o.types.x, wanted.dx ? out.dx.bytes() + at * x_bytes : nullptr), dgamma, dbeta, &options)));
    options.rows_before += shape.dims[0];
  }
}

TEST_P(Pieces, GiveTheBitsOfOneCall) {
  for (const auto& [rows, d] : kShapes) {
    const Operands o = sized(GetParam(), rows, d);
    SCOPED_TRACE(o.name);
    Results one(o);
    ASSERT_TRUE(is_ok(one.run(o, on_level(levels().front()))));
    for (const std::string& level : levels()) {
      const bool best = level == levels().front();
      ran_on(level);
      for (const int32_t threads : best ? std::vector<int32_t>{1, 2, 3} : std::vector<int32_t>{2}) {
        for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{1000000}, {63, 0, 1, 1000}, {64}, {1, 30000}}) {
          Results got(o);
          in_pieces(o, sizes, on_level(level, threads), {}, got);
          const std::string which = std::to_string(threads) + " threads on " + level + ", pieces of " + std::to_string(sizes[0]);
          ASSERT_TRUE(same_bits(o.types.x, one.dx.data(), got.dx.data(), rows, d)) << which << ", dx";
          ASSERT_TRUE(same_bits(o.types.affine, one.dgamma.data(), got.dgamma.data(), 1, d)) << which << ", dgamma";
          ASSERT_TRUE(same_bits(o.types.affine, one.dbeta.data(), got.dbeta.data(), 1, d)) << which << ", dbeta";
        }
      }
    }
  }
}

TEST_P(Pieces, AnySubsetOfTheGradients) {
  const Operands o = sized(GetParam(), 700, 50);
  Results one(o);
  ASSERT_TRUE(is_ok(one.run(o, on_level(levels().front()))));
  for (int set = 1; set < 8; ++set) {
    const Wanted wanted = {(set & 1) != 0, (set & 2) != 0, (set & 4) != 0};
    for (const std::string& level : levels()) {
      ran_on(level);
      Results got(o);
      for (Buffer* buffer : {&got.dx, &got.dgamma, &got.dbeta}) buffer->fill_pattern();
      in_pieces(o, {99}, on_level(level), wanted, got);
      EXPECT_TRUE(wanted.dx ? same_bits(o.types.x, one.dx.data(), got.dx.data(), o.rows, o.d) : testing::AssertionResult(got.dx.has_pattern()));
      EXPECT_TRUE(wanted.dgamma ? same_bits(o.types.affine, one.dgamma.data(), got.dgamma.data(), 1, o.d)
                                : testing::AssertionResult(got.dgamma.has_pattern()));
      EXPECT_TRUE(wanted.dbeta ? same_bits(o.types.affine, one.dbeta.data(), got.dbeta.data(), 1, o.d)
                               : testing::AssertionResult(got.dbeta.has_pattern()));
    }
  }
}

// The sums stay where they are until the last row is there.
TEST(PiecesOfOnes, AreWrittenOnceAndAccumulate) {
  const int64_t rows = 4096, d = 3;
  std::vector<float> x(static_cast<size_t>(rows * d), 1), dbeta(3, 100);
  truenorm_options options = TRUENORM_OPTIONS_INIT;
  options.flags = TRUENORM_ACCUMULATE;
  options.rows_in_all = rows;
  alignas(64) static unsigned char memory[1 << 22];
  options.workspace = memory;
  options.workspace_bytes = sizeof(memory);
  const truenorm_shape shape = shape_of({rows / 2}, d);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(dbeta[0], 100);
    options.rows_before = i * rows / 2;
    ASSERT_TRUE(is_ok(truenorm_layer_norm_backward(&shape, input(TRUENORM_FLOAT32, x.data()), input(TRUENORM_FLOAT32, x.data()), {}, nullptr, 1e-5,
                                                   {}, {}, output(TRUENORM_FLOAT32, dbeta.data()), &options)));
  }
  for (const float sum : dbeta) EXPECT_EQ(sum, 4196);
}

}  // namespace
}  // namespace truenorm::test

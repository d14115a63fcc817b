// SPDX-License-Identifier: Apache-2.0
// Every status: what provokes it, that the message names the values, and that no output was touched.
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "harness.h"

namespace truenorm::test {
namespace {

using Parts = std::vector<std::string>;

// A valid call of forward and of backward, 3 rows of 5, to be made wrong in one place.
class Status : public testing::Test {
 protected:
  Status() {
    needs_no_levels();
    for (Buffer* buffer : {&y, &mean, &var, &rstd, &saved, &dx, &dgamma, &dbeta}) buffer->fill_pattern();
    for (int64_t i = 0; i < 15; ++i) x.set(i, static_cast<double>(i * i)), dy.set(i, 1);
    for (int64_t i = 0; i < 5; ++i) gamma.set(i, 1), beta.set(i, 0);
  }

  truenorm_shape shape = shape_of({3}, 5);
  Buffer x{TRUENORM_FLOAT32, 15, Placement::after_unmapped}, dy{TRUENORM_FLOAT32, 15, Placement::after_unmapped};
  Buffer gamma{TRUENORM_FLOAT32, 5, Placement::after_unmapped}, beta{TRUENORM_FLOAT32, 5, Placement::after_unmapped};
  Buffer y{TRUENORM_FLOAT32, 15, Placement::after_unmapped}, dx{TRUENORM_FLOAT32, 15, Placement::after_unmapped};
  Buffer dgamma{TRUENORM_FLOAT32, 5, Placement::after_unmapped}, dbeta{TRUENORM_FLOAT32, 5, Placement::after_unmapped};
  Buffer mean{TRUENORM_FLOAT64, 3, Placement::after_unmapped}, var{TRUENORM_FLOAT64, 3, Placement::after_unmapped};
  Buffer rstd{TRUENORM_FLOAT64, 3, Placement::after_unmapped}, saved{TRUENORM_FLOAT64, 9, Placement::after_unmapped};

  truenorm_input in_x = input(TRUENORM_FLOAT32, x.data()), in_dy = input(TRUENORM_FLOAT32, dy.data());
  truenorm_input in_gamma = input(TRUENORM_FLOAT32, gamma.data()), in_beta = input(TRUENORM_FLOAT32, beta.data());
  truenorm_output out_y = output(TRUENORM_FLOAT32, y.data()), out_dx = output(TRUENORM_FLOAT32, dx.data());
  truenorm_output out_dgamma = output(TRUENORM_FLOAT32, dgamma.data());
  truenorm_output out_dbeta = output(TRUENORM_FLOAT32, dbeta.data());
  truenorm_stats stats{static_cast<double*>(mean.data()), static_cast<double*>(var.data()),
                       static_cast<double*>(rstd.data()), saved.data()};
  const void* saved_in = nullptr;
  double eps = 1e-5;
  truenorm_options options = TRUENORM_OPTIONS_INIT;

  testing::AssertionResult untouched() {
    for (const Buffer* buffer : {&y, &mean, &var, &rstd, &saved, &dx, &dgamma, &dbeta}) {
      if (!buffer->has_pattern() || !buffer->guards_intact())
        return testing::AssertionFailure() << "an output was touched";
    }
    return testing::AssertionSuccess();
  }
  testing::AssertionResult forward(truenorm_status wanted, const Parts& parts) {
    const auto status = truenorm_layer_norm_forward(&shape, in_x, in_gamma, in_beta, out_y, &stats, eps, &options);
    auto result = is_refused(wanted, status, parts);
    return result ? untouched() : result << " (forward)";
  }
  testing::AssertionResult backward(truenorm_status wanted, const Parts& parts) {
    const auto status = truenorm_layer_norm_backward(&shape, in_dy, in_x, in_gamma, saved_in, eps, out_dx, out_dgamma,
                                                     out_dbeta, &options);
    auto result = is_refused(wanted, status, parts);
    return result ? untouched() : result << " (backward)";
  }
  testing::AssertionResult both(truenorm_status wanted, const Parts& parts) {
    auto result = forward(wanted, parts);
    return result ? backward(wanted, parts) : result;
  }
};

TEST_F(Status, TheCallsToBeSpoiltAreRight) {
  EXPECT_TRUE(is_ok(truenorm_layer_norm_forward(&shape, in_x, in_gamma, in_beta, out_y, &stats, eps, &options)));
  EXPECT_TRUE(is_ok(truenorm_layer_norm_backward(&shape, in_dy, in_x, in_gamma, saved_in, eps, out_dx, out_dgamma,
                                                 out_dbeta, &options)));
}

TEST_F(Status, InvalidShape) {
  shape.d = -7;
  EXPECT_TRUE(both(TRUENORM_INVALID_SHAPE, {"d", "-7"}));
  shape = shape_of({3, -2}, 5);
  EXPECT_TRUE(both(TRUENORM_INVALID_SHAPE, {"dims[1]", "-2"}));
  shape = shape_of({3}, 5);
  shape.rank = -1;
  EXPECT_TRUE(both(TRUENORM_INVALID_SHAPE, {"rank", "-1"}));
  shape.rank = 9;
  EXPECT_TRUE(both(TRUENORM_INVALID_SHAPE, {"rank", "9", "8"}));
  shape = shape_of({int64_t{1} << 40, int64_t{1} << 20}, 8);
  EXPECT_TRUE(both(TRUENORM_INVALID_SHAPE, {}));
  // A product that wraps around to a small number, and one with a zero in it.
  shape = shape_of({int64_t{1} << 62, 4}, 1);
  EXPECT_TRUE(both(TRUENORM_INVALID_SHAPE, {}));
  shape = shape_of({}, int64_t{1} << 61);  // elements enough, but not their bytes
  EXPECT_TRUE(both(TRUENORM_INVALID_SHAPE, {"2305843009213693952", "float32", "2^62 bytes"}));
}

TEST_F(Status, InvalidPointer) {
  const auto status = truenorm_layer_norm_forward(nullptr, in_x, in_gamma, in_beta, out_y, &stats, eps, &options);
  EXPECT_TRUE(is_refused(TRUENORM_INVALID_POINTER, status, {"shape"}));
  in_x.data = nullptr;
  EXPECT_TRUE(both(TRUENORM_INVALID_POINTER, {"x"}));
  in_x.data = x.data();
  in_dy.data = nullptr;
  EXPECT_TRUE(backward(TRUENORM_INVALID_POINTER, {"dy"}));
  in_dy.data = dy.data();
  out_y.data = nullptr;
  stats = {};
  EXPECT_TRUE(forward(TRUENORM_INVALID_POINTER, {"y"})) << "nothing is wanted";
}

TEST_F(Status, InvalidDtype) {
  for (const truenorm_dtype bad : {0, 5, -1, 99}) {
    in_x.dtype = bad;
    EXPECT_TRUE(both(TRUENORM_INVALID_DTYPE, {"x", std::to_string(bad)}));
    in_x.dtype = TRUENORM_FLOAT32;
    in_gamma.dtype = bad;
    EXPECT_TRUE(both(TRUENORM_INVALID_DTYPE, {"gamma", std::to_string(bad)}));
    in_gamma.dtype = TRUENORM_FLOAT32;
    in_beta.dtype = bad;
    EXPECT_TRUE(forward(TRUENORM_INVALID_DTYPE, {"beta", std::to_string(bad)}));
    in_beta.dtype = TRUENORM_FLOAT32;
    out_y.dtype = bad;
    EXPECT_TRUE(forward(TRUENORM_INVALID_DTYPE, {"y", std::to_string(bad)}));
    out_y.dtype = TRUENORM_FLOAT32;
    in_dy.dtype = bad;
    EXPECT_TRUE(backward(TRUENORM_INVALID_DTYPE, {"dy", std::to_string(bad)}));
    in_dy.dtype = TRUENORM_FLOAT32;
    out_dgamma.dtype = bad;
    EXPECT_TRUE(backward(TRUENORM_INVALID_DTYPE, {"dgamma", std::to_string(bad)}));
    out_dgamma.dtype = TRUENORM_FLOAT32;
  }
}

// Both types of a pair that does not go together stand in the message.
TEST_F(Status, UnsupportedDtypes) {
  in_gamma.dtype = in_beta.dtype = TRUENORM_FLOAT16;
  EXPECT_TRUE(both(TRUENORM_UNSUPPORTED_DTYPES, {"float32", "float16", "gamma"}));
  in_gamma.dtype = in_beta.dtype = TRUENORM_FLOAT64;
  EXPECT_TRUE(both(TRUENORM_UNSUPPORTED_DTYPES, {"float32", "float64", "gamma"}));
  in_gamma.dtype = in_beta.dtype = TRUENORM_FLOAT32;
  for (const truenorm_dtype other : {TRUENORM_FLOAT16, TRUENORM_BFLOAT16, TRUENORM_FLOAT64}) {
    out_y.dtype = in_dy.dtype = other;
    EXPECT_TRUE(both(TRUENORM_UNSUPPORTED_DTYPES, {"float32", truenorm_dtype_name(other), "y"}));
    out_y.dtype = in_dy.dtype = TRUENORM_FLOAT32;
    out_dx.dtype = other;
    EXPECT_TRUE(backward(TRUENORM_UNSUPPORTED_DTYPES, {"float32", truenorm_dtype_name(other), "dx"}));
    out_dx.dtype = TRUENORM_FLOAT32;
  }
  for (const truenorm_dtype other : {TRUENORM_FLOAT16, TRUENORM_BFLOAT16}) {
    out_dgamma.dtype = other;
    EXPECT_TRUE(backward(TRUENORM_UNSUPPORTED_DTYPES, {"float32", truenorm_dtype_name(other), "dgamma"}));
    out_dgamma.dtype = TRUENORM_FLOAT32;
    out_dbeta.dtype = other;
    EXPECT_TRUE(backward(TRUENORM_UNSUPPORTED_DTYPES, {"float32", truenorm_dtype_name(other), "dbeta"}));
    out_dbeta.dtype = TRUENORM_FLOAT32;
  }
  // gamma and beta of two types; the two half types together.
  in_x.dtype = out_y.dtype = in_dy.dtype = out_dx.dtype = TRUENORM_FLOAT16;
  in_gamma.dtype = TRUENORM_FLOAT32;
  in_beta.dtype = TRUENORM_FLOAT16;
  EXPECT_TRUE(forward(TRUENORM_UNSUPPORTED_DTYPES, {"float32", "float16"}));
  in_gamma.dtype = in_beta.dtype = TRUENORM_BFLOAT16;
  EXPECT_TRUE(both(TRUENORM_UNSUPPORTED_DTYPES, {"float16", "bfloat16"}));
}

TEST_F(Status, InvalidStride) {
  const int64_t zero = 0, overlapping = 4, huge = int64_t{1} << 62, negative_overlapping = -3;
  for (const int64_t* stride : {&zero, &overlapping, &negative_overlapping}) {
    out_y.strides = out_dx.strides = stride;
    EXPECT_TRUE(forward(TRUENORM_INVALID_STRIDE, {"y", std::to_string(*stride)}));
    EXPECT_TRUE(backward(TRUENORM_INVALID_STRIDE, {"dx", std::to_string(*stride)}));
  }
  out_y.strides = out_dx.strides = &huge;
  EXPECT_TRUE(forward(TRUENORM_INVALID_STRIDE, {"y"}));
  EXPECT_TRUE(backward(TRUENORM_INVALID_STRIDE, {"dx"}));
  out_y.strides = out_dx.strides = nullptr;
  in_x.strides = &huge;
  EXPECT_TRUE(both(TRUENORM_INVALID_STRIDE, {"x"}));
  const int64_t least = std::numeric_limits<int64_t>::min();
  in_x.strides = &least;
  EXPECT_TRUE(both(TRUENORM_INVALID_STRIDE, {"x"}));
}

TEST_F(Status, Misaligned) {
  in_x.data = x.bytes() + 1;
  EXPECT_TRUE(both(TRUENORM_MISALIGNED, {"x", "4"}));
  in_x.data = x.data();
  in_gamma.data = gamma.bytes() + 2;
  EXPECT_TRUE(both(TRUENORM_MISALIGNED, {"gamma", "4"}));
  in_gamma.data = gamma.data();
  out_y.data = y.bytes() + 3;
  EXPECT_TRUE(forward(TRUENORM_MISALIGNED, {"y", "4"}));
  out_y.data = y.data();
  stats.mean = reinterpret_cast<double*>(mean.bytes() + 4);
  EXPECT_TRUE(forward(TRUENORM_MISALIGNED, {"mean", "8"}));
  stats.mean = static_cast<double*>(mean.data());
  stats.saved = saved.bytes() + 4;
  EXPECT_TRUE(forward(TRUENORM_MISALIGNED, {"saved", "8"}));
  saved_in = saved.bytes() + 4;
  EXPECT_TRUE(backward(TRUENORM_MISALIGNED, {"saved", "8"}));
}

TEST_F(Status, InvalidEps) {
  for (const double bad : {-1e-5, -0x1p-1074, std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity(), std::nan("")}) {
    eps = bad;
    EXPECT_TRUE(both(TRUENORM_INVALID_EPS, {"eps", std::isnan(bad) ? "nan" : std::isinf(bad) ? "inf" : "-"}));
  }
  eps = -0.0;  // not negative
  EXPECT_TRUE(is_ok(truenorm_layer_norm_forward(&shape, in_x, in_gamma, in_beta, out_y, nullptr, eps, &options)));
}

TEST_F(Status, InvalidThreads) {
  for (const int32_t bad : {-1, 1025, std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::min()}) {
    options.num_threads = bad;
    EXPECT_TRUE(both(TRUENORM_INVALID_THREADS, {"num_threads", std::to_string(bad), "1024"}));
    EXPECT_TRUE(is_refused(TRUENORM_INVALID_THREADS, truenorm_set_num_threads(bad), {std::to_string(bad)}));
  }
  options.num_threads = 0;
  truenorm_executor executor{[](void*, void (*task)(void*, int64_t), void* data, int64_t count) {
                               for (int64_t i = 0; i < count; ++i) task(data, i);
                             },
                             nullptr, 0};
  options.executor = &executor;
  EXPECT_TRUE(both(TRUENORM_INVALID_THREADS, {"0"}));
  executor.num_threads = 2;
  executor.run = nullptr;
  EXPECT_TRUE(both(TRUENORM_INVALID_POINTER, {"run"}));
}

TEST_F(Status, InvalidOptions) {
  for (const size_t bad : {size_t{0}, size_t{3}, size_t{1} << 20}) {
    options.size = bad;
    EXPECT_TRUE(both(TRUENORM_INVALID_OPTIONS, {"size", std::to_string(bad)}));
  }
  options = TRUENORM_OPTIONS_INIT;
  options.flags = 0x80;
  EXPECT_TRUE(both(TRUENORM_INVALID_OPTIONS, {"flags"}));
}

TEST_F(Status, InvalidIsa) {
  for (const char* bad : {"avx9", "AVX2", "", " avx2"}) {
    options.isa = bad;
    EXPECT_TRUE(both(TRUENORM_INVALID_ISA, {bad}));
  }
}

TEST_F(Status, Workspace) {
  size_t bytes = 0;
  ASSERT_TRUE(is_ok(truenorm_layer_norm_backward_workspace(&shape, in_x, out_dgamma, out_dbeta, &options, &bytes)));
  EXPECT_TRUE(is_refused(TRUENORM_INVALID_POINTER,
                         truenorm_layer_norm_backward_workspace(&shape, in_x, out_dgamma, out_dbeta, &options, nullptr),
                         {"bytes"}));
  ASSERT_GT(bytes, 0u);
  std::vector<unsigned char> memory(bytes + 128);
  const auto aligned = (reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64;
  options.workspace = reinterpret_cast<void*>(aligned);
  options.workspace_bytes = bytes - 1;
  EXPECT_TRUE(backward(TRUENORM_WORKSPACE_TOO_SMALL, {std::to_string(bytes - 1), std::to_string(bytes)}));
  options.workspace = reinterpret_cast<void*>(aligned + 8);
  options.workspace_bytes = bytes;
  EXPECT_TRUE(backward(TRUENORM_MISALIGNED, {"workspace", "64"}));
}

TEST_F(Status, RowsInPieces) {
  const auto in_pieces = [&](int64_t before, int64_t in_all) {
    options.rows_before = before;
    options.rows_in_all = in_all;
  };
  in_pieces(-1, 10);
  EXPECT_TRUE(both(TRUENORM_INVALID_OPTIONS, {"rows_before is -1", "rows_in_all 10"}));
  in_pieces(11, 10);
  EXPECT_TRUE(both(TRUENORM_INVALID_OPTIONS, {"rows_before is 11", "rows_in_all 10"}));
  in_pieces(1, 0);
  EXPECT_TRUE(both(TRUENORM_INVALID_OPTIONS, {"rows_before is 1", "rows_in_all 0"}));
  in_pieces(8, 10);
  EXPECT_TRUE(backward(TRUENORM_INVALID_SHAPE, {"3 rows", "at most the 2"}));
  in_pieces(0, int64_t{1} << 61);
  EXPECT_TRUE(backward(TRUENORM_INVALID_OPTIONS, {"rows_in_all is 2305843009213693952", "5 features"}));
  in_pieces(0, 10);
  EXPECT_TRUE(backward(TRUENORM_INVALID_POINTER, {"options.workspace is NULL"}));
  const int64_t strides[] = {5};
  out_dgamma.strides = strides;
  Buffer wide(TRUENORM_FLOAT32, 15, Placement::after_unmapped);
  out_dgamma.data = wide.data();
  out_dbeta.data = nullptr;
  EXPECT_TRUE(backward(TRUENORM_INVALID_STRIDE, {"dgamma.strides[0] is 5", "rows_in_all"}));
}

TEST_F(Status, WorkspaceStaysSmall) {
  // "At most some 64 MB and 64 rows' worth", for any number of rows.
  for (const int64_t rows : {int64_t{1}, int64_t{4096}, int64_t{1} << 30}) {
    for (const int64_t d : {int64_t{8}, int64_t{4096}, int64_t{1000003}}) {
      shape = shape_of({rows}, d);
      size_t bytes = 0;
      ASSERT_TRUE(is_ok(truenorm_layer_norm_backward_workspace(&shape, in_x, out_dgamma, out_dbeta, &options, &bytes)));
      EXPECT_LE(bytes, (size_t{64} << 20) + 64u * 64u * static_cast<size_t>(d)) << rows << " x " << d;
      EXPECT_LE(bytes, (size_t{80} << 20) + 64u * static_cast<size_t>(d)) << rows << " x " << d;
    }
  }
}

TEST_F(Status, MessagesBelongToTheirThread) {
  eps = -3.5;
  EXPECT_TRUE(both(TRUENORM_INVALID_EPS, {"-3.5"}));
  std::thread([] { EXPECT_STREQ(truenorm_last_error(), ""); }).join();
  EXPECT_NE(std::string(truenorm_last_error()).find("-3.5"), std::string::npos);
  eps = 1e-5;  // a call that succeeds leaves the message alone
  EXPECT_TRUE(is_ok(truenorm_layer_norm_forward(&shape, in_x, in_gamma, in_beta, out_y, nullptr, eps, &options)));
  EXPECT_NE(std::string(truenorm_last_error()).find("-3.5"), std::string::npos);
}

TEST_F(Status, Names) {
  EXPECT_STREQ(truenorm_status_name(TRUENORM_OK), "TRUENORM_OK");
  EXPECT_STREQ(truenorm_status_name(TRUENORM_INVALID_EPS), "TRUENORM_INVALID_EPS");
  EXPECT_STREQ(truenorm_status_name(TRUENORM_NOT_IMPLEMENTED), "TRUENORM_NOT_IMPLEMENTED");
  for (const truenorm_status bad : {-1, 15, 1000}) EXPECT_STREQ(truenorm_status_name(bad), "TRUENORM_UNKNOWN_STATUS");
  EXPECT_STREQ(truenorm_dtype_name(TRUENORM_BFLOAT16), "bfloat16");
  EXPECT_STREQ(truenorm_dtype_name(0), "unknown");
  EXPECT_EQ(truenorm_dtype_size(TRUENORM_FLOAT64), 8u);
  EXPECT_EQ(truenorm_dtype_size(TRUENORM_FLOAT16), 2u);
  EXPECT_EQ(truenorm_dtype_size(5), 0u);
  EXPECT_STREQ(truenorm_version(), "0.1.0");
  EXPECT_EQ(truenorm_spec_version(), TRUENORM_SPEC_VERSION);
  EXPECT_EQ(truenorm_layer_norm_saved_bytes(&shape, TRUENORM_FLOAT32), 48u);
  EXPECT_EQ(truenorm_layer_norm_saved_bytes(&shape, TRUENORM_FLOAT64), 72u);
  EXPECT_EQ(truenorm_layer_norm_saved_bytes(&shape, 9), 0u);
  shape.d = -1;
  EXPECT_EQ(truenorm_layer_norm_saved_bytes(&shape, TRUENORM_FLOAT32), 0u);
  EXPECT_EQ(truenorm_layer_norm_saved_bytes(nullptr, TRUENORM_FLOAT32), 0u);
}

}  // namespace
}  // namespace truenorm::test

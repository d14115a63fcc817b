// SPDX-License-Identifier: Apache-2.0
// What every test program does: run each case on every instruction set, compare bits, keep the worst errors, and fail
// when an instruction set was left out.
#ifndef TRUENORM_TESTS_HARNESS_H_
#define TRUENORM_TESTS_HARNESS_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "buffers.h"
#include "cases.h"
#include "truenorm/truenorm.h"

#ifdef TRUENORM_TEST_ORACLE
#include "oracle.h"
#endif

namespace truenorm::test {

// Names of tests over types: all of them, or that of x where the others are the same.
std::string name_of_types(const testing::TestParamInfo<Types>& info);
std::string name_of_x(const testing::TestParamInfo<Types>& info);


// The instruction sets of this build and CPU, best first.
const std::vector<std::string>& levels();
// Remembers that a kernel ran on this level; the program fails at its end when one of levels() never did, unless it
// declares that it runs no kernels by level.
void ran_on(const std::string& level);
void needs_no_levels();

// What main() of a test program does.
int run_all(int argc, char** argv);

// Options for one level; 1 thread.
truenorm_options on_level(const std::string& level, int32_t num_threads = 1);

// Bits equal, element by element; the message shows the first that is not.
testing::AssertionResult same_bits(truenorm_dtype dtype, const void* expected, const void* got, int64_t rows,
                                   int64_t d);

testing::AssertionResult is_ok(truenorm_status status);
// The status is the one wanted, and the message holds every one of `parts`.
testing::AssertionResult is_refused(truenorm_status wanted, truenorm_status got, const std::vector<std::string>& parts);

#ifdef TRUENORM_TEST_ORACLE
// Keeps the worst of each (what, types) for the table printed at the end; fails when the bound is broken.
void within_bound(const std::string& what, const std::string& types, double bound, const oracle::Finding& finding,
                  const std::string& name);
#endif

inline truenorm_input input(truenorm_dtype dtype, const void* data, const int64_t* strides = nullptr) {
  return {data, strides, dtype};
}
inline truenorm_output output(truenorm_dtype dtype, void* data, const int64_t* strides = nullptr) {
  return {data, strides, dtype};
}
inline truenorm_shape shape_of(const std::vector<int64_t>& leading, int64_t d) {
  truenorm_shape shape{};
  shape.d = d;
  shape.rank = static_cast<int32_t>(leading.size());
  for (size_t i = 0; i < leading.size() && i < TRUENORM_MAX_RANK; ++i) shape.dims[i] = leading[i];
  return shape;
}

}  // namespace truenorm::test

#endif  // TRUENORM_TESTS_HARNESS_H_

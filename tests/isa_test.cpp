// SPDX-License-Identifier: Apache-2.0
// The list of instruction sets and how a call is held to one of them. (TRUENORM_ISA: isa_probe.cpp.)
#include <algorithm>
#include <set>
#include <string>

#include "harness.h"

namespace truenorm::test {
namespace {

#if defined(__x86_64__)
// Every level of an x86-64 build, whether this CPU has it or not.
const std::vector<std::string> kKnown = {"scalar", "sse2", "ssse3", "sse4", "avx2", "avx3", "avx3_dl"};
#endif

truenorm_status forward(const char* isa, float* y) {
  const float x[4] = {3, 1, 5, 7};
  const truenorm_shape shape = shape_of({}, 4);
  const truenorm_input none{nullptr, nullptr, TRUENORM_FLOAT32};
  truenorm_options options = TRUENORM_OPTIONS_INIT;
  options.isa = isa;
  return truenorm_layer_norm_forward(&shape, input(TRUENORM_FLOAT32, x), none, none, output(TRUENORM_FLOAT32, y),
                                     nullptr, 1e-5, &options);
}

TEST(Isa, BestFirstWithoutRepetition) {
  needs_no_levels();
  ASSERT_FALSE(levels().empty());
  EXPECT_EQ(truenorm_isa(), levels().front()) << "the default is the best, as TRUENORM_ISA is not set in this test";
  EXPECT_EQ(std::set<std::string>(levels().begin(), levels().end()).size(), levels().size());
  EXPECT_EQ(truenorm_isa_name(static_cast<int32_t>(levels().size())), nullptr);
  EXPECT_EQ(truenorm_isa_name(-1), nullptr);
  EXPECT_EQ(levels().back(), "scalar") << "the last one runs everywhere";
#if defined(__aarch64__)
  EXPECT_EQ(std::count(levels().begin(), levels().end(), "neon"), 1) << "every AArch64 CPU has it";
#endif
}

TEST(Isa, EveryNameOfTheBuildIsAcceptedAndGivesTheSameBits) {
  float want[4];
  ASSERT_TRUE(is_ok(forward(nullptr, want)));
  for (const std::string& level : levels()) {
    float y[4] = {};
    EXPECT_TRUE(is_ok(forward(level.c_str(), y))) << level;
    EXPECT_TRUE(same_bits(TRUENORM_FLOAT32, want, y, 1, 4)) << level;
  }
#if defined(__x86_64__)
  for (const std::string& name : kKnown) {  // above the CPU's: the best it has
    float y[4] = {};
    EXPECT_TRUE(is_ok(forward(name.c_str(), y))) << name;
    EXPECT_TRUE(same_bits(TRUENORM_FLOAT32, want, y, 1, 4)) << name;
  }
#endif
}

}  // namespace
}  // namespace truenorm::test

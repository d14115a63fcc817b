// SPDX-License-Identifier: Apache-2.0
// Options of callers that were compiled with an older or a newer version of the struct, which begins with its size.
#include "../src/sized_struct.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "harness.h"

namespace truenorm::test {
namespace {

// Three versions of a struct; the library is of the second.
struct First { size_t size; int64_t a; };
struct Second { size_t size; int64_t a, b; };
struct Third { size_t size; int64_t a, b, c; };

TEST(SizedStruct, AnOlderCallersMissingFieldsKeepTheirDefaults) {
  needs_no_levels();
  const First given{sizeof(First), 7};
  Second ours{sizeof(Second), 0, 5};
  EXPECT_EQ(copy_sized(&given, given.size, sizeof(First), &ours), SizedStruct::copied);
  EXPECT_EQ(ours.a, 7);
  EXPECT_EQ(ours.b, 5);
}

TEST(SizedStruct, ANewerCallersUnknownFieldsMustBeZero) {
  Third given{sizeof(Third), 7, 8, 0};
  Second ours{};
  EXPECT_EQ(copy_sized(&given, given.size, sizeof(First), &ours), SizedStruct::copied);
  EXPECT_EQ(ours.a, 7);
  EXPECT_EQ(ours.b, 8);
  given.c = int64_t{1} << 56;  // its last byte, or its first
  ours = {1, 2, 3};
  EXPECT_EQ(copy_sized(&given, given.size, sizeof(First), &ours), SizedStruct::unknown_field);
  EXPECT_EQ(ours.a, 2);
}

TEST(SizedStruct, SizesThatNoVersionHas) {
  const std::vector<unsigned char> given(kLargestStruct);
  Second ours{};
  for (const size_t bad : {size_t{0}, sizeof(First) - 1, kLargestStruct + 1, ~size_t{0}})
    EXPECT_EQ(copy_sized(given.data(), bad, sizeof(First), &ours), SizedStruct::bad_size) << bad;
}

// The same through the C interface: one row with dbeta = dy, in a struct as long as a caller says.
class OptionsOfSize : public testing::Test {
 protected:
  OptionsOfSize() { needs_no_levels(); }

  truenorm_status backward(size_t size, size_t set_byte = 0) {
    std::vector<uint64_t> memory(kLargestStruct / 8 + 2);
    auto* const bytes = reinterpret_cast<unsigned char*>(memory.data());
    truenorm_options options = TRUENORM_OPTIONS_INIT;
    options.size = size;
    options.flags = TRUENORM_ACCUMULATE;
    std::memcpy(bytes, &options, sizeof(options));
    if (set_byte) bytes[set_byte] = 1;
    dbeta[0] = 10, dbeta[1] = 20;
    const float x[] = {1, 2}, dy[] = {3, 4};
    const truenorm_shape shape = shape_of({1}, 2);
    return truenorm_layer_norm_backward(&shape, input(TRUENORM_FLOAT32, dy), input(TRUENORM_FLOAT32, x), {}, nullptr, 1e-5, {},
                                        {}, output(TRUENORM_FLOAT32, dbeta), reinterpret_cast<truenorm_options*>(bytes));
  }
  float dbeta[2];
};

// The first version's fields; a later version makes the struct longer, never this number smaller or larger.
constexpr size_t kFirst = offsetof(truenorm_options, isa) + sizeof(const char*);

TEST_F(OptionsOfSize, EverySizeFromTheFirstVersionsOnIsTaken) {
  for (const size_t size : {kFirst, sizeof(truenorm_options), sizeof(truenorm_options) + 1, sizeof(truenorm_options) + 24,
                            kLargestStruct}) {
    ASSERT_TRUE(is_ok(backward(size))) << size;
    EXPECT_EQ(dbeta[0], 13) << "flags must count; size " << size;
    EXPECT_EQ(dbeta[1], 24);
  }
  EXPECT_EQ(kFirst, sizeof(void*) == 8 ? 48u : kFirst) << "the first version's size is part of the ABI";
}

TEST_F(OptionsOfSize, OthersAreRefusedAndTouchNothing) {
  for (const size_t size : {size_t{0}, size_t{8}, kFirst - 1, kLargestStruct + 1}) {
    EXPECT_TRUE(is_refused(TRUENORM_INVALID_OPTIONS, backward(size), {"options.size", std::to_string(size), std::to_string(kFirst)}));
    EXPECT_EQ(dbeta[0], 10);
  }
  for (const size_t set : {sizeof(truenorm_options), sizeof(truenorm_options) + 23}) {
    const size_t size = sizeof(truenorm_options) + 24;
    EXPECT_TRUE(is_refused(TRUENORM_INVALID_OPTIONS, backward(size, set),
                           {"options.size", std::to_string(size), std::to_string(sizeof(truenorm_options)), truenorm_version()}));
    EXPECT_EQ(dbeta[0], 10);
  }
  EXPECT_TRUE(is_ok(backward(sizeof(truenorm_options), sizeof(truenorm_options) + 1))) << "what lies beyond is not read";
}

}  // namespace
}  // namespace truenorm::test

// SPDX-License-Identifier: Apache-2.0
// Checksums of result bits (bits_test.cpp), printed by TRUENORM_TEST_PRINT_BITS=1.
#ifndef TRUENORM_TESTS_BITS_RECORDED_H_
#define TRUENORM_TESTS_BITS_RECORDED_H_

#include <cstdint>

namespace truenorm::test {

inline constexpr int32_t kRecordedSpecVersion = 0;

struct RecordedBits {
  const char* types;
  uint64_t forward, backward;
};
inline constexpr RecordedBits kRecordedBits[] = {
    {"float32/float32/float32", 0xd6f196f025f74b3c, 0x6233aba41228adc5},
    {"float64/float64/float64", 0x7085702b45b31cff, 0xa64d273041abf6dc},
    {"float16/float16/float16", 0xfffddd79a50c1548, 0x51ec7a7356930d57},
    {"bfloat16/bfloat16/bfloat16", 0x89711b52862c24df, 0x9afcd6d42f6a1783},
    {"float16/float32/float16", 0xd8796e649b949977, 0x215d8ae49c153f1c},
    {"float16/float16/float32", 0x1dbfbc74b6dc81bc, 0xac2f7f0013eadd0c},
    {"float16/float32/float32", 0x74445824287e6a80, 0x5e8f0c9a49bdca60},
    {"bfloat16/float32/bfloat16", 0xb643b29bd4aa15b8, 0x7950cefeed61f994},
    {"bfloat16/bfloat16/float32", 0x3dd254e4b8ea3edb, 0x33f74e696bab5473},
    {"bfloat16/float32/float32", 0x225ac9a6d14d4278, 0xa68944ffbb6f03db},
};

}  // namespace truenorm::test

#endif  // TRUENORM_TESTS_BITS_RECORDED_H_

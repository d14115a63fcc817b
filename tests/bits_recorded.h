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
    {"float32/float32/float32", 0x423fc9559121496a, 0xd214d43cc175793b},
    {"float64/float64/float64", 0xb6dbcc05c89cabcc, 0x7f0777fca16de6ab},
    {"float16/float16/float16", 0x0ab9788074219fe8, 0x139df969305926b6},
    {"bfloat16/bfloat16/bfloat16", 0x68cc733feddbad39, 0x4b7fe9d0a32bbb5c},
    {"float16/float32/float16", 0xbb621a65c6033668, 0x7326a26f5ecee02d},
    {"float16/float16/float32", 0x94eab74f3f67ddef, 0xfaee96e355a41119},
    {"float16/float32/float32", 0x6d82175f4bb76b5c, 0x3c3dd3eb5f90ea8b},
    {"bfloat16/float32/bfloat16", 0x57236e664cbd5c87, 0xdf2285b1e52ec7e8},
    {"bfloat16/bfloat16/float32", 0x38eb00484e1304d6, 0x44f7294b19832bec},
    {"bfloat16/float32/float32", 0x57fe881942e37813, 0x7fff83b5d7bde8b9},
};

}  // namespace truenorm::test

#endif  // TRUENORM_TESTS_BITS_RECORDED_H_

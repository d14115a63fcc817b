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
    {"float32/float32/float32", 0x423fc9559121496a, 0xca50ef76178fedbd},
    {"float64/float64/float64", 0xb6dbcc05c89cabcc, 0x7f0777fca16de6ab},
    {"float16/float16/float16", 0x0ab9788074219fe8, 0x2fa9621b402f624a},
    {"bfloat16/bfloat16/bfloat16", 0x68cc733feddbad39, 0xac95b40072fbef3a},
    {"float16/float32/float16", 0xbb621a65c6033668, 0xea76cc306bf41d1a},
    {"float16/float16/float32", 0x94eab74f3f67ddef, 0x09f95aac07125b70},
    {"float16/float32/float32", 0x6d82175f4bb76b5c, 0x6ed6769b3a07c911},
    {"bfloat16/float32/bfloat16", 0x57236e664cbd5c87, 0x37947a04e8c0ef4f},
    {"bfloat16/bfloat16/float32", 0x38eb00484e1304d6, 0xdf1f2dfa5c2ea682},
    {"bfloat16/float32/float32", 0x57fe881942e37813, 0xb517e278e515771c},
};

}  // namespace truenorm::test

#endif  // TRUENORM_TESTS_BITS_RECORDED_H_

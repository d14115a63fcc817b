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
    {"float32/float32/float32", 0x423fc9559121496a, 0x6557b6041343044f},
    {"float64/float64/float64", 0xb6dbcc05c89cabcc, 0x7f0777fca16de6ab},
    {"float16/float16/float16", 0x0ab9788074219fe8, 0x451e08e0edb58302},
    {"bfloat16/bfloat16/bfloat16", 0x68cc733feddbad39, 0x808f75afcc9e4133},
    {"float16/float32/float16", 0xbb621a65c6033668, 0x22a0c1f7d2b6df72},
    {"float16/float16/float32", 0x94eab74f3f67ddef, 0xa23dd2992369ec42},
    {"float16/float32/float32", 0x6d82175f4bb76b5c, 0x827adbb5c78a9009},
    {"bfloat16/float32/bfloat16", 0x57236e664cbd5c87, 0xd34380c7e4d47e59},
    {"bfloat16/bfloat16/float32", 0x38eb00484e1304d6, 0x879ad0d07ca2e10f},
    {"bfloat16/float32/float32", 0x57fe881942e37813, 0xcac11c3d068a7f8f},
};

}  // namespace truenorm::test

#endif  // TRUENORM_TESTS_BITS_RECORDED_H_

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
    {"float32/float32/float32", 0x0e987db2f27ebdbf, 0x57fcccfd5e683481},
    {"float64/float64/float64", 0x3c9481e7bd9464ca, 0x4d97e273c6f13193},
    {"float16/float16/float16", 0x08d3e941d852ef8e, 0x6b637f053cf2ab1c},
    {"bfloat16/bfloat16/bfloat16", 0xbf485ee267fa045c, 0x811d4c05d5c756d0},
    {"float16/float32/float16", 0x1c765bb985ba745d, 0xd0c21e01e9b77500},
    {"float16/float16/float32", 0x249ecc97e9876949, 0x7e5875a2564a9a3f},
    {"float16/float32/float32", 0x541648d0f1f3e1b7, 0x369772ae606668e6},
    {"bfloat16/float32/bfloat16", 0x819c0894b306a96e, 0xdc01d9566c00efab},
    {"bfloat16/bfloat16/float32", 0x29cdaa0aa442133b, 0x7575b92c03c3726a},
    {"bfloat16/float32/float32", 0x2aac44847d4043f2, 0xa8ad0b0e8c3b5b3a},
};

}  // namespace truenorm::test

#endif  // TRUENORM_TESTS_BITS_RECORDED_H_

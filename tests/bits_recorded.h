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
    {"float32/float32/float32", 0, 0},
};

}  // namespace truenorm::test

#endif  // TRUENORM_TESTS_BITS_RECORDED_H_

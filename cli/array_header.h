// SPDX-License-Identifier: Apache-2.0
#ifndef TRUENORM_CLI_ARRAY_HEADER_H_
#define TRUENORM_CLI_ARRAY_HEADER_H_

#include <cstdint>
#include <vector>

#include "truenorm/truenorm.h"

namespace truenorm::cli {

// The largest number of elements that a header may promise: times 8 bytes still fits into 64 bits.
inline constexpr int64_t kMostElements = (int64_t{1} << 60) - 1;
inline constexpr const char* kExpectedElements = "; expected fewer than 2^60 elements";

// What a file says of an array, whatever its format.
struct ArrayHeader {
  truenorm_dtype dtype = TRUENORM_FLOAT32;
  bool fortran_order = false;
  bool swapped = false;  // the bytes of each element are in the other order than this machine's
  std::vector<int64_t> shape;

  int64_t elements() const;
  int64_t bytes() const;
};

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_ARRAY_HEADER_H_

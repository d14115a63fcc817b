// SPDX-License-Identifier: Apache-2.0
#ifndef TRUENORM_CLI_NPY_H_
#define TRUENORM_CLI_NPY_H_

#include <cstdint>
#include <string>

#include "array_header.h"
#include "byte_source.h"

namespace truenorm::cli {

// Where the array's bytes are, and what they mean.
struct StoredArray {
  ArrayHeader header;
  int64_t begin = 0;  // in the source that it was read from
};

// Reads the header of a .npy file: versions 1 to 3; float64, float32, float16, and bfloat16 as ml_dtypes stores it;
// either byte order. Where the source's size is known, it is compared with what the header promises.
StoredArray read_npy(ByteSource& source, const std::string& name);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_NPY_H_

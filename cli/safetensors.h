// SPDX-License-Identifier: Apache-2.0
//
// The header of a .safetensors file: a 64-bit length, then JSON such as
// {"weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}, then the data. Always little-endian, C order.
#ifndef TRUENORM_CLI_SAFETENSORS_H_
#define TRUENORM_CLI_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "array_header.h"

namespace truenorm::cli {

// Headers of the largest published models have a few megabytes.
inline constexpr int64_t kSafetensorsLongestHeader = int64_t{16} << 20;
inline constexpr size_t kSafetensorsPrefix = 8;

struct Tensor {
  std::string name;
  std::string dtype;  // as the file names it, "F32"
  std::vector<int64_t> shape;
  int64_t begin = 0, end = 0;  // in the data
};

// From the first 8 bytes and the size of the file: how long the JSON is. BadInput when that cannot be.
int64_t safetensors_header_bytes(std::span<const std::byte> prefix, int64_t file_bytes, std::string_view file);

// Every tensor that the JSON names, each within `data_bytes`. BadInput, naming what is wrong, for anything else: no
// JSON, a missing or unknown key, a name twice, offsets outside of the file or that do not fit the shape.
std::vector<Tensor> parse_safetensors(std::string_view json, int64_t data_bytes, std::string_view file);

// As the readers of arrays want it. BadInput for types other than F64, F32, F16 and BF16.
ArrayHeader array_header(const Tensor& tensor, std::string_view file);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_SAFETENSORS_H_

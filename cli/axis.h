// SPDX-License-Identifier: Apache-2.0
#ifndef TRUENORM_CLI_AXIS_H_
#define TRUENORM_CLI_AXIS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "npy_header.h"

namespace truenorm::cli {

// Where the features of a row lie in a file: element (o, i, n) of [outer][d][inner] is feature i of row o*inner + n. A
// file in Fortran order is one in C order with its axes reversed.
struct AxisLayout {
  int64_t outer = 0, d = 0, inner = 1;
  std::vector<int64_t> row_shape;  // the other axes, as the file's header would name them

  int64_t rows() const { return outer * inner; }
};

// `axis` counts from 0, or from the end when negative; BadInput when the file has no such axis.
AxisLayout axis_layout(const NpyHeader& header, const std::string& axis, const std::string& file);

// Between the order of the file and rows one after another, for layouts with inner > 1.
std::vector<std::byte> gather_rows(const AxisLayout& layout, std::span<const std::byte> file, size_t element);
std::vector<std::byte> scatter_rows(const AxisLayout& layout, std::span<const std::byte> rows, size_t element);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_AXIS_H_

// SPDX-License-Identifier: Apache-2.0
#include "axis.h"

#include <algorithm>
#include <cstring>

#include "bad_input.h"
#include "numbers.h"

namespace truenorm::cli {
namespace {

// Copies element by element; `to_rows` says in which direction.
std::vector<std::byte> permute(const AxisLayout& layout, std::span<const std::byte> from, size_t element,
                               bool to_rows) {
  std::vector<std::byte> to(from.size());
  for (int64_t o = 0; o < layout.outer; ++o) {
    for (int64_t i = 0; i < layout.d; ++i) {
      for (int64_t n = 0; n < layout.inner; ++n) {
        const auto in_file = static_cast<size_t>((o * layout.d + i) * layout.inner + n) * element;
        const auto in_rows = static_cast<size_t>((o * layout.inner + n) * layout.d + i) * element;
        std::memcpy(to.data() + (to_rows ? in_rows : in_file), from.data() + (to_rows ? in_file : in_rows), element);
      }
    }
  }
  return to;
}

}  // namespace

AxisLayout axis_layout(const NpyHeader& header, const std::string& axis, const std::string& file) {
  const auto rank = static_cast<int64_t>(header.shape.size());
  if (rank == 0) throw BadInput(file + ": has shape (); expected at least one axis");
  int64_t at = parse_integer(axis, "--axis", -rank, rank - 1);
  if (at < 0) at += rank;

  AxisLayout layout;
  layout.row_shape = header.shape;
  layout.row_shape.erase(layout.row_shape.begin() + at);
  std::vector<int64_t> shape = header.shape;
  if (header.fortran_order) {
    std::reverse(shape.begin(), shape.end());
    at = rank - 1 - at;
  }
  layout.outer = 1;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t size = shape[static_cast<size_t>(i)];
    if (i < at) layout.outer *= size;
    if (i == at) layout.d = size;
    if (i > at) layout.inner *= size;
  }
  return layout;
}

std::vector<std::byte> gather_rows(const AxisLayout& layout, std::span<const std::byte> file, size_t element) {
  return permute(layout, file, element, true);
}

std::vector<std::byte> scatter_rows(const AxisLayout& layout, std::span<const std::byte> rows, size_t element) {
  return permute(layout, rows, element, false);
}

}  // namespace truenorm::cli

// SPDX-License-Identifier: Apache-2.0
#include "rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "bad_input.h"
#include "numbers.h"

namespace truenorm::cli {
namespace {

// Large enough that a call of the library or the system costs nothing beside its work.
constexpr int64_t kPieceBytes = int64_t{4} << 20;
// A gathered piece takes a few elements of each feature: the larger, the more neighbours are read together.
constexpr int64_t kGatheredBytes = int64_t{16} << 20;
// The program itself, the threads' stacks and the library's scratch memory.
constexpr int64_t kOverheadBytes = int64_t{100} << 20;

bool whole_blocks(const RowLayout& layout, const Piece& piece) {
  return piece.first % layout.inner == 0 && piece.rows % layout.inner == 0;
}

// Between blocks of [d][inner] and [inner][d].
template <typename T>
void transpose(const std::byte* from, std::byte* to, int64_t blocks, int64_t rows, int64_t columns) {
  for (int64_t b = 0; b < blocks; ++b) {
    const std::byte* in = from + b * rows * columns * int64_t{sizeof(T)};
    std::byte* out = to + b * rows * columns * int64_t{sizeof(T)};
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t r = 0; r < rows; ++r)
        std::memcpy(out + (c * rows + r) * int64_t{sizeof(T)}, in + (r * columns + c) * int64_t{sizeof(T)}, sizeof(T));
    }
  }
}

void transpose(const std::byte* from, std::byte* to, int64_t blocks, int64_t rows, int64_t columns, size_t element) {
  if (element == 8) return transpose<uint64_t>(from, to, blocks, rows, columns);
  if (element == 4) return transpose<uint32_t>(from, to, blocks, rows, columns);
  transpose<uint16_t>(from, to, blocks, rows, columns);
}

int64_t file_element(const RowLayout& layout, int64_t row, int64_t feature) {
  return (row / layout.inner * layout.d + feature) * layout.inner + row % layout.inner;
}

}  // namespace

RowLayout row_layout(const ArrayHeader& header, const std::string& axis, const std::string& name) {
  const auto rank = static_cast<int64_t>(header.shape.size());
  if (rank == 0) throw BadInput(name + ": has shape (); expected at least one axis");
  int64_t at = parse_integer(axis, "--axis", -rank, rank - 1);
  if (at < 0) at += rank;

  RowLayout layout;
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

Pieces::Pieces(const RowLayout& layout, size_t element) : rows_(layout.rows()), inner_(layout.inner) {
  // In floating point: a damaged header may promise products beyond 64 bits where another axis is 0.
  const auto row_bytes = std::max(1.0, static_cast<double>(layout.d) * static_cast<double>(element));
  const auto block_bytes = row_bytes * static_cast<double>(std::max<int64_t>(1, inner_));
  const auto blocks = static_cast<int64_t>(std::max(1.0, std::floor(kPieceBytes / block_bytes)));
  gathered_ = inner_ > 1 && block_bytes > kGatheredBytes;
  step_ = gathered_ ? static_cast<int64_t>(std::max(1.0, std::floor(kGatheredBytes / row_bytes))) : blocks * inner_;
}

Piece Pieces::after(int64_t done) const {
  int64_t rows = std::min(step_, rows_ - done);
  if (gathered_) rows = std::min(rows, inner_ - done % inner_);
  return {done, rows};
}

RowReader::RowReader(ArrayReader& array, const RowLayout& layout)
    : array_(array), layout_(layout), element_(truenorm_dtype_size(array.header().dtype)) {}

void RowReader::read(const Piece& piece, std::vector<std::byte>& rows) {
  const int64_t d = layout_.d, inner = layout_.inner;
  rows.resize(static_cast<size_t>(piece.rows * d) * element_);
  if (piece.rows == 0) return;
  if (inner == 1) {
    array_.seek(piece.first * d);
    array_.read(rows);
  } else if (whole_blocks(layout_, piece)) {
    buffer_.resize(rows.size());
    array_.seek(piece.first * d);
    array_.read(buffer_);
    transpose(buffer_.data(), rows.data(), piece.rows / inner, d, inner, element_);
  } else {
    buffer_.resize(rows.size());
    const size_t part = static_cast<size_t>(piece.rows) * element_;
    for (int64_t i = 0; i < d; ++i) {
      array_.seek(file_element(layout_, piece.first, i));
      array_.read(std::span(buffer_).subspan(static_cast<size_t>(i) * part, part));
    }
    transpose(buffer_.data(), rows.data(), 1, d, piece.rows, element_);
  }
}

RowWriter::RowWriter(OutputFile& file, const RowLayout& layout, size_t element)
    : file_(file), layout_(layout), element_(element), begin_(file.written()) {}

void RowWriter::write(const Piece& piece, std::span<const std::byte> rows) {
  const int64_t d = layout_.d, inner = layout_.inner;
  if (inner == 1) return file_.write(rows);
  buffer_.resize(rows.size());
  if (whole_blocks(layout_, piece)) {
    transpose(rows.data(), buffer_.data(), piece.rows / inner, inner, d, element_);
    return file_.write(buffer_);
  }
  transpose(rows.data(), buffer_.data(), 1, piece.rows, d, element_);
  const size_t part = static_cast<size_t>(piece.rows) * element_;
  for (int64_t i = 0; i < d; ++i) {
    file_.write_at(begin_ + file_element(layout_, piece.first, i) * static_cast<int64_t>(element_),
                   std::span<const std::byte>(buffer_).subspan(static_cast<size_t>(i) * part, part));
  }
}

int64_t parse_memory(const std::string& text) {
  int64_t unit = 1;
  std::string digits = text;
  for (const auto& [letter, size] :
       {std::pair{'K', int64_t{1} << 10}, {'M', int64_t{1} << 20}, {'G', int64_t{1} << 30}}) {
    if (digits.empty() || digits.back() != letter) continue;
    unit = size;
    digits.pop_back();
    break;
  }
  for (const char c : digits) {
    if (c < '0' || c > '9') digits.clear();
  }
  if (digits.empty() || digits.size() > 9) throw BadInput("--memory: '" + text + "' is no size such as 200M or 4G");
  return parse_integer(digits, "--memory", 0, 999999999) * unit;
}

void refuse_large_rows(const RowLayout& layout, int64_t bytes_a_feature, int64_t memory, const std::string& name,
                       const std::string& given) {
  // Up to four copies of an element a feature at the same time; gathered pieces are counted as overhead.
  const double needed = static_cast<double>(layout.d) * static_cast<double>(bytes_a_feature);
  const double left = static_cast<double>(std::max<int64_t>(memory - kOverheadBytes, kGatheredBytes));
  if (needed <= left) return;
  const double megabytes = std::ceil((needed + kOverheadBytes) / (1 << 20));
  throw BadInput(name + ": a row of " + grouped(layout.d) + " features needs " +
                 grouped(static_cast<int64_t>(std::min(megabytes, 9e15))) + "M of memory, more than --memory " + given +
                 " allows");
}

}  // namespace truenorm::cli

// SPDX-License-Identifier: Apache-2.0
#include "rows.h"

#include <algorithm>
#include <cctype>
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
// Neighbours of less than this are too few to be read for: then rows lie in files, where more have room. Beyond so many
// rows nothing is gained, and files should not be larger than that.
constexpr int64_t kNeighbourBytes = 1024, kGatheredRows = 1024, kGatheredFileBytes = int64_t{1} << 36;
// So much of a piece is put in its places at a time, at least a page of each row.
constexpr int64_t kChunkBytes = int64_t{8} << 20;
// The program itself, the threads' stacks and the library's scratch memory.
constexpr int64_t kOverheadBytes = int64_t{100} << 20;

// A matrix of `rows` lines that are `from_stride` elements apart; its columns become lines `to_stride` apart.
template <typename T>
void transpose(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride, int64_t rows, int64_t columns) {
  constexpr int64_t kTile = 16;  // lines of the cache are used whole
  for (int64_t top = 0; top < rows; top += kTile) {
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t r = top; r < std::min(top + kTile, rows); ++r)
        std::memcpy(to + (c * to_stride + r) * int64_t{sizeof(T)}, from + (r * from_stride + c) * int64_t{sizeof(T)}, sizeof(T));
    }
  }
}

void transpose(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride, int64_t rows, int64_t columns,
               size_t element) {
  if (element == 8) return transpose<uint64_t>(from, from_stride, to, to_stride, rows, columns);
  if (element == 4) return transpose<uint32_t>(from, from_stride, to, to_stride, rows, columns);
  transpose<uint16_t>(from, from_stride, to, to_stride, rows, columns);
}

// Each of `blocks` matrices that follow one another.
void transpose_blocks(const std::byte* from, std::byte* to, int64_t blocks, int64_t rows, int64_t columns, size_t element) {
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t at = b * rows * columns * static_cast<int64_t>(element);
    transpose(from + at, columns, to + at, rows, rows, columns, element);
  }
}

// How many rows of a block too large for one piece make a piece.
int64_t gathered_rows(const RowLayout& layout, size_t element, Place place) {
  const double row_bytes = static_cast<double>(layout.d) * static_cast<double>(element);
  const auto fit = [&](int64_t bytes) { return static_cast<int64_t>(std::max(1.0, std::floor(static_cast<double>(bytes) / row_bytes))); };
  if (place == Place::kMemory) return fit(kGatheredBytes);
  return std::min({fit(kGatheredFileBytes), layout.inner, kGatheredRows});
}

bool is_gathered(const RowLayout& layout, size_t element) {
  return layout.inner > 1 && static_cast<double>(layout.d) * static_cast<double>(element) * static_cast<double>(layout.inner) > kGatheredBytes;
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

Pieces::Pieces(const RowLayout& layout, size_t element, Place place) : rows_(layout.rows()), inner_(layout.inner) {
  // In floating point: a damaged header may promise products beyond 64 bits where another axis is 0.
  const auto row_bytes = std::max(1.0, static_cast<double>(layout.d) * static_cast<double>(element));
  const auto block_bytes = row_bytes * static_cast<double>(std::max<int64_t>(1, inner_));
  const auto blocks = static_cast<int64_t>(std::max(1.0, std::floor(kPieceBytes / block_bytes)));
  gathered_ = is_gathered(layout, element);
  step_ = gathered_ ? gathered_rows(layout, element, place) : blocks * inner_;
}

Piece Pieces::after(int64_t done) const {
  int64_t rows = std::min(step_, rows_ - done);
  if (gathered_) rows = std::min(rows, inner_ - done % inner_);
  return {done, rows};
}

RowReader::RowReader(ArrayReader& array, const RowLayout& layout, bool gathered)
    : array_(array), layout_(layout), element_(truenorm_dtype_size(array.header().dtype)), gathered_(gathered) {}

void RowReader::read(const Piece& piece, Bytes& rows) {
  const int64_t d = layout_.d, inner = layout_.inner;
  rows.resize(static_cast<size_t>(piece.rows * d) * element_);
  if (piece.rows == 0) return;
  if (inner == 1) {
    array_.seek(piece.first * d);
    rows.in_parts([&](std::span<std::byte> part, size_t) { array_.read(part); });
  } else if (!gathered_) {
    buffer_.resize(rows.size());
    array_.seek(piece.first * d);
    array_.read(buffer_);
    transpose_blocks(buffer_.data(), rows.data(), piece.rows / inner, d, inner, element_);
  } else {
    gather(piece, rows);
  }
}

// A part of a block, or a block too large to be held twice: so many features at a time.
void RowReader::gather(const Piece& piece, Bytes& rows) {
  const size_t part = static_cast<size_t>(piece.rows) * element_;
  const int64_t step = std::max<int64_t>(1, kChunkBytes / static_cast<int64_t>(part));
  for (int64_t first = 0; first < layout_.d; first += step) {
    const int64_t features = std::min(step, layout_.d - first);
    buffer_.resize(static_cast<size_t>(features) * part);
    if (piece.rows == layout_.inner) {
      array_.seek(file_element(layout_, piece.first, first));
      array_.read(buffer_);
    } else {
      for (int64_t i = 0; i < features; ++i) {
        array_.seek(file_element(layout_, piece.first, first + i));
        array_.read(std::span(buffer_).subspan(static_cast<size_t>(i) * part, part));
      }
    }
    transpose(buffer_.data(), piece.rows, rows.data() + static_cast<size_t>(first) * element_, layout_.d, features, piece.rows,
              element_);
    forget_mapped();
  }
}

RowWriter::RowWriter(OutputFile& file, const RowLayout& layout, size_t element, bool gathered)
    : file_(file), layout_(layout), element_(element), gathered_(gathered), begin_(file.written()) {}

void RowWriter::write(const Piece& piece, Bytes& rows) {
  const int64_t d = layout_.d, inner = layout_.inner;
  if (inner == 1) return rows.in_parts([&](std::span<std::byte> part, size_t) { file_.write(part); });
  if (gathered_) return scatter(piece, rows);
  buffer_.resize(rows.size());
  transpose_blocks(rows.data(), buffer_.data(), piece.rows / inner, inner, d, element_);
  file_.write(buffer_);
}

void RowWriter::scatter(const Piece& piece, Bytes& rows) {
  const size_t part = static_cast<size_t>(piece.rows) * element_;
  const int64_t step = std::max<int64_t>(1, kChunkBytes / static_cast<int64_t>(part));
  const auto at = [&](int64_t feature) {
    return begin_ + file_element(layout_, piece.first, feature) * static_cast<int64_t>(element_);
  };
  for (int64_t first = 0; first < layout_.d; first += step) {
    const int64_t features = std::min(step, layout_.d - first);
    buffer_.resize(static_cast<size_t>(features) * part);
    transpose(rows.data() + static_cast<size_t>(first) * element_, layout_.d, buffer_.data(), piece.rows, piece.rows, features,
              element_);
    if (piece.rows == layout_.inner) {
      file_.write_at(at(first), buffer_);
    } else {
      for (int64_t i = 0; i < features; ++i)
        file_.write_at(at(first + i), std::span<const std::byte>(buffer_).subspan(static_cast<size_t>(i) * part, part));
    }
    forget_mapped();
  }
}

int64_t parse_memory(const std::string& text) {
  // 200M, 200MB, 200MiB, 1.5g: all in powers of 1024.
  const size_t letters = std::min(text.find_first_not_of("0123456789."), text.size());
  std::string unit = text.substr(letters);
  std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::optional<double> number = letters ? read_number(text.substr(0, letters)) : std::nullopt;
  double bytes = -1;
  for (const auto& [letter, size] : {std::pair{"", 0}, {"k", 10}, {"m", 20}, {"g", 30}, {"t", 40}}) {
    const std::string l = letter;
    if (number && (unit == l || unit == l + "b" || (!l.empty() && unit == l + "ib"))) bytes = std::ldexp(*number, size);
  }
  constexpr int64_t kLeast = kOverheadBytes + kGatheredBytes, kMost = int64_t{1} << 50;
  if (!(bytes >= kLeast && bytes <= kMost)) {
    throw BadInput("--memory: '" + text + "' is " + (bytes < 0 ? "no size" : bytes < kLeast ? "too little" : "too much") +
                   "; expected one such as 200M or 4G, from " + std::to_string(kLeast >> 20) + "M to " +
                   std::to_string(kMost >> 40) + "T");
  }
  return static_cast<int64_t>(bytes);
}

Place place_of_rows(const RowLayout& layout, size_t element, int64_t bytes_a_feature, int64_t bytes_at_once,
                    const std::string& memory, const std::string& name) {
  const double left = static_cast<double>(parse_memory(memory) - kOverheadBytes);
  const double d = static_cast<double>(layout.d);
  const bool few_neighbours = is_gathered(layout, element) &&
                              gathered_rows(layout, element, Place::kMemory) * static_cast<int64_t>(element) < kNeighbourBytes;
  if (d * static_cast<double>(bytes_a_feature) <= left && !few_neighbours) return Place::kMemory;
  const double needed = d / 64 * static_cast<double>(bytes_at_once);
  if (needed <= left) return Place::kFile;
  const double megabytes = std::ceil((needed + kOverheadBytes) / (1 << 20));
  throw BadInput(name + ": a row of " + grouped(layout.d) + " features needs " +
                 grouped(static_cast<int64_t>(std::min(megabytes, 9e15))) + "M of memory, more than --memory " + memory +
                 " allows");
}

}  // namespace truenorm::cli

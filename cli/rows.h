// SPDX-License-Identifier: Apache-2.0
//
// An array in a file as rows of d features, piece by piece, whatever the axis and the order of the file.
#ifndef TRUENORM_CLI_ROWS_H_
#define TRUENORM_CLI_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "array_reader.h"
#include "bytes.h"
#include "output_file.h"

namespace truenorm::cli {

// Where the features of a row lie in a file: element (o, i, n) of [outer][d][inner] is feature i of row o*inner + n. A
// file in Fortran order is one in C order with its axes reversed.
struct RowLayout {
  int64_t outer = 0, d = 0, inner = 1;
  std::vector<int64_t> row_shape;  // the other axes, as the file's header would name them

  int64_t rows() const { return outer * inner; }
};

// `axis` counts from 0, or from the end when negative; BadInput when the array has no such axis.
RowLayout row_layout(const ArrayHeader& header, const std::string& axis, const std::string& name);

struct Piece {
  int64_t first = 0, rows = 0;
};

// How a file is cut: a function of its layout and element size alone. A piece is whole blocks of [d][inner], one after
// another in the file; where a single block is too large, it is a part of one, which must be gathered. With rows in
// files a piece may be larger.
class Pieces {
 public:
  Pieces(const RowLayout& layout, size_t element, Place place = Place::kMemory);

  bool gathered() const { return gathered_; }
  int64_t largest() const { return step_; }  // rows
  // The piece after `done` rows; no rows at the end.
  Piece after(int64_t done) const;

 private:
  int64_t rows_, inner_, step_;
  bool gathered_;
};

// Copies rows out of an array, one after another.
class RowReader {
 public:
  // `gathered`: the pieces are parts of a block, or one that is too large to be held twice.
  RowReader(ArrayReader& array, const RowLayout& layout, bool gathered);
  void read(const Piece& piece, Bytes& rows);

 private:
  void gather(const Piece& piece, Bytes& rows);

  ArrayReader& array_;
  RowLayout layout_;
  size_t element_;
  bool gathered_;
  std::vector<std::byte> buffer_;
};

// Copies rows to where they belong in a file whose data begin at `begin`. Unless the pieces are gathered, they must
// come in order.
class RowWriter {
 public:
  RowWriter(OutputFile& file, const RowLayout& layout, size_t element, bool gathered);
  void write(const Piece& piece, Bytes& rows);

 private:
  void scatter(const Piece& piece, Bytes& rows);

  OutputFile& file_;
  RowLayout layout_;
  size_t element_;
  bool gathered_;
  int64_t begin_;
  std::vector<std::byte> buffer_;
};

// What a command may hold in memory, from "--memory 200M". BadInput for less than the program itself needs.
int64_t parse_memory(const std::string& text);

// Where rows lie that need this much a feature, all in all. BadInput where even files are no help, since the library
// looks at too much of a row at once: parts of 64 of it, of this much a feature.
Place place_of_rows(const RowLayout& layout, size_t element, int64_t bytes_a_feature, int64_t bytes_at_once,
                    const std::string& memory, const std::string& name);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_ROWS_H_

// SPDX-License-Identifier: Apache-2.0
#include "rows.h"

#include <gtest/gtest.h>

#include "bad_input.h"

namespace truenorm::cli {
namespace {

RowLayout layout(std::vector<int64_t> shape, const char* axis, bool fortran = false) {
  return row_layout({TRUENORM_FLOAT32, fortran, false, std::move(shape)}, axis, "x.npy");
}

std::vector<int64_t> sizes(const RowLayout& rows) { return {rows.outer, rows.d, rows.inner}; }

TEST(Rows, WhereFeaturesLie) {
  const RowLayout last = layout({2, 3, 5}, "-1"), first = layout({2, 3, 5}, "0"), middle = layout({2, 3, 5}, "1", true);
  EXPECT_EQ(sizes(last), (std::vector<int64_t>{6, 5, 1}));
  EXPECT_EQ(sizes(first), (std::vector<int64_t>{1, 2, 15}));
  EXPECT_EQ(sizes(middle), (std::vector<int64_t>{5, 3, 2}));
  EXPECT_EQ(middle.row_shape, (std::vector<int64_t>{2, 5}));
  EXPECT_THROW(layout({}, "0"), BadInput);
  EXPECT_THROW(layout({2}, "1"), BadInput);
}

// Every row once, in order, and never more than some 16 MB at a time unless a single row has more.
TEST(Rows, PiecesCoverAllRows) {
  for (const auto& [shape, axis] : {std::pair{std::vector<int64_t>{100000, 768}, "-1"},
                                    {{100000, 768}, "0"},
                                    {{7, 3000, 701}, "1"},
                                    {{1000000, 2, 2}, "1"},
                                    {{3, 50000000}, "1"},
                                    {{3, 50000000}, "0"},
                                    {{0, 4}, "1"},
                                    {{4, 0}, "0"},
                                    {{1, 1}, "0"}}) {
    const RowLayout rows = layout(shape, axis);
    const Pieces pieces(rows, 4);
    int64_t done = 0, calls = 0;
    for (Piece piece = pieces.after(0); piece.rows > 0; piece = pieces.after(done)) {
      EXPECT_EQ(piece.first, done);
      EXPECT_TRUE(piece.rows == 1 || piece.rows * rows.d * 4 <= int64_t{16} << 20);
      if (pieces.gathered()) {
        EXPECT_EQ(piece.first / rows.inner, (piece.first + piece.rows - 1) / rows.inner);
      } else {
        EXPECT_EQ(piece.first % rows.inner, 0);
        EXPECT_EQ(piece.rows % rows.inner, 0);
      }
      done += piece.rows;
      ++calls;
    }
    EXPECT_EQ(done, rows.rows());
    EXPECT_LE(calls, 1 + rows.rows() * rows.d * 4 / (1 << 20));
  }
}

TEST(Rows, SizesOfMemory) {
  EXPECT_EQ(parse_memory("200M"), int64_t{200} << 20);
  EXPECT_EQ(parse_memory("4G"), int64_t{4} << 30);
  for (const char* text : {"200MB", "200MiB", "200m", "200mb", "204800K", "204800k", "209715200", "0.1953125G"})
    EXPECT_EQ(parse_memory(text), int64_t{200} << 20) << text;
  EXPECT_EQ(parse_memory("1.5G"), int64_t{3} << 29);
  EXPECT_EQ(parse_memory("1T"), int64_t{1} << 40);
  for (const char* text : {"", "M", "-1M", "1.5.5G", "4X", "200iB", "200 M", "1e9", "0", "1", "1k", "1.5M", "115M", "99999999999999G"})
    EXPECT_THROW(parse_memory(text), BadInput) << text;
}

TEST(Rows, SizesOfMemoryThatMakeNoSenseAreNamed) {
  const auto message = [](const char* text) -> std::string {
    try {
      parse_memory(text);
    } catch (const BadInput& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message("1"), "--memory: '1' is too little; expected one such as 200M or 4G, from 116M to 1024T");
  EXPECT_EQ(message("1e9"), "--memory: '1e9' is no size; expected one such as 200M or 4G, from 116M to 1024T");
}

}  // namespace
}  // namespace truenorm::cli

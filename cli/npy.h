// SPDX-License-Identifier: Apache-2.0
//
// .npy files, read and written in pieces. Versions 1 to 3; float64, float32, float16, and bfloat16 as ml_dtypes stores
// it; either byte order. Elements are handed over in the order of the file.
#ifndef TRUENORM_CLI_NPY_H_
#define TRUENORM_CLI_NPY_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "npy_header.h"

namespace truenorm::cli {

class NpyReader {
 public:
  // Opens, reads the header, and compares the file's size with what the header promises.
  explicit NpyReader(const std::string& path);

  const NpyHeader& header() const { return header_; }
  const std::string& path() const { return path_; }

  // Fills `elements` with the next bytes of the array, in this machine's byte order; whole elements only.
  void read(std::span<std::byte> elements);

  // Everything that has not been read yet.
  std::vector<std::byte> read_rest();

  // Moves to an element.
  void seek(int64_t element);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void read_exactly(std::span<std::byte> bytes, const char* part);

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  NpyHeader header_;
  int64_t data_offset_ = 0;
  int64_t left_ = 0;  // bytes of the array that have not been read yet
};

// Reverses the bytes of every element of `size` bytes.
void swap_bytes(std::span<std::byte> elements, size_t size);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_NPY_H_

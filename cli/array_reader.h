// SPDX-License-Identifier: Apache-2.0
#ifndef TRUENORM_CLI_ARRAY_READER_H_
#define TRUENORM_CLI_ARRAY_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "container.h"

namespace truenorm::cli {

// An array in a file, read in pieces: a .npy file, a member of a .npz file, a tensor of a .safetensors file, or one of
// these through a pipe. Elements come in the order of the file, their bytes in this machine's.
class ArrayReader {
 public:
  // FILE, FILE:NAME, or "-" for the standard input.
  explicit ArrayReader(const std::string& text);

  const ArrayHeader& header() const { return array_.stored.header; }
  const std::string& name() const { return name_; }        // as given
  const std::string& file() const { return place_.file; }  // without the array's name

  // Fills `elements` with what comes next; whole elements only.
  void read(std::span<std::byte> elements);

  // Moves to an element: forwards always, backwards where the bytes allow that.
  void seek(int64_t element);

  // Makes seeks cheap in both directions: what can be read but once is copied to a temporary file first.
  void make_seekable();

  // To be called after the last element: that nothing follows it, and that checksums hold.
  void finish();

 private:
  std::string name_;
  ArrayName place_;
  OpenArray array_;
  int64_t at_ = 0;  // bytes of the array that have been read
};

// Reverses the bytes of every element of `size` bytes.
void swap_bytes(std::span<std::byte> elements, size_t size);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_ARRAY_READER_H_

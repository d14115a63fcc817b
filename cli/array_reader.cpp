// SPDX-License-Identifier: Apache-2.0
#include "array_reader.h"

#include <algorithm>

#include "bad_input.h"

namespace truenorm::cli {

ArrayReader::ArrayReader(const std::string& text)
    : name_(text), place_(split_array_name(text)), array_(open_array(place_)) {}

void ArrayReader::read(std::span<std::byte> elements) {
  const size_t got = array_.bytes->read(elements);
  at_ += static_cast<int64_t>(got);
  if (got != elements.size()) {
    throw BadInput((name_ == "-" ? "the standard input" : name_) + ": ends after " + std::to_string(at_) +
                   " bytes of data; the header promises " + std::to_string(header().bytes()));
  }
  if (header().swapped) swap_bytes(elements, truenorm_dtype_size(header().dtype));
}

void ArrayReader::seek(int64_t element) {
  int64_t to = element * static_cast<int64_t>(truenorm_dtype_size(header().dtype));
  if (array_.bytes->seekable()) {
    array_.bytes->seek(array_.stored.begin + to);
    at_ = to;
    return;
  }
  if (to < at_) throw BadInput(name_ + ": can be read only once, forwards");
  std::vector<std::byte> skipped(size_t{1} << 20);
  while (at_ < to) {
    const auto n = static_cast<size_t>(std::min<int64_t>(to - at_, static_cast<int64_t>(skipped.size())));
    read(std::span(skipped).first(n));
  }
}

void ArrayReader::make_seekable() {
  if (array_.bytes->seekable()) return;
  array_.bytes = spill(*array_.bytes, name_ == "-" ? "the standard input" : name_);
  array_.stored.begin = 0;
  if (*array_.bytes->size() != header().bytes()) {
    throw BadInput((name_ == "-" ? "the standard input" : name_) + ": the header promises " +
                   std::to_string(header().bytes()) + " bytes of data, there are " +
                   std::to_string(*array_.bytes->size()));
  }
}

void ArrayReader::finish() {
  // A file's size has been compared when it was opened.
  if (array_.bytes->seekable()) return;
  std::byte more[1];
  if (array_.bytes->read(more) != 0) {
    throw BadInput((name_ == "-" ? "the standard input" : name_) + ": goes on after the " +
                   std::to_string(header().bytes()) + " bytes of data that the header promises");
  }
  array_.bytes->verify();
}

void swap_bytes(std::span<std::byte> elements, size_t size) {
  for (size_t at = 0; at + size <= elements.size(); at += size) {
    std::reverse(elements.begin() + static_cast<std::ptrdiff_t>(at),
                 elements.begin() + static_cast<std::ptrdiff_t>(at + size));
  }
}

}  // namespace truenorm::cli

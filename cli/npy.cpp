// SPDX-License-Identifier: Apache-2.0
#include "npy.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "bad_input.h"
#include "numbers.h"

namespace truenorm::cli {

NpyReader::NpyReader(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "rb")) {
  if (!file_) throw BadInput(path_ + ": cannot be opened: " + std::strerror(errno));
  struct stat status {};
  if (fstat(fileno(file_.get()), &status) != 0) throw BadInput(path_ + ": " + std::strerror(errno));
  if (S_ISDIR(status.st_mode)) throw BadInput(path_ + ": is a folder; expected a .npy file");
  if (!S_ISREG(status.st_mode)) throw BadInput(path_ + ": is no ordinary file; expected a .npy file");

  std::vector<std::byte> prefix(kNpyShortPrefix);
  const size_t got = std::fread(prefix.data(), 1, prefix.size(), file_.get());
  const size_t whole = npy_prefix_bytes(std::span(prefix).first(got), path_);
  prefix.resize(whole);
  read_exactly(std::span(prefix).subspan(kNpyShortPrefix), "header");
  std::vector<std::byte> dictionary(npy_dictionary_bytes(prefix, path_));
  read_exactly(dictionary, "header");
  header_ = parse_npy_dictionary({reinterpret_cast<const char*>(dictionary.data()), dictionary.size()}, path_);

  data_offset_ = static_cast<int64_t>(whole + dictionary.size());
  left_ = header_.bytes();
  const int64_t there = static_cast<int64_t>(status.st_size) - data_offset_;
  if (there != left_) {
    throw BadInput(path_ + ": the header promises " + std::to_string(left_) + " bytes of data (" +
                   truenorm_dtype_name(header_.dtype) + ", shape " + shape_text(header_.shape) + "), the file has " +
                   std::to_string(there));
  }
}

void NpyReader::read_exactly(std::span<std::byte> bytes, const char* part) {
  if (bytes.empty()) return;
  if (std::fread(bytes.data(), 1, bytes.size(), file_.get()) == bytes.size()) return;
  if (std::ferror(file_.get())) throw BadInput(path_ + ": cannot be read: " + std::strerror(errno));
  throw BadInput(path_ + ": ends inside the .npy " + part);
}

void NpyReader::read(std::span<std::byte> elements) {
  if (static_cast<int64_t>(elements.size()) > left_) throw BadInput(path_ + ": has no more data");
  read_exactly(elements, "data");
  left_ -= static_cast<int64_t>(elements.size());
  if (header_.swapped) swap_bytes(elements, truenorm_dtype_size(header_.dtype));
}

std::vector<std::byte> NpyReader::read_rest() {
  std::vector<std::byte> elements(static_cast<size_t>(left_));
  read(elements);
  return elements;
}

void NpyReader::seek(int64_t element) {
  const int64_t at = element * static_cast<int64_t>(truenorm_dtype_size(header_.dtype));
  if (at < 0 || at > header_.bytes()) throw BadInput(path_ + ": has no element " + std::to_string(element));
  if (fseeko(file_.get(), static_cast<off_t>(data_offset_ + at), SEEK_SET) != 0)
    throw BadInput(path_ + ": " + std::strerror(errno));
  left_ = header_.bytes() - at;
}

void swap_bytes(std::span<std::byte> elements, size_t size) {
  for (size_t at = 0; at + size <= elements.size(); at += size) {
    std::reverse(elements.begin() + static_cast<std::ptrdiff_t>(at),
                 elements.begin() + static_cast<std::ptrdiff_t>(at + size));
  }
}

}  // namespace truenorm::cli

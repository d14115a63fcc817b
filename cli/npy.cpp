// SPDX-License-Identifier: Apache-2.0
#include "npy.h"

#include "bad_input.h"
#include "npy_header.h"
#include "numbers.h"

namespace truenorm::cli {
namespace {

void read_exactly(ByteSource& source, std::span<std::byte> bytes, const std::string& name) {
  if (source.read(bytes) != bytes.size()) throw BadInput(name + ": ends inside the .npy header");
}

}  // namespace

StoredArray read_npy(ByteSource& source, const std::string& name) {
  std::vector<std::byte> prefix(kNpyShortPrefix);
  const size_t got = source.read(prefix);
  const size_t whole = npy_prefix_bytes(std::span(prefix).first(got), name);
  prefix.resize(whole);
  read_exactly(source, std::span(prefix).subspan(kNpyShortPrefix), name);
  std::vector<std::byte> dictionary(npy_dictionary_bytes(prefix, name));
  read_exactly(source, dictionary, name);
  StoredArray array;
  array.header = parse_npy_dictionary({reinterpret_cast<const char*>(dictionary.data()), dictionary.size()}, name);
  array.begin = static_cast<int64_t>(whole + dictionary.size());

  const int64_t promised = array.header.bytes();
  const int64_t there = source.size() ? *source.size() - array.begin : promised;
  if (there != promised) {
    throw BadInput(name + ": the header promises " + std::to_string(promised) + " bytes of data (" +
                   truenorm_dtype_name(array.header.dtype) + ", shape " + shape_text(array.header.shape) +
                   "), the file has " + std::to_string(there));
  }
  return array;
}

}  // namespace truenorm::cli

// SPDX-License-Identifier: Apache-2.0
#include "npy_header.h"

#include <bit>
#include <charconv>

#include "bad_input.h"
#include "numbers.h"

namespace truenorm::cli {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr bool kLittle = std::endian::native == std::endian::little;

constexpr const char* kKeys = "; expected descr, fortran_order and shape";

// For messages: damaged headers may be long.
std::string cut(std::string_view text) {
  constexpr size_t kLongest = 24;
  const size_t end = text.find_last_not_of(" \n");
  text = text.substr(0, end == std::string_view::npos ? 0 : end + 1);
  return text.size() <= kLongest ? std::string(text) : std::string(text.substr(0, kLongest)) + "...";
}

[[noreturn]] void fail(std::string_view file, const std::string& what) {
  throw BadInput(std::string(file) + ": " + what);
}

// A reader for the few Python literals that headers are made of.
class Dictionary {
 public:
  Dictionary(std::string_view text, std::string_view file) : rest_(text), file_(file) {}

  bool next(char c) {
    skip();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void want(char c) {
    if (!next(c)) damaged(std::string("'") + c + "'");
  }

  void comma_or(char end) {
    if (!next(',') && peek() != end) damaged(std::string("',' or '") + end + "'");
  }

  std::string string() {
    skip();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) damaged("a text in quotes");
    const size_t end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos) damaged("the other quote of a text");
    const std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }

  bool boolean() {
    skip();
    for (const std::string_view word : {"True", "False"}) {
      if (rest_.starts_with(word)) {
        rest_.remove_prefix(word.size());
        return word == "True";
      }
    }
    damaged("True or False");
  }

  std::vector<int64_t> tuple() {
    std::vector<int64_t> values;
    want('(');
    while (!next(')')) {
      skip();
      int64_t value = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
      if (error != std::errc() || value < 0) damaged("a size from 0 to " + std::to_string(kMostElements));
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      if (!rest_.empty() && rest_[0] == 'L') rest_.remove_prefix(1);  // written by Python 2
      values.push_back(value);
      comma_or(')');
    }
    return values;
  }

  char peek() {
    skip();
    return rest_.empty() ? '\0' : rest_[0];
  }

  void end() {
    skip();
    if (!rest_.empty()) damaged("its end");
  }

  // Shows where the reader stands.
  [[noreturn]] void damaged(const std::string& expected) const {
    const std::string where = rest_.empty() ? "its end" : "'" + cut(rest_) + "'";
    fail(file_, "the .npy header is damaged at " + where + "; expected " + expected);
  }

 private:
  void skip() {
    const size_t first = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(first == std::string_view::npos ? rest_.size() : first);
  }

  std::string_view rest_;
  std::string_view file_;
};

void read_descr(const std::string& descr, std::string_view file, ArrayHeader& header) {
  const char order = descr.empty() ? '\0' : descr[0];
  const std::string_view kind = std::string_view(descr).substr(descr.empty() ? 0 : 1);
  if (descr == "bfloat16" || kind == "V2") {
    header.dtype = TRUENORM_BFLOAT16;
  } else if (kind == "f8") {
    header.dtype = TRUENORM_FLOAT64;
  } else if (kind == "f4") {
    header.dtype = TRUENORM_FLOAT32;
  } else if (kind == "f2") {
    header.dtype = TRUENORM_FLOAT16;
  } else if (kind.starts_with('O')) {
    fail(file, "holds Python objects ('" + cut(descr) + "'); expected float64, float32, float16 or bfloat16");
  } else {
    fail(file, "holds elements of type '" + cut(descr) + "'; expected float64, float32, float16 or bfloat16");
  }
  if (descr != "bfloat16" && std::string_view("<>=|").find(order) == std::string_view::npos) {
    fail(file, "'" + cut(descr) + "' is no NumPy type; expected one such as '<f4'");
  }
  header.swapped = (order == '>' && kLittle) || (order == '<' && !kLittle && descr != "bfloat16");
}

std::string pack(const std::string& dictionary) {
  // A version 1 header (16-bit length) where it fits, else version 2; spaces and a newline fill it up to a multiple
  // of 64.
  const bool fits = dictionary.size() + kNpyShortPrefix + 64 <= 65535;
  const size_t prefix = fits ? kNpyShortPrefix : kNpyLongPrefix;
  const size_t total = (prefix + dictionary.size() + 1 + 63) / 64 * 64;
  const size_t length = total - prefix;
  std::string header(kMagic);
  header += fits ? '\x01' : '\x02';
  header += '\x00';
  for (size_t i = 0; i < prefix - 8; ++i) header += static_cast<char>(length >> (8 * i) & 0xFF);
  header += dictionary;
  header.append(total - 1 - header.size(), ' ');
  return header + '\n';
}

}  // namespace

size_t npy_prefix_bytes(std::span<const std::byte> start, std::string_view file) {
  const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  if (text.empty()) fail(file, "is empty; expected a .npy file");
  if (!text.starts_with(kMagic.substr(0, text.size())))
    fail(file, "is no .npy file: it does not begin with \\x93NUMPY");
  if (text.size() < kNpyShortPrefix) fail(file, "ends inside the .npy header");
  if (text[6] < 1 || text[6] > 3)
    fail(file, ".npy version " + std::to_string(static_cast<uint8_t>(text[6])) + " is unknown; expected 1, 2 or 3");
  return text[6] == 1 ? kNpyShortPrefix : kNpyLongPrefix;
}

size_t npy_dictionary_bytes(std::span<const std::byte> prefix, std::string_view file) {
  size_t length = 0;
  for (size_t i = 8; i < prefix.size(); ++i) length |= static_cast<size_t>(prefix[i]) << (8 * (i - 8));
  if (length > kNpyLongestHeader) {
    fail(file, "the .npy header says that it has " + std::to_string(length) + " bytes; at most " +
                   std::to_string(kNpyLongestHeader) + " are read");
  }
  return length;
}

ArrayHeader parse_npy_dictionary(std::string_view text, std::string_view file) {
  ArrayHeader header;
  Dictionary dictionary(text, file);
  bool descr = false, order = false, shape = false;
  dictionary.want('{');
  while (!dictionary.next('}')) {
    const std::string key = dictionary.string();
    dictionary.want(':');
    if (key == "descr" && !descr) {
      if (dictionary.peek() == '[')
        fail(file, "holds records of several fields; expected float64, float32, float16 or bfloat16");
      read_descr(dictionary.string(), file, header);
      descr = true;
    } else if (key == "fortran_order" && !order) {
      header.fortran_order = dictionary.boolean();
      order = true;
    } else if (key == "shape" && !shape) {
      header.shape = dictionary.tuple();
      shape = true;
    } else {
      const bool twice = key == "descr" || key == "fortran_order" || key == "shape";
      fail(file, "the .npy header has the key '" + cut(key) + (twice ? "' twice" : "'") + kKeys);
    }
    dictionary.comma_or('}');
  }
  dictionary.end();
  for (const auto& [there, key] : {std::pair{descr, "descr"}, {order, "fortran_order"}, {shape, "shape"}}) {
    if (!there) fail(file, std::string("the .npy header has no '") + key + "'" + kKeys);
  }

  int64_t product = 1;
  for (const int64_t size : header.shape) {
    if (size == 0) continue;  // the other sizes must make sense all the same
    if (product > kMostElements / size)
      fail(file, "the shape " + shape_text(header.shape) + " is too large" + kExpectedElements);
    product *= size;
  }
  return header;
}

std::string npy_header(const ArrayHeader& header) {
  std::string descr = header.swapped == kLittle ? ">" : "<";
  switch (header.dtype) {
    case TRUENORM_FLOAT64:
      descr += "f8";
      break;
    case TRUENORM_FLOAT32:
      descr += "f4";
      break;
    case TRUENORM_FLOAT16:
      descr += "f2";
      break;
    default:
      descr += "V2";
      break;
  }
  return pack("{'descr': '" + descr + "', 'fortran_order': " + (header.fortran_order ? "True" : "False") +
              ", 'shape': " + shape_text(header.shape) + ", }");
}

std::string npy_record_header(std::span<const std::string> fields, std::span<const int64_t> shape, bool fortran_order) {
  std::string descr;
  for (const std::string& field : fields) {
    descr += std::string(descr.empty() ? "" : ", ") + "('" + field + "', '" + (kLittle ? "<f8" : ">f8") + "')";
  }
  return pack("{'descr': [" + descr + "], 'fortran_order': " + (fortran_order ? "True" : "False") +
              ", 'shape': " + shape_text(shape) + ", }");
}

}  // namespace truenorm::cli

// SPDX-License-Identifier: Apache-2.0
#include "safetensors.h"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "bad_input.h"
#include "numbers.h"

namespace truenorm::cli {
namespace {

[[noreturn]] void fail(std::string_view file, const std::string& what) {
  throw BadInput(std::string(file) + ": " + what);
}

// Sizes of the elements of each type that the format knows, in bits.
int64_t bits_of(const std::string& dtype) {
  static constexpr std::pair<std::string_view, int64_t> kTypes[] = {
      {"BOOL", 8}, {"U8", 8},    {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"I16", 16}, {"U16", 16},
      {"F16", 16}, {"BF16", 16}, {"I32", 32}, {"U32", 32},    {"F32", 32},    {"F64", 64},    {"I64", 64}, {"U64", 64}};
  for (const auto& [name, bits] : kTypes) {
    if (name == dtype) return bits;
  }
  return 0;
}

// Takes the JSON in event by event, so that a large header is never held as a tree.
class Events {
 public:
  Events(std::string_view file, std::vector<Tensor>& tensors) : file_(file), tensors_(tensors) {}

  bool start_object(size_t) { return ++depth_ <= 2 || refuse(); }
  bool end_object() {
    if (depth_ == 2 && !metadata_) finish_tensor();
    --depth_;
    return true;
  }
  bool key(std::string& name) {
    if (depth_ == 1) {
      metadata_ = name == "__metadata__";
      if (!names_.insert(name).second) fail(file_, "names the tensor '" + name + "' twice");
      if (!metadata_) tensors_.push_back({name, "", {}, 0, 0});
      parts_ = 0;
    } else if (!metadata_) {
      part_ = name == "dtype" ? kType : name == "shape" ? kShape : name == "data_offsets" ? kOffsets : kNone;
      if (!part_ || (parts_ & part_)) refuse();
      parts_ |= part_;
      numbers_.clear();
    }
    return true;
  }
  bool start_array(size_t) { return (depth_ == 2 && !metadata_ && part_ != kType && !in_array_++) || refuse(); }
  bool end_array() {
    --in_array_;
    if (part_ == kShape) tensors_.back().shape = numbers_;
    if (part_ == kOffsets) {
      if (numbers_.size() != 2) refuse();
      tensors_.back().begin = numbers_[0];
      tensors_.back().end = numbers_[1];
    }
    return true;
  }
  bool string(std::string& text) {
    if (depth_ == 2 && metadata_) return true;
    if (depth_ != 2 || part_ != kType || in_array_) return refuse();
    tensors_.back().dtype = text;
    return true;
  }
  bool number_unsigned(uint64_t value) {
    if (!in_array_ || value > static_cast<uint64_t>(INT64_MAX)) return refuse();
    numbers_.push_back(static_cast<int64_t>(value));
    return true;
  }
  bool number_integer(int64_t) { return refuse(); }
  bool number_float(double, const std::string&) { return refuse(); }
  bool boolean(bool) { return refuse(); }
  bool null() { return refuse(); }
  bool binary(std::vector<uint8_t>&) { return refuse(); }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) {
    fail(file_, "the safetensors header is no JSON: it is wrong at byte " + std::to_string(position));
  }

 private:
  enum : unsigned { kNone = 0, kType = 1, kShape = 2, kOffsets = 4 };

  bool refuse() const {
    const std::string where = tensors_.empty() ? "" : " (at the tensor '" + tensors_.back().name + "')";
    fail(file_, "the safetensors header is damaged: expected dtype, shape and data_offsets of each tensor" + where);
  }
  void finish_tensor() {
    if (parts_ != (kType | kShape | kOffsets)) refuse();
  }

  std::string_view file_;
  std::vector<Tensor>& tensors_;
  std::unordered_set<std::string> names_;
  std::vector<int64_t> numbers_;
  int depth_ = 0, in_array_ = 0;
  bool metadata_ = false;
  unsigned part_ = 0, parts_ = 0;
};

void check(const Tensor& tensor, int64_t data_bytes, std::string_view file) {
  const std::string name = "tensor '" + tensor.name + "'";
  int64_t elements = 1;
  bool empty = false;
  for (const int64_t size : tensor.shape) {
    empty |= size == 0;
    if (size == 0) continue;  // the other sizes must make sense all the same
    if (elements > kMostElements / size)
      fail(file, name + ": the shape " + shape_text(tensor.shape) + " is too large" + kExpectedElements);
    elements *= size;
  }
  if (empty) elements = 0;
  if (tensor.begin > tensor.end || tensor.end > data_bytes) {
    fail(file, name + " is said to lie at bytes " + std::to_string(tensor.begin) + " to " + std::to_string(tensor.end) +
                   " of the data, which has " + std::to_string(data_bytes) + " bytes");
  }
  const int64_t bits = bits_of(tensor.dtype);
  if (bits && tensor.end - tensor.begin != elements * (bits / 8)) {
    fail(file, name + ": " + tensor.dtype + " of shape " + shape_text(tensor.shape) + " needs " +
                   std::to_string(elements * (bits / 8)) + " bytes, the header gives it " +
                   std::to_string(tensor.end - tensor.begin));
  }
}

// As the format has it, the tensors fill the data, one after another in whatever order.
void check_places(const std::vector<Tensor>& tensors, int64_t data_bytes, std::string_view file) {
  std::vector<std::pair<int64_t, int64_t>> places;
  for (const Tensor& tensor : tensors) places.emplace_back(tensor.begin, tensor.end);
  std::sort(places.begin(), places.end());
  places.emplace_back(data_bytes, data_bytes);
  int64_t at = 0;
  for (const auto& [begin, end] : places) {
    if (begin != at)
      fail(file, "the tensors " + std::string(begin > at ? "leave out" : "share") + " bytes " +
                     std::to_string(std::min(at, begin)) + " to " + std::to_string(std::max(at, begin)) +
                     " of the data; expected each byte in one of them");
    at = end;
  }
}

}  // namespace

int64_t safetensors_header_bytes(std::span<const std::byte> prefix, int64_t file_bytes, std::string_view file) {
  if (file_bytes == 0) fail(file, "is empty; expected a .safetensors file");
  if (prefix.size() < kSafetensorsPrefix) fail(file, "ends inside the safetensors header");
  uint64_t length = 0;
  for (size_t i = 0; i < kSafetensorsPrefix; ++i) length |= static_cast<uint64_t>(prefix[i]) << (8 * i);
  if (length > static_cast<uint64_t>(file_bytes - static_cast<int64_t>(kSafetensorsPrefix))) {
    fail(file, "the safetensors header says that it has " + std::to_string(length) + " bytes, the file has " +
                   std::to_string(file_bytes));
  }
  if (length > static_cast<uint64_t>(kSafetensorsLongestHeader)) {
    fail(file, "the safetensors header says that it has " + std::to_string(length) + " bytes; at most " +
                   std::to_string(kSafetensorsLongestHeader) + " are read");
  }
  return static_cast<int64_t>(length);
}

std::vector<Tensor> parse_safetensors(std::string_view json, int64_t data_bytes, std::string_view file) {
  std::vector<Tensor> tensors;
  Events events(file, tensors);
  // Anything but an object at the top is refused by the events themselves, an empty text by the parser.
  nlohmann::json::sax_parse(json.begin(), json.end(), &events);
  for (const Tensor& tensor : tensors) check(tensor, data_bytes, file);
  if (!tensors.empty()) check_places(tensors, data_bytes, file);
  return tensors;
}

ArrayHeader array_header(const Tensor& tensor, std::string_view file) {
  ArrayHeader header;
  header.shape = tensor.shape;
  header.swapped = std::endian::native != std::endian::little;
  static constexpr std::pair<std::string_view, truenorm_dtype> kTypes[] = {
      {"F64", TRUENORM_FLOAT64}, {"F32", TRUENORM_FLOAT32}, {"F16", TRUENORM_FLOAT16}, {"BF16", TRUENORM_BFLOAT16}};
  for (const auto& [name, dtype] : kTypes) {
    if (name != tensor.dtype) continue;
    header.dtype = dtype;
    return header;
  }
  fail(file,
       "tensor '" + tensor.name + "' holds elements of type " + tensor.dtype + "; expected F64, F32, F16 or BF16");
}

}  // namespace truenorm::cli

#include "cell.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <stdexcept>
#include <utility>

namespace bench {
namespace {

constexpr struct {
  truenorm_dtype dtype;
  const char* name;
  size_t size;
} kTypes[] = {{TRUENORM_FLOAT32, "float32", 4},
              {TRUENORM_FLOAT64, "float64", 8},
              {TRUENORM_FLOAT16, "float16", 2},
              {TRUENORM_BFLOAT16, "bfloat16", 2}};

truenorm_dtype dtype_of(const std::string& name) {
  for (const auto& type : kTypes)
    if (name == type.name) return type.dtype;
  throw std::invalid_argument("dtype is \"" + name + "\"; expected float32, float64, float16 or bfloat16");
}

}  // namespace

size_t size_of(truenorm_dtype dtype) {
  for (const auto& type : kTypes)
    if (dtype == type.dtype) return type.size;
  return 0;
}

const char* name_of(truenorm_dtype dtype) {
  for (const auto& type : kTypes)
    if (dtype == type.dtype) return type.name;
  return "unknown";
}

Cell cell_of(const nlohmann::json& json) {
  return {json.at("direction"),           json.at("variant"), dtype_of(json.at("dtype")),
          dtype_of(json.at("parameters")), json.at("rows"),    json.at("d"),
          json.at("base_rows"),            json.at("eps"),     json.at("threads")};
}

Buffer::Buffer(size_t bytes) : bytes_(bytes) {
  constexpr size_t kLargePage = size_t{2} << 20;
  const size_t alignment = bytes >= 2 * kLargePage ? kLargePage : 64;
  data_ = std::aligned_alloc(alignment, (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment);
  if (!data_) throw std::bad_alloc();
#if defined(__linux__)
  if (alignment == kLargePage) madvise(data_, bytes, MADV_HUGEPAGE);
#endif
  std::memset(data_, 0, bytes);
}

Buffer::~Buffer() { std::free(data_); }

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void Buffer::fill_from(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  file.read(static_cast<char*>(data_), static_cast<std::streamsize>(bytes_));
  const size_t got = static_cast<size_t>(file.gcount());
  if (got == 0 && bytes_ > 0) throw std::runtime_error("cannot read " + path);
  for (size_t at = got; at < bytes_; at += got)
    std::memcpy(static_cast<char*>(data_) + at, data_, std::min(got, bytes_ - at));
}

Inputs::Inputs(const Cell& cell, const std::string& folder)
    : x(static_cast<size_t>(cell.elements()) * size_of(cell.dtype)),
      dy(cell.forward() ? 0 : x.bytes()),
      gamma(static_cast<size_t>(cell.d) * size_of(cell.parameters)),
      beta(gamma.bytes()) {
  x.fill_from(folder + "/x");
  if (!cell.forward()) dy.fill_from(folder + "/dy");
  gamma.fill_from(folder + "/gamma");
  beta.fill_from(folder + "/beta");
}

}  // namespace bench

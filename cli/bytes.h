// SPDX-License-Identifier: Apache-2.0
#ifndef TRUENORM_CLI_BYTES_H_
#define TRUENORM_CLI_BYTES_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace truenorm::cli {

// Where the bytes lie that a command works on: in memory or, where that would take too much of it, in temporary files
// that are mapped.
enum class Place { kMemory, kFile };

// Mapped pages count as memory of the process until it says that it can do without: all those of all Bytes.
void forget_mapped();

class Bytes {
 public:
  explicit Bytes(Place place = Place::kMemory) : place_(place) {}
  Bytes(std::vector<std::byte> bytes) : memory_(std::move(bytes)), size_(memory_.size()) {}

  // What was in them is lost. BadInput where there is no room.
  void resize(size_t size);

  std::byte* data() { return mapping_ ? mapped() : memory_.data(); }
  const std::byte* data() const { return mapping_ ? mapped() : memory_.data(); }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  operator std::span<std::byte>() { return {data(), size_}; }
  operator std::span<const std::byte>() const { return {data(), size_}; }

  // Calls each(part, offset) for all bytes in order, some megabytes at a time, of which none stay in memory unless all
  // do.
  template <typename Each>
  void in_parts(const Each& each) {
    const std::span<std::byte> all = *this;
    for (size_t at = 0; at < size_; at += kPart) {
      each(all.subspan(at, std::min(kPart, size_ - at)), at);
      if (place_ == Place::kFile) forget_mapped();
    }
  }

 private:
  static constexpr size_t kPart = size_t{4} << 20;  // whole elements of every type
  class Mapping;
  std::byte* mapped() const;

  Place place_ = Place::kMemory;
  std::vector<std::byte> memory_;
  std::shared_ptr<Mapping> mapping_;
  size_t size_ = 0;
};

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_BYTES_H_

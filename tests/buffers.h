// SPDX-License-Identifier: Apache-2.0
// Memory in the places where kernels go wrong: right before an unmapped page, right after one, one element off every
// alignment; with guard words wherever memory is left over.
#ifndef TRUENORM_TESTS_BUFFERS_H_
#define TRUENORM_TESTS_BUFFERS_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "elements.h"

namespace truenorm::test {

enum class Placement {
  before_unmapped,  // the last element ends where the mapping ends
  after_unmapped,   // the first element starts where the mapping starts
  misaligned,       // one element past a page's start, so aligned to nothing but the element
};
inline constexpr int kPlacements = 3;

class Buffer {
 public:
  Buffer() = default;
  Buffer(truenorm_dtype dtype, int64_t count, Placement placement) : dtype_(dtype), count_(count) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t element = static_cast<size_t>(format_of(dtype).bytes);
    const size_t bytes = static_cast<size_t>(count) * element;
    const size_t inside = (bytes + element + page) / page * page;  // at least one element more than asked for
    mapped_bytes_ = inside + 2 * page;
    void* mapped = mmap(nullptr, mapped_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) fail("mmap");
    mapped_ = static_cast<unsigned char*>(mapped);
    begin_ = mapped_ + page;
    end_ = begin_ + inside;
    if (mprotect(begin_, inside, PROT_READ | PROT_WRITE) != 0) fail("mprotect");
    data_ = placement == Placement::before_unmapped  ? end_ - bytes
            : placement == Placement::after_unmapped ? begin_
                                                     : begin_ + element;
    std::memset(begin_, kGuard, inside);
  }
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (mapped_ != nullptr) munmap(mapped_, mapped_bytes_);
  }

  void* data() { return data_; }
  const void* data() const { return data_; }
  unsigned char* bytes() { return data_; }
  const unsigned char* bytes() const { return data_; }
  int64_t count() const { return count_; }
  size_t size_bytes() const { return static_cast<size_t>(count_) * static_cast<size_t>(format_of(dtype_).bytes); }
  truenorm_dtype dtype() const { return dtype_; }
  explicit operator bool() const { return mapped_ != nullptr; }

  double operator[](int64_t i) const { return load(dtype_, data_, i); }
  void set(int64_t i, double value) { store(dtype_, data_, i, value); }
  uint64_t bits(int64_t i) const { return bits_at(dtype_, data_, i); }

  // A pattern that no kernel would write by chance and that is a NaN in no type, for "outputs untouched".
  void fill_pattern() { std::memset(data_, kPattern, size_bytes()); }
  bool has_pattern() const {
    for (size_t i = 0; i < size_bytes(); ++i) {
      if (data_[i] != kPattern) return false;
    }
    return true;
  }

  // True when every byte of the mapping outside the elements is as it was made. Only what lies near the elements is
  // looked at: a stray store of a vector reaches no further.
  bool guards_intact() const {
    const unsigned char* low = data_ - begin_ > kReach ? data_ - kReach : begin_;
    const unsigned char* top = data_ + size_bytes();
    const unsigned char* high = end_ - top > kReach ? top + kReach : end_;
    for (const unsigned char* p = low; p < data_; ++p) {
      if (*p != kGuard) return false;
    }
    for (const unsigned char* p = top; p < high; ++p) {
      if (*p != kGuard) return false;
    }
    return true;
  }

  void read_only() { mprotect(begin_, static_cast<size_t>(end_ - begin_), PROT_READ); }
  void writable() { mprotect(begin_, static_cast<size_t>(end_ - begin_), PROT_READ | PROT_WRITE); }

 private:
  static constexpr unsigned char kGuard = 0xFF;  // a NaN in every type: a stray read shows too
  static constexpr unsigned char kPattern = 0x5A;
  static constexpr ptrdiff_t kReach = 512;

  [[noreturn]] static void fail(const char* what) {
    std::perror(what);
    std::abort();
  }
  void swap(Buffer& other) noexcept {
    std::swap(dtype_, other.dtype_);
    std::swap(count_, other.count_);
    std::swap(mapped_, other.mapped_);
    std::swap(mapped_bytes_, other.mapped_bytes_);
    std::swap(begin_, other.begin_);
    std::swap(end_, other.end_);
    std::swap(data_, other.data_);
  }

  truenorm_dtype dtype_ = TRUENORM_FLOAT32;
  int64_t count_ = 0;
  unsigned char* mapped_ = nullptr;
  size_t mapped_bytes_ = 0;
  unsigned char* begin_ = nullptr;
  unsigned char* end_ = nullptr;
  unsigned char* data_ = nullptr;
};

}  // namespace truenorm::test

#endif  // TRUENORM_TESTS_BUFFERS_H_

// SPDX-License-Identifier: Apache-2.0
#include "bytes.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "bad_input.h"
#include "byte_source.h"
#include "numbers.h"

namespace truenorm::cli {
namespace {

// All that are mapped now. Commands have one thread; the library's own do not come here.
std::vector<std::span<std::byte>>& mappings() {
  static std::vector<std::span<std::byte>> all;
  return all;
}

}  // namespace

// A file without a name, as large as it will ever be: it cannot shrink, and the disk cannot be full later.
class Bytes::Mapping {
 public:
  explicit Mapping(size_t size) : file_(open_temporary("a row as long as this")) {
    const int error = posix_fallocate(file_.number(), 0, static_cast<off_t>(size));
    if (error) fail(size, error);
    void* const start = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file_.number(), 0);
    if (start == MAP_FAILED) fail(size, errno);
    bytes_ = {static_cast<std::byte*>(start), size};
    mappings().push_back(bytes_);
  }
  ~Mapping() {
    std::erase_if(mappings(), [this](const auto& each) { return each.data() == bytes_.data(); });
    munmap(bytes_.data(), bytes_.size());
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  [[noreturn]] static void fail(size_t size, int error) {
    throw BadInput("a row as long as this needs a temporary file of " + grouped(static_cast<int64_t>(size >> 20) + 1) + "M in " +
                   temporary_folder() + " (TMPDIR chooses another folder; --memory allows more memory): " + std::strerror(error));
  }

  Descriptor file_;
  std::span<std::byte> bytes_;
};

std::byte* Bytes::mapped() const { return mapping_->bytes().data(); }

void Bytes::resize(size_t size) {
  size_ = size;
  if (place_ == Place::kMemory || size == 0) return memory_.resize(size);
  if (mapping_ && mapping_->bytes().size() >= size) return;
  mapping_.reset();
  mapping_ = std::make_shared<Mapping>(size);
}

void forget_mapped() {
  for (const std::span<std::byte> each : mappings()) madvise(each.data(), each.size(), MADV_DONTNEED);
}

}  // namespace truenorm::cli

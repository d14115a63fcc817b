// SPDX-License-Identifier: Apache-2.0
#include "file_bytes.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace truenorm::cli {
namespace {

constexpr size_t kLargestWrite = size_t{64} << 20;

template <typename Write>
bool write_pieces(std::span<const std::byte> bytes, const Write& write) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = write(bytes.data() + done, std::min(bytes.size() - done, kLargestWrite), done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

}  // namespace

bool write_all(int descriptor, std::span<const std::byte> bytes) {
  return write_pieces(bytes, [&](const std::byte* data, size_t n, size_t) { return ::write(descriptor, data, n); });
}

bool write_all_at(int descriptor, std::span<const std::byte> bytes, int64_t offset) {
  return write_pieces(bytes, [&](const std::byte* data, size_t n, size_t done) {
    return pwrite(descriptor, data, n, static_cast<off_t>(offset + static_cast<int64_t>(done)));
  });
}

}  // namespace truenorm::cli

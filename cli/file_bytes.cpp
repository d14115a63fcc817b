// SPDX-License-Identifier: Apache-2.0
#include "file_bytes.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

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

void keep_standard_descriptors() {
  // The lowest number that is free is what open() gives. Opened the wrong way round: the use of it is an error.
  for (const auto& [number, mode] :
       {std::pair{STDIN_FILENO, O_WRONLY}, {STDOUT_FILENO, O_RDONLY}, {STDERR_FILENO, O_WRONLY}}) {
    if (fcntl(number, F_GETFD) < 0 && open("/dev/null", mode) < 0) return;
  }
}

}  // namespace truenorm::cli

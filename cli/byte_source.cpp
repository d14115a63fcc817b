// SPDX-License-Identifier: Apache-2.0
#include "byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "bad_input.h"
#include "file_bytes.h"

namespace truenorm::cli {
namespace {

// One system call moves at most this much; Linux itself stops at 2 GiB.
constexpr size_t kLargestRead = size_t{64} << 20;

}  // namespace

Descriptor::~Descriptor() {
  if (number_ > STDERR_FILENO) close(number_);
}

size_t FileSource::read(std::span<std::byte> bytes) {
  const int64_t left = std::max<int64_t>(0, bytes_ - at_);
  const size_t wanted = static_cast<size_t>(std::min<int64_t>(left, static_cast<int64_t>(bytes.size())));
  size_t got = 0;
  while (got < wanted) {
    const ssize_t n = pread(file_->number(), bytes.data() + got, std::min(wanted - got, kLargestRead),
                            static_cast<off_t>(begin_ + at_));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw BadInput(name_ + ": cannot be read: " + std::strerror(errno));
    if (n == 0) {
      throw BadInput(name_ + ": has shrunk while it was read: it ends at byte " + std::to_string(begin_ + at_) +
                     ", expected " + std::to_string(begin_ + bytes_) + " bytes");
    }
    got += static_cast<size_t>(n);
    at_ += n;
  }
  return got;
}

size_t PipeSource::read(std::span<std::byte> bytes) {
  size_t got = std::min(again_.size(), bytes.size());
  std::copy_n(again_.begin(), got, bytes.begin());
  again_.erase(again_.begin(), again_.begin() + static_cast<std::ptrdiff_t>(got));
  while (got < bytes.size()) {
    const ssize_t n = ::read(file_.number(), bytes.data() + got, std::min(bytes.size() - got, kLargestRead));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw BadInput(name_ + ": cannot be read: " + (errno == EBADF ? "it is closed" : std::strerror(errno)));
    if (n == 0) break;
    got += static_cast<size_t>(n);
  }
  return got;
}

void PipeSource::unread(std::span<const std::byte> bytes) { again_.insert(again_.begin(), bytes.begin(), bytes.end()); }

std::unique_ptr<ByteSource> open_bytes(const std::string& path) {
  const bool standard = path == "-";
  const std::string name = standard ? "the standard input" : path;
  Descriptor file(standard ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number() < 0) throw BadInput(name + ": cannot be opened: " + std::strerror(errno));
  struct stat status {};
  if (fstat(file.number(), &status) != 0) throw BadInput(name + ": cannot be read: " + std::strerror(errno));
  if (S_ISDIR(status.st_mode)) throw BadInput(name + ": is a folder; expected a file");
  if (isatty(file.number())) throw BadInput(name + ": is a terminal; expected a file or a pipe");
  if (!S_ISREG(status.st_mode)) return std::make_unique<PipeSource>(std::move(file), name);
  const off_t begin = standard ? std::max<off_t>(0, lseek(file.number(), 0, SEEK_CUR)) : 0;
  const auto bytes = static_cast<int64_t>(std::max<off_t>(0, status.st_size - begin));
  return std::make_unique<FileSource>(std::make_shared<const Descriptor>(std::move(file)), name,
                                      static_cast<int64_t>(begin), bytes);
}

std::string temporary_folder() {
  const char* chosen = std::getenv("TMPDIR");
  if (chosen && *chosen) return chosen;
  return access("/var/tmp", W_OK) == 0 ? "/var/tmp" : "/tmp";
}

Descriptor open_temporary(const std::string& what) {
  const std::string folder = temporary_folder();
  int number = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (number < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    std::string name = folder + "/truenorm.XXXXXX";
    number = mkstemp(name.data());
    if (number >= 0) unlink(name.c_str());
  }
  if (number < 0) {
    throw BadInput(what + " needs a temporary file in " + folder +
                   " (TMPDIR chooses another folder): " + std::strerror(errno));
  }
  return Descriptor(number);
}

std::unique_ptr<FileSource> spill(ByteSource& source, const std::string& name) {
  Descriptor file = open_temporary(name);
  std::vector<std::byte> buffer(size_t{1} << 20);
  int64_t bytes = 0;
  for (size_t n = 0; (n = source.read(buffer)) > 0;) {
    if (!write_all(file.number(), std::span(buffer).first(n))) {
      throw BadInput(name + " needs a temporary file in " + temporary_folder() +
                     " (TMPDIR chooses another folder), which cannot be written after " + std::to_string(bytes) +
                     " bytes: " + std::strerror(errno));
    }
    bytes += static_cast<int64_t>(n);
  }
  source.verify();
  return std::make_unique<FileSource>(std::make_shared<const Descriptor>(std::move(file)), name, 0, bytes);
}

}  // namespace truenorm::cli

// SPDX-License-Identifier: Apache-2.0
#include "output_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "bad_input.h"

namespace truenorm::cli {
namespace {

// mkstemp makes files that only their owner may read; an output gets what the umask allows, as any new file does.
mode_t new_file_mode() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

}  // namespace

OutputFile::OutputFile(const std::string& path) : path_(path) {
  struct stat status {};
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    throw BadInput(path_ + ": cannot be written: it is no ordinary file");
  }
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  temporary_ = folder + "." + name + ".XXXXXX";
  const int descriptor = mkstemp(temporary_.data());
  if (descriptor < 0) {
    temporary_.clear();
    fail("cannot be written");
  }
  fchmod(descriptor, new_file_mode());
  file_ = fdopen(descriptor, "wb");
  if (!file_) {
    close(descriptor);
    fail("cannot be written");
  }
}

OutputFile::~OutputFile() { discard(); }

void OutputFile::write(std::span<const std::byte> bytes) {
  if (!bytes.empty() && std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail("cannot be written");
}

void OutputFile::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void OutputFile::commit() {
  // Data before the name: after a power cut there is the old file or the whole new one.
  if (std::fflush(file_) != 0 || fsync(fileno(file_)) != 0) fail("cannot be written");
  const int closed = std::fclose(file_);
  file_ = nullptr;
  if (closed != 0) fail("cannot be written");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot be written");
  temporary_.clear();
}

void OutputFile::fail(const char* what) {
  const int error = errno;
  discard();
  throw BadInput(path_ + ": " + what + ": " + std::strerror(error));
}

void OutputFile::discard() {
  if (file_) std::fclose(file_);
  file_ = nullptr;
  if (!temporary_.empty()) unlink(temporary_.c_str());
  temporary_.clear();
}

void refuse_same_file(const std::string& output, const std::string& input) {
  struct stat a {
  }, b{};
  if (stat(output.c_str(), &a) == 0 && stat(input.c_str(), &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino) {
    throw BadInput(output + ": is an input as well; give the output another name");
  }
}

}  // namespace truenorm::cli

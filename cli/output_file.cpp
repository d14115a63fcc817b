// SPDX-License-Identifier: Apache-2.0
#include "output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>

#include "bad_input.h"
#include "file_bytes.h"

namespace truenorm::cli {
namespace {

namespace fs = std::filesystem;

// What a chain of symbolic links ends in, whether it is there or not.
fs::path behind_links(fs::path path) {
  std::error_code error;
  constexpr int kMostLinks = 40;  // as the system has it
  for (int i = 0; i < kMostLinks && fs::is_symlink(path, error); ++i)
    path = path.parent_path() / fs::read_symlink(path, error);
  return path;
}

std::string real_path(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(fs::absolute(behind_links(path), error), error);
  return error ? path : real.string();
}

// "-" is the standard stream.
bool status_of(const std::string& path, int standard, struct stat& status) {
  return (path == "-" ? fstat(standard, &status) : stat(path.c_str(), &status)) == 0;
}

// Why a file cannot be written, in words.
std::string reason(int error, const std::string& path) {
  if (error == EBADF) return "it is closed";
  const size_t name = fs::path(path).filename().string().size();
  if (error == ENAMETOOLONG && name > NAME_MAX)
    return "its name has " + std::to_string(name) + " bytes; expected at most " + std::to_string(NAME_MAX);
  if (error == ENAMETOOLONG && path.size() >= PATH_MAX)
    return "its path has " + std::to_string(path.size()) + " bytes; expected fewer than " + std::to_string(PATH_MAX);
  return std::strerror(error);
}

}  // namespace

OutputFile::OutputFile(const std::string& path, Access access, Temporary temporary) : path_(path), shown_(path) {
  struct stat status {};
  const bool exists = path != "-" && stat(path.c_str(), &status) == 0;
  // What no file can have is said before anything is calculated.
  if (path != "-" && !exists && errno != ENOENT) fail();
  if (path == "-") {
    shown_ = "the standard output";
    if (isatty(STDOUT_FILENO))
      throw BadInput("the standard output is a terminal; expected a file or a pipe for an array");
    stream_ = Descriptor(STDOUT_FILENO);
  } else if (exists && S_ISDIR(status.st_mode)) {
    throw BadInput(path + ": cannot be written: it is a folder");
  } else if (exists && !S_ISREG(status.st_mode)) {
    stream_ = Descriptor(open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (stream_.number() < 0) fail();
  }
  is_stream_ = stream_.number() >= 0;
  if (is_stream_) {
    if (access == Access::kAnywhere) file_ = open_temporary(shown_);
    return;
  }
  if (exists && ::access(path.c_str(), W_OK) != 0) fail();
  path_ = behind_links(path).string();
  const size_t slash = path_.rfind('/');
  if (slash != std::string::npos) folder_ = path_.substr(0, slash + 1);
  open_unnamed(temporary == Temporary::kNamed);
  // What replaces a file may be read by the same people as that file.
  if (exists && fchmod(file_.number(), status.st_mode & 07777) != 0) fail();
}

// Without a name even KILL leaves nothing behind; not every file system can do that.
void OutputFile::open_unnamed(bool named) {
  const bool needs_name = named || access("/proc/self/fd", F_OK) != 0;  // by which it gets one in the end
  int number = needs_name ? -1 : open(folder_.empty() ? "." : folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  if (number < 0 && (needs_name || errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    do {
      removed_by_signal_.reset();
      temporary_ = give_temporary_name();
      removed_by_signal_.emplace(temporary_);
      number = open(temporary_.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0666);
    } while (number < 0 && errno == EEXIST);
    if (number < 0) temporary_.clear();
  }
  if (number < 0) fail();
  file_ = Descriptor(number);
}

std::string OutputFile::give_temporary_name() {
  static int count = 0;
  return folder_ + ".truenorm-" + std::to_string(getpid()) + "-" + std::to_string(++count);
}

OutputFile::~OutputFile() { discard(); }

void OutputFile::write(std::span<const std::byte> bytes) {
  const int to = file_.number() >= 0 ? file_.number() : stream_.number();
  if (!write_all(to, bytes)) fail();
  written_ += static_cast<int64_t>(bytes.size());
}

void OutputFile::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void OutputFile::write_at(int64_t offset, std::span<const std::byte> bytes) {
  if (!write_all_at(file_.number(), bytes, offset)) fail();
}

void OutputFile::prepare() {
  if (is_stream_) {
    if (file_.number() < 0) return;
    std::byte buffer[1 << 16];
    for (off_t at = 0;;) {
      const ssize_t n = pread(file_.number(), buffer, sizeof(buffer), at);
      if (n < 0 || !write_all(stream_.number(), std::span(buffer).first(static_cast<size_t>(n)))) fail();
      if (n == 0) return;
      at += n;
    }
  }
  // Data before the name: after a power cut there is the old file or the whole new one. Some file systems have no
  // fsync.
  if (fsync(file_.number()) != 0 && errno != EINVAL && errno != ENOTSUP) fail();
  if (!temporary_.empty()) return;
  const std::string unnamed = "/proc/self/fd/" + std::to_string(file_.number());
  int linked = -1;
  do {
    removed_by_signal_.reset();
    temporary_ = give_temporary_name();
    removed_by_signal_.emplace(temporary_);
    linked = linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW);
  } while (linked != 0 && errno == EEXIST);
  if (linked != 0) {
    temporary_.clear();
    fail();
  }
}

void OutputFile::publish() {
  if (is_stream_) return;
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail();
  temporary_.clear();
  removed_by_signal_.reset();
}

void OutputFile::fail() {
  const int error = errno;
  discard();
  if (error == EPIPE) throw ClosedPipe();
  throw BadInput(shown_ + ": cannot be written: " + reason(error, shown_));
}

void OutputFile::discard() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
  temporary_.clear();
  removed_by_signal_.reset();
}

void publish_all(std::initializer_list<OutputFile*> files) {
  for (OutputFile* file : files) {
    if (file) file->prepare();
  }
  for (OutputFile* file : files) {
    if (file) file->publish();
  }
}

void refuse_other_formats(const char* option, const std::string& path) {
  for (const char* ending : {".npz", ".safetensors", ".pt", ".h5", ".bin"}) {
    if (path.ends_with(ending)) throw BadInput(std::string(option) + ": " + path + ": only .npy files are written");
  }
}

void refuse_same_file(const std::string& output, const std::string& input, const char* what) {
  const bool reads = std::string_view(what) == kAnInput;
  struct stat a {
  }, b{};
  const bool both = status_of(output, STDOUT_FILENO, a) && status_of(input, reads ? STDIN_FILENO : STDOUT_FILENO, b);
  // Two pipes or devices such as /dev/null may well be the same, and a filter in a pipe reads one and writes the other.
  const bool same = both ? a.st_dev == b.st_dev && a.st_ino == b.st_ino && S_ISREG(a.st_mode)
                         : output != "-" && input != "-" && real_path(output) == real_path(input);
  if (same)
    throw BadInput((output == "-" ? "the standard output" : output) + ": is " + what +
                   " as well; give the output another name");
}

}  // namespace truenorm::cli

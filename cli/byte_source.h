// SPDX-License-Identifier: Apache-2.0
//
// Where bytes come from: a file or a part of one, a pipe, a member of an archive. Whoever reads arrays sees only this.
#ifndef TRUENORM_CLI_BYTE_SOURCE_H_
#define TRUENORM_CLI_BYTE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace truenorm::cli {

// Every failure is a BadInput that names the file.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // The next bytes; fewer than asked for only at the end.
  virtual size_t read(std::span<std::byte> bytes) = 0;

  // How many there are in all, where that can be known beforehand.
  virtual std::optional<int64_t> size() const { return std::nullopt; }

  // Whether reading can go on anywhere. What cannot is read once, forwards.
  virtual bool seekable() const { return false; }
  virtual void seek(int64_t) {}

  // To be called when everything has been read: whether what was read is what was stored.
  virtual void verify() {}
};

// A descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  int number() const { return number_; }

 private:
  int number_;
};

// `bytes` bytes of an ordinary file from `begin` on. The descriptor may be shared: nothing depends on its position.
class FileSource : public ByteSource {
 public:
  FileSource(std::shared_ptr<const Descriptor> file, std::string name, int64_t begin, int64_t bytes)
      : file_(std::move(file)), name_(std::move(name)), begin_(begin), bytes_(bytes) {}

  size_t read(std::span<std::byte> bytes) override;
  std::optional<int64_t> size() const override { return bytes_; }
  bool seekable() const override { return true; }
  void seek(int64_t at) override { at_ = at; }

  const std::shared_ptr<const Descriptor>& file() const { return file_; }
  int64_t begin() const { return begin_; }

 private:
  std::shared_ptr<const Descriptor> file_;
  std::string name_;
  int64_t begin_, bytes_, at_ = 0;
};

// A pipe, or anything else that gives its bytes once.
class PipeSource : public ByteSource {
 public:
  PipeSource(Descriptor file, std::string name) : file_(std::move(file)), name_(std::move(name)) {}

  size_t read(std::span<std::byte> bytes) override;
  // Puts bytes back, to be read again.
  void unread(std::span<const std::byte> bytes);

 private:
  Descriptor file_;
  std::string name_;
  std::vector<std::byte> again_;
};

// "-" is the standard input. A folder, a terminal and what cannot be opened are refused.
std::unique_ptr<ByteSource> open_bytes(const std::string& path);

// Where they are made: TMPDIR, or else /var/tmp or /tmp.
std::string temporary_folder();
// A file without a name, gone when it is closed or the process ends. `what` says in a message what
// it is needed for.
Descriptor open_temporary(const std::string& what);

// Everything that `source` has left, copied into such a file.
std::unique_ptr<FileSource> spill(ByteSource& source, const std::string& name);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_BYTE_SOURCE_H_

// SPDX-License-Identifier: Apache-2.0
#include "zip_archive.h"

#include <minizip/unzip.h>

#include <algorithm>
#include <exception>

#include "bad_input.h"

namespace truenorm::cli {
namespace {

// A longer name could not be typed either.
constexpr size_t kLongestName = 4096;

// What minizip calls instead of the C library, so that archives in pipes (copied to a file without a name) work too.
struct Stream {
  FileSource source;
  int64_t at = 0;
  bool ended = false;        // a read wanted more than there is
  std::exception_ptr error;  // what a read threw: exceptions do not pass through C
};

voidpf open_stream(voidpf opaque, const void*, int) { return opaque; }
uLong read_stream(voidpf, voidpf stream, void* buffer, uLong size) {
  auto& s = *static_cast<Stream*>(stream);
  try {
    s.source.seek(s.at);
    const size_t got = s.source.read({static_cast<std::byte*>(buffer), static_cast<size_t>(size)});
    s.at += static_cast<int64_t>(got);
    s.ended |= got < size;
    return static_cast<uLong>(got);
  } catch (...) {
    s.error = std::current_exception();
    return 0;
  }
}
uLong write_stream(voidpf, voidpf, const void*, uLong) { return 0; }
ZPOS64_T tell_stream(voidpf, voidpf stream) { return static_cast<ZPOS64_T>(static_cast<Stream*>(stream)->at); }
long seek_stream(voidpf, voidpf stream, ZPOS64_T offset, int origin) {
  auto& s = *static_cast<Stream*>(stream);
  const int64_t size = *s.source.size();
  const int64_t from = origin == ZLIB_FILEFUNC_SEEK_SET ? 0 : origin == ZLIB_FILEFUNC_SEEK_CUR ? s.at : size;
  if (offset > static_cast<ZPOS64_T>(size)) return -1;
  const int64_t at = from + static_cast<int64_t>(offset);
  if (at > size) return -1;
  s.at = at;
  return 0;
}
int close_stream(voidpf, voidpf) { return 0; }
// minizip takes the end of the file within a number for a number, unless it is told of an error.
int error_stream(voidpf, voidpf stream) { return static_cast<Stream*>(stream)->ended; }

class Archive {
 public:
  Archive(const FileSource& file, const std::string& name) : stream_{file, 0, false, nullptr}, name_(name) {
    zlib_filefunc64_def functions = {open_stream, read_stream,  write_stream, tell_stream,
                                     seek_stream, close_stream, error_stream, &stream_};
    zip_ = unzOpen2_64(name.c_str(), &functions);
    if (!zip_) damaged(name_ + ": is a damaged or truncated zip archive: its list of members cannot be read");
  }
  ~Archive() { unzClose(zip_); }
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  // Calls `see` with the name and description of one member after another until it returns true.
  template <typename See>
  bool find(const See& see) {
    // minizip reports the end of the list and a damaged entry alike as a code other than UNZ_OK.
    for (int code = unzGoToFirstFile(zip_); code != UNZ_END_OF_LIST_OF_FILE; code = unzGoToNextFile(zip_)) {
      if (code != UNZ_OK) damaged(name_ + ": is a damaged zip archive");
      unz_file_info64 info{};
      std::vector<char> text(kLongestName + 1, '\0');
      if (unzGetCurrentFileInfo64(zip_, &info, text.data(), kLongestName, nullptr, 0, nullptr, 0) != UNZ_OK)
        damaged(name_ + ": is a damaged zip archive");
      if (see(std::string(text.data()), info)) return true;
    }
    return false;
  }

  [[noreturn]] void damaged(const std::string& message) const {
    if (stream_.error) std::rethrow_exception(stream_.error);
    throw BadInput(message);
  }
  unzFile zip() { return zip_; }

 private:
  Stream stream_;
  std::string name_;
  unzFile zip_ = nullptr;
};

class MemberSource : public ByteSource {
 public:
  MemberSource(const FileSource& file, const std::string& archive, const std::string& member)
      : archive_(file, archive), name_(archive + ":" + member) {
    const bool found = archive_.find([&](const std::string& each, const unz_file_info64& info) {
      info_ = info;
      return each == member;
    });
    if (!found) throw BadInput(archive + ": has no member '" + member + "'");
    if (info_.flag & 1) throw BadInput(name_ + ": is encrypted; expected a member that is not");
    if (info_.compression_method != 0 && info_.compression_method != Z_DEFLATED) {
      throw BadInput(name_ + ": is compressed by method " + std::to_string(info_.compression_method) +
                     "; expected 0 (stored) or 8 (deflated)");
    }
    if (info_.uncompressed_size > static_cast<uint64_t>(INT64_MAX) || unzOpenCurrentFile(archive_.zip()) != UNZ_OK)
      damaged();
  }

  size_t read(std::span<std::byte> bytes) override {
    size_t got = 0;
    while (got < bytes.size()) {
      const auto wanted = static_cast<unsigned>(std::min<size_t>(bytes.size() - got, size_t{1} << 20));
      const int n = unzReadCurrentFile(archive_.zip(), bytes.data() + got, wanted);
      if (n < 0) damaged();
      if (n == 0) break;
      got += static_cast<size_t>(n);
    }
    return got;
  }
  std::optional<int64_t> size() const override { return static_cast<int64_t>(info_.uncompressed_size); }
  void verify() override {
    if (unzCloseCurrentFile(archive_.zip()) == UNZ_CRCERROR)
      throw BadInput(name_ + ": is damaged: its checksum does not match its bytes");
  }

 private:
  [[noreturn]] void damaged() const {
    archive_.damaged(name_ + ": is damaged: it cannot be taken out of the zip archive");
  }

  Archive archive_;
  std::string name_;
  unz_file_info64 info_{};
};

}  // namespace

std::vector<std::string> zip_members(const FileSource& file, const std::string& name) {
  Archive archive(file, name);
  std::vector<std::string> names;
  archive.find([&](const std::string& each, const unz_file_info64&) {
    names.push_back(each);
    return false;
  });
  return names;
}

std::unique_ptr<ByteSource> open_zip_member(const FileSource& file, const std::string& name,
                                            const std::string& member) {
  return std::make_unique<MemberSource>(file, name, member);
}

}  // namespace truenorm::cli

// SPDX-License-Identifier: Apache-2.0
#ifndef TRUENORM_CLI_OUTPUT_FILE_H_
#define TRUENORM_CLI_OUTPUT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "byte_source.h"
#include "signals.h"

namespace truenorm::cli {

// A file that is there whole or not at all: what is written has no name, or a temporary one in the same folder, until
// publish() gives it its own. Without that nothing is left. "-" is the standard output; it and other pipes get what is
// written at once. Every failure is a BadInput that names the file; a closed pipe is ClosedPipe.
class OutputFile {
 public:
  enum class Access { kForwards, kAnywhere };
  // kNamed: a temporary name even where the file system can do without; for tests.
  enum class Temporary { kBest, kNamed };

  explicit OutputFile(const std::string& path, Access access = Access::kForwards,
                      Temporary temporary = Temporary::kBest);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // At the end of what has been written.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  // Anywhere, if opened for that.
  void write_at(int64_t offset, std::span<const std::byte> bytes);

  // prepare() does all that can fail but the naming, so that several outputs appear together: prepare all, publish all.
  void prepare();
  void publish();

  int64_t written() const { return written_; }

 private:
  [[noreturn]] void fail();
  void open_unnamed(bool named);
  std::string give_temporary_name();
  void discard();

  std::string path_;    // where it ends up: behind symbolic links
  std::string shown_;   // as messages name it
  std::string folder_;  // with a '/' at the end, or empty
  std::string temporary_;
  std::optional<RemovedBySignal> removed_by_signal_;
  Descriptor file_;
  Descriptor stream_;  // where file_ is copied to in the end
  bool is_stream_ = false;
  int64_t written_ = 0;
};

// prepare() for all, then publish() for all; null pointers are left out.
void publish_all(std::initializer_list<OutputFile*> files);

// Only .npy files are written: BadInput for a name that promises another format. `option` is what it was given for.
void refuse_other_formats(const char* option, const std::string& path);

// BadInput when the two names are the same file: an input would be replaced, or one output by the other. "-" is what
// the shell has put there.
inline constexpr const char* kAnInput = "an input";
void refuse_same_file(const std::string& output, const std::string& input, const char* what = kAnInput);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_OUTPUT_FILE_H_

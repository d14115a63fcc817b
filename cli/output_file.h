// SPDX-License-Identifier: Apache-2.0
#ifndef TRUENORM_CLI_OUTPUT_FILE_H_
#define TRUENORM_CLI_OUTPUT_FILE_H_

#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

namespace truenorm::cli {

// A file that is there whole or not at all: what is written goes to a temporary file in the same folder, and commit()
// gives it its name. Without commit() nothing is left. Every failure is a BadInput that names the file.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  void commit();

 private:
  [[noreturn]] void fail(const char* what);
  void discard();

  std::string path_;
  std::string temporary_;
  std::FILE* file_ = nullptr;
};

// BadInput when the two names are the same file: an input would be replaced.
void refuse_same_file(const std::string& output, const std::string& input);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_OUTPUT_FILE_H_

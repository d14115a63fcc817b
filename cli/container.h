// SPDX-License-Identifier: Apache-2.0
//
// Files that hold arrays: .npy one, .npz and .safetensors any number, by name. Which one it is, the first bytes tell.
#ifndef TRUENORM_CLI_CONTAINER_H_
#define TRUENORM_CLI_CONTAINER_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "npy.h"

namespace truenorm::cli {

// FILE, or FILE:NAME for one of the arrays in it. The file is what exists: a ':' may be part of its name.
struct ArrayName {
  std::string file;
  std::string member;  // empty: the file's only array
};
ArrayName split_array_name(const std::string& text);

struct OpenArray {
  std::unique_ptr<ByteSource> bytes;
  StoredArray stored;
};
OpenArray open_array(const ArrayName& name);

// The names of the arrays in a .npz or .safetensors file; none for a .npy file or a pipe.
std::vector<std::string> arrays_in(const std::string& file);

// "'a', 'b' and 7 more": for messages.
std::string some_of(const std::vector<std::string>& names);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_CONTAINER_H_

// SPDX-License-Identifier: Apache-2.0
#include "other_format.h"

#include <algorithm>

#include "bad_input.h"

namespace truenorm::cli {
namespace {

using namespace std::string_view_literals;

// Reading them may run whatever code they hold.
constexpr const char* kPickle =
    "holds pickled Python objects, as torch.save and pickle.dump write them, which are not read; expected .npy, .npz or "
    ".safetensors (in Python: safetensors.torch.save_file or numpy.save)";

struct Known {
  std::string_view start;
  const char* message;
};
constexpr Known kKnown[] = {
    {"\x1F\x8B"sv, "is compressed by gzip; expected a file that is not (a pipe can unpack it: zcat FILE | truenorm ... -)"},
    {"\x28\xB5\x2F\xFD"sv, "is compressed by zstd; expected a file that is not (a pipe can unpack it: zstdcat FILE | truenorm ... -)"},
    {"\xFD""7zXZ"sv, "is compressed by xz; expected a file that is not (a pipe can unpack it: xzcat FILE | truenorm ... -)"},
    {"\x89HDF"sv, "is an HDF5 file; expected .npy, .npz or .safetensors (in Python: numpy.save of the data set)"},
    {"GGUF"sv, "is a GGUF file; expected .npy, .npz or .safetensors"},
    {"PAR1"sv, "is a Parquet file; expected .npy, .npz or .safetensors (in Python: numpy.save of the column)"},
};

}  // namespace

void refuse_other_format(std::string_view start, const std::string& file) {
  for (const Known& known : kKnown) {
    if (start.starts_with(known.start)) throw BadInput(file + ": " + known.message);
  }
  // Protocols 2 to 5 say so; the older ones are text that nothing tells from other text.
  if (start.size() >= 2 && start[0] == '\x80' && start[1] >= 2 && start[1] <= 5) throw BadInput(file + ": " + kPickle);
}

void refuse_other_archive(const std::vector<std::string>& members, const std::string& file) {
  const bool pickle = std::any_of(members.begin(), members.end(), [](const std::string& member) {
    return member == "data.pkl" || member.ends_with("/data.pkl");
  });
  if (pickle) throw BadInput(file + ": " + kPickle);
}

}  // namespace truenorm::cli

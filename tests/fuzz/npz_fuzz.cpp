// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "bad_input.h"
#include "memory_source.h"
#include "npy.h"
#include "zip_archive.h"

using namespace truenorm::cli;

namespace {

void read_member(const FileSource& file, const std::string& member) {
  try {
    const auto source = open_zip_member(file, "f.npz", member);
    read_npy(*source, member);
    std::array<std::byte, 4096> buffer;
    for (int i = 0; i < 64 && source->read(buffer) > 0; ++i) {
    }
    source->verify();
  } catch (const BadInput&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto file = memory_source(data, size);
    const auto members = zip_members(*file, "f.npz");
    for (size_t i = 0; i < members.size() && i < 4; ++i) read_member(*file, members[i]);
  } catch (const BadInput&) {
  }
  return 0;
}

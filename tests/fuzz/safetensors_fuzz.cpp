// SPDX-License-Identifier: Apache-2.0
#include "safetensors.h"

#include "bad_input.h"

using namespace truenorm::cli;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    const int64_t header = safetensors_header_bytes(bytes.first(std::min(size, kSafetensorsPrefix)),
                                                    static_cast<int64_t>(size), "f.safetensors");
    const auto json = bytes.subspan(kSafetensorsPrefix, static_cast<size_t>(header));
    const int64_t left = static_cast<int64_t>(size - kSafetensorsPrefix) - header;
    for (const Tensor& tensor :
         parse_safetensors({reinterpret_cast<const char*>(json.data()), json.size()}, left, "f.safetensors")) {
      if (tensor.begin < 0 || tensor.begin > tensor.end || tensor.end > left) __builtin_trap();
      try {
        if (array_header(tensor, "f").bytes() != tensor.end - tensor.begin) __builtin_trap();
      } catch (const BadInput&) {
      }
    }
  } catch (const BadInput&) {
  }
  return 0;
}

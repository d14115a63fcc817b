// Structs that begin with their own size and grow at their end, as callers compiled with other versions pass them.
#pragma once

#include <cstddef>
#include <cstring>

namespace truenorm {

// No version's struct is larger; what says that it is was never set. Nothing beyond is read.
inline constexpr std::size_t kLargestStruct = 4096;

enum class SizedStruct { copied, bad_size, unknown_field };

// Copies `given`, which says of itself that it has `size` bytes, to *ours, whose fields are at their defaults: fields that an
// older caller does not have keep those. A newer caller's fields that are unknown here must be zero. `first` is the size
// that the struct had in its first version.
template <class Struct>
SizedStruct copy_sized(const void* given, std::size_t size, std::size_t first, Struct* ours) {
  if (size < first || size > kLargestStruct) return SizedStruct::bad_size;
  const auto* const bytes = static_cast<const unsigned char*>(given);
  for (std::size_t i = sizeof(Struct); i < size; ++i)
    if (bytes[i] != 0) return SizedStruct::unknown_field;
  if (size < sizeof(Struct))
    std::memcpy(static_cast<void*>(ours), given, size);
  else
    std::memcpy(static_cast<void*>(ours), given, sizeof(Struct));  // a known size: moves in place of a loop
  return SizedStruct::copied;
}

}  // namespace truenorm

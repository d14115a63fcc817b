// How fast memory goes: the yardstick of every figure.
#pragma once

#include <cstddef>

namespace bench {

// out = a, and out = a + b (whole-number addition of 32-bit lanes, so that no bit pattern is slow). Streaming stores go
// past the caches. `bytes` is a multiple of 64, as is every pointer.
void copy(const void* a, void* out, size_t bytes, bool streaming);
void triad(const void* a, const void* b, void* out, size_t bytes, bool streaming);

// The end of the part of `bytes` that task i of `tasks` works on, a multiple of 4096 or the end.
size_t part_end(size_t bytes, size_t i, size_t tasks);

}  // namespace bench

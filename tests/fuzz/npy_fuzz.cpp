// SPDX-License-Identifier: Apache-2.0
#include "npy.h"

#include "bad_input.h"
#include "memory_source.h"
#include "rows.h"

using namespace truenorm::cli;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const StoredArray array = read_npy(*memory_source(data, size), "f.npy");
    // What was accepted is consistent: the file holds what the header promises, and rows can be laid out.
    if (array.begin + array.header.bytes() != static_cast<int64_t>(size)) __builtin_trap();
    const RowLayout layout = row_layout(array.header, "0", "f.npy");
    if (layout.rows() < 0 || layout.d < 0) __builtin_trap();
    Pieces(layout, truenorm_dtype_size(array.header.dtype)).after(0);
  } catch (const BadInput&) {
  }
  return 0;
}

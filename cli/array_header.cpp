// SPDX-License-Identifier: Apache-2.0
#include "array_header.h"

namespace truenorm::cli {

int64_t ArrayHeader::elements() const {
  int64_t product = 1;
  for (const int64_t size : shape) product *= size;
  return product;
}

int64_t ArrayHeader::bytes() const { return elements() * static_cast<int64_t>(truenorm_dtype_size(dtype)); }

}  // namespace truenorm::cli

// SPDX-License-Identifier: Apache-2.0
//
// All that the readers need of the library, so that its kernels need not be compiled for the fuzzer.
#include "truenorm/truenorm.h"

size_t truenorm_dtype_size(truenorm_dtype dtype) {
  return dtype == TRUENORM_FLOAT64 ? 8 : dtype == TRUENORM_FLOAT32 ? 4 : 2;
}
const char* truenorm_dtype_name(truenorm_dtype) { return "type"; }

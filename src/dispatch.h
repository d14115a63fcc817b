// Which instruction set a call uses.
#pragma once

#include "kernels/kernels.h"
#include "truenorm/truenorm.h"

namespace truenorm {

// Sets *level to the best instruction set that this CPU and build have, no better than `cap` (null: TRUENORM_ISA of the
// environment, if set). Fails on an unknown name.
truenorm_status select_isa(const char* cap, int* level);

// The kernels for rows of d features of a valid type. one_type: all operands with rows are of that type.
const TypeKernels& kernels_of(truenorm_dtype type, int level, int64_t d, bool one_type);

// All false below the best level of this CPU, so that tests of all levels see both ways.
Machine machine_at(int level);

}  // namespace truenorm

// The kernels for bfloat16 rows, once per instruction set.
#define TRUENORM_TYPE BFloat16

#include "targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bfloat16.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "hwy/highway.h"
#include "table-inl.h"

#if HWY_ONCE
#include "list_targets.h"
TRUENORM_LIST_TARGETS(kBFloat16Kernels)
#endif

// The kernels for float16 rows, once per instruction set.
#define TRUENORM_TYPE Float16

#include "targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "float16.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "hwy/highway.h"
#include "table-inl.h"

#if HWY_ONCE
#include "list_targets.h"
TRUENORM_LIST_TARGETS(kFloat16Kernels)
#endif

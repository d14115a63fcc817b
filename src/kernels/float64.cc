// The kernels for float64 rows, once per instruction set.
#define TRUENORM_TYPE double

#include "targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "float64.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "hwy/highway.h"
#include "table-inl.h"

#if HWY_ONCE
#include "list_targets.h"
TRUENORM_LIST_TARGETS(kFloat64Kernels)
#endif

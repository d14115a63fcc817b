// The status and message of a failed call.
#pragma once

#include "truenorm/truenorm.h"

namespace truenorm {

// Sets this thread's message, printf style, and returns `status`.
__attribute__((format(printf, 2, 3))) truenorm_status fail(truenorm_status status, const char* format, ...);

}  // namespace truenorm

// Returns from the enclosing function unless the status is TRUENORM_OK.
#define TRUENORM_TRY(expression)                                         \
  do {                                                                   \
    if (const truenorm_status status_ = (expression)) return status_;    \
  } while (false)

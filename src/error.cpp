#include "error.h"

#include <cstdarg>
#include <cstdio>

namespace truenorm {
namespace {
thread_local char message[512] = "";  // a fixed buffer: reporting an error must not need memory
}

truenorm_status fail(truenorm_status status, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(message, sizeof(message), format, arguments);
  va_end(arguments);
  return status;
}

}  // namespace truenorm

extern "C" {

const char* truenorm_last_error(void) { return truenorm::message; }

const char* truenorm_status_name(truenorm_status status) {
  switch (status) {
#define TRUENORM_NAME(name) \
  case name: return #name;
    TRUENORM_NAME(TRUENORM_OK)
    TRUENORM_NAME(TRUENORM_INVALID_SHAPE)
    TRUENORM_NAME(TRUENORM_INVALID_POINTER)
    TRUENORM_NAME(TRUENORM_INVALID_DTYPE)
    TRUENORM_NAME(TRUENORM_UNSUPPORTED_DTYPES)
    TRUENORM_NAME(TRUENORM_INVALID_STRIDE)
    TRUENORM_NAME(TRUENORM_MISALIGNED)
    TRUENORM_NAME(TRUENORM_OVERLAP)
    TRUENORM_NAME(TRUENORM_INVALID_EPS)
    TRUENORM_NAME(TRUENORM_INVALID_THREADS)
    TRUENORM_NAME(TRUENORM_INVALID_OPTIONS)
    TRUENORM_NAME(TRUENORM_INVALID_ISA)
    TRUENORM_NAME(TRUENORM_WORKSPACE_TOO_SMALL)
    TRUENORM_NAME(TRUENORM_OUT_OF_MEMORY)
    TRUENORM_NAME(TRUENORM_NOT_IMPLEMENTED)
#undef TRUENORM_NAME
  }
  return "TRUENORM_UNKNOWN_STATUS";
}

}  // extern "C"

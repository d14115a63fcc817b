// Scratch memory of backward: the caller's, or the call's own.
#pragma once

#include <cstdlib>

#include "error.h"
#include "layer_norm.h"

namespace truenorm {

class Workspace {
 public:
  Workspace() = default;
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ~Workspace() { std::free(owned_); }

  truenorm_status get(const BackwardCall& call, const Options& options, std::size_t needed) {
    if (options.workspace) {
      if (options.workspace_bytes < needed)
        return fail(TRUENORM_WORKSPACE_TOO_SMALL, "options.workspace_bytes is %zu; expected at least %zu", options.workspace_bytes, needed);
      if (reinterpret_cast<uintptr_t>(options.workspace) % 64 != 0)
        return fail(TRUENORM_MISALIGNED, "options.workspace is %p; expected a multiple of 64", options.workspace);
      for (const Operand* operand : {&call.dy, &call.x, &call.gamma, &call.dx, &call.dgamma, &call.dbeta})
        TRUENORM_TRY(check_overlap(call.shape, *operand, "options.workspace", options.workspace, needed));
      data = static_cast<char*>(options.workspace);
    } else if (needed > 0 && needed <= sizeof(small_)) {
      data = small_;
    } else if (needed > 0) {
      data = static_cast<char*>(owned_ = std::aligned_alloc(64, needed));
      if (!data) return fail(TRUENORM_OUT_OF_MEMORY, "no memory for a workspace of %zu bytes", needed);
    }
    return TRUENORM_OK;
  }
  char* data = nullptr;

 private:
  void* owned_ = nullptr;
  alignas(64) char small_[4096];  // malloc costs more than a few rows of this size
};

}  // namespace truenorm

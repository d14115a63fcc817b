// Layer normalization with checked arguments: splits rows over threads and calls the kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "checks.h"
#include "truenorm/truenorm.h"

namespace truenorm {

struct ForwardCall {
  truenorm_shape shape;
  Operand x, gamma, beta, y;
  truenorm_stats stats;
  double eps;
};
void forward(const ForwardCall& call, const Options& options);

struct BackwardCall {
  truenorm_shape shape;
  Operand dy, x, gamma, dx, dgamma, dbeta;
  const void* saved;
  double eps;
};
std::size_t backward_workspace(const BackwardCall& call, const Options& options);
truenorm_status backward(const BackwardCall& call, const Options& options);

// The element `offset` elements into an operand; null when it is absent.
inline const void* at(const Operand& operand, int64_t offset) {
  return operand.data ? static_cast<const char*>(operand.data) + offset * size_of(operand.dtype) : nullptr;
}

inline std::size_t saved_bytes_per_row(truenorm_dtype x) { return x == TRUENORM_FLOAT64 ? 24 : 16; }

}  // namespace truenorm

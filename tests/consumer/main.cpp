// SPDX-License-Identifier: Apache-2.0
// A program that embeds truenorm: normalizes one row and says what came out.
#include <truenorm/truenorm.h>

#include <cmath>
#include <cstdio>

int main() {
  const float x[4] = {3, 1, 5, 7};
  float y[4] = {};
  truenorm_shape shape{};
  shape.d = 4;
  const truenorm_input in{x, nullptr, TRUENORM_FLOAT32}, absent{nullptr, nullptr, TRUENORM_FLOAT32};
  const truenorm_output out{y, nullptr, TRUENORM_FLOAT32};
  const truenorm_status status = truenorm_layer_norm_forward(&shape, in, absent, absent, out, nullptr, 1e-5, nullptr);
  if (status != TRUENORM_OK) {
    std::fprintf(stderr, "%s: %s\n", truenorm_status_name(status), truenorm_last_error());
    return 1;
  }
  std::printf("truenorm %s: %.4f %.4f %.4f %.4f\n", truenorm_version(), y[0], y[1], y[2], y[3]);
  return std::fabs(y[3] - 1.3416f) < 1e-4f ? 0 : 1;
}

/* SPDX-License-Identifier: Apache-2.0
 * The same from plain C99. */
#include <stdio.h>
#include <truenorm/truenorm.h>

int main(void) {
  const double x[2] = {-2, 2};
  double y[2] = {0, 0};
  truenorm_shape shape = {2, 0, {0}};
  truenorm_input in = {x, NULL, TRUENORM_FLOAT64}, absent = {NULL, NULL, TRUENORM_FLOAT64};
  truenorm_output out = {y, NULL, TRUENORM_FLOAT64};
  if (truenorm_layer_norm_forward(&shape, in, absent, absent, out, NULL, 0, NULL) != TRUENORM_OK) {
    fprintf(stderr, "%s\n", truenorm_last_error());
    return 1;
  }
  printf("truenorm %s: %g %g\n", truenorm_version(), y[0], y[1]);
  return y[0] == -1 && y[1] == 1 ? 0 : 1;
}

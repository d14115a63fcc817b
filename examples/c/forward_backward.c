/* Forward that keeps what backward needs (16 bytes a row), then the gradients, in C99. */
#include <stdio.h>
#include <stdlib.h>
#include <truenorm/truenorm.h>

static void check(truenorm_status status) {
  if (status == TRUENORM_OK) return;
  fprintf(stderr, "%s: %s\n", truenorm_status_name(status), truenorm_last_error());
  exit(1);
}

static void print(const char* name, const float* values, int n) {
  printf("%-7s", name);
  for (int i = 0; i < n; ++i) printf("%9.4f", values[i]);
  printf("\n");
}

int main(void) {
  const float x[] = {3, 1, 5, 7}, dy[] = {1, 0, 0, 0}, gamma[] = {2, 2, 2, 2}, beta[] = {1, 1, 1, 1};
  float y[4], dx[4], dgamma[4], dbeta[4];
  double saved[2]; /* truenorm_layer_norm_saved_bytes(&shape, TRUENORM_FLOAT32) */

  const truenorm_shape shape = {.d = 4, .rank = 1, .dims = {1}};
  const truenorm_input x_in = {x, NULL, TRUENORM_FLOAT32}, dy_in = {dy, NULL, TRUENORM_FLOAT32};
  const truenorm_input gamma_in = {gamma, NULL, TRUENORM_FLOAT32}, beta_in = {beta, NULL, TRUENORM_FLOAT32};
  const truenorm_output y_out = {y, NULL, TRUENORM_FLOAT32}, dx_out = {dx, NULL, TRUENORM_FLOAT32};
  const truenorm_output dgamma_out = {dgamma, NULL, TRUENORM_FLOAT32}, dbeta_out = {dbeta, NULL, TRUENORM_FLOAT32};
  const truenorm_stats stats = {.saved = saved};

  check(truenorm_layer_norm_forward(&shape, x_in, gamma_in, beta_in, y_out, &stats, 1e-5, NULL));
  check(truenorm_layer_norm_backward(&shape, dy_in, x_in, gamma_in, saved, 1e-5, dx_out, dgamma_out, dbeta_out, NULL));
  print("y", y, 4);
  print("dx", dx, 4);
  print("dgamma", dgamma, 4);
  print("dbeta", dbeta, 4);

  /* A wrong call touches nothing and says what is wrong. */
  const truenorm_status status = truenorm_layer_norm_forward(&shape, x_in, gamma_in, beta_in, y_out, NULL, -1.0, NULL);
  printf("%s: %s\n", truenorm_status_name(status), truenorm_last_error());
  return 0;
}

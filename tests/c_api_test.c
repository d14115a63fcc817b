/* SPDX-License-Identifier: Apache-2.0
 * The C interface from plain C99: that the header compiles there, the walk-through numbers, backward, an error. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "truenorm/truenorm.h"

static int failures = 0;

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                               \
    }                                                                           \
  } while (0)

static truenorm_input input(const float* data) {
  truenorm_input in;
  in.data = data;
  in.strides = NULL;
  in.dtype = TRUENORM_FLOAT32;
  return in;
}

static truenorm_output output(float* data) {
  truenorm_output out;
  out.data = data;
  out.strides = NULL;
  out.dtype = TRUENORM_FLOAT32;
  return out;
}

/* x = [3, 1, 5, 7]: mean 4, variance 5, normalized -0.4472, -1.3416, 0.4472, 1.3416. */
static void walk_through(void) {
  const float x[4] = {3, 1, 5, 7};
  const float gamma[4] = {2, 2, 2, 2}, beta[4] = {1, 1, 1, 1};
  float y[4];
  double mean, var, rstd, saved[2];
  truenorm_shape shape = {4, 1, {1}};
  truenorm_stats stats;
  truenorm_options options = TRUENORM_OPTIONS_INIT;
  stats.mean = &mean;
  stats.var = &var;
  stats.rstd = &rstd;
  stats.saved = saved;
  options.num_threads = 1;

  CHECK(truenorm_layer_norm_saved_bytes(&shape, TRUENORM_FLOAT32) == sizeof saved);
  CHECK(truenorm_layer_norm_forward(&shape, input(x), input(NULL), input(NULL), output(y), &stats, 1e-5, &options) ==
        TRUENORM_OK);
  CHECK(mean == 4 && var == 5 && fabs(rstd - 1 / sqrt(5.00001)) < 1e-15);
  CHECK(fabs(y[0] + 0.447213) < 1e-6 && fabs(y[1] + 1.341639) < 1e-6 && y[2] == -y[0] && y[3] == -y[1]);

  CHECK(truenorm_layer_norm_forward(&shape, input(x), input(gamma), input(beta), output(y), NULL, 1e-5, NULL) ==
        TRUENORM_OK);
  CHECK(fabs(y[0] - 0.106) < 5e-4 && fabs(y[1] + 1.683) < 5e-4 && fabs(y[2] - 1.894) < 5e-4 &&
        fabs(y[3] - 3.683) < 5e-4);

  {
    const float dy[4] = {1, 2, 3, 5};
    float dx[4], dgamma[4], dbeta[4], sum = 0, along_x = 0;
    int i;
    CHECK(truenorm_layer_norm_backward(&shape, input(dy), input(x), input(gamma), saved, 1e-5, output(dx),
                                       output(dgamma), output(dbeta), NULL) == TRUENORM_OK);
    for (i = 0; i < 4; ++i) {
      sum += dx[i];
      along_x += dx[i] * (x[i] - 4);
      CHECK(dbeta[i] == dy[i]);
      CHECK(fabs(dgamma[i] - dy[i] * (x[i] - 4) / sqrt(5.00001)) < 1e-6);
    }
    /* Shifting x changes nothing, and scaling it almost nothing. */
    CHECK(fabsf(sum) < 1e-6f && fabsf(along_x) < 1e-4f);
  }
}

/* A row in place, and a status with its message. */
static void in_place_and_errors(void) {
  float x[6] = {0, 1, 2, 10, 11, 12};
  truenorm_shape shape = {3, 1, {2}};
  truenorm_shape bad = {-3, 1, {2}};
  CHECK(truenorm_layer_norm_forward(&shape, input(x), input(NULL), input(NULL), output(x), NULL, 0, NULL) ==
        TRUENORM_OK);
  CHECK(x[1] == 0 && x[4] == 0 && x[0] == x[3] && x[2] == -x[0] && fabs(x[2] - sqrt(1.5)) < 1e-6);
  x[0] = 42;
  CHECK(truenorm_layer_norm_forward(&bad, input(x), input(NULL), input(NULL), output(x), NULL, 0, NULL) ==
        TRUENORM_INVALID_SHAPE);
  CHECK(x[0] == 42 && strstr(truenorm_last_error(), "-3") != NULL);
  CHECK(strcmp(truenorm_status_name(TRUENORM_INVALID_SHAPE), "TRUENORM_INVALID_SHAPE") == 0);
}

int main(void) {
  char version[32];
  sprintf(version, "%d.%d.%d", TRUENORM_VERSION_MAJOR, TRUENORM_VERSION_MINOR, TRUENORM_VERSION_PATCH);
  CHECK(strcmp(truenorm_version(), version) == 0);
  CHECK(truenorm_spec_version() == TRUENORM_SPEC_VERSION);
  CHECK(truenorm_isa() != NULL && truenorm_isa_name(0) != NULL);
  walk_through();
  in_place_and_errors();
  if (failures == 0) printf("C interface: all checks passed (%s)\n", truenorm_isa());
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

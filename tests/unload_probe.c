/* SPDX-License-Identifier: Apache-2.0
 * unload_probe LIBRARY: opens the library, uses its threads, closes it, and goes on; twice. Its threads sleep in its code, so
 * that it must stay loaded. */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "truenorm/truenorm.h"

typedef truenorm_status (*forward_function)(const truenorm_shape*, truenorm_input, truenorm_input, truenorm_input,
                                            truenorm_output, const truenorm_stats*, double, const truenorm_options*);

static float x[4000 * 768], y[4000 * 768];

int main(int argc, char** argv) {
  int round;
  if (argc != 2) return 2;
  for (round = 0; round < 2; ++round) {
    const truenorm_shape shape = {768, 1, {4000}};
    const truenorm_input in = {x, NULL, TRUENORM_FLOAT32}, none = {NULL, NULL, TRUENORM_FLOAT32};
    const truenorm_output out = {y, NULL, TRUENORM_FLOAT32};
    const struct timespec pause = {0, 20000000};
    truenorm_options options = TRUENORM_OPTIONS_INIT;
    forward_function forward;
    void* const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    void* const symbol = library ? dlsym(library, "truenorm_layer_norm_forward") : NULL;
    if (!symbol) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    memcpy(&forward, &symbol, sizeof forward);
    options.num_threads = 4;
    x[5] = 1;
    if (forward(&shape, in, none, none, out, NULL, 1e-5, &options) != TRUENORM_OK || !(y[5] > 27)) return 1;
    dlclose(library);
    nanosleep(&pause, NULL);
  }
  puts("opened and closed twice");
  return 0;
}

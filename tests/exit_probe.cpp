// SPDX-License-Identifier: Apache-2.0
// The end of a program that has used threads, a fresh process each; a hang or a crash is the failure:
//   exit_probe static   a destructor of a static object calls the library after main has returned
//   exit_probe busy     main returns while other threads are inside calls
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "truenorm/truenorm.h"

namespace {

// Large enough for threads; 4 of them.
bool normalize(std::vector<float>& x) {
  const truenorm_shape shape = {768, 1, {static_cast<int64_t>(x.size()) / 768}};
  truenorm_options options = TRUENORM_OPTIONS_INIT;
  options.num_threads = 4;
  const truenorm_input none{nullptr, nullptr, TRUENORM_FLOAT32};
  return truenorm_layer_norm_forward(&shape, {x.data(), nullptr, TRUENORM_FLOAT32}, none, none,
                                     {x.data(), nullptr, TRUENORM_FLOAT32}, nullptr, 1e-5, &options) == TRUENORM_OK;
}

std::vector<float> numbers() {
  std::vector<float> x(4000 * 768);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 101);
  return x;
}

struct AtTheEnd {
  bool wanted = false;
  ~AtTheEnd() {
    if (!wanted) return;
    std::vector<float> x = numbers();
    const bool right = normalize(x) && x[0] < 0 && x[100] > 0;
    std::printf(right ? "called after main\n" : "the call after main failed\n");
    std::fflush(stdout);
    if (!right) std::_Exit(1);
  }
} at_the_end;

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc == 2 ? argv[1] : "";
  std::vector<float> x = numbers();
  if (!normalize(x)) return 1;
  if (what == "static") {
    at_the_end.wanted = true;
    return 0;
  }
  if (what != "busy") return 2;
  static std::atomic<int> calls{0};
  for (int i = 0; i < 3; ++i) {
    std::thread([] {
      std::vector<float> mine = numbers();
      for (;;) calls += normalize(mine);
    }).detach();
  }
  while (calls < 20) std::this_thread::yield();
  std::printf("leaving with calls under way\n");
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// What the environment does, one fresh process at a time:
//   isa_probe isa NAME       TRUENORM_ISA was set to NAME; truenorm_isa() is NAME if this CPU has it, else the best
//   isa_probe refused NAME   TRUENORM_ISA was set to a name that nothing has: every call says so
//   isa_probe threads N      TRUENORM_NUM_THREADS was set to N
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "truenorm/truenorm.h"

namespace {

truenorm_status forward(float* y) {
  const float x[4] = {3, 1, 5, 7};
  truenorm_shape shape{};
  shape.d = 4;
  const truenorm_input in{x, nullptr, TRUENORM_FLOAT32}, none{nullptr, nullptr, TRUENORM_FLOAT32};
  return truenorm_layer_norm_forward(&shape, in, none, none, {y, nullptr, TRUENORM_FLOAT32}, nullptr, 1e-5, nullptr);
}

int fail(const char* what, const char* got) {
  std::fprintf(stderr, "isa_probe: %s (got %s)\n", what, got == nullptr ? "NULL" : got);
  return 1;
}

int check_isa(const std::string& name) {
  const char* got = truenorm_isa();
  bool present = false;
  for (int32_t i = 0; truenorm_isa_name(i) != nullptr; ++i) present |= name == truenorm_isa_name(i);
  if (got == nullptr) return fail("no instruction set", truenorm_last_error());
  if (present && name != got) return fail("not the one that TRUENORM_ISA names", got);
  float y[4] = {};
  if (forward(y) != TRUENORM_OK) return fail("forward failed", truenorm_last_error());
  if (std::memcmp(&y[0], "\x1f\xf9\xe4\xbe", 4) != 0) {  // (3 - 4)/sqrt(5.00001) as a little-endian float32
    char text[32];
    std::snprintf(text, sizeof text, "%a", static_cast<double>(y[0]));
    return fail("y[0] has other bits", text);
  }
  std::printf("TRUENORM_ISA=%s runs on %s\n", name.c_str(), got);
  return 0;
}

int check_refused(const std::string& name) {
  float y[4] = {9, 9, 9, 9};
  if (truenorm_isa() != nullptr) return fail("an instruction set where there is none", truenorm_isa());
  if (forward(y) != TRUENORM_INVALID_ISA) return fail("forward did not refuse", truenorm_last_error());
  if (y[0] != 9) return fail("y was touched", nullptr);
  const std::string message = truenorm_last_error();
  if (message.find("TRUENORM_ISA") == std::string::npos || message.find(name) == std::string::npos) {
    return fail("the message does not name the variable and its value", message.c_str());
  }
  std::printf("refused: %s\n", message.c_str());
  return 0;
}

int check_threads(int wanted) {
  if (truenorm_get_num_threads() == wanted) return 0;
  return fail("not the number in TRUENORM_NUM_THREADS", std::to_string(truenorm_get_num_threads()).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return fail("wants two arguments", nullptr);
  const std::string what = argv[1];
  if (what == "isa") return check_isa(argv[2]);
  if (what == "refused") return check_refused(argv[2]);
  if (what == "threads") return check_threads(std::atoi(argv[2]));
  return fail("unknown argument", argv[1]);
}

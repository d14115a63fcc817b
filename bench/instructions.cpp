// Runs each shape once under callgrind, after a first call that pays for dispatch and page faults, and dumps the
// counts of the second one under the shape's name. bench/callgrind.py starts it and reads them.
#include <valgrind/callgrind.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "truenorm/truenorm.h"

namespace {

struct Case {
  bool forward;
  truenorm_dtype dtype;
  int64_t rows, d;
};

constexpr Case kCases[] = {
    {true, TRUENORM_FLOAT32, 64, 768},    {true, TRUENORM_FLOAT32, 1, 65537},  {true, TRUENORM_FLOAT32, 512, 24},
    {true, TRUENORM_FLOAT64, 64, 768},    {true, TRUENORM_FLOAT16, 64, 768},   {true, TRUENORM_BFLOAT16, 64, 768},
    {true, TRUENORM_FLOAT32, 1, 768},     {false, TRUENORM_FLOAT32, 64, 768},  {false, TRUENORM_FLOAT32, 8, 8192},
    {false, TRUENORM_FLOAT32, 512, 24},   {false, TRUENORM_FLOAT64, 64, 768},  {false, TRUENORM_FLOAT16, 64, 768},
    {false, TRUENORM_BFLOAT16, 64, 768},
};

// A fixed sequence of ordinary numbers in any type: sign, a little exponent, mantissa.
std::vector<unsigned char> values(int64_t count, truenorm_dtype dtype, uint64_t state) {
  const size_t size = truenorm_dtype_size(dtype);
  std::vector<unsigned char> bytes(static_cast<size_t>(count) * size);
  for (int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double value = (static_cast<double>(state >> 40) / 8388608.0 - 1) * 2;  // [-2, 2)
    const auto narrow = static_cast<float>(value);
    uint32_t bits;
    std::memcpy(&bits, &narrow, 4);
    const auto brain = static_cast<uint16_t>(bits >> 16);
    // binary16 of a value in the normal range: re-biased exponent, mantissa cut.
    const uint32_t exponent = (bits >> 23) & 255;
    const auto half = static_cast<uint16_t>(
        exponent < 113 ? 0 : (bits >> 16 & 0x8000u) | (exponent - 112) << 10 | (bits >> 13 & 1023u));
    const void* from = dtype == TRUENORM_FLOAT64   ? static_cast<const void*>(&value)
                       : dtype == TRUENORM_FLOAT32 ? static_cast<const void*>(&narrow)
                       : dtype == TRUENORM_FLOAT16 ? static_cast<const void*>(&half)
                                                   : static_cast<const void*>(&brain);
    std::memcpy(&bytes[static_cast<size_t>(i) * size], from, size);
  }
  return bytes;
}

bool run(const Case& c) {
  const truenorm_shape shape{c.d, 1, {c.rows}};
  const auto x = values(c.rows * c.d, c.dtype, 1), dy = values(c.rows * c.d, c.dtype, 2);
  const auto gamma = values(c.d, c.dtype, 3), beta = values(c.d, c.dtype, 4);
  std::vector<unsigned char> out(x.size()), dgamma(gamma.size()), dbeta(beta.size());
  std::vector<double> saved(truenorm_layer_norm_saved_bytes(&shape, c.dtype) / 8);
  truenorm_options options = TRUENORM_OPTIONS_INIT;
  options.num_threads = 1;
  const truenorm_stats stats{nullptr, nullptr, nullptr, saved.data()};
  const auto forward = [&](const truenorm_stats* wanted) {
    return truenorm_layer_norm_forward(&shape, {x.data(), nullptr, c.dtype}, {gamma.data(), nullptr, c.dtype},
                                       {beta.data(), nullptr, c.dtype}, {out.data(), nullptr, c.dtype}, wanted, 1e-5,
                                       &options);
  };
  const auto backward = [&] {
    return truenorm_layer_norm_backward(&shape, {dy.data(), nullptr, c.dtype}, {x.data(), nullptr, c.dtype},
                                        {gamma.data(), nullptr, c.dtype}, saved.data(), 1e-5,
                                        {out.data(), nullptr, c.dtype}, {dgamma.data(), nullptr, c.dtype},
                                        {dbeta.data(), nullptr, c.dtype}, &options);
  };
  bool ok = forward(&stats) == TRUENORM_OK && (c.forward ? forward(nullptr) : backward()) == TRUENORM_OK;
  const std::string name = std::string(c.forward ? "forward " : "backward ") + truenorm_dtype_name(c.dtype) + " " +
                           std::to_string(c.rows) + "x" + std::to_string(c.d);
  CALLGRIND_ZERO_STATS;
  ok = ok && (c.forward ? forward(nullptr) : backward()) == TRUENORM_OK;
  CALLGRIND_DUMP_STATS_AT(name.c_str());
  if (!ok) std::fprintf(stderr, "%s: %s\n", name.c_str(), truenorm_last_error());
  return ok;
}

}  // namespace

int main() {
  const char* isa = truenorm_isa();
  std::printf("%s\n", isa ? isa : truenorm_last_error());
  for (const Case& c : kCases)
    if (!run(c)) return 1;
  return isa ? 0 : 1;
}

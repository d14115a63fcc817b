// bfloat16 rows with float32 parameters: gradients of 4096 rows, accumulated over two micro-batches, rounded once each.
#include <cstdint>
#include <cstdio>
#include <truenorm/truenorm.hpp>
#include <vector>

int main() {
  constexpr std::size_t kRows = 4096, kD = 8;
  const truenorm::bfloat16 one{0x3F80};
  std::vector<truenorm::bfloat16> x(kRows * kD), dy(kRows * kD, one), dx(kRows * kD);
  for (std::size_t i = 0; i < x.size(); ++i) x[i].bits = static_cast<std::uint16_t>(0x3F80 + i % kD);

  std::vector<float> gamma(kD, 1.0f), dgamma(kD), dbeta(kD);
  for (int micro_batch = 0; micro_batch < 2; ++micro_batch)
    truenorm::layer_norm_backward(kD, dy, x, gamma, dx, dgamma, dbeta, 1e-5, {}, truenorm::Options().accumulate());
  std::printf("dbeta %g, dgamma[0] %.3f\n", dbeta[0], dgamma[0]);

  std::vector<truenorm::bfloat16> half_dbeta(kD);  // bfloat16 parameters: the sum is exact, then rounded once
  truenorm::layer_norm_backward(kD, dy, x, {}, {}, {}, half_dbeta);
  std::printf("dbeta in bfloat16 0x%04X, which is 4096\n", half_dbeta[0].bits);
}

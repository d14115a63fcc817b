// Normalizes the heads of attention in place: the rows are slices of a wider buffer, whatever lies between them stays.
#include <cstdint>
#include <cstdio>
#include <truenorm/truenorm.hpp>
#include <vector>

int main() {
  constexpr std::int64_t kTokens = 2, kHeads = 2, kD = 4, kWidth = 3 * kHeads * kD;  // q, k and v side by side
  std::vector<float> qkv(kTokens * kWidth);
  for (std::size_t i = 0; i < qkv.size(); ++i) qkv[i] = static_cast<float>(i * i % 11);

  const truenorm::Shape shape({kTokens, kHeads}, kD);
  const auto q_in = truenorm::Input(qkv).with_strides({kWidth, kD});
  const auto q_out = truenorm::Output(qkv).with_strides({kWidth, kD});
  std::vector<double> mean(kTokens * kHeads);
  truenorm::layer_norm_forward(shape, q_in, {}, {}, q_out, 1e-6, {.mean = mean});

  std::printf("q of token 1, head 0 (mean was %g):", mean[2]);
  for (std::int64_t i = 0; i < kD; ++i) std::printf(" %.4f", qkv[kWidth + i]);
  std::printf("\nk of token 1, head 0, untouched:");
  for (std::int64_t i = 0; i < kD; ++i) std::printf(" %g", qkv[kWidth + kHeads * kD + i]);
  std::printf("\n");

  try {
    truenorm::layer_norm_forward(shape, truenorm::Input(qkv).with_strides({kWidth, kD}, kWidth), {}, {}, q_out);
  } catch (const truenorm::Error& error) {
    std::printf("%s\n%s\n", truenorm_status_name(error.status()), error.what());
  }
}

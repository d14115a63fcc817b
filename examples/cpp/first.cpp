#include <cstdio>
#include <truenorm/truenorm.hpp>

int main() {
  const float x[] = {3, 1, 5, 7, 1e6f, 1e6f + 1, 1e6f + 2, 1e6f + 3};  // two rows of four features
  const float gamma[] = {2, 2, 2, 2}, beta[] = {1, 1, 1, 1};
  float y[8];
  truenorm::layer_norm_forward(4, x, gamma, beta, y);
  for (int i = 0; i < 8; ++i) std::printf("%7.3f%s", y[i], i % 4 == 3 ? "\n" : "");
}

// The caller's own threads in place of the library's pool. The bits are the same.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <truenorm/truenorm.hpp>
#include <vector>

void run(void* context, void (*task)(void* data, std::int64_t i), void* data, std::int64_t count) {
  std::atomic<std::int64_t> next{0};
  std::vector<std::jthread> threads(*static_cast<int*>(context));
  for (std::jthread& thread : threads)
    thread = std::jthread([&] {
      for (std::int64_t i; (i = next++) < count;) task(data, i);
    });
}  // joined here: all tasks are done when run returns

int main() {
  constexpr std::size_t kRows = 1000, kD = 768;
  std::vector<float> x(kRows * kD), alone(x.size()), shared(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 1009);

  int thread_count = 2;
  truenorm::layer_norm_forward(kD, x, {}, {}, alone, 1e-5, {}, truenorm::Options().num_threads(1));
  truenorm::layer_norm_forward(kD, x, {}, {}, shared, 1e-5, {}, truenorm::Options().executor({run, &thread_count, thread_count}));
  std::printf("%s\n", std::equal(alone.begin(), alone.end(), shared.begin()) ? "the same bits" : "different");
}

// Which threads for jobs of some microseconds? The library's own pool (src/threads.h), pthreadpool and oneTBB share a
// job of fixed work in two; the table says how long a call takes, back to back and after a pause in which workers fall
// asleep, and how much processor time is burnt after it, when nothing is left to do.
//
//   build-bench/bench/threads_compare [--repeat N]
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <pthreadpool.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <thread>
#include <vector>

#include "threads.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kThreads = 2;
// Four tasks for two threads, as the library cuts its work: a thread that wakes late takes fewer of them.
constexpr int64_t kTasks = 4;

double micros(Clock::duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

double cpu_micros() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return 1e6 * static_cast<double>(t.tv_sec) + 1e-3 * static_cast<double>(t.tv_nsec);
}

// A chain of dependent multiplications: the same work on every call, no memory.
volatile uint64_t seed = 1, sink;
void work(int64_t steps) {
  uint64_t value = seed;
  for (int64_t i = 0; i < steps; ++i) value = value * 6364136223846793005u + 1442695040888963407u;
  sink = value;
}

int64_t steps_for(double microseconds) {
  constexpr int64_t kProbe = 2000000;
  double best = 1e30;
  for (int i = 0; i < 5; ++i) {
    const auto start = Clock::now();
    work(kProbe);
    best = std::min(best, micros(Clock::now() - start));
  }
  return static_cast<int64_t>(microseconds / best * kProbe);
}

struct Pool {
  const char* name;
  std::function<void(int64_t steps)> run;  // kTasks tasks of steps / kTasks each
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

void measure(const Pool& pool, double job, int64_t steps, int repeat) {
  std::vector<double> busy, rested, burnt;
  for (int i = 0; i < 200; ++i) pool.run(steps);
  for (int i = 0; i < 20 * repeat; ++i) {
    const auto start = Clock::now();
    pool.run(steps);
    busy.push_back(micros(Clock::now() - start));
  }
  for (int i = 0; i < repeat; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const auto start = Clock::now();
    pool.run(steps);
    rested.push_back(micros(Clock::now() - start));
    const double after = cpu_micros();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    burnt.push_back(cpu_micros() - after);
  }
  std::printf("| %7.0f | %-26s | %12.1f | %11.1f | %11.0f |\n", job, pool.name, median(busy), median(rested),
              median(burnt));
}

void run_pthreadpool(pthreadpool_t pool, int64_t steps, uint32_t flags) {
  pthreadpool_parallelize_1d(
      pool, [](void* context, size_t) { work(*static_cast<int64_t*>(context) / kTasks); }, &steps, kTasks, flags);
}

}  // namespace

int main(int argc, char** argv) {
  const bool given = argc == 3 && std::strcmp(argv[1], "--repeat") == 0;
  const int repeat = given ? std::atoi(argv[2]) : 200;
  if ((argc != 1 && !given) || repeat < 1) {
    std::fprintf(stderr, "threads_compare: expected nothing or --repeat N with N of 1 or more\n");
    return 2;
  }

  const truenorm::Threads own = truenorm::threads_of(kThreads, nullptr);
  const pthreadpool_t pthread_pool = pthreadpool_create(kThreads);
  tbb::task_arena arena(kThreads);
  const Pool pools[] = {
      {"one thread", [](int64_t steps) { work(steps); }},
      {"truenorm", [&](int64_t steps) {
         truenorm::parallel_for(own, kTasks, [steps](int64_t) { work(steps / kTasks); });
       }},
      {"pthreadpool", [&](int64_t steps) { run_pthreadpool(pthread_pool, steps, 0); }},
      {"pthreadpool, YIELD_WORKERS",
       [&](int64_t steps) { run_pthreadpool(pthread_pool, steps, PTHREADPOOL_FLAG_YIELD_WORKERS); }},
      {"oneTBB", [&](int64_t steps) {
         arena.execute([steps] {
           tbb::parallel_for(int64_t{0}, kTasks, [steps](int64_t) { work(steps / kTasks); }, tbb::simple_partitioner());
         });
       }},
  };
  std::printf("| job, us | %-26s | back to back | after 5 ms | burnt after |\n", "threads");
  std::printf("|--------:|----------------------------|-------------:|-----------:|------------:|\n");
  for (const double job : {10.0, 50.0, 200.0}) {
    const int64_t steps = steps_for(job);
    for (const Pool& pool : pools) measure(pool, job, steps, repeat);
  }
  pthreadpool_destroy(pthread_pool);
  return 0;
}

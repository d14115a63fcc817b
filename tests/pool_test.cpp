// SPDX-License-Identifier: Apache-2.0
// The pool of threads as a guest in the caller's process: its size, its sleep, fork.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "harness.h"
#include "results.h"

#if defined(__SANITIZE_THREAD__)
#define TRUENORM_TEST_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TRUENORM_TEST_TSAN 1
#endif
#endif

namespace truenorm::test {
namespace {

TEST(ThreadPool, DefaultNumber) {
  needs_no_levels();
  const int32_t before = truenorm_get_num_threads();
  EXPECT_GE(before, 1);
  ASSERT_TRUE(is_ok(truenorm_set_num_threads(3)));
  EXPECT_EQ(truenorm_get_num_threads(), 3);
  std::thread([] { EXPECT_EQ(truenorm_get_num_threads(), 3) << "the default is the process's"; }).join();
  ASSERT_TRUE(is_ok(truenorm_set_num_threads(0)));
  EXPECT_EQ(truenorm_get_num_threads(), before);
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TEST(ThreadPool, NothingSpinsAfterACall) {
  const Operands o = sized(primary_types().front(), 2000, 768);
  Results results(o);
  ASSERT_TRUE(is_ok(results.run(o, on_level(levels().front(), 4))));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a short spin before sleeping is fair
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(cpu_seconds() - before, 0.03) << "seconds of CPU time used while nothing was called";
}

TEST(ThreadPool, ThreadsWaitForTheNextCallWhereTheProgramWantsIt) {
  needs_no_levels();
  const int32_t before = truenorm_get_thread_wait();
  EXPECT_EQ(before, 0) << "the default burns nothing";
  EXPECT_EQ(truenorm_set_thread_wait(-1), TRUENORM_INVALID_THREADS);
  EXPECT_NE(std::string(truenorm_last_error()).find("-1"), std::string::npos);
  EXPECT_EQ(truenorm_set_thread_wait(1000001), TRUENORM_INVALID_THREADS);
  ASSERT_TRUE(is_ok(truenorm_set_thread_wait(2000)));
  EXPECT_EQ(truenorm_get_thread_wait(), 2000);
  const Operands o = sized(primary_types().front(), 500, 768);
  Results one(o), many(o);
  ASSERT_TRUE(is_ok(one.run(o, on_level(levels().front(), 1))));
  for (const int32_t threads : {2, 4, 3, 2}) {
    for (int round = 0; round < 5; ++round) ASSERT_TRUE(is_ok(many.run(o, on_level(levels().front(), threads))));
    EXPECT_TRUE(one.same(many, o)) << threads;
    std::this_thread::sleep_for(std::chrono::milliseconds(threads));  // within the wait, and beyond it
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const double used = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(cpu_seconds() - used, 0.03) << "seconds of CPU time used long after the wait";
  ASSERT_TRUE(is_ok(truenorm_set_thread_wait(0)));
}

TEST(ThreadPool, ForkedChildrenWork) {
#ifdef TRUENORM_TEST_TSAN
  GTEST_SKIP() << "ThreadSanitizer allows no new threads after fork";
#endif
  const Operands o = sized(primary_types().front(), 1000, 768);
  Results one(o);
  ASSERT_TRUE(is_ok(one.run(o, on_level(levels().front(), 4))));  // the pool exists before the fork
  for (int round = 0; round < 3; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(20);  // a child that waits for threads it does not have dies here
      Results mine(o);
      const bool right = mine.run(o, on_level(levels().front(), 4)) == TRUENORM_OK && one.same(mine, o);
      _exit(right ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << (WIFSIGNALED(status) ? "the child was killed by signal " + std::to_string(WTERMSIG(status))
                                : "the child gave other bits");
    Results again(o);  // and the parent still works
    ASSERT_TRUE(is_ok(again.run(o, on_level(levels().front(), 4))));
    EXPECT_TRUE(one.same(again, o));
  }
}

// Fork while other threads are inside calls.
TEST(ThreadPool, ForkBesideCalls) {
#ifdef TRUENORM_TEST_TSAN
  GTEST_SKIP() << "ThreadSanitizer allows no new threads after fork";
#endif
  const Operands o = sized(primary_types().front(), 600, 768);
  Results one(o);
  ASSERT_TRUE(is_ok(one.run(o, on_level(levels().front(), 4))));
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    Results mine(o);
    while (!stop) mine.run(o, on_level(levels().front(), 4));
  });
  for (int round = 0; round < 10; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      Buffer dx(TRUENORM_FLOAT32, 8, Placement::misaligned);
      const truenorm_shape shape = shape_of({1}, 8);
      const truenorm_options options = on_level(levels().front(), 4);
      const truenorm_input none{nullptr, nullptr, TRUENORM_FLOAT32};
      const auto small = truenorm_layer_norm_forward(&shape, input(TRUENORM_FLOAT32, o.x.data()), none, none,
                                                     output(TRUENORM_FLOAT32, dx.data()), nullptr, 1e-5, &options);
      const truenorm_shape large = shape_of({o.rows}, o.d);
      const auto big = truenorm_layer_norm_forward(&large, input(TRUENORM_FLOAT32, o.x.data()), none, none,
                                                   output(TRUENORM_FLOAT32, one.y.data()), nullptr, 1e-5, &options);
      _exit(small == TRUENORM_OK && big == TRUENORM_OK ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "wait status " << status;
  }
  stop = true;
  busy.join();
}

}  // namespace
}  // namespace truenorm::test

// SPDX-License-Identifier: Apache-2.0
// Threads change no bit: 1 to 8 of them, the caller's own, several callers at once, after fork.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "harness.h"
#include "operands.h"

#if defined(__SANITIZE_THREAD__)
#define TRUENORM_TEST_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TRUENORM_TEST_TSAN 1
#endif
#endif

namespace truenorm::test {
namespace {

struct Results {
  Buffer y, saved, dx, dgamma, dbeta;
  std::vector<double> mean;

  explicit Results(const Operands& o)
      : y(o.types.y, o.rows * o.d, Placement::before_unmapped),
        saved(TRUENORM_FLOAT64, o.rows * 3, Placement::misaligned),
        dx(o.types.x, o.rows * o.d, Placement::before_unmapped),
        dgamma(o.types.affine, o.d, Placement::before_unmapped),
        dbeta(o.types.affine, o.d, Placement::before_unmapped),
        mean(static_cast<size_t>(o.rows)) {}

  truenorm_status run(const Operands& o, const truenorm_options& options) {
    const truenorm_shape shape = shape_of({o.rows}, o.d);
    const truenorm_input gamma = input(o.types.affine, o.gamma ? o.gamma.data() : nullptr);
    const truenorm_input beta = input(o.types.affine, o.beta ? o.beta.data() : nullptr);
    const truenorm_input x = input(o.types.x, o.x.data());
    const truenorm_stats stats{mean.data(), nullptr, nullptr, saved.data()};
    const truenorm_status status =
        truenorm_layer_norm_forward(&shape, x, gamma, beta, output(o.types.y, y.data()), &stats, o.eps, &options);
    if (status != TRUENORM_OK) return status;
    return truenorm_layer_norm_backward(&shape, input(o.types.y, o.dy.data()), x, gamma, saved.data(), o.eps,
                                        output(o.types.x, dx.data()), output(o.types.affine, dgamma.data()),
                                        output(o.types.affine, dbeta.data()), &options);
  }

  testing::AssertionResult same(const Results& other, const Operands& o) const {
    const auto compare = [&](const char* what, const Buffer& a, const Buffer& b, int64_t rows) {
      return same_bits(a.dtype(), a.data(), b.data(), rows, rows == 0 ? 0 : a.count() / rows) << " in " << what;
    };
    auto result = compare("y", y, other.y, o.rows);
    if (result) result = compare("dx", dx, other.dx, o.rows);
    if (result) result = compare("dgamma", dgamma, other.dgamma, 1);
    if (result) result = compare("dbeta", dbeta, other.dbeta, 1);
    if (result && mean != other.mean) return testing::AssertionFailure() << "mean differs";
    return result;
  }
};

Operands sized(const Types& types, int64_t rows, int64_t d) {
  Recipe recipe{types, d};
  const auto kinds = every(row_kinds());
  for (int64_t row = 0; row < rows; ++row) recipe.rows.push_back(kinds[static_cast<size_t>(row) % 14]);
  recipe.gamma = &kind(gamma_kinds(), "near 1");
  recipe.beta = &kind(beta_kinds(), "normal");
  recipe.dy = &kind(slope_kinds(), "mean 1");
  return make(recipe);
}

class Threads : public testing::TestWithParam<Types> {};
std::string name_of(const testing::TestParamInfo<Types>& info) { return truenorm_dtype_name(info.param.x); }
INSTANTIATE_TEST_SUITE_P(Types, Threads, testing::ValuesIn(primary_types()), name_of);

// Shapes that are split by rows, by blocks of rows, by columns, by segments of one long row, and not at all.
const std::vector<std::pair<int64_t, int64_t>> kShapes = {{1, 64},      {7, 100},   {64, 768},  {513, 1030},
                                                          {2000, 64},   {20011, 8}, {3, 65537}, {1, 300001},
                                                          {1, 1 << 20}, {2, 700000}};

TEST_P(Threads, OneToEightGiveTheSameBits) {
  for (const auto& [rows, d] : kShapes) {
    const Operands o = sized(GetParam(), rows, d);
    SCOPED_TRACE(o.name);
    Results one(o);
    ASSERT_TRUE(is_ok(one.run(o, on_level(levels().front()))));
    for (const std::string& level : levels()) {
      const bool every_count = level == levels().front() || full_grid();
      ran_on(level);
      for (const int32_t threads :
           every_count ? std::vector<int32_t>{2, 3, 4, 5, 6, 7, 8, 64} : std::vector<int32_t>{4}) {
        Results many(o);
        ASSERT_TRUE(is_ok(many.run(o, on_level(level, threads))));
        ASSERT_TRUE(one.same(many, o)) << threads << " threads on " << level;
      }
    }
  }
}

// One thread gives what the specification says, so that all do; small shapes, the reference is slow.
TEST_P(Threads, TheBitsAreTheSpecification) {
  for (const auto& [rows, d] : {std::pair<int64_t, int64_t>{513, 130}, {4099, 8}, {3, 20000}}) {
    Operands o = sized(GetParam(), rows, d);
    check_forward(o, false);
    check_backward(o, {}, false);
  }
}

// The caller's own threads: tasks in reverse order, all on new threads, one by one.
struct Executor {
  int64_t largest_count = 0;
  int64_t calls = 0;
  std::atomic<int64_t> tasks{0};
  bool on_threads = false;

  static void run(void* context, void (*task)(void*, int64_t), void* data, int64_t count) {
    auto& self = *static_cast<Executor*>(context);
    ++self.calls;
    self.largest_count = std::max(self.largest_count, count);
    std::vector<std::thread> threads;
    for (int64_t i = count; i-- > 0;) {
      if (self.on_threads) {
        threads.emplace_back([&self, task, data, i] {
          task(data, i);
          ++self.tasks;
        });
      } else {
        task(data, i);
        ++self.tasks;
      }
    }
    for (std::thread& thread : threads) thread.join();
  }
};

TEST_P(Threads, OwnExecutor) {
  for (const auto& [rows, d] : kShapes) {
    const Operands o = sized(GetParam(), rows, d);
    SCOPED_TRACE(o.name);
    Results one(o);
    ASSERT_TRUE(is_ok(one.run(o, on_level(levels().front()))));
    for (const bool on_threads : {false, true}) {
      Executor mine;
      mine.on_threads = on_threads;
      const truenorm_executor executor{Executor::run, &mine, 5};
      truenorm_options options = on_level(levels().front(), 3);
      options.executor = &executor;
      Results theirs(o);
      ASSERT_TRUE(is_ok(theirs.run(o, options)));
      ASSERT_TRUE(one.same(theirs, o)) << (on_threads ? "on threads" : "in reverse");
      if (rows * d > 1000000) {
        EXPECT_GT(mine.tasks, 1) << "large work was not split";
      }
      if (rows * d <= 64) {
        EXPECT_LE(mine.largest_count, 1) << "small work was split";
      }
    }
  }
}

TEST_P(Threads, SeveralCallersAtOnce) {
  const Operands o = sized(GetParam(), 300, 700);
  Results one(o);
  ASSERT_TRUE(is_ok(one.run(o, on_level(levels().front()))));
  std::vector<std::thread> callers;
  std::atomic<int> failures{0};
  std::mutex mutex;
  std::string first;
  for (int caller = 0; caller < 6; ++caller) {
    callers.emplace_back([&, caller] {
      for (int round = 0; round < 5; ++round) {
        Results mine(o);
        const truenorm_status status = mine.run(o, on_level(levels().front(), 1 + (caller + round) % 4));
        const auto result = status == TRUENORM_OK ? one.same(mine, o) : is_ok(status);
        if (result) continue;
        ++failures;
        const std::lock_guard<std::mutex> lock(mutex);
        if (first.empty()) first = result.message();
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(failures, 0) << first;
}

TEST(ThreadPool, DefaultNumber) {
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

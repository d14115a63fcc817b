// SPDX-License-Identifier: Apache-2.0
// Threads change no bit: 1 to 8 of them, the caller's own, several callers at once.
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "harness.h"
#include "operands.h"
#include "results.h"

namespace truenorm::test {
namespace {

class Threads : public testing::TestWithParam<Types> {};
INSTANTIATE_TEST_SUITE_P(Types, Threads, testing::ValuesIn(primary_types()), name_of_x);

// Shapes that are split by rows, by blocks of rows, by columns, by segments of one long row, and not at all.
const std::vector<std::pair<int64_t, int64_t>> kShapes = {{1, 64},      {7, 100},   {64, 768},  {513, 1030},
                                                          {2000, 64},   {20011, 8}, {3, 65537}, {1, 300001},
                                                          {1, 1 << 20}, {2, 700000}, {1, (1 << 20) + 3}};

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

// y over x, dx over dy, dx over x: no thread may read what another has overwritten.
TEST_P(Threads, InPlace) {
  for (const auto& [rows, d] : kShapes) {
    const Operands o = sized(GetParam(), rows, d);
    SCOPED_TRACE(o.name);
    Results one(o);
    ASSERT_TRUE(is_ok(one.run(o, on_level(levels().front()))));
    const truenorm_shape shape = shape_of({rows}, d);
    const truenorm_input gamma = input(o.types.affine, o.gamma.data()), beta = input(o.types.affine, o.beta.data());
    for (const int32_t threads : {1, 2, 5}) {
      const truenorm_options options = on_level(levels().front(), threads);
      Buffer both(o.types.x, rows * d, Placement::misaligned);
      std::memcpy(both.data(), o.x.data(), o.x.size_bytes());
      ASSERT_TRUE(is_ok(truenorm_layer_norm_forward(&shape, input(o.types.x, both.data()), gamma, beta,
                                                    output(o.types.y, both.data()), nullptr, o.eps, &options)));
      ASSERT_TRUE(same_bits(o.types.y, one.y.data(), both.data(), rows, d)) << "y over x, " << threads << " threads";
      for (const bool over_dy : {true, false}) {
        std::memcpy(both.data(), over_dy ? o.dy.data() : o.x.data(), o.x.size_bytes());
        Buffer dgamma(o.types.affine, d, Placement::misaligned), dbeta(o.types.affine, d, Placement::misaligned);
        ASSERT_TRUE(is_ok(truenorm_layer_norm_backward(
            &shape, input(o.types.y, over_dy ? both.data() : o.dy.data()),
            input(o.types.x, over_dy ? o.x.data() : both.data()), gamma, threads == 2 ? one.saved.data() : nullptr,
            o.eps, output(o.types.x, both.data()), output(o.types.affine, dgamma.data()),
            output(o.types.affine, dbeta.data()), &options)));
        const std::string which = (over_dy ? "dx over dy, " : "dx over x, ") + std::to_string(threads) + " threads";
        ASSERT_TRUE(same_bits(o.types.x, one.dx.data(), both.data(), rows, d)) << which;
        ASSERT_TRUE(same_bits(o.types.affine, one.dgamma.data(), dgamma.data(), 1, d)) << which << ", dgamma";
        ASSERT_TRUE(same_bits(o.types.affine, one.dbeta.data(), dbeta.data(), 1, d)) << which << ", dbeta";
      }
    }
  }
}

// One thread gives what the specification says, so that all do; small shapes, the reference is slow.
TEST_P(Threads, TheBitsAreTheSpecification) {
  for (const auto& [rows, d] : {std::pair<int64_t, int64_t>{513, 130}, {4099, 8}, {3, 20000}, {1, (1 << 20) + 3}}) {
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

}  // namespace
}  // namespace truenorm::test

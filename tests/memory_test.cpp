// SPDX-License-Identifier: Apache-2.0
// Forward allocates nothing once the pool of threads is there; backward nothing when its workspace is passed in.
//
// This program's malloc counts, and takes the memory from glibc's own. Other C libraries and the sanitizers, which
// bring a malloc of their own, skip it.
#include <atomic>
#include <cstdlib>
#include <vector>

#include "harness.h"
#include "operands.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define TRUENORM_TEST_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TRUENORM_TEST_SANITIZED 1
#endif

#if defined(__GLIBC__) && !defined(TRUENORM_TEST_SANITIZED)
#define TRUENORM_TEST_COUNTS_MALLOC 1

namespace {
std::atomic<bool> counting{false};
std::atomic<int64_t> allocations{0};
void count() {
  if (counting.load(std::memory_order_relaxed)) ++allocations;
}
}  // namespace

extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) { return count(), __libc_malloc(bytes); }
void* calloc(size_t n, size_t bytes) { return count(), __libc_calloc(n, bytes); }
void* realloc(void* old, size_t bytes) { return count(), __libc_realloc(old, bytes); }
void* memalign(size_t alignment, size_t bytes) { return count(), __libc_memalign(alignment, bytes); }
void* aligned_alloc(size_t alignment, size_t bytes) { return count(), __libc_memalign(alignment, bytes); }
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  count();
  *out = __libc_memalign(alignment, bytes);
  return *out == nullptr ? 12 : 0;
}
}
#endif

namespace truenorm::test {
namespace {

template <class Call>
int64_t allocations_in(Call call) {
#ifdef TRUENORM_TEST_COUNTS_MALLOC
  allocations = 0;
  counting = true;
  call();
  counting = false;
  return allocations;
#else
  call();
  return 0;
#endif
}

TEST(Memory, TheCounterCounts) {
#ifndef TRUENORM_TEST_COUNTS_MALLOC
  GTEST_SKIP() << "malloc cannot be counted here";
#endif
  void* volatile memory = nullptr;  // volatile: compilers may leave out what nobody looks at
  EXPECT_EQ(allocations_in([&] { memory = std::malloc(100); }), 1);
  std::free(memory);
}

class MemoryOf : public testing::TestWithParam<Types> {};
INSTANTIATE_TEST_SUITE_P(Types, MemoryOf, testing::ValuesIn(all_types()));

TEST_P(MemoryOf, NoAllocation) {
  const Types& t = GetParam();
  for (const auto& [rows, d] : {std::pair<int64_t, int64_t>{4, 64}, {500, 1030}, {1, 200000}, {20000, 16}}) {
    Recipe recipe{t, d};
    recipe.rows.assign(static_cast<size_t>(rows), &kind(row_kinds(), "mean 10"));
    recipe.gamma = &kind(gamma_kinds(), "near 1");
    recipe.beta = &kind(beta_kinds(), "normal");
    const Operands o = make(recipe);
    const truenorm_shape shape = shape_of({rows}, d);
    Buffer y(t.y, rows * d, Placement::misaligned), dx(t.x, rows * d, Placement::misaligned);
    Buffer dgamma(t.affine, d, Placement::misaligned), dbeta(t.affine, d, Placement::misaligned);
    std::vector<double> mean(static_cast<size_t>(rows)), saved(static_cast<size_t>(3 * rows));
    const truenorm_stats stats{mean.data(), nullptr, nullptr, saved.data()};
    const truenorm_input x = input(t.x, o.x.data()), gamma = input(t.affine, o.gamma.data());
    for (const std::string& level : levels()) {
      ran_on(level);
      for (const int32_t threads : {1, 4}) {
        SCOPED_TRACE(o.name + ", " + std::to_string(threads) + " threads, on " + level);
        truenorm_options options = on_level(level, threads);
        const auto forward = [&] {
          EXPECT_EQ(truenorm_layer_norm_forward(&shape, x, gamma, input(t.affine, o.beta.data()), output(t.y, y.data()),
                                                &stats, o.eps, &options),
                    TRUENORM_OK);
        };
        forward();  // starts the pool
        EXPECT_EQ(allocations_in(forward), 0) << "in forward";
        size_t bytes = 0;
        ASSERT_TRUE(is_ok(truenorm_layer_norm_backward_workspace(&shape, x, output(t.affine, dgamma.data()),
                                                                 output(t.affine, dbeta.data()), &options, &bytes)));
        std::vector<unsigned char> memory(bytes + 64);
        options.workspace = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
        options.workspace_bytes = bytes;
        const auto backward = [&] {
          EXPECT_EQ(truenorm_layer_norm_backward(&shape, input(t.y, o.dy.data()), x, gamma, saved.data(), o.eps,
                                                 output(t.x, dx.data()), output(t.affine, dgamma.data()),
                                                 output(t.affine, dbeta.data()), &options),
                    TRUENORM_OK);
        };
        backward();
        EXPECT_EQ(allocations_in(backward), 0) << "in backward with a workspace";
      }
    }
  }
}

}  // namespace
}  // namespace truenorm::test

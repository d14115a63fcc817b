// A pool of threads that is made at the first call that wants one, sleeps between calls and never ends: nothing is
// joined at exit, and a forked child starts with no pool. Tasks are taken one by one, so that a thread that wakes late
// costs only what it would have done. One call at a time uses the pool; others do their work themselves meanwhile.
#include "threads.h"

#include <atomic>
#include <cstdlib>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif
#if !defined(_WIN32)
#include <pthread.h>
#include <signal.h>
#endif

#include "error.h"
#include "fp_environment.h"

namespace truenorm {
namespace {

inline void pause() {
#if defined(__SSE2__)
  __builtin_ia32_pause();
#endif
}

class Pool {
 public:
  // False when another call is using the pool.
  bool run(int32_t threads, int64_t count, void (*task)(void*, int64_t), void* data) {
    const std::unique_lock<std::mutex> caller(one_caller_, std::try_to_lock);
    if (!caller) return false;
    const int32_t helpers = static_cast<int32_t>(count < threads ? count : threads) - 1;
    grow(helpers);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      task_ = task;
      data_ = data;
      count_ = count;
      next_.store(0, std::memory_order_relaxed);
      wanted_ = helpers;
    }
    for (int32_t i = 0; i < helpers; ++i) work_.notify_one();
    take_tasks();
    std::unique_lock<std::mutex> lock(mutex_);
    wanted_ = 0;  // who has not come by now is not needed
    // Who is still at it is done in microseconds, which sleeping and being woken would take as well.
    for (int turns = 0; working_ != 0 && turns < 4096; ++turns) {
      lock.unlock();
      pause();
      lock.lock();
    }
    done_.wait(lock, [this] { return working_ == 0; });
    return true;
  }

 private:
  void take_tasks() {
    for (int64_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < count_;) task_(data_, i);
  }

  void serve() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      work_.wait(lock, [this] { return wanted_ > 0; });
      --wanted_;
      ++working_;
      lock.unlock();
      {
        const DefaultFpEnvironment environment;
        take_tasks();
      }
      lock.lock();
      if (--working_ == 0) done_.notify_one();
    }
  }

  // Where no more threads can be had, the work is done with those that are there.
  void grow(int32_t helpers) {
    for (; size_ < helpers; ++size_) {
      try {
        spawn();
      } catch (const std::exception&) {  // no thread, or no memory for one
        return;
      }
    }
  }

  void spawn() {
#if defined(_WIN32)
    std::thread([this] { serve(); }).detach();
#else
    sigset_t all, before;  // the program's signals are for its own threads
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    struct Restore {
      sigset_t* mask;
      ~Restore() { pthread_sigmask(SIG_SETMASK, mask, nullptr); }
    } restore{&before};
    std::thread([this] { serve(); }).detach();
#endif
  }

  std::mutex one_caller_;
  int32_t size_ = 0;

  std::mutex mutex_;
  std::condition_variable work_, done_;
  void (*task_)(void*, int64_t) = nullptr;
  void* data_ = nullptr;
  int64_t count_ = 0;
  std::atomic<int64_t> next_{0};
  int32_t wanted_ = 0, working_ = 0;
};

std::atomic<Pool*> pool{nullptr};

void forget_pool() { pool.store(nullptr); }  // in a forked child, where its threads do not exist

Pool* get_pool() {
  Pool* current = pool.load(std::memory_order_acquire);
  if (current) return current;
  Pool* fresh = new (std::nothrow) Pool;
  if (!fresh) return nullptr;
  if (!pool.compare_exchange_strong(current, fresh)) {
    delete fresh;
    return current;
  }
#if !defined(_WIN32)
  static std::atomic<bool> registered{false};
  if (!registered.exchange(true)) pthread_atfork(nullptr, nullptr, forget_pool);
#endif
  return fresh;
}

int32_t cpus() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
#endif
  const unsigned count = std::thread::hardware_concurrency();
  return count ? static_cast<int32_t>(count) : 1;
}

constexpr int32_t kMaxThreads = 1024;
std::atomic<int32_t> chosen_threads{0};   // truenorm_set_num_threads
std::atomic<int32_t> initial_threads{0};  // the environment or the CPUs, read once

int32_t default_threads() {
  if (const int32_t chosen = chosen_threads.load(std::memory_order_relaxed)) return chosen;
  int32_t initial = initial_threads.load(std::memory_order_relaxed);
  if (initial == 0) {
    const char* text = std::getenv("TRUENORM_NUM_THREADS");
    const long value = text ? std::strtol(text, nullptr, 10) : 0;
    initial = value >= 1 && value <= kMaxThreads ? static_cast<int32_t>(value) : cpus();
    initial_threads.store(initial, std::memory_order_relaxed);
  }
  return initial;
}

}  // namespace

Threads threads_of(int32_t num_threads, const truenorm_executor* executor) {
  if (executor) return {executor->num_threads, executor};
  return {num_threads ? num_threads : default_threads(), nullptr};
}

void run(const Threads& threads, int64_t count, void (*task)(void*, int64_t), void* data) {
  if (threads.count > 1 && count > 1) {
    if (threads.executor) {
      struct Call {
        void (*task)(void*, int64_t);
        void* data;
      } call{task, data};
      threads.executor->run(
          threads.executor->context,
          [](void* p, int64_t i) {
            const DefaultFpEnvironment environment;
            static_cast<Call*>(p)->task(static_cast<Call*>(p)->data, i);
          },
          &call, count);
      return;
    }
    Pool* const current = get_pool();
    if (current && current->run(threads.count, count, task, data)) return;
  }
  for (int64_t i = 0; i < count; ++i) task(data, i);
}

}  // namespace truenorm

extern "C" {

truenorm_status truenorm_set_num_threads(int32_t num_threads) {
  using namespace truenorm;
  if (num_threads < 0 || num_threads > kMaxThreads)
    return fail(TRUENORM_INVALID_THREADS, "num_threads is %d; expected 0 (the default) to %d", num_threads, kMaxThreads);
  chosen_threads.store(num_threads, std::memory_order_relaxed);
  return TRUENORM_OK;
}

int32_t truenorm_get_num_threads(void) { return truenorm::default_threads(); }

}  // extern "C"

// A pool of threads that is made at the first call that wants one, sleeps between calls and never ends: nothing is
// joined at exit, and a forked child starts with no pool. Tasks are taken one by one, so that a thread that wakes late
// costs only what it would have done. One call at a time uses the pool; others do their work themselves meanwhile. Where the
// program asks for it, threads watch for the next call for a while before they sleep.
#include "threads.h"

#include <atomic>
#include <chrono>
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

// A number that the program chooses, else the environment, which is read once, else the library.
class Setting {
 public:
  constexpr Setting(const char* variable, int32_t least, int32_t most, int32_t none)
      : variable_(variable), least_(least), most_(most), none_(none), chosen_(none) {}
  void choose(int32_t value) { chosen_.store(value, std::memory_order_relaxed); }
  int32_t get(int32_t (*otherwise)()) {
    if (const int32_t chosen = chosen_.load(std::memory_order_relaxed); chosen != none_) return chosen;
    int32_t initial = initial_.load(std::memory_order_relaxed);
    if (initial < 0) {
      const char* text = std::getenv(variable_);
      const long value = text ? std::strtol(text, nullptr, 10) : -1;
      initial = value >= least_ && value <= most_ ? static_cast<int32_t>(value) : otherwise();
      initial_.store(initial, std::memory_order_relaxed);
    }
    return initial;
  }

 private:
  const char* const variable_;
  const int32_t least_, most_, none_;
  std::atomic<int32_t> chosen_, initial_{-1};
};

int32_t cpus() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
#endif
  const unsigned count = std::thread::hardware_concurrency();
  return count ? static_cast<int32_t>(count) : 1;
}

constexpr int32_t kMaxThreads = 1024, kMaxWait = 1000000;
Setting number_of_threads("TRUENORM_NUM_THREADS", 1, kMaxThreads, 0);
Setting thread_wait("TRUENORM_THREAD_WAIT", 0, kMaxWait, -1);

int32_t default_threads() { return number_of_threads.get(cpus); }
int32_t default_wait() {
  return thread_wait.get([] { return 0; });
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
      calls_.fetch_add(1, std::memory_order_release);
    }
    for (int32_t i = awake_.load(std::memory_order_relaxed); i < helpers; ++i) work_.notify_one();
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
      // A thread that woke too late for a call stays awake for the next one, too: else it would be late for each of many
      // short calls, where waking takes longer than they do.
      while (wanted_ == 0) {
        watch(lock);
        if (wanted_ == 0) work_.wait(lock);
      }
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

  // Stays awake for the next call, for as long as the program allows; whatever else wants to run goes first.
  void watch(std::unique_lock<std::mutex>& lock) {
    const int32_t wait = default_wait();
    if (wait == 0) return;
    const uint64_t seen = calls_.load(std::memory_order_relaxed);
    awake_.fetch_add(1, std::memory_order_relaxed);
    lock.unlock();
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(wait);
    do {
      for (int i = 0; i < 64 && calls_.load(std::memory_order_acquire) == seen; ++i) pause();
      if (calls_.load(std::memory_order_acquire) != seen) break;
      std::this_thread::yield();
    } while (std::chrono::steady_clock::now() < until);
    lock.lock();
    awake_.fetch_sub(1, std::memory_order_relaxed);
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
  std::atomic<uint64_t> calls_{0};
  std::atomic<int32_t> awake_{0};  // threads that need not be woken
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

}  // namespace

bool threads_stay_awake() { return default_wait() > 0; }

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
  number_of_threads.choose(num_threads);
  return TRUENORM_OK;
}

int32_t truenorm_get_num_threads(void) { return truenorm::default_threads(); }

truenorm_status truenorm_set_thread_wait(int32_t microseconds) {
  using namespace truenorm;
  if (microseconds < 0 || microseconds > kMaxWait)
    return fail(TRUENORM_INVALID_THREADS, "the wait of threads is %d; expected 0 to %d microseconds", microseconds, kMaxWait);
  thread_wait.choose(microseconds);
  return TRUENORM_OK;
}

int32_t truenorm_get_thread_wait(void) { return truenorm::default_wait(); }

}  // extern "C"

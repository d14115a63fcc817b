// The one seam to threads.
#pragma once

#include <cstdint>

#include "truenorm/truenorm.h"

namespace truenorm {

// How many threads a call may use, and whose. Made by check_threads() from valid options.
struct Threads {
  int32_t count;
  const truenorm_executor* executor;  // null: the library's pool
};

// The process's default when num_threads is 0.
Threads threads_of(int32_t num_threads, const truenorm_executor* executor);

// Whether the library's threads stay awake between calls (truenorm_set_thread_wait).
bool threads_stay_awake();

// Calls task(data, i) once for every i in [0, count), on up to threads.count threads, in the default floating-point
// environment, and returns when all have returned. With one thread or one task everything stays on the caller's.
void run(const Threads& threads, int64_t count, void (*task)(void* data, int64_t i), void* data);

template <class Function>
void parallel_for(const Threads& threads, int64_t count, const Function& function) {
  run(threads, count, [](void* data, int64_t i) { (*static_cast<const Function*>(data))(i); },
      const_cast<void*>(static_cast<const void*>(&function)));
}

}  // namespace truenorm

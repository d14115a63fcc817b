// SPDX-License-Identifier: Apache-2.0
#include "signals.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "bad_input.h"

namespace truenorm::cli {
namespace {

// A handler may touch neither the heap nor locks: the names lie in fixed places, and each says whether it is valid.
struct Slot {
  char path[4096];
  std::atomic<bool> valid;
};
constexpr int kSlots = 8;
Slot slots[kSlots];
static_assert(std::atomic<bool>::is_always_lock_free);

void remove_and_end(int signal) {
  for (Slot& slot : slots) {
    if (slot.valid.load(std::memory_order_acquire)) unlink(slot.path);
  }
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  sigaction(signal, &by_default, nullptr);
  raise(signal);  // blocked until the handler returns
}

}  // namespace

RemovedBySignal::RemovedBySignal(const std::string& path) : slot_(0) {
  while (slot_ < kSlots && slots[slot_].valid.load()) ++slot_;
  if (slot_ == kSlots || path.size() >= sizeof(Slot::path)) throw BadInput(path + ": the name is too long");
  std::memcpy(slots[slot_].path, path.c_str(), path.size() + 1);
  slots[slot_].valid.store(true, std::memory_order_release);
}

RemovedBySignal::~RemovedBySignal() { slots[slot_].valid.store(false, std::memory_order_release); }

void handle_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction old {};
    sigaction(signal, nullptr, &old);
    if (old.sa_handler == SIG_IGN) continue;  // as nohup and background jobs want it
    struct sigaction ours {};
    ours.sa_handler = remove_and_end;
    sigfillset(&ours.sa_mask);
    sigaction(signal, &ours, nullptr);
  }
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

void end_by_closed_pipe() {
  signal(SIGPIPE, SIG_DFL);
  raise(SIGPIPE);
  std::_Exit(128 + SIGPIPE);
}

}  // namespace truenorm::cli

// SPDX-License-Identifier: Apache-2.0
#ifndef TRUENORM_CLI_PROGRESS_H_
#define TRUENORM_CLI_PROGRESS_H_

#include <chrono>
#include <cstdint>

namespace truenorm::cli {

// A bar on stderr for work that takes over a second, where stderr is a terminal; gone when the work is done.
class Progress {
 public:
  explicit Progress(int64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(int64_t done);
  // Takes the bar away; how long it all took.
  double finish();

 private:
  using Clock = std::chrono::steady_clock;
  double seconds() const;

  int64_t total_;
  bool terminal_, shown_ = false;
  Clock::time_point start_, next_;
};

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_PROGRESS_H_

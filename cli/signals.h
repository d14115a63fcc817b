// SPDX-License-Identifier: Apache-2.0
#ifndef TRUENORM_CLI_SIGNALS_H_
#define TRUENORM_CLI_SIGNALS_H_

#include <stdexcept>
#include <string>

namespace truenorm::cli {

// A file that a signal must not leave behind, for as long as this lives.
class RemovedBySignal {
 public:
  explicit RemovedBySignal(const std::string& path);
  ~RemovedBySignal();
  RemovedBySignal(const RemovedBySignal&) = delete;
  RemovedBySignal& operator=(const RemovedBySignal&) = delete;

 private:
  int slot_;
};

// INT, TERM and HUP remove the files above and end the process as they would have. A closed pipe and a limit on the
// size of files become errors of the write instead of the end of the process.
void handle_signals();

// Whoever reads the output has gone: no message, but the end that the signal PIPE would have brought.
struct ClosedPipe : std::runtime_error {
  ClosedPipe() : std::runtime_error("closed pipe") {}
};
[[noreturn]] void end_by_closed_pipe();

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_SIGNALS_H_

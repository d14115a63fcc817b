// SPDX-License-Identifier: Apache-2.0
#include "progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace truenorm::cli {
namespace {

// A line that is too long for the terminal would be broken, and its first part stay.
int bar_width() {
  constexpr int kWidest = 40, kBeside = 24;  // "[] 100 %, 123456 s left"
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kWidest;
  return std::clamp(static_cast<int>(size.ws_col) - kBeside, 0, kWidest);
}

}  // namespace

Progress::Progress(int64_t total)
    : total_(total), terminal_(isatty(STDERR_FILENO)), start_(Clock::now()), next_(start_ + std::chrono::seconds(1)) {
  const char* term = std::getenv("TERM");
  if (term && std::string(term) == "dumb") terminal_ = false;
}

Progress::~Progress() { finish(); }

double Progress::finish() {
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
  return seconds();
}

double Progress::seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

void Progress::show(int64_t done) {
  if (!terminal_ || total_ <= 0 || Clock::now() < next_) return;
  next_ = Clock::now() + std::chrono::milliseconds(100);
  const int width = bar_width();
  const double part = static_cast<double>(done) / static_cast<double>(total_);
  const auto full = static_cast<size_t>(part * width);
  const double left = part > 0 ? seconds() * (1 - part) / part : 0;
  const std::string bar = std::string(full, '#') + std::string(static_cast<size_t>(width) - full, '.');
  std::fprintf(stderr, "\r[%s] %3.0f %%, %.0f s left\033[K", bar.c_str(), 100 * part, left);
  shown_ = true;
}

}  // namespace truenorm::cli

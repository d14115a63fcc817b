// SPDX-License-Identifier: Apache-2.0
#include "terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace truenorm::cli {

int terminal_width() {
  winsize size{};
  if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return std::clamp(static_cast<int>(size.ws_col), 60, 120);
  }
  return 100;
}

bool terminal_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (!value || !*value) continue;  // POSIX: the first of the three that is set and not empty decides
    std::string text(value);
    std::transform(text.begin(), text.end(), text.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
    return text.find("utf-8") != std::string::npos || text.find("utf8") != std::string::npos;
  }
  return false;
}

int display_width(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string pad_right(std::string_view text, int width) {
  return std::string(text) + std::string(static_cast<size_t>(std::max(0, width - display_width(text))), ' ');
}

std::string pad_left(std::string_view text, int width) {
  return std::string(static_cast<size_t>(std::max(0, width - display_width(text))), ' ') + std::string(text);
}

std::vector<std::string> wrap(std::string_view text, int width, int indent) {
  std::vector<std::string> lines;
  const std::string margin(static_cast<size_t>(indent), ' ');
  std::string line;
  bool empty = true;  // whether `line` holds no word yet
  for (size_t start = 0; start <= text.size();) {
    size_t end = text.find(' ', start);
    if (end == std::string_view::npos) end = text.size();
    const std::string_view word = text.substr(start, end - start);
    if (!empty && display_width(line) + 1 + display_width(word) > width) {
      lines.push_back(line);
      line = margin;
      empty = true;
    }
    if (!empty) line += ' ';
    line += word;
    empty = false;
    start = end + 1;
  }
  lines.push_back(line);
  for (std::string& each : lines) std::replace(each.begin(), each.end(), kGlue, ' ');
  return lines;
}

}  // namespace truenorm::cli

// SPDX-License-Identifier: Apache-2.0
#include "table.h"

#include <algorithm>

#include "terminal.h"

namespace truenorm::cli {

std::string table(const std::vector<std::vector<std::string>>& rows, size_t text_columns, int indent) {
  std::vector<int> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], display_width(row[c]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line(static_cast<size_t>(indent), ' ');
    for (size_t c = 0; c < row.size(); ++c) {
      line += (c ? "  " : "") + (c < text_columns ? pad_right(row[c], widths[c]) : pad_left(row[c], widths[c]));
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace truenorm::cli

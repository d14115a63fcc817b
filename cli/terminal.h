// SPDX-License-Identifier: Apache-2.0
#ifndef TRUENORM_CLI_TERMINAL_H_
#define TRUENORM_CLI_TERMINAL_H_

#include <string>
#include <string_view>
#include <vector>

namespace truenorm::cli {

// Columns of the terminal on stdout, within 60 to 120; 100 when stdout is no terminal.
int terminal_width();

// Whether the locale says that the terminal shows UTF-8. Otherwise pictures are drawn in ASCII.
bool terminal_utf8();

// The columns that a text takes, for the characters that this command prints (each one column wide).
int display_width(std::string_view text);

// Pads with spaces on the right (left for numbers) to `width` columns.
std::string pad_right(std::string_view text, int width);
std::string pad_left(std::string_view text, int width);

// Breaks at spaces into lines of at most `width` columns where possible; lines after the first get `indent` spaces.
// kGlue becomes a space at which no line is broken.
inline constexpr char kGlue = '\x1F';
std::vector<std::string> wrap(std::string_view text, int width, int indent);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_TERMINAL_H_

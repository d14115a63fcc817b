// SPDX-License-Identifier: Apache-2.0
#ifndef TRUENORM_CLI_BAD_INPUT_H_
#define TRUENORM_CLI_BAD_INPUT_H_

#include <algorithm>
#include <stdexcept>
#include <string>

namespace truenorm::cli {

// Wrong use or bad input. The text is one line that names the value and what was expected; main prints it and
// returns 2.
struct BadInput : std::runtime_error {
  explicit BadInput(std::string text) : std::runtime_error(whole(text)) {}

 private:
  // what() ends at a byte 0, which names from damaged files may have.
  static const std::string& whole(std::string& text) {
    std::replace(text.begin(), text.end(), '\0', ' ');
    return text;
  }
};

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_BAD_INPUT_H_

// SPDX-License-Identifier: Apache-2.0
#ifndef TRUENORM_CLI_BAD_INPUT_H_
#define TRUENORM_CLI_BAD_INPUT_H_

#include <stdexcept>

namespace truenorm::cli {

// Wrong use or bad input. The text is one line that names the value and what was expected; main prints it and
// returns 2.
struct BadInput : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_BAD_INPUT_H_

// SPDX-License-Identifier: Apache-2.0
#ifndef TRUENORM_CLI_HELP_H_
#define TRUENORM_CLI_HELP_H_

#include <memory>

namespace CLI {
class FormatterBase;
}

namespace truenorm::cli {

// What --help prints, no wider than the terminal.
std::shared_ptr<CLI::FormatterBase> help_format();

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_HELP_H_

// SPDX-License-Identifier: Apache-2.0
#ifndef TRUENORM_CLI_OUTPUT_H_
#define TRUENORM_CLI_OUTPUT_H_

#include <string_view>

namespace truenorm::cli {

// Writes to stdout at once. BadInput when it cannot be written, as on a full disk.
void print_out(std::string_view text);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_OUTPUT_H_

// SPDX-License-Identifier: Apache-2.0
#ifndef TRUENORM_CLI_OUTPUT_H_
#define TRUENORM_CLI_OUTPUT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace truenorm::cli {

// Writes to stdout at once. BadInput when it cannot be written, as on a full disk.
void print_out(std::string_view text);

// A report as JSON. JSON has no numbers that are not finite: they are the strings "NaN", "Infinity" and "-Infinity",
// which Python's float() and JavaScript's Number() read. Bytes of names that are no UTF-8 are replaced.
void print_json(nlohmann::ordered_json report);

// One line without control characters, whatever the names of files and arrays are made of.
std::string one_line(std::string text);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_OUTPUT_H_

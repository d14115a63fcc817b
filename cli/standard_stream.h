// SPDX-License-Identifier: Apache-2.0
#ifndef TRUENORM_CLI_STANDARD_STREAM_H_
#define TRUENORM_CLI_STANDARD_STREAM_H_

#include <string>

namespace truenorm::cli {

// The system has names of its own for the standard streams. They become "-", so that what holds for it holds for them:
// one stream serves one array, and a file behind it is not replaced. For CLI::Option::transform().
inline std::string dash_for(const std::string& text, const std::string& stream, const std::string& number) {
  const bool own = text == "/dev/" + stream || text == "/dev/fd/" + number || text == "/proc/self/fd/" + number;
  return own ? "-" : text;
}
inline std::string dash_for_input(const std::string& text) { return dash_for(text, "stdin", "0"); }
inline std::string dash_for_output(const std::string& text) { return dash_for(text, "stdout", "1"); }

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_STANDARD_STREAM_H_

// SPDX-License-Identifier: Apache-2.0
//
// One file per command. Each function adds its command to the line's parser; the command runs when the line has been
// read, reports on stdout, and throws BadInput for what it cannot use.
#ifndef TRUENORM_CLI_COMMANDS_H_
#define TRUENORM_CLI_COMMANDS_H_

namespace CLI {
class App;
}

namespace truenorm::cli {

void add_explain(CLI::App& app);
void add_apply(CLI::App& app);
void add_stats(CLI::App& app);
void add_backward(CLI::App& app);
void add_info(CLI::App& app);
void add_bench(CLI::App& app);
void add_completion(CLI::App& app);
void add_manual(CLI::App& app);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_COMMANDS_H_

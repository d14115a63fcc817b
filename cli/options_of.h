// SPDX-License-Identifier: Apache-2.0
//
// The commands and options as the parser knows them, so that completions and the manual page cannot differ from it.
#ifndef TRUENORM_CLI_OPTIONS_OF_H_
#define TRUENORM_CLI_OPTIONS_OF_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace truenorm::cli {

struct OptionText {
  std::vector<std::string> names;  // "-o", "--output"; none for what is given by position
  std::string value;               // "FILE"; empty for a flag
  std::string description;
  std::string position;  // how usage shows what is given by position
  bool required = false;
};

inline std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

inline std::vector<OptionText> options_of(const CLI::App& command) {
  std::vector<OptionText> texts;
  for (const CLI::Option* option : command.get_options()) {
    OptionText text;
    for (const std::string& name : option->get_snames()) text.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) text.names.push_back("--" + name);
    if (option->get_items_expected_max() > 0) text.value = option->get_type_name();
    if (option->get_positional() && text.names.empty() && text.value.empty()) text.value = option->get_name();
    text.description = option->get_description();
    text.required = option->get_required();
    if (text.names.empty()) text.position = option->get_name() + (option->get_items_expected_max() > 1 ? "..." : "");
    texts.push_back(text);
  }
  return texts;
}

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_OPTIONS_OF_H_

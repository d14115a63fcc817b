// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "bad_input.h"
#include "commands.h"
#include "options_of.h"
#include "output.h"

namespace truenorm::cli {
namespace {

constexpr const char* kTypes = "float64 float32 float16 bfloat16";
constexpr const char* kShells = "bash zsh fish";

// The words that a value may be, where they are few; "FILE" stands for the names of files.
std::string values_of(const OptionText& option) {
  if (option.value == "TYPE") return kTypes;
  if (option.value == "SHELL") return kShells;
  if (option.value == "FILE" || option.value == "VALUES" || option.value == "[FILE:]PREFIX") return "FILE";
  return "";
}

std::string joined(const std::vector<std::string>& words, const std::string& between) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) text += (i ? between : "") + words[i];
  return text;
}

// What the first argument may be, and what any may be that begins with '-'.
std::string bash(const CLI::App& app) {
  std::string commands, cases;
  std::vector<std::string> global;
  for (const OptionText& option : options_of(app))
    global.insert(global.end(), option.names.begin(), option.names.end());
  for (const CLI::App* command : commands_of(app)) {
    commands += (commands.empty() ? "" : " ") + command->get_name();
    std::vector<std::string> names;
    std::string values, positional;
    for (const OptionText& option : options_of(*command)) {
      names.insert(names.end(), option.names.begin(), option.names.end());
      const std::string words = values_of(option);
      if (option.names.empty()) {
        positional = words;
      } else if (!option.value.empty()) {
        values += "        " + joined(option.names, "|") + ") " +
                  (words == "FILE" ? "_truenorm_files" : "COMPREPLY=($(compgen -W \"" + words + "\" -- \"$cur\"))") +
                  "; return ;;\n";
      }
    }
    cases +=
        "    " + command->get_name() + ")\n      case $prev in\n" + values +
        "      esac\n      if [[ $cur == -* ]]; then\n" + "        COMPREPLY=($(compgen -W \"" + joined(names, " ") +
        "\" -- \"$cur\"))\n      else\n        " +
        (positional == "FILE" ? "_truenorm_files" : "COMPREPLY=($(compgen -W \"" + positional + "\" -- \"$cur\"))") +
        "\n      fi ;;\n";
  }
  return "# Completion of truenorm for bash.\n"
         "_truenorm_files() {\n"
         "  compopt -o filenames 2>/dev/null\n"
         "  local IFS=$'\\n'\n"
         "  COMPREPLY=($(compgen -f -- \"$cur\"))\n"
         "}\n"
         "_truenorm() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  COMPREPLY=()\n"
         "  if [[ $COMP_CWORD -eq 1 ]]; then\n"
         "    COMPREPLY=($(compgen -W \"" +
         commands + " " + joined(global, " ") +
         "\" -- \"$cur\"))\n"
         "    return\n"
         "  fi\n"
         "  case ${COMP_WORDS[1]} in\n" +
         cases +
         "  esac\n"
         "}\n"
         "complete -F _truenorm truenorm\n";
}

std::string escaped(std::string text, const std::string& characters, const std::string& with) {
  for (size_t at = 0; (at = text.find_first_of(characters, at)) != std::string::npos; at += with.size() + 1)
    text.insert(at, with);
  return text;
}

// '...' of a shell, a quote inside written as that shell wants it.
std::string quoted(const std::string& text, const std::string& quote) {
  std::string inside;
  for (const char c : text) inside += c == '\'' ? quote : std::string(1, c);
  return "'" + inside + "'";
}
std::string zsh_quoted(const std::string& text) { return quoted(text, "'\\''"); }
std::string fish_quoted(const std::string& text) { return quoted(escaped(text, "\\", "\\"), "\\'"); }

std::string zsh(const CLI::App& app) {
  std::string commands, cases;
  for (const CLI::App* command : commands_of(app)) {
    commands += "    " + zsh_quoted(command->get_name() + ":" + escaped(command->get_description(), ":", "\\")) + "\n";
    cases += "    " + command->get_name() + ")\n      _arguments -s";
    int position = 0;
    for (const OptionText& option : options_of(*command)) {
      const std::string words = values_of(option);
      const std::string action = words == "FILE" ? "_files" : words.empty() ? " " : "(" + words + ")";
      const std::string label = option.value.empty() ? "value" : escaped(option.value, ":[]", "\\");
      if (option.names.empty()) {
        cases += " \\\n        " + zsh_quoted(std::to_string(++position) + ":" + label + ":" + action);
        continue;
      }
      for (const std::string& name : option.names) {
        cases += " \\\n        " + zsh_quoted(name + "[" + escaped(option.description, ":[]", "\\") + "]" +
                                          (option.value.empty() ? "" : ":" + label + ":" + action));
      }
    }
    cases += "\n      ;;\n";
  }
  return "#compdef truenorm\n"
         "# Completion of truenorm for zsh.\n"
         "_truenorm() {\n"
         "  local -a commands\n"
         "  commands=(\n" +
         commands +
         "  )\n"
         "  if (( CURRENT == 2 )); then\n"
         "    _describe command commands\n"
         "    return\n"
         "  fi\n"
         "  local command=${words[2]}\n"
         "  shift words\n"
         "  (( CURRENT-- ))\n"
         "  case $command in\n" +
         cases +
         "  esac\n"
         "}\n"
         "if [ \"$funcstack[1]\" = _truenorm ]; then\n"
         "  _truenorm \"$@\"\n"
         "else\n"
         "  compdef _truenorm truenorm\n"
         "fi\n";
}

std::string fish(const CLI::App& app) {
  std::string text = "# Completion of truenorm for fish.\ncomplete -c truenorm -n __fish_use_subcommand -f\n";
  for (const CLI::App* command : commands_of(app)) {
    text += "complete -c truenorm -n __fish_use_subcommand -a " + command->get_name() + " -d " +
            fish_quoted(command->get_description()) + "\n";
    for (const OptionText& option : options_of(*command)) {
      const std::string words = values_of(option);
      std::string line = "complete -c truenorm -n '__fish_seen_subcommand_from " + command->get_name() + "'";
      for (const std::string& name : option.names)
        line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (option.names.empty() && words == "FILE") continue;  // files are what fish offers anyway
      if (!option.value.empty()) line += words == "FILE" ? " -r -F" : words.empty() ? " -x" : " -x -a '" + words + "'";
      if (option.names.empty() && words.empty()) continue;
      text += line + " -d " + fish_quoted(option.description) + "\n";
    }
  }
  return text;
}

}  // namespace

void add_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print the completion for a shell");
  command->add_option("shell", *shell, "bash, zsh or fish")->type_name("SHELL")->required();
  command->footer(
      "Examples:\n"
      "  truenorm completion bash \\\n"
      "    > ~/.local/share/bash-completion/completions/truenorm\n"
      "  truenorm completion zsh > ~/.zfunc/_truenorm\n"
      "  truenorm completion fish > ~/.config/fish/completions/truenorm.fish");
  command->callback([shell, &app] {
    if (*shell == "bash") return print_out(bash(app));
    if (*shell == "zsh") return print_out(zsh(app));
    if (*shell == "fish") return print_out(fish(app));
    throw BadInput("'" + *shell + "' is no shell with a completion; expected bash, zsh or fish");
  });
}

}  // namespace truenorm::cli

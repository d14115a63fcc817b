// SPDX-License-Identifier: Apache-2.0
#include "help.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "options_of.h"
#include "terminal.h"

namespace truenorm::cli {
namespace {

// Where descriptions begin; a name that reaches further has a line of its own.
constexpr int kColumn = 28;

std::string entry(const std::string& name, const std::string& description, int width) {
  std::string text = "  " + name;
  if (display_width(text) + 2 > kColumn) text += "\n" + std::string(kColumn, ' ');
  else text = pad_right(text, kColumn);
  bool first = true;
  for (const std::string& line : wrap(description, width - kColumn, 0)) {
    text += (first ? "" : std::string(kColumn, ' ')) + line + "\n";
    first = false;
  }
  return text;
}

std::string left_side(const OptionText& option) {
  std::string text;
  for (const std::string& name : option.names) text += (text.empty() ? "" : ", ") + name;
  // An option without a short name begins where the long ones do.
  if (!option.names.empty() && option.names[0].starts_with("--")) text = "    " + text;
  if (!option.value.empty() && !option.names.empty()) text += " " + option.value;
  return option.names.empty() ? option.position : text;
}

class Help : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode) const override {
    const int width = std::min(terminal_width(), 100);
    const std::vector<const CLI::App*> commands = commands_of(*app);
    std::string usage = "Usage: " + name, arguments, options, subcommands;
    for (const OptionText& option : options_of(*app)) {
      std::string& list = option.names.empty() ? arguments : options;
      const std::string needed = option.required && !option.names.empty() ? " (required)" : "";
      list += entry(left_side(option), option.description + needed, width);
      if (option.names.empty()) usage += " " + option.position;
      else if (option.required) usage += " " + option.names[0] + " " + option.value;
    }
    for (const CLI::App* command : commands) subcommands += entry(command->get_name(), command->get_description(), width);
    usage += commands.empty() ? " [OPTIONS]" : " COMMAND [OPTIONS]";
    std::string text = usage + "\n\n";
    for (const std::string& line : wrap(app->get_description(), width, 0)) text += line + "\n";
    for (const auto& [title, list] : {std::pair{"Commands", subcommands}, {"Arguments", arguments}, {"Options", options}}) {
      if (!list.empty()) text += "\n" + std::string(title) + ":\n" + list;
    }
    return text + (app->get_footer().empty() ? "" : "\n" + app->get_footer() + "\n");
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_format() { return std::make_shared<Help>(); }

}  // namespace truenorm::cli

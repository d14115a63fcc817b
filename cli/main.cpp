// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <sstream>

#include "bad_input.h"
#include "commands.h"
#include "help.h"
#include "file_bytes.h"
#include "numbers.h"
#include "output.h"
#include "signals.h"
#include "truenorm/truenorm.h"

namespace {

using namespace truenorm::cli;

constexpr int kBadInput = 2;

int complain(const CLI::App& app, const std::string& message) {
  std::string line = "truenorm";
  for (const CLI::App* sub : app.get_subcommands()) line += " " + sub->get_name();
  line += ": " + plain_minus(message);
  std::fprintf(stderr, "%s\n", one_line(line).c_str());
  return kBadInput;
}

std::string names_of_commands(const CLI::App& app) {
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  std::string text;
  for (size_t i = 0; i < commands.size(); ++i)
    text += (i == 0 ? "" : i + 1 < commands.size() ? ", " : " or ") + commands[i]->get_name();
  return text;
}

// What an unset variable of a shell leaves is no value: it would count as not given.
void refuse_empty_values(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    for (CLI::Option* option : command->get_options([](CLI::Option* o) { return o->get_items_expected_max() > 0; }))
      option->check([](const std::string& value) { return std::string(value.empty() ? "'' is no value" : ""); });
  }
}

// A "--" says nothing where no argument after it begins with '-'; the parser would end a list of numbers there.
void drop_idle_mark(std::vector<std::string>& last_first) {
  const auto like_option = [](const std::string& each) { return each.size() > 1 && each.starts_with('-'); };
  const auto mark = std::find_if(last_first.begin(), last_first.end(), like_option);
  if (mark != last_first.end() && *mark == "--") last_first.erase(mark);
}

void parse(CLI::App& app, std::vector<std::string> arguments) {
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::Success& asked) {  // --help, --version
    std::ostringstream text;
    app.exit(asked, text);
    print_out(text.str());
  }
}

// The parser complains of what is missing before it complains of what it could not place, which is mostly the cause.
std::string wrong_use(const CLI::App& app, const CLI::ParseError& error) {
  const bool no_command = app.get_subcommands().empty();
  const std::vector<std::string> unplaced = app.remaining(true);
  if (!unplaced.empty()) {
    const std::string first = "'" + unplaced[0] + "' is no ";
    if (no_command && !unplaced[0].starts_with('-')) return first + "command; expected " + names_of_commands(app);
    return first + (unplaced[0].starts_with('-') ? "option here" : "argument that is expected here");
  }
  if (no_command && dynamic_cast<const CLI::RequiredError*>(&error))
    return "expected a command: " + names_of_commands(app);
  const std::string text = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error)) {  // "--eps: ..."
    const std::string option = text.substr(0, text.find(':'));
    return option + (text.ends_with("missing") ? ": has no value; expected one after it"
                                               : ": is given more than once; expected one value");
  }
  return text;
}

int run(int argc, char** argv) {
  CLI::App app("Layer normalization, right to the last place and bitwise the same everywhere.", "truenorm");
  app.set_version_flag("--version", std::string("truenorm ") + truenorm_version(), "Show the version");
  app.formatter(help_format());
  app.set_help_flag("-h,--help", "Show this help");
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  truenorm explain 3 1 5 7 --gamma 2 --beta 1\n"
      "  truenorm apply x.npy -o y.npy --gamma gamma.npy --beta beta.npy\n"
      "  truenorm COMMAND --help\n\n"
      "Exit status: 0 done, 1 the answer is no, 2 wrong use or bad input.");
  add_explain(app);
  add_apply(app);
  add_stats(app);
  add_backward(app);
  add_info(app);
  add_bench(app);
  add_completion(app);
  add_manual(app);
  refuse_empty_values(app);

  std::vector<std::string> arguments;  // last first, as the parser wants them
  for (int i = argc - 1; i > 0; --i) arguments.push_back(protect_minus(argv[i]));
  drop_idle_mark(arguments);
  try {
    parse(app, std::move(arguments));
    return 0;
  } catch (const ClosedPipe&) {
    end_by_closed_pipe();
  } catch (const BadInput& error) {
    return complain(app, error.what());
  } catch (const CLI::ParseError& error) {
    return complain(app, wrong_use(app, error) + " (--help shows how it is used)");
  } catch (const std::bad_alloc&) {
    return complain(app, "not enough memory");
  } catch (const std::length_error&) {  // a size that no allocation can have
    return complain(app, "not enough memory");
  } catch (const std::exception& error) {
    return complain(app, std::string("failed: ") + error.what());
  } catch (...) {
    return complain(app, "failed for an unknown reason");
  }
}

}  // namespace

int main(int argc, char** argv) {
  keep_standard_descriptors();
  handle_signals();
  try {
    return run(argc, argv);
  } catch (...) {  // no memory for the parser, or for a message: this needs none
    std::fputs("truenorm: not enough memory\n", stderr);
    return kBadInput;
  }
}

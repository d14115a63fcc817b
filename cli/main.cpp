// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <new>

#include "bad_input.h"
#include "commands.h"
#include "numbers.h"
#include "output.h"
#include "truenorm/truenorm.h"

namespace {

using namespace truenorm::cli;

constexpr int kBadInput = 2;

int complain(const CLI::App& app, std::string message) {
  std::string command = "truenorm";
  for (const CLI::App* sub : app.get_subcommands()) command += " " + sub->get_name();
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::fprintf(stderr, "%s: %s\n", command.c_str(), plain_minus(message).c_str());
  return kBadInput;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Layer normalization, right to the last place and bitwise the same everywhere.", "truenorm");
  app.set_version_flag("--version", std::string("truenorm ") + truenorm_version());
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  truenorm explain 3 1 5 7 --gamma 2 --beta 1\n"
      "  truenorm apply x.npy -o y.npy --gamma gamma.npy --beta beta.npy\n"
      "  truenorm COMMAND --help");
  add_explain(app);
  add_apply(app);
  add_stats(app);
  add_info(app);

  std::vector<std::string> arguments;  // last first, as the parser wants them
  for (int i = argc - 1; i > 0; --i) arguments.push_back(protect_minus(argv[i]));
  try {
    app.parse(std::move(arguments));
    return 0;
  } catch (const BadInput& error) {
    return complain(app, error.what());
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::RequiredError& missing) {
    const bool no_command = app.get_subcommands().empty();
    return complain(app, no_command
                             ? "expected a command: explain, apply, stats or info (--help shows how they are used)"
                             : std::string(missing.what()) + " (--help shows how it is used)");
  } catch (const CLI::ParseError& error) {
    return complain(app, std::string(error.what()) + " (--help shows how it is used)");
  } catch (const std::bad_alloc&) {
    return complain(app, "not enough memory");
  }
}

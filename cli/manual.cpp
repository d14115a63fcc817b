// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include "commands.h"
#include "options_of.h"
#include "output.h"
#include "truenorm/truenorm.h"

namespace truenorm::cli {
namespace {

// Hyphens that are typed, and no line that troff takes for a request.
std::string roff(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c == '.' || c == '\'') && (i == 0 || text[i - 1] == '\n')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string entry(const OptionText& option) {
  std::string text = ".TP\n";
  std::string names;
  for (const std::string& name : option.names)
    names += (names.empty() ? "" : ", ") + std::string("\\fB") + roff(name) + "\\fR";
  text += names;
  if (!option.value.empty()) text += std::string(names.empty() ? "" : " ") + "\\fI" + roff(option.value) + "\\fR";
  return text + "\n" + roff(option.description) + "\n";
}

std::string section(const CLI::App& command) {
  const std::string footer = command.get_footer();
  const size_t examples = footer.find('\n');
  std::string text = ".SS truenorm " + command.get_name() + "\n" + roff(command.get_description()) + ".\n";
  for (const OptionText& option : options_of(command)) {
    if (option.names.empty()) text += entry(option);
  }
  for (const OptionText& option : options_of(command)) {
    if (!option.names.empty()) text += entry(option);
  }
  if (examples != std::string::npos) text += ".PP\n.nf\n" + roff(footer.substr(examples + 1)) + "\n.fi\n";
  return text;
}

std::string page(const CLI::App& app) {
  std::string text =
      std::string(".TH TRUENORM 1 \"\" \"truenorm ") + truenorm_version() +
      "\" \"User Commands\"\n"
      ".SH NAME\ntruenorm \\- layer normalization of files of numbers\n"
      ".SH SYNOPSIS\n.B truenorm\n.I COMMAND\n.RI [ ARGUMENT ...]\n"
      ".SH DESCRIPTION\n" +
      roff(app.get_description()) +
      "\nEach row of d features becomes gamma*(x \\- mean)/sqrt(variance + eps) + beta, with the biased "
      "variance.\n"
      ".PP\nResults go to the standard output, progress and messages to the standard error.\n"
      "Rows and axes count from 0. Output files are there whole or not at all.\n"
      "In JSON a number that is not finite is the string \"NaN\", \"Infinity\" or \"\\-Infinity\".\n"
      ".SH FILES THAT ARE READ\n"
      ".TP\n.B .npy\nVersions 1 to 3 of NumPy's format, C or Fortran order, either byte order; bfloat16 as "
      "ml_dtypes stores it.\n"
      ".TP\n.B .npz\nAn array in it is named FILE:NAME; NAME may be left out where there is only one.\n"
      ".TP\n.B .safetensors\nLikewise, of types F64, F32, F16 and BF16.\n"
      ".TP\n.B \\-\nThe standard input: a .npy file is read as it comes; others, and axes that need it, "
      "are copied to a temporary file.\n"
      ".SH COMMANDS\n";
  for (const CLI::App* command : commands_of(app)) text += section(*command);
  return text +
         ".SH EXIT STATUS\n0 done; 1 the answer is no; 2 wrong use or bad input, said in one line.\n"
         ".SH ENVIRONMENT\n"
         ".TP\n.B TRUENORM_ISA\nCaps the instruction set; truenorm info shows those that there are.\n"
         ".TP\n.B TRUENORM_NUM_THREADS\nThe number of threads, from 1 to 1024, unless \\-\\-threads gives one.\n"
         ".TP\n.B TMPDIR\nThe folder of temporary files, else /var/tmp.\n";
}

}  // namespace

void add_manual(CLI::App& app) {
  CLI::App* command = app.add_subcommand("manual", "Print the manual page, for man");
  command->footer("Example:\n  truenorm manual | man -l -");
  command->callback([&app] { print_out(page(app)); });
}

}  // namespace truenorm::cli

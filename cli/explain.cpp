// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "bad_input.h"
#include "commands.h"
#include "elements.h"
#include "histogram.h"
#include "numbers.h"
#include "output.h"
#include "parameter.h"
#include "rows.h"
#include "standard_stream.h"
#include "terminal.h"
#include "walkthrough.h"

namespace truenorm::cli {
namespace {

// Every number of a walk-through is printed or at least held; nobody reads a longer one.
constexpr int64_t kMostFeatures = 1000000;

struct Options {
  std::vector<std::string> numbers;
  ParameterOptions parameters;
  std::string file, row, axis;
  bool histogram = false, json = false;
};

std::vector<double> row_of_file(const Options& options, std::string& file) {
  ArrayReader reader(options.file);
  file = reader.file();
  const ArrayHeader& header = reader.header();
  const RowLayout layout = row_layout(header, options.axis.empty() ? "-1" : options.axis, options.file);
  const std::string shape = options.file + ": has shape " + shape_text(header.shape);
  if (layout.rows() == 0) throw BadInput(shape + ", no rows; expected at least one");
  if (layout.d == 0) throw BadInput(shape + ", rows of no features; expected at least one feature");
  if (layout.d > kMostFeatures)
    throw BadInput(shape + ", rows of " + grouped(layout.d) + " features; expected at most " + grouped(kMostFeatures));
  const int64_t row = parse_integer(options.row.empty() ? "0" : options.row, "--row", 0, layout.rows() - 1);
  if (layout.inner > 1) reader.make_seekable();
  Bytes elements;
  RowReader(reader, layout, true).read({row, 1}, elements);
  return decode(elements, header.dtype);
}

std::vector<double> numbers_of_line(const Options& options) {
  std::string line;  // as it was typed: a list may go over several arguments
  for (const std::string& text : options.numbers) line += (line.empty() ? "" : " ") + text;
  return parse_list(line, "x");
}

void refuse_not_finite(const std::vector<double>& values, const std::string& name) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    throw BadInput((values.size() == 1 ? name : name + "[" + std::to_string(i) + "]") + " is " + shortest(values[i]) +
                   "; expected finite numbers");
  }
}

nlohmann::ordered_json to_json(const Walkthrough& w) {
  const ByHand& h = w.hand;
  const Computed& c = w.computed;
  nlohmann::ordered_json hand = {{"eps", 0},          {"sum", h.sum}, {"mean", h.mean}, {"squares", h.squares},
                                 {"variance", h.var}, {"sd", h.sd}};
  hand["constant"] = h.constant;
  if (!h.constant && !h.out_of_range) {
    hand.update({{"normalized", h.x_hat},
                 {"normalized_squares", h.x_hat_squares},
                 {"check", h.check},
                 {"y", h.y},
                 {"y_mean", h.y_mean},
                 {"y_sd", h.y_sd}});
  }
  return {{"d", w.x.size()},
          {"x", w.x},
          {"gamma", w.gamma},
          {"beta", w.beta},
          {"eps", w.eps},
          {"by_hand", hand},
          {"computed",
           {{"mean", c.mean},
            {"variance", c.var},
            {"sd", c.sd},
            {"rstd", c.rstd},
            {"normalized", c.x_hat},
            {"normalized_mean", c.x_hat_mean},
            {"normalized_sd", c.x_hat_sd},
            {"y", c.y},
            {"y_mean", c.y_mean},
            {"y_sd", c.y_sd}}}};
}

void run(const Options& options) {
  if (options.file.empty() == options.numbers.empty()) {
    throw BadInput(options.file.empty() ? "expected the numbers of one token, such as: truenorm explain 3 1 5 7"
                                        : "expected either numbers or --file, not both");
  }
  for (const auto& [option, value] : {std::pair{"--row", &options.row}, {"--axis", &options.axis}}) {
    if (!value->empty() && options.file.empty())
      throw BadInput(std::string(option) + ": " + plain_minus(*value) + " is of a file; expected --file beside it");
  }
  if (options.histogram && options.json) throw BadInput("--histogram: is no JSON; expected it without --json");
  const double eps = parse_eps(options.parameters.eps);
  std::string file;
  const std::vector<double> x = options.file.empty() ? numbers_of_line(options) : row_of_file(options, file);
  refuse_not_finite(x, "x");
  const auto [gamma, beta, files] = read_parameters(options.parameters, file, static_cast<int64_t>(x.size()));
  if (gamma) refuse_not_finite(gamma->values, "--gamma");
  if (beta) refuse_not_finite(beta->values, "--beta");

  const Walkthrough walkthrough = walk_through(x, gamma, beta, eps);
  if (options.json) return print_json(to_json(walkthrough));
  std::string text = to_text(walkthrough, terminal_width());
  if (options.histogram) {
    text += "\nThe features before and after, the mean as a dashed line\n\n" +
            before_after(x, walkthrough.computed.y, terminal_width(), terminal_utf8());
  }
  print_out(text);
}

}  // namespace

void add_explain(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("explain", "Normalize one token step by step, by hand and computed");
  command->add_option("numbers", options->numbers, "The features of one token, separated by spaces or commas")
      ->type_name("");
  command->add_option("--file", options->file, "Take the token from a .npy file or FILE:NAME instead")
      ->transform(dash_for_input)
      ->type_name("FILE");
  command->add_option("--row", options->row, "Which row of the file, from 0 [0]")->type_name("N");
  command->add_option("--axis", options->axis, "The axis of the file that is normalized over [-1]")->type_name("N");
  add_parameter_options(*command, options->parameters);
  command->add_flag("--histogram", options->histogram, "Draw the features before and after");
  command->add_flag("--json", options->json, "Print all values as JSON");
  command->footer(
      "Examples:\n"
      "  truenorm explain 3 1 5 7\n"
      "  truenorm explain 3 1 5 7 --gamma 2 --beta 1\n"
      "  truenorm explain -.5 1e-5 2 --gamma 1,2,1 --eps 1e-6\n"
      "  truenorm explain --file x.npy --row 3 --gamma gamma.npy --histogram");
  command->callback([options] { run(*options); });
}

}  // namespace truenorm::cli

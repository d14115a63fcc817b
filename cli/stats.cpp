// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "axis.h"
#include "bad_input.h"
#include "commands.h"
#include "elements.h"
#include "histogram.h"
#include "norm.h"
#include "npy.h"
#include "numbers.h"
#include "output.h"
#include "table.h"
#include "terminal.h"

namespace truenorm::cli {
namespace {

constexpr int64_t kPieceBytes = int64_t{8} << 20;

struct Options {
  std::string input, gamma, beta, eps = "1e-5", axis = "-1", limit = "20", histogram;
  bool json = false;
};

// The ranges of each statistic over all rows.
struct Ranges {
  double low[4] = {HUGE_VAL, HUGE_VAL, HUGE_VAL, HUGE_VAL};
  double high[4] = {-HUGE_VAL, -HUGE_VAL, -HUGE_VAL, -HUGE_VAL};
  int64_t not_finite = 0;

  void add(const RowSummary& row) {
    const double values[4] = {row.mean, row.sd, row.min, row.max};
    not_finite += !std::isfinite(row.mean) || !std::isfinite(row.sd);
    for (int i = 0; i < 4; ++i) {
      if (std::isnan(values[i])) continue;
      low[i] = std::min(low[i], values[i]);
      high[i] = std::max(high[i], values[i]);
    }
  }
};

struct Report {
  AxisLayout layout;
  std::vector<RowSummary> before, after;  // of the rows that are shown
  Ranges all_before, all_after;
  std::vector<double> row_before, row_after;  // of the row whose histogram was asked for
};

Report gather(const Options& options, NpyReader& x, int64_t limit) {
  Report report;
  report.layout = axis_layout(x.header(), options.axis, options.input);
  const AxisLayout& layout = report.layout;
  const int64_t picture =
      options.histogram.empty() ? -1 : parse_integer(options.histogram, "--histogram", 0, layout.rows() - 1);
  Norm norm;
  norm.d = layout.d;
  norm.x_dtype = norm.y_dtype = x.header().dtype;
  norm.parameters = encode_parameters(read_parameter(options.gamma, "--gamma"), read_parameter(options.beta, "--beta"),
                                      norm.x_dtype, layout.d);
  norm.eps = parse_eps(options.eps);

  const size_t size = truenorm_dtype_size(norm.x_dtype);
  const int64_t row_bytes = layout.d * static_cast<int64_t>(size);
  if (row_bytes == 0) return report;
  const int64_t piece = layout.inner > 1 ? layout.rows() : std::max<int64_t>(1, kPieceBytes / row_bytes);
  for (int64_t done = 0; done < layout.rows();) {
    const int64_t rows = std::min(piece, layout.rows() - done);
    std::vector<std::byte> elements(static_cast<size_t>(rows * row_bytes));
    x.read(elements);
    if (layout.inner > 1) elements = gather_rows(layout, elements, size);
    std::vector<std::byte> result(elements.size());
    norm(rows, elements.data(), result.data(), nullptr);
    const auto before = summarize(elements, norm.x_dtype, layout.d), after = summarize(result, norm.x_dtype, layout.d);
    for (int64_t r = 0; r < rows; ++r) {
      const auto at = static_cast<size_t>(r);
      report.all_before.add(before[at]);
      report.all_after.add(after[at]);
      if (limit == 0 || done + r < limit) {
        report.before.push_back(before[at]);
        report.after.push_back(after[at]);
      }
      if (done + r == picture) {
        const size_t start = at * static_cast<size_t>(row_bytes), bytes = static_cast<size_t>(row_bytes);
        report.row_before = decode(std::span(elements).subspan(start, bytes), norm.x_dtype);
        report.row_after = decode(std::span(result).subspan(start, bytes), norm.x_dtype);
      }
    }
    done += rows;
  }
  return report;
}

std::vector<std::string> cells(const std::string& row, const std::string& when, const RowSummary& s) {
  const double size = std::max(std::fabs(s.min), std::fabs(s.max));
  const auto text = [size](double v) { return fixed_or_exponent(v, 6, size); };
  return {row, when, text(s.mean), text(s.sd), text(s.unbiased_sd), text(s.min), text(s.max)};
}

void add_ranges(std::vector<std::vector<std::string>>& rows, const std::string& when, const Ranges& r) {
  const double size = std::max(std::fabs(r.low[2]), std::fabs(r.high[3]));
  for (const auto& [name, values] : {std::pair{"lowest", r.low}, std::pair{"highest", r.high}}) {
    std::vector<std::string> line = {name == std::string("lowest") ? when : "", name};
    for (int i = 0; i < 4; ++i) line.push_back(fixed_or_exponent(values[i], 6, size));
    rows.push_back(line);
  }
}

std::string to_text(const Options& options, const NpyHeader& header, const Report& report) {
  const int64_t rows = report.layout.rows();
  std::string text = options.input + ": " + truenorm_dtype_name(header.dtype) + ", shape " + shape_text(header.shape) +
                     ", " + grouped(rows) + " rows of " + grouped(report.layout.d) +
                     " features, eps = " + shortest(parse_eps(options.eps)) + "\n\n";
  if (!report.before.empty()) {
    std::vector<std::vector<std::string>> lines = {{"row", "", "mean", "sd (biased)", "sd (unbiased)", "min", "max"}};
    for (size_t r = 0; r < report.before.size(); ++r) {
      lines.push_back(cells(std::to_string(r), "before", report.before[r]));
      lines.push_back(cells("", "after", report.after[r]));
    }
    text += table(lines, 2);
    if (static_cast<int64_t>(report.before.size()) < rows) {
      text += "(the first " + std::to_string(report.before.size()) + " of " + grouped(rows) +
              " rows; --limit 0 shows all)\n";
    }
    std::vector<std::vector<std::string>> summary = {{"all rows", "", "mean", "sd (biased)", "min", "max"}};
    add_ranges(summary, "before", report.all_before);
    add_ranges(summary, "after", report.all_after);
    text += "\n" + table(summary, 2);
    if (report.all_before.not_finite) text += grouped(report.all_before.not_finite) + " rows hold NaN or Inf\n";
  }
  if (!report.row_before.empty()) {
    text += "\nThe features of row " + options.histogram + ", the mean as a dashed line\n\n" +
            before_after(report.row_before, report.row_after, terminal_width(), terminal_utf8());
  }
  return text;
}

nlohmann::ordered_json to_json(const RowSummary& s) {
  return {{"mean", s.mean}, {"sd", s.sd}, {"unbiased_sd", s.unbiased_sd}, {"min", s.min}, {"max", s.max}};
}

nlohmann::ordered_json to_json(const Ranges& r) {
  nlohmann::ordered_json json;
  const char* names[] = {"mean", "sd", "min", "max"};
  for (int i = 0; i < 4; ++i) json[names[i]] = {r.low[i], r.high[i]};
  json["rows_not_finite"] = r.not_finite;
  return json;
}

nlohmann::ordered_json to_json(const Options& options, const NpyHeader& header, const Report& report) {
  nlohmann::ordered_json json = {{"file", options.input}, {"dtype", truenorm_dtype_name(header.dtype)},
                                 {"shape", header.shape}, {"rows", report.layout.rows()},
                                 {"d", report.layout.d},  {"eps", parse_eps(options.eps)}};
  json["all_rows"] = {{"before", to_json(report.all_before)}, {"after", to_json(report.all_after)}};
  json["each_row"] = nlohmann::ordered_json::array();
  for (size_t r = 0; r < report.before.size(); ++r) {
    json["each_row"].push_back(
        {{"row", r}, {"before", to_json(report.before[r])}, {"after", to_json(report.after[r])}});
  }
  return json;
}

void run(const Options& options) {
  const int64_t limit = parse_integer(options.limit, "--limit", 0, INT64_MAX);
  NpyReader x(options.input);
  const Report report = gather(options, x, limit);
  if (options.json) return print_out(to_json(options, x.header(), report).dump(2) + "\n");
  print_out(to_text(options, x.header(), report));
}

}  // namespace

void add_stats(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("stats", "Show each row's mean, standard deviation and range, before and after");
  command->add_option("x", options->input, "A .npy file of float64, float32, float16 or bfloat16")
      ->type_name("FILE")
      ->required();
  command->add_option("--gamma", options->gamma, "A number, a comma-separated list or a .npy file [1]")
      ->type_name("VALUES");
  command->add_option("--beta", options->beta, "A number, a comma-separated list or a .npy file [0]")
      ->type_name("VALUES");
  command->add_option("--eps", options->eps, "Added to the variance, inside the square root [1e-5]")
      ->type_name("NUMBER");
  command
      ->add_option("--axis", options->axis,
                   "The axis normalized over; others than the last need the whole file in memory [-1]")
      ->type_name("N");
  command->add_option("--limit", options->limit, "How many rows to show; 0: all [20]")->type_name("N");
  command->add_option("--histogram", options->histogram, "Draw the features of this row before and after")
      ->type_name("ROW");
  command->add_flag("--json", options->json, "Print as JSON");
  command->footer(
      "Examples:\n"
      "  truenorm stats x.npy\n"
      "  truenorm stats x.npy --gamma gamma.npy --beta beta.npy --histogram 3");
  command->callback([options] { run(*options); });
}

}  // namespace truenorm::cli

// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "bad_input.h"
#include "commands.h"
#include "elements.h"
#include "histogram.h"
#include "numbers.h"
#include "operands.h"
#include "output.h"
#include "progress.h"
#include "row_summary.h"
#include "table.h"
#include "terminal.h"

namespace truenorm::cli {
namespace {

// A table of more rows is nothing to look at, and would have to be held in memory.
constexpr int64_t kMostShown = 100000;
// Features of a row of which a histogram is drawn: they are held in memory as float64.
constexpr int64_t kMostDrawn = 1000000;

struct Options {
  OperandOptions operands;
  std::string limit = "20", histogram;
  bool json = false;
};

// The ranges of each statistic over all rows.
struct Ranges {
  double low[4] = {HUGE_VAL, HUGE_VAL, HUGE_VAL, HUGE_VAL};
  double high[4] = {-HUGE_VAL, -HUGE_VAL, -HUGE_VAL, -HUGE_VAL};
  int64_t not_finite = 0;

  void add(const RowSummary& row) {
    const double values[4] = {row.mean, row.sd, row.min, row.max};
    not_finite += !row.finite();
    for (int i = 0; i < 4; ++i) {
      if (std::isnan(values[i])) continue;
      low[i] = std::min(low[i], values[i]);
      high[i] = std::max(high[i], values[i]);
    }
  }
};

struct Report {
  ArrayHeader header;
  RowLayout layout;
  double eps = 0;
  std::vector<RowSummary> before, after;  // of the rows that are shown
  Ranges all_before, all_after;
  std::vector<double> row_before, row_after;  // of the row whose histogram was asked for
};

std::vector<double> row_of(std::span<const std::byte> rows, int64_t row, const Operands& in) {
  const size_t bytes = static_cast<size_t>(in.layout.d) * in.element;
  return decode(rows.subspan(static_cast<size_t>(row) * bytes, bytes), in.norm.x_dtype);
}

Report gather(const Options& options, Operands& in) {
  Report report;
  report.header = in.x.header();
  report.layout = in.layout;
  report.eps = in.norm.eps;
  const int64_t rows = in.layout.rows();
  int64_t limit = parse_integer(options.limit, "--limit", 0, kMostShown);
  if (limit == 0 && rows > kMostShown) {
    throw BadInput("--limit: " + counted(rows, "row") + " are too many to show; expected at most " + grouped(kMostShown) +
                   " (truenorm apply --save-stats writes those of all rows)");
  }
  if (limit == 0) limit = rows;
  if (!options.histogram.empty() && in.layout.d > kMostDrawn) {
    throw BadInput("--histogram: a row has " + grouped(in.layout.d) + " features; expected at most " + grouped(kMostDrawn));
  }
  if (!options.histogram.empty() && options.json) throw BadInput("--histogram: is no JSON; expected it without --json");
  if (!options.histogram.empty() && rows == 0)
    throw BadInput("--histogram: row " + options.histogram + " of " + options.operands.input + ", which has no rows");
  const int64_t picture = options.histogram.empty() ? -1 : parse_integer(options.histogram, "--histogram", 0, rows - 1);
  if (in.layout.d == 0) return report;

  Progress progress(in.x.header().elements());
  RowReader reader(in.x, in.layout, in.pieces.gathered());
  Bytes x(in.place), y(in.place);
  for (Piece piece = in.pieces.after(0); piece.rows > 0; piece = in.pieces.after(piece.first + piece.rows)) {
    reader.read(piece, x);
    y.resize(x.size());
    in.norm(piece.rows, x.data(), y.data(), nullptr);
    const auto before = summarize(x, in.norm.x_dtype, in.layout.d, in.place),
               after = summarize(y, in.norm.x_dtype, in.layout.d, in.place);
    for (int64_t r = 0; r < piece.rows; ++r) {
      const auto at = static_cast<size_t>(r);
      report.all_before.add(before[at]);
      report.all_after.add(after[at]);
      if (piece.first + r < limit) {
        report.before.push_back(before[at]);
        report.after.push_back(after[at]);
      }
      if (piece.first + r == picture) {
        report.row_before = row_of(x, r, in);
        report.row_after = row_of(y, r, in);
      }
    }
    progress.show((piece.first + piece.rows) * in.layout.d);
  }
  in.x.finish();
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

std::string to_text(const Options& options, const Report& report) {
  const int64_t rows = report.layout.rows();
  std::string text = (options.operands.input == "-" ? "standard input" : one_line(options.operands.input)) + ": " +
                     truenorm_dtype_name(report.header.dtype) + ", shape " + shape_text(report.header.shape) + ", " +
                     counted(rows, "row") + " of " + counted(report.layout.d, "feature") +
                     ", eps = " + shortest(report.eps) + "\n\n";
  if (!report.before.empty()) {
    std::vector<std::vector<std::string>> lines = {{"row", "", "mean", "sd (biased)", "sd (unbiased)", "min", "max"}};
    for (size_t r = 0; r < report.before.size(); ++r) {
      lines.push_back(cells(std::to_string(r), "before", report.before[r]));
      lines.push_back(cells("", "after", report.after[r]));
    }
    text += table(lines, 2);
    if (static_cast<int64_t>(report.before.size()) < rows) {
      text += "(the first " + std::to_string(report.before.size()) + " of " + counted(rows, "row") +
              "; --limit N shows more)\n";
    }
    std::vector<std::vector<std::string>> summary = {{"all rows", "", "mean", "sd (biased)", "min", "max"}};
    add_ranges(summary, "before", report.all_before);
    add_ranges(summary, "after", report.all_after);
    text += "\n" + table(summary, 2);
    if (const int64_t n = report.all_before.not_finite)
      text += counted(n, "row") + (n == 1 ? " holds" : " hold") + " NaN or Inf\n";
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
  for (int i = 0; i < 4; ++i) {  // null where there is no number to give
    if (r.low[i] <= r.high[i]) json[names[i]] = {r.low[i], r.high[i]};
    else json[names[i]] = nullptr;
  }
  json["rows_not_finite"] = r.not_finite;
  return json;
}

nlohmann::ordered_json to_json(const Options& options, const Report& report) {
  nlohmann::ordered_json json = {{"file", options.operands.input}, {"dtype", truenorm_dtype_name(report.header.dtype)},
                                 {"shape", report.header.shape},   {"rows", report.layout.rows()},
                                 {"d", report.layout.d},           {"eps", report.eps}};
  json["all_rows"] = {{"before", to_json(report.all_before)}, {"after", to_json(report.all_after)}};
  json["each_row"] = nlohmann::ordered_json::array();
  for (size_t r = 0; r < report.before.size(); ++r) {
    json["each_row"].push_back(
        {{"row", r}, {"before", to_json(report.before[r])}, {"after", to_json(report.after[r])}});
  }
  return json;
}

void run(const Options& options) {
  Operands in(options.operands, [](const ArrayHeader& x, const RowLayout&) {
    return 2 * static_cast<int64_t>(truenorm_dtype_size(x.dtype));
  });
  const Report report = gather(options, in);
  if (options.json) return print_json(to_json(options, report));
  print_out(to_text(options, report));
}

}  // namespace

void add_stats(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("stats", "Show each row's mean, standard deviation and range, before and after");
  add_operand_options(*command, options->operands);
  command
      ->add_option("--limit", options->limit,
                   "How many rows to show; 0: all. The summary is over all rows in any case [20]")
      ->type_name("N");
  command->add_option("--histogram", options->histogram, "Draw the features of this row before and after")
      ->type_name("ROW");
  command->add_flag("--json", options->json, "Print as JSON");
  command->footer(
      "Examples:\n"
      "  truenorm stats x.npy\n"
      "  truenorm stats x.npy --gamma gamma.npy --beta beta.npy --histogram 3\n"
      "  truenorm stats model.safetensors:embeddings.weight --limit 5 --json");
  command->callback([options] { run(*options); });
}

}  // namespace truenorm::cli

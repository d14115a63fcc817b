// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "axis.h"
#include "bad_input.h"
#include "commands.h"
#include "elements.h"
#include "norm.h"
#include "npy.h"
#include "numbers.h"
#include "output.h"
#include "output_file.h"

namespace truenorm::cli {
namespace {

// Rows are read, normalized and written in pieces of about this size.
constexpr int64_t kPieceBytes = int64_t{8} << 20;

struct Options {
  std::string input, output, gamma, beta, eps = "1e-5", axis = "-1", out_dtype, threads = "0", save_stats;
  bool json = false;
};

// mean, var and rstd of each row as one record.
std::vector<std::byte> records(const RowStatistics& statistics) {
  std::vector<double> values;
  values.reserve(3 * statistics.mean.size());
  for (size_t r = 0; r < statistics.mean.size(); ++r) {
    values.insert(values.end(), {statistics.mean[r], statistics.var[r], statistics.rstd[r]});
  }
  return encode(values, TRUENORM_FLOAT64);
}

std::string statistics_header(const NpyHeader& x, const AxisLayout& layout) {
  const std::string fields[] = {"mean", "var", "rstd"};
  return npy_record_header(fields, layout.row_shape, x.fortran_order);
}

void refuse_inputs_as_outputs(const Options& options) {
  for (const std::string& output : {options.output, options.save_stats}) {
    for (const std::string& input : {options.input, options.gamma, options.beta}) {
      if (!output.empty() && !input.empty()) refuse_same_file(output, input);
    }
  }
  if (options.output == options.save_stats)
    throw BadInput("--save-stats: " + options.save_stats + " is the output as well");
}

// Along the last axis a piece of the file is rows one after another; otherwise the whole file is needed at once.
void normalize_file(const Norm& norm, const AxisLayout& layout, NpyReader& x, OutputFile& y,
                    OutputFile* statistics_file) {
  const size_t in = truenorm_dtype_size(norm.x_dtype), out = truenorm_dtype_size(norm.y_dtype);
  const int64_t row_bytes = layout.d * static_cast<int64_t>(in);
  const int64_t piece =
      layout.inner > 1 ? layout.rows() : std::max<int64_t>(1, kPieceBytes / std::max<int64_t>(1, row_bytes));
  RowStatistics statistics;
  for (int64_t done = 0; done < layout.rows();) {
    const int64_t rows = std::min(piece, layout.rows() - done);
    std::vector<std::byte> elements(static_cast<size_t>(rows * row_bytes));
    x.read(elements);
    if (layout.inner > 1) elements = gather_rows(layout, elements, in);
    std::vector<std::byte> result(static_cast<size_t>(rows * layout.d) * out);
    norm(rows, elements.data(), result.data(), statistics_file ? &statistics : nullptr);
    if (layout.inner > 1) result = scatter_rows(layout, result, out);
    y.write(result);
    if (statistics_file) statistics_file->write(records(statistics));
    done += rows;
  }
}

void run(const Options& options) {
  const auto gamma = read_parameter(options.gamma, "--gamma");
  const auto beta = read_parameter(options.beta, "--beta");
  NpyReader x(options.input);
  const AxisLayout layout = axis_layout(x.header(), options.axis, options.input);

  Norm norm;
  norm.d = layout.d;
  norm.x_dtype = x.header().dtype;
  norm.y_dtype = options.out_dtype.empty() ? norm.x_dtype : parse_dtype(options.out_dtype, "--out-dtype");
  norm.parameters = encode_parameters(gamma, beta, norm.x_dtype, layout.d);
  norm.eps = parse_eps(options.eps);
  norm.num_threads = static_cast<int>(parse_integer(options.threads, "--threads", 0, 1024));
  refuse_inputs_as_outputs(options);

  const auto start = std::chrono::steady_clock::now();
  NpyHeader y_header = x.header();
  y_header.dtype = norm.y_dtype;
  y_header.swapped = false;
  OutputFile y(options.output);
  y.write(npy_header(y_header));
  std::optional<OutputFile> statistics;
  if (!options.save_stats.empty()) {
    statistics.emplace(options.save_stats);
    statistics->write(statistics_header(x.header(), layout));
  }
  normalize_file(norm, layout, x, y, statistics ? &*statistics : nullptr);
  if (statistics) statistics->commit();
  y.commit();

  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto bytes = static_cast<double>(x.header().bytes() + y_header.bytes());
  if (options.json) {
    const nlohmann::ordered_json report = {{"output", options.output},
                                           {"rows", layout.rows()},
                                           {"d", layout.d},
                                           {"x_dtype", truenorm_dtype_name(norm.x_dtype)},
                                           {"y_dtype", truenorm_dtype_name(norm.y_dtype)},
                                           {"seconds", seconds},
                                           {"gb_per_second", bytes / seconds / 1e9}};
    print_out(report.dump(2) + "\n");
  } else {
    std::fprintf(stderr, "%s: %s rows of %s features, %s to %s, %.3f s, %.2f GB/s\n", options.output.c_str(),
                 grouped(layout.rows()).c_str(), grouped(layout.d).c_str(), truenorm_dtype_name(norm.x_dtype),
                 truenorm_dtype_name(norm.y_dtype), seconds, bytes / seconds / 1e9);
  }
}

}  // namespace

void add_apply(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("apply", "Normalize a file");
  command->add_option("x", options->input, "A .npy file of float64, float32, float16 or bfloat16")
      ->type_name("FILE")
      ->required();
  command->add_option("-o,--output", options->output, "The .npy file to write; it is there whole or not at all")
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
  command
      ->add_option("--out-dtype", options->out_dtype,
                   "Type of the output: that of x, or float32 for half x [that of x]")
      ->type_name("TYPE");
  command->add_option("--threads", options->threads, "Number of threads; 0: one per CPU [0]")->type_name("N");
  command
      ->add_option("--save-stats", options->save_stats,
                   "Write mean, var and rstd of each row to a .npy file of records")
      ->type_name("FILE");
  command->add_flag("--json", options->json, "Print what was done as JSON");
  command->footer(
      "Examples:\n"
      "  truenorm apply x.npy -o y.npy\n"
      "  truenorm apply x.npy -o y.npy --gamma gamma.npy --beta beta.npy --eps 1e-12\n"
      "  truenorm apply x.npy -o y.npy --axis 1 --save-stats stats.npy");
  command->callback([options] { run(*options); });
}

}  // namespace truenorm::cli

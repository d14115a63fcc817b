// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "bad_input.h"
#include "commands.h"
#include "elements.h"
#include "npy_header.h"
#include "numbers.h"
#include "operands.h"
#include "output.h"
#include "progress.h"
#include "standard_stream.h"

namespace truenorm::cli {
namespace {

struct Options {
  OperandOptions operands;
  std::string output, out_dtype, save_stats;
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

std::string statistics_header(const ArrayHeader& x, const RowLayout& layout) {
  const std::string fields[] = {"mean", "var", "rstd"};
  return npy_record_header(fields, layout.row_shape, x.fortran_order);
}

void check_outputs(const Options& options, const Operands& operands) {
  refuse_other_formats("--output", options.output);
  operands.refuse_inputs(options.output);
  if (options.json && (options.output == "-" || options.save_stats == "-"))
    throw BadInput("--json: the standard output is taken by an array already");
  if (options.save_stats.empty()) return;
  refuse_other_formats("--save-stats", options.save_stats);
  operands.refuse_inputs(options.save_stats);
  if (options.output == "-" && options.save_stats == "-")
    throw BadInput("--save-stats: the standard output can take one array, and --output names it too; expected a file");
  refuse_same_file(options.save_stats, options.output, "the output");
  // A header of a hundred bytes can have any number of them: their records would fill the disk.
  if (operands.layout.d == 0)
    throw BadInput("--save-stats: " + counted(operands.layout.rows(), "row") +
                   " of no features have no statistics; expected features, or no --save-stats");
}

void normalize_file(Operands& in, OutputFile& y, OutputFile* statistics_file, Progress& progress) {
  if (in.layout.d == 0) return;
  RowReader reader(in.x, in.layout, in.pieces.gathered());
  RowWriter writer(y, in.layout, truenorm_dtype_size(in.norm.y_dtype), in.pieces.gathered());
  RowStatistics statistics;
  Bytes rows(in.place), wider(in.place);
  for (Piece piece = in.pieces.after(0); piece.rows > 0; piece = in.pieces.after(piece.first + piece.rows)) {
    reader.read(piece, rows);
    // In place where that is possible: half as much memory to go through.
    const bool in_place = in.norm.y_dtype == in.norm.x_dtype;
    if (!in_place) wider.resize(rows.size() / in.element * truenorm_dtype_size(in.norm.y_dtype));
    Bytes& result = in_place ? rows : wider;
    in.norm(piece.rows, rows.data(), result.data(), statistics_file ? &statistics : nullptr);
    writer.write(piece, result);
    if (statistics_file) statistics_file->write(records(statistics));
    progress.show((piece.first + piece.rows) * in.layout.d);
  }
}

void run(const Options& options) {
  const bool wider = !options.out_dtype.empty();
  Operands in(options.operands, [&](const ArrayHeader& x, const RowLayout&) {
    return static_cast<int64_t>(truenorm_dtype_size(x.dtype)) + (wider ? 8 : 0);
  });
  in.norm.y_dtype = output_type(options.out_dtype, in.norm.x_dtype);
  in.norm.refuse_types();
  check_outputs(options, in);

  Progress progress(in.x.header().elements());
  ArrayHeader header = in.x.header();
  header.dtype = in.norm.y_dtype;
  header.swapped = false;
  const auto access = in.pieces.gathered() ? OutputFile::Access::kAnywhere : OutputFile::Access::kForwards;
  OutputFile y(options.output, access);
  y.write(npy_header(header));
  std::optional<OutputFile> statistics;
  if (!options.save_stats.empty()) {
    statistics.emplace(options.save_stats);
    statistics->write(statistics_header(in.x.header(), in.layout));
  }
  normalize_file(in, y, statistics ? &*statistics : nullptr, progress);
  in.x.finish();
  publish_all({statistics ? &*statistics : nullptr, &y});

  const double seconds = progress.finish();
  const auto bytes = static_cast<double>(in.x.header().bytes() + header.bytes());
  const char *from = truenorm_dtype_name(in.norm.x_dtype), *to = truenorm_dtype_name(in.norm.y_dtype);
  if (options.json) {
    const nlohmann::ordered_json report = {{"output", options.output},
                                           {"rows", in.layout.rows()},
                                           {"d", in.layout.d},
                                           {"x_dtype", from},
                                           {"y_dtype", to},
                                           {"seconds", seconds},
                                           {"gb_per_second", bytes / seconds / 1e9}};
    print_json(report);
  } else {
    std::fprintf(stderr, "%s: %s of %s, %s to %s, %.3f s, %.2f GB/s\n",
                 options.output == "-" ? "standard output" : one_line(options.output).c_str(),
                 counted(in.layout.rows(), "row").c_str(), counted(in.layout.d, "feature").c_str(), from, to, seconds,
                 bytes / seconds / 1e9);
  }
}

}  // namespace

void add_apply(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("apply", "Normalize a file");
  add_operand_options(*command, options->operands);
  command->add_option("-o,--output", options->output, "The .npy file to write, there whole or not at all; - for a pipe")
      ->transform(dash_for_output)
      ->type_name("FILE")
      ->required();
  command
      ->add_option("--out-dtype", options->out_dtype,
                   "Type of the output: that of x, or float32 for half x [that of x]")
      ->type_name("TYPE");
  command
      ->add_option("--save-stats", options->save_stats,
                   "Write mean, var and rstd of each row to a .npy file of records")
      ->transform(dash_for_output)
      ->type_name("FILE");
  command->add_flag("--json", options->json, "Print what was done as JSON");
  command->footer(
      "Examples:\n"
      "  truenorm apply x.npy -o y.npy\n"
      "  truenorm apply x.npy -o y.npy --gamma gamma.npy --beta 0.5 --eps 1e-12\n"
      "  truenorm apply x.npy -o y.npy \\\n"
      "    --prefix model.safetensors:encoder.layer.3.output.LayerNorm\n"
      "  truenorm apply batch.npz:hidden -o y.npy --axis 1 --save-stats s.npy\n"
      "  zcat x.npy.gz | truenorm apply - -o - | gzip > y.npy.gz");
  command->callback([options] { run(*options); });
}

}  // namespace truenorm::cli

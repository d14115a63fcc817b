// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
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
  std::string dy, dx, dgamma, dbeta, out_dtype, grad_dtype;
  bool json = false;
};

void check_dy(const Options& options, const ArrayReader& x, const ArrayReader& dy) {
  if (dy.header().shape != x.header().shape) {
    throw BadInput(options.dy + ": has shape " + shape_text(dy.header().shape) + "; expected that of x, " +
                   shape_text(x.header().shape));
  }
  const truenorm_dtype type = dy.header().dtype, x_type = x.header().dtype;
  if (type != x_type && !(is_half(x_type) && type == TRUENORM_FLOAT32)) {
    throw BadInput(options.dy + ": holds " + truenorm_dtype_name(type) + "; expected that of x, " +
                   truenorm_dtype_name(x_type) + (is_half(x_type) ? ", or float32" : ""));
  }
  if (dy.header().fortran_order != x.header().fortran_order && x.header().shape.size() > 1) {
    const bool fortran = x.header().fortran_order;
    const char* const change = fortran ? "asfortranarray" : "ascontiguousarray";
    throw BadInput(options.dy + ": is in " + (fortran ? "C" : "Fortran") + " order; expected that of x, " +
                   (fortran ? "Fortran" : "C") + " order (in Python: numpy." + change + "(dy) before numpy.save)");
  }
}

truenorm_dtype gradient_type(const Options& options, const Operands& in) {
  const truenorm_dtype gamma = in.norm.parameters.gamma.dtype;
  if (options.grad_dtype.empty()) return gamma;
  const truenorm_dtype type = parse_dtype(options.grad_dtype, "--grad-dtype");
  if (type != gamma && truenorm_dtype_size(type) <= truenorm_dtype_size(gamma))
    throw BadInput("--grad-dtype: " + options.grad_dtype + " is not wider than gamma's " + truenorm_dtype_name(gamma));
  return type;
}

void check_outputs(const Options& options, const Operands& in, const ArrayReader& dy) {
  const std::pair<const char*, std::string> outputs[] = {
      {"--dx", options.dx}, {"--dgamma", options.dgamma}, {"--dbeta", options.dbeta}};
  int standard = options.json;
  for (size_t i = 0; i < std::size(outputs); ++i) {
    const auto& [option, path] = outputs[i];
    if (path.empty()) continue;
    refuse_other_formats(option, path);
    in.refuse_inputs(path);
    refuse_same_file(path, dy.file());
    standard += path == "-";
    for (size_t j = 0; j < i; ++j) {
      const std::string& other = outputs[j].second;
      if (!other.empty() && (path != "-" || other != "-")) refuse_same_file(path, other, "an output");
    }
  }
  if (standard > 1)
    throw BadInput("the standard output can take one output, not " + std::to_string(standard) +
                   "; expected files for the others");
}

struct Outputs {
  std::optional<OutputFile> dx, dgamma, dbeta;
};

void write_parameter_gradient(std::optional<OutputFile>& file, Bytes& gradient, int64_t d, truenorm_dtype dtype) {
  if (!file) return;
  ArrayHeader header;
  header.dtype = dtype;
  header.shape = {d};
  file->write(npy_header(header));
  gradient.in_parts([&](std::span<std::byte> part, size_t) { file->write(part); });
}

void run_pieces(Operands& in, ArrayReader& dy, const GradientTypes& types, Outputs& out, Backward& backward,
                Progress& progress) {
  if (in.layout.d == 0) return;
  const bool gathered = in.pieces.gathered();
  RowReader x_reader(in.x, in.layout, gathered), dy_reader(dy, in.layout, gathered);
  std::optional<RowWriter> dx_writer;
  if (out.dx) dx_writer.emplace(*out.dx, in.layout, truenorm_dtype_size(types.dx), gathered);
  Bytes x_rows(in.place), dy_rows(in.place), other(in.place);
  for (Piece piece = in.pieces.after(0); piece.rows > 0; piece = in.pieces.after(piece.first + piece.rows)) {
    x_reader.read(piece, x_rows);
    dy_reader.read(piece, dy_rows);
    const bool in_place = types.dx == types.dy;
    if (!in_place && out.dx)
      other.resize(dy_rows.size() / truenorm_dtype_size(types.dy) * truenorm_dtype_size(types.dx));
    Bytes& dx_rows = in_place ? dy_rows : other;
    backward(piece.rows, dy_rows.data(), x_rows.data(), out.dx ? dx_rows.data() : nullptr);
    if (dx_writer) dx_writer->write(piece, dx_rows);
    progress.show((piece.first + piece.rows) * in.layout.d);
  }
}

void report(const Options& options, const Operands& in, truenorm_dtype gradient, double seconds, double bytes) {
  if (options.json) {
    nlohmann::ordered_json json = {{"rows", in.layout.rows()}, {"d", in.layout.d}};
    if (!options.dx.empty()) json["dx"] = options.dx;
    if (!options.dgamma.empty()) json["dgamma"] = options.dgamma;
    if (!options.dbeta.empty()) json["dbeta"] = options.dbeta;
    json.update({{"x_dtype", truenorm_dtype_name(in.norm.x_dtype)},
                 {"grad_dtype", truenorm_dtype_name(gradient)},
                 {"seconds", seconds},
                 {"gb_per_second", bytes / seconds / 1e9}});
    return print_json(json);
  }
  std::fprintf(stderr, "backward: %s of %s, %s, %.3f s, %.2f GB/s\n", counted(in.layout.rows(), "row").c_str(),
               counted(in.layout.d, "feature").c_str(), truenorm_dtype_name(in.norm.x_dtype), seconds,
               bytes / seconds / 1e9);
}

void run(const Options& options) {
  if (options.dx.empty() && options.dgamma.empty() && options.dbeta.empty())
    throw BadInput("expected at least one of --dx, --dgamma and --dbeta (--help shows how they are used)");
  const ParameterOptions& parameters = options.operands.parameters;
  const std::pair<const char*, std::string> others[] = {
      {"x", options.operands.input}, {"--gamma", parameters.gamma}, {"--beta", parameters.beta}};
  for (const auto& [name, value] : others) {
    if (options.dy == "-" && value == "-")
      throw BadInput(std::string(name) + " and dy are both the standard input; expected a file for one of them");
  }
  const int sums = !options.dgamma.empty() + !options.dbeta.empty();
  Operands in(options.operands, [&](const ArrayHeader& x, const RowLayout& layout) {
    // x, dy, and dx over dy or beside it; the gradients, and their totals in float64 where rows come one by one.
    const auto element = static_cast<int64_t>(truenorm_dtype_size(x.dtype));
    const int64_t totals = layout.rows() > 1 ? (element == 8 ? 16 : 8) : 0;
    return element + std::max<int64_t>(element, 4) + (options.out_dtype.empty() ? 0 : 4) + sums * (8 + totals);
  });
  ArrayReader dy(options.dy);
  check_dy(options, in.x, dy);
  if (in.pieces.gathered()) dy.make_seekable();
  GradientTypes types;
  types.dy = dy.header().dtype;
  types.dx = output_type(options.out_dtype, in.norm.x_dtype);
  types.parameters = gradient_type(options, in);
  check_outputs(options, in, dy);

  Progress progress(in.x.header().elements());
  Outputs out;
  const auto access = in.pieces.gathered() ? OutputFile::Access::kAnywhere : OutputFile::Access::kForwards;
  ArrayHeader header = in.x.header();
  header.dtype = types.dx;
  header.swapped = false;
  if (!options.dx.empty()) out.dx.emplace(options.dx, access).write(npy_header(header));
  if (!options.dgamma.empty()) out.dgamma.emplace(options.dgamma);
  if (!options.dbeta.empty()) out.dbeta.emplace(options.dbeta);
  Backward backward(in.norm, types, in.layout.rows(), !options.dgamma.empty(), !options.dbeta.empty());
  run_pieces(in, dy, types, out, backward, progress);
  in.x.finish();
  dy.finish();
  write_parameter_gradient(out.dgamma, backward.dgamma, in.layout.d, types.parameters);
  write_parameter_gradient(out.dbeta, backward.dbeta, in.layout.d, types.parameters);
  publish_all({out.dx ? &*out.dx : nullptr, out.dgamma ? &*out.dgamma : nullptr, out.dbeta ? &*out.dbeta : nullptr});
  const int64_t bytes = in.x.header().bytes() + dy.header().bytes() + (out.dx ? header.bytes() : 0);
  report(options, in, types.parameters, progress.finish(), static_cast<double>(bytes));
}

}  // namespace

void add_backward(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("backward", "The gradients of a file: dx, dgamma and dbeta");
  add_operand_options(*command, options->operands);
  options->operands.beta_counts = false;
  command->get_option("--beta")->description(
      "As in apply, so that the same parameters serve; its shape is checked, the gradients do not depend on it");
  command->add_option("dy", options->dy, "The gradient with respect to y, of x's shape and type")
      ->transform(dash_for_input)
      ->type_name("FILE")
      ->required();
  command->add_option("--dx", options->dx, "Write the gradient with respect to x")
      ->transform(dash_for_output)
      ->type_name("FILE");
  command->add_option("--dgamma", options->dgamma, "Write the gradient with respect to gamma")
      ->transform(dash_for_output)
      ->type_name("FILE");
  command->add_option("--dbeta", options->dbeta, "Write the gradient with respect to beta")
      ->transform(dash_for_output)
      ->type_name("FILE");
  command->add_option("--out-dtype", options->out_dtype, "Type of dx: that of x, or float32 for half x [that of x]")
      ->type_name("TYPE");
  command
      ->add_option("--grad-dtype", options->grad_dtype,
                   "Type of dgamma and dbeta: that of gamma, or a wider one [that of gamma; without gamma that of x]")
      ->type_name("TYPE");
  command->add_flag("--json", options->json, "Print what was done as JSON");
  command->footer(
      "Examples:\n"
      "  truenorm backward x.npy dy.npy --dx dx.npy --gamma gamma.npy\n"
      "  truenorm backward x.npy dy.npy --dgamma dgamma.npy --grad-dtype float64");
  command->callback([options] { run(*options); });
}

}  // namespace truenorm::cli

// SPDX-License-Identifier: Apache-2.0
#include "operands.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#include "bad_input.h"
#include "elements.h"
#include "numbers.h"
#include "standard_stream.h"

namespace truenorm::cli {
namespace {

Norm make_norm(const OperandOptions& options, const ArrayHeader& x, Parameters parameters, int64_t d, Place place) {
  if (!options.beta_counts) parameters.beta.reset();
  Norm norm;
  norm.d = d;
  norm.x_dtype = norm.y_dtype = x.dtype;
  norm.eps = parse_eps(options.parameters.eps);
  norm.num_threads = number_of_threads(options.threads);
  norm.place = place;
  norm.parameters = encode_parameters(parameters, x.dtype, d, place);
  return norm;
}

// Before anything of that size is allocated.
Place choose_place(const OperandOptions& options, const ArrayHeader& x, const RowLayout& layout, const BytesOfFeature& bytes) {
  const bool gamma = !options.parameters.gamma.empty() || !options.parameters.prefix.empty();
  const bool beta = options.beta_counts && (!options.parameters.beta.empty() || !options.parameters.prefix.empty());
  const auto element = static_cast<int64_t>(truenorm_dtype_size(x.dtype));
  const int64_t widest = std::max<int64_t>(element, 4);
  return place_of_rows(layout, static_cast<size_t>(element), bytes(x, layout) + widest * (gamma + beta), 3 * widest, options.memory, options.input);
}

}  // namespace

void add_operand_options(CLI::App& command, OperandOptions& options) {
  command
      .add_option("x", options.input,
                  "A .npy file, FILE:NAME for an array in a .npz or .safetensors file, or - for a pipe; float64, "
                  "float32, float16 or bfloat16")
      ->transform(dash_for_input)
      ->type_name("FILE")
      ->required();
  add_parameter_options(command, options.parameters);
  command.add_option("--axis", options.axis, "The axis normalized over [-1]")->type_name("N");
  command.add_option("--threads", options.threads, "Number of threads; 0: one per CPU [0]")->type_name("N");
  command
      .add_option("--memory", options.memory,
                  "How much memory may be used, such as 200M or 4G; rows of more than that lie in temporary files "
                  "[200M]")
      ->type_name("SIZE");
}

Operands::Operands(const OperandOptions& options, const BytesOfFeature& bytes)
    : x(options.input),
      layout(row_layout(x.header(), options.axis, options.input)),
      element(truenorm_dtype_size(x.header().dtype)),
      place(choose_place(options, x.header(), layout, bytes)),
      parameters(open_parameters(options.parameters, x.file(), layout.d)),
      norm(make_norm(options, x.header(), parameters, layout.d, place)),
      pieces(layout, element, place) {
  // The values are in the norm now; what is left tells which files they came from.
  parameters.gamma.reset();
  parameters.beta.reset();
  if (pieces.gathered()) x.make_seekable();
}

int32_t number_of_threads(const std::string& option) {
  constexpr int64_t kMost = 1024;
  const auto threads = static_cast<int32_t>(parse_integer(option, "--threads", 0, kMost));
  const char* variable = std::getenv("TRUENORM_NUM_THREADS");
  if (threads == 0 && variable && *variable)
    parse_integer(variable, "the environment variable TRUENORM_NUM_THREADS", 1, kMost);
  return threads;
}

truenorm_dtype output_type(const std::string& text, truenorm_dtype x) {
  if (text.empty()) return x;
  const truenorm_dtype type = parse_dtype(text, "--out-dtype");
  if (type != x && !(is_half(x) && type == TRUENORM_FLOAT32)) {
    const std::string own = truenorm_dtype_name(x);
    throw BadInput("--out-dtype: " + text + " for x of type " + own + "; expected " + own +
                   (is_half(x) ? " or float32" : ""));
  }
  return type;
}

void Operands::refuse_inputs(const std::string& output) const {
  refuse_same_file(output, x.file());
  for (const std::string& file : parameters.files) refuse_same_file(output, file);
}

}  // namespace truenorm::cli

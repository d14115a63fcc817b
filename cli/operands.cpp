// SPDX-License-Identifier: Apache-2.0
#include "operands.h"

#include <CLI/CLI.hpp>

#include "elements.h"
#include "numbers.h"

namespace truenorm::cli {
namespace {

Norm make_norm(const OperandOptions& options, const ArrayHeader& x, const Parameters& parameters, int64_t d) {
  Norm norm;
  norm.d = d;
  norm.x_dtype = norm.y_dtype = x.dtype;
  norm.parameters = encode_parameters(parameters, x.dtype, d);
  norm.eps = parse_eps(options.parameters.eps);
  norm.num_threads = static_cast<int>(parse_integer(options.threads, "--threads", 0, 1024));
  return norm;
}

// Before anything of that size is allocated. Parameters are held as float64, then as the library takes them.
RowLayout checked_layout(const OperandOptions& options, const ArrayReader& x, int copies) {
  const RowLayout layout = row_layout(x.header(), options.axis, options.input);
  const bool gamma = !options.parameters.gamma.empty() || !options.parameters.prefix.empty();
  const bool beta = !options.parameters.beta.empty() || !options.parameters.prefix.empty();
  const auto element = static_cast<int64_t>(truenorm_dtype_size(x.header().dtype));
  refuse_large_rows(layout, copies * element + 16 * (gamma + beta), parse_memory(options.memory), options.input,
                    options.memory);
  return layout;
}

}  // namespace

void add_operand_options(CLI::App& command, OperandOptions& options) {
  command
      .add_option("x", options.input,
                  "A .npy file, FILE:NAME for an array in a .npz or .safetensors file, or - for a pipe; float64, "
                  "float32, float16 or bfloat16")
      ->type_name("FILE")
      ->required();
  add_parameter_options(command, options.parameters);
  command.add_option("--axis", options.axis, "The axis normalized over [-1]")->type_name("N");
  command.add_option("--threads", options.threads, "Number of threads; 0: one per CPU [0]")->type_name("N");
  command.add_option("--memory", options.memory, "How much memory may be used; matters for rows of millions [200M]")
      ->type_name("SIZE");
}

Operands::Operands(const OperandOptions& options, int copies)
    : x(options.input),
      layout(checked_layout(options, x, copies)),
      element(truenorm_dtype_size(x.header().dtype)),
      parameters(read_parameters(options.parameters, x.file(), layout.d)),
      norm(make_norm(options, x.header(), parameters, layout.d)),
      pieces(layout, element) {
  // The values are in the norm now; what is left tells which files they came from.
  parameters.gamma.reset();
  parameters.beta.reset();
  if (pieces.gathered()) x.make_seekable();
}

void Operands::refuse_inputs(const std::string& output) const {
  refuse_same_file(output, x.file());
  for (const std::string& file : parameters.files) refuse_same_file(output, file);
}

}  // namespace truenorm::cli

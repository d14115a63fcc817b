// SPDX-License-Identifier: Apache-2.0
#ifndef TRUENORM_CLI_OPERANDS_H_
#define TRUENORM_CLI_OPERANDS_H_

#include <string>

#include "array_reader.h"
#include "norm.h"
#include "parameter.h"
#include "rows.h"

namespace truenorm::cli {

// What apply, stats and backward have in common on the line.
struct OperandOptions {
  std::string input, axis = "-1", threads = "0", memory = "200M";
  ParameterOptions parameters;
};
void add_operand_options(CLI::App& command, OperandOptions& options);

// x, opened and understood, with its parameters. `copies`: how many bytes of memory a feature of a row takes, in
// elements of x.
struct Operands {
  Operands(const OperandOptions& options, int copies);

  ArrayReader x;
  RowLayout layout;
  size_t element;
  Parameters parameters;
  Norm norm;  // y of x's type
  Pieces pieces;

  // BadInput when `output` is one of the files that are read.
  void refuse_inputs(const std::string& output) const;
};

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_OPERANDS_H_

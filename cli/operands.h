// SPDX-License-Identifier: Apache-2.0
#ifndef TRUENORM_CLI_OPERANDS_H_
#define TRUENORM_CLI_OPERANDS_H_

#include <functional>
#include <string>

#include "array_reader.h"
#include "norm.h"
#include "parameter.h"
#include "rows.h"

namespace truenorm::cli {

// What apply, stats and backward have in common on the line.
struct OperandOptions {
  std::string input, axis = "-1", threads = "0", memory = "200M";
  bool beta_counts = true;  // else it is checked only: nothing depends on its values or its type
  ParameterOptions parameters;
};
void add_operand_options(CLI::App& command, OperandOptions& options);

// How many bytes a command holds for each feature of a row, x included and the parameters left out.
using BytesOfFeature = std::function<int64_t(const ArrayHeader& x, const RowLayout& layout)>;

// The type of an output of x's shape: that of x where none was asked for, else that or, for half x, float32.
truenorm_dtype output_type(const std::string& text, truenorm_dtype x);

// From "--threads N". BadInput also for a TRUENORM_NUM_THREADS that counts and makes no sense: the library would go on
// without it.
int32_t number_of_threads(const std::string& option);

// x, opened and understood, with its parameters.
struct Operands {
  Operands(const OperandOptions& options, const BytesOfFeature& bytes);

  ArrayReader x;
  RowLayout layout;
  size_t element;
  Place place;  // of rows
  Parameters parameters;
  Norm norm;  // y of x's type
  Pieces pieces;

  // BadInput when `output` is one of the files that are read.
  void refuse_inputs(const std::string& output) const;
};

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_OPERANDS_H_

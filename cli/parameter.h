// SPDX-License-Identifier: Apache-2.0
//
// --gamma and --beta: a number, a comma-separated list or a file, the same in every command.
#ifndef TRUENORM_CLI_PARAMETER_H_
#define TRUENORM_CLI_PARAMETER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bytes.h"
#include "truenorm/truenorm.h"

namespace CLI {
class App;
}

namespace truenorm::cli {

class ArrayReader;

// As they stand on the line; empty where not given.
struct ParameterOptions {
  std::string gamma, beta, prefix, eps = "1e-5";
};
void add_parameter_options(CLI::App& command, ParameterOptions& options);

struct Parameter {
  std::string name;                     // "--gamma"
  std::vector<double> values;           // one for all features, or one a feature
  std::optional<truenorm_dtype> dtype;  // of the file that it comes from
  std::shared_ptr<ArrayReader> file;    // that has not been read yet

  std::vector<double> expanded(int64_t d) const;
};

struct Parameters {
  std::optional<Parameter> gamma, beta;
  std::vector<std::string> files;  // that they came from
};

// One value or d for each parameter, or BadInput. `x_file`: where names of arrays without a file are looked up. Files are
// open and their headers checked; read_parameters() also reads them.
Parameters open_parameters(const ParameterOptions& options, const std::string& x_file, int64_t d);
Parameters read_parameters(const ParameterOptions& options, const std::string& x_file, int64_t d);

// Elements of one type with what the C interface wants to know of them.
struct Elements {
  truenorm_dtype dtype = TRUENORM_FLOAT32;
  Bytes bytes;  // empty: absent

  truenorm_input input() const { return {bytes.empty() ? nullptr : bytes.data(), nullptr, dtype}; }
};

struct GammaBeta {
  Elements gamma;
  Elements beta;
};

// gamma and beta as the library takes them with this type of x: x's own type, but float32 for half x unless both come
// from files of that half type. Values that the type cannot hold are rounded once. Reads the files.
GammaBeta encode_parameters(const Parameters& parameters, truenorm_dtype x, int64_t d, Place place);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_PARAMETER_H_

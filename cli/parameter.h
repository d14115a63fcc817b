// SPDX-License-Identifier: Apache-2.0
//
// --gamma and --beta: a number, a comma-separated list or a .npy file, the same in every command.
#ifndef TRUENORM_CLI_PARAMETER_H_
#define TRUENORM_CLI_PARAMETER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "truenorm/truenorm.h"

namespace truenorm::cli {

struct Parameter {
  std::string name;                     // "--gamma"
  std::vector<double> values;           // one for all features, or one a feature
  std::optional<truenorm_dtype> dtype;  // of the file that it came from

  // One value a feature; BadInput when there are neither 1 nor d.
  std::vector<double> expanded(int64_t d) const;
};

// Empty when `text` is empty (the option was not given).
std::optional<Parameter> read_parameter(const std::string& text, const std::string& name);

// Elements of one type with what the C interface wants to know of them.
struct Elements {
  truenorm_dtype dtype = TRUENORM_FLOAT32;
  std::vector<std::byte> bytes;  // empty: absent

  truenorm_input input() const { return {bytes.empty() ? nullptr : bytes.data(), nullptr, dtype}; }
};

struct GammaBeta {
  Elements gamma;
  Elements beta;
};

// gamma and beta as the library takes them with this type of x: x's own type, but float32 for half x unless both come
// from files of that half type. Values that the type cannot hold are rounded once.
GammaBeta encode_parameters(const std::optional<Parameter>& gamma, const std::optional<Parameter>& beta,
                            truenorm_dtype x, int64_t d);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_PARAMETER_H_

// SPDX-License-Identifier: Apache-2.0
#include "parameter.h"

#include <unistd.h>

#include "bad_input.h"
#include "elements.h"
#include "npy.h"
#include "numbers.h"

namespace truenorm::cli {
namespace {

Parameter read_file(const std::string& path, const std::string& name) {
  NpyReader reader(path);
  const NpyHeader& header = reader.header();
  // A vector, possibly with further axes of size 1, or a single value.
  int wide = 0;
  for (const int64_t size : header.shape) wide += size != 1;
  if (wide > 1)
    throw BadInput(name + ": " + path + " has shape " + shape_text(header.shape) + "; expected one value a feature");
  return {name, decode(reader.read_rest(), header.dtype), header.dtype};
}

bool names_a_file(const std::string& text) {
  return text.ends_with(".npy") || text.find('/') != std::string::npos || access(text.c_str(), F_OK) == 0;
}

}  // namespace

std::vector<double> Parameter::expanded(int64_t d) const {
  if (values.size() == 1) return std::vector<double>(static_cast<size_t>(d), values[0]);
  if (static_cast<int64_t>(values.size()) != d) {
    throw BadInput(name + " has " + std::to_string(values.size()) + " values, x has " + std::to_string(d) +
                   " features; expected 1 or " + std::to_string(d));
  }
  return values;
}

std::optional<Parameter> read_parameter(const std::string& text, const std::string& name) {
  if (text.empty()) return std::nullopt;
  if (!read_number(text) && names_a_file(text)) return read_file(text, name);
  return Parameter{name, parse_list(text, name), std::nullopt};
}

GammaBeta encode_parameters(const std::optional<Parameter>& gamma, const std::optional<Parameter>& beta,
                            truenorm_dtype x, int64_t d) {
  truenorm_dtype dtype = x;
  if (is_half(x) && ((gamma && gamma->dtype != x) || (beta && beta->dtype != x))) dtype = TRUENORM_FLOAT32;
  GammaBeta both;
  both.gamma.dtype = both.beta.dtype = dtype;
  if (gamma) both.gamma.bytes = encode(gamma->expanded(d), dtype);
  if (beta) both.beta.bytes = encode(beta->expanded(d), dtype);
  return both;
}

}  // namespace truenorm::cli

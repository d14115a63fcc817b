// SPDX-License-Identifier: Apache-2.0
#include "parameter.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "array_reader.h"
#include "bad_input.h"
#include "elements.h"
#include "numbers.h"
#include "standard_stream.h"

namespace truenorm::cli {
namespace {

[[noreturn]] void wrong_length(const std::string& name, int64_t values, int64_t d) {
  const std::string either = d == 1 ? "" : "1 or ";
  throw BadInput(name + " has " + counted(values, "value") + ", x has " + counted(d, "feature") + "; expected " + either +
                 grouped(d));
}

Parameter open_file(const std::string& path, const std::string& name, int64_t d) {
  auto reader = std::make_shared<ArrayReader>(path);
  const ArrayHeader& header = reader->header();
  // A vector, possibly with further axes of size 1, or a single value. Looked at before anything is read.
  int wide = 0;
  for (const int64_t size : header.shape) wide += size != 1;
  if (wide > 1) throw BadInput(path + " has shape " + shape_text(header.shape) + "; expected one value a feature");
  const int64_t n = header.elements();
  if (n != 1 && n != d) wrong_length(path, n, d);
  return {name, {}, header.dtype, std::move(reader)};
}

// Calls each(value) for all values of the file, of which few are in memory at the same time.
template <typename Each>
void for_values(ArrayReader& file, const Each& each) {
  const ArrayHeader& header = file.header();
  std::vector<std::byte> elements;
  for (int64_t left = header.elements(); left > 0;) {
    const int64_t n = std::min<int64_t>(left, int64_t{1} << 16);
    elements.resize(static_cast<size_t>(n) * truenorm_dtype_size(header.dtype));
    file.read(elements);
    for (const double value : decode(elements, header.dtype)) each(value);
    left -= n;
  }
  file.finish();
}

bool is_list(const std::string& text) {
  try {
    parse_list(text, "");
    return true;
  } catch (const BadInput&) {
    return false;
  }
}

bool names_a_file(const std::string& text) {
  return text == "-" || text.ends_with(".npy") || text.find('/') != std::string::npos ||
         access(split_array_name(text).file.c_str(), F_OK) == 0;
}

class Reader {
 public:
  Reader(const std::string& x_file, int64_t d) : x_file_(x_file), d_(d) {}

  std::optional<Parameter> read(const std::string& text, const std::string& name) {
    if (text.empty()) return std::nullopt;
    if (!is_list(text)) {
      if (names_a_file(text)) return from_file(text, name);
      if (!members().empty()) return from_file(x_file_ + ":" + text, name);
      if (text.find(',') == std::string::npos)
        throw BadInput(name + ": '" + plain_minus(text) + "' is not a number, a list of numbers or a file");
    }
    Parameter parameter{name, parse_list(text, name), std::nullopt, nullptr};
    const auto n = static_cast<int64_t>(parameter.values.size());
    if (n != 1 && n != d_) wrong_length(name, n, d_);
    return parameter;
  }

  // The names that frameworks give the two parameters of a norm.
  void read_prefix(const std::string& prefix, Parameters& parameters) {
    ArrayName place = split_array_name(prefix);
    if (place.member.empty()) place = {x_file_, prefix};
    const std::vector<std::string> names = arrays_in(place.file);
    if (names.empty()) {
      throw BadInput("--prefix: " + (place.file.empty() ? "'" + prefix + "'" : place.file) +
                     " is no .npz or .safetensors file; expected FILE:PREFIX");
    }
    const auto find = [&](std::initializer_list<const char*> endings, const char* what) -> std::optional<Parameter> {
      for (const char* ending : endings) {
        const std::string name = place.member + "." + ending;
        if (std::find(names.begin(), names.end(), name) != names.end())
          return from_file(place.file + ":" + name, std::string("--prefix, ") + what);
      }
      return std::nullopt;
    };
    parameters.gamma = find({"weight", "gamma", "scale"}, "gamma");
    parameters.beta = find({"bias", "beta"}, "beta");
    if (!parameters.gamma && !parameters.beta) {
      throw BadInput("--prefix: " + place.file + " has neither '" + place.member + ".weight' nor '" + place.member +
                     ".bias'; it holds " + some_of(names));
    }
  }

  std::vector<std::string> files;

 private:
  Parameter from_file(const std::string& text, const std::string& name) {
    if (text == "-" && x_file_ == "-") throw BadInput(name + ": the standard input is x already; expected a file");
    if (text == "-" && std::find(files.begin(), files.end(), "-") != files.end())
      throw BadInput(name + ": the standard input is --gamma already; expected a file");
    files.push_back(split_array_name(text).file);
    try {
      return open_file(text, name, d_);
    } catch (const BadInput& error) {
      throw BadInput(name + ": " + error.what());
    }
  }
  const std::vector<std::string>& members() {
    if (!members_) members_ = arrays_in(x_file_);
    return *members_;
  }

  std::string x_file_;
  int64_t d_;
  std::optional<std::vector<std::string>> members_;
};

Elements encode_one(const std::optional<Parameter>& parameter, truenorm_dtype dtype, int64_t d, Place place) {
  Elements elements{dtype, Bytes(place)};
  if (!parameter) return elements;
  const size_t size = truenorm_dtype_size(dtype);
  std::vector<double> values = parameter->values;
  std::byte* to = nullptr;
  const auto put = [&](double value) {
    encode(value, dtype, to);
    to += size;
  };
  elements.bytes.resize(static_cast<size_t>(d) * size);
  to = elements.bytes.data();
  if (parameter->file && parameter->file->header().elements() == d) {
    int64_t count = 0;
    for_values(*parameter->file, [&](double value) {
      put(value);
      if (++count % (int64_t{1} << 20) == 0) forget_mapped();
    });
    return elements;
  }
  if (parameter->file) for_values(*parameter->file, [&](double value) { values.push_back(value); });
  elements.bytes.in_parts([&](std::span<std::byte> part, size_t at) {
    for (size_t i = 0; i < part.size() / size; ++i) put(values[values.size() == 1 ? 0 : at / size + i]);
  });
  return elements;
}

}  // namespace

void add_parameter_options(CLI::App& command, ParameterOptions& options) {
  command.add_option("--gamma", options.gamma, "A number, a comma-separated list or a file [1]")
      ->transform(dash_for_input)
      ->type_name("VALUES");
  command.add_option("--beta", options.beta, "A number, a comma-separated list or a file [0]")
      ->transform(dash_for_input)
      ->type_name("VALUES");
  command
      .add_option("--prefix", options.prefix,
                  "Take gamma and beta from the arrays PREFIX.weight and PREFIX.bias of a .safetensors or .npz file "
                  "[that of x]")
      ->type_name("[FILE:]PREFIX");
  command.add_option("--eps", options.eps, "Added to the variance, inside the square root [1e-5]")->type_name("NUMBER");
}

std::vector<double> Parameter::expanded(int64_t d) const {
  return values.size() == 1 ? std::vector<double>(static_cast<size_t>(d), values[0]) : values;
}

Parameters open_parameters(const ParameterOptions& options, const std::string& x_file, int64_t d) {
  Reader reader(x_file, d);
  Parameters parameters;
  if (options.prefix.empty()) {
    parameters.gamma = reader.read(options.gamma, "--gamma");
    parameters.beta = reader.read(options.beta, "--beta");
  } else {
    if (!options.gamma.empty() || !options.beta.empty())
      throw BadInput("--prefix: " + options.prefix + " names gamma and beta; expected no --gamma and --beta beside it");
    reader.read_prefix(options.prefix, parameters);
  }
  parameters.files = reader.files;
  return parameters;
}

Parameters read_parameters(const ParameterOptions& options, const std::string& x_file, int64_t d) {
  Parameters parameters = open_parameters(options, x_file, d);
  for (std::optional<Parameter>* each : {&parameters.gamma, &parameters.beta}) {
    if (!*each || !(*each)->file) continue;
    for_values(*(*each)->file, [&](double value) { (*each)->values.push_back(value); });
    (*each)->file.reset();
  }
  return parameters;
}

GammaBeta encode_parameters(const Parameters& parameters, truenorm_dtype x, int64_t d, Place place) {
  const auto& [gamma, beta, files] = parameters;
  truenorm_dtype dtype = x;
  if (is_half(x) && ((gamma && gamma->dtype != x) || (beta && beta->dtype != x))) dtype = TRUENORM_FLOAT32;
  return {encode_one(gamma, dtype, d, place), encode_one(beta, dtype, d, place)};
}

}  // namespace truenorm::cli

// SPDX-License-Identifier: Apache-2.0
//
// What the folder data/ holds.
#ifndef TRUENORM_CLI_DEMO_ACTIVATIONS_H_
#define TRUENORM_CLI_DEMO_ACTIVATIONS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace truenorm::cli {

// One layer norm of the model, with what went in and what came out. Values are float32 ones.
struct RecordedNorm {
  std::string name;    // "layer2_output"
  std::string module;  // "encoder.layer.2.output.LayerNorm"
  double eps = 0;
  int64_t rows = 0, d = 0;
  std::vector<double> x, gamma, beta, y;
};

struct RecordedModel {
  std::string name, torch, sentence;
  std::vector<std::string> tokens;
  std::vector<RecordedNorm> norms;
};

RecordedModel read_model(const std::string& data);

struct Array {
  std::vector<int64_t> shape;
  std::vector<double> values;
};
Array read_array(const std::string& path);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_DEMO_ACTIVATIONS_H_

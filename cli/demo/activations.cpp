// SPDX-License-Identifier: Apache-2.0
#include "activations.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "array_reader.h"
#include "bad_input.h"
#include "elements.h"

namespace truenorm::cli {

Array read_array(const std::string& path) {
  ArrayReader reader(path);
  std::vector<std::byte> elements(static_cast<size_t>(reader.header().bytes()));
  reader.read(elements);
  return {reader.header().shape, decode(elements, reader.header().dtype)};
}

RecordedModel read_model(const std::string& data) {
  const std::string folder = data + "/minilm/";
  std::ifstream file(folder + "index.json");
  if (!file) throw BadInput(folder + "index.json: cannot be opened; expected the folder data/ of the repository");
  const nlohmann::json index = nlohmann::json::parse(file);
  RecordedModel model{index.at("model"), index.at("torch"), index.at("sentence"), index.at("tokens"), {}};
  for (const nlohmann::json& entry : index.at("norms")) {
    RecordedNorm norm;
    norm.name = entry.at("folder");
    norm.module = entry.at("module");
    norm.eps = entry.at("eps");
    const std::string path = folder + norm.name + "/";
    norm.gamma = read_array(path + "gamma.npy").values;
    norm.beta = read_array(path + "beta.npy").values;
    norm.x = read_array(path + "x.npy").values;
    norm.y = read_array(path + "y.npy").values;
    norm.d = static_cast<int64_t>(norm.gamma.size());
    norm.rows = static_cast<int64_t>(norm.x.size()) / norm.d;
    model.norms.push_back(std::move(norm));
  }
  return model;
}

}  // namespace truenorm::cli

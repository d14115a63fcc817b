// SPDX-License-Identifier: Apache-2.0
//
// The parts of the demonstration, each a text.
#ifndef TRUENORM_CLI_DEMO_SECTIONS_H_
#define TRUENORM_CLI_DEMO_SECTIONS_H_

#include <string>

#include "activations.h"
#include "norm.h"

namespace truenorm::cli {

// A recorded norm in one of the four types: its values as that type holds them, and this library's output.
struct InType {
  std::vector<double> x, gamma, beta, y;
};
InType run_in_type(const RecordedNorm& recorded, truenorm_dtype dtype);

std::string real_activations(const RecordedModel& model, int width);
std::string against_the_model(const RecordedModel& model, int width);
std::string four_types(const RecordedModel& model, int width);
std::string histograms(const RecordedModel& model, const std::string& data, int width, bool utf8);
std::string worked_batch(const std::string& data, int width);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_DEMO_SECTIONS_H_

// SPDX-License-Identifier: Apache-2.0
#include "output.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "bad_input.h"
#include "signals.h"

namespace truenorm::cli {
namespace {

void spell_out_not_finite(nlohmann::ordered_json& json) {
  if (json.is_structured()) {
    for (auto& each : json) spell_out_not_finite(each);
  } else if (json.is_number_float() && !std::isfinite(json.get<double>())) {
    const double value = json.get<double>();
    json = std::isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity";
  }
}

}  // namespace

void print_out(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    if (errno == EPIPE) throw ClosedPipe();
    if (errno == EBADF) throw BadInput("the standard output is closed; expected a terminal, a file or a pipe");
    throw BadInput(std::string("the standard output cannot be written: ") + std::strerror(errno));
  }
}

std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, ' ');
  return text;
}

void print_json(nlohmann::ordered_json report) {
  spell_out_not_finite(report);
  print_out(report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace truenorm::cli

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "bad_input.h"
#include "elements.h"
#include "numbers.h"
#include "row_summary.h"
#include "sections.h"
#include "table.h"
#include "terminal.h"
#include "truth.h"

namespace truenorm::cli {
namespace {

std::string paragraph(const std::string& text, int width) {
  std::string lines;
  for (const std::string& line : wrap(text, width - 3, 0)) lines += "   " + line + "\n";
  return lines;
}

std::string from_to(double low, double high, int places) { return fixed(low, places) + " to " + fixed(high, places); }

// Means and standard deviations of all tokens, and the range of all values.
std::vector<std::string> summary_cells(const std::string& when, const std::vector<double>& values, int64_t d,
                                       int places) {
  Bytes elements = encode(values, TRUENORM_FLOAT64);
  const auto rows = summarize(elements, TRUENORM_FLOAT64, d);
  const auto range = [&](double RowSummary::*field) {
    const auto [low, high] = std::minmax_element(
        rows.begin(), rows.end(), [field](const RowSummary& a, const RowSummary& b) { return a.*field < b.*field; });
    return from_to((*low).*field, (*high).*field, places);
  };
  const auto [smallest, largest] = std::minmax_element(values.begin(), values.end());
  return {when, range(&RowSummary::mean), range(&RowSummary::sd), from_to(*smallest, *largest, 2)};
}

std::string scientific(double value) { return fixed_or_exponent(value, 1, value == 0 ? 0 : 1e-99); }

}  // namespace

InType run_in_type(const RecordedNorm& recorded, truenorm_dtype dtype) {
  Norm norm;
  norm.d = recorded.d;
  norm.x_dtype = norm.y_dtype = dtype;
  norm.parameters.gamma = {dtype, encode(recorded.gamma, dtype)};
  norm.parameters.beta = {dtype, encode(recorded.beta, dtype)};
  norm.eps = recorded.eps;
  const std::vector<std::byte> x = encode(recorded.x, dtype);
  std::vector<std::byte> y(x.size());
  norm(recorded.rows, x.data(), y.data(), nullptr);
  return {decode(x, dtype), decode(norm.parameters.gamma.bytes, dtype), decode(norm.parameters.beta.bytes, dtype),
          decode(y, dtype)};
}

std::string real_activations(const RecordedModel& model, int width) {
  const RecordedNorm& first = model.norms.front();
  std::string text = paragraph("The model " + model.name + " read \"" + model.sentence +
                                   "\": " + std::to_string(first.rows) + " tokens of " + std::to_string(first.d) +
                                   " features. Below is what four of its norms were given, and what "
                                   "layer normalization makes of it; the smallest and the largest of all tokens.",
                               width) +
                     "\n";
  std::vector<std::vector<std::string>> rows = {{"norm", "mean of a token", "sd of a token", "values"}};
  for (const RecordedNorm& norm : model.norms) {
    RecordedNorm plain = norm;
    std::fill(plain.gamma.begin(), plain.gamma.end(), 1.0);
    std::fill(plain.beta.begin(), plain.beta.end(), 0.0);
    rows.push_back({norm.name});
    rows.push_back(summary_cells("  before", norm.x, norm.d, 3));
    rows.push_back(summary_cells("  normalized", run_in_type(plain, TRUENORM_FLOAT32).y, norm.d, 5));
    rows.push_back(summary_cells("  gamma, beta", run_in_type(norm, TRUENORM_FLOAT32).y, norm.d, 3));
  }
  return text + table(rows, 1, 3);
}

std::string against_the_model(const RecordedModel& model, int width) {
  std::vector<std::vector<std::string>> rows = {
      {"norm", "difference", "ours: worst", "average", "model: worst", "average"}};
  for (const RecordedNorm& norm : model.norms) {
    const std::vector<double> ours = run_in_type(norm, TRUENORM_FLOAT32).y;
    double difference = 0;
    for (size_t i = 0; i < ours.size(); ++i) difference = std::max(difference, std::fabs(ours[i] - norm.y[i]));
    const Truth exact = truth(norm.x, norm.gamma, norm.beta, norm.eps);
    const Distance mine = distance(ours, exact, TRUENORM_FLOAT32), theirs = distance(norm.y, exact, TRUENORM_FLOAT32);
    rows.push_back({norm.name, scientific(difference), fixed(mine.largest_ulp, 2), fixed(mine.mean_ulp, 2),
                    fixed(theirs.largest_ulp, 2), fixed(theirs.mean_ulp, 2)});
  }
  return paragraph("The model's own output came from PyTorch " + model.torch +
                       " in float32. Largest difference between the two outputs, and the error of each against "
                       "extended precision, in units in the last place (ulp) of |gamma*x_hat| + |beta|. truenorm "
                       "promises at most 4 (docs/numerics.md).",
                   width) +
         "\n" + table(rows, 1, 3);
}

std::string four_types(const RecordedModel& model, int width) {
  std::vector<std::vector<std::string>> rows = {
      {"norm", "inputs, rms", "norm, rms", "all, largest", "digits", "norm, ulp"}};
  std::string missing;
  for (const RecordedNorm& norm : model.norms) {
    const Truth exact = truth(norm.x, norm.gamma, norm.beta, norm.eps);
    double square = 0;
    for (const long double y : exact.y) square += static_cast<double>(y * y) / static_cast<double>(exact.y.size());
    rows.push_back({norm.name});
    for (const truenorm_dtype dtype : {TRUENORM_FLOAT64, TRUENORM_FLOAT32, TRUENORM_FLOAT16, TRUENORM_BFLOAT16}) {
      const std::string type = std::string("  ") + truenorm_dtype_name(dtype);
      try {
        const InType in = run_in_type(norm, dtype);
        const Truth rounded = truth(in.x, in.gamma, in.beta, norm.eps);
        const std::vector<double> rounded_y(rounded.y.begin(), rounded.y.end());
        const Distance inputs = distance(rounded_y, exact, dtype);
        const Distance own = distance(in.y, rounded, dtype), all = distance(in.y, exact, dtype);
        const bool stored_exactly = in.x == norm.x && in.gamma == norm.gamma && in.beta == norm.beta;
        rows.push_back({type, stored_exactly ? "0" : scientific(inputs.rms), scientific(own.rms),
                        scientific(all.largest), fixed(-std::log10(all.rms / std::sqrt(square)), 1),
                        fixed(own.largest_ulp, 2)});
      } catch (const BadInput& refused) {
        rows.push_back({type, "-", "-", "-", "-", "-"});
        missing = " (" + type + ": " + refused.what() + ")\n";
      }
    }
  }
  return paragraph(
             "The same norms with x, gamma, beta and y in each of the four types. Two things are lost: what rounding "
             "the inputs to the type changes in the exact result, and what the norm adds to that, which is mostly the "
             "rounding of y. \"Digits\" compares the whole error with the size of y. \"Norm, ulp\" is the norm's worst "
             "error for the inputs it was given; in float64 elements close to the mean may be some ulp further off "
             "(docs/numerics.md says how far).",
             width) +
         "\n" + table(rows, 1, 3) + missing;
}

}  // namespace truenorm::cli

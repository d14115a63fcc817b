// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "elements.h"
#include "histogram.h"
#include "numbers.h"
#include "row_summary.h"
#include "sections.h"
#include "table.h"
#include "terminal.h"

namespace truenorm::cli {
namespace {

std::string indented(const std::string& lines) {
  std::string text;
  for (size_t start = 0; start < lines.size();) {
    const size_t end = lines.find('\n', start) + 1;
    text += "   " + lines.substr(start, end - start);
    start = end;
  }
  return text;
}

}  // namespace

std::string histograms(const RecordedModel& model, const std::string& data, int width, bool utf8) {
  // The norm behind the first attention, and the first word.
  const RecordedNorm& norm = model.norms.at(1);
  const size_t token = 1;
  const auto row = std::span(norm.x).subspan(token * static_cast<size_t>(norm.d), static_cast<size_t>(norm.d));
  std::string text = "   The token \"" + model.tokens.at(token) + "\" in " + norm.name + ", " + std::to_string(norm.d) +
                     " features\n\n";
  text += indented(before_after(row, normalize_row(row, {}, {}, norm.eps).y, width - 3, utf8));

  const Array made_up = read_array(data + "/worked_batch/token.npy");
  text += "\n   A token of " + std::to_string(made_up.values.size()) + " random features, 3*N(0, 1) + 2\n\n";
  return text + indented(before_after(made_up.values, normalize_row(made_up.values, {}, {}, 1e-5).y, width - 3, utf8));
}

std::string worked_batch(const std::string& data, int width) {
  const Array x = read_array(data + "/worked_batch/x.npy");
  Norm norm;
  norm.d = x.shape.back();
  Bytes before = encode(x.values, TRUENORM_FLOAT32), after;
  after.resize(before.size());
  norm(static_cast<int64_t>(x.values.size()) / norm.d, before.data(), after.data(), nullptr);
  const auto rows_before = summarize(before, TRUENORM_FLOAT32, norm.d),
             rows_after = summarize(after, TRUENORM_FLOAT32, norm.d);

  std::string text = "   Shape " + shape_text(x.shape) + ", gamma = 1, beta = 0, eps = 1e-5; two of its tokens\n\n";
  std::vector<std::vector<std::string>> rows = {{"", "", "mean", "sd (unbiased)", "sd (biased)"}};
  for (const size_t token : {0u, 1u}) {
    const RowSummary &b = rows_before.at(token), &a = rows_after.at(token);
    rows.push_back(
        {token ? "second token" : "first token", "before", fixed(b.mean, 3), fixed(b.unbiased_sd, 3), fixed(b.sd, 3)});
    rows.push_back({"", "after", fixed(a.mean, 6), fixed(a.unbiased_sd, 6), fixed(a.sd, 6)});
  }
  text += table(rows, 2, 3) + "\n";
  const std::string glue(1, kGlue);
  const std::string why =
      "Why the two differ: layer normalization divides by the biased standard deviation, whose variance is the sum of "
      "squares over d = 8. "
      "The unbiased one, which PyTorch's std() shows unless told otherwise, divides the same sum by d" +
      glue + "-" + glue +
      "1 = 7, so it comes out "
      "sqrt(8/7) = 1.069045 times as large. Both are a hair below 1.000000 and 1.069045 because eps is added to the "
      "variance.";
  for (const std::string& line : wrap(why, width - 3, 0)) text += "   " + line + "\n";
  return text;
}

}  // namespace truenorm::cli

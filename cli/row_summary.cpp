// SPDX-License-Identifier: Apache-2.0
#include "row_summary.h"

#include <algorithm>
#include <cmath>

#include "elements.h"
#include "norm.h"
#include "spread.h"

namespace truenorm::cli {
namespace {

// Calls see(row, value) for every element of rows of d.
template <typename See>
void for_elements(Bytes& rows, truenorm_dtype dtype, int64_t d, const See& see) {
  const size_t size = truenorm_dtype_size(dtype);
  size_t row = 0;
  int64_t left = d;  // features of the row that are still to come
  rows.in_parts([&](std::span<std::byte> part, size_t) {
    for (size_t at = 0; at < part.size(); at += size) {
      see(row, decode(part.data() + at, dtype));
      if (--left == 0) ++row, left = d;
    }
  });
}

RowStatistics statistics_of(const Bytes& rows, int64_t count, truenorm_dtype dtype, int64_t d, Place place) {
  Norm norm;
  norm.d = d;
  norm.x_dtype = norm.y_dtype = dtype;
  norm.parameters.gamma.dtype = norm.parameters.beta.dtype = dtype;
  norm.place = place;
  RowStatistics statistics;
  norm(count, rows.data(), nullptr, &statistics);
  return statistics;
}

struct SpreadOfRow {
  size_t row;
  Spread spread;
};

}  // namespace

bool RowSummary::finite() const { return std::isfinite(min) && std::isfinite(max); }

std::vector<RowSummary> summarize(Bytes& elements, truenorm_dtype dtype, int64_t d, Place place) {
  const int64_t row_bytes = d * static_cast<int64_t>(truenorm_dtype_size(dtype));
  const int64_t rows = row_bytes ? static_cast<int64_t>(elements.size()) / row_bytes : 0;
  const RowStatistics statistics = statistics_of(elements, rows, dtype, d, place);

  std::vector<RowSummary> summaries(static_cast<size_t>(rows), {0, 0, 0, HUGE_VAL, -HUGE_VAL});
  for_elements(elements, dtype, d, [&](size_t row, double value) {
    RowSummary& s = summaries[row];
    // A NaN stays.
    if (!(value >= s.min)) s.min = std::isnan(s.min) ? s.min : value;
    if (!(value <= s.max)) s.max = std::isnan(s.max) ? s.max : value;
  });
  const auto n = static_cast<double>(d);
  std::vector<SpreadOfRow> spreads;  // where the variance does not give it
  for (size_t r = 0; r < summaries.size(); ++r) {
    RowSummary& s = summaries[r];
    s.mean = statistics.mean[r];
    s.sd = std::sqrt(statistics.var[r]);
    s.unbiased_sd = d > 1 ? s.sd * std::sqrt(n / (n - 1)) : std::nan("");
    if (s.finite() && s.min < s.max && !plain_variance(statistics.var[r]))
      spreads.push_back({r, Spread(s.mean, std::max(std::fabs(s.min), std::fabs(s.max)))});
  }
  if (spreads.empty()) return summaries;
  auto next = spreads.begin();
  for_elements(elements, dtype, d, [&](size_t row, double value) {
    if (next != spreads.end() && row > next->row) ++next;
    if (next != spreads.end() && row == next->row) next->spread.add(value);
  });
  for (const auto& [row, spread] : spreads) {
    summaries[row].sd = spread.sd();
    summaries[row].unbiased_sd = spread.unbiased_sd();
  }
  return summaries;
}

}  // namespace truenorm::cli

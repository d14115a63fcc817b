// SPDX-License-Identifier: Apache-2.0
#include "norm.h"

#include <algorithm>
#include <cmath>

#include "bad_input.h"
#include "elements.h"

namespace truenorm::cli {
namespace {

void check(truenorm_status status) {
  if (status == TRUENORM_OK) return;
  const char* message = truenorm_last_error();
  throw BadInput(*message ? message : truenorm_status_name(status));
}

truenorm_input float64_input(std::span<const double> values) {
  return {values.empty() ? nullptr : values.data(), nullptr, TRUENORM_FLOAT64};
}

}  // namespace

void Norm::operator()(int64_t rows, const void* x, void* y, RowStatistics* statistics) const {
  const truenorm_shape shape = {d, 1, {rows}};
  truenorm_options options = TRUENORM_OPTIONS_INIT;
  options.num_threads = num_threads;
  truenorm_stats stats = {nullptr, nullptr, nullptr, nullptr};
  if (statistics) {
    for (std::vector<double>* each : {&statistics->mean, &statistics->var, &statistics->rstd})
      each->resize(static_cast<size_t>(rows));
    stats = {statistics->mean.data(), statistics->var.data(), statistics->rstd.data(), nullptr};
  }
  check(truenorm_layer_norm_forward(&shape, {x, nullptr, x_dtype}, parameters.gamma.input(), parameters.beta.input(),
                                    {y, nullptr, y_dtype}, statistics ? &stats : nullptr, eps, &options));
}

void backward(const Norm& norm, const Gradients& types, int64_t rows, const void* dy, const void* x, void* dx,
              double* dgamma, double* dbeta) {
  const truenorm_shape shape = {norm.d, 1, {rows}};
  truenorm_options options = TRUENORM_OPTIONS_INIT;
  options.num_threads = norm.num_threads;
  check(truenorm_layer_norm_backward(&shape, {dy, nullptr, types.dy_dtype}, {x, nullptr, norm.x_dtype},
                                     norm.parameters.gamma.input(), nullptr, norm.eps, {dx, nullptr, types.dx_dtype},
                                     {dgamma, nullptr, TRUENORM_FLOAT64}, {dbeta, nullptr, TRUENORM_FLOAT64},
                                     &options));
}

void Norm::refuse_types() const {
  const std::vector<std::byte> nothing(sizeof(double));
  Norm empty = *this;
  empty.d = 0;
  empty.parameters.gamma.bytes.clear();
  empty.parameters.beta.bytes.clear();
  std::vector<std::byte> result(sizeof(double));
  empty(0, nothing.data(), result.data(), nullptr);
}

NormalizedRow normalize_row(std::span<const double> x, std::span<const double> gamma, std::span<const double> beta,
                            double eps) {
  NormalizedRow row;
  row.y.resize(x.size());
  const truenorm_shape shape = {static_cast<int64_t>(x.size()), 0, {}};
  const truenorm_stats stats = {&row.mean, &row.var, &row.rstd, nullptr};
  check(truenorm_layer_norm_forward(&shape, float64_input(x), float64_input(gamma), float64_input(beta),
                                    {row.y.data(), nullptr, TRUENORM_FLOAT64}, &stats, eps, nullptr));
  return row;
}

std::vector<RowSummary> summarize(std::span<const std::byte> elements, truenorm_dtype dtype, int64_t d) {
  const int64_t row_bytes = d * static_cast<int64_t>(truenorm_dtype_size(dtype));
  const int64_t rows = row_bytes ? static_cast<int64_t>(elements.size()) / row_bytes : 0;
  Norm norm;
  norm.d = d;
  norm.x_dtype = norm.y_dtype = dtype;
  norm.parameters.gamma.dtype = norm.parameters.beta.dtype = dtype;
  RowStatistics statistics;
  norm(rows, elements.data(), nullptr, &statistics);

  std::vector<RowSummary> summaries(static_cast<size_t>(rows));
  for (size_t r = 0; r < summaries.size(); ++r) {
    const std::vector<double> row =
        decode(elements.subspan(r * static_cast<size_t>(row_bytes), static_cast<size_t>(row_bytes)), dtype);
    // A NaN would be lost in comparisons.
    const bool nan = std::any_of(row.begin(), row.end(), [](double v) { return std::isnan(v); });
    const double smallest = nan ? std::nan("") : *std::min_element(row.begin(), row.end());
    const double largest = nan ? std::nan("") : *std::max_element(row.begin(), row.end());
    const double n = static_cast<double>(d);
    const double var = statistics.var[r];
    summaries[r] = {statistics.mean[r], std::sqrt(var), d > 1 ? std::sqrt(var * (n / (n - 1))) : std::nan(""), smallest,
                    largest};
  }
  return summaries;
}

}  // namespace truenorm::cli

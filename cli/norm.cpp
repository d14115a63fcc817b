// SPDX-License-Identifier: Apache-2.0
#include "norm.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "bad_input.h"
#include "elements.h"

namespace truenorm::cli {
namespace {

void check(truenorm_status status) {
  if (status == TRUENORM_OK) return;
  const char* message = truenorm_last_error();
  throw BadInput(*message ? message : truenorm_status_name(status));
}

constexpr size_t kAlignment = 64;  // of the library's scratch memory

truenorm_input float64_input(std::span<const double> values) {
  return {values.empty() ? nullptr : values.data(), nullptr, TRUENORM_FLOAT64};
}

// One task after another, each of which may leave its part of mapped rows. Many are asked for, so that the parts are small.
void run_and_forget(void*, void (*task)(void* task_data, int64_t i), void* task_data, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    task(task_data, i);
    forget_mapped();
  }
}
constexpr truenorm_executor kForgetful = {run_and_forget, nullptr, 1024};

truenorm_options options_of(const Norm& norm) {
  truenorm_options options = TRUENORM_OPTIONS_INIT;
  options.num_threads = norm.num_threads;
  if (norm.place == Place::kFile) options.executor = &kForgetful;
  return options;
}

truenorm_output output(const Bytes& bytes, truenorm_dtype dtype) {
  return {bytes.empty() ? nullptr : const_cast<std::byte*>(bytes.data()), nullptr, dtype};
}

}  // namespace

void Norm::operator()(int64_t rows, const void* x, void* y, RowStatistics* statistics) const {
  const truenorm_shape shape = {d, 1, {rows}};
  const truenorm_options options = options_of(*this);
  truenorm_stats stats = {nullptr, nullptr, nullptr, nullptr};
  if (statistics) {
    for (std::vector<double>* each : {&statistics->mean, &statistics->var, &statistics->rstd})
      each->resize(static_cast<size_t>(rows));
    stats = {statistics->mean.data(), statistics->var.data(), statistics->rstd.data(), nullptr};
  }
  check(truenorm_layer_norm_forward(&shape, {x, nullptr, x_dtype}, parameters.gamma.input(), parameters.beta.input(),
                                    {y, nullptr, y_dtype}, statistics ? &stats : nullptr, eps, &options));
}

Backward::Backward(const Norm& norm, const GradientTypes& types, int64_t rows, bool wants_dgamma, bool wants_dbeta)
    : dgamma(norm.place), dbeta(norm.place), norm_(norm), types_(types), rows_(rows), workspace_(norm.place) {
  const size_t bytes = static_cast<size_t>(norm.d) * truenorm_dtype_size(types.parameters);
  if (wants_dgamma) dgamma.resize(bytes);
  if (wants_dbeta) dbeta.resize(bytes);
  if (rows == 0) add(0, nullptr, nullptr, nullptr);  // sums of nothing
}

truenorm_options Backward::options() const {
  truenorm_options options = options_of(norm_);
  options.rows_before = done_;
  options.rows_in_all = rows_;
  return options;
}

void Backward::operator()(int64_t rows, const void* dy, const void* x, void* dx) {
  add(rows, dy, x, dx);
  done_ += rows;
}

void Backward::add(int64_t rows, const void* dy, const void* x, void* dx) {
  const truenorm_shape shape = {norm_.d, 1, {rows}};
  const truenorm_input x_in = {x, nullptr, norm_.x_dtype};
  // All at once need less memory, and dx alone none from row to row. Blocks of mapped rows would be too many.
  const bool sums = !dgamma.empty() || !dbeta.empty();
  const bool in_pieces = rows < rows_ || (norm_.place == Place::kFile && rows > 1);
  truenorm_options options = sums && in_pieces ? this->options() : options_of(norm_);
  if (options.rows_in_all > 0) {
    size_t bytes = 0;
    check(truenorm_layer_norm_backward_workspace(&shape, x_in, output(dgamma, types_.parameters),
                                                 output(dbeta, types_.parameters), &options, &bytes));
    if (done_ == 0) workspace_.resize(bytes + kAlignment);
    void* start = workspace_.data();
    size_t left = workspace_.size();
    options.workspace = std::align(kAlignment, bytes, start, left);
    options.workspace_bytes = bytes;
  }
  check(truenorm_layer_norm_backward(&shape, {dy, nullptr, types_.dy}, x_in, norm_.parameters.gamma.input(), nullptr,
                                     norm_.eps, {dx, nullptr, types_.dx}, output(dgamma, types_.parameters),
                                     output(dbeta, types_.parameters), &options));
}

void Norm::refuse_types() const {
  const std::byte nothing[sizeof(double)] = {};
  Norm empty;
  empty.x_dtype = x_dtype;
  empty.y_dtype = y_dtype;
  empty.parameters.gamma.dtype = parameters.gamma.dtype;
  empty.parameters.beta.dtype = parameters.beta.dtype;
  empty.eps = eps;
  std::byte result[sizeof(double)];
  empty(0, nothing, result, nullptr);
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

double mean_of_row(std::span<const double> x) {
  double mean = 0;
  const truenorm_shape shape = {static_cast<int64_t>(x.size()), 0, {}};
  const truenorm_stats stats = {&mean, nullptr, nullptr, nullptr};
  check(truenorm_layer_norm_forward(&shape, float64_input(x), float64_input({}), float64_input({}),
                                    {nullptr, nullptr, TRUENORM_FLOAT64}, &stats, 1, nullptr));
  return mean;
}

}  // namespace truenorm::cli

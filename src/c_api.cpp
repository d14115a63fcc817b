// The C interface: checks arguments, and hands over.
#include <initializer_list>

#include "checks.h"
#include "error.h"
#include "layer_norm.h"
#include "truenorm/truenorm.h"

namespace truenorm {
namespace {

bool is_empty(const truenorm_shape& shape) { return shape.d == 0 || row_count(shape) == 0; }

truenorm_status check_stats(const ForwardCall& call) {
  const std::size_t rows = static_cast<std::size_t>(row_count(call.shape));
  const struct {
    const char* name;
    const void* data;
    std::size_t bytes;
  } arrays[] = {{"stats.mean", call.stats.mean, rows * 8},
                {"stats.var", call.stats.var, rows * 8},
                {"stats.rstd", call.stats.rstd, rows * 8},
                {"stats.saved", call.stats.saved, rows * saved_bytes_per_row(call.x.dtype)}};
  for (const auto& array : arrays) {
    if (!array.data) continue;
    if (reinterpret_cast<uintptr_t>(array.data) % 8 != 0)
      return fail(TRUENORM_MISALIGNED, "%s is %p; expected a multiple of 8", array.name, array.data);
    for (const Operand* operand : {&call.x, &call.gamma, &call.beta, &call.y})
      TRUENORM_TRY(check_overlap(call.shape, *operand, array.name, array.data, array.bytes));
    for (const auto& other : arrays) {
      if (&other == &array) break;
      const char *a = static_cast<const char*>(array.data), *b = static_cast<const char*>(other.data);
      if (b && a < b + other.bytes && b < a + array.bytes)
        return fail(TRUENORM_OVERLAP, "%s at %p overlaps %s at %p; expected no overlap", array.name, array.data, other.name, other.data);
    }
  }
  return TRUENORM_OK;
}

truenorm_status check_forward(ForwardCall& call) {
  TRUENORM_TRY(check_eps(call.eps));
  const bool empty = is_empty(call.shape);
  if (!empty) TRUENORM_TRY(check_required(call.x));
  const bool wants_stats = call.stats.mean || call.stats.var || call.stats.rstd || call.stats.saved;
  if (!empty && !call.y.data && !wants_stats) TRUENORM_TRY(check_required(call.y));
  for (const Operand* operand : {&call.x, &call.gamma, &call.beta, &call.y}) TRUENORM_TRY(check_dtype(*operand));
  TRUENORM_TRY(check_pair(call.gamma, call.x, TRUENORM_FLOAT32));
  TRUENORM_TRY(check_pair(call.beta, call.x, TRUENORM_FLOAT32));
  TRUENORM_TRY(check_pair(call.y, call.x, TRUENORM_FLOAT32));
  if (call.gamma.data && call.beta.data && call.gamma.dtype != call.beta.dtype)
    return fail(TRUENORM_UNSUPPORTED_DTYPES, "gamma is %s and beta is %s; expected one type", truenorm_dtype_name(call.gamma.dtype),
                truenorm_dtype_name(call.beta.dtype));
  for (Operand* operand : {&call.x, &call.gamma, &call.beta, &call.y}) TRUENORM_TRY(check_operand(call.shape, *operand));
  if (empty) return TRUENORM_OK;
  TRUENORM_TRY(check_output_rows(call.shape, call.y, false));
  TRUENORM_TRY(check_overlap(call.shape, call.y, call.x, true));
  TRUENORM_TRY(check_overlap(call.shape, call.y, call.gamma, false));
  TRUENORM_TRY(check_overlap(call.shape, call.y, call.beta, false));
  return check_stats(call);
}

// dgamma and dbeta: the parameters' type (x's without gamma), or a wider one.
truenorm_status check_gradient_dtype(const Operand& output, const BackwardCall& call) {
  if (!output.data || output.dtype == TRUENORM_FLOAT64) return TRUENORM_OK;
  const Operand& base = call.gamma.data ? call.gamma : call.x;
  if (output.dtype == base.dtype || (is_half(base.dtype) && output.dtype == TRUENORM_FLOAT32)) return TRUENORM_OK;
  return fail(TRUENORM_UNSUPPORTED_DTYPES, "%s is %s and %s is %s; expected the same type or a wider one", output.name,
              truenorm_dtype_name(output.dtype), base.name, truenorm_dtype_name(base.dtype));
}

truenorm_status check_parameter_groups(const BackwardCall& call) {
  if (!call.dgamma.data || !call.dbeta.data) return TRUENORM_OK;
  for (int32_t k = 0; k < call.shape.rank; ++k)
    if (call.shape.dims[k] > 1 && (call.dgamma.strides[k] == 0) != (call.dbeta.strides[k] == 0))
      return fail(TRUENORM_INVALID_STRIDE,
                  "dgamma.strides[%d] is %lld and dbeta.strides[%d] is %lld; expected both 0 (summed over) or neither", static_cast<int>(k),
                  static_cast<long long>(call.dgamma.strides[k]), static_cast<int>(k), static_cast<long long>(call.dbeta.strides[k]));
  return TRUENORM_OK;
}

// Rows of an array in pieces: all of them are summed over, and what the sums are so far is kept in the workspace.
truenorm_status check_piece(const BackwardCall& call, const Options& options, bool needs_workspace) {
  if (options.rows_in_all == 0) return TRUENORM_OK;
  const int64_t rows = row_count(call.shape), left = options.rows_in_all - options.rows_before;
  if (rows > left)
    return fail(TRUENORM_INVALID_SHAPE, "shape has %lld rows; expected at most the %lld that are left of options.rows_in_all",
                static_cast<long long>(rows), static_cast<long long>(left));
  if (call.shape.d > 0 && options.rows_in_all > (int64_t{1} << 62) / call.shape.d)
    return fail(TRUENORM_INVALID_OPTIONS, "options.rows_in_all is %lld, of %lld features each; expected at most 2^62 elements",
                static_cast<long long>(options.rows_in_all), static_cast<long long>(call.shape.d));
  for (const Operand* output : {&call.dgamma, &call.dbeta})
    for (int32_t k = 0; output->data && k < call.shape.rank; ++k)
      if (call.shape.dims[k] > 1 && output->strides[k] != 0)
        return fail(TRUENORM_INVALID_STRIDE, "%s.strides[%d] is %lld; expected 0 with options.rows_in_all", output->name,
                    static_cast<int>(k), static_cast<long long>(output->strides[k]));
  if (needs_workspace && (call.dgamma.data || call.dbeta.data) && !options.workspace)
    return fail(TRUENORM_INVALID_POINTER, "options.workspace is NULL; expected memory that is kept from piece to piece");
  return TRUENORM_OK;
}

truenorm_status check_backward(BackwardCall& call) {
  TRUENORM_TRY(check_eps(call.eps));
  const bool empty = is_empty(call.shape);
  Operand* const outputs[] = {&call.dx, &call.dgamma, &call.dbeta};
  Operand* const inputs[] = {&call.dy, &call.x, &call.gamma};
  if (!empty) {
    TRUENORM_TRY(check_required(call.dy));
    TRUENORM_TRY(check_required(call.x));
  }
  for (const Operand* operand : inputs) TRUENORM_TRY(check_dtype(*operand));
  for (const Operand* operand : outputs) TRUENORM_TRY(check_dtype(*operand));
  TRUENORM_TRY(check_pair(call.gamma, call.x, TRUENORM_FLOAT32));
  TRUENORM_TRY(check_pair(call.dy, call.x, TRUENORM_FLOAT32));
  TRUENORM_TRY(check_pair(call.dx, call.x, TRUENORM_FLOAT32));
  TRUENORM_TRY(check_gradient_dtype(call.dgamma, call));
  TRUENORM_TRY(check_gradient_dtype(call.dbeta, call));
  for (Operand* operand : inputs) TRUENORM_TRY(check_operand(call.shape, *operand));
  for (Operand* operand : outputs) TRUENORM_TRY(check_operand(call.shape, *operand));
  TRUENORM_TRY(check_parameter_groups(call));
  if (reinterpret_cast<uintptr_t>(call.saved) % 8 != 0)
    return fail(TRUENORM_MISALIGNED, "saved is %p; expected a multiple of 8", call.saved);
  if (empty) return TRUENORM_OK;
  TRUENORM_TRY(check_output_rows(call.shape, call.dx, false));
  TRUENORM_TRY(check_output_rows(call.shape, call.dgamma, true));
  TRUENORM_TRY(check_output_rows(call.shape, call.dbeta, true));
  const std::size_t saved_bytes = static_cast<std::size_t>(row_count(call.shape)) * saved_bytes_per_row(call.x.dtype);
  for (const Operand* output : outputs) {
    const bool is_dx = output == &call.dx;
    for (const Operand* input : inputs) TRUENORM_TRY(check_overlap(call.shape, *output, *input, is_dx && input != &call.gamma));
    for (const Operand* other : outputs) {
      if (other == output) break;
      TRUENORM_TRY(check_overlap(call.shape, *output, *other, false));
    }
    TRUENORM_TRY(check_overlap(call.shape, *output, "saved", call.saved, saved_bytes));
  }
  return TRUENORM_OK;
}

}  // namespace
}  // namespace truenorm

extern "C" {

truenorm_status truenorm_layer_norm_forward(const truenorm_shape* shape, truenorm_input x, truenorm_input gamma, truenorm_input beta,
                                            truenorm_output y, const truenorm_stats* stats, double eps,
                                            const truenorm_options* options) {
  using namespace truenorm;
  Options checked;
  TRUENORM_TRY(check_shape(shape));
  TRUENORM_TRY(check_options(options, &checked));
  ForwardCall call{*shape,
                   operand("x", *shape, x, false),
                   operand("gamma", *shape, gamma, true),
                   operand("beta", *shape, beta, true),
                   operand("y", *shape, y, false),
                   stats ? *stats : truenorm_stats{},
                   eps};
  TRUENORM_TRY(check_forward(call));
  if (is_empty(*shape)) return TRUENORM_OK;
  forward(call, checked);
  return TRUENORM_OK;
}

truenorm_status truenorm_layer_norm_backward(const truenorm_shape* shape, truenorm_input dy, truenorm_input x, truenorm_input gamma,
                                             const void* saved, double eps, truenorm_output dx, truenorm_output dgamma,
                                             truenorm_output dbeta, const truenorm_options* options) {
  using namespace truenorm;
  Options checked;
  TRUENORM_TRY(check_shape(shape));
  TRUENORM_TRY(check_options(options, &checked));
  BackwardCall call{*shape,
                    operand("dy", *shape, dy, false),
                    operand("x", *shape, x, false),
                    operand("gamma", *shape, gamma, true),
                    operand("dx", *shape, dx, false),
                    operand("dgamma", *shape, dgamma, true),
                    operand("dbeta", *shape, dbeta, true),
                    saved,
                    eps};
  TRUENORM_TRY(check_backward(call));
  TRUENORM_TRY(check_piece(call, checked, shape->d > 0));
  if (shape->d == 0) return TRUENORM_OK;  // without rows the sums are 0, and are written like any other
  return backward(call, checked);
}

size_t truenorm_layer_norm_saved_bytes(const truenorm_shape* shape, truenorm_dtype x) {
  using namespace truenorm;
  if (check_shape(shape) != TRUENORM_OK || truenorm_dtype_size(x) == 0) return 0;
  return static_cast<size_t>(row_count(*shape)) * saved_bytes_per_row(x);
}

truenorm_status truenorm_layer_norm_backward_workspace(const truenorm_shape* shape, truenorm_input x, truenorm_output dgamma,
                                                       truenorm_output dbeta, const truenorm_options* options, size_t* bytes) {
  using namespace truenorm;
  Options checked;
  TRUENORM_TRY(check_shape(shape));
  TRUENORM_TRY(check_options(options, &checked));
  if (!bytes) return fail(TRUENORM_INVALID_POINTER, "bytes is NULL; expected a pointer");
  if (truenorm_dtype_size(x.dtype) == 0)
    return fail(TRUENORM_INVALID_DTYPE, "x.dtype is %d; expected a truenorm_dtype, 1 to 4", static_cast<int>(x.dtype));
  const Operand x_operand = operand("x", *shape, x, false);
  const truenorm_input absent{nullptr, nullptr, x.dtype};
  const BackwardCall call{*shape,
                          x_operand,
                          x_operand,
                          operand("gamma", *shape, absent, true),
                          operand("dx", *shape, x, false),
                          operand("dgamma", *shape, dgamma, true),
                          operand("dbeta", *shape, dbeta, true),
                          nullptr,
                          0};
  TRUENORM_TRY(check_piece(call, checked, false));
  *bytes = shape->d == 0 ? 0 : backward_workspace(call, checked);
  return TRUENORM_OK;
}

const char* truenorm_version(void) {
#define TRUENORM_TEXT_(x) #x
#define TRUENORM_TEXT(x) TRUENORM_TEXT_(x)
  return TRUENORM_TEXT(TRUENORM_VERSION_MAJOR) "." TRUENORM_TEXT(TRUENORM_VERSION_MINOR) "." TRUENORM_TEXT(TRUENORM_VERSION_PATCH);
}

int32_t truenorm_spec_version(void) { return TRUENORM_SPEC_VERSION; }

}  // extern "C"

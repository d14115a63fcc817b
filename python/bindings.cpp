// The Python extension truenorm._core: the C interface, nothing more. Which axes, which layouts and which kinds of
// array are decided in Python; here numbers are passed on.
// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "binding_support.h"
#include "truenorm/truenorm.h"

namespace nb = nanobind;
using namespace nb::literals;

void raise_unless_ok(truenorm_status status) {
  if (status == TRUENORM_OK) return;
  std::string message = truenorm_last_error();
  if (message.empty()) message = truenorm_status_name(status);
  switch (status) {
    case TRUENORM_INVALID_DTYPE:
    case TRUENORM_UNSUPPORTED_DTYPES:
      throw nb::type_error(message.c_str());
    case TRUENORM_OUT_OF_MEMORY:
      PyErr_SetString(PyExc_MemoryError, message.c_str());
      throw nb::python_error();
    case TRUENORM_NOT_IMPLEMENTED:
      PyErr_SetString(PyExc_NotImplementedError, message.c_str());
      throw nb::python_error();
    default:
      throw nb::value_error(message.c_str());
  }
}

namespace {

using Strides = std::vector<int64_t>;
// Address, strides of the leading dimensions in elements (None: rows in C order, or one vector for all rows), type.
using Operand = std::tuple<std::uintptr_t, std::optional<Strides>, truenorm_dtype>;

truenorm_shape make_shape(const std::vector<int64_t>& dims, int64_t d) {
  if (dims.size() > TRUENORM_MAX_RANK) throw nb::value_error("at most 8 leading dimensions can be passed on");
  truenorm_shape shape{d, static_cast<int32_t>(dims.size()), {}};
  std::copy(dims.begin(), dims.end(), shape.dims);
  return shape;
}

const int64_t* strides_of(const Operand& operand, size_t rank) {
  const auto& strides = std::get<1>(operand);
  if (!strides) return nullptr;
  if (strides->size() != rank) throw nb::value_error("strides must have one entry per leading dimension");
  return strides->data();
}

truenorm_input input_of(const Operand& operand, size_t rank) {
  return {reinterpret_cast<const void*>(std::get<0>(operand)), strides_of(operand, rank), std::get<2>(operand)};
}

// By pointer where an operand may be absent: an optional made on the way would take its strides with it.
truenorm_input input_of(const std::optional<Operand>* operand, size_t rank) {
  return *operand ? input_of(**operand, rank) : truenorm_input{nullptr, nullptr, TRUENORM_FLOAT32};
}

truenorm_output output_of(const std::optional<Operand>* operand, size_t rank) {
  if (!*operand) return {nullptr, nullptr, TRUENORM_FLOAT32};
  const Operand& present = **operand;
  return {reinterpret_cast<void*>(std::get<0>(present)), strides_of(present, rank), std::get<2>(present)};
}

truenorm_options options_of(int32_t num_threads) {
  truenorm_options options = TRUENORM_OPTIONS_INIT;
  options.num_threads = num_threads;
  return options;
}

void forward(const std::vector<int64_t>& dims, int64_t d, const Operand& x, const std::optional<Operand>& gamma,
             const std::optional<Operand>& beta, const std::optional<Operand>& y, std::uintptr_t mean,
             std::uintptr_t var, std::uintptr_t saved, double eps, int32_t num_threads) {
  const truenorm_shape shape = make_shape(dims, d);
  const size_t rank = dims.size();
  const truenorm_input x_in = input_of(x, rank), gamma_in = input_of(&gamma, rank), beta_in = input_of(&beta, rank);
  const truenorm_output y_out = output_of(&y, rank);
  const truenorm_stats stats{reinterpret_cast<double*>(mean), reinterpret_cast<double*>(var), nullptr,
                             reinterpret_cast<void*>(saved)};
  const truenorm_options options = options_of(num_threads);
  raise_unless_ok(without_lock(
      [&] { return truenorm_layer_norm_forward(&shape, x_in, gamma_in, beta_in, y_out, &stats, eps, &options); }));
}

void backward(const std::vector<int64_t>& dims, int64_t d, const Operand& dy, const Operand& x,
              const std::optional<Operand>& gamma, std::uintptr_t saved, const std::optional<Operand>& dx,
              const std::optional<Operand>& dgamma, const std::optional<Operand>& dbeta, double eps,
              int32_t num_threads) {
  const truenorm_shape shape = make_shape(dims, d);
  const size_t rank = dims.size();
  const truenorm_input dy_in = input_of(dy, rank), x_in = input_of(x, rank), gamma_in = input_of(&gamma, rank);
  const truenorm_output dx_out = output_of(&dx, rank), dgamma_out = output_of(&dgamma, rank),
                        dbeta_out = output_of(&dbeta, rank);
  const truenorm_options options = options_of(num_threads);
  raise_unless_ok(without_lock([&] {
    return truenorm_layer_norm_backward(&shape, dy_in, x_in, gamma_in, reinterpret_cast<const void*>(saved), eps,
                                        dx_out, dgamma_out, dbeta_out, &options);
  }));
}

size_t saved_bytes(const std::vector<int64_t>& dims, int64_t d, truenorm_dtype x) {
  const truenorm_shape shape = make_shape(dims, d);
  return truenorm_layer_norm_saved_bytes(&shape, x);
}

// DLPack's managed tensor of version 1, up to the tensor; before that version a capsule holds the bare tensor first.
struct VersionedTensor {
  uint32_t major, minor;
  void *context, *deleter;
  uint64_t flags;  // 1: read-only
  nb::dlpack::dltensor tensor;
};

// (code, bits, lanes) of the elements and whether they may only be read; the capsule can still be used afterwards.
std::tuple<int, int, int, bool> dlpack_type(nb::handle capsule) {
  const nb::dlpack::dltensor* tensor = nullptr;
  bool read_only = false;
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor")) {
    tensor = static_cast<const nb::dlpack::dltensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  } else if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
    const auto* versioned = static_cast<const VersionedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
    if (versioned->major == 1) tensor = &versioned->tensor;
    read_only = tensor && (versioned->flags & 1) != 0;
  }
  if (!tensor) throw nb::type_error("a capsule named dltensor, or dltensor_versioned of version 1, expected");
  return {tensor->dtype.code, tensor->dtype.bits, tensor->dtype.lanes, read_only};
}

// NumPy has no bfloat16 of its own and cannot import one: the same memory as uint16. The capsule is used up.
nb::ndarray<nb::numpy, uint16_t> dlpack_bits(nb::handle capsule) {
  using Source = nb::ndarray<nb::ro, nb::device::cpu>;
  auto source = std::make_unique<Source>(nb::cast<Source>(capsule));
  const Source& array = *source;
  if (array.dtype().bits != 16 || array.dtype().lanes != 1) throw nb::type_error("an array of 16-bit elements expected");
  std::vector<size_t> shape(array.ndim());
  std::vector<int64_t> strides(array.ndim());
  for (size_t i = 0; i < array.ndim(); ++i) {
    shape[i] = array.shape(i);
    strides[i] = array.stride(i);
  }
  // Lives as long as the result, and the memory with it.
  const nb::capsule owner(source.get(), [](void* p) noexcept { delete static_cast<Source*>(p); });
  source.release();
  return {const_cast<void*>(static_cast<const void*>(array.data())), array.ndim(), shape.data(), owner, strides.data()};
}

std::string isa() {
  const char* name = truenorm_isa();
  if (name == nullptr) throw nb::value_error(truenorm_last_error());
  return name;
}

std::vector<std::string> isa_names() {
  std::vector<std::string> names;
  for (int32_t i = 0; const char* name = truenorm_isa_name(i); ++i) names.emplace_back(name);
  return names;
}

void nothing(nb::handle, nb::handle, nb::handle, nb::handle, int32_t) {}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "The C interface of truenorm; use the package, not this module.";
  m.attr("FLOAT32") = static_cast<int>(TRUENORM_FLOAT32);
  m.attr("FLOAT64") = static_cast<int>(TRUENORM_FLOAT64);
  m.attr("FLOAT16") = static_cast<int>(TRUENORM_FLOAT16);
  m.attr("BFLOAT16") = static_cast<int>(TRUENORM_BFLOAT16);
  m.attr("MAX_RANK") = static_cast<int>(TRUENORM_MAX_RANK);
  m.def("forward", &forward, "dims"_a, "d"_a, "x"_a, "gamma"_a.none(), "beta"_a.none(), "y"_a.none(), "mean"_a,
        "var"_a, "saved"_a, "eps"_a, "num_threads"_a);
  m.def("backward", &backward, "dims"_a, "d"_a, "dy"_a, "x"_a, "gamma"_a.none(), "saved"_a, "dx"_a.none(),
        "dgamma"_a.none(), "dbeta"_a.none(), "eps"_a, "num_threads"_a);
  m.def("saved_bytes", &saved_bytes, "dims"_a, "d"_a, "x"_a);
  m.def("layer_norm_numpy", &layer_norm_numpy, "x"_a.none(), "gamma"_a.none(), "beta"_a.none(), "eps"_a.none(),
        "num_threads"_a);
  m.def("nothing", &nothing, "x"_a.none(), "gamma"_a.none(), "beta"_a.none(), "eps"_a.none(), "num_threads"_a,
        "Does nothing with the arguments of layer_norm_numpy: what such a call costs by itself.");
  m.def("read_tensors_with", &read_tensors_with, "api"_a, "tensor"_a, "parameter"_a);
  m.def("tensor_forward", &tensor_forward, "x"_a, "gamma"_a.none(), "beta"_a.none(), "y"_a, "saved"_a.none(),
        "normalized_shape"_a.none(), "eps"_a.none(), "num_threads"_a);
  m.def("tensor_backward", &tensor_backward, "dy"_a, "x"_a, "gamma"_a.none(), "saved"_a.none(), "dx"_a.none(),
        "dgamma"_a.none(), "dbeta"_a.none(), "normalized_shape"_a, "eps"_a, "num_threads"_a);
  m.def("dlpack_type", &dlpack_type, "capsule"_a);
  m.def("dlpack_bits", &dlpack_bits, "capsule"_a);
  m.def("version", [] { return std::string(truenorm_version()); });
  m.def("spec_version", [] { return truenorm_spec_version(); });
  m.def("isa", &isa);
  m.def("isa_names", &isa_names);
  m.def("set_num_threads", [](int32_t n) { raise_unless_ok(truenorm_set_num_threads(n)); }, "num_threads"_a);
  m.def("get_num_threads", [] { return truenorm_get_num_threads(); });
  m.def("set_thread_wait", [](int32_t microseconds) { raise_unless_ok(truenorm_set_thread_wait(microseconds)); }, "microseconds"_a);
  m.def("get_thread_wait", [] { return truenorm_get_thread_wait(); });
}

// PyTorch tensors without a detour: where the type offers DLPack's exchange API (PyTorch 2.10 and later), their memory
// is read without a Python call. Tensors of any other layout, type or device are for the general path.
// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>

#include "binding_support.h"
#include "truenorm/truenorm.h"

namespace nb = nanobind;

namespace {

// The part of DLPack's DLPackExchangeAPI (version 1) that is used here.
struct ExchangeApi {
  struct {
    uint32_t major, minor;
    void* previous;
  } header;
  void* managed_tensor_allocator;
  void* managed_tensor_from_py_object;
  void* managed_tensor_to_py_object;
  int (*tensor_from_py_object)(void* py_object, nb::dlpack::dltensor* out);
  void* current_work_stream;
};

const ExchangeApi* exchange_api = nullptr;
// The classes whose objects are nothing but memory, and the name of the method that says whether that memory is to be
// read with the other sign. Never freed: the interpreter may be gone before them.
PyObject *tensor_type = nullptr, *parameter_type = nullptr, *is_neg = nullptr;

bool is_plain(nb::handle object) {
  const auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()));
  if (type != tensor_type && type != parameter_type) return false;
  const nb::object negated = nb::steal(PyObject_CallMethodObjArgs(object.ptr(), is_neg, nullptr));
  if (!negated.is_valid()) PyErr_Clear();
  return negated.is(nb::handle(Py_False));
}

// A dense plain CPU tensor's memory, borrowed from its owner. Not `ok` for anything else.
struct View {
  bool ok = false;
  void* data = nullptr;
  truenorm_dtype dtype = TRUENORM_FLOAT32;
  nb::dlpack::dltensor tensor;

  explicit View(nb::handle object) {
    if (object.is_none() || !is_plain(object)) return;
    if (exchange_api->tensor_from_py_object(object.ptr(), &tensor) != 0) {
      PyErr_Clear();
      return;
    }
    const auto code = static_cast<nb::dlpack::dtype_code>(tensor.dtype.code);
    const int bits = tensor.dtype.bits;
    dtype = code == nb::dlpack::dtype_code::Bfloat && bits == 16 ? TRUENORM_BFLOAT16
          : code != nb::dlpack::dtype_code::Float                ? 0
          : bits == 32                                           ? TRUENORM_FLOAT32
          : bits == 64                                           ? TRUENORM_FLOAT64
          : bits == 16                                           ? TRUENORM_FLOAT16 : 0;
    data = static_cast<char*>(tensor.data) + tensor.byte_offset;
    ok = dtype != 0 && tensor.dtype.lanes == 1 && tensor.device.device_type == nb::device::cpu::value && is_dense() &&
         is_there(bits / 8);
  }

  // Zeros that PyTorch has not made yet have no memory, and memory from elsewhere may lie askew.
  bool is_there(int itemsize) const {
    if (data == nullptr) return size(0) == 0;
    return reinterpret_cast<std::uintptr_t>(data) % static_cast<unsigned>(itemsize) == 0;
  }

  int64_t size(int32_t from) const {
    int64_t product = 1;
    for (int32_t i = from; i < tensor.ndim; ++i) product *= tensor.shape[i];
    return product;
  }
  bool is_dense() const {
    int64_t step = 1;
    for (int32_t i = tensor.ndim - 1; i >= 0 && tensor.strides != nullptr; --i) {
      if (tensor.shape[i] != 1 && tensor.strides[i] != step) return false;
      step *= tensor.shape[i];
    }
    return true;
  }
  // Whether the shape is that of the last `ndim` dimensions of x.
  bool ends(const View& x) const {
    return tensor.ndim <= x.tensor.ndim &&
           std::equal(tensor.shape, tensor.shape + tensor.ndim, x.tensor.shape + (x.tensor.ndim - tensor.ndim));
  }
  bool is_like(const View& x) const { return ok && tensor.ndim == x.tensor.ndim && ends(x); }

  truenorm_input input() const { return {data, nullptr, dtype}; }
  truenorm_output output() const { return {data, nullptr, dtype}; }
};

// How many dimensions a normalized_shape has, an int or a tuple of ints; 0 unless it is how the shape of x ends.
int32_t normalized_rank(nb::handle normalized_shape, const View& x) {
  const int32_t ndim = x.tensor.ndim;
  const auto matches = [&x](nb::handle n, int32_t dimension) {
    const long long size = PyLong_Check(n.ptr()) && !PyBool_Check(n.ptr()) ? PyLong_AsLongLong(n.ptr()) : -1;
    if (size == -1) PyErr_Clear();
    return size == x.tensor.shape[dimension];
  };
  if (!x.ok || ndim == 0) return 0;
  if (!PyTuple_Check(normalized_shape.ptr())) return matches(normalized_shape, ndim - 1) ? 1 : 0;
  const auto k = static_cast<int32_t>(PyTuple_Size(normalized_shape.ptr()));
  if (k > ndim) return 0;
  for (int32_t i = 0; i < k; ++i) {
    if (!matches(PyTuple_GetItem(normalized_shape.ptr(), i), ndim - k + i)) return 0;
  }
  return k;
}

// Absent, or one vector of x's last k dimensions.
bool is_vector(nb::handle object, const View& parameter, const View& x, int32_t k) {
  return object.is_none() || (parameter.ok && parameter.tensor.ndim == k && parameter.ends(x));
}

truenorm_shape shape_of(const View& x, int32_t k) {
  const int64_t d = x.size(x.tensor.ndim - k);
  return {d, 1, {d == 0 ? 0 : x.size(0) / d}};
}

// Absent, or as much memory as the library keeps for these rows: hooks on saved tensors may have made it anything.
bool is_saved(nb::handle object, const View& saved, const View& x, int32_t k) {
  if (object.is_none()) return true;
  const truenorm_shape shape = shape_of(x, k);
  return saved.ok && saved.dtype == TRUENORM_FLOAT64 &&
         static_cast<size_t>(saved.size(0)) * sizeof(double) == truenorm_layer_norm_saved_bytes(&shape, x.dtype);
}

truenorm_options options_of(int32_t num_threads) {
  truenorm_options options = TRUENORM_OPTIONS_INIT;
  options.num_threads = num_threads;
  return options;
}

}  // namespace

void read_tensors_with(nb::capsule api, nb::object tensor, nb::object parameter) {
  const auto* candidate = static_cast<const ExchangeApi*>(api.data());
  if (candidate->header.major != 1) return;
  tensor_type = tensor.release().ptr();
  parameter_type = parameter.release().ptr();
  is_neg = PyUnicode_InternFromString("is_neg");
  exchange_api = candidate;
}

bool tensor_forward(nb::handle x, nb::handle gamma, nb::handle beta, nb::handle y, nb::handle saved,
                    nb::handle normalized_shape, nb::handle eps, int32_t num_threads) {
  if (exchange_api == nullptr || !PyFloat_Check(eps.ptr())) return false;
  const View x_view(x), gamma_view(gamma), beta_view(beta), y_view(y), saved_view(saved);
  const int32_t k = normalized_rank(normalized_shape, x_view);
  if (k == 0 || !y_view.is_like(x_view) || !is_vector(gamma, gamma_view, x_view, k) ||
      !is_vector(beta, beta_view, x_view, k) || !is_saved(saved, saved_view, x_view, k) ||
      (gamma_view.ok && beta_view.ok && gamma_view.dtype != beta_view.dtype)) {
    return false;
  }
  const truenorm_shape shape = shape_of(x_view, k);
  const double eps_value = PyFloat_AsDouble(eps.ptr());
  const truenorm_stats stats{nullptr, nullptr, nullptr, saved_view.data};
  const truenorm_options options = options_of(num_threads);
  const truenorm_status status = without_lock([&] {
    return truenorm_layer_norm_forward(&shape, x_view.input(), gamma_view.input(), beta_view.input(), y_view.output(),
                                       &stats, eps_value, &options);
  });
  // The general path knows what the caller calls these.
  if (status == TRUENORM_INVALID_EPS || status == TRUENORM_UNSUPPORTED_DTYPES) return false;
  raise_unless_ok(status);
  return true;
}

bool tensor_backward(nb::handle dy, nb::handle x, nb::handle gamma, nb::handle saved, nb::handle dx,
                     nb::handle dgamma, nb::handle dbeta, nb::handle normalized_shape, double eps,
                     int32_t num_threads) {
  if (exchange_api == nullptr) return false;
  const View dy_view(dy), x_view(x), gamma_view(gamma), saved_view(saved), dx_view(dx), dgamma_view(dgamma),
      dbeta_view(dbeta);
  const int32_t k = normalized_rank(normalized_shape, x_view);
  if (k == 0 || !dy_view.is_like(x_view) || !is_vector(gamma, gamma_view, x_view, k) ||
      !(dx.is_none() || dx_view.is_like(x_view)) || !is_vector(dgamma, dgamma_view, x_view, k) ||
      !is_vector(dbeta, dbeta_view, x_view, k) || !is_saved(saved, saved_view, x_view, k)) {
    return false;
  }
  const truenorm_shape shape = shape_of(x_view, k);
  const truenorm_options options = options_of(num_threads);
  raise_unless_ok(without_lock([&] {
    return truenorm_layer_norm_backward(&shape, dy_view.input(), x_view.input(), gamma_view.input(), saved_view.data,
                                        eps, dx_view.output(), dgamma_view.output(), dbeta_view.output(), &options);
  }));
  return true;
}

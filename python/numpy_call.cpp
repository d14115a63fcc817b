// layer_norm of plain NumPy arrays without a detour: the buffer protocol gives the memory, numpy.empty_like the result.
// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>

#include <cstdint>

#include "binding_support.h"
#include "truenorm/truenorm.h"

namespace nb = nanobind;

namespace {

// A C-contiguous, aligned NumPy array's memory, held for as long as this lives. Not `ok` for anything else.
class Buffer {
 public:
  Buffer(nb::handle array, int flags) {
    if (array.is_none()) return;
    if (PyObject_GetBuffer(array.ptr(), &view_, flags | PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
      PyErr_Clear();
      return;
    }
    held_ = true;
    const char* format = view_.format;
    if (format == nullptr || format[0] == '\0' || format[1] != '\0') return;
    dtype_ = format[0] == 'f' ? TRUENORM_FLOAT32 : format[0] == 'd' ? TRUENORM_FLOAT64
           : format[0] == 'e' ? TRUENORM_FLOAT16 : truenorm_dtype{0};
    ok_ = dtype_ != 0 && view_.ndim >= 1 &&
          reinterpret_cast<std::uintptr_t>(view_.buf) % static_cast<size_t>(view_.itemsize) == 0;
  }
  ~Buffer() {
    if (held_) PyBuffer_Release(&view_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  bool ok() const { return ok_; }
  void* data() const { return view_.buf; }
  truenorm_dtype dtype() const { return dtype_; }
  int64_t last() const { return view_.shape[view_.ndim - 1]; }
  int64_t rows() const { return last() == 0 ? 0 : view_.len / view_.itemsize / last(); }
  bool is_vector_of(int64_t d) const { return view_.ndim == 1 && view_.shape[0] == d; }

 private:
  Py_buffer view_;
  truenorm_dtype dtype_ = 0;
  bool held_ = false, ok_ = false;
};

// The parts of NumPy that are needed, looked up once. Never freed: the interpreter may be gone before them.
struct NumPy {
  nb::object ndarray = nb::module_::import_("numpy").attr("ndarray");
  nb::object empty_like = nb::module_::import_("numpy").attr("empty_like");
  static const NumPy& get() {
    static const NumPy* numpy = new NumPy;
    return *numpy;
  }
  bool is_array(nb::handle h) const { return reinterpret_cast<PyObject*>(Py_TYPE(h.ptr())) == ndarray.ptr(); }
};

}  // namespace

nb::object layer_norm_numpy(nb::handle x, nb::handle gamma, nb::handle beta, nb::handle eps,
                            int32_t num_threads) {
  const NumPy& numpy = NumPy::get();
  const bool has_gamma = !gamma.is_none(), has_beta = !beta.is_none();
  if (!numpy.is_array(x) || (has_gamma && !numpy.is_array(gamma)) || (has_beta && !numpy.is_array(beta)) ||
      !PyFloat_CheckExact(eps.ptr())) {
    return nb::none();
  }
  const Buffer x_buffer(x, PyBUF_SIMPLE);
  if (!x_buffer.ok()) return nb::none();
  const truenorm_shape shape{x_buffer.last(), 1, {x_buffer.rows()}};

  truenorm_input gamma_in{nullptr, nullptr, x_buffer.dtype()}, beta_in = gamma_in;
  const Buffer gamma_buffer(gamma, PyBUF_SIMPLE), beta_buffer(beta, PyBUF_SIMPLE);
  if (has_gamma) {
    if (!gamma_buffer.ok() || !gamma_buffer.is_vector_of(shape.d)) return nb::none();
    gamma_in = {gamma_buffer.data(), nullptr, gamma_buffer.dtype()};
  }
  if (has_beta) {
    if (!beta_buffer.ok() || !beta_buffer.is_vector_of(shape.d)) return nb::none();
    beta_in = {beta_buffer.data(), nullptr, beta_buffer.dtype()};
  }
  // Two parameters of two types: the general path says so by name.
  if (has_gamma && has_beta && gamma_in.dtype != beta_in.dtype) return nb::none();

  nb::object y = numpy.empty_like(x);
  const Buffer y_buffer(y, PyBUF_WRITABLE);
  if (!y_buffer.ok()) return nb::none();
  const double eps_value = PyFloat_AsDouble(eps.ptr());
  truenorm_options options = TRUENORM_OPTIONS_INIT;
  options.num_threads = num_threads;
  raise_unless_ok(without_lock([&] {
    return truenorm_layer_norm_forward(&shape, {x_buffer.data(), nullptr, x_buffer.dtype()}, gamma_in, beta_in,
                                       {y_buffer.data(), nullptr, y_buffer.dtype()}, nullptr, eps_value, &options);
  }));
  return y;
}

// What the parts of the extension share: statuses as Python exceptions.
// SPDX-License-Identifier: Apache-2.0
#ifndef TRUENORM_PYTHON_BINDING_SUPPORT_H_
#define TRUENORM_PYTHON_BINDING_SUPPORT_H_

#include <nanobind/nanobind.h>

#include <cxxabi.h>
#include <unistd.h>

#include <cstdint>

#include "truenorm/truenorm.h"

// Raises the Python exception for anything but TRUENORM_OK, with the library's own message.
void raise_unless_ok(truenorm_status status);

// Runs what needs no interpreter without its lock. A thread that comes back while the interpreter is being shut down (a
// daemon thread at the program's end) is unwound by Python before 3.14, which no C++ frame above would survive: it waits
// here for the end, as Python 3.14 has it.
template <class Call>
truenorm_status without_lock(const Call& call) {
  PyThreadState* state = PyEval_SaveThread();
  const truenorm_status status = call();
  try {
    PyEval_RestoreThread(state);
  } catch (abi::__forced_unwind&) {
    for (;;) pause();
  }
  return status;
}

// layer_norm of C-contiguous NumPy arrays over their last axis, the call that must cost next to nothing; None when the
// arguments are anything else, which is then for the general path to serve or to refuse.
nanobind::object layer_norm_numpy(nanobind::handle x, nanobind::handle gamma, nanobind::handle beta,
                                  nanobind::handle eps, int32_t num_threads);

// The same for PyTorch tensors, into tensors that are there; false when they are for the general path, which they are
// until read_tensors_with has said how to read them.
void read_tensors_with(nanobind::capsule api, nanobind::object tensor, nanobind::object parameter);
bool tensor_forward(nanobind::handle x, nanobind::handle gamma, nanobind::handle beta, nanobind::handle y,
                    nanobind::handle saved, nanobind::handle normalized_shape, nanobind::handle eps,
                    int32_t num_threads);
bool tensor_backward(nanobind::handle dy, nanobind::handle x, nanobind::handle gamma, nanobind::handle saved,
                     nanobind::handle dx, nanobind::handle dgamma, nanobind::handle dbeta,
                     nanobind::handle normalized_shape, double eps, int32_t num_threads);

#endif  // TRUENORM_PYTHON_BINDING_SUPPORT_H_

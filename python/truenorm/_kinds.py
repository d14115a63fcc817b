"""Kinds of array: how each is read as memory, and how a result of the same kind is made."""

from __future__ import annotations

import numpy as np

from . import _core, _dlpack
from ._arrays import AnyArray, Array, is_jax, is_torch, is_tracer, shown, typed


class NumpyKind:
    """NumPy arrays, and whatever NumPy makes an array of: nested lists of numbers, objects with __array__."""

    name = "NumPy array"

    def read(self, value: AnyArray, name: str) -> Array:
        if isinstance(value, np.ma.MaskedArray):
            raise TypeError(f"{name} is a masked array; layer normalization knows no masks. Pass {name}.filled(...)")
        if isinstance(value, np.ndarray):
            return typed(np.asarray(value), name)
        _refuse_tracer(value, name)
        if not is_array(value):
            raise TypeError(f"{name} is {shown(value)}; expected a {self.name} or another array")
        if not hasattr(value, "__array__") and hasattr(value, "__dlpack__"):
            return _dlpack.read(value, name)
        try:
            values = np.asarray(value)
        except (ValueError, RuntimeError) as error:  # lists of different lengths, or of tensors that need gradients
            raise TypeError(f"{name} is a {type(value).__name__} that NumPy cannot read: {error}") from error
        # A list of ints is a list of numbers; an *array* of ints was given a type on purpose and is refused.
        if isinstance(value, (list, tuple, int, float)) and values.dtype.kind in "iu":
            values = values.astype(np.float64)
        return typed(values, name)

    def make(self, array: Array) -> AnyArray:
        return array.values

    def write(self, value: AnyArray) -> Array:
        if not isinstance(value, np.ndarray):
            raise TypeError(f"out is of type {type(value).__name__}; expected a {self.name}, as x is")
        return self._writable(typed(value, "out"))

    @staticmethod
    def _writable(array: Array) -> Array:
        if not array.values.flags.writeable:
            raise ValueError("out is read-only; expected memory that can be written to")
        return array


class JaxKind(NumpyKind):
    """JAX arrays on the CPU: their memory is NumPy's to read, bfloat16 included."""

    name = "JAX array"

    def read(self, value: AnyArray, name: str) -> Array:
        _refuse_tracer(value, name)
        if is_jax(value):
            if any(device.platform != "cpu" for device in value.devices()):
                raise TypeError(f"{name} is on {value.devices()}; truenorm runs on the CPU: use jax.device_put")
            value = np.asarray(value)
        return super().read(value, name)

    def make(self, array: Array) -> AnyArray:
        import jax.numpy as jnp
        from jax import dtypes

        # The statistics are float64; without jax_enable_x64 JAX has no such type and takes float32.
        return jnp.asarray(array.values, dtype=dtypes.canonicalize_dtype(array.values.dtype))

    def write(self, value: AnyArray) -> Array:
        raise TypeError("out cannot be given for a JAX array: JAX arrays are never written to")


class DlpackKind(NumpyKind):
    """Anything else with __dlpack__; the result is made by its own namespace's from_dlpack where it has one."""

    name = "DLPack array"

    def __init__(self, x: AnyArray) -> None:
        self._namespace = x.__array_namespace__() if hasattr(x, "__array_namespace__") else None

    def read(self, value: AnyArray, name: str) -> Array:
        if not hasattr(value, "__dlpack__") or isinstance(value, np.ndarray):
            return super().read(value, name)
        return _dlpack.read(value, name)

    def make(self, array: Array) -> AnyArray:
        # NumPy hands out no bfloat16 through DLPack.
        if self._namespace is None or array.dtype == _core.BFLOAT16:
            return array.values
        return self._namespace.from_dlpack(array.values)

    def write(self, value: AnyArray) -> Array:
        return self._writable(self.read(value, "out"))


_NUMPY = NumpyKind()
_JAX = JaxKind()


def is_array(value: object) -> bool:
    """Whether it is of a kind that is read here at all; PyTorch's tensors are, by a kind of their own."""
    if isinstance(value, (np.ndarray, np.generic, list, tuple, int, float)):
        return True
    return not isinstance(value, type) and (hasattr(value, "__dlpack__") or hasattr(value, "__array__"))


def _refuse_tracer(value: object, name: str) -> None:
    if is_tracer(value):
        raise TypeError(
            f"{name} is a JAX tracer: truenorm computes on arrays that exist, not inside jit, grad or vmap. Call it "
            "outside them, or through jax.pure_callback"
        )


def kind_of(x: AnyArray, name: str) -> NumpyKind:
    """The kind of every array of a call, by its first argument. PyTorch tensors have gradients and a path of their own."""
    if is_jax(x):
        return _JAX
    if isinstance(x, (np.ndarray, np.generic)):
        return _NUMPY
    if not is_array(x):
        raise TypeError(
            f"{name} is of type {type(x).__name__}; expected a NumPy, PyTorch or JAX array, or one with __dlpack__"
        )
    return DlpackKind(x) if hasattr(x, "__dlpack__") else _NUMPY


def refuse_torch(x_name: str, **operands: object) -> None:
    """Tensors beside arrays that are none: their gradients would be lost without a word."""
    for name, value in operands.items():
        if is_torch(value):
            raise TypeError(f"{name} is a PyTorch tensor but {x_name} is not; pass all of them as tensors, or none")

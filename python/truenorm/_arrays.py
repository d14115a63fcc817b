"""Kinds of array: how each is read as memory, and how a result of the same kind is made."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from . import _core

AnyArray = Any  # an array of any supported kind; the kinds share no base class

DTYPE_NAMES = {
    _core.FLOAT32: "float32",
    _core.FLOAT64: "float64",
    _core.FLOAT16: "float16",
    _core.BFLOAT16: "bfloat16",
}
# By type object: its name is computed at every look. bfloat16 joins when an array of it is first seen, since its type
# lives in ml_dtypes.
_CODES = {
    np.dtype(np.float32): _core.FLOAT32,
    np.dtype(np.float64): _core.FLOAT64,
    np.dtype(np.float16): _core.FLOAT16,
}
SUPPORTED = "float64, float32, float16 or bfloat16"


class Array(NamedTuple):
    """Memory the library can read or write: a NumPy view of it, and what its elements are to the library.

    The two are apart because NumPy has no bfloat16 of its own: PyTorch's comes as a view of int16.
    """

    values: np.ndarray[Any, Any]
    dtype: int


def is_number(value: object) -> bool:
    """A scalar that has no type to keep: Python's numbers, and NumPy's scalars, which stand for them."""
    return isinstance(value, (int, float, np.floating, np.integer))


def typed(values: np.ndarray[Any, Any], name: str) -> Array:
    """`values` with its type's code, or a TypeError that names the type."""
    code = _CODES.get(values.dtype)
    if code is None:
        if values.dtype.name == "bfloat16" and values.dtype.isnative:
            return Array(values, _CODES.setdefault(values.dtype, _core.BFLOAT16))
        raise TypeError(f"{name} has dtype {values.dtype}; expected {SUPPORTED} in native byte order")
    return Array(values, code)


class NumpyKind:
    """NumPy arrays, and whatever NumPy makes an array of: nested lists of numbers, objects with __array__."""

    name = "NumPy array"

    def read(self, value: AnyArray, name: str) -> Array:
        if isinstance(value, np.ma.MaskedArray):
            raise TypeError(f"{name} is a masked array; layer normalization knows no masks. Pass {name}.filled(...)")
        if isinstance(value, np.ndarray):
            return typed(np.asarray(value), name)
        _refuse_tracer(value, name)
        try:
            values = np.asarray(value)
        except RuntimeError as error:  # a list of PyTorch tensors that need gradients
            raise TypeError(f"{name} is a {type(value).__name__} that NumPy cannot read: {error}") from None
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
            raise ValueError("out is read-only")
        return array


class JaxKind(NumpyKind):
    """JAX arrays on the CPU: their memory is NumPy's to read, bfloat16 included."""

    name = "JAX array"

    def read(self, value: AnyArray, name: str) -> Array:
        _refuse_tracer(value, name)
        if is_jax(value) and any(device.platform != "cpu" for device in value.devices()):
            raise TypeError(f"{name} is on {value.devices()}; truenorm runs on the CPU: use jax.device_put")
        return super().read(value if isinstance(value, (np.ndarray, list, tuple)) else np.asarray(value), name)

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
        device_type = int(value.__dlpack_device__()[0])
        if device_type != 1:  # kDLCPU
            raise TypeError(f"{name} is on DLPack device type {device_type}; truenorm runs on the CPU (type 1)")
        try:
            return typed(np.from_dlpack(value), name)
        except (BufferError, RuntimeError):
            # NumPy knows no bfloat16: the same memory as 16-bit patterns.
            if "bfloat16" not in str(getattr(value, "dtype", "")):
                raise TypeError(
                    f"{name} is a {type(value).__name__} of dtype {getattr(value, 'dtype', 'unknown')}, which cannot "
                    f"be read through DLPack; expected {SUPPORTED}"
                ) from None
            return Array(_core.dlpack_bits(value), _core.BFLOAT16)

    def make(self, array: Array) -> AnyArray:
        if array.dtype == _core.BFLOAT16 and array.values.dtype == np.uint16:
            import ml_dtypes

            return array.values.view(ml_dtypes.bfloat16)
        return array.values if self._namespace is None else self._namespace.from_dlpack(array.values)

    def write(self, value: AnyArray) -> Array:
        return self._writable(self.read(value, "out"))


_NUMPY = NumpyKind()
_JAX = JaxKind()


def is_torch(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_jax(value: object) -> bool:
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.Array)


def _refuse_tracer(value: object, name: str) -> None:
    if is_jax(value) and isinstance(value, sys.modules["jax"].core.Tracer):
        raise TypeError(
            f"{name} is a JAX tracer: truenorm computes on arrays that exist, not inside jit, grad or vmap. Call it "
            "outside them, or through jax.pure_callback"
        )


def kind_of(x: AnyArray) -> NumpyKind:
    """The kind of every array of a call, by its first argument. PyTorch tensors have gradients and a path of their own."""
    if is_jax(x):
        return _JAX
    if isinstance(x, (np.ndarray, np.generic, list, tuple, int, float)):
        return _NUMPY
    if hasattr(x, "__dlpack__"):
        return DlpackKind(x)
    if hasattr(x, "__array__"):
        return _NUMPY
    raise TypeError(f"x is of type {type(x).__name__}; expected a NumPy, PyTorch or JAX array, or one with __dlpack__")


def refuse_torch(**operands: object) -> None:
    """Tensors beside arrays that are none: their gradients would be lost without a word."""
    for name, value in operands.items():
        if is_torch(value):
            raise TypeError(f"{name} is a PyTorch tensor but x is not; pass all of them as tensors, or none")

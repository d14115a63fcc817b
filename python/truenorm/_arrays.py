"""Arrays as the library sees them: memory and a type; numbers, which have no type; memory for results."""

from __future__ import annotations

import reprlib
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
_LARGEST = {
    _core.FLOAT32: float(np.finfo(np.float32).max),
    _core.FLOAT64: float(np.finfo(np.float64).max),
    _core.FLOAT16: 65504.0,
    _core.BFLOAT16: 255 * 2.0**120,
}
SUPPORTED = "float64, float32, float16 or bfloat16"


class Array(NamedTuple):
    """Memory the library can read or write: a NumPy view of it, and what its elements are to the library.

    The two are apart because NumPy has no bfloat16 of its own: PyTorch's comes as a view of int16.
    """

    values: np.ndarray[Any, Any]
    dtype: int


def typed(values: np.ndarray[Any, Any], name: str) -> Array:
    """`values` with its type's code, or a TypeError that names the type."""
    code = _CODES.get(values.dtype)
    if code is None:
        if values.dtype.name == "bfloat16" and values.dtype.isnative:
            return Array(values, _CODES.setdefault(values.dtype, _core.BFLOAT16))
        raise TypeError(f"{name} has dtype {values.dtype}; expected {SUPPORTED} in native byte order")
    return Array(values, code)


def bfloat16(name: str) -> np.dtype[Any]:
    """NumPy's type for what has this name."""
    try:
        import ml_dtypes
    except ImportError as error:
        raise ImportError(f"{name} is bfloat16, which NumPy has with ml_dtypes only: pip install ml_dtypes") from error
    found: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return found


def number(value: Any) -> float | None:
    """A scalar, which has no type to keep: Python's and NumPy's numbers, and arrays without dimensions, which stand for
    them. None for anything else: True and False, ints beyond float64, PyTorch's tensors, which have gradients."""
    if isinstance(value, bool) or is_torch(value) or is_tracer(value) or isinstance(value, np.ma.MaskedArray):
        return None
    if not isinstance(value, (int, float)):
        if getattr(value, "shape", None) != ():
            return None
        scalar = np.asarray(value)
        if not is_real(scalar.dtype):
            return None
        value = scalar.item()
    try:
        return float(value)
    except OverflowError:
        return None


def numbers(value: object) -> np.ndarray[Any, Any] | None:
    """A list of numbers, nested or not, which have no type either. None for anything else."""
    if not isinstance(value, (list, tuple)):
        return None
    try:
        values = np.asarray(value)
    except (ValueError, RuntimeError):  # lists of different lengths, or of tensors that need gradients
        return None
    return values.astype(np.float64) if is_real(values.dtype) else None


def check_range(values: Any, dtype: int, name: str) -> None:
    """A ValueError for a number, or numbers, that would become infinite in a parameter of this type."""
    if not isinstance(values, float):
        values = float(np.max(np.abs(values), where=np.isfinite(values), initial=0))
    if _LARGEST[dtype] < abs(values) < float("inf"):
        raise ValueError(f"{name} is {values}; expected at most {_LARGEST[dtype]:.8g}, the largest {DTYPE_NAMES[dtype]}")


def is_real(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "fiu" or dtype.name == "bfloat16"


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Memory, or a MemoryError that names the shape, also where NumPy says that no array can be so large."""
    try:
        return np.empty(shape, dtype)
    except ValueError:
        raise MemoryError(f"no memory can hold an array of shape {shape} and type {dtype}") from None


def dense(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy in C order."""
    copy = empty(values.shape, values.dtype)
    copy[...] = values
    return copy


class Names(NamedTuple):
    """What the caller calls the arguments, for messages: as truenorm does, unless another interface lies in front."""

    x: str = "x"
    gamma: str = "gamma"
    beta: str = "beta"
    eps: str = "eps"


OWN_NAMES = Names()


_repr = reprlib.Repr()
_repr.maxother = _repr.maxstring = 80


def shown(value: object) -> str:
    """A value in a message, cut short."""
    if getattr(value, "ndim", 0) > 0 and hasattr(value, "shape"):
        return f"of type {type(value).__name__} and shape {tuple(value.shape)}"
    try:
        return _repr.repr(value)
    except Exception:  # an int of too many digits, an object that cannot show itself
        return f"of type {type(value).__name__}"


def is_torch(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_jax(value: object) -> bool:
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.Array)


def is_tracer(value: object) -> bool:
    return is_jax(value) and isinstance(value, sys.modules["jax"].core.Tracer)

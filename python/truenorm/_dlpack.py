"""Arrays of libraries that nobody has heard of, read through DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from ._arrays import SUPPORTED, AnyArray, Array, bfloat16, shown, typed

_CPU = 1  # kDLCPU
_FLOAT, _BFLOAT = 2, 4  # kDLFloat, kDLBfloat
_KINDS = {0: "int", 1: "uint", _FLOAT: "float", _BFLOAT: "bfloat", 5: "complex"}
# NumPy that reads DLPack's second layout, which says what may be written to.
_READS_VERSIONS = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


class _Exported:
    """A capsule that was made already, as NumPy asks for it."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU, 0


def read(value: AnyArray, name: str) -> Array:
    """The array's memory. What its own methods raise goes on as it is: it is not about truenorm."""
    if not hasattr(value, "__dlpack_device__"):
        raise TypeError(f"{name} is of type {type(value).__name__}, which has __dlpack__ but no __dlpack_device__")
    device = value.__dlpack_device__()
    if not isinstance(device, tuple) or len(device) != 2:
        raise TypeError(f"{name}.__dlpack_device__() is {shown(device)}; expected a device's type and number")
    if int(device[0]) != _CPU:
        raise TypeError(f"{name} is on DLPack device type {int(device[0])}; truenorm runs on the CPU (type {_CPU})")
    capsule = _capsule(value)
    try:
        code, bits, lanes, read_only = _core.dlpack_type(capsule)
    except TypeError:
        raise TypeError(
            f"{name}.__dlpack__() is of type {type(capsule).__name__}; expected a capsule named dltensor"
        ) from None
    if (code, bits, lanes) == (_BFLOAT, 16, 1):
        values = _core.dlpack_bits(capsule).view(bfloat16(name))
        if read_only:
            values.flags.writeable = False
        return typed(values, name)
    if code != _FLOAT or bits not in (16, 32, 64) or lanes != 1:
        raise TypeError(f"{name} has dtype {_described(code, bits, lanes)}; expected {SUPPORTED}")
    try:
        return typed(np.from_dlpack(_Exported(capsule)), name)
    except (BufferError, RuntimeError, ValueError) as error:  # more dimensions or elements than NumPy has room for
        raise ValueError(f"{name} is a {type(value).__name__} that NumPy cannot read: {error}") from error


def _described(code: int, bits: int, lanes: int) -> str:
    known = "bool" if code == 6 else f"{_KINDS[code]}{bits}" if code in _KINDS else f"of DLPack type {code}, {bits} bits"
    return known + (f", {lanes} lanes" if lanes != 1 else "")


def _capsule(value: AnyArray) -> object:
    if _READS_VERSIONS:
        try:
            return value.__dlpack__(max_version=(1, 0))
        except TypeError:  # written before DLPack had versions, or wrong: then the next line raises it again
            pass
    return value.__dlpack__()

"""ONNX's LayerNormalization (opset 17 and later), computed with truenorm. Needs no onnx package."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from . import _compute, _core
from ._arrays import DTYPE_NAMES, AnyArray, Array, Names, bfloat16, is_torch, number, shown
from ._kinds import kind_of, refuse_torch
from ._layer_norm import Call
from ._rows import LAST_AXIS, Shape

__all__ = ["layer_normalization"]

_NAMES = Names("X", "Scale", "B", "epsilon")
# TensorProto.DataType of Mean and InvStdDev; ONNX itself allows float and bfloat16.
_STASH_TYPES = {1: _core.FLOAT32, 11: _core.FLOAT64, 16: _core.BFLOAT16}


def layer_normalization(
    X: AnyArray,
    Scale: AnyArray,
    B: AnyArray = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """(Y, Mean, InvStdDev) of the node LayerNormalization with these inputs and attributes.

    axis        the *first* normalized axis: all axes from it to the last one are normalized. (numpy.mean and
                truenorm.layer_norm name the axes themselves.) X of shape (2, 3, 4) with axis=1 is normalized over 3*4
                numbers; Mean has shape (2, 1, 1).
    Scale, B    broadcast to X as in NumPy; of X's type, or float32 where X is float16 or bfloat16. A number does as well.
                B may be absent, as None; Scale, as ONNX has it, may not.
    stash_type  the type of Mean and InvStdDev: 1 float32, 16 bfloat16; 11 float64 besides. The computation itself is
                as exact as truenorm's always is, whatever stash_type says; Mean and InvStdDev are rounded at the end.
    """
    if not is_torch(X):
        refuse_torch("X", Scale=Scale, B=B)
    shape = _shape(X, "X", "an array")
    if not shape:
        raise ValueError(f"X has shape {shape}; expected an array with at least one axis")
    first = _first(axis, shape)
    if isinstance(stash_type, bool) or not isinstance(stash_type, int) or stash_type not in _STASH_TYPES:
        raise ValueError(f"stash_type is {shown(stash_type)}; expected 1 (float), 16 (bfloat16) or 11 (double)")
    if Scale is None:
        raise TypeError("Scale is None; expected an array or a number, since ONNX's LayerNormalization requires it")
    dtype = _STASH_TYPES[stash_type]
    scale, bias = _spread(Scale, "Scale", X, shape), _spread(B, "B", X, shape)
    if is_torch(X):
        return _of_tensors(X, scale, bias, epsilon, shape[first:], dtype)
    call = Call(X, scale, bias, epsilon, LAST_AXIS, shape[first:], None, _NAMES)
    y = call.forward(None, None)
    mean, var = _compute.statistics(call.x, call.eps, call.layout, call.num_threads)
    with np.errstate(divide="ignore"):
        rstd = (var + call.eps) ** -0.5
    numpy_type = bfloat16("Mean") if dtype == _core.BFLOAT16 else np.dtype(DTYPE_NAMES[dtype])
    mean, rstd = (call.kind.make(Array(values.astype(numpy_type), dtype)) for values in (mean, rstd))
    return y, mean, rstd


def _of_tensors(
    X: Any, scale: Any, bias: Any, epsilon: float, normalized_shape: Shape, dtype: int
) -> tuple[Any, Any, Any]:
    from . import _torch_arrays, _torch_kernels

    y, cache = _torch_arrays.layer_norm_forward(
        X, scale, bias, epsilon, LAST_AXIS, normalized_shape, None, None, _NAMES
    )
    (torch_type,) = (t for t, code in _torch_kernels.CODES.items() if code == dtype)
    return y, cache.mu.to(torch_type), ((cache.var + cache.eps) ** -0.5).to(torch_type)


def _first(axis: int, shape: Shape) -> int:
    try:
        if isinstance(axis, bool):
            raise TypeError
        first = operator.index(axis)
    except TypeError:
        raise TypeError(f"axis is {shown(axis)}; expected an int") from None
    if not -len(shape) <= first < len(shape):
        raise ValueError(
            f"axis {first} is out of range for X of shape {shape}; expected {-len(shape)} to {len(shape) - 1}"
        )
    return first % len(shape)


def _shape(value: Any, name: str, expected: str) -> Shape:
    """An array's shape. Lists are no inputs of a node: they have no type."""
    if is_torch(value):
        return tuple(value.shape)
    if isinstance(value, (list, tuple)) or not (hasattr(value, "__array__") or hasattr(value, "__dlpack__")):
        raise TypeError(f"{name} is of type {type(value).__name__}; expected {expected}")
    shape: Shape = kind_of(value, name).read(value, name).values.shape
    return shape


def _spread(parameter: AnyArray, name: str, X: Any, shape: Shape) -> AnyArray:
    """With X's rank: ONNX lines dimensions up from the last one."""
    if parameter is None or number(parameter) is not None:
        return parameter
    own = _shape(parameter, name, "an array or a number")
    missing = len(shape) - len(own)
    if missing < 0 or any(n not in (1, x) for n, x in zip(own, shape[missing:])):
        raise ValueError(f"{name} has shape {own}, which does not broadcast to X's, {shape}")
    if not own:
        return parameter
    values = parameter if is_torch(parameter) or is_torch(X) else kind_of(X, "X").read(parameter, name).values
    return values.reshape((1,) * missing + own)

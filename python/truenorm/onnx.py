"""ONNX's LayerNormalization (opset 17 and later), computed with truenorm. Needs no onnx package."""

from __future__ import annotations

import operator
from typing import Any

from ._arrays import AnyArray, is_number
from ._layer_norm import layer_norm_forward

__all__ = ["layer_normalization"]

# TensorProto.DataType of Mean and InvStdDev; ONNX itself allows float and bfloat16.
_STASH_TYPES = {1: "float32", 11: "float64", 16: "bfloat16"}


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
    Scale, B    broadcast to X as in NumPy; of X's type, or float32 where X is float16 or bfloat16
    stash_type  the type of Mean and InvStdDev: 1 float32, 16 bfloat16; 11 float64 besides. The computation itself is
                as exact as truenorm's always is, whatever stash_type says; Mean and InvStdDev are rounded at the end.
    """
    if not hasattr(X, "shape"):
        raise TypeError(f"X is of type {type(X).__name__}; expected an array")
    shape = tuple(X.shape)
    if not shape:
        raise ValueError(f"X has shape {shape}; expected an array with at least one axis")
    try:
        first = operator.index(axis)
    except TypeError:
        raise TypeError(f"axis is {axis!r}; expected an int") from None
    if not -len(shape) <= first < len(shape):
        raise ValueError(f"axis {axis} is out of range for X of shape {shape}")
    first %= len(shape)
    if not isinstance(stash_type, int) or stash_type not in _STASH_TYPES:
        raise ValueError(f"stash_type is {stash_type!r}; expected 1 (float), 16 (bfloat16) or 11 (double)")
    scale, bias = _spread(Scale, "Scale", shape), _spread(B, "B", shape)
    y, cache = layer_norm_forward(X, scale, bias, epsilon, normalized_shape=shape[first:])
    rstd = (cache.var + cache.eps) ** -0.5
    dtype = _STASH_TYPES[stash_type]
    return y, _as(cache.mu, dtype), _as(rstd, dtype)


def _spread(parameter: AnyArray, name: str, shape: tuple[int, ...]) -> AnyArray:
    """With X's rank: ONNX lines dimensions up from the last one."""
    if parameter is None or is_number(parameter):
        return parameter
    if not hasattr(parameter, "shape"):
        raise TypeError(f"{name} is of type {type(parameter).__name__}; expected an array or a number")
    own = tuple(parameter.shape)
    missing = len(shape) - len(own)
    if missing < 0 or any(n not in (1, x) for n, x in zip(own, shape[missing:])):
        raise ValueError(f"{name} has shape {own}, which does not broadcast to X's, {shape}")
    return parameter.reshape((1,) * missing + own)


def _as(values: Any, dtype: str) -> Any:
    if type(values).__module__.partition(".")[0] == "torch":
        import torch

        return values.to(getattr(torch, dtype))
    if dtype == "bfloat16":
        import ml_dtypes

        return values.astype(ml_dtypes.bfloat16)
    return values.astype(dtype)

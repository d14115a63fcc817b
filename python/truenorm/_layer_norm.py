"""layer_norm, layer_norm_forward and layer_norm_backward for arrays without gradients of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _compute, _core
from ._arrays import OWN_NAMES, AnyArray, Array, Names, is_torch
from ._cache import LayerNormCache
from ._kinds import NumpyKind, kind_of, refuse_torch
from ._parameters import Parameter, resolve
from ._rows import LAST_AXIS, Axes, Layout, normalized_axes


def layer_norm(
    x: AnyArray,
    gamma: AnyArray = None,
    beta: AnyArray = None,
    eps: float = 1e-5,
    *,
    axis: Axes = LAST_AXIS,
    normalized_shape: int | Sequence[int] | None = None,
    out: AnyArray = None,
    num_threads: int | None = None,
) -> AnyArray:
    """gamma * (x - mean) / sqrt(var + eps) + beta, each row on its own; var divides by the number of features.

    x is a NumPy array, a PyTorch CPU tensor, a JAX CPU array or anything with ``__dlpack__``, of float64, float32,
    float16 or bfloat16; the result is of its kind, type and shape, and laid out in memory as x is. A PyTorch tensor that
    needs gradients gets them.

    axis              the axis or axes normalized over, as in numpy.mean; None is all of them
    normalized_shape  instead of axis, never beside it: the last dimensions of x, as in PyTorch. (ONNX's ``axis=k`` means
                      all axes from k on: ``normalized_shape=x.shape[k:]``.)
    gamma, beta       of the normalized axes' shape, or of x's rank with each dimension 1 or x's, of x's type, or float32
                      where x is float16 or bfloat16; or a number, as which an array without dimensions counts.
                      None: 1 and 0.
    eps               0 or more, used as given, never rounded to x's type
    out               where to write y; x itself is allowed. Of x's type, or float32 where x is float16 or bfloat16
    num_threads       None: the process's default (set_num_threads). Never changes a bit of the result

    Nothing is copied where the normalized axes lie densely in memory (slices, negative and zero strides of the other
    axes included); other layouts are copied once on the way in and once on the way out.
    """
    last = axis is LAST_AXIS or (type(axis) is int and axis == -1)
    if last and type(x) is np.ndarray and out is None and normalized_shape is None:
        # Plain arrays, at once; None for everything else.
        y = _core.layer_norm_numpy(x, gamma, beta, eps, 0 if num_threads is None else _compute.threads(num_threads))
        if y is not None:
            return y
    if is_torch(x):
        from . import _torch_arrays

        return _torch_arrays.layer_norm(x, gamma, beta, eps, axis, normalized_shape, out, num_threads)
    call = Call(x, gamma, beta, eps, axis, normalized_shape, num_threads)
    return call.forward(out, None)


def layer_norm_forward(
    x: AnyArray,
    gamma: AnyArray = None,
    beta: AnyArray = None,
    eps: float = 1e-5,
    *,
    axis: Axes = LAST_AXIS,
    normalized_shape: int | Sequence[int] | None = None,
    out: AnyArray = None,
    num_threads: int | None = None,
) -> tuple[AnyArray, LayerNormCache]:
    """y as from layer_norm, and the cache that layer_norm_backward needs.

    The cache has six entries, (x, x_norm, mu, var, gamma, eps), and keeps x itself: out must not be x.
    """
    if is_torch(x):
        from . import _torch_arrays

        return _torch_arrays.layer_norm_forward(x, gamma, beta, eps, axis, normalized_shape, out, num_threads)
    call = Call(x, gamma, beta, eps, axis, normalized_shape, num_threads)
    if out is not None:
        refuse_torch("x", out=out)
        _compute.refuse_shared(call.kind.write(out), call.x)
    saved = _compute.new_saved(call.x, call.layout)
    y = call.forward(out, saved)
    return y, LayerNormCache(call.given_x, gamma, call.eps, saved, call)


def layer_norm_backward(
    dy: AnyArray, cache: LayerNormCache, *, num_threads: int | None = None
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """(dx, dgamma, dbeta), given dy = dL/dy and what layer_norm_forward returned.

    dy has y's shape and type. dgamma and dbeta have the shapes and the type of gamma and beta, and are None where those
    were not given. Their bits depend neither on the number of threads nor on the machine.
    """
    if not isinstance(cache, LayerNormCache):
        raise TypeError(f"cache is of type {type(cache).__name__}; expected what layer_norm_forward returned")
    result: tuple[AnyArray, AnyArray, AnyArray] = cache._owner.backward(dy, cache, num_threads)
    return result


class Call:
    """One call's arguments, understood; lives on in the cache."""

    def __init__(
        self,
        x: AnyArray,
        gamma: AnyArray,
        beta: AnyArray,
        eps: float,
        axis: Axes,
        normalized_shape: int | Sequence[int] | None,
        num_threads: int | None,
        names: Names = OWN_NAMES,
    ) -> None:
        refuse_torch(names.x, **{names.gamma: gamma, names.beta: beta})
        self.kind: NumpyKind = kind_of(x, names.x)
        self.x: Array = self.kind.read(x, names.x)
        self.given_x = x if hasattr(x, "shape") else self.x.values
        shape = self.x.values.shape
        self.layout = Layout.of(shape, normalized_axes(shape, axis, normalized_shape))
        self.eps = _compute.epsilon(eps, names.eps)
        self.num_threads = _compute.threads(num_threads)
        self.gamma: Parameter | None
        self.beta: Parameter | None
        self.gamma, self.beta = resolve(gamma, beta, self.x, self.layout, self.kind, names)

    def forward(self, out: AnyArray, saved: _compute.Float64s | None) -> AnyArray:
        if out is None:
            y = _compute.result_like(self.x)
        else:
            refuse_torch("x", out=out)
            y = self.kind.write(out)
            _compute.check_out(y, self.x, self.gamma, self.beta)
        _compute.forward(self.x, self.gamma, self.beta, self.eps, self.layout, y, self.num_threads, saved)
        return self.kind.make(y) if out is None else out

    def backward(self, dy: AnyArray, cache: LayerNormCache, num_threads: int | None) -> tuple[Any, Any, Any]:
        refuse_torch("x", dy=dy)
        dy_array = self.kind.read(dy, "dy")
        if dy_array.values.shape != self.x.values.shape:
            raise ValueError(f"dy has shape {dy_array.values.shape}; expected x's, {self.x.values.shape}")
        count = self.num_threads if num_threads is None else _compute.threads(num_threads)
        dx = _compute.result_like(self.x)
        found = _compute.backward(
            dy_array, self.x, self.gamma, self.beta, self.eps, self.layout, count, cache._saved, dx
        )
        dgamma, dbeta = (None if array is None else self.kind.make(array) for array in found)
        return self.kind.make(dx), dgamma, dbeta

    def x_norm(self, x: AnyArray, eps: float) -> AnyArray:
        y = _compute.result_like(self.x)
        _compute.forward(self.x, None, None, eps, self.layout, y, self.num_threads)
        return self.kind.make(y)

    def statistics(self, x: AnyArray, eps: float) -> tuple[AnyArray, AnyArray]:
        mean, var = _compute.statistics(self.x, eps, self.layout, self.num_threads)
        return self.kind.make(Array(mean, _core.FLOAT64)), self.kind.make(Array(var, _core.FLOAT64))

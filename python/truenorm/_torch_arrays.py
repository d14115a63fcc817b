"""truenorm.layer_norm and its companions for PyTorch tensors: the same arguments, with gradients where they are needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from . import _compute, _torch_autograd, _torch_gradients, _torch_kernels
from ._cache import LayerNormCache
from ._rows import Shape, normalized_axes
from ._torch_kernels import CODES, KIND

Axes = int | Sequence[int] | None
Function = TypeVar("Function", bound=Callable[..., Any])


def _memory_errors(function: Function) -> Function:
    """Lack of memory as a MemoryError, as for other arrays; PyTorch's allocator says it with a RuntimeError."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except RuntimeError as error:
            if "can't allocate memory" not in str(error):
                raise
            raise MemoryError(str(error)) from None

    return cast("Function", call)


@_memory_errors
def layer_norm(
    x: Tensor,
    gamma: Any,
    beta: Any,
    eps: float,
    axis: Axes,
    normalized_shape: int | Sequence[int] | None,
    out: Any,
    num_threads: int | None,
) -> Tensor:
    call = _Call(x, gamma, beta, eps, axis, normalized_shape, num_threads)
    if out is None:
        return _torch_autograd.layer_norm(x, call.gamma, call.beta, call.axes, call.eps, call.num_threads)
    return call.write(out)


@_memory_errors
def layer_norm_forward(
    x: Tensor,
    gamma: Any,
    beta: Any,
    eps: float,
    axis: Axes,
    normalized_shape: int | Sequence[int] | None,
    out: Any,
    num_threads: int | None,
) -> tuple[Tensor, LayerNormCache]:
    call = _Call(x, gamma, beta, eps, axis, normalized_shape, num_threads)
    if out is not None:
        call.check(out)
        _compute.refuse_shared(KIND.read(out, "out"), KIND.read(x, "x"))
        saved = _torch_kernels.new_saved(x, call.axes)
        call.write(out, saved)
        return out, LayerNormCache(x, gamma, call.eps, saved, call)
    y, saved = _torch_autograd.layer_norm_with_saved(
        x, call.gamma, call.beta, call.axes, call.eps, call.num_threads
    )
    return y, LayerNormCache(x, gamma, call.eps, saved.detach(), call)


class _Call:
    """One call's arguments, understood; lives on in the cache."""

    def __init__(
        self,
        x: Tensor,
        gamma: Any,
        beta: Any,
        eps: float,
        axis: Axes,
        normalized_shape: int | Sequence[int] | None,
        num_threads: int | None,
    ) -> None:
        dense = x.layout is torch.strided and not x.is_nested
        if not dense or x.dtype not in CODES or x.device.type not in ("cpu", "meta"):
            KIND.read(x, "x")  # says what is wrong with it
        self.x = x
        self.axes: Shape = normalized_axes(tuple(x.shape), axis, normalized_shape)
        self.eps = _compute.epsilon(eps)
        self.num_threads = _compute.threads(num_threads)
        # Numbers have no type: that of the other parameter, else x's; float32 beside half x, which would round them.
        given = [p for p in (gamma, beta) if isinstance(p, Tensor)]
        half = x.dtype in (torch.float16, torch.bfloat16)
        dtype = given[0].dtype if given else torch.float32 if half else x.dtype
        self.gamma = _parameter(gamma, "gamma", dtype)
        self.beta = _parameter(beta, "beta", dtype)

    def check(self, out: Any) -> None:
        if not isinstance(out, Tensor):
            raise TypeError(f"out is of type {type(out).__name__}; expected a PyTorch tensor, as x is")
        if _torch_autograd.needs_gradient(self.x, self.gamma, self.beta, out):
            raise ValueError("out cannot be given where gradients are needed; call it under torch.no_grad()")
        if _torch_gradients.in_transform():
            raise ValueError("out cannot be given under torch.func's transforms, vmap among them")
        if out.is_neg():
            raise ValueError("out is a negated view; expected a tensor that can be written to as it is")

    def write(self, out: Tensor, saved: Tensor | None = None) -> Tensor:
        self.check(out)
        _torch_kernels.forward_into(
            out, self.x, self.gamma, self.beta, self.axes, self.eps, self.num_threads, saved, given=True
        )
        # As any operation in place: a graph that needs the old values notices.
        if not torch.compiler.is_compiling() and not out.is_inference():
            torch.autograd.graph.increment_version(out)
        return out

    @_memory_errors
    def backward(self, dy: Any, cache: LayerNormCache, num_threads: int | None) -> tuple[Any, Any, Any]:
        if not isinstance(dy, Tensor):
            raise TypeError(f"dy is of type {type(dy).__name__}; expected a PyTorch tensor, as x is")
        if dy.shape != self.x.shape:
            raise ValueError(f"dy has shape {tuple(dy.shape)}; expected x's, {tuple(self.x.shape)}")
        count = self.num_threads if num_threads is None else _compute.threads(num_threads)
        wanted = (True, self.gamma is not None, self.beta is not None)
        dx, dgamma, dbeta = _torch_autograd.layer_norm_backward(
            dy, self.x, self.gamma, self.beta, cache._saved, self.axes, self.eps, count, wanted
        )
        return dx, dgamma, dbeta

    def x_norm(self, x: Tensor, eps: float) -> Tensor:
        return _torch_autograd.layer_norm(x, None, None, self.axes, eps, self.num_threads)

    def statistics(self, x: Tensor, eps: float) -> tuple[Tensor, Tensor]:
        return _torch_autograd.statistics(x, self.axes, eps, self.num_threads)


def _parameter(value: Any, name: str, dtype: torch.dtype) -> Tensor | None:
    if value is None or isinstance(value, Tensor):
        return value
    if type(value).__module__.partition(".")[0] in ("numpy", "jax", "jaxlib") and getattr(value, "ndim", 0) > 0:
        raise TypeError(f"{name} is of type {type(value).__name__} but x is a PyTorch tensor; pass {name} as one too")
    try:
        return torch.tensor(value, dtype=dtype)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"{name} is {value!r}; expected a PyTorch tensor, a number or None") from None

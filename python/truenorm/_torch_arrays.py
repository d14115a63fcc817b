"""truenorm.layer_norm and its companions for PyTorch tensors: the same arguments, with gradients where they are needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from . import _compute, _torch_autograd, _torch_gradients, _torch_kernels
from ._arrays import OWN_NAMES, Names, check_range, number, numbers, shown
from ._cache import LayerNormCache
from ._rows import Axes, Shape, normalized_axes
from ._torch_kernels import CODES, KIND

Function = TypeVar("Function", bound=Callable[..., Any])


# How PyTorch says it: that there is none, and that no number of bytes or elements can say how much is asked for.
_NO_MEMORY = ("can't allocate memory", "Storage size calculation overflowed", "numel: integer multiplication overflow")


def _memory_errors(function: Function) -> Function:
    """Lack of memory as a MemoryError, as for other arrays; PyTorch has RuntimeErrors for it."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except RuntimeError as error:
            if not any(words in str(error) for words in _NO_MEMORY):
                raise
            shape = next(tuple(a.shape) for a in args if isinstance(a, Tensor))
            raise MemoryError(f"no memory for a tensor of shape {shape}: {error}") from None

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
    names: Names = OWN_NAMES,
) -> tuple[Tensor, LayerNormCache]:
    call = _Call(x, gamma, beta, eps, axis, normalized_shape, num_threads, names)
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
        names: Names = OWN_NAMES,
    ) -> None:
        if x.dtype not in CODES:
            KIND.read(x, names.x)  # says so
        self.x = x
        self.gamma, self.beta = _parameters(gamma, beta, x, names)
        _torch_kernels.check(x, self.gamma, self.beta, names)
        if x.device.type not in ("cpu", "meta"):
            KIND.read(x, names.x)  # says so
        self.axes: Shape = normalized_axes(tuple(x.shape), axis, normalized_shape)
        self.eps = _compute.epsilon(eps, names.eps)
        self.num_threads = _compute.threads(num_threads)

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
            raise TypeError(f"dy is {shown(dy)}; expected a PyTorch tensor, as x is")
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


def _parameters(gamma: Any, beta: Any, x: Tensor, names: Names) -> list[Tensor | None]:
    """Both as tensors. Numbers have no type: that of the other parameter, else x's; float32 beside half x, which would
    round them. Tensors without dimensions count as numbers that have gradients."""
    typed = [p.dtype for p in (gamma, beta) if isinstance(p, Tensor) and p.dim() > 0]
    half = x.dtype in (torch.float16, torch.bfloat16)
    dtype = typed[0] if typed else torch.float32 if half else x.dtype

    def one(value: Any, name: str) -> Tensor | None:
        if value is None:
            return None
        if isinstance(value, Tensor):
            scalar = value.dim() == 0 and value.dtype is not torch.bool and not value.is_complex()
            return value.to(dtype) if scalar else value
        found = number(value)
        values = numbers(value) if found is None else found
        if values is None:
            if getattr(value, "ndim", 0) > 0:
                raise TypeError(
                    f"{name} is of type {type(value).__name__} but {names.x} is a PyTorch tensor; pass {name} as one too"
                )
            raise TypeError(f"{name} is {shown(value)}; expected a PyTorch tensor, a number or None")
        if dtype in CODES:
            check_range(values, CODES[dtype], name)
        return torch.tensor(values, dtype=dtype, device=x.device)

    return [one(gamma, names.gamma), one(beta, names.beta)]

"""How a call on tensors reaches the kernels: straight, through autograd, or through the registered operator.

The operator is right everywhere, but PyTorch's machinery for operators defined in Python costs some 7 microseconds a
call, and 20 with gradients. Calls on plain CPU tensors, with nothing that watches or transforms them, skip it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from . import _torch_formulas, _torch_gradients, _torch_kernels
from ._rows import Shape

_TYPES = (Tensor, torch.nn.Parameter)

try:
    from torch._C import DispatchKey, DispatchKeySet
    from torch._C import _dispatch_tls_local_include_set as _thread_state

    # What the dispatcher itself looks at: no transform (vmap, grad), no tracer, no mode, no autocast in this thread.
    _IDLE = (DispatchKeySet(DispatchKey.BackendSelect) | DispatchKeySet(DispatchKey.ADInplaceOrView)).raw_repr()

    def _is_plain(*tensors: Tensor | None) -> bool:
        if _thread_state().raw_repr() != _IDLE or forward_ad._current_level >= 0:
            return False
        for tensor in tensors:
            if tensor is not None and (
                type(tensor) not in _TYPES or not tensor.is_cpu or tensor.is_neg()
            ):
                return False
        return True

except ImportError:  # a PyTorch that has other insides: always the operator

    def _is_plain(*tensors: Tensor | None) -> bool:
        return False


def layer_norm(
    x: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
    axes: Shape,
    eps: float,
    num_threads: int = 0,
) -> Tensor:
    """y with gradients of any order."""
    if not torch.compiler.is_compiling() and _is_plain(x, gamma, beta):
        if needs_gradient(x, gamma, beta):
            y: Tensor = _LayerNorm.apply(x, gamma, beta, axes, eps, num_threads)  # type: ignore[no-untyped-call]
            return y
        return _torch_kernels.forward(x, gamma, beta, axes, eps, num_threads, keep=False)[0]
    return layer_norm_with_saved(x, gamma, beta, axes, eps, num_threads)[0]


def layer_norm_with_saved(
    x: Tensor, gamma: Tensor | None, beta: Tensor | None, axes: Shape, eps: float, num_threads: int
) -> tuple[Tensor, Tensor]:
    """(y, what backward needs of each row)."""
    if not torch.compiler.is_compiling() and forward_ad._current_level >= 0:
        return _torch_formulas.layer_norm(x, gamma, beta, axes, eps), x.new_empty(0)
    return _torch_gradients.layer_norm(x, gamma, beta, axes, eps, num_threads)


def layer_norm_backward(
    dy: Tensor,
    x: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
    saved: Tensor | None,
    axes: Shape,
    eps: float,
    num_threads: int,
    wanted: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    """(dx, dgamma, dbeta), None where not wanted, with gradients of their own where those are needed."""
    asked = (wanted[0], wanted[1], wanted[2])
    if not needs_gradient(dy, x, gamma, beta) and _is_plain(dy, x, gamma, beta):
        return _torch_kernels.backward(dy, x, gamma, beta, saved, axes, eps, num_threads, asked)
    found = _torch_gradients.layer_norm_backward(dy, x, gamma, beta, saved, axes, eps, num_threads, asked)
    return tuple(g if w else None for g, w in zip(found, asked))


def statistics(x: Tensor, axes: Shape, eps: float, num_threads: int) -> tuple[Tensor, Tensor]:
    """(mean, var) of each row in float64, with gradients where they are needed."""
    mean, var = _torch_kernels.statistics(x, axes, eps, num_threads)
    if needs_gradient(x):
        d_mean, d_var = _torch_formulas.statistics(x, axes)
        # The library's values with the formulas' gradients.
        mean, var = (_Valued.apply(value, carrier) for value, carrier in ((mean, d_mean), (var, d_var)))  # type: ignore[no-untyped-call]
    return mean, var


def needs_gradient(*tensors: Tensor | None) -> bool:
    return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)


class _LayerNorm(torch.autograd.Function):
    """The operator's autograd formula once more, without the operator's price."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        gamma: Tensor | None,
        beta: Tensor | None,
        axes: Shape,
        eps: float,
        num_threads: int,
    ) -> Tensor:
        y, saved = _torch_kernels.forward(x, gamma, beta, axes, eps, num_threads, keep=True)
        ctx.save_for_backward(x, gamma, beta, saved)
        ctx.how = (axes, eps, num_threads)
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Any, ...]:
        x, gamma, beta, saved = ctx.saved_tensors
        axes, eps, num_threads = ctx.how
        found = layer_norm_backward(
            dy, x, gamma, beta, saved, axes, eps, num_threads, ctx.needs_input_grad[:3]
        )
        return (*found, None, None, None)


class _Valued(torch.autograd.Function):
    """A value, with the gradient of another expression for it."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, carrier: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        return None, gradient

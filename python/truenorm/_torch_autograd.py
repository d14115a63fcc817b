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

from . import _core, _torch_formulas, _torch_gradients, _torch_kernels
from ._rows import Shape

try:
    from torch._C import DispatchKey, DispatchKeySet
    from torch._C import _dispatch_tls_local_include_set as _thread_state

    # What the dispatcher itself looks at: no transform (vmap, grad), no tracer, no mode, no autocast in this thread.
    _IDLE = (DispatchKeySet(DispatchKey.BackendSelect) | DispatchKeySet(DispatchKey.ADInplaceOrView)).raw_repr()
    _IDLE_INFERENCE = DispatchKeySet(DispatchKey.BackendSelect).raw_repr()

    def _is_idle() -> bool:
        state = _thread_state().raw_repr()
        idle = state == _IDLE or (state == _IDLE_INFERENCE and torch.is_inference_mode_enabled())
        return idle and forward_ad._current_level < 0

except (ImportError, AttributeError):  # a PyTorch that has other insides: always the operator

    def _is_idle() -> bool:
        return False


def direct(
    x: Tensor,
    normalized_shape: int | Sequence[int],
    gamma: Tensor | None,
    beta: Tensor | None,
    eps: float,
    num_threads: int = 0,
) -> Tensor | None:
    """y by the shortest way, or None where it is not open; the extension looks at the arguments."""
    if not _is_idle() or not x.is_cpu or x.layout is not torch.strided:
        return None
    if torch.is_grad_enabled() and (
        x.requires_grad or (gamma is not None and gamma.requires_grad) or (beta is not None and beta.requires_grad)
    ):
        y: Tensor | None = _Direct.apply(x, gamma, beta, (normalized_shape, eps, num_threads))  # type: ignore[no-untyped-call]
        return y
    y = torch.empty_like(x)
    return y if _core.tensor_forward(x, gamma, beta, y, None, normalized_shape, eps, num_threads) else None


class _Direct(torch.autograd.Function):
    """The operator's autograd formula once more, without the operator's price."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, gamma: Tensor | None, beta: Tensor | None, how: tuple[Any, float, int]
    ) -> Tensor | None:
        normalized_shape, eps, num_threads = how
        y = torch.empty_like(x)
        # Up to a few rows, computing their statistics again is cheaper than memory for them.
        saved = None if x.numel() <= 4096 else _torch_kernels.new_saved(x, _last(normalized_shape, x))
        if not _core.tensor_forward(x, gamma, beta, y, saved, normalized_shape, eps, num_threads):
            return None
        ctx.save_for_backward(x, gamma, beta, saved)
        ctx.how = how
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, gamma, beta, saved = ctx.saved_tensors
        normalized_shape, eps, num_threads = ctx.how
        wanted = ctx.needs_input_grad
        if not torch.is_grad_enabled() and _is_idle():
            dx = torch.empty_like(x) if wanted[0] else None
            dgamma = torch.empty_like(gamma) if wanted[1] else None
            dbeta = torch.empty_like(beta) if wanted[2] else None
            if _core.tensor_backward(
                dy, x, gamma, saved, dx, dgamma, dbeta, normalized_shape, eps, num_threads
            ):
                return dx, dgamma, dbeta, None
        axes = _last(normalized_shape, x)
        return (*layer_norm_backward(dy, x, gamma, beta, saved, axes, eps, num_threads, wanted), None)


def _last(normalized_shape: int | Sequence[int], x: Tensor) -> Shape:
    # As the extension has it, which refuses what is neither; it is asked after this.
    k = len(normalized_shape) if isinstance(normalized_shape, tuple) else 1
    return tuple(range(x.dim() - k, x.dim()))


def layer_norm(
    x: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
    axes: Shape,
    eps: float,
    num_threads: int = 0,
) -> Tensor:
    """y with gradients of any order."""
    if not torch.compiler.is_compiling():
        if axes and axes[0] == x.dim() - len(axes):
            y = direct(x, x.shape[axes[0] :], gamma, beta, eps, num_threads)
            if y is not None:
                return y
        if not needs_gradient(x, gamma, beta) and are_plain(x, gamma, beta):
            return _torch_kernels.forward(x, gamma, beta, axes, eps, num_threads, keep=False)[0]
    return layer_norm_with_saved(x, gamma, beta, axes, eps, num_threads)[0]


def layer_norm_with_saved(
    x: Tensor, gamma: Tensor | None, beta: Tensor | None, axes: Shape, eps: float, num_threads: int
) -> tuple[Tensor, Tensor]:
    """(y, what backward needs of each row)."""
    dual = forward_ad._current_level >= 0
    if dual or _torch_gradients.in_functionalize() or _torch_gradients.in_compiled_derivative():
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
    if not needs_gradient(dy, x, gamma, beta) and are_plain(dy, x, gamma, beta):
        return _torch_kernels.backward(dy, x, gamma, beta, saved, axes, eps, num_threads, asked)
    found = _torch_gradients.layer_norm_backward(dy, x, gamma, beta, saved, axes, eps, num_threads, asked)
    return tuple(g if w else None for g, w in zip(found, asked))


def are_plain(*tensors: Tensor | None) -> bool:
    """Whether nothing watches or stands for these tensors: no mode, no transform, no subclass, no other device."""
    return _is_idle() and all(t is None or (type(t) in (Tensor, torch.nn.Parameter) and t.is_cpu) for t in tensors)


def needs_gradient(*tensors: Tensor | None) -> bool:
    return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)


def statistics(x: Tensor, axes: Shape, eps: float, num_threads: int) -> tuple[Tensor, Tensor]:
    """(mean, var) of each row in float64, with gradients where they are needed."""
    if not torch.compiler.is_compiling() and not are_plain(x):
        return _torch_formulas.statistics(x, axes)  # what PyTorch can transform
    mean, var = _torch_kernels.statistics(x, axes, eps, num_threads)
    if needs_gradient(x):
        d_mean, d_var = _torch_formulas.statistics(x, axes)
        # The library's values with the formulas' gradients.
        mean = _Valued.apply(mean, d_mean)  # type: ignore[no-untyped-call]
        var = _Valued.apply(var, d_var)  # type: ignore[no-untyped-call]
    return mean, var


class _Valued(torch.autograd.Function):
    """A value, with the gradient of another expression for it."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, carrier: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        return None, gradient

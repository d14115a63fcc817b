"""Derivatives of the operators: for autograd, torch.compile and the transforms of torch.func.

The first derivative is the library's; the second and all further ones come from _torch_formulas. PyTorch wants the same
rule twice: registered with the operator, which torch.compile and torch.export need and torch.func refuses, and as an
autograd.Function with a vmap rule, the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch._functorch.pyfunctorch import retrieve_current_functorch_interpreter

from . import _torch_batching
from ._torch_formulas import backward_of_backward
from ._torch_operator import MaybeTensor, ascending, layer_norm_backward_op, layer_norm_op, library

_transforms_active = getattr(torch._C, "_are_functorch_transforms_active", lambda: False)


def layer_norm(
    x: Tensor, gamma: MaybeTensor, beta: MaybeTensor, axis: Sequence[int], eps: float, num_threads: int
) -> tuple[Tensor, Tensor]:
    """(y, saved), differentiable wherever it is called."""
    call: Any = _LayerNorm.apply if in_transform() else layer_norm_op
    result: tuple[Tensor, Tensor] = call(x, gamma, beta, axis, eps, num_threads)
    return result


def layer_norm_backward(
    dy: Tensor,
    x: Tensor,
    gamma: MaybeTensor,
    beta: MaybeTensor,
    saved: MaybeTensor,
    axis: Sequence[int],
    eps: float,
    num_threads: int,
    wanted: Sequence[bool],
) -> tuple[Tensor, Tensor, Tensor]:
    """(dx, dgamma, dbeta), empty where not wanted; differentiable too."""
    call: Any = _LayerNormBackward.apply if in_transform() else layer_norm_backward_op
    result: tuple[Tensor, Tensor, Tensor] = call(dy, x, gamma, beta, saved, axis, eps, num_threads, wanted)
    return result


def in_transform() -> bool:
    return not torch.compiler.is_compiling() and bool(_transforms_active())


def in_compiled_derivative() -> bool:
    """Whether torch.compile traces a derivative of torch.func's, where it takes neither the operator nor an
    autograd.Function with a vmap rule. What lies around the innermost transform cannot be asked there: only a vmap by
    itself is told apart."""
    if not torch.compiler.is_compiling() or not _transforms_active():
        return False
    innermost = retrieve_current_functorch_interpreter()
    return innermost.level() > 1 or innermost.key() != torch._C._functorch.TransformType.Vmap


def in_functionalize() -> bool:
    """Whether torch.func.functionalize is among the transforms: PyTorch has no rule for an autograd.Function under it."""
    if not in_transform():
        return False
    functorch = torch._C._functorch
    return any(level.key() == functorch.TransformType.Functionalize for level in functorch.get_interpreter_stack() or ())


def _setup_forward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    x, gamma, beta, ctx.axis, ctx.eps, ctx.num_threads = inputs
    ctx.save_for_backward(x, gamma, beta, output[1])
    ctx.set_materialize_grads(False)


def _forward_gradient(ctx: Any, dy: MaybeTensor, dsaved: MaybeTensor) -> tuple[Any, ...]:
    # `saved` is numbers for backward, not a result: it has no gradient.
    if dy is None:
        return (None,) * 6
    x, gamma, beta, saved = ctx.saved_tensors
    wanted = list(ctx.needs_input_grad[:3])
    found = layer_norm_backward(dy, x, gamma, beta, saved, ctx.axis, ctx.eps, ctx.num_threads, wanted)
    return (*(g if w else None for g, w in zip(found, wanted)), None, None, None)


def _setup_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    dy, x, gamma, beta, _, ctx.axis, ctx.eps, _, ctx.wanted = inputs
    ctx.save_for_backward(dy, x, gamma, beta)
    ctx.set_materialize_grads(False)


def _backward_gradient(ctx: Any, u: MaybeTensor, a: MaybeTensor, b: MaybeTensor) -> tuple[Any, ...]:
    dy, x, gamma, beta = ctx.saved_tensors
    wanted_u, wanted_a, wanted_b = ctx.wanted
    to_dy, to_x, to_gamma = backward_of_backward(
        u if wanted_u else None,
        a if wanted_a and gamma is not None else None,
        b if wanted_b and beta is not None else None,
        dy,
        x,
        gamma,
        ascending(ctx.axis, x),
        ctx.eps,
    )
    return to_dy, to_x, to_gamma, None, None, None, None, None, None


class _LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(*inputs: Any) -> tuple[Tensor, Tensor]:
        result: tuple[Tensor, Tensor] = layer_norm_op(*inputs)
        return result

    setup_context = staticmethod(_setup_forward)
    backward = staticmethod(_forward_gradient)
    vmap = staticmethod(partial(_torch_batching.forward_rule, layer_norm))


class _LayerNormBackward(torch.autograd.Function):
    @staticmethod
    def forward(*inputs: Any) -> tuple[Tensor, ...]:
        result: tuple[Tensor, ...] = layer_norm_backward_op(*inputs)
        return result

    setup_context = staticmethod(_setup_backward)
    backward = staticmethod(_backward_gradient)
    vmap = staticmethod(partial(_torch_batching.backward_rule, layer_norm_backward))


torch.library.register_autograd(
    "truenorm::layer_norm", _forward_gradient, setup_context=_setup_forward, lib=library
)
torch.library.register_autograd(
    "truenorm::layer_norm_backward", _backward_gradient, setup_context=_setup_backward, lib=library
)
torch.library.register_vmap("truenorm::layer_norm", _LayerNorm.vmap, lib=library)
torch.library.register_vmap("truenorm::layer_norm_backward", _LayerNormBackward.vmap, lib=library)

"""The operators torch.ops.truenorm.layer_norm and layer_norm_backward, registered with PyTorch.

Here their schemas, kernels and fake implementations (for torch.compile and torch.export); their derivatives and their
batching rules are in _torch_gradients and _torch_batching.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch._functorch import eager_transforms
from torch.autograd import forward_ad

from . import _torch_kernels
from ._rows import normalized_axes

library = torch.library.Library("truenorm", "FRAGMENT")
library.define(
    "layer_norm(Tensor x, Tensor? gamma, Tensor? beta, int[] axis, float eps, int num_threads=0) -> (Tensor y, Tensor saved)",
    tags=(torch.Tag.pt2_compliant_tag,),
)
library.define(
    "layer_norm_backward(Tensor dy, Tensor x, Tensor? gamma, Tensor? beta, Tensor? saved, int[] axis, float eps, "
    "int num_threads, bool[3] wanted) -> (Tensor dx, Tensor dgamma, Tensor dbeta)",
    tags=(torch.Tag.pt2_compliant_tag,),
)

MaybeTensor = Tensor | None


def _forward_cpu(
    x: Tensor, gamma: MaybeTensor, beta: MaybeTensor, axis: list[int], eps: float, num_threads: int = 0
) -> tuple[Tensor, Tensor]:
    _refuse_tangents(x, gamma, beta)
    y, saved = _torch_kernels.forward(x, gamma, beta, ascending(axis, x), eps, num_threads, keep=True)
    assert saved is not None
    return y, saved


def _backward_cpu(
    dy: Tensor,
    x: Tensor,
    gamma: MaybeTensor,
    beta: MaybeTensor,
    saved: MaybeTensor,
    axis: list[int],
    eps: float,
    num_threads: int,
    wanted: list[bool],
) -> tuple[Tensor, ...]:
    _refuse_tangents(dy, x, gamma)
    asked = (wanted[0], wanted[1], wanted[2])
    found = _torch_kernels.backward(dy, x, gamma, beta, saved, ascending(axis, x), eps, num_threads, asked)
    # An operator returns tensors: an empty one stands for "not wanted".
    return tuple(x.new_empty(0) if gradient is None else gradient for gradient in found)


def _refuse_tangents(*tensors: MaybeTensor) -> None:
    """PyTorch would drop the tangents of forward-mode differentiation here without a word. Those of torch.func.jvp are
    out of sight already, so that nothing is taken inside of it."""
    if eager_transforms.JVP_NESTING > 0 or (
        forward_ad._current_level >= 0
        and any(t is not None and forward_ad.unpack_dual(t).tangent is not None for t in tensors)
    ):
        raise NotImplementedError(
            "torch.ops.truenorm.layer_norm has no forward-mode derivative; call truenorm.torch.layer_norm, which has"
        )


def _refuse_other_devices(x: Tensor, *others: MaybeTensor) -> None:
    """PyTorch comes here for a CPU tensor beside a meta one as well, and would return memory that nobody wrote."""
    for other in others:
        if other is not None and other.device != x.device:
            raise TypeError(f"x is on {x.device}, another tensor on {other.device}; expected all on one device")


def ascending(axis: list[int], x: Tensor) -> tuple[int, ...]:
    return normalized_axes(tuple(x.shape), axis, None)


def _forward_fake(
    x: Tensor, gamma: MaybeTensor, beta: MaybeTensor, axis: list[int], eps: float, num_threads: int = 0
) -> tuple[Tensor, Tensor]:
    _refuse_other_devices(x, gamma, beta)
    return torch.empty_like(x), _torch_kernels.new_saved(x, ascending(axis, x))


def _backward_fake(
    dy: Tensor,
    x: Tensor,
    gamma: MaybeTensor,
    beta: MaybeTensor,
    saved: MaybeTensor,
    axis: list[int],
    eps: float,
    num_threads: int,
    wanted: list[bool],
) -> tuple[Tensor, ...]:
    _refuse_other_devices(x, dy, gamma, beta)

    def like(parameter: MaybeTensor, asked: bool) -> Tensor:
        return x.new_empty(0) if parameter is None or not asked else parameter.new_empty(parameter.shape)

    dx = torch.empty_like(x) if wanted[0] else x.new_empty(0)
    return dx, like(gamma, wanted[1]), like(beta, wanted[2])


library.impl("layer_norm", _forward_cpu, "CPU")
library.impl("layer_norm_backward", _backward_cpu, "CPU")
torch.library.register_fake("truenorm::layer_norm", _forward_fake, lib=library)
torch.library.register_fake("truenorm::layer_norm_backward", _backward_fake, lib=library)

layer_norm_op = torch.ops.truenorm.layer_norm.default
layer_norm_backward_op = torch.ops.truenorm.layer_norm_backward.default

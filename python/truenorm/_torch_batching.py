"""Batching rules: under vmap the batch becomes one more leading axis, in front."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from torch import Tensor

from ._rows import Shape, normalized_axes
from ._torch_operator import MaybeTensor


def _batched(tensor: Tensor, dim: int | None, size: int) -> Tensor:
    return tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)


def _batched_parameter(
    parameter: MaybeTensor, dim: int | None, size: int, example: Shape, axes: Shape
) -> MaybeTensor:
    """With the rank of the batched x, so that each example has its own."""
    if parameter is None:
        return None
    whole = _batched(parameter, dim, size)
    features = tuple(example[i] for i in axes)
    if tuple(whole.shape[1:]) == features:
        whole = whole.reshape(size, *(n if i in axes else 1 for i, n in enumerate(example)))
    elif whole.dim() == 1:
        whole = whole.reshape(size, *(1,) * len(example))
    return whole


def _shared_parameter(parameter: MaybeTensor, example: Shape, axes: Shape) -> MaybeTensor:
    if parameter is None or tuple(parameter.shape) == tuple(example[i] for i in axes):
        return parameter
    return parameter.reshape(1, *(parameter.shape if parameter.dim() else (1,) * len(example)))


def forward_rule(
    layer_norm: Callable[..., tuple[Tensor, Tensor]],
    info: Any,
    in_dims: tuple[Any, ...],
    x: Tensor,
    gamma: MaybeTensor,
    beta: MaybeTensor,
    axis: list[int],
    eps: float,
    num_threads: int = 0,
) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
    size = info.batch_size
    whole = _batched(x, in_dims[0], size)
    example = tuple(whole.shape[1:])
    axes = normalized_axes(example, axis, None)
    placed = [
        # A parameter that all examples share stays one.
        _shared_parameter(p, example, axes) if d is None else _batched_parameter(p, d, size, example, axes)
        for p, d in zip((gamma, beta), in_dims[1:3])
    ]
    y, saved = layer_norm(whole, placed[0], placed[1], [a + 1 for a in axes], eps, num_threads)
    rows = math.prod(n for i, n in enumerate(example) if i not in axes)
    return (y, saved.reshape(size, rows, saved.shape[-1])), (0, 0)


def backward_rule(
    layer_norm_backward: Callable[..., tuple[Tensor, ...]],
    info: Any,
    in_dims: tuple[Any, ...],
    dy: Tensor,
    x: Tensor,
    gamma: MaybeTensor,
    beta: MaybeTensor,
    saved: MaybeTensor,
    axis: list[int],
    eps: float,
    num_threads: int,
    wanted: list[bool],
) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    size = info.batch_size
    whole_dy, whole = _batched(dy, in_dims[0], size), _batched(x, in_dims[1], size)
    example = tuple(whole.shape[1:])
    axes = normalized_axes(example, axis, None)
    # Each example has gradients of its own, so each gets parameters of its own.
    placed = [_batched_parameter(p, d, size, example, axes) for p, d in zip((gamma, beta), in_dims[2:4])]
    if saved is not None:
        saved = _batched(saved, in_dims[4], size)
        saved = saved.reshape(-1, saved.shape[-1])
    found = layer_norm_backward(
        whole_dy, whole, placed[0], placed[1], saved, [a + 1 for a in axes], eps, num_threads, wanted
    )
    shapes = [
        None if p is None else p.shape if d is None else p.movedim(d, 0).shape[1:]
        for p, d in zip((gamma, beta), in_dims[2:4])
    ]
    results = [
        x.new_empty(size, 0) if shape is None or not asked else gradient.reshape(size, *shape)
        for gradient, shape, asked in zip(found[1:], shapes, wanted[1:])
    ]
    dx = found[0] if wanted[0] else x.new_empty(size, 0)
    return (dx, *results), (0, 0, 0)

"""Derivatives beyond the first, in PyTorch's own differentiable operations and float64.

Everything here is composed of operations that PyTorch can differentiate, so that derivatives of any further order, and
forward mode, are PyTorch's business and right. Values are rounded once to the types of the inputs.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ._rows import Shape


def spread(parameter: Tensor | None, x: Tensor, axes: Shape) -> Tensor | None:
    """gamma or beta in float64 with x's rank, each dimension 1 or x's."""
    if parameter is None:
        return None
    features = tuple(x.shape[i] for i in axes)
    if tuple(parameter.shape) == features:
        parameter = parameter.reshape([n if i in axes else 1 for i, n in enumerate(x.shape)])
    return parameter.double()


def gathered(values: Tensor, parameter: Tensor, x: Tensor, axes: Shape) -> Tensor:
    """Summed to the parameter's shape and rounded to its type: the opposite of spread."""
    features = tuple(x.shape[i] for i in axes)
    if tuple(parameter.shape) == features:
        values = values.sum_to_size([n if i in axes else 1 for i, n in enumerate(x.shape)])
    else:
        values = values.sum_to_size(parameter.shape)
    return values.reshape(parameter.shape).to(parameter.dtype)


def normalized(x: Tensor, axes: Shape, eps: float) -> tuple[Tensor, Tensor]:
    """(x_hat, rstd) in float64."""
    wide = x.double()
    c = wide - _mean(wide, axes)
    # The mean is rounded; what is left of it matters where it is large against the spread.
    c = c - _mean(c, axes)
    rstd = torch.rsqrt(_mean(c * c, axes) + eps)
    return c * rstd, rstd


def statistics(x: Tensor, axes: Shape) -> tuple[Tensor, Tensor]:
    """(mean, var), for their gradients and for transforms."""
    wide = x.double()
    mean = _mean(wide, axes)
    c = wide - mean
    return mean, _mean((c - _mean(c, axes)) ** 2, axes)


def layer_norm(
    x: Tensor, gamma: Tensor | None, beta: Tensor | None, axes: Shape, eps: float
) -> Tensor:
    """The forward pass, for forward-mode differentiation and functionalize."""
    y, _ = normalized(x, axes, eps)
    scale, shift = spread(gamma, x, axes), spread(beta, x, axes)
    if scale is not None:
        y = y * scale
    if shift is not None:
        y = y + shift
    return y.to(x.dtype)


def backward_of_backward(
    u: Tensor | None,
    a: Tensor | None,
    b: Tensor | None,
    dy: Tensor,
    x: Tensor,
    gamma: Tensor | None,
    axes: Shape,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The gradients for (dy, x, gamma), given u, a and b, those for (dx, dgamma, dbeta).

    With h = x_hat, r = rstd, g = gamma*dy and M the mean over a row, what is differentiated is

        L = sum u * r*(g - M(g) - h*M(g*h)) + sum a*dy*h + sum b*dy

    The bracket is a symmetric projection P of g, so that sum u*P(g) = sum g*P(u):

        dL/dg at fixed h, r    r*P(u)
        dL/dh at fixed r       q = -r*(u*M(g*h) + g*M(u*h)) + a*dy
        dL/dr at fixed h       s = n*(M(u*g) - M(u)*M(g) - M(u*h)*M(g*h))

    and h and r depend on x by dh = r*P(dx) and dr = -r^2 * M(h*dx).
    """
    h, r = normalized(x, axes, eps)
    scale, wide_dy = spread(gamma, x, axes), dy.double()
    g = wide_dy if scale is None else wide_dy * scale
    to_dy = torch.zeros_like(wide_dy)
    q = torch.zeros_like(wide_dy)
    dx = torch.zeros_like(wide_dy)
    dgamma = None
    if u is not None:
        u = u.double()
        mean_gh, mean_uh = _mean(g * h, axes), _mean(u * h, axes)
        projected = r * (u - _mean(u, axes) - h * mean_uh)
        to_dy = projected if scale is None else projected * scale
        q = -r * (u * mean_gh + g * mean_uh)
        dx = -r * r * h * (_mean(u * g, axes) - _mean(u, axes) * _mean(g, axes) - mean_uh * mean_gh)
        if gamma is not None:
            dgamma = gathered(projected * wide_dy, gamma, x, axes)
    if a is not None and gamma is not None:
        wide_a = spread(a, x, axes)
        assert wide_a is not None
        to_dy = to_dy + wide_a * h
        q = q + wide_a * wide_dy
    if b is not None:
        wide_b = spread(b, x, axes)
        assert wide_b is not None
        to_dy = to_dy + wide_b
    dx = dx + r * (q - _mean(q, axes) - h * _mean(q * h, axes))
    return to_dy.to(dy.dtype), dx.to(x.dtype), dgamma


def _mean(values: Tensor, axes: Shape) -> Tensor:
    return values.mean(axes, keepdim=True) if axes else values

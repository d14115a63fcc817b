"""The library called on PyTorch CPU tensors, without gradients: what the operators and the autograd function run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from . import _compute, _core
from ._arrays import SUPPORTED, Array, Names
from ._kinds import NumpyKind
from ._parameters import check_types, resolve
from ._rows import Layout, Shape

CODES = {
    torch.float32: _core.FLOAT32,
    torch.float64: _core.FLOAT64,
    torch.float16: _core.FLOAT16,
    torch.bfloat16: _core.BFLOAT16,
}


class TorchKind(NumpyKind):
    """PyTorch tensors on the CPU, their memory seen through NumPy."""

    name = "PyTorch tensor"

    def read(self, value: Any, name: str) -> Array:
        if not isinstance(value, Tensor):
            raise TypeError(f"{name} is of type {type(value).__name__}; expected a {self.name}, as x is")
        code = CODES.get(value.dtype)
        if code is None:
            raise TypeError(f"{name} has dtype {str(value.dtype)[6:]}; expected {SUPPORTED}")
        if value.is_nested:
            raise TypeError(f"{name} is a nested tensor; expected a strided one on the CPU")
        if value.device.type != "cpu" or value.layout is not torch.strided:
            raise TypeError(f"{name} is a {value.layout} tensor on {value.device}; expected a strided one on the CPU")
        plain = value.detach().resolve_neg()
        if plain._is_zerotensor():  # zeros that have no memory yet
            plain = torch.zeros(plain.shape, dtype=plain.dtype)
        if plain.numel() > 0 and plain.data_ptr() == 0:
            raise ValueError(f"{name} of shape {tuple(value.shape)} has no memory: its storage was freed")
        return Array((plain.view(torch.int16) if code == _core.BFLOAT16 else plain).numpy(), code)


KIND = TorchKind()


def check(x: Tensor, gamma: Tensor | None, beta: Tensor | None, names: Names) -> None:
    """Types, layouts and devices, before anything else asks for them by the library's own names."""
    for tensor, name in ((x, names.x), (gamma, names.gamma), (beta, names.beta)):
        if tensor is None:
            continue
        if tensor.dtype not in CODES or tensor.layout is not torch.strided or tensor.is_nested:
            KIND.read(tensor, name)  # says what is wrong with it
        if tensor.device != x.device:
            raise TypeError(
                f"{name} is on {tensor.device} and {names.x} on {x.device}; expected both on one device"
            )
    check_types(names, CODES[x.dtype], *(None if tensor is None else CODES[tensor.dtype] for tensor in (gamma, beta)))


_api = getattr(Tensor, "__dlpack_c_exchange_api__", None)
if _api is not None:
    _core.read_tensors_with(_api, Tensor, torch.nn.Parameter)


def new_saved(x: Tensor, axes: Shape) -> Tensor:
    """Memory for what backward needs of each row: 16 bytes, 24 for float64."""
    if _are_last(axes, x):
        rows = math.prod(x.shape[: axes[0]])
    else:
        rows = math.prod(n for i, n in enumerate(x.shape) if i not in axes)
    return torch.empty((rows, 3 if x.dtype == torch.float64 else 2), dtype=torch.float64, device=x.device)


def forward(
    x: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
    axes: Shape,
    eps: float,
    num_threads: int,
    keep: bool,
) -> tuple[Tensor, Tensor | None]:
    """(y, saved); saved is None unless kept for backward."""
    y = torch.empty_like(x)
    saved = new_saved(x, axes) if keep else None
    if not _are_last(axes, x) or not _core.tensor_forward(
        x, gamma, beta, y, saved, x.shape[axes[0] :], eps, num_threads
    ):
        forward_into(y, x, gamma, beta, axes, eps, num_threads, saved)
    return y, saved


def _are_last(axes: Shape, x: Tensor) -> bool:
    return len(axes) > 0 and axes[0] == x.dim() - len(axes)


def forward_into(
    y: Tensor,
    x: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
    axes: Shape,
    eps: float,
    num_threads: int,
    saved: Tensor | None,
    given: bool = False,
) -> None:
    """The same for any layout, into memory that is there; `given` by the caller, who may have given anything."""
    x_array, y_array = KIND.read(x, "x"), KIND.read(y, "out")
    layout = Layout.of(tuple(x.shape), axes)
    gamma_placed, beta_placed = resolve(gamma, beta, x_array, layout, KIND)
    if given:
        _compute.check_out(y_array, x_array, gamma_placed, beta_placed)
    saved_values = None if saved is None else saved.numpy()
    _compute.forward(x_array, gamma_placed, beta_placed, eps, layout, y_array, num_threads, saved_values)


def backward(
    dy: Tensor,
    x: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
    saved: Tensor | None,
    axes: Shape,
    eps: float,
    num_threads: int,
    wanted: tuple[bool, bool, bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """(dx, dgamma, dbeta), None where not wanted. beta's values are not looked at."""
    if dy.shape != x.shape:
        raise ValueError(f"dy has shape {tuple(dy.shape)}; expected x's, {tuple(x.shape)}")
    dx = torch.empty_like(x) if wanted[0] else None
    if _are_last(axes, x):
        dgamma = torch.empty_like(gamma) if gamma is not None and wanted[1] else None
        dbeta = torch.empty_like(beta) if beta is not None and wanted[2] else None
        if _core.tensor_backward(dy, x, gamma, saved, dx, dgamma, dbeta, x.shape[axes[0] :], eps, num_threads):
            return dx, dgamma, dbeta
    x_array, dy_array = KIND.read(x, "x"), KIND.read(dy, "dy")
    layout = Layout.of(tuple(x.shape), axes)
    # What hooks on saved tensors have changed is of no use: the statistics are then computed again.
    if saved is not None and (saved.dtype != torch.float64 or saved.numel() != new_saved(x, axes).numel()):
        saved = None
    gamma_placed, beta_placed = resolve(gamma, beta, x_array, layout, KIND)
    found = _compute.backward(
        dy_array,
        x_array,
        gamma_placed,
        beta_placed,
        eps,
        layout,
        num_threads,
        None if saved is None else saved.detach().contiguous().numpy(),
        None if dx is None else KIND.read(dx, "dx"),
        (wanted[1], wanted[2]),
    )
    return dx, _gradient(found[0], gamma), _gradient(found[1], beta)


def _gradient(array: Array | None, parameter: Tensor | None) -> Tensor | None:
    if array is None or parameter is None:
        return None
    tensor = torch.from_numpy(np.ascontiguousarray(array.values).reshape(array.values.shape))
    if array.dtype == _core.BFLOAT16:
        return tensor.view(torch.bfloat16)
    return tensor.to(parameter.dtype)


def statistics(x: Tensor, axes: Shape, eps: float, num_threads: int) -> tuple[Tensor, Tensor]:
    mean, var = _compute.statistics(KIND.read(x, "x"), eps, Layout.of(tuple(x.shape), axes), num_threads)
    return torch.from_numpy(mean), torch.from_numpy(var)

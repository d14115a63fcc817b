"""gamma and beta: the shapes they may have, how they spread over the rows, and the shape of their gradients."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import _core
from ._arrays import DTYPE_NAMES, OWN_NAMES, AnyArray, Array, Names, check_range, dense, is_torch, number, numbers, shown
from ._kinds import NumpyKind, is_array
from ._rows import Layout, Operand, Rows, Shape, address


class Parameter(NamedTuple):
    """gamma or beta, laid out for the library.

    `array` has the shape lead + features, rows first, where a leading dimension of 1 is shared by all rows of it.
    """

    array: Array
    shape: Shape  # as the caller gave it, and as its gradient comes back
    features: Shape  # its dimensions along the normalized axes
    given: Array  # where the caller's values lie, of which `array` may be a copy

    def operand(self, rows: Rows) -> Operand:
        return _operand(self.array, rows)

    def gradient(self, layout: Layout) -> Array:
        """Memory for its gradient: of its type, but float64 where features still have to be added up."""
        lead = self.array.values.shape[: len(layout.lead)]
        if self.features == layout.features:
            return Array(np.empty(lead + layout.features, self.array.values.dtype), self.array.dtype)
        return Array(np.empty(lead + layout.features, np.float64), _core.FLOAT64)

    def shaped(self, gradient: Array, layout: Layout) -> Array:
        """What the library wrote, as an array of the parameter's shape."""
        values = gradient.values
        lead = len(layout.lead)
        summed = tuple(lead + i for i, n in enumerate(self.features) if n != layout.features[i])
        if summed:
            values = values.sum(axis=summed, keepdims=True)
        values = values.transpose(tuple(np.argsort(layout.order))).reshape(self.shape)
        # bfloat16 as bare bits (PyTorch's) is rounded by the one who knows the type.
        if values.dtype != self.array.values.dtype and self.array.values.dtype.kind not in "iu":
            return Array(values.astype(self.array.values.dtype), self.array.dtype)
        return Array(values, gradient.dtype)


def gradient_operand(gradient: Array | None, rows: Rows) -> Operand | None:
    # NumPy gives arrays without elements strides of 0, with which the library would write one vector for all rows.
    return None if gradient is None or gradient.values.size == 0 else _operand(gradient, rows)


def _operand(array: Array, rows: Rows) -> Operand:
    values = array.values
    lead = len(rows.lead)
    if all(n == 1 for n in values.shape[:lead]):
        return address(values), None, array.dtype  # one vector for all rows
    strides = tuple(0 if n == 1 else s // values.itemsize for n, s in zip(values.shape[:lead], values.strides[:lead]))
    return address(values), strides, array.dtype


def is_grouped(parameter: Parameter | None, layout: Layout) -> bool:
    """Whether rows differ in it, as in adaptive norms."""
    return parameter is not None and any(n != 1 for n in parameter.array.values.shape[: len(layout.lead)])


def check_types(names: Names, x: int, gamma: int | None, beta: int | None) -> None:
    """A TypeError unless gamma and beta have one type that the library takes with x."""
    half = x in (_core.FLOAT16, _core.BFLOAT16)
    for name, dtype in ((names.gamma, gamma), (names.beta, beta)):
        if dtype is not None and dtype != x and not (half and dtype == _core.FLOAT32):
            allowed = DTYPE_NAMES[x] + (" or float32" if half else "")
            raise TypeError(
                f"{name} is {DTYPE_NAMES[dtype]} and {names.x} is {DTYPE_NAMES[x]}; expected {name} to be {allowed}"
            )
    if gamma is not None and beta is not None and gamma != beta:
        raise TypeError(
            f"{names.gamma} is {DTYPE_NAMES[gamma]} and {names.beta} is {DTYPE_NAMES[beta]}; "
            "expected both to be of one type"
        )


def resolve(
    gamma: AnyArray, beta: AnyArray, x: Array, layout: Layout, kind: NumpyKind, names: Names = OWN_NAMES
) -> tuple[Parameter | None, Parameter | None]:
    """gamma and beta of one type that the library takes with x, or an error that names shapes and types."""
    given = _read(gamma, names.gamma, kind), _read(beta, names.beta, kind)
    typed = [value if isinstance(value, Array) else None for value in given]
    check_types(names, x.dtype, *(None if array is None else array.dtype for array in typed))
    # Numbers and lists have no type of their own: the other parameter's, else x's; float32 beside half x, which would
    # round them.
    half = x.dtype in (_core.FLOAT16, _core.BFLOAT16)
    like = typed[0] or typed[1] or (Array(np.empty(0, np.float32), _core.FLOAT32) if half else x)

    def one(value: Array | np.ndarray[Any, Any] | None, name: str) -> Parameter | None:
        if value is None:
            return None
        if not isinstance(value, Array):
            check_range(value, like.dtype, name)
            value = Array(value.astype(like.values.dtype), like.dtype)
        return _place(value, name, layout, names)

    placed = one(given[0], names.gamma), one(given[1], names.beta)
    if len(layout.lead) > _core.MAX_RANK and any(is_grouped(p, layout) for p in placed):
        raise ValueError(
            f"{names.gamma} or {names.beta} differs between rows over {len(layout.lead)} leading dimensions; "
            f"at most {_core.MAX_RANK}"
        )
    return placed


def _read(value: AnyArray, name: str, kind: NumpyKind) -> Array | np.ndarray[Any, Any] | None:
    """An array with its type; numbers, which have none, as NumPy has them."""
    if value is None:
        return None
    scalar = number(value)
    if scalar is not None:
        return np.asarray(scalar)
    if is_array(value) and not isinstance(value, (list, tuple, int, float)):
        array = kind.read(value, name)
        return array if array.values.ndim > 0 or is_torch(value) else array.values
    values = numbers(value)
    if values is None:
        raise TypeError(f"{name} is {shown(value)}; expected an array, a number or None")
    return values


def _place(array: Array, name: str, layout: Layout, names: Names) -> Parameter:
    shape = array.values.shape
    if shape == layout.features and array.values.flags.c_contiguous and array.values.flags.aligned:
        vector = array.values.reshape((1,) * len(layout.lead) + shape)
        return Parameter(Array(vector, array.dtype), shape, layout.features, array)
    if shape == layout.features:
        spread = tuple(n if i in layout.axes else 1 for i, n in enumerate(layout.shape))
    elif shape == ():
        spread = (1,) * len(layout.shape)
    elif len(shape) == len(layout.shape) and all(p in (1, n) for p, n in zip(shape, layout.shape)):
        spread = shape
    else:
        raise ValueError(
            f"{name} has shape {shape}; for {names.x} of shape {layout.shape} normalized over axes {layout.axes} expected "
            f"{layout.features}, or {len(layout.shape)} dimensions that are each 1 or {names.x}'s, or a scalar"
        )
    view = layout.rows_first(array.values.reshape(spread))
    lead = len(layout.lead)
    features = view.shape[lead:]
    full = np.broadcast_to(view, view.shape[:lead] + layout.features)
    return Parameter(Array(full if layout.in_place(full) else dense(full), array.dtype), shape, features, array)

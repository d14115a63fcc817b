"""From axes to rows: which axes are normalized, where the rows lie in memory, how parameters spread over them."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _core
from ._arrays import Array, dense, shown

Shape = tuple[int, ...]
Axes = int | Sequence[int] | None
Operand = tuple[int, "tuple[int, ...] | None", int]


class _Default(int):
    """An int that is told apart from the same one given by a caller."""


LAST_AXIS = _Default(-1)  # the default of `axis`, which only normalized_shape may stand in for


def normalized_axes(shape: Shape, axis: Axes, normalized_shape: int | Sequence[int] | None) -> Shape:
    """The axes normalized over, ascending. `axis` as in numpy.mean, `normalized_shape` as in PyTorch."""
    ndim = len(shape)
    if normalized_shape is not None:
        if axis is not LAST_AXIS:
            raise ValueError(
                f"axis {shown(axis)} and normalized_shape {shown(normalized_shape)} are both given; give one"
            )
        wanted = _ints(normalized_shape, "normalized_shape")
        if not wanted:
            raise ValueError("normalized_shape is empty; expected at least one dimension")
        if len(wanted) > ndim or shape[ndim - len(wanted) :] != wanted:
            raise ValueError(f"normalized_shape {wanted} is not how the shape of x ends: {shape}")
        return tuple(range(ndim - len(wanted), ndim))
    if axis is None:
        return tuple(range(ndim))
    axes = _ints(axis, "axis")
    if ndim == 0 and axes in ((-1,), (0,)):
        return ()  # as numpy.mean has it: a scalar is one feature
    if not axes and ndim > 0:
        raise ValueError(f"axis is empty; expected at least one axis of x, whose shape is {shape}")
    for a in axes:
        if not -ndim <= a < ndim:
            raise ValueError(f"axis {a} is out of range for x of shape {shape}; expected {-ndim} to {ndim - 1}")
    found = tuple(sorted(a % ndim for a in axes))
    if len(set(found)) != len(found):
        raise ValueError(f"axis {axes} names an axis twice for x of shape {shape}")
    return found


def _ints(value: int | Sequence[int], name: str) -> Shape:
    """An int, or a list, tuple, range or array of ints; a set has no order, and True is no number of an axis."""
    several = isinstance(value, Sequence) or (isinstance(value, np.ndarray) and value.ndim > 0)
    items: Sequence[Any] = value if several else (value,)  # type: ignore[assignment]
    try:
        if not isinstance(value, (str, bytes, bytearray, memoryview)) and not any(isinstance(i, bool) for i in items):
            return tuple(operator.index(i) for i in items)
    except TypeError:
        pass
    raise TypeError(f"{name} is {shown(value)}; expected an int or a sequence of ints")


class Layout(NamedTuple):
    """How an array of `shape` falls into rows: its axes in the order (leading..., normalized...)."""

    shape: Shape
    axes: Shape
    order: Shape
    lead: Shape
    features: Shape

    @classmethod
    def of(cls, shape: Shape, axes: Shape) -> Layout:
        rest = tuple(i for i in range(len(shape)) if i not in axes)
        return cls(shape, axes, rest + axes, tuple(shape[i] for i in rest), tuple(shape[i] for i in axes))

    @property
    def d(self) -> int:
        return math.prod(self.features)

    @property
    def rows(self) -> int:
        return math.prod(self.lead)

    @property
    def statistics_shape(self) -> Shape:
        """One number a row, with the normalized axes kept as 1."""
        return tuple(1 if i in self.axes else n for i, n in enumerate(self.shape))

    def rows_first(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A view with the leading axes first and the normalized ones last."""
        return values if self.order == tuple(range(len(self.order))) else values.transpose(self.order)

    def in_place(self, view: np.ndarray[Any, Any]) -> bool:
        """Whether the library can work on this rows-first view where it lies: features dense, rows at whole elements."""
        lead, itemsize = len(self.lead), view.itemsize
        if view.flags.c_contiguous:
            return bool(view.flags.aligned)
        if lead > _core.MAX_RANK or not view.flags.aligned:
            return False
        step = itemsize
        for n, stride in zip(reversed(view.shape[lead:]), reversed(view.strides[lead:])):
            if n != 1 and stride != step:
                return False
            step *= n
        return all(stride % itemsize == 0 for stride in view.strides[:lead])

    def readable(self, array: Array) -> Array:
        """The rows-first view, or a C-contiguous copy of it where the library cannot read the view."""
        view = self.rows_first(array.values)
        return Array(view if self.in_place(view) else dense(view), array.dtype)


class Rows(NamedTuple):
    """The leading dimensions of one call, given to the library as one number where every operand allows it."""

    lead: Shape
    flat: bool

    @classmethod
    def of(cls, layout: Layout, *operands: Array | None, grouped: bool = False) -> Rows:
        flat = not grouped and all(operand is None or operand.values.flags.c_contiguous for operand in operands)
        return cls(layout.lead, flat)

    @property
    def dims(self) -> Shape:
        return (math.prod(self.lead),) if self.flat else self.lead

    def operand(self, array: Array | None) -> Operand | None:
        if array is None:
            return None
        values = array.values
        strides = None
        if not self.flat:
            strides = tuple(s // values.itemsize for s in values.strides[: len(self.lead)])
        return address(values), strides, array.dtype


def address(values: np.ndarray[Any, Any]) -> int:
    return int(values.__array_interface__["data"][0])

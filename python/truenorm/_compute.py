"""The calls into the library for any layout: views where it can work in place, copies where it cannot."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from ._arrays import DTYPE_NAMES, OWN_NAMES, Array, empty, shown
from ._parameters import Parameter, gradient_operand, is_grouped
from ._process import thread_count
from ._rows import Layout, Rows, address

Float64s = np.ndarray[Any, np.dtype[np.float64]]


def threads(num_threads: int | None) -> int:
    """None is the process's default, which the library calls 0."""
    return 0 if num_threads is None else thread_count(num_threads, ", or None for the default")


def epsilon(eps: float, name: str = OWN_NAMES.eps) -> float:
    try:
        if isinstance(eps, (bool, np.bool_, str, bytes, bytearray)):
            raise TypeError
        value = float(eps)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {shown(eps)}; expected a number") from None
    except OverflowError:
        value = float("inf")
    if not 0.0 <= value < float("inf"):
        raise ValueError(f"{name} is {value}; expected a finite number, 0 or more")
    return value


def check_out(out: Array, x: Array, gamma: Parameter | None, beta: Parameter | None) -> None:
    """The type and the memory of an out that was given. The library sees copies of what it cannot use in place, so what
    shares memory with what is asked here, of what the caller gave."""
    if out.values.shape != x.values.shape:
        raise ValueError(f"out has shape {out.values.shape}; expected x's, {x.values.shape}")
    half = x.dtype in (_core.FLOAT16, _core.BFLOAT16)
    if out.dtype != x.dtype and not (half and out.dtype == _core.FLOAT32):
        allowed = DTYPE_NAMES[x.dtype] + (" or float32" if half else "")
        raise TypeError(
            f"out is {DTYPE_NAMES[out.dtype]} and x is {DTYPE_NAMES[x.dtype]}; expected out to be {allowed}"
        )
    if _overlaps_itself(out.values):
        raise ValueError(f"out has shape {out.values.shape} and strides {out.values.strides}: its elements overlap")
    if _shared(out, x) and not _is_same_view(out.values, x.values):
        raise ValueError("out overlaps x; expected x itself, or memory of its own")
    for name, parameter in (("gamma", gamma), ("beta", beta)):
        if parameter is not None and _shared(out, parameter.given):
            raise ValueError(f"out overlaps {name}; expected memory of its own")


def refuse_shared(out: Array, x: Array) -> None:
    """out may not be in x's memory where x is still needed."""
    if _shared(out, x):
        raise ValueError("out shares memory with x, which the cache keeps for backward; give another out")


def _shared(a: Array, b: Array) -> bool:
    if not np.may_share_memory(a.values, b.values):
        return False
    try:
        return bool(np.shares_memory(a.values, b.values, max_work=10000))  # type: ignore[arg-type]  # the stub knows two values
    except np.exceptions.TooHardError:
        return True


def _is_same_view(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    same = address(a) == address(b) and a.itemsize == b.itemsize
    return same and all(n <= 1 or s == t for n, s, t in zip(a.shape, a.strides, b.strides))


def _overlaps_itself(values: np.ndarray[Any, Any]) -> bool:
    """Whether two elements may lie in one place: always found; a layout that interlaces its dimensions counts as one."""
    if values.flags.c_contiguous or values.size == 0:
        return False
    reach = values.itemsize
    for stride, n in sorted((abs(s), n) for s, n in zip(values.strides, values.shape) if n > 1):
        if stride < reach:
            return True
        reach += stride * (n - 1)
    return False


def result_like(x: Array) -> Array:
    """Memory for y or dx, laid out as x is. NumPy would make a broadcast dimension the innermost one."""
    values = x.values
    broadcast = any(stride == 0 and n > 1 for stride, n in zip(values.strides, values.shape))
    if broadcast:
        return Array(empty(values.shape, values.dtype), x.dtype)
    return Array(np.empty_like(values, subok=False), x.dtype)


def _aside(layout: Layout, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Rows-first memory for a result that is laid out in a way the library cannot write."""
    return empty(layout.lead + layout.features, dtype)


def forward(
    x: Array,
    gamma: Parameter | None,
    beta: Parameter | None,
    eps: float,
    layout: Layout,
    out: Array,
    num_threads: int,
    saved: Float64s | None = None,
) -> None:
    """out = layer_norm(x). `saved` takes what backward needs of each row."""
    rows_in = layout.readable(x)
    view = layout.rows_first(out.values)
    direct = layout.in_place(view)
    y = Array(view if direct else _aside(layout, out.values.dtype), out.dtype)
    grouped = is_grouped(gamma, layout) or is_grouped(beta, layout)
    rows = Rows.of(layout, rows_in, y, grouped=grouped)
    x_operand = rows.operand(rows_in)
    assert x_operand is not None
    _core.forward(
        rows.dims,
        layout.d,
        x_operand,
        None if gamma is None else gamma.operand(rows),
        None if beta is None else beta.operand(rows),
        rows.operand(y),
        0,
        0,
        0 if saved is None else address(saved),
        eps,
        num_threads,
    )
    if not direct:
        view[...] = y.values


def statistics(x: Array, eps: float, layout: Layout, num_threads: int) -> tuple[Float64s, Float64s]:
    """mean and var of each row, the normalized axes kept as 1."""
    rows_in = layout.readable(x)
    rows = Rows.of(layout, rows_in)
    mean, var = (empty((layout.rows,), np.dtype(np.float64)) for _ in range(2))
    x_operand = rows.operand(rows_in)
    assert x_operand is not None
    _core.forward(
        rows.dims, layout.d, x_operand, None, None, None, address(mean), address(var), 0, eps, num_threads
    )
    return mean.reshape(layout.statistics_shape), var.reshape(layout.statistics_shape)


def new_saved(x: Array, layout: Layout) -> Float64s:
    """Memory for what backward needs: 16 bytes a row, 24 for float64."""
    return empty((_core.saved_bytes((layout.rows,), layout.d, x.dtype) // 8,), np.dtype(np.float64))


def backward(
    dy: Array,
    x: Array,
    gamma: Parameter | None,
    beta: Parameter | None,
    eps: float,
    layout: Layout,
    num_threads: int,
    saved: Float64s | None,
    dx: Array | None,
    wanted: tuple[bool, bool] = (True, True),
) -> tuple[Array | None, Array | None]:
    """Writes dx where it is wanted and returns dgamma and dbeta of the parameters' shapes."""
    rows_dy, rows_x = layout.readable(dy), layout.readable(x)
    dx_rows: Array | None = None
    if dx is not None:
        view = layout.rows_first(dx.values)
        dx_rows = Array(view if layout.in_place(view) else _aside(layout, dx.values.dtype), dx.dtype)
    dgamma = gamma.gradient(layout) if gamma is not None and wanted[0] else None
    dbeta = beta.gradient(layout) if beta is not None and wanted[1] else None
    grouped = is_grouped(gamma, layout) or is_grouped(beta, layout)
    rows = Rows.of(layout, rows_dy, rows_x, dx_rows, grouped=grouped)
    dy_operand, x_operand = rows.operand(rows_dy), rows.operand(rows_x)
    assert dy_operand is not None and x_operand is not None
    gamma_operand = None if gamma is None else gamma.operand(rows)
    saved_address = 0 if saved is None else address(saved)

    def call(dx: Array | None, dgamma: Array | None, dbeta: Array | None) -> None:
        _core.backward(
            rows.dims,
            layout.d,
            dy_operand,
            x_operand,
            gamma_operand,
            saved_address,
            rows.operand(dx),
            gradient_operand(dgamma, rows),
            gradient_operand(dbeta, rows),
            eps,
            num_threads,
        )

    lead = len(layout.lead)
    if dgamma is not None and dbeta is not None and dgamma.values.shape[:lead] != dbeta.values.shape[:lead]:
        # Summed over different rows: the library does one of them a call.
        call(dx_rows, dgamma, None)
        call(None, None, dbeta)
    else:
        call(dx_rows, dgamma, dbeta)
    if dx is not None and dx_rows is not None and dx_rows.values is not view:
        view[...] = dx_rows.values
    return (
        gamma.shaped(dgamma, layout) if gamma is not None and dgamma is not None else None,
        beta.shaped(dbeta, layout) if beta is not None and dbeta is not None else None,
    )

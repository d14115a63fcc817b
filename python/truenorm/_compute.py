"""The calls into the library for any layout: views where it can work in place, copies where it cannot."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from ._arrays import Array
from ._parameters import Parameter, gradient_operand, is_grouped
from ._rows import Layout, Rows, address

Float64s = np.ndarray[Any, np.dtype[np.float64]]


def threads(num_threads: int | None) -> int:
    """None is the process's default, which the library calls 0."""
    if num_threads is None:
        return 0
    if isinstance(num_threads, bool) or not hasattr(num_threads, "__index__"):
        raise TypeError(f"num_threads is {num_threads!r}; expected None or an int")
    count = int(num_threads)
    if not 1 <= count <= 1024:
        raise ValueError(f"num_threads is {count}; expected 1 to 1024, or None for the default")
    return count


def epsilon(eps: float) -> float:
    try:
        value = float(eps)
    except (TypeError, ValueError):
        raise TypeError(f"eps is {eps!r}; expected a number") from None
    if not 0.0 <= value < float("inf"):
        raise ValueError(f"eps is {value}; expected a finite number, 0 or more")
    return value


def refuse_shared(out: Array, x: Array) -> None:
    """out may not be in x's memory where x is still needed."""
    try:
        shared = np.shares_memory(out.values, x.values, max_work=10000)  # type: ignore[arg-type]  # the stub knows two values
    except np.exceptions.TooHardError:
        shared = True
    if shared:
        raise ValueError("out shares memory with x, which the cache keeps for backward; give another out")


def _aside(layout: Layout, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Rows-first memory for a result that is laid out in a way the library cannot write."""
    return np.empty(layout.lead + layout.features, dtype)


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
    mean, var = np.empty(layout.rows), np.empty(layout.rows)
    x_operand = rows.operand(rows_in)
    assert x_operand is not None
    _core.forward(
        rows.dims, layout.d, x_operand, None, None, None, address(mean), address(var), 0, eps, num_threads
    )
    return mean.reshape(layout.statistics_shape), var.reshape(layout.statistics_shape)


def new_saved(x: Array, layout: Layout) -> Float64s:
    """Memory for what backward needs: 16 bytes a row, 24 for float64."""
    return np.empty(_core.saved_bytes((layout.rows,), layout.d, x.dtype) // 8)


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

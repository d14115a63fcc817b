"""Pictures of what layer normalization does. Needs matplotlib: ``pip install matplotlib``."""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from ._arrays import is_real, shown
from ._layer_norm import layer_norm
from ._process import whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["before_after"]

_BEFORE, _AFTER, _MEAN = "#7a8ba8", "#2f7f6f", "#c0392b"


def before_after(
    x: Any,
    y: Any = None,
    *,
    token: int | Sequence[int] = 0,
    gamma: Any = None,
    beta: Any = None,
    eps: float = 1e-5,
    bins: int | None = None,
    axes: Sequence[Axes] | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Histograms of one token's features before and after layer normalization, the mean as a dashed line.

    x      array of d features a token on the last axis, any leading axes (NumPy, PyTorch, JAX)
    y      what became of x, of x's shape; None: layer_norm(x, gamma, beta, eps)
    token  which token: its number in C order over the leading axes, or one index for each of them
    bins   number of bars; None: chosen from d
    axes   two matplotlib axes to draw into; None: a new figure
    path   file to write the figure to

    Returns the figure, which has been closed in pyplot if it was written to ``path``.
    """
    plt = _pyplot()
    before = _token(x, token, "x")
    if y is None:
        after = layer_norm(before, _parameter(gamma, "gamma"), _parameter(beta, "beta"), eps)
    elif gamma is not None or beta is not None:
        raise ValueError("gamma and beta are used to compute y; give either y or them")
    else:
        after = _token(y, token, "y")
        if after.shape != before.shape:
            raise ValueError(f"y has {after.size} features a token, x has {before.size}; expected the same")

    if axes is None:
        figure = plt.figure(figsize=(9, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2)
    else:
        if not isinstance(axes, (Sequence, np.ndarray)) or not all(hasattr(a, "hist") for a in axes):
            raise TypeError(f"axes is {shown(axes)}; expected two matplotlib axes")
        if len(axes) != 2:
            raise ValueError(f"axes has {len(axes)} elements; expected 2")
        left, right = axes
        figure = left.get_figure()
    count = int(np.clip(2 * np.sqrt(before.size), 8, 60)) if bins is None else whole("bins", bins, 1, 100_000)
    _draw(left, before, "before", _BEFORE, count)
    _draw(right, after, "after", _AFTER, count)
    if path is not None:
        figure.savefig(path, dpi=150)
        if axes is None:
            plt.close(figure)
    return cast("Figure", figure)


def _pyplot() -> Any:
    # Imported here, so that the package works without it.
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("truenorm.plot needs matplotlib: pip install matplotlib") from error
    return plt


def _values(array: Any, name: str) -> npt.NDArray[np.float64]:
    """Any CPU array as float64; every value of the smaller types is one of float64 too."""
    values = array
    if hasattr(array, "detach"):  # PyTorch, bfloat16 included, which NumPy itself does not have
        values = array.detach().cpu().double()
    try:
        values = np.asarray(values)
    except ValueError:  # lists of different lengths
        values = np.empty((), object)
    if not is_real(values.dtype):
        raise TypeError(f"{name} is {shown(array)}; expected an array of real numbers")
    return cast("npt.NDArray[np.float64]", values.astype(np.float64))


def _parameter(array: Any, name: str) -> Any:
    return None if array is None else _values(array, name)


def _token(array: Any, token: int | Sequence[int], name: str) -> npt.NDArray[np.float64]:
    values = _values(array, name)
    if values.ndim == 0 or values.shape[-1] == 0:
        raise ValueError(f"{name} has shape {values.shape}; expected at least one feature on the last axis")
    leading = values.shape[:-1]
    try:
        if isinstance(token, (str, bytes, bool)):
            raise TypeError
        if isinstance(token, Sequence):
            index = tuple(operator.index(i) for i in token)
            if len(index) != len(leading):
                raise IndexError
            row: npt.NDArray[np.float64] = values[index]
        else:
            row = values.reshape(-1, values.shape[-1])[operator.index(token)]
    except TypeError:
        raise TypeError(f"token is {shown(token)}; expected an int, or one for each leading axis") from None
    except IndexError:
        raise ValueError(f"token is {shown(token)}, which is not in {name} with shape {values.shape}") from None
    if not np.isfinite(row).all():
        raise ValueError(f"token {token!r} of {name} holds NaN or Inf; expected finite features")
    return row


def _draw(axes: Axes, values: npt.NDArray[np.float64], when: str, color: str, bins: int) -> None:
    mean, sd = float(values.mean()), float(values.std())
    axes.hist(values, bins=bins, color=color, edgecolor="white", linewidth=0.5)
    axes.axvline(mean, color=_MEAN, linestyle="--", linewidth=1.5, label=f"mean {_number(mean)}")
    axes.set_title(f"{when}: mean {_number(mean)}, standard deviation {_number(sd)}")
    axes.set_xlabel("feature value")
    axes.set_ylabel("features")
    axes.legend(frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _number(value: float) -> str:
    """Three places, or an exponent where those would show nothing; never -0.000."""
    small = value != 0 and abs(value) < 5e-4 and abs(value) > 1e-12
    text = f"{value:.2e}" if small or abs(value) >= 1e6 else f"{value:.3f}"
    return text.removeprefix("-") if float(text) == 0 else text

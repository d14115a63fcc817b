"""The numbers that are normalized, as files that every worker reads."""

import numeric
import numpy as np


def make_inputs(cell, folder):
    """Writes base_rows of x and dy, and gamma and beta; returns them as arrays of their types."""
    random = np.random.default_rng([cell.rows, cell.d])
    shape = (cell.base_rows, cell.d)
    arrays = {
        "x": numeric.rounded(3 * random.standard_normal(shape) + 2, cell.dtype),
        "dy": numeric.rounded(random.standard_normal(shape), cell.dtype),
        "gamma": numeric.rounded(1 + 0.2 * random.standard_normal(cell.d), cell.parameters),
        "beta": numeric.rounded(0.5 * random.standard_normal(cell.d), cell.parameters),
    }
    write(arrays, folder)
    return arrays


def write(arrays, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        array.tofile(folder / name)


# The hard rows of the accuracy table: a name, and what makes the row of d float64 values.
HARD_ROWS = (
    ("N(0,1)", lambda n: n),
    ("3 N(0,1) + 2", lambda n: 3 * n + 2),
    ("mean 1e3, sd 1", lambda n: 1e3 + n),
    ("mean 1e5, sd 0.01", lambda n: 1e5 + 0.01 * n),
    ("mean 1e6, sd 1", lambda n: 1e6 + n),
    ("one feature 1e4 among N(0,1)", lambda n: np.where(np.arange(n.size) == n.size // 2, 1e4, n)),
    ("first feature 1e8 among N(0,1)", lambda n: np.where(np.arange(n.size) == 0, 1e8, n)),
    ("size 1e-30", lambda n: 1e-30 * n),
    ("size 1e19", lambda n: 1e19 * n),
    ("size 1e38", lambda n: 1e38 * np.clip(n, -3, 3)),
    ("constant 0.1", lambda n: np.full_like(n, 0.1)),
)


def make_hard_inputs(cell, folder):
    random = np.random.default_rng(768)
    with np.errstate(over="ignore"):
        rows = [make(random.standard_normal(cell.d)) for _, make in HARD_ROWS]
    arrays = {
        "x": numeric.rounded(np.stack(rows), cell.dtype),
        "gamma": numeric.rounded(np.ones(cell.d), cell.parameters),
        "beta": numeric.rounded(np.zeros(cell.d), cell.parameters),
    }
    write(arrays, folder)
    return arrays

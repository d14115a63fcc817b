"""What a peer should have returned, and how far off it is.

The reference works in extended precision (64 bits of mantissa on x86) by the two-pass formula, with the mean taken
twice. Its own error is below 0.01 ulp of float64 on the benchmark's rows; the tests of the library, not this file,
prove bounds.
"""

import numeric
import numpy as np

Extended = np.longdouble


class Oracle:
    """The exact results of one shape and type, on rows repeated as in the cell."""

    def __init__(self, cell, arrays):
        self.cell = cell
        self.x = arrays["x"].astype(Extended)
        self.gamma = arrays["gamma"].astype(Extended)
        self.beta = arrays["beta"].astype(Extended)
        self.dy = arrays["dy"].astype(Extended) if "dy" in arrays else None
        mean = self.x.mean(axis=1, keepdims=True)
        centred = self.x - mean
        centred -= centred.mean(axis=1, keepdims=True)
        self.rstd = 1 / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + Extended(cell.eps))
        self.x_hat = centred * self.rstd

    def sample(self):
        """Rows that are checked: the first, the last and some between."""
        count = min(self.cell.rows, max(2, min(32, 2**18 // self.cell.d)))
        return sorted({int(row) for row in np.linspace(0, self.cell.rows - 1, count)})

    def errors(self, name, got, dtype, rows=None, of_row=False):
        """The error of each element of the result `name`, in ulp of the sum of its terms' sizes, or of the largest such
        sum in the row."""
        want, size = getattr(self, "_" + name)(rows)
        if of_row:
            size = size.max(axis=-1, keepdims=True)
        got = got.astype(Extended).reshape(want.shape)
        with np.errstate(invalid="ignore"):
            error = np.abs(got - want) / numeric.ulp(size, dtype)
        return np.where(np.isfinite(got), error, np.inf)

    def _y(self, rows):
        at = [row % len(self.x) for row in rows]
        product = self.gamma * self.x_hat[at]
        return product + self.beta, np.abs(product) + np.abs(self.beta)

    def _dx(self, rows):
        at = [row % len(self.x) for row in rows]
        g, x_hat, rstd = self.gamma * self.dy[at], self.x_hat[at], self.rstd[at]
        mean = lambda a: a.mean(axis=1, keepdims=True)
        exact = rstd * (g - mean(g) - x_hat * mean(g * x_hat))
        return exact, rstd * (np.abs(g) + mean(np.abs(g)) + np.abs(x_hat) * mean(np.abs(g * x_hat)))

    def _dgamma(self, _):
        return self._sums(self.dy * self.x_hat)

    def _dbeta(self, _):
        return self._sums(self.dy)

    def _sums(self, terms):
        whole, rest = divmod(self.cell.rows, len(terms))
        total = lambda a: whole * a.sum(axis=0) + a[:rest].sum(axis=0)
        return total(terms), total(np.abs(terms))

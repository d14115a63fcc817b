"""The true values, in extended precision and from the definition, and the bounds of docs/numerics.md around them.

np.longdouble has 64 bits of precision or more where these tests run; its own errors are far below h.
"""

import numpy as np

PRECISION = {"float64": (53, -1074), "float32": (24, -149), "float16": (11, -24), "bfloat16": (8, -133)}
H = {"float64": 2.0**-47, "float32": 2.0**-44, "float16": 2.0**-44, "bfloat16": 2.0**-44}
H_OF_GRADIENTS = H | {"bfloat16": 2.0**-17}  # with dx of x's type, or none


def name_of(array):
    return str(array.dtype).replace("torch.", "")


def wide(array):
    """An array of any kind as long doubles; None stays None."""
    if array is None:
        return None
    if hasattr(array, "detach"):
        array = array.detach().double().numpy()
    elif str(getattr(array, "dtype", "")) == "bfloat16":
        array = np.asarray(array).astype(np.float32)
    return np.asarray(array).astype(np.longdouble)


def ulp(values, dtype):
    """The unit in the last place of real numbers, in the format `dtype`; the subnormal one below the normal range."""
    digits, smallest = PRECISION[dtype]
    _, exponent = np.frexp(np.abs(values))
    exponent = np.where(np.asarray(values) == 0, smallest, exponent - digits)
    return np.ldexp(np.longdouble(1), np.maximum(exponent, smallest))


def spread(parameter, shape, axes):
    """gamma or beta with x's rank."""
    parameter = wide(parameter)
    if parameter is None:
        return None
    if parameter.shape == tuple(shape[a] for a in axes):
        return parameter.reshape([n if i in axes else 1 for i, n in enumerate(shape)])
    return parameter


def axes_of(x, axis):
    ndim = len(x.shape)
    axes = range(ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    return tuple(sorted(a % ndim for a in axes))


class Truth:
    """Everything about one call, from the definition."""

    def __init__(self, x, gamma=None, beta=None, eps=1e-5, axis=-1):
        self.x = wide(x)
        self.dtype = name_of(x)
        self.axes = axes_of(x, axis)
        self.gamma, self.beta = (spread(p, self.x.shape, self.axes) for p in (gamma, beta))
        mean = self.x.mean(self.axes, keepdims=True)
        self.mean = mean + (self.x - mean).mean(self.axes, keepdims=True)
        c = self.x - self.mean
        self.var = (c * c).mean(self.axes, keepdims=True)
        self.rstd = 1 / np.sqrt(self.var + np.longdouble(eps))
        self.x_hat = c * self.rstd
        scaled = self.x_hat if self.gamma is None else self.gamma * self.x_hat
        self.y = scaled if self.beta is None else scaled + self.beta
        self.size = np.abs(scaled) + (0 if self.beta is None else np.abs(self.beta))
        self.largest = np.abs(self.x_hat).max(self.axes, keepdims=True, initial=0)

    def bound(self, y_dtype=None):
        dtype = y_dtype or self.dtype
        plain = self.gamma is None and self.beta is None
        units = {"float64": 16, "float32": 3 if plain else 4}.get(dtype, 0.51)
        gamma = 1 if self.gamma is None else np.abs(self.gamma)
        return units * ulp(self.size, dtype) + H[self.dtype] * gamma * self.largest + self.least() * gamma

    def least(self):
        """float64's x_hat and g are float64 numbers themselves: the terms for those below the normal range."""
        return np.longdouble(2) ** -1074 if self.dtype == "float64" else 0

    def check(self, y):
        """Every element of y inside its bound."""
        error = np.abs(wide(y) - self.y)
        bound = self.bound(name_of(y))
        worst = np.unravel_index(np.argmax(error / bound), error.shape) if error.size else ()
        assert np.all(error <= bound), (
            f"at {worst}: {wide(y)[worst]} for {self.y[worst]}, {(error / bound)[worst]:.3g} times the bound"
        )

    def gradients(self, dy, gamma=None, beta=None):
        """(dx, dgamma, dbeta) and their bounds; the gradients of parameters that are None are for one vector."""
        dy = wide(dy)
        g = dy if self.gamma is None else dy * self.gamma

        def mean(v):
            return v.mean(self.axes, keepdims=True)

        h, r, big = self.x_hat, self.rstd, self.largest
        gh = g * h
        dx = r * (g - mean(g) - h * mean(gh))
        units = 16 if self.dtype == "float64" else 8 if self.dtype == "float32" else 0.51
        d = r * (np.abs(g) + mean(np.abs(g)) + np.abs(h) * mean(np.abs(gh)))
        row_terms = H_OF_GRADIENTS[self.dtype] * r * (
            mean(np.abs(g)) * (1 + big * np.abs(h)) + mean(np.abs(gh)) * (big + np.abs(h))
        )
        row_terms += 2 * self.least() * r * (1 + np.abs(h)) * (1 + (1 + r) * mean(np.abs(g)))
        return dx, units * ulp(d, self.dtype) + row_terms

    def gathered(self, values, parameter):
        """Summed to the shape of a parameter."""
        shape = self.x.shape
        features = tuple(shape[a] for a in self.axes)
        target = tuple(parameter.shape)
        full = tuple(n if i in self.axes else 1 for i, n in enumerate(shape)) if target == features else target
        full = (1,) * (len(shape) - len(full)) + full
        summed = tuple(i for i, n in enumerate(full) if n == 1)
        return values.sum(summed, keepdims=True).reshape(target)

    def parameter_gradients(self, dy, parameter, dtype):
        """((dgamma, bound), (dbeta, bound)) for parameters of this shape, rounded to this type."""
        dy = wide(dy)
        units = {"float64": (16, 16), "float32": (5, 1)}.get(dtype, (0.51, 0.51))
        row_terms = H_OF_GRADIENTS[self.dtype] * self.largest + self.least() * (1 + self.rstd)
        noise = self.gathered(np.abs(dy) * row_terms, parameter)
        dgamma = self.gathered(dy * self.x_hat, parameter)
        dbeta = self.gathered(dy, parameter)
        gamma_size, beta_size = self.gathered(np.abs(dy * self.x_hat), parameter), self.gathered(np.abs(dy), parameter)
        return (
            (dgamma, units[0] * ulp(gamma_size, dtype) + noise),
            (dbeta, units[1] * ulp(beta_size, dtype) + 2.0**-50 * beta_size),
        )


def assert_close(found, true, bound, what=""):
    error = np.abs(wide(found) - true)
    assert error.shape == np.shape(true), (what, error.shape, np.shape(true))
    ratio = np.max(error / np.where(bound == 0, np.finfo(float).tiny, bound), initial=0)
    assert np.all(error <= bound), f"{what}: {float(ratio):.3g} times the bound"

"""NumPy: the formula as people write it, with results and temporaries preallocated; half types through float32."""

import numpy as np

from . import Kernel, Unsupported, python_worker

NAME = "NumPy"
PYTORCH = False


def command(build):
    return python_worker("numpy", "numpy")


def environment(threads):
    return {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def versions():
    return {"version": np.__version__}


def prepare(cell, inputs):
    if cell.threads > 1:
        raise Unsupported("one thread only")
    if cell.variant == "saved":
        raise Unsupported("the formula returns y alone")
    wide = np.float64 if cell.dtype == "float64" else np.float32
    half = cell.dtype in ("float16", "bfloat16")
    gamma, beta = inputs.gamma.astype(wide), inputs.beta.astype(wide)
    centred, y, out = np.empty_like(inputs.x, wide), np.empty_like(inputs.x, wide), np.empty_like(inputs.x)

    def normalize():
        x = inputs.x.astype(wide) if half else inputs.x
        np.subtract(x, x.mean(axis=-1, keepdims=True), out=centred)
        np.multiply(centred, centred, out=y)
        rstd = 1 / np.sqrt(y.mean(axis=-1, keepdims=True) + cell.eps)
        return rstd

    def forward():
        np.multiply(centred, normalize(), out=y)
        np.multiply(y, gamma, out=y)
        np.add(y, beta, out=y if half else out)
        if half:
            out[...] = y

    if cell.direction == "forward":
        return Kernel(forward, lambda: {"y": out})

    rstd = normalize()
    x_hat = np.multiply(centred, rstd)
    gradients = {}

    def backward():
        dy = inputs.dy.astype(wide) if half else inputs.dy
        g = np.multiply(dy, gamma, out=y)
        mean_g = g.mean(axis=-1, keepdims=True)
        np.multiply(g, x_hat, out=centred)
        mean_gx = centred.mean(axis=-1, keepdims=True)
        np.multiply(x_hat, mean_gx, out=centred)
        np.subtract(g, centred, out=g)
        np.subtract(g, mean_g, out=g)
        np.multiply(g, rstd, out=y if half else out)
        if half:
            out[...] = y
        if cell.variant == "all":
            gradients["dgamma"] = np.einsum("ij,ij->j", dy, x_hat)
            gradients["dbeta"] = dy.sum(axis=0)

    return Kernel(backward, lambda: {"dx": out} | gradients)

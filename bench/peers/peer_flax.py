"""Flax: linen.LayerNorm as it comes (statistics in one pass: use_fast_variance), compiled; for bench/error_table.py."""

import numpy as np

from . import Kernel, python_worker

NAME = "Flax"
PYTORCH = False


def command(build):
    return python_worker("flax", "jax", "flax")


def environment(threads):
    return {"JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "1"}


def versions():
    import flax
    import jax

    return {"version": flax.__version__, "JAX": jax.__version__}


def prepare(cell, inputs):
    import jax
    import jax.numpy as jnp
    from flax import linen

    x, gamma, beta = (jnp.asarray(a) for a in (inputs.x, inputs.gamma, inputs.beta))
    norm = linen.LayerNorm(epsilon=cell.eps, dtype=x.dtype, param_dtype=gamma.dtype)

    def forward(x, gamma, beta):
        return norm.apply({"params": {"scale": gamma, "bias": beta}}, x)

    out = {}
    if cell.direction == "forward":
        function, arguments, names = jax.jit(forward), (x, gamma, beta), ("y",)
    else:
        gradients = jax.jit(lambda dy, x, gamma, beta: jax.vjp(forward, x, gamma, beta)[1](dy))
        function, arguments, names = gradients, (jnp.asarray(inputs.dy), x, gamma, beta), ("dx", "dgamma", "dbeta")

    def call():
        out["results"] = jax.block_until_ready(function(*arguments))

    def results():
        values = out["results"] if cell.direction == "backward" else (out["results"],)
        return {name: np.asarray(value) for name, value in zip(names, values)}

    return Kernel(call, results)

"""JAX: the two-pass formula, compiled; gradients by jax.vjp, compiled with forward's statistics as inputs.

It allocates its results on every call; glibc keeps the memory. Half types are computed in float32, as Flax does. With
one thread the process is bound to one processor.
"""

import numpy as np

from . import Kernel, Unsupported, kept_memory, python_worker

NAME = "JAX"
PYTORCH = False
BOUND = True


def command(build):
    return python_worker("jax", "jax")


def environment(threads):
    flags = "" if threads > 1 else "--xla_cpu_multi_thread_eigen=false"
    return kept_memory() | {"JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "1", "XLA_FLAGS": flags}


def versions():
    import jax

    return {"version": jax.__version__}


def prepare(cell, inputs):
    import jax
    import jax.numpy as jnp

    if cell.variant == "saved":
        raise Unsupported("the compiled formula returns y alone")
    wide = jnp.float64 if cell.dtype == "float64" else jnp.float32
    eps = cell.eps

    def norm(x, gamma, beta):
        x32 = x.astype(wide)
        mean = jnp.mean(x32, axis=-1, keepdims=True)
        centred = x32 - mean
        rstd = jax.lax.rsqrt(jnp.mean(jnp.square(centred), axis=-1, keepdims=True) + eps)
        return (centred * rstd * gamma.astype(wide) + beta.astype(wide)).astype(x.dtype)

    x, gamma, beta = (jnp.asarray(a) for a in (inputs.x, inputs.gamma, inputs.beta))
    out = {}
    if cell.direction == "forward":
        function, arguments, names = jax.jit(norm), (x, gamma, beta), ("y",)
    else:
        dy = jnp.asarray(inputs.dy)
        if cell.variant == "all":
            names = ("dx", "dgamma", "dbeta")
            gradients = lambda dy, x, gamma, beta: jax.vjp(norm, x, gamma, beta)[1](dy)
        else:
            names = ("dx",)
            gradients = lambda dy, x, gamma, beta: jax.vjp(lambda v: norm(v, gamma, beta), x)[1](dy)
        function, arguments = jax.jit(gradients), (dy, x, gamma, beta)

    def call():
        out.clear()  # the last result's memory serves the next
        out["results"] = jax.block_until_ready(function(*arguments))

    def results():
        values = out["results"] if cell.direction == "backward" else (out["results"],)
        return {name: np.asarray(value) for name, value in zip(names, values)}

    return Kernel(call, results)

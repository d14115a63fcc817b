"""JAX arrays on the CPU."""

import numpy as np
import pytest

import truenorm

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_result_is_a_jax_array(dtype, rng):
    x = jnp.asarray(rng.standard_normal((4, 3, 16)), dtype)
    gamma = jnp.asarray(rng.standard_normal(16), dtype)
    y = truenorm.layer_norm(x, gamma)
    assert isinstance(y, jax.Array) and y.dtype == x.dtype
    assert np.array_equal(np.asarray(y), truenorm.layer_norm(np.asarray(x), np.asarray(gamma)))
    y, cache = truenorm.layer_norm_forward(x, gamma)
    dx, dgamma, dbeta = truenorm.layer_norm_backward(x, cache)
    assert isinstance(dx, jax.Array) and isinstance(dgamma, jax.Array) and dbeta is None
    # Without jax_enable_x64 JAX has no float64.
    assert isinstance(cache.mu, jax.Array) and cache.mu.dtype in (jnp.float32, jnp.float64)


def test_numpy_parameters_beside_jax(rng):
    x = jnp.ones((2, 4)) * jnp.arange(4.0)
    assert isinstance(truenorm.layer_norm(x, np.ones(4, np.float32)), jax.Array)


@pytest.mark.parametrize("transform", [jax.jit, jax.grad, jax.vmap])
def test_tracers_are_refused(transform):
    def call(x):
        return truenorm.layer_norm(x).sum()

    with pytest.raises(TypeError, match="x is a JAX tracer.*pure_callback"):
        transform(call)(jnp.ones((2, 4)))


def test_tracers_beside_other_arrays_are_refused():
    x, dy = np.ones((2, 4), np.float32), jnp.ones((2, 4))
    with pytest.raises(TypeError, match="gamma is a JAX tracer.*pure_callback"):
        jax.jit(lambda gamma: truenorm.layer_norm(x, gamma))(jnp.ones(4))
    with pytest.raises(TypeError, match="dy is a JAX tracer.*pure_callback"):
        jax.jit(lambda dy: truenorm.layer_norm_backward(dy, truenorm.layer_norm_forward(x)[1])[0])(dy)


def test_way_through_jit(rng):
    """What the message recommends."""

    @jax.jit
    def call(x):
        return jax.pure_callback(truenorm.layer_norm, jax.ShapeDtypeStruct(x.shape, x.dtype), x) * 2

    x = jnp.asarray(rng.standard_normal((3, 8)), "float32")
    assert np.array_equal(np.asarray(call(x)), 2 * truenorm.layer_norm(np.asarray(x)))


def test_out_is_refused():
    with pytest.raises(TypeError, match="JAX arrays are never written to"):
        truenorm.layer_norm(jnp.ones((2, 4)), out=jnp.ones((2, 4)))

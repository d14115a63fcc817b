"""What must hold for any input."""

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from truth import Truth, wide

import truenorm

common = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
shapes = arrays.array_shapes(min_dims=1, max_dims=3, max_side=40)


def floats(dtype, size):
    width = np.dtype(dtype).itemsize * 8
    return st.floats(-size, size, width=width)


def rows(dtype=np.float32, size=1e3, shape=shapes):
    size = float(np.dtype(dtype).type(size))
    return arrays.arrays(dtype, shape, elements=floats(dtype, size))


def equal(a, b):
    return np.array_equal(a, b, equal_nan=True)


SHIFTS = {np.float32: (2**22, 2.0**-37), np.float64: (2**50, 2.0**-46)}


@pytest.mark.parametrize("dtype", SHIFTS, ids=lambda t: t.__name__)
@common
@given(data=st.data())
def test_exact_shift(dtype, data):
    """A constant added without rounding leaves the exact answer as it is. What is computed stays inside the bounds
    around that answer, however large the constant; its last bits may differ, because how sums are taken depends on the
    size of the mean (docs/numerics.md, Properties)."""
    most, tolerance = SHIFTS[dtype]
    x = np.trunc(data.draw(rows(dtype=dtype, size=2**10)))
    shifted = x + dtype(data.draw(st.integers(-most, most)))
    y, cache = truenorm.layer_norm_forward(shifted)
    Truth(x).check(y)
    np.testing.assert_allclose(cache.var, truenorm.layer_norm_forward(x)[1].var, rtol=tolerance, atol=0)


@common
@given(rows(), st.integers(-20, 20), st.sampled_from([0.0, 1e-5, 1.0]))
def test_power_of_two(x, k, eps):
    """x times 2^k with eps times 4^k: the same bits, while no row that is plain by its mean has a variance below 2^-100,
    where rows are computed as exact ones. (Such a row has max |x| <= sqrt(16 d var).)"""
    x = np.where(np.abs(x) < 2.0**-24, np.float32(0), x)
    assert equal(truenorm.layer_norm(x, eps=eps), truenorm.layer_norm(x * np.float32(2.0**k), eps=eps * 4.0**k))


@common
@given(rows(), st.randoms())
def test_permuted_rows(x, random):
    x = x.reshape(-1, x.shape[-1])
    order = list(range(len(x)))
    random.shuffle(order)
    assert equal(truenorm.layer_norm(x)[order], truenorm.layer_norm(x[order]))


@common
@given(rows(size=3e38, dtype=np.float32), st.data())
def test_a_row_does_not_know_its_batch(x, data):
    x = x.reshape(-1, x.shape[-1])
    row = data.draw(st.integers(0, len(x) - 1))
    assert equal(truenorm.layer_norm(x)[row], truenorm.layer_norm(x[row]))


@common
@given(rows())
def test_negation(x):
    assert equal(truenorm.layer_norm(-x), -truenorm.layer_norm(x))


@common
@given(rows(size=3e38), st.sampled_from([1e-12, 1e-5, 1.0]))
def test_bounded(x, eps):
    """|x_hat| is at most sqrt(d - 1): anything beyond is an error of arithmetic."""
    d = x.shape[-1]
    assert np.all(np.abs(truenorm.layer_norm(x, eps=eps)) <= np.sqrt(np.float32(max(d - 1, 0))) * (1 + 2.0**-21))


@common
@given(rows(dtype=np.float64, size=100), st.integers(-8, 8), st.data())
def test_linear_in_dy(x, factor, data):
    """The gradients of a sum are the sums of the gradients, inside the bounds of all three."""
    gamma = data.draw(rows(dtype=np.float64, size=4, shape=st.just(x.shape[-1:])))
    # Whole numbers, so that their sum is exact.
    one, two = (np.trunc(data.draw(rows(dtype=np.float64, size=100, shape=st.just(x.shape)))) for _ in range(2))
    truth = Truth(x, gamma, gamma)
    _, cache = truenorm.layer_norm_forward(x, gamma, gamma)
    found, bounds = [], []
    for dy in (one, two, one + factor * two):
        found.append([wide(g) for g in truenorm.layer_norm_backward(dy, cache)])
        bounds.append([truth.gradients(dy)[1], *(b for _, b in truth.parameter_gradients(dy, gamma, "float64"))])
    for (a, b, c), (bound_a, bound_b, bound_c) in zip(zip(*found), zip(*bounds)):
        assert np.all(np.abs(c - (a + factor * b)) <= bound_a + abs(factor) * bound_b + bound_c)


def test_gradients_of_the_least_gamma():
    """An example that test_linear_in_dy found: g is below the normal range, where the bound has a term of its own."""
    x, gamma, dy = np.zeros(2), np.array([5e-324, 0.0]), np.ones(2)
    _, cache = truenorm.layer_norm_forward(x, gamma)
    exact, bound = Truth(x, gamma).gradients(dy)
    assert np.all(np.abs(wide(truenorm.layer_norm_backward(dy, cache)[0]) - exact) <= bound)


@common
@given(rows(dtype=np.float64, size=100), st.data())
def test_powers_of_two_in_dy_and_gamma(x, data):
    """Gradients scale with dy and with gamma, by powers of two to the bit, while no number of the calculation is subnormal."""
    x = np.where(np.abs(x) < 1e-60, 0, x)
    d = x.shape[-1]
    dy = data.draw(rows(dtype=np.float64, size=100, shape=st.just(x.shape)))
    gamma = data.draw(rows(dtype=np.float64, size=4, shape=st.just((d,))))
    dy, gamma = np.where(np.abs(dy) < 1e-60, 0, dy), np.where(np.abs(gamma) < 1e-60, 0, gamma)
    _, cache = truenorm.layer_norm_forward(x, gamma, gamma)
    first = truenorm.layer_norm_backward(dy, cache)
    for a, b in zip(first, truenorm.layer_norm_backward(4 * dy, cache)):
        assert equal(4 * a, b)
    _, scaled = truenorm.layer_norm_forward(x, 4 * gamma, gamma)
    dx, dgamma, _ = truenorm.layer_norm_backward(dy, scaled)
    assert equal(dx, 4 * first[0]) and equal(dgamma, first[1])


@common
@given(rows(), rows(shape=st.integers(1, 40)))
def test_beta_is_added_last(x, beta):
    """With gamma = 0 the result is beta, to the bit."""
    beta = np.resize(beta, x.shape[-1])
    y = truenorm.layer_norm(x, np.zeros_like(beta), beta)
    assert equal(y, np.broadcast_to(beta, x.shape))


@common
@given(rows(), st.integers(1, 3))
def test_any_layout(x, step):
    wide = np.repeat(x, step, axis=-1)[..., ::step]
    assert equal(truenorm.layer_norm(wide), truenorm.layer_norm(x))
    assert equal(truenorm.layer_norm(np.asfortranarray(x)), truenorm.layer_norm(x))


@common
@given(rows(dtype=np.float32, size=1e3))
def test_constant_rows(x):
    assume(x.size)
    constant = np.broadcast_to(x[..., :1], x.shape)
    assert not truenorm.layer_norm(constant).any()


@common
@given(
    arrays.array_shapes(min_dims=1, max_dims=5, max_side=9),
    st.integers(1, 5),
    st.sampled_from([(False, False), (True, False), (False, True), (True, True)]),
    st.sampled_from([1e-12, 1e-5, 0.1]),
    st.integers(0, 2**32 - 1),
)
def test_random_shapes_against_pytorch_in_float64(shape, k, affine, eps, seed):
    """PyTorch's own norm in float64 is the ground truth; both are off by some roundings of what the row is divided by."""
    rng = np.random.default_rng(seed)
    normalized = shape[-min(k, len(shape)) :]
    x, (gamma, beta) = 3 * rng.standard_normal(shape) + 2, rng.standard_normal((2, *normalized))
    gamma, beta = gamma if affine[0] else None, beta if affine[1] else None
    y, cache = truenorm.layer_norm_forward(x, gamma, beta, eps, normalized_shape=normalized)
    tensors = [None if array is None else torch.from_numpy(array) for array in (gamma, beta)]
    truth = torch.nn.functional.layer_norm(torch.from_numpy(x), normalized, *tensors, eps).numpy()
    assert y.shape == truth.shape
    condition = np.abs(x).max() / np.sqrt(cache.var.min() + eps)
    np.testing.assert_allclose(y, truth, rtol=0, atol=1e-14 * (1 + condition) * (1 + np.abs(truth).max()))

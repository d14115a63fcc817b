"""Any axis or axes, any allowed shape of gamma and beta, any layout in memory."""

import itertools
import tracemalloc

import numpy as np
import pytest
from truth import Truth, assert_close

import truenorm

SHAPE = (2, 3, 4, 5)
AXES = [-1, 0, 1, 2, (0, 1), (1, 3), (3, 1), (0, 2, 3), (-3, -2), None]


def parameter_shapes(axis):
    """The shapes that gamma may have when x of SHAPE is normalized over axis."""
    axes = range(4) if axis is None else sorted(a % 4 for a in np.atleast_1d(axis))
    features = tuple(SHAPE[a] for a in axes)
    kept = tuple(n if i in axes else 1 for i, n in enumerate(SHAPE))
    return [features, kept, SHAPE, (2, 1, 1, 5), (1, 3, 4, 1), (1, 1, 1, 1), ()]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("axis", AXES, ids=str)
def test_values_and_gradients(axis, dtype, rng):
    x = (3 * rng.standard_normal(SHAPE) + 2).astype(dtype)
    dy = rng.standard_normal(SHAPE).astype(dtype)
    for shape in dict.fromkeys(parameter_shapes(axis)):
        gamma, beta = (np.asarray(rng.standard_normal(shape), dtype) for _ in range(2))
        truth = Truth(x, gamma, beta, 1e-5, axis)
        y, cache = truenorm.layer_norm_forward(x, gamma, beta, 1e-5, axis=axis)
        assert y.dtype == dtype and y.shape == SHAPE
        truth.check(y)
        assert np.array_equal(truenorm.layer_norm(x, gamma, beta, axis=axis), y)
        assert cache.mu.shape == truth.mean.shape == cache.var.shape
        dx, dgamma, dbeta = truenorm.layer_norm_backward(dy, cache)
        assert_close(dx, *truth.gradients(dy), "dx")
        assert dgamma.shape == dbeta.shape == shape and dgamma.dtype == dbeta.dtype == dtype
        true_gamma, true_beta = truth.parameter_gradients(dy, gamma, np.dtype(dtype).name)
        assert_close(dgamma, *true_gamma, "dgamma")
        assert_close(dbeta, *true_beta, "dbeta")


def test_axes_in_any_order_are_the_same_axes(rng):
    """gamma's dimensions follow x's, not the order in which the axes are named."""
    x, gamma = rng.standard_normal((2, 3, 4, 5)), rng.standard_normal((3, 5))
    assert np.array_equal(truenorm.layer_norm(x, gamma, axis=(3, 1)), truenorm.layer_norm(x, gamma, axis=(1, -1)))


def test_gamma_and_beta_of_different_shapes(rng):
    x = rng.standard_normal((2, 3, 4))
    gamma, beta = rng.standard_normal((2, 1, 4)), rng.standard_normal((1, 3, 1))
    dy = rng.standard_normal(x.shape)
    truth = Truth(x, gamma, beta)
    y, cache = truenorm.layer_norm_forward(x, gamma, beta)
    truth.check(y)
    _, dgamma, dbeta = truenorm.layer_norm_backward(dy, cache)
    assert_close(dgamma, *truth.parameter_gradients(dy, gamma, "float64")[0])
    assert_close(dbeta, *truth.parameter_gradients(dy, beta, "float64")[1])


@pytest.mark.parametrize("given", list(itertools.product([False, True], repeat=2)), ids=str)
def test_each_parameter_is_optional(given, rng):
    x, dy = rng.standard_normal((2, 3, 8)), rng.standard_normal((2, 3, 8))
    gamma, beta = (rng.standard_normal(8) if wanted else None for wanted in given)
    y, cache = truenorm.layer_norm_forward(x, gamma, beta)
    Truth(x, gamma, beta).check(y)
    dx, dgamma, dbeta = truenorm.layer_norm_backward(dy, cache)
    assert_close(dx, *Truth(x, gamma, beta).gradients(dy))
    assert (dgamma is None, dbeta is None) == (gamma is None, beta is None)


def test_axes_of_any_integer_kind(rng):
    x = rng.standard_normal((2, 3, 4))
    assert np.array_equal(truenorm.layer_norm(x, axis=np.array([1, 2])), truenorm.layer_norm(x, axis=(1, 2)))
    assert np.array_equal(truenorm.layer_norm(x, axis=np.int8(-1)), truenorm.layer_norm(x))


def test_normalized_shape_is_the_last_axes(rng):
    x, gamma = rng.standard_normal((2, 3, 4)), rng.standard_normal((3, 4))
    y = truenorm.layer_norm(x, gamma, normalized_shape=(3, 4))
    assert np.array_equal(y, truenorm.layer_norm(x, gamma, axis=(-2, -1)))
    # ONNX's axis=1 of a rank-3 array: all axes from 1 on.
    assert np.array_equal(y, truenorm.layer_norm(x, gamma, normalized_shape=x.shape[1:]))
    assert np.array_equal(truenorm.layer_norm(x, normalized_shape=4), truenorm.layer_norm(x))


def views(rng):
    """Arrays whose rows lie in memory in every way that needs no copy, and some that do."""
    wide = rng.standard_normal((6, 300)).astype(np.float32)
    cube = rng.standard_normal((4, 5, 6)).astype(np.float32)
    yield "columns of a wider buffer", wide[:, 100:228]
    yield "every other row", wide[::2]
    yield "rows backwards", cube[::-1, ::-1]
    yield "one row many times", np.broadcast_to(wide[0], (7, 300))
    yield "one row in two dimensions", np.broadcast_to(wide[0, :128], (2, 3, 128))
    yield "leading axes swapped", cube.transpose(1, 0, 2)
    yield "features strided", wide[:, ::3]
    yield "features backwards", wide[:, ::-1]
    yield "transposed", cube.transpose(0, 2, 1)
    yield "Fortran order", np.asfortranarray(cube)
    yield "not aligned", np.frombuffer(b"\0" + cube.tobytes(), np.uint8)[1:].view(np.float32).reshape(cube.shape)
    yield "nine leading axes", rng.standard_normal((2,) * 9 + (3,)).astype(np.float32)
    yield "nine leading axes, swapped", rng.standard_normal((2,) * 9 + (3,)).astype(np.float32).transpose(
        8, 7, 6, 5, 4, 3, 2, 1, 0, 9
    )
    yield "read-only", np.frombuffer(cube.tobytes(), np.float32).reshape(cube.shape)


@pytest.mark.parametrize("which", range(14))
def test_any_layout_gives_the_bits_of_a_contiguous_copy(which, rng):
    name, x = list(views(rng))[which]
    print(name)
    before = x.copy()
    gamma, beta = (rng.standard_normal(x.shape[-1]).astype(np.float32) for _ in range(2))
    y, cache = truenorm.layer_norm_forward(x, gamma, beta)
    y_copy, cache_copy = truenorm.layer_norm_forward(before, gamma, beta)
    assert np.array_equal(y, y_copy) and np.array_equal(truenorm.layer_norm(x, gamma, beta), y_copy)
    dy = rng.standard_normal(x.shape).astype(np.float32)
    gradients = truenorm.layer_norm_backward(dy, cache_copy)
    for other in (dy, np.asfortranarray(dy)):
        for a, b in zip(truenorm.layer_norm_backward(other, cache), gradients):
            assert np.array_equal(a, b)
    assert np.array_equal(x, before)


@pytest.mark.parametrize("which", [
    lambda wide: wide[:, 100:868],
    lambda wide: wide[::-2, :768],
    lambda wide: np.broadcast_to(wide[0], (700, 1000)),
    lambda wide: wide.reshape(20, 30, 1000).transpose(1, 0, 2),
    lambda wide: wide.reshape(20, 30, 1000)[::-1, :, 1:],
], ids=["columns", "rows backwards", "one row many times", "leading axes swapped", "three axes"])
def test_nothing_is_copied_where_features_are_dense(which, rng):
    x = which(rng.standard_normal((600, 1000)).astype(np.float32))
    gamma, out, dy = np.ones(x.shape[-1], np.float32), np.empty(x.shape, np.float32), np.ones(x.shape, np.float32)
    _, cache = truenorm.layer_norm_forward(x, gamma, gamma)

    def most_memory(function, *arguments, **how):
        tracemalloc.start()
        try:
            function(*arguments, **how)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    # Besides y and dx: 16 bytes a row in the cache, the gradients of the parameters, and Python's own.
    y, small = 4 * x.size, 16 * x[..., 0].size + 20000
    assert most_memory(truenorm.layer_norm_forward, x, gamma, gamma, out=out) < small
    assert most_memory(truenorm.layer_norm_forward, x, gamma, gamma) < y + small
    assert most_memory(truenorm.layer_norm_backward, dy, cache) < y + small


def test_result_is_laid_out_as_x(rng):
    x = rng.standard_normal((4, 5, 6))
    assert truenorm.layer_norm(x, axis=1).flags.c_contiguous
    assert truenorm.layer_norm(np.asfortranarray(x)).flags.f_contiguous
    # A slice of a wider buffer is not blown up to the buffer.
    assert truenorm.layer_norm(x[:, :, :3]).flags.c_contiguous


def test_out(rng):
    x, gamma = rng.standard_normal((3, 4, 8)).astype(np.float32), rng.standard_normal(8).astype(np.float32)
    y = truenorm.layer_norm(x, gamma)
    out = np.full_like(x, np.nan)
    assert truenorm.layer_norm(x, gamma, out=out) is out and np.array_equal(out, y)
    wide = np.full((3, 4, 24), 7, np.float32)
    truenorm.layer_norm(x, gamma, out=wide[:, :, 8:16])
    assert np.array_equal(wide[:, :, 8:16], y) and np.all(wide[:, :, :8] == 7) and np.all(wide[:, :, 16:] == 7)
    strided = np.zeros((3, 4, 16), np.float32)[:, :, ::2]
    assert np.array_equal(truenorm.layer_norm(x, gamma, out=strided), y)
    y, cache = truenorm.layer_norm_forward(x, gamma, out=out)
    assert y is out
    # Two halves of one buffer do not share memory, though their ends interlock.
    buffer = np.concatenate([x, np.zeros_like(x)], axis=-1)
    y, _ = truenorm.layer_norm_forward(buffer[..., :8], gamma, out=buffer[..., 8:])
    assert np.array_equal(y, out)
    in_place = x.copy()
    assert truenorm.layer_norm(in_place, gamma, out=in_place) is in_place and np.array_equal(in_place, out)


@pytest.mark.parametrize("axis", [0, 1, (0, 2)], ids=str)
def test_in_place_over_other_axes(axis, rng):
    x = rng.standard_normal((3, 4, 8)).astype(np.float32)
    y = truenorm.layer_norm(x, axis=axis)
    assert truenorm.layer_norm(x, axis=axis, out=x) is x
    assert np.array_equal(x, y)


@pytest.mark.parametrize("shape", [(0, 5), (1, 0, 10), (3, 0), (0,), (0, 0)], ids=str)
def test_empty(shape):
    x = np.zeros(shape, np.float32)
    gamma = np.ones(shape[-1], np.float32)
    y, cache = truenorm.layer_norm_forward(x, gamma, gamma)
    assert y.shape == shape and y.dtype == np.float32
    dx, dgamma, dbeta = truenorm.layer_norm_backward(x, cache)
    assert dx.shape == shape and np.array_equal(dgamma, np.zeros_like(gamma)) and not dbeta.any()


def test_small_ranks():
    """A 1-d array is one row; a scalar is one row of one feature, whose normalized value is 0."""
    x = np.array([1.0, 2.0, 3.0, 4.0])
    y, cache = truenorm.layer_norm_forward(x)
    assert y.shape == (4,) and cache.mu.shape == (1,)
    scalar = truenorm.layer_norm(np.float32(3.5), beta=2.0)
    assert scalar.shape == () and scalar.dtype == np.float32 and scalar == 2
    assert np.array_equal(truenorm.layer_norm(np.array([[5.0], [7.0]])), [[0], [0]])


@pytest.mark.parametrize("shape,parameter", [((0, 8), (0, 8)), ((0, 2, 8), (0, 1, 8)), ((3, 0, 8), (1, 0, 8))], ids=str)
def test_gradients_of_parameters_of_no_rows(shape, parameter):
    """Nothing is written where they have no memory; the C library's allocator ends the process if something is."""
    x, gamma = np.zeros(shape), np.ones(parameter)
    for _ in range(100):
        _, cache = truenorm.layer_norm_forward(x, gamma, gamma)
        dx, dgamma, dbeta = truenorm.layer_norm_backward(x, cache)
    assert dx.shape == shape and dgamma.shape == dbeta.shape == parameter

"""Kinds of array and of element: NumPy and PyTorch; float64, float32, float16, bfloat16; numbers; the cache."""

import copy
import pickle

import ml_dtypes
import numpy as np
import pytest
import torch
from truth import Truth, assert_close, name_of, wide

import truenorm

DTYPES = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16]


def tensor(array):
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


@pytest.mark.parametrize("parameters", ["own", "float32", "none"])
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_element_types(dtype, parameters, rng):
    x = (3 * rng.standard_normal((5, 7, 33)) + 2).astype(dtype)
    dy = rng.standard_normal(x.shape).astype(dtype)
    if parameters == "float32" and np.dtype(dtype).itemsize > 4:
        return
    own = dtype if parameters == "own" else np.float32
    gamma, beta = (None if parameters == "none" else rng.standard_normal(33).astype(own) for _ in range(2))
    truth = Truth(x, gamma, beta)
    y, cache = truenorm.layer_norm_forward(x, gamma, beta)
    assert y.dtype == dtype
    truth.check(y)
    dx, dgamma, dbeta = truenorm.layer_norm_backward(dy, cache)
    assert dx.dtype == dtype
    assert_close(dx, *truth.gradients(dy), "dx")
    if gamma is not None:
        assert dgamma.dtype == dbeta.dtype == own
        for found, true in zip((dgamma, dbeta), truth.parameter_gradients(dy, gamma, name_of(gamma))):
            assert_close(found, *true)


@pytest.mark.parametrize("dtype", DTYPES[2:], ids=lambda d: np.dtype(d).name)
def test_half_to_float32(dtype, rng):
    x = rng.standard_normal((4, 32)).astype(dtype)
    out = np.empty(x.shape, np.float32)
    truenorm.layer_norm(x, out=out)
    Truth(x).check(out)
    y, cache = truenorm.layer_norm_forward(x, np.ones(32, np.float32), out=out)
    dy = rng.standard_normal(x.shape).astype(np.float32)
    dx = truenorm.layer_norm_backward(dy, cache)[0]
    assert dx.dtype == dtype
    assert_close(dx, *Truth(x).gradients(dy))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("axis", [-1, 1], ids=str)
def test_torch_has_the_bits_of_numpy(dtype, axis, rng):
    x = rng.standard_normal((2, 5, 16)).astype(dtype)
    gamma, beta = (rng.standard_normal(x.shape[axis]).astype(dtype) for _ in range(2))
    dy = rng.standard_normal(x.shape).astype(dtype)

    y, cache = truenorm.layer_norm_forward(x, gamma, beta, axis=axis)
    t_x, t_gamma, t_beta = (tensor(a).clone().requires_grad_() for a in (x, gamma, beta))
    t_y = truenorm.layer_norm(t_x, t_gamma, t_beta, axis=axis)
    assert np.array_equal(wide(t_y), wide(y)) and t_y.dtype == t_x.dtype
    t_y.backward(tensor(dy))
    expected = truenorm.layer_norm_backward(dy, cache)
    for found, true in zip((t_x.grad, t_gamma.grad, t_beta.grad), expected):
        assert np.array_equal(wide(found), wide(true))
    t_y, t_cache = truenorm.layer_norm_forward(*map(tensor, (x, gamma, beta)), axis=axis)
    for found, true in zip(truenorm.layer_norm_backward(tensor(dy), t_cache), expected):
        assert np.array_equal(wide(found), wide(true))
    assert torch.equal(t_cache.mu, torch.from_numpy(cache.mu))


def test_torch_memory_is_not_copied(rng):
    """Slices, negative strides apart, go to the library where they lie; so does out."""
    buffer = torch.from_numpy(rng.standard_normal((6, 300)).astype(np.float32))
    x = buffer[:, 100:228]
    out = torch.zeros(6, 300)
    truenorm.layer_norm(x, out=out[:, 10:138])
    assert torch.equal(out[:, 10:138], truenorm.layer_norm(x.contiguous()))
    assert not out[:, :10].any() and not out[:, 138:].any()
    y, cache = truenorm.layer_norm_forward(x, out=out[:, 150:278])
    assert torch.equal(y, out[:, 10:138]) and torch.equal(cache.x_norm, y)
    with pytest.raises(ValueError, match="out shares memory with x"):
        truenorm.layer_norm_forward(x, out=buffer[:, 90:218])
    assert truenorm.layer_norm(x, out=x) is x and torch.equal(x, out[:, 10:138])


def test_negated_view_is_read_as_negated():
    x = torch._neg_view(torch.arange(8.0))
    assert torch.equal(truenorm.layer_norm(x), truenorm.layer_norm(-torch.arange(8.0)))


def test_lists_are_numbers():
    assert np.array_equal(truenorm.layer_norm([[1, 2], [3, 5]]), truenorm.layer_norm(np.array([[1.0, 2], [3, 5]])))
    x = np.arange(4, dtype=np.float32)
    y = truenorm.layer_norm(x, [1, 2, 1, 2], [0, 0, 0.5, 0])
    assert y.dtype == np.float32
    assert np.array_equal(y, truenorm.layer_norm(x, np.float32([1, 2, 1, 2]), np.float32([0, 0, 0.5, 0])))


def test_numbers_have_no_type():
    """A number beside half x is float32, so that it is not rounded; NumPy's scalars count as numbers."""
    x = np.array([3, 1, 5, 7], np.float16)
    y = truenorm.layer_norm(x, 0.1, np.float64(0.3))
    assert y.dtype == np.float16
    Truth(x, np.float32(0.1), np.float32(0.3)).check(y)
    y, cache = truenorm.layer_norm_forward(x, 0.1)
    dgamma = truenorm.layer_norm_backward(y, cache)[1]
    assert dgamma.shape == () and dgamma.dtype == np.float32


@pytest.mark.parametrize("scalar", [
    2, 2.0, np.float64(2), np.float16(2), np.int64(2), ml_dtypes.bfloat16(2), np.array(2.0), np.array(2), np.array(2, np.int8),
    np.array(2, ml_dtypes.bfloat16), np.array(2, np.float16),
], ids=lambda s: f"{type(s).__name__} {getattr(s, 'dtype', '')}")
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16], ids=lambda t: np.dtype(t).name)
def test_arrays_without_dimensions_are_numbers(dtype, scalar):
    """Whatever their type, of x and of the other parameter."""
    x = np.array([3, 1, 5, 7], dtype)
    for other in (None, np.ones(4, dtype), np.float32([1, 2, 3, 4])):
        y, cache = truenorm.layer_norm_forward(x, scalar, other)
        assert y.dtype == dtype and np.array_equal(wide(y), wide(truenorm.layer_norm(x, 2, other)))
        dgamma = truenorm.layer_norm_backward(y, cache)[1]
        own = np.float32 if other is None else other.dtype
        assert dgamma.shape == () and dgamma.dtype == own
        tensors = [None if a is None else tensor(a) for a in (x, other)]
        assert np.array_equal(wide(truenorm.layer_norm(tensors[0], scalar, tensors[1])), wide(y))


def test_tensors_without_dimensions_are_numbers_with_gradients():
    x, gamma = torch.arange(4.0), torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    y = truenorm.layer_norm(x, gamma, torch.tensor(1, dtype=torch.int32))
    assert torch.equal(y, truenorm.layer_norm(x, 2.0, 1.0))
    y.backward(torch.tensor([1.0, 0, 0, 0]))
    assert gamma.grad.dtype == torch.float64 and gamma.grad == truenorm.layer_norm(x)[0].double()


def test_the_cache_is_read_only():
    """Backward goes by what forward was given; what is assigned later would be passed over."""
    _, cache = truenorm.layer_norm_forward(np.ones((2, 3)))
    for name in ("x", "gamma", "eps", "x_norm", "mu", "var"):
        with pytest.raises(AttributeError):
            setattr(cache, name, 1.0)
    with pytest.raises(TypeError, match="does not support item assignment"):
        cache[0] = 1
    with pytest.raises(TypeError, match="item deletion"):
        del cache[0]
    with pytest.raises(IndexError):
        cache[6]


def test_the_cache_can_be_copied(rng):
    x, dy, gamma = rng.standard_normal((4, 8)), rng.standard_normal((4, 8)), rng.standard_normal(8)
    for kind in (np.asarray, torch.from_numpy):
        _, cache = truenorm.layer_norm_forward(kind(x), kind(gamma))
        expected = truenorm.layer_norm_backward(kind(dy), cache)
        for other in (copy.copy(cache), copy.deepcopy(cache), pickle.loads(pickle.dumps(cache))):
            for a, b in zip(truenorm.layer_norm_backward(kind(dy), other)[:2], expected):
                assert np.array_equal(wide(a), wide(b))

"""Kinds of array and of element: NumPy, PyTorch, JAX, DLPack; float64, float32, float16, bfloat16."""

import copy
import pickle

import ml_dtypes
import numpy as np
import pytest
import torch
from truth import Truth, assert_close, name_of, wide

import truenorm

DTYPES = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16]


class OnlyDlpack:
    """An array of a library nobody has heard of."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.device = array, device
        self.dtype, self.shape = array.dtype, array.shape

    def __dlpack__(self, **how):
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.device


class Namespaced(OnlyDlpack):
    """The same with an array namespace, as the array API standard has it."""

    def __array_namespace__(self):
        class namespace:
            @staticmethod
            def from_dlpack(array):
                return Namespaced(np.from_dlpack(array))

        return namespace


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

    def tensor(array):
        if array.dtype == ml_dtypes.bfloat16:
            return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        return torch.from_numpy(array)

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


@pytest.mark.parametrize("kind", [OnlyDlpack, Namespaced])
def test_dlpack(kind, rng):
    x, gamma = rng.standard_normal((3, 8)).astype(np.float32), rng.standard_normal(8).astype(np.float32)
    y = truenorm.layer_norm(kind(x), kind(gamma), beta=1.0)
    assert isinstance(y, np.ndarray if kind is OnlyDlpack else Namespaced)
    values = y if kind is OnlyDlpack else y.array
    assert np.array_equal(values, truenorm.layer_norm(x, gamma, 1.0))
    out = np.empty_like(x)
    truenorm.layer_norm(kind(x), kind(gamma), out=kind(out))
    assert np.array_equal(out, truenorm.layer_norm(x, gamma))
    y, cache = truenorm.layer_norm_forward(kind(x), kind(gamma))
    dx, dgamma, dbeta = truenorm.layer_norm_backward(kind(x), cache)
    assert dbeta is None and type(dx) is type(y)


def test_dlpack_bfloat16(rng):
    x = rng.standard_normal((3, 8)).astype(ml_dtypes.bfloat16)
    tensor = torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)
    y = truenorm.layer_norm(OnlyDlpack(tensor))
    assert y.dtype == ml_dtypes.bfloat16 and np.array_equal(y.view(np.int16), truenorm.layer_norm(x).view(np.int16))


def test_dlpack_elsewhere_is_refused():
    with pytest.raises(TypeError, match="x is on DLPack device type 2"):
        truenorm.layer_norm(OnlyDlpack(np.zeros((2, 3)), device=(2, 0)))
    with pytest.raises(TypeError, match="int64"):
        truenorm.layer_norm(OnlyDlpack(np.zeros((2, 3), np.int64)))


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


def test_the_cache_is_read_only():
    """Backward goes by what forward was given; what is assigned later would be passed over."""
    _, cache = truenorm.layer_norm_forward(np.ones((2, 3)))
    for name in ("x", "gamma", "eps", "x_norm", "mu", "var"):
        with pytest.raises(AttributeError):
            setattr(cache, name, 1.0)


def test_the_cache_can_be_copied(rng):
    x, dy, gamma = rng.standard_normal((4, 8)), rng.standard_normal((4, 8)), rng.standard_normal(8)
    for kind in (np.asarray, torch.from_numpy):
        _, cache = truenorm.layer_norm_forward(kind(x), kind(gamma))
        expected = truenorm.layer_norm_backward(kind(dy), cache)
        for other in (copy.copy(cache), copy.deepcopy(cache), pickle.loads(pickle.dumps(cache))):
            for a, b in zip(truenorm.layer_norm_backward(kind(dy), other)[:2], expected):
                assert np.array_equal(wide(a), wide(b))

"""Every wrong argument is a ValueError or TypeError that names what it was and what was expected."""

import numpy as np
import pytest
import torch

import truenorm
import truenorm.torch

X = np.arange(12, dtype=np.float32).reshape(3, 4)
T = torch.from_numpy(X)


def f32(*shape):
    return np.ones(shape, np.float32)


def call(*args, **kwargs):
    return lambda: truenorm.layer_norm(*args, **kwargs)


ERRORS = {
    "gamma too short": (call(X, f32(3)), ValueError, r"gamma has shape \(3,\).*\(3, 4\).*\(1,\).*expected \(4,\)"),
    "beta of one element": (call(X, None, f32(1)), ValueError, r"beta has shape \(1,\)"),
    "gamma of higher rank": (call(X, f32(1, 1, 4)), ValueError, r"gamma has shape \(1, 1, 4\)"),
    "gamma of one, axis 1": (call(f32(1, 3, 2), f32(1), axis=1), ValueError, r"gamma has shape \(1,\)"),
    "gamma for other axes": (call(X, f32(4), axis=0), ValueError, r"gamma has shape \(4,\).*axes \(0,\).*\(3,\)"),
    "gamma float64": (call(X, np.ones(4)), TypeError, "gamma is float64 and x is float32; expected gamma to be float32"),
    "gamma float16": (call(X, np.ones(4, np.float16)), TypeError, "gamma is float16 and x is float32"),
    "half x, double beta": (
        call(X.astype(np.float16), None, np.ones(4)),
        TypeError,
        "beta is float64 and x is float16; expected beta to be float16 or float32",
    ),
    "two types": (
        call(X.astype(np.float16), f32(4), np.ones(4, np.float16)),
        TypeError,
        "gamma is float32 and beta is float16",
    ),
    "integers": (call(np.arange(4)), TypeError, "x has dtype int64; expected float64, float32, float16 or bfloat16"),
    "complex": (call(np.ones(4, complex)), TypeError, "x has dtype complex128"),
    "objects": (call(np.array([None, 1.0])), TypeError, "x has dtype object"),
    "text": (call("abc"), TypeError, "x is of type str"),
    "nothing": (call(None), TypeError, "x is of type NoneType"),
    "gamma is text": (call(X, "abc"), TypeError, "gamma"),
    "big-endian": (call(X.astype(">f4")), TypeError, "x has dtype >f4.*native"),
    "masked": (call(np.ma.masked_invalid(X)), TypeError, "x is a masked array"),
    "eps negative": (call(X, eps=-1.0), ValueError, "eps is -1"),
    "eps NaN": (call(X, eps=float("nan")), ValueError, "eps is nan"),
    "eps infinite": (call(X, eps=float("inf")), ValueError, "eps is inf"),
    "eps text": (call(X, eps="small"), TypeError, "eps is 'small'; expected a number"),
    "eps text of a number": (call(X, eps="1e-5"), TypeError, "eps is '1e-5'; expected a number"),
    "eps bytes": (call(X[:, ::2], eps=b"1"), TypeError, "eps is b'1'"),
    "eps beyond float64": (call(X, eps=10**400), ValueError, "eps is inf; expected a finite number"),
    "gamma beyond float64": (call(X, 10**400), TypeError, "gamma is 1000"),
    "list of tensors with gradients": (
        call([torch.ones(2, requires_grad=True)]), TypeError, "x is a list that NumPy cannot read"
    ),
    "eps negative, strided": (call(X[:, ::2], eps=-1), ValueError, "eps is -1"),
    "axis too large": (call(X, axis=2), ValueError, r"axis 2 is out of range.*\(3, 4\).*-2 to 1"),
    "axis twice": (call(X, axis=(1, -1)), ValueError, "names an axis twice"),
    "no axis": (call(X, axis=()), ValueError, "axis is empty"),
    "axis text": (call(X, axis="last"), TypeError, "axis is 'last'"),
    "axis a whole fraction": (call(X, axis=-1.0), TypeError, "axis is -1.0"),
    "axis a fraction": (call(X, axis=0.5), TypeError, "axis is 0.5"),
    "axis of a scalar": (call(np.float32(1), axis=1), ValueError, "axis 1 is out of range"),
    "normalized_shape": (call(X, normalized_shape=(3,)), ValueError, r"normalized_shape \(3,\).*\(3, 4\)"),
    "normalized_shape empty": (call(X, normalized_shape=()), ValueError, "normalized_shape is empty"),
    "normalized_shape longer": (call(X, normalized_shape=(1, 3, 4)), ValueError, r"\(1, 3, 4\)"),
    "both": (call(X, axis=0, normalized_shape=4), ValueError, "axis 0 and normalized_shape 4 are both given"),
    "out of another shape": (call(X, out=f32(4, 3)), ValueError, r"out has shape \(4, 3\); expected x's, \(3, 4\)"),
    "out of another type": (call(X, out=np.ones((3, 4))), TypeError, "float64"),
    "out of another kind": (call(X, out=[0.0] * 4), TypeError, "out is of type list"),
    "out read-only": (call(X, out=np.broadcast_to(np.float32(0), (3, 4))), ValueError, "out is read-only"),
    "threads none": (call(X, num_threads=0), ValueError, "num_threads is 0; expected 1 to 1024"),
    "threads negative": (call(X, num_threads=-1), ValueError, "num_threads is -1"),
    "threads many": (call(X, num_threads=10**9), ValueError, "num_threads is 1000000000"),
    "threads text": (call(X, num_threads="2"), TypeError, "num_threads is '2'"),
    "threads bool": (call(X, num_threads=True), TypeError, "num_threads is True"),
    "tensor gamma beside array": (call(X, torch.ones(4)), TypeError, "gamma is a PyTorch tensor but x is not"),
    "array gamma beside tensor": (call(T, f32(4)), TypeError, "gamma is of type ndarray but x is a PyTorch tensor"),
    "tensor out beside array": (call(X, out=torch.ones(3, 4)), TypeError, "out is a PyTorch tensor"),
    "array out beside tensor": (call(T, out=f32(3, 4)), TypeError, "out is of type ndarray"),
    "out with gradients": (
        call(T.clone().requires_grad_(), out=torch.ones(3, 4)),
        ValueError,
        "out cannot be given where gradients are needed",
    ),
    "tensor of integers": (call(torch.arange(4)), TypeError, "x has dtype int64"),
    "tensor gamma double": (call(T, torch.ones(4, dtype=torch.float64)), TypeError, "gamma is float64"),
    "tensor gamma short": (call(T, torch.ones(3)), ValueError, r"gamma has shape \(3,\)"),
    "tensor eps": (call(T, eps=-1), ValueError, "eps is -1"),
    "sparse tensor": (call(T.to_sparse()), TypeError, "x is a torch.sparse_coo tensor on cpu"),
    "functional, shape": (
        lambda: truenorm.torch.layer_norm(T, (3,)),
        ValueError,
        r"normalized_shape \(3,\) is not how the shape of input ends: \(3, 4\)",
    ),
    "functional, weight": (
        lambda: truenorm.torch.layer_norm(T, (4,), torch.ones(3)),
        ValueError,
        r"weight has shape \(3,\); expected normalized_shape, \(4,\)",
    ),
    "functional, no shape": (lambda: truenorm.torch.layer_norm(T, None), TypeError, "normalized_shape is None"),
    "functional, shape a fraction": (lambda: truenorm.torch.layer_norm(T, 4.0), TypeError, "normalized_shape is 4.0"),
    "functional, array": (lambda: truenorm.torch.layer_norm(X, 4), TypeError, "input is of type ndarray"),
    "functional, nothing": (lambda: truenorm.torch.layer_norm(None, 4), TypeError, "input is of type NoneType"),
    "functional, array weight": (lambda: truenorm.torch.layer_norm(T, 4, f32(4)), TypeError, "weight is of type ndarray"),
    "functional, number bias": (lambda: truenorm.torch.layer_norm(T, 4, None, 1.0), TypeError, "bias is of type float"),
    "functional, eps text": (lambda: truenorm.torch.layer_norm(T, 4, eps="1"), TypeError, "eps is '1'"),
    "functional, eps": (lambda: truenorm.torch.layer_norm(T, 4, eps=float("nan")), ValueError, "eps is nan"),
    "functional, integers": (
        lambda: truenorm.torch.layer_norm(torch.arange(4), 4), TypeError, "input has dtype int64"
    ),
    "dy of another shape": (
        lambda: truenorm.layer_norm_backward(f32(4, 3), truenorm.layer_norm_forward(X)[1]),
        ValueError,
        r"dy has shape \(4, 3\); expected x's, \(3, 4\)",
    ),
    "dy of another type": (
        lambda: truenorm.layer_norm_backward(np.ones((3, 4)), truenorm.layer_norm_forward(X)[1]),
        TypeError,
        "float64",
    ),
    "dy a tensor": (
        lambda: truenorm.layer_norm_backward(T, truenorm.layer_norm_forward(X)[1]), TypeError, "dy is a PyTorch tensor"
    ),
    "dy an array": (
        lambda: truenorm.layer_norm_backward(X, truenorm.layer_norm_forward(T)[1]), TypeError, "dy is of type ndarray"
    ),
    "no cache": (lambda: truenorm.layer_norm_backward(X, (X,)), TypeError, "cache is of type tuple"),
    "cache, out is x": (
        lambda: truenorm.layer_norm_forward(X.copy(), out=X) and truenorm.layer_norm_forward(X, out=X),
        ValueError,
        "out shares memory with x",
    ),
    "process threads": (lambda: truenorm.set_num_threads(0), ValueError, "num_threads is 0"),
    "thread wait": (lambda: truenorm.set_thread_wait(-1), ValueError, "microseconds is -1"),
    "thread wait, text": (lambda: truenorm.set_thread_wait("2"), TypeError, "microseconds is '2'"),
    "process threads, text": (lambda: truenorm.set_num_threads("2"), TypeError, "num_threads is '2'"),
}


@pytest.mark.parametrize("what", ERRORS)
def test_error(what):
    action, error, message = ERRORS[what]
    before = X.copy()
    with pytest.raises(error, match=message) as caught:
        action()
    assert type(caught.value) in (ValueError, TypeError)
    assert "cache" in what or np.array_equal(X, before)


def test_overlap_is_refused(rng):
    buffer = rng.standard_normal((8, 33)).astype(np.float32)
    before = buffer.copy()
    with pytest.raises(ValueError, match="overlap"):
        truenorm.layer_norm(buffer[:-1], out=buffer[1:])
    assert np.array_equal(buffer, before)


def test_no_memory():
    """A million billion rows that all lie in the same four bytes: what is missing is memory for the result."""
    x = np.lib.stride_tricks.as_strided(np.ones(1, np.float32), (10**15, 1), (0, 0))
    for function in (truenorm.layer_norm, truenorm.layer_norm_forward):
        for array in (x, torch.ones(1).expand(10**15, 1)):
            with pytest.raises(MemoryError):
                function(array)

"""Every wrong argument is a ValueError or TypeError that names what it was and what was expected."""

import numpy as np
import pytest
import torch

import truenorm
import truenorm.torch

X = np.arange(12, dtype=np.float32).reshape(3, 4)
T = torch.from_numpy(X)
LARGE = torch.ones(2000, 4, requires_grad=True)  # its statistics are kept for backward
MODEL = torch.nn.Sequential(torch.nn.LayerNorm(8))


def f32(*shape):
    return np.ones(shape, np.float32)


def call(*args, **kwargs):
    return lambda: truenorm.layer_norm(*args, **kwargs)


def under_autocast(*args):
    def call():
        with torch.autocast("cpu"):
            truenorm.torch.layer_norm(*args)

    return call


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
    "a type": (call(np.ndarray), TypeError, "x is of type type; expected"),
    "text": (call("abc"), TypeError, "x is of type str"),
    "nothing": (call(None), TypeError, "x is of type NoneType"),
    "gamma is text": (call(X, "abc"), TypeError, "gamma is 'abc'; expected an array, a number or None"),
    "gamma is text, in a list": (call(X, ["1"] * 4), TypeError, r"gamma is \['1', '1'"),
    "gamma is text, in an array": (call(X, np.array("abc")), TypeError, "gamma has dtype <U3"),
    "gamma is a truth": (call(X, True), TypeError, "gamma is True; expected an array, a number or None"),
    "beta is a truth, of NumPy": (call(X, None, np.bool_(True)), TypeError, "beta has dtype bool"),
    "beta is bytes": (call(X, None, b"1"), TypeError, "beta is b'1'"),
    "beta is complex": (call(X, None, 1j), TypeError, "beta is 1j"),
    "beta of different lengths": (call(X, None, [[1], [1, 2]]), TypeError, r"beta is \[\[1\], \[1, 2\]\]; expected an array"),
    "beta is an object": (call(X, None, object()), TypeError, "beta is <object object"),
    "gamma of too many digits": (call(X, 10**5000), TypeError, "gamma is of type int; expected|gamma is 1000"),
    "tensor gamma is text": (call(T, "abc"), TypeError, "gamma is 'abc'; expected a PyTorch tensor, a number or None"),
    "tensor gamma is bytes": (call(T, b"1"), TypeError, "gamma is b'1'"),
    "tensor beta is a truth": (call(T, None, True), TypeError, "beta is True"),
    "tensor beta is a truth, tensor": (call(T, None, torch.tensor(True)), TypeError, "beta has dtype bool"),
    "big-endian": (call(X.astype(">f4")), TypeError, "x has dtype >f4.*native"),
    "masked": (call(np.ma.masked_invalid(X)), TypeError, "x is a masked array"),
    "eps negative": (call(X, eps=-1.0), ValueError, "eps is -1"),
    "eps NaN": (call(X, eps=float("nan")), ValueError, "eps is nan"),
    "eps infinite": (call(X, eps=float("inf")), ValueError, "eps is inf"),
    "eps true": (call(X, eps=True), TypeError, "eps is True; expected a number"),
    "eps nothing": (call(X, eps=None), TypeError, "eps is None; expected a number"),
    "eps text": (call(X, eps="small"), TypeError, "eps is 'small'; expected a number"),
    "eps text of a number": (call(X, eps="1e-5"), TypeError, "eps is '1e-5'; expected a number"),
    "eps bytes": (call(X[:, ::2], eps=b"1"), TypeError, "eps is b'1'"),
    "eps beyond float64": (call(X, eps=10**400), ValueError, "eps is inf; expected a finite number"),
    "eps true, of NumPy": (call(X, eps=np.bool_(True)), TypeError, "eps is np.True_"),
    "gamma beyond float32": (call(X, 1e300), ValueError, r"gamma is 1e\+300; expected at most 3.4028235e\+38, the largest float32"),
    "beta beyond float32, in a list": (call(X, None, [0, 0, -1e39, 0]), ValueError, r"beta is 1e\+39; expected at most"),
    "beta beyond float16": (call(X.astype(np.float16), np.ones(4, np.float16), 7e4), ValueError, "beta is 70000.0.*float16"),
    "tensor gamma beyond float32": (call(T, 1e300), ValueError, r"gamma is 1e\+300; expected at most 3.4028235e\+38"),
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
    "axis true": (call(X, axis=True), TypeError, "axis is True; expected an int or a sequence of ints"),
    "axis true, in a tuple": (call(X, axis=(0, True)), TypeError, r"axis is \(0, True\)"),
    "axis empty text": (call(X, axis=""), TypeError, "axis is ''; expected an int or a sequence of ints"),
    "axis bytes": (call(X, axis=b"\0"), TypeError, r"axis is b'\\x00'"),
    "axis a set": (call(X, axis={0, 1}), TypeError, r"axis is \{0, 1\}"),
    "axis a dict": (call(X, axis={0: 1}), TypeError, r"axis is \{0: 1\}"),
    "axis of two dimensions": (call(X, axis=np.array([[0, 1]])), TypeError, r"axis is of type ndarray and shape \(1, 2\)"),
    "tensor axis true": (call(T, axis=True), TypeError, "axis is True"),
    "axis of a scalar": (call(np.float32(1), axis=1), ValueError, "axis 1 is out of range"),
    "normalized_shape": (call(X, normalized_shape=(3,)), ValueError, r"normalized_shape \(3,\).*\(3, 4\)"),
    "normalized_shape empty": (call(X, normalized_shape=()), ValueError, "normalized_shape is empty"),
    "normalized_shape longer": (call(X, normalized_shape=(1, 3, 4)), ValueError, r"\(1, 3, 4\)"),
    "normalized_shape true": (call(f32(3, 1), normalized_shape=True), TypeError, "normalized_shape is True"),
    "normalized_shape fractions": (call(X, normalized_shape=(4.0,)), TypeError, r"normalized_shape is \(4.0,\)"),
    "normalized_shape a set": (call(X, normalized_shape={4}), TypeError, r"normalized_shape is \{4\}"),
    "both, by the default": (
        call(X, axis=-1, normalized_shape=4),
        ValueError,
        "axis -1 and normalized_shape 4 are both given; give one",
    ),
    "both, tensor": (call(T, axis=-1, normalized_shape=(4,)), ValueError, r"axis -1 and normalized_shape \(4,\)"),
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
    "functional, shape of fractions": (
        lambda: truenorm.torch.layer_norm(T, (4.0,)), TypeError, r"normalized_shape is \(4.0,\); expected an int"
    ),
    "functional, shape true": (
        lambda: truenorm.torch.layer_norm(torch.ones(3, 1), True), TypeError, "normalized_shape is True"
    ),
    "functional, large, no shape": (lambda: truenorm.torch.layer_norm(LARGE, None), TypeError, "normalized_shape is None"),
    "functional, large, shape a fraction": (lambda: truenorm.torch.layer_norm(LARGE, 4.0), TypeError, "normalized_shape is 4.0"),
    "functional, shape text": (lambda: truenorm.torch.layer_norm(T, "4"), TypeError, "normalized_shape is '4'"),
    "functional, weight double": (
        lambda: truenorm.torch.layer_norm(T, 4, torch.ones(4, dtype=torch.float64)),
        TypeError,
        "weight is float64 and input is float32; expected weight to be float32",
    ),
    "functional, bias double, strided": (
        lambda: truenorm.torch.layer_norm(T[:, ::2], 2, None, torch.ones(2, dtype=torch.float64)),
        TypeError,
        "bias is float64 and input is float32",
    ),
    "functional, bias double, gradients": (
        lambda: truenorm.torch.layer_norm(T, 4, None, torch.ones(4, dtype=torch.float64, requires_grad=True)),
        TypeError,
        "bias is float64 and input is float32",
    ),
    "functional, two types": (
        lambda: truenorm.torch.layer_norm(T.half(), 4, torch.ones(4), torch.ones(4).half()),
        TypeError,
        "weight is float32 and bias is float16; expected both to be of one type",
    ),
    "functional, weight of integers": (
        lambda: truenorm.torch.layer_norm(T, 4, torch.ones(4, dtype=torch.int32)), TypeError, "weight has dtype int32"
    ),
    "functional, sparse bias": (
        lambda: truenorm.torch.layer_norm(T, 4, None, torch.ones(4).to_sparse()), TypeError, "bias is a torch.sparse_coo"
    ),
    "functional, eps negative": (lambda: truenorm.torch.layer_norm(T, 4, eps=-1.0), ValueError, "eps is -1"),
    "functional, array": (lambda: truenorm.torch.layer_norm(X, 4), TypeError, "input is of type ndarray"),
    "functional, nothing": (lambda: truenorm.torch.layer_norm(None, 4), TypeError, "input is of type NoneType"),
    "functional, array weight": (lambda: truenorm.torch.layer_norm(T, 4, f32(4)), TypeError, "weight is of type ndarray"),
    "functional, array under autocast": (under_autocast(X, 4), TypeError, "input is of type ndarray; expected a PyTorch"),
    "functional, list weight": (lambda: truenorm.torch.layer_norm(T, 4, [1.0] * 4), TypeError, "weight is of type list"),
    "complex tensor beside a number": (call(T.to(torch.complex64), 1.0), TypeError, "x has dtype complex64; expected float64"),
    "functional, number bias": (lambda: truenorm.torch.layer_norm(T, 4, None, 1.0), TypeError, "bias is of type float"),
    "functional, eps text": (lambda: truenorm.torch.layer_norm(T, 4, eps="1"), TypeError, "eps is '1'"),
    "functional, eps": (lambda: truenorm.torch.layer_norm(T, 4, eps=float("nan")), ValueError, "eps is nan"),
    "functional, integers": (
        lambda: truenorm.torch.layer_norm(torch.arange(4), 4), TypeError, "input has dtype int64"
    ),
    "operator, axis": (
        lambda: torch.ops.truenorm.layer_norm(T, None, None, [5], 1e-5), ValueError, "axis 5 is out of range"
    ),
    "operator, axis twice": (
        lambda: torch.ops.truenorm.layer_norm(T, None, None, [1, -1], 1e-5), ValueError, "names an axis twice"
    ),
    "operator, no axis": (lambda: torch.ops.truenorm.layer_norm(T, None, None, [], 1e-5), ValueError, "axis is empty"),
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
    "dy nothing": (
        lambda: truenorm.layer_norm_backward(None, truenorm.layer_norm_forward(X)[1]),
        TypeError,
        "dy is None; expected a NumPy array",
    ),
    "dy text": (
        lambda: truenorm.layer_norm_backward("a", truenorm.layer_norm_forward(X)[1]), TypeError, "dy is 'a'; expected"
    ),
    "dy nothing, tensor": (
        lambda: truenorm.layer_norm_backward(None, truenorm.layer_norm_forward(T)[1]),
        TypeError,
        "dy is None; expected a PyTorch tensor, as x is",
    ),
    "dy a tensor": (
        lambda: truenorm.layer_norm_backward(T, truenorm.layer_norm_forward(X)[1]), TypeError, "dy is a PyTorch tensor"
    ),
    "dy an array": (
        lambda: truenorm.layer_norm_backward(X, truenorm.layer_norm_forward(T)[1]), TypeError, r"dy is of type ndarray and shape \(3, 4\); expected a PyTorch"
    ),
    "no cache": (lambda: truenorm.layer_norm_backward(X, (X,)), TypeError, "cache is of type tuple"),
    "cache, out is x": (
        lambda: truenorm.layer_norm_forward(X.copy(), out=X) and truenorm.layer_norm_forward(X, out=X),
        ValueError,
        "out shares memory with x",
    ),
    "replace, no model": (
        lambda: truenorm.torch.replace_layer_norms(None), TypeError, "model is None; expected a torch.nn.Module"
    ),
    "restore, no model": (
        lambda: truenorm.torch.restore_layer_norms(3), TypeError, "model is 3; expected a torch.nn.Module"
    ),
    "exclude a number": (lambda: truenorm.torch.replace_layer_norms(MODEL, exclude=3), TypeError, "exclude is 3; expected"),
    "exclude numbers": (
        lambda: truenorm.torch.replace_layer_norms(MODEL, exclude=[0]), TypeError, "exclude holds 0; expected names"
    ),
    "exclude a module": (
        lambda: truenorm.torch.replace_layer_norms(MODEL, exclude=MODEL[0]), TypeError, "exclude is LayerNorm.*; expected"
    ),
    "exclude bytes": (lambda: truenorm.torch.replace_layer_norms(MODEL, exclude=b"0"), TypeError, "exclude is b'0'"),
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


@pytest.mark.parametrize("shape", [(10**15, 1), (4, 2**59 - 1), (2**61 - 1, 1)], ids=str)
def test_no_memory(shape):
    """Rows that all lie in the same four bytes: what is missing is memory for the result, or for what backward needs, of
    which NumPy itself says no more than "array is too big"."""
    x = np.broadcast_to(np.float32(1), shape)
    for function in (truenorm.layer_norm, truenorm.layer_norm_forward):
        for axis in (-1, 0, None):
            with pytest.raises(MemoryError, match=r"shape \("):
                function(x, axis=axis)


@pytest.mark.parametrize("function", [truenorm.layer_norm, truenorm.layer_norm_forward])
@pytest.mark.parametrize("shape", [(10**15, 1), (2**31, 2**30), (4, 2**61 - 1)], ids=str)
def test_no_memory_for_tensors(shape, function):
    with pytest.raises(MemoryError, match=r"shape \(" + ", ".join(map(str, shape))):
        function(torch.ones(1).expand(shape))

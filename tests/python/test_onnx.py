"""ONNX's own tests of LayerNormalization, and what its users reported."""

import ml_dtypes
import numpy as np
import pytest
import torch
from truth import Truth

import truenorm
from truenorm.onnx import layer_normalization

onnx = pytest.importorskip("onnx")


@pytest.fixture(scope="module")
def node_cases():
    """The cases are functions in the package; collecting them runs those of other operators too."""
    import warnings

    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = collect_testcases("LayerNormalization")
    return [c for c in found if c.name.startswith("test_layer_normalization") and "expanded" not in c.name]


def test_node_cases(node_cases):
    assert len(node_cases) >= 19
    for case in node_cases:
        (node,) = case.model.graph.node
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        for inputs, outputs in case.data_sets:
            for found, expected in zip(layer_normalization(*inputs, **attributes), outputs, strict=True):
                assert found.shape == expected.shape and found.dtype == expected.dtype, case.name
                # The expected values are float32 sums; case.rtol (1e-3) would let much more pass.
                np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-6, err_msg=case.name)


def test_axis_is_the_first_of_the_normalized_axes(rng):
    x = rng.standard_normal((2, 3, 4)).astype(np.float32)
    scale = rng.standard_normal((3, 4)).astype(np.float32)
    y, mean, inverse = layer_normalization(x, scale, axis=1)
    assert mean.shape == inverse.shape == (2, 1, 1)
    assert np.array_equal(y, truenorm.layer_norm(x, scale, normalized_shape=(3, 4)))
    for a, b in zip(layer_normalization(x, scale, axis=-2), (y, mean, inverse)):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("shape", [(), (1,), (16,), (1, 16), (4, 1, 16), (1, 3, 1), (4, 3, 16)], ids=str)
def test_scale_broadcasts_to_x(shape, rng):
    """onnxruntime 18184, 26432: AdaLN scales, scalars, leading ones."""
    x = rng.standard_normal((4, 3, 16))
    scale, bias = rng.standard_normal(shape), rng.standard_normal(shape)
    y, _, _ = layer_normalization(x, scale, bias)
    full = (1,) * (3 - len(shape)) + shape
    Truth(x, scale.reshape(full), bias.reshape(full)).check(y)


def test_channel_scale():
    x = np.random.default_rng(0).standard_normal((1, 16, 8, 8))
    scale = np.random.default_rng(1).standard_normal((1, 16, 1, 1))
    Truth(x, scale, axis=(1, 2, 3)).check(layer_normalization(x, scale, axis=1)[0])


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("stash_type,name", [(1, "float32"), (16, "bfloat16"), (11, "float64")])
def test_stash_type_is_the_type_of_the_statistics(kind, stash_type, name, rng):
    """openvino 22787, onnxruntime PR 31974: outputs missing or of the wrong type."""
    x, scale = rng.standard_normal((2, 3)), np.ones(3)
    if kind == "torch":
        x, scale = torch.from_numpy(x), torch.from_numpy(scale)
    y, mean, inverse = layer_normalization(x, scale, stash_type=stash_type)
    assert str(mean.dtype).endswith(name) and str(inverse.dtype).endswith(name) and y.dtype == x.dtype
    truth = Truth(x)
    for found, true in ((mean, truth.mean), (inverse, truth.rstd)):
        values = found.double().numpy() if kind == "torch" else found.astype(np.float64)
        np.testing.assert_allclose(values, true.astype(np.float64), rtol=2.0 ** -{1: 23, 16: 7, 11: 36}[stash_type])


@pytest.mark.parametrize("stash_type", [1, 11, 16])
def test_arrays_known_by_dlpack_alone(stash_type, rng):
    """Neither reshape nor arithmetic is theirs."""

    class Bare:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **how):
            return self.array.__dlpack__(**how)

        def __dlpack_device__(self):
            return (1, 0)

    x, scale = rng.standard_normal((2, 3, 4)).astype(np.float32), rng.standard_normal((3, 4)).astype(np.float32)
    found = layer_normalization(Bare(x), Bare(scale), stash_type=stash_type)
    for a, b in zip(found, layer_normalization(x, scale, stash_type=stash_type)):
        assert a.dtype == b.dtype and np.array_equal(a, b)


def test_a_number_as_scale(rng):
    x = rng.standard_normal((2, 4)).astype(np.float32)
    for scale in (2, np.float64(2), np.array(2)):
        assert np.array_equal(layer_normalization(x, scale)[0], truenorm.layer_norm(x, 2))


def test_half_with_float32_scale(rng):
    """onnxscript 2099: the result stays half."""
    for dtype in (np.float16, ml_dtypes.bfloat16):
        x, scale = rng.standard_normal((2, 8)).astype(dtype), rng.standard_normal(8).astype(np.float32)
        y, mean, _ = layer_normalization(x, scale)
        assert y.dtype == dtype and mean.dtype == np.float32
        Truth(x, scale).check(y)


@pytest.mark.parametrize("wrong", [
    (dict(axis=3), "axis 3 is out of range"),  # onnx PR 5351: the text of the specification once allowed it
    (dict(axis=-4), "axis -4 is out of range"),
    (dict(stash_type=7), "stash_type is 7"),
    (dict(Scale=np.ones(5)), r"Scale has shape \(5,\), which does not broadcast to X's, \(2, 3, 4\)"),
    (dict(Scale=np.ones((1, 2, 3, 4))), "does not broadcast"),
    (dict(B=np.ones((2, 2, 4))), "B has shape"),
    (dict(axis=True), "axis is True; expected an int"),
    (dict(epsilon=-1.0), "epsilon is -1"),
    (dict(epsilon="1"), "epsilon is '1'; expected a number"),
    (dict(Scale=None), "Scale is None; expected an array or a number, since ONNX's LayerNormalization requires it"),
    (dict(Scale=True), "Scale is of type bool"),
    (dict(Scale=np.ones(4, np.float32)), "Scale is float32 and X is float64; expected Scale to be float64"),
    (dict(B=np.ones(4, np.float32)), "B is float32 and X is float64"),
    (dict(B=np.ones(4, int)), "B has dtype int64"),
    (dict(B=torch.ones(4)), "B is a PyTorch tensor but X is not"),
    (dict(X=np.ones((2, 4), int)), "X has dtype int64"),
    (dict(X=np.float32(1)), r"X has shape \(\)"),
    (dict(X=torch.ones(2, 3, 4), Scale=torch.ones(4).double()), "Scale is float64 and X is float32"),
    (dict(X=torch.ones(2, 3, 4), Scale=np.ones(4, np.float32)), "Scale is of type ndarray but X is a PyTorch tensor"),
    (dict(X=torch.ones(2, 3, 4), Scale=torch.ones(4), epsilon=-1.0), "epsilon is -1"),
    (dict(X=torch.ones(2, 3, 4).half(), Scale=torch.ones(4), B=torch.ones(4).half()), "Scale is float32 and B is float16"),
    (dict(stash_type=True), "stash_type is True"),
    (dict(stash_type="FLOAT"), "stash_type is 'FLOAT'"),
    (dict(stash_type=[1]), r"stash_type is \[1\]"),
    (dict(axis=0.5), "axis is 0.5; expected an int"),
    (dict(Scale=[1.0] * 4), "Scale is of type list"),
    (dict(B=[1.0] * 4), "B is of type list"),
    (dict(X=[1.0] * 4), "X is of type list"),
], ids=str)
def test_errors(wrong):
    arguments, message = wrong
    with pytest.raises((ValueError, TypeError), match=message):
        layer_normalization(**{"X": np.ones((2, 3, 4)), "Scale": np.ones(4), **arguments})

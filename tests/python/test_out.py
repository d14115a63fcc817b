"""The memory of out: what may be written to, and what shares it."""

import numpy as np
import pytest
import torch

import truenorm

WIDE = {"dense": slice(None), "strided": slice(None, None, 2)}


def buffer_and_views(rng, x_step, out_step, offset):
    """x and out in one buffer, out `offset` elements behind x, each with features dense or every other element."""
    buffer = rng.standard_normal(200).astype(np.float32)
    x = buffer[: 12 * x_step].reshape(3, -1)[:, ::x_step]
    out = buffer[offset : offset + 12 * out_step].reshape(3, -1)[:, ::out_step]
    return buffer, x, out


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("x_step,out_step", [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_partial_overlap_with_x_is_refused_in_any_layout(x_step, out_step, kind, rng):
    """Also where the library itself would see only a copy of x or of out."""
    buffer, x, out = buffer_and_views(rng, x_step, out_step, 4)
    before = buffer.copy()
    if kind == "torch":
        x, out = torch.from_numpy(x), torch.from_numpy(out)
    with pytest.raises(ValueError, match="out overlaps x; expected x itself"):
        truenorm.layer_norm(x, out=out)
    assert np.array_equal(buffer, before)


def test_interlocked_views_do_not_overlap(rng):
    """Every other element each: nothing is shared."""
    buffer, x, out = buffer_and_views(rng, 2, 2, 1)
    y = truenorm.layer_norm(x.copy())
    assert np.array_equal(truenorm.layer_norm(x, out=out), y)


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("which", ["gamma", "beta"])
@pytest.mark.parametrize("function", [truenorm.layer_norm, truenorm.layer_norm_forward])
def test_overlap_with_parameters_is_refused(function, which, step, rng):
    buffer = rng.standard_normal(48).astype(np.float32)
    before, x = buffer.copy(), rng.standard_normal((3, 4)).astype(np.float32)
    out = buffer[: 12 * step].reshape(3, -1)[:, ::step]
    with pytest.raises(ValueError, match=f"out overlaps {which}"):
        function(x, **{which: buffer[8:16:2]}, out=out)
    assert np.array_equal(buffer, before)


@pytest.mark.parametrize("strides", [(0, 4), (4, 0), (4, 4), (0, 0)], ids=str)
def test_out_that_overlaps_itself_is_refused(strides):
    out = np.lib.stride_tricks.as_strided(np.zeros(12, np.float32), (3, 4), strides)
    with pytest.raises(ValueError, match="its elements overlap"):
        truenorm.layer_norm(np.ones((3, 4), np.float32), out=out)


@pytest.mark.parametrize("out", [np.float64, np.float16], ids=lambda t: t.__name__)
def test_types_of_out_are_named(out):
    with pytest.raises(TypeError, match=f"out is {out.__name__} and x is float32; expected out to be float32"):
        truenorm.layer_norm(np.ones((3, 4), np.float32), out=np.ones((3, 4), out))


@pytest.mark.parametrize("function", [truenorm.layer_norm, truenorm.layer_norm_forward])
def test_a_graph_notices_that_out_was_written(function):
    """exp keeps its result for backward; written over, the gradient would be wrong without a word."""
    w = torch.ones(3, 4, requires_grad=True)
    y = w.exp()
    with torch.no_grad():
        function(torch.randn(3, 4), out=y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_out_in_inference_mode():
    with torch.inference_mode():
        x, out = torch.randn(3, 4), torch.zeros(3, 4)
        assert truenorm.layer_norm(x, out=out) is out and torch.equal(out, truenorm.layer_norm(x))


def test_out_that_cannot_be_written_to_as_it_is():
    with pytest.raises(ValueError, match="out is a negated view"):
        truenorm.layer_norm(torch.ones(3, 4), out=torch._neg_view(torch.zeros(3, 4)))
    with pytest.raises(ValueError, match="out cannot be given under torch.func's transforms"):
        torch.func.vmap(lambda x: truenorm.layer_norm(x, out=torch.zeros(4)))(torch.ones(3, 4))

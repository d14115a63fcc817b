"""Tensors that are not simply memory, and what surrounds a model: hooks, modes, subclasses, nested tensors."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import truenorm
from truenorm.torch import LayerNorm, layer_norm, replace_layer_norms, restore_layer_norms


def randn(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def askew(values):
    """The same numbers at an address that is no multiple of their size."""
    raw = bytearray(1) + bytearray(values.numpy().tobytes())
    return torch.frombuffer(raw, dtype=torch.uint8)[1:].numpy().view(np.float32).reshape(values.shape)


def test_memory_that_lies_askew():
    x, weight = randn(3, 8), randn(8, seed=1)
    a, w = (torch.from_numpy(askew(t)) for t in (x, weight))
    assert a.data_ptr() % 4 != 0
    assert torch.equal(layer_norm(a, (8,), w), layer_norm(x, (8,), weight))


@pytest.mark.parametrize("d", [8, 5000])
def test_zeros_that_have_no_memory(d):
    """PyTorch passes such tensors as gradients that are known to be zero."""
    zeros = torch._efficientzerotensor((3, d))
    assert not layer_norm(zeros, (d,)).any()
    x = randn(3, d).requires_grad_()
    (dx,) = torch.autograd.grad(layer_norm(x, (d,)), x, zeros)
    assert dx.shape == x.shape and not dx.any()


def test_storage_that_was_freed():
    x = randn(3, 8)
    x.untyped_storage().resize_(0)
    with pytest.raises(ValueError, match=r"input of shape \(3, 8\) has no memory"):
        layer_norm(x, (8,))
    with pytest.raises(ValueError, match=r"x of shape \(3, 8\) has no memory"):
        truenorm.layer_norm(x)
    weight = torch.ones(8, requires_grad=True)
    weight.untyped_storage().resize_(0)
    with pytest.raises(ValueError, match=r"weight of shape \(8,\) has no memory"):
        layer_norm(randn(3, 8), (8,), weight)


@pytest.mark.parametrize("which", ["input", "weight", "bias"])
def test_a_meta_tensor_among_others_is_refused(which):
    """PyTorch's dispatcher would take the fake implementation and return memory that nobody wrote."""
    tensors = {"input": randn(3, 8), "weight": randn(8), "bias": randn(8)}
    tensors[which] = tensors[which].to("meta")
    with pytest.raises(TypeError, match="(weight|bias) is on (cpu|meta) and input on (cpu|meta); expected both"):
        layer_norm(normalized_shape=(8,), **tensors)


@pytest.mark.parametrize("make", [torch.Tensor.to_mkldnn, torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr])
def test_other_layouts_are_refused(make):
    with pytest.raises(TypeError, match="input is a .* tensor on cpu; expected a strided one on the CPU"):
        layer_norm(make(randn(3, 8)), (8,))


def test_nested_tensors_are_left_to_pytorch(monkeypatch):
    monkeypatch.setattr(truenorm.torch, "_warned", False)
    weight, bias = torch.ones(8), torch.zeros(8)
    nested = torch.nested.nested_tensor([randn(2, 8), randn(3, 8)])
    with pytest.warns(UserWarning, match="layer norms of nested tensors are left to PyTorch"):
        y = layer_norm(nested, (8,), weight, bias)
    assert torch.equal(y[1], F.layer_norm(nested[1], (8,), weight, bias))
    with pytest.raises(TypeError, match="is a nested tensor"):
        truenorm.layer_norm_forward(torch.nested.nested_tensor([randn(2, 8)], layout=torch.jagged), axis=-1)


class Pair(torch.Tensor):
    """A tensor that stands for two others and has no memory of its own."""

    @staticmethod
    def __new__(cls, a, b):
        return torch.Tensor._make_wrapper_subclass(cls, a.shape, dtype=a.dtype, requires_grad=a.requires_grad)

    def __init__(self, a, b):
        self.a, self.b = a, b

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        def half(which):
            return function(*(getattr(t, which) if isinstance(t, Pair) else t for t in args), **(kwargs or {}))

        a, b = half("a"), half("b")
        return tuple(map(cls, a, b)) if isinstance(a, tuple) else cls(a, b)


@pytest.mark.parametrize("axis", [-1, 0])
def test_subclasses_without_memory(axis):
    """The operator reaches them, not the kernels."""
    x = Pair(randn(3, 8), randn(3, 8, seed=1))
    y = truenorm.layer_norm(x, axis=axis)
    assert torch.equal(y.a, truenorm.layer_norm(x.a, axis=axis)) and torch.equal(y.b, truenorm.layer_norm(x.b, axis=axis))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_hooks_that_change_what_is_kept(dtype):
    """What backward needs of each row, made smaller on the way: of no use, and never read as what it was."""
    x, weight = randn(60, 200), torch.ones(200, requires_grad=True)
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: t.to(dtype) if t.dtype == torch.float64 else t, lambda t: t)
    with hooks:
        y = layer_norm(x, (200,), weight)
    y.backward(x)
    (plain,) = torch.autograd.grad(layer_norm(x, (200,), weight), weight, x)
    assert torch.equal(weight.grad, plain)


def test_statistics_under_vmap_and_in_fake_mode():
    from torch._subclasses.fake_tensor import FakeTensorMode

    x = randn(3, 5, 8, dtype=torch.float64)
    for name in ("mu", "var"):
        found = torch.func.vmap(lambda x: getattr(truenorm.layer_norm_forward(x)[1], name))(x)
        torch.testing.assert_close(found, getattr(truenorm.layer_norm_forward(x)[1], name), rtol=1e-14, atol=1e-15)
    with FakeTensorMode():
        assert truenorm.layer_norm_forward(torch.empty(3, 8))[1].mu.shape == (3, 1)


def test_inference_mode_takes_the_short_way():
    """No operator of Python between a model in inference and the library."""
    from truenorm import _torch_autograd

    for context in (torch.no_grad(), torch.inference_mode()):
        with context:
            assert _torch_autograd._is_idle()


def test_encoder_with_a_padding_mask():
    """In inference nn.TransformerEncoder would make nested tensors for a fused path that has PyTorch's norm built in."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).eval()
    x, mask = randn(2, 5, 16), torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    with torch.inference_mode():
        before = model(x, src_key_padding_mask=mask)
        assert len(replace_layer_norms(model)) == 4
        seen = []
        model.layers[1].norm2.register_forward_hook(lambda _, __, y: seen.append(y.is_nested))
        after = model(x, src_key_padding_mask=mask)
        assert seen == [False]
        torch.testing.assert_close(after[~mask], before[~mask], rtol=1e-5, atol=1e-5)
        model.layers[1].norm2._forward_hooks.clear()
        restore_layer_norms(model)
        assert model.use_nested_tensor and torch.equal(model(x, src_key_padding_mask=mask), before)


class Square(nn.Module):
    def forward(self, w):
        return w * w


def test_parametrized_norms():
    """Their class holds the parametrization: they are left as they are, by replace and by restore."""
    model, x = nn.Sequential(nn.LayerNorm(8), nn.LayerNorm(8)), randn(3, 8)
    nn.utils.parametrize.register_parametrization(model[0], "weight", Square())
    assert replace_layer_norms(model, subclasses=True) == ["1"]
    nn.utils.parametrize.register_parametrization(model[1], "weight", Square())
    y = model(x)
    assert isinstance(model[1], LayerNorm) and restore_layer_norms(model) == []
    assert torch.equal(model(x), y)

"""LayerNorm and replace_layer_norms."""

import copy
import inspect
import io
import pickle

import pytest
import torch
from torch import nn

from truenorm.torch import LayerNorm, replace_layer_norms, restore_layer_norms

ARGUMENTS = [
    dict(normalized_shape=8),
    dict(normalized_shape=(3, 8), eps=1e-3),
    dict(normalized_shape=[8], bias=False),
    dict(normalized_shape=8, elementwise_affine=False),
    dict(normalized_shape=8, dtype=torch.float64),
    dict(normalized_shape=8, device="meta"),
]


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=str)
def test_as_the_original(arguments):
    mine, theirs = LayerNorm(**arguments), nn.LayerNorm(**arguments)
    assert inspect.signature(LayerNorm) == inspect.signature(nn.LayerNorm)
    assert repr(mine) == repr(theirs) and isinstance(mine, nn.LayerNorm)
    assert list(mine.state_dict()) == list(theirs.state_dict())
    for a, b in zip(mine.parameters(), theirs.parameters()):
        assert (a.shape, a.dtype, a.device) == (b.shape, b.dtype, b.device)
        assert a.is_meta or torch.equal(a, b)
    if "device" in arguments:
        return
    with torch.no_grad():
        for i, p in enumerate(theirs.parameters()):
            p.copy_(torch.randn(p.shape, generator=torch.Generator().manual_seed(i)))
    mine.load_state_dict(theirs.state_dict())
    x = torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(9)).to(arguments.get("dtype", torch.float32))
    torch.testing.assert_close(mine(x), theirs(x), rtol=1e-5, atol=1e-5)
    theirs.load_state_dict(mine.state_dict())


def test_copies():
    module = LayerNorm(8, eps=1e-3)
    with torch.no_grad():
        module.weight.copy_(torch.arange(8.0))
    x = torch.randn(3, 8, generator=torch.Generator().manual_seed(0))
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module)), torch.load(file, weights_only=False)):
        assert type(other) is LayerNorm and other.eps == 1e-3 and torch.equal(other(x), module(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.LayerNorm(8)
        self.inner = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8, eps=1e-3, bias=False))
        self.shared = self.first
        self.special = Scaled(8)

    def forward(self, x):
        return self.special(self.inner(self.first(x)) + self.shared(x))


class Scaled(nn.LayerNorm):
    def forward(self, input):
        return 2 * super().forward(input)


def names_of(model, kind):
    return [name for name, module in model.named_modules() if type(module) is kind]


def test_replace_and_restore():
    model = Block()
    calls = []
    model.first.register_forward_hook(lambda *_: calls.append("first"))
    parameters = [id(p) for p in model.parameters()]
    x = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))
    before, state = model(x), copy.deepcopy(model.state_dict())
    assert replace_layer_norms(model) == ["first", "inner.1"]
    assert names_of(model, LayerNorm) == ["first", "inner.1"] and type(model.special) is Scaled
    assert model.shared is model.first and [id(p) for p in model.parameters()] == parameters
    calls.clear()
    torch.testing.assert_close(model(x), before, rtol=1e-5, atol=1e-5)
    assert calls == ["first", "first"]
    model.load_state_dict(state)
    assert replace_layer_norms(model) == []
    copied = copy.deepcopy(model)
    assert restore_layer_norms(model) == ["first", "inner.1"]
    assert names_of(model, nn.LayerNorm) == ["first", "inner.1"] and torch.equal(model(x), before)
    assert restore_layer_norms(model) == [] and restore_layer_norms(copied) == ["first", "inner.1"]


def test_exclude_and_subclasses():
    assert replace_layer_norms(Block(), exclude="first") == ["inner.1"]
    assert replace_layer_norms(Block(), exclude=["inner.*"]) == ["first"]
    assert replace_layer_norms(Block(), exclude=lambda name, module: module.eps == 1e-3 if "1" in name else False) == [
        "first"
    ]
    for nothing in (None, (), [], set()):
        assert replace_layer_norms(Block(), exclude=nothing) == ["first", "inner.1"]
    with pytest.raises(ValueError, match="exclude names 'secnd'"):
        replace_layer_norms(Block(), exclude=["secnd"])
    model = Block()
    assert replace_layer_norms(model, subclasses=True) == ["first", "inner.1", "special"]
    assert restore_layer_norms(model) == ["first", "inner.1", "special"] and type(model.special) is Scaled


def test_a_model_that_is_a_norm():
    model = nn.LayerNorm(8)
    assert replace_layer_norms(model) == [""] and type(model) is LayerNorm


def test_own_modules_are_not_restored():
    model = nn.Sequential(LayerNorm(8), nn.LayerNorm(8))
    assert replace_layer_norms(model) == ["1"] and restore_layer_norms(model) == ["1"]
    assert type(model[0]) is LayerNorm


def test_optimizer_goes_on():
    model = Block()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    replace_layer_norms(model)
    x = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))
    before = model.first.weight.detach().clone()
    model(x).pow(2).sum().backward()
    optimizer.step()
    assert not torch.equal(model.first.weight, before)


def test_fused_inference_of_the_encoder_layer_does_not_go_around_the_norms():
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    with torch.no_grad():
        # Rows of mean 1e4: PyTorch's float32 mean leaves an error that is easy to see.
        layer.norm1.weight.fill_(1e3)
    x = torch.randn(2, 3, 16, generator=torch.Generator().manual_seed(0))
    seen = []
    replace_layer_norms(layer)
    layer.norm1.register_forward_hook(lambda *_: seen.append(1))
    handle = layer.norm1._forward_hooks
    with torch.inference_mode():
        layer(x)
        assert seen
        handle.clear()
        found = layer(x)
        assert torch.equal(found, layer.norm2(_encoder(layer, x)))
    assert restore_layer_norms(layer) == ["norm1", "norm2"] and not layer._forward_pre_hooks


def _encoder(layer, x):
    """All of nn.TransformerEncoderLayer but its last norm, from its parts."""
    h = layer.norm1(x + layer.self_attn(x, x, x, need_weights=False)[0])
    return h + layer.linear2(layer.activation(layer.linear1(h)))

"""truenorm.torch.layer_norm against torch.nn.functional.layer_norm."""

import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from truth import Truth, ulp, wide

import truenorm
from truenorm.torch import layer_norm

SHAPES = [((7,), 1), ((3, 5), 1), ((2, 3, 64), 1), ((2, 3, 4, 5), 2), ((4, 6), 2), ((33, 768), 1), ((1, 1), 1), ((5, 1), 1)]
AFFINE = ["none", "weight", "bias", "both"]


def arguments(shape, k, affine, dtype, rng):
    x = torch.from_numpy(3 * rng.standard_normal(shape) + 2).to(dtype)
    weight, bias = (torch.from_numpy(rng.standard_normal(shape[-k:])).to(dtype) for _ in range(2))
    return x, shape[-k:], weight if affine in ("weight", "both") else None, bias if affine in ("bias", "both") else None


@pytest.mark.parametrize("eps", [1e-5, 1e-12, 0.1])
@pytest.mark.parametrize("affine", AFFINE)
@pytest.mark.parametrize("shape,k", SHAPES, ids=str)
def test_float64_against_pytorch(shape, k, affine, eps, rng):
    x, normalized, weight, bias = arguments(shape, k, affine, torch.float64, rng)
    dy = torch.from_numpy(rng.standard_normal(shape))
    results = []
    for function in (layer_norm, F.layer_norm):
        leaves = [None if t is None else t.clone().requires_grad_() for t in (x, weight, bias)]
        y = function(leaves[0], normalized, leaves[1], leaves[2], eps)
        y.backward(dy)
        results.append((y.detach(), *(t.grad for t in leaves if t is not None)))
    # Rows of deviation 3: both are right to some 1e-14 of the largest value. One feature has a tiny x_hat, all noise.
    scale = 1 / eps**0.5 if x.shape[-1] == 1 else 1
    for mine, theirs in zip(*results):
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
        torch.testing.assert_close(mine, theirs, rtol=0, atol=2e-13 * max(1, scale, theirs.abs().max().item()))


KINDS = {
    "ordinary": lambda rng, shape: rng.standard_normal(shape),
    "mean 2, deviation 3": lambda rng, shape: 3 * rng.standard_normal(shape) + 2,
    "mean 1000": lambda rng, shape: 1000 + rng.standard_normal(shape),
    "outlier": lambda rng, shape: np.where(np.arange(shape[-1]) == 3, 1e4, rng.standard_normal(shape)),
    "small": lambda rng, shape: 1e-4 * rng.standard_normal(shape),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_error_beside_pytorch(dtype, rng):
    """Case by case not worse than PyTorch's worst element plus 2 ulp; over all cases far better."""
    ratios = []
    for kind in KINDS.values():
        for (shape, k), affine in ((s, a) for s in SHAPES[:6] for a in AFFINE):
            values = torch.from_numpy(kind(rng, shape)).to(dtype)
            _, normalized, weight, bias = arguments(shape, k, affine, dtype, rng)
            truth = Truth(values, weight, bias, 1e-5, axis=tuple(range(-k, 0)))
            unit = ulp(truth.size, truth.dtype)
            worst = [
                float(np.max(np.abs(wide(f(values, normalized, weight, bias)) - truth.y) / unit))
                for f in (layer_norm, F.layer_norm)
            ]
            assert worst[0] <= worst[1] + 2, (shape, affine, worst)
            ratios.append(max(worst[1], 0.25) / max(worst[0], 0.25))
    mean = np.exp(np.mean(np.log(ratios)))
    print(f"PyTorch's worst element over truenorm's, geometric mean over {len(ratios)} cases: {mean:.1f}")
    # float32 loses to a float32 mean; half types to the rounding of their statistics and parameters.
    assert mean > (3 if dtype is torch.float32 else 1.2)


def test_signature():
    import inspect

    mine, theirs = (inspect.signature(f).parameters for f in (layer_norm, F.layer_norm))
    assert list(mine) == list(theirs)
    assert all(mine[n].default == theirs[n].default and mine[n].kind == theirs[n].kind for n in mine)


@pytest.mark.parametrize("shape", [8, np.int64(8), [8], (8,), range(8, 9)], ids=repr)
def test_normalized_shape_is_any_int_or_sequence(shape, rng):
    x = torch.from_numpy(rng.standard_normal((1000, 8))).requires_grad_()
    y = layer_norm(x, shape)
    assert torch.equal(y, layer_norm(x, (8,)))
    y.pow(3).sum().backward()
    assert x.grad.abs().max() > 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_with_float32_parameters(dtype, rng):
    x, normalized, weight, bias = arguments((4, 32), 1, "both", torch.float32, rng)
    y = layer_norm(x.to(dtype), normalized, weight, bias)
    assert y.dtype == dtype
    Truth(x.to(dtype), weight, bias).check(y)


def test_autocast(rng):
    """The result keeps the type of the input; the parameters may stay float32."""
    x = torch.from_numpy(rng.standard_normal((4, 16)).astype(np.float32))
    linear, weight = torch.nn.Linear(16, 16), torch.ones(16, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h = linear(x)
        y = layer_norm(h, (16,), weight)
        assert h.dtype == y.dtype == torch.bfloat16
        assert layer_norm(x, (16,), weight).dtype == torch.float32
        y.sum().backward()
    assert weight.grad.dtype == torch.float32 and linear.weight.grad is not None
    assert torch.equal(y.detach(), layer_norm(h.detach(), (16,), weight.detach()))


def test_no_grad_and_inference_mode(rng):
    x, normalized, weight, bias = arguments((4, 8), 1, "both", torch.float32, rng)
    weight.requires_grad_()
    y = layer_norm(x, normalized, weight, bias)
    assert y.requires_grad
    for context in (torch.no_grad(), torch.inference_mode()):
        with context:
            found = layer_norm(x, normalized, weight, bias)
            assert not found.requires_grad and torch.equal(found, y)


def test_other_devices_use_pytorch_and_say_so_once():
    """Fake tensors stand for a device that this machine may not have."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    truenorm.torch._warned = False
    with FakeTensorMode():
        x = torch.empty(3, 8, device="cuda")
        with pytest.warns(UserWarning, match="truenorm runs on the CPU; layer norms of tensors on cuda:0"):
            y = layer_norm(x, (8,))
        assert y.device.type == "cuda" and y.shape == (3, 8)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            layer_norm(x, (8,))
    with pytest.raises(TypeError, match="CPU"):
        truenorm.layer_norm(x)


def test_meta_tensors():
    assert layer_norm(torch.empty(3, 8, device="meta"), (8,)).device.type == "meta"


def test_subclasses_and_function_modes(rng):
    """What overrides torch functions sees this one as well."""

    class Logged(torch.Tensor):
        seen = []

        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            cls.seen.append(function)
            return super().__torch_function__(function, types, args, kwargs or {})

    x = torch.from_numpy(rng.standard_normal((3, 8)))
    y = layer_norm(x.as_subclass(Logged), (8,))
    assert type(y) is Logged and layer_norm in Logged.seen
    assert torch.equal(y.as_subclass(torch.Tensor), layer_norm(x, (8,)))


def test_symbolic_trace():
    class Block(torch.nn.Module):
        def forward(self, x):
            return layer_norm(x, (8,)) + 1

    traced = torch.fx.symbolic_trace(Block())
    x = torch.randn(3, 8, generator=torch.Generator().manual_seed(0))
    assert torch.equal(traced(x), Block()(x))
    assert any(node.target is layer_norm for node in traced.graph.nodes)

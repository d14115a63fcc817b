"""The operator as PyTorch's compilers see it."""

import pytest
import torch

import truenorm.torch
from truenorm.torch import LayerNorm, layer_norm

OP = torch.ops.truenorm.layer_norm.default
BACKWARD = torch.ops.truenorm.layer_norm_backward.default


def tensors(dtype=torch.float32, requires_grad=True):
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(size, generator=generator).to(dtype).requires_grad_(requires_grad) for size in ((2, 3, 8), (8,), (8,))
    ]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_opcheck(dtype):
    """PyTorch's own tests of an operator: schema, fake implementation, autograd registration, dynamic shapes."""
    x, weight, bias = tensors(dtype)
    torch.library.opcheck(OP, (x, weight, bias, [2], 1e-5))
    torch.library.opcheck(OP, (x, None, None, [1, 2], 1e-5, 1))
    plain = [t.detach() for t in (x, x, weight, bias)]
    _, saved = OP(plain[1], weight.detach(), bias.detach(), [2], 1e-5)
    torch.library.opcheck(BACKWARD, (*plain, saved, [2], 1e-5, 0, [True, True, True]))
    torch.library.opcheck(BACKWARD, (*plain, saved, [2], 1e-5, 0, [True, False, False]))


def test_compile_without_graph_break():
    x, weight, bias = tensors()

    def step(x, weight, bias):
        return layer_norm(x.sin(), (8,), weight, bias).relu()

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    expected, found = step(x, weight, bias), compiled(x, weight, bias)
    assert torch.equal(found, expected)
    expected = torch.autograd.grad(expected.sum(), (x, weight, bias))
    for a, b in zip(torch.autograd.grad(found.sum(), (x, weight, bias)), expected):
        assert torch.equal(a, b)


def test_compile_with_dynamic_shapes():
    compiled = torch.compile(lambda x: layer_norm(x, x.shape[-1:]), fullgraph=True, dynamic=True, backend="aot_eager")
    for rows, d in ((3, 8), (5, 16), (7, 33)):
        x = torch.randn(rows, d, generator=torch.Generator().manual_seed(d))
        assert torch.equal(compiled(x), layer_norm(x, (d,)))


@pytest.mark.parametrize("how", [{}, {"axis": 1}, {"axis": -1}, {"axis": (0, 2)}, {"axis": None}, {"normalized_shape": (3, 4)}], ids=str)
def test_compiled_any_axis(how):
    compiled = torch.compile(lambda x: truenorm.layer_norm(x, 2.0, **how), fullgraph=True, backend="aot_eager")
    x = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    assert torch.equal(compiled(x), truenorm.layer_norm(x, 2.0, **how))


DERIVATIVES = {
    "grad": lambda f: torch.func.grad(lambda x: f(x).sum()),
    "grad of vmap": lambda f: torch.func.grad(lambda x: torch.vmap(f)(x).sum()),
    "vmap of grad": lambda f: torch.vmap(torch.func.grad(lambda x: f(x).sum())),
    "jacrev": torch.func.jacrev,
    "jvp": lambda f: lambda x: torch.func.jvp(f, (x,), (x.cos(),))[1],
}


@pytest.mark.parametrize("how", DERIVATIVES)
def test_compiled_derivatives(how):
    """torch.func inside torch.compile: not refused, and no tangent lost."""
    x, weight, bias = tensors(torch.float64, requires_grad=False)
    derivative = DERIVATIVES[how](lambda x: layer_norm(x, (8,), weight, bias).pow(3))
    found = torch.compile(derivative, fullgraph=True, backend="aot_eager")(x)
    torch.testing.assert_close(found, derivative(x), rtol=1e-12, atol=1e-12)
    assert found.abs().max() > 0.1


def test_compiled_forward_mode():
    x, weight, bias = tensors(torch.float64, requires_grad=False)

    def tangent(x):
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, x.cos())
            return torch.autograd.forward_ad.unpack_dual(layer_norm(dual, (8,), weight, bias)).tangent

    torch.testing.assert_close(torch.compile(tangent, backend="aot_eager")(x), tangent(x), rtol=1e-12, atol=1e-12)


def test_compiled_vmap_has_the_same_bits():
    x, weight, bias = tensors(torch.bfloat16)
    norms = torch.vmap(lambda x, weight: layer_norm(x, (8,), weight, bias), in_dims=(0, None))
    assert torch.equal(torch.compile(norms, fullgraph=True, backend="aot_eager")(x, weight), norms(x, weight))


def test_export():
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = LayerNorm(8)

        def forward(self, x):
            return self.norm(x) + 1

    block, x = Block(), tensors()[0].detach()
    rows = torch.export.Dim("rows", min=1, max=64)
    program = torch.export.export(block, (x,), dynamic_shapes={"x": {0: rows}})
    assert any(node.target is OP for node in program.graph.nodes)
    longer = torch.randn(7, 3, 8, generator=torch.Generator().manual_seed(1))
    assert torch.equal(program.module()(longer), block(longer))


def test_gradients_through_an_exported_program():
    x = tensors()[0].detach()
    module = LayerNorm(8)
    program = torch.export.export(module, (x,)).module()
    program(x).pow(3).sum().backward()
    module(x).pow(3).sum().backward()
    found = dict(program.named_parameters())
    assert torch.equal(found["weight"].grad, module.weight.grad)


def test_bare_operator_has_gradients_of_second_order():
    x, weight, bias = (t.detach().double().requires_grad_() for t in tensors())

    def call(x, weight, bias):
        return OP(x, weight, bias, [2], 1e-2)[0]

    assert torch.autograd.gradcheck(call, (x, weight, bias))
    assert torch.autograd.gradgradcheck(call, (x, weight, bias))


def test_jit_trace():
    x, weight, bias = tensors(requires_grad=False)
    traced = torch.jit.trace(lambda x: layer_norm(x, (8,), weight, bias), (x,))
    assert torch.equal(traced(x + 1), layer_norm(x + 1, (8,), weight, bias))


def test_dispatch_modes_see_the_operator():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Seen(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.calls = []

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.calls.append(function)
            return function(*args, **(kwargs or {}))

    with Seen() as seen:
        layer_norm(tensors()[0], (8,))
    assert OP in seen.calls


def test_activation_checkpointing():
    x, weight, bias = tensors()

    def block(x):
        return layer_norm(x, (8,), weight, bias).sin()

    plain = torch.autograd.grad(block(x).sum(), (x, weight, bias))
    again = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
    for a, b in zip(torch.autograd.grad(again.sum(), (x, weight, bias)), plain):
        assert torch.equal(a, b)

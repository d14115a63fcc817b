"""Gradients of every order and every transform of torch.func."""

import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vmap
from truth import Truth, assert_close

import truenorm
import truenorm.torch
from truenorm.torch import layer_norm

f8 = torch.float64


def leaves(shape, k=1, seed=0, dtype=f8):
    generator = torch.Generator().manual_seed(seed)
    sizes = (shape, shape[-k:], shape[-k:])
    return [torch.randn(s, generator=generator, dtype=f8).to(dtype).requires_grad_() for s in sizes]


def with_none(function, which):
    """function of the parameters that are there, as gradcheck wants it."""

    def call(x, *given):
        given = iter(given)
        return function(x, *(next(given) if w else None for w in which))

    return call


@pytest.mark.parametrize("which", list(itertools.product([True, False], repeat=2)), ids=str)
@pytest.mark.parametrize("shape,k", [((3, 5), 1), ((2, 3, 4), 2), ((4,), 1), ((3, 1), 1)], ids=str)
def test_first_second_and_third_derivatives(shape, k, which):
    x, weight, bias = leaves(shape, k)
    inputs = [x, *(p for p, w in zip((weight, bias), which) if w)]
    function = with_none(lambda x, w, b: layer_norm(x, shape[-k:], w, b, 1e-2), which)
    assert torch.autograd.gradcheck(function, inputs)
    assert torch.autograd.gradgradcheck(function, inputs)

    def first(*inputs):
        """A gradient, to be differentiated twice more."""
        y = function(*inputs)
        weights = torch.linspace(1, 2, y.numel(), dtype=f8).reshape(y.shape)
        return torch.autograd.grad((y * weights**2).sum(), inputs, create_graph=True)

    if which == (True, True):
        assert torch.autograd.gradgradcheck(first, inputs)


@pytest.mark.parametrize("axis,gamma_shape", [(1, (3,)), (1, (1, 3, 1)), (2, (2, 1, 4)), ((0, 2), ()), (-1, (1, 3, 1))])
def test_derivatives_over_other_axes_and_shapes(axis, gamma_shape):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(2, 3, 4, generator=generator, dtype=f8, requires_grad=True)
    gamma, beta = (torch.randn(gamma_shape, generator=generator, dtype=f8, requires_grad=True) for _ in range(2))

    def function(x, gamma, beta):
        return truenorm.layer_norm(x, gamma, beta, 1e-2, axis=axis)

    assert torch.autograd.gradcheck(function, (x, gamma, beta))
    assert torch.autograd.gradgradcheck(function, (x, gamma, beta))


def test_third_derivative_along_a_line():
    """pytorch 175754: third derivatives silently wrong."""
    x = torch.tensor([0.3, -1.1, 0.8, 2.0], dtype=f8)
    direction = torch.tensor([1.0, 0.5, -0.2, 0.1], dtype=f8)

    def formula(x, *_, eps=0.1):
        c = x - x.mean()
        return c / torch.sqrt((c * c).mean() + eps)

    def third(function):
        def along(t):
            return (function(x + t * direction, (4,), eps=0.1) * torch.arange(4, dtype=f8)).sum()

        return grad(grad(grad(along)))(torch.tensor(0.0, dtype=f8)).item()

    assert third(layer_norm) == pytest.approx(third(formula), rel=1e-12)


@pytest.mark.parametrize("needed", list(itertools.product([True, False], repeat=3))[:-1], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_any_subset_of_gradients_has_the_same_bits(needed, dtype):
    everything = leaves((33, 40), dtype=dtype)
    dy = torch.randn(33, 40, generator=torch.Generator().manual_seed(5)).to(dtype)
    whole = torch.autograd.grad(layer_norm(everything[0], (40,), *everything[1:]), everything, dy)
    some = [t.detach().clone().requires_grad_(n) for t, n in zip(everything, needed)]
    layer_norm(some[0], (40,), *some[1:]).backward(dy)
    for tensor, gradient, n in zip(some, whole, needed):
        assert torch.equal(tensor.grad, gradient) if n else tensor.grad is None


def test_gradients_are_those_of_the_library():
    x, weight, bias = leaves((64, 48), dtype=torch.float32)
    dy = torch.randn(64, 48, generator=torch.Generator().manual_seed(6))
    y = layer_norm(x, (48,), weight, bias)
    y.backward(dy)
    truth = Truth(x, weight, bias)
    truth.check(y)
    assert_close(x.grad, *truth.gradients(dy))
    for found, true in zip((weight.grad, bias.grad), truth.parameter_gradients(dy, weight, "float32")):
        assert_close(found, *true)
    _, cache = truenorm.layer_norm_forward(*(t.detach().numpy() for t in (x, weight, bias)))
    for found, array in zip((x.grad, weight.grad, bias.grad), truenorm.layer_norm_backward(dy.numpy(), cache)):
        assert np.array_equal(found.numpy(), array)


def test_half_parameters_get_full_sums():
    for dtype in (torch.bfloat16, torch.float16):
        x = torch.randn(4096, 4, generator=torch.Generator().manual_seed(0)).to(dtype)
        bias = torch.zeros(4, dtype=dtype, requires_grad=True)
        layer_norm(x, (4,), torch.ones(4, dtype=dtype), bias).sum().backward()
        assert torch.equal(bias.grad, torch.full((4,), 4096.0, dtype=dtype))


def test_expanded_and_strided_dy():
    x, weight, bias = leaves((6, 5, 8), dtype=torch.float32)
    y = layer_norm(x, (8,), weight, bias)
    row = torch.randn(8, generator=torch.Generator().manual_seed(1))
    cube = torch.randn(8, 5, 6, generator=torch.Generator().manual_seed(2))
    for dy in (row.expand(6, 5, 8), cube.permute(2, 1, 0), torch.ones(()).expand(6, 5, 8)):
        found = torch.autograd.grad(y, (x, weight, bias), dy, retain_graph=True)
        for a, b in zip(found, torch.autograd.grad(y, (x, weight, bias), dy.contiguous(), retain_graph=True)):
            assert torch.equal(a, b)


def test_gradient_accumulation_and_several_uses():
    """A norm used twice, and backward called twice, add up as for any module."""
    x, weight, bias = leaves((5, 8))
    reference = [t.detach().clone().requires_grad_() for t in (x, weight, bias)]
    for function, (a, w, b) in ((layer_norm, (x, weight, bias)), (F.layer_norm, reference)):
        for _ in range(2):
            function(function(a, (8,), w, b), (8,), w, b).pow(3).sum().backward()
    for mine, theirs in zip((x, weight, bias), reference):
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-11, atol=1e-11)


def test_changed_inputs_are_noticed():
    """Backward needs x and gamma as they were; PyTorch's own check says so when they are not."""
    x, weight, bias = leaves((5, 8))
    h = x * 2
    y = layer_norm(h, (8,), weight, bias)
    h.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def loss(function):
    return lambda x, w, b: (function(x, (8,), w, b, 1e-3) ** 3).sum()


@pytest.mark.parametrize("in_dims", [(0, None, None), (0, 0, None), (None, 1, 0), (1, None, 0), (0, 0, 0)], ids=str)
def test_vmap_of_gradients(in_dims):
    generator = torch.Generator().manual_seed(3)

    def one(size, dim):
        size = list(size)
        if dim is not None:
            size.insert(dim, 5)
        return torch.randn(size, generator=generator, dtype=f8)

    inputs = [one(s, d) for s, d in zip(((2, 8), (8,), (8,)), in_dims)]
    mine, theirs = (
        vmap(grad(loss(f), argnums=(0, 1, 2)), in_dims=in_dims)(*inputs) for f in (layer_norm, F.layer_norm)
    )
    loop = [
        grad(loss(layer_norm), argnums=(0, 1, 2))(*(t if d is None else t.select(d, i) for t, d in zip(inputs, in_dims)))
        for i in range(5)
    ]
    for k in range(3):
        torch.testing.assert_close(mine[k], theirs[k], rtol=1e-11, atol=1e-11)
        assert torch.equal(mine[k], torch.stack([l[k] for l in loop]))


@pytest.mark.parametrize("shape", [(0, 2, 8), (3, 0, 8), (0, 8)], ids=str)
def test_vmap_of_nothing(shape):
    """No examples, or examples without rows."""
    x, weight = torch.zeros(shape), torch.ones(8)
    for f in (lambda x: layer_norm(x, (8,), weight), grad(lambda x: layer_norm(x, (8,), weight).sum())):
        assert vmap(f)(x).shape == shape
    one = grad(lambda w, x: layer_norm(x, (8,), w).sum())
    assert torch.equal(vmap(one, in_dims=(None, 0))(weight, x), torch.zeros(shape[0], 8))


def test_vmap_has_the_bits_of_a_loop():
    x, weight, bias = (t.detach() for t in leaves((5, 3, 8), dtype=torch.float32))
    weights = torch.randn(5, 8, generator=torch.Generator().manual_seed(4))
    y = vmap(lambda x, w: layer_norm(x, (8,), w, bias))(x, weights)
    assert torch.equal(y, torch.stack([layer_norm(a, (8,), w, bias) for a, w in zip(x, weights)]))
    nested = vmap(vmap(lambda x: layer_norm(x, (8,), weight, bias)))(x)
    assert torch.equal(nested, layer_norm(x, (8,), weight, bias))


def test_other_transforms():
    x, weight, bias = (t.detach() for t in leaves((2, 8)))
    for transform in (jacrev, jacfwd, hessian):
        mine, theirs = (transform(lambda x: loss(f)(x, weight, bias))(x) for f in (layer_norm, F.layer_norm))
        torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-10)
    mine, theirs = (
        jvp(lambda x, w: f(x, (8,), w, bias), (x, weight), (x**2, weight**2))[1] for f in (layer_norm, F.layer_norm)
    )
    torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-12)


def test_functionalize():
    """PyTorch knows no rule for it; the formulas in PyTorch's own operations do."""
    from torch.func import functionalize

    x, weight, bias = (t.detach() for t in leaves((3, 8)))

    def of(f):
        def y(x):
            return f(x, (8,), weight, bias)

        def total(x):
            return (y(x) ** 3).sum()

        return (
            functionalize(y), functionalize(grad(total)), grad(functionalize(total)), functionalize(vmap(y)),
            vmap(functionalize(y)), functionalize(grad(lambda x: grad(total)(x).pow(2).sum())),
        )

    for mine, theirs in zip(of(layer_norm), of(F.layer_norm)):
        torch.testing.assert_close(mine(x), theirs(x), rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(functionalize(lambda x: truenorm.layer_norm(x, axis=0))(x), truenorm.layer_norm(x, axis=0))


def test_forward_mode_by_itself():
    import torch.autograd.forward_ad as forward_ad

    x, weight, bias = (t.detach() for t in leaves((2, 8)))
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, x**2)
        mine, theirs = (forward_ad.unpack_dual(f(dual, (8,), weight, bias)) for f in (layer_norm, F.layer_norm))
    torch.testing.assert_close(mine.primal, theirs.primal, rtol=1e-13, atol=1e-13)
    torch.testing.assert_close(mine.tangent, theirs.tangent, rtol=1e-12, atol=1e-12)


def test_forward_mode_of_the_bare_operator_is_refused():
    import torch.autograd.forward_ad as forward_ad

    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.randn(2, 8), torch.randn(2, 8))
        with pytest.raises((NotImplementedError, RuntimeError), match="jvp|forward"):
            torch.ops.truenorm.layer_norm(dual, None, None, [1], 1e-5)
    with pytest.raises(NotImplementedError, match="forward-mode"):
        torch.func.jvp(
            lambda x: torch.ops.truenorm.layer_norm(x, None, None, [1], 1e-5)[0], (torch.ones(2, 8),), (torch.ones(2, 8),)
        )


def test_per_sample_gradients_of_a_module():
    module = truenorm.torch.LayerNorm(8, dtype=f8)
    x = torch.randn(5, 3, 8, generator=torch.Generator().manual_seed(7), dtype=f8)

    def one(parameters, x):
        return functional_call(module, parameters, (x,)).pow(3).sum()

    parameters = {k: v.detach() for k, v in module.named_parameters()}
    found = vmap(grad(one), in_dims=(None, 0))(parameters, x)
    for i in range(5):
        module.zero_grad()
        module(x[i]).pow(3).sum().backward()
        assert torch.equal(found["weight"][i], module.weight.grad)


def test_cache_of_tensors_with_gradients():
    """layer_norm_forward and layer_norm_backward are differentiable too, and so is what the cache shows."""
    x, gamma, beta = leaves((3, 5))

    def both(x, gamma, beta, dy):
        y, cache = truenorm.layer_norm_forward(x, gamma, beta, 1e-2)
        return (y, cache.x_norm, cache.mu, cache.var, *truenorm.layer_norm_backward(dy, cache))

    dy = torch.randn(3, 5, generator=torch.Generator().manual_seed(8), dtype=f8, requires_grad=True)
    assert torch.autograd.gradcheck(both, (x, gamma, beta, dy))


def test_many_threads_of_python(rng):
    from concurrent.futures import ThreadPoolExecutor

    x, weight, bias = leaves((64, 96), dtype=torch.float32)

    def step(_):
        a, w, b = (t.detach().clone().requires_grad_() for t in (x, weight, bias))
        layer_norm(a, (96,), w, b).pow(2).sum().backward()
        return a.grad, w.grad, b.grad

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(step, range(16)))
    assert all(torch.equal(a, b) for r in results[1:] for a, b in zip(r, results[0]))

"""Faults that users reported against other libraries, and what is right instead.

Each test names where the fault was seen; inputs marked "exact" in the reports are used as reported.
"""

import ml_dtypes
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from truth import Truth, assert_close, wide

import truenorm
import truenorm.torch

f2, f4, f8 = np.float16, np.float32, np.float64
bf16 = ml_dtypes.bfloat16


def numbers(seed):
    return np.random.default_rng(seed)


def spike(size, value, at, rest):
    x = np.full(size, rest, f4)
    x[at] = value
    return x[None]


# name: (x, eps). Ordinary-looking rows that the usual formulas get wrong in the first digits.
ROWS = {
    "mean 2000 (pytorch 51102)": ((2000 + numbers(1).standard_normal((5, 4))).astype(f4), 1e-5),
    "0 + i/1000 (burn 5607)": (np.arange(16, dtype=f4)[None] * f4(1e-3), 1e-5),
    "100 + i/1000": (f4(100) + np.arange(16, dtype=f4)[None] * f4(1e-3), 1e-5),
    "1000 + i/1000": (f4(1000) + np.arange(16, dtype=f4)[None] * f4(1e-3), 1e-5),
    "10000 + i/1000": (f4(10000) + np.arange(16, dtype=f4)[None] * f4(1e-3), 1e-5),
    "40000..40003 (onnxruntime 28463)": (np.arange(40000, 40004, dtype=f4)[None], 1e-5),
    "80000..80003 (tvm 19592)": (np.arange(80000, 80004, dtype=f4)[None], 1e-5),
    "ramp at 6399968 (pytorch 81090)": ((np.arange(32) + 6399968).astype(f4)[None], 1e-5),
    "100 +- 0.01 (pytorch 40307)": ((100 + 0.01 * numbers(2).standard_normal((2, 4096))).astype(f4), 1e-5),
    "small honest variance (pytorch 190491)": (f4([[-9.9e-4, -9.9e-4, 9.9e-4, 9.9e-4]]), 1e-12),
    "1, 1.001, 0.999, 1": (f4([[1, 1.001, 0.999, 1]]), 1e-7),
    "size 1e30 (pytorch 162489)": ((1e30 * numbers(3).standard_normal((1, 16))).astype(f4), 1e-5),
    "near the largest float (pytorch 178084)": (
        np.linspace(8.8e31, 3.4028e38, 33).astype(f4)[None] * f4([[1], [-1]]),
        1e-5,
    ),
    "two million features (pytorch 143182)": ((3 + numbers(4).standard_normal((1, 2_000_000))).astype(f4), 1e-5),
    "250 +- 0.01 (flax 1491)": ((250 + 0.01 * numbers(5).standard_normal((1, 65536))).astype(f4), 1e-5),
    "one odd value of 100 (sherpa-onnx 3857)": (spike(100, -15.89, 99, -15.94), 1e-10),
    "1e6 + randn (tt-metal 45231)": ((1e6 + numbers(6).standard_normal((1, 64))).astype(f4), 1e-5),
    "one 30 among 4096 (coremltools 2821)": (spike(4096, 30.0, 0, 0.002), 1e-5),
    "float64, mean 1000 (Paddle 30452)": (1e3 + numbers(7).standard_normal((4, 64)), 1e-5),
    "float16, +-300 (onnxruntime 29034)": (numbers(8).uniform(-300, 300, (1, 2048)).astype(f2), 1e-5),
    "float16, +-7700": (np.where(np.arange(64) % 2, -7700, 7700).astype(f2)[None], 1e-5),
    "float16, 0 to 0.1 (pytorch 66707)": ((0.1 * numbers(9).random((5, 128))).astype(f2), 1e-5),
    "tiny float32 in a half build (nntrainer 3785)": (
        (0.016 * numbers(10).uniform(-1, 1, (512, 768))).astype(f4), 1e-5
    ),
    "odd widths, mean 1 (mojo_opset 347)": ((1 + numbers(11).standard_normal((7, 10))).astype(f4), 1e-5),
    "eps carried exactly (llama.cpp 2373)": ((1e-3 * numbers(12).standard_normal((4, 64))).astype(f4), 1e-12),
    "eps inside the root (burn 2185)": (f4([[1e-3, 2e-3, 3e-3, 4e-3]]), 1e-5),
    "biased variance (BERT-pytorch 30)": (f4([[1, 0, 0, 0]]), 1e-5),
    "eps not rounded to bfloat16 (pytorch 140092)": ((1 + 1e-2 * numbers(13).random((4, 32))).astype(bf16), 1e-5),
}


@pytest.mark.parametrize("name", ROWS)
def test_row(name):
    x, eps = ROWS[name]
    Truth(x, eps=eps).check(truenorm.layer_norm(x, eps=eps))


@pytest.mark.parametrize("value", [0.0, 0.1, 1.5678, 14.0, 1234.0, 1234.567, 6.5e4, 1e30, 8.5071e37])
@pytest.mark.parametrize("dtype", [f4, f8, f2, bf16], ids=lambda t: np.dtype(t).name)
def test_constant_rows_give_exactly_beta(dtype, value):
    """onnxruntime 21935, deeplearning4j 9821, pytorch 108072, 41527, DeepSpeed 581: NaN, or beta not met."""
    if dtype is f2 and value > 6.6e4:
        return
    for d in (1, 2, 9, 10, 100, 256):
        x = np.full((2, d), value, dtype)
        gamma, beta = np.full(d, 123, dtype), np.full(d, 3, dtype)
        for eps in (1e-12, 1e-6, 1e-5):
            y, cache = truenorm.layer_norm_forward(x, gamma, beta, eps)
            assert np.array_equal(wide(y), np.full((2, d), 3.0)), (d, eps)
            assert np.array_equal(wide(truenorm.layer_norm(x, eps=eps)), np.zeros((2, d)))
            dx, dgamma, _ = truenorm.layer_norm_backward(np.ones_like(x), cache)
            assert not wide(dgamma).any() and np.isfinite(wide(dx)).all()
            assert d > 1 or not wide(dx).any()


def test_one_feature_and_a_huge_weight():
    """pytorch 98075: x = -3 with weight 1e17 drifts away from the bias."""
    for weight in (1e10, 1e12, 1e17):
        assert truenorm.layer_norm(np.array([[-3.0]]), np.array([weight]), np.array([-1.0]), 0.1) == -1


def test_zero_variance_without_eps_is_nan():
    """tensorflow 61287: 0/0, and nothing else."""
    assert np.isnan(truenorm.layer_norm(np.zeros((3, 4), f4), eps=0)).all()


def test_not_finite_rows_stay_by_themselves():
    """pytorch 173885: a row with Inf or NaN is NaN; its neighbours do not notice."""
    x = np.array([[1, 2, np.inf, 3], [1, 2, 3, 4], [1, np.nan, 3, 4]], f2)
    for threads in (1, 3):
        y = truenorm.layer_norm(x, num_threads=threads)
        assert np.isnan(y[[0, 2]]).all() and np.array_equal(y[1], truenorm.layer_norm(x[1]))


def test_eps_reaches_the_formula():
    """TIM-VX 589, AMDMIGraphX 1216: eps and axis are themselves, given together or alone."""
    x = f4([[-2, 2, -2, 2, -2, 2], [-2, 0, 2, -2, 0, 2], [2] * 6, [0, 1, 2, 3, 4, 5]])
    y = truenorm.layer_norm(x, eps=1e-12)
    assert not y[2].any()
    Truth(x, eps=0.5, axis=1).check(truenorm.layer_norm(x, eps=0.5, axis=1))
    assert np.array_equal(truenorm.layer_norm(x, axis=-1), truenorm.layer_norm(x, axis=1))


def gradient_case(rows, d, dtype=f4, seed=0, dy=None):
    rng = numbers([seed, rows, d])
    x = rng.standard_normal((rows, d)).astype(dtype)
    gamma, beta = rng.standard_normal(d).astype(dtype), rng.standard_normal(d).astype(dtype)
    dy = (rng.standard_normal((rows, d)) if dy is None else dy(rng, (rows, d))).astype(dtype)
    return x, gamma, beta, dy


def check_gradients(x, gamma, beta, dy, eps=1e-5):
    truth = Truth(x, gamma, beta, eps)
    _, cache = truenorm.layer_norm_forward(x, gamma, beta, eps)
    dx, dgamma, dbeta = truenorm.layer_norm_backward(dy, cache)
    assert_close(dx, *truth.gradients(dy), "dx")
    true_gamma, true_beta = truth.parameter_gradients(dy, gamma, str(gamma.dtype))
    assert_close(dgamma, *true_gamma, "dgamma")
    assert_close(dbeta, *true_beta, "dbeta")
    return dx, dgamma, dbeta


@pytest.mark.parametrize("rows", [1, 2, 31, 1023, 1025, 1031])
def test_every_row_counts(rows):
    """attorch 18, tt-metal 53215: the last block missing; dy with a mean, so that what is lost shows."""
    check_gradients(*gradient_case(rows, 32, dy=lambda rng, shape: 1 + 0.1 * rng.standard_normal(shape)))


def test_ranks_above_two_in_backward():
    """FlagGems 5392, oneflow 6149, DeepSpeed 692: rows miscounted, dgamma and dbeta swapped, columns mixed up."""
    rng = numbers(21)
    x, dy = rng.standard_normal((2, 3, 8)), rng.standard_normal((2, 3, 8))
    gamma, beta = 1.0 + np.arange(8), np.arange(8.0)
    dx, dgamma, dbeta = check_gradients(x, gamma, beta, dy)
    assert dgamma.shape == dbeta.shape == (8,)
    np.testing.assert_allclose(dbeta, dy.sum((0, 1)), rtol=1e-14)


def test_gamma_that_is_almost_zero():
    """apex 1715: dgamma from y, divided by gamma."""
    x, _, beta, dy = gradient_case(9, 4)
    check_gradients(x, f4([0, 1e-8, 1, -1]), beta, dy)


@pytest.mark.parametrize("x", [np.zeros((2, 4), f4), np.ones((3, 3), f4)], ids=["zeros", "ones"])
def test_gradients_of_constant_rows(x):
    """burn 1992, Flux 2096: the square root differentiated at 0."""
    d = x.shape[1]
    check_gradients(x, np.ones(d, f4), np.zeros(d, f4), numbers(22).standard_normal(x.shape).astype(f4))


def test_half_gradients_are_summed_in_full():
    """llm.c 428: a bfloat16 running sum of ones stops at 256; float16 stops at 2048."""
    for dtype in (bf16, f2):
        x = numbers(23).standard_normal((4096, 4)).astype(dtype)
        _, cache = truenorm.layer_norm_forward(x, np.ones(4, dtype), np.zeros(4, dtype))
        _, _, dbeta = truenorm.layer_norm_backward(np.ones_like(x), cache)
        assert dbeta.dtype == dtype and np.array_equal(dbeta.astype(f4), [4096] * 4)


def test_statistics_are_not_kept_in_half():
    """FlagGems 221, pytorch 140259: dgamma off by 2.3 on a scale of 18."""
    rng = numbers(24)
    x, dy = (100 + rng.standard_normal((64, 32))).astype(bf16), rng.standard_normal((64, 32)).astype(bf16)
    check_gradients(x, np.ones(32, bf16), np.zeros(32, bf16), dy)


def test_gradient_of_a_sum_is_next_to_nothing():
    """pytorch 63541: for loss = sum(y) and gamma = 1 the gradient is 0."""
    x, _, _, _ = gradient_case(10, 512)
    _, cache = truenorm.layer_norm_forward(x)
    dx = truenorm.layer_norm_backward(np.ones_like(x), cache)[0]
    assert np.abs(dx).max() <= 1e-6


def test_gradient_written_over_dy_is_not_offered_by_accident():
    """jax-mps 168: dx lands in memory of its own; dy and x are untouched."""
    x, gamma, beta, dy = gradient_case(512, 768)
    copies = x.copy(), dy.copy()
    check_gradients(x, gamma, beta, dy)
    assert np.array_equal(x, copies[0]) and np.array_equal(dy, copies[1])


def test_many_rows():
    """apex 411: 65536 rows and more."""
    x = numbers(25).standard_normal((65537, 32)).astype(f4)
    y = truenorm.layer_norm(x)
    for rows in (slice(0, 3), slice(65533, 65537)):
        assert np.array_equal(y[rows], truenorm.layer_norm(x[rows]))


@pytest.mark.parametrize("offset", [1, 2, 3])
def test_operands_that_are_aligned_to_their_elements_only(offset):
    """flashinfer 634, pytorch 11869: parameters packed in flat buffers."""
    for dtype in (f2, f4, f8):
        flat = numbers(26).standard_normal(4000).astype(dtype)
        x = flat[offset : offset + 700].reshape(7, 100)
        gamma, beta = flat[1000 + offset :][:100], flat[2000 - offset :][:100]
        out = np.zeros(4000, dtype)[offset + 2 :][:700].reshape(7, 100)
        truenorm.layer_norm(x, gamma, beta, out=out)
        assert np.array_equal(out, truenorm.layer_norm(*map(np.copy, (x, gamma, beta))))


@pytest.mark.parametrize("d", [1, 2, 3, 5, 7, 8, 9, 15, 17, 31, 33, 63, 65, 257, 513, 769])
def test_nothing_beyond_the_rows_is_written(d):
    """aiter 5044, llama.cpp 26708: the last vector of an odd width."""
    x = (1 + numbers([27, d]).standard_normal((7, d))).astype(f2)
    guarded = np.full(7 * d + 64, 77, f2)
    truenorm.layer_norm(x, out=guarded[32 : 32 + 7 * d].reshape(7, d))
    assert np.all(guarded[:32] == 77) and np.all(guarded[32 + 7 * d :] == 77)
    Truth(x).check(guarded[32 : 32 + 7 * d].reshape(7, d))


def test_rounding_to_half_has_no_bias():
    """aiter 5151: truncation, each value within one unit, all of them too small."""
    x = numbers(28).standard_normal((256, 512)).astype(bf16)
    y = wide(truenorm.layer_norm(x))
    true = Truth(x).y
    bias = ((np.abs(y) - np.abs(true)) / np.abs(true))[np.abs(true) > 1e-2].mean()
    # The errors are uniform in +-2^-9, relatively: the mean of 1.3e5 of them has a deviation of 3e-6.
    assert abs(bias) < 2e-5


def test_no_cliff_between_kernels():
    """tt-metal 30538: the error jumps where the width changes the kernel."""
    rng = numbers(29)
    for d in range(1, 301):
        x = (10 + rng.standard_normal((3, d))).astype(f4)
        Truth(x).check(truenorm.layer_norm(x))


def test_adaptive_norms():
    """TransformerEngine 789: each sample its own scale and shift."""
    rng = numbers(30)
    x = rng.standard_normal((3, 5, 16)).astype(f4)
    scale, shift = (rng.standard_normal((3, 1, 16)).astype(f4) for _ in range(2))
    y = truenorm.layer_norm(x, 1 + scale, shift)
    for sample in range(3):
        assert np.array_equal(y[sample], truenorm.layer_norm(x[sample], 1 + scale[sample, 0], shift[sample, 0]))


def test_channels_first_in_half():
    """ConvNeXt 80: squares of 300 overflow float16."""
    x = (300 + 30 * numbers(31).standard_normal((1, 768, 7, 7))).astype(f2)
    Truth(x, axis=1).check(truenorm.layer_norm(x, axis=1))


def test_leading_axis_of_one():
    """pytorch 84563."""
    assert truenorm.layer_norm(np.zeros((95, 1, 25), f4)).shape == (95, 1, 25)


def test_second_derivative():
    """pytorch 196700: the sign of a nested derivative."""

    def f(t):
        row = torch.stack([t, torch.zeros_like(t)])
        return truenorm.torch.layer_norm(row, (2,), torch.tensor([1.0, 2.0], dtype=torch.float64), None, 0.25).sum()

    t = torch.tensor(0.7, dtype=torch.float64)
    right = 3 * 0.7 / (1 + 0.7**2) ** 2.5
    one = torch.ones_like(t)

    def forward(function):
        return lambda s: torch.func.jvp(function, (s,), (one,))[1]

    for derivative in (torch.func.grad(torch.func.grad(f)), forward(forward(f)), forward(torch.func.grad(f))):
        assert abs(derivative(t).item() - right) < 1e-14


def test_gradient_is_the_same_with_a_graph():
    """pytorch 41332: two implementations of one gradient."""
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(3, 5, generator=rng, dtype=torch.float64, requires_grad=True)
    gamma = (0.1 * torch.randn(5, generator=rng, dtype=torch.float64)).requires_grad_()
    loss = (truenorm.torch.layer_norm(x, (5,), gamma) ** 3).sum()
    plain = torch.autograd.grad(loss, (x, gamma), retain_graph=True)
    for a, b in zip(plain, torch.autograd.grad(loss, (x, gamma), create_graph=True)):
        assert torch.equal(a, b.detach())


def test_float16_on_the_cpu():
    """pytorch 52291: it is there, and right."""
    x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float16)
    expected = F.layer_norm(x.double(), (3,)).half()
    assert torch.equal(truenorm.torch.layer_norm(x, (3,)), expected)

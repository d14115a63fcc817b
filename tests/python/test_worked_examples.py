"""The worked examples that the documentation prints, digit for digit."""

from pathlib import Path

import numpy as np
import pytest
import torch

import truenorm

DATA = Path(__file__).parents[2] / "data"


def shown(value, places):
    """As printed; a zero never with a minus sign."""
    return f"{value:.{places}f}"


def test_walk_through():
    x = np.array([3.0, 1.0, 5.0, 7.0])
    y, cache = truenorm.layer_norm_forward(x)
    assert [shown(v, 4) for v in y] == ["-0.4472", "-1.3416", "0.4472", "1.3416"]
    assert cache.mu.item() == 4.0 and cache.var.item() == 5.0
    assert shown(np.sqrt(cache.var.item()), 4) == "2.2361"
    assert shown(y.mean(), 8) == "0.00000000"
    assert shown(y.std(), 6) == "0.999999"


def test_walk_through_with_gamma_and_beta():
    x = np.array([3.0, 1.0, 5.0, 7.0])
    y = truenorm.layer_norm(x, 2.0, 1.0)
    assert [shown(v, 3) for v in y] == ["0.106", "-1.683", "1.894", "3.683"]
    by_hand = truenorm.layer_norm(x, 2.0, 1.0, eps=0)
    assert shown(by_hand.mean(), 4) == "1.0000" and shown(by_hand.std(), 4) == "2.0000"


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_batch(kind):
    x = np.load(DATA / "worked_batch" / "x.npy")
    assert x.shape == (2, 4, 8) and x.dtype == np.float32
    gamma, beta = np.ones(8, np.float32), np.zeros(8, np.float32)
    if kind == "torch":
        y = truenorm.layer_norm(*map(torch.from_numpy, (x, gamma, beta))).numpy()
    else:
        y = truenorm.layer_norm(x, gamma, beta)
    for token, mean, deviation in ((0, "1.410", "2.718"), (1, "0.350", "2.670")):
        before, after = x[0, token].astype(np.float64), y[0, token].astype(np.float64)
        assert (shown(before.mean(), 3), shown(before.std(ddof=1), 3)) == (mean, deviation)
        # Rounding leaves a mean of +-1e-8: the sign of what is printed as zero is not to be shown.
        assert shown(abs(after.mean()), 6) == "0.000000"
        assert shown(after.std(ddof=1), 6) == "1.069044"  # sqrt(8/7) = 1.069045, less because of eps
        assert shown(after.std(), 6) == "0.999999"


def test_batch_is_what_pytorch_draws():
    torch.manual_seed(42)
    torch.randn(512)
    drawn = torch.randn(2, 4, 8) * 3 + 2
    assert np.array_equal(drawn.numpy(), np.load(DATA / "worked_batch" / "x.npy"))


def test_cache_has_six_entries(rng):
    x = rng.standard_normal((2, 3, 8)).astype(np.float32)
    gamma = rng.standard_normal(8).astype(np.float32)
    y, cache = truenorm.layer_norm_forward(x, gamma, None, 1e-5)
    assert len(cache) == 6
    kept, x_norm, mu, var, kept_gamma, eps = cache
    assert kept is x and kept_gamma is gamma and eps == 1e-5
    assert mu.shape == var.shape == (2, 3, 1)
    assert np.array_equal(cache[1], x_norm) and np.array_equal(cache.x_norm, truenorm.layer_norm(x))
    assert cache[-1] == 1e-5 and [type(v) for v in cache[2:4]] == [np.ndarray] * 2
    with pytest.raises(IndexError):
        cache[6]
    wide = x.astype(np.float64)
    np.testing.assert_allclose(mu, wide.mean(-1, keepdims=True), rtol=0, atol=1e-13)
    np.testing.assert_allclose(var, wide.var(-1, keepdims=True), rtol=1e-12)


def test_cache_keeps_a_few_bytes_a_row():
    for dtype, bytes_a_row in ((np.float32, 16), (np.float64, 24)):
        x = np.zeros((5, 7, 768), dtype)
        _, cache = truenorm.layer_norm_forward(x)
        assert cache.nbytes == 35 * bytes_a_row


def test_signature_learners_know():
    x = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
    y = truenorm.layer_norm(x, torch.ones(4), torch.zeros(4), eps=1e-5)
    assert y.shape == torch.Size([1, 4])
    assert torch.equal(truenorm.layer_norm(x, 1, 0), y)
    assert truenorm.layer_norm([[1, 2, 3, 4]], 1, 0).shape == (1, 4)


def test_each_token_on_its_own(rng):
    """Changing one token changes no other; batch normalization over the same numbers does not have this."""
    x = rng.standard_normal((4, 6, 16)).astype(np.float32)
    y = truenorm.layer_norm(x)
    other = x.copy()
    other[1, 2] = 100 * rng.standard_normal(16)
    changed = truenorm.layer_norm(other)
    same = np.ones((4, 6), bool)
    same[1, 2] = False
    assert np.array_equal(changed[same], y[same]) and not np.array_equal(changed[1, 2], y[1, 2])

    def batch_norm(v):
        return (v - v.mean((0, 1))) / np.sqrt(v.var((0, 1)) + 1e-5)

    assert not np.any(np.all(batch_norm(x) == batch_norm(other), axis=-1))


def test_affine_step_can_undo(rng):
    x = 3 * rng.standard_normal((1, 64)) + 2
    _, cache = truenorm.layer_norm_forward(x, eps=0)
    back = truenorm.layer_norm(x, np.full(64, np.sqrt(cache.var.item())), np.full(64, cache.mu.item()), eps=0)
    np.testing.assert_allclose(back, x, rtol=0, atol=1e-13)

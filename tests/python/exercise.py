"""Layer normalization from scratch, as courses set it: everything but the function itself.

The tests run this file twice, once as it is and once with its first import changed.
"""

from my_layer_norm import layer_norm, layer_norm_backward, layer_norm_forward

import numpy as np
import torch
from torch import nn


class MyLayerNorm(nn.Module):
    def __init__(self, features, eps=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(features))
        self.beta = nn.Parameter(torch.zeros(features))
        self.eps = eps

    def forward(self, x):
        return layer_norm(x, self.gamma, self.beta, self.eps)


def first_values():
    x = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
    y = layer_norm(x, torch.ones(4), torch.zeros(4))
    return y.shape, y


def same_as_pytorch():
    torch.manual_seed(0)
    x = torch.randn(2, 5, 16) * 3 + 2
    gamma, beta = torch.randn(16), torch.randn(16)
    mine = layer_norm(x, gamma, beta, eps=1e-5)
    return torch.allclose(mine, nn.functional.layer_norm(x, (16,), gamma, beta, 1e-5), atol=1e-5)


def mean_and_deviation():
    x = np.random.default_rng(0).standard_normal((4, 10, 32)) * 3 + 2
    y = layer_norm(x, np.ones(32), np.zeros(32))
    return np.allclose(y.mean(axis=-1), 0, atol=1e-7), np.allclose(y.std(axis=-1), 1, atol=1e-3)


def gradient_check():
    rng = np.random.default_rng(1)
    x, gamma, beta = rng.standard_normal((3, 5)), rng.standard_normal(5), rng.standard_normal(5)
    dout = rng.standard_normal((3, 5))
    out, cache = layer_norm_forward(x, gamma, beta, 1e-5)
    dx, dgamma, dbeta = layer_norm_backward(dout, cache)

    def numeric(array, f, h=1e-6):
        grad = np.zeros_like(array)
        for i in np.ndindex(*array.shape):
            old = array[i]
            array[i] = old + h
            up = f()
            array[i] = old - h
            down = f()
            array[i] = old
            grad[i] = ((up - down) * dout).sum() / (2 * h)
        return grad

    def again():
        return layer_norm_forward(x, gamma, beta, 1e-5)[0]

    pairs = ((dx, numeric(x, again)), (dgamma, numeric(gamma, again)), (dbeta, numeric(beta, again)))
    return max(np.abs(a - b).max() for a, b in pairs)


def backward_by_hand():
    """What learners write themselves, from the six entries of the cache."""
    rng = np.random.default_rng(2)
    x, gamma, beta, dout = rng.standard_normal((4, 6)), rng.standard_normal(6), np.zeros(6), rng.standard_normal((4, 6))
    _, cache = layer_norm_forward(x, gamma, beta, 1e-5)
    x, x_norm, mu, var, gamma, eps = cache
    d = x.shape[-1]
    dx_norm = dout * gamma
    inverse = 1.0 / np.sqrt(var + eps)
    dvar = np.sum(dx_norm * (x - mu) * -0.5 * inverse**3, axis=-1, keepdims=True)
    dmu = np.sum(-dx_norm * inverse, axis=-1, keepdims=True)
    by_hand = dx_norm * inverse + dvar * 2 * (x - mu) / d + dmu / d
    return np.abs(by_hand - layer_norm_backward(dout, cache)[0]).max()


def training(steps=60):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), MyLayerNorm(16), nn.ReLU(), nn.Linear(16, 1))
    x = torch.randn(64, 8)
    target = x.sum(dim=1, keepdim=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = ((model(x) - target) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model[1].gamma.grad.abs().sum().item()

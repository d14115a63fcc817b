"""The usual from-scratch exercise runs on truenorm with only its import changed."""

import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch

SOURCE = (Path(__file__).parent / "exercise.py").read_text()
IMPORT = "from my_layer_norm import"


def formula(x, gamma, beta, eps=1e-5):
    """A learner's answer, for NumPy and PyTorch."""
    mean = x.mean(-1, keepdims=True)
    var = ((x - mean) ** 2).mean(-1, keepdims=True)
    return gamma * (x - mean) / (var + eps) ** 0.5 + beta


def formula_forward(x, gamma, beta, eps=1e-5):
    mean = x.mean(-1, keepdims=True)
    var = ((x - mean) ** 2).mean(-1, keepdims=True)
    return formula(x, gamma, beta, eps), (x, (x - mean) / np.sqrt(var + eps), mean, var, gamma, eps)


def formula_backward(dout, cache):
    x, x_norm, mean, var, gamma, eps = cache
    g = gamma * dout
    dx = (g - g.mean(-1, keepdims=True) - x_norm * (g * x_norm).mean(-1, keepdims=True)) / np.sqrt(var + eps)
    return dx, (dout * x_norm).sum(0), dout.sum(0)


@pytest.fixture(params=["as it is", "import changed"])
def exercise(request, monkeypatch):
    source = SOURCE
    if request.param == "import changed":
        assert source.count(IMPORT) == 1
        source = source.replace(IMPORT, "from truenorm import")
    else:
        module = types.ModuleType("my_layer_norm")
        module.layer_norm = formula
        module.layer_norm_forward, module.layer_norm_backward = formula_forward, formula_backward
        monkeypatch.setitem(sys.modules, "my_layer_norm", module)
    namespace = {"__name__": "exercise"}
    exec(compile(source, "exercise.py", "exec"), namespace)
    return types.SimpleNamespace(**namespace)


def test_exercise(exercise):
    shape, y = exercise.first_values()
    assert shape == torch.Size([1, 4])
    assert np.allclose(y.numpy(), [[-1.3416, -0.4472, 0.4472, 1.3416]], atol=5e-5)
    assert exercise.same_as_pytorch()
    assert exercise.mean_and_deviation() == (True, True)
    # Central differences with h = 1e-6 are right to some h^2 + 1e-16/h.
    assert exercise.gradient_check() < 1e-8
    assert exercise.backward_by_hand() < 1e-13
    losses, gamma_gradient = exercise.training()
    assert losses[-1] < 0.2 * losses[0] and gamma_gradient > 0

"""A small call takes the short way; bench/call_overhead.py measures what that costs."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from truenorm import _core, _torch_autograd

SCRIPT = Path(__file__).parents[2] / "bench" / "call_overhead.py"


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_plain_arrays_go_straight_to_the_library(dtype):
    x, gamma = np.ones((3, 8), dtype), np.ones(8, dtype)
    assert _core.layer_norm_numpy(x, gamma, gamma, 1e-5, 0) is not None
    assert _core.layer_norm_numpy(x, None, None, 1e-5, 1) is not None


@pytest.mark.parametrize("shape", [8, (8,), (3, 8), torch.Size([8])], ids=str)
@pytest.mark.parametrize("context", [torch.enable_grad, torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_plain_tensors_do_not_go_through_the_operator(dtype, context, shape):
    size = (shape,) if isinstance(shape, int) else shape
    x, bias = torch.ones(2, 3, 8, dtype=dtype), torch.zeros(size, dtype=dtype)
    weight = torch.nn.Parameter(torch.ones(size, dtype=dtype))
    with context():
        y = _torch_autograd.direct(x, shape, weight, bias, 1e-5)
    assert y is not None
    if context is torch.enable_grad:
        assert type(y.grad_fn).__name__ == "_DirectBackward"


def test_measurement_runs():
    """Its limits are for a quiet machine (--check), not for tests."""
    done = subprocess.run(
        [sys.executable, SCRIPT, "--rounds", "1"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    for name in ("NumPy", "PyTorch", "PyTorch, with gradients", "PyTorch, forward and backward"):
        assert f"\n{name} " in done.stdout

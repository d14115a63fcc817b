"""What a small call costs from Python: (1, 64) float32, median of interleaved rounds.

    python bench/call_overhead.py [--check]

NumPy: truenorm.layer_norm beside a call of the extension that does nothing with the same arguments; PyTorch:
truenorm.torch.layer_norm beside torch.nn.functional.layer_norm, without and with gradients. --check fails when NumPy
costs more than 2 microseconds over nothing, PyTorch more than 2 times PyTorch's own (3 times with gradients). The time
is that of this thread alone (time.thread_time), so that other work on the machine matters little.
"""

import argparse
import statistics
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

import truenorm
import truenorm.torch
from truenorm import _core


def calls():
    """{name: (call, what it is measured beside)}."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 64)).astype(np.float32)
    gamma, beta = rng.standard_normal(64).astype(np.float32), rng.standard_normal(64).astype(np.float32)
    t_x, t_gamma, t_beta = map(torch.from_numpy, (x, gamma, beta))
    g_gamma, g_beta = t_gamma.clone().requires_grad_(), t_beta.clone().requires_grad_()
    dy = torch.ones(1, 64)
    shape = (64,)

    def both_ways(function):
        y = function(t_x, shape, g_gamma, g_beta)
        torch.autograd.grad(y, (g_gamma, g_beta), dy)

    theirs, mine = F.layer_norm, truenorm.torch.layer_norm
    return {
        "NumPy": (lambda: truenorm.layer_norm(x, gamma, beta), lambda: _core.nothing(x, gamma, beta, 1e-5, 0)),
        "PyTorch": (lambda: mine(t_x, shape, t_gamma, t_beta), lambda: theirs(t_x, shape, t_gamma, t_beta)),
        "PyTorch, with gradients": (
            lambda: mine(t_x, shape, g_gamma, g_beta),
            lambda: theirs(t_x, shape, g_gamma, g_beta),
        ),
        "PyTorch, forward and backward": (lambda: both_ways(mine), lambda: both_ways(theirs)),
    }


def microseconds(call, count):
    start = time.thread_time()
    for _ in range(count):
        call()
    return (time.thread_time() - start) / count * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail beyond the limits")
    parser.add_argument("--rounds", type=int, default=101)
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = {name: ([], []) for name in calls()}
    for _ in range(options.rounds):
        for name, pair in calls().items():
            for call, times in zip(pair, found[name]):
                times.append(microseconds(call, 200))
    limits = {"NumPy": None, "PyTorch": 2, "PyTorch, with gradients": 3}
    failed = False
    print(f"{'':32}{'truenorm':>10}{'beside':>10}{'ratio':>8}   microseconds")
    for name, pair in found.items():
        mine, theirs = map(statistics.median, pair)
        print(f"{name:32}{mine:10.2f}{theirs:10.2f}{mine / theirs:8.2f}")
        if name == "NumPy":
            failed |= mine > theirs + 2
        elif name in limits:
            failed |= mine > limits[name] * theirs
    if options.check and failed:
        sys.exit("call_overhead.py: a call costs more than its limit")


if __name__ == "__main__":
    main()

"""The programs in examples/python run and say what they should."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "python"


def run(name, *arguments):
    # One thread: PyTorch's threads wait for each other in a busy loop, which hurts where tests run side by side.
    done = subprocess.run(
        [sys.executable, EXAMPLES / name, *map(str, arguments)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_training(tmp_path):
    for package in ("matplotlib", "tqdm"):
        pytest.importorskip(package)
    output = run("train.py", "--steps", 3, "--out", tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"loss.png", "scale.png", "gradients.png"}
    assert output.count(": loss ") == 4
    sizes = {
        (kind, place): float(behind)
        for kind, place, behind in re.findall(r"(\w+), norm (\w+): size \S+ before, (\S+) behind", output)
    }
    for kind in ("Transformer", "SSM"):
        assert abs(sizes[kind, "after"] - 1) < 1e-3  # a norm comes last
        assert sizes[kind, "before"] > 1
    errors = {
        name: [float(g), float(b)]
        for name, g, b in re.findall(r"(\w+): bfloat16 gradients over 16384 rows are off by (\S+)% \(gamma\), (\S+)% \(beta\)", output)
    }
    # Rounding once to 8 bits costs at most 2^-8, 0.39 %; a bfloat16 running sum stops growing.
    assert max(errors["truenorm"]) <= 0.4 and errors["PyTorch"][1] > 10


def test_first_example():
    assert "-1.683" in run("first.py")

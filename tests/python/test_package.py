"""The package itself: what importing it costs, its version, its types and stubs."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import truenorm

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "python" / "truenorm"


def run(*command, **variables):
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=600, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_import_brings_nothing_but_numpy():
    program = """
import sys, truenorm, truenorm.onnx
truenorm.layer_norm([1.0, 2.0])
heavy = {"torch", "jax", "matplotlib", "ml_dtypes", "onnx", "scipy"}
print(sorted(heavy & set(sys.modules)))
"""
    assert run(sys.executable, "-c", program).strip() == "[]"


def test_works_without_the_optional_packages():
    """With PyTorch, JAX and ml_dtypes hidden, NumPy arrays work and truenorm.torch says what is missing."""
    program = """
import sys
for name in ("torch", "jax", "ml_dtypes", "matplotlib"):
    sys.modules[name] = None
import numpy as np, truenorm
x = np.arange(6.0).reshape(2, 3)
y, cache = truenorm.layer_norm_forward(x, axis=0)
truenorm.layer_norm_backward(x, cache)
try:
    import truenorm.torch
except ImportError as error:
    print(error)
"""
    assert "torch" in run(sys.executable, "-c", program)


def test_version_is_that_of_the_header():
    header = (ROOT / "include" / "truenorm" / "truenorm.h").read_text()
    parts = [re.search(rf"TRUENORM_VERSION_{p}\s+(\d+)", header)[1] for p in ("MAJOR", "MINOR", "PATCH")]
    assert truenorm.__version__ == ".".join(parts)
    spec = re.search(r"TRUENORM_SPEC_VERSION\s+(\d+)", header)[1]
    assert truenorm.spec_version == int(spec)


def test_signatures():
    """Names that others rely on."""
    import inspect

    common = "(x, gamma=None, beta=None, eps=1e-05, *, axis=-1, normalized_shape=None, out=None, num_threads=None)"
    for function, expected in (
        (truenorm.layer_norm, common),
        (truenorm.layer_norm_forward, common),
        (truenorm.layer_norm_backward, "(dy, cache, *, num_threads=None)"),
        (truenorm.set_num_threads, "(num_threads)"),
        (truenorm.get_num_threads, "()"),
        (truenorm.set_thread_wait, "(microseconds)"),
        (truenorm.get_thread_wait, "()"),
        (truenorm.get_isa, "()"),
    ):
        bare = inspect.signature(function)
        bare = bare.replace(
            parameters=[p.replace(annotation=p.empty) for p in bare.parameters.values()],
            return_annotation=bare.empty,
        )
        assert str(bare) == expected and function.__doc__


def shape_of(stub):
    """A stub without what differs between versions of the generator: comments, docstrings and blank lines."""
    tree = ast.parse(stub)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.Module)) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Expr(ast.Constant(...))]
    return ast.unparse(tree)


def test_stub_of_the_extension_is_up_to_date(tmp_path):
    pytest.importorskip("nanobind")
    made = tmp_path / "_core.pyi"
    run(sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "truenorm._core", "-o", str(made))
    assert shape_of(made.read_text()) == shape_of((SOURCE / "_core.pyi").read_text()), (
        "run: python -m nanobind.stubgen -m truenorm._core -o python/truenorm/_core.pyi"
    )


def test_installed_files_are_those_of_the_tree():
    """The tests run on what pip installed: it must be this tree's, with its types."""
    installed = Path(truenorm.__file__).parent
    for path in SOURCE.iterdir():
        if path.suffix in (".py", ".pyi") or path.name == "py.typed":
            assert (installed / path.name).read_bytes() == path.read_bytes(), f"{path.name}: run pip install . again"


def test_mypy_strict():
    pytest.importorskip("mypy")
    print(run(sys.executable, "-m", "mypy", "--strict", "--config-file", "pyproject.toml", MYPY_CACHE_DIR=os.devnull))

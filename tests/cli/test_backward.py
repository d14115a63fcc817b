"""truenorm backward: dx, dgamma and dbeta of files against PyTorch in float64."""

import json
import os

import ml_dtypes
import numpy as np
import pytest
import torch

import truenorm as library

EPS = {"float64": 1e-12, "float32": 1e-5, "float16": 1e-2, "bfloat16": 8e-2}
TYPES = {"float64": np.float64, "float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def rows(shape, dtype="float32", seed=7):
    return (np.random.default_rng(seed).standard_normal(shape) * 3 + 2).astype(TYPES[dtype])


def load(path):
    array = np.load(path)
    return array.view(ml_dtypes.bfloat16) if array.dtype.kind == "V" else array


def gradients(x, dy, gamma=None, axis=-1, eps=1e-5):
    x, dy = (torch.tensor(np.moveaxis(a.astype(np.float64), axis, -1)) for a in (x, dy))
    d = x.shape[-1]
    weight = torch.ones(d, dtype=torch.float64) if gamma is None else torch.tensor(gamma.astype(np.float64))
    bias = torch.zeros(d, dtype=torch.float64)
    for tensor in (x, weight, bias):
        tensor.requires_grad_()
    torch.nn.functional.layer_norm(x, (d,), weight, bias, eps).backward(dy)
    return np.moveaxis(x.grad.numpy(), -1, axis), weight.grad.numpy(), bias.grad.numpy()


def check(got, want, dtype):
    # Sums of both signs: relative to the largest value.
    assert np.abs(got.astype(np.float64) - want).max() <= EPS[dtype] * np.abs(want).max()


OUTPUTS = ("--dx", "dx.npy", "--dgamma", "dgamma.npy", "--dbeta", "dbeta.npy")


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type(truenorm, tmp_path, dtype):
    x, dy, gamma = rows((5, 7, 33), dtype), rows((5, 7, 33), dtype, 1), rows(33, dtype, 2)
    for name, array in (("x", x), ("dy", dy), ("gamma", gamma)):
        np.save(tmp_path / f"{name}.npy", array)
    # ml_dtypes' type is a raw one to NumPy, so that gamma's own type is taken too.
    truenorm.ok("backward", "x.npy", "dy.npy", "--gamma", "gamma.npy", *OUTPUTS)
    for name, want in zip(("dx", "dgamma", "dbeta"), gradients(x, dy, gamma)):
        got = load(tmp_path / f"{name}.npy")
        assert got.dtype == x.dtype and got.shape == want.shape
        check(got, want, dtype)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("order", ["C", "F"])
def test_any_axis(truenorm, tmp_path, axis, order):
    x, dy = rows((6, 4, 5)), rows((6, 4, 5), seed=1)
    np.save(tmp_path / "x.npy", np.asarray(x, order=order))
    np.save(tmp_path / "dy.npy", np.asarray(dy, order=order))
    truenorm.ok("backward", "x.npy", "dy.npy", "--axis", axis, *OUTPUTS)
    for name, want in zip(("dx", "dgamma", "dbeta"), gradients(x, dy, axis=axis)):
        check(np.load(tmp_path / f"{name}.npy"), want, "float32")


def test_many_pieces_and_a_wider_type(truenorm, tmp_path):
    # 31 MB: eight pieces. Ones in dy: dbeta is the number of rows, exactly, in every type.
    x = rows((10000, 768))
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "dy.npy", np.ones_like(x))
    truenorm.ok("backward", "x.npy", "dy.npy", "--dgamma", "dgamma.npy", "--dbeta", "dbeta.npy", "--grad-dtype", "float64")
    assert np.array_equal(np.load(tmp_path / "dbeta.npy"), np.full(768, 10000.0))
    want = gradients(x, np.ones_like(x))[1]
    got = np.load(tmp_path / "dgamma.npy")
    # x_hat, of some 1 on average, is a float32 with an error of a few 2^-25 in each of the rows.
    assert got.dtype == np.float64 and np.abs(got - want).max() <= 2.0**-24 * 10000
    outputs = set()
    for threads in (1, 3):
        truenorm.ok("backward", "x.npy", "dy.npy", "--dgamma", "dgamma.npy", "--threads", threads)
        outputs.add((tmp_path / "dgamma.npy").read_bytes())
    assert len(outputs) == 1


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("shape", [(9001, 768), (20, 300_001), (700_000, 5), (65, 70_000)])
def test_files_of_many_pieces_have_the_bits_of_one_call(truenorm, tmp_path, dtype, shape):
    x, dy, gamma = rows(shape, dtype), rows(shape, dtype, 1), rows(shape[1], dtype, 2)
    for name, array in (("x", x), ("dy", dy), ("gamma", gamma)):
        np.save(tmp_path / f"{name}.npy", array)
    want = library.layer_norm_backward(dy, library.layer_norm_forward(x, gamma, np.zeros_like(gamma))[1])  # with dbeta
    for threads in (1, 2):
        truenorm.ok("backward", "x.npy", "dy.npy", "--gamma", "gamma.npy", *OUTPUTS, "--threads", threads)
        for name, array in zip(("dx", "dgamma", "dbeta"), want):
            got = np.load(tmp_path / f"{name}.npy")
            assert got.dtype.itemsize == array.dtype.itemsize and got.tobytes() == array.tobytes(), (name, threads)


@pytest.mark.parametrize("dtype", TYPES)
def test_the_parameters_of_apply_serve(truenorm, tmp_path, dtype):
    """beta may be there, in any form and type: it changes no bit and no type of the gradients."""
    x, gamma, beta = rows((5, 33), dtype), rows(33, dtype, 1), rows(33, dtype, 2)
    np.savez(tmp_path / "norm.npz", **{"n.weight": gamma, "n.bias": beta})
    for name, array in (("x", x), ("gamma", gamma), ("beta", beta), ("wide", beta.astype(np.float64)), ("column", beta[:, None])):
        np.save(tmp_path / f"{name}.npy", array)
    outputs = []
    numbers = ",".join(str(float(b)) for b in beta)
    for beta in ([], ["--beta", "beta.npy"], ["--beta", "3"], ["--beta", numbers], ["--beta", "wide.npy"], ["--beta", "column.npy"]):
        if "column.npy" not in beta:
            truenorm.ok("apply", "x.npy", "-o", "y.npy", "--gamma", "gamma.npy", *beta)
        truenorm.ok("backward", "x.npy", "x.npy", "--gamma", "gamma.npy", *beta, *OUTPUTS)
        outputs.append([(tmp_path / f"{name}.npy").read_bytes() for name in ("dx", "dgamma", "dbeta")])
    if dtype != "bfloat16":  # .npz has no such type
        truenorm.ok("backward", "x.npy", "x.npy", "--prefix", "norm.npz:n", *OUTPUTS)
        outputs.append([(tmp_path / f"{name}.npy").read_bytes() for name in ("dx", "dgamma", "dbeta")])
    assert all(each == outputs[0] for each in outputs)
    assert "is an input as well" in truenorm.bad("backward", "x.npy", "x.npy", "--beta", "beta.npy", "--dbeta", "beta.npy")
    page = " ".join(truenorm.ok("backward", "--help").split())
    assert "its shape is checked, the gradients do not depend on it" in page


def test_half_gradients_of_ones(truenorm, tmp_path):
    """The bias gradient of 4096 rows of ones is 4096, not where half-precision sums get stuck."""
    for dtype in ("float16", "bfloat16"):
        np.save(tmp_path / "x.npy", rows((4096, 8), dtype))
        np.save(tmp_path / "dy.npy", np.ones((4096, 8), TYPES[dtype]))
        truenorm.ok("backward", "x.npy", "dy.npy", "--dbeta", "dbeta.npy")
        assert np.all(load(tmp_path / "dbeta.npy").astype(np.float64) == 4096)


def test_report(truenorm, tmp_path):
    np.save(tmp_path / "x.npy", rows((3, 4)))
    report = json.loads(truenorm.ok("backward", "x.npy", "x.npy", "--dx", "dx.npy", "--json"))
    assert (report["rows"], report["d"], report["dx"]) == (3, 4, "dx.npy")
    assert "3 rows of 4 features" in truenorm.run("backward", "x.npy", "x.npy", "--dx", "dx.npy").stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["x.npy", "x.npy"], ["--dx", "--dgamma"]),
        (["x.npy", "short.npy", "--dx", "dx.npy"], ["short.npy", "(2, 4)", "(3, 4)"]),
        (["x.npy", "half.npy", "--dx", "dx.npy"], ["half.npy", "float16", "float32"]),
        (["x.npy", "x.npy", "--dx", "x.npy"], ["x.npy", "input"]),
        (["x.npy", "dy.npy", "--dx", "dy.npy"], ["dy.npy", "input"]),
        (["x.npy", "x.npy", "--dx", "dx.npy", "--dbeta", "./dx.npy"], ["dx.npy", "output"]),
        (["x.npy", "x.npy", "--dgamma", "g.npy", "--grad-dtype", "float16"], ["--grad-dtype", "float16"]),
        (["x.npy", "x.npy", "--dx", "dx.npy", "--out-dtype", "float16"], ["--out-dtype: float16", "x of type float32", "expected float32"]),
        (["x.npy", "x.npy", "--dx", "dx.npy", "--beta", "1,2"], ["--beta", "2 values", "4 features"]),
        (["x.npy", "x.npy", "--dx", "dx.npy", "--beta", "x.npy"], ["--beta", "(3, 4)"]),
        (["x.npy", "x.npy", "--dx", "dx.npy", "--beta", "missing.npy"], ["--beta: missing.npy"]),
        (["x.npy", "fortran.npy", "--dx", "dx.npy"], ["fortran.npy", "is in Fortran order", "expected that of x, C order", "ascontiguousarray"]),
        (["fortran.npy", "x.npy", "--dx", "dx.npy"], ["x.npy", "is in C order", "expected that of x, Fortran order", "asfortranarray"]),
        (["x.npy", "x.npy", "--dx", "no/dx.npy", "--dbeta", "dbeta.npy"], ["no/dx.npy"]),
        (["-", "-", "--dx", "dx.npy"], ["x and dy are both the standard input", "expected a file"]),
        (["x.npy", "-", "--gamma", "-", "--dx", "dx.npy"], ["--gamma and dy are both the standard input", "expected a file"]),
        (["x.npy", "missing.npy", "--dx", "dx.npy"], ["missing.npy"]),
    ],
)
def test_bad_input_leaves_nothing(truenorm, tmp_path, arguments, words):
    for name, array in (("x", rows((3, 4))), ("dy", rows((3, 4))), ("short", rows((2, 4))), ("half", rows((3, 4), "float16")),
                        ("fortran", np.asfortranarray(rows((3, 4))))):
        np.save(tmp_path / f"{name}.npy", array)
    before = sorted(os.listdir(tmp_path))
    line = truenorm.bad("backward", *arguments)
    assert all(word in line for word in words), line
    assert sorted(os.listdir(tmp_path)) == before

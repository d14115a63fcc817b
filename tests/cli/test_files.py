"""truenorm apply: .npy files in, .npy files out, and nothing half-written."""

import json
import os
import re
import resource

import ml_dtypes
import numpy as np
import pytest

TYPES = {"float64": np.float64, "float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
# The contract's N, with what the float64 reference itself may be off.
BOUND = {"float64": 17, "float32": 5, "float16": 0.52, "bfloat16": 0.52}


def load(path, dtype):
    """NumPy reads ml_dtypes' bfloat16 back as raw two-byte records."""
    array = np.load(path)
    return array.view(ml_dtypes.bfloat16) if dtype == "bfloat16" else array


def reference(x, gamma=1.0, beta=0.0, eps=1e-5, axis=-1):
    """The right answer, and W = |gamma*x_hat| + |beta|, in whose units of the last place errors are counted."""
    x = x.astype(np.float64)
    scaled = (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + eps) * gamma
    return scaled + beta, np.abs(scaled) + np.abs(beta)


def close(y, answer, dtype):
    want, size = answer
    info = ml_dtypes.finfo(TYPES[dtype])
    ulp = np.maximum(float(info.eps) * np.exp2(np.floor(np.log2(size))), float(info.smallest_subnormal))
    # The contract's 2^-44*|gamma|*X, where |gamma| and X are at most 10; it covers this reference's own error too.
    return bool(np.all(np.abs(y.astype(np.float64) - want) <= BOUND[dtype] * ulp + 2.0**-44 * 100))


def rows(shape, dtype="float32", seed=7):
    return (np.random.default_rng(seed).standard_normal(shape) * 3 + 2).astype(TYPES[dtype])


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type(truenorm, tmp_path, dtype):
    x = rows((5, 7, 33), dtype)
    np.save(tmp_path / "x.npy", x)
    truenorm.ok("apply", "x.npy", "-o", "y.npy")
    y = load(tmp_path / "y.npy", dtype)
    assert y.dtype == x.dtype and y.shape == x.shape
    assert close(y, reference(x), dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_to_float32(truenorm, tmp_path, dtype):
    x = rows((5, 33), dtype)
    np.save(tmp_path / "x.npy", x)
    truenorm.ok("apply", "x.npy", "-o", "y.npy", "--out-dtype", "float32", "--gamma", "2", "--beta", "1")
    y = np.load(tmp_path / "y.npy")
    assert y.dtype == np.float32 and close(y, reference(x, 2, 1), "float32")


def test_parameters_from_files_lists_and_numbers(truenorm, tmp_path):
    x, gamma, beta = rows((4, 5)), rows(5, seed=1), rows(5, seed=2)
    files = {"x": x, "gamma": gamma, "beta": beta, "gamma64": gamma.astype(np.float64), "row": gamma[None]}
    for name, array in files.items():
        np.save(tmp_path / f"{name}.npy", array)
    want = reference(x, gamma.astype(np.float64), beta.astype(np.float64))
    outputs = []
    for given in ("gamma.npy", "gamma64.npy", "row.npy", ",".join(repr(float(g)) for g in gamma)):
        truenorm.ok("apply", "x.npy", "-o", "y.npy", "--gamma", given, "--beta", "beta.npy")
        outputs.append((tmp_path / "y.npy").read_bytes())
        assert close(np.load(tmp_path / "y.npy"), want, "float32")
    assert len(set(outputs)) == 1


@pytest.mark.parametrize("command", [["apply", "x.npy", "-o", "y.npy"], ["stats", "x.npy", "--json"], ["explain", "--file", "x.npy", "--json"],
                                     ["explain", "3", "-1", "-.5", "1e-5", "7", "--json"], ["backward", "x.npy", "x.npy", "--dx", "y.npy"]],
                         ids=["apply", "stats", "explain-file", "explain", "backward"])
def test_parameters_in_every_form_in_every_command(truenorm, tmp_path, command):
    """A number, lists of several spellings, or a file, also with negative numbers and without leading zeros."""
    np.save(tmp_path / "x.npy", rows((4, 5)))
    np.save(tmp_path / "same.npy", np.full(5, -0.5, np.float32))
    np.save(tmp_path / "g.npy", np.array([-0.5, 1e-5, 2, -3, 0.25]))
    forms = [["-.5", "-0.5", "-5e-1", "-.5,-.5,-.5,-.5,-.5", "same.npy"], ["-.5,1e-5,2,-3,.25", "-.5 1e-5 2 -3 .25", "[-.5, 1e-5, 2, -3, .25]", "g.npy"]]
    for same in forms:
        results = []
        for value in same:
            for given in (["--gamma", value, "--beta", value], [f"--gamma={value}", f"--beta={value}"]):
                out = truenorm.ok(*command, *given)
                results.append((tmp_path / "y.npy").read_bytes() if "y.npy" in command else out)
        assert len(set(results)) == 1


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("order", ["C", "F"])
def test_any_axis_in_either_order(truenorm, tmp_path, axis, order):
    x = rows((3, 4, 5))
    np.save(tmp_path / "x.npy", np.asarray(x, order=order))
    truenorm.ok("apply", "x.npy", "-o", "y.npy", "--axis", axis, "--save-stats", "stats.npy")
    assert close(np.load(tmp_path / "y.npy"), reference(x, axis=axis), "float32")
    stats = np.load(tmp_path / "stats.npy")
    assert stats.dtype.names == ("mean", "var", "rstd")
    x = x.astype(np.float64)
    np.testing.assert_allclose(stats["mean"], x.mean(axis), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(stats["var"], x.var(axis), rtol=1e-11)
    np.testing.assert_allclose(stats["rstd"], 1 / np.sqrt(x.var(axis) + 1e-5), rtol=1e-11)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_big_endian(truenorm, tmp_path, dtype):
    x = rows((4, 9), dtype)
    np.save(tmp_path / "little.npy", x)
    np.save(tmp_path / "big.npy", x.astype(x.dtype.newbyteorder(">")))
    truenorm.ok("apply", "little.npy", "-o", "a.npy")
    truenorm.ok("apply", "big.npy", "-o", "b.npy")
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_npy_version(truenorm, tmp_path, version):
    x = rows((4, 9))
    with open(tmp_path / "x.npy", "wb") as file:
        np.lib.format.write_array(file, x, version=version)
    truenorm.ok("apply", "x.npy", "-o", "y.npy")
    assert close(np.load(tmp_path / "y.npy"), reference(x), "float32")


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (2, 0, 5), (1, 1), (4,)])
def test_empty_and_small(truenorm, tmp_path, shape):
    np.save(tmp_path / "x.npy", np.ones(shape, np.float32))
    truenorm.ok("apply", "x.npy", "-o", "y.npy", "--beta", "3")
    y = np.load(tmp_path / "y.npy")
    assert y.shape == shape and np.all(y == 3)
    truenorm.ok("stats", "x.npy")


def test_rows_of_no_features_have_no_statistics(truenorm, tmp_path):
    # Its header can claim any number of rows: their records would fill the disk.
    with open(tmp_path / "x.npy", "wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (1152921504606846975, 0)}
        np.lib.format.write_array_header_1_0(file, header)
    truenorm.ok("apply", "x.npy", "-o", "y.npy")
    line = truenorm.bad("apply", "x.npy", "-o", "z.npy", "--save-stats", "stats.npy")
    assert "--save-stats" in line and "no features" in line
    assert not (tmp_path / "z.npy").exists() and not (tmp_path / "stats.npy").exists()


def test_pieces_give_the_same_bits_as_one_piece(truenorm, tmp_path):
    # 24 MB of rows: read in several pieces. The first row, repeated at the end, has the same bits there.
    x = rows((8000, 768))
    x[-1] = x[0]
    np.save(tmp_path / "x.npy", x)
    truenorm.ok("apply", "x.npy", "-o", "y.npy")
    y = np.load(tmp_path / "y.npy")
    assert np.array_equal(y[0], y[-1])
    assert close(y[3999:4001], reference(x[3999:4001]), "float32")


def test_threads_change_no_bit(truenorm, tmp_path):
    np.save(tmp_path / "x.npy", rows((3000, 768)))
    outputs = set()
    for threads in (0, 1, 3):
        truenorm.ok("apply", "x.npy", "-o", "y.npy", "--threads", threads)
        outputs.add((tmp_path / "y.npy").read_bytes())
    assert len(outputs) == 1


def test_report_at_the_end(truenorm, tmp_path):
    np.save(tmp_path / "x.npy", rows((1200, 8)))
    result = truenorm.run("apply", "x.npy", "-o", "y.npy")
    assert result.stdout == ""
    assert re.fullmatch(r"y\.npy: 1,200 rows of 8 features, float32 to float32, \d+\.\d{3} s, \d+\.\d\d GB/s\n", result.stderr)
    report = json.loads(truenorm.ok("apply", "x.npy", "-o", "y.npy", "--json"))
    assert report["rows"] == 1200 and report["d"] == 8 and report["seconds"] > 0 and report["gb_per_second"] > 0


def test_output_is_kept_when_something_fails(truenorm, tmp_path):
    np.save(tmp_path / "x.npy", rows((3, 4)))
    np.save(tmp_path / "gamma.npy", rows(4))
    (tmp_path / "y.npy").write_text("precious")
    truenorm.bad("apply", "x.npy", "-o", "y.npy", "--gamma", "1,2")
    assert (tmp_path / "y.npy").read_text() == "precious"
    content = (tmp_path / "x.npy").read_bytes()
    for output in ("x.npy", "./x.npy", "gamma.npy"):
        assert "is an input as well" in truenorm.bad("apply", "x.npy", "-o", output, "--gamma", "gamma.npy")
    assert (tmp_path / "x.npy").read_bytes() == content
    assert "no/y.npy" in truenorm.bad("apply", "x.npy", "-o", "no/y.npy")


def test_full_disk_leaves_nothing(truenorm, tmp_path):
    np.save(tmp_path / "x.npy", rows((1000, 64)))
    # A limit on the size of a file stands in for a full disk: the write fails with an error in the same way.
    def limit():
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    assert "y.npy: cannot be written" in truenorm.bad("apply", "x.npy", "-o", "y.npy", preexec_fn=limit)
    assert os.listdir(tmp_path) == ["x.npy"]


def test_new_files_get_the_usual_permissions(truenorm, tmp_path):
    np.save(tmp_path / "x.npy", rows((3, 4)))
    truenorm.ok("apply", "x.npy", "-o", "y.npy", preexec_fn=lambda: os.umask(0o027))
    assert (tmp_path / "y.npy").stat().st_mode & 0o777 == 0o640

"""Files of any size in less than 200 MB: what is resident, and rows that are larger than that themselves."""

import os
import subprocess
import sys
import zipfile

import ml_dtypes
import numpy as np
import pytest

# A small parent: Linux counts what a process was before exec() too, and this one has PyTorch in memory.
PEAK = """import os, sys
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(child, 0)
print(usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))"""


def peak(truenorm, *arguments, **options):
    """Runs it and gives back its peak resident memory in MB."""
    result = subprocess.run([sys.executable, "-S", "-c", PEAK, truenorm.program, *map(str, arguments)], cwd=truenorm.cwd,
                            capture_output=True, text=True, **options)
    assert result.returncode == 0, result.stderr
    return int(result.stdout.splitlines()[-1]) / 1024


def fill(path, shape, dtype=np.float32):
    """A file whose values differ, written without holding it."""
    some = (np.random.default_rng(7).standard_normal(100_003) * 3 + 2).astype(dtype)
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)),
                                                    "fortran_order": False, "shape": shape})
        left = int(np.prod(shape))
        while left > 0:
            file.write(some[:left].tobytes())
            left -= some.size


OUTPUTS = ("--dx", "dx.npy", "--dgamma", "dgamma.npy", "--dbeta", "dbeta.npy")


def test_memory_stays_below_200_mb(truenorm, tmp_path):
    fill(tmp_path / "x.npy", (72_000, 768))  # 221 MB
    assert peak(truenorm, "apply", "x.npy", "-o", "y.npy", "--save-stats", "s.npy") < 200
    assert peak(truenorm, "apply", "x.npy", "-o", "y.npy", "--axis", "0") < 200
    assert peak(truenorm, "stats", "x.npy") < 200
    for axis in (-1, 0):
        assert peak(truenorm, "backward", "x.npy", "y.npy", *OUTPUTS, "--axis", axis) < 200


def test_memory_stays_below_200_mb_where_nothing_can_be_read_twice(truenorm, tmp_path):
    """Pipes and compressed members: along the last axis as they come, along the first by way of a temporary file."""
    fill(tmp_path / "x.npy", (72_000, 768))  # 221 MB
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.write(tmp_path / "x.npy", "x.npy")
    for axis in (-1, 0):
        truenorm.ok("apply", "x.npy", "-o", "want.npy", "--axis", axis)
        want = (tmp_path / "want.npy").read_bytes()
        assert peak(truenorm, "apply", "x.npz", "-o", "y.npy", "--axis", axis) < 200
        assert (tmp_path / "y.npy").read_bytes() == want
        with subprocess.Popen(["cat", tmp_path / "x.npy"], stdout=subprocess.PIPE) as pipe:
            assert peak(truenorm, "apply", "-", "-o", "y.npy", "--axis", axis, stdin=pipe.stdout) < 200
        assert (tmp_path / "y.npy").read_bytes() == want


@pytest.mark.parametrize(("shape", "axis"), [((1, 60_000_000), 1), ((4_000_000, 1), 1), ((60_000_000, 1), 0), ((20_000_000, 3), 0)])
def test_rows_larger_than_memory(truenorm, tmp_path, shape, axis):
    fill(tmp_path / "x.npy", shape)  # up to 240 MB
    assert peak(truenorm, "apply", "x.npy", "-o", "y.npy", "--axis", axis) < 200
    assert peak(truenorm, "stats", "x.npy", "--axis", axis) < 200
    assert peak(truenorm, "backward", "x.npy", "x.npy", *OUTPUTS, "--axis", axis) < 200


@pytest.mark.parametrize(("shape", "axis"), [((2, 2_500_000), 1), ((2_500_000, 2), 0), ((2, 150_000, 30), 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16])
def test_rows_in_files_have_the_same_bits(truenorm, tmp_path, shape, axis, dtype):
    """As the same rows, one after another, in memory."""
    fill(tmp_path / "x.npy", shape, dtype)
    x = np.load(tmp_path / "x.npy")
    np.save(tmp_path / "rows.npy", np.moveaxis(x, axis, -1).copy())
    fill(tmp_path / "gamma.npy", (shape[axis],))
    parameters = ("--gamma", "gamma.npy", "--beta", "1")
    outputs = []
    for file, of_axis, memory in (("rows.npy", -1, "8G"), ("x.npy", axis, "116M")):
        options = ("--axis", of_axis, "--memory", memory)
        truenorm.ok("apply", file, "-o", "y.npy", "--save-stats", "s.npy", *options, *parameters)
        table = truenorm.ok("stats", file, *options).splitlines()[1:]
        truenorm.ok("backward", file, "y.npy", *OUTPUTS, *options, "--gamma", "gamma.npy")
        of_rows = [np.moveaxis(np.load(tmp_path / name), of_axis, -1).tobytes() for name in ("y.npy", "dx.npy")]
        outputs.append([table, *of_rows, *(np.load(tmp_path / name).tobytes() for name in ("s.npy", "dgamma.npy", "dbeta.npy"))])
    assert outputs[0] == outputs[1]


def test_what_is_too_large_is_named(truenorm, tmp_path):
    with open(tmp_path / "x.npy", "wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (1, 4_000_000_000)}
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + 16_000_000_000)  # takes no room
    line = truenorm.bad("apply", "x.npy", "-o", "y.npy")
    assert "4,000,000,000 features" in line and "--memory 200M" in line
    assert "at most" in truenorm.bad("explain", "--file", "x.npy")
    assert "at most" in truenorm.bad("stats", "x.npy", "--histogram", "0", "--memory", "2G")


def test_no_room_for_temporary_files(truenorm, tmp_path):
    fill(tmp_path / "x.npy", (1, 60_000_000))
    line = truenorm.bad("apply", "x.npy", "-o", "y.npy", env={"TMPDIR": "/nowhere"})
    assert "temporary file in /nowhere" in line and "TMPDIR" in line
    (tmp_path / "small").mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M", "tmpfs", tmp_path / "small"], capture_output=True).returncode == 0:
        try:
            line = truenorm.bad("apply", "x.npy", "-o", "y.npy", env={"TMPDIR": str(tmp_path / "small")})
        finally:
            subprocess.run(["umount", tmp_path / "small"], check=True)
        assert "229M" in line and "--memory" in line and "No space left" in line
    assert sorted(os.listdir(tmp_path)) == ["small", "x.npy"]

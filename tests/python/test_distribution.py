"""What is handed out: the extension and the command need nothing but the system; the source distribution builds."""

import importlib.metadata
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

import truenorm

ROOT = Path(__file__).parents[2]
FULL = "TRUENORM_TEST_FULL" in os.environ


def run(*command, **how):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=3600, **how)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def installed(end):
    """Where pip has put the file of the package whose path ends so."""
    (path,) = [path for path in importlib.metadata.files("truenorm") if str(path).endswith(end)]
    return path.locate().resolve()


def needed_by(program):
    dynamic = run("readelf", "-d", program)
    assert "RPATH" not in dynamic and "RUNPATH" not in dynamic
    return {line.split("[")[1].rstrip("]\n") for line in dynamic.splitlines() if "(NEEDED)" in line}


@pytest.mark.skipif(shutil.which("readelf") is None, reason="readelf is not installed")
def test_extension_and_command_need_only_the_system():
    """No libhwy, no libtruenorm, no libz: what a machine without any development package has."""
    system = ("libc.so", "libm.so", "libpthread.so", "ld-linux")
    for program, others in ((truenorm._core.__file__, ("libstdc++.so", "libgcc_s.so")), (installed("bin/truenorm"), ())):
        needed = needed_by(program)
        assert needed and all(name.startswith(system + others) for name in needed), (program, needed)


def test_command_comes_with_the_package():
    """Beside the environment's Python, of the same version, with its manual page."""
    command = installed("bin/truenorm")
    assert command.parent == Path(sysconfig.get_path("scripts")).resolve()
    assert run(command, "--version") == f"truenorm {truenorm.__version__}\n"
    assert installed("man1/truenorm.1").read_text() == run(command, "manual")


@pytest.mark.skipif(shutil.which("nm") is None, reason="nm is not installed")
def test_extension_shows_one_symbol():
    """Whatever else is loaded, another truenorm or Highway included, cannot get between."""
    names = {line.split()[-1] for line in run("nm", "-D", "--defined-only", truenorm._core.__file__).splitlines()}
    assert names == {"PyInit__core"}, names


@pytest.fixture(scope="module")
def distribution(tmp_path_factory):
    pytest.importorskip("scikit_build_core")
    folder = tmp_path_factory.mktemp("sdist")
    program = f"import scikit_build_core.build as b; print(b.build_sdist({str(folder)!r}))"
    name = run(sys.executable, "-c", program, cwd=ROOT).splitlines()[-1]
    return folder / name


def test_source_distribution_has_what_the_build_needs(distribution):
    with tarfile.open(distribution) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    for needed in ("LICENSE", "README.md", "CMakeLists.txt", "include/truenorm/truenorm.h", "python/bindings.cpp",
                   "python/truenorm/py.typed", "python/truenorm/_core.pyi", "src/CMakeLists.txt", "PKG-INFO"):
        assert needed in names, needed
    tracked = set(run("git", "ls-files", "src", "include", "cmake", "python", "cli", cwd=ROOT).split())
    assert tracked <= names, tracked - names
    assert not any(name.startswith(("build", "data/", "tests/", "bench/", ".git/")) for name in names)


@pytest.mark.skipif(not FULL, reason="builds the package again; set TRUENORM_TEST_FULL")
def test_wheel_from_the_source_distribution(distribution, tmp_path):
    """Built as a user's pip builds it, then tried in an empty environment."""
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", tmp_path, distribution)
    (wheel,) = tmp_path.glob("truenorm-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert any(name.endswith("py.typed") for name in names) and any("LICENSE" in name for name in names)
    assert not any(name.endswith((".a", ".h", ".cpp", ".cc", ".cmake")) for name in names)
    run(sys.executable, "-m", "venv", tmp_path / "empty")
    python = tmp_path / "empty" / "bin" / "python"
    run(python, "-m", "pip", "install", wheel)
    smoke = "import truenorm, numpy as np; print(truenorm.layer_norm(np.array([3., 1, 5, 7]))[0].round(4))"
    assert run(python, "-c", smoke, cwd=tmp_path).strip() == "-0.4472"
    assert "Mean:                          4.0000" in run(python.with_name("truenorm"), "explain", 3, 1, 5, 7, cwd=tmp_path)

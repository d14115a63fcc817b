import os
import subprocess
import sys
from pathlib import Path

import pytest

from pages import BUILD_FOLDER


def pytest_addoption(parser):
    parser.addoption("--write-output", action="store_true", help="write what the blocks print into the pages")


@pytest.fixture(scope="session")
def prefix(tmp_path_factory):
    """Where the library and the command are installed to for these tests."""
    if not (BUILD_FOLDER / "CMakeCache.txt").exists():
        pytest.fail(f"{BUILD_FOLDER} is no build of truenorm: build it, or set TRUENORM_BIN to its folder cli")
    prefix = tmp_path_factory.mktemp("prefix")
    subprocess.run(["cmake", "--install", BUILD_FOLDER, "--prefix", prefix], check=True, capture_output=True)
    return prefix


@pytest.fixture(scope="session")
def environment(prefix):
    """What a user has who has installed truenorm to a place of his own."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TRUENORM_")}
    for name, folders in {
        "PATH": [prefix / "bin", Path(sys.executable).parent],
        "PKG_CONFIG_PATH": prefix.glob("lib*/**/pkgconfig"),
        "LD_LIBRARY_PATH": {path.parent for path in prefix.glob("lib*/**/libtruenorm.so*")},
        "CMAKE_PREFIX_PATH": [prefix],
    }.items():
        environment[name] = os.pathsep.join([*map(str, folders), *filter(None, [os.environ.get(name)])])
    environment |= {"LC_ALL": "C.UTF-8", "MPLBACKEND": "agg", "COLUMNS": "100"}
    return environment


@pytest.fixture
def run(environment, tmp_path):
    """Runs a command and returns what it wrote to stdout; fails with all it said when it fails."""

    def run(*command, cwd=tmp_path, **options):
        result = subprocess.run(
            [str(part) for part in command], cwd=cwd, env=environment, text=True, encoding="utf-8", capture_output=True, **options
        )
        assert result.returncode == 0, f"{command}\nexit {result.returncode}\n{result.stdout}\n{result.stderr}"
        return result.stdout

    return run

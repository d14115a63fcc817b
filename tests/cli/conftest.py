"""Runs the command as a person does. TRUENORM_BIN is the folder with the built programs (build/cli unless set)."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("TRUENORM_BIN", ROOT / "build" / "cli"))
DATA = ROOT / "data"


class Command:
    """Runs one program, behind `prefix`; `ok` and `bad` say what the exit code must be."""

    prefix = ()

    def __init__(self, program, cwd):
        self.program = BIN / program
        self.cwd = cwd
        if not self.program.exists():
            pytest.fail(f"{self.program} is missing: build it, or set TRUENORM_BIN to the folder that has it")

    def run(self, *arguments, env=None, **options):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("TRUENORM_")}
        environment.update({"LC_ALL": "C.UTF-8"}, **(env or {}))
        return subprocess.run(
            [*self.prefix, self.program, *map(str, arguments)],
            capture_output=True, text=True, encoding="utf-8", timeout=600, cwd=self.cwd, env=environment, **options,
        )

    def ok(self, *arguments, **options):
        result = self.run(*arguments, **options)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def bad(self, *arguments, **options):
        """Bad input: exit 2, nothing on stdout, one line on stderr, which is returned."""
        result = self.run(*arguments, **options)
        assert result.returncode == 2, (result.returncode, result.stdout, result.stderr)
        assert result.stdout == ""
        assert result.stderr.endswith("\n") and result.stderr.count("\n") == 1, result.stderr
        return result.stderr


@pytest.fixture
def truenorm(tmp_path):
    return Command("truenorm", tmp_path)


@pytest.fixture
def demo(tmp_path):
    return Command("truenorm-demo", tmp_path)


@pytest.fixture
def data():
    return DATA

"""The command as a whole: help, version, info, the demonstration."""

import json
import os
import re
import signal
import subprocess

import numpy as np
import pytest

COMMANDS = ["explain", "apply", "stats", "backward", "info", "bench", "completion", "manual"]


def test_help(truenorm):
    text = truenorm.ok("--help")
    assert all(command in text for command in COMMANDS)
    for command in COMMANDS:
        page = truenorm.ok(command, "--help")
        assert "Example" in page and f"truenorm {command}" in page


def test_the_examples_of_explain_run(truenorm, data):
    page = truenorm.ok("explain", "--help")
    for line in re.findall(r"^  truenorm explain ([^\n]*)$", page, re.M):
        if ".npy" not in line:
            truenorm.ok("explain", *line.split())


def test_version(truenorm):
    assert re.fullmatch(r"truenorm \d+\.\d+\.\d+\n", truenorm.ok("--version"))


def test_info(truenorm):
    report = json.loads(truenorm.ok("info", "--json"))
    assert f"truenorm {report['version']}\n" == truenorm.ok("--version")
    assert report["isa"] in report["isa_available"] and report["threads"] >= 1
    text = truenorm.ok("info")
    assert report["isa"] in text and report["build"]["compiler"] in text


def test_info_follows_the_environment(truenorm):
    available = json.loads(truenorm.ok("info", "--json"))["isa_available"]
    for isa in available:
        assert json.loads(truenorm.ok("info", "--json", env={"TRUENORM_ISA": isa}))["isa"] == isa
    line = truenorm.bad("info", env={"TRUENORM_ISA": "sse9"})
    assert "TRUENORM_ISA" in line and "sse9" in line and "expected one of: " in line
    assert all(isa in line for isa in [*available, "scalar"])
    assert json.loads(truenorm.ok("info", "--json", env={"TRUENORM_NUM_THREADS": "3"}))["threads"] == 3


@pytest.mark.parametrize("value", ["many", "0", "-1", "2x", "1025", "1e2"])
def test_a_number_of_threads_that_is_none(truenorm, tmp_path, value):
    np.save(tmp_path / "x.npy", np.ones((3, 4), np.float32))
    env = {"TRUENORM_NUM_THREADS": value}
    for arguments in (["info"], ["info", "--json"], ["stats", "x.npy"], ["apply", "x.npy", "-o", "y.npy"], ["bench"]):
        line = truenorm.bad(*arguments, env=env)
        assert f"TRUENORM_NUM_THREADS: '{value}' is not a whole number from 1 to 1024" in line
    truenorm.ok("stats", "x.npy", "--threads", "2", env=env)  # does not count here
    truenorm.ok("info", env={"TRUENORM_NUM_THREADS": ""})


def test_unknown_isa_is_an_error_everywhere(truenorm):
    assert "sse9" in truenorm.bad("explain", "3", "1", env={"TRUENORM_ISA": "sse9"})


@pytest.mark.parametrize(("arguments", "words"), [
    ([], ["expected a command: explain, apply"]),
    (["explian", "3"], ["'explian' is no command", "explain, apply", "or manual"]),
    (["--bogus"], ["'--bogus' is no option"]),
    (["info", "extra"], ["truenorm info: 'extra' is no argument"]),
    (["apply", "-x"], ["truenorm apply: '-x' is no option"]),
    (["apply", "x.npy", "--out", "y.npy"], ["'--out' is no option"]),
    (["apply", "x.npy", "y.npy"], ["'y.npy' is no argument"]),
    (["apply", "x.npy"], ["--output is required"]),
    (["apply", "-o", "y.npy"], ["x is required"]),
    (["completion"], ["shell is required"]),
    (["completion", "tcsh"], ["'tcsh'", "bash, zsh or fish"]),
])
def test_wrong_use(truenorm, arguments, words):
    line = truenorm.bad(*arguments)
    assert line.startswith("truenorm") and all(word in line for word in words), line


PRINT = [["explain", "3", "1"], ["--help"], ["apply", "--help"], ["--version"], ["completion", "bash"], ["completion", "zsh"],
         ["completion", "fish"], ["manual"], ["info"], ["info", "--json"]]


@pytest.mark.parametrize("arguments", PRINT, ids=" ".join)
def test_full_and_closed_standard_output(truenorm, arguments):
    with open("/dev/full", "w") as full:
        result = subprocess.run([truenorm.program, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
    assert result.returncode == 2 and "the standard output cannot be written: No space left" in result.stderr
    assert result.stderr.count("\n") == 1
    result = subprocess.run(["sh", "-c", '"$@" >&-', "sh", truenorm.program, *arguments], stderr=subprocess.PIPE, text=True)
    assert result.returncode == 2 and "the standard output is closed" in result.stderr
    with subprocess.Popen([truenorm.program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()  # whoever reads has gone: quiet
        assert process.stderr.read() == b""
    assert process.returncode in (0, -signal.SIGPIPE)  # 0: it was faster


def test_files_never_take_the_place_of_a_closed_stream(truenorm, tmp_path):
    """open() gives the lowest number that is free: the report must not go into the file that has it."""
    np.save(tmp_path / "x.npy", np.ones((3, 4), np.float32))
    truenorm.ok("apply", "x.npy", "-o", "want.npy")
    for closed, arguments, code in (("0<&-", [], 0), (">&-", [], 0), ("2>&-", [], 0), ("0<&- 2>&-", ["--json"], 0), (">&-", ["--json"], 2),
                                    ("0<&- >&-", ["--json"], 2)):
        command = [truenorm.program, "apply", "x.npy", "-o", "y.npy", *arguments]
        result = subprocess.run(["sh", "-c", f'"$@" {closed}', "sh", *command], cwd=tmp_path, capture_output=True, text=True)
        assert result.returncode == code, (closed, result.stderr)
        assert (tmp_path / "y.npy").read_bytes() == (tmp_path / "want.npy").read_bytes(), closed
    result = subprocess.run(["sh", "-c", '"$@" 0<&-', "sh", truenorm.program, "stats", "-"], capture_output=True, text=True)
    assert result.returncode == 2 and "the standard input: cannot be read: it is closed" in result.stderr
    result = subprocess.run(["sh", "-c", '"$@" >&-', "sh", truenorm.program, "apply", "x.npy", "-o", "-"], cwd=tmp_path,
                            capture_output=True, text=True)
    assert result.returncode == 2 and "the standard output: cannot be written: it is closed" in result.stderr


def test_arrays_are_not_shown_on_a_terminal(truenorm, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((3, 4), np.float32))
    ours, theirs = os.openpty()
    for arguments in (["apply", "x.npy", "-o", "-"], ["backward", "x.npy", "x.npy", "--dgamma", "-"]):
        result = subprocess.run([truenorm.program, *arguments], cwd=tmp_path, stdout=theirs, stderr=subprocess.PIPE, text=True)
        assert result.returncode == 2 and f"truenorm {arguments[0]}: the standard output is a terminal; expected a file or a pipe" in result.stderr
    os.close(theirs)
    os.close(ours)


def test_demonstration(demo, data):
    text = demo.ok(data)
    assert "Alice was beginning to get very tired" in text
    for line in (
        "first token   before     1.410          2.718        2.543",
        "              after   0.000000       1.069044     0.999999",
        "second token  before     0.350          2.670        2.498",
        "[-0.894 + 1, -2.684 + 1, 0.894 + 1, 2.684 + 1]",
        "Normalized mean:               0.00000000",
    ):
        assert line in text
    assert "-0.000000" not in text and "nan" not in text.lower()
    assert max(map(len, text.splitlines())) <= 100
    # Ours: worst error of each norm in ulp, within the bound that docs/numerics.md gives.
    errors = re.findall(r"^   (\w+) +[\d.e-]+ +([\d.]+) +[\d.]+ +([\d.]+) +[\d.]+$", text, re.M)
    assert len(errors) == 4
    assert all(float(ours) <= 5 for _, ours, _ in errors)


def test_demonstration_without_data(demo):
    assert "index.json" in demo.bad("nowhere")

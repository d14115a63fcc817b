"""The command as a whole: help, version, info, the demonstration."""

import json
import re
import subprocess

import pytest

COMMANDS = ["explain", "apply", "stats", "info"]


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
    assert "'sse9'" in truenorm.bad("info", env={"TRUENORM_ISA": "sse9"})
    assert json.loads(truenorm.ok("info", "--json", env={"TRUENORM_NUM_THREADS": "3"}))["threads"] == 3


def test_unknown_isa_is_an_error_everywhere(truenorm):
    assert "sse9" in truenorm.bad("explain", "3", "1", env={"TRUENORM_ISA": "sse9"})


@pytest.mark.parametrize("arguments", [[], ["explian", "3"], ["--bogus"], ["info", "extra"]])
def test_wrong_use(truenorm, arguments):
    line = truenorm.bad(*arguments)
    assert line.startswith("truenorm")


def test_full_standard_output(truenorm):
    with open("/dev/full", "w") as full:
        result = subprocess.run([truenorm.program, "explain", "3", "1"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert result.returncode == 2 and "standard output" in result.stderr


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

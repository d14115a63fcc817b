"""What the command prints of itself: completions for three shells, the manual page."""

import os
import shutil
import subprocess

import pytest


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(truenorm, tmp_path, shell):
    script = tmp_path / "script"
    script.write_text(truenorm.ok("completion", shell))
    assert "apply" in script.read_text() and "out-dtype" in script.read_text()
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    subprocess.run([shell, "-n", script], check=True)


def complete(script, words):
    """What bash would offer."""
    text = f"""source {script}
COMP_WORDS=({" ".join(f"'{w}'" for w in words)}); COMP_CWORD={len(words) - 1}
_truenorm; printf '%s\\n' "${{COMPREPLY[@]}}" """
    return subprocess.run(["bash", "-c", text], check=True, capture_output=True, text=True, cwd=script.parent).stdout.split()


def test_what_bash_completes(truenorm, tmp_path):
    script = tmp_path / "script"
    script.write_text(truenorm.ok("completion", "bash"))
    (tmp_path / "x.npy").touch()
    assert complete(script, ["truenorm", "ba"]) == ["backward"]
    assert sorted(complete(script, ["truenorm", "-"])) == ["--help", "--version", "-h"]
    assert "-h" in complete(script, ["truenorm", "stats", "-"])
    assert complete(script, ["truenorm", "apply", "--out-d"]) == ["--out-dtype"]
    assert complete(script, ["truenorm", "apply", "--out-dtype", "b"]) == ["bfloat16"]
    assert complete(script, ["truenorm", "apply", "x"]) == ["x.npy"]
    assert complete(script, ["truenorm", "apply", "--gamma", "x"]) == ["x.npy"]
    assert complete(script, ["truenorm", "completion", "z"]) == ["zsh"]


def test_what_fish_completes(truenorm, tmp_path):
    if shutil.which("fish") is None:
        pytest.skip("no fish here")
    (tmp_path / "script").write_text(truenorm.ok("completion", "fish"))
    out = subprocess.run(["fish", "-c", "source script; complete -C 'truenorm apply --out-d'"], cwd=tmp_path,
                         capture_output=True, text=True, env={**os.environ, "HOME": str(tmp_path)}).stdout
    assert out.startswith("--out-dtype\t")
    # Descriptions are the help's own, apostrophes and all.
    assert "bench\tMeasure forward and backward beside the machine's copy speed" in subprocess.run(
        ["fish", "-c", "source script; complete -C 'truenorm ben'"], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "HOME": str(tmp_path)}).stdout


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completions_have_no_backticks(truenorm, tmp_path, shell):
    script = truenorm.ok("completion", shell)
    assert "`" not in script
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    # The shell itself reads the quotes.
    words = [line.split(" -d ")[1] for line in script.splitlines() if " -d " in line] if shell == "fish" else \
        [line.strip().removesuffix(" \\") for line in script.splitlines() if line.strip().startswith("'")]
    out = subprocess.run([shell, "-c", f"printf '%s\\n' {' '.join(words)}"], capture_output=True, text=True, check=True).stdout
    assert len(out.splitlines()) == len(words) and "machine's copy speed" in out


def test_manual_page(truenorm, tmp_path):
    page = tmp_path / "truenorm.1"
    page.write_text(truenorm.ok("manual"))
    for command in ("apply", "backward", "stats", "explain", "info", "bench"):
        assert f".SS truenorm {command}" in page.read_text()
    if shutil.which("man"):
        result = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True, env={**os.environ, "MANPAGER": "cat", "LC_ALL": "C.UTF-8"})
        assert result.returncode == 0 and result.stderr == "", result.stderr

"""Pipes, signals, memory, full disks: whatever happens, the output is there whole or not at all."""

import fcntl
import json
import os
import pty
import random
import re
import resource
import select
import signal
import struct
import subprocess
import termios
import time

import numpy as np
import pytest


def rows(shape, dtype=np.float32, seed=7):
    return (np.random.default_rng(seed).standard_normal(shape) * 3 + 2).astype(dtype)


def heed_signals():
    """Shells start what runs in the background with interrupts ignored, nohup does so with hangups, and children inherit it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def start(truenorm, *arguments, **options):
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm"}
    return subprocess.Popen([truenorm.program, *map(str, arguments)], cwd=truenorm.cwd, env=environment,
                            preexec_fn=heed_signals, **options)


def through_pipe(truenorm, content, *arguments):
    """Runs the command with `content` in a pipe; gives back its exit code, output and messages."""
    with start(truenorm, *arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        out, messages = process.communicate(content, timeout=600)
    return process.returncode, out, messages.decode()


@pytest.mark.parametrize("axis", [-1, 0])
@pytest.mark.parametrize("shape", [(3, 4), (3000, 700), (7000, 701)])
def test_pipes_give_the_same_bytes(truenorm, tmp_path, shape, axis):
    x = rows(shape)
    np.save(tmp_path / "x.npy", x)
    truenorm.ok("apply", "x.npy", "-o", "y.npy", "--axis", axis)
    want = (tmp_path / "y.npy").read_bytes()
    content = (tmp_path / "x.npy").read_bytes()
    code, out, messages = through_pipe(truenorm, content, "apply", "-", "-o", "-", "--axis", axis)
    assert code == 0 and out == want, messages
    assert messages.startswith("standard output: ")
    truenorm.ok("apply", "-", "-o", "z.npy", "--axis", axis, stdin=open(tmp_path / "x.npy", "rb"))
    assert (tmp_path / "z.npy").read_bytes() == want


def test_archives_through_a_pipe(truenorm, tmp_path):
    x = rows((30, 40))
    np.savez_compressed(tmp_path / "x.npz", x=x, y=x)
    np.save(tmp_path / "x.npy", x)
    truenorm.ok("apply", "x.npy", "-o", "y.npy")
    code, out, messages = through_pipe(truenorm, (tmp_path / "x.npz").read_bytes(), "apply", "/dev/stdin:x", "-o", "-")
    assert code == 0 and out == (tmp_path / "y.npy").read_bytes(), messages


def test_other_commands_read_pipes(truenorm, tmp_path):
    np.save(tmp_path / "x.npy", rows((30, 4)))
    content = (tmp_path / "x.npy").read_bytes()
    code, out, _ = through_pipe(truenorm, content, "stats", "-", "--json")
    assert code == 0 and json.loads(out)["rows"] == 30
    code, out, _ = through_pipe(truenorm, content, "explain", "--file", "-", "--row", "29")
    assert code == 0 and out.decode() == truenorm.ok("explain", "--file", "x.npy", "--row", "29")
    for order in "CF":
        np.save(tmp_path / "x.npy", np.asarray(rows((30, 4)), order=order))
        assert truenorm.ok("explain", "--file", "x.npy", "--row", "29").encode() == out


@pytest.mark.parametrize(("change", "words"), [
    (lambda c: c[:-1], "ends after"), (lambda c: c + b"x", "goes on after"), (lambda c: c[:20], "ends inside"),
    (lambda c: b"", "is empty"), (lambda c: b"3 1 5 7" * 9, "no .npy file"),
])
def test_damaged_pipes(truenorm, tmp_path, change, words):
    np.save(tmp_path / "x.npy", rows((300, 400)))
    content = change((tmp_path / "x.npy").read_bytes())
    code, _, messages = through_pipe(truenorm, content, "apply", "-", "-o", "y.npy")
    assert code == 2 and words in messages and "the standard input" in messages and messages.count("\n") == 1
    assert os.listdir(tmp_path) == ["x.npy"]


def test_standard_input_for_two(truenorm, tmp_path):
    assert "standard input" in truenorm.bad("apply", "-", "-o", "y.npy", "--gamma", "-", stdin=open(make(tmp_path), "rb"))


def make(tmp_path, shape=(3000, 768)):
    np.save(tmp_path / "x.npy", rows(shape))
    return tmp_path / "x.npy"


def test_a_closed_pipe_is_quiet(truenorm, tmp_path):
    make(tmp_path)
    for arguments in (["apply", "x.npy", "-o", "-"], ["stats", "x.npy", "--limit", "0"]):
        with start(truenorm, *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.read(100)
            process.stdout.close()
            assert process.stderr.read() == b""
        assert process.returncode in (-signal.SIGPIPE, 128 + signal.SIGPIPE)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_leave_nothing(truenorm, tmp_path, number):
    make(tmp_path)
    (tmp_path / "y.npy").write_text("old")
    content = (tmp_path / "x.npy").read_bytes()
    with start(truenorm, "apply", "-", "-o", "y.npy", "--save-stats", "s.npy", stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.write(content[: len(content) // 2])
        process.stdin.flush()
        time.sleep(0.1)
        process.send_signal(number)
        process.wait(timeout=600)
        process.stdin.close()
        assert process.stderr.read() == b""
    assert process.returncode == -number
    assert sorted(os.listdir(tmp_path)) == ["x.npy", "y.npy"] and (tmp_path / "y.npy").read_text() == "old"


def test_a_hundred_kills_leave_the_old_file_or_the_new_one(truenorm, tmp_path):
    make(tmp_path, (6000, 768))
    truenorm.ok("apply", "x.npy", "-o", "y.npy")
    new = (tmp_path / "y.npy").read_bytes()
    seed = random.randrange(10**6)
    numbers = random.Random(seed)
    outcomes = {"old": 0, "new": 0}
    latest = 0.1  # seconds; follows what the work takes on this machine at this moment
    for i in range(100):
        (tmp_path / "y.npy").write_text("old")
        with start(truenorm, "apply", "x.npy", "-o", "y.npy", stderr=subprocess.DEVNULL) as process:
            time.sleep(numbers.uniform(0, latest))
            process.kill()
        content = (tmp_path / "y.npy").read_bytes()
        assert content in (b"old", new), f"kill {i}, seed {seed}: {len(content)} bytes"
        outcomes["new" if content == new else "old"] += 1
        latest *= 0.8 if content == new else 1.1
        for left in set(os.listdir(tmp_path)) - {"x.npy", "y.npy"}:
            assert left.startswith(".truenorm-"), f"kill {i}, seed {seed}: {left}"
            os.unlink(tmp_path / left)
    assert outcomes["old"] > 5, outcomes  # the kills did hit the work


def test_full_disk(truenorm, tmp_path):
    make(tmp_path)
    for arguments in (["apply", "x.npy", "-o", "/dev/full"], ["apply", "x.npy", "-o", "/dev/full", "--axis", "0"],
                      ["backward", "x.npy", "x.npy", "--dx", "/dev/full"]):
        line = truenorm.bad(*arguments)
        assert "/dev/full: cannot be written: No space left" in line
    with open("/dev/full", "wb") as full:
        result = subprocess.run([truenorm.program, "apply", "x.npy", "-o", "-"], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE)
    assert result.returncode == 2 and b"the standard output" in result.stderr


@pytest.fixture
def small_disk(tmp_path):
    """A folder that takes 1 MB, and what to start the command with: a file system where one can be mounted, else a limit
    on the size of files, whose writes fail in the same way."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M", "tmpfs", folder], capture_output=True).returncode == 0
    yield folder, {} if mounted else {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))}
    if mounted:
        subprocess.run(["umount", folder], check=True)


def test_full_disk_leaves_nothing(truenorm, tmp_path, small_disk):
    folder, options = small_disk
    make(tmp_path)
    assert "y.npy: cannot be written: " in truenorm.bad("apply", "x.npy", "-o", "small/y.npy", **options)
    assert os.listdir(folder) == []
    # What needs a temporary file says where.
    line = truenorm.bad("apply", "-", "-o", "y.npy", "--axis", "0", env={"TMPDIR": str(folder)},
                        stdin=open(big_pipe(tmp_path), "rb"), **options)
    assert "temporary file" in line and str(folder) in line
    assert not (tmp_path / "y.npy").exists()


def big_pipe(tmp_path):
    """A named pipe that a child fills with an array whose first axis needs it all."""
    os.mkfifo(tmp_path / "pipe")
    np.save(tmp_path / "wide.npy", rows((7000, 701)))
    subprocess.Popen(["sh", "-c", "cat wide.npy > pipe"], cwd=tmp_path, stderr=subprocess.DEVNULL)
    return tmp_path / "pipe"


def test_a_file_that_shrinks(truenorm, tmp_path):
    """The file is cut after its header was read: the command waits for gamma in a named pipe meanwhile."""
    make(tmp_path)
    np.save(tmp_path / "g.npy", np.ones(768, np.float32))
    os.mkfifo(tmp_path / "gamma.npy")
    with start(truenorm, "apply", "x.npy", "-o", "y.npy", "--gamma", "gamma.npy", stderr=subprocess.PIPE) as process:
        with open(tmp_path / "gamma.npy", "wb") as pipe:  # opens when the command does
            os.truncate(tmp_path / "x.npy", 5_000_000)
            pipe.write((tmp_path / "g.npy").read_bytes())
        line = process.stderr.read().decode()
    assert process.returncode == 2 and "x.npy: has shrunk" in line and "5000000" in line
    assert not (tmp_path / "y.npy").exists()


def test_outputs_behind_links_and_of_any_mode(truenorm, tmp_path):
    make(tmp_path)
    (tmp_path / "real.npy").write_text("old")
    (tmp_path / "real.npy").chmod(0o640)
    (tmp_path / "y.npy").symlink_to("real.npy")
    truenorm.ok("apply", "x.npy", "-o", "y.npy")
    assert (tmp_path / "y.npy").is_symlink() and np.load(tmp_path / "real.npy").shape == (3000, 768)
    assert (tmp_path / "real.npy").stat().st_mode & 0o777 == 0o640


def test_outputs_behind_links_to_nothing_yet(truenorm, tmp_path):
    """As with links to files: what is written is the end of the chain, the links stay."""
    make(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "y.npy").symlink_to("folder/link.npy")
    (tmp_path / "folder" / "link.npy").symlink_to(tmp_path / "real.npy")
    truenorm.ok("apply", "x.npy", "-o", "y.npy")
    assert (tmp_path / "y.npy").is_symlink() and (tmp_path / "folder" / "link.npy").is_symlink()
    assert np.load(tmp_path / "real.npy").shape == (3000, 768)
    os.unlink(tmp_path / "real.npy")
    assert "is the output as well" in truenorm.bad("apply", "x.npy", "-o", "y.npy", "--save-stats", "real.npy")
    (tmp_path / "nowhere.npy").symlink_to("no/such/folder.npy")
    assert "nowhere.npy: cannot be written: No such file" in truenorm.bad("apply", "x.npy", "-o", "nowhere.npy")
    (tmp_path / "loop.npy").symlink_to("loop.npy")
    assert "loop.npy: cannot be written: Too many levels" in truenorm.bad("apply", "x.npy", "-o", "loop.npy")
    assert sorted(os.listdir(tmp_path)) == ["folder", "loop.npy", "nowhere.npy", "x.npy", "y.npy"]


def test_names_that_no_file_can_have(truenorm, tmp_path):
    make(tmp_path)
    long = "y" * 300 + ".npy"
    line = truenorm.bad("apply", "x.npy", "-o", long)
    assert "cannot be written: its name has 304 bytes; expected at most 255" in line and long in line
    line = truenorm.bad("apply", "x.npy", "-o", "./" * 2100 + "y.npy")
    assert "its path has 4205 bytes; expected fewer than 4096" in line
    assert "x.npy/y.npy: cannot be written: Not a directory" in truenorm.bad("apply", "x.npy", "-o", "x.npy/y.npy")
    assert "File name too long" in truenorm.bad("apply", long, "-o", "y.npy")
    for option in ("--dx", "--dgamma"):
        assert "its name has 304 bytes" in truenorm.bad("backward", "x.npy", "x.npy", option, long)
    assert os.listdir(tmp_path) == ["x.npy"]


def test_standard_output_for_two(truenorm, tmp_path):
    make(tmp_path)
    line = truenorm.bad("apply", "x.npy", "-o", "-", "--save-stats", "-")
    assert "--save-stats: the standard output can take one array" in line and "expected a file" in line
    assert "expected files" in truenorm.bad("backward", "x.npy", "x.npy", "--dx", "-", "--dbeta", "-")


def test_too_many_rows_to_show(truenorm, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((100_001, 2), np.float32))
    assert "100,001 rows" in truenorm.bad("stats", "x.npy", "--limit", "0")
    assert "100,001 rows" in truenorm.ok("stats", "x.npy", "--limit", "3")


@pytest.mark.parametrize("columns", [0, 40])  # 0: a terminal that does not say
def test_progress_on_a_terminal_after_a_second(truenorm, tmp_path, columns):
    content = make(tmp_path).read_bytes()
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with start(truenorm, "apply", "-", "-o", "y.npy", stdin=subprocess.PIPE, stderr=theirs) as process:
        os.close(theirs)
        fcntl.fcntl(process.stdin, 1031, 1 << 16)  # F_SETPIPE_SZ: the writer stays close to the reader
        for part in range(16):
            process.stdin.write(content[len(content) * part // 16 : len(content) * (part + 1) // 16])
            process.stdin.flush()
            time.sleep(0.12)
        process.stdin.close()
        shown = b""
        while select.select([ours], [], [], 600)[0]:
            try:
                shown += os.read(ours, 4096)
            except OSError:  # the other side has been closed
                break
    assert process.returncode == 0
    assert re.search(rb"\[#+\.+\] +\d+ %", shown), shown
    bars = re.findall(rb"\[[#.]+\][^\r\x1b]*", shown)
    assert max(map(len, bars)) < (columns or 80)
    # The bar is gone when the report comes.
    assert shown.rsplit(b"\r\x1b[K", 1)[1].startswith(b"y.npy: 3,000 rows"), shown


def test_no_progress_elsewhere(truenorm, tmp_path):
    make(tmp_path)
    assert truenorm.run("apply", "x.npy", "-o", "y.npy").stderr.count("\n") == 1


def test_bench(truenorm):
    report = json.loads(truenorm.ok("bench", "--size", "1", "--seconds", "0", "--json"))
    assert [r["dtype"] for r in report["results"]] == ["float32", "bfloat16", "float16", "float64"]
    for result in report["results"]:
        assert all(result[f"{what}_gb_per_second"] > 0 for what in ("copy", "forward", "backward"))
    text = truenorm.ok("bench", "--size", "1", "--seconds", "0", "--dtype", "float16", "--d", "100")
    assert "float16" in text and "float32" not in text and "copy GB/s" in text
    assert "--dtype" in truenorm.bad("bench", "--dtype", "int8")
    assert "--seconds" in truenorm.bad("bench", "--seconds", "nan")


def shell(truenorm, line, content=b""):
    """Runs a line of the shell in which $T is the command; gives back its exit code, output and messages."""
    result = subprocess.run(["sh", "-c", line], cwd=truenorm.cwd, input=content, capture_output=True, timeout=600,
                            env={**os.environ, "T": str(truenorm.program)})
    return result.returncode, result.stdout, result.stderr.decode()


def test_what_the_shell_redirects_is_no_input_and_output_at_once(truenorm, tmp_path):
    content = make(tmp_path, (30, 8)).read_bytes()
    for line in ("$T apply - -o x.npy < x.npy", "$T apply x.npy -o - >> x.npy", "$T apply - -o - < x.npy >> x.npy",
                 "$T backward x.npy - --dx x.npy < x.npy", "$T apply x.npy -o y.npy --gamma - --save-stats x.npy < x.npy"):
        code, out, messages = shell(truenorm, line)
        assert code == 2 and out == b"" and messages.count("\n") == 1, (line, messages)
        assert (tmp_path / "x.npy").read_bytes() == content
    assert "the standard output: is an input as well" in shell(truenorm, "$T apply x.npy -o - >> x.npy")[2]
    assert "x.npy: is an input as well" in shell(truenorm, "$T apply - -o x.npy < x.npy")[2]
    assert "is an output as well" in shell(truenorm, "$T backward x.npy x.npy --dx - --dgamma g.npy > g.npy")[2]


def test_other_names_of_the_standard_streams(truenorm, tmp_path):
    """What the system calls /dev/stdin and /dev/stdout is treated as -: not shared by two arrays, no file replaced."""
    content = make(tmp_path, (30, 8)).read_bytes()
    truenorm.ok("apply", "x.npy", "-o", "want.npy")
    want = (tmp_path / "want.npy").read_bytes()
    for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
        line = f"(printf before; $T apply x.npy -o {name}; printf after) > all; cat all"
        assert shell(truenorm, line)[1] == b"before" + want + b"after"
        code, _, messages = shell(truenorm, f"$T apply x.npy -o - --save-stats {name} | wc -c")
        assert "the standard output can take one array" in messages
        for array in (f"-o {name}", "-o -", f"-o y.npy --save-stats {name}"):
            assert "--json: the standard output is taken by an array" in shell(truenorm, f"$T apply x.npy {array} --json | cat")[2]
        assert "can take one output, not 2" in shell(truenorm, f"$T backward x.npy x.npy --dx - --dbeta {name} | wc -c")[2]
    for name in ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
        assert shell(truenorm, f"$T apply {name} -o -", content)[1] == want
        assert "both the standard input" in shell(truenorm, f"$T backward - {name} --dx -", content)[2]
        assert "the standard input is x already" in shell(truenorm, f"$T apply - -o y.npy --gamma {name}", content)[2]


@pytest.fixture
def unprivileged(truenorm):
    """The command without the administrator's right to write everywhere. Not as another user: this folder may be closed
    to everybody else."""
    if os.geteuid() == 0:
        truenorm.prefix = ("setpriv", "--inh-caps=-all", "--bounding-set=-all")
    return truenorm


def test_outputs_that_may_not_be_written(unprivileged, tmp_path):
    truenorm, folder = unprivileged, tmp_path
    make(folder, (30, 8))
    for name, mode in (("own", 0o777), ("closed", 0o555), ("hidden", 0o000)):
        (folder / name).mkdir()
        (folder / name).chmod(mode)
    for name in ("closed.npy", "own/closed.npy"):
        (folder / name).write_text("old")
        (folder / name).chmod(0o444)
    folder.chmod(0o555)
    for output in ("closed/y.npy", "hidden/y.npy", "closed.npy", "own/closed.npy"):
        for arguments in (["apply", "x.npy", "-o", output], ["apply", "x.npy", "-o", "own/y.npy", "--save-stats", output],
                          ["backward", "x.npy", "x.npy", "--dx", "own/y.npy", "--dgamma", output]):
            line = truenorm.bad(*arguments)
            assert f"{output}: cannot be written: Permission denied" in line
            assert os.listdir(folder / "own") == ["closed.npy"]
    assert "hidden/x.npy: cannot be opened: Permission denied" in truenorm.bad("stats", "hidden/x.npy")
    assert (folder / "closed.npy").read_text() == (folder / "own" / "closed.npy").read_text() == "old"
    truenorm.ok("apply", "x.npy", "-o", "own/y.npy")
    for path in (folder, folder / "hidden"):
        path.chmod(0o755)


def test_names_with_control_characters_are_shown_without_them(truenorm, tmp_path):
    """In a terminal they would change its colors, or hide what stands before them."""
    make(tmp_path, (3, 4))
    os.rename(tmp_path / "x.npy", tmp_path / "x\x1b[31m\n.npy")
    for result in (truenorm.run("apply", "x\x1b[31m\n.npy", "-o", "y\x1b[31m\n.npy"), truenorm.run("stats", "x\x1b[31m\n.npy")):
        text = result.stdout + result.stderr
        assert result.returncode == 0 and "\x1b" not in text and " [31m .npy: " in text

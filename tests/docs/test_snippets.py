"""Every C, C++, Python and shell block of the documentation runs and prints what the page says.

The Python blocks of a page are one program, as a reader would type it; all blocks of a page share a working folder,
which holds links to the repository's files.
"""

import contextlib
import io
import os
import shlex
import subprocess

import pytest

from pages import ROOT, RUN, all_blocks, same_output, write_output

BLOCKS = [block for block in all_blocks() if block.language in RUN and not block.not_run]
FLAGS = {"c": ["cc", "-std=c99"], "cpp": ["c++", "-std=c++20"]}
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"]


class Page:
    """A working folder, and the Python blocks up to some line, run in order and once."""

    def __init__(self, folder, blocks):
        self.folder = folder
        self.python = [block for block in blocks if block.language == "python"]
        self.names = {"__name__": "page"}
        self.outputs = []
        for path in ROOT.iterdir():
            if not path.name.startswith((".", "build")):
                (folder / path.name).symlink_to(path)

    def run_python(self, block):
        index = self.python.index(block)
        while len(self.outputs) <= index:
            following = self.python[len(self.outputs)]
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile("\n" * following.line + following.text, str(following.page), "exec"), self.names)
            self.outputs.append(output.getvalue())
        return self.outputs[index]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    return {
        page: Page(tmp_path_factory.mktemp(page.stem), [b for b in BLOCKS if b.page == page])
        for page in {block.page for block in BLOCKS}
    }


def compiled(block, folder, environment):
    source = folder / f"line{block.line}.{block.language}"
    source.write_text(block.text)
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "truenorm"], env=environment, check=True, capture_output=True, text=True)
    program = source.with_suffix("")
    command = [*FLAGS[block.language], *WARNINGS, source, "-o", program, *shlex.split(flags.stdout), "-pthread"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return program


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{block.name}:{block.language}")
def test_block(block, pages, environment, monkeypatch, request):
    page = pages[block.page]
    if block.language == "python":
        monkeypatch.chdir(page.folder)
        got = page.run_python(block)
    else:
        command = ["sh", "-eu", "-c", block.text] if block.language == "sh" else [compiled(block, page.folder, environment)]
        result = subprocess.run(command, cwd=page.folder, env=environment, capture_output=True, text=True, encoding="utf-8")
        assert result.returncode == 0, result.stdout + result.stderr
        got = result.stdout
    expected = block.expected or ""
    if block.expected is None and block.language in ("c", "cpp"):
        pytest.fail(f"{block.name}: a program without its output")
    if request.config.getoption("--write-output") and not same_output(expected, got):
        write_output(block, got)
        pytest.skip("output written into the page")
    assert same_output(expected, got), f"{block.name} prints\n{got}\nthe page says\n{expected}"


@pytest.mark.parametrize("block", [b for b in all_blocks() if b.file], ids=lambda block: block.name)
def test_block_is_its_file(block):
    assert block.text == (ROOT / block.file).read_text(), f"{block.name} is not {block.file}"


def test_every_example_is_shown():
    shown = {block.file for block in all_blocks()}
    sources = [path for path in (ROOT / "examples").glob("*/*") if path.suffix in (".c", ".cpp", ".py")]
    assert sources
    missing = [name for name in (str(path.relative_to(ROOT)) for path in sources) if name not in shown]
    assert not missing, f"shown on no page: {missing}"


def test_there_is_something_to_run():
    assert {block.language for block in BLOCKS} == RUN
    assert os.fspath(ROOT / "README.md") in {os.fspath(block.page) for block in BLOCKS}

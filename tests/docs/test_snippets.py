"""Every C, C++, Python and shell block of the documentation runs and prints what the page says.

The Python blocks of a page are one program, as a reader would type it; all blocks of a page share a working folder,
which holds links to the repository's files.
"""

import json
import os
import shlex
import subprocess
import sys

import pytest

from pages import PAGES, ROOT, RUN, all_blocks, same_output, write_output

BLOCKS = [block for block in all_blocks() if block.language in RUN and not block.not_run]
FLAGS = {"c": ["cc", "-std=c99"], "cpp": ["c++", "-std=c++20"]}
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"]


# Reads the blocks, and writes what each printed, up to the first that fails.
INTERPRETER = """
import contextlib, io, json, sys, traceback
names, outputs, error = {"__name__": "page"}, [], None
for line, text in json.load(sys.stdin):
    output = io.StringIO()
    try:
        with contextlib.redirect_stdout(output):
            exec(compile("\\n" * line + text, "page", "exec"), names)
    except BaseException:
        error = traceback.format_exc()
        break
    outputs.append(output.getvalue())
json.dump([outputs, error], sys.stdout)
"""


class Page:
    """A working folder, and the page's Python blocks, run in order and once, by an interpreter of their own."""

    def __init__(self, folder, blocks):
        self.folder = folder
        self.python = [block for block in blocks if block.language == "python"]
        self.outputs, self.error = None, None
        for path in ROOT.iterdir():
            if not path.name.startswith((".", "build")):
                (folder / path.name).symlink_to(path)

    def run_python(self, block, environment):
        if self.outputs is None:
            program = json.dumps([(b.line, b.text) for b in self.python])
            result = subprocess.run(
                [sys.executable, "-c", INTERPRETER], input=program, cwd=self.folder, env=environment, text=True, capture_output=True
            )
            assert result.returncode == 0, result.stderr
            self.outputs, self.error = json.loads(result.stdout)
        index = self.python.index(block)
        assert index < len(self.outputs), self.error
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
def test_block(block, pages, environment, request):
    page = pages[block.page]
    if block.language == "python":
        got = page.run_python(block, environment)
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
    """C and C++ in full; Python in full, or named where a page says what it is for."""
    shown = {block.file for block in all_blocks()}
    named = "".join(page.read_text(encoding="utf-8") for page in PAGES if page.exists())
    sources = [path for path in (ROOT / "examples").glob("*/*") if path.suffix in (".c", ".cpp", ".py", ".ipynb")]
    assert sources
    missing = [name for name in (str(path.relative_to(ROOT)) for path in sources) if name not in shown and not (name.startswith("examples/python/") and name in named)]
    assert not missing, f"shown on no page: {missing}"


def test_there_is_something_to_run():
    assert {block.language for block in BLOCKS} == RUN
    assert os.fspath(ROOT / "README.md") in {os.fspath(block.page) for block in BLOCKS}

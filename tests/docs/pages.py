"""The pages of the documentation and the fenced blocks on them.

A block of C, C++, Python or shell is run; a block of `text` right after it is what it must print. A comment on the line
before a block says what else is known about it:

    <!-- examples/cpp/first.cpp -->      the block is this file
    <!-- not run: why -->                the block is for reading only

In expected output `...` stands for anything, up to a whole line or several.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD_FOLDER = Path(os.environ.get("TRUENORM_BIN", ROOT / "build" / "cli")).resolve().parent
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES += sorted((ROOT / "docs").glob("*.md"))
PAGES += [page for folder in ("data", "bench", "examples") for page in sorted((ROOT / folder).glob("*.md"))]

RUN = {"python", "sh", "c", "cpp"}  # by test_snippets.py
BUILD = {"cmake", "meson"}  # by test_building.py
OTHER = {"text", "tree"}  # output; paths with a description each, see test_paths.py

FENCE = re.compile(r"^```(.*)$")
COMMENT = re.compile(r"^<!-- (.*?) -->$")


@dataclass
class Block:
    page: Path
    line: int
    language: str
    text: str
    expected: str | None = None
    file: str | None = None
    not_run: str | None = None

    @property
    def name(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page):
    """All blocks of a page, each with its expected output; the `text` blocks themselves are not among them."""
    found = []
    lines = page.read_text(encoding="utf-8").split("\n")
    number = 0
    while number < len(lines):
        fence = FENCE.match(lines[number])
        if not fence:
            number += 1
            continue
        start = number
        end = next((i for i in range(start + 1, len(lines)) if lines[i] == "```"), None)
        assert end is not None, f"{page}:{start + 1}: the block is not closed"
        block = Block(page, start + 1, fence.group(1), "".join(line + "\n" for line in lines[start + 1 : end]))
        assert block.language in RUN | BUILD | OTHER, f"{block.name}: unknown language {block.language!r}"
        if block.language == "text":
            before = [line for line in lines[: start - 1] if line]
            assert found and before and before[-1] == "```" and found[-1].expected is None, (
                f"{block.name}: output of nothing; indent text that no block prints"
            )
            found[-1].expected = block.text
        else:
            comment = COMMENT.match(lines[start - 1]) if start else None
            if comment:
                text = comment.group(1)
                block.not_run = text.removeprefix("not run: ") if text.startswith("not run: ") else None
                block.file = None if block.not_run else text
            found.append(block)
        number = end + 1
    return found


def all_blocks():
    return [block for page in PAGES if page.exists() for block in blocks(page)]


def same_output(expected, got):
    """Equal but for blanks at the ends of lines, and for `...`."""

    def tidy(text):
        return "\n".join(line.rstrip() for line in text.strip("\n").split("\n"))

    pattern = ".*".join(re.escape(part) for part in tidy(expected).split("..."))
    return re.fullmatch(pattern, tidy(got), re.DOTALL) is not None


def write_output(block, got):
    """Puts `got` into the page as the block's expected output (pytest --write-output)."""
    page = block.page.read_text(encoding="utf-8")
    head = f"```{block.language}\n{block.text}```\n"
    old = head if block.expected is None else f"{head}\n```text\n{block.expected}```\n"
    assert page.count(old) == 1, f"{block.name} stands {page.count(old)} times on its page"
    tidy = "\n".join(line.rstrip() for line in got.strip("\n").split("\n"))
    block.page.write_text(page.replace(old, f"{head}\n```text\n{tidy}\n```\n"), encoding="utf-8")

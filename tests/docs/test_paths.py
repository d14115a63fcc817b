"""Every path that the documentation names is there."""

import re
import subprocess

import pytest

from pages import PAGES, ROOT, blocks

TOP = "include src cli python tests bench docs examples data cmake ci .ci".split()
# `src/kernels/stats-inl.h`, `docs/`, `tests/*.cpp`, `include/truenorm/truenorm.{h,hpp}`
CODE_PATH = re.compile(r"`((?:%s)/[\w./*{},-]*)`" % "|".join(map(re.escape, TOP)))
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)?(?:#([\w-]+))?\)")
ANCHOR = re.compile(r"^#+ (.*)$", re.MULTILINE)


def expand(path):
    braces = re.match(r"(.*)\{(.*)\}(.*)", path)
    return [braces.group(1) + part + braces.group(3) for part in braces.group(2).split(",")] if braces else [path]


def is_there(path):
    return any(ROOT.glob(path)) if "*" in path else (ROOT / path).exists()


def anchors(page):
    titles = ANCHOR.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", [page for page in PAGES if page.exists()], ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_and_links(page):
    text = page.read_text(encoding="utf-8")
    wrong = [path for match in CODE_PATH.findall(text) for path in expand(match) if not is_there(path)]
    for target, anchor in LINK.findall(text):
        if target.startswith(("http:", "https:", "mailto:")):
            continue
        file = page.parent / target if target else page
        if not file.exists():
            wrong.append(target)
        elif anchor and anchor not in anchors(file):
            wrong.append(f"{target}#{anchor}")
    assert not wrong, f"{page.name} names what is not there: {wrong}"


def test_trees():
    """A `tree` block is a list of paths from the root, each with what it is for; together they cover the repository."""
    lines = [line for page in PAGES if page.exists() for b in blocks(page) if b.language == "tree" for line in b.text.splitlines()]
    paths = [path for line in lines if not line.startswith(" ") for path in re.split(r"  +", line)[0].split(", ")]
    assert paths
    missing = [path for path in paths if not is_there(path)]
    assert not missing, f"the tree names what is not there: {missing}"
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    tops = {name.split("/")[0] for name in tracked}
    named = {path.split("/")[0] for path in paths}
    assert tops - named - {".gitignore", ".clang-format"} == set(), "the tree does not name these"

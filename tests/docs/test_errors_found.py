"""The table of errors found in docs/numerics.md is what the C++ tests found, rounded up.

`make test` runs them first; they leave their worst errors in the build's folder tests/worst. `--write-output` writes the table.
"""

import math
import os
from collections import defaultdict

import pytest

from pages import BUILD_FOLDER, ROOT

PAGE = ROOT / "docs" / "numerics.md"
HEAD = "| result | from, to | bound | found |\n|---|---|---|---|\n"
HALF = ("float16", "bfloat16")


def group(what, types):
    """Where in the table a line of the tests belongs: (result, from and to, number within the cell); None: not in it."""
    x, *others = types.split("/")
    if what.endswith("of its bound"):
        return what, "float32, half; float64", int(x == "float64")
    to = {"y": 1, "y, no gamma and beta": 1, "dx": 2, "dgamma": 0, "dbeta": 0}[what]
    result = others[to]
    if what == "y, no gamma and beta" and (x in HALF or x == "float64"):
        return None  # among the others of y
    if result in HALF:
        return what, "float16; bfloat16", HALF.index(result)
    if what == "dbeta":
        return what, "float32, half; float64", int(x == "float64")
    return what, "half to float32" if x in HALF else x, 0


def rounded_up(value):
    digits = 4 if 0.45 < value < 0.51 else 1 if value >= 0.9995 else 2 if value >= 0.1 else 3
    return f"{math.ceil(value * 10**digits - 1e-6) / 10**digits:.{digits}f}"


def table(lines):
    worst, bounds = defaultdict(dict), defaultdict(dict)
    for line in lines:
        what, types, found, bound, _ = line.split("\t")
        if place := group(what, types):
            *row, number = place
            worst[tuple(row)][number] = max(float(found), worst[tuple(row)].get(number, 0))
            bounds[tuple(row)][number] = bound
    order = ["y", "y, no gamma and beta", "dx", "dgamma", "dbeta", "mean, of its bound", "var, of its bound", "rstd, of its bound"]
    columns = ["float32", "half to float32", "float32, half; float64", "float16; bfloat16", "float64"]
    rows = []
    for row in sorted(worst, key=lambda row: (order.index(row[0]), columns.index(row[1]))):
        bound = list(dict.fromkeys(bounds[row][number] for number in sorted(bounds[row])))
        rows.append(f"| {row[0]} | {row[1]} | {'; '.join(bound)} | {'; '.join(rounded_up(worst[row][n]) for n in sorted(worst[row]))} |\n")
    return rows


def test_errors_found(request):
    if os.environ.get("TRUENORM_TEST_FULL") == "1" or "TRUENORM_TEST_SEED" in os.environ:
        return  # another set of cases than the page's
    lines = [line for file in sorted((BUILD_FOLDER / "tests" / "worst").glob("*.tsv")) for line in file.read_text().splitlines()]
    if not lines:
        pytest.skip("the C++ tests have not run in this build")
    page = PAGE.read_text(encoding="utf-8")
    assert page.count(HEAD) == 1
    start = page.index(HEAD) + len(HEAD)
    end = page.index("\n\n", start) + 1
    found = "".join(table(lines))
    if request.config.getoption("--write-output") and page[start:end] != found:
        PAGE.write_text(page[:start] + found + page[end:], encoding="utf-8")
        pytest.skip("table written into the page")
    assert page[start:end] == found, f"the tests found\n{found}\nthe page says\n{page[start:end]}"

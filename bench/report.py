#!/usr/bin/env python3
"""Puts the results of bench/run.py into docs/performance.md, as tables and plots.

    bench/report.py                      from bench/results/measured.json
    bench/report.py --results FILE --page FILE

The page's text is written by hand; what stands between `<!-- begin NAME -->` and `<!-- end NAME -->` is replaced.
"""

import argparse
import json
import pathlib
import re
import sys

import cells
import plots
import tables

HERE = pathlib.Path(__file__).resolve().parent
NAMES = {("forward", "y"): "forward", ("forward", "saved"): "forward that keeps what backward needs",
         ("backward", "all"): "backward, all three gradients", ("backward", "dx"): "backward, dx only"}


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--results", type=pathlib.Path, default=HERE / "results" / "measured.json")
    parser.add_argument("--page", type=pathlib.Path, default=HERE.parent / "docs" / "performance.md")
    options = parser.parse_args(argv)
    for path in (options.results, options.page):
        if not path.exists():
            print(f"report.py: {path} does not exist" + ("; bench/run.py writes it" if path == options.results else ""),
                  file=sys.stderr)
            return 2
    result = json.loads(options.results.read_text(encoding="utf-8"))
    page = options.page.read_text(encoding="utf-8")
    for name, text in sections(result).items():
        page = replace(page, name, text)
    options.page.write_text(page, encoding="utf-8")
    plots.draw_all(result, options.page.parent / "performance")
    return 0


def sections(result):
    return {
        "machine": machine(result),
        "peers": installed(result),
        "figures": "\n\n".join(filter(None, (tables.verdicts(result), tables.spread(result),
                                            tables.too_many_processors(result)))),
        "float32": grid(result, "float32"),
        "bfloat16": grid(result, "bfloat16"),
        "float16": grid(result, "float16"),
        "float64": grid(result, "float64"),
        "pytorch": for_pytorch(result),
        "accuracy": tables.accuracy(result),
        "losses": tables.losses(result),
        "cliffs": cliffs(result),
    }


def replace(page, name, text):
    pattern = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
    if not pattern.search(page):
        raise SystemExit(f"report.py: the page has no <!-- begin {name} --> ... <!-- end {name} -->")
    return pattern.sub(lambda match: match[1] + text + "\n" + match[2], page)


def machine(result):
    rows = [[key, value] for key, value in result["machine"].items()]
    rows += [["measured", result["date"]], ["other load at the start", f"{result['load at start']:.2f}"]]
    return tables.markdown(["", ""], rows)


def installed(result):
    rows = []
    for key, about in result["peers"].items():
        if " on " not in key:
            rest = ", ".join(f"{k} {v}" for k, v in about.items() if k not in ("name", "version"))
            rows.append([about["name"], about.get("version", ""), rest])
    rows += [[key, "not installed", reason] for key, reason in result["missing"].items()]
    return tables.markdown(["library", "version", ""], rows)


def grid(result, dtype):
    parts = []
    for direction, variant in cells.VARIANTS:
        table = tables.by_shape(result, dtype, direction, variant)
        if table:
            parts.append(f"**{dtype}, {NAMES[direction, variant]}**\n\n{table}")
    return "\n\n".join(parts)


def for_pytorch(result):
    parts = []
    for dtype in ("float32", "bfloat16"):
        for direction, variant in cells.PYTORCH_VARIANTS:
            table = tables.by_shape(result, dtype, direction, variant, "pytorch")
            if table:
                what = "one call" if variant == "call" else "a call and its gradients through autograd"
                parts.append(f"**{dtype}, {what}**\n\n{table}")
    return "\n\n".join(parts)


def cliffs(result):
    found = tables.figures.cliffs(result)
    if not found:
        return "Not measured."
    rows = [[tables.ratio(step), a, b] for step, a, b in found[:10]]
    return tables.markdown(["ratio", "between", "and"], rows)


if __name__ == "__main__":
    sys.exit(main())

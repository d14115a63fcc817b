#!/usr/bin/env python3
"""The tables of errors in docs/numerics.md: truenorm from Python beside PyTorch, ONNX Runtime, OpenVINO, JAX and Flax.

    make error-table                    installs these libraries into .venv, measures, and renews the page's tables
    bench/error_table.py                prints them
    bench/error_table.py --write        puts them between the marks `<!-- begin error-table -->` of the page
"""

import argparse
import dataclasses
import json
import pathlib
import shutil
import sys
import tempfile
import time

import cells
import inputs
import machine
import numeric
import numpy as np
import oracle
import peers
import report
import tables
import tqdm
from workers import Failed, Worker

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "numerics.md"
COLUMNS = ("truenorm_pytorch", "pytorch", "onnxruntime", "openvino", "jax", "flax")
TRAINING = ("truenorm_pytorch", "pytorch", "jax", "flax")

ROWS, D = 64, 768


def one_ulp_off(n, dtype):
    """A constant row but for one feature, which is the next number of the type."""
    row = numeric.rounded(np.full_like(n, 0.1), dtype).astype(np.float64)
    row[int(1e6 * abs(n[0])) % n.size] += numeric.ulp(row[0], dtype)
    return row


# What makes the rows of a kind, from N(0,1) and the type; those of bench/inputs.py and two more.
KINDS = (
    *((name, lambda n, dtype, make=make: make(n)) for name, make in inputs.HARD_ROWS),
    ("one feature one unit off 0.1", one_ulp_off),
    ("size 1e-42", lambda n, dtype: 1e-42 * n),
)
# Gradients: x and dy of each kind, from two of N(0,1).
GRADIENT_KINDS = (
    ("x = 3 N(0,1) + 2, dy = N(0,1)", lambda n, m: (3 * n + 2, m)),
    ("x = N(0,1), dy = 1 + N(0,1)/10", lambda n, m: (n, 1 + 0.1 * m)),
    ("x = 1000 + N(0,1), dy = N(0,1)", lambda n, m: (1000 + n, m)),
    ("x = N(0,1), dy = 1e-3 + 1000 N(0,1)", lambda n, m: (n, 1e-3 + 1000 * m)),
)
GRADIENT_ROWS, GRADIENT_D = 4096, 64


def activations(dtype):
    """The inputs of four norms of a language model, with their gamma, beta and eps."""
    folder = HERE.parent / "data" / "minilm"
    for norm in json.loads((folder / "index.json").read_text(encoding="utf-8"))["norms"]:
        x, gamma, beta = (np.load(folder / norm["folder"] / f"{what}.npy") for what in ("x", "gamma", "beta"))
        yield norm["folder"], norm["eps"], arrays_of(dtype, x.reshape(-1, x.shape[-1]), gamma, beta)


def arrays_of(dtype, x, gamma, beta, dy=None):
    parameters = "float32" if numeric.TYPES[dtype].itemsize == 2 else dtype
    arrays = {"x": numeric.rounded(x, dtype), "gamma": numeric.rounded(gamma, parameters),
              "beta": numeric.rounded(beta, parameters)}
    return arrays | ({} if dy is None else {"dy": numeric.rounded(dy, dtype)})


def forward_cases(dtype):
    """(name, eps, arrays) of every line of a table."""
    for name, make in KINDS:
        random = np.random.default_rng(list(name.encode()))
        with np.errstate(over="ignore"):
            x = np.stack([make(random.standard_normal(D), dtype) for _ in range(ROWS)])
        arrays = arrays_of(dtype, x, np.ones(D), np.zeros(D))
        values = arrays["x"].astype(np.float64)
        # Rows that the type cannot hold are left out.
        if np.isfinite(values).all() and (name.startswith("constant") or np.ptp(values, axis=1).all()):
            yield name, cells.EPS, arrays
    for name, eps, arrays in activations(dtype):
        yield f"MiniLM, {name.replace('_', ' ')}", eps, arrays


def gradient_cases(dtype):
    for name, make in GRADIENT_KINDS:
        random = np.random.default_rng(list(name.encode()))
        x, dy = make(*random.standard_normal((2, GRADIENT_ROWS, GRADIENT_D)))
        yield name, cells.EPS, arrays_of(dtype, x, 1 + 0.2 * random.standard_normal(GRADIENT_D), np.zeros(GRADIENT_D), dy)


def cell_of(direction, dtype, eps, arrays):
    rows, d = arrays["x"].shape
    cell = cells.make_cell(direction, "y" if direction == "forward" else "all", dtype, rows, d, 1, "hard")
    return dataclasses.replace(cell, base_rows=rows, eps=eps)


def line(workers, direction, dtype, eps, arrays, base):
    """What each library makes of one case, as text."""
    cell = cell_of(direction, dtype, eps, arrays)
    inputs.write(arrays, base / "case")
    exact = oracle.Oracle(cell, arrays)
    return [found(worker, cell, arrays, exact, base / "case") for worker in workers]


def found(worker, cell, arrays, exact, folder):
    every = list(range(cell.rows))
    try:
        worker.prepare(cell, folder)
        types = worker.ask("outputs", rows=every, folder=str(folder))["dtypes"]
        worker.release()
    except peers.Unsupported:
        return "-"
    except Failed as reason:
        raise SystemExit(f"error_table.py: {worker.name}: {reason}") from None
    got = {name: np.fromfile(folder / name, dtype=numeric.TYPES[kind]) for name, kind in types.items()}
    worst = [number(exact.errors(name, got[name], types[name], every).max()) for name in got]
    if cell.direction == "forward" and worst != ["not finite"]:
        worst[0] += f" ({number(exact.errors('y', got['y'], types['y'], every, of_row=True).max())})"
    return " / ".join(worst)


def number(error):
    if np.isinf(error):
        return "not finite"
    return f"{float(error):.2g}" if error < 100 else f"{float(error):.1e}".replace("e+0", "e").replace("e+", "e")


def table(workers, direction, dtype, base, progress):
    cases = forward_cases(dtype) if direction == "forward" else gradient_cases(dtype)
    lines = []
    for name, eps, arrays in cases:
        progress.set_postfix_str(f"{dtype}, {name}")
        lines.append([name, *line(workers, direction, dtype, eps, arrays, base)])
        progress.update()
    return tables.markdown([f"{dtype}, {direction}", *map(name_of, workers)], lines)


def name_of(worker):
    return "truenorm" if worker.key == COLUMNS[0] else worker.name


def describe(workers):
    about = machine.describe()
    versions = ", ".join(f"{name_of(w)} {w.versions['version']}" for w in workers)
    return (f"`make error-table`, {time.strftime('%Y-%m-%d')}, on {about['processor']} (family, model: "
            f"{about['family, model']}), {about['system'].split(', ')[-1]}, Python {about['Python']}; {versions}.")


def measure(base):
    workers = {}
    for key in COLUMNS:
        workers[key] = Worker(key, None, 1)
        workers[key].versions = workers[key].ask("hello")
    progress = tqdm.tqdm(unit="case", file=sys.stderr, mininterval=1 if sys.stderr.isatty() else 30)
    try:
        parts = [describe(workers.values())]
        parts += [table(list(workers.values()), "forward", t, base, progress) for t in ("float32", "float16", "bfloat16")]
        training = [workers[key] for key in TRAINING]
        parts += [table(training, "backward", t, base, progress) for t in ("float32", "bfloat16")]
    finally:
        progress.close()
        for worker in workers.values():
            worker.stop()
    return "\n\n".join(parts)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help=f"put the tables into {PAGE.relative_to(HERE.parent)}")
    options = parser.parse_args(argv)
    base = pathlib.Path(tempfile.mkdtemp(prefix="truenorm-errors-"))
    try:
        text = measure(base)
    except peers.Missing as reason:
        print(f"error_table.py: needs {reason}", file=sys.stderr)
        return 2
    finally:
        shutil.rmtree(base)
    print(text)
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(report.replace(page, "error-table", f"\n{text}\n"), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

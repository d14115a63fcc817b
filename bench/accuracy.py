"""The accuracy table: what each library makes of rows that are hard for a norm."""

import dataclasses

import cells
import inputs
import numeric
import numpy as np
import oracle
import peers
from workers import Failed

D = 768


def measure(workers, base):
    """{row: {peer: largest error in ulp, or the reason why there is none}}, float32, gamma = 1, beta = 0."""
    rows = len(inputs.HARD_ROWS)
    cell = dataclasses.replace(cells.make_cell("forward", "y", "float32", rows, D, 1, "hard"), base_rows=rows)
    folder = base / "hard"
    exact = oracle.Oracle(cell, inputs.make_hard_inputs(cell, folder))
    table = {name: {} for name, _ in inputs.HARD_ROWS}
    for worker in workers:
        if worker.key in peers.MEMORY or worker.module.PYTORCH:
            continue
        for (name, _), error in zip(inputs.HARD_ROWS, errors(worker, cell, folder, exact)):
            table[name][worker.key] = error
    return table


def errors(worker, cell, folder, exact):
    every = list(range(cell.rows))
    try:
        worker.prepare(cell, folder)
        worker.ask("outputs", rows=every, folder=str(folder))
        worker.release()
    except (peers.Unsupported, Failed) as reason:
        return [str(reason)] * cell.rows
    got = np.fromfile(folder / "y", dtype=numeric.TYPES[cell.dtype])
    by_row = exact.errors("y", got, cell.dtype, every).max(axis=1)
    return ["not finite" if np.isinf(error) else float(f"{error:.3g}") for error in by_row]

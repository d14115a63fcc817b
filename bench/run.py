#!/usr/bin/env python3
"""Verifies and times truenorm and every peer that is installed, interleaved in one run.

    bench/run.py                        the whole grid, under an hour; writes bench/results/measured.json
    bench/run.py --quick                a few shapes, under five minutes
    bench/run.py --check                speed beside the streaming copy and PyTorch at three shapes
    bench/run.py --only "float32 forward 512x768"   cells whose label has all these words
    bench/run.py --list                 the labels

Control-C ends it and keeps what was measured.

Needs the target bench_runners (cmake -DTRUENORM_BUILD_BENCH=ON) and bench/requirements.txt; `make bench` does all of
it. Then `bench/report.py` writes tables and plots.
"""

import argparse
import json
import pathlib
import shutil
import sys
import tempfile
import time

import accuracy
import cells
import inputs
import machine
import oracle
import peers
import tables
import tqdm
from measure import Settings, measure
from workers import start_workers

HERE = pathlib.Path(__file__).resolve().parent


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build-bench", help="CMake's build folder")
    parser.add_argument("--quick", action="store_true", help="a few shapes, few rounds")
    parser.add_argument("--check", action="store_true", help="three shapes beside the copy and PyTorch; no file")
    parser.add_argument("--only", action="append", default=[], metavar="WORDS",
                        help="cells whose label has all these words; also grid, scan, row or pytorch")
    parser.add_argument("--peers", help="comma-separated: " + ", ".join(peers.ORDER))
    parser.add_argument("--threads", default="1,2", help="numbers of threads, comma-separated (1,2)")
    parser.add_argument("--rounds", type=int, help="turns of each peer in a cell (7; quick 3)")
    parser.add_argument("--seconds", type=float, help="length of a turn (0.02; quick 0.005)")
    parser.add_argument("--minutes", type=float, default=50, help="from then on cells get the fewest rounds (50)")
    parser.add_argument("--output", type=pathlib.Path, help="the JSON file to write")
    parser.add_argument("--list", action="store_true", help="print the labels of the cells and stop")
    return parser.parse_args(argv)


def choose(options):
    threads = tuple(int(t) for t in options.threads.split(","))
    if options.check:
        return cells.grid(cells.CHECK_SHAPES, ("float32",), cells.BOTH, threads)
    if options.quick:
        chosen = cells.grid(cells.QUICK_SHAPES, ("float32", "bfloat16"), cells.BOTH, threads)
        chosen += cells.pytorch(cells.QUICK_SHAPES[:1], ("float32",), threads) + cells.long_row(threads)
    else:
        chosen = cells.grid(threads=threads) + cells.pytorch(threads=threads) + cells.long_row(threads) + cells.scan()
    for words in options.only:
        chosen = [cell for cell in chosen if set(words.split()) <= {*cell.label.split(), cell.part}]
    return list(dict.fromkeys(chosen))


def main(argv=None):
    options = parse(argv)
    chosen = choose(options)
    if options.list:
        print("\n".join(cell.label for cell in chosen))
        return 0
    if not chosen:
        print(f"run.py: no cell has all of {options.only}; --list prints the labels", file=sys.stderr)
        return 2
    short = options.quick or options.check
    settings = Settings(rounds=options.rounds or (3 if options.quick else 7),
                        seconds=options.seconds or (0.005 if short else 0.02), cell_seconds=5 if short else 20)
    keys = options.peers.split(",") if options.peers else list(peers.ORDER)
    if options.check and not options.peers:
        keys = ["truenorm", "streaming", "plain", "pytorch"]
    unknown = [key for key in keys if key not in peers.ORDER]
    if unknown:
        print(f"run.py: no peer {unknown[0]}; there are {', '.join(peers.ORDER)}", file=sys.stderr)
        return 2
    result = {"machine": machine.describe(), "load at start": machine.load(),
              "date": time.strftime("%Y-%m-%d"), "settings": vars(settings), "peers": {}, "missing": {}, "cells": []}
    try:
        run(chosen, keys, options, settings, result)
    except KeyboardInterrupt:
        print("\nrun.py: interrupted; what was measured is kept", file=sys.stderr)
        result["interrupted"] = True
    if options.check:
        print(tables.check(result))
        return 0
    default = options.build / "quick.json" if options.quick or options.only else HERE / "results" / "measured.json"
    output = options.output or default
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(dump(result), encoding="utf-8")
    print(tables.overview(result))
    print(f"written: {output}", file=sys.stderr)
    return 0


def run(chosen, keys, options, settings, result):
    """Thread count by thread count, so that only one set of worker processes is alive."""
    deadline, late = time.monotonic() + 60 * options.minutes, Settings(3, settings.seconds)
    memory = pathlib.Path("/dev/shm")
    base = pathlib.Path(tempfile.mkdtemp(prefix="truenorm-bench-", dir=memory if memory.is_dir() else None))
    progress = tqdm.tqdm(total=len(chosen), unit="cell", file=sys.stderr, mininterval=1 if sys.stderr.isatty() else 30)
    try:
        for threads in sorted({cell.threads for cell in chosen}):
            workers, missing = start_workers(keys, options.build, threads)
            result["missing"] |= missing
            result["peers"] |= {w.key: {"name": w.name} | w.versions for w in workers}
            for key, reason in missing.items():
                tqdm.tqdm.write(f"left out: {key}: {reason}", file=sys.stderr)
            try:
                for cell in (cell for cell in chosen if cell.threads == threads):
                    progress.set_postfix_str(cell.label)
                    now = late if time.monotonic() > deadline else settings
                    result["cells"].append(one_cell(cell, workers, base, now))
                    progress.update()
                if threads == 1 and not options.check:
                    result["accuracy"] = accuracy.measure(workers, base)
            finally:
                for worker in workers:
                    worker.stop()
    finally:
        progress.close()
        shutil.rmtree(base)


last_inputs = {}


def one_cell(cell, workers, base, settings):
    """Inputs and their exact results are kept for the cells that follow with the same ones."""
    key = (cell.rows, cell.d, cell.dtype, cell.parameters)
    if last_inputs.get("key") != key:
        folder = base / "-".join(map(str, key))
        if "folder" in last_inputs:
            shutil.rmtree(last_inputs["folder"])
        arrays = inputs.make_inputs(cell, folder)
        last_inputs.update(key=key, folder=folder, oracle=oracle.Oracle(cell, arrays))
    taking_part = [worker for worker in workers if plays(worker, cell.part)]
    measured = measure(cell, taking_part, last_inputs["folder"], last_inputs["oracle"], settings)
    fields = ("part", "direction", "variant", "dtype", "parameters", "rows", "d", "threads", "bytes")
    about = {"label": cell.label} | {name: getattr(cell, name) for name in fields}
    arrays = 2 if cell.direction == "forward" else 3
    # Where all that moves fits, and where the output alone does.
    levels = {"level": machine.level_of(cell.bytes), "output level": machine.level_of(cell.bytes // arrays)}
    return about | levels | {"results": measured}


def plays(worker, part):
    if part == "scan":
        return worker.key == "truenorm" or worker.key in peers.MEMORY
    return worker.module.PYTORCH in (None, part == "pytorch")


def dump(result):
    """JSON with one cell a line, so that versions of the file can be compared."""
    head = {key: value for key, value in result.items() if key != "cells"}
    body = ",\n".join(json.dumps(cell) for cell in result["cells"])
    return json.dumps(head, indent=1)[:-2] + ',\n "cells": [\n' + body + "\n]}\n"


if __name__ == "__main__":
    sys.exit(main())

"""One cell: every peer is verified, then all are timed in turns."""

import dataclasses
import random
import statistics
import time

import numeric
import numpy as np
import peers
from workers import Failed

PEER_LIMIT = 3.0  # a peer that is this many times slower than the fastest takes part in the first rounds only
FIRST_ROUNDS = 3
QUIET = 0.93  # of the best pace that a worker has seen: below, a neighbour shares the core, and the turn is repeated
MOST_TRIES = 6


@dataclasses.dataclass
class Settings:
    rounds: int = 7
    seconds: float = 0.02  # a turn
    cell_seconds: float = 20.0  # no new round after that


def measure(cell, workers, folder, oracle, settings):
    """Returns {peer: result}. A result has median, low and high (quartiles) in seconds, rounds, tries (turns with those that
    were repeated because a neighbour shared the core), errors in ulp, spin (processor seconds burnt after the calls) and
    processors (how many were busy during them); or `unsupported` or `failed` with the reason."""
    results, running = {}, []
    for worker in workers:
        try:
            worker.prepare(cell, folder)
            results[worker.key] = {"error": verify(cell, worker, folder, oracle)}
            running.append(worker)
        except peers.Unsupported as reason:
            results[worker.key] = {"unsupported": str(reason)}
        except Failed as reason:
            results[worker.key] = {"failed": str(reason)}
    times = take_turns(running, results, settings)
    for worker in running:
        if "failed" not in results[worker.key]:
            worker.release()
            results[worker.key] |= summary(times[worker.key])
    return results


def verify(cell, worker, folder, oracle):
    """The largest error of each result on the sampled rows, in ulp."""
    if worker.key in peers.MEMORY or oracle is None:
        return {}
    rows = oracle.sample()
    dtypes = worker.ask("outputs", rows=rows, folder=str(folder))["dtypes"]
    errors = {}
    for name, dtype in dtypes.items():
        got = np.fromfile(folder / name, dtype=numeric.TYPES[dtype])
        errors[name] = float(oracle.errors(name, got, dtype, rows).max())
    return errors


def take_turns(workers, results, settings):
    """Each round gives every worker one turn, in another order each time."""
    times = {worker.key: [] for worker in workers}
    order = random.Random(1)
    playing = list(workers)
    began = time.perf_counter()
    for turn in range(settings.rounds):
        order.shuffle(playing)
        for worker in list(playing):
            try:
                times[worker.key].append(quiet_turn(worker, settings.seconds))
            except Failed as reason:
                results[worker.key] = {"failed": str(reason)}
                playing.remove(worker)
        if turn + 1 == FIRST_ROUNDS:
            playing = without_slow(playing, times)
        if turn + 1 >= FIRST_ROUNDS and time.perf_counter() - began > settings.cell_seconds:
            break
    return times


def quiet_turn(worker, seconds):
    """The first turn that no neighbour slowed, or the least slowed one."""
    tries = []
    while len(tries) < MOST_TRIES:
        turn = worker.ask("time", seconds=seconds)
        tries.append(turn)
        worker.best_pace = max(worker.best_pace, turn["pace"])
        if turn["pace"] >= QUIET * worker.best_pace:
            break
    return max(tries, key=lambda turn: turn["pace"]) | {"tries": len(tries)}


def without_slow(playing, times):
    median = {worker.key: statistics.median(t["seconds"] for t in times[worker.key]) for worker in playing}
    rivals = [seconds for key, seconds in median.items() if key not in peers.MEMORY and key != "truenorm"]
    limit = PEER_LIMIT * min(rivals, default=float("inf"))
    return [w for w in playing if w.key in peers.MEMORY or w.key.startswith("truenorm") or median[w.key] <= limit]


def summary(turns):
    seconds = sorted(turn["seconds"] for turn in turns)
    low, high = np.percentile(seconds, [25, 75])
    spin, processors = (statistics.median(turn[name] for turn in turns) for name in ("spin", "processors"))
    tries = sum(turn["tries"] for turn in turns)
    four = lambda value: float(f"{value:.4g}")
    return {"median": four(statistics.median(seconds)), "low": four(low), "high": four(high), "best": four(seconds[0]),
            "rounds": len(seconds), "tries": tries, "spin": four(spin), "processors": float(f"{processors:.2f}")}

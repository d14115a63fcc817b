"""The worker process of a peer in Python: answers the same commands as the runners in C++ (server.h).

    python worker.py NAME       with NAME that of a file peers/peer_NAME.py
"""

import importlib
import json
import os
import resource
import sys
import time

import numeric
from cells import Cell
from peers import Unsupported


class Inputs:
    """The arrays of a cell. Peers that need other memory copy from these."""

    def __init__(self, cell, folder):
        self.x = numeric.repeated(f"{folder}/x", cell.dtype, cell.rows, cell.d)
        self.dy = None
        if cell.direction == "backward":
            self.dy = numeric.repeated(f"{folder}/dy", cell.dtype, cell.rows, cell.d)
        self.gamma = numeric.repeated(f"{folder}/gamma", cell.parameters, 1, cell.d)[0]
        self.beta = numeric.repeated(f"{folder}/beta", cell.parameters, 1, cell.d)[0]


def settle(call):
    """Calls until one costs no page fault: a library that allocates its results has then got its memory for good."""
    faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    start = time.perf_counter()
    for _ in range(12):
        before = faults()
        call()
        if faults() == before or time.perf_counter() - start > 3:
            break


def wait_until_idle():
    """Until threads that spin after a call sleep; returns the processor time that they burnt."""
    start = before = time.process_time()
    deadline = time.perf_counter() + 0.5
    while time.perf_counter() < deadline:
        time.sleep(0.002)
        now = time.process_time()
        if now - before < 2e-4:
            break
        before = now
    return time.process_time() - start


def pace():
    """Steps a second of a loop that needs nothing but the core: fewer while a neighbour shares it."""
    steps = range(5000)
    start = time.perf_counter()
    for _ in steps:
        pass
    return len(steps) / (time.perf_counter() - start)


def time_calls(call, seconds):
    start, warm = time.perf_counter(), 0
    while True:
        call()
        warm += 1
        elapsed = time.perf_counter() - start
        if elapsed >= 0.1 * seconds:
            break
    calls = max(1, int(seconds * warm / elapsed))
    repeat = range(calls)
    pace_before = pace()
    call()
    cpu_start, start = time.process_time(), time.perf_counter()
    for _ in repeat:
        call()
    elapsed, cpu = time.perf_counter() - start, time.process_time() - cpu_start
    slowest = min(pace_before, pace())
    return {"seconds": elapsed / calls, "calls": calls, "processors": cpu / elapsed, "pace": slowest, "spin": wait_until_idle()}


def write_outputs(kernel, command):
    kernel.call()
    dtypes = {}
    for name, array in kernel.results().items():
        chosen = array[command["rows"]] if name in ("y", "dx") else array
        chosen.tofile(f"{command['folder']}/{name}")
        dtypes[name] = array.dtype.name
    return {"dtypes": dtypes}


class Server:
    def __init__(self, peer):
        self.peer = peer
        self.kernel = None

    def answer(self, command):
        name = command["command"]
        if name == "hello":
            return self.peer.versions()
        if name == "prepare":
            self.kernel = None
            cell = Cell(**command["cell"])
            self.kernel = self.peer.prepare(cell, Inputs(cell, command["inputs"]))
            settle(self.kernel.call)
            return {"ready": True}
        if name == "release":
            self.kernel = None
            return {"released": True}
        if name == "time":
            return time_calls(self.kernel.call, command["seconds"])
        if name == "outputs":
            return write_outputs(self.kernel, command)
        return {"error": f"unknown command {name}"}


def main():
    # Libraries print what they like; replies have a stream of their own.
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    server = Server(importlib.import_module(f"peers.peer_{sys.argv[1]}"))
    for line in sys.stdin:
        try:
            reply = server.answer(json.loads(line))
        except Unsupported as reason:
            reply = {"unsupported": str(reason)}
        except Exception as error:  # noqa: BLE001 - the peer's failure is a result, not ours
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main()

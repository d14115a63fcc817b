"""Worker processes: one a peer, so that no thread pool disturbs another. They sleep while it is not their turn."""

import dataclasses
import importlib
import json
import os
import select
import subprocess
import tempfile

import peers

ANSWER_SECONDS = 120


class Failed(Exception):
    """The worker answered with an error, not in time, or not at all."""


class Worker:
    """The process of one peer with one number of threads; started at the first question, again after a crash."""

    def __init__(self, peer, build, threads, key=None):
        self.key = key or peer
        self.module = importlib.import_module(f"peers.peer_{peer}")
        self.name = self.module.NAME
        self.argv = self.module.command(build)
        self.threads = threads
        self.process = None
        self.best_pace = 0.0
        self.log = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115 - lives as long as the worker

    def ask(self, command, **arguments):
        if self.process is None or self.process.poll() is not None:
            self._start()
        try:
            self.process.stdin.write(json.dumps({"command": command} | arguments) + "\n")
            self.process.stdin.flush()
            reply = json.loads(self._read_line())
        except (OSError, ValueError) as error:
            self.stop()
            raise Failed(f"{self.name} ended: {self._last_words() or error}") from None
        if "unsupported" in reply:
            raise peers.Unsupported(reply["unsupported"])
        if "error" in reply:
            raise Failed(reply["error"])
        return reply

    def prepare(self, cell, folder):
        cell = dataclasses.replace(cell, threads=self.threads)
        self.ask("prepare", cell=dataclasses.asdict(cell), inputs=str(folder))

    def release(self):
        if self.process is not None:
            self.ask("release")

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def _start(self):
        environment = dict(os.environ) | self.module.environment(self.threads)
        # Some machines force NumPy to an old processor for safety; a benchmark wants the real one.
        environment.pop("OPENBLAS_CORETYPE", None)
        environment.pop("OPENBLAS_L2_SIZE", None)
        # A session of its own: Control-C is for run.py, which then ends its workers.
        argv = self.argv
        if self.threads == 1 and getattr(self.module, "BOUND", False):  # would keep more processors busy than one
            argv = ["taskset", "--cpu-list", str(max(os.sched_getaffinity(0))), *argv]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
                                        text=True, bufsize=1, env=environment, start_new_session=True)

    def _read_line(self):
        ready, _, _ = select.select([self.process.stdout], [], [], ANSWER_SECONDS)
        if not ready:
            raise ValueError(f"no answer in {ANSWER_SECONDS} s")
        return self.process.stdout.readline()

    def _last_words(self):
        self.log.seek(0)
        lines = [line for line in self.log.read().splitlines() if line.strip()]
        return lines[-1] if lines else ""


def start_workers(keys, build, threads):
    """The workers of the peers that are installed, and why the others are not there."""
    workers, missing = [], {}
    wanted = [(key, threads, key) for key in keys]
    if threads > 1 and "truenorm" in keys:  # what more threads gain is seen in one and the same cell
        wanted.append(("truenorm", 1, "truenorm on 1 thread"))
    for peer, count, key in wanted:
        try:
            worker = Worker(peer, build, count, key)
            worker.versions = worker.ask("hello")
            workers.append(worker)
        except peers.Missing as reason:
            missing[key] = f"needs {reason}"
        except Failed as reason:
            missing[key] = str(reason)
    return workers, missing

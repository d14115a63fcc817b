"""The yardstick inside the caches: a copy (forward) or triad (backward) with ordinary stores."""

from . import runner

NAME = "plain copy"
PYTORCH = False


def command(build):
    return runner(build, "memory_runner", "the target bench_runners") + ["plain"]


def environment(threads):
    return {}

"""The yardstick: a copy (forward) or triad (backward) of the same bytes with streaming stores."""

from . import runner

NAME = "streaming copy"
PYTORCH = False


def command(build):
    return runner(build, "memory_runner", "the target bench_runners") + ["streaming"]


def environment(threads):
    return {}

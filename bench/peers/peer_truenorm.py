"""truenorm through its C interface; outputs and scratch memory made once."""

from . import runner

NAME = "truenorm"
PYTORCH = False


def command(build):
    return runner(build, "truenorm_runner", "the target bench_runners")


def environment(threads):
    return {"TRUENORM_THREAD_WAIT": "100"}

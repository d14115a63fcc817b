"""oneDNN of the system, with OpenMP: primitive, memory and arguments made once, outputs preallocated."""

from . import runner

NAME = "oneDNN (OpenMP)"
PYTORCH = False


def command(build):
    return runner(build, "onednn_runner", "the Debian package libdnnl-dev")


def environment(threads):
    return {"OMP_NUM_THREADS": str(threads), "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64"}

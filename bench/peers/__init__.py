"""One file a peer, each with the same few names:

    NAME                      as it stands in tables
    PYTORCH                   True when it belongs to the table for callers of PyTorch; both tables: None
    BOUND                     True when it takes more processors than it is told to: with 1 thread bound to one
    command(build)            the worker process, or Missing with what would have to be installed
    environment(threads)      its environment, in which it does best
    versions()                in the worker: what runs
    prepare(cell, inputs)     in the worker: a Kernel, or Unsupported with the reason

Peers in C++ have a runner in place of the last two.
"""

import importlib.util
import pathlib
import sys

ORDER = ("truenorm", "streaming", "plain", "onednn", "onednn_sycl", "pytorch", "onnxruntime", "openvino", "jax",
         "numpy", "truenorm_pytorch")

# The yardsticks: not peers to be faster than.
MEMORY = ("streaming", "plain")


class Missing(Exception):
    """The peer is not installed."""


class Unsupported(Exception):
    """The peer is there, but has nothing for this cell."""


class Kernel:
    """What is timed: call() writes or makes the results; results() gives them as NumPy arrays by name."""

    def __init__(self, call, results):
        self.call = call
        self.results = results


def python_worker(name, *modules):
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise Missing(f"the Python package {module}")
    return [sys.executable, str(pathlib.Path(__file__).parents[1] / "worker.py"), name]


def runner(build, name, package):
    path = build / "bench" / name
    if not path.exists():
        raise Missing(package)
    return [str(path)]


def kept_memory():
    """glibc keeps what is freed, and asks for large pages: for peers that allocate results on every call."""
    return {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_ARENA_MAX": "1",
            "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}

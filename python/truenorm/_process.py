"""What holds for the whole process: threads and the instruction set."""

from __future__ import annotations

from . import _core


def set_num_threads(num_threads: int) -> None:
    """Sets how many threads calls use unless they say otherwise. Changes no bit of any result."""
    if isinstance(num_threads, bool) or not hasattr(num_threads, "__index__"):
        raise TypeError(f"num_threads is {num_threads!r}; expected an int")
    count = int(num_threads)
    if not 1 <= count <= 1024:
        raise ValueError(f"num_threads is {count}; expected 1 to 1024")
    _core.set_num_threads(count)


def get_num_threads() -> int:
    """How many threads calls use: as set, else TRUENORM_NUM_THREADS, else the CPUs this process may run on."""
    return _core.get_num_threads()


def get_isa() -> str:
    """The instruction set in use: the best the CPU has, capped by the environment variable TRUENORM_ISA."""
    return _core.isa()

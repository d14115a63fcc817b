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


def set_thread_wait(microseconds: int) -> None:
    """Sets how long threads stay awake after a call for the next one. 0, the default: they sleep at once.

    Worth 100 or so to a program that makes one call of a few megabytes after another, which then gains up to two times;
    it costs that much processor time after its last call, given up to whatever else wants to run.
    """
    if isinstance(microseconds, bool) or not hasattr(microseconds, "__index__"):
        raise TypeError(f"microseconds is {microseconds!r}; expected an int")
    wait = int(microseconds)
    if not 0 <= wait <= 1_000_000:
        raise ValueError(f"microseconds is {wait}; expected 0 to 1000000")
    _core.set_thread_wait(wait)


def get_thread_wait() -> int:
    """How long threads stay awake after a call, in microseconds: as set, else TRUENORM_THREAD_WAIT, else 0."""
    return _core.get_thread_wait()


def get_isa() -> str:
    """The instruction set in use: the best the CPU has, capped by the environment variable TRUENORM_ISA."""
    return _core.isa()

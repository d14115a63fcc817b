"""What holds for the whole process: threads and the instruction set."""

from __future__ import annotations

import operator

from . import _core
from ._arrays import shown


def whole(name: str, value: int, least: int, most: int, otherwise: str = "") -> int:
    """The value as an int; a TypeError or ValueError by this name when it is none, or beyond the limits."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} is {shown(value)}; expected an int{otherwise}")
    number = operator.index(value)
    if not least <= number <= most:
        raise ValueError(f"{name} is {shown(number)}; expected {least} to {most}{otherwise}")
    return number


def thread_count(num_threads: int, otherwise: str = "") -> int:
    return whole("num_threads", num_threads, 1, 1024, otherwise)


def set_num_threads(num_threads: int) -> None:
    """Sets how many threads calls use unless they say otherwise. Changes no bit of any result."""
    _core.set_num_threads(thread_count(num_threads))


def get_num_threads() -> int:
    """How many threads calls use: as set, else TRUENORM_NUM_THREADS, else the CPUs this process may run on."""
    return _core.get_num_threads()


def set_thread_wait(microseconds: int) -> None:
    """Sets how long threads stay awake after a call for the next one. 0, the default: they sleep at once.

    Worth 100 or so to a program that makes one call of a few megabytes after another, which then gains up to two times;
    it costs that much processor time after its last call, given up to whatever else wants to run.
    """
    _core.set_thread_wait(whole("microseconds", microseconds, 0, 1_000_000))


def get_thread_wait() -> int:
    """How long threads stay awake after a call, in microseconds: as set, else TRUENORM_THREAD_WAIT, else 0."""
    return _core.get_thread_wait()


def get_isa() -> str:
    """The instruction set in use: the best the CPU has, capped by the environment variable TRUENORM_ISA."""
    return _core.isa()

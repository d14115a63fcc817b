"""The C interface of truenorm; use the package, not this module."""

from collections.abc import Sequence

import numpy
from numpy.typing import NDArray
from typing_extensions import CapsuleType


FLOAT32: int = 1

FLOAT64: int = 2

FLOAT16: int = 3

BFLOAT16: int = 4

MAX_RANK: int = 8

def forward(dims: Sequence[int], d: int, x: tuple[int, Sequence[int] | None, int], gamma: tuple[int, Sequence[int] | None, int] | None, beta: tuple[int, Sequence[int] | None, int] | None, y: tuple[int, Sequence[int] | None, int] | None, mean: int, var: int, saved: int, eps: float, num_threads: int) -> None: ...

def backward(dims: Sequence[int], d: int, dy: tuple[int, Sequence[int] | None, int], x: tuple[int, Sequence[int] | None, int], gamma: tuple[int, Sequence[int] | None, int] | None, saved: int, dx: tuple[int, Sequence[int] | None, int] | None, dgamma: tuple[int, Sequence[int] | None, int] | None, dbeta: tuple[int, Sequence[int] | None, int] | None, eps: float, num_threads: int) -> None: ...

def saved_bytes(dims: Sequence[int], d: int, x: int) -> int: ...

def layer_norm_numpy(x: object | None, gamma: object | None, beta: object | None, eps: object | None, num_threads: int) -> object: ...

def nothing(x: object | None, gamma: object | None, beta: object | None, eps: object | None, num_threads: int) -> None:
    """
    Does nothing with the arguments of layer_norm_numpy: what such a call costs by itself.
    """

def read_tensors_with(api: CapsuleType, tensor: object, parameter: object) -> None: ...

def tensor_forward(x: object, gamma: object | None, beta: object | None, y: object, saved: object | None, normalized_shape: object | None, eps: object | None, num_threads: int) -> bool: ...

def tensor_backward(dy: object, x: object, gamma: object | None, saved: object | None, dx: object | None, dgamma: object | None, dbeta: object | None, normalized_shape: object, eps: float, num_threads: int) -> bool: ...

def dlpack_type(capsule: object) -> tuple[int, int, int, bool]: ...

def dlpack_bits(capsule: object) -> NDArray[numpy.uint16]: ...

def version() -> str: ...

def spec_version() -> int: ...

def isa() -> str: ...

def isa_names() -> list[str]: ...

def set_num_threads(num_threads: int) -> None: ...

def get_num_threads() -> int: ...

def set_thread_wait(microseconds: int) -> None: ...

def get_thread_wait() -> int: ...

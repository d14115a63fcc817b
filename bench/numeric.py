"""Element types by name: files, rounding, and the size of a unit in the last place."""

import ml_dtypes
import numpy as np

TYPES = {"float32": np.dtype(np.float32), "float64": np.dtype(np.float64), "float16": np.dtype(np.float16),
         "bfloat16": np.dtype(ml_dtypes.bfloat16)}
PRECISION = {"float32": 24, "float64": 53, "float16": 11, "bfloat16": 8}
SMALLEST_EXPONENT = {"float32": -126, "float64": -1022, "float16": -14, "bfloat16": -126}


def rounded(values, dtype):
    return np.ascontiguousarray(values, dtype=TYPES[dtype])


def ulp(values, dtype):
    """The distance between neighbours of `dtype` at |values|."""
    _, exponent = np.frexp(np.abs(values))
    exponent = np.maximum(exponent - 1, SMALLEST_EXPONENT[dtype])
    return np.ldexp(np.ones_like(values), exponent - PRECISION[dtype] + 1)


def repeated(path, dtype, rows, d):
    """The rows of a file, repeated to `rows` rows."""
    base = np.fromfile(path, dtype=TYPES[dtype]).reshape(-1, d)
    out = np.empty((rows, d), dtype=TYPES[dtype])
    for start in range(0, rows, len(base)):
        out[start:start + len(base)] = base[:rows - start]
    return out

"""The cells of the benchmark: which shapes, types and directions are timed."""

import dataclasses

DTYPES = ("float32", "bfloat16", "float16", "float64")
SIZE = {"float32": 4, "float64": 8, "float16": 2, "bfloat16": 2}
EPS = 1e-5

# Large before small, so that the library's threads already exist when small calls are timed.
SHAPES = (
    (512, 768), (8192, 768), (65536, 768), (512, 4096), (16384, 4096), (65536, 64), (1000000, 8), (16, 1048576),
    (32 * 128, 1024), (256, 16384), (100000, 24), (7, 65537), (1, 4096), (8, 768),
)
QUICK_SHAPES = ((512, 768), (512, 4096), (65536, 64), (32 * 128, 1024), (8, 768))
CHECK_SHAPES = ((512, 768), (8192, 768), (512, 4096))
PYTORCH_SHAPES = ((512, 768), (32 * 128, 1024), (16384, 4096), (1, 4096), (8, 768))

VARIANTS = (("forward", "y"), ("forward", "saved"), ("backward", "all"), ("backward", "dx"))
BOTH = (VARIANTS[0], VARIANTS[2])
# One long row, which threads can only share by splitting it.
LONG_ROW = (1, 1048576)

# What a caller of PyTorch writes: a forward call, and a forward and backward call through autograd.
PYTORCH_VARIANTS = (("forward", "call"), ("backward", "autograd"))


@dataclasses.dataclass(frozen=True)
class Cell:
    """One thing to time. The inputs hold base_rows different rows, repeated to fill the shape."""

    direction: str
    variant: str
    dtype: str
    rows: int
    d: int
    threads: int
    parameters: str
    base_rows: int
    eps: float = EPS
    part: str = dataclasses.field(default="grid", compare=False)  # grid, pytorch, row, scan or hard

    @property
    def label(self):
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return f"{self.dtype} {self.direction} {self.variant} {self.rows}x{self.d} {threads}"

    @property
    def bytes(self):
        """What must move: x and y, or x, dy and dx."""
        return self.rows * self.d * SIZE[self.dtype] * (2 if self.direction == "forward" else 3)


def make_cell(direction, variant, dtype, rows, d, threads, part="grid"):
    # Libraries of half types keep gamma and beta in float32; a model that PyTorch converts has them in its own type.
    half = SIZE[dtype] == 2 and part != "pytorch"
    parameters = "float32" if half else dtype
    return Cell(direction, variant, dtype, rows, d, threads, parameters, base_rows(rows, d), part=part)


def base_rows(rows, d):
    """About a million different elements, and an odd number of rows, so that no block of rows repeats in step."""
    return min(rows, max(3, 2**20 // d) | 1)


def grid(shapes=SHAPES, dtypes=DTYPES, variants=VARIANTS, threads=(1, 2), part="grid"):
    return [make_cell(direction, variant, dtype, rows, d, t, part)
            for t in threads for dtype in dtypes for rows, d in shapes for direction, variant in variants]


def pytorch(shapes=PYTORCH_SHAPES, dtypes=("float32", "bfloat16"), threads=(1, 2)):
    return grid(shapes, dtypes, PYTORCH_VARIANTS, threads, "pytorch")


def long_row(threads=(1, 2)):
    return grid((LONG_ROW,), ("float32",), BOTH, threads, "row")


def scan():
    """Widths and numbers of rows in small steps, to see cliffs. Truenorm and the yardsticks only."""
    widths = sorted({128 << i for i in range(10)} | {192 << i for i in range(9)})
    counts = (16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1000000)
    shapes = [(rows, d) for rows in counts for d in widths if rows * d <= 2**26]
    return grid(shapes, ("float32",), BOTH, (1,), "scan")

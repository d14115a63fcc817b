"""What the results say: ratios to the fastest peer, shares of the copy, scaling, flatness; and what is demanded."""

import dataclasses
import math

import peers


def median(cell, key):
    """Seconds of a call, or None when the peer has no time for this cell."""
    return cell["results"].get(key, {}).get("median")


def ours(cell):
    """Which of our columns stands against the peers."""
    return "truenorm_pytorch" if cell["part"] == "pytorch" else "truenorm"


def gigabytes(cell, key):
    seconds = median(cell, key)
    return cell["bytes"] / seconds / 1e9 if seconds else None


def fastest_peer(cell):
    """(key, seconds) of the fastest library but ours."""
    times = {key: median(cell, key) for key in cell["results"]
             if key not in peers.MEMORY and not key.startswith("truenorm")}
    times = {key: seconds for key, seconds in times.items() if seconds}
    return min(times.items(), key=lambda item: item[1], default=(None, None))


def against_fastest(cell):
    _, seconds = fastest_peer(cell)
    mine = median(cell, ours(cell))
    return seconds / mine if seconds and mine else None


def against(cell, keys):
    times = [median(cell, key) for key in keys if median(cell, key)]
    mine = median(cell, ours(cell))
    return min(times) / mine if times and mine else None


@dataclasses.dataclass
class Demand:
    """A line of the table of what must be shown: the cells it is about, the ratio, and its least values."""

    name: str
    chosen: object
    ratio: object
    every: float
    mean: float | None = None

    def judge(self, cells):
        ratios = {cell["label"]: self.ratio(cell) for cell in cells if self.chosen(cell)}
        ratios = {label: ratio for label, ratio in ratios.items() if ratio}
        return Verdict(self, ratios) if ratios else None


@dataclasses.dataclass
class Verdict:
    demand: Demand
    ratios: dict

    @property
    def worst(self):
        return min(self.ratios.items(), key=lambda item: item[1])

    @property
    def mean(self):
        return math.exp(sum(map(math.log, self.ratios.values())) / len(self.ratios))

    @property
    def missed(self):
        return sorted((ratio, label) for label, ratio in self.ratios.items() if ratio < self.demand.every)

    @property
    def met(self):
        return not self.missed and (self.demand.mean is None or self.mean >= self.demand.mean)


def is_grid(cell, dtype=None, direction=None):
    return cell["part"] == "grid" and dtype in (None, cell["dtype"]) and direction in (None, cell["direction"])


def against_peers(dtype, direction, every, mean):
    return Demand(f"{dtype} {direction}, against the fastest peer of each cell",
                  lambda cell: is_grid(cell, dtype, direction), against_fastest, every, mean)


def share_of_memory(direction, every, mean):
    return Demand(
        f"{direction}, output larger than the caches, all threads: share of the streaming "
        + ("copy" if direction == "forward" else "triad"),
        lambda cell: is_grid(cell, None, direction) and cell["threads"] > 1 and 256 <= cell["d"] <= 16384
        and cell["output level"] == "memory",
        lambda cell: against(cell, ("streaming",)), every, mean)


def scaling(cell):
    one, all_threads = median(cell, "truenorm on 1 thread"), median(cell, "truenorm")
    return one / all_threads if one and all_threads else None


def fits_caches(cell):
    return is_grid(cell) and cell["threads"] > 1 and cell["bytes"] >= 2**20 and cell["level"] != "memory"


DEMANDS = (
    against_peers("float32", "forward", 1.05, 1.5),
    against_peers("float32", "backward", 1.1, 1.8),
    against_peers("bfloat16", "forward", 1.05, 1.25),
    against_peers("bfloat16", "backward", 1.15, 1.8),
    against_peers("float16", "forward", 1.3, 2.2),
    against_peers("float16", "backward", 1.5, 2.5),
    against_peers("float64", "forward", 0.8, 1.1),
    against_peers("float64", "backward", 0.9, 1.3),
    share_of_memory("forward", 0.72, 0.82),
    share_of_memory("backward", 0.55, 0.68),
    Demand("2 threads against 1, 1 MB and more that fits the caches", fits_caches, scaling, 1.75, 1.85),
    Demand("one row of 1,048,576: 2 threads against 1",
           lambda cell: cell["part"] == "row" and cell["threads"] > 1, scaling, 1.6),
    Demand("8 x 768 and 1 x 4096, 1 thread, against oneDNN's whole call",
           lambda cell: is_grid(cell, "float32", "forward") and cell["variant"] == "y" and cell["threads"] == 1
           and (cell["rows"], cell["d"]) in ((8, 768), (1, 4096)),
           lambda cell: against(cell, ("onednn", "onednn_sycl")), 1.05),
    Demand("small calls with a pool of threads present against without (1 is equal)",
           lambda cell: is_grid(cell) and cell["threads"] > 1 and cell["bytes"] < 2**17, scaling, 0.95),
)


def verdicts(result):
    return [verdict for demand in DEMANDS if (verdict := demand.judge(result["cells"]))]


def cliffs(result):
    """Neighbours by d and by rows within one cache level: (ratio of time an element, label, label), worst first."""
    points = {(c["direction"], c["rows"], c["d"]): c for c in result["cells"]
              if c["part"] in ("scan", "grid") and c["dtype"] == "float32" and c["threads"] == 1
              and c["variant"] in ("y", "all") and c["d"] >= 128 and c["rows"] >= 16 and median(c, "truenorm")}
    found = []
    for (direction, rows, d), cell in points.items():
        wider = min((k for k in points if k[:2] == (direction, rows) and d < k[2] <= 1.5 * d), default=None)
        longer = min((k for k in points if k[0] == direction and k[2] == d and rows < k[1] <= 4 * rows), default=None)
        for key in (wider, longer):
            if key and points[key]["level"] == cell["level"]:
                found.append(step(cell, points[key]))
    return sorted(found, reverse=True)


def step(a, b):
    per_element = lambda cell: median(cell, "truenorm") / (cell["rows"] * cell["d"])
    ratio = per_element(a) / per_element(b)
    return max(ratio, 1 / ratio), a["label"], b["label"]

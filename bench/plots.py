"""The plots of docs/performance.md."""

import matplotlib

matplotlib.use("Agg")
import figures
import matplotlib.pyplot as plt
import peers
import tables

OURS = "#c0392b"
PEERS = {"onednn": "#2471a3", "onednn_sycl": "#5dade2", "pytorch": "#d68910", "onnxruntime": "#1e8449",
         "openvino": "#7d3c98", "jax": "#839192", "numpy": "#424949"}


def draw_all(result, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in (("share_of_copy", share_of_copy), ("speed_by_d", speed_by_d),
                       ("speed_by_rows", speed_by_rows), ("speed_against_error", speed_against_error)):
        figure = draw(result)
        if figure is not None:
            figure.savefig(folder / f"{name}.png", dpi=110, bbox_inches="tight")
            plt.close(figure)


def color_of(key):
    return OURS if key.startswith("truenorm") else PEERS.get(key, "#aaaaaa")


def share_of_copy(result):
    """Bars: each library's speed as a share of the streaming copy's (or triad's), shape by shape."""
    threads = max((c["threads"] for c in result["cells"]), default=1)
    figure, axes = plt.subplots(2, 1, figsize=(11, 8))
    drawn = False
    for axis, (direction, variant) in zip(axes, (("forward", "y"), ("backward", "all"))):
        chosen = [c for c in result["cells"] if c["part"] == "grid" and c["threads"] == threads and
                  (c["dtype"], c["direction"], c["variant"]) == ("float32", direction, variant) and
                  figures.median(c, "streaming")]
        chosen.sort(key=lambda c: (c["rows"] * c["d"], c["d"]))
        keys = [k for k in ("truenorm", *PEERS) if any(figures.median(c, k) for c in chosen)]
        for i, key in enumerate(keys):
            heights = [figures.gigabytes(c, key) / figures.gigabytes(c, "streaming") if figures.median(c, key) else 0
                       for c in chosen]
            at = [x + (i - (len(keys) - 1) / 2) * 0.8 / len(keys) for x in range(len(chosen))]
            axis.bar(at, heights, 0.8 / len(keys), color=color_of(key), label=tables.name_of(result, key))
            drawn = True
        axis.axhline(1, color="black", linewidth=0.8)
        axis.set_xticks(range(len(chosen)), [f"{c['rows']}\nx {c['d']}" for c in chosen], fontsize=8)
        yardstick = "copy" if direction == "forward" else "triad"
        axis.set_ylabel(f"share of the streaming {yardstick}")
        axis.set_title(f"float32 {direction}, {threads} thread" + "s" * (threads > 1))
    axes[0].legend(fontsize=8, ncols=4)
    figure.tight_layout()
    return figure if drawn else None


def scanned(result, direction):
    return [c for c in result["cells"] if c["part"] in ("scan", "grid") and c["dtype"] == "float32" and
            c["threads"] == 1 and c["direction"] == direction and c["variant"] in ("y", "all") and
            figures.median(c, "truenorm")]


def lines(result, along, across, chosen_values, title):
    """GB/s along one side of the shape, a line for each chosen value of the other; the streaming copy dashed."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 4), sharey=True)
    drawn = False
    for axis, direction in zip(axes, ("forward", "backward")):
        points = scanned(result, direction)
        for i, value in enumerate(chosen_values):
            line = sorted((c for c in points if c[across] == value), key=lambda c: c[along])
            if len(line) < 2:
                continue
            drawn = True
            color = plt.cm.viridis(i / len(chosen_values))
            where = [c[along] for c in line]
            axis.plot(where, [figures.gigabytes(c, "truenorm") for c in line], "o-", markersize=3, color=color,
                      label=f"{across} = {value}")
            copy = [(c[along], figures.gigabytes(c, "streaming")) for c in line if figures.median(c, "streaming")]
            if copy:
                axis.plot(*zip(*copy), "--", linewidth=0.8, color=color)
        axis.set_xscale("log", base=2)
        axis.set_xlabel(along)
        axis.set_title(f"{direction}, {title}")
        axis.set_ylim(bottom=0)
    axes[0].set_ylabel("GB/s (dashed: streaming copy or triad)")
    if drawn:
        axes[0].legend(fontsize=8)
    figure.tight_layout()
    return figure if drawn else None


def speed_by_d(result):
    return lines(result, "d", "rows", (16, 256, 4096, 65536), "float32, 1 thread")


def speed_by_rows(result):
    return lines(result, "rows", "d", (128, 768, 4096, 65536), "float32, 1 thread")


def speed_against_error(result):
    """One point a library: how fast, and how far off in the worst of the checked elements."""
    chosen = [c for c in result["cells"] if c["part"] == "grid" and c["threads"] == 1 and
              (c["dtype"], c["rows"], c["d"]) == ("float32", 512, 768) and c["variant"] in ("y", "all")]
    if not chosen:
        return None
    figure, axes = plt.subplots(1, len(chosen), figsize=(5.5 * len(chosen), 4), squeeze=False)
    for axis, cell in zip(axes[0], chosen):
        for key, found in cell["results"].items():
            if key in peers.MEMORY or "median" not in found or not found.get("error"):
                continue
            axis.scatter(max(found["error"].values()), figures.gigabytes(cell, key), color=color_of(key), s=40)
            axis.annotate(tables.name_of(result, key), (max(found["error"].values()), figures.gigabytes(cell, key)),
                          textcoords="offset points", xytext=(6, 3), fontsize=8)
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_formatter("")
        axis.set_xlabel("largest error, ulp (left is better)")
        axis.set_ylabel("GB/s (up is better)")
        axis.margins(x=0.3, y=0.15)
        axis.set_ylim(bottom=0)
        axis.set_title(f"{cell['direction']}, float32, 512 x 768, 1 thread")
    figure.tight_layout()
    return figure

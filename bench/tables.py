"""Results as text: Markdown tables, which read well on a terminal too."""

import figures
import peers


def name_of(result, key):
    return result["peers"].get(key, {}).get("name", key)


def markdown(head, rows):
    """Columns padded to equal width."""
    table = [list(map(str, head))] + [list(map(str, row)) for row in rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(head))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in table]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def number(value, digits=2):
    """Two significant digits are what a timing is worth."""
    if value is None:
        return ""
    if value >= 10**digits:
        return f"{value:.0f}"
    return f"{value:.{digits}g}"


def ratio(value):
    return "" if value is None else f"{value:.2f}"


def errors(found):
    """The errors of one result in ulp, in the order y, or dx, dgamma, dbeta."""
    if not found:
        return ""
    ordered = [found[name] for name in ("y", "dx", "dgamma", "dbeta") if name in found]
    return "/".join("wrong" if e == float("inf") else number(e) for e in ordered)


def by_shape(result, dtype, direction, variant, part="grid"):
    """One table: GB/s with 1 thread (2 threads) and the error, peer by peer."""
    chosen = [c for c in result["cells"] if c["part"] == part and
              (c["dtype"], c["direction"], c["variant"]) == (dtype, direction, variant)]
    if not chosen:
        return ""
    keys = [key for key in peers.ORDER if any(figures.median(c, key) for c in chosen)]
    shapes = dict.fromkeys((c["rows"], c["d"]) for c in chosen)
    rows = []
    for shape in sorted(shapes, key=lambda s: (s[0] * s[1], s[1])):
        cells = sorted((c for c in chosen if (c["rows"], c["d"]) == shape), key=lambda c: c["threads"])
        rows.append([f"{shape[0]} x {shape[1]}"] + [entry(cells, key) for key in keys] +
                    [", ".join(ratio(figures.against_fastest(c)) for c in cells)])
    return markdown(["rows x d"] + [name_of(result, key) for key in keys] + ["ratio to the fastest"], rows)


def entry(cells, key):
    """"48 (89) · 1.8": GB/s with 1 thread, with 2, and the error in ulp."""
    speeds = [number(figures.gigabytes(c, key)) for c in cells]
    text = speeds[0] + "".join(f" ({speed})" for speed in speeds[1:] if speed)
    found = next((errors(c["results"][key].get("error")) for c in cells if key in c["results"]), "")
    return f"{text} · {found}" if text and found else text


def verdicts(result):
    rows = []
    for verdict in figures.verdicts(result):
        demand = verdict.demand
        label, worst = verdict.worst
        rows.append([demand.name, ratio(demand.every), ratio(worst), label,
                     ratio(demand.mean), ratio(verdict.mean), f"{len(verdict.missed)} of {len(verdict.ratios)}"])
    found = figures.cliffs(result)
    if found:
        worst, a, b = found[0]
        missed = sum(step >= 1.6 for step, _, _ in found)
        rows.append(["cost an element, neighbouring shapes (below)", "1.60", ratio(worst), f"{a}; {b}", "", "",
                     f"{missed} of {len(found)}"])
    if not rows:
        return ""
    return markdown(["figure", "every cell", "worst", "where", "mean", "reached", "missed"], rows)


def losses(result):
    """The cells in which another library is faster, worst first."""
    rows = []
    for cell in result["cells"]:
        value = figures.against_fastest(cell) if cell["part"] == "grid" else None
        if value and value < 1:
            key, _ = figures.fastest_peer(cell)
            rows.append([value, cell["label"], name_of(result, key), number(figures.gigabytes(cell, key)),
                         number(figures.gigabytes(cell, "truenorm"))])
    rows.sort()
    return markdown(["ratio", "cell", "faster", "its GB/s", "ours"], [[ratio(r[0])] + r[1:] for r in rows]) if rows \
        else "None."


def accuracy(result):
    table = result.get("accuracy", {})
    keys = [key for key in peers.ORDER if any(key in row for row in table.values())]
    show = lambda value: value if isinstance(value, str) else number(value)
    rows = [[row] + [show(found.get(key, "")) for key in keys] for row, found in table.items()]
    return markdown(["row of 768"] + [name_of(result, key) for key in keys], rows)


def spread(result):
    """How far quartiles lie from the median: what a ratio is worth."""
    widths = sorted((r["high"] - r["low"]) / r["median"] for c in result["cells"] for r in c["results"].values()
                    if "median" in r)
    if not widths:
        return ""
    at = lambda share: f"{100 * widths[int(share * (len(widths) - 1))]:.1f} %"
    return ("Spread (upper less lower quartile, of the median): half of the timings below "
            f"{at(0.5)}, nine in ten below {at(0.9)}.")


def too_many_processors(result):
    """Libraries that kept more than one processor busy in cells of one thread: their figures flatter them."""
    found = {}
    for cell in result["cells"]:
        for key, r in cell["results"].items():
            if cell["threads"] == 1 and r.get("processors", 0) > 1.25:
                found.setdefault(name_of(result, key), []).append(r["processors"])
    lines = [f"- {name}: up to {max(values):.1f} in {len(values)} cells" for name, values in found.items()]
    return "\n".join(["Busy with more than one processor in cells of 1 thread:", *lines]) if lines else ""


def check(result):
    """The speed check: our GB/s beside the copy's, and the ratio to PyTorch."""
    rows = []
    for cell in result["cells"]:
        pytorch = figures.against(cell, ("pytorch",))
        rows.append([cell["label"]] + [number(figures.gigabytes(cell, key)) for key in
                                       ("truenorm", "streaming", "plain", "pytorch")] + [ratio(pytorch)])
    return markdown(["GB/s", "truenorm", "streaming copy or triad", "plain", "PyTorch", "truenorm : PyTorch"], rows)


def overview(result):
    rows = []
    for cell in result["cells"]:
        key, _ = figures.fastest_peer(cell)
        ours = cell["results"].get(figures.ours(cell), {})
        rows.append([cell["label"], number(figures.gigabytes(cell, figures.ours(cell))), errors(ours.get("error")),
                     number(figures.gigabytes(cell, "streaming")), number(figures.gigabytes(cell, key)),
                     name_of(result, key) if key else "", ratio(figures.against_fastest(cell))])
    head = ["cell", "GB/s", "ulp", "streaming", "fastest peer", "which", "ratio"]
    parts = [markdown(head, rows), verdicts(result), spread(result), too_many_processors(result)]
    return "\n\n".join(part for part in parts if part)

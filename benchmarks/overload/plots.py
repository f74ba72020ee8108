"""How long tiles and refusals take: SVG and PNG."""
from common.plots import pyplot, save

BARS = (("quiet", "p99", "tiles, quiet", "#9bc4d6"), ("hits", "p99", "tiles, overloaded", "#1f6f8b"), ("refused", "p99", "refusals", "#b3541e"))


def draw(result, folder):
    records = result["records"]
    figure, axes = pyplot.subplots(figsize=(9, 4.5))
    for number, (part, key, label, color) in enumerate(BARS):
        values = [(r[part] or {}).get(key) or float("nan") for r in records]
        axes.bar([i + (number - 1) * .27 for i in range(len(records))], values, .27, label=label, color=color)
    axes.set_xticks(range(len(records)), [r["who"] for r in records], rotation=15)
    axes.set_yscale("log")
    axes.set_ylabel("99th percentile, ms")
    axes.grid(True, axis="y", alpha=.3)
    axes.legend()
    save(figure, folder, "overload")

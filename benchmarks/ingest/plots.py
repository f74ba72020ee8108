"""Times of the cube and rates of the pyramids: SVG and PNG."""
from common.plots import pyplot, save
from ingest.report import duration

OURS, OTHERS, PUBLISHED = "#1f6f8b", "#b3541e", "#9aa5b1"
REPORTED = (("published: as installed", 84 * 60), ("published: tuned", 35 * 60), ("published: its tile cache", 48))


def draw_cube(records, folder):
    bars = [*((name, seconds, PUBLISHED) for name, seconds in REPORTED), *((r["who"], r["seconds"], OURS if r["who"].startswith("ours") else OTHERS) for r in records)]
    bars.sort(key=lambda bar: -bar[1])
    figure, axes = pyplot.subplots(figsize=(9, .5 * len(bars) + 1.3))
    axes.barh([name for name, _, _ in bars], [seconds for _, seconds, _ in bars], color=[color for _, _, color in bars])
    for at, (_, seconds, _) in enumerate(bars):
        axes.annotate(duration(seconds), (seconds, at), textcoords="offset points", xytext=(4, 0), va="center", fontsize=8)
    axes.set_xscale("log")
    axes.set_xlim(right=3 * bars[0][1])
    axes.set_xlabel("seconds")
    axes.set_title(f"{records[0]['images']} images of 1024x608 into a cube in PostgreSQL")
    axes.grid(True, axis="x", alpha=.3)
    save(figure, folder, "cube")


def draw_pyramid(records, folder):
    forms = list(dict.fromkeys(r["form"] for r in records))
    figure, panels = pyplot.subplots(1, len(forms), figsize=(5.5 * len(forms), 4.2), squeeze=False)
    for axes, form in zip(panels[0], forms):
        bars = [r for r in records if r["form"] == form]
        axes.barh([r["who"] for r in bars], [r["tiles"] / r["seconds"] for r in bars], color=[OURS if r["who"].startswith("ours") else OTHERS for r in bars])
        for at, r in enumerate(bars):
            axes.annotate(f"{r['tiles'] / r['seconds']:,.0f}", (r["tiles"] / r["seconds"], at), textcoords="offset points", xytext=(4, 0), va="center", fontsize=8)
        axes.margins(x=.15)
        axes.set_xlabel("tiles/s, overviews included, one processor")
        axes.set_title(form)
        axes.grid(True, axis="x", alpha=.3)
    save(figure, folder, "pyramid")


def draw(result, folder):
    if result.get("cube"):
        draw_cube(result["cube"], folder)
    if result.get("pyramid"):
        draw_pyramid(result["pyramid"], folder)

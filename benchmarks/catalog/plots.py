"""The result as pictures: SVG and PNG."""
import re

from catalog.requests import WINDOWS, filtered_target
from common.plots import pyplot, save

COLOURS = {"MapCache": "#b3541e", "ours": "#1f6f8b"}
ZOOM = re.compile(r" z(\d+) ")


def records(result, part, state=None):
    return [r for r in result["parts"].get(part, {"records": []})["records"] if state in (None, r["state"])]


def by_zoom(rows, who, alias):
    """zoom -> median, of the maps of one alias."""
    found = {}
    for r in rows:
        match = ZOOM.search(r["case"] + " ")
        if match and r["case"].endswith(" " + alias) and r["case"].startswith("WMS_1024") and who in r["servers"]:
            found[int(match.group(1))] = r["servers"][who]["p50"]
    return found


def curve(axes, points, label, **style):
    if points:
        axes.plot(list(points), list(points.values()), label=label, marker=style.pop("marker", "o"), **style)


def plot_filtered(result, folder):
    """Filtered maps by zoom, cold and repeated, and the targets."""
    figure, axes = pyplot.subplots(figsize=(9, 5))
    warm = records(result, "filtered", "warm")
    curve(axes, by_zoom(warm, "MapCache", "catalog-geo"), "MapCache", color=COLOURS["MapCache"])
    curve(axes, by_zoom(records(result, "threaded"), "MapCache", "catalog-mtgeo"), "MapCache, threads for tiles", color=COLOURS["MapCache"], linestyle="--", marker="s")
    curve(axes, by_zoom(records(result, "first"), "ours", "catalog-geo"), "ours, first request of the process", color=COLOURS["ours"], linestyle=":", marker="^")
    curve(axes, by_zoom(records(result, "opened"), "ours", "catalog-geo"), "ours, files open", color=COLOURS["ours"], linestyle="--", marker="s")
    curve(axes, by_zoom(warm, "ours", "catalog-geo"), "ours, repeated", color=COLOURS["ours"])
    for state, shade in (("first", "#cccccc"), ("warm", "#999999")):
        axes.plot([w[0] for w in WINDOWS], [filtered_target(w[0], state) for w in WINDOWS], color=shade, linewidth=1, label=f"target, {state}")
    axes.set_yscale("log")
    axes.set_xlabel("zoom")
    axes.set_ylabel("ms, median")
    axes.set_title("WMS 1024x1024 over the catalogue, with the geographic filter")
    axes.grid(True, which="both", alpha=.3)
    axes.legend(fontsize=8)
    save(figure, folder, "filtered")


def bars(result, folder, name, part, title, unit, label):
    """Both servers' medians side by side, one group for each case."""
    rows = [r for r in records(result, part) if r["unit"] == unit and r["servers"]]
    if not rows:
        return
    figure, axes = pyplot.subplots(figsize=(max(7, 0.55 * len(rows)), 5))
    for number, who in enumerate(("MapCache", "ours")):
        found = [(i + (number - .5) * .4, r["servers"][who]["p50"]) for i, r in enumerate(rows) if who in r["servers"]]
        if found:
            axes.bar([x for x, _ in found], [y for _, y in found], .4, label=who, color=COLOURS[who])
    axes.set_xticks(range(len(rows)), [label(r) for r in rows], rotation=60, ha="right", fontsize=8)
    axes.set_yscale("log")
    axes.set_ylabel(f"{unit}, median")
    axes.set_title(title)
    axes.grid(True, axis="y", alpha=.3)
    axes.legend()
    save(figure, folder, name)


def draw(result, folder):
    """All pictures that the measured parts allow."""
    if records(result, "filtered"):
        plot_filtered(result, folder)
    bars(result, folder, "unfiltered", "unfiltered", "Without a filter, repeated", "ms", lambda r: r["case"])
    bars(result, folder, "configurations", "configurations", "Every configuration, zoom 2, repeated", "ms", lambda r: r["case"].replace(" z2", ""))
    bars(result, folder, "memory", "memory", "Memory of a child", "MB", lambda r: r["case"].replace("PSS of the child, after ", ""))
    bars(result, folder, "scale", "scale", "Catalogues of three sizes", "ms", lambda r: f"{r['case'].split(', ', 1)[1]}, {r['state']}")

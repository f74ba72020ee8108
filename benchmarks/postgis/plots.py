"""The result as pictures: SVG and PNG."""
from common.plots import pyplot, save
from postgis.report import average, of, values

COLOURS = {"ours auto": "#0b3c5d", "ours binary": "#1f6f8b", "ours hex": "#7fb7c9", "ours twkb": "#3f9e6f", "ours pixel": "#6f5fa8", "ours shapefile": "#8fd0a5",
           "MapServer postgis": "#b3541e", "MapServer shapefile": "#e0a07a"}


def groups(axes, records, value, also=None):
    """Bars of each server in a group for each zoom; `also` is stacked on top."""
    zooms, servers = values(records, "zoom"), values(records, "who")
    width = .8 / len(servers)
    for number, who in enumerate(servers):
        found = [(i + (number - (len(servers) - 1) / 2) * width, of(records, who=who, zoom=zoom)) for i, zoom in enumerate(zooms)]
        found = [(x, f) for x, f in found if f]
        low = [average(f, value) for _, f in found]
        axes.bar([x for x, _ in found], low, width, label=who, color=COLOURS.get(who, "#777777"))
        if also:
            axes.bar([x for x, _ in found], [average(f, also) for _, f in found], width, bottom=low, color=COLOURS.get(who, "#777777"), hatch="///", edgecolor="white",
                     linewidth=0)
    axes.set_xticks(range(len(zooms)), [f"zoom {zoom}" for zoom in zooms])
    axes.grid(True, axis="y", alpha=.3)


def draw_costs(name, records, folder):
    figure, axes = pyplot.subplots(figsize=(9, 5))
    groups(axes, records, "cpu", "database")
    axes.set_ylabel("processor ms for a map (hatched: the database's)")
    axes.set_title(f"{name}: processor time of a 1000x1000 map")
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1))
    save(figure, folder, f"{name}-cpu")


def draw_times(name, records, folder):
    """One diagram for each number of threads, as in the published test."""
    threads = values(records, "threads")
    figure, panels = pyplot.subplots(1, len(threads), figsize=(4.2 * len(threads), 4.5), sharey=True, squeeze=False)
    for axes, count in zip(panels[0], threads):
        groups(axes, of(records, threads=count), "mean")
        axes.set_yscale("log")
        axes.set_title(f"{count} thread{'s' if count > 1 else ''}")
    panels[0][0].set_ylabel("ms for a map, mean")
    panels[0][-1].legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1))
    save(figure, folder, f"{name}-times")


def draw_rates(name, records, folder):
    figure, panels = pyplot.subplots(1, len(values(records, "zoom")), figsize=(4.2 * len(values(records, "zoom")), 4.2), squeeze=False)
    for axes, zoom in zip(panels[0], values(records, "zoom")):
        for who in values(records, "who"):
            found = of(records, zoom=zoom, who=who)
            axes.plot([r["threads"] for r in found], [r["rate"] for r in found], marker="o", label=who, color=COLOURS.get(who, "#777777"))
        axes.set_title(f"zoom {zoom}")
        axes.set_xlabel("threads")
        axes.set_ylim(bottom=0)
        axes.grid(True, alpha=.3)
    panels[0][0].set_ylabel("maps/s")
    panels[0][-1].legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1))
    save(figure, folder, f"{name}-rates")


def draw(result, folder):
    for name in values(result["records"], "set"):
        records = of(result["records"], set=name)
        if records:
            for picture in (draw_costs, draw_times, draw_rates):
                picture(name, records, folder)

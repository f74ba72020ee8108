"""The result as pictures: SVG and PNG."""
from common.plots import pyplot, save
from vector.report import of, rate, values

COLOURS = {"ours": "#0b3c5d", "ours, overviews": "#2a8a4a", "ours, default budgets": "#7fb7c9", "ours, images": "#0b3c5d", "ST_AsMVT, the least server": "#b3541e", "martin, no cache": "#6f5fa8",
           "martin, cache": "#6f5fa8", "Mapnik": "#3f9e6f"}


def draw_kind(result, folder, kind):
    """Tiles per processor second by level, a diagram for each table; kept tiles are dashed."""
    records = of(result["records"], kind=kind)
    sets = values(records, "set")
    figure, panels = pyplot.subplots(1, len(sets), figsize=(4.4 * len(sets) + 2.5, 4.6), sharey=True, squeeze=False)
    for axes, data in zip(panels[0], sets):
        for who in values(records, "who"):
            for state, style in (("made", "-"), ("kept", "--")):
                found = of(records, set=data, who=who, state=state)
                if found:
                    axes.plot([r["level"] for r in found], [rate(r) for r in found], style, marker="o", markersize=3, label=who if state == "made" else f"{who}, kept",
                              color=COLOURS.get(who, "#999999"))
        axes.set_yscale("log")
        axes.set_title(f"{data}: {result['rows'][data]:,}")
        axes.set_xlabel("level")
        axes.grid(True, which="both", alpha=.25)
    panels[0][0].set_ylabel("tiles per processor second")
    panels[0][-1].legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1))
    save(figure, folder, kind)


def draw(result, folder):
    for kind in ("vector", "image"):
        if of(result["records"], kind=kind):
            draw_kind(result, folder, kind)

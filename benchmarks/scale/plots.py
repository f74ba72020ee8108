"""The result as a picture whose axes are logarithmic: SVG and PNG."""
from common.plots import pyplot, save
from scale.report import cost, of, values

COLOURS = pyplot.get_cmap("viridis")


def draw_panel(axes, records, value):
    """A line for each of the maps, over the number of rows."""
    zooms = values(records, "zoom")
    for number, zoom in enumerate(zooms):
        found = [(record["rows"], value(record)) for record in of(records, zoom=zoom)]
        found = [(rows, amount) for rows, amount in found if amount]
        axes.plot([rows for rows, _ in found], [amount for _, amount in found], marker="o", markersize=3, label=f"zoom {zoom}", color=COLOURS(number / max(1, len(zooms) - 1) * .92))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(True, which="both", alpha=.2)


def draw(result, folder):
    names = values(result["records"], "who")
    figure, panels = pyplot.subplots(2, len(names), figsize=(4.2 * len(names) + 1.5, 8), sharex=True, sharey="row", squeeze=False)
    for column, name in enumerate(names):
        found = of(result["records"], who=name)
        draw_panel(panels[0][column], found, cost)
        draw_panel(panels[1][column], found, lambda record: record["sent"])
        panels[0][column].set_title(name)
        panels[1][column].set_xlabel("rows of the table")
    panels[0][0].set_ylabel("processor ms of a map, server + database")
    panels[1][0].set_ylabel("bytes from the database")
    panels[0][-1].legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1))
    save(figure, folder, "scale")

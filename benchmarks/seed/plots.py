"""Metatiles/s, and where the processor time goes: SVG and PNG."""
from common.plots import pyplot, save
from seed.data import SETS
from seed.report import TITLES, of, rate

COLOURS = {"ours": "#1f6f8b", "renderd": "#b3541e"}


def draw_rates(result, folder):
    """Bars of the means with their deviation, and each run."""
    who = list(dict.fromkeys(r["who"] for r in result["runs"]))
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4.5), width_ratios=(2, 3))
    for number, name in enumerate(who):
        found = [rate(of(result, name, part)) for part in SETS]
        left.bar([i + (number - .5) * .38 for i in range(len(SETS))], [mean for mean, _ in found], .36, yerr=[deviation for _, deviation in found], capsize=4,
                 label=name, color=COLOURS[name])
        runs = [r for r in result["runs"] if r["who"] == name]
        right.plot(range(1, len(runs) + 1), [r["rate"] for r in runs], marker="o", color=COLOURS[name], label=name)
        for at, run in enumerate(runs, 1):
            right.annotate(run["set"], (at, run["rate"]), textcoords="offset points", xytext=(0, 7), ha="center", fontsize=8)
    left.set_xticks(range(len(SETS)), [f"{part}\n{TITLES[part]}" for part in SETS])
    right.set_xlabel("run")
    for axes in (left, right):
        axes.set_ylabel("metatiles/s")
        axes.set_ylim(0, 1.2 * max(r["rate"] for r in result["runs"]))
        axes.grid(True, axis="y", alpha=.3)
    right.legend(loc="center right")
    figure.suptitle("Metatiles of 64 tiles out of PostGIS, two processors, database included")
    save(figure, folder, "metatiles")


def draw_cpu(result, folder):
    """Processor time of a metatile: the program's and the database's."""
    bars = [(f"{name} {part}", of(result, name, part)) for part in SETS for name in COLOURS if of(result, name, part)]
    figure, axes = pyplot.subplots(figsize=(7, 4))
    own = [sum(r["cpu"] for r in runs) / len(runs) for _, runs in bars]
    database = [sum(r["database"] for r in runs) / len(runs) for _, runs in bars]
    axes.barh([label for label, _ in bars], own, color=[COLOURS[label.split()[0]] for label, _ in bars], label="the program")
    axes.barh([label for label, _ in bars], database, left=own, color="#9aa5b1", label="the database")
    axes.set_xlabel("processor ms for a metatile")
    axes.grid(True, axis="x", alpha=.3)
    axes.legend()
    save(figure, folder, "metatile-cpu")


def draw(result, folder):
    if result.get("runs"):
        draw_rates(result, folder)
        draw_cpu(result, folder)

"""Processor, memory and requests under way, over the time of a run: SVG and PNG."""
from common.plots import pyplot, save

COLOURS = {"ours module": "#0b3c5d", "ours FastCGI": "#1f6f8b", "ours CGI": "#3f9e6f", "MapServer mod_fcgid": "#e0a07a", "MapServer FastCGI": "#b3541e",
           "MapServer CGI": "#7a2e0e"}
PANELS = (("cpu", "% of the cores", 1), ("memory", "memory, MB", 1e6), ("waiting", "requests under way", 1))


def draw_time(mode, records, folder):
    figure, panels = pyplot.subplots(len(PANELS), 1, figsize=(9, 9), sharex=True)
    for axes, (key, label, unit) in zip(panels, PANELS):
        for r in records:
            points = r["time"][key]
            axes.plot([at for at, _ in points], [value / unit for _, value in points], label=r["who"], color=COLOURS.get(r["who"]), linewidth=1.2, marker=".", markersize=3)
        axes.set_ylabel(label)
        axes.grid(True, alpha=.3)
        if key == "memory":
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
    panels[0].legend(fontsize=8, ncols=2)
    panels[-1].set_xlabel("s")
    figure.suptitle(f"100 users, {mode}")
    save(figure, folder, f"time-{mode}")


def draw_times(mode, records, folder):
    """Median, 95th and 99th percentile of a request."""
    figure, axes = pyplot.subplots(figsize=(9, 4.5))
    for number, (key, label) in enumerate((("p50", "median"), ("p95", "p95"), ("p99", "p99"))):
        axes.bar([i + (number - 1) * .27 for i in range(len(records))], [r[key] for r in records], .27, label=label, color=("#1f6f8b", "#e0a07a", "#b3541e")[number])
    axes.set_xticks(range(len(records)), [r["who"] for r in records], rotation=15)
    axes.set_yscale("log")
    axes.set_ylabel("ms")
    axes.set_title(f"100 users, {mode}: how long a map takes")
    axes.grid(True, axis="y", alpha=.3)
    axes.legend()
    save(figure, folder, f"latency-{mode}")


def draw(result, folder):
    for mode in dict.fromkeys(r["mode"] for r in result["records"]):
        records = [r for r in result["records"] if r["mode"] == mode]
        draw_time(mode, records, folder)
        draw_times(mode, records, folder)

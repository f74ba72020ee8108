"""The result as tables, and what it says about the project's aims."""
from common.report import table
from load.measure import MODES

TITLES = {"published": "Published: 100 users over 100 s, 30 requests/s", "compressed": "Compressed: the same over 20 s, 150 requests/s",
          "unpaced": "As fast as it goes"}
COLUMNS = ["server", "maps/min", "mean ms", "p50", "p95", "p99", "worst", "errors", "CPU ms for a map", "% of the cores", "memory, MB", "processes"]


def line(r):
    return [r["who"], f"{r['per_minute']:,.0f}", *(f"{r[key]:,.1f}" for key in ("mean", "p50", "p95", "p99", "worst")), r["errors"], f"{r['cpu']:.2f}",
            f"{r['busy']:.1f}", f"{r['memory']:.0f}", r["processes"]]


def aim(what, value, bound, least=False):
    met = value >= bound if least else value <= bound
    return [what, f"{value:,.1f}", f"{'at least' if least else 'at most'} {bound:,}", "yes" if met else "**no**"]


def aims(records):
    lines = []
    for r in records:
        if not r["who"].startswith("ours"):
            continue
        name = f"{r['mode']}, {r['who']}"
        if r["who"].endswith(" CGI"):
            lines.append(aim(f"{name}: CPU ms for a map", r["cpu"], 25))
        elif r["mode"] == "published":
            lines += [aim(f"{name}: p95 ms", r["p95"], 20), aim(f"{name}: % of two cores", r["busy"] * r["cores"] / 2, 10)]
        elif r["mode"] == "unpaced":
            lines += [aim(f"{name}: maps/min", r["per_minute"], 20000, least=True), aim(f"{name}: p99 / p50", r["p99"] / r["p50"], 1.5)]
    return lines


def markdown(result):
    parts = ["# Maps of five layers, 600x400, by 100 users", "", "\n".join(f"- {key}: {value}" for key, value in result["machine"].items()),
             f"- taken: {result['taken']}"]
    for mode in MODES:
        records = [r for r in result["records"] if r["mode"] == mode]
        if records:
            parts += ["", f"## {TITLES[mode]}", "", f"{records[0]['requests']:,} requests.", "", table(COLUMNS, [line(r) for r in records])]
    return "\n".join(parts + ["", "## Aims", "", table(["aim", "found", "bound", "met"], aims(result["records"])), ""])

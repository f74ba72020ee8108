"""The result as tables, and what it says about the project's aims."""
from common.report import table

HITS = ["server", "tiles, quiet: p50 ms", "p99", "overloaded: p50", "p99", "p99, times", "errors"]
MAPS = ["server", "draws maps/s", "connections", "asked for/s", "times", "maps/s", "p50 ms", "p99", "refused/s", "p50 ms", "p99", "within 50 ms", "with Retry-After",
        "no answer yet", "others", "maps of 8 other addresses"]
SECONDS = 14.0


def number(value):
    return "-" if value != value else f"{value:,.1f}"


def factor(r):
    return r["hits"]["p99"] / r["quiet"]["p99"] if r["hits"] else float("nan")


def hit_line(r):
    quiet, hits = r["quiet"], r["hits"]
    return [r["who"], *(number(v) for v in (quiet["p50"], quiet["p99"], hits["p50"], hits["p99"], factor(r))), hits["errors"] + quiet["errors"]]


def map_line(r):
    maps, refused, polite = r["maps"], r["refused"], r["polite"]
    return [r["who"], number(r["rate"]), r["connections"], f"{r['offered']:,.0f}", f"{r['offered'] / r['rate']:.0f}", number(maps["rate"]), number(maps["p50"]),
            number(maps["p99"]), f"{refused['count'] / SECONDS:,.0f}", number(refused["p50"]), number(refused["p99"]), f"{100 * refused['soon']:.1f} %",
            f"{100 * refused['with_time'] / max(1, refused['count']):.0f} %", r["waiting"], r["others"], f"{polite['good']} of {polite['count']}"]


def aims(records):
    lines = []
    for r in records:
        if r["who"].startswith("ours"):
            lines.append([f"{r['who']}: p99 of stored tiles, times", number(factor(r)), "at most 2", "yes" if factor(r) <= 2 else "**no**"])
            late = r["refused"]["p99"]
            lines.append([f"{r['who']}: p99 of refusals, ms", number(late), "at most 50", "yes" if late <= 50 else "**no**"])
    return lines


def sentence(r):
    hits = "" if r["hits"] is None else f"tiles p50/p99 {r['quiet']['p50']:.2f}/{r['quiet']['p99']:.2f} -> {r['hits']['p50']:.2f}/{r['hits']['p99']:.2f} ms, "
    return (f"  {r['who']:26s} {hits}{r['rate']:.0f} maps/s; {r['connections']} connections, {r['offered']:.0f}/s: {r['maps']['rate']:.1f} maps/s "
            f"({r['maps']['p50']:.0f}/{r['maps']['p99']:.0f} ms), {r['refused']['count']} refused ({r['refused']['p50']:.2f}/{r['refused']['p99']:.2f} ms, "
            f"{100 * r['refused']['soon']:.1f} % soon, {r['refused']['with_time']} with time), {r['waiting']} waiting, {r['others']} others, "
            f"others' maps {r['polite']['good']} of {r['polite']['count']} ({r['polite']['p50']:.0f} ms)")


def markdown(result):
    records = result["records"]
    return "\n".join([
        "# More is asked for than can be done", "", "\n".join(f"- {key}: {value}" for key, value in result["machine"].items()), f"- taken: {result['taken']}", "",
        "## Stored tiles, 200 a second", "", table(HITS, [hit_line(r) for r in records if r["hits"]]), "",
        "## Maps of 1800x1200 pixels", "", table(MAPS, [map_line(r) for r in records]), "", "## Aims", "",
        table(["aim", "found", "bound", "met"], aims(records)), ""])

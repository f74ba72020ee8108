"""The result as one table, in which what misses an aim is bold."""
from common.report import table

COLUMNS = ["server, connections", "draws maps/s", "asked for/s", "tiles p50 / p99, ms: quiet", "overloaded", "p99, times", "maps/s", "refused/s", "refusals p50 / p99, ms",
           "within 50 ms", "maps of 8 others", "load of the machine"]
SECONDS = 14.0
TIMES_AT_MOST, REFUSAL_AT_MOST = 2, 50  # of the 99th percentile of tiles; ms


def number(value):
    """Milliseconds or a rate: two digits, at least those before the point."""
    return "-" if value != value else f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def marked(text, met):
    return text if met else f"**{text}**"


def pair(times):
    return f"{number(times['p50'])} / {number(times['p99'])}"


def factor(r):
    return r["hits"]["p99"] / r["quiet"]["p99"] if r["hits"] else float("nan")


def tiles_of(r):
    """Three cells."""
    if r["hits"] is None:
        return ["", "", ""]
    errors = r["hits"]["errors"] + r["quiet"]["errors"]
    times = factor(r)
    return [pair(r["quiet"]), pair(r["hits"]) + (f" ({errors} errors)" if errors else ""), marked(number(times), times <= TIMES_AT_MOST)]


def line(r):
    maps, refused, polite = r["maps"], r["refused"], r["polite"]
    late = marked(pair(refused), refused["p99"] <= REFUSAL_AT_MOST) if refused["count"] else "-"
    soon = f"{100 * refused['soon']:.1f} %" if refused["count"] else "-"
    refusals = number(refused["count"] / SECONDS) + (f" ({r['others']} errors)" if r["others"] else "")
    return [f"{r['who']}, {r['connections']:,}", number(r["rate"]), number(r["offered"]), *tiles_of(r), number(maps["rate"]), refusals, late, soon,
            f"{polite['good']} of {polite['count']}", number(r.get("load", float("nan")))]


def sentence(r):
    hits = "" if r["hits"] is None else f"tiles p50/p99 {r['quiet']['p50']:.2f}/{r['quiet']['p99']:.2f} -> {r['hits']['p50']:.2f}/{r['hits']['p99']:.2f} ms, "
    return (f"  {r['who']:26s} {hits}{r['rate']:.0f} maps/s; {r['connections']} connections, {r['offered']:.0f}/s: {r['maps']['rate']:.1f} maps/s "
            f"({r['maps']['p50']:.0f}/{r['maps']['p99']:.0f} ms), {r['refused']['count']} refused ({r['refused']['p50']:.2f}/{r['refused']['p99']:.2f} ms, "
            f"{100 * r['refused']['soon']:.1f} % soon, {r['refused']['with_time']} with time), {r['waiting']} waiting, {r['others']} others, "
            f"others' maps {r['polite']['good']} of {r['polite']['count']} ({r['polite']['p50']:.0f} ms)")


def markdown(result):
    records = result["records"]
    return "\n".join([
        "# More is asked for than can be done", "", "\n".join(f"- {key}: {value}" for key, value in result["machine"].items()),
        f"- processors: {result['processors']}", f"- taken: {result['taken']}", "", table(COLUMNS, [line(r) for r in records]), ""])

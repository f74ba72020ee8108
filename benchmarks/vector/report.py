"""The result as tables."""
import math
import statistics

from common.report import table

OURS, PEER = "ours", "ST_AsMVT, the least server"
AIM = 5  # times the tiles per processor second of ST_AsMVT


def values(records, key):
    """Every value of a key, in the order of their first appearance."""
    return list(dict.fromkeys(record[key] for record in records))


def of(records, **wanted):
    return [record for record in records if all(record[key] == value for key, value in wanted.items())]


def cost(record):
    """Processor milliseconds for a tile."""
    return record["server"] + record["database"]


def rate(record):
    """Tiles per processor second of server and database."""
    return 1e3 / cost(record) if cost(record) > 0 else math.nan


def short(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def lines_of(records, show):
    """A line for each level, a column for each server."""
    names = values(records, "who")
    lines = []
    for level in values(records, "level"):
        found = {record["who"]: record for record in of(records, level=level)}
        lines.append([level] + [show(found[name]) + (f" ({found[name]['errors']} errors)" if found[name]["errors"] else "") if name in found else "-" for name in names])
    return table(["level", *names], lines)


def costs(records):
    return lines_of(records, lambda r: f"{short(r['server'])} + {short(r['database'])} = **{short(cost(r))}**")


def rates(records):
    return lines_of(records, lambda r: short(rate(r)))


def sizes(records):
    return lines_of(records, lambda r: short(r["bytes"]))


def contents_table(found):
    lines = [[r["set"], r["level"], r["who"], r["read"], r["large"], short(r["bytes"] / max(1, r["read"] + r["large"])), f"{r['features']:,}", f"{r['vertices']:,}",
              len(r["wrong"]), f"{r['invalid']} of {r['examined']}"] for r in found]
    return table(["data", "level", "server", "tiles read", "counted only", "bytes of a tile, not packed", "features of these tiles", "vertices of those read", "wrong tiles",
                  "polygons not valid"], lines)


def gains(records):
    """Times the tiles per processor second of ST_AsMVT: (table, level, name) -> ratio."""
    made = of(records, kind="vector", state="made")
    found = {}
    for peer in of(made, who=PEER):
        for record in of(made, set=peer["set"], level=peer["level"]):
            found[record["set"], record["level"], record["who"]] = cost(peer) / cost(record) if cost(record) > 0 else math.nan
    return found


def gains_table(records):
    found = gains(records)
    names = [name for name in dict.fromkeys(key[2] for key in found) if name != PEER]
    lines = []
    for data in dict.fromkeys(key[0] for key in found):
        for name in names:
            ratios = [ratio for (table_name, _, who), ratio in found.items() if table_name == data and who == name]
            lines.append([data, name, f"{min(ratios):.2f}", f"{statistics.median(ratios):.2f}", f"{max(ratios):.2f}",
                          f"{sum(ratio >= AIM for ratio in ratios)} of {len(ratios)}" if name.startswith(OURS) else ""])
    return table(["data", "server", "least", "median of the levels", "most", f"levels with at least {AIM}"], lines)


def part(records, title, kind, state):
    found = of(records, kind=kind, state=state)
    return ["", f"### {title}", "", "Processor milliseconds for a tile, server + database:", "", costs(found), "", "Tiles per processor second:", "", rates(found), "",
            "Bytes of a tile as sent:", "", sizes(found)] if found else []


def levels_table(built):
    """Overviews that were built before the tiles, and which tiles were read from them."""
    lines = []
    for entry in built:
        size, zooms = sum(level["size"] for level in entry["levels"]) / 1e6, [level[end] for level in entry["levels"] for end in ("minzoom", "maxzoom") if end in level]
        lines.append([entry["set"], len(entry["levels"]), f"{min(zooms)} to {max(zooms)}" if zooms else "none", short(size), short(entry["table"]),
                      short(entry["builder"]), short(entry["database"]), short(entry["seconds"])])
    return table(["data", "overviews", "levels of tiles that they serve", "MB", "MB of the table with its indexes", "s of processor: builder", "database", "s until done"], lines)


def markdown(result):
    parts = ["# Vector tiles and image tiles", "", "\n".join(f"- {key}: {value}" for key, value in result["machine"].items()), f"- taken: {result['taken']}"]
    parts += ["", "Peers that are missing here: " + ("; ".join(f"{name} ({why})" for name, why in result["missing"].items()) or "none") + ".",
              "", f"## Beside {PEER}", "", "Times its tiles per processor second, of tiles that are made:", "", gains_table(result["records"])]
    if result["overviews"]:
        parts += ["", "## Overviews", "", "Built before by `mapcache overviews build --static`:", "", levels_table(result["overviews"])]
    for data in values(result["records"], "set"):
        found = of(result["records"], set=data)
        parts += ["", f"## {data}", "", f"{result['rows'][data]:,} features."]
        for title, kind, state in (("Vector tiles that are made", "vector", "made"), ("Vector tiles that are kept", "vector", "kept"),
                                   ("Image tiles that are made", "image", "made"), ("Image tiles that are kept", "image", "kept")):
            parts += part(found, title, kind, state)
    return "\n".join(parts + ["", "## What is in the vector tiles", "", contents_table(result["contents"]), ""])

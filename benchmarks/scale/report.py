"""The result as tables."""
from common.report import table


def values(records, key):
    """Every value of a key, in the order of their first appearance."""
    return list(dict.fromkeys(record[key] for record in records))


def of(records, **wanted):
    return [record for record in records if all(record[key] == value for key, value in wanted.items())]


def cost(record):
    """Processor milliseconds of server and database."""
    return record["server"] + record["database"]


def short(value):
    return "-" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def costs(records):
    """A line for each map; the largest table by the smallest last."""
    sizes = values(records, "rows")
    lines = []
    for zoom in values(records, "zoom"):
        found = {record["rows"]: record for record in of(records, zoom=zoom)}
        growth = cost(found[sizes[-1]]) / cost(found[sizes[0]]) if cost(found[sizes[0]]) > 0 else float("nan")
        lines.append([zoom] + [f"{short(r['server'])} + {short(r['database'])} = **{short(cost(r))}** (first {short(r['first'])})" + (f", {r['errors']} errors" if r["errors"] else "")
                               for r in found.values()] + [f"{growth:.1f}"])
    return table(["zoom", *(f"{rows:,} rows" for rows in sizes), "most / least rows"], lines)


def traffic(records):
    sizes = values(records, "rows")
    lines = [[zoom] + [f"{short(r['sent'])} / {short(r['image'])}" for r in of(records, zoom=zoom)] for zoom in values(records, "zoom")]
    return table(["zoom", *(f"{rows:,} rows" for rows in sizes)], lines)


def tables_table(result):
    lines = []
    for entry in result["tables"]:
        built = next((o for o in result["overviews"] if o["rows"] == entry["rows"]), None)
        lines.append([f"{entry['rows']:,}", f"{entry['size']:,.1f}", f"{entry['whole']:,.1f}", *(f"{count:,}" for count in entry["features"].values()),
                      f"{built['builder']:.2f} + {built['database']:.2f}" if built else "-", f"{built['size']:,.1f}" if built else "-"])
    return table(["rows", "MB", "MB with indexes", *(f"in zoom {zoom}" for zoom in result["tables"][0]["features"]), "overviews: s of processor, builder + database", "MB of overviews"],
                 lines)


def markdown(result):
    parts = ["# Maps of small and large tables", "", "\n".join(f"- {key}: {value}" for key, value in result["machine"].items()), f"- taken: {result['taken']}", "",
             "Missing here: " + ("; ".join(f"{name} ({why})" for name, why in {**result["missing"], **result["left"]}.items()) or "nothing") + ".", "",
             f"{result['edge']}x{result['edge']} pixels; at zoom z a map is the country's longer side divided by z. Features whose boxes are in each map:", "", tables_table(result)]
    for who in values(result["records"], "who"):
        found = of(result["records"], who=who)
        parts += ["", f"## {who}", "", "Processor milliseconds of a map, server + database; the first one of a new process in brackets.", "", costs(found), "",
                  "Bytes from the database / of the picture.", "", traffic(found)]
    return "\n".join(parts + [""])

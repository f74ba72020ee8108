"""The result as tables, and what it says about the project's aims."""
from common.report import table

PEERS = ("MapServer postgis", "MapServer shapefile")


def of(records, **wanted):
    return [r for r in records if all(r[key] == value for key, value in wanted.items()) and "mean" in r]


def values(records, key):
    """Every value of a key, in the order of their first appearance."""
    return list(dict.fromkeys(r[key] for r in records))


def whole(value):
    return "-" if value is None else f"{value:,.0f}"


def average(records, key):
    """Over the maps of all records; None where there is none."""
    counted = [r for r in records if r[key] is not None]
    return sum(r[key] * r["maps"] for r in counted) / sum(r["maps"] for r in counted) if counted else None


def cost(records):
    """Processor milliseconds of server and database for a map."""
    return average(records, "cpu") + average(records, "database") if records else None


def times(records):
    """Mean and deviation, and maps/s, by threads and server."""
    zooms = values(records, "zoom")
    lines = []
    for threads in values(records, "threads"):
        for who in values(records, "who"):
            found = [of(records, threads=threads, who=who, zoom=zoom) for zoom in zooms]
            lines.append([threads, who] + [f"{f[0]['mean']:.1f} ± {f[0]['deviation']:.1f}, {f[0]['rate']:.1f}/s" + (f" ({f[0]['errors']} errors)" if f[0]["errors"] else "")
                                           if f else "-" for f in found])
    return table(["threads", "server"] + [f"zoom {zoom}" for zoom in zooms], lines)


def costs(records):
    """Server + database, over all numbers of threads."""
    zooms = values(records, "zoom")
    lines = []
    for who in values(records, "who"):
        found = [of(records, who=who, zoom=zoom) for zoom in zooms]
        lines.append([who] + [f"{average(f, 'cpu'):.2f} + {average(f, 'database'):.2f} = **{cost(f):.2f}**" if f else "-" for f in found])
    return table(["server"] + [f"zoom {zoom}" for zoom in zooms], lines)


def sizes(records):
    """Bytes from the database and of the picture for a map."""
    zooms = values(records, "zoom")
    lines = [[who] + [f"{whole(average(f, 'sent'))} / {whole(average(f, 'image'))}" if f else "-" for f in (of(records, who=who, zoom=zoom) for zoom in zooms)]
             for who in values(records, "who")]
    return table(["server"] + [f"zoom {zoom}" for zoom in zooms], lines)


def tails(records):
    """How even the times are with the most threads."""
    zooms, most = values(records, "zoom"), max(r["threads"] for r in records)
    lines = []
    for who in values(records, "who"):
        found = [of(records, who=who, zoom=zoom, threads=most) for zoom in zooms]
        lines.append([who] + [f"{f[0]['p50']:.1f} / {f[0]['p99']:.1f} / {f[0]['worst']:.1f}" if f else "-" for f in found])
    return f"{most} threads, ms: p50 / p99 / worst\n\n" + table(["server"] + [f"zoom {zoom}" for zoom in zooms], lines)


AIMS = {"villages": {1: 16, 4: 7, 16: 3, 32: 1.8}, "municipalities": {1: 16, 4: 7, 16: 3, 32: 1.8}}  # processor milliseconds of a map from PostGIS
GAINS = {"parcels": 2.7, "roads": 4, "points": 4}                                                    # times less than MapServer
PIXEL_GAIN = 4                                                                                       # the same, with the coarsest thinning
RATES = {1: 4.5, 32: 7}                                                                              # times its maps/s with 20 threads


class Aims:
    """Lines of a table: what, how much, how much it should be, whether it is."""

    def __init__(self):
        self.lines = []

    def most(self, what, value, bound):
        self.lines.append([what, f"{value:.2f}", f"at most {bound:.4g}", "yes" if value <= bound else "**no**"])

    def least(self, what, value, bound):
        self.lines.append([what, f"{value:.2f}", f"at least {bound:.4g}", "yes" if value >= bound else "**no**"])


def best_of_ours(records):
    """Of the forms in which geometry can come from PostGIS, the one that `auto` should be: auto itself where there is one, else binary."""
    return of(records, who="ours auto") or of(records, who="ours binary")


def aims_of_cost(aims, name, zoom, records):
    ours, peer = cost(best_of_ours(records)), cost(of(records, who=PEERS[0]))
    if ours is not None and zoom in AIMS.get(name, {}):
        aims.most(f"{name} zoom {zoom}: CPU ms from PostGIS", ours, AIMS[name][zoom])
    if ours is not None and peer is not None and name in GAINS:
        aims.least(f"{name} zoom {zoom}: times less CPU than MapServer", peer / ours, GAINS[name])
    pixel = cost(of(records, who="ours pixel"))
    if pixel is not None and peer is not None:
        aims.least(f"{name} zoom {zoom}, thinned to a pixel: times less CPU than MapServer", peer / pixel, PIXEL_GAIN)
    above_shapefile(aims, name, zoom, records)


def above_shapefile(aims, name, zoom, records):
    """At the number of threads where the bound is met least."""
    found = []
    for threads in values(records, "threads"):
        same = of(records, threads=threads)
        ours, shapes = cost(best_of_ours(same)), cost(of(same, who="ours shapefile"))
        if ours is not None and shapes is not None:
            found.append((ours - shapes - max(3, .2 * shapes), ours - shapes, max(3, .2 * shapes), threads))
    if found:
        _, above, bound, threads = max(found)
        aims.most(f"{name} zoom {zoom}: CPU ms above our shapefile's, with {threads} thread{'s' if threads > 1 else ''}", above, bound)


def aims_of_load(aims, name, zoom, records):
    """With the most threads: rates and tails."""
    most = [r for r in records if r["threads"] == max(r["threads"] for r in records)]
    ours, peer = best_of_ours(most), of(most, who=PEERS[0])
    if not ours or ours[0]["threads"] < 20:
        return
    if peer and name in AIMS and zoom in RATES:
        aims.least(f"{name} zoom {zoom}, 20 threads: times MapServer's maps/s", ours[0]["rate"] / peer[0]["rate"], RATES[zoom])
    aims.most(f"{name} zoom {zoom}, 20 threads: p99 / p50", ours[0]["p99"] / ours[0]["p50"], 2.5)


def aims_of_bytes(aims, name, zoom, records):
    binary, twkb = (average(of(records, who=f"ours {form}"), "sent") for form in ("binary", "twkb"))
    if binary and twkb and zoom == 1 and name not in ("roads", "points"):
        aims.least(f"{name} zoom 1: bytes of binary by bytes of twkb", binary / twkb, 5)


def aims_table(records):
    aims = Aims()
    for name in values(records, "set"):
        for zoom in values(of(records, set=name), "zoom"):
            found = of(records, set=name, zoom=zoom)
            for check in (aims_of_cost, aims_of_load, aims_of_bytes):
                check(aims, name, zoom, found)
    return table(["aim", "found", "bound", "met"], aims.lines)


def tile_lines(found):
    """Level by level, raster beside vector: lines of a table, and the ratio of each."""
    cells = {}
    for r in found:
        cells.setdefault((r["set"], r.get("metatile", 1), r["level"]), {})[r["kind"]] = r
    for (name, metatile, level), kinds in cells.items():
        both = kinds["raster"], kinds["vector"]
        raster, vector = (r["cpu"] + r["database"] for r in both)
        yield [name, f"{metatile}x{metatile}", level, both[0]["tiles"], *(f"{r['cpu']:.2f} + {r['database']:.2f}" for r in both),
               f"{vector / raster:.2f}", *(whole(r["bytes"]) for r in both)]


def tiles_table(found):
    return table(["data", "metatile", "level", "tiles", "raster, ms", "vector, ms", "vector / raster", "raster, bytes", "vector, bytes"], tile_lines(found))


def markdown(result):
    parts = ["# Maps from PostGIS and shapefiles", "", "\n".join(f"- {key}: {value}" for key, value in result["machine"].items()), f"- taken: {result['taken']}"]
    for name in values(result["records"], "set"):
        found = of(result["records"], set=name)
        if not found:
            continue
        parts += ["", f"## {name}", "", f"{result['rows'][name]:,} features. A map: mean ± deviation in ms, maps/s.", "", times(found),
                  "", "Processor time for a map, ms: server + database, over all numbers of threads.", "", costs(found),
                  "", "Bytes for a map: from the database / of the picture.", "", sizes(found), "", tails(found)]
    if result.get("tiles"):
        parts += ["", "## Vector tiles", "", "From PostGIS, processor time of server + database for a tile that is made and stored, alone and in metatiles; a raster tile has 256x256 pixels. The aim is half of it.",
                  "", tiles_table(result["tiles"])]
    return "\n".join(parts + ["", "## Aims", "", aims_table(result["records"]), ""])

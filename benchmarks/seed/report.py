"""The result as tables, and what it says about the project's aims."""
from common.load import mean_and_deviation
from common.report import table
from seed.data import SETS

TITLES = {"A": "benchmark set", "B": "cache-flushing set"}


def of(result, who, name):
    return [r for r in result.get("runs", []) if r["who"] == who and r["set"] == name]


def rate(runs):
    return mean_and_deviation([r["rate"] for r in runs])


def line(who, name, runs):
    mean, deviation = rate(runs)
    own, database = (sum(r[key] for r in runs) / len(runs) for key in ("cpu", "database"))
    return [who, f"{name} ({TITLES[name]})", f"{mean:.2f} ± {deviation:.2f}", f"{mean * 64:,.0f}", f"{own:.1f}", f"{database:.1f}", f"{own + database:.1f}", len(runs)]


def metatiles(result):
    lines = [line(who, name, of(result, who, name)) for who in dict.fromkeys(r["who"] for r in result["runs"]) for name in SETS if of(result, who, name)]
    sizes = "; ".join(f"{who}: {size / count / 64:,.0f} bytes a tile" for who, (count, size) in result["stored"].items())
    return ["", "## Metatiles of a five-layer world style out of PostGIS", "",
            f"{result['metatiles']} metatiles (8x8 tiles, palette PNG, {result['threads']} threads) of each set, in turn. Stored by {sizes}.", "",
            table(["program", "set", "metatiles/s", "tiles/s", "CPU ms for a metatile", "of the database", "together", "runs"], lines)]


def origin(result):
    alone, seeded = (mean_and_deviation([r[key] for r in result["origin"]]) for key in ("alone", "seeded"))
    return ["", "## Seeding from a WMS origin", "", "Two maps of 2048x2048 at a time, each after 100 ms; alone: asked by as many users as the seeder has threads.", "",
            table(["", "maps/s"], [["the origin alone", f"{alone[0]:.2f} ± {alone[1]:.2f}"], ["seeded", f"{seeded[0]:.2f} ± {seeded[1]:.2f}"]])]


def walk(result):
    return ["", "## Walk without drawing", "", table(["order", "levels", "tiles", "seconds", "most memory, MB"], [
        [r["order"], f"0 to {r['last']}", f"{r['tiles']:,}", f"{r['seconds']:.2f}", f"{r['memory']:.1f}"] for r in result["walk"]])]


def aim(what, value, bound, least=False):
    met = value >= bound if least else value <= bound
    return [what, f"{value:,.2f}", f"{'at least' if least else 'at most'} {bound:,}", "yes" if met else "**no**"]


def aims(result):
    lines = [aim(f"metatiles/s, set {name}", rate(of(result, "ours", name))[0], 25, least=True) for name in SETS if of(result, "ours", name)]
    if result.get("origin"):
        alone, seeded = (mean_and_deviation([r[key] for r in result["origin"]])[0] for key in ("alone", "seeded"))
        lines.append(aim("seeding from a WMS origin, share of its own rate", seeded / alone, .95, least=True))
    for r in result.get("walk", []):
        if r["tiles"] > 1e8:
            lines += [aim(f"walk of {r['tiles']:,} tiles, {r['order']}: seconds", r["seconds"], 30), aim(f"its memory, {r['order']}: MB", r["memory"], 64)]
    return lines


def markdown(result):
    parts = ["# Seeding", "", "\n".join(f"- {key}: {value}" for key, value in result["machine"].items()), f"- taken: {result['taken']}"]
    for key, of_part in (("runs", metatiles), ("origin", origin), ("walk", walk)):
        if result.get(key):
            parts += of_part(result)
    return "\n".join(parts + ["", "## Aims", "", table(["aim", "found", "bound", "met"], aims(result)), ""])

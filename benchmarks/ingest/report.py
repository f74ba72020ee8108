"""The result as tables, and what it says about the project's aims."""
from statistics import median

from common.report import table

PUBLISHED = (("array database, as installed", "84 min", "19,416"), ("array database, tuned, without fsync", "35 min", "19,416"), ("array database, its tile cache", "48 s", "329"))


def duration(seconds):
    return f"{seconds:.2f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def cube(result):
    lines = [[f"published: {who}", seconds, size, "", ""] for who, seconds, size in PUBLISHED]
    for r in result["cube"]:
        guessed = r["measured"] < r["images"]
        lines.append([r["who"], ("about " if guessed else "") + duration(r["seconds"]), f"at least {r['size']:,.0f}" if guessed else f"{r['size']:,.0f}", f"{r['logged']:,.0f}",
                      f"{r['measured']} of {r['images']} images, the rest extrapolated" if guessed else ""])
    count = result["cube"][0]["images"]
    return ["", "## A series into a cube in PostgreSQL", "", f"{count} images of 1024x608, 24 bit; logged, durable, the settings of a new cluster.", "",
            table(["way", "time", "database after, MB", "log, MB", ""], lines)]


def pyramid(result):
    lines = [[r["who"], r["form"], r["images"], f"{r['tiles']:,}", f"{r['seconds']:.2f}", f"{r['tiles'] / r['seconds']:,.0f}", f"{r['cpu'] + r.get('database', 0):.2f}",
              f"{r['tiles'] / (r['cpu'] + r.get('database', 0)):,.0f}", f"{r['bytes'] / r['tiles']:,.0f}"] for r in result["pyramid"]]
    return ["", "## A mosaic as a pyramid of tiles, one processor", "",
            table(["program and store", "format", "images", "tiles", "seconds", "tiles/s", "CPU s", "tiles for a CPU s", "bytes a tile"], lines)]


def writes(result):
    return ["", "## Tiles of 16 KB into one SQLite file", "", table(["", "tiles/s, median", "least", "most"], [
        [r["who"], f"{median(r['rates']):,.0f}", f"{min(r['rates']):,.0f}", f"{max(r['rates']):,.0f}"] for r in result["writes"]])]


def aim(what, value, bound, least=False):
    met = value >= bound if least else value <= bound
    return [what, f"{value:,.2f}", f"{'at least' if least else 'at most'} {bound:,}", "yes" if met else "**no**"]


def aims(result):
    lines = []
    for r in result.get("cube", []):
        if r["who"] in ("ours", "ours, 64 MiB"):
            lines += [aim(f"cube, {r['who']}: seconds", r["seconds"], 6 if "MiB" in r["who"] else 3), aim(f"cube, {r['who']}: MB", r["size"], 300)]
    for r in result.get("pyramid", []):
        if r["who"].startswith("ours"):
            lines.append(aim(f"pyramid, {r['who']}, {r['form']}: tiles/s", r["tiles"] / r["seconds"], 800 if r["form"] == "JPEG" else 300, least=True))
    for r in result.get("writes", []):
        if r["who"].startswith("ours, 1000"):
            lines.append(aim(f"writes, {r['who']}: tiles/s", median(r["rates"]), 25000, least=True))
    return lines


def markdown(result):
    parts = ["# Ingest", "", "\n".join(f"- {key}: {value}" for key, value in result["machine"].items()), f"- taken: {result['taken']}"]
    for key, of_part in (("cube", cube), ("pyramid", pyramid), ("writes", writes)):
        if result.get(key):
            parts += of_part(result)
    return "\n".join(parts + ["", "## Aims", "", table(["aim", "found", "bound", "met"], aims(result)), ""])

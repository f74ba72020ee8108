"""The result as tables."""
from common.report import table
from overviews import config


def share(records):
    return 100 * sum(record["off"] for record in records) / max(1, sum(record["painted"] for record in records))


def cost(records, use):
    """Mean processor milliseconds of a map, server + database."""
    return " + ".join(f"{sum(record[use][part] for record in records) / len(records):.1f}" for part in (0, 1))


def line(name, records):
    worst = max(records, key=lambda record: share([record]))
    return [name, len(records), f"{share(records):.3f} %", f"{share([worst]):.2f} % ({worst['off']} of {worst['painted']} pixels, {worst['resolution']:.0f} a pixel)",
            max(record["patch"] for record in records), max(record["lost"] for record in records), cost(records, config.FULL), cost(records, config.LEVEL)]


def lines(result, name):
    """Of all maps of a set, and of those of each of its levels."""
    found = [record for record in result["records"] if record["set"] == name]
    out = [line(f"**{name}**", found)] if found else []
    for least, most in result["built"][name]["levels"]:
        own = [record for record in found if least <= record["resolution"] < most]
        if own:
            out.append(line(f"{least:.0f} to {most:.0f} a pixel", own))
    return out


def built_line(name, built):
    return [name, f"{built['builder']:.2f} + {built['database']:.2f}", f"{built['table']:.1f}", f"{built['size']:.1f} ({100 * built['size'] / built['table']:.0f} %)",
            "; ".join(said.split(": ", 1)[-1] for said in built["said"])]


def markdown(result):
    columns = ["maps", "number", "off by more than 16", "the worst map", "largest patch that is off", "largest patch that is lost", "table: ms", "overviews: ms"]
    parts = ["# Maps of overviews and of their tables", "", "\n".join(f"- {key}: {value}" for key, value in result["machine"].items()), f"- taken: {result['taken']}", "",
             f"{result['edge']}x{result['edge']} pixels. Of the pixels that either map paints: the part that is off by more than 16 of 255. Patches in pixels: a feature that is missing and is larger than "
             "a pixel would be one of several pixels. Mean processor milliseconds of a map, server + database.", "",
             table(columns, [row for name in result["built"] for row in lines(result, name)]), "",
             table(["table", "building: s of processor, builder + database", "MB of the table", "MB of the levels", "the builder says"],
                   [built_line(name, built) for name, built in result["built"].items()])]
    return "\n".join(parts + [""])

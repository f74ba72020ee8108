"""The benchmark's result: kept as JSON, part by part, and written as a Markdown table with the ratio of each row."""
import json

from common.report import write_whole

OURS, PEER = "ours", "MapCache"


def number(value):
    if value is None:
        return ""
    if value == 0 or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def figures_of(record, who):
    """p50, p95, samples and processor time as one cell."""
    figures = record["servers"].get(who)
    if who in record["errors"]:
        return "ERROR"
    if figures is None:
        return ""
    if figures["n"] == 1:
        return number(figures["p50"])
    cpu = f", CPU {number(figures['cpu'])}" if "cpu" in figures else ""
    return f"**{number(figures['p50'])}** ({number(figures['p95'])}; {figures['n']}{cpu})"


def ratio(record):
    """How many times better ours is: above 1 is better whatever the unit."""
    servers = record["servers"]
    if OURS not in servers or PEER not in servers:
        return None
    theirs, ours = servers[PEER]["p50"], servers[OURS]["p50"]
    if record["unit"] == "requests/s":
        theirs, ours = ours, theirs
    return theirs / ours if ours else None


def target_of(record):
    if record["target"] is None:
        return ""
    wanted = record.get("target_ratio")
    return number(record["target"]) + (f" ({wanted:.1f}x)" if wanted else "")


def verdict(record):
    """Whether the target is met: in its unit, or else as a ratio to MapCache, where the machine is another one than the target's."""
    if record["target"] is None or OURS not in record["servers"]:
        return ""
    if record["servers"][OURS]["p50"] <= record["target"]:
        return "yes"
    wanted, gain = record.get("target_ratio"), ratio(record)
    return "as ratio" if wanted and gain and gain >= wanted else "**no**"


def comparison(name, value, most=None, least=None):
    good = (most is None or value <= most) and (least is None or value >= least)
    limit = f"at most {most}" if most is not None else f"at least {least}"
    return {"name": name, "value": value, "target": limit, "good": good}


def our_medians(parts):
    """(part, case, state) -> median of ours."""
    return {(r["part"], r["case"], r["state"]): r["servers"][OURS]["p50"] for part in parts.values() for r in part["records"] if OURS in r["servers"]}


def relative(parts):
    """Our own figures against each other, where the target is a ratio."""
    medians, out = our_medians(parts), []
    for zoom in (2, 3, 4):
        for state, without, filtered, most in (("first", "first", "first", 1.5), ("open", "opened", "opened", 1.5), ("warm", "unfiltered", "filtered", 1.1)):
            one, other = medians.get((without, f"WMS_1024 z{zoom} catalog", state)), medians.get((filtered, f"WMS_1024 z{zoom} catalog-geo", state))
            if one and other:
                out.append(comparison(f"z{zoom}, {state}: unfiltered / filtered", one / other, most=most))
    for word in ("filtered", "unfiltered"):
        for state, most in (("first", 1.3), ("warm", 1.1)):
            values = [value for (part, case, its_state), value in medians.items() if part == "scale" and case.endswith(" " + word) and its_state == state]
            if len(values) > 1:
                out.append(comparison(f"catalogues of three sizes, {word}, {state}: slowest / fastest", max(values) / min(values), most=most))
    for title, limits in (("cold", {"most": 0.65}), ("clients", {"least": 0.95})):
        values = {case.rsplit(", ", 1)[1]: value for (part, case, _), value in medians.items() if part == "threads" and title in case}
        if "the default" in values and "no workers" in values:
            what = "cold map, time" if title == "cold" else "16 clients, rate"
            out.append(comparison(f"{what}: default / no workers", values["the default"] / values["no workers"], **limits))
    return out


def table(columns, rows):
    return ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)] + ["| " + " | ".join(row) + " |" for row in rows] + [""]


def record_rows(records):
    for r in records:
        gain = ratio(r)
        state = f" ({r['state']})" if r["state"] in ("first", "open") else ""
        yield [r["case"] + state, r["unit"], number(r["published"]), figures_of(r, PEER), figures_of(r, OURS),
               f"{gain:.2f}" if gain else "", target_of(r), verdict(r)]


def pixel_lines(pixels):
    """How many maps differ and by how much, by kind; the ones that differ, by name."""
    rows = []
    for kind in ("aligned", "resampled"):
        entries = [e for e in pixels if e["kind"] == kind]
        compared = [e for e in entries if e["figures"]]
        if entries:
            rows.append([kind, str(len(entries)), str(len(compared)), str(sum(e["equal"] for e in entries)),
                         str(max((e["figures"]["max"] for e in compared), default=0)), f"{max((e['figures']['over3'] for e in compared), default=0):.4%}",
                         f"{min((e['figures']['psnr'] for e in compared), default=0):.1f}"])
    lines = table(["maps", "asked", "both drew", "equal within the limits", "greatest difference of a channel", "most pixels off by more than 3", "least PSNR, dB"], rows)
    different = [e for e in pixels if not e["equal"]]
    if different:
        lines += table(["not equal", "status MapCache; ours", "greatest", "off by more than 3", "PSNR"],
                       [[e["name"], ", ".join(str(s) if d else f"{s} (no picture)" for s, d in zip(e["status"], e["drawn"]))] +
                        ([str(e["figures"]["max"]), f"{e['figures']['over3']:.3%}", f"{e['figures']['psnr']:.1f}"] if e["figures"] else ["", "", ""])
                        for e in different])
    return lines


def markdown(result):
    parts = result["parts"]
    lines = ["# The catalogue case study", ""]
    lines += [f"- {key}: {value}" for key, value in result["machine"].items()]
    data = result["dataset"]
    lines += [f"- data: {data['scale']}, {data['products']} products, {data['tiles']:,} tiles, {data['bytes'] / 1e6:.0f} MB; basemap of {data['base_tiles']:,} tiles", "",
              "Cells: median (p95; samples, CPU per request of all threads). Ratio: how many times better ours is. Published: the case study's means, on other "
              "hardware. A target's ratio says what it was to MapCache on the machine it was set for. Both servers ran on the same files in one interleaved run, client and server on the same cores.", ""]
    columns = ["case", "unit", "published", "MapCache", "ours", "ratio", "target", "met"]
    for name, part in parts.items():
        stolen = f" The processors were taken away for {part['stolen']:.1%} of the time." if part.get("stolen", 0) > 0.005 else ""
        lines += [f"## {name}", "", f"{part['about']} Taken {part['taken']}, ours {part['ours']}.{stolen}", ""]
        lines += table(columns, record_rows(part["records"]))
        lines += [f"- ERROR {who}: `{text}`" for r in part["records"] for who, text in r["errors"].items()] + [""]
        if part.get("pixels"):
            lines += pixel_lines(part["pixels"])
    comparisons = relative(parts)
    if comparisons:
        lines += ["## ours against ours", ""]
        lines += table(["", "value", "target", "met"], [[c["name"], f"{c['value']:.2f}", c["target"], "yes" if c["good"] else "**no**"] for c in comparisons])
    return "\n".join(lines).replace("\n\n\n", "\n\n") + "\n"


def load(path):
    return json.loads(path.read_text()) if path.exists() else {"parts": {}}


def write(folder, result):
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "catalog.json", json.dumps(result, indent=1) + "\n")
    write_whole(folder / "catalog.md", markdown(result))

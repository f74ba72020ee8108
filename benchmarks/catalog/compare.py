"""Our pictures against MapCache's, pixel by pixel, as PNG."""
from catalog import config, requests
from catalog.requests import RandomMaps
from common import pixels

# What counts as equal: along the tiles' edges a channel may be off by 2 of 255, resampled by 3 on all but 0.1 % of the pixels.
ALIGNED_MAX, RESAMPLED_OVER3, RESAMPLED_PSNR = 2, 0.001, 45.0


def equal(kind, figures):
    if kind == "aligned":
        return figures["max"] <= ALIGNED_MAX
    return figures["over3"] <= RESAMPLED_OVER3 and figures["psnr"] >= RESAMPLED_PSNR


def window_maps(bench):
    """The windows in every configuration (at the zooms where it makes a difference), and the filtered ones at all zooms."""
    for alias in config.ALIASES:
        for zoom, column, row in bench.windows:
            if zoom in (2, 4) or (alias == "catalog-geo"):
                case = requests.wms_1024(alias, zoom, column, row)
                yield {"kind": "aligned", "name": case.name, "path": case.paths[0]}


def ask(run, path):
    _, replies = run.client.fetch([path])
    return replies[0]


def judge(wanted, theirs, ours):
    """One map's entry of the report. Where both refuse, there is nothing to compare, and that counts as equal."""
    entry = {**wanted, "status": [theirs.status, ours.status]}
    if theirs.status != 200 or ours.status != 200:
        return {**entry, "equal": theirs.status == ours.status, "figures": None}
    figures = pixels.compare(theirs.body, ours.body)
    return {**entry, "equal": equal(wanted["kind"], figures), "figures": figures}


def keep(folder, number, theirs, ours):
    """Both pictures and their difference, of a map that is not equal."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, body in (("mapcache", theirs.body), ("ours", ours.body)):
        (folder / f"{number:03d}-{name}.png").write_bytes(body)
    if theirs.status == 200 and ours.status == 200:
        (folder / f"{number:03d}-difference.png").write_bytes(pixels.difference_picture(theirs.body, ours.body))


def compare(bench):
    """The windows in all configurations, and random maps along the tiles' edges and not, compared with MapCache's as PNG."""
    if set(bench.who) != {"ours", "MapCache"}:
        return
    entries = []
    with bench.all_running(bench.files("PNG")) as servers:
        by_name = {run.who: run for run in servers}
        for number, wanted in enumerate([*window_maps(bench), *RandomMaps(bench.dataset).make(bench.maps)]):
            theirs, ours = (ask(by_name[who], wanted["path"]) for who in ("MapCache", "ours"))
            entry = judge(wanted, theirs, ours)
            if not entry["equal"]:
                keep(bench.results / "pixels", number, theirs, ours)
                entry["pictures"] = f"pixels/{number:03d}-*.png"
            entries.append(entry)
    bench.pixels(entries)

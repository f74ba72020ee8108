"""Our pictures against MapCache's, pixel by pixel, as PNG."""
import re
import shutil

from catalog import config, requests
from catalog.requests import RandomMaps
from common import pixels
from common.client import Reply, image_size

# What counts as equal: along the tiles' edges a channel may be off by 2 of 255, resampled by 3 on all but 0.1 % of the pixels.
ALIGNED_MAX, RESAMPLED_OVER3, RESAMPLED_PSNR = 2, 0.001, 45.0


def equal(kind, figures):
    if kind == "aligned":
        return figures["max"] <= ALIGNED_MAX
    return figures["over3"] <= RESAMPLED_OVER3 and figures["psnr"] >= RESAMPLED_PSNR


def window_maps(bench, alias):
    """The windows in one configuration: at the zooms where it makes a difference, at all of them for the plain filter."""
    for zoom, column, row in bench.windows:
        if zoom in (2, 4) or alias == "catalog-geo":
            case = requests.wms_1024(alias, zoom, column, row)
            yield {"kind": "aligned", "name": case.name, "path": case.paths[0]}


def groups(bench):
    """Maps that are compared on servers of their own: MapCache does not live through all configurations."""
    maps = [list(RandomMaps(bench.dataset).make(bench.maps))] + [list(window_maps(bench, alias)) for alias in config.ALIASES]
    return [[wanted for wanted in group if bench.cases in wanted["name"]] for group in maps]


def ask(run, path):
    """The answer; a server that hangs up has status 0. MapCache may also answer 200 and the text of an error: that is no picture."""
    try:
        _, replies = run.client.fetch([path])
        return replies[0]
    except OSError:
        return Reply(0, {}, b"")


def drawn(reply):
    return reply.status == 200 and image_size(reply.body)[0] is not None


def judge(wanted, theirs, ours):
    """One map's entry of the report. Where both refuse, there is nothing to compare, and that counts as equal."""
    entry = {**wanted, "status": [theirs.status, ours.status], "drawn": [drawn(theirs), drawn(ours)]}
    if not all(entry["drawn"]):
        return {**entry, "equal": theirs.status == ours.status and not any(entry["drawn"]), "figures": None}
    figures = pixels.compare(theirs.body, ours.body)
    return {**entry, "equal": equal(wanted["kind"], figures), "figures": figures}


def keep(folder, name, theirs, ours):
    """Both pictures and their difference, of a map that is not equal."""
    folder.mkdir(parents=True, exist_ok=True)
    start = re.sub(r"[^\w.-]+", "_", name)
    for who, body in (("mapcache", theirs.body), ("ours", ours.body)):
        (folder / f"{start}-{who}.png").write_bytes(body)
    if drawn(theirs) and drawn(ours):
        (folder / f"{start}-difference.png").write_bytes(pixels.difference_picture(theirs.body, ours.body))


def compare_group(bench, maps, entries):
    folder = bench.results / "pixels"
    with bench.all_running(bench.files("PNG")) as servers:
        by_name = {run.who: run for run in servers}
        for wanted in maps:
            theirs, ours = (ask(by_name[who], wanted["path"]) for who in ("MapCache", "ours"))
            entry = judge(wanted, theirs, ours)
            if not entry["equal"]:
                keep(folder, wanted["name"], theirs, ours)
            entries.append(entry)


def compare(bench):
    """The windows in all configurations, and random maps along the tiles' edges and not, compared with MapCache's as PNG."""
    if set(bench.who) != {"ours", "MapCache"}:
        return
    entries = []
    if not bench.cases:
        shutil.rmtree(bench.results / "pixels", ignore_errors=True)
    for maps in groups(bench):
        if maps:
            compare_group(bench, maps, entries)
    bench.pixels(entries)

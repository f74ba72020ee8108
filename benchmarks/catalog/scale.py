"""The same picture out of catalogues of very different sizes: as many products visible, the others elsewhere."""
import pathlib
import shutil
import sqlite3
import sys

from catalog import config
from catalog.data import Store, build_catalog
from catalog.measure import cold, warm
from catalog.requests import Case, tile_box, wms

VISIBLE, DEEPEST_FILLER = 40, 6


def overlaps(item, box):
    west, south, east, north = box
    return item["minx"] <= east and item["maxx"] >= west and item["miny"] <= north and item["maxy"] >= south


def window_box(window):
    return tile_box(*window, 4, 4)


def split(dataset, window):
    """At most VISIBLE products in the window, and those that are nowhere near it."""
    box = window_box(window)
    visible = [item for item in dataset.items if overlaps(item, box)][:VISIBLE]
    return visible, [item for item in dataset.items if not overlaps(item, box)]


def write_filler(folder, donor_file, name):
    """A product like the donor, with its tiles down to a zoom: small, but as many look-ups as any other."""
    donor = sqlite3.connect(f"file:{donor_file}?mode=ro", uri=True)
    store = Store(folder / f"{name}.sqlite3", name)
    for x, y, z, data in donor.execute("SELECT x, y, z, data FROM tiles WHERE z <= ?", (DEEPEST_FILLER,)):
        store.put(x, (1 << z) - 1 - y, z, data)
    store.close()
    donor.close()


def build(folder, dataset, window, sizes):
    """Product files and a catalogue for each size, the visible products among the others at even distances."""
    visible, elsewhere = split(dataset, window)
    (folder / "product").mkdir(parents=True, exist_ok=True)
    for item in visible:
        shutil.copy(dataset.folder / "product" / f"{item['name']}.sqlite3", folder / "product")
    fillers = []
    for number in range(max(sizes) - len(visible)):
        donor = elsewhere[number % len(elsewhere)]
        fillers.append({**donor, "name": f"elsewhere_{number:04d}"})
        write_filler(folder / "product", dataset.folder / "product" / f"{donor['name']}.sqlite3", fillers[-1]["name"])
    for size in sizes:
        products = fillers[:size - len(visible)]
        step = max(1, size // max(1, len(visible)))
        for number, item in enumerate(visible):
            products.insert(number * step, item)
        build_catalog(folder / "product" / f"catalog-{size}.sqlite", [{**item, "keywords": item["kw"]} for item in products])


def prepare(bench):
    """The folder of product files and catalogues, the window, and how many products are visible in it."""
    window = next(w for w in bench.windows if w[0] == 6)
    visible = len(split(bench.dataset, window)[0])
    sizes = [visible, 401, 4000] if bench.dataset.full else [visible, 101, 401]
    folder = pathlib.Path(bench.work) / f"scale-{bench.dataset.summary['scale']}"
    if not (folder / "complete").exists():
        print(f"building catalogues of {sizes} products in {folder}", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        build(folder, bench.dataset, window, sizes)
        (folder / "complete").touch()
    return folder, window, sizes


def scale(bench):
    """One map with the same products in sight out of catalogues of three sizes, with and without the geographic filter."""
    folder, window, sizes = prepare(bench)
    texts, cases = {}, []
    for switches in (("geo",), ()):
        for size in sizes:
            name = f"scale-{size}" + ("-geo" if switches else "")
            texts[name] = config.document(config.catalog(folder / "product", switches, f"catalog-{size}.sqlite"))
            title = f"WMS_1024 z{window[0]}, {size} products, {sizes[0]} in sight, " + ("filtered" if switches else "unfiltered")
            cases.append(Case(title, [wms(name, "catalog", window_box(window), 1024, 1024)], 1024))
    files, cases = config.write(bench.config_folder, texts), bench.wanted(cases)
    for case in cases:
        for record in cold("scale", [case], bench.who, files, bench.cold_rounds, "first", folder / "product"):
            bench.add(record)
    with bench.all_running(files) as servers:
        for case in cases:
            bench.add(warm("scale", case, servers, bench.rounds, bench.case_seconds))

#!/usr/bin/python3
"""The catalogue of the demo: products as small SQLite caches, catalog.sqlite, which says what there is, and products.geojson, which
the page draws outlines from. The same seed gives the same products.

  products.py DATA FOLDER build [--full]    all of them, once: 44 products; with --full the 401 of the case study
  products.py DATA FOLDER add [COUNT]       some more, anywhere in the three regions, with today's date
  products.py DATA FOLDER remove NAME...

DATA is what demo/fetch has filled. A server that runs shows at once what add and remove do."""
import argparse
import contextlib
import datetime
import functools
import json
import multiprocessing
import os
import pathlib
import random
import shutil
import sqlite3

import scenes

VERSION = 1  # a catalogue of another version is built again
SEED = 20200115
UNIT = 2 * scenes.HALF / 2**12  # metres of a tile of level 12
SHAPES = {"H": (12, 8), "V": (8, 12), "S": (10, 10)}  # units wide and high
# Name, centre, shape, keywords.
NAMED = [
    ("bern", 828195, 5933741, "H", "un,europe"), ("geneva", 685269, 5813644, "H", "un,europe"),
    ("london", -8439, 6711752, "S", "un,europe"), ("madrid", -410918, 4925262, "V", "un,europe"),
    ("montreal", -8197998, 5702978, "V", "un,america"), ("nairobi", 4099769, -143816, "S", "un,africa"),
    ("newyork", -8233564, 4979863, "V", "un,america"), ("paris", 260025, 6251309, "S", "un,europe"),
    ("rome", 1389633, 5146158, "V", "un,europe"), ("thehague", 481406, 6814756, "S", "un,europe"),
    ("vienna", 1822648, 6141611, "H", "un,europe"), ("washington", -8575669, 4707022, "V", "un,america"),
    ("kilimanjaro", 4158738, -341315, "S", "peak,africa"), ("aconcagua", -7793642, -3849409, "S", "peak,america"),
    ("everest", 9676427, 3247443, "S", "peak,asia"), ("elbrus", 4724162, 5365787, "S", "peak,europe"),
]
# Inside every window of the case study's zoom table, so that none of them is empty.
FIXED = ("usa_center", -10385650, 5620870, "S", "usa,america")
# Number of all and of the small catalogue, box of the centres, keywords.
REGIONS = {
    "usa": (199, 11, (-12973503, 3456176, -9069712, 6281289), "usa,america"),
    "europe": (80, 8, (523440, 5557277, 3204240, 7044436), "europe"),
    "australia": (105, 8, (13585000, -3708113, 16256015, -1995923), "australia,oceania"),
}
# Full: the sizes of the case study, 80 to 120 km. Small: three times as wide, so that the few cover about as much.
FULL = {"scale": 1, "zoom": 10}
SMALL = {"scale": 3, "zoom": 8}
TILES = """create table tiles(tileset text, grid text, x integer, y integer, z integer, data blob, dim text, ctime datetime,
primary key(tileset, grid, x, y, z, dim))"""
CATALOG = """
create table catalog(name text primary key, minx real, miny real, maxx real, maxy real, keywords text, taken text, style text);
create table tag(keyword text, name text, primary key(keyword, name));
create index taken on catalog(taken);
"""


def planned(name, x, y, shape, keywords, dice, kind, taken=None):
    """A product on the pixels of its last level, so that its edge is a sharp one there."""
    pixel = scenes.resolution(kind["zoom"])
    width, height = (units * UNIT * kind["scale"] for units in SHAPES[shape])
    corner = round((x - width / 2 + scenes.HALF) / pixel), round((scenes.HALF - y - height / 2) / pixel)
    size = round(width / pixel), round(height / pixel)
    minx, maxy = corner[0] * pixel - scenes.HALF, scenes.HALF - corner[1] * pixel
    day = datetime.date(2023, 1, 1) + datetime.timedelta(days=dice.randrange(730))
    return {"name": name, "keywords": keywords, "taken": taken or day.isoformat(), "style": dice.choice(scenes.STYLES),
            "zoom": kind["zoom"], "corner": corner, "size": size,
            "box": (minx, maxy - size[1] * pixel, minx + size[0] * pixel, maxy)}


def anywhere(region, dice):
    """Name, centre, shape and keywords of a random product; centres in 32768 steps a side."""
    _, _, (minx, miny, maxx, maxy), keywords = REGIONS[region]
    x, y = (low + (high - low) * dice.randrange(32768) / 32768 for low, high in ((minx, maxx), (miny, maxy)))
    return f"{region}_{dice.randrange(16**4):04x}", x, y, dice.choice("HVS"), keywords


def plan(full):
    """All products of a new catalogue."""
    dice, kind = random.Random(SEED), FULL if full else SMALL
    products = [planned(*given, dice, kind) for given in [*NAMED, FIXED]]
    names = {product["name"] for product in products}
    for region, (many, few, _, _) in REGIONS.items():
        count = many if full else few
        while count > 0:
            given = anywhere(region, dice)
            if given[0] not in names:
                names.add(given[0])
                products.append(planned(*given, dice, kind))
                count -= 1
    return products


def write(folder, sources, product):
    """The product's file; it gets its name when it is whole. Returns the number of its tiles."""
    path = folder / "products" / f"{product['name']}.sqlite3"
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    rows = [(product["name"], "GoogleMapsCompatible", column, 2**zoom - 1 - row, zoom, data, "", now)
            for zoom, column, row, data in scenes.tiles(sources, product)]
    with contextlib.closing(sqlite3.connect(new)) as database:
        database.execute("pragma synchronous=off")
        database.execute(TILES)
        database.executemany("insert into tiles values(?,?,?,?,?,?,?,?)", rows)
        database.execute("create unique index xyz on tiles(x, y, z)")  # the case study's query does not name the tileset
        database.commit()
    new.rename(path)
    return len(rows)


def enter(database, product):
    box = [round(number, 2) for number in product["box"]]
    database.execute("insert into catalog values(?,?,?,?,?,?,?,?)",
                     (product["name"], *box, product["keywords"], product["taken"], product["style"]))
    database.executemany("insert into tag values(?,?)", [(word, product["name"]) for word in product["keywords"].split(",")])


def outlines(folder, database, zoom):
    """What the page needs to know, as GeoJSON in degrees."""
    features = []
    for name, minx, miny, maxx, maxy, keywords, taken, style in database.execute("select * from catalog order by taken, name"):
        west, east = (round(scenes.longitude(x), 6) for x in (minx, maxx))
        south, north = (round(scenes.latitude(y), 6) for y in (miny, maxy))
        ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
        features.append({"type": "Feature", "id": name, "geometry": {"type": "Polygon", "coordinates": [ring]},
                         "properties": {"keywords": keywords.split(","), "taken": taken, "style": style}})
    new = folder / "page" / "products.geojson.new"
    new.write_text(json.dumps({"type": "FeatureCollection", "maxzoom": zoom, "features": features}, separators=(",", ":")))
    new.chmod(0o644)
    new.rename(folder / "page" / "products.geojson")


def write_all(folder, sources, products):
    """On all processors; returns the number of tiles. The pictures are inherited: handing them over with each product would cost
    more than drawing it."""
    global write_one
    write_one = functools.partial(write, folder, sources)
    with multiprocessing.get_context("fork").Pool(len(os.sched_getaffinity(0))) as pool:
        return sum(pool.imap_unordered(call_write_one, products))


def call_write_one(product):
    return write_one(product)


def build(data, folder, full):
    built = folder / "built"
    wanted = f"{VERSION} {'full' if full else 'small'}"
    if built.exists() and built.read_text() == wanted:
        return
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("products", "page"):
        (folder / part).mkdir(parents=True)
    products, sources = plan(full), scenes.Sources(data)
    print(f"demo: building a catalogue of {len(products)} products ...", flush=True)
    count = write_all(folder, sources, products)
    with contextlib.closing(sqlite3.connect(folder / "catalog.sqlite")) as database:
        database.executescript(CATALOG)
        for product in products:
            enter(database, product)
        database.commit()
        outlines(folder, database, products[0]["zoom"])
    built.write_text(wanted)
    print(f"demo: {count} tiles", flush=True)


def kind_of(folder):
    return FULL if (folder / "built").read_text().endswith("full") else SMALL


def owned_as(path, folder):
    """A catalogue that is served is the server's: what is new belongs to the same user."""
    owner = folder.stat()
    if os.geteuid() == 0:
        os.chown(path, owner.st_uid, owner.st_gid)


def add(data, folder, count):
    """First the file, then its row: nobody is told of a product that is not there yet."""
    dice, kind, sources = random.SystemRandom(), kind_of(folder), scenes.Sources(data)
    with contextlib.closing(sqlite3.connect(folder / "catalog.sqlite", timeout=30)) as database:
        for _ in range(count):
            taken = {name for name, in database.execute("select name from catalog")}
            given = next(given for given in iter(lambda: anywhere(dice.choice(list(REGIONS)), dice), None) if given[0] not in taken)
            product = planned(*given, dice, kind, taken=datetime.date.today().isoformat())
            product["style"] = dice.choice(scenes.STYLES)
            write(folder, sources, product)
            owned_as(folder / "products" / f"{product['name']}.sqlite3", folder)
            enter(database, product)
            database.commit()
            print(product["name"], flush=True)
        outlines(folder, database, kind["zoom"])
    owned_as(folder / "page" / "products.geojson", folder)


def remove(folder, names):
    """First the row, then the file."""
    with contextlib.closing(sqlite3.connect(folder / "catalog.sqlite", timeout=30)) as database:
        for name in names:
            if not database.execute("delete from catalog where name = ?", (name,)).rowcount:
                raise SystemExit(f"products.py: the catalogue has no product {name}")
            database.execute("delete from tag where name = ?", (name,))
        database.commit()
        outlines(folder, database, kind_of(folder)["zoom"])
    owned_as(folder / "page" / "products.geojson", folder)
    for name in names:
        (folder / "products" / f"{name}.sqlite3").unlink(missing_ok=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("build").add_argument("--full", action="store_true")
    actions.add_parser("add").add_argument("count", type=int, nargs="?", default=1)
    actions.add_parser("remove").add_argument("names", nargs="+")
    given = parser.parse_args()
    if given.action == "build":
        build(given.data, given.folder, given.full)
    elif given.action == "add":
        add(given.data, given.folder, given.count)
    else:
        remove(given.folder, given.names)


if __name__ == "__main__":
    main()

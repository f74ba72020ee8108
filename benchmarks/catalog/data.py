"""The catalogue's data: a basemap, one SQLite cache for each product, and the catalogue of their boxes and keywords.

    base.sqlite3            world basemap, JPEG, in MapCache's default schema
    base/{z}/{y}/{x}.jpg    the same as files; y counts from the north
    product/<name>.sqlite3  one cache for each product: PNG RGBA tiles, MapCache's default schema and an index on x, y, z
    product/catalog.sqlite  table catalog(subtile, keyword, minx, miny, maxx, maxy)
    dataset.json            what is in it; written last, so its presence says that the rest is complete

Rows count from the south in SQLite: y = 2**z - 1 - row from the north.
"""
import ctypes
import json
import multiprocessing
import os
import pathlib
import random
import signal
import sqlite3
import sys
import time

import numpy
from PIL import Image

from catalog import pictures
from common.report import write_whole
from catalog.products import HALF_WORLD, TILE, Scale, product_list

GRID = "GoogleMapsCompatible"
SCHEMA = ("CREATE TABLE IF NOT EXISTS tiles(tileset text, grid text, x integer, y integer, "
          "z integer, data blob, dim text, ctime datetime, primary key(tileset,grid,x,y,z,dim))")
INDEX = "CREATE UNIQUE INDEX IF NOT EXISTS xyz ON tiles(x,y,z)"
CREATED = "2026-01-01 00:00:00"


class Store:
    """A new SQLite cache that is filled at once; nobody else has it open, so it needs no journal."""

    def __init__(self, path, tileset):
        path.unlink(missing_ok=True)
        self.tileset = tileset
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA journal_mode=OFF")
        self.db.execute("PRAGMA synchronous=OFF")
        self.db.execute(SCHEMA)
        self.db.execute("BEGIN")

    def put(self, x, row_from_north, z, data):
        self.db.execute("INSERT INTO tiles VALUES(?,?,?,?,?,?,?,?)", (self.tileset, GRID, x, (1 << z) - 1 - row_from_north, z, data, "", CREATED))

    def close(self):
        self.db.execute("COMMIT")
        self.db.execute(INDEX)
        self.db.close()


def halve(image, left, top):
    """Half the resolution of premultiplied RGBA whose upper left pixel is (left, top) of its zoom: image, left, top of the next one."""
    height, width = image.shape[:2]
    pad_left, pad_top = left & 1, top & 1
    pad_right, pad_bottom = (pad_left + width) & 1, (pad_top + height) & 1
    if pad_left or pad_top or pad_right or pad_bottom:
        image = numpy.pad(image, ((pad_top, pad_bottom), (pad_left, pad_right), (0, 0)))
    image = (image[0::2, 0::2] + image[1::2, 0::2] + image[0::2, 1::2] + image[1::2, 1::2]) * numpy.float32(.25)
    return image, (left - pad_left) >> 1, (top - pad_top) >> 1


def product_image(scale, product):
    """A product's picture at its deepest zoom: premultiplied RGBA, its upper left pixel, and the step of its colours."""
    pixels = (TILE << product["zmax"]) / (2 * HALF_WORLD)
    left, right = int(round((product["minx"] + HALF_WORLD) * pixels)), int(round((product["maxx"] + HALF_WORLD) * pixels))
    top, bottom = int(round((HALF_WORLD - product["maxy"]) * pixels)), int(round((HALF_WORLD - product["miny"]) * pixels))
    rnd = random.Random(scale.seed * 7919 + product["index"])
    texture = pictures.texture(rnd.randrange(len(pictures.PALETTES)), scale.texture, scale.seed)
    x, y = rnd.randrange(scale.texture), rnd.randrange(scale.texture)
    rows = (numpy.arange(bottom - top) + y) % scale.texture
    columns = (numpy.arange(right - left) + x) % scale.texture
    step = numpy.float32(rnd.choice((8, 10, 12, 14)))
    gain = numpy.float32([rnd.uniform(.85, 1.1) for _ in range(3)])
    image = numpy.empty((bottom - top, right - left, 4), numpy.float32)
    image[..., :3] = numpy.clip(texture[rows][:, columns] * gain, 0, 255)
    image[..., 3] = 255
    return image, left, top, step


def straight(image, step):
    """8-bit RGBA with straight alpha; colours rounded to multiples of `step`, as a map has few."""
    alpha = numpy.rint(image[..., 3]).astype(numpy.uint8)
    out = numpy.zeros(image.shape, numpy.uint8)
    seen = alpha > 0
    out[..., 3] = alpha
    colours = image[seen][:, :3] * (255.0 / image[seen][:, 3:4])
    out[seen, :3] = numpy.clip(numpy.rint(colours / step) * step, 0, 255).astype(numpy.uint8)
    return out


def cut(image, left, top):
    """The tiles that the image touches and that show anything: x, row from the north, RGBA."""
    height, width = image.shape[:2]
    for row in range(top // TILE, (top + height - 1) // TILE + 1):
        for x in range(left // TILE, (left + width - 1) // TILE + 1):
            tile = numpy.zeros((TILE, TILE, 4), numpy.uint8)
            x0, y0 = max(left, x * TILE), max(top, row * TILE)
            x1, y1 = min(left + width, (x + 1) * TILE), min(top + height, (row + 1) * TILE)
            tile[y0 - row * TILE:y1 - row * TILE, x0 - x * TILE:x1 - x * TILE] = image[y0 - top:y1 - top, x0 - left:x1 - left]
            if tile[..., 3].any():
                yield x, row, tile


def build_product(job):
    """One product's cache, all zooms. Returns counts and bytes, of all tiles and of those without transparency."""
    folder, scale, product = job
    image, left, top, step = product_image(scale, product)
    store = Store(folder / "product" / f"{product['name']}.sqlite3", product["name"])
    sizes, full = [], []
    for z in range(product["zmax"], -1, -1):
        for x, row, tile in cut(straight(image, step), left, top):
            data = pictures.png(tile)
            store.put(x, row, z, data)
            sizes.append(len(data))
            if (tile[..., 3] == 255).all():
                full.append(len(data))
        if z > 0:
            image, left, top = halve(image, left, top)
    store.close()
    return len(sizes), sum(sizes), len(full), sum(full)


def build_catalog(path, products):
    path.unlink(missing_ok=True)
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE catalog(subtile TEXT, keyword TEXT, minx REAL, miny REAL, maxx REAL, maxy REAL)")
    db.executemany("INSERT INTO catalog VALUES(?,?,?,?,?,?)",
                   [(p["name"], p["keywords"], p["minx"], p["miny"], p["maxx"], p["maxy"]) for p in products])
    db.commit()
    db.close()


def deep_tile(scale, x, y, step):
    """A basemap tile that is finer than the picture: enlarged, with a margin against seams, and grained."""
    rgb, grain = pictures.world(scale.world, scale.seed)
    margin, factor = 4, TILE // step
    rows = numpy.clip(numpy.arange(y * step - margin, (y + 1) * step + margin), 0, scale.world - 1)
    columns = numpy.arange(x * step - margin, (x + 1) * step + margin) % scale.world
    large = Image.fromarray(rgb[rows][:, columns]).resize(((step + 2 * margin) * factor,) * 2, Image.BICUBIC)
    first = margin * factor
    tile = numpy.asarray(large)[first:first + TILE, first:first + TILE].astype(numpy.float32)
    grain_rows, grain_columns = (numpy.arange(TILE) + y * TILE) % 1024, (numpy.arange(TILE) + x * TILE) % 1024
    return numpy.clip(tile + (grain[grain_rows][:, grain_columns] * 5.0)[..., None], 0, 255).astype(numpy.uint8)


def build_base_rows(job):
    """The basemap's tiles of one zoom in the rows [first, last): x, y from the north, z, JPEG. Writes the files, too."""
    folder, scale, z, first, last = job
    rgb, _ = pictures.world(scale.world, scale.seed)
    step = scale.world // (1 << z)  # pixels of the picture in a tile
    if step >= TILE:
        factor = step // TILE
        edge = scale.world // factor
        level = rgb.reshape(edge, factor, edge, factor, 3)[first * TILE:last * TILE].mean((1, 3)).astype(numpy.uint8)
    tiles = []
    for y in range(first, last):
        row_folder = folder / "base" / str(z) / str(y)
        row_folder.mkdir(parents=True, exist_ok=True)
        for x in range(1 << z):
            if step >= TILE:
                tile = level[(y - first) * TILE:(y - first + 1) * TILE, x * TILE:(x + 1) * TILE]
            else:
                tile = deep_tile(scale, x, y, step)
            data = pictures.jpeg(numpy.ascontiguousarray(tile))
            (row_folder / f"{x}.jpg").write_bytes(data)
            tiles.append((x, y, z, data))
    return tiles


def build_base(folder, scale, pool):
    jobs = []
    for z in range(scale.base_zoom + 1):
        step = max(1, (1 << z) // 8)
        jobs += [(folder, scale, z, row, min(row + step, 1 << z)) for row in range(0, 1 << z, step)]
    store = Store(folder / "base.sqlite3", "base")
    count = size = 0
    for tiles in pool.imap(build_base_rows, jobs):
        for x, y, z, data in tiles:
            store.put(x, y, z, data)
            count, size = count + 1, size + len(data)
    store.close()
    return count, size


def build_products(folder, scale, products, pool):
    """All products, the large ones first. Returns the sums of what build_product counts."""
    deepest_first = sorted(products, key=lambda p: -p["zmax"])
    totals = [0, 0, 0, 0]
    for done, counts in enumerate(pool.imap_unordered(build_product, [(folder, scale, p) for p in deepest_first]), 1):
        totals = [a + b for a, b in zip(totals, counts)]
        if done % 50 == 0:
            print(f"  {done} of {len(products)} products", file=sys.stderr, flush=True)
    return totals


def end_with_parent():
    """In a worker. The pool ends it by SIGTERM: a handler of ours could leave it waiting for ever, as could the end of a parent that is killed."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def build(folder, scale):
    started = time.time()
    (folder / "product").mkdir(parents=True, exist_ok=True)
    products = product_list(scale)
    build_catalog(folder / "product" / "catalog.sqlite", products)
    for palette in range(len(pictures.PALETTES)):
        pictures.texture(palette, scale.texture, scale.seed)  # before the fork: all workers share them
    pictures.world(scale.world, scale.seed)
    with multiprocessing.get_context("fork").Pool(len(os.sched_getaffinity(0)), end_with_parent) as pool:
        tiles, size, full, full_size = build_products(folder, scale, products, pool)
        base_tiles, base_size = build_base(folder, scale, pool)
    summary = {"scale": scale.name, "seed": scale.seed, "products": len(products), "tiles": tiles, "bytes": size,
               "full_tiles": full, "full_tile_mean_bytes": round(full_size / max(1, full)), "base_tiles": base_tiles, "base_bytes": base_size,
               "base_zoom": scale.base_zoom, "zoom": scale.zoom, "hot_zoom": scale.hot_zoom, "seconds": round(time.time() - started, 1),
               "items": [{"name": p["name"], "kw": p["keywords"], **{k: p[k] for k in ("minx", "miny", "maxx", "maxy", "zmax")}} for p in products]}
    write_whole(folder / "dataset.json", json.dumps(summary, indent=1))


class Dataset:
    """A folder of data that is complete, and its summary."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        self.summary = json.loads((self.folder / "dataset.json").read_text())
        self.items = self.summary["items"]
        self.full = self.summary["scale"] == "full"
        self.scale = Scale(self.full, self.summary["seed"])

    def warm(self):
        return warm(self.folder)


def warm(folder):
    """Reads every file once, so that the page cache holds it (some systems give pages back that nobody used for a while); returns the bytes."""
    total, buffer = 0, bytearray(1 << 20)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with open(path, "rb", buffering=0) as file:
                while count := file.readinto(buffer):
                    total += count
    return total


def make(folder, full):
    """The data in that folder: built if it is not there yet."""
    folder = pathlib.Path(folder).resolve()
    if not (folder / "dataset.json").exists():
        print(f"building the catalogue in {folder} ({'about five minutes' if full else 'a few seconds'})", file=sys.stderr, flush=True)
        build(folder, Scale(full))
    return Dataset(folder)

"""The stores, each as its configuration says it and as it is read without any of our code; what their tiles are to be."""
import functools
import hashlib
import io
import os
import pathlib
import re
import shutil
import sqlite3
import tempfile

import ingest_model
import numpy
from lifecycle import HALF
from origin import pattern
from patience import patience
from PIL import Image

LEVELS = 5  # of the drawn tileset; that of images has those of ingest_model
DRAWN, PHOTOS = "world", "photos"
GRIDS = {DRAWN: "GoogleMapsCompatible", PHOTOS: "own"}


class Part:
    """Some place of a store that is complete for `levels` in the end; None: it need not have any."""

    def __init__(self, kind, pattern_of_files, levels=range(99)):
        self.kind, self.files, self.levels = kind, pattern_of_files, levels

    def read(self, folder, tileset, database):
        """All tiles: (level, column, row from the south) and bytes."""
        return getattr(self, "_" + self.kind)(folder, tileset, database)

    def _disk(self, folder, tileset, _):
        place = re.compile(re.escape(self.files.format(tileset=tileset)) + r"/(\d+)/(\d+)/(\d+)\.png$")
        for path in sorted(folder.rglob("*.png")):
            if found := place.match(str(path.relative_to(folder))):
                yield tuple(map(int, found.groups())), path.read_bytes()

    def _sqlite3(self, folder, tileset, _):
        yield from self._rows(folder, tileset, "z, x, y, data", "where tileset = '%s'" % tileset)

    def _mbtiles(self, folder, tileset, _):
        yield from self._rows(folder, tileset, "zoom_level, tile_column, tile_row, tile_data")

    def _geopackage(self, folder, tileset, _):
        yield from self._rows(folder, tileset, "zoom_level, tile_column, (1 << zoom_level) - 1 - tile_row, tile_data")

    def _rows(self, folder, tileset, columns, where=""):
        for path in sorted(folder.glob(self.files.format(tileset=tileset))):
            if path.name.endswith(("-journal", "-wal", "-shm")):
                continue
            with sqlite3.connect(path, timeout=patience(60)) as file:
                assert file.execute("pragma integrity_check").fetchall() == [("ok",)], path
                if file.execute("select 1 from sqlite_master where name = 'tiles'").fetchone():
                    for row in file.execute(f"select {columns} from tiles {where}"):
                        yield row[:3], row[3]
            file.close()

    def _postgresql(self, _, tileset, database):
        """`files` is the table."""
        if database.sql(f"select to_regclass('{self.files}') is not null") == ["t"]:
            for line in database.sql(f"select z, x, y, encode(data, 'hex') from {self.files} where tileset = '{tileset}'"):
                z, x, y, data = line.split("|")
                yield (int(z), int(x), int(y)), bytes.fromhex(data)


class Store:
    """`caches`: elements of the configuration, the last of which is called "store"; {store} is the folder."""

    def __init__(self, caches, *parts):
        self.caches, self.parts = caches, parts

    def read(self, folder, tileset, database):
        """For each part the levels that must be complete in the end, and its tiles."""
        for part in self.parts:
            yield part.levels, list(part.read(folder, tileset, database))


def _cache(kind, inner, name="store"):
    more = ' layout="template"' if "<template>" in inner else ""
    return f'<cache name="{name}" type="{kind}"{more}>{inner}</cache>'


def _disk(name="store", folder="tiles"):
    return _cache("disk", f"<template>{{store}}/{folder}/{{{{tileset}}}}/{{{{z}}}}/{{{{x}}}}/{{{{y}}}}.{{{{ext}}}}</template>", name)


STORES = {
    "disk": Store(_disk(), Part("disk", "tiles/{tileset}")),
    "sqlite": Store(_cache("sqlite3", "<dbfile>{store}/all.db</dbfile>"), Part("sqlite3", "all.db")),
    "split": Store(_cache("sqlite3", "<dbfile>{store}/{{tileset}}/{{z}}/{{x}}-{{y}}.db</dbfile><xcount>4</xcount><ycount>4</ycount>"),
                   Part("sqlite3", "{tileset}/*/*.db")),
    "mbtiles": Store(_cache("mbtiles", "<dbfile>{store}/{{tileset}}.mbtiles</dbfile>"), Part("mbtiles", "{tileset}.mbtiles")),
    "geopackage": Store(_cache("geopackage", "<dbfile>{store}/{{tileset}}.gpkg</dbfile>"), Part("geopackage", "{tileset}.gpkg")),
    "postgresql": Store(_cache("postgresql", "<connection>{connection}</connection><table>{table}</table>"), Part("postgresql", "tiles")),
    "composite": Store(_disk("coarse") + _cache("sqlite3", "<dbfile>{store}/fine.db</dbfile>", "fine")
                       + _cache("composite", '<cache max-zoom="2">coarse</cache><cache>fine</cache>'),
                       Part("disk", "tiles/{tileset}", range(3)), Part("sqlite3", "fine.db", range(3, 99))),
    "multitier": Store(_disk("near") + _cache("sqlite3", "<dbfile>{store}/far.db</dbfile>", "far")
                       + _cache("multitier", "<cache>near</cache><cache>far</cache>"),
                       Part("disk", "tiles/{tileset}", None), Part("sqlite3", "far.db")),
    "fallback": Store(_disk("first") + _cache("sqlite3", "<dbfile>{store}/second.db</dbfile>", "second")
                      + _cache("fallback", "<cache>first</cache><cache>second</cache>"),
                      Part("disk", "tiles/{tileset}"), Part("sqlite3", "second.db", None)),
}


@functools.cache
def drawn_tiles():
    """What the origin draws, by level, column and row from the south."""
    made = {}
    for z in range(LEVELS):
        box = ",".join(map(repr, (-HALF, -HALF, HALF, HALF)))
        side = 256 << z
        level = decode(pattern({"WIDTH": side, "HEIGHT": side, "BBOX": box, "SRS": "EPSG:3857"}))
        for x in range(2**z):
            for row in range(2**z):
                made[z, x, 2**z - 1 - row] = level[row * 256:row * 256 + 256, x * 256:x * 256 + 256]
    return made


class Photos:
    """Images that lie over each other all over a grid of their own, made once, in a folder that goes with this process."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="mapcache-faults-photos-")
        numbers, world = numpy.random.default_rng(7), ingest_model.World()
        self.paths = []
        for i in range(6):
            pixels = ingest_model.picture(600, 500, i, holes=i % 3 == 2)
            left, top = int(numbers.integers(0, 1448)), int(numbers.integers(500, 2048))
            self.paths.append(ingest_model.save(pathlib.Path(self.folder) / f"{i}.png", pixels, left, top))
            world.draw(pixels, left, top)
        self.tiles = world.overviews().tiles()

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def decode(data):
    return numpy.asarray(Image.open(io.BytesIO(data)).convert("RGBA"))


class Comparison:
    """Bytes of tiles against their pixels; what was the same once is not decoded again."""

    def __init__(self, expected):
        self.expected, self.known = expected, {}

    def fits(self, key, data):
        name = key, hashlib.sha256(data).digest()
        if name not in self.known:
            self.known[name] = self._fits(key, data)
        return self.known[name]

    def _fits(self, key, data):
        try:
            found = decode(data)
        except (OSError, SyntaxError, ValueError):
            return False
        wanted = self.expected.get(key)
        if wanted is None or found.shape != wanted.shape:
            return False
        seen = wanted[..., 3] > 0
        return bool((found[..., 3] == wanted[..., 3]).all() and (found[seen] == wanted[seen]).all())

    def check(self, parts, complete):
        """Every tile of every part; with `complete`, also that none is missing. The number of tiles."""
        count = 0
        for levels, tiles in parts:
            wrong = [key for key, data in tiles if not self.fits(key, data)]
            assert not wrong, f"{len(wrong)} of {len(tiles)} tiles are not what they are to be: {sorted(wrong)[:10]}"
            assert len(tiles) == len(dict(tiles)), "a tile is stored twice"
            if complete and levels is not None:
                missing = {key for key in self.expected if key[0] in levels} - dict(tiles).keys()
                assert not missing, f"{len(missing)} tiles are missing: {sorted(missing)[:10]}"
            count += len(tiles)
        return count


LEFT = re.compile(r"\.tmp$|-journal$|-wal$|-shm$")


def left_behind(folder):
    """Files that only last while something is written."""
    return sorted(os.path.join(at, name) for at, _, names in os.walk(folder) for name in names if LEFT.search(name))

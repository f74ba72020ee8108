"""64 clients over a catalogue while its products are added, replaced and removed. Each pixel says of which product, version and tile
it is, so that every answer can be checked: only versions that were there while it was made, never two of them within a tile of a
product, nothing foreign, nothing missing. Meant for a build with a sanitizer, too (script/test runs it in both)."""

import collections
import functools
import io
import itertools
import multiprocessing
import os
import random
import signal
import sqlite3
import struct
import threading
import time
import zlib

import numpy
import pytest
from fastcgi import Client, Server
from patience import patience
from PIL import Image
from test_concurrency import GRID, RESOLUTIONS, SIDE, sanitizer_options, sanitizer_reports

SECONDS = float(os.environ.get("MAPCACHE_LOAD_SECONDS", "6"))
CLIENTS = 64
CHECKED = 4000  # answers that are looked at, spread over all of them: a fast server gives more in a second than are checked in twenty
PRODUCTS = 24
LEVELS = 4
HALF = 20037508.342789248
SHAPES = 5  # versions differ in shape, too: what is remembered of a shape must not outlive it
SCHEMA = ("create table tiles(tileset text, grid text, x integer, y integer, z integer, data blob, dim text, ctime datetime,"
          " primary key(tileset, grid, x, y, z, dim))")
ROW = "insert into tiles values(?, ?, ?, ?, ?, ?, '', datetime('now'))"


def name_of(product):
    return f"product_{product:02d}"


@functools.cache
def mask(product, shape, tile):
    """Where a product shows in a tile, rows from the top; None where it has no such tile."""
    dice = random.Random(repr((product, shape, tile)))
    kind = dice.random()
    if kind < 0.3:
        return None
    result = numpy.zeros((SIDE, SIDE), bool)
    if kind < 0.4:
        result[:] = True
    else:
        x, y = dice.randrange(SIDE - 8), dice.randrange(SIDE - 8)
        result[y:y + dice.randrange(4, 40), x:x + dice.randrange(4, 40)] = True
    return result


def colour(product, version, tile):
    z, x, y = tile
    return product + 1, version % 251, (z * 61 + x * 7 + y * 29) % 256


def png(pixels):
    """RGBA, quickly."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = numpy.concatenate([numpy.zeros((SIDE, 1), numpy.uint8), pixels.reshape(SIDE, -1)], axis=1)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 6, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows.tobytes(), 1)) + chunk(b"IEND", b""))


def rows(product, version):
    for z in range(LEVELS):
        for x in range(2**z):
            for y in range(2**z):
                shown = mask(product, version % SHAPES, (z, x, y))
                if shown is not None:
                    pixels = numpy.zeros((SIDE, SIDE, 4), numpy.uint8)
                    pixels[shown] = (*colour(product, version, (z, x, y)), 255)
                    yield name_of(product), GRID, x, y, z, png(pixels)


class Catalogue:
    """The files, and what could be seen of each product when. A state is a version, or None for a product that is not there; it
    may be seen from the moment its change began until the next change was over."""

    def __init__(self, folder):
        self.folder = folder
        self.states = [[] for _ in range(PRODUCTS)]
        self.next = 1
        self.done = {}
        (folder / "products").mkdir()
        self.catalog = sqlite3.connect(folder / "catalog.sqlite", timeout=patience(60), check_same_thread=False)
        self.catalog.execute("create table catalog(name text primary key, minx real, miny real, maxx real, maxy real)")
        for product in range(PRODUCTS):
            self.change(product, self.add)
        self.catalog.commit()

    def change(self, product, how):
        states = self.states[product]
        version = None if how == self.remove else self.next
        self.next += version is not None
        states.append([time.monotonic(), float("inf"), version])
        how(product, version)
        if len(states) > 1:
            states[-2][1] = time.monotonic()
        self.done[how.__name__] = self.done.get(how.__name__, 0) + 1

    def allowed(self, product, began, ended):
        return [version for since, until, version in list(self.states[product]) if since <= ended and until >= began]

    def there(self, product):
        return self.states[product][-1][2] is not None

    def _write(self, product, version):
        new = self.folder / "new.sqlite3"
        new.unlink(missing_ok=True)
        database = sqlite3.connect(new, isolation_level=None)
        database.execute("pragma synchronous = off")
        database.execute("begin")
        database.execute(SCHEMA)
        database.executemany(ROW, rows(product, version))
        database.execute("create unique index xyz on tiles(x, y, z)")
        database.execute("commit")
        database.close()
        new.rename(self.path(product))

    def path(self, product):
        return self.folder / "products" / f"{name_of(product)}.sqlite3"

    def add(self, product, version):
        self._write(product, version)
        self.catalog.execute("insert into catalog values(?, ?, ?, ?, ?)", (name_of(product), -HALF, -HALF, HALF, HALF))
        self.catalog.commit()

    def replace(self, product, version):
        self._write(product, version)

    def rewrite(self, product, version):
        """The same file, in one transaction."""
        database = sqlite3.connect(self.path(product), timeout=patience(60), isolation_level=None)
        database.execute("pragma synchronous = off")
        database.execute("begin immediate")
        database.execute("delete from tiles")
        database.executemany(ROW, rows(product, version))
        database.execute("commit")
        database.close()

    def remove(self, product, _):
        self.catalog.execute("delete from catalog where name = ?", (name_of(product),))
        self.catalog.commit()
        self.path(product).unlink()

    def churn(self, end):
        dice = random.Random(1)
        while time.monotonic() < end:
            product = dice.randrange(PRODUCTS)
            if self.there(product):
                self.change(product, dice.choice([self.replace, self.replace, self.rewrite, self.remove]))
            else:
                self.change(product, self.add)
            time.sleep(dice.uniform(0, 0.08))


def write_config(folder):
    def tileset(name, query, block="", inner=""):
        return f"""<tileset name="{name}"><cache>products</cache><grid>{GRID}</grid><format>PNG</format>
    <dimensions><assembly_type>stack</assembly_type><store_assemblies>false</store_assemblies>{block}
      <dimension name="product" type="sqlite" default="%"><dbfile>{folder}/catalog.sqlite</dbfile>{inner}
        <validate_query>{query} order by name</validate_query>
        <list_query>select name from catalog</list_query></dimension></dimensions></tileset>"""

    asked = "select name from catalog where (:dim = '%' or name = :dim)"
    near = " and minx &lt;= :maxx and maxx >= :minx and miny &lt;= :maxy and maxy >= :miny"
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache>
  <workers>3</workers> <memory_cache>2M</memory_cache> <open_files>16</open_files> <deadline>60</deadline>
  <grid name="{GRID}"><srs>EPSG:3857</srs><size>{SIDE} {SIDE}</size><resolutions>{RESOLUTIONS}</resolutions>
    <extent>{-HALF} {-HALF} {HALF} {HALF}</extent></grid>
  <cache name="products" type="sqlite3"><dbfile>{folder}/products/{{dim:product}}.sqlite3</dbfile>
    <queries><get>select data from tiles where x = :x and y = :y and z = :z</get></queries></cache>
  {tileset("auto", asked)}
  {tileset("threads", asked + near, "<assembly_threaded_fetching>true</assembly_threaded_fetching>")}
  {tileset("bymap", asked + near, inner="<wms_querybymap>true</wms_querybymap>")}
  <service type="wms" enabled="true"><full_wms>assemble</full_wms><format allow_client_override="true">PNG</format></service>
  <service type="tms" enabled="true"/> <service type="wmts" enabled="true"/>
  <lock_dir>{folder}</lock_dir>
</mapcache>
""")
    return path


def decoded(status, body, side):
    """Pixels, rows from the top; a map without any data is an empty picture."""
    if status == 404:
        return numpy.zeros((side, side, 4), numpy.uint8)
    assert status == 200, (status, body[:300])
    picture = numpy.asarray(Image.open(io.BytesIO(body)).convert("RGBA"))
    assert picture.shape == (side, side, 4), picture.shape
    return picture


def check_tile(pixels, tile, states):
    """`states`: what each product that was asked for could be, in the order of drawing; raises AssertionError otherwise."""
    covered = numpy.zeros((SIDE, SIDE), bool)
    owners = numpy.where(pixels[..., 3] > 0, pixels[..., 0].astype(int) - 1, -1)
    for product in sorted(states, reverse=True):  # from the top
        mine = owners == product
        if mine.any():
            seen = numpy.unique(pixels[mine], axis=0)
            assert len(seen) == 1, f"two versions of {product} in one tile {tile}: {seen[:4]}"
            fitting = [version for version in states[product] if version is not None
                       and (*colour(product, version, tile), 255) == tuple(seen[0])]
            assert fitting, f"product {product}, tile {tile}: {seen[0]}, possible {states[product]}"
            shapes = [shape for version in fitting if (shape := mask(product, version % SHAPES, tile)) is not None]
            fitting = [shape for shape in shapes if (mine == (shape & ~covered)).all()]
            assert fitting, f"product {product}, tile {tile}: not its shape"
            covered |= fitting[0]
        else:
            hidden = [version is None or (shape := mask(product, version % SHAPES, tile)) is None or (covered | ~shape).all()
                      for version in states[product]]
            assert any(hidden), f"product {product} is missing in tile {tile}: possible {states[product]}"
    assert (covered == (pixels[..., 3] > 0)).all(), f"foreign pixels in tile {tile}"


class Load:
    """Clients only ask, so that there are always many at once; `answers` are looked at afterwards."""

    def __init__(self, address, end):
        self.address, self.end = address, end
        self.answers, self.broken = [], []
        self.threads = [threading.Thread(target=self.run, args=(random.Random(seed),)) for seed in range(CLIENTS)]

    def run(self, dice):
        client = Client(self.address, timeout=120)
        try:
            while time.monotonic() < self.end:
                kind = dice.choice(["tile", "tile", "one", "one", "one", "map", "map", "shifted", "document"])
                path, query, what = getattr(self, kind)(dice)
                began = time.monotonic()
                answer = client.get(path.encode(), query.encode())
                self.answers.append((kind, what, began, time.monotonic(), answer.status, answer.body, f"{path}?{query}"))
        except (OSError, EOFError, AssertionError) as problem:
            self.broken.append(repr(problem))
        finally:
            client.close()

    def tile(self, dice):
        z = dice.randrange(LEVELS)
        tile = z, dice.randrange(2**z), dice.randrange(2**z)
        layer = dice.choice(["auto", "threads", "bymap"])
        return f"/tms/1.0.0/{layer}/{z}/{tile[1]}/{tile[2]}.png", "", (tile, 1, None)

    def one(self, dice):
        """A tile of one product, which is passed on as it was stored."""
        product, z = dice.randrange(PRODUCTS), dice.randrange(LEVELS)
        tile = z, dice.randrange(2**z), dice.randrange(2**z)
        return (f"/wmts/1.0.0/auto/default/{name_of(product)}/{GRID}/{z}/{2**z - 1 - tile[2]}/{tile[1]}.png", "",
                (tile, 1, product))

    def map(self, dice):
        """Four by four tiles or less, with all products or with one."""
        z = dice.randrange(1, LEVELS)
        count = min(4, 2**z)
        left, bottom = dice.randrange(2**z - count + 1), dice.randrange(2**z - count + 1)
        wide = 2 * HALF / 2**z
        box = [-HALF + left * wide, -HALF + bottom * wide, -HALF + (left + count) * wide, -HALF + (bottom + count) * wide]
        product = dice.choice([None, None, dice.randrange(PRODUCTS)])
        query = ("SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&STYLES=&SRS=EPSG:3857&FORMAT=image/png&TRANSPARENT=TRUE"
                 f"&LAYERS={dice.choice(['auto', 'threads', 'bymap'])}&WIDTH={count * SIDE}&HEIGHT={count * SIDE}"
                 f"&BBOX={','.join(format(edge, '.9f') for edge in box)}"
                 f"&DIM_PRODUCT={'%25' if product is None else name_of(product)}")
        return "/", query, ((z, left, bottom), count, product)

    def shifted(self, dice):
        """Between the tiles, where pixels are mixed: that there is an answer."""
        x, y, wide = dice.uniform(-HALF, 0), dice.uniform(-HALF, 0), dice.uniform(HALF / 8, HALF)
        return "/", ("SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&STYLES=&SRS=EPSG:3857&FORMAT=image/png"
                     f"&LAYERS=auto,threads&WIDTH=150&HEIGHT=150&BBOX={x},{y},{x + wide},{y + wide}"), None

    def document(self, _):
        """The list of values: what was there, each once for each layer."""
        return "/wmts/1.0.0/WMTSCapabilities.xml", "", None


def problem_of(catalogue, answer):
    """What is wrong with an answer, or None."""
    kind, what, began, ended, status, body, address = answer
    states = {product: catalogue.allowed(product, began, ended) for product in range(PRODUCTS)}
    try:
        if kind == "document":
            assert status == 200, body[:300]
            for product, possible in states.items():
                listed = body.count(f"<Value>{name_of(product)}</Value>".encode())
                assert listed == 3 * (None not in possible) or len(set(map(bool, possible))) > 1, (product, possible, listed)
        elif kind == "shifted":
            decoded(status, body, 150)
        else:
            (z, left, bottom), count, product = what
            picture = decoded(status, body, count * SIDE)
            for column, row in itertools.product(range(count), range(count)):
                part = picture[row * SIDE:(row + 1) * SIDE, column * SIDE:(column + 1) * SIDE]
                check_tile(part, (z, left + column, bottom + count - 1 - row),
                           states if product is None else {product: states[product]})
    except AssertionError as problem:
        return f"{address} in {1000 * (ended - began):.0f} ms: {problem}"
    return None


def check_some(index):
    """The problems of a part of the answers; in a process of its own, which has inherited them."""
    catalogue, answers = to_check
    return [problem for answer in answers[index::64] if (problem := problem_of(catalogue, answer)) is not None]


def check_all(catalogue, answers):
    global to_check
    to_check = catalogue, answers
    # A signal ends the processes of the pool at once, not as it ends a run of pytest; at the end they end by themselves.
    with multiprocessing.get_context("fork").Pool(len(os.sched_getaffinity(0)), signal.signal, (signal.SIGTERM, signal.SIG_DFL)) as pool:
        problems = list(itertools.chain.from_iterable(pool.imap_unordered(check_some, range(64))))
        pool.close()
        pool.join()
    return problems


def test_the_check_sees_what_is_wrong():
    """A right picture passes; one with a pixel too many, too few, of another version or of another tile does not."""
    tile, states = (1, 0, 1), {product: [7] for product in range(PRODUCTS)}
    right = numpy.zeros((SIDE, SIDE, 4), numpy.uint8)
    for product in range(PRODUCTS):
        shown = mask(product, 7 % SHAPES, tile)
        if shown is not None:
            right[shown] = (*colour(product, 7, tile), 255)
    check_tile(right, tile, states)
    top = int(right[..., 0].max()) - 1
    y, x = numpy.argwhere(right[..., 0] == top + 1)[0]
    partly = {**states, top: [7, 8]}
    for pixel, possible in [((0, 0, 0, 0), states), ((PRODUCTS + 1, 7, right[y, x, 2], 255), states),
                            ((*colour(top, 8, tile), 255), partly), ((*colour(top, 7, (1, 1, 1)), 255), states)]:
        wrong = right.copy()
        wrong[y, x] = pixel
        with pytest.raises(AssertionError):
            check_tile(wrong, tile, possible)
    with pytest.raises(AssertionError):
        check_tile(right, tile, {**states, top: [8]})
    with pytest.raises(AssertionError):
        check_tile(right, tile, {**states, top: [None]})
    without = right.copy()
    without[right[..., 0] == top + 1] = 0
    with pytest.raises(AssertionError):
        check_tile(without, tile, states)


def test_products_change_under_64_clients(build, folder):
    catalogue = Catalogue(folder)
    server = Server(build, write_config(folder), folder, environment=sanitizer_options(folder), options=["--threads", "16"])
    end = time.monotonic() + SECONDS
    load = Load(server.address, end)
    for thread in load.threads:
        thread.start()
    catalogue.churn(end)
    for thread in load.threads:
        thread.join(120)
    alive = server.alive()
    server.client.close()
    status = server.program.stop(60)
    reports = sanitizer_reports(folder)
    assert not reports, reports[:12000]
    assert alive and status in (0, 15, -15), f"{status}\n{server.log()}"
    assert not load.broken, f"{load.broken[:3]}\n{server.log()}"
    checked = load.answers[::1 + len(load.answers) // CHECKED]
    wrong = check_all(catalogue, checked)
    assert not wrong, "\n".join([f"{len(wrong)} of {len(checked)} answers", *wrong[:5], server.log()])
    counts = collections.Counter(answer[0] for answer in load.answers)
    assert set(counts) == {"tile", "one", "map", "shifted", "document"} and len(load.answers) > 2 * CLIENTS
    assert set(catalogue.done) == {"add", "replace", "rewrite", "remove"}, catalogue.done
    print(counts, catalogue.done)

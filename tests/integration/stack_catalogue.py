"""A small catalogue of products, each an SQLite cache of its own, with shapes and codings of every kind; and what a stack
of them should look like, computed from their definition alone. Made from a fixed seed."""
import io
import sqlite3

import numpy
from PIL import Image

SEED = 20260102
WORLD = 20037508.342789248
TOP_LEVEL = 5
GRID = "GoogleMapsCompatible"
KINDS = ("box", "round", "soft", "pane", "photo", "jpeg")


class Product:
    """A picture at a place: a box in metres of EPSG:3857, and by its kind what shows inside."""

    def __init__(self, name, kind, box, color, phase):
        self.name, self.kind, self.box, self.color, self.phase = name, kind, box, color, phase

    def touches(self, box):
        return (self.box[0] < box[2] and box[0] < self.box[2] and self.box[1] < box[3] and box[1] < self.box[3])

    def draw(self, box, size):
        """size x size pixels of a box, R, G, B, A as they are stored: not premultiplied."""
        step = (box[2] - box[0]) / size
        x = (box[0] + (numpy.arange(size) + 0.5) * step)[None, :]
        y = (box[3] - (numpy.arange(size) + 0.5) * step)[:, None]
        u = (x - self.box[0]) / (self.box[2] - self.box[0])
        v = (y - self.box[1]) / (self.box[3] - self.box[1])
        inside = (u >= 0) & (u < 1) & (v >= 0) & (v < 1)
        radius = numpy.hypot(u - 0.5, v - 0.5)
        alpha = {"box": numpy.where(inside, 255, 0), "photo": numpy.where(inside, 255, 0),
                 "jpeg": numpy.full(inside.shape, 255), "pane": numpy.where(inside, 100, 0),
                 "round": numpy.where(radius < 0.5, 255, 0),
                 "soft": numpy.clip(510 * (0.5 - radius) * 2, 0, 255)}[self.kind]
        wave = numpy.sin(x / 9e5 + self.phase) * numpy.cos(y / 7e5 - self.phase)
        noise = numpy.sin(x / 1.1e4) * numpy.sin(y / 1.3e4) if self.kind == "photo" else 0
        rgba = numpy.empty((size, size, 4))
        for band in range(3):
            rgba[..., band] = self.color[band] + 40 * wave + 30 * noise
        rgba[..., 3] = alpha
        rgba = numpy.clip(numpy.rint(rgba), 0, 255).astype(numpy.uint8)
        rgba[rgba[..., 3] == 0] = 0
        return rgba


def tile_box(z, x, row):
    """By row from the top."""
    width = 2 * WORLD / 2**z
    return (-WORLD + x * width, WORLD - (row + 1) * width, -WORLD + (x + 1) * width, WORLD - row * width)


def products(count=24):
    random = numpy.random.default_rng(SEED)
    made = []
    for i in range(count):
        kind = KINDS[i % len(KINDS)]
        width, height = random.uniform(1.5e6, 7e6, 2)
        x, y = random.uniform(-1.4e7, 1e7), random.uniform(-1.1e7, 8e6)
        color = random.integers(40, 215, 3)
        made.append(Product(f"{kind}_{i}", kind, (x, y, x + width, y + height), color, random.uniform(0, 6)))
    return made


def encode(rgba, kind, index):
    """Codings of every sort, as tiles in the field have them."""
    image = Image.fromarray(rgba)
    out = io.BytesIO()
    if kind == "jpeg":
        image.convert("RGB").save(out, "JPEG", quality=92)
    elif (rgba[..., 3] == 255).all() and index % 2 == 0:
        image.convert("RGB").save(out, "PNG", compress_level=1)
    else:
        image.save(out, "PNG", compress_level=1)
    return out.getvalue()


def create(path):
    database = sqlite3.connect(path)
    database.execute("create table if not exists tiles(tileset text, grid text, x integer, y integer, z integer, data blob, dim text,"
                     " ctime datetime, primary key(tileset, grid, x, y, z, dim))")
    database.execute("create unique index if not exists xyz on tiles(x, y, z)")
    return database


def put(database, z, x, row, data, dim="", tileset="any"):
    database.execute("insert or replace into tiles values(?, ?, ?, ?, ?, ?, ?, '2021-02-03 04:05:06')",
                     (tileset, GRID, x, 2**z - 1 - row, z, data, dim))


def write_product(folder, product):
    with create(folder / f"{product.name}.sqlite3") as database:
        for z in range(TOP_LEVEL + 1):
            width = 2 * WORLD / 2**z
            columns = range(int((product.box[0] + WORLD) / width), int((product.box[2] + WORLD) / width) + 1)
            rows = range(int((WORLD - product.box[3]) / width), int((WORLD - product.box[1]) / width) + 1)
            for x in columns:
                for row in rows:
                    rgba = product.draw(tile_box(z, x, row), 256)
                    if product.kind == "jpeg" and not (x > columns[0] and row > rows[0] and z > 2):
                        continue  # opaque everywhere: it would hide all at the low levels
                    if rgba[..., 3].any():
                        put(database, z, x, row, encode(rgba, product.kind, x + row))
    database.close()


def write_catalogue(folder, made):
    database = sqlite3.connect(folder / "catalogue.sqlite")
    database.execute("create table product(name text, keyword text, minx real, miny real, maxx real, maxy real)")
    database.executemany("insert into product values(?, ?, ?, ?, ?, ?)",
                         [(one.name, one.kind + ",all", *one.box) for one in made])
    database.commit()
    database.close()


def make(folder):
    """Fills the folder; returns the products in painting order."""
    made = products()
    for product in made:
        write_product(folder, product)
    write_catalogue(folder, made)
    return made


LAYER = """
  <cache name="{name}" type="sqlite3"><dbfile>{folder}/{{dim:product}}.sqlite3</dbfile>
    <queries><get>SELECT data FROM tiles WHERE x=:x AND y=:y AND z=:z</get></queries></cache>
  <tileset name="{name}"><cache>{name}</cache><grid>{grid}</grid><format>PNG</format>
    <dimensions><assembly_type>{assembly}</assembly_type><store_assemblies>false</store_assemblies>{more}
      <dimension name="product" default="all" type="sqlite"><dbfile>{folder}/catalogue.sqlite</dbfile>{by_map}
        <validate_query>SELECT name FROM product WHERE keyword LIKE '%' || :dim || '%'{where}</validate_query>
        <list_query>SELECT name FROM product</list_query></dimension></dimensions></tileset>"""
BY_PLACE = " AND minx &lt;= :maxx AND maxx &gt;= :minx AND miny &lt;= :maxy AND maxy &gt;= :miny"


def layer(folder, name, where=BY_PLACE, more="", by_map="", assembly="stack"):
    return LAYER.format(folder=folder, name=name, grid=GRID, where=where, more=more, by_map=by_map, assembly=assembly)


def configuration(*layers, top=""):
    return ("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<mapcache>" + "".join(layers) + """
  <service type="wms" enabled="true"><full_wms>assemble</full_wms><format>PNG</format></service>
  <service type="wmts" enabled="true"/>
  """ + top + "\n</mapcache>\n")


def decoded(body):
    """Premultiplied floats of an image."""
    rgba = numpy.array(Image.open(io.BytesIO(body)).convert("RGBA")).astype(float)
    rgba[..., :3] *= rgba[..., 3:] / 255
    return rgba


def over(front, back):
    return front + back * (1 - front[..., 3:] / 255)


def premultiplied(rgba):
    out = rgba.astype(float)
    out[..., :3] *= out[..., 3:] / 255
    return out

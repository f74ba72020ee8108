"""Stacks of a catalogue's products, pixel by pixel: against Debian's MapCache on random maps and tiles, and against a
reference of our own where MapCache is known to be wrong."""
import io
import random

import numpy
import pytest
import stack_catalogue as catalogue
from conftest import fetch
from drop_in import PEER_MODULE
from PIL import Image

ALIGNED, RESAMPLED, TILES = 150, 110, 100
LAYERS = ["placed", "all"]


def wms(layer, box, width, height, value="all"):
    corners = ",".join(f"{corner:.9f}" for corner in box)
    return (f"/mc?SERVICE=WMS&REQUEST=GetMap&LAYERS={layer}&SRS=EPSG:3857&BBOX={corners}&WIDTH={width}&HEIGHT={height}"
            f"&DIM_PRODUCT={value}")


def wmts(layer, z, x, row, value="all"):
    return (f"/mc/wmts?SERVICE=WMTS&REQUEST=GetTile&VERSION=1.0.0&LAYER={layer}&STYLE=default&FORMAT=image/png"
            f"&TILEMATRIXSET={catalogue.GRID}&TILEMATRIX={z}&TILEROW={row}&TILECOL={x}&product={value}")


def any_value(chance):
    return chance.choice(["all", "all", *catalogue.KINDS])


def a_place(chance):
    """Most often inside of a product."""
    box = chance.choice(catalogue.products()).box
    return chance.uniform(box[0], box[2]), chance.uniform(box[1], box[3])


def inside(value, most, step):
    return max(0, min(value, most)) // step * step


def aligned_maps():
    """Boxes on the pixel lattice of a level, most of them on tile edges."""
    chance = random.Random(31)
    for _ in range(ALIGNED):
        z = chance.randint(1, catalogue.TOP_LEVEL)
        pixel = 2 * catalogue.WORLD / 2**z / 256
        width, height = chance.choice([(256, 256), (512, 512), (300, 200), (700, 512)])
        size = 256 * 2**z
        width, height = min(width, size), min(height, size)
        step = 256 if chance.random() < 0.6 else 1
        x, y = a_place(chance)
        left = inside(int((x + catalogue.WORLD) / pixel) - width // 2, size - width, step)
        top = inside(int((catalogue.WORLD - y) / pixel) - height // 2, size - height, step)
        box = (-catalogue.WORLD + left * pixel, catalogue.WORLD - (top + height) * pixel,
               -catalogue.WORLD + (left + width) * pixel, catalogue.WORLD - top * pixel)
        yield wms(chance.choice(LAYERS), box, width, height, any_value(chance))


def resampled_maps():
    chance = random.Random(32)
    for _ in range(RESAMPLED):
        width, height = chance.randint(120, 600), chance.randint(120, 600)
        across = 10**chance.uniform(5.9, 7.4)
        up = across * height / width
        x, y = a_place(chance)
        x, y = max(-catalogue.WORLD, x - across / 2), max(-catalogue.WORLD, y - up / 2)
        yield wms(chance.choice(LAYERS), (x, y, x + across, y + up), width, height, any_value(chance))


def tiles():
    chance = random.Random(33)
    for _ in range(TILES):
        z = chance.randint(0, catalogue.TOP_LEVEL)
        x, y = a_place(chance)
        width = 2 * catalogue.WORLD / 2**z
        yield wmts(chance.choice(LAYERS), z, int((x + catalogue.WORLD) / width), int((catalogue.WORLD - y) / width),
                   any_value(chance))


class Servers:
    def __init__(self, folder, products, ours, theirs):
        self.folder, self.products = folder, products
        self.ours, self.theirs = ours.port, theirs.port

    def ask(self, path):
        return fetch(self.ours, path), fetch(self.theirs, path)


@pytest.fixture(scope="module")
def servers(shared_folder, shared_apache):
    assert PEER_MODULE.exists(), "Debian's MapCache is missing: run script/bootstrap"
    products = catalogue.make(shared_folder)
    config = shared_folder / "catalogue.xml"
    config.write_text(catalogue.configuration(
        catalogue.layer(shared_folder, "placed"), catalogue.layer(shared_folder, "all", where="")))
    alias = f"MapCacheAlias /mc {config}\n"
    ours = shared_apache("ours", alias)
    theirs = shared_apache("theirs", f"LoadModule mapcache_module {PEER_MODULE}\n" + alias, module=False, ours=False)
    return Servers(shared_folder, products, ours, theirs)


def compare(servers, paths, judge):
    shown = 0
    for path in paths:
        ours, theirs = servers.ask(path)
        if ours.status == 404:  # the peer also looks at the tiles that a map only touches: an empty map there
            assert theirs.status == 404 or not catalogue.decoded(theirs.body).any(), path
            continue
        assert theirs.status == 200, (path, theirs.body[:300])
        assert ours.status == 200, (path, ours.body[:300])
        mine, other = catalogue.decoded(ours.body), catalogue.decoded(theirs.body)
        assert mine.shape == other.shape, path
        judge(path, numpy.abs(mine - other))
        shown += bool(mine[..., 3].any())
    return shown


def nearly_equal(path, difference):
    assert difference.max() <= 2.51, (path, difference.max())  # 2 of 255, and the rounding of what is premultiplied here


class CloselyResampled:
    """The peer weighs neighbouring pixels in steps of 1/128, which shows at hard edges; a map may consist of them."""

    def __init__(self):
        self.pixels = self.far = 0

    def __call__(self, path, difference):
        pixels = difference.max(axis=2)
        far = (pixels > 3.51).sum()
        assert far <= 0.005 * pixels.size and pixels.max() <= 12, (path, far / pixels.size, pixels.max())
        noise = (difference**2).mean()
        assert noise == 0 or 10 * numpy.log10(255**2 / noise) >= 45, (path, noise)
        self.pixels += pixels.size
        self.far += far


def test_aligned_maps(servers):
    assert compare(servers, aligned_maps(), nearly_equal) > ALIGNED * 0.6


def test_resampled_maps(servers):
    judge = CloselyResampled()
    assert compare(servers, resampled_maps(), judge) > RESAMPLED * 0.6
    assert judge.far <= 0.001 * judge.pixels, judge.far / judge.pixels


def test_tiles(servers):
    assert compare(servers, tiles(), nearly_equal) > TILES * 0.5


def test_tiles_of_one_product_pass_as_they_are(servers):
    passed = 0
    for path in tiles():
        ours, theirs = servers.ask(path)
        passed += ours.body == theirs.body and ours.headers["ETag"] is not None
    assert passed > 5


def test_a_second_look_gives_the_same(servers):
    for path in list(aligned_maps())[:20] + list(tiles())[:20]:
        first, again = fetch(servers.ours, path), fetch(servers.ours, path)
        assert (first.status, first.body) == (again.status, again.body), path
        if first.status == 200:
            assert fetch(servers.ours, path, {"If-None-Match": first.headers["ETag"]}).status == 304, path


def reference(products, z, x, row):
    """The stack by its definition."""
    canvas = numpy.zeros((256, 256, 4))
    for product in products:
        if product.kind != "jpeg":
            canvas = catalogue.over(catalogue.premultiplied(product.draw(catalogue.tile_box(z, x, row), 256)), canvas)
    return canvas


def test_a_stack_is_what_its_products_say(servers):
    seen = 0
    for z in range(4):
        for x in range(2**z):
            for row in range(2**z):
                for kind in ("soft", "round"):
                    wanted = reference([one for one in servers.products if one.kind == kind], z, x, row)
                    got = catalogue.decoded(fetch(servers.ours, wmts("all", z, x, row, kind)).body)
                    assert numpy.abs(wanted - got).max() <= 2.51, (z, x, row, kind)
                    seen += wanted.any()
    assert seen > 30


# Where Debian's MapCache is wrong, why, and what is right. The peer is asked as well: a case in which it has become
# right fails.


def solid(color, left=0, right=256):
    rgba = numpy.zeros((256, 256, 4), numpy.uint8)
    rgba[:, left:right] = color
    return rgba


def with_palette(rgba):
    """A palette PNG with one transparent entry."""
    shown = rgba[..., 3] > 0
    image = Image.fromarray(shown.astype(numpy.uint8), "P")
    image.putpalette([0, 0, 0, *rgba[shown][0][:3]])
    out = io.BytesIO()
    image.save(out, "PNG", transparency=0)
    return out.getvalue()


def as_png(rgba):
    out = io.BytesIO()
    Image.fromarray(rgba).save(out, "PNG")
    return out.getvalue()


def store(folder, name, data, dim=""):
    with catalogue.create(folder / f"{name}.sqlite3") as database:
        catalogue.put(database, 1, 0, 0, data, dim)
    database.close()


GREEN, BLUE = (0, 200, 0, 255), (0, 0, 220, 255)
WRONG = {
    # A PNG is taken as opaque by its colour type alone, though its palette has transparent entries: nothing below it
    # is drawn.
    "palette": [("low", as_png(solid(GREEN))), ("top", with_palette(solid(BLUE, 0, 100)))],
    # The stored colour of a uniform tile is premultiplied; it is served as if it were not, and a translucent one counts
    # as opaque: what lies below it does not show.
    "uniform": [("low", as_png(solid(GREEN))), ("top", b"#" + bytes([60, 0, 0, 128]))],
    # A product without a file is an error for the whole tile instead of an empty contribution.
    "no_file": [("low", as_png(solid(GREEN, 0, 128))), ("top", None)],
}
RIGHT = {
    "palette": {(50, 50): (0, 0, 220, 255), (200, 50): (0, 200, 0, 255)},
    "uniform": {(50, 50): (0, 100, 60, 255)},
    "no_file": {(50, 50): (0, 200, 0, 255), (200, 50): (0, 0, 0, 0)},
}


@pytest.fixture(scope="module")
def wrong_servers(shared_folder, shared_apache):
    folder = shared_folder / "wrong"
    folder.mkdir(mode=0o755)
    made = []
    for name, parts in WRONG.items():
        for place, data in parts:
            made.append(catalogue.Product(f"{name}_{place}", name, (-2e7, 0, 0, 2e7), (0, 0, 0), 0))
            if data is not None:
                store(folder, f"{name}_{place}", data)
    catalogue.write_catalogue(folder, made)
    config = folder / "wrong.xml"
    config.write_text(catalogue.configuration(catalogue.layer(folder, "all", where="")))
    alias = f"MapCacheAlias /mc {config}\n"
    return (shared_apache("right", alias).port,
            shared_apache("mistaken", f"LoadModule mapcache_module {PEER_MODULE}\n" + alias, module=False,
                          ours=False).port)


def is_right(reply, wanted):
    if reply.status != 200:
        return False
    image = catalogue.decoded(reply.body)
    return all(numpy.abs(image[y, x] - color).max() <= 1.01 for (x, y), color in wanted.items())


@pytest.mark.parametrize("name", WRONG)
def test_where_the_peer_is_wrong(wrong_servers, name):
    ours, theirs = (fetch(port, wmts("all", 1, 0, 0, name)) for port in wrong_servers)
    assert is_right(ours, RIGHT[name]), (ours.status, ours.body[:200])
    assert not is_right(theirs, RIGHT[name])


TWO_DIMENSIONS = """
  <cache name="two" type="sqlite3"><dbfile>{folder}/two.sqlite3</dbfile>
    <queries><get>SELECT data FROM tiles WHERE x=:x AND y=:y AND z=:z AND dim=:dim</get></queries></cache>
  <tileset name="two"><cache>two</cache><grid>{grid}</grid><format>PNG</format>
    <dimensions><assembly_type>stack</assembly_type><store_assemblies>false</store_assemblies>
      <dimension name="one" default="all" type="sqlite"><dbfile>{folder}/two.db</dbfile>
        <validate_query>SELECT 'a' UNION ALL SELECT 'b'</validate_query><list_query>SELECT 'a'</list_query></dimension>
      <dimension name="other" default="all" type="sqlite"><dbfile>{folder}/two.db</dbfile>
        <validate_query>SELECT 'x' UNION ALL SELECT 'y' UNION ALL SELECT 'z'</validate_query>
        <list_query>SELECT 'x'</list_query></dimension>
    </dimensions></tileset>"""


def test_where_the_peer_draws_the_wrong_combinations(folder, shared_apache):
    """Of 2 x 3 values it draws three of the six combinations, each twice."""
    folder.joinpath("two.db").touch()
    wanted = {}
    with catalogue.create(folder / "two.sqlite3") as database:
        database.execute("drop index xyz")
        for i, dim in enumerate(f"{other}#{one}" for one in "ab" for other in "xyz"):
            color = (40 * i + 20, 100, 200, 255)
            catalogue.put(database, 1, 0, 0, as_png(solid(color, 40 * i, 40 * i + 40)), dim, "two")
            wanted[40 * i + 20, 100] = color
    database.close()
    config = folder / "two.xml"
    config.write_text(catalogue.configuration(TWO_DIMENSIONS.format(folder=folder, grid=catalogue.GRID)))
    alias = f"MapCacheAlias /mc {config}\n"
    ours = shared_apache("all-six", alias)
    theirs = shared_apache("three", f"LoadModule mapcache_module {PEER_MODULE}\n" + alias, module=False, ours=False)
    replies = [fetch(web.port, wmts("two", 1, 0, 0).partition("&product=")[0]) for web in (ours, theirs)]
    assert is_right(replies[0], wanted), (replies[0].status, replies[0].body[:200])
    assert not is_right(replies[1], wanted)

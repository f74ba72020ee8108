"""Assemblies through the real servers: products that come, go, break and are replaced while they are served; what is
stored; threads; animations; traces."""
import collections
import concurrent.futures
import io
import sqlite3
import urllib.parse

import numpy
import parser_rules
import pytest
import stack_catalogue as catalogue
from conftest import wait_until
from fastcgi import Server
from PIL import Image
from test_catalogue_pixels import as_png, solid, store, wms, wmts

RED, GREEN, BLUE = (220, 0, 0, 255), (0, 200, 0, 255), (0, 0, 220, 255)
WORLD = (-catalogue.WORLD, -catalogue.WORLD, catalogue.WORLD, catalogue.WORLD)
QUARTER = (-catalogue.WORLD, 0, 0, catalogue.WORLD)  # the tile 1/0/0


class Shelf:
    """A folder with a catalogue whose products are made by the test; each covers a part of the tile 1/0/0."""

    def __init__(self, folder):
        self.folder = folder
        folder.chmod(0o777)
        self.names = []
        self.write()

    def write(self):
        self.folder.joinpath("catalogue.sqlite").unlink(missing_ok=True)
        catalogue.write_catalogue(self.folder, [catalogue.Product(name, "any", QUARTER, None, 0)
                                                for name in self.names])

    def add(self, name, data):
        self.names.append(name)
        if data is not None:
            store(self.folder, name, data)
        self.write()

    def config(self, *layers, top=""):
        path = self.folder / "shelf.xml"
        path.write_text(catalogue.configuration(*layers, top=top))
        return path

    def layer(self, name="all", **options):
        return catalogue.layer(self.folder, name, **options)


@pytest.fixture
def shelf(folder):
    shelf = Shelf(folder)
    shelf.add("low", as_png(solid(RED)))
    shelf.add("middle", as_png(solid(GREEN, 0, 128)))
    shelf.add("top", as_png(solid(BLUE, 0, 64)))
    return shelf


def colors(body, *columns, y=100):
    image = catalogue.decoded(body)
    return [tuple(int(value) for value in image[y, x]) for x in columns]


def serve(apache, shelf, *layers, **options):
    return apache(f"MapCacheAlias /mc {shelf.config(*(layers or [shelf.layer()]), **options)}\n")


def both(web, layer="all", value="any"):
    """The tile, and the same place as an aligned map of twice the size, which is assembled as a whole."""
    tile = web.get(wmts(layer, 1, 0, 0, value))
    map_ = web.get(wms(layer, WORLD, 512, 512, value))
    return tile, map_


def test_tile_and_map_show_the_stack(apache, shelf):
    web = serve(apache, shelf)
    for reply in both(web):
        assert reply.status == 200, reply.body
        assert colors(reply.body, 30, 100, 200) == [BLUE, GREEN, RED]
        assert reply.headers["Cache-Control"] == "max-age=300"
    resampled = web.get(wms("all", QUARTER, 200, 200))
    assert colors(resampled.body, 10, 80, 180) == [BLUE, GREEN, RED]


def test_fastcgi_says_the_same(apache, shelf, folder, build):
    web = serve(apache, shelf)
    server = Server(build, folder / "shelf.xml", folder)
    try:
        for path in (wmts("all", 1, 0, 0), wms("all", WORLD, 512, 512), wms("all", QUARTER, 300, 300)):
            place, _, query = path.removeprefix("/mc").partition("?")
            answer = server.get(place or "/", query)
            assert answer.status == 200
            assert answer.body == web.get(path).body
    finally:
        server.stop()


def test_products_come_and_go_without_a_restart(apache, shelf):
    web = serve(apache, shelf)
    assert all(colors(reply.body, 30) == [BLUE] for reply in both(web))
    shelf.add("newest", as_png(solid(GREEN)))
    assert all(colors(reply.body, 30, 200) == [GREEN, GREEN] for reply in both(web))
    shelf.names.remove("newest")
    shelf.write()
    assert all(colors(reply.body, 30, 200) == [BLUE, RED] for reply in both(web))


def test_a_replaced_product_is_seen_at_once(apache, shelf, folder):
    web = serve(apache, shelf)
    for turn in range(6):
        color = [GREEN, RED][turn % 2]
        store(folder, "next", as_png(solid(color)))
        folder.joinpath("next.sqlite3").rename(folder / "top.sqlite3")
        for reply in both(web):
            assert colors(reply.body, 30) == [color], turn
    with sqlite3.connect(folder / "top.sqlite3") as database:
        catalogue.put(database, 1, 0, 0, as_png(solid(BLUE)))
    database.close()
    assert all(colors(reply.body, 30) == [BLUE] for reply in both(web))
    folder.joinpath("top.sqlite3").unlink()
    assert all(colors(reply.body, 30, 200) == [GREEN, RED] for reply in both(web))


@pytest.mark.parametrize("content", [b"", b"no database at all" * 400, b"SQLite format 3\0" + b"\1" * 3000],
                         ids=["empty", "text", "torn"])
def test_a_broken_product_file_is_a_clear_error_and_nothing_else(apache, shelf, folder, content):
    web = serve(apache, shelf)
    good = [reply.body for reply in both(web)]
    whole = folder.joinpath("top.sqlite3").read_bytes()
    folder.joinpath("top.sqlite3").write_bytes(content)
    for reply in both(web):
        assert reply.status == 500 and b"tile store" in reply.body, (reply.status, reply.body[:200])
    folder.joinpath("top.sqlite3").write_bytes(whole)
    assert [reply.body for reply in both(web)] == good
    store(folder, "top", b"\x89PNG\r\n\x1a\n but no image")
    for reply in both(web):
        assert reply.status == 500, reply.body[:200]
    store(folder, "top", as_png(solid(BLUE, 0, 64)))
    assert [reply.body for reply in both(web)] == good


def test_no_product_is_an_empty_tile_and_no_map(apache, shelf):
    web = serve(apache, shelf)
    tile, map_ = both(web, value="unheard-of")
    assert tile.status == 200 and not catalogue.decoded(tile.body).any()
    assert map_.status == 404


@pytest.mark.parametrize("value", ["' OR '1'='1", "any'; DROP TABLE product; --", "../../etc/passwd", "%", "a" * 5000,
                                   ",".join(["any"] * 1500)])
def test_strange_values_do_no_harm(apache, shelf, value):
    web = serve(apache, shelf)
    for reply in both(web, value=urllib.parse.quote(value)):
        assert reply.status in (200, 400, 404, 414), (reply.status, reply.body[:200])
    assert all(colors(reply.body, 30) == [BLUE] for reply in both(web))


def test_a_client_that_has_it_gets_nothing_new(apache, shelf, folder):
    web = serve(apache, shelf)
    for path in (wmts("all", 1, 0, 0), wms("all", WORLD, 512, 512)):
        tag = web.get(path).headers["ETag"]
        again = web.get(path, {"If-None-Match": tag})
        assert again.status == 304 and again.body == b""
        store(folder, "middle", as_png(solid(RED, 0, 100)))
        changed = web.get(path, {"If-None-Match": tag})
        assert changed.status == 200 and changed.headers["ETag"] != tag
        store(folder, "middle", as_png(solid(GREEN, 0, 128)))


def test_assemblies_are_stored_where_they_may(apache, shelf, folder):
    layer = shelf.layer().replace("<store_assemblies>false</store_assemblies>", "")
    layer = layer.replace("    <queries><get>SELECT data FROM tiles WHERE x=:x AND y=:y AND z=:z</get></queries>", "")
    for name in shelf.names:
        store(folder, name, as_png(solid(RED if name == "low" else BLUE, 0, 256 if name == "low" else 64)))
        with sqlite3.connect(folder / f"{name}.sqlite3") as database:
            database.execute("update tiles set tileset='all', dim=?", (name,))
        database.close()
    web = serve(apache, shelf, layer)
    first = web.get(wmts("all", 1, 0, 0, "any"))
    assert colors(first.body, 30, 200) == [BLUE, RED]
    stored = folder / "any.sqlite3"
    assert stored.exists(), web.log()
    with sqlite3.connect(f"file:{stored}?mode=ro", uri=True) as database:
        assert database.execute("select tileset, x, y, z, dim, data from tiles").fetchall() == [
            ("all", 0, 1, 1, "any", first.body)]
    database.close()
    shelf.names.clear()
    shelf.write()
    assert web.get(wmts("all", 1, 0, 0, "any")).body == first.body  # a stored mosaic does not know its catalogue
    assert colors(web.get(wms("all", WORLD, 512, 512, "any")).body, 30, 200) == [BLUE, RED]
    web.get(wmts("all", 1, 0, 0, "other"))
    with sqlite3.connect(f"file:{folder}/other.sqlite3?mode=ro", uri=True) as database:
        data = database.execute("select data from tiles").fetchone()[0]
    database.close()
    assert not catalogue.decoded(data).any()


def test_threads_change_no_pixel(apache, shelf):
    options = [("", ""), ("<assembly_threaded_fetching>true</assembly_threaded_fetching>", ""),
               ("<assembly_threaded_fetching maxzoom=\"0\">true</assembly_threaded_fetching>", "true"),
               ("<assembly_threaded_fetching>false</assembly_threaded_fetching>", "false")]
    seen = set()
    for number, (more, threaded) in enumerate(options):
        path = shelf.folder / f"threads{number}.xml"
        top = threaded and f"<threaded_fetching>{threaded}</threaded_fetching>"
        path.write_text(catalogue.configuration(shelf.layer(more=more), top=top))
    web = apache("".join(f"MapCacheAlias /mc{number} {shelf.folder}/threads{number}.xml\n" for number in range(4)))
    for number in range(4):
        replies = [web.get(path.replace("/mc", f"/mc{number}", 1))
                   for path in (wmts("all", 1, 0, 0), wms("all", WORLD, 512, 512), wms("all", QUARTER, 333, 333))]
        assert all(reply.status == 200 for reply in replies), replies[0].body
        seen.add(tuple(reply.body for reply in replies))
    assert len(seen) == 1


def test_a_dimension_may_be_asked_once_for_the_map(apache, shelf):
    by_map = "<wms_querybymap minzoom=\"1\">true</wms_querybymap>"
    web = serve(apache, shelf, shelf.layer("tiles"), shelf.layer("maps", by_map=by_map))
    for box, size in ((WORLD, 512), (QUARTER, 300)):
        assert web.get(wms("tiles", box, size, size)).body == web.get(wms("maps", box, size, size)).body


def frames(body):
    image = Image.open(io.BytesIO(body))
    out = []
    for number in range(getattr(image, "n_frames", 1)):
        image.seek(number)
        out.append(tuple(int(value) for value in numpy.array(image.convert("RGBA"))[100, 30]))
    return out


def test_an_animation_shows_one_product_after_the_other(apache, shelf):
    web = serve(apache, shelf, shelf.layer("moving", assembly="animate"), shelf.layer("all"))
    tile, map_ = both(web, "moving")
    assert tile.headers["Content-Type"] == map_.headers["Content-Type"] == "image/png"
    assert frames(tile.body) == frames(map_.body) == [RED, GREEN, BLUE]
    over = web.get(wms("all,moving", QUARTER, 300, 300))
    assert frames(over.body) == [RED, GREEN, BLUE]
    shelf.add("gone", None)
    assert frames(web.get(wmts("moving", 1, 0, 0)).body) == [RED, GREEN, BLUE, (0, 0, 0, 0)]


def test_traces_name_the_parts(apache, shelf):
    web = apache(f"LogLevel warn mapcache:debug\nMapCacheAlias /mc {shelf.config(shelf.layer())}\n")
    for _ in range(2):
        both(web)
    web.get(wmts("all", 5, 3, 3, "unheard-of"))
    wait_until(lambda: web.log().count("END mapcache_handler") == 5, "the last request's end is written")
    lines = web.log().splitlines()
    counts = collections.Counter((event, name) for _, _, event, name, _ in parser_rules.events(lines))
    for name in ("mapcache_tileset_tile_get_with_subdimensions", "mapcache_tileset_tile_set_get_with_subdimensions",
                 "mapcache_dimension_get_entries_for_value", "mapcache_cache_tile_get", "_mapcache_cache_sqlite_get",
                 "mapcache_image_merge", "mapcache_prefetch_tiles", "mapcache_tileset_assemble_map_tiles"):
        assert counts["BEGIN", name] > 0, (name, counts)
    for (event, name), count in counts.items():
        assert count == counts["END" if event == "BEGIN" else "BEGIN", name], name
    assert counts["BEGIN", "mapcache_handler"] == 5
    parser_rules.parse(lines)  # a KeyError where the published parser would have stopped


def test_many_clients_while_products_change(apache, shelf, folder):
    """Every answer is a stack that stood there at some time: never a mixture, never an error."""
    web = serve(apache, shelf)
    allowed = {(color, GREEN, RED) for color in (RED, GREEN, BLUE)}
    stop = []

    def ask(number):
        wrong = []
        while not stop:
            reply = both(web)[number % 2]
            shown = tuple(colors(reply.body, 30, 100, 200)) if reply.status == 200 else reply.body[:200]
            if shown not in allowed:
                wrong.append(shown)
        return wrong

    with concurrent.futures.ThreadPoolExecutor(8) as clients:
        running = [clients.submit(ask, number) for number in range(8)]
        for turn in range(40):
            store(folder, "next", as_png(solid([RED, GREEN, BLUE][turn % 3], 0, 64)))
            folder.joinpath("next.sqlite3").rename(folder / "top.sqlite3")
        stop.append(True)
        assert [one.result(60) for one in running] == [[]] * 8

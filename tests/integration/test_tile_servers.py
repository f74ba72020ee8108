"""Sources xyz and wmts: tiles of another server, which is our own program and Apache's files here."""
import contextlib
import gzip
import sqlite3
import subprocess

import numpy
import pytest
from conftest import GRID
from drop_in import pixels
from lifecycle import HALF, box, one_color, stored, tile, tileset, write
from origin import Origin, pattern
from raw_origin import raw_origin

LEVELS = 4
VECTOR = b"\x1a\x0d\x0a\x05roads\x28\x80\x20\x78\x02" + b"\x12\x00" * 20  # a layer without much in it


def cut(z, x, y, size=256):
    """A tile of the world's pattern, by column and row from the south."""
    west, south, east, north = box(z, x, y)
    return pattern({"WIDTH": str(size), "HEIGHT": str(size), "BBOX": f"{west},{south},{east},{north}"})


def quadkey(z, x, row):
    return "".join(str((x >> bit & 1) + 2 * (row >> bit & 1)) for bit in reversed(range(z)))


class Upstream:
    def __init__(self, folder, web):
        self.folder, self.web = folder, web

    def url(self, path):
        return f"http://127.0.0.1:{self.web.port}/{path}"

    def put(self, path, data):
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)

    def asked(self, prefix):
        """Paths that were asked for, as far as they begin so."""
        log = self.folder / "access.log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [line for line in lines if line.startswith("/" + prefix)]


@pytest.fixture(scope="module")
def upstream(shared_apache, shared_folder):
    """Files at /NAME/z/x/row.png and others, and our program at /up with the same tiles in the layer `base`."""
    tiles = shared_folder / "tiles"
    for z in range(LEVELS):
        for x in range(2**z):
            for y in range(2**z):
                place = tiles / f"base/{z}/{x}/{y}.png"
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(cut(z, x, y))
    config = write(shared_folder, tileset("base", None))
    web = shared_apache("up", f'MapCacheAlias /up {config}\nLogFormat "%U%q" place\nCustomLog access.log place\n')
    up = Upstream(shared_folder / "up", web)
    for path in sorted((tiles / "base").rglob("*.png")):
        z, x, y = (int(part) for part in path.relative_to(tiles / "base").with_suffix("").parts)
        row = 2**z - 1 - y
        for name in (f"plain/{z}/{x}/{row}.png", f"tms/{z}/{x}/{y}.png", f"bing/{quadkey(z, x, row)}.png", f"{'abc'[(x + row) % 3]}/{z}/{x}/{row}.png"):
            up.put(name, path.read_bytes())
        if z > 0:
            up.put(f"high/{z - 1}/{x}/{row}.png", b"")  # replaced below where it exists
    for z in range(LEVELS - 1):
        for x in range(2**z):
            for y in range(2**z):
                up.put(f"high/{z}/{x}/{2**z - 1 - y}.png", cut(z, x, y, 512))
    return up


@pytest.fixture
def start(apache, folder):
    def run(*parts, more=""):
        return apache(f"MapCacheAlias /mc {write(folder, *parts)}\n" + more)

    return run


def xyz(url, more="", name="remote", http=""):
    return f'<source name="{name}" type="xyz"><retries>0</retries><http><url>{url}</url>{http}</http>{more}</source>'


def wmts(url, more="", name="remote"):
    return f"""<source name="{name}" type="wmts"><retries>0</retries><http><url>{url}</url></http><layer>base</layer>
    <matrix_set>{GRID}</matrix_set>{more}</source>"""


@pytest.mark.parametrize("path, more", [
    ("plain/{z}/{x}/{y}.png", ""), ("tms/{z}/{x}/{-y}.png", ""), ("bing/{q}.png", ""), ("{s}/{z}/{x}/{y}.png", "<subdomains>a b c</subdomains>"), ("{a-c}/{z}/{x}/{y}.png", ""),
    ("up/gmaps/base@" + GRID + "/{z}/{x}/{y}.png", f"<grid>{GRID}</grid>")])
def test_a_tile_of_an_xyz_server_is_handed_on_byte_for_byte(start, upstream, folder, path, more):
    web = start(xyz(upstream.url(path), more), tileset("base", "remote"))
    for z, x, y in [(1, 0, 0), (2, 1, 3), (3, 7, 2)]:
        reply = web.get(tile("base", z, x, y))
        assert reply.status == 200 and reply.body == cut(z, x, y), (z, x, y)
        assert (folder / f"tiles/base/{z}/{x}/{y}.png").read_bytes() == reply.body


@pytest.mark.parametrize("url, more", [
    ("up/wmts?", ""), ("up/wmts", "<matrix>{z}</matrix>"), ("up/wmts?x=1", "<matrix>" + " ".join(str(i) for i in range(22)) + f"</matrix><grid>{GRID}</grid>"),
    ("up/wmts/1.0.0/base/{Style}/{TileMatrixSet}/{TileMatrix}/{TileRow}/{TileCol}.png", "")])
def test_a_tile_of_a_wmts_is_handed_on_byte_for_byte(start, upstream, url, more):
    web = start(wmts(upstream.url(url), more), tileset("base", "remote"))
    for z, x, y in [(1, 0, 1), (3, 6, 2)]:
        reply = web.get(tile("base", z, x, y))
        assert reply.status == 200 and reply.body == cut(z, x, y), (z, x, y)


def test_levels_of_another_number_are_mapped(start, upstream):
    more = "<zoom_offset>-1</zoom_offset><minzoom>1</minzoom><tile_size>512</tile_size>"
    web = start(xyz(upstream.url("shifted/{z}/{x}/{y}.png"), more), tileset("base", "remote"))
    upstream.put("shifted/0/1/0.png", cut(1, 1, 1, 512))
    reply = web.get(tile("base", 2, 3, 3))
    assert reply.status == 200 and numpy.array_equal(pixels(reply.body), pixels(cut(2, 3, 3)))
    assert upstream.asked("shifted") == ["/shifted/0/1/0.png"]


def test_a_metatile_is_many_tiles_asked_for_together(start, upstream, folder):
    web = start(xyz(upstream.url("plain/{z}/{x}/{y}.png?many")), tileset("base", "remote", metatile="4 3", more="<metabuffer>9</metabuffer>"))
    before = len(upstream.asked("plain"))
    for x, y in [(4, 3), (7, 5)]:
        reply = web.get(tile("base", 3, x, y))
        assert reply.status == 200 and numpy.array_equal(pixels(reply.body), pixels(cut(3, x, y)))
    assert len(stored(folder, "base")) == 12
    asked = upstream.asked("plain")[before:]
    assert len(asked) == len(set(asked)) == 5 * 5  # a margin around it, up to the world's edge


def test_images_of_512_pixels_make_tiles_of_256(start, upstream):
    web = start(xyz(upstream.url("high/{z}/{x}/{y}.png"), "<tile_size>512</tile_size>"), tileset("base", "remote"))
    for z, x, y in [(3, 4, 5), (1, 1, 0)]:
        reply = web.get(tile("base", z, x, y))
        assert reply.status == 200 and numpy.array_equal(pixels(reply.body), pixels(cut(z, x, y)))
    assert upstream.asked("high")[-1] == "/high/0/0/0.png"


def test_a_map_of_any_size_is_drawn_from_the_nearest_level(start, upstream):
    web = start(xyz(upstream.url("plain/{z}/{x}/{y}.png")), tileset("base", "remote", "minzoom='3'", metatile="1 1"))
    west, south, east, north = box(3, 2, 3, 2)
    reply = web.get("/mc?SERVICE=WMS&REQUEST=GetMap&VERSION=1.1.1&STYLES=&FORMAT=image/png&SRS=EPSG:3857&WIDTH=512&HEIGHT=512&LAYERS=base"
                    f"&BBOX={west},{south},{east},{north}")
    want = pixels(pattern({"WIDTH": "512", "HEIGHT": "512", "BBOX": f"{west},{south},{east},{north}"}))
    assert reply.status == 200 and numpy.array_equal(pixels(reply.body), want)


def test_what_the_server_does_not_have(start, upstream, folder):
    for x in (2, 3):
        upstream.put(f"holes/2/{x}/1.png", cut(2, x, 2))
    upstream.put("holes/1/0/0.png", cut(1, 0, 1))
    url = upstream.url("holes/{z}/{x}/{y}.png")
    parts = [xyz(url, f"<absent>{what}</absent><maxzoom>2</maxzoom>", name=what) for what in ("error", "empty", "overzoom")]
    web = start(*parts, *(tileset(what, what, metatile="2 1") for what in ("error", "empty", "overzoom")))
    assert web.get(tile("error", 2, 0, 2)).status == 404 and web.get(tile("error", 3, 0, 0)).status == 404
    assert stored(folder, "error") == []
    assert numpy.array_equal(pixels(web.get(tile("error", 2, 2, 2)).body), pixels(cut(2, 2, 2)))  # its neighbours are there
    empty = web.get(tile("empty", 2, 1, 2))
    assert empty.status == 200 and not pixels(empty.body).any()
    assert web.get(tile("empty", 3, 0, 0)).status == 200 and len(stored(folder, "empty")) == 4
    larger = pixels(web.get(tile("overzoom", 2, 1, 3)).body)  # of level 1
    wanted = pixels(cut(1, 0, 1))[0:128, 128:256].repeat(2, 0).repeat(2, 1)
    inner = (slice(4, 252), slice(4, 252))
    assert numpy.median(numpy.abs(larger[inner] - wanted[inner])) <= 1 and larger[..., 3].all()
    deeper = pixels(web.get(tile("overzoom", 4, 9, 9)).body)  # of level 2, whose tile 2/2/2 has the lower left quarter
    wanted = pixels(cut(2, 2, 2))[128:192, 64:128].repeat(4, 0).repeat(4, 1)
    assert numpy.median(numpy.abs(deeper[inner] - wanted[inner])) <= 1 and deeper[..., 3].all()


def test_no_tile_beyond_the_limits_is_asked_for(start, upstream):
    limit = f"<extent>0 0 {HALF} {HALF}</extent>"
    web = start(xyz(upstream.url("plain/{z}/{x}/{y}.png?limited"), limit), tileset("base", "remote", metatile="2 2"))
    before = len(upstream.asked("plain"))
    assert numpy.array_equal(pixels(web.get(tile("base", 1, 1, 1)).body), pixels(cut(1, 1, 1)))
    west = web.get(tile("base", 1, 0, 0))
    assert west.status == 200 and not pixels(west.body).any()
    assert upstream.asked("plain")[before:] == ["/plain/1/1/0.png?limited"]


def test_a_map_of_another_crs_is_warped(start, upstream):
    web = start(xyz(upstream.url("plain/{z}/{x}/{y}.png"), f"<grid>{GRID}</grid><maxzoom>3</maxzoom><absent>empty</absent>"),
                '<tileset name="degrees"><source>remote</source><cache>disk</cache><grid>WGS84</grid><format>PNG</format><metatile>2 2</metatile></tileset>')
    reply = web.get("/mc/tms/1.0.0/degrees@WGS84/2/3/2.png")  # -45 to 0 degrees, 0 to 45
    made = pixels(reply.body)
    longitude = -45 + (numpy.arange(256) + 0.5) * 45 / 256
    latitude = numpy.radians(45 - (numpy.arange(256) + 0.5) * 45 / 256)
    column = (longitude / 360 + 0.5) * 1024
    row = (0.5 - numpy.log(numpy.tan(numpy.pi / 4 + latitude / 2)) / (2 * numpy.pi)) * 1024
    inner = slice(8, 248)
    assert reply.status == 200
    assert numpy.abs(made[inner, inner, 0] - (column[inner] - 0.5)[None, :] % 256).max() <= 1.5
    assert numpy.abs(made[inner, inner, 1] - (row[inner] - 0.5)[:, None] % 256).max() <= 1.5
    assert (made[inner, inner, 3] == 255).all()


def test_values_of_dimensions_are_part_of_the_address(start, upstream):
    upstream.put("day/2026-01-01/0/0/0.png", one_color(256, 256, (1, 2, 3, 255)))
    upstream.put("day/2026-01-02/0/0/0.png", one_color(256, 256, (4, 5, 6, 255)))
    day = '<dimensions><dimension type="regex" name="day" default="2026-01-01"><regex>.*</regex></dimension></dimensions>'
    rest = upstream.url("day/{Day}/{TileMatrix}/{TileCol}/{TileRow}.png")
    web = start(xyz(upstream.url("day/{dim:day}/{z}/{x}/{y}.png")), wmts(rest, name="rest"),
                tileset("base", "remote", more=day), tileset("rest", "rest", more=day))
    get = "/mc/wmts?SERVICE=WMTS&REQUEST=GetTile&VERSION=1.0.0&STYLE=default&TILEMATRIXSET=" + GRID + "&TILEMATRIX=0&TILEROW=0&TILECOL=0&FORMAT=image/png&LAYER="
    for layer in ("base", "rest"):
        assert web.get(get + layer + "&day=..").status == 400
        assert tuple(pixels(web.get(get + layer + "&day=2026-01-02").body)[0, 0]) == (4, 5, 6, 255)


@pytest.mark.parametrize("path, status", [("/status/500", 502), ("/status/403", 502), ("/says/html", 502), ("/says/nothing", 502), ("/half", 502), ("/cut", 502),
                                          ("/reset", 502), ("/garbage", 502), ("/large", 502), ("/late/60000/wms", 504)])
def test_what_a_server_does_wrong_is_neither_kept_nor_told(start, folder, path, status):
    with Origin() as origin:
        url = origin.url(path) + "?z={z}&amp;x={x}&amp;y={y}"
        web = start(xyz(url, http=("<timeout>1</timeout>" if "late" in path else "")), tileset("one", "remote"), tileset("many", "remote", metatile="2 2"))
        for name in ("one", "many"):
            reply = web.get(tile(name, 1, 0, 0))
            assert reply.status == status, (name, reply.body)
            assert b"127.0.0.1" not in reply.body
        assert stored(folder, "one") == stored(folder, "many") == []


def test_vector_tiles_are_handed_on(start, upstream, folder):
    upstream.put("vector/1/0/1.pbf", VECTOR)
    upstream.put("vector/1/1/1.pbf", gzip.compress(VECTOR))
    upstream.put("vector/1/0/0.pbf", b"<html>no</html>")
    parts = [xyz(upstream.url("vector/{z}/{x}/{y}.pbf"), "<absent>empty</absent>"), '<format name="vector" type="MVT"/>',
             f'<cache name="mb" type="mbtiles"><dbfile>{folder}/vector.mbtiles</dbfile></cache>',
             f'<tileset name="vector"><source>remote</source><cache>mb</cache><grid>{GRID}</grid><format>vector</format></tileset>']
    web = start(*parts)
    get = f"/mc/tms/1.0.0/vector@{GRID}/1/%d/%d.mvt"
    for x in (0, 1):
        reply = web.get(get % (x, 0), {"Accept-Encoding": "gzip"})
        body = gzip.decompress(reply.body) if reply.headers["Content-Encoding"] == "gzip" else reply.body
        assert reply.status == 200 and body == VECTOR
    assert web.get(get % (0, 1)).status == 502
    assert web.get(get % (1, 1)).status == 200


WRONG = [(xyz("http://h/{z}/{x}.png"), "does not tell tiles apart"), (xyz("http://h/{z}/{x}/{y}/{zoom}"), "{zoom} cannot stand"),
         (xyz("ftp://h/{z}/{x}/{y}"), "begins with http"), (xyz("http://{dim:a}/{z}/{x}/{y}"), "the host cannot depend"),
         (xyz("http://{s}.h/{z}/{x}/{y}"), "<subdomains> belong together"), (xyz("http://h/{z}/{x}/{y}", "<subdomains> </subdomains>"), "<subdomains> needs"),
         (xyz("http://h/{z}/{x}/{y}", "<grid>none</grid>"), "none"), (xyz("http://h/{z}/{x}/{y}", f"<grid>{GRID}</grid><maxzoom>30</maxzoom>"), "has the levels 0 to 21"),
         (xyz("http://h/{z}/{x}/{y}", "<minzoom>3</minzoom><maxzoom>2</maxzoom>"), "is less than"),
         (xyz("http://h/{z}/{x}/{y}", "<extent>1 1 0 0</extent>"), "must be less"), (xyz("http://h/{z}/{x}/{y}", "<absent_status>500</absent_status>"), "204"),
         (wmts("http://h/", f"<grid>{GRID}</grid><matrix>a b</matrix>"), "names 2 levels")]
VECTOR_FORMAT = '<format name="vector" type="MVT"/>'
WRONG_FOR_VECTOR_TILES = [("<absent>overzoom</absent>", "its <absent> is overzoom"), ("<tile_size>512</tile_size>", f'level 1 of grid "{GRID}" has others'),
                          ("<grid>WGS84</grid>", "has others"), ("<grid>shifted</grid>", "level 0"), ("<grid>same</grid>", None), ("<minzoom>3</minzoom><maxzoom>5</maxzoom>", None),
                          (f"<extent>0 0 {HALF} {HALF}</extent>", None), ("<zoom_offset>2</zoom_offset>", None)]


@pytest.mark.parametrize("remote, words", WRONG)
def test_check_says_what_is_wrong(build, folder, remote, words):
    config = write(folder, remote, tileset("base", "remote"))
    done = subprocess.run([build / "bin/mapcache", "check", config], capture_output=True, text=True)
    assert done.returncode == 1 and words in done.stdout + done.stderr, done.stdout + done.stderr


@pytest.mark.parametrize("kind", ["xyz", "fallback"])
@pytest.mark.parametrize("more, words", WRONG_FOR_VECTOR_TILES)
def test_check_says_what_gives_no_vector_tiles(build, folder, kind, more, words):
    """What is drawn of tiles gives images alone."""
    grids = [f"""<grid name="{name}"><srs>EPSG:3857</srs><extent>{west} -{HALF} {HALF} {HALF}</extent><size>256 256</size><units>m</units>
        <resolutions>{" ".join(str(HALF / 128 / 2**z) for z in range(22))}</resolutions></grid>""" for name, west in (("same", -HALF), ("shifted", -HALF + 1e6))]
    parts = [xyz("http://h/{z}/{x}/{y}.pbf", more)]
    if kind == "fallback":
        parts += [xyz("http://h/{z}/{x}/{y}.pbf", name="good"), '<source name="both" type="fallback"><source>good</source><source>remote</source></source>']
    config = write(folder, *grids, *parts, VECTOR_FORMAT, tileset("base", "both" if kind == "fallback" else "remote").replace("<format>PNG", "<format>vector"))
    done = subprocess.run([build / "bin/mapcache", "check", config], capture_output=True, text=True)
    assert done.returncode == (0 if words is None else 1) and (words or "errors: 0") in done.stdout, done.stdout + done.stderr


def mvt(web, name, z, x, y):
    reply = web.get(f"/mc/tms/1.0.0/{name}@{GRID}/{z}/{x}/{y}.mvt", {"Accept-Encoding": "gzip"})
    return reply.status, gzip.decompress(reply.body) if reply.headers.get("Content-Encoding") == "gzip" else reply.body


@pytest.mark.parametrize("metatile", ["1 1", "2 2", "3 3"])
@pytest.mark.parametrize("absent", ["empty", "error"])
def test_vector_tiles_beyond_what_the_server_has(start, upstream, folder, absent, metatile):
    for z in (1, 2):
        for x in range(2**z):
            for y in range(2**z):
                upstream.put(f"limited/{z}/{x}/{y}.pbf", VECTOR)
    limits = f"<absent>{absent}</absent><extent>0 0 {HALF} {HALF}</extent><maxzoom>2</maxzoom>"
    web = start(xyz(upstream.url("limited/{z}/{x}/{y}.pbf"), limits), '<format name="vector" type="MVT"/>',
                f'<cache name="mb" type="mbtiles"><dbfile>{folder}/vector.mbtiles</dbfile></cache>',
                f'<tileset name="vector"><source>remote</source><cache>mb</cache><grid>{GRID}</grid><format>vector</format><metatile>{metatile}</metatile></tileset>')
    before = len(upstream.asked("limited"))
    for x in range(4):
        for y in range(4):
            assert mvt(web, "vector", 2, x, y) == (200, VECTOR if x >= 2 and y >= 2 else b""), (x, y)
    assert len(set(upstream.asked("limited")[before:])) == 4
    for x, y in [(7, 7), (0, 0)]:  # clients have finer levels of the last one, by maxzoom in TileJSON
        assert mvt(web, "vector", 3, x, y)[0] == (200 if absent == "empty" else 404)
    assert mvt(web, "vector", 1, 1, 1) == (200, VECTOR) and mvt(web, "vector", 1, 0, 0) == (200, b"")


@pytest.mark.parametrize("absent", ["empty", "error"])
def test_levels_before_the_first_one_of_the_server(start, upstream, folder, absent):
    """No vector tile is made of many; images are, as long as these are not too many."""
    for x in range(4):
        for y in range(4):
            upstream.put(f"late/2/{x}/{y}.pbf", VECTOR)
    limits = f"<absent>{absent}</absent><minzoom>{{}}</minzoom>"
    web = start(xyz(upstream.url("late/{z}/{x}/{y}.pbf"), limits.format(2)), VECTOR_FORMAT,
                f'<cache name="mb" type="mbtiles"><dbfile>{folder}/vector.mbtiles</dbfile></cache>',
                f'<tileset name="vector"><source>remote</source><cache>mb</cache><grid>{GRID}</grid><format>vector</format></tileset>',
                xyz(upstream.url("plain/{z}/{x}/{y}.png?third"), limits.format(3), name="third"), tileset("third", "third"),
                xyz(upstream.url("plain/{z}/{x}/{y}.png?seventh"), limits.format(7), name="seventh"), tileset("seventh", "seventh"))
    before = len(upstream.asked("late"))
    for z, x, y in [(0, 0, 0), (1, 1, 1)]:
        assert mvt(web, "vector", z, x, y) == (200, b"") if absent == "empty" else mvt(web, "vector", z, x, y)[0] == 404
    assert len(upstream.asked("late")) == before
    assert mvt(web, "vector", 2, 3, 3) == (200, VECTOR)
    smaller = web.get(tile("third", 1, 0, 1))
    assert smaller.status == 200 and pixels(smaller.body)[..., 3].all()
    too_many = web.get(tile("seventh", 1, 1, 1))  # 4096 tiles
    assert too_many.status == (200 if absent == "empty" else 404)
    assert absent == "error" or not pixels(too_many.body).any()
    assert not any("seventh" in path for path in upstream.asked("plain"))


def test_hostile_values_of_dimensions_stay_in_their_folder(start, upstream):
    upstream.put("secret/0/0/0.png", one_color(256, 256, (9, 9, 9, 255)))
    upstream.put("days/a/0/0/0.png", one_color(256, 256, (1, 2, 3, 255)))
    day = '<dimensions><dimension type="regex" name="day" default="a"><regex>.*</regex></dimension></dimensions>'
    web = start(xyz(upstream.url("days/{dim:day}/{z}/{x}/{y}.png")), tileset("base", "remote", more=day))
    get = f"/mc/wmts?SERVICE=WMTS&REQUEST=GetTile&VERSION=1.0.0&STYLE=default&TILEMATRIXSET={GRID}&TILEMATRIX=0&TILEROW=0&TILECOL=0&FORMAT=image/png&LAYER=base&day="
    for value in ("..%2Fsecret", "../secret", "a/../../secret", "%2e%2e%2fsecret", "%252e%252e%252fsecret", "..%5Csecret", ".", "a%2F.", "x/../a"):
        assert web.get(get + value).status == 400, value
    for value in ("b%3Fc", "b%23c", "b%0D%0AX-A:%20b", "b%25", "%7Bz%7D", "b/c"):
        assert web.get(get + value).status in (400, 404, 502), value
    assert upstream.asked("secret") == [] and web.get(get + "a").status == 200


def test_keys_of_an_api_are_no_part_of_the_log(start):
    with Origin() as origin:
        web = start(xyz(origin.url("/reset?z={z}&amp;x={x}&amp;y={y}&amp;api_key=verysecret")), tileset("base", "remote"))
        reply = web.get(tile("base", 1, 0, 0))
        assert reply.status == 502 and origin.requests()[0]["params"]["API_KEY"] == "verysecret"
        assert b"verysecret" not in reply.body and "verysecret" not in web.log() and "api_key=***" in web.log()


@pytest.mark.parametrize("kind", ["xyz", "wms"])
def test_bytes_that_may_be_half_of_a_tile_are_not_stored(start, folder, kind):
    """An answer that ends with its connection, after any number of bytes and also after none, is as long as it should be or is not."""
    cuts = len(VECTOR) + 1

    def answer(number):
        length = "" if number < cuts else f"Content-Length: {len(VECTOR)}\r\n"
        return f"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.mapbox-vector-tile\r\nConnection: close\r\n{length}\r\n".encode() + VECTOR[:number]

    with raw_origin(answer) as (port, asked):
        url = f"http://127.0.0.1:{port}/"
        source = xyz(url + "{z}/{x}/{y}.pbf") if kind == "xyz" else f"""<source name="remote" type="wms"><retries>0</retries>
            <getmap><params><LAYERS>roads</LAYERS></params></getmap><http><url>{url}</url></http></source>"""
        tiles_format = VECTOR_FORMAT if kind == "xyz" else '<format name="vector" type="RAW"><extension>mvt</extension></format>'
        web = start(source, tiles_format, f'<cache name="mb" type="mbtiles"><dbfile>{folder}/vector.mbtiles</dbfile></cache>',
                    f'<tileset name="vector"><source>remote</source><cache>mb</cache><grid>{GRID}</grid><format>vector</format></tileset>')
        for number in range(cuts):
            assert mvt(web, "vector", 3, number % 8, number // 8)[0] == 502, number
        assert mvt(web, "vector", 4, 0, 0) == (200, VECTOR) and len(asked) == cuts + 1
    with contextlib.closing(sqlite3.connect(folder / "vector.mbtiles")) as database:
        assert database.execute("SELECT zoom_level FROM tiles").fetchall() == [(4,)]

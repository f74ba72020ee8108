"""The source tileset: a tileset drawn from the tiles of another one."""
import subprocess
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest
from conftest import GRID
from drop_in import pixels
from lifecycle import HALF, box, one_color, source, stored, tile, tileset, write
from origin import Origin, pattern

FINE = f"""<grid name="fine"><srs>EPSG:3857</srs><extent>-{HALF} -{HALF} {HALF} {HALF}</extent><size>512 512</size><units>m</units>
<origin>top-left</origin><resolutions>78271.516964020480 39135.758482010240 19567.879241005120 9783.939620502560</resolutions></grid>"""


def drawn_from(name, of, grid=""):
    return f'<source name="{name}" type="tileset"><tileset>{of}</tileset>{grid}</source>'


def other(name, source_name, grid, metatile="1 1", more="", form="PNG"):
    return (f'<tileset name="{name}"><source>{source_name}</source><cache>disk</cache><grid>{grid}</grid><format>{form}</format>'
            f"<metatile>{metatile}</metatile>{more}</tileset>")


@pytest.fixture(scope="module")
def origin():
    with Origin() as running:
        yield running


@pytest.fixture
def start(apache, folder, origin):
    def run(*parts):
        web = apache(f"MapCacheAlias /mc {write(folder, *parts)}\n")
        before = len(origin.requests())
        web.asked = lambda: origin.requests()[before:]
        return web

    return run


def test_tiles_of_another_size_and_origin(start, origin, folder):
    web = start(FINE, source("pattern", origin.url("/pattern?")), drawn_from("again", "base"), tileset("base", metatile="4 4"), other("large", "again", "fine"))
    reply = web.get("/mc/tms/1.0.0/large@fine/2/1/2.png")  # row 2 from the south of 4
    west, south, east, north = box(2, 1, 2)
    want = pattern({"WIDTH": "512", "HEIGHT": "512", "BBOX": f"{west},{south},{east},{north}"})
    assert reply.status == 200 and numpy.array_equal(pixels(reply.body), pixels(want))
    assert len(web.asked()) == 1 and len(stored(folder, "base")) == 16  # the metatile at level 3, rendered by its own source and kept
    assert web.get("/mc/tms/1.0.0/large@fine/2/3/2.png").status == 200 and len(web.asked()) == 2
    assert web.get("/mc/tms/1.0.0/large@fine/2/1/2.png").body == reply.body and len(web.asked()) == 2


def test_tiles_of_another_crs_are_warped(start, origin):
    web = start(source("pattern", origin.url("/pattern?")), drawn_from("again", "base", f"<grid>{GRID}</grid>"), tileset("base", metatile="2 2"),
                other("degrees", "again", "WGS84", "2 2"))
    made = pixels(web.get("/mc/tms/1.0.0/degrees@WGS84/2/3/2.png").body)  # -45 to 0 degrees, 0 to 45
    latitude = numpy.radians(45 - (numpy.arange(256) + 0.5) * 45 / 256)
    row = (0.5 - numpy.log(numpy.tan(numpy.pi / 4 + latitude / 2)) / (2 * numpy.pi)) * 1024
    column = (-45 + (numpy.arange(256) + 0.5) * 45 / 256) / 360 * 1024 + 512
    inner = slice(8, 248)
    assert numpy.abs(made[inner, inner, 0] - (column[inner] - 0.5)[None, :] % 256).max() <= 1.5
    assert numpy.abs(made[inner, inner, 1] - (row[inner] - 0.5)[:, None] % 256).max() <= 1.5
    assert web.asked() and all(request["params"]["SRS"] == "EPSG:3857" for request in web.asked())
    poles = web.get("/mc/tms/1.0.0/degrees@WGS84/0/0/0.png")  # -180 to 0, -90 to 90: the Mercator has no poles
    assert poles.status == 200 and not pixels(poles.body)[:3].any() and not pixels(poles.body)[-3:].any() and pixels(poles.body)[128].any()


def test_a_projected_grid_of_proj(start, origin):
    swiss = """<grid name="swiss"><srs>EPSG:2056</srs><extent>2420000 1030000 2900000 1350000</extent><size>256 256</size><units>m</units>
    <resolutions>4000 1000 500</resolutions></grid>"""
    web = start(swiss, source("pattern", origin.url("/pattern?")), drawn_from("again", "base"), tileset("base", metatile="2 2"), other("swiss", "again", "swiss"))
    reply = web.get("/mc/tms/1.0.0/swiss@swiss/2/1/1.png")
    assert reply.status == 200 and pixels(reply.body)[..., 3].all()
    column, row = pixels(reply.body)[128, 128, :2]  # LV95 2612000 1222250 is near 7.5993 E, 47.1511 N
    assert abs(column - (7.5993 / 360 + 0.5) * 1024 % 256) <= 1.5
    assert abs(row - (0.5 - numpy.log(numpy.tan(numpy.pi / 4 + numpy.radians(47.1511) / 2)) / (2 * numpy.pi)) * 1024 % 256) <= 1.5


def test_many_clients_at_once_ask_the_origin_once(start, origin, folder):
    web = start(FINE, source("slow", origin.url("/late/300/pattern?")), drawn_from("again", "base"), tileset("base", "slow", metatile="8 8"), other("large", "again", "fine"))
    paths = [f"/mc/tms/1.0.0/large@fine/2/{x}/{y}.png" for x in range(4) for y in range(4)] + [tile("base", 3, x, 3) for x in range(8)]
    with ThreadPoolExecutor(24) as pool:
        replies = list(pool.map(web.get, paths))
    assert [reply.status for reply in replies] == [200] * 24
    assert len(web.asked()) == 1 and len(stored(folder, "base")) == 64


def test_dimensions_are_passed(start, origin):
    day = '<dimensions><dimension type="values" name="{}" default="red"><value>red</value><value>blue</value></dimension></dimensions>'
    wms = f'<source name="wms" type="wms"><getmap><params><FORMAT>image/png</FORMAT><LAYERS>any</LAYERS></params></getmap><http><url>{origin.url("/wms?")}</url></http></source>'
    web = start(wms, drawn_from("again", "base"), tileset("base", "wms", more=day.format("layers")), other("large", "again", GRID, more=day.format("LAYERS")))
    get = f"/mc/wmts?SERVICE=WMTS&REQUEST=GetTile&VERSION=1.0.0&LAYER=large&STYLE=default&TILEMATRIXSET={GRID}&TILEMATRIX=0&TILEROW=0&TILECOL=0&FORMAT=image/png"
    assert tuple(pixels(web.get(get + "&LAYERS=blue").body)[0, 0]) == (0, 0, 255, 255)
    assert web.asked()[-1]["params"]["LAYERS"] == "blue"


def test_values_that_the_other_tileset_does_not_offer_are_refused(start, origin, folder):
    """Whatever the tileset that draws from it lets through."""
    offered = '<dimensions><dimension type="values" name="layers" default="red"><value>red</value><value>blue</value></dimension></dimensions>'
    anything = '<dimensions><dimension type="regex" name="LAYERS" default="red"><regex>.*</regex></dimension></dimensions>'
    wms = f'<source name="wms" type="wms"><getmap><params><FORMAT>image/png</FORMAT><LAYERS>any</LAYERS></params></getmap><http><url>{origin.url("/wms?")}</url></http></source>'
    web = start(wms, drawn_from("again", "base"), tileset("base", "wms", more=offered), other("large", "again", GRID, more=anything))
    get = f"/mc/wmts?SERVICE=WMTS&REQUEST=GetTile&VERSION=1.0.0&LAYER=large&STYLE=default&TILEMATRIXSET={GRID}&TILEMATRIX=0&TILEROW=0&TILECOL=0&FORMAT=image/png"
    assert web.get(get + "&LAYERS=green").status == 400 and web.asked() == []
    assert tuple(pixels(web.get(get + "&LAYERS=blue").body)[0, 0]) == (0, 0, 255, 255)


def test_what_is_not_there_is_empty_and_what_fails_fails(start, origin, folder):
    web = start(source("down", origin.url("/status/503?")), drawn_from("of_nothing", "nothing"), drawn_from("of_down", "down"),
                tileset("nothing", None), tileset("down", "down"), other("a", "of_nothing", GRID, "2 2"), other("b", "of_down", GRID))
    empty = web.get(tile("a", 1, 0, 0))
    assert empty.status == 200 and not pixels(empty.body).any()
    assert web.get(tile("b", 1, 0, 0)).status == 502 and stored(folder, "b") == []


def test_tilesets_that_are_stored_keep_their_pixels_in_another_format(start, folder):
    place = folder / "tiles/base/1/0/0.png"
    place.parent.mkdir(parents=True)
    place.write_bytes(one_color(256, 256, (10, 200, 30, 255)))
    web = start(drawn_from("again", "base"), tileset("base", None), other("jpeg", "again", GRID, form="JPEG"))
    reply = web.get(f"/mc/tms/1.0.0/jpeg@{GRID}/1/0/0.jpg")
    assert reply.body[:2] == b"\xff\xd8" and numpy.abs(pixels(reply.body)[0, 0] - (10, 200, 30, 255)).max() < 4


LOOP = [[drawn_from("a", "one"), drawn_from("b", "two"), tileset("one", "b"), tileset("two", "a")],
        [drawn_from("a", "one"), tileset("one", "a")],
        [drawn_from("a", "one"), '<source name="f" type="fallback"><source>d</source><source>a</source></source>', '<source name="d" type="dummy"/>', tileset("one", "f")]]


@pytest.mark.parametrize("parts", LOOP)
def test_tilesets_in_a_circle_are_refused(build, folder, parts):
    parts = sorted(parts, key=lambda part: 'type="fallback"' in part)
    done = subprocess.run([build / "bin/mapcache", "check", write(folder, *parts)], capture_output=True, text=True)
    assert done.returncode == 1 and "draws from itself" in done.stdout + done.stderr, done.stdout + done.stderr


def test_check_says_what_cannot_be_drawn(build, folder):
    raw = '<format name="raw" type="RAW"/>'
    for parts, words in [([drawn_from("a", "none"), tileset("none_such", None)], "none"),
                         ([drawn_from("a", "one", "<grid>WGS84</grid>"), tileset("one", None)], 'has no grid "WGS84"'),
                         ([drawn_from("a", "one"), raw, tileset("one", None).replace("<format>PNG", "<format>raw")], "are no images")]:
        done = subprocess.run([build / "bin/mapcache", "check", write(folder, *parts)], capture_output=True, text=True)
        assert done.returncode == 1 and words in done.stdout + done.stderr, done.stdout + done.stderr


def polar(name, code, half=4194304):
    """A grid around a pole; level 0 is one tile with the pole in its middle."""
    return f"""<grid name="{name}"><srs>EPSG:{code}</srs><extent>-{half} -{half} {half} {half}</extent><size>256 256</size><units>m</units>
    <resolutions>{" ".join(str(half / 128 / 2**z) for z in range(10))}</resolutions></grid>"""


def longitudes(z, x, y, turned, south=False, half=4194304):
    """Those of the pixels of a tile of polar(), by the meridian that goes down (up, around the south pole)."""
    step = half / 128 / 2**z
    right = -half + (x * 256 + numpy.arange(256) + 0.5)[None, :] * step
    up = -half + ((y + 1) * 256 - numpy.arange(256) - 0.5)[:, None] * step
    return numpy.degrees(numpy.arctan2(right, up if south else -up)) + turned, numpy.hypot(right, up)


@pytest.mark.parametrize("world, code, turned", [("WGS84", 3413, -45), (GRID, 3413, -45), ("WGS84", 3575, 10), (GRID, 3575, 10), (GRID, 3995, 0), ("WGS84", 3031, 0)])
def test_maps_around_a_pole_have_all_meridians(start, origin, world, code, turned):
    web = start(polar("polar", code), source("pattern", origin.url("/pattern?")), drawn_from("again", "base", f"<grid>{world}</grid>"),
                '<tileset name="base"><source>pattern</source><cache>disk</cache>'
                f"<grid>{world}</grid><format>PNG</format><metatile>4 4</metatile></tileset>", other("polar", "again", "polar"))
    for z, x, y in [(0, 0, 0), (1, 0, 0), (1, 1, 1), (3, 3, 4), (3, 4, 3), (5, 15, 16), (7, 64, 64)]:
        reply = web.get(f"/mc/tms/1.0.0/polar@polar/{z}/{x}/{y}.png")
        assert reply.status == 200, reply.body
        made = pixels(reply.body)
        longitude, distance = longitudes(z, x, y, turned, south=code == 3031)
        place = (longitude / 360 + 0.5) % 1 * 1024
        step = 4194304 / 128 / 2**z
        edge = numpy.minimum(numpy.abs(place - 768), numpy.minimum(place, 1024 - place))  # between what is drawn and what is clear
        clear = edge * distance * 2 * numpy.pi / 1024 > 3 * step + distance * 0.06
        there = clear & (distance > 20 * step) & (distance < 3.9e6)
        if world == GRID:
            there &= distance > 700e3  # the Mercator ends at 85 degrees
        assert ((made[..., 3] > 0) == (place < 768))[there].all(), (z, x, y)
        banded = there & (place > 256 + 30) & (place < 768 - 30) & (place % 256 > 30) & (place % 256 < 226)
        assert (numpy.abs(made[..., 0].astype(float) - (place - 0.5) % 256)[banded] <= 12).all(), (z, x, y)


def test_a_map_over_the_antimeridian_is_drawn_from_both_sides(start, origin):
    web = start(polar("polar", 3413), source("pattern", origin.url("/pattern?")), drawn_from("again", "base"), tileset("base", metatile="1 1"), other("polar", "again", "polar"))
    # the antimeridian goes up and left from the pole here; 3413 has 71 N at about 2074 km from the pole
    z, side = 9, 2 * 4194304 / 512
    x = y = int((4194304 - 2074e3 / 2**0.5) / side)
    y = 511 - y
    reply = web.get(f"/mc/tms/1.0.0/polar@polar/{z}/{x}/{y}.png")
    made = pixels(reply.body)
    longitude, _ = longitudes(z, x, y, -45)
    place = (longitude / 360 + 0.5) % 1 * 1024
    assert reply.status == 200 and (place < 256).any() and (place > 768).any()
    assert (made[place < 10] == (200, 100, 50, 255)).mean() > 0.99 and (made[place > 1000] == 0).mean() > 0.99
    assert len(web.asked()) <= 12  # tiles of its own resolution, on both sides

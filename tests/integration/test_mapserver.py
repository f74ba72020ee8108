"""Debian's cgi-mapserver as the origin: what comes through us is what it draws."""
import urllib.parse

import mapserver
import numpy
import pytest
from conftest import GRID, fetch, wait_until
from drop_in import pixels
from lifecycle import HALF, box, stored, tile, tileset, write

FEATURE_INFO = """<getfeatureinfo><info_formats>text/plain,application/vnd.ogc.gml</info_formats>
  <params><QUERY_LAYERS>regions</QUERY_LAYERS></params></getfeatureinfo>"""
GET_MAP = "SERVICE=WMS&REQUEST=GetMap&VERSION=1.1.1&STYLES=&FORMAT=image/png&TRANSPARENT=true"
BY_TEST = "&BY=test"  # a test's own requests to the origin


def wms_source(name, url, layers, more=""):
    return f"""<source name="{name}" type="wms"><retries>0</retries><getmap><params><FORMAT>image/png</FORMAT>
    <TRANSPARENT>true</TRANSPARENT><LAYERS>{layers}</LAYERS></params></getmap>{more}<http><url>{url}</url></http></source>"""


class Pair:
    """Our httpd and MapServer's behind it."""

    def __init__(self, folder, shared_apache):
        home = folder / "data"
        home.mkdir(mode=0o755)
        self.folder, self.data = folder, home
        self.origin = shared_apache("mapserver", mapserver.httpd_config(home), module=False)
        self.url = f"http://127.0.0.1:{self.origin.port}/wms?map=WORLD"
        url = self.url.replace("&", "&amp;")
        fine = tileset("fine", "regions", more="<density>2</density>").replace("<cache>disk<", "<cache>apart<")
        degrees = tileset("degrees", "both").replace(f">{GRID}<", ">WGS84<")
        config = write(folder, wms_source("both", url, "image,regions"), wms_source("regions", url, "regions", FEATURE_INFO),
                       wms_source("wrong", url, "nothing"), wms_source("whole", f"{url}&amp;OF=whole", "regions"),
                       f'<cache name="apart" type="disk"><base>{folder}/apart</base></cache>', fine, tileset("single", "both"), degrees,
                       tileset("meta", "whole", metatile="4 4", more="<metabuffer>16</metabuffer>"),
                       tileset("regions", "regions", metatile="2 2"), tileset("wrong", "wrong"))
        self.web = shared_apache("ours", f"MapCacheAlias /mc {config}\n")

    def asked(self, part):
        """The requests that our httpd has made, of those in the log: a line comes when the answer has gone."""
        lines = (self.data / "requests.log").read_text().splitlines()
        return [line for line in lines if part in line and BY_TEST not in line]

    def direct(self, extent, layers="image,regions", width=256, height=256, srs="EPSG:3857"):
        bounds = ",".join(str(number) for number in extent)
        reply = fetch(self.origin.port, f"/wms?map=WORLD&{GET_MAP}&LAYERS={layers}&SRS={srs}&WIDTH={width}"
                                        f"&HEIGHT={height}&BBOX={bounds}{BY_TEST}")
        assert reply.headers["Content-Type"] == "image/png", reply.body
        return pixels(reply.body)


@pytest.fixture(scope="module")
def pair(shared_folder, shared_apache):
    return Pair(shared_folder, shared_apache)


def different(one, other):
    """The share of pixels that differ visibly: MapServer picks raster pixels anew for each box."""
    return (numpy.abs(one - other).max(axis=2) > 8).mean()


@pytest.mark.parametrize("z, x, y", [(0, 0, 0), (2, 1, 2), (4, 8, 7)])
def test_a_single_tile_is_what_mapserver_draws(pair, z, x, y):
    reply = pair.web.get(tile("single", z, x, y))
    drawn = pair.direct(box(z, x, y))
    assert reply.status == 200 and different(pixels(reply.body), drawn) < 0.03  # boxes are sent with six decimals
    assert len(numpy.unique(drawn.reshape(-1, 4), axis=0)) > 100


def test_degrees_are_asked_for_in_degrees(pair):
    reply = pair.web.get("/mc/tms/1.0.0/degrees@WGS84/2/3/2.png")
    assert numpy.array_equal(pixels(reply.body), pair.direct((-45, 0, 0, 45), srs="EPSG:4326"))


def test_a_metatile_with_a_buffer_is_one_request_without_seams(pair):
    whole = pair.direct(box(2, 0, 0, 4), "regions", 1024, 1024)
    shown = numpy.vstack([numpy.hstack([pixels(pair.web.get(tile("meta", 2, x, y)).body) for x in range(4)])
                          for y in (3, 2, 1, 0)])
    asked = wait_until(lambda: pair.asked("OF=whole"), "the request is in the log")
    assert len(asked) == 1
    sent = {key: values[0] for key, values in urllib.parse.parse_qs(asked[0].lstrip("?")).items()}
    assert (sent["WIDTH"], sent["HEIGHT"]) == ("1056", "1056")
    assert different(whole, shown) < 0.001
    assert len(stored(pair.folder, "meta")) == 16


def yellow(image):
    """The area of the outlines, which are two pixels wide in the map file."""
    return int(((image[..., 0] > 200) & (image[..., 1] > 200)).sum())


def test_lines_of_tiles_for_fine_screens_are_as_much_wider(pair):
    plain, fine = (pixels(pair.web.get(f"/mc/gmaps/fine/1/1/1{density}.png").body) for density in ("", "@2x"))
    assert plain.shape == (256, 256, 4) and fine.shape == (512, 512, 4)
    assert yellow(fine) == pytest.approx(4 * yellow(plain), rel=0.1)  # twice as long and twice as wide
    asked = wait_until(lambda: pair.asked("MAP_RESOLUTION=144"), "the request is in the log")
    assert len(asked) == 1 and "WIDTH=512" in asked[0]
    assert not any("DPI" in line for line in pair.asked("WIDTH=256"))


def test_maps_are_assembled_of_tiles(pair):
    reply = pair.web.get(f"/mc?{GET_MAP}&LAYERS=regions&SRS=EPSG:3857&WIDTH=512&HEIGHT=512&BBOX=-{HALF},0,0,{HALF}")
    assert reply.status == 200
    drawn = pair.direct((-HALF, 0, 0, HALF), "regions", 512, 512)
    shown = pixels(reply.body)
    assert (shown[..., 3] == 0).any() and ((shown[..., :3] == (40, 120, 220)).all(axis=2)).any()
    assert different(drawn, shown) < 0.001


def info(pair, service, x, y, media="text/plain"):
    extent = f"-{HALF},-{HALF},{HALF},{HALF}"
    if service == "wms":
        return pair.web.get("/mc?SERVICE=WMS&REQUEST=GetFeatureInfo&VERSION=1.1.1&LAYERS=regions&STYLES=&SRS=EPSG:3857"
                            f"&BBOX={extent}&WIDTH=256&HEIGHT=256&QUERY_LAYERS=regions&X={x}&Y={y}&INFO_FORMAT={media}")
    if service == "wms 1.3.0":
        return pair.web.get("/mc?SERVICE=WMS&REQUEST=GetFeatureInfo&VERSION=1.3.0&LAYERS=regions&STYLES=&CRS=EPSG:3857"
                            f"&BBOX={extent}&WIDTH=256&HEIGHT=256&QUERY_LAYERS=regions&I={x}&J={y}&INFO_FORMAT={media}")
    if service == "wmts":
        return pair.web.get("/mc/wmts?SERVICE=WMTS&VERSION=1.0.0&REQUEST=GetFeatureInfo&LAYER=regions&STYLE=default"
                            f"&FORMAT=image/png&TILEMATRIXSET={GRID}&TILEMATRIX=0&TILEROW=0&TILECOL=0&I={x}&J={y}"
                            f"&INFOFORMAT={media}")
    number = ["text/plain", "application/vnd.ogc.gml"].index(media)
    return pair.web.get(f"/mc/wmts/1.0.0/regions/default/{GRID}/0/0/0/{y}/{x}.{number}")


@pytest.mark.parametrize("service", ["wms", "wms 1.3.0", "wmts", "wmts rest"])
def test_feature_info_comes_through(pair, service):
    for x, y, name in [(100, 100, "north"), (170, 150, "south")]:
        reply = info(pair, service, x, y)
        assert reply.status == 200, reply.body
        assert reply.headers["Content-Type"].startswith("text/plain") and f"name = '{name}'".encode() in reply.body
        gml = info(pair, service, x, y, "application/vnd.ogc.gml")
        assert gml.headers["Content-Type"] == "application/vnd.ogc.gml"
        assert f"<name>{name}</name>".encode() in gml.body
    assert b"name =" not in info(pair, service, 5, 5).body


def test_mapservers_complaints_are_no_tiles(pair):
    reply = pair.web.get(tile("wrong", 1, 0, 0))
    assert reply.status == 502 and b"127.0.0.1" not in reply.body and b"world.map" not in reply.body
    assert stored(pair.folder, "wrong") == []
    wait_until(lambda: pair.asked("LAYERS=nothing"), "the request is in the log")

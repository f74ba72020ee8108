"""Tiles and maps in WebP: made, stored in each kind of file that says its format, assembled, taken from another server, copied; read by Pillow."""
import io
import json
import sqlite3
import subprocess

import numpy
import pytest
from conftest import GRID
from fastcgi import Server
from osgeo import gdal, osr
from patience import patience
from PIL import Image

HALF = 20037508.342789248
WORLD = f"{-HALF},{-HALF},{HALF},{HALF}"
TILESET = """<tileset name="{name}"><source>{source}</source><cache>{cache}</cache><grid>{grid}</grid><format>{format}</format><metatile>{metatile}</metatile>
 </tileset>"""
MAP = "SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS={}&SRS=EPSG:3857&STYLES=&WIDTH=300&HEIGHT=200&BBOX=" + WORLD


def raster(path):
    """A quarter of it is transparent; smooth colours elsewhere."""
    rows, columns = numpy.mgrid[0:512, 0:512]
    bands = [columns // 2, rows // 2, (rows + columns) // 4, numpy.where((rows < 256) & (columns < 256), 0, 255)]
    data = gdal.GetDriverByName("GTiff").Create(str(path), 512, 512, 4, gdal.GDT_Byte, ["PHOTOMETRIC=RGB", "ALPHA=YES"])
    reference = osr.SpatialReference()
    reference.ImportFromEPSG(3857)
    data.SetProjection(reference.ExportToWkt())
    data.SetGeoTransform((-HALF, 2 * HALF / 512, 0, HALF, 0, -2 * HALF / 512))
    for i, band in enumerate(bands):
        data.GetRasterBand(i + 1).WriteArray(band.astype(numpy.uint8))


def configuration(folder, tilesets, more=""):
    text = "".join(TILESET.format(name=name, source=source, cache=cache, grid=GRID, format=form, metatile=metatile) for name, source, cache, form, metatile in tilesets)
    return f"""<mapcache><cache name="disk" type="disk"><base>{folder}/cache</base></cache>
      <cache name="book" type="mbtiles"><dbfile>{folder}/book.mbtiles</dbfile></cache>
      <cache name="archive" type="pmtiles"><file>{folder}/archive.pmtiles</file></cache>
      <format name="exact" type="WEBP"><lossless>true</lossless></format>
      <format name="small" type="webp"><quality>30</quality><effort>6</effort></format>
      <format name="either" type="MIXED"><transparent>exact</transparent><opaque>small</opaque></format>
      <source name="raster" type="gdal"><data>{folder}/raster.tif</data></source>{more}{text}
      <service type="wms" enabled="true"><full_wms>assemble</full_wms><format allow_client_override="true">WEBP</format></service>
      <service type="wmts" enabled="true"/><service type="tms" enabled="true"/><service type="gmaps" enabled="true"/>
      <locker type="disk"><directory>{folder}</directory></locker></mapcache>"""


@pytest.fixture(scope="module")
def server(build, shared_folder):
    raster(shared_folder / "raster.tif")
    config = shared_folder / "webp.xml"
    config.write_text(configuration(shared_folder, [("lossy", "raster", "disk", "WEBP", "4 4"), ("exact", "raster", "disk", "exact", "2 2"), ("png", "raster", "disk", "PNG", "2 2"),
                                                    ("mixed", "raster", "disk", "either", "1 1"), ("book", "raster", "book", "small", "1 1")]))
    running = Server(build, config, shared_folder)
    yield running
    running.stop()


def picture(reply, kind="WEBP"):
    assert reply.status == 200, reply.body[:300]
    assert reply.header("Content-Type") == f"image/{kind.lower()}"
    image = Image.open(io.BytesIO(reply.body))
    assert image.format == kind
    return numpy.array(image.convert("RGBA")).astype(int)


def seen(pixels):
    """Where nothing is, no colour is."""
    return numpy.where(pixels[..., 3:] == 0, 0, pixels)


def test_tiles_are_what_a_png_is(server):
    exact = picture(server.get("/gmaps/exact/1/0/0.webp"))
    plain = picture(server.get("/gmaps/png/1/0/0.png"), "PNG")
    assert exact.shape == (256, 256, 4) and (exact[..., 3] == plain[..., 3]).all() and set(numpy.unique(exact[..., 3])) == {0}
    for x, y in ((1, 0), (0, 1), (1, 1)):
        exact = picture(server.get(f"/gmaps/exact/1/{x}/{y}.webp"))
        plain = picture(server.get(f"/gmaps/png/1/{x}/{y}.png"), "PNG")
        lossy = picture(server.get(f"/gmaps/lossy/1/{x}/{y}.webp"))
        assert numpy.abs(seen(exact) - seen(plain)).max() <= 1
        assert 0 < numpy.abs(seen(lossy) - seen(plain)).mean() < 4


def test_a_stored_tile_is_the_one_that_was_made(server):
    first = server.get("/tms/1.0.0/lossy/2/3/1.webp")
    again = server.get("/tms/1.0.0/lossy/2/3/1.webp")
    assert first.body == again.body and first.header("ETag") == again.header("ETag")


def test_mixed_has_a_kind_for_tiles_with_holes_and_one_for_others(server):
    whole, holed = server.get("/gmaps/mixed/1/1/1.webp"), server.get("/gmaps/mixed/0/0/0.webp")
    picture(whole)
    assert picture(holed)[..., 3].min() == 0
    assert whole.body[12:16] == b"VP8 " and holed.body[12:16] == b"VP8L"  # lossy, lossless (RFC 9649)


def test_maps_are_put_together_of_stored_tiles(server):
    plain = picture(server.get("/", MAP.format("exact") + "&FORMAT=image/png&TRANSPARENT=TRUE"), "PNG")
    found = picture(server.get("/", MAP.format("exact") + "&FORMAT=image/webp&TRANSPARENT=TRUE"))
    assert found.shape == (200, 300, 4) and numpy.abs(seen(found) - seen(plain)).mean() < 4
    picture(server.get("/", MAP.format("lossy,exact")))  # the service's own format
    opaque = picture(server.get("/", MAP.format("exact") + "&FORMAT=image/webp&TRANSPARENT=FALSE&BGCOLOR=0xFF0000"))
    assert (opaque[..., 3] == 255).all() and opaque[20, 20, 0] > 240 > 20 > opaque[20, 20, 1]


def test_capabilities_and_descriptions_say_webp(server):
    wms = server.get("/", "SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.1.1").body.decode()
    assert "<Format>image/webp</Format>" in wms
    wmts = server.get("/wmts/1.0.0/WMTSCapabilities.xml").body.decode()
    assert "<Format>image/webp</Format>" in wmts and ".webp" in wmts
    tms = server.get("/tms/1.0.0/lossy@" + GRID).body.decode()
    assert 'mime-type="image/webp" extension="webp"' in tms
    picture(server.get(f"/wmts/1.0.0/lossy/default/{GRID}/1/1/1.webp"))


def test_an_mbtiles_file_says_its_format(server, shared_folder):
    picture(server.get("/gmaps/book/1/1/1.webp"))
    database = sqlite3.connect(shared_folder / "book.mbtiles")
    assert database.execute("select value from metadata where name = 'format'").fetchall() == [("webp",)]


def test_tiles_of_another_server_are_handed_on_and_drawn(server, build, folder, nginx):
    """The other server is our own, behind nginx."""
    port = nginx(server.address).port
    more = f"""<source name="far" type="xyz"><http><url>http://127.0.0.1:{port}/mc/gmaps/lossy/{{z}}/{{x}}/{{y}}.webp</url></http><grid>{GRID}</grid></source>"""
    config = folder / "far.xml"
    config.write_text(configuration(folder, [("same", "far", "disk", "WEBP", "1 1"), ("other", "far", "disk", "PNG", "1 1"), ("archive", "far", "archive", "WEBP", "1 1")], more))
    raster(folder / "raster.tif")
    near = Server(build, config, folder)
    try:
        sent = server.get("/gmaps/lossy/1/1/1.webp")
        assert near.get("/gmaps/same/1/1/1.webp").body == sent.body
        drawn = picture(near.get("/gmaps/other/1/1/1.png"), "PNG")
        assert numpy.abs(drawn - picture(sent)).max() <= 1
    finally:
        near.stop()
    subprocess.run([build / "bin/mapcache", "seed", "-c", config, "-t", "archive", "-z", "0,2", "-q"], check=True, timeout=patience(60))
    head = (folder / "archive.pmtiles").read_bytes()[:127]
    assert head[99] == 4  # tile type WebP (PMTiles 3, 3.3)
    subprocess.run([build / "bin/mapcache", "copy", "-c", config, "--from", "tileset:archive", "--to", "tileset:other", "-q"], check=True, timeout=patience(60))
    files = list((folder / "cache/other").rglob("*.png"))
    assert len(files) == 1 + 4 + 16 and all(Image.open(file).format == "PNG" for file in files)


def test_tilejson_names_the_extension(server):
    found = json.loads(server.get(f"/gmaps/lossy@{GRID}.json").body)
    assert found["tiles"][0].endswith(".webp")

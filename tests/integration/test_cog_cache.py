"""Tiles of Cloud Optimized GeoTIFFs as GDAL's COG driver writes them: handed on as they stand in the file, from a disk, by HTTP ranges, from S3."""
import io
import os
import pathlib
import struct

import numpy
import pytest
from fastcgi import Server
from osgeo import gdal, osr
from PIL import Image
from test_block_archives import config, counted, run, tiles_of
from test_geopackage import HALF
from test_http_stores import moto  # noqa: F401
from test_pmtiles_http import web  # noqa: F401
from test_pmtiles_s3 import upload

BUILD = pathlib.Path(os.environ.get("MAPCACHE_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build" / "release"))
gdal.UseExceptions()
LEVELS = 4


def raster(path, side=512, box=(-HALF, -HALF, HALF, HALF), srs=3857, hole=None):
    """Three bands in which no two places are alike; `hole`: a box of pixels without data."""
    made = gdal.GetDriverByName("GTiff").Create(str(path), side, side, 3 + (hole is not None))
    made.SetGeoTransform((box[0], (box[2] - box[0]) / side, 0, box[3], 0, -(box[3] - box[1]) / side))
    reference = osr.SpatialReference()
    reference.ImportFromEPSG(srs)
    made.SetProjection(reference.ExportToWkt())
    rows, columns = numpy.mgrid[:side, :side]
    for band, values in enumerate((columns * 255 // side, rows * 255 // side, (columns + rows) * 255 // 2 // side)):
        made.GetRasterBand(band + 1).WriteArray(values.astype(numpy.uint8))
    if hole is not None:
        alpha = numpy.full((side, side), 255, numpy.uint8)
        alpha[hole[1]:hole[3], hole[0]:hole[2]] = 0
        made.GetRasterBand(4).SetColorInterpretation(gdal.GCI_AlphaBand)
        made.GetRasterBand(4).WriteArray(alpha)
    return made


def cog(path, source, *options, compress="JPEG"):
    gdal.Translate(str(path), source, format="COG", creationOptions=["TILING_SCHEME=GoogleMapsCompatible", f"COMPRESS={compress}", "QUALITY=90", *options])
    return path


def cache(file):
    return f'<cache name="archive" type="cog"><file>{file}</file></cache>'


def rgba(data):
    return numpy.asarray(Image.open(io.BytesIO(data)).convert("RGBA")).astype(int)


@pytest.mark.parametrize("options", [[], ["BIGTIFF=YES"], ["SPARSE_OK=YES"]])
def test_all_levels_of_the_world(tmp_path, options):
    """The bytes are those of the file: GDAL reads the very same pixels."""
    file = cog(tmp_path / "w.tif", raster(tmp_path / "s.tif", 256 * 2**(LEVELS - 1)), *options)
    found = tiles_of(tmp_path, config(tmp_path, cache(file)), "0,5")
    assert {z: sum(place[0] == z for place in found) for z in range(6)} == {0: 1, 1: 4, 2: 16, 3: 64, 4: 0, 5: 0}
    read = gdal.Open(str(file))
    for (z, x, y), data in found.items():
        assert data[:2] == b"\xff\xd8"
        bands = [read.GetRasterBand(band) for band in (1, 2, 3)]
        level = LEVELS - 1 - z
        part = numpy.dstack([(band if level == 0 else band.GetOverview(level - 1)).ReadAsArray(256 * x, 256 * y, 256, 256) for band in bands])
        assert numpy.abs(rgba(data)[:, :, :3] - part).max() <= 4, (z, x, y)
    tile = found[3, 2, 5]
    assert tile[-400:] in file.read_bytes()  # not encoded again


@pytest.mark.parametrize("hole", [None, (0, 0, 300, 300)])
def test_webp_tiles(tmp_path, hole):
    """Handed on with the transparency that they have themselves."""
    file = cog(tmp_path / "w.tif", raster(tmp_path / "s.tif", 512, hole=hole), compress="WEBP")
    path = config(tmp_path, cache(file))
    path.write_text(path.read_text().replace("<format>PNG</format>", "<format>WEBP</format>"))
    found = tiles_of(tmp_path, path, "0,1")
    assert len(found) == 5 and all(data[:4] == b"RIFF" and data in file.read_bytes() for data in found.values())
    read = gdal.Open(str(file)).ReadAsArray(256, 256, 256, 256).transpose(1, 2, 0).astype(int)
    tile = rgba(found[1, 1, 1])
    bands = read.shape[2]
    assert bands == (3 if hole is None else 4) and numpy.abs(tile[60:, 60:, :bands] - read[60:, 60:]).max() <= 4
    assert (tile[:30, :30, 3] == (255 if hole is None else 0)).all()


def offset_box(z, x, y, columns, rows):
    """A box of tiles of level z, x and y from the upper left corner."""
    side = 2 * HALF / 2**z
    return x * side - HALF, HALF - (y + rows) * side, (x + columns) * side - HALF, HALF - y * side


def test_levels_that_do_not_begin_at_a_corner_say_by_how_much(tmp_path):
    """A part of the world, from an odd tile on: half of its overviews lie between tiles."""
    file = cog(tmp_path / "p.tif", raster(tmp_path / "s.tif", 1024, offset_box(6, 33, 21, 4, 4)))
    path = config(tmp_path, cache(file))
    found = tiles_of(tmp_path, path, "6,8")
    assert sorted(found) == sorted((6, x, y) for x in range(33, 37) for y in range(21, 25))
    said = tiles_of(tmp_path, path, "5,5", status=1)
    assert "does not begin at the corner of a tile of level 5" in said and "128.00 pixels" in said, said


def test_aligned_levels_of_gdal_are_served(tmp_path):
    file = cog(tmp_path / "p.tif", raster(tmp_path / "s.tif", 1024, offset_box(6, 33, 21, 4, 4)), "ALIGNED_LEVELS=3")
    found = tiles_of(tmp_path, config(tmp_path, cache(file)), "4,6")
    assert {z for z, *_ in found} == {4, 5, 6} and all((6, x, y) in found for x in range(33, 37) for y in range(21, 25))


@pytest.mark.parametrize("make, said", [
    (lambda f: cog(f / "a.tif", raster(f / "s.tif"), compress="DEFLATE"), "compressed by Deflate; only JPEG and WebP tiles"),
    (lambda f: cog(f / "a.tif", raster(f / "s.tif"), compress="LZW"), "compressed as LZW; only JPEG and WebP tiles"),
    (lambda f: gdal.Translate(str(f / "a.tif"), raster(f / "s.tif"), format="COG", creationOptions=["COMPRESS=JPEG", "BLOCKSIZE=512"]), "512 x 512 pixels, those of grid"),
    (lambda f: gdal.Translate(str(f / "a.tif"), raster(f / "s.tif", box=(0, 0, 512 * 100, 512 * 100)), format="COG", creationOptions=["COMPRESS=JPEG", "BLOCKSIZE=256"]),
     "one of the nearest image 200 ("),
    (lambda f: gdal.Translate(str(f / "a.tif"), raster(f / "s.tif", box=(400000, 100000, 500000, 200000), srs=32631), format="COG",
                              creationOptions=["COMPRESS=JPEG", "BLOCKSIZE=256"]), "is in EPSG:32631, grid \"GoogleMapsCompatible\" in"),
])
def test_what_does_not_fit_is_said(tmp_path, make, said):
    """At the first tile, and by `mapcache check --connect`."""
    made = make(tmp_path)
    del made
    path = config(tmp_path, cache(tmp_path / "a.tif"))
    assert said in tiles_of(tmp_path, path, "1,1", status=1)
    assert said in run("check", "--connect", path, status=2)


def test_what_a_mask_hides_is_transparent(tmp_path):
    """GDAL puts the alpha band of a JPEG into a mask: tiles that are wholly hidden are not there, others become PNG; a tileset of JPEGs gets the bytes as they are."""
    file = cog(tmp_path / "m.tif", raster(tmp_path / "s.tif", 1024, hole=(0, 0, 300, 300)))
    assert gdal.Open(str(file)).GetRasterBand(1).GetMaskFlags() == gdal.GMF_PER_DATASET
    path = config(tmp_path, cache(file))
    found = tiles_of(tmp_path, path, "2,2")
    assert (2, 0, 0) not in found and len(found) == 15
    assert {place for place, data in found.items() if data[:4] == b"\x89PNG"} == {(2, 1, 0), (2, 0, 1), (2, 1, 1)}
    corner = rgba(found[2, 1, 1])
    assert (corner[:44, :44, 3] == 0).all() and (corner[44:, :, 3] == 255).all() and (corner[:, 44:, 3] == 255).all()
    read = gdal.Open(str(file)).ReadAsArray(256, 256, 256, 256).transpose(1, 2, 0).astype(int)
    assert numpy.abs(corner[44:, :, :3] - read[44:, :, :3]).max() <= 4
    path.write_text(path.read_text().replace("<format>PNG</format>", "<format>JPEG</format>"))
    assert {data[:2] for data in tiles_of(tmp_path, path, "2,2").values()} == {b"\xff\xd8"}


def test_what_lies_beyond_the_edge_is_transparent(tmp_path):
    """The last tiles of an overview are filled up: 768 pixels are one tile and a half at the next level."""
    file = cog(tmp_path / "e.tif", raster(tmp_path / "s.tif", 768, offset_box(6, 32, 20, 3, 3)))
    found = tiles_of(tmp_path, config(tmp_path, cache(file)), "5,6")
    assert sorted(place for place in found if place[0] == 5) == [(5, 16, 10), (5, 16, 11), (5, 17, 10), (5, 17, 11)]
    last = rgba(found[5, 17, 11])
    assert (last[:128, :128, 3] == 255).all() and (last[128:, :, 3] == 0).all() and (last[:, 128:, 3] == 0).all()
    assert found[5, 16, 10][:2] == b"\xff\xd8"


def served(build, folder, inner, more=""):
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache>
  <cache name="far" type="cog">{inner}</cache>
  <tileset name="a"><cache>far</cache><grid>GoogleMapsCompatible</grid><format>PNG</format>{more}</tileset>
  <service type="wmts" enabled="true"/><service type="wms" enabled="true"><full_wms>assemble</full_wms></service><lock_dir>{folder}</lock_dir><errors>report</errors>
</mapcache>
""")
    return Server(build, path, folder)


def tile(server, z, x, y):
    return server.get(f"/wmts/1.0.0/a/default/GoogleMapsCompatible/{z}/{y}/{x}.png")


MAP = "SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS=a&STYLES=&SRS=EPSG:3857&FORMAT=image/png&WIDTH=1024&HEIGHT=1024&BBOX={},{},{},{}"


def test_tiles_come_by_ranges(build, folder, web):  # noqa: F811
    """The first tile costs a look, the places of tiles and the tile; a map of 16 tiles no more rounds than one tile."""
    file = cog(folder / "www/w.tif", raster(folder / "s.tif", 4096))
    from_disk = tiles_of(folder, config(folder, cache(file)), "4,4")
    server = served(build, folder, f"<url>{web.address}/w.tif</url>")
    try:
        answer = tile(server, 4, 3, 5)
        assert answer.status == 200 and answer.body == from_disk[4, 3, 5], (answer.status, answer.body[:300])
        first = web.asked()
        assert all(status == "206" for status, *_ in first) and len(first) <= 4, first
        side = 2 * HALF / 16
        answer = server.get("/", MAP.format(0, 0, 4 * side, 4 * side))
        assert answer.status == 200
        drawn = rgba(answer.body)
        for x in range(4):
            for y in range(4):
                assert numpy.abs(drawn[256 * y:256 * y + 256, 256 * x:256 * x + 256] - rgba(from_disk[4, 8 + x, 4 + y])).max() <= 2
        asked = web.asked()[len(first):]
        assert 1 <= len(asked) <= 6, asked
        assert tile(server, 4, 8, 4).body == from_disk[4, 8, 4] and len(web.asked()) == len(first) + len(asked)  # known now
        assert (rgba(tile(server, 5, 0, 0).body)[:, :, 3] == 0).all()  # no such level: nothing is there
        cog(folder / "www/n.tif", raster(folder / "s.tif", 1024))
        (folder / "www/n.tif").rename(folder / "www/w.tif")
        assert (rgba(tile(server, 4, 0, 0).body)[:, :, 3] == 0).all()  # of the file of now, which has levels 0 to 2
        assert (rgba(tile(server, 2, 0, 0).body)[:, :, 3] == 255).all()
    finally:
        server.stop()


def test_tiles_come_from_s3(build, folder, moto):  # noqa: F811
    file = cog(folder / "w.tif", raster(folder / "s.tif", 512))
    expected = tiles_of(folder, config(folder, cache(file)), "1,1")
    port, access, secret = moto
    upload(moto, file, "maps/w.tif")
    server = served(build, folder, f"<url>s3://tiles/maps/w.tif</url><endpoint>http://127.0.0.1:{port}</endpoint><region>eu-test-1</region><id>{access}</id>"
                                   f"<secret>{secret}</secret>")
    try:
        assert tile(server, 1, 1, 0).body == expected[1, 1, 0]
    finally:
        server.stop()


def test_a_file_that_is_not_there_is_an_error(tmp_path):
    path = config(tmp_path, cache(tmp_path / "none.tif"))
    assert "cannot be opened" in tiles_of(tmp_path, path, "0,0", status=1)


def entries(data):
    """tag -> where its entry stands, of the first directory of a classic TIFF."""
    at = struct.unpack_from("<I", data, 4)[0]
    count = struct.unpack_from("<H", data, at)[0]
    return {struct.unpack_from("<H", data, at + 2 + 12 * i)[0]: at + 2 + 12 * i for i in range(count)}, at + 2 + 12 * count


def patched(tag, field, value):
    def damage(data):
        places, _ = entries(data)
        out = bytearray(data)
        struct.pack_into("<I", out, places[tag] + field, value)
        return bytes(out)
    return damage


def looped(data):
    _, following = entries(data)
    out = bytearray(data)
    out[following:following + 4] = data[4:8]
    return bytes(out)


def cut_tables(data):
    places, _ = entries(data)
    out = bytearray(data)
    size = struct.unpack_from("<I", data, places[347] + 4)[0]
    struct.pack_into("<I", out, places[347] + 4, size - 7)
    return bytes(out)


def first_tile_at(offset):
    def damage(data):
        places, _ = entries(data)
        out = bytearray(data)
        struct.pack_into("<I", out, struct.unpack_from("<I", data, places[324] + 8)[0], offset)
        return bytes(out)
    return damage


@pytest.mark.parametrize("damage, said", [
    (looped, "round in a circle"), (cut_tables, "JPEG tables do not end"), (patched(347, 4, 2**31), "tables are too long"),
    (patched(324, 4, 2), "no picture in tiles"), (patched(324, 8, 2**32 - 16), "beyond the end"), (first_tile_at(2**32 - 1), "beyond the end"), (first_tile_at(9), "no JPEG"),
    (patched(256, 8, 2**32 - 1), "no picture in tiles"), (patched(322, 8, 0), "no picture in tiles"), (lambda data: data[:100], "beyond the end"),
    (lambda data: b"II\x2b\0" + data[4:], "no TIFF|beyond the end|empty or too long")])
def test_hostile_files_are_refused(tmp_path, damage, said):
    file = cog(tmp_path / "w.tif", raster(tmp_path / "s.tif", 512))
    file.write_bytes(damage(file.read_bytes()))
    message = tiles_of(tmp_path, config(tmp_path, cache(file)), "1,1", status=1)
    assert any(part in message for part in said.split("|")), message


def test_configurations_that_cannot_be(tmp_path):
    for inner, said in (("", "either a <file> or a <url>"), ("<file>/a/{z}.tif</file>", "there is no {z} in its path"), ("<url>ftp://a/b.tif</url>", "begins with http"),
                        ("<file>/a.tif</file><id>a</id>", "only requests to a <url> are signed")):
        path = config(tmp_path, f'<cache name="archive" type="cog">{inner}</cache>')
        assert said in run("check", path, status=1)


def test_tiles_are_listed(tmp_path):
    """By `mapcache detail`, of the image's part of the world; a copy of all levels goes through the file, not through the world."""
    file = cog(tmp_path / "p.tif", raster(tmp_path / "s.tif", 1024, offset_box(12, 2112, 1344, 4, 4)), "ALIGNED_LEVELS=3")
    path = config(tmp_path, cache(file))
    assert counted(path) == {10: 1, 11: 4, 12: 16}
    assert sorted(tiles_of(tmp_path, path, "0,21"))[0] == (10, 528, 336) and len(tiles_of(tmp_path, path, "0,21")) == 21

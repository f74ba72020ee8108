"""Archives of others that are read by an index of ranges: Esri's bundles, MRF, slabs of ROK4."""
import io
import os
import pathlib
import sqlite3
import struct
import subprocess

import numpy
import pytest
from conftest import png
from osgeo import gdal
from patience import patience
from PIL import Image
from test_geopackage import HALF, picture

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("MAPCACHE_BUILD", ROOT / "build" / "release"))
PROGRAM = str(BUILD / "bin" / "mapcache")
gdal.UseExceptions()


def config(folder, cache, grid="GoogleMapsCompatible"):
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache>
  {cache}
  <cache name="sqlite" type="sqlite3"><dbfile>{folder}/out.db</dbfile></cache>
  <tileset name="a"><cache>archive</cache><grid>{grid}</grid><format>PNG</format></tileset>
  <tileset name="out"><cache>sqlite</cache><grid>{grid}</grid><format>PNG</format></tileset>
  <service type="wmts" enabled="true"/><lock_dir>{folder}</lock_dir>
</mapcache>
""")
    return path


def run(*arguments, status=0):
    result = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=patience(100))
    assert result.returncode == status, result.stdout + result.stderr
    return result.stdout + result.stderr


def tiles_of(folder, path, zooms, status=0):
    """(z, x, y from the north) -> bytes, as a transfer finds them."""
    (folder / "out.db").unlink(missing_ok=True)
    run("check", path)
    said = run("seed", "-c", path, "-t", "a", "--mode", "transfer", "--transfer", "out", "-z", zooms, "--force", status=status)
    if status != 0:
        return said
    with sqlite3.connect(folder / "out.db") as database:
        return {(z, x, 2**z - 1 - y): data for z, x, y, data in database.execute("select z, x, y, data from tiles")}


def bundle(path, tiles):
    """tiles: (row, column) in the bundle -> bytes. As Esri documents compact cache V2."""
    path.parent.mkdir(parents=True, exist_ok=True)
    index, body, at = [0] * 16384, b"", 64 + 131072
    for (row, column), data in tiles.items():
        body += struct.pack("<I", len(data)) + data
        index[row * 128 + column] = at + 4 | len(data) << 40
        at += 4 + len(data)
    head = struct.pack("<4I3Q6I", 3, 16384, max(map(len, tiles.values())), 5, 0, at, 40, 20 + 131072, 3, 16, 16384, 5, 131072)
    path.write_bytes(head + struct.pack("<16384Q", *index) + body)


CONF = """<?xml version="1.0"?><CacheInfo><TileCacheInfo><SpatialReference><WKT>PROJCS["WGS_1984_Web_Mercator_Auxiliary_Sphere",GEOGCS["GCS_WGS_1984",
DATUM["D_WGS_1984",SPHEROID["WGS_1984",6378137.0,298.257223563]],PRIMEM["Greenwich",0.0],UNIT["Degree",0.0174532925199433]],PROJECTION["Mercator_Auxiliary_Sphere"],
PARAMETER["False_Easting",0.0],PARAMETER["False_Northing",0.0],PARAMETER["Central_Meridian",0.0],PARAMETER["Standard_Parallel_1",0.0],PARAMETER["Auxiliary_Sphere_Type",0.0],
UNIT["Meter",1.0]]</WKT></SpatialReference><TileOrigin><X>-20037508.342787</X><Y>20037508.342787</Y></TileOrigin><TileCols>256</TileCols><TileRows>256</TileRows><DPI>96</DPI>
<LODInfos>{}</LODInfos></TileCacheInfo><TileImageInfo><CacheTileFormat>PNG</CacheTileFormat><CompressionQuality>0</CompressionQuality></TileImageInfo>
<CacheStorageInfo><StorageFormat>esriMapCacheStorageModeCompactV2</StorageFormat><PacketSize>128</PacketSize></CacheStorageInfo></CacheInfo>"""


def test_bundles(tmp_path):
    """Of two levels, the finer one in four files; GDAL finds the same picture at a level that it reads."""
    layers = tmp_path / "_alllayers"
    colours = {(z, x, y): (10 * z, x % 256, y % 256) for z, x, y in [(0, 0, 0), (3, 5, 6), (8, 0, 0), (8, 127, 128), (8, 128, 127), (8, 255, 255), (8, 200, 3)]}
    files = {}
    for (z, x, y), colour in colours.items():
        name = f"L{z:02}/R{y // 128 * 128:04x}C{x // 128 * 128:04x}.bundle"
        files.setdefault(name, {})[y % 128, x % 128] = png(256, 256, lambda *_: colour)
    for name, tiles in files.items():
        bundle(layers / name, tiles)
    path = config(tmp_path, f'<cache name="archive" type="bundle"><base>{layers}</base></cache>')
    found = tiles_of(tmp_path, path, "0,8")
    assert {place: pixel_of(data) for place, data in found.items()} == colours
    (tmp_path / "conf.xml").write_text(CONF.format("".join(
        f"<LODInfo><LevelID>{z}</LevelID><Scale>1</Scale><Resolution>{2 * HALF / 256 / 2**z}</Resolution></LODInfo>" for z in range(9))))
    raster = gdal.OpenEx(str(tmp_path / "conf.xml"), allowed_drivers=["ESRIC"])
    for z, x, y in colours:
        if z == 8:
            read = raster.ReadAsArray(256 * x, 256 * y, 200, 200)  # GDAL rounds its size down
            assert tuple(read[:3, 100, 100]) == colours[z, x, y]


def pixel_of(data):
    return Image.open(io.BytesIO(data)).convert("RGB").getpixel((100, 100))


@pytest.mark.parametrize("damage, said", [
    (lambda data: data[:50], "beyond the end"), (lambda data: b"\1" + data[1:], "no bundle of version 2"), (lambda data: data[:-10], "beyond the end"),
    (lambda data: data[:64] + b"\xff" * 131072 + data[64 + 131072:], "beyond the end")])
def test_damaged_bundles_are_refused(tmp_path, damage, said):
    file = tmp_path / "b/L00/R0000C0000.bundle"
    bundle(file, {(0, 0): png(256, 256, lambda *_: (1, 2, 3))})
    file.write_bytes(damage(file.read_bytes()))
    path = config(tmp_path, f'<cache name="archive" type="bundle"><base>{tmp_path}/b</base></cache>')
    assert said in tiles_of(tmp_path, path, "0,0", status=1)


@pytest.mark.parametrize("options", [["COMPRESS=PNG"], ["COMPRESS=JPEG", "QUALITY=95"], ["COMPRESS=PNG", "UNIFORM_SCALE=2"]])
def test_mrf(tmp_path, options):
    """As GDAL has written it, with its overviews."""
    picture(tmp_path / "world.tif", 1024)
    gdal.Translate(str(tmp_path / "w.mrf"), str(tmp_path / "world.tif"), format="MRF", creationOptions=["BLOCKSIZE=256", "INTERLEAVE=PIXEL", *options])
    levels = [2]
    if "UNIFORM_SCALE=2" in options:
        made = gdal.Open(str(tmp_path / "w.mrf"), gdal.GA_Update)
        made.BuildOverviews("NEAREST", [2, 4])
        del made
        levels = [0, 1, 2]
    path = config(tmp_path, f'<cache name="archive" type="mrf"><file>{tmp_path}/w.mrf</file></cache>')
    raster = gdal.Open(str(tmp_path / "w.mrf"))
    for z in levels:
        found = tiles_of(tmp_path, path, f"{z},{z}")
        assert len(found) == 4**z
        bands = [raster.GetRasterBand(band + 1) for band in range(3)]
        read = numpy.dstack([(band if z == 2 else band.GetOverview(1 - z)).ReadAsArray() for band in bands]).astype(int)
        for (_, x, y), data in found.items():
            tile = numpy.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)
            difference = numpy.abs(tile - read[256 * y:256 * y + 256, 256 * x:256 * x + 256])
            assert difference.mean() < 1 and (difference > 3).mean() < 0.001  # GDAL keeps black pixels apart from those that are nearly so
    assert counted(path, "-z", "3,3") == {}
    path = config(tmp_path, f'<cache name="archive" type="mrf"><file>{tmp_path}/w.mrf</file></cache>', grid="WGS84")
    assert "no level of the MRF" in tiles_of(tmp_path, path, "3,3", status=1)


def mrf_of_another_file(folder, data, index, pixels, page):
    """An MRF whose data are those of a file elsewhere."""
    (folder / "secret").write_bytes(data)
    (folder / "w.mrf").write_text(f"""<MRF_META><Raster><Size x="{pixels}" y="{pixels}" c="3"/><PageSize x="{page}" y="{page}" c="3"/>
        <Compression>PNG</Compression><DataFile>{folder}/secret</DataFile></Raster><Rsets model="uniform" scale="2"/></MRF_META>""")
    (folder / "w.idx").write_bytes(index)
    return config(folder, f'<cache name="archive" type="mrf"><file>{folder}/w.mrf</file></cache>')


def test_an_mrf_shows_nothing_of_other_files(tmp_path):
    """An MRF names its files: what is no picture stays where it is."""
    secret = b"<mapcache><password>sesame</password></mapcache>"
    path = mrf_of_another_file(tmp_path, secret, struct.pack(">QQ", 0, len(secret)), 256, 256)
    assert "neither PNG nor JPEG" in tiles_of(tmp_path, path, "0,0", status=1)


def test_an_mrf_with_more_pages_than_numbers_is_refused(tmp_path):
    """2 ** 60 pages of 16 bytes: the next one would be the first one again."""
    picture = png(256, 256, lambda *_: (1, 2, 3))
    path = mrf_of_another_file(tmp_path, picture, struct.pack(">QQ", 0, len(picture)), 2**30, 1)
    side = 2**29
    path.write_text(path.read_text().replace("GoogleMapsCompatible", "deep").replace("<mapcache>", f"""<mapcache>
        <grid name="deep"><size>1 1</size><extent>0 0 {side} {side}</extent><srs>EPSG:3857</srs><resolutions>1</resolutions></grid>"""))
    said = run("seed", "-c", path, "-t", "a", "--mode", "transfer", "--transfer", "out", "-z", "0,0", "--extent", f"0.2,{side - 0.8},0.8,{side - 0.2}",
               "--force", status=1)
    assert "its index is too large" in said


def slab(path, tiles, side=16, big=False):
    """A TIFF as ROK4 writes it: a head of 2048 bytes, the offsets, the sizes, the tiles, each a whole PNG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    offsets, sizes, body, at = [0] * side**2, [0] * side**2, b"", 2048 + 8 * side**2
    for (row, column), data in tiles.items():
        offsets[row * side + column], sizes[row * side + column] = at, len(data)
        body += data
        at += len(data)
    tags = [(256, 4, 1, 256 * side), (257, 4, 1, 256 * side), (258, 3, 1, 8), (259, 3, 1, 8), (262, 3, 1, 2), (277, 3, 1, 3), (284, 3, 1, 1), (322, 4, 1, 256),
            (323, 4, 1, 256), (324, 4, side**2, 2048), (325, 4, side**2, 2048 + 4 * side**2)]
    head = struct.pack("<2sHIH", b"II", 42, 8, len(tags)) + b"".join(struct.pack("<HHII", *tag) for tag in tags) + bytes(4)
    path.write_bytes(head.ljust(2048, b"\0") + struct.pack(f"<{2 * side**2}I", *offsets, *sizes) + body)


def test_slabs(tmp_path):
    """Names of slabs by the base of 36, folders by pairs of digits."""
    names = {(4, 3, 5): "4/00/00/00.tif", (12, 16 * 40 + 2, 16 * 37 + 1): "12/00/11/41.tif", (12, 4095, 4095): "12/00/77/33.tif"}
    for (z, x, y), name in names.items():
        slab(tmp_path / "DATA" / name, {(y % 16, x % 16): png(256, 256, lambda *_: (z, x % 256, y % 256))})
    path = config(tmp_path, f'<cache name="archive" type="rok4"><base>{tmp_path}/DATA/{{z}}</base></cache>')
    assert {place: pixel_of(data) for place, data in tiles_of(tmp_path, path, "4,4").items()} == {(4, 3, 5): (4, 3, 5)}
    for z, x, y in names:
        side = 2 * HALF / 2**z
        box = f"{x * side - HALF + 1},{HALF - (y + 1) * side + 1},{(x + 1) * side - HALF - 1},{HALF - y * side - 1}"
        (tmp_path / "out.db").unlink(missing_ok=True)
        run("seed", "-c", path, "-t", "a", "--mode", "transfer", "--transfer", "out", "-z", f"{z},{z}", "--extent", box, "--force")
        with sqlite3.connect(tmp_path / "out.db") as database:
            assert [pixel_of(data) for (data,) in database.execute("select data from tiles where x = ? and y = ?", (x, 2**z - 1 - y))] == [(z, x % 256, y % 256)]


def test_what_is_only_read_says_so(tmp_path):
    bundle(tmp_path / "b/L00/R0000C0000.bundle", {(0, 0): png(256, 256, lambda *_: (1, 2, 3))})
    path = config(tmp_path, f'<cache name="archive" type="bundle"><base>{tmp_path}/b</base></cache>')
    assert "is only read" in run("seed", "-c", path, "-t", "a", "--mode", "delete", "-z", "0,0", status=1)


def counted(path, *options):
    """level -> stored tiles, as `mapcache detail` counts them, of levels that have some."""
    lines = [line.split() for line in run("detail", "-c", path, "-t", "a", *options).splitlines()]
    return {int(words[0]): int(words[2]) for words in lines if words and words[0].isdigit() and words[2] != "0"}


def total(path):
    return [line for line in run("detail", "-c", path, "-t", "a", "-z", "0,1").splitlines() if line.startswith("stores:")][0]


def test_tiles_of_all_kinds_are_listed(tmp_path):
    """Also of deep levels, whose files are found by their names and not asked for one by one; files with other names are none."""
    places = [(0, 0, 0), (3, 5, 6), (12, 16 * 40 + 2, 16 * 37 + 1), (18, 2**17 + 3, 2**17 - 129)]
    layers, slabs = tmp_path / "a[b]*" / "_alllayers", tmp_path / "DATA"
    for z, x, y in places:
        data = png(256, 256, lambda *_: (z, x % 256, y % 256))
        bundle(layers / f"L{z:02}/R{y // 128 * 128:04x}C{x // 128 * 128:04x}.bundle", {(y % 128, x % 128): data})
    for name in "R0080C0080.bundle.bak", "R80C80.bundle", "RzC0.bundle":
        (layers / "L18" / name).write_bytes(b"no bundle")
    path = config(tmp_path, f'<cache name="archive" type="bundle"><base>{layers}</base></cache>')
    assert counted(path) == {z: 1 for z, *_ in places}
    assert total(path).startswith("stores: 4 tiles in ")
    assert len(tiles_of(tmp_path, path, "0,18")) == 4
    names = {places[1]: "3/00/00/00.tif", places[2]: "12/00/11/41.tif"}
    for (z, x, y), name in names.items():
        slab(slabs / name, {(y % 16, x % 16): png(256, 256, lambda *_: (z, x % 256, y % 256))})
    (slabs / "12/00/11/4.tif").write_bytes(b"no slab")
    path = config(tmp_path, f'<cache name="archive" type="rok4"><base>{slabs}/{{z}}</base></cache>')
    assert counted(path) == {3: 1, 12: 1}
    assert sorted(tiles_of(tmp_path, path, "0,18")) == sorted(names)


def test_pages_of_an_mrf_are_listed(tmp_path):
    picture(tmp_path / "world.tif", 1024)
    gdal.Translate(str(tmp_path / "w.mrf"), str(tmp_path / "world.tif"), format="MRF", creationOptions=["BLOCKSIZE=256", "COMPRESS=PNG", "INTERLEAVE=PIXEL", "UNIFORM_SCALE=2"])
    made = gdal.Open(str(tmp_path / "w.mrf"), gdal.GA_Update)
    made.BuildOverviews("NEAREST", [2, 4])
    del made
    path = config(tmp_path, f'<cache name="archive" type="mrf"><file>{tmp_path}/w.mrf</file></cache>')
    assert counted(path) == {0: 1, 1: 4, 2: 16} and len(tiles_of(tmp_path, path, "0,9")) == 21


@pytest.mark.parametrize("name", ["{z}/{x}-{y}.tif", "{z}/{div_x}/{inv_div_y}.tif", "{tileset}-{z}-{inv_div_x}_{inv_y}.tif"])
def test_tiles_of_tiff_files_are_listed(tmp_path, name):
    """By `mapcache detail`, copied and purged; those of deep levels, too."""
    path = config(tmp_path, f'<cache name="archive" type="tiff"><template x_fmt="%08d">{tmp_path}/t/{name}</template><xcount>3</xcount><ycount>2</ycount></cache>')
    path.write_text(path.read_text().replace("<format>PNG</format>", "<format>JPEG</format>").replace('<tileset name="a">', '<source name="s" type="dummy"/>'
                                                                                                    '<tileset name="a"><source>s</source><metatile>1 1</metatile>'))
    run("seed", "-c", path, "-t", "a", "-z", "0,2")
    run("seed", "-c", path, "-t", "a", "-z", "17,17", "--extent", "10,10,500,500")
    assert counted(path) == {0: 1, 1: 4, 2: 16, 17: 4} and total(path).startswith("stores: 25 tiles in ")
    run("purge", "-c", path, "-t", "a", "-z", "2,17", "--yes")
    assert counted(path) == {0: 1, 1: 4}


def metatile(folder, z, column, row, tiles, magic=b"META", count=64):
    """A file of renderd's (mod_tile's documentation of .meta files): tiles: (column, row) in it -> bytes."""
    head, body, index = struct.pack("<4s4i", magic, count, column, row, z), b"", []
    for i in range(64):
        data = tiles.get((i // 8, i % 8), b"")
        index.append((20 + 512 + len(body), len(data)) if data else (0, 0))
        body += data
    numbers = [((column >> 4 * i & 15) << 4) | (row >> 4 * i & 15) for i in (4, 3, 2, 1, 0)]
    path = folder.joinpath(str(z), *map(str, numbers)).with_suffix(".meta")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(head + b"".join(struct.pack("<2i", *place) for place in index) + body)
    return path


def test_metatiles_of_renderd(tmp_path):
    """Of several levels; the numbers of folders hold columns and rows of more than four bits."""
    colours = {(z, x, y): (10 * z, x % 256, y % 256) for z, x, y in [(0, 0, 0), (3, 5, 6), (8, 0, 0), (8, 127, 128), (8, 128, 127), (8, 255, 255), (8, 200, 3)]}
    files = {}
    for (z, x, y), colour in colours.items():
        files.setdefault((z, x // 8 * 8, y // 8 * 8), {})[x % 8, y % 8] = png(256, 256, lambda *_: colour)
    for (z, x, y), tiles in files.items():
        metatile(tmp_path / "default", z, x, y, tiles)
    path = config(tmp_path, f'<cache name="archive" type="mod_tile"><base>{tmp_path}/default</base></cache>')
    assert {place: pixel_of(data) for place, data in tiles_of(tmp_path, path, "0,8").items()} == colours


@pytest.mark.parametrize("damage, said", [
    (lambda data: data[:15], "beyond the end"), (lambda data: b"METZ" + data[4:], "compressed tiles"), (lambda data: data[:-10], "beyond the end"),
    (lambda data: data[:16] + struct.pack("<i", 1) + data[20:], "no metatile of its place"), (lambda data: data[:4] + struct.pack("<i", 16) + data[8:], "no metatile of its place"),
    (lambda data: data[:20] + b"\xff" * 512 + data[532:], "beyond the end")])
def test_damaged_metatiles_are_refused(tmp_path, damage, said):
    file = metatile(tmp_path / "d", 0, 0, 0, {(0, 0): png(256, 256, lambda *_: (1, 2, 3))})
    file.write_bytes(damage(file.read_bytes()))
    path = config(tmp_path, f'<cache name="archive" type="mod_tile"><base>{tmp_path}/d</base></cache>')
    assert said in tiles_of(tmp_path, path, "0,0", status=1)


@pytest.mark.parametrize("cache", [f'type="{kind}"><{element}>{{}}/x</{element}>' for kind, element in (("bundle", "base"), ("mrf", "file"), ("mod_tile", "base"), ("cog", "file"),
                                   ("pmtiles", "file"), ("tiff", "template"))] + ['type="rok4"><base>{}/{{z}}</base>', 'type="pmtiles"><url>http://127.0.0.1:9/x.pmtiles</url>',
                                   'type="cog"><url>http://127.0.0.1:9/x.tif</url>'])
def test_values_that_no_file_tells_are_warned_of(tmp_path, cache):
    """Else clients would get the same tile for all of them; with {dim} in the path nothing is wrong."""
    cache = cache.format(tmp_path).replace("/x</template>", "/{z}-{x}-{y}.tif</template><xcount>8</xcount><ycount>8</ycount>")
    path = tmp_path / "dimensions.xml"
    for told in False, "http" in cache or cache.replace(f"{tmp_path}/", f"{tmp_path}/{{dim}}/"):
        if told is True:
            break  # an address has no {dim}
        path.write_text(f"""<mapcache><cache name="archive" {told or cache}</cache><tileset name="a"><cache>archive</cache><grid>GoogleMapsCompatible</grid><format>PNG</format>
  <dimensions><dimension type="values" name="T" default="1"><value>1</value><value>2</value></dimension></dimensions></tileset>
  <service type="tms" enabled="true"/><lock_dir>{tmp_path}</lock_dir></mapcache>""")
        done = subprocess.run([BUILD / "bin/mapcache", "check", path], capture_output=True, text=True, timeout=patience(60))
        assert ("cannot tell the tiles of their values apart" in done.stdout + done.stderr) == (not told), (told, done.stdout + done.stderr)

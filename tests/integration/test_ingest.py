"""mapcache ingest: every pixel of every tile against a model; re-ingestion, formats, times, other systems."""
import json
import pathlib
import sqlite3
import subprocess
import time

import numpy
import pytest
from ingest_model import BUILD, LEVELS, SIDE, Site, World, compare, decode, picture, save
from osgeo import gdal, osr
from PIL import Image
from patience import patience
from postgres import Postgres

gdal.UseExceptions()
ORIGINS = "bottom-left", "top-left", "top-right", "bottom-right"


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def mosaic(folder, world, how="nearest", scale=1.0):
    """Six images that overlap, two with holes, one that reaches beyond the grid; drawn into the model too."""
    paths = []
    for i, (left, top, width, height) in enumerate([(100, 1000, 500, 300), (480, 1010, 300, 400), (90, 760, 420, 250),
                                                    (300, 900, 310, 210), (-50, 400, 200, 100), (450, 700, 64, 64)]):
        pixels = picture(width, height, i, holes=i in (1, 3))
        paths.append(save(folder / f"{i}.png", pixels, left, top, scale))
        world.draw(pixels, left, top, scale, how)
    return paths


@pytest.mark.parametrize("origin", ORIGINS)
def test_nearest_keeps_values_in_every_level(tmp_path, origin):
    site, world = Site(tmp_path, origin), World()
    site.good("png", "--resample", "nearest", *mosaic(tmp_path, world))
    compare(site.tiles("png"), world.overviews("nearest").tiles(origin))


@pytest.mark.parametrize("scale", [1.3717, 1.9031])
def test_interpolates_between_larger_pixels(site, tmp_path, scale):
    world = World()
    site.good("png", "-z", "0,5", *mosaic(tmp_path, world, "bilinear", scale))
    compare(site.tiles("png"), world.overviews().tiles(), tolerance=2)


def test_pixels_on_pixels_are_copied(site, tmp_path):
    pixels = picture(300, 200, 1)
    site.good("png", save(tmp_path / "a.png", pixels, 128, 640))
    compare(site.tiles("png"), World().draw(pixels, 128, 640).overviews().tiles())


def test_smaller_pixels_are_averaged(site, tmp_path):
    pixels = picture(640, 640, 2, holes=True)
    save(tmp_path / "a.png", pixels, 256, 896, scale=.25)
    site.good("png", "-z", "5,5", tmp_path / "a.png")
    blocks = pixels.reshape(160, 4, 160, 4, 4).transpose(0, 2, 1, 3, 4).reshape(160, 160, 16, 4).astype(float)
    data = (blocks[..., 3] > 0)
    mean = (blocks * data[..., None]).sum(2) / numpy.maximum(data.sum(-1), 1)[..., None]
    world = World()
    world.levels[5][2048 - 896:2048 - 736, 256:416] = (mean + .5).astype(numpy.uint8)
    compare(site.tiles("png"), world.tiles(), tolerance=1)


def test_levels_that_do_not_halve_come_from_the_images(tmp_path):
    site = Site(tmp_path, resolutions="20 8 4 2")
    pixels = picture(800, 800, 3)
    site.good("png", save(tmp_path / "a.png", pixels, 0, 1600, scale=2.0))
    tiles = site.tiles("png")
    assert {key[0] for key in tiles} == {0, 1, 2, 3}
    means = pixels.reshape(80, 10, 80, 10, 4).mean((1, 3))  # at 20 units a pixel
    for (z, x, y), data in tiles.items():
        if z == 0:
            found = decode(data)
            top = 1600 // 20 - (y + 1) * SIDE  # row of the means that the tile's first row is
            for row in range(max(0, -top), SIDE):
                if top + row < 80:
                    wanted = means[top + row, x * SIDE:(x + 1) * SIDE]
                    assert abs(found[row, :len(wanted)].astype(float) - wanted).max() <= 1.01


def test_threads_and_memory_change_nothing(tmp_path):
    """A little memory makes tiles wait in the scratch file; the stores are equal byte by byte."""
    paths = [save(tmp_path / f"{i}.png", picture(2048, 1024, i, holes=i == 1), 0, 2048 - 1024 * (i % 2))
             for i in range(4)]
    stores = []
    for name, options in (("one", ()), ("three", ("-n", "3")), ("small", ("--cachelimit", "8M", "-n", "2"))):
        (tmp_path / name).mkdir()
        site = Site(tmp_path / name)
        lines = site.good("mixed", "--json", *options, *paths).stdout.splitlines()
        last = json.loads(lines[-1])
        assert last["exit"] == 0 and last["done"] == 4 and (last["spooled"] > 0) == (name == "small")
        assert name != "small" or last["peak"] < 12 << 20
        stores.append(site.tiles("mixed"))
        assert last["tiles"] == len(stores[-1])
    assert stores[0] == stores[1] == stores[2] and len(stores[0]) == sum(4 ** z for z in range(LEVELS))


def test_a_corrected_image_updates_the_tiles_it_touches(site, tmp_path):
    world = World()
    paths = mosaic(tmp_path, world)
    site.good("png", *paths)
    before = site.tiles("png")
    corrected = picture(310, 210, 77)
    save(paths[3], corrected, 300, 900)
    site.good("png", paths[3])
    compare(site.tiles("png"), world.draw(corrected, 300, 900).overviews().tiles())
    changed = {key for key, data in site.tiles("png").items() if before.get(key) != data}
    for z, x, y in changed:
        side = SIDE * 2 ** (5 - z)
        assert x * side < 610 and (x + 1) * side > 300 and y * side < 900 and (y + 1) * side > 690
    rows = sqlite3.connect(site.folder / "png.sqlite3").execute("select count(*) from tiles").fetchone()[0]
    assert rows == len(before)


def test_a_finer_image_later_leaves_the_coarse_one_around_it(site, tmp_path):
    """Overviews keep what is stored where no finer level has data."""
    coarse, fine = picture(512, 512, 4), picture(100, 100, 5)
    site.good("png", save(tmp_path / "coarse.png", coarse, 0, 2048, scale=4.0))
    before = site.tiles("png")
    assert max(key[0] for key in before) == 3
    site.good("png", save(tmp_path / "fine.png", fine, 640, 1280))
    after = site.tiles("png")
    top = decode(after[0, 0, 0]).astype(int) - decode(before[0, 0, 0])
    assert abs(top).max() > 0 and (abs(top).max(2) > 0).sum() <= 16
    assert set(before) < set(after)


@pytest.mark.parametrize("tileset", ["jpeg", "mixed"])
def test_lossy_tiles_know_where_data_is(site, tmp_path, tileset):
    """Two runs give what one gives: the background around the first image is not taken for data of it."""
    left, right = picture(200, 200, 6), picture(200, 200, 7)
    for pixels in (left, right):  # grey: JPEG's colours are coarser than its pixels
        pixels[..., 1] = pixels[..., 2] = pixels[..., 0]
    a, b = save(tmp_path / "a.png", left, 100, 1000), save(tmp_path / "b.png", right, 300, 1000)
    site.good(tileset, "--background", "255,255,255", a)
    site.good(tileset, "--background", "255,255,255", b)
    world = World().draw(left, 100, 1000).draw(right, 300, 1000).overviews()
    for key, wanted in world.tiles().items():
        found = decode(site.tiles(tileset)[key])
        data = wanted[..., 3] > 0
        assert abs(found[data].astype(int) - wanted[data]).mean() < 4
        if not data.all():
            assert (found[~data].astype(int).mean() > 225) if tileset == "jpeg" else (found[~data][:, 3] == 0).all()


def test_turned_and_flipped_images(site, tmp_path):
    pixels = picture(120, 90, 8)
    path = save(tmp_path / "a.png", pixels, 0, 0)
    (tmp_path / "a.pgw").write_text("2\n0\n0\n2\n201\n401\n")  # rows from south to north
    site.good("png", "-z", "5,5", "--resample", "nearest", path)
    flipped = World().draw(numpy.flipud(pixels), 200, 400 + 180, 2.0)
    compare(site.tiles("png"), flipped.tiles())
    (tmp_path / "turned").mkdir()
    other = Site(tmp_path / "turned")
    (tmp_path / "a.pgw").write_text("0\n-2\n-2\n0\n1000\n1000\n")  # columns go south, rows west
    other.good("png", "-z", "5,5", "--resample", "nearest", path)
    turned = World().draw(numpy.rot90(pixels, -1), 1001 - 2 * 90, 1001, 2.0)
    compare(other.tiles("png"), turned.tiles())


def geotiff(path, pixels, epsg, left, top, scale, options=(), bands=3, palette=None, nothing=None):
    raster = gdal.GetDriverByName("GTiff").Create(str(path), pixels.shape[1], pixels.shape[0], bands, options=options)
    raster.SetGeoTransform((left, scale, 0, top, 0, -scale))
    system = osr.SpatialReference()
    system.ImportFromEPSG(epsg)
    raster.SetProjection(system.ExportToWkt())
    if palette is not None:
        table = gdal.ColorTable()
        for i, color in enumerate(palette):
            table.SetColorEntry(i, (*color, 255))
        raster.GetRasterBand(1).SetColorTable(table)
    if nothing is not None:
        raster.GetRasterBand(1).SetNoDataValue(nothing)
    for band in range(bands):
        raster.GetRasterBand(band + 1).WriteArray(pixels[..., band])
    return path


@pytest.mark.parametrize("options", [(), ("TILED=YES", "BLOCKXSIZE=64", "BLOCKYSIZE=64"), ("COMPRESS=LZW", "PREDICTOR=2"),
                                     ("COMPRESS=DEFLATE", "INTERLEAVE=BAND"), ("BIGTIFF=YES", "ENDIANNESS=BIG")])
def test_forms_of_tiff(site, tmp_path, options):
    pixels = picture(210, 130, 9)
    geotiff(tmp_path / "a.tif", pixels, 3857, 77, 900, 1, options)
    site.good("png", tmp_path / "a.tif")
    compare(site.tiles("png"), World().draw(pixels, 77, 900).overviews().tiles())


def test_grey_and_alpha_tiff(site, tmp_path):
    pixels = picture(64, 64, 10)
    pixels[..., 1] = pixels[..., 2] = pixels[..., 0]
    geotiff(tmp_path / "grey.tif", pixels, 3857, 64, 128, 1, bands=1)
    site.good("png", "-z", "5,5", tmp_path / "grey.tif")
    compare(site.tiles("png"), World().draw(pixels, 64, 128).tiles())
    holed = picture(64, 64, 11, holes=True)
    geotiff(tmp_path / "alpha.tif", holed, 3857, 64, 128, 1, ("ALPHA=YES",), bands=4)
    site.good("png", "-z", "5,5", tmp_path / "alpha.tif")
    compare(site.tiles("png"), World().draw(pixels, 64, 128).draw(holed, 64, 128).tiles())


@pytest.mark.parametrize("nothing", [0, 2])
def test_the_no_data_of_a_palette_is_an_index(site, tmp_path, nothing):
    """Black is a class like others, whichever index means that there is no data."""
    colors = [(255, 0, 0), (0, 0, 0), (1, 2, 3), (2, 2, 2)]
    classes = numpy.arange(64 * 64, dtype=numpy.uint8).reshape(64, 64) // 5 % 4
    geotiff(tmp_path / "a.tif", classes[..., None], 3857, 64, 128, 1, bands=1, palette=colors, nothing=nothing)
    site.good("png", "-z", "5,5", "--resample", "nearest", tmp_path / "a.tif")
    wanted = numpy.array([(*color, 255) for color in colors], numpy.uint8)[classes]
    wanted[classes == nothing] = 0
    compare(site.tiles("png"), World().draw(wanted, 64, 128).tiles())


def test_another_system_is_transformed_as_gdal_does(tmp_path):
    """Swiss coordinates on the web's grid: against gdalwarp, to the pixel nearly everywhere."""
    grid = """<grid name="own"><srs>EPSG:3857</srs><extent>800000 5900000 931072 6031072</extent><units>m</units>
        <size>256 256</size><resolutions>128 64</resolutions></grid>"""
    site = Site(tmp_path, grid=grid)
    pixels = picture(1200, 1200, 12)
    source = geotiff(tmp_path / "swiss.tif", pixels, 2056, 2600000, 1240000, 60)
    site.good("png", "-z", "1,1", "--resample", "bilinear", "-n", "2", source)
    warped = gdal.Warp("", str(source), format="MEM", dstSRS="EPSG:3857", resampleAlg="bilinear", xRes=64, yRes=64,
                       outputBounds=(800000, 5900000, 931072, 6031072), dstAlpha=True, errorThreshold=0).ReadAsArray()
    found = numpy.zeros((2048, 2048, 4), numpy.uint8)
    for (_, x, y), data in site.tiles("png").items():
        found[2048 - (y + 1) * 256:2048 - y * 256, x * 256:(x + 1) * 256] = decode(data)
    wanted = warped.transpose(1, 2, 0)
    data = (found[..., 3] > 0) & (wanted[..., 3] > 0)
    assert data.sum() > 500000 and ((found[..., 3] > 0) != (wanted[..., 3] > 0)).sum() < 10000
    difference = abs(found[data].astype(int) - wanted[data])[:, :3].max(1)
    assert (difference <= 6).mean() > .995


DIMENSION = """<dimensions><dimension type="time" name="TIME" default="2024-05-01"><dbfile>{folder}/times.sqlite3</dbfile>
    <validate_query>select day from times where start &gt;= :start_timestamp and start &lt; :end_timestamp</validate_query>
    <list_query>select day from times order by day</list_query>
    <insert_query>insert or replace into times values(:dim, :start_timestamp, :minx, :maxx, :tileset)</insert_query>
    </dimension></dimensions>"""


def test_times_become_values_that_the_server_answers(folder, apache):
    site = Site(folder, dimensions=DIMENSION.format(folder=folder))
    with sqlite3.connect(folder / "times.sqlite3") as db:
        db.execute("create table times(day text primary key, start real, minx real, maxx real, tileset text)")
    days = {}
    for day in (1, 2, 17):
        pixels = picture(200, 100, day)
        days[f"2024-05-{day:02}"] = pixels
        save(folder / f"S2_202405{day:02}_b.png", pixels, 100, 500)
    site.good("png", "--time", "S2_%Y%m%d", *sorted(folder.glob("S2_*.png")))
    with sqlite3.connect(folder / "times.sqlite3") as db:
        rows = db.execute("select * from times order by day").fetchall()
    assert [row[0] for row in rows] == sorted(days) and rows[0][1:] == (1714521600, 100, 300, "png")
    for day, pixels in days.items():
        compare(site.tiles("png", day), World().draw(pixels, 100, 500).overviews().tiles())
    for path in (folder, *folder.iterdir()):
        path.chmod(0o777)
    web = apache(f"MapCacheAlias /mapcache {site.config}")
    for day, pixels in days.items():
        reply = web.get(f"/mapcache/wmts/?SERVICE=WMTS&REQUEST=GetTile&VERSION=1.0.0&LAYER=png&STYLE=default"
                        f"&TILEMATRIXSET=own&TILEMATRIX=5&TILEROW=25&TILECOL=2&FORMAT=image/png&TIME={day}")
        assert reply.status == 200 and reply.body == site.tiles("png", day)[5, 2, 6]
    assert "2024-05-17" in web.get("/mapcache/wmts/1.0.0/WMTSCapabilities.xml").body.decode()


def test_times_of_a_list_and_unknown_ones(tmp_path):
    dimensions = ('<dimensions><dimension type="values" name="TIME" default="2024" time="true"><value>2024</value>'
                  '<value>2025</value></dimension><dimension type="values" name="BAND" default="red"><value>red</value>'
                  "<value>nir</value></dimension></dimensions>")
    site = Site(tmp_path, dimensions=dimensions)
    paths = [save(tmp_path / f"{i}.png", picture(64, 64, i), 64, 128) for i in range(3)]
    (tmp_path / "list").write_text(f"{paths[0]}\t2024\n\n{paths[1]}\t2025\n{paths[2]}\t2030\n")
    result = site.good("png", "--list", tmp_path / "list", "-z", "5,5", "-D", "BAND=nir")
    assert 'dimension TIME does not know "2030"' in result.stderr and "2024" not in result.stderr
    for i, day in enumerate(("2024", "2025", "2030")):
        assert (decode(site.tiles("png", f"nir#{day}")[5, 1, 1]) == picture(64, 64, i)).all()
    bad = [tmp_path / f"bad{i}.png" for i in range(2)]
    for path in bad:
        path.write_bytes(b"nonsense")
    fine = save(tmp_path / "fine.png", picture(64, 64, 9), 64, 128, scale=.5)
    (tmp_path / "list").write_text(f"{bad[0]}\tx\"y\n{paths[0]}\t2024\n{bad[1]}\t2024\n{fine}\t2025\n")
    result = site.ingest("png", "--list", tmp_path / "list", "--json")
    assert result.returncode == 1 and [result.stderr.count(str(path)) for path in bad] == [1, 1]
    result = site.ingest("png", "--list", tmp_path / "list", "--skip-bad", "--json")
    assert result.returncode == 3 and [result.stderr.count(str(path)) for path in bad] == [1, 1]
    last = json.loads(result.stdout.splitlines()[-1])
    assert (last["bad"], last["done"], last["images"], last["exit"]) == (2, 2, 2, 3)
    result = site.ingest("png", "--time", "x%Y", paths[0])
    assert result.returncode == 1 and "no time as in" in result.stderr


@pytest.mark.parametrize("kind", ["disk", "geopackage"])
def test_other_stores(tmp_path, kind):
    where = f"<base>{tmp_path}/tiles</base>" if kind == "disk" else f"<dbfile>{tmp_path}/{{tileset}}.gpkg</dbfile>"
    site = Site(tmp_path, cache="".join(f'<cache name="{name}" type="{kind}">{where}</cache>'
                                        for name in ("png", "jpeg", "mixed")))
    pixels = picture(300, 200, 13)
    first, last = (json.loads(site.good("png", "--json", path).stdout.splitlines()[-1])
                   for path in (save(tmp_path / "a.png", pixels, 128, 640), save(tmp_path / "b.png", pixels, 400, 650)))
    assert 0 == first["store_before"] < first["store_after"] == last["store_before"] <= last["store_after"]
    if kind == "disk":
        assert last["store_after"] == sum(path.stat().st_blocks * 512 for path in (tmp_path / "tiles").rglob("*.png"))
        assert len(list((tmp_path / "tiles").rglob("*.png"))) == len(
            World().draw(pixels, 128, 640).draw(pixels, 400, 650).overviews().tiles())
    else:
        raster = gdal.OpenEx(str(tmp_path / "png.gpkg"), allowed_drivers=["GPKG"])
        band = raster.ReadAsArray()
        assert abs(band[:3, 2048 - 640:2048 - 440, 128:400].transpose(1, 2, 0).astype(int) -
                   pixels[:, :272, :3]).max() == 0


def test_postgresql(tmp_path):
    with Postgres() as database:
        store = f'type="postgresql"><connection>{database.connection()}</connection><table>tiles</table></cache>'
        site = Site(tmp_path, cache="".join(f'<cache name="{name}" {store}' for name in ("png", "jpeg", "mixed")))
        world = World()
        paths = mosaic(tmp_path, world)
        first = json.loads(site.good("png", "-n", "2", "--json", *paths[:4]).stdout.splitlines()[-1])
        last = json.loads(site.good("png", "--json", *paths[4:]).stdout.splitlines()[-1])
        assert 0 <= first["store_before"] < first["store_after"] == last["store_before"] < last["store_after"]
        rows = database.sql("select z, x, y, encode(data, 'hex') from tiles")
        stored = {tuple(map(int, row.split("|")[:3])): bytes.fromhex(row.split("|")[3]) for row in rows}
        compare(stored, world.overviews().tiles())


def test_a_large_image_goes_by_in_strips(tmp_path):
    """25 million pixels, in the memory of some rows and of its unfinished tiles."""
    Image.MAX_IMAGE_PIXELS = None
    row = picture(5000, 64, 15)[..., :3]
    Image.fromarray(numpy.tile(row, (79, 1, 1))[:5000]).save(tmp_path / "a.png", compress_level=1)
    (tmp_path / "a.pgw").write_text("0.4\n0\n0\n-0.4\n0.2\n2047.8\n")
    site = Site(tmp_path)
    command = site.command("png", "-z", "3,5", "--cachelimit", "8M", "--json", tmp_path / "a.png")
    peak = 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            peak = max([peak, *(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))])
            time.sleep(0.01)
    assert process.returncode == 0
    plain = "MAPCACHE_SANITIZE:STRING=\n" in (BUILD / "CMakeCache.txt").read_text()
    assert 0 < peak < 90 << 10 or not plain
    found = decode(site.tiles("png")[5, 3, 30])
    means = numpy.tile(row, (79, 1, 1))[:5000].reshape(1000, 5, 1000, 5, 3).mean((1, 3))  # of 2 x 2 pixels of the level
    assert abs(found.reshape(32, 2, 32, 2, 4)[..., :3].mean((1, 3)) - means[32:64, 96:128]).mean() < 1


def test_dry_run_tells_and_changes_nothing(site, tmp_path):
    path = save(tmp_path / "a.png", picture(300, 200, 14), 128, 640)
    result = site.good("png", "-N", path)
    assert "levels 0 to 5" in result.stdout and not (tmp_path / "png.sqlite3").exists()
    plan = json.loads(site.good("png", "-N", "--json", path).stdout)
    assert plan["extent"] == [128, 440, 428, 640] and plan["levels"][5]["tiles"] == 5 * 4
    result = site.good("png", path)
    assert "0.0 MB before" in result.stdout


def test_a_dry_run_counts_each_tile_once(site, tmp_path):
    """Three images that touch the same tiles, one that shares none but those at the top."""
    paths = [save(tmp_path / f"{name}.png", picture(300, 200, 14), left, top) for name, left, top in
             (("a", 128, 640), ("b", 128, 640), ("c", 192, 704), ("d", 1500, 1900))]
    plan = json.loads(site.good("png", "-N", "--json", *paths).stdout)
    expected = {level["level"]: level["tiles"] for level in plan["levels"]}
    assert expected[0] == 1
    shown = site.good("png", "-N", *paths).stdout
    assert [f"{level:6} {tiles:14}" in shown for level, tiles in expected.items()] == [True] * 6
    site.good("png", *paths)
    stored = [z for z, _, _ in site.tiles("png")]
    assert expected == {level: stored.count(level) for level in range(6)}


def test_an_image_without_a_crs_is_refused_unless_told(site, tmp_path):
    path, known = (save(tmp_path / f"{name}.png", picture(100, 100, 3), left, 640) for name, left in (("a", 128), ("b", 512)))
    known.with_suffix(".prj").write_text("EPSG:3857")
    plain = [word for word in site.command("png", path, known) if word not in ("--srs", "EPSG:3857")]
    result = subprocess.run(plain, capture_output=True, text=True, timeout=patience(60), check=False)
    assert result.returncode == 1 and f"{path}: nothing says which CRS it is in: --srs has to (--srs EPSG:3857" in result.stderr
    assert str(known) not in result.stderr and not (tmp_path / "png.sqlite3").exists()
    result = site.good("png", "--srs", "EPSG:3857", path, known)
    assert "1 of them do not say which CRS they are in: it is taken to be EPSG:3857 (--srs)" in result.stdout
    assert json.loads(site.good("png", "-N", "--json", path, known).stdout)["without_crs"] == 1
    result = site.good("png", *[word for word in plain[6:] if word == str(known)])
    assert "do not say" not in result.stdout



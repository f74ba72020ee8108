"""GeoPackage caches: what GDAL reads from them is what was drawn, whatever the grid's origin; and their defences."""
import os
import pathlib
import sqlite3
import subprocess

import numpy
import pytest
from fastcgi import Server
from osgeo import gdal, osr
from patience import patience
from osgeo_utils.samples import validate_gpkg

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("MAPCACHE_BUILD", ROOT / "build" / "release"))
SEED, CHECK = str(BUILD / "bin" / "mapcache_seed"), str(BUILD / "bin" / "mapcache")
ORIGINS = "bottom-left", "top-left", "top-right", "bottom-right"
HALF = 20037508.342789248
gdal.UseExceptions()


def picture(path, side=512):
    """An image of the world in which no two places are alike."""
    raster = gdal.GetDriverByName("GTiff").Create(str(path), side, side, 3)
    raster.SetGeoTransform((-HALF, 2 * HALF / side, 0, HALF, 0, -2 * HALF / side))
    mercator = osr.SpatialReference()
    mercator.ImportFromEPSG(3857)
    raster.SetProjection(mercator.ExportToWkt())
    rows, columns = numpy.mgrid[:side, :side]
    for band, values in enumerate((columns // 2, rows // 2, (columns * 7 + rows * 13) % 256)):
        raster.GetRasterBand(band + 1).WriteArray(values.astype(numpy.uint8))
    return numpy.dstack([columns // 2, rows // 2, (columns * 7 + rows * 13) % 256]).astype(numpy.uint8)


def config(folder, grid, extra=""):
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache>
  {grid}
  <source name="world" type="gdal"><data>{folder}/world.tif</data></source>
  <cache name="store" type="geopackage"><dbfile>{folder}/{{tileset}}-{{grid}}.gpkg</dbfile>{extra}</cache>
  <tileset name="world"><source>world</source><cache>store</cache><grid>own</grid><format>PNG</format><metatile>2 2</metatile></tileset>
  <service type="wmts" enabled="true"/>
  <lock_dir>{folder}</lock_dir>
</mapcache>
""")
    return path


def grid_of(origin, extent=f"{-HALF} {-HALF} {HALF} {HALF}", resolutions=f"{HALF / 128} {HALF / 256}"):
    return (f'<grid name="own"><srs>EPSG:3857</srs><extent>{extent}</extent><units>m</units><size>256 256</size>'
            f"<resolutions>{resolutions}</resolutions><origin>{origin}</origin></grid>")


def seed(path, *options):
    return subprocess.run([SEED, "-c", str(path), "-t", "world", *options], capture_output=True, text=True, timeout=patience(100))


@pytest.mark.parametrize("origin", ORIGINS)
def test_gdal_reads_what_was_drawn(tmp_path, origin):
    drawn = picture(tmp_path / "world.tif")
    result = seed(config(tmp_path, grid_of(origin)))
    assert result.returncode == 0, result.stdout + result.stderr
    raster = gdal.OpenEx(str(tmp_path / "world-own.gpkg"), allowed_drivers=["GPKG"])
    assert (raster.RasterXSize, raster.RasterYSize) == (512, 512)
    assert raster.GetGeoTransform() == pytest.approx((-HALF, HALF / 256, 0, HALF, 0, -HALF / 256))
    assert osr.SpatialReference(raster.GetProjection()).GetAuthorityCode(None) == "3857"
    read = numpy.dstack([raster.GetRasterBand(band).ReadAsArray() for band in (1, 2, 3)])
    assert numpy.array_equal(read, drawn)
    assert raster.GetRasterBand(1).GetOverviewCount() == 1


def test_the_file_is_a_geopackage(tmp_path):
    picture(tmp_path / "world.tif")
    assert seed(config(tmp_path, grid_of("top-left"), "<table>the \"tiles\" of 'it'</table>")).returncode == 0
    with sqlite3.connect(tmp_path / "world-own.gpkg") as db:
        assert db.execute("pragma application_id").fetchone() == (0x47504B47,)
        assert db.execute("pragma user_version").fetchone() == (10300,)
        assert db.execute("pragma integrity_check").fetchone() == ("ok",)
        assert db.execute("pragma foreign_key_check").fetchall() == []
        assert db.execute("select count(*) from gpkg_spatial_ref_sys where srs_id in (-1, 0, 4326, 3857)").fetchone() == (4,)
        assert db.execute("select table_name, data_type, identifier, srs_id from gpkg_contents").fetchall() == [
            ("the \"tiles\" of 'it'", "tiles", "world", 3857)]
        assert db.execute("select zoom_level, matrix_width, matrix_height from gpkg_tile_matrix order by 1").fetchall() == [
            (0, 1, 1), (1, 2, 2)]
        assert db.execute("""select count(*) from "the ""tiles"" of 'it'" """).fetchone() == (5,)


# Extent and resolutions; what of the standard's requirements cannot be kept with them; what GDAL takes for the picture.
PYRAMIDS = {
    "halved": (f"{-HALF} {-HALF} {HALF} {HALF}", [HALF / 128, HALF / 256, HALF / 512], [], (1024, 1024)),
    "trimmed": ("0 6000000 1300000 7200000", [4000, 2000, 1000, 500], [], (2600, 2400)),
    "fitting": ("0 6000000 1300000 7200000", [5000, 2500, 1000, 500], [], (2600, 2400)),
    "uneven": ("0 6000000 1300000 7200000", [5000, 3000, 700, 500], [45], (2600, 2400)),
    "thirds": ("0 0 6912000 6912000", [27000, 9000, 3000], [], (2304, 2304)),
}


@pytest.mark.parametrize("pyramid", PYRAMIDS)
def test_the_standards_requirements(tmp_path, pyramid):
    """By the checker that comes with GDAL."""
    extent, resolutions, broken, size = PYRAMIDS[pyramid]
    picture(tmp_path / "world.tif")
    path = config(tmp_path, grid_of("top-left", extent, " ".join(map(str, resolutions))))
    checked = subprocess.run([CHECK, "check", str(path)], capture_output=True, text=True, timeout=patience(60))
    assert checked.returncode == (2 if broken else 0) and ("requirement 45" in checked.stdout + checked.stderr) == bool(broken)
    assert seed(path).returncode == 0
    file = tmp_path / "world-own.gpkg"
    checker = validate_gpkg.GPKGChecker(str(file), abort_at_first_error=False)
    try:
        checker.check()
    except validate_gpkg.GPKGCheckException:
        pass
    assert [requirement for requirement, _ in checker.errors] == broken, checker.errors
    raster = gdal.OpenEx(str(file), allowed_drivers=["GPKG"])
    left, _, _, top = map(float, extent.split())
    assert (raster.RasterXSize, raster.RasterYSize) == size
    assert raster.GetGeoTransform() == pytest.approx((left, resolutions[-1], 0, top, 0, -resolutions[-1]))
    assert raster.GetRasterBand(1).GetOverviewCount() == len(resolutions) - 1
    drawn = gdal.Warp("", str(tmp_path / "world.tif"), format="MEM", width=size[0], height=size[1], resampleAlg="near",
                      outputBounds=(left, top - size[1] * resolutions[-1], left + size[0] * resolutions[-1], top))
    for band in 1, 2:
        difference = raster.GetRasterBand(band).ReadAsArray().astype(int) - drawn.GetRasterBand(band).ReadAsArray().astype(int)
        assert numpy.abs(difference).max() <= 1


def test_a_file_of_another_version_keeps_it(tmp_path):
    """And a table of its own; only the levels and tiles of ours are added."""
    picture(tmp_path / "world.tif")
    gdal.Translate(str(tmp_path / "world-own.gpkg"), str(tmp_path / "world.tif"), format="GPKG",
                   creationOptions=["RASTER_TABLE=theirs", "VERSION=1.2"])
    assert seed(config(tmp_path, grid_of("top-left"))).returncode == 0
    with sqlite3.connect(tmp_path / "world-own.gpkg") as db:
        assert db.execute("pragma user_version").fetchone() == (10200,)
        assert db.execute("select count(*) from tiles").fetchone() == (5,)
    db.close()


def test_tiles_of_another_pyramid_are_not_served(tmp_path, build):
    """GDAL's own files begin where the picture does: its numbers of tiles mean other places."""
    picture(tmp_path / "world.tif")
    part = gdal.Translate("", str(tmp_path / "world.tif"), format="MEM", projWin=(0, HALF / 2, HALF / 2, 0))
    gdal.Translate(str(tmp_path / "world-own.gpkg"), part, format="GPKG", creationOptions=["RASTER_TABLE=tiles"])
    path = config(tmp_path, grid_of("top-left"))
    path.write_text(path.read_text().replace("<source>world</source>", ""))
    server = Server(build, path, tmp_path)
    try:
        for _ in range(2):
            answer = server.get("/wmts/1.0.0/world/default/own/0/0/0.png")
            assert answer.status == 500, (answer.status, answer.body[:80])
    finally:
        server.stop()


def test_vector_tiles_are_refused(tmp_path):
    path = config(tmp_path, grid_of("top-left"))
    path.write_text(path.read_text().replace("<format>PNG</format>", "<format>vector</format>").replace(
        "<tileset", '<format name="vector" type="MVT"/><tileset', 1))
    result = subprocess.run([CHECK, "check", str(path)], capture_output=True, text=True, timeout=patience(60))
    assert result.returncode == 1 and "a cache of type geopackage" in result.stdout + result.stderr, result.stdout + result.stderr


def test_another_pyramid_is_refused_and_the_file_stays_as_it_is(tmp_path):
    picture(tmp_path / "world.tif")
    assert seed(config(tmp_path, grid_of("top-left"))).returncode == 0
    before = (tmp_path / "world-own.gpkg").read_bytes()
    other = config(tmp_path, grid_of("top-left", extent=f"{-HALF} {-HALF} 0 0"))
    result = seed(other, "-f")
    assert result.returncode != 0 and "tile matrix set" in result.stdout + result.stderr, result.stdout + result.stderr
    assert (tmp_path / "world-own.gpkg").read_bytes() == before


def test_a_grid_without_a_common_corner_is_refused(tmp_path):
    """From the lower left, levels whose tiles do not end with the extent have different upper edges."""
    path = config(tmp_path, grid_of("bottom-left", resolutions="100000 70000 1000"))
    result = subprocess.run([CHECK, "check", str(path)], capture_output=True, text=True, timeout=patience(60))
    assert result.returncode == 1 and "north-west corners" in result.stdout + result.stderr, result.stdout + result.stderr
    path = config(tmp_path, grid_of("top-left", resolutions="100000 70000 1000"))
    result = subprocess.run([CHECK, "check", str(path)], capture_output=True, text=True, timeout=patience(60))
    assert "north-west corners" not in result.stdout + result.stderr


def test_a_grid_that_has_got_another_level(tmp_path):
    """And a second table in the same file, of the same tileset."""
    picture(tmp_path / "world.tif")
    assert seed(config(tmp_path, grid_of("top-left"))).returncode == 0
    finer = grid_of("top-left", resolutions=f"{HALF / 128} {HALF / 256} {HALF / 512}")
    result = seed(config(tmp_path, finer))
    assert result.returncode == 0 and "failed" not in result.stdout + result.stderr, result.stdout + result.stderr
    result = seed(config(tmp_path, finer, "<table>second</table>"))
    assert result.returncode == 0 and "failed" not in result.stdout + result.stderr, result.stdout + result.stderr
    with sqlite3.connect(tmp_path / "world-own.gpkg") as db:
        assert db.execute("select zoom_level, matrix_width from gpkg_tile_matrix where table_name = 'tiles' order by 1").fetchall() == [
            (0, 1), (1, 2), (2, 4)]
        assert db.execute("select table_name, identifier from gpkg_contents order by 1").fetchall() == [("second", "second"), ("tiles", "world")]
        assert db.execute("select (select count(*) from tiles), (select count(*) from second)").fetchone() == (21, 21)
        assert db.execute("pragma foreign_key_check").fetchall() == []
    raster = gdal.OpenEx(f"GPKG:{tmp_path}/world-own.gpkg:tiles")
    assert (raster.RasterXSize, raster.RasterYSize) == (1024, 1024)

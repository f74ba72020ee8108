"""tiff caches: GDAL and Debian's MapCache read what ours has written, and ours reads what GDAL has written."""
import io
import json
import os
import pathlib
import sqlite3
import subprocess
import urllib.request

import numpy
import pytest
from drop_in import PEER_SEED
from http_stores import KEYS
from osgeo import gdal, osr
from patience import patience
from PIL import Image
from test_geopackage import HALF, picture
from test_http_stores import own_store  # noqa: F401
from test_pmtiles_http import web  # noqa: F401

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("MAPCACHE_BUILD", ROOT / "build" / "release"))
OURS = str(BUILD / "bin" / "mapcache_seed")
gdal.UseExceptions()


def config(folder, source=True):
    path = folder / "mapcache.xml"
    tileset = '<tileset name="{0}">{2}<cache>{1}</cache><grid>GoogleMapsCompatible</grid><format>JPEG</format><metatile>2 2</metatile></tileset>'
    path.write_text(f"""<mapcache>
  {f'<source name="world" type="gdal"><data>{folder}/world.tif</data></source>' if source else ""}
  <cache name="tiff" type="tiff"><template>{folder}/tiff/{{tileset}}-{{z}}-{{x}}-{{y}}.tif</template><xcount>4</xcount><ycount>4</ycount></cache>
  <cache name="sqlite" type="sqlite3"><dbfile>{folder}/{{tileset}}.db</dbfile></cache>
  {tileset.format("world", "tiff", "<source>world</source>" if source else "")}
  {tileset.format("ours", "sqlite", "")}{tileset.format("theirs", "sqlite", "")}
  <service type="wmts" enabled="true"/><lock_dir>{folder}</lock_dir>
</mapcache>
""")
    return path


def seed(program, path, *options):
    result = subprocess.run([str(program), "-c", str(path), "-t", "world", "-g", "GoogleMapsCompatible", *options], capture_output=True, text=True, timeout=patience(100))
    assert result.returncode == 0, result.stdout + result.stderr


def stored(folder, tileset):
    with sqlite3.connect(folder / f"{tileset}.db") as database:
        return {(z, x, y): data for z, x, y, data in database.execute("select z, x, y, data from tiles")}


def pixels(data):
    return numpy.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)


@pytest.fixture
def filled(tmp_path):
    picture(tmp_path / "world.tif")
    seed(OURS, config(tmp_path), "-z", "0,3")
    seed(OURS, config(tmp_path, source=False), "-z", "0,3", "-m", "transfer", "-x", "ours", "-f")
    assert len(stored(tmp_path, "ours")) == 85
    return tmp_path


def test_debians_mapcache_reads_what_ours_wrote(filled):
    seed(PEER_SEED, config(filled, source=False), "-z", "0,3", "-m", "transfer", "-x", "theirs", "-f")
    assert stored(filled, "theirs") == stored(filled, "ours")


def test_gdal_reads_what_ours_wrote(filled):
    """At the right place, with the right colours."""
    tiles = stored(filled, "ours")
    names = sorted(path.name for path in (filled / "tiff").glob("*.tif"))
    assert names == sorted(["world-0-0-0.tif", "world-1-0-0.tif", "world-2-0-0.tif", *(f"world-3-{x}-{y}.tif" for x in (0, 4) for y in (0, 4))])
    for name in names:
        z, x, y = map(int, name[6:-4].split("-"))
        raster = gdal.Open(str(filled / "tiff" / name))
        side = 2 * HALF / 2**z
        rows = raster.RasterYSize // 256
        assert raster.GetGeoTransform() == pytest.approx((x * side - HALF, side / 256, 0, (y + rows) * side - HALF, 0, -side / 256), abs=1e-6)
        reference = osr.SpatialReference(raster.GetProjection())
        assert reference.GetAuthorityCode(None) == "3857"
        read = raster.ReadAsArray().transpose(1, 2, 0).astype(int)
        for column in range(raster.RasterXSize // 256):
            for row in range(rows):
                tile = pixels(tiles[z, x + column, y + rows - 1 - row])
                part = read[256 * row:256 * row + 256, 256 * column:256 * column + 256]
                assert numpy.abs(part - tile).max() <= 4, (name, column, row)


@pytest.mark.parametrize("options", [[], ["BIGTIFF=YES"], ["ENDIANNESS=BIG"], ["PHOTOMETRIC=YCBCR"], ["COPY_SRC_OVERVIEWS=YES"]])
def test_files_of_gdal_are_read(tmp_path, options):
    """With the JPEG tables that their tiles share."""
    drawn = picture(tmp_path / "world.tif", 1024)
    (tmp_path / "tiff").mkdir()
    source = gdal.Open(str(tmp_path / "world.tif"), gdal.GA_Update)
    source.BuildOverviews("average", [2])
    file = tmp_path / "tiff/world-2-0-0.tif"
    gdal.GetDriverByName("GTiff").CreateCopy(str(file), source, options=["TILED=YES", "COMPRESS=JPEG", "JPEG_QUALITY=95", *options])
    seed(OURS, config(tmp_path, source=False), "-z", "2,2", "-m", "transfer", "-x", "ours", "-f")
    read = gdal.Open(str(file)).ReadAsArray().transpose(1, 2, 0).astype(int)
    assert numpy.abs(read - drawn).mean() < 40
    tiles = stored(tmp_path, "ours")
    assert len(tiles) == 16
    for (_, x, y), data in tiles.items():
        part = read[256 * (3 - y):256 * (4 - y), 256 * x:256 * (x + 1)]
        assert numpy.abs(part - pixels(data)).max() <= 4  # also RGB, which a JPEG alone does not say


def far_config(folder, template, storage):
    path = config(folder, source=False)
    text = path.read_text()
    begin, end = text.index('<cache name="tiff"'), text.index("</cache>") + len("</cache>")
    path.write_text(text[:begin] + f'<cache name="tiff" type="tiff"><template>{template}</template><xcount>4</xcount><ycount>4</ycount>{storage}</cache>' + text[end:])
    return path


def transferred(folder, path, environment=None):
    (folder / "ours.db").unlink(missing_ok=True)
    result = subprocess.run([OURS, "-c", str(path), "-t", "world", "-g", "GoogleMapsCompatible", "-z", "0,3", "-m", "transfer", "-x", "ours", "-f"],
                            capture_output=True, text=True, timeout=patience(100), env={**os.environ, **(environment or {})})
    return result.stdout + result.stderr if result.returncode else stored(folder, "ours")


@pytest.fixture
def files(folder):
    """Tiles in TIFFs below folder/tiff, and what they are."""
    picture(folder / "world.tif")
    seed(OURS, config(folder), "-z", "0,3")
    return transferred(folder, config(folder, source=False))


def test_files_behind_a_web_server(files, folder, web):  # noqa: F811
    """By ranges; a name with a blank; headers of a file; what is not there is a miss, what is refused an error."""
    (folder / "tiff").rename(folder / "www/ti ff")
    storage = f'<storage type="rest"><connection_timeout>5</connection_timeout><timeout>20</timeout><header_file>{folder}/headers</header_file></storage>'
    (folder / "headers").write_text("X-Who: tiles\n")
    template = f"{web.address}/ti ff/{{tileset}}-{{z}}-{{x}}-{{y}}.tif"
    assert len(files) == 85 and transferred(folder, far_config(folder, template, storage)) == files
    assert {status for status, *_ in web.asked()} == {"206"}
    (folder / "www/ti ff/world-2-0-0.tif").unlink()
    assert len(transferred(folder, far_config(folder, template, storage))) == 85 - 16
    assert "does not let us read" in transferred(folder, far_config(folder, f"{web.address}/secret/{{z}}-{{x}}-{{y}}.tif", storage))
    refused = subprocess.run([OURS, "-c", str(far_config(folder, template, storage)), "-t", "world", "-m", "delete", "-z", "3,3"], capture_output=True, text=True, timeout=patience(60))
    assert refused.returncode != 0 and "reads its files over HTTP" in refused.stdout + refused.stderr
    (folder / "headers").unlink()
    assert "headers" in transferred(folder, far_config(folder, template, storage))


def test_files_behind_a_web_server_are_listed(files, folder, web):  # noqa: F811
    """Each by its name, not tile by tile: what `detail` counts, what `copy` copies, and which files were asked for."""
    (folder / "tiff").rename(folder / "www/tiff")
    path = far_config(folder, f"{web.address}/tiff/{{tileset}}-{{z}}-{{x}}-{{y}}.tif", '<storage type="rest"/>')
    (folder / "www/tiff/world-3-4-0.tif").unlink()

    def run(*words):
        done = subprocess.run([str(BUILD / "bin/mapcache"), *words], capture_output=True, text=True, timeout=patience(100))
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    report = json.loads(run("detail", "-c", path, "-t", "world", "-z", "0,5", "--json"))
    assert report["nb_tiles_in_region"]["cached_in_cache"] == 69
    asked = {line[1] for line in web.asked()}
    assert len(asked) == 1 + 1 + 1 + 4 + 16 + 64, asked  # files of four by four tiles
    run("copy", "-c", path, "--from", "world", "--to", folder / "copied.mbtiles", "-z", "0,3", "--verify")
    with sqlite3.connect(folder / "copied.mbtiles") as database:
        assert database.execute("select count(*) from tiles").fetchone() == (69,)


def test_files_in_googles_store(files, folder, own_store):  # noqa: F811
    """Signed by an HMAC key, of the configuration or of the environment."""
    store = own_store("google")
    address = f"http://127.0.0.1:{store.port}"
    for file in (folder / "tiff").iterdir():
        store.order("plain/1")
        urllib.request.urlopen(urllib.request.Request(f"{address}/b/{file.name}", data=file.read_bytes(), method="PUT"), timeout=patience(60)).close()
    end = f"<endpoint>{address}</endpoint></storage>"
    for template in "/vsigs/b/{tileset}-{z}-{x}-{y}.tif", "https://storage.googleapis.com/b/{tileset}-{z}-{x}-{y}.tif":
        assert transferred(folder, far_config(folder, template, f'<storage type="google">{KEYS["google"]}{end}')) == files
    access, secret = KEYS["google"].removeprefix("<access>").removesuffix("</secret>").split("</access><secret>")
    assert transferred(folder, far_config(folder, template, f'<storage type="google">{end}'), {"GS_ACCESS_KEY_ID": access, "GS_SECRET_ACCESS_KEY": secret}) == files
    assert "does not let us read" in transferred(folder, far_config(folder, template, f'<storage type="google"><access>{access}</access><secret>wrong</secret>{end}'))

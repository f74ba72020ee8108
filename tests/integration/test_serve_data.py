"""`mapcache serve` of every kind of thing: served by both servers, a tile is fetched and its pixels are looked at; changes show."""
import contextlib
import functools
import http.server
import shutil
import subprocess
import threading
import urllib.parse

import numpy
import pytest
from conftest import temporary_folder, wait_until
from drop_in import pixels
from patience import patience
from ports import free_port
from postgres import PASSWORD, Postgres
from serve_things import RASTER, SQUARE, STORED, STYLE, TILE, mbtiles, raster, sqlite_cache, vectors
from serving import SERVERS, Serving, processes, run_folder


class Ranges(http.server.SimpleHTTPRequestHandler):
    """Serves files, also parts of them, as stores of COGs do."""

    def send_head(self):
        asked = self.headers.get("Range", "")
        if not asked.startswith("bytes=") or "/.." in self.path:
            return super().send_head()
        path = self.translate_path(self.path)
        try:
            file = open(path, "rb")
        except OSError:
            self.send_error(404)
            return None
        size = file.seek(0, 2)
        first, _, last = asked[6:].partition("-")
        first, last = int(first), min(int(last or size - 1), size - 1)
        file.seek(first)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        self.send_header("Content-Length", str(last - first + 1))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(file.read(last - first + 1))
        file.close()
        return None

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def web_of(folder):
    port = free_port()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), functools.partial(Ranges, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def database():
    with Postgres() as server:
        server.sql("create extension postgis")
        server.sql("create table square(id serial primary key, name text, geom geometry(Polygon, 4326))")
        server.sql(f"insert into square(name, geom) values('square', ST_GeomFromText('{SQUARE}', 4326))")
        server.sql("create index on square using gist(geom)")
        server.sql("analyze")
        yield server


@pytest.fixture(scope="module")
def web(shared_folder):
    with web_of(shared_folder) as address:
        yield address


def folder_of(shared, *makers):
    shared.mkdir(mode=0o755)
    for maker in makers:
        maker(shared)
    return shared


KINDS = {
    "geotiff": lambda place, web, database: raster(place / "square.tif"),
    "cog": lambda place, web, database: f"{web}/{raster(place / 'cog.tif', driver='COG').name}",
    "geopackage": lambda place, web, database: vectors(place / "square.gpkg", "GPKG"),
    "shapefile": lambda place, web, database: vectors(place / "square.shp", "ESRI Shapefile"),
    "geojson": lambda place, web, database: vectors(place / "square.geojson", "GeoJSON"),
}
COLOURS = {"geotiff": RASTER, "cog": RASTER, "mosaic": RASTER, "mbtiles": STORED, "sqlite": STORED}


def tile_of(serving, layer, headers=None):
    z, x, y = TILE
    return serving.get(f"/wmts/1.0.0/{layer}/default/GoogleMapsCompatible/{z}/{y}/{x}.png", headers=headers)


def assert_square(reply, colour=None):
    """West of ten degrees the square, east of it nothing."""
    assert reply.status == 200, reply.body
    shown = pixels(reply.body)
    assert shown.shape[:2] == (256, 256)
    inside, outside = shown[20:230, 10:180], shown[20:230, 215:250]
    assert (inside[..., 3] > 100).all() and ((outside[..., 3] == 0) | (outside[..., :3] > 240).all(axis=-1)).all()
    if colour is not None:
        assert (numpy.abs(inside[..., :3] - colour) < 12).all(), inside[100, 100]


def layers_for_pictures(serving):
    return [layer["name"] for layer in serving.told["layers"] if not layer["name"].endswith("-mvt")]


@pytest.fixture(scope="module")
def things(shared_folder, web, database):
    made = {}

    def make(kind):
        if kind not in made:
            made[kind] = KINDS[kind](shared_folder, web, database)
        return made[kind]

    return make


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("kind", KINDS)
def test_one_command_shows_it(build, things, kind, server):
    with Serving(build, things(kind), server=server, port=free_port()) as serving:
        layers = layers_for_pictures(serving)
        assert len(layers) == (3 if kind == "folder" else 1), serving.told
        for layer in layers:
            reply = tile_of(serving, layer)
            assert_square(reply, COLOURS.get(kind))
            assert reply.headers["Cache-Control"] == "no-cache", "browsers ask again each time"
            again = tile_of(serving, layer, {"If-None-Match": reply.headers["ETag"]})
            assert again.status == 304 and again.body == b""
        assert serving.get("/").status in (200, 302) and serving.get("/demo/").status == 200
        assert serving.errors() == []


@pytest.mark.parametrize("name", ["a b.tif", "quote\".tif", "it's.tif", "$(touch x).tif", "<&>.tif", "ünïcödé.tif", "${HOME}.tif", "-n.tif", "new\nline.tif"])
def test_names_of_files_are_only_names(build, folder, name):
    raster(folder / name)
    with Serving(build, "--", name, cwd=folder, port=free_port()) as serving:
        (layer,) = layers_for_pictures(serving)
        assert_square(tile_of(serving, layer), RASTER)
    assert [path.name for path in folder.iterdir()] == [name]


@pytest.mark.parametrize("server", SERVERS)
def test_a_changed_image_shows(build, folder, server):
    raster(folder / "image.tif")
    with Serving(build, folder / "image.tif", server=server, port=free_port()) as serving:
        first = tile_of(serving, "image")
        assert_square(first, RASTER)
        raster(folder / "image.tif", colour=(10, 20, 240))
        wait_until(lambda: pixels(tile_of(serving, "image").body)[100, 100, 2] > 200, "the new colour shows")
        assert tile_of(serving, "image", {"If-None-Match": first.headers["ETag"]}).status == 200
        assert serving.errors() == []


@pytest.mark.parametrize("server", SERVERS)
def test_a_changed_style_shows(build, folder, server):
    vectors(folder / "areas.shp", "ESRI Shapefile")
    style = folder / "areas.sld"
    style.write_text(STYLE.format("#ff0000"))
    config = folder / "mapcache.xml"
    config.write_text(f"""<mapcache><source name="areas" type="shapefile"><layer><data>{folder}/areas.shp</data><style>{style}</style></layer></source>
      <cache name="none" type="none"/><tileset name="areas"><source>areas</source><cache>none</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>
      <service type="wmts" enabled="true"/></mapcache>""")
    with Serving(build, config, server=server, port=free_port()) as serving:
        assert tuple(pixels(tile_of(serving, "areas").body)[100, 100]) == (255, 0, 0, 255)
        style.write_text(STYLE.format("#0000ff"))
        wait_until(lambda: tuple(pixels(tile_of(serving, "areas").body)[100, 100]) == (0, 0, 255, 255), "the new style shows")


def test_a_file_that_goes_is_told_and_comes_back(build, folder):
    image, away = raster(folder / "image.tif"), folder / "elsewhere"
    with Serving(build, image, port=free_port()) as serving:
        image.rename(away)
        wait_until(lambda: any("what was served before still is" in text for text in serving.errors()), "it is told")
        away.rename(image)
        wait_until(lambda: serving.all("reloaded"), "it is back")
        assert_square(tile_of(serving, "image"), RASTER)
        assert serving.end() == 0


def refused(build, thing):
    done = subprocess.run([build / "bin/mapcache", "serve", thing], capture_output=True, text=True, timeout=patience(60))
    assert done.returncode == 1 and done.stdout == "" and done.stderr.startswith("mapcache serve: ")
    return done.stderr

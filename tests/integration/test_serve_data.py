"""`mapcache serve` of every kind of thing: served by both servers, a tile is fetched and its pixels are looked at; changes show."""
import html
import shutil
import struct
import subprocess
import urllib.parse

import numpy
import pytest
from conftest import wait_until
from drop_in import pixels
from patience import patience
from ports import free_port
from postgres import PASSWORD, Postgres
from serve_things import BOXES, COLOURS, EAST, KINDS, NORTH, RASTER, SOUTH, SQUARE, STYLE, TILE, WEST, bundles, folder_of, mbtiles, mrf, pyramid, raster, vectors, web_of
from serving import SERVERS, Serving, processes, run_folder


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


def tile_of(serving, layer, headers=None):
    z, x, y = TILE
    return serving.get(f"/wmts/1.0.0/{layer}/default/GoogleMapsCompatible/{z}/{y}/{x}.png", headers=headers)


def assert_square(reply, colour=None):
    """West of ten degrees the square, east of it nothing."""
    assert reply.status == 200, reply.body
    shown = pixels(reply.body)
    assert shown.shape[:2] == (256, 256)
    inside, outside = shown[20:230, 10:180], shown[20:230, 215:250]
    assert (inside[..., 3] > 50).all() and ((outside[..., 3] == 0) | (outside[..., :3] > 240).all(axis=-1)).all()
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
        shown = [layer.get("box") for layer in serving.told["layers"]]
        wanted = list(BOXES.get(kind, (WEST, SOUTH, EAST, NORTH)))
        assert all(box == pytest.approx(wanted, abs=0.02) for box in shown), shown
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


def test_several_things_at_once(build, things):
    with Serving(build, things("geotiff"), things("shapefile"), things("mbtiles"), port=free_port()) as serving:
        layers = layers_for_pictures(serving)
        assert len(layers) == len(set(layers)) == 3
        for layer in layers:
            assert_square(tile_of(serving, layer))


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


@pytest.mark.parametrize("server", SERVERS)
def test_a_new_file_in_a_folder_shows_and_a_removed_one_goes(build, folder, server):
    place = folder_of(folder / "data", lambda p: raster(p / "first.tif"), lambda p: vectors(p / "areas.shp", "ESRI Shapefile"))
    with Serving(build, place, server=server, port=free_port()) as serving:
        before = set(layers_for_pictures(serving))
        vectors(place / "second.geojson", "GeoJSON")
        wait_until(lambda: serving.all("reloaded"), "it is told")
        names = {layer["name"] for layer in serving.all("reloaded")[-1]["layers"] if not layer["name"].endswith("-mvt")}
        (new,) = names - before
        wait_until(lambda: tile_of(serving, new).status == 200, "the new layer shows")
        assert_square(tile_of(serving, new))
        (place / "second.geojson").unlink()
        wait_until(lambda: tile_of(serving, new).status == 404, "the layer goes")


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


def test_what_cannot_be_served_is_refused_in_words(build, folder):
    (folder / "empty").mkdir()
    assert "nothing that can be served" in refused(build, folder / "empty")
    (folder / "text.txt").write_text("not a map\n")
    assert "text.txt" in refused(build, folder / "text.txt")
    image = raster(folder / "image.tif")
    image.chmod(0o600)
    assert "cannot be read: the user that serves (www-data) may not read it" in refused(build, image)
    broken = folder / "broken.tif"
    shutil.copy(image, broken)
    broken.write_bytes(broken.read_bytes()[:100])
    broken.chmod(0o644)
    assert "broken.tif" in refused(build, broken)
    assert refused(build, f"http://127.0.0.1:{free_port()}/none.tif")


def test_a_folder_is_served_without_gdal(build, folder):
    """What needs the module that is not installed is left out, and told once."""
    for part in ("lib", "modules"):
        (folder / part).mkdir(mode=0o755)
        for file in (build / part).glob("*.so*"):
            if "gdal" not in file.name:
                (folder / part / file.name).symlink_to(file)
    folder.chmod(0o755)
    place = folder_of(folder / "data", lambda p: mbtiles(p / "stored.mbtiles"), lambda p: vectors(p / "areas.shp", "ESRI Shapefile"),
                      lambda p: raster(p / "one.tif"), lambda p: raster(p / "two.tif"), lambda p: vectors(p / "land.geojson", "GeoJSON"))
    with Serving(build, place, port=free_port(), environment={"LD_LIBRARY_PATH": str(folder / "lib")}) as serving:
        assert {layer["name"] for layer in serving.all("serving")[0]["layers"]} == {"stored", "areas", "areas-mvt"}
        assert serving.end() == 0
    assert len([line for line in serving.output.splitlines() if "need GDAL" in line]) == 1, serving.output


def test_remarks_name_layers_and_no_private_file(build, folder):
    """Said once, by serve alone; the configuration that serve makes for itself is nobody's to look at."""
    for name in ("metres", "degrees"):
        vectors(folder / f"{name}.shp", "ESRI Shapefile")
        (folder / f"{name}.prj").unlink()
    header = bytearray((folder / "metres.shp").read_bytes())
    header[36:68] = struct.pack("<4d", 2600000, 1200000, 2700000, 1300000)  # the box of all shapes
    (folder / "metres.shp").write_bytes(header)
    with Serving(build, folder / "metres.shp", folder / "degrees.shp", port=free_port()) as serving:
        assert serving.end() == 0
    notes = [line for line in serving.output.splitlines() if "CRS of each map" in line or ".prj" in line]
    assert len(notes) == 2 and sum("metres: there is neither" in line for line in notes) == 1, serving.output
    assert sum("degrees.shp has no .prj: its coordinates are taken for degrees" in line for line in notes) == 1, serving.output
    assert "mapcache.xml:" not in serving.output


@pytest.mark.parametrize("server", SERVERS)
def test_a_password_is_seen_nowhere(build, database, folder, server):
    """Not in what is told, not in lists of processes, not in pages; files with it are nobody else's."""
    secret = "swordfish"
    thing = f"postgresql://mapcache:{urllib.parse.quote(PASSWORD)}@127.0.0.1:{database.port}/postgres"
    saved = folder / "saved.xml"
    with Serving(build, thing, server=server, port=free_port(), options=["--save", saved]) as serving:
        lines = [line for _, _, line in processes() if "mapcache" in line and "serve" in line and "pytest" not in line]
        assert lines and not [line for line in lines if secret in line]
        assert saved.stat().st_mode & 0o777 == 0o600 and run_folder(serving).stat().st_mode & 0o777 == 0o700
        assert all(path.stat().st_mode & 0o077 == 0 for path in run_folder(serving).glob("mapcache.xml*"))
        for path in ("/", "/demo/", "/wmts/1.0.0/WMTSCapabilities.xml", "/?SERVICE=WMS&REQUEST=GetCapabilities"):
            assert secret not in serving.get(path).body.decode()
        database.stop()
        try:
            reply = tile_of(serving, layers_for_pictures(serving)[0])
            assert reply.status >= 500 and secret.encode() not in reply.body
            wait_until(serving.errors, "the error is told")
        finally:
            database.start()
    assert secret not in serving.output
    wrong = refused(build, thing.replace("swordfish", "swordfish2"))
    assert secret not in wrong and "mapcache" in wrong


def test_an_escaped_key_hides_no_password(build, database, folder):
    """libpq reads pass%77ord= as a password, and so does what hides passwords."""
    saved, quoted = folder / "saved.xml", urllib.parse.quote(PASSWORD)
    thing = f"postgresql://mapcache@127.0.0.1:{database.port}/postgres?pass%77ord={quoted}"
    with Serving(build, thing, port=free_port(), options=["--save", saved]) as serving:
        lines = [line for _, _, line in processes() if "mapcache" in line and "serve" in line and "pytest" not in line]
        assert any("pass%77ord=xxx" in line for line in lines) and not [line for line in lines if quoted in line]
        assert "pass%77ord=***" in saved.read_text().split("<mapcache>")[0]
        assert quoted not in saved.read_text().split("<mapcache>")[0]


@pytest.mark.parametrize("thing", ["postgresql://me:{}@127.0.0.1:1/db", "http://me:{}@127.0.0.1:1/a.tif", "postgresql://127.0.0.1:1/db?%50assword={}"])
@pytest.mark.parametrize("secret", ["cod<fish", "cod?fish", "cod#fish", "cod fish", "cod'fish", 'cod"fish', "cod|fish"])
def test_no_character_ends_the_hiding_of_a_password(build, folder, thing, secret):
    """What is told of a thing that cannot be had, by serve and by check of a short form."""
    said = refused(build, thing.format(secret))
    assert "cod" not in said and "fish" not in said, said
    config = folder / "short.xml"
    config.write_text(f"<mapcache><tileset><data>{html.escape(thing.format(secret))}</data></tileset></mapcache>")
    done = subprocess.run([build / "bin/mapcache", "check", config], capture_output=True, text=True, timeout=patience(60))
    said = done.stdout + done.stderr
    assert done.returncode == 2 and "<data>" in said and "cod" not in said and "fish" not in said, said


def test_tiles_of_other_grids_are_told(build, folder):
    """Bundles whose conf.xml has other levels, an MRF of a part of the world, a pyramid of another grid or elsewhere, a bundle that lies anywhere."""
    bundles(folder / "b")
    with Serving(build, folder / "b/_alllayers", port=free_port()) as serving:
        assert [layer["name"] for layer in serving.told["layers"]] == ["b"]
    (folder / "b/conf.xml").write_text("<CacheInfo><TileCacheInfo><TileOrigin><X>-5120900</X><Y>9998100</Y></TileOrigin><TileCols>256</TileCols><TileRows>256</TileRows>"
                                       "<LODInfos/></TileCacheInfo></CacheInfo>")
    assert "not those of web maps" in refused(build, folder / "b")
    mrf(folder / "m.mrf")
    (folder / "m.mrf").write_text((folder / "m.mrf").read_text().replace('minx="-2', 'minx="-1'))
    assert "not the tiles of web maps" in refused(build, folder / "m.mrf")
    described = pyramid(folder).read_text()
    for before, after, said in [('"PM"', '"LAMB93_5cm"', "not those of web maps"), ("TIFF_PNG_UINT8", "TIFF_ZIP_UINT8", "neither PNG nor JPEG"), ('"FILE"', '"S3"', "not in files"),
                                ("square/DATA/", "../square/DATA/", "not below it"), ("square/DATA/", "/etc/", "not below it"), ("square/DATA/6", "square/DATA/7", "not below it"),
                                ('"path_depth": 2', '"path_depth": 99', "cannot be"), ('"id": "6"', '"id": 6.5', "not below it"), ('"levels": [', '"levels": [[', "no descriptor")]:
        (folder / "square.json").write_text(described.replace(before, after))
        assert before in described and said in refused(build, folder / "square.json"), after
    (folder / "lost.bundle").write_bytes(b"")
    assert "is called FOLDER/Lzz/RrrrrCcccc.bundle" in refused(build, folder / "lost.bundle")
    (folder / "bad.mrf").write_text("<MRF_META/>")
    assert "there is no <Raster>" in refused(build, folder / "bad.mrf")

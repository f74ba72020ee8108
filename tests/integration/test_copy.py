"""`mapcache copy`: tiles from any store to any other, byte by byte; killed runs go on; what is wrong in a copy is found."""
import contextlib
import hashlib
import os
import pathlib
import random
import signal
import sqlite3
import struct
import subprocess
import time
import zlib

import numpy
import pytest
from conftest import wait_until
from http_stores import running_moto
from osgeo import gdal
from patience import patience
from stores import Redis

BUILD = pathlib.Path(os.environ.get("MAPCACHE_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build" / "release"))
PROGRAM = str(BUILD / "bin" / "mapcache")
GRID = "GoogleMapsCompatible"
BLANK = b"#\x10\x20\x30\xff"


def png(side, seed):
    """A picture of noise: unlike any other."""
    noise = random.Random(seed)
    rows = b"".join(b"\0" + noise.randbytes(side * 3) for _ in range(side))

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows, 1))
            + chunk(b"IEND", b""))


def fill(path, tileset, places, grid=GRID, dim="", tile=lambda place: png(16, repr(place))):
    """A store as MapCache makes it."""
    with sqlite3.connect(path) as db:
        db.execute("create table if not exists tiles(tileset text, grid text, x integer, y integer, z integer, data blob, dim text, ctime datetime,"
                   " primary key(tileset, grid, x, y, z, dim))")
        db.executemany("insert into tiles values(?, ?, ?, ?, ?, ?, ?, datetime('now'))",
                       ((tileset, grid, x, y, z, tile((z, x, y)), dim) for z, x, y in places))


def tiles(path, where="1"):
    with sqlite3.connect(path, timeout=patience(60)) as db:
        assert db.execute("pragma integrity_check").fetchone() == ("ok",)
        return {row[:4]: row[4] for row in db.execute(f"select dim, z, x, y, data from tiles where {where}")}


def copy(*words, status=0):
    done = subprocess.run([PROGRAM, "copy", *map(str, words)], capture_output=True, text=True, timeout=patience(200))
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def site(folder, caches, tilesets, more=""):
    path = folder / "mapcache.xml"
    path.write_text("<mapcache>" + "".join(caches) + more + "".join(
        f'<tileset name="{name}"><cache>{cache}</cache>{rest or f"<grid>{GRID}</grid><format>PNG</format>"}</tileset>' for name, cache, rest in tilesets)
        + f'<service type="wmts" enabled="true"/><lock_dir>{folder}</lock_dir></mapcache>')
    return path


def sqlite_cache(folder, name, extra=""):
    return f'<cache name="{name}" type="sqlite3"><dbfile>{folder}/{name}.sqlite3</dbfile>{extra}</cache>'


# Everything of the first levels, a part of level 4, and two lonely tiles.
PLACES = [(z, x, y) for z in range(4) for x in range(2**z) for y in range(2**z)] + [(4, x, y) for x in range(9) for y in range(3, 12)] + [(7, 100, 3), (7, 101, 90)]
SOME = lambda place: BLANK if sum(place) % 5 == 0 else png(16, repr(place))  # noqa: E731


def test_around_all_kinds_of_stores_every_byte_stays(tmp_path):
    fill(tmp_path / "one.sqlite3", "world", PLACES, tile=SOME)
    (tmp_path / "redis").mkdir()
    redis = Redis(tmp_path / "redis")
    try:
        with running_moto(tmp_path) as (port, access, secret, _):
            config = site(tmp_path, [
                sqlite_cache(tmp_path, "one"),
                f'<cache name="disk" type="disk"><base>{tmp_path}/disk</base></cache>',
                f'<cache name="archive" type="pmtiles"><file>{tmp_path}/archive.pmtiles</file></cache>',
                f'<cache name="redis" {redis.cache()}</cache>',
                f'<cache name="s3" type="s3"><url>http://127.0.0.1:{port}/tiles/{{tileset}}/{{grid}}/{{z}}/{{x}}/{{y}}.{{ext}}</url><id>{access}</id>'
                f"<secret>{secret}</secret><region>eu-test-1</region></cache>",
                f'<cache name="mbtiles" type="mbtiles"><dbfile>{tmp_path}/tiles.mbtiles</dbfile></cache>',
                f'<cache name="gpkg" type="geopackage"><dbfile>{tmp_path}/tiles.gpkg</dbfile></cache>',
                sqlite_cache(tmp_path, "last", "<detect_blank>true</detect_blank>"),
            ], [("world", "one", "")])
            stores = ["disk", "archive", "redis", "s3", "mbtiles", "gpkg", "last"]
            before = "world"
            for store in stores:
                said = copy("-c", config, "--from", before, "--to", store, "-z", "0,7", "--verify", "-n", 2)
                assert f"copied {len(PLACES)} tiles" in said and f"compared {len(PLACES)} tiles" in said, (store, said)
                text = config.read_text()
                config.write_text(text[:text.index("<tileset")] + text[text.index("<tileset"):].replace(f"<cache>{'one' if before == 'world' else before}</cache>", f"<cache>{store}</cache>"))
                before = store
                if store == "archive":
                    assert (tmp_path / "archive.pmtiles").exists()
    finally:
        redis.stop()
    one, last = tiles(tmp_path / "one.sqlite3"), tiles(tmp_path / "last.sqlite3")
    assert one.keys() == last.keys()
    assert all(last[place] == data for place, data in one.items() if data != BLANK)
    # stores of files have no tiles of one colour as such: they get pictures, all the same
    assert len({last[place] for place, data in one.items() if data == BLANK}) == 1


def test_tiles_of_one_colour_stay_what_they_are(tmp_path):
    fill(tmp_path / "one.sqlite3", "world", PLACES, tile=SOME)
    config = site(tmp_path, [sqlite_cache(tmp_path, "one"), sqlite_cache(tmp_path, "two", "<detect_blank>true</detect_blank>")], [("world", "one", "")])
    copy("-c", config, "--from", "world", "--to", "two", "--verify")
    assert tiles(tmp_path / "two.sqlite3") == tiles(tmp_path / "one.sqlite3")


def test_what_is_there_stays_unless_it_is_forced(tmp_path):
    fill(tmp_path / "one.sqlite3", "world", PLACES)
    fill(tmp_path / "two.sqlite3", "other", [(3, 1, 1), (4, 1, 1)], tile=lambda place: png(16, "another"))
    config = site(tmp_path, [sqlite_cache(tmp_path, "one"), sqlite_cache(tmp_path, "two")], [("world", "one", ""), ("other", "two", "")])
    count = len(PLACES)
    said = copy("-c", config, "--from", "world", "--to", "other")  # (4, 1, 1) is not in the source
    assert f"copied {count - 1} tiles" in said and "; 1 tiles skipped" in said, said
    assert "0 tiles needed to be copied" in copy("-c", config, "--from", "world", "--to", "other")
    assert tiles(tmp_path / "two.sqlite3")["", 3, 1, 1] == png(16, "another")
    said = copy("-c", config, "--from", "world", "--to", "other", "--verify", status=4)
    assert "the first, z3 x1 y1, has other bytes in the target" in said, said
    copy("-c", config, "--from", "world", "--to", "other", "--force", "--verify")
    stored = tiles(tmp_path / "two.sqlite3")
    assert stored.pop(("", 4, 1, 1)) == png(16, "another")
    assert stored == tiles(tmp_path / "one.sqlite3")


def test_levels_extents_areas_and_lists_limit_a_copy(tmp_path):
    fill(tmp_path / "one.sqlite3", "world", PLACES)
    config = site(tmp_path, [sqlite_cache(tmp_path, "one")], [("world", "one", "")])
    (tmp_path / "area").write_text("POINT(-20000000 -20000000)")
    (tmp_path / "list").write_text("2/0/3\n")
    words = ["-c", config, "--from", "world", "--to"]
    copy(*words, tmp_path / "levels.sqlite3", "-z", "2,3")
    assert {place[1] for place in tiles(tmp_path / "levels.sqlite3")} == {2, 3}
    copy(*words, tmp_path / "extent.sqlite3", "-z", "3,3", "-e", "-20037508,-20037508,-1,-1", "--list", tmp_path / "list", status=0)
    assert not (tmp_path / "extent.sqlite3").exists()  # the list names no tile of that level
    assert "5 " in copy(*words, tmp_path / "dry.sqlite3", "-z", "0,4", "--area", tmp_path / "area", "--dry-run")
    assert not (tmp_path / "dry.sqlite3").exists()


@pytest.mark.parametrize("workers", ["-n", "-p"])
@pytest.mark.parametrize("target", ["two.sqlite3", "two.pmtiles"])
def test_killed_while_it_copies_it_goes_on(tmp_path, target, workers):
    places = [(7, x, y) for x in range(60) for y in range(70)]
    fill(tmp_path / "one.sqlite3", "world", places, tile=lambda place: b"\x89PNG\r\n\x1a\n" + hashlib.sha256(repr(place).encode()).digest() * 20)
    config = site(tmp_path, [sqlite_cache(tmp_path, "one")], [("world", "one", "")])
    words = ["-c", config, "--from", "world", "--to", tmp_path / target, workers, 2, "--checkpoint", tmp_path / "place"]
    kept = 0
    for _ in range(3):
        run = subprocess.Popen([PROGRAM, "copy", *map(str, words), "--resume", "--rate-limit", "3000"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        done = lambda: (tmp_path / "place").exists() and int((tmp_path / "place").read_text().splitlines()[2].split()[1])  # noqa: E731
        wait_until(lambda: run.poll() is not None or done() > kept, "the copy gets on")
        run.send_signal(signal.SIGKILL)
        run.communicate()
        kept = done() or 0
    said = copy(*words, "--resume", "--verify")
    assert f"compared {len(places)} tiles" in said, said
    assert not (tmp_path / "place").exists()
    copy("--from", tmp_path / target, "--to", tmp_path / "back.sqlite3")
    assert {place[1:]: data for place, data in tiles(tmp_path / "back.sqlite3").items()} == \
        {place[1:]: data for place, data in tiles(tmp_path / "one.sqlite3").items()}


def test_verify_finds_what_is_mangled_and_what_is_missing(tmp_path):
    fill(tmp_path / "one.sqlite3", "world", PLACES)
    config = site(tmp_path, [sqlite_cache(tmp_path, "one"), sqlite_cache(tmp_path, "two")], [("world", "one", "")])
    words = ["-c", config, "--from", "world", "--to", "two"]
    copy(*words, "--verify")
    with sqlite3.connect(tmp_path / "two.sqlite3") as db:
        db.execute("update tiles set data = zeroblob(length(data)) where z = 4 and x = 2 and y = 5")
    said = copy(*words, "--verify", status=4)
    assert "differ; the first, z4 x2 y5, has other bytes in the target" in said, said
    assert f"compared {len(PLACES) - len([p for p in PLACES if p[0] == 4 and p[1] < 8 and p[2] < 8])} tiles" in said, said
    copy(*words, "--force", "--verify")


def grid_xml(name, extra="", origin="bottom-left", srs="EPSG:3857", levels=10, size=256):
    resolutions = " ".join(repr(20037508.342789244 * 2 / size / 2**z) for z in range(levels))
    return (f'<grid name="{name}"><srs>{srs}</srs><srsalias>EPSG:900913</srsalias><units>m</units><size>{size} {size}</size>'
            f"<extent>-20037508.342789244 -20037508.342789244 20037508.342789244 20037508.342789244</extent><origin>{origin}</origin>"
            f"<resolutions>{resolutions}</resolutions>{extra}</grid>")


def test_grids_with_the_same_tiles_and_others(tmp_path):
    places = [place for place in PLACES if place[0] < 5]
    fill(tmp_path / "one.sqlite3", "world", places)
    kinds = {"mine": grid_xml("mine"), "top": grid_xml("top", origin="top-left"), "few": grid_xml("few", levels=3),
             "large": grid_xml("large", size=512), "other": grid_xml("other", srs="EPSG:2056").replace("<srsalias>EPSG:900913</srsalias>", ""),
             "off": grid_xml("off").replace("<extent>-20037508.342789244", "<extent>-20030000.0")}
    config = site(tmp_path, [sqlite_cache(tmp_path, "one"), sqlite_cache(tmp_path, "two")],
                  [("world", "one", "")] + [(name, "two", f"<grid>{name}</grid><format>PNG</format>") for name in kinds] +
                  [("degrees", "two", "<grid>WGS84</grid><format>PNG</format>")], more="".join(kinds.values()))
    words = ["-c", config, "--from", "world", "-z", "0,4", "--to"]
    expected = tiles(tmp_path / "one.sqlite3")
    copy(*words, "mine", "--verify")
    assert tiles(tmp_path / "two.sqlite3", "grid = 'mine'") == expected
    copy(*words, "top", "--verify")  # rows are counted from the other side
    assert {(d, z, x, 2**z - 1 - y): data for (d, z, x, y), data in tiles(tmp_path / "two.sqlite3", "grid = 'top'").items()} == expected
    for name, words_of_it in {"few": "ends with level 2", "large": "512 x 512", "other": "EPSG:2056", "degrees": "EPSG:4326",
                              "off": "lie in"}.items():
        said = copy(*words, name, status=1)
        assert words_of_it in said and "--warp GRID draws them anew" in said, (name, said)
    assert set(tiles(tmp_path / "two.sqlite3", "grid not in ('mine', 'top')")) == set()


def drawn_pixels(data):
    with tempfile_of(data) as name:
        return gdal.Open(name).ReadAsArray()[:3].astype(int)


@contextlib.contextmanager
def tempfile_of(data):
    name = "/vsimem/tile"
    gdal.FileFromMemBuffer(name, bytes(data))
    try:
        yield name
    finally:
        gdal.Unlink(name)


def slope(path):
    """The world in degrees, in soft colours: what is drawn twice differs little from what is drawn once."""
    rows, columns = numpy.mgrid[0:512, 0:1024]
    bands = columns * 255 // 1024, rows * 255 // 512, (numpy.sin(columns / 25) * 60 + numpy.cos(rows / 20) * 60 + 125)
    raster = gdal.GetDriverByName("GTiff").Create(str(path), 1024, 512, 3, gdal.GDT_Byte)
    raster.SetProjection("EPSG:4326")
    raster.SetGeoTransform((-180, 360 / 1024, 0, 90, 0, -360 / 1024))
    for number, band in enumerate(bands, 1):
        raster.GetRasterBand(number).WriteArray(band.astype("u1"))


def warp_site(folder):
    slope(folder / "world.tif")
    degrees = "<source>w</source><grid>WGS84</grid><format>PNG</format>"
    grids = grid_xml("large", size=512) + grid_xml("mine")
    return site(folder, [sqlite_cache(folder, name) for name in ("one", "two", "three")] + [f'<cache name="disk" type="disk"><base>{folder}/disk</base></cache>'],
                [("degrees", "one", degrees), ("direct", "three", degrees.replace("WGS84", GRID)), ("web", "two", ""), ("photo", "disk", f"<grid>{GRID}</grid><format>JPEG</format>"),
                 ("again", "two", "<grid>large</grid><grid>mine</grid><format>PNG</format>"), ("vector", "two", f"<grid>{GRID}</grid><format>mvt</format>")],
                more=f'<source name="w" type="gdal"><data>{folder}/world.tif</data></source><format name="mvt" type="MVT"/>' + grids)


def seed_warp_site(config, *names):
    for name in names:
        subprocess.run([PROGRAM, "seed", "-c", config, "-t", name, "-z", "0,3", "-q"], check=True, timeout=patience(100))


def test_other_grids_are_drawn_from_stored_tiles(tmp_path):
    """Degrees to Mercator: as the source itself would have drawn it, all tiles and no other; copied again, nothing is left to do."""
    config = warp_site(tmp_path)
    seed_warp_site(config, "degrees", "direct")
    words = ["-c", config, "--from", "degrees", "--warp", GRID, "-z", "0,3"]
    said = copy(*words, "--to", "web", "--verify")
    expected, found = tiles(tmp_path / "three.sqlite3"), tiles(tmp_path / "two.sqlite3", "tileset = 'web'")
    assert "copied 85 tiles" in said and "compared 85 tiles" in said and found.keys() == expected.keys()
    for place in [(d, z, x, y) for d, z, x, y in expected if z > 0]:
        inner = numpy.abs(drawn_pixels(found[place]) - drawn_pixels(expected[place]))
        assert inner.mean() < 3, (place, inner.mean())  # drawn from tiles of another resolution
    assert "copied 0 tiles" in copy(*words, "--to", "web") or "0 tiles needed" in copy(*words, "--to", "web")
    copy(*words, "--to", "photo", "--verify")
    assert all(path.read_bytes()[:2] == b"\xff\xd8" for path in (tmp_path / "disk").rglob("*.jp*g"))
    copy(*words, "--to", tmp_path / "web.mbtiles", "--verify", "-p", 2)
    copy("--from", tmp_path / "web.mbtiles", "--to", tmp_path / "back.sqlite3", "--warp", "WGS84", "-z", "0,2", "--verify")
    back = tiles(tmp_path / "back.sqlite3", "grid = 'WGS84'")
    assert back.keys() == {("", z, x, y) for z in range(3) for x in range(2 ** (z + 1)) for y in range(2**z)}
    with tempfile_of(back["", 2, 0, 3]) as name:
        alpha = gdal.Open(name).ReadAsArray()[3]
    assert (alpha[:25] == 0).all() and (alpha[35:] == 255).all()  # beyond 85 degrees there is nothing in Mercator


def test_a_warp_that_was_killed_goes_on_and_finds_what_is_mangled(tmp_path):
    config = warp_site(tmp_path)
    seed_warp_site(config, "degrees")
    words = ["-c", config, "--from", "degrees", "--to", "web", "--warp", GRID, "-z", "0,3"]
    place = tmp_path / "place"
    run = subprocess.Popen([PROGRAM, "copy", *map(str, words), "--checkpoint", str(place), "--rate-limit", "60"], stdout=subprocess.DEVNULL)
    wait_until(lambda: (tmp_path / "two.sqlite3").exists() and place.exists(), "some tiles are there")
    run.kill()
    run.wait()
    copy(*words, "--checkpoint", place, "--resume", "--verify")
    assert len(tiles(tmp_path / "two.sqlite3", "tileset = 'web'")) == 85
    with sqlite3.connect(tmp_path / "two.sqlite3") as db:
        db.execute("update tiles set data = ? where z = 2 and x = 1 and y = 1", (png(256, "wrong"),))
    said = copy(*words, "--verify", status=4)
    assert "z2 x1 y1" in said and "has other bytes" in said
    copy(*words, "--force", "--verify")


def test_a_warp_of_a_part_and_of_what_cannot_be_warped(tmp_path):
    config = warp_site(tmp_path)
    seed_warp_site(config, "degrees")
    words = ["-c", config, "--from", "degrees", "--to"]
    copy(*words, "web", "--warp", GRID, "-z", "3,3", "-e", "0,0,20037508,10018754", "--verify")  # units of the target's grid
    assert {place[1:] for place in tiles(tmp_path / "two.sqlite3", "tileset = 'web'")} == {(3, x, y) for x in range(4, 8) for y in range(4, 8)}
    with sqlite3.connect(tmp_path / "one.sqlite3") as db:  # one tile of the level alone
        db.execute("delete from tiles where z = 1 and not (x = 1 and y = 1)")  # level 1 has the pixels of level 2 of the target
    copy(*words, tmp_path / "few.sqlite3", "--warp", GRID, "-z", "2,2", "--verify")
    assert {place[2:] for place in tiles(tmp_path / "few.sqlite3", "z = 2")} == {(1, 2), (1, 3)}
    copy("-c", config, "--from", "web", "--to", "again", "--warp", "large", "-z", "2,2", "--verify")  # four tiles are one
    assert {place[1:] for place in tiles(tmp_path / "two.sqlite3", "grid = 'large'")} == {(2, x, y) for x in (2, 3) for y in (2, 3)}
    copy("-c", config, "--from", "web", "--to", "again", "--warp", "mine", "-z", "3,3", "--verify")  # the same tiles: every byte
    assert tiles(tmp_path / "two.sqlite3", "grid = 'mine'") == tiles(tmp_path / "two.sqlite3", "tileset = 'web'")
    for target, said, *more in [("web", "--zoom names the levels"), ("vector", "vector tiles cannot be warped", "-z", "0,1"),
                                ("again", 'has no grid "GoogleMapsCompatible"', "-z", "0,1"), (tmp_path / "x.mbtiles", 'no grid "nowhere"', "--warp", "nowhere", "-z", "0,1")]:
        assert said in copy(*words, target, "--warp", GRID, *more, status=1), (target, said)
    assert "--grid names the one" in copy("-c", config, "--from", "again", "--to", "web", "--warp", GRID, "-z", "0,1", status=1)


def test_all_values_of_dimensions_as_they_are_stored(tmp_path):
    dimensions = ('<dimensions><dimension type="values" name="DAY" default="1"><value>1</value><value>2</value><value>3</value></dimension><dimension type="values" name="BAND" default="a"><value>a</value><value>b</value></dimension>'
                  "</dimensions>")
    rest = f"<grid>{GRID}</grid><format>PNG</format>{dimensions}"
    for dim in "a#1", "b#1", "a#3", "b#gone":  # the last one is not configured any more
        fill(tmp_path / "one.sqlite3", "world", [(0, 0, 0), (2, 1, 3)], dim=dim, tile=lambda place, dim=dim: png(16, dim + repr(place)))
    config = site(tmp_path, [sqlite_cache(tmp_path, "one"), sqlite_cache(tmp_path, "two"), sqlite_cache(tmp_path, "three"),
                             f'<cache name="disk" type="disk"><base>{tmp_path}/disk</base></cache>'], [("world", "one", rest)])
    said = copy("-c", config, "--from", "world", "--to", "two", "--verify")
    assert 'DAY=3' in said and said.count("copied 2 tiles") == 4, said
    assert tiles(tmp_path / "two.sqlite3") == tiles(tmp_path / "one.sqlite3")
    copy("-c", config, "--from", "world", "--to", "three", "-D", "BAND=b")
    assert {place[0] for place in tiles(tmp_path / "three.sqlite3")} == {"b#1", "b#gone"}
    assert "has no dimension" in copy("-c", config, "--from", "world", "--to", "three", "-D", "YEAR=1", status=1)
    said = copy("-c", config, "--from", "world", "--to", tmp_path / "x.pmtiles", status=1)
    assert "dimensions" in said and not (tmp_path / "x.pmtiles").exists(), said


def test_a_format_is_converted_only_where_the_target_has_another(tmp_path):
    fill(tmp_path / "one.sqlite3", "world", [(1, 0, 0), (1, 1, 0)])
    config = site(tmp_path, [sqlite_cache(tmp_path, "one"), sqlite_cache(tmp_path, "two")],
                  [("world", "one", ""), ("photo", "two", f"<grid>{GRID}</grid><format>JPEG</format>"), ("same", "two", f"<grid>{GRID}</grid><format>mixed</format>"),
                   ("vector", "two", f"<grid>{GRID}</grid><format>mvt</format>")],
                  more='<format name="mvt" type="MVT"/>')
    copy("-c", config, "--from", "world", "--to", "photo", "--verify")
    assert all(data[:2] == b"\xff\xd8" for data in tiles(tmp_path / "two.sqlite3", "tileset = 'photo'").values())
    copy("-c", config, "--from", "world", "--to", "same", "--verify")
    assert tiles(tmp_path / "two.sqlite3", "tileset = 'same'") == tiles(tmp_path / "one.sqlite3")
    assert "only one of tilesets" in copy("-c", config, "--from", "world", "--to", "vector", status=1)


def test_tiles_for_fine_screens_by_the_name_of_their_grid(tmp_path):
    fill(tmp_path / "one.sqlite3", "world", [(1, 0, 0), (1, 1, 0)])
    fill(tmp_path / "one.sqlite3", "world", [(1, 0, 0)], grid=f"{GRID}@2x")
    config = site(tmp_path, [sqlite_cache(tmp_path, "one"), sqlite_cache(tmp_path, "two")],
                  [("world", "one", f"<source>any</source><grid>{GRID}</grid><format>PNG</format><density>2</density>")], more='<source name="any" type="dummy"/>')
    copy("-c", config, "--from", "world", "--to", "two", "-g", f"{GRID}@2x", "--verify")
    assert tiles(tmp_path / "two.sqlite3", "1").keys() == {("", 1, 0, 0)}
    assert tiles(tmp_path / "two.sqlite3", f"grid = '{GRID}'") == {}


def test_tiles_for_fine_screens_come_along(tmp_path):
    """Without a grid; a target that cannot have them says so, and gets the others."""
    fill(tmp_path / "one.sqlite3", "world", [(1, 0, 0), (1, 1, 0)])
    fill(tmp_path / "one.sqlite3", "world", [(1, 0, 0)], grid=f"{GRID}@2x")
    fine = f"<source>any</source><grid>{GRID}</grid><format>PNG</format><density>2</density>"
    config = site(tmp_path, [sqlite_cache(tmp_path, name) for name in ("one", "two", "three", "four")],
                  [("world", "one", fine), ("fine", "three", fine), ("coarse", "four", f"<source>any</source><grid>{GRID}</grid><format>PNG</format><density>1</density>")],
                  more='<source name="any" type="dummy"/>')
    copy("-c", config, "--from", "one", "--to", "two", "--verify")
    assert tiles(tmp_path / "two.sqlite3", f"grid = '{GRID}@2x'").keys() == {("", 1, 0, 0)}
    assert tiles(tmp_path / "two.sqlite3", f"grid = '{GRID}'").keys() == {("", 1, 0, 0), ("", 1, 1, 0)}
    copy("-c", config, "--from", "world", "--to", "fine", "--verify")
    assert tiles(tmp_path / "three.sqlite3", f"grid = '{GRID}@2x' AND tileset = 'fine'").keys() == {("", 1, 0, 0)}
    said = copy("-c", config, "--from", "world", "--to", "coarse", "--verify")
    assert f'grid "{GRID}@2x" are left out' in said and "<density>" in said
    assert len(tiles(tmp_path / "four.sqlite3", "1")) == 2
    said = copy("-c", config, "--from", "world", "--to", tmp_path / "world.mbtiles", "--verify")
    assert "are left out" in said and "world.mbtiles" in said
    said = copy("-c", config, "--from", "world", "--to", tmp_path / "more.sqlite3", "--checkpoint", tmp_path / "place")
    assert "--checkpoint is for one grid" in said and len(tiles(tmp_path / "more.sqlite3", "1")) == 2


def test_files_by_their_paths(tmp_path):
    fill(tmp_path / "world.sqlite3", "world", PLACES)
    before = "world.sqlite3"
    for name in "a.mbtiles", "b.pmtiles", "c.gpkg", "d.sqlite3":
        said = copy("--from", tmp_path / before, "--to", tmp_path / name, "--verify")
        assert f"compared {len(PLACES)} tiles" in said, (name, said)
        before = name
    assert sorted(tiles(tmp_path / "d.sqlite3").values()) == sorted(tiles(tmp_path / "world.sqlite3").values())
    fill(tmp_path / "odd.sqlite3", "a name/of 2", [(1, 0, 0)])
    fill(tmp_path / "odd.sqlite3", "another", [(2, 0, 0)])
    copy("--from", tmp_path / "odd.sqlite3", "--to", tmp_path / "even.sqlite3", "--verify")
    assert tiles(tmp_path / "even.sqlite3", "tileset = 'a name/of 2'").keys() == {("", 1, 0, 0)}
    copy("--from", tmp_path / "odd.sqlite3", "-t", "another", "--to", tmp_path / "one.mbtiles", "--verify")
    for words, said in {("a.tif", "b.mbtiles"): "a.tif", ("a.mbtiles", "b.xyz"): "ends with .mbtiles", ("a.mbtiles", "http://127.0.0.1/x.pmtiles"): "not written",
                        ("nothing", "b.mbtiles"): "no tileset, cache or file"}.items():
        assert said in copy("--from", words[0] if words[0] == "nothing" else tmp_path / words[0],
                            "--to", words[1] if "://" in words[1] else tmp_path / words[1], status=1)


def test_what_would_be_overwritten_or_endless_is_refused(tmp_path):
    fill(tmp_path / "both.sqlite3", "world", [(1, 0, 0)])
    fill(tmp_path / "both.sqlite3", "more", [(1, 0, 0)])
    config = site(tmp_path, [sqlite_cache(tmp_path, "both"), sqlite_cache(tmp_path, "two"), '<cache name="none" type="none"/>',
                             f'<cache name="disk" type="disk"><base>{tmp_path}/disk</base></cache>'],
                  [("world", "both", ""), ("more", "both", ""), ("files", "disk", ""), ("two", "two", "")])
    assert "share the files" in copy("-c", config, "--from", "both", "--to", tmp_path / "x.mbtiles", status=1)
    assert not (tmp_path / "x.mbtiles").exists()
    assert "the same tiles" in copy("-c", config, "--from", "world", "--to", "both", status=1)
    assert "tileset:two or cache:two" in copy("-c", config, "--from", "world", "--to", "two", status=1)
    assert "--zoom names levels" in copy("-c", config, "--from", "files", "--to", "cache:two", status=1)
    assert "keeps nothing" in copy("-c", config, "--from", "world", "--to", "none", status=1)
    assert "--checkpoint is for one" in copy("-c", config, "--from", "both", "--to", "cache:two", "--checkpoint", tmp_path / "place", status=1)
    copy("-c", config, "--from", "both", "--to", "cache:two", "--verify")
    assert len(tiles(tmp_path / "two.sqlite3", "tileset = 'world'")) == len(tiles(tmp_path / "two.sqlite3", "tileset = 'more'")) == 1


def test_a_target_that_cannot_be_written_and_a_source_that_is_not_there(tmp_path):
    fill(tmp_path / "one.sqlite3", "world", PLACES)
    config = site(tmp_path, [sqlite_cache(tmp_path, "one"), '<cache name="away" type="redis"><host>127.0.0.1</host><port>9</port></cache>',
                             '<cache name="denied" type="sqlite3"><dbfile>/proc/nowhere/tiles.sqlite3</dbfile></cache>', sqlite_cache(tmp_path, "gone")],
                  [("world", "one", ""), ("lost", "gone", "")])
    for target in "away", "denied":
        began = time.monotonic()
        said = copy("-c", config, "--from", "world", "--to", target, "--retries", 0, status=1)
        assert "failed to copy" in said, said
        assert time.monotonic() - began < patience(30)
    assert "cannot be opened" in copy("-c", config, "--from", "lost", "--to", tmp_path / "x.sqlite3", status=1)

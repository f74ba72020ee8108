"""`mapcache purge`: deletes tiles of a tileset from all of its stores, and no others."""
import contextlib
import json
import os
import pathlib
import pty
import sqlite3
import subprocess

import pytest
from patience import patience
from postgres import Postgres

BUILD = pathlib.Path(os.environ.get("MAPCACHE_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build" / "release"))
PROGRAM = BUILD / "bin" / "mapcache"
GRID = "GoogleMapsCompatible"
NORTH_WEST = "-20037508,0,0,20037508"
STORES = {
    "sqlite3": '<cache name="store" type="sqlite3"><dbfile>FOLDER/tiles.db</dbfile></cache>',
    "many files": '<cache name="store" type="sqlite3"><dbfile>FOLDER/{tileset}/{z}/{x}-{y}.db</dbfile><xcount>2</xcount><ycount>2</ycount></cache>',
    "mbtiles": '<cache name="store" type="mbtiles"><dbfile>FOLDER/{tileset}.mbtiles</dbfile></cache>',
    "geopackage": '<cache name="store" type="geopackage"><dbfile>FOLDER/{tileset}.gpkg</dbfile></cache>',
    "disk": '<cache name="store" type="disk"><base>FOLDER/disk</base></cache>',
    "arcgis": '<cache name="store" type="disk" layout="arcgis"><base>FOLDER/disk</base></cache>',
    "template": '<cache name="store" type="disk" layout="template"><template>FOLDER/t/{tileset}/{grid}/{z}/{y}/{x}.{ext}</template></cache>',
    "composite": '<cache name="low" type="sqlite3"><dbfile>FOLDER/low.db</dbfile></cache><cache name="high" type="sqlite3"><dbfile>FOLDER/high.db</dbfile></cache>'
                 '<cache name="store" type="composite"><cache max-zoom="2">low</cache><cache min-zoom="3">high</cache></cache>',
}


class Site:
    def __init__(self, folder, store, extra="", grids=f"<grid>{GRID}</grid>"):
        self.config = folder / "mapcache.xml"
        tilesets = "".join(f'<tileset name="{name}"><source>any</source><cache>store</cache>{grids}<format>PNG</format><metatile>1 1</metatile>'
                           f"{extra}</tileset>" for name in ("world", "other"))
        self.config.write_text(f'<mapcache><source name="any" type="dummy"/>{store.replace("FOLDER", str(folder))}{tilesets}'
                               f'<service type="wmts" enabled="true"/><lock_dir>{folder}</lock_dir></mapcache>')

    def run(self, command, *words, tileset="world", **options):
        return subprocess.run([PROGRAM, command, "-c", self.config, "-t", tileset, *words], capture_output=True, text=True, timeout=patience(100),
                              **{"stdin": subprocess.DEVNULL, **options})

    def seed(self, *words, **options):
        done = self.run("seed", "-q", *words, **options)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    def purge(self, *words, status=0):
        done = self.run("purge", *words)
        assert done.returncode == status, done.stdout + done.stderr
        return done

    def counts(self, tileset="world", *words):
        """Stored tiles of levels 0 to 4."""
        done = self.run("detail", "--json", "-z", "0,4", *words, tileset=tileset)
        assert done.returncode == 0, done.stderr
        return [level["nb_tiles_in_region"]["cached_in_level"] for level in json.loads(done.stdout)["zoom_levels"]]


FULL = [1, 4, 16, 64, 256]


@pytest.fixture(params=STORES)
def site(request, tmp_path):
    site = Site(tmp_path, STORES[request.param])
    site.kind = request.param
    for tileset in ("world", "other"):
        site.seed("-z", "0,4", tileset=tileset)
    assert site.counts() == site.counts("other") == FULL
    return site


def test_levels_then_an_area_then_all(site):
    site.purge("-z", "1,2", "--dry-run")
    assert site.counts() == FULL
    site.purge("-z", "1,2", "--yes")
    assert site.counts() == [1, 0, 0, 64, 256]
    site.purge("-z", "3,4", "-e", NORTH_WEST, "--yes")
    assert site.counts() == [1, 0, 0, 48, 192] and site.counts("world", "-e", NORTH_WEST)[3:] == [0, 0]
    if site.kind == "template":  # it has no list of its tiles
        assert "--zoom" in site.purge("--yes", status=1).stderr
        site.purge("-z", "0,4", "--yes")
    else:
        site.purge("--yes")
    assert site.counts() == [0, 0, 0, 0, 0] and site.counts("other") == FULL


def test_what_is_said(tmp_path):
    site = Site(tmp_path, STORES["disk"])
    site.seed("-z", "0,2")
    told = site.purge("--dry-run").stdout
    assert "would delete 21 tiles" in told and told.count(GRID) == 3
    lines = [json.loads(line) for line in site.purge("--dry-run", "--json").stdout.splitlines()]
    assert [line.get("tiles") for line in lines] == [1, 4, 16, None] and lines[-1]["would_delete"] == 21
    refused = site.purge(status=1)
    assert "--yes" in refused.stderr and site.counts()[:3] == FULL[:3]
    quiet = site.purge("-q", "--yes")
    assert quiet.stdout == quiet.stderr == "" and site.counts()[:3] == [0, 0, 0]
    assert "deleted 0 tiles" in site.purge("--yes").stdout


@pytest.mark.parametrize("answer,left", [("n\n", 21), ("\n", 21), ("y\n", 0)])
def test_a_terminal_is_asked(tmp_path, answer, left):
    site = Site(tmp_path, STORES["sqlite3"])
    site.seed("-z", "0,2")
    primary, secondary = pty.openpty()
    os.write(primary, answer.encode())
    done = site.run("purge", stdin=secondary)
    os.close(primary), os.close(secondary)
    assert "delete 21 tiles of tileset world? [y/N]" in done.stderr and done.returncode == (1 if left else 0)
    assert sum(site.counts()) == left


DIMENSIONS = ('<dimensions><dimension type="regex" name="time" default="a"><regex>^[a-z]+$</regex></dimension>'
              '<dimension type="regex" name="level" default="1"><regex>^[0-9]+$</regex></dimension></dimensions>')


@pytest.mark.parametrize("store", ["sqlite3", "disk", "composite"])
def test_values_of_dimensions(tmp_path, store):
    site = Site(tmp_path, STORES[store], extra=DIMENSIONS)
    for time in "abc":
        for level in "12":
            site.seed("-z", "0,3", "-D", f"time={time}", "-D", f"level={level}")

    def left():
        return {time + level: sum(site.counts("world", "-D", f"time={time}", "-D", f"level={level}")) for time in "abc" for level in "12"}

    assert set(left().values()) == {85}
    site.purge("-D", "time=b", "--yes")
    assert left() == {"a1": 85, "a2": 85, "b1": 0, "b2": 0, "c1": 85, "c2": 85}
    site.purge("-D", "level=2", "-D", "TIME=a", "-z", "0,1", "--yes")
    assert left() == {"a1": 85, "a2": 80, "b1": 0, "b2": 0, "c1": 85, "c2": 85}
    site.purge("-e", NORTH_WEST, "-z", "3,3", "--yes")  # of every value that is stored
    assert left() == {"a1": 69, "a2": 64, "b1": 0, "b2": 0, "c1": 69, "c2": 69}
    site.purge("--yes")
    assert set(left().values()) == {0}


def test_grids(tmp_path):
    site = Site(tmp_path, STORES["sqlite3"], grids=f"<grid>{GRID}</grid><grid>WGS84</grid>")
    site.seed("-z", "0,2")
    site.seed("-z", "0,2", "-g", "WGS84")
    site.purge("-g", "WGS84", "--yes")
    assert sum(site.counts()) == 21 and sum(site.counts("world", "-g", "WGS84")) == 0
    site.seed("-z", "0,2", "-g", "WGS84")
    site.purge("--yes")
    assert sum(site.counts()) == 0 and sum(site.counts("world", "-g", "WGS84")) == 0


@pytest.mark.parametrize("words,message", [(["-g", "none"], "grid"), (["-D", "x=1"], "no dimension"), (["-z", "4,2"], "--zoom"), (["--outside"], "--outside"),
                                           (["-t", "worl"], "world")])
def test_what_cannot_be_purged(tmp_path, words, message):
    site = Site(tmp_path, STORES["sqlite3"])
    told = site.purge("--yes", *words, status=1)
    assert message in told.stderr and told.stdout == ""


@pytest.fixture(scope="module")
def database():
    with Postgres() as server:
        yield server


def test_postgresql(tmp_path, database):
    store = f'<cache name="store" type="postgresql"><connection>{database.connection()}</connection></cache>'
    site = Site(tmp_path, store)
    for tileset in ("world", "other"):
        site.seed("-z", "0,3", tileset=tileset)
    site.purge("-z", "2,3", "--yes")
    assert site.counts()[:4] == [1, 4, 0, 0]
    site.purge("--yes")
    assert site.counts()[:4] == [0, 0, 0, 0] and site.counts("other")[:4] == FULL[:4]


def test_a_cache_that_keeps_nothing_is_said(tmp_path):
    done = Site(tmp_path, '<cache name="store" type="none"/>').purge("--yes", status=1)
    assert 'tileset "world" has cache "store" of type none, which keeps nothing' in done.stderr


def test_one_level(tmp_path):
    site = Site(tmp_path, STORES["sqlite3"])
    site.seed("-z", "3")
    assert site.counts() == [0, 0, 0, 64, 0]


def lose_first_tiles(folder, kind):
    """Of the metatiles of level 3, as a copy or an ingest that has none of them leaves it."""
    if kind == "sqlite3":
        with contextlib.closing(sqlite3.connect(folder / "tiles.db")) as database, database:
            assert database.execute("DELETE FROM tiles WHERE z = 3 AND x % 4 = 0 AND y % 4 = 0").rowcount == 4
        return
    for y in (0, 4):
        for x in (0, 4):
            (folder / f"t/world/{GRID}/3/{y}/{x}.png").unlink()


@pytest.mark.parametrize("kind", ["sqlite3", "template"])
def test_a_metatile_without_its_first_tile_is_deleted(tmp_path, kind):
    site = Site(tmp_path, STORES[kind])
    site.config.write_text(site.config.read_text().replace("<metatile>1 1", "<metatile>4 4"))
    site.seed("-z", "3,3")
    lose_first_tiles(tmp_path, kind)
    assert site.counts()[3] == 60
    site.purge("-z", "3,3", "-e", "1,1,20037508,20037508", "--yes")
    assert site.counts()[3] == 45
    site.purge("-z", "3,3", "-e", "-20037508,-20037508,20037508,20037508", "--yes")
    assert site.counts()[3] == 0


def test_only_what_is_old_of_a_metatile_is_deleted(tmp_path):
    site = Site(tmp_path, STORES["sqlite3"])
    site.config.write_text(site.config.read_text().replace("<metatile>1 1", "<metatile>4 4"))
    site.seed("-z", "3,3")
    with contextlib.closing(sqlite3.connect(tmp_path / "tiles.db")) as database, database:
        old = "UPDATE tiles SET ctime = datetime('now', '-2 days') WHERE z = 3 AND "
        assert database.execute(old + "x < 4 AND y < 4 AND x % 4 = 1").rowcount == 4  # some of one metatile, not the first
        assert database.execute(old + "x >= 4 AND y >= 4").rowcount == 16  # another one
    site.purge("-z", "3,3", "--older", "1d", "--yes")
    assert site.counts()[3] == 64 - 4 - 16


@pytest.mark.parametrize("kind", ["sqlite3", "disk"])
def test_tiles_for_fine_screens_are_counted_and_go_along(tmp_path, kind):
    """By whole levels, by age and by area; `mapcache detail` without a grid counts them, with one only those of the grid."""
    site = Site(tmp_path, STORES[kind], "<density>2</density>")

    def fine():
        done = site.run("detail", "--json", "-z", "0,2")
        told = json.loads(done.stdout)["fine_screens"]
        assert [one["grid"] for one in told] == [f"{GRID}@2x"]
        return [level["nb_tiles_in_region"]["cached_in_level"] for level in told[0]["zoom_levels"]]

    assert f"grid {GRID}@2x, for fine screens: no tile is stored" in site.run("detail", "-z", "0,2").stdout
    for options in (["-z", "1,1"], ["-z", "1,1", "--older", "2100/01/01 00:00"], ["-z", "1,1", "-e", "-2e7,-2e7,2e7,2e7"]):
        for grid in GRID, f"{GRID}@2x":
            site.seed("-z", "0,2", "-g", grid)
        assert site.counts()[:3] == fine() == [1, 4, 16]
        assert f"tileset world, grid {GRID}@2x" in site.run("detail", "-z", "0,2").stdout
        assert "fine_screens" not in json.loads(site.run("detail", "--json", "-z", "0,2", "-g", GRID).stdout)
        site.purge(*options, "--yes")
        assert site.counts()[:3] == fine() == [1, 0, 16], options

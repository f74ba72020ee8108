"""<deduplicate>: each content once in a SQLite cache and in MBTiles files; what is stored, overwritten, removed and compacted
stays what was stored."""
import json
import os
import pathlib
import sqlite3
import subprocess

import pytest
from fastcgi import Server
from patience import patience
from test_geopackage import picture
from test_pmtiles import run

BUILD = pathlib.Path(os.environ.get("MAPCACHE_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build" / "release"))
TYPES = {"sqlite3": "places", "mbtiles": "map"}
PLAIN = ("create table tiles(tileset text, grid text, x integer, y integer, z integer, data blob, dim text, ctime datetime,"
         " primary key(tileset, grid, x, y, z, dim))")


def content(z, x, y):
    """Four of five tiles are the sea's, as of a planet."""
    return b"\x89PNG\r\n\x1a\n" + (b"sea" * 30 if (x * 7 + y * 3 + z) % 5 else f"{z}/{x}/{y} ".encode() * 200)


def places(levels):
    return [(z, x, y) for z in range(levels + 1) for x in range(2**z) for y in range(2**z)]


def config(folder, type_, key="<deduplicate>true</deduplicate>", more=""):
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache>
  <source name="world" type="gdal"><data>{folder}/world.tif</data></source>
  <cache name="from" type="sqlite3"><dbfile>{folder}/from.db</dbfile></cache>
  <cache name="to" type="{type_}"><dbfile>{folder}/to.db</dbfile>{key}</cache>
  <tileset name="from"><cache>from</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>
  <tileset name="to"><cache>to</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>
  <tileset name="drawn"><source>world</source><cache>to</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>
  <service type="tms" enabled="true"/><lock_dir>{folder}</lock_dir>{more}
</mapcache>
""")
    return path


def source(folder, levels, tile=content, tileset="from"):
    with sqlite3.connect(folder / "from.db") as database:
        database.execute(PLAIN.replace("create table", "create table if not exists"))
        database.executemany("insert or replace into tiles values(?, 'GoogleMapsCompatible', ?, ?, ?, ?, '', '2020-01-02 03:04:05')",
                             ((tileset, x, y, z, tile(z, x, y)) for z, x, y in places(levels)))
    database.close()


def transfer(path, levels, first=0, more=()):
    run("seed", "-c", path, "-t", "from", "--mode", "transfer", "--transfer", "to", "-z", f"{first},{levels}", "--quiet", *more)


def ask(folder, sql):
    database = sqlite3.connect(folder / "to.db")
    try:
        return database.execute(sql).fetchall()
    finally:
        database.close()


def stored(folder, type_):
    columns = "z, x, y, data" if type_ == "sqlite3" else "zoom_level, tile_column, tile_row, tile_data"
    return {(z, x, y): data for z, x, y, data in ask(folder, f"select {columns} from tiles")}


def contents(folder):
    return ask(folder, "select count(*) from images")[0][0]


@pytest.mark.parametrize("type_", TYPES)
def test_each_content_stands_once(tmp_path, build, type_):
    source(tmp_path, 5)
    path = config(tmp_path, type_)
    transfer(path, 5)
    wanted = {place: content(*place) for place in places(5)}
    assert stored(tmp_path, type_) == wanted and contents(tmp_path) == len(set(wanted.values()))
    server = Server(build, path, tmp_path)
    try:
        for z, x, y in (0, 0, 0), (5, 31, 30), (5, 0, 1), (4, 3, 3):
            assert server.get(f"/tms/1.0.0/to@GoogleMapsCompatible/{z}/{x}/{y}.png").body == content(z, x, y)
    finally:
        server.stop()
    assert " 1365 " in run("detail", "-c", path, "-t", "to", "-z", "0,5")


@pytest.mark.parametrize("type_", TYPES)
def test_what_is_overwritten_and_removed_goes_with_compact(tmp_path, type_):
    """References stay right all the time; contents without a place stay until `mapcache compact`, whose dry run tells of them."""
    source(tmp_path, 4)
    path = config(tmp_path, type_)
    transfer(path, 4)
    source(tmp_path, 4, lambda z, x, y: content(z, x, y) + (b"new" if z == 4 else b""))
    run("seed", "-c", path, "-t", "to", "--mode", "delete", "-z", "4,4", "--quiet")
    transfer(path, 4, first=4)
    wanted = {(z, x, y): content(z, x, y) + (b"new" if z == 4 else b"") for z, x, y in places(4)}
    assert stored(tmp_path, type_) == wanted
    unused = contents(tmp_path) - len(set(wanted.values()))
    assert unused > 40
    told = json.loads(run("compact", "-c", path, "-C", "to", "--dry-run", "--json").splitlines()[0])
    assert told["reclaimable_size"] > unused * 1000 and contents(tmp_path) == len(set(wanted.values())) + unused
    run("purge", "-c", path, "-t", "to", "-z", "3,3", "--yes")
    wanted = {place: data for place, data in wanted.items() if place[0] != 3}
    assert stored(tmp_path, type_) == wanted
    run("compact", "-c", path, "-C", "to")
    assert contents(tmp_path) == len(set(wanted.values())) and stored(tmp_path, type_) == wanted
    assert ask(tmp_path, "pragma integrity_check") == [("ok",)]


@pytest.mark.parametrize("type_", TYPES)
def test_a_file_that_is_there_keeps_its_form(tmp_path, type_):
    """Written before the key was set: MapCache's layout stays MapCache's, and tables of other programs theirs."""
    source(tmp_path, 2)
    transfer(config(tmp_path, type_, key=""), 2)
    before = ask(tmp_path, "select name, type from sqlite_master order by name")
    source(tmp_path, 3)
    path = config(tmp_path, type_)
    transfer(path, 3, first=3)
    run("purge", "-c", path, "-t", "to", "-z", "2,2", "--yes")
    run("compact", "-c", path)
    assert ask(tmp_path, "select name, type from sqlite_master order by name") == before
    assert stored(tmp_path, type_) == {place: content(*place) for place in places(3) if place[0] != 2}


def test_mapcaches_own_statements_write_into_it(tmp_path):
    """A cache without the key, whose statements are MapCache's, reads, overwrites and removes tiles of such a file."""
    source(tmp_path, 3)
    transfer(config(tmp_path, "sqlite3"), 3)
    source(tmp_path, 3, lambda z, x, y: content(z, x, y) + b"2")
    path = config(tmp_path, "sqlite3", key="")
    transfer(path, 3, first=3, more=["--force"])
    database = sqlite3.connect(tmp_path / "to.db")
    database.execute("delete from tiles where tileset='to' and grid='GoogleMapsCompatible' and x=0 and y=0 and z=2 and dim=''")
    database.execute("insert or replace into tiles(tileset, grid, x, y, z, data, dim, ctime) values('to', 'GoogleMapsCompatible', 1, 0, 2, ?, '', datetime('now'))", (b"by hand",))
    database.commit()
    assert database.execute("select strftime('%s', ctime) > 1600000000 from tiles where x=1 and y=0 and z=2").fetchall() == [(1,)]
    database.close()
    run("compact", "-c", config(tmp_path, "sqlite3"))
    wanted = {(z, x, y): content(z, x, y) + (b"2" if z == 3 else b"") for z, x, y in places(3) if (z, x, y) != (2, 0, 0)}
    assert stored(tmp_path, "sqlite3") == {**wanted, (2, 1, 0): b"by hand"}


@pytest.mark.parametrize("type_", TYPES)
def test_drawn_tiles_and_time(tmp_path, type_):
    """A seed of a source, of which most tiles are empty; again, with all of them expired."""
    picture(tmp_path / "world.tif")
    path = config(tmp_path, type_)
    for _ in range(2):
        run("seed", "-c", path, "-t", "drawn", "-z", "0,3", "--quiet", "--force")
    database = stored(tmp_path, type_)
    assert len(database) == 85 and all(data[:4] == b"\x89PNG" for data in database.values())
    assert contents(tmp_path) <= len(set(database.values())) + 1


@pytest.mark.parametrize("type_", TYPES)
def test_a_killed_seed_leaves_no_wrong_tile(tmp_path, type_):
    source(tmp_path, 7)
    path = config(tmp_path, type_)
    command = [str(BUILD / "bin/mapcache"), "seed", "-c", str(path), "-t", "from", "--mode", "transfer", "--transfer", "to", "-z", "0,7", "--quiet"]
    for attempt in range(8):
        seeding = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            seeding.wait((attempt + 1) * 0.05)
        except subprocess.TimeoutExpired:
            seeding.kill()
            seeding.wait()
        if attempt % 3 == 2:
            subprocess.run([str(BUILD / "bin/mapcache"), "compact", "-c", str(path), "-C", "to"], capture_output=True, timeout=patience(60), check=False)
    transfer(path, 7)
    wanted = {place: content(*place) for place in places(7)}
    assert stored(tmp_path, type_) == wanted
    run("compact", "-c", path, "-C", "to")
    assert stored(tmp_path, type_) == wanted and contents(tmp_path) == len(set(wanted.values()))
    assert ask(tmp_path, "pragma integrity_check") == [("ok",)]


def test_the_same_name_of_another_content_is_noticed(tmp_path):
    """MBTiles: a picture that has the name of a content without being that content is not shown in its place."""
    source(tmp_path, 2)
    path = config(tmp_path, "mbtiles")
    transfer(path, 2)
    database = sqlite3.connect(tmp_path / "to.db")
    database.execute("update images set tile_data = x'00' where tile_id like '=%'")
    database.execute("delete from map where zoom_level = 2")
    database.commit()
    database.close()
    transfer(path, 2, first=2)
    assert {place: data for place, data in stored(tmp_path, "mbtiles").items() if place[0] == 2} == {place: content(*place) for place in places(2) if place[0] == 2}


def test_statements_of_ones_own_are_refused(tmp_path):
    path = config(tmp_path, "sqlite3", key="<deduplicate>true</deduplicate><queries><get>SELECT data FROM tiles WHERE x=:x</get></queries>")
    assert "no <queries> beside it" in run("check", path, status=1)

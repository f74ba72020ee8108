"""`mapcache compact` and `mapcache detail --stores`: what stores take up and could give back, tiles that no configuration
knows, beside those who read and write, and when the program is killed or the disk is full."""
import json
import os
import pathlib
import random
import resource
import signal
import sqlite3
import subprocess
import threading
import time

import pytest
from conftest import GRID, wait_until
from patience import patience
from postgres import Postgres
from small_disk import small_disk

BUILD = pathlib.Path(os.environ.get("MAPCACHE_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build" / "release"))
KINDS = {"sqlite3": "<dbfile>{folder}/{{tileset}}.sqlite3</dbfile>", "mbtiles": "<dbfile>{folder}/tiles.mbtiles</dbfile>",
         "geopackage": "<dbfile>{folder}/tiles.gpkg</dbfile>", "single": "<dbfile>{folder}/single.db</dbfile><detect_blank/>",
         "disk": "<base>{folder}/disk</base>"}


def program(*arguments, **options):
    return subprocess.run([str(BUILD / "bin" / "mapcache"), *map(str, arguments)], capture_output=True, text=True, timeout=patience(100), **options)


def seed(config, tileset, *options, **more):
    return program("seed", "-c", config, "-t", tileset, "-q", *options, **more)


def configuration(folder, name="mapcache.xml", tilesets=None, extra="", zooms=""):
    caches = "".join(f'<cache name="{kind}" type="{"sqlite3" if kind == "single" else kind}">{inner.format(folder=folder)}</cache>'
                     for kind, inner in KINDS.items())
    sets = "".join(f'<tileset name="{kind}"><source>any</source><cache>{kind}</cache><grid{zooms}>{GRID}</grid><format>PNG</format>'
                   "<metatile>4 4</metatile></tileset>" for kind in tilesets or KINDS)
    path = folder / name
    path.write_text(f"""<mapcache><source name="any" type="dummy"/>{caches}{extra}{sets}<service type="wmts" enabled="true"/>
      <lock_dir>{folder}</lock_dir></mapcache>""")
    return path


def report(config, tileset, *options):
    result = program("detail", "--json", "-c", config, "-t", tileset, "-g", GRID, *options)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def swell(path, tiles=1500, size=9000):
    """Tiles of level 9 in the default schema, of which every third stays."""
    with sqlite3.connect(path) as db:
        db.executemany("insert or replace into tiles values('single', ?, ?, ?, 9, ?, '', datetime('now'))",
                       [(GRID, i % 40, i // 40, bytes([i % 200]) * size) for i in range(tiles)])
        db.commit()
        db.execute("delete from tiles where z = 9 and (x + y) % 3 <> 0")
        db.commit()
    db.close()


def content(path):
    with sqlite3.connect(path, timeout=patience(60)) as db:
        assert db.execute("pragma integrity_check").fetchone()[0] == "ok"
        found = db.execute("select tileset, grid, z, x, y, dim, data from tiles order by 1, 2, 3, 4, 5").fetchall()
    db.close()
    return found


def test_detail_counts_every_kind(tmp_path):
    config = configuration(tmp_path)
    for kind in KINDS:
        assert seed(config, kind, "-z", "0,3").returncode == 0
        found = report(config, kind, "-z", "2,3", "-e", "-20037508,0,0,20037508", "--stores")
        assert found["nb_tiles_in_region"] == {"missing_in_cache": 0, "cached_in_cache": 20, "max_in_cache": 20, "coverage": 1}
        assert found["sizes"]["total_nbtiles_in_files"] == 85 and found["sizes"]["total_size_of_files"] > 85 * 40
        [store] = found["stores"]
        assert store["nb_tiles"] == 85 and store["nb_orphaned_tiles"] == 0 and store["orphans"] == []
        assert store["nb_blank_tiles"] == (85 if kind in ("single", "mbtiles") else 0)
        assert store["size"] >= store["tiles_size"] // (85 if kind == "mbtiles" else 1) > 0


def test_a_disk_cache_behind_a_link(tmp_path):
    """<base> may be a link to a folder of another disk."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "disk").symlink_to(tmp_path / "elsewhere")
    config = configuration(tmp_path)
    assert seed(config, "disk", "-z", "0,3").returncode == 0
    [store] = report(config, "disk", "-z", "0", "--stores")["stores"]
    assert store["nb_tiles"] == 85 and store["size"] > 0
    fewer = configuration(tmp_path, "fewer.xml", ["single"])
    assert program("compact", "-c", fewer, "-C", "disk", "--orphans").returncode == 0
    assert list((tmp_path / "elsewhere").rglob("*.png")) == [] and (tmp_path / "disk").is_symlink()


def test_mbtiles_of_another_program(tmp_path):
    """Its tiles are a table, not a view."""
    config = configuration(tmp_path, tilesets=["mbtiles"], zooms=' maxzoom="4"')
    with sqlite3.connect(tmp_path / "tiles.mbtiles") as db:
        db.executescript("create table metadata(name text, value text); create table tiles(zoom_level integer, tile_column integer,"
                         " tile_row integer, tile_data blob, unique(zoom_level, tile_column, tile_row))")
        db.executemany("insert into tiles values(?, ?, 0, zeroblob(100))", [(z, x) for z in (3, 5) for x in range(8)])
    db.close()
    [store] = report(config, "mbtiles", "-z", "0", "--stores")["stores"]
    assert (store["nb_tiles"], store["nb_orphaned_tiles"], store["tiles_size"]) == (16, 8, 1600)
    result = program("compact", "-c", config, "-C", "mbtiles", "--orphans")
    assert result.returncode == 0, result.stdout + result.stderr
    with sqlite3.connect(tmp_path / "tiles.mbtiles") as db:
        assert db.execute("select zoom_level, count(*) from tiles group by 1").fetchall() == [(3, 8)]
    db.close()


def test_mapcache_detail_stays_as_it_was(tmp_path):
    config = configuration(tmp_path)
    for options in (["-t", "disk"], ["-t", "mbtiles"], ["-t", "single", "--stores"]):
        result = subprocess.run([str(BUILD / "bin" / "mapcache_detail"), "-c", str(config), "-g", GRID, *options], capture_output=True)
        assert result.returncode == 1 and result.stdout == b""
    assert seed(config, "single", "-z", "0,1").returncode == 0
    result = subprocess.run([str(BUILD / "bin" / "mapcache_detail"), "-c", str(config), "-g", GRID, "-t", "single"], capture_output=True)
    assert "stores" not in json.loads(result.stdout)


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_file_shrinks_and_keeps_its_tiles(tmp_path, journal):
    config = configuration(tmp_path)
    assert seed(config, "single", "-z", "0,2").returncode == 0
    file = tmp_path / "single.db"
    with sqlite3.connect(file) as db:
        db.execute(f"pragma journal_mode={journal}")
    swell(file)
    before, size = content(file), file.stat().st_size
    told = program("compact", "-c", config, "-C", "single", "--dry-run")
    assert told.returncode == 0 and "can be given back" in told.stdout and file.stat().st_size == size
    result = program("compact", "-c", config, "-C", "single")
    assert result.returncode == 0 and "before" in result.stdout, result.stderr
    assert file.stat().st_size < size / 2 and content(file) == before
    with sqlite3.connect(file) as db:
        assert db.execute("pragma journal_mode").fetchone()[0] == journal
        assert db.execute("pragma auto_vacuum").fetchone()[0] == 2
    db.close()
    swell(file)  # the second time in steps
    before = content(file)
    result = program("compact", "-c", config, "-C", "single", "--json")
    found = json.loads(result.stdout)
    assert found["size_after"] < found["size"] and found["reclaimable_size_after"] == 0 and content(file) == before
    assert "nothing to do" in program("compact", "-c", config, "-C", "single").stdout


def test_compacting_beside_readers_and_a_seeder(tmp_path):
    config = configuration(tmp_path)
    assert seed(config, "single", "-z", "0,2").returncode == 0
    file, wrong, ended = tmp_path / "single.db", [], threading.Event()
    swell(file, 4000)

    def read():
        db = sqlite3.connect(file, timeout=patience(60))
        while not ended.is_set():
            i = 3 * random.randrange(400)
            row = db.execute("select data from tiles where z = 9 and x = ? and y = ?", (i % 40, i // 40)).fetchone()
            if (i % 40 + i // 40) % 3 == 0 and (row is None or row[0] != bytes([i % 200]) * 9000):
                wrong.append(i)
        db.close()

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    seeder = subprocess.Popen([str(BUILD / "bin" / "mapcache"), "seed", "-c", str(config), "-t", "single", "-q", "-z", "3,6"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    results = [program("compact", "-c", config, "-C", "single") for _ in range(3)]
    output = seeder.communicate(timeout=patience(90))[0]
    ended.set()
    for reader in readers:
        reader.join()
    assert seeder.returncode == 0, output
    assert [result.returncode for result in results] == [0, 0, 0], [result.stderr for result in results]
    assert wrong == []
    rows = [row for row in content(file) if row[2] < 9]
    assert len(rows) == sum(4**z for z in range(7))


def test_killed_while_compacting(tmp_path):
    config = configuration(tmp_path)
    assert seed(config, "single", "-z", "0,2").returncode == 0
    file = tmp_path / "single.db"
    swell(file, 6000)
    before = content(file)
    for i in range(6):
        child = subprocess.Popen([str(BUILD / "bin" / "mapcache"), "compact", "-c", str(config), "-C", "single"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.01 + 0.015 * i)
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert content(file) == before
        if i == 3:
            swell(file, 6000)
            before = content(file)
    assert program("compact", "-c", config).returncode == 0
    assert content(file) == before


def test_orphans_are_told_and_removed(tmp_path):
    config = configuration(tmp_path)
    for kind in KINDS:
        assert seed(config, kind, "-z", "0,4").returncode == 0
    with sqlite3.connect(tmp_path / "single.db") as db:
        db.execute("insert into tiles values('gone', ?, 1, 1, 1, x'00', '', datetime('now'))", (GRID,))
        db.execute("insert into tiles values('single', 'nogrid', 1, 1, 1, x'00', '', datetime('now'))")
        db.execute("insert into tiles values('single', ?, 1, 1, 1, x'00', 'a#b', datetime('now'))", (GRID,))
    db.close()
    left = tmp_path / "disk" / "disk" / GRID / "03" / "000" / "000" / "001" / "000" / "000" / "002.png.4711.3.tmp"
    fresh = left.with_name("003.png.4711.4.tmp")
    foreign = tmp_path / "disk" / "notes" / "a" / "b.txt"
    foreign.parent.mkdir(parents=True)
    for file in left, fresh, foreign:
        file.write_text("x")
    os.utime(left, (1, 1))
    os.utime(foreign, (1, 1))
    narrower = configuration(tmp_path, "narrower.xml", zooms=' minzoom="0" maxzoom="3"')
    orphans = {kind: report(narrower, kind, "--stores")["stores"][0] for kind in KINDS}
    for kind in KINDS:
        assert {group["level"] for group in orphans[kind]["orphans"]} - {1} == {4}
        assert orphans[kind]["nb_orphaned_tiles"] == (256 if kind != "single" else 259)
    assert orphans["disk"]["nb_leftover_files"] == 1
    told = program("compact", "-c", narrower, "--orphans", "--dry-run")
    assert told.returncode == 0 and "level 4 are not known\n" in told.stdout and "gone" in told.stdout
    assert report(config, "mbtiles", "-z", "4")["nb_tiles_in_region"]["cached_in_cache"] == 256
    removed = program("compact", "-c", narrower, "--orphans")
    assert removed.returncode == 0 and "level 4 are not known: removed" in removed.stdout, removed.stderr
    for kind in KINDS:
        found = report(config, kind, "-z", "0,4", "--stores")
        assert found["nb_tiles_in_region"]["cached_in_cache"] == 85, kind
        assert found["stores"][0]["nb_tiles"] == 85 and found["stores"][0]["nb_orphaned_tiles"] == 0
        assert found["stores"][0]["reclaimable_size"] == 0
    assert fresh.exists() and foreign.exists() and not left.exists()
    assert not (tmp_path / "disk" / "disk" / GRID / "04").exists()


def test_leftovers_of_a_template_are_removed_and_nothing_else(tmp_path):
    extra = (f'<cache name="template" type="disk" layout="template"><template>{tmp_path}/own/{{tileset}}/{{z}}/{{x}}-{{y}}.{{ext}}</template>'
             f"</cache><tileset name='free'><source>any</source><cache>template</cache><grid>{GRID}</grid><format>PNG</format></tileset>")
    config = configuration(tmp_path, tilesets=[], extra=extra)
    assert seed(config, "free", "-z", "0,2").returncode == 0
    folder = tmp_path / "own" / "free" / "2"
    tiles = sorted(folder.rglob("*.png"))
    left, fresh = folder / "1-1.png.4711.3.tmp", folder / "1-1.png.4711.4.tmp"
    foreign = [folder / name for name in ("notes.tmp", "1.tmp", "a.1.tmp", "a.1.b.tmp", "a.b.2.tmp", ".1.2.tmp", "a.png.1.2.tmp.txt")]
    for file in left, fresh, *foreign:
        file.write_text("x")
    for file in left, *foreign:
        os.utime(file, (1, 1))
    assert report(config, "free", "--stores")["stores"][0]["nb_leftover_files"] == 1
    told = program("compact", "-c", config, "--orphans", "--dry-run")
    assert told.returncode == 0 and "1 files that writers have left behind" in told.stdout and left.exists()
    assert program("compact", "-c", config, "--orphans").returncode == 0
    assert not left.exists() and fresh.exists() and all(file.exists() for file in foreign)
    assert sorted(folder.rglob("*.png")) == tiles and len(tiles) == 16


def test_a_table_of_postgresql(tmp_path):
    with Postgres() as database:
        extra = (f'<cache name="table" type="postgresql"><connection>{database.connection()}</connection></cache><tileset name="shared">'
                 f"<source>any</source><cache>table</cache><grid>{GRID}</grid><format>PNG</format></tileset>")
        config = configuration(tmp_path, extra=extra)
        assert report(config, "shared", "--stores")["stores"][0]["nb_tiles"] == 0  # there is no table
        assert seed(config, "shared", "-z", "0,4").returncode == 0
        found = report(config, "shared", "-z", "2,3", "-e", "-20037508,0,0,20037508", "--stores")
        assert found["nb_tiles_in_region"]["cached_in_cache"] == 20 and found["sizes"]["total_nbtiles_in_files"] == 341
        assert found["stores"][0]["nb_tiles"] == 341 and found["stores"][0]["size"] > 8192
        database.sql("update mapcache_tiles set tileset = 'gone' where z = 4")
        result = program("compact", "-c", config, "-C", "table", "--orphans")
        assert result.returncode == 0 and "256 tiles" in result.stdout and "tileset gone" in result.stdout, result.stderr
        assert database.sql("select count(*) from mapcache_tiles") == ["85"]
        assert database.sql("select vacuum_count from pg_stat_all_tables where relname = 'mapcache_tiles'") == ["1"]
        database.stop()
        result = program("compact", "-c", config, "-C", "table")
        assert result.returncode == 2 and "cannot reach its tiles" in result.stderr
        assert report(config, "single", "--stores")["stores"] == []


def test_an_interrupt_ends_the_wait_for_a_database(tmp_path):
    with Postgres() as database:
        config = configuration(tmp_path, extra=f'<cache name="table" type="postgresql"><connection>{database.connection()}</connection></cache>'
                               f'<tileset name="shared"><source>any</source><cache>table</cache><grid>{GRID}</grid><format>PNG</format></tileset>')
        assert seed(config, "shared", "-z", "0,2").returncode == 0
        waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
        locker = subprocess.Popen(database.session("begin; lock table mapcache_tiles in access exclusive mode; select pg_sleep(300)"))
        try:
            wait_until(lambda: database.sql("select count(*) from pg_locks where mode = 'AccessExclusiveLock' and granted"
                                            " and relation = to_regclass('mapcache_tiles')") == ["1"], "the lock")
            worker = subprocess.Popen([str(BUILD / "bin" / "mapcache"), "compact", "-c", config, "-C", "table"], stderr=subprocess.PIPE, text=True)
            wait_until(lambda: database.sql(waiting) == ["1"], "the wait for it")
            worker.send_signal(signal.SIGINT)
            assert "interrupted" in worker.communicate(timeout=patience(60))[1]
            assert worker.returncode == 2
            wait_until(lambda: database.sql(waiting) == ["0"], "the end of that wait")
        finally:
            locker.kill()
            locker.wait()


def test_files_that_never_change_are_not_changed(tmp_path):
    config = configuration(tmp_path)
    assert seed(config, "single", "-z", "0,2").returncode == 0
    swell(tmp_path / "single.db")
    config.write_text(config.read_text().replace("<detect_blank/>", "<detect_blank/><immutable>true</immutable>"))
    before = (tmp_path / "single.db").read_bytes()
    for options in [], ["--orphans"]:
        result = program("compact", "-c", config, "-C", "single", *options)
        assert result.returncode == 2 and "<immutable>" in result.stderr, result.stdout + result.stderr
    assert (tmp_path / "single.db").read_bytes() == before
    assert program("compact", "-c", config, "-C", "single", "--dry-run").returncode == 0


def test_too_little_room_is_said_before_anything_is_done(tmp_path):
    with small_disk(tmp_path / "small", 24 << 20) as place:
        limit = {}
        if place is None:  # without the right to mount, files may not grow instead, and SQLite says so itself
            place, limit = tmp_path / "small", {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))}
        config = configuration(place)
        assert seed(config, "single", "-z", "0,2").returncode == 0
        file = place / "single.db"
        swell(file, 1200)
        if not limit:
            (place / "ballast").write_bytes(bytes((24 << 20) - sum(f.stat().st_size for f in place.iterdir()) - (3 << 20)))
        before, size = content(file), file.stat().st_size
        result = program("compact", "-c", config, "-C", "single", **limit)
        assert result.returncode == 2, result.stdout + result.stderr
        assert limit or ("MB of room in" in result.stderr and "make room" in result.stderr)
        assert content(file) == before and file.stat().st_size == size
        if not limit:
            assert [f.name for f in place.iterdir() if "etilqs" in f.name] == []


@pytest.mark.parametrize("options", [[], ["-c", "none.xml"], ["-c", "CONFIG", "-C", "none"], ["-c", "CONFIG", "--nonsense"], ["-c", "CONFIG", "more"]])
def test_wrong_use(tmp_path, options):
    config = configuration(tmp_path)
    result = program("compact", *[str(config) if option == "CONFIG" else option for option in options])
    assert result.returncode == 1 and result.stdout == "" and result.stderr

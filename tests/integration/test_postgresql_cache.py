"""Tiles in PostgreSQL through the whole program: one store for several seeders and servers, few round trips, and what
happens when it is away."""
import os
import pathlib
import subprocess

import pytest
from conftest import GRID, wait_until
from fastcgi import Server
from patience import patience
from postgres import Postgres

BUILD = pathlib.Path(os.environ.get("MAPCACHE_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build" / "release"))
WORLD = "-20037508.342789248,-20037508.342789248,20037508.342789248,20037508.342789248"
MAP = f"SERVICE=WMS&REQUEST=GetMap&LAYERS=world&SRS=EPSG:3857&BBOX={WORLD}&WIDTH=1024&HEIGHT=1024&FORMAT=image/png"


@pytest.fixture(scope="module")
def database():
    with Postgres(settings=("log_statement=all", "shared_buffers=64MB")) as server:
        yield server


def config(folder, database, name="mapcache", source="<source>any</source>"):
    path = folder / f"{name}.xml"
    path.write_text(f"""<mapcache>
  <source name="any" type="dummy"/>
  <cache name="store" type="postgresql"><connection>{database.connection()}</connection><table>{folder.name}</table></cache>
  <cache name="file" type="sqlite3"><dbfile>{folder}/tiles.sqlite3</dbfile></cache>
  <tileset name="world">{source}<cache>store</cache><grid>{GRID}</grid><format>PNG</format><metatile>4 4</metatile></tileset>
  <tileset name="same"><source>any</source><cache>file</cache><grid>{GRID}</grid><format>PNG</format><metatile>4 4</metatile></tileset>
  <service type="wmts" enabled="true"/>
  <service type="wms" enabled="true"><format>PNG</format></service>
  <lock_dir>{folder}</lock_dir>
</mapcache>
""")
    return path


def seed(path, tileset, *options):
    return subprocess.run([str(BUILD / "bin" / "mapcache_seed"), "-c", str(path), "-t", tileset, *options],
                          capture_output=True, text=True, timeout=patience(100))


def statements(database, since):
    """What clients asked for, without the server's own words; a statement is in the log when it is run."""
    return [line for line in database.log()[since:].splitlines() if " execute " in line and "mapcache" in line]


def test_seeders_and_servers_share_a_table(tmp_path, build, database):
    path = config(tmp_path, database)
    result = seed(path, "world", "-z", "0,4", "-p", "3")
    assert result.returncode == 0, result.stdout + result.stderr
    assert seed(path, "same", "-z", "0,4").returncode == 0
    table = f'"{tmp_path.name}"'
    assert database.sql(f"select z, count(*) from {table} group by 1 order by 1") == ["0|1", "1|4", "2|16", "3|64", "4|256"]
    reader = config(tmp_path, database, "reader", source="")
    first, second = Server(build, path, tmp_path), Server(build, reader, tmp_path)
    try:
        for z, x, y in ((0, 0, 0), (2, 1, 3), (4, 9, 14)):
            kept = first.get(f"/wmts/1.0.0/same/default/{GRID}/{z}/{y}/{x}.png")
            for server in (first, second):
                answer = server.get(f"/wmts/1.0.0/world/default/{GRID}/{z}/{y}/{x}.png")
                assert answer.status == 200 and answer.body == kept.body
        before = len(database.log())
        drawn = second.get("/", MAP)
        assert drawn.status == 200 and drawn.body == first.get("/", MAP.replace("world", "same")).body
        wait_until(lambda: statements(database, before), "a statement in the log")
        assert len(statements(database, before)) == 1, statements(database, before)
        assert seed(path, "world", "-m", "delete", "-z", "2,4").returncode == 0
        assert second.get(f"/wmts/1.0.0/world/default/{GRID}/4/9/14.png").body != kept.body  # nothing to see
        assert database.sql(f"select z, count(*) from {table} group by 1 order by 1") == ["0|1", "1|4"]
    finally:
        first.stop()
        second.stop()


def test_a_value_that_is_no_text_is_the_clients_mistake(tmp_path, build, database):
    """PostgreSQL takes UTF-8 only; files take any bytes."""
    path = config(tmp_path, database)
    path.write_text(path.read_text().replace("<metatile>4 4</metatile>", '<metatile>4 4</metatile><dimensions><dimension type="regex" name="P"'
                                             ' default="a"><regex>.*</regex></dimension></dimensions>'))
    server = Server(build, path, tmp_path)
    try:
        tile = f"/wmts/1.0.0/world/default/%s/{GRID}/1/0/0.png"
        for value, status in (("b", 200), ("\xe9\x9f\xb3", 200), ("\xff\xfe", 400), ("\xed\xa0\x80", 400)):
            answer = server.get((tile % value).encode("latin-1"))
            assert answer.status == status, (value, answer.status, answer.body)
            answer = server.get("/", MAP.encode() + b"&DIM_P=" + value.encode("latin-1"))
            assert answer.status == status, (value, answer.status, answer.body)
    finally:
        server.stop()


def test_removing_survives_a_deadlock(tmp_path, database):
    """Somebody else locks two of the tiles in the other order; the database ends our statement, not theirs."""
    path, table = config(tmp_path, database), f'"{tmp_path.name}"'
    path.write_text(path.read_text().replace("gssencmode=disable", "gssencmode=disable options='-c deadlock_timeout=4s'"))
    assert seed(path, "world", "-z", "2,2").returncode == 0
    lock = f"select 1 from {table} where z = 2 and x = %d and y = 0 for update;"
    other = subprocess.Popen(database.session("set deadlock_timeout = '60s'; begin;" + lock % 3 + "select pg_sleep(2);" + lock % 0 + "commit"))
    wait_until(lambda: database.sql("select count(*) from pg_stat_activity where query like '%pg_sleep(2)%' and wait_event = 'PgSleep'") == ["1"], "the lock")
    result = seed(path, "world", "-m", "delete", "-z", "2,2")
    assert other.wait(patience(60)) == 0
    assert result.returncode == 0 and "fail" not in result.stdout + result.stderr, result.stdout + result.stderr
    assert database.sql(f"select count(*) from {table}") == ["0"]


def test_a_database_that_is_away(tmp_path, build, database):
    path = config(tmp_path, database)
    assert seed(path, "world", "-z", "0,1").returncode == 0
    server = Server(build, config(tmp_path, database, "reader", source=""), tmp_path)
    try:
        tile = f"/wmts/1.0.0/world/default/{GRID}/1/0/0.png"
        kept = server.get(tile)
        assert kept.status == 200
        database.stop()
        away = server.get(tile)
        assert away.status == 503 and away.header("Retry-After"), (away.status, away.body)
        assert b"password" not in away.body and b"127.0.0.1" not in away.body
        database.start()
        wait_until(lambda: server.get(tile).status == 200, "the tile again")
        assert server.get(tile).body == kept.body
    finally:
        server.stop()


def test_a_table_of_another_shape_is_an_error(tmp_path, build, database):
    database.sql(f'create table "{tmp_path.name}"(tileset text, data bytea)')
    server = Server(build, config(tmp_path, database, source=""), tmp_path)
    try:
        answer = server.get(f"/wmts/1.0.0/world/default/{GRID}/1/0/0.png")
        assert answer.status == 500 and b"tileset" not in answer.body, (answer.status, answer.body)
    finally:
        server.stop()

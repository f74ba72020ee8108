"""Tiles that show a table of PostGIS are new once the table has changed: on all levels, images and vector tiles, in all kinds of
stores, on all servers; whatever order transactions commit in, and whoever is killed or restarted."""
import shutil
import subprocess
import threading
import time

import pytest
from changes_site import database_fixture, squares_fixture  # noqa: F401: fixtures
from changes_site import CACHES, PLACE, body, change, configuration, counter, path_of, prepare, serving, tile_of, wait_for_new, wait_until_followed
from conftest import SOON, wait_until
from fastcgi import Client, Server
from patience import patience
from serving import Serving

VECTORS = """<tileset name="vectors"><source>squares</source><cache>store</cache><grid>GoogleMapsCompatible</grid><format>tiles</format>
</tileset>"""


@pytest.mark.parametrize("cache", list(CACHES))
def test_a_change_shows_on_all_levels_and_nowhere_else(build, squares, tmp_path, cache):
    near = [path_of(tile_of(*PLACE, z), tileset, extension) for z in (0, 3, 6, 9, 12)
            for tileset, extension in (("squares", "png"), ("vectors", "mvt"))
            if cache != "mbtiles" or tileset == "squares"]
    far = [path_of(tile_of(lon, lat, 7)) for lon, lat in ((-100, 10), (30, 46.1), (10.1, 60), (9.9, -46))]
    with serving(build, tmp_path, squares.connection(), cache=cache, tilesets="" if cache == "mbtiles" else VECTORS) as server:
        before = {path: body(server, path) for path in near}
        others = {path: body(server, path) for path in far}
        renders = counter(server, "renders_total")
        change(squares, "new")
        wait_for_new(server, before)
        drawn = counter(server, "renders_total") - renders
        assert len(near) <= drawn <= 3 * len(near), drawn
        renders = counter(server, "renders_total")
        assert {path: body(server, path) for path in far} == others
        assert counter(server, "renders_total") == renders
        change(squares, "old")
        wait_until(lambda: all(body(server, path) == before[path] for path in near if "squares" in path), "the old picture is back", SOON)


def test_two_servers_with_stores_of_their_own_and_with_a_common_one(build, squares, tmp_path):
    path = path_of(tile_of(*PLACE, 8))
    with serving(build, tmp_path / "a", squares.connection()) as one, serving(build, tmp_path / "b", squares.connection()) as two:
        before = body(one, path)
        assert body(two, path) == before
        change(squares, "new")
        wait_for_new(one, {path: before})
        wait_for_new(two, {path: before})
    shutil.rmtree(tmp_path / "b/tiles")
    (tmp_path / "b/tiles").symlink_to(tmp_path / "a/tiles")
    with serving(build, tmp_path / "a", squares.connection()) as one, serving(build, tmp_path / "b", squares.connection()) as two:
        before = body(one, path)
        assert body(two, path) == before
        change(squares, "old")
        wait_for_new(one, {path: before})
        wait_for_new(two, {path: before})


def test_transactions_that_commit_late_are_not_lost(build, squares, tmp_path):
    first, second = path_of(tile_of(*PLACE, 8)), path_of(tile_of(50.1, 46.1, 8))
    with serving(build, tmp_path, squares.connection()) as server:
        before = {path: body(server, path) for path in (first, second)}
        late = subprocess.Popen(squares.session("SELECT 1")[:-2], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        late.stdin.write("BEGIN; UPDATE squares SET state = 'new' WHERE ST_XMin(g) = 8 AND ST_YMin(g) = 44; SELECT 'done';\n")
        late.stdin.flush()
        assert late.stdout.readline().strip() == "done"
        change(squares, "new", (50.1, 46.1))  # a later number, committed earlier
        wait_for_new(server, {second: before[second]})
        assert body(server, first) == before[first]
        rows = counter(server, "change_rows_total")
        for state in ("a", "b", "c"):  # the log goes on meanwhile
            change(squares, state, (90.1, 46.1))
        wait_until(lambda: counter(server, "change_rows_total") >= rows + 3, "the log is read", SOON)
        late.communicate("COMMIT;\n", timeout=patience(20))
        wait_for_new(server, {first: before[first]})
        rows = counter(server, "change_rows_total")
        change(squares, "d", (90.1, 46.1))
        wait_until(lambda: counter(server, "change_rows_total") > rows, "the log is read", SOON)
        assert counter(server, "change_rows_total") == rows + 1  # nothing is read twice


def test_a_change_while_a_tile_is_drawn(build, squares, tmp_path):
    """The query has begun before the change; the tile is stored after the change was seen."""
    slow = """<query>SELECT g, state FROM squares, (SELECT pg_sleep(1)) s WHERE g &amp;&amp; !BBOX!</query>
      <geometry>g</geometry><srid>4326</srid>"""
    for cache in ("disk", "sqlite3", "mbtiles"):
        folder = tmp_path / cache
        folder.mkdir()
        file = configuration(folder, squares.connection(), cache=cache, more="<watch>squares</watch>", table=slow,
                             changes=f"<changes><connection>{squares.connection()}</connection><poll>1</poll></changes>")
        server = Server(build, file, folder)
        try:
            wait_until_followed(server)
            path = path_of(tile_of(*PLACE, 8))
            answers = []

            def ask(server=server, path=path, answers=answers):
                client = Client(server.address)
                answers.append(client.get(path.encode()).body)
                client.close()

            asking = threading.Thread(target=ask)
            asking.start()
            wait_until(lambda: squares.sql("SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_sleep(1)%' AND state = 'active'"
                                           " AND pid <> pg_backend_pid()"), "the tile is being drawn", SOON)
            rows = counter(server, "change_rows_total")
            change(squares, "new" if cache != "sqlite3" else "old")
            wait_until(lambda: counter(server, "change_rows_total") > rows, "the change is seen", SOON)
            asking.join(patience(30))
            wait_for_new(server, {path: answers[0]})
        finally:
            server.stop()


def test_postgresql_is_restarted(build, squares, tmp_path):
    path = path_of(tile_of(*PLACE, 8))
    with serving(build, tmp_path, squares.connection()) as server:
        for state in ("new", "old", "new"):
            before = body(server, path)
            squares.stop()
            assert body(server, path) == before
            squares.start()
            change(squares, state)
            wait_for_new(server, {path: before})


def test_a_server_that_was_killed_reads_on_where_its_readers_are(build, squares, tmp_path):
    path = path_of(tile_of(*PLACE, 8))
    with serving(build, tmp_path, squares.connection()) as server:
        before = body(server, path)
        server.program.process.kill()
        server.program.process.wait()
        change(squares, "new")
        again = Server(build, tmp_path / "mapcache.xml", tmp_path)
        wait_for_new(again, {path: before})
        again.stop()
        server.stop = lambda: None


def test_what_comes_from_outside_does_no_harm(build, squares, tmp_path):
    path, other = path_of(tile_of(*PLACE, 8)), path_of(tile_of(-100, 10, 8))
    with serving(build, tmp_path, squares.connection()) as server:
        before = body(server, path)
        for payload in ("", "{", "x" * 7999, "'; DROP TABLE squares; --", "\x01\u00e9"):
            squares.sql("SELECT pg_notify('mapcache_changes', '" + payload.replace("'", "''") + "')")
        for relation in ("0", "4294967295", "'pg_class'::regclass"):
            squares.sql(f"INSERT INTO mapcache_changes.log (relation, srid, minx, miny, maxx, maxy) VALUES ({relation}, -5, 1, 2, 3, 4)")
        far = body(server, other)
        rows = counter(server, "change_rows_total")
        squares.sql("INSERT INTO mapcache_changes.log (relation, srid, minx, miny, maxx, maxy) SELECT 'squares'::regclass, 4326, x, x, x, x"
                    " FROM unnest(ARRAY[1e300, -1e300, 500, 95]) x; SELECT pg_notify('mapcache_changes', '')")
        squares.sql("INSERT INTO mapcache_changes.log (relation, srid, minx, miny, maxx, maxy)"
                    " VALUES ('squares'::regclass, 4326, 20, 0, 10, 5), ('squares'::regclass, 77777, 1, 1, 1, 1)")
        change(squares, "new")
        wait_for_new(server, {path: before})
        wait_until(lambda: counter(server, "change_rows_total") >= rows + 7, "all rows are read", SOON)
        assert body(server, other) == far


def test_a_million_boxes_in_one_transaction(build, squares, tmp_path):
    path = path_of(tile_of(*PLACE, 8))
    with serving(build, tmp_path, squares.connection()) as server:
        before = body(server, path)
        memory = resident(server)
        squares.sql("INSERT INTO mapcache_changes.log (relation, srid, minx, miny, maxx, maxy) SELECT 'squares'::regclass, 4326, x, y,"
                    " x + 0.001, y + 0.001 FROM (SELECT random() * 300 - 150 AS x, random() * 140 - 70 AS y FROM generate_series(1, 1000000)) b")
        change(squares, "new")
        wait_for_new(server, {path: before})
        wait_until(lambda: counter(server, "change_rows_total") >= 1000001, "all boxes are marked", SOON)
        assert resident(server) - memory < 100 << 20
        rows = counter(server, "change_rows_total")
        change(squares, "old", (50.1, 46.1))
        wait_until(lambda: counter(server, "change_rows_total") > rows, "the log is read on", SOON)


def resident(server):
    with open(f"/proc/{server.program.process.pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


def test_a_log_that_has_lost_rows_makes_everything_old(build, squares, tmp_path):
    paths = [path_of(tile_of(lon, lat, 5)) for lon, lat in ((10.1, 46.1), (-100, 10), (100, -40))]
    with serving(build, tmp_path, squares.connection()) as server:
        before = {path: body(server, path) for path in paths}
        server.program.process.kill()
        server.program.process.wait()
        squares.sql("UPDATE squares SET state = 'new'")
        squares.sql("SELECT mapcache_changes.trim_changes(most => 0)")
        assert squares.sql("SELECT count(*) FROM mapcache_changes.log") == ["0"]
        again = Server(build, tmp_path / "mapcache.xml", tmp_path)
        wait_for_new(again, before)
        assert counter(again, "change_losses_total") >= 1
        again.stop()
        server.stop = lambda: None


def test_a_log_that_is_made_later_is_followed(build, squares, tmp_path):
    squares.sql("DROP SCHEMA mapcache_changes CASCADE")
    path = path_of(tile_of(*PLACE, 8))
    folder = tmp_path
    server = Server(build, configuration(folder, squares.connection()), folder)
    try:
        before = body(server, path)
        wait_until(lambda: "change log" in server.log(), "the log says that there is none", SOON)
        prepare(build, squares)
        change(squares, "new")
        wait_for_new(server, {path: before})
    finally:
        server.stop()


def test_without_changes_nothing_is_followed(build, squares, tmp_path):
    folder = tmp_path
    server = Server(build, configuration(folder, squares.connection(), changes=""), folder)
    try:
        path = path_of(tile_of(*PLACE, 8))
        before = body(server, path)
        change(squares, "new")
        assert squares.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mapcache-changes'") == ["0"]
        assert body(server, path) == before
    finally:
        server.stop()


@pytest.mark.parametrize("kind", ["apache", "nginx"])
def test_behind_web_servers(build, squares, folder, kind):
    """All processes of a server see the change: of many answers none is old any more."""
    path = path_of(tile_of(*PLACE, 8))
    folder.chmod(0o777)
    file = configuration(folder, squares.connection())
    with Serving(build, file, server=kind) as server:
        before = server.get(path).body
        wait_until(lambda: squares.sql("SELECT 1 FROM pg_stat_activity WHERE application_name = 'mapcache-changes'"),
                   "the server follows the log", SOON)
        change(squares, "new")
        wait_until(lambda: all(server.get(path).body != before for _ in range(30)), "no answer is old", SOON)

"""Old tiles go out at once while they are drawn behind the answers, once for all processes; clients may be made to wait; what nobody
asks for is removed from the stores, so that who starts later serves nothing old."""
import pathlib
import threading
import time

import pytest
from changes_site import database_fixture, squares_fixture  # noqa: F401: fixtures
from changes_site import PLACE, body, change, configuration, counter, path_of, serving, tile_of, wait_for_new, wait_until_followed
from conftest import SOON, wait_until
from fastcgi import Client, Server
from patience import patience

SLOW = """<query>SELECT s.g, s.state FROM squares s, (SELECT pg_sleep(0.5)) p WHERE s.g &amp;&amp; !BBOX!</query>
  <geometry>g</geometry><srid>4326</srid>"""
FAR = path_of(tile_of(-100, 10, 8))


def site(squares, more="", settle=3600):
    """A slow source, whose tables a <watch> names."""
    return {"changes": f"<changes><connection>{squares.connection()}</connection><poll>0.5</poll><settle>{settle}</settle></changes>",
            "more": f"<watch>squares</watch>{more}", "table": SLOW}


def seen(server, squares, state):
    """Changes a square, and waits until the server has seen that."""
    rows = counter(server, "change_rows_total")
    change(squares, state)
    wait_until(lambda: counter(server, "change_rows_total") > rows, "the change is seen", SOON)


def test_fifty_clients_get_the_old_tile_at_once_and_one_draws(build, squares, tmp_path):
    path = path_of(tile_of(*PLACE, 8))
    with serving(build, tmp_path, squares.connection(), **site(squares)) as server:
        old = body(server, path)
        renders = counter(server, "renders_total")
        blocker = squares.locked("squares")
        try:
            seen_before = counter(server, "change_reads_total")
            squares.sql("SELECT mapcache_changes.changed('squares', 4326, 8, 44, 12, 48)")
            wait_until(lambda: counter(server, "change_rows_total") >= 1, "the change is seen", SOON)
            assert counter(server, "change_reads_total") > seen_before
            answers = []

            def ask():
                client = Client(server.address)
                answers.append(client.get(path.encode()))
                client.close()

            threads = [threading.Thread(target=ask) for _ in range(50)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(patience(60))
            assert len(answers) == 50  # nobody has waited for the table, which is locked
            for answer in answers:
                assert answer.status == 200 and answer.body == old and int(answer.header("Age")) >= 1
                assert answer.header("Cache-Control") == "max-age=0, must-revalidate" and answer.header("Expires") is None
        finally:
            blocker.release()
        change(squares, "new")
        wait_for_new(server, {path: old})
        assert renders + 1 <= counter(server, "renders_total") <= renders + 3
        wait_until(lambda: server.get(path).header("Age") is None, "the tile is fresh", SOON)


def test_clients_may_be_made_to_wait(build, squares, tmp_path):
    path = path_of(tile_of(*PLACE, 8))
    with serving(build, tmp_path, squares.connection(), **site(squares, "<when_changed>wait</when_changed>")) as server:
        old = body(server, path)
        for state in ("new", "old"):
            before = body(server, path)
            seen(server, squares, state)
            answer = server.get(path)
            assert answer.body != before and answer.header("Age") is None
        assert body(server, path) == old


def test_expired_tiles_are_drawn_behind_the_answer_where_that_is_configured(build, squares, tmp_path):
    path = path_of(tile_of(*PLACE, 8))
    more = "<auto_expire>3</auto_expire><stale_while_revalidate>3600</stale_while_revalidate>"
    with serving(build, tmp_path, squares.connection(), **site(squares, more)) as server:
        assert server.get(path).header("Age") is None
        stale = wait_until(lambda: answer if (answer := server.get(path)).header("Age") else None, "the tile has expired", SOON)
        assert stale.status == 200
        refreshed = counter(server, "refreshes_total")
        wait_until(lambda: server.get(path).status == 200 and counter(server, "refreshes_total") > refreshed, "it is drawn anew", SOON)


def test_a_refresh_that_fails_leaves_the_old_tile(build, squares, tmp_path):
    path = path_of(tile_of(*PLACE, 8))
    with serving(build, tmp_path, squares.connection(), **site(squares)) as server:
        old = body(server, path)
        squares.sql("ALTER TABLE squares RENAME COLUMN state TO other; SELECT mapcache_changes.changed('squares')")
        wait_until(lambda: body(server, path) == old and counter(server, "refresh_failures_total") >= 1, "the refresh fails", SOON)
        assert body(server, path) == old
        squares.sql("ALTER TABLE squares RENAME COLUMN other TO state")
        change(squares, "new")
        wait_for_new(server, {path: old})


def test_with_errors_instead_of_old_tiles(build, squares, tmp_path):
    path = path_of(tile_of(*PLACE, 8))
    with serving(build, tmp_path, squares.connection(), **site(squares, "<stale_if_error>0</stale_if_error>")) as server:
        body(server, path)
        squares.sql("ALTER TABLE squares RENAME COLUMN state TO other; SELECT mapcache_changes.changed('squares')")
        wait_until(lambda: server.get(path).status >= 500, "the error shows", SOON)
        squares.sql("ALTER TABLE squares RENAME COLUMN other TO state")


def test_old_tiles_go_out_no_longer_than_stale_if_error_says(build, squares, tmp_path):
    path = path_of(tile_of(*PLACE, 8))
    with serving(build, tmp_path, squares.connection(), **site(squares, "<stale_if_error>2</stale_if_error>")) as server:
        body(server, path)
        squares.sql("ALTER TABLE squares RENAME COLUMN state TO other; SELECT mapcache_changes.changed('squares')")
        wait_until(lambda: server.get(path).status >= 500, "the error shows", SOON)
        end = time.monotonic() + 1.5  # failures are remembered for a second
        while time.monotonic() < end:
            assert server.get(path).status >= 500
        squares.sql("ALTER TABLE squares RENAME COLUMN other TO state")
        wait_until(lambda: server.get(path).status == 200, "the new tile goes out", SOON)


@pytest.mark.parametrize("cache", ["disk", "sqlite3", "lmdb"])
def test_what_nobody_asks_for_is_removed_and_the_log_is_trimmed(build, squares, tmp_path, cache):
    near, other = [path_of(tile_of(*PLACE, z)) for z in (2, 8, 12)], FAR
    changes = "<changes><poll>0.5</poll><settle>0</settle></changes>"
    with serving(build, tmp_path, squares.connection(), cache=cache, changes=changes) as server:
        before = {path: body(server, path) for path in near}
        far = body(server, other)
        change(squares, "new")
        wait_until(lambda: squares.sql("SELECT count(*) FROM mapcache_changes.log") == ["0"], "the log is trimmed", SOON)
        renders = counter(server, "renders_total")
        for path in near:
            assert body(server, path) != before[path]
        assert counter(server, "renders_total") == renders + len(near)  # the tiles were gone: who asks has waited
        assert body(server, other) == far and counter(server, "renders_total") == renders + len(near)
    assert len(squares.sql("SELECT name FROM mapcache_changes.readers")) == 1
    with serving(build, tmp_path, squares.connection(), cache=cache, changes=changes) as server:
        for path in near:
            body(server, path)
        assert counter(server, "renders_total") == 0  # who starts later begins where the readers are


def test_one_of_two_processes_looks_after_the_store(build, squares, tmp_path):
    changes = "<changes><name>both</name><poll>0.5</poll><settle>0</settle></changes>"
    path = path_of(tile_of(*PLACE, 8))
    with serving(build, tmp_path / "a", squares.connection(), changes=changes) as one:
        with serving(build, tmp_path / "b", squares.connection(), changes=changes):
            before = body(one, path)
            locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
            wait_until(lambda: squares.sql(locks) == ["1"], "one of them leads", SOON)
            change(squares, "new")
            wait_for_new(one, {path: before})
        wait_until(lambda: squares.sql(locks) == ["1"], "the one that is left leads", SOON)
        change(squares, "old")
        wait_until(lambda: squares.sql("SELECT count(*) FROM mapcache_changes.log") == ["0"], "the log is trimmed", SOON)
    assert squares.sql("SELECT name FROM mapcache_changes.readers") == ["both"]


def test_a_reload_keeps_marks_and_takes_new_tilesets(build, squares, tmp_path):
    path = path_of(tile_of(*PLACE, 8))
    server = Server(build, configuration(tmp_path, squares.connection(), extra="<auto_reload>true</auto_reload>"), tmp_path)
    try:
        wait_until_followed(server)
        before = body(server, path)
        second = """<tileset name="second"><source>squares</source><cache>store</cache><grid>GoogleMapsCompatible</grid><format>PNG</format>
          </tileset>"""
        change(squares, "new")
        configuration(tmp_path, squares.connection(), tilesets=second, extra="<auto_reload>true</auto_reload>")
        wait_for_new(server, {path: before})
        own = path_of(tile_of(*PLACE, 8), "second")
        wait_until(lambda: server.get(own).status == 200, "the new configuration is served", SOON)
        before = body(server, own)
        change(squares, "old")
        wait_for_new(server, {own: before})
        assert pathlib.Path(tmp_path / "tiles").exists()
    finally:
        server.stop()

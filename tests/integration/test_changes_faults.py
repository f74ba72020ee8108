"""Change logs that are not as they should be: of a server that became a standby, written by another cluster, with SRIDs of all
numbers. What a server cannot follow it says, and it goes on once it can."""
import pytest
from changes_site import PLACE, body, change, counter, path_of, serving, squares_fixture, tile_of, wait_for_new  # noqa: F401
from conftest import SOON, wait_until
from postgres import Postgres

NEAR, FAR = path_of(tile_of(*PLACE, 8)), path_of(tile_of(-100, 10, 8))


@pytest.fixture(scope="module")
def database():
    with Postgres(settings=["wal_level=replica"]) as server:
        yield server


def test_a_standby_server_is_named_and_its_promotion_noticed(build, squares, tmp_path):
    with serving(build, tmp_path, squares.connection()) as server:
        before = body(server, NEAR)
        squares.stop()
        signal = squares.folder / "data/standby.signal"
        signal.touch()
        squares.start()
        wait_until(lambda: "standby server" in server.log() and "target_session_attrs" in server.log(), "the log says it", SOON)
        assert body(server, NEAR) == before
        squares.sql("SELECT pg_promote()")
        change(squares, "new")
        wait_for_new(server, {NEAR: before})


def test_what_another_cluster_has_left_is_not_read_again_and_again(build, squares, tmp_path):
    """A dump that is restored has numbers of transactions that this cluster has yet to give."""
    with serving(build, tmp_path, squares.connection()) as server:
        before, far = body(server, NEAR), body(server, FAR)
        squares.sql("INSERT INTO mapcache_changes.log (xid, relation, srid) VALUES ('99999999999', 'squares'::regclass, 0);"
                    "INSERT INTO mapcache_changes.lost (xid) VALUES ('99999999999') ON CONFLICT (only_row) DO UPDATE SET xid = excluded.xid;"
                    "INSERT INTO mapcache_changes.readers (name, applied) VALUES ('theirs', '99999999999:99999999999:')")
        rows, renders = counter(server, "change_rows_total"), counter(server, "renders_total")
        squares.sql("SELECT mapcache_changes.trim_changes()")
        change(squares, "new")
        wait_for_new(server, {NEAR: before})
        assert counter(server, "change_rows_total") == rows + 1 and counter(server, "change_losses_total") == 0
        assert body(server, FAR) == far and counter(server, "renders_total") == renders + 1
        squares.sql("SELECT mapcache_changes.trim_changes()")  # the place of a reader of that other cluster says nothing
        assert squares.sql("SELECT count(*) FROM mapcache_changes.log WHERE xid < '99999999999'") == ["1"]
        squares.sql("SELECT mapcache_changes.trim_changes(most => 0)")
        assert squares.sql("SELECT xid < '99999999999' FROM mapcache_changes.lost") == ["t"]


def test_rows_of_one_table_do_no_harm_to_others(build, squares, tmp_path):
    """Boxes in hundreds of SRIDs, and in none that there can be, stand for their own table alone."""
    squares.sql("DROP TABLE IF EXISTS other; CREATE TABLE other (g geometry)")
    with serving(build, tmp_path, squares.connection()) as server:
        before, far = body(server, NEAR), body(server, FAR)
        rows, renders = counter(server, "change_rows_total"), counter(server, "renders_total")
        squares.sql("INSERT INTO mapcache_changes.log (relation, srid, minx, miny, maxx, maxy) SELECT 'other'::regclass, 1000 + i, 1, 1, 1, 1"
                    " FROM generate_series(1, 999) i; INSERT INTO mapcache_changes.log (relation, srid, minx, miny, maxx, maxy)"
                    " SELECT 'other'::regclass::oid::bigint + i, 4326, 1, 1, 1, 1 FROM generate_series(1, 200) i")
        change(squares, "new")
        wait_for_new(server, {NEAR: before})
        wait_until(lambda: counter(server, "change_rows_total") == rows + 1200, "all rows are read", SOON)
        assert counter(server, "change_losses_total") == 0
        assert body(server, FAR) == far and counter(server, "renders_total") == renders + 1
        squares.sql("INSERT INTO mapcache_changes.log (relation, srid, minx, miny, maxx, maxy) VALUES ('squares'::regclass, -5, 1, 1, 1, 1);"
                    "SELECT pg_notify('mapcache_changes', '')")
        wait_until(lambda: counter(server, "renders_total") > renders + 1 or not body(server, FAR), "the whole table counts as changed", SOON)


def test_a_new_reader_takes_tiles_for_old_that_are_older_than_what_was_removed(build, squares, tmp_path):
    changes = "<changes><name>{}</name><poll>1</poll></changes>"
    with serving(build, tmp_path, squares.connection(), changes=changes.format("a")) as server:
        before = body(server, NEAR)
    change(squares, "new")
    squares.sql("DELETE FROM mapcache_changes.readers; INSERT INTO mapcache_changes.readers VALUES ('b', pg_current_snapshot());"
                "SELECT mapcache_changes.trim_changes()")
    assert squares.sql("SELECT count(*) FROM mapcache_changes.log") == ["0"]
    with serving(build, tmp_path, squares.connection(), changes=changes.format("a")) as server:
        wait_for_new(server, {NEAR: before})
        body(server, FAR)
    with serving(build, tmp_path, squares.connection(), changes=changes.format("c")) as server:
        assert counter(server, "change_losses_total") == 1
        for path in (NEAR, FAR):  # made since
            body(server, path)
        assert counter(server, "renders_total") == 0


def test_a_read_costs_what_is_new_however_long_the_log_is(build, squares, tmp_path):
    """Rows of the log that the server has gone over, as PostgreSQL counts them."""
    long, changes = 20000, 30
    squares.sql(f"INSERT INTO mapcache_changes.log (relation, srid) SELECT 0, 0 FROM generate_series(1, {long})")
    squares.sql("SELECT pg_stat_reset()")
    settling = "<changes><poll>1</poll><settle>3600</settle></changes>"
    with serving(build, tmp_path, squares.connection(), changes=settling) as server:
        wait_until(lambda: counter(server, "change_rows_total") >= long, "the log is read", SOON)
        for number in range(changes):
            rows = counter(server, "change_rows_total")
            change(squares, str(number))
            wait_until(lambda rows=rows: counter(server, "change_rows_total") > rows, "the change is read", SOON)
    wait_until(lambda: not squares.sql("SELECT 1 FROM pg_stat_activity WHERE application_name LIKE 'mapcache%'"), "its connections have ended", SOON)
    read = int(squares.sql("SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname = 'log'")[0])
    assert long <= read < long * changes / 4, read  # once by the listener, once by the leader

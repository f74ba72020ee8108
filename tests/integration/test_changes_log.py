"""The change log that `mapcache invalidate --sql` makes: which boxes each kind of statement logs, for which tables, and how the log
is kept within its bounds."""
import json
import os
import re
import subprocess

import pytest
from conftest import sanitizer_environment
from patience import patience
from postgres import Postgres

HOSTILE = '''we"ird'; drop table roads; -- $body$ é'''


@pytest.fixture(scope="module")
def database():
    with Postgres() as server:
        server.sql("CREATE EXTENSION postgis")
        yield server


def invalidate(build, *words):
    return subprocess.run([build / "bin/mapcache", "invalidate", *words], capture_output=True, text=True, check=False,
                          env={**os.environ, **sanitizer_environment(build)}, timeout=patience(30))


def run_script(build, database, *words):
    made = invalidate(build, "--sql", *words)
    assert made.returncode == 0, made.stderr
    database.sql(made.stdout)


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def watched(build, database, columns, name="roads"):
    """A table without rows, and an empty log."""
    database.sql(f"DROP TABLE IF EXISTS {quoted(name)} CASCADE; CREATE TABLE {quoted(name)} (id int, {columns})")
    run_script(build, database, name)
    database.sql("TRUNCATE mapcache_changes.log")


def logged(database):
    """The boxes of the log as texts, without their order; "all" for a whole table."""
    return sorted(line for line in database.sql(
        "SELECT coalesce(srid || ' ' || minx || ' ' || miny || ' ' || maxx || ' ' || maxy, 'all') FROM mapcache_changes.log"))


def test_statements_log_the_boxes_of_old_and_new_rows(build, database):
    watched(build, database, "g geometry(Geometry, 2056), v int")
    database.sql("INSERT INTO roads VALUES (1, 'SRID=2056;LINESTRING(1 2, 3 5)', 0), (2, 'SRID=2056;POINT(9 9)', 0)")
    assert logged(database) == ["2056 1 2 3 5", "2056 9 9 9 9"]
    database.sql("TRUNCATE mapcache_changes.log")
    database.sql("UPDATE roads SET g = 'SRID=2056;POINT(100 100)' WHERE id = 2")
    assert logged(database) == ["2056 100 100 100 100", "2056 9 9 9 9"]
    database.sql("TRUNCATE mapcache_changes.log")
    database.sql("UPDATE roads SET v = 7 WHERE id = 1")  # an attribute may change the style
    assert logged(database) == ["2056 1 2 3 5"]
    database.sql("TRUNCATE mapcache_changes.log")
    database.sql("DELETE FROM roads WHERE id = 2")
    assert logged(database) == ["2056 100 100 100 100"]
    database.sql("TRUNCATE mapcache_changes.log")
    database.sql("TRUNCATE roads")
    assert logged(database) == ["all"]


def test_what_changes_no_map_is_not_logged(build, database):
    watched(build, database, "g geometry(Point, 4326)")
    database.sql("INSERT INTO roads VALUES (1, NULL), (2, 'SRID=4326;POINT EMPTY')")
    database.sql("UPDATE roads SET id = 5 WHERE id = 77")
    database.sql("DELETE FROM roads")
    database.sql("BEGIN; INSERT INTO roads VALUES (3, 'SRID=4326;POINT(1 1)'); ROLLBACK")
    assert logged(database) == []


def test_coordinates_that_are_nowhere_count_as_the_whole_table(build, database):
    watched(build, database, "g geometry(Geometry, 4326)")
    for text in ("ST_SetSRID(ST_MakePoint('NaN', 1), 4326)", "ST_SetSRID(ST_MakePoint(1, 'Infinity'), 4326)",
                 "ST_SetSRID(ST_MakePoint('-Infinity', 1), 4326)", "ST_SetSRID(ST_MakePoint(1e200, 1), 4326)"):
        database.sql(f"TRUNCATE mapcache_changes.log; INSERT INTO roads VALUES (1, {text}), (2, 'SRID=4326;POINT(1 1)')")
        assert logged(database) == ["all"], text
    database.sql("TRUNCATE mapcache_changes.log; INSERT INTO roads SELECT i, ST_SetSRID(ST_MakePoint(CASE WHEN i = 500 THEN"
                 " 'NaN' ELSE i / 100.0 END, 1), 4326) FROM generate_series(1, 1000) i")
    assert logged(database) == ["all"]


def test_many_boxes_of_a_statement_are_joined(build, database):
    watched(build, database, "g geometry(Point, 3857)")
    database.sql("INSERT INTO roads SELECT i, ST_SetSRID(ST_MakePoint(i % 1000, i / 1000), 3857) FROM generate_series(0, 99999) i")
    rows = database.sql("SELECT count(*), min(minx), min(miny), max(maxx), max(maxy), count(*) FILTER (WHERE maxx - minx > 200)"
                        " FROM mapcache_changes.log")
    count, *rest = rows[0].split("|")
    assert 100 <= int(count) <= 256 and rest == ["0", "0", "999", "99", "0"]
    assert database.sql("SELECT count(*) FROM roads WHERE NOT EXISTS (SELECT FROM mapcache_changes.log WHERE ST_X(g) BETWEEN minx AND maxx"
                        " AND ST_Y(g) BETWEEN miny AND maxy)") == ["0"]
    database.sql("TRUNCATE mapcache_changes.log; UPDATE roads SET g = 'SRID=3857;POINT(5 5)'")
    database.sql("TRUNCATE mapcache_changes.log; UPDATE roads SET id = 0")  # all of them in one place: the lattice has no size
    assert logged(database) == ["3857 5 5 5 5"]


def test_columns_of_other_types_and_several(build, database):
    watched(build, database, "a geometry(Point, 2056), b geography(Point)")
    database.sql("INSERT INTO roads VALUES (1, 'SRID=2056;POINT(1 2)', 'POINT(7 47)')")
    assert logged(database) == ["2056 1 2 1 2", "4326 7 47 7 47"]
    run_script(build, database, "roads", "--geometry", "b")
    database.sql("TRUNCATE mapcache_changes.log; DELETE FROM roads")
    assert logged(database) == ["4326 7 47 7 47"]
    watched(build, database, "name text", "plain")
    database.sql("UPDATE plain SET id = 1")
    assert logged(database) == []
    database.sql("INSERT INTO plain VALUES (1, 'x')")
    assert logged(database) == ["all"]


def test_hostile_names_and_running_twice(build, database):
    watched(build, database, f"{quoted(HOSTILE)} geometry(Point, 4326)", HOSTILE)
    run_script(build, database, HOSTILE)
    database.sql(f"INSERT INTO {quoted(HOSTILE)} VALUES (1, 'SRID=4326;POINT(1 2)')")
    assert logged(database) == ["4326 1 2 1 2"]
    run_script(build, database, "--drop", HOSTILE)
    run_script(build, database, "--drop", HOSTILE)
    database.sql(f"INSERT INTO {quoted(HOSTILE)} VALUES (1, 'SRID=4326;POINT(3 4)')")
    assert logged(database) == ["4326 1 2 1 2"]


def test_views_and_partitions(build, database):
    database.sql("DROP TABLE IF EXISTS parted CASCADE; CREATE TABLE parted (id int, g geometry(Point, 4326)) PARTITION BY RANGE (id);"
                 "CREATE TABLE parted_low PARTITION OF parted FOR VALUES FROM (0) TO (10);"
                 "CREATE VIEW seen AS SELECT * FROM parted")
    run_script(build, database, "seen")
    database.sql("TRUNCATE mapcache_changes.log; INSERT INTO seen VALUES (1, 'SRID=4326;POINT(1 2)')")
    assert database.sql("SELECT relation::regclass FROM mapcache_changes.log") == ["parted"]
    database.sql("TRUNCATE mapcache_changes.log; INSERT INTO parted_low VALUES (2, 'SRID=4326;POINT(3 4)')")
    assert database.sql("SELECT relation::regclass, minx FROM mapcache_changes.log") == ["parted_low|3"]  # past the triggers above it
    database.sql("CREATE MATERIALIZED VIEW frozen AS SELECT * FROM parted")
    made = invalidate(build, "--sql", "frozen")
    with pytest.raises(subprocess.CalledProcessError):
        database.sql(made.stdout)
    database.sql("TRUNCATE mapcache_changes.log; SELECT mapcache_changes.changed('frozen')")
    database.sql("SELECT mapcache_changes.changed('frozen', 4326, 1, 2, 3, 4)")
    assert logged(database) == ["4326 1 2 3 4", "all"]
    run_script(build, database, "--drop", "parted")
    database.sql("TRUNCATE mapcache_changes.log; INSERT INTO parted_low VALUES (3, 'SRID=4326;POINT(3 4)')")
    assert logged(database) == []


def test_tables_that_inherit(build, database):
    database.sql("DROP TABLE IF EXISTS above CASCADE; CREATE TABLE above (id int, g geometry(Point, 4326)); CREATE TABLE below (more text)"
                 " INHERITS (above)")
    run_script(build, database, "above")
    database.sql("TRUNCATE mapcache_changes.log; INSERT INTO below VALUES (1, 'SRID=4326;POINT(1 2)')")
    assert logged(database) == ["4326 1 2 1 2"]
    database.sql("TRUNCATE mapcache_changes.log; UPDATE above SET g = 'SRID=4326;POINT(3 4)'")
    assert logged(database) == ["4326 1 2 1 2", "4326 3 4 3 4"]


def test_columns_that_are_renamed_or_dropped_stop_nobody(build, database):
    watched(build, database, "g geometry(Point, 4326)")
    database.sql("ALTER TABLE roads RENAME COLUMN g TO place; INSERT INTO roads VALUES (1, 'SRID=4326;POINT(1 2)')")
    assert logged(database) == ["4326 1 2 1 2"]
    database.sql("TRUNCATE mapcache_changes.log; ALTER TABLE roads DROP COLUMN place; DELETE FROM roads")
    assert logged(database) == ["all"]
    watched(build, database, "a geometry(Point, 4326), b geometry(Point, 4326)")
    run_script(build, database, "roads", "--geometry", "b")
    database.sql("ALTER TABLE roads RENAME COLUMN b TO c; INSERT INTO roads VALUES (1, NULL, 'SRID=4326;POINT(1 2)')")
    assert logged(database) == ["all"]  # the one that was named is not there


def test_nothing_of_others_runs_with_the_rights_of_the_owner(build, database):
    """Functions, operators and types that match the statements of the triggers better than those that are meant."""
    watched(build, database, "g geometry(Geometry, 4326)")
    database.sql("DROP ROLE IF EXISTS writer; CREATE ROLE writer; GRANT INSERT, UPDATE, DELETE ON roads TO writer; GRANT CREATE ON SCHEMA public TO writer;"
                 "CREATE TABLE caught (who name); GRANT INSERT ON caught TO PUBLIC")
    body = "AS $$ BEGIN INSERT INTO public.caught VALUES (current_user); RETURN {}; END $$"
    traps = ["FUNCTION public.format(text, text) RETURNS text LANGUAGE plpgsql " + body.format("pg_catalog.format($1, variadic ARRAY[$2])"),
             "FUNCTION public.array_to_string(text[], text) RETURNS text LANGUAGE plpgsql " + body.format("pg_catalog.array_to_string($1, $2)"),
             "FUNCTION public.added(text[], text) RETURNS text[] LANGUAGE plpgsql " + body.format("pg_catalog.array_append($1, $2)"),
             "OPERATOR public.|| (LEFTARG = text[], RIGHTARG = text, FUNCTION = public.added)",
             "FUNCTION public.added(int[], int) RETURNS int[] LANGUAGE plpgsql " + body.format("pg_catalog.array_append($1, $2)"),
             "AGGREGATE public.array_agg(int) (SFUNC = public.added, STYPE = int[])"]
    database.sql("SET ROLE writer; " + "; ".join("CREATE " + trap for trap in traps))
    add = "SET ROLE writer; SET search_path = public, pg_catalog; INSERT INTO roads SELECT i, ST_SetSRID(ST_MakePoint(i, i), 4326)"
    for count in (1, 400):
        database.sql(f"{add} FROM generate_series(1, {count}) i")
    assert len(logged(database)) > 10
    database.sql("DROP AGGREGATE public.array_agg(int); DROP OPERATOR public.|| (text[], text); DROP FUNCTION public.format(text, text),"
                 " public.array_to_string(text[], text), public.added(text[], text), public.added(int[], int)")
    database.sql("TRUNCATE mapcache_changes.log; CREATE SCHEMA evil AUTHORIZATION writer; ALTER TABLE roads OWNER TO writer")
    database.sql("SET ROLE writer; CREATE TYPE evil.geometry AS (x int); CREATE FUNCTION evil.cast_it(evil.geometry) RETURNS box3d LANGUAGE plpgsql "
                 + body.format("'BOX3D(1 2 3, 4 5 6)'::box3d") + "; CREATE CAST (evil.geometry AS box3d) WITH FUNCTION evil.cast_it(evil.geometry);"
                 "CREATE FUNCTION evil.st_srid(evil.geometry) RETURNS int LANGUAGE plpgsql " + body.format("5") +
                 "; ALTER TABLE roads ALTER COLUMN g TYPE evil.geometry USING NULL; INSERT INTO roads VALUES (1, ROW(1))")
    assert logged(database) == ["all"]
    assert database.sql("SELECT * FROM caught") == []
    database.sql("DROP TABLE roads; DROP SCHEMA evil CASCADE; DROP TABLE caught; REVOKE CREATE ON SCHEMA public FROM writer")


def test_a_schema_that_somebody_else_has_made_is_refused(build, database):
    database.sql("DROP SCHEMA IF EXISTS mapcache_changes CASCADE; DROP ROLE IF EXISTS stranger; CREATE ROLE stranger;"
                 "CREATE SCHEMA mapcache_changes AUTHORIZATION stranger; CREATE TABLE IF NOT EXISTS roads (id int)")
    script = invalidate(build, "--sql", "roads").stdout
    with pytest.raises(subprocess.CalledProcessError):
        database.sql(script)
    assert database.sql("SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace WHERE nspname = 'mapcache_changes'") == ["0"]
    database.sql("DROP SCHEMA mapcache_changes; DROP ROLE stranger")
    database.sql(script)


def test_statements_of_many_srids_stay_within_bounds(build, database):
    watched(build, database, "g geometry")
    database.sql("INSERT INTO roads SELECT i, ST_SetSRID(ST_MakePoint(i, i), 2000 + i % 16) FROM generate_series(1, 5000) i")
    assert 16 <= len(logged(database)) <= 16 * 256 and "all" not in logged(database)
    database.sql("TRUNCATE mapcache_changes.log")
    database.sql("INSERT INTO roads SELECT i, ST_SetSRID(ST_MakePoint(i, i), 2000 + i) FROM generate_series(1, 5000) i")
    assert logged(database) == ["all"]


def test_a_writer_without_rights_to_the_log_writes_to_it(build, database):
    watched(build, database, "g geometry(Point, 4326)")
    database.sql("DROP ROLE IF EXISTS writer; CREATE ROLE writer; GRANT INSERT ON roads TO writer")
    database.sql("SET ROLE writer; INSERT INTO roads VALUES (1, 'SRID=4326;POINT(1 2)')")
    assert logged(database) == ["4326 1 2 1 2"]
    for statement in ("INSERT INTO mapcache_changes.log (relation, srid) VALUES (1, 0)", "SELECT mapcache_changes.trim_changes()",
                      "SELECT mapcache_changes.changed('roads')"):
        with pytest.raises(subprocess.CalledProcessError):
            database.sql(f"SET ROLE writer; {statement}")


def test_the_log_is_trimmed_by_its_readers_and_by_its_bounds(build, database):
    watched(build, database, "g geometry(Point, 4326)")
    database.sql("DELETE FROM mapcache_changes.lost; DELETE FROM mapcache_changes.readers")
    add = "INSERT INTO roads VALUES (1, 'SRID=4326;POINT({} 0)')"
    database.sql(add.format(1))
    assert database.sql("SELECT mapcache_changes.trim_changes()") == ["0"]
    database.sql("INSERT INTO mapcache_changes.readers (name, applied) VALUES ('slow', pg_current_snapshot())")
    database.sql(add.format(2))
    database.sql("INSERT INTO mapcache_changes.readers (name, applied) VALUES ('fast', pg_current_snapshot())")
    assert database.sql("SELECT mapcache_changes.trim_changes()") == ["1"]  # what both have applied
    lost = "SELECT DISTINCT pg_visible_in_snapshot(l.xid, r.applied) FROM mapcache_changes.lost l, mapcache_changes.readers r"
    assert logged(database) == ["4326 2 0 2 0"] and database.sql(lost) == ["t"]
    database.sql(add.format(3))
    assert database.sql("SELECT mapcache_changes.trim_changes(most => 1)") == ["1"]  # what one has not
    assert logged(database) == ["4326 3 0 3 0"]
    assert database.sql(f"{lost} WHERE name = 'slow'") == ["f"]
    database.sql("UPDATE mapcache_changes.readers SET at = now() - interval '8 days' WHERE name = 'slow'")
    database.sql("SELECT mapcache_changes.trim_changes()")
    assert database.sql("SELECT name FROM mapcache_changes.readers") == ["fast"]


def test_a_reader_that_was_forgotten_has_lost_what_others_have_applied(build, database):
    watched(build, database, "g geometry(Point, 4326)")
    database.sql("DELETE FROM mapcache_changes.lost; DELETE FROM mapcache_changes.readers")
    database.sql("INSERT INTO mapcache_changes.readers (name, applied, at) VALUES ('away', pg_current_snapshot(), now() - interval '8 days')")
    database.sql("INSERT INTO roads VALUES (1, 'SRID=4326;POINT(1 0)')")
    database.sql("INSERT INTO mapcache_changes.readers (name, applied) VALUES ('here', pg_current_snapshot())")
    database.sql("SELECT mapcache_changes.trim_changes()")
    assert logged(database) == [] and database.sql("SELECT name FROM mapcache_changes.readers") == ["here"]
    # as read_sql asks: who begins before all transactions, and who goes on
    assert database.sql("SELECT pg_visible_in_snapshot(xid, '1:1:'), pg_visible_in_snapshot(xid, applied) FROM mapcache_changes.lost,"
                        " mapcache_changes.readers") == ["f|t"]


def test_a_writer_with_one_snapshot_does_not_fail_where_it_would_trim(build, database):
    watched(build, database, "g geometry(Point, 4326)")
    database.sql("DELETE FROM mapcache_changes.lost; DELETE FROM mapcache_changes.readers; INSERT INTO roads VALUES (1, 'SRID=4326;POINT(1 0)');"
                 "UPDATE mapcache_changes.log SET at = now() - interval '9 days'")
    seed = database.sql("DO $$ BEGIN FOR i IN 0 .. 100000 LOOP PERFORM setseed(i / 100000.0); IF random() < 0.0005 THEN PERFORM"
                        " set_config('own.seed', (i / 100000.0)::text, false); EXIT; END IF; END LOOP; END $$; SELECT current_setting('own.seed')")[-1]
    add = f"SELECT setseed({seed}); INSERT INTO roads VALUES (2, 'SRID=4326;POINT(2 0)');"
    held = subprocess.Popen(database.session("SELECT 1")[:-2], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    held.stdin.write("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 'begun' FROM roads LIMIT 1;\n")
    held.stdin.flush()
    assert held.stdout.readline().strip() == "begun"
    database.sql("SELECT mapcache_changes.trim_changes()")  # removes a row that the transaction still sees
    out = held.communicate(f"{add} COMMIT; SELECT 'committed';\n", timeout=patience(20))[0]
    assert "committed" in out and "ERROR" not in out, out
    database.sql("UPDATE mapcache_changes.log SET at = now() - interval '9 days'")
    database.sql(add)  # the usual transaction has trimmed: the row of this statement alone may be left
    assert len(logged(database)) <= 1


def test_mistakes_are_told(build, tmp_path):
    for words in ([], ["--sql"], ["--sql", "a", "-c", "x.xml"], ["--sql", ""], ["--sql", "a", "b", "--geometry", "g"], ["roads"],
                  ["--sql", "-c", str(tmp_path / "none.xml")]):
        made = invalidate(build, *words)
        assert made.returncode == 1 and made.stderr and not made.stdout, words


def test_the_script_as_json(build):
    shown = json.loads(invalidate(build, "--sql", "--json", "a.b", HOSTILE).stdout)
    assert shown["tables"] == ["a.b", HOSTILE] and shown["sql"] == invalidate(build, "--sql", "a.b", HOSTILE).stdout


def test_the_pipe_that_the_help_shows_ends_with_an_error(build, database):
    database.sql("DROP SCHEMA IF EXISTS mapcache_changes CASCADE; CREATE TABLE IF NOT EXISTS roads (id int)")
    shown = re.search(r"invalidate --sql public\.roads \| psql (.*) gis", invalidate(build, "--help").stdout)
    words = database.session("")[:-2]
    stop = words.index("ON_ERROR_STOP=1")
    words[stop - 1:stop + 1] = shown[1].split()
    for tables, status in ((("roads", "gone"), 3), (("roads",), 0)):
        script = invalidate(build, "--sql", *tables).stdout
        ended = subprocess.run(words, input=script, capture_output=True, text=True, check=False, timeout=patience(30))
        assert ended.returncode == status, ended.stderr
        assert ended.stderr.count("ERROR") == (status != 0) and ("gone" in ended.stderr) == (status != 0)
        assert database.sql("SELECT to_regclass('mapcache_changes.log') IS NULL") == ["t" if status else "f"]


def test_everything_can_be_dropped(build, database):
    watched(build, database, "g geometry(Point, 4326)")
    run_script(build, database, "--drop")
    run_script(build, database, "--drop")
    database.sql("INSERT INTO roads VALUES (1, 'SRID=4326;POINT(1 2)')")
    assert database.sql("SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE nspname = 'mapcache_changes'") == ["0"]
    run_script(build, database, "roads")
    database.sql("INSERT INTO roads VALUES (1, 'SRID=4326;POINT(1 2)')")
    assert logged(database) == ["4326 1 2 1 2"]

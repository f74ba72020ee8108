"""Overviews of tables of PostGIS: maps that are read from them look as those of the whole table; whatever has changed, and whatever does
not fit any more, is read from the table itself."""
import contextlib
import os
import random
import re
import shutil
import signal
import subprocess

import numpy
import pytest
from conftest import sanitizer_environment, wait_until
from overview_site import CHANGES, HOSTILE, SIDE, WHOLE, X, Y, Site, assert_looks_like_the_table, build_while_the_log_is_trimmed, built, command, configuration, database, dye, followed, levels, listed, make_roads, overviews, quoted, reads_level, send, square, updated, wait_for_log, watch_roads
from small_disk import small_disk


@pytest.mark.parametrize("kind, table, edge", [("roads", "crowded", 128), ("points", HOSTILE, 128), ("areas", "areas", 64)])
def test_maps_of_overviews_look_as_those_of_the_table(build, folder, database, kind, table, edge):
    path = configuration(folder, database, table, kind)
    made = built(build, path, "--static")
    names = levels(database, table)
    assert all(share <= .5 for share in shares_that_differ(made, names)), made
    if kind == "points":
        assert_readable(database, table, names[-1])
    numbers, painted, off, worst = random.Random(17), 0, 0, 0
    with Site(build, folder, path) as site:
        for _ in range(10):
            side = SIDE * 2 ** numbers.uniform(0, 2)
            box = square(X + numbers.uniform(-.5, .5) * side, Y + numbers.uniform(-.5, .5) * side, side)
            both, different = site.differ(box)
            painted, off = painted + both, off + different
            worst = max(worst, different / max(both, 1))
        assert painted > 20_000 and off <= .005 * painted, (painted, off, worst)
        dye(database, table)
        assert reads_level(site, edge=edge), (made, site.server.log())  # and so did the maps above
    assert overviews(build, path, "drop").returncode == 0
    assert levels(database, table) == []
    assert not set(names) & set(database.sql("SELECT relname FROM pg_class WHERE relkind = 'r'"))


def assert_readable(database, table, name):
    """Others read a level by a function: each of its features lies on one of the table, within a hundredth of the level's pixel."""
    found = database.sql(f"""SELECT count(*), count(*) FILTER (WHERE EXISTS (SELECT FROM
        {quoted(table)} s WHERE s.kind::text = f.attributes[1] AND s.geom && ST_Expand(f.shape, resolution) AND
        ST_HausdorffDistance(s.geom, f.shape) < resolution / 10)), max(ST_SRID(shape))
        FROM (SELECT * FROM mapcache_overviews.features('{name}') LIMIT 50) f, (SELECT resolution FROM mapcache_overviews.levels WHERE name = '{name}') r""")
    assert found == ["50|50|3857"], found
    rows, counted = database.sql(f"SELECT rows, (SELECT sum(count) FROM mapcache_overviews.{name}) FROM mapcache_overviews.levels WHERE name = '{name}'")[0].split("|")
    assert rows == counted


def assert_same_tile(site):
    """On the lattice that the level was made for, what is left out is hidden in every pixel; a palette has steps."""
    half, size = 20037508.342789244, 2 * 20037508.342789244 / 2 ** 9
    column, row = int((X + half) // size), int((Y + half) // size)
    level, full = (site.map(name, square(column * size - half, row * size - half, size)) for name in ("level", "full"))
    assert level[..., 3].any() and numpy.abs(level - full).max() <= 24


def test_changed_boxes_are_read_from_the_table(build, folder, database):
    make_roads(database, "roads")
    path = configuration(folder, database)
    refused = overviews(build, path, "build")
    assert refused.returncode == 1 and "--static" in refused.stderr and "mapcache invalidate" in refused.stderr
    watch_roads(build, database)
    built(build, path)
    dye(database)
    beside = square(X + SIDE * .3, Y + SIDE * .3, SIDE)
    with Site(build, folder, path) as site:
        assert reads_level(site) and reads_level(site, beside)
        database.sql(f"INSERT INTO roads VALUES (1, 'new', ST_SetSRID(ST_MakeLine(ST_MakePoint({X}, {Y}), ST_MakePoint({X + 900}, {Y + 900})), 3857))")
        assert not reads_level(site) and reads_level(site, beside)
        assert site.differ(WHOLE)[1] == 0
        own, others = listed(build, path)
        assert [(found["used"], found["changes"]) for found in own] == [(True, 1)] * len(levels(database)), own
        assert [found["levels"] for found in others] == [0, len(own)] and "another style" in others[1]["reason"]
        database.sql("DROP TRIGGER mapcache_changes_delete ON roads")
        assert not reads_level(site, beside)
        assert "triggers of the change log" in site.server.log()
    database.sql("SELECT mapcache_changes.watch('roads')")
    build_while_the_log_is_trimmed(build, path, database)
    dye(database)
    with Site(build, folder, path) as site:
        assert reads_level(site)
        database.sql("DELETE FROM mapcache_changes.log; DELETE FROM mapcache_changes.readers")  # as trim_changes() does with readers that are not heard of
        assert not reads_level(site)
        assert "build them again" in site.server.log()
    built(build, path)
    assert database.sql("SELECT count(*) FROM mapcache_changes.readers") == ["1"]
    assert overviews(build, path, "drop").returncode == 0
    assert database.sql("SELECT count(*) FROM mapcache_changes.readers") == ["0"]


def assert_full(build, folder, path, words):
    """A server that begins now draws from the table, and says why once for each process."""
    with Site(build, folder, path) as site:
        assert site.differ(WHOLE)[1] == 0 and not reads_level(site)
        told = [line for line in site.server.log().splitlines() if 'layer "roads" is drawn without its overviews' in line and words in line]
        processes = {line.split("[pid ")[1].split(":")[0] for line in told}
        assert 1 <= len(told) <= 2 * len(processes), site.server.log()  # by both tilesets


def test_what_does_not_fit_any_more_is_not_used(build, folder, database):
    make_roads(database, "roads")
    path = configuration(folder, database)
    built(build, path, "--static")
    with Site(build, folder, path) as site:
        assert_same_tile(site)
    dye(database)
    for column, words in (("style", "another style"), ("srid", "another SRID")):
        database.sql(f"UPDATE mapcache_overviews.levels SET {column} = {column} + 1")
        assert_full(build, folder, path, words)
        assert any(words in found.get("reason", "") for found in listed(build, path)[0])
        database.sql(f"UPDATE mapcache_overviews.levels SET {column} = {column} - 1")
    quarter = path.read_text()
    path.write_text(quarter.replace("</transfer>", "</transfer><thinning>half</thinning>"))
    refused = overviews(build, path, "build", "--static")
    assert refused.returncode == 1 and "<thinning>" in refused.stderr and "<thinning>" in listed(build, path)[0][0]["reason"]
    with Site(build, folder, path) as site:
        assert not reads_level(site)
    path.write_text(quarter)
    with Site(build, folder, path) as site:
        assert reads_level(site)
        database.sql("ALTER TABLE roads ADD COLUMN further int")
        assert site.differ(WHOLE)[1] == 0 and not reads_level(site)
        assert "the columns of the table have changed" in site.server.log()
        database.sql("ALTER TABLE roads DROP COLUMN further")
        assert reads_level(site)
        database.sql("VACUUM FULL roads")
        assert site.differ(WHOLE)[1] == 0 and not reads_level(site)
        assert "rewritten or replaced" in site.server.log()
    assert all("rewritten" in found["reason"] for found in listed(build, path)[0])


def test_tables_that_lose_what_they_had(build, folder, database):
    make_roads(database, "roads")
    database.sql("ALTER TABLE roads ADD id serial PRIMARY KEY")
    path = configuration(folder, database)
    built(build, path, "--static")
    dye(database)
    with Site(build, folder, path) as site:
        assert reads_level(site)
        database.sql("ALTER TABLE roads DROP CONSTRAINT roads_pkey")
        assert reads_level(site)  # maps need no key
        database.sql("ALTER TABLE roads DROP COLUMN more")
        assert site.differ(WHOLE)[1] == 0 and not reads_level(site)
        assert "the columns of the table have changed" in site.server.log()
    built(build, path, "--static")
    dye(database)
    database.sql("ALTER TABLE roads ALTER COLUMN geom TYPE geometry(LineString, 4326) USING ST_Transform(geom, 4326)")
    with Site(build, folder, path) as site:  # one that runs asks for the SRID of its tables every ten seconds
        assert site.differ(WHOLE)[1] == 0 and not reads_level(site)
        database.sql("DROP TABLE roads")
        answers = [site.ask(name, WHOLE, 64) for name in ("level", "full")]
        assert answers[0].status == answers[1].status >= 500, answers
    gone = overviews(build, path, "update")
    assert gone.returncode == 1 and "roads" in gone.stderr, gone.stderr


ODD = ("ST_MakePoint('NaN', 6000000)", "ST_MakeLine(ARRAY[ST_MakePoint(1000000, 6000000), ST_MakePoint('NaN', 6010000), ST_MakePoint(1030000, 6020000)])",
       "ST_MakeLine(ST_MakePoint('-Infinity', 6020000), ST_MakePoint('Infinity', 6020000))", "ST_GeomFromText('GEOMETRYCOLLECTION EMPTY')",
       "ST_GeomFromText('POINT EMPTY')", "ST_GeomFromText('LINESTRING(1000000 6000000, 1000000 6000000)')",
       "ST_GeomFromText('POLYGON((1000000 6000000, 1030000 6030000, 1030000 6000000, 1000000 6030000, 1000000 6000000))')",
       "ST_GeomFromText('POLYGON((1000000 6000000, 1030000 6000000, 1000000 6000000, 1000000 6000000))')",
       "ST_GeomFromText('CURVEPOLYGON(CIRCULARSTRING(1000000 6000000, 1000900 6000900, 1001800 6000000, 1000900 5999100, 1000000 6000000))')",
       "ST_GeomFromText('GEOMETRYCOLLECTION(GEOMETRYCOLLECTION(POINT(1000000 6000000), MULTIPOLYGON(EMPTY, ((1009000 6000000, 1012000 6000000, 1009000 6003000, 1009000 6000000)))))')")


def test_odd_geometries(build, folder, database):
    """Neither numbers nor places, nothing at all, broken and curved: maps are those of the table, and so they are where such rows come later."""
    make_roads(database, "roads")
    database.sql("ALTER TABLE roads ALTER COLUMN geom TYPE geometry(Geometry, 3857); ANALYZE roads")
    path = configuration(folder, database)
    watch_roads(build, database)
    built(build, path)
    with Site(build, folder, path) as site:
        database.sql("INSERT INTO roads SELECT 1, 'odd', ST_SetSRID(g, 3857) FROM unnest(ARRAY[" + ", ".join(ODD) + "]) g")
        assert site.differ(WHOLE)[1] == 0
        said = updated(build, path)
        assert "built anew: the whole table may have changed" in said and levels(database), said  # who knows where NaN is
    with Site(build, folder, path) as site:
        both, off = site.differ(WHOLE)
        assert both > 20_000 and off <= .005 * both, (both, off)
        dye(database)
        assert reads_level(site)
        database.sql(f"INSERT INTO roads VALUES (1, 'huge', ST_SetSRID(ST_MakeLine(ST_MakePoint(1e300, 1e300), ST_MakePoint({X}, {Y})), 3857))")
        assert "built anew" in updated(build, path)
    with Site(build, folder, path) as site:
        both, off = site.differ(WHOLE)
        assert both > 20_000 and off <= .005 * both and not reads_level(site), (both, off)


def test_rows_far_away_leave_the_levels_as_they_are(build, folder, database):
    """They are in all levels, and maps of the place where they are show them."""
    make_roads(database, "roads")
    path = configuration(folder, database)
    resolutions = "SELECT resolution FROM mapcache_overviews.levels WHERE relation = 'roads'::regclass ORDER BY 1"
    built(build, path, "--static")
    wanted = database.sql(resolutions)
    database.sql("INSERT INTO roads SELECT 1, 'far', ST_SetSRID(ST_MakeLine(ST_MakePoint(x, y), ST_MakePoint(x + 900, y + 700)), 3857) FROM "
                 "(VALUES (0, 0), (-3e6, 8e6), (1e12, -1e12)) AS far(x, y)")
    built(build, path, "--static")
    assert database.sql(resolutions) == wanted and wanted
    with Site(build, folder, path) as site:
        for box in (WHOLE, square(-SIDE / 2, -SIDE / 2, SIDE), square(-3e6 - SIDE, 8e6 - SIDE, 2 * SIDE)):
            both, off = site.differ(box)
            assert both > 5 and off <= .005 * both, (box, both, off)
        dye(database)
        assert reads_level(site) and reads_level(site, square(-SIDE / 2, -SIDE / 2, SIDE))


def test_levels_that_are_gone_and_another_table_of_that_name(build, folder, database):
    make_roads(database, "roads")
    path = configuration(folder, database)
    built(build, path, "--static")
    dye(database)
    with Site(build, folder, path) as site:
        assert reads_level(site)
        for name in levels(database):
            database.sql(f"DROP TABLE mapcache_overviews.{name}")
        assert site.differ(WHOLE)[1] == 0 and not reads_level(site)
        make_roads(database, "roads", 500)
        assert site.differ(WHOLE)[1] == 0 and not reads_level(site)


def test_two_builders_and_a_killed_one(build, folder, database):
    make_roads(database, "roads")
    path = configuration(folder, database)
    lock = database.locked("roads")
    try:
        with subprocess.Popen(command(build, path, "overviews", "build", "--static"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, **sanitizer_environment(build)}) as first:
            wait_until(lambda: database.sql("SELECT count(*) FROM pg_locks WHERE NOT granted") != ["0"], "the builder waits for the table")
            second = overviews(build, path, "build", "--static")
            assert second.returncode == 1 and "somebody else builds" in second.stderr and "process " in second.stderr, second.stderr
            first.send_signal(signal.SIGKILL)
    finally:
        lock.release()
    wait_until(lambda: database.sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == ["0"], "the builder's session ends")
    assert levels(database) == []
    assert levels(database) == [] and "features" in built(build, path, "--static")
    database.sql("ALTER TABLE roads ENABLE ROW LEVEL SECURITY")
    refused = overviews(build, path, "build", "--static")
    assert refused.returncode == 1 and "row level security" in refused.stderr


LOSE_BLOCKS = f"""CREATE FUNCTION lose_block() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN CASE WHEN ST_XMin(NEW.box) > {X + SIDE / 4} THEN NULL ELSE NEW END; END $$;
CREATE FUNCTION lose_blocks() RETURNS event_trigger LANGUAGE plpgsql AS $$ DECLARE made record; BEGIN FOR made IN SELECT * FROM pg_event_trigger_ddl_commands() LOOP
    IF made.object_identity ~ '^mapcache_overviews.level_' THEN EXECUTE format('CREATE TRIGGER lose BEFORE INSERT ON %s FOR EACH ROW EXECUTE FUNCTION lose_block()',
    made.object_identity); END IF; END LOOP; END $$;
CREATE EVENT TRIGGER lose ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION lose_blocks();"""


def test_levels_that_do_not_look_like_the_table_are_given_up(build, folder, database):
    make_roads(database, "roads")
    path = configuration(folder, database)
    send(database, LOSE_BLOCKS)
    try:
        made = built(build, path, "--static")
    finally:
        database.sql("DROP EVENT TRIGGER lose; DROP FUNCTION lose_blocks; DROP FUNCTION lose_block CASCADE")
    lost = re.findall(r"a pixel: no level, whose maps would not look as those of the table, ([0-9.]+) % of the pixels differ", made)
    assert lost and min(map(float, lost)) > 2 and levels(database) == [] and "maps read the table" in made, made
    made = built(build, path, "--static")
    assert "would not look" not in made and all(share <= .5 for share in shares_that_differ(made, levels(database))), made


def shares_that_differ(made, names):
    """What the builder says of each level that there is."""
    found = [float(share) for share in re.findall(r" features, [0-9.]+ MB, ([0-9.]+) % of the pixels differ", made)]
    assert names and len(found) == len(names), made
    return found


def fill(disk):
    with contextlib.suppress(OSError), open(disk / "ballast", "wb", buffering=0) as ballast:
        while True:
            ballast.write(bytes(4096))


def test_a_disk_that_fills_up(build, folder, database):
    """Of a tablespace: the levels stay as they were, the changed box is read from the table, and the server tries again."""
    make_roads(database, "roads")
    path = followed(configuration(folder, database))
    watch_roads(build, database)
    with small_disk(database.folder / "small", 2 << 20) as disk:
        if disk is None:  # without the right to mount there is no disk that is soon full
            return
        shutil.chown(disk, **{key: value for key, value in database.identity.items() if key in ("user", "group")})
        database.sql(f"CREATE TABLESPACE small LOCATION '{disk}'")
        database.sql("ALTER ROLE mapcache SET default_tablespace = small")
        try:
            built(build, path)
            before = database.sql("SELECT * FROM mapcache_overviews.levels")
            fill(disk)
            full = overviews(build, path, "build")
            assert full.returncode == 1 and "No space left on device" in full.stderr, full.stderr
            assert database.sql("SELECT * FROM mapcache_overviews.levels") == before
            assert database.sql("SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname ~ '^level_'") == [str(len(before))]
            with Site(build, folder, path) as site:
                database.sql(CHANGES[3])
                wait_for_log(site, "No space left on device")
                assert site.differ(WHOLE)[1] == 0
                (disk / "ballast").unlink()
                wait_for_log(site, "were updated in")
                assert_looks_like_the_table(site, random.Random(9), 2)
        finally:
            overviews(build, path, "drop")
            database.sql("ALTER ROLE mapcache RESET default_tablespace")
            database.sql("DROP TABLESPACE small")

"""Overviews of tables after changes: `mapcache overviews update`, and servers that update by themselves."""
import os
import random
import re
import subprocess

from changes_site import counter
from conftest import sanitizer_environment, wait_until
from overview_site import CHANGES, WHOLE, X, Y, Site, assert_looks_like_the_table, built, command, configuration, database, dye, followed, levels, make_roads, overviews, reads_level, updated, wait_for_log, watch_roads
from patience import patience


def assert_rows_of_the_table(database, name):
    """Each feature of a level is what the table has at its place, with the same attributes: nothing stays of what has gone."""
    counts = database.sql(f"""SELECT count(*), count(r.kind), l.rows FROM mapcache_overviews.levels l CROSS JOIN LATERAL mapcache_overviews.features(l.name) f LEFT JOIN roads r ON
        r.ctid = format('(%s,%s)', (f.part * l.places + f.place) / 293, (f.part * l.places + f.place) % 293)::tid AND r.kind::text = f.attributes[1] AND
        ST_HausdorffDistance(r.geom, f.shape) < l.resolution / 10 WHERE l.name = '{name}' GROUP BY l.rows""")
    assert len(counts) == 1 and len(set(counts[0].split("|"))) == 1, counts


def test_update_brings_changed_boxes_up_to_date(build, folder, database):
    make_roads(database, "roads")
    path = configuration(folder, database)
    assert "no overviews" in updated(build, path)
    watch_roads(build, database)
    built(build, path)
    names, numbers = levels(database), random.Random(5)
    with Site(build, folder, path) as site:
        for change in CHANGES:
            database.sql(change)
            said = updated(build, path)
            assert "up to date" in said and "anew" not in said and levels(database) == names, said
            database.sql("VACUUM roads")  # places of rows are given again
        for name in names:
            assert_rows_of_the_table(database, name)
        assert "up to date: 0 changed boxes" in updated(build, path)
        assert_looks_like_the_table(site, numbers)
        dye(database)
        assert reads_level(site)  # and so did the maps above
        for change, reason in (("ALTER TABLE roads ADD COLUMN further int", "columns"), ("DELETE FROM mapcache_changes.readers", "change log"),
                               ("SELECT mapcache_changes.changed('roads')", "whole table"),
                               ("UPDATE mapcache_overviews.levels SET rows = 10000, rows_built = 5000", "grown")):
            database.sql(change)
            said = updated(build, path)
            assert "built anew" in said and reason in said and "features" in said, said


SCATTERED = (  # the log has a box for each of a few changes, and for each cell of a lattice of many
    "DELETE FROM roads WHERE more = 'above' OR (more <> 'below' AND {some})",
    "UPDATE roads SET geom = ST_Translate(geom, 60, -40) WHERE {some}",
    "DO $$ DECLARE c tid; BEGIN FOR c IN SELECT ctid FROM roads WHERE {some} LOOP UPDATE roads SET kind = 4 - kind WHERE ctid = c; END LOOP; END $$",
    "INSERT INTO roads SELECT kind, 'new', ST_Translate(geom, 300, 200) FROM roads WHERE {some}",
    "DELETE FROM roads WHERE more = 'new' OR {some}",
)


def test_update_of_changes_all_over_a_table(build, folder, database):
    """What has gone lets others be seen: these are found, no level is left out, and none is built anew."""
    make_roads(database, "roads", 20000)
    for kind, name, reach in ((3, "below", 300), (1, "above", 2000)):  # in a corner of their own
        database.sql(f"INSERT INTO roads VALUES ({kind}, '{name}', ST_SetSRID(ST_MakeLine(ST_MakePoint({X - 4000 - reach}, {Y - 4000}), ST_MakePoint({X - 4000 + reach}, {Y - 4000})), 3857))")
    path = configuration(folder, database)
    watch_roads(build, database)
    built(build, path)
    corner = f"SELECT attributes[1] FROM mapcache_overviews.features('{levels(database)[0]}') WHERE ST_Intersects(shape, ST_MakeEnvelope({X - 7000}, {Y - 4500}, {X - 1000}, {Y - 3500}, 3857))"
    assert database.sql(corner) == ["1"]
    known = "SELECT name, until FROM mapcache_overviews.levels ORDER BY resolution"
    names, far = levels(database), database.sql(known)
    looked = 0
    with Site(build, folder, path) as site:
        for number, change in enumerate(SCATTERED):
            database.sql(f"SELECT setseed(.{number + 1}); " + change.format(some="ctid IN (SELECT ctid FROM roads ORDER BY random() LIMIT 400)"))
            said = updated(build, path)
            assert "up to date" in said and "anew" not in said, said
            looked += sum(int(rows) for rows in re.findall(r"(\d+) rows looked at below", said))
            database.sql("VACUUM roads")
            if number == 0:
                assert database.sql(corner) == ["3"]  # what was hidden
        assert database.sql(known) == far and looked > 0
        for name in names:
            assert_rows_of_the_table(database, name)
        assert_looks_like_the_table(site, random.Random(7))
        dye(database)
        assert reads_level(site)


def with_little_memory(path, budget):
    """The same configuration, with a memory budget."""
    other = path.with_name("little.xml")
    other.write_text(path.read_text().replace("<log_level>", f"<memory_cache>0</memory_cache><memory_budget>{budget}</memory_budget><log_level>", 1))
    return other


def test_servers_update_overviews_after_changes(build, folder, database):
    """Also where somebody else builds them just then, and rows change meanwhile."""
    make_roads(database, "roads")
    path = followed(configuration(folder, database))
    watch_roads(build, database)
    built(build, with_little_memory(path, "4M"))  # more than half of which planes would take, were they counted
    database.sql(CHANGES[2])
    lock = database.locked("roads")
    with subprocess.Popen(command(build, path, "overviews", "build"), stdout=subprocess.DEVNULL, env={**os.environ, **sanitizer_environment(build)}) as builder:
        wait_until(lambda: database.sql("SELECT count(*) FROM pg_locks WHERE NOT granted") != ["0"], "the builder waits for the table")
        second = overviews(build, path, "update")
        assert second.returncode == 1 and "somebody else builds" in second.stderr, second.stderr
        with Site(build, folder, path) as site:
            wait_for_log(site, "somebody else builds")
            lock.process.communicate(f"{CHANGES[0]}; COMMIT;\n", timeout=patience(30))  # the builder does not see it
            assert builder.wait(patience(60)) == 0
            wait_for_log(site, "were updated in")
            assert int(counter(site.server, "overview_update_rows_total")) > 0
            for name in levels(database):
                assert_rows_of_the_table(database, name)
            assert_looks_like_the_table(site, random.Random(8), 2)
            dye(database)
            assert reads_level(site)
    database.sql("UPDATE mapcache_overviews.levels SET build_seconds = 100; SELECT mapcache_changes.changed('roads')")
    with Site(build, folder, path) as site:  # changes of before it began
        wait_for_log(site, "took 100 s the last time: run mapcache overviews update -t level")
        assert site.differ(WHOLE)[1] == 0 and not reads_level(site)
    database.sql("UPDATE mapcache_overviews.levels SET built = built - interval '1 hour', build_seconds = 1")
    with Site(build, folder, with_little_memory(path, "3M")) as site:
        wait_for_log(site, "are not updated within half of <memory_budget>: run mapcache overviews update -t level")
    with Site(build, folder, path) as site:
        wait_for_log(site, "were built anew in")
        assert not reads_level(site) and counter(site.server, "overview_builds_total") == 1
        dye(database)
        assert reads_level(site)

"""Overviews of tables of PostGIS: maps that are read from them look as those of the whole table; whatever has changed, and whatever does
not fit any more, is read from the table itself."""
import contextlib
import fcntl
import io
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
from xml.sax.saxutils import escape

import numpy
import pytest
from changes_site import counter
from conftest import sanitizer_environment, wait_until
from fastcgi import Server
from patience import patience
from PIL import Image
from postgres import Postgres
from small_disk import small_disk
from test_vector_tiles import message, numbers_of

X, Y, SIDE = 1_000_000, 6_000_000, 40_000  # where all data lies, EPSG:3857
COLORS = ((1, "#c83c28", 5), (2, "#e68c32", 3), (3, "#969696", 1))
HOSTILE = "We'ird $body$; drop table roads; -- é"  # without a quote: ST_EstimatedExtent fails for names that have one


def rule(kind, symbol):
    return (f'<Rule><Filter xmlns="http://www.opengis.net/ogc"><PropertyIsEqualTo><PropertyName>kind</PropertyName><Literal>{kind}</Literal>'
            f"</PropertyIsEqualTo></Filter>{symbol}</Rule>")


def parameter(name, value):
    return f'<CssParameter name="{name}">{value}</CssParameter>'


def line(color, width):
    return f'<LineSymbolizer><Stroke>{parameter("stroke", color)}{parameter("stroke-width", width)}</Stroke></LineSymbolizer>'


def mark(color, size):
    return (f'<PointSymbolizer><Graphic><Mark><WellKnownName>circle</WellKnownName><Fill>{parameter("fill", color)}</Fill><Stroke>'
            f'{parameter("stroke", "#ffffff")}</Stroke></Mark><Size>{size + 3}</Size></Graphic></PointSymbolizer>')


def area(color, width):
    return (f'<PolygonSymbolizer><Fill>{parameter("fill", color)}</Fill><Stroke>{parameter("stroke", "#504030")}'
            f'{parameter("stroke-width", width / 2)}</Stroke></PolygonSymbolizer>')


def filled(color, _width):
    return f'<PolygonSymbolizer><Fill>{parameter("fill", color)}</Fill></PolygonSymbolizer>'


SYMBOLS = {"roads": line, "points": mark, "areas": area, "fills": filled}


def style(symbol, name):
    """Styles of other names are other styles, and draw the same."""
    rules = "".join(rule(kind, symbol(color, width)) for kind, color, width in COLORS)
    return (f'<StyledLayerDescriptor version="1.0.0" xmlns="http://www.opengis.net/sld"><NamedLayer><Name>n</Name><UserStyle><Name>{name}</Name>'
            f"<FeatureTypeStyle>{rules}</FeatureTypeStyle></UserStyle></NamedLayer></StyledLayerDescriptor>")


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def jagged(a, b, depth, numbers):
    """A border with many bends, from a to b, without b."""
    if depth == 0:
        return [a]
    bend = numbers.uniform(-.08, .08)
    middle = ((a[0] + b[0]) / 2 + bend * (b[1] - a[1]), (a[1] + b[1]) / 2 - bend * (b[0] - a[0]))
    return jagged(a, middle, depth - 1, numbers) + jagged(middle, b, depth - 1, numbers)


def areas(count=16, depth=8):
    """Polygons of 1,024 vertices that share their borders, as WKT."""
    numbers, step = random.Random(3), SIDE / count
    def corner(c, r):
        return X + c * step, Y + r * step
    across = {(c, r): jagged(corner(c, r), corner(c + 1, r), depth, numbers) for c in range(count) for r in range(count + 1)}
    up = {(c, r): jagged(corner(c, r), corner(c, r + 1), depth, numbers) for c in range(count + 1) for r in range(count)}
    for r in range(count):
        for c in range(count):
            ring = across[c, r] + up[c + 1, r] + [corner(c + 1, r + 1)] + across[c, r + 1][:0:-1] + [corner(c, r + 1)] + up[c, r][:0:-1]
            yield "POLYGON((" + ",".join(f"{x!r} {y!r}" for x, y in ring + ring[:1]) + "))"


@pytest.fixture(scope="module")
def database():
    with Postgres() as server:
        server.sql("CREATE EXTENSION postgis")
        make_roads(server, "crowded", 40000)
        make_roads(server, "roads")
        points = quoted(HOSTILE)
        server.sql(f"""SELECT setseed(.3); CREATE TABLE {points} (kind int, geom geometry(Point, 3857)); INSERT INTO {points} SELECT 1 + (random() * 2)::int,
            ST_SetSRID(ST_MakePoint({X} + random() ^ 2 * {SIDE}, {Y} + random() ^ 2 * {SIDE}), 3857) FROM generate_series(1, 20000);
            CREATE INDEX ON {points} USING gist (geom); ANALYZE {points}""")
        server.sql("CREATE TABLE areas (kind int, geom geometry(Polygon, 3857))")
        values = ",".join(f"({1 + i % 3}, ST_GeomFromText('{text}', 3857))" for i, text in enumerate(areas()))
        for command in (f"INSERT INTO areas VALUES {values};", "CREATE INDEX ON areas USING gist (geom);", "ANALYZE areas;"):
            send(server, command)
        yield server


def send(server, script):
    """Too long for a command line."""
    subprocess.run(server.session("")[:-2], input=script, text=True, check=True, stdout=subprocess.DEVNULL, cwd=server.folder)


def make_roads(server, name, rows=12000):
    table = quoted(name)
    server.sql(f"""SELECT setseed(.5); DROP TABLE IF EXISTS {table}; CREATE TABLE {table} (kind int, more text, geom geometry(LineString, 3857));
        INSERT INTO {table} SELECT 1 + (random() ^ 2 * 2.4)::int, 'x', ST_SetSRID(ST_MakeLine(ST_MakePoint(x, y), ST_MakePoint(x + random() * 1500 - 750,
        y + random() * 1500 - 750)), 3857) FROM (SELECT {X} + random() ^ 2 * {SIDE} AS x, {Y} + random() ^ 2 * {SIDE} AS y FROM generate_series(1, {rows})) p;
        CREATE INDEX ON {table} USING gist (geom); ANALYZE {table}""")


def configuration(folder, server, table="roads", kind="roads", shapefile=None):
    """Tilesets `level`, for whose style overviews are built, and `full`, for whose style there are none."""
    tilesets = ""
    for name in ("level", "full"):
        (folder / f"{name}.sld").write_text(style(SYMBOLS[kind], name))
        data = (f"<data>{shapefile}</data>" if shapefile else f"<connection>{escape(server.connection())}</connection><table>{escape(table)}</table>"
                                                              "<transfer>binary</transfer>")
        tilesets += f"""<source name="{name}" type="{"shapefile" if shapefile else "postgis"}"><layer name="{kind}">{data}<style>{name}.sld</style></layer></source><tileset name="{name}"><source>{name}</source><cache>disk</cache>
            <grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>"""
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache><cache name="disk" type="disk"><base>{folder}/tiles</base></cache>{tilesets}<default_format>PNG</default_format>
        <service type="wms" enabled="true"><full_wms>forward</full_wms></service><log_level>info</log_level></mapcache>""")
    return path


def command(build, path, *words):
    return [build / "bin/mapcache", *words, "-c", path, "-t", "level"]


def overviews(build, path, *words):
    return subprocess.run(command(build, path, "overviews", *words), capture_output=True, text=True, check=False,
                          env={**os.environ, **sanitizer_environment(build)}, timeout=patience(60))


def listed(build, path):
    """What `list` says of the tileset `level`, and of all of them: those of the other tileset are of another style."""
    made = [subprocess.run([build / "bin/mapcache", "overviews", "list", "-c", path, *words], capture_output=True, text=True, check=True,
                           env={**os.environ, **sanitizer_environment(build)}, timeout=patience(60)).stdout for words in (["-t", "level", "--json"], ["--json"], [])]
    own, every = ([json.loads(line) for line in text.splitlines()] for text in made[:2])
    assert own == [found for found in every if found["tileset"] == "level"] and {found["tileset"] for found in every} == {"level", "full"}
    assert "tileset level, layer" in made[2] and "tileset full, layer" in made[2]
    assert all(found["reason"] in made[2] for found in every if not found["used"]), made[2]
    return own, [found for found in every if found["tileset"] == "full"]


def built(build, path, *words):
    made = overviews(build, path, "build", *words)
    assert made.returncode == 0, made.stderr
    return made.stdout


class Site:
    """Both tilesets, drawn by one server."""

    def __init__(self, build, folder, path):
        self.server = Server(build, path, folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.stop()

    def ask(self, layer, box, edge):
        return self.server.get("/", f"SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS={layer}&STYLES=&SRS=EPSG:3857&FORMAT=image/png"
                                    f"&BBOX={','.join(map(repr, box))}&WIDTH={edge}&HEIGHT={edge}")

    def map(self, layer, box, edge=256):
        answer = self.ask(layer, box, edge)
        assert answer.status == 200, answer.body[:500]
        return numpy.asarray(Image.open(io.BytesIO(answer.body)).convert("RGBA")).astype(int)

    def differ(self, box, edge=256):
        """Pixels that either map paints, and of these those that are off by more than 16 of 255."""
        level, full = self.map("level", box, edge), self.map("full", box, edge)
        painted = (level[..., 3] > 0) | (full[..., 3] > 0)
        return int(painted.sum()), int((numpy.abs(level - full).max(axis=2) > 16).sum())


WHOLE = (X, Y, X + SIDE, Y + SIDE)


def square(x, y, side):
    return (x, y, x + side, y + side)


def levels(server, table="roads"):
    return server.sql(f"SELECT name FROM mapcache_overviews.levels WHERE relation = to_regclass('{quoted(table).replace(chr(39), chr(39) * 2)}') ORDER BY resolution")


def dye(server, table="roads"):
    """Empties the levels: a map that is read from one of them is blank."""
    for name in levels(server, table):
        server.sql(f"DELETE FROM mapcache_overviews.{name}")


def reads_level(site, box=WHOLE, edge=64):
    return not site.map("level", box, edge)[..., 3].any()


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


def watch_roads(build, database):
    script = subprocess.run([build / "bin/mapcache", "invalidate", "--sql", "roads"], capture_output=True, text=True, check=True,
                            env={**os.environ, **sanitizer_environment(build)}, timeout=patience(30))
    send(database, script.stdout)


def updated(build, path):
    made = overviews(build, path, "update")
    assert made.returncode == 0, made.stderr
    return made.stdout


CHANGES = (  # each lies in a part of the table, so that the rest of the levels stays
    f"DELETE FROM roads WHERE geom && ST_MakeEnvelope({X}, {Y}, {X + 2000}, {Y + 2000}, 3857)",
    f"UPDATE roads SET kind = 4 - kind WHERE ST_X(ST_StartPoint(geom)) BETWEEN {X + 9000} AND {X + 9800} AND kind <> 2",
    f"UPDATE roads SET geom = ST_Translate(geom, 3000, -900) WHERE ctid IN (SELECT ctid FROM roads WHERE ST_Y(ST_StartPoint(geom)) > {Y + 20000} LIMIT 80)",
    f"INSERT INTO roads SELECT 1, 'new', ST_SetSRID(ST_MakeLine(ST_MakePoint({X} + n * 20, {Y + 500}), ST_MakePoint({X} + n * 20, {Y + 1500})), 3857) FROM generate_series(1, 60) n",
    f"INSERT INTO roads VALUES (2, 'far out', ST_SetSRID(ST_MakeLine(ST_MakePoint({X - 5000}, {Y - 4000}), ST_MakePoint({X - 100}, {Y - 50})), 3857)), "
    "(1, 'nothing', NULL), (1, 'empty', ST_GeomFromText('LINESTRING EMPTY', 3857))",
)


def assert_rows_of_the_table(database, name):
    """Each feature of a level is what the table has at its place, with the same attributes: nothing stays of what has gone."""
    counts = database.sql(f"""SELECT count(*), count(r.kind), l.rows FROM mapcache_overviews.levels l CROSS JOIN LATERAL mapcache_overviews.features(l.name) f LEFT JOIN roads r ON
        r.ctid = format('(%s,%s)', (f.part * l.places + f.place) / 293, (f.part * l.places + f.place) % 293)::tid AND r.kind::text = f.attributes[1] AND
        ST_HausdorffDistance(r.geom, f.shape) < l.resolution / 10 WHERE l.name = '{name}' GROUP BY l.rows""")
    assert len(counts) == 1 and len(set(counts[0].split("|"))) == 1, counts


def assert_looks_like_the_table(site, numbers, maps=5):
    painted = off = 0
    for _ in range(maps):
        side = SIDE * 2 ** numbers.uniform(-.5, 1)
        both, different = site.differ(square(X - SIDE / 4 + numbers.uniform(0, .4) * side, Y - SIDE / 4 + numbers.uniform(0, .4) * side, side))
        painted, off = painted + both, off + different
    assert painted > 5000 and off <= .005 * painted, (painted, off)


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


def build_while_the_log_is_trimmed(build, path, database):
    """A builder is a reader of the log before it takes its snapshot: nothing that changes meanwhile is removed."""
    database.sql("DELETE FROM mapcache_changes.readers")
    lock = database.locked("roads")
    try:
        with subprocess.Popen(command(build, path, "overviews", "build"), stdout=subprocess.DEVNULL,
                              env={**os.environ, **sanitizer_environment(build)}) as builder:
            wait_until(lambda: database.sql("SELECT count(*) FROM pg_locks WHERE NOT granted") != ["0"], "the builder waits for the table")
            database.sql("INSERT INTO mapcache_changes.readers (name, applied) SELECT 'another', pg_current_snapshot();"
                         " SELECT mapcache_changes.changed('areas'); UPDATE mapcache_changes.readers SET applied = pg_current_snapshot() WHERE name = 'another'")
            database.sql("UPDATE mapcache_changes.readers SET applied = pg_current_snapshot() WHERE name = 'another'; SELECT mapcache_changes.trim_changes()")
            assert database.sql("SELECT count(*) FROM mapcache_changes.log WHERE relation = 'areas'::regclass") == ["1"]
            lock.release()
            assert builder.wait(patience(60)) == 0
    finally:
        database.sql("DELETE FROM mapcache_changes.readers WHERE name = 'another'")


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
        assert site.differ(WHOLE)[1] == 0 and not reads_level(site)


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


# Inserts of a level's table lose the blocks of a half of the plane.
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


def followed(path):
    """The same configuration, whose servers follow the change log."""
    path.write_text(path.read_text().replace("<mapcache>", "<mapcache><changes><poll>.2</poll><overviews>.2</overviews></changes>", 1)
                    .replace("<log_level>", '<service type="metrics" enabled="true"/><log_level>', 1))
    return path


def with_little_memory(path, budget):
    """The same configuration, with a memory budget."""
    other = path.with_name("little.xml")
    other.write_text(path.read_text().replace("<log_level>", f"<memory_cache>0</memory_cache><memory_budget>{budget}</memory_budget><log_level>", 1))
    return other


def wait_for_log(site, words):
    wait_until(lambda: words in site.server.log(), f"the log says: {words}")


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


HALF = 20037508.342789244
ZOOMS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12)


def make_tiled(server):
    """Tables with attributes of all types, and geometry of all kinds among the lines."""
    columns = "row_number() OVER () AS gid, CASE WHEN row_number() OVER () % 7 > 0 THEN 'nr. ' || row_number() OVER () % 400 END AS name, random() * 1000 AS share, random() < .5 AS open, repeat('x', 200) AS more, kind"
    for name, source in (("roads", "roads"), ("points", quoted(HOSTILE)), ("areas", "areas")):
        server.sql(f"""SELECT setseed(.7); DROP TABLE IF EXISTS tiled_{name}; CREATE TABLE tiled_{name} AS SELECT {columns}, geom::geometry(Geometry, 3857) FROM {source} LIMIT 6000;
            CREATE INDEX ON tiled_{name} USING gist (geom); ANALYZE tiled_{name}""")
    x, y = X + SIDE / 2, Y + SIDE / 2
    for number, text in enumerate((f"GEOMETRYCOLLECTION(POINT({x} {y}),LINESTRING({x} {y},{x + 3000} {y + 99}))", "LINESTRING EMPTY", f"CIRCULARSTRING({x} {y},{x + 900} {y + 900},{x + 1800} {y})",
                                   f"POLYGON(({x} {y},{x + 6e4} {y},{x} {y + 6e4},{x} {y}))", f"MULTIPOINT({x} {y},{x + 40000} {y})", f"LINESTRING({x} {y},{x + .1} {y},{x + .2} {y})")):
        server.sql(f"INSERT INTO tiled_roads VALUES ({90000 + number}, 'more', 1, true, '', 1, ST_GeomFromText('{text}', 3857))")


def tiled_configuration(folder, server):
    """One tile with all of them: numbers beside the attributes, among them, and none."""
    layers = ""
    for name, more in (("roads", "<id>gid</id><attributes>name,open,share</attributes>"), ("points", "<id>gid</id><attributes>gid,name,share,open,kind</attributes>"), ("areas", "<attributes>kind</attributes>")):
        layers += f'<layer name="{name}"><connection>{escape(server.connection())}</connection><table>tiled_{name}</table>{more}<transfer>binary</transfer></layer>'
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache><cache name="disk" type="disk"><base>{folder}/tiles</base></cache><source name="all" type="postgis">{layers}</source>
        <format name="mvt" type="MVT"><max_features>1500</max_features></format><tileset name="level"><source>all</source><cache>disk</cache><grid>GoogleMapsCompatible</grid>
        <metatile>2 2</metatile><format>mvt</format></tileset><service type="gmaps" enabled="true"/><log_level>info</log_level></mapcache>""")
    return path


def features_of(body):
    """Of each layer, in their order: number, attributes with encoded values, type, geometry."""
    found = {}
    for _, layer in message(body):
        fields = list(message(layer))
        keys, values = ([value for number, value in fields if number == field] for field in (3, 4))
        rows = found.setdefault(next(value for number, value in fields if number == 1), [])
        for feature in (dict(message(value)) for number, value in fields if number == 2):
            tags = numbers_of(feature.get(2, b""))
            rows.append((feature.get(1), [(keys[k], values[v]) for k, v in zip(tags[::2], tags[1::2])], feature[3], feature[4]))
    return found


def made_tiles(build, folder, path):
    """Tiles of all levels in the middle of the data, and some beside them, made by a server that begins now."""
    shutil.rmtree(folder / "tiles", ignore_errors=True)
    server, found = Server(build, path, folder), {}
    try:
        for z in ZOOMS:
            side = 2 * HALF / 2 ** z
            column, row = int((X + SIDE * .3 + HALF) // side), int((HALF - Y - SIDE * .4) // side)
            for right in range(1 + (z > 6)):
                answer = server.get(f"/gmaps/level@GoogleMapsCompatible/{z}/{column + right}/{row}.mvt")
                assert answer.status == 200, answer.body[:500]
                found[z, right] = features_of(answer.body)
        return found
    finally:
        server.stop()


def test_vector_tiles_of_overviews_hold_what_those_of_the_tables_do(build, folder, database):
    make_tiled(database)
    path = tiled_configuration(folder, database)
    full = made_tiles(build, folder, path)
    made = built(build, path, "--static")
    assert set(full[0, 0]) == {b"roads", b"points"} and set(full[5, 0]) == {b"roads", b"areas"} and set(full[12, 0]) == {b"roads", b"points", b"areas"}
    assert all(sum(map(len, full[z, 0].values())) == 1500 for z in range(6))  # what the budget takes
    tiles = made_tiles(build, folder, path)
    for place, tile in full.items():
        assert tiles[place] == tile, (place, made)
    for name in ("tiled_roads", "tiled_points", "tiled_areas"):
        assert levels(database, name), made
        dye(database, name)
    empty = made_tiles(build, folder, path)
    assert not any(empty[z, 0] for z in range(5)), made
    assert empty[12, 0] == full[12, 0]  # from the tables


def write_over(path, old, new):
    """Another table of the same size and time, as if nobody had written."""
    times = os.stat(path)
    path.write_bytes(path.read_bytes().replace(old, new))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def put(path, content):
    """In one step, as a builder does."""
    path.with_suffix(".new").write_bytes(content)
    path.with_suffix(".new").rename(path)


def emptied(content):
    """The levels of a file (level_file.h) without their blocks: a map that is read from one of them is blank."""
    made, count = bytearray(content), struct.unpack_from("<I", content, 136)[0]
    for i in range(count):
        struct.pack_into("<I", made, 144 + 48 * i + 28, 0)
    return bytes(made)


def kill_a_builder(build, path, folder):
    """As soon as it has begun to write; what it leaves is not in the way of the next one."""
    with subprocess.Popen(command(build, path, "overviews", "build"), stdout=subprocess.DEVNULL, env={**os.environ, **sanitizer_environment(build)}) as builder:
        wait_until(lambda: list(folder.glob("*.tmp*")) or builder.poll() is not None, "the builder writes", 30)
        builder.kill()


# Areas that lie over each other: with a hole, of two parts, and whole.
ISLANDS = """SELECT kind, CASE kind WHEN 1 THEN ST_Multi(ST_Difference(ST_Buffer(p, 1200, 3), ST_Buffer(p, 600, 3))) WHEN 2 THEN
    ST_Collect(ST_Buffer(p, 700, 2), ST_Buffer(ST_Translate(p, 1800, 100), 900, 1)) ELSE ST_Multi(ST_Buffer(p, 900, 2)) END AS geom
    FROM (SELECT kind, ST_StartPoint(geom) AS p FROM crowded LIMIT 8000) roads"""


def make_shapefile(folder, database, kind, rows):
    """And its configuration, and the file that its overviews have."""
    shapes = folder / "data.shp"
    subprocess.run(["ogr2ogr", "-q", "-f", "ESRI Shapefile", shapes, f"PG:{database.connection()}", "-sql", rows], check=True, timeout=patience(60))
    return shapes, configuration(folder, database, kind=kind, shapefile=shapes)


def blank(site):
    return not site.map("level", WHOLE)[..., 3].any()


@pytest.mark.parametrize("kind, rows", [("roads", "SELECT kind, geom FROM crowded"), ("fills", ISLANDS)], ids=["roads", "areas"])
def test_maps_of_overviews_look_as_those_of_the_shapefile(build, folder, database, kind, rows):
    shapes, path = make_shapefile(folder, database, kind, rows)
    lines = [json.loads(line) for line in built(build, path, "--json").splitlines()]
    assert any(line["shapefile"] == str(shapes) and line.get("features") for line in lines), lines
    assert all(line["differs"] <= .005 for line in lines if "features" in line), lines
    found, = folder.glob("data.*.mcov*")
    numbers, painted, off = random.Random(17), 0, 0
    with Site(build, folder, path) as site:
        for _ in range(4):
            side = SIDE * 2 ** numbers.uniform(0, 2)
            both, different = site.differ(square(X + numbers.uniform(-.5, .5) * side, Y + numbers.uniform(-.5, .5) * side, side))
            painted, off = painted + both, off + different
        assert painted > 10_000 and off <= .005 * painted, (painted, off)
        put(found, emptied(found.read_bytes()))
        assert blank(site), (lines, site.server.log())  # and so were the maps above read from levels


def assert_untrusted(site, folder, found):
    """Another user's file, where everybody may write."""
    mode = folder.stat().st_mode
    os.chown(found, 54321, -1)
    assert blank(site)
    folder.chmod(0o1777)
    os.chown(found, 54322, -1)
    assert not blank(site) and "another user's" in site.server.log()
    folder.chmod(mode)


def test_overviews_are_those_of_the_bytes_of_a_shapefile(build, folder, database):
    shapes, path = make_shapefile(folder, database, "fills", ISLANDS)
    (folder / "data.0123456789abcdef.mcov").write_bytes(b"of another style")
    kill_a_builder(build, path, folder)
    built(build, path)
    found, = (file for file in folder.glob("data.*.mcov*") if "0123" not in file.name)
    whole = found.read_bytes()
    put(found, emptied(whole))
    shutil.copytree(folder, folder / "copied", ignore=shutil.ignore_patterns("*.sock"), copy_function=shutil.copyfile)
    with Site(build, folder / "copied", configuration(folder / "copied", database, kind="fills", shapefile=folder / "copied/data.shp")) as site:
        assert blank(site)
    with Site(build, folder, path) as site:
        assert blank(site)
        own, others = listed(build, path)
        assert [found["used"] for found in own] == [True] * (len(own) - 1) + [False] and own[-1]["levels"] == 1  # the one of another style
        assert own[0]["maxzoom"] == own[0]["minzoom"] > 0 and own[0]["features"] > 0 and own[0]["size"] == 0 and [found["levels"] for found in others] == [0, 2], (own, others)
        os.utime(shapes)
        assert blank(site)  # the same bytes
        write_over(shapes.with_suffix(".dbf"), b"1", b"2")
        assert not blank(site) and site.differ(WHOLE)[1] == 0 and "another one than they were built from" in site.server.log()
        assert "another one than they were built from" in listed(build, path)[0][0]["reason"]
        write_over(shapes.with_suffix(".dbf"), b"2", b"1")
        built(build, path)
        put(found, emptied(found.read_bytes()))
        assert blank(site)
        if os.geteuid() == 0:  # who else can give files away
            assert_untrusted(site, folder, found)
        put(found, whole[:200])
        assert not blank(site) and "is broken" in site.server.log() and "is broken" in listed(build, path)[0][0]["reason"]
    with open(f"{found}.tmp", "w", encoding="ascii") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        refused = overviews(build, path, "build")
        assert refused.returncode == 1 and f"process {os.getpid()}" in refused.stderr, refused.stderr
    assert overviews(build, path, "drop").returncode == 0
    assert not list(folder.glob("*.mcov*"))

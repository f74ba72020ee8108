"""Tables, shapefiles and configurations for tests of overviews, and what is asked of them."""
import io
import json
import os
import random
import subprocess
from xml.sax.saxutils import escape

import numpy
import pytest
from conftest import sanitizer_environment, wait_until
from fastcgi import Server
from patience import patience
from PIL import Image
from postgres import Postgres

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


def assert_looks_like_the_table(site, numbers, maps=5):
    painted = off = 0
    for _ in range(maps):
        side = SIDE * 2 ** numbers.uniform(-.5, 1)
        both, different = site.differ(square(X - SIDE / 4 + numbers.uniform(0, .4) * side, Y - SIDE / 4 + numbers.uniform(0, .4) * side, side))
        painted, off = painted + both, off + different
    assert painted > 5000 and off <= .005 * painted, (painted, off)


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


def followed(path):
    """The same configuration, whose servers follow the change log."""
    path.write_text(path.read_text().replace("<mapcache>", "<mapcache><changes><poll>.2</poll><overviews>.2</overviews></changes>", 1)
                    .replace("<log_level>", '<service type="metrics" enabled="true"/><log_level>', 1))
    return path


def wait_for_log(site, words):
    wait_until(lambda: words in site.server.log(), f"the log says: {words}")

"""What a layer reads from PostGIS: every kind of column and geometry, every way of transfer, every placeholder, values as
the database writes them."""
import json
import math
import random
import re

import numpy
import pytest
from conftest import temporary_folder
from postgres import Postgres
from vector_maps import SLD, Maps, covered, difference

WORLD = (-2e7, -2e7, 2e7, 2e7)
BOX = (0.0, 0.0, 1000.0, 1000.0)  # of most tables here, in EPSG:3857
TIMES = ('<dimensions><dimension type="regex" name="time" default="2020"><regex>.*</regex></dimension>'
         '<dimension type="regex" name="kind" default="a"><regex>.*</regex></dimension></dimensions>')
# What makes a server read tables of any size by several workers, whose rows come in no order.
EAGER = [f"{name}=0" for name in ("parallel_setup_cost", "parallel_tuple_cost", "min_parallel_table_scan_size", "min_parallel_index_scan_size")]
# One column each: its name is that of the table, its rows are SQL.
COLUMNS = {
    "plain": ("geometry(Polygon, 3857)", ["ST_MakeEnvelope(100, 100, 900, 500, 3857)"]),
    "multi": ("geometry(MultiPolygon, 3857)", ["ST_Multi(ST_MakeEnvelope(100, 100, 900, 500, 3857))"]),
    "measured": ("geometry(PolygonZM, 3857)", ["ST_Force4D(ST_MakeEnvelope(100, 100, 900, 500, 3857))"]),
    "generic": ("geometry", ["ST_MakeEnvelope(100, 100, 900, 500, 3857)", "ST_SetSRID('POINT EMPTY'::geometry, 3857)"]),
    "constrained": ("geometry check (ST_SRID(geom) = 3857)", ["ST_MakeEnvelope(100, 100, 900, 500, 3857)"]),
    "unknown": ("geometry", ["ST_MakeEnvelope(100, 100, 900, 500, 0)"]),
    "settled": ("geometry", ["ST_MakeEnvelope(100, 100, 900, 500, 3857)", "ST_MakeEnvelope(0, 0, 80, 60, 4326)",
                             "ST_MakeEnvelope(0, 0, 1000, 1000, 2056)"]),
    "degrees": ("geometry(Polygon, 4326)", ["ST_Transform(ST_MakeEnvelope(100, 100, 900, 500, 3857), 4326)"]),
    "globe": ("geography(Polygon)", ["ST_Transform(ST_MakeEnvelope(100, 100, 900, 500, 3857), 4326)::geography"]),
    "pieces": ("geometry(GeometryCollection, 3857)", ["ST_ForceCollection(ST_Collect(ST_MakeEnvelope(100, 100, 500, 500, 3857),"
                                                      "ST_MakeEnvelope(500, 100, 900, 500, 3857)))"]),
    "surface": ("geometry(MultiSurface, 3857)", ["ST_GeomFromText('MULTISURFACE(((100 100,900 100,900 500,100 500,100 100)))', 3857)"]),
    "mesh": ("geometry(TIN, 3857)", ["ST_GeomFromText('TIN(((100 100,900 100,900 500,100 100)),((100 100,900 500,100 500,100 100)))', 3857)"]),
    "body": ("geometry(PolyhedralSurfaceZ, 3857)", ["ST_GeomFromText('POLYHEDRALSURFACE Z(((100 100 0,900 100 0,900 500 0,100 500 0,100 100 0)))', 3857)"]),
    "nothing": ("geometry(Polygon, 3857)", ["ST_MakeEnvelope(100, 100, 900, 500, 3857)", "NULL", "ST_SetSRID('POLYGON EMPTY'::geometry, 3857)"]),
    "wild": ("geometry(Geometry, 3857)", ["ST_MakeEnvelope(100, 100, 900, 500, 3857)",
                                          "ST_SetSRID('LINESTRING(100 100, NaN 200, 300 300)'::geometry, 3857)",
                                          "ST_SetSRID(ST_MakePoint('Infinity', 5), 3857)"]),
}
# Kinds of geometry, and one of them at x, y.
PIECES = {
    "points": ("Point", "ST_SetSRID(ST_MakePoint(x, y), 3857)"),
    "spots": ("MultiPointM", "ST_SetSRID(ST_Collect(ST_MakePointM(x, y, i), ST_MakePointM(x + 4, y + 4, 1)), 3857)"),
    "lines": ("LineStringZ", "ST_SetSRID(ST_MakeLine(ST_MakePoint(x, y, 1), ST_MakePoint(x + 8, y + i % 9, 2)), 3857)"),
    "areas": ("MultiPolygon", "ST_Multi(ST_Collect(ST_MakeEnvelope(x, y, x + 4, y + 5, 3857), ST_MakeEnvelope(x + 5, y, x + 8, y + 3, 3857)))"),
}
RULE = '<Rule>{0}<PolygonSymbolizer><Fill><CssParameter name="fill">#c04020</CssParameter></Fill></PolygonSymbolizer></Rule>'
EQUAL = "<PropertyIsEqualTo><PropertyName>{}</PropertyName><Literal>{}</Literal></PropertyIsEqualTo>"
COUNTED = [(EQUAL.format("small", -32768), "#ff0000"), (EQUAL.format("middle", -2147483648), "#00ff00"),
           (EQUAL.format("large", -9223372036854775808), "#0000ff"), (EQUAL.format("large", 9223372036854775807), "#ffff00"),
           (EQUAL.format("large", "4.0"), "#00ffff"), ('<FeatureId fid="counted.9"/>', "#ff00ff")]
NONE = "<PropertyIsNull><PropertyName>{}</PropertyName></PropertyIsNull>"
PIECE_RULES = [("606060", f"<Not>{EQUAL.format('gid', -5)}</Not>"), ("ff0000", NONE.format("word")), ("00ff00", NONE.format("whole")), ("0000ff", EQUAL.format("whole", -9223372036854775808)),
               ("ffff00", EQUAL.format("word", "ÿ")), ("ff00ff", EQUAL.format("word", "\\xff")), ("00ffff", NONE.format("short")),
               ("808000", EQUAL.format("word", "outside")), ("008080", f"<Not>{NONE.format('long')}</Not>"),
               ("800080", EQUAL.format("word", "")), ("408040", '<FeatureId fid="in.9"/>')]
LINES = """<Rule><LineSymbolizer><Stroke><CssParameter name="stroke">#204080</CssParameter>
  <CssParameter name="stroke-width">3</CssParameter></Stroke></LineSymbolizer></Rule>"""


@pytest.fixture(scope="module")
def database():
    with Postgres(settings=["log_statement=all", "max_connections=50", "jit=on", *EAGER]) as server:
        server.sql("CREATE EXTENSION postgis")
        for name, (kind, rows) in COLUMNS.items():
            server.sql(f"CREATE TABLE {name}(id int, kind text, geom {kind})")
            for number, row in enumerate(rows):
                server.sql(f"INSERT INTO {name} VALUES ({number}, 'a', {row})")
        server.sql("CREATE VIEW seen AS SELECT id, ST_Translate(geom, 0, 0) AS shape FROM plain")
        server.sql("CREATE MATERIALIZED VIEW kept AS SELECT * FROM plain")
        server.sql("CREATE TABLE two(id int, other geometry(Point, 3857), geom geometry(Polygon, 3857));"
                   "INSERT INTO two SELECT id, ST_Centroid(geom), geom FROM plain")
        server.sql('CREATE SCHEMA "odd ""schema"; CREATE TABLE "odd ""schema"."a; DROP TABLE plain; --"("the ""geom" '
                   'geometry(Polygon, 3857), "na""me" text); INSERT INTO "odd ""schema"."a; DROP TABLE plain; --" '
                   "SELECT geom, 'x' FROM plain")
        server.sql("""CREATE TABLE bent(id int, geom geometry(CurvePolygon, 3857)); INSERT INTO bent VALUES (1, ST_GeomFromText(
          'CURVEPOLYGON(COMPOUNDCURVE(CIRCULARSTRING(100 500, 500 900, 900 500), (900 500, 500 100, 100 500)),
           CIRCULARSTRING(400 500, 600 500, 400 500))', 3857));
          CREATE TABLE flat AS SELECT i AS id, ST_MakeEnvelope(x - w, y - h, x + w, y + h, 4326)::geometry(Polygon, 4326) AS geom FROM
            (SELECT i, (i * 37 % 34) * 10.0 - 165 AS x, (i * 53 % 33) * 5.0 - 80 AS y, i % 7 * 0.5 + 0.1 AS w, i % 5 * 0.4 + 0.1 AS h
             FROM generate_series(1, 600) i) t;
          CREATE TABLE round AS SELECT id, geom::geography AS geom FROM flat; CREATE INDEX ON round USING gist(geom); ANALYZE round;
          CREATE TABLE pile AS SELECT i AS id, (ARRAY['wood', 'lake', 'heath'])[i % 3 + 1] AS kind, ST_Buffer(ST_SetSRID(ST_MakePoint(
            i * 7919 % 1000, i * 104729 % 997), 3857), 5 + i % 37, 3)::geometry(Polygon, 3857) AS geom FROM generate_series(1, 3000) i;
          CREATE INDEX ON pile USING gist(geom); ANALYZE pile;
          CREATE TABLE heap(LIKE pile, pad text); ALTER TABLE heap ALTER pad SET STORAGE PLAIN; INSERT INTO heap SELECT *, repeat('x', 1900) FROM pile; CREATE INDEX ON heap USING gist(geom);
          CREATE TABLE parts(LIKE pile) PARTITION BY LIST (kind); CREATE TABLE lakes PARTITION OF parts FOR VALUES IN ('lake', 'wood');
          CREATE TABLE others PARTITION OF parts DEFAULT; INSERT INTO parts SELECT * FROM pile; CREATE INDEX ON parts USING gist(geom);
          CREATE TABLE parent(LIKE pile); CREATE TABLE child() INHERITS (parent); INSERT INTO parent SELECT * FROM pile WHERE kind <> 'heath';
          INSERT INTO child SELECT * FROM pile WHERE kind = 'heath'; CREATE INDEX ON parent USING gist(geom); CREATE INDEX ON child USING gist(geom);
          CREATE TABLE ranked AS SELECT * FROM pile ORDER BY id * 7919 % 3001; CREATE INDEX ON ranked USING gist(geom); ANALYZE ranked;
          CREATE TABLE told(id int, kind text, geom geometry(Polygon, 900913)); INSERT INTO told SELECT id, kind, ST_SetSRID(geom, 900913) FROM pile;
          CREATE TABLE free AS SELECT geom::geometry AS geom FROM plain; CREATE INDEX ON told USING gist(geom); ANALYZE told;
          CREATE TABLE straight AS SELECT id, ST_CurveToLine(geom, 512)::geometry(Polygon, 3857) AS geom FROM bent;
          CREATE TABLE arcs(id int, geom geometry(Geometry, 3857)); INSERT INTO arcs VALUES
          (1, ST_GeomFromText('CIRCULARSTRING(100 500, 200 600, 300 500, 400 400, 500 500)', 3857)),
          (2, ST_GeomFromText('MULTICURVE((0 0, 500 300), CIRCULARSTRING(500 100, 900 500, 500 900))', 3857)),
          (3, ST_GeomFromText('COMPOUNDCURVE((0 900, 300 900), CIRCULARSTRING(300 900, 400 800, 300 700))', 3857));
          CREATE TABLE chords AS SELECT id, ST_CurveToLine(geom, 512) AS geom FROM arcs""")
        server.sql("""CREATE TABLE many(id int, kind text, size float8, at timestamptz, geom geometry(Polygon, 3857));
          INSERT INTO many SELECT i, CASE WHEN i % 2 = 0 THEN 'a' ELSE 'b' END, i, timestamptz '2020-01-01 00:00Z' + i * interval '1 hour',
            ST_MakeEnvelope(x, y, x + 6, y + 6, 3857) FROM (SELECT i, (i % 100) * 10 + 2 AS x, (i / 100) * 10 + 2 AS y
            FROM generate_series(0, 9999) i) t;
          CREATE INDEX ON many USING gist(geom); ANALYZE many""")
        server.sql("""CREATE TABLE counted(gid int, small smallint, middle int, large bigint, geom geometry(Polygon, 3857));
          INSERT INTO counted SELECT i, CASE WHEN i % 5 = 0 THEN -32768 END, CASE WHEN i % 5 = 1 THEN -2147483648 ELSE 0 END,
            CASE i % 5 WHEN 2 THEN -9223372036854775808 WHEN 3 THEN 9223372036854775807 ELSE i END, ST_MakeEnvelope(x, y, x + 9, y + 9, 3857)
            FROM (SELECT i, (i % 100) * 10 AS x, (i / 100) * 10 AS y FROM generate_series(0, 9999) i) t;
          CREATE INDEX ON counted USING gist(geom); ANALYZE counted""")
        server.sql("""CREATE TABLE aside(geom geometry(Point, 3857)); INSERT INTO aside SELECT ST_SetSRID(ST_MakePoint(0, i % 1000), 3857)
          FROM generate_series(1, 20000) i; INSERT INTO aside SELECT ST_SetSRID(ST_MakePoint(i % 961 + 40, i % 991), 3857)
          FROM generate_series(1, 3000) i; CREATE INDEX ON aside USING gist(geom); ANALYZE aside""")
        for name, (kind, shape) in PIECES.items():
            server.sql(f"""CREATE TABLE in_{name}(gid int, word text, long text, whole bigint, short smallint, geom geometry({kind}, 3857));
              INSERT INTO in_{name} SELECT i, (ARRAY['a', '', 'ÿ', NULL, E'\\\\xff'])[i % 5 + 1], CASE WHEN i % 900 = 0 THEN repeat(md5(i::text), 90) END,
                (ARRAY[-9223372036854775808, 9223372036854775807, NULL, -1, 0, 128])[i % 6 + 1], nullif(i % 7, 3),
                CASE WHEN i % 1000 = 999 THEN NULL WHEN i % 1000 = 998 THEN ST_SetSRID('{kind} EMPTY'::geometry, 3857) ELSE {shape} END
                FROM (SELECT i, (i * 37 % 100) * 10.0 AS x, (i * 7 / 100 % 100) * 10.0 AS y FROM generate_series(0, 9999) i) t;
              INSERT INTO in_{name} SELECT -1, 'outside', NULL, 1, 1, ST_Translate(geom, 950 - ST_XMin(geom), 0) FROM in_{name} WHERE gid = 2;
              CREATE INDEX ON in_{name} USING gist(geom); ANALYZE in_{name}""")
        server.sql(f"""CREATE TABLE huge(id int, geom geometry(Geometry, 3857)); ALTER TABLE huge ALTER geom SET STORAGE EXTERNAL;
          INSERT INTO huge SELECT id, geom FROM plain; CREATE INDEX ON huge USING gist(geom);
          INSERT INTO huge SELECT 1, ST_Segmentize(ST_SetSRID('LINESTRING(0 0, 1000 0, 1000 1000, 0 0)'::geometry, 3857), {3414 / 9e6})""")
        server.sql("""CREATE EXTENSION postgis_raster; CREATE TABLE pictured(id int, photo raster, kind text, geom geometry(Polygon, 3857),
          spot box2d); INSERT INTO pictured SELECT 1, ST_AddBand(ST_MakeEmptyRaster(4, 4, 0, 0, 1, -1, 0, 0, 3857), '8BUI'), 'a', geom, geom
          FROM plain""")
        server.sql(r"""CREATE TABLE looks(id int, geom geometry(Polygon, 3857), moment timestamp, zoned timestamptz, day date,
            wait interval, single real, double float8, exact numeric(30, 10), large bigint, bytes bytea, text text, fixed char(5),
            flag bool, list int[], doc jsonb, none text, address inet, unique_id uuid);
          INSERT INTO looks SELECT 7, geom, '2020-02-29 12:34:56.789012', '2020-02-29 12:34:56+02', '0044-03-15 BC', '1 year 2 days 03:04:05.6',
            0.1::real, 0.1::float8 + 0.2::float8, 12345678901234567890.0123456789, 9223372036854775807, '\x00ff10', E'line\nnext "q" <&> é 漢',
            'ab', true, '{1,NULL,3}', '{"a": [1, 2.50]}', NULL, '10.0.0.1/8', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11' FROM plain;
          INSERT INTO looks SELECT 8, ST_Translate(geom, 0, 450), 'infinity', '-infinity', 'infinity', '0', 'NaN', 'Infinity', 'NaN', 0, '', '',
            '', false, '{}', 'null', NULL, NULL, NULL FROM plain""")
        yield server


class PlainMaps(Maps):
    """What a layer that says nothing of it does ("auto") depends on how busy the machine is: here it is binary, so that maps and
    statements are the same each time."""

    def add(self, name, layer="", **options):
        super().add(name, layer if "<transfer>" in layer else f"{layer}<transfer>binary</transfer>", **options)


@pytest.fixture(scope="module")
def maps(database, build):
    with temporary_folder() as folder, PlainMaps(folder, build, database.connection()) as made:
        for name, rules in (("lines", LINES), ("odd", RULE.format(
                "<Filter><PropertyIsEqualTo><PropertyName>na\"me</PropertyName><Literal>x</Literal></PropertyIsEqualTo></Filter>"))):
            (folder / f"{name}.sld").write_text(SLD.format(rules=rules))
        (folder / "kinds.sld").write_text(SLD.format(rules="".join(
            '<Rule><Filter><PropertyIsEqualTo><PropertyName>kind</PropertyName><Literal>' + kind + '</Literal></PropertyIsEqualTo>'
            '</Filter><PolygonSymbolizer><Fill><CssParameter name="fill">' + fill + '</CssParameter>'
            '<CssParameter name="fill-opacity">0.7</CssParameter></Fill></PolygonSymbolizer></Rule>'
            for kind, fill in (("wood", "#80c080"), ("lake", "#8080f0"), ("heath", "#f0e080")))))
        for name in [*COLUMNS, "bent", "straight", "many", "kept", "huge"]:
            for transfer in ("binary", "hex", "twkb", "auto"):
                made.add(f"{name}_{transfer}", f"<table>{name}</table><transfer>{transfer}</transfer>")
        for name in ("arcs", "chords"):
            for transfer in ("binary", "twkb"):
                made.add(f"{name}_{transfer}", f"<table>{name}</table><transfer>{transfer}</transfer><style>{folder}/lines.sld</style>")
        (folder / "pieces.sld").write_text(SLD.format(rules="".join(
            f"""<Rule><Filter>{wanted}</Filter><PointSymbolizer><Graphic><Mark><WellKnownName>square</WellKnownName>
              <Fill><CssParameter name="fill">#{color}</CssParameter></Fill></Mark><Size>5</Size></Graphic></PointSymbolizer></Rule>"""
            for color, wanted in PIECE_RULES)))
        made.add("aside", "<table>aside</table>")
        for name in PIECES:
            for transfer in ("hex", "binary"):
                made.add(f"in_{name}_{transfer}", f"<table>in_{name}</table><id>gid</id><transfer>{transfer}</transfer><style>{folder}/pieces.sld</style>")
        (folder / "counted.sld").write_text(SLD.format(rules="".join(
            f'<Rule><Filter>{condition}</Filter><PolygonSymbolizer><Fill><CssParameter name="fill">{fill}</CssParameter></Fill>'
            '</PolygonSymbolizer></Rule>' for condition, fill in COUNTED)))
        made.add("counted", f"<table>counted</table><id>gid</id><transfer>binary</transfer><style>{folder}/counted.sld</style>")
        made.add("pictured", "<table>pictured</table><id>id</id>")
        for name in ("pile", "ranked", "heap", "parts", "parent"):
            made.add(name, f"<table>{name}</table><style>{folder}/kinds.sld</style>")
        made.add("heap_hex", f"<table>heap</table><transfer>hex</transfer><style>{folder}/kinds.sld</style>")
        for name, where in {"boxed": "WHERE geom &amp;&amp; !BBOX! ", "whole": ""}.items():
            made.add(f"ranked_{name}", f"<query>SELECT * FROM pile {where}ORDER BY id * 7919 % 3001</query><geometry>geom</geometry>"
                     f"<srid>3857</srid><style>{folder}/kinds.sld</style>")
        made.add("seen", "<table>seen</table>")
        for name in ("flat", "round"):
            made.add(name, f"<table>{name}</table><transfer>binary</transfer>")
        made.add("settled_wgs", "<table>settled</table><srid>4326</srid>")
        for transfer in ("binary", "twkb"):
            made.add(f"told_{transfer}", f"<table>told</table><srid>3857</srid><transfer>{transfer}</transfer><style>{folder}/kinds.sld</style>")
        made.add("free", "<table>free</table>")
        made.add("two", "<table>public.two</table><geometry>geom</geometry>")
        made.add("odd", '<table>odd "schema.a; DROP TABLE plain; --</table>' + f"<style>{folder}/odd.sld</style>")
        made.add("looks", "<table>looks</table><id>id</id>")
        for name, where in {"scale": "size &lt; !SCALE!", "pixel": "size * size &lt; !PIXEL! * 500", "text": "kind = !KIND!",
                            "number": "id = (!KIND!)::int", "boxed": "geom &amp;&amp; !BBOX! AND kind = 'a'", "session": "current_setting('jit') = 'off' AND pg_size_bytes(current_setting('work_mem')) >= 16777216",
                            "period": "at >= !TIME_START! AND at &lt; !TIME_END!", "whole": "!TIME! = '2020' OR '!KIND!' = !KIND!",
                            "wrong": "kind = !SIZE!"}.items():
            made.add(f"q_{name}", f"<query>SELECT * FROM many WHERE {where}</query><geometry>geom</geometry><srid>3857</srid><id>id</id>",
                     more=TIMES)
        for name in ("degrees", "plain"):
            made.add(f"{name}_local", f"<table>{name}</table><transfer>twkb</transfer>", grid="WGS84")
        yield made.serve()


def statements(database):
    """What the server was asked, in order."""
    return re.findall(r"(?:LOG:  execute \S+|LOG:  statement): (?:SET LOCAL enable_\w+=off;)*(.*)", database.log())


@pytest.mark.parametrize("name", [name for name in COLUMNS if name not in ("plain", "settled")])
def test_columns_of_all_kinds_show_the_same(maps, name):
    """800 x 400 units of a thousand, whatever holds them."""
    plain = maps.draw("plain_binary", BOX)
    assert 0.3 < covered(plain) < 0.35
    for transfer in ("binary", "hex", "twkb", "auto"):
        if name in ("mesh", "body", "pieces") and transfer != "binary":
            assert difference(maps.draw(f"{name}_{transfer}", BOX), maps.draw(f"{name}_binary", BOX)) < 0.002
        else:
            # the outlines of pieces, and of the diagonal of a mesh, are their own
            assert difference(maps.draw(f"{name}_{transfer}", BOX), plain) < (0.02 if name in ("mesh", "pieces") else 0.002), transfer


def test_the_same_through_every_cut_of_the_map(maps):
    numbers = random.Random(1)
    for _ in range(30):
        side = 10 ** numbers.uniform(0, 5)
        x, y = numbers.uniform(-side, 1000), numbers.uniform(-side, 1000)
        box = (x, y, x + side, y + side)
        plain = maps.draw("plain_binary", box, (100, 100))
        for name in ("plain_hex", "multi_binary", "generic_binary", "kept_binary", "seen", "two"):
            assert numpy.array_equal(maps.draw(name, box, (100, 100)), plain), (name, box)
        for name in ("degrees_binary", "globe_binary", "globe_twkb", "plain_twkb"):
            assert difference(maps.draw(name, box, (100, 100)), plain) < 0.003, (name, box)


@pytest.mark.parametrize(["name", "side", "parts"], [("pile", 4000, 12), ("parts", 1000, 4), ("parent", 1000, 4)])
def test_features_lie_over_each_other_in_the_same_order_in_every_map(maps, name, side, parts):
    """Whatever way the database takes to the rows: of the whole table, of a part, of a few. Partitions come one after the other."""
    whole = maps.draw(name, BOX, (side, side))
    for size in (side // 4, side // 16, side // 40, side // 200):
        numbers = random.Random(size)
        for _ in range(parts):
            x, y = numbers.randrange(0, side - size + 1), numbers.randrange(0, side - size + 1)
            box = tuple(place * 1000 / side for place in (x, side - y - size, x + size, side - y))
            part = maps.draw(name, box, (size, size))
            assert numpy.array_equal(part[2:-2, 2:-2], whole[y + 2:y + size - 2, x + 2:x + size - 2]), box


def test_features_lie_in_the_order_of_the_table_whatever_the_database_would_like(maps, database):
    """Without statistics the database would take the rows from the index, by several workers, and begin to read a table of a quarter of its
    memory or more where another reader is."""
    part = (100.0, 100.0, 900.0, 900.0)
    box = "geom && ST_MakeEnvelope(100, 100, 900, 900, 3857)"
    first, second = (str(database.sql(f"EXPLAIN SELECT * FROM heap {where}")) for where in (f"WHERE {box}", ""))
    assert "Index Scan" in first and "Bitmap" not in first and "Gather" in second, (first, second)
    for name, where in (("heap", part), ("heap_hex", BOX)):
        for _ in range(2):  # the second map knows that there are many rows
            before = len(statements(database))
            assert numpy.array_equal(maps.draw(name, where, (500, 500)), maps.draw("pile", where, (500, 500))), name
        assert any(text.startswith("COPY (SELECT") and "heap" in text for text in statements(database)[before:]), name
    assert database.sql("SET max_parallel_workers_per_gather = 0; DO $$ DECLARE half CURSOR FOR SELECT id FROM heap; BEGIN OPEN half; MOVE 2000 "
                        "IN half; END $$; SELECT id FROM heap LIMIT 1") != ["1"]
    assert numpy.array_equal(maps.draw("heap_hex", BOX, (500, 500)), maps.draw("pile", BOX, (500, 500)))


@pytest.mark.parametrize("name", ["ranked_boxed", "ranked_whole"])
def test_the_order_of_a_query_is_that_of_the_map(maps, name):
    """ORDER BY in <query>, of few rows and of many that come through COPY, although the server likes to read by several workers."""
    assert difference(maps.draw("ranked", BOX, (500, 500)), maps.draw("pile", BOX, (500, 500))) > 0.01
    for box in (BOX, (200.0, 200.0, 700.0, 700.0), (400.0, 400.0, 480.0, 480.0)):
        assert numpy.array_equal(maps.draw(name, box, (500, 500)), maps.draw("ranked", box, (500, 500))), box


def test_a_geography_is_found_from_the_whole_world_and_from_close(maps):
    numbers = random.Random(9)
    for degrees in (0.1, 1, 5, 20, 40, 59, 61, 100, 179, 360):
        for _ in range(4):
            side = math.radians(degrees) * 6378137
            x, y = (numbers.uniform(-2e7, max(2e7 - side, -1.9e7)) for _ in range(2))
            box = (x, y, x + side, y + side)
            flat = maps.draw("flat", box, (300, 300))
            assert numpy.array_equal(maps.draw("round", box, (300, 300)), flat), box
    assert covered(maps.draw("flat", WORLD)) > 0.05


def test_rows_of_another_srid_than_the_layers_are_left_out(maps):
    one = maps.draw("settled_binary", BOX)
    assert difference(one, maps.draw("plain_binary", BOX)) < 0.002
    for transfer in ("hex", "twkb", "auto"):
        assert difference(maps.draw(f"settled_{transfer}", BOX), one) < 0.002
    assert "SRID" in maps.server.log()
    # <srid> says which rows are meant: now those in degrees, which begin at 0, 0
    whole = maps.draw("settled_wgs", (-1e7, -1e7, 1e7, 1e7))
    assert whole[70, 130, 3] == 255 and not whole[150, 50].any()


def test_a_layer_may_say_another_srid_than_the_column_declares(maps, database):
    """900913 is what 3857 was called once. The whole table, the half of it, a few rows; also when the column declares yet another one."""
    boxes = (-50.0, -50.0, 1050.0, 1050.0), (0.0, 500.0, 1000.0, 1000.0), (480.0, 480.0, 520.0, 520.0)
    wanted = {box: maps.draw("pile", box) for box in boxes}
    before = len(statements(database))
    for declared in (900913, 3785):
        for name, box in [(f"told_{transfer}", box) for transfer in ("binary", "twkb") for box in boxes] * 2:
            assert difference(maps.draw(name, box), wanted[box]) < 0.003, (name, box, declared)
        database.sql("SELECT UpdateGeometrySRID('told', 'geom', 3785)")
    assert any("string_agg" in text and "told" in text for text in statements(database)[before:])


def test_maps_of_nothing_ask_for_the_srid_of_a_row_now_and_then(maps, database):
    """The column declares none. Where rows have got another one, the first map that shows nothing finds out."""
    plain = maps.draw("plain_binary", BOX)
    assert difference(maps.draw("free", BOX), plain) < 0.003
    database.sql("UPDATE free SET geom = ST_Transform(geom, 4326)")
    before = len(statements(database))
    assert difference(maps.draw("free", BOX), plain) < 0.003
    for _ in range(30):
        assert not maps.draw("free", (5000.0, 5000.0, 6000.0, 6000.0), (16, 16)).any()
    asked = [text for text in statements(database)[before:] if "ST_SRID" in text and 'FROM "free" WHERE' in text]
    assert 1 <= len(asked) < 15, asked


@pytest.mark.parametrize("transfer", ["binary", "hex", "twkb"])
def test_one_enormous_geometry_is_left_out(maps, transfer):
    """144 MB of it: the others are drawn, and the log says what is missing."""
    assert numpy.array_equal(maps.draw(f"huge_{transfer}", BOX), maps.draw(f"plain_{transfer}", BOX))
    assert "its geometry has more than 128 MB" in maps.server.log()


def test_curves_are_stroked(maps):
    straight = maps.draw("straight_binary", BOX, (600, 600))
    assert 0.3 < covered(straight) < 0.6
    for transfer in ("binary", "hex", "twkb", "auto"):
        assert difference(maps.draw(f"bent_{transfer}", BOX, (600, 600)), straight) < 0.001
    for transfer in ("binary", "twkb"):
        lines = maps.draw(f"arcs_{transfer}", BOX, (600, 600))
        assert lines.any() and difference(lines, maps.draw("chords_binary", BOX, (600, 600))) < 0.002
    far = maps.draw("bent_binary", (499.0, 897.0, 501.0, 899.0), (400, 400))  # an arc's top, from very near
    assert 0.3 < covered(far) < 1.01


def test_hostile_names_are_only_names(maps, database):
    assert numpy.array_equal(maps.draw("odd", BOX)[120:150, 60:90, :3].reshape(-1, 3), [[0xC0, 0x40, 0x20]] * 900)
    assert database.sql("SELECT count(*) FROM plain") == ["1"]


def test_placeholders_are_values_of_the_map(maps):
    everything = covered(maps.draw("many_binary", BOX, (500, 500)))
    assert everything > 0.3
    # 2 units a pixel: scale 1:7142.86; sizes go from 0 to 9999 with the rows of squares
    assert abs(covered(maps.draw("q_scale", BOX, (500, 500))) / everything - 0.714286) < 0.01
    # size^2 < pixel * 500: up to 31 of the first row
    assert abs(covered(maps.draw("q_pixel", BOX, (500, 500))) / everything - 32 / 10000) < 0.0005
    half = maps.draw("q_text", BOX, (500, 500), more="&DIM_KIND=a")
    assert abs(covered(half) / everything - 0.5) < 0.01
    assert numpy.array_equal(maps.draw("q_boxed", BOX, (500, 500)), half)
    assert covered(maps.draw("q_whole", BOX, (500, 500), more="&DIM_KIND=!KIND!&TIME=1999")) > 0.9 * everything
    assert not maps.draw("q_whole", BOX, (500, 500), more="&TIME=1999").any()


@pytest.mark.parametrize("value, hours", [
    ("2020-01-01", 24), ("2020-01", 744), ("2020-01-02T03Z", 1), ("2020-01-01/2020-01-02", 48), ("2020-01-01T00:00:00Z/P3D", 72),
    ("2019", 0), ("2020-01-01T00:30:00Z/2020-01-01T02:30:00Z", 2), ("2020-01-01T02:00:00%2B02:00/PT5H", 5)])
def test_times_of_dimensions_are_periods(maps, value, hours):
    shown = maps.draw("q_period", BOX, (1000, 1000), more=f"&TIME={value}")
    one = covered(maps.draw("q_period", BOX, (1000, 1000), more="&TIME=2020-01-02T03Z"))
    assert round(covered(shown) / one) == hours


@pytest.mark.parametrize("value", ["yesterday", "2020-13", "'; DROP TABLE many; --", "2020-01-01/", "2020,2021"])
def test_values_that_are_no_times_are_the_clients_fault(maps, database, value):
    reply = maps.reply("q_period", BOX, more=f"&TIME={value}")
    assert reply.status == 400 and b"InvalidDimensionValue" in reply.body, reply.body
    assert database.sql("SELECT count(*) FROM many") == ["10000"]


@pytest.mark.parametrize("value", ["a' OR '1'='1", "'; DELETE FROM many; --", "$1", "a\\'", "%C3%A9%E6%BC%A2", "!KIND!", "NULL",
                                   "a" * 3000, "%25", "a%00b", "%FF"])
def test_hostile_values_are_only_values(maps, database, value):
    value = value.replace(" ", "%20").replace("'", "%27").replace(";", "%3B").replace("\\", "%5C")
    for layer in ("q_text", "q_number"):
        reply = maps.reply(layer, BOX, more=f"&DIM_KIND={value}")
        assert reply.status in (200, 400), (layer, reply.body)
        if layer == "q_number":
            code = b"InvalidParameterValue" if "%00" in value else b"InvalidDimensionValue"
            assert reply.status == 400 and code in reply.body and b"22P02" not in reply.body
    assert database.sql("SELECT count(*) FROM many") == ["10000"]


def test_a_placeholder_that_means_nothing_is_named(maps):
    reply = maps.reply("q_wrong", BOX)
    assert reply.status >= 500 and "!SIZE!" in maps.server.log()


def test_many_rows_go_through_copy_and_few_do_not(maps, database):
    maps.draw("many_binary", BOX)
    before = len(statements(database))
    whole = maps.draw("many_binary", BOX)
    copied = statements(database)[before:]
    assert len(copied) == 1 and copied[0].startswith("COPY (SELECT"), copied
    assert numpy.array_equal(whole, maps.draw("many_hex", BOX))
    before = len(statements(database))
    maps.draw("many_binary", (0.0, 0.0, 100.0, 100.0))
    assert not any(text.startswith("COPY") for text in statements(database)[before:])
    maps.draw("q_text", BOX)
    before = len(statements(database))
    maps.draw("q_text", BOX)  # what a client says is never in the text of a statement
    assert all("COPY" not in text and "'a'" not in text for text in statements(database)[before:])


def test_whole_numbers_of_many_rows_are_the_same_numbers(maps, database):
    """Many rows bring them as eight bytes, few as text; and the feature's own number where a rule asks for it."""
    few = maps.draw("counted", (0.0, 0.0, 100.0, 10.0), (100, 10))
    before = len(statements(database))
    maps.draw("counted", BOX)
    many = maps.draw("counted", BOX, (1000, 1000))
    asked = statements(database)[before:]
    assert asked[-1].startswith("COPY (SELECT") and asked[-1].count("int8send") == 4, asked
    assert numpy.array_equal(few, many[990:, :100])
    part = maps.draw("counted", (0.0, 0.0, 1000.0, 500.0), (1000, 500))
    asked = statements(database)[before:]
    assert asked[-1].startswith("COPY (SELECT") and "int8send" not in asked[-1] and asked[-1].count("::int8") == 4, asked
    assert numpy.array_equal(part, many[500:])
    seen = [tuple(many[995, 10 * i + 5, :3]) for i in range(10)]
    colors = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0)]
    assert seen == colors + [(0, 255, 255)] + colors + [(255, 0, 255)], seen


@pytest.mark.parametrize("name", PIECES)
def test_a_whole_table_comes_in_pieces(maps, database, name):
    """Many features in one value: the same map as of rows one by one, of the whole table, nearly all and half of it. Of binary transfer
    alone, which a busy database can keep automatic transfer from choosing."""
    for box, together in (((-20.0, -20.0, 1020.0, 1020.0), True), ((-20.0, -20.0, 940.0, 1020.0), True), ((-20.0, -20.0, 500.0, 1020.0), False)):
        size = (round(box[2] - box[0]), 1040)
        maps.draw(f"in_{name}_binary", box, size)
        before = len(statements(database))
        found = maps.draw(f"in_{name}_binary", box, size)
        text = statements(database)[before:][-1]
        assert text.startswith("COPY") and ("string_agg" in text) == together and ("&&" in text) != together, text
        assert numpy.array_equal(found, maps.draw(f"in_{name}_hex", box, size)), box
        colors = {"%02x%02x%02x" % tuple(c) for c in numpy.unique(found[found[..., 3] == 255][:, :3], axis=0)}
        beside = {"808000"} if box[2] < 950 else set()
        assert {color for color, _ in PIECE_RULES} - beside <= colors, (colors, box)


def test_a_map_that_leaves_most_rows_to_the_side_reads_few(maps, database):
    """However much of the table's bounds it holds."""
    draw = (lambda: maps.draw("aside", (20.0, -20.0, 1020.0, 1020.0), (1000, 1040)))
    first = draw()
    before = len(statements(database))
    assert numpy.array_equal(first, draw())
    text = statements(database)[before:][-1]
    assert text.startswith("COPY") and "&&" in text, text


def test_no_plan_is_compiled(maps):
    """Of a large table that takes longer than reading it."""
    assert numpy.array_equal(maps.draw("q_session", BOX), maps.draw("many_binary", BOX))


def test_a_map_of_a_whole_table_compares_no_boxes(maps, database):
    """Rows that have come since the layer's bounds were asked for are beside the map, and harmless."""
    def asked(box):
        before = len(statements(database))
        return maps.draw("many_binary", box), [text for text in statements(database)[before:] if "pg_attribute" not in text][-1]
    whole, text = asked((-10.0, -10.0, 1010.0, 1010.0))
    assert "many" in text and "&&" not in text, text
    database.sql("INSERT INTO many SELECT -1, 'a', 0, NULL, ST_MakeEnvelope(2000, 500, 3000, 600, 3857)")
    again, text = asked((-10.0, -10.0, 1010.0, 1010.0))
    database.sql("DELETE FROM many WHERE id = -1")
    assert numpy.array_equal(whole, again)
    assert "&&" in asked((0.0, 0.0, 1000.0, 600.0))[1]


@pytest.mark.parametrize("srs, table", [("EPSG:3857", "plain"), ("EPSG:4326", "degrees"), ("EPSG:3857", "degrees"), ("EPSG:4326", "plain")])
def test_packed_coordinates_are_less_than_half_a_pixel_off(maps, database, srs, table):
    """The digits that maps of any scale ask for, against what they do to random geometry of those scales."""
    numbers = random.Random(4)
    asked = 0
    for _ in range(25):
        side = 10 ** numbers.uniform(-1, 7) / (111319.5 if srs == "EPSG:4326" else 1)
        width, height = numbers.randint(20, 900), numbers.randint(20, 900)
        box = (0.0, 0.0, side, side)
        pixel = min(side / width, side / height)  # in units of the map; then of the layer, where they are the smallest
        if (srs, table) == ("EPSG:3857", "degrees"):
            pixel *= math.degrees(1 / math.cosh(side / 6378137)) / 6378137
        elif (srs, table) == ("EPSG:4326", "plain"):
            pixel *= math.radians(1) * 6378137
        before = len(statements(database))
        maps.draw(f"{table}_twkb" if srs == "EPSG:3857" else f"{table}_local", box, (width, height), srs=srs)
        found = re.findall(r"ST_AsTWKB\(\(CASE .*? END\),(-?\d+)\)", " ".join(statements(database)[before:]))
        if not found:
            continue
        asked += 1
        digits, reach = int(found[-1]), pixel * max(width, height)
        off = float(database.sql(f"""WITH random AS (SELECT ST_MakeLine(ARRAY(SELECT ST_MakePoint(random() * {reach}, random() * {reach})
            FROM generate_series(1, 200))) AS g), packed AS (SELECT g, ST_GeomFromTWKB(ST_AsTWKB(g, {digits})) AS p FROM random)
            SELECT max(ST_Distance(ST_PointN(g, i), p)) FROM packed, generate_series(1, 200) i""")[0])
        assert off < pixel / 2, (digits, pixel, off)
    assert asked >= 10


def test_values_look_as_psql_shows_them(maps, database):
    names = ["moment", "zoned", "day", "wait", "single", "double", "exact", "large", "bytes", "text", "list", "doc", "none", "unique_id"]
    for number, point in ((7, (100, 140)), (8, (100, 50))):
        properties = json.loads(maps.info("looks", BOX, (200, 200), point).body, parse_float=str, parse_int=str)["features"]
        assert [feature["id"] for feature in properties] == [f"looks.{number}"]
        for name in names:
            shown = properties[0]["properties"][name]
            wanted = "\n".join(database.sql(f"SELECT {name} FROM looks WHERE id = {number}"))
            assert (wanted == "" if shown is None else shown == wanted), name
        assert properties[0]["properties"]["none"] is None


def test_rasters_and_boxes_beside_the_geometry_are_no_attributes(maps):
    assert numpy.array_equal(maps.draw("pictured", BOX), maps.draw("plain_binary", BOX))
    found = json.loads(maps.info("pictured", BOX, (200, 200), (100, 140)).body)["features"]
    assert [(feature["id"], feature["properties"]) for feature in found] == [("pictured.1", {"id": 1, "kind": "a"})]


def test_bytes_are_counted_for_each_map(maps, database):
    maps.draw("plain_binary", BOX)  # asks for the column, too, which then is known for ten seconds
    before = maps.counter("postgres_bytes_total"), maps.counter("vector_maps_total")
    maps.draw("plain_binary", BOX)
    size = int(database.sql("SELECT sum(length(ST_AsEWKB(geom))) FROM plain")[0])
    assert maps.counter("postgres_bytes_total") - before[0] == 1 + 4 + 2 + 4 + size
    assert maps.counter("vector_maps_total") - before[1] == 1
    maps.draw("plain_hex", BOX)
    assert maps.counter("postgres_bytes_total") - before[0] > 2 * size

"""Vector tiles that functions of the database make, beside layers of tables and files in the same tile; what functions do that they should not."""
import gzip
import json
import subprocess

import pytest
from conftest import GRID
from patience import patience
from postgres import Postgres
from test_vector_tiles import EXTENT, HALF, decode, get

# A point in the middle of each tile, whose attributes say what the function was given.
POINT = """(SELECT coalesce(ST_AsMVT(q, '{name}', 4096, 'geom'), '') FROM (SELECT ST_Point(2048, 2048) AS geom, z, x, y, {more}) q)"""

FUNCTIONS = {
    "plain": ("z integer, x integer, y integer", "bytea", POINT.format(name="plain", more="1 AS one")),
    "whole": ("z bigint, x bigint, y bigint", "TABLE(mvt bytea, key text)",
              POINT.format(name="whole", more="1 AS one") + ", 'key'"),
    "asked": ("z integer, x integer, y integer, query json", "bytea", POINT.format(name="asked", more="query->>'least' AS least, query::text AS all")),
    "named": ('z integer, x integer, y integer, "Some ""name" text DEFAULT \'none\', "LEAST" integer DEFAULT 7', "bytea",
              POINT.format(name="named", more='"LEAST" AS least, "Some ""name" AS other')),
    "several": ("z integer, x integer, y integer", "SETOF bytea",
                f"unnest(ARRAY[{POINT.format(name='first', more='1 AS one')}, NULL, '', {POINT.format(name='second', more='2 AS two')}])"),
    "nothing": ("z integer, x integer, y integer", "bytea", "NULL::bytea"),
    "lacking": ("z integer, x integer, y integer, wanted text", "bytea", "''::bytea"),
    "failing": ("z integer, x integer, y integer", "bytea", "convert_to((1 / (z - z))::text, 'UTF8')"),
    "large": ("z integer, x integer, y integer", "bytea", "decode(repeat('1a', 9000000), 'hex')"),
    "cut": ("z integer, x integer, y integer", "bytea", "substr(" + POINT.format(name="cut", more="1 AS one") + ", 1, 20)"),
    "text": ("z integer, x integer, y integer", "bytea", "'<html>no tile</html>'::bytea"),
    "points": ("z integer, x integer, y integer", "bytea", POINT.format(name="points", more="1 AS one")),
    "sleepy": ("z integer, x integer, y integer", "bytea", "(SELECT ''::bytea FROM pg_sleep(20))"),
    'odd "name': ("z integer, x integer, y integer", "bytea", POINT.format(name="odd", more="1 AS one")),
    "wrong": ("z text, x integer, y integer", "bytea", "''::bytea"),
    "number": ("z integer, x integer, y integer", "integer", "1"),
}

COMMENT = {"vector_layers": [{"id": "plain", "fields": {"one": "Number"}, "minzoom": 1, "maxzoom": 9}, {"id": "more", "fields": {"text": "String"}}]}


@pytest.fixture(scope="module")
def database():
    with Postgres() as server:
        server.sql("CREATE EXTENSION postgis; CREATE SCHEMA tiles; CREATE TABLE points(gid int PRIMARY KEY, name text, geom geometry(Point, 3857))")
        server.sql("INSERT INTO points SELECT i, 'n' || i, ST_SetSRID(ST_Point(i * 1000, 500), 3857) FROM generate_series(1, 50) i")
        server.sql("CREATE TABLE calls(z int, x int, y int)")
        for name, (arguments, result, body) in FUNCTIONS.items():
            quoted = name.replace('"', '""')
            server.sql(f"""CREATE FUNCTION tiles."{quoted}"({arguments}) RETURNS {result} LANGUAGE sql STABLE AS $$SELECT {body}$$""")
        server.sql("CREATE FUNCTION tiles.twice(z int, x int, y int) RETURNS bytea LANGUAGE sql AS $$SELECT ''::bytea$$;"
                   "CREATE FUNCTION tiles.twice(z int, x int, y int, q json) RETURNS bytea LANGUAGE sql AS $$SELECT ''::bytea$$;"
                   "CREATE FUNCTION tiles.counted(z int, x int, y int) RETURNS bytea LANGUAGE plpgsql AS "
                   "$$BEGIN INSERT INTO calls VALUES (z, x, y); RETURN ''::bytea; END$$")
        server.sql(f"COMMENT ON FUNCTION tiles.plain IS '{json.dumps(COMMENT)}'")
        yield server


def source(name, *layers):
    return f'<source name="{name}" type="postgis">{"".join(layers)}</source>'


def layer(database, function, more="", name=None):
    escaped = function.replace('"', "&quot;")
    return (f'<layer name="{name or escaped}"><connection>{database.connection()}</connection>'
            f"<function>tiles.{escaped}</function>{more}</layer>")


def tileset(name, form="mvt", more=""):
    escaped = name.replace('"', "")
    return (f'<tileset name="{escaped}"><source>{escaped}</source><cache>disk</cache><grid>{GRID}</grid><format>{form}</format>{more}</tileset>')


LEAST = ('<dimensions><dimension type="regex" name="least" default="5"><regex>^.*$</regex></dimension>'
         '<dimension type="regex" name="odd" default="a&quot;b"><regex>^.*$</regex></dimension></dimensions>')
WRONG = ["wrong", "number", "twice", "missing"]


@pytest.fixture(scope="module")
def config(shared_folder, database):
    cache = shared_folder / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    (shared_folder / "areas.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [
        {"type": "Feature", "properties": {"name": "all"}, "geometry": {"type": "Polygon", "coordinates": [[[-80, -60], [80, -60], [80, 60], [-80, 60], [-80, -60]]]}}]}))
    singles = [*FUNCTIONS, "counted", "later", *WRONG[2:]]
    sources = "".join(source(name.replace('"', ""), layer(database, name)) for name in singles)
    table = f'<layer name="points"><connection>{database.connection()}</connection><table>points</table><id>gid</id></layer>'
    sources += f'<source name="areas" type="ogr"><layer name="areas"><data>{shared_folder}/areas.geojson</data></layer></source>'
    sources += source("all", table, layer(database, "plain", "<minzoom>2</minzoom>"), layer(database, "asked"), '<layer name="areas" of="areas"/>')
    sources += source("clash", table, layer(database, "points", name="other"))
    special = {"asked": LEAST, "named": LEAST, "all": LEAST, "counted": "<metatile>4 2</metatile>"}
    tilesets = "".join(tileset(name, "slow" if name == "sleepy" else "mvt", special.get(name, "")) for name in [*singles, "all", "clash"])
    tilesets += tileset("all", "mvt", LEAST + "<metatile>3 2</metatile>").replace('name="all"', 'name="all-meta"')
    path = shared_folder / "functions.xml"
    path.write_text(f"""<mapcache><cache name="disk" type="disk"><base>{cache}</base></cache>
      <format name="mvt" type="MVT"/><format name="slow" type="MVT"><max_time>0.3</max_time></format>
      {sources}{tilesets}
      <service type="gmaps" enabled="true"/><service type="wmts" enabled="true"/>
      <service type="wms" enabled="true"><full_wms>forward</full_wms></service>
      <locker type="disk"><directory>{cache}</directory></locker></mapcache>""")
    return path


@pytest.fixture(scope="module")
def web(config, shared_apache):
    return shared_apache("functions", f"MapCacheAlias /mc {config}\n")


def tile(web, name, z=3, x=4, y=2):
    return decode(gzip.decompress(get(web, name, z, x, y).body))


def attributes(web, name, of=None, **where):
    rows = tile(web, name, **where)[of or name.partition("[")[0]]
    assert len(rows) == 1 and (rows[0][2].GetX(), rows[0][2].GetY()) == (EXTENT / 2, EXTENT / 2)
    return rows[0][1]


def test_level_column_and_row_of_the_tile(web):
    for name in ("plain", "whole"):
        assert attributes(web, name) == {"z": 3, "x": 4, "y": 2, "one": 1}
        assert attributes(web, name, z=0, x=0, y=0) == {"z": 0, "x": 0, "y": 0, "one": 1}
    assert attributes(web, "odd%20name", "odd")["y"] == 2
    assert set(tile(web, "several")) == {"first", "second"}
    assert tile(web, "nothing") == {}


def test_dimensions_are_arguments(web, config):
    assert attributes(web, "asked")["least"] == "5"
    assert json.loads(attributes(web, "asked[least=it's \"; DROP TABLE points; --]".replace(" ", "%20"))["all"]) == {
        "least": "it's \"; DROP TABLE points; --", "odd": 'a"b'}
    assert attributes(web, "named") == {"z": 3, "x": 4, "y": 2, "least": 5, "other": "none"}
    assert attributes(web, "named[least=12]")["least"] == 12
    get(web, "named[least=many]", 3, 4, 2, status=400)
    get(web, "lacking", 3, 4, 2, status=500)
    assert 'argument "wanted" of function "tiles.lacking" has no default' in (config.parent / "functions" / "error.log").read_text()


def test_layers_of_tables_files_and_functions_in_one_tile(web):
    found = tile(web, "all", z=1, x=1, y=0)
    assert set(found) == {"points", "areas", "asked"} and len(found["points"]) == 50
    found = tile(web, "all", z=2, x=2, y=1)
    assert set(found) == {"points", "areas", "asked", "plain"}
    assert found["points"][0][1]["name"] == "n1" and found["areas"][0][1]["name"] == "all" and found["plain"][0][1]["z"] == 2
    for x, y in ((0, 0), (2, 1), (3, 3)):
        assert gzip.decompress(get(web, "all-meta", 2, x, y).body) == gzip.decompress(get(web, "all", 2, x, y).body)


def test_a_metatile_asks_once_for_each_tile(web, database):
    assert tile(web, "counted", z=3, x=4, y=2) == {}
    assert database.sql("SELECT count(*), count(DISTINCT (z, x, y)), min(x), max(x), min(y), max(y), min(z) FROM calls") == ["8|8|4|7|2|3|3"]


@pytest.mark.parametrize("name, status, message", [
    ("failing", 502, b"cannot be had from function"), ("large", 502, b"cannot be had"), ("cut", 502, b"cannot be had"),
    ("text", 502, b"cannot be had"), ("clash", 502, b"two layers"), ("sleepy", 503, b"budget of time"), *((name, 502, b"cannot be had") for name in WRONG)])
def test_what_functions_should_not_do(web, config, name, status, message):
    where = (8, 128, 127) if name == "clash" else (3, 4, 2)
    assert message in get(web, name, *where, status=status).body
    get(web, name, *where, status=status)  # nothing has been stored
    log = (config.parent / "functions" / "error.log").read_text()
    told = {"large": "9000000 bytes", "cut": "no message of protocol buffers", "text": "no message of protocol buffers",
            "twice": "more than one function", "missing": "no function", "wrong": "no function", "number": "no function"}
    assert told.get(name, "") in log


def test_a_function_that_is_replaced(web, database):
    def body(name):
        return "SELECT " + POINT.format(name="changing", more=name)

    database.sql(f"CREATE FUNCTION tiles.later(z int, x int, y int) RETURNS bytea LANGUAGE sql AS $${body('1 AS one')}$$")
    assert attributes(web, "later", "changing", z=4, x=0, y=0)["one"] == 1
    database.sql(f"DROP FUNCTION tiles.later; CREATE FUNCTION tiles.later(z int, x int, y int, q jsonb) RETURNS bytea LANGUAGE sql AS $${body('2 AS two')}$$")
    assert attributes(web, "later", "changing", z=4, x=0, y=1)["two"] == 2


def test_documents(web):
    layers = {layer["id"]: layer for layer in json.loads(web.get("/mc/gmaps/all.json").body)["vector_layers"]}
    assert set(layers) == {"points", "plain", "more", "asked", "areas"}
    assert layers["plain"]["fields"] == {"one": "Number"} and layers["plain"]["minzoom"] == 2 and layers["plain"]["maxzoom"] == 9
    assert layers["more"]["fields"] == {"text": "String"} and layers["asked"]["fields"] == {}
    assert b"<Name>all</Name>" not in web.get("/mc/?SERVICE=WMS&REQUEST=GetCapabilities").body


@pytest.mark.parametrize("inside, form, message", [
    ("<function>f</function>", "PNG", "draws no maps"), ("<function>f</function><table>t</table>", "mvt", "or a &lt;function&gt;"),
    ("<function>f</function><style>/none.sld</style>", "mvt", "has no effect")])
def test_what_cannot_be(build, folder, inside, form, message):
    path = folder / "refused.xml"
    path.write_text(f"""<mapcache><cache name="disk" type="disk"><base>{folder}</base></cache><format name="mvt" type="MVT"/>
      <source name="t" type="postgis"><layer name="a"><connection>host={folder} dbname=none</connection>{inside}</layer></source>
      {tileset("t", form)}<service type="gmaps" enabled="true"/></mapcache>""")
    done = subprocess.run([build / "bin/mapcache", "check", path], capture_output=True, text=True, timeout=patience(60))
    assert message.replace("&lt;", "<").replace("&gt;", ">") in done.stdout + done.stderr, done.stdout + done.stderr


def test_the_check_asks_for_the_function(build, config):
    done = subprocess.run([build / "bin/mapcache", "check", "--connect", config], capture_output=True, text=True, timeout=patience(60))
    found = done.stdout + done.stderr
    for name in WRONG:
        assert f'layer "{name}": ' in found, found
    assert 'layer "plain"' not in found

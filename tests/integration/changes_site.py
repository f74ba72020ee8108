"""A site whose tiles show tables of PostGIS that change: squares with a colour, drawn by mapcache.fcgi with <changes>."""
import contextlib
import math
import os
import subprocess
from xml.sax.saxutils import escape

import pytest
from conftest import SOON, sanitizer_environment, wait_until
from fastcgi import Server
from patience import patience
from postgres import Postgres

PLACE = (10.1, 46.1)
HALF = 20037508.342789244
STYLE = """<StyledLayerDescriptor version="1.0.0" xmlns="http://www.opengis.net/sld" xmlns:ogc="http://www.opengis.net/ogc">
<NamedLayer><Name>squares</Name><UserStyle><FeatureTypeStyle>
<Rule><ogc:Filter><ogc:PropertyIsEqualTo><ogc:PropertyName>state</ogc:PropertyName><ogc:Literal>old</ogc:Literal></ogc:PropertyIsEqualTo>
</ogc:Filter><PolygonSymbolizer><Fill><CssParameter name="fill">#ff0000</CssParameter></Fill></PolygonSymbolizer></Rule>
<Rule><ogc:Filter><ogc:PropertyIsNotEqualTo><ogc:PropertyName>state</ogc:PropertyName><ogc:Literal>old</ogc:Literal></ogc:PropertyIsNotEqualTo>
</ogc:Filter><PolygonSymbolizer><Fill><CssParameter name="fill">#0000ff</CssParameter></Fill></PolygonSymbolizer></Rule>
</FeatureTypeStyle></UserStyle></NamedLayer></StyledLayerDescriptor>"""
CACHES = {
    "disk": '<cache name="store" type="disk"><base>{folder}/tiles</base></cache>',
    "sqlite3": '<cache name="store" type="sqlite3"><dbfile>{folder}/tiles.sqlite3</dbfile></cache>',
    "mbtiles": '<cache name="store" type="mbtiles"><dbfile>{folder}/{{tileset}}.mbtiles</dbfile></cache>',
    "lmdb": '<cache name="store" type="lmdb"><base>{folder}/tiles.lmdb</base></cache>',
    "symlinks": '<cache name="store" type="disk"><base>{folder}/tiles</base><symlink_blank/></cache>',
}


def prepare(build, server):
    """The table squares: one of 4 degrees around each place with even degrees, and its triggers."""
    server.sql("CREATE EXTENSION IF NOT EXISTS postgis; DROP TABLE IF EXISTS squares CASCADE; CREATE TABLE squares (id serial, state text,"
               " g geometry(Polygon, 4326)); INSERT INTO squares (state, g) SELECT 'old', ST_MakeEnvelope(x, y, x + 4, y + 4, 4326)"
               " FROM generate_series(-176, 172, 4) x, generate_series(-80, 76, 4) y; CREATE INDEX ON squares USING gist (g); ANALYZE squares")
    server.sql(script(build, "squares"))


def script(build, *tables):
    made = subprocess.run([build / "bin/mapcache", "invalidate", "--sql", *tables], capture_output=True, text=True, check=True,
                          env={**os.environ, **sanitizer_environment(build)}, timeout=patience(30))
    return made.stdout


def configuration(folder, connection, cache="disk", changes="<changes><poll>1</poll></changes>", more="", tilesets="", extra="",
                  table="<table>squares</table>"):
    (folder / "squares.sld").write_text(STYLE)
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache>{changes}
  <source name="squares" type="postgis"><connection>{escape(connection)}</connection>
    <layer name="squares">{table}<style>squares.sld</style></layer></source>
  {CACHES[cache].format(folder=folder)}
  <format name="tiles" type="MVT"/>
  <tileset name="squares"><source>squares</source><cache>store</cache><grid>GoogleMapsCompatible</grid><format>PNG</format>
    <metatile>2 2</metatile>{more}</tileset>
  {tilesets}
  <service type="wmts" enabled="true"/><service type="tms" enabled="true"/><service type="wms" enabled="true"/>
  <service type="metrics" enabled="true"/>
  <lock_dir>{folder}</lock_dir><log_level>info</log_level>{extra}
</mapcache>
""")
    return path


def tile_of(lon, lat, z):
    """The tile of the web's usual numbering in which a place lies."""
    n = 2 ** z
    x = int((lon + 180) / 360 * n)
    y = int((1 - math.log(math.tan(math.radians(lat)) + 1 / math.cos(math.radians(lat))) / math.pi) / 2 * n)
    return z, x, y


def path_of(tile, tileset="squares", extension="png"):
    z, x, y = tile
    return f"/wmts/1.0.0/{tileset}/default/GoogleMapsCompatible/{z}/{y}/{x}.{extension}"


@contextlib.contextmanager
def serving(build, folder, connection, **options):
    folder.mkdir(exist_ok=True)
    server = Server(build, configuration(folder, connection, **options), folder)
    try:
        wait_until_followed(server)
        yield server
    finally:
        server.stop()


def wait_until_followed(server):
    """The server has read the log."""
    wait_until(lambda: counter(server, "change_reads_total") > 0, "the server follows the log", SOON)


def counter(server, name):
    lines = server.get("/metrics").body.decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"mapcache_{name} "))


def body(server, path):
    answer = server.get(path)
    assert answer.status == 200, (path, answer.status, answer.body[:300])
    return answer.body


def change(database, state, place=PLACE):
    lon, lat = (4 * (value // 4) for value in place)
    database.sql(f"UPDATE squares SET state = '{state}' WHERE ST_XMin(g) = {lon} AND ST_YMin(g) = {lat}")


def wait_for_new(server, before):
    """Asks until all of these tiles are others: path -> body as it was."""
    left = dict(before)

    def all_new():
        for path in list(left):
            if body(server, path) != left[path]:
                del left[path]
        return not left

    wait_until(all_new, f"tiles are new: {list(left)[:3]}", SOON)


@pytest.fixture(name="database", scope="module")
def database_fixture():
    with Postgres() as server:
        yield server


@pytest.fixture(name="squares")
def squares_fixture(build, database):
    database.sql("DROP SCHEMA IF EXISTS mapcache_changes CASCADE")
    prepare(build, database)
    return database

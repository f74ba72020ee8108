"""What `script/bench fresh` shows: squares in rows, each in a tile of its own at the deepest level, drawn by us and by Mapnik under renderd."""
import math
import subprocess

from common.servers import BUILD
from peers import peer
from postgres import USER
from seed.config import mapnik_plugins

GRID, LEVEL = "GoogleMapsCompatible", 14
SIDE, STEP = .01, .05  # degrees
COLUMNS, ROWS = 200, 200
WEST, SOUTH = 2.0, 40.0
STYLE = """<StyledLayerDescriptor version="1.0.0" xmlns="http://www.opengis.net/sld" xmlns:ogc="http://www.opengis.net/ogc">
<NamedLayer><Name>squares</Name><UserStyle><FeatureTypeStyle>
<Rule><ogc:Filter><ogc:PropertyIsEqualTo><ogc:PropertyName>state</ogc:PropertyName><ogc:Literal>0</ogc:Literal></ogc:PropertyIsEqualTo>
</ogc:Filter><PolygonSymbolizer><Fill><CssParameter name="fill">#b3541e</CssParameter></Fill></PolygonSymbolizer></Rule>
<Rule><ogc:Filter><ogc:PropertyIsNotEqualTo><ogc:PropertyName>state</ogc:PropertyName><ogc:Literal>0</ogc:Literal></ogc:PropertyIsNotEqualTo>
</ogc:Filter><PolygonSymbolizer><Fill><CssParameter name="fill">#1f6f8b</CssParameter></Fill></PolygonSymbolizer></Rule>
</FeatureTypeStyle></UserStyle></NamedLayer></StyledLayerDescriptor>"""


def make_table(database):
    database.sql(f"CREATE TABLE squares (id int PRIMARY KEY, state int NOT NULL DEFAULT 0, g geometry(Polygon, 4326));"
                 f"INSERT INTO squares SELECT y * {COLUMNS} + x, 0, ST_MakeEnvelope({WEST} + x * {STEP}, {SOUTH} + y * {STEP}, {WEST} + x * {STEP} + {SIDE},"
                 f" {SOUTH} + y * {STEP} + {SIDE}, 4326) FROM generate_series(0, {COLUMNS - 1}) x, generate_series(0, {ROWS - 1}) y;"
                 f"CREATE INDEX ON squares USING gist (g); ANALYZE squares")
    made = subprocess.run([BUILD / "bin/mapcache", "invalidate", "--sql", "squares"], capture_output=True, text=True, check=True)
    database.sql(made.stdout)


def tile_of(number, level=LEVEL):
    """The tile in which the middle of a square lies: z, x, y from the top."""
    lon, lat = WEST + number % COLUMNS * STEP + SIDE / 2, SOUTH + number // COLUMNS * STEP + SIDE / 2
    n = 2 ** level
    return level, int((lon + 180) / 360 * n), int((1 - math.log(math.tan(math.radians(lat)) + 1 / math.cos(math.radians(lat))) / math.pi) / 2 * n)


def write_ours(folder, database, followed=True):
    (folder / "squares.sld").write_text(STYLE)
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache>
  {"<changes/>" if followed else ""}
  <source name="squares" type="postgis"><connection>{database.connection()}</connection>
    <layer name="squares"><table>squares</table><style>squares.sld</style></layer></source>
  <cache name="store" type="sqlite3"><dbfile>{folder}/tiles.sqlite3</dbfile></cache>
  <tileset name="squares"><source>squares</source><cache>store</cache><grid>{GRID}</grid><format>PNG</format><metatile>2 2</metatile></tileset>
  <service type="tms" enabled="true"/><service type="wmts" enabled="true"/><service type="metrics" enabled="true"/>
  <lock_dir>{folder}</lock_dir>
</mapcache>
""")
    return path


def path_of(tile):
    z, x, y = tile
    return f"/mc/wmts/1.0.0/squares/default/{GRID}/{z}/{y}/{x}.png"


def write_renderd(folder, database):
    """Of Debian's renderd: the same table in the same two colours."""
    rules = "".join(f'<Rule><Filter>{test}</Filter><PolygonSymbolizer fill="{colour}"/></Rule>' for test, colour in
                    (("[state] = 0", "#b3541e"), ("[state] &lt;&gt; 0", "#1f6f8b")))
    source = "".join(f'<Parameter name="{key}">{value}</Parameter>' for key, value in {
        "type": "postgis", "host": "127.0.0.1", "port": database.port, "dbname": "postgres", "user": USER, "table": "squares", "geometry_field": "g",
        "srid": 4326, "extent": "-180,-85,180,85"}.items())
    (folder / "style.xml").write_text(f"""<Map srs="epsg:3857" background-color="transparent"><Style name="squares">{rules}</Style>
<Layer name="squares" srs="epsg:4326"><StyleName>squares</StyleName><Datasource>{source}</Datasource></Layer></Map>""")
    tiles, path = folder / "renderd", folder / "renderd.conf"
    tiles.mkdir()
    path.write_text(f"""[renderd]
stats_file={folder}/renderd.stats
socketname={folder}/renderd.sock
pid_file={folder}/renderd.pid
num_threads=1
tile_dir={tiles}
[mapnik]
plugins_dir={mapnik_plugins()}
font_dir=/usr/share/fonts/truetype/dejavu
font_dir_recurse=true
[default]
URI=/osm/
XML={folder}/style.xml
HOST=localhost
TILESIZE=256
MAXZOOM=18
TILEDIR={tiles}
""")
    return [peer("/usr/bin/renderd"), "-f", "-c", path]


def renderd_tool(folder, name, *words):
    return [peer(f"/usr/bin/{name}"), "-m", "default", "-s", folder / "renderd.sock", "-t", folder / "renderd", "-n", "1", *words]

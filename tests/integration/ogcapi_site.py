"""What the tests of the OGC API share: a server with collections of each kind, and readers of its documents."""
import contextlib
import io
import json
import sqlite3
import subprocess

from conftest import fetch, png
from patience import patience
from PIL import Image

REL = "http://www.opengis.net/def/rel/ogc/1.0/"
CRS84 = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
YEARS = {"2022-03-01": (200, 0, 0), "2023-05-01": (0, 200, 0), "2024-07-01": (0, 0, 200)}
LEVELS = {"50": (10, 20, 30), "100": (40, 50, 60), "500": (70, 80, 90)}
SERVICES = """<service type="ogcapi" enabled="true"/><service type="wmts" enabled="true"/><service type="gmaps" enabled="true"/>
  <service type="wms" enabled="true"/><service type="demo" enabled="true"/>"""


def ground(longitude, latitude):
    """The colour of the collection `world` at a place: red grows to the east, green to the north."""
    return int((longitude + 180) / 360 * 250), int((latitude + 90) / 180 * 250), 60


def make_world(folder):
    (folder / "world.png").write_bytes(png(720, 360, lambda i, j: ground(-180 + (i + 0.5) / 2, 90 - (j + 0.5) / 2)))
    (folder / "world.wld").write_text("0.5\n0\n0\n-0.5\n-179.75\n89.75\n")
    run("gdal_translate", "-q", "-a_srs", "EPSG:4326", folder / "world.png", folder / "world.tif")


def make_areas(folder):
    def square(name, lanes, west, south, east, north):
        ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
        return {"type": "Feature", "properties": {"name": name, "lanes": lanes}, "geometry": {"type": "Polygon", "coordinates": [ring]}}

    features = [square("north", 3, 10, 10, 60, 60), square("south", 2, -60, -60, -10, -10)]
    (folder / "areas.json").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    run("ogr2ogr", "-q", "-f", "ESRI Shapefile", folder / "areas.shp", folder / "areas.json")


def make_store(path, tileset, colours):
    """The tiles of levels 0 and 1, but for the one in the south-east of level 1, one colour for each value."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("create table tiles(tileset text, grid text, x integer, y integer, z integer, data blob, dim text, ctime datetime,"
                         " primary key(tileset, grid, x, y, z, dim))")
        for value, colour in colours.items():
            data = png(256, 256, lambda i, j, colour=colour: colour if i or j else (1, 2, 3))
            for z, x, y in [(0, 0, 0), (1, 0, 0), (1, 0, 1), (1, 1, 1)]:
                database.execute("insert into tiles values(?, 'GoogleMapsCompatible', ?, ?, ?, ?, ?, '2024-01-02 03:04:05')", (tileset, x, y, z, data, value))
        database.commit()


def run(*command):
    subprocess.run([str(word) for word in command], check=True, timeout=patience(60))


def write_site(folder, services=SERVICES, extra=""):
    """A configuration with its data."""
    folder.chmod(0o777)
    (folder / "cache").mkdir()
    (folder / "cache").chmod(0o777)
    make_world(folder)
    make_areas(folder)
    make_store(folder / "years.sqlite3", "years", YEARS)
    make_store(folder / "levels.sqlite3", "levels", LEVELS)
    values = "".join(f"<value>{year}</value>" for year in YEARS)
    levels = "".join(f"<value>{level}</value>" for level in LEVELS)
    config = folder / "mapcache.xml"
    config.write_text(f"""<mapcache>
  <metadata><title>Maps &amp; "more" &lt;here&gt;</title><abstract>All that the tests need.</abstract></metadata>
  <source name="world" type="gdal"><data>{folder}/world.tif</data></source>
  <source name="areas" type="shapefile"><layer name="areas"><data>{folder}/areas.shp</data></layer></source>
  <cache name="tiles" type="sqlite3"><dbfile>{folder}/cache/tiles.sqlite3</dbfile></cache>
  <cache name="years" type="sqlite3"><dbfile>{folder}/years.sqlite3</dbfile></cache>
  <cache name="levels" type="sqlite3"><dbfile>{folder}/levels.sqlite3</dbfile></cache>
  <format name="mvt" type="MVT"/>
  <grid name="swiss"><srs>EPSG:2056</srs><units>m</units><extent>2400000 1000000 2912000 1384000</extent>
    <size>256 256</size><resolutions>2000 1000 500</resolutions><origin>top-left</origin></grid>
  <grid name="WorldMercatorWGS84Quad"><srs>EPSG:3395</srs><units>m</units><extent>-20037508.342789244 -20037508.342789244 20037508.342789244 20037508.342789244</extent>
    <size>512 512</size><resolutions>78271.516964 39135.758482</resolutions></grid>
  <tileset name="world"><metadata><title>The world &amp; all</title><abstract>Colours of places.</abstract></metadata>
    <source>world</source><cache>tiles</cache><grid>GoogleMapsCompatible</grid><grid>WGS84</grid><grid>swiss</grid>
    <grid>WorldMercatorWGS84Quad</grid><grid>g</grid><format>PNG</format></tileset>
  <tileset name="photo"><source>world</source><cache>tiles</cache><grid>GoogleMapsCompatible</grid><format>JPEG</format></tileset>
  <tileset name="part"><source>world</source><cache>tiles</cache>
    <grid restricted_extent="0 0 20037508 20037508" tolerance="0" minzoom="1" maxzoom="3">GoogleMapsCompatible</grid><format>PNG</format></tileset>
  <tileset name="areas"><source>areas</source><cache>tiles</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>
  <tileset name="areas-mvt"><source>areas</source><cache>tiles</cache><grid>GoogleMapsCompatible</grid><grid>WGS84</grid><format>mvt</format></tileset>
  <tileset name="years"><cache>years</cache><grid>GoogleMapsCompatible</grid><format>PNG</format>
    <dimensions><dimension type="values" name="time" default="2024-07-01">{values}</dimension></dimensions></tileset>
  <tileset name="levels"><cache>levels</cache><grid>GoogleMapsCompatible</grid><format>PNG</format>
    <dimensions><dimension type="values" name="depth" default="100" unit="m">{levels}</dimension></dimensions></tileset>
  <tileset name="a/b"><source>world</source><cache>tiles</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>
  <tileset name="odd &lt;b&gt; &amp; &quot;name&quot;"><source>world</source><cache>tiles</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>
  {services}
  {extra}
  <lock_dir>{folder}</lock_dir>
</mapcache>
""")
    return config


class Api:
    """The API at an alias of a running server."""

    def __init__(self, port, alias="/mc"):
        self.port, self.alias = port, alias
        self.base = f"http://127.0.0.1:{port}{alias}/"

    def get(self, path, headers=None, **options):
        """`path` below /ogcapi, or a whole address of the API."""
        address = path.removeprefix(self.base.removesuffix(self.alias + "/")) if path.startswith("http") else f"{self.alias}/ogcapi{path}"
        return fetch(self.port, address, headers, **options)

    def json(self, path, headers=None):
        reply = self.get(path, headers)
        assert reply.status == 200, reply.body
        return json.loads(reply.body)


def links(document, rel):
    """The links of a document with a relation, in its full or its short form."""
    return [link for link in document["links"] if link["rel"] in (rel, REL + rel)]


def problem(reply, status, word=""):
    """A reply that is a problem of RFC 7807 with that status."""
    assert reply.status == status, (reply.status, reply.body[:500])
    assert reply.headers["Content-Type"] == "application/problem+json"
    told = json.loads(reply.body)
    assert told["status"] == status and told["title"] and word in told["detail"], told
    return told


def pixels(data, points):
    """The colours of an image at pixels, each red, green, blue and opacity."""
    with Image.open(io.BytesIO(data)) as image:
        whole = image.convert("RGBA")
        return [whole.getpixel(point) for point in points]


def is_near(colour, wanted, off=8):
    return len(colour) >= 3 and all(abs(a - b) <= off for a, b in zip(colour, wanted))

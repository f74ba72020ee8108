"""Vector tiles of shapefiles and PostGIS, read by GDAL: what is in them, at whatever door and in whatever coding."""
import gzip
import json
import math
import random
import sqlite3
import subprocess

import pytest
from conftest import GRID
from osgeo import gdal, ogr, osr
from postgres import Postgres

HALF = 20037508.342789248
EXTENT, BUFFER = 4096, 64
MIME = "application/vnd.mapbox-vector-tile"
ogr.UseExceptions()


def ring(numbers, x, y, radius, corners):
    """A star, as a list of corners."""
    angles = [2 * math.pi * i / corners for i in range(corners)]
    return [(x + math.cos(a) * r, y + math.sin(a) * r) for a in angles for r in [radius * numbers.uniform(0.6, 1)]]


def polygon(*rings):
    text = ",".join("(" + ",".join(f"{x!r} {y!r}" for x, y in [*points, points[0]]) + ")" for points in rings)
    return ogr.CreateGeometryFromWkt(f"POLYGON({text})")


def features():
    """Areas with holes of all sizes, lines, points; each with attributes of all types."""
    numbers = random.Random(5)
    found = {"areas": [], "lines": [], "points": []}
    for number in range(400):
        x, y = (numbers.uniform(-HALF, HALF) * 0.95 for _ in range(2))
        radius = 10 ** numbers.uniform(3, 6.5)
        kind = list(found)[number % 3]
        if kind == "areas":
            outer = ring(numbers, x, y, radius, numbers.randint(5, 60))
            geometry = polygon(outer, ring(numbers, x, y, radius * 0.5, 17)[::-1])
        elif kind == "lines":
            points = ",".join(f"{px!r} {py!r}" for px, py in ring(numbers, x, y, radius, 30))
            geometry = ogr.CreateGeometryFromWkt(f"LINESTRING({points})")
        else:
            geometry = ogr.CreateGeometryFromWkt(f"POINT({x!r} {y!r})")
        attributes = {"name": None if number % 7 == 0 else f"Zürich “{number}”", "count": number * 1000003 - 5,
                      "share": number / 3, "open": number % 2 == 0}
        found[kind].append((number, attributes, geometry))
    return found


def write_shapefile(folder, name, content):
    reference = osr.SpatialReference()
    reference.ImportFromEPSG(3857)
    data = ogr.GetDriverByName("ESRI Shapefile").CreateDataSource(str(folder / f"{name}.shp"))
    types = {"areas": ogr.wkbPolygon, "lines": ogr.wkbLineString, "points": ogr.wkbPoint}
    layer = data.CreateLayer(name, reference, types[name], ["ENCODING=UTF-8"])
    layer.CreateField(ogr.FieldDefn("name", ogr.OFTString))
    whole = ogr.FieldDefn("count", ogr.OFTInteger64)
    whole.SetWidth(12)
    layer.CreateField(whole)
    share = ogr.FieldDefn("share", ogr.OFTReal)
    share.SetWidth(20)
    share.SetPrecision(12)
    layer.CreateField(share)
    for number, attributes, geometry in content:
        feature = ogr.Feature(layer.GetLayerDefn())
        for key in ("name", "count", "share"):
            if attributes[key] is not None:
                feature.SetField(key, attributes[key])
        feature.SetGeometry(geometry)
        layer.CreateFeature(feature)
    data = None
    for path in folder.glob(f"{name}.*"):
        path.chmod(0o644)


def fill_database(server, content):
    server.sql("CREATE EXTENSION postgis")
    for name, rows in content.items():
        server.sql(f"""CREATE TABLE {name}(gid int PRIMARY KEY, name text, count bigint, share float8, open boolean,
                       label point, geom geometry(Geometry, 3857))""")
        for number, row, geometry in rows:
            text = "NULL" if row["name"] is None else "'" + row["name"] + "'"
            server.sql(f"""INSERT INTO {name} VALUES ({number}, {text}, {row['count']}, {row['share']!r}, {row['open']},
                           '(1,2)', ST_GeomFromWKB('\\x{geometry.ExportToWkb().hex()}'::bytea, 3857))""")


@pytest.fixture(scope="module")
def content():
    return features()


@pytest.fixture(scope="module")
def database(content):
    with Postgres() as server:
        fill_database(server, content)
        yield server


def shapefile_source(folder, name, layers, more=""):
    inside = "".join(f'<layer name="{layer}"><data>{folder}/{layer}.shp</data>{more}</layer>' for layer in layers)
    return f'<source name="{name}" type="shapefile">{inside}</source>'


def tileset(name, source, form="mvt", more="", grid=GRID):
    return (f'<tileset name="{name}"><metadata><title>The {name}</title></metadata><source>{source}</source>'
            f"<cache>disk</cache><grid>{grid}</grid><format>{form}</format>{more}</tileset>")


@pytest.fixture(scope="module")
def config(shared_folder, database, content):
    folder = shared_folder
    for name, rows in content.items():
        write_shapefile(folder, name, rows)
    cache = folder / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    connection = f"<connection>{database.connection()}</connection>"
    tables = "".join(f'<layer name="{name}">{connection}<table>{name}</table><id>gid</id></layer>' for name in content)
    query = (f'<layer name="open">{connection}<query><![CDATA[SELECT gid AS number, *, geom AS again FROM areas'
             " WHERE geom && !BBOX! AND open AND count > (!LEAST!)::int]]></query><geometry>geom</geometry><srid>3857</srid>"
             "<attributes>number, share,open</attributes><minzoom>1</minzoom><maxzoom>3</maxzoom></layer>")
    least = '<dimensions><dimension type="regex" name="least" default="0"><regex>^[0-9]+$</regex></dimension></dimensions>'
    path = folder / "vector.xml"
    path.write_text(f"""<mapcache>
      <cache name="disk" type="disk"><base>{cache}</base></cache>
      <cache name="box" type="mbtiles"><dbfile>{cache}/box.mbtiles</dbfile></cache>
      <cache name="foreign" type="mbtiles"><dbfile>{folder}/foreign.mbtiles</dbfile></cache>
      <format name="mvt" type="MVT"/>
      <format name="few" type="MVT"><max_features>20</max_features></format>
      <format name="small" type="MVT"><max_bytes>4K</max_bytes></format>
      <format name="slow" type="MVT"><max_time>0.3</max_time></format>
      <format name="pbf" type="RAW"><extension>pbf</extension><mime_type>application/x-protobuf</mime_type></format>
      {shapefile_source(folder, "shapes", content)}
      {shapefile_source(folder, "bare", ["areas"], "<attributes></attributes>")}
      <source name="tables" type="postgis">{tables}</source>
      <source name="query" type="postgis">{query}</source>
      <source name="sleepy" type="postgis"><layer name="areas">{connection}<query>SELECT * FROM areas, pg_sleep(20)</query>
        <geometry>geom</geometry><srid>3857</srid></layer></source>
      {tileset("shapes", "shapes")}{tileset("tables", "tables")}{tileset("query", "query", more=least)}
      {tileset("bare", "bare")}{tileset("few", "shapes", "few")}{tileset("small", "shapes", "small")}
      {tileset("slow", "sleepy", "slow")}{tileset("picture", "shapes", "PNG")}{tileset("degrees", "tables", grid="WGS84")}
      {tileset("box", "tables").replace("<cache>disk", "<cache>box")}
      <tileset name="foreign"><cache>foreign</cache><grid>{GRID}</grid><format>mvt</format></tileset>
      <tileset name="raw"><cache>foreign</cache><grid>{GRID}</grid><format>pbf</format></tileset>
      <default_format>PNG</default_format>
      <service type="wms" enabled="true"><full_wms>forward</full_wms><format allow_client_override="true">PNG</format>
        <maxsize>4096</maxsize></service>
      <service type="wmts" enabled="true"/><service type="tms" enabled="true"/><service type="gmaps" enabled="true"/>
      <service type="kml" enabled="true"/><service type="metrics" enabled="true"/>
      <locker type="disk"><directory>{cache}</directory></locker></mapcache>""")
    return path


@pytest.fixture(scope="module")
def web(config, shared_apache):
    return shared_apache("vector", f"MapCacheAlias /mc {config}\n")


def get(web, layer, z, x, y, headers=None, status=200):
    reply = web.get(f"/mc/gmaps/{layer}@{GRID}/{z}/{x}/{y}.mvt", {"Accept-Encoding": "gzip"} if headers is None else headers)
    assert reply.status == status, reply.body
    return reply


def decode(body):
    """Layers of a tile as GDAL reads them: name -> [(id, attributes, geometry in units, y down)]."""
    path = "/vsimem/tile.mvt"
    gdal.FileFromMemBuffer(path, body)
    try:
        data = gdal.OpenEx(path, gdal.OF_VECTOR, ["MVT"], ["CLIP=NO", "METADATA_FILE="])
        layers = {}
        for index in range(data.GetLayerCount()):
            layer = data.GetLayer(index)
            layers[layer.GetName()] = [
                (feature.GetField("mvt_id") if feature.GetFieldIndex("mvt_id") >= 0 else None,
                 {key: value for key, value in feature.items().items() if key != "mvt_id" and value is not None},
                 feature.GetGeometryRef().Clone()) for feature in layer]
        return layers
    finally:
        data = None
        gdal.Unlink(path)


def test_look(web):
    reply = get(web, "shapes", 2, 1, 1)
    print(dict(reply.headers), len(reply.body))
    body = gzip.decompress(reply.body)
    print(len(body))
    for name, rows in decode(body).items():
        print(name, len(rows))
        for row in rows[:3]:
            print(row[0], row[1], row[2].ExportToWkt()[:300])
    reply = get(web, "tables", 2, 1, 1)
    print(dict(reply.headers), len(reply.body))
    for name, rows in decode(gzip.decompress(reply.body)).items():
        print(name, len(rows))
        for row in rows[:3]:
            print(row[0], row[1], row[2].ExportToWkt()[:300])
    print(web.get(f"/mc/gmaps/tables@{GRID}.json").body)
    print(web.get(f"/mc/tms/1.0.0/query@{GRID}.json").body)
    print(web.log()[-2000:])

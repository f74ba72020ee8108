"""Vector tiles of shapefiles and PostGIS, read by GDAL: what is in them, at whatever door and in whatever coding."""
import gzip
import json
import math
import random
import sqlite3
import subprocess

import numpy
import pytest
from conftest import GRID
from osgeo import gdal, ogr, osr
from patience import patience
from postgres import Postgres
from test_drawing import pixels

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


# Features of the tests reach beyond the antimeridian, and their parts on its other side have tests of their own (test_coasts.py).
ONE_WORLD = "<wrap>false</wrap>"


def shapefile_source(folder, name, layers, more=""):
    inside = "".join(f'<layer name="{layer}"><data>{folder}/{layer}.shp</data>{more}</layer>' for layer in layers)
    return f'<source name="{name}" type="shapefile">{ONE_WORLD}{inside}</source>'


def tileset(name, source, form="mvt", more="", grid=GRID):
    return (f'<tileset name="{name}"><metadata><title>The {name}</title></metadata><source>{source}</source>'
            f"<cache>disk</cache><grid>{grid}</grid><format>{form}</format>{more}</tileset>")


# Tilesets and what they are made of: each has one of metatiles beside it, whose tiles are the same.
SINGLE = {"shapes": ("shapes", "mvt", GRID), "tables": ("tables", "mvt", GRID), "few": ("shapes", "few", GRID), "small": ("shapes", "small", GRID),
          "degrees": ("tables", "mvt", "WGS84")}


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
    numbered = "".join(f'<layer name="{name}">{connection}<query>SELECT {gid} AS gid, geom FROM points</query><geometry>geom</geometry><srid>3857</srid>'
                       f"<id>gid</id><attributes>{wanted}</attributes></layer>" for name, gid, wanted in (
                           ("both", "nullif(gid, gid / 5 * 5)", "gid"), ("text", "gid::text", "gid"), ("alone", "gid", "")))
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
      <source name="tables" type="postgis">{ONE_WORLD}{tables}</source>
      <source name="packed" type="postgis">{ONE_WORLD}{tables.replace("<id>", "<transfer>twkb</transfer><id>")}</source>
      <source name="query" type="postgis">{ONE_WORLD}{query}</source>
      <source name="numbered" type="postgis">{ONE_WORLD}{numbered}</source>
      <source name="sleepy" type="postgis"><layer name="areas">{connection}<query>SELECT * FROM areas, pg_sleep(20)</query>
        <geometry>geom</geometry><srid>3857</srid></layer></source>
      <source name="missing" type="postgis"><layer name="areas">{connection}<table>nothing</table></layer></source>
      <source name="either" type="fallback"><source>missing</source><source>shapes</source></source>
      <grid name="thirds"><srs>EPSG:3857</srs><extent>-20000000 -20000000 20000000 20000000</extent><size>256 256</size><resolutions>90000 30000 10000</resolutions></grid>
      <ruleset name="north"><rule zoom_level="3"><visibility hidden_color="FF102030"><extent>-20000000 100000 20000000
        20000000</extent></visibility></rule></ruleset>
      {tileset("either", "either")}
      {tileset("proxied", "shapes").replace("<grid>", '<grid max-cached-zoom="2" out-of-zoom-strategy="proxy">')}
      {tileset("ruled", "shapes").replace("<grid>", '<grid ruleset="north" tolerance="0">')}
      {tileset("shapes", "shapes")}{tileset("tables", "tables")}{tileset("packed", "packed")}{tileset("query", "query", more=least)}{tileset("numbered", "numbered")}
      {tileset("bare", "bare")}{tileset("few", "shapes", "few")}{tileset("small", "shapes", "small")}
      {tileset("slow", "sleepy", "slow")}{tileset("picture", "shapes", "PNG")}{tileset("degrees", "tables", grid="WGS84")}{tileset("thirds", "tables", grid="thirds")}
      {tileset("box", "tables").replace("<cache>disk", "<cache>box")}
      {"".join(tileset(f"meta-{name}", SINGLE[name][0], SINGLE[name][1], "<metatile>4 3</metatile>", SINGLE[name][2]) for name in SINGLE)}
      <tileset name="empty"><cache>disk</cache><grid>{GRID}</grid><format>mvt</format></tileset>
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


def upside_down(geometry):
    """GDAL counts y from the tile's lower edge."""
    for i in range(geometry.GetPointCount()):
        geometry.SetPoint_2D(i, geometry.GetX(i), EXTENT - geometry.GetY(i))
    for i in range(geometry.GetGeometryCount()):
        upside_down(geometry.GetGeometryRef(i))
    return geometry


def decode(body):
    """Layers of a tile as GDAL reads them: name -> [(id, attributes, geometry in units, y down)]."""
    path = "/vsimem/tile.mvt"
    if body == b"":
        return {}
    gdal.FileFromMemBuffer(path, body)
    try:
        data = gdal.OpenEx(path, gdal.OF_VECTOR, ["MVT"], ["CLIP=NO", "METADATA_FILE="])
        layers = {}
        for index in range(data.GetLayerCount()):
            layer = data.GetLayer(index)
            layers[layer.GetName()] = [
                (feature.GetField("mvt_id") if feature.GetFieldIndex("mvt_id") >= 0 else None,
                 {key: value for key, value in feature.items().items() if key != "mvt_id" and value is not None},
                 upside_down(feature.GetGeometryRef().Clone())) for feature in layer]
        return layers
    finally:
        data = None
        gdal.Unlink(path)


def features_of(web, layer, z, x, y):
    """name -> {id: geometry}; a feature of several kinds is collected."""
    return {name: {key: geometry for key, _, geometry in rows}
            for name, rows in decode(gzip.decompress(get(web, layer, z, x, y).body)).items()}


def vertices(geometry):
    if geometry.GetGeometryCount() == 0:
        return [point[:2] for point in geometry.GetPoints() or []]
    return [point for part in range(geometry.GetGeometryCount()) for point in vertices(geometry.GetGeometryRef(part))]


def to_units(geometry, z, x, y):
    """A geometry of the map in units of a tile, y down."""
    unit = 2 * HALF / 2**z / EXTENT
    moved = geometry.Clone()

    def move(part):
        for i in range(part.GetPointCount()):
            px, py = part.GetX(i), part.GetY(i)
            part.SetPoint_2D(i, (px + HALF) / unit - x * EXTENT, (HALF - py) / unit - y * EXTENT)
        for i in range(part.GetGeometryCount()):
            move(part.GetGeometryRef(i))

    move(moved)
    return moved


def box(low, high):
    return ogr.CreateGeometryFromWkt(f"POLYGON(({low} {low},{high} {low},{high} {high},{low} {high},{low} {low}))")


def some_tiles(seed, count, levels=(1, 2, 3, 4)):
    numbers = random.Random(seed)
    for _ in range(count):
        z = numbers.choice(levels)
        yield z, numbers.randrange(2**z), numbers.randrange(2**z)


def large(geometry):
    """Rounding makes of shapes of a few units whatever it likes; a unit is a sixteenth of a pixel."""
    x0, x1, y0, y1 = geometry.GetEnvelope()
    return max(x1 - x0, y1 - y0) > 16


OFF = 1.8  # units: 1 of simplification and half a diagonal of the lattice
INSIDE, ALL = box(0, EXTENT), box(-BUFFER, EXTENT + BUFFER)


@pytest.mark.parametrize("z, x, y", some_tiles(1, 25))
def test_geometry_is_the_shapefile_s(web, content, z, x, y):
    """What is inside of the tile lies at most about a unit off, both ways; nothing but specks is missing."""
    layers = features_of(web, "shapes", z, x, y)
    for name, rows in content.items():
        found = layers.get(name, {})
        for index, (_, _, geometry) in enumerate(rows):
            wanted = to_units(geometry, z, x, y)
            shown = wanted.Intersection(INSIDE)
            if index not in found:
                assert shown.IsEmpty() or name != "points" and not large(wanted), (name, index)
                continue
            made = found[index]
            if name == "points" or not large(wanted):
                assert made.Distance(wanted) < OFF, (name, index)
                continue
            inside = made.Intersection(INSIDE)
            assert inside.IsEmpty() or inside.Difference(wanted.Buffer(OFF)).IsEmpty(), (name, index)
            assert shown.IsEmpty() or shown.Difference(made.Buffer(OFF)).IsEmpty(), (name, index)
            if name == "areas":
                assert abs(inside.Area() - shown.Area()) <= OFF * wanted.Boundary().Length() + 1


@pytest.mark.parametrize("layer", ["tables", "packed"])
@pytest.mark.parametrize("z, x, y", some_tiles(2, 12))
def test_tables_are_the_shapefile_s(web, layer, z, x, y):
    """Rings may begin elsewhere, and be simplified from there: the same shapes within the same bounds; so are those
    that travel as TWKB."""
    files, tables = features_of(web, "shapes", z, x, y), features_of(web, layer, z, x, y)
    for name, first in (("areas", 0), ("lines", 1), ("points", 2)):
        made = {(key - first) // 3: geometry for key, geometry in tables.get(name, {}).items()}
        others = files.get(name, {})
        assert not any(large(made.get(key) or others[key]) for key in set(made) ^ set(others))
        for key in set(made) & set(others):
            if name == "points":
                assert made[key].Distance(others[key]) <= (0 if layer == "tables" else 1.5)
            elif large(made[key]):
                assert made[key].Difference(others[key].Buffer(2 * OFF)).IsEmpty(), (name, key)


@pytest.mark.parametrize("z, x, y", [(z, x % (2**z - 1), y) for z, x, y in some_tiles(3, 20)])
def test_neighbours_agree(web, z, x, y):
    """Vertices that both tiles have in their buffers are the same."""
    left, right = features_of(web, "shapes", z, x, y), features_of(web, "shapes", z, x + 1, y)
    compared = 0
    for name in set(left) & set(right):
        for key in set(left[name]) & set(right[name]):
            def common(geometry, step):
                return {(px + step, py) for px, py in vertices(geometry)
                        if EXTENT - BUFFER + 1 < px + step < EXTENT + BUFFER - 1 and -BUFFER < py < EXTENT + BUFFER}

            a, b = common(left[name][key], 0), common(right[name][key], EXTENT)
            # one whose neighbour was cut off may have become part of a straight line
            assert len(a ^ b) <= (len(a) + len(b)) // 20, (name, key, a ^ b)
            compared += len(a & b)
    assert compared > 0 or z > 2


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def message(data):
    """Fields of a protocol buffer: (number, value)."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            assert len(value) == size
        else:
            size = {1: 8, 5: 4}[kind]
            value, at = data[at:at + size], at + size
        yield key >> 3, value


def numbers_of(data):
    at, found = 0, []
    while at < len(data):
        value, at = varint(data, at)
        found.append(value)
    return found


def rings_of(commands):
    """Parts of a geometry (MVT 2.1, 4.3), checked by its grammar."""
    x = y = at = 0
    rings = []
    while at < len(commands):
        command, count = commands[at] & 7, commands[at] >> 3
        at += 1
        assert command in (1, 2, 7) and count > 0
        if command == 7:
            assert count == 1 and len(rings[-1]) >= 3
            continue
        for _ in range(count):
            dx, dy = ((value >> 1) ^ -(value & 1) for value in commands[at:at + 2])
            at += 2
            x, y = x + dx, y + dy
            if command == 1:
                rings.append([])
            else:
                assert (dx, dy) != (0, 0)
            rings[-1].append((x, y))
    return rings


def area(points):
    return sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(points, [*points[1:], points[0]])) / 2


@pytest.mark.parametrize("layer", ["shapes", "tables"])
def test_form(web, layer):
    """Layers, keys, values and commands as the specification has them; polygons are wound, none without an inside."""
    polygons = holes = 0
    for z, x, y in some_tiles(4, 40, (0, 1, 2, 3, 4, 5)):
        names = []
        for number, data in message(gzip.decompress(get(web, layer, z, x, y).body)):
            assert number == 3
            parts = list(message(data))
            single = dict(parts)
            assert single[15] == 2 and single[5] == EXTENT
            names.append(single[1])
            keys, values = ([value for key, value in parts if key == wanted] for wanted in (3, 4))
            assert len(set(keys)) == len(keys) and len(set(values)) == len(values)
            ids = []
            for _, feature in [part for part in parts if part[0] == 2]:
                fields = dict(message(feature))
                ids.append(fields[1])
                tags = numbers_of(fields.get(2, b""))
                assert len(tags) % 2 == 0 and max(tags[::2], default=-1) < len(keys) and max(tags[1::2], default=-1) < len(values)
                rings = rings_of(numbers_of(fields[4]))
                assert all(-BUFFER <= c <= EXTENT + BUFFER for points in rings for point in points for c in point)
                if fields[3] == 3:
                    assert area(rings[0]) > 0 and all(area(points) != 0 and len(points) >= 3 for points in rings)
                    polygons += 1
                    holes += sum(area(points) < 0 for points in rings)
            assert len(set(ids)) == len(ids)
        assert len(set(names)) == len(names)
    assert polygons > 100 and holes > 50


def test_polygons_are_valid(web):
    """By the rules of simple features, all of them, however small."""
    valid = 0
    for z, x, y in some_tiles(5, 60, (0, 1, 2, 3, 4, 5)):
        for number, geometry in features_of(web, "shapes", z, x, y).get("areas", {}).items():
            assert geometry.IsValid(), (z, x, y, number, geometry.ExportToWkt()[:500])
            valid += 1
    assert valid > 300


def test_attributes_have_types(web, content):
    rows = {number: row for found in content.values() for number, row, _ in found}
    seen = 0
    for z, x, y in some_tiles(6, 10):
        for layer in decode(gzip.decompress(get(web, "tables", z, x, y).body)).values():
            for key, attributes, _ in layer:
                wanted = {name: value for name, value in rows[key].items() if value is not None}
                assert attributes == {**wanted, "gid": key, "label": "(1,2)"}
                assert [type(attributes[name]) for name in ("count", "share", "open")] == [int, float, bool]
                seen += 1
        for name, layer in decode(gzip.decompress(get(web, "shapes", z, x, y).body)).items():
            for key, attributes, _ in layer:
                row = content[name][key][1]
                assert attributes.get("name") == row["name"] and attributes["count"] == row["count"]
                assert attributes["share"] == pytest.approx(row["share"])
    assert seen > 50


def test_query_with_attributes_levels_and_dimension(web, content):
    def shown(z, least):
        path = f"/mc/gmaps/query[least={least}]@{GRID}/{z}/0/0.mvt".replace("[", "%5B").replace("]", "%5D")
        reply = web.get(path, {"Accept-Encoding": "gzip"})
        assert reply.status == 200, reply.body
        return decode(gzip.decompress(reply.body)).get("open", []) if len(reply.body) > 20 else []

    assert shown(0, 0) == [] and shown(4, 0) == []
    everything, some = shown(1, 0), shown(1, 200000000)
    assert 0 < len(some) < len(everything)
    rows = {number: row for number, row, _ in content["areas"]}
    for key, attributes, _ in everything:
        assert key is None and set(attributes) == {"number", "share", "open"} and attributes["open"] is True
        assert attributes["share"] == rows[attributes["number"]]["share"]
    assert {row["number"] for _, row, _ in some} == {row["number"] for _, row, _ in everything
                                                     if rows[row["number"]]["count"] > 200000000}


def test_ids_are_among_the_attributes_or_not(web, content):
    """What the database has no number for has none, and no such attribute; the others have it once as id and once as attribute, or as id alone."""
    rows = decode(gzip.decompress(get(web, "numbered", 0, 0, 0).body))
    known = {number for number, _, _ in content["points"]}
    assert {key for key, _, _ in rows["both"]} == {None, *(number for number in known if number % 5 != 0)}
    assert sum(key is None for key, _, _ in rows["both"]) == sum(number % 5 == 0 for number in known)
    assert all(attributes == ({} if key is None else {"gid": key}) for key, attributes, _ in rows["both"])
    assert {key for key, _, _ in rows["text"]} == known and all(attributes == {"gid": str(key)} for key, attributes, _ in rows["text"])
    assert {key for key, _, _ in rows["alone"]} == known and all(attributes == {} for _, attributes, _ in rows["alone"])


def test_no_attributes_when_none_are_wanted(web):
    layers = decode(gzip.decompress(get(web, "bare", 1, 0, 0).body))
    assert layers["areas"] and all(row[1] == {} for row in layers["areas"])


@pytest.mark.parametrize("door", ["apache", "fcgi"])
def test_codings(web, config, door, request):
    if door == "fcgi":
        program = request.getfixturevalue("fcgi")(environment={"MAPCACHE_CONFIG_FILE": str(config)})
        web = request.getfixturevalue("nginx")(program.address)
    path = f"/mc/wmts/1.0.0/shapes/default/{GRID}/2/1/1.mvt"
    packed = web.get(path, {"Accept-Encoding": "br, gzip;q=0.8"})
    plain = web.get(path, {"Accept-Encoding": "identity"})
    assert packed.headers["Content-Encoding"] == "gzip" and "Content-Encoding" not in plain.headers
    assert gzip.decompress(packed.body) == plain.body != b""
    assert packed.headers["ETag"] != plain.headers["ETag"]
    for reply in (packed, plain):
        assert reply.status == 200 and reply.headers["Content-Type"] == MIME
        assert "Accept-Encoding" in reply.headers["Vary"]
    for accepted, first in (("gzip", packed), (None, plain), ("gzip;q=0, *", plain), ("*", packed), ("br", plain)):
        headers = {} if accepted is None else {"Accept-Encoding": accepted}
        assert web.get(path, headers).body == first.body
        again = web.get(path, {**headers, "If-None-Match": first.headers["ETag"]})
        assert again.status == 304 and again.body == b"" and "Accept-Encoding" in again.headers["Vary"]
        other = plain if first is packed else packed
        assert web.get(path, {**headers, "If-None-Match": other.headers["ETag"]}).status == 200
        head = web.get(path, headers, method="HEAD")
        assert head.status == 200 and head.body == b"" and head.headers["ETag"] == first.headers["ETag"]
        assert head.headers["Content-Length"] == str(len(first.body))


def test_every_address(web):
    """One tile by all protocols; rows from the top and from the bottom."""
    wanted = get(web, "shapes", 3, 5, 2).body
    kvp = (f"/mc/wmts?SERVICE=WMTS&REQUEST=GetTile&VERSION=1.0.0&LAYER=shapes&STYLE=default&FORMAT={MIME}"
           f"&TILEMATRIXSET={GRID}&TILEMATRIX=3&TILEROW=2&TILECOL=5")
    for path in (kvp, f"/mc/wmts/1.0.0/shapes/default/{GRID}/3/2/5.mvt", f"/mc/tms/1.0.0/shapes@{GRID}/3/5/5.mvt",
                 f"/mc/tms/1.0.0/shapes@{GRID}/3/5/5.pbf"):
        reply = web.get(path, {"Accept-Encoding": "gzip"})
        assert (reply.status, reply.headers["Content-Type"], reply.body) == (200, MIME, wanted), path
    unread = web.get(kvp.replace(MIME, "image/png"), {"Accept-Encoding": "gzip"})  # as MapCache; a strict service refuses it
    assert (unread.status, unread.headers["Content-Type"], unread.body) == (200, MIME, wanted)
    merged = web.get(f"/mc/tms/1.0.0/shapes@{GRID};tables@{GRID}/3/5/5.mvt")
    assert merged.status == 400 and b"cannot be merged" in merged.body
    assert web.get("/mc/kml/shapes.kml").status == 404
    capabilities = web.get("/mc/wmts/1.0.0/WMTSCapabilities.xml").body.decode()
    assert f"<Format>{MIME}</Format>" in capabilities and "/{TileCol}.mvt" in capabilities
    assert f'mime-type="{MIME}" extension="mvt"' in web.get(f"/mc/tms/1.0.0/shapes@{GRID}").body.decode()


def test_fallbacks_overzoom_and_rulesets(web, config):
    wanted = get(web, "shapes", 4, 6, 12).body
    assert get(web, "either", 4, 6, 12).body == wanted
    assert get(web, "proxied", 4, 6, 12).body == wanted
    assert not (config.parent / "cache/proxied").exists()
    assert get(web, "proxied", 2, 1, 1).body == get(web, "shapes", 2, 1, 1).body
    assert (config.parent / "cache/proxied").exists()
    assert gzip.decompress(get(web, "shapes", 3, 3, 7).body) != b""
    hidden = get(web, "ruled", 3, 3, 7)
    assert gzip.decompress(hidden.body) == b"" and hidden.headers["Content-Type"] == MIME
    assert get(web, "ruled", 3, 3, 1).body == get(web, "shapes", 3, 3, 1).body


def test_degrees(web):
    reply = web.get("/mc/wmts/1.0.0/degrees/default/WGS84/3/2/9.mvt", {"Accept-Encoding": "gzip"})
    assert reply.status == 200 and decode(gzip.decompress(reply.body))
    assert web.get("/mc/tms/1.0.0/degrees.json").status == 404


def box_of_tables(database, content):
    """West, south, east, north of all tables, in degrees. They go on beyond the antimeridian, so that their box goes all around."""
    tables = " union all ".join(f"select geom from {name}" for name in content)
    box = "select st_extent(geom) as b from (" + tables + ") t"
    corners = database.sql(f"select st_xmax(b) > 20037509, st_y(st_transform(st_setsrid(st_point(0, st_ymin(b)), 3857), 4326)), "
                           f"st_y(st_transform(st_setsrid(st_point(0, st_ymax(b)), 3857), 4326)) from ({box}) e")[0]
    beyond, south, north = corners.split("|")
    assert beyond == "t"
    return [-180, float(south), 180, float(north)]


def test_tilejson_of_other_grids(web, database, content, folder):
    """GDAL reads tiles and document of a grid that is no web map's, and finds the features where they are."""
    reply = web.get("/mc/gmaps/degrees.json")
    document = json.loads(reply.body)
    assert reply.status == 200 and document["scheme"] == "xyz"
    assert document["bounds"] == pytest.approx(box_of_tables(database, content), abs=0.01)
    assert (document["crs"], document["tile_origin_upper_left_x"], document["tile_origin_upper_left_y"], document["tile_dimension_zoom_0"]) == ("EPSG:4326", -180, 90, 180)
    assert "crs" not in json.loads(web.get("/mc/gmaps/tables.json").body)
    (folder / "degrees.json").write_bytes(reply.body)
    found = {}
    for x in range(4):
        (folder / "2" / str(x)).mkdir(parents=True)
        for y in range(4):
            (folder / f"2/{x}/{y}.pbf").write_bytes(web.get(f"/mc/gmaps/degrees/2/{x}/{y}.mvt", {"Accept-Encoding": "identity"}).body)
    data = gdal.OpenEx(f"MVT:{folder}/2", gdal.OF_VECTOR, open_options=[f"METADATA_FILE={folder}/degrees.json"])
    layer = data.GetLayerByName("points")
    assert layer.GetSpatialRef().GetAuthorityCode(None) == "4326"
    for feature in layer:
        found.setdefault(feature.GetField("gid"), []).append(feature.GetGeometryRef().Clone())
    data = layer = None
    assert len(found) > 20
    for number, _, geometry in content["points"]:
        longitude = geometry.GetX() / HALF * 180
        latitude = math.degrees(2 * math.atan(math.exp(geometry.GetY() / HALF * math.pi)) - math.pi / 2)
        if longitude < -1 and number % 3 == 2:
            for point in found[number]:
                assert point.GetX() == pytest.approx(longitude, abs=0.02) and point.GetY() == pytest.approx(latitude, abs=0.02)


def test_tilejson_needs_halves(web):
    assert web.get("/mc/gmaps/thirds.json").status == 404 and "halved" in web.get("/mc/gmaps/thirds.json").body.decode()


def test_nothing_there_is_an_empty_tile(web):
    reply = get(web, "shapes", 15, 0, 0)
    assert gzip.decompress(reply.body) == b"" and reply.headers["Content-Type"] == MIME
    plain = get(web, "shapes", 15, 0, 0, {})
    assert plain.body == b"" and plain.headers["Content-Length"] == "0"
    missing = get(web, "empty", 9, 9, 9)
    assert gzip.decompress(missing.body) == b"" and missing.headers["Content-Type"] == MIME


def test_tiles_of_other_programs(web, config):
    """MBTiles with vector tiles by GDAL, gzipped or not: sent as what they are, by MVT and by RAW with their type."""
    folder = config.parent
    source = gdal.OpenEx(str(folder / "areas.shp"))
    gdal.VectorTranslate(str(folder / "foreign.mbtiles"), source, format="MVT", layerName="areas",
                         datasetCreationOptions=["MAXZOOM=2", "FORMAT=MBTILES"])
    database = sqlite3.connect(folder / "foreign.mbtiles")
    stored = database.execute("SELECT tile_data FROM tiles WHERE zoom_level=2 AND tile_column=1 AND tile_row=2").fetchone()[0]
    plain = gzip.decompress(stored)
    database.execute("INSERT INTO tiles(zoom_level, tile_column, tile_row, tile_data) VALUES(7, 0, 127, ?)", (plain,))
    database.commit()
    database.close()
    for path in folder.glob("foreign.mbtiles*"):
        path.chmod(0o644)
    for layer, mime in (("foreign", MIME), ("raw", "application/x-protobuf")):
        packed, expanded = get(web, layer, 2, 1, 1), get(web, layer, 2, 1, 1, {})
        assert packed.body == stored and packed.headers["Content-Encoding"] == "gzip"
        assert expanded.body == plain and "Content-Encoding" not in expanded.headers
        bare = get(web, layer, 7, 0, 0)
        assert bare.body == plain and "Content-Encoding" not in bare.headers
        for reply in (packed, expanded, bare):
            assert reply.headers["Content-Type"] == mime
    assert decode(plain)["areas"]
    document = json.loads(web.get(f"/mc/gmaps/foreign@{GRID}.json").body)
    assert document["tilejson"] == "3.0.0"
    assert [layer["id"] for layer in document["vector_layers"]] == ["areas"]  # what the tiles themselves hold


def counter(web, name):
    total = 0
    for line in web.get("/mc/metrics").body.decode().splitlines():
        if line.startswith(f"mapcache_{name} "):
            total += float(line.split()[1])
    return total


def test_budget_of_features(web):
    before = counter(web, "vector_dropped_total")
    few, all_of_them = features_of(web, "few", 0, 0, 0), features_of(web, "shapes", 0, 0, 0)
    assert sum(map(len, few.values())) == 20
    assert counter(web, "vector_dropped_total") - before == sum(map(len, all_of_them.values())) - 20
    assert "leaves out" in web.log()

    def size(geometry):
        x0, x1, y0, y1 = geometry.GetEnvelope()
        return max(x1 - x0, y1 - y0)

    least = min(size(geometry) for layer in few.values() for geometry in layer.values())
    kept = {(name, key) for name, layer in few.items() for key in layer}
    for name, layer in all_of_them.items():
        for key, geometry in layer.items():
            assert (name, key) in kept or size(geometry) <= least + 2 * OFF


def test_budget_of_bytes(web):
    body = gzip.decompress(get(web, "small", 0, 0, 0).body)
    assert 2048 < len(body) <= 4096 and sum(map(len, decode(body).values())) > 3


@pytest.mark.parametrize("name", SINGLE)
def test_tiles_of_metatiles_are_the_same(web, name):
    """To the last bit; also at the end of the grid, where metatiles are smaller, where rows count upwards, and where memory is for fewer tiles (small)."""
    grid = SINGLE[name][2]
    for z, x, y in some_tiles(8, 40, (0, 1, 2, 3, 4)):
        y = y // 2 if grid == "WGS84" else y
        alone, together = (web.get(f"/mc/gmaps/{layer}@{grid}/{z}/{x}/{y}.mvt", {"Accept-Encoding": "gzip"}) for layer in (name, f"meta-{name}"))
        assert alone.status == together.status == 200, (alone.body, together.body)
        assert alone.body == together.body, (z, x, y)


def test_budget_of_time(web, config):
    before = counter(web, "vector_late_total")
    for _ in range(2):
        reply = get(web, "slow", 0, 0, 0, status=503)
        assert b"budget of time" in reply.body and reply.headers["Retry-After"]
    assert counter(web, "vector_late_total") > before
    assert not (config.parent / "cache/slow").exists()


def test_counters(web):
    before = [counter(web, f"vector_{name}_total") for name in ("tiles", "features", "bytes")]
    body = gzip.decompress(get(web, "tables", 6, 31, 30).body)
    features = sum(map(len, decode(body).values())) if body else 0
    after = [counter(web, f"vector_{name}_total") for name in ("tiles", "features", "bytes")]
    assert [now - then for now, then in zip(after, before)] == [1, features, len(body)]


def test_tilejson(web, database, content):
    document = json.loads(web.get("/mc/gmaps/tables.json").body)
    west, south, east, north = box_of_tables(database, content)
    base = f"http://127.0.0.1:{web.port}/mc"
    assert document["tilejson"] == "3.0.0" and document["scheme"] == "xyz" and document["name"] == "The tables"
    assert document["tiles"] == [f"{base}/gmaps/tables/{{z}}/{{x}}/{{y}}.mvt"]
    assert document["minzoom"] == 0 and document["maxzoom"] == 21
    assert document["bounds"] == pytest.approx([west, max(south, -85.051129), east, min(north, 85.051129)], abs=0.01)
    fields = {"gid": "Number", "name": "String", "count": "Number", "share": "Number", "open": "Boolean", "label": "String"}
    assert document["vector_layers"] == [{"id": name, "minzoom": 0, "maxzoom": 21, "fields": fields}
                                         for name in ("areas", "lines", "points")]
    query = json.loads(web.get(f"/mc/tms/1.0.0/query@{GRID}.json").body)
    assert query["scheme"] == "tms" and query["tiles"][0].startswith(f"{base}/tms/1.0.0/query@{GRID}/{{z}}")
    assert query["vector_layers"] == [{"id": "open", "minzoom": 1, "maxzoom": 3,
                                       "fields": {"number": "Number", "share": "Number", "open": "Boolean"}}]
    picture = json.loads(web.get("/mc/gmaps/picture.json").body)
    assert picture["tiles"] == [f"{base}/gmaps/picture/{{z}}/{{x}}/{{y}}.png"] and "vector_layers" not in picture
    assert web.get("/mc/gmaps/nothing.json").status == 404
    for scheme in (document, query):
        address = scheme["tiles"][0][len(f"http://127.0.0.1:{web.port}"):]
        assert web.get(address.format(z=2, x=1, y=1)).status == 200


def test_maps_are_drawn(web):
    """A layer of vector tiles is drawn by its source as any other, also where the map is exactly one tile."""
    def drawn(layer):
        reply = web.get(f"/mc?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&STYLES=&LAYERS={layer}&SRS=EPSG:3857"
                        f"&FORMAT=image/png&BBOX={-HALF},{-HALF},0,0&WIDTH=256&HEIGHT=256")
        assert reply.status == 200 and reply.headers["Content-Type"] == "image/png", reply.body
        return pixels(reply.body)

    assert numpy.array_equal(drawn("shapes"), drawn("picture"))  # one with a palette, the other as it is stored
    capabilities = web.get("/mc?SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.1.1").body.decode()
    assert "<Name>shapes</Name>" in capabilities and "<Name>foreign</Name>" not in capabilities
    assert "<Layers>shapes</Layers>" not in capabilities and "<Layers>picture</Layers>" in capabilities


def test_no_layer_where_maps_are_assembled(web, config, apache):
    other = config.with_name("assemble.xml")
    other.write_text(config.read_text().replace("<full_wms>forward", "<full_wms>assemble"))
    web = apache(f"MapCacheAlias /mc {other}\n")
    reply = web.get(f"/mc?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&STYLES=&LAYERS=shapes&SRS=EPSG:3857&FORMAT=image/png"
                    f"&BBOX={-HALF},{-HALF},0,0&WIDTH=256&HEIGHT=256")
    assert b"LayerNotDefined" in reply.body
    capabilities = web.get("/mc?SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.1.1").body.decode()
    assert "<Name>shapes</Name>" not in capabilities and "<Name>picture</Name>" in capabilities


def test_seeding(web, config, build):
    done = subprocess.run([build / "bin/mapcache", "seed", "-c", config, "-t", "box", "-z", "0,3", "-n", "2"],
                          capture_output=True, text=True, timeout=patience(120))
    assert done.returncode == 0, done.stdout + done.stderr
    database = sqlite3.connect(config.parent / "cache/box.mbtiles")
    stored = database.execute("SELECT zoom_level, tile_column, tile_row, tile_data FROM tiles").fetchall()
    assert len(stored) == 1 + 4 + 16 + 64 and all(gzip.decompress(tile[3]) is not None for tile in stored)
    assert database.execute("SELECT value FROM metadata WHERE name = 'format'").fetchone()[0] == "pbf"
    written = [json.loads(value) for (value,) in database.execute("SELECT value FROM metadata WHERE name = 'json'")]
    database.close()
    assert written == [{"vector_layers": json.loads(web.get("/mc/gmaps/box.json").body)["vector_layers"]}]
    opened = gdal.OpenEx(str(config.parent / "cache/box.mbtiles"), gdal.OF_VECTOR)
    for layer in written[0]["vector_layers"]:
        fields = opened.GetLayerByName(layer["id"]).GetLayerDefn()
        assert set(layer["fields"]) <= {fields.GetFieldDefn(i).GetName() for i in range(fields.GetFieldCount())}
    opened = None
    z, x, row, data = stored[7]
    assert get(web, "tables", z, x, 2**z - 1 - row).body == data


REFUSED = {
    "<metatile>20 20</metatile>": "cannot have a <metatile> of more than 256 tiles",
    "<metabuffer>5</metabuffer>": "cannot have a <metabuffer>",
    '<dimensions><assembly_type>stack</assembly_type><dimension type="values" name="a" default="b">b</dimension></dimensions>':
        "cannot have an <assembly_type>",
}


@pytest.mark.parametrize("more, message", [*REFUSED.items(), ("white", "makes no vector tiles"), ("twice", "the same name"),
                                           ("extent", "no multiple of 256"), ("zoom", "max-cached-zoom"),
                                           ("mixed", "cannot hold images")])
def test_what_cannot_be(build, folder, more, message):
    layer = '<layer name="{}"><data>/nothing.shp</data></layer>'
    layers = layer.format("a") + (layer.format("a") if more == "twice" else "")
    path = folder / "refused.xml"
    path.write_text(f"""<mapcache><cache name="disk" type="disk"><base>{folder}</base></cache>
      <format name="mvt" type="MVT">{"<extent>1000</extent>" if more == "extent" else ""}</format>
      {'<format name="m" type="MIXED"><transparent>PNG</transparent><opaque>mvt</opaque></format>' if more == "mixed" else ""}
      <source name="shapes" type="shapefile">{layers}</source><source name="white" type="dummy"/>
      <tileset name="t"><cache>disk</cache><source>{"white" if more == "white" else "shapes"}</source>
        <grid {'max-cached-zoom="3"' if more == "zoom" else ""}>{GRID}</grid><format>mvt</format>
        {more if more in REFUSED else ""}</tileset>
      <service type="wmts" enabled="true"/></mapcache>""")
    done = subprocess.run([build / "bin/mapcache", "check", path], capture_output=True, text=True, timeout=patience(60))
    assert done.returncode == 1 and message in done.stdout + done.stderr, done.stdout + done.stderr

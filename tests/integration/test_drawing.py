"""Maps drawn from shapefiles and PostGIS: the same data looks the same, values are bound. Seams: test_seams.py."""
import io
import json
import math
import os
import random
import subprocess

import numpy
import pytest
from conftest import GRID
from osgeo import ogr, osr
from patience import patience
from PIL import Image
from postgres import Postgres

HALF = 20037508.342789248
RULE = """<Rule>{filter}<PolygonSymbolizer><Fill><CssParameter name="fill">{fill}</CssParameter>
  <CssParameter name="fill-opacity">{opacity}</CssParameter></Fill><Stroke><CssParameter name="stroke">#402000</CssParameter>
  <CssParameter name="stroke-width">{width}</CssParameter>{dashes}</Stroke></PolygonSymbolizer></Rule>"""
SLD = """<StyledLayerDescriptor version="1.0.0" xmlns="http://www.opengis.net/sld"><NamedLayer><Name>a</Name><UserStyle>
  <Name>one</Name><FeatureTypeStyle>{rules}</FeatureTypeStyle></UserStyle></NamedLayer></StyledLayerDescriptor>"""
EQUAL = """<Filter><PropertyIsEqualTo><PropertyName>kind</PropertyName><Literal>{}</Literal></PropertyIsEqualTo></Filter>"""
PLAIN = SLD.format(rules=RULE.format(filter="", fill="#e0d8c0", opacity="1", width="1", dashes=""))
RICH = SLD.format(rules="".join([
    RULE.format(filter=EQUAL.format("wood"), fill="#80c080", opacity="0.6", width="5", dashes=""),
    RULE.format(filter=EQUAL.format("lake"), fill="#8080f0", opacity="1", width="3",
                dashes='<CssParameter name="stroke-dasharray">9 5 2 5</CssParameter>'),
    RULE.format(filter="<ElseFilter/>", fill="#f0f0f0", opacity="0.9", width="1.5", dashes="")]))


def blob(random_numbers, x, y, radius):
    """A star-shaped ring with a hole."""
    def ring(scale, clockwise):
        geometry = ogr.Geometry(ogr.wkbLinearRing)
        corners = random_numbers.randint(5, 40)
        points = []
        for i in range(corners):
            angle = 2 * math.pi * i / corners * (-1 if clockwise else 1)
            length = radius * scale * random_numbers.uniform(0.6, 1)
            points.append((x + math.cos(angle) * length, y + math.sin(angle) * length))
        for point in [*points, points[0]]:
            geometry.AddPoint_2D(*point)
        return geometry

    polygon = ogr.Geometry(ogr.wkbPolygon)
    polygon.AddGeometry(ring(1, True))
    polygon.AddGeometry(ring(0.3, False))
    return polygon


def make_shapes(path):
    """300 areas in three kinds, some far larger than a tile, none beyond the antimeridian."""
    numbers = random.Random(7)
    reference = osr.SpatialReference()
    reference.ImportFromEPSG(3857)
    data = ogr.GetDriverByName("ESRI Shapefile").CreateDataSource(str(path))
    layer = data.CreateLayer("areas", reference, ogr.wkbPolygon)
    layer.CreateField(ogr.FieldDefn("kind", ogr.OFTString))
    features = []
    for number in range(300):
        kind = ("wood", "lake", "heath")[number % 3]
        radius = 10 ** numbers.uniform(4, 6.3)
        feature = ogr.Feature(layer.GetLayerDefn())
        feature.SetField("kind", kind)
        feature.SetGeometry(blob(numbers, numbers.uniform(radius - HALF, HALF - radius), numbers.uniform(-HALF, HALF), radius))
        layer.CreateFeature(feature)
        features.append((kind, feature.GetGeometryRef().ExportToWkb().hex()))
    return features


@pytest.fixture(scope="module")
def database():
    with Postgres() as server:
        server.sql("CREATE EXTENSION postgis")
        yield server


LAYER = """<source name="{name}" type="{kind}"><layer name="areas">{data}<style>{style}</style></layer></source>
<tileset name="{name}"><source>{name}</source><cache>disk</cache><grid>{grid}</grid><format>PNG</format>
  {more}</tileset>"""


@pytest.fixture(scope="module")
def web(shared_folder, shared_apache, database):
    folder = shared_folder
    features = make_shapes(folder / "areas.shp")
    for path in folder.glob("areas.*"):
        path.chmod(0o644)
    database.sql("CREATE TABLE areas(gid int, kind text, geom geometry(Polygon, 3857))")
    for number, (kind, wkb) in enumerate(features):
        database.sql(f"INSERT INTO areas VALUES ({number}, '{kind}', ST_GeomFromWKB('\\x{wkb}'::bytea, 3857))")
    for name, text in (("plain", PLAIN), ("rich", RICH)):
        (folder / f"{name}.sld").write_text(text)
    shape, connection = f"<data>{folder}/areas.shp</data>", f"<connection>{database.connection()}</connection>"
    table = connection + "<table>public.areas</table><id>gid</id>"
    query = (connection + "<query><![CDATA[SELECT *, '!KIND! stays' AS text FROM areas -- '!KIND!\n"
             "WHERE geom && !BBOX! AND kind = !KIND! AND ST_Area(geom) > !PIXEL! * !PIXEL! AND !SCALE! > 0]]></query>"
             "<geometry>geom</geometry><srid>3857</srid>")
    kinds = ('<dimensions><dimension type="regex" name="kind" default="wood"><regex>.*</regex></dimension></dimensions>')

    def layer(name, kind, data, style, more="", grid=GRID):
        return LAYER.format(name=name, kind=kind, data=data, style=folder / f"{style}.sld", more=more, grid=grid)

    layers = [layer("plain", "shapefile", shape, "plain"), layer("rich", "shapefile", shape, "rich"),
              layer("plaindb", "postgis", table + "<transfer>binary</transfer>", "plain"),
              layer("richdb", "postgis", table + "<transfer>binary</transfer>", "rich"),
              layer("hexdb", "postgis", table + "<transfer>hex</transfer>", "rich"),
              layer("tinydb", "postgis", table + "<transfer>twkb</transfer>", "plain"),
              layer("query", "postgis", query, "rich", more=kinds),
              layer("degrees", "postgis", table, "plain", grid="WGS84"),
              layer("missing", "postgis", connection + "<table>nothing</table>", "plain")]
    (folder / "cache").mkdir()
    (folder / "cache").chmod(0o777)
    (folder / "drawing.xml").write_text(f"""<mapcache>
      <cache name="disk" type="disk" layout="template"><template>{folder}/cache/{{tileset}}/{{z}}/{{x}}/{{y}}/{{dim}}.png</template></cache>
      {"".join(layers)}<default_format>PNG</default_format>
      <service type="wms" enabled="true"><full_wms>forward</full_wms><format allow_client_override="true">PNG</format>
        <maxsize>4096</maxsize></service>
      <service type="wmts" enabled="true"/><locker type="disk"><directory>{folder}/cache</directory></locker></mapcache>""")
    return shared_apache("drawing", f"MapCacheAlias /mc {folder}/drawing.xml\n")


def pixels(body):
    return numpy.asarray(Image.open(io.BytesIO(body)).convert("RGBA"))


def drawn(web, layer, box, width, height, more="", srs="EPSG:3857", status=200):
    reply = web.get(f"/mc?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&STYLES=&LAYERS={layer}&SRS={srs}&FORMAT=image/png"
                    f"&BBOX={','.join(map(repr, box))}&WIDTH={width}&HEIGHT={height}{more}")
    assert reply.status == status, reply.body
    return pixels(reply.body) if status == 200 else reply.body


@pytest.mark.parametrize("one, other", [("plain", "plaindb"), ("rich", "richdb"), ("rich", "hexdb")])
def test_a_table_looks_as_its_shapefile(web, one, other):
    numbers = random.Random(3)
    colourful = 0
    for _ in range(12):
        side = 10 ** numbers.uniform(5, 7.5)
        x, y = numbers.uniform(-HALF, HALF - side), numbers.uniform(-HALF, HALF - side)
        box = (x, y, x + side, y + side)
        shown = drawn(web, one, box, 500, 400)
        colourful += len(numpy.unique(shown)) > 2
        assert numpy.array_equal(shown, drawn(web, other, box, 500, 400))
    assert colourful >= 6


def test_tiny_geometry_is_at_most_a_little_off(web):
    box = (-9e6, -9e6, 9e6, 9e6)
    exact, tiny = (drawn(web, layer, box, 900, 900).astype(int) for layer in ("plaindb", "tinydb"))
    difference = abs(exact - tiny).max(axis=2)
    assert difference.any() and (difference > 40).mean() < 0.001


def test_areas_and_holes_are_where_they_should_be(web, shared_folder):
    """Against GDAL's own answer to what covers the middle of a pixel."""
    box, size = (-HALF, -HALF, HALF, HALF), 400
    shown = drawn(web, "plain", box, size, size)
    data = ogr.Open(str(shared_folder / "areas.shp"))  # closes with its last reference
    shapes = [feature.GetGeometryRef().Clone() for feature in data.GetLayer()]
    numbers = random.Random(5)
    checked = 0
    while checked < 300:
        i, j = numbers.randrange(size), numbers.randrange(size)
        point = ogr.Geometry(ogr.wkbPoint)
        unit = 2 * HALF / size
        point.AddPoint_2D(-HALF + (i + 0.5) * unit, HALF - (j + 0.5) * unit)
        if min(shape.Boundary().Distance(point) for shape in shapes) < 2 * unit:
            continue
        checked += 1
        covered = any(shape.Contains(point) for shape in shapes)
        assert tuple(shown[j, i]) == ((0xE0, 0xD8, 0xC0, 255) if covered else (0, 0, 0, 0)), (i, j)


def test_dimensions_reach_the_query_as_values(web):
    box = (-HALF, -HALF, HALF, HALF)
    wood, lake = (drawn(web, "query", box, 300, 300, f"&DIM_KIND={kind}") for kind in ("wood", "lake"))
    assert wood.any() and lake.any() and not numpy.array_equal(wood, lake)
    hostile = drawn(web, "query", box, 300, 300, "&DIM_KIND=wood'%20OR%20'1'='1")
    assert not hostile.any()


@pytest.mark.parametrize("layer", ["plain", "plaindb"])
def test_feature_info_tells_what_lies_under_a_pixel(web, shared_folder, layer):
    box, size = (-HALF, -HALF, HALF, HALF), 1000
    data = ogr.Open(str(shared_folder / "areas.shp"))
    numbers = random.Random(11)
    found, hit = 0, None
    for _ in range(25):
        i, j = numbers.randrange(size), numbers.randrange(size)
        point = ogr.Geometry(ogr.wkbPoint)
        unit = 2 * HALF / size
        point.AddPoint_2D(-HALF + (i + 0.5) * unit, HALF - (j + 0.5) * unit)
        wanted = sorted(feature.GetField("kind") for feature in data.GetLayer()
                        if feature.GetGeometryRef().Contains(point)
                        and feature.GetGeometryRef().Boundary().Distance(point) > unit / 100)
        reply = web.get(f"/mc?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetFeatureInfo&STYLES=&LAYERS={layer}&QUERY_LAYERS={layer}"
                        f"&SRS=EPSG:3857&INFO_FORMAT=application/json&FEATURE_COUNT=50&BBOX={','.join(map(repr, box))}&WIDTH={size}"
                        f"&HEIGHT={size}&X={i}&Y={j}")
        assert reply.status == 200, reply.body
        answer = json.loads(reply.body)
        assert sorted(feature["properties"]["kind"] for feature in answer["features"]) == wanted
        found += len(wanted)
        hit = (i, j) if wanted else hit
    assert found >= 5
    for mime, word in (("text/plain", b"kind = "), ("text/html", b"<th>kind</th>"), ("application/vnd.ogc.gml", b"<mc:kind>")):
        reply = web.get(f"/mc?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetFeatureInfo&STYLES=&LAYERS={layer}&QUERY_LAYERS={layer}"
                        f"&SRS=EPSG:3857&INFO_FORMAT={mime}&BBOX={','.join(map(repr, box))}&WIDTH={size}&HEIGHT={size}"
                        f"&X={hit[0]}&Y={hit[1]}")
        assert reply.status == 200 and reply.headers["Content-Type"].startswith(mime) and word in reply.body


def test_the_database_transforms(web):
    shown = drawn(web, "degrees", (-170.0, -80.0, 170.0, 80.0), 340, 160, srs="EPSG:4326")
    assert tuple(shown[..., 3].shape) == (160, 340) and (shown[..., 3] > 0).mean() > 0.05


def test_a_table_that_is_not_there_is_the_layers_own_error(web):
    body = drawn(web, "missing", (0.0, 0.0, 1e6, 1e6), 100, 100, status=502).decode()
    assert "areas" in body and "swordfish" not in body
    assert "swordfish" not in web.log()
    assert drawn(web, "plaindb", (0.0, 0.0, 1e7, 1e7), 100, 100).any()


def test_without_its_database_a_layer_answers_503_and_comes_back(web, database):
    box = (-HALF, -HALF, HALF, HALF)
    before = drawn(web, "richdb", box, 200, 200)
    database.stop()
    try:
        body = drawn(web, "richdb", box, 200, 200, status=503).decode()
        assert "swordfish" not in body and "127.0.0.1" not in body
        assert drawn(web, "rich", box, 200, 200).any()  # the shapefile does not mind
    finally:
        database.start()
    for _ in range(100):
        reply = web.get("/mc?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&STYLES=&LAYERS=richdb&SRS=EPSG:3857&FORMAT=image/png"
                        f"&BBOX={','.join(map(repr, box))}&WIDTH=200&HEIGHT=200")
        if reply.status == 200:
            break
    assert numpy.array_equal(pixels(reply.body), before)


def test_what_a_style_lacks_is_named_by_check(build, folder, modules_environment):
    make_shapes(folder / "areas.shp")
    (folder / "a.sld").write_text(SLD.format(rules="<Rule><RasterSymbolizer/></Rule>"))
    config = folder / "m.xml"
    config.write_text(f"""<mapcache><cache name="disk" type="disk"><base>{folder}</base></cache>
      <source name="s" type="shapefile"><layer><data>{folder}/areas.shp</data><style>{folder}/a.sld</style></layer></source>
      <source name="bad" type="postgis"><layer><connection>dbname=x</connection></layer></source></mapcache>""")
    checked = subprocess.run([build / "bin/mapcache", "check", config], env={**os.environ, **modules_environment}, timeout=patience(20),
                             capture_output=True, text=True, check=False)
    output = checked.stdout + checked.stderr
    assert checked.returncode == 1 and f"{folder}/a.sld:2:" in output and "RasterSymbolizer" in output
    assert "needs either a <table>" in output

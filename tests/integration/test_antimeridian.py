"""Maps that go on beyond the antimeridian: the same as data that has been copied to both sides; without seams."""
import json
import random

import numpy
import pytest
from fastcgi import Server
from osgeo import ogr, osr
from postgres import Postgres
from test_drawing import SLD, blob
from vector_maps import pixels, query_of

HALF = 20037508.342789244
LEVEL = 6
UNIT = 2 * HALF / 256 / 2 ** LEVEL  # metres for a pixel
AREAS = SLD.format(rules="""<Rule><PolygonSymbolizer><Fill><CssParameter name="fill"><PropertyName>color</PropertyName></CssParameter>
  </Fill><Stroke><CssParameter name="stroke-width">3</CssParameter></Stroke></PolygonSymbolizer></Rule>""")
HATCH = SLD.format(rules="""<Rule><PolygonSymbolizer><Fill><GraphicFill><Graphic><Mark><WellKnownName>star</WellKnownName><Fill>
  <CssParameter name="fill">#204080</CssParameter></Fill></Mark><Size>11</Size></Graphic></GraphicFill></Fill></PolygonSymbolizer></Rule>""")
PLAIN = SLD.format(rules="""<Rule><PolygonSymbolizer><Fill><CssParameter name="fill">#80c080</CssParameter></Fill><Stroke>
  <CssParameter name="stroke-width">1</CssParameter></Stroke></PolygonSymbolizer></Rule>""")
POINTS = SLD.format(rules="""<Rule><PointSymbolizer><Graphic><Mark><WellKnownName>circle</WellKnownName><Fill>
  <CssParameter name="fill"><PropertyName>color</PropertyName></CssParameter></Fill><Stroke/></Mark><Size>14</Size></Graphic>
  </PointSymbolizer></Rule>""")
LABELS = SLD.format(rules="""<Rule><TextSymbolizer><Label><PropertyName>color</PropertyName></Label><Priority>
  <PropertyName>rank</PropertyName></Priority></TextSymbolizer></Rule>""")
# Of points, by a box and by how far they are from a place on the other side.
NEARBY = SLD.format(rules="""<Rule><ogc:Filter xmlns:ogc="http://www.opengis.net/ogc" xmlns:gml="http://www.opengis.net/gml">
  <ogc:BBOX><ogc:PropertyName>geom</ogc:PropertyName><gml:Box srsName="CRS:84"><gml:coordinates>-180,-30 -176,30</gml:coordinates>
  </gml:Box></ogc:BBOX></ogc:Filter><PointSymbolizer><Graphic><Mark><WellKnownName>square</WellKnownName><Fill/></Mark></Graphic>
  </PointSymbolizer></Rule>""")
STYLES = {"areas": AREAS, "hatch": HATCH, "plain": PLAIN, "points": POINTS, "labels": LABELS, "nearby": NEARBY}
KIND = {"points": "points", "labels": "points", "nearby": "points"}  # of the others: areas


def polygon(*corners):
    ring = ogr.Geometry(ogr.wkbLinearRing)
    for corner in (*corners, corners[0]):
        ring.AddPoint_2D(*corner)
    made = ogr.Geometry(ogr.wkbPolygon)
    made.AddGeometry(ring)
    return made


def moved(shape, by):
    made = shape.Clone()
    for part in [made.GetGeometryRef(i) for i in range(made.GetGeometryCount())] or [made]:
        for i in range(part.GetPointCount()):
            part.SetPoint_2D(i, part.GetX(i) + by, part.GetY(i))
    return made


def in_the_pacific(shape):
    """In Mercator with 150 degrees east in its middle."""
    degrees, ocean = osr.SpatialReference(), osr.SpatialReference()
    degrees.ImportFromEPSG(4326)
    ocean.ImportFromEPSG(3832)
    degrees.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    made = shape.Clone()
    made.Transform(osr.CoordinateTransformation(degrees, ocean))
    return made


def shapes_near():
    """Inside of the world, most of them near its edges; an island that the antimeridian cuts."""
    numbers = random.Random(1)
    areas = [polygon((176.3, -8.1), (180, -9.2), (180, 7.7), (175.1, 6.4)), polygon((-180, -9.2), (-174.4, -6.6), (-180, 7.7)),
             polygon((-180, -80), (180, -80), (180, -71), (3.3, -66), (-180, -71))]
    points = []
    for _ in range(120):
        size = numbers.uniform(0.3, 5)
        x = numbers.choice((-1, 1)) * (180 - size - numbers.uniform(0, 25) ** 1.2)
        areas.append(blob(numbers, x, numbers.uniform(-60, 60), size * 0.7))
        point = ogr.Geometry(ogr.wkbPoint)
        point.AddPoint_2D(numbers.choice((-1, 1)) * (180 - numbers.uniform(0, 5) ** 2), numbers.uniform(-50, 50))
        points.append(point)
    return {"areas": areas, "points": points}


def attributes(number):
    return ("#c04040", "#40a0c0", "#e0c040", "#8060a0")[number % 4], number * 7919 % 1000


def write(path, shapes, epsg=4326):
    reference = osr.SpatialReference()
    reference.ImportFromEPSG(epsg)
    data = ogr.GetDriverByName("ESRI Shapefile").CreateDataSource(str(path))
    layer = data.CreateLayer(path.stem, reference, shapes[0][1].GetGeometryType())
    layer.CreateField(ogr.FieldDefn("color", ogr.OFTString))
    layer.CreateField(ogr.FieldDefn("rank", ogr.OFTInteger))
    for number, shape in shapes:
        feature = ogr.Feature(layer.GetLayerDefn())
        for field, value in zip(("color", "rank"), attributes(number)):
            feature.SetField(field, value)
        feature.SetGeometry(shape)
        layer.CreateFeature(feature)


@pytest.fixture(scope="module")
def database():
    with Postgres() as server:
        server.sql("CREATE EXTENSION postgis")
        yield server


@pytest.fixture(scope="module")
def server(build, shared_folder, database):
    folder = shared_folder
    near = {kind: list(enumerate(shapes)) for kind, shapes in shapes_near().items()}
    pacific = {kind: [(n, moved(s, 360) if s.GetEnvelope()[1] <= 0 else s) for n, s in shapes if s.GetEnvelope()[1] - s.GetEnvelope()[0] < 90]
               for kind, shapes in near.items()}
    parts = ""

    def add(name, kind, style, data, source=""):
        nonlocal parts
        parts += (f'<source name="{name}" type="{kind}"><layer name="{name}">{data}<style>{folder}/{style}.sld</style></layer>{source}'
                  f'</source><tileset name="{name}"><source>{name}</source><cache>disk</cache><grid>GoogleMapsCompatible</grid>'
                  "<grid>pacific</grid><format>PNG</format><metatile>1 1</metatile></tileset>")

    for style, text in STYLES.items():
        (folder / f"{style}.sld").write_text(text)
    for name, data in (("near", near), ("pacific", pacific)):
        for kind, shapes in data.items():
            write(folder / f"{name}_{kind}.shp", shapes)
            write(folder / f"{name}_{kind}_thrice.shp", [(n, moved(s, by)) for by in (-360, 0, 360) for n, s in shapes])
            table = f"{name}_{kind}"
            rows = ["({}, '{}', {}, ST_GeomFromWKB('\\x{}', 4326))".format(gid, *attributes(number), bytes(shape.ExportToWkb()).hex())
                    for gid, (number, shape) in enumerate(shapes)]
            database.sql(f"CREATE TABLE {table}(gid int, color text, rank int, geom geometry(Geometry, 4326)); "
                         f"CREATE INDEX ON {table} USING gist (geom)")
            for i in range(0, len(rows), 30):
                database.sql(f"INSERT INTO {table} VALUES {','.join(rows[i:i + 30])}")
            database.sql(f"ANALYZE {table}")
        for style in STYLES:
            kind = KIND.get(style, "areas")
            add(f"{name}_{style}", "shapefile", style, f"<data>{folder}/{name}_{kind}.shp</data>")
            add(f"{name}_{style}_thrice", "shapefile", style, f"<data>{folder}/{name}_{kind}_thrice.shp</data>", "<wrap>false</wrap>")
            connection = f"<connection>{database.connection()}</connection>"
            add(f"{name}_{style}_table", "postgis", style, f"{connection}<table>{name}_{kind}</table><id>gid</id><transfer>binary</transfer>")
            add(f"{name}_{style}_query", "postgis", style,
                f"{connection}<query>SELECT * FROM {name}_{kind} WHERE geom &amp;&amp; !BBOX! ORDER BY gid</query><geometry>geom</geometry>"
                "<srid>4326</srid><id>gid</id><transfer>binary</transfer>")
    ocean = [(number, in_the_pacific(shape)) for number, shape in pacific["areas"]]
    write(folder / "ocean.shp", ocean, 3832)
    rows = ["({}, '{}', {}, ST_GeomFromWKB('\\x{}', 3832))".format(gid, *attributes(number), bytes(shape.ExportToWkb()).hex())
            for gid, (number, shape) in enumerate(ocean)]
    database.sql("CREATE TABLE ocean(gid int, color text, rank int, geom geometry(Geometry, 3832))")
    for i in range(0, len(rows), 30):
        database.sql(f"INSERT INTO ocean VALUES {','.join(rows[i:i + 30])}")
    add("ocean", "shapefile", "areas", f"<data>{folder}/ocean.shp</data>")
    for transfer in ("binary", "twkb"):
        add(f"ocean_{transfer}", "postgis", "areas", f"<connection>{database.connection()}</connection><table>ocean</table><id>gid</id>"
                                                     f"<transfer>{transfer}</transfer>")
    add("near_areas_still", "shapefile", "areas", f"<data>{folder}/near_areas.shp</data>", "<wrap>false</wrap>")
    config = folder / "maps.xml"
    config.write_text(f"""<mapcache><cache name="disk" type="disk"><base>{folder}/cache</base></cache>
      <grid name="pacific"><extent>0 -90 360 90</extent><srs>EPSG:4326</srs><size>256 256</size><units>dd</units>
        <resolutions>0.703125 0.3515625 0.17578125</resolutions></grid>{parts}<default_format>PNG</default_format>
      <service type="wms" enabled="true"><full_wms>forward</full_wms><srs>EPSG:4326 EPSG:4258 EPSG:3395</srs>
        <format allow_client_override="true">PNG</format><maxsize>4096</maxsize></service><service type="wmts" enabled="true"/>
      <lock_dir>{folder}/cache</lock_dir></mapcache>""")
    (folder / "cache").mkdir()
    running = Server(build, config, folder)
    yield running
    running.stop()


def draw(server, layer, box, size, srs="EPSG:4326"):
    reply = server.get("/", query_of(layer, box, size, srs))
    assert reply.status == 200, (reply.body, server.log())
    return pixels(reply.body)


def on_level(server, layer, left, top, width, height):
    """In pixels of the level; its lattice begins at the antimeridian."""
    box = (-HALF + left * UNIT, HALF - (top + height) * UNIT, -HALF + (left + width) * UNIT, HALF - top * UNIT)
    return draw(server, layer, box, (width, height), "EPSG:3857")


def same(image, wanted, what):
    differ = numpy.nonzero(abs(image - wanted).max(axis=2))
    assert len(differ[0]) == 0, (what, len(differ[0]), int(abs(image - wanted).max()), differ[0][:5], differ[1][:5])


BOXES = {"across": ((165, -30, 195, 30), (300, 600)), "west": ((-200, -50, -160, 50), (400, 1000)), "beyond": ((181, -20, 221, 20), (400, 400)),
         "twice": ((-380, -60, 400, 60), (780, 120)), "world": ((-180, -90, 180, 90), (720, 360)), "corner": ((179.9, -3, 180.2, -2.8), (300, 200))}


@pytest.mark.parametrize("style", ["areas", "hatch", "plain", "points", "labels"])
@pytest.mark.parametrize("data", ["near", "pacific"])
def test_it_is_as_if_the_data_had_been_copied(server, data, style):
    for name, (box, size) in BOXES.items():
        wanted = draw(server, f"{data}_{style}_thrice", box, size)
        assert wanted.any() or name == "corner", name
        for kind in ("", "_table"):
            same(draw(server, f"{data}_{style}{kind}", box, size), wanted, (name, kind))
        if data == "near":  # where a query's data lies is not known: it is taken to lie inside
            same(draw(server, f"{data}_{style}_query", box, size), wanted, name)


def test_filters_look_at_the_place_of_the_data(server):
    """The box lies at the western edge: in a map across the antimeridian that is in its middle and to the right."""
    image = draw(server, "near_nearby", (165, -30, 195, 30), (300, 600))
    assert image.any() and not image[:, :145].any() and not image[:, 195:].any()


def test_web_mercator(server):
    box = (HALF - 1.7e6, -4e6, HALF + 2.3e6, 4e6)
    for style in ("areas", "points", "labels"):
        wanted = draw(server, f"near_{style}_thrice", box, (500, 1000), "EPSG:3857")
        assert wanted[:, 250:].any() and wanted[:, :200].any()
        for kind in ("", "_table", "_query"):
            assert numpy.array_equal(draw(server, f"near_{style}{kind}", box, (500, 1000), "EPSG:3857"), wanted), (style, kind)


@pytest.mark.parametrize("srs", ["EPSG:4258", "EPSG:3395"])
def test_other_systems_that_go_round(server, srs):
    """Through PROJ: what it brings inside of the world is shown beyond it."""
    box = (HALF - 1e6, -2e6, HALF + 1e6, 2e6) if srs == "EPSG:3395" else (170, -20, 190, 20)
    image = draw(server, "near_areas", box, (300, 600), srs)
    other = draw(server, "near_areas", (box[0] - (2 * HALF if box[0] > 360 else 360), box[1], box[2] - (2 * HALF if box[0] > 360 else 360), box[3]),
                 (300, 600), srs)
    assert image[:, :140].any() and image[:, 160:].any()
    assert (abs(image - other).max(axis=2) > 8).mean() < 0.001


def test_without_it_the_map_ends(server):
    image = draw(server, "near_areas_still", (165, -30, 195, 30), (300, 600))
    assert image[:, :150].any() and not image[:, 153:].any()


@pytest.mark.parametrize("style", ["areas", "hatch", "plain", "points"])
def test_no_seams_at_the_antimeridian(server, style):
    """Parts of a map across it equal the map, pixel by pixel; and a whole turn further all is the same."""
    width = 256 * 2 ** LEVEL
    numbers = random.Random(style)
    for data in (f"near_{style}", f"pacific_{style}", f"near_{style}_table", f"near_{style}_query"):
        left, top = width - 500, width // 2 - 300
        whole = on_level(server, data, left, top, 900, 600)
        assert whole[:, :480].any() and whole[:, 520:].any()
        for _ in range(12):
            x, y = numbers.choice((500 - 256, 500 - numbers.randint(1, 255), 500, numbers.randint(0, 644))), numbers.randint(0, 344)
            assert numpy.array_equal(on_level(server, data, left + x, top + y, 256, 256), whole[y:y + 256, x:x + 256]), (data, x, y)
        if style != "hatch":  # patterns go on for ever, and have a width of their own
            assert numpy.array_equal(on_level(server, data, left - width, top, 900, 600), whole), data


def test_tiles_of_a_grid_that_goes_from_0_to_360(server):
    for style in ("areas", "points"):
        for column in (0, 1, 2, 3):
            tile = server.get(f"/wmts/1.0.0/near_{style}/default/pacific/1/0/{column}.png")
            assert tile.status == 200
            west = column * 90
            wanted = draw(server, f"near_{style}_thrice", (west, 0, west + 90, 90), (256, 256))
            assert numpy.array_equal(pixels(tile.body), wanted), (style, column)
            assert column in (0, 3) or wanted.any()


def test_feature_info_on_the_other_side(server):
    """The island's eastern part, in longitudes as they are."""
    for layer in ("near_areas", "near_areas_table", "near_areas_query"):
        query = query_of(layer, (165, -30, 195, 30), (300, 600), "EPSG:4326",
                         f"&QUERY_LAYERS={layer}&INFO_FORMAT=application/json&FEATURE_COUNT=50&X=160&Y=300", "GetFeatureInfo")
        found = [f for f in json.loads(server.get("/", query).body)["features"]
                 if [round(v, 1) for v in f["geometry"]["coordinates"][0][0][0]] in ([-180, -9.2], [-174.4, -6.6], [-180, 7.7])]
        assert len(found) == 1, layer
        assert min(x for x, _ in found[0]["geometry"]["coordinates"][0][0]) >= -180.001


def test_boxes_of_any_width_are_answered(server):
    """No more than nine worlds side by side are read."""
    image = draw(server, "near_areas", (-100000, -90, 100000, 90), (400, 10))
    assert not image[:, :190].any() and not image[:, 210:].any()


def test_areas_of_a_projection_for_which_the_antimeridian_is_nothing_special(server):
    """Each of them is whole, on both sides of every seam, and where it is in degrees."""
    for box in ((HALF - 2e6, -4e6, HALF + 2e6, 4e6), (-HALF - 2e6, -4e6, -HALF + 2e6, 4e6), (HALF - 3e6, -4e6, HALF + 1e6, 4e6)):
        wanted = draw(server, "pacific_areas", box, (500, 1000), "EPSG:3857")
        for layer in ("ocean", "ocean_binary", "ocean_twkb"):
            image = draw(server, layer, box, (500, 1000), "EPSG:3857")
            assert (abs(image - wanted).max(axis=2) > 64).mean() < 0.002, (layer, box)

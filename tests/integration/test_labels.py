"""Labels as servers draw them: never cut by the edge of a metatile or a map, the same from a database and a file, with
what QGIS and GeoServer export; and a process without labels never loads what they need."""
import io
import os
import pathlib
import random
import subprocess

import numpy
import pytest
from conftest import GRID
from fastcgi import Server
from osgeo import ogr, osr
from patience import patience
from PIL import Image
from postgres import Postgres

HALF = 20037508.342789248
METATILE = 2
NAMES = ("Zürich", "Οδός Σταδίου", "القاهرة الجديدة", "ירושלים 12", "Ål", "St. Gallen (Nord)", "Wjgy", "a", "x\u0303 ffi",
         "Llanfairpwllgwyngyllgogerychwyrndrobwll")
SLD = """<StyledLayerDescriptor version="1.0.0" xmlns="http://www.opengis.net/sld" xmlns:ogc="http://www.opengis.net/ogc">
 <NamedLayer><Name>a</Name><UserStyle><FeatureTypeStyle><Rule>{}</Rule></FeatureTypeStyle></UserStyle></NamedLayer>
 </StyledLayerDescriptor>"""
LABEL = """<TextSymbolizer><Label><ogc:PropertyName>name</ogc:PropertyName></Label>
 <Font><CssParameter name="font-family">DejaVu Sans</CssParameter><CssParameter name="font-size">{size}</CssParameter></Font>
 {placement}<Halo><Radius>2.5</Radius><Fill><CssParameter name="fill">#ffffff</CssParameter></Fill></Halo>
 <Fill><CssParameter name="fill">#800000</CssParameter></Fill><Priority><ogc:PropertyName>rank</ogc:PropertyName></Priority>
 {options}</TextSymbolizer>"""
ALONG = "<LabelPlacement><LinePlacement/></LabelPlacement>"
AROUND = '<VendorOption name="maxDisplacement">40</VendorOption><VendorOption name="autoWrap">90</VendorOption>'
PLATE = """<Graphic><Mark><WellKnownName>shield</WellKnownName><Fill><CssParameter name="fill">#ffe080</CssParameter></Fill>
 <Stroke><CssParameter name="stroke-width">3</CssParameter></Stroke></Mark></Graphic>
 <VendorOption name="graphic-resize">stretch</VendorOption><VendorOption name="graphic-margin">4 9</VendorOption>"""

# As QGIS writes a rule of labels along lines.
QGIS = """<StyledLayerDescriptor xmlns="http://www.opengis.net/sld" xmlns:ogc="http://www.opengis.net/ogc" version="1.1.0"
  xmlns:se="http://www.opengis.net/se" xmlns:xlink="http://www.w3.org/1999/xlink"><NamedLayer><se:Name>roads</se:Name>
 <UserStyle><se:Name>roads</se:Name><se:FeatureTypeStyle><se:Rule><se:TextSymbolizer>
  <se:Label><ogc:PropertyName>name</ogc:PropertyName></se:Label>
  <se:Font><se:SvgParameter name="font-family">DejaVu Serif</se:SvgParameter><se:SvgParameter name="font-size">13</se:SvgParameter>
   <se:SvgParameter name="font-weight">bold</se:SvgParameter></se:Font>
  <se:LabelPlacement><se:LinePlacement><se:GeneralizeLine>true</se:GeneralizeLine></se:LinePlacement></se:LabelPlacement>
  <se:Halo><se:Radius>1.5</se:Radius><se:Fill><se:SvgParameter name="fill">#fafafa</se:SvgParameter></se:Fill></se:Halo>
  <se:Fill><se:SvgParameter name="fill">#323232</se:SvgParameter></se:Fill>
  <se:VendorOption name="followLine">true</se:VendorOption><se:VendorOption name="maxAngleDelta">25</se:VendorOption>
 </se:TextSymbolizer></se:Rule></se:FeatureTypeStyle></UserStyle></NamedLayer></StyledLayerDescriptor>"""
# What GeoServer's users write: mixed content, a function, options.
GEOSERVER = SLD.format("""<TextSymbolizer><Label>No. <ogc:PropertyName>rank</ogc:PropertyName><![CDATA[
 ]]><ogc:Function name="strToUpperCase"><ogc:PropertyName>name</ogc:PropertyName></ogc:Function></Label>
 <Font><CssParameter name="font-family">DejaVu Sans</CssParameter><CssParameter name="font-size"><ogc:Add>
  <ogc:Literal>8</ogc:Literal><ogc:PropertyName>rank</ogc:PropertyName></ogc:Add></CssParameter>
  <CssParameter name="font-style">italic</CssParameter></Font>
 <LabelPlacement><PointPlacement><AnchorPoint><AnchorPointX>0.5</AnchorPointX><AnchorPointY>0.5</AnchorPointY></AnchorPoint>
  <Displacement><DisplacementX>0</DisplacementX><DisplacementY>5</DisplacementY></Displacement>
  <Rotation>-20</Rotation></PointPlacement></LabelPlacement>
 <VendorOption name="group">yes</VendorOption><VendorOption name="spaceAround">5</VendorOption>
 <VendorOption name="conflictResolution">true</VendorOption></TextSymbolizer>""")


def make_shapes(path):
    """1500 named points, lines and areas of the world; of all sizes. Returns what a table needs."""
    numbers = random.Random(11)
    reference = osr.SpatialReference()
    reference.ImportFromEPSG(3857)
    rows = []
    for kind, wkb in (("points", ogr.wkbPoint), ("lines", ogr.wkbLineString), ("areas", ogr.wkbPolygon)):
        data = ogr.GetDriverByName("ESRI Shapefile").CreateDataSource(str(path / f"{kind}.shp"))
        layer = data.CreateLayer(kind, reference, wkb, ["ENCODING=UTF-8"])
        field = ogr.FieldDefn("name", ogr.OFTString)
        field.SetWidth(100)
        layer.CreateField(field)
        layer.CreateField(ogr.FieldDefn("rank", ogr.OFTInteger))
        for number in range(500):
            x, y, size = numbers.uniform(-HALF, HALF), numbers.uniform(-HALF, HALF), 10 ** numbers.uniform(4.5, 6.5)
            steps = [(x + size * numbers.uniform(-1, 1), y + size * numbers.uniform(-1, 1)) for _ in range(6)]
            geometry = ogr.Geometry(wkb)
            if kind == "areas":
                ring = ogr.Geometry(ogr.wkbLinearRing)
                for step in [(x, y), (x + size, y), (x + size * 0.7, y + size), (x, y + size * 0.4), (x, y)]:
                    ring.AddPoint_2D(*step)
                geometry.AddGeometry(ring)
            for step in {"points": [(x, y)], "lines": sorted(steps), "areas": []}[kind]:
                geometry.AddPoint_2D(*step)
            feature = ogr.Feature(layer.GetLayerDefn())
            name, rank = NAMES[number % len(NAMES)], numbers.randint(0, 9)
            feature.SetField("name", name)
            feature.SetField("rank", rank)
            feature.SetGeometry(geometry)
            layer.CreateFeature(feature)
            if kind == "areas":
                rows.append((number, name, rank, geometry.ExportToWkb().hex()))
    return rows


@pytest.fixture(scope="module")
def database():
    with Postgres() as server:
        server.sql("CREATE EXTENSION postgis")
        yield server


@pytest.fixture(scope="module")
def site(shared_folder, database):
    folder = shared_folder
    rows = make_shapes(folder)
    database.sql("CREATE TABLE areas(gid int, name text, rank int, geom geometry(Polygon, 3857))")
    random.Random(5).shuffle(rows)
    for number, name, rank, wkb in rows:
        database.sql(f"INSERT INTO areas VALUES ({number}, '{name}', {rank}, ST_GeomFromWKB('\\x{wkb}'::bytea, 3857))")
    database.sql("CREATE INDEX ON areas USING gist (geom)")  # some reach over the antimeridian: it says how far
    styles = {"plain": SLD.format(LABEL.format(size=12, placement="", options="")),
              "large": SLD.format(LABEL.format(size=27, placement="", options=PLATE + AROUND)),
              "along": SLD.format(LABEL.format(size=12, placement=ALONG,
                                               options='<VendorOption name="repeat">120</VendorOption>')),
              "plates": SLD.format(LABEL.format(size=11, placement=ALONG, options=PLATE)),
              "qgis": QGIS, "geoserver": GEOSERVER,
              "none": SLD.format("<LineSymbolizer><Stroke/></LineSymbolizer>")}
    for name, text in styles.items():
        (folder / f"{name}.sld").write_text(text)

    def layer(kind, style):
        return f"<layer><data>{folder}/{kind}.shp</data><style>{folder}/{style}.sld</style></layer>"

    sources = {"all": layer("areas", "plain") + layer("lines", "along") + layer("lines", "plates") + layer("points", "large"),
               "areas": layer("areas", "plain"), "qgis": layer("lines", "qgis"),
               "geoserver": layer("points", "geoserver"), "none": layer("lines", "none")}
    text = "".join(f'<source name="{name}" type="shapefile">{layers}</source>' for name, layers in sources.items())
    text += (f'<source name="table" type="postgis"><layer><connection>{database.connection()}</connection>'
             f'<table>public.areas</table><id>gid</id><transfer>binary</transfer><style>{folder}/plain.sld</style></layer></source>')
    text += "".join(f'<tileset name="{name}"><source>{name}</source><cache>disk</cache><grid>{GRID}</grid>'
                    f"<format>PNG</format><metatile>{METATILE} {METATILE}</metatile></tileset>" for name in [*sources, "table"])
    config = folder / "labels.xml"
    config.write_text(f"""<mapcache><cache name="disk" type="disk"><base>{folder}/cache</base></cache>{text}
      <default_format>PNG</default_format><service type="wms" enabled="true"><full_wms>forward</full_wms>
      <format allow_client_override="true">PNG</format><maxsize>4096</maxsize></service><service type="wmts" enabled="true"/>
      <locker type="disk"><directory>{folder}</directory></locker></mapcache>""")
    return config


@pytest.fixture(scope="module")
def server(build, site):
    running = Server(build, site, site.parent)
    yield running
    running.stop()


def pixels(body):
    return numpy.asarray(Image.open(io.BytesIO(body)).convert("RGBA"))


def drawn(server, layer, box, width, height):
    reply = server.get("/", f"SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&STYLES=&LAYERS={layer}&SRS=EPSG:3857&FORMAT=image/png"
                            f"&BBOX={','.join(map(repr, box))}&WIDTH={width}&HEIGHT={height}")
    assert reply.status == 200, reply.body
    return pixels(reply.body)


def modules_of(server):
    return pathlib.Path(f"/proc/{server.program.process.pid}/maps").read_text()


def assert_edge_is_free(picture):
    for edge in (picture[0], picture[-1], picture[:, 0], picture[:, -1]):
        assert not edge[..., 3].any()


def test_a_process_that_draws_no_labels_does_not_load_what_they_need(server):
    assert drawn(server, "none", (-HALF, -HALF, HALF, HALF), 300, 300).any()
    for name in ("mapcache-text.so", "libharfbuzz", "libfontconfig"):
        assert name not in modules_of(server)
    assert drawn(server, "areas", (-HALF, -HALF, HALF, HALF), 300, 300).any()
    assert "mapcache-text.so" in modules_of(server)


def test_no_label_touches_the_edge_of_its_metatile(server):
    numbers = random.Random(3)
    labelled = 0
    for _ in range(300):
        z = numbers.randint(1, 6)
        x, y = (METATILE * numbers.randrange(2 ** z // METATILE) for _ in range(2))
        rows = []
        for row in range(METATILE):
            tiles = [server.get(f"/wmts/1.0.0/all/default/{GRID}/{z}/{y + row}/{x + column}.png") for column in range(METATILE)]
            assert all(reply.status == 200 for reply in tiles), tiles[0].body
            rows.append(numpy.concatenate([pixels(reply.body) for reply in tiles], axis=1))
        picture = numpy.concatenate(rows)
        assert_edge_is_free(picture)
        labelled += bool(picture.any())
    assert labelled > 150


def test_no_label_touches_the_edge_of_a_map(server):
    numbers = random.Random(4)
    for _ in range(60):
        size = 10 ** numbers.uniform(5.5, 7.3)
        x, y = numbers.uniform(-HALF, HALF - size), numbers.uniform(-HALF, HALF - size)
        width, height = numbers.randint(40, 900), numbers.randint(40, 900)
        assert_edge_is_free(drawn(server, "all", (x, y, x + size, y + size * height / width), width, height))
    assert drawn(server, "all", (-HALF, -HALF, HALF, HALF), 900, 900).any()


def test_the_order_in_which_features_come_does_not_matter(server):
    """The table has them in another order than the file; ids and priorities are the same."""
    numbers = random.Random(6)
    for _ in range(12):
        size = 10 ** numbers.uniform(6, 7.3)
        x, y = numbers.uniform(-HALF, HALF - size), numbers.uniform(-HALF, HALF - size)
        box = (x, y, x + size, y + size)
        from_table = drawn(server, "table", box, 400, 400)
        assert from_table.any()
        assert numpy.array_equal(from_table, drawn(server, "areas", box, 400, 400))


@pytest.mark.parametrize("layer", ["qgis", "geoserver"])
def test_styles_of_other_programs_are_drawn(server, layer):
    picture = drawn(server, layer, (-HALF, -HALF, HALF, HALF), 1000, 1000)
    assert (picture[..., 3] == 255).sum() > 500


def test_check_finds_nothing_wrong_with_what_is_supported(build, site, modules_environment):
    checked = subprocess.run([build / "bin/mapcache", "check", site], env={**os.environ, **modules_environment}, timeout=patience(60),
                             capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_check_names_what_is_missing(build, site, folder, modules_environment):
    style = (site.parent / "plain.sld").read_text()
    style = style.replace(">DejaVu Sans<", ">No Such Font<").replace(
        "</TextSymbolizer>", '<Novelty/><VendorOption name="charSpacing">3</VendorOption></TextSymbolizer>')
    (folder / "bad.sld").write_text(style)
    config = folder / "bad.xml"
    config.write_text(site.read_text().replace(f"{site.parent}/plain.sld", f"{folder}/bad.sld"))
    checked = subprocess.run([build / "bin/mapcache", "check", config], env={**os.environ, **modules_environment}, timeout=patience(60),
                             capture_output=True, text=True, check=False)
    output = checked.stdout + checked.stderr
    assert checked.returncode == 2, output
    for words in ('"No Such Font" can be found: "', "<Novelty> of a label", 'the option "charSpacing" of a label'):
        assert words in output

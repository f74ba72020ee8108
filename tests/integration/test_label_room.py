"""Where labels may not be: on symbols, on each other, across the layers of a map that is drawn in one go; and where they go instead."""
import io
import os
import random
import subprocess

import numpy
import pytest
from conftest import GRID
from fastcgi import Server
from osgeo import ogr, osr
from patience import patience
from PIL import Image

HALF = 20037508.342789248
WORLD = (-HALF, -HALF, HALF, HALF)
SLD = """<StyledLayerDescriptor version="1.0.0" xmlns="http://www.opengis.net/sld" xmlns:ogc="http://www.opengis.net/ogc">
 <NamedLayer><Name>a</Name><UserStyle><FeatureTypeStyle><Rule>{}</Rule></FeatureTypeStyle></UserStyle></NamedLayer>
 </StyledLayerDescriptor>"""
DOT = """<PointSymbolizer><Graphic><Mark><WellKnownName>{mark}</WellKnownName><Fill><CssParameter name="fill">#0000ff</CssParameter></Fill></Mark>
 <Size>{size}</Size></Graphic>{options}</PointSymbolizer>"""
TEXT = """<TextSymbolizer><Label><ogc:PropertyName>name</ogc:PropertyName></Label>
 <Font><CssParameter name="font-family">DejaVu Sans</CssParameter><CssParameter name="font-size">{size}</CssParameter></Font>
 {placement}<Fill><CssParameter name="fill">{color}</CssParameter></Fill>{options}</TextSymbolizer>"""
# A label that is a rectangle of one colour, letters and all.
PLATE = """<Graphic><Mark><WellKnownName>square</WellKnownName><Fill><CssParameter name="fill">{color}</CssParameter></Fill></Mark>
 <Size>{size}</Size></Graphic>"""
CENTRED = """<LabelPlacement><PointPlacement><AnchorPoint><AnchorPointX>0.5</AnchorPointX><AnchorPointY>0.5</AnchorPointY></AnchorPoint>
 </PointPlacement></LabelPlacement>"""
OFF = '<VendorOption name="labelObstacle">false</VendorOption>'
ON = OFF.replace("false", "true")
DOTS = DOT.format(mark="circle", size=9, options="")


def option(name, value):
    return f'<VendorOption name="{name}">{value}</VendorOption>'


def plate(color, **more):
    values = {"size": 8, "placement": "", "options": PLATE.format(color=color, size=20), **more}
    return TEXT.format(color=color, **values)


STYLES = {
    "dots": DOTS,
    "named": DOTS + TEXT.format(size=10, placement="", color="#ff0000", options=""),
    "careless": DOT.format(mark="circle", size=9, options=OFF) + TEXT.format(size=10, placement="", color="#ff0000", options=""),
    "numbers": DOT.format(mark="circle", size=30, options="") + TEXT.format(size=8, placement=CENTRED, color="#ff0000", options=""),
    "names": TEXT.format(size=10, placement="", color="#ff0000", options=""),
    "red": plate("#ff0000", placement=CENTRED), "green": plate("#00ff00", placement=CENTRED),
    "roads": '<LineSymbolizer><Stroke><CssParameter name="stroke">#0000ff</CssParameter><CssParameter name="stroke-width">5</CssParameter>'
             f"</Stroke>{ON}</LineSymbolizer>",
    "shields": plate("#ff0000", options=PLATE.format(color="#ff0000", size=20) + option("repeat", 100)),
    "along": TEXT.format(size=14, placement="<LabelPlacement><LinePlacement/></LabelPlacement>", color="#ff0000",
                         options=option("underlineText", "true")),
    "underlined": TEXT.format(size=20, placement="", color="#ff0000", options=option("underlineText", "true")),
    "cut": TEXT.format(size=20, placement="", color="#ff0000", options=option("partials", "true")),
    "areas": DOT.format(mark="square", size=16, options="") + TEXT.format(size=10, placement="", color="#ff0000", options=""),
}


def write(folder, name, kind, things):
    """Things: WKT and name."""
    reference = osr.SpatialReference()
    reference.ImportFromEPSG(3857)
    data = ogr.GetDriverByName("ESRI Shapefile").CreateDataSource(str(folder / f"{name}.shp"))
    layer = data.CreateLayer(name, reference, kind, ["ENCODING=UTF-8"])
    layer.CreateField(ogr.FieldDefn("name", ogr.OFTString))
    for wkt, label in things:
        feature = ogr.Feature(layer.GetLayerDefn())
        feature.SetField("name", label)
        feature.SetGeometry(ogr.CreateGeometryFromWkt(wkt))
        layer.CreateFeature(feature)


@pytest.fixture(scope="module")
def server(build, shared_folder):
    folder, numbers = shared_folder, random.Random(8)
    words = ("Ulm", "Graz", "Bergamo", "Saarbrücken", "Aix", "Winterthur")
    write(folder, "towns", ogr.wkbPoint, [(f"POINT({numbers.uniform(-HALF, HALF)} {numbers.uniform(-HALF, HALF)})", words[i % 6])
                                          for i in range(252)])
    write(folder, "villages", ogr.wkbPoint, [(f"POINT({numbers.uniform(-HALF, HALF)} {numbers.uniform(-HALF, HALF)})", words[i % 6])
                                             for i in range(400)])
    write(folder, "pairs", ogr.wkbPoint, [(f"POINT({x * 4e6} {y * 4e6})", "A") for x in range(-4, 5) for y in range(-4, 5)])
    write(folder, "lines", ogr.wkbLineString, [(f"LINESTRING(-{HALF * 0.9} -{HALF * 0.7}, {HALF * 0.9} {HALF * 0.7})", "A 12")])
    write(folder, "net", ogr.wkbLineString, [(f"LINESTRING({x * 2e6} -{HALF}, {x * 2e6} {HALF})", "x") for x in range(-9, 10)])
    write(folder, "edge", ogr.wkbPoint, [(f"POINT({HALF * 0.97} 0)", "Edgeworthstown")])
    write(folder, "fields", ogr.wkbPolygon, [(f"POLYGON(({x} {y}, {x + 5e6} {y}, {x + 5e6} {y + 5e6}, {x} {y + 5e6}, {x} {y}))", "field")
                                             for x in (-15e6, -5e6, 5e6) for y in (-15e6, -5e6, 5e6)])
    data = {"dots": "towns", "named": "towns", "careless": "towns", "numbers": "pairs", "names": "villages", "red": "pairs",
            "green": "pairs", "roads": "net", "shields": "lines", "along": "lines", "underlined": "pairs", "cut": "edge",
            "areas": "fields"}
    text = ""
    for name, style in STYLES.items():
        (folder / f"{name}.sld").write_text(SLD.format(style))
        text += (f'<source name="{name}" type="shapefile"><layer><data>{folder}/{data[name]}.shp</data><style>{folder}/{name}.sld</style>'
                 f'</layer></source><tileset name="{name}"><source>{name}</source><cache>disk</cache><grid>{GRID}</grid>'
                 "<format>PNG</format><metatile>1 1</metatile><metabuffer>30</metabuffer></tileset>")
    config = folder / "room.xml"
    config.write_text(f"""<mapcache><cache name="disk" type="disk"><base>{folder}/cache</base></cache>{text}
      <default_format>PNG</default_format><service type="wms" enabled="true"><full_wms>forward</full_wms>
      <format allow_client_override="true">PNG</format><maxsize>4096</maxsize></service><service type="wmts" enabled="true"/>
      <locker type="disk"><directory>{folder}</directory></locker></mapcache>""")
    running = Server(build, config, folder)
    running.config = config
    yield running
    running.stop()


def pixels(body):
    return numpy.asarray(Image.open(io.BytesIO(body)).convert("RGBA")).astype(int)


def drawn(server, layers, size=700, box=WORLD):
    reply = server.get("/", f"SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&STYLES=&LAYERS={layers}&SRS=EPSG:3857&FORMAT=image/png"
                            f"&TRANSPARENT=TRUE&BBOX={','.join(map(repr, box))}&WIDTH={size}&HEIGHT={size}")
    assert reply.status == 200, reply.body
    return pixels(reply.body)


def ink(image, color):
    """Where the map has about this colour of three."""
    channel = "rgb".index(color)
    others = [i for i in range(3) if i != channel]
    return (image[..., 3] > 100) & (image[..., channel] > 150) & (image[..., others].max(axis=2) < 100)


def parts(mask, reach=1):
    """Boxes (rows, columns) of what hangs together; gaps of less than `reach` pixels do not part."""
    left, boxes = set(zip(*map(list, numpy.nonzero(mask)))), []
    around = [(y, x) for y in range(-reach, reach + 1) for x in range(-reach, reach + 1)]
    while left:
        todo, seen = [left.pop()], []
        while todo:
            y, x = todo.pop()
            seen.append((y, x))
            near = [(y + dy, x + dx) for dy, dx in around if (y + dy, x + dx) in left]
            left.difference_update(near)
            todo += near
        rows, columns = zip(*seen)
        boxes.append((slice(min(rows), max(rows) + 1), slice(min(columns), max(columns) + 1)))
    return boxes


def covered_dots(image, bare):
    return int((abs(image - bare).max(axis=2)[bare[..., 3] == 255] > 40).sum())


def test_labels_keep_off_the_symbols_of_their_layer(server):
    bare, named, careless = (drawn(server, layer) for layer in ("dots", "named", "careless"))
    assert covered_dots(named, bare) == 0
    assert covered_dots(careless, bare) > 200
    assert ink(named, "r").sum() > 0.7 * ink(careless, "r").sum()  # they have gone to other places, not away


def test_labels_keep_off_symbols_of_other_layers_and_tilesets(server):
    bare = drawn(server, "dots")
    for layers in ("dots,names", "names,dots"):
        both = drawn(server, layers)
        assert covered_dots(both, bare) == 0, layers
        assert ink(both, "r").sum() > 2000
    assert covered_dots(drawn(server, "careless,names"), bare) > 0


def test_a_label_that_is_meant_to_lie_on_its_symbol_stays_there(server):
    image = drawn(server, "numbers")
    symbols = parts(ink(image, "b") | ink(image, "r"), 2)
    assert len(symbols) == 81
    assert all(ink(image, "r")[part].any() for part in symbols)


def test_labels_of_tilesets_that_are_drawn_in_one_go_keep_off_each_other(server):
    """Both layers label the same points with plates of 20x20 pixels."""
    alone, both = drawn(server, "red"), drawn(server, "green,red")
    assert ink(alone, "r").sum() == 81 * 400
    assert ink(both, "r").sum() == 81 * 400  # upper layers first
    assert not ink(both, "g").any()  # the others would lie under them


def test_lines_are_obstacles_where_the_style_says_so(server):
    bare, both = drawn(server, "roads"), drawn(server, "roads,names")
    assert covered_dots(both, bare) == 0
    assert ink(both, "r").sum() > 1000


def test_labels_of_areas_step_aside_of_their_icons(server):
    image = drawn(server, "areas")
    assert ink(image, "b").sum() == 9 * 16 * 16
    assert len(parts(ink(image, "r"), 6)) == 9


def test_shields_stand_upright_again_and_again_along_a_line(server):
    boxes = parts(ink(drawn(server, "shields"), "r"))
    assert 6 <= len(boxes) <= 8
    assert all((y.stop - y.start, x.stop - x.start) == (20, 20) for y, x in boxes), boxes


def test_text_is_underlined(server):
    image = ink(drawn(server, "underlined"), "r")
    letters = parts(image, 3)
    assert len(letters) == 81
    for part in letters:
        letter = image[part]
        assert letter[-1].all()  # as wide as the letter, or wider
        assert not letter[-3].all()
    turned = drawn(server, "along")[..., 3] > 128
    assert len(parts(turned)) <= 5  # the line, perhaps letters over it


def test_partial_labels_are_cut_by_maps_and_never_by_tiles(server):
    whole = drawn(server, "cut", 300)
    assert ink(whole, "r")[:, -3:].any()
    for z, x, y in ((0, 0, 0), (1, 1, 0), (1, 1, 1), (2, 3, 1), (2, 3, 2)):
        reply = server.get(f"/wmts/1.0.0/cut/default/{GRID}/{z}/{y}/{x}.png")
        assert reply.status == 200
        assert not pixels(reply.body)[:, -1, 3].any()


def test_labels_of_tiles_do_not_lie_in_a_metabuffer(server):
    """They would be cut where it is cut off."""
    for z, x, y in [(2, x, y) for x in range(4) for y in range(4)]:
        reply = server.get(f"/wmts/1.0.0/names/default/{GRID}/{z}/{y}/{x}.png")
        image = pixels(reply.body)[..., 3]
        assert not (image[0].any() or image[-1].any() or image[:, 0].any() or image[:, -1].any())


def test_check_knows_the_options(build, server, modules_environment):
    checked = subprocess.run([build / "bin/mapcache", "check", server.config], env={**os.environ, **modules_environment},
                             timeout=patience(60), capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr

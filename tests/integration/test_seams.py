"""Tiles have no seams: 500 random ones are, pixel by pixel, what the same map shows that is drawn at once."""
import math
import random

import numpy
import pytest
from conftest import GRID, png, sanitizer_environment
from osgeo import ogr, osr
from postgres import Postgres
from test_drawing import HALF, PLAIN, RICH, blob, drawn, pixels

COUNT = 4     # tiles of a map that is drawn at once, in each direction
LEVELS = [0, 2, 5, 8]
LINES = """<StyledLayerDescriptor version="1.0.0" xmlns="http://www.opengis.net/sld"><NamedLayer><Name>a</Name><UserStyle>
  <Name>one</Name><FeatureTypeStyle><Rule><LineSymbolizer><Stroke><CssParameter name="stroke">#ffffff</CssParameter>
    <CssParameter name="stroke-width">9</CssParameter><CssParameter name="stroke-linecap">round</CssParameter>
    <CssParameter name="stroke-opacity">0.7</CssParameter></Stroke></LineSymbolizer></Rule></FeatureTypeStyle>
  <FeatureTypeStyle><Rule><LineSymbolizer><Stroke><CssParameter name="stroke">#a03060</CssParameter>
    <CssParameter name="stroke-width">4</CssParameter><CssParameter name="stroke-dasharray">13 4 2 4</CssParameter>
    <CssParameter name="stroke-linejoin">bevel</CssParameter></Stroke></LineSymbolizer>
    <LineSymbolizer><Stroke><CssParameter name="stroke">#2060a0</CssParameter><CssParameter name="stroke-width">1.5</CssParameter>
    </Stroke><PerpendicularOffset>7</PerpendicularOffset></LineSymbolizer></Rule></FeatureTypeStyle>
  </UserStyle></NamedLayer></StyledLayerDescriptor>"""
MARKS = """<StyledLayerDescriptor version="1.0.0" xmlns="http://www.opengis.net/sld"><NamedLayer><Name>a</Name><UserStyle>
  <Name>one</Name><FeatureTypeStyle><Rule><PointSymbolizer><Graphic><Mark><WellKnownName>star</WellKnownName>
    <Fill><CssParameter name="fill">#e0a000</CssParameter><CssParameter name="fill-opacity">0.8</CssParameter></Fill>
    <Stroke><CssParameter name="stroke">#403000</CssParameter><CssParameter name="stroke-width">2</CssParameter></Stroke></Mark>
    <Size>25</Size><Rotation><PropertyName>number</PropertyName></Rotation></Graphic></PointSymbolizer></Rule></FeatureTypeStyle>
  </UserStyle></NamedLayer></StyledLayerDescriptor>"""

HATCHES = """<StyledLayerDescriptor version="1.0.0" xmlns="http://www.opengis.net/sld" xmlns:xlink="http://www.w3.org/1999/xlink"><NamedLayer>
  <Name>a</Name><UserStyle><Name>one</Name><FeatureTypeStyle>
  <Rule><Filter><PropertyIsEqualTo><PropertyName>kind</PropertyName><Literal>wood</Literal></PropertyIsEqualTo></Filter>
    <PolygonSymbolizer><Fill><GraphicFill><Graphic><Mark><WellKnownName>shape://slash</WellKnownName><Stroke>
    <CssParameter name="stroke">#306030</CssParameter><CssParameter name="stroke-width">2</CssParameter></Stroke></Mark><Size>11</Size>
    </Graphic></GraphicFill></Fill></PolygonSymbolizer></Rule>
  <Rule><Filter><PropertyIsEqualTo><PropertyName>kind</PropertyName><Literal>lake</Literal></PropertyIsEqualTo></Filter>
    <PolygonSymbolizer><Fill><GraphicFill><Graphic><ExternalGraphic><OnlineResource xlink:href="wave.png"/><Format>image/png</Format>
    </ExternalGraphic></Graphic></GraphicFill></Fill></PolygonSymbolizer></Rule>
  <Rule><ElseFilter/><PolygonSymbolizer><Fill><GraphicFill><Graphic><Mark><WellKnownName>circle</WellKnownName><Fill>
    <CssParameter name="fill">#c04040</CssParameter></Fill></Mark><Size>7</Size></Graphic></GraphicFill></Fill>
    <Stroke><GraphicStroke><Graphic><Mark><WellKnownName>triangle</WellKnownName><Fill><CssParameter name="fill">#202020</CssParameter>
    </Fill></Mark><Size>9</Size></Graphic></GraphicStroke></Stroke></PolygonSymbolizer></Rule>
  </FeatureTypeStyle></UserStyle></NamedLayer></StyledLayerDescriptor>"""
PICTURES = """<StyledLayerDescriptor version="1.0.0" xmlns="http://www.opengis.net/sld" xmlns:xlink="http://www.w3.org/1999/xlink"><NamedLayer>
  <Name>a</Name><UserStyle><Name>one</Name><FeatureTypeStyle><Rule><PointSymbolizer><Graphic><ExternalGraphic>
  <OnlineResource xlink:href="house.svg"/><Format>image/svg+xml</Format></ExternalGraphic><Size>31</Size>
  <Rotation><PropertyName>number</PropertyName></Rotation></Graphic></PointSymbolizer></Rule></FeatureTypeStyle></UserStyle></NamedLayer>
  </StyledLayerDescriptor>"""
HOUSE = """<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20" viewBox="0 0 20 20">
  <path d="M2 10 L10 2 L18 10 L18 19 L2 19 Z" fill="#d08050" stroke="#402010"/><circle cx="10" cy="11" r="3" fill="#fff"/></svg>"""

LABELS = """<StyledLayerDescriptor version="1.0.0" xmlns="http://www.opengis.net/sld"><NamedLayer><Name>a</Name><UserStyle>
  <Name>one</Name><FeatureTypeStyle><Rule><TextSymbolizer><Label>Number <PropertyName>number</PropertyName></Label>
  <Font><CssParameter name="font-family">DejaVu Sans</CssParameter><CssParameter name="font-size">15</CssParameter></Font>
  <LabelPlacement>{}</LabelPlacement><Halo><Radius>2.5</Radius><Fill><CssParameter name="fill">#ffe0a0</CssParameter></Fill></Halo>
  <Fill><CssParameter name="fill">#301060</CssParameter></Fill></TextSymbolizer></Rule></FeatureTypeStyle></UserStyle></NamedLayer>
  </StyledLayerDescriptor>"""
ON_POINTS = LABELS.format("<PointPlacement><Displacement><DisplacementX>9</DisplacementX><DisplacementY>3</DisplacementY></Displacement>"
                          "</PointPlacement>")
ALONG_LINES = LABELS.format("<LinePlacement><PerpendicularOffset>8</PerpendicularOffset></LinePlacement>")


def path(numbers):
    """A line of some hundred kilometres to once around the world."""
    geometry = ogr.Geometry(ogr.wkbLineString)
    x, y, angle = numbers.uniform(-HALF, HALF), numbers.uniform(-HALF, HALF), numbers.uniform(0, 7)
    step = 10 ** numbers.uniform(3.5, 6)
    for _ in range(numbers.randint(2, 60)):
        geometry.AddPoint_2D(x, y)
        angle += numbers.gauss(0, 0.7)
        x, y = x + step * math.cos(angle), y + step * math.sin(angle)
    return geometry


def place(numbers):
    geometry = ogr.Geometry(ogr.wkbPoint)
    geometry.AddPoint_2D(numbers.uniform(-HALF, HALF), numbers.uniform(-HALF, HALF))
    return geometry


def area(numbers):
    return blob(numbers, numbers.uniform(-HALF, HALF), numbers.uniform(-HALF, HALF), 10 ** numbers.uniform(4, 6.3))


def reference(code):
    found = osr.SpatialReference()
    found.ImportFromEPSG(code)
    found.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    return found


def area_in_degrees(numbers):
    """Inside of the world, whose edges are no lines in degrees."""
    geometry = blob(numbers, *(numbers.uniform(-0.7 * HALF, 0.7 * HALF) for _ in range(2)), 10 ** numbers.uniform(4, 6.3))
    geometry.Transform(osr.CoordinateTransformation(reference(3857), reference(4326)))
    return geometry


#        name of the data: shape, kind, how many, EPSG number
KINDS = {"areas": (area, ogr.wkbPolygon, 300, 3857), "paths": (path, ogr.wkbLineString, 300, 3857),
         "places": (place, ogr.wkbPoint, 2000, 3857), "degrees": (area_in_degrees, ogr.wkbPolygon, 300, 4326)}
#        name of the layer: data, style
STYLES = {"plain": ("areas", PLAIN), "rich": ("areas", RICH), "outlines": ("areas", LINES), "lines": ("paths", LINES),
          "marks": ("places", MARKS), "hatches": ("areas", HATCHES), "pictures": ("places", PICTURES),
          "degrees": ("degrees", RICH)}
LABELLED = {"label-places": ("places", ON_POINTS), "label-paths": ("paths", ALONG_LINES), "label-areas": ("areas", ON_POINTS)}
METATILE = 3  # tiles in each direction, where there are more than one
TILES = 500 // (3 * len(STYLES)) + 1


def make(folder, name):
    """A shapefile, and the same rows as a file for COPY."""
    shape, kind, count, code = KINDS[name]
    numbers = random.Random(name)
    data = ogr.GetDriverByName("ESRI Shapefile").CreateDataSource(str(folder / f"{name}.shp"))
    layer = data.CreateLayer(name, reference(code), kind, ["SPATIAL_INDEX=NO"])
    layer.CreateField(ogr.FieldDefn("kind", ogr.OFTString))
    layer.CreateField(ogr.FieldDefn("number", ogr.OFTInteger))
    with open(folder / f"{name}.copy", "w", encoding="ascii") as rows:
        for number in range(count):
            feature = ogr.Feature(layer.GetLayerDefn())
            feature.SetField("kind", ("wood", "lake", "heath")[number % 3])
            feature.SetField("number", number)
            feature.SetGeometry(shape(numbers))
            layer.CreateFeature(feature)
            rows.write(f"{number}\t{feature.GetField('kind')}\t{feature.GetGeometryRef().ExportToWkb().hex()}\n")


@pytest.fixture(scope="module")
def database(shared_folder):
    with Postgres() as server:
        server.sql("CREATE EXTENSION postgis")
        for name, (_, _, _, code) in KINDS.items():
            make(shared_folder, name)
            server.sql(f"CREATE TABLE {name}(number int, kind text, geom geometry)")
            server.sql(f"COPY {name} FROM '{shared_folder}/{name}.copy'")
            server.sql(f"ALTER TABLE {name} ALTER geom TYPE geometry(Geometry, {code}) USING ST_SetSRID(geom, {code})")
        yield server


LAYER = """<source name="{name}" type="{kind}"><layer name="a">{data}<style>{style}</style></layer></source>
<tileset name="{name}"><source>{name}</source><cache>disk</cache><grid>{grid}</grid><format>PNG</format>
  <metatile>{metatile} {metatile}</metatile></tileset>"""


@pytest.fixture(scope="module")
def web(shared_folder, shared_apache, database, build):
    folder, layers = shared_folder, []
    (folder / "house.svg").write_text(HOUSE)
    (folder / "wave.png").write_bytes(png(13, 9, lambda x, y: (40, 60 + 10 * x, 160 + 10 * y)))
    for name, (data, style) in [*STYLES.items(), *LABELLED.items()]:
        (folder / f"{name}.sld").write_text(style)
        table = f"<connection>{database.connection()}</connection><table>{data}</table><id>number</id>"
        for prefix, kind, source, metatile in [("", "shapefile", f"<data>{folder}/{data}.shp</data>", 1),
                                               ("db-", "postgis", table + "<transfer>binary</transfer>", 1),
                                               ("meta-", "postgis", table + "<transfer>twkb</transfer>", METATILE)]:
            layers.append(LAYER.format(name=prefix + name, kind=kind, data=source, style=folder / f"{name}.sld",
                                       metatile=metatile, grid=GRID))
    for file in folder.iterdir():
        file.chmod(0o644)
    (folder / "cache").mkdir()
    (folder / "cache").chmod(0o777)
    (folder / "seams.xml").write_text(f"""<mapcache>
      <cache name="disk" type="disk"><base>{folder}/cache</base></cache>{"".join(layers)}
      <service type="wms" enabled="true"><full_wms>forward</full_wms><format allow_client_override="true">PNG</format>
        <maxsize>4096</maxsize></service>
      <service type="wmts" enabled="true"/><locker type="disk"><directory>{folder}/cache</directory></locker></mapcache>""")
    return shared_apache("seams", f"MapCacheAlias /mc {folder}/seams.xml\n", environment=sanitizer_environment(build))


def tile(web, layer, z, x, y):
    reply = web.get(f"/mc/wmts/1.0.0/{layer}/default/{GRID}/{z}/{y}/{x}.png")
    assert reply.status == 200, reply.body
    return pixels(reply.body)


def visible(image):
    """Pixels without what cannot be seen: the colour of transparent ones."""
    return numpy.where(image[..., 3:] == 0, 0, image)


@pytest.mark.parametrize("layer", [prefix + name for name in STYLES for prefix in ("", "db-", "meta-")])
def test_tiles_have_no_seams(web, layer):
    """As many of each layer, in random places of four levels."""
    numbers = random.Random(layer)
    compared = painted = 0
    while compared < TILES:
        level = LEVELS[compared % len(LEVELS)]
        count = min(2 ** level, COUNT)
        side = 2 * HALF / 2 ** level
        x0, y0 = (numbers.randint(0, 2 ** level - count) for _ in range(2))
        whole = drawn(web, layer, (-HALF + x0 * side, HALF - (y0 + count) * side, -HALF + (x0 + count) * side, HALF - y0 * side),
                      256 * count, 256 * count)
        for x, y in numbers.sample([(x, y) for x in range(count) for y in range(count)], min(6, count * count)):
            part = visible(whole[y * 256:(y + 1) * 256, x * 256:(x + 1) * 256])
            shown = visible(tile(web, layer, level, x0 + x, y0 + y))
            assert numpy.array_equal(shown, part), (level, x0 + x, y0 + y, abs(shown.astype(int) - part).max())
            compared, painted = compared + 1, painted + bool(part.any())
    assert painted > TILES / 2, "too little to see"


@pytest.mark.parametrize("layer", LABELLED)
def test_labels_end_before_the_edge_of_their_metatile(web, layer):
    """On each side of a metatile a row without any ink; and what a label covers goes on from one tile to the next."""
    numbers = random.Random(layer)
    inked = across = 0
    for level in (3, 4, 5, 6, 7):
        for _ in range(2):
            x0, y0 = (METATILE * numbers.randint(0, 2 ** level // METATILE - 1) for _ in range(2))
            y0 = 2 ** level - METATILE - y0  # metatiles are counted from the grid's lower left corner
            whole = numpy.concatenate([numpy.concatenate([tile(web, f"meta-{layer}", level, x0 + x, y0 + y) for x in range(METATILE)], axis=1)
                                       for y in range(METATILE)])
            ink = whole[..., 3] > 0
            inked += ink.sum()
            across += sum((ink[:, 256 * i - 1] & ink[:, 256 * i]).sum() + (ink[256 * i - 1] & ink[256 * i]).sum()
                          for i in range(1, METATILE))
            assert not (ink[0].any() or ink[-1].any() or ink[:, 0].any() or ink[:, -1].any()), (level, x0, y0)
    assert inked > 20000 and across > 100, (inked, across)

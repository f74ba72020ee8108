"""Whole WMS maps drawn at once from vector data (full_wms forward): any size, box and CRS of the tileset, any format,
several layers; each checked against the data itself."""
import io
import random

import numpy
import pytest
from conftest import GRID
from osgeo import ogr, osr
from PIL import Image
from postgres import Postgres
from test_vector_tiles import HALF, features, fill_database, write_shapefile

GREY, RED, GREEN = (208, 208, 208), (200, 0, 0), (0, 160, 0)
AREA = """<PolygonSymbolizer><Fill><CssParameter name="fill">#{}</CssParameter></Fill></PolygonSymbolizer>"""
SLD = """<StyledLayerDescriptor version="1.0.0" xmlns="http://www.opengis.net/sld"><NamedLayer><Name>a</Name><UserStyle>
  <FeatureTypeStyle>{}</FeatureTypeStyle></UserStyle></NamedLayer></StyledLayerDescriptor>"""
LIMIT = 12345678  # a scale denominator: red above it, green below
BY_SCALE = SLD.format(
    f"<Rule><MinScaleDenominator>{LIMIT}</MinScaleDenominator>{AREA.format('c80000')}</Rule>"
    f"<Rule><MaxScaleDenominator>{LIMIT}</MaxScaleDenominator>{AREA.format('00a000')}</Rule>")
DEGREES = 6378137 * 3.141592653589793 / 180  # metres
METRES = osr.SpatialReference()
METRES.ImportFromEPSG(3857)
LONLAT = osr.SpatialReference()
LONLAT.ImportFromEPSG(4326)
for reference in (METRES, LONLAT):
    reference.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)


@pytest.fixture(scope="module")
def areas():
    return [geometry for _, _, geometry in features()["areas"]]


@pytest.fixture(scope="module")
def web(shared_folder, shared_apache):
    folder, content = shared_folder, features()
    for name in ("areas", "lines"):
        write_shapefile(folder, name, content[name])
    (folder / "scale.sld").write_text(BY_SCALE)
    (folder / "grey.sld").write_text(SLD.format(f"<Rule>{AREA.format('d0d0d0')}</Rule>"))
    (folder / "red.sld").write_text(SLD.format(f"<Rule>{AREA.format('c80000')}</Rule>"))
    with Postgres() as server:
        fill_database(server, content)
        table = f"<connection>{server.connection()}</connection><table>areas</table><transfer>binary</transfer>"
        shape = f"<data>{folder}/areas.shp</data>"

        def layer(name, kind, data, style="grey", form="PNG"):
            style = f"<style>{folder}/{style}.sld</style>" if style else ""
            return (f'<source name="{name}" type="{kind}"><layer name="areas">{data}{style}</layer></source>'
                    f'<tileset name="{name}"><source>{name}</source><cache>disk</cache><grid>{GRID}</grid>'
                    f"<grid>WGS84</grid><format>{form}</format></tileset>")

        (folder / "maps.xml").write_text(f"""<mapcache>
          <cache name="disk" type="disk"><base>{folder}/cache</base></cache><format name="mvt" type="MVT"/>
          {layer("table", "postgis", table)}{layer("file", "shapefile", shape)}{layer("tiles", "postgis", table, "grey", "mvt")}
          {layer("scale", "postgis", table, "scale")}{layer("red", "shapefile", shape, "red")}
          <default_format>PNG</default_format>
          <service type="wms" enabled="true"><full_wms>forward</full_wms><format allow_client_override="true">PNG</format>
            <maxsize>8192</maxsize></service></mapcache>""")
        (folder / "cache").mkdir(mode=0o777)
        yield shared_apache("maps", f"MapCacheAlias /mc {folder}/maps.xml\n")


def get(web, layers, box, size, srs="EPSG:3857", form="image/png", more="", status=200):
    reply = web.get(f"/mc?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&STYLES=&LAYERS={layers}&SRS={srs}&FORMAT={form}"
                    f"&BBOX={','.join(map(repr, box))}&WIDTH={size[0]}&HEIGHT={size[1]}{more}")
    assert reply.status == status, reply.body
    return reply


def picture(web, *arguments, **options):
    image = Image.open(io.BytesIO(get(web, *arguments, **options).body))
    return numpy.asarray(image.convert("RGBA"))


def samples(areas, box, size, transform=None, seed=1):
    """Pixels that lie clearly inside or outside of all areas: (column, row, inside)."""
    numbers = random.Random(seed)
    pixel = ((box[2] - box[0]) / size[0], (box[3] - box[1]) / size[1])
    shapes = []
    for area in areas:
        shape = area.Clone()
        if transform is not None:
            shape.Transform(transform)
        shapes.append((shape, shape.GetEnvelope(), shape.Boundary()))
    far, found = 3 * max(pixel), []
    while len(found) < 300:
        column, row = numbers.randrange(size[0]), numbers.randrange(size[1])
        x, y = box[0] + (column + 0.5) * pixel[0], box[3] - (row + 0.5) * pixel[1]
        point = ogr.CreateGeometryFromWkt(f"POINT({x!r} {y!r})")
        near = [(shape, border) for shape, (x0, x1, y0, y1), border in shapes
                if x0 - far < x < x1 + far and y0 - far < y < y1 + far]
        if all(border.Distance(point) > far for _, border in near):
            found.append((column, row, any(shape.Contains(point) for shape, _ in near)))
    return found


def check(image, places, inside, outside):
    kinds = [place[2] for place in places]
    assert 10 < sum(kinds) < len(kinds) - 10
    wrong = [(column, row) for column, row, is_in in places
             if tuple(image[row, column]) != (inside if is_in else outside) and (image[row, column, 3] > 0 or is_in)]
    assert not wrong, wrong[:5]


MAPS = [((-HALF, -HALF, HALF, HALF), (1000, 1000)), ((-1.5e7, -1e7, 1.3e7, 1.1e7), (4000, 3000)),
        ((-1.2e6, 3e6, 7.8e6, 1.2e7), (333, 333)), ((-1e7, -4e6, 1.2e7, 1.4e7), (900, 300)),
        ((-1e7, 2e6, -2e6, 1.8e7), (101, 1203))]


@pytest.mark.parametrize("layer", ["table", "file", "tiles"])
@pytest.mark.parametrize("box, size", MAPS)
def test_sizes_and_boxes(web, areas, layer, box, size):
    image = picture(web, layer, box, size, more="&TRANSPARENT=TRUE")
    assert image.shape == (size[1], size[0], 4)
    check(image, samples(areas, box, size), (*GREY, 255), (0, 0, 0, 0))


@pytest.mark.parametrize("size", [(1200, 600), (700, 700)])
def test_another_crs(web, areas, size):
    """The tileset's grid in degrees: the database transforms."""
    box = (-150.0, -60.0, 130.0, 75.0)
    image = picture(web, "table", box, size, srs="EPSG:4326", more="&TRANSPARENT=TRUE")
    check(image, samples(areas, box, size, osr.CoordinateTransformation(METRES, LONLAT)), (*GREY, 255), (0, 0, 0, 0))
    swapped = web.get(f"/mc?SERVICE=WMS&VERSION=1.3.0&REQUEST=GetMap&STYLES=&LAYERS=table&CRS=EPSG:4326&FORMAT=image/png"
                      f"&BBOX=-60,-150,75,130&WIDTH={size[0]}&HEIGHT={size[1]}&TRANSPARENT=TRUE")
    assert numpy.array_equal(numpy.asarray(Image.open(io.BytesIO(swapped.body)).convert("RGBA")), image)
    assert b"InvalidSRS" in get(web, "table", box, size, srs="EPSG:99999", status=400).body


BACKGROUNDS = [("&BGCOLOR=0x204060", (0x20, 0x40, 0x60, 255)), ("&TRANSPARENT=FALSE", (255, 255, 255, 255)),
               ("&TRANSPARENT=TRUE&BGCOLOR=0x204060", (0, 0, 0, 0))]


@pytest.mark.parametrize("more, outside", BACKGROUNDS)
@pytest.mark.parametrize("layers, inside", [("table", GREY), ("table,red", RED), ("red,file", GREY)])
def test_backgrounds_and_several_layers(web, areas, layers, inside, more, outside):
    box, size = (-1e7, -1e7, 1e7, 1e7), (640, 480)
    check(picture(web, layers, box, size, more=more), samples(areas, box, size), (*inside, 255), outside)


@pytest.mark.parametrize("form, kind", [("image/jpeg", "JPEG"), ("PNG8", "PNG")])
def test_formats(web, areas, form, kind):
    box, size = (-1e7, -1e7, 1e7, 1e7), (640, 480)
    for layers in ("file", "file,red"):
        reply = get(web, layers, box, size, form=form, more="&BGCOLOR=0x204060")
        image = Image.open(io.BytesIO(reply.body))
        assert image.format == kind and (kind == "JPEG" or image.mode == "P")
        inside = RED if "red" in layers else GREY
        pixels = numpy.asarray(image.convert("RGB")).astype(int)
        for column, row, is_in in samples(areas, box, size):
            off = abs(pixels[row, column] - (inside if is_in else (0x20, 0x40, 0x60)))
            assert off.max() <= (24 if kind == "JPEG" else 0)


@pytest.mark.parametrize("srs, unit", [("EPSG:3857", 1), ("EPSG:4326", DEGREES)])
@pytest.mark.parametrize("factor, colour", [(1.001, RED), (0.999, GREEN)])
def test_scale_denominators(web, areas, srs, unit, factor, colour):
    """At 0.28 mm for a pixel, whatever the size of the map; a degree is as long as on the equator (OGC 06-042, 7.2.4.6.9)."""
    inside = max(areas, key=lambda area: area.Area()).PointOnSurface()
    if srs == "EPSG:4326":
        inside.Transform(osr.CoordinateTransformation(METRES, LONLAT))
    x, y = inside.GetX(), inside.GetY()
    for size in (150, 900):
        half = LIMIT * factor * 0.00028 / unit * size / 2
        image = picture(web, "scale", (x - half, y - half, x + half, y + half), (size, size), srs=srs)
        assert {tuple(pixel) for pixel in image.reshape(-1, 4)} >= {(*colour, 255)}
        other = RED if colour == GREEN else GREEN
        assert (*other, 255) not in {tuple(pixel) for pixel in image.reshape(-1, 4)}

"""Data in one CRS, maps in others: against data that GDAL has transformed before, with densified edges; without seams."""
import io
import random
import xml.etree.ElementTree as ElementTree

import numpy
import pytest
from conftest import GRID
from osgeo import ogr, osr
from PIL import Image
from postgres import Postgres
from test_drawing import HALF, PLAIN, SLD, blob

WORLD = (-179.0, -80.0, 179.0, 80.0)
# of the data: where its blobs lie, how large they are, and how far apart its corners may be for GDAL's transformation
KINDS = {"lambert": (2056, (2500000, 1100000, 2800000, 1280000), (2000, 60000), 200),
         "utm": (32632, (300000, 5000000, 900000, 6000000), (10000, 200000), 1000),
         "degrees": (4326, WORLD, (0.5, 25), 0.02)}
LINES = SLD.format(rules='<Rule><LineSymbolizer><Stroke><CssParameter name="stroke">#c00000</CssParameter><CssParameter '
                         'name="stroke-width">3</CssParameter></Stroke></LineSymbolizer></Rule>')


def visible(image):
    """Pixels without what cannot be seen: the colour of transparent ones."""
    return numpy.where(image[..., 3:] == 0, 0, image)


def reference(epsg):
    made = osr.SpatialReference()
    made.ImportFromEPSG(epsg)
    made.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    return made


def make(path, epsg, shapes, projection=True):
    data = ogr.GetDriverByName("ESRI Shapefile").CreateDataSource(str(path))
    layer = data.CreateLayer(path.stem, reference(epsg) if projection else None, shapes[0].GetGeometryType())
    layer.CreateField(ogr.FieldDefn("number", ogr.OFTInteger))
    for number, shape in enumerate(shapes):
        feature = ogr.Feature(layer.GetLayerDefn())
        feature.SetField("number", number)
        feature.SetGeometry(shape)
        layer.CreateFeature(feature)


def blobs(kind):
    epsg, box, sizes, _ = KINDS[kind]
    numbers = random.Random(kind)
    made = []
    for _ in range(60):
        size = numbers.uniform(*sizes)
        x, y = numbers.uniform(box[0] + size, box[2] - size), numbers.uniform(box[1] + size, box[3] - size)
        made.append(blob(numbers, x, y, size))
    return made


def transformed(shapes, source, target, step):
    """As GDAL does it, with corners every `step` units."""
    way = osr.CoordinateTransformation(reference(source), reference(target))
    made = []
    for shape in shapes:
        copy = shape.Clone()
        copy.Segmentize(step)
        copy.Transform(way)
        made.append(copy)
    return made


@pytest.fixture(scope="module")
def database():
    with Postgres() as server:
        server.sql("CREATE EXTENSION postgis")
        yield server


def long_edges():
    """Lines of two vertices over half of Europe, and one over Greenland: straight in degrees, bent on a map."""
    made = []
    for a, b in (((0, 40), (40, 40)), ((0, 60), (30, 60)), ((-70, 80), (-10, 80)), ((-5, 36), (30, 70))):
        line = ogr.Geometry(ogr.wkbLineString)
        line.AddPoint_2D(*a)
        line.AddPoint_2D(*b)
        made.append(line)
    return made


def antarctica():
    ring = ogr.Geometry(ogr.wkbLinearRing)
    for point in ((-180, -90), (-180, -78), (-60, -70), (60, -66), (180, -78), (180, -90), (-180, -90)):
        ring.AddPoint_2D(*point)
    polygon = ogr.Geometry(ogr.wkbPolygon)
    polygon.AddGeometry(ring)
    return [polygon]


GRIDS = {"swiss": (2056, (2400000, 1000000, 2912000, 1512000), "1000 500 250 100"),
         "europe": (3035, (1000000, 1000000, 7000000, 7000000), "8000 4000 2000"),
         "polar": (3995, (-6000000, -6000000, 6000000, 6000000), "40000 20000 10000")}


@pytest.fixture(scope="module")
def web(shared_folder, shared_apache, database):
    folder = shared_folder
    (folder / "plain.sld").write_text(PLAIN)
    (folder / "lines.sld").write_text(LINES)
    sources = ""

    def add(name, data, style="plain", kind="shapefile", grids=(GRID, "WGS84", *GRIDS)):
        nonlocal sources
        sources += (f'<source name="{name}" type="{kind}"><layer name="{name}">{data}<style>{folder}/{style}.sld</style>'
                    f'</layer></source><tileset name="{name}"><source>{name}</source><cache>disk</cache><format>PNG</format>'
                    f'{"".join(f"<grid>{grid}</grid>" for grid in grids)}<metatile>1 1</metatile></tileset>')

    for kind, (epsg, _, _, step) in KINDS.items():
        shapes = blobs(kind)
        make(folder / f"{kind}.shp", epsg, shapes)
        add(kind, f"<data>{folder}/{kind}.shp</data>")
        make(folder / f"{kind}_3857.shp", 3857, transformed(shapes, epsg, 3857, step))
        add(f"{kind}_3857", f"<data>{folder}/{kind}_3857.shp</data>")
        database.sql(f"CREATE TABLE {kind}(number int, geom geometry(Polygon, {epsg}))")
        for number, shape in enumerate(shapes):
            database.sql(f"INSERT INTO {kind} VALUES ({number}, ST_GeomFromWKB('\\x{shape.ExportToWkb().hex()}'::bytea, {epsg}))")
        connection = f"<connection>{database.connection()}</connection><id>number</id>"
        add(f"{kind}_db", f"{connection}<table>{kind}</table><transfer>binary</transfer>", kind="postgis")
        add(f"{kind}_twkb", f"{connection}<table>{kind}</table><transfer>twkb</transfer>", kind="postgis")
    make(folder / "bare.shp", 2056, blobs("lambert"), projection=False)
    add("bare", f"<data>{folder}/bare.shp</data><srs>EPSG:2056</srs>")
    add("mapless", f"<data>{folder}/bare.shp</data>")
    edges = long_edges()
    make(folder / "edges.shp", 4326, edges)
    add("edges", f"<data>{folder}/edges.shp</data>", "lines")
    make(folder / "edges_3035.shp", 3035, transformed(edges, 4326, 3035, 0.01))
    add("edges_3035", f"<data>{folder}/edges_3035.shp</data>", "lines")
    make(folder / "south.shp", 4326, antarctica())
    add("south", f"<data>{folder}/south.shp</data>", grids=(GRID,))
    (folder / "nonsense.prj").write_text('PROJCS["no such thing"]')
    make(folder / "nonsense.shp", 4326, edges, projection=False)
    (folder / "nonsense.prj").write_text('PROJCS["no such thing"]')
    add("nonsense", f"<data>{folder}/nonsense.shp</data>")
    for path in folder.iterdir():
        if path.is_file():
            path.chmod(0o644)
    grids = "".join(f'<grid name="{name}"><srs>EPSG:{epsg}</srs><extent>{" ".join(map(str, extent))}</extent>'
                    f"<size>256 256</size><resolutions>{levels}</resolutions><units>m</units></grid>"
                    for name, (epsg, extent, levels) in GRIDS.items())
    (folder / "cache").mkdir()
    (folder / "cache").chmod(0o777)
    (folder / "reprojection.xml").write_text(f"""<mapcache>{grids}
      <cache name="disk" type="disk"><base>{folder}/cache</base></cache>{sources}
      <service type="wms" enabled="true"><full_wms>forward</full_wms><format allow_client_override="true">PNG</format>
        <srs>EPSG:25832 EPSG:4326 CRS:84 EPSG:2263</srs><maxsize>4096</maxsize></service>
      <service type="wmts" enabled="true"/><locker type="disk"><directory>{folder}/cache</directory></locker></mapcache>""")
    return shared_apache("reprojection", f"MapCacheAlias /mc {folder}/reprojection.xml\n")


def drawn(web, layer, srs, box, width=500, height=500, version="1.1.1", status=200):
    name = "CRS" if version == "1.3.0" else "SRS"
    reply = web.get(f"/mc?SERVICE=WMS&VERSION={version}&REQUEST=GetMap&STYLES=&LAYERS={layer}&{name}={srs}&FORMAT=image/png"
                    f"&BBOX={','.join(map(repr, box))}&WIDTH={width}&HEIGHT={height}&TRANSPARENT=TRUE")
    assert reply.status == status, reply.body
    return visible(numpy.asarray(Image.open(io.BytesIO(reply.body)).convert("RGBA"))).astype(int) if status == 200 else reply.body


def box_in(kind, epsg, part, numbers):
    """A square of the other CRS inside of where the data lies, of that part of its width."""
    source, box, _, _ = KINDS[kind]
    way = osr.CoordinateTransformation(reference(source), reference(epsg))
    middle = [numbers.uniform(box[0] * 0.7 + box[2] * 0.3, box[0] * 0.3 + box[2] * 0.7),
              numbers.uniform(box[1] * 0.7 + box[3] * 0.3, box[1] * 0.3 + box[3] * 0.7)]
    x, y, _ = way.TransformPoint(*middle)
    left, right = (way.TransformPoint(value, middle[1])[0] for value in (box[0], box[2]))
    half = abs(right - left) * part / 2
    return (x - half, y - half, x + half, y + half)


def same(one, other, least=0.01):
    """Of the border pixels next to none is another by more than a quarter of a pixel makes of it."""
    assert (other[..., 3] > 0).mean() > least
    difference = abs(one - other).max(axis=2)
    assert (difference > 72).mean() < 0.0005, (difference > 72).mean()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", [1, 0.2, 0.02])
def test_maps_are_what_gdal_makes_of_the_data(web, kind, part):
    numbers = random.Random(f"{kind}{part}")
    shown = 0
    for _ in range(4 if part > 0.1 else 9):
        box = box_in(kind, 3857, part, numbers)
        ours, theirs = drawn(web, kind, "EPSG:3857", box), drawn(web, f"{kind}_3857", "EPSG:3857", box)
        if (theirs[..., 3] > 0).any():
            same(ours, theirs, 0)
            shown += 1
        assert numpy.array_equal(ours, drawn(web, f"{kind}_db", "EPSG:3857", box))
        tiny = abs(ours - drawn(web, f"{kind}_twkb", "EPSG:3857", box)).max(axis=2)
        assert (tiny > 48).mean() < 0.001
    assert shown >= 2


def test_straight_edges_bend(web):
    for box in ((1000000.0, 1000000.0, 7000000.0, 7000000.0), (3700000.0, 3900000.0, 4200000.0, 4400000.0)):
        same(drawn(web, "edges", "EPSG:3035", box, 800, 800), drawn(web, "edges_3035", "EPSG:3035", box, 800, 800), 0.001)


@pytest.mark.parametrize("layer, grid, z", [("lambert", GRID, 8), ("lambert", GRID, 11), ("degrees", "europe", 1),
                                            ("degrees", "swiss", 0), ("utm", GRID, 6), ("degrees", "polar", 1),
                                            ("lambert_db", GRID, 9), ("edges", "europe", 1)])
def test_tiles_have_no_seams(web, layer, grid, z):
    if grid == GRID:
        epsg, extent, side = 3857, (-HALF, -HALF, HALF, HALF), 2 * HALF / 2 ** z
        box = box_in(layer.removesuffix("_db"), 3857, 0.01, random.Random(layer))
        x0, y0 = int((box[0] + HALF) / side) - 1, int((HALF - box[3]) / side) - 1
        top, rows = HALF, 2 ** z
    else:
        epsg, extent, levels = GRIDS[grid]
        side = 256 * float(levels.split()[z])
        rows = -(-(extent[3] - extent[1]) // side)
        top = extent[1] + rows * side
        x0 = y0 = 0
    count, left = int(min(3, rows)), extent[0] + x0 * side
    box = (left, top - (y0 + count) * side, left + count * side, top - y0 * side)
    whole = drawn(web, layer, f"EPSG:{epsg}", box, 256 * count, 256 * count)
    assert len(numpy.unique(whole.reshape(-1, 4), axis=0)) > 2
    for x in range(count):
        for y in range(count):
            reply = web.get(f"/mc/wmts/1.0.0/{layer}/default/{grid}/{z}/{y0 + y}/{x0 + x}.png")
            assert reply.status == 200, reply.body
            tile = visible(numpy.asarray(Image.open(io.BytesIO(reply.body)).convert("RGBA")))
            assert numpy.array_equal(tile, whole[y * 256:(y + 1) * 256, x * 256:(x + 1) * 256]), (x, y)


def test_a_prj_is_read_and_may_be_overruled(web):
    box = box_in("lambert", 3857, 0.5, random.Random(1))
    assert numpy.array_equal(drawn(web, "bare", "EPSG:3857", box), drawn(web, "lambert", "EPSG:3857", box))
    assert not drawn(web, "mapless", "EPSG:3857", box).any()
    inside = (2500000.0, 1100000.0, 2800000.0, 1280000.0)
    assert numpy.array_equal(drawn(web, "mapless", "EPSG:2056", inside), drawn(web, "lambert", "EPSG:2056", inside))
    error = drawn(web, "nonsense", "EPSG:3857", box, status=500).decode()
    assert "nonsense" in error
    assert drawn(web, "lambert", "EPSG:3857", box).any()


def test_the_pole_does_not_tear_a_ring(web):
    shown = drawn(web, "south", "EPSG:3857", (-HALF, -HALF, HALF, HALF), 256, 256)
    assert (shown[-8:, 2:-2, 3] == 255).all() and not shown[:128].any()
    assert numpy.array_equal(drawn(web, "south", "EPSG:3857", (-HALF, -2 * HALF, 0.0, -HALF), 64, 64)[8, :, 3],
                             numpy.full(64, 255))


def test_crss_without_a_grid(web):
    utm = box_in("lambert", 25832, 0.5, random.Random(2))
    shown = drawn(web, "lambert", "EPSG:25832", utm)
    assert shown.any()
    assert numpy.array_equal(shown, drawn(web, "lambert", "EPSG:25832", utm, version="1.3.0"))
    degrees = (6.0, 46.0, 10.0, 48.0)
    north_first = (46.0, 6.0, 48.0, 10.0)
    plain = drawn(web, "lambert", "EPSG:4326", degrees, 400, 200)
    assert plain.any()
    assert numpy.array_equal(plain, drawn(web, "lambert", "EPSG:4326", north_first, 400, 200, version="1.3.0"))
    assert numpy.array_equal(plain, drawn(web, "lambert", "CRS:84", degrees, 400, 200, version="1.3.0"))
    assert b"InvalidSRS" in drawn(web, "lambert", "EPSG:25833", utm, status=400)
    assert b"InvalidCRS" in drawn(web, "lambert", "EPSG:5", utm, version="1.3.0", status=400)
    both = drawn(web, "lambert,utm", "EPSG:25832", utm)
    assert both.any()


def test_feature_info_where_there_is_no_grid(web):
    utm = box_in("lambert", 25832, 0.5, random.Random(2))
    shown = drawn(web, "lambert", "EPSG:25832", utm)
    inside = (shown[..., :3] == (0xE0, 0xD8, 0xC0)).all(axis=2)
    y, x = numpy.argwhere(inside)[inside.sum() // 2]
    reply = web.get("/mc?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetFeatureInfo&STYLES=&LAYERS=lambert&QUERY_LAYERS=lambert"
                    f"&SRS=EPSG:25832&INFO_FORMAT=text/plain&BBOX={','.join(map(repr, utm))}&WIDTH=500&HEIGHT=500&X={x}&Y={y}")
    assert reply.status == 200 and b"number = " in reply.body


def test_capabilities_offer_them(web):
    tree = ElementTree.fromstring(web.get("/mc?SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.3.0").body)
    space = "{http://www.opengis.net/wms}"
    layer = next(layer for layer in tree.iter(f"{space}Layer") if layer.findtext(f"{space}Name") == "south")
    assert {crs.text for crs in layer.findall(f"{space}CRS")} >= {"EPSG:3857", "EPSG:25832", "CRS:84", "EPSG:4326", "EPSG:2263"}
    boxes = {box.get("CRS"): [float(box.get(side)) for side in ("minx", "miny", "maxx", "maxy")]
             for box in layer.findall(f"{space}BoundingBox")}
    assert boxes["EPSG:4326"] == pytest.approx([-85.0511, -180, -66, 180], abs=0.01)
    assert boxes["CRS:84"] == pytest.approx([-180, -85.0511, 180, -66], abs=0.01)

"""Vector tiles of a dense coast: every polygon is valid, whatever simplifying and rounding do to it; and what lies beyond the
antimeridian is in the tiles of the other side."""
import gzip
import math
import random

import pytest
from fastcgi import Server
from osgeo import gdal, ogr, osr
from test_vector_tiles import area, message, numbers_of, rings_of

HALF = 20037508.342789248
ogr.UseExceptions()


def jagged(numbers, a, b, depth):
    """From a towards b, b left out: each half is bent, so that bays and necks of all widths arise."""
    if depth == 0:
        return [a]
    length = math.hypot(b[0] - a[0], b[1] - a[1])
    middle = ((a[0] + b[0]) / 2 + numbers.gauss(0, 0.22) * length, (a[1] + b[1]) / 2 + numbers.gauss(0, 0.22) * length)
    return jagged(numbers, a, middle, depth - 1) + jagged(numbers, middle, b, depth - 1)


def coast(numbers, x, y, radius, depth=9):
    corners = [(x + radius * math.cos(angle), y + radius * math.sin(angle)) for angle in [i * math.pi / 3 for i in range(6)]]
    return [point for a, b in zip(corners, corners[1:] + corners[:1]) for point in jagged(numbers, a, b, depth)]


def polygon(points):
    ring = ogr.Geometry(ogr.wkbLinearRing)
    for x, y in points + points[:1]:
        ring.AddPoint_2D(x, y)
    made = ogr.Geometry(ogr.wkbPolygon)
    made.AddGeometry(ring)
    return made


def islands():
    """Valid geometries, of one island or of many with lakes."""
    numbers = random.Random(11)
    found = []
    for _ in range(40):
        x, y = (numbers.uniform(-0.8, 0.8) * HALF for _ in range(2))
        shape = polygon(coast(numbers, x, y, 10 ** numbers.uniform(5, 6.4), numbers.randint(4, 9))).MakeValid()
        for _ in range(numbers.randint(0, 6)):
            other = polygon(coast(numbers, x + numbers.gauss(0, 8e5), y + numbers.gauss(0, 8e5), 10 ** numbers.uniform(4, 5.5), 5)).MakeValid()
            shape = shape.Difference(other) if numbers.random() < 0.5 else shape.Union(other)
        found.append(shape)
    return found


def serve(folder, build, name, geometries, epsg, more=""):
    reference = osr.SpatialReference()
    reference.ImportFromEPSG(epsg)
    reference.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    data = ogr.GetDriverByName("ESRI Shapefile").CreateDataSource(str(folder / f"{name}.shp"))
    layer = data.CreateLayer(name, reference, ogr.wkbPolygon)
    for geometry in geometries:
        feature = ogr.Feature(layer.GetLayerDefn())
        feature.SetGeometry(geometry)
        layer.CreateFeature(feature)
    data = layer = None
    config = folder / "mapcache.xml"
    config.write_text(f"""<mapcache><cache name="disk" type="disk"><base>{folder}/tiles</base></cache><format name="mvt" type="MVT"/>
      <source name="s" type="shapefile"><layer name="{name}"><data>{folder}/{name}.shp</data></layer>{more}</source>
      <tileset name="{name}"><source>s</source><cache>disk</cache><grid>GoogleMapsCompatible</grid><format>mvt</format></tileset>
      <service type="gmaps" enabled="true"/><lock_dir>{folder}</lock_dir></mapcache>""")
    return Server(build, config, folder)


def polygons_of(server, name, z, x, y):
    """Geometries of a tile as the specification reads them: an outer ring, and the holes that follow it."""
    answer = server.get(f"/gmaps/{name}/{z}/{x}/{y}.mvt", variables={b"HTTP_ACCEPT_ENCODING": b"gzip"})
    assert answer.status == 200, answer.body
    body = gzip.decompress(answer.body) if answer.body[:2] == b"\x1f\x8b" else answer.body
    for _, layer in message(body):
        for key, feature in message(layer):
            if key != 2:
                continue
            many = ogr.Geometry(ogr.wkbMultiPolygon)
            for points in rings_of(numbers_of(dict(message(feature))[4])):
                one = polygon([tuple(point) for point in points])
                if area(points) > 0:
                    many.AddGeometry(one)
                else:
                    many.GetGeometryRef(many.GetGeometryCount() - 1).AddGeometry(one.GetGeometryRef(0))
            yield many


@pytest.fixture(scope="module")
def shapes():
    return islands()


@pytest.mark.parametrize("z", range(6))
def test_every_polygon_is_valid(folder, build, shapes, z):
    server = serve(folder, build, "coasts", shapes, 3857)
    count, covered, tiles = 0, 0.0, 2 ** z
    gdal.PushErrorHandler("CPLQuietErrorHandler")
    try:
        for x, y in random.Random(z).sample([(x, y) for x in range(tiles) for y in range(tiles)], min(tiles * tiles, 250)):
            for geometry in polygons_of(server, "coasts", z, x, y):
                # Parts that touch in a point are right, each of them and all together.
                assert geometry.IsValid(), (z, x, y, geometry.ExportToWkt()[:1000])
                count += 1
                covered += geometry.Area()
    finally:
        gdal.PopErrorHandler()
        server.stop()
    assert count >= 30, count
    if z == 0:  # nothing of size is lost
        unit = 2 * HALF / 4096
        assert covered == pytest.approx(sum(shape.Area() for shape in shapes) / unit ** 2, rel=0.02)


@pytest.mark.parametrize("wrap", [True, False])
def test_what_lies_beyond_the_antimeridian_is_on_the_other_side(folder, build, wrap):
    square = polygon([(170.0, 10.0), (190.0, 10.0), (190.0, 20.0), (170.0, 20.0)])
    server = serve(folder, build, "fiji", [square], 4326, "" if wrap else "<wrap>false</wrap>")
    try:
        east = list(polygons_of(server, "fiji", 3, 7, 3))
        west = list(polygons_of(server, "fiji", 3, 0, 3))
    finally:
        server.stop()
    assert len(east) == 1 and len(west) == (1 if wrap else 0)
    assert east[0].GetEnvelope()[1] == 4096 + 64
    if wrap:  # ten degrees of a tile of forty-five, and the buffer
        minx, maxx, _, _ = west[0].GetEnvelope()
        assert minx == -64 and maxx == round(4096 * 10 / 45)


def transformed(shape, epsg):
    """Of continuous longitudes, vertex by vertex."""
    degrees, other = osr.SpatialReference(), osr.SpatialReference()
    degrees.ImportFromEPSG(4326)
    other.ImportFromEPSG(epsg)
    for reference in (degrees, other):
        reference.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    turn = osr.CoordinateTransformation(degrees, other)
    ring = shape.GetGeometryRef(0)
    return polygon([turn.TransformPoint(*ring.GetPoint_2D(i))[:2] for i in range(ring.GetPointCount() - 1)])


@pytest.mark.parametrize("epsg", [3832, 3994, 3460])
def test_areas_of_a_projection_across_the_antimeridian_stay_whole(folder, build, epsg):
    """PROJ knows longitudes up to 180 degrees only: Mercator of the Pacific and of New Zealand, Fiji's own grid."""
    square = polygon([(177.0, -20.0), (183.0, -20.0), (183.0, -14.0), (177.0, -14.0)])
    server = serve(folder, build, "fiji", [transformed(square, epsg)], epsg)
    try:
        found = {(z, x): list(polygons_of(server, "fiji", z, x, y)) for z, y in ((6, 34), (3, 4)) for x in (0, 2 ** z - 1, 2 ** z // 2)}
        whole = list(polygons_of(server, "fiji", 0, 0, 0))
    finally:
        server.stop()
    for z, y in ((6, 34), (3, 4)):
        east, west = found[z, 2 ** z - 1], found[z, 0]
        assert len(east) == len(west) == 1 and not found[z, 2 ** z // 2]
        degree = 4096 * 2 ** z / 360
        assert east[0].GetEnvelope()[1] == 4096 + 64 and east[0].GetEnvelope()[0] == pytest.approx(4096 - 3 * degree, abs=2)
        assert west[0].GetEnvelope()[0] == -64 and west[0].GetEnvelope()[1] == pytest.approx(3 * degree, abs=2)
    assert len(whole) == 1 and whole[0].GetGeometryCount() == 2  # one feature, seen from both sides
    assert {round(envelope) for part in range(2) for envelope in whole[0].GetGeometryRef(part).GetEnvelope()[:2]} >= {4096 - 34, 34}


def features_of(server, name, z, x, y):
    """Number (None: it has none) and the left end of each feature of a tile."""
    answer = server.get(f"/gmaps/{name}/{z}/{x}/{y}.mvt", variables={b"HTTP_ACCEPT_ENCODING": b"gzip"})
    body = gzip.decompress(answer.body) if answer.body[:2] == b"\x1f\x8b" else answer.body
    return sorted(((fields.get(1), min(point[0] for points in rings_of(numbers_of(fields[4])) for point in points))
                   for _, layer in message(body) for key, feature in message(layer) if key == 2 for fields in [dict(message(feature))]),
                  key=lambda found: found[1])


def test_numbers_of_a_tile_do_not_clash(folder, build):
    """A feature across the antimeridian, and one that lies beyond it: both are seen at the western edge."""
    squares = [polygon([(170.0, 10.0), (190.0, 10.0), (190.0, 20.0), (170.0, 20.0)]), polygon([(200.0, 10.0), (210.0, 10.0), (210.0, 20.0), (200.0, 20.0)])]
    server = serve(folder, build, "fiji", squares, 4326)
    try:
        whole, east, west = (features_of(server, "fiji", *tile) for tile in ((0, 0, 0), (3, 7, 3), (3, 0, 3)))
    finally:
        server.stop()
    assert [number for number, _ in whole] == [None, 1, 0], whole
    assert [number for number, _ in east] == [0] and [number for number, _ in west] == [0, 1], (east, west)

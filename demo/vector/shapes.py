#!/usr/bin/python3
"""Shapefiles for the demo out of TopoJSON.

  shapes.py PACKAGES FOLDER

PACKAGES holds countries-10m.json (npm's world-atlas) and counties-10m.json (us-atlas); FOLDER receives the shapefiles, all in
EPSG:3857: sea, lines, countries, borders, places; counties, county_places, states, state_places, limits."""
import pathlib
import sys

import numpy
from osgeo import ogr, osr
from topology import Topology, colours, square_kilometres

ogr.UseExceptions()
HALF = 20037508.342789248
LIMIT = 85.2  # degrees: a little beyond the edge of the map at 85.05
POSTAL = """01 AL 02 AK 04 AZ 05 AR 06 CA 08 CO 09 CT 10 DE 11 DC 12 FL 13 GA 15 HI 16 ID 17 IL 18 IN 19 IA 20 KS 21 KY 22 LA 23 ME
24 MD 25 MA 26 MI 27 MN 28 MS 29 MO 30 MT 31 NE 32 NV 33 NH 34 NJ 35 NM 36 NY 37 NC 38 ND 39 OH 40 OK 41 OR 42 PA 44 RI 45 SC 46 SD
47 TN 48 TX 49 UT 50 VT 51 VA 53 WA 54 WV 55 WI 56 WY 60 AS 66 GU 69 MP 72 PR 78 VI""".split()
POSTAL = dict(zip(POSTAL[::2], POSTAL[1::2]))
KINDS = {int: ogr.OFTInteger, str: ogr.OFTString}


def projected(points):
    """Degrees to the metres of EPSG:3857."""
    y = numpy.clip(points[:, 1], -LIMIT, LIMIT)
    return numpy.column_stack([points[:, 0] / 180, numpy.log(numpy.tan((90 + y) * numpy.pi / 360)) / numpy.pi]) * HALF


def polygon(polygons):
    """A geometry out of polygons as lists of rings in degrees."""
    result = ogr.Geometry(ogr.wkbMultiPolygon)
    for rings in polygons:
        part = ogr.Geometry(ogr.wkbPolygon)
        for points in rings:
            ring = ogr.Geometry(ogr.wkbLinearRing)
            for x, y in projected(points).tolist():
                ring.AddPoint_2D(x, y)
            part.AddGeometry(ring)
        result.AddGeometry(part)
    return result


def line(points):
    result = ogr.Geometry(ogr.wkbLineString)
    for x, y in projected(points).tolist():
        result.AddPoint_2D(x, y)
    return result


def write(folder, name, kind, rows):
    """A shapefile out of (geometry, attributes)."""
    reference = osr.SpatialReference()
    reference.ImportFromEPSG(3857)
    data = ogr.GetDriverByName("ESRI Shapefile").CreateDataSource(str(folder / f"{name}.shp"))
    layer = data.CreateLayer(name, reference, kind, ["ENCODING=UTF-8"])
    for attribute, value in rows[0][1].items():
        layer.CreateField(ogr.FieldDefn(attribute, KINDS[type(value)]))
    for geometry, attributes in rows:
        feature = ogr.Feature(layer.GetLayerDefn())
        for attribute, value in attributes.items():
            feature.SetField(attribute, value)
        feature.SetGeometry(geometry)
        layer.CreateFeature(feature)


def areas(topology, found, attributes):
    """Rows of an object's areas, the largest first: labels are placed in this order."""
    rows = []
    for area, colour in zip(found, colours(topology.neighbours(found))):
        polygons = list(topology.polygons(area))
        size = sum(map(square_kilometres, polygons))
        if polygons:
            rows.append((polygon(polygons), {"name": area.name, **attributes(area), "colour": colour, "area": round(size)}))
    return sorted(rows, key=lambda row: -row[1]["area"])


def middles(rows):
    """A point inside the largest part of each area."""
    for geometry, attributes in rows:
        largest = max((geometry.GetGeometryRef(i) for i in range(geometry.GetGeometryCount())), key=ogr.Geometry.Area)
        yield largest.PointOnSurface(), attributes


def world(topology, folder):
    countries = topology.objects["countries"]
    rows = areas(topology, countries, lambda area: {"iso": area.id})
    write(folder, "countries", ogr.wkbPolygon, rows)
    write(folder, "places", ogr.wkbPoint, list(middles(rows)))

    def kind(one, other):
        if other is None:
            return "coast"
        return "border" if countries[one].id and countries[other].id else "claim"

    write(folder, "borders", ogr.wkbLineString,
          [(line(points), {"kind": kind(one, other)}) for points, one, other in topology.lines(countries)])
    write(folder, "lines", ogr.wkbLineString, list(graticule()))
    write(folder, "sea", ogr.wkbPolygon, [(polygon([[cell]]), {"name": "sea"}) for cell in cells()])


def cells():
    """Squares of ten degrees with a corner for each degree, so that other projections bend their edges; in some of them
    the other side of the earth has no place."""
    for west in range(-180, 180, 10):
        for south in range(-90, 90, 10):
            x, y = numpy.arange(west, west + 11.0), numpy.arange(south, south + 11.0)
            yield numpy.concatenate([numpy.column_stack(side) for side in (
                (0 * y + west, y), (x, 0 * x + south + 10), (0 * y + west + 10, y[::-1]), (x[::-1], 0 * x + south))])


def graticule():
    """Circles of latitude and meridians, and the circles that have names."""
    named = {0: "Equator", 23.4364: "Tropic of Cancer", -23.4364: "Tropic of Capricorn", 66.5636: "Arctic Circle",
             -66.5636: "Antarctic Circle"}
    for y in sorted({*range(-80, 81, 10), *named}):
        points = numpy.column_stack([numpy.arange(-180, 181.0), numpy.full(361, float(y))])
        yield line(points), {"kind": "named" if y in named else "line", "step": 30 if y % 30 == 0 else 10, "name": named.get(y, "")}
    for x in range(-180, 181, 10):
        points = numpy.column_stack([numpy.full(171, float(x)), numpy.linspace(-LIMIT, LIMIT, 171)])
        yield line(points), {"kind": "line", "step": 30 if x % 30 == 0 else 10, "name": ""}


def united_states(topology, folder):
    states, counties = topology.objects["states"], topology.objects["counties"]
    rows = areas(topology, states, lambda area: {"code": POSTAL[area.id]})
    write(folder, "states", ogr.wkbPolygon, rows)
    write(folder, "state_places", ogr.wkbPoint, list(middles(rows)))
    of_state = {attributes["code"]: attributes for _, attributes in rows}

    def attributes(area):
        return {"fips": area.id, "state": of_state[POSTAL[area.id[:2]]]["name"], "code": POSTAL[area.id[:2]]}

    rows = areas(topology, counties, attributes)
    for _, row in rows:  # a county has the colour of its state
        row["colour"] = of_state[row["code"]]["colour"]
    write(folder, "counties", ogr.wkbPolygon, rows)
    write(folder, "county_places", ogr.wkbPoint, list(middles(rows)))

    def kind(one, other):
        if other is None:
            return "outside"
        return "county" if counties[one].id[:2] == counties[other].id[:2] else "state"

    write(folder, "limits", ogr.wkbLineString,
          [(line(points), {"kind": kind(one, other)}) for points, one, other in topology.lines(counties)])


def main():
    packages, folder = map(pathlib.Path, sys.argv[1:3])
    folder.mkdir(parents=True, exist_ok=True)
    world(Topology(packages / "countries-10m.json"), folder)
    united_states(Topology(packages / "counties-10m.json"), folder)


if __name__ == "__main__":
    main()

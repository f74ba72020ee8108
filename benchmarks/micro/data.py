#!/usr/bin/env python3
"""Data for micro_map, micro_mvt and micro_paint: areas.shp, 1600 polygons of 128 vertices that share their borders, and
style.sld. The same numbers in each run. usage: data.py FOLDER"""
import pathlib
import random
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from geometry import jagged  # noqa: E402

CELLS, DEPTH, CELL, LEFT, BOTTOM = 40, 5, 5000.0, 500000.0, 100000.0
STYLE = """<StyledLayerDescriptor version="1.0.0" xmlns="http://www.opengis.net/sld"><NamedLayer><Name>areas</Name><UserStyle><FeatureTypeStyle><Rule>
<PolygonSymbolizer><Fill><CssParameter name="fill">#f0dcb4</CssParameter></Fill><Stroke><CssParameter name="stroke">#785028</CssParameter>
<CssParameter name="stroke-width">1</CssParameter></Stroke></PolygonSymbolizer></Rule></FeatureTypeStyle></UserStyle></NamedLayer></StyledLayerDescriptor>"""


def rings():
    """Closed rings, clockwise."""
    numbers = random.Random(1)
    corners = [[(LEFT + x * CELL, BOTTOM + y * CELL) for x in range(CELLS + 1)] for y in range(CELLS + 1)]
    level = [[jagged(row[x], row[x + 1], DEPTH, 0.15, numbers) + [row[x + 1]] for x in range(CELLS)] for row in corners]
    upright = [[jagged(corners[y][x], corners[y + 1][x], DEPTH, 0.15, numbers) + [corners[y + 1][x]] for x in range(CELLS + 1)]
               for y in range(CELLS)]
    for y in range(CELLS):
        for x in range(CELLS):
            yield upright[y][x][:-1] + level[y + 1][x][:-1] + upright[y][x + 1][:0:-1] + level[y][x][::-1]


def box_of(points):
    xs, ys = [x for x, _ in points], [y for _, y in points]
    return min(xs), min(ys), max(xs), max(ys)


def header(size, box):
    """Of a .shp or .shx of so many bytes (ESRI Shapefile Technical Description, 1998)."""
    return struct.pack(">7i", 9994, 0, 0, 0, 0, 0, size // 2) + struct.pack("<2i8d", 1000, 5, *box, 0, 0, 0, 0)


def write_shapefile(path):
    shapes, index, everything = b"", b"", []
    for number, ring in enumerate(rings(), 1):
        content = struct.pack("<i4d3i", 5, *box_of(ring), 1, len(ring), 0) + struct.pack(f"<{2 * len(ring)}d", *(value for point in ring for value in point))
        index += struct.pack(">2i", (100 + len(shapes)) // 2, len(content) // 2)
        shapes += struct.pack(">2i", number, len(content) // 2) + content
        everything += ring
    path.with_suffix(".shp").write_bytes(header(100 + len(shapes), box_of(everything)) + shapes)
    path.with_suffix(".shx").write_bytes(header(100 + len(index), box_of(everything)) + index)
    count = len(index) // 8
    fields = b"number".ljust(11, b"\0") + b"N" + bytes(4) + bytes([6, 0]) + bytes(14)
    table = struct.pack("<4BI2H20x", 3, 100, 1, 1, count, 32 + len(fields) + 1, 7) + fields + b"\r"
    path.with_suffix(".dbf").write_bytes(table + b"".join(b" %6d" % number for number in range(count)) + b"\x1a")


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    write_shapefile(folder / "areas")
    (folder / "style.sld").write_text(STYLE)

"""Reads vector tiles as the specification says (Mapbox Vector Tile 2.1), and tells what is wrong in them."""
from osgeo import gdal, ogr

POINT, LINE, POLYGON = 1, 2, 3
MOVE, DRAW, CLOSE = 1, 2, 7
EXAMINED = 300  # polygons of a tile whose geometry is examined; all features are counted and read
ogr.UseExceptions()


class Wrong(Exception):
    """The tile is not one."""


def varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Wrong("a number that does not end")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def fields(data):
    """(number, value) of a message: whole numbers, and bytes of the others."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        else:
            size, at = varint(data, at) if kind == 2 else ({1: 8, 5: 4}.get(kind, -1), at)
            if size < 0 or at + size > len(data):
                raise Wrong("a field that does not fit")
            value, at = data[at:at + size], at + size
        yield key >> 3, value


def packed(data):
    at, found = 0, []
    while at < len(data):
        value, at = varint(data, at)
        found.append(value)
    return found


def parts_of(numbers):
    """Lists of points by the commands of a geometry; a part that was closed ends with True."""
    at, x, y, parts = 0, 0, 0, []
    while at < len(numbers):
        command, count = numbers[at] & 7, numbers[at] >> 3
        at += 1
        if command == CLOSE:
            if not parts or count != 1:
                raise Wrong("a ring that closes without a beginning")
            parts[-1][1] = True
            continue
        if command not in (MOVE, DRAW) or at + 2 * count > len(numbers) or count == 0:
            raise Wrong("a command that is none")
        for _ in range(count):
            x += (numbers[at] >> 1) ^ -(numbers[at] & 1)
            y += (numbers[at + 1] >> 1) ^ -(numbers[at + 1] & 1)
            at += 2
            if command == MOVE:
                parts.append([[], False])
            elif not parts:
                raise Wrong("a line without a beginning")
            parts[-1][0].append((x, y))
    return parts


def doubled_area(ring):
    return sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(ring, ring[1:] + ring[:1]))


def polygons_of(parts):
    """Rings of each polygon: an outer ring has a positive area (y downwards)."""
    found = []
    for ring, closed in parts:
        if not closed or len(ring) < 3:
            raise Wrong("a ring that is not closed or has two points")
        if doubled_area(ring) > 0:
            found.append([ring])
        elif not found:
            raise Wrong("an inner ring without an outer one")
        else:
            found[-1].append(ring)
    return found


def valid(rings):
    """By GEOS."""
    text = "POLYGON(" + ",".join("(" + ",".join(f"{x} {y}" for x, y in ring + ring[:1]) + ")" for ring in rings) + ")"
    gdal.PushErrorHandler("CPLQuietErrorHandler")
    try:
        return ogr.CreateGeometryFromWkt(text).IsValid()
    finally:
        gdal.PopErrorHandler()


def read_feature(message, keys, values, found):
    kind, tags, geometry = 0, [], []
    for number, value in fields(message):
        if number == 2:
            tags = packed(value)
        elif number == 3:
            kind = value
        elif number == 4:
            geometry = packed(value)
    if len(tags) % 2 or any(tag >= (values if i % 2 else keys) for i, tag in enumerate(tags)):
        raise Wrong("an attribute that is not in the layer")
    parts = parts_of(geometry)
    if kind not in (POINT, LINE, POLYGON) or not parts or (kind == LINE and any(len(part) < 2 for part, _ in parts)):
        raise Wrong("a geometry that is none")
    found["features"] += 1
    found["vertices"] += sum(len(part) for part, _ in parts)
    if kind == POLYGON:
        for rings in polygons_of(parts):
            if found["examined"] < EXAMINED:
                found["examined"] += 1
                found["invalid"] += not valid(rings)


def read_layer(message, found):
    name = version = None
    keys = values = 0
    features = []
    for number, value in fields(message):
        if number == 1:
            name = bytes(value).decode()
        elif number == 15:
            version = value
        elif number == 3:
            keys += 1
        elif number == 4:
            values += 1
        elif number == 2:
            features.append(value)
    if not name or version != 2:
        raise Wrong("a layer without a name or of another version")
    for feature in features:
        read_feature(feature, keys, values, found)


def count_features(data):
    """Of a tile that is not examined."""
    return sum(number == 2 for layer, value in fields(data) if layer == 3 for number, _ in fields(value))


def examine(data):
    """How many features and vertices a tile has, polygons that were examined and those that are not valid, and what is wrong with the whole (or nothing)."""
    found = {"features": 0, "vertices": 0, "examined": 0, "invalid": 0, "wrong": None}
    try:
        for number, value in fields(data):
            if number == 3:
                read_layer(value, found)
    except (Wrong, UnicodeDecodeError) as error:
        found["wrong"] = str(error)
    return found

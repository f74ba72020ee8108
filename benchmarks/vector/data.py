"""The tables of the vector benchmark: those of benchmarks/postgis, in Web Mercator, and the tiles that are asked for."""
import math
import random

from postgis.data import Data

SRID = 3857
HALF = 20037508.342789244  # of the world's side
BLOCK = 4                  # tiles asked for lie in squares of so many a side, at the places of features
SHAPES = {"villages": "Polygon", "parcels": "Polygon", "roads": "LineString", "points": "Point"}
COLUMNS = {"villages": ("name",), "parcels": ("kind",), "roads": ("class", "name"), "points": ("kind", "name")}


class Tables(Data):
    """Tables alone: nothing here reads shapefiles."""

    def write_shapefile(self, name):
        pass


class World:
    """A database with those tables in Web Mercator: the rows of each, and its box in each."""

    def __init__(self, folder, database, sets):
        tables = Tables(folder, database)
        self.database, self.sets, self.rows, self.box = database, sets, {}, {}
        for name in sets:
            self.rows[name] = tables.load(name)
        for name in sets:
            self._project(name)

    def _project(self, name):
        """The index is made anew with it."""
        self.database.sql(f"ALTER TABLE {name} ALTER COLUMN geom TYPE geometry({SHAPES[name]}, {SRID}) USING ST_Transform(geom, {SRID})")
        self.database.sql(f"VACUUM ANALYZE {name}")
        answer = self.database.sql(f"SELECT ST_XMin(e), ST_YMin(e), ST_XMax(e), ST_YMax(e) FROM (SELECT ST_Extent(geom) AS e FROM {name}) found")[0]
        self.box[name] = tuple(float(word) for word in answer.split("|"))

    def tiles(self, name, level, blocks):
        """(level, column, row from the top) of the tiles in so many squares, which are where features of the table are: the same in each run."""
        numbers = random.Random(f"{name} {level}")
        found = set()
        for _ in range(blocks):
            gid = numbers.randrange(1, self.rows[name] + 1)
            x, y = (float(word) for word in self.database.sql(f"SELECT ST_X(p), ST_Y(p) FROM (SELECT ST_PointOnSurface(geom) AS p FROM {name} WHERE gid = {gid}) found")[0].split("|"))
            column, row = tile_at(level, x, y)
            found |= {(level, c, r) for c in around(column) for r in around(row) if overlaps(tile_box(level, c, r), self.box[name])}
        return sorted(found)


def around(number):
    """The numbers of the square that it is in."""
    return range(number // BLOCK * BLOCK, number // BLOCK * BLOCK + BLOCK)


def tile_at(level, x, y):
    side = 2 * HALF / 2 ** level
    return math.floor((x + HALF) / side), math.floor((HALF - y) / side)


def tile_box(level, column, row):
    side = 2 * HALF / 2 ** level
    return column * side - HALF, HALF - (row + 1) * side, (column + 1) * side - HALF, HALF - row * side


def overlaps(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]

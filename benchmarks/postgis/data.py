"""Data of the drawing benchmark: tables and shapefiles in EPSG:21781, made from a fixed seed but for the municipalities, which npm's `swiss-maps` has.

    villages        2,500 polygons of 33 vertices that share their borders
    municipalities  those of Switzerland in 2012: 2,499 polygons, 81,663 vertices. Geodata (c) BFS, GEOSTAT, for use without profit and with that
                    attribution; so it is fetched when it is wanted and is no part of the project
    parcels         202,500 polygons: the villages 81 times, smaller
    roads           500,000 lines of 2 to 8 vertices in five classes
    points          200,000 of eight kinds
"""
import math
import pathlib
import random
import struct
import subprocess

from common.fetch import npm
from common.geometry import jagged

SRID = 21781
EXTENT = (485414.0, 75286.0, 833837.0, 295935.0)
GRID = 50      # villages: GRID x GRID
PARCELS = 9    # times the villages in each direction
DEPTH = 3      # of the borders: 2 ** DEPTH pieces between corners
MUNICIPALITIES = "2012/municipalities"  # in the package
COLUMNS = {"villages": ("Polygon", "name text"), "roads": ("LineString", "class int, name text"), "points": ("Point", "kind int, name text")}


def rounded(points):
    return [(round(x, 2), round(y, 2)) for x, y in points]


def village_rings(numbers):
    """The rings, row by row."""
    width, height = (EXTENT[2] - EXTENT[0]) / GRID, (EXTENT[3] - EXTENT[1]) / GRID
    corner, across, up = {}, {}, {}
    for row in range(GRID + 1):
        for column in range(GRID + 1):
            dx = numbers.uniform(-.25, .25) if 0 < column < GRID else 0
            dy = numbers.uniform(-.25, .25) if 0 < row < GRID else 0
            corner[column, row] = (EXTENT[0] + (column + dx) * width, EXTENT[1] + (row + dy) * height)
    for (column, row), at in corner.items():
        if column < GRID:
            across[column, row] = jagged(at, corner[column + 1, row], DEPTH, .09, numbers)
        if row < GRID:
            up[column, row] = jagged(at, corner[column, row + 1], DEPTH, .09, numbers)
    for row in range(GRID):
        for column in range(GRID):
            top = across[column, row + 1][1:] + [corner[column + 1, row + 1]]
            left = up[column, row][1:] + [corner[column, row + 1]]
            ring = across[column, row] + up[column + 1, row] + top[::-1] + left[::-1]
            yield rounded(ring + ring[:1])


def polygon(ring):
    return struct.pack("<BIIII", 1, 0x20000003, SRID, 1, len(ring)) + b"".join(struct.pack("<dd", *p) for p in ring)


def line(points):
    return struct.pack("<BIII", 1, 0x20000002, SRID, len(points)) + b"".join(struct.pack("<dd", *p) for p in points)


def point(x, y):
    return struct.pack("<BIIdd", 1, 0x20000001, SRID, x, y)


def settlements(numbers, count=12000):
    """Where people live: x, y, radius."""
    found = []
    for _ in range(count):
        found.append((numbers.uniform(EXTENT[0], EXTENT[2]), numbers.uniform(EXTENT[1], EXTENT[3]), numbers.uniform(150, 900)))
    return found


def one_road(settlement, numbers):
    """Class and vertices: the higher roads are rarer and have longer pieces."""
    kind = 1 + min(4, int(numbers.expovariate(.45)) if numbers.random() < .5 else 4)
    piece = (400, 250, 150, 90, 45)[kind - 1]
    x, y, radius = settlement
    x, y = x + numbers.gauss(0, radius * 1.5), y + numbers.gauss(0, radius * 1.5)
    heading, points = numbers.uniform(0, 2 * math.pi), [(x, y)]
    for _ in range(numbers.randrange(1, 8)):
        heading += numbers.gauss(0, .35)
        x, y = x + piece * math.cos(heading), y + piece * math.sin(heading)
        points.append((x, y))
    return kind, rounded(points)


def rows(name):
    """Lines in the text format of COPY."""
    numbers = random.Random(f"mapcache {name}")
    if name == "villages":
        for number, ring in enumerate(village_rings(numbers)):
            yield f"Village {number}\t{polygon(ring).hex()}\n"
        return
    homes = settlements(random.Random("mapcache homes"))
    for number in range(500_000 if name == "roads" else 200_000):
        home = numbers.choice(homes)
        if name == "roads":
            kind, points = one_road(home, numbers)
            yield f"{kind}\tRoad {number % 5000}\t{line(points).hex()}\n"
        else:
            x, y = home[0] + numbers.gauss(0, home[2] * 2), home[1] + numbers.gauss(0, home[2] * 2)
            yield f"{numbers.randrange(1, 9)}\tPlace {number}\t{point(round(x, 2), round(y, 2)).hex()}\n"


class Data:
    """Tables of one database and the shapefiles in a folder; both made when they are first asked for."""

    def __init__(self, folder, database):
        self.folder, self.database, self.loaded = pathlib.Path(folder).resolve(), database, set()
        self.folder.mkdir(parents=True, exist_ok=True)

    def load(self, name):
        """The table of that name, with its index, and its shapefile; returns the number of its rows."""
        if name not in self.loaded:
            {"parcels": self.load_parcels, "municipalities": self.load_municipalities}.get(name, self.load_made)(name)
            self.database.sql(f"CREATE INDEX ON {name} USING gist (geom)")
            self.database.sql(f"VACUUM ANALYZE {name}")
            self.loaded.add(name)
            self.write_shapefile(name)
        return int(self.database.sql(f"SELECT count(*) FROM {name}")[0])

    def load_made(self, name):
        kind, columns = COLUMNS[name]
        file = self.folder / f"{name}.copy"
        if not file.exists():
            half = file.with_suffix(".half")
            with open(half, "w") as out:
                out.writelines(rows(name))
            half.rename(file)
        self.database.sql(f"CREATE TABLE {name}(gid serial PRIMARY KEY, {columns}, geom geometry({kind}, {SRID}))")
        self.database.copy(name, ",".join(c.split()[0] for c in columns.split(", ")) + ",geom", file)

    def load_parcels(self, name):
        self.load("villages")
        width, height = (EXTENT[2] - EXTENT[0]) / PARCELS, (EXTENT[3] - EXTENT[1]) / PARCELS
        x, y = EXTENT[0] - EXTENT[0] / PARCELS, EXTENT[1] - EXTENT[1] / PARCELS
        self.database.sql(f"""CREATE TABLE {name} AS
            SELECT (row_number() OVER ())::int AS gid, village.gid % 8 AS kind,
                ST_Affine(village.geom, 1.0 / {PARCELS}, 0, 0, 1.0 / {PARCELS}, {x} + c * {width}, {y} + r * {height})::geometry(Polygon, {SRID}) AS geom
            FROM generate_series(0, {PARCELS - 1}) r, generate_series(0, {PARCELS - 1}) c, villages village ORDER BY r, c, village.gid""")
        self.database.sql(f"ALTER TABLE {name} ADD PRIMARY KEY (gid)")

    def load_municipalities(self, name):
        source = npm(self.folder, "swiss-maps", *(f"{MUNICIPALITIES}.{ending}" for ending in ("shp", "shx", "dbf", "prj")))
        subprocess.run(["ogr2ogr", "-q", "-f", "PostgreSQL", f"PG:{self.database.connection()}", source / f"{MUNICIPALITIES}.shp", "-nln", name, "-a_srs", f"EPSG:{SRID}",
                        "-nlt", "PROMOTE_TO_MULTI", "-lco", "GEOMETRY_NAME=geom", "-lco", "FID=gid", "-lco", "SPATIAL_INDEX=NONE",
                        "--config", "SHAPE_ENCODING", "ISO-8859-1", "--config", "PG_USE_COPY", "YES"], check=True)

    def write_shapefile(self, name):
        """With a quadtree (.qix), as MapServer and we read it."""
        if not self.shapefile(name).with_suffix(".qix").exists():
            subprocess.run(["ogr2ogr", "-q", "-overwrite", "-f", "ESRI Shapefile", self.shapefile(name), f"PG:{self.database.connection()}", name],
                           check=True)
            subprocess.run(["shptree", self.shapefile(name)], check=True, stdout=subprocess.DEVNULL)

    def shapefile(self, name):
        return self.folder / f"{name}.shp"

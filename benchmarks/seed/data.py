"""The data of the load test in PostGIS, and lists of metatiles around towns."""
import csv
import math
import random
import subprocess

from load.data import LAYERS

SETS = ("A", "B")  # the set that is measured, and the one that takes its place in memory, as the published benchmark calls them
EDGE = 8           # tiles of a metatile's side
# As people use a map: most of them streets and suburbs.
ZOOMS, OFTEN = range(4, 16), (1, 2, 3, 4, 6, 9, 11, 12, 14, 15, 13, 10)


def load(database, shapes):
    """A table for each layer, with a spatial index."""
    for name in LAYERS:
        subprocess.run(["ogr2ogr", "-q", "-f", "PostgreSQL", f"PG:{database.connection()}", shapes / f"{name}.shp", "-nln", name, "-lco", "GEOMETRY_NAME=geom",
                        "-nlt", "PROMOTE_TO_MULTI", "-a_srs", "EPSG:3857", "--config", "PG_USE_COPY", "YES"], check=True)
    database.sql("VACUUM ANALYZE")


def tile_of(lon, lat, z):
    """Column and row, rows from the north."""
    n = 1 << z
    return int((lon + 180) / 360 * n), int((1 - math.asinh(math.tan(math.radians(lat))) / math.pi) / 2 * n)


def metatiles(shapes, count):
    """For each set so many (x, y, z) of first tiles, none of them twice; the larger a town is the oftener."""
    with open(shapes / "source" / "towns.csv", newline="") as file:
        towns = [(float(t["lon"]), float(t["lat"]), max(1, int(t["pop"])) ** .5) for _, t in zip(range(20000), csv.DictReader(file))]
    numbers, weights, seen, found = random.Random(11), [town[2] for town in towns], set(), {}
    for name in SETS:
        found[name] = []
        while len(found[name]) < count:
            lon, lat, _ = numbers.choices(towns, weights)[0]
            z = numbers.choices(ZOOMS, OFTEN)[0]
            x, y = tile_of(lon, lat, z)
            first = (x - x % EDGE, y - y % EDGE, z)
            if first not in seen:
                seen.add(first)
                found[name].append(first)
    return found


def write_lists(folder, sets):
    """As render_list reads them: x y z, a line for each metatile."""
    for name, first in sets.items():
        (folder / f"{name}.txt").write_text("".join("%d %d %d\n" % tile for tile in first))

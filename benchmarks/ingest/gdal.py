"""What GDAL needs for a mosaic of the images as a pyramid of tiles with all its overviews: the base level in the tiling of the web, then the levels above it."""
import os
import pathlib
import resource
import shutil
import sqlite3
import subprocess
import time

OVERVIEWS = ("2", "4", "8", "16", "32", "64")
QUALITY = 75
LEVELS = "4-11"  # of gdal2tiles: those that gdaladdo makes, too
KINDS = {"MBTiles JPEG": ("MBTILES", "JPEG"), "MBTiles PNG": ("MBTILES", "PNG"), "GeoPackage JPEG": ("GPKG", "JPEG"), "GeoPackage PNG": ("GPKG", "PNG"),
         "gdal2tiles PNG": (None, "PNG")}


def spent():
    """Processor seconds of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(*words):
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)


def stored(path):
    """Tiles and their bytes in an SQLite file of GDAL's, or in a folder."""
    if path.is_dir():
        files = [file.stat().st_size for file in path.rglob("*.png")]
        return len(files), sum(files)
    with sqlite3.connect(path) as file:
        table = "tiles" if path.suffix == ".mbtiles" else file.execute("SELECT table_name FROM gpkg_contents").fetchone()[0]
        return file.execute(f'SELECT count(*), sum(length(tile_data)) FROM "{table}"').fetchone()


def database(driver, form, mosaic, path):
    more = ["-co", "TILING_SCHEME=GoogleMapsCompatible"] if driver == "GPKG" else []
    quality = ["-co", f"QUALITY={QUALITY}"] if form == "JPEG" else []
    run("gdal_translate", "-q", "-of", driver, "-co", f"TILE_FORMAT={form}", *quality, *more, mosaic, path)
    run("gdaladdo", "-q", "-r", "average", path, *OVERVIEWS)


def pyramid(kind, folder, images):
    """Figures of one way: seconds and processor seconds for all, the tiles that are there at the end."""
    driver, form = KINDS[kind]
    mosaic, path = folder / "mosaic.vrt", folder / ("tiles" if driver is None else "tiles.mbtiles" if driver == "MBTILES" else "tiles.gpkg")
    remove(path)
    before = time.monotonic(), spent()
    run("gdalbuildvrt", "-q", "-overwrite", "-a_srs", "EPSG:3857", mosaic, *images)
    if driver is None:
        run("gdal2tiles.py", "-q", "-r", "average", "-z", LEVELS, "--xyz", "-w", "none", "--processes=1", mosaic, path)
    else:
        database(driver, form, mosaic, path)
    seconds, cpu = time.monotonic() - before[0], spent() - before[1]
    tiles, size = stored(path)
    remove(path)
    return {"seconds": seconds, "cpu": cpu, "tiles": tiles, "bytes": size}


def remove(path):
    path = pathlib.Path(path)
    if path.is_dir():
        shutil.rmtree(path)
    elif path.exists():
        os.unlink(path)

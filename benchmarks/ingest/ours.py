"""`mapcache ingest`: the images as a mosaic into pyramids in every kind of store, and as a series of dates into a cube."""
import sqlite3
import subprocess
import time

from common.servers import BUILD, cpu_seconds
from ingest import data
from ingest.gdal import QUALITY, remove, spent

PROGRAM = BUILD / "bin" / "mapcache"
STORES = ("sqlite3", "geopackage", "mbtiles", "postgresql")
FORMATS = ("JPEG", "PNG")


def configuration(folder, store, form, database):
    where = {"sqlite3": f"<dbfile>{folder}/ours.sqlite3</dbfile>", "geopackage": f"<dbfile>{folder}/ours.gpkg</dbfile>",
             "mbtiles": f"<dbfile>{folder}/ours.mbtiles</dbfile>", "postgresql": f"<connection>{database.connection()}</connection>"}[store]
    path = folder / "pyramid.xml"
    path.write_text(f"""<mapcache>
  <cache name="store" type="{store}">{where}</cache>
  <format name="jpeg" type="JPEG"><quality>{QUALITY}</quality></format>
  <tileset name="mosaic"><cache>store</cache><grid>GoogleMapsCompatible</grid><format>{"jpeg" if form == "JPEG" else "PNG"}</format></tileset>
  <service type="tms" enabled="true"/>
  <lock_dir>{folder}</lock_dir>
</mapcache>
""")
    return path


def command(folder, *words):
    done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))[:300]}: {done.stdout[-1000:]}{done.stderr[-1000:]}")


def stored(folder, store, database):
    """Tiles and bytes."""
    if store == "postgresql":
        return [int(number) for number in database.sql("SELECT count(*), sum(length(data)) FROM mapcache_tiles")[0].split("|")]
    if store == "geopackage":
        with sqlite3.connect(folder / "ours.gpkg") as file:
            table = file.execute("SELECT table_name FROM gpkg_contents").fetchone()[0]
            return file.execute(f'SELECT count(*), sum(length(tile_data)) FROM "{table}"').fetchone()
    column, name = ("data", "ours.sqlite3") if store == "sqlite3" else ("tile_data", "ours.mbtiles")
    with sqlite3.connect(folder / name) as file:
        return file.execute(f"SELECT count(*), sum(length({column})) FROM tiles").fetchone()


def pyramid(store, form, folder, images, database):
    """Figures of one store and format; one thread."""
    for name in ("ours.sqlite3", "ours.gpkg", "ours.mbtiles"):
        remove(folder / name)
    if store == "postgresql":
        database.sql("DROP TABLE IF EXISTS mapcache_tiles")
    config = configuration(folder, store, form, database)
    before = time.monotonic(), spent(), cpu_seconds(database.pids())
    command(folder, PROGRAM, "ingest", "-c", config, "-t", "mosaic", "--srs", "EPSG:3857", "-q", "--scratch", folder, *images)
    seconds, cpu, others = time.monotonic() - before[0], spent() - before[1], cpu_seconds(database.pids()) - before[2]
    tiles, size = stored(folder, store, database)
    return {"seconds": seconds, "cpu": cpu, "database": others if store == "postgresql" else 0.0, "tiles": tiles, "bytes": size}


def cube(folder, database, images, limit, overviews=-1):
    """Figures of the series as a cube in PostgreSQL; `limit`: memory for it, as the program reads it, or None; `overviews`: -1 as many as it needs, which is none."""
    database.sql("DROP DATABASE IF EXISTS ours")
    database.sql("CREATE DATABASE ours")
    west, south, east, north = data.box(0, 0)
    config = folder / "cube.xml"
    config.write_text(f"""<mapcache>
  <cube name="series" type="postgresql"><connection>{database.connection().replace("dbname=postgres", "dbname=ours")}</connection>
    <srs>EPSG:3857</srs><extent>{west} {south} {east} {north}</extent><resolution>{data.PIXEL}</resolution><bands>rgb</bands>
    <overviews>{overviews}</overviews></cube>
  <service type="tms" enabled="true"/>
  <lock_dir>{folder}</lock_dir>
</mapcache>
""")
    before = database.size("ours"), database.logged(), spent(), cpu_seconds(database.pids()), time.monotonic()
    bound = [] if limit is None else ["--cachelimit", limit]
    command(folder, PROGRAM, "cube", "ingest", "-c", config, "--cube", "series", "--time", "%Y-%m-%d", "-q", "--scratch", folder, *bound, *images)
    seconds = time.monotonic() - before[4]
    dates = subprocess.run([PROGRAM, "cube", "dates", "-c", config, "--cube", "series"], capture_output=True, text=True, check=True).stdout.split()
    if len(dates) != len(images):
        raise RuntimeError(f"the cube has {len(dates)} dates of {len(images)}")
    figures = {"seconds": seconds, "measured": len(images), "images": len(images), "size": database.size("ours"), "before": before[0], "logged": database.logged() - before[1],
               "cpu": spent() - before[2], "database": cpu_seconds(database.pids()) - before[3]}
    database.sql("DROP DATABASE ours")
    return figures

"""The data of the serving benchmark: one world image, its tiles at WGS84 level 5 (64 x 32), about 17 KB each as JPEG."""
import io
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys

import numpy
from PIL import Image

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common.servers import BUILD  # noqa: E402

LEVEL, COLUMNS, ROWS = 5, 64, 32
MANY_LEVEL, MANY_COLUMNS, MANY_ROWS = 7, 160, 128
WIDTH, HEIGHT = COLUMNS * 256, ROWS * 256

CONFIG = """<mapcache>
  {world}
  <format name="jpeg" type="JPEG"><quality>85</quality></format>
  <cache name="sqlite" type="sqlite3"><dbfile>{data}/own.sqlite3</dbfile></cache>
  <cache name="foreign" type="sqlite3"><dbfile>{data}/foreign.sqlite3</dbfile></cache>
  <cache name="disk" type="disk"><base>{data}/disk</base></cache>
  <cache name="many" type="sqlite3"><dbfile>{data}/many/tiles.sqlite3</dbfile></cache>
  {tilesets}
  <service type="wms" enabled="true"><format allow_client_override="true">jpeg</format><maxsize>4096</maxsize></service>
  <service type="wmts" enabled="true"/>
  <locker type="disk"><directory>{data}</directory></locker>
  <errors>report</errors>
  {extra}
</mapcache>
"""
TILESET = """<tileset name="{name}">{source}<cache>{cache}</cache><grid>WGS84</grid><format>jpeg</format><metatile>8 8</metatile></tileset>"""


def config(data, source="", extra=""):
    """A configuration over the caches; with a source for seeding, without one for serving."""
    tilesets = "\n".join(TILESET.format(name="tiles", cache=cache, source=source).replace('"tiles"', f'"{cache}"')
                         for cache in ("sqlite", "foreign", "disk", "many"))
    world = f'<source name="world" type="gdal"><data>{data}/world.vrt</data></source>' if source else ""
    return CONFIG.format(data=data, world=world, tilesets=tilesets, extra=extra)


def make_image(data):
    """Hill-shaded noise in several octaves, as raw bytes with a VRT beside it."""
    rng = numpy.random.default_rng(7)
    with open(data / "world.raw", "wb") as out:
        coarse = [numpy.kron(rng.integers(0, 256, (HEIGHT // 256, WIDTH // 256, 3), dtype=numpy.uint8), numpy.ones((1, 1, 1), numpy.uint8))]
        for row in range(0, HEIGHT, 256):
            band = numpy.repeat(numpy.repeat(coarse[0][row // 256:row // 256 + 1], 256, 0), 256, 1).astype(numpy.int16) // 2
            for size, weight in ((32, 60), (8, 34), (2, 18)):
                noise = rng.integers(-weight, weight + 1, (256 // size, WIDTH // size, 1), dtype=numpy.int16)
                band = band + numpy.repeat(numpy.repeat(noise, size, 0), size, 1)
            out.write(numpy.clip(band + 64, 0, 255).astype(numpy.uint8).tobytes())
    bands = "".join(f"""<VRTRasterBand dataType="Byte" band="{b + 1}" subClass="VRTRawRasterBand"><SourceFilename relativeToVRT="1">world.raw</SourceFilename>
<ImageOffset>{b}</ImageOffset><PixelOffset>3</PixelOffset><LineOffset>{WIDTH * 3}</LineOffset></VRTRasterBand>""" for b in range(3))
    (data / "world.vrt").write_text(f"""<VRTDataset rasterXSize="{WIDTH}" rasterYSize="{HEIGHT}"><SRS>EPSG:4326</SRS>
<GeoTransform>-180, {360 / WIDTH}, 0, 90, 0, {-180 / HEIGHT}</GeoTransform>{bands}</VRTDataset>""")


def seed(data, tileset, *options):
    (data / "seed.xml").write_text(config(data, source="<source>world</source>"))
    subprocess.run([BUILD / "bin" / "mapcache", "seed", "-c", data / "seed.xml", "-t", tileset, "-g", "WGS84",
                    "-z", f"{LEVEL},{LEVEL}", "-n", "2", "-q", *options], check=True)


def make_foreign(data):
    """The same pictures as another encoder writes them: no restart markers, but equal tables."""
    source = sqlite3.connect(data / "own.sqlite3")
    target = sqlite3.connect(data / "foreign.sqlite3")
    target.execute("create table tiles(tileset text, grid text, x integer, y integer, z integer, data blob, dim text, ctime datetime,"
                   " primary key(tileset,grid,x,y,z,dim))")
    for x, y, z, blob, ctime in source.execute("select x,y,z,data,ctime from tiles"):
        out = io.BytesIO()
        Image.open(io.BytesIO(blob)).save(out, "JPEG", quality=85)
        target.execute("insert into tiles values('foreign','WGS84',?,?,?,?,'',?)", (x, y, z, out.getvalue(), ctime))
    target.commit()


def export(data):
    """Plain files for the web servers' own static serving, and the lists of paths."""
    static = data / "static"
    static.mkdir()
    sizes = []
    with open(data / "static.txt", "w") as static_list, open(data / "tiles.txt", "w") as tile_list, open(data / "floor.txt", "w") as floor_list:
        for x, y, blob in sqlite3.connect(data / "own.sqlite3").execute("select x,y,data from tiles order by (x*7919+y*104729)%2048 limit 2000"):
            row = ROWS - 1 - y
            (static / f"{row}_{x}.jpg").write_bytes(blob)
            sizes.append(len(blob))
            static_list.write(f"/static/{row}_{x}.jpg\n")
            tile_list.write(f"/wmts/1.0.0/@/default/WGS84/{LEVEL}/{row}/{x}.jpg\n")
            floor_list.write(f"/floor/{row}_{x}.jpg\n")
    sizes.sort()
    (data / "body.jpg").write_bytes(min(static.iterdir(), key=lambda f: abs(f.stat().st_size - sizes[len(sizes) // 2])).read_bytes())
    print(f"{len(sizes)} tiles, median {sizes[len(sizes) // 2]} bytes", file=sys.stderr)


def make_many(data):
    """20,480 tiles, each different, in a file as MapCache has them, and as plain files; lists of the paths of 300, 2,000 and 20,000 of them."""
    many = data / "many"
    if (many / "complete").exists():
        return
    shutil.rmtree(many, ignore_errors=True)
    (many / "static").mkdir(parents=True)
    blobs = [blob for blob, in sqlite3.connect(data / "own.sqlite3").execute("select data from tiles order by x, y")]
    target = sqlite3.connect(many / "tiles.sqlite3")
    target.execute("create table tiles(tileset text, grid text, x integer, y integer, z integer, data blob, dim text, ctime datetime,"
                   " primary key(tileset,grid,x,y,z,dim))")
    places = [(x, y) for y in range(MANY_ROWS) for x in range(MANY_COLUMNS)]
    for i, (x, y) in enumerate(places):
        blob = blobs[i % len(blobs)] + i.to_bytes(4, "big")  # behind the end of the picture, where nobody looks
        target.execute("insert into tiles values('many','WGS84',?,?,?,?,'',1700000000)", (x, y, MANY_LEVEL, blob))
        (many / "static" / f"{y}_{x}.jpg").write_bytes(blob)
    target.commit()
    target.close()
    order = sorted(places, key=lambda place: (place[0] * 7919 + place[1] * 104729) % 20507)
    for count in (300, 2000, 20000):
        rows = [(2 ** MANY_LEVEL - 1 - y, y, x) for x, y in order[:count]]
        (many / f"tiles-{count}.txt").write_text("".join(f"/mc/wmts/1.0.0/many/default/WGS84/{MANY_LEVEL}/{row}/{x}.jpg\n" for row, _, x in rows))
        (many / f"static-{count}.txt").write_text("".join(f"/many/static/{y}_{x}.jpg\n" for _, y, x in rows))
    (many / "complete").touch()
    if os.getuid() == 0:
        subprocess.run(["chown", "-R", "www-data:www-data", many], check=True)


def make(data):
    """All of it, once."""
    data = pathlib.Path(data).resolve()
    if (data / "complete").exists():
        return data
    if data.exists() and any(data.iterdir()):
        raise SystemExit(f"{data} is not empty, and what this benchmark needs is not all in it: remove it or choose another folder with --data")
    half = data.with_name("mapcache-bench-serve.new")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)  # that of a run that was interrupted is gone
    make_image(half)
    seed(half, "sqlite")
    seed(half, "disk")
    make_foreign(half)
    export(half)
    (half / "world.raw").unlink()
    (half / "complete").touch()
    if os.getuid() == 0:
        subprocess.run(["chown", "-R", "www-data:www-data", half], check=True)
    half.rename(data)
    return data

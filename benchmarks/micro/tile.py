#!/usr/bin/env python3
"""Milliseconds of processor time, server and database apart, of a vector tile and of an image tile of the same data.

    tile.py --postgres "host=... dbname=gis" --postmaster PID --psql "psql ..." [--only WORD ...] [--tiles N] [--levels Z ...]

Wants the tables villages, parcels, roads, buildings and places of the benchmark's data maker. Each tile is made once, in
an order that is the same for all ways: an image of one tile ("image"), images of metatiles of 8x8 tiles ("meta"), our
vector tile with all attributes ("vector"), one with what the image has, no attributes and vertices to a quarter of a
pixel ("bare"), and ST_AsMVT in the database (whose client's time is not counted), with all attributes, the same buffer
and extent. Tiles are stored in memory (/dev/shm): what a disk's file system needs for a new file is all of its own.
"""
import argparse
import os
import pathlib
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import servers  # noqa: E402
from draw import DATA, EXTENT, SLD, Client  # noqa: E402

ORIGIN, RESOLUTIONS = (420000, 30000), [1800 / 2**z for z in range(9)]
CONFIG = """<mapcache>
<grid name="lv"><srs>EPSG:21781</srs><units>m</units><extent>420000 30000 880800 490800</extent><size>256 256</size>
<resolutions>{resolutions}</resolutions></grid>
<cache name="disk" type="disk" layout="template"><template>{folder}/cache/{{tileset}}/{{z}}/{{x}}/{{y}}.{{ext}}</template></cache>
<format name="mvt" type="MVT"/><format name="mvt4" type="MVT"><simplification>4</simplification></format>{layers}<default_format>PNG</default_format>
<service type="tms" enabled="true"/><locker type="disk"><directory>{folder}</directory></locker></mapcache>"""
SOURCE = """<source name="{name}{kind}" type="postgis"><layer name="{name}"><connection>{postgres}</connection><table>{table}</table>
<style>{folder}/{name}.sld</style>{more}</layer></source>"""
TILESET = """<tileset name="{name}-{way}"><source>{name}{kind}</source><cache>disk</cache><grid>lv</grid><format>{form}</format>
<metatile>{metatile} {metatile}</metatile></tileset>"""
WAYS = {"image": ("PNG", 1, ""), "meta": ("PNG", 8, ""), "vector": ("mvt", 1, ""), "bare": ("mvt4", 1, "-bare")}
AS_MVT = """SELECT length(ST_AsMVT(t, '{table}', 4096, 'shape')) FROM (SELECT ST_AsMVTGeom(geom, ST_MakeEnvelope({box},21781),
4096, 64, true) AS shape, {columns} FROM {table} WHERE geom && ST_MakeEnvelope({wide},21781)) t;"""


def configure(folder, arguments, cases):
    layers = []
    for name in cases:
        table, rules, _ = DATA[name]
        (folder / f"{name}.sld").write_text(SLD.format(rules))
        for kind, more in (("", ""), ("-bare", "<attributes></attributes>")):
            layers.append(SOURCE.format(name=name, kind=kind, more=more, table=table, folder=folder, postgres=arguments.postgres))
        layers += [TILESET.format(name=name, way=way, form=form, metatile=size, kind=kind)
                   for way, (form, size, kind) in WAYS.items()]
    (folder / "mapcache.xml").write_text(CONFIG.format(folder=folder, layers="".join(layers),
                                                       resolutions=" ".join(map(str, RESOLUTIONS))))


def tiles(z, count, seed):
    """Tiles inside of the data; all of the level's where there are no more."""
    side = 256 * RESOLUTIONS[z]
    columns, rows = (range(int((EXTENT[i] - ORIGIN[i]) // side), int((EXTENT[i + 2] - ORIGIN[i]) // side) + 1) for i in (0, 1))
    everything = [(x, y) for x in columns for y in rows]
    random.Random(f"{seed}/{z}").shuffle(everything)
    return everything[:count]


def fetch(client, name, z, x, y, extension):
    params = f"/tms/1.0.0/{name}@lv/{z}/{x}/{y}.{extension}"
    answer = client.get("", params)
    head, _, body = answer.partition(b"\r\n\r\n")
    if b"Status: 200" not in head and b"Content-Type: image" not in head and b"mapbox" not in head:
        raise SystemExit(f"{params}: {answer[:300]!r}")
    return len(body)


def as_mvt(arguments, table, columns, wanted, z):
    side, statements = 256 * RESOLUTIONS[z], []
    margin = side / 4096 * 65
    for x, y in wanted:
        x0, y0 = ORIGIN[0] + x * side, ORIGIN[1] + y * side
        box, wide = (f"{x0 - m},{y0 - m},{x0 + side + m},{y0 + side + m}" for m in (0, margin))
        statements.append(AS_MVT.format(table=table, box=box, wide=wide, columns=columns))
    done = subprocess.run([*shlex.split(arguments.psql), "-X", "-q", "-A", "-t", "-c", "select pg_backend_pid()", "-f", "-"],
                          input="\n".join(statements), capture_output=True, text=True, check=True)
    return sum(int(line) for line in done.stdout.split()[1:])


def measure(arguments, server, wanted, make):
    database = servers.descendants(arguments.postmaster)
    before = servers.cpu_seconds([server.pid]), servers.cpu_seconds(database)
    size = make()
    database = servers.descendants(arguments.postmaster)
    spent = servers.cpu_seconds([server.pid]) - before[0], servers.cpu_seconds(database) - before[1]
    return [value * 1000 / len(wanted) for value in spent] + [size / len(wanted)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postgres", required=True)
    parser.add_argument("--postmaster", type=int, required=True)
    parser.add_argument("--psql", required=True)
    parser.add_argument("--only", nargs="*", default=["villages", "parcels", "roads", "places"])
    parser.add_argument("--tiles", type=int, default=60)
    parser.add_argument("--levels", nargs="*", type=int, default=[0, 2, 4, 6])
    parser.add_argument("--seed", default="7")
    arguments = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="mapcache-tile-", dir="/dev/shm"))
    configure(folder, arguments, arguments.only)
    server = subprocess.Popen([servers.BUILD / "bin/mapcache.fcgi", "--listen", str(folder / "socket")],
                              stderr=open(folder / "log", "wb"), env=dict(os.environ, MAPCACHE_CONFIG_FILE=str(folder / "mapcache.xml")))
    try:
        while not (folder / "socket").exists():
            time.sleep(0.05)
        client = Client(folder / "socket")
        print(f"{'data':10} level tiles way       server  database      sum    bytes")
        for name in arguments.only:
            columns = subprocess.run([*shlex.split(arguments.psql), "-X", "-A", "-t", "-c",
                                      "select string_agg(quote_ident(attname), ',') from pg_attribute where attrelid ="
                                      f" '{DATA[name][0]}'::regclass and attnum > 0 and attname <> 'geom' and not attisdropped"],
                                     capture_output=True, text=True, check=True).stdout.strip()
            for z in arguments.levels:
                wanted = tiles(z, arguments.tiles, arguments.seed)
                for way, (form, _, _) in WAYS.items():
                    extension = "png" if form == "PNG" else "mvt"
                    found = measure(arguments, server, wanted, lambda: sum(
                        fetch(client, f"{name}-{way}", z, x, y, extension) for x, y in wanted))
                    print(f"{name:10} {z:5} {len(wanted):5} {way:8} {found[0]:8.2f} {found[1]:9.2f} {sum(found[:2]):8.2f} {found[2]:8.0f}", flush=True)
                found = measure(arguments, server, wanted, lambda: as_mvt(arguments, DATA[name][0], columns, wanted, z))
                print(f"{name:10} {z:5} {len(wanted):5} {'ST_AsMVT':8} {found[0]:8.2f} {found[1]:9.2f} {sum(found[:2]):8.2f} {found[2]:8.0f}", flush=True)
    finally:
        server.terminate()
        server.wait()
        sys.stderr.write((folder / "log").read_text()[-2000:])
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()

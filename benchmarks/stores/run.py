#!/usr/bin/python3
"""What a stored tile costs, store by store: Apache with our module and with Debian's, one kept connection. See benchmarks/README.md.

    run.py [--rounds 5] [--requests 500] [--only memcache,rest] [--write]

--only: these rows and that of sqlite3. --write: the table of all rows goes into benchmarks/README.md, too."""
import argparse
import contextlib
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common.client import Client  # noqa: E402
from common.machine import describe  # noqa: E402
from common.report import Report, table  # noqa: E402
from common.run import begin, need  # noqa: E402
from common.servers import BUILD, PEER_MODULE, ROOT, apache, make_folder  # noqa: E402
from http_stores import running_dav  # noqa: E402
from origin import Origin  # noqa: E402
from postgres import Postgres  # noqa: E402
from stores import Memcached, Redis  # noqa: E402

GRID, LEVEL = "GoogleMapsCompatible", 3
MARKS = ("<!-- stores: written by script/bench stores --write -->", "<!-- end of stores -->")
TEMPLATE = "{tileset}/{grid}/{z}/{x}/{y}.{ext}"
BOTH = ("sqlite3", "disk", "memcache", "rest")  # what MapCache has, too, and does not end by


def caches(folder, memcached, redis, database, web):
    """By the name of the row: what stands in <cache>."""
    return {
        "sqlite3": f'type="sqlite3"><dbfile>{folder}/tiles.db</dbfile>',
        "sqlite3, memory off": f'type="sqlite3"><dbfile>{folder}/tiles.db</dbfile><memory>false</memory>',
        "disk": f'type="disk"><base>{folder}/tiles</base>',
        "disk, memory off": f'type="disk"><base>{folder}/tiles</base><memory>false</memory>',
        "lmdb": f'type="lmdb"><base>{folder}/lmdb</base>',
        "pmtiles": f'type="pmtiles"><file>{folder}/tiles.pmtiles</file>',
        "memcache": memcached.cache(),
        "redis": redis.cache(),
        "postgresql": f'type="postgresql"><connection>{database.connection()}</connection>',
        "rest": f'type="rest"><url>http://127.0.0.1:{web}/{TEMPLATE}</url>',
        "s3": f'type="s3"><url>http://127.0.0.1:{web}/s3/{TEMPLATE}</url><id>a</id><secret>b</secret><region>c</region>',
    }


def write_config(folder, name, cache, origin):
    path = folder / f"{name.replace(' ', '-').replace(',', '')}.xml"
    path.write_text(f"""<mapcache>
  <source name="pattern" type="wms"><getmap><params><FORMAT>image/png</FORMAT><LAYERS>pattern</LAYERS></params></getmap>
    <http><url>{origin.url("/pattern?")}</url></http></source>
  <cache name="store" {cache}</cache>
  <tileset name="world"><source>pattern</source><cache>store</cache><grid>{GRID}</grid><format>JPEG</format><metatile>4 4</metatile></tileset>
  <service type="wmts" enabled="true"/><lock_dir>{folder}</lock_dir>
</mapcache>
""")
    return path


def seed(config):
    subprocess.run([BUILD / "bin/mapcache_seed", "-c", config, "-t", "world", "-g", GRID, "-z", f"{LEVEL},{LEVEL}", "-q"], check=True)


def measure(server, client, requests):
    """Microseconds of processor and of the clock for a tile; its bytes."""
    paths = [f"/mc/wmts/1.0.0/world/default/{GRID}/{LEVEL}/{y}/{x}.jpg" for x in range(8) for y in range(8)]
    size = 0
    for path in paths:
        _, [reply] = client.fetch([path])
        assert reply.status == 200, (path, reply.status, reply.body[:200])
        size += len(reply.body) / len(paths)
    before, began = server.cpu(), time.monotonic()
    for number in range(requests):
        client.fetch([paths[number * 13 % len(paths)]])
    return {"processor_us": (server.cpu() - before) * 1e6 / requests, "clock_us": (time.monotonic() - began) * 1e6 / requests, "bytes": size}


def write_into_page(text):
    page = ROOT / "benchmarks" / "README.md"
    before, _, rest = page.read_text().partition(MARKS[0])
    page.write_text(before + MARKS[0] + "\n\n" + text + "\n" + MARKS[1] + rest.partition(MARKS[1])[2])


def report_text(rows, loads, requests, rounds):
    by = {(row["case"], row["variant"]): row for row in rows}
    least = by["sqlite3", "ours"]["processor_us"]

    def cell(name, variant, what):
        return f"{by[name, variant][what]:.0f}" if (name, variant) in by else ""

    lines = [[name, cell(name, "ours", "processor_us"), f"{by[name, 'ours']['processor_us'] / least:.1f}", cell(name, "ours", "clock_us"),
              cell(name, "MapCache", "processor_us"), cell(name, "MapCache", "clock_us")] for name, variant in by if variant == "ours"]
    columns = ["store", "ours: us of processor", "of sqlite3", "us of the clock", "MapCache: us of processor", "us of the clock"]
    size = sum(row["bytes"] for row in rows) / len(rows)
    told = describe(ROOT)
    return (table(columns, lines) + f"\n\nA tile of {size / 1024:.1f} KB, {requests} requests a round, medians of {rounds} rounds, interleaved. "
            f"Load of the machine: {loads[0]:.1f} at the beginning, {loads[1]:.1f} at the end. {told['processor']}; Apache {told['Apache']}; MapCache {told['MapCache']}.\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=500)
    parser.add_argument("--only", type=lambda text: {"sqlite3", *text.split(",")}, metavar="NAMES")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.only and options.write:
        parser.error("--write wants all rows")
    begin()
    need("apache2", "nginx", "memcached", "redis-server", BUILD / "modules/mod_mapcache.so", PEER_MODULE)
    loads, report, folder = [os.getloadavg()[0]], Report("stores"), make_folder("bench-stores")
    (folder / "lmdb").mkdir()
    with contextlib.ExitStack() as stack:
        origin = stack.enter_context(Origin())
        memcached, redis, database = Memcached(folder), Redis(folder), stack.enter_context(Postgres())
        stack.callback(memcached.stop)
        stack.callback(redis.stop)
        web, _, _ = stack.enter_context(running_dav(folder))
        measured = []
        rows = caches(folder, memcached, redis, database, web)
        if options.only and not options.only <= rows.keys():
            parser.error(f"no such rows: {options.only - rows.keys()}")
        for name, cache in rows.items():
            if options.only and name not in options.only:
                continue
            config = write_config(folder, name, cache, origin)
            seed(config)
            for path in (folder, *folder.rglob("*")):  # the servers are another user
                if path.is_dir() or path.suffix in (".db", ".xml", ".mdb", ".pmtiles", ".jpg", ".draft"):
                    path.chmod(0o777 if path.is_dir() else 0o666)
            for variant, module in (("ours", f"{BUILD}/modules/mod_mapcache.so"), ("MapCache", PEER_MODULE)):
                if variant == "ours" or name in BOTH:
                    lines = f'LoadModule mapcache_module "{module}"\nMapCacheAlias /mc "{config}" quick'
                    server = stack.enter_context(apache(f"stores-{variant}", lines, "/mc/wmts/1.0.0/WMTSCapabilities.xml", processes=1))
                    measured.append((name, variant, server, Client(int(server.url.split(":")[2].split("/")[0]))))
        for _ in range(options.rounds):
            for name, variant, server, client in measured:
                report.add(name, variant, measure(server, client, options.requests))
        for _, _, _, client in measured:
            client.close()
    loads.append(os.getloadavg()[0])
    report.write()
    text = report_text(report.medians(), loads, options.requests, options.rounds)
    print(text)
    if options.write:
        write_into_page(text)


if __name__ == "__main__":
    main()

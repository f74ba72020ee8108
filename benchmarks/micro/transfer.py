#!/usr/bin/env python3
"""How geometry should travel: maps by <transfer> over lines of several rates.

    benchmarks/micro/transfer.py [--build FOLDER] [--maps N] [--rates 0,1000,100,10]

A PostgreSQL server of its own with 2,500 polygons (1.4 MB of WKB) and mapcache.fcgi run in a network namespace of their
own, whose loopback passes so many Mbit/s (tc, token bucket; 0: as it is); maps of 1000x1000 pixels are asked for through a local
socket. For each way: three maps that do not count, then the median of N, the bytes from the database, the CPU time of server and
database. Needs root, iproute2, PostgreSQL and PostGIS. It measures and asserts nothing.
"""
import argparse
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))

import postgres as cluster  # noqa: E402
from fastcgi import Client  # noqa: E402
from conftest import Program, listens, wait_until  # noqa: E402
from vector_maps import Maps, query_of  # noqa: E402

WAYS = ("binary", "hex", "twkb", "auto")
TICK = 1000 / os.sysconf("SC_CLK_TCK")


class Namespace:
    """A network of its own with a loopback only."""

    def __init__(self):
        self.name = f"mapcache-{os.getpid()}"
        subprocess.run(["ip", "netns", "add", self.name], check=True)
        self.run("ip", "link", "set", "lo", "mtu", "1500", "up")

    def command(self, *words):
        return ["ip", "netns", "exec", self.name, *map(str, words)]

    def run(self, *words, **options):
        return subprocess.run(self.command(*words), check=True, **options)

    def shape(self, rate):
        subprocess.run(self.command("tc", "qdisc", "del", "dev", "lo", "root"), stderr=subprocess.DEVNULL, check=False)
        if rate:
            burst = max(10, rate // 2)
            self.run("tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", f"{rate}mbit", "burst", f"{burst}kb", "latency", "500ms")

    def end(self):
        subprocess.run(["ip", "netns", "del", self.name], check=True)


class Server:
    """mapcache.fcgi in the namespace."""

    def __init__(self, build, config, folder, space):
        self.address = str(folder / "socket")
        environment = {"MAPCACHE_CONFIG_FILE": str(config), "MAPCACHE_MODULES": str(build / "modules"), "LD_LIBRARY_PATH": str(build / "lib")}
        self.program = Program(space.command(build / "bin/mapcache.fcgi", "--listen", self.address), folder / "log", environment)
        wait_until(lambda: listens(self.address), "mapcache.fcgi starts")
        self.client = Client(self.address)

    def stop(self):
        self.client.close()
        self.program.stop()


def children(pid):
    listed = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in listed]


def cpu(pids):
    total = 0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total * TICK


def start_database(space):
    """The tests' server, begun inside of the namespace."""
    popen = subprocess.Popen

    server = cluster.Postgres(start=False, settings=["max_parallel_workers_per_gather=0", "shared_buffers=256MB"])
    identity, server.identity = server.identity, {}
    cluster.subprocess.Popen = lambda command, *a, **o: popen(
        ["nsenter", f"--net=/run/netns/{space.name}", "setpriv", f"--reuid={identity['user']}", f"--regid={identity['group']}",
         "--clear-groups", *command], *a, **{key: value for key, value in o.items() if key != "preexec_fn"})
    try:
        server.start()
    finally:
        cluster.subprocess.Popen = popen
    return server


def measure(maps, space, server, rate, count, database):
    space.shape(rate)
    boxes = random.Random(rate)
    for way in WAYS:
        times, used, size = [], 0, 0
        for number in range(count + 3):
            shift = boxes.uniform(0, 1000)
            query = query_of(way, (shift, shift, shift + 100000, shift + 100000), (1000, 1000)).encode()
            pids = [server.program.process.pid, *children(database.process.pid)]
            before, spent, begun = maps.counter("postgres_bytes_total"), cpu(pids), time.monotonic()
            reply = server.client.get(b"/", query)
            if number >= 3:
                times.append((time.monotonic() - begun) * 1000)
                used += cpu(pids) - spent
                size += maps.counter("postgres_bytes_total") - before
            assert reply.status == 200, reply.body
        print(f"| {rate or 'no limit'} | {way} | {statistics.median(times):.1f} | {size // count} | {used / count:.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build/release", type=pathlib.Path)
    parser.add_argument("--maps", default=15, type=int)
    parser.add_argument("--rates", default="0,1000,100,10")
    options = parser.parse_args()
    space = Namespace()
    try:
        database = start_database(space)
        try:
            database.sql("""CREATE EXTENSION postgis; CREATE TABLE areas AS SELECT i AS id, ST_Buffer(ST_SetSRID(ST_MakePoint(
              (i % 50) * 2000 + 1000, (i / 50) * 2000 + 1000), 3857), 950, 8)::geometry(Polygon, 3857) AS geom FROM generate_series(0, 2499) i;
              CREATE INDEX ON areas USING gist(geom)""")
            database.sql("VACUUM ANALYZE areas")
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                maps = Maps(folder, options.build, database.connection())
                for way in WAYS:
                    maps.add(way, f"<table>areas</table><transfer>{way}</transfer>")
                server = maps.server = Server(options.build.resolve(), maps.configure(), folder, space)
                server.get = lambda path, query="": server.client.get(path.encode(), query.encode())
                print("| Mbit/s | transfer | ms a map | bytes from the database | CPU ms, server + database |\n|---|---|---|---|---|")
                try:
                    for rate in map(int, options.rates.split(",")):
                        measure(maps, space, server, rate, options.maps, database)
                finally:
                    server.stop()
        finally:
            database.destroy()
    finally:
        space.end()


if __name__ == "__main__":
    main()

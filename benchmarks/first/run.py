#!/usr/bin/python3
"""From Enter to the first picture: `mapcache serve` of each kind of thing, asked for one tile until the tile comes. See benchmarks/README.md."""
import argparse
import http.client
import pathlib
import resource
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common.database import Database  # noqa: E402
from common.machine import describe  # noqa: E402
from common.report import Report, table  # noqa: E402
from common.run import begin, need, some  # noqa: E402
from common.servers import BUILD, ROOT, make_folder  # noqa: E402
from ports import free_port  # noqa: E402
from serve_things import KINDS, SQUARE, TILE, web_of  # noqa: E402

PAUSE, LONGEST = .003, 60  # seconds
LAYERS = {"geotiff": "square", "cog": "cog", "mosaic": "mosaic", "folder": "image", "bundle": "bundled", "bundlewebp": "webp", "bundlefile": "other", "mrf": "pages"}


def ask(port, path):
    """The status, or None where nobody listens."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONGEST)
    try:
        connection.request("GET", path)
        reply = connection.getresponse()
        reply.read()
        return reply.status
    except OSError:
        return None
    finally:
        connection.close()


def measure(thing, server, layer):
    """Seconds until the tile is there, and of processor until then and for the end."""
    z, x, y = TILE
    port, path = free_port(), f"/wmts/1.0.0/{layer}/default/GoogleMapsCompatible/{z}/{y}/{x}.png"
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    process = subprocess.Popen([BUILD / "bin/mapcache", "serve", "-q", f"--{server}", "--port", str(port), str(thing)], stderr=subprocess.PIPE)
    try:
        while ask(port, path) != 200:
            if process.poll() is not None or time.monotonic() > began + LONGEST:
                sys.exit(f"{thing}: {process.stderr.read().decode() if process.poll() is not None else 'no picture'}")
            time.sleep(PAUSE)
        first = time.monotonic() - began
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(LONGEST)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"first_picture_s": first, "processor_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            "with_its_end_s": time.monotonic() - began}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="kinds whose names hold one of these words, with commas between")
    options = parser.parse_args()
    begin()
    need("apache2", "nginx", BUILD / "bin/mapcache", BUILD / "modules/mod_mapcache.so")
    folder = make_folder("bench-first")
    folder.chmod(0o755)
    kinds, report = some(KINDS, options.only) if options.only else list(KINDS), Report("first")
    with Database() as database, web_of(folder) as web:
        database.sql("create table square(id serial primary key, geom geometry(Polygon, 4326))")
        database.sql(f"insert into square(geom) values(ST_GeomFromText('{SQUARE}', 4326))")
        database.sql("create index on square using gist(geom)")
        database.sql("analyze")
        things = {kind: KINDS[kind](folder, web, database) for kind in kinds}
        for _ in range(options.rounds):
            for kind, thing in things.items():
                for server in ("apache", "nginx"):
                    report.add(kind, server, measure(thing, server, LAYERS.get(kind, "square")))
    print("\n".join(f"{word}: {value}" for word, value in describe(ROOT).items()))
    rows = report.medians()
    report.write()
    by = {(row["case"], row["variant"]): row for row in rows}
    print(table(["THING", "Apache", "nginx", "processor, Apache", "processor, nginx"],
                [[kind, *(f"{by[kind, server][what]:.2f} s" for what in ("first_picture_s", "processor_s") for server in ("apache", "nginx"))] for kind in kinds]))


if __name__ == "__main__":
    main()

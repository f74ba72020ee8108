#!/usr/bin/python3
"""Workers on one queue of jobs, with an origin that waits and uses no processor: how much faster are several? See benchmarks/README.md."""
import argparse
import asyncio
import collections
import json
import pathlib
import subprocess
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common import keeper  # noqa: E402
from common.database import Database  # noqa: E402
from common.machine import describe  # noqa: E402
from common.report import Report, table  # noqa: E402
from common.run import begin  # noqa: E402
from common.servers import BUILD, ROOT, make_folder  # noqa: E402
from origin import png  # noqa: E402

WAIT = .1  # seconds
CONFIG = """<mapcache>
  <source name="origin" type="wms"><getmap><params><FORMAT>image/png</FORMAT><LAYERS>a</LAYERS></params></getmap>
    <http><url>http://127.0.0.1:{port}/?</url></http></source>
  <cache name="tiles" type="disk"><base>{folder}/tiles</base></cache>
  <tileset name="origin"><source>origin</source><cache>tiles</cache><grid>GoogleMapsCompatible</grid><format>PNG</format><metatile>2 2</metatile></tileset>
  <jobs><connection>{connection}</connection></jobs>
  <service type="wmts" enabled="true"/>
  <lock_dir>{folder}</lock_dir>
</mapcache>
"""


class Origin:
    """A PNG for whoever asks, after a wait; any number at once. Boxes are counted."""

    def __init__(self):
        self.asked, self.loop, ready = collections.Counter(), asyncio.new_event_loop(), threading.Event()
        body = png(512, 512, (200, 220, 240, 255))
        answer = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: %d\r\n\r\n" % len(body) + body

        async def serve(reader, writer):
            try:
                while head := await reader.readuntil(b"\r\n\r\n"):
                    query = urllib.parse.parse_qs(urllib.parse.urlsplit(head.split(b" ", 2)[1].decode()).query)
                    self.asked[query["BBOX"][0]] += 1
                    await asyncio.sleep(WAIT)
                    writer.write(answer)
                    await writer.drain()
            except (asyncio.IncompleteReadError, ConnectionError):
                pass
            finally:
                writer.close()

        def run():
            asyncio.set_event_loop(self.loop)
            server = self.loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", 0))
            self.port = server.sockets[0].getsockname()[1]
            ready.set()
            self.loop.run_forever()

        threading.Thread(target=run, daemon=True).start()
        ready.wait()


def jobs(config, *words):
    return subprocess.run([BUILD / "bin" / "mapcache", "jobs", words[0], "-c", config, *map(str, words[1:])], check=True,
                          capture_output=True, text=True).stdout


def measure(config, origin, workers, threads, level):
    """One job, worked off by so many workers; the queue's own clock says how long that took."""
    origin.asked.clear()
    number = json.loads(jobs(config, "enqueue", "-t", "origin", "-m", "reseed", "-z", f"{level},{level}", "--json"))["id"]
    began = time.monotonic()
    running = [keeper.start([BUILD / "bin" / "mapcache", "jobs", "work", "-c", config, "--drain", "-q", "-n", str(threads)],
                            stdout=subprocess.DEVNULL) for _ in range(workers)]
    ended = [process.wait() for process in running]
    for process in running:
        keeper.end(process)
    assert not any(ended), f"workers ended with {ended}"
    wall = time.monotonic() - began
    job = json.loads(jobs(config, "show", number, "--json").splitlines()[0])
    assert job["state"] == "done" and job["done"] == job["metatiles"] == len(origin.asked)
    seconds = job["ended"] - job["started"]
    return {"seconds": seconds, "wall": wall, "metatiles_per_second": job["metatiles"] / seconds,
            "of_the_origins_rate": job["metatiles"] * WAIT / (workers * threads) / seconds,
            "twice": sum(count - 1 for count in origin.asked.values()), "units": job["units"]}


def statements(config, database, units):
    """What the queue itself costs: units of a job that deletes nothing, one worker, microseconds each."""
    number = json.loads(jobs(config, "enqueue", "-t", "origin", "-m", "delete", "-z", "11,11", "--side", 4, "--json",
                             "-e", f"-20037508,-20037508,{-20037508 + 156543 / 4 * units / 64},{-20037508 + 156543 / 4 * 64}"))["id"]
    jobs(config, "work", "--drain", "-q")
    job = json.loads(jobs(config, "show", number, "--json").splitlines()[0])
    return {"units": job["units"], "microseconds_a_unit": (job["ended"] - job["started"]) / job["units"] * 1e6}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--level", type=int, default=5, help="of the grid: 5 has 256 metatiles")
    parser.add_argument("--threads", type=int, default=1, help="of each worker")
    parser.add_argument("--workers", default="1,2,4")
    options = parser.parse_args()
    begin()
    folder = make_folder("bench-jobs")
    report = Report("jobs")
    with Database(["fsync=on"]) as database:
        origin = Origin()
        config = folder / "mapcache.xml"
        config.write_text(CONFIG.format(folder=folder, port=origin.port, connection=database.connection()))
        for _ in range(options.rounds):
            for workers in map(int, options.workers.split(",")):
                report.add("origin", f"{workers} workers", measure(config, origin, workers, options.threads, options.level))
        report.add("queue alone", "1 worker", statements(config, database, 1024))
    medians = report.medians()
    rates = {row["variant"]: row["metatiles_per_second"] for row in medians if row["case"] == "origin"}
    first = next(iter(rates.values()))
    print("\n".join(f"{word}: {value}" for word, value in describe(ROOT).items()))
    report.write()
    print(table(["workers", "metatiles/s", "times the first"], [[name, f"{rate:.1f}", f"{rate / first:.2f}"] for name, rate in rates.items()]))


if __name__ == "__main__":
    main()

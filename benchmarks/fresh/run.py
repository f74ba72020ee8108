#!/usr/bin/python3
"""From commit to pixel: what a change in PostGIS takes until tiles are marked and until they are new, while other tiles are served and other rows change;
what that adds to a hit; renderd's expiry beside it. See benchmarks/README.md."""
import argparse
import os
import pathlib
import random
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common import keeper  # noqa: E402
from common.client import Client  # noqa: E402
from common.database import SETTINGS, Database  # noqa: E402
from common.load import Crowd, percentile  # noqa: E402
from common.machine import describe  # noqa: E402
from common.report import Report  # noqa: E402
from common.run import begin, need  # noqa: E402
from common.servers import BUILD, ROOT, apache, cpu_seconds, make_folder  # noqa: E402
from fresh.config import COLUMNS, LEVEL, ROWS, make_table, path_of, renderd_tool, tile_of, write_ours, write_renderd  # noqa: E402
from peers import peer  # noqa: E402

USERS, HIT_TILES, LONGEST = 32, 300, 30
ALONE, FOLLOWED, UNFOLLOWED = "nothing changes", "while rows change", "while rows change, not followed"
HALF = COLUMNS // 2


class Session:
    """psql at the other end of a pipe: a statement has committed when its call returns."""

    def __init__(self, database):
        self.process = keeper.start(database.session("SELECT 1")[:-2], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, statement):
        self.process.stdin.write(statement + ";\n\\echo done\n")
        self.process.stdin.flush()
        while (line := self.process.stdout.readline().strip()) != "done":
            if not line or "ERROR" in line:
                raise RuntimeError(f"psql: {line}")

    def close(self):
        self.process.stdin.close()
        keeper.end(self.process)


class Writer:
    """Changes so many squares a second in the western half, in so many transactions a second."""

    def __init__(self, database, features, commits):
        self.session, self.features, self.commits = Session(database), features, commits
        self.ending, self.changed, self.began, self.seconds = threading.Event(), 0, time.monotonic(), 0.0
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def work(self):
        each, rnd, due = max(1, self.features // self.commits), random.Random(1), time.monotonic()
        while not self.ending.is_set():
            chosen = ",".join(str(rnd.randrange(ROWS) * COLUMNS + rnd.randrange(HALF - 2)) for _ in range(each))
            self.session.run(f"UPDATE squares SET state = 1 - state WHERE id = ANY ('{{{chosen}}}')")
            self.changed += each
            due += 1 / self.commits
            self.ending.wait(max(0, due - time.monotonic()))

    def finish(self):
        """Features changed in a second, as it went."""
        self.seconds = time.monotonic() - self.began
        self.ending.set()
        self.thread.join()
        self.session.close()
        return self.changed / self.seconds


def fetch(client, path):
    _, [reply] = client.fetch([path])
    if reply.status != 200:
        raise RuntimeError(f"{path}: {reply.status} {reply.body[:200]}")
    return reply


def probe(client, session, number):
    """Seconds from the commit of a change of one square to the first answer that says that it is old, and to the first new one."""
    path = path_of(tile_of(number))
    before = fetch(client, path).body
    session.run(f"UPDATE squares SET state = 1 - state WHERE id = {number}")
    began, marked = time.monotonic(), None
    while True:
        asked = time.monotonic()
        reply = fetch(client, path)
        new = reply.body != before
        if marked is None and (new or "age" in reply.headers):
            marked = asked - began
        if new and "age" not in reply.headers:
            return marked, asked - began
        if asked > began + LONGEST:
            sys.exit(f"{path} is not new after {LONGEST} s")
        time.sleep(.002)


def counter(client, name):
    return next(float(line.split()[1]) for line in fetch(client, "/mc/metrics").body.decode().splitlines() if line.startswith(f"mapcache_{name} "))


def serve_hits(port, paths, rate, seconds):
    """The crowd asks for stored tiles, so many in a second if it can."""
    return Crowd(port, paths, USERS, int(rate * seconds), interval=USERS / rate, seconds=seconds)


def hits_alone(server, port, paths, database, options, changing):
    writer = Writer(database, options.features, options.commits) if changing else None
    before, theirs, began = server.cpu(), cpu_seconds(database.pids()), time.monotonic()
    answers, _ = serve_hits(port, paths, options.rate, options.seconds).finish()
    spent, took = server.cpu() - before, time.monotonic() - began
    times = sorted(answer.ms for answer in answers if answer.good)
    figures = {"hits_per_s": len(times) / took, "processor_us_a_hit": spent * 1e6 / len(times), "hit_p50_ms": percentile(times, .5), "hit_p99_ms": percentile(times, .99),
               "database_s_per_s": (cpu_seconds(database.pids()) - theirs) / took}
    if writer:
        figures["features_per_s"] = writer.finish()
    return figures


def commit_to_pixel(server, port, paths, database, options, busy):
    """The probes lie east of what else changes."""
    client, session = Client(port), Session(database)
    numbers = [row * COLUMNS + HALF + 2 + 3 * column for row in range(0, ROWS, 7) for column in range(30)][:options.probes]
    for number in numbers:
        fetch(client, path_of(tile_of(number)))
    writer = Writer(database, options.features, options.commits) if busy else None
    crowd = serve_hits(port, paths, options.rate, 3600) if busy else None
    found = []
    try:
        for number in numbers:
            found.append(probe(client, session, number))
    finally:
        rate = writer.finish() if writer else 0
        if crowd:
            keeper.end(crowd.process)
        session.close()
        client.close()
    marked, fresh = (sorted(pair[i] * 1e3 for pair in found) for i in (0, 1))
    return {"marked_p50_ms": percentile(marked, .5), "marked_p99_ms": percentile(marked, .99), "fresh_p50_ms": percentile(fresh, .5),
            "fresh_p99_ms": percentile(fresh, .99), "features_per_s": rate}


def of_renderd(database, options):
    """Milliseconds that Debian's render_expired takes for a list of one tile: to mark it, and to have it drawn. Who writes the list comes on top."""
    folder = make_folder("bench-fresh-renderd")
    program = keeper.start(write_renderd(folder, database), stdout=subprocess.DEVNULL, stderr=open(folder / "renderd.log", "ab"))
    end, marked, fresh, quiet = time.monotonic() + 60, [], [], {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        while not (folder / "renderd.sock").exists() and time.monotonic() < end:
            time.sleep(.1)
        for number in range(HALF + 2, HALF + 2 + 3 * min(options.probes, 30), 3):
            z, x, y = tile_of(number)
            tile = f"{z}/{x}/{y}\n"
            level = ("-z", str(z), "-Z", str(z))
            subprocess.run([*renderd_tool(folder, "render_list", "-f", "-a"), *level, "-x", str(x), "-X", str(x), "-y", str(y), "-Y", str(y)], check=True, **quiet)
            for words, times in (((f"--touch-from={z}",), marked), ((), fresh)):
                began = time.monotonic()
                subprocess.run([*renderd_tool(folder, "render_expired"), *level, *words], input=tile, text=True, check=True, **quiet)
                times.append((time.monotonic() - began) * 1e3)
    finally:
        keeper.end(program)
    marked.sort(), fresh.sort()
    return {"marked_p50_ms": percentile(marked, .5), "marked_p99_ms": percentile(marked, .99), "fresh_p50_ms": percentile(fresh, .5), "fresh_p99_ms": percentile(fresh, .99)}


def await_follower(client):
    """Until the server has read the log of changes."""
    began = time.monotonic()
    while counter(client, "change_reads_total") == 0:
        if time.monotonic() > began + LONGEST:
            sys.exit(f"the server does not follow the changes after {LONGEST} s")
        time.sleep(.05)


def start_ours(name, config):
    return apache(name, f'LoadModule mapcache_module "{BUILD}/modules/mod_mapcache.so"\nMapCacheAlias /mc "{config}" quick',
                  "/mc/wmts/1.0.0/WMTSCapabilities.xml", threads=64)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10, help="of a round of hits")
    parser.add_argument("--rate", type=int, default=5000, help="hits a second that are asked for")
    parser.add_argument("--features", type=int, default=1000, help="changed a second")
    parser.add_argument("--commits", type=int, default=20, help="transactions a second")
    parser.add_argument("--probes", type=int, default=100, help="changes that are followed to the pixel, a round")
    parser.add_argument("--cores", help="processors for all of it, such as 2,3")
    options = parser.parse_args()
    begin(options.cores, files=4096)
    need("apache2", BUILD / "modules/mod_mapcache.so")
    report, folder, unfollowed = Report("fresh"), make_folder("bench-fresh"), make_folder("bench-unfollowed")
    folder.chmod(0o777), unfollowed.chmod(0o777)
    print("\n".join(f"{word}: {value}" for word, value in describe(ROOT).items()), f"load: {os.getloadavg()[0]:.1f}", sep="\n")
    with Database((*SETTINGS, "autovacuum=on")) as database:
        make_table(database)
        rnd = random.Random(2)
        paths = [path_of(tile_of(rnd.randrange(ROWS) * COLUMNS + rnd.randrange(HALF + 100 - 2 - HALF) // 3 * 3 + HALF + 4, LEVEL)) for _ in range(HIT_TILES)]
        with start_ours("fresh", write_ours(folder, database)) as server, start_ours("unfollowed", write_ours(unfollowed, database, followed=False)) as other:
            ports = {one: int(one.url.split(":")[2].split("/")[0]) for one in (server, other)}
            for port in ports.values():
                client = Client(port)
                for path in paths:
                    fetch(client, path)
                if port == ports[server]:
                    await_follower(client)
                client.close()
            for _ in range(options.rounds):
                for variant, one, changing in ((ALONE, server, False), (FOLLOWED, server, True), (UNFOLLOWED, other, True)):
                    report.add("a hit", variant, hits_alone(one, ports[one], paths, database, options, changing))
                for busy in (False, True):
                    report.add("commit to pixel", "hits, rows change" if busy else "nothing else",
                               commit_to_pixel(server, ports[server], paths, database, options, busy))
        if peer("/usr/bin/render_expired").exists():
            report.add("list to pixel", "renderd", of_renderd(database, options))
    report.write()
    cost = {row["variant"]: row["processor_us_a_hit"] for row in report.medians() if row["case"] == "a hit"}
    print(f"a hit while rows change: {cost[FOLLOWED] / cost[UNFOLLOWED]:.2f} times one of a server that does not follow the changes, "
          f"{cost[FOLLOWED] / cost[ALONE]:.2f} times one beside an idle database")


if __name__ == "__main__":
    main()

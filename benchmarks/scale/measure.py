"""One table: the ten maps by each server, and what they cost; overviews, where the program has them."""
import contextlib
import os
import pathlib
import shutil
import statistics
import subprocess

from common import frontends, load
from common.servers import BUILD, cpu_seconds, make_folder, remove
from scale import config

PROGRAM = BUILD / "bin" / "mapcache"
OURS, OVERVIEWS, PEER = "ours", "ours, overviews", "MapServer"


def has_overviews():
    return subprocess.run([PROGRAM, "overviews", "--help"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def missing():
    """Of those that are compared, which are not here, and why."""
    found = {} if has_overviews() else {OVERVIEWS: "this build has no command `overviews`"}
    if not pathlib.Path(frontends.MAPSERVER).exists():
        found[PEER] = "not installed"
    return found


class Mapmaker:
    """A server that has just been started for one table."""

    def __init__(self, name, server, path):
        self.name, self.server, self.path, self.port = name, server, path, frontends.port_of(server)

    def draw(self, database, box):
        """Processor milliseconds of server and database, bytes from the database and of the picture, and whether there is one."""
        before = self.server.cpu(), cpu_seconds(database.pids()), database.bytes_sent()
        answer = load.run(self.port, [f"{self.path}{config.query(box)}"], 1, 1, timeout=600)[0]
        after = self.server.cpu(), cpu_seconds(database.pids()), database.bytes_sent()
        sent = after[2] - before[2] if before[2] is not None and after[2] is not None and after[2] >= before[2] else None
        return {"server": (after[0] - before[0]) * 1e3, "database": (after[1] - before[1]) * 1e3, "sent": sent, "image": answer.bytes, "good": answer.good}


@contextlib.contextmanager
def mapmakers(database, rows, names):
    """Those of the servers, as new processes."""
    folder = make_folder("bench-scale")
    with contextlib.ExitStack() as stack:
        def start(server):
            stack.callback(remove, server)
            return stack.enter_context(server)
        found = []
        for name in names:
            if name == PEER:
                config.write_theirs(folder, database, rows)
                found.append(Mapmaker(name, start(frontends.mapserver_fcgid("scale-peer", folder, 1)), f"/mapserv?map={folder}/roads.map&"))
            else:
                found.append(Mapmaker(name, start(frontends.module("scale-ours", config.write_ours(folder, database, rows))), "/mc?"))
        yield found
    shutil.rmtree(folder, ignore_errors=True)


def summary(draws):
    """Of the draws of a map by one server: the first one, and the medians of the others (or of the only one)."""
    later = draws[1:] or draws
    sent = [draw["sent"] for draw in later if draw["sent"] is not None]
    return {"first": draws[0]["server"] + draws[0]["database"], "server": statistics.median(draw["server"] for draw in later),
            "database": statistics.median(draw["database"] for draw in later), "sent": statistics.median(sent) if sent else None, "image": later[-1]["image"],
            "errors": sum(not draw["good"] for draw in draws)}


def measure_table(database, rows, boxes, names, rounds, tell):
    """Servers take turns at each map. The first map of a process is the whole table: its connection, columns and style are in `first`."""
    draws = {}
    with mapmakers(database, rows, names) as found:
        for turn in range(rounds + 1):
            for number, (zoom, box) in enumerate(boxes.items()):
                shift = (turn + number) % len(found)
                for maker in found[shift:] + found[:shift]:
                    draws.setdefault((zoom, maker.name), []).append(maker.draw(database, box))
    records = [{"rows": rows, "zoom": zoom, "who": name, **summary(draws[zoom, name])} for name in names for zoom in boxes]
    for record in records:
        tell(record)
    return records


def build_overviews(database, rows):
    """Processor seconds of builder and database, and MB on disk."""
    folder = make_folder("bench-overviews")
    before = os.times(), cpu_seconds(database.pids()), database.size("postgres")
    done = subprocess.run([PROGRAM, "overviews", "build", "-c", config.write_ours(folder, database, rows), "-t", "roads", "--static"], capture_output=True, text=True, check=False)
    after = os.times(), cpu_seconds(database.pids()), database.size("postgres")
    if done.returncode != 0:
        raise SystemExit(f"overviews of {rows} rows: {done.stderr}")
    spent = sum(after[0][2:4]) - sum(before[0][2:4])
    shutil.rmtree(folder, ignore_errors=True)
    return {"rows": rows, "builder": spent, "database": after[1] - before[1], "size": after[2] - before[2], "said": done.stdout.splitlines()}

"""One table: its overviews are built, and random maps are drawn from them and from the table."""
import contextlib
import io
import os
import random
import shutil
import subprocess
import urllib.request

import numpy
from common import frontends
from common.servers import BUILD, cpu_seconds, make_folder, remove
from overviews import config
from PIL import Image

PROGRAM = BUILD / "bin" / "mapcache"
OFF = 16         # of 255
PAINTED = 128    # alpha of a pixel that surely is painted
MANY_PIXELS = 2  # more than a feature of one pixel's size can change


def build(database, path):
    """What the builder says, processor seconds of builder and database, MB of table and levels, and from where to where each level serves maps."""
    before = os.times(), cpu_seconds(database.pids())
    done = subprocess.run([PROGRAM, "overviews", "build", "-c", path, "-t", config.LEVEL, "--static"], capture_output=True, text=True, check=False)
    after = os.times(), cpu_seconds(database.pids())
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    rows = [row.split("|") for row in database.sql("SELECT resolution, until, pg_total_relation_size('mapcache_overviews.' || name) FROM mapcache_overviews.levels ORDER BY 1")]
    return {"said": done.stdout.splitlines(), "builder": sum(after[0][2:4]) - sum(before[0][2:4]), "database": after[1] - before[1],
            "levels": [(float(row[0]), float(row[1])) for row in rows], "size": sum(int(row[2]) for row in rows) / 1e6}


def drop(path):
    subprocess.run([PROGRAM, "overviews", "drop", "-c", path, "-t", config.LEVEL], capture_output=True, check=True)


def pixels(body):
    return numpy.asarray(Image.open(io.BytesIO(body)).convert("RGBA")).astype(int)


def largest_patch(mask):
    """Pixels of the largest patch of a mask; pixels that touch by their corners are of one patch."""
    left, largest = set(zip(*(axis.tolist() for axis in numpy.nonzero(mask)))), 0
    while left:
        reached, size = [left.pop()], 0
        while reached:
            y, x = reached.pop()
            size += 1
            for beside in [(y + dy, x + dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1)]:
                if beside in left:
                    left.remove(beside)
                    reached.append(beside)
        largest = max(largest, size)
    return largest


def differ(level, full):
    """Pixels that either map paints, those of them that are off, and the largest patches: of pixels that are off, and of pixels that the table paints and the level leaves blank."""
    off = numpy.abs(level - full).max(axis=2) > OFF
    lost = (full[..., 3] >= PAINTED) & (level[..., 3] <= OFF)
    return {"painted": int(((level[..., 3] > 0) | (full[..., 3] > 0)).sum()), "off": int(off.sum()), "patch": largest_patch(off), "lost": largest_patch(lost)}


class Mapmaker:
    def __init__(self, database, server):
        self.database, self.server = database, server

    def draw(self, use, box, edge):
        """The picture, and processor milliseconds of server and database."""
        before = self.server.cpu(), cpu_seconds(self.database.pids())
        with urllib.request.urlopen(f"http://127.0.0.1:{frontends.port_of(self.server)}/mc?{config.query(use, box, edge)}", timeout=600) as reply:
            body = reply.read()
        return body, (self.server.cpu() - before[0]) * 1e3, (cpu_seconds(self.database.pids()) - before[1]) * 1e3


def draw_pair(maker, turn, box, edge):
    """The same map both ways, which take turns at being first."""
    drawn = {}
    for use in (config.LEVEL, config.FULL) if turn % 2 == 0 else (config.FULL, config.LEVEL):
        drawn[use] = maker.draw(use, box, edge)
    return drawn


def measure(database, name, maps, edge, keep):
    """The levels of one table, and a record for each map; `keep` is given each map's record and both pictures."""
    folder = make_folder("bench-overviews")
    path = config.write(folder, database, name)
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        built = build(database, path)
        stack.callback(drop, path)
        if not built["levels"]:
            return built, []
        server = frontends.module("overviews", path)
        stack.callback(remove, server)
        maker = Mapmaker(database, stack.enter_context(server))
        records, boxes = [], config.boxes(random.Random(f"overviews {name}"), built["levels"], maps, edge)
        for use in (config.LEVEL, config.FULL):
            maker.draw(use, boxes[0][1], edge)  # connection, columns, style
        for turn, (resolution, box) in enumerate(boxes):
            drawn = draw_pair(maker, turn, box, edge)
            record = {"set": name, "resolution": resolution, "box": box, **differ(pixels(drawn[config.LEVEL][0]), pixels(drawn[config.FULL][0]))}
            for use, (_, server_ms, database_ms) in drawn.items():
                record[use] = (server_ms, database_ms)
            records.append(record)
            keep(record, drawn[config.LEVEL][0], drawn[config.FULL][0])
    return built, records

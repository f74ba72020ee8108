"""One cell: so many threads at one zoom, each asking for its maps one after the other, and what that cost."""
import contextlib

from common import frontends, load
from common.servers import cpu_seconds, make_folder, remove
from postgis import config

PROCESSES = 20  # of MapServer under mod_fcgid, as in the published test


class Peer:
    """One of those that are compared: a running server, and the query of a map without its box."""

    def __init__(self, name, server, path):
        self.name, self.server, self.path = name, server, path
        self.port = frontends.port_of(server)
        self.uses_database = "shapefile" not in name

    def ask(self, name, boxes, threads, edge):
        return load.run(self.port, [self.path(name, box, edge) for box in boxes], threads, len(boxes) // threads)


THEIRS = ("postgis", "shapefile")


def names(variants):
    """Of all peers."""
    return [f"ours {variant}" for variant in variants] + [f"MapServer {source}" for source in THEIRS]


@contextlib.contextmanager
def running(sets, variants, data):
    """All peers: ours in the given variants, each a tileset of one server, and MapServer with PostGIS and with shapefiles."""
    folder = make_folder("bench-postgis")
    configuration = config.write_ours(folder, sets, variants, data)
    config.write_map_files(folder, sets, data)

    def ours(variant):
        return lambda name, box, edge: f"/mc?{config.query(f'{name}-{variant}', box, edge)}"

    def theirs(source):
        return lambda name, box, edge: f"/mapserv?map={folder}/{name}-{source}.map&{config.query(name, box, edge)}"
    with frontends.module("postgis-ours", configuration) as own, frontends.mapserver_fcgid("postgis-peer", folder, PROCESSES) as peer:
        try:
            asked = [(own, ours(variant)) for variant in variants] + [(peer, theirs(source)) for source in THEIRS]
            yield [Peer(name, server, path) for name, (server, path) in zip(names(variants), asked)]
        finally:
            for server in (own, peer):
                remove(server)


def run_cell(peer, database, name, boxes, threads, edge=1000):
    """What all threads together found: times, processor time of server and database, bytes. The boxes are those of each thread in turn."""
    before = peer.server.cpu(), cpu_seconds(database.pids()), database.bytes_sent()
    answers = peer.ask(name, boxes, threads, edge)
    after = peer.server.cpu(), cpu_seconds(database.pids()), database.bytes_sent()
    good = [a for a in answers if a.good]
    sent = None
    if peer.uses_database and before[2] is not None and after[2] >= before[2]:
        sent = after[2] - before[2]
    return {"ms": [a.ms for a in good], "errors": len(boxes) - len(good), "image": sum(a.bytes for a in good),
            "seconds": max(a.sent + a.ms / 1e3 for a in answers) - min(a.sent for a in answers),
            "cpu": after[0] - before[0], "database": after[1] - before[1], "sent": sent}


def add(total, cell):
    """Rounds of the same cell are one sample."""
    if total is None:
        return cell
    sent = None if total["sent"] is None or cell["sent"] is None else total["sent"] + cell["sent"]
    return {**{key: total[key] + cell[key] for key in cell if key != "sent"}, "sent": sent}


def record(key, cell):
    """Figures of a cell for one map; the fastest and the slowest are left out of mean and deviation, as in the published test."""
    times, count = sorted(cell["ms"]), len(cell["ms"])
    found = {"set": key[0], "zoom": key[1], "threads": key[2], "who": key[3], "maps": count, "errors": cell["errors"]}
    if count == 0:
        return found
    mean, deviation = load.mean_and_deviation(times[1:-1] if count > 2 else times)
    return {**found, "mean": mean, "deviation": deviation, "p50": load.percentile(times, .5), "p99": load.percentile(times, .99), "worst": times[-1],
            "rate": count / cell["seconds"], "cpu": cell["cpu"] * 1e3 / count, "database": cell["database"] * 1e3 / count,
            "sent": None if cell["sent"] is None else cell["sent"] / count, "image": cell["image"] / count}

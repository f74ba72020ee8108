#!/usr/bin/python3
"""More is asked for than can be done: see benchmarks/README.md. Each run replaces what it measures."""
import argparse
import contextlib
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common import frontends, load  # noqa: E402
from common.report import RESULTS  # noqa: E402
from common.run import begin, earlier, need, publish, some  # noqa: E402
from common.servers import BUILD, PEER_MODULE, ROOT, apache, make_folder, nginx_fastcgi, remove  # noqa: E402
from load import config as style  # noqa: E402
from load import data  # noqa: E402
from overload import config, measure, plots, report  # noqa: E402

SERVERS = ("ours, socket", "ours, socket, one address", "ours behind nginx", "ours, module", "MapCache, module", "MapServer behind nginx")
BOXES = 2000
OF_MODULES = 1000  # connections at most: Apache closes kept ones while its threads are busy, and what comes anew waits behind all others


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="words, with commas between: those of the servers whose name holds one, such as socket,module")
    parser.add_argument("--connections", type=int, default=8000)
    parser.add_argument("--data", default=str(ROOT / "build" / "bench" / "load"), help="folder of what is fetched or made once")
    parser.add_argument("--results", default=str(RESULTS / "overload"))
    parser.add_argument("--cores", help="processors for servers and client, such as 2,3")
    return parser.parse_args()


def part_processors():
    """The load generator has the last processor for itself, so that its times are those of the servers; says which are whose."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        return "one, for all"
    load.processors(cores[-1:])
    os.sched_setaffinity(0, cores[:-1])
    return f"{len(cores) - 1} for the servers, one for the load generator"


def apache_module(module, path):
    """256 threads; as many connections as come, most of which wait without a thread."""
    return apache("overload", f'LoadModule mapcache_module "{module}"\nMapCacheAlias /mc "{path}"\nAsyncRequestWorkerFactor 64\nListenBacklog 4096', "/mc",
                  processes=1, threads=256)


class Bench:
    """Folder, tiles and maps of a run, and how each server is reached."""

    def __init__(self, data_folder, connections):
        self.folder, self.connections = make_folder("bench-overload"), connections
        self.folder.chmod(0o777)
        self.data_folder = data_folder
        self.own = config.write_ours(self.folder, data_folder)
        style.write_map_file(self.folder, data_folder)
        self.tiles = config.seed(self.folder, self.own)
        boxes = list(data.boxes(data_folder, BOXES))
        self.maps = [config.larger(style.ours_path(box)) for box in boxes]
        theirs = style.mapserver_path(self.folder)
        self.their_maps = [config.larger(theirs(box)) for box in boxes]

    def ours_behind_nginx(self):
        return nginx_fastcgi("overload", [str(frontends.OURS_CGI)], "/mc", {"MAPCACHE_CONFIG_FILE": str(self.own)}, connections=2 * self.connections + 512)

    def measure_on(self, server, target, tiles, maps, most=None, **options):
        with server:
            found = measure.run(target(server), tiles, maps, min(self.connections, most or self.connections), **options)
        remove(server)
        return found

    def measure_server(self, who):
        if who == "ours, socket":
            return self.measure_on(self.ours_behind_nginx(), lambda server: server.companions[0].sock, self.tiles, self.maps)
        if who == "ours, socket, one address":
            return self.measure_on(self.ours_behind_nginx(), lambda server: server.companions[0].sock, self.tiles, self.maps, addresses=1)
        if who == "ours behind nginx":
            return self.measure_on(self.ours_behind_nginx(), frontends.port_of, self.tiles, self.maps)
        if who == "ours, module":
            own = config.write_ours(self.folder, self.data_folder, f"<max_slow_requests>{config.SLOW_IN_APACHE}</max_slow_requests>")
            return self.measure_on(apache_module(BUILD / "modules" / "mod_mapcache.so", own), frontends.port_of, self.tiles, self.maps, OF_MODULES)
        origin = frontends.mapserver_fastcgi("overload-origin", self.folder, 2, connections=2 * self.connections + 512)
        if who == "MapServer behind nginx":
            return self.measure_on(origin, frontends.port_of, None, self.their_maps)
        with contextlib.ExitStack() as started:
            started.enter_context(origin)
            peer = apache_module(PEER_MODULE, config.write_peer(self.folder, origin.url))
            return self.measure_on(peer, frontends.port_of, self.tiles, self.maps, OF_MODULES)


def main():
    options = parse()
    begin(options.cores, files=20000)
    processors = part_processors()
    names = some(SERVERS, options.only)
    need("apache2", "nginx", "shptree", *[frontends.MAPSERVER, PEER_MODULE][:sum("Map" in name for name in names)])
    bench = Bench(data.make(options.data), options.connections)
    fresh = {}
    for who in names:
        fresh[who] = {"who": who, "load": os.getloadavg()[0], **bench.measure_server(who)}
        print(report.sentence(fresh[who]), file=sys.stderr, flush=True)
    old = earlier(options.results, "overload", {"records": []})["records"]
    records = {**{r["who"]: r for r in old}, **fresh}
    publish(options.results, "overload", {"processors": processors, "records": [records[who] for who in SERVERS if who in records]}, report.markdown, plots.draw)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
"""Mixed requests for long, while the configuration changes: memory and descriptors stay as they are. See benchmarks/README.md."""
import argparse
import collections
import contextlib
import http.server
import os
import pathlib
import random
import statistics
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common import load  # noqa: E402
from common.plots import pyplot, save  # noqa: E402
from common.report import RESULTS, table  # noqa: E402
from common.run import begin, need, publish  # noqa: E402
from common.servers import BUILD, ROOT, Workers, make_folder, pss_bytes  # noqa: E402
from load import config as style  # noqa: E402
from load import data  # noqa: E402

USERS = 16
FILES_OF_USER = 10  # open at a time at most: the store with its log and index, two shapefiles of three files each, a tile
SAMPLE_EVERY = 1.0
RELOAD_EVERY = 1.1  # the program looks at its file once a second
WARM = .3           # of the run: caches fill
GROWTH_MB = 2
PATHS = 20000


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1000000)
    parser.add_argument("--reloads", type=int, default=1000, help="how often the configuration is changed, one in 1.1 seconds: the requests are spread over that time")
    parser.add_argument("--data", default=str(ROOT / "build" / "bench" / "load"), help="folder of what is fetched or made once")
    parser.add_argument("--results", default=str(RESULTS / "soak"))
    parser.add_argument("--cores", help="processors for program and client, such as 2,3")
    return parser.parse_args()


class Upstream(http.server.BaseHTTPRequestHandler):
    """Where requests are forwarded to."""
    protocol_version = "HTTP/1.1"

    together = threading.Barrier(USERS)

    def do_GET(self):
        if "N=warm" in self.path:  # answered when all users have asked: as many connections as there will ever be
            self.together.wait(60)
        body = b"<answer/>"
        self.send_response(200)
        self.send_header("Content-Type", "text/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def write_config(folder, data_folder, port):
    styles = style.styles()
    layers = ""
    for name in ("land", "countries"):
        (folder / f"{name}.sld").write_text(style.sld(name, styles[name]))
        layers += f'<layer name="{name}"><data>{data_folder}/{name}.shp</data><style>{folder}/{name}.sld</style></layer>'
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache>
  <source name="white" type="dummy"/><source name="world" type="shapefile">{layers}</source>
  <cache name="rows" type="sqlite3"><dbfile>{folder}/tiles.sqlite3</dbfile></cache>
  <cache name="files" type="disk"><base>{folder}/tiles</base></cache>
  <format name="MVT" type="MVT"/>
  <tileset name="white"><source>white</source><cache>rows</cache><grid>WGS84</grid><format>PNG</format></tileset>
  <tileset name="world"><source>world</source><cache>files</cache><grid>GoogleMapsCompatible</grid><format>PNG</format><metatile>2 2</metatile></tileset>
  <tileset name="vectors"><source>world</source><cache>rows</cache><grid>GoogleMapsCompatible</grid><format>MVT</format></tileset>
  <service type="wms" enabled="true"><full_wms>forward</full_wms><forwarding_rule name="wfs"><param name="SERVICE" type="values"><value>WFS</value></param>
    <http><url>http://127.0.0.1:{port}/wfs</url></http></forwarding_rule></service>
  <service type="wmts" enabled="true"/><service type="tms" enabled="true"/><service type="kml" enabled="true"/><service type="gmaps" enabled="true"/>
  <service type="demo" enabled="true"/><service type="health" enabled="true"/><service type="metrics" enabled="true"/>
  <locker type="disk"><directory>{folder}</directory></locker><auto_reload>true</auto_reload>
</mapcache>
""")
    return path


def map_path(numbers, layers="world", size=300):
    x, y, side = numbers.uniform(-1.8e7, 1.5e7), numbers.uniform(-8e6, 8e6), numbers.choice((2e5, 1e6, 3e6))
    return (f"/mc?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS={layers}&STYLES=&SRS=EPSG:3857&FORMAT=image/png&BBOX={x:.1f},{y:.1f},{x + side:.1f},{y + side:.1f}"
            f"&WIDTH={size}&HEIGHT={size}")


KINDS = {  # how many of a hundred, and how one is made
    "stored tiles": (55, lambda n: f"/mc/tms/1.0.0/white@WGS84/4/{n.randrange(32)}/{n.randrange(16)}.png"),
    "drawn tiles": (10, lambda n: f"/mc/gmaps/world@GoogleMapsCompatible/5/{n.randrange(32)}/{n.randrange(32)}.png"),
    "vector tiles": (10, lambda n: f"/mc/gmaps/vectors@GoogleMapsCompatible/5/{n.randrange(32)}/{n.randrange(32)}.mvt"),
    "maps": (4, map_path),
    "capabilities": (4, lambda n: n.choice(("/mc?SERVICE=WMS&REQUEST=GetCapabilities", "/mc/wmts/1.0.0/WMTSCapabilities.xml", "/mc/tms/1.0.0", "/mc/kml"))),
    "errors": (10, lambda n: n.choice((map_path(n, "nothing"), "/mc/tms/1.0.0/white@WGS84/99/0/0.png", "/mc/nothing", "/mc?SERVICE=WMS&REQUEST=%00", map_path(n, size=99999)))),
    "forwarded": (4, lambda n: f"/mc?SERVICE=WFS&REQUEST=GetFeature&N={n.randrange(1000)}"),
    "pages": (3, lambda n: n.choice(("/mc/demo", "/mc/health", "/mc/metrics", "/mc/demo/wmts"))),
}


def make_paths():
    numbers = random.Random(3)
    makers, often = [make for _, make in KINDS.values()], [count for count, _ in KINDS.values()]
    return [make(numbers) for make in numbers.choices(makers, often, k=PATHS)]


def touch(path):
    """Another file of the same content takes its place, as an editor does that."""
    fresh = path.with_suffix(".new")
    fresh.write_text(path.read_text())
    fresh.replace(path)


def watch(crowd, pid, config, options):
    """Until the users are done: samples of seconds, bytes, changes, open files and other descriptors."""
    began, samples, reloads, next_reload = time.monotonic(), [], 0, RELOAD_EVERY
    while crowd.process.poll() is None:
        now = time.monotonic() - began
        samples.append((now, pss_bytes([pid])[pid], reloads, *count_descriptors(pid)))
        if reloads < options.reloads and now >= next_reload:
            touch(config)
            reloads += 1
            next_reload = max(next_reload + RELOAD_EVERY, now + 1)
        time.sleep(SAMPLE_EVERY / 2)
    return samples


def count_descriptors(pid):
    """Files, and sockets and what else there is. Files come and go with the requests; the others belong to connections."""
    files = others = 0
    for number in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(f"/proc/{pid}/fd/{number}").startswith("/"):
                files += 1
            else:
                others += 1
    return files, others


def slope(samples):
    """Growth from the first to the last one by the straight line that fits them best."""
    xs, ys = [s[0] for s in samples], [s[1] for s in samples]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - mean_x) ** 2 for x in xs)
    return (xs[-1] - xs[0]) * sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys)) / spread if spread else 0.0


def draw(result, folder):
    figure, panels = pyplot.subplots(2, 1, figsize=(9, 6), sharex=True)
    times = [s[0] for s in result["samples"]]
    for axes, column, label, unit, color in ((panels[0], 1, "memory (PSS), MB", 1e6, "#1f6f8b"), (panels[1], 3, "open files", 1, "#9bc4d6"),
                                             (panels[1], 4, "descriptors", 1, "#1f6f8b")):
        axes.plot(times, [s[column] / unit for s in result["samples"]], color=color, linewidth=1, label=label)
        axes.axvline(result["warm"], color="#b3541e", linewidth=.8)
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
        axes.grid(True, alpha=.3)
    panels[1].legend(["open files", "warm", "other descriptors"])
    panels[1].set_xlabel("s")
    figure.suptitle(f"{result['requests']:,} requests, {result['reloads']} changes of the configuration")
    save(figure, folder, "soak")


def markdown(r):
    rows = [["growth of memory after warming up, by a straight line, MB", f"{r['growth']:.2f}", f"at most {GROWTH_MB}", "yes" if r["growth"] <= GROWTH_MB else "**no**"],
            ["descriptors but files, median when warm and at the end", "{:.0f} and {:.0f}".format(*r["descriptors"]), "equal",
             "yes" if r["descriptors"][0] == r["descriptors"][1] else "**no**"],
            ["open files, the most", r["most_files"], f"at most {FILES_OF_USER * USERS}", "yes" if r["most_files"] <= FILES_OF_USER * USERS else "**no**"],
            ["answers that did not come", r["statuses"].get("0", 0), "0", "yes" if not r["statuses"].get("0") else "**no**"]]
    return "\n".join([
        "# Soak", "", "\n".join(f"- {key}: {value}" for key, value in r["machine"].items()), f"- taken: {r['taken']}", "",
        f"{r['requests']:,} requests of {USERS} users in {r['seconds']:.0f} s, {r['reloads']} changes of the configuration; memory {r['memory'][0]:.1f} MB when warm, {r['memory'][1]:.1f} MB at the end.", "",
        table(["status", "answers"], sorted(r["statuses"].items())), "", table(["aim", "found", "bound", "met"], rows), ""])


def soak(options, folder, data_folder, port):
    config = write_config(folder, data_folder, port)
    (folder / "tiles").mkdir()
    sock = folder / "fcgi.sock"
    workers = Workers([str(BUILD / "bin" / "mapcache.fcgi")], sock, 1, folder, {"MAPCACHE_CONFIG_FILE": str(config)})
    with workers:
        paths = make_paths()
        load.run(sock, ["/mc?SERVICE=WFS&REQUEST=GetFeature&N=warm"], USERS, 1, timeout=60)
        load.run(sock, paths[:2000], USERS, 125, timeout=60)
        seconds = options.reloads * RELOAD_EVERY
        crowd = load.Crowd(sock, paths, USERS, options.requests // USERS, interval=seconds * USERS / options.requests, timeout=60)
        samples = watch(crowd, workers.processes[0].pid, config, options)
        answers, _ = crowd.finish()
    warm = samples[-1][0] * WARM
    later = [s for s in samples if warm <= s[0] < samples[-1][0] - 1]  # while all users are there
    tenth = max(1, len(later) // 10)
    return {"samples": samples, "warm": warm, "requests": len(answers), "seconds": samples[-1][0], "reloads": samples[-1][2], "growth": slope(later) / 1e6,
            "memory": (later[0][1] / 1e6, later[-1][1] / 1e6), "descriptors": [statistics.median(s[4] for s in part) for part in (later[:tenth], later[-tenth:])],
            "most_files": max(s[3] for s in later),
            "statuses": {str(status): count for status, count in collections.Counter(a.status for a in answers).items()}}


def main():
    options = parse()
    begin(options.cores, files=8192)
    need("shptree")
    data_folder = data.make(options.data)
    folder = make_folder("bench-soak")
    upstream = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    threading.Thread(target=upstream.serve_forever, daemon=True).start()
    publish(options.results, "soak", soak(options, folder, data_folder, upstream.server_port), markdown, draw)


if __name__ == "__main__":
    sys.exit(main())

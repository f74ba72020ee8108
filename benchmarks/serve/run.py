#!/usr/bin/python3
"""The serving benchmark: see benchmarks/README.md. Usage: run.py [--data FOLDER] [--rounds 5] [--seconds 3] [--only WORD]"""
import argparse
import concurrent.futures
import http.server
import pathlib
import statistics
import subprocess
import sys
import threading
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common import servers  # noqa: E402
from common.report import Report  # noqa: E402
from common.run import begin, need  # noqa: E402
from common.servers import BUILD, HTTPD_MODULES, PEER_CGI, PEER_MODULE, ROOT, apache, nginx_fastcgi, wrk  # noqa: E402
from serve import data as dataset  # noqa: E402

OURS = f'LoadModule mapcache_module "{BUILD}/modules/mod_mapcache.so"'
PEER = f"LoadModule mapcache_module {PEER_MODULE}"


def write_config(data, name, **options):
    path = data / f"{name}.xml"
    path.write_text(dataset.config(data, **options))
    return path


def module(lines, data, config, log_level="warn", name="apache", **options):
    return apache(name, f'{lines}\nMapCacheAlias /mc "{config}" quick', "/mc/wmts/1.0.0/WMTSCapabilities.xml", log_level=log_level, **options)


def floor(data):
    """Apache with the floor module and the plain files."""
    folder = pathlib.Path(data) / "floor"
    folder.mkdir(exist_ok=True)
    source = pathlib.Path(__file__).with_name("floor_module.c")
    if not (folder / "floor_module.so").exists():
        flags = subprocess.run(["apr-1-config", "--cppflags", "--includes"], check=True, capture_output=True, text=True).stdout.split()
        headers = [f"-I{usr}/include/apache2" for usr in (ROOT / "build/development/usr", "/usr")]
        subprocess.run(["cc", "-O2", "-fPIC", "-shared", *flags, *headers, source, "-o", folder / "floor_module.so"], check=True, capture_output=True)
    return apache("floor", f"""LoadModule floor_module "{folder}/floor_module.so"
LoadModule mime_module {HTTPD_MODULES}/mod_mime.so
TypesConfig /etc/mime.types
FloorFolder "{data}/static"
DocumentRoot "{data}"
<Directory "{data}">
  AllowOverride None
  Require all granted
</Directory>""", "/floor/0_0.jpg")


def load(report, case, variant, server, paths, connections, seconds):
    before = server.cpu()
    result = wrk(server.url.rsplit("/", server.url.count("/") - 2)[0], paths, seconds, connections)
    cpu = server.cpu() - before
    report.add(case, variant, {"cpu us/request": cpu * 1e6 / max(result["requests"], 1), "requests/s": result["rps"], "p50 ms": result["p50"],
                               "p99 ms": result["p99"], "errors": result["errors"] + result["statuses"]})


def path_list(data, layer, prefix="/mc"):
    out = data / f"paths-{layer}{prefix.replace('/', '-')}.txt"
    out.write_text("".join(prefix + line.replace("@", layer) for line in open(data / "tiles.txt")))
    return out


def case_tile_apache(report, data, args):
    """A stored tile through Apache, alias in quick mode on both sides; the same bytes from memory; Apache's own static file."""
    config = write_config(data, "serve")
    with module(OURS, data, config) as ours, module(PEER, data, config, name="peer") as peer, floor(data) as bare:
        for _ in range(args.rounds):
            for connections in (8, 32):
                for layer in ("sqlite", "disk"):
                    paths = path_list(data, layer)
                    load(report, f"tile {layer} c={connections}", "ours", ours, paths, connections, args.seconds)
                    load(report, f"tile {layer} c={connections}", "MapCache 1.14", peer, paths, connections, args.seconds)
                load(report, f"tile floor c={connections}", "handler, same tiles from memory", bare, data / "floor.txt", connections, args.seconds)
                load(report, f"tile floor c={connections}", "Apache static file", bare, data / "static.txt", connections, args.seconds)


def case_many(report, data, args):
    """300, 2,000 and 20,000 tiles of one SQLite file, each as likely as the others, through Apache with two children, once each was asked for."""
    dataset.make_many(data)
    config = write_config(data, "serve")
    with module(OURS, data, config) as ours, module(PEER, data, config, name="peer") as peer, floor(data) as bare:
        for count in (300, 2000, 20000):
            paths, static = data / "many" / f"tiles-{count}.txt", data / "many" / f"static-{count}.txt"
            for server, asked in ((ours, paths), (peer, paths), (bare, static)):
                wrk(server.url.rsplit("/", server.url.count("/") - 2)[0], asked, max(2, count // 1000), 32)
            for _ in range(args.rounds):
                for connections in (1, 8, 32):
                    case = f"{count} tiles c={connections}"
                    load(report, case, "ours", ours, paths, connections, args.seconds)
                    load(report, case, "MapCache 1.14", peer, paths, connections, args.seconds)
                    load(report, case, "Apache static file", bare, static, connections, args.seconds)


def case_tile_fastcgi(report, data, args):
    """The same through nginx, with kept connections but for MapCache, whose two processes answer one connection each."""
    echo = data / "echo"
    if not echo.exists():
        subprocess.run(["cc", "-O2", "-o", echo, pathlib.Path(__file__).with_name("echo.c"), "-lfcgi", "-lpthread"], check=True)
    env = {"MAPCACHE_CONFIG_FILE": str(write_config(data, "serve"))}
    probe = "/wmts/1.0.0/WMTSCapabilities.xml"
    with nginx_fastcgi("ours", [str(BUILD / "bin" / "mapcache.fcgi")], "/mc", env) as ours, \
            nginx_fastcgi("peer", [PEER_CGI], "/mc", env, workers=2, keep=False) as peer, \
            nginx_fastcgi("echo", [str(echo), "64", str(data / "body.jpg")], "/mc") as bare:
        urllib.request.urlopen(ours.url + probe).read()
        paths = path_list(data, "sqlite")
        for _ in range(args.rounds):
            for connections in (8, 32):
                load(report, f"tile fastcgi c={connections}", "ours", ours, paths, connections, args.seconds)
                load(report, f"tile fastcgi c={connections}", "MapCache 1.14", peer, paths, connections, args.seconds)
                load(report, f"tile fastcgi c={connections}", "libfcgi echo, 64 threads", bare, paths, connections, args.seconds)


def map_url(layer, column, row, offset=0.0, size=1024, image="image/jpeg"):
    step = 360 / dataset.COLUMNS
    west, north = -180 + (column + offset) * step, 90 - (row + offset) * step
    span = size / 256 * step
    return (f"/mc?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS={layer}&STYLES=&SRS=EPSG:4326&FORMAT={image}"
            f"&BBOX={west:.10f},{north - span:.10f},{west + span:.10f},{north:.10f}&WIDTH={size}&HEIGHT={size}")


def fetch_maps(report, case, variant, server, urls):
    base = server.url.rsplit("/mc", 1)[0]
    times, before = [], server.cpu()
    for url in urls:
        start = time.perf_counter()
        with urllib.request.urlopen(base + url) as reply:
            reply.read()
        times.append((time.perf_counter() - start) * 1e3)
    cpu = (server.cpu() - before) * 1e3 / len(urls)
    report.add(case, variant, {"cpu ms/request": cpu, "median ms": statistics.median(times), "worst ms": max(times)})


def case_map(report, data, args):
    """WMS maps of 1024x1024: aligned (16 tiles), not aligned, and of tiles that another encoder wrote."""
    config = write_config(data, "serve")
    spots = [(c, r) for c in range(0, 60, 7) for r in range(2, 26, 7)]
    with module(OURS, data, config) as ours, module(PEER, data, config, name="peer") as peer:
        for _ in range(args.rounds):
            for case, layer, offset in (("map aligned", "sqlite", 0), ("map aligned, foreign tiles", "foreign", 0), ("map not aligned", "sqlite", 0.37)):
                urls = [map_url(layer, c, r, offset) for c, r in spots]
                fetch_maps(report, case, "ours", ours, urls)
                fetch_maps(report, case, "MapCache 1.14", peer, urls)


class SlowOrigin(http.server.BaseHTTPRequestHandler):
    """A WMS that answers after a while; counts its requests."""
    delay, hits, image = 5.0, 0, b""

    def do_GET(self):
        type(self).hits += 1
        time.sleep(self.delay)
        self.send_response(200)
        self.send_header("Content-Type", "image/png")
        self.send_header("Content-Length", str(len(self.image)))
        self.end_headers()
        self.wfile.write(self.image)

    def log_message(self, *_):
        pass


def cold_config(data, origin):
    """A cache that has nothing yet."""
    name = data / f"cold-{time.time_ns()}.sqlite3"
    return f"""<mapcache>
<source name="slow" type="wms"><http><url>http://127.0.0.1:{origin}/?</url></http><getmap><params><LAYERS>x</LAYERS></params></getmap></source>
<format name="jpeg" type="JPEG"/>
<cache name="cold" type="sqlite3"><dbfile>{name}</dbfile></cache>
<cache name="sqlite" type="sqlite3"><dbfile>{data}/own.sqlite3</dbfile></cache>
<tileset name="cold"><source>slow</source><cache>cold</cache><grid>WGS84</grid><format>jpeg</format><metatile>4 4</metatile></tileset>
<tileset name="sqlite"><cache>sqlite</cache><grid>WGS84</grid><format>jpeg</format></tileset>
<service type="wmts" enabled="true"/><locker type="disk"><directory>{data}</directory></locker></mapcache>"""


def crowd(report, case, server, data, seconds):
    """200 clients ask for tiles of one cold metatile; meanwhile others ask for stored tiles."""
    SlowOrigin.hits = 0
    def one(i):
        start = time.perf_counter()
        status = urllib.request.urlopen(f"{server.url.rsplit('/mc', 1)[0]}/mc/wmts/1.0.0/cold/default/WGS84/6/{i // 4 % 4 + 4}/{i % 4 + 4}.jpg", timeout=60).status
        return status, time.perf_counter() - start
    with concurrent.futures.ThreadPoolExecutor(201) as pool:
        hits = pool.submit(wrk, server.url.split("/mc")[0], path_list(data, "sqlite"), seconds, 8)
        time.sleep(0.5)
        replies = list(pool.map(one, range(200)))
        hits = hits.result()
    report.add(case, "ours", {"origin requests": SlowOrigin.hits, "good replies": sum(s == 200 for s, _ in replies),
                              "worst wait s": max(t for _, t in replies), "hits p99 ms": hits["p99"], "hits/s": hits["rps"],
                              "hit errors": hits["errors"] + hits["statuses"]})


def case_cold(report, data, args):
    """One cold metatile whose origin takes 5 s, 200 clients at once: event MPM and FastCGI."""
    import io
    from PIL import Image
    out = io.BytesIO()
    Image.new("RGB", (1024, 1024), (40, 90, 160)).save(out, "PNG")
    SlowOrigin.image = out.getvalue()
    origin = http.server.ThreadingHTTPServer(("127.0.0.1", 0), SlowOrigin)
    threading.Thread(target=origin.serve_forever, daemon=True).start()
    for file in data.glob("cold-*.sqlite3*"):  # of earlier runs
        file.unlink()
    for _ in range(min(args.rounds, 3)):
        path = data / "cold.xml"
        path.write_text(cold_config(data, origin.server_port))
        with module(OURS, data, path, name="cold", processes=2, threads=256) as server:
            crowd(report, "cold metatile, event MPM", server, data, 6)
        path.write_text(cold_config(data, origin.server_port))
        with nginx_fastcgi("cold", [str(BUILD / "bin" / "mapcache.fcgi"), "--threads", "256"], "/mc", {"MAPCACHE_CONFIG_FILE": str(path)}) as server:
            crowd(report, "cold metatile, FastCGI", server, data, 6)
    origin.shutdown()


def case_memory(report, data, args):
    """90 % stored tiles, 9 % maps of 1024x1024, 1 % capabilities at c=16; memory of the children after 10^5 and 2x10^5 requests."""
    config = write_config(data, "serve")
    tiles = open(path_list(data, "sqlite")).read().split()
    mix = data / "mix.txt"
    with open(mix, "w") as out:
        for i in range(4000):
            if i % 100 == 50:
                out.write("/mc/wmts/1.0.0/WMTSCapabilities.xml\n")
            elif i % 100 < 9:
                out.write(map_url("sqlite", i * 7 % 60, i * 3 % 26, 0.31 * (i % 2)) + "\n")
            else:
                out.write(tiles[i * 31 % len(tiles)] + "\n")
    for variant, lines in (("ours", OURS), ("MapCache 1.14", PEER)):
        with module(lines, data, config, name="memory") as server:
            sizes, total = [], 0
            goal = args.memory_requests
            for target in (goal, 2 * goal):
                while total < target:
                    total += wrk(server.url.split("/mc")[0], mix, 10, 16)["requests"]
                children = servers.descendants(server.process.pid)[1:]
                sizes.append(max(servers.pss_bytes(children).values(), default=0) / 1e6)
            report.add("memory", variant, {"requests": total, "PSS of a child, MB": sizes[0], "after twice as many, MB": sizes[1],
                                           "growth, MB": sizes[1] - sizes[0]})


def case_trace(report, data, args):
    """A stored tile with trace hooks off and on."""
    config = write_config(data, "serve")
    paths = path_list(data, "sqlite")
    with module(OURS, data, config) as off, module(OURS, data, config, "warn mapcache:debug", name="trace") as on:
        for _ in range(args.rounds):
            load(report, "trace", "off", off, paths, 8, args.seconds)
            load(report, "trace", "on", on, paths, 8, args.seconds)


def case_cgi(report, data, args):
    """A plain CGI: one process for one stored tile."""
    import os
    config = write_config(data, "serve")
    env = {"MAPCACHE_CONFIG_FILE": str(config), "REQUEST_METHOD": "GET", "SCRIPT_NAME": "/mc", "SERVER_NAME": "localhost", "SERVER_PORT": "80",
           "PATH_INFO": f"/wmts/1.0.0/sqlite/default/WGS84/{dataset.LEVEL}/8/9.jpg", "QUERY_STRING": "", "GATEWAY_INTERFACE": "CGI/1.1"}
    for _ in range(args.rounds):
        for variant, program in (("ours", str(BUILD / "bin" / "mapcache.fcgi")), ("MapCache 1.14", PEER_CGI)):
            times, before = [], os.times()
            for _ in range(20):
                start = time.perf_counter()
                reply = subprocess.run([program], env=env, stdin=subprocess.DEVNULL, capture_output=True)
                times.append((time.perf_counter() - start) * 1e3)
            after = os.times()
            cpu = (after.children_user - before.children_user + after.children_system - before.children_system) * 1e3 / 20
            report.add("plain CGI start", variant, {"median ms": statistics.median(times), "cpu ms": cpu, "bytes": len(reply.stdout)})


CASES = {name[5:]: function for name, function in list(globals().items()) if name.startswith("case_")}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=str(ROOT / "build" / "bench-serve"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--memory-requests", type=int, default=100000)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    names = [name for name in CASES if args.only in name]
    if not names:
        parser.error(f"no case is called {args.only}: there are {', '.join(CASES)}")
    begin()
    need("apache2", "nginx", "wrk", "cc", "apr-1-config", PEER_CGI, PEER_MODULE)
    data = dataset.make(args.data)
    report = Report("serve")
    for name in names:
        print(f"{name}: {CASES[name].__doc__}", file=sys.stderr)
        CASES[name](report, data, args)
    report.write()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Milliseconds of processor time, server and database apart, of one 1000x1000 map: random boxes at some zooms.

    draw.py --postgres "host=... dbname=gis" --postmaster PID --shapes FOLDER [--only WORD ...] [--maps N] [--zooms ...]

Wants the tables and shapefiles villages, parcels, roads, buildings and places of the benchmark's data maker. A case is
DATA-WAY: villages-postgis, parcels-shapefile, ...; --only names those to measure. --save FOLDER keeps one image of
each cell; --program another mapcache.fcgi, for a comparison; --perf records the server (perf record -g) per cell.
"""
import argparse
import os
import pathlib
import random
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import servers  # noqa: E402

EXTENT = (485414.0, 75286.0, 833837.0, 295935.0)
AREA = """<PolygonSymbolizer><Fill><CssParameter name="fill">{}</CssParameter>{}</Fill><Stroke>
<CssParameter name="stroke">{}</CssParameter><CssParameter name="stroke-width">1</CssParameter></Stroke></PolygonSymbolizer>"""
LINE = """<LineSymbolizer><Stroke><CssParameter name="stroke">{}</CssParameter>
<CssParameter name="stroke-width">{}</CssParameter></Stroke></LineSymbolizer>"""
POINT = """<PointSymbolizer><Graphic><Mark><WellKnownName>circle</WellKnownName><Fill><CssParameter name="fill">#1e3ca0
</CssParameter></Fill><Stroke><CssParameter name="stroke">#ffffff</CssParameter><CssParameter name="stroke-width">1
</CssParameter></Stroke></Mark><Size>6</Size></Graphic></PointSymbolizer>""".replace("\n", "")
EQUAL = "<Filter><PropertyIsEqualTo><PropertyName>{}</PropertyName><Literal>{}</Literal></PropertyIsEqualTo></Filter>"
SLD = """<StyledLayerDescriptor version="1.0.0" xmlns="http://www.opengis.net/sld"><NamedLayer><Name>a</Name><UserStyle>
<FeatureTypeStyle>{}</FeatureTypeStyle></UserStyle></NamedLayer></StyledLayerDescriptor>"""
ROADS = ((1, "#c83c28", 5), (2, "#e68c32", 4), (3, "#f0c85a", 3), (4, "#969696", 2), (5, "#bebebe", 1))
SEEN_THROUGH = '<CssParameter name="fill-opacity">0.6</CssParameter>'


def rule(symbol, condition=""):
    return f"<Rule>{condition}{symbol}</Rule>"


PLAIN = rule(AREA.format("#f0dcb4", "", "#785028"))
KINDS = "".join(rule(AREA.format(f"#{color}", SEEN_THROUGH, "#785028"), EQUAL.format("kind", kind))
                for kind, color in enumerate(("f0dcb4", "dcf0b4", "b4f0dc", "dcb4f0", "f0b4dc", "b4dcf0", "d0d0d0", "f0f0a0")))
CLASSES = "".join(rule(LINE.format(color, width), EQUAL.format("class", number)) for number, color, width in ROADS)
DATA = {  # table, style, zooms
    "villages": ("villages", PLAIN, (1, 4, 16, 32)),
    "seen": ("villages", rule(AREA.format("#f0dcb4", SEEN_THROUGH, "#785028")), (1, 4, 16, 32)),
    "parcels": ("parcels", PLAIN, (1, 4, 16)),
    "kinds": ("parcels", KINDS, (1, 4, 16)),
    "roads": ("roads", rule(LINE.format("#969696", 1)), (1, 4, 16)),
    "wide": ("roads", rule(LINE.format("#969696", 3)), (1, 4, 16)),
    "classes": ("roads", CLASSES, (1, 4, 16)),
    "buildings": ("buildings", PLAIN, (1, 4, 16)),
    "places": ("places", rule(POINT), (1, 4, 16)),
}
CONFIG = """<mapcache>
<grid name="lv"><srs>EPSG:21781</srs><units>m</units><extent>420000 30000 900000 350000</extent><size>256 256</size>
<resolutions>1000 500 250 100 50 20 10</resolutions></grid>
<cache name="disk" type="disk" layout="template"><template>{folder}/cache/{{tileset}}/{{z}}/{{x}}/{{y}}.png</template></cache>
{layers}<default_format>PNG</default_format>
<service type="wms" enabled="true"><full_wms>forward</full_wms><format allow_client_override="true">PNG</format>
<maxsize>4096</maxsize></service><locker type="disk"><directory>{folder}</directory></locker></mapcache>"""
LAYER = """<source name="{name}" type="{way}"><layer name="{name}">{data}<style>{folder}/{style}.sld</style>{more}</layer></source>
<tileset name="{name}"><source>{name}</source><cache>disk</cache><grid>lv</grid><format>PNG</format></tileset>"""


def record(kind, content):
    return struct.pack(">BBHHBB", 1, kind, 1, len(content), 0, 0) + content


def pair(name, value):
    def length(size):
        return bytes([size]) if size < 128 else struct.pack(">I", size | 1 << 31)
    return length(len(name)) + length(len(value)) + name.encode() + value.encode()


class Client:
    """One kept FastCGI connection."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rb", 1 << 20)

    def get(self, query, path="/"):
        params = "".encode().join(pair(*item) for item in (
            ("REQUEST_METHOD", "GET"), ("PATH_INFO", path), ("SCRIPT_NAME", ""), ("QUERY_STRING", query),
            ("SERVER_NAME", "localhost"), ("HTTP_ACCEPT_ENCODING", "gzip"),
            ("SERVER_PORT", "80"), ("SERVER_PROTOCOL", "HTTP/1.1")))
        self.socket.sendall(record(1, struct.pack(">HB5x", 1, 1)) + record(4, params) + record(4, b"") + record(5, b""))
        body = []
        while True:
            _, kind, _, size, padding, _ = struct.unpack(">BBHHBB", self.file.read(8))
            content = self.file.read(size + padding)[:size]
            if kind == 6:
                body.append(content)
            if kind == 3:
                return b"".join(body)


def connected(path):
    for _ in range(200):
        try:
            return Client(path)
        except OSError:
            time.sleep(0.05)
    raise SystemExit("the server did not start")


def boxes(zoom, count, seed):
    numbers = random.Random(f"{seed}/{zoom}")
    side = (EXTENT[2] - EXTENT[0]) / zoom

    def place(low, high):
        return (low + high - side) / 2 if high - low <= side else low + numbers.random() * (high - low - side)
    for _ in range(count):
        x, y = place(EXTENT[0], EXTENT[2]), place(EXTENT[1], EXTENT[3])
        yield x, y, x + side, y + side


def map_of(client, name, box, size):
    answer = client.get("SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&STYLES=&SRS=EPSG:21781&FORMAT=image/png&LAYERS=%s"
                        "&BBOX=%.3f,%.3f,%.3f,%.3f&WIDTH=%d&HEIGHT=%d" % (name, *box, size, size))
    head, _, body = answer.partition(b"\r\n\r\n")
    if not body.startswith(b"\x89PNG"):
        raise SystemExit(f"{name}: {answer[:300]!r}")
    return body


def configure(folder, arguments):
    layers = []
    for style, (table, rules, _) in DATA.items():
        (folder / f"{style}.sld").write_text(SLD.format(rules))
        for way in ("postgis", "shapefile"):
            if way == "postgis":
                data = f"<connection>{arguments.postgres}</connection><table>{table}</table>"
                if arguments.transfer:
                    data += f"<transfer>{arguments.transfer}</transfer>"
            else:
                data = f"<data>{arguments.shapes}/{table}.shp</data>"
            layers.append(LAYER.format(name=f"{style}-{way}", way=way, data=data, folder=folder, style=style, more=arguments.layer))
    (folder / "mapcache.xml").write_text(CONFIG.format(folder=folder, layers="".join(layers)))


def measure(client, server, arguments, name, zoom):
    """Medians over rounds of the mean of a map: server ms, database ms, wall ms, bytes."""
    size, rounds = 0, []
    wanted = list(boxes(zoom, arguments.maps, arguments.seed))
    for box in wanted[:2]:
        map_of(client, name, box, arguments.size)
    for _ in range(arguments.rounds):
        database = servers.descendants(arguments.postmaster)
        before = servers.cpu_seconds([server.pid]), servers.cpu_seconds(database), time.monotonic()
        size = sum(len(map_of(client, name, box, arguments.size)) for box in wanted)
        after = servers.cpu_seconds([server.pid]), servers.cpu_seconds(database), time.monotonic()
        rounds.append([(b - a) * 1000 / len(wanted) for a, b in zip(before, after)])
    return [statistics.median(column) for column in zip(*rounds)] + [size / len(wanted)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postgres", required=True)
    parser.add_argument("--postmaster", type=int, required=True)
    parser.add_argument("--shapes", required=True)
    parser.add_argument("--program", default=str(servers.BUILD / "bin/mapcache.fcgi"))
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--maps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--zooms", nargs="*", type=int)
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--seed", default="7")
    parser.add_argument("--transfer", default="")
    parser.add_argument("--layer", default="", help="more elements for each <layer>")
    parser.add_argument("--save")
    parser.add_argument("--perf", help="file for perf record")
    arguments = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="mapcache-draw-"))
    configure(folder, arguments)
    server = subprocess.Popen([arguments.program, "--listen", str(folder / "socket")], stderr=open(folder / "log", "wb"),
                              env=dict(os.environ, MAPCACHE_CONFIG_FILE=str(folder / "mapcache.xml")))
    try:
        client = connected(folder / "socket")
        print(f"{'case':24} zoom   server  database      sum     wall ms    bytes")
        for name in (f"{data}-{way}" for data in DATA for way in ("postgis", "shapefile")):
            if arguments.only and not any(word in name for word in arguments.only):
                continue
            for zoom in arguments.zooms or DATA[name.split("-")[0]][2]:
                if arguments.perf:
                    perf = subprocess.Popen(["perf", "record", "-q", "-g", "-F", "2000", "-o", arguments.perf, "-p", str(server.pid)])
                    time.sleep(0.5)
                ours, database, wall, size = measure(client, server, arguments, name, zoom)
                if arguments.perf:
                    perf.send_signal(signal.SIGINT)
                    perf.wait()
                print(f"{name:24} {zoom:4} {ours:8.2f} {database:9.2f} {ours + database:8.2f} {wall:11.2f} {size:8.0f}", flush=True)
                if arguments.save:
                    box = next(boxes(zoom, 1, arguments.seed))
                    (pathlib.Path(arguments.save) / f"{name}-{zoom}.png").write_bytes(map_of(client, name, box, arguments.size))
    finally:
        server.terminate()
        server.wait()
        sys.stderr.write((folder / "log").read_text()[-2000:])
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()

"""A WMS origin of known speed: so many maps at a time, each after a fixed wait that uses no processor. How much of its rate does the seeder reach?"""
import http.server
import io
import subprocess
import threading
import time
import urllib.parse

import numpy
from PIL import Image, ImageDraw

from common import load
from common.servers import BUILD

AT_ONCE, WAIT = 2, .1  # maps, seconds
THREADS = 6            # of the seeder: what it decodes, encodes and stores meanwhile must not keep the origin waiting
EDGE = 2048


def picture():
    """A drawn map: areas, lines, texts."""
    numbers = numpy.random.default_rng(3)
    image = Image.new("RGB", (EDGE, EDGE), "#b5d0d0")
    draw = ImageDraw.Draw(image)
    for _ in range(40):
        x, y = numbers.integers(0, EDGE, 2)
        draw.polygon([(int(x + a), int(y + b)) for a, b in numbers.integers(-300, 300, (9, 2))], fill="#f2efe9", outline="#9e4f9e")
    for _ in range(300):
        x, y, a, b = (int(v) for v in numbers.integers(0, EDGE, 4))
        draw.line([(x, y), (x + a // 8, y + b // 8)], fill="#e892a2", width=4)
        draw.text((b, a), f"Town {x}", fill="#222222")
    out = io.BytesIO()
    image.save(out, "PNG", compress_level=1)
    return out.getvalue()


class Origin:
    """The server, in threads of this process."""

    def __init__(self):
        body, gate = picture(), threading.BoundedSemaphore(AT_ONCE)
        self.busy = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                wanted = {key.upper(): value for key, value in urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query)}
                good = (wanted.get("WIDTH"), wanted.get("HEIGHT")) == (str(EDGE), str(EDGE))
                with gate:
                    time.sleep(WAIT)
                self.send_response(200 if good else 400)
                self.send_header("Content-Type", "image/png" if good else "text/plain")
                answer = body if good else b"not the map that this origin has"
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 128
        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


CONFIG = """<mapcache>
  <cache name="tiles" type="sqlite3"><dbfile>{folder}/origin.sqlite3</dbfile></cache>
  <source name="origin" type="wms"><getmap><params><FORMAT>image/png</FORMAT><LAYERS>a</LAYERS></params></getmap>
    <http><url>http://127.0.0.1:{port}/</url></http></source>
  <tileset name="origin"><source>origin</source><cache>tiles</cache><grid>GoogleMapsCompatible</grid><format>PNG8</format><metatile>8 8</metatile></tileset>
  <service type="tms" enabled="true"/>
  <lock_dir>{folder}</lock_dir>
</mapcache>
"""


def measure(folder, count, rounds):
    """Maps/s of the origin alone, asked by as many users as the seeder has threads, and metatiles/s seeded from it; in turn."""
    load.program()  # compiled before the clock runs
    records, count = [], max(THREADS, count // THREADS * THREADS)
    with Origin() as origin:
        config = folder / "origin.xml"
        config.write_text(CONFIG.format(folder=folder, port=origin.port))
        tiles = folder / "origin.txt"
        tiles.write_text("".join(f"{8 * (i % 64)} {8 * (i // 64)} 10\n" for i in range(count)))
        path = f"/?SERVICE=WMS&REQUEST=GetMap&WIDTH={EDGE}&HEIGHT={EDGE}"
        for _ in range(rounds):
            began = time.monotonic()
            answers = load.run(origin.port, [path], THREADS, count // THREADS)
            alone = len([a for a in answers if a.good]) / (time.monotonic() - began)
            began = time.monotonic()
            subprocess.run([BUILD / "bin" / "mapcache", "seed", "-c", config, "-t", "origin", "--list", tiles, "--force", "-q", "-P", "0", "-n", str(THREADS)], check=True,
                           capture_output=True)
            records.append({"alone": alone, "seeded": count / (time.monotonic() - began)})
    return records

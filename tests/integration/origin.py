#!/usr/bin/env python3
"""A scripted origin server for tests: a WMS that answers as it is told by the path.

    origin.py [--port N] [--log FILE] [--lifetime SECONDS]

    --port N            listens on 127.0.0.1:N; 0, the default, takes a free port
    --log FILE          appends one JSON object for each request: number, connection (counted from 1), method, path,
                        query, params (a dictionary), headers (a dictionary, names in lower case), body
    --lifetime SECONDS  ends by itself after that time (default 3600), so that a broken test leaves nothing behind

The first line on standard output is the port. The program ends when its standard input is closed, or on SIGTERM.
From Python: `with Origin() as origin: origin.url("/wms?"), origin.requests()`.

What the path begins with decides the answer; the rest of the path is looked at after a /late, /flaky or /gzip part:

    /wms                 GetMap: a PNG of WIDTH x HEIGHT in the colour that LAYERS names (red, green, blue, white, black,
                         gray, clear, or rrggbb[aa]; else gray). GetFeatureInfo: "feature at X,Y of QUERY_LAYERS" with
                         the media type that INFO_FORMAT names. GetCapabilities: a few lines of XML. POST: echoes the body
    /pattern             GetMap: a PNG that shows where it is (see pattern()); anything else as /wms
    /late/MS/...         waits so many milliseconds first
    /hold/NAME/...       waits until /release/NAME is asked for (which is not logged), at most a minute
    /flaky/N/...         status 503 for the first N requests to this very path, then the rest of the path
    /first/N/...         the rest of the path for the first N requests to this very path, then as /wms
    /gzip/...            the rest of the path, compressed with gzip
    /status/N            status N with a short text
    /xml                 status 200 with a ServiceException
    /half                the first half of the PNG, with a length that fits: a broken image
    /cut                 the first half of the PNG, with the length of the whole: a broken transfer
    /drip/MS             the PNG, one byte each MS milliseconds
    /reset               a little of the PNG, then the connection is reset; /garbage what is no HTTP
    /tiny                a PNG of 16 x 16 pixels, whatever is asked; /large one of 3000 x 3000
    /says/WHAT           status 200 with html, json, nothing, text or gif
    /redirect/N/...      N redirects, then the rest of the path
    /loop                redirects to itself for ever
    /elsewhere           redirects to the text in the parameter "to"
    /huge/N              N bytes "x", with a length; /stream/N without one (chunked)
    /bomb/N              N zero bytes, compressed with gzip
    /headers/N           an answer with N headers of 1000 bytes
    /silent              accepts the request and closes the connection without an answer
    /echo                the request (what is logged) as JSON
"""
import argparse
import gzip
import itertools
import json
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit
from patience import patience

COLORS = {
    "red": (255, 0, 0, 255), "green": (0, 255, 0, 255), "blue": (0, 0, 255, 255), "white": (255, 255, 255, 255),
    "black": (0, 0, 0, 255), "gray": (128, 128, 128, 255), "clear": (0, 0, 0, 0),
}


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, rgba):
    """A PNG, RGBA, all of one colour."""
    rows = (b"\0" + bytes(rgba) * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 1))
            + chunk(b"IEND", b""))


def pattern(params):
    """Red is the pixel's column and green its row, modulo 256, in a world of 1024 columns; blue names which of the
    4 x 4 squares of the world it is in. The west quarter
    is of one opaque colour, the east quarter clear; outside of the world all is clear."""
    import numpy  # only tests that want this need it

    width, height = (min(int(params[name]), 4096) for name in ("WIDTH", "HEIGHT"))
    west, south, east, north = (float(number) for number in params["BBOX"].split(","))
    half_x, half_y = (180, 90) if params.get("SRS", "") == "EPSG:4326" else (20037508.3427892480,) * 2
    x = (west + (numpy.arange(width) + 0.5) * (east - west) / width + half_x) / (2 * half_x)
    y = (half_y - north + (numpy.arange(height) + 0.5) * (north - south) / height) / (2 * half_y)
    rgba = numpy.empty((height, width, 4), numpy.uint8)
    rgba[..., 0] = (x * 1024 + 0.1).astype(int)[None, :] % 256
    rgba[..., 1] = (y * 1024 + 0.1).astype(int)[:, None] % 256
    rgba[..., 2] = (numpy.floor(x * 4)[None, :] * 4 + numpy.floor(y * 4)[:, None]) * 16 % 256
    rgba[..., 3] = 255
    rgba[:, x < 0.25] = (200, 100, 50, 255)
    rgba[:, (x < 0) | (x >= 0.75)] = 0
    rgba[(y < 0) | (y >= 1)] = 0
    rows = numpy.hstack([numpy.zeros((height, 1), numpy.uint8), rgba.reshape(height, -1)])
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows.tobytes(), 1)) + chunk(b"IEND", b""))


def color_of(layers):
    if layers in COLORS:
        return COLORS[layers]
    if re.fullmatch("([0-9a-fA-F]{2}){3,4}", layers):
        return tuple(bytes.fromhex(layers.ljust(8, "f")))
    return COLORS["gray"]


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port, log):
        super().__init__(("127.0.0.1", port), Handler)
        self.log = open(log, "a", buffering=1) if log else None
        self.lock = threading.Lock()
        self.requests = itertools.count(1)
        self.connections = itertools.count(1)
        self.visits = {}
        self.events = {}

    def handle_error(self, request, client_address):
        """Clients that leave early are part of the tests."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one write for head and body
    timeout = 60

    def setup(self):
        super().setup()
        with self.server.lock:
            self.connection_number = next(self.server.connections)

    def log_message(self, *args):
        pass

    def answer(self, body, media="text/plain", status=200, headers=(), length=None):
        if self.compress:
            body = gzip.compress(body, 1)
            headers = list(headers) + [("Content-Encoding", "gzip")]
        self.send_response(status)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()

    def handle_any(self):
        parts = urlsplit(self.path)
        size = int(self.headers.get("Content-Length", 0))
        self.body = self.rfile.read(size).decode("latin-1")
        self.params = {key.upper(): value for key, value in parse_qsl(parts.query, keep_blank_values=True)}
        self.compress = False
        with self.server.lock:
            self.record = {
                "number": next(self.server.requests), "time": time.time(), "connection": self.connection_number, "method": self.command,
                "path": parts.path, "query": parts.query, "params": self.params,
                "headers": {key.lower(): value for key, value in self.headers.items()}, "body": self.body,
            }
            if self.server.log and not parts.path.startswith("/release/"):
                self.server.log.write(json.dumps(self.record) + "\n")
        self.route(parts.path)

    do_GET = do_POST = do_HEAD = do_PUT = do_DELETE = handle_any

    def route(self, path):
        word, _, rest = path.lstrip("/").partition("/")
        number, _, further = rest.partition("/")
        action = getattr(self, "do_" + word, None) if word.islower() else None
        if action is None:
            self.answer(b"no such path", status=404)
            return
        action(number, "/" + further, "/" + rest)

    def map(self):
        width = min(int(self.params.get("WIDTH", 256)), 4096)
        height = min(int(self.params.get("HEIGHT", 256)), 4096)
        return png(width, height, color_of(self.params.get("LAYERS", "")))

    def do_wms(self, *_):
        request = self.params.get("REQUEST", "GetMap").lower()
        if self.command == "POST":
            self.answer(self.body.encode("latin-1"), self.headers.get("Content-Type", "text/plain"))
        elif request == "getfeatureinfo":
            text = "feature at %s,%s of %s" % (self.params.get("X", self.params.get("I")),
                                               self.params.get("Y", self.params.get("J")),
                                               self.params.get("QUERY_LAYERS"))
            self.answer(text.encode(), self.params.get("INFO_FORMAT", "text/plain"))
        elif request == "getcapabilities":
            self.answer(b"<?xml version='1.0'?><WMT_MS_Capabilities version='1.1.1'/>", "application/xml")
        else:
            self.answer(self.map(), "image/png")

    def do_pattern(self, number, further, rest):
        if self.params.get("REQUEST", "GetMap").lower() == "getmap":
            self.answer(pattern(self.params), "image/png")
        else:
            self.do_wms(number, further, rest)

    def do_late(self, number, further, _):
        time.sleep(int(number) / 1000)
        self.route(further)

    def event(self, name):
        with self.server.lock:
            return self.server.events.setdefault(name, threading.Event())

    def do_hold(self, name, further, _):
        self.event(name).wait(patience(60))
        self.route(further)

    def do_release(self, name, *_):
        self.event(name).set()
        self.answer(b"released")

    def do_flaky(self, number, further, _):
        with self.server.lock:
            visits = self.server.visits[self.record["path"]] = self.server.visits.get(self.record["path"], 0) + 1
        if visits <= int(number):
            self.answer(b"not now", status=503)
        else:
            self.route(further)

    def do_first(self, number, further, _):
        """The first visits go to the further path, the later ones to a good map."""
        with self.server.lock:
            visits = self.server.visits[self.record["path"]] = self.server.visits.get(self.record["path"], 0) + 1
        self.route(further if visits <= int(number) else "/wms")

    def do_gzip(self, number, further, rest):
        self.compress = True
        self.route(rest)

    def do_status(self, number, *_):
        self.answer(b"status as ordered, see /secret/path/of/origin", status=int(number))

    def do_xml(self, *_):
        self.answer(b"<ServiceExceptionReport><ServiceException>/secret/map.map is broken</ServiceException>"
                    b"</ServiceExceptionReport>", "application/vnd.ogc.se_xml")

    def do_half(self, *_):
        data = self.map()
        self.answer(data[:len(data) // 2], "image/png")

    def do_cut(self, *_):
        data = self.map()
        self.answer(data[:len(data) // 2], "image/png", length=len(data))
        self.close_connection = True

    def do_drip(self, number, *_):
        data = self.map()
        self.answer(b"", "image/png", length=len(data))
        for i in range(len(data)):
            self.wfile.write(data[i:i + 1])
            self.wfile.flush()
            time.sleep(int(number) / 1000)

    def do_redirect(self, number, further, _):
        left = int(number) - 1
        target = further if left <= 0 else "/redirect/%d%s" % (left, further)
        self.answer(b"on", status=302, headers=[("Location", target + "?" + self.record["query"])])

    def do_loop(self, *_):
        self.answer(b"round", status=302, headers=[("Location", "/loop")])

    def do_elsewhere(self, *_):
        self.answer(b"there", status=302, headers=[("Location", self.params["TO"])])

    def do_huge(self, number, *_):
        self.answer(b"", length=int(number))
        for left in range(int(number), 0, -65536):
            self.wfile.write(b"x" * min(left, 65536))

    def do_stream(self, number, *_):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for left in range(int(number), 0, -65536):
            size = min(left, 65536)
            self.wfile.write(b"%x\r\n" % size + b"x" * size + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")

    def do_bomb(self, number, *_):
        self.compress = True
        self.answer(bytes(int(number)), "application/octet-stream")

    def do_headers(self, number, *_):
        self.answer(b"headers", headers=[("X-Filler-%d" % i, "y" * 1000) for i in range(int(number))])

    def do_silent(self, *_):
        self.close_connection = True

    def do_reset(self, *_):
        data = self.map()
        self.answer(data[:100], "image/png", length=len(data))
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def do_garbage(self, *_):
        self.wfile.write(bytes(range(256)) * 100)
        self.close_connection = True

    def do_tiny(self, *_):
        self.answer(png(16, 16, COLORS["red"]), "image/png")

    def do_large(self, *_):
        """A correct image with more pixels than anyone asked for."""
        self.answer(png(3000, 3000, COLORS["red"]), "image/png")

    def do_says(self, number, *_):
        """Some other thing with status 200."""
        self.answer({"html": b"<html><script>alert(1)</script></html>", "json": b'{"error": "/secret/path"}', "nothing": b"",
                     "text": b"/secret/path of origin", "gif": b"GIF89a\x01\0\x01\0\0\0\0;"}[number],
                    {"html": "text/html", "json": "application/json"}.get(number, "image/png"))

    def do_echo(self, *_):
        self.answer(json.dumps(self.record).encode(), "application/json", headers=[("X-Echo", "one"), ("X-Echo", "two")])


class Origin:
    """The server as a process of its own, for a `with` statement. `port`: one that is kept over kill() and start(); 0: any."""

    def __init__(self, port=0):
        self.port = port

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.log = os.path.join(self.folder.name, "origin.jsonl")
        self.start()
        return self

    def start(self):
        self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--log", self.log, "--port", str(self.port)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def kill(self):
        """All connections are cut."""
        self.process.kill()
        self._close()

    def _close(self):
        self.process.stdin.close()
        self.process.wait(patience(10))
        self.process.stdout.close()

    def __exit__(self, *_):
        self._close()
        self.folder.cleanup()

    def url(self, path="/wms?"):
        return "http://127.0.0.1:%d%s" % (self.port, path)

    def release(self, name):
        """Lets go on whoever waits at /hold/name, now and later."""
        with urllib.request.urlopen(self.url(f"/release/{name}"), timeout=patience(60)) as reply:
            reply.read()

    def requests(self):
        if not os.path.exists(self.log):
            return []
        with open(self.log) as file:  # at once: behind half a line that was just being written, the other half would look like a line
            return [json.loads(line) for line in file.read().split("\n")[:-1]]


def main():
    parser = argparse.ArgumentParser(description="A scripted origin server for tests.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log")
    parser.add_argument("--lifetime", type=float, default=3600)
    arguments = parser.parse_args()
    server = Server(arguments.port, arguments.log)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    end = threading.Timer(arguments.lifetime, lambda: os._exit(3))
    end.daemon = True
    end.start()
    while sys.stdin.buffer.read(4096):
        pass


if __name__ == "__main__":
    main()

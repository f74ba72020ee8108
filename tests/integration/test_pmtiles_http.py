"""PMTiles archives behind HTTP: by parts of one state of the file, from a real nginx; and servers that do it wrong."""
import http.server
import io
import itertools
import os
import pathlib
import shutil
import socket
import subprocess
import threading
import time

import pytest
from conftest import Program, listens, stop_all, wait_until
from fastcgi import Server
from patience import patience
from PIL import Image
from ports import free_port
from test_pmtiles import others_archive, plain_tile

BUILD = pathlib.Path(os.environ.get("MAPCACHE_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build" / "release"))
NGINX = """
daemon off; user root; pid {folder}/web.pid; error_log {folder}/web.log; worker_processes 1; events {{ worker_connections 64; }}
http {{
  log_format asked '$status $uri $http_range $http_if_match $connection'; access_log {folder}/access.log asked; default_type application/octet-stream;
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3; uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
  server {{ listen 127.0.0.1:{port}; root {folder}/www; location /secret {{ return 403; }} location /busy {{ return 503; }} }}
}}
"""
TILE = "/wmts/1.0.0/{}/default/GoogleMapsCompatible/{}/{}/{}.png"


@pytest.fixture
def web(folder):
    """nginx with the files of folder/www; .asked(): what its log has of an archive, up to now (its one worker logs in order)."""
    port = free_port()
    (folder / "www").mkdir()
    (folder / "web.conf").write_text(NGINX.format(folder=folder, port=port))
    program = Program(["nginx", "-p", folder, "-c", folder / "web.conf"], folder / "web.out")
    wait_until(lambda: listens(("127.0.0.1", port)), "nginx starts")
    program.address = f"http://127.0.0.1:{port}"
    marks = itertools.count()

    def asked():
        mark = f"/mark/{next(marks)}"
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(f"GET {mark} HTTP/1.0\r\n\r\n".encode())
            client.recv(1000)
        lines = (lambda: [line.split() for line in (folder / "access.log").read_text().splitlines()])
        wait_until(lambda: any(len(line) > 1 and line[1] == mark for line in lines()), "nginx has logged", 60)
        return [line for line in lines() if not line[1].startswith("/mark/")]
    program.asked = asked
    yield program
    stop_all([program])


@pytest.fixture
def served(build, folder):
    """served(url, ...): a server with a tileset a of that archive."""
    running = []

    def start(url, more="", source=""):
        path = folder / "mapcache.xml"
        path.write_text(f"""<mapcache>
  <cache name="far" type="pmtiles"><url>{url}</url>{more}</cache>
  <source name="blue" type="dummy"/>
  <tileset name="a"><cache>far</cache>{source}<grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>
  <service type="wmts" enabled="true"/><service type="wms" enabled="true"><full_wms>assemble</full_wms></service><lock_dir>{folder}</lock_dir><errors>report</errors>
</mapcache>
""")
        running.append(Server(build, path, folder))
        return running[-1]

    yield start
    for server in running:
        server.stop()


def tile(server, z, x, y):
    return server.get(TILE.format("a", z, y, x))


def test_tiles_come_by_parts(folder, web, served):
    others_archive(folder / "www/o.pmtiles")
    size = (folder / "www/o.pmtiles").stat().st_size
    server = served(f"{web.address}/o.pmtiles")
    for place in (0, 0, 0), (8, 200, 3), (8, 201, 3), (5, 1, 2):
        assert tile(server, *place).body == plain_tile(*place)
    asked = web.asked()
    assert all(status == "206" for status, *_ in asked), asked
    assert asked[0][2] == "bytes=0-16383" and asked[0][3] == "-" and all(etag.startswith("\\x22") for _, _, _, etag, _ in asked[1:])
    assert len({connection for *_, connection in asked}) == 1  # kept
    # A front, two leaves and four tiles at most; known directories and tiles are not asked for again.
    assert len(asked) <= 7
    assert sum(int(r.split("=")[1].split("-")[1]) - int(r.split("=")[1].split("-")[0]) + 1 for _, _, r, *_ in asked) < size / 3
    assert tile(server, 8, 200, 3).body == plain_tile(8, 200, 3)
    assert len(web.asked()) == len(asked)


def test_check_asks_the_archive(folder, web, served):
    """`mapcache check --connect` tells of an archive that is not there, or that nobody may read; without it nobody is asked."""
    others_archive(folder / "www/o.pmtiles")
    for path, complaint in ("o.pmtiles", None), ("none.pmtiles", "cannot be opened"), ("secret", "cannot be read"):
        served(f"{web.address}/{path}")
        done = [subprocess.run([BUILD / "bin/mapcache", "check", *options, folder / "mapcache.xml"], capture_output=True, text=True, timeout=patience(60), check=False)
                for options in ([], ["--connect"])]
        assert done[0].returncode == 0, done[0].stdout
        assert done[1].returncode == (2 if complaint else 0) and (complaint or "") in done[1].stdout, done[1].stdout


def picture_of(z, x, y):
    out = io.BytesIO()
    Image.frombytes("RGB", (256, 256), bytes((7 * x % 256, 7 * y % 256, 20 * z)) * 65536).save(out, "PNG")
    return out.getvalue()


def test_a_map_takes_few_requests(folder, web, served):
    """Its 36 tiles stand in a few places of the archive."""
    others_archive(folder / "www/o.pmtiles", levels=5, tile=picture_of)
    server = served(f"{web.address}/o.pmtiles")
    side, half = 2 * 20037508.342789244 / 32, 20037508.342789244
    box = [9 * side - half, half - 15 * side, 15 * side - half, half - 9 * side]
    answer = server.get("/", f"SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS=a&STYLES=&SRS=EPSG:3857&FORMAT=image/png&WIDTH=1536&HEIGHT=1536&BBOX={','.join(map(str, box))}")
    drawn = Image.open(io.BytesIO(answer.body)).convert("RGB")
    for x in range(6):
        for y in range(6):
            assert drawn.getpixel((256 * x + 128, 256 * y + 128)) == pytest.approx((7 * (9 + x), 7 * (9 + y), 100), abs=2)
    assert len(web.asked()) <= 8, web.asked()  # the front, and what is far apart of the map


def test_a_replaced_archive_gives_no_wrong_tile(folder, web, served):
    """The directories of the old one are not used with the new one's tiles, however long they are taken for current."""
    others_archive(folder / "www/o.pmtiles", levels=5)
    server = served(f"{web.address}/o.pmtiles", "<revalidate>3600</revalidate>")
    assert tile(server, 5, 0, 0).body == plain_tile(5, 0, 0)
    for version in range(3):
        others_archive(folder / "new", levels=5, tile=lambda z, x, y: f"new {version} {z}/{x}/{y}".encode() * (30 + x % 5))
        os.utime(folder / "new", (1e9 + version, 1e9 + version))
        os.rename(folder / "new", folder / "www/o.pmtiles")
        for x in range(3):
            x += 4 * version + 1
            assert tile(server, 5, x, 1).body == f"new {version} 5/{x}/1".encode() * (30 + x % 5)
    assert any(status == "412" for status, *_ in web.asked())


def test_changes_show_after_a_while(folder, web, served):
    others_archive(folder / "www/o.pmtiles", levels=3)
    server = served(f"{web.address}/o.pmtiles", "<revalidate>0.2</revalidate>")
    assert tile(server, 0, 0, 0).body == plain_tile(0, 0, 0)
    others_archive(folder / "www/o.pmtiles", levels=3, tile=lambda z, x, y: b"new")
    wait_until(lambda: tile(server, 0, 0, 0).body == b"new", "the new archive shows")


@pytest.mark.parametrize("path, said", [("secret", "does not let us read it"), ("busy", "is busy")])
def test_what_may_not_be_read_is_no_absence(web, served, path, said):
    """Neither drawn nor taken for empty."""
    server = served(f"{web.address}/{path}", source="<source>blue</source>")
    assert tile(server, 0, 0, 0).status == 502
    assert said in server.log()
    assert web.address.split("/")[2] not in tile(server, 0, 0, 0).body.decode("latin-1")


def test_an_absent_archive_is_an_error_where_nothing_is_drawn(web, served):
    server = served(f"{web.address}/none.pmtiles")
    assert tile(server, 0, 0, 0).status == 500
    assert "cannot be opened" in server.log()


class Wrong(http.server.BaseHTTPRequestHandler):
    """A server of an archive that does it wrong, by the path."""
    protocol_version = "HTTP/1.1"
    archive = b""

    def do_GET(self):
        way = self.path.strip("/")
        first, last = map(int, self.headers.get("Range", "bytes=0-0").split("=")[1].split("-"))
        part, status, headers = self.archive[first:last + 1], 206, {"ETag": '"1"'}
        if way == "html":
            part, status = b"<html>not here</html>", 200
        elif way == "whole":
            part, status = self.archive, 200
        elif way == "elsewhere":
            first += 1
        elif way == "short":
            part = part[:-1]
        elif way == "nameless":
            headers = {}
        elif way == "changing" and first > 0:
            headers = {"ETag": '"2"'}
        elif way == "slow" and first > 0:
            time.sleep(20)
        elif way == "tail" and first > 0:
            part = part[:-1] + b"!" + part[-1:]
        elif way == "packed":
            headers["Content-Encoding"] = "gzip"
        self.send_response(status)
        if status == 206:
            headers["Content-Range"] = f"bytes {first}-{first + len(part) - 1}/{len(self.archive)}"
        for name, value in {**headers, "Content-Length": len(part)}.items():
            self.send_header(name, str(value))
        self.end_headers()
        try:
            self.wfile.write(part)
        except OSError:
            pass

    def log_message(self, *_):
        pass


@pytest.fixture
def wrong(folder):
    others_archive(folder / "o.pmtiles", levels=7)
    handler = type("Handler", (Wrong,), {"archive": (folder / "o.pmtiles").read_bytes()})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", free_port()), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("way, status", [("html", 500), ("whole", 502), ("elsewhere", 502), ("short", 502), ("nameless", 502),
                                         ("changing", 503), ("slow", 504), ("tail", 502)])
def test_servers_that_do_it_wrong(wrong, served, way, status):
    server = served(f"{wrong}/{way}", "<timeout>0.5</timeout>")
    answer = tile(server, 7, 100, 100)
    assert answer.status == status, (answer.status, answer.body, server.log())
    assert answer.took < patience(10) and server.alive()


def test_the_scripted_server_is_right_otherwise(wrong, served):
    assert tile(served(f"{wrong}/right"), 7, 100, 100).body == plain_tile(7, 100, 100)


def test_a_server_that_is_away(folder, served):
    server = served(f"http://127.0.0.1:{free_port()}/o.pmtiles", source="<source>blue</source>")
    assert tile(server, 0, 0, 0).status == 502
    shutil.rmtree(folder / "none", ignore_errors=True)

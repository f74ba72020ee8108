"""A table changes, and caches in front drop the tiles that show it, and no others: Varnish and nginx as docs/cdn.md has them, and a
receiver of Fastly's requests, which is away at times."""
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import threading

import pytest
from changes_site import PLACE, change, configuration, counter, path_of, prepare, tile_of, wait_until_followed
from conftest import SOON, Program, fetch, listens, sanitizer_environment, stop_all, wait_until
from fastcgi import Server
from patience import patience
from peers import tool
from ports import free_ports
from postgres import Postgres

TOKEN = "a long secret"
SECRET = "sixteen-or-more-characters"
LIBRARIES = tool("usr/lib/x86_64-linux-gnu")
FAR = (-100, 10)
MAP = "/?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS=squares&STYLES=&SRS=EPSG:3857&BBOX=1000000,5700000,1200000,5900000&WIDTH=600&HEIGHT=600&FORMAT=image/png"


def block_of_docs(beginning):
    """The indented block of the page that begins with that line."""
    lines = (pathlib.Path(__file__).parents[2] / "docs/cdn.md").read_text().splitlines()
    first = lines.index(f"    {beginning}")
    block = []
    for line in lines[first:]:
        if line and not line.startswith("    "):
            break
        block.append(line[4:])
    return "\n".join(block)


class Receiver(http.server.ThreadingHTTPServer):
    """Notes requests, and answers all with one status."""
    daemon_threads = True

    def __init__(self, port):
        self.status, self.requests = 200, []
        super().__init__(("127.0.0.1", port), Answer)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def keys(self):
        return {key for one in list(self.requests) if one[2] == 200 for key in one[3]["Surrogate-Key"].split(" ")}


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        status = self.server.status
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.requests.append((self.command, self.path, status, dict(self.headers)))
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


NGINX = """
load_module {module};
worker_processes 1;
daemon off;
user {user};
pid {folder}/nginx.pid;
error_log {folder}/nginx.log warn;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; fastcgi_temp_path {folder}/fastcgi; proxy_temp_path {folder}/proxy;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  add_header X-Cache $upstream_cache_status;
  server {{
    listen 127.0.0.1:{web};
    location / {{
      include /etc/nginx/fastcgi_params;
      fastcgi_param SCRIPT_NAME "";
      fastcgi_param PATH_INFO $uri;
      fastcgi_pass unix:{socket};
    }}
  }}
  {caching}
}}
"""


class Front:
    """The database, the server, and what stands in front."""

    def __init__(self, build, folder, database):
        self.build, self.folder, self.database = build, folder, database
        first = free_ports(4)
        self.web, self.nginx, self.varnish, port = range(first, first + 4)
        self.receiver = Receiver(port)
        cdns = f"""<changes><poll>1</poll><settle>1</settle></changes>
          <cdn name="varnish" type="varnish"><url>http://127.0.0.1:{self.varnish}/</url><delay>0.1</delay>
            <headers><X-Purge-Token>{TOKEN}</X-Purge-Token></headers><max_age>86400</max_age></cdn>
          <cdn name="nginx" type="nginx"><delay>0.1</delay><max_age>86400</max_age>
            <url>http://127.0.0.1:{self.nginx}/purge/wmts/1.0.0/{{tileset}}/default/{{grid}}/{{z}}/{{y}}/{{x}}.png</url>
            <headers><X-Purge-Token>{TOKEN}</X-Purge-Token></headers></cdn>
          <cdn name="fastly" type="fastly"><url>http://127.0.0.1:{port}/service/abc/purge</url><delay>0</delay><batch>20</batch>
            <headers><Fastly-Key>token</Fastly-Key></headers><soft>true</soft></cdn>"""
        self.config = configuration(folder, database.connection(), changes=cdns, extra=f'<service type="ready" enabled="true"/><service type="purge" enabled="true"><token>{SECRET}</token></service>')
        self.server = Server(build, self.config, folder)
        wait_until_followed(self.server)
        self.programs = [self.start_nginx(), self.start_varnish()]
        for port in (self.web, self.nginx, self.varnish):
            wait_until(lambda port=port: listens(("127.0.0.1", port)), "what stands in front starts")

    def start_nginx(self):
        caching = block_of_docs("proxy_cache_path /var/cache/nginx/tiles keys_zone=tiles:16m max_size=10g inactive=7d;")
        caching = caching.replace("/var/cache/nginx/tiles", f"{self.folder}/copies").replace("8081", str(self.nginx)).replace("8080", str(self.web))
        (self.folder / "nginx.conf").write_text(NGINX.format(
            module=tool("usr/lib/nginx/modules/ngx_http_cache_purge_module.so"), folder=self.folder, web=self.web, caching=caching,
            socket=self.server.address, user="root" if os.geteuid() == 0 else "nobody"))
        return Program(["nginx", "-p", self.folder, "-c", self.folder / "nginx.conf"], self.folder / "nginx.out")

    def start_varnish(self):
        (self.folder / "varnish.vcl").write_text(block_of_docs("vcl 4.1;").replace("8080", str(self.web)))
        return Program([tool("usr/sbin/varnishd"), "-F", "-n", self.folder / "varnish", "-f", self.folder / "varnish.vcl", "-j", "none", "-T", "none",
                        "-a", f"127.0.0.1:{self.varnish}", "-s", "malloc,16m", "-l", "2m", "-p", f"vmod_path={LIBRARIES}/varnish/vmods"],
                       self.folder / "varnish.out", {"LD_LIBRARY_PATH": f"{LIBRARIES}:{LIBRARIES}/varnish"})

    def restart_server(self):
        self.server.program.process.kill()
        self.server.program.process.wait()
        self.server.program.output.close()
        self.server.client.close()
        self.server = Server(self.build, self.config, self.folder)

    def stop(self):
        try:
            self.server.stop()
        finally:
            stop_all(self.programs)
            self.receiver.shutdown()
            self.receiver.server_close()


@pytest.fixture(name="front", scope="module")
def front_fixture(build, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cdn")
    with Postgres() as database:
        prepare(build, database)
        front = Front(build, folder, database)
        yield front
        front.stop()


def ask(port, path):
    answer = fetch(port, path)
    assert answer.status == 200, (path, answer.status, answer.body[:300])
    return answer


def object_of(answer):
    """By what Varnish knows what it answers with; none where it has asked for it just now."""
    return answer.headers["X-Varnish"].split()[1:]


def keep(port, path, is_copy):
    """Asks until a copy answers; its answer."""
    answers = []

    def kept():
        answers.append(ask(port, path))
        return is_copy(answers[-1])

    wait_until(kept, f"a copy of {path} is kept", SOON)
    return answers[-1]


def test_varnish_drops_what_has_changed_and_nothing_else(front):
    near = [path_of(tile_of(*PLACE, z)) for z in (0, 3, 7, 12)] + [MAP]
    far = path_of(tile_of(*FAR, 9))
    answer = ask(front.web, near[2])
    z, x, y = tile_of(*PLACE, 7)
    assert f" squares:GoogleMapsCompatible:7:3:{x // 8}:" in answer.headers["xkey"], answer.headers["xkey"]
    assert answer.headers["xkey"].startswith(":all squares squares:GoogleMapsCompatible:7 ")
    assert answer.headers["Surrogate-Key"] == answer.headers["xkey"]
    assert answer.headers["Surrogate-Control"] == "max-age=86400"
    before = {path: keep(front.varnish, path, object_of).body for path in near}
    kept = keep(front.varnish, far, object_of)
    assert "xkey" not in kept.headers and "Surrogate-Control" not in kept.headers
    assert fetch(front.varnish, "/", method="PURGE", headers={"xkey-purge": ":all"}).status == 403
    change(front.database, "new")
    wait_until(lambda: all(ask(front.varnish, path).body != before[path] for path in near), "Varnish has the new tiles", SOON)
    again = ask(front.varnish, far)
    assert object_of(again) == object_of(kept)
    after = {path: ask(front.web, path).body for path in near}
    assert {path: keep(front.varnish, path, object_of).body for path in near} == after


def test_what_somebody_says_is_old_is_dropped_too(front):
    far, near = path_of(tile_of(*FAR, 9)), path_of(tile_of(*PLACE, 9))
    before, other = keep(front.varnish, far, object_of), keep(front.varnish, near, object_of)
    meant = {"tileset": "squares", "box": [FAR[0], FAR[1], FAR[0] + 0.01, FAR[1] + 0.01], "crs": "CRS:84", "minzoom": 9, "maxzoom": 9}

    def say(**more):
        headers = {"Authorization": f"Bearer {SECRET}", "Content-Type": "application/json"}
        answer = fetch(front.web, "/purge", method="POST", body=json.dumps({**meant, **more}).encode(), headers=headers)
        assert answer.status == 200, answer.body
        return json.loads(answer.body)

    assert say(dry_run=True)["would_mark"] > 0
    assert object_of(ask(front.varnish, far)) == object_of(before)
    assert say()["marked"] > 0
    wait_until(lambda: object_of(ask(front.varnish, far)) != object_of(before), "Varnish asks anew", SOON)
    assert object_of(ask(front.varnish, near)) == object_of(other)
    command = [front.build / "bin/mapcache", "purge", "-c", front.config, "-t", "squares", "--stale", "-z", "5,5"]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **sanitizer_environment(front.build)}, timeout=patience(60))
    assert {key for key in front.receiver.keys() if key.startswith("squares:GoogleMapsCompatible:5:3:")}  # it has waited for that


def test_nginx_drops_the_tiles_that_have_changed(front):
    def is_copy(answer):
        return answer.headers["X-Cache"] == "HIT"

    near, far = [path_of(tile_of(*PLACE, z)) for z in (1, 5, 8)], path_of(tile_of(*FAR, 9))
    before = {path: keep(front.nginx, path, is_copy).body for path in near}
    keep(front.nginx, far, is_copy)
    assert fetch(front.nginx, "/purge" + far).status == 403
    lost = counter(front.server, "cdn_purges_lost_total")
    change(front.database, "old")
    wait_until(lambda: all(ask(front.nginx, path).body != before[path] for path in near), "nginx has the new tiles", SOON)
    assert is_copy(ask(front.nginx, far))
    assert counter(front.server, "cdn_purges_lost_total") > lost  # thousands of tiles at the finest levels


def place_in_log(front):
    return front.database.sql("SELECT applied FROM mapcache_changes.readers")


def test_a_purge_is_repeated_until_it_is_taken_also_by_the_next_process(front):
    x, y = (value // 2 ** 3 for value in tile_of(*PLACE, 12)[1:])
    block = re.compile(rf"squares:GoogleMapsCompatible:12:[36]:{x}:\d+|squares:GoogleMapsCompatible:12:6:{x // 8}:\d+")

    def purged():
        return any(block.fullmatch(key) for key in front.receiver.keys())

    wait_until(purged, "the change of before is purged", SOON)
    for method, path, _, headers in front.receiver.requests:
        assert (method, path, headers["Fastly-Key"], headers["Fastly-Soft-Purge"]) == ("POST", "/service/abc/purge", "token", "1")
        assert 1 <= len(headers["Surrogate-Key"].split(" ")) <= 20
        assert re.fullmatch(r"[A-Za-z0-9:._% -]+", headers["Surrogate-Key"])
    assert "squares" not in front.receiver.keys()  # blocks, not the tileset
    front.receiver.status = 503
    failures = counter(front.server, "cdn_purge_failures_total")
    change(front.database, "away")
    wait_until(lambda: counter(front.server, "cdn_purge_failures_total") >= failures + 2, "the purge is repeated", SOON)
    assert front.server.program.log().count(f"cdn \"fastly\" (http://127.0.0.1:{front.receiver.server_port}) does not take purges now") == 1
    ready = json.loads(front.server.get("/ready").body)["cdn"]
    assert any(one["name"] == "fastly" and one["waiting"] > 0 and one["failing_seconds"] is not None for one in ready), ready
    before = place_in_log(front)
    front.restart_server()
    front.receiver.requests.clear()
    front.receiver.status = 200
    wait_until(purged, "the next process purges", SOON)
    wait_until(lambda: place_in_log(front) != before, "the place in the log moves", SOON)


def test_what_is_wrong_is_said(build, tmp_path):
    shutil.copy(pathlib.Path(__file__).parents[2] / "mapcache.xml.sample", tmp_path / "mapcache.xml")
    text = (tmp_path / "mapcache.xml").read_text()
    wrong = """<cdn name="a" type="akamai"><url>http://h/</url></cdn><cdn name="b" type="varnish"><url>ftp://h/</url></cdn>
      <cdn name="c" type="nginx"><url>http://h/{z}/{x}.png</url></cdn><cdn name="d" type="fastly"><url>https://h/</url></cdn>
      <cdn name="e" type="varnish"></cdn><cdn name="f" type="nginx"><url>http://h/{z}/{x}/{y}</url><method>a b</method></cdn>"""
    (tmp_path / "mapcache.xml").write_text(text.replace("</mapcache>", wrong + "</mapcache>"))
    told = subprocess.run([build / "bin/mapcache", "check", tmp_path / "mapcache.xml"], capture_output=True, text=True, check=False,
                          env={**os.environ, **sanitizer_environment(build)}, timeout=patience(60))
    said = told.stdout + told.stderr
    for part in ("varnish|fastly|nginx", "ftp://h/", "by the address of a tile", "only with a token", "a b"):
        assert part in said or part.replace("|", ", ") in said, (part, said[-3000:])
    assert re.search(r"url", said) and told.returncode == 1

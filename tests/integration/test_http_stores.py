"""Tiles behind HTTP through the whole program: moto, which checks the signatures of S3 by AWS's own library; nginx with DAV; and
Debian's MapCache beside ours on the same store."""
import json
import os
import pathlib
import subprocess
import time
import urllib.request

import pytest
from conftest import GRID, Program, free_port, listens, wait_until
from drop_in import PEER_SEED
from fastcgi import Server
from origin import Origin
from patience import patience
from http_stores import KEYS, OwnStore, make_certificate, running_dav, running_moto
from store_server import ACCESS, REGION, SECRET

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("MAPCACHE_BUILD", HERE.parents[1] / "build" / "release"))
WORLD = "-20037508.342789248,-20037508.342789248,20037508.342789248,20037508.342789248"
MAP = f"SERVICE=WMS&REQUEST=GetMap&LAYERS=world&SRS=EPSG:3857&BBOX={WORLD}&WIDTH=2048&HEIGHT=2048&FORMAT=image/png"
TEMPLATE = "{tileset}/{grid}/{z}/{x}/{y}.{ext}"

@pytest.fixture(scope="module")
def moto(tmp_path_factory):
    with running_moto(tmp_path_factory.mktemp("moto")) as made:
        yield made[:3]


@pytest.fixture
def own_store(tmp_path):
    stores = []

    def start(kind):
        stores.append(OwnStore(kind, tmp_path))
        return stores[-1]

    yield start
    for store in stores:
        store.stop()


@pytest.fixture
def dav(tmp_path):
    with running_dav(tmp_path) as (port, root, _):
        yield port, root


@pytest.fixture
def secure_dav(tmp_path):
    """The same over TLS and HTTP/2, with a certificate of its own: its port, and the file of the certificate."""
    port, root = free_port(), tmp_path / "dav"
    root.mkdir()
    certificate, _ = make_certificate(tmp_path)
    (tmp_path / "nginx.conf").write_text(f"""
worker_processes 1; daemon off; user {'root' if os.getuid() == 0 else 'nobody'}; pid {tmp_path}/nginx.pid; error_log {tmp_path}/nginx.log warn;
events {{ worker_connections 512; }}
http {{
  log_format connections '$request_method $connection $server_protocol'; access_log {tmp_path}/access.log connections;
  client_body_temp_path {tmp_path}/body; proxy_temp_path {tmp_path}/p; fastcgi_temp_path {tmp_path}/f; uwsgi_temp_path {tmp_path}/u;
  scgi_temp_path {tmp_path}/s;
  server {{ listen 127.0.0.1:{port} ssl http2; ssl_certificate {certificate}; ssl_certificate_key {tmp_path}/key.pem; root {root};
    location / {{ dav_methods PUT DELETE; create_full_put_path on; }}
  }}
}}
""")
    program = Program(["nginx", "-p", tmp_path, "-c", tmp_path / "nginx.conf"], tmp_path / "nginx.out")
    try:
        wait_until(lambda: listens(("127.0.0.1", port)), "nginx starts")
        yield port, certificate
    finally:
        program.stop()


def config(folder, cache, name="mapcache", source="<source>any</source>"):
    """A tileset in the store, and the same in a file; `cache` is what stands in <cache>, its type first."""
    kind, _, inner = cache.partition(" ")
    path = folder / f"{name}.xml"
    path.write_text(f"""<mapcache>
  <source name="any" type="dummy"/>
  <cache name="store" type="{kind}">{inner}</cache>
  <cache name="file" type="sqlite3"><dbfile>{folder}/tiles.sqlite3</dbfile></cache>
  <tileset name="world">{source}<cache>store</cache><grid>{GRID}</grid><format>PNG</format><metatile>4 4</metatile></tileset>
  <tileset name="same"><source>any</source><cache>file</cache><grid>{GRID}</grid><format>PNG</format><metatile>4 4</metatile></tileset>
  <service type="wmts" enabled="true"/>
  <service type="wms" enabled="true"><format>PNG</format></service>
  <lock_dir>{folder}</lock_dir>
</mapcache>
""")
    return path


def seed(path, *options, program=BUILD / "bin" / "mapcache_seed", tileset="world"):
    ended = subprocess.run([str(program), "-c", str(path), "-t", tileset, *options], capture_output=True, text=True, timeout=patience(100), check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended


def tile(z, x, y, tileset="world"):
    return f"/wmts/1.0.0/{tileset}/default/{GRID}/{z}/{y}/{x}.png"


def stored_tiles(path):
    """Of the levels 0 to 3, as `mapcache detail` counts them."""
    done = subprocess.run([BUILD / "bin/mapcache", "detail", "-c", path, "-t", "world", "-z", "0,3"], capture_output=True, text=True,
                          timeout=patience(60), check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [int(line.split()[2]) for line in done.stdout.splitlines() if line.split()[:1] and line.split()[0].isdigit()]


def expect_store_serves(folder, build, cache, counted=True):
    """Seeds the store, reads it by a server that cannot render, deletes."""
    path = config(folder, cache)
    seed(path, "-z", "0,3", "-p", "2")
    if counted:
        assert stored_tiles(path) == [1, 4, 16, 64]
    server = Server(build, config(folder, cache, "reader", source=""), folder)
    whole = Server(build, path, folder / "whole")
    try:
        for z, x, y in ((0, 0, 0), (2, 1, 3), (3, 7, 0)):
            kept = whole.get(tile(z, x, y, "same"))
            answer = server.get(tile(z, x, y))
            assert answer.status == 200 and answer.body == kept.body, (answer.status, answer.body, server.log())
            assert answer.header("Last-Modified") or answer.header("ETag")
        drawn = server.get("/", MAP)
        assert drawn.status == 200 and drawn.body == whole.get("/", MAP.replace("world", "same")).body
        seed(path, "-m", "delete", "-z", "3,3")
        if counted:
            assert stored_tiles(path) == [1, 4, 16, 0]
        assert server.get(tile(3, 7, 0)).body != kept.body  # nothing to see
        assert server.get(tile(2, 1, 3)).status == 200
        assert whole.get(tile(3, 7, 0)).body == kept.body  # rendered anew
        assert server.get(tile(3, 7, 0)).body == kept.body
    finally:
        server.stop()
        whole.stop()


@pytest.mark.parametrize("style", ["path", "host"])
def test_s3_that_checks_signatures(tmp_path, build, moto, style):
    port, access, secret = moto
    (tmp_path / "whole").mkdir()
    where = f"http://127.0.0.1:{port}/" + ("tiles/a b+c/" if style == "path" else "host/") + TEMPLATE
    headers = "" if style == "path" else "<headers><Host>tiles.s3.amazonaws.com</Host></headers>"
    acl = '<operation type="put"><headers><x-amz-acl>public-read</x-amz-acl></headers></operation>'
    expect_store_serves(tmp_path, build, f"s3 <url>{where}</url>{headers}<id>{access}</id><secret>{secret}</secret><region>eu-test-1</region>{acl}")


def test_names_with_blanks_are_those_of_mapcache(tmp_path, build, moto):
    port, access, secret = moto
    where = f"http://127.0.0.1:{port}/tiles/two  blanks/{TEMPLATE}"
    path = config(tmp_path, f"s3 <url>{where}</url><headers><Host>127.0.0.1:{port}</Host></headers><id>{access}</id><secret>{secret}</secret>"
                            "<region>eu-test-1</region>")
    with Origin() as origin:
        path.write_text(path.read_text().replace('<source name="any" type="dummy"/>', f"""<source name="any" type="wms"><getmap><params>
  <FORMAT>image/png</FORMAT><LAYERS>pattern</LAYERS></params></getmap><http><url>{origin.url("/pattern")}</url></http></source>"""))
        seed(path, "-z", "0,2", "-n", "1", program=PEER_SEED)
    assert stored_tiles(path) == [1, 4, 16, 0]
    seed(path, "-z", "0,2", "-m", "delete")
    assert stored_tiles(path) == [0, 0, 0, 0]


def test_s3_over_tls(tmp_path, build):
    """What is stored is not hashed: the signature says so, and TLS proves that it is whole."""
    certificate, key = make_certificate(tmp_path)
    with running_moto(tmp_path, ["-c", certificate, "-k", key], "https://localhost", str(certificate)) as (port, access, secret, _):
        cache = (f"s3 <url>https://localhost:{port}/tiles/{TEMPLATE}</url><id>{access}</id><secret>{secret}</secret><region>eu-test-1</region>"
                 "<unsigned_payload>true</unsigned_payload><connections>8</connections>")
        server = Server(build, config(tmp_path, cache), tmp_path, environment={"CURL_CA_BUNDLE": str(certificate)})
        try:
            first = server.get(tile(1, 1, 0))
            assert first.status == 200 and server.get(tile(1, 1, 0)).body == first.body, (first.body, server.log())
            assert "refuses" not in server.log(), server.log()
        finally:
            server.stop()


def test_s3_refuses(tmp_path, build, moto):
    """Who signs with another secret gets no tile, and none is rendered in its place."""
    port, access, secret = moto
    cache = "s3 <url>http://127.0.0.1:{}/tiles/refused/{}</url><id>{}</id><secret>{}</secret><region>eu-test-1</region>"
    server = Server(build, config(tmp_path, cache.format(port, TEMPLATE, access, "wrong-" + secret)), tmp_path)
    try:
        answer = server.get(tile(1, 0, 0))
        assert answer.status == 502 and b"refuses access" in answer.body, (answer.status, answer.body)
        assert b"127.0.0.1" not in answer.body and secret not in server.log()
        assert "SignatureDoesNotMatch" in server.log()
    finally:
        server.stop()


def test_a_dav_server(tmp_path, build, dav):
    port, root = dav
    (tmp_path / "whole").mkdir()
    expect_store_serves(tmp_path, build, f"rest <url>http://127.0.0.1:{port}/a b/{TEMPLATE}</url>", counted=False)
    assert (root / "a+b" / "world" / GRID / "2" / "1" / "0.png").read_bytes()[:4] == b"\x89PNG"
    server = Server(build, config(tmp_path, f"rest <url>http://127.0.0.1:{port}/closed/{TEMPLATE}</url>"), tmp_path)
    try:
        answer = server.get(tile(1, 0, 0))  # 403 with a page of HTML
        assert answer.status == 502 and b"refuses access" in answer.body, (answer.status, answer.body)
    finally:
        server.stop()


def test_tiles_of_a_map_share_a_connection_of_http2(tmp_path, build, secure_dav):
    port, certificate = secure_dav
    trust = {"CURL_CA_BUNDLE": str(certificate)}
    cache = f"rest <url>https://localhost:{port}/{TEMPLATE}</url>"
    path = config(tmp_path, cache)
    (tmp_path / "stranger").mkdir()
    done = subprocess.run([BUILD / "bin/mapcache_seed", "-c", path, "-t", "world", "-z", "3,3"], env={**os.environ, **trust}, capture_output=True,
                          text=True, timeout=patience(100), check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    server = Server(build, config(tmp_path, cache, "reader", source=""), tmp_path, environment=trust)
    stranger = Server(build, config(tmp_path, cache, "stranger", source=""), tmp_path / "stranger")
    try:
        assert stranger.get(tile(3, 0, 0)).status == 503  # it does not know the certificate
        (tmp_path / "access.log").write_text("")
        drawn = [server.get("/", MAP) for _ in range(2)]
        assert [answer.status for answer in drawn] == [200, 200] and drawn[0].body == drawn[1].body
        wait_until(lambda: len((tmp_path / "access.log").read_text().splitlines()) >= 128, "all requests are logged")
        lines = (tmp_path / "access.log").read_text().splitlines()
        assert len(lines) == 128 and all(line.startswith("GET ") and line.endswith("HTTP/2.0") for line in lines), lines[:3]
        assert len({line.split()[1] for line in lines}) <= 2, lines
    finally:
        server.stop()
        stranger.stop()


def test_a_map_takes_two_round_trips_at_most(tmp_path, build, own_store):
    """A map of 64 tiles on connections that are kept, from a store that is far away."""
    store, delay = own_store("rest"), 0.4
    path = config(tmp_path, f"rest <url>http://127.0.0.1:{store.port}/{TEMPLATE}</url>")
    seed(path, "-z", "3,3")
    server = Server(build, config(tmp_path, f"rest <url>http://127.0.0.1:{store.port}/{TEMPLATE}</url>", "reader", source=""), tmp_path)
    try:
        assert server.get("/", MAP).status == 200
        store.order("log")
        near = min(server.get("/", MAP).took for _ in range(2))
        store.order(f"delay/{int(delay * 1000)}")
        far = min(server.get("/", MAP).took for _ in range(3))
        log = json.loads(store.order("log"))
        assert len(log) == 5 * 64 and len({entry["connection"] for entry in log}) <= 64
        assert far < near + 2.5 * delay, (near, far)
    finally:
        server.stop()


def test_a_store_that_is_away_comes_back(tmp_path, build, own_store):
    store = own_store("s3")
    keys = f"<id>{ACCESS}</id><secret>{SECRET}</secret><region>{REGION}</region><busy_retries>0</busy_retries>"
    cache = f"s3 <url>http://127.0.0.1:{store.port}/b/{TEMPLATE}</url>{keys}"
    seed(config(tmp_path, cache), "-z", "0,1")
    path = config(tmp_path, cache, "reader", source="")
    path.write_text(path.read_text().replace("</mapcache>", '<service type="ready" enabled="true"/></mapcache>'))
    server = Server(build, path, tmp_path)
    try:
        kept = server.get(tile(1, 0, 0))
        assert kept.status == 200
        store.order("fail/503/100000/SlowDown")
        for _ in range(6):
            away = server.get(tile(1, 0, 0))
            assert away.status == 503 and away.header("Retry-After"), (away.status, away.body)
        asked = len(json.loads(store.order("log")))
        assert asked < 20 and "left alone" in server.log()
        assert json.loads(server.get("/ready").body)["away"] == [f"http://127.0.0.1:{store.port}"]
        store.order("fail/200/0")
        wait_until(lambda: server.get(tile(1, 0, 0)).status == 200, "the tile again")
        assert json.loads(server.get("/ready").body)["away"] == []
        assert server.get(tile(1, 0, 0)).body == kept.body
        store.order("skew/7200")
        answer = server.get(tile(1, 0, 0))
        assert answer.status == 502 and b"clock" in answer.body, (answer.status, answer.body)
    finally:
        server.stop()


def test_a_stalled_store_ends_with_the_request(tmp_path, build, own_store):
    store = own_store("rest")
    path = config(tmp_path, f"rest <url>http://127.0.0.1:{store.port}/{TEMPLATE}</url><timeout>2</timeout>")
    server = Server(build, path, tmp_path)
    try:
        store.order("stall/1")
        began = time.monotonic()
        answer = server.get(tile(1, 0, 0))
        assert answer.status == 504 and time.monotonic() - began < 2 + patience(10), (answer.status, answer.body)
        wait_until(lambda: server.get(tile(1, 0, 0)).status == 200, "the tile, after the pause of a store that is left alone")
    finally:
        server.stop()


@pytest.mark.parametrize("kind", sorted(KEYS))
def test_stores_of_mapcache(tmp_path, build, own_store, kind):
    """What Debian's MapCache has stored is found under the same names, and the other way round."""
    store = own_store(kind)
    host = "" if kind == "rest" else f"<headers><Host>127.0.0.1:{store.port}</Host></headers>"
    path = config(tmp_path, f"{kind} <url>http://127.0.0.1:{store.port}/tiles/{TEMPLATE}</url>{host}{KEYS[kind]}")
    with Origin() as origin:
        source = f"""<source name="any" type="wms"><getmap><params><FORMAT>image/png</FORMAT><LAYERS>pattern</LAYERS></params></getmap>
  <http><url>{origin.url("/pattern")}</url></http></source>"""
        text = path.read_text().replace('<source name="any" type="dummy"/>', source)
        path.write_text(text)
        seed(path, "-z", "0,2", "-n", "1", program=PEER_SEED)
        names = store.objects()
        assert len(names) == 21 and f"/tiles/world/{GRID}/2/3/1.png" in names
        reader = tmp_path / "reader.xml"
        reader.write_text(text.replace("<tileset name=\"world\"><source>any</source>", '<tileset name="world">'))
        server = Server(build, reader, tmp_path)
        try:
            for z, x, y in ((0, 0, 0), (2, 3, 1), (2, 0, 3)):
                answer = server.get(tile(z, x, y))
                assert answer.status == 200 and answer.body[:4] == b"\x89PNG" and len(answer.body) > 200, (answer.status, answer.body)
                assert answer.body != server.get(tile(2, 1, 1)).body  # each has its own pixels
        finally:
            server.stop()
        seed(path, "-z", "0,2", "-m", "delete")  # by ours
        assert store.objects() == []
        seed(path, "-z", "0,2")
        assert store.objects() == names
        seed(path, "-z", "2,2", "-m", "delete", program=PEER_SEED)
        assert len(store.objects()) == 5, store.objects()


def test_clients_are_sent_to_the_store(tmp_path, build, own_store):
    """One tile only: a map is composed here, by a tile of the same address."""
    store = own_store("rest")
    cache = f"rest <url>http://127.0.0.1:{store.port}/a b/{TEMPLATE}</url><use_redirects>true</use_redirects>"
    path = config(tmp_path, cache)
    seed(path, "-z", "1,1")
    store.order("log")
    server = Server(build, path, tmp_path)
    try:
        answer = server.get(tile(1, 1, 0))
        where = f"http://127.0.0.1:{store.port}/a+b/world/{GRID}/1/1/1.png"
        assert (answer.status, answer.header("Location")) == (302, where), (answer.status, answer.body)
        assert json.loads(store.order("log")) == []
        with urllib.request.urlopen(where, timeout=patience(30)) as found:
            assert found.read(4) == b"\x89PNG"
        assert server.get("/", MAP.replace("2048", "512")).status == 200
        assert server.get(tile(1, 1, 0, "same")).status == 200
    finally:
        server.stop()


def test_check_asks_the_store(tmp_path, own_store):
    """`mapcache check --connect` reads a tile: a secret that the store does not take is told before anybody is served."""
    store = own_store("s3")
    cache = f"s3 <url>http://127.0.0.1:{store.port}/b/{TEMPLATE}</url>{KEYS['s3']}"
    path = config(tmp_path, cache)

    def check(*options):
        done = subprocess.run([BUILD / "bin/mapcache", "check", *options, path], capture_output=True, text=True, timeout=patience(60), check=False)
        return done.returncode, done.stdout

    assert check("--connect")[0] == 0
    assert len(json.loads(store.order("log"))) == 1
    path.write_text(path.read_text().replace(SECRET, "secret-of-nobody"))
    status, said = check("--connect")
    assert status == 2 and "SignatureDoesNotMatch" in said and "secret-of-nobody" not in said, said
    assert check()[0] == 0  # without it nobody is asked

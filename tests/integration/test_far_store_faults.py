"""Stores on servers that do what they should not, by a table: each store with each fault. Never a wrong tile, never a render for a tile
that may be there, an error with the cache's name in the log, no secret anywhere, and as before when the fault is over."""
import os
import pathlib
import socket
import threading

import pytest
from conftest import GRID, wait_until
from fastcgi import Server
from http_stores import KEYS, OwnStore
from origin import Origin
from postgres import PASSWORD, Postgres
from store_server import AZURE_KEY, SECRET
from stores import Memcached, Redis

BUILD = pathlib.Path(os.environ.get("MAPCACHE_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build" / "release"))
HTTP = ("rest", "s3", "azure", "google")
TEMPLATE = "{tileset}/{grid}/{z}/{x}/{y}.{ext}"
TILE = f"/wmts/1.0.0/world/default/{GRID}/1/0/0.png"
SECRETS = (SECRET, AZURE_KEY, PASSWORD, "sesame", "mellon")
# What store_server.py is ordered: for which kinds, what a client may be told, what the log says.
ORDERS = {
    "skew/7200": (("s3", "azure", "google"), {502}, "clock"),
    "fail/401/100000/Unauthorized": (HTTP, {502}, "refuses access"),
    "fail/403/100000/AccessDenied": (HTTP, {502}, "refuses access"),
    "fail/404/100000/NoSuchBucket": (("s3", "google"), {502}, "NoSuchBucket"),
    "fail/404/100000/ContainerNotFound": (("azure",), {502}, "ContainerNotFound"),
    "fail/400/100000/Nonsense": (HTTP, {502}, "400"),
    "fail/301/100000/PermanentRedirect": (HTTP, {502}, "301"),
    "fail/503/100000/SlowDown": (HTTP, {503}, "503"),
    "fail/429/100000/TooManyRequests": (HTTP, {503}, "429"),
    "fail/500/100000/InternalError": (HTTP, {502, 503}, "500"),
    "half/100000": (HTTP, {502, 503}, ""),
    "unframed/100000": (HTTP, {502, 503}, ""),
    "damaged/100000": (("azure", "google"), {502}, "check sum"),
    "html/100000": (HTTP, {502}, "a page in place of a tile"),
    "stall/100000": (HTTP, {503, 504}, ""),
}


def write_config(folder, origin, cache, name="mapcache"):
    path = folder / f"{name}.xml"
    path.write_text(f"""<mapcache>
  <source name="pattern" type="wms"><getmap><params><FORMAT>image/png</FORMAT><LAYERS>pattern</LAYERS></params></getmap>
    <http><url>{origin.url("/pattern?")}</url></http></source>
  <cache name="tiles of maps" {cache}</cache>
  <tileset name="world"><source>pattern</source><cache>tiles of maps</cache><grid>{GRID}</grid><format>PNG</format><metatile>2 2</metatile></tileset>
  <service type="wmts" enabled="true"/><lock_dir>{folder}</lock_dir>
</mapcache>
""")
    return path


@pytest.fixture
def origin():
    with Origin() as running:
        yield running


@pytest.fixture(scope="module", params=HTTP)
def web(request, tmp_path_factory):
    """A server for all faults of a kind, each with names of its own."""
    store = OwnStore(request.param, tmp_path_factory.mktemp(request.param))
    store.kind = request.param
    yield store
    store.stop()


def expect_error(server, statuses, text):
    answer = server.get(TILE)
    log = server.program.log()
    assert answer.status in statuses, (answer.status, answer.body, log[-3000:])
    assert 'cache "tiles of maps"' in log and text in log, log[-3000:]
    for secret in SECRETS:
        assert secret.encode() not in answer.body and secret not in log
    assert b"127.0.0.1" not in answer.body
    return answer


@pytest.mark.parametrize("order", sorted(ORDERS))
def test_stores_behind_http(folder, origin, web, order):
    kinds, statuses, text = ORDERS[order]
    if web.kind not in kinds:
        return
    name = order.replace("/", "-")
    over = "fail/200/0" if order.startswith("fail") else order.split("/")[0] + "/0"
    cache = (f'type="{web.kind}"><url>http://127.0.0.1:{web.port}/c/{name}/{TEMPLATE}</url><timeout>1</timeout><busy_retries>0</busy_retries>'
             + KEYS[web.kind])
    server = Server(BUILD, write_config(folder, origin, cache), folder)
    try:
        kept = server.get(TILE)
        assert kept.status == 200, kept.body
        asked = len(origin.requests())
        web.order(order)
        expect_error(server, statuses, text)
        web.order(over)
        wait_until(lambda: server.get(TILE).status == 200, "the tile again")
        assert server.get(TILE).body == kept.body and len(origin.requests()) == asked
    finally:
        web.order(over)
        server.stop()


@pytest.mark.parametrize("kind", HTTP)
def test_a_404_with_html_is_an_absent_tile_only_of_a_web_server(folder, origin, kind):
    """Those who speak a protocol say in it that there is no tile; a page says so too, as proxies write them, and is a miss as well."""
    store = OwnStore(kind, folder)
    cache = f'type="{kind}"><url>http://127.0.0.1:{store.port}/c/{TEMPLATE}</url>{KEYS[kind]}'
    server = Server(BUILD, write_config(folder, origin, cache), folder)
    try:
        answer = server.get(TILE)
        assert answer.status == 200 and len(origin.requests()) == 1
        assert server.get(TILE).body == answer.body and len(origin.requests()) == 1
    finally:
        server.stop()
        store.stop()


WRONG = {
    "s3": (SECRET, "mellon-of-s3"), "azure": (AZURE_KEY, "bWVsbG9u"), "google": (SECRET, "mellon-of-google"),
}


@pytest.mark.parametrize("kind", sorted(WRONG) + ["redis", "postgresql"])
def test_wrong_credentials(folder, origin, kind):
    if kind == "redis":
        store, cache = Redis(folder, "--requirepass", "sesame"), None
        cache = store.cache("<password>mellon</password>")
    elif kind == "postgresql":
        store = Postgres()
        store.stop = store.destroy
        cache = f'type="postgresql"><connection>{store.connection()}</connection>'.replace(PASSWORD, "mellon")
    else:
        store = OwnStore(kind, folder)
        cache = f'type="{kind}"><url>http://127.0.0.1:{store.port}/c/{TEMPLATE}</url>{KEYS[kind].replace(*WRONG[kind])}'
    server = Server(BUILD, write_config(folder, origin, cache), folder)
    try:
        expect_error(server, {502, 503}, "")
        assert "mellon" not in server.program.log() and not origin.requests()
    finally:
        server.stop()
        store.stop()


class Liar:
    """Answers all that it is sent by the same bytes, and then ends the connection or stays silent."""

    def __init__(self, answer, stays):
        self.listener, self.kept = socket.create_server(("127.0.0.1", 0)), []
        self.port = self.listener.getsockname()[1]

        def lie():
            try:
                while True:
                    line, _ = self.listener.accept()
                    line.recv(65536)
                    line.sendall(answer)
                    self.kept.append(line) if stays else line.close()
            except OSError:
                pass

        self.thread = threading.Thread(target=lie, daemon=True)
        self.thread.start()

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()
        for line in self.kept:
            line.close()


def cache_at(kind, port):
    if kind == "memcache":
        return f'type="memcache"><server><host>127.0.0.1</host><port>{port}</port></server><timeout>1</timeout>'
    if kind == "redis":
        return f'type="redis"><host>127.0.0.1</host><port>{port}</port><timeout>1</timeout>'
    if kind == "postgresql":
        return (f"type=\"postgresql\"><connection>host=127.0.0.1 port={port} user=mapcache password={SECRETS[3]} dbname=postgres connect_timeout=2"
                "</connection>")
    return f'type="{kind}"><url>http://127.0.0.1:{port}/c/{TEMPLATE}</url><timeout>1</timeout><busy_retries>0</busy_retries>{KEYS[kind]}'


FAR = ("memcache", "redis", "postgresql", *HTTP)
# What servers of other protocols say at first, and answers that begin well.
LIES = {
    "http": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    "ssh": b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n",
    "tls": b"\x15\x03\x01\x00\x02\x02\x46",
    "redis": b"-ERR unknown command 'GET', with args beginning with: \r\n",
    "zeros": bytes(4096),
    "nothing": b"",
    "half a value of redis": b"*1\r\n$5000\r\n\x89PNG\r\n\x1a\n",
    "half a value of memcached": f"VALUE world/{GRID}/1/1/0/png 0 5000\r\n".encode() + b"\x89PNG\r\n\x1a\n",
    "half a word of postgresql": b"R\0\0\0\x08\0\0\0\0S\0\0",
    "half a tile": b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 5000\r\n\r\n\x89PNG\r\n\x1a\n",
}


# Half an answer ends with the connection, or is followed by nothing.
TOLD = [(lie, stays) for lie in sorted(LIES) for stays in ((False, True) if lie.startswith(("half", "nothing")) else (False,))]


@pytest.mark.parametrize("lie, stays", TOLD, ids=[lie + (" and silence" if stays else "") for lie, stays in TOLD])
@pytest.mark.parametrize("kind", FAR)
def test_servers_of_another_protocol_and_half_answers(folder, origin, kind, lie, stays):
    liar = Liar(LIES[lie], stays)
    server = Server(BUILD, write_config(folder, origin, cache_at(kind, liar.port)), folder)
    try:
        answer = expect_error(server, {502, 503, 504}, "")
        assert b"PNG" not in answer.body and not origin.requests()
    finally:
        server.stop()
        liar.stop()


@pytest.mark.parametrize("kind", ["memcache", "redis"])
def test_values_of_others_are_no_tiles(folder, origin, kind):
    """What stands under the key is no tile with its time."""
    store = {"memcache": Memcached, "redis": Redis}[kind](folder)
    server = Server(BUILD, write_config(folder, origin, store.cache()), folder)
    try:
        assert server.get(TILE).status == 200
        if kind == "redis":
            for key in store.ask("KEYS", "*").split():
                store.ask("SET", key, "something else, and no tile")
        else:
            key = f"world/{GRID}/1/1/0/png"
            with socket.create_connection(("127.0.0.1", store.port)) as line:
                line.sendall(f"set {key} 0 0 27\r\nsomething else, and no tile\r\n".encode())
                assert line.recv(100) == b"STORED\r\n"
        asked = len(origin.requests())
        answer = expect_error(server, {500, 502}, "")
        assert b"something" not in answer.body and len(origin.requests()) == asked
    finally:
        server.stop()
        store.stop()

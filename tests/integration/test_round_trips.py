"""How often a map of 64 tiles goes to its store and back: through a line that counts how often the program speaks after it has been answered."""
import contextlib
import json
import socket
import threading

import pytest
from conftest import GRID
from fastcgi import Server
from origin import Origin
from postgres import PASSWORD, Postgres
from stores import Memcached, Redis

WORLD = "-20037508.342789248,-20037508.342789248,20037508.342789248,20037508.342789248"
MAP = f"SERVICE=WMS&REQUEST=GetMap&LAYERS=world&SRS=EPSG:3857&BBOX={WORLD}&WIDTH=2048&HEIGHT=2048&FORMAT=image/png"


class CountingLine:
    """To a server of the loopback, at a port of its own. `turns`: requests that have waited for the answer to the one before, of all connections."""

    def __init__(self, port):
        self.server, self.turns, self.lock = port, 0, threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, server, answered = self.listener.accept()[0], socket.create_connection(("127.0.0.1", self.server)), [True]
                for one, other, asks in ((client, server, True), (server, client, False)):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    threading.Thread(target=self._copy, args=(one, other, answered, asks), daemon=True).start()

    def _copy(self, one, other, answered, asks):
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 20):
                with self.lock:
                    self.turns += asks and answered[0]
                    answered[0] = not asks
                other.sendall(data)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@contextlib.contextmanager
def running_store(kind, folder):
    """The line, and what stands in <cache>."""
    with contextlib.ExitStack() as stack:
        if kind == "postgresql":
            server = stack.enter_context(Postgres())
        else:
            server = stack.enter_context(contextlib.closing({"memcache": Memcached, "redis": Redis}[kind](folder)))
        line = stack.enter_context(contextlib.closing(CountingLine(server.port)))
        at = f"<host>127.0.0.1</host><port>{line.port}</port>"
        yield line, {"memcache": f'type="memcache"><server>{at}</server>', "redis": f'type="redis">{at}',
                     "postgresql": f"type=\"postgresql\"><connection>host=127.0.0.1 port={line.port} dbname=postgres user=mapcache password='{PASSWORD}'</connection>"}[kind]


@pytest.mark.parametrize("kind", ["memcache", "redis", "postgresql"])
def test_a_map_of_64_tiles_is_one_round_trip(build, folder, kind):
    with Origin() as origin, running_store(kind, folder) as (line, cache):
        path = folder / "mapcache.xml"
        path.write_text(f"""<mapcache>
  <source name="pattern" type="wms"><getmap><params><FORMAT>image/png</FORMAT><LAYERS>pattern</LAYERS></params></getmap>
    <http><url>{origin.url("/pattern?")}</url></http></source>
  <cache name="store" {cache}</cache>
  <tileset name="world"><source>pattern</source><cache>store</cache><grid>{GRID}</grid><format>PNG</format><metatile>8 8</metatile></tileset>
  <service type="wms" enabled="true"><format>PNG</format></service><service type="status" enabled="true"/>
  <lock_dir>{folder}</lock_dir>
</mapcache>
""")
        server = Server(build, path, folder)
        try:
            drawn = server.get("/", MAP)
            assert drawn.status == 200 and len(origin.requests()) == 1
            turns = []
            for _ in range(4):  # the first one prepares, on connections that rendering did not need
                before = line.turns
                again = server.get("/", MAP)
                assert again.status == 200 and again.body == drawn.body
                turns.append(line.turns - before)
            hits = json.loads(server.get("/status").body)["counters"]["cache_hits_total"]
            assert turns[1:] == [1, 1, 1] and hits >= 4 * 64 and len(origin.requests()) == 1, (turns, hits)
        finally:
            server.stop()

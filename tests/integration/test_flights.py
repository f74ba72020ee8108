"""One renderer for each metatile: across the threads and processes of a server, and when the one that renders is killed."""
import http.client
import http.server
import os
import pathlib
import re
import signal
import threading
import time

import pytest
from conftest import fetch, wait_until
from lifecycle import source, stored, tile, tileset, write
from origin import Origin
from test_fcgi import Raw, whole_request

CLIENTS = 200
PATHS = [tile("base", 4, x, y) for x in range(8, 12) for y in range(4, 8)]  # one metatile
MANY_THREADS = """
StartServers 4
ServerLimit 4
ThreadsPerChild 60
MaxRequestWorkers 240
"""


@pytest.fixture
def origin():
    with Origin() as running:
        yield running


def configure(folder, origin, how="hold/it", **options):
    """With an origin that answers after origin.release("it")."""
    return write(folder, source("pattern", origin.url(f"/{how}/pattern?")),
                 tileset("base", metatile="4 4"), tileset("small"), **options)


class Clients:
    """So many clients at the same time, each with one path."""

    def __init__(self, port, paths):
        self.replies = [None] * len(paths)
        self.gate = threading.Barrier(len(paths))
        self.threads = [threading.Thread(target=self._ask, args=(index, port, path)) for index, path in enumerate(paths)]
        for thread in self.threads:
            thread.start()

    def _ask(self, index, port, path):
        self.gate.wait()
        self.replies[index] = fetch(port, path)

    def wait(self):
        for thread in self.threads:
            thread.join()
        return self


def check_one_render(origin, clients, folder):
    assert [reply.status for reply in clients.replies] == [200] * CLIENTS
    assert len(origin.requests()) == 1
    bodies = {}
    for index, reply in enumerate(clients.replies):
        bodies.setdefault(PATHS[index % len(PATHS)], set()).add(reply.body)
    assert len(bodies) == len(PATHS) and all(len(different) == 1 for different in bodies.values())
    assert len(set.union(*bodies.values())) > 12
    assert stored(folder, "base") == sorted(f"4/{x}/{y}.png" for x in range(8, 12) for y in range(4, 8))


def check_hits_meanwhile(port, folder):
    """While the origin is waited for."""
    for _ in range(40):
        assert fetch(port, tile("small", 1, 0, 0)).status == 200
    assert not stored(folder, "base")


def test_two_hundred_clients_of_a_cold_metatile_are_one_request_in_httpd(apache, folder, origin):
    config = configure(folder, origin)
    web = apache(MANY_THREADS + f"MapCacheAlias /mc {config}\n", "event")
    (folder / "tiles/small/1/0").mkdir(parents=True)
    (folder / "tiles/small/1/0/0.png").write_bytes(b"\x89PNG\r\n\x1a\n and no more")
    for place in (folder / "tiles").rglob("*"):
        place.chmod(0o777)
    (folder / "tiles").chmod(0o777)
    clients = Clients(web.port, [PATHS[i % len(PATHS)] for i in range(CLIENTS)])
    wait_until(lambda: len(origin.requests()) == 1, "the origin is asked")
    check_hits_meanwhile(web.port, folder)
    origin.release("it")
    check_one_render(origin, clients.wait(), folder)


@pytest.mark.parametrize("mpm, more", [("worker", MANY_THREADS), ("prefork", "StartServers 60\nMaxRequestWorkers 60\n"
                                                                   "MinSpareServers 60\nMaxSpareServers 61\n")])
def test_other_process_models(apache, folder, origin, mpm, more):
    clients = 50
    config = configure(folder, origin, "late/1000")
    web = apache(more + f"MapCacheAlias /mc {config}\n", mpm)
    done = Clients(web.port, [PATHS[i % len(PATHS)] for i in range(clients)]).wait()
    assert [reply.status for reply in done.replies] == [200] * clients
    assert len(origin.requests()) == 1


def test_two_hundred_clients_of_a_cold_metatile_are_one_request_in_fastcgi(fcgi, nginx, folder, origin):
    config = configure(folder, origin)
    (folder / "tiles/small/1/0").mkdir(parents=True)
    (folder / "tiles/small/1/0/0.png").write_bytes(b"\x89PNG\r\n\x1a\n and no more")
    program = fcgi(environment={"MAPCACHE_CONFIG_FILE": str(config)})
    web = nginx(program.address)
    clients = Clients(web.port, [PATHS[i % len(PATHS)] for i in range(CLIENTS)])
    wait_until(lambda: len(origin.requests()) == 1, "the origin is asked")
    check_hits_meanwhile(web.port, folder)
    origin.release("it")
    check_one_render(origin, clients.wait(), folder)


def child_that_talks_to(port, parent):
    """The child of a process that has a connection to this port of ours."""
    inodes = set()
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[2].split(":")[1], 16) == port and fields[3] == "01":
            inodes.add(f"socket:[{fields[9]}]")
    children = pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    for child in children:
        for descriptor in pathlib.Path(f"/proc/{child}/fd").iterdir():
            try:
                if os.readlink(descriptor) in inodes:
                    return int(child)
            except OSError:
                pass
    return None


@pytest.mark.parametrize("mpm", ["prefork", "event"])
def test_a_child_killed_while_it_renders_blocks_nobody(apache, folder, origin, mpm):
    web = apache(f"MapCacheAlias /mc {configure(folder, origin)}\n", mpm)
    lost = []

    def ask_and_lose():
        try:
            lost.append(fetch(web.port, PATHS[0]))
        except (OSError, http.client.HTTPException) as failure:
            lost.append(failure)

    holder = threading.Thread(target=ask_and_lose)
    holder.start()
    wait_until(lambda: len(origin.requests()) == 1, "the origin is asked")
    victim = child_that_talks_to(origin.port, web.program.process.pid)
    assert victim is not None
    replies = []
    waiting = [threading.Thread(target=lambda path=path: replies.append(fetch(web.port, path)))
               for path in (PATHS[1], PATHS[2])]
    if mpm == "prefork":  # these wait in other children; in event they might be in the victim
        for thread in waiting:
            thread.start()
        time.sleep(0.4)
    os.kill(victim, signal.SIGKILL)
    origin.release("it")
    if mpm == "event":
        for thread in waiting:
            thread.start()
    for thread in (*waiting, holder):
        thread.join()
    assert isinstance(lost[0], Exception)
    assert [reply.status for reply in replies] == [200, 200]  # nobody has waited for a lock of the dead in vain
    assert len(origin.requests()) == 2


def test_a_killed_fastcgi_process_blocks_nobody(fcgi, nginx, folder, origin):
    config = {"MAPCACHE_CONFIG_FILE": str(configure(folder, origin))}
    victim, survivor = fcgi(environment=config), fcgi(environment=config)
    front = nginx(victim.address)
    lost = threading.Thread(target=lambda: front.get(PATHS[0]))
    lost.start()
    wait_until(lambda: len(origin.requests()) == 1, "the origin is asked")
    os.kill(victim.process.pid, signal.SIGKILL)
    lost.join()
    origin.release("it")
    raw = Raw(survivor.address)
    raw.send(whole_request(PATHS[1][len("/mc"):]))
    head, body = raw.response()
    assert "Status:" not in head.split() and body.startswith(b"\x89PNG")
    assert len(origin.requests()) == 2


def test_waiters_share_an_error_and_do_not_ask_again(apache, folder, origin):
    config = write(folder, source("pattern", origin.url("/late/3000/status/500?")), tileset("base", metatile="4 4"))
    web = apache(MANY_THREADS + f"MapCacheAlias /mc {config}\n")
    done = Clients(web.port, [PATHS[i % len(PATHS)] for i in range(60)]).wait()
    assert {reply.status for reply in done.replies} == {502}
    assert 1 <= len(origin.requests()) <= 12  # one in each of the four processes, but for clients that come late
    assert stored(folder, "base") == []


def test_waiters_give_up_after_the_locks_timeout(apache, folder, origin):
    config = configure(folder, origin)
    config.write_text(config.read_text().replace("<timeout>20</timeout>", "<timeout>1</timeout>"))
    web = apache(f"MapCacheAlias /mc {config}\n")
    holder = threading.Thread(target=lambda: fetch(web.port, PATHS[0]))
    holder.start()
    wait_until(lambda: len(origin.requests()) == 1, "the origin is asked")
    begun = time.monotonic()
    replies = Clients(web.port, PATHS[1:5]).wait().replies
    assert {reply.status for reply in replies} == {503}
    assert 0.9 < time.monotonic() - begun
    origin.release("it")
    holder.join()
    assert len(origin.requests()) == 1 and len(stored(folder, "base")) == 16


def test_a_part_of_a_metatile_is_no_reason_for_empty_tiles(fcgi, nginx, folder, origin):
    """A renderer dies between two tiles. Who waits elsewhere finds his tile there, or has the metatile rendered; nobody gets an empty tile."""
    path = configure(folder, origin)
    path.write_text(path.read_text().replace("</mapcache>", '<service type="metrics" enabled="true"/></mapcache>'))
    config = {"MAPCACHE_CONFIG_FILE": str(path)}
    victim, survivor = fcgi(environment=config), fcgi(environment=config)
    front = nginx(victim.address)
    lost = threading.Thread(target=lambda: front.get(PATHS[0]))
    lost.start()
    wait_until(lambda: len(origin.requests()) == 1, "the origin is asked")

    def ask(address):
        raw = Raw(survivor.address)
        raw.send(whole_request(address))
        return raw

    def misses():
        text = ask("/metrics").response()[1].decode()
        return int(re.search(r"^mapcache_cache_misses_total (\d+)", text, re.MULTILINE)[1])

    waiting = []
    for count, address in enumerate(PATHS, 1):
        waiting.append(ask(address[len("/mc"):]))
        wait_until(lambda count=count: misses() >= count, "the tile is not there, the lock is waited for")
    for x, y in ((x, y) for x in range(8, 12) for y in range(4, 8) if (x, y) not in ((9, 5), (11, 7))):
        place = folder / f"tiles/base/4/{x}/{y}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"\x89PNG\r\n\x1a\n of the dead")
    os.kill(victim.process.pid, signal.SIGKILL)
    lost.join()
    origin.release("it")
    bodies = dict(zip(PATHS, (raw.response()[1] for raw in waiting)))
    drawn = [body for body in bodies.values() if not body.endswith(b" of the dead")]
    assert len(drawn) >= 2 and len(origin.requests()) == 2
    for address in (tile("base", 4, 9, 5), tile("base", 4, 11, 7)):
        raw = ask(address[len("/mc"):])
        assert raw.response()[1] == bodies[address] and b"tRNS" not in bodies[address], "an empty tile"


class Forgetful(http.server.BaseHTTPRequestHandler):
    """A store that takes every tile and has none a moment later, as one that evicts or expires them."""
    protocol_version = "HTTP/1.1"

    def answer(self, status):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.met.append(self.command)
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self):
        self.answer(404)

    def do_PUT(self):
        self.answer(201)

    def log_message(self, *arguments):
        pass


def test_who_waits_gets_the_tile_also_where_the_store_has_lost_it(fcgi, nginx, folder, origin):
    waiting = 20
    store = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Forgetful)
    store.met = []
    threading.Thread(target=store.serve_forever, daemon=True).start()
    try:
        cache = f'<cache name="away" type="rest"><url>http://127.0.0.1:{store.server_port}/{{z}}/{{x}}/{{y}}.{{ext}}</url></cache>'
        config = write(folder, source("pattern", origin.url("/hold/it/pattern?")), cache, tileset("base", metatile="4 4").replace("<cache>disk<", "<cache>away<"))
        web = nginx(fcgi(environment={"MAPCACHE_CONFIG_FILE": str(config)}).address)
        clients = Clients(web.port, [PATHS[i % len(PATHS)] for i in range(waiting)])
        wait_until(lambda: store.met.count("GET") > waiting, "all have looked into the store, and the one who renders once more")
        origin.release("it")
        clients.wait()
    finally:
        store.shutdown()
        store.server_close()
    assert [reply.status for reply in clients.replies] == [200] * waiting and "PUT" in store.met
    bodies = [{reply.body for reply in clients.replies[i::len(PATHS)]} for i in range(len(PATHS))]
    assert all(len(different) == 1 for different in bodies) and len(set.union(*bodies)) > 12

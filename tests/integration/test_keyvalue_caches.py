"""Tiles in memcached and redis through the whole program: what Debian's MapCache wrote and what we wrote, few round trips,
servers that are stalled, killed, closed to us or no such servers."""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import signal
import socket
import sqlite3
import subprocess
import threading

import pytest
from conftest import GRID, wait_until
from drop_in import PEER_MODULE, PEER_SEED, pixels
from fastcgi import Client, Server
from http_stores import make_certificate
from origin import Origin
from patience import patience
from ports import free_port
from stores import Memcached, Redis

BUILD = pathlib.Path(os.environ.get("MAPCACHE_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build" / "release"))
WORLD = "-20037508.342789248,-20037508.342789248,20037508.342789248,20037508.342789248"
MAP = f"SERVICE=WMS&REQUEST=GetMap&LAYERS=%s&SRS=EPSG:3857&BBOX={WORLD}&WIDTH=2048&HEIGHT=2048&FORMAT=image/png"
KINDS = {"memcache": Memcached, "redis": Redis}


@pytest.fixture(params=sorted(KINDS))
def store(request, folder):
    running = KINDS[request.param](folder)
    yield running
    running.stop()


@pytest.fixture
def origin():
    with Origin() as running:
        yield running


@pytest.fixture
def started(build):
    """started(folder, config, ...): the program; it ends with the test."""
    running = []

    def start(folder, config, **options):
        running.append(Server(build, config, folder, **options))
        return running[-1]

    yield start
    for server in running:
        server.stop()


def config(folder, cache, source, name="mapcache", tileset="", extra=""):
    """The tileset `world` on the cache, `same` in a file beside it."""
    path = folder / f"{name}.xml"
    link = "<source>pattern</source>" if source else ""
    path.write_text(f"""<mapcache>
  <source name="pattern" type="wms"><getmap><params><FORMAT>image/png</FORMAT><LAYERS>pattern</LAYERS></params></getmap>
    <http><url>{source or "http://127.0.0.1:9/"}</url></http></source>
  <cache name="store" {cache}</cache>
  <cache name="file" type="sqlite3"><dbfile>{folder}/{name}.sqlite3</dbfile></cache>
  <tileset name="world">{link}<cache>store</cache><grid>{GRID}</grid><format>PNG</format><metatile>4 4</metatile>{tileset}</tileset>
  <tileset name="same"><source>pattern</source><cache>file</cache><grid>{GRID}</grid><format>PNG</format><metatile>4 4</metatile></tileset>
  <service type="wmts" enabled="true"/>
  <service type="wms" enabled="true"><format>PNG</format></service>
  <lock_dir>{folder}</lock_dir>
  {extra}
</mapcache>
""")
    return path


def seed(path, tileset, *options, program=BUILD / "bin" / "mapcache_seed", environment=None):
    done = subprocess.run([program, "-c", path, "-t", tileset, "-g", GRID, *options], capture_output=True, text=True,
                          timeout=patience(100), env={**os.environ, **(environment or {})})
    assert done.returncode == 0, done.stdout + done.stderr


def tile(tileset, z, x, y):
    return f"/wmts/1.0.0/{tileset}/default/{GRID}/{z}/{y}/{x}.png"


PLACES = [(0, 0, 0), (1, 1, 0), (2, 1, 3), (2, 3, 0)]


def test_seeders_and_servers_share_a_store(folder, store, origin, started):
    path = config(folder, store.cache(), origin.url("/pattern?"))
    seed(path, "world", "-z", "0,4", "-n", "3")
    seed(path, "same", "-z", "0,4")
    assert store.count() == 341
    reader = started(folder, config(folder, store.cache(), ""))
    for z, x, y in PLACES + [(4, 9, 14)]:
        answer = reader.get(tile("world", z, x, y))
        assert answer.status == 200 and answer.body == reader.get(tile("same", z, x, y)).body
    before = store.calls("mget") if store.kind == "redis" else None
    drawn = reader.get("/", MAP % "world")
    assert drawn.status == 200 and drawn.body == reader.get("/", MAP % "same").body
    if before is not None:
        assert store.calls("mget") == before + 1 and store.calls("get") == 0
    seed(path, "world", "-m", "delete", "-z", "2,4")
    assert store.count() == 5
    assert reader.get(tile("world", 4, 9, 14)).body != answer.body  # nothing to see


def test_a_redis_is_counted_copied_and_emptied_as_a_whole(folder, origin):
    """By a list of its keys: nobody has to say which levels there are, and what other programs keep there stays."""
    store = Redis(folder)
    try:
        path = config(folder, store.cache("<expires>0</expires>"), origin.url("/pattern?"))
        seed(path, "world", "-z", "0,3")
        seed(path, "world", "-z", "6,6", "-e", "0,0,1000000,1000000")
        strangers = ["world", f"world/{GRID}/3/1/2", f"world/{GRID}/3/01/2/png", f"world/{GRID}/99/1/2/png", "worlds/x"]
        for key in strangers:
            store.ask("SET", key, "theirs")
        stored = store.count() - len(strangers)
        assert stored >= 85 + 16

        def run(command, *words):
            done = subprocess.run([BUILD / "bin" / "mapcache", command, "-c", path, *words], capture_output=True, text=True, timeout=patience(100),
                                  stdin=subprocess.DEVNULL)
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        levels = {level["level"]: level["nb_tiles_in_region"]["cached_in_level"]
                  for level in json.loads(run("detail", "--json", "-t", "world"))["zoom_levels"]}
        assert [levels[z] for z in range(7)] == [1, 4, 16, 64, 0, 0, stored - 85] and sum(levels.values()) == stored
        run("copy", "--from", "store", "--to", "file", "-t", "world", "--verify")
        with contextlib.closing(sqlite3.connect(folder / "mapcache.sqlite3")) as database:
            assert database.execute("SELECT count(*) FROM tiles").fetchone() == (stored,)
        run("purge", "-t", "world", "--yes")
        assert sorted(store.ask("KEYS", "*").split()) == sorted(strangers)
    finally:
        store.stop()


def peer_writes(store, path):
    """Debian's seeder. At its end, with all tiles stored, both of its back ends end the program by a signal."""
    subprocess.run([PEER_SEED, "-c", path, "-t", "world", "-g", GRID, "-z", "0,2"], capture_output=True, timeout=patience(100), check=False)
    assert store.count() == 21


@pytest.mark.parametrize("blank", ["", "<detect_blank>true</detect_blank>"])
def test_what_mapcache_stored_is_served(folder, store, origin, started, blank):
    path = config(folder, store.cache(blank), origin.url("/pattern?"))
    peer_writes(store, path)
    seed(path, "same", "-z", "0,2")
    reader = started(folder, config(folder, store.cache(blank), ""))
    for z, x, y in PLACES:
        answer = reader.get(tile("world", z, x, y))
        assert answer.status == 200 and answer.header("Last-Modified"), answer.body
        assert (pixels(answer.body) == pixels(reader.get(tile("same", z, x, y)).body)).all()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_what_we_stored_mapcache_serves(folder, apache, origin, kind):
    """By Debian's module, which asks the origin for nothing."""
    with contextlib.closing(KINDS[kind](folder)) as store:
        path = config(folder, store.cache(), origin.url("/pattern?"))
        seed(path, "world", "-z", "0,2")
        seed(path, "same", "-z", "0,2")
        folder.chmod(0o755)
        theirs = apache(f"LoadModule mapcache_module {PEER_MODULE}\nMapCacheAlias /mc {path}", module=False, ours=False)
        asked = len(origin.requests())
        for z, x, y in PLACES:
            answer = theirs.get("/mc" + tile("world", z, x, y))
            assert answer.status == 200, answer.body
            assert (pixels(answer.body) == pixels(theirs.get("/mc" + tile("same", z, x, y)).body)).all()
        assert len(origin.requests()) == asked


def check_away(answer, store):
    assert answer.status == 503 and answer.header("Retry-After"), (answer.status, answer.body)
    assert b"127.0.0.1" not in answer.body and str(store.port).encode() not in answer.body, answer.body


@pytest.mark.parametrize("command", ["purge", "seed"])
def test_a_dry_run_tells_a_store_that_is_away(command, folder, store, origin):
    path = config(folder, store.cache("<timeout>0.5</timeout>"), origin.url("/pattern?"))
    words = [BUILD / "bin/mapcache", command, "-c", path, "-t", "world", "-z", "0,2", "--dry-run"]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=patience(60), stdin=subprocess.DEVNULL)
    assert ended.returncode == 0 and "looked at are stored" in ended.stdout, ended
    store.kill()
    ended = subprocess.run(words, capture_output=True, text=True, timeout=patience(60), stdin=subprocess.DEVNULL)
    assert ended.returncode == 1 and "stored" not in ended.stdout, ended
    assert str(store.port) in ended.stderr and 'cache "' in ended.stderr, ended.stderr


def test_a_store_that_is_away_is_no_empty_store(folder, store, origin, started):
    """Stalled: each answer in time, and no render for a tile that may be there. Killed and started: served again."""
    server = started(folder, config(folder, store.cache("<timeout>0.5</timeout>"), origin.url("/pattern?"),
                                    extra='<service type="ready" enabled="true"/><service type="status" enabled="true"/>'))
    assert json.loads(server.get("/ready").body).items() >= {"status": "ready", "reload_failed": False, "away": [], "stores": []}.items()
    kept, there = server.get(tile("world", 1, 0, 0)), server.get(tile("same", 1, 0, 0))
    assert kept.status == there.status == 200
    asked = len(origin.requests())
    store.stall()
    check_away(server.get(tile("world", 1, 0, 0)), store)
    resting = server.get(tile("world", 1, 0, 0))
    check_away(resting, store)
    assert server.get(tile("same", 1, 0, 0)).body == there.body  # all else is served
    check_away(server.get("/", MAP % "world"), store)
    name = {"memcache": "memcached", "redis": "redis"}[store.kind]
    assert json.loads(server.get("/ready").body)["away"] == [f"{name} at 127.0.0.1:{store.port}"]
    counters = json.loads(server.get("/status").body)["counters"]
    assert counters["remote_errors_total"] >= 1 and counters["remote_rests_total"] >= 1, counters
    assert "no answer in time" in server.program.log() and "is left alone for a while" in server.program.log()
    store.signal(signal.SIGCONT)
    wait_until(lambda: server.get(tile("world", 1, 0, 0)).status == 200, "the tile again")
    assert server.get(tile("world", 1, 0, 0)).body == kept.body
    assert json.loads(server.get("/ready").body)["away"] == []
    assert len(origin.requests()) == asked  # an absent store is not an absent tile
    store.kill()
    check_away(server.get(tile("world", 1, 0, 0)), store)
    store.restart()
    wait_until(lambda: server.get(tile("world", 1, 0, 0)).status == 200, "the tile again")
    assert len(origin.requests()) == asked + 1  # the new store was empty


def test_no_wrong_tile_while_a_store_comes_and_goes(folder, store, origin, started):
    """Clients that never stop asking, a store that is stalled, killed and started: each answer is the tile or 503."""
    server = started(folder, config(folder, store.cache("<timeout>0.3</timeout>"), origin.url("/pattern?"),
                                    extra='<service type="ready" enabled="true"/>'))
    places = [(3, x, y) for x in range(8) for y in range(8)]
    expected = {place: server.get(tile("same", *place)).body for place in places}
    done, statuses, wrong = threading.Event(), set(), []

    def ask(number):
        client, turn = Client(server.address), number
        try:
            while not done.is_set():
                place = places[turn * 13 % len(places)]
                answer = client.get(tile("world", *place).encode())
                statuses.add(answer.status)
                if answer.status == 200 and answer.body != expected[place]:
                    wrong.append(place)
                turn += 1
        finally:
            client.close()

    with concurrent.futures.ThreadPoolExecutor(12) as threads:
        clients = [threads.submit(ask, number) for number in range(12)]
        try:
            for _ in range(3):
                wait_until(lambda: json.loads(server.get("/ready").body)["away"] == [], "the store is there")
                store.stall()
                wait_until(lambda: json.loads(server.get("/ready").body)["away"], "the store is missed")
                store.signal(signal.SIGCONT)
                wait_until(lambda: server.get(tile("world", 3, 1, 1)).status == 200, "a tile")
                store.kill()
                wait_until(lambda: json.loads(server.get("/ready").body)["away"], "the store is missed")
                store.restart()
                wait_until(lambda: server.get(tile("world", 3, 1, 1)).status == 200, "a tile")
        finally:
            done.set()
        for client in clients:
            client.result()
    assert not wrong and statuses == {200, 503}, (wrong[:5], statuses)
    for place in places:
        wait_until(lambda place=place: server.get(tile("world", *place)).body == expected[place], "every tile")


def test_a_restarted_store_costs_no_error(folder, store, origin, started):
    """Kept connections that have ended are replaced."""
    server = started(folder, config(folder, store.cache(), origin.url("/pattern?")))
    assert server.get(tile("world", 1, 0, 0)).status == 200
    store.kill()
    store.restart()
    assert server.get(tile("world", 1, 0, 0)).status == 200


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_server_of_another_protocol_is_no_store(folder, origin, started, kind):
    cache = (f'type="redis"><host>127.0.0.1</host><port>{origin.port}</port>' if kind == "redis" else
             f'type="memcache"><server><host>127.0.0.1</host><port>{origin.port}</port></server>')
    server = started(folder, config(folder, cache + "<timeout>1</timeout>", origin.url("/pattern?")))
    answer = server.get(tile("world", 1, 0, 0))
    assert answer.status == 503 and b"127.0.0.1" not in answer.body
    assert f"cache \"store\" cannot reach its tiles: {'redis' if kind == 'redis' else 'memcached'} at 127.0.0.1:{origin.port}" in server.log()


def test_half_an_answer_is_no_tile(folder, started):
    """The server ends, or says nothing more, in the middle of a tile."""
    for kind, head in (("redis", b"*1\r\n$5000\r\n\x89PNG"), ("memcache", b"VALUE world/GoogleMapsCompatible/1/1/0/png 0 5000\r\n\x89PNG")):
        for stays in (True, False):
            with socket.create_server(("127.0.0.1", 0)) as listener:
                kept, port = [], listener.getsockname()[1]

                def lie():
                    try:
                        while True:
                            line, _ = listener.accept()
                            line.recv(65536)
                            line.sendall(head)
                            kept.append(line) if stays else line.close()
                    except OSError:
                        pass

                threading.Thread(target=lie, daemon=True).start()
                cache = (f'type="redis"><host>127.0.0.1</host><port>{port}</port>' if kind == "redis" else
                         f'type="memcache"><server><host>127.0.0.1</host><port>{port}</port></server>')
                server = started(folder, config(folder, cache + "<timeout>0.3</timeout>", "", name=f"{kind}{stays}"))
                answer = server.get(tile("world", 1, 0, 0))
                assert answer.status == 503 and b"PNG" not in answer.body, (kind, stays, answer.status, answer.body)
                listener.shutdown(socket.SHUT_RDWR)


def test_a_wrong_password_is_named_and_not_told(folder, origin, started):
    with contextlib.closing(Redis(folder, "--requirepass", "sesame")) as store:
        wrong = started(folder, config(folder, store.cache("<password>mellon</password>"), origin.url("/pattern?"), name="wrong"))
        answer = wrong.get(tile("world", 1, 0, 0))
        assert answer.status == 503 and b"mellon" not in answer.body
        assert "lets nobody in: WRONGPASS" in wrong.log() and "mellon" not in wrong.log()
        secret = folder / "secret"
        secret.write_text("sesame\n")
        right = started(folder, config(folder, store.cache(f"<password_file>{secret}</password_file>"), origin.url("/pattern?"), name="right"))
        assert right.get(tile("world", 1, 0, 0)).status == 200


def test_a_tile_that_a_store_does_not_take_is_served_all_the_same(folder, origin, started):
    """Drawn, handed out, and the log says why it is not stored."""
    with contextlib.closing(Redis(folder, "--maxmemory", "1")) as store:
        server = started(folder, config(folder, store.cache(), origin.url("/pattern?")))
        answer = server.get(tile("world", 1, 0, 0))
        assert answer.status == 200 and answer.body.startswith(b"\x89PNG")
        assert "cache \"store\" does not take a tile of" in server.log() and "OOM" in server.log()


def test_expired_tiles_are_gone(folder, store, origin, started):
    server = started(folder, config(folder, store.cache(), origin.url("/pattern?"), tileset="<auto_expire>2</auto_expire>"))
    assert server.get(tile("world", 1, 0, 0)).status == 200
    if store.kind == "redis":
        wait_until(lambda: store.count() == 0, "redis forgets the tiles")
    asked = len(origin.requests())
    wait_until(lambda: server.get(tile("world", 1, 0, 0)).status == 200 and len(origin.requests()) > asked, "drawn again")


def run(*words):
    return subprocess.run([BUILD / "bin" / "mapcache", *words], capture_output=True, text=True, timeout=patience(60), check=False)


def test_a_check_connects(folder, store, origin):
    locker = '<locker type="redis"><host>127.0.0.1</host><port>%d</port></locker>'
    path = config(folder, store.cache(), origin.url("/pattern?"))
    good = run("check", "--connect", path)
    assert good.returncode == 0 and "cannot" not in good.stdout, good.stdout
    seed(path, "world", "-z", "0,2")
    counted = run("detail", "-c", path, "-t", "world", "-z", "0,3")
    assert counted.returncode == 0 and "all               85               21               64" in counted.stdout, counted.stdout + counted.stderr
    path.write_text(path.read_text().replace(f"<lock_dir>{folder}</lock_dir>", locker % origin.port))
    store.stop()
    bad = run("check", "--connect", path)
    assert bad.returncode == 2, bad.stdout
    assert 'cache "store" cannot reach its tiles' in bad.stdout and f"127.0.0.1:{store.port}: Connection refused" in bad.stdout
    assert "the locker: the lock server cannot be used" in bad.stdout and f"redis at 127.0.0.1:{origin.port}" in bad.stdout
    assert run("check", path).returncode == 0


@pytest.fixture
def cluster(folder):
    """Three masters of redis, and a replica of each."""
    nodes = []
    with contextlib.ExitStack() as stack:
        for number in range(6):
            home = folder / f"node{number}"
            home.mkdir()
            nodes.append(stack.enter_context(contextlib.closing(
                Redis(home, "--cluster-enabled", "yes", "--cluster-port", str(free_port()), "--cluster-node-timeout", "1500", "--repl-diskless-sync-delay", "0"))))
        subprocess.run(["redis-cli", "--cluster", "create", *(f"127.0.0.1:{node.port}" for node in nodes), "--cluster-replicas", "1", "--cluster-yes"],
                       check=True, capture_output=True, timeout=patience(60))
        for node in nodes:
            wait_until(lambda node=node: "cluster_state:ok" in node.ask("CLUSTER", "INFO"), "the cluster")
        yield nodes


def is_master(node):
    return "role:master" in node.ask("INFO", "replication")


def test_a_replica_takes_the_place_of_a_killed_master(folder, cluster, origin, started):
    """The first server of the configuration is killed with a third of the tiles: its replica has them, and takes new ones."""
    masters, places = [node for node in cluster if is_master(node)], [(z, x, y) for z in range(4) for x in range(2 ** z) for y in range(2 ** z)]
    dead, others = masters[0], [node for node in cluster if node is not masters[0]]
    servers = "".join(f"<server><host>127.0.0.1</host><port>{node.port}</port></server>" for node in others)
    path = config(folder, f'type="redis"><host>127.0.0.1</host><port>{dead.port}</port><timeout>1</timeout>{servers}', origin.url("/pattern?"))
    seed(path, "world", "-z", "0,3")
    assert dead.count() > 0 and sum(master.count() for master in masters) == len(places)
    for master in masters:  # each replica has all of its master's
        wait_until(lambda master=master: "connected_slaves:1" in master.ask("INFO", "replication") and "state=online" in master.ask("INFO", "replication"), "a replica")
    wait_until(lambda: sum(node.count() for node in cluster) == 2 * len(places), "the replicas have all tiles")
    server = started(folder, path)
    before, asked = {place: server.get(tile("world", *place)).body for place in places}, len(origin.requests())
    dead.kill()

    def all_are_there():
        answers = {place: server.get(tile("world", *place)) for place in places}
        assert {answer.status for answer in answers.values()} <= {200, 503}, {answer.status for answer in answers.values()}
        assert all(answer.body == before[place] for place, answer in answers.items() if answer.status == 200)
        return all(answer.status == 200 for answer in answers.values())

    wait_until(all_are_there, "all tiles again, from the replica")
    assert len(origin.requests()) == asked, "a server that is away is no absent tile"
    assert sum(is_master(node) for node in others) == 3
    seed(path, "world", "-z", "4,4")  # new tiles are stored, also in the slots of the killed one
    assert sum(node.count() for node in others if is_master(node)) == len(places) + 256


def test_wrong_connections_are_told_with_what_to_do(folder):
    """Each as an operator makes it: `check --connect` names the server, and what to look at."""
    def said(cache):
        path = config(folder, cache, "http://127.0.0.1:9/")
        return subprocess.run([BUILD / "bin/mapcache", "check", "--connect", path], capture_output=True, text=True, timeout=patience(60), check=False).stdout

    folder.joinpath("closed").mkdir()
    folder.joinpath("secure").mkdir()
    certificate, key = make_certificate(folder)
    port = free_port()
    secure = Redis(folder / "secure", "--tls-port", str(port), "--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file", certificate,
                   "--tls-auth-clients", "no")
    closed, memcached = Redis(folder / "closed", "--requirepass", "mellon"), Memcached(folder)
    at = 'type="redis"><host>localhost</host><port>{}</port>{}'
    try:
        told = {
            closed.cache(): "NOAUTH Authentication required. (<user> and <password> say who asks)",
            closed.cache("<password>friend</password>"): "lets nobody in: WRONGPASS",
            closed.cache("<tls>true</tls><timeout>0.5</timeout>"): "does it want <tls> at this port?",
            at.format(port, ""): "without an answer: is it a redis without TLS?",
            at.format(port, "<tls>true</tls>"): "<tls_authorities> says who signs it",
            at.format(memcached.port, ""): "this is no answer of a redis: ERROR",
            at.format(memcached.port, "<tls>true</tls>"): "does the server want <tls> at this port?",
            f'type="memcache"><server><host>127.0.0.1</host><port>{closed.port}</port></server>': "this is no answer of a memcached",
        }
        for cache, words in told.items():
            text = said(cache)
            assert words in text and ("localhost:" in text or "127.0.0.1:" in text) and "friend" not in text, (cache, text)
    finally:
        for server in secure, closed, memcached:
            server.stop()

"""One render for all hosts that share a locker: programs on hosts of their own, which have nothing in common but servers in the network."""
import concurrent.futures
import contextlib
import json
import threading

import pytest
from conftest import GRID, wait_until
from fastcgi import Client, Server
from networks import Forwarder, Network, need_networks
from origin import Origin
from postgres import PASSWORD, Postgres
from stores import Memcached, Redis

HOSTS, CLIENTS = 2, 200
LOCKERS = {
    "memcache": '<locker type="memcache"><server><host>{host}</host><port>{port}</port></server><timeout>4</timeout></locker>',
    "redis": '<locker type="redis"><host>{host}</host><port>{port}</port></locker>',
    "postgresql": '<locker type="postgresql"><connection>host={host} port={port} dbname=postgres user=mapcache password=\'' + PASSWORD + "'</connection></locker>",
}


class Host:
    """A network and a folder of its own. Servers are reached at the network's end of the wire, at their own ports."""

    def __init__(self, folder, stack, servers):
        self.folder, self.network = folder, Network()
        folder.mkdir()
        stack.callback(self.network.close)
        for port in servers:
            stack.enter_context(contextlib.closing(Forwarder(self.network.here, port)))

    def start(self, build, store, locker, origin):
        here = self.network.here
        path = self.folder / "mapcache.xml"
        path.write_text(f"""<mapcache>
  <source name="pattern" type="wms"><getmap><params><FORMAT>image/png</FORMAT><LAYERS>pattern</LAYERS></params></getmap>
    <http><url>http://{here}:{origin.port}/hold/it/pattern?</url></http></source>
  <cache name="store" type="redis"><host>{here}</host><port>{store.port}</port></cache>
  <tileset name="world"><source>pattern</source><cache>store</cache><grid>{GRID}</grid><format>PNG</format><metatile>4 4</metatile></tileset>
  <service type="wmts" enabled="true"/><service type="status" enabled="true"/>
  {locker}
</mapcache>
""")
        self.server = Server(build, path, self.folder, before=("ip", "netns", "exec", self.network.name))

    def kill(self):
        self.server.client.close()
        self.server.program.process.kill()
        self.server.program.process.wait()

    def stop(self):
        if self.server.alive():
            self.server.stop()
        else:
            self.server.program.output.close()

    def counter(self, name):
        return json.loads(self.server.get("/status").body)["counters"][name]


@contextlib.contextmanager
def running_locker(kind, folder):
    if kind == "postgresql":
        with Postgres() as server:
            yield server
        return
    folder.mkdir()
    with contextlib.closing({"memcache": Memcached, "redis": Redis}[kind](folder)) as server:
        yield server


def ask_all(hosts, metatile):
    """All clients at once, each for one of 16 tiles, half of them of each host: the answers to come."""
    gate = threading.Barrier(CLIENTS)

    def ask(number):
        with contextlib.closing(Client(hosts[number % HOSTS].server.address)) as client:
            gate.wait()
            x, y = metatile[0] + number // HOSTS % 4, metatile[1] + number // HOSTS // 4 % 4
            return (x, y), client.get(f"/wmts/1.0.0/world/default/{GRID}/5/{y}/{x}.png".encode())

    pool = concurrent.futures.ThreadPoolExecutor(CLIENTS)
    return [pool.submit(ask, number) for number in range(CLIENTS)]


@pytest.fixture(params=sorted(LOCKERS))
def site(request, build, folder):
    """The hosts, the origin, and the server of the locks."""
    need_networks()
    with contextlib.ExitStack() as stack:
        origin = stack.enter_context(Origin())
        store = stack.enter_context(contextlib.closing(Redis(folder)))
        locks = stack.enter_context(running_locker(request.param, folder / "locks"))
        hosts = [Host(folder / name, stack, (origin.port, store.port, locks.port)) for name in ("one", "two")]
        for host in hosts:
            host.start(build, store, LOCKERS[request.param].format(host=host.network.here, port=locks.port), origin)
            stack.callback(host.stop)
        yield request.param, hosts, origin


def test_two_hundred_clients_of_two_hosts_are_one_request(site):
    _, hosts, origin = site
    answers = ask_all(hosts, (8, 12))
    wait_until(lambda: len(origin.requests()) == 1, "the origin is asked")
    wait_until(lambda: sum(host.counter("cache_misses_total") for host in hosts) >= CLIENTS, "all have found that the tile is missing")
    origin.release("it")
    bodies = {}
    for place, answer in (each.result() for each in answers):
        assert answer.status == 200, answer.body
        bodies.setdefault(place, set()).add(answer.body)
    assert len(bodies) == 16 and all(len(different) == 1 for different in bodies.values()), "one picture of each tile, on both hosts"
    assert len(origin.requests()) == 1
    assert sorted(host.counter("renders_total") for host in hosts) == [0, 1]


def test_the_lock_of_a_killed_host_ends_with_it(site):
    """The other host renders: at once where the server sees that the holder has gone, after the lock's time where it cannot (memcached)."""
    kind, hosts, origin = site
    tile = f"/wmts/1.0.0/world/default/{GRID}/5/13/9.png"
    with contextlib.closing(Client(hosts[0].server.address)) as client:
        client.send(tile.encode())
        wait_until(lambda: len(origin.requests()) == 1, "the origin is asked")
        hosts[0].kill()
    origin.release("it")
    if kind == "memcache":
        wait_until(lambda: hosts[1].server.get(tile).status == 200, "the lock has expired")
    else:
        assert hosts[1].server.get(tile).status == 200
    assert len(origin.requests()) == 2 and hosts[1].counter("renders_total") == 1

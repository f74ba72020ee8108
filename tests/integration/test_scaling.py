"""docs/scaling.md as it stands there: three nodes in networks of their own behind nginx, tiles in redis before S3, locks in PostgreSQL,
while nodes and stores are killed and stalled in an order that a seed gives."""
import collections
import concurrent.futures
import contextlib
import http.client
import os
import random
import signal
import socket
import subprocess
import threading
import time

import pytest
from conftest import Program, fetch, listens, stop_all, wait_until
from fastcgi import Server
from http_stores import running_moto
from origin import Origin
from patience import patience
from ports import free_port
from postgres import Postgres
from stores import Redis

NODES = 3
SEED = int(os.environ.get("MAPCACHE_SCALING_SEED", "1"))
GRID = "GoogleMapsCompatible"
METATILES = [(x, y) for y in range(0, 32, 4) for x in range(0, 32, 4)]  # of level 5, 4 x 4 tiles each
NGINX = """
worker_processes 1; daemon off; error_log {folder}/nginx.log warn; pid {folder}/nginx.pid;
events {{ worker_connections 512; }}
http {{
  access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  upstream nodes {{ {servers} }}
  server {{ listen 127.0.0.1:{port};
    location / {{
      include /etc/nginx/fastcgi_params;
      fastcgi_param SCRIPT_NAME ""; fastcgi_param PATH_INFO $uri;
      fastcgi_next_upstream error timeout; fastcgi_next_upstream_tries 3; fastcgi_connect_timeout 1s;
      fastcgi_pass nodes;
    }} }}
}}
"""
CONFIG = """<mapcache>
<source name="origin" type="wms"><getmap><params><FORMAT>image/png</FORMAT><LAYERS>world</LAYERS></params></getmap><http><url>{origin}</url></http></source>
<cache name="near" type="redis"><socket>{redis}</socket><timeout>1</timeout></cache>
<cache name="far" type="s3"><url>{s3}/tiles/{{tileset}}/{{grid}}/{{z}}/{{x}}/{{y}}.{{ext}}</url><id>{access}</id><secret>{secret}</secret><region>us-east-1</region>
  <connection_timeout>1</connection_timeout><timeout>2</timeout></cache>
<cache name="tiles" type="multitier"><cache>near</cache><cache>far</cache></cache>
<tileset name="world"><source>origin</source><cache>tiles</cache><grid>{grid}</grid><format>PNG</format><metatile>4 4</metatile></tileset>
<service type="wmts" enabled="true"/><service type="status" enabled="true"/>
<locker type="postgresql"><connection>{database}</connection></locker>
</mapcache>
"""


def path_of(x, y, z=5):
    return f"/wmts/1.0.0/world/default/{GRID}/{z}/{y}/{x}.png"


class Network:
    """A network namespace with one wire to this one."""

    def __init__(self, number):
        self.name = f"mc{os.getpid() % 100000}n{number}"
        base = 4 * (os.getpid() % 8000 * 2 + number)
        self.here, self.there = (f"10.{64 + base // 65536 % 64}.{base // 256 % 256}.{base % 256 + last}" for last in (1, 2))
        run = self.run_ip
        run("netns", "add", self.name)
        run("link", "add", self.name, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        run("addr", "add", f"{self.here}/30", "dev", self.name)
        run("link", "set", self.name, "up")
        run("-n", self.name, "addr", "add", f"{self.there}/30", "dev", "eth0")
        run("-n", self.name, "link", "set", "eth0", "up")
        run("-n", self.name, "link", "set", "lo", "up")

    @staticmethod
    def run_ip(*words):
        subprocess.run(["ip", *words], check=True, capture_output=True)

    def close(self):
        self.run_ip("netns", "del", self.name)


class Forwarder:
    """Connections to an address of this network go on to a port of the loopback: the servers of the tests listen nowhere else."""

    def __init__(self, host, port):
        self.port, self.listener = port, socket.create_server((host, port), backlog=256)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.port))
            except OSError:
                client.close()
                continue
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._copy, args=(one, other), daemon=True).start()

    @staticmethod
    def _copy(one, other):
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.close()


class Site:
    """Everything of docs/scaling.md. `troubles`: from when until when something was away."""

    def __init__(self, build, folder, stack):
        self.build, self.folder, self.stack, self.troubles = build, folder, stack, []
        self.origin = stack.enter_context(Origin())
        self.redis = stack.enter_context(contextlib.closing(Redis(folder)))
        self.database = stack.enter_context(Postgres())
        self.s3_port, self.access, self.secret, self.s3 = stack.enter_context(running_moto(folder))
        self.networks = [stack.enter_context(contextlib.closing(Network(number))) for number in range(NODES)]
        self.nodes = [None] * NODES
        for number in range(NODES):
            for port in (self.origin.port, self.s3_port):
                stack.enter_context(contextlib.closing(Forwarder(self.networks[number].here, port)))
            self.start_node(number)
        stack.callback(lambda: [node.stop() for node in self.nodes if node.alive()])
        self.start_balancer()

    def start_node(self, number):
        place, network = self.folder / f"node{number}", self.networks[number]
        place.mkdir(exist_ok=True)
        config = place / "mapcache.xml"
        config.write_text(CONFIG.format(
            origin=f"http://{network.here}:{self.origin.port}/late/50/pattern?", redis=f"{self.redis.folder}/redis.sock", s3=f"http://{network.here}:{self.s3_port}",
            access=self.access, secret=self.secret, grid=GRID,
            database=f"host={self.database.folder} port={self.database.port} dbname=postgres user=mapcache"))
        self.nodes[number] = Server(self.build, config, place, before=("ip", "netns", "exec", network.name))

    def start_balancer(self):
        self.port = free_port()
        config = self.folder / "nginx.conf"
        servers = " ".join(f"server unix:{node.address} max_fails=1 fail_timeout=1s;" for node in self.nodes)
        config.write_text(NGINX.format(folder=self.folder, port=self.port, servers=servers))
        for node in self.nodes:
            os.chmod(node.address, 0o777)
        program = Program(["nginx", "-p", self.folder, "-c", config], self.folder / "nginx.out")
        self.stack.callback(lambda: stop_all([program]))
        wait_until(lambda: listens(("127.0.0.1", self.port)), "nginx starts")

    def get(self, x, y, z=5):
        try:
            return fetch(self.port, path_of(x, y, z), timeout=30)
        except (OSError, http.client.HTTPException):
            return None

    @contextlib.contextmanager
    def trouble(self):
        began = time.time()
        yield
        self.troubles.append((began, time.time()))

    def kill_node(self, chance):
        number = chance.randrange(NODES)
        self.nodes[number].program.process.kill()
        self.nodes[number].program.process.wait()
        time.sleep(chance.uniform(.1, .5))
        self.start_node(number)
        os.chmod(self.nodes[number].address, 0o777)

    def kill_redis(self, chance):
        self.redis.kill()
        time.sleep(chance.uniform(.1, .5))
        self.redis.restart()

    def kill_database(self, chance):
        self.database.stop()
        time.sleep(chance.uniform(.1, .5))
        self.database.start()

    def stall_s3(self, chance):
        pid = self.s3.process.pid
        os.kill(pid, signal.SIGSTOP)
        time.sleep(chance.uniform(.5, 1.5))
        os.kill(pid, signal.SIGCONT)

    def renders(self):
        """For each metatile, when the origin was asked."""
        asked = collections.defaultdict(list)
        for request in self.origin.requests():
            asked[request["params"]["BBOX"]].append(request["time"])
        return asked


@pytest.fixture
def site(build, folder):
    if subprocess.run(["unshare", "--net", "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("no right to make networks")
    with contextlib.ExitStack() as stack:
        yield Site(build, folder, stack)


def tiles_of(metatiles):
    return [(x + i, y + j) for x, y in metatiles for i in range(4) for j in range(4)]


def ask_all(site, tiles, chance):
    """Each tile until the tile comes, by 24 clients in a random order: the bodies."""
    def ask(tile):
        until = time.monotonic() + patience(60)
        while time.monotonic() < until:
            answer = site.get(*tile)
            if answer is not None and answer.status == 200:
                return answer.body
            time.sleep(.05)
        raise AssertionError(f"{tile}: {answer and (answer.status, answer.body)}\n" + "\n".join(node.log() for node in site.nodes))

    tiles = chance.sample(tiles, len(tiles))
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        return dict(zip(tiles, pool.map(ask, tiles)))


def cause_troubles(site, chance, tiles, ended):
    """One after the other; after each one a tile that nobody has asked for before tells when all is well again."""
    kinds = [site.kill_node, site.kill_redis, site.kill_database, site.stall_s3]
    for kind in chance.sample(kinds, len(kinds)):
        with site.trouble():
            kind(chance)
            began = time.monotonic()
            ask_all(site, [tiles.pop()], chance)
            ended.append((kind.__name__, time.monotonic() - began))


def test_three_nodes_survive(site):
    chance = random.Random(SEED)
    quiet, busy, fresh = METATILES[:16], METATILES[16:56], tiles_of(METATILES[56:])[::16]
    bodies = ask_all(site, tiles_of(quiet), chance)
    renders = site.renders()
    assert len(renders) == len(quiet) and {len(times) for times in renders.values()} == {1}, renders
    assert all(b'"renders_total":0' not in node.get("/status").body.replace(b" ", b"") for node in site.nodes), "all nodes take part"
    recoveries = []
    with concurrent.futures.ThreadPoolExecutor(1) as background:
        troubles = background.submit(cause_troubles, site, chance, fresh, recoveries)
        for at in range(0, len(busy), 5):
            bodies.update(ask_all(site, tiles_of(busy[at:at + 5]), chance))
        troubles.result()
    assert max(took for _, took in recoveries) <= patience(15), recoveries
    for box, times in site.renders().items():  # a render is repeated only where something was away since the one before, or a moment earlier
        for one, next_one in zip(sorted(times), sorted(times)[1:]):
            assert any(began <= next_one and one <= ended + patience(3) for began, ended in site.troubles), (SEED, box, times, site.troubles)
    print("recoveries:", ", ".join(f"{name} {took:.1f} s" for name, took in recoveries), "renders:", collections.Counter(map(len, site.renders().values())))
    again = ask_all(site, list(bodies), chance)  # what could not be stored in a trouble is, now
    assert again == bodies
    site.origin.kill()
    assert ask_all(site, list(bodies), chance) == bodies, f"a tile is lost, or another one (seed {SEED})"

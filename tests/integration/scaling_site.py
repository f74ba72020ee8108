"""The site of docs/scaling.md: nodes in networks of their own, a balancer and a CDN before them, redis, S3 and PostgreSQL behind. The files
are those that the page prints; addresses, names and lengths of time are put in their place."""
import collections
import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time

from conftest import ROOT, Program, fetch, listens, stop_all, wait_until
from fastcgi import Server
from http_stores import HERE
from networks import Forwarder, Network
from origin import Origin
from patience import patience
from ports import free_port
from postgres import Postgres
from store_server import ACCESS, REGION, SECRET
from stores import Redis

PAGE = ROOT / "docs" / "scaling.md"
GRID = "GoogleMapsCompatible"
NODES = 3
FASTCGI_PORT = 9000
KEYS = {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": REGION}
NGINX = """
worker_processes 1; daemon off; error_log {folder}/nginx.log warn; pid {folder}/nginx.pid;
events {{ worker_connections 512; }}
http {{
  access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  {balancer}
  {cdn}
}}
"""


def blocks_of(heading):
    """The indented blocks of a section of the page, as they stand there."""
    section = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    found = re.findall(r"(?:^    .*\n(?:\n(?=    ))?)+", section, re.MULTILINE)
    return ["\n".join(line[4:] for line in block.splitlines()) for block in found]


def put(text, *changes):
    """The text with words changed, each of which is there."""
    for old, new in changes:
        assert old in text, (old, text)
        text = text.replace(old, new)
    return text


def path_of(x, y, z=5):
    return f"/wmts/1.0.0/world/default/{GRID}/{z}/{y}/{x}.png"


class ObjectStore:
    """A server of S3's protocol that verifies signatures, at all addresses of this machine; what it has taken outlives it."""

    def __init__(self, folder):
        self.folder, self.port = folder, free_port()
        self.start()

    def start(self):
        self.program = Program([sys.executable, HERE / "store_server.py", "--kind", "s3", "--port", self.port, "--host", "0.0.0.0",
                                "--keep", self.folder / "objects"], self.folder / "s3.log", stdin=subprocess.PIPE)
        wait_until(lambda: listens(("127.0.0.1", self.port)), "the object store starts")

    def kill(self):
        self.program.process.kill()
        self.program.process.wait()

    def signal(self, number):
        os.kill(self.program.process.pid, number)

    def names(self):
        return set(json.loads(fetch(self.port, "/-/list").body))

    def close(self):
        self.kill()  # also where it is stalled
        self.program.output.close()


class Node:
    """One of the machines: the FastCGI program at its address, and where there is a queue a worker."""

    def __init__(self, site, number):
        self.site, self.number, self.network = site, number, Network()
        self.folder = site.folder / f"node{number}"
        self.folder.mkdir()
        self.config = self.folder / "mapcache.xml"
        self.before = ("ip", "netns", "exec", self.network.name)
        self.forwarder = Forwarder(self.network.here, site.origin.port)
        self.program = self.worker = None
        self.environment = {}
        self.killed = []  # when
        self.write_config()

    def write_config(self, title=""):
        """A file of the same time of change on all nodes, as the page asks for."""
        self.config.write_text(self.site.config_for(self.network.here, self.number).replace("<mapcache>", f"<mapcache><metadata><title>{title or 'tiles'}</title></metadata>", 1))
        os.utime(self.config, (self.site.changed, self.site.changed))

    def start(self):
        build = self.site.build
        environment = {"LD_LIBRARY_PATH": str(build / "lib"), "MAPCACHE_MODULES": str(build / "modules"), **KEYS, **self.environment}
        command = put(self.site.command("mapcache.fcgi"), ("mapcache.fcgi", f"{build}/bin/mapcache.fcgi"), ("/etc/mapcache/mapcache.xml", str(self.config)),
                      ("10.0.0.11:9000", f"{self.network.there}:{FASTCGI_PORT}"))
        self.program = Program([*self.before, *command.split()], self.folder / "fcgi.log", environment)
        if self.site.jobs:
            command = put(self.site.command("mapcache jobs"), ("mapcache jobs", f"{build}/bin/mapcache jobs"), ("/etc/mapcache/mapcache.xml", str(self.config)))
            self.worker = Program([*self.before, *command.split(), "--verbose"], self.folder / "worker.log", environment)
        wait_until(lambda: listens((self.network.there, FASTCGI_PORT)) or self.program.process.poll() is not None, "mapcache.fcgi starts")
        assert self.program.process.poll() is None, self.log()

    def programs(self):
        return [program for program in (self.program, self.worker) if program]

    def kill(self):
        self.killed.append(time.time())
        for program in self.programs():
            program.process.kill()
        for program in self.programs():
            program.process.wait()
            program.output.close()

    def ready(self):
        answer = self.site.ask_node(self.number, "/ready")
        return answer.status, json.loads(answer.body) if answer.headers["Content-Type"] == "application/json" else {}

    def metric(self, name):
        for line in self.site.ask_node(self.number, "/metrics").body.decode().splitlines():
            if line.startswith(f"mapcache_{name} "):
                return float(line.split()[1])
        raise AssertionError(f"no metric {name}")

    def log(self):
        return "".join(program.log()[-5000:] for program in self.programs())

    def close(self):
        stop_all(self.programs())
        self.forwarder.close()
        self.network.close()


class Site:
    """Everything of the page. locker: its type. `troubles`: (what, from when, until when)."""

    def __init__(self, build, folder, stack, locker="postgresql"):
        self.build, self.folder, self.stack, self.locker, self.troubles = build, folder, stack, locker, []
        self.jobs = locker == "postgresql"
        self.changed = time.time() - 1000
        self.bodies = {}  # of each tile, as the first client has got it
        self.origin = stack.enter_context(Origin())
        self.redis = stack.enter_context(contextlib.closing(self.start_redis()))
        self.database = stack.enter_context(Postgres()) if self.jobs else None
        if self.database:
            self.database.sql(put(blocks_of("PostgreSQL")[0].splitlines()[1], ("DATABASE mapcache", "DATABASE tiles")))
        self.store = stack.enter_context(contextlib.closing(ObjectStore(folder)))
        self.nodes = [stack.enter_context(contextlib.closing(Node(self, number))) for number in range(NODES)]
        for node in self.nodes:
            node.start()
        self.start_nginx()

    def start_redis(self):
        config = self.folder / "redis.conf"
        config.write_text(put(blocks_of("redis.conf")[0], ("bind 10.0.0.21", "bind 127.0.0.1"), ("maxmemory 4gb", "maxmemory 100mb")))
        return Redis(self.folder, "--unixsocketperm", "777", config=config)

    @staticmethod
    def command(beginning):
        """A line of the page that runs a program without systemd."""
        return next(line for line in blocks_of("Every node: programs")[-1].splitlines() if line.startswith(beginning))

    def config_for(self, here, number):
        text = put(blocks_of("Every node: mapcache.xml")[0],
                   ("http://origin.example.net/wms?", f"http://{here}:{self.origin.port}/late/50/pattern?NODE={number}&amp;"),
                   ("<host>redis.example.net</host>", f"<socket>{self.redis.folder}/redis.sock</socket>"),
                   ("https://my-tiles.s3.eu-west-1.amazonaws.com/", f"http://{here}:{self.store.port}/tiles/"),
                   ("<expires>86400<", "<expires>2<"), ("<lease>60<", "<lease>5<"))
        if self.locker == "redis":
            text = re.sub(r"<locker .*</locker>", f'<locker type="redis"><socket>{self.redis.folder}/redis.sock</socket></locker>', text)
            return re.sub(r"<jobs>.*</jobs>", "", text)
        return put(text, ("host=db.example.net dbname=mapcache", f"host={self.database.folder} port={self.database.port} dbname=tiles"))

    def start_nginx(self):
        """The balancer and the CDN; each node by itself at /nodeN/, for what is asked of one node."""
        self.port, self.cdn_port = free_port(), free_port()
        config = self.folder / "nginx.conf"
        one_by_one = "".join(f"""
        location ~ ^/node{node.number}(/.*)$ {{ include /etc/nginx/fastcgi_params; fastcgi_param SCRIPT_NAME ""; fastcgi_param PATH_INFO $1;
            fastcgi_pass {node.network.there}:{FASTCGI_PORT}; }}""" for node in self.nodes)
        balancer = put(blocks_of("The balancer: nginx")[0], ("listen 80;", f"listen 127.0.0.1:{self.port}; {one_by_one}"),
                       ("include fastcgi_params", "include /etc/nginx/fastcgi_params"),
                       *((f"10.0.0.{11 + node.number}:9000", f"{node.network.there}:{FASTCGI_PORT}") for node in self.nodes))
        cdn = put(blocks_of("The CDN")[0], ("/var/cache/nginx/tiles", f"{self.folder}/cdn"), ("listen 8080", f"listen 127.0.0.1:{self.cdn_port}"),
                  ("http://127.0.0.1:80;", f"http://127.0.0.1:{self.port};"))
        config.write_text(NGINX.format(folder=self.folder, balancer=balancer, cdn=cdn))
        program = Program(["nginx", "-p", self.folder, "-c", config], self.folder / "nginx.out")
        self.stack.callback(lambda: stop_all([program]))
        wait_until(lambda: listens(("127.0.0.1", self.port)) or program.process.poll() is not None, "nginx starts")
        assert program.process.poll() is None, program.log()

    def get(self, x, y, z=5, port=None):
        """Of the balancer, or of the CDN; None: no answer came."""
        try:
            return fetch(port or self.port, path_of(x, y, z), timeout=30)
        except (OSError, http.client.HTTPException):
            return None

    def ask_node(self, number, path):
        return fetch(self.port, f"/node{number}{path}", timeout=30)

    @contextlib.contextmanager
    def trouble(self, what):
        began = time.time()
        yield
        self.troubles.append((what, began, time.time()))

    def kill_node(self, chance):
        node = self.nodes[chance.randrange(NODES)]
        node.kill()
        time.sleep(chance.uniform(.1, .5))
        node.start()

    def kill_redis(self, chance):
        self.redis.kill()
        time.sleep(chance.uniform(.1, .5))
        self.redis.restart()

    def kill_database(self, chance):
        self.database.stop()
        time.sleep(chance.uniform(.1, .5))
        self.database.start()

    def kill_store(self, chance):
        self.store.kill()
        time.sleep(chance.uniform(.1, .5))
        self.store.start()

    def stall_store(self, chance):
        self.store.signal(signal.SIGSTOP)
        time.sleep(chance.uniform(.5, 1.5))
        self.store.signal(signal.SIGCONT)

    def renders(self):
        """For each metatile, when the origin was asked, and by which node."""
        asked = collections.defaultdict(list)
        for request in self.origin.requests():
            asked[request["params"]["BBOX"]].append((request["time"], int(request["params"]["NODE"])))
        return {box: sorted(times) for box, times in asked.items()}

    def may_repeat(self, first, second):
        """Whether docs/scaling.md allows a second render: what the first one made could not be stored, or its lock was lost meanwhile.
        The origin may note two renders in the wrong order."""
        began = first[0]
        while_away = {"kill_store", "stall_store", "kill_database" if self.locker == "postgresql" else "kill_redis"}
        in_flight = patience(2)  # longer than a render and what it stores take
        node_died = any(abs(at - time) <= in_flight for time, number in (first, second) for at in self.nodes[number].killed)
        return node_died or any(what in while_away and began <= until and second[0] >= since and began >= since - in_flight
                                for what, since, until in self.troubles)

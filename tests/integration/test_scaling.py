"""docs/scaling.md as it stands there: three nodes in networks of their own, tiles in redis before S3, locks and jobs in PostgreSQL or locks in
redis, while nodes and stores are killed and stalled in an order that a seed gives; restarts, wrong clocks, and what operators see."""
import collections
import concurrent.futures
import contextlib
import os
import random
import subprocess
import threading
import time

import pytest
from conftest import GRID, temporary_folder, wait_until
from networks import need_networks
from patience import patience
from scaling_site import KEYS, NODES, Site, path_of

SEED = int(os.environ.get("MAPCACHE_SCALING_SEED", "1"))
METATILES = [(x, y) for y in range(0, 32, 4) for x in range(0, 32, 4)]  # of level 5, 4 x 4 tiles each
JOB = [(x, y) for y in range(16) for x in range(48, 64)]  # tiles of level 6, rows from the bottom as stores have them
JOB_BOX = "10018754.1713,-20037508.342,20037508.342,-10018754.1713"
FAKE_TIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"


@contextlib.contextmanager
def made_site(build, locker):
    need_networks()
    with temporary_folder() as folder, contextlib.ExitStack() as stack:
        yield Site(build, folder, stack, locker)


@pytest.fixture(scope="module")
def site(build):
    """For all tests that want PostgreSQL, each with metatiles of its own."""
    with made_site(build, "postgresql") as made:
        yield made


def tiles_of(metatiles):
    return [(x + i, y + j) for x, y in metatiles for i in range(4) for j in range(4)]


def wrong_tile(site, tile, answer, before, port):
    """Whatever is away, a tile is never another one, nor an empty one."""
    return (SEED, tile, port == site.cdn_port, answer.headers.items(), answer.body, before, site.troubles, [node.killed for node in site.nodes],
            [node.log() for node in site.nodes])


def ask_all(site, tiles, chance, z=5):
    """Each tile until the tile comes, by 24 clients in a random order, of the balancer or the CDN: the bodies."""
    def ask(job):
        tile, port = job
        until = time.monotonic() + patience(60)
        while time.monotonic() < until:
            answer = site.get(*tile, z, port)
            if answer is not None and answer.status == 200:
                assert site.bodies.setdefault((z, *tile), answer.body) == answer.body, wrong_tile(site, tile, answer, site.bodies[z, *tile], port)
                return answer.body
            time.sleep(.05)
        raise AssertionError(f"{tile}: {answer and (answer.status, answer.body)}\n" + "\n".join(node.log() for node in site.nodes))

    tiles = chance.sample(tiles, len(tiles))
    ports = [chance.choice((site.port, site.cdn_port)) for _ in tiles]
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        return dict(zip(tiles, pool.map(ask, zip(tiles, ports))))


def cause_troubles(site, kinds, chance, tiles, ended):
    """One after the other; after each one a tile that nobody has asked for before tells when all is well again."""
    for kind in chance.sample(kinds, len(kinds)):
        with site.trouble(kind.__name__):
            kind(chance)
            began = time.monotonic()
            ask_all(site, [tiles.pop()], chance)
            ended.append((kind.__name__, time.monotonic() - began))


def expect_renders_as_promised(site):
    """Once, but where docs/scaling.md says otherwise."""
    for box, times in site.renders().items():
        for first, second in zip(times, times[1:]):
            assert site.may_repeat(first, second), (SEED, box, times, site.troubles, [node.killed for node in site.nodes])


def survive(site, kinds, chance, quiet, busy, fresh, begin=lambda: None):
    """Load and troubles, one after the other; what clients have got, and nothing is lost of it. begin: what is done before the troubles."""
    bodies = ask_all(site, tiles_of(quiet), chance)
    renders = site.renders()
    assert len(renders) == len(quiet) and {len(times) for times in renders.values()} == {1}, renders
    assert all(node.metric("requests_total") > 5 for node in site.nodes), "all nodes take part"
    recoveries, ended = [], threading.Event()
    begin()

    def load():
        rounds = [busy[at:at + 5] for at in range(0, len(busy), 5)]
        while rounds or not ended.is_set():
            bodies.update(ask_all(site, tiles_of(rounds.pop()) if rounds else chance.sample(list(bodies), 100), chance))

    with concurrent.futures.ThreadPoolExecutor(1) as background:
        loaded = background.submit(load)
        try:  # here: the servers end with the thread that has started them
            cause_troubles(site, kinds, random.Random(SEED), fresh, recoveries)
        finally:
            ended.set()
        loaded.result()
    assert max(took for _, took in recoveries) <= patience(15), recoveries
    expect_renders_as_promised(site)
    print(f"seed {SEED}, recoveries:", ", ".join(f"{name} {took:.1f} s" for name, took in recoveries),
          "renders:", dict(collections.Counter(map(len, site.renders().values()))))
    again = ask_all(site, list(bodies), chance)  # what could not be stored in a trouble is, now
    assert again == bodies
    return bodies


def jobs(site, command, *words):
    done = subprocess.run([site.build / "bin" / "mapcache", "jobs", command, "-c", site.nodes[0].config, *words], capture_output=True, text=True,
                          timeout=patience(60), check=False, env={**os.environ, **KEYS})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_three_nodes_survive(site):
    chance = random.Random(SEED)
    kinds = [site.kill_node, site.kill_redis, site.kill_database, site.kill_store, site.stall_store]
    bodies = survive(site, kinds, chance, METATILES[:12], METATILES[12:48], tiles_of(METATILES[48:56])[::16],
                     lambda: jobs(site, "enqueue", "-t", "world", "-z", "6", "-e", JOB_BOX))
    jobs(site, "watch")
    assert '"state":"done"' in jobs(site, "show", "1", "--json").replace(" ", "")
    expect_renders_as_promised(site)
    site.origin.kill()
    assert ask_all(site, list(bodies), chance) == bodies, f"a tile is lost, or another one (seed {SEED})"
    names = site.store.names()
    assert {f"/tiles/world/{GRID}/6/{x}/{y}.png" for x, y in JOB} <= names, "a tile of the job is not in the object store"
    site.origin.start()


def test_locks_in_redis_survive(build):
    """The other locker of the page, without a PostgreSQL: the same redis has tiles and locks."""
    chance = random.Random(SEED)
    with made_site(build, "redis") as site:
        bodies = survive(site, [site.kill_node, site.kill_redis, site.kill_store], chance, METATILES[:9], METATILES[9:24], tiles_of(METATILES[48:56])[::16])
        site.origin.kill()
        assert ask_all(site, list(bodies), chance) == bodies, f"a tile is lost, or another one (seed {SEED})"


def test_a_rolling_restart_fails_no_request(site):
    """One node after the other ends and starts with another configuration, under load: tiles that are there and tiles that are not."""
    chance, stop, answers = random.Random(SEED), threading.Event(), collections.Counter()
    there, fresh = tiles_of(METATILES[:2]), iter(chance.sample(tiles_of(METATILES[56:60]), 64))
    ask_all(site, there, chance)

    def load(number):
        while not stop.is_set():
            answer = site.get(*(next(fresh, None) or there[0] if number == 0 else there[answers.total() % len(there)]))
            answers[answer and answer.status] += 1

    before = {box: len(times) for box, times in site.renders().items()}
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        clients = [pool.submit(load, number) for number in range(8)]
        for node in site.nodes:
            status = [program.stop() for program in node.programs()]
            assert status == [0] * len(status), node.log()
            node.write_config(title="the next edition")
            node.start()
            wait_until(lambda node=node: node.metric("requests_total") > 50, "the balancer sends requests to the node again")
        stop.set()
        for client in clients:
            client.result()
    assert set(answers) == {200}, answers
    assert all(len(times) == 1 for box, times in site.renders().items() if box not in before), site.renders()
    capabilities = [site.ask_node(number, "/wmts/1.0.0/WMTSCapabilities.xml") for number in range(NODES)]
    assert all(b"the next edition" in answer.body for answer in capabilities)
    assert len({answer.headers["ETag"] for answer in capabilities}) == 1, "equal files of one time have one tag"


def test_a_node_whose_clock_is_wrong(site):
    """Ten minutes: locks and leases go by their servers' clocks. Two hours: S3 refuses the node, the log says by how much, the others serve."""
    node, chance = site.nodes[1], random.Random(SEED)

    def restart(**environment):
        node.kill()
        node.environment = environment
        node.start()

    restart(LD_PRELOAD=FAKE_TIME, FAKETIME="+600", FAKETIME_DONT_FAKE_MONOTONIC="1", DONT_FAKE_MONOTONIC="1")
    before = set(site.renders())
    ask_all(site, tiles_of(METATILES[60:63]), chance)
    job = jobs(site, "enqueue", "-t", "world", "-z", "4", "--json")
    assert '"id"' in job
    jobs(site, "watch")
    made = {box: times for box, times in site.renders().items() if box not in before}
    assert len(made) == 3 + 16 and {len(times) for times in made.values()} == {1}, made
    restart(LD_PRELOAD=FAKE_TIME, FAKETIME="+7200", FAKETIME_DONT_FAKE_MONOTONIC="1", DONT_FAKE_MONOTONIC="1")
    x, y = METATILES[63]
    answer = site.ask_node(1, path_of(x, y))
    assert answer.status == 502, (answer.status, answer.body)
    assert "72" in node.program.log().split("clock")[-1][:200], node.log()
    assert site.ask_node(0, path_of(x, y)).status == 200
    restart()
    assert site.ask_node(1, path_of(x, y)).status == 200


def test_a_cdn_asks_seldom_and_survives_all_nodes(site):
    x, y = METATILES[0]
    first = site.get(x, y)
    assert first.status == 200 and first.headers["Cache-Control"] == "max-age=2" and first.headers["ETag"]
    tags = {site.ask_node(number, path_of(x, y)).headers["ETag"] for number in range(NODES)}
    assert tags == {first.headers["ETag"]}
    said = collections.Counter()

    def ask_cdn():
        answer = site.get(x, y, port=site.cdn_port)
        assert answer.status == 200 and answer.body == first.body
        said[answer.headers["X-Cache"]] += 1
        return answer.headers["X-Cache"]

    ask_cdn()
    wait_until(lambda: ask_cdn() == "HIT", "the CDN has the tile")
    wait_until(lambda: ask_cdn() == "REVALIDATED", "the CDN is told 304 once the tile's time is over")
    for node in site.nodes:
        node.kill()
    wait_until(lambda: ask_cdn() == "STALE", "the CDN shows what it has while all nodes are away")
    for node in site.nodes:
        node.start()
    wait_until(lambda: ask_cdn() in ("REVALIDATED", "HIT"), "the nodes are back")
    assert sum(said.values()) > 3 and "MISS" not in list(said)[1:], said


@pytest.mark.parametrize("what, row", [("store", 0), ("redis", 4), ("database", 8)])
def test_ready_names_what_is_away(site, what, row):
    """All nodes stay in the balancer, degraded: the others have the same stores. The log does not grow with the requests."""
    node, fresh = site.nodes[0], iter(range(400, 1024, 4))
    kill, back, name = {"store": (site.store.kill, site.store.start, f":{site.store.port}"),
                        "redis": (site.redis.kill, site.redis.restart, "redis.sock"),
                        "database": (site.database.stop, site.database.start, str(site.database.port))}[what]

    def asked(x):
        return site.ask_node(0, path_of(x, row, 10)).status

    def is_well():
        time.sleep(.1)
        status, said = node.ready()
        return asked(0) == 200 and asked(next(fresh)) == 200 and status == 200 and said["status"] == "ready" and said["failing"] == []

    wait_until(is_well, "nothing is away")
    began, lines = time.monotonic(), len(node.program.log().splitlines())
    kill()
    try:
        said = collections.Counter(asked(4 * x) for x in range(1, 20 if what == "redis" else 100))
        status, ready = node.ready()
        written = node.program.log().splitlines()[lines:]
        assert asked(0) == 200, "what redis has, or S3, is served as ever"
    finally:
        back()
    assert status == 200 and ready["status"] == "degraded" and [server for server in ready["away"] if name in server], ready
    assert set(said) <= ({200} if what == "redis" else {503, 200}), said
    assert said[200] <= 1 or what == "redis", said
    assert len(written) < 12 + 6 * (time.monotonic() - began) and any(name in line for line in written), written
    wait_until(is_well, "all is well")

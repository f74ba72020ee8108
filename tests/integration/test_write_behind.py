"""Tiles that are stored behind, through whole servers: nginx and FastCGI, and Apache; a redis that takes nothing, goes away, comes back."""
import re
import signal
import threading
import time

import pytest
from conftest import GRID, wait_until
from origin import Origin
from patience import patience
from stores import Redis

SERVICES = '<service type="wmts" enabled="true"/><service type="metrics" enabled="true"/>'


@pytest.fixture
def redis(folder):
    store = Redis(folder)
    yield store
    store.stop()


@pytest.fixture
def origin():
    with Origin() as running:
        yield running


@pytest.fixture
def config(folder, redis, origin):
    """Tiles near in files, far in redis: metatiles of 16 tiles."""
    folder.chmod(0o777)
    path = folder / "behind.xml"

    def write(title="first"):
        path.write_text(f"""<mapcache><metadata><title>{title}</title></metadata>
<source name="pattern" type="wms"><getmap><params><FORMAT>image/png</FORMAT><LAYERS>pattern</LAYERS></params></getmap>
<http><url>{origin.url("/pattern?")}</url></http></source>
<source name="held" type="wms"><getmap><params><FORMAT>image/png</FORMAT><LAYERS>pattern</LAYERS></params></getmap>
<http><url>{origin.url("/hold/door/pattern?")}</url></http></source>
<cache name="near" type="disk"><base>{folder}/near</base></cache>
<cache name="far" {redis.cache("<timeout>1</timeout><expires>0</expires>")}</cache>
<cache name="tiles" type="multitier"><cache>near</cache><cache>far</cache><write>behind</write><behind_time>600</behind_time></cache>
<tileset name="world"><source>pattern</source><cache>tiles</cache><grid>{GRID}</grid><format>PNG</format><metatile>4 4</metatile></tileset>
<tileset name="held"><source>held</source><cache>tiles</cache><grid>{GRID}</grid><format>PNG</format><metatile>4 4</metatile></tileset>
{SERVICES}<locker type="disk"><directory>{folder}</directory></locker></mapcache>""")
        return path

    write()
    write.path = path
    return write


class Door:
    """A web server with the configuration, and the program that stores behind."""

    def __init__(self, web, program, log):
        self.web, self.program, self.log = web, program, log

    def ask_tile(self, x, y, z=3, tileset="world"):
        return self.web.get(f"/mc/wmts/1.0.0/{tileset}/default/{GRID}/{z}/{y}/{x}.png")

    def waiting(self):
        return int(re.search(rb"^mapcache_behind_waiting_bytes (\d+)", self.web.get("/mc/metrics").body, re.MULTILINE)[1])

    def end(self, number=signal.SIGTERM):
        """Tells it to end; the seconds that it took."""
        began = time.monotonic()
        self.program.process.send_signal(number)
        self.program.process.wait(patience(60))
        return time.monotonic() - began


@pytest.fixture(params=["nginx", "apache"])
def door(request, folder, config, build, apache, nginx, fcgi, site):
    if request.param == "apache":
        web = apache(f"MapCacheAlias /mc {config.path}\nThreadsPerChild 16\nMaxRequestWorkers 16\nServerLimit 1\nStartServers 1\n")
        return Door(web, web.program, web.log)
    site.config = config.path
    program = fcgi()
    return Door(nginx(program.address), program, program.log)


def take_nothing(redis):
    redis.ask("CONFIG", "SET", "maxmemory", "1")


def take_all(redis):
    redis.ask("CONFIG", "SET", "maxmemory", "0")


def test_a_store_that_goes_away_and_comes_back(door, redis):
    assert door.ask_tile(0, 0).status == 200
    wait_until(lambda: redis.count() == 16, "the first metatile is far")
    wait_until(lambda: door.waiting() == 0, "nothing waits")
    take_nothing(redis)
    assert [door.ask_tile(x, 0).status for x in (4, 5, 7)] == [200] * 3
    assert door.waiting() > 0 and redis.count() == 16
    redis.stall()
    assert door.ask_tile(6, 3).status == 200  # near
    redis.signal(signal.SIGCONT)
    take_all(redis)
    wait_until(lambda: redis.count() == 32, "the second metatile is far")
    wait_until(lambda: door.waiting() == 0, "nothing waits")
    assert "lost" not in door.log()


def test_the_end_waits_for_a_store_that_comes_back(door, redis):
    take_nothing(redis)
    assert door.ask_tile(0, 0).status == 200 and door.waiting() > 0
    door.program.process.send_signal(signal.SIGTERM)
    tries = redis.refused()
    wait_until(lambda: redis.refused() > tries, "it tries again while it ends")
    take_all(redis)
    door.program.process.wait(patience(60))
    assert redis.count() == 16 and "lost" not in door.log()


def test_the_end_tells_what_is_lost(door, redis):
    take_nothing(redis)
    assert door.ask_tile(0, 0).status == 200 and door.waiting() > 0
    assert door.end() < patience(12)
    assert redis.count() == 0 and re.search(r'cache "tiles": 16 tiles are lost that waited for cache "far": ', door.log())


def test_a_reload_does_not_wait_for_what_waits(fcgi, nginx, site, config, redis):
    """Tiles of the old configuration wait on, longer than a process waits at its end; no client waits for them."""
    site.config = config.path
    program = fcgi()
    door = Door(nginx(program.address), program, program.log)
    take_nothing(redis)
    assert door.ask_tile(0, 0).status == 200 and door.waiting() > 0
    config("second")
    began = time.monotonic()
    program.process.send_signal(signal.SIGHUP)
    wait_until(lambda: b"second" in door.web.get("/mc/wmts?SERVICE=WMTS&REQUEST=GetCapabilities").body, "the next configuration")
    wait_until(lambda: "reloaded config file" in program.log(), "the reload is told")
    told = time.monotonic()
    assert told - began < patience(4)
    wait_until(lambda: time.monotonic() > told + 5, "an end would be over")
    tries = redis.refused()
    wait_until(lambda: redis.refused() > tries, "the tiles are tried again")
    assert door.waiting() > 0 and redis.count() == 0
    take_all(redis)
    wait_until(lambda: redis.count() == 16, "the tiles are far")
    assert "lost" not in program.log()


def test_an_end_with_the_old_configuration_waiting(fcgi, nginx, site, config, redis):
    site.config = config.path
    program = fcgi()
    door = Door(nginx(program.address), program, program.log)
    take_nothing(redis)
    assert door.ask_tile(0, 0).status == 200 and door.waiting() > 0
    config("second")
    program.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "reloaded config file" in program.log(), "the reload is told")
    assert door.end() < patience(12)
    assert program.process.returncode == 0 and "16 tiles are lost" in program.log()


def test_a_request_without_an_end_loses_nothing(fcgi, nginx, site, config, redis, origin):
    """Ten seconds after it was told to end, the process ends with a request in hand: what waits is stored before."""
    site.config = config.path
    program = fcgi()
    door = Door(nginx(program.address), program, program.log)
    take_nothing(redis)
    assert door.ask_tile(0, 0).status == 200 and door.waiting() > 0
    held = threading.Thread(target=lambda: door.ask_tile(4, 4, tileset="held"))
    held.start()
    wait_until(lambda: len(origin.requests()) == 2, "the origin is asked")
    program.process.send_signal(signal.SIGTERM)
    wait_until(lambda: "were not finished in time" in program.log(), "the request is given up")
    take_all(redis)
    program.process.wait(patience(30))
    origin.release("door")
    held.join()
    assert program.process.returncode == 0 and redis.count() == 16 and "lost" not in program.log()

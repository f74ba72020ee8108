"""One memory of stored tiles for all children of an Apache: what is in it is whole, right, and stays over a graceful restart."""

import concurrent.futures
import contextlib
import http.client
import json
import os
import random
import signal
import sqlite3
import subprocess
import threading
import time

import pytest
from conftest import GRID, wait_until
from patience import patience

LEVEL, SIDE = 5, 20
CONFIG = """<mapcache>
  <cache name="many" type="sqlite3"><dbfile>{store}</dbfile>{queries}</cache>
  <tileset name="many"><cache>many</cache><grid>{grid}</grid><format>PNG</format></tileset>
  <service type="wmts" enabled="true"/><service type="status" enabled="true"/><service type="metrics" enabled="true"/>
  <lock_dir>{folder}</lock_dir><memory_cache>{memory}</memory_cache>
</mapcache>
"""
PROCESSES = 3
MODELS = {
    "prefork": f"ServerLimit {PROCESSES}\nStartServers {PROCESSES}\nMinSpareServers 1\nMaxRequestWorkers {PROCESSES}\n",
    "event": f"ServerLimit {PROCESSES}\nStartServers {PROCESSES}\nThreadsPerChild 4\nMinSpareThreads 1\nMaxRequestWorkers {PROCESSES * 4}\n",
}


def tile(number, version=0):
    """All that a server looks at is the begin. About 17 KB; no two are alike."""
    return b"\x89PNG\r\n\x1a\n" + f"{number}/{version}/".encode() + random.Random(number * 1000 + version).randbytes(12000 + number * 25)


def path_of(number):
    return f"/mc/wmts/1.0.0/many/default/{GRID}/{LEVEL}/{2**LEVEL - 1 - number // SIDE}/{number % SIDE}.png"


class Store:
    def __init__(self, folder):
        self.folder, self.file = folder, folder / "many.sqlite3"
        database = sqlite3.connect(self.file)
        database.execute("create table tiles(tileset text, grid text, x integer, y integer, z integer, data blob,"
                         " dim text, ctime datetime, primary key(tileset, grid, x, y, z, dim))")
        for number in range(SIDE * SIDE):
            database.execute("insert into tiles values('many', ?, ?, ?, ?, ?, '', '2020-01-02 03:04:05')",
                             (GRID, number % SIDE, number // SIDE, LEVEL, tile(number)))
        database.commit()
        database.close()
        time.sleep(.06)  # of what changed less than 50 ms ago nothing is remembered

    def write(self, memory="64M", queries=""):
        config = self.folder / "many.xml"
        config.write_text(CONFIG.format(store=self.file, grid=GRID, folder=self.folder, memory=memory, queries=queries))
        return config


@pytest.fixture
def store(folder):
    folder.chmod(0o777)
    return Store(folder)


def start(apache, store, model, more="", **options):
    return apache(MODELS[model] + more + f"MapCacheAlias /mc {store.write(**options)}\n", model)


def status(web):
    return json.loads(web.get("/mc/status").body)


def fetch_all(web, numbers):
    """On one kept connection, which httpd closes where it has few threads left."""
    connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=patience(30))
    for number in numbers:
        try:
            connection.request("GET", path_of(number))
            reply = connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionError):
            connection.close()
            connection.request("GET", path_of(number))
            reply = connection.getresponse()
        assert reply.read() == tile(number), number
        assert reply.status == 200
    connection.close()


def children_of(web):
    listed = subprocess.run(["pgrep", "-P", str(web.program.process.pid)], stdout=subprocess.PIPE, text=True).stdout
    return [int(pid) for pid in listed.split()]


def graceful(web):
    """Until none of the children of before answers."""
    before = set(children_of(web))
    os.kill(web.program.process.pid, signal.SIGUSR1)
    wait_until(lambda: children_of(web) and not before & set(children_of(web)), "new children")
    wait_until(lambda: web.get("/mc/status").status == 200, "an answer")


@pytest.mark.parametrize("model", MODELS)
def test_what_one_child_has_read_all_have(apache, store, model):
    web = start(apache, store, model)
    fetch_all(web, range(50))
    with concurrent.futures.ThreadPoolExecutor(2 * PROCESSES) as clients:  # of several children
        for fetched in [clients.submit(fetch_all, web, range(50)) for _ in range(2 * PROCESSES)]:
            fetched.result()
    said = status(web)
    assert said["shared_memory"]["entries"] == 50
    assert said["counters"]["memory_hits_total"] == 50 * 2 * PROCESSES
    assert said["shared_memory"]["bytes"] > 50 * 12000
    assert said["shared_memory"]["most_bytes"] == 64 * 2**20 // 4 * 3
    metrics = web.get("/mc/metrics").body.decode()
    assert f"mapcache_memory_cache_bytes {said['shared_memory']['bytes']}\n" in metrics
    assert f"mapcache_memory_cache_limit_bytes {said['shared_memory']['most_bytes']}\n" in metrics


class Client(threading.Thread):
    """Asks for tiles by chance until it is told to end, and looks at every byte. A connection may break: its child was killed."""

    def __init__(self, web, seed):
        super().__init__()
        self.web, self.random = web, random.Random(seed)
        self.good, self.wrong, self.ends = 0, [], threading.Event()

    def run(self):
        connection = None
        while not self.ends.is_set():
            number = self.random.randrange(SIDE * SIDE)
            try:
                connection = connection or http.client.HTTPConnection("127.0.0.1", self.web.port, timeout=patience(30))
                connection.request("GET", path_of(number))
                reply = connection.getresponse()
                body = reply.read()
            except (OSError, http.client.HTTPException):
                connection = None
                continue
            if reply.status == 200 and body == tile(number):
                self.good += 1
            else:
                self.wrong.append((number, reply.status, len(body)))
        if connection:
            connection.close()


@pytest.mark.parametrize("model", MODELS)
def test_children_are_killed_while_others_read_every_byte(apache, store, model):
    """In a memory that holds half of the tiles, so that there are always writers."""
    web = start(apache, store, model, memory="4M")
    clients = [Client(web, seed) for seed in range(6)]
    for client in clients:
        client.start()
    chance, kills = random.Random(7), 0
    try:
        for _ in range(30):
            goal = sum(client.good for client in clients) + chance.randrange(20, 120)
            wait_until(lambda: sum(client.good for client in clients) >= goal or any(client.wrong for client in clients), "answers")
            with contextlib.suppress(ProcessLookupError, IndexError):
                os.kill(chance.choice(children_of(web)), signal.SIGKILL)
                kills += 1
    finally:
        for client in clients:
            client.ends.set()
        for client in clients:
            client.join()
    assert [client.wrong for client in clients] == [[]] * len(clients)
    assert kills > 20
    before = status(web)
    fetch_all(web, range(SIDE * SIDE))
    after = status(web)
    assert after["shared_memory"]["entries"] > SIDE  # tiles can still be put, and are found
    fetch_all(web, [5] * 200)
    assert status(web)["counters"]["memory_hits_total"] > after["counters"]["memory_hits_total"] >= before["counters"]["memory_hits_total"]
    assert after["shared_memory"]["evictions"] > 0


def test_a_graceful_restart_keeps_the_tiles(apache, store):
    web = start(apache, store, "event")
    fetch_all(web, range(100))
    before = status(web)
    graceful(web)
    fetch_all(web, range(100))
    after = status(web)
    assert after["shared_memory"] == before["shared_memory"]
    assert after["counters"]["memory_hits_total"] - before["counters"]["memory_hits_total"] == 100


def test_a_store_that_was_redefined_is_read_anew(apache, store):
    """By another statement of the same file, then another file at the same path."""
    web = start(apache, store, "event")
    fetch_all(web, range(20))
    store.write(queries="<queries><get>select data from tiles where x=:x and y=:y+1 and z=:z</get></queries>")
    graceful(web)
    for number in range(20):
        assert web.get(path_of(number)).body == tile(number + SIDE)
    database = sqlite3.connect(store.file)
    for number in range(SIDE, 2 * SIDE):
        database.execute("update tiles set data = ? where x = ? and y = ?", (tile(number, 1), number % SIDE, number // SIDE))
    database.commit()
    database.close()
    for number in range(20):
        assert web.get(path_of(number)).body == tile(number + SIDE, 1)


def test_another_size_begins_anew(apache, store):
    web = start(apache, store, "prefork")
    fetch_all(web, range(20))
    store.write(memory="32M")
    graceful(web)
    said = status(web)["shared_memory"]
    assert said["entries"] == 0 and said["most_bytes"] == 24 * 2**20
    fetch_all(web, range(20))
    assert status(web)["shared_memory"]["entries"] == 20
    store.write(memory="0")
    graceful(web)
    fetch_all(web, range(20))
    assert "shared_memory" not in status(web)


def test_one_process_has_its_tiles_for_itself(apache, store):
    web = apache(f"ServerLimit 1\nStartServers 1\nThreadsPerChild 4\nMaxRequestWorkers 4\nMapCacheAlias /mc {store.write()}\n", "event")
    fetch_all(web, list(range(20)) * 2)
    said = status(web)
    assert "shared_memory" not in said
    assert said["process"]["memory"]["entries"] == 20
    assert said["counters"]["memory_hits_total"] == 20


def test_the_size_goes_by_the_memory_of_the_machine(apache, store):
    web = start(apache, store, "prefork", memory="auto")
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    most = status(web)["shared_memory"]["most_bytes"]
    assert 0 < most <= min(machine // 8, 4 * 2**30) // 4 * 3 + 3

"""/ready names what does not work, who needs it, and no secret; it neither waits for what is away nor takes the process out."""
import json
import signal
import time

import pytest
from changes_site import configuration, path_of, prepare, tile_of
from conftest import SOON, wait_until
from fastcgi import Server
from patience import patience
from postgres import PASSWORD, Postgres
from stores import Redis

EXTRA = """<service type="ready" enabled="true"/>
  <cache name="quick" {redis}</cache>
  <tileset name="quick"><source>squares</source><cache>quick</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>
  <tileset name="quicker"><cache>quick</cache><grid>WGS84</grid></tileset>"""
WORD = "a-word-of-redis"


@pytest.fixture(scope="module")
def database(build):
    with Postgres() as server:
        prepare(build, server)
        yield server


@pytest.fixture(scope="module")
def redis(shared_folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REDISCLI_AUTH", WORD)
        server = Redis(shared_folder, "--requirepass", WORD)
        yield server
        server.stop()


@pytest.fixture(scope="module")
def server(build, tmp_path_factory, database, redis):
    tmp_path = tmp_path_factory.mktemp("site")
    extra = EXTRA.format(redis=redis.cache(f"<password>{WORD}</password><timeout>.5</timeout>"))
    server = Server(build, configuration(tmp_path, database.connection(), extra=extra), tmp_path)
    yield server
    server.stop()


def ready(server):
    answer = server.get("/ready")
    assert answer.status == 200, (answer.status, answer.body)
    assert PASSWORD.encode() not in answer.body and WORD.encode() not in answer.body
    return json.loads(answer.body)


def kinds(said):
    return sorted((one["kind"], tuple(one["tilesets"])) for one in said["failing"])


def is_well(server):
    said = ready(server)
    return said["status"] == "ready" and said["failing"] == [] and said["checked_seconds_ago"] is not None and all(
        log["connected"] and log["lag_seconds"] is not None for log in said["changes"]) and len(said["changes"]) == 1


def test_what_is_away_is_named(server, database, redis):
    """Nobody but /ready asks for anything."""
    wait_until(lambda: is_well(server), "all is well", SOON)
    assert ready(server)["stores"] == [] and ready(server)["away"] == []
    redis.kill()
    database.stop()
    try:
        gone = [("changes", ("squares", "quick")), ("database", ("squares", "quick")), ("store", ("quick", "quicker"))]
        wait_until(lambda: kinds(ready(server)) == gone, "all that is away is named", SOON)
        said = ready(server)
        assert said["status"] == "degraded" and said["stores"] == ["quick"]
        assert [log["connected"] for log in said["changes"]] == [False]
        for one in said["failing"]:
            assert one["error"] in ("UNAVAILABLE", "IO", "TIMEOUT", "UPSTREAM") and one["tileset_count"] == len(one["tilesets"]), one
            assert one["kind"] == "store" or f"port={database.port}" in one["name"], one
        assert {one["name"] for one in said["failing"] if one["kind"] == "store"} == {"quick"}
        log = server.program.log()
        assert "readiness: " in log and log.count("readiness: ") < 6 and PASSWORD not in log and WORD not in log
    finally:
        database.start()
        redis.restart()
    wait_until(lambda: is_well(server), "all is well again", SOON)


def test_what_does_not_answer_is_not_waited_for(server, redis):
    """And not asked by each probe: a round asks each store once."""
    wait_until(lambda: is_well(server), "all is well", SOON)
    asked = redis.calls("get")
    for _ in range(200):
        ready(server)
    assert redis.calls("get") - asked < 20
    redis.stall()
    try:
        began = time.monotonic()
        wait_until(lambda: kinds(ready(server)) == [("store", ("quick", "quicker"))], "the store is missed", SOON)
        took = max(server.get("/ready").took for _ in range(20))
    finally:
        redis.signal(signal.SIGCONT)
    assert took < patience(.4) or time.monotonic() - began > patience(60), took  # less than the store's own <timeout>
    wait_until(lambda: is_well(server), "all is well again", SOON)


def test_a_reload_keeps_connections_and_memory(server, database, redis):
    """Of what stays as it is in the configuration: the same connections serve, and memory has the same tiles."""
    def connections():
        clients = [line.split() for line in redis.ask("CLIENT", "LIST").splitlines()]
        return (set(database.sql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")),
                {words[0] for words in clients if words and "cmd=client|list" not in words})

    def memory_hits():
        lines = server.get("/metrics").body.decode().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("mapcache_memory_hits_total "))

    def from_memory(path):
        before = memory_hits()
        assert server.get(path).status == 200
        return memory_hits() > before

    known = path_of(tile_of(10, 46, 6))
    assert server.get(path_of(tile_of(10, 46, 7), "quick")).status == 200
    wait_until(lambda: from_memory(known), "the tile is in memory", SOON)
    before = connections()
    assert before[0] and before[1]
    server.program.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "reloaded config file" in server.program.log(), "the configuration is loaded again", SOON)
    assert from_memory(known)
    assert server.get(path_of(tile_of(10, 46, 8), "quick")).status == 200
    after = connections()
    assert before[0] <= after[0] and before[1] <= after[1], (before, after)

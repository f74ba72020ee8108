"""When stored tiles are too old, what goes out meanwhile, and what headers say of it: <auto_expire> as a duration, a date or a cron
expression, Cache-Status, Age, stale-while-revalidate over two processes, and the bound of stale-if-error."""
import datetime
import os
import re
import subprocess
import time

import pytest
from conftest import GRID, wait_until
from fastcgi import Client, Server
from lifecycle import one_color, source, tileset, write
from origin import Origin

DAY = 86400
OLD_PIXELS = one_color(256, 256, (1, 2, 3, 255))
TILESETS = {
    "plain": "<expires>300</expires>",
    "duration": "<auto_expire>PT1H</auto_expire>",
    "cron": "<expires>100000000</expires><auto_expire>cron: 0 0 1 1 *</auto_expire>",
    "short": "<expires>300</expires><auto_expire>cron: 0 0 1 1 *</auto_expire>",
    "past": "<expires>300</expires><auto_expire>2020-06-01T00:00Z</auto_expire>",
    "future": "<expires>2000000000</expires><auto_expire>2090-01-01</auto_expire>",
    "behind": "<auto_expire>3600</auto_expire><stale_while_revalidate>1000000000</stale_while_revalidate>",
    "held": "<auto_expire>3600</auto_expire><stale_while_revalidate>1000000000</stale_while_revalidate>",
    "failing": f"<auto_expire>3600</auto_expire><failure_expires>3600</failure_expires><stale_if_error>{3 * DAY}</stale_if_error>",
    "bounded": "<auto_expire>3600</auto_expire><failure_expires>3600</failure_expires><stale_if_error>60</stale_if_error>",
}
SOURCES = {"held": "held", "failing": "away", "bounded": "away"}


@pytest.fixture(scope="module")
def origin():
    with Origin() as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("freshness")


@pytest.fixture(scope="module")
def servers(build, folder, origin):
    """Two processes over one store and one locker."""
    config = write(folder, source("one", origin.url("/wms?")), source("held", origin.url("/hold/now/wms?")), source("away", origin.url("/status/503?")),
                   *(tileset(name, SOURCES.get(name, "one"), more=more) for name, more in TILESETS.items()))
    running = []
    for name in ("first", "second"):
        (folder / name).mkdir()
        running.append(Server(build, config, folder / name))
    yield running
    for server in running:
        server.program.stop()


@pytest.fixture
def server(servers):
    return servers[0]


def path(name, x=0):
    return f"/tms/1.0.0/{name}@{GRID}/3/{x}/1.png"


def store(folder, name, age, x=0):
    """A tile that was made so many seconds ago."""
    place = folder / f"tiles/{name}/3/{x}/1.png"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(OLD_PIXELS)
    os.utime(place, (time.time() - age, time.time() - age))


def status(answer):
    """The parameters of Cache-Status."""
    name, *parameters = answer.header("Cache-Status").split("; ")
    assert name == "mapcache"
    return dict(parameter.partition("=")[::2] for parameter in parameters)


def max_age(answer):
    return int(re.match(r"max-age=(\d+)", answer.header("Cache-Control"))[1])


def seconds_to_new_year():
    now = datetime.datetime.now(datetime.timezone.utc)
    return (datetime.datetime(now.year + 1, 1, 1, tzinfo=datetime.timezone.utc) - now).total_seconds()


def test_what_was_missing_is_stored_and_then_a_hit(server):
    miss, hit = (server.get(path("plain")) for _ in range(2))
    assert status(miss) == {"fwd": "uri-miss", "stored": "", "ttl": "300"}
    assert status(hit).items() >= {"hit": "", "ttl": "300"}.items() and "fwd" not in status(hit)
    same = server.get(path("plain"), variables={b"HTTP_IF_NONE_MATCH": hit.header("ETag").encode()})
    assert same.status == 304 and "hit" in status(same) and same.header("Age") is None
    query = "SERVICE=WMS&REQUEST=GetMap&VERSION=1.1.1&LAYERS=plain&SRS=EPSG:3857&BBOX=-20037508,-15028131,-10018754,-10018754&WIDTH=100&HEIGHT=50&STYLES=&FORMAT=image/png"
    assert status(server.get("/", query))["detail"] == "composed"  # of tiles that may have to be drawn
    assert status(server.get("/", query)).items() >= {"hit": "", "detail": "composed"}.items()


def test_what_is_no_tile_and_no_map_has_no_status(server):
    for asked in ("/tms/1.0.0/", "/tms/1.0.0/nowhere/0/0/0.png", path("plain", 99)):
        assert server.get(asked).header("Cache-Status") is None


def test_a_duration_is_what_is_left_of_it(server, folder):
    store(folder, "duration", 600)
    answer = server.get(path("duration"))
    assert answer.body == OLD_PIXELS and 2000 < max_age(answer) <= 3000 and answer.header("Age") is None
    store(folder, "duration", 3700, x=1)
    answer = server.get(path("duration", 1))
    assert answer.body != OLD_PIXELS and status(answer).items() >= {"fwd": "stale", "stored": ""}.items()


def test_clients_keep_nothing_beyond_the_next_moment_of_cron(server, folder):
    store(folder, "cron", 0)
    before = seconds_to_new_year()
    answer = server.get(path("cron"))
    assert before - 60 * 60 < max_age(answer) <= before + 1
    store(folder, "short", 0)
    assert max_age(server.get(path("short"))) <= 300
    store(folder, "cron", 370 * DAY, x=1)
    assert server.get(path("cron", 1)).body != OLD_PIXELS


def test_a_date_ends_what_was_made_before(server, folder):
    store(folder, "past", 0)
    answer = server.get(path("past"))
    assert answer.body == OLD_PIXELS and max_age(answer) == 300
    store(folder, "past", 20 * 366 * DAY, x=1)
    assert server.get(path("past", 1)).body != OLD_PIXELS
    store(folder, "future", 20 * 366 * DAY)
    answer = server.get(path("future"))
    assert answer.body == OLD_PIXELS and max_age(answer) < 64 * 366 * DAY


def test_an_old_tile_says_how_old_it_is(server, folder):
    store(folder, "behind", 7200)
    old = server.get(path("behind"))
    assert old.body == OLD_PIXELS and 7200 <= int(old.header("Age")) < 8000
    assert old.header("Cache-Control") == "max-age=0, must-revalidate"
    assert -4400 < int(status(old)["ttl"]) <= -3600 and status(old)["detail"] == "stale" and "hit" in status(old)
    wait_until(lambda: server.get(path("behind")).body != OLD_PIXELS, "it is drawn behind the answers")


def test_none_of_200_clients_waits_and_one_of_two_processes_asks(servers, folder, origin):
    store(folder, "held", 7200)
    before = len(origin.requests())
    clients = [Client(server.address) for server in servers for _ in range(100)]
    for client in clients:
        client.send(path("held").encode())
    answers = [client.receive() for client in clients]  # while the origin holds its answer
    assert {answer.status for answer in answers} == {200} and {answer.body for answer in answers} == {OLD_PIXELS}
    wait_until(lambda: len(origin.requests()) > before, "one asks the origin")
    origin.release("now")
    for server in servers:
        wait_until(lambda: server.get(path("held")).body != OLD_PIXELS, "the new tile goes out")
    assert len(origin.requests()) == before + 1
    for client in clients:
        client.close()


def test_an_error_is_told_beyond_the_bound_of_stale_if_error(server, folder):
    store(folder, "failing", DAY)
    for number in range(2):
        answer = server.get(path("failing"))
        assert answer.status == 200 and answer.body == OLD_PIXELS and int(answer.header("Age")) >= DAY
        left = int(re.fullmatch(r"max-age=0, stale-if-error=(\d+)", answer.header("Cache-Control"))[1])
        assert 2 * DAY <= left <= 2 * DAY + 3600 and status(answer)["detail"] == "failed"
        assert status(answer)["fwd"] == "stale" if number == 0 else "hit" in status(answer)
    store(folder, "bounded", DAY)
    assert server.get(path("bounded")).status >= 500
    store(folder, "bounded", 0, x=1)
    assert "stale-if-error=60" in server.get(path("bounded", 1)).header("Cache-Control")


def test_a_wrong_expiry_is_refused_with_its_line(build, folder):
    for wrong in ("soon", "P1M", "cron: 0 0 30 2 *", "cron: 61 * * * *"):
        config = write(folder, source("one", "http://127.0.0.1:1/"), tileset("base", "one", more=f"\n\n<auto_expire>{wrong}</auto_expire>"), name="wrong.xml")
        line = config.read_text()[:config.read_text().index("<auto_expire>")].count("\n") + 1
        run = subprocess.run([build / "bin/mapcache", "check", config], capture_output=True, text=True, timeout=60)
        assert run.returncode == 1 and f"wrong.xml:{line}:" in run.stdout + run.stderr and "<auto_expire>" in run.stdout + run.stderr

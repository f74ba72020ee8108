"""What happens while an origin is away: how often it is asked, what clients get, what is kept, and what operators see."""
import json
import os
import signal
import subprocess
import threading
import time

import pytest
from conftest import GRID, SOON, wait_until
from drop_in import pixels
from fastcgi import Client
from lifecycle import one_color, source, stored, tile, tileset, write
from origin import Origin
from patience import patience

OPERATORS = '<service type="ready" enabled="true"/><service type="metrics" enabled="true"/>'
ON = "<circuit_breaker>true</circuit_breaker>"
OLD = time.time() - 7200


@pytest.fixture
def origin():
    with Origin() as running:
        yield running


@pytest.fixture
def start(apache, folder):
    """One process, so that all requests meet the same memory."""
    def run(*parts):
        config = write(folder, *parts)
        config.write_text(config.read_text().replace("<locker", OPERATORS + "<locker"))
        return apache(f"StartServers 1\nServerLimit 1\nThreadsPerChild 25\nMaxRequestWorkers 25\nMapCacheAlias /mc {config}\n")
    return run


def counter(web, name):
    for line in web.get("/mc/metrics").body.decode().splitlines():
        if line.startswith(f"mapcache_{name} "):
            return float(line.split()[1])
    raise AssertionError(name)


def away(web):
    return json.loads(web.get("/mc/ready").body)["away"]


@pytest.mark.parametrize("kind", ["wms", "xyz", "wmts"])
def test_an_origin_that_is_away_is_left_alone_and_asked_again_later(start, origin, folder, kind):
    sources = {
        "wms": source("remote", origin.url("/wms?"), ON, layers="red"),
        "xyz": f'<source name="remote" type="xyz"><retries>0</retries><http><url>{origin.url("/wms?LAYERS=red&amp;z={z}&amp;x={x}&amp;y={y}")}</url>{ON}</http></source>',
        "wmts": f'<source name="remote" type="wmts"><retries>0</retries><http><url>{origin.url("/wms?LAYERS=red")}</url>{ON}</http><layer>red</layer><matrix_set>m</matrix_set></source>'}
    if kind == "wmts":  # the origin answers a WMS's requests only
        sources["wmts"] = sources["wmts"].replace("/wms?LAYERS=red", "/wms?LAYERS=red&amp;t={TileMatrix}&amp;r={TileRow}&amp;c={TileCol}")
    web = start(sources[kind], tileset("base", "remote"))
    assert web.get(tile("base", 3, 0, 0)).status == 200 and away(web) == []
    origin.kill()
    assert [web.get(tile("base", 3, x, 1)).status for x in range(3)] == [502] * 3
    refused = [web.get(tile("base", 4, x, 2)) for x in range(6)]
    assert 503 in [reply.status for reply in refused] and all(reply.status >= 502 for reply in refused)
    assert f"http://127.0.0.1:{origin.port}" in away(web) and counter(web, "origin_rests_total") >= 1
    assert web.get(tile("base", 3, 0, 0)).status == 200  # stored
    assert stored(folder, "base") == ["3/0/0.png"]
    origin.start()
    wait_until(lambda: web.get(tile("base", 4, 7, 7)).status == 200, "the origin is asked again", 60)
    assert away(web) == []


def test_repetitions_of_one_request_are_sent_though_each_of_them_fails(start, origin):
    again = source("remote", origin.url("/flaky/8/wms?"), ON).replace("<retries>0", "<retry_delay>0.01</retry_delay><retries>9")
    web = start(again, tileset("base", "remote"))
    assert web.get(tile("base", 1, 0, 0)).status == 200 and len(origin.requests()) == 9


def test_a_bad_layer_is_no_reason_to_leave_an_origin_alone(start, origin):
    web = start(source("bad", origin.url("/status/500?"), ON), source("xml", origin.url("/xml?"), ON), source("good", origin.url("/wms?"), ON),
                tileset("bad", "bad"), tileset("xml", "xml"), tileset("good", "good"))
    for x in range(8):
        assert web.get(tile("bad", 3, x, 0)).status == 502 and web.get(tile("xml", 3, x, 0)).status == 502
    assert web.get(tile("good", 3, 0, 0)).status == 200 and away(web) == []


def test_the_next_source_answers_at_once_while_the_first_is_away(start, origin, folder):
    with Origin() as spare:
        silent = source("silent", origin.url("/hold/never/wms?"), "<timeout>2</timeout>" + ON, layers="blue")
        pair = '<source name="pair" type="fallback"><source>silent</source><source>spare</source></source>'
        web = start(silent, source("spare", spare.url("/wms?"), layers="red"), pair, tileset("base", "pair"))
        for x in range(8):  # the first one waits for two seconds
            assert tuple(pixels(web.get(tile("base", 3, x, 0)).body)[0, 0]) == (255, 0, 0, 255)
        assert 1 <= len(origin.requests()) < 8 and len(stored(folder, "base")) == 8 and len(away(web)) == 1
        origin.release("never")


def test_a_failure_is_remembered_for_as_long_as_the_tileset_says(start, origin, folder):
    web = start(source("remote", origin.url("/flaky/1/wms?")), tileset("base", "remote", metatile="2 2", more="<failure_expires>4</failure_expires>"))
    begun = time.monotonic()
    first = web.get(tile("base", 2, 0, 0))
    replies = [web.get(tile("base", 2, 1, 1)) for _ in range(5)]  # of the same metatile
    if time.monotonic() - begun < 4:
        assert [first.status, *(reply.status for reply in replies)] == [502] * 6 and len(origin.requests()) == 1
        assert counter(web, "remembered_failures_total") == 5
    assert web.get(tile("base", 2, 2, 2)).status == 200  # another metatile is another matter
    wait_until(lambda: web.get(tile("base", 2, 0, 0)).status == 200, "the failure is forgotten", SOON)
    assert time.monotonic() - begun >= 4 and len(stored(folder, "base")) == 8


def test_a_tile_that_the_server_does_not_have_is_not_asked_for_again_and_again(start, origin):
    url = origin.url("/status/404?z={z}&amp;x={x}&amp;y={y}")
    web = start(f'<source name="remote" type="xyz"><http><url>{url}</url></http></source>', tileset("base", "remote", more="<failure_expires>3600</failure_expires>"))
    assert [web.get(tile("base", 2, 0, 0)).status for _ in range(4)] == [404] * 4 and len(origin.requests()) == 1


@pytest.mark.parametrize("limit, served", [("", True), ("<stale_if_error>86400</stale_if_error>", True), ("<stale_if_error>60</stale_if_error>", False)])
def test_an_expired_tile_is_served_while_its_source_fails_if_the_tileset_says_so(start, origin, folder, limit, served):
    place = folder / "tiles/base/2/1/1.png"
    place.parent.mkdir(parents=True)
    for part in [folder / "tiles", *(folder / "tiles").rglob("*")]:
        part.chmod(0o777)
    stale = one_color(256, 256, (1, 2, 3, 255))
    place.write_bytes(stale)
    os.utime(place, (OLD, OLD))
    place.chmod(0o666)
    more = "<auto_expire>60</auto_expire><failure_expires>3600</failure_expires>" + limit
    web = start(source("remote", origin.url("/status/503?")), tileset("base", "remote", more=more))
    for _ in range(3):
        reply = web.get(tile("base", 2, 1, 1))
        assert (reply.status == 200 and reply.body == stale) if served else reply.status >= 502
    assert len(origin.requests()) == 1 and place.read_bytes() == stale
    assert counter(web, "stale_tiles_total") == (3 if served else 0)


def test_pauses_between_repetitions_are_not_all_the_same(start, origin):
    slow = source("remote", origin.url("/status/502?")).replace("<retries>0", "<retry_delay>0.2</retry_delay><retries>2")
    web = start(slow, tileset("base", "remote"))
    begun = time.monotonic()
    assert web.get(tile("base", 2, 0, 0)).status == 502 and len(origin.requests()) == 3
    assert 0.44 <= time.monotonic() - begun < patience(SOON)  # three quarters of 0.2 and 0.4 s at least


def test_a_request_without_time_left_spoils_nothing_for_the_next_one(start, origin):
    """Its tile in another grid needs two tiles: waiting for the first one leaves no time for the second."""
    coarse = """<grid name="coarse"><srs>EPSG:3857</srs><extent>-20037508.342789248 -20037508.342789248 20037508.342789248 20037508.342789248</extent>
    <size>512 256</size><units>m</units><resolutions>39135.758482010240</resolutions></grid>"""
    by_column = f'<source name="slow" type="xyz"><retries>0</retries><http><url>{origin.url("/hold/{x}/wms?LAYERS=red&amp;z={z}&amp;y={y}")}</url></http></source>'
    web = start(coarse, by_column, '<source name="again" type="tileset"><tileset>base</tileset></source>', "<deadline>6</deadline>",
                tileset("base", "slow", more="<failure_expires>3600</failure_expires>"),
                '<tileset name="wide"><source>again</source><cache>disk</cache><grid>coarse</grid><format>PNG</format></tileset>')
    replies = []
    asking = threading.Thread(target=lambda: replies.append(web.get("/mc/tms/1.0.0/wide@coarse/0/0/0.png")))
    asking.start()
    wait_until(lambda: len(origin.requests()) == 1, "the first tile is asked for")
    time.sleep(3.3)  # more than half of the six seconds is to be over, and not all of them: what the first tile waits for that long is remembered
    origin.release("0")
    asking.join()
    assert replies[0].status in (503, 504)
    origin.release("1")
    assert [web.get(tile("base", 2, x, 0)).status for x in (0, 1)] == [200, 200] and counter(web, "remembered_failures_total") == 0


def test_another_configuration_knows_nothing_of_failures(fcgi, site, origin, folder):
    def configure(path):
        more = "<failure_expires>3600</failure_expires>"
        site.config.write_text(write(folder, source("remote", origin.url(path)), tileset("base", "remote", more=more)).read_text())

    configure("/status/500?")
    program = fcgi()
    get = tile("base", 2, 0, 0)[3:].encode()
    assert [Client(program.address).get(get).status for _ in range(2)] == [502, 502] and len(origin.requests()) == 1
    configure("/wms?")
    program.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "reloaded config file" in program.log(), "the configuration is loaded again")
    assert Client(program.address).get(get).status == 200


def test_tilesets_of_the_same_name_share_no_failure(apache, origin, folder):
    aliases = ""
    for name, path in [("bad", "/status/500?"), ("good", "/wms?")]:
        own = folder / name
        own.mkdir()
        config = write(own, source("remote", origin.url(path)), tileset("base", "remote", more="<failure_expires>3600</failure_expires>"))
        aliases += f"MapCacheAlias /{name} {config}\n"
    web = apache("StartServers 1\nServerLimit 1\nThreadsPerChild 25\nMaxRequestWorkers 25\n" + aliases)
    assert [web.get(tile("base", 2, 0, 0).replace("/mc", place)).status for place in ("/bad", "/bad", "/good")] == [502, 502, 200]
    assert len(origin.requests()) == 2


def test_the_log_says_once_that_expired_tiles_are_served(start, origin, folder):
    for x in range(6):
        place = folder / f"tiles/base/3/{x}/1.png"
        place.parent.mkdir(parents=True)
        place.write_bytes(one_color(256, 256, (1, 2, 3, 255)))
        os.utime(place, (OLD, OLD))
        place.chmod(0o666)
    for part in [folder / "tiles", *(folder / "tiles").rglob("*")]:
        part.chmod(0o777)
    web = start(source("remote", origin.url("/status/503?")), tileset("base", "remote", more="<auto_expire>60</auto_expire><failure_expires>3600</failure_expires>"))
    begun = time.monotonic()
    assert [web.get(tile("base", 3, x, 1)).status for x in range(6) for _ in range(3)] == [200] * 18
    told = [line for line in web.log().splitlines() if "serves tiles that have expired" in line and "warn" in line]
    assert len(told) == 1 or time.monotonic() - begun > 60
    assert 'tileset "base"' in told[0] and "status 503" in told[0]


def test_the_log_says_once_that_a_fallback_is_asked(start, origin):
    with Origin() as spare:
        web = start(source("first", origin.url("/status/500?")), source("spare", spare.url("/wms?")),
                    '<source name="pair" type="fallback"><source>first</source><source>spare</source></source>', tileset("base", "pair"))
        begun = time.monotonic()
        assert [web.get(tile("base", 3, x, 1)).status for x in range(6)] == [200] * 6
        told = [line for line in web.log().splitlines() if "its fallback is tried" in line and "warn" in line]
        assert (len(told) == 1 or time.monotonic() - begun > 60) and 'source "first"' in told[0] and "status 500" in told[0]


def test_answers_that_are_too_large_are_no_reason_to_leave_an_origin_alone(start, origin):
    bad = f'<source name="bad" type="xyz"><retries>0</retries><http><url>{origin.url("/huge/9000000?z={z}&amp;x={x}&amp;y={y}")}</url>{ON}</http></source>'
    chunked = bad.replace('"bad"', '"chunked"').replace("/huge/", "/stream/")
    web = start(bad, chunked, source("good", origin.url("/wms?"), ON), tileset("bad", "bad"), tileset("chunked", "chunked"), tileset("good", "good"))
    for x in range(8):
        assert web.get(tile("bad", 3, x, 0)).status == 502 and web.get(tile("chunked", 3, x, 0)).status == 502
    assert web.get(tile("good", 3, 0, 0)).status == 200 and away(web) == []


PAIR = '<source name="pair" type="fallback"><source>first</source><source>spare</source><fallback_expires>%s</fallback_expires></source>'


def max_age(reply):
    return int(reply.headers["Cache-Control"].split("max-age=")[1].split(",")[0])


def test_what_a_fallback_draws_is_kept_for_a_while_and_not_stored(start, origin, folder):
    with Origin() as spare:
        web = start(source("first", origin.url("/flaky/1/wms?"), layers="red"), source("spare", spare.url("/wms?"), layers="blue"), PAIR % 4,
                    tileset("base", "pair", metatile="2 2", more="<expires>3600</expires>"))
        begun = time.monotonic()
        replies = [web.get(tile("base", 3, x, y)) for x in (0, 1) for y in (0, 1)] + [web.get(tile("base", 3, 0, 0))]
        if time.monotonic() - begun < 4:
            assert [reply.status for reply in replies] == [200] * 5 and all(1 <= max_age(reply) <= 4 for reply in replies)
            assert all(tuple(pixels(reply.body)[0, 0]) == (0, 0, 255, 255) for reply in replies)
            assert len(origin.requests()) == len(spare.requests()) == 1 and stored(folder, "base") == []
        wait_until(lambda: tuple(pixels(web.get(tile("base", 3, 0, 0)).body)[0, 0]) == (255, 0, 0, 255), "the first source is asked again", SOON)
        assert time.monotonic() - begun >= 4 and len(stored(folder, "base")) == 4
        assert max_age(web.get(tile("base", 3, 1, 1))) == 3600


def test_whoever_waits_for_a_tile_of_a_fallback_gets_it(start, origin, folder):
    with Origin() as spare:
        web = start(source("first", origin.url("/status/500?")), source("spare", spare.url("/hold/it/wms?"), layers="blue"), PAIR % 3600,
                    tileset("base", "pair", metatile="4 4"))
        replies = []
        clients = [threading.Thread(target=lambda x=x: replies.append(web.get(tile("base", 3, x % 4, x // 4)))) for x in range(12)]
        for client in clients:
            client.start()
        wait_until(lambda: len(spare.requests()) == 1, "the fallback is asked")
        spare.release("it")
        for client in clients:
            client.join()
        assert [(reply.status, tuple(pixels(reply.body)[0, 0])) for reply in replies] == [(200, (0, 0, 255, 255))] * 12
        assert len(spare.requests()) == 1 and stored(folder, "base") == []


def test_what_is_drawn_of_provisional_tiles_is_provisional(start, origin, folder):
    with Origin() as spare:
        web = start(source("first", origin.url("/status/500?")), source("spare", spare.url("/wms?"), layers="blue"), PAIR % 3600, tileset("base", "pair"),
                    '<source name="again" type="tileset"><tileset>base</tileset></source>',
                    '<tileset name="degrees"><source>again</source><cache>disk</cache><grid>WGS84</grid><format>PNG</format></tileset>')
        reply = web.get("/mc/tms/1.0.0/degrees@WGS84/2/3/2.png")
        assert reply.status == 200 and tuple(pixels(reply.body)[128, 128]) == (0, 0, 255, 255)
        assert stored(folder, "base") == stored(folder, "degrees") == []


def test_a_source_without_a_tile_there_has_not_failed(start, origin, folder):
    with Origin() as spare:
        absent = f'<source name="first" type="xyz"><http><url>{origin.url("/status/404?z={z}&amp;x={x}&amp;y={y}")}</url></http></source>'
        web = start(absent, source("spare", spare.url("/wms?"), layers="blue"), PAIR % 3600, tileset("base", "pair"))
        assert web.get(tile("base", 1, 0, 0)).status == 200 and stored(folder, "base") == ["1/0/0.png"]


def test_an_expired_tile_gives_way_to_what_a_fallback_draws_and_stays_stored(start, origin, folder):
    place = folder / "tiles/base/2/1/1.png"
    place.parent.mkdir(parents=True)
    stale = one_color(256, 256, (1, 2, 3, 255))
    place.write_bytes(stale)
    os.utime(place, (OLD, OLD))
    for part in [folder / "tiles", *(folder / "tiles").rglob("*")]:
        part.chmod(0o777)
    with Origin() as spare:
        web = start(source("first", origin.url("/status/500?")), source("spare", spare.url("/wms?"), layers="blue"), PAIR % 3600,
                    tileset("base", "pair", more="<auto_expire>60</auto_expire>"))
        replies = [web.get(tile("base", 2, 1, 1)) for _ in range(3)]
        assert [tuple(pixels(reply.body)[0, 0]) for reply in replies] == [(0, 0, 255, 255)] * 3 and len(spare.requests()) == 1
        assert place.read_bytes() == stale


def test_a_seeder_does_not_take_a_fallback_for_the_source(build, origin, folder):
    with Origin() as spare:
        config = write(folder, source("first", origin.url("/status/500?")), source("spare", spare.url("/wms?")), PAIR % 60, tileset("base", "pair"))
        done = subprocess.run([build / "bin/mapcache", "seed", "-c", config, "-t", "base", "-g", GRID, "-z", "0,1", "-n", "1"], capture_output=True, text=True)
        assert done.returncode != 0 and stored(folder, "base") == [] and "in place of better ones" in done.stdout + done.stderr


def test_check_names_each_origin_that_does_not_answer(build, origin, folder):
    with Origin() as gone:
        away = gone.url("/{z}/{x}/{y}.png")
    plain = '<source name="%s" type="%s"><http><url>%s</url></http>%s</source>'
    service = "<layer>l</layer><matrix_set>m</matrix_set>"
    config = write(folder, plain % ("gone", "xyz", away + "?api_key=verysecret", ""), plain % ("kvp", "wmts", away.split("{")[0], service),
                   plain % ("dated", "xyz", away.replace("{z}", "{dim:day}/{z}"), ""),
                   source("closed", origin.url("/status/403?")), source("ill", origin.url("/status/503?")), source("lame", origin.url("/huge/9000000?")),
                   source("fine", origin.url("/wms?")), plain % ("bare", "xyz", origin.url("/status/404?z={z}&amp;x={x}&amp;y={y}"), ""),
                   '<source name="all" type="fallback"><source>gone</source><source>kvp</source><source>dated</source><source>closed</source><source>ill</source>'
                   '<source>lame</source><source>fine</source><source>bare</source></source>', tileset("base", "all"), tileset("again", "fine"))
    done = subprocess.run([build / "bin/mapcache", "check", "--connect", config], capture_output=True, text=True)
    said = done.stdout + done.stderr
    for name in ("gone", "kvp", "dated", "closed", "ill"):
        assert said.count(f'source "{name}"') == 1, said
    assert "status 403" in said and "status 503" in said and "verysecret" not in said
    assert all(f'source "{name}"' not in said for name in ("lame", "fine", "bare")) and len(origin.requests()) == 5

"""What happens while an origin is away: how often it is asked, what clients get, what is kept, and what operators see."""
import json
import os
import time

import pytest
from conftest import SOON, wait_until
from drop_in import pixels
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
    assert [web.get(tile("base", 3, x, 1)).status for x in range(5)] == [502] * 5
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
        for x in range(8):  # five of them wait for two seconds
            assert tuple(pixels(web.get(tile("base", 3, x, 0)).body)[0, 0]) == (255, 0, 0, 255)
        assert 5 <= len(origin.requests()) < 8 and len(stored(folder, "base")) == 8 and len(away(web)) == 1
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

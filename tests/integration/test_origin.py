"""A tile's life with a scripted origin: rendered in metatiles, kept, expired, watermarked, hidden, made larger; and what
an origin does wrong is never kept."""
import os
import time

import numpy
import pytest
from conftest import SOON, fetch, wait_until
from drop_in import pixels
from lifecycle import HALF, box, one_color, source, stored, tile, tileset, write
from origin import Origin, pattern
from patience import patience
from threading import Thread

OLD = time.time() - 7200


@pytest.fixture(scope="module")
def origin():
    with Origin() as running:
        yield running


@pytest.fixture
def start(apache, folder, origin):
    """start(*parts): httpd with these sources, tilesets, ... and the number of origin requests since then."""

    def run(*parts, **options):
        web = apache(f"MapCacheAlias /mc {write(folder, *parts, **options)}\n")
        before = len(origin.requests())
        web.origin_requests = lambda: origin.requests()[before:]
        return web

    return run


def expected(z, x, y):
    west, south, east, north = box(z, x, y)
    return pixels(pattern({"WIDTH": "256", "HEIGHT": "256", "BBOX": f"{west},{south},{east},{north}"}))


def test_a_metatile_is_asked_for_once_and_cut_to_the_pixel(start, origin, folder):
    web = start(source("pattern", origin.url("/pattern?")), tileset("base", metatile="3 2", more="<metabuffer>7</metabuffer>"))
    for x, y in [(0, 0), (2, 1), (1, 0)]:
        reply = web.get(tile("base", 2, x, y))
        assert reply.status == 200 and numpy.array_equal(pixels(reply.body), expected(2, x, y))
    request, = web.origin_requests()
    assert (request["params"]["WIDTH"], request["params"]["HEIGHT"]) == (str(3 * 256 + 14), str(2 * 256 + 14))
    assert request["params"]["SRS"] == "EPSG:3857" and request["params"]["LAYERS"] == "pattern"
    margin = 7 * 2 * HALF / 1024
    asked = [float(number) for number in request["params"]["BBOX"].split(",")]
    assert numpy.allclose(asked, (-HALF - margin, -HALF - margin, HALF / 2 + margin, margin), atol=0.001)
    assert stored(folder, "base") == [f"2/{x}/{y}.png" for x in range(3) for y in range(2)]
    assert numpy.array_equal(pixels(web.get(tile("base", 2, 3, 1)).body), expected(2, 3, 1))
    assert web.origin_requests()[-1]["params"]["WIDTH"] == str(256 + 14)  # cut to the level's edge


# what the origin does, the status that the client sees
WRONG = [("/status/500", 502), ("/status/404", 502), ("/xml", 502), ("/half/wms", 502), ("/cut/wms", 502),
         ("/silent", 502), ("/loop", 502), ("/late/60000/pattern", 504), ("/drip/1000", 504)]


@pytest.mark.parametrize("service", ["tms", "wms"])
def test_what_an_origin_does_wrong_is_neither_kept_nor_told(start, origin, folder, service):
    parts = [source(f"s{i}", origin.url(path + "?"), "<timeout>1</timeout>") for i, (path, _) in enumerate(WRONG)]
    parts += [tileset(f"t{i}", f"s{i}") for i in range(len(WRONG))]
    web = start(*parts, source("down", "http://127.0.0.1:9/?"), tileset("down", "down"))
    for name, status in [(f"t{i}", status) for i, (_, status) in enumerate(WRONG)] + [("down", 502)]:
        path = tile(name, 1, 0, 0)
        if service == "wms":
            path = ("/mc?SERVICE=WMS&REQUEST=GetMap&VERSION=1.1.1&STYLES=&FORMAT=image/png&SRS=EPSG:3857&WIDTH=256"
                    f"&HEIGHT=256&LAYERS={name}&BBOX=-{HALF},-{HALF},0,0")
        begun = time.monotonic()
        reply = web.get(path)
        assert reply.status == status, (name, reply.body)
        assert time.monotonic() - begun < patience(SOON), name
        told = reply.body + str(reply.headers).encode()
        assert b"127.0.0.1" not in told and b"secret" not in told and str(folder).encode() not in told
        assert not reply.headers["Cache-Control"] or "max-age" not in reply.headers["Cache-Control"]
    assert list((folder / "tiles").rglob("*.*")) == []
    assert str(origin.port) in web.log()  # the administrator is told


def test_an_origin_that_recovers_is_asked_again(start, origin):
    web = start(source("pattern", origin.url("/flaky/1/pattern?")), tileset("base"))
    assert web.get(tile("base", 1, 0, 0)).status == 502
    time.sleep(1.1)  # an error is shared for a second
    reply = web.get(tile("base", 1, 0, 0))
    assert reply.status == 200 and numpy.array_equal(pixels(reply.body), expected(1, 0, 0))
    assert len(web.origin_requests()) == 2


def age(folder, name="base/2/1/1.png"):
    os.utime(folder / "tiles" / name, (OLD, OLD))
    (folder / "tiles" / name).chmod(0o666)


def test_an_expired_tile_is_rendered_again(start, origin, folder):
    web = start(source("pattern", origin.url("/pattern?")), tileset("base", more="<auto_expire>3600</auto_expire>"))
    first = web.get(tile("base", 2, 1, 1))
    assert first.status == 200
    age_left = int(first.headers["Cache-Control"].split("max-age=")[1].split(",")[0])
    assert 3590 <= age_left <= 3600
    assert web.get(tile("base", 2, 1, 1)).body == first.body and len(web.origin_requests()) == 1
    age(folder)
    again = web.get(tile("base", 2, 1, 1))
    assert again.status == 200 and again.body == first.body and len(web.origin_requests()) == 2
    assert (folder / "tiles/base/2/1/1.png").stat().st_mtime > OLD + 3600


def test_an_expired_tile_is_served_while_one_client_waits_for_the_next(start, origin, folder):
    web = start(source("pattern", origin.url("/hold/expired/pattern?")), tileset("base", more="<auto_expire>60</auto_expire>"))
    (folder / "tiles/base/2/1").mkdir(parents=True)
    for place in [folder / "tiles", *(folder / "tiles").rglob("*")]:
        place.chmod(0o777)
    stale = one_color(256, 256, (1, 2, 3, 255))
    (folder / "tiles/base/2/1/1.png").write_bytes(stale)
    age(folder)
    replies = []
    leader = Thread(target=lambda: replies.append(web.get(tile("base", 2, 1, 1))))
    leader.start()
    wait_until(lambda: len(web.origin_requests()) == 1, "the origin is asked")
    others = [web.get(tile("base", 2, 1, 1)) for _ in range(5)]
    assert not replies
    origin.release("expired")
    leader.join()
    assert [reply.status for reply in others] == [200] * 5
    assert {reply.body for reply in others} == {stale}
    fresh = web.get(tile("base", 2, 1, 1))
    assert numpy.array_equal(pixels(fresh.body), expected(2, 1, 1)) and len(web.origin_requests()) == 1


def test_an_expired_tile_is_served_when_the_origin_fails(start, origin, folder):
    web = start(source("broken", origin.url("/status/500?")),
                tileset("base", "broken", more="<auto_expire>60</auto_expire>"))
    (folder / "tiles/base/2/1").mkdir(parents=True)
    stale = one_color(256, 256, (1, 2, 3, 255))
    (folder / "tiles/base/2/1/1.png").write_bytes(stale)
    age(folder)
    reply = web.get(tile("base", 2, 1, 1))
    assert (reply.status, reply.body) == (200, stale) and len(web.origin_requests()) == 1
    assert (folder / "tiles/base/2/1/1.png").read_bytes() == stale


def test_a_watermark_stands_in_the_middle_of_every_tile(start, origin, folder):
    (folder / "mark.png").write_bytes(one_color(20, 10, (255, 0, 0, 255)))
    (folder / "faint.png").write_bytes(one_color(20, 10, (255, 0, 0, 128)))
    web = start(source("pattern", origin.url("/pattern?")),
                tileset("base", metatile="2 2", more=f"<watermark>{folder}/mark.png</watermark>"),
                tileset("faint", metatile="2 2", more=f"<watermark>{folder}/faint.png</watermark>"))
    for x, y in [(1, 1), (2, 2)]:
        shown, plain = pixels(web.get(tile("base", 2, x, y)).body), expected(2, x, y)
        assert (shown[123:133, 118:138] == (255, 0, 0, 255)).all()
        plain[123:133, 118:138] = (255, 0, 0, 255)
        assert numpy.array_equal(shown, plain)
        faint = pixels(web.get(tile("faint", 2, x, y)).body)[128, 128]
        assert numpy.abs(faint - (expected(2, x, y)[128, 128] * 127 + numpy.array([255, 0, 0, 255]) * 128) / 255).max() <= 1
    stamped = (folder / "tiles/base/2/1/1.png").read_bytes()
    assert (pixels(stamped)[128, 128] == (255, 0, 0, 255)).all()


def test_levels_beyond_the_last_kept_one_are_made_of_it(start, origin, folder):
    web = start(source("pattern", origin.url("/pattern?")),
                tileset("base", link='max-cached-zoom="2" out-of-zoom-strategy="reassemble" maxzoom="6"'))
    reply = web.get(tile("base", 4, 6, 5))
    assert reply.status == 200 and reply.headers["Content-Type"] == "image/png"
    shown = pixels(reply.body)
    kept = expected(2, 1, 1)[128:192, 128:192]  # the south half's upper rows: y 5 is the second quarter from the south
    assert numpy.abs(shown[6:-4:4, 6:-4:4] - kept[1:-1, 1:-1]).max() <= 1
    assert (numpy.diff(shown[128, 8:-8, 0]) >= 0).all() and len(set(shown[128, :, 0])) >= 60  # no steps of four
    assert stored(folder, "base") == ["2/1/1.png"] and len(web.origin_requests()) == 1
    assert web.get(tile("base", 7, 0, 0)).status == 404


def test_rulesets_hide_tiles_without_asking_anyone(start, origin, folder):
    ruleset = f"""<ruleset name="north"><rule zoom_level="3">
      <visibility hidden_color="80FF0000"><extent>-{HALF} 10018755 -10018755 {HALF}</extent></visibility></rule>
      <rule zoom_level="2"><visibility hidden_color="00FF00"><extent>0 0 1 1</extent></visibility></rule></ruleset>"""
    web = start(source("pattern", origin.url("/pattern?")), ruleset,
                tileset("base", link='ruleset="north" tolerance="0"'))
    assert numpy.array_equal(pixels(web.get(tile("base", 3, 0, 7)).body), expected(3, 0, 7))
    assert len(web.origin_requests()) == 1
    half_red = pixels(web.get(tile("base", 3, 6, 1)).body)
    assert half_red.shape == (256, 256, 4) and (numpy.abs(half_red - (255, 0, 0, 128)) <= 1).all()
    assert (pixels(web.get(tile("base", 2, 0, 0)).body) == (0, 255, 0, 255)).all()
    assert len(web.origin_requests()) == 1 and stored(folder, "base") == ["3/0/7.png"]
    assert numpy.array_equal(pixels(web.get(tile("base", 1, 0, 0)).body), expected(1, 0, 0))  # no rule for this level


def test_read_only_tilesets_ask_and_write_nothing(start, origin, folder):
    web = start(source("pattern", origin.url("/pattern?")), tileset("base", more="<read-only>true</read-only>"),
                tileset("lone", None))
    for name in ("base", "lone"):
        reply = web.get(tile(name, 2, 1, 1))
        assert reply.status == 200 and reply.headers["Content-Type"] == "image/png"
        assert reply.headers["Last-Modified"] is None
        assert pixels(reply.body).shape == (256, 256, 4) and not pixels(reply.body).any()
    assert web.origin_requests() == [] and not (folder / "tiles").exists()


def test_restricted_extents_have_tolerance(start, origin):
    extent = "-1000000 -1000000 1000000 1000000"  # within tiles 15 and 16 of level 5
    web = start(source("pattern", origin.url("/pattern?")),
                tileset("tight", link=f'restricted_extent="{extent}" tolerance="0"'),
                tileset("loose", link=f'restricted_extent="{extent}" tolerance="2"'),
                tileset("usual", link=f'restricted_extent="{extent}"'),
                tileset("levels", link='minzoom="2" maxzoom="3"'))
    for name, tolerance in [("tight", 0), ("loose", 2), ("usual", 5)]:
        for x, status in [(15 - tolerance, 200), (16 + tolerance, 200), (14 - tolerance, 404), (17 + tolerance, 404)]:
            assert web.get(tile(name, 5, x, 15)).status == status, (name, x)
            assert web.get(tile(name, 5, 16, x)).status == status, (name, x)
    assert [web.get(tile("levels", z, 0, 0)).status for z in (1, 2, 3, 4)] == [404, 200, 200, 404]


def test_headers_of_the_client_reach_the_origin_where_asked(start, origin):
    headers = "<headers><X-Client>{User-Agent}/fixed</X-Client><X-None>{X-Missing}</X-None></headers>"
    web = start(source("pattern", origin.url("/pattern?a=1&amp;"), headers), tileset("base"))
    assert fetch(web.port, tile("base", 0, 0, 0), {"User-Agent": "tester"}).status == 200
    request, = web.origin_requests()
    assert request["headers"]["x-client"] == "tester/fixed"
    assert request["params"]["A"] == "1" and request["headers"]["user-agent"].startswith("mod-mapcache/")


def test_origin_connections_are_kept(start, origin):
    web = start(source("pattern", origin.url("/pattern?")), tileset("base"))
    for x in range(12):
        assert web.get(tile("base", 4, x, 3)).status == 200
    requests = web.origin_requests()
    assert len(requests) == 12 and len({request["connection"] for request in requests}) <= 4  # two processes


def test_maps_forwarded_whole(start, origin):
    web = start(source("pattern", origin.url("/pattern?")), tileset("base"), full_wms="forward")
    bbox = "-7000000,-3000000,1000000,3000000"
    reply = web.get("/mc?SERVICE=WMS&REQUEST=GetMap&VERSION=1.1.1&STYLES=&FORMAT=image/png&SRS=EPSG:3857&WIDTH=400"
                    f"&HEIGHT=300&LAYERS=base&BBOX={bbox}")
    assert reply.status == 200
    assert numpy.array_equal(pixels(reply.body), pixels(pattern({"WIDTH": "400", "HEIGHT": "300", "BBOX": bbox})))
    request, = web.origin_requests()
    assert (request["params"]["WIDTH"], request["params"]["HEIGHT"]) == ("400", "300")

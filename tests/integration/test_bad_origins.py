"""Origins that answer late, wrongly, endlessly or not at all: 502 or 504 in time, nothing of it stored or shown, the
program's memory bounded, and the next good answer heals it."""

import sqlite3
import time

import pytest
from conftest import GRID
from fastcgi import Server
from origin import Origin
from patience import patience

DEADLINE = 3
LARGEST = 400_000  # KB of resident memory after any of it; a sanitizer's own included

# What the origin does, and the status.
BAD = {
    "late": ("/late/30000/wms", (504,)),
    "drip": ("/drip/1000", (504,)),
    "silent": ("/silent", (502,)),
    "reset": ("/reset", (502,)),
    "garbage": ("/garbage", (502,)),
    "status 500": ("/status/500", (502,)),
    "status 404": ("/status/404", (502,)),
    "status 204": ("/status/204", (502,)),
    "status 206": ("/status/206", (502,)),
    "status 301 to nowhere": ("/status/301", (502,)),
    "status 999": ("/status/999", (502,)),
    "exception": ("/xml", (502,)),
    "html": ("/says/html", (502,)),
    "json": ("/says/json", (502,)),
    "nothing": ("/says/nothing", (502,)),
    "text": ("/says/text", (502,)),
    "gif": ("/says/gif", (502,)),
    "half": ("/half", (502,)),
    "cut": ("/cut", (502,)),
    "tiny": ("/tiny", (502,)),
    "large": ("/large", (502, 504)),
    "length of a gigabyte": ("/huge/1000000000", (502, 504)),
    "stream of a gigabyte": ("/stream/1000000000", (502, 504)),
    "bomb": ("/bomb/200000000", (502, 504)),
    "headers": ("/headers/5000", (502, 504)),
    "loop": ("/loop", (502,)),
    "redirect": ("/redirect/100/wms", (502,)),
}
ELSEWHERE = ["file:///etc/passwd", "file://localhost/etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1:9/x",
             "dict://127.0.0.1:9/",
             "//", "javascript:alert(1)", "http://127.0.0.1:1/"]


def config(folder, url, format_name="PNG"):
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache>
  <deadline>{DEADLINE}</deadline>
  <cache name="files" type="sqlite3"><dbfile>{folder}/store.sqlite3</dbfile></cache>
  <cache name="other" type="disk"><base>{folder}/files</base></cache>
  <source name="origin" type="wms">
    <getmap><params><FORMAT>image/png</FORMAT><LAYERS>red</LAYERS></params></getmap>
    <getfeatureinfo><info_formats>text/plain</info_formats><params><QUERY_LAYERS>any</QUERY_LAYERS></params></getfeatureinfo>
    <http><url>{url.replace("&", "&amp;")}</url></http></source>
  <tileset name="layer"><cache>files</cache><source>origin</source><grid>{GRID}</grid><format>{format_name}</format>
    <metatile>2 2</metatile></tileset>
  <tileset name="disk"><cache>other</cache><source>origin</source><grid>{GRID}</grid><format>{format_name}</format>
    <metatile>1 1</metatile></tileset>
  <service type="wmts" enabled="true"/>
  <service type="wms" enabled="true"><format>PNG</format><full_wms>forward</full_wms></service>
  <lock_dir>{folder}</lock_dir>
</mapcache>
""")
    return path


def tile(layer="layer"):
    return f"/wmts/1.0.0/{layer}/default/{GRID}/1/0/0.png"


def stored(folder):
    rows = 0
    if (folder / "store.sqlite3").exists():
        database = sqlite3.connect(folder / "store.sqlite3")
        rows = database.execute("select count(*) from sqlite_master where name = 'tiles'").fetchone()[0]
        if rows:
            rows = database.execute("select count(*) from tiles").fetchone()[0]
        database.close()
    return rows + len([path for path in (folder / "files").rglob("*") if path.is_file()])


def check(answer, statuses, origin, what, seconds=DEADLINE + 20):
    assert answer.status in statuses, (what, answer.status, answer.body[:300])
    assert answer.took < patience(seconds), (what, answer.took)
    for secret in (b":%d" % origin.port, b"127.0.0.1", b"secret", b"root:x:", b"<script>"):
        assert secret not in answer.body, (what, answer.body[:500])
    assert answer.status == 200 or len(answer.body) < 5000


def resident(server):
    with open(f"/proc/{server.program.process.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


@pytest.fixture(scope="module")
def origin():
    with Origin() as running:
        yield running


@pytest.mark.parametrize("kind", BAD)
def test_bad_answers(build, folder, origin, kind):
    """Tiles, maps and feature info of it; then the origin is well again, and so is the tile."""
    path, statuses = BAD[kind]
    server = Server(build, config(folder, origin.url(path + "?")), folder)
    check(server.get(tile()), statuses, origin, "tile")
    if statuses != (504,):
        check(server.get(tile("disk")), statuses, origin, "tile on disk")
    box = "-20000000,0,0,20000000"
    check(server.get("/", f"SERVICE=WMS&REQUEST=GetMap&LAYERS=layer&SRS=EPSG:3857&BBOX={box}&WIDTH=300&HEIGHT=300"),
          (200, *statuses) if kind in ("tiny", "large") else statuses, origin, "map")  # forwarded as it comes
    info = server.get("/wmts",
                      f"SERVICE=WMTS&REQUEST=GetFeatureInfo&LAYER=layer&TILEMATRIXSET={GRID}&TILEMATRIX=1&TILEROW=0"
                      "&TILECOL=0&I=3&J=3&INFOFORMAT=text/plain")
    assert info.status in (200, 502, 504) and info.took < patience(DEADLINE + 20), (info.status, info.took)
    assert stored(folder) == 0
    assert resident(server) < LARGEST, f"{resident(server)} KB"
    server.stop()


@pytest.mark.parametrize("kind", ["status 500", "exception", "half", "silent", "tiny", "late"])
def test_the_next_good_answer_heals(build, folder, origin, kind):
    path, statuses = BAD[kind]
    server = Server(build,
                    config(folder,
                           origin.url(f"/first/{1 if kind in ('late', 'tiny') else 2}{path}?case={kind.replace(' ', '')}&")), folder)
    check(server.get(tile()), statuses, origin, "tile")
    assert stored(folder) == 0
    time.sleep(1.1)  # who asks again at once shares the error
    answer = server.get(tile())
    assert answer.status == 200 and answer.body.startswith(b"\x89PNG"), answer.body[:200]
    assert stored(folder) == 4
    server.stop()


@pytest.mark.parametrize("target", ELSEWHERE)
def test_redirects_leave_http_for_nothing(build, folder, origin, target):
    server = Server(build, config(folder, origin.url(f"/elsewhere?TO={target}&")), folder)
    check(server.get(tile()), (502,), origin, target)
    check(server.get("/wmts",
                     f"SERVICE=WMTS&REQUEST=GetFeatureInfo&LAYER=layer&TILEMATRIXSET={GRID}&TILEMATRIX=1&TILEROW=0"
                     "&TILECOL=0&I=3&J=3&INFOFORMAT=text/plain"), (502,), origin, target)
    assert stored(folder) == 0
    server.stop()


def test_nobody_listens(build, folder, origin):
    server = Server(build, config(folder, "http://127.0.0.1:1/wms?"), folder)
    check(server.get(tile()), (502,), origin, "refused")
    server.stop()
    server = Server(build, config(folder, "http://no-such-host.invalid/wms?"), folder)
    check(server.get(tile()), (502, 504), origin, "unknown name", seconds=40)
    assert stored(folder) == 0
    server.stop()


@pytest.mark.parametrize("kind", ["half", "text", "gif"])
def test_raw_and_mixed_tilesets_store_no_rubbish(build, folder, origin, kind):
    path, statuses = BAD[kind]
    server = Server(build, config(folder, origin.url(path + "?"), "mixed"), folder)
    check(server.get(tile()), statuses, origin, "mixed")
    check(server.get(tile("disk")), statuses, origin, "mixed on disk")
    assert stored(folder) == 0
    server.stop()

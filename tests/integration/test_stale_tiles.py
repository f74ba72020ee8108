"""Tiles that somebody says are old, by command, by expire list, by a watched folder or by HTTP: servers show them at once as they were,
draw them anew behind the answers, and nothing else."""
import contextlib
import http.server
import json
import os
import sqlite3
import subprocess
import threading
import urllib.parse

import pytest
from conftest import SOON, png, sanitizer_environment, wait_until
from patience import patience

HALF = 20037508.342789244
TOKEN = "aa5b0c77d1e94f3e8f1c"
STORES = {
    "disk": '<cache name="disk" type="disk"><base>{folder}/tiles</base></cache>',
    "sqlite3": '<cache name="sqlite3" type="sqlite3"><dbfile>{folder}/tiles.db</dbfile></cache>',
    "lmdb": '<cache name="lmdb" type="lmdb"><base>{folder}/lmdb</base></cache>',
    "mbtiles": '<cache name="mbtiles" type="mbtiles"><dbfile>{folder}/{{tileset}}.mbtiles</dbfile></cache>',
}


class Map:
    """A WMS whose maps have one colour; counts what was asked for."""

    def __init__(self):
        self.shade, self.boxes = 10, []
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                query = {name.upper(): value for name, value in urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query)}
                site.boxes.append(query["BBOX"])
                body = png(int(query["WIDTH"]), int(query["HEIGHT"]), lambda i, j: (site.shade % 256, i % 2, j % 2))
                self.send_response(200)
                self.send_header("Content-Type", "image/png")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/?"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


class Site:
    def __init__(self, build, folder, origin):
        self.build, self.folder, self.origin = build, folder, origin
        self.config, self.lists, self.token = folder / "mapcache.xml", folder / "lists", folder / "token"
        self.lists.mkdir()
        self.lists.chmod(0o777)
        self.token.write_text(TOKEN + "\n")
        with contextlib.closing(sqlite3.connect(folder / "scenes.db")) as file:
            file.executescript("CREATE TABLE scene(id text); INSERT INTO scene VALUES ('a'), ('b')")
        tilesets = "".join(f'<tileset name="{name}"><source>map</source><cache>{name}</cache><grid>GoogleMapsCompatible</grid><format>PNG</format>'
                           f'<metatile>1 1</metatile><expires>300</expires></tileset>' for name in STORES)
        self.config.write_text(f"""<mapcache><changes><folder>lists</folder><folder_minzoom>2</folder_minzoom><poll>0.2</poll></changes>
<source name="map" type="wms"><http><url>{origin.url}</url></http><getmap><params><LAYERS>map</LAYERS><FORMAT>image/png</FORMAT></params></getmap></source>
{"".join(store.format(folder=folder) for store in STORES.values())}{tilesets}
<tileset name="kept"><cache>disk</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>
<tileset name="days"><source>map</source><cache>sqlite3</cache><grid>GoogleMapsCompatible</grid><format>PNG</format><metatile>1 1</metatile>
<dimensions><dimension type="values" name="day" default="mon"><value>mon</value><value>tue</value></dimension></dimensions></tileset>
<tileset name="pair"><source>map</source><cache>sqlite3</cache><grid>GoogleMapsCompatible</grid><format>PNG</format><formats>WEBP</formats>
<metatile>2 2</metatile><density>2</density></tileset>
<tileset name="stack"><source>map</source><cache>sqlite3</cache><grid>GoogleMapsCompatible</grid><format>PNG</format><metatile>1 1</metatile><expires>300</expires>
<dimensions><assembly_type>stack</assembly_type><dimension type="sqlite" name="scene" default="all"><dbfile>{folder}/scenes.db</dbfile>
<validate_query>SELECT id FROM scene WHERE :dim IN ('all', id)</validate_query><list_query>SELECT id FROM scene</list_query></dimension></dimensions></tileset>
<service type="tms" enabled="true"/><service type="wmts" enabled="true"/>
<service type="purge" enabled="true"><token_file>token</token_file></service>
<lock_dir>{folder}</lock_dir><log_level>info</log_level></mapcache>""")

    def run(self, *words, status=0, **options):
        done = subprocess.run([self.build / "bin/mapcache", *words], capture_output=True, text=True, timeout=patience(60),
                              env={**os.environ, **sanitizer_environment(self.build)}, **options)
        assert done.returncode == status, done.stdout + done.stderr
        return done

    def put(self, name, text):
        (self.folder / "list.part").write_text(text)
        os.rename(self.folder / "list.part", self.lists / name)


@pytest.fixture(scope="module")
def site(build, shared_folder):
    origin = Map()
    yield Site(build, shared_folder, origin)
    origin.server.shutdown()
    origin.server.server_close()


@pytest.fixture(scope="module")
def web(site, shared_apache):
    os.chmod(site.folder, 0o777)
    return shared_apache("web", f"MapCacheAlias /mc {site.config}\n")


def path(tileset, z, x, y):
    """y from the north."""
    return f"/mc/wmts/1.0.0/{tileset}/default{'/all' if tileset == 'stack' else ''}/GoogleMapsCompatible/{z}/{y}/{x}.png"


def look(web, tileset, z, x, y):
    reply = web.get(path(tileset, z, x, y))
    assert reply.status == 200, reply.body
    return reply


def fill(site, web, tileset, tiles):
    """These tiles, freshly stored."""
    site.run("purge", "-q", "--yes", "-c", site.config, "-t", tileset)
    replies = {tile: look(web, tileset, *tile) for tile in tiles}
    site.origin.shade += 1
    del site.origin.boxes[:]
    return replies


def shows_old_then_new(site, web, tileset, tile, before):
    """The old tile at once, with its age; behind the answer the new one."""
    old = look(web, tileset, *tile)
    assert old.body == before.body and "max-age=0" in old.headers["Cache-Control"]
    assert 1 <= int(old.headers["Age"]) < 4000
    assert old.headers["Cache-Status"] == "mapcache; hit; ttl=-1; detail=stale"
    wait_until(lambda: look(web, tileset, *tile).body != before.body, "the tile is drawn anew", SOON)
    assert look(web, tileset, *tile).headers["Cache-Control"] == "max-age=300"


def is_left_alone(web, tileset, tile, before):
    reply = look(web, tileset, *tile)
    return reply.body == before.body and reply.headers["Cache-Control"] == "max-age=300"


def purge(web, body, headers=None, method="POST", at="/mc/purge"):
    sent = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", **(headers or {})}
    reply = web.get(at, {name: value for name, value in sent.items() if value is not None}, method=method,
                    body=body if isinstance(body, bytes) else json.dumps(body).encode())
    return reply.status, json.loads(reply.body) if reply.body else None, reply


EAST, WEST, DEEP = (2, 2, 1), (2, 1, 1), (3, 4, 3)


@pytest.mark.parametrize("tileset", ["disk", "sqlite3", "lmdb"])
def test_a_command_marks_the_tiles_of_an_area(site, web, tileset):
    before = fill(site, web, tileset, [EAST, WEST, DEEP])
    said = site.run("purge", "--stale", "-c", site.config, "-t", tileset, "-z", "2,2", "-e", "1,1,20037508,20037508").stdout
    assert "marked 1 tiles" in said
    assert is_left_alone(web, tileset, WEST, before[WEST]) and is_left_alone(web, tileset, DEEP, before[DEEP])
    shows_old_then_new(site, web, tileset, EAST, before[EAST])
    assert len(site.origin.boxes) == 1
    said = site.run("purge", "--stale", "-c", site.config, "-t", tileset, "-z", "2,3").stdout
    assert "marked 3 tiles" in said
    said = site.run("purge", "--stale", "-c", site.config, "-t", tileset, "-z", "2,3", status=0).stdout
    assert "0 tiles" in said  # all are marked already


def test_tiles_that_cannot_be_marked(site):
    assert "does not keep the times" in site.run("purge", "--stale", "-c", site.config, "-t", "mbtiles", status=1).stderr
    assert "no source" in site.run("purge", "--stale", "-c", site.config, "-t", "kept", status=1).stderr


def test_an_expire_list_marks_all_levels_of_all_tilesets(site, web):
    before = {name: fill(site, web, name, [EAST, WEST, DEEP, (1, 1, 0)]) for name in ("disk", "sqlite3", "mbtiles")}
    site.origin.shade += 1
    text = "5/16/15\r\nno tile\n31/0/0\n2/4/0\n\n"
    tried = site.run("invalidate", "--expire-list", "-", "-c", site.config, "--dry-run", "--json", status=2, input=text)
    counts = {line["tileset"]: line["would_mark"] for line in map(json.loads, tried.stdout.splitlines())}
    assert {name: counts[name] for name in before} == {"disk": 3, "sqlite3": 3, "mbtiles": 3} and "kept" not in counts
    assert [line in tried.stderr for line in ("line 2:", "line 3:", "line 4:", "line 5:")] == [True, True, True, False]
    site.run("invalidate", "--expire-list", "-", "-c", site.config, "-t", "disk", "-z", "2,9", input="5/16/15")
    assert is_left_alone(web, "disk", (1, 1, 0), before["disk"][1, 1, 0]) and is_left_alone(web, "sqlite3", DEEP, before["sqlite3"][DEEP])
    shows_old_then_new(site, web, "disk", DEEP, before["disk"][DEEP])
    site.run("invalidate", "--expire-list", "-", "-c", site.config, status=0, input="5/16/15\n")
    shows_old_then_new(site, web, "sqlite3", DEEP, before["sqlite3"][DEEP])
    assert is_left_alone(web, "sqlite3", WEST, before["sqlite3"][WEST])
    assert look(web, "mbtiles", *DEEP).body != before["mbtiles"][DEEP].body  # it has no times: the tile was removed
    assert is_left_alone(web, "mbtiles", WEST, before["mbtiles"][WEST])


def test_a_list_in_the_folder_is_applied_once(site, web):
    before = fill(site, web, "disk", [EAST, WEST, (1, 1, 0)])
    (site.lists / "unfinished.tiles~").write_text("2/1/1\n")
    (site.lists / "20260102").mkdir(mode=0o777)
    (site.lists / "20260102").chmod(0o777)
    os.symlink("/etc/hostname", site.lists / "link")
    site.put("20260102/120000.tiles", "5/16/15\nx\n")
    site.put("garbage", "no\nlist\n" + "1" * 100)
    wait_until(lambda: not (site.lists / "20260102/120000.tiles").exists() and (site.lists / "garbage.broken").exists(), "the lists are read", SOON)
    assert sorted(each.name for each in site.lists.iterdir() if not each.name.startswith(".")) == ["20260102", "garbage.broken", "link", "unfinished.tiles~"]
    assert is_left_alone(web, "disk", WEST, before[WEST]) and is_left_alone(web, "disk", (1, 1, 0), before[1, 1, 0])
    shows_old_then_new(site, web, "disk", EAST, before[EAST])
    wait_until(lambda: "120000.tiles, line 2" in web.log() and "garbage, line 3" in web.log(), "the log names broken lines", SOON)


def test_a_request_marks_tiles(site, web):
    before = fill(site, web, "sqlite3", [EAST, WEST, DEEP])
    asked = {"tileset": "sqlite3", "box": [1, 1, 170, 80], "crs": "EPSG:4326", "minzoom": 2, "maxzoom": 2}
    assert purge(web, {**asked, "dry_run": True})[:2] == (200, {"tileset": "sqlite3", "dry_run": True, "would_mark": 1, "marked_before": 0})
    assert is_left_alone(web, "sqlite3", EAST, before[EAST])
    assert purge(web, asked)[:2] == (200, {"tileset": "sqlite3", "dry_run": False, "marked": 1, "marked_before": 0})
    shows_old_then_new(site, web, "sqlite3", EAST, before[EAST])
    assert is_left_alone(web, "sqlite3", WEST, before[WEST])
    assert purge(web, {"tileset": "sqlite3", "limit": 2})[0] == 503
    assert purge(web, {"tileset": "sqlite3", "limit": 2})[1]["marked"] == 1  # it goes on where it was
    for nowhere in ({"box": [-3e7, -3e7, -2.5e7, -2.5e7]}, {"minzoom": 900}):
        assert purge(web, {"tileset": "disk", **nowhere})[1]["marked"] == 0


def test_values_of_dimensions(site, web):
    day = lambda name: web.get(path("days", *EAST).replace("/default/", f"/default/{name}/"))  # noqa: E731
    assert [day(name).status for name in ("mon", "tue")] == [200, 200]
    assert purge(web, {"tileset": "days", "dimensions": {"DAY": "tue"}})[1]["marked"] == 1
    assert "max-age=0" in day("tue").headers["Cache-Control"] and "max-age=0" not in day("mon").headers["Cache-Control"]
    assert purge(web, {"tileset": "days", "dimensions": {"day": "../x"}})[1]["marked"] == 0
    assert purge(web, {"tileset": "days", "dimensions": {"hour": "1"}})[0] == 400


def test_assembled_tiles_and_their_parts_are_marked(site, web):
    before = {EAST: look(web, "stack", *EAST)}
    site.origin.shade += 1
    assert purge(web, {"tileset": "stack", "dimensions": {"scene": "a"}})[1]["marked"] == 1  # what is assembled: the scene behind is not stored
    assert purge(web, {"tileset": "stack"})[1] == {"tileset": "stack", "dry_run": False, "marked": 1, "marked_before": 1}
    shows_old_then_new(site, web, "stack", EAST, before[EAST])


def test_further_formats_and_fine_screens_go_along(site, web):
    paths = [path("pair", *EAST), path("pair", *EAST).replace(".png", ".webp"), "/mc/tms/1.0.0/pair@GoogleMapsCompatible/2/2/2@2x.png"]
    before = [web.get(each) for each in paths]
    assert [reply.status for reply in before] == [200, 200, 200]
    site.origin.shade += 60  # WebP loses what is less
    assert purge(web, {"tileset": "pair", "minzoom": 2, "maxzoom": 2})[1]["marked"] == 9  # of the further format the one tile that was asked for
    assert [web.get(each).body for each in paths] == [reply.body for reply in before]
    for each, reply in zip(paths, before):
        wait_until(lambda: web.get(each).body != reply.body, f"{each} is drawn anew", SOON)


REFUSED = {
    "tileset": {"tileset": "none"}, "grid": {"grid": "none"}, "crs": {"box": [0, 0, 1, 1], "crs": "+init=/etc/passwd"}, "box": {"box": [1, 1, 0, 0]},
    "a crs alone": {"crs": "EPSG:4326"}, "unknown crs": {"box": [0, 0, 1, 1], "crs": "EPSG:999999"}, "nan": {"box": "0,0,nan,1"},
    "levels": {"minzoom": 3, "maxzoom": 2}, "level": {"minzoom": -1}, "limit": {"limit": 10 ** 9}, "field": {"boxes": []}, "store": {"tileset": "mbtiles"},
}


@pytest.mark.parametrize("fields", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_meant_is_refused(web, fields):
    status, told, _ = purge(web, {"tileset": "disk", **fields})
    assert status == 400 and told["error"]


def test_only_the_holder_of_the_token_is_let_in(site, web):
    asked = {"tileset": "disk", "dry_run": True}
    for wrong in (None, "Bearer", f"Basic {TOKEN}", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}x", "Bearer " + "a" * 8000):
        status, _, reply = purge(web, asked, {"Authorization": wrong})
        assert status == 401 and reply.headers["WWW-Authenticate"].startswith("Bearer"), wrong
    statuses = {purge(web, asked, {"Authorization": "Bearer wrong"})[0] for _ in range(40)}
    assert statuses == {401, 429} or statuses == {401}  # a slow machine needs more than a second for ten
    assert purge(web, asked)[0] == 200  # nobody shuts out the holder
    assert TOKEN not in web.log()


def test_a_browser_cannot_be_tricked(web):
    asked = {"tileset": "disk", "dry_run": True}
    assert purge(web, asked, {"Sec-Fetch-Site": "cross-site"})[0] == 403
    assert purge(web, asked, {"Content-Type": "text/plain"})[0] == 400
    assert purge(web, b"", method="GET")[0] == 405
    reply = web.get("/mc/purge", {"Origin": "https://elsewhere.example", "Access-Control-Request-Method": "POST",
                                  "Access-Control-Request-Headers": "authorization"}, method="OPTIONS")
    assert "Access-Control-Allow-Origin" not in reply.headers


def test_bodies_have_a_bound(web):
    assert purge(web, b"{" + b" " * 9000 + b"}")[0] == 413
    assert purge(web, b"")[0] == purge(web, b"[1]")[0] == purge(web, b"\xff\xfe")[0] == 400


def test_the_fastcgi_program_behind_nginx(site, fcgi, nginx):
    front = nginx(fcgi().address)
    before = look(front, "sqlite3", *EAST)
    site.origin.shade += 1
    assert purge(front, {"tileset": "sqlite3"}, {"Authorization": None})[0] == 401
    assert purge(front, {"tileset": "sqlite3"})[0] == 200
    wait_until(lambda: look(front, "sqlite3", *EAST).body != before.body, "the tile is drawn anew", SOON)

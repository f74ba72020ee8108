"""Everything at once: hits, misses, maps, documents, reloads, files renamed over served ones, clients that leave.
Meant for a build with a sanitizer (script/test runs it in both): no report, no leak, no wrong tile, an orderly end."""

import os
import random
import sqlite3
import threading
import time

from conftest import ROOT, png, wait_until
from fastcgi import Client, Server
from origin import Origin
from patience import patience
from stores import Redis

SECONDS = float(os.environ.get("MAPCACHE_LOAD_SECONDS", "6"))
CLIENTS = 10
GRID = "small"
SIDE = 64  # pixels of a tile: under a sanitizer, time shall go into threads, not into pixels
RESOLUTIONS = " ".join(str(2 * 20037508.342789248 / SIDE / 2**z) for z in range(12))


def stored(z, x, y):
    return png(SIDE, SIDE, lambda i, j: (z * 40, x * 60 % 256, y * 60 % 256))


def fill(path, tiles):
    database = sqlite3.connect(path)
    database.execute("create table tiles(tileset text, grid text, x integer, y integer, z integer, data blob, dim text,"
                     " ctime datetime, primary key(tileset, grid, x, y, z, dim))")
    for (z, x, y), data in tiles.items():
        database.execute("insert into tiles values('base', ?, ?, ?, ?, ?, '', datetime('now'))", (GRID, x, y, z, data))
    database.commit()
    database.close()


def in_redis(text, redis, folder):
    """The same configuration with tiles in redis, alone and behind a file, and locks there."""
    where = f"<host>127.0.0.1</host><port>{redis.port}</port>"
    many = text[text.index('<cache name="many"'):text.index('<cache name="files"')]
    text = text.replace(many, many.replace('"many"', '"near"') + f"""<cache name="far" type="redis">{where}</cache>
  <cache name="many" type="multitier"><cache>near</cache><cache>far</cache></cache>
  """)
    text = text.replace(f'<cache name="one" type="sqlite3"><dbfile>{folder}/one.sqlite3</dbfile></cache>', f'<cache name="one" type="redis">{where}</cache>')
    return text.replace(f"<lock_dir>{folder}</lock_dir>", f'<locker type="redis">{where}<timeout>60</timeout></locker>')


def write_config(folder, origin, title, redis=None):
    path = folder / "new.xml"
    path.write_text(f"""<mapcache>
  <metadata><title>{title}</title></metadata>
  <auto_reload>true</auto_reload> <workers>3</workers> <memory_cache>2M</memory_cache> <open_files>16</open_files>
  <deadline>10</deadline> <threaded_fetching>true</threaded_fetching>
  <grid name="{GRID}"><srs>EPSG:3857</srs><size>{SIDE} {SIDE}</size><resolutions>{RESOLUTIONS}</resolutions>
    <extent>-20037508.342789248 -20037508.342789248 20037508.342789248 20037508.342789248</extent></grid>
  <cache name="base" type="sqlite3"><dbfile>{folder}/base.sqlite3</dbfile></cache>
  <cache name="one" type="sqlite3"><dbfile>{folder}/one.sqlite3</dbfile></cache>
  <cache name="many" type="sqlite3"><dbfile>{folder}/many/{{z}}-{{x}}-{{y}}.sqlite3</dbfile><xcount>2</xcount>
    <ycount>2</ycount></cache>
  <cache name="files" type="disk"><base>{folder}/files</base><symlink_blank/></cache>
  <source name="map" type="wms">
    <getmap><params><FORMAT>image/png</FORMAT><LAYERS>ff8800</LAYERS></params></getmap>
    <getfeatureinfo><info_formats>text/plain</info_formats><params><QUERY_LAYERS>any</QUERY_LAYERS></params></getfeatureinfo>
    <http><url>{origin.url("/late/5/wms?")}</url></http></source>
  <source name="broken" type="wms"><getmap><params><FORMAT>image/png</FORMAT><LAYERS>x</LAYERS></params></getmap>
    <http><url>{origin.url("/half?")}</url></http></source>
  <tileset name="base"><cache>base</cache><grid>{GRID}</grid><expires>60</expires></tileset>
  <tileset name="one"><cache>one</cache><source>map</source><grid>{GRID}</grid><format>JPEG</format>
    <metatile>2 2</metatile></tileset>
  <tileset name="many"><cache>many</cache><source>map</source><grid>{GRID}</grid><format>PNG</format>
    <metatile>3 3</metatile><metabuffer>8</metabuffer></tileset>
  <tileset name="files"><cache>files</cache><source>map</source><grid>{GRID}</grid><format>PNG</format>
    <metatile>2 2</metatile><auto_expire>1</auto_expire>
    <dimensions><dimension name="color" type="values" default="a"><value>a</value><value>b</value></dimension></dimensions>
  </tileset>
  <tileset name="broken"><cache>files</cache><source>broken</source><grid>{GRID}</grid><format>PNG</format></tileset>
  <service type="wmts" enabled="true"/>
  <service type="wms" enabled="true"><format allow_client_override="true">PNG</format></service>
  <service type="tms" enabled="true"/> <service type="demo" enabled="true"/> <service type="kml" enabled="true"/>
  <lock_dir>{folder}</lock_dir>
</mapcache>
""")
    if redis is not None:
        path.write_text(in_redis(path.read_text(), redis, folder))
    path.rename(folder / "mapcache.xml")
    return folder / "mapcache.xml"


class Load:
    """Threads of clients, each with its own dice, until the time is over; `wrong` is what should not have come back."""

    def __init__(self, address, tiles):
        self.address = address
        self.tiles = tiles
        self.end = time.monotonic() + SECONDS
        self.wrong = []
        self.counts = {}
        self.seconds = {}
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.run, args=(random.Random(seed),)) for seed in range(CLIENTS)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        for thread in self.threads:
            thread.join(SECONDS + patience(180))

    def goes_on(self):
        """On a busy machine until each kind of request has been made."""
        with self.lock:
            now = time.monotonic()
            return now < self.end or (len(self.counts) < 8 and now < self.end + 60)

    def run(self, dice):
        client = Client(self.address, timeout=60)
        try:
            while self.goes_on() and len(self.wrong) < 5:
                kind = dice.choice([self.hit] * 4 + [self.miss] * 3 + [self.map] * 3
                                   + [self.page, self.info, self.failure, self.bad, self.leave])
                path, query, check = kind(dice)
                began = time.monotonic()
                if kind == self.leave:
                    client.send(path, query)
                    if dice.random() < 0.5:
                        time.sleep(dice.random() * 0.01)
                    client.close()
                    client = Client(self.address, timeout=60)
                    answer = None
                else:
                    answer = client.get(path, query)
                with self.lock:
                    self.counts[kind.__name__] = self.counts.get(kind.__name__, 0) + 1
                    self.seconds[kind.__name__] = self.seconds.get(kind.__name__, 0) + time.monotonic() - began
                    if answer is not None and not check(answer):
                        self.wrong.append((path, query, answer.status, answer.body[:200]))
        except (OSError, EOFError) as problem:
            with self.lock:
                self.wrong.append(repr(problem))
        finally:
            client.close()

    def hit(self, dice):
        z, x, y = dice.choice(list(self.tiles))
        data = self.tiles[z, x, y]
        return (f"/wmts/1.0.0/base/default/{GRID}/{z}/{2**z - 1 - y}/{x}.png".encode(), b"",
                lambda answer: answer.status == 200 and answer.body == data)

    def miss(self, dice):
        z = dice.randrange(12)
        layer = dice.choice(["one", "many", "files", "files[color=b]"])
        return (f"/tms/1.0.0/{layer}/{z}/{dice.randrange(2**z)}/{dice.randrange(2**z)}.png".encode(), b"",
                lambda answer: answer.status == 200 and answer.body[:4] in (b"\x89PNG", b"\xff\xd8\xff\xe0"))

    def map(self, dice):
        aligned = dice.random() < 0.5
        size = 2 * SIDE if aligned else dice.randrange(20, 300)
        x, y = (-20037508.342789248, 0) if aligned else (dice.uniform(-1.9e7, 0), dice.uniform(-1.9e7, 0))
        box = f"{x},{y},{x + 20037508.342789248},{y + 20037508.342789248}"
        layers = dice.choice(["base", "one", "base,one", "many,files", "base,many,one"])
        mime = dice.choice([b"image/png", b"image/jpeg"])
        return (b"/", f"SERVICE=WMS&REQUEST=GetMap&LAYERS={layers}&SRS=EPSG:3857&BBOX={box}&WIDTH={size}&HEIGHT={size}"
                .encode() + b"&FORMAT=" + mime,
                lambda answer: answer.status == 200 and answer.header("Content-Type") == mime.decode())

    def page(self, dice):
        path, query = dice.choice([("/", "SERVICE=WMS&REQUEST=GetCapabilities"),
                                   ("/wmts/1.0.0/WMTSCapabilities.xml", ""),
                                   ("/demo/wms", ""), ("/tms/1.0.0/one", ""), ("/demo/static/map.js", "")])
        return path.encode(), query.encode(), lambda answer: answer.status == 200

    def info(self, dice):
        return (b"/wmts", f"SERVICE=WMTS&REQUEST=GetFeatureInfo&LAYER=one&TILEMATRIXSET={GRID}&TILEMATRIX=1&TILEROW=0"
                f"&TILECOL=1&I=3&J={dice.randrange(SIDE)}&INFOFORMAT=text/plain".encode(),
                lambda answer: answer.status == 200)

    def failure(self, dice):
        return (f"/tms/1.0.0/broken/3/{dice.randrange(8)}/0.png".encode(), b"", lambda answer: answer.status == 502)

    def bad(self, dice):
        path, query = dice.choice([("/gmaps/x", "REQUEST=%00"), ("/tms/1.0.0/nope/1/1/1.png", ""),
                                   ("/", "SERVICE=WMS&REQUEST=GetMap&LAYERS=,")])
        return path.encode(), query.encode(), lambda answer: answer.status in (400, 404)

    def leave(self, dice):
        path, query, _ = dice.choice([self.miss, self.map, self.hit])(dice)
        return path, query, None


def sanitizer_options(folder):
    """Reports go into files, and make the exit status 66."""
    options = f"exitcode=66 log_path={folder}/report"
    return {"TSAN_OPTIONS": f"{options} suppressions={ROOT}/tests/tsan.supp second_deadlock_stack=1",
            "ASAN_OPTIONS": f"{options} detect_leaks=1", "UBSAN_OPTIONS": f"print_stacktrace=1 {options}",
            "LSAN_OPTIONS": f"suppressions={ROOT}/tests/lsan.supp print_suppressions=0"}


def sanitizer_reports(folder):
    return "\n".join(path.read_text(errors="replace")[:6000] for path in sorted(folder.glob("report.*")))


def test_everything_at_once(build, folder):
    put_everything_on(build, folder, None)


def test_everything_at_once_in_redis(build, folder):
    redis = Redis(folder)
    try:
        put_everything_on(build, folder, redis)
        assert redis.calls("mget") > 0 and redis.calls("setex") > 0 and redis.calls("eval") > 0
    finally:
        redis.close()


def put_everything_on(build, folder, redis, threads=4):
    tiles = {(z, x, y): stored(z, x, y) for z in range(5) for x in range(2**z) for y in range(2**z)}
    fill(folder / "base.sqlite3", tiles)
    with Origin() as origin:
        config = write_config(folder, origin, "first", redis)
        server = Server(build, config, folder, environment=sanitizer_options(folder),
                        options=["--threads", str(threads)])
        with Load(server.address, tiles) as load:
            rounds = 0
            while load.goes_on() and server.alive():
                time.sleep(0.3)
                rounds += 1
                if rounds % 3 == 0:
                    write_config(folder, origin, f"round {rounds}", redis)
                elif rounds % 3 == 1:
                    fill(folder / "next.sqlite3", tiles)
                    (folder / "next.sqlite3").rename(folder / "base.sqlite3")
        server.client.close()
        status = server.program.stop(60)
    reports = sanitizer_reports(folder)
    assert not reports, reports[:12000]
    assert status in (0, 15, -15), f"{status}\n{server.log()}"
    assert not load.wrong, f"{load.wrong[:3]}\n{server.log()}"
    assert set(load.counts) == {"hit", "miss", "map", "page", "info", "failure", "bad", "leave"}
    print({kind: f"{count} x {1000 * load.seconds[kind] / count:.0f} ms" for kind, count in load.counts.items()})


def test_a_leader_that_leaves_does_not_fail_the_others(build, folder):
    """The first client asks for a tile that takes long and goes away; who waits for the same tile gets it."""
    with Origin() as origin:
        path = write_config(folder, origin, "leaving")
        path.write_text(path.read_text().replace("/late/5/wms", "/hold/it/wms"))
        server = Server(build, path, folder, environment=sanitizer_options(folder))
        target = b"/tms/1.0.0/one/3/2/2.png"
        first, second = Client(server.address), Client(server.address)
        first.send(target)
        wait_until(lambda: len(origin.requests()) == 1, "the origin is asked")
        second.send(target)
        time.sleep(1)  # nothing outside shows that it waits
        first.close()
        origin.release("it")
        answer = second.receive()
        second.close()
        again = server.get(target)
        requests = len(origin.requests())
        status = server.program.stop(60)
    assert not sanitizer_reports(folder), sanitizer_reports(folder)[:8000]
    assert status in (0, 15, -15), f"{status}\n{server.log()}"
    assert answer.status == 200 and answer.body == again.body, (answer.status, answer.body[:200])
    assert requests == 1

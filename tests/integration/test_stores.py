"""Every kind of cache that is written to, with its real server, through the same cases: what a user of any of them may count on.

Kinds and servers are in store_kinds.py: a new kind is one line there. What is of one call (large and empty tiles, keys that collide,
series of writes) is in tests/unit/support/cache_conform.c."""
import io
import json
import os
import pathlib
import subprocess

import pytest
from conftest import GRID, free_port, temporary_folder, wait_until
from fastcgi import Server
from origin import Origin
from patience import patience
from PIL import Image
from serving import Serving
from store_kinds import KINDS, ONLY_READ

BUILD = pathlib.Path(os.environ.get("MAPCACHE_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build" / "release"))
WORLD = "-20037508.342789248,-20037508.342789248,20037508.342789248,20037508.342789248"
MAP = f"SERVICE=WMS&REQUEST=GetMap&LAYERS=%s&SRS=EPSG:3857&BBOX={WORLD}&WIDTH=2048&HEIGHT=2048&FORMAT=image/png"
TILES = [(z, x, y) for z in range(4) for x in range(2**z) for y in range(2**z)]
FEW = [(0, 0, 0), (1, 1, 0), (2, 1, 3), (3, 7, 0), (3, 2, 5)]


@pytest.fixture(scope="module", params=sorted(KINDS))
def store(request):
    """A store of each kind in turn; its server is the same for all tests of that kind."""
    with temporary_folder() as home, KINDS[request.param](home) as running:
        running.name = request.param
        yield running


@pytest.fixture
def origin():
    with Origin() as running:
        yield running


class Place:
    """A folder with configurations on a store: `world` is the tileset on it, `same` the same pictures in a file, `other` the tiles
    of `world` by another source."""

    def __init__(self, folder, store, origin, extra=""):
        self.folder, self.store, self.origin = folder, store, origin
        self.kind = "JPEG" if store.name == "tiff" else "PNG"
        (folder / "lmdb").mkdir()
        (folder / "bdb").mkdir()
        self.layer = "w" + folder.name.replace("-", "_")  # of this test alone: the server is that of all
        self.whole = self.write("whole", "pattern", extra)
        self.reader = self.write("reader", None, extra)
        self.painted = self.write("painted", "red", extra)
        self.servers = []

    def write(self, name, source, extra):
        link = f"<source>{source}</source>" if source else ""
        path = self.folder / f"{name}.xml"

        def wms(name, address, layer):
            return (f'<source name="{name}" type="wms"><getmap><params><FORMAT>image/png</FORMAT><LAYERS>{layer}</LAYERS></params></getmap>'
                    f"<http><url>{self.origin.url(address)}</url></http></source>")

        tail = f"<grid>{GRID}</grid><format>{self.kind}</format><metatile>4 4</metatile>"
        path.write_text(f"""<mapcache>
  {wms("pattern", "/pattern?", "pattern")}{wms("red", "/wms?", "red")}
  {self.store.below(self.folder)}
  <cache name="store" {self.store.cache(self.folder, extra)}</cache>
  <cache name="file" type="sqlite3"><dbfile>{self.folder}/{name}.same.db</dbfile></cache>
  <tileset name="{self.layer}">{link}<cache>store</cache>{tail}</tileset>
  <tileset name="same"><source>pattern</source><cache>file</cache>{tail}</tileset>
  <service type="wmts" enabled="true"/><service type="ready" enabled="true"/><service type="status" enabled="true"/>
  <service type="wms" enabled="true"><format>PNG</format></service>
  <lock_dir>{self.folder}</lock_dir>
</mapcache>
""")
        return path

    def command(self, program, *words, good=True):
        done = subprocess.run([BUILD / "bin" / program, *words], capture_output=True, text=True, timeout=patience(100), check=False)
        assert not good or done.returncode == 0, done.stdout + done.stderr
        return done

    def seed(self, config, *words, good=True):
        return self.command("mapcache_seed", "-c", config, "-t", self.layer, "-g", GRID, *words, good=good)

    def counts(self):
        """Of the levels 0 to 3, as `mapcache detail` counts them."""
        said = self.command("mapcache", "detail", "-c", self.reader, "-t", self.layer, "-z", "0,3").stdout
        return [int(line.split()[2]) for line in said.splitlines() if line.split()[:1] and line.split()[0].isdigit()]

    def start(self, config):
        home = self.folder / f"server{len(self.servers)}"
        home.mkdir()
        self.servers.append(Server(BUILD, config, home))
        return self.servers[-1]

    def tile(self, z, x, y, layer=None):
        return f"/wmts/1.0.0/{layer or self.layer}/default/{GRID}/{z}/{y}/{x}.png"

    def picture(self, answer):
        assert answer.status == 200, (answer.status, answer.body)
        return Image.open(io.BytesIO(answer.body)).convert("RGB").tobytes()

    def expect(self, server, places, layer="same", helper=None):
        for place in places:
            got = server.get(self.tile(*place))
            kept = (helper or server).get(self.tile(*place, layer))
            assert self.picture(got) == self.picture(kept), (place, server.log())

    def stop(self):
        for server in self.servers:
            server.stop()


@pytest.fixture
def place(folder, store, origin):
    made = Place(folder, store, origin)
    yield made
    if store.far:
        store.go_on()
    made.stop()


def test_every_kind_of_this_build_is_here(build):
    """From the list of `mapcache keys`: a kind that is in no table of the tests is found here."""
    said = subprocess.run([build / "bin" / "mapcache", "keys"], capture_output=True, text=True, check=True).stdout
    types = {line.split('type="')[1].split('"')[0] for line in said.splitlines() if line.startswith('### `<cache type="')}
    assert len(types) > 15 and types == {name.split("-")[0] for name in KINDS} | ONLY_READ


def test_the_life_of_tiles(place, origin):
    """Seeded, served by a server that cannot render, counted, alone and in maps, left alone by the next seed, replaced, deleted."""
    place.seed(place.whole, "-z", "0,3", "-n", "2")
    asked = len(origin.requests())
    server = place.start(place.reader)
    place.expect(server, TILES)
    drawn, same = server.get("/", MAP % place.layer), server.get("/", MAP % "same")
    assert place.picture(drawn) == place.picture(same)
    seen = len(origin.requests())
    place.seed(place.whole, "-z", "0,3")
    assert asked == 7 and len(origin.requests()) == seen  # each is there
    assert place.counts() == [1, 4, 16, 64]
    place.seed(place.painted, "-z", "3,3", "-f")
    red = place.picture(server.get(place.tile(3, 7, 0)))
    assert len(set(zip(red[0::3], red[1::3], red[2::3]))) == 1 and red[0] > 250  # all red
    place.expect(server, FEW[:3])
    place.command("mapcache", "purge", "-c", place.whole, "-t", place.layer, "-z", "3,3", "--yes")
    assert place.picture(server.get(place.tile(3, 7, 0))) != red
    place.expect(server, FEW[:3])
    assert place.counts() == [1, 4, 16, 0]
    place.command("mapcache", "compact", "-c", place.whole)
    place.expect(server, FEW[:3])
    place.seed(place.whole, "-z", "3,3")
    place.expect(server, FEW)


def states(server):
    return {one["cache"]: one for one in json.loads(server.get("/status").body)["stores"]}


def test_status_shows_the_state_of_each_store(place):
    place.seed(place.whole, "-z", "0,1")
    assert 'cache "store"' not in place.command("mapcache", "check", "--connect", place.reader).stdout
    server = place.start(place.reader)
    kind = place.store.name.split("-")[0]
    assert states(server)["store"] == {"cache": "store", "type": kind, "state": "unasked", "failures": 0}
    assert server.get(place.tile(1, 1, 0)).status == 200
    assert states(server)["store"] == {"cache": "store", "type": kind, "state": "works", "failures": 0}
    assert states(server)["file"]["state"] == "unasked"
    ready = json.loads(server.get("/ready").body)
    assert ready.items() >= {"status": "ready", "reload_failed": False, "away": [], "stores": []}.items()


# By kind in one file: the file's name in the test's folder. Where a folder of disk, tiff, lmdb or bdb is not there, the store has no tiles.
HOMES = {"sqlite3": "tiles.db", "mbtiles": "tiles.mbtiles", "geopackage": "tiles.gpkg", "pmtiles": "tiles.pmtiles"}


@pytest.mark.parametrize("store", sorted(HOMES), indirect=True)
def test_files_that_cannot_be_read_are_named(place):
    """A folder stands in the file's place."""
    place.seed(place.whole, "-z", "0,1")
    file = place.folder / HOMES[place.store.name]
    file.rename(file.with_name("gone"))
    file.mkdir()
    server = place.start(place.reader)
    answer = server.get(place.tile(1, 1, 0))
    assert answer.status >= 500, (answer.status, answer.body)
    assert states(server)["store"]["state"] == "fails" and states(server)["store"]["failures"] >= 1
    ready = json.loads(server.get("/ready").body)
    assert ready["status"] == "degraded" and ready["stores"] == ["store"] and ready["away"] == [], ready
    assert str(place.folder) not in server.get("/status").body.decode() + server.get("/ready").body.decode()


def test_who_may_only_read_stores_nothing(place, origin):
    place.whole.write_text(place.whole.read_text().replace("<cache>store</cache>", "<cache>store</cache><read-only>true</read-only>"))
    writer = place.write("writer", "pattern", "")
    place.seed(writer, "-z", "0,1")
    asked = len(origin.requests())
    server = place.start(place.whole)
    kept = server.get(place.tile(1, 1, 0))
    assert kept.status == 200
    assert server.get(place.tile(2, 1, 3)).body != kept.body and len(origin.requests()) == asked  # nothing to see, nothing drawn
    assert place.counts() in ([1, 4, 0, 0], None)
    assert len(origin.requests()) == asked


def test_two_writers_and_a_reader_at_once(place):
    """Each answer is the tile of one of the two, whole; in the end all tiles are there."""
    place.seed(place.whole, "-z", "0,3")
    reader = place.start(place.reader)
    helper = place.start(place.whole)
    good = {spot: place.picture(helper.get(place.tile(*spot, "same"))) for spot in FEW}
    writers = [subprocess.Popen([BUILD / "bin/mapcache_seed", "-c", config, "-t", place.layer, "-g", GRID, "-z", "0,3", "-f", "-n", "2", "-q"],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for config in (place.painted, place.whole)]
    red, rounds = None, 0
    while rounds < 3 or any(writer.poll() is None for writer in writers):
        rounds += 1
        for spot in FEW:
            seen = place.picture(reader.get(place.tile(*spot)))
            if seen != good[spot]:
                red = red or seen
                assert seen == red, spot
    for writer in writers:
        said, _ = writer.communicate(timeout=patience(60))
        assert writer.returncode == 0, said
    for spot in TILES:
        assert reader.get(place.tile(*spot)).status == 200
    assert place.counts() == [1, 4, 16, 64]


def test_a_killed_writer_leaves_no_broken_tile(place, origin):
    """Killed after each number of metatiles in turn: what is there is whole, and the next seed makes the rest."""
    reader = None
    place.seed(place.whole, "-z", "0,0")  # a store that is not there yet is an error for who cannot draw
    for number in (1, 3, 6):
        seen = len(origin.requests())
        writer = subprocess.Popen([BUILD / "bin/mapcache_seed", "-c", place.whole, "-t", place.layer, "-g", GRID, "-z", "0,3", "-f", "-q"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: len(origin.requests()) >= seen + number or writer.poll() is not None, "so many metatiles")
        writer.kill()
        writer.wait()
        reader = reader or place.start(place.reader)
        nothing = None
        for spot in FEW:
            got, kept = reader.get(place.tile(*spot)), reader.get(place.tile(*spot, "same"))
            assert got.status == 200, (number, spot, got.body, reader.log())
            if place.picture(got) != place.picture(kept):  # not stored: the same empty picture for all
                nothing = nothing or got.body
                assert got.body == nothing, (number, spot)
    place.seed(place.whole, "-z", "0,3")
    place.expect(reader, TILES)


def test_serve_and_the_pages_know_every_kind(place, build):
    """One command shows it; the list of layers and the page of each are there, and its tiles."""
    place.seed(place.whole, "-z", "0,1")
    place.reader.write_text(place.reader.read_text().replace("</mapcache>", '<service type="demo" enabled="true"/></mapcache>'))
    for folder in (place.folder, *place.folder.rglob("*")):  # the web server is another user
        folder.chmod(0o777 if folder.is_dir() else 0o666)
    pages = place.start(place.reader)
    assert place.layer in pages.get("/demo/layers.json").body.decode()
    with Serving(build, place.reader, server="apache", port=free_port()) as serving:
        assert place.layer in [layer["name"] for layer in serving.told["layers"]]
        answer = serving.get(place.tile(1, 1, 0))
        assert answer.status == 200 and answer.body == pages.get(place.tile(1, 1, 0)).body, answer.body
        assert serving.end() == 0


def test_away_is_not_absent(place, origin):
    """A server that says nothing: an error with the store's name in the log and in /ready, no render; then all is as before."""
    if not place.store.far:
        return
    place.seed(place.whole, "-z", "0,1")
    server = place.start(place.whole)
    kept = server.get(place.tile(1, 1, 0))
    assert kept.status == 200 and json.loads(server.get("/ready").body)["away"] == []
    asked = len(origin.requests())
    place.store.stall()
    for _ in range(3):
        away = server.get(place.tile(1, 1, 0))
        assert away.status in (503, 504), (away.status, away.body)
        assert b"127.0.0.1" not in away.body and b"sesame" not in away.body
    assert server.get("/", MAP % place.layer).status in (503, 504)
    assert any(place.store.address in name for name in json.loads(server.get("/ready").body)["away"]), server.get("/ready").body
    assert json.loads(server.get("/ready").body)["stores"] == ["store"]
    assert states(server)["store"]["state"] == "fails" and states(server)["store"]["failure"], states(server)
    assert 'cache "store"' in server.program.log(), server.log()
    assert "sesame" not in server.program.log() and "swordfish" not in server.program.log()
    assert len(origin.requests()) == asked  # an absent store is not an absent tile
    checked = place.command("mapcache", "check", "--connect", place.whole, good=False)
    assert checked.returncode == 2 and 'cache "store"' in checked.stdout, checked.stdout
    asked = len(origin.requests())  # check --connect asks the origin, too
    counted = place.command("mapcache", "detail", "-c", place.reader, "-t", place.layer, "-z", "0,1", good=False)
    assert counted.returncode != 0 and "store" in counted.stdout + counted.stderr, counted.stdout + counted.stderr
    purged = place.command("mapcache", "purge", "-c", place.whole, "-t", place.layer, "-z", "1,1", "--yes", good=False)
    assert purged.returncode != 0 and "store" in purged.stdout + purged.stderr, purged.stdout + purged.stderr
    compacted = place.command("mapcache", "compact", "-c", place.whole, good=False)
    assert compacted.returncode == 2 or 'cache "store": tiles of type' in compacted.stdout, compacted.stdout + compacted.stderr
    seeded = place.seed(place.whole, "-z", "1,1", good=False)
    assert seeded.returncode != 0 and "store" in seeded.stdout + seeded.stderr, seeded.stdout + seeded.stderr
    place.store.go_on()
    wait_until(lambda: server.get(place.tile(1, 1, 0)).status == 200, "the tile again", 120)
    assert server.get(place.tile(1, 1, 0)).body == kept.body
    wait_until(lambda: json.loads(server.get("/ready").body)["away"] == [], "nobody is missed")
    assert json.loads(server.get("/ready").body)["stores"] == [] and states(server)["store"]["state"] == "works"
    assert len(origin.requests()) == asked
    assert place.command("mapcache", "check", "--connect", place.whole).returncode == 0

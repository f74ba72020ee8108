"""<memory_budget>: a request that needs more than is left gets 503 and may come again; without memory the process ends with a message,
and what it has stored is whole."""
import io
import os
import re
import resource
import sqlite3
import threading

import pytest
from conftest import GRID, png
from fastcgi import Client, Server
from origin import Origin
from patience import patience
from PIL import Image

WORLD = "-20037508.342789248,-20037508.342789248,20037508.342789248,20037508.342789248"
TILE = png(256, 256, lambda x, y: (x, y, 7))
SCHEMA = ("create table tiles(tileset text, grid text, x integer, y integer, z integer, data blob, dim text, ctime datetime,"
          " primary key(tileset, grid, x, y, z, dim))")


def write_config(folder, budget, cache='type="sqlite3"><dbfile>{folder}/store.sqlite3</dbfile>', source="", form="PNG"):
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache>
  <source name="origin" type="wms"><getmap><params><FORMAT>image/png</FORMAT><LAYERS>red</LAYERS></params></getmap>
    <http><url>{source or "http://127.0.0.1:9/"}</url></http></source>
  <cache name="store" {cache.replace("{folder}", str(folder))}</cache>
  <tileset name="layer"><cache>store</cache><grid>{GRID}</grid>{f"<format>{form}</format>" if form else ""}<metatile>1 1</metatile>
    {"<source>origin</source>" if source else ""}</tileset>
  <service type="wmts" enabled="true"/><service type="metrics" enabled="true"/>
  <service type="wms" enabled="true"><format>PNG</format><maxsize>4096</maxsize></service>
  <lock_dir>{folder}</lock_dir><memory_cache>1M</memory_cache>
  {f"<memory_budget>{budget}</memory_budget>" if budget else ""}<workers>2</workers>
</mapcache>""")
    return path


def fill(path, blobs):
    database = sqlite3.connect(path)
    database.execute(SCHEMA)
    for (z, x, y), data in blobs.items():
        database.execute("insert into tiles values('layer', ?, ?, ?, ?, ?, '', datetime('now'))", (GRID, x, y, z, data))
    database.commit()
    database.close()


@pytest.fixture
def serve(build, folder):
    running = []

    def start(budget, blobs, **options):
        fill(folder / "store.sqlite3", blobs)
        running.append(Server(build, write_config(folder, budget, **options), folder))
        return running[-1]

    yield start
    for server in running:
        server.stop()


def tile(z=0, x=0, y=0):
    return f"/wmts/1.0.0/layer/default/{GRID}/{z}/{y}/{x}.png"


def map_of(side):
    return f"SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&STYLES=&LAYERS=layer&SRS=EPSG:3857&BBOX={WORLD}&WIDTH={side}&HEIGHT={side}&FORMAT=image/png"


def metric(server, name):
    text = server.get("/metrics").body.decode()
    return int(re.search(rf"^mapcache_{name} (\d+)$", text, re.MULTILINE).group(1))


LEVELS = {(z, x, y): TILE for z in range(4) for x in range(2**z) for y in range(2**z)}


def test_maps_beyond_the_budget(serve):
    """A map of 1000 x 1000 pixels has room, one of 2000 x 2000 has not, and the next small one has room again."""
    server = serve("16M", LEVELS)
    for _ in range(3):
        assert server.get("/", map_of(1000)).status == 200
        answer = server.get("/", map_of(2000))
        assert answer.status == 503, (answer.status, answer.body[-300:])
        assert answer.header("Retry-After") == "1"
        assert b"memory" in answer.body and len(answer.body) < 2000
    assert server.get(tile(1)).body == TILE
    assert metric(server, "memory_refused_total") >= 3
    assert metric(server, "memory_budget_bytes") >= 16 << 20
    assert metric(server, "memory_used_bytes") <= metric(server, "memory_budget_bytes")


def test_many_maps_at_a_time(serve):
    """More maps than there is room for: each is whole or 503, and none is lost of what was taken."""
    server = serve("48M", LEVELS)
    answers = []

    def ask():
        client = Client(server.address, patience(60))
        for _ in range(4):
            answers.append(client.get(query=map_of(1400).encode()))
        client.close()

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 32
    for answer in answers:
        assert answer.status in (200, 503), (answer.status, answer.body[-300:])
        if answer.status == 200:
            assert Image.open(io.BytesIO(answer.body)).size == (1400, 1400)
    assert any(answer.status == 200 for answer in answers)
    assert server.get("/", map_of(1400)).status == 200
    assert metric(server, "memory_used_bytes") < 48 << 20


def test_stored_bytes_beyond_the_budget(serve, folder):
    """Stored blobs are asked for before they are read; tiles of usual size are served."""
    blobs = {(0, 0, 0): b"\x89PNG" + bytes(12_000_000), (1, 0, 0): TILE}
    server = serve("4M", blobs)
    for _ in range(5):
        answer = server.get(tile(0))
        assert answer.status == 503 and answer.header("Retry-After") == "1", (answer.status, answer.body[:200])
        assert server.get(tile(1, 0, 1)).body == TILE
    assert metric(server, "memory_used_bytes") < 4 << 20


def test_files_beyond_the_budget(serve, folder):
    store = folder / "disk"
    server = serve("4M", {}, cache=f'type="disk" layout="template"><template>{store}/{{z}}/{{x}}/{{y}}.png</template>')
    for (z, x, y), data in {(0, 0, 0): bytes(12_000_000), (1, 0, 0): TILE}.items():
        path = store / str(z) / str(x) / f"{y}.png"
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
    answer = server.get(tile(0))
    assert answer.status == 503 and answer.header("Retry-After") == "1", (answer.status, answer.body[:200])
    assert server.get(tile(1, 0, 1)).body == TILE


def test_the_default_is_the_memory_of_the_machine(serve):
    server = serve("", LEVELS)
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 256 << 20 <= metric(server, "memory_budget_bytes") <= machine
    assert server.get("/", map_of(2000)).status == 200


def test_a_process_without_memory_ends_with_a_message_and_its_store_is_whole(build, folder):
    """The system refuses memory at any place: the process goes on with 5xx or ends with a message; a new one serves what was stored."""
    with Origin() as origin:
        path = write_config(folder, "", source=origin.url())
        fill(folder / "store.sqlite3", {})
        ended = [starve(build, folder, path, kilobytes) for kilobytes in (0, 40, 300, 1000, 3000, 10000, 40000)]
        assert any(ended)
        database = sqlite3.connect(folder / "store.sqlite3")
        assert database.execute("pragma integrity_check").fetchone() == ("ok",)
        stored = database.execute("select data from tiles").fetchall()
        database.close()
        assert stored
        for data, in stored:
            Image.open(io.BytesIO(data)).load()
        server = Server(build, path, folder)
        assert server.get(tile(3, 5, 5)).status == 200
        assert server.get("/", map_of(1000)).status == 200
        server.stop()


def starve(build, folder, config, kilobytes):
    """Whether the program came to its end while it was asked, with so much of addresses beyond what it has after a first tile."""
    server = Server(build, config, folder)
    process = server.program.process
    assert server.get(tile(0)).status == 200
    with open(f"/proc/{process.pid}/status", encoding="utf-8") as status:
        size = next(int(line.split()[1]) for line in status if line.startswith("VmSize:"))
    resource.prlimit(process.pid, resource.RLIMIT_CORE, (0, 0))
    resource.prlimit(process.pid, resource.RLIMIT_AS, ((size + kilobytes) << 10,) * 2)
    for side in (300, 1000, 2000):
        for z in range(4):
            ask_both(server.address, process, side, z, kilobytes)
    server.client.close()
    status = server.program.stop(30)
    said = server.program.log()
    assert status in (0, 15, -15, -6), (kilobytes, status, said[-2000:])
    if status == -6:
        assert "mapcache: no memory is left" in said or "mapcache: broken invariant" in said, said[-2000:]
    return status == -6


def ask_both(address, process, side, z, kilobytes):
    """A new tile, which is stored, and a map."""
    for path, query in ((tile(z, (side + kilobytes) % 2**z, z % 2**z), ""), ("/", map_of(side))):
        if process.poll() is not None:
            return
        try:
            client = Client(address, patience(10))
            answer = client.get(path.encode(), query.encode())
            assert answer.status in (200, 404, 500, 502, 503, 504), (answer.status, answer.body[:300])
            client.close()
        except (EOFError, OSError):
            pass

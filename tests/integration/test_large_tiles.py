"""Stored tiles whose bytes claim more than their grid does: refused by their header, so that neither memory nor time follow from stored bytes."""
import gzip
import io
import sqlite3
import struct
import zlib

import pytest
from conftest import GRID, png
from fastcgi import Client, Server
from patience import patience
from PIL import Image

SIDE = 8192
WORLD = "-20037508.342789248,-20037508.342789248,20037508.342789248,20037508.342789248"
GROWTH = 100  # MB that a process may grow by: its own pools, stacks and threads, and a few tiles


def flat_png(side, color, depth, interlace=0):
    """A PNG of nothing but zeros: 6000 x 6000 pixels are 100 KB."""
    channels = {0: 1, 2: 3, 3: 1, 6: 4}[color]
    row = 1 + side * channels * depth // 8
    packer = zlib.compressobj(9)
    rows = b"".join(packer.compress(bytes(row)) for _ in range(side + (side if interlace else 0))) + packer.flush()

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    palette = chunk(b"PLTE", bytes(768)) if color == 3 else b""
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, depth, color, 0, 0, interlace)) + palette
            + chunk(b"IDAT", rows) + chunk(b"IEND", b""))


def flat_jpeg(side, **options):
    out = io.BytesIO()
    Image.new("RGB", (side, side)).save(out, "JPEG", **options)
    return out.getvalue()


KINDS = {
    "rgb": lambda: flat_png(6000, 2, 8),
    "rgba": lambda: flat_png(6000, 6, 8),
    "palette": lambda: flat_png(SIDE, 3, 8),
    "16 bit": lambda: flat_png(SIDE, 6, 16),
    "interlaced": lambda: flat_png(6000, 6, 8, 1),
    "jpeg": lambda: flat_jpeg(SIDE),
    "progressive": lambda: flat_jpeg(SIDE, progressive=True),
    "grey jpeg": lambda: flat_jpeg(SIDE, subsampling=0, quality=30, optimize=True),
}


def fill(path, data, level=2):
    database = sqlite3.connect(path)
    database.execute("create table tiles(tileset text, grid text, x integer, y integer, z integer, data blob, dim text, ctime datetime,"
                     " primary key(tileset, grid, x, y, z, dim))")
    for x in range(2**level):
        for y in range(2**level):
            database.execute("insert into tiles values('layer', ?, ?, ?, ?, ?, '', datetime('now'))", (GRID, x, y, level, data))
    database.commit()
    database.close()


@pytest.fixture
def serve(build, folder):
    """serve(data, ...): the program with one layer, each of whose tiles at level 2 is `data`."""
    running = []

    def start(data, form='<format name="f" type="PNG"/>', options=""):
        fill(folder / "store.sqlite3", data)
        path = folder / "mapcache.xml"
        path.write_text(f"""<mapcache>{form}
  <cache name="store" type="sqlite3"><dbfile>{folder}/store.sqlite3</dbfile></cache>
  <tileset name="layer"><cache>store</cache><grid{options}>{GRID}</grid><format>f</format></tileset>
  <service type="wmts" enabled="true"/>
  <service type="wms" enabled="true"><format allow_client_override="true">PNG</format><maxsize>4096</maxsize></service>
  <lock_dir>{folder}</lock_dir><deadline>5</deadline></mapcache>""")
        running.append(Server(build, path, folder))
        return running[-1]

    yield start
    for server in running:
        server.stop()


def most_memory(server):
    """Megabytes that the process had at its peak."""
    with open(f"/proc/{server.program.process.pid}/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024


def map_of(side, form="image/png", box=WORLD):
    return f"SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&STYLES=&LAYERS=layer&SRS=EPSG:3857&BBOX={box}&WIDTH={side}&HEIGHT={side}&FORMAT={form}"





@pytest.mark.parametrize("kind", KINDS)
def test_large_images_are_not_decoded(serve, kind):
    server = serve(KINDS[kind]())
    before = most_memory(server)
    for query in (map_of(1024), map_of(1000), map_of(1024, "image/jpeg")):
        answer = server.get("/", query)
        assert answer.status == 500, (query, answer.status, answer.body[-300:])
        assert answer.took < patience(2), (query, answer.took)
    assert most_memory(server) < before + GROWTH
    assert server.get(f"/wmts/1.0.0/layer/default/{GRID}/2/0/0.png").status == 200  # what is stored goes out as it is


def test_tiles_of_finer_screens_are_drawn(serve):
    """Twice or four times the grid's size: as before, cut to the tile's place."""
    server = serve(png(512, 512, lambda x, y: (200, 10, 30)))
    answer = server.get("/", map_of(1024))
    assert answer.status == 200
    assert Image.open(io.BytesIO(answer.body)).convert("RGB").getpixel((700, 300)) == (200, 10, 30)


def test_maps_of_tiles_of_another_size_have_the_size_that_was_asked_for(serve):
    """Tiles of 512 pixels in a grid of 256: JPEG tiles are not joined to a map of twice its size."""
    out = io.BytesIO()
    Image.new("RGB", (512, 512), (200, 10, 30)).save(out, "JPEG", quality=95)
    server = serve(out.getvalue(), '<format name="f" type="JPEG"/>')
    answer = server.get("/", map_of(1024, "image/jpeg"))
    assert answer.status == 200
    assert Image.open(io.BytesIO(answer.body)).size == (1024, 1024)


def test_bombs_of_vector_tiles(serve):
    """16 clients that accept no gzip, a tile of 200 KB that would expand to 200 MB."""
    server = serve(gzip.compress(bytes(200 << 20), 9), '<format name="f" type="MVT"/>')
    before = most_memory(server)
    clients = [Client(server.address) for _ in range(16)]
    for client in clients:
        client.send(f"/wmts/1.0.0/layer/default/{GRID}/2/0/0.mvt".encode())
    for client in clients:
        answer = client.receive()
        assert answer.status == 500 and len(answer.body) < 2000, answer.status
        client.close()
    assert most_memory(server) < before + 16 * 13 + GROWTH
    answer = server.get(f"/wmts/1.0.0/layer/default/{GRID}/2/0/0.mvt", variables={b"HTTP_ACCEPT_ENCODING": b"gzip"})
    assert answer.status == 200 and len(answer.body) < 1 << 20


def test_vector_tiles_expand(serve):
    """A tile that shrank to a fiftieth, as those of many equal features do."""
    content = b"".join(bytes([i % 251, i // 251 % 251]) * 400 for i in range(4000))
    packed = gzip.compress(content, 6)
    assert len(content) > 50 * len(packed)
    server = serve(packed, '<format name="f" type="MVT"/>')
    assert server.get(f"/wmts/1.0.0/layer/default/{GRID}/2/0/0.mvt").body == content

"""Caches and configurations that are not what they should be: the right status and message in time, never a signal,
never a wait without end, and service as before as soon as the store is whole again."""

import os
import shutil
import sqlite3
import stat
import struct
import subprocess
import time
import zlib

import pytest
from conftest import GRID, apache_config, free_port, png, sanitizer_environment
from fastcgi import Client, Server
from origin import Origin
from patience import patience

TILE = png(256, 256, lambda x, y: (x, y, 7))
RED = b"PLTE\xff\0\0"  # the origin's map as a palette image
SCHEMA = ("create table tiles(tileset text, grid text, x integer, y integer, z integer, data blob, dim text,"
          " ctime datetime, primary key(tileset, grid, x, y, z, dim))")


def fill(path, data=TILE, tileset="layer", levels=2):
    database = sqlite3.connect(path)
    database.execute(SCHEMA)
    for z in range(levels):
        for x in range(2**z):
            for y in range(2**z):
                database.execute("insert into tiles values(?, ?, ?, ?, ?, ?, '', datetime('now'))",
                                 (tileset, GRID, x, y, z, data))
    database.commit()
    database.close()


def config(folder, cache, source="", extra="", tileset=""):
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache>
  <cache name="store" {cache}</cache>
  <source name="origin" type="wms"><getmap><params><FORMAT>image/png</FORMAT><LAYERS>red</LAYERS></params></getmap>
    <http><url>{source or "http://127.0.0.1:9/"}</url></http></source>
  <tileset name="layer"><cache>store</cache><grid>{GRID}</grid><format>PNG</format><metatile>1 1</metatile>
    {"<source>origin</source>" if source else ""}{tileset}</tileset>
  <service type="wmts" enabled="true"/>
  <service type="wms" enabled="true"><format>PNG</format></service>
  <lock_dir>{folder}</lock_dir>
  {extra}
</mapcache>
""")
    return path


def tile(z=0, x=0, y=0):
    return f"/wmts/1.0.0/layer/default/{GRID}/{z}/{y}/{x}.png"


WORLD = "-20037508.342789248,-20037508.342789248,20037508.342789248,20037508.342789248"
MAP = f"SERVICE=WMS&REQUEST=GetMap&LAYERS=layer&SRS=EPSG:3857&BBOX={WORLD}&WIDTH=300&HEIGHT=300"


def check(answer, statuses, folder, seconds=30):
    assert answer.status in statuses, (answer.status, answer.body[:300])
    assert answer.took < patience(seconds), answer.took
    if answer.status >= 400:
        assert answer.body and len(answer.body) < 2000
        assert str(folder).encode() not in answer.body and b"sqlite" not in answer.body.lower(), answer.body


@pytest.fixture
def serve(build, folder):
    """serve(cache, ...): the program with one layer on that cache."""
    running = []

    def start(cache, source="", user=None, **options):
        folder.chmod(0o777)
        running.append(Server(build, config(folder, cache, source, **options), folder, user))
        return running[-1]

    yield start
    for server in running:
        server.stop()


@pytest.fixture(scope="module")
def origin():
    with Origin() as running:
        yield running


def make_missing(path):
    pass


def make_empty(path):
    path.write_bytes(b"")


def make_text(path):
    path.write_text("no database " * 1000)


def make_header_only(path):
    path.write_bytes(b"SQLite format 3\0" + bytes(84))


def make_truncated(path):
    fill(path, levels=5)
    data = path.read_bytes()
    path.write_bytes(data[:len(data) // 2])


def make_scrambled(path):
    """Every page but the first is noise."""
    fill(path, levels=4)
    data = bytearray(path.read_bytes())
    for at in range(4096, len(data)):
        data[at] = (at * 2654435761 >> 7) & 0xff
    path.write_bytes(data)


def make_folder(path):
    path.mkdir()


def make_other_table(path):
    database = sqlite3.connect(path)
    database.execute("create table tiles(a, b)")
    database.commit()
    database.close()


def make_view_of_itself(path):
    """A schema that names what is not there."""
    database = sqlite3.connect(path)
    database.execute("create view tiles as select * from elsewhere")
    database.commit()
    database.close()


def make_fifo(path):
    os.mkfifo(path)


def make_dangling(path):
    path.symlink_to(path.parent / "nowhere.sqlite3")


def make_loop(path):
    path.symlink_to(path)


# What is at the file's place; status of a tile without a source, and with one.
FILES = [
    (make_missing, (500,), (200,)),
    (make_empty, (500,), (200, 500)),
    (make_text, (500,), (500,)),
    (make_header_only, (500,), (500,)),
    (make_truncated, (200, 500), (200, 500)),
    (make_scrambled, (200, 500), (200, 500)),
    (make_folder, (500,), (500,)),
    (make_other_table, (500,), (500,)),
    (make_view_of_itself, (500,), (200, 500)),
    (make_fifo, (500,), (500,)),
    (make_dangling, (500,), (200, 500)),
    (make_loop, (500,), (500,)),
]


@pytest.mark.parametrize("rendered", [False, True], ids=["stored only", "with a source"])
@pytest.mark.parametrize("make,alone,with_source", FILES, ids=[make.__name__[5:] for make, _, _ in FILES])
def test_sqlite_file(serve, folder, origin, make, alone, with_source, rendered):
    path = folder / "store.sqlite3"
    make(path)
    server = serve(f'type="sqlite3"><dbfile>{path}</dbfile>', origin.url() if rendered else "")
    for _ in range(2):
        check(server.get(tile()), with_source if rendered else alone, folder)
        check(server.get("/", MAP), (200, 404, 500), folder)
    # the operator repairs it, and nobody has to restart anything
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
    for beside in folder.glob("store.sqlite3-*"):
        beside.unlink()
    fill(folder / "new.sqlite3")
    (folder / "new.sqlite3").rename(path)
    answer = server.get(tile())
    assert answer.status == 200 and answer.body == TILE, answer.body[:300]


BLOBS = {
    "null": None,
    "number": 12345,
    "text": "a text that is no image",
    "empty": b"",
    "sign alone": b"#",
    "half of a colour": b"#\x01\x02",
    "colour and more": b"#\x01\x02\x03\x04\x05",
    "half a png": TILE[:len(TILE) // 2],
    "png head": TILE[:20],
    "png of another size": png(16, 16, lambda x, y: (1, 2, 3)),
    "png with a wrong sum": TILE[:45] + bytes([TILE[45] ^ 1]) + TILE[46:],
    "png of a million pixels a side": TILE[:16] + struct.pack(">II", 1_000_000, 1_000_000) + TILE[24:29]
    + struct.pack(">I", zlib.crc32(b"IHDR" + struct.pack(">II", 1_000_000, 1_000_000) + TILE[24:29])) + TILE[33:],
    "jpeg head": b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0",
    "markup": b"<html><script>alert(1)</script>",
    "ten megabytes": bytes(10_000_000),
}


@pytest.mark.parametrize("kind", BLOBS)
def test_what_stands_in_place_of_a_tile(serve, folder, kind):
    """As it is, or an error; and a map of it is an error or does without it."""
    fill(folder / "store.sqlite3", BLOBS[kind])
    server = serve(f'type="sqlite3"><dbfile>{folder}/store.sqlite3</dbfile>')
    answer = server.get(tile())
    check(answer, (200, 404, 500), folder)
    if kind == "markup":
        assert "html" not in answer.header("Content-Type", "")
    check(server.get("/", MAP), (200, 404, 500), folder)
    check(server.get("/", MAP + "&FORMAT=image/jpeg"), (200, 404, 500), folder)
    assert server.alive(), server.log()


def test_sqlite_file_that_may_not_be_written(serve, folder, origin):
    store = folder / "kept"
    store.mkdir()
    fill(store / "store.sqlite3", levels=1)
    (store / "store.sqlite3").chmod(0o444)
    store.chmod(0o555)
    server = serve(f'type="sqlite3"><dbfile>{store}/store.sqlite3</dbfile>', origin.url(), user=unprivileged())
    assert server.get(tile()).body == TILE
    rendered_and_not_stored(server, tile(1, 1, 1), folder)
    assert server.get(tile()).body == TILE


def rendered_and_not_stored(server, path, folder):
    """The client that caused it gets the tile, the log the reason; others see an error, but never an empty tile."""
    for _ in range(2):
        answer = server.get(path)
        check(answer, (200, 500), folder)
        assert answer.status == 500 or RED in answer.body, answer.body
    assert "[mapcache:error]" in server.log(), server.log()


def unprivileged():
    """Who is refused by permissions; root is by none."""
    return "www-data" if os.geteuid() == 0 else None


def test_locked_by_another_process(serve, folder):
    """Longer than the deadline: an error when it is over, not later; other layers are not held up; then as before."""
    fill(folder / "store.sqlite3")
    fill(folder / "other.sqlite3", tileset="other")
    server = serve(f'type="sqlite3"><dbfile>{folder}/store.sqlite3</dbfile>', extra=f"""<deadline>8</deadline>
      <workers>2</workers><cache name="other" type="sqlite3"><dbfile>{folder}/other.sqlite3</dbfile></cache>
      <tileset name="other"><cache>other</cache><grid>{GRID}</grid></tileset>""")
    holder = sqlite3.connect(folder / "store.sqlite3", isolation_level=None)
    holder.execute("begin exclusive")
    waiting = [Client(server.address) for _ in range(3)]
    began = time.monotonic()
    for y, client in enumerate(waiting):
        client.send(tile(1, 1, y % 2).encode())
    other = server.get(tile().replace("layer", "other"))
    assert other.status == 200 and other.took < patience(7), (other.status, other.took, other.body[:200])
    for client in waiting:
        answer = client.receive()
        assert answer.status in (500, 503), answer.body
        assert 4 < time.monotonic() - began < patience(30)
        client.close()
    holder.execute("rollback")
    holder.close()
    assert server.get(tile(1, 1, 1)).body == TILE


def test_a_writer_that_does_not_end(serve, folder, origin):
    """Stored tiles are read beside it; one that would have to be stored ends with the deadline."""
    fill(folder / "store.sqlite3", levels=1)
    server = serve(f'type="sqlite3"><dbfile>{folder}/store.sqlite3</dbfile>', origin.url(),
                   extra="<deadline>1</deadline>")
    holder = sqlite3.connect(folder / "store.sqlite3", isolation_level=None)
    holder.execute("begin immediate")
    holder.execute("insert into tiles values('x', 'x', 1, 1, 1, x'00', '', 0)")
    assert server.get(tile()).body == TILE
    check(server.get(tile(1, 0, 0)), (200, 500, 503), folder)
    holder.execute("rollback")
    holder.close()
    time.sleep(1.1)  # waiters share an error for a second
    assert server.get(tile(1, 0, 0)).status == 200


def test_a_view_without_end(serve, folder):
    """Of an MBTiles file of others: each request ends with its deadline, for a map as for a tile, and none takes a thread with it."""
    database = sqlite3.connect(folder / "store.mbtiles")
    database.execute("create view tiles as with recursive c(n) as (select 1 union all select n + 1 from c) select n % 3 as zoom_level,"
                     " n % 5 as tile_column, n % 7 as tile_row, x'00' as tile_data from c where n < 0")
    database.close()
    fill(folder / "other.sqlite3", tileset="other")
    server = serve(f'type="mbtiles"><dbfile>{folder}/store.mbtiles</dbfile>', extra=f"""<deadline>1</deadline>
      <cache name="other" type="sqlite3"><dbfile>{folder}/other.sqlite3</dbfile></cache>
      <tileset name="other"><cache>other</cache><grid>{GRID}</grid></tileset>""")
    check(server.get(tile()), (503,), folder)
    check(server.get("/", MAP), (503,), folder)
    clients = [Client(server.address) for _ in range(3)]
    for client in clients:
        client.send(tile(1, 1, 1).encode())
        client.close()
    assert server.get(tile().replace("layer", "other")).body == TILE


def test_deleted_and_renamed_while_served(serve, folder):
    path = folder / "store.sqlite3"
    fill(path)
    server = serve(f'type="sqlite3"><dbfile>{path}</dbfile>')
    assert server.get(tile()).body == TILE
    path.unlink()
    check(server.get(tile()), (500,), folder)
    fill(path, b"\x89PNG second")
    assert server.get(tile()).body == b"\x89PNG second"
    path.rename(folder / "away.sqlite3")
    check(server.get(tile()), (500,), folder)
    path.write_bytes(b"garbage" * 1000)
    check(server.get(tile()), (500,), folder)
    (folder / "away.sqlite3").rename(path)
    assert server.get(tile()).body == b"\x89PNG second"
    for round_number in range(30):
        fill(folder / "next.sqlite3", b"\x89PNG %d" % round_number)
        (folder / "next.sqlite3").rename(path)
        assert server.get(tile()).body == b"\x89PNG %d" % round_number


def test_a_stored_value_that_is_no_tile_is_named(serve, folder):
    """A map of it fails as it does with MapCache; the answer says which tile of which store is to be looked at, the log why."""
    path = folder / "store.sqlite3"
    fill(path, b"<html>no tile</html>")
    server = serve(f'type="sqlite3"><dbfile>{path}</dbfile>', tileset="<expires>300</expires>")
    answer = server.get("/", MAP)
    check(answer, (500,), folder)
    assert b"layer&quot;: the tile 0/0/0 of cache &quot;store&quot; is not an image" in answer.body, answer.body
    assert "is not an image that can be drawn: neither a PNG nor a JPEG nor a WebP image" in server.log()


# --- disk --------------------------------------------------------------------------------------------------------- #

@pytest.fixture
def disk(serve, folder, origin):
    """disk(prepare): a server with a source on a disk cache, and the path of its one stored tile, prepared."""
    def start(prepare, user=None, source=True):
        server = serve(f'type="disk"><base>{folder}/store</base>', origin.url() if source else "", user=user)
        if source:
            assert server.get(tile(1, 1, 1)).status == 200
        paths = [path for path in (folder / "store").rglob("*.png")]
        assert len(paths) == 1
        prepare(paths[0])
        return server, paths[0]

    return start


def test_a_fifo_in_a_disk_cache(disk, folder):
    def prepare(path):
        path.unlink()
        os.mkfifo(path)

    server, _ = disk(prepare)
    check(server.get(tile(1, 1, 1)), (200, 500), folder)


def test_an_empty_file_in_a_disk_cache_is_rendered_again(disk):
    server, path = disk(lambda path: path.write_bytes(b""))
    answer = server.get(tile(1, 1, 1))
    assert answer.status == 200 and answer.body.startswith(b"\x89PNG") and path.stat().st_size == len(answer.body)


def test_a_huge_file_in_a_disk_cache(disk, folder):
    server, _ = disk(lambda path: os.truncate(path, 100_000_000_000))
    check(server.get(tile(1, 1, 1)), (500,), folder)


def test_links_in_a_disk_cache(disk, folder):
    def prepare(path):
        path.rename(folder / "elsewhere.png")
        path.symlink_to(folder / "elsewhere.png")

    server, path = disk(prepare)
    whole = server.get(tile(1, 1, 1))
    assert whole.status == 200 and whole.body == (folder / "elsewhere.png").read_bytes()
    path.unlink()
    path.symlink_to(path.name)
    check(server.get(tile(1, 1, 1)), (200, 500), folder)
    path.unlink()
    path.symlink_to("nowhere")
    check(server.get(tile(1, 1, 1)), (200,), folder)


def test_a_folder_in_place_of_a_tile(disk, folder):
    def prepare(path):
        path.unlink()
        path.mkdir()

    server, _ = disk(prepare)
    check(server.get(tile(1, 1, 1)), (500,), folder)


def test_a_file_in_place_of_a_folder(disk, folder):
    server, path = disk(lambda path: None)
    shutil.rmtree(path.parent)
    path.parent.write_text("in the way")
    rendered_and_not_stored(server, tile(1, 1, 1), folder)
    path.parent.unlink()
    time.sleep(1.1)
    assert server.get(tile(1, 1, 1)).status == 200


def test_half_a_tile_in_a_disk_cache(disk, folder):
    server, _ = disk(lambda path: os.truncate(path, 60))
    check(server.get(tile(1, 1, 1)), (200,), folder)  # stored bytes are passed on unread
    check(server.get("/", MAP.replace("WIDTH=300", "WIDTH=700")), (200, 500), folder)


def test_permissions_of_a_disk_cache(disk, folder):
    user = unprivileged()

    def prepare(path):
        path.chmod(0)
        for parent in [path.parent, *path.parents]:
            if parent == folder:
                break
            parent.chmod(0o555)

    server, path = disk(prepare, user=user)
    check(server.get(tile(1, 1, 1)), (500,), folder)
    path.chmod(0o444)
    assert server.get(tile(1, 1, 1)).body == path.read_bytes()
    rendered_and_not_stored(server, tile(1, 0, 0), folder)
    assert "a tile cannot be stored" in server.log()
    assert not [entry for entry in (folder / "store").rglob("*") if entry.is_file() and entry != path]


def test_who_waits_for_a_tile_that_cannot_be_stored(serve, folder, origin):
    (folder / "store").write_text("no folder")
    server = serve(f'type="disk"><base>{folder}/store</base>', origin.url("/late/300/wms?"))
    clients = [Client(server.address) for _ in range(4)]
    for client in clients:
        client.send(tile(1, 1, 1).encode())
    answers = [client.receive() for client in clients]
    for client in clients:
        client.close()
    assert any(answer.status == 200 for answer in answers)
    assert all(answer.status == 500 or RED in answer.body for answer in answers), [a.body[:80] for a in answers]


# --- configurations ------------------------------------------------------------------------------------------------ #

HEAD = f"""<mapcache>
<cache name="c" type="disk"><base>@FOLDER@/none/x</base></cache>
<tileset name="t"><cache>c</cache><grid>{GRID}</grid></tileset>
<service type="wmts" enabled="true"/>
"""

# Refused as a whole, with the line that says why (None: the place is not in this file).
BROKEN = {
    "empty": (b"", 1),
    "blank": (b"\n\n  \n", None),
    "text": (b"not xml at all", 1),
    "binary": (bytes(range(256)) * 40, None),
    "nul": (HEAD.encode() + b"\0</mapcache>", 5),
    "open element": (b"<mapcache>\n<cache name='c' type='disk'>\n", None),
    "wrong end": (b"<mapcache>\n<cache></mapcache>", 2),
    "two roots": (HEAD.encode() + b"</mapcache>\n<mapcache/>", 6),
    "another root": (b"<config/>", 1),
    "attribute twice": (b"<mapcache>\n<cache name='a' name='b' type='disk'/></mapcache>", 2),
    "laughing": (b"<!DOCTYPE m [<!ENTITY a '" + b"ha" * 50 + b"'>" + b"".join(
        b"<!ENTITY %c '%s'>" % (98 + i, b"&%c;" % (97 + i) * 20) for i in range(8)) + b"]>\n<mapcache>&i;</mapcache>",
        None),
    "deep": (b"<mapcache>" + b"<a>" * 200_000, None),
    "unknown cache": (HEAD.replace("<cache>c</cache>", "<cache>other</cache>").encode() + b"</mapcache>", 3),
    "unknown grid": (HEAD.replace(GRID, "nogrid").encode() + b"</mapcache>", 3),
    "same name twice": (HEAD.encode() + b"<cache name='c' type='disk'><base>@FOLDER@/x</base></cache></mapcache>", 5),
    "metatile nought": (HEAD.replace("</tileset>", "<metatile>0 0</metatile></tileset>").encode() + b"</mapcache>", 3),
    "metatile huge": (HEAD.replace("</tileset>",
                                   "<metatile>100000 100000</metatile></tileset>").encode() + b"</mapcache>", 3),
    "expires overflow": (HEAD.replace("</tileset>",
                                      "<expires>99999999999999999999</expires></tileset>").encode() + b"</mapcache>",
                                      3),
    "grid of nan": (HEAD.encode() + b"<grid name='n'><srs>EPSG:3857</srs><extent>nan nan inf inf</extent><size>256 256</size>"
                    b"<resolutions>1 2 nan</resolutions></grid></mapcache>", 5),
    "grid upside down": (HEAD.encode() + b"<grid name='n'><srs>EPSG:3857</srs><extent>10 10 0 0</extent><size>256 256</size>"
                         b"<resolutions>2 1</resolutions></grid></mapcache>", 5),
    "grid of tiny pixels": (HEAD.encode() + b"<grid name='n'><srs>EPSG:3857</srs><extent>0 0 1e300 1e300</extent><size>256 256</size>"
                            b"<resolutions>1e-300</resolutions></grid></mapcache>", 5),
    "tiles of no pixels": (HEAD.encode() + b"<grid name='n'><srs>EPSG:3857</srs><extent>0 0 10 10</extent><size>0 -1</size>"
                           b"<resolutions>2 1</resolutions></grid></mapcache>", 5),
    "bad expression": (HEAD.replace("</tileset>",
                                    "<dimensions><dimension name='d' type='regex' default='a'><regex>(((</regex>"
                                    "</dimension></dimensions></tileset>").encode() + b"</mapcache>", 3),
    "quality": (HEAD.encode() + b"<format name='q' type='JPEG'><quality>1000</quality></format></mapcache>", 5),
}


def write_config(path, text):
    """A text of those above, with the folder of the file for @FOLDER@."""
    text = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(text.replace(b"@FOLDER@", os.fsencode(path.parent)))


@pytest.mark.parametrize("name", BROKEN)
def test_broken_configuration(build, folder, name):
    """`mapcache check` says where and ends with 1; FastCGI that a web server has spawned answers 500 to every request and logs why."""
    content, line = BROKEN[name]
    path = folder / "broken.xml"
    write_config(path, content)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(build / "lib"), "MAPCACHE_MODULES": str(build / "modules")}
    checked = subprocess.run([build / "bin/mapcache", "check", path], env=environment, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, timeout=patience(60), check=False)
    said = checked.stdout.decode(errors="replace")
    assert checked.returncode == 1, (checked.returncode, said[:600])
    assert "broken.xml" in said and len(said) < 20_000, said[:600]
    if line is not None:
        assert f"broken.xml:{line}:" in said, said[:600]
    assert "root:x:" not in said
    server = Server(build, path, folder, spawned=True)
    try:
        for target in (tile(), "/", "/demo", "/wmts/1.0.0/WMTSCapabilities.xml"):
            answer = server.get(target)
            assert answer.status == 500, (answer.status, answer.body[:200])
            assert b"broken.xml" not in answer.body and len(answer.body) < 1000
        assert "broken.xml" in server.log(), server.log()
    finally:
        server.stop()


def test_outer_entities_are_not_read(build, folder):
    path = folder / "outer.xml"
    write_config(path, "<!DOCTYPE m [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>\n"
                 + HEAD.replace("<mapcache>", "<mapcache><metadata><title>before &e; after</title></metadata>") + "</mapcache>")
    server = Server(build, path, folder)
    answer = server.get("/wmts/1.0.0/WMTSCapabilities.xml")
    server.stop()
    assert b"root:x:" not in answer.body and "root:x:" not in server.log()


def test_without_a_service_nothing_is_served(build, folder):
    path = folder / "none.xml"
    write_config(path, HEAD.replace('<service type="wmts" enabled="true"/>', "") + "</mapcache>")
    server = Server(build, path, folder)
    statuses = [server.get(target).status for target in (tile(), "/", "/demo")]
    server.stop()
    assert statuses == [500, 500, 500]


def test_no_file_at_all(build, folder):
    """A missing, a forbidden and a strange file in its place."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(build / "lib"), "MAPCACHE_MODULES": str(build / "modules")}
    (folder / "folder.xml").mkdir()
    (folder / "loop.xml").symlink_to("loop.xml")
    for name in ("missing.xml", "folder.xml", "loop.xml"):
        checked = subprocess.run([build / "bin/mapcache", "check", folder / name], env=environment, timeout=patience(20),
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        assert checked.returncode == 1 and name.encode() in checked.stdout, (name, checked.stdout[:300])
        server = Server(build, folder / name, folder, spawned=True)
        assert server.get(tile()).status == 500
        assert server.get("/demo").status == 500
        assert name in server.log()
        server.stop()


@pytest.mark.parametrize("name", ["text", "wrong end", "unknown cache", "same name twice", "laughing"])
def test_apache_refuses_to_start(build, folder, name):
    content, line = BROKEN[name]
    path = folder / "broken.xml"
    write_config(path, content)
    httpd = apache_config(build, folder, free_port(), "event", f"MapCacheAlias /mc {path}\n")
    tested = subprocess.run(["apache2", "-t", "-f", httpd], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            timeout=patience(20),
                            env={**os.environ, **sanitizer_environment(build)}, check=False)
    said = tested.stdout.decode(errors="replace")
    assert tested.returncode == 1, (tested.returncode, said[:500])
    assert "AH00526" in said and "broken.xml" in said, said[:500]
    if line is not None:
        assert f"broken.xml:{line}:" in said, said[:500]

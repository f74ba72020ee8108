"""The mirror modes: clients name the layers, and so what is stored under which name. No name reaches beyond the folder of the cache, or
into a file or a folder that somebody else has put there; links of the operator and of the cache itself go on working."""

import contextlib
import sqlite3
import subprocess
import urllib.parse

import pytest
from conftest import GRID
from fastcgi import Server
from origin import Origin
from patience import patience

HALF = 20037508.342789248
MARK = b"\x89PNG"
DISK = "<cache name='store' type='disk'>{}<base>{}/base</base></cache>"
NAMES = ["roads", "ns:roads", "../../../escaped", "..", ".", "...", "a/b", "a%2Fb", "/tmp/escaped", "%", "name with blanks",
         "Straße", "-rf", "x" * 255, "../" * 60 + "escaped", ".hidden", "x" * 231 + "..", "y" * 231 + ".."]


def query(layers, x=0, y=0):
    """The map that is tile x, y (from the south) of level 1."""
    box = f"{(x - 1) * HALF},{(y - 1) * HALF},{x * HALF},{y * HALF}"
    return (f"SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS={urllib.parse.quote(layers)}&STYLES=&SRS=EPSG:3857&BBOX={box}"
            "&WIDTH=256&HEIGHT=256&FORMAT=image/png")


@pytest.fixture(scope="module")
def origin():
    with Origin() as running:
        yield running


@pytest.fixture
def mirror(build, folder, origin):
    """mirror(mode, cache): the program in that mode."""
    with contextlib.ExitStack() as stack:
        def start(mode, cache):
            (folder / "mapcache.xml").write_text(f"""<mapcache mode="{mode}">
  <source name="origin" type="wms"><getmap><params><FORMAT>image/png</FORMAT></params></getmap>
    <http><url>{origin.url("/wms?")}</url></http></source>
  {cache}
  <tileset name="any"><source>origin</source><cache>store</cache><grid>{GRID}</grid><format>PNG</format><metatile>1 1</metatile></tileset>
  <service type="wms" enabled="true"/>
  <locker type="disk"><directory>{folder}</directory></locker>
</mapcache>""")
            server = Server(build, folder / "mapcache.xml", folder)
            stack.callback(server.stop)
            return server

        (folder / "base").mkdir()
        yield start


def files_outside(folder):
    """What stands beside the folder of the cache."""
    return {path.name for path in folder.iterdir()}


def tiles(folder):
    return {str(path.relative_to(folder / "base")) for path in (folder / "base").rglob("*.png") if "blanks" not in path.parts}


@pytest.mark.parametrize("mode", ["split_mirror", "combined_mirror"])
def test_no_name_leaves_the_folder(mirror, folder, mode):
    server = mirror(mode, DISK.format("", folder))
    assert server.get("/", query("roads")).status == 200
    before = files_outside(folder)
    found = {}
    for name in NAMES:
        known = tiles(folder) if name != "roads" else set()
        assert server.get("/", query(name)).body.startswith(MARK), name
        new = tiles(folder) - known
        assert len(new) == 1, (name, new)
        found[name] = new.pop()
        assert server.get("/", query(name)).body.startswith(MARK), name
    assert files_outside(folder) == before
    assert len(set(found.values())) == len(NAMES)
    assert found["roads"].startswith(f"roads/{GRID}/01/") and found["ns:roads"].startswith(f"ns:roads/{GRID}/01/")


@pytest.mark.parametrize("name", ["a\nb", "a\x7fb", "\x1b[2J", "x" * 3000], ids=["line", "delete", "escape", "long"])
def test_names_that_no_layer_has(mirror, folder, name):
    server = mirror("split_mirror", DISK.format("", folder))
    assert server.get("/", query(name)).status in (400, 404)
    assert tiles(folder) == set()


def test_long_lists_are_one_name(mirror, folder, origin):
    """Longer than a file system takes as one name."""
    server = mirror("combined_mirror", DISK.format("", folder))
    names = [",".join(f"layer_number_{number}_of_{end}" for number in range(40)) for end in ("one", "two", "two,more")]
    assert max(len(name) for name in names) < 2000
    for name in names:
        assert server.get("/", query(name)).body.startswith(MARK)
    assert len(tiles(folder)) == len(names)
    asked = len(origin.requests())
    for name in names:
        assert server.get("/", query(name)).body.startswith(MARK)
    assert len(origin.requests()) == asked


def test_links_that_clients_could_name(mirror, folder):
    """Nothing is read through them, nothing written."""
    server = mirror("split_mirror", DISK.format("", folder))
    assert server.get("/", query("roads")).status == 200
    (folder / "private").mkdir()
    (folder / "base/roads").rename(folder / "private/roads")
    (folder / "base/linked").symlink_to(folder / "private/roads")
    (folder / "base/empty").symlink_to(folder / "private")
    for name in ("linked", "empty"):
        assert server.get("/", query(name)).status == 403
        assert server.get("/", query(name, 1, 1)).status == 403
    assert [path.name for path in (folder / "private").iterdir()] == ["roads"]
    assert len(list((folder / "private").rglob("*.png"))) == 1


@pytest.mark.parametrize("absolute", [False, True])
def test_links_of_the_operator_and_of_the_cache(mirror, folder, absolute):
    """A level on another disk, and tiles of one colour that are links to one file."""
    (folder / "disk2").mkdir()
    (folder / f"base/red/{GRID}").mkdir(parents=True)
    (folder / f"base/red/{GRID}/01").symlink_to(folder / "disk2")
    server = mirror("split_mirror", DISK.format("<symlink_blank/>", folder))
    first = server.get("/", query("red"))
    assert first.body.startswith(MARK)
    links = [path for path in (folder / "disk2").rglob("*.png") if path.is_symlink()]
    assert len(links) == 1 and links[0].parent.resolve().is_relative_to(folder / "disk2")
    if absolute:
        links[0].unlink()
        links[0].symlink_to(next((folder / f"base/red/{GRID}/blanks").iterdir()))
        links[0].resolve(strict=True)
    assert server.get("/", query("red")).body == first.body


def tables(path):
    with contextlib.closing(sqlite3.connect(path)) as database:
        return database.execute("select name, sql from sqlite_master order by name").fetchall()


def test_databases_of_others_stay_as_they_are(mirror, folder):
    """By a path that leads out of the folder, and by the name of a file that lies there for another purpose."""
    for path in (folder / "app.db", folder / "base/catalog.db"):
        with contextlib.closing(sqlite3.connect(path)) as database:
            database.execute("create table secret(a)")
    before = tables(folder / "app.db")
    (folder / "base/linked.db").symlink_to(folder / "app.db")
    server = mirror("split_mirror", f"<cache name='store' type='sqlite3'><dbfile>{folder}/base/{{tileset}}.db</dbfile></cache>")
    for name, status in (("../app", 200), ("catalog", None), ("linked", 403), ("roads", 200)):
        answer = server.get("/", query(name))
        assert status is None or answer.status == status, (name, answer.status, answer.body)
    assert tables(folder / "app.db") == before == tables(folder / "base/catalog.db")
    assert {path.name for path in (folder / "base").glob("*.db")} == {"..%2Fapp.db", "catalog.db", "linked.db", "roads.db"}
    for _ in range(2):  # the second one into a file that is there
        assert server.get("/", query("roads", 1, 1)).status == 200
    with contextlib.closing(sqlite3.connect(folder / "base/roads.db")) as database:
        assert database.execute("select count(*) from tiles where tileset='roads'").fetchone() == (2,)


def test_a_writer_that_was_killed_before_its_first_table(mirror, folder):
    """What it has left is a file with a head and nothing in it: the next one makes the tables."""
    (folder / "base").mkdir(exist_ok=True)
    with contextlib.closing(sqlite3.connect(folder / "base/roads.db")) as database:
        database.execute("pragma application_id = 1")
    assert (folder / "base/roads.db").stat().st_size > 0
    server = mirror("split_mirror", f"<cache name='store' type='sqlite3'><dbfile>{folder}/base/{{tileset}}.db</dbfile></cache>")
    for column in (0, 1):
        assert server.get("/", query("roads", column, 1)).status == 200
    with contextlib.closing(sqlite3.connect(folder / "base/roads.db")) as database:
        assert database.execute("select count(*) from tiles where tileset='roads'").fetchone() == (2,)


def test_nothing_is_an_orphan(mirror, build, folder):
    """Every layer may be one that a client has named."""
    server = mirror("split_mirror", DISK.format("", folder))
    for name in ("roads", "x" * 400):
        assert server.get("/", query(name)).status == 200
    before = tiles(folder)
    subprocess.run([build / "bin/mapcache", "compact", "-q", "-c", folder / "mapcache.xml", "--orphans"], check=True, timeout=patience(60))
    assert len(before) == 2 and tiles(folder) == before


def test_names_of_journals(mirror, folder):
    """SQLite would take it for the log of another layer's file."""
    server = mirror("split_mirror", f"<cache name='store' type='sqlite3'><dbfile>{folder}/base/{{tileset}}</dbfile></cache>")
    assert server.get("/", query("roads")).status == 200
    for end in ("-wal", "-shm", "-journal"):
        assert server.get("/", query("roads" + end)).status == 404
    assert [path.name for path in (folder / "base").iterdir()] == ["roads"]

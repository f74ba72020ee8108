"""Tiles that one user seeds and another one serves, who may read but not write: the usual way to run a tile server. The
same file is served by Debian's MapCache, too: who wants to go back can."""

import contextlib
import os
import pwd
import signal
import sqlite3
import subprocess

import pytest
from conftest import GRID, Program, fetch, free_port, listens, wait_until
from fastcgi import Server
from patience import patience
from peers import peer

SERVED_BY = "www-data"
FILES = {"sqlite3": "tiles.sqlite3", "mbtiles": "tiles.mbtiles"}
PEER_MODULE = peer("/usr/lib/apache2/modules/mod_mapcache.so")
MARK = b"\x89PNG"


def configure(folder, kind):
    """A folder that only root may write, with two configurations: who renders, and who may only read."""
    text = f"""<mapcache>
  <source name="white" type="dummy"/>
  <cache name="tiles" type="{kind}"><dbfile>{folder}/{FILES[kind]}</dbfile></cache>
  <tileset name="white"><source>white</source><cache>tiles</cache><grid>{GRID}</grid><format>PNG</format>
    <read-only>SERVED</read-only></tileset>
  <service type="gmaps" enabled="true"/>
  <locker type="disk"><directory>{folder}</directory></locker>
</mapcache>"""
    (folder / "served.xml").write_text(text.replace("SERVED", "true"))
    (folder / "mapcache.xml").write_text(text.replace("SERVED", "false"))
    folder.chmod(0o755)
    return folder


@pytest.fixture
def store(build, folder):
    """Tiles of levels 0 and 1."""
    configure(folder, "sqlite3")
    seed(build, folder, "0,1")
    return folder


def seed_command(build, folder, levels, *options):
    return [str(build / "bin/mapcache"), "seed", "-q", "-c", str(folder / "mapcache.xml"), "-t", "white", "-z", levels, *options]


def seed(build, folder, levels, *options):
    done = subprocess.run(seed_command(build, folder, levels, *options), capture_output=True, text=True, timeout=patience(60))
    assert done.returncode == 0, done.stdout + done.stderr


@contextlib.contextmanager
def serving(folder, module, environment=None, config="served.xml", user=SERVED_BY):
    """The port of an Apache whose children are that user."""
    port = free_port()
    (folder / "httpd.conf").write_text(f"""ServerRoot {folder}
ServerName localhost
Listen 127.0.0.1:{port}
PidFile {folder}/httpd.pid
ErrorLog {folder}/error.log
User {user}
Group {user}
StartServers 1
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule mapcache_module {module}
MapCacheAlias /mc {folder}/{config}
""")
    program = Program(["apache2", "-f", folder / "httpd.conf", "-DFOREGROUND"], folder / "httpd.out", environment)
    try:
        wait_until(lambda: listens(("127.0.0.1", port)) or program.process.poll() is not None, "httpd starts")
        assert program.process.poll() is None, f"httpd with {module} has ended: {program.log()}"
        yield port
    finally:
        program.stop()


@pytest.fixture
def ours(build, modules_environment):
    """The arguments of serving for our module."""
    return build / "modules/mod_mapcache.so", modules_environment


@pytest.fixture
def server(store, ours):
    with serving(store, *ours) as port:
        yield port


def get(port, z=0, x=0, y=0):
    return fetch(port, f"/mc/gmaps/white/{z}/{x}/{y}.png")


def journal_mode(file):
    with contextlib.closing(sqlite3.connect(file)) as database:
        return database.execute("pragma journal_mode").fetchone()[0]


def expect_one_file(folder, kind):
    assert journal_mode(folder / FILES[kind]) == "delete"
    assert [path.name for path in folder.glob(FILES[kind] + "*")] == [FILES[kind]]


def test_seeder_leaves_one_whole_file(store):
    """What is in a write-ahead log would be lost to who copies the file."""
    expect_one_file(store, "sqlite3")
    database = sqlite3.connect(f"file:{store}/tiles.sqlite3?immutable=1", uri=True)
    assert database.execute("select count(*) from tiles").fetchone() == (5,)


def test_who_may_only_read_serves(store, server):
    assert pwd.getpwnam(SERVED_BY).pw_uid != os.geteuid() == (store / "tiles.sqlite3").stat().st_uid
    for _ in range(3):
        reply = get(server, 1, 1, 1)
        assert reply.status == 200, (store / "error.log").read_text()
    assert reply.body.startswith(MARK)
    expect_one_file(store, "sqlite3")


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("before", ["seeded", "killed", "served"])
def test_mapcache_serves_it_afterwards(build, folder, ours, kind, before):
    """From the file, with nothing but the right to read: after a run of the seeder, one that was killed (and another one that
    went on), and after a server that wrote to it."""
    configure(folder, kind)
    seed(build, folder, "0,1")
    if before == "killed":
        kill_seeder(build, folder, kind)
        seed(build, folder, "0,1", "-f")
    if before == "served":
        subprocess.run(["chown", "-R", SERVED_BY, folder], check=True)
        with serving(folder, *ours, config="mapcache.xml") as port:
            assert get(port, 2, 2, 2).body.startswith(MARK)
            assert journal_mode(folder / FILES[kind]) == ("wal" if kind == "sqlite3" else "delete")
            seed(build, folder, "3,3")  # beside a server that has it open
        subprocess.run(["chown", "-R", "root", folder], check=True)
    expect_one_file(folder, kind)
    with serving(folder, PEER_MODULE) as port:
        for _ in range(2):
            reply = get(port, 1, 1, 1)
            assert (reply.status, reply.body[:4]) == (200, MARK), (folder / "error.log").read_text()
    with serving(folder, *ours) as port:
        assert get(port, 1, 1, 1).body == reply.body
    expect_one_file(folder, kind)


def test_fastcgi_leaves_one_file(build, folder):
    """It writes in WAL mode, and takes that back when it ends."""
    configure(folder, "sqlite3")
    server = Server(build, folder / "mapcache.xml", folder)
    assert server.get("/gmaps/white/2/1/1.png").body.startswith(MARK)
    assert journal_mode(folder / FILES["sqlite3"]) == "wal"
    server.stop()
    expect_one_file(folder, "sqlite3")


def kill_seeder(build, folder, kind):
    """In the middle of many tiles, once some have been stored."""
    seeder = subprocess.Popen(seed_command(build, folder, "2,9"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              start_new_session=True)
    size = (folder / FILES[kind]).stat().st_size
    wait_until(lambda: (folder / FILES[kind]).stat().st_size > size or seeder.poll() is not None, "tiles are stored")
    seeder.send_signal(signal.SIGKILL)
    assert seeder.wait() == -signal.SIGKILL
    with contextlib.closing(sqlite3.connect(folder / FILES[kind])) as database:
        assert database.execute("pragma integrity_check").fetchone() == ("ok",)


def test_log_of_a_killed_writer_names_its_remedy(store, ours):
    """What is in it cannot be read without writing, and the file alone would be an old state."""
    file = store / "tiles.sqlite3"
    writer = subprocess.Popen(["sqlite3", file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    writer.stdin.write("pragma journal_mode=wal; update tiles set z = z; select 'written';\n")
    writer.stdin.flush()
    assert [writer.stdout.readline().strip() for _ in range(2)] == ["wal", "written"]
    writer.kill()
    writer.wait()
    (store / "tiles.sqlite3-shm").unlink()
    with serving(store, *ours) as port:
        assert get(port, 1, 1, 1).status == 503
        log = (store / "error.log").read_text()
        assert "sqlite3 FILE 'PRAGMA journal_mode=delete'" in log and str(file) in log
        subprocess.run(["sqlite3", file, "PRAGMA journal_mode=delete"], check=True, stdout=subprocess.DEVNULL)
        assert get(port, 1, 1, 1).status == 200
    expect_one_file(store, "sqlite3")


def test_changes_show_while_it_serves(build, store, server):
    """A journal in either mode, and a log beside the file that stays there for a while."""
    before = get(server).body
    other = bytes(before[:-1]) + b"\0"
    database = sqlite3.connect(store / "tiles.sqlite3")
    assert database.execute("pragma journal_mode=wal").fetchone() == ("wal",)
    database.execute("update tiles set data=? where z=0", (other,))
    database.commit()
    assert get(server).body == other, "the log is open elsewhere"
    database.close()
    assert get(server).body == other, "the log has been taken in"
    seed(build, store, "2,2")
    assert get(server, 2, 3, 3).body.startswith(MARK)
    seed(build, store, "0,0", "-f")
    assert get(server).body == before
    assert "error" not in (store / "error.log").read_text()

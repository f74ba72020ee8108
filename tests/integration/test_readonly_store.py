"""Tiles that one user seeds and another one serves, who may read but not write: the usual way to run a tile server."""

import os
import pwd
import sqlite3
import subprocess

import pytest
from conftest import GRID, Program, fetch, free_port, listens, wait_until
from patience import patience

SERVED_BY = "www-data"


@pytest.fixture
def store(build, folder):
    """A folder with tiles of levels 0 and 1 that only root may write."""
    config = folder / "mapcache.xml"
    config.write_text(f"""<mapcache>
  <source name="white" type="dummy"/>
  <cache name="tiles" type="sqlite3"><dbfile>{folder}/tiles.sqlite3</dbfile></cache>
  <tileset name="white"><source>white</source><cache>tiles</cache><grid>{GRID}</grid><format>PNG</format>
    <read-only>SERVED</read-only></tileset>
  <service type="gmaps" enabled="true"/>
  <locker type="disk"><directory>{folder}</directory></locker>
</mapcache>""")
    served = folder / "served.xml"
    served.write_text(config.read_text().replace("SERVED", "true"))
    config.write_text(config.read_text().replace("SERVED", "false"))
    seed(build, folder, "0,1")
    folder.chmod(0o755)
    return folder


def seed(build, folder, levels, *options):
    done = subprocess.run([build / "bin/mapcache", "seed", "-q", "-c", folder / "mapcache.xml", "-t", "white", "-z", levels,
                           *options], capture_output=True, text=True, timeout=patience(60))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def server(build, store, modules_environment):
    """An Apache whose children are www-data."""
    port = free_port()
    config = store / "httpd.conf"
    config.write_text(f"""ServerRoot {store}
ServerName localhost
Listen 127.0.0.1:{port}
PidFile {store}/httpd.pid
ErrorLog {store}/error.log
User {SERVED_BY}
Group {SERVED_BY}
StartServers 1
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule mapcache_module {build}/modules/mod_mapcache.so
MapCacheAlias /mc {store}/served.xml
""")
    program = Program(["apache2", "-f", config, "-DFOREGROUND"], store / "httpd.out", modules_environment)
    wait_until(lambda: listens(("127.0.0.1", port)) or program.process.poll() is not None, "httpd starts")
    yield port
    program.stop()


def get(port, z=0, x=0, y=0):
    return fetch(port, f"/mc/gmaps/white/{z}/{x}/{y}.png")


def test_seeder_leaves_one_whole_file(store):
    """What is in a write-ahead log would be lost to who copies the file."""
    assert sorted(path.name for path in store.glob("tiles.sqlite3*")) == ["tiles.sqlite3"]
    database = sqlite3.connect(f"file:{store}/tiles.sqlite3?immutable=1", uri=True)
    assert database.execute("select count(*) from tiles").fetchone() == (5,)


def test_who_may_only_read_serves(store, server):
    assert pwd.getpwnam(SERVED_BY).pw_uid != os.geteuid() == (store / "tiles.sqlite3").stat().st_uid
    for _ in range(3):
        reply = get(server, 1, 1, 1)
        assert reply.status == 200, (store / "error.log").read_text()
    assert reply.body.startswith(b"\x89PNG")


def test_changes_show_while_it_serves(build, store, server):
    """A journal in either mode, and a log beside the file that stays there for a while."""
    before = get(server).body
    other = bytes(before[:-1]) + b"\0"
    database = sqlite3.connect(store / "tiles.sqlite3")
    assert database.execute("pragma journal_mode").fetchone() == ("wal",)
    database.execute("update tiles set data=? where z=0", (other,))
    database.commit()
    assert get(server).body == other, "the log is open elsewhere"
    database.close()
    assert get(server).body == other, "the log has been taken in"
    seed(build, store, "2,2")
    assert get(server, 2, 3, 3).body.startswith(b"\x89PNG")
    seed(build, store, "0,0", "-f")
    assert get(server).body == before
    assert "error" not in (store / "error.log").read_text()

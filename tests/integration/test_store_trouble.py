"""Seeding into stores in trouble: a disk that is full in the middle, a database that goes away, a folder that is renamed,
other seeders at the same file. What was told as stored is there, what was not is told, and the next run completes it."""
import os
import pathlib
import re
import resource
import signal
import sqlite3
import subprocess
import threading
import time

import pytest
from conftest import GRID, wait_until
from patience import patience
from postgres import Postgres
from small_disk import enlarge, small_disk

BUILD = pathlib.Path(os.environ.get("MAPCACHE_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build" / "release"))
KINDS = {
    "product": ("sqlite3", "<dbfile>{store}/{{tileset}}.db</dbfile>", "product.db"),
    "single": ("sqlite3", "<dbfile>{store}/one.db</dbfile>", "one.db"),
    "mbtiles": ("mbtiles", "<dbfile>{store}/tiles.mbtiles</dbfile>", "tiles.mbtiles"),
    "geopackage": ("geopackage", "<dbfile>{store}/tiles.gpkg</dbfile>", "tiles.gpkg"),
    "disk": ("disk", "<base>{store}/tiles</base>", None),
}
COUNT = {"geopackage": "select count(*), min(length(tile_data)) from tiles", "mbtiles": "select count(*), min(length(tile_data)) from tiles",
         "product": "select count(*), min(length(data)) from tiles", "single": "select count(*), min(length(data)) from tiles"}


class Site:
    def __init__(self, folder, kind, store=None, connection=None):
        self.folder, self.kind, self.store = folder, kind, store or folder / "store"
        cache, inner, self.file = KINDS.get(kind, ("postgresql", f"<connection>{connection}</connection>", None))
        self.config = folder / "mapcache.xml"
        self.config.write_text(f"""<mapcache><source name="any" type="dummy"/><cache name="main" type="{cache}">{inner.format(store=self.store)}</cache>
          <tileset name="{kind}"><source>any</source><cache>main</cache><grid>{GRID}</grid><format>PNG</format><metatile>2 2</metatile></tileset>
          <service type="wmts" enabled="true"/><lock_dir>{folder}</lock_dir></mapcache>""")
        self.place = folder / "place"

    def command(self, *options):
        return [str(BUILD / "bin" / "mapcache"), "seed", "-c", str(self.config), "-t", self.kind, "-q", *options]

    def seed(self, *options, **more):
        return subprocess.run(self.command(*options), capture_output=True, text=True, timeout=patience(100), **more)

    def start(self, *options):
        return subprocess.Popen(self.command(*options), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def count(self):
        """Tiles in the store, each of them whole; the file is sound."""
        if self.kind == "disk":
            files = [file for file in (self.store / "tiles").rglob("*.png")]
            assert all(file.stat().st_size > 60 for file in files)
            return len(files)
        with sqlite3.connect(self.store / self.file, timeout=patience(60)) as db:
            assert db.execute("pragma integrity_check").fetchone() == ("ok",)
            tables = db.execute("select count(*) from sqlite_master where name = 'tiles'").fetchone()[0]
            found, least = db.execute(COUNT[self.kind]).fetchone() if tables else (0, None)
        db.close()
        assert least is None or least > 60
        return found


def tiles_to(zoom):
    return (4 ** (zoom + 1) - 1) // 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_disk_that_is_full(tmp_path, kind):
    site = Site(tmp_path, kind)
    with small_disk(site.store, (160 if kind == "mbtiles" else 400) << 10) as place:
        if place is None:
            limited(site)
            return
        failed = site.seed("-z", "0,6", "--checkpoint", str(site.place))
        assert failed.returncode == 1, failed.stdout + failed.stderr
        assert any(word in failed.stdout + failed.stderr for word in ("full", "No space left")), failed.stdout + failed.stderr
        stored = site.count()
        assert 0 <= stored < tiles_to(6)
        assert list(site.store.rglob("*.tmp")) == []
        enlarge(place, "64M")
        resumed = site.seed("-z", "0,6", "--checkpoint", str(site.place), "--resume")
        assert resumed.returncode == 0, resumed.stdout + resumed.stderr
        assert site.count() == tiles_to(6)


def limited(site):
    """The same without the right to mount: no file may grow beyond a limit."""
    if site.kind == "disk":
        return  # its files are all small
    site.store.mkdir(exist_ok=True)
    failed = site.seed("-z", "0,6", "--checkpoint", str(site.place), restore_signals=False,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100 << 10, resource.RLIM_INFINITY)))
    assert failed.returncode == 1, failed.stdout + failed.stderr
    assert site.count() < tiles_to(6)
    resumed = site.seed("-z", "0,6", "--checkpoint", str(site.place), "--resume")
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert site.count() == tiles_to(6)


@pytest.mark.parametrize("kind", ["product", "single", "mbtiles", "geopackage"])
def test_a_file_that_must_not_grow(tmp_path, kind):
    limited(Site(tmp_path, kind))


def test_a_database_that_goes_away_and_comes_back(tmp_path):
    with Postgres(settings=("fsync=on",)) as database:
        site = Site(tmp_path, "shared", connection=database.connection())
        seeder = site.start("-z", "0,5", "--checkpoint", str(site.place), "--rate-limit", "700", "-n", "2")
        wait_until(lambda: database.sql("select to_regclass('mapcache_tiles') is not null") == ["t"], "the table")
        wait_until(lambda: int(database.sql("select count(*) from mapcache_tiles")[0]) > 0, "the first tiles")
        database.stop()
        time.sleep(0.5)
        database.start()
        output = seeder.communicate(timeout=patience(60))[0]
        assert seeder.returncode >= 0, output
        stored = int(database.sql("select count(*) from mapcache_tiles")[0])
        assert 0 < stored <= tiles_to(5)
        if "cannot reach its tiles" in output or seeder.returncode != 0:
            resumed = site.seed("-z", "0,5", "--checkpoint", str(site.place), "--resume")
            assert resumed.returncode == 0, resumed.stdout + resumed.stderr
        assert database.sql("select count(*), count(distinct (z, x, y)) from mapcache_tiles") == [f"{tiles_to(5)}|{tiles_to(5)}"]


@pytest.mark.parametrize("kind", ["product", "single", "disk"])
def test_a_folder_that_goes_away_and_comes_back(tmp_path, kind):
    site, away = Site(tmp_path, kind), tmp_path / "away"
    root = site.store / "tiles" if kind == "disk" else site.store
    seeder = site.start("-z", "0,5", "--checkpoint", str(site.place), "--rate-limit", "700")
    wait_until(lambda: root.exists() and site.count() > 10, "the first tiles")
    for _ in range(3):
        root.rename(away)
        time.sleep(0.3)
        assert not root.exists()  # nobody stores tiles where they would not be found again
        away.rename(root)
        time.sleep(0.2)
    output = seeder.communicate(timeout=patience(60))[0]
    assert seeder.returncode >= 0, output
    if "failed to seed" in output or seeder.returncode != 0:
        resumed = site.seed("-z", "0,5", "--checkpoint", str(site.place), "--resume")
        assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert site.count() == tiles_to(5)


@pytest.mark.parametrize("kind", ["product", "single"])
def test_an_interrupt_ends_the_wait_for_another_writer(tmp_path, kind):
    """Somebody else's transaction may last for a minute, or for ever."""
    site = Site(tmp_path, kind)
    assert site.seed("-z", "0,2").returncode == 0
    other = sqlite3.connect(site.store / site.file, isolation_level=None)
    other.execute("begin immediate")
    seeder = site.start("-z", "0,6", "-f", "-n", "2", "--checkpoint", str(site.place))
    caught = re.compile(r"^SigCgt:\s*([0-9a-f]+)$", re.M)
    status = pathlib.Path(f"/proc/{seeder.pid}/status")
    wait_until(lambda: int(caught.search(status.read_text())[1], 16) >> (signal.SIGINT - 1) & 1, "the seeder's handler")
    time.sleep(0.5)  # where it has not come to its first wait by then, that is as good
    seeder.send_signal(signal.SIGINT)
    output = seeder.communicate(timeout=patience(30))[0]
    assert seeder.returncode >= 0, output
    other.execute("rollback")
    other.close()
    resumed = site.seed("-z", "0,6", "-f", "--checkpoint", str(site.place), *(["--resume"] if site.place.exists() else []))
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert site.count() == tiles_to(6)


@pytest.mark.parametrize("kind", ["product", "single", "mbtiles", "geopackage"])
def test_seeders_share_a_file_that_is_read(tmp_path, kind):
    """From the moment when there is no file; in processes and threads, parts of the same levels."""
    site, wrong, ended = Site(tmp_path, kind), [], threading.Event()
    site.store.mkdir()
    north, south = "-20037508,0,20037508,20037508", "-20037508,-20037508,20037508,0"
    seeders = [site.start("-z", "1,6", "-e", north), site.start("-z", "1,6", "-e", south, "-n", "2"),
               site.start("-z", "0,6", "-p", "2"), site.start("-z", "5,6", "-e", north, "-f")]

    def read():
        seen = 0
        while not ended.is_set():
            if not (site.store / site.file).exists():
                continue
            try:
                with sqlite3.connect(site.store / site.file, timeout=patience(60)) as db:
                    if db.execute("select 1 from sqlite_master where name = 'tiles'").fetchone():
                        found, least = db.execute(COUNT[kind]).fetchone()
                        if found < seen or (least is not None and least < 60):
                            wrong.append((seen, found, least))
                        seen = found
                db.close()
            except sqlite3.Error as error:
                wrong.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    outputs = [seeder.communicate(timeout=patience(90))[0] for seeder in seeders]
    ended.set()
    reader.join()
    assert [seeder.returncode for seeder in seeders] == [0, 0, 0, 0], "\n".join(outputs)
    assert wrong == []
    assert site.count() == tiles_to(6)
    with sqlite3.connect(site.store / site.file) as db:
        assert db.execute("pragma journal_mode").fetchone()[0] == "delete"
    db.close()
    assert {file.name for file in site.store.iterdir()} == {site.file}

"""mapcache ingest: bad images, interrupts, kills, full disks, and readers at every moment."""
import json
import os
import random
import resource
import signal
import sqlite3
import struct
import subprocess
import threading
import time
import zlib

import pytest
from conftest import wait_until
from ingest_model import LEVELS, Site, World, compare, decode, picture, save
from patience import patience
from small_disk import enlarge, small_disk


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def liar(width, height):
    """The head of a PNG that claims more than its few bytes can hold."""
    head = struct.pack(">4sIIBBBBB", b"IHDR", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n\0\0\0\r" + head + struct.pack(">I", zlib.crc32(head)) + b"\0\0\0\x28IDAT" + bytes(44)


def world_file(path, text):
    path.with_suffix(".pgw").write_text(text)


def bad_images(folder):
    """Path and what is said of it."""
    good = save(folder / "good.png", picture(200, 200, 1), 100, 1000).read_bytes()
    place = (folder / "good.pgw").read_text()
    bad = [("missing.png", None, None, "No such file"), ("text.png", b"hello", place, "no PNG, JPEG or TIFF"),
           ("liar.png", liar(60000, 60000), place, "claims 60000 x 60000"),
           ("huge.png", liar(2 ** 31 - 1, 2 ** 31 - 1), place, "huge.png"),
           ("empty.png", b"", place, "no PNG, JPEG or TIFF"), ("unplaced.png", good, None, "nothing says where it lies"),
           ("short.png", good, "1\n0\n0\n", "3 of the 6 numbers"),
           ("words.png", good, "1\n0\nzero\n-1\n0\n0\n", 'line 3: "zero" is no number'),
           ("flat.png", good, "0\n0\n0\n-1\n0\n0\n", "no area"),
           ("far.png", good, "1\n0\n0\n-1\n900000\n0\n", 'outside of grid "own"'),
           ("infinite.png", good, "1\n0\n0\n-1\nnan\n0\n", "line 5"), ("head.tif", b"II*\0\x08\0\0\0", place, "TIFF"),
           ("loop.tif", b"II*\0\x08\0\0\0\1\0" + struct.pack("<HHII", 256, 4, 1, 9) + b"\x08\0\0\0", place, "TIFF")]
    for name, data, position, said in bad:
        if data is not None:
            (folder / name).write_bytes(data)
        if position is not None:
            world_file(folder / name, position)
        yield folder / name, said


def test_bad_images_are_named_before_anything_is_written(site, tmp_path):
    bad = list(bad_images(tmp_path))
    result = site.ingest("png", tmp_path / "good.png", *[path for path, _ in bad])
    assert result.returncode == 1 and f"{len(bad)} of {len(bad) + 1} images" in result.stderr
    for path, said in bad:
        line = next(line for line in result.stderr.splitlines() if line.startswith(str(path)))
        assert said in line, line
    assert not (tmp_path / "png.sqlite3").exists()
    result = site.ingest("png", "--skip-bad", "--json", tmp_path / "good.png", *[path for path, _ in bad])
    last = json.loads(result.stdout.splitlines()[-1])
    assert result.returncode == 3 and last["exit"] == 3 and last["bad"] == len(bad) and last["done"] == 1
    compare(site.tiles("png"), World().draw(picture(200, 200, 1), 100, 1000).overviews().tiles())


@pytest.mark.parametrize("form", ["png", "jpg", "tif"])
def test_data_that_is_cut_short(site, tmp_path, form):
    """Its header is good: it is found out while others are drawn, which are right all the same."""
    pixels = picture(300, 300, 2)
    paths = [save(tmp_path / f"a.{form}", pixels, 128, 640), save(tmp_path / "b.png", picture(200, 200, 3), 228, 600),
             save(tmp_path / "c.png", picture(200, 200, 4), 300, 900)]
    data = paths[0].read_bytes()
    if form == "tif":  # its tags stand at the end
        at = data.index(struct.pack("<HHI", 273, 4, 1)[:4]) if struct.pack("<HHI", 273, 4, 1)[:4] in data else 0
        paths[0].write_bytes(data[:at + 8] + struct.pack("<I", len(data) - 100) + data[at + 12:])
    else:
        paths[0].write_bytes(data[:len(data) * 2 // 3])
    result = site.ingest("png", *paths)
    assert result.returncode == 1 and str(paths[0]) in result.stderr
    result = site.ingest("png", "--skip-bad", *paths)
    assert result.returncode == 3 and str(paths[0]) in result.stderr
    world = World().draw(picture(200, 200, 3), 228, 600).draw(picture(200, 200, 4), 300, 900)
    compare(site.tiles("png"), world.overviews().tiles())


def test_what_is_no_file_is_not_waited_for(site, tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    for path in (tmp_path / "pipe.png", tmp_path):
        result = site.ingest("png", path)
        assert result.returncode == 1 and "it is no file" in result.stderr, result.stderr


def test_options_that_cannot_be(site, tmp_path):
    path = save(tmp_path / "a.png", picture(64, 64, 1), 64, 128)
    for options, said in ((("-z", "3,1"), "--zoom"), (("--cachelimit", "1M"), "--cachelimit"), (("-n", "0"), "nthreads"),
                          (("--srs", "EPSG:999999"), "a.png"), (("-z", "0,77"), "levels"), (("--nodata", "1,2"), "nodata"),
                          (("-g", "none"), "no grid"), (("--time", "%Y"), "no time"), (("--time", "%m%d"), "no year"),
                          (("--time", "%Y%d"), "%d without %m"), (("--time", "%Y%m_%H"), "%H without %d"), (("--time", "%Y%b"), "YmdHMSj"), (("--list", "/none"), "/none"),
                          (("--nonsense",), "nonsense"), (("-D", "X=1"), "dimension"), (("--resample", "x"), "resample")):
        result = site.ingest("png", *options, path)
        assert result.returncode == 1 and said in result.stderr, (options, result.stderr)
    assert site.ingest("none", path).returncode == 1
    help_text = site.ingest("png", "--help")
    assert help_text.returncode == 0 and "--cachelimit" in help_text.stdout


def many(folder, count=8, seed=0, world=None):
    """Images that lie over each other all over the grid; the pixels are those of PNG, exactly."""
    rng = random.Random(seed)
    world, paths = world or World(), []
    for i in range(count):
        pixels = picture(700, 500, seed * 100 + i, holes=i % 3 == 2)
        left, top = rng.randrange(0, 1348), rng.randrange(500, 2048)
        paths.append(save(folder / f"{seed}-{i}.png", pixels, left, top))
        world.draw(pixels, left, top)
    return paths, world


def long_run(folder, again=40):
    """The same; the first one is drawn over all again and again: the tiles it does not touch are final early."""
    paths, world = many(folder)
    rng = random.Random(0)
    world.draw(picture(700, 500, 0), rng.randrange(0, 1348), rng.randrange(500, 2048))
    return paths + paths[:1] * again, world


def test_killed_at_any_moment_and_run_again(tmp_path):
    paths, world = long_run(tmp_path)
    expected = world.overviews().tiles()
    (tmp_path / "whole").mkdir()
    whole = Site(tmp_path / "whole")
    began = time.monotonic()
    whole.good("png", *paths)
    took = time.monotonic() - began
    compare(whole.tiles("png"), expected)
    rng = random.Random(5)
    for attempt in range(5):
        folder = tmp_path / f"killed{attempt}"
        folder.mkdir()
        site = Site(folder)
        process = subprocess.Popen(site.command("png", "-q", "-n", str(1 + attempt % 2), *paths),
                                   env={**os.environ, "TMPDIR": str(folder)})
        time.sleep(rng.uniform(0.05, 1.0) * took)
        process.kill()
        process.wait()
        if (folder / "png.sqlite3").exists():
            with sqlite3.connect(folder / "png.sqlite3") as db:
                there = db.execute("select 1 from sqlite_master where name = 'tiles'").fetchone()
            if there:
                partly = site.tiles("png")
                compare(partly, {key: expected[key] for key in partly})
                check_levels(partly.keys(), expected.keys())
        assert [name for name in os.listdir(folder) if "ingest" in name] == []
        site.good("png", *paths)
        assert site.tiles("png") == whole.tiles("png")


def check_levels(stored, expected):
    """No tile before all of those below it."""
    for z, x, y in stored:
        if z < LEVELS - 1:
            below = {(z + 1, 2 * x + i, 2 * y + j) for i in (0, 1) for j in (0, 1)}
            assert (below & set(expected)) <= set(stored), (z, x, y)


def test_an_interrupt_stores_what_is_complete(tmp_path):
    paths, world = long_run(tmp_path, 200)
    expected = world.overviews().tiles()
    site = Site(tmp_path)
    process = subprocess.Popen(site.command("png", "--json", *paths), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True)
    wait_until(lambda: (tmp_path / "png.sqlite3").exists(), "tiles are stored")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=patience(60))
    assert process.returncode == 2 and json.loads(out.splitlines()[-1])["exit"] == 2
    partly = site.tiles("png")
    assert 0 < len(partly) < len(expected)
    compare(partly, {key: expected[key] for key in partly})
    check_levels(partly.keys(), expected.keys())
    assert len(partly) == json.loads(out.splitlines()[-1])["tiles"]
    site.good("png", *paths)
    compare(site.tiles("png"), expected)


def limit_files(size):
    def apply():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return apply


def test_a_full_disk_leaves_tiles_old_or_new(tmp_path):
    paths, world = many(tmp_path)
    expected = world.overviews().tiles()
    site = Site(tmp_path)
    result = subprocess.run(site.command("png", *paths), capture_output=True, text=True, timeout=patience(100),
                            preexec_fn=limit_files(3 << 20))
    assert result.returncode == 1 and "cannot be written" in result.stderr, result.stderr
    with sqlite3.connect(tmp_path / "png.sqlite3") as db:
        assert db.execute("pragma integrity_check").fetchone() == ("ok",)
    partly = site.tiles("png")
    compare(partly, {key: expected[key] for key in partly})
    site.good("png", *paths)
    compare(site.tiles("png"), expected)


def test_a_file_system_that_is_full(tmp_path):
    paths, world = many(tmp_path)
    expected = world.overviews().tiles()
    with small_disk(tmp_path / "small", 3 << 20) as place:
        if place is None:  # not allowed to mount: the test above is the same with a limit of files
            return
        site = Site(place)
        result = site.ingest("png", *paths)
        assert result.returncode == 1 and "full" in result.stderr, result.stderr
        partly = site.tiles("png")
        compare(partly, {key: expected[key] for key in partly})
        enlarge(place, "64M")
        site.good("png", *paths)
        compare(site.tiles("png"), expected)


def test_a_full_scratch_folder_is_told(tmp_path):
    paths = [save(tmp_path / f"{i}.png", picture(2048, 2048, i), 0, 2048) for i in range(2)]
    site = Site(tmp_path)
    result = subprocess.run(site.command("png", "--cachelimit", "8M", *paths), capture_output=True, text=True,
                            timeout=patience(100), preexec_fn=limit_files(1 << 20))
    assert result.returncode == 1 and "scratch file" in result.stderr and "--scratch" in result.stderr
    result = site.ingest("png", "--cachelimit", "8M", "--scratch", tmp_path / "none", *paths)
    assert result.returncode == 1 and str(tmp_path / "none") in result.stderr


class Reader(threading.Thread):
    """Takes one snapshot of the store after the other and compares every tile with what it may be."""

    def __init__(self, path, old, new):
        super().__init__(daemon=True)
        self.path, self.old, self.new = path, old, new
        self.stop, self.snapshots, self.mixed, self.wrong = threading.Event(), 0, 0, []
        self.known = {}

    def state(self, key, data):
        """What a tile is: a set of "old" and "new"."""
        if (key, data) not in self.known:
            pixels = decode(data)
            self.known[key, data] = {name for name, tiles in (("old", self.old), ("new", self.new))
                                     if key in tiles and (pixels == tiles[key]).all()}
        return self.known[key, data]

    def look(self, db):
        stored = {row[:3]: row[3] for row in db.execute("select z, x, y, data from tiles")}
        states = {key: self.state(key, data) for key, data in stored.items()}
        for key in self.new.keys() | self.old.keys() | stored.keys():
            states.setdefault(key, {"old"} if key not in self.old else set())
            if not states[key]:
                self.wrong.append(key)
        for (z, x, y), state in states.items():
            if state == {"new"} and z < LEVELS - 1:
                for below in ((z + 1, 2 * x + i, 2 * y + j) for i in (0, 1) for j in (0, 1)):
                    if states.get(below) == {"old"}:
                        self.wrong.append(((z, x, y), "is before", below))
        kinds = {frozenset(state) for state in states.values()}
        self.mixed += {frozenset({"old"}), frozenset({"new"})} <= kinds
        self.snapshots += 1

    def run(self):
        while not self.stop.is_set():
            with sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=patience(60)) as db:
                self.look(db)


def test_readers_find_each_tile_as_it_was_or_as_it_is_to_be(tmp_path):
    first, world = many(tmp_path, 6, seed=1)
    site = Site(tmp_path)
    site.good("png", *first)
    old = {key: tile.copy() for key, tile in world.overviews().tiles().items()}
    second, world = many(tmp_path, 12, seed=2, world=world)
    new = world.overviews().tiles()
    readers = [Reader(tmp_path / "png.sqlite3", old, new) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        wait_until(lambda: all(reader.snapshots for reader in readers), "a look of each reader before")
        site.good("png", *(second * 3), "-n", "2")
        before = [reader.snapshots for reader in readers]
        wait_until(lambda: all(reader.snapshots > count for reader, count in zip(readers, before)), "a look of each reader afterwards")
    finally:
        for reader in readers:
            reader.stop.set()
            reader.join()
    compare(site.tiles("png"), new)
    assert [reader.wrong[:3] for reader in readers] == [[], []]


class Client(threading.Thread):
    """Asks the server for one tile after the other: each answer is the old tile or the new one, and once new stays so."""

    def __init__(self, web, old, new, seed):
        super().__init__(daemon=True)
        self.web, self.old, self.new, self.chance = web, old, new, random.Random(seed)
        self.stop, self.answers, self.renewed, self.wrong = threading.Event(), 0, set(), []

    def state(self, key):
        reply = self.web.get("/mapcache/tms/1.0.0/png@own/{}/{}/{}.png".format(*key))
        assert reply.status == 200, reply.body
        pixels = decode(reply.body)
        if not pixels[..., 3].any():  # what is not stored is answered as an empty tile
            return {name for name, tiles in (("old", self.old), ("new", self.new)) if key not in tiles}
        return {name for name, tiles in (("old", self.old), ("new", self.new)) if key in tiles and (pixels == tiles[key]).all()}

    def run(self):
        keys = sorted(self.new)
        while not self.stop.is_set():
            key = self.chance.choice(keys)
            state = self.state(key)
            self.answers += 1
            if not state or (state == {"old"} and key in self.renewed):
                self.wrong.append((key, state))
            if state == {"new"}:
                self.renewed.add(key)


def test_clients_of_a_server_get_each_tile_as_it_was_or_as_it_is_to_be(folder, apache):
    first, world = many(folder, 6, seed=1)
    site = Site(folder)
    site.good("png", *first)
    old = {key: tile.copy() for key, tile in world.overviews().tiles().items()}
    second, world = many(folder, 12, seed=2, world=world)
    new = world.overviews().tiles()
    for path in (folder, *folder.iterdir()):
        path.chmod(0o777)
    web = apache(f"MapCacheAlias /mapcache {site.config}")
    clients = [Client(web, old, new, seed) for seed in range(3)]
    for client in clients:
        client.start()
    wait_until(lambda: all(client.answers > 20 for client in clients), "the server answers")
    before = [len(client.renewed) for client in clients]
    try:
        site.good("png", *(second * 3), "-n", "2")
        wait_until(lambda: all(len(client.renewed) > 20 for client in clients), "new tiles are answered")
    finally:
        for client in clients:
            client.stop.set()
            client.join()
    assert before == [0, 0, 0] and [client.wrong[:3] for client in clients] == [[], [], []]


def test_two_at_once_are_refused(tmp_path):
    paths, _ = long_run(tmp_path, 200)
    site = Site(tmp_path)
    first = subprocess.Popen(site.command("png", "-q", *paths))
    wait_until(lambda: (tmp_path / "png.sqlite3").exists() or first.poll() is not None, "the first one stores tiles")
    second = site.ingest("png", "-q", paths[0])
    assert first.poll() is not None or (second.returncode == 1 and "another ingestion" in second.stderr)
    assert first.wait(patience(60)) == 0
    site.good("png", "-q", paths[0])

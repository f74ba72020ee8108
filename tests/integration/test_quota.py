"""<max_size>: real servers and seeders on caches of a bounded size: what goes, what stays, and what is never seen."""
import json
import os
import signal
import sqlite3
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import wait_until
from fastcgi import Client, Server
from origin import Origin
from patience import patience

KINDS = ("disk", "sqlite3", "mbtiles", "geopackage")
LIMIT = 2 << 20
GRID = "GoogleMapsCompatible"


def write_config(folder, kind, origin=None, size="2MB", inner=""):
    place = f"<base>{folder}/store</base>" if kind == "disk" else f"<dbfile>{folder}/store.db</dbfile>"
    source = "" if origin is None else f"""<source name="origin" type="wms"><http><url>{origin.url("/pattern?")}</url></http>
    <getmap><params><FORMAT>image/png</FORMAT><LAYERS>x</LAYERS></params></getmap></source>"""
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache>
  {source}
  <cache name="bounded" type="{kind}">{place}<max_size>{size}</max_size>{inner}</cache>
  <cache name="full" type="sqlite3"><dbfile>{folder}/full.db</dbfile></cache>
  <tileset name="full"><cache>full</cache><grid>{GRID}</grid><format>PNG</format></tileset>
  <tileset name="tiles">{"<source>origin</source>" if origin else ""}<cache>bounded</cache><grid>{GRID}</grid><format>PNG</format>
    <metatile>2 2</metatile></tileset>
  <service type="tms" enabled="true"/><service type="metrics" enabled="true"/><service type="status" enabled="true"/>
  <lock_dir>{folder}</lock_dir>
</mapcache>
""")
    return path


def books_of(folder, kind):
    return folder / ("store/mapcache.books" if kind == "disk" else "store.db.books")


def ask(path, sql):
    database = sqlite3.connect(path, timeout=patience(30))
    try:
        rows = database.execute(sql).fetchall()
        database.commit()
        return rows
    finally:
        database.close()


def used(folder, kind):
    """Bytes that the store takes up, found out without the books."""
    if kind != "disk":
        if not (folder / "store.db").exists():
            return 0
        size, = ask(folder / "store.db", "pragma page_size")[0]
        pages, = ask(folder / "store.db", "pragma page_count")[0]
        free, = ask(folder / "store.db", "pragma freelist_count")[0]
        return size * (pages - free)
    total = 0
    for place, _, names in os.walk(folder / "store"):
        for name in names:
            if name.endswith(".png"):
                try:
                    total += os.lstat(os.path.join(place, name)).st_blocks * 512
                except FileNotFoundError:
                    pass
    return total


def environment(build):
    return {**os.environ, "MAPCACHE_MODULES": str(build / "modules"), "LD_LIBRARY_PATH": str(build / "lib")}


def seed(build, config, *options, seconds=120):
    return subprocess.run([build / "bin/mapcache", "seed", "-c", config, "--quiet", *map(str, options)], env=environment(build),
                          capture_output=True, text=True, timeout=patience(seconds))


def content(z, x, y):
    return b"\x89PNG\r\n\x1a\n" + f"{z}/{x}/{y} ".encode() * 1400


def fill(folder, level=5):
    with sqlite3.connect(folder / "full.db") as database:
        database.execute("create table tiles(tileset text, grid text, x integer, y integer, z integer, data blob, dim text, ctime datetime,"
                         " primary key(tileset, grid, x, y, z, dim))")
        database.executemany(f"insert into tiles values('full', '{GRID}', ?, ?, ?, ?, '', '2020-01-02 03:04:05')",
                             ((x, y, level, content(level, x, y)) for x in range(2**level) for y in range(2**level)))
    database.close()


def age_files(folder):
    """Files of tiles, whose age is what a survey goes by, are old enough to go."""
    for place, _, names in os.walk(folder / "store"):
        for name in names:
            if name.endswith(".png"):
                os.utime(os.path.join(place, name), (time.time() - 100,) * 2)


def seed_beyond(folder, build, kind):
    folder.mkdir()
    fill(folder)
    config = write_config(folder, kind)
    run = seed(build, config, "-t", "full", "--mode", "transfer", "--transfer", "tiles", "-z", "5,5")
    assert run.returncode == 0 and "<max_size> is too small" in run.stderr, run.stderr
    assert LIMIT // 100 * 90 <= used(folder, kind) <= LIMIT, run.stderr
    removed, = ask(books_of(folder, kind), "select value from state where name = 'removed'")[0]
    assert 700 < removed < 1024
    copy = subprocess.run([build / "bin/mapcache", "copy", "-c", config, "--from", "tiles", "--to", "full", "-z", "5,5", "--verify"],
                          env=environment(build), capture_output=True, text=True, timeout=patience(120))
    wrong = [(x, y) for x, y, data in ask(folder / "full.db", "select x, y, data from tiles") if data != content(5, x, y)]
    assert not wrong, (wrong[:5], copy.stderr)


def side_by_side(work, kinds):
    """Of each kind at the same time: most of it is waiting until tiles are old enough to go."""
    with ThreadPoolExecutor(len(kinds)) as pool:
        for done in [pool.submit(work, kind) for kind in kinds]:
            done.result()


def test_seeders_keep_to_the_limit(tmp_path, build):
    """10 MB into 2: the seeder says so, ends below the limit, and what is left is what was stored."""
    side_by_side(lambda kind: seed_beyond(tmp_path / kind, build, kind), KINDS)


class Load(threading.Thread):
    """Asks for tiles over a connection of its own until it is told to stop; `wrong` has what was no tile of that place."""

    def __init__(self, address, places, known, lock):
        super().__init__()
        self.address, self.places, self.known, self.lock = address, places, known, lock
        self.wrong, self.asked, self.over = [], 0, threading.Event()

    def run(self):
        client = None
        while not self.over.is_set():
            for z, x, y in self.places():
                if self.over.is_set():
                    return
                try:
                    client = client or Client(self.address)
                    answer = client.get(f"/tms/1.0.0/tiles@{GRID}/{z}/{x}/{y}.png".encode())
                except (OSError, EOFError):
                    client = None  # the server was killed
                    time.sleep(0.05)
                    continue
                self.asked += 1
                with self.lock:
                    first = self.known.setdefault((z, x, y), answer.body)
                if answer.status != 200 or answer.body != first:
                    self.wrong.append((z, x, y, answer.status, len(answer.body)))


def share_under_load(folder, build, kind):
    folder.mkdir()
    known, lock = {}, threading.Lock()
    hot = [(7, x, y) for x in range(4, 6) for y in range(4, 6)]

    def cold():
        cold.turn = getattr(cold, "turn", 0) + 1
        for place in range(64 * 60):
            yield 7, 40 + place % 50, place // 50 + cold.turn % 2

    with Origin() as origin:
        folders = [folder / name for name in ("one", "two")]
        for own in folders:
            own.mkdir()
        config = write_config(folder, kind, origin)
        servers = [Server(build, config, own) for own in folders]
        loads = [Load(servers[0].address, lambda: hot, known, lock)]
        loads += [Load(server.address, cold, known, lock) for server in servers for _ in range(2)]
        for load in loads:
            load.start()
        try:
            wait_until(lambda: used(folder, kind) > 0 and books_of(folder, kind).exists(), "tiles are stored")
            for _ in range(3):
                time.sleep(1)  # the load goes on meanwhile; nothing is waited for
                os.killpg(servers[1].program.process.pid, signal.SIGKILL)
                servers[1].program.process.wait()
                servers[1].program.output.close()
                servers[1] = Server(build, config, folders[1])
            wait_until(lambda: dict(ask(books_of(folder, kind), "select name, value from state")).get("removed", 0) > 0,
                       "tiles are removed", 180)
        finally:
            for load in loads:
                load.over.set()
            for load in loads:
                load.join()
        assert not [wrong for load in loads for wrong in load.wrong]
        assert all(load.asked > 0 for load in loads)
        servers[0].get(f"/tms/1.0.0/tiles@{GRID}/7/4/4.png")
        # Nobody stores any more: all but the block that is asked for often is soon old enough.
        ask(books_of(folder, kind), "update blocks set used = used - 100, stored = stored - 100 where x >= 8 or y >= 8")
        wait_until(lambda: used(folder, kind) <= LIMIT, "the cache is below its limit", 120)
        before = len(origin.requests())
        for z, x, y in hot:
            assert servers[0].get(f"/tms/1.0.0/tiles@{GRID}/{z}/{x}/{y}.png").body == known[z, x, y]
        again = [request["query"] for request in origin.requests()[before:]]
        assert not again, (kind, again)  # none of these was rendered again
        for server in servers:
            server.stop()


def test_several_processes_under_load(tmp_path, build):
    """Two servers share a cache, one of them is killed now and then: every answer is right, what is often asked stays, the rest goes."""
    side_by_side(lambda kind: share_under_load(tmp_path / kind, build, kind), ("disk", "sqlite3"))


@pytest.mark.parametrize("kind", ("disk", "sqlite3", "mbtiles"))
@pytest.mark.parametrize("spoil", ("removed", "nonsense", "new"))
def test_books_are_made_anew(tmp_path, build, kind, spoil):
    """Without books, with damaged ones, and where <max_size> is new: what is there counts, and goes below the limit."""
    fill(tmp_path)
    large = write_config(tmp_path, kind, size="1GB")
    assert seed(build, large, "-t", "full", "--mode", "transfer", "--transfer", "tiles", "-z", "5,5").returncode == 0
    assert used(tmp_path, kind) > 4 * LIMIT
    books = books_of(tmp_path, kind)
    age_files(tmp_path)
    if spoil == "nonsense":
        books.write_bytes(b"these are no books" * 1000)
    elif spoil == "removed":
        books.unlink()
    else:
        ask(books, "update blocks set used = used - 100, stored = stored - 100")
    config = write_config(tmp_path, kind)
    server = Server(build, config, tmp_path)
    server.get(f"/tms/1.0.0/tiles@{GRID}/5/1/1.png")
    wait_until(lambda: used(tmp_path, kind) <= LIMIT, "the cache is below its limit", 120)
    left = used(tmp_path, kind)
    if spoil != "new":
        wait_until(lambda: "that were there before" in server.program.log(), "the store is looked through", 120)
    wait_until(lambda: json.loads(server.get("/status").body)["quotas"][0]["bytes"] <= LIMIT, "the books know", 60)
    status = json.loads(server.get("/status").body)["quotas"]
    assert [quota["cache"] for quota in status] == ["bounded"] and status[0]["limit_bytes"] == LIMIT
    assert 0 < status[0]["bytes"] <= LIMIT and status[0]["removed_tiles"] > 700 and status[0]["looked_through"] is True
    metrics = server.get("/metrics").body.decode()
    assert f'mapcache_quota_limit_bytes{{cache="bounded"}} {LIMIT}' in metrics and 'mapcache_quota_used_bytes{cache="bounded"} ' in metrics
    server.stop()
    detail = subprocess.run([build / "bin/mapcache", "detail", "-c", config, "-t", "tiles", "--stores", "--json"], env=environment(build),
                            capture_output=True, text=True, timeout=patience(60))
    assert '"limit":' in detail.stdout.replace(" ", "") and '"nb_removed_tiles"' in detail.stdout, detail.stdout + detail.stderr
    assert left > LIMIT // 4, left
    assert ("is damaged and made anew" in server.program.log()) == (spoil == "nonsense")
    assert spoil != "new" or "that were there before" not in server.program.log()


def test_killed_in_the_middle_of_removing(tmp_path, build):
    """kill -9 again and again: each time the next process goes on, and books and files agree in the end."""
    fill(tmp_path, 6)
    large = write_config(tmp_path, "disk", size="1GB")
    assert seed(build, large, "-t", "full", "--mode", "transfer", "--transfer", "tiles", "-z", "6,6").returncode == 0
    books = books_of(tmp_path, "disk")
    ask(books, "update blocks set used = used - 100, stored = stored - 100")
    config = write_config(tmp_path, "disk")
    start = used(tmp_path, "disk")
    for turn in range(20):
        server = Server(build, config, tmp_path)
        now = used(tmp_path, "disk")
        server.get(f"/tms/1.0.0/tiles@{GRID}/6/1/1.png")
        if now > LIMIT:
            wait_until(lambda now=now: used(tmp_path, "disk") < now, "something goes", 90)
        os.killpg(server.program.process.pid, signal.SIGKILL)
        server.program.process.wait()
        server.program.output.close()
        if now <= LIMIT:
            break
        # The lease of the killed one ends soon, and the first time by itself.
        ask(books, f"update state set value = {int(time.time()) + 2 if turn == 0 else 0} where name = 'until'")
    assert start > 4 * LIMIT
    server = Server(build, config, tmp_path)
    server.get(f"/tms/1.0.0/tiles@{GRID}/6/1/1.png")

    def settled():
        (changed, total), = ask(books, "select sum(changed > 0), sum(bytes) from blocks")
        return used(tmp_path, "disk") <= LIMIT and changed == 0 and total <= LIMIT

    wait_until(settled, "all is measured", 90)
    assert ask(books, "select value from state where name = 'bytes'")[0][0] == ask(books, "select sum(bytes) from blocks")[0][0]
    assert LIMIT // 4 < used(tmp_path, "disk") <= ask(books, "select sum(bytes) from blocks")[0][0] <= LIMIT
    server.stop()


@pytest.mark.parametrize("kind", ("disk", "sqlite3"))
def test_an_end_gives_the_lease_back(tmp_path, build, kind):
    """A server that ends in the midst of its work need not be waited for: the next one goes on at once."""
    fill(tmp_path)
    large = write_config(tmp_path, kind, size="1GB")
    assert seed(build, large, "-t", "full", "--mode", "transfer", "--transfer", "tiles", "-z", "5,5").returncode == 0
    age_files(tmp_path)
    books = books_of(tmp_path, kind)
    ask(books, "update blocks set used = used - 100, stored = stored - 100")
    config = write_config(tmp_path, kind)

    def lease():
        return ask(books, "select sum(value) from state where name = 'until'")[0][0]

    for _ in range(3):
        server = Server(build, config, tmp_path)
        server.get(f"/tms/1.0.0/tiles@{GRID}/5/1/1.png")
        wait_until(lambda: lease() > 0 or used(tmp_path, kind) <= LIMIT, "there is a keeper")
        server.stop()
        assert lease() == 0


def test_books_that_cannot_be_written(tmp_path, build):
    """Nothing can be removed: the log says so, and tiles are served."""
    fill(tmp_path)
    large = write_config(tmp_path, "sqlite3", size="1GB")
    assert seed(build, large, "-t", "full", "--mode", "transfer", "--transfer", "tiles", "-z", "5,5").returncode == 0
    books_of(tmp_path, "sqlite3").unlink()
    books_of(tmp_path, "sqlite3").mkdir()
    server = Server(build, write_config(tmp_path, "sqlite3"), tmp_path)
    assert server.get(f"/tms/1.0.0/tiles@{GRID}/5/1/1.png").body == content(5, 1, 1)
    wait_until(lambda: "is not kept to its <max_size>" in server.program.log(), "the log says so")
    assert server.get(f"/tms/1.0.0/tiles@{GRID}/5/1/1.png").status == 200
    assert used(tmp_path, "sqlite3") > 4 * LIMIT
    server.stop()


@pytest.mark.parametrize("size", ("0", "5 bananas", "100K", "-1G"))
def test_check_refuses_nonsense(tmp_path, build, size):
    run = subprocess.run([build / "bin/mapcache", "check", write_config(tmp_path, "disk", size=size)], env=environment(build),
                         capture_output=True, text=True, timeout=patience(60))
    assert run.returncode == 1 and "max_size" in run.stdout and ":3:" in run.stdout, run.stdout


@pytest.mark.parametrize("size", ("<max_size>1G</max_size>", ""))
@pytest.mark.parametrize("before", (True, False))
def test_check_warns_of_a_shared_place(tmp_path, build, size, before):
    """Whichever cache stands first, and whether the other one has <max_size>, too."""
    path = write_config(tmp_path, "disk")
    other = f"<cache name='other' type='disk'><base>{tmp_path}//store/</base>{size}</cache>"
    place = '<cache name="bounded"' if before else '<cache name="full"'
    path.write_text(path.read_text().replace(place, other + place))
    run = subprocess.run([build / "bin/mapcache", "check", path], env=environment(build), capture_output=True, text=True, timeout=patience(60))
    assert run.returncode == 2 and 'cache "other" has its tiles in' in run.stdout, run.stdout
    assert ('cache "bounded" has its tiles in' in run.stdout) == (size != ""), run.stdout


def test_caches_below_are_left_alone(tmp_path, build):
    """A cache whose folder lies in that of one with <max_size> keeps its tiles: they are neither counted nor removed."""
    path = write_config(tmp_path, "disk")
    path.write_text(path.read_text().replace('<cache name="full"', f'<cache name="below" type="disk"><base>{tmp_path}/store/below/</base></cache><cache name="full"'))
    kept, gone = [tmp_path / f"store/{place}/05/000/000/001/000/000" for place in (f"below/other/{GRID}", f"tiles/{GRID}")]
    for folder in kept, gone:
        folder.mkdir(parents=True)
        for row in range(8):
            (folder / f"00{row}.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes([row]) * (LIMIT // 2))
    age_files(tmp_path)
    server = Server(build, path, tmp_path)
    server.get(f"/tms/1.0.0/tiles@{GRID}/5/9/9.png")
    wait_until(lambda: "that were there before" in server.program.log(), "the store is looked through", 120)
    assert "8 tiles were found" in server.program.log()
    wait_until(lambda: len(list(gone.glob("*.png"))) == 1, "its own tiles go, but for the one that fits", 60)
    assert len(list(kept.glob("*.png"))) == 8
    server.stop()


def test_check_warns_of_tiles_that_nobody_renders_again(tmp_path, build):
    path = write_config(tmp_path, "disk")
    run = subprocess.run([build / "bin/mapcache", "check", path], env=environment(build), capture_output=True, text=True, timeout=patience(60))
    assert run.returncode == 2 and 'tileset "tiles" renders no tiles, and <max_size> of cache "bounded"' in run.stdout, run.stdout
    path.write_text(path.read_text().replace('<tileset name="tiles">', '<source name="any" type="dummy"/><tileset name="tiles"><source>any</source>'))
    run = subprocess.run([build / "bin/mapcache", "check", path], env=environment(build), capture_output=True, text=True, timeout=patience(60))
    assert "renders no tiles" not in run.stdout, run.stdout
    path.write_text(path.read_text().replace("<source>any</source>", "<source>any</source><read-only>true</read-only>"))
    run = subprocess.run([build / "bin/mapcache", "check", path], env=environment(build), capture_output=True, text=True, timeout=patience(60))
    assert "renders no tiles" in run.stdout, run.stdout


def test_a_kind_without_the_key_says_so(tmp_path, build):
    path = write_config(tmp_path, "disk")
    path.write_text(path.read_text().replace("<cache name=\"full\"", f"<cache name='t' type='tiff'><template>{tmp_path}/{{x}}-{{y}}-{{z}}.tif"
                                             "</template><max_size>1G</max_size></cache><cache name=\"full\""))
    run = subprocess.run([build / "bin/mapcache", "check", path], env=environment(build), capture_output=True, text=True, timeout=patience(60))
    assert "max_size" in run.stdout and run.returncode != 0, run.stdout

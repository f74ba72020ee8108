"""One round: a store, those who work at it, what they need (origin, database, disk), and the faults that strike them."""
import contextlib
import mmap
import os
import pathlib
import random
import struct
import subprocess
import time

from actors import ACTORS, jobs
from conftest import GRID, temporary_folder
from faults import plan, strike
from ingest_model import GRID as PHOTO_GRID
from jobs_site import wms
from patience import patience
from processes import descriptors, wait_idle
from small_disk import enlarge, small_disk
from stores import DRAWN, PHOTOS, STORES, Comparison, decode, left_behind

HERE = pathlib.Path(__file__).resolve().parent
ROOM, MORE_ROOM = 64 << 20, 256 << 20  # bytes of the disk; those that the compaction of a store wants to be free
FAKETIME = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
SLACK = 12  # descriptors that a server may have more than after its first requests: its pools of connections


def refuser(folder):
    """The library that refuses memory, compiled into a folder."""
    library = folder / "failing_memory.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, HERE / "failing_memory.c"], check=True)
    return library


class Surroundings:
    """What all rounds of a process share."""

    def __init__(self, build, database, origin, photos, library, comparisons):
        self.build, self.database, self.origin, self.photos = build, database, origin, photos
        self.library, self.comparisons = library, comparisons


class World:
    def __init__(self, surroundings, folder, store, chance):
        for name, value in vars(surroundings).items():
            setattr(self, name, value)
        self.folder, self.store, self.chance = folder, STORES[store], chance
        self.program = self.build / "bin/mapcache"
        self.disk, self.scratch = folder / "disk", folder / "scratch"
        self.scratch.mkdir()
        self.ending = self.faulty = False
        self.weather, self.library_crashes = set(), []
        self.clock = folder / "clock" if chance.random() < 0.5 else None
        self.environment = self._environment()
        self.actors = {name: kind(self) for name, kind in ACTORS.items()}
        self.limits_disk = True

    def _environment(self):
        order = self.folder / "memory"
        order.write_bytes(bytes(mmap.PAGESIZE))
        with open(order, "r+b") as file:
            self.order = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        made = {"LD_LIBRARY_PATH": str(self.build / "lib"), "MAPCACHE_MODULES": str(self.build / "modules"),
                "MAPCACHE_CONFIG_FILE": str(self.folder / "mapcache.xml"), "TMPDIR": str(self.scratch),
                "LD_PRELOAD": str(self.library), "FAILING_MEMORY": str(order)}
        if self.clock:
            self.set_clock(0)
            made |= {"LD_PRELOAD": f"{self.library}:{FAKETIME}", "FAKETIME_TIMESTAMP_FILE": str(self.clock), "FAKETIME_NO_CACHE": "1",
                     "FAKETIME_FORCE_MONOTONIC_FIX": "0", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}
        return made

    def write_config(self):
        self.config = self.folder / "mapcache.xml"
        caches = self.store.caches.format(store=self.disk / "tiles", connection=self.database.connection(), table="tiles")
        photo_grid = PHOTO_GRID.format(resolutions="32 16 8 4 2 1", origin="bottom-left")
        self.config.write_text(f"""<mapcache>
  <source name="origin" {wms(self.origin, "/late/5/pattern?")}
  {photo_grid}{caches}
  <tileset name="{DRAWN}"><source>origin</source><cache>store</cache><grid>{GRID}</grid><format>PNG</format><metatile>2 2</metatile></tileset>
  <tileset name="{PHOTOS}"><cache>store</cache><grid>own</grid><format>PNG</format></tileset>
  <jobs><connection>{self.database.connection()}</connection><schema>queue</schema><lease>5</lease></jobs>
  <service type="tms" enabled="true"/>
  <deadline>10</deadline>
  <lock_dir>{self.folder / "locks"}</lock_dir>
</mapcache>
""")
        (self.folder / "locks").mkdir()
        (self.disk / "tiles").mkdir()

    # --- what faults do ---------------------------------------------------------------------------------------- #

    def refuse_memory(self, every):
        self.order[:4] = struct.pack("=I", every)

    def set_clock(self, seconds):
        if self.clock:
            draft = self.clock.with_suffix(".draft")
            draft.write_text(f"{seconds:+d}")
            draft.replace(self.clock)

    @contextlib.contextmanager
    def filled(self):
        """No room on the disk; where it is no disk of its own, nothing happens."""
        filler = self.disk / "filler"
        try:
            if self.limits_disk:
                with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
                    while True:
                        file.write(bytes(1 << 20))
                with open(filler, "ab", buffering=0) as file, contextlib.suppress(OSError):
                    while True:
                        file.write(bytes(512))
            yield
        finally:
            filler.unlink(missing_ok=True)

    # --- time -------------------------------------------------------------------------------------------------- #

    def attend(self):
        if not self.ending:
            for actor in self.actors.values():
                actor.attend()

    def wait_until(self, condition, what, seconds=60):
        end = time.monotonic() + patience(seconds)
        while not condition():
            assert time.monotonic() < end, what
            time.sleep(0.02)

    def pass_time(self, seconds):
        """What a fault lasts: those who end meanwhile are started again."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.attend()
            time.sleep(0.02)

    def progress(self, requests):
        """Until the origin was asked so often again; where nobody has anything to draw, not for long."""
        def size():
            return os.path.getsize(self.origin.log) if os.path.exists(self.origin.log) else 0

        until, end = size() + requests * 700, time.monotonic() + 2
        while size() < until and time.monotonic() < end:
            self.attend()
            time.sleep(0.02)

    # --- the round --------------------------------------------------------------------------------------------- #

    def enqueue(self):
        return jobs(self, "enqueue", "-t", DRAWN, "-z", "0,4", "-m", "reseed")

    def fits(self, tileset, key, body):
        """Whether an answer is the tile, or, of one that is not stored yet, an empty one."""
        if self.comparisons[tileset].fits(key, body):
            return True
        try:
            return tileset == PHOTOS and not decode(body)[..., 3].any()
        except (OSError, SyntaxError):
            return False

    def compare(self, complete):
        """The number of tiles in all parts of the store."""
        return sum(self.comparisons[tileset].check(self.store.read(self.disk / "tiles", tileset, self.database), complete)
                   for tileset in (DRAWN, PHOTOS))

    def suffer(self):
        """Everybody works while the faults of the schedule strike."""
        said = {}
        self.faulty = True
        for name, actor, seed in plan(self.chance, self.actors):
            chance = random.Random(seed)
            self.progress(chance.randrange(1, 12))
            strike(self, name, actor, chance)
            said[name] = said.get(name, 0) + 1
        self.progress(5)
        self.faulty = False
        return said

    def rest(self):
        """Those who work are told to end, and end; the server stays, and rests. Returns its descriptors."""
        self.ending = True
        answers = self.actors["server"].dismiss()
        for name in ("seeder", "worker", "ingest"):
            self.actors[name].interrupt()
        if not self.actors["server"].runs():
            self.actors["server"].attend()
        wait_idle(self.actors["server"].pid)
        return answers

    def finish(self):
        """A second run of everybody, undisturbed: all is stored."""
        for name in ("seeder", "worker", "ingest", "server"):
            self.actors[name].done = False
            self.actors[name].complete()
        wait_idle(self.actors["server"].pid)

    def check_rest(self, first, same):
        """What the server holds is no more than after its first requests; nothing is left but tiles."""
        server = self.actors["server"]
        held = descriptors(server.pid)
        if same:
            self.check_descriptors(first, held)
        server.interrupt()
        assert [name for name in os.listdir(self.scratch)] == [], "scratch files are left"
        if server.starts > 1 and any(path.endswith("-wal") for path in left_behind(self.disk / "tiles")):
            self.actors["ingest"].attend_to_end()  # the remedy for what a killed server leaves: a command that writes
        left = [path for path in left_behind(self.disk / "tiles") if not path.endswith(".tmp")]
        assert not left, f"files of a write are left: {left}"
        self.remove_leftovers()

    def check_descriptors(self, first, held):
        """Of the store's files, as many as are kept open are allowed, each for every thread; of all else, about what there was at first."""
        stored = {name: count for name, count in held.items() if name.startswith(str(self.disk))}
        assert max(stored.values(), default=0) <= self.actors["server"].THREADS + 1, stored
        assert not [name for name in held if name.endswith("(deleted)") and name.startswith(str(self.folder))], held
        before = sum(count for name, count in first.items() if not name.startswith(str(self.disk)))
        assert sum(held.values()) - sum(stored.values()) <= before + SLACK, (first, held)

    def remove_leftovers(self):
        """What killed writers leave is removed by the command that says so, once it is old."""
        for path in left_behind(self.disk / "tiles"):
            os.utime(path, (0, 0))
        if self.limits_disk:
            enlarge(self.disk, MORE_ROOM)
        result = subprocess.run([self.program, "compact", "-c", self.config, "--orphans", "--quiet"], env={**os.environ, **self.environment},
                                capture_output=True, text=True, timeout=patience(100), check=False)
        assert result.returncode == 0, result.stdout + result.stderr
        left = left_behind(self.disk / "tiles")
        assert not left, f"files of a write are left after compact --orphans: {left}"

    def run(self):
        """The round; what happened, for a line of the report."""
        self.database.sql("set client_min_messages = error; drop table if exists tiles; drop schema if exists queue cascade")
        self.write_config()
        assert self.enqueue() is not None, "a job cannot be enqueued"
        server = self.actors["server"]
        self.attend()
        server.admit(self.chance.random())
        self.progress(20)
        first = descriptors(server.pid)
        faults = self.suffer()
        answers = self.rest()
        partly = self.compare(False)
        self.finish()
        whole = self.compare(True)
        self.check_rest(first, server.starts == 1)
        return {"faults": faults, "starts": {name: actor.starts for name, actor in self.actors.items()}, "answers": answers,
                "tiles": partly, "tiles_in_the_end": whole, "library_crashes": self.library_crashes, "full_disk": self.limits_disk, "clock": self.clock is not None}

    def end(self):
        self.refuse_memory(0)
        for actor in self.actors.values():
            actor.kill()
        self.order.close()


def run_round(surroundings, store, seed):
    """A round with everything in a folder that is gone afterwards. The logs of a round that fails are in its error."""
    with temporary_folder() as folder, small_disk(folder / "disk", ROOM) as place:
        world = World(surroundings, folder, store, random.Random(seed))
        world.limits_disk = place is not None
        try:
            return world.run()
        finally:
            world.end()

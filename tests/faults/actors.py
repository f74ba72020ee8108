"""Who works at a store: the server with its clients, a seeder, a worker of jobs, an ingest. Each is started again when it has ended, in
a way that it may end in."""
import json
import os
import random
import re
import signal
import subprocess
import threading

from conftest import GRID, Program, listens
from fastcgi import Client
from ingest_model import LEVELS as PHOTO_LEVELS
from patience import patience
from processes import is_alive
from stores import DRAWN, GRIDS, LEVELS, PHOTOS

BY_ITSELF, KILLED, WITHOUT_MEMORY = "by itself", "killed", "without memory"
# Signals that may end a process to which something was done. Without memory it may give up, in a way that says so.
MAY_END = {KILLED: {signal.SIGKILL}, WITHOUT_MEMORY: {signal.SIGABRT}}


def library_of_crash(log, build):
    """The library, none of ours, whose code is nearest to a crash for want of memory, beside the C library; or None."""
    frames = log.rpartition("crash:\n")[2].splitlines() if "crash:\n" in log else []
    for frame in frames:
        path = frame.partition("(")[0]
        if path.startswith("/") and not re.search(r"/(libc\.so|ld-linux|libpthread|failing_memory|libfaketime)", path):
            return None if path.startswith(str(build)) else os.path.basename(path)
    return None


class Actor:
    """A process of the round that is started again and again; `excuses` are what was done to the one that runs now, with what is done to
    all at this moment (the world's weather)."""

    name = ""

    def __init__(self, world):
        self.world, self.program, self.excuses, self.starts, self.done = world, None, set(), 0, False

    def command(self):
        raise NotImplementedError

    def start(self):
        self.starts, self.excuses, self.done = self.starts + 1, set(self.world.weather), False
        self.program = Program(self.command(), self.world.folder / f"{self.name}-{self.starts}.log", self.world.environment)

    @property
    def pid(self):
        return self.program.process.pid

    def runs(self):
        return self.program is not None and self.program.process.poll() is None and is_alive(self.pid)

    def check_end(self):
        """How it has ended is one of the ways that what was done to it allows; returns its exit status."""
        status = self.program.process.wait(patience(60))
        self.program.output.close()
        log = self.program.log()
        if WITHOUT_MEMORY not in self.excuses:
            assert "broken invariant" not in log, f"{self.name}:\n{log[-1500:]}"
        if status < 0:
            allowed = set().union(*(MAY_END.get(excuse, set()) for excuse in self.excuses))
            if WITHOUT_MEMORY in self.excuses and -status == signal.SIGSEGV and library_of_crash(log, self.world.build):
                self.world.library_crashes.append(library_of_crash(log, self.world.build))
                return status
            assert -status in allowed, f"{self.name} ended by signal {-status} after {sorted(self.excuses)}:\n{log[-1500:]}"
        assert "Sanitizer" not in log, f"{self.name}:\n{log[-8000:]}"
        return status

    def attend(self):
        """Starts it again if it has ended."""
        if self.program is None or not self.runs():
            if self.program is not None:
                self.after(self.check_end())
            self.start()

    def after(self, status):
        """It has ended."""

    def complete(self):
        """Runs it to its end, as often as it takes: what it says to be stored is stored afterwards."""
        for _ in range(5):
            if self.program is not None and self.done:
                return
            self.attend_to_end()
        raise AssertionError(f"{self.name} does not come to its end:\n{self.program.log()[-1500:]}")

    def attend_to_end(self):
        self.start()
        try:
            self.program.process.wait(patience(100))
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} hangs:\n{self.program.log()[-1500:]}") from None
        self.after(self.check_end())

    def interrupt(self):
        """As an administrator ends it; it is gone soon."""
        if self.program is None:
            return
        if self.runs():
            self.program.process.send_signal(signal.SIGTERM)
        try:
            self.program.process.wait(patience(40))
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} does not end when told to:\n{self.program.log()[-1500:]}") from None
        self.check_end()

    def kill(self):
        if self.program is not None and self.program.process.poll() is None:
            self.program.process.send_signal(signal.SIGCONT)
            self.program.process.kill()
            self.program.process.wait()


class Seeder(Actor):
    """Goes on where it was; when it has done all, it draws all again."""

    name = "seeder"

    def command(self):
        place = self.world.folder / "place"
        options = ["--resume"] if place.exists() else []
        if not self.world.ending:
            options.append("-f")
        return [self.world.program, "seed", "-c", self.world.config, "-t", DRAWN, "-z", f"0,{LEVELS - 1}", "-q", "-n", "2",
                "-P", "100", "--checkpoint", place, *options]

    def after(self, status):
        self.done = status == 0 and not (self.world.folder / "place").exists() and self.world.ending
        if status == 1 and not self.world.faulty:  # what an earlier one has said that cannot be used
            assert "checkpoint" not in self.program.log()[-500:], self.program.log()[-1500:]


class Worker(Actor):
    """Takes units of the jobs that are open."""

    name = "worker"

    def command(self):
        return [self.world.program, "jobs", "work", "-c", self.world.config, "--drain", "-q", "-n", "2"]

    def after(self, status):
        self.done = status == 0 and self.world.ending
        if not self.done and not self.world.ending:
            self.world.enqueue()


class Ingest(Actor):
    """Makes the tiles of the same images again and again."""

    name = "ingest"

    def command(self):
        return [self.world.program, "ingest", "-c", self.world.config, "-t", PHOTOS, "--srs", "EPSG:3857", "-q", "-n", "2",
                "--cachelimit", "8M", "--scratch", self.world.scratch, *self.world.photos.paths]

    def after(self, status):
        self.done = status == 0 and self.world.ending


class Visitor(threading.Thread):
    """A client of the server: asks for one tile after the other, and looks at each answer."""

    def __init__(self, server, seed):
        super().__init__(daemon=True)
        self.server, self.chance, self.leaving = server, random.Random(seed), threading.Event()
        self.statuses, self.wrong = {}, []

    def ask(self, client):
        tileset = self.chance.choice((DRAWN, DRAWN, PHOTOS))
        z = self.chance.randrange(LEVELS if tileset == DRAWN else PHOTO_LEVELS)
        x, y = self.chance.randrange(2**z), self.chance.randrange(2**z)
        answer = client.get(self.server.path(tileset, z, x, y).encode())
        self.statuses[answer.status] = self.statuses.get(answer.status, 0) + 1
        if answer.status == 200 and not self.server.world.fits(tileset, (z, x, y), answer.body):
            self.wrong.append((tileset, z, x, y, answer.body[:60]))
        elif answer.status not in (200, 404, 500, 502, 503, 504):
            self.wrong.append((tileset, z, x, y, answer.status, answer.body[:200]))

    def run(self):
        while not self.leaving.is_set():
            try:
                client = Client(self.server.address)
                try:
                    while not self.leaving.is_set():
                        self.ask(client)
                finally:
                    client.close()
            except (EOFError, OSError):  # it is being started, or was killed in the middle of an answer
                self.statuses["cut"] = self.statuses.get("cut", 0) + 1
                self.leaving.wait(0.05)


class Server(Actor):
    """The FastCGI program, and clients who ask for tiles at random."""

    name = "server"
    VISITORS, THREADS = 3, 4

    def __init__(self, world):
        super().__init__(world)
        self.address, self.visitors = str(world.folder / "fcgi.sock"), []

    def command(self):
        return [self.world.build / "bin/mapcache.fcgi", "--listen", self.address, "--threads", str(self.THREADS)]

    def start(self):
        if os.path.exists(self.address):  # of one that was killed
            os.unlink(self.address)
        super().start()
        self.world.wait_until(lambda: listens(self.address) or not self.runs(), "the server listens")

    def after(self, status):
        excused = self.excuses & MAY_END.keys()
        assert excused, f"the server ended with {status} after {sorted(self.excuses)}:\n{self.program.log()[-1500:]}"

    @staticmethod
    def path(tileset, z, x, y):
        return f"/tms/1.0.0/{tileset}@{GRIDS[tileset]}/{z}/{x}/{y}.png"

    def admit(self, seed):
        self.visitors = [Visitor(self, f"{seed} {i}") for i in range(self.VISITORS)]
        for visitor in self.visitors:
            visitor.start()

    def dismiss(self):
        """The number of answers by status; none of them was wrong."""
        for visitor in self.visitors:
            visitor.leaving.set()
        for visitor in self.visitors:
            visitor.join(patience(100))
            assert not visitor.is_alive(), f"a client is not answered:\n{self.program.log()[-1500:]}"
        wrong = [each for visitor in self.visitors for each in visitor.wrong]
        assert not wrong, f"{len(wrong)} answers are wrong: {wrong[:5]}"
        counts = {}
        for visitor in self.visitors:
            for status, count in visitor.statuses.items():
                counts[str(status)] = counts.get(str(status), 0) + count
        self.visitors = []
        return counts

    def complete(self):
        """Every tile is drawn and answered."""
        client = Client(self.address)
        try:
            for z, x, y in self.world.comparisons[DRAWN].expected:
                answer = client.get(self.path(DRAWN, z, x, y).encode())
                assert answer.status == 200, (z, x, y, answer.status, answer.body[:200], self.program.log()[-1500:])
                assert self.world.fits(DRAWN, (z, x, y), answer.body), (z, x, y)
        finally:
            client.close()


def jobs(world, *words):
    """A command on the queue: its first line of JSON, or None where it failed."""
    done = subprocess.run([world.program, "jobs", words[0], "-c", world.config, *words[1:], "--json"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=patience(100), check=False, env={**os.environ, **world.environment})
    found = re.match(r"\{.*\}$", done.stdout, re.M)
    return json.loads(found.group()) if done.returncode == 0 and found else None


ACTORS = {actor.name: actor for actor in (Server, Seeder, Worker, Ingest)}

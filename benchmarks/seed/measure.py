"""One list of metatiles through each program: seconds of the clock, and of processor time of the program and the database apart."""
import resource
import sqlite3
import subprocess
import time

from common import keeper
from common.servers import BUILD, cpu_seconds, descendants
from peers import peer
from seed import config


class Renderd:
    """Debian's renderd, which runs all the time, as its sessions in the database do; render_list hands it the list and waits. One metatile file for
    64 tiles."""

    name, stays = "renderd", True

    def __init__(self, folder, database, threads, image_of=None):
        self.folder, self.threads = folder, threads
        path = config.write_renderd(folder, database, threads)
        self.log = open(folder / "renderd.log", "ab")
        self.process = keeper.start([peer("/usr/bin/renderd"), "-f", "-c", path], stdout=self.log, stderr=self.log)
        end = time.monotonic() + 60
        while not (folder / "renderd.sock").exists():
            if self.process.poll() is not None or time.monotonic() > end:
                self.close()
                raise RuntimeError("renderd did not start: " + (folder / "renderd.log").read_text(errors="replace")[-2000:])
            time.sleep(.05)

    def draw(self, name):
        with open(self.folder / f"{name}.txt") as lines:
            done = subprocess.run([peer("/usr/bin/render_list"), "-f", "-m", "default", "-s", self.folder / "renderd.sock", "-t", self.folder / "renderd", "-n", str(self.threads),
                                   "-l", "100000"], stdin=lines, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"render_list: {done.stdout[-1000:]}{done.stderr[-1000:]}")

    def cpu(self):
        return cpu_seconds(descendants(self.process.pid))

    def stored(self):
        """Metatiles and bytes."""
        files = [path.stat().st_size for path in (self.folder / "renderd").rglob("*.meta")]
        return len(files), sum(files)

    def close(self):
        keeper.end(self.process, 20)
        self.log.close()


class Ours:
    """`mapcache seed --list` into one SQLite file: a process for each list."""

    name, stays = "ours", False

    def __init__(self, folder, database, threads):
        self.folder, self.threads = folder, threads
        self.config = config.write_ours(folder, database)

    def draw(self, name):
        done = subprocess.run([BUILD / "bin" / "mapcache", "seed", "-c", self.config, "-t", "world", "--list", self.folder / f"{name}.txt", "--force", "-q", "-P", "0",
                               "-n", str(self.threads)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"mapcache seed: {done.stdout[-1000:]}{done.stderr[-1000:]}")

    def cpu(self):
        return 0.0  # its processes have ended, see `spent`

    def stored(self):
        with sqlite3.connect(self.folder / "tiles.sqlite3") as file:
            tiles, size = file.execute("select count(*), sum(length(data)) from tiles").fetchone()
        return tiles / 64, size

    def close(self):
        pass


def spent():
    """Of the programs that were started for a list and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def wait_for_sessions(database, known, seconds=10):
    """Until the database's processes that are not among the known ones have ended: until then it is chance whether their time counts to the nanosecond,
    in hundredths, or not at all. What the database starts on its own account is not waited for any longer."""
    end = time.monotonic() + seconds
    while not known.issuperset(database.pids()) and time.monotonic() < end:
        time.sleep(.01)


def one(program, name, count, database):
    """Figures of one list."""
    known = set(database.pids())
    before = program.cpu() + spent(), cpu_seconds(database.pids()), time.monotonic()
    program.draw(name)
    ended = time.monotonic()
    if not program.stays:
        wait_for_sessions(database, known)
    after = program.cpu() + spent(), cpu_seconds(database.pids()), ended
    own, theirs, seconds = (b - a for a, b in zip(before, after))
    return {"seconds": seconds, "rate": count / seconds, "cpu": own * 1e3 / count, "database": theirs * 1e3 / count}

"""The load generator (load.c) and what it found."""
import math
import os
import pathlib
import subprocess
import tempfile

from common import keeper
from common.servers import ROOT

SOURCE = pathlib.Path(__file__).with_name("load.c")
_pinned = []  # words before the program's own


def compile_program(source, made, before=(), after=()):
    """Another run may do the same at the same time: each puts a whole file in place."""
    made.parent.mkdir(parents=True, exist_ok=True)
    half = made.with_name(f"{made.name}.{os.getpid()}")
    subprocess.run(["cc", "-O2", *before, "-o", half, source, *after], check=True)
    half.replace(made)


def program():
    """Compiled when it is missing or older than its source."""
    made = ROOT / "build" / "bench" / "bin" / "load"
    if not made.exists() or made.stat().st_mtime < SOURCE.stat().st_mtime:
        compile_program(SOURCE, made)
    return str(made)


def processors(cores):
    """From now on, the generator runs on these."""
    _pinned[:] = ["taskset", "--cpu-list", ",".join(map(str, cores))]


class Answer:
    """One request: seconds since the start, milliseconds that it took and was late, status (0: none; -1: none yet at the end), bytes, whether it is
    a picture, and whether it says when to try again."""

    def __init__(self, line):
        sent, took, late, self.status, self.bytes, picture, told = (int(word) for word in line.split())
        self.sent, self.ms, self.late = sent / 1e6, took / 1e3, late / 1e3
        self.good, self.told = self.status == 200 and picture == 1, told == 1


class Crowd:
    """Users of a server that are at work: `target` is its port, or the path of a FastCGI socket. `clients`: (first address, how many) of the users;
    `seconds`: when all is over."""

    def __init__(self, target, paths, users, requests, ramp=0.0, interval=0.0, timeout=120.0, seconds=0.0, clients=("127.0.0.1", 1)):
        self.folder = tempfile.TemporaryDirectory(prefix="mapcache-crowd-")
        folder = pathlib.Path(self.folder.name)
        (folder / "paths").write_text("\n".join(paths) + "\n")
        self.said = folder / "answers"
        words = [target, folder / "paths", users, requests, ramp, interval, timeout]
        with open(self.said, "w") as out:
            self.process = keeper.start([*_pinned, program(), "-s", str(seconds), "-a", clients[0], "-n", str(clients[1]), *map(str, words)], stdout=out,
                                        stderr=subprocess.PIPE, text=True)

    def finish(self):
        """All answers, in the order in which they came, and the most connections at a time."""
        _, told = self.process.communicate()
        keeper.end(self.process)
        if self.process.returncode != 0:
            raise RuntimeError(f"load: {told}")
        answers = [Answer(line) for line in self.said.read_text().splitlines()]
        self.folder.cleanup()
        return answers, int(told)


def run(port, paths, users, requests, **options):
    """All answers of a crowd, in the order in which they came."""
    return Crowd(port, paths, users, requests, **options).finish()[0]


def percentile(values, share):
    """Of sorted values."""
    return values[min(len(values) - 1, int(share * len(values)))] if values else math.nan


def mean_and_deviation(values):
    mean = sum(values) / len(values)
    return mean, math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1)) if len(values) > 1 else 0.0

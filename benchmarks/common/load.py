"""The load generator (load.c) and what it found."""
import math
import pathlib
import subprocess
import tempfile

from common.servers import ROOT

SOURCE = pathlib.Path(__file__).with_name("load.c")


def program():
    """Compiled when it is missing or older than its source."""
    made = ROOT / "build" / "bench" / "bin" / "load"
    if not made.exists() or made.stat().st_mtime < SOURCE.stat().st_mtime:
        made.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cc", "-O2", "-o", made, SOURCE], check=True)
    return str(made)


class Answer:
    """One request: seconds since the start, milliseconds that it took and was late, status (0: none), bytes, whether it is a picture."""

    def __init__(self, line):
        sent, took, late, self.status, self.bytes, picture = (int(word) for word in line.split())
        self.sent, self.ms, self.late = sent / 1e6, took / 1e3, late / 1e3
        self.good = self.status == 200 and picture == 1


def run(port, paths, users, requests, ramp=0.0, interval=0.0, timeout=120.0):
    """All answers, in the order in which they came."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(paths) + "\n")
        file.flush()
        done = subprocess.run([program(), str(port), file.name, str(users), str(requests), str(ramp), str(interval), str(timeout)],
                              check=True, capture_output=True, text=True)
    return [Answer(line) for line in done.stdout.splitlines()]


def percentile(values, share):
    """Of sorted values."""
    return values[min(len(values) - 1, int(share * len(values)))] if values else math.nan


def mean_and_deviation(values):
    mean = sum(values) / len(values)
    return mean, math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1)) if len(values) > 1 else 0.0

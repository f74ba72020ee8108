"""Tiles of 16 KB written to one SQLite file: through our store, and the bare rows as a script writes them."""
import pathlib
import random
import re
import sqlite3
import subprocess
import tempfile
import time

from common.servers import BUILD, ROOT

BYTES, TOGETHER = 16384, 1000
WAYS = {"bare rows, rollback journal, synchronous": "PRAGMA journal_mode=delete; PRAGMA synchronous=full; PRAGMA cache_spill=off",
        "bare rows, WAL": "PRAGMA journal_mode=wal; PRAGMA synchronous=normal"}


def program():
    """micro_write of the build that is measured."""
    subprocess.run(["flock", ROOT / "build" / "preparing.lock", "ninja", "-C", BUILD, "micro_write"], check=True, stdout=subprocess.DEVNULL)
    return BUILD / "bin" / "micro_write"


def ours(tiles):
    """Tiles/s by how many there are in a transaction."""
    out = subprocess.run([program(), str(tiles)], check=True, capture_output=True, text=True).stdout
    return {int(together): float(rate) for together, rate in re.findall(r"(\d+) tiles a transaction:\s+(\d+) tiles/s", out)}


def bare(settings, tiles):
    numbers = random.Random(1)
    blobs = [numbers.randbytes(BYTES) for _ in range(256)]
    with tempfile.TemporaryDirectory(prefix="mapcache-writes-", dir="/var/tmp") as folder:
        file = sqlite3.connect(pathlib.Path(folder) / "tiles.sqlite3", isolation_level=None)
        file.executescript(settings)
        file.execute("CREATE TABLE tiles(z integer, x integer, y integer, data blob)")
        file.execute("CREATE UNIQUE INDEX place ON tiles(z, x, y)")
        began = time.monotonic()
        for first in range(0, tiles, TOGETHER):
            file.execute("BEGIN")
            file.executemany("INSERT INTO tiles VALUES(12, ?, ?, ?)", ((at % 251, at // 251, blobs[at % 256]) for at in range(first, min(tiles, first + TOGETHER))))
            file.execute("COMMIT")
        seconds = time.monotonic() - began
        file.close()
    return tiles / seconds


def measure(tiles, rounds):
    """In turn."""
    found = {}
    for _ in range(rounds):
        for together, rate in ours(tiles).items():
            found.setdefault(f"ours, {together} tiles a transaction", []).append(rate)
        for name, settings in WAYS.items():
            found.setdefault(f"{name}, {TOGETHER} rows a transaction", []).append(bare(settings, tiles))
    return [{"who": name, "rates": rates} for name, rates in found.items()]

"""Commands that are refused memory at one place after the other: each says so and ends, none crashes, and what they store is whole."""
import mmap
import os
import signal
import sqlite3
import struct
import subprocess

import pytest
from actors import library_of_crash
from conftest import GRID, build, temporary_folder  # noqa: F401  # build is a fixture
from patience import patience
from stores import Photos, decode
from world import refuser

# Every Nth allocation fails; about a factor of 2 between them.
ORDERS = [int(30 * 2.0**i) + i for i in range(9)]
COMMANDS = {"check": ("check", "{config}"), "seed": ("seed", "-c", "{config}", "-t", "world", "-z", "0,2", "-f", "-q"),
            "ingest": ("ingest", "-c", "{config}", "-t", "photos", "--srs", "EPSG:3857", "-q", "{image}"),
            "compact": ("compact", "-c", "{config}", "--quiet")}
SAYS_SO = "no memory is left", "broken invariant", "memory"


@pytest.fixture(scope="module")
def place(build):  # pylint: disable=redefined-outer-name
    photos = Photos()
    with temporary_folder() as folder:
        config = folder / "mapcache.xml"
        config.write_text(f"""<mapcache><source name="any" type="dummy"/><cache name="store" type="sqlite3"><dbfile>{folder}/tiles.db</dbfile></cache>
  <tileset name="world"><source>any</source><cache>store</cache><grid>{GRID}</grid><format>PNG</format><metatile>2 2</metatile></tileset>
  <tileset name="photos"><cache>store</cache><grid>{GRID}</grid><format>PNG</format></tileset>
  <service type="wmts" enabled="true"/><lock_dir>{folder}</lock_dir></mapcache>""")
        order = folder / "memory"
        order.write_bytes(bytes(mmap.PAGESIZE))
        environment = {**os.environ, "LD_PRELOAD": str(refuser(folder)), "FAILING_MEMORY": str(order), "LD_LIBRARY_PATH": str(build / "lib"),
                       "MAPCACHE_MODULES": str(build / "modules"), "TMPDIR": str(folder)}

        def run(name, every):
            order.write_bytes(struct.pack("=I", every) + bytes(mmap.PAGESIZE - 4))
            words = [word.format(config=config, image=photos.paths[0]) for word in COMMANDS[name]]
            return subprocess.run([build / "bin/mapcache", *words], env=environment, capture_output=True, text=True, timeout=patience(60), check=False)

        yield folder, run
    photos.remove()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_without_memory_says_so(build, place, name):  # pylint: disable=redefined-outer-name
    folder, run = place
    for every in ORDERS:
        result = run(name, every)
        if -result.returncode == signal.SIGSEGV and library_of_crash(result.stderr, build):
            continue
        assert result.returncode >= 0 or -result.returncode == signal.SIGABRT, (every, result.returncode, result.stderr[-500:])
        if result.returncode < 0:
            assert any(word in result.stderr for word in SAYS_SO), (every, result.stderr[-500:])
    result = run(name, 0)
    assert result.returncode == 0, result.stdout + result.stderr
    if not (folder / "tiles.db").exists():
        return
    with sqlite3.connect(folder / "tiles.db") as file:
        assert file.execute("pragma integrity_check").fetchall() == [("ok",)]
        assert all(decode(row[0]).shape == (256, 256, 4) for row in file.execute("select data from tiles where length(data) > 10"))
    file.close()

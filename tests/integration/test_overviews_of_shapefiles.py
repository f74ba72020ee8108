"""Overviews beside shapefiles: read where the shapefile has the bytes that they were built from, and trusted only where they may be."""
import fcntl
import json
import os
import random
import shutil
import struct
import subprocess

import pytest
from conftest import sanitizer_environment, wait_until
from overview_site import SIDE, WHOLE, X, Y, Site, built, command, configuration, database, listed, overviews, square
from patience import patience


def write_over(path, old, new):
    """Another table of the same size and time, as if nobody had written."""
    times = os.stat(path)
    path.write_bytes(path.read_bytes().replace(old, new))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def put(path, content):
    """In one step, as a builder does."""
    path.with_suffix(".new").write_bytes(content)
    path.with_suffix(".new").rename(path)


def emptied(content):
    """The levels of a file (level_file.h) without their blocks: a map that is read from one of them is blank."""
    made, count = bytearray(content), struct.unpack_from("<I", content, 136)[0]
    for i in range(count):
        struct.pack_into("<I", made, 144 + 48 * i + 28, 0)
    return bytes(made)


def kill_a_builder(build, path, folder):
    """As soon as it has begun to write; what it leaves is not in the way of the next one."""
    with subprocess.Popen(command(build, path, "overviews", "build"), stdout=subprocess.DEVNULL, env={**os.environ, **sanitizer_environment(build)}) as builder:
        wait_until(lambda: list(folder.glob("*.tmp*")) or builder.poll() is not None, "the builder writes", 30)
        builder.kill()


ISLANDS = """SELECT kind, CASE kind WHEN 1 THEN ST_Multi(ST_Difference(ST_Buffer(p, 1200, 3), ST_Buffer(p, 600, 3))) WHEN 2 THEN
    ST_Collect(ST_Buffer(p, 700, 2), ST_Buffer(ST_Translate(p, 1800, 100), 900, 1)) ELSE ST_Multi(ST_Buffer(p, 900, 2)) END AS geom
    FROM (SELECT kind, ST_StartPoint(geom) AS p FROM crowded LIMIT 8000) roads"""


def make_shapefile(folder, database, kind, rows):
    """And its configuration, and the file that its overviews have."""
    shapes = folder / "data.shp"
    subprocess.run(["ogr2ogr", "-q", "-f", "ESRI Shapefile", shapes, f"PG:{database.connection()}", "-sql", rows], check=True, timeout=patience(60))
    return shapes, configuration(folder, database, kind=kind, shapefile=shapes)


def blank(site):
    return not site.map("level", WHOLE)[..., 3].any()


@pytest.mark.parametrize("kind, rows", [("roads", "SELECT kind, geom FROM crowded"), ("fills", ISLANDS)], ids=["roads", "areas"])
def test_maps_of_overviews_look_as_those_of_the_shapefile(build, folder, database, kind, rows):
    shapes, path = make_shapefile(folder, database, kind, rows)
    lines = [json.loads(line) for line in built(build, path, "--json").splitlines()]
    assert any(line["shapefile"] == str(shapes) and line.get("features") for line in lines), lines
    assert all(line["differs"] <= .005 for line in lines if "features" in line), lines
    found, = folder.glob("data.*.mcov*")
    numbers, painted, off = random.Random(17), 0, 0
    with Site(build, folder, path) as site:
        for _ in range(4):
            side = SIDE * 2 ** numbers.uniform(0, 2)
            both, different = site.differ(square(X + numbers.uniform(-.5, .5) * side, Y + numbers.uniform(-.5, .5) * side, side))
            painted, off = painted + both, off + different
        assert painted > 10_000 and off <= .005 * painted, (painted, off)
        put(found, emptied(found.read_bytes()))
        assert blank(site), (lines, site.server.log())  # and so were the maps above read from levels


def assert_untrusted(site, folder, found):
    """Another user's file, where everybody may write."""
    mode = folder.stat().st_mode
    os.chown(found, 54321, -1)
    assert blank(site)
    folder.chmod(0o1777)
    os.chown(found, 54322, -1)
    assert not blank(site) and "another user's" in site.server.log()
    folder.chmod(mode)


def test_overviews_are_those_of_the_bytes_of_a_shapefile(build, folder, database):
    shapes, path = make_shapefile(folder, database, "fills", ISLANDS)
    (folder / "data.0123456789abcdef.mcov").write_bytes(b"of another style")
    kill_a_builder(build, path, folder)
    built(build, path)
    found, = (file for file in folder.glob("data.*.mcov*") if "0123" not in file.name)
    whole = found.read_bytes()
    put(found, emptied(whole))
    shutil.copytree(folder, folder / "copied", ignore=shutil.ignore_patterns("*.sock"), copy_function=shutil.copyfile)
    with Site(build, folder / "copied", configuration(folder / "copied", database, kind="fills", shapefile=folder / "copied/data.shp")) as site:
        assert blank(site)
    with Site(build, folder, path) as site:
        assert blank(site)
        own, others = listed(build, path)
        assert [found["used"] for found in own] == [True] * (len(own) - 1) + [False] and own[-1]["levels"] == 1  # the one of another style
        assert own[0]["maxzoom"] == own[0]["minzoom"] > 0 and own[0]["features"] > 0 and own[0]["size"] == 0 and [found["levels"] for found in others] == [0, 2], (own, others)
        os.utime(shapes)
        assert blank(site)  # the same bytes
        write_over(shapes.with_suffix(".dbf"), b"1", b"2")
        assert not blank(site) and site.differ(WHOLE)[1] == 0 and "another one than they were built from" in site.server.log()
        assert "another one than they were built from" in listed(build, path)[0][0]["reason"]
        write_over(shapes.with_suffix(".dbf"), b"2", b"1")
        built(build, path)
        put(found, emptied(found.read_bytes()))
        assert blank(site)
        if os.geteuid() == 0:  # who else can give files away
            assert_untrusted(site, folder, found)
        put(found, whole[:200])
        assert not blank(site) and "is broken" in site.server.log() and "is broken" in listed(build, path)[0][0]["reason"]
    with open(f"{found}.tmp", "w", encoding="ascii") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        refused = overviews(build, path, "build")
        assert refused.returncode == 1 and f"process {os.getpid()}" in refused.stderr, refused.stderr
    assert overviews(build, path, "drop").returncode == 0
    assert not list(folder.glob("*.mcov*"))

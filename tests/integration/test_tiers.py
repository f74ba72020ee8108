"""Redis before an object store, as docs/scaling.md has it, for the tools: what is there is counted, copied and removed as a whole."""
import contextlib
import json
import sqlite3
import subprocess

import pytest
from conftest import GRID
from http_stores import KEYS, OwnStore
from origin import Origin
from patience import patience
from stores import Redis
from store_kinds import TEMPLATE


class Tiers:
    def __init__(self, build, folder, near, far, origin):
        self.build, self.near, self.far, self.config = build, near, far, folder / "mapcache.xml"
        self.config.write_text(f"""<mapcache>
  <source name="pattern" type="wms"><getmap><params><FORMAT>image/png</FORMAT><LAYERS>pattern</LAYERS></params></getmap>
    <http><url>{origin.url("/pattern?")}</url></http></source>
  <cache name="near" {near.cache("<timeout>1</timeout>")}</cache>
  <cache name="far" type="s3"><url>http://127.0.0.1:{far.port}/c/{TEMPLATE}</url><timeout>2</timeout><busy_retries>0</busy_retries>{KEYS["s3"]}</cache>
  <cache name="tiles" type="multitier"><cache>near</cache><cache>far</cache></cache>
  <cache name="file" type="sqlite3"><dbfile>{folder}/copy.db</dbfile></cache>
  <tileset name="world"><source>pattern</source><cache>tiles</cache><grid>{GRID}</grid><format>PNG</format><metatile>4 4</metatile></tileset>
  <tileset name="fast"><source>pattern</source><cache>near</cache><grid>{GRID}</grid><format>PNG</format></tileset>
  <lock_dir>{folder}</lock_dir>
</mapcache>
""")

    def run(self, command, *words, status=0):
        done = subprocess.run([self.build / "bin/mapcache", command, "-c", self.config, *words], capture_output=True, text=True, timeout=patience(100),
                              stdin=subprocess.DEVNULL, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        return done

    def counts(self):
        levels = json.loads(self.run("detail", "-t", "world", "--json").stdout)["zoom_levels"]
        return [level["nb_tiles_in_region"]["cached_in_level"] for level in levels[:4]]


@pytest.fixture
def tiers(build, folder):
    with Origin() as origin, contextlib.closing(Redis(folder)) as near:
        far = OwnStore("s3", folder)
        try:
            made = Tiers(build, folder, near, far, origin)
            made.run("seed", "-q", "-t", "world", "-z", "0,3")
            yield made
        finally:
            far.stop()


def test_tiers_are_counted_copied_and_emptied_as_a_whole(tiers, folder):
    assert tiers.counts() == [1, 4, 16, 64], "as the far one has them: redis has none yet"
    key = f"world/{GRID}/9/7/7/png"
    tiers.near.ask("SET", key, "\x89PNG" + "0" * 8)  # the near one has a tile that the far one has lost
    tiers.run("copy", "--from", "far", "--to", "file", "-t", "world", "--verify")
    with contextlib.closing(sqlite3.connect(folder / "copy.db")) as database:
        assert database.execute("SELECT count(*) FROM tiles").fetchone() == (85,)
    tiers.run("purge", "-t", "world", "-z", "3,3", "--yes")
    assert tiers.counts() == [1, 4, 16, 0]
    tiers.run("purge", "-t", "world", "--yes")
    assert tiers.counts() == [0, 0, 0, 0] and tiers.near.ask("EXISTS", key).strip() == "0"


def test_a_purge_that_a_tier_does_not_do_is_told(tiers):
    """The tiles would come back from there."""
    tiers.far.order("fail/503/100000/SlowDown")
    said = tiers.run("purge", "-t", "world", "-z", "2,3", "--yes", status=1)
    assert 'cache "far"' in said.stderr, said.stderr
    tiers.far.order("fail/503/0")
    assert tiers.counts() == [1, 4, 16, 64]
    tiers.run("purge", "-t", "world", "-z", "2,3", "--yes")
    assert tiers.counts() == [1, 4, 0, 0]

"""What the tests of the job queue share: a configuration with a queue in a schema of its own, workers as processes."""
import json
import os
import pathlib
import sqlite3
import subprocess

from conftest import GRID
from patience import patience

BUILD = pathlib.Path(os.environ.get("MAPCACHE_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build" / "release"))
PROGRAM = str(BUILD / "bin" / "mapcache")


class Queue:
    """`source`: the whole element after its name; `local`: over the socket in the file system, which network namespaces
    do not keep apart."""

    def __init__(self, folder, database, source='type="dummy"/>', lease=60, local=False, services="", more=""):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)
        self.folder, self.database = folder, database
        name = f"{folder.parent.name}_{folder.name}".lower()  # another one where a test runs again beside what its first run has left
        self.schema = "q_" + "".join(c if c.isalnum() else "_" for c in name)[-50:]
        connection = f"host={database.folder} port={database.port} dbname=postgres user=mapcache" if local else database.connection()
        self.config = folder / "mapcache.xml"
        self.config.write_text(f"""<mapcache>
  <source name="any" {source}
  <cache name="main" type="sqlite3"><dbfile>{folder}/tiles.sqlite3</dbfile></cache>
  <cache name="other" type="sqlite3"><dbfile>{folder}/other.sqlite3</dbfile></cache>
  <tileset name="world"><source>any</source><cache>main</cache><grid>{GRID}</grid><format>PNG</format><metatile>2 2</metatile>{more}</tileset>
  <tileset name="copy"><cache>other</cache><grid>{GRID}</grid><format>PNG</format></tileset>
  <jobs><connection>{connection}</connection><schema>{self.schema}</schema><lease>{lease}</lease></jobs>
  <service type="wmts" enabled="true"/>
  {services}
  <lock_dir>{folder}</lock_dir>
</mapcache>
""")

    def run(self, command, *options, check=True):
        done = subprocess.run([PROGRAM, "jobs", command, "-c", str(self.config), *map(str, options)], capture_output=True,
                              text=True, timeout=patience(100))
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def enqueue(self, *options, tileset="world"):
        return json.loads(self.run("enqueue", "-t", tileset, "--json", *options).stdout)["id"]

    def job(self, number):
        return json.loads(self.run("show", number, "--json").stdout.splitlines()[0])

    def units(self, number):
        return [json.loads(line) for line in self.run("show", number, "--json").stdout.splitlines()[1:]]

    def worker(self, *options, before=(), **more):
        """A worker as a process; `before`: words in front of the command."""
        return subprocess.Popen([*before, PROGRAM, "jobs", "work", "-c", str(self.config), "--json", *map(str, options)],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)

    def sql(self, text):
        return self.database.sql(text.replace("@", self.schema + "."))

    def tiles(self, name="tiles", tileset="world"):
        with sqlite3.connect(self.folder / f"{name}.sqlite3", timeout=patience(60)) as file:
            assert file.execute("pragma integrity_check").fetchone() == ("ok",)
            rows = file.execute("select z, x, y, data from tiles where tileset = ?", (tileset,))
            return dict((row[:3], row[3]) for row in rows)


def last_line(process, seconds=60):
    out, err = process.communicate(timeout=patience(seconds))
    assert process.returncode == 0, out + err
    return json.loads(out.splitlines()[-1])


def seeded_alone(folder, source, levels, *options):
    """The tiles of an uninterrupted seed of the same tileset by one process."""
    folder.mkdir()
    config = folder / "mapcache.xml"
    config.write_text(f"""<mapcache><source name="any" {source}
  <cache name="main" type="sqlite3"><dbfile>{folder}/tiles.sqlite3</dbfile></cache>
  <tileset name="world"><source>any</source><cache>main</cache><grid>{GRID}</grid><format>PNG</format><metatile>2 2</metatile></tileset>
  <service type="wmts" enabled="true"/><lock_dir>{folder}</lock_dir></mapcache>""")
    subprocess.run([str(BUILD / "bin" / "mapcache_seed"), "-c", str(config), "-t", "world", "-z", levels, "-q", *options], check=True,
                   capture_output=True, timeout=patience(100))
    with sqlite3.connect(folder / "tiles.sqlite3") as file:
        return dict((row[:3], row[3]) for row in file.execute("select z, x, y, data from tiles"))


def wms(origin, path="/pattern?"):
    return f"""type="wms"><getmap><params><FORMAT>image/png</FORMAT><LAYERS>red</LAYERS></params></getmap>
    <http><url>{origin.url(path)}</url></http></source>"""


def boxes(origin):
    """What has been drawn: box and width of each request."""
    return [(params["BBOX"], params["WIDTH"]) for params in (request["params"] for request in origin.requests()) if "BBOX" in params]

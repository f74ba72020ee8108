"""lmdb and bdb: Debian's MapCache reads what ours has written, and the other way round; what their users see."""
import os
import pathlib
import sqlite3
import subprocess

import pytest
from drop_in import PEER_SEED
from patience import patience
from test_geopackage import picture

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("MAPCACHE_BUILD", ROOT / "build" / "release"))
PROGRAM, OURS = str(BUILD / "bin" / "mapcache"), str(BUILD / "bin" / "mapcache_seed")
KINDS = {"lmdb": "<base>{folder}/lmdb</base>", "bdb": "<base>{folder}/bdb</base>"}


def config(folder, kinds=tuple(KINDS), more=""):
    """Tilesets of SQLite files to fill and to read back, and one for each kind."""
    tileset = '<tileset name="{0}"><cache>{1}</cache><grid>GoogleMapsCompatible</grid><format>PNG</format><metatile>2 2</metatile></tileset>'
    for kind in kinds:
        (folder / kind).mkdir(exist_ok=True)
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache>
  <source name="world" type="gdal"><data>{folder}/world.tif</data></source>
  <cache name="sqlite" type="sqlite3"><dbfile>{folder}/{{tileset}}.db</dbfile></cache>
  {"".join(f'<cache name="{kind}" type="{kind}">{KINDS[kind].format(folder=folder)}</cache>' for kind in kinds)}
  {more}
  {"".join(tileset.format(*names) for names in [("from", "sqlite"), ("back", "sqlite"), *((kind, kind) for kind in kinds)])}
  <service type="wmts" enabled="true"/><lock_dir>{folder}</lock_dir>
</mapcache>
""")
    return path


def transfer(program, path, source, target):
    result = subprocess.run([str(program), "-c", str(path), "-t", source, "-m", "transfer", "-x", target, "-g", "GoogleMapsCompatible", "-z", "0,3", "-f"],
                            capture_output=True, text=True, timeout=patience(100))
    assert result.returncode == 0, result.stdout + result.stderr


def run(*arguments, status=0):
    result = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=patience(100))
    assert result.returncode == status, result.stdout + result.stderr
    return result.stdout + result.stderr


def stored(folder, tileset):
    with sqlite3.connect(folder / f"{tileset}.db") as database:
        return {place: data for *place, data in database.execute("select z, x, y, data from tiles") for place in [tuple(place)]}


@pytest.fixture
def filled(tmp_path):
    """A folder with 85 tiles."""
    picture(tmp_path / "world.tif")
    path = config(tmp_path, ())
    path.write_text(path.read_text().replace('<tileset name="from">', '<tileset name="from"><source>world</source>'))
    run("seed", "-c", path, "-t", "from", "-z", "0,3", "--quiet")
    assert len(stored(tmp_path, "from")) == 85
    return tmp_path


@pytest.mark.parametrize("writer, reader", [(OURS, PEER_SEED), (PEER_SEED, OURS), (OURS, OURS)], ids=["ours-theirs", "theirs-ours", "ours-ours"])
def test_lmdb_goes_both_ways(filled, writer, reader):
    """Debian's is built without bdb."""
    path = config(filled, ("lmdb",))
    path.write_text("".join(line for line in path.read_text().splitlines(True) if 'type="gdal"' not in line))
    transfer(writer, path, "from", "lmdb")
    transfer(reader, path, "lmdb", "back")
    assert stored(filled, "back") == stored(filled, "from")


def test_bdb_keeps_its_tiles(filled):
    path = config(filled, ("bdb",))
    transfer(OURS, path, "from", "bdb")
    transfer(OURS, path, "bdb", "back")
    assert stored(filled, "back") == stored(filled, "from")
    subprocess.run(["db5.3_verify", filled / "bdb/bdb.db"], check=True, timeout=patience(60))


@pytest.mark.parametrize("kind", KINDS)
def test_commands_know_the_kind(filled, kind):
    path = config(filled, (kind,))
    assert "errors: 0" in run("check", path) or "no complaints" in run("check", path)
    transfer(OURS, path, "from", kind)
    assert "85" in run("detail", "-c", path, "-t", kind, "-z", "0,3")
    run("purge", "-c", path, "-t", kind, "-z", "3,3", "--yes")
    shown = run("detail", "-c", path, "-t", kind, "-z", "0,3")
    assert "21 tiles" in shown and "24.7 %" in shown, shown


def many_tiles(folder, kind, template):
    """A cache of two tilesets with 5,461 tiles and one tile, whose keys begin alike; and tiles of a deep level."""
    tile = {(z, x, y): f"{z}/{x}/{y}".encode() * 9 for z in range(7) for x in range(2**z) for y in range(2**z)} | {(18, 262142, 4): b"deep" * 9, (18, 0, 262142): b"far" * 9}
    with sqlite3.connect(folder / "from.db") as database:
        database.execute("create table tiles(tileset text, grid text, x integer, y integer, z integer, data blob, dim text, ctime datetime,"
                         " primary key(tileset, grid, x, y, z, dim))")
        database.executemany("insert into tiles values('from', 'GoogleMapsCompatible', ?, ?, ?, ?, '', datetime('now'))",
                             ((x, y, z, data) for (z, x, y), data in tile.items()))
    database.close()
    path = config(folder, (kind,), f'<tileset name="{kind}-Google"><cache>{kind}</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>')
    path.write_text(path.read_text().replace("</base>", f"</base><key_template>{template}</key_template>"))
    run("seed", "-c", path, "-t", "from", "--mode", "transfer", "--transfer", kind, "-z", "0,18", "--quiet")
    run("seed", "-c", path, "-t", "from", "--mode", "transfer", "--transfer", f"{kind}-Google", "-z", "0,0", "--quiet")
    return path, tile


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("template", ["{tileset}-{grid}-{dim}-{z}-{y}-{x}.{ext}", "{ext}/{inv_x}/{tileset}/{z}:{inv_y}/{grid}"])
def test_what_is_stored_is_listed(tmp_path, kind, template):
    """19 levels of the world, by their keys: nobody could look for each of these tiles."""
    path, tile = many_tiles(tmp_path, kind, template)
    run("seed", "-c", path, "-t", kind, "--mode", "transfer", "--transfer", "back", "-z", "0,18", "--quiet")
    assert stored(tmp_path, "back") == tile
    run("purge", "-c", path, "-t", kind, "-z", "5,18", "--yes")
    (tmp_path / "back.db").unlink()
    run("seed", "-c", path, "-t", kind, "--mode", "transfer", "--transfer", "back", "-z", "0,18", "--quiet")
    assert stored(tmp_path, "back") == {place: data for place, data in tile.items() if place[0] < 5}
    (tmp_path / "back.db").unlink()
    run("seed", "-c", path, "-t", f"{kind}-Google", "--mode", "transfer", "--transfer", "back", "-z", "0,18", "--quiet")
    assert stored(tmp_path, "back") == {(0, 0, 0): tile[0, 0, 0]}

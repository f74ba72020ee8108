"""A vector tile against a raster tile of the same data: the tiles of a level, each made and stored, alone and in metatiles.

Tiles are stored in memory where there is room for that: what a disk's file system needs for a new file is all of its own, and depends on what
others have just removed there. Clients take gzip, as all that show vector tiles do. Geometry
comes as plain binary: `auto` packs it where a busy machine makes the database look far away.
"""
import pathlib
import shutil

from common import frontends, load
from common.servers import cpu_seconds, make_folder, remove
from postgis import config
from postgis.data import EXTENT

LEVELS = (2, 3, 4, 5)
FORMATS = {"raster": ("PNG", "png"), "vector": ("vector", "mvt")}
METATILES = (1, 8)  # tiles a side
TURNS = 3
MEMORY = pathlib.Path("/dev/shm")


def configuration(folder, names, data, metatile=1):
    """Tilesets `name-raster` and `name-vector`, made in squares of so many tiles a side."""
    layers = ""
    for name in names:
        (folder / f"{name}.sld").write_text(config.sld(name))
        layers += f"""<source name="{name}" type="postgis"><layer name="{name}"><connection>{data.database.connection()}</connection><table>{name}</table><id>gid</id><transfer>binary</transfer>
          <style>{folder}/{name}.sld</style></layer></source>"""
        for kind, (form, _) in FORMATS.items():
            layers += f"""<tileset name="{name}-{kind}"><source>{name}</source><cache>disk</cache><grid>country</grid><format>{form}</format><metatile>{metatile} {metatile}</metatile>
              <metabuffer>0</metabuffer></tileset>"""
    (folder / "cache").mkdir()
    (folder / "cache").chmod(0o777)
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache>{config.grid()}
  <cache name="disk" type="disk"><base>{folder}/cache</base></cache><format name="vector" type="MVT"/>{layers}
  <service type="wmts" enabled="true"/><locker type="disk"><directory>{folder}/cache</directory></locker>
</mapcache>
""")
    return path


def paths(name, kind, level):
    """All tiles of a level that the country touches: its upper left corner is that of the grid but for the height."""
    side = max(EXTENT[2] - EXTENT[0], EXTENT[3] - EXTENT[1]) / 2 ** level
    top = EXTENT[1] + side * 2 ** level
    rows = range(int((top - EXTENT[3]) / side), 2 ** level)
    return [f"/mc/wmts/1.0.0/{name}-{kind}/default/country/{level}/{row}/{column}.{FORMATS[kind][1]}" for row in rows for column in range(2 ** level)]


def ask_all(server, database, wanted):
    """Processor seconds of server and database, and the answers, for tiles that are asked for by two clients."""
    before = server.cpu(), cpu_seconds(database.pids())
    answers = load.run(frontends.port_of(server), wanted, 2, len(wanted) // 2)
    return server.cpu() - before[0], cpu_seconds(database.pids()) - before[1], answers


def measure_level(server, folder, database, name, level):
    """Both kinds in turn, each time from an empty store."""
    found = {kind: {"cpu": 0.0, "database": 0.0, "answers": []} for kind in FORMATS}
    for _ in range(TURNS):
        for kind, sums in found.items():
            shutil.rmtree(folder / "cache" / f"{name}-{kind}", ignore_errors=True)
            cpu, of_database, answers = ask_all(server, database, paths(name, kind, level))
            sums["cpu"] += cpu
            sums["database"] += of_database
            sums["answers"] += answers
    return found


def record(sums):
    answers = sums["answers"]
    return {"tiles": len(answers) // TURNS, "errors": sum(a.status != 200 for a in answers), "cpu": sums["cpu"] * 1e3 / len(answers),
            "database": sums["database"] * 1e3 / len(answers), "bytes": sum(a.bytes for a in answers) / len(answers)}


def measure(names, data):
    """Processor milliseconds of server and database, and bytes, for a tile of each kind."""
    found = []
    for metatile in METATILES:
        folder = make_folder("bench-tiles", MEMORY if MEMORY.is_dir() else None)
        with frontends.module("tiles", configuration(folder, names, data, metatile)) as server:
            load.run(frontends.port_of(server), [path for name in names for kind in FORMATS for path in paths(name, kind, 0) + paths(name, kind, 1)], 1, 8)
            for name in names:
                for level in LEVELS:
                    for kind, sums in measure_level(server, folder, data.database, name, level).items():
                        found.append({"set": name, "level": level, "metatile": metatile, "kind": kind, **record(sums)})
        remove(server)
        shutil.rmtree(folder, ignore_errors=True)
    return found

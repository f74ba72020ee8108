"""A vector tile against a raster tile of the same data: the tiles of a level, each made and stored once."""
from common import doors, load
from common.servers import cpu_seconds, make_folder, remove
from postgis import config
from postgis.data import EXTENT

LEVELS = (2, 3, 4, 5)
FORMATS = {"raster": ("PNG", "png"), "vector": ("vector", "mvt")}


def configuration(folder, names, data, metatile=1):
    """Tilesets `name-raster` and `name-vector`, made in squares of so many tiles a side."""
    layers = ""
    for name in names:
        (folder / f"{name}.sld").write_text(config.sld(name))
        layers += f"""<source name="{name}" type="postgis"><layer name="{name}"><connection>{data.database.connection()}</connection><table>{name}</table><id>gid</id>
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


def measure(names, data):
    """Processor milliseconds of server and database, and bytes, for a tile of each kind."""
    folder, found = make_folder("bench-tiles"), []
    with doors.module("tiles", configuration(folder, names, data)) as server:
        load.run(doors.port_of(server), [path for name in names for kind in FORMATS for path in paths(name, kind, 0) + paths(name, kind, 1)], 1, 8)
        for name in names:
            for level in LEVELS:
                for kind in FORMATS:
                    wanted = paths(name, kind, level)
                    before = server.cpu(), cpu_seconds(data.database.pids())
                    answers = load.run(doors.port_of(server), wanted, 2, len(wanted) // 2)
                    after = server.cpu(), cpu_seconds(data.database.pids())
                    found.append({"set": name, "level": level, "kind": kind, "tiles": len(answers), "errors": sum(a.status != 200 for a in answers),
                                  "cpu": (after[0] - before[0]) * 1e3 / len(answers), "database": (after[1] - before[1]) * 1e3 / len(answers),
                                  "bytes": sum(a.bytes for a in answers) / len(answers)})
    remove(server)
    return found

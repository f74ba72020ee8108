"""The servers and renderers of vector tiles and of image tiles, and which of them are missing on this machine."""
import contextlib
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import urllib.request

from common import frontends, keeper, load
from common.servers import ROOT, Server, cpu_seconds, descendants, free_port, make_folder, remove
from postgres import USER
from vector import config, styles

HERE = pathlib.Path(__file__).resolve().parent
# Programs that no package of Debian has, and what they would be called.
PROGRAMS = {"martin": "martin", "tegola": "tegola", "pg_tileserv": "pg_tileserv"}
LIBRARIES = {"MapLibre Native": ("maplibre", "pymgl"), "Mapnik": ("mapnik", "mapnik")}
UNUSED = ("tegola", "pg_tileserv")  # neither has been had from a registry: nothing here starts them


def module_there(name):
    return importlib.util.find_spec(name) is not None


def missing():
    """Peers that cannot run here, each with why."""
    found = {name: "no program of that name in PATH" for name in ("martin",) if not shutil.which(PROGRAMS[name])}
    found.update({name: "no package registry that was tried has a build: not measured" for name in UNUSED})
    found.update({name: f"no Python module {module}" for name, (_, module) in LIBRARIES.items() if not module_there(module)})
    return found


def versions():
    """Of programs that are there."""
    said = subprocess.run(["martin", "--version"], capture_output=True, text=True, check=False).stdout.split() if shutil.which("martin") else []
    return {"martin": said[-1]} if said else {}


class TileServer:
    """A server that is asked by HTTP. `path`: of a tile of a table; `forget`: makes it forget the tiles of a table; `keeps`: whether it keeps any;
    `makes`: whether it makes a tile whenever that is wanted."""

    def __init__(self, name, kind, server, path, forget=None, keeps=True, status=(200, 204)):
        self.name, self.kind, self.server, self.path, self.forget, self.keeps, self.good = name, kind, server, path, forget, keeps, status
        self.port = frontends.port_of(server)
        self.makes = forget is not None or not keeps

    def prepare(self, table, _):
        """Before tiles are asked for that have to be made."""
        if self.forget:
            self.forget(table)

    def cpu(self):
        return self.server.cpu()

    def ask(self, table, tiles, times=1):
        """Bytes of each answer as they were sent, and how many went wrong; by one client on one connection."""
        answers = load.run(self.port, [self.path(table, tile) for tile in tiles] * times, 1, len(tiles) * times)
        return [answer.bytes for answer in answers], sum(answer.status not in self.good for answer in answers)

    def fetch(self, table, tile):
        """A tile as it is, not packed."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{self.path(table, tile)}", timeout=120) as answer:
            return answer.read()


class Renderer:
    """A library that draws image tiles in a process of its own for each table; `helpers`: servers that it asks for data."""

    kind, keeps, makes = "image", False, True
    AWAY = (14, 0, 0)  # a tile without features

    def __init__(self, name, folder, write_style, helpers=()):
        self.name, self.folder, self.write_style, self.helpers, self.processes = name, folder, write_style, helpers, {}
        self.log = folder / "renderer.log"
        self.version = "unknown"

    def _process(self, table):
        if table not in self.processes:
            style = self.folder / f"{table}-{self.name.split()[0]}.style"
            style.write_text(self.write_style(table))
            kind = next(kind for words, (kind, _) in LIBRARIES.items() if self.name.startswith(words))
            with open(self.log, "ab") as log:
                process = keeper.start([sys.executable, str(HERE / "renderer.py"), kind, str(style), str(config.EDGE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=log, text=True, env={"EGL_PLATFORM": "surfaceless", **os.environ})
            self.processes[table] = process
            self.version = process.stdout.readline().strip()
        return self.processes[table]

    def prepare(self, table, tiles):
        """A new process, which keeps nothing, has drawn a tile that does not count; its helpers have the tiles that it will need."""
        self.end(table)
        self.draw(table, self.AWAY)
        for helper in self.helpers:
            helper.ask(table, tiles)

    def end(self, table):
        if process := self.processes.pop(table, None):
            keeper.end(process)
            process.stdout.close()

    def cpu(self):
        return cpu_seconds([pid for process in self.processes.values() for pid in descendants(process.pid)]) + sum(helper.cpu() for helper in self.helpers)

    def draw(self, table, tile, path=""):
        process = self._process(table)
        try:
            process.stdin.write(json.dumps([*tile, str(path)]) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            pass
        said = process.stdout.readline().strip()
        if not said:
            raise RuntimeError(f"{self.name} has ended: {self.log.read_text(errors='replace')[-2000:]}")
        return said

    def ask(self, table, tiles, times=1):
        said = [self.draw(table, tile) for _ in range(times) for tile in tiles]
        return [int(word) for word in said if word.isdigit()], sum(not word.isdigit() for word in said)

    def close(self):
        for table in list(self.processes):
            self.end(table)


def least_server(world):
    """ST_AsMVT and what is needed to ask for it by HTTP."""
    program = ROOT / "build" / "bench" / "bin" / "asmvt"
    source = HERE / "asmvt.c"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        headers = subprocess.run(["pg_config", "--includedir"], capture_output=True, text=True, check=True).stdout.strip()
        load.compile_program(source, program, [f"-I{headers}"], ["-lpq", "-lpthread"])
    port = free_port()
    words = [word for name in world.sets for word in (name, config.statement(name))]
    return Server([str(program), str(port), world.database.connection(), *words], f"http://127.0.0.1:{port}", make_folder("bench-asmvt"))


def martin_server(world, cache):
    """With so many MB of cache: 0 for none."""
    folder, port = make_folder("bench-martin"), free_port()
    tables = "".join(f"    {name}:\n      schema: public\n      table: {name}\n      srid: 3857\n      geometry_column: geom\n      id_column: gid\n      extent: {config.EXTENT}\n"
                     f"      buffer: {config.BUFFER}\n      clip_geom: true\n      properties:\n" + "".join(f"        {column}: {'text' if column == 'name' else 'int4'}\n"
                                                                                                         for column in config.COLUMNS[name]) for name in world.sets)
    (folder / "martin.yaml").write_text(f"postgres:\n  connection_string: postgresql://{USER}@127.0.0.1:{world.database.port}/postgres\n  pool_size: 4\n"
                                        f"  auto_publish: false\n  tables:\n{tables}")
    return Server([shutil.which("martin"), "--listen-addresses", f"127.0.0.1:{port}", "--cache-size", str(cache), "--workers", "2", "--config", str(folder / "martin.yaml")],
                  f"http://127.0.0.1:{port}", folder)


def ours_of(server, folder):
    """Our tilesets, each as a server of its own name."""
    def forget(kind):
        return lambda table: shutil.rmtree(folder / "cache" / f"{table}-{kind}", ignore_errors=True)
    names = {"vector": "ours", "overviews": "ours, overviews", "budget": "ours, default budgets", "metatile": f"ours, metatiles {config.BLOCK}x{config.BLOCK}", "image": "ours, images"}
    return [TileServer(name, "image" if kind == "image" else "vector", server, lambda table, tile, kind=kind: config.path_of(table, kind, tile), forget(kind), status=(200,))
            for kind, name in names.items()]


def plain(table, tile):
    return f"/{table}/" + "/".join(map(str, tile))


def renderers(world, folder, tiles):
    """Those that are there. `tiles`: our vector tiles, which MapLibre draws from; Mapnik reads the tables."""
    def address(table):
        return f"http://127.0.0.1:{tiles.port}" + config.path_of(table, "vector", ("{z}", "{x}", "{y}"))
    if module_there("pymgl"):
        yield Renderer("MapLibre Native, of our stored vector tiles", folder, lambda table: styles.maplibre(table, address(table)), [tiles])
    if module_there("mapnik"):
        yield Renderer("Mapnik", folder, lambda table: styles.mapnik(table, world.database, world.box[table]))


@contextlib.contextmanager
def running(world, memory):
    """All peers that are there. Our tiles are stored in `memory` (a folder, or None): what a disk's file system needs for a new file is all of its own."""
    folder = make_folder("bench-vector", memory)
    with contextlib.ExitStack() as stack:
        def start(server):
            stack.callback(remove, server)
            return stack.enter_context(server)
        path = config.write(folder, world)
        own = ours_of(start(frontends.module("vector-ours", path)), folder)
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        found = own[:-1] + [TileServer("ST_AsMVT, the least server", "vector", start(least_server(world)), plain, keeps=False)]
        if shutil.which("martin"):
            for name, cache in (("martin, no cache", 0), ("martin, cache", 512)):
                found.append(TileServer(name, "vector", start(martin_server(world, cache)), plain, keeps=cache > 0))
        found.append(own[-1])
        for renderer in renderers(world, folder, own[0]):
            stack.callback(renderer.close)
            found.append(renderer)
        yield found, path

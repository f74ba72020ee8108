"""The source "mapserver": map files drawn by child processes, compared with what mapserv itself draws; and children that die, hang or lie."""
import concurrent.futures
import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import time

import mapserver
import numpy
import pytest
from conftest import GRID, fetch, free_port, wait_until
from drop_in import pixels
from lifecycle import HALF, box, stored, tile, tileset, write
from origin import Origin
from patience import patience
from postgres import PASSWORD, Postgres
from serving import Serving

PROGRAM = "mapcache-mapser"  # as the kernel cuts it
INLINE = """  LAYER NAME "inline" TYPE LINE STATUS ON FEATURE WKT "LINESTRING(-170 -60, 0 10, 160 70)" END PROJECTION "init=epsg:4326" END
    CLASS STYLE COLOR 0 0 255 WIDTH 5 END END END
END
"""
CHOSEN = """  LAYER NAME "chosen" TYPE POLYGON STATUS ON DATA "{folder}/regions.shp" PROJECTION "init=epsg:4326" END
    FILTER ("[name]" = "%region%")
    VALIDATION "region" "^(north|south)$" "default_region" "north" END
    CLASS STYLE COLOR 200 40 40 END END END
END
"""


def source(name, mapfile, more=""):
    return f'<source name="{name}" type="mapserver"><mapfile>{mapfile}</mapfile><retries>0</retries>{more}</source>'


def make_maps(home):
    """world.map has a transparent PNG, inline.map a feature in itself, plain.map no output format, choice.map a parameter."""
    home.mkdir(mode=0o755, exist_ok=True)
    mapserver.make_data(home)
    world = mapserver.MAPFILE.format(folder=home)
    plain = "\n".join(line for line in world.splitlines() if "OUTPUTFORMAT" not in line) + "\n"
    (home / "world.map").write_text(world)
    (home / "plain.map").write_text(plain.replace("IMAGECOLOR 0 0 0", "IMAGECOLOR 10 200 10"))
    (home / "choice.map").write_text(world[:world.index("  LAYER")] + CHOSEN.format(folder=home))
    (home / "inline.map").write_text(world[:world.index("  LAYER")] + INLINE)
    (home / "mapserver.conf").write_text('CONFIG\n  ENV\n    MS_MAP_PATTERN "."\n  END\nEND\n')
    for path in home.iterdir():
        path.chmod(0o644)
    return home


def children_of(*parents):
    """The processes of MapServer that these have started, those that are only to be reaped left out."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, rest = path.read_text().split("(", 1)[1].rsplit(")", 1)
            state, parent = rest.split()[:2]
            if name == PROGRAM and int(parent) in parents and state != "Z":
                found.append(int(path.parent.name))
    return found


def workers_of(web):
    """The processes of an httpd that serve, and its first one."""
    first = web.program.process.pid
    tasks = subprocess.run(["pgrep", "-P", str(first)], capture_output=True, text=True).stdout.split()
    return [first, *map(int, tasks)]


def drawing(web):
    return children_of(*workers_of(web))


class Maps:
    """Our httpd with sources of the map files; what mapserv draws of them."""

    def __init__(self, folder, shared_apache):
        self.folder, self.home = folder, make_maps(folder / "data")
        home = self.home
        degrees = tileset("degrees", "world").replace(f">{GRID}<", ">WGS84<")
        fine = tileset("fine", "regions", more="<density>2</density>").replace("<cache>disk<", "<cache>apart<")
        apart = f'<cache name="apart" type="disk"><base>{folder}/apart</base></cache>'
        choice = tileset("choice", "choice", more="""<dimensions><dimension type="regex" name="region" default="north">
            <regex>(?s)^.*$</regex></dimension></dimensions>""").replace("<cache>disk<", "<cache>apart<")
        inline = tileset("inline", "inline").replace(f">{GRID}</grid>", f">{GRID}</grid><grid>WGS84</grid>")
        config = write(folder, source("inline", home / "inline.map", "<layers>inline</layers><background>transparent</background>"), inline, source("world", home / "world.map"), source("regions", home / "world.map", "<layers> regions </layers>"),
                       source("plain", home / "plain.map"), source("clear", home / "plain.map", "<background>transparent</background>"),
                       source("choice", home / "choice.map"), source("nothing", home / "world.map", "<layers>nothing</layers>"),
                       *(tileset(name, name) for name in ("world", "regions", "plain", "clear", "nothing")), degrees, apart, fine, choice,
                       tileset("meta", "regions", metatile="4 4", more="<metabuffer>16</metabuffer>"), full_wms="forward")
        self.web = shared_apache("ours", f"MapCacheAlias /mc {config}\n")

    def direct(self, extent, layers="image,regions", width=256, height=256, srs="EPSG:3857", mapfile="world.map", more="TRANSPARENT=true"):
        bounds = ",".join(repr(number) for number in extent)
        query = (f"map={self.home}/{mapfile}&SERVICE=WMS&REQUEST=GetMap&VERSION=1.1.1&STYLES=&FORMAT=image/png&{more}&LAYERS={layers}"
                 f"&SRS={srs}&WIDTH={width}&HEIGHT={height}&BBOX={bounds}")
        done = subprocess.run([mapserver.MAPSERV, "-nh", f"QUERY_STRING={query}"], capture_output=True, timeout=patience(60),
                              env={**os.environ, "MAPSERVER_CONFIG_FILE": str(self.home / "mapserver.conf")})
        assert done.stdout.startswith(b"\x89PNG"), done.stdout[:500]
        return pixels(done.stdout)


@pytest.fixture(scope="module")
def maps(shared_folder, shared_apache):
    return Maps(shared_folder, shared_apache)


def shown(reply):
    assert reply.status == 200, reply.body
    return pixels(reply.body)


@pytest.mark.parametrize("z, x, y", [(0, 0, 0), (2, 1, 2), (4, 8, 7)])
def test_a_tile_is_what_mapserv_draws(maps, z, x, y):
    drawn = maps.direct(box(z, x, y))
    assert numpy.array_equal(shown(maps.web.get(tile("world", z, x, y))), drawn)
    assert len(numpy.unique(drawn.reshape(-1, 4), axis=0)) > 100


def test_tiles_in_degrees_are_what_mapserv_draws(maps):
    reply = maps.web.get("/mc/tms/1.0.0/degrees@WGS84/2/3/2.png")
    assert numpy.array_equal(shown(reply), maps.direct((-45, 0, 0, 45), srs="EPSG:4326"))


def test_one_map_file_is_drawn_in_two_crs_by_turns(maps):
    """A process that keeps the map file open has it in the CRS and with the pixels of each map, square or not, not with those of the first one."""
    replies = {}
    for i in range(32):
        srs, unit = (("EPSG:3857", HALF / 180), ("EPSG:4326", 1))["01101001100101101001011001101001"[i] == "1"]  # no rhythm that processes by turns might have, too
        size = ((256, 256), (512, 280))[i // 4 % 2]
        extent = tuple(number * unit for number in (i - 60, i - 35, i - 20, i + 5))
        replies[srs, extent, size] = maps.web.get(f"/mc?SERVICE=WMS&REQUEST=GetMap&VERSION=1.1.1&STYLES=&FORMAT=image/png&TRANSPARENT=true&LAYERS=inline&SRS={srs}"
                                                  f"&WIDTH={size[0]}&HEIGHT={size[1]}&BBOX={','.join(map(repr, extent))}")
    for (srs, extent, size), reply in replies.items():
        drawn = maps.direct(extent, "inline", *size, srs=srs, mapfile="inline.map")
        assert (drawn[..., 3] > 0).sum() > 500 and abs(shown(reply).astype(int) - drawn.astype(int)).mean() < 0.2, (srs, extent, size)


def test_pixels_that_are_not_square_are_as_mapserv_draws_them(maps):
    reply = maps.web.get(f"/mc?SERVICE=WMS&REQUEST=GetMap&VERSION=1.1.1&STYLES=&FORMAT=image/png&TRANSPARENT=true&LAYERS=regions"
                         f"&SRS=EPSG:3857&WIDTH=300&HEIGHT=200&BBOX=-{HALF},0,0,{HALF}")
    drawn = maps.direct((-HALF, 0, 0, HALF), "regions", 300, 200)
    different = numpy.abs(shown(reply).astype(int) - drawn).max(axis=2) > 8
    assert different.mean() < 0.001


def test_a_map_is_the_same_after_one_whose_pixels_are_not_square(maps):
    square = (f"/mc?SERVICE=WMS&REQUEST=GetMap&VERSION=1.1.1&STYLES=&FORMAT=image/png&TRANSPARENT=true&LAYERS=regions"
              f"&SRS=EPSG:3857&WIDTH=300&HEIGHT=300&BBOX=-{HALF},-{HALF},{HALF},{HALF}")
    flat = square.replace("HEIGHT=300", "HEIGHT=200")
    before = shown(maps.web.get(square))
    for _ in range(8):  # whichever of the children draws
        shown(maps.web.get(flat))
        assert numpy.array_equal(shown(maps.web.get(square)), before)


def test_a_metatile_has_no_seams_and_only_the_layers_that_were_chosen(maps):
    whole = maps.direct(box(2, 0, 0, 4), "regions", 1024, 1024)
    tiles = numpy.vstack([numpy.hstack([shown(maps.web.get(tile("meta", 2, x, y))) for x in range(4)]) for y in (3, 2, 1, 0)])
    assert (numpy.abs(whole.astype(int) - tiles).max(axis=2) > 8).mean() < 0.001
    assert len(stored(maps.folder, "meta")) == 16


def test_what_lies_under_the_map_is_what_the_map_file_or_the_key_says(maps):
    assert (maps.direct(box(0, 0, 0), more="TRANSPARENT=false", mapfile="plain.map")[..., 3] == 255).all()
    sky = tile("plain", 0, 0, 0), tile("clear", 0, 0, 0), tile("regions", 0, 0, 0)
    plain, clear, regions = (shown(maps.web.get(path)) for path in sky)
    assert (plain[..., 3] == 255).all() and (regions[..., 3] == 0).any()
    assert numpy.array_equal(plain, maps.direct(box(0, 0, 0), more="TRANSPARENT=false", mapfile="plain.map"))
    assert numpy.array_equal(clear, maps.direct(box(0, 0, 0), mapfile="plain.map"))


def yellow(image):
    return int(((image[..., 0] > 200) & (image[..., 1] > 200)).sum())


def test_lines_for_fine_screens_are_as_much_wider(maps):
    plain, fine = (shown(maps.web.get(f"/mc/gmaps/fine/1/1/1{density}.png")) for density in ("", "@2x"))
    assert plain.shape == (256, 256, 4) and fine.shape == (512, 512, 4)
    assert yellow(fine) == pytest.approx(4 * yellow(plain), rel=0.1)


def map_of(web, layer, more):
    return web.get(f"/mc?SERVICE=WMS&REQUEST=GetMap&VERSION=1.1.1&STYLES=&FORMAT=image/png&LAYERS={layer}&SRS=EPSG:3857"
                   f"&WIDTH=256&HEIGHT=256&BBOX=-{HALF},-{HALF},{HALF},{HALF}{more}")


def test_values_of_dimensions_reach_the_map_file_if_it_allows_them(maps):
    north, south = (shown(map_of(maps.web, "choice", f"&DIM_REGION={name}"))[..., 3] > 0 for name in ("north", "south"))
    assert north[:128].any() and not north[160:].any() and south[160:].any() and not (north & south).all()
    for value in ("west", "north%22%20or%201%3D1%20or%20%22", "%25region%25", "x" * 200):
        reply = map_of(maps.web, "choice", f"&DIM_REGION={value}")
        assert reply.status == 400 and b"does not allow" in reply.body, (value, reply.status, reply.body)
        assert str(maps.home).encode() not in reply.body
    assert map_of(maps.web, "choice", "&DIM_REGION=north%0A").status == 400


def test_a_layer_that_the_map_file_lacks_is_a_clear_error(maps):
    reply = maps.web.get(tile("nothing", 0, 0, 0))
    assert reply.status == 500 and b"map file" in reply.body and str(maps.home).encode() not in reply.body
    assert 'no layer or group "nothing"' in maps.web.log() and stored(maps.folder, "nothing") == []


def test_feature_info_is_refused(maps):
    reply = maps.web.get(f"/mc?SERVICE=WMS&REQUEST=GetFeatureInfo&VERSION=1.1.1&LAYERS=world&QUERY_LAYERS=world&STYLES=&SRS=EPSG:3857"
                         f"&BBOX=-{HALF},-{HALF},{HALF},{HALF}&WIDTH=256&HEIGHT=256&X=9&Y=9&INFO_FORMAT=text/plain")
    assert 400 <= reply.status < 500


@pytest.fixture
def site_of(folder, apache):
    """site_of(source...): an httpd with a tileset for each source, and no more than one process that serves."""

    def start(*sources, keys=""):
        names = [part.split('"')[1] for part in sources]
        config = write(folder, *sources, *(tileset(name, name) for name in names), keys)
        return apache(f"ServerLimit 1\nThreadLimit 256\nThreadsPerChild 256\nMaxRequestWorkers 256\nMapCacheAlias /mc {config}\n")

    return start


def test_a_changed_map_file_is_drawn_anew_and_so_is_an_included_one(folder, site_of):
    home = make_maps(folder / "data")
    style = home / "style.map"
    style.write_text("STYLE COLOR 40 120 220 END\n")
    text = (home / "world.map").read_text().replace("CLASS STYLE COLOR 40 120 220 OUTLINECOLOR 255 255 0 WIDTH 2 END", 'CLASS INCLUDE "style.map"')
    text = text.replace("  LAYER", '  WEB METADATA "note" "a quote: \\" and no more" END END\n  LAYER', 1)
    (home / "world.map").write_text(text)
    web = site_of(source("world", home / "world.map", "<layers>regions</layers><processes>1</processes>"))

    def color(z, x, y):
        return tuple(shown(web.get(tile("world", z, x, y)))[128, 128])

    assert color(3, 2, 5) == (40, 120, 220, 255)
    before = drawing(web)
    style.write_text("STYLE COLOR 220 20 20 END\n")
    assert color(3, 3, 5) == (220, 20, 20, 255)
    (home / "world.map").write_text(text.replace('INCLUDE "style.map"', "STYLE COLOR 1 2 3 END"))
    assert color(4, 5, 10) == (1, 2, 3, 255)
    assert len(before) == 1 and drawing(web) == before


def test_a_child_that_is_killed_costs_no_map(folder, site_of):
    home = make_maps(folder / "data")
    web = site_of(source("world", home / "world.map", "<processes>1</processes>"))
    assert web.get(tile("world", 0, 0, 0)).status == 200
    one, = drawing(web)
    os.kill(one, signal.SIGKILL)  # while it waits: nobody notices
    assert web.get(tile("world", 1, 0, 0)).status == 200
    two, = drawing(web)
    assert two != one
    os.kill(two, signal.SIGSTOP)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        reply = pool.submit(web.get, tile("world", 2, 1, 1))
        wait_until(lambda: pending_bytes(two), "the child has been asked")
        os.kill(two, signal.SIGKILL)  # in the middle of a map
        assert reply.result(patience(60)).status == 200  # by another one
    assert web.get(tile("world", 2, 2, 2)).status == 200


def pending_bytes(child):
    """Whether something waits at the standard input of a process."""
    inode = os.readlink(f"/proc/{child}/fd/0").strip("socket:[]")
    lines = subprocess.run(["ss", "-xanH"], capture_output=True, text=True).stdout.splitlines()
    return any(f" {inode} " in f"{line} " and int(line.split()[2]) > 0 for line in lines)


def test_a_child_that_hangs_is_killed_at_the_deadline(folder, site_of):
    home = make_maps(folder / "data")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hanging_map(home, silent)
        web = site_of(source("hangs", home / "hangs.map", "<deadline>1.5</deadline><processes>2</processes>"),
                      source("world", home / "world.map", "<processes>2</processes>"), keys='<service type="metrics" enabled="true"/>')
        with concurrent.futures.ThreadPoolExecutor() as pool:
            hanging = pool.submit(web.get, tile("hangs", 0, 0, 0))
            one, = wait_until(lambda: drawing(web), "a child has begun")
            assert web.get(tile("world", 0, 0, 0)).status == 200  # the other child draws meanwhile
            assert hanging.result(patience(60)).status == 504
        wait_until(lambda: one not in drawing(web), "the child is gone")
        counted = web.get("/mc/metrics").body
        assert b"mapserver_lost_total 1" in counted and b"mapserver_maps_total 1" in counted and b"mapserver_started_total 2" in counted
        assert web.get(tile("world", 1, 0, 0)).status == 200 and stored(folder, "hangs") == []


def test_two_hundred_maps_at_a_time_have_no_more_children_than_allowed(folder, site_of):
    home = make_maps(folder / "data")
    web = site_of(source("world", home / "world.map", "<processes>3</processes>"), keys="<max_slow_requests>400</max_slow_requests>")
    most = 0
    with concurrent.futures.ThreadPoolExecutor(200) as pool:
        replies = [pool.submit(web.get, tile("world", 4, at % 16, at // 16), timeout=patience(120)) for at in range(200)]
        while not all(reply.done() for reply in replies):
            most = max(most, len(drawing(web)))
            time.sleep(0.01)
    assert {reply.result().status for reply in replies} == {200}, web.log()[-3000:]
    assert 1 <= most <= 3


def test_no_child_is_left_behind_when_httpd_restarts_or_ends(folder, site_of):
    home = make_maps(folder / "data")
    web = site_of(source("world", home / "world.map"))
    assert web.get(tile("world", 0, 0, 0)).status == 200
    before = drawing(web)
    assert before
    subprocess.run(["kill", "-HUP", str(web.program.process.pid)], check=True)
    wait_until(lambda: not any(map(is_there, before)), "the children of the old process are gone")
    wait_until(lambda: fetch(web.port, tile("world", 1, 0, 0)).status == 200, "the new one draws")
    after = drawing(web)
    assert after
    web.program.stop()
    wait_until(lambda: not any(map(is_there, after)), "no child is left")


def is_there(pid):
    """Those that have ended, and that nobody has reaped in this container, are not."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def hanging_map(home, silent):
    """A map file whose database accepts connections and never answers."""
    text = (home / "world.map").read_text().replace(
        f'DATA "{home}/regions.shp"', f'CONNECTIONTYPE POSTGIS CONNECTION "host=127.0.0.1 port={silent.getsockname()[1]} dbname=x" '
        'DATA "geom from x using unique id using srid=4326"')
    (home / "hangs.map").write_text(text)
    (home / "hangs.map").chmod(0o644)
    return home / "hangs.map"


def test_a_child_ends_with_a_server_that_is_killed_in_the_middle_of_a_map(build, folder, modules_environment):
    home = make_maps(folder / "data")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = write(folder, source("world", hanging_map(home, silent)), tileset("world", "world"))
        command = [build / "bin/mapcache", "seed", "-c", config, "-t", "world", "-g", GRID, "-z", "0,0", "-n", "1"]
        seeder = subprocess.Popen(command, env={**os.environ, **modules_environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            silent.settimeout(patience(60))
            connection, _ = silent.accept()  # now the child waits for the database
            child, = children_of(seeder.pid)
        finally:
            seeder.kill()
            seeder.wait()
        wait_until(lambda: not is_there(child), "the child is gone")
        connection.close()


TABLE = """CREATE EXTENSION postgis; CREATE TABLE areas (gid serial PRIMARY KEY, geom geometry(Polygon, 3857));
    INSERT INTO areas (geom) SELECT ST_MakeEnvelope(x * 4e6, y * 4e6, x * 4e6 + 3e6, y * 4e6 + 2e6, 3857)
    FROM generate_series(-4, 3) AS x, generate_series(-4, 3) AS y"""


def test_maps_of_a_database_and_without_it(folder, site_of):
    with Postgres() as database:
        database.sql(TABLE)
        home = make_maps(folder / "data")
        world = (home / "world.map").read_text()
        (home / "areas.map").write_text(world[:world.index("  LAYER")] + f"""  LAYER NAME "areas" TYPE POLYGON STATUS ON
            CONNECTIONTYPE POSTGIS CONNECTION "{database.connection()}" PROCESSING "CLOSE_CONNECTION=DEFER"
            DATA "geom from areas using unique gid using srid=3857" PROJECTION "init=epsg:3857" END
            CLASS STYLE COLOR 200 40 40 END END END\nEND\n""")
        (home / "areas.map").chmod(0o644)
        web = site_of(source("areas", home / "areas.map", "<processes>1</processes>"))
        image = shown(web.get(tile("areas", 0, 0, 0)))
        assert tuple(image[128 - 8, 128 + 10]) == (200, 40, 40, 255) and image[128 - 18, 128 + 10, 3] == 0
        database.stop()
        reply = web.get(tile("areas", 1, 0, 0))
        assert reply.status == 502 and b"127.0.0.1" not in reply.body and PASSWORD.encode() not in reply.body
        assert "MapServer says" in web.log() and PASSWORD not in web.log() and len(stored(folder, "areas")) == 1
        database.start()
        wait_until(lambda: fetch(web.port, tile("areas", 1, 0, 0)).status == 200, "maps are drawn again")


def check(build, config):
    return subprocess.run([build / "bin/mapcache", "check", config], capture_output=True, text=True, timeout=patience(90))


def test_check_says_what_is_wrong_in_a_map_file(build, folder):
    home = make_maps(folder / "data")
    (home / "broken.map").write_text('MAP\n  NAME "x"\n  LAYER\n    TYPO 5\n  END\nEND\n')
    good = write(folder, source("world", home / "world.map", "<layers>image</layers>"), tileset("world", "world"))
    done = check(build, good)
    assert done.returncode == 0, done.stdout + done.stderr
    for mapfile, more, said in (("broken.map", "", "(line 4)"), ("none.map", "", "No such file"), ("image.tif", "", "MapServer says"),
                                ("world.map", "<layers>image,nix</layers>", 'no layer or group "nix"')):
        config = write(folder, source("bad", home / mapfile, more), tileset("bad", "bad"))
        done = check(build, config)
        line = next(number for number, text in enumerate(config.read_text().splitlines(), 1) if "<mapfile>" in text)
        assert done.returncode == 1 and said in done.stdout + done.stderr, done.stdout + done.stderr
        assert f"{config}:{line}:" in done.stdout + done.stderr
    os.mkfifo(home / "fifo.map")
    done = check(build, write(folder, source("bad", home / "fifo.map"), tileset("bad", "bad")))
    assert done.returncode == 2 and "by the deadline" in done.stdout + done.stderr


def test_one_command_shows_a_map_file(build, folder):
    home = make_maps(folder / "data")
    with Serving(build, home / "world.map", port=free_port()) as serving:
        layer, = serving.told["layers"]
        assert layer["name"] == "world" and layer["box"] == pytest.approx([-180, -90, 180, 90], abs=5)
        image = shown(serving.get(f"/tms/1.0.0/world@{GRID}/1/0/1.png"))
        assert (image[..., 3] == 255).all() and ((image[..., :3] == (40, 120, 220)).all(axis=2)).any()
    (home / "no.map").write_text("LAYER END\n")
    done = subprocess.run([build / "bin/mapcache", "serve", home / "no.map"], capture_output=True, text=True, timeout=patience(60))
    assert done.returncode == 1 and "begin with MAP" in done.stdout + done.stderr
    folder_of_maps = folder / "maps"
    folder_of_maps.mkdir()
    (home / "world.map").rename(folder_of_maps / "world.map")
    done = subprocess.run([build / "bin/mapcache", "serve", folder_of_maps], capture_output=True, text=True, timeout=patience(60))
    assert done.returncode == 1  # others' map files run what they like: they are named, or not served


def test_a_map_file_that_breaks_later_is_an_error_of_its_tiles(folder, site_of):
    home = make_maps(folder / "data")
    web = site_of(source("world", home / "world.map"))
    assert web.get(tile("world", 0, 0, 0)).status == 200
    (home / "world.map").write_text("MAP NAME 'x' LAYER\n TYPO END END")
    reply = web.get(tile("world", 1, 0, 0))
    assert reply.status == 500 and str(home).encode() not in reply.body and b"TYPO" not in reply.body
    assert "near (TYPO):(line 2)" in web.log() and web.get(tile("world", 0, 0, 0)).status == 200


def seed(build, config, environment, *options):
    return subprocess.run([build / "bin/mapcache", "seed", "-c", config, "-t", "world", "-g", GRID, *options], capture_output=True, text=True,
                          env={**os.environ, **environment}, timeout=patience(120))


def test_the_seeder_draws_map_files(build, folder, modules_environment):
    home = make_maps(folder / "data")
    config = write(folder, source("world", home / "world.map"), tileset("world", "world"))
    done = seed(build, config, modules_environment, "-z", "0,2", "-n", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(stored(folder, "world")) == 21


FALSE = {
    "ends": "exit 3",
    "garbles": "head -c 1000 /dev/zero >&0; sleep 60",
    "promises": r"printf '\001sc' >&0; sleep 60",
    "floods": "head -c 300000 /dev/zero >&2; exit 1",
}


@pytest.mark.parametrize("name", FALSE)
def test_a_program_that_is_not_what_it_should_be_is_an_error(build, folder, modules_environment, name):
    home = make_maps(folder / "data")
    modules = folder / "modules"
    modules.mkdir()
    for path in (build / "modules").glob("*.so"):
        (modules / path.name).symlink_to(path)
    false = modules / "mapcache-mapserver"
    false.write_text(f"#!/bin/sh\n{FALSE[name]}\n")
    false.chmod(0o755)
    config = write(folder, source("world", home / "world.map", "<deadline>3</deadline>"), tileset("world", "world"))
    done = seed(build, config, {**modules_environment, "MAPCACHE_MODULES": str(modules)}, "-z", "0,0", "-n", "1")
    said = done.stdout + done.stderr
    assert done.returncode != 0 and "MapServer" in said and len(said) < 20000, said[:3000]
    assert stored(folder, "world") == []


def test_without_a_library_the_error_names_it(build, folder, modules_environment):
    """A program that the loader cannot start: its library was there when it was linked, and is not any more."""
    home = make_maps(folder / "data")
    modules = folder / "modules"
    modules.mkdir()
    for path in (build / "modules").glob("*.so"):
        (modules / path.name).symlink_to(path)
    (folder / "a.c").write_text("int answer(void) { return 1; }")
    (folder / "b.c").write_text("int answer(void); int main(void) { return answer(); }")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "libgone.so", "a.c"], cwd=folder, check=True)
    subprocess.run(["cc", "-o", modules / "mapcache-mapserver", "b.c", "libgone.so"], cwd=folder, check=True)
    (folder / "libgone.so").unlink()
    config = write(folder, source("world", home / "world.map", "<deadline>30</deadline>"), tileset("world", "world"))
    environment = {**modules_environment, "MAPCACHE_MODULES": str(modules)}
    checked = subprocess.run([build / "bin/mapcache", "check", config], capture_output=True, text=True, timeout=patience(60),
                             env={**os.environ, **environment}, check=False)
    done = seed(build, config, environment, "-z", "0,0", "-n", "1")
    for said in checked.stdout, done.stdout + done.stderr:
        assert "a library that MapServer needs is not installed" in said and "libgone.so" in said, said
    assert done.returncode != 0 and stored(folder, "world") == []


@pytest.mark.skipif(pathlib.Path("/usr/lib/cgi-bin/mapserv").exists(), reason="mapserv is found whatever PATH says")
def test_without_the_program_the_error_says_so(build, folder, modules_environment):
    home = make_maps(folder / "data")
    modules = folder / "modules"
    modules.mkdir()
    config = write(folder, source("world", home / "world.map"), tileset("world", "world"))
    link = folder / "lib"
    link.mkdir()
    (link / "libmapcache.so.2").symlink_to(build / "lib/libmapcache.so.2")
    done = seed(build, config, {"MAPCACHE_MODULES": str(modules), "LD_LIBRARY_PATH": str(link), "PATH": str(folder)}, "-z", "0,0", "-n", "1")
    assert done.returncode != 0 and "mapcache-mapserver" in done.stdout + done.stderr, done.stdout + done.stderr


def test_a_map_without_its_cascaded_layer_is_an_error_and_not_stored(folder, site_of):
    """MapServer calls a map with a hole a success, where the WMS of a layer has failed."""
    home = make_maps(folder / "data")
    with Origin() as origin:
        good, *bad = mapserver.make_cascades(home, origin)
        web = site_of(*(source(name, home / f"{name}.map", "<processes>1</processes>") for name in (good, *bad)))
        for name in bad:
            reply = web.get(tile(name, 1, 0, 0))
            assert reply.status == 502 and stored(folder, name) == [], (name, reply.status)
        assert "MapServer says" in web.log() and "WMS" in web.log()
        image = shown(web.get(tile(good, 1, 0, 0)))
        assert (image == (255, 0, 0, 255)).all() and len(stored(folder, good)) == 1

"""The source "mapserver" by mapserv, MapServer's CGI program: the same maps as by its library; programs that hang, flood and lie."""
import os
import pathlib
import subprocess

import mapserver
import numpy
import pytest
from conftest import GRID, wait_until
from drop_in import pixels
from lifecycle import box, stored, tileset, write
from origin import Origin
from patience import patience
from test_mapserver_source import make_maps, source

BY_CGI = f"<mapserv>{mapserver.MAPSERV}</mapserv>"


class Site:
    """Configurations over one map file, and the commands on them."""

    def __init__(self, build, folder, environment):
        self.build, self.folder, self.home = build, folder, make_maps(folder / "data")
        self.environment = {**os.environ, **environment, "MAPSERVER_CONFIG_FILE": str(self.home / "mapserver.conf")}

    def run(self, *words):
        return subprocess.run([self.build / "bin/mapcache", *words], capture_output=True, text=True, errors="replace", env=self.environment, timeout=patience(120))

    def seed(self, name, levels="0,2", expected=0):
        done = self.run("seed", "-c", self.folder / "mapcache.xml", "-t", name, "-g", GRID, "-z", levels, "-n", "2")
        assert (done.returncode == 0) == (expected == 0), done.stdout + done.stderr
        return done.stdout + done.stderr

    def drawn(self, name, z, x, y):
        return pixels((self.folder / f"tiles/{name}/{z}/{x}/{y}.png").read_bytes())

    def script(self, text):
        path = self.folder / "mapserv"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return f"<mapserv>{path}</mapserv>"


@pytest.fixture
def site(build, folder, modules_environment):
    return Site(build, folder, modules_environment)


def test_maps_are_those_of_the_library(site):
    grounds = {"as": "", "clear": "<background>transparent</background>", "opaque": "<background>opaque</background>"}
    sources, tilesets = [], []
    for ground, key in grounds.items():
        for by, more in ("cgi", BY_CGI), ("library", ""):
            for file in "world", "plain":
                name = f"{ground}-{by}-{file}"
                sources.append(source(name, site.home / f"{file}.map", key + more))
                tilesets.append(tileset(name, name, metatile="2 2"))
    sources += [source("regions-cgi", site.home / "world.map", "<layers>regions</layers>" + BY_CGI), source("regions-library", site.home / "world.map", "<layers>regions</layers>")]
    tilesets += [tileset(name, name) for name in ("regions-cgi", "regions-library")]
    write(site.folder, *sources, *tilesets)
    pairs = [(f"{ground}-cgi-{file}", f"{ground}-library-{file}") for ground in grounds for file in ("world", "plain")] + [("regions-cgi", "regions-library")]
    for cgi, library in pairs:
        site.seed(cgi, "1,1")
        site.seed(library, "1,1")
        assert len(stored(site.folder, cgi)) == 4
        for x in range(2):
            for y in range(2):
                ours, theirs = (site.drawn(name, 1, x, y).astype(int) for name in (cgi, library))
                solid = theirs[:, :, 3] % 255 == 0  # colours of others are rounded once more on their way through mapserv's PNG
                assert numpy.array_equal(ours[:, :, 3], theirs[:, :, 3]) and numpy.array_equal(ours[solid], theirs[solid]), (cgi, x, y)
                assert abs(ours - theirs).max(initial=0) <= 8
    assert len(numpy.unique(site.drawn("as-cgi-world", 1, 0, 0).reshape(-1, 4), axis=0)) > 100


def test_layers_that_are_off_are_not_drawn(site):
    """Also where INCLUDE names the file that says so, and where classes and comments have the same words."""
    text = (site.home / "world.map").read_text()
    (site.home / "regions.inc").write_text(text[text.index('  LAYER NAME "regions"'):].rsplit("END", 1)[0].replace("STATUS ON", "status off # STATUS ON\n   ")
                                           .replace("CLASS STYLE", 'CLASS NAME "STATUS ON" STATUS ON STYLE'))
    (site.home / "world.map").write_text(text[:text.index('  LAYER NAME "regions"')] + 'INCLUDE "regions.inc"\nEND\n')
    write(site.folder, source("world", site.home / "world.map", BY_CGI), source("image", site.home / "world.map", "<layers>image</layers>" + BY_CGI),
          source("both", site.home / "world.map", "<layers>regions, image</layers>" + BY_CGI), *(tileset(name, name) for name in ("world", "image", "both")))
    for name in "world", "image", "both":
        site.seed(name, "0,0")
    assert numpy.array_equal(site.drawn("world", 0, 0, 0), site.drawn("image", 0, 0, 0))
    assert not numpy.array_equal(site.drawn("world", 0, 0, 0), site.drawn("both", 0, 0, 0))


def test_without_the_library_mapserv_draws(site):
    modules = site.folder / "modules"
    modules.mkdir()
    for path in (site.build / "modules").glob("*.so"):
        (modules / path.name).symlink_to(path)
    write(site.folder, source("world", site.home / "world.map"), tileset("world", "world"))
    by_library = site.run("check", site.folder / "mapcache.xml")
    (modules / "libmapcache.so.2").symlink_to(site.build / "lib/libmapcache.so.2")
    site.environment |= {"MAPCACHE_MODULES": str(modules), "LD_LIBRARY_PATH": str(modules)}
    checked = site.run("check", site.folder / "mapcache.xml")
    assert "mapserv" not in by_library.stdout and checked.returncode == by_library.returncode
    assert f'source "world": drawn by "{mapserver.MAPSERV}", one process for each map' in checked.stdout, checked.stdout
    site.seed("world", "0,1")
    assert len(stored(site.folder, "world")) == 5
    assert site.drawn("world", 1, 0, 0).shape == (256, 256, 4) and box(1, 0, 0)


BAD = {  # what the program does, and what is said of it
    "hangs": ("exec sleep 600", "has not drawn the map in time"),
    "hangs in the middle": (r"printf 'Content-Type: image/png\r\n\r\n\211PNG'; exec sleep 600", "has not drawn the map in time"),
    "floods": ("printf 'Content-Type: image/png\\n\\n\\211PNG'; exec cat /dev/zero", "there is no room for what mapserv says"),
    "complains": (r"printf 'Content-Type: text/html\r\n\r\n<h1>out of <b>order</b></h1>'; exit 1", "mapserv says: out of order"),
    "is silent": ("exit 3", "mapserv says: nothing"),
    "is no image": (r"printf 'Content-Type: image/png\r\n\r\n\211PNGgarbage'", 'source "world"'),
    "is killed": ("kill -9 $$", "mapserv says: nothing"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_program_that_does_not_draw_is_an_error(site, name):
    script, said = BAD[name]
    mark = site.folder / "pid"
    write(site.folder, source("world", site.home / "world.map", "<deadline>2</deadline>" + site.script(f"echo $$ >>{mark}\n{script}")), tileset("world", "world"))
    assert said in site.seed("world", "0,0", expected=1)
    assert stored(site.folder, "world") == []
    for pid in mark.read_text().split():
        wait_until(lambda number=pid: not pathlib.Path(f"/proc/{number}").exists(), "the program is gone")


CHECKED = {  # what is written in place of what, and what check says in which exit status
    "is all right": ("", "", 'drawn by "', 0),
    "is broken": ("TYPE RASTER", "TYPE MOSAIC", "Parsing error near", 1),
    "is no WMS": ('"wms_enable_request" "*"', '"wms_enable_request" ""', "mapserv says:", 1),
    "has a layer that is none of the WMS": ('"wms_title" "image"', '"wms_title" "image" "wms_enable_request" "!*"', 'does not offer the layer "image" by WMS', 1),
}


@pytest.mark.parametrize("name", CHECKED)
def test_what_check_says_of_a_map_file_that(site, name):
    """Before the first map: mapserv reads it."""
    old, new, said, status = CHECKED[name]
    (site.home / "world.map").write_text((site.home / "world.map").read_text().replace(old, new, 1))
    write(site.folder, source("world", site.home / "world.map", BY_CGI), tileset("world", "world"))
    checked = site.run("check", site.folder / "mapcache.xml")
    assert checked.returncode == status and said in checked.stdout, checked.stdout


def test_what_check_says_of_a_program_without_its_own_configuration(site):
    """That may be another one in the environment of the server."""
    write(site.folder, source("world", site.home / "world.map", BY_CGI), tileset("world", "world"))
    site.environment |= {"MAPSERVER_CONFIG_FILE": str(site.folder / "none.conf")}
    checked = site.run("check", site.folder / "mapcache.xml")
    assert checked.returncode == 2 and "warning" in checked.stdout and "mapserv lacks its configuration file" in checked.stdout, checked.stdout


def test_what_check_says(site):
    for more, said, status in (("<mapserv>/nowhere/mapserv</mapserv>", 'the program "/nowhere/mapserv" cannot be run', 1),
                               (BY_CGI + "<layers>nothing</layers>", "has none of the <layers>", 1),
                               (["echo; echo out of order"], "mapserv says: out of order", 1), (["exec sleep 600"], "mapserv has not", 2)):
        write(site.folder, source("world", site.home / "world.map", more if isinstance(more, str) else site.script(*more)), tileset("world", "world"))
        checked = site.run("check", site.folder / "mapcache.xml")
        assert checked.returncode == status and said in checked.stdout, checked.stdout


def test_values_are_never_drawn_as_others(site):
    """mapserv draws the default where the map file does not allow a value."""
    dimension = '<dimensions><dimension type="values" name="region" default="north"><value>north</value><value>east</value></dimension></dimensions>'
    write(site.folder, source("world", site.home / "choice.map", BY_CGI), tileset("world", "world", more=dimension))
    checked = site.run("check", site.folder / "mapcache.xml")
    assert checked.returncode == 2 and 'tileset "world" has dimensions, which its source "world" refuses' in checked.stdout, checked.stdout
    assert "dimensions need the program" in site.seed("world", "0,0", expected=1)
    assert stored(site.folder, "world") == []


def test_a_map_without_its_cascaded_layer_is_an_error_and_not_stored(site):
    """mapserv sends the map with a hole; that it has one is said in its log alone."""
    with Origin() as origin:
        good, *bad = mapserver.make_cascades(site.home, origin)
        write(site.folder, *(source(name, site.home / f"{name}.map", BY_CGI) for name in (good, *bad)), *(tileset(name, name) for name in (good, *bad)))
        for name in bad:
            assert "WMS" in site.seed(name, "0,0", expected=1)
            assert stored(site.folder, name) == []
        site.seed(good, "0,0")
        assert (site.drawn(good, 0, 0, 0) == (255, 0, 0, 255)).all()

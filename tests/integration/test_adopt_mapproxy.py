"""`mapcache adopt mapproxy.yaml`: configurations of many shapes, and the stored tiles of the real MapProxy."""
import os
import pathlib
import re
import stat
import subprocess
import sys
from xml.etree import ElementTree

import pytest
import yaml
from adopting import CONFIGURATIONS, PROGRAM, adopt, adopted, compare_notes, requests
from conftest import ROOT
from origin import Origin
from patience import patience

FILES = sorted((CONFIGURATIONS / "mapproxy").glob("*.yaml"))
MAPPROXY = ROOT / "build" / "mapproxy"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_configurations(file, folder):
    """Each is written, is clean for `mapcache check`, and what is not taken over is named with its line."""
    (folder / "lev").mkdir()
    config, notes = adopted(folder, file)
    compare_notes(notes, file, *sorted((file.parent / "parts").glob("*.yaml") if file.stem == "based" else []))
    text = config.read_text()
    for note in notes:
        assert f"{note['file']}:{note['line']}:".replace("--", "__") in text
    assert ElementTree.parse(config).getroot().find("tileset") is not None


def of(config, path):
    return ElementTree.parse(config).getroot().find(path)


def test_there_are_ten():
    assert len(FILES) >= 10


def test_grids(folder):
    """Resolutions and boxes are those that MapProxy's own code makes of the same file."""
    file = CONFIGURATIONS / "mapproxy" / "grids.yaml"
    config, _ = adopted(folder, file)
    script = """
import json, sys, yaml
from mapproxy.config.loader import ProxyConfiguration
conf = yaml.safe_load(open(sys.argv[1]))
for name in ("broken", "itself"):
    del conf["grids"][name]
grids = ProxyConfiguration(conf, conf_base_dir=".").grids
print(json.dumps({name: [list(grid.tile_grid().bbox), list(grid.tile_grid().resolutions), grid.tile_grid().flipped_y_axis, list(grid.tile_grid().tile_size)]
                  for name, grid in grids.items() if name != "nowhere"}))
"""
    done = subprocess.run([sys.executable, "-c", script, str(file)], capture_output=True, text=True, check=True, timeout=patience(120),
                          env={**os.environ, "PYTHONPATH": str(MAPPROXY)})
    known = yaml.safe_load(done.stdout)
    mine = {grid.get("name"): grid for grid in ElementTree.parse(config).getroot().findall("grid")}
    assert set(mine) == {"listed", "named", "root", "ends", "aligned", "between", "GLOBAL_GEODETIC", "GLOBAL_MERCATOR"}
    for name, grid in mine.items():
        box, resolutions, flipped, size = known[name]
        assert [float(number) for number in grid.find("resolutions").text.split()] == pytest.approx(resolutions, rel=1e-12), name
        assert [float(number) for number in grid.find("extent").text.split()] == pytest.approx(box, rel=1e-9 if name != "listed" else 1e-4), name
        assert grid.find("origin").text == ("top-left" if flipped else "bottom-left"), name
        assert [int(number) for number in grid.find("size").text.split()] == size, name


def test_values(folder):
    """What settings become."""
    config, _ = adopted(folder, CONFIGURATIONS / "mapproxy" / "formats.yaml")
    assert of(config, "tileset[@name='png']/auto_expire").text == str(2 * 86400 + 3600)
    assert of(config, "tileset[@name='png']/format").text == "PNG"
    assert of(config, "tileset[@name='png']/metatile").text == "8 8" and of(config, "tileset[@name='jpeg']/metatile").text == "1 1"
    jpeg = of(config, "tileset[@name='jpeg']/format").text
    assert of(config, f"format[@name='{jpeg}']/quality").text == "70"
    assert of(config, "tileset[@name='jpeg']/grid").attrib == {"max-cached-zoom": "9", "out-of-zoom-strategy": "proxy"}
    small = of(config, "tileset[@name='small']/format").text
    assert of(config, f"format[@name='{small}']/colors").text == "16"
    assert of(config, "tileset[@name='mixed']/expires").text == "3600"
    assert of(config, "cors").text == "https://example.org"
    assert of(config, "service[@type='wms']/maxsize").text == "3000" and of(config, "service[@type='wms']/resample_mode").text == "nearest"


def test_secrets(folder):
    """User and password leave the address, and only the owner may read the file that has them."""
    config, _ = adopted(folder, CONFIGURATIONS / "mapproxy" / "sources.yaml")
    secret = of(config, "source[@name='secret']")
    assert secret.find("http/url").text == "https://127.0.0.1:9/wms?map=/x&a=1"
    assert [secret.find(f"http/auth/{name}").text for name in ("user", "pass")] == ["me", "s@cret"]
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    assert secret.find("http/headers/X-Key").text == "abc" and secret.find("http/timeout").text == "5"
    assert of(config, "source[@name='tiles']/http/url").text.endswith("/{z}/{x}/{y}.png")
    assert of(config, "source[@name='south']/http/url").text.endswith("/{z}/{x}/{-y}.png")
    assert of(config, "tileset[@name='seeded']/source") is None and of(config, "tileset[@name='mapnik']/source") is None


SECRET = "services: {wms: }\nlayers: [{name: l, title: L, sources: [c]}]\ncaches: {c: {grids: [GLOBAL_MERCATOR], sources: [s]}}\nsources: {s: {type: wms, req: {url: 'http://127.0.0.1:9/?key=1', layers: a}%s}}\n"


@pytest.mark.parametrize("inner, mode, written", ((", http: {headers: {Authorization: Bearer secret}}", 0o644, 0o600), ("", 0o640, 0o640), ("", 0o600, 0o600), ("", 0o644, 0o644)))
def test_secrets_stay_with_their_readers(folder, inner, mode, written):
    """Headers are for the owner alone; what else is written nobody may read who may not read the file that it comes from."""
    file = folder / "mapproxy.yaml"
    file.write_text(SECRET % inner)
    file.chmod(mode)
    old = os.umask(0o022)
    try:
        done = adopt("mapproxy.yaml", cwd=folder)
    finally:
        os.umask(old)
    assert done.returncode == 0, done.stderr
    assert oct(stat.S_IMODE((folder / "mapcache.xml").stat().st_mode)) == oct(written)


def test_secrets_of_included_files(folder):
    """What is made of a file that only its owner may read is for the owner alone, also where another file names that one."""
    (folder / "secret.yaml").write_text(SECRET % "")
    (folder / "secret.yaml").chmod(0o600)
    (folder / "mapproxy.yaml").write_text("base: secret.yaml\n")
    (folder / "mapproxy.yaml").chmod(0o644)
    assert adopt("mapproxy.yaml", cwd=folder).returncode == 0
    assert oct(stat.S_IMODE((folder / "mapcache.xml").stat().st_mode)) == oct(0o600)
    inner = folder / "secret.inc"
    inner.write_text("LAYER NAME l TYPE POINT STATUS ON END")
    inner.chmod(0o640)
    (folder / "m.map").write_text("MAP INCLUDE 'secret.inc' END")
    assert adopt("m.map", "--output", "map.xml", cwd=folder).returncode == 0
    assert stat.S_IMODE((folder / "map.xml").stat().st_mode) & 0o007 == 0


def test_based_on_files(folder):
    config, _ = adopted(folder, CONFIGURATIONS / "mapproxy" / "based.yaml")
    assert {tileset.get("name") for tileset in ElementTree.parse(config).getroot().findall("tileset")} == {"own", "common"}
    assert of(config, "tileset[@name='common']/metadata/title").text == "Another title"


def test_seeds_become_commands(folder):
    """Those of the seeder, which run as they are printed; a clean-up without an age is none."""
    (folder / "seed.yaml").write_text("""
seeds:
  one: {caches: [roads_cache], levels: {from: 1, to: 2}, coverages: [box], refresh_before: {days: 3}}
  two: {caches: [roads_cache, none], grids: [GLOBAL_WEBMERCATOR], levels: [0, 1]}
cleanups:
  old: {caches: [roads_cache], remove_before: {weeks: 1}, levels: [2]}
  all: {caches: [roads_cache]}
coverages:
  box: {bbox: [5, 50, 10, 55], srs: "EPSG:4326"}
""")
    (folder / "a.yaml").write_bytes((CONFIGURATIONS / "mapproxy" / "one-wms.yaml").read_bytes())
    done = adopt("seed.yaml", "a.yaml", cwd=folder)
    assert done.returncode == 2 and "seed.yaml:4: cache none is not filled" in done.stderr and "seed.yaml:7: all is not taken over" in done.stderr
    commands = re.findall(r"^  (mapcache seed .*)$", done.stdout, re.M)
    assert len(commands) == 3 and "-z 1,2 -e 556597.454,6446275.841,1113194.908,7361866.113 -o 259200s" in commands[0] and "-m delete" in commands[2]
    for command in commands:
        subprocess.run(["sh", "-c", command.replace("mapcache ", f"{PROGRAM} ", 1) + " --dry-run"], cwd=folder, check=True, timeout=patience(60), capture_output=True)
    assert "seed.yaml:1: this is a seed.yaml" in adopt("seed.yaml", cwd=folder).stderr


BAD = {
    "tabs": (b"layers:\n\t- x\n", ":2:"),
    "no-map": (b"- 1\n- 2\n", ":1: this is no map"),
    "nothing": (b"", "`layers` is not there"),
    "itself": (b"layers: &a\n  - *a\n", ":2: the alias *a"),
    "laughs": (b"a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + b"".join(b"a%d: &a%d [%s]\n" % (i, i, b",".join([b"*a%d" % (i - 1)] * 10)) for i in range(1, 9)), "too many values"),
    "deep": (b"layers: " + b"[" * 500 + b"]" * 500, "nested too deeply"),
    "zero": (b"layers: \"a\\0b\"\n", ":1: a value holds a zero byte"),
    "bytes": (b"layers: \xff\xfe\xfa\n", ":1: this is no YAML"),
    "large": (b"# " + b"x" * (17 << 20), "more than 16 MB"),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_files(folder, bad):
    """Named with the line; what other files say is taken over; nothing is written of the bad one alone."""
    data, said = BAD[bad]
    (folder / "bad.yaml").write_bytes(data)
    done = adopt("bad.yaml", cwd=folder)
    assert done.returncode == 1 and said in done.stderr and not (folder / "mapcache.xml").exists()
    done = adopt("bad.yaml", CONFIGURATIONS / "mapproxy" / "one-wms.yaml", cwd=folder)
    assert done.returncode == 2 and said in done.stderr and (folder / "mapcache.xml").exists()


def test_maps_in_the_place_of_lists(folder):
    """Each is named with its line; a clean-up of an area that cannot be said is no command."""
    layer = "services: {wms: }\nlayers: [{name: l, title: L, sources: [c]}, {name: m, title: M, sources: {a: b}}]\n"
    (folder / "a.yaml").write_text(layer + "caches: {c: {grids: [GLOBAL_MERCATOR], sources: [s]}, d: {grids: {a: b}, sources: {}}}\nsources: {s: {type: tile, url: 'http://127.0.0.1:9/'}}\nbase: {a: b}\n")
    (folder / "seed.yaml").write_text("seeds:\n  one: {caches: {a: b}}\ncleanups:\n  two: {caches: [c], coverages: {a: b}, remove_before: {weeks: 1}}\n")
    done = adopt("a.yaml", "seed.yaml", cwd=folder)
    assert done.returncode == 2 and "a.yaml:2: the sources of layer m are not taken over" in done.stderr and "seed.yaml:4: two is not taken over" in done.stderr, done.stderr
    assert "-m delete" not in done.stdout and "mapcache seed" not in done.stdout


def test_nothing_is_overwritten(folder):
    file = CONFIGURATIONS / "mapproxy" / "one-wms.yaml"
    (folder / "mapcache.xml").write_text("mine")
    done = adopt(file, cwd=folder)
    assert done.returncode == 1 and "--force" in done.stderr and (folder / "mapcache.xml").read_text() == "mine"
    (folder / "link.xml").symlink_to("mapcache.xml")
    assert adopt(file, "--force", "--output", "link.xml", cwd=folder).returncode == 1 and (folder / "mapcache.xml").read_text() == "mine"
    assert adopt(file, "--force", cwd=folder).returncode == 0 and "<mapcache>" in (folder / "mapcache.xml").read_text()
    assert adopt(file, "--output", "-", cwd=folder).stdout.endswith("</mapcache>\n")
    assert adopt("missing.yaml", cwd=folder).returncode == 1
    assert sorted(path.name for path in folder.iterdir()) == ["link.xml", "mapcache.xml"]


STORES = {
    "tc": "{type: file}", "mp": "{type: file, directory_layout: mp}", "tms": "{type: file, directory_layout: tms}", "arcgis": "{type: file, directory_layout: arcgis}",
    "quadkey": "{type: file, directory_layout: quadkey}", "reverse_tms": "{type: file, directory_layout: reverse_tms, use_grid_names: true}",
    "sqlite": "{type: sqlite}", "mbtiles": "{type: mbtiles}", "geopackage": "{type: geopackage}", "levels": "{type: geopackage, levels: true}", "compact": "{type: compact, version: 2}",
}


def seed_by_mapproxy(folder, url, stores, form="image/png"):
    """Levels 0 to 3 of a cache of each store, filled by MapProxy's own seeder."""
    lines = ["globals: {image: {paletted: false}}", "services: {wmts: }", "layers:"]
    lines += [f"  - {{name: l_{name}, title: x, sources: [c_{name}]}}" for name in stores]
    lines += ["grids:", "  north: {base: GLOBAL_WEBMERCATOR, num_levels: 5}", "  south: {base: GLOBAL_MERCATOR, num_levels: 5}", "caches:"]
    lines += [f"  c_{name}: {{grids: [{grid}], sources: [w], format: {form}, meta_size: [2, 2], meta_buffer: 0, cache: {store}}}" for name, (store, grid) in stores.items()]
    lines += ["sources:", f'  w: {{type: wms, req: {{url: "{url}", layers: x, transparent: true}}}}']
    (folder / "mapproxy.yaml").write_text("\n".join(lines) + "\n")
    (folder / "seed.yaml").write_text("seeds:\n  all: {caches: [" + ", ".join(f"c_{name}" for name in stores) + "], levels: {from: 0, to: 3}}\n")
    subprocess.run([sys.executable, str(MAPPROXY / "bin" / "mapproxy-seed"), "-f", "mapproxy.yaml", "-s", "seed.yaml", "--seed", "all", "-c", "1", "--quiet"], cwd=folder, check=True,
                   timeout=patience(300), capture_output=True, env={**os.environ, "PYTHONPATH": str(MAPPROXY)})


def tiles_of_mapproxy(folder, layers):
    """{(layer, grid, z, column, row from the north): bytes}, as its own WMTS answers them, of one process."""
    script = """
import json, sys, base64
from mapproxy.wsgiapp import make_wsgi_app
from werkzeug.test import Client
client = Client(make_wsgi_app(sys.argv[1]))
for layer, grid in json.loads(sys.argv[2]):
    for z in range(4):
        for y in range(2 ** z):
            for x in range(2 ** z):
                answer = client.get(f"/wmts/{layer}/{grid}/{z}/{x}/{y}." + sys.argv[3])
                print(json.dumps([layer, grid, z, x, y, answer.status_code, base64.b64encode(answer.data).decode()]))
"""
    import base64
    import json
    done = subprocess.run([sys.executable, "-c", script, "mapproxy.yaml", json.dumps(layers), "png"], cwd=folder, capture_output=True, text=True, check=True, timeout=patience(300),
                          env={**os.environ, "PYTHONPATH": str(MAPPROXY)})
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert all(answer[5] == 200 for answer in answers)
    return {tuple(answer[:5]): base64.b64decode(answer[6]) for answer in answers}


@pytest.mark.parametrize("grid", ["north", "south"])
def test_stored_tiles_are_those_of_mapproxy(folder, grid):
    """Of each store, in grids counted from the north and from the south: byte for byte what MapProxy answers, with the origin gone."""
    stores = {name: (store, grid) for name, store in STORES.items() if name != "compact" or grid == "north"}
    other = "south" if grid == "north" else "north"
    with Origin() as origin:
        seed_by_mapproxy(folder, origin.url("/pattern?"), stores)
    theirs = tiles_of_mapproxy(folder, [(f"l_{name}", grid) for name in stores])
    assert len(theirs) == 85 * len(stores)
    config, notes = adopted(folder, folder / "mapproxy.yaml")
    assert {note["text"].split(":")[0] for note in notes} == {f"grid {other} is not taken over", *(["the bundles of cache c_compact are only read"] if grid == "north" else [])}
    places = [place for place in theirs if place[2] < 2 or (place[3] * 5 + place[4]) % 9 == 0]
    paths = [f"/wmts/1.0.0/{layer}/default/{name}/{z}/{y}/{x}.png" for layer, name, z, x, y in places]
    wrong = [place for place, (status, _, body) in zip(places, requests(config, paths)) if status != 200 or body != theirs[place]]
    assert len({theirs[place] for place in places}) > 6  # they are told apart
    assert not wrong


def test_tiles_go_both_ways(folder):
    """What we store beside MapProxy's tiles MapProxy reads."""
    stores = {name: (store, "south") for name, store in STORES.items() if name not in ("compact", "levels")}
    with Origin() as origin:
        seed_by_mapproxy(folder, origin.url("/pattern?"), stores)
        config, _ = adopted(folder, folder / "mapproxy.yaml")
        for name in stores:
            subprocess.run([PROGRAM, "seed", "-c", config, "-t", f"l_{name}", "-z", "4,4", "-q"], check=True, timeout=patience(120), capture_output=True)
    script = """
import json, sys
from mapproxy.config.loader import load_configuration
from mapproxy.cache.tile import Tile
conf = load_configuration("mapproxy.yaml")
for name in json.loads(sys.argv[1]):
    grid, extent, manager = conf.caches["c_" + name].caches()[0]
    print(name, sum(manager.is_cached((x, y, 4)) for x in range(16) for y in range(16)))
"""
    import json
    done = subprocess.run([sys.executable, "-c", script, json.dumps(list(stores))], cwd=folder, capture_output=True, text=True, check=True, timeout=patience(120),
                          env={**os.environ, "PYTHONPATH": str(MAPPROXY)})
    assert [line for line in done.stdout.splitlines() if line.split()[0] in stores] == [f"{name} 256" for name in stores]


def test_jpeg_keeps_its_ending(folder):
    with Origin() as origin:
        seed_by_mapproxy(folder, origin.url("/pattern?"), {"tc": ("{type: file}", "north")}, "image/jpeg")
    assert list(pathlib.Path(folder, "cache_data").rglob("*.jpeg"))
    config, _ = adopted(folder, folder / "mapproxy.yaml")
    assert [answer[:2] for answer in requests(config, ["/wmts/1.0.0/l_tc/default/north/2/1/1.jpg"])] == [(200, "image/jpeg")]

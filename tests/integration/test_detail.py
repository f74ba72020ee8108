"""mapcache_detail: the same report as MapCache's, but for the files beyond the grid that that one counts as missing."""
import json
import os
import pathlib
import pty
import re
import subprocess

import pytest
from patience import patience
from peers import peer

BUILD = pathlib.Path(os.environ.get("MAPCACHE_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build" / "release"))
OURS, PEER = str(BUILD / "bin" / "mapcache_detail"), str(peer("/usr/bin/mapcache_detail"))
GRID = "GoogleMapsCompatible"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("detail")
    config = folder / "mapcache.xml"
    config.write_text(f"""<mapcache>
  <source name="any" type="dummy"/>
  <cache name="main" type="sqlite3"><dbfile>{folder}/one.sqlite3</dbfile></cache>
  <cache name="many" type="sqlite3"><dbfile>{folder}/many/{{z}}/{{x}}-{{y}}.sqlite3</dbfile><xcount>4</xcount><ycount>4</ycount></cache>
  <cache name="both" type="composite"><cache max-zoom="2">main</cache><cache min-zoom="3">many</cache></cache>
  <cache name="disk" type="disk"><base>{folder}/disk</base></cache>
  <tileset name="one"><source>any</source><cache>main</cache><grid>{GRID}</grid><format>PNG</format><metatile>1 1</metatile></tileset>
  <tileset name="many"><source>any</source><cache>many</cache><grid>{GRID}</grid><format>PNG</format><metatile>1 1</metatile></tileset>
  <tileset name="both"><source>any</source><cache>both</cache><grid>{GRID}</grid><format>PNG</format><metatile>1 1</metatile></tileset>
  <tileset name="dim"><source>any</source><cache>main</cache><grid>{GRID}</grid><grid minzoom="2" maxzoom="3">WGS84</grid><format>PNG</format>
    <dimensions><dimension type="values" name="time" default="a"><value>a</value><value>b</value></dimension></dimensions></tileset>
  <cache name="layers" type="multitier"><cache>main</cache><cache>disk</cache></cache>
  <tileset name="layers"><source>any</source><cache>layers</cache><grid>{GRID}</grid><format>PNG</format></tileset>
  <tileset name="disk"><source>any</source><cache>disk</cache><grid>{GRID}</grid><format>PNG</format></tileset>
  <service type="wmts" enabled="true"/>
</mapcache>
""")
    for tileset in "one", "many", "both":
        subprocess.run([str(BUILD / "bin" / "mapcache_seed"), "-c", config, "-t", tileset, "-z", "0,3", "-q",
                        "-e", "-20037508,-20037508,5000000,0"], check=True, capture_output=True)
    return config


def run(program, config, *options):
    return subprocess.run([program, "-c", str(config), *options], capture_output=True, text=True, timeout=patience(60))


def report(program, config, *options):
    result = run(program, config, *([] if "-g" in options else ["-g", GRID]), *options)
    assert result.returncode == 0, result.stderr
    assert result.stderr.endswith("Finished: 100.000% done\n")
    found = json.loads(result.stdout)
    for level in found["zoom_levels"]:
        for file in level["files"]:
            del file["region_in_file"]["geometry"]  # the same ring, begun at another corner
    return found


@pytest.mark.parametrize("options", [
    "-t one", "-t one -z 3", "-t one -z 1,3", "-t one -z 2,0 -e -1000000,-9000000,7000000,3000000", "-t many -z 3,2 -o -e 0,0,5000000,6000000",
    "-t many -z 3 -e -15000000,-15000000,12000000,12000000 -o", "-t both -z 1,2", "-t one -z 2 -e 7000000,-9000000,-1000000,3000000",
    "-t one -z 1 -D nodim=1", "-t dim -z 1 -D TIME=b", "-t dim -g WGS84 -z 1,4",
])
def test_the_report_is_mapcaches(site, options):
    assert report(OURS, site, *options.split()) == report(PEER, site, *options.split())


def test_files_beyond_the_grid_are_not_missing(site):
    found = report(OURS, site, "-t", "many", "-z", "2,3")
    assert [len(level["files"]) for level in found["zoom_levels"]] == [1, 4]
    assert [level["nb_tiles_in_region"]["max_in_level"] for level in found["zoom_levels"]] == [16, 64]
    theirs = report(PEER, site, "-t", "many", "-z", "2,3")
    assert [level["nb_tiles_in_region"]["max_in_level"] for level in theirs["zoom_levels"]] != [16, 64]


@pytest.mark.parametrize("program", [OURS, str(BUILD / "bin" / "mapcache")])
@pytest.mark.parametrize("box", ["-20e6,30e6,20e6,40e6", "30e6,-100,40e6,100", "30e6,30e6,40e6,40e6"])
def test_an_area_beside_the_grid_has_no_tiles(site, box, program):
    command = [program] if program == OURS else [program, "detail", "--json"]
    result = subprocess.run([*command, "-c", str(site), "-t", "one", "-g", GRID, "-z", "0,3", "-e", box], capture_output=True, text=True, timeout=patience(60))
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert [level["files"] for level in found["zoom_levels"]] == [[], [], [], []]
    assert found["nb_tiles_in_region"]["max_in_cache"] == 0


# Two features that overlap, one far off, and one that is beyond the tiles that are stored.
RINGS = [[[-12e6, -15e6], [-3e6, -14e6], [-11e6, -4e6]], [[-9e6, -12e6], [-1e6, -11e6], [-8e6, -5e6]],
         [[9e6, -9e6], [11e6, -9e6], [11e6, -7e6], [9e6, -7e6]], [[3e6, 4e6], [17e6, 5e6], [4e6, 16e6]]]


@pytest.fixture(scope="module")
def areas(site):
    path = site.parent / "areas.json"
    path.write_text(json.dumps({
        "type": "FeatureCollection", "crs": {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::3857"}},
        "features": [{"type": "Feature", "properties": {"n": n}, "geometry": {"type": "Polygon", "coordinates": [ring + ring[:1]]}}
                     for n, ring in enumerate(RINGS)]}))
    return str(path)


def vertices(geometry):
    """Of a polygon, to the metre: writers begin rings anywhere."""
    parts = geometry["coordinates"] if geometry["type"] == "MultiPolygon" else [geometry["coordinates"]]
    return {tuple(round(c) for c in vertex) for rings in parts for ring in rings for vertex in ring}


def digest(found):
    """What both programs must say, files by name."""
    return {"region": (found["region"]["bounding_box"], vertices(found["region"]["geometry"])),
            "files": {file["file_name"]: (file["nb_tiles_in_region"], [round(c) for c in file["region_in_file"]["bounding_box"]],
                                          vertices(file["region_in_file"]["geometry"]))
                      for level in found["zoom_levels"] for file in level["files"]},
            "levels": [level["nb_tiles_in_region"] for level in found["zoom_levels"]], "all": found["nb_tiles_in_region"]}


@pytest.fixture(scope="module")
def empty(site):
    """The same tilesets before any tile was stored: where a polygon cuts a file that exists, MapCache's ends by a fault."""
    folder = site.parent / "empty"
    folder.mkdir()
    config = folder / "mapcache.xml"
    config.write_text(site.read_text().replace(str(site.parent), str(folder)))
    return config


# Not files of level 4, where MapCache's loses a tile to rounding that it counts in a store of one file.
@pytest.mark.parametrize("options", ["-t one -z 3,5", "-t many -z 3", "-t many -z 5", "-t both -z 2,3", "-t many -z 5 -w n=3",
                                     "-t one -z 4 -l areas -w n<2", "-t many -z 3 -s select|*|from|areas|where|n>1"])
def test_areas_of_ogr_count_the_tiles_that_they_meet(empty, areas, options):
    words = ["-g", GRID, "-d", areas] + [word.replace("|", " ") for word in options.split()]
    ours, theirs = run(OURS, empty, *words), run(PEER, empty, *words)
    assert ours.returncode == theirs.returncode == 0, ours.stderr + theirs.stderr
    assert digest(json.loads(ours.stdout)) == digest(json.loads(theirs.stdout))


@pytest.mark.parametrize("tileset", ["one", "many"])
def test_a_rectangle_of_ogr_in_stored_tiles(site, areas, tileset):
    words = ["-g", GRID, "-d", areas, "-t", tileset, "-w", "n=2", "-z", "3"]
    ours, theirs = (json.loads(run(program, site, *words).stdout) for program in (OURS, PEER))
    assert digest(ours) == digest(theirs) and ours["sizes"] == theirs["sizes"]


@pytest.mark.parametrize("program", [OURS, str(BUILD / "bin" / "mapcache") + " detail --json"])
@pytest.mark.parametrize("tileset", ["one", "many"])
def test_what_was_seeded_by_an_area_is_complete(site, areas, tmp_path, tileset, program):
    config = tmp_path / "mapcache.xml"
    config.write_text(site.read_text().replace(str(site.parent), str(tmp_path)))
    area = ["-t", tileset, "-g", GRID, "-d", areas, "-w", "n<>1"]
    subprocess.run([str(BUILD / "bin" / "mapcache_seed"), "-c", config, *area, "-z", "0,6", "-q"], check=True, capture_output=True)
    found = json.loads(subprocess.run([*program.split(), "-c", config, *area, "-z", "0,6"], check=True, capture_output=True).stdout)
    counts = found["nb_tiles_in_region"]
    assert counts["missing_in_cache"] == 0 and counts["cached_in_cache"] == found["sizes"]["total_nbtiles_in_files"] > 150
    more = run(OURS, config, "-t", tileset, "-g", GRID, "-d", areas, "-z", "6")
    assert 0 < json.loads(more.stdout)["nb_tiles_in_region"]["missing_in_cache"]


@pytest.mark.parametrize("options", ["-d AREAS -e 0,0,1,1", "-l areas", "-w n=1", "-d AREAS -s x -l areas", "-d /nowhere.json", "-d AREAS -l none",
                                     "-d AREAS -w n=99", "-d AREAS -s nonsense"])
def test_areas_that_cannot_be_used(site, areas, options):
    result = run(OURS, site, "-t", "one", "-g", GRID, *options.replace("AREAS", areas).split())
    assert result.returncode == 1 and result.stdout == "" and result.stderr
    assert run(PEER, site, "-t", "one", "-g", GRID, *options.replace("AREAS", areas).split()).returncode == 1


@pytest.mark.parametrize("options", ["-t none -g " + GRID, "-t one -g none", "-t one -g " + GRID + " -z 99", "-t one", "-t disk -g " + GRID,
                                     "-t one -g " + GRID + " -e 5,5,5,1", "-t dim -g " + GRID + " -D time=none", "-t one -g " + GRID + " -z x", "--nonsense", "-t one -g " + GRID + " -q nonsense"])
def test_what_cannot_be_reported(site, options):
    result = run(OURS, site, *options.split())
    assert result.returncode == 1 and result.stdout == "" and result.stderr


def test_an_unknown_dimension_is_told(site):
    words = ["-t", "one", "-g", GRID, "-D", "nodim=1"]
    assert 'no dimension "nodim"' in run(OURS, site, *words).stderr
    ours = subprocess.run([str(BUILD / "bin" / "mapcache"), "detail", "-c", site, *words], capture_output=True, text=True, timeout=patience(60))
    assert ours.returncode == 1 and 'no dimension "nodim"' in ours.stderr and ours.stdout == ""


def test_a_query_of_its_own(site):
    query = "select count(*) from tiles where z = :z and x between :minx and :maxx and y between :miny and :maxy and x = 0"
    result = run(OURS, site, "-g", GRID, "-t", "one", "-z", "3", "-q", query)
    assert json.loads(result.stdout)["nb_tiles_in_region"]["cached_in_cache"] == 4


def detail(config, *words, **options):
    return subprocess.run([str(BUILD / "bin" / "mapcache"), "detail", "-c", config, *words], capture_output=True, text=True, timeout=patience(60), **options)


def rows_of(table):
    """Level or "all" -> tiles, stored, missing, covered."""
    return {name: (int(tiles), int(stored), int(missing), float(share)) for name, tiles, stored, missing, share in
            re.findall(r"^ +(\d+|all) +(\d+) +(\d+) +(\d+) +([\d.]+) %$", table, re.M)}


@pytest.mark.parametrize("tileset", ["one", "many", "disk"])
def test_the_table_has_what_the_report_has(site, tileset):
    told = detail(site, "-t", tileset, "-z", "0,4")
    assert told.returncode == 0 and told.stderr == "" and "\033" not in told.stdout
    report = json.loads(detail(site, "-t", tileset, "-z", "0,4", "--json").stdout)
    counts = {str(level["level"]): level["nb_tiles_in_region"] for level in report["zoom_levels"]}
    rows = rows_of(told.stdout)
    assert set(rows) == {*counts, "all"}
    for name, (tiles, stored, missing, share) in rows.items():
        where = report["nb_tiles_in_region"] if name == "all" else counts[name]
        kind = "cache" if name == "all" else "level"
        assert (tiles, stored, missing) == (where[f"max_in_{kind}"], where[f"cached_in_{kind}"], where[f"missing_in_{kind}"])
        assert abs(share - 100 * stored / tiles) < 0.1 and (share == 100) == (missing == 0)


def test_all_levels_are_counted(site):
    assert set(rows_of(detail(site, "-t", "one").stdout)) == {*map(str, range(22)), "all"}
    assert set(rows_of(detail(site, "-t", "dim", "-g", "WGS84").stdout)) == {"2", "3", "all"}
    # a million files that could be there and are not end it, unless the levels are named
    shown = detail(site, "-t", "many").stdout
    levels = [int(name) for name in rows_of(shown) if name != "all"]
    assert max(levels) == 11 and "levels 12 to 21 are not counted" in shown
    told = detail(site, "-t", "disk").stdout  # a folder has no list of its tiles
    assert max(int(name) for name in rows_of(told) if name != "all") == 9 and "levels 10 to 21 are not counted" in told


def test_the_table_on_a_terminal(site):
    for environment, colors, bar in (({"TERM": "xterm"}, True, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False, True), ({"TERM": "dumb"}, False, False)):
        primary, secondary = pty.openpty()
        process = subprocess.Popen([str(BUILD / "bin" / "mapcache"), "detail", "-c", str(site), "-t", "one", "-z", "0,3"], stdout=secondary,
                                   stderr=subprocess.DEVNULL, env={**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, **environment})
        os.close(secondary)
        shown = b""
        while True:
            try:
                piece = os.read(primary, 4096)
            except OSError:
                break
            if not piece:
                break
            shown += piece
        os.close(primary)
        assert process.wait(timeout=patience(30)) == 0
        assert (b"\033[" in shown) == colors and (b"####" in shown) == bar, (environment, shown)


def test_colors_and_quiet_as_asked_for(site):
    assert "\033[" in detail(site, "-t", "one", "-z", "0", "--color=always").stdout
    told = detail(site, "-t", "one", "-z", "0", "-q")
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")
    told = detail(site, "-t", "none", "-q")
    assert told.returncode == 1 and "none" in told.stderr


def test_of_tiers_the_last_one_is_counted(site):
    subprocess.run([BUILD / "bin/mapcache_seed", "-c", site, "-t", "layers", "-z", "0,1", "-q"], check=True, capture_output=True)
    done = subprocess.run([BUILD / "bin/mapcache", "detail", "-c", site, "-t", "layers", "-z", "0,2"], capture_output=True, text=True,
                          timeout=patience(60), check=False)
    assert done.returncode == 0, done.stderr
    assert [line.split()[:3] for line in done.stdout.splitlines() if line.split()[:1] and line.split()[0].isdigit()] == [
        ["0", "1", "1"], ["1", "4", "4"], ["2", "16", "0"]]

"""mapcache_detail: the same report as MapCache's, but for the files beyond the grid that that one counts as missing."""
import json
import os
import pathlib
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("MAPCACHE_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build" / "release"))
OURS, PEER = str(BUILD / "bin" / "mapcache_detail"), "/usr/bin/mapcache_detail"
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
  <tileset name="disk"><source>any</source><cache>disk</cache><grid>{GRID}</grid><format>PNG</format></tileset>
  <service type="wmts" enabled="true"/>
</mapcache>
""")
    for tileset in "one", "many", "both":
        subprocess.run([str(BUILD / "bin" / "mapcache_seed"), "-c", config, "-t", tileset, "-z", "0,3", "-q",
                        "-e", "-20037508,-20037508,5000000,0"], check=True, capture_output=True)
    return config


def run(program, config, *options):
    return subprocess.run([program, "-c", str(config), *options], capture_output=True, text=True, timeout=60)


def report(program, config, *options):
    result = run(program, config, "-g", GRID, *options)
    assert result.returncode == 0, result.stderr
    assert result.stderr.endswith("Finished: 100.000% done\n")
    found = json.loads(result.stdout)
    for level in found["zoom_levels"]:
        for file in level["files"]:
            del file["region_in_file"]["geometry"]  # the same ring, begun at another corner
    return found


@pytest.mark.parametrize("options", [
    "-t one", "-t one -z 3", "-t one -z 1,3", "-t one -z 2,0 -e -1000000,-9000000,7000000,3000000", "-t many -z 3,2 -o -e 0,0,5000000,6000000",
    "-t many -z 3 -e -15000000,-15000000,12000000,12000000 -o", "-t both -z 1,2",
])
def test_the_report_is_mapcaches(site, options):
    assert report(OURS, site, *options.split()) == report(PEER, site, *options.split())


def test_files_beyond_the_grid_are_not_missing(site):
    found = report(OURS, site, "-t", "many", "-z", "2,3")
    assert [len(level["files"]) for level in found["zoom_levels"]] == [1, 4]
    assert [level["nb_tiles_in_region"]["max_in_level"] for level in found["zoom_levels"]] == [16, 64]
    theirs = report(PEER, site, "-t", "many", "-z", "2,3")
    assert [level["nb_tiles_in_region"]["max_in_level"] for level in theirs["zoom_levels"]] != [16, 64]


@pytest.mark.parametrize("options", ["-t none -g " + GRID, "-t one -g none", "-t one -g " + GRID + " -z 99", "-t one", "-t disk -g " + GRID,
                                     "-t one -g " + GRID + " -e 5,5,1,1", "-t one -g " + GRID + " -z x", "--nonsense", "-t one -g " + GRID + " -q nonsense"])
def test_what_cannot_be_reported(site, options):
    result = run(OURS, site, *options.split())
    assert result.returncode == 1 and result.stdout == "" and result.stderr


def test_a_query_of_its_own(site):
    query = "select count(*) from tiles where z = :z and x between :minx and :maxx and y between :miny and :maxy and x = 0"
    result = run(OURS, site, "-g", GRID, "-t", "one", "-z", "3", "-q", query)
    assert json.loads(result.stdout)["nb_tiles_in_region"]["cached_in_cache"] == 4

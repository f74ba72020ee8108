"""Areas that limit the seeder: OGR sources as MapCache takes them, GeoJSON and WKT by our own readers, orders, outside."""
import json
import math
import os
import pathlib
import sqlite3
import subprocess

import pytest
from peers import peer
from postgres import Postgres
from patience import patience

BUILD = pathlib.Path(os.environ.get("MAPCACHE_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build" / "release"))
OURS, PEER = str(BUILD / "bin" / "mapcache_seed"), str(peer("/usr/bin/mapcache_seed"))
EDGE = 20037508.342789244
RADIUS = 6378137


def metres(longitude, latitude):
    return RADIUS * math.radians(longitude), RADIUS * math.asinh(math.tan(math.radians(latitude)))


def star(x, y, outer, inner, teeth):
    """A ring in degrees."""
    ring = [(x + (outer, inner)[i % 2] * math.cos(math.pi * i / teeth), y + (outer, inner)[i % 2] * math.sin(math.pi * i / teeth))
            for i in range(2 * teeth)]
    return ring + ring[:1]


# Two areas, one with a hole; places chosen so that no side lies on a tile's.
AREAS = [{"name": "north", "rings": [star(10.1, 45.3, 21.7, 13.3, 9), star(9.7, 46.1, 5.1, 3.3, 5)]},
         {"name": "south", "rings": [star(-58.3, -21.9, 17.9, 11.1, 7)]}]


def features(transform=lambda x, y: (x, y), names=("north", "south")):
    return {"type": "FeatureCollection", "features": [
        {"type": "Feature", "properties": {"name": area["name"]},
         "geometry": {"type": "Polygon", "coordinates": [[list(transform(*p)) for p in ring] for ring in area["rings"]]}}
        for area in AREAS if area["name"] in names]}


def wkt(transform):
    polygons = ["(" + ",".join("(" + ",".join(f"{x!r} {y!r}" for x, y in (transform(*p) for p in ring)) + ")"
                               for ring in area["rings"]) + ")" for area in AREAS]
    return f"MULTIPOLYGON ({','.join(polygons)})\n"


class Site:
    def __init__(self, folder):
        folder.mkdir()
        self.folder = folder
        self.config = folder / "mapcache.xml"
        self.config.write_text(f"""<mapcache>
  <source name="any" type="dummy"/>
  <cache name="main" type="sqlite3"><dbfile>{folder}/tiles.sqlite3</dbfile></cache>
  <tileset name="world"><source>any</source><cache>main</cache><grid>GoogleMapsCompatible</grid><grid>WGS84</grid>
    <format>PNG</format><metatile>2 2</metatile></tileset>
  <service type="wmts" enabled="true"/>
  <lock_dir>{folder}</lock_dir>
</mapcache>
""")
        # In the coordinates of the grid, as MapCache wants them; an older GeoJSON, so that OGR takes them as they are.
        self.metres = folder / "metres.json"
        self.metres.write_text(json.dumps(features(metres)))
        self.degrees = folder / "degrees.json"
        self.degrees.write_text(json.dumps(features()))
        self.wkt = folder / "areas.wkt"
        self.wkt.write_text(wkt(metres))

    def seed(self, *options, program=OURS):
        return subprocess.run([program, "-c", str(self.config), "-t", "world", *map(str, options)], capture_output=True,
                              text=True, timeout=patience(100))

    def tiles(self):
        file = self.folder / "tiles.sqlite3"
        if not file.exists():
            return set()
        with sqlite3.connect(file, timeout=patience(60)) as db:
            return set(db.execute("select grid, z, x, y from tiles"))


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path / "ours")


@pytest.mark.parametrize("options", [
    ["-z", "0,6"], ["-z", "0,6", "-i", "scanline"], ["-z", "6,7", "-w", "name = 'south'"],
    ["-z", "0,6", "-n", "2", "-s", "select * from metres where name = 'north'"], ["-z", "5,5", "-M", "1,1", "-l", "metres"],
])
def test_an_ogr_source_gives_the_tiles_that_mapcache_gives(tmp_path, options):
    ours, peer = Site(tmp_path / "ours"), Site(tmp_path / "peer")
    result = ours.seed("-d", ours.metres, *options)
    assert result.returncode == 0, result.stdout + result.stderr
    assert peer.seed("-d", peer.metres, *options, program=PEER).returncode == 0
    assert 0 < len(ours.tiles()) < 4 ** 7 and ours.tiles() == peer.tiles()


@pytest.mark.parametrize("order", ["down", "level", "hilbert"])
@pytest.mark.parametrize("workers", ["-n", "-p"])
def test_our_own_readers_agree_with_ogr_in_every_order(tmp_path, order, workers):
    expected = None
    for name in "metres", "degrees", "wkt":
        site = Site(tmp_path / name)
        area = ["-d", site.metres] if name == "metres" else ["--area", getattr(site, name)]
        result = site.seed("-z", "0,6", "--order", order, workers, "2", *area)
        assert result.returncode == 0 and result.stderr == "", result.stdout + result.stderr
        expected = expected or site.tiles()
        assert site.tiles() == expected
        counted = site.seed("-z", "0,6", "--dry-run", "--json", *area)
        assert json.loads(counted.stdout)["tiles"] == len(expected)


def test_degrees_on_a_grid_of_degrees(tmp_path):
    ours, peer = Site(tmp_path / "ours"), Site(tmp_path / "peer")
    assert ours.seed("-g", "WGS84", "-z", "0,6", "--area", ours.degrees).returncode == 0
    assert peer.seed("-g", "WGS84", "-z", "0,6", "-d", peer.degrees, program=PEER).returncode == 0
    assert ours.tiles() and ours.tiles() == peer.tiles()


def test_mixed_up_units_are_warned_of(site):
    result = site.seed("-z", "0,3", "-d", site.degrees)
    assert result.returncode == 0 and "WARNING" in result.stderr and "--area-srs" in result.stderr
    assert len(site.tiles()) < 50
    result = site.seed("-z", "0,6", "-d", site.degrees, "--area-srs", "EPSG:4326")
    assert result.returncode == 0 and result.stderr == ""
    assert len(site.tiles()) > 50


def test_nothing_to_do_and_invalid_features(site):
    result = site.seed("-d", site.metres, "-w", "name = 'nowhere'")
    assert result.returncode == 0 and "no features in provided ogr parameters, cannot continue\n" in result.stdout
    bow = {"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [
        [[0, 0], [1e6, 1e6], [1e6, 0], [0, 1e6], [0, 0]]]}}
    both = features(metres)
    both["features"].append(bow)
    site.metres.write_text(json.dumps(both))
    result = site.seed("-z", "0,2", "-d", site.metres)
    assert result.returncode == 0 and "1 of 3 features" in result.stderr


def test_a_source_that_fails_half_way_is_no_area(site):
    """Otherwise --outside would delete what lies in the part that was not read."""
    assert site.seed("-z", "0,2").returncode == 0
    before = site.tiles()
    with Postgres() as database:
        database.sql("create table parts(id int, geom text)")
        database.sql("insert into parts select i, 'POINT(0 0)' from generate_series(1, 2000) i")
        query = "select id, geom, 1 / (1500 - id) as broken from parts order by id"
        result = site.seed("-z", "0,2", "-m", "delete", "--outside", "-d",
                           f"PG:host={database.folder} port={database.port} dbname=postgres user=mapcache", "-s", query)
    assert result.returncode == 1 and "division by zero" in result.stdout, result.stdout + result.stderr
    assert site.tiles() == before


@pytest.mark.parametrize("options, words", [
    (["-d", "METRES", "-e", "0,0,1,1"], "--extent"), (["-l", "x"], "--ogr-datasource"),
    (["-d", "METRES", "-s", "select 1", "-w", "x"], "--ogr-sql"), (["-d", "METRES", "-l", "none"], "no layer"),
    (["-d", "METRES", "-w", "nocolumn = 3"], "filter"), (["-d", "METRES", "-s", "select from"], "query"),
    (["-d", "/nowhere.shp"], "/nowhere.shp"), (["--area", "/nowhere"], "/nowhere"), (["--area", "CONFIG"], "mapcache.xml:1:"),
    (["--area", "METRES", "-d", "METRES"], "--area"), (["--area-srs", "EPSG:4326"], "--area-srs"),
    (["--area", "METRES", "--area-srs", "EPSG:9999999"], "9999999"), (["--outside", "-e", "0,0,1,1"], "delete"),
    (["--outside", "-m", "delete"], "--outside"), (["--order", "sideways"], "--order"),
])
def test_wrong_areas_end_with_1(site, options, words):
    places = {"METRES": str(site.metres), "CONFIG": str(site.config)}
    result = site.seed("-z", "0,0", *[places.get(option, option) for option in options])
    assert result.returncode == 1 and words in result.stdout.splitlines()[1], result.stdout
    assert site.tiles() == set()


def test_a_million_vertices_take_little_memory(site):
    ring = [(40 + 10 * math.sin(7 * a) + 0.01 * (i % 3)) * (math.cos(a) + 1j * math.sin(a))
            for i, a in ((i, 2e-6 * math.pi * i) for i in range(1000000))]
    coast = site.folder / "coast.json"
    coast.write_text('{"type": "Polygon", "coordinates": [[' + ",".join(f"[{p.real:.7f},{p.imag:.7f}]" for p in ring + ring[:1]) + "]]}")
    peak = "import resource, subprocess, sys; code = subprocess.call(sys.argv[1:]); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(code)"
    result = subprocess.run(["python3", "-c", peak, OURS, "-c", site.config, "-t", "world", "-z", "0,12", "--area", coast, "--dry-run"],
                            capture_output=True, text=True, timeout=patience(100))
    assert result.returncode == 0 and int(result.stdout.splitlines()[-1]) < 64 * 1024, result.stdout + result.stderr


@pytest.mark.parametrize("area", ["extent", "polygon"])
def test_what_lies_outside_is_deleted(site, area):
    where = ["-e", "1000000,5000000,3200000,6300000"] if area == "extent" else ["--area", site.degrees]
    assert site.seed("-z", "0,6", *where).returncode == 0
    inside = site.tiles()
    assert site.seed("-z", "0,6").returncode == 0
    everything = site.tiles()
    assert 0 < len(inside) < len(everything)
    result = site.seed("-m", "delete", "--outside", "-o", "1d", "-z", "0,6", *where)
    assert result.returncode == 0 and site.tiles() == everything  # nothing is so old
    result = site.seed("-m", "delete", "--outside", "-z", "0,6", *where)
    assert result.returncode == 0, result.stdout + result.stderr
    assert site.tiles() == inside
    assert site.seed("-m", "delete", "-z", "0,6", *where).returncode == 0
    assert site.tiles() == set()


def test_a_list_is_taken_inside_the_area_only(site):
    listed = site.folder / "list"
    listed.write_text("".join(f"5/{x}/{y}\n" for x in range(32) for y in range(32)))
    assert site.seed("-z", "5,5", "--list", listed, "--area", site.degrees).returncode == 0
    some = site.tiles()
    other = Site(site.folder.parent / "walked")
    assert other.seed("-z", "5,5", "--area", other.degrees).returncode == 0
    assert some == other.tiles() and 0 < len(some) < 1024

"""Data cubes through the whole program: images go in by `mapcache cube ingest`, maps of dates and time lines come out of
a server, the same pixels, while others write, after a killed ingestion, and whatever the images are."""
import concurrent.futures
import csv
import io
import json
import os
import pathlib
import random
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from xml.etree import ElementTree

import numpy
import pytest
from conftest import ROOT, wait_until
from fastcgi import Client, Server
from patience import patience
from PIL import Image
from postgres import Postgres, program

BUILD = pathlib.Path(os.environ.get("MAPCACHE_BUILD", ROOT / "build" / "release"))
WIDTH, HEIGHT, RESOLUTION = 100, 70, 100
STORES = ("postgresql", "sqlite3")
DEGREES = """GEOGCS["GCS_WGS_1984",DATUM["D_WGS_1984",SPHEROID["WGS_1984",6378137.0,298.257223563]],
  PRIMEM["Greenwich",0.0],UNIT["Degree",0.0174532925199433]]"""
UTM = f"""PROJCS["WGS_1984_UTM_Zone_32N",{DEGREES},PROJECTION["Transverse_Mercator"],PARAMETER["False_Easting",500000.0],
  PARAMETER["False_Northing",0.0],PARAMETER["Central_Meridian",9.0],PARAMETER["Scale_Factor",0.9996],
  PARAMETER["Latitude_Of_Origin",0.0],UNIT["Meter",1.0]]"""
WEB_MERCATOR = f"""PROJCS["WGS_1984_Web_Mercator_Auxiliary_Sphere",{DEGREES},PROJECTION["Mercator_Auxiliary_Sphere"],
  PARAMETER["False_Easting",0.0],PARAMETER["False_Northing",0.0],PARAMETER["Central_Meridian",0.0],
  PARAMETER["Standard_Parallel_1",0.0],PARAMETER["Auxiliary_Sphere_Type",0.0],UNIT["Meter",1.0]]"""


@pytest.fixture(scope="module")
def database():
    with Postgres(settings=("shared_buffers=64MB",)) as server:
        yield server


class Cube:
    """A cube in a store, images to fill it with, and what it must hold: dates[day] is an array with alpha."""

    def __init__(self, folder, database, store="postgresql", size=(WIDTH, HEIGHT), bands="rgb", chunk="", resample="nearest"):
        self.folder, (self.width, self.height), self.bands = folder, size, bands
        self.table = folder.name.replace("-", "_")
        self.database = database
        where = (f"<connection>{database.connection()}</connection><table>{self.table}</table>" if store == "postgresql"
                 else f"<dbfile>{folder}/cube.db</dbfile>")
        self.config = folder / "cube.xml"
        self.config.write_text(f"""<mapcache>
  <cube name="field" type="{store}"><srs>EPSG:3857</srs><extent>1000 2000 {1000 + self.width * RESOLUTION}
    {2000 + self.height * RESOLUTION}</extent><resolution>{RESOLUTION}</resolution><bands>{bands}</bands>{chunk}{where}</cube>
  <source name="field" type="cube"><cube>field</cube><resample>{resample}</resample></source>
  <cache name="disk" type="disk"><base>{folder}/tiles</base></cache>
  <tileset name="field"><source>field</source><cache>disk</cache><grid>GoogleMapsCompatible</grid><format>PNG</format>
    <dimensions><dimension type="cube" name="time" default="current"><cube>field</cube></dimension></dimensions></tileset>
  <service type="wms" enabled="true"><full_wms>forward</full_wms><format>PNG</format></service>
  <service type="wmts" enabled="true"/>
  <lock_dir>{folder}</lock_dir>
</mapcache>
""")
        self.dates = {}
        self.images = 0

    def image(self, array, left=0, top=0, name=None):
        """A file with its world file; left, top in pixels of the cube."""
        path = self.folder / (name or f"image{self.images}.png")
        self.images += 1
        Image.fromarray(array).save(path, compress_level=1)
        half = RESOLUTION / 2
        path.with_suffix(".pgw").write_text(f"{RESOLUTION}\n0\n0\n{-RESOLUTION}\n{1000 + left * RESOLUTION + half}\n"
                                            f"{2000 + (self.height - top) * RESOLUTION - half}\n")
        return path

    def command(self, *options, word="ingest"):
        return [str(BUILD / "bin/mapcache"), "cube", word, "-c", str(self.config), "--cube", "field", *map(str, options)]

    def run(self, *options, word="ingest"):
        return subprocess.run(self.command(*options, word=word), capture_output=True, text=True, timeout=patience(100))

    def ingest(self, *options, status=0):
        done = self.run("--json", *options)
        assert done.returncode == status, done.stdout + done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def listed(self):
        done = self.run(word="dates")
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    def lay(self, day, array, left=0, top=0):
        """What the cube must hold after an image."""
        known = self.dates.setdefault(day, numpy.zeros((self.height, self.width, 4), numpy.uint8))
        part = known[top:top + array.shape[0], left:left + array.shape[1]]
        part[..., :3], part[..., 3] = array[..., :3], 255


def noise(seed, width=WIDTH, height=HEIGHT):
    return numpy.random.default_rng(seed).integers(0, 256, (height, width, 3), numpy.uint8)


def box(cube, left=0, top=0, width=None, height=None):
    width, height = width or cube.width, height or cube.height
    x, y = 1000 + left * RESOLUTION, 2000 + (cube.height - top) * RESOLUTION
    return f"{x},{y - height * RESOLUTION},{x + width * RESOLUTION},{y}"


def map_query(cube, day, left=0, top=0, width=None, height=None):
    width, height = width or cube.width, height or cube.height
    return (f"SERVICE=WMS&VERSION=1.3.0&REQUEST=GetMap&LAYERS=field&STYLES=&CRS=EPSG:3857&FORMAT=image/png&TRANSPARENT=true"
            f"&WIDTH={width}&HEIGHT={height}&BBOX={box(cube, left, top, width, height)}" + (f"&TIME={day}" if day else ""))


def picture(answer):
    assert answer.status == 200, answer.body
    return numpy.asarray(Image.open(io.BytesIO(answer.body)).convert("RGBA"))


def shown(server, cube, day, *window):
    pixels = picture(server.get("/", map_query(cube, day, *window))).copy()
    pixels[pixels[..., 3] == 0] = 0
    return pixels


def smaller(server, cube, day, times):
    """The whole cube, in a map of so many times fewer columns and rows."""
    width, height = cube.width // times, cube.height // times
    query = map_query(cube, day).replace(f"WIDTH={cube.width}&HEIGHT={cube.height}", f"WIDTH={width}&HEIGHT={height}")
    pixels = picture(server.get("/", query)).copy()
    pixels[pixels[..., 3] == 0] = 0
    return pixels


def halved(pixels):
    """What the first overview must be: the mean of those that are known, where they are two of four."""
    fours = pixels.reshape(pixels.shape[0] // 2, 2, pixels.shape[1] // 2, 2, 4).transpose(0, 2, 1, 3, 4).reshape(-1, 4, 4).astype(int)
    known = (fours[..., 3] > 0).sum(1)
    sums = (fours[..., :3] * (fours[..., 3:] > 0)).sum(1)
    means = (sums + known[:, None] // 2) // numpy.maximum(known, 1)[:, None]
    whole = numpy.concatenate([means, numpy.full((len(means), 1), 255)], axis=1) * (known >= 2)[:, None]
    return whole.reshape(pixels.shape[0] // 2, pixels.shape[1] // 2, 4)


def info_query(cube, x, y, size, times, kind):
    return (f"SERVICE=WMS&VERSION=1.3.0&REQUEST=GetFeatureInfo&LAYERS=field&QUERY_LAYERS=field&STYLES=&CRS=EPSG:3857&WIDTH=1"
            f"&HEIGHT=1&I=0&J=0&BBOX={box(cube, x, y, size, size)}&INFO_FORMAT={kind}" + (f"&TIME={times}" if times else ""))


@pytest.fixture
def server_of(tmp_path):
    running = []

    def start(cube):
        running.append(Server(BUILD, cube.config, cube.folder))
        return running[-1]

    yield start
    for server in running:
        server.stop()


@pytest.mark.parametrize("store", STORES)
def test_maps_and_time_lines_are_the_images(tmp_path, database, server_of, store):
    cube = Cube(tmp_path, database, store)
    days = [f"2024-02-{day:02d}" for day in range(25, 30)] + ["2024-03-01", "2024-03-02"]
    paths = []
    for i, day in enumerate(days):
        cube.lay(day, noise(i))
        paths.append(cube.image(noise(i), name=f"scene_{day.replace('-', '')}.png"))
    random.Random(1).shuffle(paths)
    report = cube.ingest("--time", "_%Y%m%d", *paths)
    assert (report["stored"], report["dates"], report["left_out"], report["spooled"]) == (7, 7, 0, False)
    assert cube.listed() == days
    server = server_of(cube)
    for day in days:
        assert (shown(server, cube, day) == cube.dates[day]).all(), day
        assert (shown(server, cube, day, 30, 11, 33, 40) == cube.dates[day][11:51, 30:63]).all(), day
    assert (shown(server, cube, None) == cube.dates[days[-1]]).all()
    assert (shown(server, cube, "2024-03-02T00:00:00Z") == cube.dates[days[-1]]).all()
    for wrong in ("2024-04-01", "yesterday", "2024-02-30"):
        assert server.get("/", map_query(cube, wrong)).status in (400, 404)

    capabilities = server.get("/", "SERVICE=WMS&VERSION=1.3.0&REQUEST=GetCapabilities").body
    dimension = ElementTree.fromstring(capabilities).find(".//{*}Layer/{*}Dimension")
    assert dimension.get("name") == "time" and dimension.text.split(",") == days and dimension.get("default") in (days[-1], "current")

    line = server.get("/", info_query(cube, 41, 33, 1, f"{days[0]}/{days[-1]}", "text/csv"))
    rows = list(csv.reader(io.StringIO(line.body.decode())))
    assert line.status == 200 and rows[0] == ["time", "red", "green", "blue"]
    assert rows[1:] == [[day, *map(str, cube.dates[day][33, 41, :3])] for day in days]
    some = json.loads(server.get("/", info_query(cube, 40, 30, 30, f"{days[1]},2024-03", "application/json")).body)
    assert some["bands"] == ["red", "green", "blue"] and some["pixels"] == [30, 30] and some["srs"] == "EPSG:3857"
    assert [value["time"] for value in some["values"]] == [days[1], days[5], days[6]]
    for value in some["values"]:
        mean = cube.dates[value["time"]][30:60, 40:70, :3].reshape(-1, 3).mean(0)
        assert numpy.allclose(value["value"], mean, atol=0.006)
    text = server.get("/", info_query(cube, 3, 4, 1, days[2], "text/plain")).body.decode()
    assert f"  {days[2]} {' '.join(map(str, cube.dates[days[2]][4, 3, :3]))}\n" in text
    outside = json.loads(server.get("/", info_query(cube, -3, 4, 1, f"{days[0]}/{days[-1]}", "application/json")).body)
    assert outside["values"] == []
    assert server.get("/", info_query(cube, 3, 4, 1, "/", "text/csv")).status == 400
    tile = server.get("/wmts/1.0.0/field/default/" + days[0] + "/GoogleMapsCompatible/10/511/512.png")
    assert tile.status == 200 and picture(tile)[..., 3].any()


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("chunk", ["<overviews>2</overviews>", "<chunk>16 16 30</chunk>", "<chunk>32 8 1</chunk><overviews>3</overviews>"], ids=["page", "deep", "flat"])
def test_mosaics_corrections_and_additions(tmp_path, database, server_of, store, chunk):
    cube = Cube(tmp_path, database, store, chunk=chunk, resample="bilinear")
    chooser = random.Random(7)
    server = server_of(cube)
    for turn in range(4):
        lines = []
        for _ in range(12):
            day = f"2024-01-{chooser.randint(1, 4 + 3 * turn):02d}"
            width, height = chooser.randint(1, 80), chooser.randint(1, 60)
            left, top = chooser.randint(-10, WIDTH - 1), chooser.randint(-10, HEIGHT - 1)
            array = noise((turn, len(lines)), width, height)
            lines.append((day, cube.image(array, left, top), array, left, top))
        listing = tmp_path / "list.txt"
        listing.write_text("".join(f"{path}\t{day}\n" for day, path, *_ in lines))
        done = cube.run("--json", "--cachelimit", "1M", "--list", listing)
        assert done.returncode in (0, 3), done.stderr  # 3: an image lies wholly outside
        report = json.loads(done.stdout.splitlines()[-1])
        lost = set(re.findall(r'"left_out_time":"([\d-]+)"', done.stdout))
        for day, _, array, left, top in lines:
            if day in lost:
                continue
            shift_x, shift_y = max(0, -left), max(0, -top)
            part = array[shift_y:HEIGHT - top, shift_x:WIDTH - left]
            cube.lay(day, part, left + shift_x, top + shift_y)
        assert report["stored"] == sum(day not in lost for day, *_ in lines)
        assert cube.listed() == sorted(cube.dates)
        for day, expected in cube.dates.items():
            assert (shown(server, cube, day) == expected).all(), (turn, day)
            if "overviews" in chunk:
                assert (smaller(server, cube, day, 2) == halved(expected)).all(), (turn, day)
    line = json.loads(server.get("/", info_query(cube, 50, 35, 1, "2024", "application/json")).body)
    for value in line["values"]:
        pixel = cube.dates[value["time"]][35, 50]
        assert value["value"] == ([int(v) for v in pixel[:3]] if pixel[3] else None)


def test_cached_tiles_are_those_of_the_last_correction(tmp_path, database, server_of):
    """Each is drawn once for each version of its date; those of other dates stay."""
    cube = Cube(tmp_path, database)
    server = server_of(cube)
    days = ("2024-01-01", "2024-01-02")
    address = "/wmts/1.0.0/field/default/{}/GoogleMapsCompatible/10/511/512.png"
    cube.ingest("--date", "2024-01-01/P1D", cube.image(noise(1)), cube.image(noise(2)))
    seen = []
    for turn in range(3):
        tiles = [server.get(address.format(day)) for day in days]
        assert [tile.status for tile in tiles] == [200, 200]
        assert all((picture(server.get(address.format(day))) == picture(tile)).all() for day, tile in zip(days, tiles))
        seen.append([tile.body for tile in tiles])
        assert len({bodies[0] for bodies in seen}) == turn + 1 and len({bodies[1] for bodies in seen}) == 1
        cube.ingest("--date", days[0], cube.image(noise(10 + turn, 60, 40), 20, 10))
    stored = [str(path.relative_to(tmp_path)) for path in (tmp_path / "tiles").rglob("*.png")]
    assert len(stored) >= 4 and any("2024-01-01~2" in path for path in stored), stored
    seeded = subprocess.run([BUILD / "bin/mapcache_seed", "-c", cube.config, "-t", "field", "-z", "10,10", "-D",
                             "time=2024-01-01", "-e", box(cube)], capture_output=True, text=True, check=False)
    assert seeded.returncode == 0, seeded.stdout + seeded.stderr
    assert list((tmp_path / "tiles").rglob("*01~3/**/*.png"))
    tiles = {path: path.stat().st_mtime_ns for path in (tmp_path / "tiles").rglob("*.png")}
    server.get(address.format(days[0]))
    assert tiles == {path: path.stat().st_mtime_ns for path in (tmp_path / "tiles").rglob("*.png")}


def test_alpha_and_grey(tmp_path, database, server_of):
    array = numpy.dstack([noise(3), numpy.full((HEIGHT, WIDTH), 255, numpy.uint8)])
    array[10:30, 20:50, 3] = 0
    for bands in ("rgb", "rgba", "gray"):
        home = tmp_path / bands
        home.mkdir()
        cube = Cube(home, database, "sqlite3", bands=bands)
        cube.ingest("--date", "2024-01-01T12:30Z", cube.image(array))
        expected = array.copy()
        if bands == "gray":
            r, g, b = (array[..., i].astype(int) for i in range(3))
            expected[..., :3] = ((77 * r + 150 * g + 29 * b + 128) >> 8)[..., None]
        expected[expected[..., 3] == 0] = 0
        server = server_of(cube)
        assert (shown(server, cube, "2024-01-01T12:30:00Z") == expected).all(), bands
        gone = json.loads(server.get("/", info_query(cube, 25, 15, 1, None, "application/json")).body)
        assert gone["values"] == [{"time": "2024-01-01T12:30:00Z", "value": None}]


def test_scales_between(tmp_path, database, server_of):
    """Coarser maps are averages, or the pixel in the middle; those beside each other fit."""
    home = tmp_path / "nearest"
    home.mkdir()
    cube = Cube(home, database, "sqlite3")
    array = noise(6)
    cube.ingest("--date", "2024-01-01", cube.image(array))
    server = server_of(cube)
    for width, height in ((20, 14), (50, 35), (300, 210)):
        query = map_query(cube, None).replace("WIDTH=100&HEIGHT=70", f"WIDTH={width}&HEIGHT={height}")
        rows, columns = ((numpy.arange(n) + 0.5) * size / n for n, size in ((height, 70), (width, 100)))
        expected = array[rows.astype(int)][:, columns.astype(int)]
        assert (picture(server.get("/", query))[..., :3] == expected).all(), width
    cube = Cube(tmp_path, database, resample="bilinear")
    array = noise(5)
    cube.ingest("--date", "2024-01-01", cube.image(array))
    server = server_of(cube)
    query = map_query(cube, "2024-01-01").replace("WIDTH=100&HEIGHT=70", "WIDTH=50&HEIGHT=35")
    means = array.reshape(35, 2, 50, 2, 3).mean((1, 3))
    assert abs(picture(server.get("/", query))[..., :3] - means).max() <= 1
    for width, height in ((100, 7), (10, 70), (50, 7)):  # of another scale across than down
        query = map_query(cube, "2024-01-01").replace("WIDTH=100&HEIGHT=70", f"WIDTH={width}&HEIGHT={height}")
        means = array.reshape(height, 70 // height, width, 100 // width, 3).mean((1, 3))
        assert abs(picture(server.get("/", query))[..., :3] - means).max() <= 1, (width, height)
    whole = picture(server.get("/", map_query(cube, None).replace("WIDTH=100&HEIGHT=70", "WIDTH=300&HEIGHT=210")))
    left = map_query(cube, None, 0, 0, 50, 70).replace("WIDTH=50&HEIGHT=70", "WIDTH=150&HEIGHT=210")
    assert abs(picture(server.get("/", left)).astype(int) - whole[:, :150]).max() <= 1
    assert (whole[4, 4] == picture(server.get("/", map_query(cube, None)))[1, 1]).all()


def blocks(array, times):
    """Means of squares."""
    height, width = array.shape[0] // times, array.shape[1] // times
    return array.reshape(height, times, width, times, -1).mean((1, 3))


def test_coarse_maps_are_made_of_overviews_alone(tmp_path, database, server_of):
    cube = Cube(tmp_path, database, "sqlite3", size=(192, 96), chunk="<overviews>3</overviews>", resample="bilinear")
    array = noise(8, 192, 96)
    cube.ingest("--date", "2024-01-01", cube.image(array))
    server = server_of(cube)
    rows = [-(-96 // (26 << level)) for level in range(4)]

    def check(times):
        for factor in times:
            assert abs(smaller(server, cube, "2024-01-01", factor)[..., :3] - blocks(array, factor)).max() <= 2, factor

    check((1, 2, 3, 4, 6, 8, 12, 16, 24, 32))
    between = picture(server.get("/", map_query(cube, None).replace("WIDTH=192&HEIGHT=96", "WIDTH=40&HEIGHT=20")))  # 4.8 pixels to one
    assert abs(between[..., :3].mean((0, 1)) - array.mean((0, 1))).max() < 3
    with sqlite3.connect(tmp_path / "cube.db") as file:
        assert file.execute("select max(y) + 1 from chunks").fetchone()[0] == sum(rows)
        file.execute("delete from chunks where y < ?", (rows[0],))
    file.close()
    check((2, 4, 6, 8, 12, 16, 24, 32))
    assert not smaller(server, cube, "2024-01-01", 3)[..., 3].any()
    with sqlite3.connect(tmp_path / "cube.db") as file:
        file.execute("delete from chunks where y < ?", (sum(rows[:3]),))
    file.close()
    check((8, 16, 24, 32))
    assert not smaller(server, cube, "2024-01-01", 6)[..., 3].any()


def test_another_number_of_overviews_is_another_shape(tmp_path, database):
    cube = Cube(tmp_path, database, chunk="<overviews>2</overviews>")
    cube.ingest("--date", "2024-01-01", cube.image(noise(1)))
    text = cube.config.read_text()
    for number in (0, 1, 3):
        cube.config.write_text(text.replace("<overviews>2<", f"<overviews>{number}<"))
        done = cube.run(word="dates")
        assert done.returncode == 1 and "another shape" in done.stderr and "2 overviews" in done.stderr, done.stderr
    cube.config.write_text(text.replace("<overviews>", "<chunk>25 26 4</chunk><overviews>"))
    done = cube.run(word="dates")
    assert done.returncode == 1 and "even columns and rows" in done.stderr, done.stderr
    cube.config.write_text(text)
    assert cube.listed() == ["2024-01-01"]


class Reader:
    """A connection of one's own to a running server."""

    def __init__(self, server):
        self.client = Client(server.address)

    def get(self, path, query):
        return self.client.get(path.encode(), query.encode())


def stacks(cube, version, count):
    """Dates whose pixels all say which version and date they are of."""
    paths = []
    for i in range(count):
        array = numpy.full((cube.height, cube.width, 3), (version, i, 99), numpy.uint8)
        array[..., 2] = numpy.arange(cube.width) % 256
        paths.append(cube.image(array, name=f"v{version}_{i:03d}.png"))
    return paths


def check_dates(server, cube, days, versions):
    for day in days:
        pixels = shown(server, cube, day)
        found = set(map(tuple, pixels[..., [0, 1, 3]].reshape(-1, 3)))
        assert len(found) == 1, (day, found)  # all of one version
        version, index, alpha = found.pop()
        assert version in versions and alpha == 255 and index == int((numpy.datetime64(day) - numpy.datetime64("2024-01-01")).astype(int))
        assert (pixels[..., 2] == numpy.arange(cube.width) % 256).all()


def check_overviews(server, cube, days, versions):
    for day in days:
        pixels = smaller(server, cube, day, 4)
        found = set(map(tuple, pixels[..., [0, 1, 3]].reshape(-1, 3)))
        assert len(found) == 1 and found.pop()[0] in versions, (day, found)


@pytest.mark.parametrize("store", STORES)
def test_readers_see_each_date_wholly(tmp_path, database, server_of, store):
    """One version after the other is ingested while others read: each date is of one version, and never gone."""
    cube = Cube(tmp_path, database, store, size=(160, 120), chunk="<overviews>2</overviews>", resample="bilinear")
    server = server_of(cube)
    versions, count = range(4), 24
    paths = {version: stacks(cube, version, count) for version in versions}
    stop, writing, wrong, reads = threading.Event(), threading.Event(), [], [0]

    def read(seed):
        chooser, seen, client = random.Random(seed), 0, Reader(server)
        while not stop.is_set() and not wrong:
            try:
                busy = writing.is_set()
                body = client.get("/", "SERVICE=WMS&VERSION=1.3.0&REQUEST=GetCapabilities").body
                text = ElementTree.fromstring(body).find(".//{*}Layer/{*}Dimension").text or ""
                days = [day for day in text.split(",") if re.match(r"2024-\d\d-\d\d$", day)]
                assert len(days) >= seen, "a date has gone"
                seen = len(days)
                check_dates(client, cube, chooser.sample(days, min(3, len(days))), versions)
                check_overviews(client, cube, chooser.sample(days, min(3, len(days))), versions)
                if days:
                    line = json.loads(client.get("/", info_query(cube, 77, 55, 1, "2024", "application/json")).body)
                    assert len(line["values"]) >= len(days)
                    for i, value in enumerate(line["values"]):
                        assert value["value"][0] in versions and value["value"][1:] == [i, 77]
                reads[0] += busy and writing.is_set()  # all of it beside an ingestion
            except Exception as error:  # pylint: disable=broad-except
                wrong.append(error)

    readers = [threading.Thread(target=read, args=(i,)) for i in range(3)]
    for reader in readers:
        reader.start()
    turn = 0
    while (turn < 2 * len(versions) or reads[0] < 30) and turn < 60 and not wrong:
        writing.set()
        cube.ingest("--cachelimit", "1M", "--date", "2024-01-01/P1D", *paths[turn % len(versions)])
        writing.clear()
        turn += 1
    stop.set()
    for reader in readers:
        reader.join()
    assert not wrong, wrong[0]
    assert reads[0] >= 10, "nothing was read during an ingestion"
    check_dates(server, cube, cube.listed(), [(turn - 1) % len(versions)])


@pytest.mark.parametrize("store", STORES)
def test_a_killed_ingestion_can_be_run_again(tmp_path, database, server_of, store):
    cube = Cube(tmp_path, database, store, size=(160, 120), chunk="<overviews>2</overviews>", resample="bilinear")
    server = server_of(cube)
    first, second = stacks(cube, 1, 40), stacks(cube, 2, 40)
    command = cube.command("--quiet", "--cachelimit", "1M", "--date", "2024-01-01/P1D")
    began = time.monotonic()
    assert subprocess.run(command + list(map(str, first[:8])), check=False).returncode == 0
    whole = (time.monotonic() - began) * 3
    chooser = random.Random(store)
    killed = 0
    for _ in range(6):
        ingestion = subprocess.Popen(command + list(map(str, second)), start_new_session=True)
        time.sleep(chooser.uniform(0, whole))
        ingestion.send_signal(signal.SIGKILL)
        killed += ingestion.wait() == -signal.SIGKILL
        days = cube.listed()
        assert len(days) >= 8
        check_dates(server, cube, chooser.sample(days, 8), (1, 2))
        check_overviews(server, cube, chooser.sample(days, 8), (1, 2))
    assert killed > 0
    cube.ingest("--cachelimit", "1M", "--date", "2024-01-01/P1D", *second)
    assert len(cube.listed()) == 40
    check_dates(server, cube, cube.listed(), (2,))
    check_overviews(server, cube, cube.listed(), (2,))


@pytest.mark.parametrize("store", STORES)
def test_overviews_of_a_cube_that_has_none(tmp_path, database, server_of, store):
    """Made later, whenever that is cut off; a server shows the cube without any all the while."""
    cube = Cube(tmp_path, database, store, size=(640, 480), chunk="<overviews>0</overviews>", resample="bilinear")
    for i in range(24):
        array = noise(i, 640, 480)
        cube.lay(str(numpy.datetime64("2024-01-01") + i), array)
        cube.image(array)
    cube.ingest("--date", "2024-01-01/P1D", *(tmp_path / f"image{i}.png" for i in range(24)))
    plain = server_of(cube)
    text = cube.config.read_text()
    cube.config.write_text(text.replace("<overviews>0<", "<overviews>2<"))
    done = cube.run(word="dates")
    assert done.returncode == 1 and "mapcache cube overviews" in done.stderr
    chooser = random.Random(store)
    ended = set()
    for delay in (0.02, 0.05, 0.1, 0.2):
        making = subprocess.Popen(cube.command("--quiet", "--cachelimit", "1M", word="overviews"), start_new_session=True)
        time.sleep(chooser.uniform(0, delay))
        making.send_signal(signal.SIGKILL)
        ended.add(making.wait())
        done = cube.run(word="dates")
        if done.returncode == 0:
            break  # all are made
        assert "mapcache cube overviews" in done.stderr, done.stderr
        answer = plain.get("/", map_query(cube, "2024-01-03"))
        # SQLite: a commit that is in the log when its writer is killed, but not in the shared memory beside it, is seen once the log is
        # recovered, which is when the last one who has the file open lets go of it.
        if cube.run(word="dates").returncode == 0:
            break
        assert (picture(answer) == cube.dates["2024-01-03"]).all()
    assert -signal.SIGKILL in ended, ended
    with subprocess.Popen(cube.command("--json", "--cachelimit", "1M", word="overviews"), stdout=subprocess.PIPE, text=True) as making:
        making.stdout.readline()  # some dates are done
        making.send_signal(signal.SIGINT)
        lines = making.stdout.readlines()
    assert making.returncode == 2 or (making.returncode == 0 and cube.run(word="dates").returncode == 0), lines
    done = cube.run("--json", word="overviews")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["dates"] in (24, 0)
    again = cube.run(word="overviews")
    assert again.returncode == 0 and again.stdout.startswith("the cube has its 2 overviews already")
    server = server_of(cube)
    for day, expected in cube.dates.items():
        assert (smaller(server, cube, day, 2) == halved(expected)).all(), day
    cube.lay("2024-01-02", noise(77, 100, 80), 200, 100)
    cube.ingest("--date", "2024-01-02", cube.image(noise(77, 100, 80), 200, 100))
    assert (smaller(server, cube, "2024-01-02", 2) == halved(cube.dates["2024-01-02"])).all()
    for options, words in ((["--date", "2024-01-01", tmp_path / "image1.png"], "only ingest takes images"), (["--cachelimit", "x"], "cachelimit")):
        done = cube.run(*options, word="overviews")
        assert done.returncode == 1 and words in done.stderr


# Writes pages that do not fit into SQLite's memory, and is killed before it commits: the journal has to go back.
CUT_OFF = """
import os, signal, sqlite3, sys
file = sqlite3.connect(sys.argv[1], isolation_level=None)
file.execute("PRAGMA cache_size=1")
file.execute("BEGIN IMMEDIATE")
file.execute("UPDATE chunks SET data = zeroblob(length(data))")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_server_reads_on_after_a_writer_was_cut_off_in_the_middle_of_a_write(tmp_path, database, server_of):
    cube = Cube(tmp_path, database, "sqlite3", size=(640, 480))
    array = noise(1, 640, 480)
    cube.lay("2024-01-01", array)
    cube.ingest("--date", "2024-01-01", cube.image(array))
    server = server_of(cube)
    query = map_query(cube, "2024-01-01").encode()
    with concurrent.futures.ThreadPoolExecutor(8) as clients:  # so that several handles are open
        for answer in clients.map(lambda _: Client(server.address).get(b"/", query), range(32)):
            assert (picture(answer) == cube.dates["2024-01-01"]).all()
    cut_off = subprocess.run([sys.executable, "-c", CUT_OFF, tmp_path / "cube.db"], check=False)
    assert cut_off.returncode == -signal.SIGKILL
    assert (tmp_path / "cube.db-journal").stat().st_size > 0
    assert (shown(server, cube, "2024-01-01") == cube.dates["2024-01-01"]).all()
    assert not (tmp_path / "cube.db-journal").exists()


def test_an_ingestion_that_waits_for_another_can_be_interrupted(tmp_path, database):
    cube = Cube(tmp_path, database)
    path = cube.image(noise(1))
    other = subprocess.Popen([program("psql"), "-q", database.connection()], stdin=subprocess.PIPE, text=True)
    try:
        lock = f"hashtext('mapcache cube'), hashtext('\"{cube.table}\"')"
        other.stdin.write(f"select pg_advisory_lock({lock});\n")
        other.stdin.flush()
        locks = "select count(*) from pg_locks where locktype = 'advisory' and granted = "
        wait_until(lambda: database.sql(locks + "true") == ["1"], "another ingestion")
        ingestion = subprocess.Popen(cube.command("--date", "2024-01-01", path))
        wait_until(lambda: database.sql(locks + "false") == ["1"], "waiting for it")
        ingestion.send_signal(signal.SIGINT)
        assert ingestion.wait(patience(60)) == 2
    finally:
        other.stdin.close()
        other.wait(patience(60))
    assert cube.listed() == []
    cube.ingest("--date", "2024-01-01", path)
    assert len(cube.listed()) == 1


def has_open(process, path):
    for descriptor in pathlib.Path(f"/proc/{process}/fd").iterdir():
        try:
            if os.readlink(descriptor) == str(path):
                return True
        except OSError:  # closed meanwhile
            pass
    return False


def test_an_ingestion_that_waits_for_a_file_can_be_interrupted(tmp_path, database):
    """It would wait for a minute."""
    cube = Cube(tmp_path, database, "sqlite3")
    path = cube.image(noise(1))
    cube.ingest("--date", "2024-01-01", path)
    other = sqlite3.connect(tmp_path / "cube.db", isolation_level=None)
    other.execute("begin immediate")
    ingestion = subprocess.Popen(cube.command("--date", "2024-01-02", path))
    wait_until(lambda: has_open(ingestion.pid, tmp_path / "cube.db"), "the file is open")
    ingestion.send_signal(signal.SIGINT)
    assert ingestion.wait(patience(40)) == 2
    other.execute("rollback")
    other.close()
    assert len(cube.listed()) == 1


def test_a_store_does_not_grow_by_corrections(tmp_path, database):
    for store in STORES:
        home = tmp_path / store
        home.mkdir()
        cube = Cube(home, database, store, size=(320, 240))
        paths = stacks(cube, 1, 12)
        sizes = [cube.ingest("--date", "2024-01-01/P1D", *paths)["bytes_after"]]
        for turn in range(6):
            report = cube.ingest("--date", "2024-01-01/P1D", *paths[turn:turn + 4])
            assert report["corrected"] == 4 and report["rewritten"] == report["chunks"] > 0
            sizes.append(report["bytes_after"])
        part = cube.ingest("--date", "2024-01-06", cube.image(noise(1, 20, 20), 100, 100))
        assert part["chunks"] == part["rewritten"] <= 4
        assert sizes[-1] <= sizes[2] * 1.1 and sizes[-1] <= sizes[0] * 2, sizes


def test_bad_images_are_named_and_left_out(tmp_path, database, server_of):
    cube = Cube(tmp_path, database)
    good = [cube.image(noise(i), name=f"good{i}_2024010{i}.png") for i in range(1, 3)]
    cut = cube.image(noise(3), name="cut_20240103.png")
    cut.write_bytes(cut.read_bytes()[:-4000])
    other = cube.image(noise(4), name="other_20240104.png")
    beside = cube.image(noise(4, 20, 20), 30, 30, name="beside_20240104.png")
    other.with_suffix(".pgw").write_text("50\n0\n0\n-50\n1000\n9000\n")
    between = cube.image(noise(5), 0.4, 0, name="between_20240105.png")
    outside = cube.image(noise(6), WIDTH, 0, name="outside_20240106.png")
    nowhere = cube.image(noise(7, 30, 30), name="nowhere_20240107.png")
    nowhere.with_suffix(".pgw").unlink()
    twice = [cube.image(noise(8), name=f"{name}_20240108.png") for name in ("one", "two")]
    nonsense = tmp_path / "nonsense_20240109.png"
    nonsense.write_bytes(b"this is no image")
    missing = tmp_path / "missing_20240110.png"
    elsewhere = cube.image(noise(11), name="elsewhere_20240111.png")
    elsewhere.with_suffix(".prj").write_text(UTM)
    good[0].with_suffix(".prj").write_text(WEB_MERCATOR)
    bad = [cut, other, between, outside, nowhere, twice[1], nonsense, missing, elsewhere]
    paths = [good[0], *bad, beside, twice[0], good[1]]
    done = cube.run("--time", "_%Y%m%d", *paths)
    assert done.returncode == 3, done.stderr
    told = [line for line in done.stderr.splitlines() if "left out" in line]
    assert len(told) == len(bad)
    for path in bad:
        assert any(str(path) in line for line in told), path
    assert cube.listed() == ["2024-01-01", "2024-01-02"]
    assert "11 images were left out" in done.stdout
    server = server_of(cube)
    cube.lay("2024-01-02", noise(2))
    assert (shown(server, cube, None) == cube.dates["2024-01-02"]).all()
    # What the cube has at a date stays when its correction is bad.
    done = cube.run("--date", "2024-01-02", cut)
    assert done.returncode == 3 and (shown(server, cube, "2024-01-02") == cube.dates["2024-01-02"]).all()


@pytest.mark.parametrize("place", ["slot = 70000", "slot = -1", "t = -3", "t = 2147483647"])
def test_a_date_whose_row_was_changed_by_hand_is_refused(tmp_path, database, place):
    cube = Cube(tmp_path, database, "sqlite3")
    image = cube.image(noise(1))
    cube.ingest("--date", "2024-01-01", image)
    with sqlite3.connect(tmp_path / "cube.db") as file:
        file.execute(f"update chunks_dates set {place}")
    file.close()
    done = cube.run("--date", "2024-01-01", image)
    assert done.returncode == 1 and "a date's row" in done.stderr, (done.returncode, done.stderr)


def test_options_and_stores_that_cannot_be(tmp_path, database):
    cube = Cube(tmp_path, database)
    image = cube.image(noise(1))
    for options, words in ((["--date", "soon", image], "soon"), ([image], "--time"), (["--date", "2024-01-01"], "no images"),
                           (["--time", "_%Y", image], "no time as in"), (["--date", "2024-01-01/never", image, image], "never"),
                           (["--cachelimit", "1", image], "cachelimit"), (["--date", "2024", "--at", "here", image], "at")):
        done = cube.run(*options)
        assert done.returncode == 1 and words in done.stderr, (options, done.stderr)
    assert cube.listed() == []
    cube.ingest("--date", "2024-01-01", image)
    text = cube.config.read_text()
    cube.config.write_text(text.replace("<bands>rgb</bands>", "<bands>gray</bands>"))
    for done in (cube.run(word="dates"), cube.run("--date", "2024-01-02", image)):
        assert done.returncode == 1 and "another shape" in done.stderr
    cube.config.write_text(text.replace("<connection>", "<connection>port=1 "))
    full = Cube(tmp_path, database, "sqlite3")
    full.config.write_text(full.config.read_text().replace(f"{tmp_path}/cube.db", "/dev/full/cube.db"))
    done = full.run("--date", "2024-01-01", image)
    assert done.returncode == 1 and "cannot be opened" in done.stderr


def test_many_dates_in_a_chunk_are_spooled(tmp_path, database, server_of):
    cube = Cube(tmp_path, database, size=(200, 150), chunk="<chunk>32 32 64</chunk>")
    paths = []
    for i in range(40):
        array = noise(i, 200, 150)
        paths.append(cube.image(array))
        cube.lay(str(numpy.datetime64("2024-01-01") + i), array)
    report = cube.ingest("--cachelimit", "1M", "--scratch", tmp_path, "--date", "2024-01-01/P1D", *paths)
    assert report["spooled"] and report["chunks"] == 7 * 5
    server = server_of(cube)
    for day in ("2024-01-01", "2024-01-20", "2024-02-09"):
        assert (shown(server, cube, day) == cube.dates[day]).all()
    done = cube.run("--cachelimit", "1M", "--scratch", tmp_path / "nowhere", "--date", "2025-01-01/P1D", *paths)
    assert done.returncode == 1 and "scratch file" in done.stderr and len(cube.listed()) == 40


def test_memory_is_bounded_where_images_are_wide_and_chunks_tall(tmp_path, database):
    """A row of chunks is 268 MB as it is decoded, and what is stored is a transaction of 67 MB."""
    width, height = 1 << 17, 512
    cube = Cube(tmp_path, database, "sqlite3", size=(width, height), bands="gray", chunk="<chunk>512 512 1</chunk><overviews>1</overviews>")
    path = tmp_path / "wide.png"
    Image.fromarray(numpy.tile(numpy.arange(width, dtype=numpy.uint8), (height, 1))).save(path, compress_level=1)
    command = cube.command("--json", "--cachelimit", "16M", "--scratch", tmp_path, "--date", "2024-01-01", path)
    # By a small process in between: what its parent has at the moment of a fork counts as a program's own.
    script = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    done = subprocess.run([sys.executable, "-c", script, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *_, report, kilobytes = done.stdout.splitlines()
    assert json.loads(report)["spooled"] and int(kilobytes) < 100 * 1024, done.stdout
    with sqlite3.connect(tmp_path / "cube.db") as file:
        for x in (0, 77, 255):
            expected = bytes(i % 256 for i in range(512)) * 512
            assert file.execute("select data from chunks where y = 0 and x = ?", (x,)).fetchone()[0] == expected
        assert file.execute("select count(*), sum(length(data)) from chunks where y > 0").fetchone() == (128, width * height // 4)
    file.close()


def bounded(size):
    """As on a small file system: files cannot grow beyond it."""

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


def test_no_room_is_told_and_whole_dates_stay(tmp_path, database, server_of):
    cube = Cube(tmp_path, database, "sqlite3", size=(160, 120))
    first, second = stacks(cube, 1, 12), stacks(cube, 2, 40)
    cube.ingest("--date", "2024-01-01/P1D", *first)
    command = cube.command("--cachelimit", "1M", "--date", "2024-01-01/P1D", *second)
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=bounded(1300000), check=False)
    assert done.returncode == 1 and "cannot do what is asked" in done.stderr, done.stderr
    server = server_of(cube)
    assert 12 <= len(cube.listed()) < 40
    check_dates(server, cube, cube.listed(), (1, 2))
    cube.ingest("--cachelimit", "1M", "--date", "2024-01-01/P1D", *second)
    assert len(cube.listed()) == 40
    check_dates(server, cube, cube.listed(), (2,))
    home = tmp_path / "deep"
    home.mkdir()
    deep = Cube(home, database, "sqlite3", size=(160, 120), chunk="<chunk>32 32 64</chunk>")
    command = deep.command("--cachelimit", "1M", "--scratch", home, "--date", "2024-01-01/P1D", *second)
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=bounded(500000), check=False)
    assert done.returncode == 1 and "scratch file" in done.stderr and deep.listed() == []


def test_two_ingestions_at_once_follow_each_other(tmp_path, database):
    cube = Cube(tmp_path, database, size=(160, 120))
    paths = [stacks(cube, version, 20) for version in (1, 2)]
    running = [subprocess.Popen(cube.command("--quiet", "--cachelimit", "1M", "--date", f"202{i}-01-01/P1D", *paths[i]))
               for i in range(2)]
    assert [process.wait(patience(60)) for process in running] == [0, 0]
    assert len(cube.listed()) == 40
    slots = database.sql(f'select count(distinct (t, slot)) from "{cube.table}_dates"')
    assert slots == ["40"]


def test_a_database_that_is_away_and_back(tmp_path, database, server_of):
    cube = Cube(tmp_path, database)
    image = cube.image(noise(1))
    cube.ingest("--date", "2024-01-01", image)
    cube.lay("2024-01-01", noise(1))
    server = server_of(cube)
    assert (shown(server, cube, None) == cube.dates["2024-01-01"]).all()
    database.stop()
    try:
        for query in (map_query(cube, "2024-01-01"), info_query(cube, 1, 1, 1, "2024", "text/csv")):
            answer = server.get("/", query)
            assert answer.status == 503 and b"port=" not in answer.body, answer.body
        done = cube.run("--date", "2024-01-02", image)
        assert done.returncode == 1 and "cannot be reached" in done.stderr and "swordfish" not in done.stderr
    finally:
        database.start()
    wait_until(lambda: server.get("/", map_query(cube, "2024-01-01")).status == 200, "the database is back")
    assert (shown(server, cube, None) == cube.dates["2024-01-01"]).all()

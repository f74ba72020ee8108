"""The seeder's place: killed, interrupted or failing runs go on where they were; lists of tiles; counting; lines of JSON."""
import json
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import time

import pytest
from conftest import SOON, wait_until
from origin import Origin
from patience import patience

BUILD = pathlib.Path(os.environ.get("MAPCACHE_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build" / "release"))
SEED = str(BUILD / "bin" / "mapcache_seed")
GRID = "GoogleMapsCompatible"


class Site:
    def __init__(self, folder, source='type="dummy"/>', cache="sqlite3", store=None):
        self.folder = folder
        self.folder.mkdir(exist_ok=True)
        self.config = folder / "mapcache.xml"
        self.config.write_text(f"""<mapcache>
  <source name="any" {source}
  <cache name="main" type="{cache}">{store or f"<dbfile>{folder}/tiles.sqlite3</dbfile>"}</cache>
  <tileset name="world"><source>any</source><cache>main</cache><grid>{GRID}</grid><grid>WGS84</grid><format>PNG</format><metatile>2 2</metatile></tileset>
  <service type="wmts" enabled="true"/>
  <lock_dir>{folder}</lock_dir>
</mapcache>
""")
        self.place = folder / "place"

    def command(self, *options):
        return [SEED, "-c", str(self.config), "-t", "world", *map(str, options)]

    def seed(self, *options):
        return subprocess.run(self.command(*options), capture_output=True, text=True, timeout=patience(100))

    def start(self, *options):
        return subprocess.Popen(self.command(*options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def tiles(self):
        with sqlite3.connect(self.folder / "tiles.sqlite3", timeout=patience(60)) as db:
            assert db.execute("pragma integrity_check").fetchone() == ("ok",)
            own = db.execute("select count(*) from pragma_table_info('tiles') where name = 'z'").fetchone() == (1,)
            return dict((row[:3], row[3]) for row in db.execute("select z, x, y, data from tiles" if own else
                        "select zoom_level, tile_column, tile_row, tile_data from tiles"))

    def done(self):
        """What the checkpoint says, and that it is whole."""
        lines = self.place.read_text().splitlines()
        assert lines[0] == "mapcache checkpoint 1" and lines[-1] == "end", lines
        return int(lines[2].split()[1])


def in_order(site):
    """The tiles of each metatile, in the order in which one thread has stored them."""
    with sqlite3.connect(site.folder / "tiles.sqlite3") as db:
        metatiles = {}
        for z, x, y in db.execute("select z, x, y from tiles order by rowid"):
            metatiles.setdefault((z, x // 2, y // 2), []).append((z, x, y))
    return list(metatiles.values())


@pytest.mark.parametrize("order", ["drill-down", "scanline", "hilbert"])
@pytest.mark.parametrize("workers", ["-n", "-p"])
def test_killed_at_any_moment_it_goes_on(tmp_path, order, workers):
    whole = Site(tmp_path / "whole")
    options = ["-z", "0,7", "-i", order]
    if order == "hilbert":  # and in an area
        (tmp_path / "area").write_text("POLYGON((-170 -80, 170 -60, 160 80, -175 84, -20 0, -170 -80))")
        options += ["--area", tmp_path / "area", "--area-srs", "EPSG:4326"]
    assert whole.seed(*options).returncode == 0
    expected, walk = whole.tiles(), in_order(whole)
    assert sum(map(len, walk)) == len(expected)
    chance = random.Random(order + workers)
    site = Site(tmp_path / "killed")
    kept = 0
    for _ in range(5):
        run = site.start(*options, workers, "2", "--checkpoint", site.place, "--resume")
        time.sleep(chance.uniform(0.05, 0.6))
        run.send_signal(signal.SIGKILL)
        run.communicate()
        if site.place.exists():  # what it says is done is there, in the order of the walk
            assert site.done() >= kept
            kept = site.done()
            stored = site.tiles() if kept > 0 else {}  # before that there may be no table
            assert all(tile in stored for metatile in walk[:kept] for tile in metatile)
        else:  # it had not begun, or was through: the next one begins anew
            kept = 0
    result = site.seed(*options, workers, "2", "--checkpoint", site.place, "--resume")
    assert result.returncode == 0, result.stdout + result.stderr
    assert site.tiles() == expected
    assert not site.place.exists()  # nothing is left to be done


def test_an_interrupt_ends_soon_and_leaves_the_place(tmp_path):
    for end in signal.SIGINT, signal.SIGTERM:
        site = Site(tmp_path / end.name)
        run = site.start("-z", "0,9", "-n", "3", "--checkpoint", site.place)
        wait_until(lambda there=site: there.place.exists() and there.done() > 0, "a checkpoint")
        began = time.monotonic()
        run.send_signal(end)
        out, err = run.communicate(timeout=patience(60))
        assert run.returncode == 0 and "seeded" in out, out + err
        assert time.monotonic() - began < patience(SOON)
        assert 0 < site.done() * 4 <= len(site.tiles()) + 12  # the top levels have fewer tiles
        again = site.seed("-z", "0,9", "--checkpoint", site.place)
        assert again.returncode == 1 and "--resume" in again.stderr
        other = site.seed("-z", "0,8", "--checkpoint", site.place, "--resume")
        assert other.returncode == 1 and "other tiles" in other.stderr


def test_a_damaged_checkpoint_is_refused(tmp_path):
    site = Site(tmp_path)
    for text in "", "nonsense\n", "mapcache checkpoint 1\nplan 12\n", "mapcache checkpoint 1\nplan 12\ndone 7\n", "\0" * 500:
        site.place.write_text(text)
        result = site.seed("-z", "0,1", "--checkpoint", site.place, "--resume")
        assert result.returncode == 1 and "no checkpoint" in result.stderr, result.stderr


def from_origin(folder, url):
    return Site(folder, f"""type="wms"><getmap><params><FORMAT>image/png</FORMAT><LAYERS>red</LAYERS></params></getmap>
    <http><url>{url}</url></http></source>""")


def test_what_failed_is_kept_and_tried_again(tmp_path):
    with Origin() as origin:
        site = from_origin(tmp_path, origin.url("/flaky/12/wms?"))
        result = site.seed("-z", "0,2", "-P", "100", "--checkpoint", site.place)
        assert result.returncode == 0 and result.stderr.count("failed to seed") == 6, result.stderr
        assert site.place.read_text().count("failed ") == 6
        result = site.seed("-z", "0,2", "--checkpoint", site.place, "--resume")
        assert result.returncode == 0, result.stdout + result.stderr
        assert len(site.tiles()) == 21 and not site.place.exists()


def test_a_failure_is_tried_again_while_it_runs(tmp_path):
    with Origin() as origin:
        site = from_origin(tmp_path, origin.url("/flaky/8/wms?"))
        result = site.seed("-z", "0,0", "--retries", "2", "-P", "100")
        assert result.stderr.count("failed to seed") == 1 and not (tmp_path / "tiles.sqlite3").exists()
        result = site.seed("-z", "0,0", "--retries", "2")
        assert result.returncode == 0 and "failed" not in result.stderr and len(site.tiles()) == 1, result.stderr


def test_lists_of_tiles(tmp_path):
    """osm2pgsql writes z/x/y and render_list reads x y z, both with rows from the north."""
    site = Site(tmp_path)
    tiles = tmp_path / "expired"
    tiles.write_text("3/1/2\n3/1/2\n# a comment\n\n2/9/9\nnonsense\n5 6 4\n3/1/2 9\n4/99999999999/1\n" + "x" * 255 + "1/0/0\n1/0/0\0 \n3/1/2\n")
    result = site.seed("--list", tiles)
    assert result.returncode == 3, result.stdout + result.stderr
    assert [line.split(":")[1] for line in result.stderr.splitlines()] == ["5", "6", "8", "9", "10", "11"]
    assert "seeded 2 metatiles" in result.stdout
    assert set(site.tiles()) == {(3, x, y) for x in (0, 1) for y in (4, 5)} | {(4, x, y) for x in (4, 5) for y in (8, 9)}
    tiles.write_text("3/1/2\n4/5/6\n")
    assert site.seed("--list", tiles, "-m", "delete", "-z", "4,4").returncode == 0
    assert {key[0] for key in site.tiles()} == {3}


@pytest.mark.parametrize("options", [[], ["--dry-run"]])
def test_a_list_that_cannot_be_read_is_no_empty_one(tmp_path, options):
    site = Site(tmp_path / "site")
    result = site.seed("--list", tmp_path, *options)  # a folder can be opened, and not read
    assert result.returncode == 1 and "Is a directory" in result.stderr, result.stdout + result.stderr


def test_a_list_that_has_changed_is_not_resumed(tmp_path):
    """The place of a run is a number of lines: of another list they are other tiles."""
    site = Site(tmp_path)
    tiles = tmp_path / "expired"
    tiles.write_text("".join(f"9/{2 * n}/0\n" for n in range(200)))
    run = site.start("--list", tiles, "--checkpoint", site.place, "--rate-limit", "20")
    wait_until(lambda: site.place.exists() and site.done() > 0, "a checkpoint")
    run.terminate()
    run.communicate(timeout=patience(30))
    same = tiles.read_text()
    tiles.write_text("7/1/1\n" + same)
    result = site.seed("--list", tiles, "--checkpoint", site.place, "--resume")
    assert result.returncode == 1 and "other tiles" in result.stderr, result.stdout + result.stderr
    tiles.write_text(same)
    assert site.seed("--list", tiles, "--checkpoint", site.place, "--resume").returncode == 0
    assert len(site.tiles()) == 800
    piped = subprocess.run(site.command("--list", "/dev/stdin", "--checkpoint", site.place), input=same, capture_output=True, text=True,
                           timeout=patience(100))
    assert piped.returncode == 1 and "--checkpoint" in piped.stderr
    assert subprocess.run(site.command("--list", "/dev/stdin"), input=same, capture_output=True, text=True, timeout=patience(100)).returncode == 0


@pytest.mark.parametrize("option", ["--list", "--retry-failed"])
def test_the_list_of_failures_does_not_empty_the_list_of_tiles(tmp_path, option):
    site = Site(tmp_path)
    tiles, other = tmp_path / "tiles", tmp_path / "other"
    tiles.write_text("0,0,0\n")
    other.symlink_to(tiles)
    for name in tiles, other:
        result = site.seed(option, tiles, "-L", name)
        assert result.returncode == 1 and "would empty" in result.stderr
        assert tiles.read_text() == "0,0,0\n"


def test_a_checkpoint_that_cannot_be_written_is_said_at_once(tmp_path):
    site = Site(tmp_path)
    result = site.seed("-z", "0,1", "--checkpoint", tmp_path / "none" / "place")
    assert result.returncode == 1 and "cannot be written" in result.stderr
    assert not (tmp_path / "tiles.sqlite3").exists()


def test_two_runs_do_not_share_a_place(tmp_path):
    """As two of a timetable do, when the first takes longer than its turn."""
    site = Site(tmp_path)
    first = site.start("-z", "0,9", "--checkpoint", site.place, "--resume", "--rate-limit", "200")
    wait_until(lambda: site.place.exists() and site.done() > 0, "a checkpoint")
    for _ in range(20):  # it is replaced meanwhile
        second = site.seed("-z", "0,9", "--checkpoint", site.place, "--resume")
        assert second.returncode == 1 and "another run" in second.stderr, second.stderr
    assert first.poll() is None
    first.kill()
    first.communicate()
    assert "other tiles" in site.seed("-z", "0,9", "--checkpoint", site.place, "--resume", "-e", "0,0,1,1").stderr
    so_far = site.done()
    third = site.start("-z", "0,9", "--checkpoint", site.place, "--resume")
    wait_until(lambda: site.done() > so_far, "it goes on")
    third.terminate()
    third.communicate(timeout=patience(30))
    assert third.returncode == 0


@pytest.mark.parametrize("place", ["0,0,99", "9,0,2", "0,9,2", "1,0,2"])
def test_a_checkpoint_with_failures_outside_of_the_run_is_refused(tmp_path, place):
    with Origin() as origin:
        site = from_origin(tmp_path, origin.url("/flaky/12/wms?"))
        assert site.seed("-z", "0,2", "-P", "100", "--checkpoint", site.place).returncode == 0
    text = site.place.read_text()
    site.place.write_text(text[:text.index("failed ")] + f"failed {place}\nend\n")
    result = site.seed("-z", "0,2", "--checkpoint", site.place, "--resume")
    assert result.returncode == 1 and "no checkpoint" in result.stderr, result.stdout + result.stderr


def test_failures_that_cannot_be_listed_are_told(tmp_path):
    with Origin() as origin:
        site = from_origin(tmp_path, origin.url("/flaky/12/wms?"))
        result = site.seed("-z", "0,2", "-P", "100", "-L", "/dev/full")
        assert result.returncode == 1 and "/dev/full" in result.stderr.splitlines()[-1], result.stderr


def test_counting_without_doing(tmp_path):
    site = Site(tmp_path)
    result = site.seed("-z", "0,4", "--dry-run", "--json")
    counted = json.loads(result.stdout)
    assert result.returncode == 0 and counted["tiles"] == sum(4**z for z in range(5)) and counted["metatiles"] == 1 + 1 + 4 + 16 + 64
    assert "bytes" not in counted and counted["stored"] == 0
    assert site.seed("-z", "0,4").returncode == 0
    size = sum(len(data) for data in site.tiles().values())
    counted = json.loads(site.seed("-z", "0,4", "--dry-run", "--json").stdout)
    assert counted["stored"] == counted["samples"] > 50 and 0.5 * size < counted["bytes"] < 2 * size
    assert "all" in site.seed("-z", "0,4", "--dry-run").stdout


def test_progress_as_lines_of_json(tmp_path):
    site = Site(tmp_path)
    result = site.seed("-z", "0,6", "--json")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert lines[-1]["exit"] == 0 and lines[-1]["done"] == lines[-1]["expected"] and lines[-1]["tiles"] == sum(4**z for z in range(7))
    assert all("exit" not in line for line in lines[:-1])


@pytest.mark.parametrize("cache", ["sqlite3", "mbtiles", "geopackage"])
def test_deleting_the_world_from_a_sparse_cache(tmp_path, cache):
    """What is stored is listed, not what could be: zooms 0 to 18 of the world have 92 thousand million tiles."""
    site = Site(tmp_path, cache=cache)
    peak = "import resource, subprocess, sys; code = subprocess.call(sys.argv[1:]); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(code)"

    def delete():
        result = subprocess.run(["python3", "-c", peak, *site.command("-m", "delete", "-z", "0,18", "-n", "2")], capture_output=True,
                                text=True, timeout=patience(100))
        assert result.returncode == 0, result.stdout + result.stderr
        assert int(result.stdout.splitlines()[-1]) < 64 * 1024
        return result.stdout

    assert "0 tiles needed to be seeded" in delete()  # there is not even a file
    assert site.seed("-z", "0,6").returncode == 0
    for z, x, y in ((12, 100, 200), (18, 5, 7), (18, 262143, 262143)):
        tiles = tmp_path / "list"
        tiles.write_text(f"{z}/{x}/{y}\n")
        assert site.seed("--list", tiles).returncode == 0
    stored = {(z, x // 2, y // 2) for z, x, y in site.tiles()}
    assert f"seeded {len(stored)} metatiles" in delete()
    assert site.tiles() == {}

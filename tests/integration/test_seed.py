"""The seeder: which tiles it makes, compared with Debian's mapcache_seed; its output lines and exit codes."""
import json
import os
import pathlib
import pty
import re
import signal
import sqlite3
import subprocess
import time

import pytest
from conftest import wait_until
from patience import patience
from peers import peer

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("MAPCACHE_BUILD", ROOT / "build" / "release"))
OURS, PEER = str(BUILD / "bin" / "mapcache_seed"), str(peer("/usr/bin/mapcache_seed"))
QUARTER = "0,0,20037508.342789248,20037508.342789248"
SUMMARY = re.compile(r"\nseeded (\d+) metatiles \((\d+) total tiles, (\d+) non-empty tiles\) in \d+\.\d seconds at "
                     r"\d+\.\d tiles/sec \(\d+\.\d non-empty tiles/sec\)\n")


class Site:
    def __init__(self, folder, name):
        self.folder = folder / name
        self.folder.mkdir()
        self.config = self.folder / "mapcache.xml"
        self.config.write_text(f"""<?xml version="1.0"?>
<mapcache>
  <grid name="from-upper-left"><srs>EPSG:3857</srs><extent>0 0 1000 700</extent><units>m</units><size>100 100</size>
    <resolutions>5 2.5 1.1 0.5</resolutions><origin>top-left</origin></grid>
  <source name="any" type="dummy"/>
  <source name="absent" type="wms"><getmap><params><FORMAT>image/png</FORMAT><LAYERS>x</LAYERS></params></getmap>
    <http><url>http://127.0.0.1:9/</url></http></source>
  <cache name="main" type="sqlite3"><dbfile>{self.folder}/{{tileset}}.sqlite3</dbfile></cache>
  <tileset name="world"><source>any</source><cache>main</cache><grid>GoogleMapsCompatible</grid><grid>WGS84</grid>
    <grid>from-upper-left</grid><format>PNG</format><metatile>4 4</metatile></tileset>
  <tileset name="copy"><cache>main</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>
  <tileset name="broken"><source>absent</source><cache>main</cache><grid>GoogleMapsCompatible</grid><format>PNG</format>
    <metatile>1 1</metatile></tileset>
  <service type="wmts" enabled="true"/>
  <lock_dir>{self.folder}</lock_dir>
</mapcache>
""")

    def tiles(self, tileset="world"):
        file = self.folder / f"{tileset}.sqlite3"
        if not file.exists():
            return set()
        with sqlite3.connect(file, timeout=patience(60)) as db:
            if not db.execute("select 1 from sqlite_master where name = 'tiles'").fetchone():
                return set()  # it is being made
            return set(db.execute("select grid, z, x, y from tiles"))

    def seed(self, *options, program=OURS, tileset="world"):
        return subprocess.run([program, "-c", str(self.config), "-t", tileset, *options], capture_output=True, text=True,
                              timeout=patience(100))


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path, "ours")


@pytest.mark.parametrize("options", [
    "-z 0,4", "-z 3,3", "-z 2,5 -e " + QUARTER, "-z 4,6 -e 1000000,5000000,1200000,5300000", "-z 0,4 -n 3",
    "-z 0,3 -i scanline -M 3,2", "-g WGS84 -z 0,4 -e -10,35,30,60", "-g WGS84 -z 0,3 -M 1,1",
    "-g from-upper-left", "-g from-upper-left -M 5,3 -z 1,3", "-z 0,_2 -e 0,_0,_10,_10 -M 2,_2 --rate-limit 1000.5",
])
def test_makes_the_tiles_that_mapcache_makes(tmp_path, options):
    ours, peer = Site(tmp_path, "ours"), Site(tmp_path, "peer")
    words = [word.replace("_", " ") for word in options.split()]
    result = ours.seed(*words)
    assert result.returncode == 0, result.stdout + result.stderr
    assert peer.seed(*words, program=PEER).returncode == 0
    assert peer.tiles() and ours.tiles() == peer.tiles()


def test_draws_no_metatile_beyond_the_extent(tmp_path):
    """Level by level, MapCache also makes the metatiles that begin where the extent has already ended."""
    ours, peer = Site(tmp_path, "ours"), Site(tmp_path, "peer")
    options = "-g from-upper-left -M 2,2 -e 120,130,480,620".split()
    assert ours.seed(*options).returncode == 0 and peer.seed(*options, program=PEER).returncode == 0
    assert ours.tiles() < peer.tiles()
    for _, z, x, y in peer.tiles() - ours.tiles():
        side = (500, 250, 110, 50)[z]
        assert x // 2 * 2 * side >= 480 or 700 - y // 2 * 2 * side <= 130
    for z, side in enumerate((500, 250, 110, 50)):
        wanted = {(x, y) for x in range(20) for y in range(20) if x * side < 480 and (x + 1) * side > 120 and
                  700 - (y + 1) * side < 620 and 700 - y * side > 130 and x * side < 1000 and y * side < 700}
        assert wanted <= {(x, y) for _, level, x, y in ours.tiles() if level == z}


@pytest.mark.parametrize("workers", ["-n 1", "-n 4", "-p 1", "-p 3"])
def test_counts_are_honest_with_threads_and_processes(site, workers):
    result = site.seed("-z", "0,5", *workers.split())
    assert result.returncode == 0 and result.stderr == ""
    metatiles, total, inside = map(int, SUMMARY.search(result.stdout).groups())
    assert (metatiles, total, inside) == (1 + 1 + 1 + 4 + 16 + 64, 87 * 16, sum(4 ** z for z in range(6)))
    assert len(site.tiles()) == inside
    again = site.seed("-z", "0,5", *workers.split())
    assert again.returncode == 0 and again.stdout.endswith("0 tiles needed to be seeded, exiting\n")


def test_the_summary_is_the_last_line(site):
    """Scripts read it there; what -v says besides stands before it."""
    said = site.seed("-v", "-z", "0,3").stdout
    assert SUMMARY.search("\n" + said.splitlines()[-1] + "\n"), said[-500:]
    assert re.search(r"^\d+\.\d s of \d+ worker", said, re.M)


def test_delete_and_older(site):
    site.seed("-z", "0,4")
    assert site.seed("-m", "delete", "-z", "3,3").returncode == 0
    assert {row[1] for row in site.tiles()} == {0, 1, 2, 4}
    assert "0 tiles needed" in site.seed("-m", "delete", "-o", "2001/01/01 00:00", "-z", "0,4").stdout
    time.sleep(1.1)
    assert SUMMARY.search(site.seed("-m", "delete", "-o", "now", "-z", "0,4").stdout)
    assert site.tiles() == set()


def test_transfer(site):
    site.seed("-z", "0,2")
    result = site.seed("-m", "transfer", "-x", "copy", "-z", "0,3")
    assert "switching tileset (world) to read-only as we are in transfer mode\n" in result.stdout
    assert result.returncode == 0 and SUMMARY.search(result.stdout).group(1) == "21"
    assert site.tiles("copy") == site.tiles()


def test_a_transfer_does_not_mix_up_dimensions(site):
    """Values are told by their order: those of another order would be stored under wrong names."""
    def dimensions(*names):
        return "<dimensions>" + "".join(f'<dimension type="regex" name="{name}" default="1"><regex>.*</regex></dimension>' for name in names) + "</dimensions>"
    text = site.config.read_text().replace("<metatile>4 4</metatile>", "<metatile>4 4</metatile>" + dimensions("time", "depth"))
    for names, status in (("depth", "time"), 1), (("time", "height"), 1), (("time", "depth"), 0):
        site.config.write_text(text.replace("<format>PNG</format></tileset>", f"<format>PNG</format>{dimensions(*names)}</tileset>"))
        assert site.seed("-z", "0,0", "-D", "time=2", "-D", "depth=3").returncode == 0
        result = site.seed("-m", "transfer", "-x", "copy", "-z", "0,0", "-D", "time=2", "-D", "depth=3")
        assert result.returncode == status and ("different dimensions" in result.stdout) == (status == 1), result.stdout
        assert len(site.tiles("copy")) == (status == 0)


def test_failures_abort_are_listed_and_can_be_tried_again(site):
    failed = site.folder / "failed"
    result = site.seed("-z", "0,3", "-L", str(failed), tileset="broken")
    assert result.returncode == 1
    assert "failed to seed tile z0,x0,y0:" in result.stderr
    assert "% of the last 1000 requests failed" in result.stderr
    result = site.seed("-z", "0,2", "-P", "100", "-L", str(failed), tileset="broken")
    assert result.returncode == 0 and result.stderr.count("failed to seed tile") == 21
    lines = failed.read_text().splitlines()
    assert sorted(lines) == sorted(f"{x},{y},{z}" for z in range(3) for x in range(2 ** z) for y in range(2 ** z))
    failed.write_text("1,0,1\n999,0,1\nnonsense\n0,0,77\n3,3,2\n0,0,0\n")
    result = site.seed("-R", str(failed))
    assert result.returncode == 0
    assert [line for line in result.stdout.splitlines() if line.startswith("from log")] == [
        "from log: 1 0 1", "from log: 3 3 2", "from log: 0 0 0"]
    assert result.stderr.count("this is no tile") == 3
    assert {row[1] for row in site.tiles()} == {0, 1, 2}


@pytest.mark.parametrize("options", [
    [], ["-c", "x"], ["-z", "5,3"], ["-z", "x"], ["-e", "3,0,1,1"], ["-e", "0,0,nan,1"], ["-n", "0"], ["-n", "2", "-p", "2"],
    ["-P", "101"], ["-m", "transfer"], ["-m", "other"], ["-g", "none"], ["-x"], ["--nonsense"], ["-M", "0,1"], ["-z", "0,1 2"], ["-e", "0 0,1,2,3"],
    ["-D", "nodim"], ["-d", "some.shp"], ["-o", "yesterday"], ["leftover"], ["--rate-limit", "0"], ["-C", "none"],
])
def test_wrong_options_end_with_1_and_the_list(site, options):
    base = [OURS, "-c", str(site.config), "-t", "world", "-z", "0,0"] if options else [OURS]
    result = subprocess.run(base + options, capture_output=True, text=True, timeout=patience(30))
    assert result.returncode == 1
    assert "mapcache_seed" in result.stdout and "--tileset" in result.stdout
    assert site.tiles() == set()


def test_dimensions_that_are_not_there(site):
    """Scripts give all tilesets the same options: what MapCache passes over is told, and passed over."""
    result = site.seed("-z", "0,0", "-D", "nodim=1")
    assert result.returncode == 0 and 'no dimension "nodim"' in result.stderr and len(site.tiles()) == 1
    text = site.config.read_text()
    site.config.write_text(text.replace("<metatile>4 4</metatile>", """<metatile>4 4</metatile><dimensions>
      <dimension type="values" name="time" default="a"><value>a</value></dimension></dimensions>"""))
    result = site.seed("-z", "0,0", "-D", "time=b")
    assert result.returncode == 1 and 'dimension time has no value "b"' in result.stdout
    ours = subprocess.run([str(BUILD / "bin" / "mapcache"), "seed", "-c", site.config, "-t", "world", "-z", "0,0", "-D", "nodim=1"],
                          capture_output=True, text=True, timeout=patience(30))
    assert ours.returncode == 1 and 'no dimension "nodim"' in ours.stderr


def test_help(site):
    result = site.seed("-h")
    assert result.returncode == 0 and "--retry-failed" in result.stdout
    both = subprocess.run([str(BUILD / "bin" / "mapcache"), "seed", "--help"], capture_output=True, text=True, timeout=patience(30))
    assert [line for line in both.stdout.splitlines()[1:] if "--color" not in line] == result.stdout.splitlines()[1:]


@pytest.mark.parametrize("workers", ["-n 2", "-p 2"])
def test_an_interrupt_ends_it_with_a_summary(site, workers):
    said = site.folder / "said"
    progress = re.compile(r"^seeded \d+ tiles \(\d+ skipped\), now at z\d+ x\d+ y\d+$", re.M)
    with open(said, "wb") as out:
        process = subprocess.Popen([OURS, "-c", str(site.config), "-t", "world", "-z", "0,12", "--rate-limit", "400",
                                    *workers.split()], stdout=out, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: progress.search(said.read_text()), "the first line of progress")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=patience(60))
    assert process.returncode == 0
    assert "SIGINT received, waiting for threads to finish" in errors
    assert int(SUMMARY.search(said.read_text()).group(3)) == len(site.tiles())


@pytest.mark.parametrize("words", ["seed -c CONFIG -t world -z 0,3 --dry-run --json", "seed -c CONFIG -t world -z 0,0 --json", "keys",
                                   "detail -c CONFIG -t world -g WGS84", "version"])
def test_output_that_cannot_be_written_is_a_failure(site, words):
    with open("/dev/full", "w") as full:
        result = subprocess.run([str(BUILD / "bin" / "mapcache"), *words.replace("CONFIG", str(site.config)).split()], stdout=full,
                                stderr=subprocess.PIPE, text=True, timeout=patience(60))
    assert result.returncode == 1 and "cannot be written" in result.stderr


def test_the_rate_is_limited(site):
    began = time.monotonic()
    assert site.seed("-z", "4,4", "-M", "1,1", "--rate-limit", "200", "-e", QUARTER).returncode == 0
    assert time.monotonic() - began >= 63 / 200
    assert len(site.tiles()) == 64


def test_a_bar_on_a_terminal(site):
    primary, secondary = pty.openpty()
    process = subprocess.Popen([OURS, "-c", str(site.config), "-t", "world", "-z", "0,5", "--rate-limit", "600"],
                               stdout=secondary, stderr=subprocess.STDOUT)
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
    assert re.search(rb"\r\x1b\[K\[#+\.+\] +\d+\.\d %  seeded \d+ tiles, 0 skipped, 0 metatiles failed  \d+ tiles/s  \d+ s left  z\d", shown)
    assert b"] 100.0 %" in shown.split(b"\r\x1b[K")[-1]  # the last one is complete


def ours(site, *words):
    return subprocess.run([str(BUILD / "bin" / "mapcache"), "seed", "-c", str(site.config), "-t", "world", *words], capture_output=True, text=True,
                          timeout=patience(60))


def test_the_words_say_what_was_done(site):
    """Under its own name the program says seeded, deleted or copied, and counts tiles of the grid; mapcache_seed has MapCache's words."""
    sums = re.compile(r"^(\w+) (\d+) tiles \((\d+) metatiles\) in \d+\.\d s: \d+\.\d tiles/s; (\d+) tiles skipped, 0 metatiles failed\n\Z", re.M)
    assert sums.search(ours(site, "-z", "0,2").stdout).group(1, 2, 4) == ("seeded", "21", "0")
    assert len(site.tiles()) == 21
    assert sums.search(ours(site, "-z", "0,2", "-m", "delete").stdout).group(1, 2) == ("deleted", "21")
    assert site.tiles() == set()
    assert ours(site, "-z", "0,2", "-m", "delete").stdout == "0 tiles needed to be deleted\n"
    assert site.seed("-z", "0,2").returncode == 0
    assert "seeded" in site.seed("-z", "0,2", "-m", "delete").stdout


def test_quiet_is_silent_unless_something_fails(site):
    told = ours(site, "-z", "0,2", "-q")
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "") and len(site.tiles()) == 21
    told = ours(site, "-z", "0,2", "-q", "-f", "--json")
    assert told.returncode == 0 and [json.loads(line)["exit"] for line in told.stdout.splitlines()] == [0]
    told = ours(site, "-z", "50,60", "-q")
    assert told.returncode == 1 and "none of these zoom levels" in told.stderr and told.stdout == ""

"""What the commands print as JSON is JSON, whatever the names of files and tilesets are: quotes, line breaks, bytes that are no UTF-8."""
import json
import os
import subprocess

import pytest
from conftest import png

from test_command_line import PROGRAM

HOSTILE = b'a "quoted"\\name\n\t\x01<&>\xff\xc3 end'
SEEN = HOSTILE.decode(errors="replace")
TILESET = 'base "one" \\n'


def run(*words, status=0):
    """The bytes that a command writes."""
    done = subprocess.run([os.fsencode(PROGRAM), *(word if isinstance(word, bytes) else os.fsencode(str(word)) for word in words)],
                          capture_output=True, timeout=120)
    assert done.returncode == status, done.stderr
    return done.stdout


def lines(output):
    """The values of lines of JSON: valid UTF-8, and nothing between them."""
    return [json.loads(line) for line in output.decode().splitlines()]


@pytest.fixture
def config(tmp_path):
    (tmp_path / "store").mkdir()
    path = tmp_path / "mapcache.xml"
    path.write_text(f"""<mapcache>
  <grid name="g&quot;"><srs>EPSG:3857</srs><size>256 256</size><extent>0 0 1024 1024</extent><resolutions>4 2</resolutions></grid>
  <source name="none" type="dummy"/>
  <cache name="files" type="sqlite3"><dbfile>{tmp_path}/store/{{dim:which}}.db</dbfile></cache>
  <tileset name='{TILESET}'><source>none</source><cache>files</cache><grid>g"</grid><format>PNG</format>
    <dimensions><dimension type="regex" name="which" default="plain"><regex>^.*</regex></dimension></dimensions></tileset>
</mapcache>
""")
    return path


def test_check_of_a_file_with_such_a_name(tmp_path):
    path = os.fsencode(tmp_path) + b"/" + HOSTILE
    with open(path, "w") as file:
        file.write("<mapcache>\n<tileset name='a\"b\\c'/>\n<nonsense/></mapcache>")
    found = json.loads(run("check", "--json", path, status=1).decode())
    assert found["file"].endswith(SEEN) and found["errors"] >= 1
    assert len(found["complaints"]) == found["errors"] + found["warnings"] + found["not_built"] + found["notes"]
    assert all(one["line"] >= 0 and one["text"] for one in found["complaints"])
    missing = json.loads(run("check", "--json", path + b"/none", status=1).decode())
    assert missing["complaints"][0]["severity"] == "error"


def test_seed_detail_and_compact(config):
    which = b"which=" + HOSTILE.replace(b"\n", b"").replace(b"\t", b"").replace(b"\x01", b"")
    counted = lines(run("seed", "-c", config, "-t", TILESET, "--dry-run", "--json"))
    assert [level["level"] for level in counted[0]["levels"]] == [0, 1] and counted[0]["metatiles"] > 0
    seeded = lines(run("seed", "-c", config, "-t", TILESET, "-M", "1,1", "-D", which, "--json"))
    assert seeded[-1]["exit"] == 0 and seeded[-1]["done"] == 5 and set(seeded[-1]["time"]) >= {"draw", "store"}
    report = run("detail", "--json", "-c", config, "-t", TILESET, "-g", 'g"', "-z", "0,1", "-D", which, "--stores")
    found = json.loads(report.decode())
    assert found["layer"] == TILESET and found["grid"] == 'g"' and found["nb_tiles_in_region"]["cached_in_cache"] == 5
    names = [file["file_name"] for level in found["zoom_levels"] for file in level["files"]]
    assert len(names) == 2 and all("quoted" in name for name in names), names
    assert report.startswith(b'{\n\t"layer":\t"base \\"one\\" \\\\n",\n\t"grid":\t"g\\"",\n\t"unit":\t"m",\n\t"region":\t{\n\t\t"bounding_box":\t[0, 0, 1024, 1024],\n')
    assert found["stores"][0]["nb_tiles"] == 5
    stores = lines(run("compact", "-c", config, "--json", "--dry-run"))
    assert any("quoted" in store["store"] for store in stores)


def test_images_with_such_names(config, tmp_path):
    path = os.fsencode(tmp_path) + b"/" + HOSTILE + b".png"
    with open(path, "wb") as file:
        file.write(png(8, 8, lambda x, y: (x, y, 0)))
    ended = lines(run("ingest", "-c", config, "-t", HOSTILE, "--json", path, status=1))
    assert ended[-1]["exit"] == 1 and "quoted" in ended[-1]["error"] and "\n" not in ended[-1]["error"]
    told = lines(run("cube", "ingest", "-c", config, "--cube", HOSTILE, "--json", "--date", "2020-01-01", path, status=1))
    assert told[-1]["status"] == 1 and told[-1]["cube"] == SEEN and "no cube" in told[-1]["error"]

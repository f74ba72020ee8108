"""`mapcache adopt renderd.conf`: configurations of many shapes, and the metatiles of the real renderd."""
import pathlib
import struct
import subprocess
from xml.etree import ElementTree

import pytest
from adopting import CONFIGURATIONS, adopt, adopted, compare_notes, requests
from conftest import Program, listens, wait_until
from patience import patience
from peers import peer

FILES = sorted((CONFIGURATIONS / "renderd").glob("*.conf"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_configurations(file, folder):
    """Each is written, is clean for `mapcache check`, and what is not taken over is named with its line."""
    _, notes = adopted(folder, file)
    compare_notes(notes, file)


def test_there_are_ten():
    assert len(FILES) >= 10


def of(config, path):
    return ElementTree.parse(config).getroot().find(path)


def test_values(folder):
    config, _ = adopted(folder, CONFIGURATIONS / "renderd" / "several.conf")
    assert of(config, "cache[@name='osm']/base").text == "/data/one/osm" and of(config, "cache[@name='trails']/base").text == "/data/tiles/trails"
    assert of(config, "tileset[@name='trails']/grid").attrib == {"minzoom": "5", "maxzoom": "12"} and of(config, "tileset[@name='hill shade']/format").text == "JPEG"
    config, _ = adopted(folder, CONFIGURATIONS / "renderd" / "texts.conf")
    assert of(config, "tileset/metadata/title").text == "A map; of # things" and of(config, "cors").text == "*"
    config, _ = adopted(folder, CONFIGURATIONS / "renderd" / "names.conf")
    assert [cache.get("name") for cache in ElementTree.parse(config).getroot().findall("cache")] == ['a<b>&"c"', "{z}", "Mixed Case"]
    assert of(config, "cache[@name='Mixed Case']/base").text.endswith("/mixed case")  # as renderd names folders


BAD = {"zero": (b"[a]\nx=1\0\n", ":1: the file holds a zero byte"), "empty": (b"", "no section is a style"), "process": (b"[renderd]\n", "no section is a style"),
       "many": (b"\n".join(b"[s%d]" % i for i in range(200001)), "too many values")}


@pytest.mark.parametrize("bad", BAD)
def test_bad_files(folder, bad):
    data, said = BAD[bad]
    (folder / "renderd.conf").write_bytes(data)
    done = adopt("renderd.conf", cwd=folder)
    assert done.returncode == 1 and said in done.stderr and not (folder / "mapcache.xml").exists()


STYLE = """<Map srs="+proj=merc +a=6378137 +b=6378137 +lat_ts=0.0 +lon_0=0.0 +x_0=0.0 +y_0=0.0 +k=1.0 +units=m +nadgrids=@null +no_defs" background-color="#88aacc">
<Style name="s"><Rule><PolygonSymbolizer fill="#aa4400"/><LineSymbolizer stroke="#000000" stroke-width="3"/></Rule></Style>
<Layer name="l" srs="+proj=longlat +datum=WGS84 +no_defs"><StyleName>s</StyleName><Datasource><Parameter name="type">csv</Parameter>
<Parameter name="inline">wkt|n
POLYGON((-100 -50, 20 60, 150 -40, -100 -50))|1
</Parameter><Parameter name="separator">|</Parameter></Datasource></Layer></Map>
"""


def test_tiles_of_renderd(folder):
    """What the real renderd has drawn is served, tile by tile, as its file has it."""
    plugins = sorted(pathlib.Path("/usr/lib/mapnik").glob("*/input"))[-1]
    (folder / "style.xml").write_text(STYLE)
    (folder / "tiles").mkdir()
    config = folder / "renderd.conf"
    config.write_text(f"[renderd]\nstats_file={folder}/stats\nsocketname={folder}/sock\npid_file={folder}/pid\nnum_threads=1\ntile_dir={folder}/tiles\n"
                      f"[mapnik]\nplugins_dir={plugins}\nfont_dir=/usr/share/fonts/truetype/dejavu\n[World]\nURI=/osm/\nXML={folder}/style.xml\nHOST=localhost\nMAXZOOM=18\n")
    program = Program([peer("/usr/bin/renderd"), "-f", "-c", str(config)], folder / "renderd.log")
    try:
        wait_until(lambda: listens(str(folder / "sock")) or program.process.poll() is not None, "renderd starts")
        # -l: it would wait for as long as the machine is busy
        subprocess.run([peer("/usr/bin/render_list"), "-a", "-m", "world", "-s", str(folder / "sock"), "-t", str(folder / "tiles"), "-z", "0", "-Z", "4", "-n", "1", "-l", "10000"], check=True,
                       capture_output=True, timeout=patience(120))
    finally:
        program.stop()
    stored = {}
    for path in (folder / "tiles").rglob("*.meta"):
        data = path.read_bytes()
        count, column, row, z = struct.unpack("<4i", data[4:20])
        for i in range(count):
            offset, size = struct.unpack("<2i", data[20 + 8 * i:28 + 8 * i])
            if size > 0 and column + i // 8 < 2 ** z and row + i % 8 < 2 ** z:
                stored[z, column + i // 8, row + i % 8] = data[offset:offset + size]
    assert len(stored) == 341 and len(set(stored.values())) > 20
    path, _ = adopted(folder, config)
    places = [place for place in stored if place[0] < 4 or sum(place) % 5 == 0]
    answers = requests(path, [f"/gmaps/World/{z}/{x}/{y}.png" for z, x, y in places])
    assert [place for place, (status, media, body) in zip(places, answers) if (status, media, body) != (200, "image/png", stored[place])] == []

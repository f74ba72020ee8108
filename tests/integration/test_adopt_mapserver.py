"""`mapcache adopt FILE.map`: map files of many shapes, drawn as MapServer draws them."""
import io
import os
import subprocess
from xml.etree import ElementTree

import numpy
import pytest
from adopting import CONFIGURATIONS, PROGRAM, adopt, adopted, compare_notes, requests
from patience import patience
from PIL import Image

FILES = sorted((CONFIGURATIONS / "mapserver").glob("*.map"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_configurations(file, folder):
    """Each is written, is clean for `mapcache check`, which asks MapServer's library for the map file, and layers that are not taken over are named with their line."""
    _, notes = adopted(folder, file)
    compare_notes(notes, file)


def test_there_are_ten():
    assert len(FILES) >= 10


def layers(config):
    return [tileset.get("name") for tileset in ElementTree.parse(config).getroot().findall("tileset")]


def test_values(folder):
    config, _ = adopted(folder, CONFIGURATIONS / "mapserver" / "titles.map")
    root = ElementTree.parse(config).getroot()
    assert root.find("metadata/title").text == "My <maps> & more" and root.find("metadata/contactname").text == "A. Person"
    assert root.find("tileset/metadata/title").text == "A title" and root.find("tileset/metadata/abstract").text == "What it shows"
    assert layers(adopted(folder, CONFIGURATIONS / "mapserver" / "included.map")[0]) == ["own", "included"]
    assert layers(adopted(folder, CONFIGURATIONS / "mapserver" / "quotes.map")[0]) == ['a "quoted" name', "umlaut Ä"]
    assert layers(adopted(folder, CONFIGURATIONS / "mapserver" / "blocks.map")[0]) == ["places"]
    assert layers(adopted(folder, CONFIGURATIONS / "mapserver" / "expressions.map")[0]) == ["expressions"]
    assert len(layers(adopted(folder, CONFIGURATIONS / "mapserver" / "many.map")[0])) == 200
    root = ElementTree.parse(adopted(folder, CONFIGURATIONS / "mapserver" / "projections.map")[0]).getroot()
    boxes = {tileset.get("name"): [float(number) for number in tileset.find("metadata/wgs84boundingbox").text.split()] for tileset in root.findall("tileset")}
    assert boxes["own"] == [8, 50, 9, 51] and boxes["utm"] == pytest.approx([7.56, 50.54, 9, 51.45], abs=0.02)


def test_nested_includes(folder):
    """What an included file includes is there once, wherever its INCLUDE stands."""
    (folder / "main.map").write_text("MAP INCLUDE 'middle.inc' NAME m LAYER NAME last TYPE POINT END END")
    (folder / "middle.inc").write_text("INCLUDE 'inner.inc' LAYER NAME middle TYPE POINT END")
    (folder / "inner.inc").write_text("LAYER NAME inner TYPE POINT END")
    assert adopt("main.map", "--output", "nested.xml", cwd=folder).returncode == 0
    assert sorted(layers(folder / "nested.xml")) == ["inner", "last", "middle"]


def test_missing_include(folder):
    """A file that INCLUDE names and that is not there takes nothing else with it."""
    (folder / "m.map").write_text("MAP\nINCLUDE 'none.inc'\nLAYER NAME rest TYPE POINT END\nEND")
    done = adopt("m.map", cwd=folder)
    assert done.returncode == 2 and 'm.map:2: INCLUDE "none.inc" is not followed' in done.stderr, done.stderr
    assert layers(folder / "mapcache.xml") == ["rest"]


def test_many_includes(folder):
    """Files that are included again and again end at a bound, not with the memory of the machine."""
    (folder / "wide.inc").write_text("".join(f"LAYER NAME a{i} TYPE POINT END\n" for i in range(20000)))
    (folder / "wide.map").write_text("MAP\n" + "INCLUDE 'wide.inc'\n" * 100 + "END\n")
    (folder / "large.inc").write_text("#" + "x" * (15 << 20) + "\nLAYER NAME a TYPE POINT END\n")
    (folder / "large.map").write_text("MAP\n" + "INCLUDE 'large.inc'\n" * 100 + "END\n")
    for name, said in (("wide", "too many values"), ("large", "all files together have more than 64 MB")):
        done = subprocess.run(["prlimit", f"--as={2 << 30}", PROGRAM, "adopt", f"{name}.map"], cwd=folder, capture_output=True, text=True, timeout=patience(60), check=False)
        assert done.returncode == 1 and f"{name}.map:" in done.stderr and said in done.stderr, done.stderr


BAD = {
    "no-map": (b"LAYER NAME 'x' END\n", ":1: it does not begin with MAP"), "no-end": (b"MAP\n  LAYER\n    NAME x\n", ":2: LAYER has no END"),
    "zero": (b"MAP\0END", ":1: the file holds a zero byte"), "deep": (b"MAP " + b"LAYER " * 300, "nested too deeply"), "missing": (b"MAP\n\nINCLUDE 'none.inc'\nEND", ":3: INCLUDE \"none.inc\" is not followed"),
    "itself": (b"MAP\nINCLUDE 'bad.map'\nEND", ":2: INCLUDE names a file that this one is part of"), "nothing": (b"MAP END", "no LAYER"), "open": (b"MAP LAYER NAME 'x", "NAME"),
    "many": (b"MAP " + b"LAYER END " * 400001, "too many values"),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_files(folder, bad):
    data, said = BAD[bad]
    (folder / "bad.map").write_bytes(data)
    done = adopt("bad.map", cwd=folder)
    assert done.returncode == 1 and not (folder / "mapcache.xml").exists()
    assert said in done.stderr or bad == "open"


def test_maps_are_those_of_mapserver(folder):
    """20 maps of two layers against the real mapserv, in both grids: the same pixels."""
    file = folder / "shapes.map"
    file.write_text("""MAP NAME "m" EXTENT -180 -90 180 90 SIZE 256 256 IMAGETYPE png
  PROJECTION "init=epsg:4326" END
  WEB METADATA "ows_enable_request" "*" "wms_srs" "EPSG:4326 EPSG:3857" "wms_title" "t" END END
  LAYER NAME "areas" TYPE POLYGON STATUS ON FEATURE WKT "POLYGON((-100 -50, 20 60, 150 -40, -100 -50))" END PROJECTION "init=epsg:4326" END
    CLASS STYLE COLOR 200 80 30 OUTLINECOLOR 0 0 0 WIDTH 2 END END END
  LAYER NAME "points" TYPE LINE STATUS ON FEATURE WKT "LINESTRING(-170 -60, 0 10, 160 70)" END PROJECTION "init=epsg:4326" END CLASS STYLE COLOR 0 0 255 WIDTH 5 END END END
END
""")
    config, notes = adopted(folder, file)
    assert notes == []
    paths, theirs = [], []
    (folder / "mapserver.conf").write_text('CONFIG\n  ENV\n    MS_MAP_PATTERN "."\n  END\nEND\n')
    for i in range(20):
        layer, srs = ("areas", "points")[i % 2], ("EPSG:3857", "EPSG:4326")[i // 2 % 2]
        unit = 1 if srs == "EPSG:4326" else 111319.49079327358
        west, south, width = -150 + 9 * i, -60 + 4 * i, 15 + 3 * i
        box = ",".join(str(number * unit) for number in (west, south, west + width, south + width))
        query = f"SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS={layer}&STYLES=&SRS={srs}&BBOX={box}&WIDTH=300&HEIGHT=300&FORMAT=image/png&TRANSPARENT=TRUE"
        paths.append(f"/?{query}")
        done = subprocess.run(["mapserv"], env={**os.environ, "MAPSERVER_CONFIG_FILE": str(folder / "mapserver.conf"), "REQUEST_METHOD": "GET", "QUERY_STRING": f"map={file}&{query}"}, capture_output=True, timeout=patience(60), check=True)
        theirs.append(done.stdout.split(b"\r\n\r\n", 1)[1])
    drawn = 0
    for their, (status, media, mine) in zip(theirs, requests(config, paths)):
        assert (status, media) == (200, "image/png")
        a, b = (numpy.asarray(Image.open(io.BytesIO(data)).convert("RGBA"), int) for data in (their, mine))
        a, b = (picture * (picture[..., 3:] > 0) for picture in (a, b))
        assert abs(a - b).mean() < 0.5
        drawn += (a[..., 3] > 0).any()
    assert drawn > 12

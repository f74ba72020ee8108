"""`mapcache adopt FILE.map`: layers with shapefiles and tables become sources and styles of ours, and their maps are those of the real mapserv."""
import io
import os
import subprocess
from xml.etree import ElementTree

import numpy
import pytest
from adopting import adopt, check, requests
from conftest import temporary_folder
from osgeo import ogr, osr
from patience import patience
from PIL import Image
from postgres import Postgres

SIDE = 400  # pixels of a map, of a kilometre each
HEAD = """MAP NAME "m" EXTENT 0 0 400000 400000 SIZE 400 400 IMAGETYPE png FONTSET "fonts.txt"
  PROJECTION "init=epsg:3857" END
  WEB METADATA "ows_enable_request" "*" "wms_srs" "EPSG:3857" "wms_title" "t" END END
  SYMBOL NAME "circle" TYPE ELLIPSE FILLED TRUE POINTS 1 1 END END
  SYMBOL NAME "square" TYPE VECTOR FILLED TRUE POINTS 0 0 0 1 1 1 1 0 0 0 END END
  SYMBOL NAME "triangle" TYPE VECTOR FILLED TRUE POINTS 0 4 2 0 4 4 0 4 END END
  SYMBOL NAME "cross" TYPE VECTOR POINTS 2 0 2 4 -99 -99 0 2 4 2 END END
"""
FILL = "STYLE COLOR 200 60 20 END"
# Layers that are taken over: TYPE and DATA, and the rest. Each has a share of pixels that may be off.
OWN = {
    "items": ("POLYGON", 'DATA "areas" CLASSITEM "kind" CLASS NAME "a" EXPRESSION "a" STYLE COLOR 240 200 100 OUTLINECOLOR 100 50 0 WIDTH 3 END END '
              'CLASS EXPRESSION {b,c d} STYLE COLOR 100 200 100 OPACITY 50 END STYLE OUTLINECOLOR 0 0 200 WIDTH 2 PATTERN 8 4 END LINECAP BUTT END END '
              'CLASS EXPRESSION /^prim/ STYLE COLOR "#8080ff" OUTLINECOLOR "#000000" PATTERN 8 4 END END END CLASS STYLE OUTLINECOLOR 200 0 0 WIDTH 5 LINEJOIN MITER END END'),
    "logic": ("POLYGON", f"DATA \"areas\" CLASS EXPRESSION (\"[kind]\" != 'a' AND NOT ([n] > 9)) {FILL} END CLASS EXPRESSION ([n] * 2 >= 24 OR ('[name]' ~ '^N1$')) STYLE COLOR 0 0 0 END END"),
    "listed": ("POLYGON", f'DATA "areas.shp" CLASSITEM "name" CLASS EXPRESSION /^(N1|N5|N.0)$/ {FILL} END CLASS EXPRESSION /9$/ STYLE COLOR 0 0 0 END END CLASS EXPRESSION "n7"i STYLE COLOR 0 0 255 END END'),
    "nothing": ("POLYGON", f'DATA "areas" CLASS EXPRESSION ([n] = 0) {FILL} END CLASS EXPRESSION ("[kind]" = "") STYLE COLOR 0 0 0 END END'),
    "filter": ("POLYGON", f'DATA "areas" FILTER ("[kind]" IN "a,b") CLASSITEM "kind" CLASS EXPRESSION "b" {FILL} END CLASS STYLE COLOR 0 0 0 END END'),
    "off": ("POLYGON", f'DATA "areas" CLASSITEM "kind" CLASS STATUS OFF EXPRESSION "a" {FILL} END CLASS STYLE COLOR 0 0 0 END END'),
    "alpha": ("POLYGON", 'DATA "areas" CLASS STYLE COLOR "#00ff0080" END STYLE OUTLINECOLOR "#0000ff40" WIDTH 6 OPACITY 50 PATTERN 10 10 END END END'),
    "roads": ("LINE", 'DATA "lines" CLASS EXPRESSION ([n] < 3) STYLE COLOR 255 200 0 WIDTH 6 OUTLINECOLOR 80 40 0 OUTLINEWIDTH 2 END END '
              'CLASS EXPRESSION ([n] < 6) STYLE COLOR 0 0 0 WIDTH 8 END STYLE COLOR 255 255 255 WIDTH 4 END END CLASS STYLE COLOR 0 120 255 WIDTH 3 PATTERN 12 6 3 6 END LINECAP BUTT END END'),
    "wide": ("LINE", 'DATA "lines" CLASS EXPRESSION ([n] = 6) STYLE COLOR 200 0 0 WIDTH 60 END END CLASS STYLE OUTLINECOLOR 0 0 200 WIDTH 3 OUTLINEWIDTH 2 END END'),
    "by number": ("LINE", 'DATA "lines" CLASS STYLE COLOR 0 0 200 WIDTH [n] END END'),
    "marks": ("POINT", 'DATA "points" CLASS EXPRESSION ([n] < 6) STYLE SYMBOL "circle" SIZE 14 COLOR 255 0 0 OUTLINECOLOR 0 0 0 WIDTH 2 END END '
              'CLASS EXPRESSION ([n] < 12) STYLE SYMBOL "square" SIZE 12 COLOR 0 200 0 ANGLE 30 END END '
              'CLASS EXPRESSION ([n] < 18) STYLE SYMBOL "triangle" SIZE 16 COLOR 0 0 255 ANGLE [n] END END CLASS STYLE SYMBOL "cross" SIZE 14 COLOR 0 0 0 WIDTH 3 OFFSET 6 -4 END END'),
    "invisible": ("POINT", 'DATA "points" CLASS STYLE COLOR 255 0 0 SIZE 8 END END'),
    "table": ("POLYGON", f'POSTGIS DATA "geom from areas using unique gid using srid=3857" CLASSITEM "kind" CLASS EXPRESSION "a" {FILL} END CLASS STYLE COLOR 0 0 0 END END'),
    "query": ("POLYGON", f'POSTGIS DATA "geom from (select gid, geom, n * 2 as m from areas where geom && !BOX!) as t using unique gid using srid=3857" CLASS EXPRESSION ([m] > 12) {FILL} END'),
    "nulls": ("POLYGON", f'POSTGIS DATA "geom from public.areas" CLASS EXPRESSION ("[kind]" != "a" and [n] < 9) {FILL} END'),
    "names": ("POLYGON", f'DATA "areas" LABELITEM "name" CLASS {FILL} LABEL FONT "sans" SIZE 9 COLOR 255 255 255 OUTLINECOLOR 0 0 0 POSITION CC END END'),
}
# Layers that MapServer draws, the keyword that is the reason, and their words.
THEIRS = {
    "cluster": ("POINT", 'DATA "points"\nCLUSTER MAXDISTANCE 20 REGION "ellipse" END CLASS STYLE SYMBOL "circle" SIZE 8 COLOR 0 0 0 END END', "CLUSTER of its LAYER"),
    "units": ("LINE", 'DATA "lines"\nSIZEUNITS METERS CLASS STYLE COLOR 0 0 0 WIDTH 3000 END END', "SIZEUNITS"),
    "shape": ("POLYGON", 'DATA "areas" CLASS\nEXPRESSION (area([shape]) > 5) STYLE COLOR 0 0 0 END END', "EXPRESSION"),
    "regular": ("POLYGON", 'DATA "areas" CLASSITEM "name" CLASS\nEXPRESSION /N[0-4]/ STYLE COLOR 0 0 0 END END', "regular expression"),
    "symbol": ("LINE", 'DATA "lines" CLASS STYLE COLOR 0 0 0\nSYMBOL "circle" SIZE 4 GAP 20 END END', "SYMBOL circle along a line"),
    "moved": ("LINE", 'DATA "lines" CLASS STYLE COLOR 0 0 0\nGEOMTRANSFORM "end" END END', "GEOMTRANSFORM of its STYLE"),
    "dots": ("POINT", '\nDATA "areas" CLASS STYLE SYMBOL "circle" SIZE 4 COLOR 0 0 0 END END', "shapes that are not of its TYPE"),
    "processed": ("POLYGON", 'DATA "areas"\nPROCESSING "RENDERMODE=ALL_MATCHING_CLASSES" CLASS STYLE COLOR 0 0 0 END END', "PROCESSING"),
    "twice": ("POLYGON", 'DATA "areas" CLASS STYLE COLOR 0 0 0 END\nLABEL TEXT "a" END LABEL TEXT "b" END END', "several LABELs"),
}


def geometry(kind, i):
    x, y = i % 5 * 80000 + 10000, i // 5 * 80000 + 10000
    if kind == "areas":
        return f"POLYGON(({x} {y},{x + 55000} {y + 4000 * (i % 4)},{x + 60000} {y + 58000},{x + 20000 + 1000 * i} {y + 40000},{x + 3000} {y + 60000},{x} {y}))"
    if kind == "lines":
        return "LINESTRING(" + ",".join(f"{a * 42000 + 8000} {i * 30000 + 20000 + (a * 7919 + i * 104729) % 50000}" for a in range(10)) + ")"
    return f"POINT({(i * 61813 + 9000) % 380000 + 10000} {(i * 94543 + 7000) % 380000 + 10000})"


def make_shapes(folder, reference):
    for kind, type_, count in (("areas", ogr.wkbPolygon, 25), ("lines", ogr.wkbLineString, 12), ("points", ogr.wkbPoint, 25)):
        data = ogr.GetDriverByName("ESRI Shapefile").CreateDataSource(str(folder / f"{kind}.shp"))
        layer = data.CreateLayer(kind, reference, type_)
        for name, field in (("name", ogr.OFTString), ("kind", ogr.OFTString), ("n", ogr.OFTInteger)):
            layer.CreateField(ogr.FieldDefn(name, field))
        for i, (name, what, number) in enumerate(attributes(count)):
            feature = ogr.Feature(layer.GetLayerDefn())
            for field, value in (("name", name), ("kind", what), ("n", number)):
                if value is not None:
                    feature.SetField(field, value)
            feature.SetGeometry(ogr.CreateGeometryFromWkt(geometry(kind, i)))
            layer.CreateFeature(feature)
        del layer, data


def attributes(count):
    return [(f"N{i}", ("a", "b", "c d", "primary", None)[i % 5], None if i % 7 == 3 else i) for i in range(count)]


def quoted(value):
    return "null" if value is None else f"'{value}'"


@pytest.fixture(scope="module")
def site():
    reference = osr.SpatialReference()
    reference.ImportFromEPSG(3857)
    with temporary_folder() as folder, Postgres() as server:
        make_shapes(folder, reference)
        rows = ",".join(f"({i}, {quoted(name)}, {quoted(kind)}, {'null' if n is None else n}, 'SRID=3857;{geometry('areas', i)}')" for i, (name, kind, n) in enumerate(attributes(25)))
        server.sql("create extension postgis; create table areas (gid int primary key, name text, kind text, n int, geom geometry(polygon, 3857)); "
                   f"create index on areas using gist (geom); insert into areas values {rows}")
        font = subprocess.run(["fc-match", "-f", "%{file}", "DejaVu Sans"], capture_output=True, text=True, check=True).stdout
        (folder / "fonts.txt").write_text(f"sans {font}\n")
        (folder / "mapserver.conf").write_text('CONFIG\n  ENV\n    MS_MAP_PATTERN "."\n  END\nEND\n')
        connection = f'CONNECTIONTYPE POSTGIS CONNECTION "{server.connection()}"'
        # a class on a line of its own: to MapServer an expression in brackets ends with the last bracket of its line
        text = HEAD + "".join(f'LAYER NAME "{name}" TYPE {type_} STATUS ON {words.replace("POSTGIS", connection, 1) if words.startswith("POSTGIS") else words} END\n'.replace(" CLASS ", "\nCLASS ")
                              for layers in (OWN, THEIRS) for name, (type_, words, *_) in layers.items()) + "END\n"
        (folder / "m.map").write_text(text)
        done = adopt("m.map", cwd=folder)
        assert done.returncode == 2, done.stdout + done.stderr
        check(folder / "mapcache.xml")
        yield folder, done.stderr


def query(layer, box):
    return f"SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS={layer}&STYLES=&SRS=EPSG:3857&BBOX={','.join(map(str, box))}&WIDTH={SIDE}&HEIGHT={SIDE}&FORMAT=image/png&TRANSPARENT=TRUE"


def on_white(data):
    picture = Image.open(io.BytesIO(data)).convert("RGBA")
    ground = Image.new("RGBA", picture.size, "white")
    ground.alpha_composite(picture)
    return numpy.asarray(ground.convert("RGB"), int)


def theirs(folder, layer, box):
    done = subprocess.run(["mapserv"], env={**os.environ, "MAPSERVER_CONFIG_FILE": str(folder / "mapserver.conf"), "REQUEST_METHOD": "GET", "QUERY_STRING": f"map={folder}/m.map&{query(layer, box)}"},
                          capture_output=True, timeout=patience(60), check=True)
    return on_white(done.stdout.split(b"\r\n\r\n", 1)[1])


def ours(folder, layer, box):
    (status, media, body), = requests(folder / "mapcache.xml", ["/?" + query(layer, box)])
    assert (status, media) == (200, "image/png"), body
    return on_white(body)


def both(folder, layer, width=400000):
    """MapServer's map, and ours of a box half a pixel to the south-east: there MapServer has the middles of its pixels."""
    half = width / SIDE / 2
    return theirs(folder, layer, (0, 0, width, width)), ours(folder, layer, (half, -half, width + half, width - half))


@pytest.mark.parametrize("layer", OWN)
def test_maps_are_those_of_mapserver(site, layer):
    """Edges may differ by antialiasing, labels by the shapes of letters: at most one pixel in fifty by more than a quarter."""
    folder, _ = site
    source = ElementTree.parse(folder / "mapcache.xml").getroot().find(f"source[@name='{layer}']")
    assert source.get("type") == ("postgis" if OWN[layer][1].startswith("POSTGIS") else "shapefile")
    their, mine = both(folder, layer)
    off = (abs(their - mine).max(axis=2) > 64).mean()
    assert off < 0.02, off
    assert (their.min(axis=2) < 250).any() == (layer != "invisible") == (mine.min(axis=2) < 250).any()


def test_layers_that_mapserver_draws(site):
    """What has no form here stays with MapServer, and a note names line and reason."""
    folder, said = site
    root = ElementTree.parse(folder / "mapcache.xml").getroot()
    lines = (folder / "m.map").read_text().splitlines()
    for layer, (_, _, words) in THEIRS.items():
        assert root.find(f"source[@name='{layer}']").get("type") == "mapserver"
        note = next(line for line in said.splitlines() if f"LAYER {layer} " in line)
        number = int(note.split(":")[1])
        assert words in note and not lines[number - 1].startswith("LAYER"), note
    assert said.count("is drawn by MapServer's library") == len(THEIRS)


def test_all_by_mapserver(site):
    """--styles mapserver: no style is written, and no note says why."""
    folder, _ = site
    done = adopt("m.map", "--styles", "mapserver", "--output", "theirs.xml", cwd=folder)
    assert done.returncode == 0 and not (folder / "theirs-styles").exists(), done.stderr
    assert {source.get("type") for source in ElementTree.parse(folder / "theirs.xml").getroot().findall("source")} == {"mapserver"}
    done = adopt("m.map", "--output", "-", cwd=folder)
    assert done.returncode == 0 and 'type="shapefile"' not in done.stdout


def test_nothing_is_overwritten(site):
    folder, _ = site
    before = (folder / "mapcache-styles" / "items.sld").read_bytes()
    (folder / "mapcache-styles" / "items.sld").write_text("mine")
    (folder / "kept.xml").unlink(missing_ok=True)
    assert adopt("m.map", cwd=folder).returncode == 1 and (folder / "mapcache-styles" / "items.sld").read_text() == "mine"
    assert adopt("m.map", "--force", cwd=folder).returncode == 2 and (folder / "mapcache-styles" / "items.sld").read_bytes() == before


def test_scales(site):
    """Limits of layers and classes are where MapServer has them: its pixels are 1/72 inch large, and those of SLD 0.28 mm."""
    folder, _ = site
    (folder / "scales").mkdir()
    text = HEAD.replace("fonts.txt", "../fonts.txt") + ('LAYER NAME "s" TYPE POLYGON STATUS ON DATA "../areas" MAXSCALEDENOM 2900000 CLASS MAXSCALEDENOM 1500000 STYLE COLOR 255 0 0 END END '
                                                        "CLASS STYLE COLOR 0 0 255 END END END END\n")
    (folder / "scales" / "m.map").write_text(text)
    (folder / "scales" / "mapserver.conf").write_text((folder / "mapserver.conf").read_text())
    assert adopt("m.map", cwd=folder / "scales").returncode == 0
    seen = set()
    for denominator in (1450000, 1550000, 2800000, 3000000):
        pictures = both(folder / "scales", "s", denominator * SIDE * 0.0254 / 72)
        colors = [tuple(bool((picture == color).all(axis=2).any()) for color in ((255, 0, 0), (0, 0, 255))) for picture in pictures]
        assert colors[0] == colors[1], (denominator, colors)
        seen.add(colors[0])
    assert seen == {(True, False), (False, True), (False, False)}

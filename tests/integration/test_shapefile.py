"""Shapefiles under a running server: indexes, code pages, deleted records, files that are replaced, cut short or odd."""
import io
import json
import os
import random
import subprocess
import threading
import time

import numpy
import pytest
from conftest import GRID
from osgeo import gdal, ogr, osr
from patience import patience
from PIL import Image

gdal.UseExceptions()
WORLD = (-1000.0, -1000.0, 11000.0, 11000.0)
GRIDS = """<grid name="plane"><srs>EPSG:2056</srs><units>m</units><extent>0 0 10240 10240</extent><size>256 256</size>
  <resolutions>40 20 10 5 2.5 1</resolutions></grid>"""


def reference():
    made = osr.SpatialReference()
    made.ImportFromEPSG(2056)
    return made


def make(path, count=400, seed=1, side=200, kind=ogr.wkbPolygon, encoding="UTF-8"):
    """Squares (or their middles) all over the plane, each with its number and a name."""
    numbers = random.Random(seed)
    driver = ogr.GetDriverByName("ESRI Shapefile")
    if path.exists():
        driver.DeleteDataSource(str(path))
    data = driver.CreateDataSource(str(path))
    layer = data.CreateLayer(path.stem, reference(), kind, [f"ENCODING={encoding}"])
    layer.CreateField(ogr.FieldDefn("number", ogr.OFTInteger))
    layer.CreateField(ogr.FieldDefn("name", ogr.OFTString))
    for number in range(count):
        x, y = numbers.uniform(0, 10000), numbers.uniform(0, 10000)
        feature = ogr.Feature(layer.GetLayerDefn())
        feature.SetField("number", number)
        feature.SetField("name", f"Zürich {number}")
        text = (f"POLYGON(({x} {y},{x} {y + side},{x + side} {y + side},{x + side} {y},{x} {y}))" if kind == ogr.wkbPolygon
                else f"POINT({x} {y})")
        feature.SetGeometry(ogr.CreateGeometryFromWkt(text))
        layer.CreateFeature(feature)
    return path


def readable(folder):
    for path in folder.iterdir():
        if path.is_file():
            path.chmod(0o644)


STYLE = """<StyledLayerDescriptor version="1.0.0" xmlns="http://www.opengis.net/sld"><NamedLayer><UserStyle><FeatureTypeStyle>
  <Rule><Filter><PropertyIsEqualTo><PropertyName>{}</PropertyName><Literal>1</Literal></PropertyIsEqualTo></Filter>
  <PolygonSymbolizer><Fill/></PolygonSymbolizer></Rule></FeatureTypeStyle></UserStyle></NamedLayer></StyledLayerDescriptor>"""

LAYER = """<source name="{name}" type="shapefile"><layer name="{name}"><data>{data}</data>{more}</layer></source>
<tileset name="{name}"><source>{name}</source><cache>disk</cache><grid>plane</grid><format>PNG</format></tileset>"""


def configuration(folder, layers):
    return f"""<mapcache>{GRIDS}<cache name="disk" type="disk"><base>{folder}/cache</base></cache>{"".join(layers)}
      <service type="wms" enabled="true"><full_wms>forward</full_wms><format allow_client_override="true">PNG</format></service>
      </mapcache>"""


@pytest.fixture(scope="module")
def web(shared_folder, shared_apache):
    folder = shared_folder
    layers = []
    for name in ("plain", "indexed", "stale", "bare", "gdal", "cut", "replaced", "points", "deleted", "latin", "dos", "lie",
                 "broken"):
        kind = ogr.wkbPoint if name == "points" else ogr.wkbPolygon
        make(folder / f"{name}.shp", kind=kind, encoding={"latin": "ISO-8859-1", "dos": "CP850"}.get(name, "UTF-8"))
        more = "<encoding>CP850</encoding>" if name == "lie" else ""
        layers.append(LAYER.format(name=name, data=folder / f"{name}.shp", more=more))
    for name, driver in (("latin", 0x57), ("dos", 0x02)):  # the table says it by itself
        (folder / f"{name}.cpg").unlink(missing_ok=True)
        with open(folder / f"{name}.dbf", "r+b") as file:
            file.seek(29)
            file.write(bytes([driver]))
    (folder / "bare.shx").unlink()
    layers.append(LAYER.format(name="ground", data=folder / "plain.shp", more="").replace("<layer", "<background>#336699</background><layer"))
    (folder / "far.sld").write_text(STYLE.format("number").replace("<PolygonSymbolizer>", "<MaxScaleDenominator>10</MaxScaleDenominator><PolygonSymbolizer>"))
    layers.append(LAYER.format(name="far", data=folder / "missing.shp", more=f"<style>{folder}/far.sld</style>"))
    data = ogr.Open(str(folder / "deleted.shp"), 1)
    layer = data.GetLayer()
    for number in (3, 5, 8):
        layer.DeleteFeature(number)
    layer = data = None
    (folder / "broken.dbf").write_bytes(b"no table")
    data = ogr.Open(str(folder / "gdal.shp"), 1)
    data.ExecuteSQL("CREATE SPATIAL INDEX ON gdal")
    data = None
    assert (folder / "gdal.qix").exists()
    (folder / "files.xml").write_text(configuration(folder, layers))
    readable(folder)
    return shared_apache("files", f"MapCacheAlias /mc {folder}/files.xml\n")


def middle_of(path, number):
    data = ogr.Open(str(path))  # GDAL wants its owners kept
    feature = data.GetLayer().GetFeature(number)
    west, east, south, north = feature.GetGeometryRef().GetEnvelope()
    return (west + east) / 2, (south + north) / 2


def get(web, layer, box=WORLD, size=600, status=200):
    reply = web.get(f"/mc?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&STYLES=&LAYERS={layer}&SRS=EPSG:2056&FORMAT=image/png"
                    f"&BBOX={','.join(map(repr, box))}&WIDTH={size}&HEIGHT={size}&TRANSPARENT=TRUE")
    assert reply.status == status, reply.body
    return numpy.asarray(Image.open(io.BytesIO(reply.body)).convert("RGBA")) if status == 200 else reply.body


def info(web, layer, x, y, more="&FEATURE_COUNT=50"):
    box = (x - 300, y - 300, x + 300, y + 300)
    reply = web.get(f"/mc?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetFeatureInfo&STYLES=&LAYERS={layer}&QUERY_LAYERS={layer}"
                    f"&SRS=EPSG:2056&INFO_FORMAT=application/json&BBOX={','.join(map(repr, box))}&WIDTH=601&HEIGHT=601&X=300&Y=300"
                    + more)
    assert reply.status == 200, reply.body
    return [feature["properties"] for feature in json.loads(reply.body)["features"]]


def windows(count=25):
    numbers = random.Random(9)
    for _ in range(count):
        side = 10 ** numbers.uniform(1.5, 4)
        x, y = numbers.uniform(0, 10000 - side), numbers.uniform(0, 10000 - side)
        yield (x, y, x + side, y + side)


def test_every_index_shows_the_same(web, build, shared_folder):
    """Boxes in memory, our .qix, GDAL's .qix, one that is too old and must not be used, and no .shx at all."""
    done = subprocess.run([build / "bin/mapcache", "index", shared_folder / "indexed.shp", shared_folder / "stale.shp"],
                          capture_output=True, text=True, timeout=patience(60), check=True)
    assert done.stdout.count("400 shapes") == 2
    assert not list(shared_folder.glob("*.qix.*"))
    wrong = bytearray((shared_folder / "stale.qix").read_bytes())
    wrong[56:] = bytes(len(wrong) - 56)  # it would find nothing
    (shared_folder / "stale.qix").write_bytes(wrong)
    os.utime(shared_folder / "stale.qix", (1000000000, 1000000000))
    readable(shared_folder)
    shown = 0
    for box in windows():
        expected = get(web, "plain", box)
        shown += expected.any()
        for layer in ("indexed", "gdal", "stale", "bare"):
            assert numpy.array_equal(expected, get(web, layer, box)), (layer, box)
    assert shown > 10
    assert "stale" in web.log() and "not used" in web.log()


def test_gdal_reads_our_index(build, shared_folder, web):
    """The same features by attribute-less windows, with GDAL's own reader and our .qix."""
    path = make(shared_folder / "ours.shp", count=3000, side=50)
    expected = [numbers_in(path, box) for box in windows()]
    subprocess.run([build / "bin/mapcache", "index", path], check=True, timeout=patience(60), stdout=subprocess.DEVNULL)
    assert (shared_folder / "ours.qix").stat().st_size > 3000 * 4
    found = [numbers_in(path, box) for box in windows()]
    assert found == expected and sum(map(len, found)) > 500


def numbers_in(path, box):
    data = ogr.Open(str(path))
    layer = data.GetLayer()
    layer.SetSpatialFilterRect(*box)
    return [feature.GetField("number") for feature in layer]


def test_index_refuses_what_is_no_shapefile(build, folder):
    (folder / "a.shp").write_bytes(b"nothing of the kind")
    for arguments in ([], ["--nonsense"], [folder / "none.shp"], [folder / "a.shp"]):
        done = subprocess.run([build / "bin/mapcache", "index", *arguments], capture_output=True, text=True, timeout=patience(60), check=False)
        assert done.returncode == 1 and done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["a.shp"]


@pytest.mark.parametrize("layer, name", [("plain", "Zürich"), ("latin", "Zürich"), ("dos", "Zürich"), ("lie", "Z├╝rich")])
def test_code_pages(web, layer, name, shared_folder):
    found = info(web, layer, *middle_of(shared_folder / f"{layer}.shp", 17))
    assert {"number": 17, "name": f"{name} 17"} in found


def test_deleted_records_are_not_drawn(web, shared_folder):
    for number in (3, 5, 8, 9):
        middle = middle_of(shared_folder / "plain.shp", number)
        assert number in [found["number"] for found in info(web, "plain", *middle)]
        assert (number in [found["number"] for found in info(web, "deleted", *middle)]) == (number == 9)


def test_a_broken_table_leaves_the_shapes(web):
    assert numpy.array_equal(get(web, "broken"), get(web, "plain"))
    assert "no attributes" in web.log()


def test_a_file_that_is_cut_short_meanwhile_harms_nobody(web, shared_folder):
    """A hundred times, under maps: with less than there was there are fewer shapes, and never another process."""
    path = shared_folder / "cut.shp"
    whole = path.read_bytes()
    before = web.get("/mc?SERVICE=WMS&REQUEST=GetCapabilities").status
    assert before == 200
    expected = get(web, "cut")
    stop, statuses = threading.Event(), []

    def ask():
        while not stop.is_set():
            reply = web.get("/mc?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&STYLES=&LAYERS=cut&SRS=EPSG:2056&FORMAT=image/png"
                            f"&BBOX={','.join(map(repr, WORLD))}&WIDTH=300&HEIGHT=300")
            statuses.append(reply.status)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    numbers = random.Random(3)
    for _ in range(100):
        os.truncate(path, numbers.randrange(len(whole)))
        time.sleep(0.005)
        with open(path, "r+b") as file:  # in place, as careless programs do
            file.write(whole)
        time.sleep(0.005)
    stop.set()
    for thread in threads:
        thread.join()
    assert len(statuses) > 50 and statuses.count(200) > 10
    assert "Bus error" not in web.log() and "exit signal" not in web.log()
    time.sleep(0.1)
    assert numpy.array_equal(get(web, "cut"), expected)


def test_a_new_file_is_shown_with_the_next_map(web, shared_folder):
    before = get(web, "replaced")
    make(shared_folder / "other.shp", seed=2)
    readable(shared_folder)
    for ending in ("dbf", "shx", "prj", "cpg", "shp"):
        os.replace(shared_folder / f"other.{ending}", shared_folder / f"replaced.{ending}")
    after = get(web, "replaced")
    assert after.any() and not numpy.array_equal(before, after)


def test_points(web, shared_folder):
    x, y = middle_of(shared_folder / "points.shp", 11)
    assert 11 in [found["number"] for found in info(web, "points", x, y)]
    assert 11 not in [found["number"] for found in info(web, "points", x + 6, y)]


def test_a_background_lies_under_all_layers(web):
    drawn, over = get(web, "plain").astype(float), get(web, "ground")
    alpha = drawn[..., 3:] / 255
    assert 0 < alpha.mean() < 1 and (over[..., 3] == 255).all()
    off = abs(drawn[..., :3] * alpha + numpy.array([0x33, 0x66, 0x99]) * (1 - alpha) - over[..., :3]).max(axis=2)
    assert off[drawn[..., 3] == 0].max() == 0 and numpy.median(off[drawn[..., 3] == 255]) == 0
    assert off.max() <= 2 * 24 and off.mean() < 2  # edges of both have the nearest of 256 colours


def test_a_layer_that_shows_nothing_at_a_scale_is_not_read(web):
    assert not get(web, "far").any()
    get(web, "far", box=(0, 0, .5, .5), status=503)


def check(build, folder, layer, environment):
    config = folder / "mapcache.xml"
    config.write_text(configuration(folder, [layer]))
    done = subprocess.run([build / "bin/mapcache", "check", config], env={**os.environ, **environment}, timeout=patience(60),
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_check_says_what_a_map_would_find_out(build, folder, modules_environment):
    path = make(folder / "a.shp", count=5)
    (folder / "good.sld").write_text(STYLE.format("NUMBER"))
    (folder / "bad.sld").write_text(STYLE.format("colour"))

    text = LAYER.format(name="a", data=path, more="").replace("<layer", "<background>sea</background><layer")
    code, out = check(build, folder, text, modules_environment)
    assert code == 1 and "mapcache.xml:2:" in out and '<background>: "sea" is not #RRGGBB' in out

    def said(more="", data=path):
        return check(build, folder, LAYER.format(name="a", data=data, more=more), modules_environment)

    assert said(f"<style>{folder}/good.sld</style><attributes>name</attributes>")[0] == 0
    for more, code, words in ((f"<style>{folder}/bad.sld</style>", 2, ["colour", "style"]),
                              (f"<style>{folder}/none.sld</style>", 1, ["none.sld"]),
                              ("<attributes>name, nothing</attributes>", 2, ["nothing", "attributes"]),
                              ("<srs>somewhere</srs>", 1, ["somewhere", "EPSG"]),
                              ("<encoding>Klingon</encoding>", 1, ["Klingon"])):
        status, text = said(more)
        assert status == code and all(word in text for word in words), text
    assert "there is no" in said(data=folder / "missing.shp")[1]
    subprocess.run([build / "bin/mapcache", "index", path], check=True, timeout=patience(60), stdout=subprocess.DEVNULL)
    assert said()[0] == 0
    os.utime(folder / "a.qix", (1000000000, 1000000000))
    assert "mapcache index" in said()[1]
    (folder / "a.qix").unlink()
    shapes, index = path.read_bytes(), (folder / "a.shx").read_bytes()
    path.write_bytes(shapes[:-40])
    status, text = said()
    assert status == 2 and "1 shapes cannot be read" in text
    path.write_bytes(shapes)
    (folder / "a.shx").write_bytes(index[:-8])
    status, text = said()
    assert status == 2 and "the .shx ends before the .shp" in text
    (folder / "a.shx").write_bytes(index)
    assert said()[0] == 0
    (folder / "a.prj").unlink()
    status, text = said()
    assert status == 2 and ".prj" in text
    assert said("<srs>EPSG:2056</srs>")[0] == 0

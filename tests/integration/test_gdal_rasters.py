"""Rasters of measured values: how they become colours; and what `mapcache check` says of rasters before they are served."""
import json
import os
import subprocess
import time

import numpy
import pytest
from fastcgi import Server
from osgeo import gdal, osr
from patience import patience
from vector_maps import pixels

gdal.UseExceptions()
SIDE = 64
TYPES = {"uint16": gdal.GDT_UInt16, "int16": gdal.GDT_Int16, "float32": gdal.GDT_Float32, "uint8": gdal.GDT_Byte, "complex64": gdal.GDT_CFloat32}


def make_raster(path, *bands, epsg=3857, nodata=None, placed=True, statistics=False):
    """A GeoTIFF of 64 x 64 pixels of 1000 m; its pixels are those of a map of the same box."""
    driver = gdal.GetDriverByName("GTiff")
    raster = driver.Create(str(path), SIDE, SIDE, len(bands), TYPES[bands[0].dtype.name])
    if placed:
        raster.SetGeoTransform((0, 1000, 0, SIDE * 1000, 0, -1000))
    if epsg:
        crs = osr.SpatialReference()
        crs.ImportFromEPSG(epsg)
        raster.SetProjection(crs.ExportToWkt())
    for number, values in enumerate(bands, 1):
        raster.GetRasterBand(number).WriteArray(values)
        if nodata is not None:
            raster.GetRasterBand(number).SetNoDataValue(nodata)
        if statistics:
            raster.GetRasterBand(number).ComputeStatistics(False)
    raster = None
    return path


def columns(low, high, kind):
    """Values that rise from left to right."""
    return numpy.tile(numpy.linspace(low, high, SIDE), (SIDE, 1)).astype(kind)


def source(name, path, keys=""):
    return f'<source name="{name}" type="gdal">\n<data>{path}</data>\n<resample>NEAREST</resample>{keys}</source>'


def write_config(folder, *sources):
    names = [text.split('"')[1] for text in sources]
    tilesets = "".join(f"""<tileset name="{name}"><source>{name}</source><cache>disk</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>
""" for name in names)
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache>
{"".join(text + chr(10) for text in sources)}<cache name="disk" type="disk"><base>{folder}/tiles</base></cache>
{tilesets}<service type="wms" enabled="true"><full_wms>forward</full_wms><format>PNG</format></service>
<lock_dir>{folder}</lock_dir>
</mapcache>
""")
    return path


def get_map(server, layer):
    return server.get("/", f"SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS={layer}&STYLES=&SRS=EPSG:3857"
                      f"&FORMAT=image/png&TRANSPARENT=TRUE&WIDTH={SIDE}&HEIGHT={SIDE}&BBOX=0,0,{SIDE * 1000},{SIDE * 1000}")


@pytest.fixture
def ask(folder, build):
    """ask(source): the answer for a map whose pixels are the raster's, and the log."""
    def send(text):
        server = Server(build, write_config(folder, text), folder)
        try:
            answer = get_map(server, text.split(chr(34))[1])
            return answer, server.program.log()
        finally:
            server.stop()
    return send


@pytest.fixture
def draw(ask):
    def drawn(text):
        answer, log = ask(text)
        assert answer.status == 200, (answer.body, log)
        return pixels(answer.body)
    return drawn


def grey(values, low, high):
    return numpy.rint(numpy.clip((values.astype(float) - low) / (high - low), 0, 1) * 255).astype(int)


@pytest.mark.parametrize("kind, low, high", [("uint16", 0, 4000), ("int16", -100, 2500), ("float32", -0.25, 0.75), ("uint8", 20, 60)])
def test_a_scale_says_which_values_are_black_and_white(draw, folder, kind, low, high):
    span = high - low
    values = columns(max(low - span / 4, 0 if kind[0] == "u" else -1e9), high + span / 4, kind)
    path = make_raster(folder / "values.tif", values)
    map_ = draw(source("values", path, f"<scale>{low} {high}</scale>"))
    assert numpy.all(map_[..., 3] == 255)
    for band in range(3):
        assert numpy.abs(map_[..., band] - grey(values, low, high)).max() <= 1
    inverted = draw(source("inverted", path, f"<scale>{high},{low}</scale>"))
    assert numpy.abs(inverted[..., 0] - (255 - grey(values, low, high))).max() <= 1


def test_without_a_scale_the_statistics_count(draw, folder):
    values = columns(100, 1100, "uint16")
    with_statistics = make_raster(folder / "a.tif", values, statistics=True)
    assert numpy.abs(draw(source("a", with_statistics))[..., 0] - grey(values, 100, 1100)).max() <= 1
    without = make_raster(folder / "b.tif", values)
    before = sorted(path.name for path in folder.iterdir() if path.suffix in (".tif", ".xml", ".aux"))
    assert numpy.abs(draw(source("b", without))[..., 0] - grey(values.clip(115, 1084), 115, 1084)).max() <= 1, "2 % of it on either side"
    assert sorted(path.name for path in folder.iterdir() if path.suffix in (".tif", ".xml", ".aux")) == sorted({*before, "mapcache.xml"})


def test_bands_are_chosen_and_scaled_alike_or_each_for_itself(draw, folder):
    bands = [columns(0, 1000 * number, "uint16") for number in (1, 2, 3, 4, 5)]
    path = make_raster(folder / "five.tif", *bands)
    map_ = draw(source("five", path, "<bands>5 3 1</bands><scale>0 5000</scale>"))
    for at, band in enumerate((5, 3, 1)):
        assert numpy.abs(map_[..., at] - grey(bands[band - 1], 0, 5000)).max() <= 1
    map_ = draw(source("each", path, "<bands>5 3 1</bands><scale>0 5000 0 3000 0 1000</scale>"))
    assert numpy.abs(map_[..., 0] - map_[..., 2]).max() <= 1 and numpy.abs(map_[..., 0] - grey(bands[4], 0, 5000)).max() <= 1
    one = draw(source("one", path, "<bands>2</bands><scale>0 2000</scale>"))
    assert numpy.abs(one[..., 1] - grey(bands[1], 0, 2000)).max() <= 1
    eight = [columns(0, 50 * number, "uint8") for number in (1, 2, 3, 4, 5)]
    swapped = draw(source("swapped", make_raster(folder / "eight.tif", *eight), "<bands>3 2 5</bands>"))
    assert numpy.array_equal(swapped[..., :3], numpy.dstack([eight[2], eight[1], eight[4]]))


def test_a_ramp_colours_values(draw, folder):
    values = columns(-200, 1200, "float32")
    path = make_raster(folder / "heights.tif", values)
    map_ = draw(source("heights", path, "<ramp>0 #0000ff, 500 #ffffff,\n 1000 #ff000080</ramp>"))
    row, line = map_[10], values[10]
    assert numpy.all(row[line < 0] == (0, 0, 255, 255))
    share = line[(line > 0) & (line < 500)] / 500
    assert numpy.abs(row[(line > 0) & (line < 500)][:, 0] - numpy.rint(share * 255)).max() <= 1
    assert numpy.abs(row[line > 1000] - (255, 0, 0, 128)).max() <= 1
    classes = make_raster(folder / "classes.tif", (columns(0, 2.99, "uint8")))
    map_ = draw(source("classes", classes, "<ramp>0 #00000000, 1 #102030, 2 #ff0000</ramp>"))
    assert {tuple(pixel) for pixel in map_[5]} == {(0, 0, 0, 0), (0x10, 0x20, 0x30, 255), (255, 0, 0, 255)}


@pytest.mark.parametrize("keys, gone", [("", 7), ("<nodata>9</nodata>", 9), ("<nodata>none</nodata>", None), ("<nodata>nan</nodata>", numpy.nan)])
def test_no_data_is_transparent(draw, folder, keys, gone):
    values = columns(20, 30, "float32")
    values[:10], values[10:20], values[20:30] = 7, 9, numpy.nan
    map_ = draw(source("holes", make_raster(folder / "holes.tif", values, nodata=7), f"<scale>0 30</scale>{keys}"))
    for rows, value in [(slice(0, 10), 7), (slice(10, 20), 9), (slice(20, 30), numpy.nan), (slice(30, None), 25)]:
        hidden = value == gone or numpy.isnan(value)  # what is no number is never a colour
        assert numpy.all(map_[rows, :, 3] == (0 if hidden else 255)), value


def check(build, config, *options):
    began = time.monotonic()
    done = subprocess.run([build / "bin/mapcache", "check", "--json", *options, config], capture_output=True, text=True, timeout=patience(60))
    assert done.stderr == "", done.stderr
    return [(one["severity"], one["line"], one["text"]) for one in json.loads(done.stdout)["complaints"]
            if one["severity"] != "note"], done.returncode, time.monotonic() - began


def test_check_opens_rasters(build, folder):
    (folder / "broken.tif").write_bytes(b"II*\0garbage")
    ramp = columns(0, 255, "uint8")
    cases = {
        "missing": (folder / "missing.tif", "", "No such file"),
        "broken": (folder / "broken.tif", "", "cannot be opened"),
        "nowhere": (make_raster(folder / "a.tif", ramp, epsg=None), "", "has no CRS"),
        "unplaced": (make_raster(folder / "b.tif", ramp, placed=False), "", "nothing says where"),
        "complex": (make_raster(folder / "c.tif", columns(0, 1, "complex64")), "", "CFloat32"),
        "many": (make_raster(folder / "d.tif", *[ramp] * 13), "", "has 13 bands: <bands>"),
        "beyond": (make_raster(folder / "e.tif", ramp), "<bands>4</bands>", "band 4 of a raster of 1"),
        "infrared": (make_raster(folder / "f.tif", *[columns(0, 9, "uint16")] * 4), "", "<bands>"),
        "colours": (make_raster(folder / "g.tif", *[ramp] * 3), "<ramp>0 #000000, 9 #ffffff</ramp>", "a <ramp> is of one band"),
        "good": (make_raster(folder / "h.tif", *[ramp] * 3), "", None),
        "told": (make_raster(folder / "i.tif", columns(0, 9, "int16")), "<scale>0 9</scale>", None),
    }
    config = write_config(folder, *[source(name, path, keys) for name, (path, keys, _) in cases.items()])
    found, status, _ = check(build, config)
    lines = config.read_text().splitlines()
    expected = {name: lines.index(f"<data>{path}</data>") + 1 for name, (path, _, words) in cases.items() if words}
    assert status == 1 and [severity for severity, _, _ in found] == ["error"] * len(expected)
    for name, line in expected.items():
        assert any(at == line and cases[name][2] in text for _, at, text in found), (name, found)


def test_check_names_what_is_only_estimated(build, folder):
    values = columns(100, 1100, "uint16")
    config = write_config(folder, source("guess", make_raster(folder / "a.tif", values)),
                          source("known", make_raster(folder / "b.tif", values, statistics=True)))
    found, status, _ = check(build, config)
    assert status == 2 and len(found) == 1 and found[0][0] == "warning"
    assert "115 and 1084" in found[0][2] and "<scale>" in found[0][2]


def test_check_waits_for_no_raster_for_ever(build, folder):
    """A pipe that nobody writes to, as a network that does not answer."""
    pipe = folder / "silent.tif"
    subprocess.run(["mkfifo", pipe], check=True)
    found, status, seconds = check(build, write_config(folder, source("silent", pipe)))
    assert status == 2 and "not open after 10 seconds" in found[0][2]
    assert seconds < patience(20)


@pytest.mark.parametrize("keys, words", [
    ("<scale>5</scale>", "scale"), ("<scale>1 2 3</scale>", "two numbers"), ("<scale>7 7</scale>", "same value"), ("<bands>0</bands>", "bands"),
    ("<bands>1.5</bands>", "bands"), ("<bands>1 2 3 4 5</bands>", "bands"), ("<nodata>black</nodata>", "nodata"), ("<ramp>0 red</ramp>", "0 red"),
    ("<ramp>1 #000000, 1 #ffffff</ramp>", "above"), ("<ramp></ramp>", "ramp"), ("<ramp>1 #000000</ramp><scale>0 1</scale>", "leave <scale>"),
    ("<ramp>1 #000000</ramp><bands>1 2 3</bands>", "one band"), ("<ramp>" + ",".join(f"{i} #000000" for i in range(257)) + "</ramp>", "256")])
def test_wrong_values_are_refused_with_their_line(build, folder, keys, words):
    found, status, _ = check(build, write_config(folder, source("wrong", folder / "none.tif", keys)))
    assert status == 1 and words in found[0][2] and found[0][1] > 1


def test_logs_say_why_a_raster_makes_no_map(ask, folder):
    for text, words in [(source("nowhere", make_raster(folder / "a.tif", columns(0, 9, "uint8"), epsg=None)), "has no CRS"),
                        (source("complex", make_raster(folder / "b.tif", columns(0, 9, "complex64"))), "CFloat32"),
                        (source("missing", folder / "missing.tif"), "No such file")]:
        answer, log = ask(text)
        assert answer.status == 500 and words in log and "no reason given" not in log, log
        assert str(folder).encode() not in answer.body


def test_single_extremes_do_not_darken_a_raster_without_statistics(folder, draw):
    """Black and white are the values beyond which 2 % of the raster lie."""
    values = columns(1000, 2000, "uint16")
    values[5, 5], values[50, 50] = 65000, 0
    image = draw(source("spiked", make_raster(folder / "spiked.tif", values)))
    row = image[30, :, 0].astype(int)
    assert row[2] < 16 and row[-3] > 239 and abs(row[SIDE // 2] - 128) < 12, row
    assert tuple(image[5, 5][:3]) == (255, 255, 255) and tuple(image[50, 50][:3]) == (0, 0, 0)


def test_a_raster_that_is_copied_into_a_folder_is_missing_in_no_map(build, folder):
    """The stamp of the folder does not change while the bytes come. What has not changed for long and is no raster is left out."""
    values, mosaic = columns(10, 200, "uint8"), folder / "mosaic"
    mosaic.mkdir()
    make_raster(folder / "both.tif", values)
    for name, left in (("east", SIDE // 2), ("west", 0)):
        gdal.Translate(str(folder / f"{name}.tif"), str(folder / "both.tif"), srcWin=[left, 0, SIDE // 2, SIDE])
    east = (folder / "east.tif").read_bytes()
    (folder / "west.tif").rename(mosaic / "west.tif")
    server = Server(build, write_config(folder, source("both", mosaic, "<retries>0</retries><scale>0 255</scale>")), folder)

    def is_drawn_to(width):
        answer = get_map(server, "both")
        assert answer.status == 200, server.log()
        image = pixels(answer.body)
        assert numpy.array_equal(image[:, :width, 0], values[:, :width]) and not image[:, width:, 3].any()

    try:
        is_drawn_to(SIDE // 2)
        for length in (0, 3, 8, 100, len(east) // 2, len(east) - 1):
            (mosaic / "east.tif").write_bytes(east[:length])
            assert get_map(server, "both").status != 200, length
        (mosaic / "east.tif").write_bytes(east)
        is_drawn_to(SIDE)
        (mosaic / "east.tif").unlink()
        (mosaic / "east.tif").write_bytes(east[:8])
        os.utime(mosaic / "east.tif", (0, 0))
        is_drawn_to(SIDE // 2)
        (mosaic / "east.tif").write_bytes(east)
        is_drawn_to(SIDE)
    finally:
        server.stop()

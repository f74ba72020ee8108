"""Programs that people use as clients: GDAL's WMS and WMTS drivers and OWSLib, from the capabilities to the pixels."""
import json
import subprocess

import numpy
import pytest
from conftest import GRID
from drop_in import pixels
from lifecycle import HALF, source, tileset, write
from origin import Origin, pattern
from patience import patience
from owslib.util import ServiceException
from owslib.wms import WebMapService
from owslib.wmts import WebMapTileService


class Server:
    def __init__(self, web, folder):
        self.web, self.folder = web, folder
        self.url = f"http://127.0.0.1:{web.port}/mc"


@pytest.fixture(scope="module")
def server(shared_folder, shared_apache):
    with Origin() as origin:
        both = tileset("base", metatile="4 4", more="<metadata><title>The base</title><abstract>A pattern</abstract>"
                                                    "<wgs84boundingbox>-180 -90 180 90</wgs84boundingbox></metadata>")
        both = both.replace("</grid>", "</grid><grid>WGS84</grid>")
        times = tileset("times", more="""<dimensions><dimension type="values" name="time" default="2020" unit="ISO8601">
            <value>2019</value><value>2020</value></dimension></dimensions>""")
        config = write(shared_folder, source("pattern", origin.url("/pattern?")), both, times)
        config.write_text(config.read_text().replace("{z}/{x}", "{dim}/{grid}/{z}/{x}"))
        yield Server(shared_apache("ours", f"MapCacheAlias /mc {config}\n"), shared_folder)


def expected(extent, width, height, srs="EPSG:3857"):
    return pixels(pattern({"WIDTH": str(width), "HEIGHT": str(height), "SRS": srs, "BBOX": ",".join(map(str, extent))}))


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=patience(60), check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def fetch_with_gdal(server, dataset, *options):
    result = server.folder / "gdal.png"
    result.unlink(missing_ok=True)
    run("gdal_translate", "-q", "--config", "GDAL_ENABLE_WMS_CACHE", "NO", "-of", "PNG", *options, dataset, result)
    return pixels(result.read_bytes())


def info(dataset):
    return json.loads(run("gdalinfo", "-json", dataset))


# GDAL, WMTS

def test_gdal_reads_the_wmts_capabilities(server):
    found = info(f"WMTS:{server.url}/wmts/1.0.0/WMTSCapabilities.xml,layer=base,tilematrixset={GRID},zoom_level=2")
    assert found["size"] == [1024, 1024]
    west, _, _, north, _, step = found["geoTransform"]
    assert abs(west + HALF) < 0.01 and abs(north - HALF) < 0.01 and abs(step + 2 * HALF / 1024) < 0.001
    assert "3857" in found["coordinateSystem"]["wkt"]
    listed = run("gdalinfo", f"WMTS:{server.url}/wmts?SERVICE=WMTS&REQUEST=GetCapabilities")
    assert "layer=base" in listed and "layer=times" in listed


def test_gdal_draws_what_wmts_serves(server):
    dataset = f"WMTS:{server.url}/wmts?SERVICE=WMTS&REQUEST=GetCapabilities,layer=base,tilematrixset={GRID},zoom_level=2"
    drawn = fetch_with_gdal(server, dataset, "-srcwin", 200, 300, 400, 300)
    whole = expected((-HALF, -HALF, HALF, HALF), 1024, 1024)
    assert numpy.array_equal(drawn, whole[300:600, 200:600])


def test_gdal_knows_the_axis_order_of_degrees(server):
    dataset = f"WMTS:{server.url}/wmts/1.0.0/WMTSCapabilities.xml,layer=base,tilematrixset=WGS84,zoom_level=1"
    found = info(dataset)
    assert found["size"] == [1024, 512] and found["geoTransform"][:2] == [-180, 0.3515625]
    drawn = fetch_with_gdal(server, dataset)
    assert numpy.array_equal(drawn, expected((-180, -90, 180, 90), 1024, 512, "EPSG:4326"))


# GDAL, WMS: its own description names the server, the box and the version

def wms_file(server, version, srs, extent, size):
    west, south, east, north = extent
    key = "CRS" if version == "1.3.0" else "SRS"
    order = "<BBoxOrder>yxYX</BBoxOrder>" if version == "1.3.0" and srs == "EPSG:4326" else ""
    path = server.folder / "wms.xml"
    path.write_text(f"""<GDAL_WMS><Service name="WMS"><Version>{version}</Version><ServerUrl>{server.url}?</ServerUrl>
  <{key}>{srs}</{key}><ImageFormat>image/png</ImageFormat><Layers>base</Layers><Transparent>TRUE</Transparent>{order}</Service>
  <DataWindow><UpperLeftX>{west}</UpperLeftX><UpperLeftY>{north}</UpperLeftY><LowerRightX>{east}</LowerRightX>
  <LowerRightY>{south}</LowerRightY><SizeX>{size[0]}</SizeX><SizeY>{size[1]}</SizeY></DataWindow>
  <BandsCount>4</BandsCount><BlockSizeX>300</BlockSizeX><BlockSizeY>200</BlockSizeY></GDAL_WMS>""")
    return path


@pytest.mark.parametrize("version", ["1.1.1", "1.3.0"])
@pytest.mark.parametrize("srs, extent, size", [("EPSG:3857", (-HALF, -HALF, HALF, HALF), (1024, 1024)),
                                               ("EPSG:4326", (-180, -90, 180, 90), (1024, 512))])
def test_gdal_draws_what_wms_serves(server, version, srs, extent, size):
    drawn = fetch_with_gdal(server, wms_file(server, version, srs, extent, size))
    whole = expected(extent, *size, srs)
    assert drawn.shape == whole.shape and (numpy.abs(drawn - whole).max(axis=2) <= 1).mean() > 0.995


def test_gdal_finds_the_layers_of_a_wms(server):
    listed = run("gdalinfo", f"WMS:{server.url}?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetCapabilities")
    assert "LAYERS=base" in listed and "LAYERS=times" in listed and "SRS=EPSG:3857" in listed
    name = next(line.split("=", 1)[1] for line in listed.splitlines()
                if "_NAME=WMS:" in line and "LAYERS=base" in line and "SRS=EPSG:3857" in line)
    size = info(name)["size"]
    assert size[0] > 1000 and size[1] > 1000


# OWSLib

@pytest.mark.parametrize("version", ["1.1.1", "1.3.0"])
def test_owslib_reads_wms(server, version):
    wms = WebMapService(server.url, version=version)
    assert wms.identification.type.endswith("WMS") and wms.identification.version == version
    assert {"base", "times"} <= set(wms.contents)
    layer = wms["base"]
    assert (layer.title, layer.abstract) == ("The base", "A pattern")
    assert {"EPSG:3857", "EPSG:4326"} <= set(layer.crsOptions)
    assert tuple(round(number) for number in layer.boundingBoxWGS84) == (-180, -90, 180, 90)
    times = wms["times"].dimensions if version == "1.3.0" else {}
    assert version == "1.1.1" or times["time"]["values"] == ["2019", "2020"] and times["time"]["default"] == "2020"
    assert "image/png" in wms.getOperationByName("GetMap").formatOptions


@pytest.mark.parametrize("version", ["1.1.1", "1.3.0"])
@pytest.mark.parametrize("srs, extent, size", [("EPSG:3857", (-HALF / 2, -HALF / 2, 0, 0), (256, 256)),
                                               ("EPSG:4326", (-45, 0, 0, 45), (256, 256)),
                                               ("EPSG:4326", (-90, -45, 45, 45), (384, 256))])
def test_owslib_gets_maps(server, version, srs, extent, size):
    wms = WebMapService(server.url, version=version)
    # x and y here; OWSLib itself writes them the other way round for 1.3.0 and EPSG:4326
    reply = wms.getmap(layers=["base"], srs=srs, bbox=extent, size=size, format="image/png", transparent=True)
    assert reply.info()["Content-Type"] == "image/png"
    drawn, whole = pixels(reply.read()), expected(extent, *size, srs)
    assert drawn.shape == whole.shape and (numpy.abs(drawn - whole).max(axis=2) <= 1).mean() > 0.995


def test_owslib_is_told_what_is_wrong(server):
    wms = WebMapService(server.url, version="1.1.1")
    with pytest.raises(ServiceException) as caught:
        wms.getmap(layers=["base"], srs="EPSG:9999", bbox=(0, 0, 1, 1), size=(10, 10), format="image/png")
    assert 'code="InvalidSRS"' in str(caught.value)


def test_owslib_reads_wmts_and_gets_tiles(server):
    wmts = WebMapTileService(f"{server.url}/wmts")
    assert wmts.identification.type.endswith("WMTS") and {"base", "times"} <= set(wmts.contents)
    assert {GRID, "WGS84"} <= set(wmts.tilematrixsets)
    matrix = wmts.tilematrixsets["WGS84"].tilematrix["1"]
    assert (matrix.matrixwidth, matrix.matrixheight) == (4, 2)
    # OWSLib gives the corner as the document does: latitude first for EPSG:4326
    assert tuple(matrix.topleftcorner) == (90.0, -180.0)
    assert wmts.tilematrixsets[GRID].tilematrix["0"].scaledenominator == pytest.approx(559082264.0287179)
    reply = wmts.gettile(layer="base", tilematrixset="WGS84", tilematrix="1", row=0, column=2, format="image/png")
    assert numpy.array_equal(pixels(reply.read()), expected((0, 0, 90, 90), 256, 256, "EPSG:4326"))
    dated = wmts.gettile(layer="times", tilematrixset=GRID, tilematrix="2", row=1, column=2, format="image/png",
                         time="2019")
    assert numpy.array_equal(pixels(dated.read()), expected((0, 0, HALF / 2, HALF / 2), 256, 256))
    assert (server.folder / "tiles/times").is_dir() and any(
        "2019" in str(path) for path in (server.folder / "tiles/times").rglob("*.png"))


def test_owslib_gets_tiles_by_the_templates_of_the_document(server):
    wmts = WebMapTileService(f"{server.url}/wmts/1.0.0/WMTSCapabilities.xml")
    template = next(link["template"] for link in wmts["base"].resourceURLs if link["resourceType"] == "tile")
    address = template
    for name, value in {"TileMatrixSet": GRID, "TileMatrix": "2", "TileRow": "1", "TileCol": "2"}.items():
        address = address.replace("{%s}" % name, value)
    assert address.startswith(server.url) and "{" not in address
    reply = server.web.get(address[len(f"http://127.0.0.1:{server.web.port}"):])
    assert reply.status == 200 and numpy.array_equal(pixels(reply.body), expected((0, 0, HALF / 2, HALF / 2), 256, 256))

"""The map page on fine screens, desktop and phone: tiles with as many pixels as the screen has, and a page that fits."""
import re

import numpy
import pytest
from browser import Browser
from conftest import ROOT
from drop_in import pixels
from osgeo import ogr, osr

SERVICES = ["wms", "wmts", "tms", "gmaps", "ve", "mapguide", "kml"]
STYLE = """<StyledLayerDescriptor version="1.0.0" xmlns="http://www.opengis.net/sld"><NamedLayer><Name>a</Name><UserStyle><FeatureTypeStyle>
  <Rule><LineSymbolizer><Stroke><CssParameter name="stroke">#ff0000</CssParameter><CssParameter name="stroke-width">2</CssParameter></Stroke>
  </LineSymbolizer></Rule></FeatureTypeStyle></UserStyle></NamedLayer></StyledLayerDescriptor>"""
TILESET = """<tileset name="{name}"><source>lines</source><cache>disk</cache><grid>GoogleMapsCompatible</grid><format>PNG</format>
  <density>{density}</density></tileset>"""


@pytest.fixture(scope="module")
def server(shared_folder, shared_apache):
    folder = shared_folder
    assert (ROOT / "build/assets/ol/ol.js").exists(), "OpenLayers is missing: run script/bootstrap"
    folder.chmod(0o777)
    wgs84 = osr.SpatialReference()
    wgs84.ImportFromEPSG(4326)
    wgs84.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    data = ogr.GetDriverByName("ESRI Shapefile").CreateDataSource(str(folder / "lines.shp"))
    layer = data.CreateLayer("lines", wgs84, ogr.wkbLineString)
    for degrees in range(-80, 81, 10):
        for text in (f"LINESTRING({2 * degrees} -80,{2 * degrees} 80)", f"LINESTRING(-170 {degrees},170 {degrees})"):
            feature = ogr.Feature(layer.GetLayerDefn())
            feature.SetGeometry(ogr.CreateGeometryFromWkt(text))
            layer.CreateFeature(feature)
    del layer, data
    (folder / "lines.sld").write_text(STYLE)
    for path in folder.glob("lines.*"):
        path.chmod(0o644)
    config = folder / "mapcache.xml"
    services = "".join(f'<service type="{name}" enabled="true"/>' for name in [*SERVICES[1:], "demo"])
    config.write_text(f"""<mapcache><metadata><title>Screens under test</title></metadata>
      <source name="lines" type="shapefile"><layer><data>{folder}/lines.shp</data><style>{folder}/lines.sld</style></layer></source>
      <cache name="disk" type="disk"><base>{folder}/tiles</base></cache>
      {TILESET.format(name="fine", density="2 3")}{TILESET.format(name="coarse", density="1")}
      <service type="wms" enabled="true"><full_wms>forward</full_wms><format allow_client_override="true">PNG</format></service>{services}
      <locker type="disk"><directory>{folder}</directory></locker></mapcache>""")
    return shared_apache("ours", f"MapCacheAlias /mc {config}\n", environment={"MAPCACHE_ASSETS": str(ROOT / "build/assets")})


@pytest.fixture(scope="module", params=["desktop", "phone"])
def screen(request):
    with Browser(1200, 800, 2) if request.param == "desktop" else Browser(390, 844, 3, phone=True) as running:
        running.scale = 2 if request.param == "desktop" else 3
        yield running


def factor_of(url):
    """What an address says of the pixels that it is for."""
    found = re.search(r"(?:@|%40)([23])x", url)
    dots = re.search(r"MAP_RESOLUTION=([0-9]+)", url)
    return int(found.group(1)) if found else int(dots.group(1)) // 90 if dots else 1


@pytest.mark.parametrize("service", SERVICES)
def test_tiles_are_those_of_the_screen_where_there_are_any(screen, server, service):
    screen.open("about:blank")
    screen.network(), screen.console()
    screen.open(f"http://127.0.0.1:{server.port}/mc/demo/{service}#layer=fine")
    requests = screen.settled("fine")
    assert screen.console() == []
    maps = [url for url, status in requests if status == 200 and "fine" in url and not re.search("layers.json|GetLegend", url)]
    factors = {factor_of(url) for url in maps}
    assert factors == {1 if service in ("ve", "mapguide") else screen.scale}, maps
    left, top, right, bottom = (int(edge * screen.scale) for edge in screen.script(
        "const b = document.getElementById('map').getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom];"))
    picture = pixels(screen.screenshot())
    assert right - left > 300 * screen.scale and bottom - top > 300 * screen.scale
    assert picture.shape[1] >= right and picture.shape[0] >= bottom, "the page fits into the window"
    shown = picture[top:bottom, left:right]
    assert ((shown[..., 0] > 230) & (shown[..., 1] < 60)).sum() > 1000 * screen.scale
    assert screen.script("return document.documentElement.scrollWidth <= window.innerWidth;")


def test_a_layer_without_such_tiles_is_asked_for_those_that_it_has(screen, server):
    screen.open("about:blank")
    screen.open(f"http://127.0.0.1:{server.port}/mc/demo/gmaps#layer=coarse")
    requests = screen.settled("gmaps/coarse")
    assert {factor_of(url) for url, status in requests if status == 200 and "gmaps/coarse" in url} == {1}
    assert screen.console() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_front_page_fits_and_has_the_colours_of_its_reader(screen, server, scheme):
    screen.prefer(scheme)
    screen.open("about:blank")
    screen.open(f"http://127.0.0.1:{server.port}/mc/demo/")
    drawn = "return [...document.querySelectorAll('.picture')].map(p => p.dataset.drawn).join()"
    screen.settled("layers.json", until=lambda: screen.script(drawn) == "yes,yes")
    assert screen.script("return document.documentElement.scrollWidth <= window.innerWidth;")
    brightness = pixels(screen.screenshot())[-20:, :20, :3].mean()
    assert brightness > 200 if scheme == "light" else brightness < 60
    screen.prefer("light")

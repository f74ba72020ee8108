"""The demo pages in headless Chromium: a map on each, nothing broken, nothing asked of other hosts."""
import mapserver
import numpy
import pytest
from browser import Browser
from conftest import GRID, ROOT
from drop_in import pixels

SERVICES = ["wms", "wmts", "tms", "gmaps", "ve", "mapguide", "kml"]
CONFIG = """<?xml version="1.0" encoding="UTF-8"?>
<mapcache>
  <metadata><title>Demo under test</title><abstract>Two layers</abstract></metadata>
  <source name="image" type="gdal"><data>{folder}/image.tif</data></source>
  <source name="info" type="wms"><getmap><params><LAYERS>green</LAYERS></params></getmap>
    <getfeatureinfo><info_formats>text/plain</info_formats><params><QUERY_LAYERS>green</QUERY_LAYERS></params>
    </getfeatureinfo><http><url>{origin}</url></http></source>
  <cache name="disk" type="disk"><base>{folder}/tiles</base></cache>
  <tileset name="image"><metadata><title>An image</title></metadata><source>image</source><cache>disk</cache>
    <grid>GoogleMapsCompatible</grid><grid>WGS84</grid><format>JPEG</format><metatile>4 4</metatile></tileset>
  <tileset name="flat"><metadata><title>Flat &lt;b&gt;&amp;amp;</title></metadata><source>info</source><cache>disk</cache>
    <grid>GoogleMapsCompatible</grid><format>PNG</format>
    <dimensions><dimension type="values" name="time" default="2020"><value>2019</value><value>2020</value></dimension>
    </dimensions></tileset>
  <service type="wms" enabled="true"><full_wms>assemble</full_wms>
    <format allow_client_override="true">PNG</format></service>
  <service type="wmts" enabled="true"/><service type="tms" enabled="true"/><service type="gmaps" enabled="true"/>
  <service type="kml" enabled="true"/><service type="ve" enabled="true"/><service type="mapguide" enabled="true"/>
  <service type="demo" enabled="true"/>
  <locker type="disk"><directory>{folder}</directory></locker>
</mapcache>
"""


@pytest.fixture(scope="module")
def server(shared_folder, shared_apache):
    from origin import Origin
    assert (ROOT / "build/assets/ol/ol.js").exists(), "OpenLayers is missing: run script/bootstrap"
    with Origin() as origin:
        shared_folder.chmod(0o777)
        mapserver.make_data(shared_folder)
        path = shared_folder / "mapcache.xml"
        path.write_text(CONFIG.format(folder=shared_folder, origin=origin.url("/wms?")))
        yield shared_apache("ours", f"MapCacheAlias /mc {path}\n", environment={"MAPCACHE_ASSETS": str(ROOT / "build/assets")})


@pytest.fixture(scope="module")
def browser():
    with Browser() as running:
        yield running


def check_clean(browser, server, requests):
    assert browser.console() == []
    foreign = [url for url, _ in requests if not url.startswith((f"http://127.0.0.1:{server.port}/mc/", "data:", "blob:"))]
    foreign = [url for url in foreign if not url.startswith(f"http://127.0.0.1:{server.port}/mc?")]
    assert foreign == []
    # a request that the page gave up has no status
    assert {status for url, status in requests if url.startswith("http")} <= {200, 304, None}


def colors_of_the_map(browser):
    """The number of different colours where the map is."""
    left, top, right, bottom = browser.script("const b = document.getElementById('map').getBoundingClientRect();"
                                              "return [b.left, b.top, b.right, b.bottom];")
    assert right - left > 500 and bottom - top > 400
    shown = pixels(browser.screenshot())[int(top):int(bottom), int(left):int(right)]
    return len(numpy.unique(shown.reshape(-1, 4), axis=0)), shown


def open_page(browser, server, path):
    browser.open("about:blank")
    browser.network()
    browser.console()
    browser.open(f"http://127.0.0.1:{server.port}/mc/demo{path}")


def test_the_first_page_leads_to_all_others(browser, server):
    open_page(browser, server, "")
    check_clean(browser, server, browser.settled("demo.css"))
    links = browser.script("return [...document.querySelectorAll('a')].map(a => a.href)")
    for service in SERVICES:
        assert f"http://127.0.0.1:{server.port}/mc/demo/{service}" in links
    text = browser.script("return document.body.innerText")
    assert "Demo under test" in text and "Flat <b>&amp;" in text and "An image" in text
    for link in set(links):
        assert server.get(link[len(f"http://127.0.0.1:{server.port}"):]).status == 200, link


def buttons(browser):
    return browser.script("return [...document.querySelectorAll('#layers button')].map(b => b.innerText)")


def press(browser, title):
    browser.script(f"[...document.querySelectorAll('#layers button')].find(b => b.innerText.includes({title!r})).click()")


@pytest.mark.parametrize("service", SERVICES)
def test_a_map_for_each_service(browser, server, service):
    open_page(browser, server, f"/{service}")
    own = {"wms": "/mc?REQUEST=GetMap", "mapguide": "/mc/mg/", "kml": "/mc/tms/"}.get(service, f"/mc/{service}")
    check_clean(browser, server, browser.settled(own))
    assert colors_of_the_map(browser)[0] > 300


@pytest.mark.parametrize("service", ["wms", "wmts", "mapguide"])
def test_another_layer_is_drawn_where_one_was(browser, server, service):
    open_page(browser, server, f"/{service}")
    browser.settled("image")
    press(browser, next(title for title in buttons(browser) if "Flat" in title))
    check_clean(browser, server, browser.settled("flat"))
    _, shown = colors_of_the_map(browser)
    middle = shown[shown.shape[0] // 2 - 5:shown.shape[0] // 2 + 5, shown.shape[1] // 2 - 5:shown.shape[1] // 2 + 5]
    assert (middle == (0, 255, 0, 255)).all()


def test_degrees_have_a_map_of_their_own(browser, server):
    open_page(browser, server, "/wmts#image%40WGS84")
    requests = browser.settled("WGS84")
    check_clean(browser, server, requests)
    assert not any(GRID in url for url, _ in requests)
    assert colors_of_the_map(browser)[0] > 300


def test_a_layer_that_may_be_transparent_is_drawn_over_another(browser, server):
    open_page(browser, server, "/wmts")
    browser.settled("image")
    chosen = "const f = document.getElementById('below'); return f.options[f.selectedIndex].text"
    assert browser.script(chosen) == "nothing"
    press(browser, "Flat")
    check_clean(browser, server, browser.settled("flat"))
    assert browser.script(chosen) == "An image"


def test_a_dimension_is_chosen(browser, server):
    open_page(browser, server, "/wmts")
    browser.settled("image")
    press(browser, "Flat")
    browser.settled("flat")
    browser.script("const f = document.querySelector('[data-dimension=time]'); f.value = '2019';"
                   "f.dispatchEvent(new Event('change'))")
    check_clean(browser, server, browser.settled("2019"))


def test_one_map_instead_of_tiles_and_feature_info(browser, server):
    open_page(browser, server, "/wms")
    browser.settled("image")
    press(browser, "Flat")
    browser.settled("flat")
    browser.script("document.getElementById('whole').click()")
    requests = browser.settled("GetMap")
    check_clean(browser, server, requests)
    assert any("GetMap" in url and "WIDTH=256&" not in url for url, _ in requests)
    left, top, right, bottom = browser.script("const b = document.getElementById('map').getBoundingClientRect();"
                                              "return [b.left, b.top, b.right, b.bottom];")
    browser.move(int((left + right) / 2), int((top + bottom) / 2), click=True)
    check_clean(browser, server, browser.settled(
        "GetFeatureInfo", until=lambda: "feature at" in browser.script("return document.getElementById('info').innerText")))
    assert browser.script("return document.getElementById('place').innerText").startswith("EPSG:")

"""What the pages say where the map is when something is wrong: a library that is not there, tiles that are answered with an error,
a server that does not answer. In headless Chromium."""
import re

import pytest
from browser import Browser
from conftest import ROOT, listens, wait_until
from drop_in import pixels
from serve_things import raster, vectors

LIBRARIES = ("ol", "maplibre-gl", "proj4")
MODULES = "".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n" for name in ("proxy", "proxy_http", "rewrite"))
CONFIG = """<mapcache>
  <grid name="swiss"><srs>EPSG:2056</srs><units>m</units><origin>top-left</origin><extent>2420000 1030000 2900000 1350000</extent>
    <size>256 256</size><resolutions>1000 500 250 100 50</resolutions></grid>
  <source name="image" type="gdal"><data>{folder}/square.tif</data></source>
  <source name="areas" type="ogr"><layer name="areas"><data>{folder}/square.gpkg</data></layer></source>
  <cache name="none" type="none"/><cache name="empty" type="disk"><base>{folder}/empty</base></cache><format name="mvt" type="MVT"/>
  <tileset name="image"><source>image</source><cache>none</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>
  <tileset name="areas"><source>areas</source><cache>none</cache><grid>GoogleMapsCompatible</grid><grid>swiss</grid><format>mvt</format></tileset>
  <tileset name="empty"><cache>empty</cache><grid maxzoom="3">GoogleMapsCompatible</grid><format>PNG</format></tileset>
  <service type="wms" enabled="true"/><service type="gmaps" enabled="true"/><service type="demo" enabled="true"/></mapcache>"""
SAID = "return document.getElementById('problems').textContent"
ENGINE = "return document.getElementById('map').dataset.engine || ''"


@pytest.fixture(scope="module")
def config(shared_folder):
    shared_folder.chmod(0o777)
    raster(shared_folder / "square.tif")
    vectors(shared_folder / "square.gpkg", "GPKG")
    (shared_folder / "square.gpkg").chmod(0o666)
    path = shared_folder / "mapcache.xml"
    path.write_text(CONFIG.format(folder=shared_folder))
    return path


@pytest.fixture(scope="module")
def assets(shared_folder, shared_apache, config):
    """assets(name, *left_out): a server that has all libraries but these, files or folders."""
    def start(name, *left_out):
        folder = shared_folder / f"assets-{name}"
        for library in LIBRARIES:
            (folder / library).mkdir(parents=True)
            for file in (ROOT / "build/assets" / library).iterdir():
                if library not in left_out and file.name not in left_out:
                    (folder / library / file.name).symlink_to(file.resolve())
        return shared_apache(name, f"MapCacheAlias /mc {config}\n", environment={"MAPCACHE_ASSETS": str(folder)})
    return start


@pytest.fixture(scope="module")
def whole(assets):
    return assets("whole")


@pytest.fixture(scope="module")
def broken(shared_apache, whole):
    """A proxy that answers with an error instead of passing on a request for a tile: /403/, /404/, /500/, /503/; /away/ leads nowhere."""
    rules = "RewriteEngine on\n" + "".join(f'RewriteRule "^/{status}/gmaps/.*" - [R={status},L]\nProxyPass /{status}/ http://127.0.0.1:{whole.port}/mc/\n'
                                           for status in (403, 404, 500, 503))
    rules += f"ProxyPass /away/gmaps/ http://127.0.0.1:9/\nProxyPass /away/ http://127.0.0.1:{whole.port}/mc/\n"
    return shared_apache("broken", MODULES + rules)


@pytest.fixture(scope="module")
def browser():
    with Browser(1280, 800) as running:
        yield running


def show(browser, server, page, until):
    """The page, once until(what it says) holds and it has come to rest; what it says."""
    browser.open("about:blank")
    browser.network(), browser.console()
    browser.open(f"http://127.0.0.1:{server.port}/{page}")
    browser.settled(until=lambda: until(browser.script(SAID)))
    return browser.script(SAID)


def test_without_openlayers_maplibre_draws_what_it_can(browser, assets):
    server = assets("no-ol", "ol")
    said = show(browser, server, "mc/demo/map#layer=image", lambda said: browser.script(ENGINE) == "MapLibre")
    assert "OpenLayers does not load, so MapLibre draws the map." in said and "404: ol.js is not installed with this server" in said, said
    assert "script/bootstrap" in said and "MAPCACHE_ASSETS" in said
    said = show(browser, server, "mc/demo/map#layer=areas&grid=swiss", lambda said: "so there is no map" in said)
    assert "OpenLayers does not load, so there is no map." in said and "MAPCACHE_ASSETS" in said, said


@pytest.mark.parametrize("missing", ["maplibre-gl", "maplibre-gl-worker.mjs"])
def test_without_maplibre_openlayers_draws(browser, assets, missing):
    server = assets(f"no-{missing}", missing)
    said = show(browser, server, "mc/demo/map#layer=areas", lambda said: browser.script(ENGINE) == "OpenLayers")
    assert "MapLibre does not load, so OpenLayers draws the map." in said and ".mjs is not installed with this server" in said, said
    assert "script/bootstrap" in said


def test_without_proj4_a_layer_that_needs_it_says_so(browser, assets):
    server = assets("no-proj4", "proj4")
    said = show(browser, server, "mc/demo/map#layer=areas&layer=image&grid=swiss", lambda said: "proj4" in said)
    assert "proj4 does not load, so this layer cannot be warped into EPSG:2056." in said and "proj4.js is not installed" in said, said
    assert browser.script(ENGINE) == "OpenLayers"
    assert show(browser, server, "mc/demo/map#layer=image", lambda said: browser.script(ENGINE) == "OpenLayers") == ""


@pytest.mark.parametrize("status, words", [(403, "You don't have permission"), (404, "The requested URL was not found"),
                                           (500, "The server encountered an internal error"), (503, "temporarily unable to service your request"),
                                           ("away", "The proxy server could not handle|temporarily unable to service your request")])
@pytest.mark.parametrize("layer, engine", [("image", "OpenLayers"), ("areas", "MapLibre")])
def test_errors_of_tiles_are_words_over_the_map(browser, broken, status, words, layer, engine):
    said = show(browser, broken, f"{status}/demo/map#layer={layer}", lambda said: re.search(words, said))
    number = 503 if status == "away" else status
    assert f"The server answers {number}: " in said and "<" not in said, said
    assert browser.script(ENGINE) == engine
    box = browser.script("const p = document.getElementById('problems').getBoundingClientRect(), m = document.getElementById('map').getBoundingClientRect();"
                         "return [p.left - m.left, m.right - p.right, p.top - m.top, m.bottom - p.bottom, p.height]")
    assert all(edge >= 0 for edge in box) and box[4] > 20, box
    shown = pixels(browser.screenshot())
    assert len({tuple(colour) for colour in shown[60:100, 60:500].reshape(-1, 4)}) > 5, "the words are seen"


@pytest.mark.parametrize("layer", ["image", "areas"])
def test_our_own_words_are_told(browser, broken, whole, layer):
    """Tiles that no store has and no source makes; a layer that there is not."""
    said = show(browser, whole, f"mc/demo/map#layer={layer}&layer=empty&layer=nosuch", lambda said: "nosuch" in said and "empty" in said)
    assert re.search("The server answers 404: [^0-9<]*tile", said) and 'tileset "nosuch"' in said.replace("'", '"'), said


def test_cards_say_what_is_wrong(browser, broken):
    browser.open("about:blank")
    browser.open(f"http://127.0.0.1:{broken.port}/503/demo/")
    browser.settled("layers.json", until=lambda: browser.script("return document.querySelectorAll('[data-drawn=no]').length") == 3)
    assert browser.script("return [...document.querySelectorAll('.picture .bad')].every(p => p.textContent.startsWith('503: '))")


def test_a_server_that_is_gone_is_told(browser, config, apache):
    server = apache(f"MapCacheAlias /mc {config}\n", environment={"MAPCACHE_ASSETS": str(ROOT / "build/assets")})
    show(browser, server, "mc/demo/map#layer=image", lambda said: browser.script(ENGINE) == "OpenLayers")
    server.program.process.terminate()
    wait_until(lambda: not listens(("127.0.0.1", server.port)), "the server is gone")
    browser.script("document.getElementById('whole').click(); for (const button of document.querySelectorAll('.ol-zoom-in')) button.click()")
    browser.settled(until=lambda: "No answer of the server" in browser.script(SAID))


@pytest.mark.parametrize("width, height", [(1280, 800), (390, 844)])
def test_the_grid_that_is_chosen_can_be_read(whole, width, height):
    """On the page of the map, and on a card with its addresses open."""
    fits = """const list = document.querySelector(arguments[0] || SELECTOR), made = document.createElement('span');
        made.style.font = getComputedStyle(list).font; made.style.whiteSpace = 'pre'; made.style.position = 'absolute'; made.textContent = list.selectedOptions[0].text;
        document.body.append(made); const needed = made.getBoundingClientRect().width; made.remove();
        return [needed, list.clientWidth - 40]"""
    with Browser(width, height, 1 if width > 400 else 3, phone=width < 400) as browser:
        browser.open(f"http://127.0.0.1:{whole.port}/mc/demo/map#layer=areas")
        browser.settled(until=lambda: browser.script(ENGINE))
        needed, room = browser.script(fits.replace("arguments[0] || SELECTOR", "'#grid'"))
        assert 50 < needed <= room and "EPSG:3857" in browser.script("return document.getElementById('crs').textContent")
        browser.open(f"http://127.0.0.1:{whole.port}/mc/demo/")
        browser.settled("layers.json", until=lambda: browser.script("return document.querySelectorAll('.card').length") == 3)
        browser.script("document.querySelector('[data-layer=areas] details').open = true")
        browser.settled(until=lambda: browser.script("return document.querySelectorAll('.address').length") > 0)
        needed, room = browser.script(fits.replace("arguments[0] || SELECTOR", "'[data-layer=areas] select'"))
        assert 50 < needed <= room
        assert browser.script("return document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.parametrize("layer, engine", [("image", "OpenLayers"), ("areas", "MapLibre")])
def test_a_coarse_layer_below_does_not_keep_one_from_looking_closer(browser, whole, layer, engine):
    place = "at=834000,5860000,30"
    show(browser, whole, f"mc/demo/map#layer=empty&layer={layer}&{place}", lambda said: browser.script(ENGINE) == engine)
    assert place in browser.script("return location.hash")

"""The front page and the map in headless Chromium: every layer is shown, nothing is asked of other hosts, what is wrong is told in
words, and all of it works behind a proxy with another prefix."""
import json
import re
import urllib.parse

import mapserver
import numpy
import pytest
from browser import Browser
from conftest import GRID, ROOT, wait_until
from drop_in import pixels
from osgeo import ogr, osr

PROTOCOLS = {"wms": "REQUEST=GetMap", "wmts": "/wmts/1.0.0/", "tms": "/tms/", "gmaps": "/gmaps/", "ve": "/ve?", "mapguide": "/mg/", "kml": "/tms/"}
HOSTILE = "Flat <b>&amp; <img src=x onerror=document.title='broken'>"
MODULES = "".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n" for name in ("proxy", "proxy_http"))
CONFIG = """<?xml version="1.0" encoding="UTF-8"?>
<mapcache>
  <metadata><title>Pages under test</title><abstract>Some layers</abstract><url>http://elsewhere.invalid/maps/</url></metadata>
  <grid name="swiss"><srs>EPSG:2056</srs><units>m</units><origin>top-left</origin><extent>2420000 1030000 2900000 1350000</extent>
    <size>256 256</size><resolutions>1000 500 250 100 50</resolutions></grid>
  <source name="image" type="gdal"><data>{folder}/image.tif</data></source>
  <source name="info" type="wms"><getmap><params><LAYERS>green</LAYERS></params></getmap>
    <getfeatureinfo><info_formats>text/plain</info_formats><params><QUERY_LAYERS>green</QUERY_LAYERS></params>
    </getfeatureinfo><http><url>{origin}</url></http></source>
  <source name="gone" type="wms"><getmap><params><LAYERS>gone</LAYERS></params></getmap><http><url>http://127.0.0.1:9/</url></http></source>
  <source name="town" type="ogr"><layer name="areas"><data>{folder}/town.gpkg</data><table>areas</table></layer></source>
  <cache name="disk" type="disk"><base>{folder}/tiles</base></cache>
  <format name="mvt" type="MVT"/>
  <tileset name="image"><metadata><title>An image</title><attribution>Somebody &amp; others</attribution></metadata><source>image</source>
    <cache>disk</cache><grid>GoogleMapsCompatible</grid><grid>WGS84</grid><format>JPEG</format><metatile>4 4</metatile></tileset>
  <tileset name="flat"><metadata><title>Flat &lt;b&gt;&amp;amp; &lt;img src=x onerror=document.title='broken'&gt;</title></metadata>
    <source>info</source><cache>disk</cache><grid>GoogleMapsCompatible</grid><format>PNG</format>
    <dimensions><dimension type="values" name="time" default="2020"><value>2019</value><value>2020</value></dimension>
    <dimension type="regex" name="kind" default="all"><regex>^[a-z]+$</regex></dimension></dimensions></tileset>
  <tileset name="town"><metadata><title>Town</title><wgs84boundingbox>7 46 8 47</wgs84boundingbox></metadata><source>town</source>
    <cache>disk</cache><grid>GoogleMapsCompatible</grid><grid>swiss</grid><format>mvt</format></tileset>
  <tileset name="gone"><metadata><title>Gone</title></metadata><source>gone</source><cache>disk</cache>
    <grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>
  <service type="wms" enabled="true"><full_wms>assemble</full_wms><format allow_client_override="true">PNG</format></service>
  <service type="wmts" enabled="true"/><service type="tms" enabled="true"/><service type="gmaps" enabled="true"/>
  <service type="kml" enabled="true"/><service type="ve" enabled="true"/><service type="mapguide" enabled="true"/>
  <service type="demo" enabled="true"/>
  <server_timing>true</server_timing>
  <locker type="disk"><directory>{folder}</directory></locker>
</mapcache>
"""
SMALL = """<mapcache>{tilesets}<service type="gmaps" enabled="true"/><service type="demo" enabled="true"/></mapcache>"""


def make_town(folder):
    degrees = osr.SpatialReference()
    degrees.ImportFromEPSG(4326)
    degrees.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    data = ogr.GetDriverByName("GPKG").CreateDataSource(str(folder / "town.gpkg"))
    layer = data.CreateLayer("areas", degrees, ogr.wkbPolygon)
    layer.CreateField(ogr.FieldDefn("name", ogr.OFTString))
    feature = ogr.Feature(layer.GetLayerDefn())
    feature.SetField("name", "Mitte <i>")
    feature.SetGeometry(ogr.CreateGeometryFromWkt("POLYGON((7 46,8 46,8 47,7 47,7 46))"))
    layer.CreateFeature(feature)


COLOURED = ["town", *(f"town-{number}" for number in range(7))]


def vectors_config(folder):
    """As many tilesets of vector tiles, of one layer each, as there are colours."""
    tilesets = "".join(f'<tileset name="{name}"><metadata><wgs84boundingbox>7 46 8 47</wgs84boundingbox></metadata><source>s</source><cache>none</cache>'
                       "<grid>GoogleMapsCompatible</grid><format>mvt</format></tileset>" for name in COLOURED)
    return SMALL.format(tilesets=f"""<source name="s" type="ogr"><layer name="areas"><data>{folder}/town.gpkg</data><table>areas</table></layer></source>
      <cache name="none" type="none"/><format name="mvt" type="MVT"/>{tilesets}""")


@pytest.fixture(scope="module")
def server(shared_folder, shared_apache):
    from origin import Origin
    for library in ("ol/ol.js", "maplibre-gl/maplibre-gl.mjs", "proj4/proj4.js"):
        assert (ROOT / "build/assets" / library).exists(), f"{library} is missing: run script/bootstrap"
    with Origin() as origin:
        shared_folder.chmod(0o777)
        mapserver.make_data(shared_folder)
        make_town(shared_folder)
        (shared_folder / "town.gpkg").chmod(0o666)
        tileset = '<tileset name="only"><cache>c</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>'
        cache = f'<cache name="c" type="disk"><base>{shared_folder}/none</base></cache>'
        texts = {"pages": CONFIG.format(folder=shared_folder, origin=origin.url("/wms?")), "none": SMALL.format(tilesets=""),
                 "one": SMALL.format(tilesets=cache + tileset),
                 "many": SMALL.format(tilesets=cache + "".join(tileset.replace("only", f"product-{number}") for number in range(400)))}
        texts["vectors"] = vectors_config(shared_folder)
        for name, text in texts.items():
            (shared_folder / f"{name}.xml").write_text(text)
        aliases = "".join(f"MapCacheAlias /{alias} {shared_folder}/{name}.xml\n" for alias, name in (("mc", "pages"), *((name, name) for name in texts if name != "pages")))
        proxy = "ProxyPass /other/maps/ http://127.0.0.1:{port}/mc/\n"
        running = shared_apache("ours", aliases, environment={"MAPCACHE_ASSETS": str(ROOT / "build/assets")})
        running.proxied = shared_apache("proxy", MODULES + proxy.format(port=running.port))
        yield running


@pytest.fixture(scope="module")
def browser():
    with Browser(1280, 800) as running:
        yield running


@pytest.fixture(scope="module")
def plain_browser():
    """Without WebGL."""
    with Browser(1280, 800, more=["--disable-3d-apis"]) as running:
        yield running


def open_page(browser, server, path, alias="mc"):
    browser.open("about:blank")
    browser.network()
    browser.console()
    browser.open(f"http://127.0.0.1:{server.port}/{alias}/demo/{path}")


def check_clean(browser, server, requests, alias="mc"):
    assert browser.console() == []
    own = (f"http://127.0.0.1:{server.port}/{alias}/", "data:", "blob:", "mapcachetile:")
    assert [url for url, _ in requests if not url.startswith(own)] == []
    # a request that the page gave up has no status
    assert {status for url, status in requests if url.startswith("http")} <= {200, 204, 304, None}


def map_pixels(browser):
    left, top, right, bottom = browser.script("const b = document.getElementById('stage').getBoundingClientRect();"
                                              "return [b.left, b.top, b.right, b.bottom];")
    assert right - left > 500 and bottom - top > 400
    return pixels(browser.screenshot())[int(top):int(bottom), int(left):int(right)]


def color_count(browser):
    return len(numpy.unique(map_pixels(browser).reshape(-1, 4), axis=0))


def text_of(browser, element):
    return browser.script(f"return document.getElementById({element!r}).innerText")


def click_map(browser):
    left, top, right, bottom = browser.script("const b = document.getElementById('stage').getBoundingClientRect();"
                                              "return [b.left, b.top, b.right, b.bottom];")
    browser.move(int((left + right) / 2), int((top + bottom) / 2), click=True)


def test_pages_say_what_they_may_load(server):
    for path in ("/mc/demo/", "/mc/demo", "/mc/demo/map", "/mc/demo/wms"):
        reply = server.get(path)
        assert reply.status == 200 and reply.headers["Content-Type"] == "text/html; charset=utf-8"
        policy = dict(part.strip().split(" ", 1) for part in reply.headers["Content-Security-Policy"].split(";"))
        assert policy["default-src"] == "'none'" and policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert b"elsewhere.invalid" not in reply.body and b"<script>" not in reply.body and b"onclick" not in reply.body
    assert "Content-Security-Policy" not in server.get("/mc/demo/layers.json").headers


PICTURES = "return [...document.querySelectorAll('.picture')].map(p => p.dataset.drawn || '').join()"


def test_the_front_page_shows_each_layer(browser, server):
    open_page(browser, server, "")
    requests = browser.settled("layers.json", until=lambda: browser.script(PICTURES) == "yes,yes,yes,no")
    assert [status for url, status in requests if "gmaps/gone" in url and status] == [502]
    assert browser.script("return document.title") == "Pages under test"
    cards = browser.script("return [...document.querySelectorAll('.card')].map(c => c.innerText)")
    assert len(cards) == 4 and HOSTILE in cards[1] and "Somebody & others" in cards[0] and "502" in cards[3] and "time" in cards[1]
    assert "0–21 in GoogleMapsCompatible (EPSG:3857)" in cards[0] and "vector tiles" in cards[2] and "7.00°E to 8.00°E" in cards[2]
    assert browser.script("return document.documentElement.scrollWidth <= window.innerWidth")


def test_layers_are_found_by_words_and_kind(browser, server):
    open_page(browser, server, "")
    browser.settled("layers.json", until=lambda: browser.script("return document.querySelectorAll('.card').length") == 4)
    found = """const [word, kind] = [{!r}, {!r}], field = document.getElementById('filter'), list = document.getElementById('kind');
        field.value = word; list.value = kind; field.dispatchEvent(new Event('input'));
        return [...document.querySelectorAll('.card')].map(c => c.dataset.layer).join()"""
    assert browser.script(found.format("IMAGE an", "")) == "image"
    assert browser.script(found.format("", "vector")) == "town"
    assert browser.script(found.format("nothing like that", "")) == ""
    assert text_of(browser, "count") == "0 of 4 layers"


def test_addresses_lead_to_what_they_say(browser, server):
    """Those that can be copied, of each layer, on the host and prefix that the browser knows."""
    open_page(browser, server, "")
    browser.settled("layers.json")
    browser.script("for (const d of document.querySelectorAll('.card details')) d.open = true")
    shown = "return [...document.querySelectorAll('.card')].map(c => [...c.querySelectorAll('.address')].map(a => [a.dataset.name, a.querySelector('code').textContent]))"
    browser.settled(until=lambda: all(browser.script(shown)))
    for layer, addresses in zip(["image", "flat", "town"], browser.script(shown)):
        names = [name for name, _ in addresses]
        assert {"XYZ", "TileJSON", "Style", "WMTS", "WMTS tiles", "TMS", "QGIS", "GDAL"} <= set(names)
        assert ("WMS" in names) == ("KML" in names) == (layer != "town")
        for name, text in addresses:
            if name in ("QGIS", "GDAL"):
                assert layer in text and f"127.0.0.1:{server.port}/mc" in urllib.parse.unquote(text)
                continue
            url = re.sub(r"\{(z|TileMatrix)\}", "0", re.sub(r"\{(-?[xy]|TileRow|TileCol)\}", "0", text)).replace("{time}", "2020").replace("{kind}", "all")
            start = f"http://127.0.0.1:{server.port}"
            assert url.startswith(start + "/mc/"), text
            assert server.get(url[len(start):]).status == 200, text


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_map_asks_by_each_protocol(browser, server, protocol):
    open_page(browser, server, protocol)
    check_clean(browser, server, browser.settled(PROTOCOLS[protocol]))
    assert color_count(browser) > 300
    assert browser.script("return document.getElementById('by').value") == ("" if protocol == "none" else protocol)


def test_one_map_of_wms_instead_of_tiles(browser, server):
    open_page(browser, server, "map#layer=image&by=map")
    requests = browser.settled("REQUEST=GetMap")
    check_clean(browser, server, requests)
    assert any("WIDTH=256&" not in url for url, _ in requests if "GetMap" in url)
    assert color_count(browser) > 300


def test_vector_tiles_are_drawn_by_maplibre_and_tell_their_attributes(browser, server):
    open_page(browser, server, "map#layer=town&at=834000,5860000,300")
    requests = browser.settled("gmaps/town", until=lambda: color_count(browser) > 3)
    check_clean(browser, server, requests)
    assert browser.script("return document.getElementById('map').dataset.engine") == "MapLibre"
    assert any("maplibre-gl-worker.mjs" in url for url, _ in requests)
    click_map(browser)
    browser.settled(until=lambda: "Mitte <i>" in text_of(browser, "features"))
    assert "areas" in text_of(browser, "legend")


def test_vector_tiles_of_another_grid_are_drawn_by_openlayers(browser, server):
    open_page(browser, server, "map#layer=town&grid=swiss&at=2600000,1150000,300&borders")
    requests = browser.settled("gmaps/town@swiss", until=lambda: "EPSG:2056" in text_of(browser, "crs"))
    check_clean(browser, server, requests)
    assert browser.script("return document.getElementById('map').dataset.engine") == "OpenLayers"
    assert color_count(browser) > 5
    click_map(browser)
    browser.settled(until=lambda: "Mitte <i>" in text_of(browser, "features"))
    assert text_of(browser, "features").count("Mitte <i>") == 1 and "areas 1" in text_of(browser, "features")


def test_without_webgl_openlayers_draws_and_says_so(plain_browser, server):
    open_page(plain_browser, server, "map#layer=town&at=834000,5860000,300")
    check_clean(plain_browser, server, plain_browser.settled("gmaps/town", until=lambda: "no WebGL" in text_of(plain_browser, "problems")))
    assert plain_browser.script("return document.getElementById('map').dataset.engine") == "OpenLayers"
    assert color_count(plain_browser) > 5


def test_the_link_shows_the_same_map_again(browser, server):
    wanted = "#layer=image&layer=flat;0.5;time=2019&grid=GoogleMapsCompatible&at=400000,600000,2000&engine=ol&borders&swipe=0.25"
    open_page(browser, server, "map" + wanted)
    check_clean(browser, server, browser.settled("2019"))
    assert browser.script("return location.hash") == wanted
    shown = map_pixels(browser)
    width = shown.shape[1]
    # the uppermost layer, half transparent green, is left of the divider only
    left, right = (numpy.median(part[100:-100].reshape(-1, 4), axis=0) for part in (shown[:, width // 8:width // 5], shown[:, width // 3:width // 2]))
    assert left[1] > right[1] + 40
    assert browser.script("return document.getElementById('credit').innerText") == "Somebody & others"
    assert browser.script("return document.querySelector('#stack [data-dimension=time] select').value") == "2019"


def test_a_dimension_is_chosen_by_its_slider(browser, server):
    open_page(browser, server, "map#layer=flat")
    browser.settled("gmaps/flat")
    browser.script("const f = document.querySelector('[data-dimension=time] input[type=range]'); f.value = 0; f.dispatchEvent(new Event('change'))")
    check_clean(browser, server, browser.settled("2019"))
    assert "time=2019" in browser.script("return location.hash")


def test_the_swipe_is_a_button_and_moved_by_keys(browser, server):
    open_page(browser, server, "map#layer=image&layer=town&at=834000,5860000,300")
    browser.settled("gmaps/town", until=lambda: browser.script("return document.getElementById('map').dataset.engine") == "MapLibre")
    browser.script("document.getElementById('swiping').click()")
    browser.settled(until=lambda: browser.script("return document.getElementById('map').dataset.engine") == "OpenLayers")
    browser.script("document.getElementById('swipe').focus()")
    before = map_pixels(browser)
    for _ in range(5):
        browser.press("\ue012")  # the arrow to the left
    browser.settled(until=lambda: "swipe=0.4" in browser.script("return location.hash"))
    changed = (map_pixels(browser) != before).any(axis=2).any(axis=0).nonzero()[0] / before.shape[1]
    assert 0.35 < changed.min() < 0.42 and 0.48 < changed.max() < 0.55, "the town, and the divider, between here and there"


def test_the_map_is_moved_by_keys(browser, server):
    open_page(browser, server, "map#layer=image&at=400000,600000,2000")
    browser.settled("gmaps/image")
    browser.script("document.getElementById('map').focus()")
    browser.press("\ue014")  # the arrow to the right
    browser.settled(until=lambda: float(re.search(r"at=([^,]+)", browser.script("return location.hash")).group(1)) > 450000)


def test_a_click_asks_for_feature_info(browser, server):
    open_page(browser, server, "map#layer=flat")
    browser.settled("gmaps/flat")
    click_map(browser)
    check_clean(browser, server, browser.settled("GetFeatureInfo", until=lambda: "feature at" in text_of(browser, "features")))


def test_tiles_tell_their_time_and_size(browser, server):
    open_page(browser, server, "map#layer=image&at=1234567,2345678,300")  # where nothing is in the browser's store yet
    browser.settled("gmaps/image", until=lambda: re.search(r"server\s+[\d.]+ ms", text_of(browser, "tiles")))
    told = dict(zip(*[iter(text_of(browser, "tiles").split("\n"))] * 2))
    assert told["engine"] == "OpenLayers" and told["failed"] == "0" and re.fullmatch(r"[\d.]+ (k|M)?B", told["bytes"])
    assert re.fullmatch(r"[\d.]+ ms", told["each"]) and re.fullmatch(r"[\d.]+ ms", told["server"])
    before = map_pixels(browser)
    browser.script("document.getElementById('borders').click()")
    assert (map_pixels(browser) != before).any(axis=2).sum() > 1000


def test_what_is_wrong_is_told_in_words(browser, server):
    open_page(browser, server, "map#layer=gone&layer=nosuch")

    def problems():
        return browser.script("return document.getElementById('problems').textContent")

    browser.settled("gmaps/gone", until=lambda: "nosuch" in problems() and all(tile in problems() for tile in ("1/0/0", "1/1/1")))
    said = problems()
    assert "The server answers 502: source \"gone\": no connection to the origin" in said and re.search("Gone, [0-9]+ times", said)
    assert "The server answers 404" in said
    open_page(browser, server, "map", alias="none")
    browser.settled("layers.json", until=lambda: "No layers are configured" in text_of(browser, "problems"))
    open_page(browser, server, "", alias="none")
    browser.settled("layers.json", until=lambda: "No layers are configured" in text_of(browser, "notice"))


def test_one_layer_is_shown_at_once_with_a_link_to_the_list(browser, server):
    open_page(browser, server, "", alias="one")
    browser.settled("gmaps/only")
    assert browser.script("return location.pathname") == "/one/demo/map"
    browser.script("document.getElementById('back').click()")
    browser.settled(until=lambda: browser.script("return document.querySelectorAll('.card').length") == 1)
    assert browser.script("return location.pathname") == "/one/demo/"


def test_hundreds_of_layers_come_as_they_are_wanted(browser, server):
    open_page(browser, server, "", alias="many")
    requests = browser.settled("layers.json", until=lambda: browser.script("return document.querySelectorAll('[data-drawn]').length") > 3)
    check_clean(browser, server, requests, alias="many")
    assert browser.script("return [document.querySelectorAll('.card').length, document.getElementById('more').innerText]") == [120, "Show 120 more"]
    assert len({url for url, _ in requests if "/gmaps/" in url}) < 100  # of those in sight, and a little below
    browser.script("const f = document.getElementById('filter'); f.value = 'product-399'; f.dispatchEvent(new Event('input'))")
    check_clean(browser, server, browser.settled("product-399@"), alias="many")
    assert browser.script("return document.querySelectorAll('.card').length") == 1


@pytest.mark.parametrize("page", ["", "map#layer=town&layer=image&at=834000,5860000,300"])
def test_behind_a_proxy_with_another_prefix(browser, server, page):
    """The configuration's <url> names another host, as it may be wrong, or that of another network."""
    browser.open("about:blank")
    browser.network(), browser.console()
    browser.open(f"http://127.0.0.1:{server.proxied.port}/other/maps/" + (f"demo/{page}" if page else ""))
    requests = browser.settled("layers.json", "gmaps/image", "gmaps/town")
    own = (f"http://127.0.0.1:{server.proxied.port}/other/maps/", "data:", "blob:", "mapcachetile:")
    assert [url for url, _ in requests if not url.startswith(own)] == []
    assert browser.script("return location.pathname").startswith("/other/maps/demo/")


def test_the_list_tells_what_a_picture_needs(server):
    layers = {layer["name"]: layer for layer in json.loads(server.get("/mc/demo/layers.json").body)["layers"]}
    picture = layers["town"]["picture"]
    assert picture["columns"] <= 2 and picture["rows"] <= 2 and picture["z"] >= 6
    for column in range(picture["columns"]):
        reply = server.get(f"/mc/gmaps/town@{GRID}/{picture['z']}/{picture['column'] + column}/{picture['row']}.mvt")
        assert reply.status == 200
    assert server.get("/mc/demo/layers.json?layer=nosuch").status == 404


def test_a_style_says_where_tiles_are_and_how_they_are_drawn(server):
    style = json.loads(server.get(f"/mc/demo/style.json?layer=town@{GRID}").body)
    assert style["version"] == 8 and style["sources"]["layer"] == {"type": "vector", "url": f"http://elsewhere.invalid/maps/gmaps/town@{GRID}.json"}
    assert [(layer["type"], layer["source-layer"]) for layer in style["layers"]] == [(kind, "areas") for kind in ("fill", "line", "line", "circle")]
    assert json.loads(server.get("/mc/demo/style.json?layer=image").body)["layers"] == [{"id": "layer", "type": "raster", "source": "layer"}]
    assert server.get("/mc/demo/style.json?layer=nosuch").status == 404 and server.get("/mc/demo/style.json").status == 400


def test_each_tileset_of_vector_tiles_has_its_colours(server):
    """A list that begins elsewhere for each of them; a tileset has the same in another configuration; images have none."""
    def colours_of(alias):
        layers = json.loads(server.get(f"/{alias}/demo/layers.json").body)["layers"]
        return {layer["name"]: layer["colours"] for layer in layers if "colours" in layer}

    found = colours_of("vectors")
    assert list(found) == COLOURED and len({colours[0] for colours in found.values()}) == len(COLOURED)
    for name, colours in found.items():
        assert sorted(colours) == sorted(found["town"])
        assert json.loads(server.get(f"/vectors/demo/layers.json?layer={name}").body)["colours"] == colours
        style = json.loads(server.get(f"/vectors/demo/style.json?layer={name}@{GRID}").body)
        assert {value for layer in style["layers"] for key, value in layer["paint"].items() if key.endswith("-color")} == {colours[0]}
    assert colours_of("mc") == {"town": found["town"]}


def test_pictures_and_maps_are_drawn_in_the_colours_of_the_tileset(browser, server):
    colours = {layer["name"]: layer["colours"][0] for layer in json.loads(server.get("/vectors/demo/layers.json").body)["layers"]}
    open_page(browser, server, "?list", alias="vectors")
    middles = """return Object.fromEntries([...document.querySelectorAll('.card')].map(card => [card.dataset.layer, card.querySelector('canvas')])
      .filter(pair => pair[1]).map(([name, canvas]) => [name, [...canvas.getContext('2d').getImageData(canvas.width / 2, canvas.height / 2, 1, 1).data]]))"""
    found = wait_until(lambda: len(now := browser.script(middles)) >= 4 and all(middle[3] > 0 for middle in now.values()) and now, "pictures are drawn")
    for name, middle in found.items():
        assert max(abs(int(colours[name][1 + 2 * i:3 + 2 * i], 16) - middle[i]) for i in range(3)) < 6, (name, middle, colours[name])
    open_page(browser, server, f"map#layer={COLOURED[2]}&layer={COLOURED[1]}&at=834000,5860000,600", alias="vectors")
    swatches = "return [...document.querySelectorAll('figure div > i')].map(swatch => getComputedStyle(swatch).backgroundColor)"
    expected = {f"rgb({', '.join(str(int(colours[name][i:i + 2], 16)) for i in (1, 3, 5))})" for name in COLOURED[1:3]}
    wait_until(lambda: expected == set(browser.script(swatches)), "the legend shows both colours")
    browser.settled(f"gmaps/{COLOURED[2]}", f"gmaps/{COLOURED[1]}")
    picture = map_pixels(browser)[..., :3].astype(float)
    seen = picture[100, picture.shape[1] // 2]  # the ground
    for name in (COLOURED[2], COLOURED[1]):
        seen = 0.67 * seen + 0.33 * numpy.array([int(colours[name][i:i + 2], 16) for i in (1, 3, 5)])
    assert numpy.abs(picture[picture.shape[0] // 2, picture.shape[1] // 2] - seen).max() < 4


def test_each_dimension_has_its_own_values(server):
    """In capabilities, too: both come from what a request remembers of the dimensions that it has asked."""
    dimensions = json.loads(server.get("/mc/demo/layers.json?layer=flat").body)["dimensions"]
    assert [(dimension["default"], dimension["values"]) for dimension in dimensions] == [("2020", ["2019", "2020"]), ("all", ["all"])]
    text = server.get("/mc?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetCapabilities").body.decode()
    assert re.findall(r'<Extent name="(\w+)" default="(\w+)"[^>]*>([^<]*)', text) == [("time", "2020", "2019,2020"), ("kind", "all", "all")]


def test_a_grid_tells_its_crs_for_proj4(server):
    grids = {grid["grid"]: grid for grid in json.loads(server.get("/mc/demo/layers.json?layer=town").body)["grids"]}
    assert grids["swiss"]["proj"].startswith("+proj=somerc ") and "+towgs84=674.374,15.056,405.346" in grids["swiss"]["proj"]
    assert "proj" not in grids[GRID]
    west, south, east, north = grids["swiss"]["data"]
    assert 2560000 < west < 2570000 and 2640000 < east < 2650000 and 1090000 < south < north < 1220000


def test_a_layer_of_another_crs_is_warped(browser, server):
    open_page(browser, server, "map#layer=town&layer=image&grid=swiss&at=2600000,1150000,2000")
    check_clean(browser, server, browser.settled("gmaps/image", "gmaps/town@swiss"))
    assert text_of(browser, "problems") == "" and color_count(browser) > 30

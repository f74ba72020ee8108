"""OGC API Styles (OGC 20-009, a draft): a test for each abstract test of the classes that are declared; palettes as styles of maps and tiles (OGC 20-058, 21)."""
import contextlib
import json
import re
import sqlite3
import urllib.parse
import xml.etree.ElementTree as ElementTree

import pytest
from browser import Browser
from conftest import wait_until
from ogcapi_site import Api, links, pixels, problem, write_site
from test_palettes import COLD, HOT, STORED, palette_png, table

MAPBOX = "application/vnd.mapbox.style+json"
SLD10, SLD11 = (f"application/vnd.ogc.sld+xml;version=1.{minor}" for minor in (0, 1))
STYLES = "http://www.opengis.net/spec/ogcapi-styles-1/1.0/conf/"
OLD = """<?xml version="1.0" encoding="UTF-8"?>
<StyledLayerDescriptor version="1.0.0" xmlns="http://www.opengis.net/sld"><NamedLayer><Name>areas</Name><UserStyle><FeatureTypeStyle><Rule>
<PolygonSymbolizer><Fill><CssParameter name="fill">#3070b0</CssParameter></Fill></PolygonSymbolizer></Rule></FeatureTypeStyle></UserStyle></NamedLayer></StyledLayerDescriptor>
"""
NEW = """<?xml version="1.0" encoding="UTF-8"?>
<StyledLayerDescriptor version="1.1.0" xmlns="http://www.opengis.net/sld" xmlns:se="http://www.opengis.net/se"><NamedLayer><se:Name>lines</se:Name><UserStyle><se:FeatureTypeStyle><se:Rule>
<se:LineSymbolizer><se:Stroke><se:SvgParameter name="stroke">#a02020</se:SvgParameter></se:Stroke></se:LineSymbolizer></se:Rule></se:FeatureTypeStyle></UserStyle></NamedLayer></StyledLayerDescriptor>
"""
HERE = "/collections/landcover/styles"


def make_landcover(path):
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("create table tiles(tileset text, grid text, x integer, y integer, z integer, data blob, dim text, ctime datetime, primary key(tileset, grid, x, y, z, dim))")
        for z, x, y in [(0, 0, 0), (1, 0, 0), (1, 0, 1), (1, 1, 0), (1, 1, 1)]:
            database.execute("insert into tiles values('landcover', 'GoogleMapsCompatible', ?, ?, ?, ?, '', '2024-01-02 03:04:05')", (x, y, z, palette_png(STORED)))
        database.commit()


@pytest.fixture(scope="module")
def api(shared_folder, shared_apache):
    make_landcover(shared_folder / "landcover.sqlite3")
    (shared_folder / "old.sld").write_text(OLD)
    (shared_folder / "new.sld").write_text(NEW)
    extra = f"""
  <source name="drawn" type="shapefile"><layer name="areas"><data>{shared_folder}/areas.shp</data><style>{shared_folder}/old.sld</style></layer></source>
  <source name="both" type="shapefile"><layer name="areas"><data>{shared_folder}/areas.shp</data><style>{shared_folder}/old.sld</style></layer>
    <layer name="out/lines"><data>{shared_folder}/areas.shp</data><style>{shared_folder}/new.sld</style></layer></source>
  <cache name="landcover" type="sqlite3"><dbfile>{shared_folder}/landcover.sqlite3</dbfile></cache>
  <tileset name="landcover"><metadata><title>Land &amp; cover</title></metadata><cache>landcover</cache><grid>GoogleMapsCompatible</grid><format>PNG</format>
    <palette name="default" title="As published">{table(STORED, ["nothing", "forest", "fields", "&lt;towns&gt;"])}</palette>
    <palette name="hot" title="In red">{table(HOT)}</palette><palette name="co ld &amp; blue" title="In blue">{table(COLD)}</palette></tileset>
  <tileset name="drawn"><source>drawn</source><cache>tiles</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>
  <tileset name="both"><source>both</source><cache>tiles</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>
  <tileset name="both-mvt"><source>both</source><cache>tiles</cache><grid>GoogleMapsCompatible</grid><format>mvt</format></tileset>
  <tileset name="alps"><source>world</source><cache>tiles</cache><grid>swiss</grid><format>PNG</format></tileset>"""
    config = write_site(shared_folder, extra=extra)
    return Api(shared_apache("web", f"MapCacheAlias /mc {config}\n").port)


def styles_of(api, path):
    return {style["id"]: style for style in api.json(path)["styles"]}


# --- core


def test_conf_core_base_resource_link(api):
    """The landing page and each collection lead to their styles."""
    assert api.json(links(api.json(""), "styles")[0]["href"])["styles"]
    for collection in api.json("/collections")["collections"]:
        for link in links(collection, "styles"):
            listed = api.json(link["href"])
            assert bool(listed["styles"]) == (collection["id"] != "alps"), collection["id"]
        assert links(collection, "styles") or collection["id"] == "alps"


@pytest.mark.parametrize("path", ["/styles", HERE, "/collections/both/styles", "/collections/both-mvt/styles"])
def test_conf_core_1(api, path):
    """Annex A of the draft, test case 1, step by step."""
    document = api.json(path, {"Accept": "application/json"})
    assert document.get("default") in (None, *(style["id"] for style in document["styles"]))
    ids = [style["id"] for style in document["styles"]]
    assert ids and len(ids) == len(set(ids))
    for style in document["styles"]:
        own = f"{api.base}ogcapi{path}/{urllib.parse.quote(style['id'], safe=':')}"
        sheets, about = links(style, "stylesheet"), links(style, "describedby")
        assert sheets and about and style["title"]
        for sheet in sheets:
            assert urllib.parse.unquote(sheet["href"].split("?")[0]) == urllib.parse.unquote(own)
            for headers in ({"Accept": sheet["type"]}, {}):
                reply = api.get(sheet["href"], headers)
                assert reply.status == 200 and reply.headers["Content-Type"] == sheet["type"], sheet
                (json.loads if sheet["type"] == MAPBOX else bytes)(reply.body)
        (link,) = about
        assert urllib.parse.unquote(link["href"]) == urllib.parse.unquote(own) + "/metadata?f=json"
        metadata = json.loads(api.get(link["href"], {"Accept": link["type"]}).body)
        assert metadata["id"] == style["id"] and metadata["scope"] == "style" and metadata["title"] == style["title"]
        assert [each["link"]["href"] for each in metadata["stylesheets"]] == [sheet["href"] for sheet in sheets]
        assert all(each["title"] and each["version"] and each["specification"].startswith("https://") and isinstance(each["native"], bool) for each in metadata["stylesheets"])
        assert all(layer["id"] for layer in metadata["layers"])
        assert all(api.get(each["href"]).status == 200 for each in metadata["links"])


def test_conf_core_conformance_of_styles(api):
    declared = {each for each in api.json("/conformance")["conformsTo"] if each.startswith(STYLES)}
    assert declared == {STYLES + name for name in ("core", "mapbox-styles", "sld-10", "sld-11")}


def test_which_styles_there_are(api):
    assert list(styles_of(api, HERE)) == ["default", "hot", "co ld & blue"]
    everywhere = styles_of(api, "/styles")
    assert {"landcover:default", "landcover:hot", "landcover:co ld & blue", "drawn:default", "both:default", "both-mvt:default", "world:default"} <= set(everywhere)
    assert "alps:default" not in everywhere and "a/b:default" not in everywhere
    assert api.json(HERE)["default"] == "default" and api.json(f"{HERE}/hot/metadata")["title"] == "Land & cover, In red"


def test_styles_that_are_not_there(api):
    for path in (f"{HERE}/nothing", f"{HERE}/nothing/metadata", f"{HERE}/nothing/map", f"{HERE}/nothing/map/tiles", f"{HERE}/Hot", "/collections/alps/styles/default", "/collections/alps/styles/default/metadata",
                 "/collections/world/styles/hot", "/styles/landcover", "/styles/landcover:", "/styles/:hot", "/styles/landcover:nothing", "/styles/" + "x" * 3000, "/styles/%FF",
                 "/collections/both-mvt/styles/default/map", "/styles/both-mvt:default/map", "/collections/both-mvt/styles/default/map/tiles"):
        problem(api.get(path), 404)
    for query in ("f=json", "f=html", "f=sld", "f=sld11", "f=" + "x" * 3000, "layer=" + "x" * 3000):
        problem(api.get(f"{HERE}/hot?{query}"), 400)
    problem(api.get("/collections/world/styles/default?f=sld10"), 400, MAPBOX)
    problem(api.get("/collections/both/styles/default?layer=nothing"), 404)
    problem(api.get(f"{HERE}/hot", {"Accept": "text/html"}), 406, SLD10)


# --- encodings


def test_conf_sld_10_content(api):
    """The file of a drawn layer as it is; a palette as a colour map, with the elements of OGC 02-070 in their order."""
    reply = api.get("/collections/drawn/styles/default")
    assert reply.body.decode() == OLD and reply.headers["Content-Type"] == SLD10 and reply.headers["Vary"] == "Accept"
    assert api.get("/collections/drawn/styles/default", {"If-None-Match": reply.headers["ETag"]}).status == 304
    for style, colours in (("default", STORED), ("hot", HOT), ("co%20ld%20%26%20blue", COLD)):
        text = api.get(f"{HERE}/{style}?f=sld10").body
        at = ElementTree.fromstring(text)
        assert at.get("version") == "1.0.0"
        for name in ("StyledLayerDescriptor", "NamedLayer", "UserStyle", "FeatureTypeStyle", "Rule", "RasterSymbolizer", "ColorMap"):
            assert at.tag == f"{{http://www.opengis.net/sld}}{name}"
            at = at[-1]
        assert len(re.findall("<ColorMapEntry ", text.decode())) == len(colours)
        for number, (red, green, blue, opacity) in enumerate(colours):
            assert f'color="#{red:02x}{green:02x}{blue:02x}" opacity="{opacity / 255:.4g}" quantity="{number}"' in text.decode()
    assert 'label="&lt;towns&gt;"' in api.get(f"{HERE}/default").body.decode()


def test_conf_sld_11_content(api):
    """Of a source with a file for each layer, the layer says which one."""
    style = "/collections/both/styles/default"
    assert [(sheet["type"], "layer=" in sheet["href"]) for sheet in links(styles_of(api, "/collections/both/styles")["default"], "stylesheet")] == [(SLD10, True), (SLD11, True), (MAPBOX, False)]
    for query, headers, text, mime in (("?f=sld11", {}, NEW, SLD11), ("?layer=out%2Flines", {}, NEW, SLD11), ("?layer=areas", {}, OLD, SLD10), ("", {}, OLD, SLD10), ("", {"Accept": "application/xml"}, OLD, SLD10),
                                       ("", {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}, OLD, SLD10)):
        reply = api.get(style + query, headers)
        assert reply.status == 200 and reply.body.decode() == text and reply.headers["Content-Type"] == mime


def test_conf_mapbox_styles_content(api):
    """Version 8 of the specification; its source leads to TileJSON, and that to tiles in the style."""
    for path, kind in ((f"{HERE}/hot", "raster"), (f"{HERE}/default", "raster"), ("/collections/both-mvt/styles/default", "vector"), ("/styles/landcover:hot", "raster")):
        style = api.json(f"{path}?f=mapbox")
        assert api.get(path, {"Accept": "application/json"}).headers["Content-Type"] == MAPBOX
        (source,) = style["sources"].values()
        assert style["version"] == 8 and source["type"] == kind and style["layers"]
        tilejson = api.json(source["url"])
        tile = api.get(tilejson["tiles"][0].format(z=0, y=0, x=0))
        assert tile.status == 200
        if path.endswith("hot"):
            assert pixels(tile.body, [(64, 0)])[0] == HOT[1]
        if kind == "vector":
            assert {layer["source-layer"] for layer in style["layers"]} <= {layer["id"] for layer in tilejson["vector_layers"]}
    problem(api.get("/collections/alps/styles/default?f=mapbox"), 404)


# --- maps and tiles in a style


def test_conf_styled_map_desc_links(api):
    for path in ("/styles", HERE, "/collections/drawn/styles"):
        for name, style in styles_of(api, path).items():
            for link in links(style, "map"):
                assert urllib.parse.unquote(link["href"]).startswith(f"{api.base}ogcapi{path}/{name}/map?")
                assert api.get(link["href"]).headers["Content-Type"] == link["type"] == "image/png"
            assert links(style, "map") or name.startswith(("both-mvt", "areas-mvt"))


def test_conf_styled_map_map_operation(api):
    area = "bbox=-180,-85,180,85&width=256&height=256&f=png"
    for name, colours in (("hot", HOT), ("default", STORED), ("co%20ld%20%26%20blue", COLD)):
        for path in (f"{HERE}/{name}/map", f"/styles/landcover:{name}/map"):
            reply = api.get(f"{path}?{area}")
            assert reply.status == 200, reply.body
            found = pixels(reply.body, [(90, 30), (160, 30), (220, 30)])
            for colour, wanted in zip(found, colours[1:]):
                assert all(abs(a - b) <= 2 for a, b in zip(colour, wanted)), (name, found)
    assert api.get(f"{HERE}/default/map?{area}").body == api.get(f"/collections/landcover/map?{area}").body
    problem(api.get(f"{HERE}/hot/map?bbox=1"), 400)


def test_tiles_in_a_style(api):
    """Stored once: the bytes of the tile with another palette, as WMTS has them."""
    for name, colours in (("hot", HOT), ("co%20ld%20%26%20blue", COLD)):
        document = api.json(f"{HERE}/{name}/map/tiles")
        (own,) = links(document["tilesets"][0], "self")
        tileset = api.json(own["href"])
        for item in links(tileset, "item"):
            assert f"/styles/{name}/map/tiles/" in item["href"]
            reply = api.get(item["href"].format(tileMatrix=1, tileRow=0, tileCol=1))
            assert reply.status == 200 and reply.headers["Content-Type"] == item["type"]
        tile = api.get(f"{HERE}/{name}/map/tiles/WebMercatorQuad/1/0/1")
        assert pixels(tile.body, [(0, 0), (64, 0), (128, 0), (192, 0)]) == colours
        assert tile.body == api.get(f"{api.base}wmts/1.0.0/landcover/{name}/GoogleMapsCompatible/1/0/1.png").body
        assert api.get(f"{HERE}/{name}/map/tiles/WebMercatorQuad/1/0/1", {"If-None-Match": tile.headers["ETag"]}).status == 304
    assert pixels(api.get("/collections/landcover/map/tiles/WebMercatorQuad/1/0/1").body, [(64, 0)]) == [STORED[1]]
    problem(api.get(f"{HERE}/hot/map/tiles/WebMercatorQuad/99/0/1"), 404)
    problem(api.get(f"{HERE}/hot/map/tiles/swiss"), 404)


@pytest.mark.parametrize("width, height, phone", [(1200, 800, False), (390, 800, True)])
def test_pages_of_styles(api, width, height, phone):
    with Browser(width, height, phone=phone) as browser:
        for path in ("/styles", HERE, f"{HERE}/hot/metadata", "/styles/both-mvt:default/metadata", f"{HERE}/hot/map/tiles"):
            browser.open(f"{api.base}ogcapi{path}?f=html")
            wait_until(lambda: browser.script("return document.readyState === 'complete' && document.querySelector('main.ogcapi h2') !== null"), "the page is there")
            wide, room = browser.script("return [document.documentElement.scrollWidth, window.innerWidth]")
            assert wide <= room, (path, wide, room)
            wait_until(lambda: browser.script("return [...document.images].every((image) => image.complete && image.naturalWidth > 0)"), "pictures are there")
        browser.open(f"{api.base}ogcapi?f=html")
        browser.script("[...document.querySelectorAll('nav a')].find((link) => link.textContent === 'Styles').click()")
        wait_until(lambda: browser.script("return location.pathname") == "/mc/ogcapi/styles", "the link is followed")

"""What capabilities and the documents of the other services promise: each promise is kept by the server that makes it."""
import contextlib
import io
import json
import math
import re
import sqlite3
import subprocess
import urllib.parse
import xml.etree.ElementTree as ElementTree

import numpy
import pytest
from conftest import GRID
from osgeo import ogr, osr
from PIL import Image

ogr.UseExceptions()
PATTERN = "^[0-9]{3}$"
ODD = "a;b@c[d"
BAND = (50.0, 60.0)  # degrees: what is drawn goes around the globe between them
SLD = """<StyledLayerDescriptor version="1.0.0" xmlns="http://www.opengis.net/sld"><NamedLayer><UserStyle><FeatureTypeStyle><Rule>
  <PolygonSymbolizer><Fill><CssParameter name="fill">#ff0000</CssParameter></Fill></PolygonSymbolizer></Rule></FeatureTypeStyle>
  </UserStyle></NamedLayer></StyledLayerDescriptor>"""
CONFIG = """<mapcache>
  <metadata><title>All of it</title></metadata>
  <grid name="coarse"><srs>EPSG:3857</srs><units>m</units><size>256 256</size><extent>-1000000 4000000 1000000 6000000</extent>
    <resolutions>8000 4000</resolutions></grid>
  <grid name="crs84"><srs>CRS:84</srs><units>dd</units><size>256 256</size><extent>-180 -90 180 90</extent>
    <resolutions>0.703125 0.3515625</resolutions></grid>
  <grid name="beyond"><srs>EPSG:4326</srs><units>dd</units><size>256 256</size><extent>-180 -144 180 216</extent>
    <resolutions>1.40625 0.703125 0.3515625 0.17578125</resolutions></grid>
  <grid name="lambert"><srs>EPSG:2154</srs><units>m</units><size>256 256</size><extent>0 6000000 1000000 7000000</extent>
    <resolutions>4000 2000</resolutions></grid>
  <grid name="etrs"><srs>EPSG:4258</srs><units>dd</units><size>256 256</size><extent>-180 -90 180 90</extent>
    <resolutions>0.703125 0.3515625</resolutions></grid>
  <grid name="survey"><srs>EPSG:2263</srs><units>ft</units><size>256 256</size><extent>900000 100000 1100000 300000</extent>
    <resolutions>800 400</resolutions></grid>
  <grid name="g;r@i[d"><srs>EPSG:3857</srs><units>m</units><size>256 256</size>
    <extent>-20037508.342789 -20037508.342789 20037508.342789 20037508.342789</extent>
    <resolutions>156543.033928 78271.516964</resolutions></grid>
  <source name="white" type="dummy"/>
  <source name="asked" type="wms"><getmap><params><LAYERS>red</LAYERS></params></getmap>
    <http><url>http://127.0.0.1:9/wms</url></http></source>
  <source name="band" type="shapefile"><layer name="band"><data>FOLDER/band.shp</data><style>FOLDER/band.sld</style>
    <attributes>name</attributes></layer></source>
  <cache name="disk" type="disk"><base>FOLDER/tiles</base></cache>
  <tileset name="over"><source>band</source><cache>disk</cache><format>PNG</format><grid>beyond</grid></tileset>
  <tileset name="one"><metadata><title>One &lt;&amp;&gt;</title><metadataurl><url>http://about.example/?a=1&amp;b=2</url><type>iso</type>
      <format>application/xml</format></metadataurl></metadata>
    <source>white</source><cache>disk</cache><format>PNG</format><grid>GRID</grid><grid>coarse</grid><grid>WGS84</grid>
    <grid>crs84</grid><dimensions><dimension type="regex" name="code" default="123"><regex>PATTERN</regex></dimension>
    </dimensions></tileset>
  <tileset name="two"><source>asked</source><cache>disk</cache><format>PNG</format><grid>GRID</grid></tileset>
  <tileset name="three"><source>white</source><cache>disk</cache><format>JPEG</format><grid>GRID</grid></tileset>
  <tileset name="listed"><source>white</source><cache>disk</cache><format>PNG</format><grid>GRID</grid>
    <dimensions><dimension type="sqlite" name="product" default="p1"><dbfile>FOLDER/catalogue.sqlite</dbfile>
      <validate_query>SELECT name FROM products WHERE name=:dim</validate_query>
      <list_query>SELECT name FROM products ORDER BY name</list_query></dimension></dimensions></tileset>
  <tileset name="places"><source>white</source><cache>disk</cache><format>PNG</format><grid>lambert</grid><grid>etrs</grid>
    <grid>survey</grid></tileset>
  <tileset name="band"><source>band</source><cache>disk</cache><format>PNG</format><grid>GRID</grid><grid>WGS84</grid></tileset>
  <tileset name="a"><source>white</source><cache>disk</cache><format>PNG</format><grid>GRID</grid></tileset>
  <tileset name="a;b@c[d"><source>white</source><cache>disk</cache><format>PNG</format><grid>g;r@i[d</grid><grid>GRID</grid>
    <dimensions><dimension type="values" name="d;i@m[e" default="x"><value>x</value><value>y;z</value></dimension></dimensions>
  </tileset>
  <service type="wms" enabled="true"><full_wms>assemble</full_wms><format allow_client_override="true">PNG</format>
    <maxsize>256</maxsize><max_pixels>140000</max_pixels>STRICT</service>
  <service type="wmts" enabled="true">STRICT</service><service type="tms" enabled="true">STRICT</service>
  <service type="kml" enabled="true"/><service type="gmaps" enabled="true"/><service type="ve" enabled="true"/>
  <service type="mapguide" enabled="true"/><service type="demo" enabled="true"/>
  <lock_dir>FOLDER</lock_dir>
</mapcache>"""
WMS = {"w": "http://www.opengis.net/wms", "x": "http://www.w3.org/1999/xlink"}
WMTS = {"w": "http://www.opengis.net/wmts/1.0", "ows": "http://www.opengis.net/ows/1.1"}
KML = "{http://www.opengis.net/kml/2.2}"
HREF = "{http://www.w3.org/1999/xlink}href"


def draw_band(path):
    reference = osr.SpatialReference()
    reference.ImportFromEPSG(4326)
    data = ogr.GetDriverByName("ESRI Shapefile").CreateDataSource(str(path))
    layer = data.CreateLayer("band", reference, ogr.wkbPolygon)
    layer.CreateField(ogr.FieldDefn("name", ogr.OFTString))
    feature = ogr.Feature(layer.GetLayerDefn())
    feature.SetField("name", "Zürich")
    low, high = BAND
    feature.SetGeometry(ogr.CreateGeometryFromWkt(f"POLYGON((-180 {low},180 {low},180 {high},-180 {high},-180 {low}))"))
    layer.CreateFeature(feature)


@pytest.fixture(scope="module")
def web(shared_folder, shared_apache):
    folder = shared_folder
    folder.chmod(0o777)
    draw_band(folder / "band.shp")
    (folder / "band.sld").write_text(SLD)
    change(folder, "CREATE TABLE products (name TEXT)", "INSERT INTO products VALUES ('p1')")
    aliases = ""
    for name, strict in [("mc", ""), ("strict", "<strict>true</strict>")]:
        text = CONFIG.replace("FOLDER", str(folder)).replace("STRICT", strict).replace("GRID", GRID)
        (folder / f"{name}.xml").write_text(text.replace("PATTERN", PATTERN))
        aliases += f"MapCacheAlias /{name} {folder}/{name}.xml\n"
    for path in folder.iterdir():
        if path.is_file():
            path.chmod(0o666)
    site = shared_apache("ours", aliases)
    site.folder = folder
    return site


def change(folder, *statements):
    with contextlib.closing(sqlite3.connect(folder / "catalogue.sqlite")) as file, file:
        for statement in statements:
            file.execute(statement)


def wms(web, version="1.3.0", alias="mc", more=""):
    reply = web.get(f"/{alias}?SERVICE=WMS&REQUEST=GetCapabilities&VERSION={version}{more}")
    assert reply.status == 200, reply.body
    return reply.body.decode()


def wmts(web, alias="mc"):
    return ElementTree.fromstring(web.get(f"/{alias}/wmts/1.0.0/WMTSCapabilities.xml").body)


def layer_of(text, name):
    root = ElementTree.fromstring(re.sub(r' xmlns="[^"]*"', "", text))
    return next(layer for layer in root.iter("Layer") if layer.findtext("Name") == name)


@pytest.mark.parametrize("alias", ["mc", "strict"])
def test_a_regular_expression_is_no_value(web, alias):
    for text in (wms(web, alias=alias), wms(web, "1.1.1", alias)):
        assert PATTERN not in text and "[0-9]" not in text
    dimension = layer_of(wms(web, alias=alias), "one").find("Dimension")
    assert (dimension.text, dimension.get("default")) == ("123", "123")
    layer = next(each for each in wmts(web, alias).iter(f"{{{WMTS['w']}}}Layer") if each.findtext("ows:Identifier", "", WMTS) == "one")
    assert [value.text for value in layer.findall("w:Dimension/w:Value", WMTS)] == ["123"]


@pytest.mark.parametrize("alias", ["mc", "strict"])
@pytest.mark.parametrize("version, key", [("1.1.1", "SRS"), ("1.3.0", "CRS")])
def test_one_box_for_each_crs(web, alias, version, key):
    boxes = [box.attrib for box in layer_of(wms(web, version, alias), "one").findall("BoundingBox")]
    names = [box[key] for box in boxes]
    assert len(names) == len(set(names)), names
    assert set(names) == {"EPSG:3857", "EPSG:4326", "CRS:84"}
    mercator = next(box for box in boxes if box[key] == "EPSG:3857")
    assert float(mercator["minx"]) == pytest.approx(-20037508.34, abs=1)  # around both grids


def test_one_box_for_each_crs_in_wmts(web):
    for layer in wmts(web).iter(f"{{{WMTS['w']}}}Layer"):
        names = [box.get("crs") for box in layer.findall("ows:BoundingBox", WMTS)]
        assert len(names) == len(set(names)), names


def test_the_root_of_1_1_1_names_what_all_layers_have(web):
    root = ElementTree.fromstring(wms(web, "1.1.1")).find("Capability/Layer")
    assert [srs.text for srs in root.findall("SRS")] == [None]  # "places" has nothing in common with the others


def test_only_layers_of_another_server_are_cascaded(web):
    for text in (wms(web), wms(web, "1.1.1")):
        assert layer_of(text, "two").get("cascaded") == "1"
        assert [layer_of(text, name).get("cascaded") for name in ("one", "band", "listed")] == [None] * 3


def test_the_limit_of_layers_holds(web):
    text = wms(web)
    limits = [int(re.search(f"<{name}>(\\d+)</{name}>", text).group(1)) for name in ("LayerLimit", "MaxWidth", "MaxHeight")]
    assert limits == [2, 256, 256]
    path = "/mc?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&STYLES=&SRS=EPSG:3857&BBOX=0,0,9000000,9000000&WIDTH=256&HEIGHT=256" \
           "&FORMAT=image/png&LAYERS="
    assert web.get(path + "one,three").status == 200
    assert web.get(path + "one,three,one").status == 400


def test_tile_sets_are_for_those_who_ask_a_strict_service(web):
    for text in (wms(web, "1.1.1"), wms(web, "1.1.1", "strict", "&TILED=true"), wms(web, "1.1.1", "mc", "&TILED=nonsense")):
        assert "<TileSet>" in text and "<!ELEMENT" in text
    for more in ("", "&TILED=false", "&TILED=", "&TILED=nonsense"):
        text = wms(web, "1.1.1", "strict", more)
        assert "TileSet" not in text and "VendorSpecific" not in text and "<!ELEMENT" not in text
    assert "TileSet" not in wms(web, "1.3.0", "mc", "&TILED=true")


def test_documents_about_the_data(web):
    for version, kind in (("1.1.1", "TC211"), ("1.3.0", "ISO19115:2003")):
        about = layer_of(wms(web, version), "one").find("MetadataURL")
        assert (about.get("type"), about.findtext("Format")) == (kind, "application/xml")
        assert about.find("OnlineResource").get(HREF) == "http://about.example/?a=1&b=2"
        assert layer_of(wms(web, version), "two").find("MetadataURL") is None
    links = [link.get(HREF) for link in wmts(web).iter(f"{{{WMTS['ows']}}}Metadata")]
    assert links == ["http://about.example/?a=1&b=2"]


@pytest.mark.parametrize("alias", ["mc", "strict"])
def test_feature_info_is_of_the_type_that_is_announced(web, alias):
    formats = [each.text for each in ElementTree.fromstring(wms(web, alias=alias)).findall(
        "w:Capability/w:Request/w:GetFeatureInfo/w:Format", WMS)]
    assert "text/plain" in formats and "text/plain; charset=utf-8" in formats and len(formats) == len(set(formats))
    for name in formats:
        query = urllib.parse.urlencode({
            "SERVICE": "WMS", "VERSION": "1.3.0", "REQUEST": "GetFeatureInfo", "LAYERS": "band", "QUERY_LAYERS": "band", "STYLES": "",
            "CRS": "EPSG:4326", "BBOX": "40,0,70,30", "WIDTH": 100, "HEIGHT": 100, "I": 50, "J": 50, "FORMAT": "image/png",
            "INFO_FORMAT": name})
        reply = web.get(f"/{alias}?{query}")
        assert (reply.status, reply.headers["Content-Type"]) == (200, name), reply.body
        assert "Zürich" in reply.body.decode()


def sequence_of(web, alias="mc"):
    """One text for all documents."""
    found = {re.search(r'updateSequence="([^"]*)"', text).group(1) for text in (wms(web, alias=alias), wms(web, "1.1.1", alias))}
    found.add(wmts(web, alias).get("updateSequence"))
    assert len(found) == 1, found
    return found.pop()


def ask_again(web, sequence, version="1.3.0"):
    reply = web.get(f"/mc?SERVICE=WMS&REQUEST=GetCapabilities&VERSION={version}&UPDATESEQUENCE={sequence}")
    code = re.search(r'code="(\w+)"', reply.body.decode())
    return code.group(1) if code else reply.status


def test_the_update_sequence_is_a_time_that_changes_with_the_values(web):
    first = sequence_of(web)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", first)
    assert sequence_of(web) == first and ask_again(web, first) == ask_again(web, first, "1.1.1") == "CurrentUpdateSequence"
    change(web.folder, "INSERT INTO products VALUES ('p2')")
    second = sequence_of(web)
    assert second > first and "p2" in wms(web)
    assert ask_again(web, first) == 200 and ask_again(web, second) == "CurrentUpdateSequence"
    for later in ("2999-01-01T00:00:00Z", "99999999999", "zzzz"):
        assert ask_again(web, later) == "InvalidUpdateSequence"
    for earlier in ("2000-01-01T00:00:00Z", "1700000000"):
        assert ask_again(web, earlier) == 200
    brief = web.get(f"/mc/wmts?SERVICE=WMTS&REQUEST=GetCapabilities&UPDATESEQUENCE={second}")
    assert brief.status == 200 and b"Contents" not in brief.body and second in brief.body.decode()
    report = web.get("/mc/wmts?SERVICE=WMTS&REQUEST=GetCapabilities&UPDATESEQUENCE=2999-01-01T00:00:00Z")
    assert report.status == 400 and b"InvalidUpdateSequence" in report.body


def kml_boxes(document, name="LatLonAltBox"):
    return [tuple(float(box.findtext(KML + side)) for side in ("west", "south", "east", "north"))
            for box in ElementTree.fromstring(document).iter(KML + name)]


def test_kml_has_degrees_or_is_not_found(web):
    for path in ("/mc/kml/places@lambert.kml", "/mc/kml/places@lambert/0/0/0.kml", "/mc/kml/places@survey.kml"):
        reply = web.get(path)
        assert reply.status == 404 and b"degrees" in reply.body
    for name in ("places@etrs", "one@crs84", "one@WGS84", f"one@{GRID}", "one@coarse"):
        for path in (f"/mc/kml/{name}.kml", f"/mc/kml/{name}/0/0/0.kml"):
            reply = web.get(path)
            assert reply.status == 200
            for west, south, east, north in kml_boxes(reply.body):
                assert -180 <= west < east <= 180 and -90 <= south < north <= 90, path
    layers = json.loads(web.get("/mc/demo/layers.json").body)["layers"]
    assert {grid["grid"] for layer in layers for grid in layer["grids"] if not grid["kml"]} == {"lambert", "survey"}


@pytest.mark.parametrize("level", [0, 1, 2, 3, 5, 7])
def test_pictures_of_mercator_lie_where_they_belong(web, level):
    """The edges of what is drawn between two latitudes, in the picture as a viewer spreads it."""
    side = 2 * math.pi / 2**level
    for latitude in BAND:
        row = math.floor((math.asinh(math.tan(math.radians(latitude))) + math.pi) / side)
        document = web.get(f"/mc/kml/band@{GRID}/{level}/0/{row}.kml").body
        (_, south, _, north), = kml_boxes(document, "LatLonBox")
        address = urllib.parse.urlsplit(ElementTree.fromstring(document).findtext(f".//{KML}GroundOverlay/{KML}Icon/{KML}href"))
        picture = web.get(address.path)
        assert picture.status == 200 and picture.headers["Content-Type"] == "image/png"
        drawn = numpy.asarray(Image.open(io.BytesIO(picture.body)).convert("RGBA"))[:, 128, 3] > 127
        edge = (north - latitude) / (north - south) * 256  # rows from the top, at which the band ends or begins
        changes = numpy.flatnonzero(drawn[1:] != drawn[:-1]) + 1
        assert min(abs(changes - edge)) <= 1, (address.path, changes, edge)
        again = web.get(address.path, {"If-None-Match": picture.headers["ETag"]})
        assert again.status == 304


@pytest.mark.parametrize("level, last", [(0, 0), (1, 1), (2, 2), (3, 5)])
def test_pictures_of_degrees_end_at_the_poles(web, level, last):
    """Of a grid that goes on beyond them: the picture is the part of the tile that its box says."""
    side = 360 / 2 ** level
    for row in range(2 ** level):
        reply = web.get(f"/mc/kml/over@beyond/{level}/0/{row}.kml")
        if row > last or -144 + (row + 1) * side <= -90:
            assert reply.status == 404 and web.get(f"/mc/kml/over@beyond/{level}/0/{row}.png").status == 404
            continue
        (_, south, _, north), = kml_boxes(reply.body, "LatLonBox")
        assert (south, north) == pytest.approx((max(-90, -144 + row * side), min(90, -144 + (row + 1) * side)))
        assert all(-90 <= low < high <= 90 for _, low, _, high in kml_boxes(reply.body))
        address = urllib.parse.urlsplit(ElementTree.fromstring(reply.body).findtext(f".//{KML}GroundOverlay/{KML}Icon/{KML}href"))
        picture = web.get(address.path)
        assert picture.status == 200, picture.body
        drawn = numpy.asarray(Image.open(io.BytesIO(picture.body)).convert("RGBA"))[:, 128, 3] > 127
        assert drawn.shape == (256,)
        expected = [(north - latitude) / (north - south) * 256 for latitude in BAND[::-1] if south < latitude < north]
        changes = numpy.flatnonzero(drawn[1:] != drawn[:-1]) + 1
        assert changes == pytest.approx(expected, abs=1.01), (address.path, changes, expected)
        assert (row == last or south == -90) == ("/kml/" in address.path)  # others are the stored tile


def test_boxes_of_documents_end_at_the_poles(web):
    boxes = re.findall(r"<(north|south)BoundLatitude>([-0-9.]+)<", web.get("/mc?SERVICE=WMS&VERSION=1.3.0&REQUEST=GetCapabilities").body.decode())
    assert boxes and all(abs(float(latitude)) <= 90 for _, latitude in boxes)


def test_documents_of_tms(web):
    root = ElementTree.fromstring(web.get("/mc/tms").body)
    service, = root
    assert (service.get("version"), service.get("title")) == ("1.0.0", "All of it")
    address = urllib.parse.urlsplit(service.get("href")).path
    document = ElementTree.fromstring(web.get(address).body)
    assert document.get("version") == "1.0.0" and urllib.parse.urlsplit(document.get("services")).path == "/mc/tms/"
    assert ElementTree.fromstring(web.get("/mc/tms/").body).tag == "Services"
    assert all(entry.get("title") for entry in document.iter("TileMap"))
    for path in ("/mc/tms/1.0.0/nope", "/mc/tms/1.0.0/one@nope", "/mc/tms/1.0.0/nope/0/0/0.png"):
        assert web.get(path).status == 404, path


def test_a_strict_tms_knows_one_extension(web):
    for alias, expected in (("mc", [200, 200, 200]), ("strict", [200, 404, 404])):
        assert [web.get(f"/{alias}/tms/1.0.0/one@{GRID}/0/0/0.{end}").status for end in ("png", "jpg", "PNG")] == expected
        assert web.get(f"/{alias}/tms/1.0.0/three@{GRID}/0/0/0.jpg").status == 200
        assert web.get(f"/{alias}/gmaps/one@{GRID}/0/0/0.jpg").status == 200


def test_feet_are_those_of_the_crs(web):
    grid = next(each for each in wmts(web).iter(f"{{{WMTS['w']}}}TileMatrixSet") if each.findtext("ows:Identifier", "", WMTS) == "survey")
    scales = [float(each.text) for each in grid.iter(f"{{{WMTS['w']}}}ScaleDenominator")]
    assert scales[0] == pytest.approx(800 * 1200 / 3937 / 0.00028, rel=1e-12)


def addresses_of(web, alias):
    """Every address of a tile, or of a document about tiles, that documents of the odd layer have."""
    quoted = urllib.parse.quote(ODD, safe="")
    documents = [f"/{alias}/tms/1.0.0"]
    yield from documents
    tms = ElementTree.fromstring(web.get(documents[0]).body)
    for entry in tms.iter("TileMap"):
        path = urllib.parse.urlsplit(entry.get("href")).path
        if urllib.parse.unquote(path).startswith(f"/{alias}/tms/1.0.0/{ODD}@"):
            yield path
            for tiles in ElementTree.fromstring(web.get(path).body).iter("TileSet"):
                yield urllib.parse.urlsplit(tiles.get("href")).path + "/0/0.png"
            yield path + ".json"
            yield path.replace("tms/1.0.0", "gmaps") + ".json"
            for kind in ("tms/1.0.0", "gmaps"):
                found = json.loads(web.get(path.replace("tms/1.0.0", kind) + ".json").body)["tiles"][0]
                yield urllib.parse.urlsplit(found).path.replace("{z}", "1").replace("{x}", "0").replace("{y}", "0")
    for grid in ("g;r@i[d", GRID):
        path = f"/{alias}/kml/{quoted}@{urllib.parse.quote(grid, safe='')}.kml"
        for _ in range(2):
            yield path
            document = ElementTree.fromstring(web.get(path).body)
            pictures = [urllib.parse.urlsplit(each.text).path for each in document.iterfind(f".//{KML}Icon/{KML}href")]
            yield from pictures
            path = urllib.parse.urlsplit(document.findtext(f".//{KML}Link/{KML}href")).path
        yield f"/{alias}/ve?" + urllib.parse.urlencode({"layer": f"{ODD}@{grid}", "tile": "0"})
        yield f"/{alias}/mg/S0/{quoted}@{urllib.parse.quote(grid, safe='')}/R0/C0/0_0.png"
        both = urllib.parse.quote(f"{ODD}[d;i@m[e=y;z]@{grid};{ODD}@{grid}", safe="")
        yield f"/{alias}/gmaps/{both}/0/0/0.png"
    for layer in wmts(web, alias).iter(f"{{{WMTS['w']}}}Layer"):
        if layer.findtext("ows:Identifier", "", WMTS) != ODD:
            continue
        for link in layer.findall("w:TileMatrixSetLink/w:TileMatrixSet", WMTS):
            for resource in layer.findall("w:ResourceURL", WMTS):
                path = resource.get("template")
                for name, value in (("TileMatrixSet", link.text), ("TileMatrix", "0"), ("TileRow", "0"), ("TileCol", "0"),
                                    ("d;i@m[e", "y;z")):
                    assert "{" + name + "}" in path
                    path = path.replace("{" + name + "}", urllib.parse.quote(value, safe=""))
                yield urllib.parse.urlsplit(path).path
            yield f"/{alias}/wmts?" + urllib.parse.urlencode({
                "SERVICE": "WMTS", "REQUEST": "GetTile", "VERSION": "1.0.0", "LAYER": ODD, "STYLE": "default", "FORMAT": "image/png",
                "TILEMATRIXSET": link.text, "TILEMATRIX": 0, "TILEROW": 0, "TILECOL": 0, "d;i@m[e": "x"})


@pytest.mark.parametrize("alias", ["mc", "strict"])
def test_every_address_of_an_odd_name_works(web, alias):
    paths = list(addresses_of(web, alias))
    assert len(paths) > 25
    for path in paths:
        assert web.get(path).status == 200, path
    assert web.get(f"/{alias}/gmaps/a;a@{GRID}/0/0/0.png").status in (200, 400)  # "a" is a layer of its own still
    assert web.get(f"/{alias}/gmaps/a@{GRID}/0/0/0.png").status == 200


NAMES = """<mapcache><source name="s" type="dummy"/><cache name="c" type="disk"><base>/tmp/none</base></cache>
  <grid name="GRIDNAME"><srs>EPSG:3857</srs><units>m</units><size>256 256</size><extent>0 0 1000 1000</extent>
    <resolutions>2 1</resolutions></grid>
  <tileset name="TILESET"><source>s</source><cache>c</cache><format>PNG</format><grid LINK>GRIDNAME</grid>
    <dimensions><dimension type="values" name="DIMENSION" default="1"><value>1</value></dimension></dimensions></tileset>
  <service type="SERVICE" enabled="true">STRICT</service></mapcache>"""


def check(build, folder, **parts):
    text = NAMES
    for key, value in {"GRIDNAME": "g;@[", "TILESET": "t;@[", "DIMENSION": "d;@[", "SERVICE": "wmts", "STRICT": "", "LINK": "",
                       **parts}.items():
        text = text.replace(key, value)
    (folder / "names.xml").write_text(text)
    done = subprocess.run([build / "bin/mapcache", "check", folder / "names.xml"], capture_output=True, text=True, timeout=60,
                          check=False)
    return done.returncode, done.stdout


def test_check_refuses_names_that_no_path_can_hold(build, folder):
    assert check(build, folder)[0] == 0
    for key, line in (("GRIDNAME", 2), ("TILESET", 4), ("DIMENSION", 4)):
        status, output = check(build, folder, **{key: "a/b"})
        assert status == 1 and f":{line}:" in output and '"a/b"' in output and "path" in output, output
        assert check(build, folder, **{key: "a/b"}, SERVICE="wms")[0] == 0
    assert check(build, folder, TILESET="..")[0] == 1


def test_check_tells_of_limits_that_a_strict_document_cannot_tell(build, folder):
    corner, middle = 'restricted_extent="0 0 500 500" tolerance="0"', 'minzoom="0"'
    strict = "<strict>true</strict>"
    status, output = check(build, folder, LINK=corner, STRICT=strict)
    assert status == 2 and "grid" in output and "limits" in output and ":4:" in output, output
    assert check(build, folder, LINK=corner)[0] == 0
    assert check(build, folder, LINK=middle, STRICT=strict)[0] == 0

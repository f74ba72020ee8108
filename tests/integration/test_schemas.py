"""Capabilities and exception documents over HTTP against the published schemas, from a configuration that uses all that
shows in them. The schemas are a folder beside the checkout or where MAPCACHE_SCHEMAS says; without it, these tests are
skipped."""
import contextlib
import sqlite3
import urllib.parse
import xml.etree.ElementTree as ElementTree

import pytest
from conftest import GRID, ROOT
from lifecycle import HALF
from origin import Origin
from osgeo import ogr, osr
from schemas import OWS, SCHEMAS, WMS_130, WMS_130_ERROR, WMTS, validator

ogr.UseExceptions()

pytestmark = pytest.mark.skipif(not SCHEMAS.is_dir(), reason=f"no schemas at {SCHEMAS}")
ODD = "a &lt;b&gt; &amp; \"c\" 'd' ]]&gt; -- é"  # must come out as it went in, whatever it stands in
CONFIG = f"""<?xml version="1.0" encoding="UTF-8"?>
<mapcache>
  <metadata>
    <title>All {ODD}</title><abstract>{ODD}</abstract><keyword>one</keyword><keyword>two {ODD}</keyword>
    <fees>none</fees><accessconstraints>{ODD}</accessconstraints><providername>{ODD}</providername>
    <providerurl>http://provider.example/?a=1&amp;b=2</providerurl><contactname>{ODD}</contactname>
    <contactposition>p</contactposition><contactphone>+1</contactphone><contactfacsimile>+2</contactfacsimile>
    <contactorganization>{ODD}</contactorganization><contactcity>c</contactcity>
    <contactstateorprovince>s</contactstateorprovince><contactpostcode>12</contactpostcode>
    <contactcountry>y</contactcountry><contactelectronicmailaddress>a@b.example</contactelectronicmailaddress>
    <metadataurl>http://about.example/?service=1&amp;b=2</metadataurl>
  </metadata>
  <source name="asked" type="wms"><getmap><params><LAYERS>red</LAYERS></params></getmap>
    <getfeatureinfo><info_formats>text/plain,application/vnd.ogc.gml,text/html</info_formats>
    <params><QUERY_LAYERS>red</QUERY_LAYERS></params></getfeatureinfo><http><url>ORIGIN</url></http></source>
  <source name="broken" type="wms"><retries>0</retries><getmap><params><LAYERS>red</LAYERS></params></getmap>
    <http><url>BROKEN</url></http></source>
  <source name="white" type="dummy"/>
  <source name="drawn" type="shapefile"><layer name="places"><data>FOLDER/places.shp</data><style>FOLDER/places.sld</style>
    <attributes>name</attributes></layer></source>
  <source name="either" type="fallback"><source>asked</source><source>white</source></source>
  <grid name="part"><srs>EPSG:3857</srs><units>m</units><size>256 256</size><extent>0 0 1000000 1000000</extent>
    <resolutions>4000 2000</resolutions></grid>
  <grid name="long first"><srs>CRS:84</srs><units>dd</units><size>256 256</size><extent>-180 -90 180 90</extent>
    <resolutions>0.703125 0.3515625</resolutions></grid>
  <grid name="own top"><metadata><title>Own {ODD}</title></metadata><srs>EPSG:2154</srs><srsalias>EPSG:310024140</srsalias>
    <units>m</units><size>200 100</size><origin>top-left</origin><extent>0 6000000 1000000 7000000</extent>
    <resolutions>5000 2500 1000</resolutions></grid>
  <grid name="feet"><srs>EPSG:2263</srs><units>ft</units><size>256 256</size><extent>900000 100000 1100000 300000</extent>
    <resolutions>800 400</resolutions></grid>
  <grid name="north"><srs>EPSG:31467</srs><units>m</units><size>256 256</size><extent>3200000 5200000 4000000 6100000</extent>
    <resolutions>2000 1000 500</resolutions></grid>
  <format name="few" type="PNG"><colors>64</colors></format>
  <format name="any" type="MIXED"><transparent>few</transparent><opaque>JPEG</opaque></format>
  <format name="tiles" type="MVT"/>
  <format name="bytes" type="RAW"><extension>bin</extension><mime_type>application/x-bytes</mime_type></format>
  <cache name="disk" type="disk"><base>FOLDER/tiles</base></cache>
  <tileset name="full &amp; odd"><metadata><title>Full {ODD}</title><abstract>{ODD}</abstract>
      <keywords><keyword>k1</keyword><keyword>{ODD}</keyword></keywords>
      <metadataurl><url>http://about.example/?layer=1&amp;b={ODD}</url><type>fgdc</type><format>text/plain</format></metadataurl>
      <wgs84boundingbox>-10 40 10 50</wgs84boundingbox></metadata>
    <source>asked</source><cache>disk</cache><format>few</format>
    <grid restricted_extent="-1000000 4000000 1000000 6000000" minzoom="2" maxzoom="10" tolerance="0">{GRID}</grid>
    <grid max-cached-zoom="5">WGS84</grid><grid>part</grid><grid>long first</grid><grid>own top</grid><grid>feet</grid><grid>north</grid>
    <dimensions>
      <dimension type="values" name="time" default="2020" unit="ISO8601"><value>2019</value><value>2020</value></dimension>
      <dimension type="values" name="elevation" default="0" unit="m"><value>0</value><value>10</value></dimension>
      <dimension type="values" name="odd" default="&lt;&amp;"><value>&lt;&amp;</value><value>"'</value></dimension>
      <dimension type="regex" name="free" default="a"><regex>^[a-z&lt;]+$</regex></dimension>
    </dimensions></tileset>
  <tileset name="plain"><source>white</source><cache>disk</cache><format>JPEG</format><grid>g</grid></tileset>
  <tileset name="mixed"><source>white</source><cache>disk</cache><format>any</format><grid>{GRID}</grid></tileset>
  <tileset name="raw"><source>asked</source><cache>disk</cache><format>bytes</format><grid>{GRID}</grid></tileset>
  <tileset name="unformatted"><source>asked</source><cache>disk</cache><grid>WGS84</grid></tileset>
  <tileset name="listed"><source>white</source><cache>disk</cache><format>PNG</format><grid>{GRID}</grid>
    <dimensions><assembly_type>stack</assembly_type><store_assemblies>false</store_assemblies>
      <dimension type="sqlite" name="product" default="p1"><dbfile>FOLDER/catalogue.sqlite</dbfile>
        <validate_query>SELECT name FROM products WHERE name=:dim</validate_query>
        <list_query>SELECT name FROM products</list_query></dimension>
      <dimension type="time" name="time" default="2020-01-01T00:00:00Z"><dbfile>FOLDER/catalogue.sqlite</dbfile>
        <validate_query>SELECT day FROM products WHERE strftime('%s', day) >= :start_timestamp</validate_query>
        <list_query>SELECT day FROM products</list_query></dimension>
    </dimensions></tileset>
  <tileset name="drawn"><source>drawn</source><cache>disk</cache><format>PNG</format><grid>{GRID}</grid><grid>WGS84</grid></tileset>
  <tileset name="vector"><source>drawn</source><cache>disk</cache><format>tiles</format><grid>{GRID}</grid></tileset>
  <tileset name="either"><source>either</source><cache>disk</cache><format>PNG</format><grid>{GRID}</grid></tileset>
  <tileset name="lonely"><cache>disk</cache><grid>{GRID}</grid></tileset>
  <tileset name="broken"><source>broken</source><cache>disk</cache><format>PNG</format><grid>{GRID}</grid></tileset>
  <service type="wms" enabled="true"><full_wms>FULL</full_wms><resample_mode>nearest</resample_mode>
    <format allow_client_override="true">PNG</format><maxsize>1000</maxsize>STRICT
    <forwarding_rule name="features"><http><url>BROKEN</url></http><param name="SERVICE" type="values"><value>WFS</value></param>
    </forwarding_rule></service>
  <service type="wmts" enabled="true">STRICT</service>
  <service type="tms" enabled="true">STRICT</service><service type="kml" enabled="true"/><service type="gmaps" enabled="true"/>
  <service type="ve" enabled="true"/><service type="mapguide" enabled="true"/><service type="demo" enabled="true"/>
  <locker type="disk"><directory>FOLDER</directory></locker>
</mapcache>
"""


SLD = """<StyledLayerDescriptor version="1.0.0" xmlns="http://www.opengis.net/sld"><NamedLayer><UserStyle><FeatureTypeStyle><Rule>
  <Title>a &lt;b&gt; &amp; c</Title><PolygonSymbolizer><Fill/></PolygonSymbolizer></Rule></FeatureTypeStyle></UserStyle></NamedLayer>
  </StyledLayerDescriptor>"""
STRICT = "<strict>true</strict>"
# alias: strict, full_wms and what goes with it
ALIASES = {"mc": ("", "assemble"), "strict": (STRICT, "assemble"), "forward": ("", "forward</full_wms><srs>EPSG:32632 CRS:84</srs>"),
           "forward-strict": (STRICT, "forward</full_wms><srs>EPSG:32632 CRS:84</srs>")}
PATHS = [f"/{name}" for name in ALIASES]


def make_data(folder):
    reference = osr.SpatialReference()
    reference.ImportFromEPSG(4326)
    data = ogr.GetDriverByName("ESRI Shapefile").CreateDataSource(str(folder / "places.shp"))
    layer = data.CreateLayer("places", reference, ogr.wkbPolygon, ["ENCODING=UTF-8"])
    layer.CreateField(ogr.FieldDefn("name", ogr.OFTString))
    feature = ogr.Feature(layer.GetLayerDefn())
    feature.SetField("name", "Zürich <&>")
    feature.SetGeometry(ogr.CreateGeometryFromWkt("POLYGON((0 40,20 40,20 60,0 60,0 40))"))
    layer.CreateFeature(feature)
    (folder / "places.sld").write_text(SLD)
    with contextlib.closing(sqlite3.connect(folder / "catalogue.sqlite")) as file, file:
        file.execute("CREATE TABLE products (name TEXT, day TEXT)")
        file.executemany("INSERT INTO products VALUES (?, ?)", [("p1", "2020-01-01T00:00:00Z"), ("a<&>\"b,c", "2021-05-06T00:00:00Z")])


@pytest.fixture(scope="module")
def servers(shared_folder, shared_apache):
    with Origin() as origin:
        shared_folder.chmod(0o777)
        make_data(shared_folder)
        aliases = ""
        for name, (strict, full) in ALIASES.items():
            path = shared_folder / f"{name}.xml"
            text = CONFIG.replace("FOLDER", str(shared_folder)).replace("ORIGIN", origin.url("/wms?")).replace("STRICT", strict)
            text = text.replace("FULL</full_wms>", full if "<" in full else f"{full}</full_wms>")
            path.write_text(text.replace("BROKEN", origin.url("/xml?")))
            aliases += f"MapCacheAlias /{name} {path}\n"
        for path in shared_folder.iterdir():
            if path.is_file():
                path.chmod(0o666)
        yield shared_apache("ours", aliases)


@pytest.fixture(scope="module")
def validate(shared_folder):
    return validator(shared_folder)


CAPABILITIES = [
    ("?SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.3.0", WMS_130, "text/xml"),
    ("?SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.1.1", None, "application/vnd.ogc.wms_xml"),
    ("?SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.1.1&TILED=true", None, "application/vnd.ogc.wms_xml"),
    ("?SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.2.0", None, "application/vnd.ogc.wms_xml"),
    ("?SERVICE=WMS&REQUEST=GetCapabilities&VERSION=9.0.0", WMS_130, "text/xml"),
    ("/wmts?SERVICE=WMTS&REQUEST=GetCapabilities", WMTS, "application/xml"),
    ("/wmts/1.0.0/WMTSCapabilities.xml", WMTS, "application/xml"),
]


@pytest.mark.parametrize("alias", PATHS)
@pytest.mark.parametrize("path, schema, media", CAPABILITIES)
def test_capabilities(servers, validate, alias, path, schema, media):
    reply = servers.get(alias + path)
    if alias != "/strict" and media == "application/vnd.ogc.wms_xml":
        media = "text/xml"  # as MapCache's
    assert reply.status == 200 and reply.headers["Content-Type"].split(";")[0] == media
    validate(reply.body, schema)
    text = "".join(ElementTree.fromstring(reply.body).itertext())
    assert "full & odd" in text and "a <b> & \"c\" 'd' ]]> -- é" in text
    assert str(ROOT) not in text and "FOLDER" not in text and "/tiles" not in text
    assert "^[a-z<]+$" not in text and reply.body.count(b"a&lt;&amp;&gt;") > 0


def test_capabilities_without_a_version(servers, validate):
    """1.1.1 as MapCache's; the newest where the service is strict (WMS 1.3.0, 6.2.4)."""
    path = "?SERVICE=WMS&REQUEST=GetCapabilities"
    validate(servers.get("/mc" + path).body, None)
    validate(servers.get("/strict" + path).body, WMS_130)


MAP = f"SERVICE=WMS&REQUEST=GetMap&STYLES=&FORMAT=image/png&WIDTH=256&HEIGHT=256&BBOX=-{HALF},-{HALF},0,0"
TILE = "/wmts?SERVICE=WMTS&REQUEST=GetTile&VERSION=1.0.0&STYLE=default&FORMAT=image/jpeg"
# path without version, status, code in 1.1.1, code in 1.3.0
WMS_ERRORS = [
    (f"?{MAP}&LAYERS=nope&XRS=EPSG:3857", 404, "LayerNotDefined", "LayerNotDefined"),
    (f"?{MAP}&LAYERS=%3C%26%C3%FF%5D%5D%3E&XRS=EPSG:3857", 404, "LayerNotDefined", "LayerNotDefined"),
    (f"?{MAP}&LAYERS=plain&XRS=EPSG:9999", 400, "InvalidSRS", "InvalidCRS"),
    (f"/strict?{MAP.replace('image/png', 'image/none')}&LAYERS=plain&XRS=EPSG:3857", 404, "InvalidFormat", "InvalidFormat"),
    (f"/strict?{MAP.replace('STYLES=', 'STYLES=other')}&LAYERS=plain&XRS=EPSG:3857", 404, "StyleNotDefined", "StyleNotDefined"),
    (f"?{MAP.replace('BBOX=', 'BBOX=x')}&LAYERS=plain&XRS=EPSG:3857", 400, "InvalidParameterValue", "InvalidParameterValue"),
    (f"?{MAP}&LAYERS=broken&XRS=EPSG:3857", 502, None, None),
    ("?SERVICE=WMS&REQUEST=GetNothing", 501, "OperationNotSupported", "OperationNotSupported"),
    ("?SERVICE=WMS&REQUEST=GetCapabilities&UPDATESEQUENCE=99999999999", 400, "InvalidUpdateSequence",
     "InvalidUpdateSequence"),
    (f"?{MAP.replace('GetMap', 'GetFeatureInfo')}&LAYERS=plain&QUERY_LAYERS=plain&XRS=EPSG:3857&X=1&Y=1&I=1&J=1"
     "&INFO_FORMAT=text/plain", 404, "LayerNotQueryable", "LayerNotQueryable"),
]


@pytest.mark.parametrize("alias", ["/mc", "/strict"])
@pytest.mark.parametrize("version", ["1.1.1", "1.3.0"])
@pytest.mark.parametrize("path, status, old_code, new_code", WMS_ERRORS)
def test_wms_exceptions(servers, validate, alias, version, path, status, old_code, new_code):
    path = path if path.startswith("/strict") else alias + path
    reply = servers.get(path.replace("XRS", "CRS" if version == "1.3.0" else "SRS") + f"&VERSION={version}")
    assert reply.status == status, reply.body
    if version == "1.3.0":
        assert reply.headers["Content-Type"].split(";")[0] == "text/xml"
        validate(reply.body, WMS_130_ERROR)
        exception = ElementTree.fromstring(reply.body).find("{http://www.opengis.net/ogc}ServiceException")
        assert exception.get("code") == new_code
    else:
        assert reply.headers["Content-Type"].split(";")[0] == "application/vnd.ogc.se_xml"
        validate(reply.body, None)
        exception = ElementTree.fromstring(reply.body).find("ServiceException")
        assert exception.get("code") == old_code
    assert exception.text.strip()


# path, code, locator
WMTS_ERRORS = [
    ("/wmts?SERVICE=WMTS", "MissingParameterValue", "request"),
    ("/wmts?SERVICE=WMTS&REQUEST=GetNothing&VERSION=1.0.0", "InvalidParameterValue", "request"),
    (f"{TILE}&TILEMATRIXSET={GRID}&TILEMATRIX=0&TILEROW=0&TILECOL=0", "MissingParameterValue", "layer"),
    (f"{TILE}&LAYER=%3Cb%3E--%26&TILEMATRIXSET={GRID}&TILEMATRIX=0&TILEROW=0&TILECOL=0", "InvalidParameterValue", "layer"),
    (f"{TILE}&LAYER=plain&TILEMATRIXSET={GRID}&TILEMATRIX=0&TILEROW=0&TILECOL=0", "InvalidParameterValue",
     "tilematrixset"),
    (f"{TILE}&LAYER=plain&TILEMATRIXSET=g&TILEMATRIX=77&TILEROW=0&TILECOL=0", "InvalidParameterValue", "tilematrix"),
    (f"{TILE}&LAYER=plain&TILEMATRIXSET=g&TILEMATRIX=1&TILEROW=2&TILECOL=0", "TileOutOfRange", "tilerow"),
    (f"{TILE}&LAYER=plain&TILEMATRIXSET=g&TILEMATRIX=1&TILEROW=0&TILECOL=-1", "InvalidParameterValue", "tilecol"),
    (f"{TILE}&LAYER=plain&TILEMATRIXSET=g&TILEMATRIX=1&TILEROW=x&TILECOL=0", "InvalidParameterValue", "tilerow"),
    (f"{TILE.replace('default', 'other')}&LAYER=plain&TILEMATRIXSET=g&TILEMATRIX=1&TILEROW=0&TILECOL=0",
     "InvalidParameterValue", "style"),
    (f"/strict{TILE.replace('image/jpeg', 'image/none')}&LAYER=plain&TILEMATRIXSET=g&TILEMATRIX=1&TILEROW=0&TILECOL=0",
     "InvalidParameterValue", "format"),
    (f"{TILE.replace('image/jpeg', 'image/png')}&LAYER=full%20%26%20odd&TILEMATRIXSET=WGS84&TILEMATRIX=1&TILEROW=0"
     "&TILECOL=0&TIME=1800", "InvalidParameterValue", "time"),
    ("/wmts?SERVICE=WMTS&REQUEST=GetCapabilities&ACCEPTVERSIONS=9.9.9", "VersionNegotiationFailed", None),
    ("/wmts?SERVICE=WMTS&REQUEST=GetCapabilities&UPDATESEQUENCE=99999999999", "InvalidUpdateSequence", None),
]


@pytest.mark.parametrize("alias", ["/mc", "/strict"])
@pytest.mark.parametrize("path, code, locator", WMTS_ERRORS)
def test_wmts_exceptions(servers, validate, alias, path, code, locator):
    reply = servers.get(path if path.startswith("/strict") else alias + path)
    assert reply.status == 400 and reply.headers["Content-Type"].split(";")[0] in ("application/xml", "text/xml")
    validate(reply.body, OWS)
    exceptions = ElementTree.fromstring(reply.body).findall("{http://www.opengis.net/ows/1.1}Exception")
    found = [(each.get("exceptionCode"), (each.get("locator") or "").lower() or None) for each in exceptions]
    assert (code, locator) in found, found


def test_a_wmts_origin_that_fails_is_a_valid_report(servers, validate):
    reply = servers.get(f"/mc{TILE.replace('image/jpeg', 'image/png')}&LAYER=broken&TILEMATRIXSET={GRID}&TILEMATRIX=1"
                        "&TILEROW=0&TILECOL=0")
    assert reply.status in (400, 502)
    validate(reply.body, OWS)
    assert b"map.map" not in reply.body and b"127.0.0.1" not in reply.body


def local(address):
    parts = urllib.parse.urlsplit(address)
    assert parts.scheme == "http" and parts.hostname == "127.0.0.1", address
    return parts.path


@pytest.mark.parametrize("alias", ["/mc", "/strict"])
def test_documents_of_tms_keep_its_rules(servers, alias):
    """TMS 1.0.0 has no schema: its root leads to the service, that to all maps, a map to its levels."""
    root = ElementTree.fromstring(servers.get(alias + "/tms").body)
    service, = root
    assert root.tag == "Services" and service.tag == "TileMapService" and set(service.attrib) == {"title", "version", "href"}
    document = ElementTree.fromstring(servers.get(local(service.get("href"))).body)
    assert (document.tag, document.get("version"), local(document.get("services"))) == ("TileMapService", "1.0.0", alias + "/tms/")
    assert [child.tag for child in document] == ["Title", "Abstract", "TileMaps"]
    entries = list(document.find("TileMaps"))
    assert len(entries) > 10
    for entry in entries:
        assert set(entry.attrib) == {"title", "srs", "profile", "href"}
        one = ElementTree.fromstring(servers.get(local(entry.get("href"))).body)
        assert (one.tag, one.get("version"), one.findtext("SRS")) == ("TileMap", "1.0.0", entry.get("srs"))
        assert local(one.get("tilemapservice")) == alias + "/tms/1.0.0/" and one.findtext("Title") == entry.get("title")
        assert [child.tag for child in one] == ["Title", "Abstract", "SRS", "BoundingBox", "Origin", "TileFormat", "TileSets"]
        box = {key: float(value) for key, value in one.find("BoundingBox").attrib.items()}
        assert box["minx"] < box["maxx"] and box["miny"] < box["maxy"]
        assert set(one.find("TileFormat").attrib) == {"width", "height", "mime-type", "extension"}
        assert one.find("TileSets").get("profile") == entry.get("profile")
        levels = list(one.find("TileSets"))
        assert [int(level.get("order")) for level in levels] == list(range(len(levels)))
        sizes = [float(level.get("units-per-pixel")) for level in levels]
        assert sizes == sorted(sizes, reverse=True) and all(local(level.get("href")) for level in levels)
    assert {"Full a <b> & \"c\" 'd' ]]> -- é", "drawn", "vector"} <= {entry.get("title") for entry in entries}


KML = "{http://www.opengis.net/kml/2.2}"
# Children in the order of the KML schema (OGC 07-147r2).
ORDER = {"Document": ["name", "Region", "GroundOverlay", "NetworkLink"], "NetworkLink": ["name", "Region", "Link"],
         "GroundOverlay": ["drawOrder", "Icon", "LatLonBox"], "Region": ["LatLonAltBox", "Lod"], "Lod": ["minLodPixels", "maxLodPixels"],
         "LatLonAltBox": ["north", "south", "east", "west"], "LatLonBox": ["north", "south", "east", "west"],
         "Link": ["href", "viewRefreshMode"], "Icon": ["href"]}


def check_kml(reply):
    assert reply.status == 200 and reply.headers["Content-Type"] == "application/vnd.google-earth.kml+xml", reply.body
    root = ElementTree.fromstring(reply.body)
    assert root.tag == KML + "kml" and [child.tag for child in root] == [KML + "Document"]
    for element in root[0].iter():
        order = ORDER.get(element.tag.removeprefix(KML))
        if order is not None:
            places = [order.index(child.tag.removeprefix(KML)) for child in element]
            assert places == sorted(places), element.tag
    for box in [*root.iter(KML + "LatLonAltBox"), *root.iter(KML + "LatLonBox")]:
        north, south, east, west = (float(side.text) for side in box)
        assert -90 <= south < north <= 90 and -180 <= west < east <= 180
    return root


@pytest.mark.parametrize("layer", ["unformatted@WGS84", f"drawn@{GRID}", "drawn@WGS84", f"full%20%26%20odd@{GRID}", "plain@g",
                                   "full%20%26%20odd@long%20first", "full%20%26%20odd@part"])
def test_documents_of_kml_keep_its_rules(servers, layer):
    root = check_kml(servers.get(f"/mc/kml/{layer}.kml"))
    for _ in range(3):
        links = [link.text for link in root.iterfind(f".//{KML}Link/{KML}href")]
        if not links:
            break
        root = check_kml(servers.get(local(links[0])))
        picture = local(root.findtext(f".//{KML}GroundOverlay/{KML}Icon/{KML}href"))
        assert servers.get(picture).status == 200 or "unformatted" in layer or "full" in layer, picture


@pytest.mark.parametrize("alias", ["/mc", "/strict"])
@pytest.mark.parametrize("path, status", [
    ("/tms/2.0.0", 404), ("/tms/1.0.0/nope", 404), ("/tms/1.0.0/plain/99/0/0.jpg", 404), ("/tms/1.0.0/plain/%3Cb%3E/0/0.jpg", 404),
    ("/gmaps/nope/0/0/0.png", 400), ("/gmaps/plain/0/9/0.png", 404), ("/kml/nope", 404), ("/kml/full%20%26%20odd@own%20top.kml", 404),
    ("/kml/vector.kml", 404), ("/ve?layer=plain@g&tile=9", 400), ("/mg/S0/nope/R0/C0/0_0.png", 404), ("/demo/%3Cnope%3E", 404),
    ("/wmts/1.0.0/%3Cnope%3E/default/g/0/0/0.png", 404), ("/wmts/1.0.0/plain/default/g/0/0/9.jpg", 404)])
def test_errors_of_paths_are_plain_text(servers, alias, path, status):
    reply = servers.get(alias + path)
    assert reply.status == status and reply.headers["Content-Type"].startswith("text/plain"), reply.body


@pytest.mark.parametrize("alias", PATHS)
def test_addresses_in_capabilities_answer(servers, alias):
    """Legends are what they are said to be, and all others are there."""
    legends = 0
    for version in ("1.1.1", "1.3.0"):
        text = servers.get(f"{alias}?SERVICE=WMS&REQUEST=GetCapabilities&VERSION={version}").body.decode().replace(
            ' xmlns="http://www.opengis.net/wms"', "")
        for legend in ElementTree.fromstring(text).iter("LegendURL"):
            parts = urllib.parse.urlsplit(legend.find("OnlineResource").get("{http://www.w3.org/1999/xlink}href"))
            reply = servers.get(f"{parts.path}?{parts.query}")
            assert (reply.status, reply.headers["Content-Type"]) == (200, legend.findtext("Format"))
            legends += 1
    assert legends > 0


def test_every_format_that_wmts_announces_comes_back(servers):
    names = {"wmts": "http://www.opengis.net/wmts/1.0", "ows": "http://www.opengis.net/ows/1.1"}
    document = ElementTree.fromstring(servers.get("/strict/wmts/1.0.0/WMTSCapabilities.xml").body)
    served = set()
    for layer in document.findall("wmts:Contents/wmts:Layer", names):
        name = layer.find("ows:Identifier", names).text
        if name in ("broken", "drawn", "vector"):  # some fail
            continue
        matrix_set = layer.find("wmts:TileMatrixSetLink/wmts:TileMatrixSet", names).text
        for announced in layer.findall("wmts:Format", names):
            query = urllib.parse.urlencode({"SERVICE": "WMTS", "REQUEST": "GetTile", "VERSION": "1.0.0", "STYLE": "default",
                                            "LAYER": name, "FORMAT": announced.text, "TILEMATRIXSET": matrix_set,
                                            "TILEMATRIX": 3, "TILEROW": 2, "TILECOL": 3})
            reply = servers.get(f"/strict/wmts?{query}")
            assert (reply.status, reply.headers["Content-Type"]) == (200, announced.text), name
            served.add(announced.text)
    assert served == {"image/png", "image/jpeg", "application/x-bytes"}

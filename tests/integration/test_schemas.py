"""Capabilities and exception documents over HTTP against the published schemas, from a configuration that uses all that
shows in them. The schemas are a folder beside the checkout or where MAPCACHE_SCHEMAS says; without it, these tests are
skipped."""
import urllib.parse
import xml.etree.ElementTree as ElementTree

import pytest
from conftest import GRID, ROOT
from lifecycle import HALF
from origin import Origin
from schemas import OWS, SCHEMAS, WMS_130, WMS_130_ERROR, WMTS, validator

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
  </metadata>
  <source name="asked" type="wms"><getmap><params><LAYERS>red</LAYERS></params></getmap>
    <getfeatureinfo><info_formats>text/plain,application/vnd.ogc.gml,text/html</info_formats>
    <params><QUERY_LAYERS>red</QUERY_LAYERS></params></getfeatureinfo><http><url>ORIGIN</url></http></source>
  <source name="broken" type="wms"><retries>0</retries><getmap><params><LAYERS>red</LAYERS></params></getmap>
    <http><url>BROKEN</url></http></source>
  <source name="white" type="dummy"/>
  <grid name="own top"><metadata><title>Own {ODD}</title></metadata><srs>EPSG:2154</srs><srsalias>EPSG:310024140</srsalias>
    <units>m</units><size>200 100</size><origin>top-left</origin><extent>0 6000000 1000000 7000000</extent>
    <resolutions>5000 2500 1000</resolutions></grid>
  <grid name="feet"><srs>EPSG:2263</srs><units>ft</units><size>256 256</size><extent>900000 100000 1100000 300000</extent>
    <resolutions>800 400</resolutions></grid>
  <grid name="north"><srs>EPSG:31467</srs><units>m</units><size>256 256</size><extent>3200000 5200000 4000000 6100000</extent>
    <resolutions>2000 1000 500</resolutions></grid>
  <format name="few" type="PNG"><colors>64</colors></format>
  <format name="any" type="MIXED"><transparent>few</transparent><opaque>JPEG</opaque></format>
  <format name="bytes" type="RAW"><extension>bin</extension><mime_type>application/x-bytes</mime_type></format>
  <cache name="disk" type="disk"><base>FOLDER/tiles</base></cache>
  <tileset name="full &amp; odd"><metadata><title>Full {ODD}</title><abstract>{ODD}</abstract>
      <keywords><keyword>k1</keyword><keyword>{ODD}</keyword></keywords>
      <wgs84boundingbox>-10 40 10 50</wgs84boundingbox></metadata>
    <source>asked</source><cache>disk</cache><format>few</format>
    <grid restricted_extent="-1000000 4000000 1000000 6000000" minzoom="2" maxzoom="10" tolerance="0">{GRID}</grid>
    <grid max-cached-zoom="5">WGS84</grid><grid>own top</grid><grid>feet</grid><grid>north</grid>
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
  <tileset name="lonely"><cache>disk</cache><grid>{GRID}</grid></tileset>
  <tileset name="broken"><source>broken</source><cache>disk</cache><format>PNG</format><grid>{GRID}</grid></tileset>
  <service type="wms" enabled="true"><full_wms>assemble</full_wms><resample_mode>nearest</resample_mode>
    <format allow_client_override="true">PNG</format><maxsize>1000</maxsize>STRICT</service>
  <service type="wmts" enabled="true">STRICT</service>
  <service type="tms" enabled="true"/><service type="kml" enabled="true"/><service type="gmaps" enabled="true"/>
  <service type="ve" enabled="true"/><service type="mapguide" enabled="true"/><service type="demo" enabled="true"/>
  <locker type="disk"><directory>FOLDER</directory></locker>
</mapcache>
"""


@pytest.fixture(scope="module")
def servers(shared_folder, shared_apache):
    with Origin() as origin:
        shared_folder.chmod(0o777)
        aliases = ""
        for name, strict in [("mc", ""), ("strict", "<strict>true</strict>")]:
            path = shared_folder / f"{name}.xml"
            text = CONFIG.replace("FOLDER", str(shared_folder)).replace("ORIGIN", origin.url("/wms?"))
            path.write_text(text.replace("BROKEN", origin.url("/xml?")).replace("STRICT", strict))
            aliases += f"MapCacheAlias /{name} {path}\n"
        yield shared_apache("ours", aliases)


@pytest.fixture(scope="module")
def validate(shared_folder):
    return validator(shared_folder)


CAPABILITIES = [
    ("?SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.3.0", WMS_130, "text/xml"),
    ("?SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.1.1", None, "application/vnd.ogc.wms_xml"),
    ("?SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.2.0", None, "application/vnd.ogc.wms_xml"),
    ("?SERVICE=WMS&REQUEST=GetCapabilities&VERSION=9.0.0", WMS_130, "text/xml"),
    ("/wmts?SERVICE=WMTS&REQUEST=GetCapabilities", WMTS, "application/xml"),
    ("/wmts/1.0.0/WMTSCapabilities.xml", WMTS, "application/xml"),
]


@pytest.mark.parametrize("alias", ["/mc", "/strict"])
@pytest.mark.parametrize("path, schema, media", CAPABILITIES)
def test_capabilities(servers, validate, alias, path, schema, media):
    reply = servers.get(alias + path)
    if alias == "/mc" and media == "application/vnd.ogc.wms_xml":
        media = "text/xml"  # as MapCache's
    assert reply.status == 200 and reply.headers["Content-Type"].split(";")[0] == media
    validate(reply.body, schema)
    text = "".join(ElementTree.fromstring(reply.body).itertext())
    assert "full & odd" in text and "a <b> & \"c\" 'd' ]]> -- é" in text
    assert str(ROOT) not in text and "FOLDER" not in text and "/tiles" not in text


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


@pytest.mark.parametrize("version", ["1.1.1", "1.3.0"])
@pytest.mark.parametrize("path, status, old_code, new_code", WMS_ERRORS)
def test_wms_exceptions(servers, validate, version, path, status, old_code, new_code):
    path = path if path.startswith("/strict") else "/mc" + path
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


@pytest.mark.parametrize("path", ["/tms", "/tms/1.0.0", f"/tms/1.0.0/full%20%26%20odd@{GRID}", "/kml/unformatted@WGS84.kml",
                                  "/kml/unformatted@WGS84/1/1/1.kml"])
def test_other_documents_are_well_formed(servers, path):
    reply = servers.get("/mc" + path)
    assert reply.status == 200, reply.body
    assert len(list(ElementTree.fromstring(reply.body).iter())) > 1


def test_every_format_that_wmts_announces_comes_back(servers):
    names = {"wmts": "http://www.opengis.net/wmts/1.0", "ows": "http://www.opengis.net/ows/1.1"}
    document = ElementTree.fromstring(servers.get("/strict/wmts/1.0.0/WMTSCapabilities.xml").body)
    served = set()
    for layer in document.findall("wmts:Contents/wmts:Layer", names):
        name = layer.find("ows:Identifier", names).text
        if name == "broken":
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

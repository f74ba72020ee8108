"""GetFeatureInfo from the data itself: four formats, well escaped, only what may be seen, what lies on top first."""
import json
import math
import re

import pytest
from conftest import GRID
from osgeo import ogr, osr
from schemas import SCHEMAS, validator
from test_drawing import HALF

ODD = "<b>&\"'\\ \x07ü€</b>"
SHOWN = "<b>&\"'\\"
# Two squares over each other, a line, two points; the point lies on all of them.
SQUARE = "POLYGON((0 0,0 10,10 10,10 0,0 0),(6 6,6 8,8 8,8 6,6 6))"
SHAPES = {"areas": [SQUARE, "POLYGON((0 0,0 20,20 20,20 0,0 0))", "POLYGON((40 40,40 50,50 50,50 40,40 40))"],
          "lines": ["LINESTRING(0 0,10 10)"], "places": ["MULTIPOINT((5 5),(30 30))"]}
# The schema of the answer: what it is made of is GML's.
SCHEMA = """<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:gml="http://www.opengis.net/gml"
  xmlns:mc="urn:x-mapcache:features" targetNamespace="urn:x-mapcache:features" elementFormDefault="qualified">
  <xs:import namespace="http://www.opengis.net/gml" schemaLocation="file://{schemas}/gml/2.1.2/feature.xsd"/>
  <xs:element name="FeatureCollection" substitutionGroup="gml:_FeatureCollection"><xs:complexType><xs:complexContent>
    <xs:extension base="gml:AbstractFeatureCollectionType"/></xs:complexContent></xs:complexType></xs:element>
  <xs:complexType name="all"><xs:complexContent><xs:extension base="gml:AbstractFeatureType"><xs:sequence>
    <xs:any minOccurs="0" maxOccurs="unbounded" processContents="skip" namespace="##targetNamespace"/></xs:sequence></xs:extension>
  </xs:complexContent></xs:complexType>
  {elements}</xs:schema>"""

# Draws the first area, at small scales alone.
SOME = """<StyledLayerDescriptor version="1.0.0" xmlns="http://www.opengis.net/sld"><NamedLayer><UserStyle><FeatureTypeStyle><Rule>
  <Filter><And><PropertyIsLessThan><PropertyName>number</PropertyName><Literal>1</Literal></PropertyIsLessThan>
  <PropertyIsEqualTo><PropertyName>secret</PropertyName><Literal>swordfish</Literal></PropertyIsEqualTo></And></Filter>
  <MinScaleDenominator>1000000</MinScaleDenominator><PolygonSymbolizer><Fill/></PolygonSymbolizer></Rule></FeatureTypeStyle>
  </UserStyle></NamedLayer></StyledLayerDescriptor>"""


def make(folder, name, shapes):
    reference = osr.SpatialReference()
    reference.ImportFromEPSG(4326)
    data = ogr.GetDriverByName("ESRI Shapefile").CreateDataSource(str(folder / f"{name}.shp"))
    layer = data.CreateLayer(name, reference, ogr.CreateGeometryFromWkt(shapes[0]).GetGeometryType(), ["ENCODING=UTF-8"])
    for field, kind in (("odd text", ogr.OFTString), ("number", ogr.OFTInteger), ("real", ogr.OFTReal), ("secret", ogr.OFTString),
                        ("1st", ogr.OFTString), ("größe", ogr.OFTInteger)):
        layer.CreateField(ogr.FieldDefn(field, kind))
    for number, shape in enumerate(shapes):
        feature = ogr.Feature(layer.GetLayerDefn())
        feature.SetField("odd text", ODD)
        feature.SetField("number", number)
        feature.SetField("größe", number)
        feature.SetField("secret", "swordfish")
        feature.SetGeometry(ogr.CreateGeometryFromWkt(shape))
        layer.CreateFeature(feature)


@pytest.fixture(scope="module")
def web(shared_folder, shared_apache):
    folder = shared_folder
    layers = ""
    for name, shapes in SHAPES.items():
        make(folder, name, shapes)
        layers += (f'<layer name="{name}"><data>{folder}/{name}.shp</data><attributes>odd text, number,real,1st,größe</attributes>'
                   "</layer>")
    (folder / "some.sld").write_text(SOME)
    for path in folder.iterdir():
        path.chmod(0o644)
    (folder / "info.xml").write_text(f"""<mapcache><cache name="disk" type="disk"><base>{folder}/cache</base></cache>
      <source name="all" type="shapefile">{layers}</source>
      <tileset name="all"><source>all</source><cache>disk</cache><grid>{GRID}</grid><grid>WGS84</grid><format>PNG</format></tileset>
      <source name="some" type="shapefile"><layer name="areas"><data>{folder}/areas.shp</data><style>{folder}/some.sld</style>
        <attributes>number</attributes></layer></source>
      <tileset name="some"><source>some</source><cache>disk</cache><grid>WGS84</grid><format>PNG</format></tileset>
      <service type="wms" enabled="true"><full_wms>forward</full_wms><srs>EPSG:32632 CRS:84</srs></service>
      <service type="wmts" enabled="true"/></mapcache>""")
    return shared_apache("info", f"MapCacheAlias /mc {folder}/info.xml\n")


def ask(web, lon, lat, mime="application/json", more="", box=(-60.0, -60.0, 60.0, 60.0), srs="EPSG:4326", layer="all"):
    x, y = math.floor((lon - box[0]) / (box[2] - box[0]) * 600), math.floor((box[3] - lat) / (box[3] - box[1]) * 600)
    reply = web.get(f"/mc?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetFeatureInfo&STYLES=&LAYERS={layer}&QUERY_LAYERS={layer}&SRS={srs}"
                    f"&INFO_FORMAT={mime}&BBOX={','.join(map(repr, box))}&WIDTH=600&HEIGHT=600&X={x}&Y={y}{more}")
    assert reply.status == 200 and reply.headers["Content-Type"].startswith(mime), reply.body
    return json.loads(reply.body) if mime == "application/json" else reply.body.decode()


def found(answer):
    return [(feature["layer"], feature["properties"]["number"]) for feature in answer["features"]]


def test_what_lies_on_top_comes_first(web):
    everything = [("places", 0), ("lines", 0), ("areas", 1), ("areas", 0)]
    assert found(ask(web, 5, 5, more="&FEATURE_COUNT=10")) == everything
    assert found(ask(web, 5, 5)) == everything[:3]  # one of each layer
    for nonsense in ("0", "-3", "many", "1.5", ""):
        assert found(ask(web, 5, 5, more=f"&FEATURE_COUNT={nonsense}")) == everything[:3]
    assert found(ask(web, 7, 7.1, more="&FEATURE_COUNT=9")) == [("lines", 0), ("areas", 1)]  # the hole of the smaller one
    assert found(ask(web, -30, -30)) == []
    assert found(ask(web, 5.4, 5)) == everything[:3] and found(ask(web, 5.9, 5.2)) == everything[1:3], "three pixels"


def test_what_the_style_does_not_draw_is_not_found(web):
    """Neither features that no rule fits, nor layers that the scale of the map does not show; and what filters look at is
    still hidden."""
    assert [f["properties"] for f in ask(web, 5, 5, layer="some", more="&FEATURE_COUNT=9")["features"]] == [{"number": 0}]
    assert found(ask(web, 15, 15, layer="some")) == [] and found(ask(web, 15, 15)) == [("areas", 1)]
    near = (4.99, 4.99, 5.01, 5.01)
    assert found(ask(web, 5, 5, layer="some", box=near)) == [] and len(found(ask(web, 5, 5, box=near))) == 3


def test_json_has_types_geometry_and_no_secrets(web):
    answer = ask(web, 45, 45)
    feature = answer["features"][0]
    assert feature["properties"] == {"odd text": ODD, "number": 2, "real": None, "1st": None, "größe": 2}
    assert feature["geometry"]["type"] == "MultiPolygon"
    ring = feature["geometry"]["coordinates"][0][0]
    assert ring[0] == ring[-1] and len(ring) == 5
    assert sorted({(round(x, 3), round(y, 3)) for x, y in ring}) == [(40, 40), (40, 50), (50, 40), (50, 50)]
    area = sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(ring, ring[1:]))
    assert area > 0, "RFC 7946: against the clock"
    top = ask(web, 5, 5)["features"]
    assert top[0]["geometry"]["type"] == "MultiPoint" and len(top[0]["geometry"]["coordinates"]) == 2
    assert top[1]["geometry"]["type"] == "LineString"
    line = [[round(value, 3) for value in point] for point in top[1]["geometry"]["coordinates"]]
    assert line == [[0, 0], [10, 10]]
    below = ask(web, 5, 5, more="&FEATURE_COUNT=9")["features"][3]
    assert [len(part) for part in below["geometry"]["coordinates"]] == [2], "an outer ring and a hole"


@pytest.mark.parametrize("srs, box", [("EPSG:3857", (3e6, 3e6, 7e6, 7e6)), ("EPSG:32632", (2.4e6, 4e6, 4.8e6, 6.4e6))])
def test_geometry_is_in_degrees_whatever_the_map(web, srs, box):
    """The square from 40 to 50 degrees, which lies in the middle of these maps."""
    reply = web.get("/mc?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetFeatureInfo&STYLES=&LAYERS=all&QUERY_LAYERS=all"
                    f"&SRS={srs}&INFO_FORMAT=application/json&BBOX={','.join(map(repr, box))}&WIDTH=600&HEIGHT=600&X=300&Y=300")
    assert reply.status == 200, reply.body
    features = json.loads(reply.body)["features"]
    assert len(features) == 1
    ring = features[0]["geometry"]["coordinates"][0][0]
    pixel = 10000 / 111000
    for corner in ((40, 40), (40, 50), (50, 50), (50, 40)):
        assert min(math.dist(corner, point) for point in ring) < pixel / 20
    assert all(40 - pixel / 20 < x < 50 + pixel / 20 and 40 - pixel / 4 < y < 50 + pixel / 4 for x, y in ring)


@pytest.mark.parametrize("mime, text", [
    ("text/plain", f"odd text = {SHOWN}"), ("text/html", "<td>&lt;b&gt;&amp;&quot;"),
    ("application/vnd.ogc.gml", "<mc:odd_text>&lt;b&gt;&amp;&quot;")])
def test_values_are_escaped(web, mime, text):
    answer = ask(web, 45, 45, mime)
    assert text in answer and "ü€" in answer and "\x07" not in answer and "swordfish" not in answer
    assert "secret" not in answer
    assert mime != "application/vnd.ogc.gml" or "<mc:größe>2</mc:größe>" in answer
    nothing = ask(web, -30, -30, mime)
    assert "odd" not in nothing


@pytest.mark.skipif(not SCHEMAS.is_dir(), reason=f"no schemas at {SCHEMAS}")
@pytest.mark.parametrize("place", [(5, 5), (-30, -30)])
def test_gml_is_valid(web, tmp_path, place):
    elements = "".join(f'<xs:element name="{name}" type="mc:all" substitutionGroup="gml:_Feature"/>' for name in SHAPES)
    schema = tmp_path / "answer.xsd"
    schema.write_text(SCHEMA.format(schemas=SCHEMAS, elements=elements))
    validator(tmp_path)(ask(web, *place, "application/vnd.ogc.gml").encode(), schema)


@pytest.mark.parametrize("layers", ["all,all", "all,some,all"])
def test_a_layer_that_is_named_twice_is_answered_once(web, layers):
    answer = ask(web, 5, 5, "application/vnd.ogc.gml", layer=layers)
    ids = re.findall(r'fid="([^"]*)"', answer)
    assert len(ids) >= 3 and len(ids) == len(set(ids)), answer
    assert found(ask(web, 5, 5, layer="all,all")) == found(ask(web, 5, 5))


def test_wmts_answers_the_same(web):
    z, side = 4, 2 * HALF / 16
    x, y = (5 / 180 * HALF + HALF) / side, (HALF - 5 / 180 * HALF * 1.0013) / side
    column, row = int(x), int(y)
    reply = web.get(f"/mc/wmts/1.0.0/all/default/{GRID}/{z}/{row}/{column}/{int((y - row) * 256)}/{int((x - column) * 256)}.1")
    assert reply.status == 200, reply.body
    assert [name for name, _ in found(json.loads(reply.body))] == ["places", "lines", "areas", "areas"]


def test_documents_list_the_formats(web):
    for version in ("1.1.1", "1.3.0"):
        document = web.get(f"/mc?SERVICE=WMS&REQUEST=GetCapabilities&VERSION={version}").body.decode()
        part = document[document.index("<GetFeatureInfo>"):document.index("</GetFeatureInfo>")]
        for mime in ("text/plain", "application/json", "text/html", "application/vnd.ogc.gml"):
            assert f"<Format>{mime}</Format>" in part

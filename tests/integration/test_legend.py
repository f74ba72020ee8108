"""GetLegendGraphic and the LegendURL of documents: symbols and titles of the rules of a drawn layer."""
import io
import xml.etree.ElementTree as ElementTree

import numpy
import pytest
from conftest import GRID
from osgeo import ogr
from PIL import Image
from schemas import SCHEMAS, WMS_130, WMTS, validator

SYMBOL = '<PolygonSymbolizer><Fill><CssParameter name="fill">{}</CssParameter></Fill></PolygonSymbolizer>'
LINE = ('<LineSymbolizer><Stroke><CssParameter name="stroke">{}</CssParameter><CssParameter name="stroke-width">{}'
        '</CssParameter></Stroke></LineSymbolizer>')
POINT = ('<PointSymbolizer><Graphic><Mark><WellKnownName>circle</WellKnownName><Fill><CssParameter name="fill">{}'
         '</CssParameter></Fill></Mark><Size>10</Size></Graphic></PointSymbolizer>')
RULE = "<Rule><Name>{0}</Name><Title>{1}</Title>{2}{3}</Rule>"
NEAR = "<MaxScaleDenominator>10000</MaxScaleDenominator>"
ONLY = ("<Filter><PropertyIsEqualTo><PropertyName>kind</PropertyName><Literal>x</Literal></PropertyIsEqualTo></Filter>")
STYLES = {
    "areas": [[RULE.format("wood", "Wälder &amp; &lt;Haine&gt;", ONLY, SYMBOL.format("#20a020")),
               RULE.format("lake", "Lakes", "", SYMBOL.format("#2020d0"))]],
    "roads": [[RULE.format("way", "Motorways", "", LINE.format("#000000", 9))],
              [RULE.format("way2", "Motorways", "", LINE.format("#ff8000", 5)), RULE.format("path", "Paths", NEAR, LINE.format("#a06000", 1))]],
    "places": [[RULE.format("town", "Towns", "", POINT.format("#d00000"))]],
}
NAMES = """<StyledLayerDescriptor version="1.0.0" xmlns="http://www.opengis.net/sld"><NamedLayer><Name>a</Name><UserStyle><Name>s</Name>
  <FeatureTypeStyle><Rule><Title>Names</Title><TextSymbolizer><Label><PropertyName>name</PropertyName></Label><Font>
  <CssParameter name="font-family">DejaVu Sans</CssParameter><CssParameter name="font-size">30</CssParameter>
  <CssParameter name="font-weight">bold</CssParameter></Font><Fill><CssParameter name="fill">#d000d0</CssParameter></Fill>
  </TextSymbolizer></Rule></FeatureTypeStyle></UserStyle></NamedLayer></StyledLayerDescriptor>"""

SHIELD = """<Rule><Title>{0} {1}</Title><TextSymbolizer><Label><PropertyName>ref</PropertyName></Label><Font>
  <CssParameter name="font-family">DejaVu Sans</CssParameter><CssParameter name="font-size">11</CssParameter>
  <CssParameter name="font-weight">bold</CssParameter></Font><Fill><CssParameter name="fill">#ffffff</CssParameter></Fill>
  <Graphic><Mark><WellKnownName>{1}</WellKnownName><Fill><CssParameter name="fill">#1050a0</CssParameter></Fill>
  <Stroke><CssParameter name="stroke">#000000</CssParameter></Stroke></Mark><Size>24</Size></Graphic>
  <VendorOption name="graphic-resize">{0}</VendorOption><VendorOption name="graphic-margin">4 8</VendorOption></TextSymbolizer></Rule>"""
SHIELDS = [("none", "square"), ("stretch", "square"), ("stretch", "circle"), ("proportional", "circle")]


@pytest.fixture(scope="module")
def web(shared_folder, shared_apache):
    folder = shared_folder
    data = ogr.GetDriverByName("ESRI Shapefile").CreateDataSource(str(folder / "a.shp"))
    data.CreateLayer("a", None, ogr.wkbPolygon)
    data = None
    layers = ""
    for name, passes in STYLES.items():
        text = "".join(f"<FeatureTypeStyle>{''.join(rules)}</FeatureTypeStyle>" for rules in passes)
        (folder / f"{name}.sld").write_text(
            f'<StyledLayerDescriptor version="1.0.0" xmlns="http://www.opengis.net/sld"><NamedLayer><Name>a</Name><UserStyle>'
            f"<Name>s</Name>{text}</UserStyle></NamedLayer></StyledLayerDescriptor>")
        layers += f'<layer name="{name}"><data>{folder}/a.shp</data><style>{folder}/{name}.sld</style></layer>'
    (folder / "names.sld").write_text(NAMES)
    many = "".join(RULE.format(f"r{i}", f"Rule {i}", "", SYMBOL.format("#20a020")) for i in range(500))
    head, tail = NAMES[:NAMES.index("<Rule>")], NAMES[NAMES.index("</Rule>") + 7:]
    (folder / "shields.sld").write_text(head + "".join(SHIELD.format(*shield) for shield in SHIELDS) + tail)
    (folder / "many.sld").write_text(head + many + tail)
    for path in folder.glob("*.*"):
        path.chmod(0o644)
    (folder / "legend.xml").write_text(f"""<mapcache><cache name="disk" type="disk"><base>{folder}/cache</base></cache>
      <source name="drawn" type="shapefile">{layers}</source><source name="flat" type="dummy"/>
      <source name="names" type="shapefile"><layer><data>{folder}/a.shp</data><style>{folder}/names.sld</style></layer></source>
      <source name="shields" type="shapefile"><layer><data>{folder}/a.shp</data><style>{folder}/shields.sld</style></layer></source>
      <source name="many" type="shapefile"><layer><data>{folder}/a.shp</data><style>{folder}/many.sld</style></layer></source>
      <tileset name="many"><source>many</source><cache>disk</cache><grid>{GRID}</grid><format>PNG</format></tileset>
      <tileset name="shields"><source>shields</source><cache>disk</cache><grid>{GRID}</grid><format>PNG</format></tileset>
      <tileset name="names"><source>names</source><cache>disk</cache><grid>{GRID}</grid><format>PNG</format></tileset>
      <tileset name="the map"><source>drawn</source><cache>disk</cache><grid>{GRID}</grid><format>PNG</format></tileset>
      <tileset name="flat"><source>flat</source><cache>disk</cache><grid>{GRID}</grid><format>PNG</format></tileset>
      <service type="wms" enabled="true"><full_wms>forward</full_wms><format allow_client_override="true">PNG</format></service>
      <service type="wmts" enabled="true"/></mapcache>""")
    return shared_apache("legend", f"MapCacheAlias /mc {folder}/legend.xml\n")


def ask(web, more="", layer="the%20map", version="1.1.1"):
    return web.get(f"/mc?SERVICE=WMS&VERSION={version}&REQUEST=GetLegendGraphic&LAYER={layer}&FORMAT=image/png{more}")


def legend(web, more=""):
    reply = ask(web, more)
    assert reply.status == 200 and reply.headers["Content-Type"] == "image/png", reply.body
    return numpy.asarray(Image.open(io.BytesIO(reply.body)).convert("RGBA")).astype(int)


def has(picture, color, least=10):
    return (abs(picture[..., :3] - numpy.array(color)).max(axis=2) < 8).sum() >= least


GREEN, BLUE, ORANGE, RED = (32, 160, 32), (32, 32, 208), (255, 128, 0), (208, 0, 0)


def test_every_rule_has_its_symbol_and_title(web):
    whole = legend(web)
    assert all(has(whole, color) for color in (GREEN, BLUE, ORANGE, RED))
    titles = whole[:, 36:]
    assert titles.shape[1] > 60 and (titles[..., 0] < 80).sum() > 150, "there are letters"
    assert not has(titles, GREEN) and not has(titles, ORANGE), "symbols stay in their frames"
    rows = 5  # of equal titles there is one
    assert whole.shape[0] == 4 + rows * 24
    top = [whole[4 + i * 24:24 + i * 24, 4:24] for i in range(rows)]
    assert has(top[0], RED) and has(top[1], ORANGE) and has(top[1], (0, 0, 0)) and has(top[3], GREEN, 300)


def test_names_have_letters_as_their_symbol(web):
    shown = numpy.asarray(Image.open(io.BytesIO(ask(web, layer="names").body)).convert("RGBA")).astype(int)
    assert has(shown[:, 4:24], (208, 0, 208)) and not has(shown[:, 28:], (208, 0, 208)) and has(shown[:, 28:], (32, 32, 32))


@pytest.mark.parametrize("size", [20, 24, 40])
def test_graphics_behind_labels_are_in_the_symbol(web, size):
    reply = ask(web, f"&WIDTH={size}&HEIGHT={size}", "shields")
    picture = numpy.asarray(Image.open(io.BytesIO(reply.body)).convert("RGBA")).astype(int)
    high = picture.shape[0] // len(SHIELDS)
    for i, shield in enumerate(SHIELDS):
        row = picture[i * high:(i + 1) * high, :size + 8]
        assert has(row, (16, 80, 160)), shield
        blue = (abs(row[..., :3] - numpy.array((16, 80, 160))).max(axis=2) < 8).nonzero()
        assert (row[blue[0].min():blue[0].max(), blue[1].min():blue[1].max(), :3].min(axis=2) > 150).any(), shield  # the letters


def test_scale_rule_size_and_background(web):
    assert legend(web, "&SCALE=5000").shape[0] == 4 + 5 * 24
    assert legend(web, "&SCALE=50000").shape[0] == 4 + 4 * 24
    one = legend(web, "&RULE=lake&WIDTH=30&HEIGHT=12&LANGUAGE=de")
    assert one.shape[:2] == (12, 30) and has(one, BLUE, 300)
    by_title = legend(web, "&RULE=Lakes")
    assert by_title.shape[:2] == (20, 20) and has(by_title, BLUE, 300)
    assert legend(web, "&WIDTH=40").shape[1] == legend(web).shape[1] + 20
    assert (legend(web)[..., 3] == 255).all() and (legend(web, "&TRANSPARENT=TRUE")[..., 3] == 0).any()
    first, second = ask(web), ask(web)
    assert first.headers["ETag"] == second.headers["ETag"] and first.body == second.body


@pytest.mark.parametrize("more, factor", [("&DPI=180", 2), ("&MAP_RESOLUTION=270", 3), ("&LEGEND_OPTIONS=fontSize:9;dpi:180", 2),
                                          ("&DPI=96", 1)])
def test_a_fine_screen_has_larger_legends(web, more, factor):
    plain, fine = legend(web), legend(web, more)
    assert fine.shape[0] == factor * plain.shape[0] and abs(fine.shape[1] - factor * plain.shape[1]) <= factor
    for color in GREEN, ORANGE, RED:
        areas = [(abs(picture[..., :3] - numpy.array(color)).max(axis=2) < 8).sum() for picture in (plain, fine)]
        assert areas[1] == pytest.approx(areas[0] * factor ** 2, rel=0.25), color
    cut = fine[:plain.shape[0] * factor, :plain.shape[1] // 2 * 2 * factor]
    shrunk = cut.reshape(plain.shape[0], factor, -1, factor, 4).mean(axis=(1, 3))
    assert abs(shrunk - plain[:, :shrunk.shape[1]]).mean() < 6  # the same picture
    if factor == 1:
        assert numpy.array_equal(plain, fine)
    named = legend(web, more + "&WIDTH=30&HEIGHT=12&RULE=way")
    assert named.shape[:2] == (12, 30)  # as in GetMap these are pixels of the image


@pytest.mark.parametrize("more, layer, code", [
    ("", "none", "LayerNotDefined"), ("&STYLE=red", "the%20map", "StyleNotDefined"), ("", "flat", "OperationNotSupported"),
    ("&FORMAT=image/gif", "the%20map", "InvalidFormat"), ("&RULE=none", "the%20map", "InvalidParameterValue"), ("&WIDTH=0", "the%20map", "InvalidParameterValue"),
    ("&HEIGHT=99999", "the%20map", "InvalidParameterValue"), ("&SCALE=-1", "the%20map", "InvalidParameterValue"), ("&SCALE=nan", "the%20map", "InvalidParameterValue"),
    ("&SLD=http://a.example/", "the%20map", "OperationNotSupported"), ("", "", "MissingParameterValue")])
@pytest.mark.parametrize("version", ["1.1.1", "1.3.0"])
def test_bad_parameters_are_service_exceptions(web, more, layer, code, version):
    path = f"/mc?SERVICE=WMS&VERSION={version}&REQUEST=GetLegendGraphic&LAYER={layer}"
    reply = web.get(path + ("" if "FORMAT" in more else "&FORMAT=image/png") + more)
    assert reply.status >= 400 and reply.headers["Content-Type"].split(";")[0] == (
        "text/xml" if version == "1.3.0" else "application/vnd.ogc.se_xml"), reply.body
    report = ElementTree.fromstring(reply.body)
    assert report[0].get("code") == code, reply.body


def test_documents_say_where_the_legend_is(web, tmp_path):
    for version, namespace in (("1.3.0", "{http://www.opengis.net/wms}"), ("1.1.1", "")):
        document = web.get(f"/mc?SERVICE=WMS&REQUEST=GetCapabilities&VERSION={version}").body
        tree = ElementTree.fromstring(document)
        layers = {layer.findtext(f"{namespace}Name"): layer for layer in tree.iter(f"{namespace}Layer")}
        assert layers["flat"].find(f"{namespace}Style") is None
        found = layers["the map"].find(f"{namespace}Style/{namespace}LegendURL")
        url = found.find(f"{namespace}OnlineResource").get("{http://www.w3.org/1999/xlink}href")
        check(web, url, found.findtext(f"{namespace}Format"), found)
        if SCHEMAS.is_dir():
            validator(tmp_path)(document, WMS_130 if version == "1.3.0" else None)
    document = web.get("/mc/wmts/1.0.0/WMTSCapabilities.xml").body
    found = list(ElementTree.fromstring(document).iter("{http://www.opengis.net/wmts/1.0}LegendURL"))
    assert len(found) == 4
    check(web, found[0].get("{http://www.w3.org/1999/xlink}href"), found[0].get("format"), found[0])
    if SCHEMAS.is_dir():
        validator(tmp_path)(document, WMTS)


def check(web, url, mime, element):
    reply = web.get(url[url.index("/mc"):])
    assert reply.status == 200 and reply.headers["Content-Type"] == mime
    assert Image.open(io.BytesIO(reply.body)).size == (int(element.get("width")), int(element.get("height")))


def test_symbols_that_make_it_too_large_are_refused(web):
    """500 rows of 256 pixels would be an image that no coding has."""
    reply = ask(web, "&WIDTH=256&HEIGHT=256", layer="many")
    assert reply.status == 400 and b"symbols" in reply.body
    assert ask(web, layer="many").status == 200 and ask(web, "&WIDTH=256&HEIGHT=256&RULE=r7", layer="many").status == 200

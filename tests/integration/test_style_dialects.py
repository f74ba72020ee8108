"""What public styles write beyond the standard: constants of GeoServer's language, its marks, words for weights, and what means nothing."""
import io
import os
import re
import textwrap

import numpy
import pytest
from conftest import ROOT, temporary_folder, wait_until
from PIL import Image
from studio import UNIT, Studio, rule, style
from vector_maps import Maps

SVG = ('<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><rect x="5" width="10" height="20" fill="#00ff00"/></svg>')


@pytest.fixture(scope="module")
def studio(build, modules_environment):
    with temporary_folder() as folder:
        studio = Studio(folder, build, modules_environment)
        (folder / "styles/icons").mkdir()
        (folder / "styles/icons/bar.svg").write_text(SVG)
        studio.shapes([("POINT(50 50)", {"n": 1})])
        yield studio


def paint(fill="#ff0000", opacity=None):
    more = f'<se:SvgParameter name="fill-opacity">{opacity}</se:SvgParameter>' if opacity else ""
    return f'<se:Fill><se:SvgParameter name="fill">{fill}</se:SvgParameter>{more}</se:Fill>'


def stroke(color="#ff0000", width=2):
    return (f'<se:Stroke><se:SvgParameter name="stroke">{color}</se:SvgParameter><se:SvgParameter name="stroke-width">{width}'
            "</se:SvgParameter></se:Stroke>")


def mark(name, inner=None, size=20):
    inner = paint() if inner is None else inner
    return style(rule(f"<se:PointSymbolizer><se:Graphic><se:Mark><se:WellKnownName>{name}</se:WellKnownName>{inner}</se:Mark>"
                      f"<se:Size>{size}</se:Size></se:Graphic></se:PointSymbolizer>"))


def box_of(image):
    rows, columns = numpy.nonzero(image[..., 3] > 127)
    return int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1


@pytest.mark.parametrize("name", ["Square", "SQUARE", "${'square'}", "${ 'square' }", "squ${'are'}", "Shape://${'Carrow'}"])
def test_names_in_any_case_and_as_constants(studio, name):
    image = studio.draw(mark(name), 100, 100)
    assert image[..., 3].any()
    if "quar" in name.lower() or "are" in name:
        assert box_of(image) == (40, 40, 60, 60)


def test_constants_in_names_of_files(studio):
    picture = ('<se:Graphic><se:ExternalGraphic><se:OnlineResource xlink:href="{}"/><se:Format>image/svg+xml</se:Format>'
               "</se:ExternalGraphic><se:Size>20</se:Size></se:Graphic>")
    drawn = [studio.draw(style(rule(f"<se:PointSymbolizer>{picture.format(name)}</se:PointSymbolizer>")), 100, 100)
             for name in ("icons/bar.svg", "${'icons/bar.svg'}", "icons/${'bar'}.svg", "file://icons/bar.svg")]
    assert box_of(drawn[0]) == (45, 40, 55, 60)
    for image in drawn[1:]:
        assert numpy.array_equal(image, drawn[0])


def test_what_is_no_constant_is_still_named(studio):
    for name in ("${name}", "${strConcat('a','b')}", "${'square}", "${'square'"):
        code, said = studio.check(mark(name))
        assert code == 2 and "the mark" in said, (name, said)


def test_geometries_as_marks(studio):
    """Size is the height; the origin stands at the point; y is upwards."""
    assert box_of(studio.draw(mark("wkt://POLYGON((0 0, 1 0, 1 1, 0 1, 0 0))"), 100, 100)) == (50, 30, 70, 50)
    left, top, right, bottom = box_of(studio.draw(mark("wkt://MULTILINESTRING((-2 -0.5, 2 -0.5), (-2 0.5, 2 0.5))", stroke()), 120, 100))
    assert left in (9, 10) and right in (90, 91) and (top, bottom) == (39, 61)
    tilted = studio.draw(mark("wkt://LINESTRING(0 0, 1 1)", stroke(), 30), 100, 100)
    assert tilted[35, 65, 3] > 0 and not tilted[65, 35:].any()


def test_geometries_reach_over_the_edges_of_tiles(studio):
    studio.shapes([(f"POINT({x} {y})", {"n": 1}) for x in (100, 250, 380) for y in (120, 260, 400)])
    assert studio.has_seams(mark("wkt://LINESTRING(-6 0, 6 1)", stroke(), 12)) is None
    studio.shapes([("POINT(50 50)", {"n": 1})])


def test_geometries_that_cannot_be_read_are_named(studio):
    for text in ("wkt://POINT(0 0)", "wkt://LINESTRING(0 0", "wkt://LINESTRING(0 0, 1000 1)"):
        code, said = studio.check(mark(text))
        assert code == 2 and "the mark" in said, said


def test_a_file_is_a_mark_in_the_colour_of_its_fill(studio):
    red = studio.draw(mark("file://icons/bar.svg"), 100, 100)
    assert box_of(red) == (45, 40, 55, 60) and tuple(red[50, 50]) == (255, 0, 0, 255)
    half = studio.draw(mark("file://icons/bar.svg", paint("#0000ff", 0.5)), 100, 100)
    assert tuple(half[50, 50][:3]) == (0, 0, 255) and 126 <= half[50, 50][3] <= 129
    lined = studio.draw(mark("file://icons/bar.svg", stroke("#ffff00")), 100, 100)
    assert tuple(lined[50, 50]) == (255, 255, 0, 255)
    own = studio.draw(mark(f"file://{studio.folder}/styles/icons/bar.svg", ""), 100, 100)
    assert tuple(own[50, 50]) == (0, 255, 0, 255)
    code, said = studio.check(mark("file://../outside.svg"))
    assert code == 2 and "not in the style's folder" in said, said


def test_colours_that_are_computed(studio):
    darker = ('<ogc:Function name="darken"><ogc:Literal>#80e619</ogc:Literal><ogc:Literal>20%</ogc:Literal></ogc:Function>')
    assert tuple(studio.draw(mark("square", paint(darker)), 100, 100)[50, 50]) == (0x4D, 0x8A, 0x0F, 255)


@pytest.mark.parametrize("word", ["light", "Semi-Bold", "DemiBold", "medium", "Black", "heavy", "lighter", "bolder", "Regular", "extra light"])
def test_words_for_the_weight_of_a_font(studio, word):
    code, said = studio.check(style(rule(f"""<se:TextSymbolizer><se:Label>a</se:Label><se:Font>
      <se:SvgParameter name="font-family">DejaVu Sans</se:SvgParameter><se:SvgParameter name="font-weight">{word}</se:SvgParameter>
      <se:SvgParameter name="fill">#000000</se:SvgParameter><se:SvgParameter name="stroke">#000000</se:SvgParameter>
      </se:Font></se:TextSymbolizer>""")))
    assert code == 0, said


def test_what_says_nothing_is_not_remarked_on(studio):
    text = mark("square").replace("<UserStyle>", "<LayerFeatureConstraints>\n <FeatureTypeConstraint/></LayerFeatureConstraints><UserStyle>")
    text = text.replace("<se:FeatureTypeStyle>", "<!--FeatureRenderer nullSymbol not implemented yet--><se:FeatureTypeStyle>")
    code, said = studio.check(text)
    assert code == 0, said
    code, said = studio.check(text.replace("<FeatureTypeConstraint/>", "<FeatureTypeConstraint><FeatureTypeName>roads</FeatureTypeName>"
                                           "</FeatureTypeConstraint>"))
    assert code == 2 and "LayerFeatureConstraints" in said, said


# ---- What the documents say ----

@pytest.mark.parametrize("scale, width", [(2000, 12), (5000, 12), (15000, 8.5), (25000, 5), (112500, 3), (1e6, 1)])
def test_widths_by_scale_as_in_the_documents(studio, scale, width):
    page = (ROOT / "docs/drawing.md").read_text()
    text = textwrap.dedent(re.search(r"\n(    <LineSymbolizer>.*?wms_scale_denominator.*?</LineSymbolizer>\n)", page, re.DOTALL).group(1))
    text = re.sub(r"<(/?)(?!/|ogc:)", r"<\1se:", text).replace("CssParameter", "SvgParameter")
    studio.shapes([("LINESTRING(0 50,100 50)", {"n": 1})]).check(style(rule(text)))
    side = scale * 0.00028 * 50
    head, body = studio.answer(f"SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&STYLES=&LAYERS=a&SRS=EPSG:3857&FORMAT=image/png&WIDTH=100&HEIGHT=100"
                               f"&TRANSPARENT=true&BBOX={50 * UNIT - side},{-50 * UNIT - side},{50 * UNIT + side},{-50 * UNIT + side}")
    assert b"image/png" in head, (head, body)
    image = numpy.asarray(Image.open(io.BytesIO(body)).convert("RGBA"))
    assert image[:, 50, 3].sum() / 255 == pytest.approx(width, abs=0.15)
    studio.shapes([("POINT(50 50)", {"n": 1})])


def test_a_changed_style_is_read_with_the_configuration(build, studio):
    """As docs/drawing.md says; the configuration itself stays as it is."""
    with temporary_folder() as folder, Maps(folder, build, "") as maps:
        path, box = folder / "a.sld", (0, -100 * UNIT, 100 * UNIT, 0)
        path.write_text(mark("square"))
        maps.parts.append(f"""<source name="a" type="shapefile"><layer name="a"><data>{studio.folder}/data.shp</data><style>a.sld</style></layer></source>
          <tileset name="a"><source>a</source><cache>disk</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>""")
        maps.serve("<auto_reload>true</auto_reload>")
        assert tuple(maps.draw("a", box, (100, 100), more="&TRANSPARENT=true")[50, 50]) == (255, 0, 0, 255)
        path.write_text(mark("square", paint("#0000ff")))
        wait_until(lambda: tuple(maps.draw("a", box, (100, 100), more="&TRANSPARENT=true")[50, 50]) == (0, 0, 255, 255), "the new style is drawn")

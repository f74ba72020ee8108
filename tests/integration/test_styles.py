"""Styles in the form of QGIS and GeoServer: graphics, patterns, filters; what is lacking is named; no seams."""
import base64
import io
import math
import os
import random
import re
import time
import xml.etree.ElementTree as ElementTree

import numpy
import pytest
from conftest import ROOT, temporary_folder
from patience import patience
from PIL import Image
from studio import HEAD, LEVEL, Studio, rule, style

FIXTURES = ROOT / "tests/integration/styles"
SVG = ('<svg xmlns="http://www.w3.org/2000/svg" width="20" height="30" viewBox="0 0 20 30">'
       '<path d="M1 1 H19 V29 H1 Z" fill="param(fill) #ff0000" stroke="param(outline) #000000" '
       'stroke-width="param(outline-width) 2"/></svg>')
SQUARE = "POLYGON(({0} {1},{2} {1},{2} {3},{0} {3},{0} {1}))"


@pytest.fixture(scope="module")
def studio(build, modules_environment):
    with temporary_folder() as folder:
        studio = Studio(folder, build, modules_environment)
        styles = folder / "styles"
        (styles / "icons").mkdir()
        (styles / "pin.svg").write_text(SVG)
        (styles / "plain.svg").write_text(re.sub(r"param\([a-z-]+\) ", "", SVG))
        icon = Image.new("RGBA", (12, 8), (0, 120, 200, 255))
        icon.paste((0, 0, 0, 0), (6, 0, 12, 4))
        for name in ("icon.png", "icons/a.png"):
            icon.save(styles / name)
        icon.convert("RGB").save(styles / "icon.jpg", quality=95)
        icon.save(folder / "outside.png")
        os.symlink("../outside.png", styles / "link.png")
        yield studio


def parameters(**values):
    return "".join(f'<se:SvgParameter name="{name.replace("_", "-")}">{value}</se:SvgParameter>'
                   for name, value in values.items())


def mark(name="square", size=10, fill="#ff0000", stroke=None, more="", width=1):
    inner = f"<se:Fill>{parameters(fill=fill)}</se:Fill>" if fill else ""
    inner += f"<se:Stroke>{parameters(stroke=stroke, stroke_width=width)}</se:Stroke>" if stroke else ""
    return (f"<se:Graphic><se:Mark><se:WellKnownName>{name}</se:WellKnownName>{inner}</se:Mark><se:Size>{size}</se:Size>"
            f"{more}</se:Graphic>")


def picture(href, more="", behind=""):
    return (f'<se:Graphic><se:ExternalGraphic><se:OnlineResource xlink:type="simple" xlink:href="{href}"/>'
            f"<se:Format>image/png</se:Format></se:ExternalGraphic>{behind}{more}</se:Graphic>")


def point(graphic):
    return style(rule(f"<se:PointSymbolizer>{graphic}</se:PointSymbolizer>"))


def pattern(graphic, more=""):
    return (f"<se:PolygonSymbolizer>{more}<se:Fill><se:GraphicFill>{graphic}</se:GraphicFill></se:Fill>"
            "</se:PolygonSymbolizer>")


def along(graphic, more="", before=""):
    return (f"<se:LineSymbolizer>{before}<se:Stroke><se:GraphicStroke>{graphic}{more}</se:GraphicStroke></se:Stroke>"
            "</se:LineSymbolizer>")


def box_of(image):
    rows, columns = numpy.nonzero(image[..., 3])
    return int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1


# ---- Pictures ----

def test_a_png_is_drawn_pixel_by_pixel(studio):
    studio.shapes([("POINT(50 40)", {"n": 1})])
    image = studio.draw(point(picture("icon.png")), 100, 80)
    assert box_of(image) == (44, 36, 56, 44)
    own = numpy.asarray(Image.open(studio.folder / "styles/icon.png"))
    assert numpy.array_equal(image[36:44, 44:56], numpy.where(own[..., 3:] == 0, 0, own))


def test_sizes_anchors_displacements_and_turns(studio):
    studio.shapes([("POINT(50 40)", {"n": 1})])
    twice = "<se:Size>16</se:Size>"
    anchor = "<se:AnchorPoint><se:AnchorPointX>{}</se:AnchorPointX><se:AnchorPointY>{}</se:AnchorPointY></se:AnchorPoint>"
    moved = "<se:Displacement><se:DisplacementX>5</se:DisplacementX><se:DisplacementY>7</se:DisplacementY></se:Displacement>"
    for more, box in ((twice, (38, 32, 62, 48)), (twice + anchor.format(0, 0), (50, 24, 74, 40)),
                      (twice + anchor.format(1, 1), (26, 40, 50, 56)), (twice + moved, (43, 25, 67, 41))):
        assert box_of(studio.draw(point(picture("icon.png", more)), 100, 80)) == box, more
        marked = mark(size=16, more=more.replace(twice, ""))
        shown = box_of(studio.draw(point(marked), 100, 80))
        assert (shown[1], shown[3]) == (box[1], box[3]) and shown[2] - shown[0] == 16, more
    # A quarter turn clockwise around the lower left corner: what was up and to the right is below and to the right.
    turned = twice + "<se:Rotation>90</se:Rotation>" + anchor.format(0, 0)
    left, top, right, bottom = box_of(studio.draw(point(picture("icon.png", turned)), 100, 80))
    assert abs(left - 50) <= 1 and abs(right - 66) <= 1 and abs(top - 40) <= 1 and abs(bottom - 64) <= 1
    image = studio.draw(point(picture("icon.png", "<se:Opacity>0.5</se:Opacity>")), 100, 80)
    assert tuple(image[42, 50]) in ((0, 120, 199, 128), (0, 120, 201, 128), (0, 120, 200, 128), (0, 119, 199, 128))


def test_an_svg_takes_its_parameters(studio):
    studio.shapes([("POINT(50 40)", {"n": 1})])
    plain = studio.draw(point(picture("pin.svg")), 100, 80)
    assert box_of(plain) == (40, 25, 60, 55)
    assert tuple(plain[40, 50]) == (255, 0, 0, 255) and tuple(plain[40, 41]) == (0, 0, 0, 255)
    assert numpy.array_equal(plain, studio.draw(point(picture("plain.svg")), 100, 80))
    blue = studio.draw(point(picture("pin.svg?fill=%230000ff&amp;outline=%2300ff00&amp;outline-width=4",
                                     "<se:Size>60</se:Size>")), 100, 80)
    assert box_of(blue)[1::2] == (10, 70)
    assert tuple(blue[40, 50]) == (0, 0, 255, 255) and tuple(blue[40, 33]) == (0, 255, 0, 255)
    # The outline is as wide as it is said, however large the drawing: 4 pixels, its middle 2 from the edge.
    assert (blue[40, 30:40, 1] > 200).sum() in (3, 4)


def test_parameters_and_names_come_from_the_data(studio):
    studio.shapes([("POINT(30 40)", {"color": "#00ff00", "icon": "a"}), ("POINT(80 40)", {"color": "#0000ff", "icon": "b"}),
                   ("POINT(130 40)", {"color": '"/><script>', "icon": "../outside"})])
    image = studio.draw(point(picture("pin.svg?fill=${color}")), 160, 80)
    assert [tuple(image[40, x]) for x in (30, 80, 130)] == [(0, 255, 0, 255), (0, 0, 255, 255), (255, 0, 0, 255)]
    image = studio.draw(point(picture("icons/${icon}.png")), 160, 80)
    assert image[42, 30, 3] == 255 and not image[:, 50:, 3].any()  # b is not there; the folder is never left
    image = studio.draw(point(picture("link.png").replace("link.png", "l${icon}.png").replace("l$", "$")), 160, 80)
    assert not image.any()


def test_content_inside_of_the_style(studio):
    studio.shapes([("POINT(50 40)", {"n": 1})])
    data = base64.b64encode((studio.folder / "styles/icon.png").read_bytes()).decode()
    inline = (f'<se:Graphic><se:ExternalGraphic><se:InlineContent encoding="base64">{data}</se:InlineContent>'
              "<se:Format>image/png</se:Format></se:ExternalGraphic></se:Graphic>")
    whole = studio.draw(point(picture("icon.png")), 100, 80)
    assert numpy.array_equal(whole, studio.draw(point(inline), 100, 80))
    assert numpy.array_equal(whole, studio.draw(point(picture("base64:" + data)), 100, 80))
    pin, blue = base64.b64encode((studio.folder / "styles/pin.svg").read_bytes()).decode(), "?fill=%230000ff&amp;outline-width=4"
    assert numpy.array_equal(studio.draw(point(picture("pin.svg" + blue)), 100, 80),
                             studio.draw(point(picture(f"base64:{pin}{blue}")), 100, 80))  # as QGIS exports embedded ones
    assert studio.draw(point(picture("icon.jpg")), 100, 80)[36:44, 44:56, 3].all()


def test_gifs(studio):
    """Plain, woven, with a transparent colour, of several pictures, one that does not fill its screen; broken ones are told."""
    studio.shapes([("POINT(50 40)", {"n": 1})])
    styles, own = studio.folder / "styles", numpy.zeros((24, 31, 3), numpy.uint8)
    own[..., 0], own[..., 1], own[..., 2] = numpy.arange(31) * 8, (numpy.arange(24) * 10)[:, None], 77
    image = Image.fromarray(own).quantize(200)
    wanted = numpy.asarray(image.convert("RGBA"))
    for more in ({"interlace": 0}, {"interlace": 1}, {"save_all": True, "append_images": [image.rotate(90)], "duration": 100}):
        image.save(styles / "icon.gif", **more)
        shown = studio.draw(point(picture("icon.gif")), 100, 80)
        left, top, right, bottom = box_of(shown)
        assert numpy.array_equal(shown[top:bottom, left:right], wanted), more
    index = int(numpy.asarray(image)[0, 0])
    image.save(styles / "icon.gif", transparency=index)
    shown = studio.draw(point(picture("icon.gif")), 100, 80)[top:bottom, left:right]
    assert numpy.array_equal(shown[..., 3] == 0, numpy.asarray(image) == index)
    data = (styles / "icon.gif").read_bytes()
    data = data[:6] + (40).to_bytes(2, "little") + (20).to_bytes(2, "little") + data[10:]
    (styles / "other.gif").write_bytes(data)  # a screen that is wider and less high than its picture
    shown = studio.draw(point(picture("other.gif", "<se:AnchorPoint><se:AnchorPointX>0</se:AnchorPointX><se:AnchorPointY>1"
                                                   "</se:AnchorPointY></se:AnchorPoint>")), 100, 80)
    assert numpy.array_equal(shown[41:60, 51:81], numpy.where((numpy.asarray(image) == index)[..., None], 0, wanted)[1:20, 1:])
    assert not shown[:40].any() and not shown[60:].any()
    (styles / "broken.gif").write_bytes(data[:-200])
    studio.write(point(picture("broken.gif")))
    assert not studio.draw(None, 100, 80).any() and "GIF" in studio.log


def test_a_replaced_file_is_seen(studio):
    studio.shapes([("POINT(50 40)", {"n": 1})])
    path = studio.folder / "styles/changing.png"
    for color in ((255, 0, 0, 255), (0, 255, 0, 255)):
        Image.new("RGBA", (8, 8), color).save(path)
        assert tuple(studio.draw(point(picture("changing.png")), 100, 80)[40, 50]) == color
    studio.write(point(picture("changing.png")))
    path.unlink()
    assert not studio.draw(None, 100, 80).any()  # it is left out, and told
    assert "changing.png" in studio.log


@pytest.mark.parametrize("href, reason", [
    ("http://example.org/a.png", "no file of this machine"), ("../outside.png", "not in the style's folder"),
    ("link.png", "not in the style's folder"), ("/etc/passwd", "no PNG, JPEG, GIF or SVG"), ("nothing.png", "not in the style's folder"),
    ("/nothing/at/all.png", "not there"), ("data:image/png;base64,AAAA", "no file of this machine"),
    ("${strConcat(a,b)}.png", "an expression inside"), ("/srv/${icon}.png", "outside of the style's folder"),
    ("base64:AAAA", "no PNG, JPEG, GIF or SVG")])
def test_files_that_cannot_be_drawn_are_named(studio, href, reason):
    studio.shapes([("POINT(50 40)", {"n": 1})])
    code, said = studio.check(point(picture(href)))
    assert code == 2 and reason in said and "style.sld:1:" in said, said
    # What stands behind it in the graphic is drawn instead.
    mended = point(picture(href, behind="<se:Mark><se:WellKnownName>square</se:WellKnownName></se:Mark>"))
    assert studio.check(mended)[0] == 2
    assert studio.draw(None, 100, 80)[40, 50, 3] == 255


def test_absolute_paths_are_as_configured(studio):
    studio.shapes([("POINT(50 40)", {"n": 1})])
    for prefix in ("", "file://", "file:"):
        assert studio.draw(point(picture(f"{prefix}{studio.folder}/outside.png")), 100, 80)[42, 50, 3] == 255


def test_broken_and_large_files(studio):
    studio.shapes([("POINT(50 40)", {"n": 1}), ("POINT(20 20)", {"n": 2})])
    styles = studio.folder / "styles"
    (styles / "broken.png").write_bytes((styles / "icon.png").read_bytes()[:60])
    (styles / "broken.svg").write_text("<svg><this is not")
    (styles / "bomb.svg").write_text('<!DOCTYPE svg [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">'
                                     '<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]><svg xmlns="http://www.w3.org/2000/svg" '
                                     'width="10" height="10"><text>&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;</text></svg>')
    (styles / "reader.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
                                       f'width="20" height="20"><image width="20" height="20" '
                                       f'xlink:href="file://{studio.folder}/outside.png"/></svg>')
    Image.new("L", (5000, 1)).save(styles / "wide.png")
    for name in ("broken.png", "broken.svg", "wide.png"):
        studio.write(point(picture(name)))
        assert not studio.draw(None, 100, 80).any()
        assert studio.log.count("graphic") + studio.log.count("SVG") + studio.log.count("PNG") >= 1
    begun = time.monotonic()
    studio.draw(point(picture("bomb.svg")), 100, 80)
    assert time.monotonic() - begun < patience(30)
    assert not studio.draw(point(picture("reader.svg")), 100, 80).any()  # an SVG reads nothing but itself
    (styles / "huge.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * (4 << 20))
    assert "4 MB" in studio.check(point(picture("huge.png")))[1]
    assert "4096 pixels" in studio.check(point(picture("wide.png")))[1]


# ---- Marks and where they stand ----

def test_marks_stand_inside(studio):
    inside = point(mark(size=8))
    studio.shapes([("POLYGON((10 10,90 10,90 90,70 90,70 30,30 30,30 90,10 90,10 10))", {"n": 1})])
    left, top, right, bottom = box_of(studio.draw(inside, 100, 100))
    x, y = (left + right) / 2, (top + bottom) / 2
    assert (10 < x < 30 or 70 < x < 90) and 30 < y < 90
    studio.shapes([(SQUARE.format(20, 20, 80, 60), {"n": 1})])
    assert box_of(studio.draw(inside, 100, 100)) == (46, 36, 54, 44)
    studio.shapes([("LINESTRING(10 10,50 10,50 90)", {"n": 1})])  # half way is 20 below the corner
    assert box_of(studio.draw(inside, 100, 100)) == (46, 26, 54, 34)


@pytest.mark.parametrize("name", ["square", "circle"])
def test_marks_that_are_wider_than_high(studio, name):
    """QGIS' ellipses: the size is the width, also where the height is much more of it, beside the map too."""
    studio.shapes([("POINT(50 60)", {"n": 1})])
    for factor, box in ((2, (40, 55, 60, 65)), (0.5, (40, 40, 60, 80)), (0.2, (40, 10, 60, 110))):
        flat = point(mark(name, 20, more=f'<se:VendorOption name="widthHeightFactor">{factor}</se:VendorOption>'))
        assert box_of(studio.draw(flat, 100, 120)) == box, factor
        assert studio.has_seams(flat, 128, 32) is None
    code, said = studio.check(point(mark(more='<se:VendorOption name="widthHeightFactor">-1</se:VendorOption>')))
    assert code == 2 and "widthHeightFactor" in said


@pytest.mark.parametrize("function, places", [("centroid", [(50, 43)]), ("startPoint", [(10, 10)]), ("endPoint", [(50, 90)]),
                                              ("vertices", [(10, 10), (50, 10), (50, 90)]), ("midPoint", [(50, 30)])])
def test_parts_of_a_geometry(studio, function, places):
    studio.shapes([("LINESTRING(10 10,50 10,50 90)", {"n": 1})])
    geometry = f'<se:Geometry><ogc:Function name="{function}"><ogc:PropertyName>g</ogc:PropertyName></ogc:Function></se:Geometry>'
    image = studio.draw(style(rule(f"<se:PointSymbolizer>{geometry}{mark(size=4)}</se:PointSymbolizer>")), 100, 100)
    assert abs(image[..., 3].astype(int).sum() / 255 / 16 - len(places)) < 0.05
    if function != "centroid":
        assert all(image[y, x, 3] == 255 for x, y in places)
    else:  # (30 * 40 + 50 * 80) / 120, (10 * 40 + 50 * 80) / 120
        left, top, right, bottom = box_of(image)
        assert abs((left + right) / 2 - 43.3) < 1 and abs((top + bottom) / 2 - 36.7) < 1


def test_graphics_along_a_line(studio):
    studio.shapes([("LINESTRING(10 50,90 50)", {"n": 1})])
    count = {}
    for name, symbol in (("close", along(mark(size=10))), ("gaps", along(mark(size=10), "<se:Gap>10</se:Gap>")),
                         ("late", along(mark(size=10), "<se:InitialGap>40</se:InitialGap>")),
                         ("middle", along(mark(size=10), before='<se:VendorOption name="placement">centralPoint</se:VendorOption>')),
                         ("ends", along(mark(size=10), before='<se:VendorOption name="placement">points</se:VendorOption>'))):
        image = studio.draw(style(rule(symbol)), 100, 100)
        count[name] = round(image[..., 3].astype(int).sum() / 255 / 100, 2)
    assert count == {"close": 8, "gaps": 4, "late": 4, "middle": 1, "ends": 2}
    dashes = f"<se:LineSymbolizer><se:Stroke><se:GraphicStroke>{mark(size=4)}</se:GraphicStroke>{parameters(stroke_dasharray='4 16')}</se:Stroke></se:LineSymbolizer>"
    image = studio.draw(style(rule(dashes)), 100, 100)
    assert [x for x in range(100) if image[50, x, 3] == 255] == [x + i for x in (10, 30, 50, 70) for i in range(4)]


def test_offsets_of_areas(studio):
    studio.shapes([("POLYGON((20 20,80 20,80 80,20 80,20 20),(40 40,40 60,60 60,60 40,40 40))", {"n": 1})])
    fill = f"<se:Fill>{parameters(fill='#00ff00')}</se:Fill>"
    for offset, outer, inner in ((5, (15, 85), (45, 55)), (-5, (25, 75), (35, 65)), (-30, None, None)):
        image = studio.draw(style(rule(f"<se:PolygonSymbolizer>{fill}<se:PerpendicularOffset>{offset}</se:PerpendicularOffset>"
                                       "</se:PolygonSymbolizer>")), 100, 100)
        columns = [x for x in range(100) if image[50, x, 3] == 255]
        wanted = [] if outer is None else [*range(outer[0], inner[0]), *range(inner[1], outer[1])]
        assert columns == wanted, offset


# ---- Characters of fonts ----

def character(family, code, size, more=""):
    """As QGIS writes a font marker."""
    return (f'<se:Graphic><se:Mark><se:OnlineResource xlink:type="simple" xlink:href="ttf://{family}"/><se:Format>ttf</se:Format>'
            f"<se:MarkIndex>{code}</se:MarkIndex><se:Fill>{parameters(fill='#0000ff')}</se:Fill></se:Mark><se:Size>{size}</se:Size>"
            f"{more}</se:Graphic>")


def test_characters_of_fonts_are_marks(studio):
    """U+25A0 is a square of ink, U+25AC a wide bar, U+25CB a ring: the larger side of the ink is the size."""
    studio.shapes([("POINT(50 40)", {"turn": 90})])
    font = "ttf://DejaVu Sans#0x"
    image = studio.draw(point(mark(font + "25A0", 30)), 100, 80)
    assert box_of(image) == (35, 25, 65, 55) and tuple(image[40, 50]) == (255, 0, 0, 255)
    left, top, right, bottom = box_of(studio.draw(point(mark(font + "25AC", 30)), 100, 80))
    assert (left, right) == (35, 65) and 5 < bottom - top < 20
    by_attribute = "<se:Rotation><ogc:PropertyName>turn</ogc:PropertyName></se:Rotation>"
    for more in ("<se:Rotation>90</se:Rotation>", by_attribute):
        turned = box_of(studio.draw(point(mark(font + "25AC", 30, more=more)), 100, 80))
        assert (turned[1], turned[3]) == (25, 55) and abs((turned[2] - turned[0]) - (bottom - top)) <= 2, more
    ring = studio.draw(point(mark(font + "25CB", 40, stroke="#000000", width=2)), 100, 80)
    assert not ring[40, 50].any()  # its hole
    outer = [x for x in range(100) if ring[40, x, 3] > 0]
    assert outer[0] in (28, 29) and outer[-1] in (70, 71)  # half of the stroke lies outside
    square = studio.draw(point(mark(font + "25A0", 30, stroke="#000000", width=4)), 100, 80)
    assert box_of(square) == (33, 23, 67, 57)
    assert tuple(square[40, 50]) == (255, 0, 0, 255) and tuple(square[40, 35]) == (0, 0, 0, 255)
    # As QGIS writes it, the size is the em: a capital of this font is 0.73 of it high.
    left, top, right, bottom = box_of(studio.draw(point(character("DejaVu Sans", 72, 40)), 100, 80))
    assert bottom - top in (29, 30, 31) and abs((left + right) / 2 - 50) <= 1


def test_a_font_that_is_not_there_is_named(studio):
    studio.shapes([("POINT(50 40)", {"n": 1})])
    code, said = studio.check(point(mark("ttf://No Such Font#0x41", 30)))
    assert code == 2 and "style.sld:" in said and 'no font of the family "No Such Font"' in said, said
    assert not studio.draw(None, 100, 80).any()
    assert "No Such Font" in studio.log
    code, said = studio.check(point(mark("ttf://DejaVu Sans#0x10FFFE", 30)))
    assert "U+10FFFE" in said, said


# ---- Graphics behind labels ----

def shield(graphic, more="", anchor=True, label="ref"):
    place = ("<se:LabelPlacement><se:PointPlacement><se:AnchorPoint><se:AnchorPointX>0.5</se:AnchorPointX><se:AnchorPointY>0.5"
             "</se:AnchorPointY></se:AnchorPoint></se:PointPlacement></se:LabelPlacement>") if anchor else ""
    return style(rule(f"<se:TextSymbolizer><se:Label><ogc:PropertyName>{label}</ogc:PropertyName></se:Label><se:Font>"
                      f"{parameters(font_family='DejaVu Sans', font_size=12)}</se:Font>{place}<se:Fill>{parameters(fill='#ffffff')}"
                      f"</se:Fill>{graphic}{more}</se:TextSymbolizer>"))


def options(**values):
    return "".join(f'<se:VendorOption name="{name.replace("_", "-")}">{value}</se:VendorOption>' for name, value in values.items())


def test_pictures_behind_labels(studio):
    """A picture as it is, and fitted; an SVG is drawn at the size that it has in the end, not blown up."""
    studio.shapes([("POINT(60 40)", {"ref": "A1"}), ("POINT(160 40)", {"ref": "A1 / E35"})])
    image = studio.draw(shield(picture("icon.png")), 240, 80)
    own = numpy.asarray(Image.open(studio.folder / "styles/icon.png"))
    assert tuple(own[6, 2]) == (0, 120, 200, 255) and (image == own[6, 2]).all(axis=2).sum() > 20
    image = studio.draw(shield(picture("pin.svg?fill=%23006000&amp;outline=%23000000&amp;outline-width=2"),
                               options(graphic_resize="stretch", graphic_margin="6 8")), 240, 80)
    one, two = box_of(image[:, :110]), box_of(image[:, 110:])
    assert one[3] - one[1] == two[3] - two[1] and two[2] - two[0] > one[2] - one[0] + 30
    assert abs((one[0] + one[2]) / 2 - 60) <= 1 and abs((one[1] + one[3]) / 2 - 40) <= 1.5
    assert tuple(image[one[1] + 5, 60]) == (0, 96, 0, 255)
    for middle in (60, 160):  # white letters in the middle of each
        letters = (image[:, middle - 40:middle + 40] > 200).all(axis=2)
        rows, columns = numpy.nonzero(letters)
        assert abs((columns.min() + columns.max()) / 2 - 40) <= 2 and abs((rows.min() + rows.max()) / 2 - 40) <= 2
    even = studio.draw(shield(mark("circle", 8, "#a00000"), options(graphic_resize="proportional")), 240, 80)
    one = box_of(even[:, :110])
    assert abs((one[2] - one[0]) - (one[3] - one[1])) <= 1


def test_graphics_behind_labels_come_from_the_data(studio):
    studio.shapes([("POINT(60 40)", {"ref": "1", "icon": "a"}), ("POINT(160 40)", {"ref": "2", "icon": "none"})])
    image = studio.draw(shield(picture("icons/${icon}.png", "<se:Size>24</se:Size>")), 240, 80)
    assert tuple(image[48, 50]) == (0, 120, 200, 255)
    assert not (image[:, 110:] == (0, 120, 200, 255)).all(axis=2).any() and image[:, 110:].any()
    color = f"<se:Fill>{parameters(fill='<ogc:PropertyName>color</ogc:PropertyName>')}</se:Fill>"
    graphic = (f"<se:Graphic><se:Mark><se:WellKnownName>square</se:WellKnownName>{color}</se:Mark><se:Size>30</se:Size></se:Graphic>")
    studio.shapes([("POINT(60 40)", {"ref": "1", "color": "#ff0000"}), ("POINT(160 40)", {"ref": "2", "color": "#0000ff"})])
    image = studio.draw(shield(graphic), 240, 80)
    assert tuple(image[30, 50]) == (255, 0, 0, 255) and tuple(image[30, 150]) == (0, 0, 255, 255)
    computed = graphic.replace(color, f"<se:Fill><se:GraphicFill>{graphic}</se:GraphicFill></se:Fill>")
    code, said = studio.check(shield(computed))
    assert code == 2 and "differs between features" in said, said


# ---- Colours ----

def test_what_lies_over_what(studio):
    """Half opaque marks of a later feature lie over earlier ones; the sums are those of Porter and Duff."""
    studio.shapes([("POINT(40 40)", {"color": "#ff0000"}), ("POINT(50 40)", {"color": "#0000ff"})])
    color = f"<se:Fill><se:SvgParameter name='fill'><ogc:PropertyName>color</ogc:PropertyName></se:SvgParameter></se:Fill>"
    graphic = (f"<se:Graphic><se:Mark><se:WellKnownName>square</se:WellKnownName>{color}</se:Mark><se:Opacity>0.5</se:Opacity>"
               "<se:Size>20</se:Size></se:Graphic>")
    image = studio.draw(point(graphic), 100, 80).astype(int)
    assert abs(image[40, 32] - (255, 0, 0, 128)).max() <= 1 and abs(image[40, 58] - (0, 0, 255, 128)).max() <= 1
    assert abs(image[40, 45] - (85, 0, 170, 191)).max() <= 2


def test_patterns_are_laid_as_colours_are(studio):
    """A pattern of one colour is that colour; where it is half opaque as well; the edges are as smooth."""
    studio.shapes([("POLYGON((10 10,90 20,80 90,15 70,10 10))", {"n": 1})])
    full = pattern(mark("square", 8, "#40c080"))
    plain = f"<se:PolygonSymbolizer><se:Fill>{parameters(fill='#40c080')}</se:Fill></se:PolygonSymbolizer>"
    one, other = (studio.draw(style(rule(symbol + along(mark(size=1)))), 100, 100).astype(int) for symbol in (full, plain))
    assert abs(one - other).max() <= 2
    half = pattern(mark("square", 8, "#40c080", more="<se:Opacity>0.5</se:Opacity>"))
    assert abs(studio.draw(style(rule(half)), 100, 100)[50, 50].astype(int) - (64, 192, 128, 128)).max() <= 1


@pytest.mark.parametrize("name, share", [("horline", 0.25), ("vertline", 0.25), ("line", 0.25), ("cross", 0.4375),
                                         ("shape://plus", 0.4375), ("slash", 0.354), ("shape://backslash", 0.354), ("x", 0.582)])
def test_hatches_cover_their_share(studio, name, share):
    studio.shapes([(SQUARE.format(-10, -10, 300, 300), {"n": 1})])
    image = studio.draw(style(rule(pattern(mark(name, 8, None, "#000000", width=2)))), 160, 160)
    assert abs(image[..., 3].mean() / 255 - share) < 0.01


# ---- Seams ----

TIMES = "<ogc:Mul><ogc:PropertyName>n</ogc:PropertyName><ogc:Literal>{}</ogc:Literal></ogc:Mul>"
CLASSES = ('<ogc:Function name="Categorize"><ogc:PropertyName>n</ogc:PropertyName><ogc:Literal>{}</ogc:Literal><ogc:Literal>9</ogc:Literal>'
           "<ogc:Literal>{}</ogc:Literal></ogc:Function>")
SYMBOLS = {
    "hatch": pattern(mark("horline", 7.3, None, "#204080", width=1.7, more="<se:Rotation>27</se:Rotation>")),
    "slash": pattern(mark("x", 9, None, "#204080", width=1)),
    "marks": pattern(mark("star", 13, "#e0a020", "#000000")),
    "turned": pattern(mark("heart", 11, "#e02040", more="<se:Rotation>33</se:Rotation>"),
                      '<se:VendorOption name="graphic-margin">3 5</se:VendorOption>'),
    "dots": pattern(mark("brush://dense6", 8, "#000000")),
    "picture": pattern(picture("icon.png")),
    "along": along(mark("triangle", 9, "#e02040", "#000000"), "<se:Gap>7</se:Gap>"),
    "pictures along": along(picture("pin.svg", "<se:Size>15</se:Size>"), "<se:Gap>11</se:Gap>"),
    "beside": f"<se:LineSymbolizer><se:Stroke>{parameters(stroke_width=3)}</se:Stroke><se:PerpendicularOffset>6</se:PerpendicularOffset></se:LineSymbolizer>",
    "dashes": f"<se:LineSymbolizer><se:Stroke>{parameters(stroke_width=4, stroke_dasharray='11 5 2 5', stroke_linecap='round')}</se:Stroke></se:LineSymbolizer>",
    "dashes beside": f"<se:LineSymbolizer><se:Stroke>{parameters(stroke_width=3, stroke_dasharray='7.3 4.1', stroke_dashoffset=2)}</se:Stroke><se:PerpendicularOffset>-5</se:PerpendicularOffset></se:LineSymbolizer>",
    "larger": f"<se:PolygonSymbolizer><se:Fill>{parameters(fill='#80c0f0')}</se:Fill><se:PerpendicularOffset>4</se:PerpendicularOffset></se:PolygonSymbolizer>",
    "inside": f"<se:PointSymbolizer>{mark('pentagon', 17, '#e02040', '#000000', '<se:Rotation>11</se:Rotation>')}</se:PointSymbolizer>",
    "characters": f"<se:PointSymbolizer>{mark('ttf://DejaVu Sans#0x2690', 31, '#e02040', '#000000', '<se:Rotation>11</se:Rotation>')}</se:PointSymbolizer>",
    "characters all over": pattern(mark("ttf://DejaVu Sans#0x2663", 12.5, "#208040")),
    "pins": f"<se:PointSymbolizer>{picture('pin.svg', '<se:Size>23</se:Size><se:Rotation>20</se:Rotation>')}</se:PointSymbolizer>",
    "computed width": f"<se:LineSymbolizer><se:Stroke>{parameters(stroke_width=TIMES.format(5))}</se:Stroke></se:LineSymbolizer>",
    "computed place": "<se:PolygonSymbolizer><se:Fill/><se:Displacement><se:DisplacementX>" + TIMES.format(9) + "</se:DisplacementX></se:Displacement></se:PolygonSymbolizer>",
    "classes": f"<se:PointSymbolizer>{mark('square', CLASSES.format(20, 300), '#e02040')}</se:PointSymbolizer>",
    "computed graphic": along(mark("circle", 5, "#e02040", "#000000", width=CLASSES.format(1, 70)), "<se:Gap>40</se:Gap>"),
    "shadow": f"<se:PolygonSymbolizer><se:Fill>{parameters(fill='#404040')}</se:Fill><se:Displacement><se:DisplacementX>5.3</se:DisplacementX><se:DisplacementY>-4.7</se:DisplacementY></se:Displacement></se:PolygonSymbolizer>",
}


@pytest.mark.parametrize("name", SYMBOLS)
def test_tiles_fit_together(studio, name):
    numbers = random.Random(11)
    areas = []
    for _ in range(12):
        x, y, radius = numbers.uniform(0, 512), numbers.uniform(0, 512), numbers.uniform(30, 150)
        corners = [(x + math.cos(i * 0.7) * radius * numbers.uniform(0.5, 1), y + math.sin(i * 0.7) * radius * numbers.uniform(0.5, 1))
                   for i in range(9)]
        areas.append("POLYGON((" + ",".join(f"{a:.3f} {b:.3f}" for a, b in [*corners, corners[0]]) + "))")
    studio.shapes([(area, {"n": i}) for i, area in enumerate(areas)])
    assert studio.has_seams(style(rule(SYMBOLS[name]))) is None
    assert studio.draw(None, 512, 512)[..., 3].any()


# ---- Whole styles ----

def land(studio):
    studio.shapes([(SQUARE.format(10 + 60 * i, 10, 60 + 60 * i, 90), {"kind": kind, "size": size})
                   for i, (kind, size) in enumerate((("wood", 1.0), ("lake", 20.0), ("Lake", 80.0), ("heath", 3.0)))])


def ways(studio):
    studio.shapes([(f"LINESTRING(10 {20 + 30 * i},120 {20 + 30 * i},230 {30 + 30 * i})", {"kind": kind, "size": 6.0, "turn": 90.0})
                   for i, kind in enumerate(("road main", "road", "rail", "river"))])


def places(studio):
    studio.shapes([(f"POINT({40 + 60 * i} 50)", {"size": 30.0 * i, "icon": "icon"}) for i in range(4)])


@pytest.mark.parametrize("name, data", [("qgis_areas", land), ("geoserver_lines", ways), ("geoserver_points", places)])
def test_styles_as_they_are_exported(studio, name, data):
    data(studio)
    image = studio.draw((FIXTURES / f"{name}.sld").read_text(), 256, 140)  # nothing is lacking
    if name == "qgis_areas":
        assert len(numpy.unique(image[12:88, 12:58].reshape(-1, 4), axis=0)) > 5  # hatched
        assert tuple(image[50, 155]) == (227, 26, 28, 255)  # the SVG with its parameters
        assert 0.2 < (image[20:80, 200:240, 3] == 255).mean() < 0.6  # dense
    elif name == "geoserver_lines":
        assert tuple(image[20, 60]) == (255, 208, 64, 255) and tuple(image[50, 60]) == (255, 255, 255, 255)
        assert tuple(image[16, 60]) == (64, 64, 64, 255)
        assert image[76, 20:110, 3].astype(bool).sum() in range(7, 25)  # the ticks of the railway
    else:
        assert image[46, 103, 3] > 200 and image[66, 220, 3] > 100


def test_every_element_is_heeded_or_named(studio):
    """An unknown element put into any place of a style is complained about at its line, or at that of the function or geometry that it stands in."""
    land(studio)
    for name in ("qgis_areas", "geoserver_lines", "geoserver_points"):
        text = (FIXTURES / f"{name}.sld").read_text()
        places = [match.end() for match in re.finditer(r"<(?![?!/])[^>]*[^/]>", text)]
        quiet = []
        for place in places:
            opened = re.search(r"<(?:\w+:)?(\w+)[^>]*>$", text[:place]).group(1)
            if opened in ("Name", "Title", "Description", "IsDefault", "FeatureTypeName", "SemanticTypeIdentifier", "Format"):
                continue  # they say nothing about the picture
            if "fallback" in text[:place].rsplit("<se:Graphic>", 1)[-1] and "</se:Graphic>" in text[place:]:
                continue  # what stands behind a graphic that can be drawn
            code, said = studio.check(text[:place] + "<Novelty/>" + text[place:])
            line = text[:place].count("\n") + 1
            if code == 0 or not any(f"style.sld:{near}:" in said for near in range(line - 3, line + 1)):
                quiet.append((line, opened, said[-300:]))
        assert not quiet, quiet[:5]

"""The font of each character: found however many fonts there are, the same whatever was drawn before, and named."""
import pytest
from conftest import temporary_folder
from fonts import configure, make_font
from studio import Studio, rule, style

COUNT, FIRST = 150, 0x1200  # fonts, and the character of the first one


@pytest.fixture(scope="module")
def studio(build, modules_environment):
    with temporary_folder() as folder:
        fonts = folder / "fonts"
        fonts.mkdir()
        make_font(fonts / "latin.ttf", "Plain Latin", range(0x20, 0x7F))
        for i in range(COUNT):
            make_font(fonts / f"script{i}.ttf", f"Script {i:03}", [FIRST + i * 16])
        environment = {**modules_environment, "FONTCONFIG_FILE": str(configure(folder, [fonts]))}
        yield Studio(folder, build, environment)


def label(text, family="Plain Latin"):
    return style(rule(f"""<se:TextSymbolizer><se:Label>{text}</se:Label><se:Font>
      <se:SvgParameter name="font-family">{family}</se:SvgParameter><se:SvgParameter name="font-size">30</se:SvgParameter></se:Font>
      <se:LabelPlacement><se:PointPlacement><se:AnchorPoint><se:AnchorPointX>0.5</se:AnchorPointX>
        <se:AnchorPointY>0.5</se:AnchorPointY></se:AnchorPoint></se:PointPlacement></se:LabelPlacement></se:TextSymbolizer>"""))


def ink(image):
    return int((image[..., 3] > 127).sum())


@pytest.mark.parametrize("number", [0, 1, 63, 64, 65, 100, COUNT - 1])
def test_a_character_is_drawn_by_the_font_that_has_it(studio, number):
    studio.shapes([("POINT(50 50)", {"n": 1})])
    square = ink(studio.draw(label(f"&#{FIRST + number * 16};"), 100, 100))
    assert square == pytest.approx(24 * 24, abs=40), "a full square, not the small one of what a font lacks"


def test_characters_of_many_fonts_stand_in_one_text(studio):
    studio.shapes([("POINT(300 50)", {"n": 1})])
    text = "".join(f"&#{FIRST + number * 16};" for number in range(0, COUNT, 10))
    assert ink(studio.draw(label(text), 600, 100)) == pytest.approx(COUNT // 10 * 24 * 24, abs=600)


def test_a_character_of_no_font_is_a_box(studio):
    studio.shapes([("POINT(50 50)", {"n": 1})])
    assert 0 < ink(studio.draw(label("&#x4E00;"), 100, 100)) < 100


def test_check_names_the_family_that_is_taken(studio):
    studio.shapes([("POINT(50 50)", {"n": 1})])
    code, said = studio.check(label("A", "Arial"))
    assert code == 2 and 'no font of the family "Arial" can be found' in said and "is taken" in said, said
    assert studio.check(label("A", "Script 149"))[0] == 0

"""Styles of many FeatureTypeStyles, and features in an order of the style's: what lies over what, legends, limits, seams."""
import numpy
import pytest
from conftest import temporary_folder
from studio import Studio, rule, style

MANY = 132


@pytest.fixture(scope="module")
def studio(build, modules_environment):
    with temporary_folder() as folder:
        yield Studio(folder, build, modules_environment)


def ink(number):
    return f"#{number * 37 % 256:02x}{number * 91 % 256:02x}{number * 151 % 256:02x}"


def rgb(number):
    return number * 37 % 256, number * 91 % 256, number * 151 % 256


def equal(number):
    return (f"<ogc:Filter><ogc:PropertyIsEqualTo><ogc:PropertyName>n</ogc:PropertyName><ogc:Literal>{number}</ogc:Literal>"
            "</ogc:PropertyIsEqualTo></ogc:Filter>")


def area(color, more=""):
    return (f'<se:PolygonSymbolizer><se:Fill><se:SvgParameter name="fill">{color}</se:SvgParameter>{more}</se:Fill>'
            "</se:PolygonSymbolizer>")


def line(color, width):
    return (f'<se:LineSymbolizer><se:Stroke><se:SvgParameter name="stroke">{color}</se:SvgParameter>'
            f'<se:SvgParameter name="stroke-width">{width}</se:SvgParameter></se:Stroke></se:LineSymbolizer>')


def one_pass(rules, options=""):
    return f"<se:FeatureTypeStyle>{rules}{options}</se:FeatureTypeStyle>"


def option(name, value):
    return f'<se:VendorOption name="{name}">{value}</se:VendorOption>'


def squares(count):
    """Squares of 40 pixels, each 3 pixels to the right of the one before; the uppermost one comes first in the data."""
    return [(f"POLYGON(({n * 3} 10,{n * 3 + 40} 10,{n * 3 + 40} 50,{n * 3} 50,{n * 3} 10))", {"n": n})
            for n in reversed(range(count))]


@pytest.mark.parametrize("count", [2, 16, 17, 18, MANY, 256])
def test_each_pass_lies_over_the_one_before(studio, count):
    studio.shapes(squares(count))
    text = style("".join(one_pass(rule(area(ink(n)), equal(n))) for n in range(count)))
    image = studio.draw(text, 1024, 60)
    for n in range(count):
        seen = tuple(int(value) for value in image[30, n * 3 + (1 if n < count - 1 else 39)])
        assert seen == (*rgb(n), 255), (n, seen, rgb(n))


def test_translucent_and_mixed_passes_are_the_same_beyond_sixteen(studio):
    """Pairs of passes that paint nothing here, in front of or behind the others, move these over the bound."""
    studio.shapes(squares(20))
    half = '<se:SvgParameter name="fill-opacity">0.5</se:SvgParameter>'
    shown = "".join(one_pass(rule(area(ink(n), half if n % 3 == 0 else ""), equal(n)) + rule(line("#202020", 1 + n % 4), equal(n)))
                    for n in range(8))
    idle = "".join(one_pass(rule(area("#ff00ff"), equal(1000 + n))) for n in range(16))
    first, last = studio.draw(style(shown + idle), 256, 64), studio.draw(style(idle + shown), 256, 64)
    assert (first[..., 3] > 0).mean() > 0.1
    assert abs(first.astype(int) - last.astype(int)).max() <= 3


def test_passes_of_other_scales_take_no_room(studio):
    studio.shapes(squares(3))
    other = "<se:MaxScaleDenominator>1</se:MaxScaleDenominator>"
    text = style("".join(one_pass(f"<se:Rule>{equal(n)}{'' if n < 3 else other}{area(ink(n))}</se:Rule>") for n in range(100)))
    image = studio.draw(text, 128, 60)
    assert tuple(image[30, 40]) == (*rgb(2), 255)


def test_tiles_fit_together(studio):
    studio.shapes([(f"LINESTRING({n * 23 % 512} 0,{n * 71 % 512} 512)", {"n": n}) for n in range(60)])
    text = style("".join(one_pass(rule(line("#303030", 7), equal(n)) + rule(line(ink(n), 4), equal(n))) for n in range(60)))
    assert studio.has_seams(text) is None


def test_a_style_of_too_many_passes_is_an_error(studio):
    studio.shapes(squares(2))
    code, said = studio.check(style("".join(one_pass(rule(area(ink(n)), equal(n))) for n in range(257))))
    assert code == 1 and "257 feature type styles: at most 256" in said, said


def test_many_rules_of_one_title_are_one_row_of_the_legend(studio):
    studio.shapes(squares(2))
    titled = "".join(one_pass(f"<se:Rule><se:Name>road</se:Name>{equal(n)}{line(ink(n), 300 - n)}</se:Rule>") for n in range(256))
    assert studio.check(style(titled))[0] == 0
    legend = studio.legend()
    assert legend.shape[0] < 60
    few = studio.check(style("".join(one_pass(f"<se:Rule><se:Name>road</se:Name>{equal(n)}{line(ink(n), 300 - n)}</se:Rule>")
                                     for n in range(254, 256))))
    assert few[0] == 0 and numpy.array_equal(legend, studio.legend())


# ---- The style's own order ----

CROSSING = [("LINESTRING(0 50,100 50)", {"z": 3, "name": "b"}), ("LINESTRING(50 0,50 100)", {"z": 1, "name": "a"})]


def middle(studio, options, data):
    studio.shapes(data)
    rules = "".join(f"<se:Rule><ogc:Filter><ogc:PropertyIsEqualTo><ogc:PropertyName>name</ogc:PropertyName>"
                    f"<ogc:Literal>{name}</ogc:Literal></ogc:PropertyIsEqualTo></ogc:Filter>{line(color, 10)}</se:Rule>"
                    for name, color in (("a", "#ff0000"), ("b", "#0000ff")))
    return tuple(studio.draw(style(one_pass(rules, options)), 100, 100)[50, 50])


@pytest.mark.parametrize("order, color", [("z", (0, 0, 255, 255)), ("z A", (0, 0, 255, 255)), ("z D", (255, 0, 0, 255)),
                                          ("name", (0, 0, 255, 255)), ("name D,z", (255, 0, 0, 255))])
def test_features_are_sorted(studio, order, color):
    for data in (CROSSING, CROSSING[::-1]):
        assert middle(studio, option("sortBy", order), data) == color


def test_numbers_are_sorted_as_numbers(studio):
    data = [("LINESTRING(0 50,100 50)", {"z": 10, "name": "b"}), ("LINESTRING(50 0,50 100)", {"z": 9, "name": "a"})]
    for both in (data, data[::-1]):
        assert middle(studio, option("sortBy", "z"), both) == (0, 0, 255, 255)


def test_passes_of_a_group_are_sorted_together(studio):
    """Casing and filling of a bridge over casing and filling of the road below."""
    for data in (CROSSING, CROSSING[::-1]):
        studio.shapes(data)
        options = option("sortBy", "z") + option("sortByGroup", "roads")
        image = studio.draw(style(one_pass(rule(line("#ff0000", 20)), options) + one_pass(rule(line("#ffffff", 10)), options)), 100, 100)
        assert tuple(image[50, 50]) == (255, 255, 255, 255)
        assert tuple(image[42, 50]) == (255, 0, 0, 255), "the casing of what is above goes over what is below"
        assert tuple(image[50, 42]) == (255, 255, 255, 255)
        alone = studio.draw(style(one_pass(rule(line("#ff0000", 20)), option("sortBy", "z")) +
                                  one_pass(rule(line("#ffffff", 10)), option("sortBy", "z"))), 100, 100)
        assert tuple(alone[42, 50]) == (255, 255, 255, 255)


def test_an_order_that_cannot_be_read_is_named(studio):
    studio.shapes(CROSSING)
    code, said = studio.check(style(one_pass(rule(line("#ff0000", 2)), option("sortBy", ",z"))))
    assert code in (0, 2)
    code, said = studio.check(style(one_pass(rule(line("#ff0000", 2)), option("sortBy", ",".join("abcdefghij")))))
    assert code == 2 and "sortBy" in said, said

"""Draws the sheet of symbols in docs/pictures: python3 tests/integration/symbols.py build/release docs/pictures/symbols.png"""
import pathlib
import sys
import tempfile

from PIL import Image
from studio import Studio, rule, style

MARKS = ["square", "circle", "triangle", "star", "cross", "x", "rounded_square", "diamond", "shield", "trapezoid", "pentagon",
         "hexagon", "octagon", "heart", "arrow", "half_circle", "third_circle", "asterisk_fill", "star_diamond", "cross2",
         "shape://oarrow", "shape://carrow", "shape://slash", "extshape://triangleemicircle", "ttf://DejaVu Sans#0x2708",
         "ttf://DejaVu Sans#0x2690", "ttf://DejaVu Sans#0x2693", "ttf://DejaVu Sans#0x2605"]
HATCHES = ["horline", "vertline", "slash", "backslash", "cross", "shape://times"]
PATTERNS = ["shape://dot", "circle", "hexagon", "star", "heart", "brush://dense5"]
PIN = ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 30"><path d="M10 29C10 19 1 19 1 10a9 9 0 0 1 18 0c0 9-9 9-9 19Z" '
       'fill="param(fill) #e04030" stroke="param(outline) #602010" stroke-width="param(outline-width) 1"/>'
       '<circle cx="10" cy="10" r="4" fill="#fff"/></svg>')


def equal(number):
    return (f"<ogc:Filter><ogc:PropertyIsEqualTo><ogc:PropertyName>n</ogc:PropertyName><ogc:Literal>{number}</ogc:Literal>"
            "</ogc:PropertyIsEqualTo></ogc:Filter>")


def paint(fill, stroke, width):
    inner = f'<se:Fill><se:SvgParameter name="fill">{fill}</se:SvgParameter></se:Fill>' if fill else ""
    return inner + (f'<se:Stroke><se:SvgParameter name="stroke">{stroke}</se:SvgParameter><se:SvgParameter name="stroke-width">'
                    f"{width}</se:SvgParameter></se:Stroke>" if stroke else "")


def mark(name, size, fill="#f0c060", stroke="#503010", width=1, more=""):
    return (f"<se:Graphic><se:Mark><se:WellKnownName>{name}</se:WellKnownName>{paint(fill, stroke, width)}</se:Mark>"
            f"<se:Size>{size}</se:Size>{more}</se:Graphic>")


def pin(more, query=""):
    return (f'<se:Graphic><se:ExternalGraphic><se:OnlineResource xlink:href="pin.svg{query}"/><se:Format>image/svg+xml</se:Format>'
            f"</se:ExternalGraphic>{more}</se:Graphic>")


def points(studio):
    symbols = [mark(name, 26.5) for name in MARKS]
    symbols += [pin("<se:Size>36</se:Size>"), pin("<se:Size>36</se:Size>", "?fill=%234080e0&amp;outline=%23103060&amp;outline-width=2"),
                pin("<se:Size>36</se:Size><se:Rotation>40</se:Rotation>"), pin("<se:Size>36</se:Size><se:Opacity>0.4</se:Opacity>")]
    studio.shapes([(f"POINT({(i % 16) * 40 + 22.5} {i // 16 * 46 + 23.5})", {"n": i}) for i in range(len(symbols))])
    rules = "".join(rule(f"<se:PointSymbolizer>{symbol}</se:PointSymbolizer>", equal(i)) for i, symbol in enumerate(symbols))
    return studio.draw(style(rules), 644, 92)


def areas(studio):
    symbols = [mark(name, 10, None, "#205080", 2) for name in HATCHES]
    symbols += [mark("horline", 7, None, "#a03020", 2, f"<se:Rotation>{angle}</se:Rotation>") for angle in (20, 70)]
    symbols += [mark(name, 13, None if "dot" in name else "#70b060", "#205020", 4 if "dot" in name else 1) for name in PATTERNS]
    symbols.append(pin("<se:Size>24</se:Size>"))
    symbols.append(mark("triangle", 9, "#70b060", None))
    places = [((i % 8) * 80 + 5, i // 8 * 70 + 5) for i in range(len(symbols))]
    studio.shapes([(f"POLYGON(({x} {y},{x + 72} {y + 4},{x + 66} {y + 60},{x} {y + 54},{x} {y}))", {"n": i})
                   for i, (x, y) in enumerate(places)])
    rules = "".join(rule(f"<se:PolygonSymbolizer><se:Fill><se:GraphicFill>{symbol}</se:GraphicFill></se:Fill>"
                         f"{paint(None, '#404040', 1)}</se:PolygonSymbolizer>", equal(i)) for i, symbol in enumerate(symbols))
    return studio.draw(style(rules), 644, 140)


def lines(studio):
    def along(graphic, more="", before=""):
        return f"<se:LineSymbolizer>{before}<se:Stroke><se:GraphicStroke>{graphic}{more}</se:GraphicStroke></se:Stroke></se:LineSymbolizer>"

    def stroke(parameters):
        inner = "".join(f'<se:SvgParameter name="{name}">{value}</se:SvgParameter>' for name, value in parameters.items())
        return f"<se:LineSymbolizer><se:Stroke>{inner}</se:Stroke></se:LineSymbolizer>"
    thin = stroke({"stroke": "#404040", "stroke-width": 1.5})
    symbols = [thin + along(mark("shape://vertline", 9, None, "#404040", 1)),
               along(mark("triangle", 10, more="<se:Rotation>90</se:Rotation>"), "<se:Gap>8</se:Gap>"),
               thin + along(mark("circle", 8), before='<se:VendorOption name="placement">points</se:VendorOption>'),
               along(pin("<se:Size>18</se:Size>"), "<se:Gap>9</se:Gap>"),
               stroke({"stroke": "#503010", "stroke-width": 11, "stroke-linecap": "round", "stroke-linejoin": "round"}) +
               stroke({"stroke": "#f0d080", "stroke-width": 8, "stroke-linecap": "round", "stroke-linejoin": "round"}),
               stroke({"stroke": "#205080", "stroke-width": 5, "stroke-dasharray": "16 8 2 8", "stroke-linecap": "round"})]
    studio.shapes([(f"LINESTRING({x} 70,{x + 30} 20,{x + 55} 60,{x + 90} 15)", {"n": i})
                   for i, x in enumerate(range(8, 644, 107))])
    return studio.draw(style("".join(rule(symbol, equal(i)) for i, symbol in enumerate(symbols))), 644, 90)


def labels(studio):
    def text(graphic, more="", color="#ffffff", place="PointPlacement"):
        options = "".join(f'<se:VendorOption name="{name}">{value}</se:VendorOption>' for name, value in more.items())
        anchor = ("<se:AnchorPoint><se:AnchorPointX>0.5</se:AnchorPointX><se:AnchorPointY>0.5</se:AnchorPointY></se:AnchorPoint>"
                  if place == "PointPlacement" else "")
        return ("<se:TextSymbolizer><se:Label><ogc:PropertyName>ref</ogc:PropertyName></se:Label><se:Font><se:SvgParameter "
                'name="font-family">DejaVu Sans</se:SvgParameter><se:SvgParameter name="font-size">12</se:SvgParameter><se:SvgParameter '
                f'name="font-weight">bold</se:SvgParameter></se:Font><se:LabelPlacement><se:{place}>{anchor}</se:{place}>'
                f'</se:LabelPlacement><se:Fill><se:SvgParameter name="fill">{color}</se:SvgParameter></se:Fill>{graphic}{options}'
                "</se:TextSymbolizer>")
    stretched = {"graphic-resize": "stretch", "graphic-margin": "2 5"}
    road = ('<se:LineSymbolizer><se:Stroke><se:SvgParameter name="stroke">#b0b0b0</se:SvgParameter><se:SvgParameter name="stroke-width">'
            "6</se:SvgParameter></se:Stroke></se:LineSymbolizer>")
    symbols = [("A1", text(mark("square", 9, "#1050a0", "#ffffff", 1), stretched)),
               ("E 35", text(mark("rounded_square", 9, "#207040", "#104020", 1), stretched)),
               ("66", text(mark("shield", 9, "#ffffff", "#202020", 2), {"graphic-resize": "proportional", "graphic-margin": "1 4 6 4"},
                           "#202020")),
               ("N 205", text(mark("square", 9, "#e0c020", "#202020", 1), stretched, "#202020", "LinePlacement")),
               ("7", text(pin("<se:Size>34</se:Size><se:Displacement><se:DisplacementX>0</se:DisplacementX><se:DisplacementY>-5"
                              "</se:DisplacementY></se:Displacement>", "?fill=%234080e0&amp;outline=%23103060"), {}, "#000000")),
               ("12", text(mark("circle", 26, "#c02030", "#ffffff", 2), {}))]
    studio.shapes([(f"LINESTRING({x} 62,{x + 35} 34,{x + 62} 34,{x + 98} 8)", {"n": i, "ref": ref})
                   for i, (x, (ref, _)) in enumerate(zip(range(8, 644, 107), symbols))])
    return studio.draw(style("".join(rule(road + symbol, equal(i)) for i, (_, symbol) in enumerate(symbols))), 644, 72)


def main():
    build, target = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        studio = Studio(folder, build, {"MAPCACHE_MODULES": str(build / "modules"), "LD_LIBRARY_PATH": str(build / "lib")})
        (folder / "styles/pin.svg").write_text(PIN)
        parts = [Image.fromarray(part(studio)) for part in (points, areas, lines, labels)]
    sheet = Image.new("RGBA", (parts[0].width, sum(part.height for part in parts)), "white")
    top = 0
    for part in parts:
        sheet.alpha_composite(part, (0, top))
        top += part.height
    sheet.convert("RGB").quantize(128).save(target, optimize=True)


if __name__ == "__main__":
    main()

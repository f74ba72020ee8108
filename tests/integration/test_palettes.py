"""Palettes as styles: the same stored tiles in other colours, by every protocol; what is no palette PNG is never shown in
wrong colours."""

import json
import sqlite3
import struct
import subprocess
import xml.etree.ElementTree as ElementTree
import zlib
from urllib.parse import quote

import numpy
import pytest
from browser import Browser
from conftest import GRID, ROOT, fetch, png
from drop_in import pixels
from osgeo import gdal, osr
from schemas import WMS_130, WMTS, validator

EDGE = 20037508.342789248
STORED = [(0, 0, 0, 0), (10, 20, 30, 255), (40, 50, 60, 255), (70, 80, 90, 255)]
HOT = [(0, 0, 0, 0), (255, 0, 0, 255), (255, 128, 0, 255), (255, 255, 0, 128)]
COLD = [(0, 0, 0, 0), (0, 0, 255, 255), (0, 128, 255, 255), (0, 255, 255, 255)]


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def chunks(body):
    found, at = [], 8
    while at < len(body):
        size = struct.unpack(">I", body[at:at + 4])[0]
        kind, content = body[at + 4:at + 8], body[at + 8:at + 8 + size]
        assert struct.unpack(">I", body[at + 8 + size:at + 12 + size])[0] == zlib.crc32(kind + content)
        found.append((kind, content))
        at += 12 + size
    return found


def number_at(x, y):
    return (x // 64 + y // 64) % 4


def palette_png(colours, numbers=number_at, size=256, order=None):
    """order: the place of each number in the palette, as an encoder may choose it."""
    order = order or list(range(len(colours)))
    placed = [colours[order.index(place)] for place in range(len(colours))]
    rows = b"".join(b"\0" + bytes(order[numbers(x, y)] for x in range(size)) for y in range(size))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 3, 0, 0, 0))
            + chunk(b"PLTE", b"".join(bytes(colour[:3]) for colour in placed))
            + chunk(b"tRNS", bytes(colour[3] for colour in placed)) + chunk(b"tEXt", b"Comment\0kept")
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def table(colours, labels=None):
    return "\n".join(" ".join(map(str, (number, *colour))) + (f" {labels[number]}" if labels else "")
                     for number, colour in enumerate(colours))


def store(path, tiles):
    database = sqlite3.connect(path)
    database.execute("create table tiles(tileset text, grid text, x integer, y integer, z integer, data blob, dim text,"
                     " ctime datetime, primary key(tileset, grid, x, y, z, dim))")
    for name, data in tiles.items():
        for z in range(2):
            for x in range(2**z):
                for y in range(2**z):
                    database.execute("insert into tiles values(?, ?, ?, ?, ?, ?, '', '2020-01-02 03:04:05')",
                                     (name, GRID, x, y, z, data))
    database.commit()
    database.close()


def make_raster(path):
    raster = gdal.GetDriverByName("GTiff").Create(str(path), 512, 512, 1, gdal.GDT_Byte)
    raster.SetGeoTransform((-EDGE, 2 * EDGE / 512, 0, EDGE, 0, -2 * EDGE / 512))
    srs = osr.SpatialReference()
    srs.ImportFromEPSG(3857)
    raster.SetProjection(srs.ExportToWkt())
    colours = gdal.ColorTable()
    for number, colour in enumerate(STORED):
        colours.SetColorEntry(number, colour)
    band = raster.GetRasterBand(1)
    band.SetColorTable(colours)
    band.SetNoDataValue(0)
    band.WriteArray(numpy.fromfunction(lambda y, x: (x // 128 + y // 128) % 4, (512, 512)).astype(numpy.uint8))
    raster.FlushCache()


COLORMAP = """<ColorMaps><ColorMap title="x"><Entries>
  <ColorMapEntry rgb="0,0,0" transparent="true" label="none"/>
  <ColorMapEntry rgb="0,0,255" transparent="false" label="deep &amp; cold"/>
  <ColorMapEntry rgb="0,128,255" transparent="false"/><ColorMapEntry rgb="0,255,255" transparent="false"/>
</Entries></ColorMap></ColorMaps>"""


def tileset(name, more, source="", format="<format>PNG8</format>", cache="cache"):
    return (f'<tileset name="{name}">{source}<cache>{cache}</cache><grid>{GRID}</grid>{format}{more}'
            "<expires>3600</expires></tileset>")


def palettes(own=True, styles=("hot", "cold")):
    known = {"hot": f'<palette name="hot" title="Hot">\n{table(HOT, ["none", "low", "mid", "high"])}\n</palette>',
             "cold": '<palette name="cold" file="cold.xml"/>'}
    stored = f'<palette name="default" title="As stored">{table(STORED)}</palette>' if own else ""
    return stored + "".join(known[style] for style in styles)


@pytest.fixture(scope="module")
def folder(shared_folder):
    return shared_folder


@pytest.fixture(scope="module")
def web(shared_apache, folder):
    (folder / "cold.xml").write_text(COLORMAP)
    make_raster(folder / "classes.tif")
    store(folder / "tiles.sqlite3", {
        "numbers": palette_png(STORED), "shuffled": palette_png(STORED, order=[3, 1, 0, 2]),
        "many": palette_png(STORED + [(1, 1, 1, 255)] * 2), "truecolour": png(256, 256, lambda x, y: (x, y, 9)),
        "others": palette_png([(9, 9, 9, 255)] * 4), "broken": palette_png(STORED)[:60], "plain": palette_png(STORED)})
    config = folder / "mapcache.xml"
    config.write_text(f"""<mapcache>
  <source name="classes" type="gdal"><data>{folder}/classes.tif</data><resample>nearest</resample></source>
  <cache name="cache" type="sqlite3"><dbfile>{folder}/tiles.sqlite3</dbfile></cache>
  <cache name="fresh" type="disk"><base>{folder}/fresh</base></cache>
  <format name="PNG8" type="PNG"><colors>256</colors></format>
  {tileset("numbers", palettes(own=False))}
  {tileset("shuffled", palettes())}
  {tileset("many", palettes(own=False))}
  {tileset("truecolour", palettes(own=False), format="")}
  {tileset("others", palettes())}
  {tileset("broken", palettes(own=False))}
  {tileset("plain", "")}
  {tileset("drawn", palettes(), source="<source>classes</source>", cache="fresh")}
  <service type="wmts" enabled="true"/><service type="tms" enabled="true"/><service type="gmaps" enabled="true"/>
  <service type="wms" enabled="true"><full_wms>assemble</full_wms><resample_mode>nearest</resample_mode>
    <format>PNG</format></service>
  <service type="demo" enabled="true"/>
  <lock_dir>{folder}</lock_dir>
</mapcache>
""")
    (folder / "strict.xml").write_text(config.read_text().replace(
        '"wmts" enabled="true"/>', '"wmts" enabled="true"><strict>true</strict></service>').replace("<full_wms>", "<strict>true</strict><full_wms>"))
    (folder / "forward.xml").write_text(config.read_text().replace("full_wms>assemble", "full_wms>forward"))
    folder.chmod(0o777)
    return shared_apache("palettes", "".join(f"MapCacheAlias /{name} {folder}/{file}.xml\n" for name, file in
                                 {"mc": "mapcache", "strict": "strict", "forward": "forward"}.items()),
                         environment={"MAPCACHE_ASSETS": str(ROOT / "build/assets")})


def rest(layer, style, tile="0/0/0"):
    return f"/mc/wmts/1.0.0/{layer}/{quote(style, safe='')}/{GRID}/{tile}.png"


def kvp(layer, style, alias="mc"):
    return (f"/{alias}/wmts?SERVICE=WMTS&REQUEST=GetTile&VERSION=1.0.0&LAYER={layer}&STYLE={style}&FORMAT=image/png"
            f"&TILEMATRIXSET={GRID}&TILEMATRIX=0&TILEROW=0&TILECOL=0")


def wms(layer, style, size=256, alias="mc", box=(-EDGE, -EDGE, EDGE, EDGE)):
    return (f"/{alias}?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS={layer}&STYLES={style}&SRS=EPSG:3857"
            f"&BBOX={','.join(map(str, box))}&WIDTH={size}&HEIGHT={size}&FORMAT=image/png&TRANSPARENT=TRUE")


def colours_of(reply, size=256):
    """The colours in the middle of the 16 squares of a picture, by their numbers."""
    assert reply.status == 200, (reply.status, reply.body[:300])
    found, step = {}, size // 4
    for y in range(4):
        for x in range(4):
            found.setdefault((x + y) % 4, set()).add(
                tuple(int(value) for value in pixels(reply.body)[y * step + step // 2, x * step + step // 2]))
    assert all(len(colours) == 1 for colours in found.values()), found
    return [found[number].pop() for number in range(4)]


@pytest.mark.parametrize("layer", ["numbers", "shuffled"])
@pytest.mark.parametrize("style, wanted", [("hot", HOT), ("cold", COLD), ("default", STORED)])
def test_every_protocol_has_the_style(web, layer, style, wanted):
    for path in (rest(layer, style), kvp(layer, style), kvp(layer, style, "strict"), wms(layer, style),
                 f"/mc/tms/1.0.0/{layer}[style={style}]@{GRID}/0/0/0.png",
                 f"/mc/gmaps/{layer}@{GRID}%5Bstyle={style}%5D/0/0/0.png"):
        reply = web.get(path)
        assert colours_of(reply) == wanted, path
        assert reply.headers["Content-Type"] == "image/png"


@pytest.mark.parametrize("alias", ["mc", "strict", "forward"])
def test_whole_maps_have_the_style(web, alias):
    layer = "drawn" if alias == "forward" else "shuffled"
    for style, wanted in (("hot", HOT), ("cold", COLD), ("", STORED)):
        reply = web.get(wms(layer, style, 512 if layer == "shuffled" else 640, alias))
        assert reply.status == 200, reply.body[:300]
        found = {tuple(int(value) for value in colour) for colour in pixels(reply.body)[8::32, 8::32].reshape(-1, 4)}
        # half transparent colours are premultiplied once on the way
        assert len(found) == 4 and all(any(max(abs(a - b) for a, b in zip(colour, known)) <= 1 for known in wanted)
                                       for colour in found), (style, found)


def test_only_the_palette_differs(web):
    stored, styled = (chunks(web.get(rest("numbers", style)).body) for style in ("default", "hot"))
    assert [kind for kind, _ in stored] == [kind for kind, _ in styled]
    for (kind, before), (_, after) in zip(stored, styled):
        assert (before == after) == (kind not in (b"PLTE", b"tRNS")), kind
    assert dict(styled)[b"PLTE"] == b"".join(bytes(colour[:3]) for colour in HOT)
    assert dict(styled)[b"tRNS"] == bytes(colour[3] for colour in HOT)
    # alphas go up to the last one that is not opaque
    assert dict(chunks(web.get(rest("numbers", "cold")).body))[b"tRNS"] == b"\0"


def test_validators_differ_by_style(web):
    replies = {style: web.get(rest("numbers", style)) for style in ("default", "hot", "cold")}
    tags = {style: reply.headers["ETag"] for style, reply in replies.items()}
    assert len(set(tags.values())) == 3
    for style, reply in replies.items():
        assert reply.headers["Cache-Control"] == replies["default"].headers["Cache-Control"]
        assert reply.headers["Last-Modified"] == replies["default"].headers["Last-Modified"]
        for other, tag in tags.items():
            again = web.get(rest("numbers", style), headers={"If-None-Match": tag})
            assert again.status == (304 if other == style else 200)
    maps = {style: web.get(wms("numbers", style, 300)).headers["ETag"] for style in ("", "hot", "cold")}
    assert len(set(maps.values())) == 3


def test_tiles_are_stored_once(web, folder):
    for style, wanted in (("hot", HOT), ("default", STORED), ("cold", COLD)):
        assert colours_of(web.get(rest("drawn", style)), 256) == wanted
    files = [path for path in (folder / "fresh").rglob("*.png")]
    assert len([path for path in files if path.match("*/00/000/000/000/000/000/000.png")]) == 1
    assert not [path for path in files if "hot" in str(path) or "cold" in str(path)]


WHY = {"truecolour": "a PNG without a palette", "others": 'its colour 9,9,9,255 is not one of the palette "default"',
       "broken": "the PNG ends before its image data", "many": 'style "hot" has no colour for number 4'}


@pytest.mark.parametrize("layer", WHY)
def test_never_a_wrong_picture(web, layer):
    for path in (rest(layer, "hot"), kvp(layer, "hot"), wms(layer, "hot"), wms(layer, "hot", 300)):
        reply = web.get(path)
        assert reply.status == 500 and layer.encode() in reply.body and b"hot" in reply.body, (path, reply.body)
    if layer != "broken":
        assert web.get(rest(layer, "default")).status == 200
    told = [line for line in web.log().splitlines() if f'tileset "{layer}"' in line]
    assert told and all(WHY[layer] in line for line in told), told


def test_unknown_styles(web):
    assert web.get(rest("numbers", "warm")).status == 404
    reply = web.get(kvp("numbers", "warm"))
    assert reply.status == 400 and b'"InvalidParameterValue"' in reply.body and b'locator="style"' in reply.body
    for path in (wms("numbers", "warm"), wms("numbers,plain", "warm,"), wms("numbers", "warm", 300),
                 wms("numbers", "warm", alias="strict"), wms("numbers", "warm", alias="forward")):
        reply = web.get(path)
        assert b'code="StyleNotDefined"' in reply.body and reply.status == 404, path
    assert web.get(f"/mc/tms/1.0.0/numbers[style=warm]@{GRID}/0/0/0.png").status == 400
    assert web.get(f"/mc/tms/1.0.0/plain[style=hot]@{GRID}/0/0/0.png").status == 400
    # a layer without palettes reads no style unless the service is strict, as in MapCache
    assert web.get(wms("plain", "warm")).status == 200 and web.get(wms("plain", "warm", alias="strict")).status == 404
    for style in ("hot%00", "%ff%fe", "h" * 5000, "../hot", "warm,hot", "%3Cscript%3E"):
        reply = web.get(wms("numbers", style))
        assert reply.status in (400, 404, 414) and b"<script>" not in reply.body, style


def test_layers_have_styles_of_their_own(web):
    reply = web.get(wms("numbers,shuffled", "hot,cold", 300))
    found = {tuple(int(value) for value in colour) for colour in pixels(reply.body)[8::16, 8::16].reshape(-1, 4)}
    assert reply.status == 200 and (0, 0, 255, 255) in found and (255, 0, 0, 255) not in found
    found = pixels(web.get(wms("shuffled,numbers", "cold,hot", 300)).body).reshape(-1, 4)
    assert (found == (255, 0, 0, 255)).all(axis=1).any()


def test_capabilities_name_styles_and_legends(web):
    body = web.get("/mc/wmts/1.0.0/WMTSCapabilities.xml").body
    root = ElementTree.fromstring(body)
    name = {"w": "http://www.opengis.net/wmts/1.0", "o": "http://www.opengis.net/ows/1.1"}
    layers = {layer.find("o:Identifier", name).text: layer for layer in root.iterfind(".//w:Layer", name)}
    styles = layers["shuffled"].findall("w:Style", name)
    assert [style.find("o:Identifier", name).text for style in styles] == ["default", "hot", "cold"]
    assert [style.find("o:Title", name).text for style in styles] == ["As stored", "Hot", "cold"]
    assert [style.get("isDefault") for style in styles] == ["true", None, None]
    for style in styles:
        legend = style.find("w:LegendURL", name)
        href = legend.get("{http://www.w3.org/1999/xlink}href")
        reply = fetch(web.port, href[href.index("/mc"):])
        assert reply.status == 200 and reply.headers["Content-Type"] == "image/png"
        assert pixels(reply.body).shape[:2] == (int(legend.get("height")), int(legend.get("width")))
    template = layers["shuffled"].find("w:ResourceURL", name).get("template")
    assert "/shuffled/{Style}/{TileMatrixSet}/" in template
    assert "/plain/default/" in layers["plain"].find("w:ResourceURL", name).get("template")
    assert layers["numbers"].find("w:Style", name).find("w:LegendURL", name) is None

    root = ElementTree.fromstring(web.get("/mc?SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.3.0").body)
    name = {"w": "http://www.opengis.net/wms"}
    layers = {layer.find("w:Name", name).text: layer for layer in root.iterfind(".//w:Layer/w:Layer", name)}
    assert [style.find("w:Name", name).text for style in layers["numbers"].findall("w:Style", name)] == \
        ["default", "hot", "cold"]
    assert layers["plain"].find("w:Style", name) is None


def test_capabilities_are_valid(web, folder):
    validate = validator(folder)
    validate(web.get("/mc/wmts/1.0.0/WMTSCapabilities.xml").body, WMTS)
    for version, schema in (("1.3.0", WMS_130), ("1.1.1", None)):
        validate(web.get(f"/mc?SERVICE=WMS&REQUEST=GetCapabilities&VERSION={version}").body, schema)


def test_legends(web):
    path = "/mc?SERVICE=WMS&VERSION=1.3.0&REQUEST=GetLegendGraphic&FORMAT=image/png&LAYER="
    def seen(query):
        reply = web.get(path + query)
        assert reply.status == 200, reply.body
        return {tuple(int(value) for value in colour) for colour in pixels(reply.body).reshape(-1, 4)}
    assert {(255, 0, 0, 255), (255, 128, 0, 255)} <= seen("shuffled&STYLE=hot")
    assert {STORED[1], STORED[3]} <= seen("shuffled&STYLE=default")
    assert (0, 0, 255, 255) in seen("shuffled&STYLE=cold&RULE=1") and (0, 128, 255, 255) not in seen("shuffled&STYLE=cold&RULE=1")
    assert b"StyleNotDefined" in web.get(path + "shuffled&STYLE=warm").body
    assert web.get(path + "numbers").status == 501 and web.get(path + "plain&STYLE=hot").status == 501


def test_tilejson_and_pages_know_the_styles(web):
    document = json.loads(web.get("/mc/gmaps/numbers.json").body)
    assert [style["name"] for style in document["styles"]] == ["hot", "cold"]
    own = json.loads(fetch(web.port, document["styles"][0]["tilejson"][len(f"http://127.0.0.1:{web.port}"):]).body)
    assert "styles" not in own and own == json.loads(web.get("/mc/gmaps/numbers[style=hot].json").body)
    address = own["tiles"][0].replace("{z}/{x}/{y}", "0/0/0")
    assert colours_of(fetch(web.port, address[address.index("/mc"):])) == HOT
    layers = {layer["name"]: layer for layer in json.loads(web.get("/mc/demo/layers.json").body)["layers"]}
    assert layers["shuffled"]["styles"] == [{"name": "default", "title": "As stored"}, {"name": "hot", "title": "Hot"},
                                            {"name": "cold", "title": "cold"}]
    assert "styles" not in layers["plain"]


@pytest.mark.parametrize("by", ["gmaps", "wmts", "wms", "map"])
def test_the_map_page_shows_a_style(web, by):
    with Browser(1000, 700) as browser:
        browser.open(f"http://127.0.0.1:{web.port}/mc/demo/map#layer=shuffled&engine=ol&by={by}")
        browser.settled("shuffled")
        browser.script("const f = document.querySelector('[data-dimension=style] select'); f.value = 'hot';"
                       "f.dispatchEvent(new Event('change'))")

        def shows(colour):
            return (pixels(browser.screenshot())[..., :3] == colour[:3]).all(axis=2).sum() > 1000

        browser.settled("hot", until=lambda: shows(HOT[1]))
        assert not shows(STORED[1]) and "style=hot" in browser.script("return location.hash")
        assert browser.console() == []
        legend = browser.script("return document.querySelector('#legend img').src")
        assert legend.endswith("&LAYER=shuffled&STYLE=hot")


def check(build, folder, elements, format="<format>PNG</format>", more=""):
    config = folder / "checked.xml"
    config.write_text(f"""<mapcache>
  <cache name="c" type="disk"><base>{folder}/c</base></cache>
  <tileset name="t"><cache>c</cache><grid>{GRID}</grid>{format}{more}
{elements}
  </tileset>
  <service type="wmts" enabled="true"/>
</mapcache>
""")
    result = subprocess.run([build / "bin/mapcache", "check", config], capture_output=True, text=True)
    return result.returncode, result.stdout + result.stderr


@pytest.mark.parametrize("elements, line, words", [
    ('<palette name="a">0 0 0 0\n1 2 3</palette>', 5, "a line is: number red green blue"),
    ('<palette name="a">0 0 0 0\n\n# more\n1 2 3 256</palette>', 7, "whole numbers from 0 to 255"),
    ('<palette name="a">256 0 0 0</palette>', 4, "a number from 0 to 255"),
    ('<palette name="a">-1 0 0 0</palette>', 4, "a number from 0 to 255"),
    ('<palette name="a">1 0 0 0\n1 0 0 0</palette>', 5, "has a line already"),
    ('<palette name="a">default 0 0 0\ndefault 0 0 0\n1 0 0 0</palette>', 5, "default already"),
    ('<palette name="a">default 0 0 0</palette>', 4, "there is no colour"),
    ('<palette name="a"/>', 4, "neither a file nor colours"),
    ('<palette name="a" file="nosuch.txt"/>', 4, "cannot read"),
    ('<palette name="a" file="/dev/zero"/>', 4, "cannot read"),
    ('<palette>0 0 0 0</palette>', 4, "name"),
    ('<palette name="a,b">0 0 0 0</palette>', 4, "none of"),
    ('<palette name="a">0 0 0 0</palette>\n<palette name="a">0 0 0 0</palette>', 5, "two palettes"),
    ('<palette name="a" file="broken.xml"/>', 2, "red,green,blue"),
    ('<palette name="a" file="open.xml"/>', 4, "open.xml"),
])
def test_check_names_the_line(build, folder, elements, line, words):
    (folder / "broken.xml").write_text('<ColorMap>\n<ColorMapEntry rgb="1,2"/></ColorMap>')
    (folder / "open.xml").write_text("<ColorMap>")
    status, told = check(build, folder, elements)
    assert status == 1 and words in told and f".xml:{line}:" in told, told


def test_check_knows_what_cannot_be(build, folder):
    own = '<palette name="a">0 0 0 0</palette>'
    assert check(build, folder, own)[0] == 0
    status, told = check(build, folder, own, "<format>JPEG</format>")
    assert status == 1 and "a <format> that is not PNG" in told
    stack = ('<dimensions><assembly_type>stack</assembly_type><dimension name="d" type="values" default="1"><value>1'
             "</value></dimension></dimensions>")
    status, told = check(build, folder, own, more=stack)
    assert status == 1 and "<assembly_type>" in told
    status, told = check(build, folder, '<palette name="default">0 1 1 1\n1 2 2 2</palette>' + own)
    assert status == 2 and "has no colour for number 1" in told

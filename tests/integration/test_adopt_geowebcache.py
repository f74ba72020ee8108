"""`mapcache adopt geowebcache.xml`: configurations of many shapes, GeoServer's folders, and tiles where GeoWebCache's documentation says that they lie."""
import math
from xml.etree import ElementTree

import pytest
from adopting import CONFIGURATIONS, adopt, adopted, compare_notes, requests
from conftest import png

FILES = sorted((CONFIGURATIONS / "geowebcache").glob("*.xml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_configurations(file, folder):
    """Each is written, is clean for `mapcache check`, and what is not taken over is named with its line."""
    _, notes = adopted(folder, file)
    compare_notes(notes, file)


def test_there_are_ten():
    assert len(FILES) >= 10


def place(z, x, y):
    """Of the default layout: squares of 2^(z/2 + 1) tiles a side, numbers filled up to the digits of that side."""
    side = 2 << z // 2
    digits = 1 if side <= 10 else int(math.log10(side)) + 1
    return f"{x // side:0{digits}}_{y // side:0{digits}}/{x:0{2 * digits}}_{y:0{2 * digits}}"


LAYER = """<wmsLayer><name>topp:states</name><mimeFormats><string>image/{form}</string></mimeFormats><gridSubsets><gridSubset><gridSetName>EPSG:900913</gridSetName></gridSubset>
<gridSubset><gridSetName>EPSG:4326</gridSetName></gridSubset></gridSubsets></wmsLayer>"""


@pytest.mark.parametrize("kind", ["DEFAULT", "TMS", "SLIPPY"])
def test_stored_tiles(folder, kind):
    """In both grid sets, at levels whose squares have one, two and three digits; rows count from the south."""
    tiles = {}
    for number, (z, x, y) in enumerate([(0, 0, 0), (1, 1, 0), (5, 30, 3), (9, 511, 7), (12, 4000, 100), (14, 16383, 16000)]):
        for grid in ("EPSG:900913", "EPSG:4326"):
            rows = 2 ** z
            colour = (number * 10, 5 if grid == "EPSG:4326" else 200, 100)
            tiles[grid, z, x, y] = png(256, 256, lambda *_, colour=colour: colour)
            name = grid.replace(":", "_")
            where = {"DEFAULT": f"{name}_{z:02}/{place(z, x, y)}", "TMS": f"{name}/{z}/{x}/{y}", "SLIPPY": f"{name}/{z}/{x}/{rows - 1 - y}"}[kind]
            path = folder / "tiles" / "topp_states" / f"{where}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(tiles[grid, z, x, y])
    file = folder / "geowebcache.xml"
    file.write_text(f"<gwcConfiguration><blobStores><FileBlobStore><id>x</id><baseDirectory>{folder}/tiles</baseDirectory><pathGeneratorType>{kind}</pathGeneratorType></FileBlobStore></blobStores>"
                    f"<layers>{LAYER.format(form='png')}</layers></gwcConfiguration>")
    config, notes = adopted(folder, file)
    assert len(notes) == 1 and "no WMS is named" in notes[0]["text"]
    paths = [f"/wmts/1.0.0/topp:states/default/{grid}/{z}/{2 ** z - 1 - y}/{x}.png" for grid, z, x, y in tiles]
    assert [(status, body) for status, _, body in requests(config, paths)] == [(200, data) for data in tiles.values()]


def test_grid_sets_that_are_there(folder):
    config, _ = adopted(folder, CONFIGURATIONS / "geowebcache" / "minimal.xml")
    grids = {grid.get("name"): grid for grid in ElementTree.parse(config).getroot().findall("grid")}
    numbers = {name: [float(number) for number in grid.find("resolutions").text.split()] for name, grid in grids.items()}
    assert numbers["EPSG:4326"][:2] == [0.703125, 0.3515625] and len(numbers["EPSG:4326"]) == 22
    assert numbers["EPSG:900913"][0] == 156543.03390625 and len(numbers["EPSG:900913"]) == 31


def test_folder_of_geoserver(folder):
    """A file for each layer; a broken one, and a missing geowebcache.xml, leave the others."""
    layers = folder / "data" / "gwc-layers"
    layers.mkdir(parents=True)
    (folder / "data" / "gwc").mkdir()
    for number in range(3):
        (layers / f"LayerInfoImpl--{number}.xml").write_text(f"<GeoServerTileLayer><id>x</id><enabled>true</enabled><name>ws:layer{number}</name><mimeFormats><string>image/jpeg</string></mimeFormats>"
                                                              "<gridSubsets><gridSubset><gridSetName>EPSG:900913</gridSetName></gridSubset></gridSubsets><metaWidthHeight><int>4</int><int>4</int></metaWidthHeight>"
                                                              "<expireCache>0</expireCache><expireClients>0</expireClients><gutter>0</gutter></GeoServerTileLayer>")
    (layers / "broken.xml").write_text("<GeoServerTileLayer><name>")
    tile = folder / "data" / "gwc" / "ws_layer1" / "EPSG_900913_00" / "0_0" / "00_00.jpeg"
    tile.parent.mkdir(parents=True)
    from PIL import Image
    Image.new("RGB", (256, 256), (1, 2, 3)).save(tile)
    for named in (folder / "data" / "gwc", folder / "data"):
        config, notes = adopted(folder, named)
        assert len(ElementTree.parse(config).getroot().findall("tileset")) == 3
        assert sorted("broken.xml" in note["file"] for note in notes)[-1] and any(note["file"].endswith("geowebcache.xml") for note in notes)
        assert [answer[0] for answer in requests(config, ["/wmts/1.0.0/ws:layer1/default/EPSG:900913/0/0/0.jpg"])] == [200]


BAD = {"other": (b"<a/>", "no <gwcConfiguration>"), "broken": (b"<gwcConfiguration>\n<layers>", ":2:"), "empty": (b"<gwcConfiguration/>", "no layer of it"),
       "many": (b"<gwcConfiguration>" + b"<a/>" * 100001 + b"</gwcConfiguration>", "too many elements"), "deep": (b"<gwcConfiguration>" + b"<a>" * 2000, "deep"),
       "laughs": (b'<!DOCTYPE a [<!ENTITY a "' + b"x" * 1000 + b'">' + b"".join(b'<!ENTITY a%d "%s">' % (i, (b"&a%d;" % (i - 1) if i else b"&a;") * 30) for i in range(6)) + b"]><gwcConfiguration>&a5;</gwcConfiguration>", "")}


@pytest.mark.parametrize("bad", BAD)
def test_bad_files(folder, bad):
    data, said = BAD[bad]
    (folder / "geowebcache.xml").write_bytes(data)
    done = adopt("geowebcache.xml", cwd=folder)
    assert done.returncode == 1 and said in done.stderr and done.stderr and not (folder / "mapcache.xml").exists()

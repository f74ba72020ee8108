"""Maps and tiles for fine screens: so many times as many pixels, with symbols and text as large as before; kept apart from other tiles."""
import io
import os
import re
import subprocess

import numpy
import pytest
from conftest import GRID
from fastcgi import Server
from osgeo import ogr, osr
from patience import patience
from PIL import Image

HALF = 20037508.342789248
WORLD = (-HALF, -HALF, HALF, HALF)
SLD = """<StyledLayerDescriptor version="1.0.0" xmlns="http://www.opengis.net/sld" xmlns:ogc="http://www.opengis.net/ogc">
 <NamedLayer><Name>a</Name><UserStyle><FeatureTypeStyle>
 <Rule><MaxScaleDenominator>1000000000</MaxScaleDenominator><PointSymbolizer><Graphic><Mark><WellKnownName>square</WellKnownName>
  <Fill><CssParameter name="fill">#0000ff</CssParameter></Fill></Mark><Size>10</Size></Graphic></PointSymbolizer></Rule>
 <Rule><TextSymbolizer><Label><ogc:PropertyName>name</ogc:PropertyName></Label>
  <Font><CssParameter name="font-family">DejaVu Sans</CssParameter><CssParameter name="font-size">12</CssParameter></Font>
  <Fill><CssParameter name="fill">#ff0000</CssParameter></Fill></TextSymbolizer></Rule>
 </FeatureTypeStyle></UserStyle></NamedLayer></StyledLayerDescriptor>"""
DOTS = SLD[:SLD.index("<Rule>")] + """<Rule><PolygonSymbolizer><Fill><GraphicFill><Graphic><Mark>
  <WellKnownName>brush://dense6</WellKnownName><Fill><CssParameter name="fill">#0000ff</CssParameter></Fill></Mark></Graphic></GraphicFill></Fill>
  </PolygonSymbolizer></Rule></FeatureTypeStyle></UserStyle></NamedLayer></StyledLayerDescriptor>"""
TILESET = """<tileset name="{name}"><source>{source}</source><cache>{cache}</cache><grid>{grid}</grid><format>PNG</format>
 <metatile>{metatile}</metatile>{more}</tileset>"""


@pytest.fixture(scope="module")
def server(build, shared_folder):
    folder = shared_folder
    reference = osr.SpatialReference()
    reference.ImportFromEPSG(3857)
    data = ogr.GetDriverByName("ESRI Shapefile").CreateDataSource(str(folder / "towns.shp"))
    layer = data.CreateLayer("towns", reference, ogr.wkbPoint)
    layer.CreateField(ogr.FieldDefn("name", ogr.OFTString))
    for x in range(-3, 4):
        for y in range(-3, 4):
            feature = ogr.Feature(layer.GetLayerDefn())
            feature.SetField("name", "Hn")
            feature.SetGeometry(ogr.CreateGeometryFromWkt(f"POINT({x * 5e6 + 1e6} {y * 5e6 + 1e6})"))
            layer.CreateFeature(feature)
    del layer, data
    (folder / "towns.sld").write_text(SLD)
    data = ogr.GetDriverByName("ESRI Shapefile").CreateDataSource(str(folder / "land.shp"))
    layer = data.CreateLayer("land", reference, ogr.wkbPolygon)
    feature = ogr.Feature(layer.GetLayerDefn())
    feature.SetGeometry(ogr.CreateGeometryFromWkt("POLYGON((-2e7 -2e7, -2e7 2e7, 2e7 2e7, 2e7 -2e7, -2e7 -2e7))"))
    layer.CreateFeature(feature)
    del layer, data
    (folder / "land.sld").write_text(DOTS)
    tilesets = [("usual", "disk", "4 4", ""), ("three", "disk", "1 1", "<density>2 3</density>"), ("none", "disk", "1 1", "<density>1</density>"),
                ("book", "book", "1 1", ""), ("shelf", "shelf", "2 2", "")]
    text = "".join(TILESET.format(name=name, source="towns", cache=cache, grid=GRID, metatile=metatile, more=more)
                   for name, cache, metatile, more in tilesets)
    config = folder / "density.xml"
    config.write_text(f"""<mapcache><cache name="disk" type="disk"><base>{folder}/cache</base></cache>
      <cache name="book" type="mbtiles"><dbfile>{folder}/book.mbtiles</dbfile></cache>
      <cache name="shelf" type="sqlite3"><dbfile>{folder}/shelf.sqlite3</dbfile></cache>
      <source name="towns" type="shapefile"><layer><data>{folder}/towns.shp</data><style>{folder}/towns.sld</style></layer></source>
      <source name="land" type="shapefile"><layer><data>{folder}/land.shp</data><style>{folder}/land.sld</style></layer></source>
      {TILESET.format(name="land", source="land", cache="disk", grid=GRID, metatile="1 1", more="")}
      {text}<default_format>PNG</default_format><service type="wms" enabled="true"><full_wms>forward</full_wms>
      <format allow_client_override="true">PNG</format><maxsize>4096</maxsize></service><service type="wmts" enabled="true"/>
      <service type="tms" enabled="true"/><service type="gmaps" enabled="true"/>
      <locker type="disk"><directory>{folder}</directory></locker></mapcache>""")
    running = Server(build, config, folder)
    running.config = config
    yield running
    running.stop()


def pixels(reply):
    assert reply.status == 200, reply.body
    return numpy.asarray(Image.open(io.BytesIO(reply.body)).convert("RGBA")).astype(int)


def tile(server, layer, z, x, y, density="", service="gmaps"):
    return pixels(server.get(f"/{service}/{layer}/{z}/{x}/{y}{density}.png"))


def drawn(server, layer, size, more=""):
    return pixels(server.get("/", f"SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&STYLES=&LAYERS={layer}&SRS=EPSG:3857&FORMAT=image/png"
                                  f"&TRANSPARENT=TRUE&BBOX={','.join(map(repr, WORLD))}&WIDTH={size}&HEIGHT={size}{more}"))


def blue(image):
    """The area of blue symbols in pixels, whatever their edges cover of them."""
    return float(image[..., 3][(image[..., 2] > 2 * image[..., 0]) & (image[..., 2] > 60)].sum()) / 255


def shrunk(image, by):
    size = image.shape[0] // by
    return image.reshape(size, by, size, by, 4).mean(axis=(1, 3))


@pytest.mark.parametrize("layer, factor", [("usual", 2), ("three", 2), ("three", 3), ("shelf", 2)])
def test_tiles_have_more_pixels_and_symbols_of_the_same_size(server, layer, factor):
    plain, fine = tile(server, layer, 1, 1, 0), tile(server, layer, 1, 1, 0, f"@{factor}x")
    assert fine.shape == (256 * factor, 256 * factor, 4)
    assert blue(fine) == pytest.approx(blue(plain) * factor ** 2, rel=0.1)
    assert abs(shrunk(fine, factor) - plain)[..., 3].mean() < 6  # the same map
    assert numpy.array_equal(fine, tile(server, layer, 1, 1, 0, f"@{factor}x"))  # out of the cache
    assert numpy.array_equal(plain, tile(server, layer, 1, 1, 0))


def test_both_are_kept_apart_in_the_cache(server, shared_folder):
    tile(server, "usual", 2, 1, 1, "@2x")
    tile(server, "usual", 2, 1, 1)
    folders = sorted(path.name for path in (shared_folder / "cache/usual").iterdir())
    assert folders == [GRID, f"{GRID}@2x"]
    sizes = {Image.open(path).size for path in (shared_folder / f"cache/usual/{GRID}").rglob("*.png")}
    assert sizes == {(256, 256)}


def test_factors_that_are_not_offered_are_not_found(server):
    for address in ("usual/1/1/0@3x", "none/1/1/0@2x", "three/1/1/0@4x", "three/1/1/0@1x", "three/1/1/0@0x", "three/1/1/0@2", "three/1/1/0@22x",
                    "book/1/1/0@2x", f"usual@{GRID}@2x/1/1/0@2x"):
        assert server.get(f"/gmaps/{address}.png").status == 404, address
    assert server.get(f"/wmts/1.0.0/usual/default/{GRID}@3x/1/0/1.png").status == 404
    assert server.get(f"/wmts/1.0.0/book/default/{GRID}@2x/1/0/1.png").status == 404


def test_every_address_gives_the_same_tile(server):
    fine = tile(server, "usual", 2, 1, 1, "@2x")
    assert numpy.array_equal(fine, tile(server, "usual", 2, 1, 2, "@2x", "tms/1.0.0"))
    assert numpy.array_equal(fine, tile(server, f"usual@{GRID}@2x", 2, 1, 1))
    assert numpy.array_equal(fine, pixels(server.get(f"/wmts/1.0.0/usual/default/{GRID}@2x/2/1/1.png")))
    document = server.get("/gmaps/usual@2x.json").body.decode()
    address = re.search(r'"tiles":\s*\[\s*"([^"]+)"', document).group(1).replace("\\/", "/")
    path = re.sub(r"^https?://[^/]*", "", address).format(z=2, x=1, y=1)
    assert numpy.array_equal(fine, pixels(server.get(path[path.index("/gmaps"):])))


def test_wmts_says_what_there_is(server):
    text = server.get("/wmts", "SERVICE=WMTS&REQUEST=GetCapabilities").body.decode()
    layer = re.search(r"<Layer>(?:(?!</Layer>).)*<ows:Identifier>three<.*?</Layer>", text, re.DOTALL).group(0)
    assert re.findall(r"<TileMatrixSet>([^<]+)<", layer)[-3:] == [GRID, f"{GRID}@2x", f"{GRID}@3x"]
    sets = re.findall(r"<TileMatrixSet>\s*(?:<ows:Title>[^<]*</ows:Title>\s*)?<ows:Identifier>([^<]+)<(.*?)</TileMatrixSet>", text, re.DOTALL)
    assert [name for name, _ in sets].count(f"{GRID}@2x") == 1
    widths = {name: re.search(r"<TileWidth>(\d+)<", body).group(1) for name, body in sets}
    scales = {name: float(re.search(r"<ScaleDenominator>([\d.]+)<", body).group(1)) for name, body in sets}
    assert widths[f"{GRID}@2x"] == "512" and widths[GRID] == "256"
    assert scales[f"{GRID}@2x"] == pytest.approx(scales[GRID] / 2)


@pytest.mark.parametrize("more, factor", [("&DPI=180", 2), ("&MAP_RESOLUTION=192", 2), ("&FORMAT_OPTIONS=antialias:on;dpi:270", 3), ("&DPI=96", 1),
                                          ("&DPI=72", 1), ("&DPI=none", 1), ("&dpi=96&MAP_RESOLUTION=96&FORMAT_OPTIONS=dpi:96", 1)])
def test_maps_are_drawn_for_the_resolution_of_the_screen(server, more, factor):
    plain, fine = drawn(server, "usual", 300), drawn(server, "usual", 300 * factor, more)
    assert blue(fine) == pytest.approx(blue(plain) * factor ** 2, rel=0.02)
    if factor == 1:
        assert numpy.array_equal(plain, fine)


@pytest.mark.parametrize("factor", [2, 3])
def test_dots_of_a_brush_are_as_much_larger(server, factor):
    plain, fine = drawn(server, "land", 64), drawn(server, "land", 64 * factor, f"&DPI={90 * factor}")
    dots = plain[4:-4, 4:-4, 3]
    assert (dots == 255).sum() == dots.size // 8
    assert numpy.array_equal(fine[4 * factor:-4 * factor, 4 * factor:-4 * factor, 3], dots.repeat(factor, axis=0).repeat(factor, axis=1))


def test_dots_go_on_from_tile_to_tile(server):
    row = numpy.hstack([tile(server, "land", 2, x, 1, "@2x")[..., 3] for x in (1, 2)])
    assert numpy.array_equal(row[:, 400:600], row[:, 400 + 16:600 + 16])  # the pattern repeats every 8 dots


def test_a_scale_is_that_of_the_map_on_the_screen(server):
    """Symbols have a scale limit; a map of twice the pixels on a fine screen is at the same scale."""
    assert blue(drawn(server, "usual", 120)) == 0
    assert blue(drawn(server, "usual", 240)) > 0
    assert blue(drawn(server, "usual", 240, "&DPI=180")) == 0


def test_a_map_that_is_a_fine_tile_is_that_tile(server):
    assert numpy.array_equal(drawn(server, "usual", 512, "&DPI=180"), tile(server, "usual", 0, 0, 0, "@2x"))
    assert not numpy.array_equal(drawn(server, "usual", 256, "&DPI=180"), tile(server, "usual", 0, 0, 0))


def test_a_resolution_beyond_all_screens_is_that_of_the_finest(server):
    assert numpy.array_equal(drawn(server, "usual", 240, "&DPI=100000"), drawn(server, "usual", 240, "&DPI=725"))


def test_the_seeder_leaves_no_tile_out(server, build, folder, modules_environment):
    """Metatiles of fine tiles are cut at 4096 pixels, so there are more of them."""
    config = folder / "seeded.xml"
    config.write_text(server.config.read_text().replace("<metatile>4 4</metatile>", "<metatile>10 10</metatile>").replace("/cache<", "/seeded<"))
    run = subprocess.run([build / "bin/mapcache_seed", "-q", "-c", config, "-t", "usual", "-g", f"{GRID}@2x", "-z", "4,4"],
                         env={**os.environ, **modules_environment}, timeout=patience(120), capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert len(list((server.config.parent / f"seeded/usual/{GRID}@2x").rglob("*.png"))) == 256


def test_check_refuses_densities_that_a_cache_would_mix(build, server, folder, modules_environment):
    def check(old, new):
        config = folder / "other.xml"
        config.write_text(server.config.read_text().replace(old, new))
        checked = subprocess.run([build / "bin/mapcache", "check", config], env={**os.environ, **modules_environment},
                                 timeout=patience(60), capture_output=True, text=True, check=False)
        return checked.returncode, checked.stdout + checked.stderr

    assert check("nothing", "nothing")[0] == 0
    code, said = check("<density>1</density>", "<density>9</density>")
    assert code == 1 and "its factors are 1, 2 and 3" in said
    code, said = check(f'<tileset name="book"><source>towns</source><cache>book</cache><grid>{GRID}</grid>',
                       f'<tileset name="book"><density>2</density><source>towns</source><cache>book</cache><grid>{GRID}</grid>')
    assert code == 1 and "does not tell grids apart" in said

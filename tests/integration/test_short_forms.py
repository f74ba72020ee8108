"""Short forms of a configuration: <tileset><data>THING</data></tileset> and nothing else. What the data say is what is served."""
import json
import math
import re
import subprocess
import time

import pytest
from fastcgi import Server
from osgeo import gdal, ogr, osr
from patience import patience
from vector_maps import pixels

gdal.UseExceptions()
ogr.UseExceptions()


def crs(code):
    system = osr.SpatialReference()
    system.ImportFromEPSG(code)
    system.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    return system


def photo(path, box=(2600000, 1200000, 2602000, 1202000), epsg=2056, color=(200, 40, 40), size=200):
    """A GeoTIFF of one colour."""
    raster = gdal.GetDriverByName("GTiff").Create(str(path), size, size, 3, gdal.GDT_Byte)
    raster.SetGeoTransform((box[0], (box[2] - box[0]) / size, 0, box[3], 0, -(box[3] - box[1]) / size))
    raster.SetProjection(crs(epsg).ExportToWkt())
    for number, value in enumerate(color, 1):
        raster.GetRasterBand(number).Fill(value)
    raster = None
    return path


def squares(path, box=(7.4, 46.9, 7.6, 47.1), driver="ESRI Shapefile", name="fields", kind=ogr.wkbPolygon):
    """Four areas that fill the box, or the lines around them, or their corners."""
    data = ogr.GetDriverByName(driver).CreateDataSource(str(path)) if not path.exists() else ogr.Open(str(path), 1)
    layer = data.CreateLayer(name, crs(4326), kind)
    layer.CreateField(ogr.FieldDefn("label", ogr.OFTString))
    west, south, east, north = box
    for number in range(4):
        x, y = west + (east - west) * (number % 2) / 2, south + (north - south) * (number // 2) / 2
        w, h = (east - west) / 2, (north - south) / 2
        ring = f"{x} {y},{x + w} {y},{x + w} {y + h},{x} {y + h},{x} {y}"
        feature = ogr.Feature(layer.GetLayerDefn())
        feature["label"] = f"number {number}"
        feature.SetGeometry(ogr.CreateGeometryFromWkt({ogr.wkbPolygon: f"POLYGON(({ring}))", ogr.wkbLineString: f"LINESTRING({ring})",
                                                       ogr.wkbPoint: f"POINT({x} {y})"}[kind]))
        layer.CreateFeature(feature)
    layer = data = None
    return path


@pytest.fixture
def serve(folder, build):
    """serve(elements): a server of a configuration that has these elements and nothing else."""
    running = []

    def start(elements):
        config = folder / "mapcache.xml"
        config.write_text(f"<mapcache>\n{elements}\n</mapcache>\n")
        running.append(Server(build, config, folder))
        return running[-1]
    yield start
    for server in running:
        server.stop()


def tilejson(server, name):
    answer = server.get(f"/gmaps/{name}.json")
    assert answer.status == 200, (answer.body, server.log())
    return json.loads(answer.body)


def tile_at(lon, lat, zoom):
    count = 2 ** zoom
    x = int((lon + 180) / 360 * count)
    y = int((1 - math.asinh(math.tan(math.radians(lat))) / math.pi) / 2 * count)
    return f"{zoom}/{x}/{y}"


def check(build, config, *options):
    done = subprocess.run([build / "bin" / "mapcache", "check", *options, config], capture_output=True, text=True, timeout=patience(60))
    return done.returncode, done.stdout + done.stderr


def test_three_lines_serve_a_raster(serve, folder, build):
    photo(folder / "world.tif")
    server = serve(f"<tileset><data>{folder}/world.tif</data></tileset>")
    answer = server.get(f"/gmaps/world@GoogleMapsCompatible/{tile_at(7.451, 46.96, 15)}.png")
    assert answer.status == 200, (answer.body, server.log())
    image = pixels(answer.body)
    assert abs(int(image[128, 128][0]) - 200) < 6 and image[128, 128][3] == 255
    for path in ("/?SERVICE=WMS&REQUEST=GetCapabilities", "/wmts/1.0.0/WMTSCapabilities.xml", "/tms/1.0.0/", "/demo/"):
        assert server.get(*path.split("?")).status == 200, path
    status, said = check(build, folder / "mapcache.xml")
    assert status == 0 and 'tileset "world": a raster by "gdal", CRS EPSG:2056' in said, said


def test_a_relative_path_is_seen_from_the_file(serve, folder):
    photo(folder / "here.tif")
    server = serve("<tileset><data> here.tif </data></tileset>")
    assert server.get(f"/gmaps/here/{tile_at(7.451, 46.96, 15)}.png").status == 200


def test_vectors_are_images_and_vector_tiles(serve, folder):
    squares(folder / "fields.shp")
    server = serve(f'<tileset name="land"><data>{folder}/fields.shp</data></tileset>')
    image = pixels(server.get(f"/gmaps/land/{tile_at(7.5, 47.0, 10)}.png").body)
    assert image[..., 3].max() == 255
    tile = server.get(f"/gmaps/land-mvt/{tile_at(7.5, 47.0, 10)}.mvt")
    assert tile.status == 200 and tile.header("Content-Type") == "application/vnd.mapbox-vector-tile"
    assert tilejson(server, "land-mvt")["vector_layers"][0]["id"] == "fields"


def test_what_is_drawn_is_never_older_than_the_data(serve, folder):
    """Nothing is stored: the file that takes the other one's place is seen at once."""
    photo(folder / "now.tif", color=(250, 0, 0))
    server = serve(f"<tileset><data>{folder}/now.tif</data></tileset>")
    address = f"/gmaps/now/{tile_at(7.451, 46.96, 15)}.png"
    assert pixels(server.get(address).body)[128, 128][0] > 240
    photo(folder / "new.tif", color=(0, 0, 250)).rename(folder / "now.tif")
    assert pixels(server.get(address).body)[128, 128][2] > 240
    assert "max-age=300" not in server.get(address).header("Cache-Control", "")


def test_what_a_short_form_says_wins(serve, folder, build):
    photo(folder / "a.tif")
    squares(folder / "b.shp")
    server = serve(f"""<cache name="disk" type="disk"><base>{folder}/tiles</base></cache>
<tileset name="a"><data>{folder}/a.tif</data><cache>disk</cache><format>JPEG</format><metadata><title>My photo</title></metadata>
<grid>WGS84</grid></tileset>
<tileset name="b"><data>{folder}/b.shp</data><format>PNG8</format></tileset>
<service type="gmaps" enabled="true"/>""")
    document = tilejson(server, "a")
    assert document["name"] == "My photo" and document["tiles"][0].endswith("jpg")
    assert server.get("/gmaps/a@WGS84/12/8531/2952.jpg").status in (200, 404)
    assert server.get("/gmaps/b-mvt/0/0/0.mvt").status >= 400, "one format is one tileset"
    assert server.get("/wmts/1.0.0/WMTSCapabilities.xml").status >= 400, "services are those of the configuration"
    status, said = check(build, folder / "mapcache.xml")
    assert status == 0, said


def test_what_is_not_there_answers_503_until_it_is(serve, folder, build):
    photo(folder / "there.tif")
    server = serve(f"<tileset><data>{folder}/there.tif</data></tileset>\n<tileset><data>{folder}/later.tif</data></tileset>")
    status, said = check(build, folder / "mapcache.xml")
    assert status == 2 and "later.tif" in said and "503" in said, said
    address = tile_at(7.451, 46.96, 15)
    missing = server.get(f"/gmaps/later/{address}.png")
    assert missing.status == 503 and b"not there" in missing.body and str(folder).encode() not in missing.body
    assert server.get(f"/gmaps/there/{address}.png").status == 200
    photo(folder / "part.tif").rename(folder / "later.tif")
    end = time.monotonic() + patience(30)
    while (answer := server.get(f"/gmaps/later/{address}.png")).status != 200:
        assert answer.status == 503 and time.monotonic() < end, (answer.status, server.log())
        time.sleep(0.1)
    assert pixels(answer.body)[128, 128][3] == 255
    assert server.get(f"/gmaps/there/{address}.png").status == 200


def test_names_of_files_are_harmless(serve, folder):
    name = 'a <b> & "c" ]]> {z}.tif'
    photo(folder / name)
    escaped = str(folder / name).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    server = serve(f"<tileset><data>{escaped}</data></tileset>")
    document = tilejson(server, re.sub("[^a-z]", "_", name[:-4]))
    assert document["name"] == name[:-4]


def test_refused_short_forms(folder, build):
    config = folder / "mapcache.xml"
    config.write_text('<mapcache><tileset name="x"><data>x.tif</data><source>y</source></tileset></mapcache>')
    status, said = check(build, config)
    assert status == 1 and "either a <source> or <data>" in said

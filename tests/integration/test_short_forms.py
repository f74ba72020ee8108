"""Short forms of a configuration: <tileset><data>THING</data></tileset> and nothing else. What the data say is what is served."""
import json
import math
import re
import sqlite3
import subprocess
import time
from urllib.parse import quote

import pytest
from fastcgi import Server
from osgeo import gdal, ogr, osr
from patience import patience
from postgres import PASSWORD, USER, Postgres
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


def test_short_forms_have_colours_and_long_forms_are_grey(serve, folder):
    """A layer without a style: pale in a colour of its own as a short form, solid grey where the source is written out."""
    for name in ("one", "two", "long"):
        squares(folder / f"{name}.shp")
    server = serve(f"""<source name="long" type="shapefile"><layer name="long"><data>{folder}/long.shp</data></layer></source>
<cache name="none" type="none"/>
<tileset name="one"><data>{folder}/one.shp</data></tileset><tileset name="two"><data>{folder}/two.shp</data></tileset>
<tileset name="long"><source>long</source><cache>none</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>""")
    inside = {name: tuple(pixels(server.get(f"/gmaps/{name}/{tile_at(7.45, 46.95, 14)}.png").body)[128, 128]) for name in ("one", "two", "long")}
    assert inside["long"] == (208, 208, 208, 255)
    assert inside["one"][3] == inside["two"][3] == 90 and inside["one"] != inside["two"]


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


def test_files_of_one_name_have_titles_of_their_own(serve, folder):
    """In a folder of things, and in short forms that follow each other."""
    for part in ("all", "all/north", "all/south"):
        (folder / part).mkdir()
        squares(folder / part / "land.geojson", driver="GeoJSON")
    server = serve("<tileset><data>all</data></tileset><tileset><data>all/north/land.geojson</data></tileset>")
    assert [tilejson(server, name)["name"] for name in ("land", "land_2", "land_3", "land_4")] == ["land", "land (north)", "land (south)", "land (2)"]


def test_check_says_each_thing_once_and_errors_first(folder, build):
    """One complaint for data that are not there, none that follows from another one, notes at the end."""
    squares(folder / "land.shp")
    (folder / "land.prj").unlink()
    config = folder / "mapcache.xml"
    config.write_text("""<mapcache>
<tileset><data>land.shp</data></tileset>
<tileset><data>away.tif</data></tileset>
<tileset name="both"><data>land.shp</data><source>s</source></tileset>
<tileset name="empty"><data> </data></tileset>
</mapcache>""")
    status, said = check(build, config)
    lines = [line.removeprefix(f"{config}:") for line in said.splitlines()[:-1]]
    assert status == 1 and "<data>: <data>" not in said, said
    assert [re.match(r"(\d+):\d+: (error|not built|warning|note): ", line).groups() for line in lines] == [
        ("4", "error"), ("5", "error"), ("2", "warning"), ("3", "not built"), ("1", "note"), ("2", "note")], said
    assert "land.shp has no .prj" in lines[2] and "away" in lines[3] and "there is no file" in lines[3], said


def test_coordinates_without_a_crs_are_drawn_as_what_they_are_taken_for(serve, folder):
    squares(folder / "land.shp")
    (folder / "land.prj").unlink()
    server = serve("<tileset><data>land.shp</data></tileset>")
    assert pixels(server.get(f"/gmaps/land/{tile_at(7.45, 46.95, 14)}.png").body)[128, 128][3] > 0


def test_check_warns_of_caches_that_no_tileset_uses(folder, build):
    config = folder / "mapcache.xml"
    config.write_text(f"""<mapcache><source name="s" type="dummy"/>
<cache name="part" type="disk"><base>{folder}/a</base></cache>
<cache name="tiers" type="multitier"><cache>part</cache></cache>
<cache name="spare" type="disk"><base>{folder}/b</base></cache>
<tileset name="t"><source>s</source><cache>tiers</cache><grid>WGS84</grid><format>PNG</format></tileset>
<service type="wms" enabled="true"/></mapcache>""")
    status, said = check(build, config)
    warnings = [line for line in said.splitlines() if "warning: " in line]
    assert status == 2 and len(warnings) == 1, said
    assert warnings[0].startswith(f"{config}:4:1: ") and 'name="spare"' in warnings[0] and "no tileset uses" in warnings[0], said


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


def address_of(database, more=""):
    return f"postgresql://{quote(USER)}:{quote(PASSWORD)}@127.0.0.1:{database.port}/postgres?sslmode=disable{more}"


@pytest.fixture(scope="module")
def database():
    with Postgres() as server:
        server.sql("CREATE EXTENSION postgis")
        server.sql("""CREATE TABLE fields(gid serial PRIMARY KEY, label text, area float8, geom geometry(Polygon, 2056));
            INSERT INTO fields(label, geom) SELECT 'number ' || i, ST_MakeEnvelope(2600000 + i * 100, 1200000, 2600090 + i * 100, 1200090, 2056)
            FROM generate_series(0, 19) i; CREATE INDEX ON fields USING gist(geom); ANALYZE fields; COMMENT ON TABLE fields IS 'Fields & meadows';
            CREATE VIEW seen AS SELECT gid, geom FROM fields WHERE gid <= 3;
            CREATE TABLE no_place(id int, name text); CREATE TABLE two(id int, a geometry(Point, 4326), b geometry(LineString, 4326));
            CREATE SCHEMA other; CREATE TABLE other.spots(geom geometry(Point, 4326)); INSERT INTO other.spots VALUES (ST_SetSRID(ST_MakePoint(8, 47), 4326));
            CREATE TABLE "a ""b"" <c>"(geom geometry(Point, 4326))""")
        yield server


def test_tables_and_views_of_a_database(serve, database, folder, build):
    address = address_of(database)
    server = serve(f"<tileset><data>{address.replace('&', '&amp;')}</data></tileset>")
    for name in ("fields", "seen", "two_a", "two_b", "other.spots", "a__b___c_", "fields-mvt"):
        assert server.get(f"/gmaps/{name}.json").status == 200, (name, server.log())
    assert server.get("/gmaps/no_place.json").status >= 400
    image = pixels(server.get(f"/gmaps/fields/{tile_at(7.4395, 46.9514, 15)}.png").body)
    assert image[..., 3].max() == 255
    assert tilejson(server, "fields")["description"] == "Fields & meadows"
    fields = tilejson(server, "fields-mvt")["vector_layers"][0]["fields"]
    assert fields == {"label": "String", "area": "Number"} or "label" in fields
    database.sql("INSERT INTO fields(label, geom) VALUES ('new', ST_MakeEnvelope(2600000, 1200200, 2602000, 1200300, 2056))")
    status, said = check(build, folder / "mapcache.xml")
    assert status in (0, 2) and quote(PASSWORD) not in said and 'tileset "fields": vector data by "postgis", CRS EPSG:2056, from 7.438' in said, said


def test_one_table_of_a_database(serve, database):
    server = serve(f"""<tileset name="mine"><data>{address_of(database, more="&amp;table=other.spots")}</data></tileset>""")
    assert server.get("/gmaps/mine.json").status == 200, server.log()
    assert server.get("/gmaps/fields.json").status >= 400


def test_a_database_that_is_away_is_asked_again(serve, folder):
    with Postgres() as server:
        server.sql("CREATE EXTENSION postgis; CREATE TABLE spots(geom geometry(Point, 3857)); INSERT INTO spots VALUES (ST_SetSRID(ST_MakePoint(0, 0), 3857))")
        server.stop()
        ours = serve(f"<tileset><data>{address_of(server, more='&amp;table=spots')}</data></tileset>\n<tileset><data>{photo(folder / 'a.tif')}</data></tileset>")
        assert ours.get("/gmaps/postgres/0/0/0.png").status == 503
        assert ours.get("/gmaps/a/0/0/0.png").status == 200
        server.start()
        end = time.monotonic() + patience(60)
        while (answer := ours.get("/gmaps/spots/0/0/0.png")).status != 200:
            assert time.monotonic() < end, (answer.body, ours.log())
            time.sleep(0.2)
        assert pixels(answer.body)[..., 3].max() == 255


def test_a_folder_of_rasters_is_one_layer(serve, folder):
    (folder / "photos").mkdir()
    photo(folder / "photos" / "west.tif", (2600000, 1200000, 2601000, 1201000), color=(200, 0, 0))
    photo(folder / "photos" / "east.tif", (2601000, 1200000, 2602000, 1201000), color=(0, 0, 200))
    (folder / "photos" / "notes.txt").write_text("nothing")
    server = serve(f"<tileset><data>{folder}/photos</data></tileset>")
    west = pixels(server.get(f"/gmaps/photos/{tile_at(7.4452, 46.955, 15)}.png").body)[128, 128]
    east = pixels(server.get(f"/gmaps/photos/{tile_at(7.4583, 46.955, 15)}.png").body)[128, 128]
    assert west[0] > 190 and east[2] > 190
    photo(folder / "photos" / "zenith.tif", (2600000, 1200000, 2601000, 1201000), color=(0, 200, 0))
    assert pixels(server.get(f"/gmaps/photos/{tile_at(7.4452, 46.955, 15)}.png").body)[128, 128][1] > 190, "another raster on top is seen"


def test_a_folder_of_things(serve, folder):
    (folder / "all/below").mkdir(parents=True)
    photo(folder / "all/photo.tif")
    raster = gdal.Open(str(folder / "all/photo.tif"))
    gdal.Translate(str(folder / "all/gray.tif"), raster, bandList=[1])
    squares(folder / "all/below/fields.shp")
    squares(folder / "all/two.gpkg", driver="GPKG", name="one", kind=ogr.wkbPoint)
    squares(folder / "all/two.gpkg", driver="GPKG", name="other", kind=ogr.wkbLineString)
    (folder / "all/broken.tif").write_text("no raster")
    (folder / "all/circle").symlink_to(folder / "all")
    server = serve(f"<tileset><data>{folder}/all</data></tileset>")
    for name in ("photo", "gray", "fields", "one", "other"):
        assert server.get(f"/gmaps/{name}/{tile_at(7.45, 46.95, 9)}.png").status == 200, (name, server.log())
    assert "broken.tif" in server.log()


def test_stored_tiles_are_served_as_they_are(serve, folder):
    photo(folder / "photo.tif")
    mercator = gdal.Warp(str(folder / "m.tif"), str(folder / "photo.tif"), dstSRS="EPSG:3857", dstAlpha=True)
    gdal.Translate(str(folder / "stored.mbtiles"), mercator, format="MBTILES", creationOptions=["NAME=A photo", "DESCRIPTION=of <Bern>"])
    gdal.Translate(str(folder / "stored.gpkg"), mercator, format="GPKG", creationOptions=["TILING_SCHEME=GoogleMapsCompatible", "RASTER_TABLE=tiles of it"])
    gdal.Translate(str(folder / "drawn.gpkg"), str(folder / "photo.tif"), format="GPKG", creationOptions=["RASTER_TABLE=own"])
    mercator = None
    server = serve("".join(f"<tileset><data>{folder}/{name}</data></tileset>\n" for name in ("stored.mbtiles", "stored.gpkg", "drawn.gpkg")))
    document = tilejson(server, "stored")
    assert document["name"] == "A photo" and document["description"] == "of <Bern>" and document["maxzoom"] >= 12
    store = sqlite3.connect(folder / "stored.mbtiles")
    z, x, y, data = store.execute("SELECT zoom_level, tile_column, tile_row, tile_data FROM tiles ORDER BY 1 DESC").fetchone()
    answer = server.get(f"/gmaps/stored/{z}/{x}/{2 ** z - 1 - y}.png")
    assert answer.body == data
    for name in ("tiles_of_it", "own"):
        image = pixels(server.get(f"/gmaps/{name}/{tile_at(7.451, 46.96, 13)}.png").body)
        assert abs(int(image[128, 128][0]) - 200) < 6, name


def test_a_cache_of_ours_is_a_thing(serve, folder, build):
    photo(folder / "photo.tif")
    config = folder / "seed.xml"
    config.write_text(f"""<mapcache><cache name="c" type="sqlite3"><dbfile>{folder}/own.sqlite3</dbfile></cache>
<tileset name="photo"><data>{folder}/photo.tif</data><cache>c</cache></tileset></mapcache>""")
    done = subprocess.run([build / "bin" / "mapcache", "seed", "-c", config, "-t", "photo", "-z", "12,13", "-e", "820000,5930000,840000,5950000"],
                          capture_output=True, text=True, timeout=patience(60))
    assert done.returncode == 0, done.stdout + done.stderr
    (folder / "photo.tif").unlink()
    server = serve(f"<tileset><data>{folder}/own.sqlite3</data></tileset>")
    assert pixels(server.get(f"/gmaps/photo/{tile_at(7.451, 46.96, 13)}.png").body)[..., 3].max() == 255


def test_nothing_is_seeded_into_a_cache_of_type_none(folder, build):
    photo(folder / "photo.tif")
    config = folder / "seed.xml"
    config.write_text(f"<mapcache><tileset><data>{folder}/photo.tif</data></tileset></mapcache>")
    done = subprocess.run([build / "bin" / "mapcache", "seed", "-c", config, "-t", "photo", "-z", "0,1"], capture_output=True, text=True,
                          timeout=patience(60))
    assert done.returncode != 0 and "keeps nothing" in done.stdout + done.stderr


def boxes(document):
    """Of each layer of WMS capabilities: west, south, east, north."""
    text = document.decode()
    return {name: [float(re.search(f"<{edge}>([^<]*)<", layer).group(1)) for edge in
                   ("westBoundLongitude", "southBoundLatitude", "eastBoundLongitude", "northBoundLatitude")]
            for layer in text.split("<Layer ")[1:] for name in [re.search("<Name>([^<]*)<", layer).group(1)]}


def crs_boxes(document):
    """Of each layer of WMS capabilities 1.3.0: its box in EPSG:3857."""
    return {re.search("<Name>([^<]*)<", layer).group(1): [float(number) for number in re.search(
        'CRS="EPSG:3857" minx="([^"]*)" miny="([^"]*)" maxx="([^"]*)" maxy="([^"]*)"', layer).groups()]
        for layer in document.decode().split("<Layer ")[1:]}


def test_documents_say_where_the_data_lie(serve, folder, database):
    """Of short forms and of written ones; what is configured wins, and sources of other servers are as they were."""
    photo(folder / "photo.tif")
    squares(folder / "fields.shp")
    squares(folder / "fields.gpkg", driver="GPKG")

    def tileset(name, source, more="", grid="<grid>GoogleMapsCompatible</grid>"):
        return f"<tileset name='{name}'><source>{source}</source><cache>c</cache>{grid}<format>PNG</format>{more}</tileset>"
    server = serve(f"""<cache name="c" type="none"/>
<source name="photo" type="gdal"><data>{folder}/photo.tif</data></source>
<source name="shape" type="shapefile"><layer name="fields"><data>{folder}/fields.shp</data></layer></source>
<source name="package" type="ogr"><layer name="fields"><data>{folder}/fields.gpkg</data></layer></source>
<source name="table" type="postgis"><connection>{database.connection()}</connection><layer name="fields"><table>fields</table></layer></source>
<source name="view" type="postgis"><connection>{database.connection()}</connection><layer name="seen"><table>seen</table></layer></source>
<source name="both" type="shapefile"><layer of="shape" name="fields"/><layer of="table" name="fields"/></source>
<source name="gone" type="gdal"><data>{folder}/gone.tif</data></source>
<source name="wms" type="wms"><http><url>http://127.0.0.1:1/</url></http><getmap><params><LAYERS>a</LAYERS></params></getmap></source>
{tileset("photo", "photo")}{tileset("shape", "shape")}{tileset("package", "package")}{tileset("table", "table")}{tileset("view", "view")}
{tileset("both", "both")}{tileset("gone", "gone")}{tileset("wms", "wms")}
{tileset("said", "photo", "<metadata><wgs84boundingbox>1 2 3 4</wgs84boundingbox></metadata>")}
{tileset("cut", "photo", grid="<grid restricted_extent='0 0 1000000 1000000'>GoogleMapsCompatible</grid>")}
<tileset name="short"><data>{folder}/photo.tif</data></tileset>
<service type="wms" enabled="true"/><service type="wmts" enabled="true"/><service type="gmaps" enabled="true"/>""")
    answer = server.get("/", "SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.3.0")
    found = boxes(answer.body)
    place, land, world = [7.4386, 46.9510, 7.4649, 46.9690], [7.4, 46.9, 7.6, 47.1], [-180, -85.051129, 180, 85.051129]
    table = found["table"]
    assert table[0] == pytest.approx(7.4386, abs=0.002) and table[2] < 7.48 and table[3] < 46.97, found
    assert found["view"][2] < table[2] or found["view"] == pytest.approx(table, abs=0.03)
    for name, wanted in {"photo": place, "short": place, "shape": land, "package": land, "gone": world, "wms": world, "said": [1, 2, 3, 4],
                         "both": land, "cut": [0, 0, 8.983, 8.947]}.items():
        assert found[name] == pytest.approx(wanted, abs=0.003), (name, found[name])
    document = tilejson(server, "photo")
    assert document["bounds"] == pytest.approx(place, abs=0.001)
    assert document["center"][:2] == pytest.approx([7.4517, 46.96], abs=0.001) and 11 <= document["center"][2] <= 15
    assert "center" not in tilejson(server, "wms")
    assert b"<ows:LowerCorner>7.438" in server.get("/wmts/1.0.0/WMTSCapabilities.xml").body
    projected = crs_boxes(answer.body)
    assert projected["photo"] == pytest.approx([828065, 5934093, 830998, 5937027], abs=20)
    assert projected["wms"] == projected["gone"] == pytest.approx([-20037508, -20037508, 20037508, 20037508], abs=1)


@pytest.mark.parametrize("path", ["/demo/layers.json", "/demo/layers.json?layer=photo", "/gmaps/photo.json", "/?SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.3.0",
                                  "/wmts/1.0.0/WMTSCapabilities.xml"])
def test_the_first_request_knows_where_the_data_lie(serve, folder, path):
    """Of a process that nobody has asked anything before, and whoever asks for what first."""
    photo(folder / "photo.tif")
    server = serve(f"<tileset><data>{folder}/photo.tif</data></tileset>")
    body = server.get(*path.split("?")).body.decode()
    numbers = [float(number) for number in re.findall(r"-?[0-9]+\.[0-9]+", body)]
    assert [n for n in numbers if 7.437 < n < 7.440] and [n for n in numbers if 46.968 < n < 46.970], body[:2000]
    assert not [n for n in numbers if abs(n) == 180 or 85 < abs(n) < 86], body[:2000]


def test_data_without_a_place_on_earth_are_told_in_the_log(serve, folder):
    photo(folder / "plan.tif")
    raster = gdal.Open(str(folder / "plan.tif"), gdal.GA_Update)
    raster.SetProjection('LOCAL_CS["a building",UNIT["metre",1]]')
    raster = None
    server = serve(f"""<source name="plan" type="gdal"><data>{folder}/plan.tif</data></source><cache name="c" type="none"/>
<tileset name="plan"><source>plan</source><cache>c</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>
<service type="gmaps" enabled="true"/><service type="demo" enabled="true"/>""")
    assert tilejson(server, "plan")["bounds"] == pytest.approx([-180, -85.0511, 180, 85.0511], abs=0.001)
    assert 'tileset "plan": where its data lie is not known' in server.log(), server.log()


def test_the_pages_show_the_place_of_the_data(serve, folder):
    """A picture of two kilometres is shown as two kilometres, not as a world with a dot."""
    photo(folder / "photo.tif")
    server = serve(f"<tileset><data>{folder}/photo.tif</data></tileset>")
    layer = json.loads(server.get("/demo/layers.json").body)["layers"][0]
    assert layer["box"] == pytest.approx([7.4386, 46.9510, 7.4649, 46.9690], abs=0.0005)
    picture = layer["picture"]
    left, top, right, bottom = picture["crop"]
    assert picture["z"] >= 13 and (right - left) * (bottom - top) > 0.2 * picture["columns"] * picture["rows"] * 256 * 256, picture
    west, south, east, north = json.loads(server.get("/demo/layers.json", "layer=photo").body)["grids"][0]["data"]
    assert 2900 < east - west < 3100 and 2900 < north - south < 3100  # metres of Mercator
    pixel = 2 * 20037508.34 / 256 / 2 ** picture["z"]
    assert (right - left) * pixel == pytest.approx(1.1 * (east - west), rel=0.01), "a margin for symbols on the edge"
    assert (bottom - top) * pixel == pytest.approx(1.1 * (north - south), rel=0.01)


@pytest.mark.parametrize("strict", ["", "<strict>true</strict>"])
def test_addresses_of_mixed_tiles_name_a_format_that_there_is(serve, folder, strict):
    photo(folder / "photo.tif")
    services = "".join(f'<service type="{name}" enabled="true">{strict}</service>' for name in ("wmts", "tms", "gmaps", "kml", "demo"))
    server = serve(f"<tileset><data>{folder}/photo.tif</data></tileset>{services}")
    place = tile_at(7.451, 46.96, 15)
    z, x, y = map(int, place.split("/"))
    flipped = f"{z}/{x}/{2 ** z - 1 - y}"
    documents = {path: server.get(*path.split("?")).body.decode() for path in (
        "/gmaps/photo.json", "/tms/1.0.0/photo@GoogleMapsCompatible", "/wmts/1.0.0/WMTSCapabilities.xml", f"/kml/photo@GoogleMapsCompatible/{flipped}.kml",
        "/demo/layers.json", "/demo/layers.json?layer=photo")}
    for path, text in documents.items():
        assert "xxx" not in text and "png" in text, (path, text)
    assert json.loads(documents["/gmaps/photo.json"])["tiles"][0].endswith("/{z}/{x}/{y}.png")
    for extension in ("png", "jpg", "xxx"):
        for path in (f"/gmaps/photo/{place}", f"/tms/1.0.0/photo/{flipped}", f"/wmts/1.0.0/photo/default/GoogleMapsCompatible/{z}/{y}/{x}"):
            answer = server.get(f"{path}.{extension}")
            assert answer.status == 200 and pixels(answer.body)[128, 128][3] == 255, (path, extension, answer.body[:200])
    assert server.get(f"/tms/1.0.0/photo/{flipped}.gif").status == (404 if strict else 200)


def test_detail_counts_the_tiles_of_the_data(folder, build):
    photo(folder / "photo.tif")
    config = folder / "seed.xml"
    config.write_text(f"""<mapcache><cache name="c" type="sqlite3"><dbfile>{folder}/own.sqlite3</dbfile></cache>
<tileset name="photo"><data>{folder}/photo.tif</data><cache>c</cache></tileset></mapcache>""")

    def counted(*options):
        done = subprocess.run([build / "bin" / "mapcache", "detail", "-c", config, "-t", "photo", "--json", *options], capture_output=True, text=True,
                              timeout=patience(60))
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
    before = counted("-z", "0,14")["nb_tiles_in_region"]
    assert before["cached_in_cache"] == 0 and 15 <= before["max_in_cache"] <= 60, before
    subprocess.run([build / "bin" / "mapcache", "seed", "-c", config, "-t", "photo", "-z", "0,14", "-q"], check=True, timeout=patience(60))
    after = counted("-z", "0,14")
    assert after["nb_tiles_in_region"]["cached_in_cache"] == before["max_in_cache"], after
    ring = after["region"]["geometry"]["coordinates"][0]
    assert max(x for x, _ in ring) - min(x for x, _ in ring) < 3100
    assert counted("-z", "3,3", "-e", "-20037508,-20037508,20037508,20037508")["nb_tiles_in_region"]["max_in_cache"] == 64


def test_only_tiles_of_the_data_are_seeded(folder, build):
    photo(folder / "photo.tif")
    config = folder / "seed.xml"
    config.write_text(f"""<mapcache><cache name="c" type="sqlite3"><dbfile>{folder}/own.sqlite3</dbfile></cache>
<tileset name="photo"><data>{folder}/photo.tif</data><cache>c</cache></tileset></mapcache>""")
    done = subprocess.run([build / "bin" / "mapcache", "seed", "-c", config, "-t", "photo", "-z", "0,12"], capture_output=True, text=True,
                          timeout=patience(60))
    assert done.returncode == 0, done.stdout + done.stderr
    store = sqlite3.connect(folder / "own.sqlite3")
    levels = dict(store.execute("SELECT z, count(*) FROM tiles GROUP BY z"))
    assert levels[12] >= 1 and all(1 <= count <= 4 for count in levels.values()) and len(levels) == 13, levels

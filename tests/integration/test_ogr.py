"""Vector data through OGR: the same features in a shapefile, a GeoPackage, a FlatGeobuf and a GeoJSON file give the same maps, vector
tiles and feature info. Layers that are defined once, one connection for all layers of a source, limits of scale."""
import contextlib
import json
import os
import random
import re
import sqlite3
import subprocess

import numpy
import pytest
from fastcgi import Server
from osgeo import gdal, ogr, osr
from patience import patience
from vector_maps import pixels

ogr.UseExceptions()
gdal.UseExceptions()
BOX = (0.0, 0.0, 1000000.0, 1000000.0)
FORMATS = {"gpkg": "GPKG", "fgb": "FlatGeobuf", "geojson": "GeoJSON", "geojsonl": "GeoJSONSeq", "shp": "ESRI Shapefile"}
STYLE = """<StyledLayerDescriptor version="1.0.0" xmlns="http://www.opengis.net/sld" xmlns:ogc="http://www.opengis.net/ogc"><NamedLayer><Name>a</Name>
<UserStyle><FeatureTypeStyle>""" + "".join(f"""<Rule><ogc:Filter><ogc:PropertyIsEqualTo><ogc:PropertyName>kind</ogc:PropertyName>
<ogc:Literal>{kind}</ogc:Literal></ogc:PropertyIsEqualTo></ogc:Filter><PolygonSymbolizer><Fill><CssParameter name="fill">{color}</CssParameter></Fill>
</PolygonSymbolizer></Rule>""" for kind, color in (("wood", "#208020"), ("lake", "#2040c0"), ("field", "#e0d080"))) + """</FeatureTypeStyle></UserStyle>
</NamedLayer></StyledLayerDescriptor>"""


def write(path, count, epsg=3857, seed=3, **options):
    """Squares that overlap, so that their order counts, with whole coordinates."""
    numbers = random.Random(seed)
    crs = osr.SpatialReference()
    crs.ImportFromEPSG(epsg)
    crs.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    data = ogr.GetDriverByName(FORMATS[path.suffix[1:]]).CreateDataSource(str(path))
    layer = data.CreateLayer("places", crs, ogr.wkbPolygon, options.get("layer", []))
    layer.CreateField(ogr.FieldDefn("kind", ogr.OFTString))
    layer.CreateField(ogr.FieldDefn("number", ogr.OFTInteger))
    layer.StartTransaction()
    for number in range(count):
        x, y, size = numbers.randrange(900000), numbers.randrange(900000), numbers.randrange(1000, 100000)
        feature = ogr.Feature(layer.GetLayerDefn())
        feature["kind"] = ("wood", "lake", "field")[number % 3]
        feature["number"] = number
        feature.SetGeometry(ogr.CreateGeometryFromWkt(
            f"POLYGON(({x} {y},{x + size} {y},{x + size} {y + size},{x} {y + size},{x} {y}))"))
        layer.CreateFeature(feature)
    layer.CommitTransaction()
    layer = data = None
    return path


def layer_of(path, more=""):
    return f'<layer name="places"><data>{path}</data><style>{path.parent}/style.sld</style>{more}</layer>'


def configure(folder, sources, more=""):
    (folder / "style.sld").write_text(STYLE)
    names = [text.split('"')[1] for text in sources]
    tilesets = "".join(f'<tileset name="{name}"><source>{name}</source><cache>disk</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>'
                       f'<tileset name="{name}-tiles"><source>{name}</source><cache>disk</cache><grid>GoogleMapsCompatible</grid><format>mvt</format></tileset>'
                       for name in names)
    config = folder / "mapcache.xml"
    config.write_text(f"""<mapcache>{chr(10).join(sources)}<cache name="disk" type="disk"><base>{folder}/tiles</base></cache><format name="mvt" type="MVT"/>
{tilesets}<service type="wms" enabled="true"><full_wms>forward</full_wms><format>PNG</format></service><service type="gmaps" enabled="true"/>
<lock_dir>{folder}</lock_dir>{more}</mapcache>""")
    return config


def wms(server, name, box=BOX, size=300, request="GetMap", more=""):
    return server.get("/", f"SERVICE=WMS&VERSION=1.1.1&REQUEST={request}&LAYERS={name}&STYLES=&SRS=EPSG:3857&FORMAT=image/png&TRANSPARENT=TRUE"
                      f"&BBOX={','.join(map(str, box))}&WIDTH={size}&HEIGHT={size}{more}")


def drawn(server, name, *arguments):
    answer = wms(server, name, *arguments)
    assert answer.status == 200, (name, answer.body, server.log())
    return pixels(answer.body)


def check(build, config):
    done = subprocess.run([build / "bin/mapcache", "check", "--json", config], capture_output=True, text=True, timeout=patience(60))
    return [(one["severity"], one["text"]) for one in json.loads(done.stdout)["complaints"]]


@pytest.fixture
def start(build, folder):
    running = []

    def serve(sources, more=""):
        running.append(Server(build, configure(folder, sources, more), folder))
        return running[-1]

    yield serve
    for server in running:
        server.stop()


def test_all_formats_draw_the_same(start, folder):
    """In the order of the file; that of a FlatGeobuf with an index is another one."""
    for ending in FORMATS:
        write(folder / f"places.{ending}", 400)
    gdal.VectorTranslate(str(folder / "sorted.shp"), str(folder / "places.fgb"), layerName="sorted")
    server = start([f'<source name="{ending}" type="{"shapefile" if ending == "shp" else "ogr"}">{layer_of(folder / f"places.{ending}")}</source>'
                    for ending in FORMATS] + [f'<source name="sorted" type="shapefile">{layer_of(folder / "sorted.shp")}</source>'])
    for box in (BOX, (100000, 100000, 300000, 300000), (450000, 20000, 460000, 30000), (-500000, -500000, 400000, 400000)):
        for ending in FORMATS:
            expected = drawn(server, "sorted" if ending == "fgb" else "shp", box)
            assert numpy.array_equal(drawn(server, ending, box), expected), (ending, box)
    assert len(numpy.unique(drawn(server, "shp").reshape(-1, 4), axis=0)) > 3
    tiles = {ending: server.get(f"/gmaps/{ending}-tiles/5/16/15.mvt") for ending in FORMATS}
    assert {tile.status for tile in tiles.values()} == {200} and len(tiles["gpkg"].body) > 1000
    assert len(tiles["fgb"].body) > 1000
    info = {ending: json.loads(wms(server, ending, request="GetFeatureInfo", more=f"&QUERY_LAYERS={ending}&INFO_FORMAT=application/json&X=150&Y=150"
                                   "&FEATURE_COUNT=50").body)["features"] for ending in FORMATS}
    shown = {ending: sorted((one["properties"]["number"], one["properties"]["kind"], sorted(set(re.findall(r"-?[0-9.]+", json.dumps(one["geometry"]["coordinates"])))))
                            for one in info[ending]) for ending in FORMATS}
    assert len(shown["shp"]) > 0 and all(shown[ending] == shown["shp"] for ending in FORMATS), shown


def test_data_in_another_crs(start, folder):
    """Squares in degrees, by OGR and by our own reader."""
    path, shape = folder / "far.gpkg", folder / "far.shp"
    for one in (path, shape):
        write(one, 60, 2056)
    server = start([f'<source name="far" type="ogr">{layer_of(path)}</source>', f'<source name="same" type="shapefile">{layer_of(shape)}</source>'])
    box = (-1500000, 3000000, 1500000, 6000000)
    assert numpy.array_equal(drawn(server, "far", box), drawn(server, "same", box)) and drawn(server, "far", box).any()


def test_a_file_that_is_replaced_is_seen(start, folder):
    path = write(folder / "places.gpkg", 50)
    server = start([f'<source name="places" type="ogr">{layer_of(path)}</source>'])
    before = drawn(server, "places")
    os.replace(write(folder / "other.gpkg", 50, seed=4), path)
    assert not numpy.array_equal(drawn(server, "places"), before)
    path.unlink()
    answer = wms(server, "places")
    assert answer.status == 503 and str(folder).encode() not in answer.body and b"" != answer.body
    write(path, 50)
    assert numpy.array_equal(drawn(server, "places"), before)


def test_nothing_is_written(start, folder):
    paths = [write(folder / f"places.{ending}", 50) for ending in ("gpkg", "fgb", "geojson")]
    stamps = [(path.stat().st_mtime_ns, path.stat().st_size) for path in paths]
    server = start([f'<source name="{path.suffix[1:]}" type="ogr">{layer_of(path)}</source>' for path in paths])
    for path in paths:
        drawn(server, path.suffix[1:])
    assert [(path.stat().st_mtime_ns, path.stat().st_size) for path in paths] == stamps
    assert not [path.name for path in folder.iterdir() if path.name.startswith("places") and path not in paths]


def test_what_is_no_such_file(start, folder, build):
    (folder / "text.geojson").write_text("no json at all")
    (folder / "cut.gpkg").write_bytes(write(folder / "whole.gpkg", 500).read_bytes()[:5000])
    raster = gdal.GetDriverByName("GTiff").Create(str(folder / "raster.tif"), 4, 4)
    raster = None
    two = write(folder / "two.gpkg", 5)
    with sqlite3.connect(folder / "plain.gpkg") as db:
        db.execute("create table a(b)")
    assert gdal.VectorTranslate(str(two), str(folder / "whole.gpkg"), layerName="others", accessMode="append") is not None
    names = ["text.geojson", "cut.gpkg", "raster.tif", "plain.gpkg", "none.gpkg", "two.gpkg"]
    sources = [f'<source name="{name}" type="ogr">{layer_of(folder / name)}</source>' for name in names]
    sources.append(f'<source name="one" type="ogr">{layer_of(two, "<table>places</table>")}</source>')
    sources.append(f'<source name="nosuch" type="ogr">{layer_of(two, "<table>nosuch</table>")}</source>')
    server = start(sources)
    for name in names + ["nosuch"]:
        answer = wms(server, name)
        assert answer.status in (500, 502, 503) and str(folder).encode() not in answer.body, name
    assert drawn(server, "one").any()
    found = check(build, folder / "mapcache.xml")
    for words in ("text.geojson is no GeoPackage", "there is no file", "has 2 layers: <table>", 'has no layer "nosuch"'):
        assert any(words in text for _, text in found), (words, found)


def test_check_names_what_is_slow_or_missing(folder, build):
    path = write(folder / "places.geojson", 10)
    bare = write(folder / "bare.gpkg", 10, layer=["SPATIAL_INDEX=NO"])
    config = configure(folder, [f'<source name="a" type="ogr">{layer_of(path, "<attributes>number, nothing</attributes>")}</source>',
                                f'<source name="b" type="ogr">{layer_of(bare)}</source>'])
    found = [text for severity, text in check(build, config) if severity == "warning"]
    assert sum("no spatial index" in text for text in found) == 1 and any('"nothing"' in text for text in found)


def test_a_layer_defined_once_serves_several_sources(start, folder, build):
    """By the name of the source and its own; with a layer of another kind of source above it."""
    ground, above = write(folder / "places.gpkg", 100), write(folder / "above.shp", 30, seed=9)
    server = start([f'<source name="ground" type="ogr">{layer_of(ground)}</source>',
                    f'<source name="both" type="shapefile"><layer of="ground" name="places"/>{layer_of(above).replace("places", "above", 1)}</source>',
                    f'<source name="twice" type="ogr">{layer_of(ground)}{layer_of(ground).replace("places", "again", 1)}</source>',
                    '<source name="alone" type="ogr"><layer name="places" of="both"/></source>'])
    assert numpy.array_equal(drawn(server, "alone"), drawn(server, "ground"))
    assert not numpy.array_equal(drawn(server, "both"), drawn(server, "ground"))
    for text, words in (('<layer of="none" name="places"/>', "not declared before"), ('<layer of="ground" name="nothing"/>', 'no layer "nothing"'),
                        ('<layer of="white" name="places"/>', "no layers of vector data")):
        config = configure(folder, ['<source name="white" type="dummy"/>', f'<source name="ground" type="ogr">{layer_of(ground)}</source>',
                                    f'<source name="x" type="shapefile">{text}</source>'])
        assert any(severity == "error" and words in found for severity, found in check(build, config)), words


def test_limits_of_scale(start, folder):
    """300 pixels over 1000 km: about 1 : 11.9 million."""
    path = write(folder / "places.gpkg", 100)
    limits = {"near": "<max_scale>12000000</max_scale>", "far": "<min_scale>12000000</min_scale>", "between": "<min_scale>11e6</min_scale><max_scale>12e6</max_scale>"}
    server = start([f'<source name="{name}" type="ogr">{layer_of(path, keys)}</source>' for name, keys in limits.items()])
    assert drawn(server, "near").any() and drawn(server, "between").any() and not drawn(server, "far").any()
    wide = (-500000, -500000, 1500000, 1500000)
    assert not drawn(server, "near", wide).any() and not drawn(server, "between", wide).any() and drawn(server, "far", wide).any()
    info = wms(server, "far", request="GetFeatureInfo", more="&QUERY_LAYERS=far&INFO_FORMAT=application/json&X=150&Y=150")
    assert json.loads(info.body)["features"] == []


def test_one_connection_for_all_layers_of_a_source(folder, build):
    layers = '<layer name="a"><table>a</table></layer><layer name="b"><connection>dbname=other</connection><table>b</table></layer>'
    config = configure(folder, [f'<source name="town" type="postgis"><connection>dbname=gis</connection>{layers}</source>'])
    done = subprocess.run([build / "bin/mapcache", "check", config], capture_output=True, text=True, timeout=patience(60))
    assert done.returncode == 0 and "databases: 2" in done.stdout, done.stdout
    config = configure(folder, [f'<source name="town" type="postgis">{layers}</source>'])
    assert any(severity == "error" and 'layer "a" has no <connection>' in text for severity, text in check(build, config))


def test_values_in_columns_are_those_of_features(start, folder):
    """A wanted field of dates has all fields read feature by feature, in a FlatGeobuf one of booleans too; else they come in columns."""
    values = [("wörter \"'\\", 7, -(2 ** 40), 0.1, True), ("", -3, 2 ** 53, 1e300, False), (None, None, None, None, None), ("0", 0, 0, -1 / 3, True),
              ("a" * 5000, 2 ** 31 - 1, 9, 123456789.125, None), ("e\nf", -2 ** 31, 1, 5e-7, False)]
    shapes = ["POLYGON((0 0,9e5 0,9e5 9e5,0 9e5,0 0))", "CURVEPOLYGON(CIRCULARSTRING(0 0,9e5 0,9e5 9e5,0 9e5,0 0))", "GEOMETRYCOLLECTION(POINT(450000 450000),LINESTRING(0 0,9e5 9e5))",
              "MULTIPOLYGON Z(((0 0 1,9e5 0 1,9e5 9e5 1,0 9e5 1,0 0 1)))", "POLYGON EMPTY", None, "MULTIPOINT(450000 450000)"]
    for ending, form in (("gpkg", "GPKG"), ("fgb", "FlatGeobuf")):
        crs = osr.SpatialReference()
        crs.ImportFromEPSG(3857)
        data = ogr.GetDriverByName(form).CreateDataSource(str(folder / f"kinds.{ending}"))
        layer = data.CreateLayer('the "kinds"', crs, ogr.wkbUnknown)
        for name, kind, more in (("kind", ogr.OFTString, 0), ("whole \"1\"", ogr.OFTInteger, 0), ("long", ogr.OFTInteger64, 0), ("real", ogr.OFTReal, 0),
                                 ("yes", ogr.OFTInteger, ogr.OFSTBoolean), ("short", ogr.OFTInteger, ogr.OFSTInt16), ("when", ogr.OFTDate, 0)):
            field = ogr.FieldDefn(name, kind)
            field.SetSubType(more)
            layer.CreateField(field)
        for number, shape in enumerate(shapes):
            for row in values:
                feature = ogr.Feature(layer.GetLayerDefn())
                for at, value in enumerate(row + (number, "2024/02/29")):
                    if value is not None:
                        feature.SetField(at, value)
                if shape is not None:
                    feature.SetGeometry(ogr.CreateGeometryFromWkt(shape))
                layer.CreateFeature(feature)
        layer = data = None
    (folder / "all.sld").write_text(re.sub("<Rule>.*</Rule>", """<Rule><PolygonSymbolizer><Fill/></PolygonSymbolizer><LineSymbolizer><Stroke/></LineSymbolizer>
<PointSymbolizer><Graphic><Mark><WellKnownName>square</WellKnownName><Fill/></Mark><Size>9</Size></Graphic></PointSymbolizer></Rule>""", STYLE, flags=re.S))
    columns = 'kind, whole "1", long, real, short'
    wanted = {"columns": columns, "booleans": columns + ", yes", "features": columns + ", yes, when"}
    server = start([f'<source name="{ending}-{how}" type="ogr">{layer_of(folder / f"kinds.{ending}", f"<attributes>{names}</attributes>").replace("style.sld", "all.sld")}</source>'
                    for ending in ("gpkg", "fgb") for how, names in wanted.items()])
    for ending in ("gpkg", "fgb"):
        for box, kinds in (((-50000, -50000, 950000, 950000), 5), ((440000, 440000, 460000, 460000), 5)):
            found = {how: json.loads(wms(server, f"{ending}-{how}", box, request="GetFeatureInfo", more=f"&QUERY_LAYERS={ending}-{how}"
                                         "&INFO_FORMAT=application/json&X=150&Y=150&FEATURE_COUNT=50").body)["features"] for how in wanted}
            assert all(one["properties"].pop("when").startswith("2024/02/29") for one in found["features"])
            assert found["booleans"] == found["features"]
            assert {one["properties"].pop("yes") for one in found["features"]} == {True, False, None}
            assert found["columns"] == found["features"] and len(found["columns"]) == 6 * kinds, (ending, found)
            texts = {one["properties"]["kind"] for one in found["columns"]}
            assert texts == {row[0] for row in values}, texts


def test_the_deadline_ends_the_reading(start, folder):
    """Between two features or two batches of them; the file serves the next map."""
    paths = [write(folder / f"many.{ending}", 20000) for ending in ("gpkg", "fgb", "geojson")]
    server = start([f'<source name="{path.suffix[1:]}{name}" type="ogr">{deadline}{layer_of(path)}</source>' for path in paths
                    for name, deadline in (("", ""), ("-hurried", "<deadline>.005</deadline>"))])
    for path in paths:
        before = drawn(server, path.suffix[1:])
        hurried = wms(server, path.suffix[1:] + "-hurried")
        assert hurried.status in (503, 504) and b"deadline" in hurried.body, (path, hurried.status, hurried.body)
        assert numpy.array_equal(drawn(server, path.suffix[1:]), before)


@pytest.mark.parametrize("where", ["layer", "contents"])
def test_a_view_without_an_end_ends_with_its_request(start, folder, where):
    """As the layer itself, and as the table that a GeoPackage is opened by."""
    path, good = write(folder / "places.gpkg", 10), write(folder / "good.gpkg", 10)
    endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c WHERE n < 0"
    with contextlib.closing(sqlite3.connect(path)) as database:
        name = {"layer": "places", "contents": "gpkg_contents"}[where]
        database.execute("pragma legacy_alter_table = 1")
        for (trigger,) in database.execute("select name from sqlite_master where type = 'trigger'").fetchall():
            database.execute(f'drop trigger "{trigger}"')
        columns = ", ".join(row[1] for row in database.execute(f"pragma table_info({name})"))
        database.execute(f"alter table {name} rename to renamed")
        database.execute(f"create view {name} as select {columns} from renamed where rowid not in ({endless})")
        database.commit()
    server = start([f'<source name="{file.stem}" type="ogr"><deadline>1</deadline>{layer_of(file, "<table>places</table>")}</source>' for file in (path, good)])
    answer = wms(server, "places")
    assert answer.status in (503, 504) and answer.took < patience(10), (answer.status, answer.took, answer.body, server.log())
    assert drawn(server, "good").any()


def bytes_read(server):
    return int(re.search(r"rchar: (\d+)", open(f"/proc/{server.program.process.pid}/io").read())[1])


def test_geojson_is_parsed_once(start, folder):
    """Its features stay in memory, with all their attributes, for all sources, until the file changes."""
    path, shape = write(folder / "places.geojson", 3000), write(folder / "places.shp", 3000)
    server = start([f'<source name="{name}" type="ogr">{layer_of(path, more)}</source>' for name, more in
                    (("places", ""), ("more", "<attributes>number, kind, nothing</attributes>"))]
                   + [f'<source name="shp" type="shapefile">{layer_of(shape)}</source>'])
    drawn(server, "places", (0, 0, 10, 10))
    before = bytes_read(server)
    boxes = (BOX, (100000, 100000, 300000, 300000), (-500000, -500000, 400000, 400000))
    maps = [drawn(server, "places", box) for box in boxes]
    info = json.loads(wms(server, "more", request="GetFeatureInfo", more="&QUERY_LAYERS=more&INFO_FORMAT=application/json&X=150&Y=150&FEATURE_COUNT=50").body)
    assert bytes_read(server) - before < path.stat().st_size / 4
    assert len(info["features"]) > 3 and all({"number", "kind"} <= set(one["properties"]) and one["properties"]["kind"] for one in info["features"])
    assert all(numpy.array_equal(one, drawn(server, "shp", box)) for one, box in zip(maps, boxes))
    os.replace(write(folder / "other.geojson", 3000, seed=4), path)
    assert not numpy.array_equal(drawn(server, "places"), maps[0])
    path.write_bytes(path.read_bytes()[:5000])
    assert wms(server, "places").status in (500, 502, 503)

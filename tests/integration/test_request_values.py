"""Values that must not get through: of dimensions on every way to a source or another server, control bytes at both front
ends; and what WMS says of default and nearest values."""
import io
import json
import os
import re
import sqlite3
import subprocess

import numpy
import pytest
from conftest import GRID, NGINX_CONFIG, Program, Web, listens, wait_until
from origin import Origin
from osgeo import ogr, osr
from patience import patience
from PIL import Image
from ports import free_port
from schemas import SCHEMAS, validator
from test_feature_info import SCHEMA
from test_requests import TABLE

BOX = "-9000000,-9000000,9000000,9000000"
MAP = f"/mc?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&STYLES=&SRS=EPSG:3857&BBOX={BOX}&WIDTH=90&HEIGHT=90&FORMAT=image/png"
INFO = MAP.replace("GetMap", "GetFeatureInfo") + "&X=45&Y=45"
LEGEND = "/mc?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetLegendGraphic&FORMAT=image/png"
HEIGHTS = '<dimension name="ELEVATION" type="values" default="500" unit="m"><value>500</value><value>490</value>{more}</dimension>'
CODES = '<dimension name="code" type="regex" default="100"><regex>^[0-9]{3}$</regex></dimension>'
DAYS = ('<dimension name="TIME" type="time" default="current" {attributes}><dbfile>{folder}/days.sqlite</dbfile>'
        "<validate_query>select day from days where ts &gt;= :start_timestamp and ts &lt; :end_timestamp</validate_query>"
        "<list_query>select day from days</list_query>{more}</dimension>")


def make_shape(folder, name, wkt):
    reference = osr.SpatialReference()
    reference.ImportFromEPSG(4326)
    data = ogr.GetDriverByName("ESRI Shapefile").CreateDataSource(str(folder / f"{name}.shp"))
    layer = data.CreateLayer(name, reference, ogr.wkbPolygon)
    layer.CreateField(ogr.FieldDefn("name", ogr.OFTString))
    feature = ogr.Feature(layer.GetLayerDefn())
    feature.SetField("name", f"{name} & <b>")
    feature.SetGeometry(ogr.CreateGeometryFromWkt(wkt))
    layer.CreateFeature(feature)


def write_config(folder, origin):
    days = sqlite3.connect(folder / "days.sqlite")
    days.execute("create table days(day text, ts integer)")
    for day in ("2010-01-01", "2010-03-04", "2011-01-01"):
        days.execute("insert into days values(?, strftime('%s', ?))", (day, day))
    days.commit()
    days.close()
    half = sqlite3.connect(folder / "half.sqlite3")
    half.execute(TABLE)
    photo = io.BytesIO()
    Image.new("RGB", (256, 256), (10, 130, 10)).save(photo, "JPEG")
    for z in range(2):
        for x in range(2**z):
            for y in range(2**z):
                half.execute("insert into tiles values('half', ?, ?, ?, ?, ?, '', '2020-01-02 03:04:05')",
                             (GRID, x, y, z, photo.getvalue()))
    half.commit()
    half.close()
    make_shape(folder, "low", "POLYGON((-60 -60,-60 60,60 60,60 -60,-60 -60))")
    make_shape(folder, "high", "POLYGON((-30 -30,-30 30,30 30,30 -30,-30 -30))")
    drawn = "".join(f'<source name="{name}" type="shapefile"><layer name="{name}"><data>{folder}/{name}.shp</data>'
                    "<attributes>name</attributes></layer></source>" for name in ("low", "high"))
    near = "<nearest>true</nearest>"
    sets = {"low": ("low", HEIGHTS.format(more="") + CODES), "high": ("high", ""), "named": ("red", HEIGHTS.format(more="") + CODES),
            "other": ("red", ""), "near": ("red", HEIGHTS.format(more=near)),
            "when": ("red", DAYS.format(folder=folder, attributes="", more=near)),
            "taken": ("red", CODES)}
    tilesets = "".join(f'<tileset name="{name}"><source>{source}</source><cache>disk</cache><grid>{GRID}</grid><format>PNG</format>'
                       + (f"<dimensions>{dimensions}</dimensions>" if dimensions else "") + "</tileset>" for name, (source, dimensions) in sets.items())
    path = folder / "mapcache.xml"
    text = f"""<mapcache>
  <cache name="disk" type="disk"><base>{folder}/disk</base></cache>
  <cache name="half" type="sqlite3"><dbfile>{folder}/half.sqlite3</dbfile></cache>
  {drawn}
  <source name="red" type="wms"><getmap><params><LAYERS>red</LAYERS></params></getmap>
    <getfeatureinfo><info_formats>text/plain,text/html,application/json,application/vnd.ogc.gml,image/png</info_formats>
      <params><QUERY_LAYERS>red</QUERY_LAYERS></params></getfeatureinfo>
    <http><url>{origin}</url></http></source>
  {tilesets}
  <tileset name="half"><cache>half</cache><grid>{GRID}</grid><format>JPEG</format></tileset>
  <service type="wms" enabled="true"><full_wms>FULL</full_wms>
    <forwarding_rule name="taken"><http><url>{origin}</url></http>
      <param name="LAYERS" type="values"><value>taken</value></param></forwarding_rule>
    <forwarding_rule name="wfs"><http><url>{origin}</url></http>
      <param name="SERVICE" type="values"><value>WFS</value></param></forwarding_rule></service>
  <service type="wmts" enabled="true"/><service type="tms" enabled="true"/><service type="gmaps" enabled="true"/>
  <service type="kml" enabled="true"/><service type="ve" enabled="true"/><service type="mapguide" enabled="true"/>
  <service type="demo" enabled="true"/>
  <locker type="disk"><directory>{folder}</directory></locker></mapcache>"""
    path.write_text(text.replace("FULL", "forward"))
    (folder / "assemble.xml").write_text(text.replace("FULL", "assemble"))
    (folder / "strict.xml").write_text(text.replace("FULL", "forward").replace("<full_wms>", "<strict>true</strict><full_wms>"))
    for each in folder.iterdir():
        each.chmod(0o666)
    folder.chmod(0o777)
    return path


@pytest.fixture(scope="module")
def origin():
    with Origin() as running:
        yield running


@pytest.fixture(scope="module")
def config(shared_folder, origin):
    return write_config(shared_folder, origin.url("/wms?"))


@pytest.fixture(scope="module")
def doors(config, shared_folder, shared_apache, build, modules_environment):
    """Apache, and nginx before the FastCGI program, with one configuration."""
    httpd = shared_apache("apache", f"MapCacheAlias /mc {config}\nMapCacheAlias /tiles {shared_folder}/assemble.xml\n"
                          f"MapCacheAlias /strict {shared_folder}/strict.xml\nMapCacheAlias / {shared_folder}/assemble.xml\n")
    home = shared_folder / "nginx"
    home.mkdir(mode=0o777)
    address = str(home / "fcgi.sock")
    program = Program([build / "bin/mapcache.fcgi", "--listen", address], home / "fcgi.log",
                      {"MAPCACHE_CONFIG_FILE": str(config), **modules_environment}, umask=0)
    wait_until(lambda: listens(address) or program.process.poll() is not None, "mapcache.fcgi starts")
    port = free_port()
    (home / "nginx.conf").write_text(NGINX_CONFIG.format(folder=home, port=port, address=f"unix:{address}"))
    nginx = Program(["nginx", "-p", home, "-c", home / "nginx.conf"], home / "nginx.out")
    wait_until(lambda: listens(("127.0.0.1", port)), "nginx starts")
    yield {"apache": httpd, "nginx": Web(nginx, port, home / "nginx.log")}
    nginx.stop()
    program.stop()


@pytest.fixture(scope="module")
def web(doors):
    return doors["apache"]


WRONG = ["ELEVATION=abc", "ELEVATION=505", "DIM_CODE=x'y%25", "CODE=12", "CODE=1234", "DIM_CODE=100%3B%20drop%20table%20x"]


@pytest.mark.parametrize("path", [f"{MAP}&LAYERS=named", f"{MAP}&LAYERS=low", f"{MAP}&LAYERS=other,named",
                                  f"{INFO}&LAYERS=named&QUERY_LAYERS=named&INFO_FORMAT=text/plain",
                                  f"{INFO}&LAYERS=named&QUERY_LAYERS=other,named&INFO_FORMAT=text/plain", f"{LEGEND}&LAYER=low"])
def test_wrong_values_reach_no_source(web, origin, path):
    assert web.get(path).status == 200 and web.get(path + "&ELEVATION=490&DIM_CODE=123").status == 200
    before = len(origin.requests())
    for wrong in WRONG:
        reply = web.get(f"{path}&{wrong}")
        assert reply.status == 400 and b"InvalidDimensionValue" in reply.body, (wrong, reply.body)
    asked = [record["query"] for record in origin.requests()[before:]]
    assert not [query for query in asked if re.search("abc|505|%27|drop|1234", query)], asked


def test_wrong_values_are_not_passed_on(web, origin):
    assert web.get(f"{MAP}&LAYERS=taken&CODE=123").status == 200
    before = len(origin.requests())
    for wrong in WRONG[2:]:
        reply = web.get(f"{MAP}&LAYERS=taken&{wrong}")
        assert reply.status == 400 and b"InvalidDimensionValue" in reply.body, (wrong, reply.body)
    assert len(origin.requests()) == before
    assert web.get(f"{MAP}&LAYERS=taken&CODE=124").status == 200
    assert origin.requests()[-1]["params"]["CODE"] == "124"


def test_the_seeder_takes_no_wrong_values(config, origin, build, modules_environment):
    command = [build / "bin/mapcache_seed", "-c", config, "-t", "named", "-g", GRID, "-z", "0,0", "-q", "-f"]
    before = len(origin.requests())
    for wrong in ("ELEVATION=abc", "code=12", "code=12\n", "code=123\n", "ELEVATION=500\x01"):
        ended = subprocess.run([*command, "-D", wrong], capture_output=True, text=True, timeout=patience(60), check=False,
                               env={**os.environ, **modules_environment})
        assert ended.returncode == 1 and "dimension" in ended.stdout + ended.stderr, (wrong, ended)
    assert len(origin.requests()) == before


CONTROLS = ["%00", "%01", "%09", "%0a", "%0D", "%1f", "%7F"]
PLACES = [MAP.replace("BBOX", "LAYERS=low{}.png&BBOX"), MAP + "&LAYERS=low&UNKNOWN={}", MAP + "&LAYERS=low&ELEVATION=490{}",
          MAP + "&LAYERS=low&B{}=1", INFO + "&QUERY_LAYERS=low{}&INFO_FORMAT=text/plain", LEGEND + "&LAYER=low{}",
          "/mc?SERVICE=WMS&REQUEST=GetCapabilities{}",
          f"/mc/wmts?SERVICE=WMTS&REQUEST=GetTile&LAYER=high{{}}&TILEMATRIXSET={GRID}&TILEMATRIX=0&TILEROW=0&TILECOL=0",
          f"/mc/wmts/1.0.0/high/default/{GRID}/0/0/0.png?x={{}}", "/mc/tms/1.0.0/high/0/0/0.png?a={}", "/mc/gmaps/high/0/0/0.png?a={}",
          f"/mc/ve?layer=high@{GRID}&tile=0{{}}", "/mc/mg/S17/high/R0/C0/0_0.png?a={}", f"/mc/kml/high@{GRID}/0/0/0.kml?a={{}}",
          "/mc/demo?a={}"]


@pytest.mark.parametrize("door", ["apache", "nginx"])
@pytest.mark.parametrize("place", PLACES)
def test_control_bytes_in_parameters(doors, door, place):
    for control in CONTROLS:
        reply = doors[door].get(place.replace("{}", control))
        assert reply.status == 400, (control, reply.status, reply.body[:200])
        assert b"control character" in reply.body
        assert b"xml" not in reply.headers["Content-Type"].encode() or b"InvalidParameterValue" in reply.body
    assert b"control character" not in doors[door].get(place.replace("{}", "")).body


@pytest.mark.parametrize("door", ["apache", "nginx"])
@pytest.mark.parametrize("path", [f"/mc/wmts/1.0.0/high{{}}/default/{GRID}/0/0/0.png", "/mc/tms/1.0.0/high{}/0/0/0.png",
                                  "/mc/gmaps/high/0/0/0{}.png", "/mc/tms/1.0.0/low[code=100{}]/0/0/0.png", "/mc/nosuch{}"])
def test_control_bytes_in_paths(doors, door, path):
    for control in CONTROLS:
        reply = doors[door].get(path.replace("{}", control))
        own = control == "%00" or (door == "nginx" and control == "%0a")  # refused by httpd; in no path of that location
        allowed = (400, 404) if own else (400,)
        assert reply.status in allowed, (control, reply.status, reply.body[:200])


def test_a_forwarding_rule_takes_line_breaks_but_no_zero_bytes(web, origin):
    assert web.get("/mc?SERVICE=WFS&FILTER=a%0A%09b").status == 200
    assert origin.requests()[-1]["params"]["FILTER"] == "a\n\tb"
    assert web.get("/mc?SERVICE=WFS&FILTER=a%00b").status == 400


def ask(web, layers, mime, more=""):
    return web.get(f"{INFO}&LAYERS={layers}&QUERY_LAYERS={layers}&INFO_FORMAT={mime}{more}")


@pytest.mark.parametrize("door", ["apache", "nginx"])
def test_info_of_several_layers(doors, door):
    web = doors[door]
    text = ask(web, "high,other,low", "text/plain").body.decode()
    lines = text.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == ["high 0", "feature at 45,45 of red", "low 0"], text
    back = ask(web, "low,high", "text/plain").body.decode().splitlines()
    assert [line for line in back if not line.startswith(" ")] == ["low 0", "high 0"]
    reply = ask(web, "high,low", "application/json")
    assert reply.status == 200 and reply.headers["Content-Type"] == "application/json"
    answer = json.loads(reply.body)
    assert answer["type"] == "FeatureCollection" and set(answer) == {"type", "features"}
    assert [feature["layer"] for feature in answer["features"]] == ["high", "low"]
    assert answer["features"] == [json.loads(ask(web, layer, "application/json").body)["features"][0] for layer in ("high", "low")]
    page = ask(web, "low,other,high", "text/html").body.decode()
    for tag in ("<!DOCTYPE html>", "<html>", "<body>", "</body>", "</html>"):
        assert page.count(tag) == 1, page
    assert page.index("<caption>low") < page.index("feature at 45,45") < page.index("<caption>high") < page.index("</body>")


def test_info_of_several_layers_where_nothing_lies(web):
    empty = INFO.replace("X=45", "X=0").replace("Y=45", "Y=0")
    reply = web.get(f"{empty}&LAYERS=low&QUERY_LAYERS=high,low&INFO_FORMAT=application/json")
    assert json.loads(reply.body) == {"type": "FeatureCollection", "features": []}


@pytest.mark.skipif(not SCHEMAS.is_dir(), reason=f"no schemas at {SCHEMAS}")
def test_gml_of_several_layers_is_valid(web, tmp_path):
    elements = "".join(f'<xs:element name="{name}" type="mc:all" substitutionGroup="gml:_Feature"/>' for name in ("low", "high"))
    schema = tmp_path / "answer.xsd"
    schema.write_text(SCHEMA.format(schemas=SCHEMAS, elements=elements))
    body = ask(web, "high,low", "application/vnd.ogc.gml").body
    validator(tmp_path)(body, schema)
    assert body.index(b"<mc:high") < body.index(b"<mc:low") and body.count(b"boundedBy>") == 2


def test_answers_that_do_not_fit_together(web):
    for mime, status, code in (("application/vnd.ogc.gml", 502, None), ("application/json", 502, None),
                               ("image/png", 404, b"InvalidFormat")):
        layers = "high,other" if code is None else "other,named"
        reply = ask(web, layers, mime)  # the origin says plain text, whatever it is asked for
        assert reply.status == status, reply.body
        assert code is None or code in reply.body
    reply = web.get(f"{INFO}&QUERY_LAYERS=other,low")
    assert reply.status == 200 and reply.headers["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize("door", ["apache", "nginx"])
def test_default_values_are_told(doors, door):
    web = doors[door]

    def warned(path):
        reply = web.get(path)
        assert reply.status == 200, reply.body
        return reply.headers.get_all("Warning") or []

    assert warned(f"{MAP}&LAYERS=named") == ["99 Default value used: ELEVATION=500 m", "99 Default value used: DIM_code=100"]
    assert warned(f"{MAP}&LAYERS=named&ELEVATION=490") == ["99 Default value used: DIM_code=100"]
    assert warned(f"{MAP}&LAYERS=named,low&ELEVATION=490&DIM_CODE=222") == [] == warned(f"{MAP}&LAYERS=other")
    assert warned(f"{MAP}&LAYERS=when") == ["99 Default value used: TIME=2011-01-01 ISO8601"]
    assert warned(f"{INFO}&QUERY_LAYERS=near&INFO_FORMAT=text/plain") == ["99 Default value used: ELEVATION=500 m"]
    assert warned(f"/mc/wmts/1.0.0/near/default/500/{GRID}/0/0/0.png") == []


def test_nearest_values(web, origin):

    def used(path, name):
        reply = web.get(path)
        assert reply.status == 200, reply.body
        return reply.headers.get_all("Warning"), origin.requests()[-1]["params"][name]

    assert used(f"{MAP}&LAYERS=near&ELEVATION=496", "ELEVATION") == (["99 Nearest value used: ELEVATION=500 m"], "500")
    assert used(f"{MAP}&LAYERS=near&ELEVATION=-1e3", "ELEVATION") == (["99 Nearest value used: ELEVATION=490 m"], "490")
    assert used(f"{MAP}&LAYERS=near&ELEVATION=490", "ELEVATION") == (None, "490")
    assert used(f"{MAP}&LAYERS=when&TIME=2010-02-20", "TIME") == (["99 Nearest value used: TIME=2010-03-04 ISO8601"], "2010-03-04")
    assert used(f"{MAP}&LAYERS=when&TIME=2010", "TIME") == (None, "2010")
    for path in (f"{MAP}&LAYERS=near&ELEVATION=high", f"{MAP}&LAYERS=low&ELEVATION=496", f"{MAP}&LAYERS=when&TIME=soon"):
        reply = web.get(path)
        assert reply.status == 400 and b"InvalidDimensionValue" in reply.body
    assert web.get(f"/mc/wmts/1.0.0/near/default/496/{GRID}/0/0/0.png").status == 400
    for version, expected in (("1.3.0", 2), ("1.1.1", 2)):
        document = web.get(f"/mc?SERVICE=WMS&REQUEST=GetCapabilities&VERSION={version}").body
        assert document.count(b'nearestValue="1"') == expected


def test_a_time_without_data_in_wmts(web):
    query = f"/mc/wmts?SERVICE=WMTS&REQUEST=GetTile&LAYER=when&TILEMATRIXSET={GRID}&TILEMATRIX=0&TILEROW=0&TILECOL=0"
    assert web.get(query + "&TIME=2010-03-04").status == 200
    reply = web.get(query + "&TIME=1999-03-04")
    assert reply.status == 400 and b'exceptionCode="InvalidParameterValue" locator="TIME"' in reply.body, reply.body


def test_a_jpeg_map_over_the_edge_is_white_there(web):
    """Half of the map lies beside the grid: spliced of tiles, resampled, and with BGCOLOR."""
    half = 20037508.342789248
    for box, size in ((f"0,{-half},{2 * half},{half}", 512), (f"0,{-half},{2 * half},{half}", 300)):
        for more, ground in (("", (255, 255, 255)), ("&BGCOLOR=0x102030", (16, 32, 48))):
            reply = web.get(f"/tiles?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS=half&STYLES=&SRS=EPSG:3857&BBOX={box}"
                            f"&WIDTH={size}&HEIGHT={size}&FORMAT=image/jpeg{more}")
            assert reply.status == 200 and reply.headers["Content-Type"] == "image/jpeg", reply.body[:200]
            pixels = numpy.array(Image.open(io.BytesIO(reply.body)).convert("RGB")).astype(int)
            assert abs(pixels[:, -20:] - ground).max() <= 4 and abs(pixels[:, :20] - (10, 130, 10)).max() <= 6


def test_a_strict_service_makes_what_was_asked_for_of_a_sources_answer(web):
    """The origin sends PNG; the service's format is JPEG."""
    for path in (f"{MAP}&LAYERS=other", f"{MAP}&LAYERS=other,near", f"{MAP}&LAYERS=low"):
        reply = web.get(path.replace("/mc", "/strict").replace("image/png", "image/jpeg"))
        assert reply.status == 200 and reply.headers["Content-Type"] == "image/jpeg", reply.body[:200]
        assert Image.open(io.BytesIO(reply.body)).format == "JPEG"
    reply = web.get(f"{MAP}&LAYERS=other".replace("image/png", "image/jpeg"))
    assert reply.headers["Content-Type"] == "image/png" and Image.open(io.BytesIO(reply.body)).format == "PNG"


def test_drawn_layers_are_transparent_png_beside_a_format_of_jpeg(web):
    reply = web.get(f"{MAP}&LAYERS=high&TRANSPARENT=TRUE")
    assert reply.headers["Content-Type"] == "image/png"
    pixels = numpy.array(Image.open(io.BytesIO(reply.body)).convert("RGBA"))
    assert pixels[0, 0, 3] == 0 and pixels[45, 45, 3] == 255
    plain = web.get(f"{MAP}&LAYERS=high".replace("image/png", "image/jpeg"))
    corner = numpy.array(Image.open(io.BytesIO(plain.body)).convert("RGB"))[0, 0]
    assert plain.headers["Content-Type"] == "image/jpeg" and corner.min() > 250, corner


def test_the_address_of_a_whole_host(web):
    """As MapCache writes it: with the slash."""
    document = web.get("/?SERVICE=WMS&REQUEST=GetCapabilities", {"Host": "maps.example"}).body.decode()
    assert "http://maps.example/?" in document or f"http://localhost:{web.port}/?" in document, re.findall('href="[^"]*"', document)
    assert not re.search('href="http://[^/"]*\\?', document)

"""OGC API Maps 1.0 (OGC 20-058): areas, times, other dimensions and fine screens, a test for each abstract test of these classes."""
import math
import re

import pytest
from ogcapi_site import CRS84, LEVELS, SERVICES, YEARS, Api, ground, is_near, links, pixels, problem, write_site
from test_ogcapi_maps import EDGE, LATLON, MERCATOR, SWISS, WORLD, box, size

RULED = """<?xml version="1.0" encoding="UTF-8"?>
<StyledLayerDescriptor version="1.0.0" xmlns="http://www.opengis.net/sld"><NamedLayer><Name>areas</Name><UserStyle><FeatureTypeStyle>
<Rule><MaxScaleDenominator>15000000</MaxScaleDenominator><PolygonSymbolizer><Fill><CssParameter name="fill">#c00000</CssParameter></Fill></PolygonSymbolizer></Rule>
<Rule><MinScaleDenominator>15000000</MinScaleDenominator><PolygonSymbolizer><Fill><CssParameter name="fill">#0000c0</CssParameter></Fill></PolygonSymbolizer></Rule>
</FeatureTypeStyle></UserStyle></NamedLayer></StyledLayerDescriptor>
"""


@pytest.fixture(scope="module")
def api(shared_folder, shared_apache):
    (shared_folder / "ruled.sld").write_text(RULED)
    extra = f"""
  <source name="ruled" type="shapefile"><layer name="areas"><data>{shared_folder}/areas.shp</data><style>{shared_folder}/ruled.sld</style></layer></source>
  <tileset name="ruled"><source>ruled</source><cache>tiles</cache><grid>WGS84</grid><format>PNG</format></tileset>"""
    config = write_site(shared_folder, extra=extra)
    drawing = shared_folder / "drawing.xml"
    drawing.write_text(config.read_text().replace('<service type="wms" enabled="true"/>', '<service type="wms" enabled="true"><full_wms>forward</full_wms></service>'))
    assert "forward" in drawing.read_text() and 'type="wms"' in SERVICES
    web = shared_apache("web", f"MapCacheAlias /mc {config}\nMapCacheAlias /drawing {drawing}\n")
    return Api(web.port)


@pytest.fixture(scope="module")
def drawing(api):
    """The same collections, whose maps the sources draw."""
    return Api(api.port, "/drawing")


# --- spatial subsetting: bbox and bbox-crs


def test_conf_spatial_subsetting_bbox_crs_and_bbox_definition(api):
    """The same area in four orders and CRSs."""
    photo = "/collections/photo/map"
    lonlat = api.get(f"{photo}?bbox=-90,0,90,45&width=100&f=png")
    assert box(lonlat) == pytest.approx([-EDGE / 2, 0, EDGE / 2, 5621521.486], rel=1e-6)
    numbers = ",".join(map(str, box(lonlat)))
    for query in (f"bbox={numbers}&bbox-crs={MERCATOR}", f"bbox=0,-90,45,90&bbox-crs={LATLON}", "bbox=-90,0,-5,90,45,5", f"bbox=-90,0,90,45&bbox-crs={CRS84}"):
        same = api.get(f"{photo}?{query}&width=100&f=png")
        assert same.status == 200, (query, same.body)
        assert box(same) == pytest.approx(box(lonlat), rel=1e-9) and same.body == lonlat.body, query
    assert is_near(pixels(lonlat.body, [(50, size(lonlat)[1] - 1)])[0], ground(0, 0))
    whole = api.get(f"{photo}?bbox=-180,-90,180,90&width=50&f=png")
    assert size(whole) == (50, 50)  # the spherical Mercator ends at 85 degrees
    assert api.get(WORLD + "?bbox-crs=[EPSG:4326]").status == 200  # without bbox of no matter
    for crs in ("[OGC:CRS84h]", CRS84 + "h", CRS84.replace("http:", "https:") + "h"):
        high = api.get(f"{photo}?bbox=-90,0,10000,90,45,12000&bbox-crs={crs}&width=100&f=png")
        assert high.status == 200 and high.body == lonlat.body, crs
    for crs in api.json("/collections/world")["crs"]:  # each CRS of the collection, also of the map
        there = api.get(f"{WORLD}?crs={crs}&bbox=7,46.5,8,47.5&width=64&height=64&f=png")
        again = api.get(f"{WORLD}?crs={crs}&bbox={there.headers['Content-Bbox']}&bbox-crs={crs}&width=64&height=64&f=png")
        assert again.status == 200 and again.body == there.body, crs


@pytest.mark.parametrize("query", [
    "bbox=", "bbox=1,2,3", "bbox=1,2,3,4,5", "bbox=1,2,3,4,5,6,7", "bbox=a,b,c,d", "bbox=0,0,0,0", "bbox=0,10,10,0", "bbox=1e300,0,2e300,1", "bbox=nan,0,1,1", "bbox=0,0,inf,1",
    "bbox=0,0,1,1;", "bbox=" + "1," * 3000, "crs=[EPSG:3857]&bbox=0,89,10,90", "bbox=0,0,1,1&bbox-crs=x", "bbox=0,0,1,1&bbox-crs=[EPSG:0]", "bbox=0,0,1,1&bbox-crs=[EPSG:-3857]", "bbox=0,0,1,1&bbox-crs=[EPSG:2154]",
    "bbox=0,0,1,1&bbox-crs=" + "[" * 3000, "bbox=0,0,1,1&bbox-crs=%00", "bbox=190,-10,-170,10", "bbox=170,10,-170,-10", "bbox=170,-10,-190,10", "crs=[EPSG:2056]&bbox-crs=[EPSG:3857]&bbox=19000000,-10,-19000000,10"])
def test_wrong_boxes(api, query):
    reply = api.get(f"{WORLD}?{query}")
    if query == "bbox=":
        assert reply.status == 200  # counts as not there
    else:
        problem(reply, 400)


OVER_THE_EDGE = [
    ("bbox=170,-10,-170,10", [170, -10, -170, 10]), ("bbox=-10,170,10,-170&bbox-crs=[EPSG:4326]", [170, -10, -170, 10]), ("subset=Lon(170:-170),Lat(-10:10)", [170, -10, -170, 10]),
    ("subset=Lat(-10:10)&subset=Lon(170:-170)&crs=[EPSG:4326]", [-10, 170, 10, -170]), ("bbox=18924313.4348565,-1118889.97485796,-18924313.4348565,1118889.97485796&bbox-crs=[EPSG:3857]", [170, -10, -170, 10]),
    ("bbox=170,-10,-170,10&crs=[EPSG:3857]", [18924313.4348565, -1118889.97485796, -18924313.4348565, 1118889.97485796]),
    ("subset=E(18924313.4348565:-18924313.4348565),N(-1118889.97485796:1118889.97485796)&subset-crs=[EPSG:3857]&crs=[EPSG:3857]", [18924313.4348565, -1118889.97485796, -18924313.4348565, 1118889.97485796])]


@pytest.mark.parametrize("query, wanted", OVER_THE_EDGE)
def test_areas_over_the_antimeridian(api, drawing, query, wanted):
    """OGC 20-058, 13.3, E. Each column has the colour of its longitude, on both sides of the edge, and none is left out: the middle one lies on the edge."""
    for server in (api, drawing):
        for wide in (100, 101):
            reply = server.get(f"{WORLD}?{query}&width={wide}&f=png")
            assert reply.status == 200, reply.body
            assert box(reply) == pytest.approx(wanted, rel=1e-6)
            _, high = size(reply)
            columns = pixels(reply.body, [(x, high // 2) for x in range(wide)])
            assert all(colour[3] == 255 for colour in columns)
            for x in (0, wide // 4, wide // 2 - 2, wide // 2 + 2, wide - 1):
                longitude = 170 + 20 * (x + 0.5) / wide
                assert is_near(columns[x], ground(longitude - (360 if longitude > 180 else 0), 0)), (x, columns[x])


def test_edges_of_areas_over_the_antimeridian(api):
    """What only touches the edge lies on one side of it; nearly all of the world, but for a strip; in a CRS that has no such edge, as PROJ has it."""
    for query, wanted in (("bbox=180,0,-170,10", [-180, 0, -170, 10]), ("bbox=170,0,-180,10", [170, 0, 180, 10]), ("bbox=100,-80,99,80", [100, -80, 99, 80])):
        reply = api.get(f"{WORLD}?{query}&width=60&f=png")
        assert reply.status == 200 and box(reply) == wanted, query
    whole = pixels(api.get(f"{WORLD}?bbox=100,-80,99,80&width=359&f=png").body, [(x, 80) for x in (0, 40, 160, 300)])
    for colour, longitude in zip(whole, (100.5, 140.5, -99.5, 40.5)):
        assert is_near(colour, ground(longitude, 0)), (colour, longitude)
    assert api.get(f"{WORLD}?crs={SWISS}&bbox=170,-10,-170,10&width=20&f=png").status == 200
    void = api.get(f"{WORLD}?bbox=170,80,-170,100&width=20&height=20&f=png&void-color=red")
    assert [colour == (255, 0, 0, 255) for colour in pixels(void.body, [(0, 0), (19, 9), (0, 10), (19, 19)])] == [True, True, False, False]


def test_several_collections_over_the_antimeridian(api):
    both = api.get("/map?collections=photo,years&bbox=170,10,-170,20&width=20&f=png&subset=time(2023)")
    assert both.status == 200
    assert [colour[:3] for colour in pixels(both.body, [(x, 5) for x in (0, 9, 10, 19)])] == [YEARS["2023-05-01"]] * 4
    under = api.get("/map?collections=years,photo&bbox=170,10,-170,20&width=20&f=png&subset=time(2023)")
    for x, longitude in ((2, 172.5), (17, -172.5)):
        assert is_near(pixels(under.body, [(x, 5)])[0], ground(longitude, 15), 12)
    tag = both.headers["ETag"]
    assert api.get("/map?collections=photo,years&bbox=170,10,-170,20&width=20&f=png&subset=time(2023)", {"If-None-Match": tag}).status == 304
    assert api.get("/map?collections=photo,years&bbox=170,10,-171,20&width=20&f=png&subset=time(2023)").headers["ETag"] != tag


# --- spatial subsetting: subset, subset-crs, center, center-crs


def test_conf_spatial_subsetting_subset_crs_and_subset_definition_and_subset_response(api):
    """The same map as that of a bbox."""
    photo = "/collections/photo/map"
    lonlat = api.get(f"{photo}?bbox=-90,0,90,45&width=100&f=png")
    west, south, east, north = box(lonlat)
    for query in ("subset=Lon(-90:90),Lat(0:45)", "subset=lat(0:45)&subset=lon(-90:90)", "subset=Lat(0:45),Long(-90:90)&subset-crs=[EPSG:4326]",
                  f"subset=X({west}:{east}),Y({south}:{north})&subset-crs=[EPSG:3857]", f"subset=N({south}:{north})&subset=E({west}:{east})&subset-crs={MERCATOR}"):
        same = api.get(f"{photo}?{query}&width=100&f=png")
        assert same.status == 200, (query, same.body)
        assert box(same) == pytest.approx(box(lonlat), rel=1e-9) and same.body == lonlat.body, query
    for query, wanted in (("subset=Lat(0:45)", [-180, 0, 180, 45]), ("subset=Lon(*:10)", [-180, -90, 10, 90]), ("subset=Lat(-10:*)", [-180, -10, 180, 90])):
        assert box(api.get(f"{WORLD}?{query}&width=100&f=png")) == wanted
    for beyond in ("Lat(100:110)", "Lon(190:200)", "Lat(-100:-95)", "Lat(110:*)"):
        reply = api.get(f"{WORLD}?subset={beyond}")
        problem(reply, 400 if "*" in beyond else 404)
    problem(api.get(f"{WORLD}?subset=E(30000000:40000000)&subset-crs=[EPSG:3857]"), 404)
    for ignored in ("subset-crs=[EPSG:99]", "subset-crs=x", "center-crs=x", "bbox-crs=x"):  # where nothing stands in that CRS
        assert api.get(f"{WORLD}?{ignored}&width=20").status == 200, ignored
    assert api.get("/collections/years/map?subset-crs=x&subset=time(2023)&width=20").status == 200
    years = api.get("/collections/years/map?subset=Lat(10:80),Lon(-170:-10),time(2023)&width=50&f=png")
    assert pixels(years.body, [(25, 10)])[0][:3] == YEARS["2023-05-01"]


@pytest.mark.parametrize("query", ["subset=Lat(1)", "subset=Lat(2:1)", "subset=Lat(1:1)", "subset=Lat(a:b)", 'subset=Lat("1":"x")', "subset=Lat(1:2),Lat(3:4)", "subset=X(1:2)", "subset=h(1:2)",
                                   "subset=Lat(1:2)&subset-crs=[EPSG:3857]", "subset=Lat(1:2)&subset-crs=x", "subset=Lat(1:2)&bbox=0,0,1,1", "subset=Lat(1:2)&center=1,1", "subset=Lon(-170:170),Lat(2:1)", "subset=Lat(170:-170)",
                                   "subset=Lat(nan:1)", "subset=Lat(1:1e300)", "subset=Lat(1:2),", "subset=Lat(" + "9" * 3000 + ":2)", "subset=Lat(1:2),Lon(", "subset=Lat(1:2)&subset-crs=" + "[" * 2000])
def test_wrong_subsets_of_places(api, query):
    problem(api.get(f"{WORLD}?{query.replace(chr(34), '%22')}"), 400)


def test_conf_spatial_subsetting_center_crs_and_center_definition_and_width_height_and_map_success(api):
    around = api.get(f"{WORLD}?center=7.5,47&scale-denominator=1e6&width=64&height=32&f=png")
    west, south, east, north = box(around)
    assert size(around) == (64, 32) and ((west + east) / 2, (south + north) / 2) == pytest.approx((7.5, 47))
    metres = 6378137 * math.pi / 180
    assert (north - south) * metres == pytest.approx(32 * 280, rel=1e-3) and (east - west) * metres * math.cos(math.radians(47)) == pytest.approx(64 * 280, rel=1e-3)
    assert is_near(pixels(around.body, [(32, 16)])[0], ground(7.5, 47))
    same = api.get(f"{WORLD}?center=47,7.5&center-crs=[EPSG:4326]&scale-denominator=1e6&width=64&height=32&f=png")
    assert box(same) == pytest.approx(box(around), abs=1e-9)
    mercator = api.get("/collections/photo/map?center=7.5,47&scale-denominator=1e6&width=64&f=png")
    assert size(mercator) == (64, 64) and box(mercator)[2] - box(mercator)[0] == pytest.approx(64 * 280 / math.cos(math.radians(47)), rel=1e-2)
    assert size(api.get(f"{WORLD}?center=7.5,47&height=20&f=png")) == (20, 20)
    for wrong in ("center=1", "center=a,b", "center=1,2,3,4", "center=nan,1", "center=1e13,1", "center=1,2&bbox=0,0,1,1", "center=1,2&center-crs=x", "center=1,2&center-crs=[EPSG:2154]", "center=,",
                  "center=1,2&scale-denominator=1e-9", "center=1,2&width=99999"):
        reply = api.get(f"{WORLD}?{wrong}")
        assert reply.status == 400, (wrong, reply.status)


# --- display resolution


def test_conf_display_resolution_mm_per_pixel_definition(api):
    """Pixels of half the size: twice as many for the same area in the same scale."""
    area = f"{WORLD}?bbox=0,-5,10,5&crs={CRS84}&scale-denominator=2e7&f=png"
    wide, high = size(api.get(area))
    assert size(api.get(area + "&mm-per-pixel=0.28")) == (wide, high)
    assert size(api.get(area + "&mm-per-pixel=0.14")) == (pytest.approx(2 * wide, abs=1), pytest.approx(2 * high, abs=1))
    assert size(api.get(f"{WORLD}?bbox=0,-5,10,5&width=50&mm-per-pixel=0.1&f=png")) == (50, 50)
    for wrong in ("0", "-1", "x", "nan", "inf", "1001"):
        problem(api.get(f"{WORLD}?mm-per-pixel={wrong}"), 400, "mm-per-pixel")


def test_conf_display_resolution_map_success(drawing):
    """Rules of a style hold for the scale on that screen, whether its pixels are finer or coarser than usual."""
    area = "/collections/ruled/map?bbox=20,20,40,40&width=400&f=png"  # 1:19.9 million with pixels of 0.28 mm
    red, blue = (192, 0, 0), (0, 0, 192)
    for query, wanted in {"": blue, "&mm-per-pixel=0.28": blue, "&mm-per-pixel=0.42": red, "&mm-per-pixel=0.56": red, "&mm-per-pixel=0.14": blue}.items():
        assert pixels(drawing.get(area + query).body, [(200, 200)])[0][:3] == wanted, query
    closer = "/collections/ruled/map?bbox=20,20,30,30&width=400&f=png"  # 1:9.9 million
    for query, wanted in {"": red, "&mm-per-pixel=0.14": blue, "&mm-per-pixel=0.2": red, "&mm-per-pixel=0.15": blue}.items():
        assert pixels(drawing.get(closer + query).body, [(200, 200)])[0][:3] == wanted, query


# --- datetime


def test_conf_datetime_datetime_definition_and_datetime_response(api):
    area = "/collections/years/map?bbox=-170,10,-10,80&width=50&f=png"
    for query, value in {"2022-03-01": "2022-03-01", "2023-05-01T12:00:00Z": "2023-05-01", "2023-05-01T12:00:00.25Z": "2023-05-01", "2023": "2023-05-01", "2023-05": "2023-05-01", "2023-05-01T12Z": "2023-05-01",
                         "2023-05-01T12:00Z": "2023-05-01", "../2023-12-31": "2023-05-01", "/2023-12-31": "2023-05-01", "2023-06-01/..": "2024-07-01", "2023-06-01/": "2024-07-01", "../..": "2024-07-01", "2022-01-01/2023-12-31T00:00:00Z": "2023-05-01"}.items():
        reply = api.get(f"{area}&datetime={query}")
        assert reply.status == 200 and reply.headers["Content-Datetime"] == value, query
        assert pixels(reply.body, [(25, 10)])[0][:3] == YEARS[value], query
    for outside in ("1999", "2025-01-01/..", "../1999", "2023-05-02T00:00:00Z"):
        problem(api.get(f"{area}&datetime={outside}"), 404)
    for wrong in ("x", "2023-99", "2024/2022", "..", "2023/2024/2025", "20230501T1"):
        problem(api.get(f"{area}&datetime={wrong}"), 400, "datetime")
    assert api.get(f"{WORLD}?datetime=1999&width=20&f=png").body == api.get(f"{WORLD}?width=20&f=png").body  # it has no time, and is always there


def test_conf_datetime_subset_definition_and_subset_response_and_axis_and_map_success(api):
    area = "/collections/years/map?bbox=-170,10,-10,80&width=50&f=png"
    for query, value in {"time(%222023-05-01%22)": "2023-05-01", "Time(2023)": "2023-05-01", "t(2023-05)": "2023-05-01", "T(%222023-05-01T00:00:00Z%22)": "2023-05-01", "datetime(2023)": "2023-05-01", "time(*)": "2024-07-01",
                         "time(*:2023)": "2023-05-01", "time(%222023-06-01%22:*)": "2024-07-01", "time(*:*)": "2024-07-01", "time(%222022-01-01T00:00:00Z%22:%222023-12-31T00:00Z%22)": "2023-05-01"}.items():
        reply = api.get(f"{area}&subset={query}")
        assert reply.status == 200 and reply.headers["Content-Datetime"] == value, (query, reply.body)
        assert pixels(reply.body, [(25, 10)])[0][:3] == YEARS[value], query
    for query, status in {"time(1999)": 404, "time(1998:1999)": 404, "time(2025:*)": 404, "times(2023)": 400, "temps(*)": 400, "time(x)": 400, "time()": 400}.items():
        problem(api.get(f"{area}&subset={query}"), status)
    both = api.get("/collections/years/map?subset=Lat(10:80)&subset=time(2023)&subset=Lon(-170:-10)&width=50&f=png")
    assert pixels(both.body, [(25, 10)])[0][:3] == YEARS["2023-05-01"]


def test_content_datetime_is_a_time(api):
    """As OGC 20-058, 8.2.3 allows one: RFC 3339, or a part of one."""
    for collection in api.json("/collections")["collections"]:
        if "temporal" in collection["extent"] and collection["dataType"] == "map":
            told = api.get(f"/collections/{collection['id']}/map?width=20").headers["Content-Datetime"]
            assert re.fullmatch(r"\d{4}(-\d\d(-\d\d(T\d\d(:\d\d(:\d\d(\.\d+)?)?)?(Z|[+-]\d\d:\d\d))?)?)?", told), told
        elif collection["dataType"] == "map":
            assert "Content-Datetime" not in api.get(links(collection, "map")[0]["href"] + "&width=20").headers


# --- general subsetting


def test_conf_general_subsetting_uniform_additional_dimensions(api):
    """As extent-uad.yaml has them: an interval and what it is of, and where there are values in it."""
    extent = api.json("/collections/levels")["extent"]
    assert set(extent) == {"spatial", "depth"}
    assert extent["depth"]["interval"] == [["50", "500"]] and extent["depth"]["unit"] == "m"
    assert extent["depth"]["grid"] == {"cellsCount": 3, "coordinates": list(LEVELS)}
    page = extent["depth"]["definition"]
    assert page == f"{api.base}ogcapi/collections/levels?f=html#depth" and b'<dt id="depth">' in api.get(page.split("#")[0]).body


def test_conf_general_subsetting_subset_definition(api):
    area = "/collections/levels/map?bbox=-170,10,-10,80&width=50&f=png"
    for query, value in {"": "100", "&subset=depth(50)": "50", "&subset=DEPTH(60:499)": "100", "&subset=depth(*:99)": "50", "&subset=depth(101:*)": "500", "&subset=Lat(20:70)&subset=depth(500)": "500"}.items():
        reply = api.get((area if "Lat" not in query else area.replace("bbox=-170,10,-10,80&", "")) + query)
        assert reply.status == 200, (query, reply.body)
        assert pixels(reply.body, [(5, 10)])[0][:3] == LEVELS[value], query
    for query, status in {"depth(7)": 404, "depth(501:900)": 404, "height(1)": 400, "depth": 400, "depth(1": 400, "pressure(50)": 400}.items():
        problem(api.get(f"{area}&subset={query}"), status)

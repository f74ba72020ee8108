"""OGC API Maps 1.0 (OGC 20-058): a test for each abstract test of the classes that are declared; what else a map is asked by."""
import math
import re

import pytest
from ogcapi_site import CRS84, YEARS, Api, ground, is_near, links, pixels, problem, write_site

MERCATOR, LATLON, SWISS = (f"http://www.opengis.net/def/crs/EPSG/0/{code}" for code in (3857, 4326, 2056))
MAPS = "http://www.opengis.net/spec/ogcapi-maps-1/1.0/conf/"
WORLD = "/collections/world/map"
EDGE = 20037508.342789244


@pytest.fixture(scope="module")
def api(shared_folder, shared_apache):
    config = write_site(shared_folder)
    return Api(shared_apache("web", f"MapCacheAlias /mc {config}\n").port)


def size(reply):
    """Width and height of a PNG."""
    assert reply.status == 200 and reply.body.startswith(b"\x89PNG"), reply.body[:300]
    return int.from_bytes(reply.body[16:20], "big"), int.from_bytes(reply.body[20:24], "big")


def box(reply):
    return [float(number) for number in reply.headers["Content-Bbox"].split(",")]


# --- core


def test_conf_core_map_op(api):
    for collection in api.json("/collections")["collections"]:
        if collection["dataType"] == "map":
            (link,) = [each for each in links(collection, "map") if each["type"] == "image/png"]
            reply = api.get(link["href"], {"Accept": "image/png,image/jpeg"})
            assert reply.status == 200 and reply.headers["Content-Type"] == "image/png", collection["id"]
    problem(api.get("/collections/areas-mvt/map"), 404, "vector tiles")


def test_conf_core_map_response(api):
    """In the storage CRS, with all of the collection, which the headers say."""
    reply = api.get("/collections/photo/map", {"Accept": "image/png"})
    assert reply.headers["Content-Crs"] == f"<{MERCATOR}>" and box(reply) == pytest.approx([-EDGE, -EDGE, EDGE, EDGE], rel=1e-9)
    assert size(reply) == (1024, 1024) and is_near(pixels(reply.body, [(512, 512)])[0], ground(0, 0))
    for query in ("?f=png", "?crs=[OGC:CRS84]&f=png"):
        lonlat = api.get(WORLD + query)
        assert "Content-Crs" not in lonlat.headers and box(lonlat) == [-180, -90, 180, 90] and size(lonlat) == (1024, 512)
    years = api.get("/collections/years/map?f=png")
    assert years.headers["Content-Datetime"] == "2024-07-01"
    again = api.get("/collections/photo/map", {"Accept": "image/png", "If-None-Match": reply.headers["ETag"]})
    assert again.status == 304 and again.headers["Vary"] == "Accept" and again.headers["Content-Bbox"] == reply.headers["Content-Bbox"]


def test_conf_core_conformance_success_of_maps(api):
    declared = {each for each in api.json("/conformance")["conformsTo"] if each.startswith(MAPS)}
    assert declared == {MAPS + name for name in ("core", "crs", "scaling", "display-resolution", "spatial-subsetting", "datetime", "general-subsetting", "background", "collection-map", "dataset-map", "collections-selection", "styled-map", "png", "jpeg", "oas30")}


# --- collection map


def test_conf_collection_map_desc_links(api):
    types = [link["type"] for link in links(api.json("/collections/photo"), "map")]
    assert types == ["image/jpeg", "image/png", "image/webp"] and not links(api.json("/collections/areas-mvt"), "map")


def test_conf_collection_map_desc_crs(api):
    world, photo = api.json("/collections/world"), api.json("/collections/photo")
    assert world["storageCrs"] == CRS84 and set(world["crs"]) >= {CRS84, MERCATOR, SWISS} and "storageCrsBbox" not in world["extent"]["spatial"]
    assert photo["storageCrs"] == MERCATOR and photo["crs"] == [MERCATOR]
    assert photo["extent"]["spatial"]["storageCrsBbox"] == [pytest.approx([-EDGE, -EDGE, EDGE, EDGE], rel=1e-9)]


def test_conf_collection_map_map_operation(api):
    assert api.get("/collections/photo/map").headers["Content-Type"] == "image/jpeg"
    assert api.get("/collections/photo/map", {"Accept": "image/webp"}).headers["Content-Type"] == "image/webp"


# --- crs


@pytest.mark.parametrize("crs", [MERCATOR, MERCATOR.replace("http:", "https:"), "[EPSG:3857]", "EPSG:3857", "urn:ogc:def:crs:EPSG::3857"])
def test_conf_crs_crs_definition(api, crs):
    reply = api.get(f"{WORLD}?crs={crs}&bbox=0,0,90,45&width=90&f=png")
    assert reply.status == 200 and reply.headers["Content-Crs"] == f"<{MERCATOR}>"


def test_conf_crs_map_success(api):
    """One place in four CRSs: the same colour in the middle of each map."""
    for collection_crs in api.json("/collections/world")["crs"]:
        reply = api.get(f"{WORLD}?crs={collection_crs}&bbox=7,46.5,8,47.5&width=64&height=64&f=png")
        assert reply.status == 200, reply.body
        assert is_near(pixels(reply.body, [(32, 32)])[0], ground(7.5, 47)), collection_crs
    latitude_first = api.get(f"{WORLD}?crs=[EPSG:4326]&bbox=7,46,8,47&width=10&f=png")
    assert box(latitude_first) == [46, 7, 47, 8] and latitude_first.headers["Content-Crs"] == f"<{LATLON}>"
    for wrong in ("[EPSG:32632]", "EPSG:99999999999", "x", "[]", "[", "http://example.com/", "urn:ogc:def:crs:EPSG::", "[EPSG:3857", "EPSG:3857]", "%5B" * 500, "'%22%3Cb%3E"):
        problem(api.get(f"{WORLD}?crs={wrong}"), 400, "crs")


# --- scaling


def test_conf_scaling_width_definition(api):
    area = f"{WORLD}?bbox=-90,-45,90,45&crs={CRS84}&f=png"
    assert size(api.get(area + "&width=300")) == (300, 150) and size(api.get(area + "&width=300&height=20")) == (300, 20)
    assert size(api.get(area)) == (1024, 512)
    for wrong in ("0", "-1", "1.5", "x", "2049", "99999999999999999999", "1e3"):
        problem(api.get(f"{area}&width={wrong}"), 400, "width")
    problem(api.get(area + "&width=100&scale-denominator=1e6"), 400)
    around = api.get(f"{WORLD}?width=100&scale-denominator=1e6&f=png")  # without an area: around the middle
    assert size(around) == (100, 100) and box(around) == pytest.approx([-0.1257641, -0.1257641, 0.1257641, 0.1257641], rel=1e-5)


def test_conf_scaling_height_definition(api):
    area = f"{WORLD}?bbox=-90,-45,90,45&crs={CRS84}&f=png"
    assert size(api.get(area + "&height=100")) == (200, 100)
    for wrong in ("0", "-1", "1.5", "x", "2049", "99999999999999999999"):
        problem(api.get(f"{area}&height={wrong}"), 400, "height")
    problem(api.get(area + "&height=2000"), 400)  # 4000 wide
    problem(api.get(area + "&height=100&scale-denominator=1e6"), 400)


def test_conf_scaling_scale_denominator_definition(api):
    """Metres in the middle of the map, for pixels of 0.28 mm."""
    metres = 6378137 * math.pi / 180 * 10  # ten degrees of the equator
    wide, high = size(api.get(f"{WORLD}?bbox=0,-5,10,5&crs={CRS84}&scale-denominator=1e7&f=png"))
    assert wide == high == pytest.approx(metres / 1e7 / 0.00028, abs=1)
    wide, high = size(api.get(f"{WORLD}?bbox=0,55,10,65&crs={CRS84}&scale-denominator=1e7&f=png"))
    assert (wide, high) == (pytest.approx(metres / 2 / 1e7 / 0.00028, abs=1), pytest.approx(metres / 1e7 / 0.00028, abs=1))
    mercator = size(api.get(f"/collections/photo/map?bbox=0,59.9,10,60.1&scale-denominator=1e7&f=png"))
    assert mercator == (pytest.approx(metres / 2 / 1e7 / 0.00028, abs=2), pytest.approx(metres / 50 / 1e7 / 0.00028, abs=1))
    for wrong in ("0", "-5", "x", "nan", "inf", "1e-9", "1"):
        problem(api.get(f"{WORLD}?bbox=0,0,10,10&scale-denominator={wrong}"), 400)


# --- several collections


def test_conf_dataset_map_landingpage_and_desc_extent_and_desc_crs(api):
    landing = api.json("")
    (link,) = links(landing, "map")
    assert api.get(link["href"]).headers["Content-Type"] == link["type"] == "image/png"
    assert landing["extent"]["spatial"]["bbox"] == [[-180, -90, 180, 90]] and landing["storageCrs"] == CRS84 and {CRS84, MERCATOR, SWISS} <= set(landing["crs"])


def test_conf_dataset_map_operation(api):
    """Without more words, the map of the first collection of images."""
    assert api.get("/map?width=90&f=png").body == api.get(f"{WORLD}?width=90&f=png").body
    problem(api.get("/map?datetime=x"), 400)


def test_conf_collections_selection_collections_parameter(api):
    area = "bbox=-30,-30,60,60&width=90&f=png"
    only = api.get(f"/collections/areas/map?{area}").body
    for value in ("areas", f"{api.base}ogcapi/collections/areas", f"{api.base}ogcapi/collections/areas?f=json"):
        assert api.get(f"/map?collections={value.replace('?', '%3F')}&{area}").body == only
    for wrong in ("nothing", "areas,nothing", ",", "areas,", "areas-mvt", "a/b", f"{api.base}ogcapi/collections/a%252Fb", "http://example.com/areas", "x" * 5000, ",".join(["areas"] * 257)):
        problem(api.get(f"/map?collections={wrong}&{area}"), 400, "collection")
    problem(api.get(f"/map?collections=areas,levels&crs=[EPSG:2056]&{area}"), 400)


def test_conf_collections_selection_collections_response(api):
    """The first one is at the bottom; what is not named is not shown."""
    area = f"bbox=-30,-30,60,60&width=90&height=90&crs={MERCATOR}&f=png"
    areas, world = (api.get(f"/collections/{name}/map?{area}").body for name in ("areas", "world"))
    over, under = (api.get(f"/map?collections={both}&{area}") for both in ("world,areas", "areas,world"))
    assert over.status == under.status == 200
    inside, outside = (60, 50), (35, 15)
    assert pixels(areas, [outside])[0][3] == 0 and pixels(areas, [inside])[0][3] > 0
    assert pixels(under.body, [inside, outside]) == pixels(world, [inside, outside])
    assert pixels(over.body, [outside]) == pixels(world, [outside])
    assert pixels(over.body, [inside]) != pixels(world, [inside])
    again = api.get(f"/map?collections=world,areas&{area}", {"If-None-Match": over.headers["ETag"]})
    assert again.status == 304


def test_the_crs_of_several_collections_is_one_that_all_have(api):
    """Alone the one has maps in degrees, the other in metres."""
    area = "bbox=-30,-30,60,60&width=90&f=png"
    for both in ("world,areas", "areas,world"):
        assert api.get(f"/map?collections={both}&{area}").headers["Content-Crs"] == f"<{MERCATOR}>"
    assert api.get(f"/map?collections=world,photo&crs={CRS84}&{area}").status == 400


def test_axes_of_several_collections(api):
    """Each collection takes the axes that it has; one at least has each."""
    area = "bbox=-170,10,-10,80&width=50&f=png"
    both = api.get(f"/map?collections=years,levels&{area}&subset=time(2023),depth(50)")
    assert both.status == 200 and pixels(both.body, [(25, 10)])[0][:3] == (10, 20, 30)
    assert pixels(api.get(f"/map?collections=levels,years&{area}&subset=time(2023),depth(50)").body, [(25, 10)])[0][:3] == YEARS["2023-05-01"]
    problem(api.get(f"/map?collections=years,levels&{area}&subset=height(50)"), 400)


# --- background


def void_area(api, query):
    """A map that goes on beyond the poles: a pixel there, and one of the world."""
    reply = api.get(f"{WORLD}?bbox=-180,-120,180,120&width=60&height=40&{query}")
    assert reply.status == 200, reply.body
    return pixels(reply.body, [(30, 1), (30, 20)])


def test_conf_background_void_color_definition(api):
    inside = void_area(api, "f=png")[1]
    for query, wanted in {"void-color=00FF00": (0, 255, 0, 255), "void-color=0x00ff00": (0, 255, 0, 255), "void-color=nAvY": (0, 0, 128, 255), "void-color=%23102030": (16, 32, 48, 255),
                          "bgcolor=CC00CC": (204, 0, 204, 255), "bgcolor=red&void-color=blue": (0, 0, 255, 255)}.items():
        for form in ("png", "webp"):
            void, within = void_area(api, f"{query}&f={form}")
            assert is_near(void, wanted, 0 if form == "png" else 12) and is_near(within, inside), (query, form, void)
    assert is_near(void_area(api, "void-color=00FF00&f=jpeg")[0], (0, 255, 0), 12)
    for wrong in ("0x00FF0", "nocolour", "", "#" * 1000, "x" * 41):
        reply = api.get(f"{WORLD}?void-color={wrong}".replace("#", "%23"))
        assert reply.status == (200 if wrong == "" else 400), wrong
    edge = 2 * EDGE
    mercator = api.get(f"/collections/photo/map?bbox={-edge},{-edge},{edge},{edge}&bbox-crs={MERCATOR}&width=40&height=40&void-color=lime&f=png")
    assert pixels(mercator.body, [(9, 20), (30, 20), (20, 9), (20, 30)]) == [(0, 255, 0, 255)] * 4
    assert all(is_near(colour, ground(0, 0), 40) for colour in pixels(mercator.body, [(19, 19)]))
    same = api.get(f"{WORLD}?bbox=-180,-120,180,120&width=60&height=40&f=png&void-color=lime")
    other = api.get(f"{WORLD}?bbox=-180,-120,180,120&width=60&height=40&f=png&void-color=red")
    assert same.headers["ETag"] != other.headers["ETag"]
    assert api.get(f"{WORLD}?bbox=0,0,9,9&width=60&f=png&void-color=lime").body == api.get(f"{WORLD}?bbox=0,0,9,9&width=60&f=png").body
    empty = api.get(f"{WORLD}?bbox=-10,100,10,110&width=20&height=10&f=png&void-color=red")
    assert pixels(empty.body, [(0, 0), (19, 9)]) == [(255, 0, 0, 255)] * 2


def test_conf_background_void_transparent_definition(api):
    for query, opacity in {"": 0, "transparent=false": 255, "transparent=false&void-transparent=true": 0, "void-transparent=false": 255, "bgcolor=red&void-transparent=true": 0,
                           "void-color=red&void-transparent=true": 0, "transparent=true": 0}.items():
        assert void_area(api, f"f=png&{query}")[0][3] == opacity, query
    problem(api.get(f"{WORLD}?void-transparent=maybe"), 400, "void-transparent")


def test_conf_background_bgcolor_definition_and_transparent_definition_and_map_success(api):
    empty = "/collections/areas/map?bbox=-170,70,-160,75&width=20&height=20"
    wanted = {"": (0,), "&transparent=true": (0,), "&transparent=false": (255, 255, 255, 255), "&bgcolor=0xFF8000": (255, 128, 0, 255), "&bgcolor=ff8000&transparent=false": (255, 128, 0, 255),
              "&bgcolor=%23FF8000": (255, 128, 0, 255), "&bgcolor=0xFF8000&transparent=true": (0,), "&f=jpeg": (255, 255, 255, 255)}
    for query, colour in wanted.items():
        reply = api.get(empty + ("" if "f=" in query else "&f=png") + query)
        assert reply.status == 200, reply.body
        (found,) = pixels(reply.body, [(10, 10)])
        assert found[-len(colour):] == colour, (query, found)
    assert pixels(api.get(f"{empty}&f=png&bgcolor=ReD").body, [(10, 10)])[0] == (255, 0, 0, 255)
    for wrong in ("0xFF800", "redd", "0xGGGGGG", "FF80001", "%23", "0x", "#" * 1000):
        problem(api.get(f"{empty}&bgcolor={wrong}".replace("#", "%23")), 400, "bgcolor")
    problem(api.get(empty + "&transparent=maybe"), 400, "transparent")


# --- encodings


def test_conf_png_content_and_conf_jpeg_content_of_maps(api):
    for mime, begins in (("image/png", b"\x89PNG"), ("image/jpeg", b"\xff\xd8\xff"), ("image/webp", b"RIFF")):
        reply = api.get(f"{WORLD}?bbox=0,0,60,60&width=100", {"Accept": f"{mime}, text/html;q=0.5"})
        assert reply.headers["Content-Type"] == mime and reply.body.startswith(begins) and "Accept" in reply.headers["Vary"]
        assert api.get(f"{WORLD}?bbox=0,0,60,60&width=100&f={mime[6:]}").body == reply.body
        assert is_near(pixels(reply.body, [(50, 99)])[0], ground(30, 0.3), 14)
    problem(api.get(WORLD, {"Accept": "text/html"}), 406)
    problem(api.get(WORLD + "?f=gif"), 400)


def test_conf_oas30_of_maps(api):
    """The definition names the operation as OGC 20-058, table 10 says, and all of its parameters."""
    operation = api.json("/api")["paths"]["/collections/{collectionId}/map"]["get"]
    assert operation["operationId"].endswith(".collection.getMap")
    assert [each["name"] for each in operation["parameters"]] == ["collectionId", "crs", "bbox", "bbox-crs", "subset-crs", "center", "center-crs", "width", "height", "scale-denominator", "mm-per-pixel", "bgcolor", "transparent", "void-color", "void-transparent", "f", "datetime", "subset"]
    assert re.match(r"image/", next(iter(operation["responses"]["200"]["content"])))

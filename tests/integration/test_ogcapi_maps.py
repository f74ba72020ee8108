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
    assert declared == {MAPS + name for name in ("core", "crs", "scaling", "collection-map", "png", "jpeg", "oas30")}


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


# --- bbox and bbox-crs


def test_bbox_and_bbox_crs(api):
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


@pytest.mark.parametrize("query", [
    "bbox=", "bbox=1,2,3", "bbox=1,2,3,4,5", "bbox=1,2,3,4,5,6,7", "bbox=a,b,c,d", "bbox=0,0,0,0", "bbox=10,0,-10,10", "bbox=0,10,10,0", "bbox=1e300,0,2e300,1", "bbox=nan,0,1,1", "bbox=0,0,inf,1",
    "bbox=0,0,1,1;", "bbox=" + "1," * 3000, "crs=[EPSG:3857]&bbox=0,89,10,90", "bbox=0,0,1,1&bbox-crs=x", "bbox=0,0,1,1&bbox-crs=[EPSG:0]", "bbox=0,0,1,1&bbox-crs=[EPSG:-3857]", "bbox=0,0,1,1&bbox-crs=[EPSG:2154]",
    "bbox=0,0,1,1&bbox-crs=" + "[" * 3000, "bbox=0,0,1,1&bbox-crs=%00", "bbox=170,-10,-170,10"])
def test_wrong_boxes(api, query):
    reply = api.get(f"{WORLD}?{query}")
    if query == "bbox=":
        assert reply.status == 200  # counts as not there
    else:
        problem(reply, 400)


# --- scaling


def test_conf_scaling_width_definition(api):
    area = f"{WORLD}?bbox=-90,-45,90,45&crs={CRS84}&f=png"
    assert size(api.get(area + "&width=300")) == (300, 150) and size(api.get(area + "&width=300&height=20")) == (300, 20)
    assert size(api.get(area)) == (1024, 512)
    for wrong in ("0", "-1", "1.5", "x", "2049", "99999999999999999999", "1e3"):
        problem(api.get(f"{area}&width={wrong}"), 400, "width")
    problem(api.get(area + "&width=100&scale-denominator=1e6"), 400)
    problem(api.get(f"{WORLD}?width=100&scale-denominator=1e6"), 400)


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


# --- background, which is declared by no class: it wants colours by name, and a second colour beyond the edge of the CRS


def test_background(api):
    empty = "/collections/areas/map?bbox=-170,70,-160,75&width=20&height=20"
    wanted = {"": (0,), "&transparent=true": (0,), "&transparent=false": (255, 255, 255, 255), "&bgcolor=0xFF8000": (255, 128, 0, 255), "&bgcolor=ff8000&transparent=false": (255, 128, 0, 255),
              "&bgcolor=%23FF8000": (255, 128, 0, 255), "&bgcolor=0xFF8000&transparent=true": (0,), "&f=jpeg": (255, 255, 255, 255)}
    for query, colour in wanted.items():
        reply = api.get(empty + ("" if "f=" in query else "&f=png") + query)
        assert reply.status == 200, reply.body
        (found,) = pixels(reply.body, [(10, 10)])
        assert found[-len(colour):] == colour, (query, found)
    for wrong in ("0xFF800", "red", "0xGGGGGG", "FF80001", "%23", "0x", "#" * 1000):
        problem(api.get(f"{empty}&bgcolor={wrong}".replace("#", "%23")), 400, "bgcolor")
    problem(api.get(empty + "&transparent=maybe"), 400, "transparent")


# --- encodings and times


def test_conf_png_content_and_conf_jpeg_content_of_maps(api):
    for mime, begins in (("image/png", b"\x89PNG"), ("image/jpeg", b"\xff\xd8\xff"), ("image/webp", b"RIFF")):
        reply = api.get(f"{WORLD}?bbox=0,0,60,60&width=100", {"Accept": f"{mime}, text/html;q=0.5"})
        assert reply.headers["Content-Type"] == mime and reply.body.startswith(begins) and "Accept" in reply.headers["Vary"]
        assert api.get(f"{WORLD}?bbox=0,0,60,60&width=100&f={mime[6:]}").body == reply.body
        assert is_near(pixels(reply.body, [(50, 99)])[0], ground(30, 0.3), 14)
    problem(api.get(WORLD, {"Accept": "text/html"}), 406)
    problem(api.get(WORLD + "?f=gif"), 400)


def test_a_map_of_a_time(api):
    for query, value in {"datetime=2022-03-01": "2022-03-01", "datetime=../2023-12-31": "2023-05-01", "subset=time(%222023-05-01%22)": "2023-05-01"}.items():
        reply = api.get(f"/collections/years/map?bbox=-170,10,-10,80&width=50&f=png&{query}")
        assert reply.status == 200 and reply.headers["Content-Datetime"] == value
        assert pixels(reply.body, [(25, 10)])[0][:3] == YEARS[value]
    problem(api.get("/collections/years/map?datetime=1999"), 404)


def test_conf_oas30_of_maps(api):
    """The definition names the operation as OGC 20-058, table 10 says, and all of its parameters."""
    operation = api.json("/api")["paths"]["/collections/{collectionId}/map"]["get"]
    assert operation["operationId"].endswith(".collection.getMap")
    assert [each["name"] for each in operation["parameters"]] == ["collectionId", "crs", "bbox", "bbox-crs", "width", "height", "scale-denominator", "bgcolor", "transparent", "f", "datetime", "subset"]
    assert re.match(r"image/", next(iter(operation["responses"]["200"]["content"])))

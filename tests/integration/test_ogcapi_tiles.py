"""OGC API Tiles 1.0 (OGC 20-057) and tile matrix sets (OGC 17-083r4): a test for each abstract test of the classes that are declared."""
import json
import math
import re

import pytest
from ogcapi_site import CRS84, LEVELS, REL, YEARS, Api, ground, is_near, links, pixels, problem, write_site

TILES = "http://www.opengis.net/spec/ogcapi-tiles-1/1.0/conf/"
REGISTER = "http://www.opengis.net/def/tilematrixset/OGC/1.0/"
WORLD = "/collections/world/map/tiles"
VECTOR = "/collections/areas-mvt/tiles"
MVT = "application/vnd.mapbox-vector-tile"


@pytest.fixture(scope="module")
def api(shared_folder, shared_apache):
    config = write_site(shared_folder)
    return Api(shared_apache("web", f"MapCacheAlias /mc {config}\n").port)


def middle_of_tile(z, row, column):
    """Degrees of the middle of a tile of WebMercatorQuad."""
    n = 2**z
    return (column + 0.5) / n * 360 - 180, math.degrees(math.atan(math.sinh(math.pi * (1 - 2 * (row + 0.5) / n))))


# --- core


def test_conf_core_tc_op(api):
    for template in (f"{WORLD}/WebMercatorQuad", f"{VECTOR}/WebMercatorQuad"):
        tileset = api.json(template)
        href = links(tileset, "item")[0]["href"].format(tileMatrix=1, tileRow=0, tileCol=1)
        assert api.get(href).status == 200


def test_conf_core_tc_tilematrix_definition(api):
    matrices = api.json("/tileMatrixSets/WebMercatorQuad")["tileMatrices"]
    assert [matrix["id"] for matrix in matrices] == [str(z) for z in range(25)]
    for z in ("0", "3"):
        assert api.get(f"{WORLD}/WebMercatorQuad/{z}/0/0").status == 200
    for wrong in ("x", "-1", "01x", "99999999999999999999", "22"):
        problem(api.get(f"{WORLD}/WebMercatorQuad/{wrong}/0/0"), 404)


@pytest.mark.parametrize("z, row, column", [(0, 0, 0), (1, 0, 1), (2, 3, 0), (3, 2, 6)])
def test_conf_core_tc_tilerow_definition_and_tc_tilecol_definition(api, z, row, column):
    """Rows count from the top, columns from the left: the colour in the middle is that of the place."""
    reply = api.get(f"{WORLD}/WebMercatorQuad/{z}/{row}/{column}")
    (colour,) = pixels(reply.body, [(128, 128)])
    assert is_near(colour, ground(*middle_of_tile(z, row, column))), colour
    for path in (f"{z}/{2**z}/0", f"{z}/0/{2**z}", f"{z}/-1/0", f"{z}/0/x", f"{z}/0/4294967296"):
        problem(api.get(f"{WORLD}/WebMercatorQuad/{path}"), 404)


@pytest.mark.parametrize("accept, mime", [("image/png", "image/png"), ("image/jpeg", "image/jpeg"), ("image/webp", "image/webp"),
                                          ("image/jpeg;q=0.5, image/png", "image/png"), ("*/*", "image/png"), ("image/*", "image/png")])
def test_conf_core_tc_success(api, accept, mime):
    reply = api.get(f"{WORLD}/WebMercatorQuad/1/1/0", {"Accept": accept})
    assert reply.status == 200 and reply.headers["Content-Type"] == mime and "Accept" in reply.headers["Vary"]
    assert is_near(pixels(reply.body, [(128, 128)])[0], ground(*middle_of_tile(1, 1, 0)))


def test_conf_core_tc_error(api):
    limits = {each["tileMatrix"]: each for each in api.json("/collections/part/map/tiles/WebMercatorQuad")["tileMatrixSetLimits"]}
    assert list(limits) == ["1", "2", "3"]
    assert limits["2"] == {"tileMatrix": "2", "minTileRow": 0, "maxTileRow": 1, "minTileCol": 2, "maxTileCol": 3}
    part = "/collections/part/map/tiles/WebMercatorQuad"
    assert api.get(f"{part}/2/0/2").status == api.get(f"{part}/2/1/3").status == 200
    for outside in ("2/2/2", "2/0/1", "0/0/0", "4/0/9"):
        problem(api.get(f"{part}/{outside}"), 404)
    missing = api.get("/collections/years/map/tiles/WebMercatorQuad/1/1/1")  # nothing is stored there
    assert missing.status == 200 and missing.headers["Content-Type"] == "image/png"
    for f in ("png", "jpeg", "webp"):  # a blank tile of the type that was asked for
        for headers, query in (({}, f"?f={f}"), ({"Accept": f"image/{f}"}, "")):
            blank = api.get(f"/collections/years/map/tiles/WebMercatorQuad/1/1/1{query}", headers)
            assert blank.status == 200 and blank.headers["Content-Type"] == f"image/{f}"
            assert len(set(pixels(blank.body, [(0, 0), (128, 128), (255, 255)]))) == 1
    empty = api.get(f"{VECTOR}/WebMercatorQuad/3/0/0")  # no feature lies there
    assert empty.status in (200, 204)


def test_conf_core_conformance_success(api):
    declared = api.json("/conformance")["conformsTo"]
    assert {TILES + name for name in ("core", "tileset", "tilesets-list", "geodata-tilesets", "dataset-tilesets", "collections-selection", "datetime", "oas30", "png", "jpeg", "mvt")} <= set(declared)
    assert len(declared) == len(set(declared))


# --- tileset


@pytest.mark.parametrize("path, kind, mimes", [(f"{WORLD}/WebMercatorQuad", "map", ["image/png", "image/jpeg", "image/webp"]),
                                               (f"{WORLD}/swiss", "map", ["image/png", "image/jpeg", "image/webp"]),
                                               ("/collections/photo/map/tiles/WebMercatorQuad", "map", ["image/jpeg", "image/png", "image/webp"]),
                                               (f"{VECTOR}/WebMercatorQuad", "vector", [MVT])])
def test_conf_tileset_description_and_conf_json_tilesetmetadata(api, path, kind, mimes):
    tileset = api.json(path, {"Accept": "application/json"})
    check_tileset_metadata(tileset)
    assert tileset["dataType"] == kind
    name = path.rsplit("/", 1)[1]
    assert tileset.get("tileMatrixSetURI") == (REGISTER + name if name.endswith("Quad") else None)
    scheme = api.json(links(tileset, "tiling-scheme")[0]["href"])
    check_tile_matrix_set(scheme)
    assert scheme["id"] == name and scheme["crs"] == tileset["crs"]
    items = links(tileset, "item")
    assert [item["type"] for item in items] == mimes
    for item in items:
        assert item["templated"] is True and {"tileMatrix", "tileRow", "tileCol"} == set(re.findall(r"\{(\w+)\}", item["href"]))
        reply = api.get(item["href"].format(tileMatrix=0, tileRow=0, tileCol=0))
        assert reply.status == 200 and reply.headers["Content-Type"] == item["type"]


def test_a_vector_tile_set_names_its_layers(api):
    (layer,) = api.json(f"{VECTOR}/WebMercatorQuad")["layers"]
    assert (layer["id"], layer["dataType"]) == ("areas", "vector")
    assert layer["propertiesSchema"]["properties"] == {"name": {"type": "string"}, "lanes": {"type": "number"}}


def test_tilejson(api):
    for path, tile_type in ((f"{WORLD}/WebMercatorQuad", "image/png"), (f"{VECTOR}/WebMercatorQuad", MVT)):
        document = api.json(path + "?f=tilejson")
        assert document["tilejson"] == "3.0.0" and document["scheme"] == "xyz" and document["minzoom"] == 0
        reply = api.get(document["tiles"][0].format(z=1, y=0, x=1))
        assert reply.status == 200 and reply.headers["Content-Type"] == tile_type
    assert api.json(f"{VECTOR}/WebMercatorQuad?f=tilejson")["vector_layers"][0]["id"] == "areas"
    assert api.json(f"{WORLD}/swiss?f=tilejson")["crs"] == "EPSG:2056"


def check_tileset_metadata(tileset):
    """OGC 17-083r4, table 14, as the standard's tables have names, types and obligations."""
    assert tileset["dataType"] in ("map", "vector", "coverage")
    assert isinstance(tileset["crs"], str) and tileset["crs"].startswith("http")
    box = tileset["boundingBox"]
    assert len(box["lowerLeft"]) == len(box["upperRight"]) == 2 and box["crs"] == tileset["crs"]
    for limits in tileset["tileMatrixSetLimits"]:
        assert set(limits) == {"tileMatrix", "minTileRow", "maxTileRow", "minTileCol", "maxTileCol"} and isinstance(limits["tileMatrix"], str)
        assert 0 <= limits["minTileRow"] <= limits["maxTileRow"] and 0 <= limits["minTileCol"] <= limits["maxTileCol"]
    check_links(tileset["links"])


def check_links(found):
    assert found
    for link in found:
        assert isinstance(link["href"], str) and link["href"].startswith("http") and isinstance(link["rel"], str)
        assert set(link) <= {"href", "rel", "type", "title", "templated"}


# --- tilesets list


@pytest.mark.parametrize("path, ids", [(WORLD, ["WebMercatorQuad", "WorldCRS84Quad", "swiss", "WorldMercatorWGS84Quad-grid"]), (VECTOR, ["WebMercatorQuad", "WorldCRS84Quad"])])
def test_conf_tilesets_list_tileset_links(api, path, ids):
    """The grid g has the tiles of WebMercatorQuad, too, and is not listed again."""
    document = api.json(path, {"Accept": "application/json"})
    assert [tileset["tileMatrixSetId"] for tileset in document["tilesets"]] == ids
    for tileset, name in zip(document["tilesets"], ids):
        assert tileset["dataType"] == ("vector" if path == VECTOR else "map")
        (own,) = links(tileset, "self")
        assert own["href"] == f"{api.base}ogcapi{path}/{name}"
        full = api.json(own["href"])
        assert (full["crs"], full.get("tileMatrixSetURI")) == (tileset["crs"], tileset.get("tileMatrixSetURI"))
        assert links(tileset, "tiling-scheme")[0]["href"] == f"{api.base}ogcapi/tileMatrixSets/{name}"


# --- geodata tilesets


def test_conf_geodata_tilesets_desc_links(api):
    for name, rel in (("world", "tilesets-map"), ("areas-mvt", "tilesets-vector")):
        (link,) = links(api.json(f"/collections/{name}"), rel)
        assert link["rel"] == REL + rel and api.json(link["href"])["tilesets"]


def test_conf_geodata_tilesets_operation(api):
    for collection in api.json("/collections")["collections"]:
        middle = "" if collection["dataType"] == "vector" else "/map"
        own = links(collection, "self")[0]["href"]
        assert api.json(f"{own}{middle}/tiles")["tilesets"]


# --- tiles of the dataset


def test_conf_dataset_tilesets_landingpage(api):
    for rel in ("tilesets-map", "tilesets-vector"):
        (link,) = links(api.json(""), rel)
        assert link["rel"] == REL + rel and api.json(link["href"])["tilesets"]


@pytest.mark.parametrize("path, collections, ids", [("/map/tiles", None, ["WebMercatorQuad", "WorldCRS84Quad", "swiss", "WorldMercatorWGS84Quad-grid"]), ("/map/tiles", "world,areas", ["WebMercatorQuad"]),
                                                    ("/map/tiles", "areas,world,years", ["WebMercatorQuad"]), ("/tiles", None, ["WebMercatorQuad", "WorldCRS84Quad"]),
                                                    ("/tiles", "areas-mvt", ["WebMercatorQuad", "WorldCRS84Quad"])])
def test_conf_dataset_tilesets_operation(api, path, collections, ids):
    """Each link of the lists and of their tile sets leads on, with the same collections."""
    query = f"?collections={collections}" if collections else ""
    document = api.json(path + query)
    assert [tileset["tileMatrixSetId"] for tileset in document["tilesets"]] == ids
    assert api.get(links(document, "alternate")[0]["href"]).status == 200
    for tileset, name in zip(document["tilesets"], ids):
        (own,) = links(tileset, "self")
        assert own["href"] == f"{api.base}ogcapi{path}/{name}{query}"
        full = api.json(own["href"])
        check_tileset_metadata(full)
        assert len(links(full, "geodata")) == (len(collections.split(",")) if collections else 1)
        limits = full["tileMatrixSetLimits"][0]
        for item in links(full, "item"):
            reply = api.get(item["href"].format(tileMatrix=limits["tileMatrix"], tileRow=limits["minTileRow"], tileCol=limits["minTileCol"]))
            assert reply.status == 200 and reply.headers["Content-Type"] == item["type"], item
        for link in links(full, "describedby"):
            reply = api.get(api.json(link["href"])["tiles"][0].format(z=limits["tileMatrix"], y=limits["minTileRow"], x=limits["minTileCol"]))
            assert reply.status == 200


def test_a_tile_of_several_collections(api):
    """The first one is at the bottom; where one collection has no tile, the others are shown as the wanted type."""
    tile = "/map/tiles/WebMercatorQuad/1/0/1"
    alone = [api.get(f"/collections/{name}{tile}").body for name in ("world", "areas")]
    over, under = (api.get(f"{tile}?collections={both}&f=png") for both in ("world,areas", "areas,world"))
    inside, outside = (50, 200), (200, 50)  # 35 degrees east, 48 north, and beyond
    assert pixels(alone[1], [outside])[0][3] == 0 and pixels(alone[1], [inside])[0][3] > 0
    assert pixels(under.body, [inside, outside]) == pixels(alone[0], [inside, outside])
    assert pixels(over.body, [outside]) == pixels(alone[0], [outside]) and pixels(over.body, [inside]) != pixels(alone[0], [inside])
    assert api.get(f"{tile}?collections=world,areas", {"Accept": "image/webp"}).headers["Content-Type"] == "image/webp"
    assert api.get(f"{tile}?collections=world,areas&f=png", {"If-None-Match": over.headers["ETag"]}).status == 304
    west = "/map/tiles/WebMercatorQuad/2/0/0?collections=photo,part&f=png"  # the part begins in the east
    reply = api.get(west)
    assert reply.status == 200 and reply.headers["Content-Type"] == "image/png" and reply.body.startswith(b"\x89PNG")
    assert is_near(pixels(reply.body, [(128, 128)])[0], ground(*middle_of_tile(2, 0, 0)), 12)
    timed = api.get("/map/tiles/WebMercatorQuad/0/0/0?collections=years,levels&subset=time(2023),depth(500)&f=png")
    assert pixels(timed.body, [(9, 9)])[0][:3] == LEVELS["500"]
    assert api.get(f"{tile}?f=png").body == alone[0]  # without names the first collection
    for wrong, status in (("collections=world,nothing", 400), ("collections=areas-mvt", 400), ("collections=,", 400), ("collections=world,areas&f=gif", 400), ("collections=world,areas&subset=height(1)", 400)):
        problem(api.get(f"{tile}?{wrong}"), status)
    problem(api.get("/map/tiles/swiss/0/0/0?collections=world,areas"), 404, "areas")
    problem(api.get("/map/tiles/swiss?collections=areas,world"), 404, "areas")
    problem(api.get("/map/tiles/nothing/0/0/0?collections=world"), 404)
    problem(api.get("/map/tiles/WebMercatorQuad/1/2/0?collections=world,areas"), 404)
    problem(api.get("/map/tiles/WebMercatorQuad?collections=world,areas&f=tilejson"), 400, "one collection")
    problem(api.get("/tiles/WebMercatorQuad/0/0/0?collections=areas-mvt,areas-mvt"), 400, "not merged")
    problem(api.get("/tiles?collections=world"), 400, "images")


@pytest.mark.parametrize("collections", ["world", "world,areas", "areas,world,years", "photo,photo"])
def test_conf_tiles_collections_selection_query_collections_and_collections_response(api, collections):
    """The layers of the tile set are the collections in their order, as names and as addresses; without the parameter it is the first collection. Tiles: test_a_tile_of_several_collections."""
    names = collections.split(",")
    addresses = ",".join(f"{api.base}ogcapi/collections/{name}" for name in names)
    for value in (collections, addresses):
        tileset = api.json(f"/map/tiles/WebMercatorQuad?collections={value}")
        assert [(layer["id"], layer["dataType"]) for layer in tileset["layers"]] == [(name, "map") for name in names]
        assert all(layer["title"] for layer in tileset["layers"])
        assert api.get(f"/map/tiles/WebMercatorQuad/0/0/0?collections={value}&f=png").body == api.get(f"/map/tiles/WebMercatorQuad/0/0/0?collections={collections}&f=png").body
    (own,) = api.json("/map/tiles/WebMercatorQuad")["layers"]
    assert own["id"] == "world"
    (vector,) = api.json("/tiles/WebMercatorQuad?collections=areas-mvt")["layers"]  # of vector tiles, the layers in them
    assert (vector["id"], vector["dataType"]) == ("areas", "vector")
    assert api.get("/tiles/WebMercatorQuad/0/0/0?collections=areas-mvt").body == api.get("/collections/areas-mvt/tiles/WebMercatorQuad/0/0/0").body


def test_limits_of_several_collections_are_around_all(api):
    both = api.json("/map/tiles/WebMercatorQuad?collections=part,areas")["tileMatrixSetLimits"]
    part, areas = ({each["tileMatrix"]: each for each in api.json(f"/collections/{name}/map/tiles/WebMercatorQuad")["tileMatrixSetLimits"]} for name in ("part", "areas"))
    for limits in both:
        parts = [each[limits["tileMatrix"]] for each in (part, areas) if limits["tileMatrix"] in each]
        for name in ("minTileRow", "minTileCol"):
            assert limits[name] == min(each[name] for each in parts)
        for name in ("maxTileRow", "maxTileCol"):
            assert limits[name] == max(each[name] for each in parts)


# --- datetime


def test_conf_datetime_datetime_axis(api):
    tile = "/collections/years/map/tiles/WebMercatorQuad/0/0/0"
    interval = api.json("/collections/years")["extent"]["temporal"]["interval"]
    assert interval == [["2022-03-01T00:00:00Z", "2024-07-01T23:59:59Z"]]
    wanted = {"": "2024-07-01", "?datetime=2022-03-01": "2022-03-01", "?datetime=2023-05-01T12:00:00Z": "2023-05-01", "?datetime=2023": "2023-05-01",
              "?datetime=2022-01-01/2023-12-31": "2023-05-01", "?datetime=../2022-12-31": "2022-03-01", "?datetime=2023-01-01T00:00:00Z/..": "2024-07-01",
              "?datetime=/2023-06-01": "2023-05-01", '?subset=time("2022-03-01")': "2022-03-01", '?subset=time("2022-01-01":"2023-12-31")': "2023-05-01",
              '?subset=Time(*:"2022-12-31")': "2022-03-01", "?subset=time(*)": "2024-07-01", "?subset=t(2023)": "2023-05-01", '?subset=datetime("2023-05-01T00:00:00Z")': "2023-05-01", "?subset=datetime(2022)": "2022-03-01"}
    for query, value in wanted.items():
        reply = api.get(tile + query.replace('"', "%22"))
        assert reply.status == 200, (query, reply.body)
        assert pixels(reply.body, [(9, 9)])[0][:3] == YEARS[value], query
    for outside in ("?datetime=1999", "?datetime=../1999-01-01", "?datetime=2025-01-01/..", "?subset=time(%221999%22)", "?datetime=2023-05-02/2023-05-03"):
        problem(api.get(tile + outside), 404)
    for wrong in ("?datetime=yesterday", "?datetime=2023-13-01", "?datetime=2024/2022", "?datetime=..", "?datetime=a/b", "?subset=time(%22x%22)", "?datetime=P1D",
                  "?datetime=2023%00", "?datetime=" + "2023," * 30):
        problem(api.get(tile + wrong), 400)
    assert api.get(f"{WORLD}/WebMercatorQuad/0/0/0?datetime=1999-01-01").status == 200  # without times, all of it is of every time


def test_subset_of_another_dimension(api):
    tile = "/collections/levels/map/tiles/WebMercatorQuad/0/0/0"
    extent = api.json("/collections/levels")["extent"]["depth"]
    assert extent["interval"] == [["50", "500"]] and extent["grid"] == {"cellsCount": 3, "coordinates": list(LEVELS)} and extent["unit"] == "m"
    for query, value in {"": "100", "?subset=depth(50)": "50", "?subset=DEPTH(60:499)": "100", "?subset=depth(*:99)": "50", "?subset=depth(101:*)": "500",
                         "?subset=depth(%2250%22)": "50", "?subset=depth(*)": "500"}.items():
        reply = api.get(tile + query)
        assert reply.status == 200, (query, reply.body)
        assert pixels(reply.body, [(9, 9)])[0][:3] == LEVELS[value], query
    problem(api.get(tile + "?subset=depth(7)"), 404)
    problem(api.get(tile + "?subset=depth(501:900)"), 404)
    for wrong in ("depth", "depth(", "depth()", "depth(1", "(1)", "depth(1)depth(2)", "depth(1),", "depth(%221)", "depth(1:2:3)", "height(1)", "Lat(1:2)",
                  ",".join(["depth(50)"] * 17)):
        problem(api.get(f"{tile}?subset={wrong}"), 400)
    assert api.get(tile + "?subset=depth(50)&subset=time(*)").status == 200


# --- encodings


@pytest.mark.parametrize("mime, begins", [("image/png", b"\x89PNG\r\n\x1a\n"), ("image/jpeg", b"\xff\xd8\xff")])
def test_conf_png_content_and_conf_jpeg_content(api, mime, begins):
    for collection in ("world", "photo", "areas"):
        reply = api.get(f"/collections/{collection}/map/tiles/WebMercatorQuad/1/0/1", {"Accept": mime})
        assert reply.status == 200 and reply.headers["Content-Type"] == mime and reply.body.startswith(begins)
        if collection != "areas":
            assert is_near(pixels(reply.body, [(128, 128)])[0], ground(*middle_of_tile(1, 0, 1)), 12)


def test_conf_mvt_content(api):
    for accept in (MVT, "*/*", "application/*"):
        reply = api.get(f"{VECTOR}/WebMercatorQuad/1/0/1", {"Accept": accept})
        assert reply.status == 200 and reply.headers["Content-Type"] == MVT and b"areas" in reply.body and b"north" in reply.body
    assert api.get(f"{VECTOR}/WebMercatorQuad/1/0/1?f=mvt", {"Accept": "text/plain"}).status == 200
    problem(api.get(f"{VECTOR}/WebMercatorQuad/1/0/1", {"Accept": "image/png"}), 406)


# --- tile matrix sets


def check_tile_matrix_set(document):
    """OGC 17-083r4, tables 5 and 6."""
    assert isinstance(document["crs"], str) and len(document["orderedAxes"]) == 2
    scales = []
    for matrix in document["tileMatrices"]:
        assert isinstance(matrix["id"], str) and len(matrix["pointOfOrigin"]) == 2 and matrix["cornerOfOrigin"] == "topLeft"
        assert all(isinstance(matrix[name], int) and matrix[name] >= 1 for name in ("tileWidth", "tileHeight", "matrixWidth", "matrixHeight"))
        scales.append(matrix["scaleDenominator"])
    assert scales == sorted(scales, reverse=True) and min(scales) > 0


# OGC 17-083r4, annex D: the CRS, the first scale and cell, the corner, how many levels, tiles of the first one.
REGISTERED = {
    "WebMercatorQuad": ("http://www.opengis.net/def/crs/EPSG/0/3857", 559082264.028717, 156543.033928041, [-20037508.3427892, 20037508.3427892], 25, (1, 1)),
    "WorldCRS84Quad": (CRS84, 279541132.014358, 0.703125, [-180, 90], 24, (2, 1)),
}


@pytest.mark.parametrize("name", REGISTERED)
def test_conf_tms_json_tilematrixset_of_registered_sets(api, name):
    document = api.json(f"/tileMatrixSets/{name}")
    check_tile_matrix_set(document)
    crs, scale, cell, corner, levels, (columns, rows) = REGISTERED[name]
    assert (document["id"], document["uri"], document["crs"]) == (name, REGISTER + name, crs)
    assert len(document["tileMatrices"]) == levels
    for z, matrix in enumerate(document["tileMatrices"]):
        assert matrix["scaleDenominator"] == pytest.approx(scale / 2**z, rel=1e-12) and matrix["cellSize"] == pytest.approx(cell / 2**z, rel=1e-12)
        assert matrix["pointOfOrigin"] == pytest.approx(corner, abs=1e-7)
        assert (matrix["tileWidth"], matrix["tileHeight"], matrix["matrixWidth"], matrix["matrixHeight"]) == (256, 256, columns << z, rows << z)


def test_conf_tms_json_tilematrixset_of_own_grids(api):
    listed = {each["id"]: each for each in api.json("/tileMatrixSets")["tileMatrixSets"]}
    assert set(listed) == {"WebMercatorQuad", "WorldCRS84Quad", "swiss", "WorldMercatorWGS84Quad-grid"}
    assert {name for name, each in listed.items() if "uri" in each} == set(REGISTERED)
    swiss = api.json(links(listed["swiss"], "self")[0]["href"])
    check_tile_matrix_set(swiss)
    assert swiss["crs"] == "http://www.opengis.net/def/crs/EPSG/0/2056" and swiss["orderedAxes"] == ["E", "N"]
    assert [(m["cellSize"], m["pointOfOrigin"], m["matrixWidth"], m["matrixHeight"]) for m in swiss["tileMatrices"]] == [
        (2000, [2400000, 1384000], 1, 1), (1000, [2400000, 1384000], 2, 2), (500, [2400000, 1384000], 4, 3)]
    (colour,) = pixels(api.get(f"{WORLD}/swiss/0/0/0").body, [(100, 92)])  # Bern, E 2600000 N 1200000
    assert is_near(colour, ground(7.44, 46.95)), colour
    own = api.json("/tileMatrixSets/WorldMercatorWGS84Quad-grid")  # of 512 pixels: not the one that is registered under that name
    check_tile_matrix_set(own)
    assert "uri" not in own and own["tileMatrices"][0]["tileWidth"] == 512
    problem(api.get("/tileMatrixSets/WorldMercatorWGS84Quad"), 404)
    problem(api.get("/tileMatrixSets/GoogleMapsCompatible"), 404)


def test_conf_tms_json_tilematrixsetlimits_and_tilematrixsetlimits(api):
    """OGC 17-083r4, table 8: limits lie in the matrices of the set, and name them by their identifiers."""
    for path, sizes in ((f"{WORLD}/swiss", {"0": (1, 1), "1": (2, 2), "2": (4, 3)}), ("/collections/part/map/tiles/WebMercatorQuad", {"1": (2, 2), "2": (4, 4), "3": (8, 8)})):
        found = {each["tileMatrix"]: each for each in api.json(path)["tileMatrixSetLimits"]}
        assert set(found) == set(sizes)
        for name, (columns, rows) in sizes.items():
            first, last = (columns // 2, rows // 2 - 1) if "part" in path else (0, rows - 1)
            assert (found[name]["minTileCol"], found[name]["maxTileCol"]) == (first, columns - 1)
            assert (found[name]["minTileRow"], found[name]["maxTileRow"]) == (0, last)


def test_a_stored_tile_has_the_bytes_and_validators_of_wmts(api):
    tile = api.get(f"{WORLD}/WebMercatorQuad/2/1/3")
    wmts = api.get(f"{api.base}wmts/1.0.0/world/default/GoogleMapsCompatible/2/1/3.png")
    assert tile.body == wmts.body and tile.headers["ETag"] == wmts.headers["ETag"]
    again = api.get(f"{WORLD}/WebMercatorQuad/2/1/3", {"If-None-Match": tile.headers["ETag"]})
    assert again.status == 304 and again.body == b"" and again.headers["Vary"] == "Accept"
    assert "Vary" not in api.get(f"{WORLD}/WebMercatorQuad/2/1/3?f=png").headers
    assert json.loads(api.get(f"{WORLD}/WebMercatorQuad").body)["mediaTypes"] == ["image/png", "image/jpeg", "image/webp"]

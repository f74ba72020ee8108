"""The definition of the OGC API as OpenAPI 3.0, checked by PyPI's openapi-spec-validator, which script/bootstrap puts into build/openapi."""
import json
import pathlib
import re
import subprocess
import sys

import pytest
from ogcapi_site import Api, links, write_site
from patience import patience

VALIDATOR = pathlib.Path(__file__).resolve().parents[2] / "build" / "openapi"
# OGC 20-057, table 15: the ends of the identifiers of operations.
IDS = ["collection.map.getTileSetsList", "collection.map.getTileSet", "collection.map.getTile", "collection.vector.getTileSetsList", "collection.vector.getTileSet",
       "collection.vector.getTile", "getTileMatrixSetsList", "getTileMatrixSet"]


@pytest.fixture(scope="module")
def api(shared_folder, shared_apache):
    config = write_site(shared_folder)
    return Api(shared_apache("web", f"MapCacheAlias /mc {config}\n").port)


@pytest.fixture(scope="module")
def definition(api):
    return api.json("/api")


def validate(text):
    check = "import json, sys; from openapi_spec_validator import validate; validate(json.load(sys.stdin))"
    return subprocess.run([sys.executable, "-c", check], input=text, capture_output=True, text=True, timeout=patience(60), env={"PYTHONPATH": str(VALIDATOR)})


def test_conf_oas30_oas_definition_1_and_2(definition):
    told = validate(json.dumps(definition))
    assert told.returncode == 0, told.stderr
    broken = json.loads(json.dumps(definition))
    del broken["info"]["title"]
    assert validate(json.dumps(broken)).returncode != 0  # the validator finds something


def test_conf_oas30_completeness(api, definition):
    """Each link of the documents is of a path of the definition, with the parameters that the resource needs."""
    assert definition["servers"] == [{"url": f"{api.base}ogcapi"}]
    limits = definition["info"]["x-OGC-limits"]["maps"]
    assert limits == {"maxWidth": 2048, "maxHeight": 2048, "maxPixels": 64 << 20}
    assert api.get(f"/collections/world/map?width={limits['maxWidth']}&height=2").status == 200 and api.get(f"/collections/world/map?width={limits['maxWidth'] + 1}&height=2").status == 400
    patterns = [re.compile(re.sub(r"\{\w+\}", "[^/]+", path.rstrip("/")) + "$") for path in definition["paths"]]
    todo, seen = [""], set()
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        assert any(pattern.match(path) for pattern in patterns), path
        reply = api.get(path)
        assert reply.status == 200, path
        if "json" not in reply.headers["Content-Type"]:
            continue
        for link in re.findall(r'"href":"([^"]+)"', json.dumps(json.loads(reply.body), separators=(",", ":"))):
            href = link.split("?")[0].removeprefix(f"{api.base}ogcapi")
            if not href.startswith("http") and "{" not in href:
                todo.append(href)
            elif "{" in href:
                assert any(pattern.match(href) for pattern in patterns), href
    assert len(seen) > 30
    tile = definition["paths"]["/collections/{collectionId}/map/tiles/{tileMatrixSetId}/{tileMatrix}/{tileRow}/{tileCol}"]["get"]
    assert [(each["name"], each["in"]) for each in tile["parameters"]] == [
        ("collectionId", "path"), ("tileMatrixSetId", "path"), ("tileMatrix", "path"), ("tileRow", "path"), ("tileCol", "path"),
        ("f", "query"), ("datetime", "query"), ("subset", "query")]
    assert tile["parameters"][0]["schema"]["enum"] == [each["id"] for each in api.json("/collections")["collections"]]
    assert set(tile["responses"]["200"]["content"]) == {"image/png", "image/jpeg", "image/webp"}


def test_conf_oas30_operation_id(definition):
    ids = [path["get"]["operationId"] for path in definition["paths"].values()]
    assert len(ids) == len(set(ids))
    for end in IDS:
        assert any(each.endswith("." + end) for each in ids), end


def test_conf_oas30_oas_impl_and_exception_codes(api, definition):
    """Each path answers with a status and a media type that the definition names."""
    names = {"collectionId": "world", "tileMatrixSetId": "WebMercatorQuad", "tileMatrix": "1", "tileRow": "0", "tileCol": "0"}
    for path, methods in definition["paths"].items():
        vector = {**names, "collectionId": "areas-mvt"} if path.startswith("/collections/{collectionId}/tiles") else names
        for values in (vector, {**vector, "collectionId": "nothing"}):
            values = {**values, "styleId": "world:default" if path.startswith("/styles") else "default"}
            reply = api.get(path.format(**values))
            answers = methods["get"]["responses"][str(reply.status)]["content"]
            assert reply.headers["Content-Type"] in answers, (path, reply.headers["Content-Type"])
        assert {"400", "404", "406"} <= set(methods["get"]["responses"])


def test_conf_oas30_security(definition):
    """Nothing here asks for a key: so says the definition."""
    assert "security" not in definition and "securitySchemes" not in definition["components"]


def test_the_page_of_the_definition_has_all_paths(api, definition):
    page = api.get("/api?f=html").body.decode()
    assert all(path in page for path in definition["paths"]) and links(api.json(""), "service-doc")

"""Every JSON document of the OGC API against a JSON Schema (ogcapi_schemas.py), by PyPI's jsonschema, which script/bootstrap puts into build/openapi."""
import copy
import json
import pathlib
import subprocess
import sys

import ogcapi_schemas as schemas
import pytest
from ogcapi_site import Api, links, write_site
from patience import patience

VALIDATOR = pathlib.Path(__file__).resolve().parents[2] / "build" / "openapi"
CHECK = """import json, sys, jsonschema
for document, schema in json.load(sys.stdin):
    jsonschema.Draft202012Validator.check_schema(schema)
    print(json.dumps([error.json_path + ": " + error.message[:300] for error in jsonschema.Draft202012Validator(schema).iter_errors(document)]))"""


@pytest.fixture(scope="module")
def api(shared_folder, shared_apache):
    config = write_site(shared_folder)
    return Api(shared_apache("web", f"MapCacheAlias /mc {config}\n").port)


def mistakes(pairs):
    """What is wrong with each document, of pairs with its schema."""
    done = subprocess.run([sys.executable, "-c", CHECK], input=json.dumps(pairs), capture_output=True, text=True, timeout=patience(60), env={"PYTHONPATH": str(VALIDATOR)})
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def documents(api):
    """The address of each document with its schema: all of them, by the links that lead there."""
    yield from (("", schemas.LANDING), ("/conformance", schemas.CONFORMANCE), ("/collections", schemas.COLLECTIONS), ("/tileMatrixSets", schemas.TILE_MATRIX_SETS), ("/styles", schemas.STYLES))
    for each in api.json("/tileMatrixSets")["tileMatrixSets"]:
        yield links(each, "self")[0]["href"], schemas.TILE_MATRIX_SET
    lists = ["/map/tiles", "/tiles", "/map/tiles?collections=world,areas"]
    for collection in api.json("/collections")["collections"]:
        yield links(collection, "self")[0]["href"], schemas.COLLECTION
        lists += [link["href"] for rel in ("tilesets-map", "tilesets-vector") for link in links(collection, rel)]
        for link in links(collection, "styles"):
            yield link["href"], schemas.STYLES
    for style in api.json("/styles")["styles"]:
        yield links(style, "describedby")[0]["href"], schemas.STYLE
    for address in lists:
        yield address, schemas.TILE_SETS
        for tileset in api.json(address)["tilesets"]:
            yield links(tileset, "self")[0]["href"], schemas.TILE_SET


def test_every_document_is_valid(api):
    wanted = list(documents(api))
    assert len(wanted) > 50
    found = mistakes([(api.json(address), schema) for address, schema in wanted])
    assert {address: wrong for (address, _), wrong in zip(wanted, found) if wrong} == {}


def test_every_problem_is_valid(api):
    wrong = ["/nothing", "/collections/nothing", "/collections?f=x", "/collections/world/map?width=0", "/collections/years/map?datetime=1999", "/collections/world/map/tiles/WebMercatorQuad/1/9/9"]
    assert mistakes([(json.loads(api.get(path).body), schemas.PROBLEM) for path in wrong]) == [[]] * len(wrong)


def test_the_schemas_find_something(api):
    """One document of each kind, of which a member that has to be there is taken away, or has another type."""
    for path, schema, key in (("", schemas.LANDING, "links"), ("/conformance", schemas.CONFORMANCE, "conformsTo"), ("/collections/levels", schemas.COLLECTION, "id"), ("/tileMatrixSets/swiss", schemas.TILE_MATRIX_SET, "crs"),
                              ("/collections/world/map/tiles/swiss", schemas.TILE_SET, "dataType")):
        document = api.json(path)
        less, other = copy.deepcopy(document), copy.deepcopy(document)
        del less[key]
        other[key] = 7
        good, *bad = mistakes([(document, schema), (less, schema), (other, schema)])
        assert good == [] and all(bad), path
    levels = api.json("/collections/levels")
    del levels["extent"]["depth"]["definition"]
    assert mistakes([(levels, schemas.COLLECTION)]) != [[]]

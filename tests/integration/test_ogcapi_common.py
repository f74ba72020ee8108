"""OGC API Common, parts 1 and 2 (OGC 19-072, OGC 20-024): a test for each abstract test of the classes that are declared."""
import html.parser
import json
import pathlib
import re

import pytest
from ogcapi_site import CRS84, REL, Api, links, problem, write_site

COMMON = "http://www.opengis.net/spec/ogcapi-common-"
DOCUMENTS = ["", "/map/tiles", "/map/tiles/WebMercatorQuad", "/tiles", "/conformance", "/api", "/collections", "/collections/world", "/collections/world/map/tiles", "/collections/world/map/tiles/WebMercatorQuad",
             "/collections/areas-mvt/tiles", "/collections/areas-mvt/tiles/WebMercatorQuad", "/collections/years", "/tileMatrixSets", "/tileMatrixSets/WebMercatorQuad"]


@pytest.fixture(scope="module")
def api(shared_folder, shared_apache):
    config = write_site(shared_folder)
    return Api(shared_apache("web", f"MapCacheAlias /mc {config}\n").port)


# --- part 1: core and landing page


def test_conf_core_http(api):
    """HTTP 1.1: methods, HEAD, validators, and what is not there."""
    whole = api.get("")
    head = api.get("", method="HEAD")
    assert (head.status, head.body) == (200, b"") and head.headers["Content-Length"] == str(len(whole.body))
    assert api.get("", {"If-None-Match": whole.headers["ETag"]}).status == 304
    for method in ("POST", "PUT", "DELETE"):
        reply = api.get("/collections", method=method)
        assert reply.headers["Allow"] == "GET, HEAD, OPTIONS"
        problem(reply, 405)
    problem(api.get("/nothing"), 404, "/ogcapi has links")


def test_conf_landing_page_root_op_and_root_success(api):
    """Also at the address with a slash at its end, and with all links that lead somewhere."""
    document = api.json("")
    assert document == api.json("/") and document["title"] == 'Maps & "more" <here>' and document["description"] == "All that the tests need."
    for rel in ("self", "alternate", "service-desc", "service-doc", "conformance", "data", "tiling-schemes"):
        for link in links(document, rel):
            reply = api.get(link["href"])
            assert reply.status == 200 and reply.headers["Content-Type"].split(";")[0] == link["type"].split(";")[0], link
        assert links(document, rel), rel
    assert {link["rel"] for link in document["links"]} >= {REL + "conformance", REL + "data", REL + "tiling-schemes"}


def test_conf_landing_page_api_definition_op_and_success(api):
    (link,) = links(api.json(""), "service-desc")
    assert link["type"] == "application/vnd.oai.openapi+json;version=3.0"
    for headers in ({}, {"Accept": "application/vnd.oai.openapi+json;version=3.0"}, {"Accept": "application/json"}):
        reply = api.get("/api", headers)
        assert reply.headers["Content-Type"] == link["type"] and json.loads(reply.body)["openapi"].startswith("3.0")


def test_conf_landing_page_conformance_op_and_success(api):
    declared = api.json(links(api.json(""), "conformance")[0]["href"])["conformsTo"]
    names = ("1/1.0/conf/core", "1/1.0/conf/landing-page", "1/1.0/conf/json", "1/1.0/conf/html", "1/1.0/conf/oas30", "2/1.0/conf/collections", "2/1.0/conf/json", "2/1.0/conf/html")
    assert {COMMON + name for name in names} == {each for each in declared if each.startswith(COMMON)}


def test_every_declared_class_has_tests(api):
    """The name of each class stands in a test of ours: none is declared without."""
    tests = " ".join(path.read_text() for path in pathlib.Path(__file__).parent.glob("test_ogcapi_*.py"))
    for declared in api.json("/conformance")["conformsTo"]:
        name = declared.rsplit("/conf/", 1)[1].replace("-", "_")
        assert re.search(rf"def test_conf_(\w+_)?{name}", tests) or f"conf_{name}_" in tests, declared


# --- encodings


@pytest.mark.parametrize("path", DOCUMENTS)
def test_conf_json_definition_and_content(api, path):
    for accept in ("application/json", "text/html;q=0.3, application/json", "*/*", None):
        reply = api.get(path, {"Accept": accept} if accept else {})
        assert reply.status == 200 and "json" in reply.headers["Content-Type"] and reply.headers["Vary"] == "Accept"
        assert isinstance(json.loads(reply.body), dict)
    assert "Vary" not in api.get(path + "?f=json").headers


class Page(html.parser.HTMLParser):
    """The texts and links of a page, and whether its elements are closed in order."""

    VOID = {"meta", "link", "img", "br", "hr", "input"}

    def __init__(self, text):
        super().__init__()
        self.texts, self.hrefs, self.open = [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "a":
            self.hrefs.append(dict(attributes)["href"])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def leaves(value):
    if isinstance(value, dict):
        for key, item in value.items():
            yield from [] if key in ("rel", "type", "href", "templated") else leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize("path", DOCUMENTS)
def test_conf_html_definition_and_content(api, path):
    """Each text of the document is on the page, and each link leads to what the document names."""
    browser = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"}
    reply = api.get(path, browser)
    assert reply.status == 200 and reply.headers["Content-Type"] == "text/html; charset=utf-8" and reply.headers["Vary"] == "Accept"
    assert "default-src 'none'" in reply.headers["Content-Security-Policy"]
    assert api.get(path + "?f=html").body == reply.body
    page = Page(reply.body.decode())
    text = "".join(page.texts)
    document = api.json(path)
    for leaf in leaves(document):
        assert leaf in text or leaf in page.hrefs, leaf
    wanted = {link["href"] for link in document.get("links", []) if "templated" not in link}
    places = {api.base.rstrip("/") + "/" + href.replace("../", "").removeprefix("./") for href in page.hrefs}
    assert wanted <= places | set(page.hrefs), wanted - places
    for href in page.hrefs:
        assert href.startswith(("../", "./", "http://www.opengis.net/", "https://", "http://")), href


# --- part 2: collections


def test_conf_collections_collections_list_op(api):
    assert api.get("/collections").status == api.get("/collections/").status == 200


def test_conf_collections_collections_list_success_and_list_links(api):
    document = api.json("/collections")
    assert links(document, "self") and links(document, "alternate")
    names = [collection["id"] for collection in document["collections"]]
    assert names == ["world", "photo", "part", "areas", "areas-mvt", "years", "levels", 'odd <b> & "name"']  # a/b can be no part of a path


def test_conf_collections_description_op_and_success(api):
    """A collection says of itself what the list says of it."""
    for listed in api.json("/collections")["collections"]:
        own = api.json(links(listed, "self")[0]["href"])
        assert {key: value for key, value in own.items() if key != "links"} == {key: value for key, value in listed.items() if key != "links"}
        assert own["id"] and own["title"] and links(own, "self") and links(own, "alternate")
    assert (own["dataType"], own["id"]) == ("map", 'odd <b> & "name"')


def test_conf_collections_description_extent_and_description_links(api):
    world, areas, part = (api.json(f"/collections/{name}") for name in ("world", "areas", "part"))
    assert world["extent"]["spatial"] == {"bbox": [[-180, -90, 180, 90]], "crs": CRS84}
    assert areas["extent"]["spatial"]["bbox"] == [pytest.approx([-60, -60, 60, 60], abs=1e-4)]
    assert part["extent"]["spatial"]["bbox"] == [pytest.approx([0, 0, 180, 85.0511], abs=1e-3)]
    assert world["crs"] == ["http://www.opengis.net/def/crs/EPSG/0/3857", CRS84, "http://www.opengis.net/def/crs/EPSG/0/2056", "http://www.opengis.net/def/crs/EPSG/0/3395"]
    assert (world["storageCrs"], areas["storageCrs"]) == (CRS84, "http://www.opengis.net/def/crs/EPSG/0/3857")
    assert all(api.get(link["href"]).status == 200 for link in world["links"])

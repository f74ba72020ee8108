"""What strangers send to the OGC API: an answer with the right status, whose body is a problem of RFC 7807."""
import json
import urllib.parse

import pytest
from fastcgi import Client
from ogcapi_site import Api, problem, write_site

TILE = "/collections/world/map/tiles/WebMercatorQuad/1/0/0"
HUGE = ",".join(f"text/x{i};q=0.{i % 10}" for i in range(500))  # 8 kB and more: what a server in front lets through


@pytest.fixture(scope="module")
def api(shared_folder, shared_apache):
    config = write_site(shared_folder)
    return Api(shared_apache("web", f"LimitRequestFieldSize 65536\nAllowEncodedSlashes NoDecode\nMapCacheAlias /mc {config}\nMapCacheAlias /quick {config} quick\n").port)


@pytest.fixture(params=["/mc", "/quick"])
def both(request, api):
    """The API in the ordinary hook and in the quick one, which reads escapes itself."""
    return Api(api.port, request.param)


@pytest.mark.parametrize("accept, status, mime", [
    (HUGE + ",application/json", 200, "application/json"), (HUGE, 406, None), ("application/json," + HUGE, 200, "application/json"), ("x" * 8000, 406, None), ("," * 8000, 200, "application/json"),
    (";" * 8000, 406, None), ("application/json;q=none", 200, "application/json"), ("application/json;q=", 200, "application/json"),
    ("text/html;q=-1, application/json;q=0", 406, None), ("application/json;q=2;q=0", 200, "application/json"), ("text/html;q=1e9", 200, "text/html"),
    ("application/json;q=0.0001", 406, None), ("text/html;q=nan", 200, "text/html"), ("*/*;q=0", 406, None), ("/", 406, None), ("*", 200, "application/json"), ("", 200, "application/json"),
    ('text/html;a="b,application/json;q=1', 200, "text/html"), ('text/html;a=",;q=0";q=1, application/json;q=0.5', 200, "text/html"),
    ("TEXT/HTML, application/json;q=0.9", 200, "text/html"), ("text/*, application/json;q=0.5", 200, "text/html"), ("application/xml", 406, None), ("text/html;q=0.001", 200, "text/html")])
def test_accept_headers(api, accept, status, mime):
    reply = api.get("/collections", {"Accept": accept})
    assert reply.headers["Vary"] == "Accept"
    if status == 406:
        problem(reply, 406)
    else:
        assert (reply.status, reply.headers["Content-Type"].split(";")[0]) == (status, mime)


@pytest.mark.parametrize("value", ["xml", "JSON", "json ", "../../etc/passwd", "<b>", "%FF%FE", "x" * 4000, "json,html", "tilejson"])
def test_unknown_f(api, value):
    told = problem(api.get(f"/collections?f={urllib.parse.quote(value, safe='%')}"), 400)
    assert told["parameter"] == "f" and len(json.dumps(told)) < 8000
    problem(api.get(f"{TILE}?f={urllib.parse.quote(value, safe='%')}"), 400)


@pytest.mark.parametrize("name", ["a%2Fb", "a%2fb/map/tiles", "..%2F..", "world%0a", "%FF", "w" * 200, "%2Fworld", "world%2Fmap", "GoogleMapsCompatible", "World", "a%252Fb"])
def test_names_of_collections(both, name):
    problem(both.get(f"/collections/{name}"), 400 if name == "world%0a" else 404)


@pytest.mark.parametrize("name", ["http%3A%2F%2Fwww.opengis.net%2Fdef%2Ftilematrixset%2FOGC%2F1.0%2FWebMercatorQuad", "GoogleMapsCompatible", "g", "webmercatorquad", "WebMercatorQuad-grid", "WGS84", "*"])
def test_names_of_tile_matrix_sets(both, name):
    for path in ("/tileMatrixSets/", "/collections/world/map/tiles/"):
        problem(both.get(path + name), 404)


def test_encoded_slashes_where_apache_refuses_them(shared_folder, shared_apache, api):
    """AllowEncodedSlashes counts in both hooks: by default httpd answers itself, with On a slash parts the path."""
    refusing = shared_apache("refusing", f"MapCacheAlias /mc {shared_folder}/mapcache.xml\nMapCacheAlias /quick {shared_folder}/mapcache.xml quick\n")
    decoding = shared_apache("decoding", f"AllowEncodedSlashes On\nMapCacheAlias /mc {shared_folder}/mapcache.xml\nMapCacheAlias /quick {shared_folder}/mapcache.xml quick\n")
    for alias in ("/mc", "/quick"):
        reply = refusing.get(f"{alias}/ogcapi/collections%2Fworld")
        assert reply.status == 404 and reply.headers["Content-Type"].startswith("text/html")
        assert json.loads(decoding.get(f"{alias}/ogcapi/collections%2Fworld").body)["id"] == "world"
        problem(api.get(f"http://127.0.0.1:{api.port}{alias}/ogcapi/collections%2Fworld"), 404)


@pytest.mark.parametrize("path", ["/collections/world/map/tiles/WebMercatorQuad/0/0/0/0", "/collections//world", "/collections/world/tiles", "/collections/areas-mvt/map/tiles/WebMercatorQuad/0/0/0",
                                  "/static/ogcapi.c", "/static/front.js", "/static", "/x", "/collections/world/map/tiles/WebMercatorQuad/1/0", "/" + "x/" * 100])
def test_paths(api, path):
    reply = api.get(path)
    if path == "/collections//world":
        assert reply.status == 200  # doubled slashes count once, as of all services
    else:
        problem(reply, 404)


@pytest.mark.parametrize("value", ["a%2Fb", "world%2Cnothing", "%00", "world%0a", "../conformance", "world," * 300, "%FF", "'%22%3Cb%3E", "world" * 1500])
def test_names_of_several_collections(api, value):
    for path in ("/map", "/map/tiles", "/map/tiles/WebMercatorQuad", "/map/tiles/WebMercatorQuad/0/0/0", "/tiles", "/tiles/WebMercatorQuad/0/0/0"):
        told = problem(api.get(f"{path}?collections={value}"), 400)
        assert len(json.dumps(told)) < 2000


@pytest.mark.parametrize("query", ["subset=" + "(" * 7000, "subset=" + "a(1)," * 1400, "subset=time(%22" + "9" * 7000 + "%22)", "subset=time(2023:2024:2025)", "datetime=" + "9" * 7000,
                                   "datetime=2023-01-01T00:00:00Z/2024-01-01T00:00:00Z/P1D", "datetime=2023/2024/2025", "datetime=0000-00-00", "datetime=-2023", "datetime=2023-02-30",
                                   "subset=time(%00)", "subset=%FF(1)", "datetime=%01"])
def test_values_of_dimensions(api, query):
    problem(api.get("/collections/years/map/tiles/WebMercatorQuad/0/0/0?" + query), 400)


def test_many_parameters(api):
    assert api.get(TILE + "?" + "&".join(f"x{i}=1" for i in range(1000))).status == 200
    problem(api.get("/collections/years/map/tiles/WebMercatorQuad/0/0/0?" + "&".join("subset=time(2023)" for _ in range(300))), 400, "too many")


def test_markup_in_names_stays_text(api):
    name = urllib.parse.quote('odd <b> & "name"', safe="")
    for path in (f"/collections/{name}", f"/collections/{name}/map/tiles", f"/collections/{name}/map/tiles/WebMercatorQuad", ""):
        page = api.get(path + "?f=html").body.decode()
        assert "<b>" not in page and "<here>" not in page
    assert api.get(f"/collections/{name}/map/tiles/WebMercatorQuad/0/0/0").status == 200
    hostile = api.get("?f=html", {"Host": 'x"><script>alert(1)</script>'})
    assert b"<script" not in hostile.body


def test_slashes_that_a_server_decodes(fcgi, site):
    """As nginx hands a path on: decoded, with any byte. Nothing below the name of another collection is reached."""
    site.write_config(extra='<service type="ogcapi" enabled="true"/>')
    client = Client(fcgi().address)
    try:
        for path, status in ((b"a/b", 404), (b"base", 200), (b"base\n", 400), (b"..", 404), (b"../conformance", 404), (b"w" * 60000, 404), (b"\xff\xfe", 404), (b"/" * 5000 + b"base", 200),
                             (b"base/map/tiles/WebMercatorQuad/1/0/1", 200), (b"base/map/tiles/http://www.opengis.net/def/tilematrixset/OGC/1.0/WebMercatorQuad", 404)):
            reply = client.get(b"/ogcapi/collections/" + path)
            assert reply.status == status, (path, reply.status)
            if status != 200:
                told = json.loads(reply.body)
                assert reply.header("Content-Type") == "application/problem+json" and told["status"] == status and len(reply.body) < 2000
    finally:
        client.close()


def test_it_is_off_unless_it_is_enabled(shared_folder, shared_apache, api):
    text = (shared_folder / "mapcache.xml").read_text().replace('<service type="ogcapi" enabled="true"/>', "")
    (shared_folder / "without.xml").write_text(text)
    web = shared_apache("without", f"MapCacheAlias /mc {shared_folder}/without.xml\n")
    reply = web.get("/mc/ogcapi")
    assert reply.status == 404 and b"the service ogcapi is not enabled" in reply.body
    assert Api(api.port).get("").status == 200

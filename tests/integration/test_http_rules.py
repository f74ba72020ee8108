"""HTTP as its standards and browsers want it, at both doors: configured values on several lines, methods and what
browsers ask before they send, preconditions, addresses where nothing is, CORS of the web server in front, and tiles
that have expired."""

import re
import socket
import subprocess

import fastcgi
import pytest
from conftest import GRID, fetch, free_port, tile_path
from patience import patience
from raw_origin import raw_origin

SITES = "https://a.example, https://b.example"
MAP = (f"?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS=base&STYLES=&SRS=EPSG:3857&WIDTH=300&HEIGHT=300"
       f"&FORMAT=image/png&BBOX=-20037508,-20037508,20037508,20037508")
TIME = "Thu, 02 Jan 2020 03:04:05 GMT"


@pytest.fixture(params=["apache", "quick", "nginx"])
def serve(request, site):
    """serve(extra, change, more): the site behind a door; `change` of the configuration's text, `more` for httpd."""

    def start(extra="", change=None, more=""):
        site.write_config(extra=extra)
        if change is not None:
            before = site.config.read_text()
            site.config.write_text(change(before))
            assert site.config.read_text() != before
        if request.param == "nginx":
            return request.getfixturevalue("nginx")(request.getfixturevalue("fcgi")().address)
        mode = "quick" if request.param == "quick" else ""
        return request.getfixturevalue("apache")(f"MapCacheAlias /mc {site.config} {mode}\n{more}")

    return start


def exchange(port, request):
    """What comes back on one connection for bytes as they are, until its end."""
    with socket.create_connection(("127.0.0.1", port), patience(60)) as connection:
        connection.sendall(request)
        answer = b""
        while part := connection.recv(65536):
            answer += part
        return answer


def listed(text):
    return [item.strip().lower() for item in (text or "").split(",") if item.strip()]


def test_values_on_several_lines_are_one_line(serve, site):
    site.origin_url = f"\n      {site.origin_url}\n    "
    web = serve(f"""<metadata><url>
      http://maps.example/mc/
    </url></metadata>
    <cors>
      https://a.example,
      https://b.example
    </cors>
    <server_timing>true</server_timing>
    <tileset name="lined"><cache>base</cache><grid>{GRID}</grid><cache-control>
      public,
      stale-while-revalidate=60
    </cache-control></tileset>""")
    tile = web.get("/mc" + tile_path(layer="lined"), {"Origin": "https://b.example"})
    assert tile.status == 200
    assert tile.headers["Cache-Control"] == "max-age=300, public, stale-while-revalidate=60"
    assert tile.headers["Access-Control-Allow-Origin"] == "https://b.example"
    assert tile.headers["Timing-Allow-Origin"] == SITES
    capabilities = web.get("/mc?SERVICE=WMS&REQUEST=GetCapabilities").body.decode()
    assert '"http://maps.example/mc/?' in capabilities and "http://maps.example/mc/\n" not in capabilities
    assert "http://maps.example/mc/wmts/1.0.0/" in web.get("/mc/wmts/1.0.0/WMTSCapabilities.xml").body.decode()
    assert web.get("/mc" + tile_path(4, 1, 1, "slow")).status == 200  # its origin is found


def test_other_methods_are_told_the_right_ones(serve):
    web = serve()
    for path in (tile_path(), "/", "?SERVICE=WMS&REQUEST=GetCapabilities", "/nothing/here"):
        for method in ("PUT", "DELETE", "PATCH"):
            reply = web.get("/mc" + path, method=method)
            assert reply.status == 405 and reply.headers["Allow"] == "GET, HEAD, POST, OPTIONS", (method, path)
        asked = web.get("/mc" + path, method="OPTIONS")
        assert asked.status == 204 and asked.body == b"" and asked.headers["Allow"] == "GET, HEAD, POST, OPTIONS"
        assert asked.headers["Access-Control-Allow-Methods"] is None


def test_a_body_that_nobody_reads_is_no_request(serve):
    """What follows the head of a refused request belongs to it, whatever it looks like."""
    web = serve()
    hidden = b"GET /mc/hidden HTTP/1.1\r\nHost: x\r\n\r\n"
    for method in (b"PUT", b"OPTIONS", b"POST"):
        answer = exchange(web.port, method + b" /mc/nothing HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(hidden)
                          + hidden + b"GET /mc" + tile_path().encode() + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        statuses = re.findall(rb"^HTTP/1.1 (\d+)", answer, re.M)
        assert statuses in ([b"405" if method == b"PUT" else b"204" if method == b"OPTIONS" else b"404", b"200"],
                            statuses[:1]), (method, statuses)
        assert b"hidden" not in answer, method


ASKS = {"Origin": "https://a.example", "Access-Control-Request-Method": "GET"}


def test_browsers_learn_what_they_may_send(serve):
    web = serve(f"<cors>{SITES}</cors>")
    asked = "authorization, traceparent, x-my-own"
    reply = web.get("/mc" + tile_path(), {**ASKS, "Access-Control-Request-Headers": asked}, method="OPTIONS")
    assert reply.status == 204 and reply.body == b""
    assert reply.headers["Access-Control-Allow-Origin"] == "https://a.example"
    assert listed(reply.headers["Access-Control-Allow-Methods"]) == ["get", "head", "post"]
    assert set(listed(asked)) <= set(listed(reply.headers["Access-Control-Allow-Headers"]))
    assert int(reply.headers["Access-Control-Max-Age"]) > 0
    assert {"origin", "access-control-request-headers"} <= set(listed(",".join(reply.headers.get_all("Vary"))))
    stranger = web.get("/mc" + tile_path(), {**ASKS, "Origin": "https://a.example.evil"}, method="OPTIONS")
    assert stranger.status == 204
    assert not [name for name in stranger.headers if name.lower().startswith("access-control-")]


def test_only_names_of_headers_are_granted_and_not_too_many(serve):
    web = serve()
    bad = ["x y", "a:b", "<script>", "a" * 65, '"', "\u00e9", "x\tz;q"]
    many = [f"x-{i}" for i in range(300)]
    reply = web.get("/mc/", {**ASKS, "Access-Control-Request-Headers": ", ".join(bad + many).encode("latin-1")}, method="OPTIONS")
    granted = listed(reply.headers["Access-Control-Allow-Headers"])
    assert "x-0" in granted and "x-299" not in granted and len(granted) <= 40
    assert all(re.fullmatch(r"[a-z0-9-]{1,64}", name) for name in granted), granted
    assert reply.headers["Access-Control-Allow-Origin"] == "*"


def test_line_ends_in_asked_names_split_nothing(serve):
    web = serve(f"<cors>{SITES}</cors>")
    for name in ("Origin", "Access-Control-Request-Headers", "Accept", "If-None-Match"):
        for ending in ("\r\n", "\n", "\r", "\0", "\x0b"):
            head = "".join(f"{key}: {value}\r\n" for key, value in ASKS.items() if key != name)
            answer = exchange(web.port, (f"OPTIONS /mc/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{head}"
                                         f"{name}: https://a.example{ending}X-Injected: 1\r\n\r\n").encode("latin-1"))
            headers = answer.split(b"\r\n\r\n")[0].lower()
            assert b"\nx-injected" not in headers and b"\rx-injected" not in headers, (name, ending)


def status_of(web, path, headers, **options):
    return web.get("/mc" + path, headers, **options).status


@pytest.mark.parametrize("path", [tile_path(), MAP])
def test_preconditions_are_evaluated_once_and_in_order(serve, path):
    web = serve()
    first = web.get("/mc" + path)
    tag, before, after = first.headers["ETag"], "Wed, 01 Jan 2020 00:00:00 GMT", "Fri, 03 Jan 2020 00:00:00 GMT"
    assert first.status == 200 and first.headers["Last-Modified"] == TIME
    cases = [({"If-Match": tag}, 200), ({"If-Match": "W/" + tag}, 412), ({"If-Match": '"x", ' + tag}, 200),
             ({"If-Match": tag[:-1] + '-gzip"'}, 200), ({"If-Match": '"x"'}, 412), ({"If-Match": "*"}, 200),
             ({"If-Match": tag, "If-Unmodified-Since": before}, 200),
             ({"If-Match": '"x"', "If-Unmodified-Since": after}, 412),
             ({"If-Unmodified-Since": before}, 412), ({"If-Unmodified-Since": after}, 200),
             ({"If-Match": '"x"', "If-None-Match": tag}, 412), ({"If-Unmodified-Since": before, "If-None-Match": tag}, 412),
             ({"If-Match": tag, "If-None-Match": tag}, 304), ({"If-None-Match": "W/" + tag}, 304),
             ({"If-None-Match": '"a,b" , W/"c", ' + tag}, 304), ({"If-None-Match": '"x"', "If-Modified-Since": after}, 200),
             ({"If-None-Match": tag, "If-Modified-Since": before}, 304), ({"If-Modified-Since": TIME}, 304),
             ({"If-Modified-Since": before}, 200)]
    for headers, status in cases:
        assert status_of(web, path, headers) == status, headers
    assert status_of(web, path, {"If-None-Match": tag}, method="POST", body=b"") == 412
    for suffix in ("-gzip", "-br"):
        named = tag[:-1] + suffix + '"'
        again = web.get("/mc" + path, {"If-None-Match": named})
        assert again.status == 304 and again.headers["ETag"] == named
    assert status_of(web, path, {"If-None-Match": tag[:-1] + '-gzip-gzip"'}) == 200


def test_the_tag_of_a_compressing_httpd_revalidates(apache, site):
    modules = "".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n" for name in ("filter", "deflate"))
    web = apache(f"MapCacheAlias /mc {site.config}\n{modules}SetOutputFilter DEFLATE\n")
    path, gzip = "/mc?SERVICE=WMS&REQUEST=GetCapabilities", {"Accept-Encoding": "gzip"}
    first = web.get(path, gzip)
    assert first.status == 200 and first.headers["Content-Encoding"] == "gzip"
    assert first.headers["ETag"].endswith('-gzip"')
    again = web.get(path, {**gzip, "If-None-Match": first.headers["ETag"]})
    assert again.status == 304 and again.headers["ETag"] == first.headers["ETag"]
    assert web.get(path, {**gzip, "If-Match": first.headers["ETag"]}).status == 200


def test_answers_that_depend_on_accept_say_so(serve):
    web = serve('<service type="metrics" enabled="true"/>')
    for path in ("/wmts/1.0.0/WMTSCapabilities.xml", "/metrics"):
        for accept in ("text/xml", "application/openmetrics-text", "*/*"):
            reply = web.get("/mc" + path, {"Accept": accept})
            assert reply.status in (200, 406) and "accept" in listed(reply.headers["Vary"]), (path, accept)
    tag = web.get("/mc/wmts/1.0.0/WMTSCapabilities.xml").headers["ETag"]
    again = web.get("/mc/wmts/1.0.0/WMTSCapabilities.xml", {"If-None-Match": tag})
    assert again.status == 304 and "accept" in listed(again.headers["Vary"])
    assert web.get("/mc" + tile_path()).headers["Vary"] is None


def test_where_nothing_is_stands_what_there_is(serve):
    web = serve('<service type="metrics" enabled="true"/>')
    for path in ("/nothing", "/nothing/at/all?x=1", "/wms"):
        reply = web.get("/mc" + path)
        assert reply.status == 404 and reply.headers["Content-Type"] == "text/plain; charset=utf-8", path
        said = reply.body.decode()
        assert all(f"{name} at /" in said for name in ("wms", "wmts", "tms")) and "metrics" not in said
    long = web.get("/mc/" + "x" * 3000)
    assert long.status == 404 and len(long.body) < 500 and b"wmts at /wmts" in long.body
    # an address with a request of WMS is WMS, as ever
    assert web.get("/mc/nothing?SERVICE=WMS&REQUEST=GetCapabilities").status == 200
    assert web.get("/mc?foo=bar").status == 400
    root = web.get("/mc")
    assert root.status == 200 and b"wmts at /wmts" in root.body and b"metrics" not in root.body
    assert web.get("/mc", method="HEAD").status == 200


def test_disabled_services_say_so(serve):
    web = serve('<service type="gmaps" enabled="false"/>',
                lambda text: text.replace('<service type="wms" enabled="true"/>', ""))
    for path, name in (("/gmaps/base/0/0/0.png", "gmaps"), ("/kml/base/0/0/0.kml", "kml"), ("/demo", "demo"),
                       ("/ve?LAYER=base&tile=0", "ve"), ("?SERVICE=WMS&REQUEST=GetCapabilities", "wms")):
        reply = web.get("/mc" + path)
        assert reply.status == 404 and f"the service {name} is not enabled here".encode() in reply.body, path
        assert b"wmts at /wmts" in reply.body
    assert web.get("/mc/").status == 200 and web.get("/mc/nothing").status == 404


def test_disabled_services_say_so_beside_wms(serve):
    web = serve()
    for path in ("/gmaps/base/0/0/0.png", "/ve?SERVICE=VE", "/gmaps/x?SERVICE=WMTS&REQUEST=GetTile"):
        reply = web.get("/mc" + path)
        assert reply.status == 404 and b"is not enabled here" in reply.body, path
    assert web.get("/mc/gmaps?SERVICE=WMS&REQUEST=GetCapabilities").status == 200


def test_the_root_leads_to_the_demo(serve):
    web = serve('<service type="demo" enabled="true"/>')
    for path, place in (("/mc", "/mc/demo/"), ("/mc/", "demo/")):  # the second one holds behind any prefix of a proxy
        reply = web.get(path)
        assert reply.status == 302 and reply.headers["Location"] == place
        assert reply.body == b""
    assert web.get("/mc/demo/").status == 200
    for page in ("nothing", "ve"):
        reply = web.get(f"/mc/demo/{page}")
        assert reply.status == 404 and b"the index, demo/, names those that there are" in reply.body


def forwarding(port):
    return f"""<forwarding_rule name="all"><http><url>http://127.0.0.1:{port}/</url></http></forwarding_rule>"""


def test_another_server_gives_no_orders_to_ours(serve):
    """What is forwarded is passed on: what it shows, not what it would have our web server do."""
    answer = (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: text/plain\r\nX-Accel-Redirect: /mc/metrics\r\nX-Sendfile: /etc/passwd\r\n"
              b"Status: 418 Teapot\r\nLocation: /mc/elsewhere\r\nX-Shown: a\rSet-Cookie: b\r\nBad Name: 1\r\nBad\x01Name: 1\r\n"
              b"Access-Control-Allow-Origin: https://theirs.example\r\nConnection: close\r\n\r\nbytes")
    with raw_origin(answer) as (port, _):
        web = serve("", lambda text: text.replace('<service type="wms" enabled="true"/>',
                                                  f'<service type="wms" enabled="true">{forwarding(port)}</service>'))
        reply = web.get("/mc?SERVICE=WMS&REQUEST=GetStyles")
        assert reply.status == 200 and reply.body == b"bytes"
        names = {name.lower() for name in reply.headers}
        assert not names & {"x-accel-redirect", "x-sendfile", "status", "location", "set-cookie"}, names
        assert all(re.fullmatch(r"[a-z0-9-]+", name) for name in names)
        assert reply.headers.get_all("Access-Control-Allow-Origin") == ["*"]


BEHIND = b"Content-Type: text/plain\r\nConnection: close\r\n\r\nbytes"


@pytest.mark.parametrize("answer, status, asked_for", [
    (b"HTTP/1.1 101 Switching Protocols\r\n" + BEHIND, 502, 1),
    (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n" + BEHIND, 200, 1),
    (b"HTTP/1.1 302 Found\r\nLocation: /again\r\n" + BEHIND + bytes(200_000), 502, 6),  # it leads on, five times
    (b"HTTP/1.1 302 Found\r\nLocation: /again\r\n" + BEHIND + bytes(8_000_000), 502, 1),
], ids=["switching protocols", "continue", "redirect", "redirect with a large body"])
def test_answers_that_are_none(build, folder, site, answer, status, asked_for):
    with raw_origin(answer) as (port, asked):
        text = site.config.read_text()
        site.config.write_text(text.replace('<service type="wms" enabled="true"/>', f'<service type="wms" enabled="true">{forwarding(port)}</service>'))
        server = fastcgi.Server(build, site.config, folder)
        reply = server.client.get(b"/", b"SERVICE=WMS&REQUEST=GetStyles")
        server.stop()
    assert (reply.status, len(asked)) == (status, asked_for), reply.body


def test_what_a_client_says_of_itself_is_one_line_for_the_origin(build, folder, site):
    """No web server lets it through; one that did would not let two headers be made of one."""
    with raw_origin(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nok") as (port, asked):
        text = site.config.read_text()
        site.config.write_text(text.replace('<service type="wms" enabled="true"/>', f'<service type="wms" enabled="true">{forwarding(port)}</service>'))
        server = fastcgi.Server(build, site.config, folder)
        variables = {b"HTTP_HOST": b"x\r\nX-One: 1", b"CONTENT_TYPE": b"text/xml\r\nX-Two: 1", b"HTTP_X_FORWARDED_FOR": b"a\nX-Three: 1",
                     b"REMOTE_ADDR": b"b\r\nX-Four: 1"}
        answer = server.client.get(b"/", b"SERVICE=WMS&REQUEST=GetStyles", variables, b"<body/>")
        server.stop()
    assert answer.status == 200 and len(asked) == 1
    assert not re.search(rb"^X-(One|Two|Three|Four)", asked[0].replace(b"\r", b"\n"), re.M), asked[0]


def test_any_bytes_in_what_browsers_send_make_no_header(build, folder, site):
    """As a web server would never hand them on; fastcgi.Answer refuses heads with broken lines."""
    site.write_config(extra=f"<cors>{SITES}</cors><server_timing>true</server_timing><service type='demo' enabled='true'/>")
    server = fastcgi.Server(build, site.config, folder)
    for bad in (b"\r\nX-Injected: 1", b"\nX-Injected: 1\n\n<html>", b"\r", b"\0X", b"\xff\xfe", b"x" * 60000):
        variables = {b"REQUEST_METHOD": b"OPTIONS", b"HTTP_ORIGIN": b"https://a.example", b"HTTP_ACCESS_CONTROL_REQUEST_METHOD": b"GET" + bad,
                     b"HTTP_ACCESS_CONTROL_REQUEST_HEADERS": b"x-a" + bad}
        answer = server.client.get(b"/", b"", variables)
        assert answer.status == 204 and answer.header("X-Injected") is None and answer.body == b"", bad[:20]
        assert len(answer.header("Access-Control-Allow-Headers")) < 1500
        for name in (b"HTTP_ORIGIN", b"HTTP_HOST", b"SCRIPT_NAME", b"HTTP_IF_NONE_MATCH", b"HTTP_ACCEPT", b"REQUEST_METHOD"):
            answer = server.client.get(b"/", b"", {**variables, b"REQUEST_METHOD": b"GET", name: b"https://a.example" + bad})
            assert answer.status in (302, 405) and answer.header("X-Injected") is None and b"<html>" not in answer.body, (name, bad[:20])
            if name == b"HTTP_ORIGIN" and b"\0" not in bad:  # a NUL ends a variable
                assert answer.header("Access-Control-Allow-Origin") is None
    server.stop()


@pytest.mark.parametrize("line", ["Header set Access-Control-Allow-Origin *", "Header add Access-Control-Allow-Origin *",
                                  "Header append Access-Control-Allow-Origin *", "Header merge Access-Control-Allow-Origin *",
                                  "Header always set Access-Control-Allow-Origin *", "Header always add Access-Control-Allow-Origin *",
                                  "Header onsuccess set Access-Control-Allow-Origin *",
                                  "Header set Access-Control-Allow-Origin * early"])
def test_httpd_that_sets_cors_is_left_alone(apache, site, line):
    site.write_config(extra=f"<cors>{SITES}</cors><server_timing>true</server_timing>")
    web = apache(f"LoadModule headers_module /usr/lib/apache2/modules/mod_headers.so\nMapCacheAlias /mc {site.config}\n{line}\n")
    for path in (tile_path(), "/nothing"):
        reply = web.get("/mc" + path, {"Origin": "https://a.example"})
        assert reply.headers.get_all("Access-Control-Allow-Origin", []) in (["*"], [] if "onsuccess" in line else ["*"])
        assert reply.headers["Timing-Allow-Origin"] is None


def test_httpd_may_take_cors_out(apache, site):
    web = apache("LoadModule headers_module /usr/lib/apache2/modules/mod_headers.so\n"
                 f"MapCacheAlias /mc {site.config}\nHeader unset Access-Control-Allow-Origin\n")
    assert web.get("/mc" + tile_path()).headers["Access-Control-Allow-Origin"] is None
    assert web.get("/mc" + tile_path()).status == 200


def test_without_cors_the_server_in_front_decides(site, fcgi, nginx):
    site.write_config(extra="<cors>off</cors>")
    web = nginx(fcgi().address)
    assert web.get("/mc" + tile_path(), ASKS).headers["Access-Control-Allow-Origin"] is None
    assert web.get("/mc" + tile_path(), ASKS, method="OPTIONS").headers["Access-Control-Allow-Methods"] is None


@pytest.mark.parametrize("cors", ["", "<cors>off</cors>", "<cors>*</cors>"])
def test_check_says_what_a_server_in_front_may_add(build, site, cors):
    """A note: nothing is wrong, and the exit status says so."""
    site.write_config(extra=cors)
    done = subprocess.run([build / "bin/mapcache", "check", site.config], capture_output=True, text=True, timeout=patience(60), check=False)
    notes = [line for line in done.stdout.splitlines() if ": note: " in line]
    assert done.returncode == 0 and "warnings: 0" in done.stdout, done.stdout
    assert len(notes) == (0 if cors else 1) and ("<cors>off</cors>" in done.stdout) == (not cors)


def expire(text):
    return text.replace("<expires>3600</expires>", "<expires>3600</expires><auto_expire>60</auto_expire>")


@pytest.mark.parametrize("source", [False, True])
def test_expired_tiles_that_are_shown_are_not_kept(serve, source):
    def change(text):
        text = expire(text)
        return text.replace('<tileset name="base"><cache>base</cache>',
                            '<tileset name="base"><cache>base</cache><source>dead</source>') if source else text

    web = serve(f"""<source name="dead" type="wms"><getmap><params><FORMAT>image/png</FORMAT><LAYERS>x</LAYERS></params></getmap>
      <http><url>http://127.0.0.1:{free_port()}/</url></http></source>""" if source else "", change)
    reply = web.get("/mc" + tile_path(1, 1, 1))
    assert reply.status == 200 and reply.headers["Last-Modified"] == TIME
    assert reply.headers["Cache-Control"] == "max-age=0, must-revalidate"
    assert int(reply.headers["Age"]) > 86400 and "Expires" not in reply.headers
    again = web.get("/mc" + tile_path(1, 1, 1), {"If-None-Match": reply.headers["ETag"]})
    assert again.status == 304 and again.headers["Cache-Control"] == "max-age=0, must-revalidate"
    drawn = web.get("/mc" + MAP)
    assert drawn.status == 200 and drawn.headers["Cache-Control"] == "max-age=0, must-revalidate"
    assert int(drawn.headers["Age"]) > 86400


def test_tiles_that_have_not_expired_have_no_age(serve):
    web = serve("", lambda text: text.replace("<expires>3600</expires>", "<expires>3600</expires><auto_expire>2000000000</auto_expire>"))
    reply = web.get("/mc" + tile_path(1, 1, 1))
    assert "Age" not in reply.headers and re.fullmatch(r"max-age=\d{9,10}", reply.headers["Cache-Control"])
    assert fetch(web.port, "/mc" + MAP).headers["Age"] is None

"""The service jobs: its JSON API through Apache and FastCGI, who may do what, hostile input; and its page in Chromium."""
import json

import numpy
import pytest
from browser import Browser
from conftest import fetch, sanitizer_environment, wait_until
from drop_in import pixels
from fastcgi import Server
from jobs_site import Queue, last_line, wms
from origin import Origin
from patience import patience
from postgres import Postgres

TOKEN = "correct horse battery".replace(" ", "-")
SERVICES = f"""<service type="jobs" enabled="true"><token>{TOKEN}</token><public>true</public></service>"""
DIMENSION = """<dimensions><dimension type="values" name="time" default="2020"><value>2020</value><value>2021</value></dimension>
    </dimensions>"""


@pytest.fixture(scope="module")
def database():
    with Postgres(settings=["max_connections=60"]) as server:
        yield server


@pytest.fixture(scope="module")
def queue(shared_folder, database):
    return Queue(shared_folder / "site", database, services=SERVICES, more=DIMENSION)


class Door:
    """The API as one of the doors answers it: (status, JSON or text)."""

    def call(self, path="", body=None, token=TOKEN, headers=None):
        sent = {"Authorization": f"Bearer {token}"} if token else {}
        if body is not None:
            sent["Content-Type"] = "application/json"
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        status, answer = self.ask(path, body, {**sent, **(headers or {})})
        return status, json.loads(answer) if answer.startswith(b"{") else answer


class ApacheDoor(Door):
    def __init__(self, web):
        self.web = web

    def ask(self, path, body, headers):
        reply = fetch(self.web.port, "/mc/jobs/api" + path, headers, "GET" if body is None else "POST", body)
        return reply.status, reply.body


class FastcgiDoor(Door):
    def __init__(self, server):
        self.server = server

    def ask(self, path, body, headers):
        path, _, query = path.partition("?")
        names = {"Content-Type": "CONTENT_TYPE"}
        variables = {names.get(name, "HTTP_" + name.upper().replace("-", "_")).encode(): value.encode() for name, value in headers.items()}
        if body == b"":
            variables[b"REQUEST_METHOD"] = b"POST"
        answer = self.server.client.get(b"/jobs/api" + path.encode(), query.encode(), variables, body or b"")
        return answer.status, answer.body


@pytest.fixture
def alias(apache, build):
    """alias(queue): an httpd with that configuration under /mc."""
    return lambda site: apache(f"MapCacheAlias /mc {site.config}\n", environment=sanitizer_environment(build))


@pytest.fixture(scope="module", params=["apache", "fastcgi"])
def door(request, queue, build, shared_folder, shared_apache):
    if request.param == "apache":
        yield ApacheDoor(shared_apache("httpd", f"MapCacheAlias /mc {queue.config}\n", environment=sanitizer_environment(build)))
    else:
        home = shared_folder / "fcgi"
        home.mkdir(exist_ok=True)
        server = Server(build, queue.config, home)
        yield FastcgiDoor(server)
        server.stop()


def test_a_job_from_its_making_to_its_end(door, queue):
    wish = {"tileset": "world", "minzoom": 0, "maxzoom": 2, "priority": 3, "dimensions": {"time": "2021"}, "extent": [-2e7, -2e7, 2e7, 2e7]}
    status, made = door.call("", wish)
    assert status == 200, made
    job = made["job"]
    assert job["state"] == "open" and job["dimensions"] == {"time": "2021"} and job["priority"] == 3 and job["metatiles"] == 6
    assert door.call(f"/{job['id']}")[1]["job"]["id"] == job["id"]
    assert job["id"] in [other["id"] for other in door.call("?state=open&limit=1")[1]["jobs"]]
    assert door.call(f"/{job['id']}/pause", b"")[1]["job"]["state"] == "paused"
    assert door.call("?state=open")[1]["jobs"] == []
    assert door.call(f"/{job['id']}/resume", b"")[1]["job"]["state"] == "open"
    last_line(queue.worker("--drain"))
    done = door.call(f"/{job['id']}")[1]
    assert done["job"]["state"] == "done" and done["job"]["done"] + done["job"]["skipped"] == 6 and done["units"] == []
    status, refused = door.call(f"/{job['id']}/cancel", b"")
    assert status == 400 and "is done" in refused["error"]
    status, second = door.call("", {**wish, "request": "of tonight"})
    assert status == 200 and door.call("", {**wish, "request": "of tonight"})[1]["job"]["id"] == second["job"]["id"]
    assert door.call(f"/{second['job']['id']}/cancel", b"")[1]["job"]["state"] == "cancelled"
    queue.run("prune", "--age", 0)


def test_without_the_token_nothing_changes_and_less_is_shown(door, queue):
    job = queue.enqueue("-z", "0,1")
    for token in None, "", "wrong", TOKEN[:-1], TOKEN + "x", TOKEN.upper():
        for path, body in ("", {"tileset": "world"}), (f"/{job}/cancel", b""):
            status, refused = door.call(path, body, token)
            assert status == 403 and "token" in refused["error"]
        status, shown = door.call("", token=token)
        assert status == 200 and shown["changeable"] is False and "owner" not in shown["jobs"][0]
    assert door.call("")[1]["changeable"] is True and "@" in door.call("")[1]["jobs"][0]["owner"]
    for site in "cross-site", "same-site":
        assert door.call(f"/{job}/cancel", b"", headers={"Sec-Fetch-Site": site})[0] == 403
    assert queue.job(job)["state"] == "open"
    assert door.call(f"/{job}/cancel", b"", headers={"Sec-Fetch-Site": "same-origin"})[0] == 200
    queue.run("prune", "--age", 0)


def test_a_body_that_is_not_said_to_be_json_is_refused(door, queue):
    status, refused = door.call("", {"tileset": "world"}, headers={"Content-Type": "text/plain"})
    assert status == 400 and "application/json" in refused["error"]


GOOD = {"tileset": "world"}


@pytest.mark.parametrize("body,message", [
    (b"{", "JSON"), (b"[]", "JSON object"), (b"nonsense", "JSON"), (b'{"tileset": "world"} x', "JSON"), (b"{}", "needs a tileset"),
    (b'{"tileset": "wo\\u0000rld"}', "zero byte"), (b"[" * 5000, "JSON"), (b'{"a":' * 30 + b"1" + b"}" * 30, "nested"),
    (b"\xff\xfe", "JSON"), ({"tileset": 7}, 'no tileset "7"'), ({"tileset": "x" * 2000}, "tileset has 1 to 1000 bytes"), ({**GOOD, "grid": "WGS84"}, "no grid"),
    ({**GOOD, "mode": "destroy"}, "mode is seed, reseed"), ({**GOOD, "minzoom": -1}, "minzoom"), ({**GOOD, "maxzoom": 1e9}, "maxzoom"),
    ({**GOOD, "minzoom": 60}, "zoom levels"), ({**GOOD, "extent": [1, 2, 3]}, "extent"), ({**GOOD, "extent": [3, 3, 1, 1]}, "extent"),
    ({**GOOD, "extent": ["nan", 0, 1, 1]}, "extent"), ({**GOOD, "rate": -1}, "rate"), ({**GOOD, "rate": "inf"}, "rate"),
    ({**GOOD, "priority": 2 ** 40}, "priority"), ({**GOOD, "attempts": 0.5}, "attempts"), ({**GOOD, "attempts": 1000}, "tried"),
    ({**GOOD, "side": 99999}, "metatiles wide"), ({**GOOD, "Grid": "g"}, 'no field "Grid"'), ({**GOOD, "grid": ""}, "grid has 1 to 1000 bytes"),
    ({**GOOD, "order": "down"}, "order is level or hilbert"), ({**GOOD, "dimensions": "x"}, 'no field "dimensions"'),
    ({**GOOD, "dimensions": {"time": "x" * 1001}}, "dimensions has at most 64 members, each with at most 1000 bytes"),
    ({**GOOD, "dimensions": {str(n): "x" for n in range(65)}}, "dimensions has at most 64 members"), ({**GOOD, "area": "POLYGON((0 0, 1 1"}, "area"), ({**GOOD, "area_srs": "EPSG:4326"}, "with an area"), ({**GOOD, "older": -5}, "older"), ({**GOOD, "colour": 1}, 'no field "colour"'),
    ({**GOOD, "dimensions": {"time": "1999"}}, "time"), ({**GOOD, "dimensions": {"time": "2021\n"}}, "control character"),
    ({**GOOD, "dimensions": {"space": "1"}}, 'no dimension "space"'), ({**GOOD, "dimensions": {"time": {"a": 1}}}, "nested"),
    ({**GOOD, "mode": "transfer"}, "needs the tileset"), ({**GOOD, "target": "copy"}, "only a transfer"), ({"tileset": "copy"}, "no source"),
    ({**GOOD, "tileset": "'; drop table mapcache_jobs; --"}, "no tileset"),
])
def test_what_cannot_be_a_job_is_refused_by_name(door, body, message):
    status, refused = door.call("", body)
    assert status == 400 and message in refused["error"], (status, refused)


@pytest.mark.parametrize("shape", ["LINESTRING(%s)", "POLYGON((%s,-20e6 -17000000))"])
def test_a_job_for_a_huge_area_is_counted_in_bounded_time(door, queue, shape):
    """Thousands of lines through the whole world, and metatiles by the thousand million: they are not all looked at."""
    corners = ",".join(f"{-20 if n % 2 == 0 else 19}e6 {-17000000 + 8500 * n}" for n in range(4000))
    status, answer = door.call("", {"tileset": "world", "minzoom": 0, "maxzoom": 18, "area": shape % corners})
    assert status == 200, answer
    whole = sum(4 ** max(z - 1, 0) for z in range(19))
    assert 0.2 * whole < answer["job"]["metatiles"] < 1.1 * whole
    queue.run("cancel", answer["job"]["id"])
    queue.run("prune", "--age", 0)


def test_other_requests_are_refused(door):
    assert door.call("", b"{" + b" " * 70000 + b"}")[0] == 413
    for path in "/0", "/-1", "/x", "/99999999999999999999", "/1/2/3", "/1/dance", "/987654321":
        assert door.call(path)[0] == 404, path
    assert door.call("/987654321/cancel", b"")[0] == 404
    assert door.call("/1/cancel")[0] == 405 and door.call("/1", b"{}")[0] == 405
    for query in "?state=lost", "?limit=0", "?limit=100000", "?before=x":
        assert door.call(query)[0] == 400, query


@pytest.mark.parametrize("path, methods", [("", "GET, HEAD"), ("/static/jobs.js", "GET, HEAD"), ("/api", "GET, HEAD, POST"), ("/api/1", "GET, HEAD"),
                                           ("/api/1/cancel", "POST"), ("/api/1/retry", "POST")])
def test_methods_are_those_of_the_address(alias, queue, path, methods):
    web = alias(queue)
    for method in ("DELETE", "PUT", "OPTIONS"):
        reply = fetch(web.port, "/mc/jobs" + path, {"Origin": "http://x.example", "Access-Control-Request-Method": "POST"}, method)
        assert reply.status == (204 if method == "OPTIONS" else 405) and reply.headers["Allow"] == methods + ", OPTIONS"
        assert not [name for name in reply.headers if name.lower().startswith("access-control")]  # no page of another site


def test_what_is_configured_decides_who_reads(tmp_path, database, alias):
    shown = Queue(tmp_path / "secret", database, services=f'<service type="jobs" enabled="true"><token>{TOKEN}</token></service>')
    door = ApacheDoor(alias(shown))
    assert door.call("", token=None)[0] == 403 and door.call("")[0] == 200
    assert b"<html" in door.web.get("/mc/jobs").body and door.web.get("/mc/jobs/").status == 200
    assert door.web.get("/mc/jobs").headers.get("Access-Control-Allow-Origin") is None
    for services, message in [
            ('<service type="jobs" enabled="true"/>', "needs a <token>"), ('<service type="jobs" enabled="true"><token>short</token></service>', "at least 16"),
            ('<service type="jobs" enabled="true"><token>with blanks inside it</token></service>', "at least 16")]:
        bad = Queue(tmp_path / "bad", database, services=services)
        assert message in bad.run("list", check=False).stderr
    text = shown.config.read_text()
    shown.config.write_text(text[:text.index("<jobs>")] + text[text.index("</jobs>") + 7:])
    assert "says where the queue is" in shown.run("list", check=False).stderr
    shown.config.write_text(text.replace("<schema>", "<schema>a;b"))
    assert "letters, digits" in shown.run("list", check=False).stderr


def test_a_database_that_is_away_is_503(tmp_path, alias):
    with Postgres() as own:
        site = Queue(tmp_path / "away", own, services=SERVICES)
        door = ApacheDoor(alias(site))
        assert door.call("")[1] == {"changeable": True, "jobs": [], "workers": []}  # no tables yet
        own.stop()
        status, refused = door.call("")
        assert status == 503 and own.folder.name not in json.dumps(refused) and "password" not in json.dumps(refused)
        own.start()
        wait_until(lambda: door.call("")[0] == 200, "it answers again")


# --- the page ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    with Browser(1200, 900) as running:
        yield running


def texts(browser, selector):
    return browser.script(f"return [...document.querySelectorAll({selector!r})].map(e => e.innerText)")


def test_the_page_shows_jobs_and_cancels_one(tmp_path, database, alias, browser):
    with Origin() as origin:
        site = Queue(tmp_path / "page", database, wms(origin, "/late/40/pattern?"), services=SERVICES)
        # What the queue holds is text, also where it looks like markup.
        broken = site.enqueue("-z", "0,1")
        site.sql(f"update @mapcache_jobs set owner = '<b id=x>mallory</b>', next_unit = units, failed_units = units, state = 'done' where id = {broken}")
        site.sql(f"insert into @mapcache_job_units(job, unit, state, lease, worker, until, size, message) values"
                 f" ({broken}, 0, 'failed', 1, 'w', now(), 1, '<img src=x onerror=alert(1)> the origin is away')")
        assert site.job(broken)["units_failed"] == 2
        running = site.enqueue("-z", "0,6")
        web = alias(site)
        worker = site.worker("-n", 2)
        try:
            browser.open("about:blank")
            browser.console()
            browser.network()
            browser.open(f"http://127.0.0.1:{web.port}/mc/jobs")
            wait_until(lambda: len(texts(browser, "#jobs > li")) == 2, "two jobs")
            assert texts(browser, "#jobs button") == []  # the token is needed
            wait_until(lambda: texts(browser, "#workers tbody tr"), "a worker")
            browser.script(f"document.getElementById('token').value = {TOKEN!r}; document.querySelector('#key button').click()")
            wait_until(lambda: "Cancel" in texts(browser, "#jobs button"), "buttons")
            wait_until(lambda: any(text not in ("", "0 tiles/s") for text in texts(browser, ".rate")), "a rate")
            assert "<b id=x>mallory</b>" in "".join(texts(browser, "#jobs .what"))
            browser.script("document.querySelector('#jobs details summary').click()")
            wait_until(lambda: texts(browser, "#jobs details li"), "failures")
            assert "<img src=x onerror=alert(1)> the origin is away" in texts(browser, "#jobs details li")[0]
            assert browser.script("return document.querySelectorAll('#jobs img, #jobs #x').length") == 0
            share = browser.script("return document.querySelector('#jobs .bar .done').getBoundingClientRect().width")
            wait_until(lambda: browser.script("return document.querySelector('#jobs .bar .done').getBoundingClientRect().width") > share, "progress")
            (tmp_path / "page.png").write_bytes(browser.screenshot())
            shown = pixels((tmp_path / "page.png").read_bytes())
            assert len(numpy.unique(shown.reshape(-1, 4), axis=0)) > 50
            browser.script("window.confirm = () => true; [...document.querySelectorAll('#jobs button.cancel')][0].click()")
            wait_until(lambda: site.job(running)["state"] == "cancelled", "the job ends")
            wait_until(lambda: "cancelled" in texts(browser, "#jobs .state"), "the page says so")
            browser.script("document.activeElement.blur(); [...document.querySelectorAll('#jobs button.retry')][0].click()")
            # Both units had failed; the worker may have been through with the one that has a row before anybody looks.
            wait_until(lambda: site.job(broken)["units_failed"] < 2, "it is tried again")
            assert browser.console() == []
            asked = [url for url, _ in browser.network() if url.startswith("http")]
            assert asked and all(url.startswith(f"http://127.0.0.1:{web.port}/mc/jobs") for url in asked)
        finally:
            worker.terminate()
            worker.communicate(timeout=patience(60))


def test_the_page_says_what_is_wrong(tmp_path, database, alias, browser):
    site = Queue(tmp_path / "closed", database, services=f'<service type="jobs" enabled="true"><token>{TOKEN}</token></service>')
    web = alias(site)
    browser.open(f"http://127.0.0.1:{web.port}/mc/jobs/")
    wait_until(lambda: "token is needed" in "".join(texts(browser, "#notice")), "a notice")
    browser.script(f"document.getElementById('token').value = {TOKEN!r}; document.querySelector('#key button').click()")
    wait_until(lambda: browser.script("return !document.getElementById('nothing').hidden"), "no jobs")
    wait_until(lambda: texts(browser, "#notice") == [""], "no notice")

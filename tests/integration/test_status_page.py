"""The status page: what it shows of all processes of a server, as JSON and in a real browser; off unless configured."""
import collections
import json
import os
import signal
import subprocess
import time
import xml.sax.saxutils

import pytest
from browser import Browser
from changes_site import configuration as changes_configuration
from changes_site import path_of, prepare, tile_of
from conftest import GRID, SOON, Site, tile_path, wait_until
from fastcgi import Server
from origin import Origin
from patience import patience
from postgres import PASSWORD, Postgres

MARKUP = "<img src=x onerror=\"document.title='broken'\"> & 'quotes'"
MANY = 40
PAGE = '<service type="status" enabled="true"><page>true</page></service>'


def tileset(name, source="", title=""):
    meta = f"<metadata><title>{xml.sax.saxutils.escape(title)}</title></metadata>" if title else ""
    return f"""<tileset name="{xml.sax.saxutils.escape(name, {'"': '&quot;'})}">{meta}{source and f"<source>{source}</source>"}<cache>none</cache>
      <grid>{GRID}</grid><format>PNG</format></tileset>\n"""


def configuration(origin):
    """Stores and sources that work and fail, hostile names, and more tilesets than a page lists."""
    wms = '<source name="{}" type="wms"><getmap><params><LAYERS>red</LAYERS></params></getmap><http><url>{}</url></http></source>'
    broken = xml.sax.saxutils.escape(origin.url("/status/500?").replace("http://", "http://joe:pillow@") + "apikey=swordfish&")
    return f"""{wms.format("broken", broken)}{wms.format("late", origin.url("/late/400/wms?"))}
      <cache name="none" type="none"/><cache name="blocked" type="disk"><base>/proc/nowhere</base></cache>
      {tileset("broken", "broken")}{tileset("late", "late")}{tileset(MARKUP, "broken", MARKUP)}
      <tileset name="blocked"><source>late</source><cache>blocked</cache><grid>{GRID}</grid><format>PNG</format></tileset>
      {"".join(tileset(f"many-{number}", title=f"Product {number}") for number in range(MANY))}
      <service type="demo" enabled="true"/>{PAGE}"""


@pytest.fixture(scope="module")
def web(shared_folder, shared_apache):
    """Two children at least, which have answered some requests."""
    shared_folder.chmod(0o777)
    with Origin() as origin:
        site = Site(shared_folder, origin)
        site.write_config(extra=configuration(origin))
        running = shared_apache("ours", f"MapCacheAlias /mc {site.config}\n", mpm="prefork")
        running.config = site.config
        yield running


def told(web, query=""):
    reply = web.get(f"/mc/status/status.json{query}")
    assert reply.status == 200, reply.body
    return json.loads(reply.body)


def tile(name, x=0):
    return f"/mc/tms/1.0.0/{name}@{GRID}/1/{x}/0.png"


def find(items, **wanted):
    found = [item for item in items if all(item.get(key) == value for key, value in wanted.items())]
    assert len(found) == 1, (wanted, items)
    return found[0]


def test_the_numbers_are_those_of_all_processes(web):
    before = find(told(web, "?find=base")["tilesets"]["items"], name="base")
    for _ in range(30):
        assert web.get("/mc" + tile_path()).status == 200
    wait_until(lambda: told(web)["processes"]["total"] >= 2, "two processes have reported")
    for _ in range(5):  # whichever answers
        now = find(told(web, "?find=base")["tilesets"]["items"], name="base")
        assert now["total"] - before["total"] == 30 and now["results"]["hit"] - before["results"]["hit"] == 30
        assert sum(now["buckets"]) == now["total"] == sum(now["results"].values())
        assert 0 < now["p50_ms"] <= now["p95_ms"] <= now["p99_ms"]
    said = told(web)
    assert len(said["requests"]["buckets"]) == len(said["requests"]["bounds_ms"]) + 1
    assert said["requests"]["total"] == sum(said["requests"]["results"].values())
    for process in said["processes"]["items"]:
        os.kill(process["id"], 0)
        assert process["resident_bytes"] > 1 << 20 and not process["reload_failed"]
    assert said["shared_memory"]["most_bytes"] > 0


def test_a_killed_process_is_not_listed_and_leaves_nothing_locked(web):
    for _ in range(10):
        told(web)
    victim = told(web)["processes"]["items"][0]["id"]
    os.kill(victim, signal.SIGKILL)

    def is_gone():
        try:
            return victim not in [process["id"] for process in told(web)["processes"]["items"]]
        except OSError:  # the victim had that connection
            return False

    wait_until(is_gone, "the killed process is gone")
    assert web.get(tile("broken")).status >= 500
    assert find(told(web)["errors"], tileset="broken")["count"] >= 1


def test_errors_name_what_was_asked_for_and_keep_secrets(web):
    for number in range(3):
        assert web.get(tile("broken", number % 2) + "?token=sesame&color=blue&%6bey=hidden").status == 502
    said = told(web)
    error = next(error for error in said["errors"] if error["tileset"] == "broken" and "sesame" not in json.dumps(error) and "color=blue" in error["url"])
    assert error["status"] == 502 and error["level"] == "error" and error["service"] == "tms" and error["count"] >= 1
    assert error["tile"].startswith(f"{GRID}/1/") and error["first"] <= error["time"] <= said["time"] + 1
    assert error["url"].startswith("/mc/tms/1.0.0/broken@") and "token=***" in error["url"]
    lines = web.config.read_text().splitlines()
    path, line = error["position"].rsplit(":", 1)
    assert str(web.config).endswith(path.lstrip(".")) and 'tileset name="broken"' in lines[int(line) - 1]
    for secret in ("sesame", "hidden", "swordfish", "pillow"):
        assert secret not in json.dumps(said)


def test_sources_and_stores_tell_of_their_failures(web):
    assert web.get(tile("broken")).status >= 500 and web.get(tile("late")).status == 200
    web.get(tile("blocked"))

    def settled():
        told(web)
        said = told(web)
        source, late = find(said["sources"], name="broken"), find(said["sources"], name="late")
        return source["state"] == "fails" and late["state"] == "works" and find(said["stores"], name="blocked")["state"] == "fails"

    wait_until(settled, "the processes have reported")
    said = told(web)
    source = find(said["sources"], name="broken")
    assert source["calls"] >= source["failures"] >= 1 and source["failure"] and source["type"] == "wms"
    assert source["failed_seconds_ago"] >= 0 and source["position"].count(":") == 1
    blocked = find(said["stores"], name="blocked")
    assert blocked["failures"] >= 1 and blocked["failing_processes"] <= blocked["processes"] and said["stores"][0]["state"] == "fails"


def test_slow_requests_have_their_spans(web):
    assert web.get(tile("late") + "?token=sesame").status == 200
    slow = told(web)["slow"]
    assert [one["ms"] for one in slow] == sorted((one["ms"] for one in slow), reverse=True) and len(slow) <= 12
    late = next(one for one in slow if one.get("tileset") == "late")
    assert late["ms"] >= 400 and late["result"] == "rendered" and "sesame" not in json.dumps(slow)
    request = told(web, f"?request={late['number']}")["request"]
    spans = {span["number"]: span for span in request["spans"]}
    roots = [span for span in spans.values() if span["parent"] not in spans]
    assert [span["name"] for span in roots] == ["mapcache_handler"]
    assert {"mapcache_source_render", "mapcache_http_request"} <= {span["name"] for span in spans.values()}
    for span in spans.values():
        assert 0 <= span["begin_us"] and span["begin_us"] + span["us"] <= request["ms"] * 1000 + 1000
    reply = web.get("/mc/status/status.json?request=123456789")
    assert reply.status == 404 and json.loads(reply.body)["error"]


def test_tilesets_are_listed_a_page_at_a_time(web):
    said = told(web, "?limit=7&offset=3&find=many-")["tilesets"]
    assert said["matching"] == MANY and said["offset"] == 3 and len(said["items"]) == 7 and said["total"] == MANY + 6
    names = collections.Counter()
    for offset in range(0, MANY, 15):
        names.update(item["name"] for item in told(web, f"?limit=15&offset={offset}&find=PRODUCT")["tilesets"]["items"])
    assert names == {f"many-{number}": 1 for number in range(MANY)}
    assert told(web, "?find=nothing-of-that-name")["tilesets"]["items"] == []
    for query in ("?limit=201", "?limit=-1", "?offset=x", "?find=" + 200 * "a", "?request=0"):
        reply = web.get("/mc/status/status.json" + query)
        assert reply.status == 400 and reply.headers["Content-Type"] == "application/json", query
    assert len(web.get("/mc/status/status.json?limit=200").body) < 1 << 20


def test_nobody_keeps_or_embeds_the_page(web):
    for path in ("", "status.json"):
        reply = web.get("/mc/status/" + path, {"Origin": "http://elsewhere.example"})
        assert reply.status == 200 and reply.headers["Cache-Control"] == "no-store" and "Access-Control-Allow-Origin" not in reply.headers
    policy = web.get("/mc/status/").headers["Content-Security-Policy"]
    assert "script-src 'self'" in policy and "unsafe" not in policy and "default-src 'none'" in policy
    for path in ("static/httpd.conf", "static/", "static/../status.js", "more", "status.json/"):
        assert web.get("/mc/status/" + path).status in (400, 404), path
    assert web.get("/mc/status/", method="POST", body=b"a=b").status in (200, 405)


def test_the_page_is_off_unless_configured(site, apache):
    site.write_config(extra='<service type="status" enabled="true"/><service type="metrics" enabled="true"/>')
    web = apache(f"MapCacheAlias /mc {site.config}")
    assert web.get("/mc/status").status == 200
    for path in ("", "status.json", "static/status.js"):
        assert web.get("/mc/status/" + path).status == 404, path


def test_databases_jobs_and_reloads_of_a_fastcgi_program(build, tmp_path):
    """What is there is told, then what is not there any more: the database, and the configuration."""
    with Postgres() as database:
        prepare(build, database)
        jobs = f"<jobs><connection>{xml.sax.saxutils.escape(database.connection())}</connection></jobs>"
        config = changes_configuration(tmp_path, database.connection(), extra=jobs + PAGE,
                                       more="<auto_expire>3600</auto_expire><stale_while_revalidate>1000000000</stale_while_revalidate>")
        subprocess.run([build / "bin/mapcache", "jobs", "enqueue", "-c", config, "-t", "squares", "-z", "0,4"], check=True, timeout=patience(60))
        server = Server(build, config, tmp_path)
        try:
            def asked():
                answer = server.get("/status/status.json")
                assert answer.status == 200, answer.body
                return json.loads(answer.body)

            def until(condition, what):
                wait_until(lambda: condition(asked()), what, SOON)

            assert server.get(path_of(tile_of(10, 46, 3))).status == 200
            until(lambda said: said["change_logs"] and said["change_logs"][0]["state"] == "works" and "read_seconds_ago" in said["change_logs"][0], "the log is read")
            said = asked()
            log = said["change_logs"][0]
            assert log["led"] and log["name"] in find(said["tilesets"]["items"], name="squares")["logs"]
            until(lambda said: said["servers"] and said["servers"][0]["state"] == "works", "the database is known")
            job = find(said["jobs"]["items"], tileset="squares")
            assert job["state"] == "open" and "owner" not in job and said["processes"]["reload_failed"] == 0
            assert PASSWORD not in json.dumps(said)
            good = config.read_text()
            config.write_text(good.replace("<cache>store</cache>", "<cache>nowhere</cache>"))
            server.program.process.send_signal(signal.SIGHUP)
            until(lambda said: said["processes"]["reload_failed"] == 1, "a broken configuration is told of")
            failure = asked()["configuration"]["failure"]
            line = next(number for number, text in enumerate(config.read_text().splitlines(), 1) if "nowhere" in text)
            assert failure["where"].startswith(f"mapcache.xml:{line}:") and "nowhere" in failure["reason"] and failure["time"] <= asked()["time"]
            assert server.get(path_of(tile_of(10, 46, 3))).status == 200
            database.stop()
            until(lambda said: said["change_logs"][0]["state"] == "fails", "the database is away")
            for tile in (tmp_path / "tiles").rglob("*.png"):
                os.utime(tile, (time.time() - 86400, time.time() - 86400))
            assert server.get(path_of(tile_of(10, 46, 3))).status == 200  # and behind that answer a new one cannot be drawn
            until(lambda said: any(error.get("tile", "").startswith(f"{GRID}/3/") and error["tileset"] == "squares" and "url" not in error
                                   for error in said["errors"]), "work behind answers names its tile")
            config.write_text(good)
            server.program.process.send_signal(signal.SIGHUP)
            until(lambda said: said["processes"]["reload_failed"] == 0, "a good one is served again")
            assert "failure" not in asked()["configuration"]
            until(lambda said: "failure" in said["jobs"], "the queue is away, which has been asked anew")
            assert PASSWORD not in json.dumps(asked())
        finally:
            server.stop()


# --- in a browser -------------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def desktop():
    with Browser(1280, 900) as running:
        yield running


@pytest.fixture(scope="module")
def phone():
    with Browser(390, 844, phone=True) as running:
        yield running


def text(browser, selector):
    return browser.script(f"return (document.querySelector({json.dumps(selector)}) || {{}}).innerText || ''")


def rows(browser, table):
    return browser.script(f"return [...document.querySelectorAll('#{table} tbody tr')].map(row => row.innerText)")


def open_page(browser, web):
    browser.open("about:blank")
    browser.network()
    browser.console()
    browser.open(f"http://127.0.0.1:{web.port}/mc/status/")
    wait_until(lambda: len(rows(browser, "tilesets")) == 12 and len(rows(browser, "processes")) > 0, "the page is filled")
    return browser


@pytest.fixture
def page(desktop, web):
    return open_page(desktop, web)


@pytest.mark.parametrize("screen", ["desktop", "phone"])
def test_the_page_fits_its_screen(screen, web, request):
    assert web.get(tile("broken")).status >= 500 and web.get(tile("late")).status == 200 and web.get("/mc" + tile_path()).status == 200
    page = open_page(request.getfixturevalue(screen), web)
    shown = rows(page, "errors")
    assert any("broken" in row and "502" in row for row in shown), shown
    assert any("late" in row for row in rows(page, "slow")) and any("broken" in row for row in rows(page, "sources"))
    assert page.script("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert "live" in text(page, "#live") and text(page, "#notice") == "" and page.console() == []


def test_the_page_is_live_and_takes_no_text_for_markup(page, web):
    wait_until(lambda: text(page, "[data-figure=rate]") not in ("-", ""), "a rate between two looks")
    page.script("document.querySelector('#find').value = 'onerror'; document.querySelector('#find').dispatchEvent(new Event('input'))")
    wait_until(lambda: len(rows(page, "tilesets")) == 1, "the list is searched")
    assert MARKUP in rows(page, "tilesets")[0]
    assert page.script("return document.title") == "Status - integration" and not page.script("return document.querySelectorAll('img').length")
    assert page.console() == []
    assert all(url.startswith(f"http://127.0.0.1:{web.port}/") or url.startswith(("data:", "about:")) for url, _ in page.network())


def test_the_list_of_tilesets_has_pages(page):
    assert text(page, "#count") == f"1 to 12 of {MANY + 6}"
    page.script("document.querySelector('#after').click()")
    wait_until(lambda: text(page, "#count").startswith("13 to 24 of "), "the second page")
    page.script("for (let i = 0; i < 2; i++) document.querySelector('#after').click()")
    wait_until(lambda: text(page, "#count").startswith("37 to 46 of "), "the last page")
    assert page.script("return document.querySelector('#after').disabled") and len(rows(page, "tilesets")) == 10


def test_a_slow_request_has_a_flame_chart(page):
    page.script("[...document.querySelectorAll('#slow tbody tr')].find(row => row.innerText.includes('late')).querySelector('button').click()")
    wait_until(lambda: page.script("return document.querySelectorAll('#flame .rows button').length") >= 4, "the flame chart is drawn")
    boxes = page.script("""return [...document.querySelectorAll('#flame .rows button')].map(b => ({text: b.textContent, top: b.offsetTop,
      left: b.offsetLeft, right: b.offsetLeft + b.offsetWidth, wide: b.parentElement.clientWidth}))""")
    assert boxes[0]["text"] == "handler" and boxes[0]["top"] == 0
    fetch = next(box for box in boxes if box["text"].startswith("source_render late"))
    assert fetch["top"] > 0 and all(box["left"] >= 0 and box["right"] <= box["wide"] + 3 for box in boxes)
    page.script("[...document.querySelectorAll('#flame .rows button')].find(b => b.textContent.startsWith('source_render')).click()")
    assert "source_render late" in text(page, "#flame .told") and not page.script("return [...document.querySelectorAll('#flame button')][0].disabled")


def test_an_unseen_page_does_not_ask_and_a_lost_server_is_asked_ever_less(page):
    """The page's own pauses are noted, and cut short."""
    page.script("""window.pauses = []; window.asked = 0; const pause = window.setTimeout; window.answers = window.fetch;
      window.setTimeout = (act, time) => { pauses.push(time); return pause(act, Math.min(time, 20)); };
      window.fetch = url => { asked++; return Promise.reject(new Error('gone')); }""")
    wait_until(lambda: page.script("return pauses.filter(time => time === 60000).length") >= 2, "the pauses have grown")
    pauses = page.script("return pauses")
    assert pauses[:6] == [4000, 8000, 16000, 32000, 60000, 60000] and max(pauses) == 60000, pauses
    assert "does not answer" in text(page, "#notice") and "asked again in 60 s" in text(page, "#live")
    page.script("""Object.defineProperty(document, 'hidden', { value: true, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'))""")
    before = page.script("return asked")
    page.settled()
    assert page.script("return asked") == before
    page.script("""window.fetch = window.answers; Object.defineProperty(document, 'hidden', { value: false, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'))""")
    wait_until(lambda: text(page, "#notice") == "" and "live" in text(page, "#live"), "the page asks again once it is seen")
    assert page.script("return pauses[pauses.length - 1]") == 2000

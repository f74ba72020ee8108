"""The vector maps of script/server --postgis in headless Chromium: each map, out of shapefiles and out of PostGIS, in each form; what a
click hits; the legend; and how they are fetched."""
import hashlib
import http.server
import io
import json
import os
import pathlib
import re
import subprocess
import tarfile
import threading
import time

import numpy
import pytest
from browser import Browser
from conftest import ROOT, fetch
from drop_in import pixels
from patience import patience
from ports import free_port
from test_server_script import SECONDS, interrupt, start

LAND = {"world": ["#f7e6c4", "#dde8c3", "#f3d6c9", "#e3d9e8", "#fbf3cf"], "counties": ["#f7e6c4", "#dde8c3", "#f3d6c9", "#eeece8"]}
SEA = "#cfe2ec"
FORMS = {"map": "REQUEST=GetMap", "tiles": ".png", "vector": ".mvt"}  # and what is in their addresses
WMS = "SERVICE=WMS&VERSION=1.1.1&STYLES=&SRS=EPSG:3857&FORMAT=image/png"


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    log = tmp_path_factory.mktemp("vector") / "log"
    with open(log, "wb") as out:
        process = start(out, "--postgis", "--port", str(free_port()))
        try:
            end = time.monotonic() + patience(SECONDS)
            while "Ctrl-C stops" not in log.read_text():
                assert process.poll() is None and time.monotonic() < end, log.read_text()
                time.sleep(0.1)
            said = log.read_text()
            running = postgres_of(process.pid)
            assert running
            yield int(re.search(r"http://localhost:(\d+)/vector/", said).group(1))
        finally:
            status = interrupt(process)
    assert status == 0 and log.read_text().endswith("demo: stopped\n"), log.read_text()
    assert not any(os.path.exists(f"/proc/{pid}") for pid in running), "PostgreSQL goes on"
    assert not any(os.path.exists(folder) for folder in running.values())


def postgres_of(session):
    """{process: folder of its socket} of the database servers of a session."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace").read().split("\0")
            if os.getsid(int(pid)) == session and words[0].endswith("/postgres") and "-k" in words:
                found[int(pid)] = words[words.index("-k") + 1]
        except OSError:
            pass
    return found


@pytest.fixture(scope="module")
def running():
    with Browser(1366, 900) as browser:
        yield browser


@pytest.fixture
def browser(running, port):
    running.open("about:blank")
    running.network()
    running.console()
    return running


def opened(browser, port, place):
    """The page at rest; all requests."""
    browser.open("about:blank")
    browser.open(f"http://127.0.0.1:{port}/vector/#{place}")
    return rest(browser, port)


def rest(browser, port, *needed):
    requests = browser.settled(*needed, until=lambda: text(browser, "server").endswith("ms"), seconds=60)
    foreign = [url for url, _ in requests if not url.startswith((f"http://127.0.0.1:{port}/", "data:", "blob:", "about:"))]
    assert foreign == []
    assert {status for url, status in requests if url.startswith("http")} <= {200, 304, None}
    assert browser.console() == []
    return requests


def text(browser, name):
    return browser.script(f"const e = document.getElementById('{name}'); return e === null ? '' : e.innerText")


def click(browser, selector):
    browser.script(f"document.querySelector({selector!r}).click()")


def box(browser, name="map"):
    return [int(number) for number in browser.script(
        f"const b = document.getElementById('{name}').getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom];")]


def shown(browser):
    left, top, right, bottom = box(browser)
    return pixels(browser.screenshot())[top:bottom, left:right, :3].astype(int)


def share(picture, colour):
    wanted = [int(colour[i:i + 2], 16) for i in (1, 3, 5)]
    return (abs(picture - wanted).max(axis=2) <= 2).mean()


@pytest.mark.parametrize("layer", ["world", "counties"])
@pytest.mark.parametrize("data", ["shapefile", "postgis"])
@pytest.mark.parametrize("form", FORMS)
def test_every_map_in_every_form(browser, port, layer, data, form):
    requests = opened(browser, port, f"{layer}/{data}/{form}")
    asked = [url for url, status in requests if status and FORMS[form] in url]
    assert asked and all(f"/{data}" in url and layer in url for url in asked)
    picture = shown(browser)
    assert share(picture, SEA) > 0.1
    assert all(share(picture, colour) > 0.01 for colour in LAND[layer])
    assert 0.0005 < (picture.max(axis=2) < 150).mean() < 0.25, "no dark lines and letters, or nothing else"
    end = time.monotonic() + patience(60)
    while int(text(browser, "answers").split()[0]) != len(asked) and time.monotonic() < end:  # a late tile may still come
        time.sleep(0.2)
        asked += [url for url, status in browser.network() if status and FORMS[form] in url]
    assert int(text(browser, "answers").split()[0]) == len(asked)
    for name in ("server", "browser"):
        assert 0 < float(text(browser, name).removesuffix("ms")) < 60000
    width, height = browser.script("const i = document.getElementById('legend'); return [i.naturalWidth, i.naturalHeight];")
    assert width > 100 and height > 60, "no legend"


@pytest.mark.parametrize("data", ["shapefile", "postgis"])
def test_names_are_written(port, data):
    """Ink of letters, and of nothing else, in the middle of Brazil and over five counties of Kansas."""
    for layer, place, least in [("world", "-7000000,-2500000,-4700000,-500000", 150), ("counties", "-11000000,4580000,-10800000,4740000", 400)]:
        reply = fetch(port, f"/{data}?{WMS}&REQUEST=GetMap&LAYERS={layer}&BBOX={place}&WIDTH=400&HEIGHT=320")
        dark = pixels(reply.body)[..., :3].max(axis=2) < 130
        assert least < dark.sum() < 0.1 * dark.size, (layer, dark.sum())


def test_shapefiles_and_tables_look_the_same(port):
    for layer, place in [("world", "-2000000,4000000,4000000,8000000"), ("counties", "-9500000,3800000,-8000000,4800000")]:
        one, other = (fetch(port, f"/{data}?{WMS}&REQUEST=GetMap&LAYERS={layer}&BBOX={place}&WIDTH=900&HEIGHT=600")
                      for data in ("shapefile", "postgis"))
        assert one.status == other.status == 200 and "Server-Timing" in one.headers
        difference = abs(pixels(one.body).astype(int) - pixels(other.body)).max(axis=2)
        assert (difference > 3).mean() < 0.001, "more than what the order of rows changes where lines touch"


def test_the_choices_are_buttons(browser, port):
    opened(browser, port, "world/shapefile/map")
    for selector, address, hash_ in [("#form [data-value=tiles]", "/shapefile/wmts/1.0.0/world/", "#world/shapefile/tiles"),
                                     ("#data [data-value=postgis]", "/postgis/wmts/1.0.0/world/", "#world/postgis/tiles"),
                                     ("#layer [data-value=counties]", "/postgis/wmts/1.0.0/counties/", "#counties/postgis/tiles"),
                                     ("#form [data-value=vector]", "/postgis/wmts/1.0.0/counties-vector/", "#counties/postgis/vector"),
                                     ("#form [data-value=map]", "/postgis?", "#counties/postgis/map")]:
        before = shown(browser)
        click(browser, selector)
        rest(browser, port, address)
        assert browser.script("return location.hash") == hash_
        assert browser.script(f"return document.querySelector({selector!r}).getAttribute('aria-checked')") == "true"
        if "layer" in selector:
            assert (abs(shown(browser) - before).max(axis=2) > 40).mean() > 0.2


@pytest.mark.parametrize("layer", ["world", "counties"])
@pytest.mark.parametrize("data", ["shapefile", "postgis"])
def test_a_click_tells_what_is_there(browser, port, layer, data):
    opened(browser, port, f"{layer}/{data}/tiles")
    places = {"world": (-5700000, -1300000), "counties": (-10950000, 4650000)}
    x, y = browser.script(f"return document.getElementById('map').map.getPixelFromCoordinate({list(places[layer])})")
    left, top, *_ = box(browser)
    browser.move(int(left + x), int(top + y), click=True)
    rest(browser, port, "REQUEST=GetFeatureInfo")
    said = text(browser, "found")
    assert {"world": "Brazil", "counties": "Kansas"}[layer] in said and "km²" in said
    assert browser.script("return document.getElementById('popup').offsetHeight") > 40
    click(browser, "#close")
    assert browser.script("return document.getElementById('popup').offsetHeight") == 0


def test_its_configurations_are_clean(port, build):
    for name in ("shapefile", "postgis"):
        places = [base / f"vector/run-{port}/{name}.xml" for base in (ROOT / "build/demo", pathlib.Path("/var/tmp/mapcache-demo"))]
        checked = subprocess.run([build / "bin/mapcache", "check", next(file for file in places if file.exists())],
                                 capture_output=True, text=True, timeout=patience(60))
        assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.fixture(scope="module")
def prefixed(port, shared_apache):
    """The same behind a proxy, below /some/maps/."""
    modules = "".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n" for name in ("proxy", "proxy_http"))
    return shared_apache("proxy", f"{modules}ProxyPass /some/maps/ http://127.0.0.1:{port}/\n", module=False)


@pytest.mark.parametrize("page, needed", [("", ["front.css"]), ("catalogue/", ["catalog-auto?", "catalog-auto/wmts", "ol.js"]),
                                          ("vector/#world/shapefile/map", ["shapefile?"]), ("vector/#world/shapefile/vector", [".mvt"]),
                                          ("postgis/jobs/", ["jobs/api"])])
def test_behind_a_proxy_with_another_prefix(browser, prefixed, page, needed):
    browser.open("about:blank")
    browser.network()
    own = f"http://127.0.0.1:{prefixed.port}/some/maps/"
    browser.open(own + page)
    requests = browser.settled(*needed)
    assert [url for url, _ in requests if not url.startswith((own, "data:", "blob:", "about:"))] == []
    assert {status for url, status in requests if url.startswith("http")} <= {200, 304, None}
    assert browser.console() == []


def test_the_index_leads_to_all_pages(browser, prefixed):
    own = f"http://127.0.0.1:{prefixed.port}/some/maps/"
    browser.open(own)
    links = browser.script("return [...document.querySelectorAll('a')].map(a => a.href)")
    assert {own + path for path in ("mapcache/demo/", "catalogue/", "vector/", "postgis/jobs/")} <= set(links)
    for link in links:
        assert fetch(prefixed.port, link.removeprefix(f"http://127.0.0.1:{prefixed.port}")).status == 200, link


class Registry(http.server.BaseHTTPRequestHandler):
    """npm's registry with a package of the right name and other contents."""

    def do_GET(self):
        version, name = "2.0.2", "world-atlas"
        if self.path.endswith(".tgz"):
            body = self.server.package
        else:
            address = f"http://127.0.0.1:{self.server.server_port}/{name}-{version}.tgz"
            dist = {"tarball": address, "shasum": hashlib.sha1(self.server.package).hexdigest()}
            body = json.dumps({"name": name, "dist-tags": {"latest": version},
                               "versions": {version: {"name": name, "version": version, "dist": dist}}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def vector_fetch(folder, registry):
    return subprocess.run([ROOT / "demo/vector/fetch", folder], capture_output=True, text=True, timeout=patience(120),
                          env={**os.environ, "npm_config_registry": registry, "npm_config_cache": str(folder / "cache")})


def test_without_a_network_it_says_so(folder):
    done = vector_fetch(folder, "http://127.0.0.1:9/")
    assert done.returncode == 1 and "world-atlas 2.0.2 cannot be fetched" in done.stderr
    assert not list(folder.glob("**/*.shp"))


def test_a_package_that_is_another_is_refused(folder):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name in ("package.json", "countries-10m.json"):
            content = json.dumps({"name": "world-atlas", "version": "2.0.2"}).encode()
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    server.package = file.getvalue()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        done = vector_fetch(folder, f"http://127.0.0.1:{server.server_port}/")
    finally:
        server.shutdown()
        server.server_close()
    assert done.returncode == 1 and "its checksum differs" in done.stderr
    assert not (folder / "npm/countries-10m.json").exists() and not list(folder.glob("**/*.shp"))

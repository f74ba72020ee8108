"""The catalogue of script/server in headless Chromium: products found by keyword and by date, drawn through the dimension, with
each configuration; their times; products that come and go."""

import io
import json
import pathlib
import sqlite3
import subprocess
import time

import numpy
import pytest
from browser import Browser
from conftest import ROOT, fetch, wait_until
from drop_in import pixels
from patience import patience
from PIL import Image
from test_server_script import page as server_script  # noqa: F401: a fixture

DATA = ROOT / "build/demo"
QUERY = "SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&STYLES=&SRS=EPSG:3857&FORMAT=image/png&TRANSPARENT=true"


@pytest.fixture(scope="module")
def port(server_script):  # noqa: F811
    return server_script[0]


@pytest.fixture(scope="module")
def folder(port):
    """Where the catalogue that is served is."""
    reply = fetch(port, "/catalogue/configurations.json")
    assert reply.status == 200
    places = [DATA / "catalogue", pathlib.Path("/var/tmp/mapcache-demo/catalogue")]
    return next(place for place in places if (place / "page/configurations.json").exists()
                and (place / "page/configurations.json").read_bytes() == reply.body)


def products(port):
    features = json.loads(fetch(port, "/catalogue/products.geojson").body)["features"]
    return {feature["id"]: feature for feature in features}


@pytest.fixture(scope="module")
def running():
    with Browser(1366, 900) as browser:
        yield browser


@pytest.fixture
def browser(running, port):
    """The page, just opened and at rest."""
    running.open("about:blank")
    running.network()
    running.console()
    running.open(f"http://127.0.0.1:{port}/catalogue/")
    running.settled("/catalog-auto?", until=lambda: running.script("return document.querySelectorAll('#requests .bar').length"))
    return running


def test_the_generator_makes_the_case_study(port, folder):
    """401 products in their groups, the same ones each time, and one in every window of the zoom table; files as MapCache's."""
    listed = [json.loads(subprocess.run(
        ["/usr/bin/python3", "-c", "import json, products; print(json.dumps(products.plan(True)))"], cwd=ROOT / "demo/catalogue",
        capture_output=True, text=True, timeout=patience(60), check=True).stdout) for _ in range(2)]
    assert listed[0] == listed[1] and len({product["name"] for product in listed[0]}) == 401
    words = [product["keywords"].split(",") for product in listed[0]]
    assert [sum(word in of for of in words) for word in ("un", "peak", "usa", "australia")] == [12, 4, 200, 105]
    for zoom, column, row in [(2, 0, 0), (3, 0, 1), (4, 2, 4), (5, 5, 10), (6, 14, 22), (7, 29, 44), (8, 60, 90), (9, 121, 181),
                              (10, 245, 366), (11, 493, 734), (12, 986, 1471), (13, 1971, 2945)]:
        tile = 2 * 20037508.342789248 / 2**zoom
        west, north = column * tile - 20037508.342789248, 20037508.342789248 - row * tile
        assert any(minx < west + 4 * tile and maxx > west and miny < north and maxy > north - 4 * tile
                   for minx, miny, maxx, maxy in (product["box"] for product in listed[0])), zoom
    with sqlite3.connect(f"file:{folder}/products/paris.sqlite3?mode=ro", uri=True) as database:
        assert {row[0] for row in database.execute("select distinct z from tiles")} == set(range(9))
        pictures = [(z, Image.open(io.BytesIO(data))) for z, data in database.execute("select z, data from tiles")]
    assert {picture.mode for _, picture in pictures} == {"RGB", "RGBA"}
    for _, picture in pictures:
        assert picture.size == (256, 256)
        if picture.mode == "RGBA":
            assert numpy.asarray(picture)[..., 3].min() == 0 < numpy.asarray(picture)[..., 3].max()


def text(browser, name):
    return browser.script(f"return document.getElementById('{name}').innerText")


def click(browser, selector):
    """As a hand does it: in the middle of what is there."""
    x, y = browser.script(f"const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'nearest'}});"
                          "const b = e.getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2];")
    browser.move(round(x), round(y), click=True)


def drawn(browser):
    """Pixels of the map without outlines: (height, width, 3)."""
    browser.script("const o = document.getElementById('outlines'); if (o.checked) o.click();")
    time.sleep(0.3)
    shown = picture(browser)
    assert shown.shape[0] > 400 and shown.shape[1] > 500
    return shown


def picture(browser):
    """The map as it is shown: (height, width, 3)."""
    left, top, right, bottom = map(int, place(browser))
    return pixels(browser.screenshot())[top:bottom, left:right, :3].astype(int)


def place(browser):
    """Where the map is in the window: left, top, right, bottom."""
    return browser.script("const b = document.getElementById('map').getBoundingClientRect();"
                          "return [b.left, b.top, b.right, b.bottom];")


def changed(first, second):
    """The part of the map that is not the same."""
    return (numpy.abs(first - second).max(axis=2) > 12).mean()


def clean(browser, port, requests):
    assert browser.console() == []
    web = [(url, status) for url, status in requests if url.startswith("http")]
    assert all(url.startswith(f"http://127.0.0.1:{port}/") for url, _ in web), web
    assert {status for _, status in web} <= {200, 304, None}, web


def rest(browser, port, *needed, until=lambda: True):
    requests = browser.settled(*needed, until=until)
    clean(browser, port, requests)
    return requests


def test_products_are_found_by_keyword_and_drawn(browser, port):
    known = products(port)
    peaks = {name for name, feature in known.items() if "peak" in feature["properties"]["keywords"]}
    assert len(peaks) == 4 and len(known) >= 44
    click(browser, "[data-keyword=peak]")
    requests = rest(browser, port, "DIM_PRODUCT=peak")
    assert not any("LAYERS=dates" in url for url, _ in requests)
    assert set(browser.script("return [...document.querySelectorAll('#products b')].map(b => b.innerText)")) == peaks
    assert text(browser, "matching") == "4 of 4 drawn" and text(browser, "dimension") == "DIM_PRODUCT=peak"
    click(browser, "#products li[data-name=everest] b")
    rest(browser, port, "DIM_PRODUCT=peak")
    with_everest = drawn(browser)
    click(browser, "#products li[data-name=everest] input")
    rest(browser, port, until=lambda: "everest" not in text(browser, "dimension"))
    asked = text(browser, "dimension").removeprefix("DIM_PRODUCT=").split(",")
    assert set(asked) == peaks - {"everest"}
    without = drawn(browser)
    assert changed(with_everest, without) > 0.2
    assert len(numpy.unique(with_everest.reshape(-1, 3), axis=0)) > 1000
    click(browser, "#none")
    rest(browser, port)
    assert text(browser, "dimension") == "nothing chosen"
    assert changed(without, drawn(browser)) == 0  # nothing else was there


def test_what_is_drawn_is_the_product(browser, port, folder):
    """The middle of the screen has the colours of the product's own tile."""
    browser.script("const f = document.getElementById('text'); f.value = 'rome'; f.dispatchEvent(new Event('input'))")
    rest(browser, port, "DIM_PRODUCT=rome")
    click(browser, "#products li[data-name=rome] b")
    rest(browser, port)
    shown = drawn(browser)
    middle = shown[shown.shape[0] // 2 - 60:shown.shape[0] // 2 + 60, shown.shape[1] // 2 - 60:shown.shape[1] // 2 + 60]
    with sqlite3.connect(f"file:{folder}/products/rome.sqlite3?mode=ro", uri=True) as database:
        tiles = [numpy.asarray(Image.open(io.BytesIO(data)).convert("RGB")).reshape(-1, 3).astype(int)
                 for data, in database.execute("select data from tiles where z = 8")]
    colours = numpy.unique(numpy.concatenate(tiles), axis=0)
    seen = numpy.unique(middle.reshape(-1, 3), axis=0)
    nearest = numpy.array([numpy.abs(colours - one).max(axis=1).min() for one in seen])
    assert len(seen) > 30 and (nearest <= 12).mean() > 0.98, (len(seen), nearest.max())


def test_search_by_date_asks_for_a_range(browser, port):
    browser.script("for (const [id, day] of [['from', '2023-03-01'], ['to', '2023-12-31']]) {"
                   "const f = document.getElementById(id); f.value = day; f.dispatchEvent(new Event('change')); }")
    rest(browser, port, "LAYERS=dates", until=lambda: text(browser, "dimension") == "TIME=2023-03-01/2023-12-31")
    known = products(port)
    wanted = {name for name, feature in known.items() if "2023-03-01" <= feature["properties"]["taken"] <= "2023-12-31"}
    listed = browser.script("return [...document.querySelectorAll('#products b')].map(b => b.innerText)")
    assert set(listed) == wanted and 5 < len(wanted) < len(known)
    by_time = drawn(browser)
    browser.script("document.getElementById('protocol').querySelector('[data-protocol=wmts]').click()")
    rest(browser, port, "layer=dates", until=lambda: text(browser, "dimension") == "TIME=2023-03-01/2023-12-31")
    assert changed(by_time, drawn(browser)) < 0.02  # the same picture, from tiles
    click(browser, "#clear")
    rest(browser, port, until=lambda: text(browser, "dimension") == "PRODUCT=%")
    assert changed(by_time, drawn(browser)) > 0.005


def test_a_month_is_chosen_in_the_chart(browser, port):
    click(browser, "#months div:first-child")
    rest(browser, port, until=lambda: text(browser, "dimension").startswith("TIME=2023-01-01/2023-01-31"))
    listed = browser.script("return [...document.querySelectorAll('#products time')].map(t => t.innerText)")
    assert listed and all(day.startswith("2023-01-") for day in listed)


def names(browser):
    return browser.script("return [...document.getElementById('configuration').options].map(o => o.value)")


def test_every_configuration_answers_the_same(browser, port):
    assert len(set(names(browser))) == 17 and names(browser)[:2] == ["catalog-auto", "catalog"]
    paths = [f"?{QUERY}&LAYERS=catalog&BBOX=-1000000,4500000,3000000,7500000&WIDTH=800&HEIGHT=600&DIM_PRODUCT=europe",
             f"?{QUERY}&LAYERS=dates&BBOX=-15000000,-5000000,16000000,8000000&WIDTH=775&HEIGHT=325&TIME=2023",
             "/wmts/1.0.0/catalog/default/%25/GoogleMapsCompatible/4/5/8.png"]
    for path in paths:
        pictures = [pixels(fetch(port, f"/{name}{path}").body).astype(int) for name in names(browser)]
        assert len(numpy.unique(pictures[0].reshape(-1, 4), axis=0)) > 200
        for name, picture in zip(names(browser), pictures):
            assert numpy.abs(picture - pictures[0]).max() <= 1, (name, path)


def test_the_configuration_is_switched(browser, port):
    """By the list and by the four buttons; each asks its own alias, and the picture stays."""
    first = drawn(browser)
    browser.script("const s = document.getElementById('configuration'); s.value = 'catalog-mtamtqbmgeo';"
                   "s.dispatchEvent(new Event('change'))")
    for option, expected in [(None, "catalog-mtamtqbmgeo"), ("mt", "catalog-amtqbmgeo"), ("qbm", "catalog-amtgeo")]:
        if option is not None:
            click(browser, f"[data-option={option}]")
        requests = rest(browser, port, f"/{expected}?")
        assert not any("/catalog-auto?" in url for url, _ in requests)
        assert browser.script("return document.getElementById('configuration').value") == expected
        pressed = browser.script("return [...document.querySelectorAll('#options [aria-pressed=true]')].map(b => b.innerText)")
        assert "catalog-" + "".join(pressed) == expected
        assert changed(first, drawn(browser)) < 0.002, expected


@pytest.mark.parametrize("protocol, address", [("map", "REQUEST=GetMap"), ("wms", "WIDTH=256"), ("wmts", "/wmts?")])
def test_times_are_shown(browser, port, protocol, address):
    click(browser, "#none")
    browser.settled()
    click(browser, f"[data-protocol={protocol}]")
    browser.script("document.querySelector('.ol-zoom-out').click()")
    browser.settled()
    click(browser, "#all")
    requests = rest(browser, port, address, until=lambda: text(browser, "server") != "–")
    asked = {url for url, status in requests if status and "/catalog-auto" in url and "/base/" not in url}
    assert text(browser, "answers").split()[0] == str(len(asked))
    for name in ("server", "browser"):
        assert 0 < float(text(browser, name).removesuffix("ms")) < 60000
    bars = browser.script("return [...document.querySelectorAll('#requests .bar')].map(b => [b.innerText, b.title])")
    assert {title for _, title in bars} <= {url[len(f"http://127.0.0.1:{port}"):] for url in asked} | asked and bars
    for said, _ in bars:
        server, client = (float(part) for part in said.strip().removesuffix(" ms").split(" / "))
        assert 0 < client and 0 <= server < 60000


def test_configurations_are_compared(browser, port):
    click(browser, "#compare")
    browser.settled("catalog-mtamtqbmgeo", until=lambda: not browser.script("return document.getElementById('compare').disabled"),
                    seconds=120)
    rows = browser.script("return [...document.querySelectorAll('#comparison .bar')].map(b => b.innerText.split('\\n'))")
    assert len(rows) == 17 and [row[0] for row in rows[:3]] == ["auto", "catalog", "mt"]
    assert all("ms" in row[-1] and "–" not in row[-1] for row in rows), rows


def test_list_and_outline_light_up_together(browser, port):
    browser.script("const f = document.getElementById('text'); f.value = 'everest'; f.dispatchEvent(new Event('input'))")
    click(browser, "#products li[data-name=everest] b")
    rest(browser, port)
    left, top, right, bottom = place(browser)
    near = "return [...document.querySelectorAll('#products li.near')].map(l => l.dataset.name)"
    browser.move(int(left + 5), int(bottom - 5))
    wait_until(lambda: browser.script(near) == [], "nothing lights up")
    before = picture(browser)
    browser.move(int((left + right) / 2), int((top + bottom) / 2))
    wait_until(lambda: browser.script(near) == ["everest"], "its line lights up")
    assert text(browser, "tip").startswith("everest, 20")
    x, y = browser.script("const b = document.querySelector('#products li').getBoundingClientRect();"
                          "return [b.left + 60, b.top + 10];")
    browser.move(int(left + 5), int(bottom - 5))
    browser.move(int(x), int(y))
    wait_until(lambda: changed(before, picture(browser)) > 0.005, "the outline lights up")


def test_opacity(browser, port):
    click(browser, "[data-keyword=europe]")
    rest(browser, port, "DIM_PRODUCT=europe")
    opaque = drawn(browser)
    browser.script("const f = document.getElementById('opacity'); f.value = 0; f.dispatchEvent(new Event('input'))")
    base = drawn(browser)
    browser.script("const f = document.getElementById('opacity'); f.value = 50; f.dispatchEvent(new Event('input'))")
    half = drawn(browser)
    different = numpy.abs(opaque - base).max(axis=2) > 12
    assert 0.01 < different.mean() < 0.9
    assert numpy.abs(half - (opaque + base) / 2)[different].max() <= 3


def run(folder, *arguments):
    return subprocess.run([ROOT / "demo/catalogue/products.py", DATA if (DATA / "relief.jpg").exists() else folder.parent,
                           folder, *arguments], capture_output=True, text=True, timeout=patience(60), check=True).stdout.split()


def test_products_come_and_go_without_a_restart(browser, port, folder):
    """The page, the server and its documents know at once."""
    before = products(port)
    name, = run(folder, "add")
    try:
        assert name not in before and name in products(port)
        browser.settled("products.geojson",
                        until=lambda: text(browser, "summary").startswith(f"{len(before) + 1} products"))
        assert text(browser, "news") == "1 new"
        browser.script(f"const f = document.getElementById('text'); f.value = '{name}'; f.dispatchEvent(new Event('input'))")
        click(browser, f"#products li[data-name={name}] b")
        rest(browser, port, f"DIM_PRODUCT={name}")
        shown = drawn(browser)
        click(browser, "#none")
        rest(browser, port)
        assert changed(shown, drawn(browser)) > 0.05
        assert name.encode() in fetch(port, "/catalog-auto/wmts/1.0.0/WMTSCapabilities.xml").body
    finally:
        run(folder, "remove", name)
    assert products(port) == before and not (folder / f"products/{name}.sqlite3").exists()
    assert name.encode() not in fetch(port, "/catalog-auto/wmts/1.0.0/WMTSCapabilities.xml").body
    browser.settled("products.geojson", until=lambda: text(browser, "summary").startswith(f"{len(before)} products"))


def test_values_that_are_no_products_are_harmless(port):
    """The query takes each as text."""
    whole = f"/catalog-auto?{QUERY}&LAYERS=base,catalog&BBOX=0,0,10000000,10000000&WIDTH=256&HEIGHT=256"
    base = fetch(port, whole + "&DIM_PRODUCT=nothing").body
    for value in ["%27%20or%201=1--", "%22", "%5C", "%22%5D", ",,,", "..%2F..%2Fbase", "%25%25", "paris%22,%22rome"]:
        reply = fetch(port, f"{whole}&DIM_PRODUCT={value}")
        assert reply.status in (200, 400), (value, reply.status)
        assert reply.status == 400 or reply.body == base, value


def test_a_narrow_window_shows_one_below_the_other(running, port):
    with Browser(500, 900) as narrow:
        narrow.open(f"http://127.0.0.1:{port}/catalogue/")
        narrow.settled("products.geojson", until=lambda: narrow.script("return document.querySelectorAll('#products li').length") > 0)
        header, chart, find, products, how = (narrow.script(f"const b = document.querySelector('{name}').getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]")
                                              for name in ("header", "#map", "#find", "#products", "#how"))
        assert header[3] <= chart[1] + 1 and chart[3] <= find[1] + 1 and find[3] <= how[1] + 1
        assert products[3] - products[1] > 200 and header[3] - header[1] < 100
        assert max(box[2] for box in (header, chart, find, how)) <= 500


def test_arrows_move_the_map(browser):
    browser.script("document.getElementById('map').focus()")
    browser.press("\ue014")  # to the right
    assert [url for url, status in browser.settled("/catalog-auto?") if "BBOX" in url and status == 200]

"""Times as periods: thousands of dates of a catalogue are a few intervals in capabilities, every time of them is served,
and words for the latest and the default time mean the same in every protocol."""

import datetime
import json
import sqlite3
import time
import xml.etree.ElementTree as ElementTree

import pytest
from browser import Browser
from conftest import GRID, ROOT, png
from drop_in import pixels
from patience import patience
from schemas import WMS_130, WMTS, validator

EDGE = 20037508.342789248
DAYS = [datetime.date(2001, 1, 1) + datetime.timedelta(days=count) for count in range(4000)]
GAP = [day for day in DAYS if not datetime.date(2005, 3, 1) <= day < datetime.date(2005, 4, 1)]
MONTHS = [f"{year}-{month:02d}" for year in range(1990, 2000) for month in range(1, 13)]
HOURS = [f"2020-02-{day}T{hour:02d}:00:00Z" for day in (28, 29) for hour in range(24)]
LISTS = {"daily": [str(day) for day in DAYS], "gap": [str(day) for day in GAP], "months": MONTHS, "hours": HOURS,
         "few": ["2001-01-01", "2002-05-07"], "plain": [str(day) for day in DAYS[:50]]}


def dimension(folder, name):
    during = f"select 'tile' from {name} where ts &gt;= :start_timestamp and ts &lt; :end_timestamp limit 1"
    return f"""<dimension name="TIME" type="time" default="latest"><dbfile>{folder}/times.sqlite</dbfile>
      <validate_query>{during}</validate_query><list_query>select text from {name} order by ts</list_query>
      <nearest>true</nearest><periods>{str(name != "plain").lower()}</periods></dimension>"""


@pytest.fixture(scope="module")
def folder(shared_folder):
    return shared_folder


@pytest.fixture(scope="module")
def web(shared_apache, folder):
    with sqlite3.connect(folder / "times.sqlite") as database:
        for name, texts in LISTS.items():
            database.execute(f"create table {name}(text text, ts integer)")
            for text in texts:
                whole = text + "-01" if len(text) == 7 else text
                moment = datetime.datetime.fromisoformat(whole.replace("Z", "+00:00")).replace(tzinfo=datetime.timezone.utc)
                database.execute(f"insert into {name} values(?, ?)", (text, int(moment.timestamp())))
    tiles = sqlite3.connect(folder / "tile.sqlite3")
    tiles.execute("create table tiles(tileset text, grid text, x integer, y integer, z integer, data blob, dim text,"
                  " ctime datetime, primary key(tileset, grid, x, y, z, dim))")
    for name in LISTS:
        tiles.execute("insert into tiles values(?, ?, 0, 0, 0, ?, 'tile', '2020-01-01 00:00:00')",
                      (name, GRID, png(256, 256, lambda x, y: (1, 2, 3))))
    tiles.commit()
    tiles.close()
    sets = "".join(f"""<tileset name="{name}"><cache>tiles</cache><grid>{GRID}</grid><format>PNG</format>
      <dimensions>{dimension(folder, name)}</dimensions></tileset>""" for name in LISTS)
    (folder / "mapcache.xml").write_text(f"""<mapcache>
      <cache name="tiles" type="sqlite3"><dbfile>{folder}/tile.sqlite3</dbfile></cache>{sets}
      <service type="wmts" enabled="true"/><service type="wms" enabled="true"/><service type="gmaps" enabled="true"/>
      <service type="demo" enabled="true"/><lock_dir>{folder}</lock_dir></mapcache>""")
    folder.chmod(0o777)
    return shared_apache("periods", f"MapCacheAlias /mc {folder}/mapcache.xml\n",
                         environment={"MAPCACHE_ASSETS": str(ROOT / "build/assets")})


def wms_lists(web, version):
    root = ElementTree.fromstring(web.get(f"/mc?SERVICE=WMS&REQUEST=GetCapabilities&VERSION={version}").body)
    element = "Dimension" if version == "1.3.0" else "Extent"
    return {layer.find("{*}Name").text: layer.find("{*}" + element).text.split(",")
            for layer in root.iterfind(".//{*}Layer/{*}Layer")}


def wmts_lists(web):
    root = ElementTree.fromstring(web.get("/mc/wmts/1.0.0/WMTSCapabilities.xml").body)
    return {layer.find("{*}Identifier").text: [value.text for value in layer.iterfind("{*}Dimension/{*}Value")]
            for layer in root.iterfind(".//{*}Contents/{*}Layer")}


def test_capabilities_have_periods(web):
    for found in (wms_lists(web, "1.3.0"), wms_lists(web, "1.1.1"), wmts_lists(web)):
        assert found["daily"] == [f"2001-01-01/{DAYS[-1]}/P1D"]
        assert found["gap"] == ["2001-01-01/2005-02-28/P1D", f"2005-04-01/{DAYS[-1]}/P1D"]
        assert found["months"] == ["1990-01/1999-12/P1M"]
        assert found["hours"] == ["2020-02-28T00:00:00Z/2020-02-29T23:00:00Z/PT1H"]
        assert found["few"] == LISTS["few"] and found["plain"] == LISTS["plain"]


def test_documents_are_valid(web, folder):
    validate = validator(folder)
    validate(web.get("/mc?SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.3.0").body, WMS_130)
    validate(web.get("/mc/wmts/1.0.0/WMTSCapabilities.xml").body, WMTS)


def test_a_new_date_is_shown_at_once(web, folder):
    before = wmts_lists(web)["hours"]
    with sqlite3.connect(folder / "times.sqlite", timeout=patience(10)) as database:
        database.execute("insert into hours values('2020-03-01T00:00:00Z', 1583020800)")
    deadline = time.monotonic() + patience(30)
    while wmts_lists(web)["hours"] == before and time.monotonic() < deadline:
        pass
    assert wmts_lists(web)["hours"] == ["2020-02-28T00:00:00Z/2020-03-01T00:00:00Z/PT1H"]
    with sqlite3.connect(folder / "times.sqlite", timeout=patience(10)) as database:
        database.execute("delete from hours where ts = 1583020800")


def wms(layer, value):
    return (f"/mc?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS={layer}&STYLES=&SRS=EPSG:3857&WIDTH=256&HEIGHT=256"
            f"&BBOX={-EDGE},{-EDGE},{EDGE},{EDGE}&FORMAT=image/png&TIME={value}")


def test_words_for_times(web):
    latest = "2011-12-14"
    assert str(DAYS[-1]) == latest
    for word in ("latest", "LATEST", "current", "Current"):
        reply = web.get(wms("daily", word))
        assert reply.status == 200 and reply.headers["Warning"] is None, word
        assert web.get(f"/mc/wmts/1.0.0/daily/default/{word}/{GRID}/0/0/0.png").status == 200
        assert web.get(f"/mc/gmaps/daily@{GRID}[TIME={word}]/0/0/0.png").status == 200
    for word in ("", "default", "DEFAULT"):
        reply = web.get(wms("daily", word))
        assert reply.status == 200 and reply.headers["Warning"] == f"99 Default value used: TIME={latest} ISO8601", word
    assert web.get(f"/mc/wmts/1.0.0/daily/default/default/{GRID}/0/0/0.png").status == 200
    for wrong in ("newest", "latest%00", "LATEST/P1D", "late", "latest,", "2001-01-01,latest"):
        assert web.get(wms("daily", wrong)).status == 400, wrong


def test_every_published_time_is_there_and_the_nearest_of_others(web):
    for value in ("2005-02-28", "2005-04-01", "2001-01-01", "2001-01-01/2011-12-14/P1D", "2005-02-28/2005-02-28/P1D"):
        assert web.get(wms("gap", value)).headers["Warning"] is None, value
    for value, nearest in (("2005-03-05", "2005-02-28"), ("2005-03-28", "2005-04-01"), ("1950", "2001-01-01"),
                           ("9999-12-31", "2011-12-14")):
        reply = web.get(wms("gap", value))
        assert reply.status == 200 and reply.headers["Warning"] == f"99 Nearest value used: TIME={nearest} ISO8601", value
    assert pixels(web.get(wms("gap", "2005-03-05")).body)[5, 5].tolist() == [1, 2, 3, 255]


def test_the_slider_of_the_page_has_all_times(web):
    known = json.loads(web.get("/mc/demo/layers.json?layer=gap").body)["dimensions"][0]
    assert known["periods"] == ["2001-01-01/2005-02-28/P1D", "2005-04-01/2011-12-14/P1D"] and len(known["values"]) == 500
    assert "periods" not in json.loads(web.get("/mc/demo/layers.json?layer=plain").body)["dimensions"][0]
    wanted = {"gap": [str(day) for day in GAP], "months": MONTHS, "hours": HOURS}
    with Browser(1000, 700) as browser:
        for layer, times in wanted.items():
            browser.open("about:blank")
            browser.open(f"http://127.0.0.1:{web.port}/mc/demo/map#layer={layer}")
            browser.settled(layer)
            shown = browser.script("return [...document.querySelectorAll('[data-dimension=TIME] option')].map(o => o.value)")
            assert shown == ["latest", *times]
            browser.script("const f = document.querySelector('[data-dimension=TIME] input[type=range]'); f.value = 31;"
                           "f.dispatchEvent(new Event('change'))")
            browser.settled(times[30], until=lambda: times[30] in browser.script("return location.hash").replace("%3A", ":"))
            assert browser.console() == []

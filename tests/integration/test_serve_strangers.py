"""`mapcache serve` of what strangers made: names of files and of layers, links, and pages of other sites."""
import html
import http.client
import os
import pathlib
import signal
import subprocess
import threading

import pytest
from browser import Browser
from conftest import fetch, listens, wait_until
from patience import patience
from ports import free_port
from serve_things import RASTER, TILE, mbtiles, raster, sqlite_cache, vectors
from serving import SERVERS, Serving

EVIL = "x$(touch made)'`touch made`\"<img src=x onerror=alert(1)>;touch made\n "
LINES = "return [...document.querySelectorAll('.address[data-name=GDAL] code')].map(code => code.textContent)"


@pytest.fixture
def place(folder):
    folder.chmod(0o755)
    return folder


def test_a_copied_command_runs_nothing_else(build, place):
    """The lines for a shell of the front page, given to a shell: whatever the layer's name, one program is called."""
    vectors(place / "square.gpkg", "GPKG")
    tilesets = "".join(f'<tileset name="{html.escape(EVIL.strip() + kind)}"><source>s</source><cache>none</cache><grid>GoogleMapsCompatible</grid>'
                       f'<format>{kind}</format></tileset>' for kind in ("PNG", "mvt"))
    config = place / "mapcache.xml"
    config.write_text(f"""<mapcache><source name="s" type="ogr"><layer name="s"><data>{place}/square.gpkg</data></layer></source>
      <cache name="none" type="none"/><format name="mvt" type="MVT"/>{tilesets}<service type="wmts" enabled="true"/>
      <service type="gmaps" enabled="true"/><service type="demo" enabled="true"/></mapcache>""")
    config.chmod(0o644)
    with Serving(build, config, port=free_port()) as serving, Browser() as browser:
        browser.open(serving.told["url"] + "demo/")
        wait_until(lambda: len(browser.script("const all = [...document.querySelectorAll('.card details')]; all.forEach(d => d.open = true);"
                                              " return all")) == 2, "there are cards")
        lines = wait_until(lambda: browser.script(LINES), "there are lines")
    assert len(lines) == 2
    for line, words in zip(lines, (5, 8), strict=True):
        program = place / line.split()[0]
        program.write_text("#!/bin/sh\necho $# > called\n")
        program.chmod(0o755)
        subprocess.run(["sh", "-c", line], cwd=place, env={**os.environ, "PATH": f"{place}:{os.environ['PATH']}"}, check=True, timeout=patience(60))
        assert not (place / "made").exists(), line
        assert int((place / "called").read_text()) == words, line


@pytest.mark.parametrize("short", [False, True])
def test_a_stored_name_becomes_a_public_one(build, place, short):
    """Tiles that are stored under any text at all are served, under a name of letters."""
    thing = sqlite_cache(place / "tiles.sqlite3", EVIL)
    if short:
        thing = place / "mapcache.xml"
        thing.write_text(f"<mapcache><tileset><data>{place}/tiles.sqlite3</data></tileset></mapcache>")
        thing.chmod(0o644)
    with Serving(build, thing, port=free_port()) as serving:
        (layer,) = serving.told["layers"]
        assert layer["name"] == "x__touch_made___touch_made___img_src_x_onerror_alert_1___tou"
        z, x, y = TILE
        reply = serving.get(f"/wmts/1.0.0/{layer['name']}/default/GoogleMapsCompatible/{z}/{y}/{x}.png")
        assert reply.status == 200 and reply.headers["Content-Type"] == "image/png"
        assert serving.get(f"/wmts/1.0.0/{layer['name']}/default/GoogleMapsCompatible/{z}/{y}/{x + 1}.png").body != reply.body
        assert serving.errors() == []


def test_two_stored_names_of_one_public_name(build, place):
    """One is stored as the other is called: each has its own name and its own tiles."""
    first, second = sqlite_cache(place / "first.sqlite3", "a b"), sqlite_cache(place / "second.sqlite3", "a_b")
    with Serving(build, first, second, port=free_port()) as serving:
        names = [layer["name"] for layer in serving.told["layers"]]
        assert names == ["a_b", "a_b_2"]
        z, x, y = TILE
        for name in names:
            assert serving.get(f"/wmts/1.0.0/{name}/default/GoogleMapsCompatible/{z}/{y}/{x}.png").status == 200


def test_links_are_not_followed_in_circles(build, place):
    """Links to the folder itself, in which thousands of links lead nowhere."""
    raster(place / "square.tif")
    for number in range(4):
        (place / f"self{number}").symlink_to(".")
    for number in range(3000):
        (place / f"none{number}").symlink_to("nowhere")
    with Serving(build, place, port=free_port()) as serving:
        assert [layer["name"] for layer in serving.told["layers"]] == ["square"]
        times = pathlib.Path(f"/proc/{serving.process.pid}/stat").read_text().rpartition(")")[2].split()
        assert (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK") < 10, "seconds of processor; with circles a look alone takes more"


def test_what_changes_all_the_time_behind_a_link_hides_no_change(build, place):
    """A link to a folder of another, and a hidden file; a file that is a link counts as the file."""
    thing, busy, stop = place / "thing", place / "busy", threading.Event()
    for folder in (thing, busy):
        folder.mkdir(mode=0o755)
    raster(busy / "linked.tif")
    (thing / "square.tif").symlink_to(busy / "linked.tif")
    (thing / "link").symlink_to(busy)

    def keep_busy():
        number = 0
        while not stop.wait(0.05):
            number += 1
            (busy / "log").write_text("x" * (number % 1000))
            (thing / ".hidden").write_text("x" * (number % 1000))

    thread = threading.Thread(target=keep_busy)
    thread.start()
    try:
        with Serving(build, thing, port=free_port()) as serving:
            raster(thing / "more.tif")
            wait_until(lambda: serving.all("reloaded"), "the new file is served")
            assert {layer["name"] for layer in serving.all("reloaded")[-1]["layers"]} != set()
            seen = len(serving.all("reloaded"))
            raster(busy / "linked.tif", west=8)
            wait_until(lambda: len(serving.all("reloaded")) > seen, "the changed file behind a link is served")
    finally:
        stop.set()
        thread.join()


def ask(port, host, target="/", host_address="127.0.0.1"):
    """(status, body, headers) of a request with this Host."""
    connection = http.client.HTTPConnection(host_address, port, timeout=patience(60))
    try:
        connection.putrequest("GET", target, skip_host=True)
        if host is not None:
            connection.putheader("Host", host)
        connection.endheaders()
        reply = connection.getresponse()
        return reply.status, reply.read().decode(errors="replace"), reply.headers
    finally:
        connection.close()


@pytest.mark.parametrize("server", SERVERS)
def test_pages_of_other_sites_read_nothing(build, place, server):
    """Neither by CORS nor by a name of theirs that leads to this machine; what --save writes is for a server, and open."""
    saved, listed = place / "saved.xml", "/demo/layers.json"
    with Serving(build, raster(place / "square.tif"), server=server, port=free_port(), options=["--save", saved]) as serving:
        port = serving.port
        reply = fetch(port, listed, headers={"Origin": "http://evil.example"})
        assert reply.status == 200 and "square" in reply.body.decode() and "Access-Control-Allow-Origin" not in reply.headers
        for host in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]", f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}", "localhost:1"):
            assert ask(port, host, listed)[0] == 200, host
        for host in ("evil.example", f"evil.example:{port}", "localhost.evil.example", "127.0.0.1.evil.example", "127.0.0.2", "other.invalid"):
            for target in ("/", listed, "/wmts/1.0.0/WMTSCapabilities.xml"):
                status, said, _ = ask(port, host, target)
                assert status == 403 and "for this machine alone: ask 127.0.0.1" in said and "square" not in said, (host, said)
        assert ask(port, f"127.0.0.1:{port}", f"http://evil.example{listed}")[0] == 403
        assert "<cors>" not in saved.read_text()


@pytest.mark.parametrize("server", SERVERS)
def test_another_loopback_address_is_asked_by_its_name(build, place, server):
    with Serving(build, raster(place / "square.tif"), server=server, port=free_port(), options=["--listen", "127.0.0.5"]) as serving:
        assert ask(serving.port, f"127.0.0.5:{serving.port}", host_address="127.0.0.5")[0] in (200, 302)
        assert ask(serving.port, "evil.example", host_address="127.0.0.5")[0] == 403


@pytest.mark.parametrize("server", SERVERS)
def test_maps_for_everybody_have_any_name(build, place, server):
    with Serving(build, raster(place / "square.tif", RASTER), server=server, port=free_port(), options=["--listen", "0.0.0.0"]) as serving:
        status, said, headers = ask(serving.port, "maps.example", "/demo/layers.json")
        assert status == 200 and "square" in said and headers["Access-Control-Allow-Origin"] == "*"


def test_names_of_files_write_no_lines_on_the_terminal(build, place):
    """A line break and the beginning of a command for the terminal, in the name of a file."""
    port, things = free_port(), place / "things"
    things.mkdir(mode=0o755)
    raster(things / "a\n  EVIL evil.example\n\x9b31m\x1b[31m.tif")
    (things / "b\n  EVIL wrong.example\n\x9b31m.tif").write_text("no image")
    mbtiles(things / "square.mbtiles")
    process = subprocess.Popen([build / "bin/mapcache", "serve", things, "--port", str(port)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: listens(("127.0.0.1", port)), "it listens")
    wait_until(lambda: fetch(port, "/demo/layers.json").status == 200, "it answers")
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=patience(30))
    for text, host in ((out, "evil.example"), (errors, "wrong.example")):
        lines = text.decode().split("\n")
        assert [line for line in lines if host in line] and not [line for line in lines if line.startswith(f"  EVIL {host}")], lines
        assert not any(ord(character) < 32 or 0x7f <= ord(character) < 0xa0 for line in lines for character in line), lines


@pytest.mark.parametrize("listen", ["127.0.0.1", "0.0.0.0"])
@pytest.mark.parametrize("server", SERVERS)
def test_slashes_in_names_are_answered_by_the_service(build, place, server, listen):
    with Serving(build, raster(place / "square.tif"), server=server, port=free_port(), options=["--listen", listen]) as serving:
        for name in ("a%2Fb", "square%2Fmap%2F..", "square/map/tiles/http%3A%2F%2Fwww.opengis.net%2Fdef%2Ftilematrixset%2FOGC%2F1.0%2FWebMercatorQuad"):
            reply = fetch(serving.port, f"/ogcapi/collections/{name}", headers={"Accept": "application/json"})
            assert reply.status in (200, 404), (name, reply.status)
            assert reply.headers["Content-Type"] in ("application/problem+json", "application/json"), (name, reply.body)

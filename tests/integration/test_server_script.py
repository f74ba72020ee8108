"""script/server as a newcomer types it: it says where the maps are, shows them in a browser, and ends with Ctrl-C. The data
is fetched once into build/demo; that may take a while the first time."""

import html
import os
import re
import signal
import subprocess
import time

import numpy
import pytest
from conftest import ROOT, fetch, listens
from patience import patience
from PIL import Image
from ports import free_port, free_ports

SECONDS = 600


def start(log, *arguments, **environment):
    """A group of its own, as a terminal gives it, so that an interrupt reaches all of it."""
    return subprocess.Popen([ROOT / "script/server", *arguments], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                            env={**os.environ, **environment}, start_new_session=True)


def interrupt(process):
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
    return process.wait(patience(20))


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """(port, what the script has said) of a running script/server."""
    log = tmp_path_factory.mktemp("server") / "log"
    with open(log, "wb") as out:
        process = start(out, "--port", str(free_ports(2)))  # the second one for test_second_start
        try:
            end = time.monotonic() + patience(SECONDS)
            while "Ctrl-C stops" not in log.read_text():
                assert process.poll() is None and time.monotonic() < end, log.read_text()
                time.sleep(0.1)
            said = log.read_text()
            yield int(re.search(r"http://localhost:(\d+)/mapcache/demo/", said).group(1)), said
        finally:
            status = interrupt(process)
    assert status == 0, log.read_text()
    assert log.read_text().endswith("demo: stopped\n")
    assert not listens(("127.0.0.1", int(re.search(r"localhost:(\d+)", said).group(1))))


def test_every_address_that_it_prints_answers(page):
    port, said = page
    addresses = re.findall(rf"http://localhost:{port}(/\S+)", said)
    assert len(addresses) >= 5
    for address in addresses:
        reply = fetch(port, address.format(z=1, x=0, y=1))
        assert reply.status == 200 and reply.body, address


def test_the_first_page_leads_to_the_others(page):
    reply = fetch(page[0], "/")
    links = re.findall(r'(?:href|src)="(?!data:)([^"]+)"', reply.body.decode())
    assert reply.status == 200 and {"mapcache/demo/", "catalogue/", "vector/"} <= set(links)
    for link in links:
        assert fetch(page[0], "/" + html.unescape(link)).status == 200, link


def test_a_map_of_both_layers(page):
    """The borders are drawn over the image: the map differs from that of the image alone, and not everywhere."""
    address = next(a for a in re.findall(r"localhost:\d+(/\S+)", page[1]) if "LAYERS=bluemarble,borders" in a)
    both, one = (fetch(page[0], a) for a in (address, address.replace(",borders", "")))
    assert both.headers["Content-Type"] == one.headers["Content-Type"] == "image/jpeg"
    assert both.body != one.body and len(both.body) > 20000


def test_vector_maps_are_there_without_a_database(page):
    assert fetch(page[0], "/vector/sources.json").body == b'["shapefile"]'
    assert fetch(page[0], "/shapefile/wmts/1.0.0/world/default/GoogleMapsCompatible/1/0/1.png").status == 200
    assert fetch(page[0], "/postgis").status == 404


def colours(picture):
    """How much of the page's map is desert, and how much ocean."""
    pixels = numpy.asarray(Image.open(picture).convert("RGB")).astype(int)[60:, 320:]
    red, green, blue = pixels[..., 0], pixels[..., 1], pixels[..., 2]
    return ((red > 150) & (green > 120) & (blue < 150)).mean(), ((blue > 40) & (red < 40) & (green < 60)).mean()


@pytest.mark.parametrize("service", ["wmts", "wms", "gmaps"])
def test_browser_shows_the_map(page, service, tmp_path):
    """Headless Chromium, which can reach no other host, loads the page: the Sahara is yellow, the ocean blue. On a busy
    machine its picture may be taken before the map is there: then it takes another one."""
    picture, end = tmp_path / "page.png", time.monotonic() + patience(60)
    desert = ocean = 0
    while (desert <= 0.004 or ocean <= 0.1) and time.monotonic() < end:
        subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                        "--disable-background-networking", "--disable-component-update", "--disable-sync",
                        f"--user-data-dir={tmp_path}/profile", "--window-size=1200,800", "--virtual-time-budget=10000",
                        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", f"--screenshot={picture}",
                        f"http://127.0.0.1:{page[0]}/mapcache/demo/{service}"], timeout=patience(90), capture_output=True, check=True)
        desert, ocean = colours(picture)
    assert desert > 0.004, "no desert"
    assert ocean > 0.1, "no ocean"


def test_second_start_is_quick_and_checks_itself(page, tmp_path):
    """With the port taken by the first one, the next free one is used."""
    began = time.monotonic()
    with open(tmp_path / "log", "wb") as out:
        process = start(out, "--check", PORT=str(page[0]))
        assert process.wait(patience(120)) == 0, (tmp_path / "log").read_text()
    assert time.monotonic() - began < patience(100)
    said = (tmp_path / "log").read_text()
    assert f"port {page[0]} is taken; using {page[0] + 1}" in said
    assert "fetching" not in said and "seeding" not in said
    assert fetch(page[0], "/mapcache/demo/").status == 200


def test_nginx_serves_the_same(page, tmp_path):
    """Through FastCGI: one program for each configuration."""
    log = tmp_path / "log"
    with open(log, "wb") as out:
        process = start(out, "--nginx", "--port", str(free_port()))
        try:
            end = time.monotonic() + patience(120)
            while "Ctrl-C stops" not in log.read_text():
                assert process.poll() is None and time.monotonic() < end, log.read_text()
                time.sleep(0.1)
            port = int(re.search(r"http://localhost:(\d+)/catalogue/", log.read_text()).group(1))
            box = "SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&STYLES=&SRS=EPSG:3857&BBOX=0,5000000,3000000,8000000&WIDTH=300&HEIGHT=300"
            for path in ["/", "/catalogue/", "/catalogue/catalogue.js", "/catalogue/products.geojson", "/mapcache/demo/static/ol.js",
                         "/mapcache/gmaps/borders@GoogleMapsCompatible/2/1/1.png", f"/catalog?{box}&LAYERS=base,catalog",
                         f"/catalog-mtamtqbmgeo?{box}&LAYERS=catalog&DIM_PRODUCT=un&FORMAT=image/png",
                         "/catalog-auto/wmts/1.0.0/WMTSCapabilities.xml", "/vector/", "/vector/sources.json", "/vector/styles/world.sld",
                         "/shapefile/wmts/1.0.0/world/default/GoogleMapsCompatible/2/1/1.png"]:
                ours, others = (fetch(at, path) for at in (port, page[0]))
                assert ours.status == others.status and ours.status in (200, 302), path
                assert ours.headers["Content-Type"] == others.headers["Content-Type"], path
                if "WMTSCapabilities" not in path:
                    assert ours.body == others.body, path
        finally:
            status = interrupt(process)
    assert status == 0 and log.read_text().endswith("demo: stopped\n"), log.read_text()
    assert not listens(("127.0.0.1", port))


@pytest.mark.parametrize("arguments", [["--port", "none"], ["--port", "70000"], ["--port", "0"], ["--other"]])
def test_wrong_arguments_are_refused_at_once(arguments):
    done = subprocess.run([ROOT / "script/server", *arguments], capture_output=True, text=True, timeout=patience(60))
    assert done.returncode == 1 and done.stderr and not done.stdout

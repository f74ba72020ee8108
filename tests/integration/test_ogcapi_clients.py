"""Others read the OGC API: GDAL's driver reads images of tiles and maps, Chromium shows the pages at the sizes of a desk and of a phone."""
import subprocess

import pytest
from browser import Browser
from conftest import wait_until
from ogcapi_site import Api, ground, is_near, pixels, write_site
from patience import patience

EDGE = 20037508.34
PAGES = ["", "/collections", "/collections/world", "/collections/world/map/tiles/WebMercatorQuad", "/tileMatrixSets/WebMercatorQuad", "/conformance", "/api"]


@pytest.fixture(scope="module")
def api(shared_folder, shared_apache):
    config = write_site(shared_folder)
    return Api(shared_apache("web", f"MapCacheAlias /mc {config}\n").port)


def gdal(folder, *words):
    """In a folder of its own, where GDAL keeps what it has fetched."""
    told = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True, timeout=patience(120))
    assert told.returncode == 0, told.stderr
    return told.stdout


@pytest.mark.parametrize("options", [("API=TILES",), ("API=TILES", "IMAGE_FORMAT=JPEG"), ("API=MAP",), ()])
def test_gdal_reads_images(api, folder, options):
    """Of collections with a grid in degrees: GDAL 3.6 takes the box of a collection for one in the CRS of its tiles and maps."""
    place, words = f"OGCAPI:{api.base}ogcapi/collections/world", [word for option in options for word in ("-oo", option)]
    assert "Driver: OGCAPI" in gdal(folder, "gdalinfo", place, *words)
    gdal(folder, "gdal_translate", "-q", "-of", "PNG", "-outsize", "100", "50", "-projwin", "-10", "60", "40", "35", *words, place, folder / "read.png")
    for (x, y), colour in zip([(50, 25), (10, 40)], pixels((folder / "read.png").read_bytes(), [(50, 25), (10, 40)])):
        assert is_near(colour, ground(-10 + (x + 0.5) / 2, 60 - (y + 0.5) / 2)), colour


def test_gdal_reads_images_of_mercator(api, folder):
    """Of a collection without a grid in degrees, where GDAL 3.6 is told the box (docs/reference/services.md 6.7)."""
    words = [word for name, value in (("MINX", -EDGE), ("MINY", -EDGE), ("MAXX", EDGE), ("MAXY", EDGE)) for word in ("-oo", f"{name}={value}")]
    place = f"OGCAPI:{api.base}ogcapi/collections/photo"
    gdal(folder, "gdal_translate", "-q", "-of", "PNG", "-outsize", "64", "64", "-projwin", "0", EDGE / 2, EDGE / 2, "0", *words, place, folder / "read.png")
    (colour,) = pixels((folder / "read.png").read_bytes(), [(63, 63)])  # 89.3 degrees east, 0.7 north
    assert is_near(colour, ground(89.3, 0.7), 12), colour


def test_gdal_lists_the_collections(api, folder):
    listed = gdal(folder, "gdalinfo", f"OGCAPI:{api.base}ogcapi")
    for name in ("world", "photo", "areas-mvt"):
        assert f"/collections/{name}" in listed


@pytest.mark.parametrize("width, height, phone", [(1200, 800, False), (390, 800, True)])
def test_pages_in_a_browser(api, width, height, phone):
    """Nothing is missing, nothing is wider than the window, and a click leads on."""
    with Browser(width, height, phone=phone) as browser:
        for path in PAGES:
            browser.open(f"{api.base}ogcapi{path}?f=html")
            wait_until(lambda: browser.script("return document.readyState === 'complete'"), "the page is there")
            assert browser.script("return document.querySelector('main.ogcapi h2').textContent")
            assert browser.script("return getComputedStyle(document.querySelector('main.ogcapi')).maxWidth") == "1100px"
            wide, room = browser.script("return [document.documentElement.scrollWidth, window.innerWidth]")
            assert wide <= room, (path, wide, room)
            assert browser.script("return [...document.images].every((image) => image.complete && image.naturalWidth > 0)")
        browser.open(f"{api.base}ogcapi?f=html")
        browser.script("[...document.querySelectorAll('ul.links a')].find((link) => link.textContent === 'The collections').click()")
        wait_until(lambda: browser.script("return location.pathname") == "/mc/ogcapi/collections", "the link is followed")
        wait_until(lambda: browser.script("return document.querySelector('main.ogcapi ol > li') !== null"), "a browser gets the page without f")


def test_the_front_page_leads_to_the_collections(api):
    with Browser(1000, 700) as browser:
        browser.open(f"{api.base}demo/?list")
        wait_until(lambda: browser.script("return [...document.querySelectorAll('#links a')].some((link) => link.textContent === 'OGC API')"), "the link is there")
        browser.script("[...document.querySelectorAll('#links a')].find((link) => link.textContent === 'OGC API').click()")
        wait_until(lambda: browser.script("return location.pathname === '/mc/ogcapi' && document.querySelector('main.ogcapi') !== null"), "the landing page shows")

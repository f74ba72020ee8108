"""What `mapcache serve` prints, opened in headless Chromium: each kind of thing shows a picture of its data."""
import re

import numpy
import pytest
import test_serve_data
from browser import Browser
from conftest import ROOT, wait_until
from drop_in import pixels
from ports import free_port
from serve_things import COLOURS, KINDS
from serving import Serving

# The page's things come from these fixtures.
database, web, things = test_serve_data.database, test_serve_data.web, test_serve_data.things
# The colours of layers without a style, whose areas are 90 parts of 255 of them.
COLOURS_OF_LAYERS = [tuple(map(int, colour)) for colour in re.findall(
    r"\{ (\d+), (\d+), (\d+), 255 \}", (ROOT / "lib/source/vector/default_style.c").read_text().split("enum", 1)[0])]
# How many pixels of all canvases are drawn.
DRAWN = """return [...document.querySelectorAll('canvas')].map(canvas => {
  const drawing = canvas.getContext('2d');
  if (!drawing || !canvas.width || !canvas.height) return 0;
  const data = drawing.getImageData(0, 0, canvas.width, canvas.height).data;
  let count = 0;
  for (let i = 3; i < data.length; i += 4) count += data[i] > 0;
  return count;
}).reduce((a, b) => a + b, 0)"""


@pytest.fixture(scope="module")
def browser():
    assert (ROOT / "build/assets/ol/ol.js").exists(), "OpenLayers is missing: run script/bootstrap"
    with Browser(1200, 800) as running:
        yield running


def shows(screenshot, kind):
    """Whether the picture has the colour of the kind's data, or an area in a colour of layers over the page's ground."""
    colours, counts = numpy.unique(pixels(screenshot)[..., :3].reshape(-1, 3), axis=0, return_counts=True)
    if kind in COLOURS:
        return counts[numpy.abs(colours.astype(int) - COLOURS[kind]).max(axis=1) < 16].sum() > 40
    large = colours[counts > 2000].astype(int)
    mixed = numpy.array([ground + (numpy.array(colour) - ground) * 90 / 255 for ground in large for colour in COLOURS_OF_LAYERS])
    return any(numpy.abs(mixed - colour).max(axis=1).min() < 2 for colour in large)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_printed_shows_a_picture(build, browser, things, kind):
    browser.open("about:blank")
    browser.network(), browser.console()
    with Serving(build, things(kind), port=free_port(), environment={"MAPCACHE_ASSETS": str(ROOT / "build/assets")}) as serving:
        browser.open(serving.told["url"])
        wait_until(lambda: browser.script(DRAWN) > 20, f"{kind}: something is drawn")
        requests = browser.settled()
        own = (serving.told["url"], "data:", "blob:", "about:", "chrome:", "mapcachetile:")
        assert [url for url, _ in requests if not url.startswith(own)] == [], "nothing is asked of other hosts"
        assert {status for url, status in requests if url.startswith("http")} <= {200, 302, 304, None}
        assert [entry for entry in browser.console() if "readback operations" not in entry["message"]] == []  # that is DRAWN
        wait_until(lambda: shows(browser.screenshot(), kind), f"{kind}: its colour is seen")
        assert serving.errors() == []
        browser.open("about:blank")

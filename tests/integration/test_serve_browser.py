"""What `mapcache serve` prints, opened in headless Chromium: each kind of thing shows a picture of its data."""
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
        if kind in COLOURS:
            wanted = numpy.array(COLOURS[kind])

            def shown():
                return (numpy.abs(pixels(browser.screenshot())[..., :3] - wanted).max(axis=-1) < 16).sum() > 40

            wait_until(shown, f"{kind}: its colour is seen")
        assert serving.errors() == []
        browser.open("about:blank")

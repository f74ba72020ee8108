"""PMTiles archives by `mapcache serve`, drawn by OpenLayers and by MapLibre in headless Chromium: pictures, and vector tiles of an
archive that a seed has written. PyPI's reader finds the same tiles in it."""
import gzip
import json
import re
import urllib.request

import compressors
import numpy
import pytest
from browser import Browser
from conftest import ROOT, wait_until
from drop_in import pixels
from patience import patience
from ports import free_port
from pypi_pmtiles import reader as pmtiles_reader, tile as pmtiles_tile, writer as pmtiles_writer
from serve_things import STORED, pmtiles
from serving import Serving
from test_page_problems import LIBRARIES
from test_pmtiles import opened, run, vector_config

ENGINE = "const map = document.getElementById('map'); return map && map.dataset.engine || ''"  # the page may be the list of layers still
LEFT_OUT = {"OpenLayers": "maplibre-gl", "MapLibre": "ol"}


def vector_archive(folder):
    """A square of 9,000 km, seeded by mapcache; its tiles compressed with Zstandard afterwards, as other tools write them."""
    folder.mkdir()
    run("seed", "-c", vector_config(folder), "-t", "areas", "-z", "0,4", "--quiet")
    reader, source = opened(folder / "areas.pmtiles")
    tiles = {pmtiles_tile.zxy_to_tileid(*place): data for place, data in pmtiles_reader.all_tiles(source)}
    assert len(tiles) > 20 and b"square" in gzip.decompress(tiles[0])
    with pmtiles_writer.write(str(folder / "packed.pmtiles")) as archive:
        for number, data in sorted(tiles.items()):
            archive.write_tile(number, compressors.zstd(gzip.decompress(data)))
        archive.finalize({**reader.header(), "tile_compression": pmtiles_tile.Compression.ZSTD}, reader.metadata())
    for path in folder.iterdir():
        path.chmod(0o644)
    folder.chmod(0o755)


@pytest.fixture(scope="module")
def archives(shared_folder):
    shared_folder.chmod(0o755)
    pmtiles(shared_folder / "square.pmtiles")
    vector_archive(shared_folder / "vector")
    return {"pictures": shared_folder / "square.pmtiles", "vector": shared_folder / "vector/areas.pmtiles", "zstd": shared_folder / "vector/packed.pmtiles"}


@pytest.fixture(scope="module")
def libraries(shared_folder):
    """libraries(engine): a folder of the pages' libraries without the other one."""
    def folder_for(engine):
        folder = shared_folder / f"assets-{engine}"
        for library in LIBRARIES:
            (folder / library).mkdir(parents=True, exist_ok=True)
            for file in (ROOT / "build/assets" / library).iterdir():
                if library != LEFT_OUT[engine] and not (folder / library / file.name).exists():
                    (folder / library / file.name).symlink_to(file.resolve())
        return str(folder)
    return folder_for


@pytest.fixture(scope="module")
def browser():
    with Browser(1200, 800) as running:
        yield running


def covered(screenshot, what):
    """Pixels of the map's middle that show the data: in the colour of the pictures, or in the most frequent strong colour."""
    middle = pixels(screenshot)[200:600, 300:900, :3].reshape(-1, 3)
    colours, counts = numpy.unique(middle, axis=0, return_counts=True)
    colours = colours.astype(int)
    if what == "pictures":
        return counts[abs(colours - STORED).max(axis=1) < 16].sum()
    strong = counts[colours.max(axis=1) - colours.min(axis=1) > 20]
    return strong.max() if len(strong) else 0


def opened_page(browser, serving):
    browser.open(serving.told["url"])
    wait_until(lambda: browser.script(ENGINE), "the map is there")


def expect_drawn(browser, serving, what, extension):
    wait_until(lambda: covered(browser.screenshot(), what) > 5000, f"{what} are drawn")
    tiles = [url for url, status in browser.settled() + browser.network() if status == 200 and re.search(r"/\d+/\d+/\d+\.", url)]
    assert all(url.endswith(extension) for url in tiles), tiles
    assert serving.errors() == []
    browser.open("about:blank")


@pytest.mark.parametrize("engine", LEFT_OUT)
def test_both_libraries_draw_pictures(build, browser, archives, libraries, engine):
    with Serving(build, archives["pictures"], port=free_port(), environment={"MAPCACHE_ASSETS": libraries(engine)}) as serving:
        opened_page(browser, serving)
        assert browser.script(ENGINE) == engine
        expect_drawn(browser, serving, "pictures", ".png")


@pytest.mark.parametrize("what", ["vector", "zstd"])
def test_openlayers_draws_vector_tiles(build, browser, archives, libraries, what):
    with Serving(build, archives[what], port=free_port(), environment={"MAPCACHE_ASSETS": libraries("OpenLayers")}) as serving:
        opened_page(browser, serving)
        assert browser.script(ENGINE) == "OpenLayers"
        expect_drawn(browser, serving, what, ".mvt")


@pytest.mark.parametrize("size", [(1200, 800), (400, 800)])
@pytest.mark.parametrize("what", ["vector", "zstd"])
def test_our_page_draws_vector_tiles_by_maplibre(build, archives, what, size):
    """It knows the layers by what the archive says of them; on a desktop and on a phone."""
    with Browser(*size) as browser, Serving(build, archives[what], port=free_port(), environment={"MAPCACHE_ASSETS": str(ROOT / "build/assets")}) as serving:
        opened_page(browser, serving)
        assert browser.script(ENGINE) == "MapLibre"
        wait_until(lambda: covered(browser.screenshot(), what) > 5000, f"{what} are drawn")
        layer = serving.told["layers"][0]["name"]
        with urllib.request.urlopen(f"{serving.told['url']}gmaps/{layer}@GoogleMapsCompatible.json", timeout=patience(60)) as answer:
            known = json.load(answer)["vector_layers"]
        assert known == [{"id": "areas", "minzoom": 0, "maxzoom": 4, "fields": {"name": "String"}}]
        assert serving.errors() == []


# A page of somebody who knows the layers of the archive.
OWN_MAP = """
const own = document.createElement('div');
Object.assign(own.style, { position: 'fixed', left: 0, top: 0, width: '1200px', height: '800px', zIndex: 10000 });
document.body.append(own);
import('/demo/static/maplibre-gl.mjs').then(function (library) {
  window.own = new library.Map({ container: own, center: [40, 40], zoom: 3, fadeDuration: 0, style: { version: 8,
    sources: { archive: { type: 'vector', tiles: ['%s'], maxzoom: 4 } },
    layers: [{ id: 'areas', type: 'fill', source: 'archive', 'source-layer': 'areas', paint: { 'fill-color': '#c83214' } }] } });
}).catch(function (error) { window.own = String(error); });
"""


FEATURES = "try { return window.own.queryRenderedFeatures().map(feature => feature.properties) } catch (error) { return [String(window.own), String(error)] }"


@pytest.mark.parametrize("what", ["vector", "zstd"])
def test_maplibre_draws_vector_tiles(build, browser, archives, what):
    with Serving(build, archives[what], port=free_port(), environment={"MAPCACHE_ASSETS": str(ROOT / "build/assets")}) as serving:
        opened_page(browser, serving)
        layer = serving.told["layers"][0]["name"]
        browser.script(OWN_MAP % f"{serving.told['url']}gmaps/{layer}@GoogleMapsCompatible/{{z}}/{{x}}/{{y}}.mvt")
        wait_until(lambda: {"name": "square"} in browser.script(FEATURES), "the square's attributes are there")
        expect_drawn(browser, serving, what, ".mvt")

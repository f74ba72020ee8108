"""mapcache.xml.sample as a server has it: it serves, its documents are valid, and MapCache takes the same file."""
import re
import subprocess

import mapserver
import numpy
import pytest
from conftest import GRID, ROOT
from drop_in import PEER_MODULE, pixels
from origin import Origin
from schemas import SCHEMAS, WMS_130, WMTS, validator

PUBLIC = "http://localhost/mapcache"  # <url> of its metadata


class Sample:
    """The sample with its places and hosts changed, nothing else."""

    def __init__(self, folder, origin):
        folder.chmod(0o777)
        mapserver.make_data(folder)
        subprocess.run(["gdal_create", "-q", "-ot", "Int16", "-outsize", "64", "32", "-bands", "1", "-burn", "300", "-a_srs", "EPSG:4326",
                        "-a_ullr", "-180", "90", "180", "-90", folder / "heights.tif"], check=True)
        (folder / "cache").mkdir()
        (folder / "cache").chmod(0o777)
        self.origin = origin
        self.config = folder / "mapcache.xml"
        text = (ROOT / "mapcache.xml.sample").read_text()
        for old, new in [("/var/cache/mapcache", f"{folder}/cache"), ("/data/world.tif", f"{folder}/image.tif"),
                         ("/data/heights.tif", f"{folder}/heights.tif"),
                         ("http://localhost:8099/ows", origin.url("/pattern")),
                         ("http://localhost:8099/wfs", origin.url("/echo"))]:
            assert old in text
            text = text.replace(old, new)
        self.config.write_text(text)
        self.alias = f"MapCacheAlias /mc {self.config}\n"


@pytest.fixture(scope="module")
def sample(shared_folder):
    with Origin() as origin:
        yield Sample(shared_folder, origin)


@pytest.fixture(scope="module")
def ours(sample, shared_apache):
    return shared_apache("ours", sample.alias)


@pytest.fixture(scope="module")
def theirs(sample, shared_apache):
    return shared_apache("theirs", f"LoadModule mapcache_module {PEER_MODULE}\n" + sample.alias, module=False, ours=False)


def with_limits_from_one(document):
    """The published schema types limits that count from 0 as positive numbers (docs/reference/conformance.md 2.10)."""
    return re.sub(rb"<(M..Tile...)>0<", rb"<\1>1<", document)


@pytest.mark.skipif(not SCHEMAS.is_dir(), reason=f"no schemas at {SCHEMAS}")
@pytest.mark.parametrize("path, schema", [("?SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.3.0", WMS_130),
                                          ("?SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.1.1", None),
                                          ("/wmts/1.0.0/WMTSCapabilities.xml", WMTS)])
def test_its_capabilities_are_valid(ours, shared_folder, path, schema):
    document = ours.get("/mc" + path).body
    if schema == WMTS:
        # The schema does not know INSPIRE's element, which stands in place of this one.
        assert b"<MinTileCol>0<" in document and b"<inspire_vs:ExtendedCapabilities>" in document
        document = with_limits_from_one(document)
        document = document.replace(b"inspire_vs:ExtendedCapabilities>", b"ows:ExtendedCapabilities>")
    validator(shared_folder)(document, schema)


@pytest.mark.skipif(not SCHEMAS.is_dir(), reason=f"no schemas at {SCHEMAS}")
def test_capabilities_of_the_demo_are_valid(shared_folder, shared_apache):
    """What they say does not depend on the pictures, which are not there."""
    validate, home = validator(shared_folder), shared_folder / "demo"
    home.mkdir()
    home.chmod(0o777)
    (home / "mapcache.xml").write_text((ROOT / "demo/mapcache.xml.in").read_text().replace("@DATA@", str(home)))
    web = shared_apache("web", f"MapCacheAlias /mc {home}/mapcache.xml\n")
    for path, schema in (("?SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.3.0", WMS_130),
                         ("?SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.1.1", None),
                         ("/wmts/1.0.0/WMTSCapabilities.xml", WMTS), ("/wmts?SERVICE=WMTS&REQUEST=GetCapabilities", WMTS)):
        reply = web.get("/mc" + path)
        assert reply.status == 200, reply.body
        validate(with_limits_from_one(reply.body), schema)


@pytest.mark.parametrize("path", ["?SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.3.0", "/wmts/1.0.0/WMTSCapabilities.xml",
                                  "?SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.1.1", "/tms", "/tms/1.0.0",
                                  f"/tms/1.0.0/world@{GRID}", "/kml/countries@WGS84/5/9/9.kml"])
def test_its_url_is_the_base_of_all_addresses(ours, path):
    text = ours.get("/mc" + path).body.decode()
    own = re.findall(r'https?://[^"< ]*', text)
    assert any(address.startswith(PUBLIC) for address in own), own
    assert not any("127.0.0.1" in address or ":" in address[7:] for address in own if "localhost" in address), own


def test_its_layers_are_drawn(ours, sample):
    world = ours.get(f"/mc/wmts/1.0.0/world/default/{GRID}/1/0/1.xxx")
    assert world.status == 200 and world.headers["Content-Type"] == "image/jpeg"
    assert len(numpy.unique(pixels(world.body).reshape(-1, 4), axis=0)) > 100
    countries = ours.get(f"/mc/wmts/1.0.0/countries/default/night/v2/{GRID}/2/1/2.png")
    assert countries.status == 200 and countries.headers["Cache-Control"].endswith(", public")
    asked = sample.origin.requests()[-1]
    assert asked["params"]["STYLE_VARIANT"] == "night" and asked["params"]["DIM_VERSION_TAG"] == "v2"
    assert asked["headers"]["authorization"].startswith("Basic ") and asked["headers"]["referer"] == "http://example.org/"
    assert (asked["params"]["WIDTH"], asked["params"]["TRANSPARENT"]) == ("1044", "true")


def test_its_rule_forwards_to_another_server(ours, sample):
    reply = ours.get("/mc?SERVICE=WFS&REQUEST=GetFeature&TYPENAME=a%26b")
    assert reply.status == 200 and reply.headers["Content-Type"] == "application/json"
    assert sample.origin.requests()[-1]["params"] == {"SERVICE": "WFS", "REQUEST": "GetFeature", "TYPENAME": "a&b"}


def test_mapcache_takes_the_same_file_and_reads_what_we_stored(ours, theirs):
    for path in (f"/wmts/1.0.0/world/default/{GRID}/1/1/0.xxx", "/tms/1.0.0/world/1/1/1.xxx",
                 f"/wmts/1.0.0/countries/default/day/v1/{GRID}/2/1/2.png"):
        first = ours.get("/mc" + path)
        assert first.status == 200
        second = theirs.get("/mc" + path)
        assert (second.status, second.body) == (200, first.body), path

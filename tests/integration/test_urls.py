"""docs/urls.md: every example of an address, asked of Apache with the configuration of the page, answers as the page says."""
import json
import pathlib
import re
import subprocess

import pytest
from patience import patience
from postgres import Postgres

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/urls.md").read_text()
EXAMPLE = re.compile(r"^\| `(POST )?(/[^`]*)`(?: with `([^`]*)`)? \| (\d+)(?:, `([^`]+)`)? \| ", re.M)
EXAMPLES = EXAMPLE.findall(PAGE)
TOKEN = re.search(r"<token>(\w+)</token>", PAGE).group(1)


@pytest.fixture(scope="module")
def web(build, shared_folder, shared_apache):
    data = shared_folder / "data"
    for folder in (data, shared_folder / "cache"):
        folder.mkdir()
        folder.chmod(0o777)
    run = lambda *command: subprocess.run(list(map(str, command)), check=True, timeout=patience(60))  # noqa: E731
    run("gdal_create", "-q", "-of", "GTiff", "-bands", "3", "-burn", "40 90 160", "-outsize", "360", "180", "-a_srs", "EPSG:4326",
        "-a_ullr", "-180", "90", "180", "-90", data / "world.tif")
    (data / "roads.json").write_text(json.dumps({"type": "Feature", "properties": {"name": "A 1"}, "geometry": {
        "type": "Polygon", "coordinates": [[[-170, -80], [170, -80], [170, 80], [-170, 80], [-170, -80]]]}}))
    run("ogr2ogr", "-q", "-f", "ESRI Shapefile", data / "roads.shp", data / "roads.json")
    text = re.search(r"^    <mapcache>.*</mapcache>$", PAGE, re.M | re.S).group(0)
    with Postgres() as server:
        text = text.replace("/data/", f"{data}/").replace("/var/cache/mapcache/", f"{shared_folder}/cache/")
        config = shared_folder / "mapcache.xml"
        config.write_text(text.replace("dbname=jobs", server.connection()))
        run(build / "bin/mapcache", "check", config)
        yield shared_apache("web", f"MapCacheAlias /mc {config}\n")


@pytest.mark.parametrize("post, url, body, status, mime", EXAMPLES, ids=[each[0] + each[1] for each in EXAMPLES])
def test_an_example_answers_as_the_page_says(web, post, url, body, status, mime):
    options = {"method": "POST", "body": body.encode()} if post else {}
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"} if post else {}
    reply = web.get("/mc" + url, headers, **options)
    assert reply.status == int(status), reply.body[:500]
    if mime:
        assert reply.headers["Content-Type"].split(";")[0] == mime


def test_the_page_is_the_generated_one(build):
    written = subprocess.run([build / "bin/mapcache", "urls"], capture_output=True, text=True, timeout=patience(60)).stdout
    assert PAGE == written, "write it again: build/release/bin/mapcache urls > docs/urls.md"


def test_every_operation_has_an_example(build):
    """docs/parameters.md has a heading for each operation of each service, docs/urls.md a table."""
    operations = re.findall(r"^### (\w+): (.+)$", (ROOT / "docs/parameters.md").read_text(), re.M)
    services = re.findall(r"^### `<service type=\"(\w+)\">`", (ROOT / "docs/configuration.md").read_text(), re.M)
    assert len(operations) >= 30 and {service for service, _ in operations} == set(services)
    for service, operation in operations:
        part = re.search(rf"^### {service}: {re.escape(operation)}\n.*?(?=^##|\Z)", PAGE, re.M | re.S)
        assert part and EXAMPLE.search(part.group(0)), (service, operation)


def test_no_row_of_the_page_is_passed_over():
    rows = [line for line in PAGE.splitlines() if line.startswith("| `")]
    assert len(rows) == len(EXAMPLES) > 40

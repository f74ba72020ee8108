"""The tools of operators over the kinds of caches that are only read, and over stores in files that have gone: each works, or says why it does
not apply. The kinds that are written to: test_stores.py, which has the servers that are away, too."""
import json

import pytest
from conftest import ROOT, free_port
from fastcgi import Server
from only_read import MAKERS, PLACES
from serving import Serving
from store_kinds import KINDS, ONLY_READ
from test_block_archives import config, counted, run

SERVICES = "".join(f'<service type="{name}" enabled="true"/>' for name in ("ready", "status", "demo"))


class Archive:
    """A configuration with cache "archive" of a kind, and tileset "a" on it."""

    def __init__(self, folder, kind):
        self.folder, self.kind = folder, kind
        inner, self.place = MAKERS[kind](folder)
        self.config = config(folder, f'<cache name="archive" type="{kind}">{inner}</cache>')
        self.config.write_text(self.config.read_text().replace("<service", SERVICES + "<service", 1))

    def take_away(self):
        self.place.rename(self.place.with_name("gone"))


@pytest.fixture(params=sorted(MAKERS))
def archive(request, folder):
    return Archive(folder, request.param)


def states(server):
    return {one["cache"]: one for one in json.loads(server.get("/status").body)["stores"]}


def tile(z, x, y):
    return f"/wmts/1.0.0/a/default/GoogleMapsCompatible/{z}/{y}/{x}.png"


def test_the_reference_has_a_section_of_every_kind():
    """What each sample of a configuration says is loaded by test_docs.py; that the sample has every kind, too."""
    headings = "".join(line for line in (ROOT / "docs/reference/configuration.md").read_text().splitlines() if line.startswith(("### 5.", "#### 5.")))
    sample = (ROOT / "mapcache.xml.sample").read_text()
    for kind in {name.split("-")[0] for name in KINDS} | ONLY_READ:
        assert f"`{kind}`" in headings, kind
        assert f'type="{kind}"' in sample, kind


def test_every_kind_that_is_only_read_is_here():
    assert MAKERS.keys() | {"none"} == ONLY_READ


def test_what_is_only_read_is_served_and_counted(build, archive):
    """By FastCGI and `mapcache serve`; /status and the pages have it; check --connect, detail, compact and purge know it."""
    assert f'cache "archive"' not in run("check", "--connect", archive.config)
    assert counted(archive.config, "-z", "0,2") == {0: 1, 1: 4}
    assert f'cache "archive": tiles of type {archive.kind} have nothing to give back here' in run("compact", "-c", archive.config, "-C", "archive")
    said = run("purge", "-c", archive.config, "-t", "a", "-z", "0,0", "--yes", status=1)
    assert f'cache "archive" of type {archive.kind} is only read' in said
    for path in (archive.folder, *archive.folder.rglob("*")):  # the web server is another user
        path.chmod(0o777 if path.is_dir() else 0o666)
    server = Server(build, archive.config, archive.folder)
    try:
        assert states(server)["archive"] == {"cache": "archive", "type": archive.kind, "state": "unasked", "failures": 0}
        kept = {place: server.get(tile(*place)) for place in PLACES}
        assert {answer.status for answer in kept.values()} == {200} and len({answer.body for answer in kept.values()}) == len(PLACES)
        assert states(server)["archive"]["state"] == "works" and states(server)["sqlite"]["state"] == "unasked"
        assert json.loads(server.get("/ready").body).items() >= {"status": "ready", "reload_failed": False, "away": [], "stores": []}.items()
        assert [layer["name"] for layer in json.loads(server.get("/demo/layers.json").body)["layers"]] == ["a", "out"]
    finally:
        server.stop()
    with Serving(build, archive.config, port=free_port()) as serving:
        assert "a" in [layer["name"] for layer in serving.told["layers"]]
        for place in PLACES:
            assert serving.get(tile(*place)).body == kept[place].body
        assert serving.end() == 0


def test_what_is_not_there_is_said(archive):
    """A complaint with the cache and the path; nothing is deleted or made anew."""
    archive.take_away()
    said = run("check", "--connect", archive.config, status=2)
    assert 'cache "archive"' in said and str(archive.place) in said and "No such file" in said, said
    assert not archive.place.exists()


def test_a_cache_that_keeps_nothing_says_so(folder):
    path = config(folder, '<cache name="archive" type="none"/>')
    assert "keeps nothing" in run("compact", "-c", path, "-C", "archive")
    assert "keeps nothing" in run("purge", "-c", path, "-t", "a", "-z", "0,0", "--yes", status=1)
    assert "cannot be counted" in run("detail", "-c", path, "-t", "a", "-z", "0,0", status=1)
    assert 'cache "archive"' not in run("check", "--connect", path)

"""What operators and their monitors ask: metrics, health, status; off unless configured."""

import json
import re
import subprocess

import pytest
from conftest import GRID, tile_path
from patience import patience
from peers import tool

SERVICES = "".join(f'<service type="{name}" enabled="true"/>' for name in ("metrics", "health", "ready", "status"))
NOT_HERE = f"""<cache name="elsewhere" type="riak"><server><host>nowhere</host></server></cache>
  <tileset name="lost &amp; &lt;found&gt;"><cache>elsewhere</cache><grid>{GRID}</grid><format>PNG</format></tileset>"""


@pytest.fixture(params=["prefork", "event", "fastcgi"])
def web(request, site):
    """The site with all three services behind each kind of door."""
    site.write_config(extra=SERVICES + NOT_HERE)
    if request.param == "fastcgi":
        return request.getfixturevalue("nginx")(request.getfixturevalue("fcgi")().address)
    return request.getfixturevalue("apache")(f"MapCacheAlias /mc {site.config} quick", mpm=request.param)


def samples(text):
    """The values by name and labels; the text must be well-formed."""
    values, types = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, family, kind = line.split()
            assert family not in types, family
            types[family] = kind
        elif not line.startswith("#"):
            match = re.fullmatch(r'([a-z_]+)(\{[a-z]+="[^"]+"(?:,[a-z]+="[^"]+")*\})? ([0-9.]+)', line)
            assert match, line
            family = match[1] if match[1] in types else re.sub("_(total|bucket|sum|count)$", "", match[1])
            assert family in types, line
            assert (match[1] + (match[2] or "")) not in values, line
            values[match[1] + (match[2] or "")] = float(match[3])
    return values


def test_metrics_count_the_requests_of_all_processes(web):
    first = samples(web.get("/mc/metrics").body.decode())
    for _ in range(40):
        assert web.get("/mc" + tile_path()).status == 200
    assert web.get("/mc" + tile_path(9, 9999, 0)).status == 404
    tag = web.get("/mc" + tile_path()).headers["ETag"]
    assert web.get("/mc" + tile_path(), {"If-None-Match": tag}).status == 304
    for _ in range(10):  # whichever process answers
        seen = samples(web.get("/mc/metrics").body.decode())
        assert seen["mapcache_requests_total"] - first["mapcache_requests_total"] >= 44
        assert seen["mapcache_cache_hits_total"] - first["mapcache_cache_hits_total"] == 42
        assert seen["mapcache_client_errors_total"] - first["mapcache_client_errors_total"] == 1
        assert seen["mapcache_not_modified_total"] - first["mapcache_not_modified_total"] == 1


def test_prometheus_has_nothing_to_say_against_the_metrics(web):
    """By its own checker: names, types and helps, also with histograms that have counted."""
    assert web.get("/mc" + tile_path()).status == 200
    text = web.get("/mc/metrics").body
    done = subprocess.run([tool("usr/bin/promtool"), "check", "metrics"], input=text, capture_output=True, timeout=patience(60), check=False)
    assert done.returncode == 0 and not done.stdout + done.stderr, (done.stdout + done.stderr).decode()
    lines = text.decode().splitlines()
    families = [line.split()[2] for line in lines if line.startswith("# TYPE ")]
    assert "mapcache_requests_total" in families and "mapcache_span_seconds" in families
    assert [line.split()[2] for line in lines if line.startswith("# HELP ")] == families
    assert not any(line.startswith(("# UNIT", "# EOF")) for line in lines)


def test_metrics_are_in_the_format_that_is_asked_for(web):
    plain = web.get("/mc/metrics")
    assert plain.status == 200 and plain.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    asked = web.get("/mc/metrics", {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"})
    assert asked.headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert asked.body.endswith(b"\n# EOF\n") and b"# TYPE mapcache_requests counter\n" in asked.body
    assert set(samples(asked.body.decode())) >= set(samples(plain.body.decode()))


@pytest.mark.parametrize("name", ["metrics", "health", "ready", "status"])
def test_nobody_keeps_or_embeds_them(web, name):
    reply = web.get(f"/mc/{name}", {"Origin": "http://elsewhere.example"})
    assert reply.status == 200 and reply.headers["Cache-Control"] == "no-store"
    for header in ("ETag", "Last-Modified", "Expires", "Access-Control-Allow-Origin"):
        assert header not in reply.headers
    head = web.get(f"/mc/{name}", method="HEAD")
    assert head.status == 200 and head.body == b""
    assert web.get(f"/mc/{name}/more").status == 404


def test_health_names_what_is_not_available(web):
    reply = web.get("/mc/health")
    assert reply.headers["Content-Type"] == "application/json"
    said = json.loads(reply.body)
    assert said["status"] == "ok" and said["unavailable_layers"] == ["lost & <found>"] and said["version"]


def test_status_tells_of_the_process_and_of_all(web):
    for _ in range(3):
        assert web.get("/mc" + tile_path()).status == 200
    said = json.loads(web.get("/mc/status").body)
    assert said["configuration"]["layers"] == 3 and said["configuration"]["caches"] == 2
    assert said["counters"]["cache_hits_total"] >= 3 and said["uptime_seconds"] >= 0
    process = said["process"]
    assert process["id"] > 0 and process["memory"]["bytes"] <= process["memory"]["most_bytes"]
    assert process["workers"]["idle"] <= process["workers"]["threads"]
    assert "mapcache.xml" not in json.dumps(said)  # no paths for strangers


def test_they_are_off_unless_configured(apache, site):
    site.write_config(extra='<service type="status" enabled="false"/>')
    web = apache(f"MapCacheAlias /mc {site.config} quick")
    for name in ("metrics", "health", "ready", "status"):
        assert web.get(f"/mc/{name}").status in (400, 404), name


def test_spans_are_in_the_metrics(web):
    for _ in range(5):
        assert web.get("/mc" + tile_path(1, 1, 1)).status == 200
    seen = samples(web.get("/mc/metrics").body.decode())
    assert seen['mapcache_span_seconds_count{span="mapcache_handler"}'] >= 5
    assert seen['mapcache_span_seconds_bucket{span="mapcache_handler",le="+Inf"}'] >= 5

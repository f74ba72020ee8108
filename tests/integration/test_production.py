"""docs/production.md: which addresses stand in documents behind proxies, what caching proxies are told, and that the dashboard
asks for metrics that there are."""
import json
import pathlib
import re
import subprocess
import textwrap

import conftest
import pytest
from conftest import tile_path
from patience import patience
from peers import tool

ROOT = pathlib.Path(__file__).resolve().parents[2]
CAPABILITIES = "/mc/wmts/1.0.0/WMTSCapabilities.xml"
FORWARDED = [{"X-Forwarded-Proto": "https", "X-Forwarded-Host": "evil.example", "X-Forwarded-Port": "443"},
             {"Forwarded": "proto=https;host=evil.example"}]


def addresses(web, headers=None):
    """The beginnings of all addresses of this server in a document."""
    text = web.get(CAPABILITIES, headers).body.decode()
    return set(re.findall(r"(https?://[^/\"]+/mc\b)", text))


@pytest.fixture(params=["apache", "nginx"])
def web(request, site, apache, fcgi, nginx):
    site.write_config(extra='<service type="metrics" enabled="true"/>')
    return apache(f"MapCacheAlias /mc {site.config}") if request.param == "apache" else nginx(fcgi().address)


@pytest.mark.parametrize("headers", FORWARDED, ids=["X-Forwarded", "Forwarded"])
def test_forwarded_headers_are_not_read(web, headers):
    assert addresses(web, headers) == addresses(web) == {f"http://127.0.0.1:{web.port}/mc"}


def test_the_host_of_the_request_is_in_addresses(web):
    assert addresses(web, {"Host": f"maps.example:{web.port}"}) == {f"http://maps.example:{web.port}/mc"}


def test_a_configured_address_wins(site, apache):
    site.config.write_text(site.config.read_text().replace("<metadata>", "<metadata><url>https://maps.example.org/mc</url>", 1))
    web = apache(f"MapCacheAlias /mc {site.config}")
    assert addresses(web, {"Host": "other.example"}) == {"https://maps.example.org/mc"}


def test_apache_may_be_told_its_public_address(site, apache):
    web = apache(f"ServerName https://maps.example.org\nUseCanonicalName On\nMapCacheAlias /mc {site.config}")
    assert addresses(web, {"Host": "other.example"}) == {"https://maps.example.org/mc"}


def test_nginx_may_say_that_the_request_came_by_https(fcgi, nginx, monkeypatch):
    page = (ROOT / "docs/production.md").read_text()
    told = re.search(r"`(fastcgi_param HTTPS on; fastcgi_param SERVER_PORT 443;)`", page).group(1)
    monkeypatch.setattr(conftest, "NGINX_CONFIG", conftest.NGINX_CONFIG.replace(
        "include /etc/nginx/fastcgi_params;", "").replace("fastcgi_param SCRIPT_NAME", f"""
      fastcgi_param REQUEST_METHOD $request_method; fastcgi_param QUERY_STRING $query_string; {told}
      fastcgi_param SCRIPT_NAME"""))
    assert addresses(nginx(fcgi().address), {"Host": "maps.example.org"}) == {"https://maps.example.org/mc"}


def test_what_caching_proxies_are_told(web):
    tile = web.get("/mc" + tile_path(1, 0, 0))
    assert tile.headers["Cache-Control"] == "max-age=3600" and tile.headers["ETag"] and tile.headers["Last-Modified"]
    assert web.get("/mc" + tile_path(1, 0, 0), {"If-None-Match": tile.headers["ETag"]}).status == 304
    document = web.get(CAPABILITIES)
    assert document.headers["ETag"] and document.headers["Vary"] == "Accept" and "Cache-Control" not in document.headers
    assert web.get("/mc/metrics").headers["Cache-Control"] == "no-store"
    missing = web.get("/mc" + tile_path(1, 9, 0))
    assert missing.status == 404 and "Cache-Control" not in missing.headers
    assert tile.headers["Access-Control-Allow-Origin"] == "*" and "Origin" not in tile.headers.get("Vary", "")


MAP = "?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS=base&STYLES=&SRS=EPSG:3857&BBOX=0,0,9e6,9e6&WIDTH=99&HEIGHT=99&FORMAT=image/png"


def test_what_caching_proxies_are_told_of_maps_and_of_the_server(site, apache):
    operators = ["metrics", "health", "ready", "status"]
    services = "".join(f'<service type="{name}" enabled="true"/>' for name in operators)
    site.write_config(extra=services + "<cors>https://a.example https://b.example</cors>")
    web = apache(f"MapCacheAlias /mc {site.config}")
    answer = web.get("/mc" + MAP)
    assert answer.status == 200 and answer.headers["Cache-Control"] == "max-age=3600" and answer.headers["ETag"]
    again = web.get("/mc" + MAP, {"If-None-Match": answer.headers["ETag"]})
    assert (again.status, again.body) == (304, b"")
    assert all(web.get(f"/mc/{name}").headers["Cache-Control"] == "no-store" for name in operators)
    for origin, allowed in (("https://b.example", "https://b.example"), ("https://c.example", None), (None, None)):
        tile = web.get("/mc" + tile_path(1, 0, 0), {"Origin": origin} if origin else {})
        assert tile.headers["Vary"] == "Origin" and tile.headers.get("Access-Control-Allow-Origin") == allowed


def test_a_tile_that_may_not_be_kept_says_nothing(site, apache):
    text = site.config.read_text()
    assert "<expires>3600</expires>" in text
    site.config.write_text(text.replace("<expires>3600</expires>", "<expires>0</expires>"))
    tile = apache(f"MapCacheAlias /mc {site.config}").get("/mc" + tile_path(1, 0, 0))
    assert tile.status == 200 and "Cache-Control" not in tile.headers and tile.headers["ETag"]


def test_the_tag_of_a_tile_is_the_same_everywhere(site, apache, fcgi, nginx):
    tags = {web.get("/mc" + tile_path(2, 1, 1)).headers["ETag"] for web in (apache(f"MapCacheAlias /mc {site.config}"), nginx(fcgi().address))}
    assert len(tags) == 1


def test_the_dashboard_asks_for_metrics_that_there_are(web):
    assert web.get("/mc" + tile_path(1, 0, 0)).status == 200  # durations are there after the first request
    served = set(re.findall(r"^(mapcache_\w+)", web.get("/mc/metrics").body.decode(), re.M))
    dashboard = json.loads((ROOT / "docs/grafana.json").read_text())
    texts = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    texts += re.findall(r"^\| (`.*?`) \|", (ROOT / "docs/production.md").read_text(), re.M)
    asked = set(re.findall(r"mapcache_\w+", " ".join(texts))) - {"mapcache_handler"}
    assert len(asked) >= 20 and asked <= served, asked - served
    assert 'span="mapcache_handler"' in web.get("/mc/metrics").body.decode()


def test_prometheus_takes_the_configuration_alarms_and_the_dashboard(folder):
    page = (ROOT / "docs/production.md").read_text()
    alarms = re.findall(r"`((?:rate\(|up ==)[^`]*)`", page)
    dashboard = json.loads((ROOT / "docs/grafana.json").read_text())
    shown = [target["expr"].replace("$__rate_interval", "5m") for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(alarms) >= 5 and len(shown) > 20
    rules = [{"alert": f"alarm{number}", "expr": text} for number, text in enumerate(alarms)]
    rules += [{"record": f"shown:{number}", "expr": text} for number, text in enumerate(shown)]
    (folder / "rules.json").write_text(json.dumps({"groups": [{"name": "all", "rules": rules}]}))  # JSON is YAML, too
    scrape = re.search(r"^    scrape_configs:\n(?:    .*\n)+", page, re.M).group(0)
    (folder / "prometheus.yml").write_text(textwrap.dedent(scrape) + "rule_files: [rules.json]\n")
    done = subprocess.run([tool("usr/bin/promtool"), "check", "config", folder / "prometheus.yml"], capture_output=True, text=True,
                          timeout=patience(60))
    assert done.returncode == 0 and f"{len(rules)} rules found" in done.stdout, done.stdout + done.stderr


def test_the_page_names_metrics_of_alarms(web):
    served = web.get("/mc/metrics").body.decode()
    named = set(re.findall(r"rate\((mapcache_\w+)\[", (ROOT / "docs/production.md").read_text()))
    assert len(named) >= 5 and all(re.search(rf"^{name} ", served, re.M) for name in named), named

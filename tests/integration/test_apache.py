"""The Apache module inside the real httpd, in its three process models."""

import http.client
import os
import re
import signal
import subprocess
import threading

import pytest
from conftest import apache_config, fetch, free_port, tile_path, wait_until
from patience import patience

MODELS = ["event", "worker", "prefork"]


def alias(site, path="/mc", mode=""):
    return f"MapCacheAlias {path} {site.config} {mode}\n"


@pytest.mark.parametrize("mpm", MODELS)
@pytest.mark.parametrize("mode", ["", "quick"])
def test_serves_the_stored_bytes(apache, site, mpm, mode):
    web = apache(alias(site, mode=mode), mpm)
    for z, x, y in [(0, 0, 0), (2, 1, 3), (3, 7, 0)]:
        reply = web.get("/mc" + tile_path(z, x, y))
        assert reply.status == 200, reply.body
        assert reply.body == site.tile(z, x, y)
        assert reply.headers["Content-Type"] == "image/png"
        assert reply.headers["Content-Length"] == str(len(reply.body))
        assert "max-age=3600" in reply.headers["Cache-Control"]
        assert reply.headers["Last-Modified"] == "Thu, 02 Jan 2020 03:04:05 GMT"
        assert "mod-mapcache/" in reply.headers["Server"]


@pytest.mark.parametrize("mode", ["", "quick"])
def test_an_alias_ends_at_a_slash_and_may_be_written_with_many(apache, site, mode):
    web = apache(alias(site, mode=mode))
    assert web.get("/mcx" + tile_path()).status == 404
    assert web.get("/MC" + tile_path()).status == 404
    assert web.get("/%6dc" + tile_path()).status == 200
    assert web.get("//mc//wmts///1.0.0" + tile_path()[len("/wmts/1.0.0"):]).status == 200
    assert web.get("/mc/x/.." + tile_path()).status == 200
    assert web.get("/mc/%2e%2e/other").status == 404
    assert web.get("/mc%2fwmts").status == 404


@pytest.mark.parametrize("mode", ["", "quick"])
def test_methods(apache, site, mode):
    web = apache(alias(site, mode=mode))
    get = web.get("/mc" + tile_path())
    head = web.get("/mc" + tile_path(), method="HEAD")
    assert head.status == 200 and head.body == b""
    for name in ("Content-Length", "Content-Type", "ETag", "Last-Modified"):
        assert head.headers[name] == get.headers[name]
    assert web.get("/mc" + tile_path(), method="POST", body=b"a=b").body == get.body
    for method in ("PUT", "DELETE", "PATCH"):
        assert web.get("/mc" + tile_path(), method=method).status == 405, method


@pytest.mark.parametrize("mode", ["", "quick"])
def test_conditional_requests_and_ranges(apache, site, mode):
    web = apache(alias(site, mode=mode))
    path = "/mc" + tile_path()
    tag = web.get(path).headers["ETag"]
    assert tag.startswith('"')

    reply = web.get(path, {"If-None-Match": tag})
    assert reply.status == 304 and reply.body == b"" and reply.headers["ETag"] == tag
    assert web.get(path, {"If-None-Match": '"other"'}).status == 200
    assert web.get(path, {"If-Modified-Since": "Thu, 02 Jan 2020 03:04:05 GMT"}).status == 304
    assert web.get(path, {"If-Modified-Since": "Thu, 02 Jan 2020 03:04:04 GMT"}).status == 200
    assert web.get(path, {"If-Unmodified-Since": "Wed, 01 Jan 2020 00:00:00 GMT"}).status == 412
    assert web.get(path, {"If-Match": tag}).status == 200
    assert web.get(path, {"If-Match": '"other"'}).status == 412

    whole = site.tile(0, 0, 0)
    part = web.get(path, {"Range": "bytes=10-29"})
    assert part.status == 206 and part.body == whole[10:30]
    assert part.headers["Content-Range"] == f"bytes 10-29/{len(whole)}"
    many = web.get(path, {"Range": "bytes=0-1,5-6"})
    assert many.status == 206 and whole[0:2] in many.body and whole[5:7] in many.body


@pytest.mark.parametrize("mpm", MODELS)
def test_access_rules_hold_unless_the_alias_is_quick(apache, site, mpm):
    rules = "".join(f"<Location {path}>\n Require all denied\n</Location>\n" for path in ("/closed", "/fast"))
    web = apache(alias(site, "/closed") + alias(site, "/fast", "quick") + alias(site, "/slowly", "slow") + rules, mpm)
    assert web.get("/closed" + tile_path()).status == 403
    assert web.get("/%63losed" + tile_path()).status == 403
    assert web.get("//closed" + tile_path()).status == 403
    assert web.get("/fast" + tile_path()).status == 200
    assert web.get("/slowly" + tile_path()).status == 200
    # a quick alias answers nothing else
    assert web.get("/fast/../closed" + tile_path()).status == 403
    assert web.get("/fast/%2e%2e/closed" + tile_path()).status == 403
    assert web.get("/elsewhere").status == 404


@pytest.mark.parametrize("place, rest", [("tms", "1.0.0"), ("tms", ";/1.0.0"), ("gmaps", tile_path()[1:]), ("demo", "x"), ("wmts", "1.0.0/WMTSCapabilities.xml")])
def test_a_rule_for_a_service_covers_all_of_the_service(apache, site, place, rest):
    """Apache's <Location /mc/tms> knows nothing of /mc/tms1.0.0: nor do we."""
    web = apache(alias(site) + f"<Location /mc/{place}>\n Require all denied\n</Location>\n")
    for path in (f"/mc/{place}", f"/mc/{place}/", f"/mc//{place}/{rest}"):
        assert web.get(path).status == 403
    assert web.get(f"/mc/{place}{rest}").status == 404


def test_virtual_hosts_have_their_own_aliases_first(apache, site):
    other = site.folder / "other.xml"
    site.write_config(other, title="the other one")
    port = free_port()
    web = apache(alias(site) + f"""Listen 127.0.0.1:{port}
<VirtualHost 127.0.0.1:{port}>
  ServerName other.example
  MapCacheAlias /mc {other}
  MapCacheAlias /only-here {other} quick
</VirtualHost>
""")
    capabilities = "?SERVICE=WMS&REQUEST=GetCapabilities"
    assert b"the other one" not in web.get("/mc" + capabilities).body
    inside = web.get("/mc" + capabilities, port=port)
    assert b"the other one" in inside.body
    assert f"http://127.0.0.1:{port}/mc".encode() in inside.body
    assert b"the other one" in web.get("/only-here" + capabilities, port=port).body
    assert web.get("/only-here" + tile_path()).status == 404


@pytest.mark.parametrize("broken, place", [("<mapcache>\n  <cache name='a'\n</mapcache>", r":\d+:\d+"),
                                           (None, "cannot be opened")])
def test_a_bad_file_stops_httpd_with_its_place(build, site, folder, modules_environment, broken, place):
    file = folder / "bad.xml"
    if broken is not None:
        file.write_text(broken)
    config = apache_config(build, folder, free_port(), "event", f"MapCacheAlias /mc {file}\n")
    check = subprocess.run(["apache2", "-t", "-f", config], capture_output=True, text=True, timeout=patience(60), check=False,
                           env={**os.environ, **modules_environment})
    assert check.returncode != 0
    assert re.search(re.escape(str(file)) + ".*" + place, check.stderr, re.S), check.stderr


def test_a_good_file_passes_the_syntax_check(build, site, folder, modules_environment):
    config = apache_config(build, folder, free_port(), "event", alias(site))
    check = subprocess.run(["apache2", "-t", "-f", config], capture_output=True, text=True, timeout=patience(60), check=False,
                           env={**os.environ, **modules_environment})
    assert check.returncode == 0 and "Syntax OK" in check.stderr, check.stderr
    inside = apache_config(build, folder, free_port(), "event", f"<Location /x>\n{alias(site)}</Location>\n")
    refused = subprocess.run(["apache2", "-t", "-f", inside], capture_output=True, text=True, timeout=patience(60), check=False,
                             env={**os.environ, **modules_environment})
    assert refused.returncode != 0 and "MapCacheAlias" in refused.stderr


@pytest.mark.parametrize("mpm", MODELS)
def test_graceful_restart_under_load_loses_nothing(apache, site, mpm):
    web = apache(alias(site), mpm)
    stop = threading.Event()
    wrong = []
    done = [0] * 4

    def load(index):
        while not stop.is_set():
            try:
                reply = fetch(web.port, "/mc" + tile_path(3, index, index))
                if reply.status != 200 or reply.body != site.tile(3, index, index):
                    wrong.append(reply.status)
                done[index] += 1
            except (OSError, http.client.HTTPException) as failure:
                wrong.append(repr(failure))

    threads = [threading.Thread(target=load, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()

    def all_are_answered():
        """Every client, a few times from now on, or one of them wrongly."""
        before = list(done)
        wait_until(lambda: wrong or all(now > then + 10 for now, then in zip(done, before)), "all clients are answered")

    all_are_answered()  # a signal before httpd serves would end it
    for title in ("second", "third"):
        site.write_config(title=title)
        web.program.process.send_signal(signal.SIGUSR1)

        def changed(title=title):
            return title.encode() in web.get("/mc?SERVICE=WMS&REQUEST=GetCapabilities").body

        wait_until(changed, "the new configuration is served")
        all_are_answered()
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_levels_and_traces(apache, site):
    web = apache(alias(site, mode="quick") + "LogLevel warn mapcache:debug\n")
    assert web.get("/mc" + tile_path()).status == 200
    assert web.get("/elsewhere").status == 404
    pattern = (r"^\[\w{3} \w{3} \d\d \d\d:\d\d:\d\d\.\d{6} \d{4}\] \[mapcache:debug\] \[pid \d+:tid \d+\] "
               r"mod_mapcache\.c\(\d+\): \[client 127\.0\.0\.1:\d+\] MOCKUP (BEGIN|END) mapcache_handler")
    wait_until(lambda: len(re.findall(pattern, web.log(), re.M)) == 2, "both trace lines are written")
    assert "mapcache quick handler hook on uri /mc" in web.log()
    assert "hook on uri /elsewhere" not in web.log()


def test_nothing_is_traced_below_debug(apache, site):
    web = apache(alias(site))
    assert web.get("/mc" + tile_path()).status == 200
    assert "MOCKUP" not in web.log() and "hook on uri" not in web.log()


def test_messages_are_not_formats(apache, site):
    web = apache(alias(site) + "LogLevel warn mapcache:info\n")
    assert web.get("/mc?SERVICE=WMS&REQUEST=GetMap&LAYERS=a%25s%25n%25x&BBOX=1,1,2,2&WIDTH=1&HEIGHT=1&SRS=EPSG:3857"
                   ).status in (400, 404)
    wait_until(lambda: "a%s%n%x" in web.log(), "the message is logged as it is")


def test_many_aliases_of_one_file(apache, site):
    web = apache("".join(alias(site, f"/m{i}", "quick" if i % 2 else "") for i in range(12)) + "LogLevel mapcache:info")
    for i in range(12):
        assert web.get(f"/m{i}" + tile_path()).status == 200
    assert web.log().count("loaded mapcache configuration file from") >= 12

"""<telemetry>: spans for receivers of OTLP, W3C Trace Context, lines of requests that were slow or no hits, metrics by tileset."""
import collections
import concurrent.futures
import json
import os
import re
import signal
import socket
import subprocess
import threading

import pytest
from conftest import GRID, tile_path, wait_until
from otlp_receiver import Receiver, attributes
from patience import patience
from prometheus_client.openmetrics import parser as openmetrics  # of build/otlp, by otlp_receiver
from prometheus_client import parser as plain
from peers import tool

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
BOX = "-20037508.342789,-20037508.342789,20037508.342789,20037508.342789"
GETMAP = "?SERVICE=WMS&REQUEST=GetMap&VERSION=1.1.1&STYLES=&SRS=EPSG:3857"


def traceparent(flags="01", trace=TRACE, parent=PARENT, version="00"):
    return f"{version}-{trace}-{parent}-{flags}"


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.close()


def telemetry(url=None, sampling=100, more=""):
    traces = f"<traces>{url}</traces><max_traces_per_second>0</max_traces_per_second>" if url else ""
    return f"<telemetry>{traces}<sampling>{sampling}</sampling>{more}</telemetry>"


METRICS = '<service type="metrics" enabled="true"/>'


@pytest.fixture(params=["prefork", "event", "fastcgi"])
def serve(request, site):
    """serve(extra): the site behind each kind of front end."""

    def start(extra):
        site.write_config(extra=extra)
        if request.param == "fastcgi":
            program = request.getfixturevalue("fcgi")()
            web = request.getfixturevalue("nginx")(program.address)
            web.log = program.log  # what ours says, not nginx
            return web
        return request.getfixturevalue("apache")(f"MapCacheAlias /mc {site.config}", mpm=request.param)

    return start


@pytest.fixture
def site(site):
    """The origin answers at once."""
    site.origin_path = "/wms?"
    site.origin_url = site.origin.url("/wms?")
    return site


def by_trace(spans):
    traces = collections.defaultdict(list)
    for span in spans:
        traces[span.trace_id.hex()].append(span)
    return traces


def root_of(spans):
    roots = [span for span in spans if span.name == "mapcache_handler"]
    assert len(roots) == 1, [span.name for span in spans]
    return roots[0]


def check_tree(spans):
    """Every span but the root has its parent in the trace, and lies inside of it; ids are there once."""
    ids = {span.span_id: span for span in spans}
    assert len(ids) == len(spans)
    root = root_of(spans)
    for span in spans:
        assert len(span.span_id) == 8 and len(span.trace_id) == 16 and any(span.span_id)
        assert span.start_time_unix_nano <= span.end_time_unix_nano
        if span is root:
            continue
        parent = ids[span.parent_span_id]
        assert parent.start_time_unix_nano <= span.start_time_unix_nano, span.name
        assert span.end_time_unix_nano <= parent.end_time_unix_nano + 1000000, span.name
    return root


def test_a_receiver_gets_the_spans_of_requests(serve, site, receiver):
    web = serve(telemetry(receiver.url, more="<service_name>maps</service_name><headers><X-Key>a b</X-Key></headers>"))
    paths = [tile_path(2, 1, 1), tile_path(1, 0, 1, "slow"), tile_path(9, 9999, 0),
             f"{GETMAP}&LAYERS=base&BBOX={BOX}&WIDTH=300&HEIGHT=300"]
    statuses = [web.get("/mc" + path).status for path in paths]
    assert statuses == [200, 200, 404, 200]
    traces = wait_until(lambda: (found := by_trace(receiver.spans())) if len(by_trace(receiver.spans())) == 4 else None,
                        "four traces arrive")
    roots = {attributes(check_tree(spans))["http.response.status_code"]: spans for spans in traces.values()}
    assert set(roots) == {200, 404}
    told = [(attributes(root_of(spans)), {span.name for span in spans}) for spans in traces.values()]
    hit = [said for said, _ in told if said["mapcache.result"] == "hit"]
    assert len(hit) == 1 and hit[0]["url.path"] == "/mc" + paths[0] and hit[0]["mapcache.tileset"] == "base"
    assert hit[0]["mapcache.tile"] == f"{GRID}/2/1/2" and hit[0]["mapcache.service"] == "wmts"
    rendered = [names for said, names in told if said["mapcache.result"] == "rendered"]
    assert len(rendered) == 1
    assert rendered[0] >= {"mapcache_handler", "mapcache_core_get_tile", "mapcache_cache_tile_get", "mapcache_source_render",
                           "mapcache_http_request", "_mapcache_cache_disk_get", "mapcache_cache_tile_set"}
    assert [said["mapcache.size"] for said, _ in told if said["mapcache.result"] == "composed"] == ["300x300"]
    calls = [span for spans in traces.values() for span in spans if span.name == "mapcache_http_request"]
    assert [attributes(span)["mapcache.about"] for span in calls] == [site.origin.url("/").split("/")[2]]
    for message in receiver.messages():
        assert all(attributes(resource.resource)["service.name"] == "maps" for resource in message.resource_spans)
    assert {headers["X-Key"] for _, headers, _ in receiver.requests} == {"a b"}


def test_spans_of_pool_threads_belong_to_the_request(serve, receiver):
    web = serve(telemetry(receiver.url) + "<threaded_fetching>true</threaded_fetching><workers>4</workers>")
    for width in (1000, 1001, 1002):  # resampled, of 16 tiles
        assert web.get(f"/mc{GETMAP}&LAYERS=base&BBOX={BOX}&WIDTH={width}&HEIGHT={width}").status == 200
    traces = wait_until(lambda: by_trace(receiver.spans()) if len(by_trace(receiver.spans())) == 3 else None, "three traces arrive")
    names = collections.Counter()
    for spans in traces.values():
        check_tree(spans)
        names.update(span.name for span in spans)
    assert names["mapcache_cache_tile_get"] >= 3 * 16


def test_the_trace_of_whoever_asks_goes_on(serve, site, receiver):
    web = serve(telemetry(receiver.url, sampling=0))
    reply = web.get("/mc" + tile_path(1, 1, 1, "slow"), {"traceparent": traceparent(), "tracestate": "vendor=value,o@t=1"})
    assert reply.status == 200
    version, trace, span, flags = reply.headers["traceresponse"].split("-")
    assert (version, trace, flags) == ("00", TRACE, "01")
    asked = [request for request in site.origin.requests() if "traceparent" in request["headers"]]
    assert len(asked) == 1 and asked[0]["headers"]["tracestate"] == "vendor=value,o@t=1"
    spans = wait_until(receiver.spans, "the trace arrives")
    root = check_tree(spans)
    assert root.trace_id.hex() == TRACE and root.parent_span_id.hex() == PARENT and root.span_id.hex() == span
    assert root.trace_state == "vendor=value,o@t=1"
    sent = re.fullmatch(r"00-([0-9a-f]{32})-([0-9a-f]{16})-01", asked[0]["headers"]["traceparent"])
    call = [other for other in spans if other.name == "mapcache_http_request"]
    assert sent[1] == TRACE and [one.span_id.hex() for one in call] == [sent[2]]


def test_whoever_does_not_trace_is_not_traced_but_its_trace_goes_on(serve, site, receiver):
    web = serve(telemetry(receiver.url, sampling=100))
    reply = web.get("/mc" + tile_path(1, 1, 1, "slow"), {"traceparent": traceparent("00")})
    assert reply.status == 200 and "traceresponse" not in reply.headers
    sent = [request["headers"]["traceparent"] for request in site.origin.requests() if "traceparent" in request["headers"]]
    assert len(sent) == 1 and re.fullmatch(f"00-{TRACE}-[0-9a-f]{{16}}-00", sent[0])
    assert web.get("/mc" + tile_path(0, 0, 0)).status == 200  # whose trace tells that the first one's would have come before
    spans = wait_until(receiver.spans, "the other trace arrives")
    assert TRACE not in by_trace(spans)


HOSTILE = ["", "00", traceparent()[:-1], traceparent() + "-x", traceparent(version="ff"), traceparent(trace="0" * 32),
           traceparent(parent="0" * 16), traceparent().upper(), traceparent() + ", " + traceparent(), "x" * 8000,
           traceparent(trace="g" * 32), traceparent("zz"), " " * 55, "00-" + TRACE + "-" + PARENT + "-0\x7f", traceparent().replace("-", "_")]


def test_hostile_values_of_traceparent_are_ignored(serve, site, receiver):
    web = serve(telemetry(receiver.url, sampling=0))
    for number, value in enumerate(HOSTILE):
        reply = web.get("/mc" + tile_path(3, number % 8, number // 8, "slow"), {"traceparent": value, "tracestate": "a=b"})
        assert reply.status in (200, 400), value  # a web server may refuse a header by itself
        assert "traceresponse" not in reply.headers, value
    sent = [request["headers"]["traceparent"] for request in site.origin.requests() if "traceparent" in request["headers"]]
    assert len(sent) >= len(HOSTILE) - 2
    assert all(re.fullmatch("00-[0-9a-f]{32}-[0-9a-f]{16}-00", value) and TRACE not in value for value in sent)
    assert not any("tracestate" in request["headers"] for request in site.origin.requests())
    assert receiver.requests == []


def test_tracestate_that_is_none_goes_no_further(serve, site, receiver):
    web = serve(telemetry(receiver.url, sampling=0))
    for number, value in enumerate(["", "a" * 600 + "=b", "no pair"]):
        reply = web.get("/mc" + tile_path(3, number, 7, "slow"), {"traceparent": traceparent(), "tracestate": value})
        assert reply.status == 200 and reply.headers["traceresponse"].split("-")[1] == TRACE
    assert not any("tracestate" in request["headers"] for request in site.origin.requests())


def test_nobody_has_to_be_trusted_and_traces_have_a_limit(serve, receiver):
    limited = telemetry(receiver.url, sampling=0).replace(">0</max_traces", ">1</max_traces")
    web = serve(limited + METRICS)
    for _ in range(20):
        assert web.get("/mc" + tile_path(), {"traceparent": traceparent()}).status == 200
    counted = float(re.search(rb"^mapcache_traces_sampled_total (\d+)$", web.get("/mc/metrics").body, re.M)[1])
    assert 1 <= counted < 20


def test_traceparent_is_not_looked_at_where_nobody_is_trusted(serve, site, receiver):
    web = serve(telemetry(receiver.url, sampling=0, more="<trust_traceparent>false</trust_traceparent>"))
    assert "traceresponse" not in web.get("/mc" + tile_path(1, 0, 0, "slow"), {"traceparent": traceparent()}).headers
    sent = [request["headers"]["traceparent"] for request in site.origin.requests() if "traceparent" in request["headers"]]
    assert len(sent) == 1 and TRACE not in sent[0]


def test_a_part_of_the_requests_is_sampled(serve, receiver):
    web = serve(telemetry(receiver.url, sampling=20) + METRICS)
    with concurrent.futures.ThreadPoolExecutor(4) as clients:
        assert set(clients.map(lambda _: web.get("/mc" + tile_path()).status, range(500))) == {200}
    counted = float(re.search(rb"^mapcache_traces_sampled_total (\d+)$", web.get("/mc/metrics").body, re.M)[1])
    assert 40 <= counted <= 180  # 100 are expected; 6 times the standard deviation and more on each side
    wait_until(lambda: len(by_trace(receiver.spans())) >= counted - 1, "the traces arrive")


def counters(web):
    return {name: float(value) for name, value in re.findall(rb"^mapcache_(traces_\w+)_total (\d+)$", web.get("/mc/metrics").body, re.M)}


def test_a_receiver_that_is_away_or_refuses_costs_no_request(serve, receiver):
    receiver.answer = lambda path, number: (400, {})
    web = serve(telemetry(receiver.url) + METRICS)
    for _ in range(5):
        assert web.get("/mc" + tile_path()).status == 200
    wait_until(lambda: counters(web)[b"traces_dropped"] >= 5, "what was refused is counted")
    assert len(receiver.requests) < 5 + 20  # batches, never repeated
    wait_until(lambda: "traces are lost that could not be sent" in web.log(), "the log tells")


def test_a_receiver_that_is_busy_is_asked_again(serve, receiver):
    receiver.answer = lambda path, number: (503, {"Retry-After": "1"}) if number == 1 else (200, {})
    web = serve(telemetry(receiver.url))
    assert web.get("/mc" + tile_path()).status == 200
    wait_until(lambda: len(receiver.requests) >= 2, "it is asked again")
    first, second = receiver.requests[:2]
    assert first[2] == second[2]


def test_a_receiver_that_never_answers_delays_nobody(serve, receiver):
    receiver.answer = lambda path, number: receiver.released.wait() and None
    web = serve(telemetry(receiver.url) + METRICS)
    assert web.get("/mc" + tile_path()).status == 200
    wait_until(lambda: receiver.requests, "it is asked")
    with concurrent.futures.ThreadPoolExecutor(4) as clients:
        assert set(clients.map(lambda _: web.get("/mc" + tile_path()).status, range(200))) == {200}
    receiver.released.set()


HOSTILE_ANSWERS = {
    "endless": b"x" * 1000000,
    "cut": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nxx",
    "zeroes": b"\0" * 100,
    "nothing": b"",
    "elsewhere": b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n",
}


@pytest.mark.parametrize("kind", HOSTILE_ANSWERS)
def test_a_hostile_receiver(fcgi, nginx, site, kind):
    """Whatever comes back: requests are answered, the traces are lost and counted, the program ends in order."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(patience(60))

        def misbehave():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    try:
                        connection.recv(1)
                        connection.sendall(HOSTILE_ANSWERS[kind])
                    except OSError:
                        pass

        thread = threading.Thread(target=misbehave, daemon=True)
        thread.start()
        site.write_config(extra=telemetry(f"http://127.0.0.1:{server.getsockname()[1]}/v1/traces") + METRICS)
        program = fcgi()
        web = nginx(program.address)
        assert web.get("/mc" + tile_path()).status == 200
        if kind == "elsewhere":
            wait_until(lambda: counters(web)[b"traces_dropped"] >= 1, "the lost trace is counted")
        assert program.stop() == 0


def test_what_is_left_is_sent_at_the_end(fcgi, nginx, site, receiver):
    site.write_config(extra=telemetry(receiver.url))
    program = fcgi()
    web = nginx(program.address)
    for _ in range(10):
        assert web.get("/mc" + tile_path()).status == 200
    assert program.stop() == 0
    assert len(by_trace(receiver.spans())) == 10


def test_each_child_of_apache_has_a_thread_of_its_own(apache, site, receiver):
    """Made after the fork: children that are killed and made anew, and graceful restarts, lose none of the later traces."""
    site.write_config(extra=telemetry(receiver.url))
    web = apache(f"MapCacheAlias /mc {site.config}", mpm="prefork")
    seen = set()

    def ask():
        assert web.get("/mc" + tile_path()).status == 200
        found = {attributes(resource.resource)["process.pid"] for message in receiver.messages() for resource in message.resource_spans}
        return found - seen

    seen |= wait_until(ask, "a child sends its traces")
    for child in seen:
        os.kill(child, signal.SIGKILL)
    fresh = wait_until(ask, "another child sends its traces")
    assert fresh and not fresh & seen
    seen |= fresh
    os.kill(web.program.process.pid, signal.SIGUSR1)
    wait_until(ask, "a child of the next generation sends its traces")
    spans = receiver.spans()  # more of them come at any time
    ids = [span.span_id for span in spans]
    assert len(ids) == len(set(ids)) and len(by_trace(spans)) == sum(span.name == "mapcache_handler" for span in spans)


def test_a_reload_sends_traces_elsewhere(fcgi, nginx, site, receiver):
    site.write_config(extra=telemetry(receiver.url + "/first"))
    program = fcgi()
    web = nginx(program.address)
    assert web.get("/mc" + tile_path()).status == 200
    wait_until(lambda: receiver.requests, "the first trace arrives")
    site.write_config(extra=telemetry(receiver.url + "/second"))
    program.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "reloaded config file" in program.log(), "the configuration is reloaded")
    assert web.get("/mc" + tile_path()).status == 200
    wait_until(lambda: any(path.endswith("/second") for path, *_ in receiver.requests), "the second trace arrives")


def logfmt(line):
    pairs = re.findall(r'([a-z_]+)=(?:"((?:[^"\\]|\\.)*)"|(\S*))', line)
    return {key: quoted or value for key, quoted, value in pairs}


def lines_of(file, form):
    if not file.exists():
        return []
    text = file.read_text()
    assert text == "" or text.endswith("\n")
    return [json.loads(line) if form == "json" else logfmt(line) for line in text.splitlines()]


@pytest.mark.parametrize("form", ["logfmt", "json"])
def test_what_was_no_hit_has_a_line(serve, site, form):
    log = site.folder / "access.log"
    web = serve(telemetry(more=f"<access_log>access.log</access_log><log_format>{form}</log_format>"))
    hostile = '/tms/1.0.0/no"such\\layer=x/0/0/0.png'
    for path in (tile_path(2, 1, 1), tile_path(1, 0, 1, "slow"), tile_path(1, 0, 1, "slow"), tile_path(9, 9999, 0),
                 f"{GETMAP}&LAYERS=base,base&BBOX={BOX}&WIDTH=300&HEIGHT=200", "/wmts/1.0.0/WMTSCapabilities.xml"):
        web.get("/mc" + path)
    web.get("/mc" + hostile.replace('"', "%22").replace("\\", "%5c"))
    lines = wait_until(lambda: (found := lines_of(log, form)) if len(lines_of(log, form)) == 5 else None, "five lines are written")
    rendered, lost, drawn, document, wrong = lines
    assert (rendered["result"], rendered["tileset"], rendered["tile"]) == ("rendered", "slow", f"{GRID}/1/0/0")
    assert (lost["result"], str(lost["status"])) == ("error", "404") and lost["url"].startswith("/mc/wmts/1.0.0/base/")
    assert (drawn["result"], drawn["tileset"], drawn["size"]) == ("composed", "base,base", "300x200")
    assert (document["result"], document["service"]) == ("none", "wmts")
    assert wrong["service"] == "tms" and str(wrong["status"]) in ("400", "404")
    assert wrong["url"].replace('\\"', '"').replace("\\\\", "\\").startswith('/mc/tms/1.0.0/no"such\\layer=x')
    for line in lines:
        assert line["event"] == "access" and float(line["ms"]) >= 0 and int(line["bytes"]) >= 0
        assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", line["time"]) and line["client"] == "127.0.0.1"


def test_hits_have_a_line_where_that_is_wanted_and_a_log_that_was_renamed_is_begun_anew(fcgi, nginx, site):
    log = site.folder / "access.log"
    site.write_config(extra=telemetry(more="<access_log>access.log</access_log><access_log_hits>true</access_log_hits>"))
    web = nginx(fcgi().address)
    assert web.get("/mc" + tile_path()).status == 200
    assert [line["result"] for line in wait_until(lambda: lines_of(log, "logfmt"), "the line is written")] == ["hit"]
    log.rename(site.folder / "access.log.1")

    def ask():
        assert web.get("/mc" + tile_path()).status == 200
        return log.exists()

    wait_until(ask, "the new file is there")


def test_a_log_that_cannot_be_written_costs_no_request(fcgi, nginx, site):
    site.write_config(extra=telemetry(more="<access_log>/nowhere/at/all.log</access_log>"))
    program = fcgi()
    web = nginx(program.address)
    for _ in range(5):
        assert web.get("/mc" + tile_path(9, 9999, 0)).status == 404
    assert program.log().count("/nowhere/at/all.log") == 1


@pytest.mark.parametrize("form", ["logfmt", "json"])
def test_what_was_slow_has_a_line_with_its_plan(serve, site, form):
    log = site.folder / "slow.log"
    site.origin_url = site.origin.url("/late/300/wms?")
    web = serve(telemetry(more=f"<slow_log>slow.log</slow_log><slow_seconds>0.25</slow_seconds><log_format>{form}</log_format>"))
    assert web.get("/mc" + tile_path(1, 0, 1, "slow")).status == 200
    lines = wait_until(lambda: lines_of(log, form), "the line is written")
    line = lines[0]
    assert (line["event"], line["tileset"], line["result"]) == ("slow", "slow", "rendered") and float(line["ms"]) >= 250
    host = site.origin.url("/").split("/")[2]
    if form == "json":
        steps = {(step["span"], step.get("about", "")): step["ms"] for step in line["plan"]}
        assert steps["mapcache_source_render", "slow"] >= steps["mapcache_http_request", host] >= 250
        assert steps["mapcache_handler", ""] <= line["ms"] + 1 and ("mapcache_cache_tile_set", "slow") in steps
    else:
        took = dict(re.findall(r"(\w+\([^)]*\)) ([\d.]+)ms", line["plan"]))
        assert float(took["mapcache_source_render(slow)"]) >= float(took[f"mapcache_http_request({host})"]) >= 250
        assert line["plan"].startswith("mapcache_handler ") and "mapcache_cache_tile_set(slow)" in line["plan"]


def test_messages_name_the_request(serve, site):
    site.origin_url = site.origin.url("/status/500")
    web = serve("")
    assert web.get("/mc" + tile_path(1, 0, 1, "slow") + "?note=\"quoted\"").status == 502
    pattern = rf'\[method=GET url="/mc{re.escape(tile_path(1, 0, 1, "slow"))}\?note=[^]]*" service=wmts tileset=slow tile={GRID}/1/0/0 status=502\]'
    wait_until(lambda: re.search(pattern, web.log().replace('\\"', '"').replace("\\\\", "\\")), "the message names the request")


def test_metrics_by_tileset(serve, site):
    web = serve(METRICS)
    for path in (tile_path(2, 1, 1), tile_path(2, 1, 2), tile_path(1, 0, 1, "slow"), tile_path(9, 9999, 0),
                 f"{GETMAP}&LAYERS=base,slow&BBOX={BOX}&WIDTH=256&HEIGHT=256", "/wmts/1.0.0/WMTSCapabilities.xml"):
        web.get("/mc" + path)
    for number in range(300):
        web.get(f"/mc/wmts/1.0.0/unknown{number}/default/{GRID}/0/0/0.png")
        web.get(f"/mc/tms/1.0.0/unknown{number}@{GRID}/0/0/0.png")
    text = web.get("/mc/metrics", {"Accept": "application/openmetrics-text"}).body.decode()
    families = {family.name: family for family in openmetrics.text_string_to_metric_families(text)}
    responses = {tuple(sorted(sample.labels.items())): sample.value for sample in families["mapcache_responses"].samples}

    def count(**labels):
        return sum(value for key, value in responses.items() if labels.items() <= dict(key).items())

    assert count(service="wmts", tileset="base", status="200") == 2
    assert count(tileset="slow") == 1 and count(tileset="(several)", service="wms") == 1
    assert count(tileset="(none)") >= 600 and "unknown" not in text
    assert len(responses) < 20
    answers = {(sample.labels["tileset"], sample.labels["result"]): sample.value for sample in families["mapcache_answers"].samples}
    assert answers["base", "hit"] == 2 and answers["slow", "rendered"] == 1
    times = [sample for sample in families["mapcache_response_seconds"].samples if sample.labels["tileset"] == "base"]
    assert {sample.value for sample in times if sample.name.endswith("_count")} == {count(tileset="base")}
    assert families["mapcache_response_seconds"].unit == "seconds"
    older = web.get("/mc/metrics").body.decode()
    assert {family.name for family in plain.text_string_to_metric_families(older)} >= {"mapcache_responses", "mapcache_response_seconds"}
    done = subprocess.run([tool("usr/bin/promtool"), "check", "metrics"], input=older, capture_output=True, text=True,
                          timeout=patience(60), check=False)
    assert done.returncode == 0 and not done.stdout + done.stderr, done.stdout + done.stderr


def test_names_of_clients_are_no_labels(fcgi, nginx, site):
    """A mirror has a layer of every name."""
    site.write_config(extra=METRICS)
    text = site.config.read_text().replace("<mapcache>", '<mapcache mode="split_mirror">')
    text = re.sub(r"<tileset name=\"slow\">.*?</tileset>", "", text, flags=re.S)
    site.config.write_text(text)
    web = nginx(fcgi().address)
    for number in range(50):
        web.get(f"/mc/tms/1.0.0/client{number}@{GRID}/0/0/0.png")
    text = web.get("/mc/metrics").body.decode()
    assert "client4" not in text and re.search(r'mapcache_responses_total\{service="tms",tileset="mirror",status="\d+"\} 50', text)


def test_a_wrong_element_is_named(build, site, modules_environment):
    for wrong, told in (("<traces>ftp://x/</traces>", "address of http or https"), ("<sampling>101</sampling>", "sampling"),
                        ("<slow_seconds>0</slow_seconds>", "slow_seconds"), ("<log_format>xml</log_format>", "logfmt")):
        site.write_config(extra=f"<telemetry>{wrong}</telemetry>")
        done = subprocess.run([build / "bin/mapcache", "check", site.config], env={**os.environ, **modules_environment},
                              capture_output=True, text=True, timeout=patience(60), check=False)
        assert done.returncode == 1 and told in done.stdout + done.stderr, (wrong, done.stdout + done.stderr)

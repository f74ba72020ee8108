"""A thousand tilesets in a hundred thousand lines: how soon they are served, and that no store is asked for anything before a client is."""
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import time

import pytest
from conftest import ROOT, wait_until
from fastcgi import Server
from patience import patience

sys.path.insert(0, str(ROOT / "benchmarks"))
from start.config import NOWHERE, configuration  # noqa: E402

WMS, WMTS = ("/", "SERVICE=WMS&VERSION=1.3.0&REQUEST=GetCapabilities"), ("/wmts/1.0.0/WMTSCapabilities.xml", "")
WMT_111 = ("/", "SERVICE=WMS&VERSION=1.1.1&REQUEST=GetCapabilities")
LOAD, DOCUMENT = .5, .005  # seconds of processor time


@pytest.fixture(scope="module")
def config(shared_folder):
    file = shared_folder / "mapcache.xml"
    file.write_text(configuration(shared_folder / "tiles"))
    assert file.read_text().count("\n") == 100_000 and file.read_text().count("<tileset ") == 1000
    return file


@pytest.fixture
def started(build, config, folder):
    running = []

    def start(**options):
        running.append(Server(build, config, folder, **options))
        return running[-1]

    yield start
    for server in running:
        server.stop()


def processor(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def processor_of(command, **options):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **options)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def touches_of_stores(calls, folder):
    """Lines of strace's that open or ask something in the folder of the stores, or speak to another host."""
    names = [line for line in calls.splitlines() if f"{folder}/tiles/" in line or NOWHERE in line]
    hosts = [line for line in calls.splitlines() if re.search(r"(connect|sendto|sendmsg)\(.*AF_INET", line)]
    return names + hosts


def test_check_takes_half_a_second(build, config):
    taken = min(processor_of([build / "bin/mapcache", "check", config]) for _ in range(3))
    assert taken <= patience(LOAD)


def test_check_touches_no_store(build, config, folder):
    calls = folder / "calls"
    subprocess.run(["strace", "-f", "-s", "400", "-e", "trace=%network,%file", "-o", calls, build / "bin/mapcache", "check", config],
                   check=True, stdout=subprocess.DEVNULL, timeout=patience(60))
    assert str(config) in calls.read_text()
    assert touches_of_stores(calls.read_text(), config.parent) == []


def test_load_reload_and_documents_touch_no_store(started, config, folder):
    calls = folder / "calls"
    # -D: strace is the grandchild, the program itself has the number that is known here
    server = started(before=("strace", "-D", "-f", "-s", "400", "-e", "trace=%network,%file", "-o", calls))
    assert server.get(*WMS).status == server.get(*WMTS).status == 200
    os.kill(server.program.process.pid, signal.SIGHUP)
    wait_until(lambda: "reloaded config file" in server.log(), "the configuration is read again")
    assert server.get(*WMS).status == 200
    assert calls.read_text().count(f'"{config}", O_RDONLY') >= 2, "it was read twice"
    assert touches_of_stores(calls.read_text(), config.parent) == []
    # the same eyes see a store that is touched
    name = re.search(r"<Name>([a-z]+-[a-z0-9-]+)</Name>", server.get(*WMS).body.decode())[1]
    grid = re.search(r"<TileMatrixSet>(\w+)</TileMatrixSet>", server.get(*WMTS).body.decode())[1]
    server.get(f"/tms/1.0.0/{name}@{grid}/0/0/0.png")
    wait_until(lambda: touches_of_stores(calls.read_text(), config.parent), "a tile's store is seen to be touched")


def test_load_and_reload_take_half_a_second(started):
    server = started()
    pid = server.program.process.pid
    assert server.get("/tms/1.0.0/").status == 200  # needs all of the configuration
    loaded = processor(pid)
    assert loaded <= patience(LOAD)
    os.kill(pid, signal.SIGHUP)
    wait_until(lambda: "reloaded config file" in server.log(), "the configuration is read again")
    assert processor(pid) - loaded <= patience(LOAD)


@pytest.mark.parametrize("address", [WMS, WMTS], ids=["wms", "wmts"])
def test_documents_take_five_milliseconds(started, address):
    server, rounds = started(), 50
    first = server.get(*address)
    before = processor(server.program.process.pid)
    for _ in range(rounds):
        answer = server.get(*address)
        assert answer.body == first.body and answer.header("ETag") == first.header("ETag") is not None
    assert (processor(server.program.process.pid) - before) / rounds <= patience(DOCUMENT)


def written_by_cgi(build, config, address):
    """The document as a process writes it that has prepared nothing and keeps nothing."""
    path, query = address
    variables = {"REQUEST_METHOD": "GET", "SCRIPT_NAME": "/mc", "PATH_INFO": path, "QUERY_STRING": query, "SERVER_NAME": "tests.example", "SERVER_PORT": "80",
                 "GATEWAY_INTERFACE": "CGI/1.1", "MAPCACHE_CONFIG_FILE": str(config)}
    said = subprocess.run([build / "bin/mapcache.fcgi"], env={**os.environ, **variables}, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=patience(60))
    return said.stdout.partition(b"\r\n\r\n")[2]


def first_document(server, address, variables=None):
    """The answer to the first request for a document, and the seconds of processor time that it took."""
    assert server.get("/tms/1.0.0/").status == 200  # needs all of the configuration
    clock = ~server.program.process.pid << 3 | 2  # CLOCK_PROCESS_CPUTIME_ID of that process
    before = time.clock_gettime(clock)
    answer = server.get(*address, variables=variables)
    return answer, time.clock_gettime(clock) - before


@pytest.fixture(scope="module")
def without_url(config):
    file = config.with_name("own.xml")
    file.write_text(config.read_text().replace("<url>http://localhost/</url>", "", 1))
    return file


@pytest.mark.parametrize("url", [True, False], ids=["url", "any-host"])
@pytest.mark.parametrize("address", [WMS, WMT_111, WMTS], ids=["wms", "wms-1.1.1", "wmts"])
def test_the_first_document_takes_five_milliseconds(build, started, config, without_url, address, url):
    """It is prepared with the load; the bytes are those of a process that writes it when it is asked."""
    config = config if url else without_url
    server = started(environment={"MAPCACHE_CONFIG_FILE": str(config)})
    first, seconds = first_document(server, address)
    assert first.status == 200 and first.body == written_by_cgi(build, config, address)
    assert seconds <= patience(DOCUMENT)
    if not url:  # an address that has to be escaped is not filled in
        other, written = first_document(server, address, {b"SCRIPT_NAME": b"/m'c"})
        assert b"tests.example/m" in other.body and b"tests.example/mc" not in other.body and b".invalid" not in other.body
        assert seconds < written / 2, "nothing was prepared"
        whole = server.get(*address, variables={b"SCRIPT_NAME": b"", b"HTTP_HOST": b"[::1]:8080"}).body
        assert b'"http://[::1]:8080/' in whole and b"tests.example" not in whole and b".invalid" not in whole
        assert b"8080//" not in whole and b"8080?" not in whole


def test_all_aliases_of_httpd_have_their_documents_before_the_first_request(apache, config, folder):
    """Those of one configuration are kept beside those of others."""
    names = ["one", "two", "three"]
    for name in names:
        (folder / f"{name}.xml").write_text(config.read_text().replace("<url>http://localhost/</url>", "", 1).replace("A thousand layers", f"Layers {name}", 1))
    aliases = "\n".join([f"MapCacheAlias /{name} {folder}/{name}.xml" for name in names] + [f'MapCacheAlias "/o\'ne" {folder}/one.xml'])
    web = apache(f"{aliases}\nStartServers 1\nServerLimit 1\nThreadsPerChild 8\nMaxRequestWorkers 8\n")
    children = pathlib.Path(f"/proc/{web.program.process.pid}/task/{web.program.process.pid}/children")
    child = int(wait_until(lambda: children.read_text().split(), "httpd has a child")[0])
    assert web.get("/one/tms/1.0.0/").status == 200

    def get(alias):
        before = time.clock_gettime(~child << 3 | 2)
        answer = web.get(f"/{alias}?{WMS[1]}")
        assert answer.status == 200
        return answer.body, time.clock_gettime(~child << 3 | 2) - before

    _, written = get("o'ne")  # an address that has to be escaped is not filled in
    for _ in range(2):
        for name in names:
            body, seconds = get(name)
            assert f"<Title>Layers {name}</Title>".encode() in body and f':{web.port}/{name}?"'.encode() in body
            assert seconds <= patience(DOCUMENT) and seconds < written / 2, (name, seconds, written)


def test_documents_are_those_of_the_address_and_the_configuration(started, config, folder):
    text = config.read_text()
    text = re.sub(r"<url>http://localhost/</url>", "", text, count=1)
    config = folder / "own.xml"
    config.write_text(text)
    server = started(environment={"MAPCACHE_CONFIG_FILE": str(config)})
    first = server.get(*WMS, variables={b"HTTP_HOST": b"one.example"}).body
    assert b"one.example" in first and b"other.example" not in first
    other = server.get(*WMS, variables={b"HTTP_HOST": b"other.example"}).body
    assert other.replace(b"other.example", b"one.example") == first
    assert server.get(*WMS, variables={b"HTTP_HOST": b"one.example"}).body == first
    older = server.get("/", "SERVICE=WMS&VERSION=1.1.1&REQUEST=GetCapabilities", variables={b"HTTP_HOST": b"one.example"}).body
    assert b"WMT_MS_Capabilities" in older
    config.write_text(text.replace("A thousand layers", "More layers", 1))
    os.kill(server.program.process.pid, signal.SIGHUP)
    wait_until(lambda: "reloaded config file" in server.log(), "the configuration is read again")
    assert b"<Title>More layers</Title>" in server.get(*WMS, variables={b"HTTP_HOST": b"one.example"}).body

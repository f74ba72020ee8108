"""The files that a configuration is read of count as a part of it: a change of one has it loaded again, and what cannot be used changes
nothing but what /ready, the metrics and the log say. FastCGI by <auto_reload>, Apache by a graceful restart."""
import json
import os
import re
import signal
import threading

import pytest
from conftest import GRID, stored_tile, tile_path, wait_until
from fastcgi import Client
from patience import patience

PALETTE = "0 40 90 160 255 water\n1 {} 160 40 255 land\n"
SERVICES = '<service type="ready" enabled="true"/><service type="metrics" enabled="true"/>'


def write(path, content):
    draft = path.with_name(path.name + ".draft")
    draft.write_bytes(content if isinstance(content, bytes) else content.encode())
    draft.replace(path)


class Parts:
    """A configuration that names a picture and a colour table."""

    def __init__(self, site):
        self.site, self.mark, self.palette = site, site.folder / "mark.png", site.folder / "palette.txt"
        write(self.mark, stored_tile(0, 0, 0))
        write(self.palette, PALETTE.format(90))

    def write_config(self, title, more=""):
        self.site.write_config(title=title, extra=f"""<tileset name="marked"><source>slow</source><cache>slow</cache><grid>{GRID}</grid><format>PNG</format>
          <watermark>{self.mark}</watermark></tileset>
          <tileset name="covers"><source>slow</source><cache>slow</cache><grid>{GRID}</grid><format>PNG8</format><palette name="default" file="palette.txt"/></tileset>
          {SERVICES}{more}""")


@pytest.fixture
def parts(site):
    return Parts(site)


def said(get):
    """What /ready says of the configuration, which /metrics has to say as well."""
    answer, metrics = get("/ready"), get("/metrics")
    assert answer.status == 200 and metrics.status == 200
    ready = json.loads(answer.body)
    gauges = dict(re.findall(rb"^mapcache_(config_\w+) (\d+)", metrics.body, re.M))
    assert int(gauges[b"config_loaded_timestamp_seconds"]) > 1.7e9
    return {**ready, "gauge": int(gauges[b"config_reload_failed"])}


def test_a_change_of_any_file_is_read(fcgi, parts):
    parts.write_config("first", "<auto_reload>true</auto_reload>")
    program = fcgi()
    client = Client(program.address)

    def get(path):
        return client.get(path.encode())

    def reloads():
        return re.findall(r"reloaded config file \S+, because (\S+) has changed", program.log())

    assert said(get)["reload_failed"] is False
    write(parts.mark, stored_tile(0, 0, 0))  # the same picture
    write(parts.palette, PALETTE.format(91))
    wait_until(lambda: reloads() == [str(parts.palette)], "the colour table is read again")
    write(parts.mark, stored_tile(1, 0, 0))
    wait_until(lambda: reloads()[1:] == [str(parts.mark)], "the picture is read again")

    parts.palette.write_text("0 40 90 160 255 water\n1 90 160")  # cut off
    wait_until(lambda: said(get)["reload_failed"], "the broken file is noticed")
    now = said(get)
    assert now["status"] == "degraded" and now["gauge"] == 1 and now["configuration"]["where"] == "palette.txt:2:1", now
    assert client.get(tile_path().encode()).body == parts.site.tile(0, 0, 0)
    assert f"{parts.palette}:2:1" in program.log()
    write(parts.palette, PALETTE.format(92))
    wait_until(lambda: not said(get)["reload_failed"], "the whole file is read")
    assert said(get)["gauge"] == 0 and said(get)["status"] == "ready" and "where" not in said(get)["configuration"]


def test_a_file_that_is_written_while_it_is_read(fcgi, parts):
    """In pieces, in place: whatever is read of it in between, the whole is served at the end, and no request fails."""
    parts.write_config("first", "<auto_reload>true</auto_reload>")
    program = fcgi()
    client, config = Client(program.address), parts.site.config
    whole = config.read_bytes().replace(b"<title>first</title>", b"<title>second</title>")

    def title():
        answer = client.get(b"/", b"SERVICE=WMS&REQUEST=GetCapabilities")
        assert answer.status == 200
        return re.search(b"<Title>([^<]*)", answer.body)[1].decode()

    assert title() == "first"
    with config.open("r+b") as file:
        for end in range(0, len(whole) + 200, 200):
            file.write(whole[end:end + 200])
            file.flush()
            if end == 0:
                file.truncate()
            program.process.send_signal(signal.SIGHUP)
            assert title() in ("first", "second")
    wait_until(lambda: title() == "second", "the whole file is served")
    assert program.process.poll() is None


def test_graceful_restarts_of_apache(apache, parts, build):
    """5 of them, MAPCACHE_RELOADS=1000: as many. What cannot be used leaves what was served before; the parent does not grow."""
    parts.write_config("first")
    web = apache(f"MapCacheAlias /mc {parts.site.config}\n")
    reloads, wrong, stop, titles = int(os.environ.get("MAPCACHE_RELOADS", "5")), [], threading.Event(), set()

    def get(path):
        return web.get("/mc" + path)

    def load():
        while not stop.is_set():
            try:
                tile, page = get(tile_path()), web.get("/mc?SERVICE=WMS&REQUEST=GetCapabilities")
                titles.add(re.search(b"<Title>([^<]*)", page.body)[1].decode())
                if tile.status != 200 or tile.body != parts.site.tile(0, 0, 0):
                    wrong.append(tile.status)
            except (OSError, TypeError) as failure:
                wrong.append(repr(failure))

    def restart_with(title):
        parts.write_config(title)
        web.program.process.send_signal(signal.SIGUSR1)
        wait_until(lambda: title in titles or wrong, f"{title} is served")

    thread = threading.Thread(target=load)
    thread.start()
    try:
        wait_until(lambda: "first" in titles or wrong, "it serves")
        for number in range(reloads):
            if number == reloads // 5:
                early = resident(web.program.process.pid)
            restart_with(f"edition {number}")
        late = resident(web.program.process.pid)
        parts.palette.write_text("no colours")
        web.program.process.send_signal(signal.SIGUSR1)
        wait_until(lambda: wrong or said(get)["reload_failed"], "the broken file is told")
        now = said(get)
        assert now["gauge"] == 1 and now["configuration"]["where"] == "palette.txt:1:1" and f"edition {reloads - 1}" in titles, now
        assert "what was loaded before stays" in web.log() and f"{parts.palette}:1:1" in web.log()
        write(parts.palette, PALETTE.format(91))
        restart_with("mended")
        wait_until(lambda: wrong or not said(get)["reload_failed"], "all is well")
    finally:
        stop.set()
        thread.join()
    assert wrong == [] and web.program.process.poll() is None
    assert grows_with_sanitizers(build) or late < early + 2048, (early, late)


def grows_with_sanitizers(build):
    return "MAPCACHE_SANITIZE:STRING=address" in (build / "CMakeCache.txt").read_text()


def resident(process):
    """KiB."""
    with open(f"/proc/{process}/status", encoding="ascii") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1])


def test_the_program_does_not_grow(fcgi, parts, build):
    """50 reloads, MAPCACHE_RELOADS=1000: as many."""
    reloads = int(os.environ.get("MAPCACHE_RELOADS", "50"))
    parts.write_config("first")
    program = fcgi()
    client = Client(program.address)

    def figures():
        with open(f"/proc/{program.process.pid}/status", encoding="ascii") as status:
            threads = int(re.search(r"Threads:\s+(\d+)", status.read())[1])
        return resident(program.process.pid), len(os.listdir(f"/proc/{program.process.pid}/fd")), threads

    for number in range(reloads):
        if number == reloads // 5:
            early = figures()
        program.process.send_signal(signal.SIGHUP)
        wait_until(lambda number=number: program.log().count("reloaded config file") > number, "the file is read", patience(60))
        assert client.get(tile_path().encode()).status == 200
    late = figures()
    assert late[1] <= early[1] + 1 and late[2] <= early[2] + 2, (early, late)
    assert grows_with_sanitizers(build) or late[0] < early[0] + 1536, (early, late)

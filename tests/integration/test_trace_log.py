"""The traces of the running servers, read by the published parser's rules: every BEGIN has its END on every path."""
import collections
import concurrent.futures
import re
import subprocess

import parser_rules
import pytest
from conftest import tile_path, wait_until

BOX = "-20037508.342789,-20037508.342789,20037508.342789,20037508.342789"
GETMAP = "?SERVICE=WMS&REQUEST=GetMap&VERSION=1.1.1&STYLES=&SRS=EPSG:3857"
REQUESTS = [
    tile_path(),  # a hit
    tile_path(3, 5, 5),
    tile_path(1, 0, 1, "slow"),  # a miss of the disk cache, rendered
    tile_path(9, 0, 0),  # a miss, nothing to render it
    tile_path(99, 0, 0),  # an error
    f"{GETMAP}&LAYERS=base&BBOX={BOX}&WIDTH=512&HEIGHT=512",  # aligned
    f"{GETMAP}&LAYERS=base,base&BBOX={BOX}&WIDTH=500&HEIGHT=500",  # two layers, resampled
    f"{GETMAP}&LAYERS=slow&BBOX={BOX}&WIDTH=1000&HEIGHT=1000",  # several metatiles to be rendered
    f"{GETMAP}&LAYERS=base&BBOX=0,0,1,1&WIDTH=100&HEIGHT=100",  # no data
    f"{GETMAP}&LAYERS=nope&BBOX={BOX}&WIDTH=256&HEIGHT=256",
    "?SERVICE=WMS&REQUEST=GetCapabilities",
    "/wmts/1.0.0/WMTSCapabilities.xml",
    "/nothing",
]
NAMED = ["mapcache_handler", "mapcache_core_get_tile", "mapcache_core_get_map", "mapcache_assemble_maps", "mapcache_prefetch_tiles",
         "mapcache_tileset_tile_get", "mapcache_tileset_tile_get_without_subdimensions", "mapcache_cache_tile_get",
         "_mapcache_cache_disk_get", "_mapcache_cache_sqlite_get", "mapcache_tileset_assemble_map_tiles", "_mapcache_imageio_jpeg_encode"]


def check(log, requests, build):
    lines = log.splitlines()
    counts = collections.Counter((event, name) for _, _, event, name, _ in parser_rules.events(lines))
    for name in NAMED:
        assert counts["BEGIN", name] > 0, name
    for (event, name), count in counts.items():
        assert count == counts["END" if event == "BEGIN" else "BEGIN", name], name
    assert counts["BEGIN", "mapcache_handler"] == requests
    assert {note for *_, note in parser_rules.events(lines)} >= {"CACHE_MISS", "ERROR", None}
    named = re.findall(r"\[client [^]]*\] REQUEST (.*)", log)
    assert sum("status=" in text for text in named) == requests and all(text.startswith("method=GET url=") for text in named)
    assert any("tile=" in text and "tileset=base" in text and "status=200" in text for text in named)
    groups = parser_rules.parse(lines)  # a KeyError where the published parser would have stopped
    roots = collections.Counter(group[1][0][1] for group in groups)
    assert roots["mapcache_handler"] == requests
    assert set(roots) <= set(parser_rules.ROOTS)
    for trace in (log, log[: len(log) // 2]):  # also a log that ends in the middle of a request
        run = subprocess.run([build / "bin/mapcache", "trace", "--summary"], input=trace, capture_output=True, text=True)
        assert run.returncode == 0 and "mapcache_handler" in run.stdout, run.stderr
    printed = subprocess.run([build / "bin/mapcache", "trace"], input=log, capture_output=True, text=True, check=True).stdout
    assert printed.count("'BEGIN:mapcache_handler'") == requests


@pytest.mark.parametrize("mpm", ["event", "prefork"])
def test_apache(apache, site, build, mpm):
    web = apache(f"LogLevel warn mapcache:debug\nMapCacheAlias /mc {site.config}", mpm=mpm)
    with concurrent.futures.ThreadPoolExecutor(6) as clients:
        replies = list(clients.map(web.get, ["/mc" + path for path in REQUESTS * 4]))
    assert all(reply.status in (200, 400, 404) for reply in replies), [reply.status for reply in replies]
    wait_until(lambda: web.log().count("END mapcache_handler") == len(replies), "the last request's end is written")
    check(web.log(), len(REQUESTS) * 4, build)


def test_fastcgi(fcgi, nginx, site, build):
    site.write_config(extra="<log_level>debug</log_level>")
    program = fcgi()
    web = nginx(program.address)
    with concurrent.futures.ThreadPoolExecutor(6) as clients:
        replies = list(clients.map(web.get, ["/mc" + path for path in REQUESTS * 4]))
    assert all(reply.status in (200, 400, 404) for reply in replies), [reply.status for reply in replies]
    program.stop()
    check(program.log(), len(REQUESTS) * 4, build)


def test_off_there_is_none(apache, site):
    web = apache(f"LogLevel warn\nMapCacheAlias /mc {site.config}")
    assert web.get("/mc" + tile_path()).status == 200
    assert not re.search("MOCKUP", web.log())

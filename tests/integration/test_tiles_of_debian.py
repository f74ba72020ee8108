"""Sources xyz and wmts in front of a server of other people's: Debian's MapCache."""
import re

from conftest import GRID
from drop_in import PEER_MODULE
from lifecycle import source, tile, tileset, write
from origin import Origin
from test_tile_servers import start, wmts, xyz  # noqa: F401


def test_tiles_of_debians_mapcache_are_handed_on_byte_for_byte(start, shared_apache, folder):
    """A server of other people's: as docs/sources.md says, by its KVP, by the template of its capabilities, as TMS and as XYZ."""
    theirs = folder / "theirs"
    theirs.mkdir()
    with Origin() as origin:
        config = write(theirs, source("pattern", origin.url("/pattern?")).replace("<retries>0</retries>", ""), tileset("base", "pattern", metatile="2 2"))
        peer = shared_apache("debian", f"LoadModule mapcache_module {PEER_MODULE}\nMapCacheAlias /peer {config}\n", module=False)
        url = f"http://127.0.0.1:{peer.port}/peer"
        template = re.search(rb'template="[^"]*/peer/([^"]*)"', peer.get("/peer/wmts/1.0.0/WMTSCapabilities.xml").body)[1].decode()
        sources = {"kvp": wmts(url + "/wmts", "<format>image/png</format>", name="kvp"), "rest": wmts(f"{url}/{template}", name="rest"),
                   "tms": xyz(f"{url}/tms/1.0.0/base@{GRID}/{{z}}/{{x}}/{{-y}}.png", name="tms"), "xyz": xyz(f"{url}/gmaps/base@{GRID}/{{z}}/{{x}}/{{y}}.png", name="xyz")}
        web = start(*sources.values(), *(tileset(name, name) for name in sources))
        for z, x, y in [(0, 0, 0), (2, 1, 3), (5, 9, 20)]:
            wanted = peer.get(f"/peer/tms/1.0.0/base@{GRID}/{z}/{x}/{y}.png")
            assert wanted.status == 200
            for name in sources:
                reply = web.get(tile(name, z, x, y))
                assert reply.status == 200 and reply.body == wanted.body, (name, z, x, y)

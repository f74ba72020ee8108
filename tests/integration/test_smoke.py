"""One tile and one map through each front end: what `script/test quick` runs of the integration tests."""
import io
import os
import sqlite3
import subprocess

from conftest import GRID, tile_path
from PIL import Image

MAP = ("SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS=base&STYLES=&SRS=EPSG:3857&WIDTH=512&HEIGHT=512&FORMAT=image/png"
       "&BBOX=-20037508.3427892,-20037508.3427892,20037508.3427892,20037508.3427892")


def check(site, get):
    """`get` gives the body of an address below the front end."""
    assert get(tile_path(1, 1, 0)) == site.tile(1, 1, 0)
    assert b"<Capabilities" in get("/wmts/1.0.0/WMTSCapabilities.xml")
    drawn = Image.open(io.BytesIO(get("?" + MAP))).convert("RGB")
    assert drawn.size == (512, 512)
    for x, y in ((0, 0), (1, 0), (0, 1), (1, 1)):
        stored = Image.open(io.BytesIO(site.tile(1, x, y))).convert("RGB")
        for place in ((10, 10), (100, 200), (200, 100)):
            pair = drawn.getpixel((256 * x + place[0], 256 * y + place[1])), stored.getpixel(place)
            assert all(abs(a - b) <= 2 for a, b in zip(*pair)), pair


def of_server(web, prefix):
    def get(address):
        reply = web.get(prefix + address)
        assert reply.status == 200, reply.body
        return reply.body

    return get


def test_apache_module(apache, site):
    check(site, of_server(apache(f"MapCacheAlias /mc {site.config}\n"), "/mc"))


def test_fastcgi_under_nginx(fcgi, nginx, site):
    check(site, of_server(nginx(fcgi().address), "/mc"))


def test_plain_cgi(build, site, modules_environment):
    def get(address):
        path, _, query = address.partition("?")
        variables = {"PATH": os.environ["PATH"], "MAPCACHE_CONFIG_FILE": str(site.config), "REQUEST_METHOD": "GET",
                     "SCRIPT_NAME": "/mapcache", "SERVER_NAME": "here.example", "SERVER_PORT": "80", "PATH_INFO": path or "/",
                     "QUERY_STRING": query}
        done = subprocess.run([build / "bin/mapcache.fcgi"], stdin=subprocess.DEVNULL, capture_output=True,
                              env={**modules_environment, **variables}, check=True)
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        assert not head.startswith(b"Status"), head
        return body

    check(site, get)


def test_command_line(build, site, modules_environment):
    def run(*arguments):
        return subprocess.run([build / "bin/mapcache", *arguments], capture_output=True, text=True, check=False,
                              env={**os.environ, **modules_environment})

    checked = run("check", site.config)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    seeded = run("seed", "-c", site.config, "-t", "base", "-g", GRID, "-z", "0,1", "-m", "delete", "-q")
    assert seeded.returncode == 0, seeded.stdout + seeded.stderr
    with sqlite3.connect(site.folder / "base.sqlite3") as tiles:
        assert tiles.execute("select z, count(*) from tiles group by z order by z").fetchall() == [(2, 16), (3, 64)]

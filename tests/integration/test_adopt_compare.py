"""`mapcache adopt --compare URL` against the real MapServer, MapProxy, renderd and mod_tile, and against servers that do not answer as they should."""
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from adopting import adopt
from browser import Browser
from conftest import APACHE_MODULES, ROOT, Program, free_port, listens, wait_until
from patience import patience
from peers import peer
from test_adopt_renderd import STYLE

MAP = """MAP NAME "m" EXTENT -180 -90 180 90 SIZE 256 256 IMAGETYPE png
  PROJECTION "init=epsg:4326" END
  WEB METADATA "ows_enable_request" "*" "wms_srs" "EPSG:4326 EPSG:3857 EPSG:900913" "wms_title" "t" END END
  LAYER NAME "areas" TYPE POLYGON STATUS ON FEATURE WKT "POLYGON((-100 -50, 20 60, 150 -40, -100 -50))" END PROJECTION "init=epsg:4326" END
    METADATA "wms_title" "Areas <&>" END CLASS STYLE COLOR 200 80 30 OUTLINECOLOR 0 0 0 WIDTH 2 END END END
  LAYER NAME "lines" TYPE LINE STATUS ON FEATURE WKT "LINESTRING(-170 -60, 0 10, 160 70)" END PROJECTION "init=epsg:4326" END CLASS STYLE COLOR 0 0 255 WIDTH 5 END END END
END
"""
PROXY = """services: {wms: , wmts: }
layers:
  - {name: areas, title: The areas, sources: [areas_cache]}
  - {name: lines, title: The lines, sources: [lines_cache]}
caches:
  areas_cache: {grids: [GLOBAL_WEBMERCATOR], sources: [areas]}
  lines_cache: {grids: [south], sources: [lines], format: image/jpeg, request_format: image/png, cache: {type: sqlite}}
grids:
  south: {base: GLOBAL_MERCATOR, num_levels: 12}
sources:
  areas: {type: wms, req: {url: "URL", layers: areas, transparent: true}}
  lines: {type: wms, req: {url: "URL", layers: lines}}
"""


@contextlib.contextmanager
def serving(answer):
    """A server on loopback: answer(path, query) gives headers and body, or None for an end of the connection."""
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            path, _, query = self.path.partition("?")
            given = answer(path, query)
            if given is None:
                self.close_connection = True
                return
            self.send_response(given[0])
            for name, value in {**given[1], "Content-Length": str(len(given[2]))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(given[2])

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def mapserv(folder):
    """The answers of Debian's mapserv, as a CGI program."""
    (folder / "mapserver.conf").write_text('CONFIG\n  ENV\n    MS_MAP_PATTERN "."\n  END\nEND\n')

    def answer(path, query):
        environment = {**os.environ, "MAPSERVER_CONFIG_FILE": str(folder / "mapserver.conf"), "REQUEST_METHOD": "GET", "SCRIPT_NAME": path, "QUERY_STRING": query,
                       "SERVER_NAME": "127.0.0.1", "SERVER_PORT": "80"}
        done = subprocess.run(["mapserv"], env=environment, capture_output=True, timeout=patience(60), check=False)
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        return 200, {"Content-Type": re.search(rb"(?i)content-type: ([^\r\n]+)", head).group(1).decode()}, body
    return answer


def compare(folder, file, url, *words):
    """(exit status, what is said as JSON, the page)"""
    done = adopt(file, "--compare", url, "--report", folder / "report.html", "--json", *words, cwd=folder, seconds=500)
    assert done.returncode in (0, 2, 3), done.stdout + done.stderr
    return done.returncode, json.loads(done.stdout)["compared"], (folder / "report.html").read_text()


def alike(pictures):
    return pictures["same bytes"] + pictures["same pixels"] + pictures["nearly the same"]


def write_map(folder):
    (folder / "m.map").write_text(MAP)
    return f"/cgi?map={folder}/m.map"


def test_mapserver(folder):
    """20 tiles and 20 maps are those of mapserv; the pictures stand beside each other, on a phone, too; another style is found."""
    where = write_map(folder)
    with serving(mapserv(folder)) as url:
        status, said, page = compare(folder, "m.map", url + where)
        assert (status, alike(said["tiles"]), alike(said["maps"]), said["rows_unlike"]) == (0, 20, 20, 0), said
        assert page.count("<section") == 40 and page.count("<img") >= 80 and "Areas &lt;&amp;&gt;" in page
        shown = []
        for phone, width in ((False, 1200), (True, 390)):
            with Browser(width, 800, phone=phone) as browser:
                browser.open((folder / "report.html").as_uri())
                shown.append(browser.script("return [document.querySelectorAll('img').length, [...document.images].every(i => i.complete && i.naturalWidth > 0), "
                                         "document.documentElement.scrollWidth <= innerWidth]"))
        assert shown == [[page.count("<img"), True, True]] * 2
        other = folder / "other"
        other.mkdir()
        (other / "m.map").write_text(MAP.replace("COLOR 200 80 30", "COLOR 30 80 200").replace("Areas", "Others"))
        status, said, page = compare(other, "m.map", url + where)
        assert status == 3 and said["tiles"]["different"] >= 5 and said["maps"]["different"] >= 5 and said["rows_unlike"] == 1, said
        assert "Where they differ" in page and page.count("different</b>") == said["tiles"]["different"] + said["maps"]["different"]


@contextlib.contextmanager
def mapproxy(folder):
    port = free_port()
    script = f"""
from mapproxy.wsgiapp import make_wsgi_app
from werkzeug.serving import run_simple
run_simple("127.0.0.1", {port}, make_wsgi_app("mapproxy.yaml"), threaded=True)
"""
    program = Program([sys.executable, "-c", script], folder / "mapproxy.log", {"PYTHONPATH": str(ROOT / "build" / "mapproxy")}, cwd=folder)
    try:
        wait_until(lambda: listens(("127.0.0.1", port)) or program.process.poll() is not None, "MapProxy listens")
        yield f"http://127.0.0.1:{port}/"
    finally:
        program.stop()


def test_mapproxy(folder):
    """20 tiles have the bytes of MapProxy's, which it has drawn a moment before into the same store. Of the CRSs that MapProxy offers, ours has those of the grids."""
    write_map(folder)
    with serving(mapserv(folder)) as url:
        (folder / "mapproxy.yaml").write_text(PROXY.replace("URL", f"{url}/cgi?map={folder}/m.map&"))
        with mapproxy(folder) as proxy:
            status, said, page = compare(folder, "mapproxy.yaml", proxy)
    assert said["tiles"]["same bytes"] == 20, said
    assert alike(said["maps"]) + said["maps"]["only here"] >= 16 and said["maps"]["only there"] == said["maps"]["on neither side"] == 0, said
    unlike = re.findall(r"<tr class=unlike><td>([^<]*)", page)
    assert status == 3 and set(unlike) == {"WMS areas: CRSs", "WMS lines: CRSs"}


@contextlib.contextmanager
def mod_tile(folder):
    """Debian's mod_tile, with a renderd that draws what is missing."""
    port, plugins = free_port(), sorted(pathlib.Path("/usr/lib/mapnik").glob("*/input"))[-1]
    (folder / "style.xml").write_text(STYLE)
    (folder / "tiles").mkdir()
    (folder / "renderd.conf").write_text(
        f"[renderd]\nstats_file={folder}/stats\nsocketname={folder}/sock\npid_file={folder}/pid\nnum_threads=2\ntile_dir={folder}/tiles\n"
        f"[mapnik]\nplugins_dir={plugins}\nfont_dir=/usr/share/fonts/truetype/dejavu\n[world]\nURI=/osm/\nXML={folder}/style.xml\nHOST=localhost\nMAXZOOM=17\n")
    modules = "".join(f"LoadModule {name}_module {APACHE_MODULES}/mod_{name}.so\n" for name in ("mpm_event", "authz_core"))
    (folder / "httpd.conf").write_text(
        f"{modules}LoadModule tile_module {peer('/usr/lib/apache2/modules/mod_tile.so')}\nServerName localhost\nListen 127.0.0.1:{port}\nPidFile {folder}/httpd.pid\n"
        f"ErrorLog {folder}/error.log\nDefaultRuntimeDir {folder}\nUser www-data\nGroup www-data\nModTileRenderdSocketName {folder}/sock\nModTileTileDir {folder}/tiles\n"
        f"ModTileMissingRequestTimeout 60\nModTileRequestTimeout 60\nModTileMaxLoadOld 10000\nModTileMaxLoadMissing 10000\nLoadTileConfigFile {folder}/renderd.conf\n")
    for path in (folder, folder / "tiles"):
        path.chmod(0o777)
    renderd = Program([peer("/usr/bin/renderd"), "-f", "-c", str(folder / "renderd.conf")], folder / "renderd.log")
    try:
        wait_until(lambda: listens(str(folder / "sock")) or renderd.process.poll() is not None, "renderd starts")
        (folder / "sock").chmod(0o777)
        httpd = Program(["apache2", "-f", folder / "httpd.conf", "-D", "FOREGROUND"], folder / "httpd.log")
        try:
            wait_until(lambda: listens(("127.0.0.1", port)) or httpd.process.poll() is not None, "httpd listens")
            yield f"http://127.0.0.1:{port}"
        finally:
            httpd.stop()
    finally:
        renderd.stop()


def test_mod_tile(folder):
    """20 tiles at 18 levels, drawn by renderd when they are asked for, have the same bytes here; a style's levels are those of its tile-layer.json, which is no JSON."""
    with mod_tile(folder) as url:
        status, said, page = compare(folder, "renderd.conf", url)
    assert said["tiles"]["same bytes"] == 20 and said["rows_unlike"] == 0 and said["rows"] == 1, said
    assert status == 2 and "0 to 17" in page  # two notes: of URI and XML


HOSTILE = {
    "nothing": lambda *_: None,
    "refused": lambda *_: (404, {"Content-Type": "text/html"}, b"<h1>gone</h1>"),
    "html": lambda *_: (200, {"Content-Type": "text/html"}, b"<script>document.title='broken'</script><p>"),
    "laughs": lambda *_: (200, {"Content-Type": "text/xml"}, b'<!DOCTYPE a [<!ENTITY a "' + b"x" * 1000 + b'">' + b"".join(
        b'<!ENTITY a%d "%s">' % (i, (b"&a%d;" % (i - 1) if i else b"&a;") * 30) for i in range(6)) + b"]><WMS_Capabilities><Capability>&a5;</Capability></WMS_Capabilities>"),
    "deep": lambda *_: (200, {"Content-Type": "text/xml"}, b"<WMS_Capabilities><Capability>" + b"<Layer>" * 20000),
    "large": lambda *_: (200, {"Content-Type": "text/xml"}, b" " * (70 << 20)),
    "words": lambda path, query: (200, {"Content-Type": "text/xml"}, (
        b"<WMS_Capabilities><Capability><Layer><CRS>EPSG:3857</CRS><CRS>EPSG:4326</CRS><CRS>\"&lt;script>document.title='broken'&lt;/script></CRS><Layer><Name>areas</Name>"
        b"<Title>&lt;script>document.title='broken'&lt;/script>&lt;!-- --></Title></Layer></Layer></Capability></WMS_Capabilities>")
        if "GetCapabilities" in query else b"\x89PNG\r\n\x1a\n<script>document.title='broken'</script>"),
    "png": lambda path, query: (200, {"Content-Type": "image/png"}, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x40\0\0\0\x40\0\x08\x06\0\0\0" + b"\0" * 4),
}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_answers_from_outside(folder, hostile):
    """A server that answers with anything at all ends with a report: nothing of it runs in a browser, and the status says that nothing was the same."""
    write_map(folder)
    with serving(HOSTILE[hostile]) as url:
        status, said, page = compare(folder, "m.map", f"{url}/<script>alert('x')</script>?map=x")
    assert status == 3 and alike(said["tiles"]) == alike(said["maps"]) == 0 and said["rows_unlike"] > 0, said
    assert "<script" not in page
    with Browser(800, 600) as browser:
        browser.open((folder / "report.html").as_uri())
        assert browser.script("return document.title") == "mapcache adopt: comparison"


def test_configuration_that_is_there(folder):
    """An edited mapcache.xml is compared as it stands; options that do not fit are refused."""
    where = write_map(folder)
    with serving(mapserv(folder)) as url:
        assert adopt("m.map", cwd=folder).returncode == 0
        text = (folder / "mapcache.xml").read_text().replace("Areas", "Edited")
        (folder / "mapcache.xml").write_text(text)
        done = adopt("m.map", "--compare", url + where, cwd=folder, seconds=500)
    assert done.returncode == 3 and "is there already, and is compared as it stands" in done.stderr and (folder / "mapcache.xml").read_text() == text
    assert "Edited" in (folder / "mapcache-compare.html").read_text() and "capabilities: 5 of 6 rows are the same" in done.stdout
    for words in (("--compare", "localhost"), ("--compare", "http://127.0.0.1:9/", "--output", "-"), ("renderd.conf", "--compare", "http://127.0.0.1:9/")):
        assert adopt("m.map", *words, cwd=folder).returncode == 1
    (folder / "mapcache.xml").write_text("<mapcache>")
    done = adopt("m.map", "--compare", "http://127.0.0.1:9/", cwd=folder)
    assert done.returncode == 3 and "mapcache.xml" in done.stderr

"""Words of MapCache's configuration that no other test needs: what Debian's MapCache makes of them and what ours does, both as plain CGI."""
import io
import re
import subprocess

import pytest
from drop_in import PEER_CGI, difference
from http_stores import KEYS, OwnStore
from origin import Origin
from patience import patience
from PIL import Image

HALF = "20037508.3427892480"
WORLD = f"-{HALF},-{HALF},{HALF},{HALF}"
MAP = f"SERVICE=WMS&REQUEST=GetMap&VERSION=1.1.1&STYLES=&SRS=EPSG:3857&BBOX={WORLD}&WIDTH=512&HEIGHT=512&FORMAT=image/png&LAYERS="
GRID = "<grid>GoogleMapsCompatible</grid>"
SERVICES = "".join(f'<service type="{name}" enabled="true"/>' for name in ("wms", "wmts", "tms"))


@pytest.fixture(scope="module")
def origin():
    with Origin() as running:
        yield running


def source(url):
    return ('<source name="s" type="wms"><getmap><params><FORMAT>image/png</FORMAT><LAYERS>red</LAYERS></params></getmap>'
            f"<http><url>{url}</url></http></source>")


def cache(inner='type="disk"><base>{root}/tiles</base>'):
    return f'<cache name="c" {inner}</cache>'


def tileset(name="one", more=f"{GRID}<format>PNG</format>"):
    return f'<tileset name="{name}"><source>s</source><cache>c</cache>{more}</tileset>'


class Program:
    """One of the two as a CGI program over a configuration, in which {root} is a folder of its own."""

    def __init__(self, program, folder, text, environment):
        self.program, self.folder, self.environment = program, folder, environment
        folder.mkdir()
        self.config = folder / "mapcache.xml"
        self.config.write_text(text.replace("{root}", str(folder)))

    def get(self, path="/", query=""):
        """Status, headers and body."""
        done = subprocess.run([self.program], capture_output=True, stdin=subprocess.DEVNULL, timeout=patience(60), check=False, env={
            **self.environment, "MAPCACHE_CONFIG_FILE": str(self.config), "REQUEST_METHOD": "GET", "SCRIPT_NAME": "/mc", "PATH_INFO": path,
            "SERVER_NAME": "here", "SERVER_PORT": "80", "GATEWAY_INTERFACE": "CGI/1.1", "QUERY_STRING": query})
        head, body = (re.split(rb"\r?\n\r?\n", done.stdout, maxsplit=1) + [b""])[:2]
        headers = dict(line.split(": ", 1) for line in head.decode().splitlines() if ": " in line)
        return int(headers.get("Status", "200")[:3]), headers, body

    def files(self):
        return {str(path.relative_to(self.folder)) for path in self.folder.rglob("*")
                if path.is_file() and path.name != "mapcache.xml" and not path.name.endswith((".lck", "-wal", "-shm"))}


@pytest.fixture
def both(tmp_path, build, modules_environment):
    def make(text):
        return [Program(PEER_CGI, tmp_path / "theirs", text, {}), Program(build / "bin/mapcache.fcgi", tmp_path / "ours", text, modules_environment)]

    return make


def same(programs, path="/", query="", allowed=0):
    """The answer, on which both agree: its status, its type, and its pixels where it has some."""
    theirs, ours = (program.get(path, query) for program in programs)
    assert ours[0] == theirs[0], (ours, theirs)
    assert ours[1].get("Content-Type", "").split(";")[0] == theirs[1].get("Content-Type", "").split(";")[0], (ours, theirs)
    if ours[1].get("Content-Type", "").startswith("image/"):
        assert ours[2] == theirs[2] or difference(ours[2], theirs[2]) <= allowed
    return ours


def whole(origin, more="", tilesets=None, attributes="", services=SERVICES, url=None, kept=None):
    return (f"<mapcache{attributes}>{source(url or origin.url('/pattern?'))}{more if '<format' in more else ''}{kept or cache()}{tilesets or tileset()}"
            f"{services}{'' if '<format' in more else more}</mapcache>")


@pytest.mark.parametrize("mode", ['mode="split_mirror"', 'mode="combined_mirror"'])
def test_layers_of_mirrors_come_from_the_request(both, origin, mode):
    """Clients name layers that are in no configuration, under the one tileset that is a template of all."""
    programs = both(whole(origin, attributes=f" {mode}", tilesets=tileset("*"), url=origin.url("/wms?")))
    for layers in ("red", "red,blue"):
        assert same(programs, query=MAP.replace("512", "256") + layers)[0] == 200
    assert programs[0].files() == programs[1].files()


def test_an_environment_is_set(both, origin):
    """A proxy of the environment is asked for what no name server knows."""
    more = f"<environment><http_proxy>http://127.0.0.1:{origin.port}</http_proxy></environment>"
    programs = both(f"<mapcache>{more}{source('http://origin.invalid/pattern?')}{cache()}{tileset()}{SERVICES}</mapcache>")
    for program in programs:
        assert program.get("/tms/1.0.0/one/0/0/0.png")[0] == 200
        assert origin.requests()[-1]["headers"]["host"] == "origin.invalid"


def test_a_merge_format_is_that_of_maps(both, origin):
    programs = both(whole(origin, "<merge_format>JPEG</merge_format>", url=origin.url("/wms?")))
    assert same(programs, query=MAP + "one", allowed=3)[1]["Content-Type"] == "image/jpeg"


@pytest.mark.parametrize("errors", ["<errors>log</errors>", "<errors>empty_img</errors>", "<errors>report</errors>"])
def test_errors_are_told_as_configured(both, origin, errors):
    programs = both(whole(origin, f"<default_format>PNG</default_format>{errors}"))
    theirs, ours = (program.get("/", MAP + "nothing") for program in programs)
    assert ours[0] == theirs[0] >= 400
    kinds = [answer[1].get("Content-Type", "").startswith("image/") for answer in (theirs, ours)]
    assert kinds == ["empty_img" in errors] * 2 and [bool(answer[2]) for answer in (theirs, ours)] == ["log" not in errors] * 2, (theirs, ours)
    if kinds[0]:
        assert difference(ours[2], theirs[2]) == 0


@pytest.mark.parametrize("path, query, size, kind", [
    ("/", MAP.replace("WIDTH=512", "WIDTH=300").replace("image/png", "image/jpeg") + "nothing", (300, 512), "JPEG"),
    ("/", MAP.replace("WIDTH=512", "WIDTH=300") + "nothing&TRANSPARENT=TRUE", (300, 512), "PNG"),
    ("/", MAP.replace("WIDTH=512", "WIDTH=99999999") + "nothing", (256, 256), "PNG"),
    ("/tms/1.0.0/nothing@GoogleMapsCompatible/0/0/0.jpg", "", (256, 256), "JPEG"),
    ("/wmts", "SERVICE=WMTS&REQUEST=GetTile&LAYER=nothing&FORMAT=image/jpeg", (256, 256), "JPEG"),
    ("/wmts", "SERVICE=WMTS&REQUEST=GetTile&LAYER=nothing", (256, 256), "PNG"),
    ("/nothing.png", "", (256, 256), "PNG"),
])
def test_an_error_is_shown_in_an_image(tmp_path, build, modules_environment, origin, path, query, size, kind):
    """<errors>report_img</errors>, which MapCache refuses: as empty_img, with the message in letters that can be seen."""
    text = whole(origin, "<default_format>PNG</default_format><errors>MODE</errors>")
    shown, empty = (Program(build / "bin/mapcache.fcgi", tmp_path / mode, text.replace("MODE", mode), modules_environment).get(path, query)
                    for mode in ("report_img", "empty_img"))
    assert shown[0] == empty[0] >= 400 and shown[1]["X-Mapcache-Error"] == empty[1]["X-Mapcache-Error"] != ""
    image = Image.open(io.BytesIO(shown[2]))
    assert (image.size, image.format) == (size, kind) and shown[1]["Content-Type"] == f"image/{kind.lower()}"
    dark = [pixel for pixel in image.convert("RGBA").getdata() if sum(pixel[:3]) < 90 and pixel[3] > 200]
    assert 50 < len(dark) < size[0] * size[1] / 2


def test_services_of_the_old_form(both, origin):
    programs = both(whole(origin, services="<services><wms>true</wms><tms>true</tms><wmts>false</wmts></services>"))
    assert same(programs, "/tms/1.0.0/one/0/0/0.png")[0] == 200
    assert same(programs, query=MAP.replace("512", "256") + "one")[0] == 200
    assert all(program.get("/wmts/1.0.0/one/default/GoogleMapsCompatible/0/0/0.png")[0] >= 400 for program in programs)


def test_inspire_has_a_block_of_its_own(both, origin):
    metadata = ("<metadata><title>a</title><inspire_profile>true</inspire_profile><inspire_metadataurl>http://example.net/m</inspire_metadataurl>"
                "<defaultlanguage>ger</defaultlanguage><language>ger</language><language>fre</language></metadata>")
    blocks = [re.search(rb"<inspire_vs:ExtendedCapabilities>.*</inspire_vs:ExtendedCapabilities>", program.get("/wmts/1.0.0/WMTSCapabilities.xml")[2], re.DOTALL)
              for program in both(whole(origin, metadata))]
    theirs, ours = (re.findall(r"<(inspire\w+:\w+)>([^<]*\w[^<]*)<", block[0].decode()) for block in blocks)
    assert ours[:3] == theirs[:3] and set(ours) == set(theirs), "theirs names all languages as that of the answer, which the schema forbids"
    assert ("inspire_common:Language", "fre") in ours and ("inspire_common:URL", "http://example.net/m") in ours


def test_an_origin_at_the_lower_left(both, origin):
    grid = (f'<grid name="low"><srs>EPSG:3857</srs><extent>-{HALF} -{HALF} {HALF} {HALF}</extent><size>256 256</size>'
            "<resolutions>156543.0339 78271.51696</resolutions><origin>bottom-left</origin></grid>")
    programs = both(whole(origin, "<format name=\"x\" type=\"PNG\"/>" + grid, tileset(more="<grid>low</grid><format>PNG</format>")))
    assert same(programs, "/tms/1.0.0/one/1/0/1.png")[0] == 200
    assert same(programs, "/wmts/1.0.0/one/default/low/1/1/0.png")[0] == 200


def test_arithmetic_coding_of_jpeg(both, origin):
    kind = '<format name="coded" type="JPEG"><quality>80</quality><optimize>arithmetic</optimize></format>'
    programs = both(whole(origin, kind, tileset(more=f"{GRID}<format>coded</format>")))
    coded = [program.get("/tms/1.0.0/one/0/0/0.jpg") for program in programs]
    assert [answer[0] for answer in coded] == [200, 200]
    assert [b"\xff\xc9" in answer[2] or b"\xff\xca" in answer[2] for answer in coded] == [True, True], "frames of arithmetic coding"


STORES = {
    "tilecache": 'type="disk" layout="tilecache"><base>{root}/tiles</base>',
    "top": ('type="sqlite3"><dbfile top_fmt="%02d" top_x_fmt="%03d" top_y_fmt="%04d" inv_top_x_fmt="%d" inv_top_y_fmt="%d">'
            "{root}/{top}-{top_x}-{top_y}-{inv_top_x}-{inv_top_y}.db</dbfile><top>1</top>"),
    "lmdb": 'type="lmdb"><base>{root}</base><max_readers>20</max_readers>',
}


@pytest.mark.parametrize("name", STORES)
def test_stores_have_the_same_files(both, origin, name):
    programs = both(whole(origin, kept=cache(STORES[name])))
    for place in ("0/0/0", "1/1/0", "3/5/2"):
        assert same(programs, f"/tms/1.0.0/one/{place}.png")[0] == 200
    assert programs[0].files() == programs[1].files() and programs[0].files()


@pytest.mark.parametrize("allowed", ["", ' allow_path_in_dim="yes"'])
def test_paths_in_dimensions(both, origin, allowed):
    kept = cache(f'type="sqlite3"{allowed}><dbfile>{{root}}/{{dim}}.db</dbfile>')
    dimensions = '<dimensions><dimension type="regex" name="color" default="red"><regex>^[a-z/]+$</regex></dimension></dimensions>'
    programs = both(whole(origin, kept=kept, tilesets=tileset(more=f"{GRID}<format>PNG</format>{dimensions}")))
    assert same(programs, query=MAP.replace("512", "256") + "one&COLOR=dark/green")[0] == 200
    assert programs[0].files() == programs[1].files() and programs[0].files()


@pytest.mark.parametrize("assembly, status", [("<assembly_type>none</assembly_type>", 200),
                                              ("<assembly_type>stack</assembly_type><subdimensions_read_only>true</subdimensions_read_only>", 200)])
def test_assemblies(both, origin, assembly, status):
    dimensions = f'<dimensions>{assembly}<dimension type="values" name="color" default="red"><value>red</value><value>blue</value></dimension></dimensions>'
    programs = both(whole(origin, tilesets=tileset(more=f"{GRID}<format>PNG</format>{dimensions}")))
    before = len(origin.requests())
    assert same(programs, query=MAP.replace("512", "256") + "one&COLOR=blue")[0] == status
    assert (len(origin.requests()) == before) == ("read_only" in assembly)


@pytest.mark.parametrize("token, status", [("today", 200), ("yesterday", 502)])
def test_a_session_token_of_s3(tmp_path, build, modules_environment, origin, token, status):
    """Only ours: there is no S3 here that theirs could ask."""
    store = OwnStore("s3", tmp_path)
    try:
        store.order("token/today")
        kept = cache(f'type="s3"><url>http://127.0.0.1:{store.port}/b/{{z}}/{{x}}/{{y}}.png</url>{KEYS["s3"]}<session_token>{token}</session_token>')
        program = Program(build / "bin/mapcache.fcgi", tmp_path / "ours", whole(origin, kept=kept), modules_environment)
        assert program.get("/tms/1.0.0/one/0/0/0.png")[0] == status
    finally:
        store.stop()

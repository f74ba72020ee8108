"""Every parameter of every service with values that no honest client sends: the status that the protocol asks for, a
well-formed answer in time that gives nothing away, and a server that goes on serving."""

import http.client
import pathlib
import re
import shutil
import tempfile
import xml.etree.ElementTree as ElementTree
from urllib.parse import quote_from_bytes

import pytest
from conftest import GRID, Site, sanitizer_environment
from fastcgi import Client, Server
from origin import Origin
from patience import patience

SLOWEST = 40.0  # seconds: nothing hangs
LARGEST_REPORT = 16384  # bytes: a hostile value is not sent back whole

# Values that are wrong for every parameter with a meaning of its own. No well-formed number, name or address is here.
HOSTILE = {
    "huge": b"A" * 100_000,
    "huge number": b"9" * 100_000,
    "huge fraction": b"0." + b"1" * 100_000,
    "nan": b"nan",
    "NaN(7)": b"NaN(7)",
    "inf": b"inf",
    "-inf": b"-inf",
    "infinity": b"+INFINITY",
    "1e308": b"1e308",
    "-1e308": b"-1e308",
    "hexadecimal": b"0x10",
    "2^31": b"2147483648",
    "2^32+256": b"4294967552",
    "2^63": b"9223372036854775808",
    "2^64+1": b"18446744073709551617",
    "twenty nines": b"99999999999999999999",
    "negative": b"-1",
    "most negative": b"-9223372036854775808",
    "blank": b" ",
    "parents": b"../../../../../../etc/passwd",
    "windows parents": b"..\\..\\boot.ini",
    "absolute": b"/etc/passwd",
    "file url": b"file:///etc/passwd",
    "percent zero": b"%00",
    "conversions": b"%n%s%x%p%99999d",
    "sql quote": b"' OR 1=1 --",
    "sql statement": b"\"; DROP TABLE tiles; --",
    "markup": b"<script>alert(1)</script>",
    "attribute": b"\" onload=\"alert(1)",
    "end of cdata": b"]]><x>",
    "end of comment": b"--><x>",
    "entity": b"&xxe;&#0;&#x1b;",
    "doctype": b"<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><x>&e;</x>",
    "new line": b"\r\nX-Injected: yes\r\n\r\n<b>body</b>",
    "line feed": b"\nX-Injected: yes",
    "controls": bytes(range(1, 32)) + b"\x7f",
    "not utf-8": b"\xff\xfe\x80",
    "overlong": b"\xc0\xaf\xe0\x80\xaf",
    "surrogate": b"\xed\xa0\x80",
    "noncharacter": b"\xef\xbf\xbe\xef\xbf\xbf",
    "unicode": "é漢字😀\u202e".encode(),
    "brackets": b"[color=red][",
    "separators": b";;,,@@",
    "command": b"`id`$(id)|id",
    "template": b"{x}{dim:color}${7*7}",
}

# The same place in the query said in ways that only a query has: what follows "NAME=".
RAW = {"bad escape": b"%zz%", "plus": b"+++", "equals": b"===", "half": b"%f"}


def has_controls(value):
    return any(byte < 32 or byte == 127 for byte in value)



class Field:
    """One parameter: a good value and the status without it, with an empty one and with a hostile one; `others` are
    exceptions by the name of a case."""

    def __init__(self, name, good, wrong, absent=None, empty=None, **others):
        self.name = name
        self.good = good
        self.wrong = wrong
        self.absent = wrong if absent is None else absent
        self.empty = self.absent if empty is None else empty
        self.others = {key.replace("_", " "): value for key, value in others.items()}

    def status(self, case):
        return self.others.get(case, self.wrong)


WORLD = "-20037508.3,-20037508.3,20037508.3,20037508.3"
BOX = "-10018754.171394628,0,0,10018754.171394622"
DIMENSIONS = [Field("DIM_COLOR", "red", 400, 200), Field("TIME", "2020", 400, 200),
              Field("DIM_PRODUCT", "p1", 400, 200)]
WMS_COMMON = [
    Field("SERVICE", "WMS", 400, 200, 400),
    Field("VERSION", "1.1.1", 400, 200),
    Field("SRS", "EPSG:3857", 400),
    Field("BBOX", BOX, 400),
    Field("WIDTH", "256", 400),
    Field("HEIGHT", "256", 400),
]
MAP_COMMON = [
    Field("REQUEST", "GetMap", 501, 400, 400),
    Field("LAYERS", "dims", 404, 400, 404),
    Field("STYLES", "", 200, 200),
    Field("FORMAT", "image/png", 404, 200, 404),
    Field("TRANSPARENT", "TRUE", 400, 200),
    Field("BGCOLOR", "0xFFFFFF", 400, 200),
    Field("EXCEPTIONS", "XML", 200, 200),
    Field("UNKNOWN", "any", 200, 200),
]
# An age before this server's, as far as texts have an order.
EARLIER = dict.fromkeys(["negative", "most_negative", "huge_fraction", "1e308", "-1e308", "hexadecimal", "2^64+1"], 200)
WMTS_TILE = [
    Field("LAYER", "dims", 400),
    Field("STYLE", "default", 400, 200),
    Field("FORMAT", "image/png", 200, 200),
    Field("TILEMATRIXSET", GRID, 400),
    Field("TILEMATRIX", "2", 400),
    Field("TILEROW", "1", 400),
    Field("TILECOL", "1", 400),
    Field("COLOR", "red", 400, 200),
    Field("TIME", "2020", 400, 200),
    Field("PRODUCT", "p1", 400, 200),
]
NUMBERS_BELOW = {"negative": 200, "most negative": 200}  # an update sequence before ours

QUERIES = {
    "wms 1.1.1 map": ("/", WMS_COMMON + MAP_COMMON + DIMENSIONS),
    "wms 1.3.0 map": ("/", [Field("VERSION", "1.3.0", 400, 400), Field("CRS", "EPSG:3857", 400)]
                      + [f for f in WMS_COMMON if f.name not in ("VERSION", "SRS")] + MAP_COMMON + DIMENSIONS),
    "wms drawn map": ("/", [f for f in WMS_COMMON if f.name != "BBOX"] + MAP_COMMON
                      + [Field("BBOX", "-9000000,100,-20,9000000", 400)]),
    "wms feature info": ("/", WMS_COMMON + [
        Field("REQUEST", "GetFeatureInfo", 501, 400, 400),
        Field("LAYERS", "info", 200),
        Field("QUERY_LAYERS", "info", 404, 400, 404),
        Field("X", "10", 400), Field("Y", "10", 400),
        Field("INFO_FORMAT", "text/plain", 404, 200)]),
    "wms capabilities": ("/", [
        Field("SERVICE", "WMS", 400, 200, 400),
        Field("REQUEST", "GetCapabilities", 501, 400, 400),
        Field("VERSION", "1.3.0", 200),
        Field("UPDATESEQUENCE", "", 400, 200, **EARLIER),
        Field("FORMAT", "text/xml", 200)]),
    "wmts tile": ("/wmts", WMTS_TILE + [
        Field("SERVICE", "WMTS", 400),
        Field("REQUEST", "GetTile", 400), Field("VERSION", "1.0.0", 400, 200)]),
    "wmts feature info": ("/wmts", [f for f in WMTS_TILE if f.name not in ("LAYER", "COLOR", "TIME", "PRODUCT")] + [
        Field("SERVICE", "WMTS", 400),
        Field("REQUEST", "GetFeatureInfo", 400), Field("VERSION", "1.0.0", 400, 200),
        Field("LAYER", "info", 400), Field("I", "3", 400), Field("J", "3", 400),
        Field("INFOFORMAT", "text/plain", 400)]),
    "wmts capabilities": ("/wmts", [
        Field("SERVICE", "WMTS", 400),
        Field("REQUEST", "GetCapabilities", 400),
        Field("ACCEPTVERSIONS", "1.0.0", 400, 200),
        Field("UPDATESEQUENCE", "", 400, 200, **EARLIER),
        Field("SECTIONS", "All", 200), Field("ACCEPTFORMATS", "application/xml", 200)]),
    "ve": ("/ve", [Field("layer", "base@" + GRID, 404, 400, 404), Field("tile", "012", 400, 400, 404)]),
}

# Path services: elements with the status of a hostile one, of a missing one, and of one said twice.
PATHS = {
    "wmts": [("wmts", None), ("1.0.0", 404), ("base", 404), ("default", 404), (GRID, 404), ("2", 404), ("1", 404),
             ("1.png", 404)],
    "wmts dimensions": [("wmts", None), ("1.0.0", 404), ("dims", 404), ("default", 404), ("red", 400), ("2020", 400),
                        ("p1", 400), (GRID, 404), ("2", 404), ("1", 404), ("1.png", 404)],
    "wmts info": [("wmts", None), ("1.0.0", 404), ("info", 404), ("default", 404), (GRID, 404), ("2", 404), ("1", 404),
                  ("1", 404), ("5", 404), ("5.0", 404)],
    "wmts capabilities": [("wmts", None), ("1.0.0", 404), ("WMTSCapabilities.xml", 404)],
    "tms": [("tms", None), ("1.0.0", 404), ("base@" + GRID, (400, 404)), ("2", 404), ("1", 404), ("1.png", 404)],
    "tms layer": [("tms", None), ("1.0.0", 404), ("base@" + GRID, (400, 404))],
    "gmaps": [("gmaps", None), ("base@" + GRID, 400), ("2", 404), ("1", 404), ("1.png", 404)],
    "kml": [("kml", None), ("geo@WGS84", 404), ("1", 404), ("1", 404), ("1.kml", 404)],
    "kml layer": [("kml", None), ("geo@WGS84.kml", 404)],
    "mapguide": [("mg", None), ("S16", 400), ("base", 404), ("R0", 400), ("C0", 400), ("1_1.png", 404)],
    "demo": [("demo", None), ("wms", 404)],
    "demo file": [("demo", None), ("static", 404), ("map.js", 404)],
}


def lives(server):
    assert server.alive(), server.log()
    tile = server.get(f"/wmts/1.0.0/base/default/{GRID}/2/1/1.png")
    assert tile.status == 200, f"{tile.body[:300]}\n{server.log()}"
    assert tile.body == server.site.tile(2, 1, 1)


class BadInputSite(Site):
    origin_path = "/wms?"

    def write_config(self, path=None, extra="", title="integration"):
        (path or self.config).write_text(f"""<?xml version="1.0" encoding="UTF-8"?>
<mapcache>
  <metadata><title>bad input</title></metadata>
  <cache name="base" type="sqlite3"><dbfile>{self.folder}/base.sqlite3</dbfile></cache>
  <cache name="files" type="disk"><base>{self.folder}/files</base></cache>
  <cache name="named" type="disk" layout="template"><template>{self.folder}/named/{{dim:any}}/{{z}}/{{x}}/{{y}}.{{ext}}</template></cache>
  <cache name="products" type="sqlite3">
    <dbfile>{self.folder}/products/{{dim:any}}.sqlite3</dbfile></cache>
  <cache name="bound" type="sqlite3"><dbfile>{self.folder}/bound.sqlite3</dbfile></cache>
  <source name="origin" type="wms">
    <getmap><params><FORMAT>image/png</FORMAT><LAYERS>red</LAYERS></params></getmap>
    <getfeatureinfo><info_formats>text/plain,text/html</info_formats>
      <params><QUERY_LAYERS>red</QUERY_LAYERS></params></getfeatureinfo>
    <http><url>{self.origin_url}</url></http>
  </source>
  <tileset name="base"><cache>base</cache><grid>{GRID}</grid><expires>3600</expires></tileset>
  <tileset name="dims"><cache>files</cache><source>origin</source><grid>{GRID}</grid><format>PNG</format>
    <dimensions>
      <dimension name="color" type="values" default="red"><value>red</value><value>blue</value></dimension>
      <dimension name="time" type="values" default="2020"><value>2020</value><value>2021</value></dimension>
      <dimension name="product" type="regex" default="p1"><regex>^p[0-9]$</regex></dimension>
    </dimensions></tileset>
  <tileset name="info"><cache>files</cache><source>origin</source><grid>{GRID}</grid><format>PNG</format></tileset>
  <tileset name="geo"><cache>files</cache><source>origin</source><grid>WGS84</grid><format>PNG</format></tileset>
  <tileset name="named"><cache>named</cache><source>origin</source><grid>{GRID}</grid><format>PNG</format>
    <metatile>1 1</metatile>
    <dimensions><dimension name="any" type="regex" default="x"><regex>.</regex></dimension></dimensions></tileset>
  <tileset name="products"><cache>products</cache><source>origin</source><grid>{GRID}</grid><format>PNG</format>
    <metatile>1 1</metatile>
    <dimensions><dimension name="any" type="regex" default="x"><regex>.</regex></dimension></dimensions></tileset>
  <tileset name="bound"><cache>bound</cache><source>origin</source><grid>{GRID}</grid><format>PNG</format>
    <metatile>1 1</metatile>
    <dimensions><dimension name="any" type="regex" default="x"><regex>.</regex></dimension></dimensions></tileset>
  <service type="wms" enabled="true"><format allow_client_override="true">PNG</format></service>
  <service type="wmts" enabled="true"/>
  <service type="tms" enabled="true"/>
  <service type="gmaps" enabled="true"/>
  <service type="kml" enabled="true"/>
  <service type="ve" enabled="true"/>
  <service type="mapguide" enabled="true"/>
  <service type="demo" enabled="true"/>
  <lock_dir>{self.folder}</lock_dir>
  <log_level>info</log_level>
  {extra}
</mapcache>
""")


@pytest.fixture(scope="module")
def server(build):
    """One program for all cases: what one of them breaks, the next one meets."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="mapcache-bad-input-"))
    with Origin() as origin:
        site = BadInputSite(folder, origin)
        server = Server(build, site.config, folder)
        server.site, server.origin = site, origin
        try:
            lives(server)
            yield server
        finally:
            try:
                server.stop()
                check_log(server.program.log())
            finally:
                shutil.rmtree(folder, ignore_errors=True)


def check_log(log):
    """Nothing that a client sent makes a line of its own or is read as a format."""
    assert not re.search("^(X-Injected|<b>)", log, re.M)


def check(server, answer, expected, what):
    """What holds for every answer, whatever was asked."""
    allowed = expected if isinstance(expected, tuple) else (expected,)
    assert answer.status in allowed, f"{what}: {answer.status} instead of {expected}: {answer.body[:300]}"
    assert answer.took < patience(SLOWEST), f"{what}: {answer.took:.2f} s"
    media = answer.header("Content-Type", "")
    size = answer.header("Content-Length")
    assert size is None or int(size) == len(answer.body), what
    assert answer.header("X-Injected") is None, what
    if answer.status >= 400:
        assert len(answer.body) <= LARGEST_REPORT, f"{what}: {len(answer.body)} bytes of report"
    folder, port = str(server.site.folder).encode(), b":%d" % server.origin.port
    for secret in (folder, port, b"sqlite", b"SELECT ", b"root:x:", b".sqlite3"):
        assert secret not in answer.body, f"{what}: says {secret}: {answer.body[:300]}"
    if "xml" in media:
        try:
            ElementTree.fromstring(answer.body)
        except ElementTree.ParseError as problem:
            raise AssertionError(f"{what}: {problem}: {answer.body[:400]}") from problem
        assert b"<script>alert" not in answer.body, what
    elif media.startswith("text/html"):
        assert b"<script>alert" not in answer.body and not re.search(rb"[^\\]\" onload=", answer.body), what
    elif media.startswith("text/plain"):
        try:
            answer.body.decode("utf-8")
        except UnicodeDecodeError as problem:
            raise AssertionError(f"{what}: {problem}: {answer.body[:300]}") from problem
        assert not re.search(rb"[\0-\x08\x0b-\x1f\x7f]", answer.body), f"{what}: {answer.body[:300]}"
    else:
        assert answer.status in (200, 302, 412), f"{what}: {media}"


def join(pairs):
    return b"&".join(name.encode() + b"=" + value for name, value in pairs)


def quoted(value):
    return quote_from_bytes(value.encode() if isinstance(value, str) else value, safe="").encode()


def query_cases(fields, field):
    """(what, query, status) of everything that is done to one parameter."""
    def pairs(value):
        return join([(f.name, quoted(f.good) if f is not field else value) for f in fields])

    rest = join([(f.name, quoted(f.good)) for f in fields if f is not field])
    yield "good", pairs(quoted(field.good)), 200
    yield "absent", rest, field.absent
    yield "empty", pairs(b""), field.empty
    yield "no equals sign", rest + b"&" + field.name.encode(), field.empty
    yield "said twice, good first", pairs(quoted(field.good)) + b"&" + field.name.lower().encode() + b"=wrong", 200
    yield "said twice, wrong first", field.name.lower().encode() + b"=:wrong&" + pairs(quoted(field.good)), field.wrong
    yield "good and nul", pairs(quoted(field.good) + b"%00wrong"), 400
    yield "nul", pairs(b"%00wrong"), 400
    yield "nul inside", pairs(b"a%00b"), 400
    if field.good:
        yield "good with tail", pairs(quoted(field.good) + b"x"), field.wrong
        yield "good with blank", pairs(quoted(field.good) + b"%20"), field.wrong
    for case, value in HOSTILE.items():
        yield case, pairs(quoted(value)), 400 if has_controls(value) else field.status(case)
    for case, value in RAW.items():
        yield case, pairs(value), (field.wrong, field.empty)
    yield "raw nul", pairs(b"\0"), (200, 400, 404)  # the query ends there


@pytest.mark.parametrize("service,name", [(service, field.name) for service, (_, fields) in QUERIES.items()
                                          for field in fields])
def test_query_parameter(server, service, name):
    path, fields = QUERIES[service]
    field = next(f for f in fields if f.name == name)
    problems = []
    for case, query, status in query_cases(fields, field):
        try:
            check(server, server.get(path.encode(), query), status, f"{service} {name} {case}")
        except AssertionError as problem:
            problems.append(str(problem))
        if len(problems) > 5 and not server.alive():
            break
    lives(server)
    assert not problems, "\n".join(problems)


def path_cases(elements, at):
    """(what, path, status) of everything that is done to one element of a path."""
    def path(*instead):
        names = [name.encode() for name, _ in elements]
        return b"/" + b"/".join(names[:at] + list(instead) + names[at + 1:])

    good, wrong = elements[at]
    missing = (wrong, 404, 400)
    last = at == len(elements) - 1
    yield "good", path(good.encode()), 200
    yield "missing", path(), (200, *missing) if last else missing  # what is left may name a document
    yield "empty", path(b""), (200, *missing) if last else missing
    yield "twice", path(good.encode(), good.encode()), missing
    for case, value in HOSTILE.items():
        number = last and case == "huge fraction" and good == "1.png"  # "0.111" is the number 0 with an extension
        yield case, path(value), 400 if has_controls(value) else 200 if number else missing if b"/" in value else wrong
    yield "nul", path(b"\0"), (200, *missing)  # the path ends there, at the address of a document or not
    for value in (b".", b"..", b"...", b".png", b"%2e%2e", b"%2f"):
        yield repr(value), path(value), (wrong, 404)


@pytest.mark.parametrize("service,at", [(service, at) for service, elements in PATHS.items()
                                        for at in range(1, len(elements))])
def test_path_element(server, service, at):
    problems = []
    for case, path, status in path_cases(PATHS[service], at):
        try:
            check(server, server.get(path), status, f"{service} element {at} {case}")
        except AssertionError as problem:
            problems.append(str(problem))
    lives(server)
    assert not problems, "\n".join(problems)


MAP = {"SERVICE": "WMS", "VERSION": "1.1.1", "REQUEST": "GetMap", "LAYERS": "base", "STYLES": "", "SRS": "EPSG:3857",
       "BBOX": BOX, "WIDTH": "256", "HEIGHT": "256", "FORMAT": "image/png"}
TILE = {"SERVICE": "WMTS", "REQUEST": "GetTile", "VERSION": "1.0.0", "LAYER": "base", "STYLE": "default",
        "TILEMATRIXSET": GRID, "TILEMATRIX": "2", "TILEROW": "1", "TILECOL": "1", "FORMAT": "image/png"}


def wms(**changes):
    return "/", join([(name, quoted(value)) for name, value in {**MAP, **changes}.items()]).decode()


def wmts(**changes):
    return "/wmts", join([(name, quoted(value)) for name, value in {**TILE, **changes}.items()]).decode()


SINGLE = [
    # boxes (docs/reference/services.md 3.4 rows 4, 6 and 7; WMS 1.3.0 7.3.3.6)
    (wms(BBOX="10,10,0,0"), 400),
    (wms(BBOX="0,0,0,0"), 400),
    (wms(BBOX="0,0,0,10"), 400),
    (wms(BBOX="0,10,10,0"), 400),
    (wms(BBOX="nan,nan,nan,nan"), 400),
    (wms(BBOX="0,0,nan,10"), 400),
    (wms(BBOX="-inf,-inf,inf,inf"), 400),
    (wms(BBOX="1e30,1e30,1e31,1e31"), 400),
    (wms(BBOX="-1e308,-1e308,1e308,1e308"), 400),
    (wms(BBOX="0,0,10"), 400),
    (wms(BBOX="0,0,10,10,20"), 400),
    (wms(BBOX="0,0,10,10,"), 400),
    (wms(BBOX="0,0,,10"), 400),
    (wms(BBOX=",,,"), 400),
    (wms(BBOX=BOX + " "), 400),
    (wms(BBOX=BOX.replace(",", " ")), 400),
    (wms(BBOX="0,0,4.9e-324,4.9e-324"), (200, 400, 404)),
    (wms(BBOX="900000000000,900000000000,900000000001,900000000001"), 200),  # no overlap: an empty map
    (wms(BBOX="-999999999999,-999999999999,999999999999,999999999999"), 200),
    (wms(BBOX="0,0,1e-300,1"), (200, 404)),
    # sizes
    (wms(WIDTH="0"), 400), (wms(HEIGHT="0"), 400), (wms(WIDTH="-256"), 400), (wms(WIDTH="+256"), (200, 400)),
    (wms(WIDTH="2049"), 400), (wms(WIDTH="4294967552"), 400), (wms(WIDTH="256.0"), 400), (wms(WIDTH="2e2"), 400),
    (wms(WIDTH="0256"), (200, 400)), (wms(WIDTH="1", HEIGHT="1"), 200), (wms(WIDTH="1", HEIGHT="2048"), 200),
    (wms(WIDTH="2048", HEIGHT="2048", BBOX=WORLD), 200),
    # layers
    (wms(LAYERS=","), 404), (wms(LAYERS=",,,"), 404), (wms(LAYERS="base,"), 200), (wms(LAYERS=",base"), 200),
    (wms(LAYERS="base,,base"), 200), (wms(LAYERS="base,nope"), 404), (wms(LAYERS="BASE"), 404),
    (wms(LAYERS="base@" + GRID), 404), (wms(LAYERS="dims[color=red]"), 404), (wms(LAYERS="base;base"), 404),
    (wms(LAYERS=",".join(["base"] * 20_000)), 400), (wms(LAYERS="," * 50_000), 404),
    (wms(LAYERS="geo"), 400), (wms(LAYERS="base,geo"), 400), (wms(STYLES="," * 50_000), (200, 400)),
    # codes
    (wms(SRS="EPSG:9999999999999"), 400), (wms(SRS="EPSG:-3857"), 400), (wms(SRS="EPSG:"), 400),
    (wms(SRS="EPSG:4326"), 400),
    (wms(SRS="auto:42001,9001,nan,inf"), 400), (wms(SRS="auto:42001," + "9" * 1000), 400),
    (wms(SRS="urn:ogc:def:crs:EPSG::3857"), (200, 400)),
    (wms(BGCOLOR="0xGGGGGG"), 400), (wms(BGCOLOR="0x1234567"), 400), (wms(BGCOLOR="#ffffff"), 400),
    (wms(BGCOLOR="0x-1-1-"), 400),
    # an exception as a picture, whatever is wrong with the request
    (wms(EXCEPTIONS="INIMAGE", LAYERS="<script>"), 200), (wms(EXCEPTIONS="BLANK", LAYERS="nope"), 200),
    (wms(EXCEPTIONS="INIMAGE", LAYERS="é漢😀\xad" * 200), 200), (wms(EXCEPTIONS="INIMAGE", WIDTH="99999"), 400),
    (wms(EXCEPTIONS="INIMAGE", WIDTH="1", HEIGHT="1", LAYERS="nope"), 200),
    (wms(EXCEPTIONS="BLANK", FORMAT="<x>"), 200),
    # WMTS numbers
    (wmts(TILEROW="4"), 400), (wmts(TILECOL="4"), 400), (wmts(TILEROW="-1"), 400), (wmts(TILEMATRIX="22"), 400),
    (wmts(TILEMATRIX="-1"), 400), (wmts(TILEMATRIX="2147483647"), 400), (wmts(TILEMATRIX=GRID + ":2"), 400),
    (wmts(TILECOL="4294967297"), 400), (wmts(TILECOL="1.0"), 400), (wmts(TILECOL=" 1"), 400),
    (wmts(TILECOL="+1"), (200, 400)),
    # levels outside of the grid (docs/reference/services.md 3.4: the peer dies of them)
    *[((f"/gmaps/base@{GRID}/{z}/0/0.png", ""), 404) for z in (22, 30, 31, 32, 63, 64, -1, 100000, 2000000000, 2**31,
                                                               2**63)],
    *[((f"/tms/1.0.0/geo@WGS84/{z}/0/0.png", ""), 404) for z in (18, 30, 64, -1, 2000000000, 2**64)],
    *[((f"/kml/geo@WGS84/{z}/0/0.kml", ""), 404) for z in (18, 30, 64, -1, 2000000000)],
    *[((f"/mg/S{s}/base/R0/C0/0_0.png", ""), (404, 400)) for s in (22, 90, -1, 2**31, -(2**31), 2**63)],
    (("/mg/S16/base/R2147483647/C2147483647/2147483647_2147483647.png", ""), 404),
    (("/mg/S16/base/R-1/C0/1_1.png", ""), (400, 404)),
    ((f"/tms/1.0.0/base@{GRID}/2/2147483647/2147483647.png", ""), 404),
    # lists of layers
    (("/tms/1.0.0/;/0/0/0.png", ""), 400), (("/gmaps/;/0/0/0.png", ""), 400),
    (("/mg/S18/;/R0/C0/0_0.png", ""), (400, 404)),
    (("/tms/1.0.0/;;;;/0/0/0.png", ""), 400), ((f"/tms/1.0.0/base@{GRID};/0/0/0.png", ""), 200),
    ((f"/tms/1.0.0/;base@{GRID}/0/0/0.png", ""), 200), ((f"/tms/1.0.0/base@{GRID};geo@WGS84/0/0/0.png", ""), 400),
    ((f"/gmaps/{';'.join(['base'] * 10_000)}/0/0/0.png", ""), 400),
    # dimensions in brackets
    *[((f"/tms/1.0.0/{key}/0/0/0.png", ""), (400, 404)) for key in (
        "dims[", "dims[]", "dims[color", "dims[color=", "dims[color=red", "dims[=red]", "dims[nope=red]",
        "dims]color=red[",
        "dims[color=nope]", "dims[color=red]@", "dims[color=red]@nope", "dims[color=red]x", "dims@nope[color=red]",
        f"dims@{GRID}[color=nope]", "dims[[color=red]]", "dims[color=red][color", "dims[color==red]", "[color=red]",
        "@" + GRID, "dims@", "dims@@" + GRID, "dims[color=<script>]", "dims[color=..]x")],
    ((f"/tms/1.0.0/dims[color=blue][time=2021]@{GRID}/0/0/0.png", ""), 200),
    ((f"/tms/1.0.0/{'dims' + '[color=red]' * 9000}/0/0/0.png", ""), (200, 400)),
    # Virtual Earth
    (("/ve", f"layer=base@{GRID}&tile=9"), 400), (("/ve", f"layer=base@{GRID}&tile=" + "0" * 38), 404),
    (("/ve", f"layer=base@{GRID}&tile=" + "3" * 100_000), 404), (("/ve", f"layer=base@{GRID}&tile=-0"), 400),
    (("/ve", "layer=base&tile=01"), 404), (("/ve", "layer=@&tile=01"), 404), (("/ve", "tile=01"), 400),
    # paths
    (("/", ""), 302), (("//", ""), 302), (("/nosuch", ""), 404), (("/../../etc/passwd", ""), 404),
    (("/" + "x/" * 50_000, ""), 404),
    (("/" + "/" * 100_000, ""), 302), (("/demo/../../../etc/passwd", ""), 404), (("/demo/static/../map.js", ""), 404),
    (("/demo/static/", ""), 404), (("/demo/static//etc/passwd", ""), 404), (("/demo/demo", ""), 400),
    (("/wmts", ""), (400, 404)),
    (("//wmts///1.0.0//base/default//" + GRID + "/2/1/1.png", ""), 200),
    # queries
    (("/", "&" * 100_000), 400), (("/", "=" * 100_000), 400), (("/", "a=b&" * 25_000), 400),
    (("/", "%" * 100_000), 400),
    (("/", "SERVICE=WMS&" + "".join(f"p{i}=1&" for i in range(9000)) + "REQUEST=GetCapabilities"), (200, 400)),
]


def label(case):
    (path, query), _ = case
    return (path + "?" + query)[:150] if len(path + query) < 400 else f"{path[:60]}?{query[:60]}... {len(path + query)} bytes"


def test_single_cases(server):
    problems = []
    for case in SINGLE:
        (path, query), status = case
        try:
            check(server, server.get(path.encode(), query.encode()), status, label(case))
        except AssertionError as problem:
            problems.append(str(problem))
    lives(server)
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("name", ["HTTP_HOST", "SERVER_NAME", "SERVER_PORT", "SCRIPT_NAME", "HTTPS", "REQUEST_METHOD",
                                  "HTTP_IF_NONE_MATCH", "HTTP_IF_MATCH", "HTTP_IF_MODIFIED_SINCE", "HTTP_ORIGIN",
                                  "HTTP_IF_UNMODIFIED_SINCE", "HTTP_ACCEPT", "HTTP_X_FORWARDED_HOST",
                                  "HTTP_X_FORWARDED_PROTO", "CONTENT_LENGTH", "CONTENT_TYPE"])
def test_header(server, name):
    """Headers and what else a web server hands over, on a tile and on documents that name the server's own address."""
    allowed = {"REQUEST_METHOD": (405, 400), "HTTP_IF_MATCH": (412,), "HTTP_ACCEPT": (200, 406),
               "HTTP_IF_UNMODIFIED_SINCE": (200,)}.get(name, (200, 400))
    problems = []
    for path, query in ((f"/wmts/1.0.0/base/default/{GRID}/2/1/1.png", b""),
                        ("/", b"SERVICE=WMS&REQUEST=GetCapabilities"),
                        ("/wmts/1.0.0/WMTSCapabilities.xml", b""), ("/demo", b""), ("/demo/wms", b""),
                        ("/tms/1.0.0", b""),
                        ("/kml/geo@WGS84.kml", b"")):
        for case, value in HOSTILE.items():
            try:
                check(server, server.get(path.encode(), query, {name.encode(): value}), allowed,
                      f"{name} {case} {path}")
            except AssertionError as problem:
                problems.append(str(problem))
    lives(server)
    assert not problems, "\n".join(problems[:40])


@pytest.mark.parametrize("layer", ["named", "products", "bound"])
def test_values_become_names_of_files(server, layer):
    """A dimension that takes any text and stands in a file's name, or in SQL: no value leaves its place."""
    values = {case: value for case, value in HOSTILE.items() if len(value) < 200}
    values.update({"dots": b"..", "dot": b".", "same but slash": b"a/b", "same but hash": b"a#b", "long": b"L" * 5000,
                   "longer than a name": b"n" * 300,
                   "huge": HOSTILE["huge"]})
    path = f"/tms/1.0.0/{layer}/0/0/0.png".encode()
    query = join([(name, quoted(value)) for name, value in {**TILE, "LAYER": layer, "TILEMATRIX": "0", "TILEROW": "0",
                                                            "TILECOL": "0"}.items()])
    served = 0
    problems = []
    for case, value in values.items():
        answer = server.get(b"/wmts", query + b"&any=" + quoted(value))
        served += answer.status == 200
        inside = value.replace(b"]", b"").replace(b"/", b"")
        other = server.get(path.replace(layer.encode(), layer.encode() + b"[any=" + inside + b"]"))
        try:
            check(server, answer, (200, 400), f"{layer} {case}")
            check(server, other, (200, 400, 404), f"tms {layer} {case}")
        except AssertionError as problem:
            problems.append(str(problem))
    assert served > len(values) / 2
    lives(server)
    known = {"files", "named", "products", "base.sqlite3", "fcgi.log", "fcgi.sock", "mapcache.xml"}
    strange = [entry.name for entry in server.site.folder.iterdir()
               if entry.name not in known and not entry.name.startswith(("base.sqlite3-", "bound.sqlite3", "mapcache",
                                                                         ".mapcache"))]
    assert not strange
    assert not problems, "\n".join(problems)


def test_parameters_beyond_the_limit_of_the_door(server):
    client = Client(server.address)
    try:
        answer = client.get(b"/wmts", b"x=" + b"y" * 1_000_000)
        assert answer.status in (400, 413, 414, 431), answer.status
    except (EOFError, OSError):
        pass  # or it hangs up
    finally:
        client.close()
    lives(server)


def test_through_a_web_server(apache, folder, build):
    """The same values through HTTP: no header is split, nothing is sent on another connection's account."""
    with Origin() as origin:
        site = BadInputSite(folder, origin)
        web = apache(environment=sanitizer_environment(build), more=f"MapCacheAlias /mc {site.config} quick\n")
        connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=patience(60))
        for case, value in HOSTILE.items():
            word = quote_from_bytes(value[:3000], safe="")
            for path, statuses in (
                    (f"/mc?SERVICE=WMS&REQUEST=GetMap&LAYERS={word}", (400, 404)),
                    (f"/mc/wmts?SERVICE=WMTS&REQUEST={word}", (400,)),
                    (f"/mc/wmts/1.0.0/base/default/{GRID}/2/1/{word}",
                     (404, 403, 400, 200) if case == "huge fraction" else (404, 403, 400)),
                     (f"/mc/gmaps/{word}/0/0/0.png", (400, 404, 403)),
                    (f"/mc/demo/{word}", (404, 403, 400))):
                connection.request("GET", path)
                response = connection.getresponse()
                body = response.read()
                assert response.status in statuses, f"{case} {path[:200]}: {response.status} {body[:200]}"
                assert response.headers["X-Injected"] is None
                assert b"<script>alert" not in body or response.headers["Content-Type"].startswith("text/plain"), path[:200]
                assert str(folder).encode() not in body
        connection.request("GET", f"/mc/wmts/1.0.0/base/default/{GRID}/2/1/1.png")
        assert connection.getresponse().read() == site.tile(2, 1, 1)
        connection.close()
        check_log(web.log())
        assert "AH00051" not in web.log() and "exit signal" not in web.log(), web.log()

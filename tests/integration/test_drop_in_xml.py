"""Configurations that are not well-formed XML and that MapCache reads: the same values, with a warning that names the place. Both programs run as
plain CGI and tell what they have read in the capabilities."""
import html
import re
import subprocess

import pytest
from drop_in import PEER_CGI
from patience import patience

TILESET = """<tileset name="one"><metadata><title>TITLE</title></metadata><source>s</source><cache>c</cache><grid>WGS84</grid><format>PNG</format></tileset>"""
BODY = """<mapcache>
<source name="s" type="wms"><getmap><params><LAYERS>x</LAYERS></params></getmap><http><url>http://127.0.0.1:9/?map=1</url></http></source>
<cache name="c" type="disk"><base>/tmp/none</base></cache>
""" + TILESET + """
<service type="wms" enabled="true"/>
</mapcache>"""
DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>'

# what stands in the file (bytes where it is no UTF-8), and the line of the warning (None: none is due)
FILES = {
    "blank before the declaration": (f"\n {DECLARATION}\n{BODY}", 2),
    "comment before the declaration": (f"<!-- ours -->{DECLARATION}{BODY}", 1),
    "bare & in a title": (BODY.replace("TITLE", "Bed & Breakfast"), 4),
    "bare & without blanks": (BODY.replace("TITLE", "?map=1&layers=b&c=2"), 4),
    "entity of HTML": (BODY.replace("TITLE", "a&nbsp;b"), 4),
    "bare & in an address": (BODY.replace("?map=1", "?map=1&x=2"), 2),
    "Latin-1 in a title": (BODY.replace("TITLE", "Gr\u00f6\u00dfe").encode("latin-1"), 4),
    "Latin-1 in a comment": ((DECLARATION + BODY.replace(TILESET, TILESET + "<!-- \u00e9t\u00e9 -->")).encode("latin-1"), 4),
    "windows-1252": (('<?xml version="1.0" encoding="windows-1252"?>' + BODY.replace("TITLE", "5 \u20ac")).encode("cp1252"), None),
    "an attribute twice": (BODY.replace('<tileset name="one"', '<tileset name="one" name="two"'), 4),
    "text after the root": (BODY + "\nthat is all", 7),
    "empty address": (BODY.replace("http://127.0.0.1:9/?map=1", ""), 2),
}


def read_layers(program, config, environment):
    """The names and titles of the layers, as the program lists them."""
    answer = subprocess.run([program], capture_output=True, stdin=subprocess.DEVNULL, timeout=patience(60), env={
        **environment, "MAPCACHE_CONFIG_FILE": str(config), "REQUEST_METHOD": "GET", "SCRIPT_NAME": "/mc", "PATH_INFO": "/", "SERVER_NAME": "here",
        "SERVER_PORT": "80", "GATEWAY_INTERFACE": "CGI/1.1", "QUERY_STRING": "SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.1.1"}).stdout
    try:
        text = answer.decode()
    except UnicodeDecodeError:
        text = answer.decode("cp1252")  # theirs sends the bytes of the file
    found = re.findall(r"<Layer[^>]*>\s*<Name>([^<]*)</Name>\s*<Title>([^<]*)</Title>", text)
    return [(name, html.unescape(title)) for name, title in found if name == "one"]


@pytest.mark.parametrize("name", FILES)
def test_read_as_theirs(tmp_path, build, modules_environment, name):
    text, line = FILES[name]
    config = tmp_path / "mapcache.xml"
    config.write_bytes(text if isinstance(text, bytes) else text.encode())
    theirs = read_layers(PEER_CGI, config, {})
    assert len(theirs) == 1
    assert read_layers(build / "bin/mapcache.fcgi", config, modules_environment) == theirs
    checked = subprocess.run([build / "bin/mapcache", "check", config], capture_output=True, text=True, timeout=patience(60), env=modules_environment)
    warnings = re.findall(rf"^{re.escape(str(config))}:(\d+):\d+: warning: ", checked.stdout + checked.stderr, re.M)
    assert "error:" not in checked.stdout + checked.stderr
    assert str(line) in warnings if line else not warnings, checked.stdout + checked.stderr

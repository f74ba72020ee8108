"""Types of caches that MapCache has and this build has not: the file loads, all else is served, and what takes their place is said."""
import re

import pytest
from conftest import wait_until
from fastcgi import Server
from test_pmtiles import run

INSTEAD = {"riak": "redis and s3", "couchbase": "memcache and redis", "tokyocabinet": "lmdb and bdb"}


@pytest.mark.parametrize("type_", INSTEAD)
def test_what_takes_its_place_is_said(tmp_path, build, type_):
    path = tmp_path / "mapcache.xml"
    path.write_text(f"""<mapcache>
  <cache name="elsewhere" type="{type_}"><server><host>nowhere</host></server><base>{tmp_path}</base><host>nowhere</host></cache>
  <cache name="files" type="disk"><base>{tmp_path}/files</base></cache><source name="any" type="dummy"/>
  <tileset name="lost"><cache>elsewhere</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>
  <tileset name="kept"><source>any</source><cache>files</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>
  <service type="tms" enabled="true"/><lock_dir>{tmp_path}</lock_dir>
</mapcache>
""")
    wanted = f'caches of type "{type_}" are not part of this build: {INSTEAD[type_]}'
    said = run("check", path, status=2)
    assert wanted in said and re.search("not built: [12]", said), said
    server = Server(build, path, tmp_path)
    try:
        wait_until(lambda: wanted in server.log(), "the log says so")
        lost = server.get("/tms/1.0.0/lost@GoogleMapsCompatible/0/0/0.png")
        assert lost.status == 503 and b"elsewhere" in lost.body, lost.body
        assert server.get("/tms/1.0.0/kept@GoogleMapsCompatible/0/0/0.png").status == 200
    finally:
        server.stop()

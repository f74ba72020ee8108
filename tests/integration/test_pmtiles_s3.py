"""PMTiles archives in S3: moto, which checks signatures by AWS's own library, and our own store for what goes wrong."""
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import urllib.request

import pytest
from conftest import wait_until
from fastcgi import Server
from http_stores import MOTO
from patience import patience
from PIL import Image
from store_server import ACCESS, REGION, SECRET
from test_http_stores import moto, own_store  # noqa: F401
from test_pmtiles import opened, others_archive, plain_tile
from test_pmtiles_http import picture_of

BUILD = pathlib.Path(os.environ.get("MAPCACHE_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build" / "release"))
PUT = """
import sys, boto3
endpoint, access, secret, file, key = sys.argv[1:]
boto3.client("s3", endpoint_url=endpoint, region_name="eu-test-1", aws_access_key_id=access, aws_secret_access_key=secret).upload_file(file, "tiles", key)
"""


def config(folder, cache, tileset="a"):
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache>
  <cache name="far" type="pmtiles">{cache}</cache>
  <tileset name="{tileset}"><cache>far</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>
  <service type="wmts" enabled="true"/><service type="wms" enabled="true"><full_wms>assemble</full_wms></service>
  <service type="ready" enabled="true"/><lock_dir>{folder}</lock_dir><errors>report</errors>
</mapcache>
""")
    return path


def check(path, *options, environment=None):
    return subprocess.run([BUILD / "bin/mapcache", "check", *options, path], capture_output=True, text=True, timeout=patience(60), check=False,
                          env={**os.environ, **(environment or {})})


def tile(server, z, x, y, tileset="a"):
    return server.get(f"/wmts/1.0.0/{tileset}/default/GoogleMapsCompatible/{z}/{y}/{x}.png")


def upload(moto, file, key):  # noqa: F811
    port, access, secret = moto
    done = subprocess.run([sys.executable, "-c", PUT, f"http://127.0.0.1:{port}", access, secret, file, key], capture_output=True, text=True,
                          timeout=patience(60), check=False, env={**os.environ, "PYTHONPATH": str(MOTO), "PYTHONDONTWRITEBYTECODE": "1"})
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("way", ["bucket", "address"])
def test_an_archive_in_a_bucket(tmp_path, build, moto, way):  # noqa: F811
    """By s3://BUCKET/KEY and by the address of the object; the key has a space, a plus and a letter of two bytes."""
    port, access, secret = moto
    others_archive(tmp_path / "o.pmtiles")
    upload(moto, tmp_path / "o.pmtiles", f"{way}/a b+\u00fc.pmtiles")
    where = (f"<url>s3://tiles/{way}/{{tileset}} b+\u00fc.pmtiles</url><endpoint>http://127.0.0.1:{port}/</endpoint>" if way == "bucket"
             else f"<url>http://127.0.0.1:{port}/tiles/{way}/{{tileset}} b+\u00fc.pmtiles</url>")
    path = config(tmp_path, f"{where}<id>{access}</id><secret>{secret}</secret><region>eu-test-1</region>")
    assert check(path, "--connect").returncode == 0
    server = Server(build, path, tmp_path)
    try:
        for place in (0, 0, 0), (8, 200, 3), (5, 1, 2):
            answer = tile(server, *place)
            assert answer.body == plain_tile(*place), (answer.body, server.log())
        shutil.copy(tmp_path / "o.pmtiles", tmp_path / "old")
        others_archive(tmp_path / "o.pmtiles", levels=6, tile=lambda z, x, y: f"new {z}/{x}/{y}".encode() * (20 + x % 5))
        upload(moto, tmp_path / "o.pmtiles", f"{way}/a b+\u00fc.pmtiles")
        assert tile(server, 6, 3, 4).body == b"new 6/3/4" * 23  # If-Match
    finally:
        server.stop()


def test_a_wrong_key_is_refused_by_name(tmp_path, moto):  # noqa: F811
    port, access, _ = moto
    path = config(tmp_path, f"<url>s3://tiles/o.pmtiles</url><endpoint>http://127.0.0.1:{port}</endpoint><id>{access}</id><secret>unfitting</secret><region>eu-test-1</region>")
    done = check(path, "--connect")
    assert done.returncode == 2 and '"far"' in done.stdout and "SignatureDoesNotMatch" in done.stdout and "unfitting" not in done.stdout, done.stdout


@pytest.mark.parametrize("cache, said", [
    ("<url>s3://tiles</url><region>eu-1</region>", "s3://BUCKET/KEY"),
    ("<url>s3://{tileset}/a.pmtiles</url><region>eu-1</region>", "s3://BUCKET/KEY"),
    ("<url>s3://tiles/a.pmtiles</url>", "needs <region>"),
    ("<url>s3://tiles/a.pmtiles</url><region>eu-1</region><id>x</id>", "belong together"),
    ("<file>/tmp/a.pmtiles</file><region>eu-1</region>", "only requests to a <url>"),
    ("<url>https://host/a.pmtiles</url><endpoint>https://other</endpoint>", "<endpoint>"),
    ("<url>https://host/a.pmtiles?v=1</url><region>eu-1</region>", "no query"),
    ("<url>ftp://host/a.pmtiles</url>", "begins with http://, https:// or s3://"),
])
def test_what_cannot_be_reached_is_said(tmp_path, cache, said):
    done = check(config(tmp_path, cache), environment={"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_ENDPOINT_URL": ""})
    assert done.returncode != 0 and said in done.stdout, done.stdout


def put_archive(store, folder, **how):
    """Into our own store, which takes signed requests only: its object is put before it looks at signatures."""
    others_archive(folder / "o.pmtiles", **how)
    store.order("plain/1")
    data = (folder / "o.pmtiles").read_bytes()
    urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{store.port}/b/o.pmtiles", data=data, method="PUT"), timeout=patience(30)).close()


def own_cache(store, more="", seconds=0.05):
    return (f"<url>s3://b/o.pmtiles</url><endpoint>http://127.0.0.1:{store.port}</endpoint><region>{REGION}</region>"
            f"<revalidate>{seconds}</revalidate>{more}")


def test_a_store_that_is_away_is_named_and_comes_back(tmp_path, build, own_store):  # noqa: F811
    store = own_store("s3")
    put_archive(store, tmp_path, levels=4)
    server = Server(build, config(tmp_path, own_cache(store, f"<id>{ACCESS}</id><secret>{SECRET}</secret>")), tmp_path)
    try:
        assert tile(server, 0, 0, 0).body == plain_tile(0, 0, 0)
        store.order("fail/503/100000/SlowDown")
        store.order("log")
        for _ in range(8):
            assert tile(server, 4, 1, 1).status in (502, 503)
        assert "left alone" in server.log() and len(json.loads(store.order("log"))) < 8 * 3
        assert json.loads(server.get("/ready").body)["away"] == [f"http://127.0.0.1:{store.port}"]
        store.order("fail/200/0")
        wait_until(lambda: tile(server, 4, 1, 1).body == plain_tile(4, 1, 1), "the tile again")
        assert json.loads(server.get("/ready").body)["away"] == []
    finally:
        server.stop()


def test_a_moment_of_trouble_is_not_seen(tmp_path, build, own_store):  # noqa: F811
    store = own_store("s3")
    put_archive(store, tmp_path, levels=4)
    server = Server(build, config(tmp_path, own_cache(store, f"<id>{ACCESS}</id><secret>{SECRET}</secret>")), tmp_path)
    try:
        store.order("fail/503/2/SlowDown")
        assert tile(server, 4, 1, 1).body == plain_tile(4, 1, 1)
    finally:
        server.stop()


def test_credentials_that_end_are_renewed(tmp_path, build, own_store):  # noqa: F811
    """Those of the container: the store takes only the last ones that it gave away."""
    store = own_store("s3")
    put_archive(store, tmp_path, levels=4)
    (tmp_path / "home").mkdir()
    environment = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"http://127.0.0.1:{store.port}/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "container token",
                   "HOME": str(tmp_path / "home"), "AWS_ACCESS_KEY_ID": "", "AWS_WEB_IDENTITY_TOKEN_FILE": ""}
    server = Server(build, config(tmp_path, own_cache(store)), tmp_path, environment=environment)
    try:
        assert tile(server, 0, 0, 0).body == plain_tile(0, 0, 0), server.log()
        store.order("token/another")  # what was given away is good no longer
        answer = tile(server, 4, 1, 1)
        assert answer.body == plain_tile(4, 1, 1), (answer.body, server.log())
    finally:
        server.stop()


def middle_of_the_world(level, tiles):
    """A map of so many tiles a side around the place where four quarters of an archive meet."""
    side, half = 2 * 20037508.342789244 / 2**level, tiles / 2
    box = ",".join(str(edge * side) for edge in (-half, -half, half, half))
    return f"SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS=a&STYLES=&SRS=EPSG:3857&FORMAT=image/png&WIDTH={256 * tiles}&HEIGHT={256 * tiles}&BBOX={box}"


def compare_colours(body, level, tiles, cycle):
    drawn, first = Image.open(io.BytesIO(body)).convert("RGB"), 2**level // 2 - tiles // 2
    for x in range(tiles):
        for y in range(tiles):
            wanted = (7 * ((first + x) % cycle), 7 * ((first + y) % cycle), 20 * level)
            assert drawn.getpixel((256 * x + 128, 256 * y + 128)) == pytest.approx(wanted, abs=2), (x, y)


def gets_of(store):
    return [entry for entry in json.loads(store.order("log")) if "range" in entry["headers"]]


def test_a_map_is_asked_for_together(tmp_path, build, own_store):  # noqa: F811
    """Its tiles stand in three places of the archive, far apart: they are asked for at the same time, each on a connection of its own."""
    store = own_store("s3")
    put_archive(store, tmp_path, levels=4, tile=lambda z, x, y: picture_of(z, x, y) + bytes(20_000 if z == 4 else 0))
    server = Server(build, config(tmp_path, own_cache(store, f"<id>{ACCESS}</id><secret>{SECRET}</secret>")), tmp_path)
    try:
        tile(server, 0, 0, 0)
        gets_of(store)
        store.order("delay/300")
        answer = server.get("/", middle_of_the_world(4, 4))
        store.order("delay/0")
        compare_colours(answer.body, 4, 4, 100)
        asked = [entry for entry in gets_of(store) if not entry["headers"]["range"].startswith("bytes=0-")]
        assert len(asked) == 3 and len({entry["connection"] for entry in asked}) == 3, asked
        assert all(entry["headers"]["if-match"].startswith('"') for entry in asked)
    finally:
        server.stop()


def test_many_directories_come_together(tmp_path, build, own_store):  # noqa: F811
    """A map over tiles of several leaf directories asks for those at the same time, each once."""
    store, pictures = own_store("s3"), {}

    def picture(z, x, y):
        place = z, x % 30, y % 30
        if place not in pictures:
            pictures[place] = picture_of(*place) if z == 8 else b"none"
        return pictures[place]

    put_archive(store, tmp_path, levels=8, tile=picture)
    server = Server(build, config(tmp_path, own_cache(store, f"<id>{ACCESS}</id><secret>{SECRET}</secret>", 60)), tmp_path)
    try:
        tile(server, 0, 0, 0)
        gets_of(store)
        store.order("delay/300")
        answer = server.get("/", middle_of_the_world(8, 4))
        store.order("delay/0")
        compare_colours(answer.body, 8, 4, 30)
        asked = gets_of(store)
        header = opened(tmp_path / "o.pmtiles")[0].header()
        first, end = header["leaf_directory_offset"], header["leaf_directory_offset"] + header["leaf_directory_length"]
        leaves = [entry for entry in asked if first <= int(entry["headers"]["range"].removeprefix("bytes=").split("-")[0]) < end]
        assert len(leaves) >= 2 and len({entry["connection"] for entry in leaves}) == len(leaves), asked
        assert len({entry["headers"]["range"] for entry in asked}) == len(asked), asked
    finally:
        server.stop()


def copy_to_store(port, access, secret, folder, *words, environment=None):
    """`mapcache copy` with an environment of its own, in which the store is named."""
    told = {"AWS_ACCESS_KEY_ID": access, "AWS_SECRET_ACCESS_KEY": secret, "AWS_REGION": "eu-test-1", "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{port}",
            "TMPDIR": str(folder), "HOME": str(folder), **(environment or {})}
    done = subprocess.run([BUILD / "bin/mapcache", "copy", *map(str, words)], capture_output=True, text=True, timeout=patience(120), check=False,
                          env={**os.environ, **told}, stdin=subprocess.DEVNULL)
    assert not list(folder.glob("mapcache-copy-*")), "what is made for a store goes"
    assert secret not in done.stdout + done.stderr
    return done


@pytest.mark.parametrize("large", [False, True])
def test_a_copy_into_a_bucket(tmp_path, build, moto, large):  # noqa: F811
    """By one request, and in parts, which moto puts together; served from there."""
    port, access, secret = moto
    content = {"tile": lambda z, x, y: plain_tile(z, x, y) + (os.urandom(300_000) if z == 4 else b"")} if large else {}
    others_archive(tmp_path / "o.pmtiles", levels=4, **content)
    done = copy_to_store(port, access, secret, tmp_path, "--from", tmp_path / "o.pmtiles", "--to", f"s3://tiles/copied {large}.pmtiles", "--verify")
    assert done.returncode == 0, done.stdout + done.stderr
    path = config(tmp_path, f"<url>s3://tiles/copied {large}.pmtiles</url><endpoint>http://127.0.0.1:{port}</endpoint>"
                            f"<id>{access}</id><secret>{secret}</secret><region>eu-test-1</region>")
    server = Server(build, path, tmp_path)
    try:
        for place in (0, 0, 0), (3, 1, 2), (4, 15, 15):
            answer = tile(server, *place)
            assert answer.body.startswith(plain_tile(*place)) and (large and place[0] == 4) == (len(answer.body) > 300_000), server.log()
    finally:
        server.stop()


def test_a_copy_into_a_bucket_that_fails_changes_nothing(tmp_path, own_store):  # noqa: F811
    store = own_store("s3")
    put_archive(store, tmp_path, levels=3)
    there = store.objects()
    words = ["--from", tmp_path / "o.pmtiles", "--to", "s3://b/o.pmtiles"]
    profile = tmp_path / ".aws"
    profile.mkdir()
    (profile / "config").write_text(f"[profile maps]\nregion = {REGION}\nendpoint_url = http://127.0.0.1:{store.port}\n")
    (profile / "credentials").write_text(f"[maps]\naws_access_key_id = {ACCESS}\naws_secret_access_key = {SECRET}\n")
    none = {"AWS_ACCESS_KEY_ID": "", "AWS_REGION": "", "AWS_ENDPOINT_URL_S3": ""}
    done = copy_to_store(store.port, ACCESS, "unfitting", tmp_path, *words, environment={"AWS_REGION": REGION})
    assert done.returncode == 1 and "SignatureDoesNotMatch" in done.stderr, done.stderr
    done = copy_to_store(store.port, "", "unused", tmp_path, *words, environment=none)
    assert done.returncode == 1 and "needs <region>" in done.stderr, done.stderr
    done = copy_to_store(store.port, ACCESS, SECRET, tmp_path, *words, "--checkpoint", tmp_path / "place")
    assert done.returncode == 1 and "--checkpoint" in done.stderr and store.objects() == there, done.stderr
    store.order("log")
    done = copy_to_store(store.port, ACCESS, SECRET, tmp_path, *words, "--dry-run", environment={"AWS_REGION": REGION})
    assert done.returncode == 0 and json.loads(store.order("log")) == [], done.stderr
    done = copy_to_store(store.port, "", "unused", tmp_path, *words[:3], "s3://b/new.pmtiles", environment={**none, "AWS_PROFILE": "maps"})
    assert done.returncode == 0 and store.objects() == sorted([*there, "/b/new.pmtiles"]), done.stderr

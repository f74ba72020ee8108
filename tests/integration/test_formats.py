"""Tilesets with further formats (<formats>): chosen by extension, FORMAT or Accept; made, kept, replaced and removed with the tile of the first format."""
import io
import json
import sqlite3
import subprocess
import threading
import time

import numpy
import pytest
from conftest import GRID
from fastcgi import Client, Server
from patience import patience
from PIL import Image
from test_webp import raster

KINDS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WEBP"}
CHROME = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"
FIREFOX = "image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5"
SERVICES = """<service type="wms" enabled="true"><full_wms>assemble</full_wms><format allow_client_override="true">PNG</format></service>
  <service type="wmts" enabled="true"/><service type="tms" enabled="true"/><service type="gmaps" enabled="true"/><service type="demo" enabled="true"/>
  <service type="ogcapi" enabled="true"/>"""


def tileset(name, formats, first="PNG", cache="tiles", more="<metatile>2 2</metatile>", source="<source>raster</source>"):
    return f'<tileset name="{name}">{source}<cache>{cache}</cache><grid>{GRID}</grid><format>{first}</format>{formats}{more}</tileset>'


def configuration(folder, tilesets, services=SERVICES, more=""):
    text = f"""<mapcache><cache name="tiles" type="sqlite3"><dbfile>{folder}/tiles.sqlite3</dbfile></cache>
      <cache name="disk" type="disk"><base>{folder}/cache</base></cache>{more}
      <format name="offered" type="WEBP"/>
      <format name="either" type="MIXED"><transparent>PNG</transparent><opaque>JPEG</opaque></format>
      <source name="raster" type="gdal"><data>{folder}/raster.tif</data></source>{tilesets}
      {services}<locker type="disk"><directory>{folder}</directory></locker></mapcache>"""
    path = folder / "formats.xml"
    path.write_text(text)
    return path


TILESETS = (tileset("asked", "<formats>WEBP JPEG</formats>") + tileset("rendered", '<formats kept="rendered">WEBP, JPEG</formats>', cache="disk")
            + tileset("never", '<formats kept="never">WEBP</formats>') + tileset("plain", "") + tileset("mixed", "<formats>WEBP</formats>", "either"))


@pytest.fixture(scope="module")
def server(build, shared_folder):
    raster(shared_folder / "raster.tif")
    running = Server(build, configuration(shared_folder, TILESETS), shared_folder)
    yield running
    running.stop()


def ask(server, path, accept=None, query="", **more):
    variables = {f"HTTP_{name.upper()}".encode(): value.encode() for name, value in more.items()}
    if accept is not None:
        variables[b"HTTP_ACCEPT"] = accept.encode("latin-1")
    return server.get(path, query, variables)


def kind(reply):
    """What the bytes are, which the media type has to say."""
    assert reply.status == 200, reply.body[:300]
    image = Image.open(io.BytesIO(reply.body))
    assert KINDS[reply.header("Content-Type")] == image.format
    return image.format


def pixels(reply):
    return numpy.array(Image.open(io.BytesIO(reply.body)).convert("RGB")).astype(int)


def rows(folder, name):
    with sqlite3.connect(folder / "tiles.sqlite3") as database:
        return database.execute("select count(*) from tiles where tileset = ?", (name,)).fetchone()[0]


def command(build, folder, *words, status=0):
    done = subprocess.run([build / "bin/mapcache", *words], capture_output=True, text=True, timeout=patience(60), cwd=folder)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done.stdout + done.stderr


@pytest.mark.parametrize("layer", ("asked", "rendered", "never"))
def test_the_extension_says_the_format(server, layer):
    for address in "/gmaps/{}/1/1/1.{}", "/tms/1.0.0/{}/1/1/0.{}", "/wmts/1.0.0/{}/default/" + GRID + "/1/1/1.{}":
        plain = ask(server, address.format(layer, "png"), CHROME)  # old clients go on getting what they got
        assert kind(plain) == "PNG" and plain.header("Vary") is None
        webp = ask(server, address.format(layer, "webp"), "image/png")
        assert kind(webp) == "WEBP" and webp.header("Vary") is None
        assert numpy.abs(pixels(webp) - pixels(plain)).mean() < 5
        if layer != "never":
            assert kind(ask(server, address.format(layer, "jpg"))) == "JPEG"
        tags = {reply.header("ETag") for reply in (plain, webp)}
        assert len(tags) == 2 and None not in tags
        for reply in plain, webp:
            assert ask(server, address.format(layer, "webp" if reply is webp else "png"), IF_NONE_MATCH=reply.header("ETag")).status == 304


@pytest.mark.parametrize("accept, wanted", (
    (CHROME, "WEBP"), (FIREFOX, "WEBP"), (None, "PNG"), ("", "PNG"), ("*/*", "PNG"), ("image/*", "PNG"), ("image/jpeg", "JPEG"), ("IMAGE/WEBP", "WEBP"),
    ("image/webp;q=0.5, image/jpeg;q=0.9", "JPEG"), ("image/webp;q=0.5,*/*", "PNG"), ("image/webp;q=0, image/*", "PNG"), ("image/png;q=0,image/*", "WEBP"),
    ("image/webp;q=none", "WEBP"), ("image/webp;q=-1,*/*;q=0.1", "PNG"), ("image/webp;q=7,image/jpeg", "WEBP"), ("image/webp;q=0.0009,*/*;q=0.1", "PNG"),
    ('text/html;a="x,image/jpeg";q=1,image/webp', "WEBP"), (",,;;=,image/webp", "WEBP"), ("a" * 8000 + ",image/webp", "WEBP"),
    (",".join(f"x/{i};q=0.{i % 10}" for i in range(900)) + ",image/jpeg", "JPEG")))
def test_accept_chooses(server, accept, wanted):
    reply = ask(server, "/gmaps/asked/1/1/1.auto", accept)
    assert kind(reply) == wanted and reply.header("Vary") == "Accept"
    again = ask(server, "/gmaps/asked/1/1/1.auto", accept, IF_NONE_MATCH=reply.header("ETag"))
    assert again.status == 304 and again.header("Vary") == "Accept" and again.body == b""
    assert kind(ask(server, f"/wmts/1.0.0/asked/default/{GRID}/1/1/1.auto", accept)) == wanted
    by_words = ask(server, "/wmts", accept, f"SERVICE=WMTS&REQUEST=GetTile&VERSION=1.0.0&LAYER=asked&STYLE=&TILEMATRIXSET={GRID}&TILEMATRIX=1&TILEROW=1&TILECOL=1")
    assert kind(by_words) == wanted and by_words.header("Vary") == "Accept"


@pytest.mark.parametrize("accept", ("text/html", "image/gif, image/avif", "image/png;q=0, image/jpeg;q=0, image/webp;q=0", "*/*;q=0", "x" * 8192))
def test_nothing_acceptable_is_406(server, accept):
    reply = ask(server, "/gmaps/asked/1/1/1.auto", accept)
    assert reply.status == 406 and reply.header("Vary") == "Accept"
    assert b"image/png, image/webp, image/jpeg" in reply.body
    assert kind(ask(server, "/gmaps/asked/1/1/1.png", accept)) == "PNG"


def test_a_tag_of_another_format_is_not_this_one(server):
    plain = ask(server, "/gmaps/asked/1/1/1.auto", "image/png")
    assert kind(ask(server, "/gmaps/asked/1/1/1.auto", "image/webp", IF_NONE_MATCH=plain.header("ETag"))) == "WEBP"


def test_words_name_the_format(server):
    query = f"SERVICE=WMTS&REQUEST=GetTile&VERSION=1.0.0&LAYER=asked&STYLE=&TILEMATRIXSET={GRID}&TILEMATRIX=1&TILEROW=1&TILECOL=1&FORMAT="
    for mime, name in KINDS.items():
        reply = ask(server, "/wmts", CHROME, query + mime)
        assert kind(reply) == name and reply.header("Vary") is None
    assert kind(ask(server, "/wmts", CHROME, query + "image/gif")) == "PNG"  # as before: what it does not have is not read
    info = ask(server, "/wmts", "text/html", query.replace("GetTile", "GetFeatureInfo") + "image/png&I=1&J=1&INFOFORMAT=text/plain")
    assert info.status != 406


def test_other_tilesets_are_as_they_were(server):
    for extension in "png", "webp", "auto", "jpg":
        reply = ask(server, f"/gmaps/plain/1/1/1.{extension}", CHROME)
        assert kind(reply) == "PNG" and reply.header("Vary") is None


def test_a_further_format_is_no_layer(server):
    assert ask(server, "/gmaps/asked@webp/1/1/1.webp").status == 400
    assert ask(server, "/", None, "SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS=asked@webp&SRS=EPSG:3857&STYLES=&WIDTH=9&HEIGHT=9&BBOX=0,0,9,9&FORMAT=image/png").status != 200
    assert "asked@" not in ask(server, "/", None, "SERVICE=WMS&REQUEST=GetCapabilities").body.decode()


def test_mixed_has_both_of_its_own_and_more(server):
    assert kind(ask(server, "/gmaps/mixed/1/1/1.png")) == "JPEG"
    assert kind(ask(server, "/gmaps/mixed/1/1/1.webp")) == "WEBP"
    assert kind(ask(server, "/gmaps/mixed/1/1/1.auto", CHROME)) == "WEBP"
    assert kind(ask(server, "/gmaps/mixed/1/1/1.auto", "image/jpeg")) == "JPEG"


def test_transparency_is_white_behind_jpeg(server):
    for layer in "asked", "rendered":
        holed = ask(server, f"/gmaps/{layer}/1/0/0.jpg")  # nothing but holes
        assert kind(holed) == "JPEG" and pixels(holed).min() > 250
        clear = ask(server, f"/gmaps/{layer}/1/0/0.webp")
        assert kind(clear) == "WEBP" and numpy.array(Image.open(io.BytesIO(clear.body)).convert("RGBA"))[..., 3].max() == 0


def test_layers_over_each_other(server):
    for extension, name in ("webp", "WEBP"), ("jpg", "JPEG"), ("png", "PNG"):
        assert kind(ask(server, f"/gmaps/asked;plain/1/1/1.{extension}")) == name
    assert kind(ask(server, "/gmaps/asked;plain/1/1/1.auto", CHROME)) == "WEBP"


def test_maps_of_a_tile_have_the_named_format(server):
    half = 20037508.342789248
    query = f"SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS=asked&SRS=EPSG:3857&STYLES=&WIDTH=256&HEIGHT=256&BBOX=0,{-half},{half},0&FORMAT="
    for mime, name in KINDS.items():
        reply = ask(server, "/", None, query + mime)
        assert kind(reply) == name
    assert ask(server, "/", None, query + "image/webp").body == ask(server, "/gmaps/asked/1/1/1.webp").body


def test_collections_have_the_stored_formats(server):
    address = "/ogcapi/collections/{}/map/tiles/WebMercatorQuad/1/1/1"
    for layer in "asked", "rendered", "never", "mixed":
        kept = ask(server, f"/gmaps/{layer}/1/1/1.webp")
        for reply in ask(server, address.format(layer), query="f=webp"), ask(server, address.format(layer), "image/webp"):
            assert kind(reply) == "WEBP" and (reply.body, reply.header("ETag")) == (kept.body, kept.header("ETag"))
    assert kind(ask(server, address.format("asked"), query="f=png")) == kind(ask(server, address.format("asked"), "*/*")) == "PNG"


def test_documents_name_all_formats(server):
    wmts = ask(server, "/wmts/1.0.0/WMTSCapabilities.xml").body.decode()
    layer = wmts[wmts.index("<ows:Identifier>asked<"):]
    layer = layer[:layer.index("</Layer>")]
    assert [mime for mime in KINDS if f"<Format>{mime}</Format>" in layer] == list(KINDS)
    for extension in "png", "webp", "jpg":
        assert f"{{TileCol}}.{extension}" in layer
    found = json.loads(ask(server, "/gmaps/asked.json").body)
    assert found["tiles"][0].endswith("{y}.png") and len(found["tiles"]) == 1
    assert {mime: url.rsplit(".", 1)[1] for mime, url in found["formats"].items()} == {
        "image/png": "png", "image/webp": "webp", "image/jpeg": "jpg", "*/*": "auto"}
    layers = {layer["name"]: layer for layer in json.loads(ask(server, "/demo/layers.json").body)["layers"]}
    assert layers["asked"]["further"] == ["webp", "jpg", "auto"] and "further" not in layers["plain"] and "asked@webp" not in layers
    assert "formats" not in json.loads(ask(server, "/gmaps/plain.json").body)


def test_what_was_asked_for_is_kept(build, folder):
    raster(folder / "raster.tif")
    server = Server(build, configuration(folder, TILESETS), folder)
    try:
        first = ask(server, "/gmaps/asked/2/1/1.webp")
        assert kind(first) == "WEBP" and rows(folder, "asked") == 4 and rows(folder, "asked@webp") == 1 and rows(folder, "asked@jpg") == 0
        assert ask(server, "/gmaps/asked/2/1/1.webp").body == first.body and rows(folder, "asked@webp") == 1
        ask(server, "/gmaps/never/2/1/1.webp")
        assert rows(folder, "never") == 4 and rows(folder, "never@webp") == 0
        kind(ask(server, "/gmaps/rendered/2/1/1.png"))
        for extension, count in ("png", 4), ("webp", 4), ("jpg", 4):
            assert len(list((folder / "cache").rglob(f"*.{extension}"))) == count
        assert {path.relative_to(folder / "cache").parts[0] for path in (folder / "cache").rglob("*.webp")} == {"rendered@webp"}
    finally:
        server.stop()


def test_a_tile_that_is_drawn_anew_takes_its_formats_with_it(build, folder):
    raster(folder / "raster.tif")
    config = configuration(folder, TILESETS)
    for layer in "asked", "rendered":
        server = Server(build, config, folder)
        try:
            before = ask(server, f"/gmaps/{layer}/1/1/1.webp")
            assert pixels(before).mean() > 20
            data = (folder / "raster.tif").read_bytes()
            black(folder / "raster.tif")
            command(build, folder, "seed", "-c", config, "-t", layer, "-g", GRID, "-z", "0,1", "--force", "-q")
            after = ask(server, f"/gmaps/{layer}/1/1/1.webp")
            assert kind(after) == "WEBP" and pixels(after).max() < 10 and after.header("ETag") != before.header("ETag")
            (folder / "raster.tif").write_bytes(data)
        finally:
            server.stop()


def black(path):
    from osgeo import gdal
    data = gdal.Open(str(path), gdal.GA_Update)
    for band in 1, 2, 3:
        data.GetRasterBand(band).WriteArray(numpy.zeros((512, 512), numpy.uint8))


def test_expired_tiles_take_their_formats_with_them(build, folder):
    raster(folder / "raster.tif")
    server = Server(build, configuration(folder, tileset("aging", "<formats>WEBP</formats>", more="<auto_expire>1</auto_expire>")), folder)
    try:
        assert pixels(ask(server, "/gmaps/aging/1/1/1.webp")).mean() > 20
        black(folder / "raster.tif")
        until = time.monotonic() + patience(60)
        while pixels(ask(server, "/gmaps/aging/1/1/1.webp")).max() >= 10:
            assert time.monotonic() < until, server.log()
            time.sleep(0.05)
    finally:
        server.stop()


def test_expiring_formats_are_those_of_the_picture(build, folder):
    """With kept="rendered" nothing is made of the stored tile, also where the tiles of a metatile are written one after the other."""
    raster(folder / "raster.tif")
    more = "<metatile>4 4</metatile><auto_expire>100000</auto_expire>"
    server = Server(build, configuration(folder, tileset("aging", '<formats kept="rendered">PNG</formats>', "JPEG", "disk", more)), folder)
    try:
        assert kind(ask(server, "/gmaps/aging/2/1/1.jpg")) == "JPEG"
        tiles = {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in (folder / "cache").rglob("*.png")}
        assert len(tiles) == 16
        for y in range(4):
            assert kind(ask(server, f"/gmaps/aging/2/1/{y}.png")) == "PNG"
        assert {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in tiles} == tiles
    finally:
        server.stop()


LARGE = """<grid name="big"><srs>EPSG:3857</srs><units>m</units><extent>-20e6 -20e6 20e6 20e6</extent><size>4096 4096</size>
  <resolutions>9765.625</resolutions></grid>"""


def ask_together(build, folder, more, meanwhile=lambda: None):
    """What two clients get that ask for a further format at the same time, which takes seconds to encode; with what metrics say then."""
    noise = numpy.random.default_rng(1).integers(0, 255, (1024, 1024, 3), numpy.uint8)
    Image.fromarray(noise).save(folder / "noise.png")
    command_line = ("gdal_translate", "-q", "-a_srs", "EPSG:3857", "-a_ullr", "-20e6", "20e6", "20e6", "-20e6")
    subprocess.run([*command_line, folder / "noise.png", folder / "raster.tif"], check=True, timeout=patience(60))
    config = configuration(folder, tileset("large", "<formats>WEBP</formats>", more="<grid>big</grid>" + more),
                           SERVICES + '<service type="metrics" enabled="true"/>', LARGE)
    server = Server(build, config, folder)
    try:
        assert kind(ask(server, "/gmaps/large@big/0/0/0.png")) == "PNG"
        replies = []

        def wait():
            client = Client(server.address)
            replies.append(client.get(b"/gmaps/large@big/0/0/0.webp"))
            client.close()

        waiting = [threading.Thread(target=wait) for _ in range(2)]
        for one in waiting:
            one.start()
        time.sleep(0.5)
        meanwhile()
        for one in waiting:
            one.join(patience(60))
        return replies, ask(server, "/metrics").body.decode()
    finally:
        server.stop()


def test_who_waits_for_a_format_gets_it(build, folder):
    """Also where the tile that it is made of is removed meanwhile, so that it is not kept."""

    def remove():
        with sqlite3.connect(folder / "tiles.sqlite3", timeout=patience(60)) as database:
            database.execute("delete from tiles where tileset = 'large'")

    replies, _ = ask_together(build, folder, "", remove)
    assert [kind(reply) for reply in replies] == ["WEBP", "WEBP"]


def test_expiring_formats_are_made_once(build, folder):
    replies, metrics = ask_together(build, folder, "<auto_expire>100000</auto_expire>")
    assert [kind(reply) for reply in replies] == ["WEBP", "WEBP"] and replies[0].body == replies[1].body
    assert "mapcache_render_waits_total 1\n" in metrics


def test_redirects_say_what_accept_has_chosen(build, folder):
    more = """<cache name="far" type="rest"><url>http://127.0.0.1:9/{tileset}/{z}/{x}/{y}.{ext}</url><use_redirects>true</use_redirects></cache>"""
    raster(folder / "raster.tif")
    server = Server(build, configuration(folder, tileset("asked", "<formats>WEBP</formats>", cache="far"), more=more), folder)
    try:
        plain, chosen = (ask(server, f"/gmaps/asked/1/1/1.{extension}", "image/png") for extension in ("png", "auto"))
        assert (plain.status, plain.header("Vary")) == (302, None)
        assert (chosen.status, chosen.header("Vary"), chosen.header("Location")) == (302, "Accept", plain.header("Location"))
        address = "/ogcapi/collections/asked/map/tiles/WebMercatorQuad/1/1/1"
        assert ask(server, address, query="f=png").header("Location") == plain.header("Location")
        assert ask(server, address, query="f=jpeg").status != 302  # the store has no JPEG
    finally:
        server.stop()


def test_commands_know_the_formats(build, folder):
    raster(folder / "raster.tif")
    config = configuration(folder, TILESETS)
    command(build, folder, "seed", "-c", config, "-t", "asked@webp", "-z", "0,1", "-q")
    assert rows(folder, "asked@webp") == 5 and rows(folder, "asked") == 5
    assert "5" in command(build, folder, "detail", "-c", config, "-t", "asked@webp", "-z", "0,1")
    found = command(build, folder, "compact", "-c", config, "--orphans", "--dry-run")
    assert "asked@webp" not in found
    command(build, folder, "copy", "-c", config, "--from", "tileset:asked@webp", "--to", folder / "webp.mbtiles", "--verify", "-q")
    with sqlite3.connect(folder / "webp.mbtiles") as database:
        assert database.execute("select value from metadata where name = 'format'").fetchone() == ("webp",)
    command(build, folder, "purge", "-c", config, "-t", "asked", "-z", "1,1", "--yes")
    assert rows(folder, "asked") == 1 and rows(folder, "asked@webp") == 1
    command(build, folder, "purge", "-c", config, "-t", "asked", "--extent=-100,-100,100,100", "-z", "0,0", "--yes")
    assert rows(folder, "asked") == 0 and rows(folder, "asked@webp") == 0


def test_tiles_in_another_cache_leave_the_formats_alone(build, folder):
    raster(folder / "raster.tif")
    config = configuration(folder, TILESETS)
    command(build, folder, "seed", "-c", config, "-t", "asked@webp", "-z", "0,1", "-q")
    command(build, folder, "seed", "-c", config, "-t", "asked", "--cache", "disk", "-z", "0,1", "-q")
    assert rows(folder, "asked@webp") == 5 and len(list((folder / "cache").rglob("*.png"))) == 5


def test_seeding_a_format_of_a_tileset_that_is_only_read(build, folder):
    """What it is made of is seeded, too, and not taken for empty."""
    raster(folder / "raster.tif")
    config = configuration(folder, tileset("asked", "<formats>WEBP</formats>", more="<read-only>true</read-only>"))
    command(build, folder, "seed", "-c", config, "-t", "asked@webp", "-z", "1,1", "-q")
    assert rows(folder, "asked@webp") == 4 and rows(folder, "asked") == 4


def test_who_may_not_write_serves_all_the_same(build, folder):
    raster(folder / "raster.tif")
    config = configuration(folder, tileset("asked", "<formats>WEBP JPEG</formats>"))
    command(build, folder, "seed", "-c", config, "-t", "asked@webp", "-z", "0,1", "-q")
    config = configuration(folder, tileset("asked", "<formats>WEBP JPEG</formats>", more="<read-only>true</read-only>"))
    server = Server(build, config, folder)
    try:
        with sqlite3.connect(folder / "tiles.sqlite3") as database:
            stored = database.execute("select data from tiles where tileset = 'asked@webp' and z = 0").fetchone()[0]
        assert ask(server, "/gmaps/asked/0/0/0.webp").body == stored
        made = ask(server, "/gmaps/asked/0/0/0.jpg")
        assert kind(made) == "JPEG" and rows(folder, "asked@jpg") == 0
        assert ask(server, "/gmaps/asked/0/0/0.jpg", IF_NONE_MATCH=made.header("ETag")).status == 304
    finally:
        server.stop()


@pytest.mark.parametrize("cache, refused", (
    ('<cache name="one" type="mbtiles"><dbfile>{folder}/one.mbtiles</dbfile></cache>', True),
    ('<cache name="one" type="mbtiles"><dbfile>{folder}/{{tileset}}.mbtiles</dbfile></cache>', False),
    ('<cache name="one" type="pmtiles"><file>{folder}/one.pmtiles</file></cache>', True),
    ('<cache name="one" type="disk" layout="template"><template>{folder}/{{z}}/{{x}}/{{y}}</template></cache>', True),
    ('<cache name="one" type="disk" layout="template"><template>{folder}/{{z}}/{{x}}/{{y}}.{{ext}}</template></cache>', False)))
def test_stores_that_tell_no_formats_are_refused(build, folder, cache, refused):
    raster(folder / "raster.tif")
    config = configuration(folder, tileset("roads", "<formats>WEBP</formats>", cache="one"), more=cache.format(folder=folder))
    said = command(build, folder, "check", config, status=1 if refused else 2)  # 2: it has caches that are not used
    assert ("roads@webp" in said) == refused and ("errors: 0" in said) != refused
    config = configuration(folder, tileset("roads", '<formats kept="never">WEBP</formats>', cache="one"), more=cache.format(folder=folder))
    assert "errors: 0" in command(build, folder, "check", config, status=2)


@pytest.mark.parametrize("formats, first, message", (
    ("<formats>WEBP GIF</formats>", "PNG", '"GIF"'), ("<formats>PNG8</formats>", "PNG", ".png"), ("<formats>WEBP WEBP</formats>", "PNG", ".webp"),
    ("<formats>JPEG</formats>", "either", ".jpg"), ("<formats>mixed</formats>", "PNG", "neither PNG nor JPEG nor WEBP"), ('<formats kept="often">WEBP</formats>', "PNG", "often"),
    ("<formats>WEBP</formats>", "vector", "vector tiles have one format"), ("<formats>WEBP</formats>", "raw", "RAW")))
def test_what_cannot_be(build, folder, formats, first, message):
    raster(folder / "raster.tif")
    more = '<format name="vector" type="MVT"/><format name="raw" type="RAW"><extension>bin</extension></format>'
    said = command(build, folder, "check", configuration(folder, tileset("roads", formats, first, more=""), more=more), status=1)
    line = next(line for line in said.splitlines() if message in line)
    assert ":6:" in line or "formats.xml:" in line, said


def test_a_repeated_format_is_read_as_before(build, folder):
    """Of several <format> elements the first one counts, as in MapCache."""
    raster(folder / "raster.tif")
    config = configuration(folder, tileset("two", "<format>WEBP</format>"))
    server = Server(build, config, folder)
    try:
        assert kind(ask(server, "/gmaps/two/1/1/1.webp", CHROME)) == "PNG"
    finally:
        server.stop()


def test_strict_services(build, folder):
    raster(folder / "raster.tif")
    strict = "".join(f'<service type="{name}" enabled="true"><strict>true</strict></service>' for name in ("wmts", "tms"))
    server = Server(build, configuration(folder, TILESETS, strict), folder)
    try:
        for extension, name in ("png", "PNG"), ("webp", "WEBP"), ("jpg", "JPEG"), ("auto", "WEBP"):
            assert kind(ask(server, f"/tms/1.0.0/asked/1/1/0.{extension}", CHROME)) == name
            assert kind(ask(server, f"/wmts/1.0.0/asked/default/{GRID}/1/1/1.{extension}", CHROME)) == name
        for extension in "gif", "auto":
            assert ask(server, f"/tms/1.0.0/plain/1/1/0.{extension}").status == 404
        query = f"SERVICE=WMTS&REQUEST=GetTile&VERSION=1.0.0&LAYER=asked&STYLE=default&TILEMATRIXSET={GRID}&TILEMATRIX=1&TILEROW=1&TILECOL=1"
        assert kind(ask(server, "/wmts", None, query + "&FORMAT=image/webp")) == "WEBP"
        assert ask(server, "/wmts", None, query + "&FORMAT=image/gif").status == 400
    finally:
        server.stop()

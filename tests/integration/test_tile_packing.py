"""Vector tiles that are stored as brotli or zstd (<encoding>): in each kind of store, to each kind of client, and copied to tilesets that pack otherwise."""
import gzip
import sqlite3
import subprocess

import compressors
import pytest
from conftest import GRID
from patience import patience
from pypi_pmtiles import tile as pmtiles_tile
from test_vector_tiles import MIME, features, shapefile_source, write_shapefile

CODINGS = {"gzip": "gzip", "brotli": "br", "zstd": "zstd"}
EXPAND = {"gzip": gzip.decompress, "br": compressors.expand_brotli, "zstd": compressors.expand_zstd, None: bytes}
CACHES = {"disk": "<base>{folder}/cache</base>", "sqlite3": "<dbfile>{folder}/tiles.sqlite3</dbfile>", "mbtiles": "<dbfile>{folder}/{{tileset}}.mbtiles</dbfile>",
          "pmtiles": "<file>{folder}/{{tileset}}.pmtiles</file>", "lmdb": "<base>{folder}/lmdb</base>"}


def write_config(folder):
    caches = "".join(f'<cache name="{name}" type="{name}">{inside.format(folder=folder)}</cache>' for name, inside in CACHES.items())
    formats = "".join(f'<format name="{name}-{level}" type="MVT"><encoding>{name}</encoding><compression>{level}</compression></format>'
                      for name in CODINGS for level in ("fast", "good", "best"))
    tilesets = "".join(f'<tileset name="{form}-{cache}">{source}<cache>{cache}</cache><grid>{GRID}</grid><format>{form}-fast</format></tileset>'
                       for source in ("<source>shapes</source>",) for form in CODINGS for cache in CACHES)
    tilesets += "".join(f'<tileset name="{form}-{level}"><source>shapes</source><cache>disk</cache><grid>{GRID}</grid><format>{form}-{level}</format></tileset>'
                        for form in CODINGS for level in ("good", "best"))
    path = folder / "packing.xml"
    path.write_text(f"""<mapcache>{caches}{formats}{shapefile_source(folder, "shapes", ["areas", "lines", "points"])}{tilesets}
      <service type="gmaps" enabled="true"/><service type="wmts" enabled="true"/><locker type="disk"><directory>{folder}</directory></locker></mapcache>""")
    return path


@pytest.fixture(scope="module")
def config(shared_folder):
    shared_folder.chmod(0o777)
    for name, rows in features().items():
        write_shapefile(shared_folder, name, rows)
    return write_config(shared_folder)


@pytest.fixture(scope="module")
def web(config, shared_apache):
    return shared_apache("packing", f"MapCacheAlias /mc {config}\n")


def tile(web, layer, accepted=None, place=(2, 1, 1), method="GET", **headers):
    more = {name.replace("_", "-"): value for name, value in headers.items()}
    if accepted is not None:
        more["Accept-Encoding"] = accepted
    return web.get(f"/mc/gmaps/{layer}/{'/'.join(map(str, place))}.mvt", more, method=method)


def content(reply):
    assert reply.status == 200, (reply.status, reply.body[:300])
    assert reply.headers["Content-Type"] == MIME and reply.headers["Vary"] == "Accept-Encoding"
    return EXPAND[reply.headers["Content-Encoding"]](reply.body)


@pytest.fixture(scope="module")
def plain(web):
    found = content(tile(web, "gzip-disk"))
    assert len(found) > 1000
    return found


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("form", ("brotli", "zstd"))
def test_stores_hand_out_what_they_have(web, plain, form, cache):
    coding = CODINGS[form]
    first, again = tile(web, f"{form}-{cache}", "gzip, br, zstd"), tile(web, f"{form}-{cache}", "gzip, br, zstd")
    for reply in first, again:
        assert reply.headers["Content-Encoding"] == coding and content(reply) == plain
    assert again.body == first.body and again.headers["ETag"] == first.headers["ETag"]
    packed = tile(web, f"{form}-{cache}", "gzip")
    assert packed.headers["Content-Encoding"] == "gzip" and content(packed) == plain
    assert content(tile(web, f"{form}-{cache}")) == plain
    empty = tile(web, f"{form}-{cache}", "gzip, br, zstd", (10, 0, 0))
    assert content(empty) == b""


@pytest.mark.parametrize("level", ("good", "best"))
@pytest.mark.parametrize("form", CODINGS)
def test_levels(web, plain, form, level):
    small = tile(web, f"{form}-{level}", CODINGS[form])
    assert content(small) == plain and len(small.body) <= len(tile(web, f"{form}-disk", CODINGS[form]).body)


MATRIX = (("gzip, br, zstd", "own"), ("*", "own"), ("gzip", "gzip"), ("x-gzip", "gzip"), ("gzip, *;q=0", "gzip"), ("deflate", None), (None, None), ("", None), ("identity", None),
          ("br;q=0, zstd;q=0, *", "gzip"), ("br;q=0.001, zstd;q=0.001", "own"), ("br;q=0.0001, zstd;q=0.0001", None), ("br;q=no, zstd;q=no", "own"), ("BR;Q=1, ZSTD ; q = 1", "own"),
          ("identity;q=0, gzip", "gzip"), ("br;q=0, zstd;q=0, gzip;q=0", None), ("a," * 3900 + "gzip", "gzip"), ("x" * 8000, None), (";;,,=;q=,gzip", "gzip"), ("gzip;q=-1", None))


@pytest.mark.parametrize("door", ("apache", "fcgi"))
@pytest.mark.parametrize("form", ("brotli", "zstd"))
def test_codings(web, config, plain, form, door, request):
    if door == "fcgi":
        program = request.getfixturevalue("fcgi")(environment={"MAPCACHE_CONFIG_FILE": str(config)})
        web = request.getfixturevalue("nginx")(program.address)
    own, layer, tags = CODINGS[form], f"{form}-disk", {}
    for accepted, wanted in MATRIX:
        wanted = own if wanted == "own" else wanted
        reply = tile(web, layer, accepted)
        assert reply.headers["Content-Encoding"] == wanted, (accepted, reply.headers["Content-Encoding"])
        assert content(reply) == plain
        assert tags.setdefault(wanted, reply.headers["ETag"]) == reply.headers["ETag"]
        again = tile(web, layer, accepted, If_None_Match=reply.headers["ETag"])
        assert again.status == 304 and again.body == b"" and again.headers["Vary"] == "Accept-Encoding" and again.headers["ETag"] == reply.headers["ETag"]
        head = tile(web, layer, accepted, method="HEAD")
        assert head.status == 200 and head.headers["ETag"] == reply.headers["ETag"] and head.headers["Content-Length"] == str(len(reply.body))
        for other, tag in tags.items():
            if other != wanted:
                assert tile(web, layer, accepted, If_None_Match=tag).status == 200
                assert tile(web, layer, accepted, If_Match=tag).status == 412
    assert len(tags) == len(set(tags.values())) == 3


@pytest.mark.parametrize("accepted", ("identity;q=0", "*;q=0", "deflate, identity;q=0", "gzip;q=0, br;q=0, zstd;q=0, identity;q=0"))
@pytest.mark.parametrize("form", CODINGS)
def test_clients_that_take_nothing_get_406(web, form, accepted):
    reply = tile(web, f"{form}-disk", accepted)
    assert reply.status == 406 and CODINGS[form].encode() in reply.body
    assert tile(web, f"{form}-disk").status == 200


def test_parts(web, plain):
    """Ranges are of the form that the client gets (RFC 9110, 14.2): a web server makes them."""
    whole = tile(web, "zstd-disk", "zstd")
    part = tile(web, "zstd-disk", "zstd", Range="bytes=10-19")
    assert part.status == 206 and part.body == whole.body[10:20] and part.headers["Content-Encoding"] == "zstd"
    gone = tile(web, "zstd-disk", "zstd", Range="bytes=10-19", If_Range=tile(web, "zstd-disk").headers["ETag"])
    assert gone.status == 200 and gone.body == whole.body


def mapcache(build, *words, status=0):
    done = subprocess.run([build / "bin/mapcache", *map(str, words)], capture_output=True, text=True, timeout=patience(60))
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_archives_say_their_compression(build, config, shared_folder):
    for form, code in ("gzip", pmtiles_tile.Compression.GZIP), ("brotli", pmtiles_tile.Compression.BROTLI), ("zstd", pmtiles_tile.Compression.ZSTD):
        mapcache(build, "seed", "-c", config, "-t", f"{form}-pmtiles", "-z", "0,2", "-q")
        with open(shared_folder / f"{form}-pmtiles.pmtiles", "rb") as file:
            header = pmtiles_tile.deserialize_header(file.read(127))
        assert header["tile_compression"] == code and header["tile_type"] == pmtiles_tile.TileType.MVT


@pytest.mark.parametrize("form", ("brotli", "zstd"))
def test_copies_are_packed_as_their_target(build, config, shared_folder, form):
    """A file for other programs has gzip, which is all that MBTiles 1.3 knows."""
    mapcache(build, "seed", "-c", config, "-t", f"{form}-disk", "-z", "0,2", "-q")
    target = shared_folder / f"copy-{form}.mbtiles"
    mapcache(build, "copy", "-c", config, "--from", f"tileset:{form}-disk", "--to", target, "-z", "0,2", "--verify", "-q")
    with sqlite3.connect(target) as database:
        tiles = [row[0] for row in database.execute("select tile_data from tiles")]
    assert len(tiles) == 21 and all(data[:2] == b"\x1f\x8b" for data in tiles)
    mapcache(build, "copy", "-c", config, "--from", "tileset:gzip-mbtiles", "--to", f"tileset:{form}-sqlite3", "--verify", "--force", "-q")


def test_check_warns_of_mbtiles(build, config):
    said = mapcache(build, "check", config, status=2)
    assert 'tileset "brotli-mbtiles"' in said and 'tileset "zstd-mbtiles"' in said and 'tileset "gzip-mbtiles"' not in said


def test_a_packing_that_is_none(build, folder):
    path = folder / "wrong.xml"
    path.write_text('<mapcache>\n<format name="f" type="MVT">\n<encoding>lzma</encoding></format></mapcache>')
    said = mapcache(build, "check", path, status=1)
    assert "wrong.xml:3:" in said and "gzip, brotli, zstd" in said

"""PMTiles archives whose directories and tiles are compressed with Brotli or Zstandard."""
import gzip
import types

import compressors
import pytest
from fastcgi import Server
from pypi_pmtiles import tile as pmtiles_tile, writer as pmtiles_writer
from test_geopackage import picture
from test_pmtiles import config, others_archive, plain_tile, run

KINDS = {"brotli": (pmtiles_tile.Compression.BROTLI, compressors.brotli), "zstd": (pmtiles_tile.Compression.ZSTD, compressors.zstd)}


def compressed_archive(path, kind, monkeypatch, levels, type_):
    """PyPI's writer, which knows gzip only, with another compression in its place; the header says so (byte 97)."""
    code, compress = KINDS[kind]
    other = types.SimpleNamespace(compress=lambda data, mtime=0: compress(data))
    with monkeypatch.context() as patch:
        patch.setattr(pmtiles_tile, "gzip", other)
        patch.setattr(pmtiles_writer, "gzip", other)
        others_archive(path, levels, code, type_, tile=lambda z, x, y: compress(plain_tile(z, x, y)))
    with open(path, "r+b") as file:
        file.seek(97)
        file.write(bytes([code.value]))


def others_config(folder, format_="PNG"):
    path = config(folder, '<tileset name="others"><cache>archive</cache><grid>GoogleMapsCompatible</grid><format>any</format></tileset>')
    kind = '<format name="any" type="MVT"/>' if format_ == "MVT" else '<format name="any" type="PNG"/>'
    path.write_text(path.read_text().replace("<mapcache>", "<mapcache>" + kind))
    return path


def tile(server, z, x, y, extension, accepted=None):
    variables = None if accepted is None else {b"HTTP_ACCEPT_ENCODING": accepted.encode()}
    return server.get(f"/wmts/1.0.0/others/default/GoogleMapsCompatible/{z}/{y}/{x}.{extension}", variables=variables)


@pytest.mark.parametrize("kind", KINDS)
def test_pictures_come_out_plain(tmp_path, build, monkeypatch, kind):
    """Through leaf directories."""
    compressed_archive(tmp_path / "others.pmtiles", kind, monkeypatch, 8, pmtiles_tile.TileType.PNG)
    with open(tmp_path / "others.pmtiles", "rb") as file:
        assert pmtiles_tile.deserialize_header(file.read(127))["leaf_directory_length"] > 0
    server = Server(build, others_config(tmp_path), tmp_path)
    try:
        for place in (0, 0, 0), (5, 3, 30), (8, 255, 0), (8, 100, 7):
            answer = tile(server, *place, "png", "br, zstd, gzip")
            assert answer.status == 200 and answer.body == plain_tile(*place) and answer.header("Content-Encoding") is None, server.log()
    finally:
        server.stop()


@pytest.mark.parametrize("kind", KINDS)
def test_vector_tiles_go_out_as_they_are_stored(tmp_path, build, monkeypatch, kind):
    """To clients that undo it; as gzip or plain to all others."""
    compressed_archive(tmp_path / "others.pmtiles", kind, monkeypatch, 3, pmtiles_tile.TileType.MVT)
    coding = {"brotli": "br", "zstd": "zstd"}[kind]
    stored = KINDS[kind][1](plain_tile(3, 5, 2))
    server = Server(build, others_config(tmp_path, "MVT"), tmp_path)
    try:
        through = tile(server, 3, 5, 2, "pbf", "gzip, br, zstd")
        assert through.header("Content-Encoding") == coding and through.body == stored, (through.body, server.log())
        packed = tile(server, 3, 5, 2, "pbf", f"gzip, {coding};q=0")
        assert packed.header("Content-Encoding") == "gzip" and gzip.decompress(packed.body) == plain_tile(3, 5, 2)
        plain = tile(server, 3, 5, 2, "pbf")
        assert plain.header("Content-Encoding") is None and plain.body == plain_tile(3, 5, 2)
        assert len({answer.header("ETag") for answer in (through, packed, plain)}) == 3
        assert all(answer.header("Vary") == "Accept-Encoding" for answer in (through, packed, plain))
    finally:
        server.stop()


def test_brotli_of_another_window_becomes_gzip(tmp_path, build, monkeypatch):
    """Nobody could tell such a stream from a plain tile by its bytes."""
    monkeypatch.setitem(KINDS, "brotli", (pmtiles_tile.Compression.BROTLI, lambda data: compressors.brotli(data, window=18)))
    compressed_archive(tmp_path / "others.pmtiles", "brotli", monkeypatch, 3, pmtiles_tile.TileType.MVT)
    server = Server(build, others_config(tmp_path, "MVT"), tmp_path)
    try:
        packed = tile(server, 3, 5, 2, "pbf", "gzip, br")
        assert packed.header("Content-Encoding") == "gzip" and gzip.decompress(packed.body) == plain_tile(3, 5, 2), (packed.body, server.log())
    finally:
        server.stop()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_added_to_such_an_archive_is_packed_as_its_tiles(tmp_path, build, monkeypatch, kind):
    """The tiles that were there stay byte for byte as they are."""
    picture(tmp_path / "world.tif")
    compressed_archive(tmp_path / "world.pmtiles", kind, monkeypatch, 2, pmtiles_tile.TileType.PNG)
    run("seed", "-c", config(tmp_path), "-t", "world", "-z", "3,3", "--quiet")
    with open(tmp_path / "world.pmtiles", "rb") as file:
        header = pmtiles_tile.deserialize_header(file.read(127))
    assert header["tile_compression"] == KINDS[kind][0] and header["addressed_tiles_count"] == 1 + 4 + 16 + 64
    assert KINDS[kind][1](plain_tile(2, 1, 3)) in (tmp_path / "world.pmtiles").read_bytes()
    server = Server(build, config(tmp_path), tmp_path)
    try:
        old = server.get("/wmts/1.0.0/world/default/GoogleMapsCompatible/2/3/1.png")
        new = server.get("/wmts/1.0.0/world/default/GoogleMapsCompatible/3/3/1.png")
        assert old.body == plain_tile(2, 1, 3) and new.status == 200 and new.body.startswith(b"\x89PNG") and new.header("Content-Encoding") is None
    finally:
        server.stop()


def test_damaged_streams_are_errors(tmp_path, build, monkeypatch):
    """A directory whose stream is cut off, and one that says it is Zstandard and is Brotli."""
    compressed_archive(tmp_path / "others.pmtiles", "zstd", monkeypatch, 3, pmtiles_tile.TileType.PNG)
    data = bytearray((tmp_path / "others.pmtiles").read_bytes())
    header = pmtiles_tile.deserialize_header(bytes(data[:127]))
    end = header["root_offset"] + header["root_length"]
    for change in "end", "kind":
        wrong = bytearray(data)
        if change == "end":
            wrong[end - 20:end] = bytes(20)
        else:
            wrong[97] = pmtiles_tile.Compression.BROTLI.value
        (tmp_path / "others.pmtiles").write_bytes(wrong)
        server = Server(build, others_config(tmp_path), tmp_path)
        try:
            assert tile(server, 3, 1, 1, "png").status == 500 and server.alive()
            assert "broken or truncated" in server.log()
        finally:
            server.stop()

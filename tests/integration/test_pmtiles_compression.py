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
def test_vector_tiles_become_gzip(tmp_path, build, monkeypatch, kind):
    """And plain for clients that do not undo it."""
    compressed_archive(tmp_path / "others.pmtiles", kind, monkeypatch, 3, pmtiles_tile.TileType.MVT)
    server = Server(build, others_config(tmp_path, "MVT"), tmp_path)
    try:
        packed = tile(server, 3, 5, 2, "pbf", "gzip, br")
        assert packed.header("Content-Encoding") == "gzip" and gzip.decompress(packed.body) == plain_tile(3, 5, 2), (packed.body, server.log())
        plain = tile(server, 3, 5, 2, "pbf")
        assert plain.header("Content-Encoding") is None and plain.body == plain_tile(3, 5, 2)
    finally:
        server.stop()


@pytest.mark.parametrize("kind", KINDS)
def test_adding_to_such_an_archive_is_refused(tmp_path, monkeypatch, kind):
    """With the compression's name; the archive stays as it is."""
    picture(tmp_path / "world.tif")
    compressed_archive(tmp_path / "world.pmtiles", kind, monkeypatch, 2, pmtiles_tile.TileType.PNG)
    before = (tmp_path / "world.pmtiles").read_bytes()
    assert kind in run("seed", "-c", config(tmp_path), "-t", "world", "-z", "3,3", "--quiet", status=1)
    assert (tmp_path / "world.pmtiles").read_bytes() == before


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

"""PMTiles caches: what the reader of PMTiles' own makers finds in them is what was drawn, and the other way round."""
import gzip
import json
import os
import pathlib
import random
import re
import sqlite3
import subprocess
import time
import zlib

import pytest
from fastcgi import Server
from osgeo import ogr, osr
from patience import patience
from pypi_pmtiles import reader as pmtiles_reader, tile as pmtiles_tile, writer as pmtiles_writer
from small_disk import small_disk
from test_geopackage import picture

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("MAPCACHE_BUILD", ROOT / "build" / "release"))
PROGRAM = str(BUILD / "bin" / "mapcache")


def config(folder, tilesets="", format_="PNG"):
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache>
  <source name="world" type="gdal"><data>{folder}/world.tif</data></source>
  <cache name="archive" type="pmtiles"><file>{folder}/{{tileset}}.pmtiles</file></cache>
  <cache name="disk" type="disk"><base>{folder}/disk</base></cache>
  <tileset name="world"><source>world</source><cache>archive</cache><grid>GoogleMapsCompatible</grid><format>{format_}</format><metatile>4 4</metatile></tileset>
  <tileset name="files"><source>world</source><cache>disk</cache><grid>GoogleMapsCompatible</grid><format>{format_}</format><metatile>4 4</metatile></tileset>
  {tilesets}
  <service type="wmts" enabled="true"/><service type="tms" enabled="true"/>
  <lock_dir>{folder}</lock_dir>
</mapcache>
""")
    return path


def run(*arguments, status=0):
    result = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=patience(200))
    assert result.returncode == status, result.stdout + result.stderr
    return result.stdout + result.stderr


def opened(path):
    file = open(path, "rb")
    source = pmtiles_reader.MmapSource(file)
    return pmtiles_reader.Reader(source), source


def disk_tile(folder, z, x, y):
    """Rows from the north."""
    row = 2**z - 1 - y
    name = f"{z:02}/{x // 1000000:03}/{x // 1000 % 1000:03}/{x % 1000:03}/{row // 1000000:03}/{row // 1000 % 1000:03}/{row % 1000:03}.png"
    return (folder / "disk/files/GoogleMapsCompatible" / name).read_bytes()


def test_a_seed_makes_an_archive(tmp_path):
    picture(tmp_path / "world.tif")
    path = config(tmp_path)
    for tileset in "world", "files":
        run("seed", "-c", path, "-t", tileset, "-z", "0,4", "-n", "2", "--quiet")
    reader, source = opened(tmp_path / "world.pmtiles")
    header, metadata = reader.header(), reader.metadata()
    assert header["addressed_tiles_count"] == 341 and header["clustered"] and header["version"] == 3
    assert (header["min_zoom"], header["max_zoom"]) == (0, 4)
    assert header["tile_type"] == pmtiles_tile.TileType.PNG and header["tile_compression"] == pmtiles_tile.Compression.NONE
    assert abs(header["min_lon_e7"] + 1800000000) < 2 and abs(header["max_lat_e7"] - 850511287) < 10
    assert metadata["name"] == "world" and metadata["type"] == "overlay"
    tiles = {place: data for place, data in pmtiles_reader.all_tiles(source)}
    assert len(tiles) == 341
    for (z, x, y), data in tiles.items():
        assert data == disk_tile(tmp_path, z, x, y), (z, x, y)
        assert reader.get(z, x, y) == data
    assert reader.get(5, 0, 0) is None
    # Without gaps, and each content once.
    assert header["root_offset"] + header["root_length"] == header["metadata_offset"]
    assert header["metadata_offset"] + header["metadata_length"] == header["tile_data_offset"]
    assert header["tile_contents_count"] == len(set(tiles.values()))
    assert (tmp_path / "world.pmtiles.draft").stat().st_size < 65536


def test_a_transfer_and_a_purge(tmp_path):
    picture(tmp_path / "world.tif")
    copy = '<tileset name="copy"><cache>archive</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>'
    path = config(tmp_path, copy)
    run("seed", "-c", path, "-t", "files", "-z", "0,3", "--quiet")
    run("seed", "-c", path, "-t", "files", "--mode", "transfer", "--transfer", "copy", "-z", "0,3", "--quiet")
    _, source = opened(tmp_path / "copy.pmtiles")
    assert len(list(pmtiles_reader.all_tiles(source))) == 85
    run("purge", "-c", path, "-t", "copy", "-z", "3,3", "--yes")
    reader, source = opened(tmp_path / "copy.pmtiles")
    assert len(list(pmtiles_reader.all_tiles(source))) == 21 and reader.header()["max_zoom"] == 2
    shown = run("detail", "-c", path, "-t", "copy", "-z", "0,3")
    assert "21" in shown


def test_an_interrupted_seed_leaves_the_archive(tmp_path):
    """What it has stored is served, and is in the archive after the next run."""
    picture(tmp_path / "world.tif")
    path = config(tmp_path)
    run("seed", "-c", path, "-t", "world", "-z", "0,2", "--quiet")
    before = (tmp_path / "world.pmtiles").read_bytes()
    seeding = subprocess.Popen([PROGRAM, "seed", "-c", path, "-t", "world", "-z", "3,9"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    draft = tmp_path / "world.pmtiles.draft"
    try:
        for _ in range(int(patience(100) * 20)):
            if draft.stat().st_size > 100000:
                break
            try:
                seeding.wait(0.05)
            except subprocess.TimeoutExpired:
                pass
    finally:
        seeding.kill()
        seeding.wait()
    assert (tmp_path / "world.pmtiles").read_bytes() == before
    run("seed", "-c", path, "-t", "world", "-z", "3,3", "--quiet")
    _, source = opened(tmp_path / "world.pmtiles")
    levels = [place[0] for place, _ in pmtiles_reader.all_tiles(source)]
    assert levels.count(3) == 64 and levels.count(2) == 16


def test_jpeg_tiles_of_an_ingest(tmp_path):
    picture(tmp_path / "world.tif")
    path = config(tmp_path, format_="JPEG")
    run("ingest", "-c", path, "-t", "world", tmp_path / "world.tif", "--quiet")
    reader, source = opened(tmp_path / "world.pmtiles")
    assert reader.header()["tile_type"] == pmtiles_tile.TileType.JPEG
    assert all(data[:2] == b"\xff\xd8" for _, data in pmtiles_reader.all_tiles(source))


def plain_tile(z, x, y):
    """Of no two places the same, and of lengths that do not compress well."""
    return f"{z}/{x}/{y} ".encode() + b"." * (zlib.crc32(bytes((z, x, y))) % 500)


def others_archive(path, levels=8, compression=pmtiles_tile.Compression.NONE, type_=pmtiles_tile.TileType.PNG, tile=None, metadata=None):
    """As PyPI's writer makes it: with leaf directories where there are many tiles."""
    with pmtiles_writer.write(str(path)) as writer:
        for identity in range(sum(4**z for z in range(levels + 1))):
            z, x, y = pmtiles_tile.tileid_to_zxy(identity)
            writer.write_tile(identity, (tile or plain_tile)(z, x, y))
        writer.finalize({
            "tile_type": type_, "tile_compression": compression, "min_zoom": 0, "max_zoom": levels, "center_zoom": 0,
            "min_lon_e7": -1800000000, "min_lat_e7": -850000000, "max_lon_e7": 1800000000, "max_lat_e7": 850000000,
            "center_lon_e7": 0, "center_lat_e7": 0}, metadata or {"name": "others"})


def test_archives_of_others_are_served(tmp_path, build):
    """65,536 tiles at the deepest level, each at its place, through leaf directories."""
    others_archive(tmp_path / "others.pmtiles")
    assert opened(tmp_path / "others.pmtiles")[0].header()["leaf_directory_length"] > 0
    path = config(tmp_path, '<tileset name="others"><cache>archive</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>')
    server = Server(build, path, tmp_path)
    try:
        for z, x, y in (0, 0, 0), (1, 1, 0), (5, 3, 30), (8, 0, 0), (8, 255, 255), (8, 100, 7), (8, 255, 0):
            answer = server.get(f"/wmts/1.0.0/others/default/GoogleMapsCompatible/{z}/{y}/{x}.png")
            assert answer.status == 200 and answer.body == plain_tile(z, x, y)
        assert server.get("/wmts/1.0.0/others/default/GoogleMapsCompatible/9/0/0.png").body.startswith(b"\x89PNG")  # an empty one
    finally:
        server.stop()


def test_check_says_which_grids_do_not_fit(tmp_path):
    path = config(tmp_path, '<tileset name="degrees"><cache>archive</cache><grid>WGS84</grid><format>PNG</format></tileset>')
    assert 'grid "WGS84" does not fit into a PMTiles archive' in run("check", path, status=1)


def vector_config(folder, more=""):
    areas = ogr.GetDriverByName("ESRI Shapefile").CreateDataSource(str(folder / "areas.shp"))
    reference = osr.SpatialReference()
    reference.ImportFromEPSG(3857)
    table = areas.CreateLayer("areas", reference, ogr.wkbPolygon)
    table.CreateField(ogr.FieldDefn("name", ogr.OFTString))
    feature = ogr.Feature(table.GetLayerDefn())
    feature["name"] = "square"
    feature.SetGeometry(ogr.CreateGeometryFromWkt("POLYGON((0 0,9e6 0,9e6 9e6,0 9e6,0 0))"))
    table.CreateFeature(feature)
    del feature, table, areas
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache>
  <format name="mvt" type="MVT"/>
  <source name="areas" type="shapefile"><layer name="areas"><data>{folder}/areas.shp</data></layer></source>
  <cache name="archive" type="pmtiles"><file>{folder}/{{tileset}}.pmtiles</file></cache>
  <cache name="bare" type="sqlite3"><dbfile>{folder}/bare.db</dbfile></cache>
  <tileset name="areas"><source>areas</source><cache>archive</cache><grid>GoogleMapsCompatible</grid><format>mvt</format></tileset>
  <tileset name="bare"><cache>bare</cache><grid>GoogleMapsCompatible</grid><format>mvt</format></tileset>
  <service type="wmts" enabled="true"/><lock_dir>{folder}</lock_dir>{more}
</mapcache>
""")
    return path


LAYERS = [{"id": "roads", "minzoom": 2, "maxzoom": 99, "fields": {"name": "String", "lanes": "Number", "toll": "Boolean"}}, {"id": "water"}, {"id": "roads"}, {"noid": 1},
          {"id": "</script><b>", "fields": {"\"": "odd"}}]


@pytest.mark.parametrize("kind", ["pmtiles", "mbtiles"])
@pytest.mark.parametrize("layers, known", [
    (LAYERS, [{"id": "roads", "minzoom": 2, "maxzoom": 2, "fields": {"name": "String", "lanes": "Number", "toll": "Boolean"}},
              {"id": "water", "minzoom": 0, "maxzoom": 2, "fields": {}}, {"id": "</script><b>", "minzoom": 0, "maxzoom": 2, "fields": {'"': "String"}}]),
    ([], []), ("text", []), ([1], []), ([{"id": "x", "fields": {"a": {"b": {"c": 1}}}}], []), ([{"id": str(i)} for i in range(501)], [])])
def test_layers_of_others_are_told(tmp_path, build, kind, layers, known):
    """TileJSON has the layers that an archive without a source tells; what is wrong of them leaves them unknown."""
    if kind == "pmtiles":
        others_archive(tmp_path / "a.pmtiles", levels=2, type_=pmtiles_tile.TileType.MVT, metadata={"name": "others", "vector_layers": layers, "tilestats": {"a": [[1]]}})
    else:
        with sqlite3.connect(tmp_path / "a.mbtiles") as database:
            database.executescript("create table tiles(zoom_level, tile_column, tile_row, tile_data); create table metadata(name, value)")
            database.execute("insert into metadata values('json', ?)", (json.dumps({"vector_layers": layers, "tilestats": {"a": [[1]]}}),))
    path = tmp_path / "mapcache.xml"
    path.write_text(f"""<mapcache><format name="mvt" type="MVT"/>
  <cache name="archive" type="{kind}"><{'file' if kind == 'pmtiles' else 'dbfile'}>{tmp_path}/a.{kind}</{'file' if kind == 'pmtiles' else 'dbfile'}></cache>
  <tileset name="a"><cache>archive</cache><grid maxzoom="2">GoogleMapsCompatible</grid><format>mvt</format></tileset>
  <service type="gmaps" enabled="true"/><service type="demo" enabled="true"/><lock_dir>{tmp_path}</lock_dir></mapcache>""")
    server = Server(build, path, tmp_path)
    try:
        answer = server.get("/gmaps/a@GoogleMapsCompatible.json")
        assert answer.status == 200 and json.loads(answer.body)["vector_layers"] == known
        style = server.get("/demo/style.json", "layer=a@GoogleMapsCompatible")
        assert {layer["source-layer"] for layer in json.loads(style.body)["layers"]} == {layer["id"] for layer in known}
    finally:
        server.stop()


def test_vector_tiles_with_their_layers(tmp_path):
    """All tiles of an archive have one compression, whatever is added to it."""
    path = vector_config(tmp_path)
    run("seed", "-c", path, "-t", "areas", "-z", "0,3", "--quiet")
    reader, source = opened(tmp_path / "areas.pmtiles")
    header, metadata = reader.header(), reader.metadata()
    assert header["tile_type"] == pmtiles_tile.TileType.MVT and header["tile_compression"] == pmtiles_tile.Compression.GZIP
    assert [layer["id"] for layer in metadata["vector_layers"]] == ["areas"] and metadata["vector_layers"][0]["fields"] == {"name": "String"}
    tiles = dict(pmtiles_reader.all_tiles(source))
    assert len(tiles) >= 20 and all(b"areas" in gzip.decompress(tiles[place]) for place in [(0, 0, 0), (3, 5, 2)])
    plain = gzip.decompress(tiles[3, 5, 2])
    with sqlite3.connect(tmp_path / "bare.db") as database:
        database.execute("create table tiles(tileset text, grid text, x integer, y integer, z integer, data blob, dim text, ctime datetime,"
                         " primary key(tileset, grid, x, y, z, dim))")
        database.execute("insert into tiles values('bare', 'GoogleMapsCompatible', 0, 0, 4, ?, '', datetime('now'))", (plain,))
    path.write_text(path.read_text().replace('<tileset name="areas"><source>areas</source>', '<tileset name="areas">'))
    run("seed", "-c", path, "-t", "bare", "--mode", "transfer", "--transfer", "areas", "-z", "4,4", "--quiet")
    reader, _ = opened(tmp_path / "areas.pmtiles")
    assert gzip.decompress(reader.get(4, 0, 15)) == plain and reader.get(3, 5, 2) == tiles[3, 5, 2]
    assert [layer["id"] for layer in reader.metadata()["vector_layers"]] == ["areas"]


def random_tiles(folder, levels):
    """A SQLite cache `from` of tiles that nothing compresses."""
    numbers = random.Random(3)
    with sqlite3.connect(folder / "from.db") as database:
        database.execute("create table tiles(tileset text, grid text, x integer, y integer, z integer, data blob, dim text, ctime datetime,"
                         " primary key(tileset, grid, x, y, z, dim))")
        database.executemany("insert into tiles values('from', 'GoogleMapsCompatible', ?, ?, ?, ?, '', datetime('now'))", (
            (x, y, z, b"\x89PNG\r\n\x1a\n" + numbers.randbytes(8000)) for z in range(levels + 1) for x in range(2**z) for y in range(2**z)))
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache>
  <cache name="from" type="sqlite3"><dbfile>{folder}/from.db</dbfile></cache>
  <cache name="archive" type="pmtiles"><file>{folder}/to/a.pmtiles</file></cache>
  <tileset name="from"><cache>from</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>
  <tileset name="to"><cache>archive</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>
  <service type="wmts" enabled="true"/><lock_dir>{folder}</lock_dir>
</mapcache>
""")
    (folder / "to").mkdir(exist_ok=True)
    return path


def count_of(archive):
    return len(list(pmtiles_reader.all_tiles(opened(archive)[1]))) if archive.exists() else 0


def test_a_killed_merge_is_done_again(tmp_path):
    """At whatever moment: the archive is the old one or the new one, and no tile is lost."""
    path = random_tiles(tmp_path, 6)
    archive, all_tiles = tmp_path / "to/a.pmtiles", sum(4**z for z in range(7))
    transfer = ["-t", "from", "--mode", "transfer", "--transfer", "to", "--quiet"]
    run("seed", "-c", path, *transfer, "-z", "0,3")
    old = count_of(archive)
    assert old == 85
    began = time.monotonic()
    seen = set()
    for attempt in range(12):
        seeding = subprocess.Popen([PROGRAM, "seed", "-c", path, *transfer, "-z", "4,6"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            seeding.wait((attempt + 1) * 0.06)
        except subprocess.TimeoutExpired:
            seeding.kill()
            seeding.wait()
        count = count_of(archive)  # all of its tiles can be read
        assert old <= count <= all_tiles
        seen.add(count)
    run("compact", "-c", path)
    run("seed", "-c", path, *transfer, "-z", "0,6")
    assert count_of(archive) == all_tiles, (seen, time.monotonic() - began)
    assert list((tmp_path / "to").glob("*.tmp")) == []


def test_a_full_disk_keeps_the_archive(tmp_path):
    """The draft stays, what was stored is served, and with room again the next run is complete."""
    path = random_tiles(tmp_path, 5)
    archive = tmp_path / "to/a.pmtiles"
    with small_disk(tmp_path / "to", "18m") as disk:  # the draft has 11 MB of it, and the archive needs as much
        if disk is None:
            pytest.skip("nothing can be mounted here")
        result = subprocess.run([PROGRAM, "seed", "-c", path, "-t", "from", "--mode", "transfer", "--transfer", "to", "-z", "0,5"],
                                capture_output=True, text=True, timeout=patience(100))
        assert result.returncode == 1 and "No space left" in result.stderr, result.stdout + result.stderr
        assert not archive.exists() and [file.name for file in (tmp_path / "to").glob("*.tmp")] == []
        assert re.search(r"all +1365 +1365 +0 +100.0 %[^$]*stores: 1365 tiles", run("detail", "-c", path, "-t", "to", "-z", "0,5"))
        draft = (tmp_path / "to/a.pmtiles.draft").read_bytes()
    (tmp_path / "to/a.pmtiles.draft").write_bytes(draft)
    run("compact", "-c", path)
    assert count_of(archive) == 1365

"""Other programs read the archives that a seed writes: GDAL an MBTiles, PyPI's reader a PMTiles, by the rules of `pmtiles verify`."""
import gzip
import os
import pathlib
import subprocess

import numpy
import pytest
from osgeo import gdal
from patience import patience
from pypi_pmtiles import reader, tile
from test_geopackage import HALF, picture

BUILD = pathlib.Path(os.environ.get("MAPCACHE_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build" / "release"))
gdal.UseExceptions()


def seeded(folder, cache, zooms, more=""):
    """Tiles of a picture of the world, in `cache`; returns the picture."""
    drawn = picture(folder / "world.tif", 1024)
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache><source name="world" type="gdal"><data>{folder}/world.tif</data></source>
  <cache name="archive" {cache}</cache>
  <tileset name="world"><source>world</source><cache>archive</cache><grid>GoogleMapsCompatible</grid><format>PNG</format>{more}</tileset>
  <service type="wmts" enabled="true"/><lock_dir>{folder}</lock_dir></mapcache>""")
    done = subprocess.run([BUILD / "bin/mapcache", "seed", "-c", path, "-t", "world", "-z", zooms, "--quiet"], capture_output=True, text=True, timeout=patience(100))
    assert done.returncode == 0, done.stdout + done.stderr
    return drawn


def test_gdal_reads_an_mbtiles(tmp_path):
    drawn = seeded(tmp_path, f'type="mbtiles"><dbfile>{tmp_path}/world.mbtiles</dbfile>', "0,2")
    raster = gdal.OpenEx(str(tmp_path / "world.mbtiles"), allowed_drivers=["MBTiles"])
    assert (raster.RasterXSize, raster.RasterYSize) == (1024, 1024)
    assert raster.GetGeoTransform() == pytest.approx((-HALF, HALF / 512, 0, HALF, 0, -HALF / 512))
    assert numpy.array_equal(numpy.dstack([raster.GetRasterBand(band).ReadAsArray() for band in (1, 2, 3)]), drawn)
    assert [raster.GetRasterBand(1).GetOverview(i).XSize for i in range(raster.GetRasterBand(1).GetOverviewCount())] == [512, 256]


def entries_of(data, header):
    """All entries of tiles, through the leaves, in their order."""
    def walk(part):
        for entry in tile.deserialize_directory(part):
            if entry.run_length > 0:
                yield entry
            else:
                at = header["leaf_directory_offset"] + entry.offset
                yield from walk(data[at:at + entry.length])
    yield from walk(data[header["root_offset"]:header["root_offset"] + header["root_length"]])


@pytest.mark.parametrize("zooms", ["0,3", "2,2", "0,5"])
def test_a_pmtiles_keeps_the_rules(tmp_path, zooms):
    """As the format's makers verify an archive (go-pmtiles, verify): sections, counts, order, levels; a box within the world."""
    seeded(tmp_path, f'type="pmtiles"><file>{tmp_path}/world.pmtiles</file>', zooms)
    data = (tmp_path / "world.pmtiles").read_bytes()
    header = reader.Reader(reader.MemorySource(data)).header()
    sections = ["root", "metadata", "leaf_directory", "tile_data"]
    ends = [header[f"{name}_offset"] + header[f"{name}_length"] for name in sections]
    assert all(0 < end <= len(data) for end in ends) and header["root_offset"] == 127 and ends[0] <= 16384
    assert len(data) == 127 + sum(header[f"{name}_length"] for name in sections)
    entries = list(entries_of(data, header))
    assert header["tile_entries_count"] == len(entries)
    assert header["addressed_tiles_count"] == sum(entry.run_length for entry in entries)
    assert header["tile_contents_count"] == len({entry.offset for entry in entries})
    assert header["clustered"]
    seen, following, last = set(), 0, -1
    for entry in entries:
        assert entry.tile_id > last and entry.length > 0 and entry.offset + entry.length <= header["tile_data_length"]
        last = entry.tile_id + entry.run_length - 1
        assert entry.offset in seen or entry.offset == following  # a content that is new comes right behind the last new one
        if entry.offset not in seen:
            following += entry.length
        seen.add(entry.offset)
    assert tile.tileid_to_zxy(entries[0].tile_id)[0] == header["min_zoom"] == int(zooms[0])
    assert tile.tileid_to_zxy(last)[0] == header["max_zoom"] == int(zooms[2])
    assert header["min_lon_e7"] < header["max_lon_e7"] and header["min_lat_e7"] < header["max_lat_e7"]
    assert header["min_zoom"] <= header["center_zoom"] <= header["max_zoom"]
    metadata = data[header["metadata_offset"]:header["metadata_offset"] + header["metadata_length"]]
    assert gzip.decompress(metadata).lstrip()[:1] == b"{"

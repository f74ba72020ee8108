"""Stores of the kinds that are only read, each with tiles of the levels 0 and 1 in a folder of the test's own, by those who write such files."""
from conftest import png
from osgeo import gdal
from test_block_archives import bundle, metatile, slab
from test_cog_cache import cog, raster
from test_geopackage import picture

PLACES = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 0, 1), (1, 1, 1)]  # z, x, y from the upper left corner


def tiles_of_level(level):
    return {(y, x): png(256, 256, lambda *_, z=z, x=x, y=y: (10 + z, 20 + x, 30 + y)) for z, x, y in PLACES if z == level}


def make_bundles(folder):
    for level in 0, 1:
        bundle(folder / f"bundles/L{level:02}/R0000C0000.bundle", tiles_of_level(level))
    return f"<base>{folder}/bundles</base>", folder / "bundles"


def make_slabs(folder):
    for level in 0, 1:
        slab(folder / f"slabs/{level}/00/00/00.tif", tiles_of_level(level))
    return f"<base>{folder}/slabs/{{z}}</base>", folder / "slabs"


def make_metatiles(folder):
    for level in 0, 1:
        metatile(folder / "default", level, 0, 0, {(x, y): data for (y, x), data in tiles_of_level(level).items()})
    return f"<base>{folder}/default</base>", folder / "default"


def make_mrf(folder):
    picture(folder / "world.tif", 512)
    options = ["BLOCKSIZE=256", "COMPRESS=PNG", "INTERLEAVE=PIXEL", "UNIFORM_SCALE=2"]
    gdal.Translate(str(folder / "w.mrf"), str(folder / "world.tif"), format="MRF", creationOptions=options)
    gdal.Open(str(folder / "w.mrf"), gdal.GA_Update).BuildOverviews("NEAREST", [2])
    return f"<file>{folder}/w.mrf</file>", folder / "w.mrf"


def make_cog(folder):
    return f"<file>{cog(folder / 'w.tif', raster(folder / 's.tif', 512))}</file>", folder / "w.tif"


# By kind: what stands in <cache>, and the file or folder that has the tiles.
MAKERS = {"bundle": make_bundles, "rok4": make_slabs, "mod_tile": make_metatiles, "mrf": make_mrf, "cog": make_cog}

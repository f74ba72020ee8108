"""What `mapcache ingest` is to make, computed by numpy from the documented rules: for grids of 64-pixel tiles whose
resolutions halve, from upright images in the grid's CRS. Pixels are R, G, B, A."""
import functools
import io
import os
import pathlib
import sqlite3
import subprocess

import numpy
from PIL import Image
from patience import patience

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("MAPCACHE_BUILD", ROOT / "build" / "release"))
PROGRAM = str(BUILD / "bin" / "mapcache")
SIDE, EXTENT, LEVELS = 64, 2048, 6  # 2048 units: one tile at 32 units a pixel, 32 x 32 tiles at 1

GRID = """<grid name="own"><srs>EPSG:3857</srs><extent>0 0 2048 2048</extent><units>m</units><size>64 64</size>
    <resolutions>{resolutions}</resolutions><origin>{origin}</origin></grid>"""


class Site:
    """A folder with a configuration: tilesets png, jpeg and mixed, each in an SQLite file of its name."""

    def __init__(self, folder, origin="bottom-left", resolutions="32 16 8 4 2 1", cache="", dimensions="", grid=None):
        self.folder = folder
        self.config = folder / "mapcache.xml"
        grid = grid or GRID.format(origin=origin, resolutions=resolutions)
        kinds = "".join(f"""<tileset name="{name}"><cache>{name}</cache><grid>own</grid><format>{form}</format>
            {dimensions}</tileset>""" for name, form in (("png", "PNG"), ("jpeg", "JPEG"), ("mixed", "mixed")))
        caches = cache or "".join(f"""<cache name="{name}" type="sqlite3">
            <dbfile>{folder}/{name}.sqlite3</dbfile></cache>""" for name in ("png", "jpeg", "mixed"))
        self.config.write_text(f"""<mapcache>{grid}{caches}{kinds}
            <service type="wmts" enabled="true"/><service type="tms" enabled="true"/>
            <lock_dir>{folder}</lock_dir></mapcache>""")

    def command(self, tileset, *options):
        told = () if "--srs" in options else ("--srs", "EPSG:3857")
        return [PROGRAM, "ingest", "-c", str(self.config), "-t", tileset, *told, *map(str, options)]

    def ingest(self, tileset, *options):
        return subprocess.run(self.command(tileset, *options), capture_output=True, text=True, timeout=patience(100))

    def good(self, tileset, *options):
        result = self.ingest(tileset, *options)
        assert result.returncode == 0, result.stdout + result.stderr
        return result

    def tiles(self, tileset, dim=""):
        """Bytes by level, column and row (from the grid's origin)."""
        with sqlite3.connect(self.folder / f"{tileset}.sqlite3", timeout=patience(60)) as db:
            return {row[:3]: row[3] for row in db.execute("select z, x, y, data from tiles where dim = ?", (dim,))}


def decode(data):
    return numpy.asarray(Image.open(io.BytesIO(data)).convert("RGBA"))


@functools.cache
def noise(height, width):
    return numpy.random.default_rng(1).normal(0, 6, (height, width, 1))


def picture(width, height, seed, holes=False):
    """Smooth colours with some noise; holes: about a third of it is transparent."""
    rng = numpy.random.default_rng(seed)
    y, x = numpy.mgrid[:height, :width]
    waves = [127 + 80 * numpy.sin(x * rng.uniform(.02, .2) + y * rng.uniform(.02, .2) + rng.uniform(0, 6))
             for _ in range(3)]
    made = numpy.dstack([*waves, numpy.full((height, width), 255)]) + noise(height, width)
    made = made.clip(0, 255).astype(numpy.uint8)
    made[..., 3] = 255
    if holes:
        made[numpy.sin(x / 9.0) * numpy.sin(y / 7.0) > .3] = 0
    return made


def save(path, pixels, left, top, scale=1.0, opaque=None):
    """A PNG or JPEG with its world file; left, top: its outer corner."""
    opaque = (pixels[..., 3] == 255).all() if opaque is None else opaque
    options = {"compress_level": 1} if path.suffix == ".png" else {}
    Image.fromarray(pixels[..., :3] if opaque else pixels).save(path, **options)
    ending = path.suffix[1] + path.suffix[-1] + "w"
    path.with_suffix("." + ending).write_text(
        f"{scale!r}\n0\n0\n{-scale!r}\n{left + scale / 2!r}\n{top - scale / 2!r}\n")
    return path


class World:
    """All pixels of the finest level, row 0 in the north; and what follows from them above."""

    def __init__(self, finest=LEVELS - 1):
        self.finest = finest
        self.resolution = 2.0 ** (LEVELS - 1 - finest)
        pixels = int(EXTENT / self.resolution)
        self.levels = {finest: numpy.zeros((pixels, pixels, 4), numpy.uint8)}

    def draw(self, pixels, left, top, scale=1.0, how="nearest"):
        """An image over what is there: where it has data."""
        world = self.levels[self.finest]
        centres = (numpy.arange(world.shape[0]) + .5) * self.resolution
        columns, rows = (centres - left) / scale, (top - (EXTENT - centres)) / scale
        xs = numpy.flatnonzero((columns >= 0) & (columns < pixels.shape[1]))
        ys = numpy.flatnonzero((rows >= 0) & (rows < pixels.shape[0]))
        nearest = pixels[rows[ys].astype(int)[:, None], columns[xs].astype(int)[None, :]]
        drawn = nearest if how == "nearest" else self._bilinear(pixels, rows[ys], columns[xs])
        part = world[ys[0]:ys[-1] + 1, xs[0]:xs[-1] + 1]
        part[...] = numpy.where(nearest[..., 3:] > 0, drawn, part)
        return self

    @staticmethod
    def _bilinear(pixels, rows, columns):
        def taps(at, size):
            low = numpy.floor(at - .5)
            return (numpy.clip(low, 0, size - 1).astype(int), numpy.clip(low + 1, 0, size - 1).astype(int),
                    at - .5 - low)

        y0, y1, v = taps(rows, pixels.shape[0])
        x0, x1, u = taps(columns, pixels.shape[1])
        total, weight = 0, 0
        for y, wy in ((y0, 1 - v), (y1, v)):
            for x, wx in ((x0, 1 - u), (x1, u)):
                four = pixels[y[:, None], x[None, :]].astype(float)
                w = (wy[:, None] * wx[None, :] * (four[..., 3] > 0))[..., None]
                total, weight = total + four * w, weight + w
        return (total / numpy.maximum(weight, 1e-9) + .5).astype(numpy.uint8)

    def overviews(self, how="mean"):
        for z in range(self.finest - 1, -1, -1):
            below = self.levels[z + 1]
            half = below.shape[0] // 2
            four = below.reshape(half, 2, half, 2, 4).transpose(0, 2, 1, 3, 4).reshape(half, half, 4, 4).astype(int)
            data = four[..., 3] > 0
            count = data.sum(-1)
            mean = ((four * data[..., None]).sum(2) + (count // 2)[..., None]) // numpy.maximum(count, 1)[..., None]
            first = numpy.take_along_axis(four, data.argmax(-1)[..., None, None], 2)[..., 0, :] * (count > 0)[..., None]
            self.levels[z] = (mean if how == "mean" else first).astype(numpy.uint8)
        return self

    def tiles(self, origin="bottom-left"):
        """Those that hold anything, by level, column and row from the origin."""
        made = {}
        for z, level in self.levels.items():
            count = level.shape[0] // SIDE
            for row in range(count):
                for column in range(count):
                    tile = level[row * SIDE:(row + 1) * SIDE, column * SIDE:(column + 1) * SIDE]
                    if tile[..., 3].any():
                        x = count - 1 - column if origin.endswith("right") else column
                        y = row if origin.startswith("top") else count - 1 - row
                        made[z, x, y] = tile
        return made


def compare(stored, expected, tolerance=0):
    """Every tile, and every pixel of it."""
    assert stored.keys() == expected.keys()
    for key, data in stored.items():
        found, wanted = decode(data).astype(int), expected[key].astype(int)
        assert ((found[..., 3] > 0) == (wanted[..., 3] > 0)).all(), key
        assert abs(found - wanted).max() <= tolerance, (key, abs(found - wanted).max())

"""Things to serve, one of each kind: all show the same square, 5 to 10 degrees east and 45 to 50 north, and nothing else."""
import contextlib
import functools
import http.server
import io
import json
import sqlite3
import struct
import threading
import urllib.parse

import numpy
from conftest import png
from osgeo import gdal, ogr, osr
from PIL import Image
from pypi_pmtiles import tile, writer
from ports import free_port
from postgres import PASSWORD

gdal.UseExceptions()
EAST, WEST, SOUTH, NORTH = 10, 5, 45, 50
SQUARE = f"POLYGON(({WEST} {SOUTH},{EAST} {SOUTH},{EAST} {NORTH},{WEST} {NORTH},{WEST} {SOUTH}))"
RASTER, STORED = (200, 100, 50), (20, 160, 90)  # colours
TILE = (6, 33, 22)  # 5.6 to 11.2 degrees east, 45.1 to 48.9 north, rows from the top: the square and what is east of it
STYLE = """<StyledLayerDescriptor version="1.0.0" xmlns="http://www.opengis.net/sld"><NamedLayer><Name>a</Name><UserStyle><FeatureTypeStyle>
  <Rule><PolygonSymbolizer><Fill><CssParameter name="fill">{}</CssParameter></Fill></PolygonSymbolizer></Rule>
</FeatureTypeStyle></UserStyle></NamedLayer></StyledLayerDescriptor>"""


def wgs84():
    reference = osr.SpatialReference()
    reference.ImportFromEPSG(4326)
    reference.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    return reference


def raster(path, colour=RASTER, west=WEST, east=EAST, options=(), driver="GTiff"):
    """A GeoTIFF of one colour, readable for everybody."""
    size = 256
    memory = gdal.GetDriverByName("MEM").Create("", size, size, 3)
    memory.SetGeoTransform([west, (east - west) / size, 0, NORTH, 0, (SOUTH - NORTH) / size])
    memory.SetProjection(wgs84().ExportToWkt())
    for band, value in enumerate(colour, 1):
        memory.GetRasterBand(band).WriteArray(numpy.full((size, size), value, numpy.uint8))
    gdal.GetDriverByName(driver).CreateCopy(str(path), memory, options=list(options))
    path.chmod(0o644)
    return path


def vectors(path, driver, layer="areas"):
    source = ogr.GetDriverByName(driver).CreateDataSource(str(path))
    table = source.CreateLayer(layer, wgs84(), ogr.wkbPolygon)
    table.CreateField(ogr.FieldDefn("name", ogr.OFTString))
    feature = ogr.Feature(table.GetLayerDefn())
    feature["name"] = "square"
    feature.SetGeometry(ogr.CreateGeometryFromWkt(SQUARE))
    table.CreateFeature(feature)
    del feature, table, source
    for beside in path.parent.glob(f"{path.stem}.*"):
        beside.chmod(0o644)
    return path


def stored_square(colour=STORED):
    """The tile TILE: what the square covers has the colour, all else is white."""
    edge = int(256 * (EAST - 5.625) / 5.625)
    return png(256, 256, lambda x, y: colour if x < edge else (255, 255, 255))


def stored_tiles(colour=STORED):
    """(z, x, y from the top, picture): TILE, and those above it, which are of one colour."""
    z, x, y = TILE
    whole = png(256, 256, lambda i, j: colour)
    return [(level, x >> (z - level), y >> (z - level), stored_square(colour) if level == z else whole) for level in range(z + 1)]


def mbtiles(path, colour=STORED):
    database = sqlite3.connect(path)
    database.executescript("create table if not exists metadata(name text, value text);"
                           "create table if not exists tiles(zoom_level integer, tile_column integer, tile_row integer, tile_data blob);"
                           "create unique index if not exists tile_index on tiles(zoom_level, tile_column, tile_row);")
    for name, value in (("name", "square"), ("format", "png"), ("bounds", f"{WEST},{SOUTH},{EAST},{NORTH}"), ("minzoom", 0), ("maxzoom", TILE[0])):
        database.execute("delete from metadata where name = ?", (name,))
        database.execute("insert into metadata values(?, ?)", (name, value))
    for z, x, y, data in stored_tiles(colour):
        database.execute("insert or replace into tiles values(?, ?, ?, ?)", (z, x, 2**z - 1 - y, data))
    database.commit()
    database.close()
    path.chmod(0o644)
    return path


def pmtiles(path):
    with writer.write(str(path)) as archive:
        for number, data in sorted((tile.zxy_to_tileid(z, x, y), data) for z, x, y, data in stored_tiles()):
            archive.write_tile(number, data)
        archive.finalize({"tile_type": tile.TileType.PNG, "tile_compression": tile.Compression.NONE, "min_zoom": 0, "max_zoom": TILE[0], "center_zoom": 0,
                          "min_lon_e7": WEST * 10**7, "min_lat_e7": SOUTH * 10**7, "max_lon_e7": EAST * 10**7, "max_lat_e7": NORTH * 10**7,
                          "center_lon_e7": 0, "center_lat_e7": 0}, {"name": "square", "vector_layers": []})
    path.chmod(0o644)
    return path


def as_webp(data):
    made = io.BytesIO()
    Image.open(io.BytesIO(data)).save(made, "WEBP", lossless=True)
    return made.getvalue()


def bundles(folder, encode=lambda data: data):
    """As Esri's compact cache, version 2, has them."""
    for z, x, y, data in stored_tiles():
        data = encode(data)
        index, at = [0] * 16384, 64 + 131072
        index[y % 128 * 128 + x % 128] = at + 4 | len(data) << 40
        head = struct.pack("<4I3Q6I", 3, 16384, len(data), 5, 0, at + 4 + len(data), 40, 20 + 131072, 3, 16, 16384, 5, 131072)
        level = folder / "_alllayers" / f"L{z:02}"
        level.mkdir(parents=True)
        (level / "R0000C0000.bundle").write_bytes(head + struct.pack("<16384Q", *index) + struct.pack("<I", len(data)) + data)
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    folder.chmod(0o755)
    return folder


def pyramid(folder):
    """As the tools of ROK4 write it: a descriptor, and slabs of 16 x 16 tiles below it."""
    levels = []
    for z, x, y, data in stored_tiles():
        slab = folder / f"square/DATA/{z}" / f"{x // 16 // 36**2:02}" / f"{0:02}" / f"{x // 16 % 36}{y // 16 % 36}.tif"
        slab.parent.mkdir(parents=True)
        offsets, sizes, at = [0] * 256, [0] * 256, 2048 + 2048
        offsets[y % 16 * 16 + x % 16], sizes[y % 16 * 16 + x % 16] = at, len(data)
        tags = [(256, 4, 1, 4096), (257, 4, 1, 4096), (258, 3, 1, 8), (259, 3, 1, 8), (262, 3, 1, 2), (277, 3, 1, 3), (284, 3, 1, 1), (322, 4, 1, 256), (323, 4, 1, 256),
                (324, 4, 256, 2048), (325, 4, 256, 2048 + 1024)]
        head = struct.pack("<2sHIH", b"II", 42, 8, len(tags)) + b"".join(struct.pack("<HHII", *tag) for tag in tags) + bytes(4)
        slab.write_bytes(head.ljust(2048, b"\0") + struct.pack("<512I", *offsets, *sizes) + data)
        levels.append({"id": str(z), "tiles_per_width": 16, "tiles_per_height": 16, "tile_limits": {"min_col": x, "max_col": x, "min_row": y, "max_row": y},
                       "storage": {"type": "FILE", "image_directory": f"square/DATA/{z}", "path_depth": 2}})
    about = {"tile_matrix_set": "PM", "format": "TIFF_PNG_UINT8", "levels": levels,
             "raster_specifications": {"channels": 3, "nodata": "255,255,255", "photometric": "rgb", "interpolation": "bicubic"}}
    (folder / "square.json").write_text(json.dumps(about))
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return folder / "square.json"


def mrf(path):
    """Of the whole world, pages beside those of the square are not there."""
    index, body = [], b""
    pictures = {(z, x, y): data for z, x, y, data in stored_tiles()}
    for z in reversed(range(TILE[0] + 1)):
        for y in range(2**z):
            for x in range(2**z):
                data = pictures.get((z, x, y), b"")
                index += [len(body), len(data)]
                body += data
    path.with_suffix(".idx").write_bytes(struct.pack(f">{len(index)}Q", *index))
    path.with_suffix(".ppg").write_bytes(body)
    half, side = 20037508.342789244, 256 * 2**TILE[0]
    path.write_text(f"""<MRF_META><Raster><Size x="{side}" y="{side}" c="3"/><PageSize x="256" y="256" c="3"/><Compression>PNG</Compression></Raster>
        <Rsets model="uniform" scale="2"/><GeoTags><BoundingBox minx="{-half}" miny="{-half}" maxx="{half}" maxy="{half}"/></GeoTags></MRF_META>""")
    for part in ".mrf", ".idx", ".ppg":
        path.with_suffix(part).chmod(0o644)
    return path


def sqlite_cache(path, tileset="square"):
    database = sqlite3.connect(path)
    database.execute("create table tiles(tileset text, grid text, x integer, y integer, z integer, data blob, dim text, ctime datetime,"
                     " primary key(tileset, grid, x, y, z, dim))")
    for z, x, y, data in stored_tiles():
        database.execute("insert into tiles values(?, 'GoogleMapsCompatible', ?, ?, ?, ?, '', '2020-01-02 03:04:05')",
                         (tileset, x, 2**z - 1 - y, z, data))
    database.commit()
    database.close()
    path.chmod(0o644)
    return path


class Ranges(http.server.SimpleHTTPRequestHandler):
    """Serves files, also parts of them, as stores of COGs do."""

    def send_head(self):
        asked = self.headers.get("Range", "")
        if not asked.startswith("bytes=") or "/.." in self.path:
            return super().send_head()
        path = self.translate_path(self.path)
        try:
            file = open(path, "rb")
        except OSError:
            self.send_error(404)
            return None
        size = file.seek(0, 2)
        first, _, last = asked[6:].partition("-")
        first, last = int(first), min(int(last or size - 1), size - 1)
        file.seek(first)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        self.send_header("Content-Length", str(last - first + 1))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(file.read(last - first + 1))
        file.close()
        return None

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def web_of(folder):
    port = free_port()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), functools.partial(Ranges, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.shutdown()
        server.server_close()


def folder_of(shared, *makers):
    shared.mkdir(mode=0o755)
    for maker in makers:
        maker(shared)
    return shared


KINDS = {
    "geotiff": lambda place, web, database: raster(place / "square.tif"),
    "cog": lambda place, web, database: f"{web}/{raster(place / 'cog.tif', driver='COG').name}",
    "mosaic": lambda place, web, database: folder_of(place / "mosaic", lambda p: raster(p / "west.tif", east=8), lambda p: raster(p / "east.tif", west=8)),
    "mbtiles": lambda place, web, database: mbtiles(place / "square.mbtiles"),
    "pmtiles": lambda place, web, database: pmtiles(place / "square.pmtiles"),
    "bundle": lambda place, web, database: bundles(place / "bundled"),
    "bundlewebp": lambda place, web, database: bundles(place / "webp", as_webp),
    "bundlefile": lambda place, web, database: bundles(place / "other") / "_alllayers/L06/R0000C0000.bundle",
    "mrf": lambda place, web, database: mrf(place / "pages.mrf"),
    "rok4": lambda place, web, database: pyramid(folder_of(place / "pyramid")),
    "rok4folder": lambda place, web, database: pyramid(folder_of(place / "pyramids")).parent,
    "geopackage": lambda place, web, database: vectors(place / "square.gpkg", "GPKG"),
    "sqlite": lambda place, web, database: sqlite_cache(place / "square.sqlite3"),
    "shapefile": lambda place, web, database: vectors(place / "square.shp", "ESRI Shapefile"),
    "geojson": lambda place, web, database: vectors(place / "square.geojson", "GeoJSON"),
    "postgresql": lambda place, web, database: f"postgresql://mapcache:{urllib.parse.quote(PASSWORD)}@127.0.0.1:{database.port}/postgres",
    "folder": lambda place, web, database: folder_of(place / "several", lambda p: raster(p / "image.tif"), lambda p: vectors(p / "shape.shp", "ESRI Shapefile"),
                                                     lambda p: mbtiles(p / "tiles.mbtiles")),
}
COLOURS = {"geotiff": RASTER, "cog": RASTER, "mosaic": RASTER, "mbtiles": STORED, "pmtiles": STORED, "sqlite": STORED, "bundle": STORED, "bundlewebp": STORED, "bundlefile": STORED,
           "mrf": STORED, "rok4": STORED, "rok4folder": STORED}
# Where a layer says that it lies, where that is not the square: the world, or the finest tile.
WORLD_BOX, TILE_BOX = (-180, -85.0511, 180, 85.0511), (5.625, 45.0890, 11.25, 48.9225)
BOXES = {"sqlite": WORLD_BOX, "mrf": WORLD_BOX, "bundle": TILE_BOX, "bundlewebp": TILE_BOX, "bundlefile": TILE_BOX, "rok4": TILE_BOX, "rok4folder": TILE_BOX}

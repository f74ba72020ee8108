"""Things to serve, one of each kind: all show the same square, 5 to 10 degrees east and 45 to 50 north, and nothing else."""
import sqlite3

import numpy
from conftest import png
from osgeo import gdal, ogr, osr

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


def mbtiles(path, colour=STORED):
    z, x, y = TILE
    database = sqlite3.connect(path)
    database.executescript("create table if not exists metadata(name text, value text);"
                           "create table if not exists tiles(zoom_level integer, tile_column integer, tile_row integer, tile_data blob);"
                           "create unique index if not exists tile_index on tiles(zoom_level, tile_column, tile_row);")
    for name, value in (("name", "square"), ("format", "png"), ("bounds", f"{WEST},{SOUTH},{EAST},{NORTH}"), ("minzoom", z), ("maxzoom", z)):
        database.execute("delete from metadata where name = ?", (name,))
        database.execute("insert into metadata values(?, ?)", (name, value))
    database.execute("insert or replace into tiles values(?, ?, ?, ?)", (z, x, 2**z - 1 - y, stored_square(colour)))
    database.commit()
    database.close()
    path.chmod(0o644)
    return path


def sqlite_cache(path, tileset="square"):
    z, x, y = TILE
    database = sqlite3.connect(path)
    database.execute("create table tiles(tileset text, grid text, x integer, y integer, z integer, data blob, dim text, ctime datetime,"
                     " primary key(tileset, grid, x, y, z, dim))")
    database.execute("insert into tiles values(?, 'GoogleMapsCompatible', ?, ?, ?, ?, '', '2020-01-02 03:04:05')",
                     (tileset, x, 2**z - 1 - y, z, stored_square()))
    database.commit()
    database.close()
    path.chmod(0o644)
    return path

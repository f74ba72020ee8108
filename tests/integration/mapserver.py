"""Debian's MapServer as a WMS, with a raster and a shapefile that GDAL makes."""
import numpy
from conftest import APACHE_MODULES, free_port
from osgeo import gdal, ogr, osr

gdal.UseExceptions()
MAPSERV = "/usr/bin/mapserv"
REGIONS = {"north": "POLYGON((-100 10, 20 10, 20 70, -100 70, -100 10))",
           "south": "POLYGON((0 -60, 120 -60, 60 5, 0 -60))"}
MAPFILE = """MAP
  NAME "world" EXTENT -180 -90 180 90 SIZE 256 256 UNITS DD IMAGECOLOR 0 0 0 MAXSIZE 4096
  PROJECTION "init=epsg:4326" END
  OUTPUTFORMAT NAME "png" DRIVER AGG/PNG MIMETYPE "image/png" IMAGEMODE RGBA TRANSPARENT ON END
  WEB METADATA
    "wms_title" "world" "wms_enable_request" "*" "wms_srs" "EPSG:4326 EPSG:3857 EPSG:900913"
    "wms_feature_info_mime_type" "text/plain" "wms_onlineresource" "http://localhost/"
  END END
  LAYER NAME "image" TYPE RASTER STATUS ON DATA "{folder}/image.tif"
    PROJECTION "init=epsg:4326" END METADATA "wms_title" "image" END END
  LAYER NAME "regions" TYPE POLYGON STATUS ON DATA "{folder}/regions.shp" TEMPLATE "none"
    PROJECTION "init=epsg:4326" END
    METADATA "wms_title" "regions" "wms_include_items" "all" "gml_include_items" "all" END
    CLASS STYLE COLOR 40 120 220 OUTLINECOLOR 255 255 0 WIDTH 2 END END END
END
"""


def make_data(folder):
    wgs84 = osr.SpatialReference()
    wgs84.ImportFromEPSG(4326)
    wgs84.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    raster = gdal.GetDriverByName("GTiff").Create(str(folder / "image.tif"), 720, 360, 3)
    raster.SetGeoTransform((-180, 0.5, 0, 90, 0, -0.5))
    raster.SetProjection(wgs84.ExportToWkt())
    columns, rows = numpy.arange(720)[None, :], numpy.arange(360)[:, None]
    for band, values in enumerate((columns * 255 // 719 + 0 * rows, rows * 255 // 359 + 0 * columns,
                                   (columns // 36 + rows // 36) % 2 * 200), 1):
        raster.GetRasterBand(band).WriteArray(values.astype(numpy.uint8))
    del raster
    shapes = ogr.GetDriverByName("ESRI Shapefile").CreateDataSource(str(folder / "regions.shp"))
    layer = shapes.CreateLayer("regions", wgs84, ogr.wkbPolygon)
    layer.CreateField(ogr.FieldDefn("name", ogr.OFTString))
    for name, text in REGIONS.items():
        feature = ogr.Feature(layer.GetLayerDefn())
        feature.SetField("name", name)
        feature.SetGeometry(ogr.CreateGeometryFromWkt(text))
        layer.CreateFeature(feature)
    del layer, shapes


def httpd_config(folder):
    """What an httpd needs to run it at /wms; each request is a line in folder/requests.log."""
    make_data(folder)
    (folder / "world.map").write_text(MAPFILE.format(folder=folder))
    (folder / "mapserver.conf").write_text(
        f'CONFIG\n  ENV\n    MS_MAP_PATTERN "."\n  END\n  MAPS\n    WORLD "{folder}/world.map"\n  END\nEND\n')
    for path in folder.iterdir():
        path.chmod(0o644)
    return f"""LoadModule cgid_module {APACHE_MODULES}/mod_cgid.so
LoadModule alias_module {APACHE_MODULES}/mod_alias.so
LoadModule env_module {APACHE_MODULES}/mod_env.so
CustomLog {folder}/requests.log "%q"
ScriptSock {folder}/cgid.sock
SetEnv MAPSERVER_CONFIG_FILE {folder}/mapserver.conf
ScriptAlias /wms {MAPSERV}
"""


FAR = """  LAYER NAME "{name}" TYPE RASTER STATUS ON CONNECTIONTYPE WMS CONNECTION "{url}" PROJECTION "init=epsg:3857" END
    METADATA "wms_title" "far" "wms_srs" "EPSG:3857" "wms_name" "red" "wms_server_version" "1.1.1" "wms_format" "image/png" "wms_connectiontimeout" "20" END END
END
"""


def make_cascades(home, origin):
    """Map files whose second layer comes from another WMS: one that is there, one that fails, one that is not there, and one without a layer of that name."""
    world = (home / "world.map").read_text()
    urls = {"good": origin.url("/wms?"), "failing": origin.url("/status/500?"), "away": f"http://127.0.0.1:{free_port()}/wms?", "refusing": origin.url("/xml?")}
    for name, url in urls.items():
        (home / f"{name}.map").write_text(world[:world.index('  LAYER NAME "regions"')] + FAR.format(name=name, url=url))
        (home / f"{name}.map").chmod(0o644)
    return list(urls)

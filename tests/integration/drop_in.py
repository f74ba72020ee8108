"""One configuration for two programs: ours and Debian's libapache2-mod-mapcache / mapcache-tools."""
import io
import os
import subprocess

import numpy
from patience import patience
from peers import peer
from PIL import Image

PEER_MODULE = peer("/usr/lib/apache2/modules/mod_mapcache.so")
PEER_SEED, PEER_CGI = peer("/usr/bin/mapcache_seed"), peer("/usr/lib/cgi-bin/mapcache")
MERCATOR, DEGREES, OWN = "GoogleMapsCompatible", "WGS84", "own"
COLOR, SHADE = "red", "dark.1/a"  # values of the two dimensions; the second has what must not reach a path as it is

# name -> what stands in <cache>; {root} is the folder of the program that writes
CACHES = {
    "plain": '<cache name="plain" type="sqlite3"><dbfile>{root}/plain.sqlite3</dbfile></cache>',
    "blank": '<cache name="blank" type="sqlite3"><dbfile>{root}/blank.sqlite3</dbfile><detect_blank/></cache>',
    "split": """<cache name="split" type="sqlite3">
      <dbfile x_fmt="%03d" inv_y_fmt="%04x">{root}/split/{tileset}-{grid}-{dim}-{z}-{x}-{inv_y}-{div_x}.db</dbfile>
      <xcount>2</xcount><ycount>2</ycount></cache>""",
    "mbtiles": '<cache name="mbtiles" type="mbtiles"><dbfile>{root}/tiles.mbtiles</dbfile></cache>',
    "tilecache": '<cache name="tilecache" type="disk"><base>{root}/tilecache</base><symlink_blank/></cache>',
    "arcgis": '<cache name="arcgis" type="disk" layout="arcgis"><base>{root}/arcgis</base><detect_blank/></cache>',
    "worldwind": '<cache name="worldwind" type="disk" layout="worldwind"><base>{root}/worldwind</base></cache>',
    "template": """<cache name="template" type="disk" layout="template">
      <template>{root}/template/{tileset}/{grid}/{dim}/{z}/{x}-{inv_y}.{ext}</template></cache>""",
}
# tileset -> cache, format, grids, with dimensions
TILESETS = {
    "plain": ("plain", "png", (MERCATOR, DEGREES, OWN), False),
    "photo": ("plain", "jpeg", (MERCATOR,), False),
    "either": ("plain", "either", (MERCATOR,), False),
    "blank": ("blank", "png", (MERCATOR,), False),
    "split": ("split", "png", (MERCATOR, OWN), True),
    "mbtiles": ("mbtiles", "png", (MERCATOR,), False),
    "tilecache": ("tilecache", "either", (MERCATOR,), True),
    "arcgis": ("arcgis", "png", (MERCATOR, DEGREES), True),
    "worldwind": ("worldwind", "jpeg", (MERCATOR,), False),
    "template": ("template", "png", (MERCATOR,), True),
}
DIMENSIONS = """<dimensions>
      <dimension type="values" name="color" default="red"><value>red</value><value>blue</value></dimension>
      <dimension type="regex" name="shade" default="light"><regex>^[a-z0-9./]+$</regex></dimension>
    </dimensions>"""
SERVICES = """<service type="wms" enabled="true"><full_wms>assemble</full_wms>
    <format allow_client_override="{override}">png</format><maxsize>1100</maxsize></service>
  """ + "".join(f'<service type="{name}" enabled="true"/>'
                for name in ("wmts", "tms", "kml", "gmaps", "ve", "mapguide"))


def configuration(root, origin_url, override="false"):
    """What both programs read; the stores lie in the folder root."""
    parts = [f"""<?xml version="1.0" encoding="UTF-8"?>
<mapcache>
  <metadata><title>drop-in</title></metadata>
  <source name="pattern" type="wms">
    <getmap><params><FORMAT>image/png</FORMAT><LAYERS>pattern</LAYERS><TRANSPARENT>true</TRANSPARENT></params></getmap>
    <getfeatureinfo><info_formats>text/plain,text/html</info_formats>
      <params><QUERY_LAYERS>pattern</QUERY_LAYERS></params></getfeatureinfo>
    <http><url>{origin_url}</url></http>
  </source>
  <grid name="{OWN}"><srs>EPSG:2154</srs><units>m</units><size>200 100</size><origin>top-left</origin>
    <extent>0 6000000 1000000 7000000</extent><resolutions>5000 2500 1000</resolutions></grid>
  <format name="png" type="PNG"><compression>fast</compression></format>
  <format name="jpeg" type="JPEG"><quality>90</quality></format>
  <format name="either" type="MIXED"><transparent>png</transparent><opaque>jpeg</opaque></format>
"""]
    parts += [text.replace("{root}", str(root)) for text in CACHES.values()]
    for name, (cache, image_format, grids, dimensions) in TILESETS.items():
        links = "".join(f'<grid maxzoom="2">{grid}</grid>' for grid in grids)
        parts.append(f"""
  <tileset name="{name}"><source>pattern</source><cache>{cache}</cache>{links}<format>{image_format}</format>
    <metatile>2 2</metatile><expires>3600</expires>{DIMENSIONS if dimensions else ""}</tileset>""")
    parts.append(f"""
  {SERVICES.replace('{override}', override)}
  <locker type="disk"><directory>{root}</directory><timeout>20</timeout></locker>
</mapcache>
""")
    return "".join(parts)


def seed(program, config, tileset, grid, dimensions, environment=None):
    """Fills all levels of a tileset with the given mapcache_seed."""
    chosen = ["-D", f"color={COLOR}", "-D", f"shade={SHADE}"] if dimensions else []
    ended = subprocess.run([program, "-c", config, "-t", tileset, "-g", grid, "-z", "0,2", "-q", *chosen],
                           capture_output=True, text=True, timeout=patience(60), check=False,
                           env={**os.environ, **(environment or {})})
    assert ended.returncode == 0, ended.stdout + ended.stderr


def level_size(grid, z):
    if grid == OWN:
        return ((1, 2), (2, 4), (5, 10))[z]
    return (2**z * (2 if grid == DEGREES else 1), 2**z)


def tile_url(tileset, z, x, row):
    """The tile's path by WMTS for each grid of the tileset; rows count from the top."""
    _, _, grids, dimensions = TILESETS[tileset]
    values = f"&color={COLOR}&shade={SHADE}" if dimensions else ""
    for grid in grids:
        columns, rows = level_size(grid, z)
        if x < columns and row < rows:
            yield (f"/wmts?SERVICE=WMTS&REQUEST=GetTile&VERSION=1.0.0&LAYER={tileset}&STYLE=default&FORMAT=image/png"
                   f"&TILEMATRIXSET={grid}&TILEMATRIX={z}&TILEROW={row}&TILECOL={x}{values}")


def tile_urls(tileset):
    return [url for z in range(3) for x in range(8) for row in range(10) for url in tile_url(tileset, z, x, row)]


def pixels(body):
    """Height x width x 4, not premultiplied; colours under full transparency are zero."""
    rgba = numpy.array(Image.open(io.BytesIO(body)).convert("RGBA")).astype(int)
    rgba[rgba[..., 3] == 0] = 0
    return rgba


def difference(body, other):
    a, b = pixels(body), pixels(other)
    assert a.shape == b.shape
    return int(numpy.abs(a - b).max())

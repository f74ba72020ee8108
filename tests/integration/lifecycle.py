"""Configurations with one scripted origin for the tests of a tile's life."""
import struct
import zlib

from conftest import GRID

HALF = 20037508.3427892480


def source(name, url, more="", layers="pattern"):
    return f"""<source name="{name}" type="wms"><retries>0</retries>
    <getmap><params><FORMAT>image/png</FORMAT><LAYERS>{layers}</LAYERS></params></getmap>
    <http><url>{url}</url>{more}</http></source>"""


def tileset(name, source_name="pattern", link="", metatile="1 1", more=""):
    origin = f"<source>{source_name}</source>" if source_name else ""
    return f"""<tileset name="{name}">{origin}<cache>disk</cache><grid {link}>{GRID}</grid><format>PNG</format>
    <metatile>{metatile}</metatile>{more}</tileset>"""


def write(folder, *parts, name="mapcache.xml", full_wms="assemble"):
    """A configuration over a disk cache in folder/tiles, named z/x/y."""
    folder.chmod(0o777)
    path = folder / name
    path.write_text(f"""<?xml version="1.0" encoding="UTF-8"?>
<mapcache>
  {"".join(part for part in parts if part.startswith(("<source", "<grid", "<ruleset")))}
  <cache name="disk" type="disk" layout="template">
    <template>{folder}/tiles/{{tileset}}/{{z}}/{{x}}/{{y}}.{{ext}}</template></cache>
  {"".join(part for part in parts if not part.startswith(("<source", "<grid", "<ruleset")))}
  <service type="wms" enabled="true"><full_wms>{full_wms}</full_wms><format>PNG</format></service>
  <service type="wmts" enabled="true"/>
  <service type="tms" enabled="true"/>
  <service type="gmaps" enabled="true"/>
  <locker type="disk"><directory>{folder}</directory><timeout>20</timeout></locker>
</mapcache>
""")
    return path


def tile(name, z, x, y):
    """Path of a tile by its column and row from the south."""
    return f"/mc/tms/1.0.0/{name}@{GRID}/{z}/{x}/{y}.png"


def stored(folder, name):
    return sorted(str(path.relative_to(folder / "tiles" / name)) for path in (folder / "tiles" / name).rglob("*.png"))


def box(z, x, y, columns=1):
    """Bounds of a tile, or of a square of them that it begins in the south west."""
    side = 2 * HALF / 2**z
    return (-HALF + x * side, -HALF + y * side, -HALF + (x + columns) * side, -HALF + (y + columns) * side)


def one_color(width, height, rgba):
    """A PNG file's bytes."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress((b"\0" + bytes(rgba) * width) * height)) + chunk(b"IEND", b""))

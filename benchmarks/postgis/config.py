"""The same maps for both servers: sets of layers, their style as SLD and as a map file, configurations, requests."""
import random
import subprocess

from common.servers import BUILD
from postgis.data import EXTENT, SRID

BACKGROUND = (235, 242, 250)
ROADS = ((1, (200, 60, 40), 5), (2, (230, 140, 50), 4), (3, (240, 200, 90), 3), (4, (150, 150, 150), 2), (5, (190, 190, 190), 1))
AREA, BORDER = (240, 220, 180), (120, 80, 40)
MARK, RIM = (30, 60, 160), (255, 255, 255)

# What is measured by default: the zooms of each set of data. At zoom z a map is the country's longer side divided by z.
ZOOMS = {"villages": (1, 4, 16, 32), "municipalities": (1, 4, 16, 32), "parcels": (1, 4, 16), "roads": (4, 16, 64), "points": (4, 16, 64)}
KIND = {"roads": "LINE", "points": "POINT"}  # others: areas


THINNED = ("parcels",)  # sets that are also drawn with vertices a whole pixel apart


def transfers():
    """What our `<transfer>` can be."""
    keys = subprocess.run([BUILD / "bin" / "mapcache", "keys"], check=True, capture_output=True, text=True).stdout
    line = next(line for line in keys.splitlines() if line.startswith("| `<transfer>`"))
    return [name for name in ("auto", "binary", "hex", "twkb") if name in line.split("|")[2]]


def html(color):
    return "#%02x%02x%02x" % color


def parameter(name, value):
    return f'<CssParameter name="{name}">{value}</CssParameter>'


def stroke(color, width):
    return f'<Stroke>{parameter("stroke", html(color))}{parameter("stroke-width", width)}</Stroke>'


def fill(color):
    return f'<Fill>{parameter("fill", html(color))}</Fill>'


def rules(name):
    if name == "roads":
        return "".join(f"""<Rule><Filter xmlns="http://www.opengis.net/ogc"><PropertyIsEqualTo><PropertyName>class</PropertyName><Literal>{kind}</Literal>
          </PropertyIsEqualTo></Filter><LineSymbolizer>{stroke(color, width)}</LineSymbolizer></Rule>""" for kind, color, width in ROADS)
    if name == "points":
        mark = f"<Mark><WellKnownName>circle</WellKnownName>{fill(MARK)}{stroke(RIM, 1)}</Mark>"
        return f"<Rule><PointSymbolizer><Graphic>{mark}<Size>6</Size></Graphic></PointSymbolizer></Rule>"
    return f"<Rule><PolygonSymbolizer>{fill(AREA)}{stroke(BORDER, 1)}</PolygonSymbolizer></Rule>"


def sld(name):
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<StyledLayerDescriptor version="1.0.0" xmlns="http://www.opengis.net/sld">
  <NamedLayer><Name>{name}</Name><UserStyle><FeatureTypeStyle>{rules(name)}</FeatureTypeStyle></UserStyle></NamedLayer>
</StyledLayerDescriptor>
"""


def rgb(color):
    return "%d %d %d" % color


def classes(name):
    """The same style as classes of a map file."""
    if name == "roads":
        return 'CLASSITEM "class"\n' + "\n".join(f'CLASS EXPRESSION "{kind}" STYLE COLOR {rgb(color)} WIDTH {width} LINECAP BUTT END END' for kind, color, width in ROADS)
    if name == "points":
        return f'CLASS STYLE SYMBOL "circle" SIZE 6 COLOR {rgb(MARK)} OUTLINECOLOR {rgb(RIM)} END END'
    return f"CLASS STYLE COLOR {rgb(AREA)} OUTLINECOLOR {rgb(BORDER)} WIDTH 1 END END"


def map_file(name, source):
    """`source`: the lines that say where the layer's data is."""
    box = f"{EXTENT[0]} {EXTENT[1]} {EXTENT[2]} {EXTENT[3]}"
    return f"""MAP
NAME "{name}"
STATUS ON
SIZE 1000 1000
MAXSIZE 4096
EXTENT {box}
UNITS METERS
IMAGECOLOR {rgb(BACKGROUND)}
PROJECTION "init=epsg:{SRID}" END
OUTPUTFORMAT NAME "png" DRIVER AGG/PNG MIMETYPE "image/png" IMAGEMODE RGB EXTENSION "png" END
WEB METADATA "ows_title" "{name}" "ows_enable_request" "*" "ows_srs" "EPSG:{SRID}" END END
SYMBOL NAME "circle" TYPE ELLIPSE POINTS 1 1 END FILLED TRUE END
LAYER
NAME "{name}"
TYPE {KIND.get(name, "POLYGON")}
STATUS ON
PROJECTION "init=epsg:{SRID}" END
EXTENT {box}
{source}
{classes(name)}
END
END
"""


def write_map_files(folder, sets, data):
    """For each set one over PostGIS, whose processes keep their connection, and one over the shapefile."""
    for name in sets:
        postgis = (f'CONNECTIONTYPE POSTGIS\nCONNECTION "{data.database.connection()}"\nPROCESSING "CLOSE_CONNECTION=DEFER"\n'
                   f'DATA "geom FROM {name} USING UNIQUE gid USING SRID={SRID}"')
        (folder / f"{name}-postgis.map").write_text(map_file(name, postgis))
        (folder / f"{name}-shapefile.map").write_text(map_file(name, f'DATA "{data.shapefile(name)}"'))


def layer(name, variant, data):
    """Our tileset `name-variant`; a variant is a transfer, `pixel` (the one by itself, and the coarsest thinning) or `shapefile`."""
    if variant == "shapefile":
        kind, where = "shapefile", f"<data>{data.shapefile(name)}</data>"
    else:
        kind = "postgis"
        where = f"<connection>{data.database.connection()}</connection><table>{name}</table><id>gid</id>"
        where += "<thinning>pixel</thinning>" if variant == "pixel" else f"<transfer>{variant}</transfer>"
    return f"""
  <source name="{name}-{variant}" type="{kind}"><layer name="{name}">{where}<style>{name}.sld</style></layer></source>
  <tileset name="{name}-{variant}"><source>{name}-{variant}</source><cache>disk</cache><grid>country</grid><format>PNG</format></tileset>"""


def grid():
    """Level 0 is one tile, with the country at its lower edge."""
    side = max(EXTENT[2] - EXTENT[0], EXTENT[3] - EXTENT[1])
    return f"""<grid name="country"><srs>EPSG:{SRID}</srs><extent>{EXTENT[0]} {EXTENT[1]} {EXTENT[0] + side} {EXTENT[1] + side}</extent><size>256 256</size>
    <resolutions>{" ".join(repr(side / 256 / 2 ** level) for level in range(12))}</resolutions><units>m</units><origin>top-left</origin></grid>"""


def write_ours(folder, sets, variants, data):
    """One configuration with a tileset for each set and variant."""
    for name in sets:
        (folder / f"{name}.sld").write_text(sld(name))
    layers = "".join(layer(name, variant, data).replace(f"<style>{name}.sld", f"<style>{folder}/{name}.sld") for name in sets for variant in variants)
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache>{grid()}
  <cache name="disk" type="disk"><base>{folder}/cache</base></cache>{layers}
  <default_format>PNG</default_format>
  <service type="wms" enabled="true"><full_wms>forward</full_wms><maxsize>4096</maxsize><format allow_client_override="true">PNG</format></service>
</mapcache>
""")
    return path


def box_of(zoom, numbers):
    """A random square of the country's longer side divided by the zoom, inside the country where it fits."""
    side = max(EXTENT[2] - EXTENT[0], EXTENT[3] - EXTENT[1]) / zoom

    def place(low, high):
        return (low + high - side) / 2 if high - low <= side else low + numbers.random() * (high - low - side)
    x, y = place(EXTENT[0], EXTENT[2]), place(EXTENT[1], EXTENT[3])
    return x, y, x + side, y + side


def boxes(zoom, threads, maps, turn):
    """For each thread in turn, its maps: the same for every server."""
    return [box_of(zoom, numbers) for thread in range(threads)
            for numbers in [random.Random(f"{zoom}/{threads}/{thread}/{turn}")] for _ in range(maps)]


def query(layer_name, box, edge=1000):
    return (f"SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS={layer_name}&STYLES=&SRS=EPSG:{SRID}&FORMAT=image/png&BGCOLOR=0x{html(BACKGROUND)[1:]}"
            f"&BBOX={','.join('%.3f' % v for v in box)}&WIDTH={edge}&HEIGHT={edge}")

"""Each table twice: in a style for which overviews are built, and in one that looks the same."""
import math

from postgis import config as drawn
from postgis.data import EXTENT, SRID

LEAST = 64  # pixels of the country's width on a map
KINDS = {"short": "roads"}  # whose styles are those of another set
LEVEL, FULL = "level", "full"


def write(folder, database, name):
    tilesets = ""
    for use in (LEVEL, FULL):
        style = folder / f"{use}.sld"
        style.write_text(drawn.sld(KINDS.get(name, name)).replace("<UserStyle>", f"<UserStyle><Name>{use}</Name>"))
        tilesets += f"""
  <source name="{use}" type="postgis"><layer name="{name}"><connection>{database.connection()}</connection><table>{name}</table><id>gid</id>
    <transfer>binary</transfer><style>{style}</style></layer></source>
  <tileset name="{use}"><source>{use}</source><cache>disk</cache><grid>country</grid><format>PNG</format></tileset>"""
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache>{drawn.grid()}
  <cache name="disk" type="disk"><base>{folder}/cache</base></cache>{tilesets}
  <default_format>PNG</default_format>
  <service type="wms" enabled="true"><full_wms>forward</full_wms><maxsize>4096</maxsize><format allow_client_override="true">PNG</format></service>
</mapcache>
""")
    return path


def boxes(numbers, levels, count, edge):
    """Random squares that some level serves, at places where the table is; resolutions from the finest to where the country is small."""
    finest, farthest = min(level[0] for level in levels), min(max(level[1] for level in levels), (EXTENT[2] - EXTENT[0]) / LEAST)
    found = []
    for _ in range(count):
        resolution = math.exp(numbers.uniform(math.log(finest), math.log(farthest * (1 - 1e-9))))
        half = resolution * edge / 2
        x, y = numbers.uniform(EXTENT[0], EXTENT[2]), numbers.uniform(EXTENT[1], EXTENT[3])
        found.append((resolution, (x - half, y - half, x + half, y + half)))
    return found


def query(use, box, edge):
    """Without a background: what is not painted is transparent."""
    return (f"SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS={use}&STYLES=&SRS=EPSG:{SRID}&FORMAT=image/png&TRANSPARENT=TRUE"
            f"&BBOX={','.join(map(repr, box))}&WIDTH={edge}&HEIGHT={edge}")

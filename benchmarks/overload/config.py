"""The same layers for all servers: stored tiles, and maps that have to be drawn. Style and data are those of the load test."""
import re
import subprocess

from common.servers import BUILD
from load import config
from load.data import LAYERS

LEVELS = 5            # tiles of levels 0 to this are stored
WIDTH, HEIGHT = 1800, 1200
DEADLINE = 5          # seconds
SLOW_OF_CLIENT = 32   # of one address
SLOW_IN_APACHE = 160  # of 256 threads


def layers(folder, data):
    text = ""
    for name, rules in config.styles().items():
        (folder / f"{name}.sld").write_text(config.sld(name, rules))
        text += f'<layer name="{name}"><data>{data}/{name}.shp</data><style>{folder}/{name}.sld</style></layer>'
    return text


def write(path, folder, source, more=""):
    path.write_text(f"""<mapcache>
  <cache name="disk" type="disk"><base>{folder}/cache</base></cache>
  {source}
  <tileset name="world"><source>world</source><cache>disk</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>
  <default_format>PNG</default_format>
  <service type="wms" enabled="true"><full_wms>forward</full_wms><format allow_client_override="true">PNG</format><maxsize>4096</maxsize></service>
  <service type="wmts" enabled="true"/>
  <locker type="disk"><directory>{folder}</directory></locker>
  {more}
</mapcache>
""")
    return path


def write_ours(folder, data, more=""):
    """Drawn by ourselves."""
    limits = f"<deadline>{DEADLINE}</deadline><max_slow_requests_per_client>{SLOW_OF_CLIENT}</max_slow_requests_per_client>{more}"
    return write(folder / f"ours{len(more)}.xml", folder, f'<source name="world" type="shapefile">{layers(folder, data)}</source>', limits)


def write_peer(folder, origin):
    """Drawn by MapServer, at its URL: MapCache draws nothing itself. Its own bound for waiting is that of our deadline."""
    return write(folder / "peer.xml", folder, f"""<source name="world" type="wms"><http><url>{origin}?map={folder}/world.map</url>
      <connection_timeout>{DEADLINE}</connection_timeout></http><getmap><params><FORMAT>image/png</FORMAT><LAYERS>{','.join(LAYERS)}</LAYERS></params></getmap></source>""")


def seed(folder, own):
    """Stores tiles; returns the paths of them."""
    subprocess.run([BUILD / "bin" / "mapcache", "seed", "-c", own, "-t", "world", "-g", "GoogleMapsCompatible", "-z", f"0,{LEVELS}", "-n", "2", "-q"], check=True)
    subprocess.run(["chmod", "-R", "a+rwX", folder / "cache"], check=True)
    side = 1 << LEVELS
    return [f"/mc/wmts/1.0.0/world/default/GoogleMapsCompatible/{LEVELS}/{n * 7 % side}/{n * 13 // side * 11 % side}.png" for n in range(512)]


def larger(path):
    """The map of the load test, with more pixels."""
    return re.sub(r"WIDTH=\d+&HEIGHT=\d+", f"WIDTH={WIDTH}&HEIGHT={HEIGHT}", path)

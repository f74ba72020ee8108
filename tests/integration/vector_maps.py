"""What tests of drawn maps share: a configuration of vector layers, a FastCGI program that serves it, maps as pixels."""
import io
import re

import numpy
from fastcgi import Client, Server
from PIL import Image

SLD = """<StyledLayerDescriptor version="1.0.0" xmlns="http://www.opengis.net/sld"><NamedLayer><Name>a</Name><UserStyle>
  <Name>one</Name><FeatureTypeStyle>{rules}</FeatureTypeStyle></UserStyle></NamedLayer></StyledLayerDescriptor>"""

TILESET = """<tileset name="{name}"><source>{name}</source><cache>disk</cache><grid>{grid}</grid><format>PNG</format>
  <metatile>1 1</metatile>{more}</tileset>"""


class Maps:
    """Layers by name, each a source and a tileset of its own; `serve` starts the program on them."""

    def __init__(self, folder, build, connection):
        self.folder, self.build, self.connection = folder, build, connection
        self.parts, self.server = [], None

    def add(self, name, layer="", grid="GoogleMapsCompatible", more="", connection=None, layers=None, source=""):
        """`layer`: elements of the layer's besides its connection; or `layers`, several of that."""
        texts = "".join(f"<layer name='{name}'><connection>{connection or self.connection}</connection>{text}</layer>"
                        for text in (layers or [layer]))
        self.parts.append(f'<source name="{name}" type="postgis">{source}{texts}</source>'
                          + TILESET.format(name=name, grid=grid, more=more))

    def configure(self, more=""):
        config = self.folder / "maps.xml"
        (self.folder / "cache").mkdir(exist_ok=True)
        config.write_text(f"""<mapcache><cache name="disk" type="disk"><base>{self.folder}/cache</base></cache>
          {"".join(self.parts)}<default_format>PNG</default_format>
          <service type="wms" enabled="true"><full_wms>forward</full_wms><format allow_client_override="true">PNG</format>
          <maxsize>4096</maxsize></service><service type="wmts" enabled="true"/><service type="metrics" enabled="true"/>
          <lock_dir>{self.folder}/cache</lock_dir>{more}</mapcache>""")
        return config

    def serve(self, more="", environment=None, options=()):
        self.server = Server(self.build, self.configure(more), self.folder, environment=environment, options=options)
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.server is not None:
            self.server.stop()

    def client(self):
        return Client(self.server.address)

    def counter(self, name):
        text = self.server.get("/metrics").body.decode()
        return int(re.search(rf"^mapcache_{name} (\d+)$", text, re.MULTILINE).group(1))

    def reply(self, layer, box, size=(200, 200), srs="EPSG:3857", more="", client=None, request="GetMap"):
        query = query_of(layer, box, size, srs, more, request)
        return (client or self.server.client).get(b"/", query.encode())

    def draw(self, layer, box, *arguments, **options):
        reply = self.reply(layer, box, *arguments, **options)
        assert reply.status == 200, (reply.status, reply.body, self.server.log())
        return pixels(reply.body)

    def info(self, layer, box, size, point, mime="application/json", srs="EPSG:3857"):
        return self.reply(layer, box, size, srs, f"&QUERY_LAYERS={layer}&INFO_FORMAT={mime}&X={point[0]}&Y={point[1]}",
                          request="GetFeatureInfo")


def query_of(layer, box, size=(200, 200), srs="EPSG:3857", more="", request="GetMap"):
    return (f"SERVICE=WMS&VERSION=1.1.1&REQUEST={request}&STYLES=&LAYERS={layer}&SRS={srs}&FORMAT=image/png"
            f"&BBOX={','.join(map(repr, box))}&WIDTH={size[0]}&HEIGHT={size[1]}{more}")


def pixels(body):
    """Rows of R, G, B, A; transparent pixels are all zero."""
    image = numpy.asarray(Image.open(io.BytesIO(body)).convert("RGBA")).astype(int)
    return numpy.where(image[..., 3:] == 0, 0, image)


def covered(image):
    """How much of the map is painted."""
    return float((image[..., 3] > 127).mean())


def difference(one, other):
    """The part of pixels that are clearly different."""
    return float((abs(one - other).max(axis=2) > 60).mean())

"""Draws styles: shapes given in pixels of a level of the web grid, a style as text, the picture as an array."""
import io
import os
import subprocess

import numpy
from osgeo import ogr, osr
from PIL import Image

HALF = 20037508.342789248
LEVEL = 10
UNIT = 2 * HALF / 256 / 2 ** LEVEL  # metres for a pixel
HEAD = ('<StyledLayerDescriptor version="1.1.0" xmlns="http://www.opengis.net/sld" xmlns:se="http://www.opengis.net/se" '
        'xmlns:ogc="http://www.opengis.net/ogc" xmlns:gml="http://www.opengis.net/gml" '
        'xmlns:xlink="http://www.w3.org/1999/xlink"><NamedLayer><se:Name>a</se:Name><UserStyle><se:Name>one</se:Name>')
TAIL = "</UserStyle></NamedLayer></StyledLayerDescriptor>"


def style(rules):
    """A document around rules, or around feature type styles."""
    inner = rules if "FeatureTypeStyle>" in rules else f"<se:FeatureTypeStyle>{rules}</se:FeatureTypeStyle>"
    return HEAD + inner + TAIL


def rule(symbolizers, condition=""):
    return f"<se:Rule>{condition}{symbolizers}</se:Rule>"


class Studio:
    """A folder with a configuration; every picture is drawn by a process of its own (plain CGI)."""

    def __init__(self, folder, build, environment):
        self.folder, self.build, self.environment = folder, build, environment
        (folder / "styles").mkdir()

    def shapes(self, features):
        """features: (well-known text in pixels, y down; {attribute: text or number})."""
        reference = osr.SpatialReference()
        reference.ImportFromEPSG(3857)
        first = ogr.CreateGeometryFromWkt(features[0][0])
        kind = first.GetGeometryType()
        for path in self.folder.glob("data.*"):
            path.unlink()
        data = ogr.GetDriverByName("ESRI Shapefile").CreateDataSource(str(self.folder / "data.shp"))
        layer = data.CreateLayer("data", reference, kind)
        for name, value in features[0][1].items():
            layer.CreateField(ogr.FieldDefn(name, ogr.OFTString if isinstance(value, str) else ogr.OFTReal))
        for text, values in features:
            feature = ogr.Feature(layer.GetLayerDefn())
            for name, value in values.items():
                feature.SetField(name, value)
            geometry = ogr.CreateGeometryFromWkt(text)
            feature.SetGeometry(self._placed(geometry))
            layer.CreateFeature(feature)
        return self

    def _placed(self, geometry):
        for i in range(geometry.GetGeometryCount()):
            self._placed(geometry.GetGeometryRef(i))
        if geometry.GetGeometryCount() == 0:
            for i in range(geometry.GetPointCount()):
                geometry.SetPoint_2D(i, geometry.GetX(i) * UNIT, -geometry.GetY(i) * UNIT)
        return geometry

    def write(self, text):
        path = self.folder / "styles" / "style.sld"
        path.write_text(text)
        (self.folder / "map.xml").write_text(f"""<mapcache><cache name="disk" type="disk"><base>{self.folder}/cache</base></cache>
          <source name="a" type="shapefile"><layer name="a"><data>{self.folder}/data.shp</data><style>{path}</style></layer></source>
          <tileset name="a"><source>a</source><cache>disk</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>
          <default_format>PNG</default_format><service type="wms" enabled="true"><full_wms>forward</full_wms>
            <format allow_client_override="true">PNG</format></service>
          <locker type="disk"><directory>{self.folder}</directory></locker></mapcache>""")
        return self

    def check(self, text):
        """What `mapcache check` says of a style, by lines; without the sentence at the end."""
        self.write(text)
        run = subprocess.run([self.build / "bin" / "mapcache", "check", self.folder / "map.xml"], capture_output=True,
                             text=True, env={**os.environ, **self.environment})
        return run.returncode, run.stdout + run.stderr

    def answer(self, query, folder=None):
        """Head and body of what a process of its own answers, started in a folder."""
        run = subprocess.run([self.build / "bin" / "mapcache.fcgi"], stdin=subprocess.DEVNULL, capture_output=True, cwd=folder,
                             env={**os.environ, **self.environment, "MAPCACHE_CONFIG_FILE": str(self.folder / "map.xml"),
                                  "REQUEST_METHOD": "GET", "SCRIPT_NAME": "/mc", "PATH_INFO": "/", "QUERY_STRING": query,
                                  "SERVER_NAME": "x", "SERVER_PORT": "80", "GATEWAY_INTERFACE": "CGI/1.1"})
        head, _, body = run.stdout.partition(b"\r\n\r\n")
        self.log = run.stderr.decode()
        return head, body

    def draw(self, text=None, width=256, height=256, left=0, top=0, folder=None):
        """RGBA, premultiplied by nobody; (left, top) in pixels of the level. All of a style has to be drawn."""
        if text is not None:
            code, said = self.check(text)
            assert code == 0, said
        box = (left * UNIT, -(top + height) * UNIT, (left + width) * UNIT, -top * UNIT)
        query = (f"SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&STYLES=&LAYERS=a&SRS=EPSG:3857&FORMAT=image/png"
                 f"&BBOX={','.join(map(repr, box))}&WIDTH={width}&HEIGHT={height}&TRANSPARENT=true")
        head, body = self.answer(query, folder)
        assert b"image/png" in head, (head, body[:200], self.log)
        image = numpy.asarray(Image.open(io.BytesIO(body)).convert("RGBA"))
        return numpy.where(image[..., 3:] == 0, 0, image)

    def legend(self):
        """The legend of the style that was written last."""
        head, body = self.answer("SERVICE=WMS&VERSION=1.1.1&REQUEST=GetLegendGraphic&LAYER=a&FORMAT=image/png")
        assert b"image/png" in head, (head, body[:200], self.log)
        return numpy.asarray(Image.open(io.BytesIO(body)).convert("RGBA"))

    def has_seams(self, text, size=512, part=128):
        """Whether parts differ from the same map drawn at once."""
        whole = self.draw(text, size, size)
        for left in range(0, size, part):
            for top in range(0, size, part):
                here = self.draw(None, part, part, left, top)
                if not numpy.array_equal(here, whole[top:top + part, left:left + part]):
                    return left, top, int(abs(here.astype(int) - whole[top:top + part, left:left + part]).max())
        return None

"""What docs/reference/requests.md says: every row of its tables, sent to servers of the four settings, and some of them
through the other front end."""
import io
import re
import sqlite3
from urllib.parse import parse_qsl, quote

import pytest
from conftest import GRID, ROOT, png
from origin import Origin
from osgeo import ogr, osr
from PIL import Image

PAGE = ROOT / "docs" / "reference" / "requests.md"
SETTINGS = {"plain": (False, False), "override": (False, True), "strict": (True, False), "both": (True, True)}
TABLE = ("create table tiles(tileset text, grid text, x integer, y integer, z integer, data blob, dim text,"
         " ctime datetime, primary key(tileset, grid, x, y, z, dim))")


def rows():
    """(section, row, setting, the path of the request, what the cell says)"""
    section, base = None, ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            section, base = line[3:], ""
        elif line.startswith("    ") and section:
            base = line.strip()
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("| ") else []
        if len(cells) != 5 or cells[0] == "":
            continue
        for name, cell in zip(SETTINGS, cells[1:]):
            changes = re.findall("`([^`]*)`", cells[0])
            yield pytest.param(name, change(base, changes), cell, id=f"{section.split()[0]}-{cells[0]}-{name}")


def change(base, changes):
    if changes and changes[0].startswith("/"):
        return changes[0]
    path, _, query = base.rpartition("?")
    pairs = dict(pair.split("=", 1) for pair in query.split("&"))
    for text in changes:
        if text.startswith("no "):
            del pairs[text[3:]]
        else:
            name, value = text.split("=", 1)
            pairs[name] = value
    return path + "?" + "&".join(f"{name}={value}" for name, value in pairs.items()).replace(" ", "%20")


def jpeg(colour):
    out = io.BytesIO()
    Image.new("RGB", (256, 256), colour).save(out, "JPEG")
    return out.getvalue()


def fill_stores(folder):
    """Levels 0 to 2 of the stored layers."""
    database = sqlite3.connect(folder / "tiles.sqlite3")
    database.execute(TABLE)
    images = {"base": png(256, 256, lambda x, y: (x, y, 90)), "photo": jpeg((9, 120, 200)), "either": jpeg((200, 90, 9))}
    for z in range(3):
        for x in range(2**z):
            for y in range(2**z):
                for name, image in images.items():
                    database.execute("insert into tiles values(?, ?, ?, ?, ?, ?, '', '2020-01-02 03:04:05')", (name, GRID, x, y, z, image))
    database.commit()
    database.close()


def make_shapes(folder):
    reference = osr.SpatialReference()
    reference.ImportFromEPSG(4326)
    data = ogr.GetDriverByName("ESRI Shapefile").CreateDataSource(str(folder / "shapes.shp"))
    layer = data.CreateLayer("shapes", reference, ogr.wkbPolygon)
    layer.CreateField(ogr.FieldDefn("number", ogr.OFTInteger))
    feature = ogr.Feature(layer.GetLayerDefn())
    feature.SetField("number", 7)
    feature.SetGeometry(ogr.CreateGeometryFromWkt("POLYGON((-100 -70,-100 70,10 70,10 -70,-100 -70))"))
    layer.CreateFeature(feature)


def configuration(folder, origin, strict, override):
    depths = '<dimensions><dimension name="DEPTH" type="values" default="500"><value>500</value><value>490</value></dimension></dimensions>'
    stored = "".join(f'<tileset name="{name}"><cache>tiles</cache><grid>{GRID}</grid><format>{form}</format></tileset>'
                     for name, form in (("base", "PNG"), ("photo", "JPEG"), ("either", "mixed"), ("empty", "JPEG")))
    return f"""<mapcache>
  <cache name="tiles" type="sqlite3"><dbfile>{folder}/tiles.sqlite3</dbfile></cache>
  <cache name="disk" type="disk"><base>{folder}/disk-{strict}-{override}</base></cache>
  <source name="shapes" type="shapefile"><layer name="shapes"><data>{folder}/shapes.shp</data><attributes>number</attributes></layer></source>
  <source name="origin" type="wms"><getmap><params><LAYERS>red</LAYERS></params></getmap>
    <getfeatureinfo><info_formats>text/plain,text/html</info_formats><params><QUERY_LAYERS>red</QUERY_LAYERS></params></getfeatureinfo>
    <http><url>{origin}</url></http></source>
  <format name="MVT" type="MVT"/>
  {stored}
  <tileset name="drawn"><source>shapes</source><cache>disk</cache><grid>{GRID}</grid><format>PNG</format>{depths}</tileset>
  <tileset name="tiles"><source>shapes</source><cache>disk</cache><grid>{GRID}</grid><format>MVT</format></tileset>
  <tileset name="info"><source>origin</source><cache>disk</cache><grid>{GRID}</grid><format>PNG</format></tileset>
  <service type="wms" enabled="true">{'<format allow_client_override="true">JPEG</format>' if override else ''}
    <strict>{str(strict).lower()}</strict></service>
  <service type="wmts" enabled="true"><strict>{str(strict).lower()}</strict></service>
  <service type="gmaps" enabled="true"/>
  <service type="tms" enabled="true"><strict>{str(strict).lower()}</strict></service><service type="kml" enabled="true"/>
  <service type="ve" enabled="true"/><service type="mapguide" enabled="true"/>
  <locker type="disk"><directory>{folder}</directory></locker></mapcache>"""


@pytest.fixture(scope="module")
def folder(shared_folder):
    fill_stores(shared_folder)
    make_shapes(shared_folder)
    with Origin() as origin:
        for name, setting in SETTINGS.items():
            (shared_folder / f"{name}.xml").write_text(configuration(shared_folder, origin.url("/wms?"), *setting))
        for path in shared_folder.iterdir():
            path.chmod(0o644)
        shared_folder.chmod(0o777)
        yield shared_folder


@pytest.fixture(scope="module")
def web(folder, shared_apache):
    return shared_apache("apache", "".join(f"MapCacheAlias /{name} {folder}/{name}.xml\n" for name in SETTINGS))


def error_type(path):
    query = {name.upper(): value for name, value in parse_qsl(path.partition("?")[2])}
    if path.startswith("/wmts?"):
        return "application/xml"
    if path.startswith("/"):
        return "text/plain"
    return "text/xml" if query.get("VERSION", "1.1.1") >= "1.3" and "." in query["VERSION"] else "application/vnd.ogc.se_xml"


def check(reply, path, cell):
    status, _, said = cell.partition(" ")
    media = reply.headers["Content-Type"]
    assert reply.status == int(status), (cell, reply.body[:400])
    if int(status) < 400:
        assert media == said or media.split(";")[0] == said, (cell, media)
        if said.startswith("image/"):
            form = Image.open(io.BytesIO(reply.body)).format
            assert form == {"image/png": "PNG", "image/jpeg": "JPEG"}[said.split(";")[0]]
        return
    assert media.split(";")[0] == error_type(path), (cell, media)
    codes = re.findall(rb'(?:code|exceptionCode)="([^"]*)"', reply.body)
    assert codes == ([] if said == "-" else [said.encode()]), (cell, reply.body[:400])


@pytest.mark.parametrize("setting, path, cell", rows())
def test_row(web, setting, path, cell):
    check(web.get(f"/{setting}{path}"), path, cell)


@pytest.mark.parametrize("setting", ["strict", "both"])
@pytest.mark.parametrize("version, crs", [("1.1.1", "SRS"), ("1.3.0", "CRS")])
def test_every_announced_format_of_maps_comes_back(web, setting, version, crs):
    """Of every layer, whether a tile has the place of the map or not, and whatever is stored; strict is by the letter."""
    document = web.get(f"/{setting}?SERVICE=WMS&REQUEST=GetCapabilities&VERSION={version}").body.decode()
    part = document[document.index("<GetMap>"):document.index("</GetMap>")]
    formats = re.findall("<Format>([^<]*)</Format>", part)
    assert "image/jpeg" in formats and "image/png" in formats and not [form for form in formats if not form.startswith("image/")]
    half = 20037508.342789248
    for layer in ("base", "photo", "either", "empty", "drawn", "info", "photo,either", "empty,empty"):
        for form in formats:
            for box, size in ((f"-{half},-{half},{half},{half}", 256), ("-9000000,-9000000,9000000,9000000", 77)):
                reply = web.get(f"/{setting}?SERVICE=WMS&REQUEST=GetMap&VERSION={version}&LAYERS={layer}&STYLES=&{crs}=EPSG:3857"
                                f"&BBOX={box}&WIDTH={size}&HEIGHT={size}&FORMAT={quote(form)}&TRANSPARENT=TRUE")
                assert (reply.status, reply.headers["Content-Type"]) == (200, form), (layer, box, reply.body[:300])
                image = Image.open(io.BytesIO(reply.body))
                assert image.format == ("JPEG" if form == "image/jpeg" else "PNG") and image.size == (size, size)


def test_a_tile_that_is_not_there_is_white_as_jpeg(web):
    reply = web.get(f"/strict/wmts/1.0.0/empty/default/{GRID}/1/0/1.jpg")
    assert Image.open(io.BytesIO(reply.body)).convert("RGB").getextrema() == ((255, 255),) * 3
    again = web.get(f"/strict/wmts/1.0.0/either/default/{GRID}/1/0/1.png")
    tag = again.headers["ETag"]
    stored = web.get(f"/strict/wmts/1.0.0/either/default/{GRID}/1/0/1.jpg").headers["ETag"]
    assert tag != stored
    assert web.get(f"/strict/wmts/1.0.0/either/default/{GRID}/1/0/1.png", {"If-None-Match": tag}).status == 304
    assert web.get(f"/strict/wmts/1.0.0/either/default/{GRID}/1/0/1.png", {"If-None-Match": stored}).status == 200


def test_every_cell_is_tried():
    assert len(list(rows())) > 400
